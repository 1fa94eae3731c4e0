/*
 * Sentences with values that only some audiences may see.
 *
 * sentence_quote() puts a value (of a document, or the output of a user's program) into a sentence,
 * beside words for audiences that may not see it. Every place that shows a sentence names its
 * audience. In between it is an ordinary text: it may be put into others, copied, cut, and kept in
 * a file.
 *
 * Three control characters bracket a value; a quoted value has none itself (escape.h). Forging or
 * cutting them can hide a part of a sentence, never show one: a value whose end is lost goes on to
 * the end of the sentence.
 *
 * Threads: any. Ownership: none kept.
 */
#ifndef PULLET_SENTENCE_H
#define PULLET_SENTENCE_H

#include <stddef.h>

#include "lib/buffer.h"

enum audience {
	AUDIENCE_PUBLIC,   /* clients of the TCP listener: no sentence about a document at all */
	AUDIENCE_READER,   /* of status, metrics, receipts, systemd's text: no value */
	AUDIENCE_OPERATOR, /* root, the agent's user, operators, the log: all but masked values */
};

#define SENTENCE_WORDS 64 /* bytes of the words for a value, with its brackets */

/* Writes len bytes of a value into room, bracketed, with the words that replace it for audiences
 * that may not see it ("a string"; "" = it is left out). It is escaped, its newlines stay, and it
 * is cut to the room, never its brackets: size is more than SENTENCE_WORDS. Returns room. */
const char *sentence_quote(
	char *room, size_t size, const char *value, size_t len, const char *words);
/* Quotes the output of a program or server as ": " and the value; "" when there is none. */
const char *sentence_quote_output(char *room, size_t size, const char *output, size_t len);
/* Replaces each value by *** for all audiences: it may be a masked one. */
void sentence_mask(char *sentence);
/* Appends the sentence as the audience may see it. 0 or the buffer's error. */
int sentence_append(struct buffer *out, const char *sentence, enum audience audience);
/* The same into a room, cut to it. Returns room. */
const char *sentence_show(char *room, size_t size, const char *sentence, enum audience audience);
/* Appends `"name":` and the sentence as a member of a JSON object (json_writer_text()); null for
 * NULL. */
int sentence_member(
	struct buffer *out, const char *name, const char *sentence, enum audience audience);

/* NULL for an empty one: members of JSON are null then, and fields of the log left out. */
static inline const char *sentence_or_null(const char *s)
{
	return s[0] ? s : NULL;
}

#endif

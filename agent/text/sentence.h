/*
 * Sentences that have values in them, and who may see those.
 *
 * Whoever makes a sentence puts each value (of a document, or whatever a user's program wrote) into
 * it by sentence_quote(), beside words for those who are not to see it. Whoever shows the sentence
 * says to whom, and nobody shows one in another way. In between it is an ordinary text: it may be
 * put into others, copied, cut, and kept in a file.
 *
 * What brackets a value are three control characters, which no value has in it once it was quoted
 * (it is escaped, escape.h). What forges or cuts them can hide a part of a sentence, never show
 * one: a value whose end is lost goes on to the end of the sentence.
 *
 * Threads: any. Ownership: none kept.
 */
#ifndef PULLET_SENTENCE_H
#define PULLET_SENTENCE_H

#include <stddef.h>

#include "lib/buffer.h"

enum audience {
	AUDIENCE_PUBLIC, /* whoever reaches the TCP listener: no sentence about a document at all */
	AUDIENCE_READER, /* who reads status and metrics: no value. Receipts, systemd's text, too */
	AUDIENCE_OPERATOR, /* root, the agent's user, operators, and the log: whatever is not masked
			    */
};

#define SENTENCE_WORDS 64 /* bytes of what stands for a value, with its brackets */

/* Writes len bytes of a value into room, bracketed, and behind them the words that stand for it for
 * whoever may not see it ("a string"; "" = it is left out). It is escaped, its newlines stay, and
 * it is cut to the room, never its brackets: size is more than SENTENCE_WORDS. Returns room. */
const char *sentence_quote(
	char *room, size_t size, const char *value, size_t len, const char *words);
/* What a program wrote or a server said, which is nothing but a value: ": " and the value; "" when
 * there is none. */
const char *sentence_quote_output(char *room, size_t size, const char *output, size_t len);
/* Replaces each value by ***, for good: nobody is to see them, for they may be masked ones. */
void sentence_mask(char *sentence);
/* Appends the sentence as the audience may see it. 0 or the buffer's error. */
int sentence_append(struct buffer *out, const char *sentence, enum audience audience);
/* The same into a room, cut to it. Returns room. */
const char *sentence_show(char *room, size_t size, const char *sentence, enum audience audience);
/* Appends `"name":` and the sentence as a member of a JSON object (json_writer_text()); null for
 * NULL. */
int sentence_member(
	struct buffer *out, const char *name, const char *sentence, enum audience audience);

#endif

/*
 * Sentences with values. Surprising: the words that replace a value are before it, so that a
 * sentence that was cut within the value still makes sense without it.
 */
#include "text/sentence.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "text/escape.h"
#include "text/json_writer.h"

/* WORDS words VALUE value END: shift out, unit separator, shift in. */
#define WORDS '\x0e'
#define VALUE '\x1f'
#define END '\x0f'

#define MAX_SENTENCE (1u << 20)

/* Puts as many whole characters as fit. Returns their bytes. */
static size_t put_escaped(char *room, size_t size, const char *value, size_t len)
{
	struct buffer b;
	size_t used = 0, n, got;

	buffer_init(&b, 16);
	for (size_t i = 0; i < len; i += n) {
		n = escape_sequence(value + i, len - i);
		n = n ? n : 1;
		buffer_clear(&b);
		if (value[i] == '\n' || value[i] == '\t')
			buffer_append(&b, value[i] == '\n' ? "\n" : " ", 1);
		else
			escape_append(&b, value + i, n);
		got = b.error ? size : b.len;
		if (used + got >= size)
			break;
		memcpy(room + used, b.data, got);
		used += got;
	}
	buffer_fini(&b);
	room[used] = '\0';
	return used;
}

/* Brackets a value, behind a text that belongs to it. */
static const char *put_quoted(char *room, size_t size, const char *words, const char *before,
	const char *value, size_t len)
{
	size_t used = (size_t)snprintf(room, SENTENCE_WORDS, "%c%.*s%c%s", WORDS,
		SENTENCE_WORDS - 8, words, VALUE, before);

	used += put_escaped(room + used, size - used - 1, value, len);
	room[used] = END;
	room[used + 1] = '\0';
	return room;
}

const char *sentence_quote(
	char *room, size_t size, const char *value, size_t len, const char *words)
{
	return put_quoted(room, size, words, "", value, len);
}

const char *sentence_quote_output(char *room, size_t size, const char *output, size_t len)
{
	while (len && strchr(" \t\r\n", output[len - 1]))
		len--;
	if (len)
		return put_quoted(room, size, "", ": ", output, len);
	room[0] = '\0';
	return room;
}

/* Bytes up to the next bracket or the end. */
static size_t plain_len(const char *p)
{
	static const char brackets[] = {WORDS, VALUE, END, '\0'};

	return strcspn(p, brackets);
}

/* A value has at least the three bytes of its brackets, unless they were cut or forged: then it is
 * left out. */
void sentence_mask(char *sentence)
{
	const char *from = sentence;
	char *to = sentence, bracket = END;

	for (;;) {
		size_t len = plain_len(from);

		if (bracket == END) {
			memmove(to, from, len);
			to += len;
		}
		from += len;
		if (!*from)
			break;
		bracket = *from++;
		if (bracket == END && from - to >= 3) {
			memcpy(to, "***", 3);
			to += 3;
		}
	}
	*to = '\0';
}

int sentence_append(struct buffer *out, const char *sentence, enum audience audience)
{
	char bracket = END; /* the last one: what follows is outside */
	int r = 0;

	while (r == 0) {
		size_t len = plain_len(sentence);

		if (bracket == END || (bracket == VALUE) == (audience == AUDIENCE_OPERATOR))
			r = buffer_append(out, sentence, len);
		sentence += len;
		if (!*sentence)
			break;
		bracket = *sentence++;
	}
	return r;
}

const char *sentence_show(char *room, size_t size, const char *sentence, enum audience audience)
{
	struct buffer b;

	buffer_init(&b, MAX_SENTENCE);
	sentence_append(&b, sentence, audience);
	snprintf(room, size, "%s", b.error || !b.data ? "" : b.data);
	buffer_fini(&b);
	return room;
}

int sentence_member(
	struct buffer *out, const char *name, const char *sentence, enum audience audience)
{
	struct buffer b;
	int r;

	if (!sentence)
		return json_writer_text(out, name, NULL);
	buffer_init(&b, MAX_SENTENCE);
	r = sentence_append(&b, sentence, audience);
	if (r == -ENOMEM)
		out->error = r; /* the member must not be missing */
	r = r ? r : json_writer_text(out, name, b.data ? b.data : "");
	buffer_fini(&b);
	return r;
}

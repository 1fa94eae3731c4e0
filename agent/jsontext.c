/*
 * JSON strings by hand. Surprising: input is not trusted to be UTF-8 (an ETag, an error text), so
 * each sequence is checked and a bad byte becomes U+FFFD instead of making the whole line
 * unreadable.
 */
#include "jsontext.h"

#include <stdbool.h>
#include <string.h>

/* Table 3-7 of the Unicode standard. */
size_t jsontext_sequence(const char *text, size_t left)
{
	const unsigned char *s = (const unsigned char *)text;
	static const struct {
		unsigned char first, last, low, high;
		size_t len;
	} table[] = {
		{0x00, 0x7f, 0, 0, 1},
		{0xc2, 0xdf, 0x80, 0xbf, 2},
		{0xe0, 0xe0, 0xa0, 0xbf, 3},
		{0xe1, 0xec, 0x80, 0xbf, 3},
		{0xed, 0xed, 0x80, 0x9f, 3},
		{0xee, 0xef, 0x80, 0xbf, 3},
		{0xf0, 0xf0, 0x90, 0xbf, 4},
		{0xf1, 0xf3, 0x80, 0xbf, 4},
		{0xf4, 0xf4, 0x80, 0x8f, 4},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (s[0] < table[i].first || s[0] > table[i].last)
			continue;
		if (left < table[i].len)
			return 0;
		if (table[i].len > 1 && (s[1] < table[i].low || s[1] > table[i].high))
			return 0;
		for (size_t k = 2; k < table[i].len; k++)
			if ((s[k] & 0xc0) != 0x80)
				return 0;
		return table[i].len;
	}
	return 0;
}

static int append_special(struct buffer *b, unsigned char c)
{
	static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
	const char *p = c ? strchr(from, c) : NULL;

	return p ? buffer_printf(b, "\\%c", to[p - from]) : buffer_printf(b, "\\u%04x", c);
}

int jsontext_append(struct buffer *b, const char *s, size_t len)
{
	size_t plain = 0; /* start of the run that needs no escape */
	int r = buffer_append(b, "\"", 1);

	for (size_t i = 0; r == 0 && i < len;) {
		unsigned char c = (unsigned char)s[i];
		size_t n = jsontext_sequence(s + i, len - i);
		bool special = n == 0 || c < 0x20 || c == '"' || c == '\\' || c == 0x7f;

		if (special) {
			r = buffer_append(b, s + plain, i - plain);
			if (r == 0)
				r = n ? append_special(b, c) : buffer_append(b, "\\ufffd", 6);
			plain = i + (n ? n : 1);
		}
		i += n ? n : 1;
	}
	if (r == 0)
		r = buffer_append(b, s + plain, len - plain);
	return r ? r : buffer_append(b, "\"", 1);
}

static int name_append(struct buffer *b, const char *name)
{
	bool opens = b->len == 0 || b->data[b->len - 1] == '{' || b->data[b->len - 1] == '[';

	int r = opens ? 0 : buffer_append(b, ",", 1);

	if (r == 0)
		r = jsontext_append(b, name, strlen(name));
	return r ? r : buffer_append(b, ":", 1);
}

int jsontext_member(struct buffer *b, const char *name, const char *s)
{
	int r = name_append(b, name);

	if (r)
		return r;
	return s ? jsontext_append(b, s, strlen(s)) : buffer_append(b, "null", 4);
}

int jsontext_number(struct buffer *b, const char *name, unsigned long long n)
{
	int r = name_append(b, name);

	return r ? r : buffer_printf(b, "%llu", n);
}

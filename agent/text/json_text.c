/*
 * JSON strings by hand. Surprising: input is not trusted to be UTF-8 (an ETag, an error text), so
 * each sequence is checked and a bad byte becomes U+FFFD instead of making the whole line
 * unreadable.
 */
#include "text/json_text.h"

#include <stdint.h>
#include <string.h>

#include "text/escape.h"

static int append_json_escape(struct buffer *b, uint32_t c)
{
	static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
	const char *p = c && c < 0x80 ? strchr(from, (int)c) : NULL;

	if (p)
		return buffer_printf(b, "\\%c", to[p - from]);
	if (c <= 0xffff)
		return buffer_printf(b, "\\u%04x", c);
	return buffer_printf(
		b, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10), 0xdc00 + (c & 0x3ff));
}

int json_text_append(struct buffer *b, const char *s, size_t len)
{
	size_t plain = 0, n; /* start of the run that needs no escape */
	int r = buffer_append(b, "\"", 1);

	for (size_t i = 0; r == 0 && i < len; i += n ? n : 1) {
		uint32_t c;

		n = escape_sequence(s + i, len - i);
		c = n ? escape_code_point(s + i, n) : 0;
		if (n && c != '"' && c != '\\' && escape_is_plain(c))
			continue;
		r = buffer_append(b, s + plain, i - plain);
		if (r == 0)
			r = n ? append_json_escape(b, c) : buffer_append(b, "\\ufffd", 6);
		plain = i + (n ? n : 1);
	}
	if (r == 0)
		r = buffer_append(b, s + plain, len - plain);
	return r ? r : buffer_append(b, "\"", 1);
}

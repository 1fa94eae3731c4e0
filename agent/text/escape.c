/* Characters that are not shown as they are. Surprising: a backslash stays one: what comes out is
 * for people and is not read back. */
#include "text/escape.h"

#include <string.h>

/* Table 3-7 of the Unicode standard. */
size_t escape_sequence(const char *text, size_t left)
{
	const unsigned char *s = (const unsigned char *)text;
	unsigned char first = s[0], low = 0x80, high = 0xbf;
	size_t len = first < 0x80   ? 1
		     : first < 0xc2 ? 0
		     : first < 0xe0 ? 2
		     : first < 0xf0 ? 3
		     : first < 0xf5 ? 4
				    : 0;

	if (first == 0xe0)
		low = 0xa0;
	else if (first == 0xed)
		high = 0x9f;
	else if (first == 0xf0)
		low = 0x90;
	else if (first == 0xf4)
		high = 0x8f;
	if (left < len || (len > 1 && (s[1] < low || s[1] > high)))
		return 0;
	for (size_t k = 2; k < len; k++)
		if ((s[k] & 0xc0) != 0x80)
			return 0;
	return len;
}

bool escape_is_utf8(const char *text)
{
	size_t left = strlen(text), n;

	for (; left; text += n, left -= n) {
		n = escape_sequence(text, left);
		if (n == 0)
			return false;
	}
	return true;
}

uint32_t escape_code_point(const char *s, size_t len)
{
	uint32_t c = (unsigned char)s[0] & (len == 1 ? 0x7fu : 0x7fu >> len);

	for (size_t i = 1; i < len; i++)
		c = c << 6 | ((unsigned char)s[i] & 0x3f);
	return c;
}

bool escape_is_plain(uint32_t c)
{
	static const struct {
		uint32_t first, last;
	} table[] = {
		{0x00, 0x1f}, {0x7f, 0x9f}, {0xad, 0xad}, /* soft hyphen */
		{0x61c, 0x61c},                           /* Arabic letter mark */
		{0x180e, 0x180e},                         /* Mongolian vowel separator */
		{0x200b, 0x200b},   /* zero width space; its joiners belong to scripts */
		{0x200e, 0x200f},   /* marks of direction */
		{0x2028, 0x202e},   /* separators, embeddings, overrides */
		{0x2060, 0x206f},   /* word joiner, isolates, deprecated controls */
		{0xfeff, 0xfeff},   /* byte order mark */
		{0xfff9, 0xfffb},   /* interlinear annotations */
		{0xe0000, 0xe007f}, /* tags */
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]) && table[i].first <= c; i++)
		if (c <= table[i].last)
			return false;
	return true;
}

static int append_escape(struct buffer *out, const char *s, size_t len)
{
	uint32_t c = len ? escape_code_point(s, len) : (unsigned char)s[0];

	return buffer_printf(out, len <= 1 ? "\\x%02x" : c <= 0xffff ? "\\u%04x" : "\\U%08x", c);
}

int escape_append(struct buffer *out, const char *text, size_t len)
{
	size_t plain = 0, n; /* start of the run that is shown as it is */
	int r = 0;

	for (size_t i = 0; r == 0 && i < len; i += n ? n : 1) {
		n = escape_sequence(text + i, len - i);
		if (n && escape_is_plain(escape_code_point(text + i, n)))
			continue;
		r = buffer_append(out, text + plain, i - plain);
		if (r == 0)
			r = append_escape(out, text + i, n);
		plain = i + (n ? n : 1);
	}
	return r ? r : buffer_append(out, text + plain, len - plain);
}

int escape_append_lines(struct buffer *out, const char *text, const char *newline)
{
	for (;;) {
		size_t len = strcspn(text, "\n");
		int r = escape_append(out, text, len);

		if (r || !text[len])
			return r;
		buffer_append_string(out, newline);
		text += len + 1;
	}
}

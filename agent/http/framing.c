/*
 * Lines of a head to lengths. Surprising: libcurl takes whatever number a Content-Length begins
 * with, and the last of several, so each line is checked here before libcurl reads it.
 */
#include "http/framing.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool is_space(char c)
{
	return c == ' ' || c == '\t';
}

static bool is_decimal(char c)
{
	return c >= '0' && c <= '9';
}

/* tchar of RFC 9110 section 5.6.2 */
static bool is_token_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_decimal(c) ||
	       (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool has_control(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (((unsigned char)text[i] < 0x20 && text[i] != '\t') || text[i] == 0x7f)
			return true;
	return false;
}

static enum framing_line report_fault(char why[FRAMING_WHY], const char *sentence)
{
	snprintf(why, FRAMING_WHY, "%s", sentence);
	return FRAMING_BAD;
}

static bool begins_status(const char *line, size_t len)
{
	return len >= 5 && memcmp(line, "HTTP/", 5) == 0;
}

/* "HTTP/1.1 200 OK", "HTTP/2 200 ". What cannot be read is version 10 and status 0: libcurl has its
 * own word about it. */
static enum framing_line read_status_line(
	struct framing *f, const char *line, size_t len, char why[FRAMING_WHY])
{
	size_t at = 5;

	*f = (struct framing){.version = 10, .open = true};
	if (at < len && is_decimal(line[at]) && line[at] != '0')
		f->version = 10 * (unsigned)(line[at++] - '0');
	if (at + 1 < len && line[at] == '.' && is_decimal(line[at + 1])) {
		f->version += (unsigned)(line[at + 1] - '0');
		at += 2;
	}
	while (at < len && line[at] == ' ')
		at++;
	for (size_t i = at; i < at + 3 && i < len && is_decimal(line[i]); i++)
		f->status = 10 * f->status + (line[i] - '0');
	if (has_control(line, len))
		return report_fault(why, "the status line has a control character in it");
	if (f->status == 101)
		return report_fault(
			why, "the server changes the protocol (101), which nobody asked for");
	return FRAMING_STATUS;
}

/* One decimal number, blanks around it. */
static bool read_length_number(const char *text, size_t len, uint64_t *ret)
{
	uint64_t n = 0;

	while (len > 0 && is_space(text[len - 1]))
		len--;
	while (len > 0 && is_space(*text))
		text++, len--;
	if (len == 0)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (!is_decimal(text[i]) || n > (INT64_MAX - (uint64_t)(text[i] - '0')) / 10)
			return false;
		n = 10 * n + (uint64_t)(text[i] - '0');
	}
	*ret = n;
	return true;
}

/* A list of numbers, which must all be the same one, in this line and those before it. */
static enum framing_line read_content_length(
	struct framing *f, const char *text, size_t len, char why[FRAMING_WHY])
{
	const char *end = text + len, *comma;
	uint64_t n;

	for (;; text = comma + 1) {
		comma = memchr(text, ',', (size_t)(end - text));
		if (!read_length_number(text, (size_t)((comma ? comma : end) - text), &n))
			return report_fault(why,
				"its Content-Length is not a decimal number, or too large a one");
		if (f->has_length && f->length != n)
			return report_fault(why, "it has two Content-Lengths that differ");
		f->has_length = true;
		f->length = n;
		if (!comma)
			return FRAMING_HEADER;
	}
}

static enum framing_line read_transfer_encoding(
	struct framing *f, const char *text, size_t len, char why[FRAMING_WHY])
{
	if (f->chunked)
		return report_fault(why, "it has two Transfer-Encodings");
	if (len != 7 || strncasecmp(text, "chunked", 7) != 0)
		return report_fault(why,
			"its Transfer-Encoding is not just `chunked`, and nothing else was asked "
			"for");
	if (f->version < 11)
		return report_fault(
			why, "it has a Transfer-Encoding, which HTTP/1.0 does not know");
	f->chunked = true;
	return FRAMING_HEADER;
}

bool framing_is_named(const struct framing_field *field, const char *name)
{
	return field->name_len == strlen(name) &&
	       strncasecmp(field->name, name, field->name_len) == 0;
}

static enum framing_line split_header(
	const char *line, size_t len, struct framing_field *ret, char why[FRAMING_WHY])
{
	const char *colon = memchr(line, ':', len), *value;
	size_t n = 0;

	if (is_space(line[0]))
		return report_fault(why, "a header goes on in the next line");
	if (has_control(line, len))
		return report_fault(why, "a header has a control character in it");
	if (!colon)
		return report_fault(why, "a header has no colon");
	while (line + n < colon && is_token_char(line[n]))
		n++;
	if (n == 0 || line + n != colon)
		return report_fault(
			why, "a header has no name, or a blank or another character in it");
	value = colon + 1;
	while (value < line + len && is_space(*value))
		value++;
	len -= (size_t)(value - line);
	while (len > 0 && is_space(value[len - 1]))
		len--;
	*ret = (struct framing_field){line, value, n, len};
	return FRAMING_HEADER;
}

static enum framing_line read_header_line(struct framing *f, const char *line, size_t len,
	struct framing_field *ret, char why[FRAMING_WHY])
{
	enum framing_line is = split_header(line, len, ret, why);

	if (is == FRAMING_HEADER && framing_is_named(ret, "content-length"))
		is = read_content_length(f, ret->value, ret->value_len, why);
	else if (is == FRAMING_HEADER && framing_is_named(ret, "transfer-encoding"))
		is = read_transfer_encoding(f, ret->value, ret->value_len, why);
	if (is == FRAMING_HEADER && f->has_length && f->chunked)
		return report_fault(why, "it has both a Content-Length and a Transfer-Encoding");
	return is;
}

enum framing_line framing_read(struct framing *f, const char *line, size_t len,
	struct framing_field *ret_field, char why[FRAMING_WHY])
{
	if (f->over)
		return FRAMING_TRAILER;
	if (len > 0 && line[len - 1] == '\n')
		len--;
	if (len > 0 && line[len - 1] == '\r')
		len--;
	if (len == 0) {
		f->open = false;
		f->over = f->status >= 200;
		return FRAMING_END;
	}
	if (f->open)
		return read_header_line(f, line, len, ret_field, why);
	if (!begins_status(line, len))
		return report_fault(why, "it does not begin with a status line");
	return read_status_line(f, line, len, why);
}

bool framing_has_end(const struct framing *f)
{
	return f->version >= 20 || f->has_length || f->chunked;
}

bool framing_is_doubtful(const struct framing *f)
{
	return (f->status == 204 || f->status == 304) && (f->has_length || f->chunked);
}

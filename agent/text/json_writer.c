/*
 * JSON, member by member. Surprising: whether a comma is due is read off the last byte. A value
 * never ends with one of the bytes behind which another may begin, because strings end with a
 * quote.
 */
#include "text/json_writer.h"

#include <inttypes.h>
#include <string.h>

#include "text/json_text.h"

static int append_comma(struct buffer *b)
{
	if (b->len == 0 || strchr("{[:\n", b->data[b->len - 1]))
		return b->error;
	return buffer_append(b, ",", 1);
}

int json_writer_key(struct buffer *b, const char *name, size_t len)
{
	append_comma(b);
	json_text_append(b, name, len);
	return buffer_append(b, ":", 1);
}

int json_writer_member(struct buffer *b, const char *name)
{
	return name ? json_writer_key(b, name, strlen(name)) : append_comma(b);
}

/* Appends a value that needs no escapes. */
static int append_value(struct buffer *b, const char *name, const char *value)
{
	json_writer_member(b, name);
	return buffer_append_string(b, value);
}

int json_writer_begin_object(struct buffer *b, const char *name)
{
	return append_value(b, name, "{");
}

int json_writer_end_object(struct buffer *b)
{
	return buffer_append(b, "}", 1);
}

int json_writer_begin_array(struct buffer *b, const char *name)
{
	return append_value(b, name, "[");
}

int json_writer_end_array(struct buffer *b)
{
	return buffer_append(b, "]", 1);
}

int json_writer_bytes(struct buffer *b, const char *name, const char *s, size_t len)
{
	json_writer_member(b, name);
	return json_text_append(b, s, len);
}

int json_writer_text(struct buffer *b, const char *name, const char *s)
{
	return s ? json_writer_bytes(b, name, s, strlen(s)) : json_writer_null(b, name);
}

int json_writer_number(struct buffer *b, const char *name, unsigned long long n)
{
	json_writer_member(b, name);
	return buffer_printf(b, "%llu", n);
}

int json_writer_integer(struct buffer *b, const char *name, long long n)
{
	json_writer_member(b, name);
	return buffer_printf(b, "%lld", n);
}

int json_writer_digits(struct buffer *b, const char *name, uint64_t n)
{
	json_writer_member(b, name);
	return buffer_printf(b, "\"%" PRIu64 "\"", n);
}

int json_writer_boolean(struct buffer *b, const char *name, bool value)
{
	return append_value(b, name, value ? "true" : "false");
}

int json_writer_null(struct buffer *b, const char *name)
{
	return append_value(b, name, "null");
}

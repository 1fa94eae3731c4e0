/*
 * JSON through jansson. Surprising: a small scan of the text goes before it, because jansson tells
 * no place in its tree: depth and number of values are refused there with line and column, before a
 * byte is allocated for them.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "document.h"
#include "jsontext.h"

static int refuse(struct document_error *err, unsigned line, unsigned column, const char *message)
{
	err->line = line;
	err->column = column;
	snprintf(err->message, sizeof(err->message), "%s", message);
	return -EINVAL;
}

/* Finds what goes over the limits; all else is jansson's to refuse. Columns count bytes. */
static int scan(const char *data, size_t len, size_t max_values, struct document_error *err)
{
	unsigned line = 1, column = 1, depth = 0;
	size_t values = 1;
	bool string = false;

	for (size_t i = 0; i < len; i++, column++) {
		char c = data[i];

		if (c == '\n') {
			line++;
			column = 0;
		} else if (string && c == '\\') {
			i++;
			column++;
		} else if (c == '"') {
			string = !string;
		} else if (!string && (c == '[' || c == '{')) {
			values++; /* its first member: one too many for an empty one */
			if (++depth > DOCUMENT_MAX_DEPTH)
				return refuse(err, line, column, "nested deeper than 64 levels");
		} else if (!string && (c == ']' || c == '}')) {
			depth -= depth > 0;
		} else if (!string && c == ',') {
			values++;
		}
		if (values > max_values)
			return refuse(err, line, column,
				"far more than 100000 values: split the document");
	}
	return 0;
}

/* The shortest text that reads back as the same double, with something that tells it from an
 * integer. */
static void double_text(double number, char text[40])
{
	for (int precision = 15; precision <= 17; precision++) {
		snprintf(text, 32, "%.*g", precision, number);
		if (strtod(text, NULL) == number)
			break;
	}
	if (!strpbrk(text, ".eEn")) /* "n": inf, nan */
		memcpy(text + strlen(text), ".0", 3);
}

static int convert(struct document *d, struct node *parent, const char *key, json_t *value,
	struct document_error *err);

static int convert_members(
	struct document *d, struct node *n, json_t *value, struct document_error *err)
{
	const char *key;
	json_t *member;
	size_t i;
	int r;

	if (json_is_object(value)) {
		json_object_foreach(value, key, member)
		{
			r = convert(d, n, key, member, err);
			if (r)
				return r;
		}
	} else {
		json_array_foreach(value, i, member)
		{
			r = convert(d, n, NULL, member, err);
			if (r)
				return r;
		}
	}
	return 0;
}

static int convert(struct document *d, struct node *parent, const char *key, json_t *value,
	struct document_error *err)
{
	static const enum node_type types[] = {
		[JSON_OBJECT] = NODE_MAP,
		[JSON_ARRAY] = NODE_LIST,
		[JSON_STRING] = NODE_STRING,
		[JSON_INTEGER] = NODE_INT,
		[JSON_REAL] = NODE_DOUBLE,
		[JSON_TRUE] = NODE_BOOL,
		[JSON_FALSE] = NODE_BOOL,
		[JSON_NULL] = NODE_NULL,
	};
	char number[40] = "";
	const char *text = number;
	struct node *n;
	size_t len;

	if (json_is_string(value))
		text = json_string_value(value);
	else if (json_is_integer(value))
		snprintf(
			number, sizeof(number), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else if (json_is_real(value))
		double_text(json_real_value(value), number);
	else
		text = json_is_true(value)    ? "true"
		       : json_is_false(value) ? "false"
		       : json_is_null(value)  ? "null"
					      : NULL;
	len = !text ? 0 : json_is_string(value) ? json_string_length(value) : strlen(text);
	n = document_add(
		d, parent, types[json_typeof(value)], key, key ? strlen(key) : 0, text, len, err);
	if (!n)
		return err->message[0] ? -EINVAL : -ENOMEM;
	if (n->type == NODE_INT)
		n->integer = json_integer_value(value);
	if (n->type == NODE_DOUBLE)
		n->number = json_real_value(value);
	if (n->type == NODE_BOOL)
		n->boolean = json_is_true(value);
	return convert_members(d, n, value, err);
}

static int parse_error(const json_error_t *e, struct document_error *err)
{
	const char *message = e->text;

	switch (json_error_code(e)) {
	case json_error_out_of_memory:
		return -ENOMEM;
	case json_error_numeric_overflow:
		message = "a number outside 64 bits: quote it to make it a string";
		break;
	case json_error_null_character:
	case json_error_null_byte_in_key:
		message = "a NUL character: no text can hold it";
		break;
	case json_error_invalid_utf8:
		message = "the text must be UTF-8";
		break;
	case json_error_end_of_input_expected:
		message = "something stands after the end of the document";
		break;
	default:
		break;
	}
	return refuse(err, e->line > 0 ? (unsigned)e->line : 1,
		e->column > 0 ? (unsigned)e->column : 1, message);
}

static bool is_blank(const char *data, size_t len)
{
	while (len > 0 && strchr(" \t\r\n", data[len - 1]) && data[len - 1])
		len--;
	return len == 0;
}

int json_parse(const char *data, size_t len, unsigned flags, struct document *d,
	struct document_error *err)
{
	size_t max_values = flags & DOCUMENT_OURS ? SIZE_MAX : 2 * (size_t)DOCUMENT_MAX_NODES;
	json_error_t e;
	json_t *root;
	int r;

	if (is_blank(data, len))
		return refuse(err, 1, 1, "the document is empty");
	r = scan(data, len, max_values, err);
	if (r)
		return r;
	/* duplicates are refused always: jansson would lose one of them */
	root = json_loadb(data, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &e);
	if (!root)
		return parse_error(&e, err);
	r = convert(d, NULL, NULL, root, err);
	json_decref(root);
	return r;
}

/* ---- writing ---- */

static int write_node(const struct node *n, unsigned depth, struct buffer *out)
{
	bool map = n->type == NODE_MAP;
	char text[40];

	switch (n->type) {
	case NODE_NULL:
		return buffer_append_string(out, "null");
	case NODE_BOOL:
		return buffer_append_string(out, n->boolean ? "true" : "false");
	case NODE_INT:
		return buffer_printf(out, "%" PRId64, n->integer);
	case NODE_DOUBLE:
		if (!isfinite(n->number))
			return -EINVAL;
		double_text(n->number, text);
		return buffer_append_string(out, text);
	case NODE_STRING:
		return jsontext_append(out, n->text, n->text_len);
	case NODE_LIST:
	case NODE_MAP:
		break;
	}
	buffer_append_string(out, map ? "{" : "[");
	for (const struct node *c = n->first; c; c = c->next) {
		buffer_printf(out, "\n%*s", (int)(2 * (depth + 1)), "");
		if (map) {
			jsontext_append(out, c->key, c->key_len);
			buffer_append_string(out, ": ");
		}
		if (write_node(c, depth + 1, out) == -EINVAL)
			return -EINVAL;
		if (c->next)
			buffer_append_string(out, ",");
	}
	if (n->first)
		buffer_printf(out, "\n%*s", (int)(2 * depth), "");
	return buffer_append_string(out, map ? "}" : "]");
}

int json_write(const struct node *root, struct buffer *out)
{
	int r = write_node(root, 0, out);

	return r ? r : buffer_append_string(out, "\n");
}

/*
 * JSON through jansson. Surprising: jansson keeps neither a number's text nor the place of
 * anything, so the text is walked twice more: before, to reject too much depth and too many values
 * before a byte is allocated for them, and beside its tree, token by token, when it is known to be
 * valid.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "document/document.h"
#include "text/json_text.h"

#define JSON_CHUNK ((size_t)16 * 1024)
#define NO_NUL "a NUL character: no text can hold it"

static size_t find_character(const char *data, size_t len, size_t i, char c)
{
	const char *found = i < len ? memchr(data + i, c, len - i) : NULL;

	return found ? (size_t)(found - data) : len;
}

/* The quote that ends the string whose text begins at i; len when none does: the first one behind
 * an even number of backslashes. */
static size_t string_end(const char *data, size_t len, size_t i)
{
	size_t quote = find_character(data, len, i, '"'), begin = i;

	while (quote < len) {
		size_t backslashes = 0;

		while (quote - backslashes > begin && data[quote - 1 - backslashes] == '\\')
			backslashes++;
		if (backslashes % 2 == 0)
			break;
		begin = quote + 1;
		quote = find_character(data, len, begin, '"');
	}
	return quote;
}

/* Checks the limits; jansson checks all else. */
static int check_json_limits(
	const char *data, size_t len, size_t max_values, struct document_error *err)
{
	size_t values = 1, i = 0;
	unsigned depth = 0;

	for (; i < len && depth <= DOCUMENT_MAX_DEPTH && values <= max_values; i++) {
		char c = data[i];

		if (c == '"') {
			i = string_end(data, len, i + 1);
		} else if (c == '[' || c == '{') {
			values++; /* its first member: one too many for an empty one */
			depth++;
		} else if (c == ']' || c == '}') {
			depth -= depth > 0;
		} else if (c == ',') {
			values++;
		}
	}
	if (depth <= DOCUMENT_MAX_DEPTH && values <= max_values)
		return 0;
	document_place(data, len, i - 1, err);
	snprintf(err->message, sizeof(err->message), "%s",
		depth > DOCUMENT_MAX_DEPTH ? "nested deeper than 64 levels" : DOCUMENT_MANY_VALUES);
	return -EBADMSG; /* YAML that only looks like JSON may be better */
}

/* ---- places ---- */

struct cursor {
	const char *at, *end;
	unsigned line, column;
};

/* Goes to the next token, over blanks and a ',' or ':'. */
static void next_token(struct cursor *c)
{
	for (;; c->at++) {
		switch (*c->at) {
		case '\r':
			if (c->at[1] == '\n') {
				c->column++;
				break;
			} /* fall through */
		case '\n':
			c->line++;
			c->column = 1;
			break;
		case ' ':
		case '\t':
		case ',':
		case ':':
			c->column++;
			break;
		default:
			return;
		}
	}
}

static void skip_bytes(struct cursor *c, size_t len)
{
	c->at += len;
	c->column += (unsigned)len;
}

/* value: what it says. Where it is written like that, its end is known. */
static void skip_string(struct cursor *c, const char *value, size_t value_len)
{
	size_t left = (size_t)(c->end - c->at), len = value_len + 2;

	assert(*c->at == '"');
	if (len > left || c->at[len - 1] != '"' || memcmp(c->at + 1, value, value_len) != 0)
		len = string_end(c->at, left, 1) + 1;
	c->column += (unsigned)document_characters(c->at, len);
	c->at += len;
}

static bool is_of_number(char c)
{
	return (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '+' || c == 'e' || c == 'E';
}

static size_t number_len(const struct cursor *c)
{
	size_t len = 0;

	while (c->at + len < c->end && is_of_number(c->at[len]))
		len++;
	return len;
}

/* ---- values ---- */

struct reader {
	struct document *document;
	struct document_error *error;
	struct cursor cursor;
};

static int reject_json_at(
	struct document_error *err, unsigned line, unsigned column, const char *message)
{
	err->line = line;
	err->column = column;
	snprintf(err->message, sizeof(err->message), "%s", message);
	return -EINVAL;
}

static int convert_value(struct reader *r, struct node *parent, const char *key, size_t key_len,
	json_t *value, struct node **ret_node);

/* The cursor is at the bracket that opens; goes behind the one that closes. */
static int convert_members(struct reader *r, struct node *n, json_t *value)
{
	const char *key;
	struct node *child;
	json_t *member;
	size_t i;
	int error = 0;

	skip_bytes(&r->cursor, 1);
	json_object_foreach(value, key, member)
	{
		size_t key_len = strlen(key);
		struct cursor at;

		next_token(&r->cursor);
		at = r->cursor;
		skip_string(&r->cursor, key, key_len);
		error = convert_value(r, n, key, key_len, member, &child);
		if (error)
			return error;
		child->key_line = at.line;
		child->key_column = at.column;
	}
	json_array_foreach(value, i, member)
	{
		error = convert_value(r, n, NULL, 0, member, &child);
		if (error)
			return error;
	}
	next_token(&r->cursor);
	skip_bytes(&r->cursor, 1);
	return 0;
}

/* The text of a scalar, and the cursor behind it. A number's is as it was written. */
static const char *scalar_text(struct cursor *c, json_t *value, size_t *ret_len)
{
	const char *text = c->at;

	if (json_is_string(value)) {
		*ret_len = json_string_length(value);
		skip_string(c, json_string_value(value), *ret_len);
		return json_string_value(value);
	}
	*ret_len = json_is_false(value) ? strlen("false") : strlen("true"); /* or null */
	if (json_is_number(value))
		*ret_len = number_len(c);
	skip_bytes(c, *ret_len);
	return text;
}

static const char *check_scalar(struct node *n, json_t *value)
{
	switch (n->type) {
	case NODE_BOOL:
		n->boolean = json_is_true(value);
		return NULL;
	case NODE_INT:
	case NODE_DOUBLE:
		return node_set_number(n, n->text, 10);
	case NODE_STRING:
		return memchr(n->text, '\0', n->text_len) ? NO_NUL : NULL;
	case NODE_NULL:
	case NODE_LIST:
	case NODE_MAP:
		break;
	}
	return NULL;
}

static enum node_type type_of_number(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] == '.' || text[i] == 'e' || text[i] == 'E')
			return NODE_DOUBLE;
	return NODE_INT;
}

static enum node_type type_of(json_t *value, const char *text, size_t len)
{
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		return NODE_MAP;
	case JSON_ARRAY:
		return NODE_LIST;
	case JSON_STRING:
		return NODE_STRING;
	case JSON_INTEGER:
	case JSON_REAL:
		return type_of_number(text, len);
	case JSON_TRUE:
	case JSON_FALSE:
		return NODE_BOOL;
	case JSON_NULL:
		break;
	}
	return NODE_NULL;
}

static int convert_value(struct reader *r, struct node *parent, const char *key, size_t key_len,
	json_t *value, struct node **ret_node)
{
	bool has_text = !json_is_object(value) && !json_is_array(value);
	const char *text = NULL, *message;
	struct cursor at;
	struct node *n;
	size_t len = 0;

	next_token(&r->cursor);
	at = r->cursor;
	if (has_text)
		text = scalar_text(&r->cursor, value, &len);
	n = document_add(
		r->document, parent, type_of(value, text, len), key, key_len, text, len, r->error);
	r->error->line = at.line;
	r->error->column = at.column;
	if (!n)
		return r->error->message[0] ? -EINVAL : -ENOMEM;
	n->line = at.line;
	n->column = at.column;
	*ret_node = n;
	if (!has_text)
		return convert_members(r, n, value);
	message = check_scalar(n, value);
	return message ? reject_json_at(r->error, at.line, at.column, message) : 0;
}

/* ---- errors ---- */

/* Where the string or number begins that ends before `end`. */
static size_t token_begin(const char *data, size_t end)
{
	size_t i = end;

	if (data[end - 1] != '"') {
		while (i > 0 && is_of_number(data[i - 1]))
			i--;
		return i;
	}
	for (i--; i-- > 0;) {
		size_t backslashes = 0;

		if (data[i] != '"')
			continue;
		while (backslashes < i && data[i - 1 - backslashes] == '\\')
			backslashes++;
		if (backslashes % 2 == 0)
			return i;
		i -= backslashes; /* counted */
	}
	return 0;
}

/* Reports a number that jansson found too large as YAML's reader does. 0: it is none, but ends like
 * one. */
static int report_large_number(const char *token, size_t len, struct document_error *err)
{
	struct node n = {.type = type_of_number(token, len)};
	char *text = strndup(token, len);
	const char *message = text ? node_set_number(&n, text, 10) : NULL;
	int r = text ? 0 : -ENOMEM;

	free(text);
	return message ? reject_json_at(err, err->line, err->column, message) : r;
}

static char last_before(const char *data, size_t at)
{
	while (at > 0 && strchr(" \t\r\n", data[at - 1]))
		at--;
	return at > 0 ? data[at - 1] : '\0';
}

/* What was probably meant, where jansson gave up with these words at this character; "" = no idea.
 */
static const char *guess_json(const char *data, size_t at, const char *words)
{
	static const struct {
		const char *words, *found; /* "" = any; any of these characters */
		const char *guess;
	} slips[] = {
		{"", "'", ": texts and keys are in double quotes in JSON"},
		{"", "/#", ": JSON has no comments"},
		{"invalid token near 'True'", "e", ": write true"},
		{"invalid token near 'False'", "e", ": write false"},
		{"invalid token near 'None'", "e", ": write null"},
		{"invalid token near '.'", ".", ": a number needs a digit before the point"},
		{"':' expected", "", ": a key is followed by a colon"},
		{"string or '}' expected", ",", ": one comma too many"},
		{"string or '}' expected", "", ": keys are in double quotes in JSON"},
		{"'}' expected", "", ": is the comma missing before it?"},
		{"']' expected", "", ": is the comma missing before it?"},
		{"control character", "", ": in a text write \\n, \\t or \\u and four digits"},
		{"invalid escape", "", ": write a backslash as \\\\"},
		{"premature end of input", "", ": is the quote missing at its end?"},
	};

	if (strstr(words, "expected near end of file"))
		return ": it ends too early";
	if (strchr("}]", data[at]) && last_before(data, at) == ',')
		return ": remove the comma before it";
	for (size_t i = 0; i < sizeof(slips) / sizeof(slips[0]); i++)
		if (strncmp(words, slips[i].words, strlen(slips[i].words)) == 0 &&
			(!slips[i].found[0] || strchr(slips[i].found, data[at])))
			return slips[i].guess;
	return "";
}

static int parse_error(
	const char *data, size_t len, const json_error_t *e, struct document_error *err)
{
	enum json_error_code code = json_error_code(e);
	const char *words;
	size_t end = e->position > 0 && (size_t)e->position <= len ? (size_t)e->position : 1;
	size_t begin = end - 1;

	if (code == json_error_out_of_memory)
		return -ENOMEM;
	while (begin > 0 && ((unsigned char)data[begin] & 0xc0) == 0x80)
		begin--;
	if (code == json_error_numeric_overflow || code == json_error_duplicate_key ||
		code == json_error_null_byte_in_key)
		begin = token_begin(data, end);
	document_place(data, len, begin, err);
	if (code == json_error_numeric_overflow) {
		int r = report_large_number(data + begin, end - begin, err);

		if (r)
			return r;
	}
	if (code == json_error_null_byte_in_key)
		return reject_json_at(err, err->line, err->column, NO_NUL);
	if (code == json_error_duplicate_key) {
		snprintf(err->message, sizeof(err->message), "duplicate key %.*s: remove one",
			end - begin < 80 ? (int)(end - begin) : 80, data + begin);
		return -EEXIST;
	}
	words = code == json_error_end_of_input_expected
			? "unexpected text after the end of the document"
			: e->text;
	snprintf(err->message, sizeof(err->message), "%s%s", words, guess_json(data, begin, words));
	return -EBADMSG;
}

/* ---- memory ---- */

/* jansson goes on without what it could not allocate: it drops characters, calls that an error of
 * syntax, or aborts. So an allocation that fails ends the call. What it frees stays until all of it
 * is freed at once: that is at most as much again as it holds. */
struct json_chunk {
	struct json_chunk *next;
	size_t left;
	char *at;
	max_align_t data[];
};

static _Thread_local struct {
	jmp_buf failed;
	struct json_chunk *chunks;
} json_memory;

static void *allocate_json(size_t size)
{
	size_t aligned = (size + sizeof(max_align_t) - 1) & ~(sizeof(max_align_t) - 1), room;
	struct json_chunk *c = json_memory.chunks;
	void *p;

	if (!c || c->left < aligned) {
		room = aligned > JSON_CHUNK ? aligned : JSON_CHUNK;
		c = aligned < size ? NULL : malloc(sizeof(*c) + room);
		if (!c)
			longjmp(json_memory.failed, 1);
		*c = (struct json_chunk){json_memory.chunks, room, (char *)c->data};
		json_memory.chunks = c;
	}
	p = c->at;
	c->at += aligned;
	c->left -= aligned;
	return p;
}

static void keep_json(void *data)
{
	(void)data;
}

static void free_json_memory(void)
{
	struct json_chunk *next;

	for (struct json_chunk *c = json_memory.chunks; c; c = next) {
		next = c->next;
		free(c);
	}
	json_memory.chunks = NULL;
}

static void set_allocation(void)
{
	json_set_alloc_funcs(allocate_json, keep_json);
}

/* As json_loadb(). -ENOMEM, or 0 and what it returns, for free_json_memory(): NULL where the text
 * is invalid. */
static int load_json(const char *data, size_t len, json_error_t *ret_error, json_t **ret_root)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, set_allocation);
	if (setjmp(json_memory.failed)) {
		free_json_memory();
		return -ENOMEM;
	}
	/* duplicates are always rejected: jansson would lose one of them */
	*ret_root = json_loadb(data, len,
		JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL,
		ret_error);
	if (!*ret_root)
		free_json_memory();
	return 0;
}

/* ---- reading ---- */

static bool is_all_blank(const char *data, size_t len)
{
	while (len > 0 && strchr(" \t\r\n", data[len - 1]) && data[len - 1])
		len--;
	return len == 0;
}

int json_parse(const char *data, size_t len, unsigned flags, struct document *d,
	struct document_error *err)
{
	size_t ours = 64 + len / 8,
	       max_values = !(flags & DOCUMENT_OURS)      ? 2 * (size_t)DOCUMENT_MAX_NODES
			    : ours < DOCUMENT_OURS_VALUES ? ours
							  : DOCUMENT_OURS_VALUES;
	struct reader reader = {d, err, {data, data + len, 1, 1}};
	struct node *n;
	json_error_t e;
	json_t *root;
	int r;

	if (is_all_blank(data, len))
		return reject_json_at(err, 1, 1, "the document is empty");
	r = check_json_limits(data, len, max_values, err);
	if (r)
		return r;
	r = load_json(data, len, &e, &root);
	if (r)
		return r;
	if (!root)
		return parse_error(data, len, &e, err);
	r = convert_value(&reader, NULL, NULL, 0, root, &n);
	free_json_memory();
	return r;
}

/* ---- writing ---- */

/* The shortest text that reads back as the same double, and is no integer. */
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

static size_t digits_len(const char *s)
{
	return strspn(s, "0123456789");
}

/* True when a number's text is one in JSON as well, and of the same type. */
static bool is_json_number(const char *s, enum node_type type)
{
	enum node_type is = NODE_INT;

	s += *s == '-';
	if (digits_len(s) == 0 || (*s == '0' && digits_len(s) > 1))
		return false;
	s += digits_len(s);
	if (*s == '.') {
		is = NODE_DOUBLE;
		if (digits_len(++s) == 0)
			return false;
		s += digits_len(s);
	}
	if (*s == 'e' || *s == 'E') {
		is = NODE_DOUBLE;
		s++;
		s += *s == '-' || *s == '+';
		if (digits_len(s) == 0)
			return false;
		s += digits_len(s);
	}
	return *s == '\0' && is == type;
}

/* As it was written, where JSON writes numbers like that. */
static int write_number(const struct node *n, struct buffer *out)
{
	char text[40];

	if (n->type == NODE_DOUBLE && !isfinite(n->number))
		return -EINVAL;
	if (n->text && is_json_number(n->text, n->type))
		return buffer_append(out, n->text, n->text_len);
	if (n->type == NODE_INT)
		return buffer_printf(out, "%" PRId64, n->integer);
	double_text(n->number, text);
	return buffer_append_string(out, text);
}

static int write_json_node(const struct node *n, unsigned depth, struct buffer *out)
{
	bool map = n->type == NODE_MAP;

	switch (n->type) {
	case NODE_NULL:
		return buffer_append_string(out, "null");
	case NODE_BOOL:
		return buffer_append_string(out, n->boolean ? "true" : "false");
	case NODE_INT:
	case NODE_DOUBLE:
		return write_number(n, out);
	case NODE_STRING:
		return json_text_append(out, n->text, n->text_len);
	case NODE_LIST:
	case NODE_MAP:
		break;
	}
	buffer_append_string(out, map ? "{" : "[");
	for (const struct node *c = n->first; c; c = c->next) {
		buffer_printf(out, "\n%*s", (int)(2 * (depth + 1)), "");
		if (map) {
			json_text_append(out, c->key, c->key_len);
			buffer_append_string(out, ": ");
		}
		if (write_json_node(c, depth + 1, out) == -EINVAL)
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
	int r = write_json_node(root, 0, out);

	return r ? r : buffer_append_string(out, "\n");
}

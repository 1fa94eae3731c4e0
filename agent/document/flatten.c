/*
 * Keys and values to lines. Surprising: equal names are searched for in the written lines, once
 * nothing moves any more, so that names are kept only once.
 */
#include "document/flatten.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "document/extent.h"
#include "document/key_path.h"
#include "document/variables.h"
#include "text/escape.h"

#define SHOWN 100 /* bytes of a key in a sentence */

struct line {
	const struct flatten_value *value;
	size_t at, len; /* of its name in the output */
	const char *name;
};

static bool is_ascii_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_ascii_digit(char c)
{
	return c >= '0' && c <= '9';
}

bool flatten_is_prefix(const char *s)
{
	if (is_ascii_digit(s[0]))
		return false;
	for (; *s; s++)
		if (!is_ascii_letter(*s) && !is_ascii_digit(*s) && *s != '_')
			return false;
	return true;
}

static int shown_len(const struct flatten_value *v)
{
	return v->key_len < SHOWN ? (int)v->key_len : SHOWN;
}

/* ---- names ---- */

/* db.host to DB_HOST. Characters are counted, not bytes. */
static void variable_name(struct buffer *out, const char *prefix, const struct flatten_value *v)
{
	size_t start = out->len;

	buffer_append_string(out, prefix);
	for (size_t i = 0; i < v->key_len; i++) {
		char c = v->key[i];

		if (c == '\\' && i + 1 < v->key_len)
			c = v->key[++i];
		if (((unsigned char)c & 0xc0) == 0x80)
			continue;
		if (is_ascii_digit(c) && out->len == start)
			buffer_append(out, "_", 1);
		if (is_ascii_letter(c))
			c = (char)(c & ~0x20);
		else if (!is_ascii_digit(c))
			c = '_';
		buffer_append(out, &c, 1);
	}
	if (out->len == start)
		buffer_append(out, "_", 1);
}

/* As java.util.Properties.store() does. */
static void property_text(struct buffer *out, const char *s, size_t len, bool key)
{
	static const char from[] = "\t\n\r\f\\=:#!", to[] = "tnrf\\=:#!";

	for (size_t i = 0, n; i < len; i += n) {
		size_t valid = escape_sequence(s + i, len - i);
		uint32_t c = valid ? escape_code_point(s + i, valid) : 0xfffd;
		const char *special = c && c < 0x80 ? strchr(from, (int)c) : NULL;

		n = valid ? valid : 1;
		if (special)
			buffer_printf(out, "\\%c", to[special - from]);
		else if (c == ' ')
			buffer_append_string(out, key || i == 0 ? "\\ " : " ");
		else if (c > ' ' && c < 0x7f)
			buffer_append(out, s + i, 1);
		else if (c < 0x10000)
			buffer_printf(out, "\\u%04X", c);
		else
			buffer_printf(
				out, "\\u%04X\\u%04X", 0xd7c0 + (c >> 10), 0xdc00 + (c & 0x3ff));
	}
}

static void property_name(struct buffer *out, const char *prefix, const struct flatten_value *v)
{
	property_text(out, prefix, strlen(prefix), true);
	property_text(out, v->key, v->key_len, true);
}

/* ---- values ---- */

static void shell_value(struct buffer *out, const struct flatten_value *v)
{
	for (size_t i = 0; i < v->text_len; i++)
		if (v->text[i] == '\'')
			buffer_append_string(out, "'\\''");
		else
			buffer_append(out, v->text + i, 1);
}

static void plain_value(struct buffer *out, const struct flatten_value *v)
{
	buffer_append(out, v->text, v->text_len);
}

static void property_value(struct buffer *out, const struct flatten_value *v)
{
	property_text(out, v->text, v->text_len, false);
}

static const struct form {
	const char *before, *between, *behind;
	char end;
	void (*name)(struct buffer *out, const char *prefix, const struct flatten_value *v);
	void (*value)(struct buffer *out, const struct flatten_value *v);
	bool variables, lines; /* names are variables; a value may have lines */
	bool no_null;
} forms[] = {
	[FLATTEN_SH] = {"export ", "='", "'", '\n', variable_name, shell_value, true, true, false},
	[FLATTEN_ENV] = {"", "=", "", '\n', variable_name, plain_value, true, false, false},
	[FLATTEN_PROPERTIES] = {"", "=", "", '\n', property_name, property_value, false, true,
		true},
	[FLATTEN_ENVIRON] = {"", "=", "", '\0', variable_name, plain_value, true, true, false},
};

/* ---- lines ---- */

static int check_value(const struct form *f, const struct flatten_value *v, char why[FILE_WHY])
{
	bool has_nul = f->variables && memchr(v->text, '\0', v->text_len);

	if (!has_nul && (f->lines || (!memchr(v->text, '\n', v->text_len) &&
					     !memchr(v->text, '\r', v->text_len))))
		return 0;
	snprintf(why, FILE_WHY, "'%.*s' has a %s", shown_len(v), v->key,
		has_nul ? "NUL in it: no variable can hold that; take it out"
			: "line break in it: an env file cannot hold that; take it out, or choose "
			  "another format, such as properties");
	return -EINVAL;
}

/* The author of a document must not choose what programs run. */
static int check_variable(const struct line *line, const char *name, char why[FILE_WHY])
{
	const char *danger = variables_danger(name, line->len);

	if (!danger)
		return 0;
	snprintf(why, FILE_WHY,
		"'%.*s' would be the variable %.*s, which %s: rename it, put it below another key "
		"(app.path is APP_PATH), or give all names a prefix (--prefix APP_)",
		shown_len(line->value), line->value->key,
		line->len < SHOWN ? (int)line->len : SHOWN, name, danger);
	return -EINVAL;
}

static int write_line(const struct form *f, const char *prefix, struct line *line,
	struct buffer *out, char why[FILE_WHY])
{
	int r = check_value(f, line->value, why);

	if (r)
		return r;
	buffer_append_string(out, f->before);
	line->at = out->len;
	f->name(out, prefix, line->value);
	line->len = out->len - line->at;
	if (f->variables && !out->error) {
		r = check_variable(line, out->data + line->at, why);
		if (r)
			return r;
	}
	buffer_append_string(out, f->between);
	f->value(out, line->value);
	buffer_append_string(out, f->behind);
	return buffer_append(out, &f->end, 1);
}

static int by_line_name(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	return document_compare_text(x->name, x->len, y->name, y->len);
}

static int check_line_names(
	struct line *lines, size_t count, const struct buffer *out, char why[FILE_WHY])
{
	for (size_t i = 0; i < count; i++)
		lines[i].name = out->data + lines[i].at;
	qsort(lines, count, sizeof(*lines), by_line_name);
	for (size_t i = 1; i < count; i++) {
		const struct line *a = &lines[i - 1], *b = &lines[i];

		if (by_line_name(a, b) != 0)
			continue;
		snprintf(why, FILE_WHY,
			"the keys '%.*s' and '%.*s' give the same name %.*s: rename one of them or "
			"leave it out",
			shown_len(a->value), a->value->key, shown_len(b->value), b->value->key,
			a->len < SHOWN ? (int)a->len : SHOWN, a->name);
		return -EINVAL;
	}
	return 0;
}

static int explain_write_error(int r, char why[FILE_WHY])
{
	if (r == -ENOMEM || r == -EMSGSIZE)
		snprintf(why, FILE_WHY, "cannot write the values: %s",
			r == -ENOMEM
				? "out of memory"
				: "they would take more bytes than are allowed (4 times max_size "
				  "of "
				  "the server): shorten the keys above many values, or split the "
				  "config");
	return r;
}

int flatten_values(const struct flatten_value *values, size_t count, enum flatten_kind kind,
	const char *prefix, struct buffer *out, char why[FILE_WHY])
{
	struct line *lines = calloc(count + 1, sizeof(*lines));
	size_t start = out->len, n = 0;
	int r = lines ? 0 : -ENOMEM;

	for (size_t i = 0; i < count && r == 0; i++) {
		if (forms[kind].no_null && values[i].type == NODE_NULL)
			continue;
		lines[n].value = &values[i];
		r = write_line(&forms[kind], prefix, &lines[n++], out, why);
	}
	if (r == 0)
		r = check_line_names(lines, n, out, why);
	if (r && out->data) {
		out->len = start;
		out->data[start] = '\0';
	}
	free(lines);
	return explain_write_error(r, why);
}

/* ---- a document ---- */

struct flat {
	const struct node *root;
	struct buffer path, paths; /* paths: one behind the other, each with its NUL */
	struct flatten_value *values;
	size_t count;
};

/* Adds the scalar under the present path. The key is an offset until all are there: it may move. */
static int add_scalar(struct flat *f, const struct node *n)
{
	bool has_text = n->type != NODE_NULL;
	struct flatten_value *v = array_room(f->values, f->count, sizeof(*v));

	if (!v)
		return -ENOMEM;
	f->values = v;
	f->values[f->count++] = (struct flatten_value){
		.key = (const char *)(uintptr_t)f->paths.len,
		.key_len = f->path.len,
		.type = n->type,
		.text = has_text ? n->text : "",
		.text_len = has_text ? n->text_len : 0,
	};
	return buffer_append(&f->paths, f->path.data, f->path.len + 1);
}

/* As deep as a document may be. */
static int collect_scalars(struct flat *f, const struct node *parent)
{
	size_t number = 0, len = f->path.len;
	int r = 0;

	if (parent->type != NODE_LIST && parent->type != NODE_MAP)
		return add_scalar(f, parent);
	for (const struct node *n = parent->first; n && r == 0; n = n->next, number++) {
		r = key_path_append(&f->path, parent == f->root, n, number);
		if (r == 0)
			r = collect_scalars(f, n);
		f->path.len = len;
	}
	return r;
}

static int by_scalar_key(const void *a, const void *b)
{
	const struct flatten_value *x = a, *y = b;

	return document_compare_text(x->key, x->key_len, y->key, y->key_len);
}

int flatten_write(
	const struct node *root, enum flatten_kind kind, struct buffer *out, char why[FILE_WHY])
{
	struct flat f = {.root = root};
	struct extent extent;
	int r;

	extent_measure(root, &extent);
	r = extent_check("its keys, each with its whole path,", extent.leaf_paths, out->max, why);
	if (r)
		return r;
	buffer_init(&f.path, extent.leaf_paths + extent.image_bytes);
	buffer_init(&f.paths, extent.leaf_paths);
	r = collect_scalars(&f, root);
	for (size_t i = 0; r == 0 && i < f.count; i++)
		f.values[i].key = f.paths.data + (uintptr_t)f.values[i].key;
	if (r == 0 && f.count)
		qsort(f.values, f.count, sizeof(*f.values), by_scalar_key);
	r = r ? explain_write_error(r, why) : flatten_values(f.values, f.count, kind, "", out, why);
	buffer_fini(&f.path);
	buffer_fini(&f.paths);
	free(f.values);
	return r;
}

/*
 * The difference of two trees. Surprising: the children of two mappings are sorted and walked side
 * by side, and so are those of a list and a mapping that took its place; the latter by the same
 * order, in which the item 10 and the key "10" are one segment.
 */
#include "document/diff.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "text/json_text.h"
#include "text/json_writer.h"
#include "document/key_path.h"

struct diff {
	struct diff_change *changes;
	size_t count;
	struct buffer paths; /* one after the other, each with its NUL */
};

struct walk {
	struct diff *diff;
	struct buffer path; /* the present one */
	bool counts;        /* only: no path is put together */
};

/* ---- segments in order ---- */

struct child {
	const struct node *node;
	size_t number; /* in its list */
	bool is_number;
};

#define NUMBER_TEXT 24

static const char *segment_text(const struct child *c, char number[NUMBER_TEXT], size_t *ret_len)
{
	if (c->node->key) {
		*ret_len = c->node->key_len;
		return c->node->key;
	}
	*ret_len = (size_t)snprintf(number, NUMBER_TEXT, "%zu", c->number);
	return number;
}

static int by_segment(const void *a, const void *b)
{
	const struct child *x = a, *y = b;
	char x_number[NUMBER_TEXT], y_number[NUMBER_TEXT];
	const char *x_text, *y_text;
	size_t x_len, y_len;

	if (!x->node->key && !y->node->key)
		return (x->number > y->number) - (x->number < y->number);
	if (x->is_number != y->is_number)
		return x->is_number ? -1 : 1;
	x_text = segment_text(x, x_number, &x_len);
	y_text = segment_text(y, y_number, &y_len);
	if (x->is_number && x_len != y_len)
		return x_len > y_len ? 1 : -1;
	return document_compare_text(x_text, x_len, y_text, y_len);
}

/* As the numbers of a list's items are written: no zero in front. Of any length. */
static bool is_number(const struct node *n)
{
	return !n->key || (n->key_len > 0 && strspn(n->key, "0123456789") == n->key_len &&
				  (n->key[0] != '0' || n->key_len == 1));
}

/* The children in order, for free(); *ret_count is 0 when there are none. */
static int sort_children(const struct node *parent, struct child **ret_children, size_t *ret_count)
{
	size_t i = 0;

	*ret_children = NULL;
	*ret_count = parent ? parent->count : 0;
	if (*ret_count == 0)
		return 0;
	*ret_children = calloc(*ret_count, sizeof(**ret_children));
	if (!*ret_children)
		return -ENOMEM;
	for (const struct node *n = parent->first; n; n = n->next, i++)
		(*ret_children)[i] = (struct child){n, i, is_number(n)};
	if (parent->type == NODE_MAP)
		qsort(*ret_children, *ret_count, sizeof(**ret_children), by_segment);
	return 0;
}

/* ---- the walk ---- */

/* The path is an offset until all are there: the buffer may move. */
static int note_change(
	struct walk *w, enum diff_kind kind, const struct node *before, const struct node *after)
{
	struct diff *d = w->diff;
	struct diff_change *more;

	if (w->counts) {
		d->count++;
		return 0;
	}
	more = array_room(d->changes, d->count, sizeof(*more));
	if (!more)
		return -ENOMEM;
	d->changes = more;
	d->changes[d->count++] =
		(struct diff_change){kind, (const char *)(uintptr_t)d->paths.len, before, after};
	return buffer_append(&d->paths, w->path.data, w->path.len + 1);
}

static bool is_leaf(const struct node *n)
{
	return n && (n->type < NODE_LIST || !n->first);
}

static bool is_inner(const struct node *n)
{
	return n && !is_leaf(n);
}

static int compare_children(struct walk *w, const struct node *before, const struct node *after,
	bool first, bool apart);

/* The nodes at one path; one of them may be NULL. apart: their containers are of different kinds,
 * so equal nodes differ, too. */
static int compare_nodes(
	struct walk *w, const struct node *before, const struct node *after, bool apart)
{
	bool was = is_leaf(before), is = is_leaf(after);
	int r = 0;

	if (was && is && !apart)
		return node_equal(before, after) ? 0 : note_change(w, DIFF_CHANGED, before, after);
	if (was)
		r = note_change(w, DIFF_REMOVED, before, NULL);
	if (r == 0 && is)
		r = note_change(w, DIFF_ADDED, NULL, after);
	if (r)
		return r;
	return compare_children(
		w, is_inner(before) ? before : NULL, is_inner(after) ? after : NULL, false, apart);
}

/* Compares what is in two containers; either may be NULL. As deep as a document may be. */
static int compare_children(
	struct walk *w, const struct node *before, const struct node *after, bool first, bool apart)
{
	struct child *b = NULL, *a = NULL;
	size_t b_count = 0, a_count = 0, i = 0, k = 0, len = w->path.len;
	int r = sort_children(before, &b, &b_count);

	if (r == 0)
		r = sort_children(after, &a, &a_count);
	if (before && after && before->type != after->type)
		apart = true;
	while (r == 0 && (i < b_count || k < a_count)) {
		int order = i == b_count ? 1 : k == a_count ? -1 : by_segment(&b[i], &a[k]);
		const struct child *was = order <= 0 ? &b[i++] : NULL;
		const struct child *is = order >= 0 ? &a[k++] : NULL;
		const struct child *c = was ? was : is;

		r = w->counts ? 0 : key_path_append(&w->path, first, c->node, c->number);
		if (r == 0)
			r = compare_nodes(w, was ? was->node : NULL, is ? is->node : NULL, apart);
		w->path.len = len;
	}
	free(b);
	free(a);
	return r;
}

int diff_new(const struct node *before, const struct node *after, struct diff **ret_diff)
{
	struct walk w = {.diff = calloc(1, sizeof(*w.diff))};
	struct diff *d = w.diff;
	int r;

	if (!d)
		return -ENOMEM;
	buffer_init(&w.path, DIFF_MAX_PATHS);
	buffer_init(&d->paths, DIFF_MAX_PATHS);
	r = compare_children(&w, before, after, true, false);
	buffer_fini(&w.path);
	if (r) {
		diff_free(d);
		return r;
	}
	for (size_t i = 0; i < d->count; i++)
		d->changes[i].path = d->paths.data + (uintptr_t)d->changes[i].path;
	*ret_diff = d;
	return 0;
}

int diff_measure(const struct node *before, const struct node *after, size_t *ret_count)
{
	struct diff counted = {.count = 0};
	struct walk w = {.diff = &counted, .counts = true};
	int r = compare_children(&w, before, after, true, false);

	if (r == 0)
		*ret_count = counted.count;
	return r;
}

void diff_free(struct diff *d)
{
	if (!d)
		return;
	buffer_fini(&d->paths);
	free(d->changes);
	free(d);
}

size_t diff_count(const struct diff *d)
{
	return d->count;
}

const struct diff_change *diff_at(const struct diff *d, size_t index)
{
	return index < d->count ? &d->changes[index] : NULL;
}

/* ---- for people ---- */

/* Bytes of the control character at s, or 0; those above ASCII (U+0080 to U+009F) are two. */
static size_t control_len(const char *s, size_t left)
{
	const unsigned char *u = (const unsigned char *)s;

	if (u[0] < ' ' || u[0] == 0x7f)
		return 1;
	return left > 1 && u[0] == 0xc2 && u[1] >= 0x80 && u[1] <= 0x9f ? 2 : 0;
}

/* Appends text with control characters escaped; quotes and backslashes in a value only: in
 * a path they are as key_path.h has them. */
static int append_escaped(struct buffer *out, const char *s, size_t len, bool value)
{
	static const char from[] = "\n\r\t", to[] = "nrt";
	const char *special;

	for (size_t i = 0, n; i < len; i += n) {
		n = control_len(s + i, len - i);
		special = n == 1 ? memchr(from, s[i], sizeof(from) - 1) : NULL;
		if (special)
			buffer_printf(out, "\\%c", to[special - from]);
		else if (n)
			buffer_printf(out, "\\u%04x", (unsigned char)s[i + n - 1]);
		else if (value && (s[i] == '"' || s[i] == '\\'))
			buffer_printf(out, "\\%c", s[i]);
		else
			buffer_append(out, s + i, 1);
		n = n ? n : 1;
	}
	return out->error;
}

/* Back to where a character begins. */
static size_t character_boundary(const char *text, size_t i)
{
	while (i > 0 && ((unsigned char)text[i] & 0xc0) == 0x80)
		i--;
	return i;
}

/* Where the part that is shown begins: the first difference is in it. */
static size_t shown_from(const struct node *n, const struct node *other)
{
	size_t same = 0;

	if (n->text_len <= DIFF_MAX_SHOWN || !other || other->type != NODE_STRING)
		return 0;
	while (same < n->text_len && n->text[same] == other->text[same])
		same++;
	return same > DIFF_MAX_SHOWN / 2 ? character_boundary(n->text, same - DIFF_MAX_SHOWN / 4)
					 : 0;
}

static int append_quoted_part(struct buffer *out, const struct node *n, const struct node *other)
{
	size_t from = shown_from(n, other), to = n->text_len;

	if (to - from > DIFF_MAX_SHOWN)
		to = character_boundary(n->text, from + DIFF_MAX_SHOWN);
	buffer_append_string(out, from ? "...\"" : "\"");
	append_escaped(out, n->text + from, to - from, true);
	return buffer_append_string(out, to < n->text_len ? "\"..." : "\"");
}

/* Appends what JSON says for a leaf. */
static int append_json(struct buffer *out, const struct node *n)
{
	int r;

	if (n->type == NODE_DOUBLE && !isfinite(n->number))
		return json_text_append(out, n->text, n->text_len);
	r = document_write(n, DOCUMENT_JSON, out);
	if (r == 0)
		out->data[--out->len] = '\0'; /* its newline */
	return r;
}

static int append_shown(
	struct buffer *out, const struct node *n, const struct node *other, bool masked)
{
	if (masked)
		return buffer_append_string(out, "***");
	if (n->type == NODE_STRING)
		return append_quoted_part(out, n, other);
	if (n->type == NODE_DOUBLE && !isfinite(n->number))
		return buffer_append(out, n->text, n->text_len);
	return append_json(out, n);
}

int diff_write_value(
	const struct diff_change *change, bool after, char *const *mask, struct buffer *out)
{
	const struct node *n = after ? change->after : change->before,
			  *other = after ? change->before : change->after;

	return n ? append_shown(out, n, other, key_path_matches(mask, change->path)) : out->error;
}

int diff_write_text(const struct diff_change *change, char *const *mask, struct buffer *out)
{
	static const char signs[] = {
		[DIFF_ADDED] = '+', [DIFF_REMOVED] = '-', [DIFF_CHANGED] = '~'};
	bool masked = key_path_matches(mask, change->path);

	buffer_printf(out, "%c ", signs[change->kind]);
	append_escaped(out, change->path, strlen(change->path), false);
	buffer_append_string(out, ": ");
	if (change->before)
		append_shown(out, change->before, change->after, masked);
	if (change->before && change->after)
		buffer_append_string(out, " -> ");
	if (change->after)
		append_shown(out, change->after, change->before, masked);
	return buffer_append_string(out, "\n");
}

/* ---- for programs ---- */

static int append_member(struct buffer *out, const char *name, const struct node *n, bool masked)
{
	if (!n)
		return out->error;
	if (masked)
		return json_writer_text(out, name, "***");
	json_writer_member(out, name);
	return append_json(out, n);
}

int diff_write_members(const struct diff_change *change, char *const *mask, struct buffer *out)
{
	static const char *const kinds[] = {
		[DIFF_ADDED] = "added", [DIFF_REMOVED] = "removed", [DIFF_CHANGED] = "changed"};
	bool masked = key_path_matches(mask, change->path);

	json_writer_text(out, "change", kinds[change->kind]);
	json_writer_text(out, "path", change->path);
	append_member(out, "before", change->before, masked);
	append_member(out, "after", change->after, masked);
	if (masked)
		json_writer_boolean(out, "masked", true);
	return out->error;
}

int diff_write_json(const struct diff_change *change, char *const *mask, struct buffer *out)
{
	json_writer_begin_object(out, NULL);
	diff_write_members(change, mask, out);
	return json_writer_end_object(out);
}

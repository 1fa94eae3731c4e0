/*
 * Flat keys to a tree. Surprising: in the order of the keys' bytes a list's items and a map's
 * members do not stand together ("a", "a-b", "a.b"; "l.10" before "l.2"), so that each key looks
 * its parent up, and all are sorted by parent before they are linked.
 */
#include "cli/values/write.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct item {
	struct node node;
	const char *key; /* whole; its end is the end of the segment as well */
	size_t key_len;
	struct item *parent;
	char *clear; /* the segment without its escapes, when it had some */
	unsigned depth;
	bool selected;
};

struct tree {
	const struct export_selection *selection;
	struct item root, *items;
	size_t count, max;
	struct export_error *error;
};

static int reject_written_key(struct tree *t, const char *key, const char *sentence)
{
	snprintf(t->error->message, sizeof(t->error->message), "'%.80s' %s", key, sentence);
	return -EINVAL;
}

static bool is_list_or_map(const struct node *n)
{
	return n->type == NODE_LIST || n->type == NODE_MAP;
}

/* Bytes before the dot in front of the last segment; SIZE_MAX when there is only one segment. */
static size_t parent_len(const char *key, size_t key_len)
{
	size_t found = SIZE_MAX;

	for (size_t i = 0; i < key_len; i++)
		if (key[i] == '\\')
			i++;
		else if (key[i] == '.')
			found = i;
	return found;
}

/* Appends a segment without its escapes. */
static int unescape_segment(const char *key, size_t key_len, struct buffer *out)
{
	int r = buffer_append(out, "", 0);

	for (size_t i = 0; i < key_len && r == 0; i++) {
		if (key[i] == '\\' && i + 1 < key_len)
			i++;
		r = buffer_append(out, key + i, 1);
	}
	return r;
}

bool export_selected(const struct export_selection *s, const char *key, size_t key_len)
{
	size_t len = s->below ? strlen(s->below) : 0;

	if (s->below)
		return key_len >= len && memcmp(key, s->below, len) == 0 &&
		       (key_len == len || key[len] == '.');
	for (size_t i = 0; i < s->count; i++)
		if (key_len >= strlen(s->prefixes[i]) &&
			memcmp(key, s->prefixes[i], strlen(s->prefixes[i])) == 0)
			return true;
	return s->count == 0;
}

struct node export_node(const struct pullet_value *v)
{
	static const enum node_type types[] = {[PULLET_NULL] = NODE_NULL,
		[PULLET_BOOL] = NODE_BOOL,
		[PULLET_INT] = NODE_INT,
		[PULLET_DOUBLE] = NODE_DOUBLE,
		[PULLET_STRING] = NODE_STRING,
		[PULLET_LIST] = NODE_LIST,
		[PULLET_MAP] = NODE_MAP};
	struct node n = {.type = types[v->type], .text = v->text, .text_len = v->len};

	if (v->type == PULLET_BOOL)
		n.boolean = v->boolean;
	else if (v->type == PULLET_INT)
		n.integer = v->integer;
	else if (v->type == PULLET_DOUBLE)
		n.number = v->number;
	return n;
}

static int collect_item(const char *key, size_t key_len, const struct pullet_value *v, void *arg)
{
	struct tree *t = arg;
	bool selected = export_selected(t->selection, key, key_len);

	if (t->count == t->max)
		return -EINVAL;
	if (!selected && t->selection->below)
		return 0;
	t->items[t->count++] = (struct item){
		.node = export_node(v), .key = key, .key_len = key_len, .selected = selected};
	return 0;
}

static int compare_items(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	return document_compare_text(x->key, x->key_len, y->key, y->key_len);
}

/* Finds the parent and the segment. Parents stand before their children. */
static int find_parent(struct tree *t, struct item *item)
{
	struct item wanted = {.key = item->key, .key_len = parent_len(item->key, item->key_len)};
	size_t start = wanted.key_len == SIZE_MAX ? 0 : wanted.key_len + 1;
	const char *segment = item->key + start;
	struct buffer clear;

	if (t->selection->below && item == t->items)
		return 0;
	item->parent = &t->root;
	if (start > 0)
		item->parent = bsearch(
			&wanted, t->items, (size_t)(item - t->items), sizeof(*item), compare_items);
	if (!item->parent || !is_list_or_map(&item->parent->node))
		return reject_written_key(
			t, item->key, "is in no list or map: the snapshot is not whole");
	item->depth = item->parent->depth + 1;
	if (item->depth > DOCUMENT_MAX_DEPTH)
		return reject_written_key(t, item->key, "is too deep for a document");
	item->node.key = segment;
	item->node.key_len = item->key_len - start;
	if (!memchr(segment, '\\', item->node.key_len))
		return 0;
	buffer_init(&clear, EXPORT_MAX_BYTES);
	if (unescape_segment(segment, item->node.key_len, &clear))
		return -ENOMEM;
	item->node.key = item->clear = clear.data;
	item->node.key_len = clear.len;
	return 0;
}

/* By parent, then as the children are to stand: items by number, members by key. */
static int compare_siblings(const void *a, const void *b)
{
	const struct item *x = *(struct item *const *)a, *y = *(struct item *const *)b;

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	if (x->parent && x->parent->node.type == NODE_LIST && x->node.key_len != y->node.key_len)
		return x->node.key_len < y->node.key_len ? -1 : 1;
	return (x > y) - (x < y);
}

/* Links what is selected, and what that is in. */
static int link_items(struct tree *t)
{
	struct item **sorted = calloc(t->count + 1, sizeof(struct item *));

	if (!sorted)
		return -ENOMEM;
	for (size_t i = t->count; i-- > 0;) {
		sorted[i] = &t->items[i];
		if (sorted[i]->selected && sorted[i]->parent)
			sorted[i]->parent->selected = true;
	}
	qsort(sorted, t->count, sizeof(*sorted), compare_siblings);
	for (size_t i = 0; i < t->count; i++) {
		struct node *parent = sorted[i]->parent ? &sorted[i]->parent->node : NULL;

		if (!parent || !sorted[i]->selected)
			continue;
		if (parent->last)
			parent->last->next = &sorted[i]->node;
		else
			parent->first = &sorted[i]->node;
		parent->last = &sorted[i]->node;
		parent->count++;
	}
	free(sorted);
	return 0;
}

static int build_tree(struct tree *t, struct pullet *p)
{
	const char *below = t->selection->below;
	int r = pullet_each(p, below ? below : "", collect_item, t);

	/* the library leaves a bad record out: nothing is better than a part of it */
	if (r || (!below && t->count != pullet_count(p)))
		return reject_written_key(
			t, "this version", "cannot be read whole: the snapshot is damaged");
	for (size_t i = 0; i < t->count && r == 0; i++)
		r = find_parent(t, &t->items[i]);
	return r ? r : link_items(t);
}

static int write_selected_tree(struct tree *t, enum document_type type, struct buffer *out)
{
	const struct node *root = t->selection->below ? &t->items[0].node : &t->root.node;
	int r;

	for (size_t i = 0; i < t->count && type == DOCUMENT_JSON; i++)
		if (t->items[i].selected && t->items[i].node.type == NODE_DOUBLE &&
			!isfinite(t->items[i].node.number))
			return reject_written_key(
				t, t->items[i].key, "is no finite number: JSON has none such");
	r = document_write(root, type, out);
	if (r == -EINVAL)
		reject_written_key(
			t, "this version", "has a text that cannot be written: not UTF-8?");
	return r;
}

int export_tree(struct pullet *p, const struct export_selection *s, enum document_type type,
	struct buffer *out, struct export_error *ret_error)
{
	struct tree t = {.selection = s, .error = ret_error, .max = pullet_count(p)};
	int r;

	t.root.node.type = NODE_MAP;
	t.items = calloc(t.max + 1, sizeof(*t.items));
	if (!t.items)
		return -ENOMEM;
	r = build_tree(&t, p);
	if (r == 0)
		r = write_selected_tree(&t, type, out);
	for (size_t i = 0; i < t.count; i++)
		free(t.items[i].clear);
	free(t.items);
	return r;
}

/* ---- lines ---- */

struct flat {
	const struct export_selection *selection;
	struct flatten_value *values;
	size_t count, seen, max;
};

static int add_flat_value(const char *key, size_t key_len, const struct pullet_value *v, void *arg)
{
	struct flat *f = arg;

	f->seen++;
	if (f->count < f->max && v->type != PULLET_LIST && v->type != PULLET_MAP &&
		export_selected(f->selection, key, key_len))
		f->values[f->count++] =
			(struct flatten_value){key, key_len, export_node(v).type, v->text, v->len};
	return 0;
}

int export_flat(struct pullet *p, const struct export_selection *s, enum flatten_kind kind,
	const char *prefix, struct buffer *out, struct export_error *ret_error)
{
	struct flat f = {.selection = s, .max = pullet_count(p)};
	int r;

	f.values = calloc(f.max + 1, sizeof(*f.values));
	if (!f.values)
		return -ENOMEM;
	pullet_each(p, "", add_flat_value, &f);
	r = f.seen == f.max
		    ? flatten_values(f.values, f.count, kind, prefix, out, ret_error->message)
		    : -EBADMSG;
	if (r == -EBADMSG)
		snprintf(ret_error->message, sizeof(ret_error->message), "the snapshot is damaged");
	free(f.values);
	return r;
}

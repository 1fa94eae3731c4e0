/*
 * The tree of a document. Surprising: nodes and texts come from one arena of chunks, so that a
 * document of 100,000 nodes is a few dozen allocations and is freed as a whole.
 */
#include "document.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK (16u * 1024)

struct chunk {
	struct chunk *next;
	size_t used, size;
	max_align_t data[];
};

struct document {
	struct chunk *chunks;
	struct node *root;
	size_t nodes;
	size_t max_nodes;
	size_t room; /* bytes of text that may still come */
};

static void *arena_take(struct document *d, size_t size)
{
	struct chunk *c = d->chunks;
	size_t room;
	void *p;

	size = (size + sizeof(void *) - 1) & ~(sizeof(void *) - 1);
	if (!c || c->size - c->used < size) {
		room = d->nodes < 8 ? 1024 : CHUNK; /* small documents stay small */
		if (room < size)
			room = size;
		c = malloc(sizeof(*c) + room);
		if (!c)
			return NULL;
		*c = (struct chunk){.next = d->chunks, .size = room};
		d->chunks = c;
	}
	p = (char *)c->data + c->used;
	c->used += size;
	return p;
}

static const char *arena_text(struct document *d, const char *text, size_t len)
{
	char *p = arena_take(d, len + 1);

	if (p) {
		if (len)
			memcpy(p, text, len);
		p[len] = '\0';
	}
	return p;
}

struct document *document_new(void)
{
	struct document *d = calloc(1, sizeof(*d));

	if (d) {
		d->max_nodes = DOCUMENT_MAX_NODES;
		d->room = DOCUMENT_MAX_TEXT;
	}
	return d;
}

void document_free(struct document *d)
{
	struct chunk *next;

	if (!d)
		return;
	for (struct chunk *c = d->chunks; c; c = next) {
		next = c->next;
		free(c);
	}
	free(d);
}

struct node *document_add(struct document *d, struct node *parent, enum node_type type,
	const char *key, size_t key_len, const char *text, size_t text_len,
	struct document_error *err)
{
	struct node *n;

	if (d->nodes == d->max_nodes) {
		snprintf(err->message, sizeof(err->message),
			"more than %d values (aliases count as often as they are used): split the "
			"document",
			DOCUMENT_MAX_NODES);
		return NULL;
	}
	if (text_len + key_len > d->room) {
		snprintf(err->message, sizeof(err->message),
			"its aliases make it far larger than it is written");
		return NULL;
	}
	d->room -= text_len + key_len;
	n = arena_take(d, sizeof(*n));
	if (!n)
		return NULL;
	*n = (struct node){.type = type, .text_len = text_len, .key_len = key_len};
	n->text = text ? arena_text(d, text, text_len) : NULL;
	n->key = key ? arena_text(d, key, key_len) : NULL;
	if ((text && !n->text) || (key && !n->key))
		return NULL;
	d->nodes++;
	if (!parent) {
		if (!d->root)
			d->root = n;
		return n;
	}
	if (parent->last)
		parent->last->next = n;
	else
		parent->first = n;
	parent->last = n;
	parent->count++;
	return n;
}

const struct node *document_root(const struct document *d)
{
	return d->root;
}

size_t document_nodes(const struct document *d)
{
	return d->nodes;
}

const struct node *node_find(const struct node *map, const char *key)
{
	for (const struct node *n = map->first; n; n = n->next)
		if (n->key && strcmp(n->key, key) == 0)
			return n;
	return NULL;
}

/* ---- duplicate keys ---- */

struct entry {
	struct node *node;
	size_t index; /* among its siblings: the earlier one wins */
};

static bool same_key(const struct node *a, const struct node *b)
{
	return a->key_len == b->key_len && memcmp(a->key, b->key, a->key_len) == 0;
}

static int by_key_then_index(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	size_t x_len = x->node->key_len, y_len = y->node->key_len;
	int c = memcmp(x->node->key, y->node->key, x_len < y_len ? x_len : y_len);

	if (c == 0)
		c = (x_len > y_len) - (x_len < y_len);
	return c ? c : (x->index > y->index) - (x->index < y->index);
}

/* Unlinks the children that gave way: their key was taken away. */
static void unlink_dropped(struct node *map)
{
	struct node **link = &map->first;

	map->last = NULL;
	map->count = 0;
	while (*link) {
		if (!(*link)->key) {
			*link = (*link)->next;
			continue;
		}
		map->last = *link;
		map->count++;
		link = &(*link)->next;
	}
}

int document_settle_keys(struct node *map, unsigned flags, struct document_error *err)
{
	const struct node *duplicate = NULL, *first = NULL;
	struct entry *sorted;
	size_t n = 0, kept = 0;
	bool dropped = false;

	if (map->count < 2)
		return 0;
	sorted = malloc(map->count * sizeof(*sorted));
	if (!sorted)
		return -ENOMEM;
	for (struct node *c = map->first; c; c = c->next, n++)
		sorted[n] = (struct entry){c, n};
	qsort(sorted, n, sizeof(*sorted), by_key_then_index);
	for (size_t i = 1; i < n; i++) {
		struct node *c = sorted[i].node;

		if (!same_key(sorted[kept].node, c)) {
			kept = i;
		} else if (c->merged) {
			c->key = NULL; /* i moves on: it is not compared again */
			dropped = true;
		} else if (!duplicate || c->key_line < duplicate->key_line) {
			duplicate = c; /* of several, the first one in the document is told */
			first = sorted[kept].node;
		}
	}
	free(sorted);
	if (dropped)
		unlink_dropped(map);
	if (!duplicate || flags & DOCUMENT_KEEP_DUPLICATES)
		return 0;
	err->line = duplicate->key_line;
	err->column = duplicate->key_column;
	snprintf(err->message, sizeof(err->message),
		"duplicate key \"%.80s\" (first at line %u): remove one", duplicate->key,
		first->key_line);
	return -EINVAL;
}

/* ---- both formats ---- */

int document_parse(enum document_type type, const char *data, size_t len, unsigned parse_flags,
	struct document **ret_document, struct document_error *ret_error)
{
	struct document *d = document_new();
	int r = -ENOMEM;

	*ret_error = (struct document_error){0};
	if (!d)
		return r;
	if (parse_flags & DOCUMENT_OURS)
		d->max_nodes = SIZE_MAX;
	if (len < d->room / 8) /* what aliases copy is bounded by what is written */
		d->room = 8 * len + DOCUMENT_FREE_TEXT;
	r = type == DOCUMENT_JSON ? json_parse(data, len, parse_flags, d, ret_error)
				  : yaml_parse(data, len, parse_flags, d, ret_error);
	if (r == 0 && d->root->type != NODE_MAP) {
		ret_error->line = d->root->line ? d->root->line : 1;
		ret_error->column = d->root->column ? d->root->column : 1;
		snprintf(ret_error->message, sizeof(ret_error->message),
			"the document must be a mapping (key: value), not a %s",
			d->root->type == NODE_LIST ? "list" : "single value");
		r = -EINVAL;
	}
	if (r) {
		document_free(d);
		return r;
	}
	*ret_document = d;
	return 0;
}

int document_write(const struct node *root, enum document_type type, struct buffer *out)
{
	return type == DOCUMENT_JSON ? json_write(root, out) : yaml_write(root, out);
}

static bool scalar_equal(const struct node *a, const struct node *b)
{
	switch (a->type) {
	case NODE_BOOL:
		return a->boolean == b->boolean;
	case NODE_INT:
		return a->integer == b->integer;
	case NODE_DOUBLE: /* NaN is equal to itself here */
		return memcmp(&a->number, &b->number, sizeof(a->number)) == 0 ||
		       a->number == b->number || (a->number != a->number && b->number != b->number);
	case NODE_STRING:
		return a->text_len == b->text_len && memcmp(a->text, b->text, a->text_len) == 0;
	case NODE_NULL:
	case NODE_LIST:
	case NODE_MAP:
		break;
	}
	return true;
}

bool node_equal(const struct node *a, const struct node *b)
{
	const struct node *x = a->first, *y = b->first;

	if (a->type != b->type || !scalar_equal(a, b))
		return false;
	for (; x && y; x = x->next, y = y->next)
		if ((x->key && !same_key(x, y)) || !node_equal(x, y))
			return false;
	return !x && !y;
}

/*
 * Trees of values. Surprising: equality is an order here, so duplicates in a list are found in n
 * log n, and a value is looked up among thousands of an enum.
 */
#include "schema/value.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "text/json_text.h"
#include "schema/number.h"

#define SHOWN_CHARACTERS 40

/* ---- building ---- */

struct builder {
	struct value *values; /* the next free one */
	const struct value **sorted;
};

static size_t count_nodes(const struct node *n, unsigned depth)
{
	size_t count = 1;

	if (depth > DOCUMENT_MAX_DEPTH)
		return DOCUMENT_MAX_NODES + 1;
	if (n->type != NODE_LIST && n->type != NODE_MAP)
		return 1;
	for (const struct node *c = n->first; c && count <= DOCUMENT_MAX_NODES; c = c->next)
		count += count_nodes(c, depth + 1);
	return count;
}

static int by_child_key(const void *a, const void *b)
{
	const struct node *x = (*(const struct value *const *)a)->node,
			  *y = (*(const struct value *const *)b)->node;

	return node_compare_keys(x, y);
}

/* Fills v, which is in the array already, and all below it. */
static void build_value(
	struct builder *b, struct value *v, const struct node *n, struct value *parent)
{
	size_t i = 0;

	*v = (struct value){.node = n, .parent = parent, .weight = 1};
	if (n->type != NODE_LIST && n->type != NODE_MAP) {
		v->weight += (unsigned)(n->text_len / 64);
		return;
	}
	for (const struct node *c = n->first; c; c = c->next)
		v->count++;
	v->children = b->values;
	b->values += v->count;
	for (const struct node *c = n->first; c; c = c->next, i++) {
		build_value(b, &v->children[i], c, v);
		v->weight += v->children[i].weight + (unsigned)(c->key_len / 64);
	}
	if (n->type != NODE_MAP)
		return;
	v->sorted = b->sorted;
	b->sorted += v->count;
	for (i = 0; i < v->count; i++)
		v->sorted[i] = &v->children[i];
	qsort(v->sorted, v->count, sizeof(*v->sorted), by_child_key);
}

int value_tree(const struct node *root, struct value **ret_root, size_t *ret_count)
{
	size_t count = count_nodes(root, 1);
	struct builder b;
	struct value *top;

	if (count > DOCUMENT_MAX_NODES)
		return -E2BIG;
	top = malloc(count * (sizeof(*b.values) + sizeof(*b.sorted)));
	if (!top)
		return -ENOMEM;
	b.values = top + 1;
	b.sorted = (const struct value **)(void *)(top + count);
	build_value(&b, top, root, NULL);
	*ret_root = top;
	*ret_count = count;
	return 0;
}

const struct value *value_find(const struct value *map, const char *key, size_t key_len)
{
	size_t low = 0, high = map->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct node *n = map->sorted[middle]->node;
		int c = document_compare_text(key, key_len, n->key, n->key_len);

		if (c == 0)
			return map->sorted[middle];
		if (c < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

size_t value_index(const struct value *child)
{
	return (size_t)(child - child->parent->children);
}

/* ---- order ---- */

static int type_rank(const struct value *v)
{
	return v->node->type == NODE_DOUBLE ? NODE_INT : (int)v->node->type;
}

static int compare_collections(const struct value *a, const struct value *b)
{
	bool map = a->node->type == NODE_MAP;
	int c = (a->count > b->count) - (a->count < b->count);

	for (size_t i = 0; c == 0 && i < a->count; i++) {
		if (map)
			c = by_child_key(&a->sorted[i], &b->sorted[i]);
		if (c == 0)
			c = value_compare(map ? a->sorted[i] : &a->children[i],
				map ? b->sorted[i] : &b->children[i]);
	}
	return c;
}

int value_compare(const struct value *a, const struct value *b)
{
	const struct node *x = a->node, *y = b->node;

	if (type_rank(a) != type_rank(b))
		return type_rank(a) - type_rank(b);
	switch (x->type) {
	case NODE_NULL:
		return 0;
	case NODE_BOOL:
		return x->boolean - y->boolean;
	case NODE_INT:
	case NODE_DOUBLE:
		return number_compare(x, y);
	case NODE_STRING:
		return document_compare_text(x->text, x->text_len, y->text, y->text_len);
	case NODE_LIST:
	case NODE_MAP:
		break;
	}
	return compare_collections(a, b);
}

static int by_value_then_place(const void *a, const void *b)
{
	const struct value *x = *(const struct value *const *)a,
			   *y = *(const struct value *const *)b;
	int c = value_compare(x, y);

	return c ? c : (x > y) - (x < y);
}

void value_sort(const struct value *list, const struct value **ret_sorted)
{
	for (size_t i = 0; i < list->count; i++)
		ret_sorted[i] = &list->children[i];
	qsort(ret_sorted, list->count, sizeof(*ret_sorted), by_value_then_place);
}

int value_twice(const struct value *list, const struct value *ret_pair[2])
{
	const struct value **sorted;
	int found = 0;

	if (list->count < 2)
		return 0;
	sorted = malloc(list->count * sizeof(*sorted));
	if (!sorted)
		return -ENOMEM;
	value_sort(list, sorted);
	for (size_t i = 1; i < list->count && !found; i++) {
		if (value_compare(sorted[i - 1], sorted[i]) != 0)
			continue;
		ret_pair[0] = sorted[i - 1];
		ret_pair[1] = sorted[i];
		found = 1;
	}
	free(sorted);
	return found;
}

size_t value_characters(const struct value *string)
{
	return document_characters(string->node->text, string->node->text_len);
}

/* ---- for people ---- */

const char *value_show_text(const char *text, size_t len, char shown[VALUE_SHOWN])
{
	size_t cut = 0, characters = 0;
	struct buffer b;

	while (cut < len && (characters < SHOWN_CHARACTERS || (text[cut] & 0xc0) == 0x80))
		characters += (text[cut++] & 0xc0) != 0x80;
	buffer_init(&b, VALUE_SHOWN);
	json_text_append(&b, text, cut);
	snprintf(shown, VALUE_SHOWN, "%s%s", b.error ? "?" : b.data, cut < len ? "..." : "");
	buffer_fini(&b);
	return shown;
}

const char *value_show(const struct value *v, char shown[VALUE_SHOWN])
{
	const struct node *n = v->node;

	switch (n->type) {
	case NODE_NULL:
		return "null";
	case NODE_LIST:
		return "a list";
	case NODE_MAP:
		return "a mapping";
	case NODE_STRING:
		return value_show_text(n->text, n->text_len, shown);
	case NODE_BOOL:
	case NODE_INT:
	case NODE_DOUBLE:
		break;
	}
	snprintf(shown, VALUE_SHOWN, "%.*s%s", SHOWN_CHARACTERS, n->text,
		n->text_len > SHOWN_CHARACTERS ? "..." : "");
	return shown;
}

void value_cut(char *text, size_t size, int wanted)
{
	size_t len = size - 1;

	if (wanted < 0 || (size_t)wanted < size)
		return;
	while (len > 0 && (text[len - 1] & 0xc0) == 0x80)
		len--;
	text[len > 0 ? len - 1 : 0] = '\0'; /* the first byte of that character as well */
}

const char *value_types(unsigned types, char names[VALUE_TYPES])
{
	static const struct {
		unsigned types;
		const char *name;
	} table[] = {
		{VALUE_MAP, "a mapping"},
		{VALUE_LIST, "a list"},
		{VALUE_STRING, "a string"},
		{VALUE_NUMBER, "a number"},
		{VALUE_INTEGER, "an integer"},
		{VALUE_BOOL, "true or false"},
		{VALUE_NULL, "null"},
	};
	size_t len = 0;

	*names = '\0';
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if ((types & table[i].types) != table[i].types)
			continue;
		types &= ~table[i].types;
		len += (size_t)snprintf(names + len, VALUE_TYPES - len, "%s%s",
			len == 0 ? ""
			: types  ? ", "
				 : " or ",
			table[i].name);
	}
	return names;
}

/* Puts one segment before begin, backwards, and returns where it begins now. 0: it did not fit
 * whole. */
static size_t prepend_segment(const struct value *v, char *room, size_t begin)
{
	char number[24];
	const char *text = v->node->key;
	size_t len = v->node->key_len;

	if (!text) {
		len = (size_t)snprintf(number, sizeof(number), "%zu", value_index(v));
		text = number;
	}
	for (size_t i = len; i-- > 0;) {
		unsigned char c = (unsigned char)text[i];

		if (begin < 4)
			return 0;
		if (c == '~' || c == '/') {
			room[--begin] = c == '~' ? '0' : '1';
			c = '~';
		}
		room[--begin] = c < 0x20 || c == 0x7f ? '?' : (char)c;
	}
	room[--begin] = '/';
	return begin;
}

void value_path(const struct value *v, char path[VALUE_WHERE])
{
	char room[VALUE_WHERE - 64] = "";
	size_t begin = sizeof(room) - 1;

	for (; v->parent && begin > 0; v = v->parent)
		begin = prepend_segment(v, room, begin);
	if (begin > 0) {
		snprintf(path, VALUE_WHERE, "%s%s", room + begin, room[begin] ? ": " : "");
		return;
	}
	for (begin = 3; (room[begin] & 0xc0) == 0x80;) /* from a whole character on */
		begin++;
	snprintf(path, VALUE_WHERE, "...%s: ", room + begin);
}

void value_where(const struct value *v, bool key, char where[VALUE_WHERE])
{
	unsigned line = key ? v->node->key_line : v->node->line,
		 column = key ? v->node->key_column : v->node->column;
	char path[VALUE_WHERE];

	value_path(v, path);
	if (line)
		snprintf(where, VALUE_WHERE, "line %u, column %u: %.*s", line, column,
			VALUE_WHERE - 48, path);
	else
		snprintf(where, VALUE_WHERE, "%s", path);
}

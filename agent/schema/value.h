/*
 * A document's tree as a schema needs it: children as an array, keys sorted, so that a key is
 * found by halving, two values compare whatever the order of their keys, and each knows its path.
 * Private to agent/schema.
 *
 * Threads: immutable once built. Ownership: a tree borrows the nodes and is one piece of memory.
 * Bounds: those of documents.
 */
#ifndef PULLET_SCHEMA_VALUE_H
#define PULLET_SCHEMA_VALUE_H

#include <stdbool.h>
#include <stddef.h>

#include "document/document.h"

enum { /* sets of types: a bit for each node_type */
	VALUE_NULL = 1 << NODE_NULL,
	VALUE_BOOL = 1 << NODE_BOOL,
	VALUE_INTEGER = 1 << NODE_INT,
	VALUE_NUMBER = 1 << NODE_INT | 1 << NODE_DOUBLE,
	VALUE_STRING = 1 << NODE_STRING,
	VALUE_LIST = 1 << NODE_LIST,
	VALUE_MAP = 1 << NODE_MAP,
	VALUE_ANY = VALUE_NULL | VALUE_BOOL | VALUE_NUMBER | VALUE_STRING | VALUE_LIST | VALUE_MAP,
};

struct value {
	const struct node *node;
	const struct value *parent;  /* NULL: the root */
	struct value *children;      /* in document order */
	const struct value **sorted; /* of a map: the same by key */
	unsigned count;
	unsigned
		weight; /* what a comparison costs: values, and 64 bytes of text each as one more */
};

/* Builds the tree; *ret_root is its first value of *ret_count, to be given to free(3). 0, -ENOMEM,
 * -E2BIG when it passes the bounds of documents. */
int value_tree(const struct node *root, struct value **ret_root, size_t *ret_count);
/* True when its type is in the set. */
static inline bool value_is(const struct value *v, unsigned types)
{
	return (types >> v->node->type & 1) != 0;
}

/* The child of a map by name, or NULL. */
const struct value *value_find(const struct value *map, const char *key, size_t key_len);
/* The place of a child among its siblings, from 0. */
size_t value_index(const struct value *child);
/* Below 0, 0 or above 0: a total order. Equal as JSON Schema says it: 1 is 1.0, the order of keys
 * does not matter. */
int value_compare(const struct value *a, const struct value *b);
/* The children by value_compare(), into room for all of them. */
void value_sort(const struct value *list, const struct value **ret_sorted);
/* Finds two equal children: 1 and *ret_pair is the two in document order, 0, -ENOMEM. */
int value_twice(const struct value *list, const struct value *ret_pair[2]);
/* Unicode characters of a string. */
size_t value_characters(const struct value *string);

#define VALUE_SHOWN 256
#define VALUE_WHERE 224
#define VALUE_TYPES 96

/* One line for people: a string in quotes with its control characters escaped, at most 40
 * characters of it; a number as it is written; of a list or mapping only that it is one. Returns
 * shown. */
const char *value_show(const struct value *v, char shown[VALUE_SHOWN]);
const char *value_show_text(const char *text, size_t len, char shown[VALUE_SHOWN]);
/* Ends a text in a room of `size` bytes at a whole character when it was cut: snprintf() wanted
 * more.
 */
void value_cut(char *text, size_t size, int wanted);
/* "a list, an integer or null", of a set. Returns names. */
const char *value_types(unsigned types, char names[VALUE_TYPES]);
/* "/path/of/value: ", its end if it is long; "" for the root. */
void value_path(const struct value *v, char path[VALUE_WHERE]);
/* "line 3, column 7: " and the path; without the place where it is not known. key: the place of its
 * key rather than of the value. */
void value_where(const struct value *v, bool key, char where[VALUE_WHERE]);

#endif

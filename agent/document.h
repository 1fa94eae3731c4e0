/*
 * A configuration document: parsed from YAML or JSON into one kind of tree under fixed limits,
 * written out again.
 *
 * YAML is read with the 1.2 core schema (`no` is a string) plus merge keys (`<<`); aliases are
 * expanded under the node cap. JSON is RFC 8259. Refused, with line and column: other tags,
 * duplicate keys, NUL, non-UTF-8, several documents, depth over DOCUMENT_MAX_DEPTH, nodes over
 * DOCUMENT_MAX_NODES after expansion, an integer outside 64 bits, an empty document, a root that is
 * not a mapping.
 *
 * Threads: a document is immutable once parsed; any number of readers. Ownership: the document owns
 * all its nodes and texts; the input may be freed after document_parse(). Errors: -EINVAL with a
 * message, -ENOMEM, -EMSGSIZE (a written document over its buffer's maximum).
 */
#ifndef PULLET_DOCUMENT_H
#define PULLET_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../lib/buffer.h"

#define DOCUMENT_MAX_DEPTH 64
#define DOCUMENT_MAX_NODES 100000
#define DOCUMENT_MAX_TEXT ((size_t)1 << 30) /* bytes of all texts and keys, and: */
#define DOCUMENT_FREE_TEXT (1u << 20)       /* what aliases may copy beside 8 times the input */

enum document_type { DOCUMENT_YAML, DOCUMENT_JSON };

enum node_type { NODE_NULL, NODE_BOOL, NODE_INT, NODE_DOUBLE, NODE_STRING, NODE_LIST, NODE_MAP };

struct node {
	enum node_type type;
	unsigned line, column; /* of the value, 1-based; 0 = not known (JSON gives none) */
	const char *text; /* scalars: NUL-terminated; of a string its value, else as it was written
			     (JSON double: shortest that reads back) */
	size_t text_len;
	union {
		bool boolean;
		int64_t integer;
		double number;
		struct {
			size_t count; /* children of a list or map */
			struct node *last;
		};
	};
	struct node *first, *next; /* children in document order; the next sibling */
	const char *key;           /* the name of a map's child, NUL-terminated; else NULL */
	size_t key_len;
	unsigned key_line, key_column;
	bool merged;         /* came by a merge key: gives way to an explicit one */
	unsigned char layer; /* after merge_layers(): the number of the one it came from */
};

struct document; /* opaque: memory and root */

struct document_error {
	unsigned line, column; /* 1-based; 0 = does not apply */
	char message[256];     /* what is wrong, without the place */
};

enum {
	DOCUMENT_KEEP_DUPLICATES =
		1, /* duplicate keys stay in the tree, in order: the caller reports them */
	DOCUMENT_ALLOW_EMPTY =
		2,         /* no document, or only comments or null: the root is an empty map */
	DOCUMENT_OURS = 4, /* JSON that the agent wrote itself: its length alone bounds the nodes */
};

/* Parses len bytes. 0, -EINVAL with *ret_error filled, or -ENOMEM. */
int document_parse(enum document_type type, const char *data, size_t len, unsigned flags,
	struct document **ret_document, struct document_error *ret_error);
/* One without a root, to be filled by document_add(). NULL when memory is out. */
struct document *document_new(void);
void document_free(struct document *d);
/* The root: always a map. Borrowed. */
const struct node *document_root(const struct document *d);
/* Number of nodes (keys not counted). */
size_t document_nodes(const struct document *d);
/* The child of a map by name, or NULL. */
const struct node *node_find(const struct node *map, const char *key);
/* Appends the tree, as YAML or JSON that reads back to an equal tree, keys in document order, with
 * a final newline. 0, -ENOMEM, -EMSGSIZE. */
int document_write(const struct node *root, enum document_type type, struct buffer *out);
/* True when both have the same types, values, and keys in the same order (doubles by value). */
bool node_equal(const struct node *a, const struct node *b);

/* --- for those that build one: yaml.c, json.c, merge.c --- */

/* Adds a node to the tree under construction: a child of parent, named key when parent is a map;
 * the root when parent is NULL and there is no root yet, else on its own. NULL when memory is out
 * or the node cap reached (then *err has the message). Copies the texts. */
struct node *document_add(struct document *d, struct node *parent, enum node_type type,
	const char *key, size_t key_len, const char *text, size_t text_len,
	struct document_error *err);
/* To be called when a map is complete: drops merged children whose key stands there already, and
 * finds duplicate keys (unless they are to be kept). 0, -EINVAL with *err filled, or -ENOMEM. O(n
 * log n). */
int document_settle_keys(struct node *map, unsigned flags, struct document_error *err);
int yaml_parse(const char *data, size_t len, unsigned flags, struct document *d,
	struct document_error *err);
int json_parse(const char *data, size_t len, unsigned flags, struct document *d,
	struct document_error *err);
int yaml_write(const struct node *root, struct buffer *out);
int json_write(const struct node *root, struct buffer *out);

#endif

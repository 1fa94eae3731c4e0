/*
 * A configuration document: parsed from YAML or JSON into one kind of tree under fixed limits,
 * written out again.
 *
 * YAML is read with the 1.2 core schema (`no` is a string) plus merge keys (`<<`); aliases are
 * expanded under the node cap. JSON is RFC 8259, with or without a byte order mark; what is valid
 * JSON is read as JSON whatever type it is said to have. Rejected, with line and column: other
 * tags, duplicate keys, NUL, other control characters, non-UTF-8, several documents, depth over
 * DOCUMENT_MAX_DEPTH, nodes over DOCUMENT_MAX_NODES after expansion, an integer outside 64 bits, a
 * number outside the range of a double (one too small for it is 0), an empty document, a root that
 * is not a mapping. In YAML also U+0085, U+2028 and U+2029, quoted or not: they end a line for
 * readers of YAML 1.1 only.
 *
 * Scalars keep the text that they were written with, and in YAML their style.
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

#include "lib/buffer.h"

#define DOCUMENT_MAX_DEPTH 64
#define DOCUMENT_MAX_NODES 100000
#define DOCUMENT_MANY_VALUES                                                                       \
	"more than 100000 values (aliases count as often as they are used): split the document"
#define DOCUMENT_MAX_TEXT ((size_t)1 << 30) /* bytes of all texts and keys, and: */
#define DOCUMENT_FREE_TEXT (1u << 20)       /* what aliases may copy in any case, */
#define DOCUMENT_MAX_COPIES (7u << 20)      /* and beside that: 7 times the input, at most this */

#define DOCUMENT_OURS_VALUES (1u << 20) /* the status of 10,000 configs has 350,000 */

enum document_type { DOCUMENT_YAML, DOCUMENT_JSON };

enum node_type { NODE_NULL, NODE_BOOL, NODE_INT, NODE_DOUBLE, NODE_STRING, NODE_LIST, NODE_MAP };

enum node_style {  /* of a scalar; numbered as libyaml's are */
	STYLE_ANY, /* it came from elsewhere than YAML: chosen when it is written */
	STYLE_PLAIN,
	STYLE_SINGLE_QUOTED,
	STYLE_DOUBLE_QUOTED,
	STYLE_LITERAL,
	STYLE_FOLDED,
	STYLE_TAGGED = 8 /* added to one of these, with the type that a tag gave it: STYLE_TAG() */
};
#define STYLE_TAG(type) (STYLE_TAGGED | (unsigned)(type) << 4)
#define STYLE_SHAPE 7u /* what is left without the tag */

struct node {
	enum node_type type;
	unsigned line, column; /* of the value, 1-based */
	const char *text; /* scalars: NUL-terminated; a string's value, else as it was written */
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
	unsigned char style, key_style; /* enum node_style */
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
	DOCUMENT_OURS = 4, /* JSON that the agent wrote: a value to each eight bytes, at most
			      DOCUMENT_OURS_VALUES */
};

/* Parses len bytes. 0, -EINVAL with *ret_error filled, or -ENOMEM. */
int document_parse(enum document_type type, const char *data, size_t len, unsigned flags,
	struct document **ret_document, struct document_error *ret_error);
/* One without a root, to be filled by document_add(). NULL when memory is out. */
struct document *document_new(void);
/* Another owner of it, who frees it as well. Any thread. Returns it. */
struct document *document_share(struct document *d);
/* NULL is allowed. The last owner's call frees it. */
void document_free(struct document *d);
/* The root: always a map. Borrowed. NULL of NULL. */
const struct node *document_root(const struct document *d);
/* Bytes of its keys and texts. */
size_t document_bytes(const struct document *d);
/* Bytes of memory that it takes, all in all. */
size_t document_memory(const struct document *d);
/* The child of a map by name, or NULL: also of NULL, and of what is no map. */
const struct node *node_find(const struct node *map, const char *key);
/* The same if it is of this type, else NULL. */
const struct node *node_member(const struct node *map, const char *key, enum node_type type);
/* The first child of a member that is a list or a map; NULL: there is none. */
const struct node *node_first(const struct node *map, const char *key);
/* A member's text or number; the fallback when it is missing or of another type. */
const char *node_text(const struct node *map, const char *key, const char *fallback);
int64_t node_integer(const struct node *map, const char *key, int64_t fallback);
/* False also when it is missing or of another type. */
bool node_is_true(const struct node *map, const char *key);
/* Appends the tree, as YAML or JSON that reads back to an equal tree, keys in document order, with
 * a final newline. 0, -ENOMEM, -EMSGSIZE. */
int document_write(const struct node *root, enum document_type type, struct buffer *out);
/* True when both have the same types, values, and keys in the same order (doubles by value). */
bool node_equal(const struct node *a, const struct node *b);
/* Below 0, 0 or above 0: the order of two texts by their bytes, and of two nodes by their keys. */
int document_compare_text(const char *a, size_t a_len, const char *b, size_t b_len);
int node_compare_keys(const struct node *a, const struct node *b);
/* True when each child of a map has a higher key than the one before: none is there twice. */
bool node_keys_ascend(const struct node *map);

/* --- for the files that build one: yaml.c, json.c, merge.c; and yaml_write.c --- */

/* Adds a node to the tree under construction: a child of parent, named key when parent is a map;
 * the root when parent is NULL and there is no root yet, else on its own. NULL when memory is out
 * or the node cap reached (then *err has the message). Copies the texts. */
struct node *document_add(struct document *d, struct node *parent, enum node_type type,
	const char *key, size_t key_len, const char *text, size_t text_len,
	struct document_error *err);
/* Completes a map: drops merged children whose key it has already, and finds duplicate keys (unless
 * they are kept). 0, -EINVAL with *err filled, or -ENOMEM. O(n log n). */
int document_settle_keys(struct node *map, unsigned flags, struct document_error *err);
/* Adds a copy of a node of any document, without its children and its key, but at its place. As
 * document_add(). */
struct node *document_add_copy(struct document *d, struct node *parent, const char *key,
	size_t key_len, const struct node *from, struct document_error *err);
/* Copies place and style of a key. */
void node_copy_key(struct node *n, const struct node *from);
/* Gives a node of type NODE_INT or NODE_DOUBLE the number that text says; base: of an integer.
 * NULL, or a sentence: it is too large. */
const char *node_set_number(struct node *n, const char *text, int base);
/* Fills the place of the character at this offset: lines end with \n, \r or both, columns count
 * characters. */
void document_place(const char *data, size_t len, size_t offset, struct document_error *ret_error);
/* Characters in len bytes of UTF-8. */
size_t document_characters(const char *data, size_t len);
int yaml_parse(const char *data, size_t len, unsigned flags, struct document *d,
	struct document_error *err);
/* -EBADMSG: no JSON at all, with *err filled. -EEXIST: a key occurs twice; *err has the place. */
int json_parse(const char *data, size_t len, unsigned flags, struct document *d,
	struct document_error *err);
int yaml_write(const struct node *root, struct buffer *out);
int json_write(const struct node *root, struct buffer *out);

#endif

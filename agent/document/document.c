/*
 * The tree of a document. Surprising: nodes and texts come from one arena of chunks, so that a
 * document of 100,000 nodes is a few dozen allocations and is freed as a whole.
 */
#include "document/document.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/escape.h"

#define CHUNK (16u * 1024)

struct chunk {
	struct chunk *next;
	size_t used, size;
	max_align_t data[];
};

struct document {
	_Atomic unsigned others; /* owners beside the first */
	struct chunk *chunks;
	struct node *root;
	size_t nodes;
	size_t max_nodes;
	size_t bytes, room; /* of text: so far, and those that may still come */
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

/* Copies a text to *at, behind which *at is then. NULL of NULL. */
static const char *place_text(char **at, const char *text, size_t len)
{
	char *p = *at;

	if (!text)
		return NULL;
	memcpy(p, text, len);
	p[len] = '\0';
	*at += len + 1;
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

struct document *document_share(struct document *d)
{
	atomic_fetch_add(&d->others, 1);
	return d;
}

void document_free(struct document *d)
{
	struct chunk *next;

	if (!d || atomic_fetch_sub(&d->others, 1) > 0)
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
	char *texts;

	if (d->nodes == d->max_nodes) {
		snprintf(err->message, sizeof(err->message), DOCUMENT_MANY_VALUES);
		return NULL;
	}
	if (text_len + key_len > d->room) {
		snprintf(err->message, sizeof(err->message),
			"its aliases make it far larger than it is written");
		return NULL;
	}
	d->room -= text_len + key_len;
	d->bytes += text_len + key_len;
	n = arena_take(d, sizeof(*n) + (text ? text_len + 1 : 0) + (key ? key_len + 1 : 0));
	if (!n)
		return NULL;
	*n = (struct node){.type = type, .text_len = text_len, .key_len = key_len};
	texts = (char *)(n + 1);
	n->text = place_text(&texts, text, text_len);
	n->key = place_text(&texts, key, key_len);
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

struct node *document_add_copy(struct document *d, struct node *parent, const char *key,
	size_t key_len, const struct node *from, struct document_error *err)
{
	struct node *n =
		document_add(d, parent, from->type, key, key_len, from->text, from->text_len, err);

	if (!n)
		return NULL;
	n->line = from->line;
	n->column = from->column;
	n->style = from->style;
	if (from->type < NODE_LIST)
		n->integer = from->integer; /* the widest of the union: any scalar */
	return n;
}

void node_copy_key(struct node *n, const struct node *from)
{
	n->key_line = from->key_line;
	n->key_column = from->key_column;
	n->key_style = from->key_style;
}

const char *node_set_number(struct node *n, const char *text, int base)
{
	errno = 0;
	if (n->type == NODE_INT) {
		n->integer = strtoll(text, NULL, base);
		return errno == ERANGE ? "an integer outside 64 bits: quote it to make it a string"
				       : NULL;
	}
	n->number = strtod(text, NULL);
	return isinf(n->number)
		       ? "a number outside the range of a double: quote it to make it a string"
		       : NULL;
}

const struct node *document_root(const struct document *d)
{
	return d ? d->root : NULL;
}

size_t document_bytes(const struct document *d)
{
	return d->bytes;
}

size_t document_memory(const struct document *d)
{
	size_t bytes = sizeof(*d);

	for (const struct chunk *c = d->chunks; c; c = c->next)
		bytes += sizeof(*c) + c->size;
	return bytes;
}

const struct node *node_find(const struct node *map, const char *key)
{
	for (const struct node *n = map ? map->first : NULL; n; n = n->next)
		if (n->key && strcmp(n->key, key) == 0)
			return n;
	return NULL;
}

const struct node *node_member(const struct node *map, const char *key, enum node_type type)
{
	const struct node *n = node_find(map, key);

	return n && n->type == type ? n : NULL;
}

const struct node *node_first(const struct node *map, const char *key)
{
	const struct node *n = node_find(map, key);

	return n ? n->first : NULL;
}

const char *node_text(const struct node *map, const char *key, const char *fallback)
{
	const struct node *n = node_member(map, key, NODE_STRING);

	return n ? n->text : fallback;
}

int64_t node_integer(const struct node *map, const char *key, int64_t fallback)
{
	const struct node *n = node_member(map, key, NODE_INT);

	return n ? n->integer : fallback;
}

bool node_is_true(const struct node *map, const char *key)
{
	const struct node *n = node_member(map, key, NODE_BOOL);

	return n && n->boolean;
}

/* ---- duplicate keys ---- */

struct entry {
	struct node *node;
	size_t index; /* among its siblings: the earlier one wins */
};

int document_compare_text(const char *a, size_t a_len, const char *b, size_t b_len)
{
	int c = memcmp(a, b, a_len < b_len ? a_len : b_len);

	return c ? c : (a_len > b_len) - (a_len < b_len);
}

int node_compare_keys(const struct node *a, const struct node *b)
{
	return document_compare_text(a->key, a->key_len, b->key, b->key_len);
}

bool node_keys_ascend(const struct node *map)
{
	const struct node *n = map->first;

	while (n && n->next && node_compare_keys(n, n->next) < 0)
		n = n->next;
	return !n || !n->next;
}

static int by_key_then_index(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int c = node_compare_keys(x->node, y->node);

	return c ? c : (x->index > y->index) - (x->index < y->index);
}

/* Unlinks the children that lost their key. */
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

	if (map->count < 2 || node_keys_ascend(map))
		return 0;
	sorted = malloc(map->count * sizeof(*sorted));
	if (!sorted)
		return -ENOMEM;
	for (struct node *c = map->first; c; c = c->next, n++)
		sorted[n] = (struct entry){c, n};
	qsort(sorted, n, sizeof(*sorted), by_key_then_index);
	for (size_t i = 1; i < n; i++) {
		struct node *c = sorted[i].node;

		if (node_compare_keys(sorted[kept].node, c) != 0) {
			kept = i;
		} else if (c->merged) {
			c->key = NULL; /* i moves on: it is not compared again */
			dropped = true;
		} else if (!duplicate || c->key_line < duplicate->key_line) {
			duplicate = c; /* the first of several in the document is reported */
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

/* ---- the text ---- */

size_t document_characters(const char *data, size_t len)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	size_t characters = len, i = 0;
	uint64_t word;

	for (; len - i >= sizeof(word);
		i += sizeof(word)) { /* less the bytes that go on: 10xxxxxx */
		memcpy(&word, data + i, sizeof(word));
		if (word & 0x80 * ones)
			characters -= (size_t)__builtin_popcountll(word >> 7 & ~word >> 6 & ones);
	}
	for (; i < len; i++)
		characters -= ((unsigned char)data[i] & 0xc0) == 0x80;
	return characters;
}

void document_place(const char *data, size_t len, size_t offset, struct document_error *ret_error)
{
	ret_error->line = ret_error->column = 1;
	for (size_t i = 0; i < offset && i < len; i++) {
		if (data[i] == '\n' || (data[i] == '\r' && (i + 1 == len || data[i + 1] != '\n'))) {
			ret_error->line++;
			ret_error->column = 1;
		} else {
			ret_error->column += ((unsigned char)data[i] & 0xc0) != 0x80;
		}
	}
}

/* A character that readers of YAML treat differently. */
static bool is_special(unsigned c)
{
	return (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029 || c == 0xfeff ||
	       c == 0xfffe || c == 0xffff;
}

static bool breaks_lines(unsigned c)
{
	return c == 0x85 || c == 0x2028 || c == 0x2029;
}

static void describe_character(unsigned c, struct document_error *err)
{
	if (c == 0)
		snprintf(err->message, sizeof(err->message),
			"a NUL character: the text must be UTF-8, and has no NUL");
	else
		snprintf(err->message, sizeof(err->message),
			"%sU+%04X%s: write it as \"\\u%04x\", in double quotes",
			c == 0xfeff ? "a byte order mark inside the text, " : "the character ", c,
			breaks_lines(c) ? " ends a line for some readers of YAML and not for others"
			: c == 0xfeff   ? ""
					: " is not allowed",
			c);
}

/* True for eight bytes of ASCII without control characters. */
static bool is_plain_word(const char *data)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint64_t word;

	memcpy(&word, data, sizeof(word));
	return !((word | (word - 0x20 * ones) | (word + ones)) & 0x80 * ones);
}

static bool is_utf16(const char *data, size_t len)
{
	return len >= 2 && (!memcmp(data, "\xff\xfe", 2) || !memcmp(data, "\xfe\xff", 2));
}

/* The length of the character at i; 0 when it is rejected, with *err filled. */
static size_t check_character(
	const char *data, size_t len, size_t i, bool yaml, struct document_error *err)
{
	unsigned char c = (unsigned char)data[i];
	size_t n = escape_sequence(data + i, len - i);

	if (n && c >= 0x7f && !(yaml && is_special(escape_code_point(data + i, n))))
		return n;
	document_place(data, len, i, err);
	if (n)
		describe_character(escape_code_point(data + i, n), err);
	else
		snprintf(err->message, sizeof(err->message), "the text must be UTF-8%s",
			i == 0 && is_utf16(data, len)
				? ", but it is UTF-16 (\"Unicode\" to Windows): save it as UTF-8"
				: ": save it as such");
	return 0;
}

/* Rejects text that is not UTF-8 or has control characters; `yaml`: also what is special to YAML.
 */
static int check_all_characters(const char *data, size_t len, bool yaml, struct document_error *err)
{
	size_t i = 0, end, n;

	while (i < len) {
		end = len - i < sizeof(uint64_t) ? len : i + sizeof(uint64_t);
		if (end - i == sizeof(uint64_t) && is_plain_word(data + i)) {
			i = end;
			continue;
		}
		for (; i < end; i += n) {
			unsigned char c = (unsigned char)data[i];
			bool plain = (c >= ' ' && c < 0x7f) || c == '\n' || c == '\r' || c == '\t';

			n = plain ? 1 : check_character(data, len, i, yaml, err);
			if (n == 0)
				return -EINVAL;
		}
	}
	return 0;
}

/* ---- both formats ---- */

/* An object or array may be JSON. */
static bool may_be_json(const char *data, size_t len)
{
	while (len > 0 && (*data == ' ' || *data == '\t' || *data == '\n' || *data == '\r'))
		data++, len--;
	return len > 0 && (*data == '{' || *data == '[');
}

/* Lets the reader of YAML, to which JSON is YAML, say which key is there twice. */
static int report_duplicate(const char *data, size_t len, struct document_error *err)
{
	struct document_error e = {0};
	struct document *d = document_new();
	int r = d ? yaml_parse(data, len, 0, d, &e) : -ENOMEM;

	document_free(d);
	if (r == -EINVAL && strncmp(e.message, "duplicate", strlen("duplicate")) == 0)
		*err = e;
	return r == -ENOMEM ? r : -EINVAL;
}

static int parse_text(enum document_type type, const char *data, size_t len, unsigned flags,
	struct document *d, struct document_error *err)
{
	bool is_json = type == DOCUMENT_JSON;
	/* the reader of YAML alone keeps duplicates */
	bool maybe = is_json || (!(flags & DOCUMENT_KEEP_DUPLICATES) && may_be_json(data, len));
	int r = check_all_characters(data, len, !maybe, err);

	if (r || !maybe)
		return r ? r : yaml_parse(data, len, flags, d, err);
	r = json_parse(data, len, flags, d, err);
	if (r == -EEXIST)
		return report_duplicate(data, len, err);
	if (is_json || r != -EBADMSG)
		return r == -EBADMSG ? -EINVAL : r;
	*err = (struct document_error){0};
	r = check_all_characters(data, len, true, err);
	return r ? r : yaml_parse(data, len, flags, d, err);
}

int document_parse(enum document_type type, const char *data, size_t len, unsigned flags,
	struct document **ret_document, struct document_error *ret_error)
{
	struct document *d = document_new();
	int r;

	*ret_error = (struct document_error){0};
	if (!d)
		return -ENOMEM;
	if (len >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0) { /* a byte order mark */
		data += 3;
		len -= 3;
	}
	if (flags & DOCUMENT_OURS)
		d->max_nodes = SIZE_MAX;
	if (len < DOCUMENT_MAX_TEXT - DOCUMENT_MAX_COPIES) /* of what is written, and again */
		d->room = len + (len < DOCUMENT_MAX_COPIES / 7 ? 7 * len : DOCUMENT_MAX_COPIES) +
			  DOCUMENT_FREE_TEXT;
	r = parse_text(type, data, len, flags, d, ret_error);
	if (r == 0 && d->root->type != NODE_MAP) {
		ret_error->line = d->root->line;
		ret_error->column = d->root->column;
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
		return a->number == b->number || (a->number != a->number && b->number != b->number);
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
		if ((x->key && node_compare_keys(x, y) != 0) || !node_equal(x, y))
			return false;
	return !x && !y;
}

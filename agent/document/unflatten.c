/*
 * Flat names to a tree. Surprising: a name's place in the tree is found by its text alone, for a
 * text is split in one way only. A value with something below it and a list with a gap are resolved
 * when the tree is written, so the order of adding does not count.
 */
#include "document/unflatten.h"

#include <errno.h>
#include <search.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "document/document.h"
#include "text/json_text.h"

#define MAX_DIGITS 9  /* of an item's number */
#define NOT_ITEM (-1) /* a child by name */

/* The beginning of names, or a whole name. */
struct place {
	const char *text;  /* the name down to here; in what was added */
	size_t start, len; /* where its own piece begins; the end of it */
	long item;         /* its number, or NOT_ITEM */
	const char *json;  /* its value; NULL = none */
	size_t json_len;
	struct place *first, *next; /* children, the last one first; the next sibling */
	size_t keys, items;         /* how many children are by name, and by number */
};

/* A name that was added, and its value. */
struct added {
	struct added *next;
	char data[];
};

struct unflatten {
	enum unflatten_form form;
	size_t room; /* bytes that may still come */
	size_t count, places;
	int error; /* sticks */
	struct added *added;
	void *by_text; /* tsearch(3): all places but the root */
	struct place root;
};

static int by_place_text(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return document_compare_text(x->text, x->len, y->text, y->len);
}

/* ---- adding ---- */

/* Appends a JSON string; -EILSEQ when a document cannot hold the text. What is not UTF-8 comes out
 * of json_text_append() as \ufffd, and nothing else does. */
static int append_string(struct buffer *out, const char *text, size_t len)
{
	size_t at = out->len;
	int r = json_text_append(out, text, len);

	for (; r == 0 && at < out->len; at++)
		if (out->data[at] == '\\' && out->data[++at] == 'u' &&
			(!memcmp(out->data + at + 1, "fffd", 4) ||
				!memcmp(out->data + at + 1, "0000", 4)))
			r = -EILSEQ;
	return r;
}

/* Takes empty segments out of a path. Returns its length. */
static size_t plain_path(const char *name, size_t len, char ret_plain[UNFLATTEN_MAX_NAME])
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		if (name[i] != '/' || (n > 0 && ret_plain[n - 1] != '/'))
			ret_plain[n++] = name[i];
	return n > 0 && ret_plain[n - 1] == '/' ? n - 1 : n;
}

/* Where a "[12]" begins that the text ends with, behind at least one byte; 0 = there is none, and
 * no number. */
static size_t last_item(const char *text, size_t len, long *ret_number)
{
	size_t end = len - 1, first;

	if (len == 0 || text[end] != ']')
		return 0;
	first = end;
	while (first > 0 && text[first - 1] >= '0' && text[first - 1] <= '9')
		first--;
	if (first < 2 || text[first - 1] != '[' || first == end || end - first > MAX_DIGITS ||
		(text[first] == '0' && end - first > 1))
		return 0;
	*ret_number = strtol(text + first, NULL, 10);
	return first - 1;
}

/* The child of `parent` that is text[start, len); made when it is not there. NULL: n->error. */
static struct place *child_place(struct unflatten *n, struct place *parent, const char *text,
	size_t start, size_t len, long item)
{
	const struct place key = {.text = text, .len = len};
	struct place *const *found = tfind(&key, &n->by_text, by_place_text), *p;

	if (found)
		return *found;
	if (n->places == DOCUMENT_MAX_NODES) {
		n->error = -EMSGSIZE;
		return NULL;
	}
	p = malloc(sizeof(*p));
	if (p)
		*p = (struct place){.text = text, .start = start, .len = len, .item = item};
	if (!p || !tsearch(p, &n->by_text, by_place_text)) {
		free(p);
		n->error = -ENOMEM;
		return NULL;
	}
	n->places++;
	p->next = parent->first;
	parent->first = p;
	if (item == NOT_ITEM)
		parent->keys++;
	else
		parent->items++;
	return p;
}

/* The places of one segment, "name" or "name[0][1]", one below the other. */
static struct place *segment_place(struct unflatten *n, struct place *parent, const char *text,
	size_t start, size_t end, bool items)
{
	long item = NOT_ITEM;
	size_t own = items ? last_item(text + start, end - start, &item) : 0;

	if (own)
		parent = segment_place(n, parent, text, start, start + own, true);
	return parent ? child_place(n, parent, text, start + own, end, item) : NULL;
}

static unsigned places_of(const struct unflatten *n, const char *segment, size_t len)
{
	unsigned count = 1;
	long number;

	if (n->form == UNFLATTEN_PROPERTIES)
		while ((len = last_item(segment, len, &number)) > 0)
			count++;
	return count;
}

/* The place of a whole name, made with all above it. NULL: n->error. */
static struct place *place_of_name(struct unflatten *n, const char *text, size_t len)
{
	char separator = n->form == UNFLATTEN_PATHS ? '/' : '.';
	struct place *p = &n->root;
	unsigned depth = 0;

	for (size_t start = 0, end = 0; p && end < len; start = end + 1) {
		const char *stop = memchr(text + start, separator, len - start);
		bool deep;

		end = stop ? (size_t)(stop - text) : len;
		depth += places_of(n, text + start, end - start);
		deep = depth >= UNFLATTEN_MAX_DEPTH;
		if (deep)
			end = len;
		p = segment_place(n, p, text, start, end, n->form == UNFLATTEN_PROPERTIES && !deep);
	}
	return p;
}

static int add_new(
	struct unflatten *n, const char *name, size_t len, const char *json, size_t json_len)
{
	struct added *a = malloc(sizeof(*a) + len + json_len);
	struct place *p;

	if (!a)
		return n->error = -ENOMEM;
	a->next = n->added;
	n->added = a;
	memcpy(a->data, name, len);
	memcpy(a->data + len, json, json_len);
	p = place_of_name(n, a->data, len);
	if (!p)
		return n->error;
	p->json = a->data + len;
	p->json_len = json_len;
	n->room -= len + json_len;
	n->count++;
	return 0;
}

int unflatten_add(
	struct unflatten *n, const char *name, size_t name_len, const char *json, size_t json_len)
{
	struct place key = {0}, *const * found;
	struct buffer checked;
	char plain[UNFLATTEN_MAX_NAME];
	int r;

	if (n->error)
		return n->error;
	if (name_len == 0 || name_len > UNFLATTEN_MAX_NAME)
		return -EINVAL;
	if (n->form == UNFLATTEN_PATHS) {
		name_len = plain_path(name, name_len, plain);
		name = plain;
	}
	if (name_len == 0)
		return -EINVAL;
	key.text = name;
	key.len = name_len;
	found = tfind(&key, &n->by_text, by_place_text);
	if (found && (*found)->json)
		return -EEXIST;
	buffer_init(&checked, 6 * UNFLATTEN_MAX_NAME + 2);
	r = append_string(&checked, name, name_len);
	buffer_fini(&checked);
	if (r == -ENOMEM)
		return n->error = r;
	if (r)
		return r;
	if (name_len > n->room || json_len > n->room - name_len)
		return n->error = -EMSGSIZE;
	return add_new(n, name, name_len, json, json_len);
}

int unflatten_add_text(
	struct unflatten *n, const char *name, size_t name_len, const char *text, size_t text_len)
{
	struct buffer json;
	int r;

	buffer_init(&json, 6 * text_len + 2);
	r = append_string(&json, text, text_len);
	if (r == -ENOMEM)
		n->error = r;
	if (r == 0)
		r = unflatten_add(n, name, name_len, json.data, json.len);
	buffer_fini(&json);
	return r;
}

size_t unflatten_count(const struct unflatten *n)
{
	return n->count;
}

/* ---- writing ---- */

/* A key of a mapping: the name of its place from some byte on. */
struct member {
	const char *key;
	size_t len;
	const struct place *place;
};

struct members {
	struct member *list;
	size_t count;
	int error;
};

static void append_place_member(struct members *m, const struct place *p, size_t from)
{
	struct member *list = array_room(m->list, m->count, sizeof(*list));

	if (!list) {
		m->error = -ENOMEM;
		return;
	}
	m->list = list;
	list[m->count++] = (struct member){p->text + from, p->len - from, p};
}

/* True when the numbers below p are 0 to n, each one thing, without a name among them. NOT_ITEM is
 * larger than any number here. */
static bool is_list(const struct place *p)
{
	for (const struct place *c = p->first; c; c = c->next) {
		if ((size_t)c->item >= p->items)
			return false;
		if (c->json ? c->first != NULL : c->keys ? c->items > 0 : !is_list(c))
			return false;
	}
	return true;
}

/* Adds all names below p, in one piece. */
static void add_members_below(struct members *m, const struct place *p, size_t from)
{
	for (const struct place *c = p->first; c; c = c->next) {
		if (c->json)
			append_place_member(m, c, from);
		add_members_below(m, c, from);
	}
}

/* Adds the members that p becomes in its mapping: itself; or a mapping and its loose items; or a
 * value and all below it. */
static void add_place_members(struct members *m, const struct place *p, size_t from)
{
	bool list = is_list(p);

	if (p->json || p->keys || list)
		append_place_member(m, p, from);
	if (p->json)
		add_members_below(m, p, from);
	else if (!list)
		for (const struct place *c = p->first; c; c = c->next)
			if (c->item != NOT_ITEM)
				add_place_members(m, c, from);
}

static int by_member_key(const void *a, const void *b)
{
	const struct member *x = a, *y = b;

	return document_compare_text(x->key, x->len, y->key, y->len);
}

static int write_place(const struct place *p, unsigned depth, struct buffer *out);

static int new_line(struct buffer *out, unsigned depth)
{
	return buffer_printf(out, "\n%*s", (int)(2 * depth), "");
}

static int write_place_map(const struct place *p, unsigned depth, struct buffer *out)
{
	struct members m = {0};
	int r;

	for (const struct place *c = p->first; c; c = c->next)
		if (c->item == NOT_ITEM)
			add_place_members(&m, c, c->start);
	if (m.count)
		qsort(m.list, m.count, sizeof(*m.list), by_member_key);
	r = m.error ? m.error : buffer_append_string(out, "{");
	for (size_t i = 0; r == 0 && i < m.count; i++) {
		new_line(out, depth + 1);
		json_text_append(out, m.list[i].key, m.list[i].len);
		buffer_append_string(out, ": ");
		r = write_place(m.list[i].place, depth + 1, out);
		if (i + 1 < m.count)
			buffer_append_string(out, ",");
	}
	if (m.count)
		new_line(out, depth);
	free(m.list);
	return r ? r : buffer_append_string(out, "}");
}

static int write_place_list(const struct place *p, unsigned depth, struct buffer *out)
{
	const struct place **items = calloc(p->items, sizeof(*items));
	int r = items ? buffer_append_string(out, "[") : -ENOMEM;

	for (const struct place *c = p->first; items && c; c = c->next)
		items[c->item] = c;
	for (size_t i = 0; r == 0 && i < p->items; i++) {
		new_line(out, depth + 1);
		r = write_place(items[i], depth + 1, out);
		if (i + 1 < p->items)
			buffer_append_string(out, ",");
	}
	new_line(out, depth);
	free(items);
	return r ? r : buffer_append_string(out, "]");
}

/* At most UNFLATTEN_MAX_DEPTH deep. */
static int write_place(const struct place *p, unsigned depth, struct buffer *out)
{
	if (p->json)
		return buffer_append(out, p->json, p->json_len);
	return p->keys ? write_place_map(p, depth, out) : write_place_list(p, depth, out);
}

int unflatten_write(const struct unflatten *n, struct buffer *out)
{
	int r = n->error ? n->error : write_place_map(&n->root, 0, out);

	return r ? r : buffer_append_string(out, "\n");
}

struct unflatten *unflatten_new(enum unflatten_form form, size_t max_bytes)
{
	struct unflatten *n = calloc(1, sizeof(*n));

	if (n) {
		n->form = form;
		n->room = max_bytes;
	}
	return n;
}

void unflatten_free(struct unflatten *n)
{
	struct added *next;

	if (!n)
		return;
	tdestroy(n->by_text, free);
	for (struct added *a = n->added; a; a = next) {
		next = a->next;
		free(a);
	}
	free(n);
}

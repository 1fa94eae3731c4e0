/*
 * Masked values in texts. Surprising: the search goes on within a value that was found, since
 * another one may begin there and end later.
 */
#include "document/scrub.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "text/json_text.h"
#include "document/key_path.h"

#define BUCKETS 1024u
#define MAX_PATH (16u << 20)

struct secret { /* one text to search for */
	struct secret *next;
	size_t len;
	char text[];
};

struct scrub {
	struct secret *buckets[BUCKETS]; /* by the first SCRUB_MIN bytes */
	bool hides_all;
};

struct walk {
	struct scrub *scrub;
	char *const *mask;
	const struct node *top;
	struct buffer path;
};

static unsigned secret_bucket(const char *text)
{
	uint32_t begin;

	memcpy(&begin, text, sizeof(begin));
	return (begin * 2654435761u >> 16) % BUCKETS;
}

/* ---- texts to search for ---- */

static void add_secret(struct scrub *s, const char *text, size_t len)
{
	struct secret **bucket, *v;

	if (len < SCRUB_MIN)
		return;
	bucket = &s->buckets[secret_bucket(text)];
	v = malloc(sizeof(*v) + len);
	if (!v) {
		s->hides_all = true;
		return;
	}
	v->len = len;
	memcpy(v->text, text, len);
	v->next = *bucket;
	*bucket = v;
}

static void add_secret_lines(struct scrub *s, const char *text, size_t len)
{
	const char *end = text + len, *newline;

	for (; text < end; text = newline + 1) {
		newline = memchr(text, '\n', (size_t)(end - text));
		newline = newline ? newline : end;
		add_secret(s, text, (size_t)(newline - text));
	}
}

static void add_json_form(struct scrub *s, const char *text, size_t len)
{
	struct buffer json;

	buffer_init(&json, 6 * len + 2);
	if (json_text_append(&json, text, len))
		s->hides_all = true;
	else if (json.len != len + 2)
		add_secret(s, json.data + 1, json.len - 2); /* without its quotes */
	buffer_fini(&json);
}

static void add_scalar_secret(struct scrub *s, const struct node *n)
{
	if (n->type != NODE_STRING && n->type != NODE_INT && n->type != NODE_DOUBLE)
		return;
	add_secret(s, n->text, n->text_len);
	if (memchr(n->text, '\n', n->text_len))
		add_secret_lines(s, n->text, n->text_len);
	add_json_form(s, n->text, n->text_len);
}

/* As deep as a document may be. */
static void add_masked_nodes(struct walk *w, const struct node *n, bool masked)
{
	size_t len = w->path.len, number = 0;

	if (n->type != NODE_LIST && n->type != NODE_MAP) {
		if (masked)
			add_scalar_secret(w->scrub, n);
		return;
	}
	for (const struct node *child = n->first; child; child = child->next) {
		if (!masked && key_path_append(&w->path, w->top == n, child, number++))
			w->scrub->hides_all = true;
		add_masked_nodes(w, child,
			masked || w->scrub->hides_all || key_path_matches(w->mask, w->path.data));
		w->path.len = len;
	}
}

void scrub_add(struct scrub *s, const struct node *root, char *const *mask)
{
	struct walk w = {.scrub = s, .mask = mask, .top = root};

	if (!root || !mask)
		return;
	buffer_init(&w.path, MAX_PATH);
	add_masked_nodes(&w, root, false);
	buffer_fini(&w.path);
}

void scrub_hide_all(struct scrub *s)
{
	s->hides_all = true;
}

/* ---- a text ---- */

struct search {
	const char *text;
	size_t len;
	uint64_t work;
};

/* Bytes of the longest value at this place, or of the part before the end that cuts it. */
static size_t secret_length_at(const struct scrub *s, struct search *l, size_t at)
{
	size_t left = l->len - at, longest = 0, n;

	for (const struct secret *v = s->buckets[secret_bucket(l->text + at)]; v; v = v->next) {
		n = v->len < left ? v->len : left;
		l->work += 1 + n / 64;
		if (n > longest && memcmp(v->text, l->text + at, n) == 0)
			longest = n;
		if (l->work > SCRUB_MAX_WORK)
			break;
	}
	return longest;
}

int scrub_append(const struct scrub *s, struct buffer *out, const char *text, size_t len)
{
	struct search l = {.text = text, .len = len};
	size_t before = out->len, hidden = 0, n; /* hidden: up to here */
	int r = 0;

	if (s->hides_all)
		return len ? buffer_append(out, "***", 3) : 0;
	for (size_t i = 0; r == 0 && i < len; i++) {
		n = len - i >= SCRUB_MIN ? secret_length_at(s, &l, i) : 0;
		if (l.work > SCRUB_MAX_WORK) {
			out->len = before;
			return buffer_append(out, "***", 3);
		}
		if (n && i >= hidden)
			r = buffer_append(out, "***", 3);
		if (n && i + n > hidden)
			hidden = i + n;
		if (r == 0 && i >= hidden)
			r = buffer_append(out, text + i, 1);
	}
	return r;
}

/* ---- life ---- */

struct scrub *scrub_new(void)
{
	return calloc(1, sizeof(struct scrub));
}

void scrub_free(struct scrub *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct secret *v = s->buckets[i], *next; v; v = next) {
			next = v->next;
			explicit_bzero(v->text, v->len);
			free(v);
		}
	free(s);
}

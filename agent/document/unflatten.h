/*
 * Flat names to a tree: "db/host" of a key-value store, "db.hosts[0]" of properties, to the JSON
 * document {"db": {"host": ...}}.
 *
 * Joining the keys on the way to a value ('/' or '.' between them, the numbers of a list in
 * brackets) gives its name again; so nothing is lost, and no two names meet.
 *
 * A name below a value stays in one piece, from the last mapping on ("a" and "a/b" give {"a": ...,
 * "a/b": ...}). Numbers in brackets make a list when they are 0 to n without a gap, nothing else
 * lies below the name, and each item is one thing; else they stay part of the name ("a[0]" and
 * "a.b" give {"a": {"b": ...}, "a[0]": ...}). Keys are written in the order of their bytes, so that
 * the same set always gives the same bytes.
 *
 * Threads: one owner. Ownership: names and values are copied. Bounds: DOCUMENT_MAX_NODES names and
 * mappings; a name is at most UNFLATTEN_MAX_NAME bytes, and what of it would be UNFLATTEN_MAX_DEPTH
 * deep or deeper stays in one piece.
 */
#ifndef PULLET_UNFLATTEN_H
#define PULLET_UNFLATTEN_H

#include <stddef.h>

#include "lib/buffer.h"

#define UNFLATTEN_MAX_NAME 4096
#define UNFLATTEN_MAX_DEPTH 60

enum unflatten_form {
	UNFLATTEN_PATHS, /* segments end at '/'; empty segments do not count: "/a//b/" is "a/b" */
	UNFLATTEN_PROPERTIES /* segments end at '.', also empty ones; lists are written name[0] */
};

struct unflatten;

/* NULL when there is no memory. max_bytes: of all names and values. */
struct unflatten *unflatten_new(enum unflatten_form form, size_t max_bytes);
void unflatten_free(struct unflatten *n); /* takes NULL too */
/* Adds a value, as JSON text (not checked). 0; -EEXIST: the name is there already (the first value
 * stays); -EINVAL: no name, or one that is too long; -EILSEQ: the name is not UTF-8, or has a NUL:
 * no document can hold it. After -EMSGSIZE (too many, or too much) and -ENOMEM all that follows
 * fails with it, unflatten_write() too. */
int unflatten_add(
	struct unflatten *n, const char *name, size_t name_len, const char *json, size_t json_len);
/* The same with a string as value: written as JSON. -EILSEQ also for the text. */
int unflatten_add_text(
	struct unflatten *n, const char *name, size_t name_len, const char *text, size_t text_len);
size_t unflatten_count(const struct unflatten *n); /* names */
/* Appends the document, a JSON object, with a newline. 0, -ENOMEM, -EMSGSIZE. */
int unflatten_write(const struct unflatten *n, struct buffer *out);

#endif

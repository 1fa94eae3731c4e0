/*
 * The path of a key: its segments joined with '.', from the root down. A dot inside a segment is
 * `\.` and a backslash `\\`; the items of a list are numbered from 0: `servers.0.host`. The root
 * has no path; "" is the key whose name is empty, and ".a" is the key a in it.
 *
 * Threads: any. Ownership: none; nodes are borrowed from the tree that was given. Bounds: those of
 * the document and of the buffer.
 */
#ifndef PULLET_KEY_PATH_H
#define PULLET_KEY_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/buffer.h"
#include "document/document.h"

/* Appends the segment of a child: its name, or its number in a list; preceded by a dot unless it is
 * the first one. The buffer may have been cut by setting len; afterwards there is always a text
 * with its NUL. 0, -ENOMEM, -EMSGSIZE. */
int key_path_append(struct buffer *path, bool first, const struct node *child, size_t number);
/* One step: the child of parent that the first segment of *path names, or NULL when there is none.
 * *path moves behind the segment's dot, or becomes NULL when that was the last one. A segment with
 * a backslash before anything but a dot or a backslash names nothing. Linear in the children. */
const struct node *key_path_step(const struct node *parent, const char **path);
/* The node at a path, or NULL. root may be NULL. "01" is no number of an item. */
const struct node *key_path_find(const struct node *root, const char *path);

/* True when a pattern fits the path, or fits a path above it: what is meant for a key is meant for
 * everything in it. `db` fits db, db.host and db.a.b, but not dbx; `db.*` the same without db
 * itself; `*.password` fits db.password and db.password.0, but not password alone.
 *
 * A pattern is a shell pattern, fnmatch(3): `*` is any text, dots included, `?` one byte, `[a-z]`
 * one byte of a set. A backslash is nothing special in it: a path as `pullet list` prints it is a
 * pattern, and it always fits itself, whatever it has in it. `[*]` stands for the character itself.
 *
 * patterns ends with NULL; NULL = none, which fit nothing. Without memory everything fits: what
 * must not be shown is not shown. */
bool key_path_matches(char *const *patterns, const char *path);

#endif

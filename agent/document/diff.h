/*
 * What changed from one document to the next, key by key, as text for people and JSON for programs.
 *
 * Only leaves are compared: single values, empty lists and empty mappings, each by its path
 * (key_path.h). Lists are compared item by item, by number. The order of keys is no change; the
 * type is: 1, 1.0 and "1" are three values (but 0x10 is 16, and 1.50 is 1.5). Where a list became a
 * mapping, or a mapping a list, everything in it is removed and added.
 *
 * The order is that of paths, segment by segment: numbers by their value and before names, names by
 * their bytes, a key before what is in it; at one path what is removed before what is added.
 *
 * Threads: any; immutable. Ownership: the list owns the paths and borrows the trees, which must
 * live longer. Errors: -ENOMEM, -EMSGSIZE. Bounds: those of the documents; DIFF_MAX_PATHS bytes of
 * paths. Time: O(n log n).
 */
#ifndef PULLET_DIFF_H
#define PULLET_DIFF_H

#include <stdbool.h>
#include <stddef.h>

#include "document/document.h"

#define DIFF_MAX_PATHS (8u << 20)
#define DIFF_MAX_SHOWN 64 /* bytes of a text in a line for people */

enum diff_kind { DIFF_ADDED, DIFF_REMOVED, DIFF_CHANGED };

struct diff_change {
	enum diff_kind kind;
	const char *path;
	const struct node *before, *after; /* leaves; NULL = was not, is not there */
};

struct diff;

/* Compares two mappings (NULL = an empty one). 0, -ENOMEM, or
 * -EMSGSIZE when the paths of all changes together pass DIFF_MAX_PATHS. */
int diff_new(const struct node *before, const struct node *after, struct diff **ret_diff);
/* Counts the changes, however long their paths are. 0 or -ENOMEM. */
int diff_measure(const struct node *before, const struct node *after, size_t *ret_count);
void diff_free(struct diff *d);
size_t diff_count(const struct diff *d);
/* Borrowed; NULL behind the last. */
const struct diff_change *diff_at(const struct diff *d, size_t index);

/* Appends one change as a line for people, with its newline:
 *
 *     ~ db.host: "a" -> "b"
 *     + x: 1
 *     - y: []
 *
 * Values whose path fits one of the patterns of mask (key_path_matches()) are shown as ***. Of a
 * text of more than DIFF_MAX_SHOWN bytes a part is shown, near the first difference, with ... for
 * what is left out. Control characters are escaped in values and paths: it is one line, and no
 * terminal acts on it. 0 or the buffer's error. */
int diff_write_text(const struct diff_change *change, char *const *mask, struct buffer *out);
/* Appends the value before, or after, as that line shows it; nothing when there is none. 0 or the
 * buffer's error. */
int diff_write_value(
	const struct diff_change *change, bool after, char *const *mask, struct buffer *out);
/* Appends one change as a JSON object in one line, without a newline:
 *
 *     {"change":"changed","path":"db.host","before":"a","after":"b"}
 *
 * "change" is added, removed or changed; what was not or is not there has no member. Values are
 * whole; a number JSON does not have is a string (".inf"). Masked values are "***" and there is
 * "masked":true. 0 or the buffer's error. */
int diff_write_json(const struct diff_change *change, char *const *mask, struct buffer *out);
/* The same members, without the braces: more may follow. */
int diff_write_members(const struct diff_change *change, char *const *mask, struct buffer *out);

#endif

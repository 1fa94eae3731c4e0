/*
 * The keys of a snapshot written as lines, or as a tree again and that as a document.
 *
 * Threads: one at a time, with the handle's. Ownership: nodes borrow their texts from the version
 * that is open. Errors: -EINVAL with a sentence, -ENOMEM, -EMSGSIZE. Bounds: DOCUMENT_MAX_DEPTH.
 */
#ifndef PULLET_CLI_EXPORT_WRITE_H
#define PULLET_CLI_EXPORT_WRITE_H

#include "lib/pullet.h"
#include "document/document.h"
#include "document/flatten.h"

#define EXPORT_MAX_BYTES ((size_t)1 << 30) /* of what one command prints */

struct export_selection {
	char *const *prefixes; /* keys that begin with one of them; all when count is 0 */
	size_t count;
	const char *below; /* or: this key and what is below it, which becomes the root; else NULL
			    */
};

struct export_error {
	char message[FILE_WHY];
};

bool export_selected(const struct export_selection *s, const char *key, size_t key_len);
/* One value as a node, without children. Borrows the text. */
struct node export_node(const struct pullet_value *v);
/* Appends the selected keys, with the lists and maps they are in, as a document. A list of which
 * not all is selected closes its gaps. */
int export_tree(struct pullet *p, const struct export_selection *s, enum document_type type,
	struct buffer *out, struct export_error *ret_error);
/* Appends the selected keys that are no lists or maps, a line each, as flatten_values(). */
int export_flat(struct pullet *p, const struct export_selection *s, enum flatten_kind kind,
	const char *prefix, struct buffer *out, struct export_error *ret_error);

#endif

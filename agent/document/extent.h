/*
 * The size of a document in which each value has its whole path: a snapshot, a difference, an env
 * file. A few long keys above many values make it far larger than the pulled one, so it is counted
 * before anything is written.
 *
 * Threads: any. Ownership: none. Errors: -EMSGSIZE with a sentence. Bounds: numbers do not wrap: a
 * document has at most 2^30 bytes of keys, and 2^17 values.
 */
#ifndef PULLET_EXTENT_H
#define PULLET_EXTENT_H

#include <stdint.h>

#include "document/document.h"
#include "files/file.h"

struct extent {
	uint64_t values;      /* below the root */
	uint64_t paths;       /* bytes of their paths, each with its NUL */
	uint64_t leaf_paths;  /* those of single values */
	uint64_t image_bytes; /* of the snapshot, but for its version */
};

/* O(values + bytes of keys). */
void extent_measure(const struct node *root, struct extent *ret_extent);
/* Rejects more than max_bytes (settings/settings.h: max_made); what: the sentence's subject, "its
 * snapshot". 0 or -EMSGSIZE. */
int extent_check(const char *what, uint64_t bytes, uint64_t max_bytes, char why[FILE_WHY]);

#endif

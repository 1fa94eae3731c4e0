/*
 * A hash table of embedded links, chained by the hash of a key. It knows no keys: the caller
 *compares them.
 *
 *	for (struct index_link *l = index_first(&ix, hash); l; l = index_next(l))
 *		...the struct around l may be the one...
 *
 * Threads: one at a time. Ownership: links are borrowed and must be removed before they are freed;
 * index_fini() frees the table only. Errors: -ENOMEM. Bounds: memory; when the table cannot grow,
 * its chains do.
 */
#ifndef PULLET_INDEX_H
#define PULLET_INDEX_H

#include <stddef.h>
#include <stdint.h>

struct index_link { /* fields are private */
	struct index_link *next;
	uint64_t hash;
};

struct index { /* zeroed: empty; fields are private */
	struct index_link **buckets;
	size_t size, count;
};

/* Adds a link under its hash. 0 or -ENOMEM. */
int index_add(struct index *ix, struct index_link *link, uint64_t hash);
/* Removes a link, which must be in the table. */
void index_remove(struct index *ix, struct index_link *link);
/* The first link with the hash, and the next with the same one; NULL = there is none. */
struct index_link *index_first(const struct index *ix, uint64_t hash);
struct index_link *index_next(const struct index_link *link);
/* Removes and returns any link, NULL when the table is empty. *at is 0 at first; nothing may be
 * added meanwhile. */
struct index_link *index_take(struct index *ix, size_t *at);
void index_fini(struct index *ix);

#endif

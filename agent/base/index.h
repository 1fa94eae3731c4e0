/*
 * A hash table of things that are found by a key: links embedded in them, chained by the key's
 * hash. It knows nothing of keys: whoever looks compares them.
 *
 *	for (struct index_link *l = index_first(&ix, hash); l; l = index_next(l))
 *		...the struct around l may be the one...
 *
 * Threads: one at a time. Ownership: what is in it is borrowed, and must be removed before it goes;
 * index_fini() frees the table only. Errors: -ENOMEM. Bounds: none but memory; where a table cannot
 * grow, its chains do.
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

/* Takes in what has this hash. 0 or -ENOMEM. */
int index_add(struct index *ix, struct index_link *link, uint64_t hash);
/* It is in there. */
void index_remove(struct index *ix, struct index_link *link);
/* The first link with the hash, and the next with the same one; NULL = there is none. */
struct index_link *index_first(const struct index *ix, uint64_t hash);
struct index_link *index_next(const struct index_link *link);
/* Takes out one after the other; *at is 0 at first, and nothing is added meanwhile. NULL = it is
 * empty. */
struct index_link *index_take(struct index *ix, size_t *at);
void index_fini(struct index *ix);

#endif

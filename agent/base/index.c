/* Doubles the number of chains when there are as many links. Surprising: it never shrinks. */
#include "base/index.h"

#include <errno.h>
#include <stdlib.h>

#define LEAST 16

/* Fibonacci hashing: the lower bits of a hash may be poor. */
static struct index_link **index_bucket(const struct index *ix, uint64_t hash)
{
	return &ix->buckets[((hash * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (ix->size - 1)];
}

static void chain_link(struct index *ix, struct index_link *link)
{
	struct index_link **bucket = index_bucket(ix, link->hash);

	link->next = *bucket;
	*bucket = link;
}

static void grow_table(struct index *ix)
{
	struct index larger = {.size = ix->size ? 2 * ix->size : LEAST, .count = ix->count};

	larger.buckets = calloc(larger.size, sizeof(struct index_link *));
	if (!larger.buckets)
		return;
	for (size_t i = 0; i < ix->size; i++)
		for (struct index_link *link = ix->buckets[i], *next; link; link = next) {
			next = link->next;
			chain_link(&larger, link);
		}
	free(ix->buckets);
	*ix = larger;
}

int index_add(struct index *ix, struct index_link *link, uint64_t hash)
{
	if (ix->count >= ix->size)
		grow_table(ix);
	if (!ix->buckets)
		return -ENOMEM;
	link->hash = hash;
	chain_link(ix, link);
	ix->count++;
	return 0;
}

void index_remove(struct index *ix, struct index_link *link)
{
	struct index_link **at = index_bucket(ix, link->hash);

	while (*at != link)
		at = &(*at)->next;
	*at = link->next;
	ix->count--;
}

static struct index_link *skip_to_hash(struct index_link *link, uint64_t hash)
{
	while (link && link->hash != hash)
		link = link->next;
	return link;
}

struct index_link *index_first(const struct index *ix, uint64_t hash)
{
	return ix->buckets ? skip_to_hash(*index_bucket(ix, hash), hash) : NULL;
}

struct index_link *index_next(const struct index_link *link)
{
	return skip_to_hash(link->next, link->hash);
}

struct index_link *index_take(struct index *ix, size_t *at)
{
	struct index_link *link;

	while (*at < ix->size && !ix->buckets[*at])
		++*at;
	link = *at < ix->size ? ix->buckets[*at] : NULL;
	if (link)
		index_remove(ix, link);
	return link;
}

void index_fini(struct index *ix)
{
	free(ix->buckets);
	*ix = (struct index){.count = 0};
}

/*
 * Topics sorted by name. Surprising: the size of a trie is a sum over neighbours in that order. A
 * name has as many nodes of its own as it is longer than what it has in common with the one before
 * it; and where the two part, a table grows by the distance of their bytes.
 */
#include "push/kept_topics.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Of libzmq's generic_mtrie_t and glibc's malloc, on 64 bits. */
#define NODE 32
#define POINTER 16 /* of a table: 8, and the pieces that growing leaves behind */
#define TABLE 24
#define TOPIC 112 /* its set of subscribers, and this module's record beside the name */
#define HELD 64   /* a subscriber's entry in that set, and in its list here */

struct kept_topic {
	uint32_t holders;
	uint32_t cost; /* beside the one before it */
	uint32_t len;
	unsigned char name[];
};

/* ---- arrays ---- */

static int grow_array(struct kept_topic ***array, size_t count, size_t *room)
{
	size_t more = *room ? *room + *room / 2 : 8;
	struct kept_topic **grown;

	if (count < *room)
		return 0;
	grown = reallocarray(*array, more, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	*array = grown;
	*room = more;
	return 0;
}

static void insert_topic(struct kept_topic **array, size_t *count, size_t at, struct kept_topic *t)
{
	memmove(&array[at + 1], &array[at], (*count - at) * sizeof(*array));
	array[at] = t;
	++*count;
}

static void remove_topic(struct kept_topic **array, size_t *count, size_t at)
{
	--*count;
	memmove(&array[at], &array[at + 1], (*count - at) * sizeof(*array));
}

/* ---- the set ---- */

static int compare_name(const struct kept_topic *t, const unsigned char *name, size_t len)
{
	int order = memcmp(t->name, name, t->len < len ? t->len : len);

	return order ? order : (t->len > len) - (t->len < len);
}

/* Finds the first topic that is not before this name. */
static size_t find_position(const struct kept_topics *k, const unsigned char *name, size_t len)
{
	size_t low = 0, high = k->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_name(k->topics[middle], name, len) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* before: NULL = t is the first. */
static uint32_t topic_cost(const struct kept_topic *t, const struct kept_topic *before)
{
	size_t same = 0, shorter = before ? before->len : 0;
	uint32_t table = 0;

	if (shorter > t->len)
		shorter = t->len;
	while (same < shorter && t->name[same] == before->name[same])
		same++;
	if (same < shorter)
		table = TABLE + POINTER * (uint32_t)(t->name[same] - before->name[same]);
	return TOPIC + t->len + NODE * (t->len - (uint32_t)same) + table;
}

/* Updates the cost of a topic whose neighbour has changed. */
static void recount_cost(struct kept_topics *k, size_t at)
{
	if (at >= k->count)
		return;
	k->cost -= k->topics[at]->cost;
	k->topics[at]->cost = topic_cost(k->topics[at], at ? k->topics[at - 1] : NULL);
	k->cost += k->topics[at]->cost;
}

static struct kept_topic *find_or_add_kept(
	struct kept_topics *k, const unsigned char *name, size_t len)
{
	size_t at = find_position(k, name, len);
	struct kept_topic *t;

	if (at < k->count && compare_name(k->topics[at], name, len) == 0)
		return k->topics[at];
	if (grow_array(&k->topics, k->count, &k->room))
		return NULL;
	t = malloc(sizeof(*t) + len);
	if (!t)
		return NULL;
	*t = (struct kept_topic){.len = (uint32_t)len};
	memcpy(t->name, name, len);
	insert_topic(k->topics, &k->count, at, t);
	recount_cost(k, at);
	recount_cost(k, at + 1);
	return t;
}

static void release_topic(struct kept_topics *k, struct kept_topic *t)
{
	size_t at;

	if (t->holders)
		return;
	at = find_position(k, t->name, t->len);
	k->cost -= t->cost;
	remove_topic(k->topics, &k->count, at);
	recount_cost(k, at);
	free(t);
}

/* ---- holders ---- */

/* A holder's list is sorted by address. */
static size_t find_held_position(const struct kept_holder *h, const struct kept_topic *t)
{
	size_t low = 0, high = h->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if ((uintptr_t)h->topics[middle] < (uintptr_t)t)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int kept_topics_add(
	struct kept_topics *k, struct kept_holder *h, const unsigned char *name, size_t len)
{
	struct kept_topic *t;
	size_t at;

	if (grow_array(&h->topics, h->count, &h->room))
		return -ENOMEM;
	t = find_or_add_kept(k, name, len);
	if (!t)
		return -ENOMEM;
	at = find_held_position(h, t);
	if (at < h->count && h->topics[at] == t)
		return 0;
	insert_topic(h->topics, &h->count, at, t);
	t->holders++;
	k->held++;
	return 0;
}

void kept_topics_remove(
	struct kept_topics *k, struct kept_holder *h, const unsigned char *name, size_t len)
{
	size_t at = find_position(k, name, len);
	struct kept_topic *t = at < k->count ? k->topics[at] : NULL;

	if (!t || compare_name(t, name, len) != 0)
		return;
	at = find_held_position(h, t);
	if (at == h->count || h->topics[at] != t)
		return;
	remove_topic(h->topics, &h->count, at);
	t->holders--;
	k->held--;
	release_topic(k, t);
}

void kept_topics_leave(struct kept_topics *k, struct kept_holder *h)
{
	for (size_t i = 0; i < h->count; i++) {
		h->topics[i]->holders--;
		k->held--;
		release_topic(k, h->topics[i]);
	}
	free(h->topics);
	*h = (struct kept_holder){0};
}

size_t kept_topics_cost(const struct kept_topics *k)
{
	return k->cost + k->held * HELD;
}

size_t kept_holder_count(const struct kept_holder *h)
{
	return h->count;
}

size_t kept_topics_count(const struct kept_topics *k)
{
	return k->held;
}

size_t kept_topics_share(const struct kept_holder *h)
{
	size_t sum = h->count * HELD;

	for (size_t i = 0; i < h->count; i++)
		sum += h->topics[i]->cost / h->topics[i]->holders;
	return sum;
}

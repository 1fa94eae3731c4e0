/*
 * What libzmq keeps of the topics that subscribers have named: the memory of its trie, summed from
 * the names. A set of all topics, and who holds which: a topic that many hold costs little for
 * each.
 *
 * Threads: one at a time. Errors: -ENOMEM, and nothing has changed. Bounds: none here; what it
 * keeps itself is in the sum.
 */
#ifndef PULLET_KEPT_TOPICS_H
#define PULLET_KEPT_TOPICS_H

#include <stddef.h>
#include <stdint.h>

struct kept_topic;

struct kept_topics { /* zeroed = none; fields are private */
	struct kept_topic **topics;
	size_t count, room;
	size_t held; /* by anybody, each as often as it is held */
	size_t cost;
};

struct kept_holder { /* a subscriber; zeroed = it holds none; fields are private */
	struct kept_topic **topics;
	size_t count, room;
};

/* What is held already is not held twice. 0 or -ENOMEM. */
int kept_topics_add(
	struct kept_topics *k, struct kept_holder *h, const unsigned char *name, size_t len);
void kept_topics_remove(
	struct kept_topics *k, struct kept_holder *h, const unsigned char *name, size_t len);
/* All that it holds. */
void kept_topics_leave(struct kept_topics *k, struct kept_holder *h);
/* Bytes of memory, of all and of one: the shares of all add up to the whole, but for roundings. */
size_t kept_topics_cost(const struct kept_topics *k);
size_t kept_topics_share(const struct kept_holder *h);

#endif

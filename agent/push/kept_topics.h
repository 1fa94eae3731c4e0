/*
 * The memory that libzmq's trie takes for the topics of subscribers, summed from their names. A set
 * of all topics and their holders: a topic with many holders costs little for each.
 *
 * Threads: one at a time. Errors: -ENOMEM, and nothing has changed. Bounds: none here; this
 * module's own memory is in the sum.
 */
#ifndef PULLET_KEPT_TOPICS_H
#define PULLET_KEPT_TOPICS_H

#include <stddef.h>
#include <stdint.h>

struct kept_topic;

struct kept_topics { /* zeroed = none; fields are private */
	struct kept_topic **topics;
	size_t count, room;
	size_t held; /* holders of all topics */
	size_t cost;
};

struct kept_holder { /* a subscriber; zeroed = it holds none; fields are private */
	struct kept_topic **topics;
	size_t count, room;
};

/* A topic that h holds already is not added twice. 0 or -ENOMEM. */
int kept_topics_add(
	struct kept_topics *k, struct kept_holder *h, const unsigned char *name, size_t len);
void kept_topics_remove(
	struct kept_topics *k, struct kept_holder *h, const unsigned char *name, size_t len);
/* Removes all topics of h. */
void kept_topics_leave(struct kept_topics *k, struct kept_holder *h);
/* Topics of one holder; and of all holders, a topic once for each. */
size_t kept_holder_count(const struct kept_holder *h);
size_t kept_topics_count(const struct kept_topics *k);
/* Bytes of memory, of all and of one holder: the shares add up to the whole, but for roundings. */
size_t kept_topics_cost(const struct kept_topics *k);
size_t kept_topics_share(const struct kept_holder *h);

#endif

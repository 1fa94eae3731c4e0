/*
 * The topics of the push channel: found by name, hinted at, with the last number seen of each at
 * each endpoint.
 *
 * Threads: made by one, then owned by the push thread. Ownership: the push_topics are borrowed, and
 * stay in place as long as the table. Errors: NULL when there is no memory.
 */
#ifndef PULLET_PUSH_TOPICS_H
#define PULLET_PUSH_TOPICS_H

#include <stdatomic.h>

#include "base/sys.h"
#include "lib/trigger.h"
#include "push/message.h"

#define PUSH_MAX_TOPIC 255

struct push_topics;

/* One per config; the caller owns it and keeps it in place until subscriber_stop(), or a
 * subscriber_renew() without it. */
struct push_topic {
	const char *topic;
	struct trigger *trigger;
	uint64_t spread_ms;        /* a message may name a longer one */
	_Atomic uint64_t wanted;   /* hash of the version last promised; 0 = none. Set before the
				      hint */
	_Atomic uint64_t messages; /* received for this topic */
	_Atomic uint64_t heard_us; /* when the first of those that no run has taken came
				      (monotonic_us); 0 = there is none. Set before the hint */
	_Atomic bool
		pulled; /* the caller has begun a first pull, which may have missed a message */
};

enum push_seen { PUSH_UNKNOWN, PUSH_REPEATED, PUSH_NEXT, PUSH_GAP };

struct push_topics *push_topics_new(
	const struct sys *sys, struct push_topic *const *topics, size_t count, size_t endpoints);
void push_topics_free(struct push_topics *t);
/* Copies spread windows and seen numbers of the topics that are in both tables. */
void push_topics_follow(struct push_topics *t, const struct push_topics *before);

/* Returns the i-th name in their order, also of equal ones; NULL behind the last. */
const char *push_topics_name(const struct push_topics *t, size_t i);

/* Hints at all topics of that name for a message, unless it was seen before. */
enum push_seen push_topics_update(
	struct push_topics *t, size_t endpoint, const char *name, const struct push_message *m);
bool push_topics_has(const struct push_topics *t, const char *name);
/* Triggers every topic that has begun its first pull; the others are about to. */
void push_topics_hint_all(struct push_topics *t, uint64_t least_spread_ms);
/* Forgets the numbers seen at this endpoint. */
void push_topics_forget(struct push_topics *t, size_t endpoint);

#endif

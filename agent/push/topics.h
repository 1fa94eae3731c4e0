/*
 * The topics that the push channel knows: looked up by name, hinted at, and what was seen of each
 * at each endpoint.
 *
 * Threads: made by one, then handed to the push thread, whose it is. Ownership: the push_topics are
 * borrowed, and stay in place as long as the table. Errors: NULL when there is no memory.
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
	_Atomic bool pulled; /* the caller has begun a first pull: one may have missed a message */
};

enum push_seen { PUSH_UNKNOWN, PUSH_REPEATED, PUSH_NEXT, PUSH_GAP };

struct push_topics *push_topics_new(
	const struct sys *sys, struct push_topic *const *topics, size_t count, size_t endpoints);
void push_topics_free(struct push_topics *t);
/* Goes on where another table is: what both name has the same spread window, and was seen. */
void push_topics_follow(struct push_topics *t, const struct push_topics *before);

/* In the order of the names; of several with one name, each. NULL behind the last. */
const char *push_topics_name(const struct push_topics *t, size_t i);

/* A message came for a topic: hints at all of that name, unless it was seen before. */
enum push_seen push_topics_update(
	struct push_topics *t, size_t endpoint, const char *name, const struct push_message *m);
/* True: there is a topic of that name. */
bool push_topics_has(const struct push_topics *t, const char *name);
/* A message may have been lost: all pull, but those that have not pulled yet, who will anyway. */
void push_topics_hint_all(struct push_topics *t, uint64_t least_spread_ms);
/* Numbers begin again at this endpoint. */
void push_topics_forget(struct push_topics *t, size_t endpoint);

#endif

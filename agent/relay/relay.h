/*
 * What a relay knows and says: changes come in, from sources and from upstream publishers, and
 * update messages go out, with an epoch and sequence numbers of its own.
 *
 * Of each topic there is one last message. What comes while that still waits replaces it, so the
 * queue is as long as there are topics; a storm of changes is one message every RELAY_REST_MS.
 * Nothing is lost that the relay can know about: whatever leaves it in doubt (a source that cannot
 * say what changed; a gap, a new epoch, a new connection or silence upstream; a subscriber whose
 * queue is full; topics forgotten) leads to a new epoch, which makes every agent pull. A message
 * goes to all who want it or waits; when it has waited for RELAY_PATIENCE_MS, whoever is slow loses
 * it, and a new epoch comes with the next heartbeat. Who subscribes late gets the last message of
 * each of its topics, with the same number: others have it already and ignore it.
 *
 * No I/O but send(), and no clock but sys's. Threads: one. Errors: memory that is short is one more
 * doubt. Bounds: RELAY_MAX_*.
 */
#ifndef PULLET_RELAY_H
#define PULLET_RELAY_H

#include <stdbool.h>
#include <stdint.h>

#include "push/subscriber.h"
#include "push/message.h"
#include "base/sys.h"

#define RELAY_MAX_TOPICS 65536 /* then the oldest sixteenth is forgotten, with a new epoch */
#define RELAY_MAX_UPSTREAMS 16
#define RELAY_REST_MS 20    /* from one message of a topic to the next */
#define RELAY_EPOCH_MS 1000 /* from one epoch to the next, at least, for doubts */
/* How long a full queue holds up all messages; after a loss, others are waited for less. */
#define RELAY_PATIENCE_MS 1000
#define RELAY_IMPATIENCE_MS 125
#define RELAY_IMPATIENT_MS 10000
#define RELAY_RETRY_MS 5 /* looks whether a queue is full still */
/* What late subscribers get is gathered for so long, and comes in as many messages at a time. */
#define RELAY_JOIN_MS 100
#define RELAY_JOIN_BATCH 100

struct relay;

struct relay_options {
	uint64_t heartbeat_ms;
	uint64_t spread_ms; /* for messages that name none, and for epochs; 0 = none */
	unsigned upstreams; /* at most RELAY_MAX_UPSTREAMS */
};

/* Sends one message. strict: to all who want it, or to nobody and -EAGAIN if the queue of one of
 * them is full; else those lose it. 0 or -errno. */
typedef int (*relay_send)(void *arg, const char *topic, const struct push_message *m, bool strict);

/* NULL when there is no memory. */
struct relay *relay_new(
	const struct sys *sys, const struct relay_options *options, relay_send send, void *arg);
void relay_free(struct relay *r);
const char *relay_epoch(const struct relay *r);

/* The topic of a key or of a file's path: without the ending of its last segment. 0, or -EINVAL: no
 * agent can have it (empty, too long, a NUL in it, the heartbeat's). */
int relay_topic(const char *key, size_t len, char ret_topic[PUSH_MAX_TOPIC + 1]);

/* A source tells of a change. version: NULL = not known, or it is gone. */
void relay_changed(struct relay *r, const char *topic, const char *version);
/* Anything may have changed; where: the source, for the log. spread_ms: how long the agents may
 * take for it at least; 0 = as in the options. */
void relay_missed(struct relay *r, const char *cause, const char *where, uint64_t spread_ms);
/* An upstream publisher said this; topic as in relay_topic(), or the heartbeat's. A bare message or
 * a bad envelope is a zeroed m. where: its endpoint. */
void relay_heard(struct relay *r, unsigned upstream, const char *where, const char *topic,
	const struct push_message *m);
/* Somebody subscribed to what begins with prefix. */
void relay_joined(struct relay *r, const char *prefix);

/* Sends what is due, a batch at most. Returns when to call it again; after any of the calls above
 * it is to be called soon. */
uint64_t relay_turn(struct relay *r);

#endif

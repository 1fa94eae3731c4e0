/*
 * A relay's topics: changes come in, from sources and from upstream publishers, and update messages
 * go out, with an epoch and sequence numbers of its own.
 *
 * Each topic has one last message. A change replaces one that still waits, so the queue is as long
 * as there are topics; a storm of changes is one message every RELAY_PAUSE_MS. No change is lost
 * silently: each doubt (a source that cannot name the change; a gap, a new epoch, a new connection
 * or silence upstream; a subscriber whose queue is full; topics forgotten) leads to a new epoch,
 * which makes every agent pull. A message goes to all subscribers or waits; after RELAY_PATIENCE_MS
 * slow subscribers lose it, and a new epoch comes with the next heartbeat. A late subscriber gets
 * the last message of each of its topics, with the same number: others have it and ignore it. In a
 * circle of relays a change, or an epoch, ends after PUSH_MAX_HOPS of them, and that is logged.
 *
 * No I/O but send(), and no clock but sys's. Threads: one. Errors: too little memory is one more
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
#define RELAY_PAUSE_MS 20   /* from one message of a topic to the next */
#define RELAY_EPOCH_MS 1000 /* from one epoch to the next, at least, for doubts */
/* How long a full queue delays all messages, and how long for a while after a loss. */
#define RELAY_PATIENCE_MS 1000
#define RELAY_IMPATIENCE_MS 125
#define RELAY_IMPATIENT_MS 10000
#define RELAY_RETRY_MS 5 /* until a full queue is tried again */
/* Late subscribers' messages are collected for so long, and sent so many at a time. */
#define RELAY_JOIN_MS 100
#define RELAY_JOIN_BATCH 100

struct relay;

struct relay_counts { /* since the start, but for the last two */
	/* changes of sources and upstreams: dropped, or waiting, or sent as messages */
	uint64_t changes;
	uint64_t repeated;   /* dropped: an upstream sent it again for a late subscriber, */
	uint64_t superseded; /* a later one of its topic came while it waited, */
	uint64_t no_room;    /* no memory, or too many topics: a new epoch follows, */
	uint64_t circled;    /* it came through PUSH_MAX_HOPS relays */
	uint64_t messages;   /* sent */
	uint64_t heartbeats, repetitions; /* sent; repetitions: for late subscribers */
	uint64_t slow, failed; /* messages that subscribers lost: a queue was full; an error */
	/* new epochs: sources or upstreams in doubt, messages lost, topics forgotten */
	uint64_t doubts, losses, forgets;
	uint64_t topics;  /* now */
	uint64_t waiting; /* changes, now */
};

struct relay_options {
	uint64_t heartbeat_ms;
	uint64_t spread_ms; /* for messages that name none, and for epochs; 0 = none */
	unsigned upstreams; /* at most RELAY_MAX_UPSTREAMS */
};

/* Sends one message. strict: to all subscribers, or to none and -EAGAIN if a queue is full; else
 * subscribers with a full queue lose it. 0 or -errno. */
typedef int (*relay_send)(void *arg, const char *topic, const struct push_message *m, bool strict);

/* NULL when there is no memory. */
struct relay *relay_new(
	const struct sys *sys, const struct relay_options *options, relay_send send, void *arg);
void relay_free(struct relay *r);
const char *relay_epoch(const struct relay *r);
const struct relay_counts *relay_counts(const struct relay *r);

/* Makes the topic of a key or of a file's path: without the ending of its last segment. 0, or
 * -EINVAL: no agent can have it (empty, too long, a NUL in it, the heartbeat's). */
int relay_topic(const char *key, size_t len, char ret_topic[PUSH_MAX_TOPIC + 1]);

/* Queues a change of a source. version: NULL = not known, or removed. */
void relay_changed(struct relay *r, const char *topic, const char *version);
/* Notes that any topic may have changed. where: the source, for the log. spread_ms: over how long
 * the agents spread their pulls at least; 0 = as in the options. */
void relay_missed(struct relay *r, const char *cause, const char *where, uint64_t spread_ms);
/* Takes a message of an upstream publisher; topic as in relay_topic(), or the heartbeat's. A bare
 * message or an invalid envelope is a zeroed m. where: its endpoint. */
void relay_heard(struct relay *r, unsigned upstream, const char *where, const char *topic,
	const struct push_message *m);
/* Notes a new subscriber of all topics that begin with prefix. */
void relay_joined(struct relay *r, const char *prefix);

/* Sends messages that are due, a batch at most. Returns when to call it again; call it soon after
 * any of the calls above. */
uint64_t relay_turn(struct relay *r);

#endif

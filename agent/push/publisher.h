/*
 * The sending side of the push channel: a ZeroMQ XPUB socket, sequence numbers per topic,
 * heartbeats.
 *
 * Plain text is for this host; an endpoint that other hosts can reach needs a secret key (CURVE),
 * or `insecure`. With a key alone, each subscriber that knows the public key may connect; with a
 * list as well, only the keys on it. The list is checked when a subscriber connects, and read again
 * when its file has changed; connected subscribers stay. When it becomes unreadable, a line in the
 * log says so, and the last valid list counts.
 *
 * Threads: one owner, which calls publisher_poll() whenever publisher_fd() is readable: that also
 * answers whether a key may connect. Bounds: the memory that subscribers take in libzmq
 * (peer_guard.h): one over its limits is cut off, with a line in the log; 64 Ki topics (beyond,
 * numbers start again with a new epoch); the list as in crypto/curve_keys.h.
 */
#ifndef PULLET_PUBLISHER_H
#define PULLET_PUBLISHER_H

#include <stdbool.h>
#include <stdint.h>

#include "crypto/curve_keys.h"
#include "base/sys.h"
#include "push/peer_guard.h"

/* File descriptors: libzmq's 5 of a context (subscriber.h), one of the socket, one that listens,
 * and look-ups of interfaces and names at the start; two to wait at; with a list of keys 2 more;
 * and two subscribers. */
#define PUBLISHER_DESCRIPTORS (5 + 1 + 1 + 2 + 2 + 2 + 2)

struct publisher;
struct push_message;

struct publisher_options {           /* zeroed = plain text on this host only */
	const char *secret_key_file; /* see curve_keys.h; NULL = plain text */
	const char *allow_file;      /* list of public keys; NULL = all; only beside a secret key */
	bool insecure;               /* plain text may leave this host */
	int queue; /* messages kept for one subscriber; 0 = 1000, and the kernel's buffer */
};

/* Binds endpoint: tcp://HOST:PORT (PORT 0 or * = any), ipc://PATH, or HOST:PORT for tcp. The
 * options' texts are copied. 0; or -errno and a sentence. */
int publisher_open(const struct sys *sys, const char *endpoint,
	const struct publisher_options *options, struct publisher **ret_publisher,
	char why[CURVE_WHY]);
void publisher_close(struct publisher *p); /* sends what is queued for at most 1 s */
/* The endpoint as bound, with the real port. */
const char *publisher_endpoint(const struct publisher *p);
/* What subscribers need as server_key; "" = plain text. */
const char *publisher_public_key(const struct publisher *p);
/* Sends one update message: topic, next seq, version ("" or NULL = none), spread (0 = none). 0 or
 * -errno. */
int publisher_send(struct publisher *p, const char *topic, const char *version, uint64_t spread_ms);
int publisher_heartbeat(struct publisher *p);
/* Sends a message or heartbeat as it is, for a caller with numbers of its own. strict: to all
 * subscribers, or to none and -EAGAIN if a queue is full; else subscribers with a full queue lose
 * it, and all that follows until they have read half of their queue. 0 or -errno. */
int publisher_forward(
	struct publisher *p, const char *topic, const struct push_message *m, bool strict);
/* Counts of this publisher, since the start, and of its subscribers now. */
struct publisher_counts {
	uint64_t bytes;  /* of messages and heartbeats, once each however many get it */
	uint64_t denied; /* connections whose key is not on the list */
	uint64_t cuts;   /* subscribers cut off (peer_guard.h) */
	struct peer_guard_held held;
};
void publisher_get_counts(const struct publisher *p, struct publisher_counts *ret_counts);
/* Descriptor that becomes readable when subscribers or subscriptions come in (edge-triggered, as
 * ZMQ_FD): then call publisher_poll() until 0. */
int publisher_fd(const struct publisher *p);
/* Takes one subscription or cancellation: 1 and the topic prefix and whether it is a new
 * subscription, 0 when there is none, -errno. */
int publisher_poll(struct publisher *p, char *ret_prefix, size_t size, int *ret_subscribed);

#endif

/*
 * The sending side of the push channel: a ZeroMQ XPUB socket, sequence numbers per topic,
 * heartbeats.
 *
 * Used by `pullet serve` and `pullet publish`. libzmq is used here and in push.c only.
 * Threads: one owner. Bounds: 64 Ki topics (the oldest sequence number is then forgotten, with a
 * new epoch).
 */
#ifndef PULLET_PUBLISHER_H
#define PULLET_PUBLISHER_H

#include <stdint.h>

#include "sys.h"

struct publisher;

/* Binds endpoint: tcp://HOST:PORT (PORT 0 or * = any), ipc://PATH, or HOST:PORT for tcp. NULL with
 * errno set. */
struct publisher *publisher_open(const struct sys *sys, const char *endpoint);
void publisher_close(struct publisher *p); /* sends what is queued for at most 1 s */
/* The endpoint as bound, with the real port. */
const char *publisher_endpoint(const struct publisher *p);
/* Sends one update message: topic, next seq, version ("" or NULL = none), spread (0 = none). 0 or
 * -errno. */
int publisher_send(struct publisher *p, const char *topic, const char *version, uint64_t spread_ms);
int publisher_heartbeat(struct publisher *p);
/* Descriptor that becomes readable when subscriptions come in (edge-triggered, as ZMQ_FD): then
 * call publisher_poll() until 0. */
int publisher_fd(const struct publisher *p);
/* Takes one subscription or cancellation: 1 and the topic prefix and whether it is a new
 * subscription, 0 when there is none, -errno. */
int publisher_poll(struct publisher *p, char *ret_prefix, size_t size, int *ret_subscribed);

#endif

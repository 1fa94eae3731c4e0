/*
 * The push channel: one thread that owns the ZeroMQ SUB sockets and can do one thing, hint at a
 * trigger.
 *
 * A message is a hint that makes the agent pull now; it never carries configuration. See
 * message.h for its form. A gap in seq, a new epoch, a (re)connected publisher or three silent
 * heartbeats make all topics of that endpoint pull now; a socket that went deaf (libzmq never
 * reconnects after a protocol error) is replaced.
 *
 * Secured by CURVE where server_key is given: the publisher is known by that key, and what it sends
 * is encrypted. The agent shows its own key, or a new one for each connection. A handshake that
 * fails (a wrong key, a key that is not on the publisher's list, CURVE on one side only) is the
 * state PUSH_REFUSED: the socket is closed, tried again after a pause that grows, and the key's
 * file is read again then. So a repair on either side needs no restart.
 *
 * Threads: subscriber_start/renew/stop/status from the loop's. What crosses: trigger_hint(), and
 * per topic one atomic word, the hash of the version that the message promised (etag_hash()).
 * Bounds: PUSH_MAX_TOPIC bytes of topic, PUSH_MAX_ENVELOPE and a little more of a frame, as many
 * topics as configs, and 16 MiB of memory for one publisher (see peer_guard.h): beyond, the
 * connection is cut off, and made again after the pause.
 */
#ifndef PULLET_SUBSCRIBER_H
#define PULLET_SUBSCRIBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crypto/curve_keys.h"
#include "push/endpoint.h"
#include "push/topics.h"

/* File descriptors with n endpoints. libzmq: 5 of a context (its two threads have a mailbox and an
 * epoll each, its end a mailbox), one of each socket (2 to stop the thread; of an endpoint 3: SUB,
 * and both ends of its monitor). A wake-up of ours. Of an endpoint the connection, and the next one
 * or the look-up of its name. */
#define PUSH_DESCRIPTORS(n) (8 + 5 * (n))

struct subscriber;

/* Starts the thread "pullet-push". The endpoints' texts are copied. 0 or -errno; -EOPNOTSUPP when a
 * key is given and libzmq was built without CURVE. */
int subscriber_start(const struct sys *sys, const struct subscriber_endpoint *endpoints,
	size_t endpoint_count, struct push_topic *const *topics, size_t topic_count,
	struct subscriber **ret_push);
/* Replaces the topics; those of the same name keep their state, and connections stay. Waits until
 * the thread has let go of the old ones, at most for one message. 0 or -ENOMEM: nothing was
 * changed. */
int subscriber_renew(struct subscriber *p, struct push_topic *const *topics, size_t topic_count);
/* Ends the thread (within 200 ms) and frees; NULL is fine. */
void subscriber_stop(struct subscriber *p);

/* As subscriber_start(), for all messages of the endpoints. The listener is copied. */
int subscriber_listen(const struct sys *sys, const struct subscriber_endpoint *endpoints,
	size_t endpoint_count, const struct subscriber_listener *listener,
	struct subscriber **ret_push);
size_t subscriber_endpoint_count(const struct subscriber *p);
void subscriber_get_status(
	const struct subscriber *p, size_t endpoint, struct subscriber_status *ret_status);

/* Tells whether libzmq was built with CURVE. */
bool subscriber_has_curve(void);
/* Makes a pair of keys, as text; the public one can stand in a configuration as it is. 0, or
 * -EOPNOTSUPP as above. */
int subscriber_make_keys(char ret_public[CURVE_TEXT], char ret_secret[CURVE_TEXT]);
/* Library versions, for --version. */
const char *subscriber_version(void);

#endif

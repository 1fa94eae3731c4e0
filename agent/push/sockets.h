/*
 * The sockets of one endpoint, which feed its session: libzmq's XSUB, and the PAIR of its monitor.
 *
 * Threads: one at a time; the first open may be another thread's than all that follows. Ownership:
 * the caller's; context, session and topics are borrowed. Errors: -errno; -ETERM = the context
 * ends. Bounds: QUEUE messages of MAX_FRAME bytes in libzmq, see peer_guard.h; MAX_FILTERS.
 */
#ifndef PULLET_PUSH_SOCKETS_H
#define PULLET_PUSH_SOCKETS_H

#include "crypto/curve_keys.h"
#include "push/session.h"

struct push_sockets {                /* fields are private, but for the first three */
	void *socket, *monitor;      /* to poll; NULL = none */
	char public_key[CURVE_TEXT]; /* the agent's own; "" = a new one each time */
	void *context;
	struct session *session;
	unsigned made; /* so far */
	size_t bytes;  /* of the message that is being received */
};

/* There is no socket at first. */
void push_sockets_init(struct push_sockets *s, void *context, struct session *session);
/* Reads the agent's key, makes the sockets, and begins to connect. topics: NULL = all there are. 0,
 * also where the session was given up because of the key; or -errno. */
int push_sockets_open(struct push_sockets *s, const struct push_topics *topics);
void push_sockets_close(struct push_sockets *s);
/* Changes the filters from those of some topics to those of others. Without memory for that it
 * gives up the session. */
void push_sockets_follow(
	struct push_sockets *s, const struct push_topics *before, const struct push_topics *next);

/* Passes one message, or one event of the monitor, to the session, and closes when that says so. 1,
 * 0 when there is none, or -errno. */
int push_sockets_take_message(struct push_sockets *s);
int push_sockets_take_event(struct push_sockets *s);

#endif

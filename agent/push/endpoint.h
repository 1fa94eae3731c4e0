/*
 * One endpoint of the push channel as its users see it: what it is, what its state and counters
 * are, and what a listener gets from it.
 *
 * Types only. Texts are borrowed.
 */
#ifndef PULLET_PUSH_ENDPOINT_H
#define PULLET_PUSH_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "push/message.h"

#define PUSH_HANDSHAKE_MS 10000 /* then the sockets of both ends end it */

struct subscriber_endpoint {
	const char *endpoint;
	uint64_t heartbeat_ms;
	const char *server_key;      /* of the publisher; NULL = plain text */
	const char *secret_key_file; /* of the agent; NULL = a new key for each connection */
};

enum subscriber_state { PUSH_CONNECTING, PUSH_CONNECTED, PUSH_SILENT, PUSH_REFUSED };

struct subscriber_status { /* a snapshot of one endpoint's counters */
	const char *endpoint;
	enum subscriber_state state;
	const char *error; /* why it is refused or not connected; constant; NULL = it is neither */
	uint64_t messages, heartbeats, bad, gaps, epochs, connects, rebuilds, refused, cuts;
	uint64_t last_message_ms; /* monotonic; 0 = never; heartbeats count */
};

/* Gets all messages, in place of hints at triggers. Called by the push thread. */
struct subscriber_listener {
	/* Any update message or heartbeat; m is zeroed for a missing or invalid envelope. */
	void (*heard)(void *arg, size_t endpoint, const char *topic, const struct push_message *m);
	/* Messages may have been missed. cause: constant. */
	void (*missed)(void *arg, size_t endpoint, const char *cause);
	void *arg;
	bool relays; /* the log and errors have the words of `pullet relay`, not the agent's */
};

#endif

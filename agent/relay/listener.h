/*
 * The publishers that a relay listens to: hands messages over from the push thread to the loop.
 *
 * Threads: all from the loop's, and the calls come there; the push thread only fills the box.
 * Errors: -errno. Bounds: LISTENER_MAX_WAITING messages in the box; one more is reported as missed.
 */
#ifndef PULLET_LISTENER_H
#define PULLET_LISTENER_H

#include "base/loop.h"
#include "push/subscriber.h"
#include "push/message.h"

#define LISTENER_MAX_WAITING 16384

struct listener;

/* As subscriber_listener's, in the order of the messages. */
struct listener_calls {
	void (*heard)(void *arg, size_t endpoint, const char *topic, const struct push_message *m);
	void (*missed)(void *arg, size_t endpoint, const char *cause);
};

/* Connects to all endpoints. It takes the loop's loop_on_wake() for itself. The endpoints' texts
 * are copied, the calls are borrowed. 0 or -errno, as subscriber_start(). */
int listener_start(struct loop *l, const struct subscriber_endpoint *endpoints, size_t count,
	const struct listener_calls *calls, void *arg, struct listener **ret_upstream);
/* The state and counters of one endpoint. */
void listener_get_status(
	const struct listener *u, size_t endpoint, struct subscriber_status *ret_status);
/* Accepts NULL. Drops what is in the box. */
void listener_stop(struct listener *u);

#endif

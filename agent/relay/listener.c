/*
 * A box between two threads. Surprising: the loop takes all letters at once, by swapping lists, so
 * that the push thread never waits for the work on them.
 */
#include "relay/listener.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

struct letter {
	STAILQ_ENTRY(letter) next;
	size_t endpoint;
	const char *missed; /* why; NULL = a message */
	struct push_message m;
	char topic[];
};

STAILQ_HEAD(letters, letter);

struct listener {
	struct loop *loop;
	const struct listener_calls *calls;
	void *arg;
	struct subscriber *push;
	pthread_mutex_t lock; /* of what follows */
	struct letters box;
	unsigned count;
	bool overflown; /* a letter did not fit */
};

/* Takes the letter; NULL counts as one that did not fit. */
static void post_letter(struct listener *u, struct letter *letter)
{
	bool first;

	pthread_mutex_lock(&u->lock);
	first = u->count == 0 && !u->overflown;
	if (letter && u->count < LISTENER_MAX_WAITING) {
		STAILQ_INSERT_TAIL(&u->box, letter, next);
		u->count++;
		letter = NULL;
	} else {
		u->overflown = true;
	}
	pthread_mutex_unlock(&u->lock);
	free(letter);
	if (first)
		loop_wake(u->loop);
}

static void message_heard(
	void *arg, size_t endpoint, const char *topic, const struct push_message *m)
{
	size_t len = strlen(topic) + 1;
	struct letter *letter = malloc(sizeof(*letter) + len);

	if (letter) {
		*letter = (struct letter){.endpoint = endpoint, .m = *m};
		memcpy(letter->topic, topic, len);
	}
	post_letter(arg, letter);
}

static void messages_missed(void *arg, size_t endpoint, const char *cause)
{
	struct letter *letter = malloc(sizeof(*letter));

	if (letter)
		*letter = (struct letter){.endpoint = endpoint, .missed = cause};
	post_letter(arg, letter);
}

static void empty_box(struct listener *u, bool deliver)
{
	struct letters all = STAILQ_HEAD_INITIALIZER(all);
	struct letter *letter;
	bool overflown;

	pthread_mutex_lock(&u->lock);
	STAILQ_CONCAT(&all, &u->box);
	u->count = 0;
	overflown = u->overflown;
	u->overflown = false;
	pthread_mutex_unlock(&u->lock);
	while ((letter = STAILQ_FIRST(&all))) {
		STAILQ_REMOVE_HEAD(&all, next);
		if (deliver && letter->missed)
			u->calls->missed(u->arg, letter->endpoint, letter->missed);
		else if (deliver)
			u->calls->heard(u->arg, letter->endpoint, letter->topic, &letter->m);
		free(letter);
	}
	if (deliver && overflown)
		u->calls->missed(u->arg, 0, "too many messages at once");
}

static void box_filled(void *arg)
{
	empty_box(arg, true);
}

int listener_start(struct loop *l, const struct subscriber_endpoint *endpoints, size_t count,
	const struct listener_calls *calls, void *arg, struct listener **ret_upstream)
{
	struct listener *u = calloc(1, sizeof(*u));
	const struct subscriber_listener listener = {message_heard, messages_missed, u, true};
	int r;

	if (!u)
		return -ENOMEM;
	u->loop = l;
	u->calls = calls;
	u->arg = arg;
	STAILQ_INIT(&u->box);
	pthread_mutex_init(&u->lock, NULL);
	loop_on_wake(l, box_filled, u);
	r = subscriber_listen(loop_sys(l), endpoints, count, &listener, &u->push);
	if (r)
		listener_stop(u);
	else
		*ret_upstream = u;
	return r;
}

void listener_get_status(
	const struct listener *u, size_t endpoint, struct subscriber_status *ret_status)
{
	subscriber_get_status(u->push, endpoint, ret_status);
}

void listener_stop(struct listener *u)
{
	if (!u)
		return;
	subscriber_stop(u->push);
	loop_on_wake(u->loop, NULL, NULL);
	empty_box(u, false);
	pthread_mutex_destroy(&u->lock);
	free(u);
}

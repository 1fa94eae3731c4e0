/*
 * The push channel, listened to for a while by the agent's own code. Surprising: an endpoint that
 * connects and is silent is no error: a publisher need not send heartbeats.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "push/subscriber.h"
#include "cli/doctor/doctor.h"

#define LOOK_MS 100 /* between two looks at the counters of the push thread */
#define MAX_WAIT_MS 10000

struct ear {
	struct doctor *d;
	struct subscriber *push;
	struct subscriber_endpoint *endpoints;
	uint64_t *until_ms; /* each: then nothing more is expected of it */
	size_t count;
	struct loop_timer timer;
};

/* The status is what counts. */
static void ignore_message(
	void *arg, size_t endpoint, const char *topic, const struct push_message *m)
{
	(void)arg, (void)endpoint, (void)topic, (void)m;
}

static bool has_answered(const struct ear *e, size_t i, uint64_t now_ms)
{
	struct subscriber_status s;

	subscriber_get_status(e->push, i, &s);
	return s.heartbeats || s.messages || s.state == PUSH_REFUSED || now_ms >= e->until_ms[i];
}

static void check_endpoints(void *arg)
{
	struct ear *e = arg;
	uint64_t now_ms = loop_now_ms(e->d->loop);
	bool settled = true;

	for (size_t i = 0; i < e->count; i++)
		settled = has_answered(e, i, now_ms) && settled;
	if (settled)
		loop_stop(e->d->loop);
	else
		loop_timer_set(e->d->loop, &e->timer, now_ms + LOOK_MS);
}

/* ---- what it came to ---- */

static void report_endpoint(
	const struct ear *e, size_t i, uint64_t waited_ms, struct doctor_list *l)
{
	uint64_t heartbeats = waited_ms / e->endpoints[i].heartbeat_ms;
	struct subscriber_status s;

	subscriber_get_status(e->push, i, &s);
	if (s.state == PUSH_REFUSED)
		doctor_add(l, DOCTOR_ERROR, s.endpoint,
			"put the keys right here or there (FILE.pub beside a secret key has the "
			"public one); no restart is needed",
			"refused: %s", s.error ? s.error : "the handshake failed");
	else if (s.connects == 0)
		doctor_add(l, DOCTOR_ERROR, s.endpoint,
			"check name, port, firewall, and whether the publisher runs; until then "
			"changes are seen at the interval",
			"no connection: %s", s.error ? s.error : "nobody answers there");
	else if (s.heartbeats)
		doctor_add(l, DOCTOR_OK, s.endpoint, NULL, "connected, and a heartbeat came");
	else if (s.messages)
		doctor_add(l, DOCTOR_OK, s.endpoint, NULL, "connected, and a message came");
	else if (heartbeats >= 3)
		doctor_add(l, DOCTOR_NOTE, s.endpoint,
			"let the publisher send the topic pullet.heartbeat that often, as pullet "
			"serve and relay do, or set heartbeat to what it does",
			"connected, but no heartbeat came in %" PRIu64
			" ms, three times what is configured: a publisher that hangs is not "
			"noticed",
			waited_ms);
	else
		doctor_add(l, DOCTOR_OK, s.endpoint, NULL, "connected");
}

/* Those that we can listen to as the agent would. */
static void choose_endpoints(struct ear *e, struct doctor_list *l)
{
	const struct settings *s = e->d->settings;
	uint64_t now_ms = loop_now_ms(e->d->loop);

	for (size_t i = 0; i < s->push_count; i++) {
		const struct settings_push *p = &s->push[i];
		uint64_t wait_ms = 3 * p->heartbeat_ms + 500;

		if (p->secret_key_file && doctor_is_unreadable(e->d, p->secret_key_file)) {
			doctor_add(l, DOCTOR_NOTE, p->endpoint,
				"run this as root or as the agent's user",
				"not looked at: you may not read the secret key");
			continue;
		}
		if (wait_ms > MAX_WAIT_MS)
			wait_ms = MAX_WAIT_MS;
		if (wait_ms > e->d->timeout_ms)
			wait_ms = e->d->timeout_ms;
		e->until_ms[e->count] = now_ms + wait_ms;
		e->endpoints[e->count++] = (struct subscriber_endpoint){
			p->endpoint, p->heartbeat_ms, p->server_key, p->secret_key_file};
	}
}

static const char *find_listen_remedy(int error)
{
	switch (error) {
	case EOPNOTSUPP:
		return "install a libzmq that has CURVE";
	case EPERM:
	case ENOSYS:
		return "allow sched_setscheduler() in the sandbox (seccomp), here and for the "
		       "agent; in a unit, SystemCallFilter=sched_setscheduler";
	default:
		return "look at memory and the limit of open files";
	}
}

void doctor_push(struct doctor *d, struct doctor_list *l)
{
	static const struct subscriber_listener listener = {.heard = ignore_message};
	struct ear e = {.d = d};
	uint64_t begun_ms = loop_now_ms(d->loop);
	size_t n = d->settings->push_count;
	int r;

	if (n == 0)
		return;
	e.endpoints = calloc(n, sizeof(*e.endpoints));
	e.until_ms = calloc(n, sizeof(*e.until_ms));
	r = e.endpoints && e.until_ms ? 0 : -ENOMEM;
	if (r == 0)
		choose_endpoints(&e, l);
	if (r == 0 && e.count)
		r = subscriber_listen(&sys_real, e.endpoints, e.count, &listener, &e.push);
	if (r) {
		doctor_add(l, DOCTOR_ERROR, "push", find_listen_remedy(-r),
			"cannot be listened to: %s", strerror(-r));
	} else if (e.count) {
		loop_timer_init(&e.timer, check_endpoints, &e);
		loop_timer_set(d->loop, &e.timer, begun_ms);
		loop_run(d->loop);
		for (size_t i = 0; i < e.count; i++)
			report_endpoint(&e, i, loop_now_ms(d->loop) - begun_ms, l);
	}
	subscriber_stop(e.push);
	free(e.endpoints);
	free(e.until_ms);
}

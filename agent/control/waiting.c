/* Clients that wait for a run, a change or a version, each in its user's share of the places. */
#include "control/waiting.h"

#include "control/query.h"
#include "control/reply.h"
#include "httpd/share.h"

#define MAX_WAIT_MS 3600000u
#define WAIT_MS 60000u

void waiting_end(struct waiting *w)
{
	loop_timer_cancel(w->room->loop, &w->limit);
	config_wait_cancel(w->config, &w->waiter);
	w->request = NULL;
}

void waiting_timed_out(void *arg)
{
	struct waiting *w = arg;
	struct httpd_request *r = w->request;

	waiting_end(w);
	reply_error(r, 504, "timed out: the request continues");
}

static void waiter_gone(void *arg)
{
	waiting_end(arg);
}

/* A free place to wait in, if the user's share has one. */
static struct waiting *find_waiting(struct waiting_room *room, const struct peer *peer)
{
	struct share_held held = {0};
	struct waiting *found = NULL;

	for (size_t i = 0; i < WAITING_MAX; i++) {
		struct waiting *w = &room->places[i];

		if (w->request)
			share_add(&held, peer, &w->peer, 1);
		else if (!found)
			found = w;
	}
	return share_check(WAITING_MAX, peer, &held, 1) == SHARE_ROOM ? found : NULL;
}

struct waiting *waiting_begin(struct waiting_room *room, struct httpd_request *r,
	struct config *config, void (*ended)(void *arg, struct config *c),
	void (*passed)(void *arg))
{
	struct waiting *w;
	struct peer peer;
	uint64_t timeout_ms;

	if (!query_number(r, "timeout_ms", WAIT_MS, &timeout_ms))
		return NULL;
	httpd_peer(r, &peer);
	w = find_waiting(room, &peer);
	if (!w) {
		room->refused(room->arg, &peer);
		reply_error(r, 503, "too many clients wait already: try again, or without waiting");
		return NULL;
	}
	if (timeout_ms > MAX_WAIT_MS)
		timeout_ms = MAX_WAIT_MS;
	*w = (struct waiting){.room = room, .request = r, .peer = peer, .config = config};
	w->waiter.ended = ended;
	w->waiter.arg = w;
	w->limit_ms = timeout_ms;
	loop_timer_init(&w->limit, passed, w);
	loop_timer_set(room->loop, &w->limit, loop_now_ms(room->loop) + timeout_ms);
	httpd_on_gone(r, waiter_gone, w);
	return w;
}

void waiting_forget(struct waiting_room *room, const struct config *config, bool gone)
{
	for (size_t i = 0; i < WAITING_MAX; i++) {
		struct waiting *w = &room->places[i];
		struct httpd_request *r = w->request;

		if (!r || w->config != config)
			continue;
		waiting_end(w);
		reply_error(r, gone ? 404 : 409,
			gone ? "the config was removed from the configuration"
			     : "the config was recreated by a new configuration");
	}
}

void waiting_stop(struct waiting_room *room)
{
	for (size_t i = 0; i < WAITING_MAX; i++)
		if (room->places[i].request)
			waiting_end(&room->places[i]);
}

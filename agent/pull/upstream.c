/*
 * The queue of one server, and its addresses.
 *
 * Surprising: an address that did not answer backs off at least as long as it kept a pull waiting,
 * else every other pull would wait for it. Failover and backoff are one mechanism: a server with a
 * single address is only the case where all pulls wait for that one.
 */
#include "pull/upstream.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/curve_keys.h"
#include "pull/credentials.h"
#include "base/hash.h"
#include "base/log.h"

struct address {
	const char *url; /* of the settings */
	uint64_t rank;   /* lower ones first, on this host */
};

struct upstream {
	struct loop *loop;
	const struct settings_server *settings;
	struct dispatcher dispatcher;
	struct loop_timer timer; /* when the queue has work again */
	size_t tasks;            /* that have joined */
	uint64_t longest_ms;     /* interval of the tasks queued since the queue was empty */
	unsigned in_flight;
	bool handing_out, held;
	struct log_limit log_limit;
	struct outage outage;
	struct exchange_session session;
	size_t count;
	struct backoff **backoffs; /* of the addresses */
	struct address addresses[];
};

/* ---- addresses ---- */

static int compare_ranks(const void *a, const void *b)
{
	const struct address *x = a, *y = b;

	return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Every host has an order of its own, and keeps it when an address is added ("rendezvous hashing",
 * Thaler and Ravishankar 1998). */
static void order_addresses(struct upstream *s)
{
	uint64_t host = loop_sys(s->loop)->host();

	for (size_t i = 0; i < s->count; i++) {
		s->addresses[i].url = s->settings->urls[i];
		s->addresses[i].rank = hash_bytes(
			hash_bytes(HASH_START, s->addresses[i].url, strlen(s->addresses[i].url)),
			&host, sizeof(host));
	}
	qsort(s->addresses, s->count, sizeof(s->addresses[0]), compare_ranks);
}

static size_t best_address(const struct upstream *s, uint64_t now_ms, size_t first, size_t skip,
	uint64_t *ret_until_ms)
{
	return backoff_pick(s->backoffs, s->count, first, skip, now_ms, ret_until_ms);
}

/* 0 when some address is ready, else the moment when the first one will be. */
static uint64_t held_until_ms(const struct upstream *s, uint64_t now_ms)
{
	uint64_t until_ms;

	best_address(s, now_ms, 0, BACKOFF_NONE, &until_ms);
	return until_ms;
}

/* ---- log ---- */

static const char *upstream_name(const struct upstream *s)
{
	return s->settings->name ? s->settings->name : s->settings->urls[0];
}

static void log_held(struct upstream *s, uint64_t now_ms, uint64_t until_ms)
{
	unsigned suppressed;

	if (s->held && s->outage.failing) /* the configs say that it goes on */
		return;
	if (!log_limit_pass(&s->log_limit, now_ms, "held", &suppressed))
		return;
	s->held = true;
	log_warn("server in backoff: pulls deferred", "server", upstream_name(s), "backoff_ms",
		LOG_U64(until_ms - now_ms), "repeated", suppressed ? LOG_U64(suppressed) : NULL);
}

/* Logs what follows from an address's backoff; its cause is logged by the config whose pull failed.
 */
static void log_address_backoff(struct upstream *s, size_t i)
{
	uint64_t now_ms = loop_now_ms(s->loop), until_ms = held_until_ms(s, now_ms),
		 backoff_ms = backoff_until(s->backoffs[i], now_ms);
	const char *url = s->addresses[i].url;
	unsigned suppressed;

	if (backoff_ms && until_ms)
		log_held(s, now_ms, until_ms);
	else if (backoff_ms && log_limit_pass(&s->log_limit, now_ms, url, &suppressed))
		log_warn("address in backoff: using another one", "server", s->settings->name,
			"url", url, "why", s->backoffs[i]->error, "backoff_ms",
			LOG_U64(backoff_ms - now_ms));
}

/* ---- the queue ---- */

static void start_task(struct upstream *s, const struct dispatcher_item *item, uint64_t now_ms)
{
	struct upstream_task *t = item->task;
	size_t first = now_ms < t->away_ms ? t->first : 0, address;
	uint64_t until_ms;

	if (t->again) /* the next one: one before it may have had a very short backoff */
		address = best_address(s, now_ms, t->address + 1u, t->address, &until_ms);
	else
		address = best_address(s, now_ms, first, BACKOFF_NONE, &until_ms);
	t->address = (unsigned char)address; /* below SETTINGS_MAX_URLS */
	t->since_ms = item->since_ms;
	t->expires_ms = item->expires_ms;
	t->waiting = t->again = false;
	loop_timer_cancel(s->loop, &t->patience);
	t->started_ms = now_ms;
	t->tries++;
	s->in_flight++;
	if (!t->slot_ready(t->arg))
		s->in_flight--;
}

static void hand_out_slots(struct upstream *s)
{
	struct dispatcher_item items[SETTINGS_MAX_IN_FLIGHT];
	uint64_t now_ms = loop_now_ms(s->loop), due_ms;
	size_t n;

	if (s->handing_out) /* called by a task that begins: the outer round goes on */
		return;
	s->handing_out = true;
	do {
		dispatcher_hold(&s->dispatcher, held_until_ms(s, now_ms));
		n = dispatcher_take(
			&s->dispatcher, now_ms, s->settings->max_in_flight - s->in_flight, items);
		for (size_t i = 0; i < n; i++) {
			const struct upstream_task *t = items[i].task;

			if (t->waiting) /* not withdrawn by one that was begun before it */
				start_task(s, &items[i], now_ms);
		}
	} while (n);
	s->handing_out = false;
	if (s->in_flight < s->settings->max_in_flight && dispatcher_next(&s->dispatcher, &due_ms))
		loop_timer_set(s->loop, &s->timer, due_ms);
	else
		loop_timer_cancel(s->loop, &s->timer);
}

static void timer_due(void *arg)
{
	hand_out_slots(arg);
}

static void task_lost(void *arg, void *task, enum dispatcher_loss why)
{
	struct upstream_task *t = task;

	(void)arg;
	if (why == DISPATCHER_OVERRIDDEN)
		return; /* by newer work of the same config, which is the same task */
	assert(why == DISPATCHER_EXPIRED); /* there is room for all that have joined */
	t->waiting = false;
	loop_timer_cancel(t->server->loop, &t->patience);
	t->slot_lost(t->arg, "not pulled: the server did not take it in time");
}

/* Doubles: the whole queue is copied each time. */
int upstream_join(struct upstream *s)
{
	uint32_t room = s->dispatcher.limits.max_pending;

	if (s->tasks >= room && dispatcher_grow(&s->dispatcher, 2 * room))
		return -ENOMEM;
	s->tasks++;
	return 0;
}

void upstream_leave(struct upstream *s)
{
	s->tasks--;
}

static uint64_t task_id(const struct upstream_task *t)
{
	return (uint64_t)(uintptr_t)t;
}

/* At the front: as old as it is. */
static void queue_again(struct upstream *s, struct upstream_task *t)
{
	const struct dispatcher_item item = {task_id(t), t, t->since_ms, t->expires_ms};

	dispatcher_retry(&s->dispatcher, loop_now_ms(s->loop), &item, 1);
}

/* A task is lost the moment it expires, whether a slot is free or not. When our own backoffs have
 * kept it waiting for as long as they may, it goes first, unless the server asked for more. */
static void patience_ends(void *arg)
{
	struct upstream_task *t = arg;
	struct upstream *s = t->server;
	uint64_t now_ms = loop_now_ms(s->loop);

	if (t->expires_ms <= now_ms) {
		dispatcher_expire(&s->dispatcher, task_id(t));
		return;
	}
	if (t->expires_ms != DISPATCHER_NEVER)
		loop_timer_set(s->loop, &t->patience, t->expires_ms);
	if (!held_until_ms(s, now_ms))
		return; /* it waits for a slot */
	dispatcher_cancel(&s->dispatcher, task_id(t));
	queue_again(s, t);
	upstream_lift(s);
}

static void limit_backoffs(struct upstream *s, uint64_t longest_ms)
{
	for (size_t i = 0; longest_ms && i < s->count; i++)
		backoff_limit(s->backoffs[i], longest_ms);
}

static void enter_waiting(struct upstream *s, struct upstream_task *t)
{
	if (!t->patience.due)
		loop_timer_init(&t->patience, patience_ends, t);
	t->server = s;
	t->waiting = true;
	if (!dispatcher_pending(&s->dispatcher))
		s->longest_ms = 0;
	if (t->interval_ms > s->longest_ms)
		s->longest_ms = t->interval_ms;
	limit_backoffs(s, s->longest_ms);
}

void upstream_submit(struct upstream *s, struct upstream_task *t, uint64_t expires_ms)
{
	uint64_t now_ms = loop_now_ms(s->loop), until_ms, patience_ms = expires_ms;

	enter_waiting(s, t);
	t->tries = 0;
	t->since_ms = now_ms;
	t->expires_ms = expires_ms;
	dispatcher_submit(&s->dispatcher, now_ms, task_id(t), t, expires_ms);
	hand_out_slots(s);
	if (!t->waiting)
		return;
	if (t->latest_ms && t->latest_ms < expires_ms)
		patience_ms = t->latest_ms;
	if (patience_ms != DISPATCHER_NEVER)
		loop_timer_set(s->loop, &t->patience, patience_ms);
	until_ms = held_until_ms(s, now_ms);
	if (until_ms && !s->held)
		log_held(s, now_ms, until_ms);
}

void upstream_withdraw(struct upstream *s, struct upstream_task *t)
{
	t->waiting = false;
	if (t->patience.due)
		loop_timer_cancel(s->loop, &t->patience);
	dispatcher_cancel(&s->dispatcher, task_id(t));
}

void upstream_retry(struct upstream *s, struct upstream_task *t)
{
	t->waiting = t->again = true;
	queue_again(s, t);
	hand_out_slots(s);
}

void upstream_avoid(struct upstream *s, struct upstream_task *t)
{
	t->first = (unsigned char)((t->address + 1u) % s->count);
	t->away_ms = loop_now_ms(s->loop) + UPSTREAM_AWAY_MS;
}

/* ---- how it went ---- */

static void note_recovery(struct upstream *s, size_t i)
{
	if (!s->held)
		return;
	s->held = false;
	memset(&s->log_limit, 0, sizeof(s->log_limit));
	log_info("the server answers again", "server", s->settings->name, "url",
		s->addresses[i].url);
}

struct outage *upstream_outage(struct upstream *s)
{
	s->outage.server = upstream_name(s);
	return &s->outage;
}

bool upstream_fails(const struct upstream *s, const struct upstream_task *t)
{
	return s->backoffs[t->address]->error != NULL;
}

void upstream_dropped(struct upstream *s)
{
	s->in_flight--;
	/* the next task begins in a turn of its own: the caller is in the middle of ending a run */
	if (dispatcher_pending(&s->dispatcher))
		loop_timer_set(s->loop, &s->timer, loop_now_ms(s->loop));
}

bool upstream_deferred(struct upstream *s, struct upstream_task *t)
{
	uint64_t until_ms;

	upstream_dropped(s);
	best_address(s, loop_now_ms(s->loop), 0, t->address, &until_ms);
	return !until_ms && t->tries < s->count;
}

bool upstream_ended(
	struct upstream *s, struct upstream_task *t, const struct http_client_response *response)
{
	struct backoff *b = s->backoffs[t->address];
	enum backoff_health health = BACKOFF_SILENT;

	limit_backoffs(s, t->interval_ms > s->longest_ms ? t->interval_ms : s->longest_ms);
	if (response)
		health = backoff_ended(b, t->started_ms, response);
	/* for a single slow address the supervisor slows each config down */
	if (health == BACKOFF_SILENT && s->count > 1)
		backoff_kept_waiting(b, t->started_ms);
	if (health == BACKOFF_WELL)
		note_recovery(s, t->address);
	else if (health != BACKOFF_UNASKED)
		log_address_backoff(s, t->address);
	/* a fault of this host would fail at any other address too */
	return upstream_deferred(s, t) && health != BACKOFF_WELL && health != BACKOFF_UNASKED;
}

void upstream_lift(struct upstream *s)
{
	for (size_t i = 0; i < s->count; i++)
		backoff_lift(s->backoffs[i]);
	hand_out_slots(s);
}

struct backoff *upstream_backoff(const struct upstream *s, const struct upstream_task *t)
{
	return s->backoffs[t->address];
}

const char *upstream_url(const struct upstream *s, const struct upstream_task *t)
{
	return s->addresses[t->address].url;
}

int upstream_find(const struct upstream *s, const char *url, const char *path)
{
	for (size_t i = 0; i < s->count; i++) {
		size_t len = strlen(s->addresses[i].url);

		if (!strncmp(url, s->addresses[i].url, len) && !strcmp(url + len, path))
			return (int)i;
	}
	return -1;
}

/* ---- outside ---- */

const struct settings_server *upstream_settings(const struct upstream *s)
{
	return s->settings;
}

struct exchange_session *upstream_session(struct upstream *s)
{
	return &s->session;
}

void upstream_status(const struct upstream *s, struct upstream_status *ret_status)
{
	uint64_t now_ms = loop_now_ms(s->loop), until_ms = held_until_ms(s, now_ms);

	*ret_status = (struct upstream_status){
		.name = s->settings->name,
		.address_count = s->count,
		.in_flight = s->in_flight,
		.pending = dispatcher_pending(&s->dispatcher),
		.backoff_ms = until_ms ? until_ms - now_ms : 0,
		.counters = &s->dispatcher.counters,
	};
}

void upstream_address_status(
	const struct upstream *s, size_t address, struct upstream_address_status *ret_status)
{
	const struct backoff *b = s->backoffs[address];
	uint64_t now_ms = loop_now_ms(s->loop), until_ms = backoff_until(b, now_ms);

	*ret_status = (struct upstream_address_status){
		.url = s->addresses[address].url,
		.error = b->error ? b->error : "",
		.backoff_ms = until_ms ? until_ms - now_ms : 0,
		.in_a_row = b->shaper.in_a_row,
		.congestion = b->shaper.count[SHAPER_CONGESTION],
		.network = b->shaper.count[SHAPER_NETWORK],
		.advised = b->shaper.advised,
	};
}

static void warn_of_plain_secrets(const struct upstream *s)
{
	bool secrets = s->settings->bearer_file || s->settings->user || s->settings->header_count;

	for (size_t i = 0; secrets && i < s->count; i++)
		if (curve_url_is_open(s->addresses[i].url))
			log_warn("secrets go to this address without TLS: anyone on the way can "
				 "read them",
				"server", s->settings->name, "url", s->addresses[i].url);
}

static int join_backoffs(struct upstream *s, struct backoffs *all)
{
	s->backoffs = calloc(s->count, sizeof(struct backoff *));
	for (size_t i = 0; s->backoffs && i < s->count; i++) {
		s->backoffs[i] = backoff_join(all, s->settings, s->addresses[i].url);
		if (!s->backoffs[i])
			return -ENOMEM;
	}
	return s->backoffs ? 0 : -ENOMEM;
}

struct upstream *upstream_new(
	struct loop *l, struct backoffs *backoffs, const struct settings_server *settings)
{
	const struct dispatcher_limits limits = {
		.max_pending = 1,
		.max_batch = settings->max_in_flight,
		.max_delay_ms = 0,
	};
	struct upstream *s = calloc(1, sizeof(*s) + settings->url_count * sizeof(s->addresses[0]));

	if (!s)
		return NULL;
	s->loop = l;
	s->settings = settings;
	s->count = settings->url_count;
	loop_timer_init(&s->timer, timer_due, s);
	order_addresses(s);
	if (dispatcher_init(&s->dispatcher, &limits, task_lost, s)) {
		free(s);
		return NULL;
	}
	if (join_backoffs(s, backoffs)) {
		upstream_free(s);
		return NULL;
	}
	warn_of_plain_secrets(s);
	credentials_warn(settings);
	return s;
}

void upstream_free(struct upstream *s)
{
	if (!s)
		return;
	loop_timer_cancel(s->loop, &s->timer);
	dispatcher_fini(&s->dispatcher);
	exchange_session_fini(&s->session);
	backoff_leave_all(s->backoffs, s->count);
	free(s);
}

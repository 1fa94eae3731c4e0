/*
 * The line in front of one server, and its addresses.
 *
 * Surprising: an address that did not answer rests at least as long as it kept a pull waiting, else
 * every other pull would wait for it. Failover and backoff are one mechanism. Each address has a
 * shaper of its own; one that failed rests as long as its shaper holds, and a server with a single
 * address is only the case where everything waits for that one.
 */
#include "server.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "credentials.h"
#include "hash.h"
#include "log.h"

#define NONE UINT_MAX /* of the addresses */

struct address {
	const char *url; /* of the settings */
	uint64_t rank;   /* lower ones first, on this host */
	struct shaper shaper;
	char *error; /* why it rests; NULL = it does not, or there was no memory for it */
};

struct server {
	struct loop *loop;
	const struct settings_server *settings;
	struct dispatcher dispatcher;
	struct loop_timer timer; /* when the line has work again */
	size_t tasks;            /* that have joined */
	unsigned in_flight;
	bool pumping, held;
	struct log_limit log_limit;
	struct session session;
	size_t count;
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
static void order_addresses(struct server *s)
{
	uint64_t host = loop_sys(s->loop)->host();

	for (size_t i = 0; i < s->count; i++) {
		s->addresses[i].url = s->settings->urls[i];
		s->addresses[i].rank = hash_bytes(
			hash_bytes(HASH_START, s->addresses[i].url, strlen(s->addresses[i].url)),
			&host, sizeof(host));
		shaper_init(&s->addresses[i].shaper);
	}
	qsort(s->addresses, s->count, sizeof(s->addresses[0]), compare_ranks);
}

/* The first one, from `first` on and all around, but `skip`, that does not rest; if all do, the one
 * that has rested first. */
static unsigned best_address(const struct server *s, uint64_t now_ms, unsigned first, unsigned skip,
	uint64_t *ret_until_ms)
{
	uint64_t least_ms = UINT64_MAX, until_ms;
	unsigned best = 0;

	for (unsigned n = 0; n < s->count; n++) {
		unsigned i = (first + n) % (unsigned)s->count;

		until_ms = shaper_holds(&s->addresses[i].shaper, now_ms)
				   ? shaper_until(&s->addresses[i].shaper)
				   : 0;
		if (i != skip && until_ms < least_ms) {
			least_ms = until_ms;
			best = i;
		}
	}
	*ret_until_ms = least_ms;
	return best;
}

/* 0 when some address is ready, else the moment when the first one will be. */
static uint64_t held_until_ms(const struct server *s, uint64_t now_ms)
{
	uint64_t until_ms;

	best_address(s, now_ms, 0, NONE, &until_ms);
	return until_ms;
}

/* ---- the line ---- */

/* Hands a slot to a task. */
static void begin(struct server *s, const struct dispatcher_item *item, uint64_t now_ms)
{
	struct server_task *t = item->task;
	unsigned first = now_ms < t->away_ms ? t->first : 0;
	uint64_t until_ms;

	if (t->again) /* the next one: one before it may have had a very short rest */
		t->address = best_address(s, now_ms, t->address + 1, t->address, &until_ms);
	else
		t->address = best_address(s, now_ms, first, NONE, &until_ms);
	t->item = *item;
	t->waiting = t->again = false;
	t->started_ms = now_ms;
	t->tries++;
	s->in_flight++;
	if (!t->begin(t->arg))
		s->in_flight--;
}

static void pump(struct server *s)
{
	struct dispatcher_item items[SETTINGS_MAX_IN_FLIGHT];
	uint64_t now_ms = loop_now_ms(s->loop), due_ms;
	size_t n;

	if (s->pumping) /* called by a task that begins: the round goes on below */
		return;
	s->pumping = true;
	do {
		dispatcher_hold(&s->dispatcher, held_until_ms(s, now_ms));
		n = dispatcher_take(
			&s->dispatcher, now_ms, s->settings->max_in_flight - s->in_flight, items);
		for (size_t i = 0; i < n; i++) {
			const struct server_task *t = items[i].task;

			if (t->waiting) /* not withdrawn by one that was begun before it */
				begin(s, &items[i], now_ms);
		}
	} while (n);
	s->pumping = false;
	if (s->in_flight < s->settings->max_in_flight && dispatcher_next(&s->dispatcher, &due_ms))
		loop_timer_set(s->loop, &s->timer, due_ms);
	else
		loop_timer_cancel(s->loop, &s->timer);
}

static void timer_due(void *arg)
{
	pump(arg);
}

static void lost(void *arg, void *task, enum dispatcher_loss why)
{
	static const char *const sentences[] = {
		[DISPATCHER_OVERFLOWED] = "not pulled: too many pulls wait for this server",
		[DISPATCHER_EXPIRED] = "not pulled: the server did not take it in time",
	};
	struct server_task *t = task;

	(void)arg;
	if (why == DISPATCHER_OVERRIDDEN)
		return; /* by newer work of the same config, which is the same task */
	t->waiting = false;
	t->lost(t->arg, sentences[why]);
}

/* Doubles: the whole line is copied each time. */
int server_join(struct server *s)
{
	uint32_t room = s->dispatcher.limits.max_pending;

	if (s->tasks >= room && dispatcher_grow(&s->dispatcher, 2 * room))
		return -ENOMEM;
	s->tasks++;
	return 0;
}

void server_leave(struct server *s)
{
	s->tasks--;
}

void server_submit(struct server *s, struct server_task *t, uint64_t expires_ms)
{
	t->waiting = true;
	t->tries = 0;
	dispatcher_submit(
		&s->dispatcher, loop_now_ms(s->loop), (uint64_t)(uintptr_t)t, t, expires_ms);
	pump(s);
}

void server_withdraw(struct server *s, struct server_task *t)
{
	t->waiting = false;
	dispatcher_cancel(&s->dispatcher, (uint64_t)(uintptr_t)t);
}

void server_retry(struct server *s, struct server_task *t)
{
	t->waiting = t->again = true;
	dispatcher_retry(&s->dispatcher, loop_now_ms(s->loop), &t->item, 1);
	pump(s);
}

void server_avoid(struct server *s, struct server_task *t)
{
	t->first = (t->address + 1) % (unsigned)s->count;
	t->away_ms = loop_now_ms(s->loop) + SERVER_AWAY_MS;
}

/* ---- how it went ---- */

enum health { WELL, CONGESTED, FAILED, SILENT, UNASKED };

static enum health health_of(const struct transport_response *r)
{
	static const enum health table[TRANSPORT_RESULTS] = {
		[TRANSPORT_OK] = WELL,
		[TRANSPORT_TIMEOUT] = SILENT,
		[TRANSPORT_REFUSED] = FAILED,
		[TRANSPORT_NETWORK] = FAILED,
		[TRANSPORT_TLS] = FAILED,
		[TRANSPORT_HOST] = UNASKED,
		[TRANSPORT_TOO_LARGE] = WELL,
		[TRANSPORT_PROTOCOL] = FAILED,
	};

	if (!r)
		return SILENT;
	if (r->result == TRANSPORT_TIMEOUT && !r->sent)
		return FAILED;
	if (r->result == TRANSPORT_OK && (r->status == 429 || r->status == 503))
		return CONGESTED;
	if (r->result == TRANSPORT_OK && r->status >= 500)
		return FAILED;
	return table[r->result];
}

static const char *name_of(const struct server *s)
{
	return s->settings->name ? s->settings->name : s->settings->urls[0];
}

/* Remembers why the address rests, and logs what follows from it; the cause itself is in the line
 * of the config whose pull failed. */
static void tell(struct server *s, struct address *a, const struct transport_response *r)
{
	uint64_t now_ms = loop_now_ms(s->loop), until_ms = held_until_ms(s, now_ms);
	unsigned suppressed;

	free(a->error);
	if (!r)
		a->error = strdup("it does not answer in time");
	else if (r->result != TRANSPORT_OK)
		a->error = strdup(r->message);
	else if (asprintf(&a->error, "it answered %ld", r->status) < 0)
		a->error = NULL;
	if (!shaper_holds(&a->shaper, now_ms) ||
		!log_limit_pass(&s->log_limit, now_ms, until_ms ? "held" : a->url, &suppressed))
		return;
	if (!until_ms) {
		log_warn("an address of the server failed and rests: another one is used", "server",
			name_of(s), "url", a->url, "why", a->error, "rest_ms",
			LOG_U64(shaper_until(&a->shaper) - now_ms));
		return;
	}
	s->held = true;
	log_warn("the server is left alone for a while: pulls wait", "server", name_of(s),
		"hold_ms", LOG_U64(until_ms - now_ms), "repeated",
		suppressed ? LOG_U64(suppressed) : NULL);
}

static void recovered(struct server *s, struct address *a)
{
	free(a->error);
	a->error = NULL;
	if (!s->held)
		return;
	s->held = false;
	memset(&s->log_limit, 0, sizeof(s->log_limit));
	log_info("the server answers again", "server", name_of(s), "url", a->url);
}

/* What the failure says about when to come back. */
static uint64_t advice_ms(const struct server_task *t, enum health health,
	const struct transport_response *response, uint64_t now_ms)
{
	if (health == SILENT)
		return now_ms - t->started_ms;
	if (health != CONGESTED || response->retry_after_ms == TRANSPORT_NO_ADVICE)
		return SHAPER_NO_ADVICE;
	/* one more, for the clock is cut to milliseconds: never sooner than asked */
	return 1 + (response->retry_after_ms > SHAPER_ADVICE_MIN_MS ? response->retry_after_ms
								    : SHAPER_ADVICE_MIN_MS);
}

void server_dropped(struct server *s)
{
	s->in_flight--;
	if (dispatcher_pending(&s->dispatcher))
		loop_timer_set(s->loop, &s->timer, loop_now_ms(s->loop));
}

bool server_ended(
	struct server *s, struct server_task *t, const struct transport_response *response)
{
	struct address *a = &s->addresses[t->address];
	uint64_t now_ms = loop_now_ms(s->loop), until_ms;
	enum health health = health_of(response);

	if (health == UNASKED) { /* says nothing of this address, and would be so at any other */
		server_dropped(s);
		return false;
	}
	s->in_flight--;
	if (health == WELL) {
		shaper_succeeded(&a->shaper, t->started_ms);
		recovered(s, a);
	} else if (health != SILENT || s->count > 1) {
		/* a single address that is slow is the supervisor's: it slows each config down */
		shaper_failed(&a->shaper, t->started_ms, now_ms,
			health == CONGESTED ? SHAPER_CONGESTION : SHAPER_NETWORK,
			advice_ms(t, health, response, now_ms), loop_sys(s->loop)->random());
		tell(s, a, response);
	}
	best_address(s, now_ms, 0, t->address, &until_ms);
	/* who waits goes on in a turn of its own: the caller is in the middle of ending a run */
	if (dispatcher_pending(&s->dispatcher))
		loop_timer_set(s->loop, &s->timer, now_ms);
	return health != WELL && !until_ms && t->tries < s->count;
}

void server_lift(struct server *s)
{
	for (size_t i = 0; i < s->count; i++)
		shaper_lift(&s->addresses[i].shaper);
	pump(s);
}

const char *server_url(const struct server *s, const struct server_task *t)
{
	return s->addresses[t->address].url;
}

int server_find(const struct server *s, const char *url, const char *path)
{
	for (size_t i = 0; i < s->count; i++) {
		size_t len = strlen(s->addresses[i].url);

		if (!strncmp(url, s->addresses[i].url, len) && !strcmp(url + len, path))
			return (int)i;
	}
	return -1;
}

/* ---- outside ---- */

const struct settings_server *server_settings(const struct server *s)
{
	return s->settings;
}

struct session *server_session(struct server *s)
{
	return &s->session;
}

void server_status(const struct server *s, struct server_status *ret_status)
{
	uint64_t now_ms = loop_now_ms(s->loop), until_ms = held_until_ms(s, now_ms);

	*ret_status = (struct server_status){
		.name = s->settings->name,
		.address_count = s->count,
		.in_flight = s->in_flight,
		.pending = dispatcher_pending(&s->dispatcher),
		.held_ms = until_ms ? until_ms - now_ms : 0,
		.counters = &s->dispatcher.counters,
	};
}

void server_address_status(
	const struct server *s, size_t address, struct server_address_status *ret_status)
{
	const struct address *a = &s->addresses[address];
	uint64_t now_ms = loop_now_ms(s->loop);

	*ret_status = (struct server_address_status){
		.url = a->url,
		.error = a->error ? a->error : "",
		.rests_ms =
			shaper_holds(&a->shaper, now_ms) ? shaper_until(&a->shaper) - now_ms : 0,
		.in_a_row = a->shaper.in_a_row,
		.congestion = a->shaper.count[SHAPER_CONGESTION],
		.network = a->shaper.count[SHAPER_NETWORK],
		.advised = a->shaper.advised,
	};
}

static void warn_of_plain_secrets(const struct server *s)
{
	bool secrets = s->settings->bearer_file || s->settings->user || s->settings->header_count;

	for (size_t i = 0; secrets && i < s->count; i++)
		if (!strncasecmp(s->addresses[i].url, "http:", 5))
			log_warn(
				"secrets go to this address without TLS: whoever is on the way can "
				"read them",
				"server", name_of(s), "url", s->addresses[i].url);
}

struct server *server_new(struct loop *l, const struct settings_server *settings)
{
	const struct dispatcher_limits limits = {
		.max_pending = 1,
		.max_batch = settings->max_in_flight,
		.max_delay_ms = 0,
	};
	struct server *s = calloc(1, sizeof(*s) + settings->url_count * sizeof(s->addresses[0]));

	if (!s)
		return NULL;
	s->loop = l;
	s->settings = settings;
	s->count = settings->url_count;
	loop_timer_init(&s->timer, timer_due, s);
	if (dispatcher_init(&s->dispatcher, &limits, lost, s)) {
		free(s);
		return NULL;
	}
	order_addresses(s);
	warn_of_plain_secrets(s);
	credentials_warn(settings);
	return s;
}

void server_free(struct server *s)
{
	if (!s)
		return;
	loop_timer_cancel(s->loop, &s->timer);
	dispatcher_fini(&s->dispatcher);
	session_fini(&s->session);
	for (size_t i = 0; i < s->count; i++)
		free(s->addresses[i].error);
	free(s);
}

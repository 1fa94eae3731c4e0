/*
 * One request (errand) at a time: a lease, the "known" key of the host (known_host), the changed
 * pages of the receipt (receipt_pages); before anything else, the lease's renewal.
 *
 * Surprising: once in a lease's life it is checked by itself that no other writer has changed the
 * pages. If one has, etcd was restored from a backup, or a second agent writes under the same name;
 * then that is logged and everything is written again.
 */
#include "fleet/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pull/exchange.h"
#include "fleet/etcd_store.h"
#include "fleet/known_host.h"
#include "base/log.h"
#include "settings/form.h"
#include "text/json_writer.h"

#define MAX_ANSWER (2u << 20) /* the "known" value is the largest */

#define RENEWALS 3 /* to a check */

enum errand { NOTHING, GRANT, RENEW, CHECK, GREET, GREET_AGAIN, WRITE, LEAVE };

#define SHARED_WHY                                                                                 \
	"unless etcd was restored, another agent has the same name: give each its own with "       \
	"report: host"

struct report {
	struct report_env env;
	struct exchange_env exchange_env;
	struct exchange_session session;
	const struct settings_server *server;
	struct receipt_pages receipt;
	struct known_host known;
	bool off;

	struct exchange *exchange;
	enum errand errand;
	size_t page; /* that is being written */
	uint64_t begun_ms;
	struct backoff **backoffs; /* of the server's addresses */
	size_t address;
	unsigned tries, failures;

	uint64_t lease, lease_until_ms, renew_ms;
	unsigned renewals; /* since the last check */
	void (*said)(void *arg);
	void *said_arg;

	bool round; /* pages are being written */
	uint64_t round_ms, send_ms, retry_ms;
	struct loop_timer next, look;

	bool written, failing, shared;
	char error[FILE_WHY];
	struct log_limit limit, shared_limit;
	int64_t sent_ms;
	uint64_t sent, failed, leases;
};

static void run_errands(struct report *r);

static uint64_t random_upto(struct report *r, uint64_t bound)
{
	return sys_random_upto(r->env.sys, bound);
}

/* ---- what has changed ---- */

/* Configs were looked at: sets when a change is written, and when those that are being applied are
 * looked at again. */
static void note_changes(struct report *r, bool was_dirty)
{
	uint64_t now_ms = loop_now_ms(r->env.loop), soonest_ms = r->round_ms + REPORT_REST_MS;

	if (!r->round && !was_dirty && receipt_pages_dirty(&r->receipt))
		r->send_ms = (r->round_ms && soonest_ms > now_ms ? soonest_ms : now_ms) +
			     random_upto(r, REPORT_FIRST_MS);
	if (receipt_pages_take_applying(&r->receipt))
		loop_timer_set(r->env.loop, &r->look, now_ms + REPORT_LOOK_MS);
}

static void update_items(struct report *r, bool only_applying)
{
	bool was_dirty = receipt_pages_dirty(&r->receipt);

	receipt_pages_update_all(&r->receipt, only_applying);
	note_changes(r, was_dirty);
}

static void update_due(void *arg)
{
	struct report *r = arg;

	update_items(r, true);
	run_errands(r);
}

/* Writes everything again, at once. */
static void write_all_again(struct report *r)
{
	receipt_pages_forget(&r->receipt);
	r->round = false;
	r->known.state = KNOWN_HOST_UNASKED;
	r->send_ms = loop_now_ms(r->env.loop);
}

/* ---- requests ---- */

static int build_grant(struct report *r, struct buffer *body)
{
	json_writer_begin_object(body, NULL);
	json_writer_digits(body, "TTL", (r->env.settings->report.ttl_ms + 999) / 1000);
	return json_writer_end_object(body);
}

static int build_renew(struct report *r, struct buffer *body)
{
	json_writer_begin_object(body, NULL);
	json_writer_digits(body, "ID", r->lease);
	return json_writer_end_object(body);
}

/* Creates the "known" key, or reads the one that exists. */
static int build_greet(struct report *r, struct buffer *body)
{
	return known_host_build_ask(&r->known, body);
}

static int build_greet_again(struct report *r, struct buffer *body)
{
	return known_host_build_write(&r->known, body);
}

/* All pages are unchanged and the "known" key exists; writes nothing. */
static int build_check(struct report *r, struct buffer *body)
{
	json_writer_begin_object(body, NULL);
	json_writer_begin_array(body, "compare");
	etcd_store_compare(body, r->known.key, &etcd_store_present, 0);
	receipt_pages_append_unchanged(&r->receipt, body);
	json_writer_end_array(body);
	return json_writer_end_object(body);
}

static int build_write(struct report *r, struct buffer *body)
{
	int e = receipt_pages_build_write(&r->receipt, r->page, r->lease, body);

	note_changes(r, true);
	return e;
}

/* ---- answers ---- */

/* A lease without a TTL has expired already. */
static void take_lease(struct report *r, const struct etcd_store_answer *a)
{
	uint64_t life_ms = etcd_store_number(a->root, "TTL") * 1000;

	r->lease_until_ms = r->begun_ms + life_ms;
	r->renew_ms = r->begun_ms + life_ms / 3 - random_upto(r, life_ms / 30);
}

static int lease_granted(struct report *r, const struct etcd_store_answer *a)
{
	r->lease = etcd_store_number(a->root, "ID");
	if (!r->lease || !etcd_store_number(a->root, "TTL"))
		return -EPROTO;
	take_lease(r, a);
	r->leases++;
	r->renewals = 0;
	write_all_again(r);
	return 0;
}

static int lease_renewed(struct report *r, const struct etcd_store_answer *a)
{
	r->renewals++;
	take_lease(r, a);
	return 0;
}

static int host_greeted(struct report *r, const struct etcd_store_answer *a)
{
	known_host_asked(&r->known, a);
	return 0;
}

static int host_greeted_again(struct report *r, const struct etcd_store_answer *a)
{
	(void)a;
	known_host_was_written(&r->known);
	return 0;
}

static void warn_shared(struct report *r)
{
	unsigned suppressed;

	r->shared = true;
	if (log_limit_pass(&r->shared_limit, loop_now_ms(r->env.loop), r->receipt.key, &suppressed))
		log_warn("this host's receipt was changed by another writer", "why", SHARED_WHY,
			"server", r->server->name, "key", r->receipt.key, "repeated",
			suppressed ? LOG_U64(suppressed) : NULL);
}

static int pages_checked(struct report *r, const struct etcd_store_answer *a)
{
	r->renewals = 0;
	r->shared = false;
	if (node_is_true(a->root, "succeeded"))
		return 0;
	warn_shared(r);
	write_all_again(r);
	return 0;
}

static int page_written(struct report *r, const struct etcd_store_answer *a)
{
	int written = receipt_pages_written(&r->receipt, r->page, a);

	if (written < 0) {
		warn_shared(r);
		return 0;
	}
	if (written > 0)
		r->shared = false;
	r->sent++;
	r->sent_ms = r->env.sys->wall_ms();
	return 0;
}

/* ---- success and failure ---- */

static void report_recovered(struct report *r)
{
	r->failures = r->tries = 0;
	r->error[0] = '\0';
	if (r->written && !r->failing)
		return;
	log_info(r->failing ? "receipt writes recovered" : "receipt written", "server",
		r->server->name, "key", r->receipt.key);
	memset(&r->limit, 0, sizeof(r->limit));
	r->written = true;
	r->failing = false;
}

/* Doubles each time, with half of it random. */
static uint64_t grow_delay(struct report *r)
{
	uint64_t delay_ms = (uint64_t)REPORT_RETRY_MS << (r->failures < 6 ? r->failures : 6);

	r->failures++;
	if (delay_ms > REPORT_RETRY_MAX_MS)
		delay_ms = REPORT_RETRY_MAX_MS;
	return delay_ms / 2 + random_upto(r, delay_ms / 2);
}

static void report_failure(struct report *r, const char *url, const char *why, uint64_t next_ms)
{
	uint64_t now_ms = loop_now_ms(r->env.loop);
	unsigned suppressed;

	r->failing = true;
	snprintf(r->error, sizeof(r->error), "%s", why);
	if (log_limit_pass_kind(&r->limit, now_ms, "report", why, &suppressed))
		log_warn("cannot write the receipt: the fleet does not see what runs here",
			"server", r->server->name, "url", url, "why", why, "next_in_ms",
			LOG_U64(next_ms - now_ms), "repeated",
			suppressed ? LOG_U64(suppressed) : NULL);
}

static void retry_write_later(struct report *r, const char *why)
{
	const char *url = r->server->urls[r->address];

	r->failed++;
	r->address = (r->address + 1) % r->server->url_count;
	if (++r->tries < r->server->url_count)
		return; /* at the next address, at once */
	r->tries = 0;
	r->retry_ms = loop_now_ms(r->env.loop) + grow_delay(r);
	report_failure(r, url, why, r->retry_ms);
}

/* The first address that is not in backoff. False: all are, until *ret_until_ms; logged if the
 * lease expires before. */
static bool find_ready_address(struct report *r, uint64_t now_ms, uint64_t *ret_until_ms)
{
	const struct backoff *b;
	char why[FILE_WHY];
	uint64_t until_ms;

	r->address = backoff_pick(
		r->backoffs, r->server->url_count, r->address, BACKOFF_NONE, now_ms, &until_ms);
	if (!until_ms)
		return true;
	*ret_until_ms = until_ms;
	b = r->backoffs[r->address];
	snprintf(why, sizeof(why), "the address is in backoff%s%.300s%s", b->error ? ": " : "",
		b->error ? b->error : "", r->lease ? ", for longer than the lease lasts" : "");
	if (until_ms >= r->lease_until_ms)
		report_failure(r, r->server->urls[r->address], why, until_ms);
	return false;
}

static const struct {
	const char *api;
	int (*build)(struct report *r, struct buffer *body);
	int (*take)(struct report *r, const struct etcd_store_answer *a);
} errands[] = {
	[GRANT] = {ETCD_STORE_GRANT, build_grant, lease_granted},
	[RENEW] = {ETCD_STORE_KEEP_ALIVE, build_renew, lease_renewed},
	[CHECK] = {ETCD_STORE_TXN, build_check, pages_checked},
	[GREET] = {ETCD_STORE_TXN, build_greet, host_greeted},
	[GREET_AGAIN] = {ETCD_STORE_TXN, build_greet_again, host_greeted_again},
	[WRITE] = {ETCD_STORE_TXN, build_write, page_written},
	[LEAVE] = {ETCD_STORE_TXN, build_greet_again, host_greeted_again},
};

static void take_store_answer(struct report *r, const struct etcd_store_answer *a)
{
	int e = errands[r->errand].take(r, a);

	if (e)
		retry_write_later(r, "the answer is not one of etcd's");
	else if (!r->round && !receipt_pages_dirty(&r->receipt))
		report_recovered(r);
}

static void errand_ended(
	void *arg, const struct kind_place *place, const struct http_client_response *response)
{
	enum kind_cause cause;
	struct report *r = arg;
	struct etcd_store_answer a;
	char why[FILE_WHY] = "";
	int e = etcd_store_read(place, response, &a, &cause, why);

	backoff_ended(r->backoffs[r->address], r->begun_ms, response);
	if (e == -EACCES && exchange_again(r->exchange, true))
		return;
	r->exchange = NULL;
	if (e == 0) {
		take_store_answer(r, &a);
		etcd_store_answer_fini(&a);
	} else {
		if (e == -ESTALE)
			r->lease = 0;
		if (e == -ESTALE && r->failures == 0) /* the first time is no failure */
			r->retry_ms = loop_now_ms(r->env.loop) + grow_delay(r);
		else
			retry_write_later(r, why);
	}
	run_errands(r);
}

static void errand_not_sent(void *arg, enum kind_cause cause, const char *why)
{
	struct report *r = arg;

	(void)cause;
	r->exchange = NULL;
	retry_write_later(r, why);
	run_errands(r);
}

static int build_errand(
	void *arg, const struct kind_place *place, struct kind_request *request, char why[FILE_WHY])
{
	struct report *r = arg;
	int e = etcd_request_begin(place, errands[r->errand].api, request);

	(void)why;
	if (e == 0)
		e = errands[r->errand].build(r, &request->body);
	return e ? e : request->body.error;
}

static void start_errand(struct report *r, enum errand errand)
{
	static const struct exchange_calls calls = {
		.build = build_errand, .ended = errand_ended, .failed = errand_not_sent};
	uint64_t third_ms = r->env.settings->report.ttl_ms / 3;
	struct exchange_request request = {
		.server = r->server,
		.session = &r->session,
		.backoff = r->backoffs[r->address],
		.place = {.base = r->server->urls[r->address],
			.path = r->env.settings->report.prefix,
			.max_bytes = MAX_ANSWER},
		.timeout_ms = third_ms < REPORT_TIMEOUT_MS ? third_ms : REPORT_TIMEOUT_MS,
		.calls = &calls,
		.arg = r,
	};
	char why[FILE_WHY] = "";

	r->errand = errand;
	r->begun_ms = loop_now_ms(r->env.loop);
	if (exchange_start(&r->exchange_env, &request, &r->exchange, why) == 0)
		return;
	r->exchange = NULL;
	retry_write_later(r, why);
}

/* ---- the next errand ---- */

static void begin_round(struct report *r, uint64_t now_ms)
{
	r->round = true;
	r->round_ms = now_ms;
	receipt_pages_queue(&r->receipt);
}

static void end_round(struct report *r, uint64_t now_ms)
{
	uint64_t soonest_ms = r->round_ms + REPORT_REST_MS;

	r->round = false;
	r->send_ms = (soonest_ms > now_ms ? soonest_ms : now_ms) + random_upto(r, REPORT_FIRST_MS);
	report_recovered(r);
}

/* The errand that is due now; or NOTHING, and when one will be. */
static enum errand choose_errand(struct report *r, uint64_t now_ms, uint64_t *ret_due_ms)
{
	*ret_due_ms = r->retry_ms;
	if (now_ms < r->retry_ms || !find_ready_address(r, now_ms, ret_due_ms))
		return NOTHING;
	if (r->lease == 0 || now_ms >= r->lease_until_ms)
		return GRANT;
	if (now_ms >= r->renew_ms)
		return RENEW;
	if (r->renewals >= RENEWALS && !r->round)
		return CHECK;
	if (!r->round && receipt_pages_dirty(&r->receipt) && now_ms >= r->send_ms)
		begin_round(r, now_ms);
	if (r->round && r->known.state != KNOWN_HOST_WRITTEN)
		return r->known.state == KNOWN_HOST_UNASKED ? GREET : GREET_AGAIN;
	if (r->round && receipt_pages_next(&r->receipt, &r->page))
		return WRITE;
	if (r->round)
		end_round(r, now_ms);
	*ret_due_ms = r->renew_ms;
	if (receipt_pages_dirty(&r->receipt) && r->send_ms < r->renew_ms)
		*ret_due_ms = r->send_ms;
	return NOTHING;
}

static void run_errands(struct report *r)
{
	uint64_t now_ms = loop_now_ms(r->env.loop), due_ms;
	enum errand errand;

	if (r->said && !r->exchange) {
		r->off = true;
		r->said(r->said_arg);
	}
	while (!r->off && !r->exchange) {
		errand = choose_errand(r, now_ms, &due_ms);
		if (errand == NOTHING) {
			loop_timer_set(r->env.loop, &r->next, due_ms);
			return;
		}
		if (errand == GRANT || errand == RENEW)
			update_items(r, false);
		start_errand(r, errand);
	}
}

static void errand_due(void *arg)
{
	run_errands(arg);
}

/* ---- interface ---- */

/* The host's name is part of the key: an invalid name would be parsed as another key. */
static void check_host(struct report *r)
{
	const char *wrong = settings_check_name(r->env.host);

	if (!wrong)
		return;
	r->off = true;
	snprintf(r->error, sizeof(r->error), "the name of this host %s: name it with report: host",
		wrong);
	log_err("no receipts are written", "why", r->error, "host", r->env.host);
}

struct report *report_start(const struct report_env *env)
{
	const struct settings *s = env->settings;
	const struct receipt_pages_setup pages = {.sys = env->sys,
		.settings = s,
		.host = env->host,
		.look = env->look,
		.arg = env->arg};
	struct report *r = calloc(1, sizeof(*r));
	int64_t wall_ms = env->sys->wall_ms();
	int error;

	if (!r)
		return NULL;
	r->env = *env;
	r->exchange_env = (struct exchange_env){
		.sys = env->sys, .transport = env->transport, .ca_file = env->ca_file};
	r->server = s->servers[s->report.server];
	r->address = random_upto(r, r->server->url_count - 1);
	r->backoffs = backoff_join_all(env->backoffs, r->server);
	loop_timer_init(&r->next, errand_due, r);
	loop_timer_init(&r->look, update_due, r);
	check_host(r);
	error = receipt_pages_init(&r->receipt, &pages, wall_ms);
	if (known_host_init(&r->known, s, env->host, wall_ms) || error || !r->backoffs) {
		report_stop(r);
		return NULL;
	}
	r->retry_ms = loop_now_ms(env->loop) + random_upto(r, REPORT_FIRST_MS);
	run_errands(r);
	return r;
}

void report_stop(struct report *r)
{
	if (!r)
		return;
	exchange_cancel(r->exchange);
	loop_timer_cancel(r->env.loop, &r->next);
	loop_timer_cancel(r->env.loop, &r->look);
	exchange_session_fini(&r->session);
	backoff_leave_all(r->backoffs, r->server->url_count);
	receipt_pages_fini(&r->receipt);
	known_host_fini(&r->known);
	free(r);
}

bool report_leave(struct report *r, void (*said)(void *arg), void *arg)
{
	bool can = !r->off && !r->failing && r->lease && r->known.state == KNOWN_HOST_WRITTEN;
	uint64_t until_ms;

	exchange_cancel(r->exchange);
	r->exchange = NULL;
	loop_timer_cancel(r->env.loop, &r->next);
	loop_timer_cancel(r->env.loop, &r->look);
	if (!can || !find_ready_address(r, loop_now_ms(r->env.loop), &until_ms)) {
		r->off = true;
		return false;
	}
	r->known.stopped_ms = r->env.sys->wall_ms();
	start_errand(r, LEAVE);
	r->off = !r->exchange;
	r->said = said;
	r->said_arg = arg;
	return !r->off;
}

void report_changed(struct report *r, size_t config)
{
	bool was_dirty;

	if (r->off)
		return;
	was_dirty = receipt_pages_dirty(&r->receipt);
	receipt_pages_update(&r->receipt, config);
	note_changes(r, was_dirty);
	run_errands(r);
}

void report_status(const struct report *r, struct report_status *ret_status)
{
	*ret_status = (struct report_status){
		.state = r->off       ? REPORT_OFF
			 : r->failing ? REPORT_FAILING
			 : r->written ? REPORT_OK
				      : REPORT_STARTING,
		.key = r->receipt.key,
		.error = r->error[0] ? r->error
			 : r->shared ? "the key was changed by another writer: " SHARED_WHY
				     : "",
		.sent_ms = r->sent_ms,
		.sent = r->sent,
		.failed = r->failed,
		.leases = r->leases,
	};
}

/*
 * One request (errand) at a time: a lease, the "known" key of the host, the changed pages of the
 * receipt; before anything else, the lease's renewal.
 *
 * Surprising: a write requires that the key is unchanged since our last write, and once in a
 * lease's life that is checked by itself. If it has changed, etcd was restored from a backup, or a
 * second agent writes under the same name; then that is logged and everything is written again.
 */
#include "fleet/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pull/exchange.h"
#include "fleet/etcd_store.h"
#include "base/hash.h"
#include "base/log.h"
#include "settings/value.h"
#include "text/json_writer.h"

#define MAX_KEY (SETTINGS_MAX_URL + SETTINGS_MAX_NAME + 32)
#define MAX_ANSWER (2u << 20) /* the "known" value is the largest */

#define RENEWALS 3 /* to a check */

enum errand { NOTHING, GRANT, RENEW, CHECK, GREET, GREET_AGAIN, WRITE, LEAVE };

struct page {
	bool dirty;        /* changed since it was written */
	bool queued;       /* to be written in this round */
	uint64_t revision; /* of the last write under this lease; 0 = none */
};

struct item {
	uint64_t hash;  /* of all that the receipt says of the config */
	uint64_t stand; /* of version and state alone */
	int64_t since_ms;
	bool applying;
};

#define SHARED_WHY                                                                                 \
	"unless etcd was restored, another agent has the same name: give each its own with "       \
	"report: host"

struct report {
	struct report_env env;
	struct exchange_env exchange_env;
	struct exchange_session session;
	const struct settings_server *server;
	char *key, *known; /* in etcd */
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
	enum {
		UNKNOWN,
		OTHERWISE,
		KNOWN
	} greeting;         /* does the "known" key exist, with our value? */
	int64_t first_ms;   /* of the "known" key */
	int64_t stopped_ms; /* 0 = it runs */
	void (*said)(void *arg);
	void *said_arg;

	bool round; /* pages are being written */
	uint64_t round_ms, send_ms, retry_ms;
	struct loop_timer next, look;
	struct item *items; /* as many as there are configs */
	struct page *pages;
	size_t page_count;

	bool written, failing, shared;
	char error[FILE_WHY];
	struct log_limit limit, shared_limit;
	int64_t started_ms, sent_ms;
	uint64_t sent, failed, leases;
};

static void run_errands(struct report *r);

static uint64_t random_upto(struct report *r, uint64_t bound)
{
	return sys_random_upto(r->env.sys, bound);
}

/* ---- content ---- */

static uint64_t hash_text(uint64_t hash, const char *text)
{
	return hash_bytes(hash, text, strlen(text) + 1);
}

static uint64_t hash_stand(const struct receipt_config *c)
{
	const uint64_t numbers[] = {c->generation, (uint64_t)c->state, (uint64_t)c->pulled_ms};
	uint64_t hash = hash_bytes(HASH_START, numbers, sizeof(numbers));

	return hash_text(hash_text(hash_text(hash, c->version), c->others), c->digest);
}

static bool is_dirty(const struct report *r)
{
	for (size_t i = 0; i < r->page_count; i++)
		if (r->pages[i].dirty)
			return true;
	return false;
}

static void mark_page_dirty(struct report *r, size_t page)
{
	uint64_t now_ms = loop_now_ms(r->env.loop), soonest_ms = r->round_ms + REPORT_REST_MS;
	bool first = !r->round && !is_dirty(r);

	r->pages[page].dirty = true;
	if (first)
		r->send_ms = (r->round_ms && soonest_ms > now_ms ? soonest_ms : now_ms) +
			     random_upto(r, REPORT_FIRST_MS);
}

/* Fills in the receipt of one config, and marks its page if that changed. */
static void update_item(
	struct report *r, size_t i, struct receipt_config *c, struct receipt_texts *texts)
{
	struct item *item = &r->items[i];
	uint64_t hash, stand;

	*c = (struct receipt_config){.version = "",
		.others = "",
		.digest = "",
		.why = "",
		.rejected = "",
		.rejected_digest = ""};
	r->env.look(r->env.arg, i, c, texts);
	stand = hash_stand(c);
	hash = hash_text(hash_text(stand, c->why), c->rejected);
	hash = hash_text(hash, c->rejected_digest);
	item->applying = c->state == RECEIPT_APPLYING;
	if (stand != item->stand)
		item->since_ms = r->env.sys->wall_ms();
	if (hash != item->hash)
		mark_page_dirty(r, i / RECEIPT_CONFIGS);
	item->stand = stand;
	item->hash = hash;
	c->since_ms = item->since_ms;
	if (item->applying) /* the end of it is not reported */
		loop_timer_set(r->env.loop, &r->look, loop_now_ms(r->env.loop) + REPORT_LOOK_MS);
}

static void update_items(struct report *r, bool only_applying)
{
	struct receipt_config c;
	struct receipt_texts texts;

	for (size_t i = 0; i < r->env.settings->config_count; i++)
		if (r->items[i].applying || !only_applying)
			update_item(r, i, &c, &texts);
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
	for (size_t i = 0; i < r->page_count; i++)
		r->pages[i] = (struct page){.dirty = true};
	r->round = false;
	r->greeting = UNKNOWN;
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

static void append_put(const struct report *r, struct buffer *body, const char *key,
	const struct buffer *value, bool leased)
{
	json_writer_begin_object(body, NULL);
	json_writer_begin_object(body, "request_put");
	etcd_request_bytes(body, "key", key, strlen(key));
	etcd_request_bytes(body, "value", value->data, value->len);
	if (leased)
		json_writer_digits(body, "lease", r->lease);
	json_writer_end_object(body);
	json_writer_end_object(body);
}

static int write_known(struct report *r, struct buffer *out)
{
	const struct settings *s = r->env.settings;
	struct receipt receipt = {.since_ms = r->first_ms,
		.stopped_ms = r->stopped_ms,
		.labels = s->labels,
		.label_count = s->label_count,
		.config_count = s->config_count};
	int e;

	buffer_init(out, RECEIPT_MAX);
	receipt.configs = calloc(s->config_count + 1, sizeof(*receipt.configs));
	if (!receipt.configs)
		return -ENOMEM;
	for (size_t i = 0; i < s->config_count; i++)
		receipt.configs[i].name = s->configs[i]->name;
	e = receipt_write_known(&receipt, out);
	free(receipt.configs);
	return e;
}

/* Creates the "known" key, or reads the one that exists. */
static int build_greet(struct report *r, struct buffer *body)
{
	struct buffer value;
	int e = write_known(r, &value);

	if (e == 0) {
		json_writer_begin_object(body, NULL);
		json_writer_begin_array(body, "compare");
		etcd_store_compare(body, r->known, &etcd_store_absent, 0);
		json_writer_end_array(body);
		json_writer_begin_array(body, "success");
		append_put(r, body, r->known, &value, false);
		json_writer_end_array(body);
		json_writer_begin_array(body, "failure");
		json_writer_begin_object(body, NULL);
		json_writer_begin_object(body, "request_range");
		etcd_request_bytes(body, "key", r->known, strlen(r->known));
		json_writer_end_object(body);
		json_writer_end_object(body);
		json_writer_end_array(body);
		json_writer_end_object(body);
	}
	buffer_fini(&value);
	return e;
}

static int build_greet_again(struct report *r, struct buffer *body)
{
	struct buffer value;
	int e = write_known(r, &value);

	if (e == 0) {
		json_writer_begin_object(body, NULL);
		json_writer_begin_array(body, "success");
		append_put(r, body, r->known, &value, false);
		json_writer_end_array(body);
		json_writer_end_object(body);
	}
	buffer_fini(&value);
	return e;
}

static int write_page(struct report *r, size_t page, struct buffer *out)
{
	const struct settings *s = r->env.settings;
	size_t end = (page + 1) * RECEIPT_CONFIGS;
	const struct receipt receipt = {.host = r->env.host,
		.pullet = PULLET_VERSION,
		.since_ms = r->started_ms,
		.page = page + 1,
		.pages = r->page_count,
		.labels = s->labels,
		.label_count = s->label_count};
	struct receipt_texts texts;
	struct receipt_config c;

	buffer_init(out, RECEIPT_MAX);
	receipt_begin(&receipt, out);
	for (size_t i = page * RECEIPT_CONFIGS; i < end && i < s->config_count; i++) {
		update_item(r, i, &c, &texts);
		c.name = s->configs[i]->name;
		receipt_add(&c, out);
	}
	return receipt_end(out);
}

static void page_key(const struct report *r, size_t page, char ret_key[MAX_KEY])
{
	if (page)
		snprintf(ret_key, MAX_KEY, "%s#%zu", r->key, page + 1);
	else
		snprintf(ret_key, MAX_KEY, "%s", r->key);
}

/* The page is unchanged since our last write. */
static void append_comparison(const struct report *r, size_t page, struct buffer *body)
{
	char key[MAX_KEY];

	page_key(r, page, key);
	etcd_store_compare(body, key, &etcd_store_unchanged, r->pages[page].revision);
}

/* All pages are unchanged and the "known" key exists; writes nothing. */
static int build_check(struct report *r, struct buffer *body)
{
	json_writer_begin_object(body, NULL);
	json_writer_begin_array(body, "compare");
	etcd_store_compare(body, r->known, &etcd_store_present, 0);
	for (size_t i = 0; i < r->page_count; i++)
		if (r->pages[i].revision)
			append_comparison(r, i, body);
	json_writer_end_array(body);
	return json_writer_end_object(body);
}

static int build_write(struct report *r, struct buffer *body)
{
	struct page *page = &r->pages[r->page];
	struct buffer value;
	char key[MAX_KEY];
	int e = write_page(r, r->page, &value);

	page->dirty = false;
	page_key(r, r->page, key);
	json_writer_begin_object(body, NULL);
	if (e == 0 && page->revision) {
		json_writer_begin_array(body, "compare");
		append_comparison(r, r->page, body);
		json_writer_end_array(body);
	}
	if (e == 0) {
		json_writer_begin_array(body, "success");
		append_put(r, body, key, &value, true);
		json_writer_end_array(body);
		json_writer_end_object(body);
	}
	buffer_fini(&value);
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

/* {"responses":[{"response_range":{"kvs":[{"value": BASE64}]}}]} */
static const struct node *only_pair(const struct node *root)
{
	const struct node *n = node_member(root, "responses", NODE_LIST);

	n = node_member(node_find(n ? n->first : NULL, "response_range"), "kvs", NODE_LIST);
	n = n ? n->first : NULL;
	return n && n->type == NODE_MAP ? n : NULL;
}

/* Is the value what we would write? Keeps its first_ms. */
static bool is_known(struct report *r, const struct node *pair)
{
	struct buffer is, shall;
	struct receipt *known = NULL;
	bool same = false;

	buffer_init(&is, RECEIPT_MAX);
	buffer_init(&shall, RECEIPT_MAX);
	if (pair && etcd_store_decode(pair, "value", &is) == 0 && is.len &&
		receipt_read_known(is.data, is.len, &known) == 0 && known->since_ms) {
		r->first_ms = known->since_ms;
		same = write_known(r, &shall) == 0 && shall.len == is.len &&
		       memcmp(shall.data, is.data, is.len) == 0;
	}
	receipt_free(known);
	buffer_fini(&is);
	buffer_fini(&shall);
	return same;
}

static int host_greeted(struct report *r, const struct etcd_store_answer *a)
{
	bool known = node_is_true(a->root, "succeeded") || is_known(r, only_pair(a->root));

	r->greeting = known ? KNOWN : OTHERWISE;
	return 0;
}

static int host_greeted_again(struct report *r, const struct etcd_store_answer *a)
{
	(void)a;
	r->greeting = KNOWN;
	return 0;
}

static void warn_shared(struct report *r)
{
	unsigned suppressed;

	r->shared = true;
	if (log_limit_pass(&r->shared_limit, loop_now_ms(r->env.loop), r->key, &suppressed))
		log_warn("this host's receipt was changed by another writer", "why", SHARED_WHY,
			"server", r->server->name, "key", r->key, "repeated",
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
	struct page *page = &r->pages[r->page];

	if (!node_is_true(a->root, "succeeded")) {
		warn_shared(r);
		page->revision = 0;
		page->dirty = true; /* still queued */
		return 0;
	}
	if (page->revision)
		r->shared = false;
	page->revision = a->revision;
	page->queued = false;
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
		r->server->name, "key", r->key);
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
	else if (!r->round && !is_dirty(r))
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

static bool find_page(const struct report *r, size_t *ret_page)
{
	for (size_t i = 0; i < r->page_count; i++) {
		if (!r->pages[i].queued)
			continue;
		*ret_page = i;
		return true;
	}
	return false;
}

/* Queues the pages that are dirty now; others wait for the next round. */
static void begin_round(struct report *r, uint64_t now_ms)
{
	r->round = true;
	r->round_ms = now_ms;
	for (size_t i = 0; i < r->page_count; i++)
		r->pages[i].queued = r->pages[i].dirty;
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
	if (!r->round && is_dirty(r) && now_ms >= r->send_ms)
		begin_round(r, now_ms);
	if (r->round && r->greeting != KNOWN)
		return r->greeting == UNKNOWN ? GREET : GREET_AGAIN;
	if (r->round && find_page(r, &r->page))
		return WRITE;
	if (r->round)
		end_round(r, now_ms);
	*ret_due_ms = r->renew_ms;
	if (is_dirty(r) && r->send_ms < r->renew_ms)
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
	size_t pages = s->config_count ? (s->config_count - 1) / RECEIPT_CONFIGS + 1 : 1;
	struct report *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->env = *env;
	r->exchange_env = (struct exchange_env){
		.sys = env->sys, .transport = env->transport, .ca_file = env->ca_file};
	r->server = s->servers[s->report.server];
	r->started_ms = r->first_ms = env->sys->wall_ms();
	r->address = random_upto(r, r->server->url_count - 1);
	r->backoffs = backoff_join_all(env->backoffs, r->server);
	loop_timer_init(&r->next, errand_due, r);
	loop_timer_init(&r->look, update_due, r);
	r->items = calloc(s->config_count + 1, sizeof(*r->items));
	r->pages = calloc(pages, sizeof(*r->pages));
	r->page_count = pages;
	check_host(r);
	if (asprintf(&r->key, "%s%s", s->report.prefix, r->env.host) < 0)
		r->key = NULL;
	if (asprintf(&r->known, "%s" RECEIPT_KNOWN "%s", s->report.prefix, r->env.host) < 0)
		r->known = NULL;
	if (!r->backoffs || !r->items || !r->pages || !r->key || !r->known) {
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
	free(r->items);
	free(r->pages);
	free(r->key);
	free(r->known);
	free(r);
}

bool report_leave(struct report *r, void (*said)(void *arg), void *arg)
{
	bool can = !r->off && !r->failing && r->lease && r->greeting == KNOWN;
	uint64_t until_ms;

	exchange_cancel(r->exchange);
	r->exchange = NULL;
	loop_timer_cancel(r->env.loop, &r->next);
	loop_timer_cancel(r->env.loop, &r->look);
	if (!can || !find_ready_address(r, loop_now_ms(r->env.loop), &until_ms)) {
		r->off = true;
		return false;
	}
	r->stopped_ms = r->env.sys->wall_ms();
	start_errand(r, LEAVE);
	r->off = !r->exchange;
	r->said = said;
	r->said_arg = arg;
	return !r->off;
}

void report_changed(struct report *r, size_t config)
{
	struct receipt_config c;
	struct receipt_texts texts;

	if (r->off)
		return;
	update_item(r, config, &c, &texts);
	run_errands(r);
}

void report_status(const struct report *r, struct report_status *ret_status)
{
	*ret_status = (struct report_status){
		.state = r->off       ? REPORT_OFF
			 : r->failing ? REPORT_FAILING
			 : r->written ? REPORT_OK
				      : REPORT_STARTING,
		.key = r->key,
		.error = r->error[0] ? r->error
			 : r->shared ? "the key was changed by another writer: " SHARED_WHY
				     : "",
		.sent_ms = r->sent_ms,
		.sent = r->sent,
		.failed = r->failed,
		.leases = r->leases,
	};
}

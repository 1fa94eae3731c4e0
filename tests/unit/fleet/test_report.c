/*
 * The agent's receipts against an etcd that the test plays, on a clock that it moves:
 * agent/fleet/report.c is compiled in here with another exchange_start(). What is asked is read as
 * JSON, leases run out, revisions count, and whatever may fail does, with random faults for hours.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pull/exchange.h"
#include "tests/unit/fixture/fault_memory.h"
#include "tests/unit/fixture/model_random.h"
#include "tests/unit/fixture/scratch.h"

static int played_start(const struct exchange_env *env, const struct exchange_request *request,
	struct exchange **ret_exchange, char why[FILE_WHY]);
static void played_cancel(struct exchange *x);
static bool played_again(struct exchange *x, bool login);
static void played_fini(struct exchange_session *s);

#define exchange_start played_start
#define exchange_cancel played_cancel
#define exchange_again played_again
#define exchange_session_fini played_fini
#include "fleet/report.c"
#undef exchange_start
#undef exchange_cancel
#undef exchange_again
#undef exchange_session_fini

#define LAST_PHASE 2
#define KEYS 16
#define LEASES 4096
#define MAX_CONFIGS 250
#define TTL_MS 60000u

struct key {
	char name[128];
	struct buffer value;
	uint64_t lease, created, modified;
};

struct played { /* a request under way */
	struct loop_timer timer;
	struct exchange_request q;
	char api[64];
	struct buffer body;
	bool again;
};

enum how { ANSWERS, REFUSES, HANGS, FORBIDS, TOKEN_BAD, GARBAGE, OVERLOADED, HOWS };

static struct world {
	struct sys sys;
	struct loop *loop;
	struct backoffs *backoffs;
	uint64_t now_ms, leap_ms, end_ms;
	void (*step)(void);
	unsigned phase;
	struct loop_timer tick;

	struct settings *settings;
	struct report *report;
	struct {
		uint64_t generation;
		enum receipt_state state;
		const char *why;
	} configs[MAX_CONFIGS];
	unsigned looks;

	/* etcd */
	struct key keys[KEYS];
	size_t key_count;
	struct {
		uint64_t until_ms; /* 0 = it is gone */
		uint64_t ttl_ms;
	} leases[LEASES]; /* by id, from 1 */
	uint64_t lease_count, revision;
	enum how how;       /* of all addresses, */
	enum how how_first; /* of the first alone */
	uint64_t latency_ms;
	unsigned short_at; /* memory is at this allocation of a request; 0 = never */
	struct played *running;

	/* what was asked */
	unsigned asked[LEAVE + 1], total, refused, logins;
	uint64_t renewals_at[64], writes_at[256];
	unsigned writes;
	char written[256][128]; /* keys, in the order of the writes */
} w;

/* ---- the clock ---- */

static uint64_t world_now(void)
{
	return w.now_ms;
}

static int64_t world_wall(void)
{
	return INT64_C(1700000000000) + (int64_t)w.now_ms;
}

static uint64_t world_random(void)
{
	return random_bits();
}

/* As the kernel does it, all that is due at a moment comes before the next one. */
static void world_tick(void *arg)
{
	(void)arg;
	if (w.phase == LAST_PHASE / 2 && w.step)
		w.step();
	if (w.phase == LAST_PHASE) {
		if (w.now_ms >= w.end_ms)
			loop_stop(w.loop);
		w.now_ms += w.leap_ms;
	}
	w.phase = (w.phase + 1) % (LAST_PHASE + 1);
	loop_timer_set(w.loop, &w.tick, w.now_ms);
}

/* The tick moves the clock. */
static void world_wait(uint64_t due_ms)
{
	assert_true(due_ms <= w.now_ms);
}

/* Lets that much time pass. */
static void pass(uint64_t ms)
{
	w.end_ms = w.now_ms + ms;
	loop_timer_set(w.loop, &w.tick, w.now_ms);
	assert_int_equal(loop_run(w.loop), 0);
}

/* ---- etcd ---- */

static struct key *key_find(const char *name)
{
	for (size_t i = 0; i < w.key_count; i++)
		if (strcmp(w.keys[i].name, name) == 0)
			return &w.keys[i];
	return NULL;
}

static void key_drop(struct key *k)
{
	buffer_fini(&k->value);
	*k = w.keys[--w.key_count];
}

static struct key *key_put(const char *name, const void *value, size_t len, uint64_t lease)
{
	struct key *k = key_find(name);

	if (!k) {
		assert_true(w.key_count < KEYS);
		k = &w.keys[w.key_count++];
		*k = (struct key){.created = w.revision};
		buffer_init(&k->value, RECEIPT_MAX);
		snprintf(k->name, sizeof(k->name), "%s", name);
	}
	buffer_clear(&k->value);
	buffer_append(&k->value, value, len);
	k->lease = lease;
	k->modified = w.revision;
	return k;
}

static void expire_leases(void)
{
	for (uint64_t id = 1; id <= w.lease_count; id++) {
		if (!w.leases[id].until_ms || w.leases[id].until_ms > w.now_ms)
			continue;
		w.leases[id].until_ms = 0;
		for (size_t i = w.key_count; i > 0; i--)
			if (w.keys[i - 1].lease == id) {
				w.revision++;
				key_drop(&w.keys[i - 1]);
			}
	}
}

static const struct node *member(const struct node *map, const char *name, enum node_type type)
{
	const struct node *n = node_find(map, name);

	return n && n->type == type ? n : NULL;
}

static void key_name(const struct node *map, char ret_name[128])
{
	struct buffer b;

	buffer_init(&b, 127);
	assert_int_equal(etcd_store_decode(map, "key", &b), 0);
	snprintf(ret_name, 128, "%s", b.data);
	buffer_fini(&b);
}

static bool holds(const struct node *compare)
{
	const char *target = member(compare, "target", NODE_STRING)->text;
	const struct key *k;
	char name[128];

	key_name(compare, name);
	k = key_find(name);
	if (strcmp(member(compare, "result", NODE_STRING)->text, "GREATER") == 0) {
		assert_int_equal(etcd_store_number(compare, "create_revision"), 0);
		return k;
	}
	assert_string_equal(member(compare, "result", NODE_STRING)->text, "EQUAL");
	if (strcmp(target, "CREATE") == 0)
		return (k ? k->created : 0) == etcd_store_number(compare, "create_revision");
	assert_string_equal(target, "MOD");
	return (k ? k->modified : 0) == etcd_store_number(compare, "mod_revision");
}

/* 0, or -ESTALE: there is no such lease. */
static int do_put(const struct node *put)
{
	uint64_t lease = etcd_store_number(put, "lease");
	struct buffer value;
	char name[128];

	if (lease && (lease > w.lease_count || !w.leases[lease].until_ms))
		return -ESTALE;
	key_name(put, name);
	buffer_init(&value, RECEIPT_MAX);
	assert_int_equal(etcd_store_decode(put, "value", &value), 0);
	w.revision++;
	key_put(name, value.data, value.len, lease);
	buffer_fini(&value);
	assert_true(w.writes < 256);
	w.writes_at[w.writes] = w.now_ms;
	snprintf(w.written[w.writes++], 128, "%s", name);
	return 0;
}

static void do_range(const struct node *range, struct buffer *out)
{
	const struct key *k;
	char name[128];

	key_name(range, name);
	k = key_find(name);
	buffer_append_string(out, "{\"response_range\":{");
	if (k) {
		buffer_append_string(out, "\"kvs\":[{");
		etcd_request_bytes(out, "key", name, strlen(name));
		etcd_request_bytes(out, "value", k->value.data, k->value.len);
		buffer_append_string(out, "}]");
	}
	buffer_append_string(out, "}}");
}

static int do_txn(const struct node *root, struct buffer *out)
{
	const struct node *compare = member(root, "compare", NODE_LIST), *op;
	struct buffer responses;
	bool good = true;
	int e = 0;

	for (const struct node *n = compare ? compare->first : NULL; n; n = n->next)
		good = good && holds(n);
	buffer_init(&responses, 1u << 20);
	op = member(root, good ? "success" : "failure", NODE_LIST);
	for (op = op ? op->first : NULL; e == 0 && op; op = op->next) {
		if (member(op, "request_put", NODE_MAP))
			e = do_put(member(op, "request_put", NODE_MAP));
		else
			do_range(member(op, "request_range", NODE_MAP), &responses);
	}
	buffer_printf(out, "{\"header\":{\"cluster_id\":\"7\",\"revision\":\"%" PRIu64 "\"}%s",
		w.revision, good ? ",\"succeeded\":true" : "");
	if (responses.len)
		buffer_printf(out, ",\"responses\":[%s]", responses.data);
	buffer_append_string(out, "}");
	buffer_fini(&responses);
	return e;
}

static void do_grant(const struct node *root, struct buffer *out)
{
	uint64_t id = ++w.lease_count;

	assert_true(id < LEASES);
	w.leases[id].ttl_ms = etcd_store_number(root, "TTL") * 1000;
	w.leases[id].until_ms = w.now_ms + w.leases[id].ttl_ms;
	buffer_printf(out,
		"{\"header\":{\"cluster_id\":\"7\",\"revision\":\"%" PRIu64 "\"},\"ID\":\"%" PRIu64
		"\",\"TTL\":\"%" PRIu64 "\"}",
		w.revision, id, w.leases[id].ttl_ms / 1000);
}

static void do_renew(const struct node *root, struct buffer *out)
{
	uint64_t id = etcd_store_number(root, "ID");
	bool lives = id && id <= w.lease_count && w.leases[id].until_ms;

	if (lives)
		w.leases[id].until_ms = w.now_ms + w.leases[id].ttl_ms;
	if (w.asked[RENEW] <= 64)
		w.renewals_at[w.asked[RENEW] - 1] = w.now_ms;
	buffer_printf(out,
		"{\"result\":{\"header\":{\"cluster_id\":\"7\",\"revision\":\"%" PRIu64
		"\"},\"ID\":\"%" PRIu64 "\"",
		w.revision, id);
	if (lives)
		buffer_printf(out, ",\"TTL\":\"%" PRIu64 "\"", w.leases[id].ttl_ms / 1000);
	buffer_append_string(out, "}}\n");
}

static void answer(const struct played *p, struct http_client_response *r)
{
	struct document_error e;
	struct document *d;

	expire_leases();
	assert_int_equal(document_parse(DOCUMENT_JSON, p->body.data, p->body.len, 0, &d, &e), 0);
	r->status = 200;
	if (strcmp(p->api, ETCD_STORE_GRANT) == 0) {
		do_grant(document_root(d), &r->body);
	} else if (strcmp(p->api, ETCD_STORE_KEEP_ALIVE) == 0) {
		do_renew(document_root(d), &r->body);
	} else if (do_txn(document_root(d), &r->body)) {
		r->status = 404;
		buffer_clear(&r->body);
		buffer_append_string(&r->body,
			"{\"error\":\"etcdserver: requested lease not found\","
			"\"message\":\"etcdserver: requested lease not found\","
			"\"code\":5}");
	}
	document_free(d);
}

static void fault(enum how how, struct http_client_response *r)
{
	static const struct {
		long status;
		const char *body;
	} table[HOWS] = {
		[FORBIDS] = {403, "{\"error\":\"etcdserver: permission denied\",\"code\":7}"},
		[TOKEN_BAD] = {401, "{\"error\":\"etcdserver: invalid auth token\",\"code\":16}"},
		[GARBAGE] = {200, "<html>hello</html>"},
		[OVERLOADED] = {503, "later"},
	};

	r->status = table[how].status;
	if (table[how].body)
		buffer_append_string(&r->body, table[how].body);
	if (how == REFUSES || how == HANGS) {
		r->result = how == HANGS ? HTTP_CLIENT_TIMEOUT : HTTP_CLIENT_REFUSED;
		snprintf(r->message, sizeof(r->message), "%s",
			how == HANGS ? "timed out" : "connection refused");
	}
}

/* ---- the exchange that is played ---- */

static enum how how_of(const struct played *p)
{
	bool first = strcmp(p->q.place.base, w.settings->servers[0]->urls[0]) == 0;

	return first && w.how_first != ANSWERS ? w.how_first : w.how;
}

static void played_free(struct played *p)
{
	loop_timer_cancel(w.loop, &p->timer);
	buffer_fini(&p->body);
	free(p);
}

static int played_build(struct played *p, char why[FILE_WHY])
{
	struct kind_place place = p->q.place;
	struct kind_request r;
	int e;

	kind_request_init(&r);
	place.server = p->q.server;
	fault_memory.seen = 0;
	fault_memory.nth = w.short_at;
	e = p->q.calls->build(p->q.arg, &place, &r, why);
	fault_memory.nth = 0;
	if (e == 0) {
		assert_string_equal(r.method, "POST");
		assert_int_equal(strncmp(r.url.data, place.base, strlen(place.base)), 0);
		snprintf(p->api, sizeof(p->api), "%s", r.url.data + strlen(place.base));
		buffer_clear(&p->body);
		buffer_append(&p->body, r.body.data, r.body.len);
	}
	kind_request_fini(&r);
	return e;
}

static void played_end(void *arg)
{
	struct played *p = arg;
	struct http_client_response r = {.retry_after_ms = HTTP_CLIENT_NO_ADVICE};
	struct kind_place place = p->q.place;
	enum how how = how_of(p);

	buffer_init(&r.body, 2u << 20);
	place.server = p->q.server;
	if (how == ANSWERS)
		answer(p, &r);
	else
		fault(how, &r);
	w.refused += how != ANSWERS;
	p->again = false;
	w.running = NULL;
	p->q.calls->ended(p->q.arg, &place, &r);
	if (p->again) { /* logs in, which helps */
		w.logins++;
		w.how = ANSWERS;
		assert_null(w.running);
		w.running = p;
		loop_timer_set(w.loop, &p->timer, w.now_ms);
	} else {
		played_free(p);
	}
	buffer_fini(&r.body);
}

static int played_start(const struct exchange_env *env, const struct exchange_request *q,
	struct exchange **ret_exchange, char why[FILE_WHY])
{
	struct played *p = calloc(1, sizeof(*p));
	uint64_t takes_ms;
	int e;

	(void)env;
	assert_non_null(p);
	assert_null(w.running); /* never two at once */
	p->q = *q;
	buffer_init(&p->body, KIND_MAX_BODY);
	e = played_build(p, why);
	if (e) {
		w.refused++;
		played_free(p);
		return e;
	}
	w.total++;
	w.asked[((struct report *)q->arg)->errand]++;
	takes_ms = how_of(p) == HANGS ? q->timeout_ms : w.latency_ms;
	loop_timer_init(&p->timer, played_end, p);
	loop_timer_set(w.loop, &p->timer, w.now_ms + takes_ms);
	w.running = p;
	*ret_exchange = (struct exchange *)(void *)p;
	return 0;
}

static void played_cancel(struct exchange *x)
{
	struct played *p = (struct played *)(void *)x;

	if (!p)
		return;
	assert_ptr_equal(w.running, p);
	w.running = NULL;
	played_free(p);
}

static bool played_again(struct exchange *x, bool login)
{
	assert_true(login);
	((struct played *)(void *)x)->again = true;
	return true;
}

static void played_fini(struct exchange_session *s)
{
	(void)s;
}

/* ---- the world ---- */

static void look(void *arg, size_t i, struct receipt_config *c, struct receipt_texts *texts)
{
	assert_ptr_equal(arg, &w);
	w.looks++;
	snprintf(texts->version, sizeof(texts->version), "v%" PRIu64, w.configs[i].generation);
	c->generation = w.configs[i].generation;
	c->state = w.configs[i].state;
	c->version = texts->version;
	if (w.configs[i].why)
		c->why = w.configs[i].why;
}

static struct report *start_report(const char *host)
{
	const struct report_env env = {.sys = &w.sys,
		.loop = w.loop,
		.backoffs = w.backoffs,
		.settings = w.settings,
		.host = host,
		.look = look,
		.arg = &w};

	return report_start(&env);
}

static void world_start(const char *host)
{
	w.report = start_report(host);
	assert_non_null(w.report);
}

/* With that many configs; the report is started. */
static void world_open_with(size_t configs, const char *more)
{
	struct buffer text;

	model_random_start();
	w = (struct world){.now_ms = 1000, .leap_ms = 10, .sys = sys_real, .revision = 1};
	w.sys.now_ms = world_now;
	w.sys.wall_ms = world_wall;
	w.sys.random = world_random;
	w.sys.wait_until = world_wait;
	w.loop = loop_new(&w.sys);
	w.backoffs = backoffs_new(&w.sys);
	assert_non_null(w.loop);
	loop_timer_init(&w.tick, world_tick, NULL);
	buffer_init(&text, 1u << 16);
	for (size_t i = 0; i < configs; i++)
		buffer_printf(&text, "  c%03zu: {url: 'http://h/x', file: /run/c%03zu}\n", i, i);
	log_setup(LOG_LEVEL_ERR, LOG_FORMAT_TEXT);
	w.settings = scratch_settings("agent: {labels: {zone: eu-1}}\n"
				      "servers: {e: {kind: etcd, urls: ['http://a', 'http://b']}}\n"
				      "report: {server: e, %s}\nconfigs:\n%s",
		more, text.data);
	buffer_fini(&text);
	for (size_t i = 0; i < configs; i++)
		w.configs[i].generation = 1;
}

static void world_open(void)
{
	world_open_with(1, "ttl: 60s");
	world_start("h1");
}

/* No request failed by the agent's own fault. */
static void world_close(void)
{
	struct report_status s = {.failed = 0};

	if (w.report)
		report_status(w.report, &s);
	assert_true(s.failed == 0 || w.refused);
	report_stop(w.report);
	assert_null(w.running);
	while (w.key_count)
		key_drop(&w.keys[0]);
	backoffs_free(w.backoffs);
	loop_free(w.loop);
	settings_free(w.settings);
}

static void change(size_t config)
{
	w.configs[config].generation++;
	report_changed(w.report, config);
}

static struct report_status status(void)
{
	struct report_status s;

	report_status(w.report, &s);
	return s;
}

/* What lies in etcd says what stands, and is under a lease that lives. */
static void check_written(void)
{
	char name[128], version[32];
	struct receipt *r;

	expire_leases();
	for (size_t i = 0; i < w.settings->config_count; i++) {
		size_t page = i / RECEIPT_CONFIGS, left;
		const struct key *k;

		if (page)
			snprintf(name, sizeof(name), "/pullet/agents/h1#%zu", page + 1);
		else
			snprintf(name, sizeof(name), "/pullet/agents/h1");
		k = key_find(name);
		assert_non_null(k);
		assert_true(k->lease && w.leases[k->lease].until_ms > w.now_ms);
		assert_int_equal(receipt_read(k->value.data, k->value.len, &r), 0);
		snprintf(version, sizeof(version), "v%" PRIu64, w.configs[i].generation);
		assert_string_equal(r->configs[i % RECEIPT_CONFIGS].version, version);
		assert_int_equal(r->configs[i % RECEIPT_CONFIGS].state, w.configs[i].state);
		assert_int_equal(r->page, page + 1);
		left = w.settings->config_count - page * RECEIPT_CONFIGS;
		assert_int_equal(r->config_count, left < RECEIPT_CONFIGS ? left : RECEIPT_CONFIGS);
		assert_int_equal(r->pages, (w.settings->config_count - 1) / RECEIPT_CONFIGS + 1);
		assert_string_equal(r->labels[0].value, "eu-1");
		receipt_free(r);
	}
	assert_non_null(key_find("/pullet/agents/known/h1"));
}

/* ---- the cases ---- */

static void start__within_a_second__writes_who_it_is_and_what_it_runs(void **state)
{
	(void)state;
	world_open();
	assert_int_equal(status().state, REPORT_STARTING);
	pass(REPORT_FIRST_MS + 100);
	check_written();
	assert_int_equal(status().state, REPORT_OK);
	assert_string_equal(status().key, "/pullet/agents/h1");
	assert_string_equal(status().error, "");
	assert_int_equal(status().sent, 1);
	assert_int_equal(w.total, 3); /* lease, known, receipt */
	world_close();
}

static void nothing__for_an_hour__costs_renewals_and_checks_only(void **state)
{
	unsigned n;

	(void)state;
	world_open();
	w.leap_ms = 100;
	pass(3600000);
	n = w.asked[RENEW];
	assert_in_range(n, 180, 205); /* at a third of a minute, or a little before */
	assert_int_equal(w.asked[CHECK], n / 3);
	assert_int_equal(w.asked[GRANT], 1);
	assert_int_equal(w.writes, 2);
	for (unsigned i = 1; i < 64 && i < n; i++)
		assert_in_range(w.renewals_at[i] - w.renewals_at[i - 1], TTL_MS / 3 - TTL_MS / 30,
			TTL_MS / 3 + 200);
	check_written();
	world_close();
}

static void change__is_written_soon__and_many_are_one(void **state)
{
	unsigned before;

	(void)state;
	world_open();
	pass(60000);
	before = w.writes;
	change(0);
	pass(REPORT_FIRST_MS + 100);
	assert_int_equal(w.writes, before + 1);
	check_written();
	for (int i = 0; i < 380; i++) { /* for less than the rest, from the first change on */
		change(0);
		pass(0);
	}
	assert_int_equal(w.writes, before + 1);
	pass(REPORT_REST_MS + REPORT_FIRST_MS);
	assert_int_equal(w.writes, before + 2);
	check_written();
	/* one that is no change is not written */
	report_changed(w.report, 0);
	pass(20000);
	assert_int_equal(w.writes, before + 2);
	world_close();
}

static void change__that_never_ends__is_one_write_in_five_seconds(void **state)
{
	unsigned before;

	(void)state;
	world_open();
	pass(10000);
	before = w.writes;
	for (int i = 0; i < 6000; i++) {
		change(0);
		pass(0);
	}
	assert_in_range(w.writes - before, 9, 13);
	for (unsigned i = before; i + 1 < w.writes; i++)
		assert_true(w.writes_at[i + 1] - w.writes_at[i] >= REPORT_REST_MS);
	world_close();
}

static void change__during_a_write__leads_to_one_more(void **state)
{
	unsigned before;

	(void)state;
	world_open();
	pass(30000);
	before = w.writes;
	w.latency_ms = 3000;
	change(0);
	pass(2000);
	assert_non_null(w.running);
	change(0);
	change(0);
	pass(20000);
	assert_int_equal(w.writes, before + 2);
	assert_true(w.writes_at[before + 1] - w.writes_at[before] >= REPORT_REST_MS);
	check_written();
	world_close();
}

static void slow_etcd__is_asked_one_thing_at_a_time_and_keeps_the_lease(void **state)
{
	(void)state;
	world_open_with(250, "ttl: 60s");
	world_start("h1");
	w.latency_ms = 9000;
	w.leap_ms = 100;
	pass(600000);
	assert_int_equal(w.asked[GRANT], 1);
	assert_true(w.total <= 600 / 9 + 1);
	check_written();
	world_close();
}

static void pages__each_change__writes_only_its_own(void **state)
{
	unsigned before;

	(void)state;
	world_open_with(250, "ttl: 60s");
	world_start("h1");
	pass(10000);
	check_written();
	before = w.writes;
	change(150);
	pass(10000);
	assert_int_equal(w.writes, before + 1);
	assert_string_equal(w.written[before], "/pullet/agents/h1#2");
	change(0);
	change(249);
	pass(10000);
	assert_int_equal(w.writes, before + 3);
	assert_string_equal(w.written[before + 1], "/pullet/agents/h1");
	assert_string_equal(w.written[before + 2], "/pullet/agents/h1#3");
	check_written();
	world_close();
}

static void lost_lease__is_asked_for_anew__and_all_is_written(void **state)
{
	(void)state;
	world_open();
	pass(10000);
	w.leases[1].until_ms = w.now_ms; /* by an operator, or a clock that jumped */
	expire_leases();
	assert_null(key_find("/pullet/agents/h1"));
	pass(TTL_MS / 3 + 100);
	check_written();
	assert_int_equal(status().leases, 2);
	/* seen by a write */
	w.leases[2].until_ms = w.now_ms;
	change(0);
	pass(REPORT_REST_MS + 2 * REPORT_FIRST_MS + 100);
	check_written();
	assert_int_equal(status().leases, 3);
	assert_int_equal(status().failed, 0); /* it is nobody's fault, the first time */
	assert_int_equal(status().state, REPORT_OK);
	world_close();
}

static void machine__that_slept__asks_for_a_lease_at_once(void **state)
{
	(void)state;
	world_open();
	pass(10000);
	w.now_ms += 3600000;
	expire_leases();
	pass(100);
	check_written();
	assert_int_equal(w.asked[RENEW], 0);
	assert_int_equal(w.asked[GRANT], 2);
	world_close();
}

static void etcd__that_is_away__is_asked_less_and_less__and_gets_all_when_it_is_back(void **state)
{
	unsigned before;

	(void)state;
	world_open();
	pass(10000);
	w.how = REFUSES;
	w.leap_ms = 100;
	before = w.total;
	for (int i = 0; i < 600; i++) { /* ten minutes */
		if (i % 10 == 0)
			change(0);
		pass(900);
	}
	/* each address: six while the delay grows, then one in 30 to 60 s */
	assert_in_range(w.total - before, 2 * (6 + 9), 2 * (8 + 20));
	assert_int_equal(status().state, REPORT_FAILING);
	assert_non_null(strstr(status().error, "connection refused"));
	expire_leases();
	assert_null(key_find("/pullet/agents/h1"));
	w.how = ANSWERS;
	pass(REPORT_RETRY_MAX_MS + 1000);
	check_written();
	assert_int_equal(status().state, REPORT_OK);
	assert_string_equal(status().error, "");
	world_close();
}

static void etcd__that_hangs__has_one_request_at_a_time(void **state)
{
	(void)state;
	world_open();
	pass(10000);
	w.how = HANGS;
	change(0);
	w.leap_ms = 100;
	pass(300000);
	assert_in_range(w.refused, 10, 20);
	w.how = ANSWERS;
	pass(REPORT_RETRY_MAX_MS + REPORT_TIMEOUT_MS);
	check_written();
	world_close();
}

static void stop__during_a_write__ends_it_at_once(void **state)
{
	(void)state;
	world_open();
	w.how = HANGS;
	for (int i = 0; i < 200 && !w.running; i++)
		pass(10);
	assert_non_null(w.running);
	report_stop(w.report);
	assert_null(w.running);
	w.report = NULL;
	pass(20000);
	assert_int_equal(w.total, 1);
	world_close();
}

static unsigned said;

static void count_said(void *arg)
{
	assert_ptr_equal(arg, &w);
	said++;
}

/* Of the "known" value; 0 = it runs. */
static int64_t stopped_ms(void)
{
	const struct key *k = key_find("/pullet/agents/known/h1");
	struct receipt *r;
	int64_t ms;

	assert_int_equal(receipt_read_known(k->value.data, k->value.len, &r), 0);
	assert_int_equal(r->config_count, 1);
	ms = r->stopped_ms;
	receipt_free(r);
	return ms;
}

static void leave__says_so_in_one_request__and_the_next_start_takes_it_back(void **state)
{
	(void)state;
	said = 0;
	world_open();
	pass(5000);
	assert_int_equal(stopped_ms(), 0);
	w.how = HANGS; /* what is under way is given up */
	change(0);
	for (int i = 0; i < 2000 && !w.running; i++)
		pass(10);
	assert_non_null(w.running);
	w.how = ANSWERS;
	assert_true(report_leave(w.report, count_said, &w));
	assert_int_equal(said, 0);
	pass(100);
	assert_int_equal(said, 1);
	assert_in_range(stopped_ms(), world_wall() - 200, world_wall());
	change(0);
	pass(TTL_MS);
	assert_int_equal(said, 1);
	report_stop(w.report);
	world_start("h1");
	pass(5000);
	assert_int_equal(stopped_ms(), 0);
	check_written();
	world_close();
}

static void leave__that_fails__is_not_tried_again(void **state)
{
	unsigned before;

	(void)state;
	said = 0;
	world_open();
	pass(5000);
	w.how = REFUSES;
	w.refused = true;
	before = w.total;
	assert_true(report_leave(w.report, count_said, &w));
	pass(TTL_MS);
	assert_int_equal(said, 1);
	assert_int_equal(w.total, before + 1);
	assert_int_equal(stopped_ms(), 0);
	world_close();
}

static void leave__when_nothing_was_written_or_the_server_fails__asks_nothing(void **state)
{
	unsigned before;

	(void)state;
	said = 0;
	world_open();
	assert_false(report_leave(w.report, count_said, &w));
	pass(5000);
	assert_int_equal(w.total, 0);
	report_stop(w.report);
	world_start("h1");
	pass(5000);
	w.how = w.how_first = REFUSES;
	change(0);
	pass(20000);
	assert_int_equal(status().state, REPORT_FAILING);
	w.refused = true;
	before = w.total;
	assert_false(report_leave(w.report, count_said, &w));
	w.how = w.how_first = ANSWERS; /* too late */
	change(0);
	pass(TTL_MS);
	assert_int_equal(w.total, before);
	assert_int_equal(said, 0);
	assert_int_equal(status().state, REPORT_OFF);
	world_close();
}

static void first_address__that_fails__leaves_it_to_the_second_at_once(void **state)
{
	(void)state;
	for (int i = 0; i < 16; i++) { /* which of them is asked first is left to chance */
		world_open();
		w.how_first = REFUSES;
		pass(REPORT_FIRST_MS + 100);
		check_written();
		assert_int_equal(status().state, REPORT_OK);
		world_close();
	}
}

static void addresses__that_back_off_for_others__are_not_asked_and_the_lease_may_be_lost(
	void **state)
{
	const struct http_client_response busy = {
		.result = HTTP_CLIENT_OK, .status = 503, .retry_after_ms = 60000};
	const struct settings_server *server;
	struct backoff **list;
	unsigned before;

	(void)state;
	world_open();
	server = w.settings->servers[w.settings->report.server];
	list = backoff_join_all(w.backoffs, server);
	pass(41000);
	check_written();
	for (size_t i = 0; i < server->url_count; i++)
		backoff_ended(list[i], w.now_ms, &busy);
	before = w.total;
	change(0);
	pass(60000);
	assert_int_equal(w.total, before);
	expire_leases();
	assert_null(key_find("/pullet/agents/h1")); /* the price */
	assert_int_equal(status().state, REPORT_FAILING);
	assert_string_equal(status().error,
		"the address is in backoff: it answered 503, for longer than the lease lasts");
	pass(40000);
	check_written();
	assert_int_equal(status().state, REPORT_OK);
	assert_int_equal(status().failed, 0);
	assert_int_equal(status().leases, 2);
	backoff_leave_all(list, server->url_count);
	world_close();
}

static void request__that_is_turned_away__makes_its_address_back_off(void **state)
{
	const struct settings_server *server;
	struct backoff **list;
	unsigned before;

	(void)state;
	world_open();
	server = w.settings->servers[w.settings->report.server];
	list = backoff_join_all(w.backoffs, server);
	pass(5000);
	w.how = OVERLOADED;
	before = w.total;
	change(0);
	pass(10000);
	assert_true(w.total > before);
	for (size_t i = 0; i < server->url_count; i++)
		assert_int_equal(list[i]->shaper.count[SHAPER_CONGESTION] +
						 list[i]->shaper.count[SHAPER_NETWORK] !=
					 0,
			true);
	w.how = ANSWERS;
	pass(70000);
	check_written();
	for (size_t i = 0; i < server->url_count; i++)
		backoff_leave(list[i]);
	free(list);
	world_close();
}

static void renewal__that_failed__is_told_until_one_is_good(void **state)
{
	(void)state;
	world_open();
	pass(10000);
	w.how = REFUSES;
	pass(TTL_MS / 3);
	assert_int_equal(status().state, REPORT_FAILING);
	w.how = ANSWERS;
	pass(TTL_MS / 3);
	assert_int_equal(status().state, REPORT_OK);
	assert_int_equal(status().leases, 1);
	assert_int_equal(w.writes, 2);
	check_written();
	world_close();
}

static void answers__that_are_none__are_told_and_asked_for_again(void **state)
{
	static const struct {
		enum how how;
		const char *error;
	} table[] = {{FORBIDS, "permission denied"}, {GARBAGE, "not one of etcd's"},
		{OVERLOADED, "503"}};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		world_open();
		w.how = table[i].how;
		pass(60000);
		assert_int_equal(status().state, REPORT_FAILING);
		assert_non_null(strstr(status().error, table[i].error));
		assert_in_range(w.total, 10, 20);
		w.how = ANSWERS;
		pass(REPORT_RETRY_MAX_MS);
		check_written();
		world_close();
	}
}

static void token__that_is_not_good_any_more__is_replaced(void **state)
{
	(void)state;
	world_open();
	pass(5000);
	w.how = TOKEN_BAD;
	change(0);
	pass(10000);
	assert_int_equal(w.logins, 1);
	assert_int_equal(status().failed, 0);
	check_written();
	world_close();
}

static void key__that_somebody_else_wrote__is_told_and_written_again(void **state)
{
	(void)state;
	world_open();
	pass(10000);
	w.revision++;
	key_put("/pullet/agents/h1", "{}", 2, 0);
	change(0); /* the write finds out, */
	pass(7000);
	check_written();
	assert_string_equal(status().error, "the key was changed by another writer: unless etcd "
					    "was restored, another agent has "
					    "the same name: give each its own with report: host");
	assert_int_equal(status().state, REPORT_OK);
	pass(2 * TTL_MS);
	assert_string_equal(status().error, "");
	key_drop(key_find("/pullet/agents/h1")); /* or the check does */
	pass(TTL_MS + 1000);
	check_written();
	world_close();
}

static void etcd__restored_from_a_backup__gets_it_again_within_a_lease(void **state)
{
	struct buffer old;

	(void)state;
	world_open();
	pass(10000);
	buffer_init(&old, RECEIPT_MAX);
	buffer_append(&old, w.keys[1].value.data, w.keys[1].value.len);
	assert_string_equal(w.keys[1].name, "/pullet/agents/h1");
	for (int i = 0; i < 5; i++) {
		change(0);
		pass(10000);
	}
	check_written();
	/* the lease was in it */
	w.revision = w.keys[1].created + 1;
	key_put("/pullet/agents/h1", old.data, old.len, w.keys[1].lease);
	buffer_fini(&old);
	pass(TTL_MS + TTL_MS / 3);
	check_written();
	world_close();
}

static void known__keeps_since_when__and_tells_of_other_labels(void **state)
{
	static const char before[] = "{\"v\":1,\"first_ms\":77,\"labels\":{\"zone\":\"us\"},"
				     "\"configs\":[\"c000\",\"gone\"]}";
	struct receipt *r;
	const struct key *k;

	(void)state;
	world_open_with(1, "ttl: 60s");
	key_put("/pullet/agents/known/h1", before, strlen(before), 0);
	world_start("h1");
	pass(5000);
	k = key_find("/pullet/agents/known/h1");
	assert_int_equal(receipt_read_known(k->value.data, k->value.len, &r), 0);
	assert_int_equal(r->since_ms, 77);
	assert_string_equal(r->labels[0].value, "eu-1");
	assert_int_equal(r->config_count, 1);
	assert_int_equal(k->lease, 0);
	receipt_free(r);
	assert_int_equal(w.asked[GREET_AGAIN], 1);
	/* a second start finds it as it is */
	report_stop(w.report);
	world_start("h1");
	pass(5000);
	assert_int_equal(w.asked[GREET_AGAIN], 1);
	assert_int_equal(w.asked[GREET], 2);
	check_written();
	world_close();
}

static void applying__is_looked_at_again_until_it_ends(void **state)
{
	unsigned looks;

	(void)state;
	world_open();
	pass(10000);
	w.configs[0].state = RECEIPT_APPLYING;
	report_changed(w.report, 0);
	pass(REPORT_FIRST_MS + 1000);
	check_written();
	w.configs[0].state = RECEIPT_OK; /* nobody tells */
	pass(REPORT_LOOK_MS + REPORT_REST_MS + REPORT_FIRST_MS);
	check_written();
	looks = w.looks;
	pass(10000);
	assert_in_range(w.looks - looks, 0, 1);
	world_close();
}

static void state__that_nobody_told_of__is_seen_at_a_renewal(void **state)
{
	(void)state;
	world_open();
	pass(10000);
	w.configs[0].state = RECEIPT_STALE;
	pass(TTL_MS / 3 + REPORT_FIRST_MS);
	check_written();
	world_close();
}

static struct receipt *written(void)
{
	const struct key *k = key_find("/pullet/agents/h1");
	struct receipt *r;

	assert_non_null(k);
	assert_int_equal(receipt_read(k->value.data, k->value.len, &r), 0);
	return r;
}

static void since__is_when_version_and_state_came__not_the_last_reason(void **state)
{
	struct receipt *one, *two, *three;

	(void)state;
	world_open();
	w.configs[0].state = RECEIPT_FAILING;
	w.configs[0].why = "timed out after 5000 ms";
	pass(10000);
	one = written();
	w.configs[0].why = "timed out after 5001 ms";
	report_changed(w.report, 0);
	pass(10000);
	two = written();
	assert_string_equal(two->configs[0].why, "timed out after 5001 ms");
	assert_int_equal(one->configs[0].since_ms, two->configs[0].since_ms);
	w.configs[0].state = RECEIPT_STALE;
	report_changed(w.report, 0);
	pass(10000);
	three = written();
	assert_true(three->configs[0].since_ms >= one->configs[0].since_ms + 19000);
	receipt_free(one);
	receipt_free(two);
	receipt_free(three);
	world_close();
}

static void host__whose_name_is_no_key__writes_nothing(void **state)
{
	static const char *const names[] = {"", "a b", "a/b", "-a", "known/x"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		world_open_with(1, "ttl: 60s");
		world_start(names[i]);
		pass(10000);
		change(0);
		pass(10000);
		assert_int_equal(w.total, 0);
		assert_int_equal(status().state, REPORT_OFF);
		assert_non_null(strstr(status().error, "report: host"));
		world_close();
	}
}

static bool start_once(void)
{
	struct report *r = start_report("h1");

	report_stop(r);
	return !r;
}

static void start__without_memory__is_none(void **state)
{
	(void)state;
	world_open_with(250, "ttl: 60s");
	assert_true(fault_memory_each(start_once, false) >= 5);
	world_close();
}

static void requests__without_memory__are_made_when_there_is_some(void **state)
{
	unsigned failed = 0;

	(void)state;
	for (unsigned nth = 1; nth <= 12; nth++) {
		world_open_with(1, "ttl: 60s");
		w.short_at = nth;
		world_start("h1");
		pass(10000);
		failed += status().failed > 0;
		if (status().failed)
			assert_int_equal(status().state, REPORT_FAILING);
		w.short_at = 0;
		pass(REPORT_RETRY_MAX_MS);
		check_written();
		assert_int_equal(status().state, REPORT_OK);
		world_close();
	}
	assert_in_range(failed, 2, 11);
}

/* ---- anything may fail ---- */

static void stir(void)
{
	uint64_t n = random_below(4000);

	model_random.step++;
	if (n < 20)
		w.how = (enum how)random_below(HOWS);
	else if (n < 60)
		w.how = ANSWERS;
	else if (n < 70)
		w.how_first = random_below(2) ? REFUSES : ANSWERS;
	else if (n < 80)
		w.latency_ms = random_below(8000);
	else if (n < 90 && w.lease_count)
		w.leases[1 + random_below(w.lease_count)].until_ms = 0;
	else if (n < 95 && w.key_count)
		key_drop(&w.keys[random_below(w.key_count)]);
	else if (n < 97)
		w.now_ms += random_below(100000);
	else if (n < 400)
		change(random_below(w.settings->config_count));
	else if (n < 420)
		w.configs[random_below(w.settings->config_count)].state =
			(enum receipt_state)random_below(RECEIPT_OTHER);
	w.writes = 0; /* they are not counted here */
}

static void whatever_fails__in_the_end_all_is_written__and_never_in_a_storm(void **state)
{
	uint64_t begun_ms;

	(void)state;
	for (int i = 0; i < 9; i++) {
		size_t configs = i % 3 == 0 ? 250 : 1 + random_below(3);

		world_open_with(configs, "ttl: 60s");
		world_start("h1");
		begun_ms = w.now_ms;
		w.leap_ms = 200;
		w.step = stir;
		pass(1200000);
		w.step = NULL;
		/* a request or two a second while something fails or changes; one more for each
		 * page
		 */
		CHECK(w.total < 3 * (w.now_ms - begun_ms) / 1000);
		w.how = w.how_first = ANSWERS;
		w.latency_ms = 20;
		pass(REPORT_RETRY_MAX_MS + 2 * TTL_MS);
		for (size_t k = 0; k < w.settings->config_count; k++)
			if (w.configs[k].state == RECEIPT_APPLYING)
				w.configs[k].state = RECEIPT_OK;
		pass(TTL_MS);
		check_written();
		CHECK(status().state == REPORT_OK);
		world_close();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(start__within_a_second__writes_who_it_is_and_what_it_runs),
		cmocka_unit_test(nothing__for_an_hour__costs_renewals_and_checks_only),
		cmocka_unit_test(change__is_written_soon__and_many_are_one),
		cmocka_unit_test(change__that_never_ends__is_one_write_in_five_seconds),
		cmocka_unit_test(change__during_a_write__leads_to_one_more),
		cmocka_unit_test(slow_etcd__is_asked_one_thing_at_a_time_and_keeps_the_lease),
		cmocka_unit_test(pages__each_change__writes_only_its_own),
		cmocka_unit_test(lost_lease__is_asked_for_anew__and_all_is_written),
		cmocka_unit_test(machine__that_slept__asks_for_a_lease_at_once),
		cmocka_unit_test(
			etcd__that_is_away__is_asked_less_and_less__and_gets_all_when_it_is_back),
		cmocka_unit_test(etcd__that_hangs__has_one_request_at_a_time),
		cmocka_unit_test(stop__during_a_write__ends_it_at_once),
		cmocka_unit_test(leave__says_so_in_one_request__and_the_next_start_takes_it_back),
		cmocka_unit_test(leave__that_fails__is_not_tried_again),
		cmocka_unit_test(leave__when_nothing_was_written_or_the_server_fails__asks_nothing),
		cmocka_unit_test(first_address__that_fails__leaves_it_to_the_second_at_once),
		cmocka_unit_test(
			addresses__that_back_off_for_others__are_not_asked_and_the_lease_may_be_lost),
		cmocka_unit_test(request__that_is_turned_away__makes_its_address_back_off),
		cmocka_unit_test(renewal__that_failed__is_told_until_one_is_good),
		cmocka_unit_test(answers__that_are_none__are_told_and_asked_for_again),
		cmocka_unit_test(token__that_is_not_good_any_more__is_replaced),
		cmocka_unit_test(key__that_somebody_else_wrote__is_told_and_written_again),
		cmocka_unit_test(etcd__restored_from_a_backup__gets_it_again_within_a_lease),
		cmocka_unit_test(known__keeps_since_when__and_tells_of_other_labels),
		cmocka_unit_test(applying__is_looked_at_again_until_it_ends),
		cmocka_unit_test(state__that_nobody_told_of__is_seen_at_a_renewal),
		cmocka_unit_test(since__is_when_version_and_state_came__not_the_last_reason),
		cmocka_unit_test(host__whose_name_is_no_key__writes_nothing),
		cmocka_unit_test(whatever_fails__in_the_end_all_is_written__and_never_in_a_storm),
		cmocka_unit_test(start__without_memory__is_none),
		cmocka_unit_test(requests__without_memory__are_made_when_there_is_some),
	};

	return fault_memory_run(tests, 2);
}

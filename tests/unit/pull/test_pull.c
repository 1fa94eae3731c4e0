/*
 * The pulls of one run against small servers in the same loop: whole or not at all, each part as it
 * is held or new; and what a candidate makes of what came.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "verify/candidate.h"
#include "pull/pull.h"
#include "base/etag.h"
#include "pull/reading.h"
#include "tests/unit/fixture/scratch.h"
#include "tests/unit/fixture/web.h"

#define KEY "RWSYMC7n8ADplDfW2kiEMNo8BX8IPthSF1HxnEXGBzB/KwlR4ZfoNZlN"
#define MAX_SERVERS 4

/* Two origins, and settings that name them. */
struct site {
	struct sys sys;
	struct loop *loop;
	struct backoffs *backoffs;
	struct http_client *transport;
	struct web a, b;
	struct settings *settings;
	struct upstream *servers[MAX_SERVERS];
	struct worker *files, *check; /* NULL unless a case makes it */
	struct pull_env env;
};

/* One config's pulls. */
struct run {
	struct site *site;
	struct pull *g;
	const struct version *held;
	bool refuses; /* to begin */
	bool forced;
	unsigned begun, ended, lost;
	enum pull_outcome outcome;
	char why[FILE_WHY];
};

static uint64_t host_id;

/* ---- a kind that logs in, and orders its versions ---- */

/* What it was asked with last. */
static struct {
	bool held, same_address, forced;
	char epoch[128];
} asked;

static int build(const struct kind_place *place, struct kind_request *r, char why[FILE_WHY])
{
	(void)why;
	asked.held = place->held;
	asked.same_address = place->same_address;
	asked.forced = place->forced;
	snprintf(asked.epoch, sizeof(asked.epoch), "%s",
		place->held && place->held->epoch ? place->held->epoch : "");
	buffer_printf(&r->url, "%s%s", place->base, place->path);
	return place->token ? kind_header(r, "Token: %s", place->token) : 0;
}

/* Where an answer is read. */
static struct {
	sem_t begun, open;
	bool closed; /* until it opens, none is read */
	unsigned here, elsewhere;
	pthread_t loop;
} gate;

static void pass_gate(void)
{
	if (pthread_equal(pthread_self(), gate.loop)) {
		gate.here++;
		return;
	}
	gate.elsewhere++;
	if (gate.closed) {
		sem_post(&gate.begun);
		sem_wait(&gate.open);
	}
}

static bool begins_with(const struct buffer *b, const char *text)
{
	return b->len >= strlen(text) && memcmp(b->data, text, strlen(text)) == 0;
}

static enum kind_verdict read_answer(const struct kind_place *place,
	const struct http_client_response *response, struct kind_answer *ret)
{
	bool login = response->status == 401 || begins_with(&response->body, "login: "),
	     whole = response->status == 409 || begins_with(&response->body, "whole: ");
	enum kind_verdict verdict;

	pass_gate();
	if (login || whole) {
		snprintf(ret->why, FILE_WHY, "the answer is %ld", response->status);
		return login ? KIND_UNAUTHORIZED : KIND_WHOLE;
	}
	if (response->status != 200)
		return KIND_USUAL;
	verdict = kind_document(place, response, ret);
	if (begins_with(&response->body, "late: "))
		snprintf(ret->note, sizeof(ret->note), "the index went back");
	snprintf(ret->epoch, sizeof(ret->epoch), "%s", response->config_type);
	if (verdict == KIND_NEW && place->held && strcmp(place->held->etag, ret->version) == 0)
		verdict = KIND_SAME;
	return verdict;
}

static int login_build(const struct kind_place *place, struct kind_request *r, char why[FILE_WHY])
{
	(void)why;
	r->method = "POST";
	return buffer_printf(&r->url, "%s/login", place->base);
}

static int login_read(const struct http_client_response *response, char **ret_token,
	uint64_t *ret_lifetime_ms, char why[FILE_WHY])
{
	snprintf(why, FILE_WHY, "the login was answered %ld", response->status);
	if (response->status != 200)
		return response->status == 403   ? -EACCES
		       : response->status == 400 ? -EPROTO
						 : -EAGAIN;
	*ret_token = strdup("token");
	*ret_lifetime_ms = 0;
	return 0;
}

/* In place of the program's own. */
const struct kind kind_nacos = {.name = "fake",
	.build = build,
	.read = read_answer,
	.login_build = login_build,
	.login_read = login_read};

/* ---- the site ---- */

static uint64_t host(void)
{
	return host_id;
}

static void site_open(struct site *s)
{
	memset(s, 0, sizeof(*s));
	s->sys = sys_real;
	s->sys.host = host;
	s->loop = loop_new(&s->sys);
	s->backoffs = backoffs_new(&s->sys);
	s->transport = http_client_new(s->loop);
	assert_true(s->loop && s->transport);
	web_open(&s->a, s->loop);
	web_open(&s->b, s->loop);
}

/* Takes the settings. */
static void site_use(struct site *s, struct settings *settings)
{
	s->settings = settings;
	assert_true(settings->server_count <= MAX_SERVERS);
	for (size_t i = 0; i < settings->server_count; i++) {
		s->servers[i] = upstream_new(s->loop, s->backoffs, settings->servers[i]);
		assert_non_null(s->servers[i]);
	}
	s->env = (struct pull_env){
		.exchange = {.sys = &s->sys, .transport = s->transport}, .servers = s->servers};
}

static void site_close(struct site *s)
{
	for (size_t i = 0; i < MAX_SERVERS; i++)
		upstream_free(s->servers[i]);
	backoffs_free(s->backoffs);
	http_client_free(s->transport);
	if (s->files)
		assert_int_equal(worker_stop(s->files, 10000), 0);
	if (s->check)
		assert_int_equal(worker_stop(s->check, 10000), 0);
	web_close(&s->a);
	web_close(&s->b);
	loop_free(s->loop);
	settings_free(s->settings);
}

/* Nothing runs and nothing waits at any server. */
static void assert_idle(const struct site *s)
{
	for (size_t i = 0; i < s->settings->server_count; i++) {
		struct upstream_status status;

		upstream_status(s->servers[i], &status);
		assert_int_equal(status.in_flight, 0);
		assert_int_equal(status.pending, 0);
	}
}

static unsigned in_flight(const struct site *s, size_t server)
{
	struct upstream_status status;

	upstream_status(s->servers[server], &status);
	return status.in_flight;
}

static bool begins(void *arg)
{
	struct run *r = arg;

	r->begun++;
	pull_hold(r->g, r->held, r->forced);
	return !r->refuses;
}

static void ends(void *arg, enum pull_outcome outcome, const char *why)
{
	struct run *r = arg;

	r->ended++;
	r->outcome = outcome;
	snprintf(r->why, sizeof(r->why), "%s", why);
	loop_stop(r->site->loop);
}

static void is_lost(void *arg, const char *why)
{
	struct run *r = arg;

	r->lost++;
	snprintf(r->why, sizeof(r->why), "%s", why);
	loop_stop(r->site->loop);
}

static const struct pull_calls calls = {begins, ends, is_lost};

static void run_open(struct run *r, struct site *s, size_t config)
{
	*r = (struct run){.site = s};
	r->g = pull_new(&s->env, s->settings->configs[config], NULL, &calls, r);
	assert_non_null(r->g);
}

/* One run from its beginning to its end. */
static void pull(struct run *r)
{
	unsigned before = r->ended;

	r->why[0] = '\0';
	pull_submit(r->g, UINT64_MAX);
	if (r->ended == before) /* else a loop would not stop */
		assert_int_equal(loop_run(r->site->loop), 0);
	assert_int_equal(r->ended, before + 1);
	assert_false(pull_waiting(r->g));
	assert_idle(r->site);
}

static void assert_pulls(struct run *r, enum pull_outcome outcome, const char *why)
{
	pull(r);
	if (r->outcome != outcome || strcmp(r->why, why) != 0)
		fail_msg("outcome %d: %s", r->outcome, r->why);
}

static void stop(void *arg)
{
	loop_stop(arg);
}

/* The loop stops when a request to it hangs. */
static void stop_when_hanging(struct site *s, struct web *w)
{
	w->hangs = stop;
	w->arg = s->loop;
}

static void assert_part(
	const struct run *r, size_t i, enum pull_state state, const char *type, const char *body)
{
	const struct pull_part *p = pull_part(r->g, i);

	assert_int_equal(p->state, state);
	if (state == PULL_PULLED) {
		assert_string_equal(p->facts.type, type);
		assert_string_equal(p->body.data, body);
		assert_int_equal(p->facts.len, strlen(body));
	} else {
		assert_int_equal(p->body.len, 0);
		assert_int_equal(p->facts.absent, state == PULL_ABSENT);
	}
}

/* Three documents of server a, the last one optional. */
static void open_three(struct site *s, struct run *r)
{
	site_open(s);
	site_use(s, scratch_settings("servers: {a: {urls: ['%s']}}\n"
				     "configs:\n  web:\n    file: /run/web.yaml\n    from:\n"
				     "      - {server: a, path: /base.yaml}\n"
				     "      - {server: a, path: /web.json}\n"
				     "      - {server: a, path: /host.yaml, optional: true}\n",
			    s->a.url));
	web_put(&s->a, "/base.yaml", 200, "\"1-1\"", "a: 1\n");
	web_put(&s->a, "/web.json", 200, "\"1-2\"", "{\"b\": 2}");
	web_put(&s->a, "/host.yaml", 200, "\"1-3\"", "c: 3\n");
	run_open(r, s, 0);
}

/* The version that these three make: version_add() names its parts as they are named here. */
static void hold_three(const struct site *s, struct version *v, struct buffer *body)
{
	static const char *const paths[] = {"/base.yaml", "/web.json", "/host.yaml"};
	static const char *const texts[] = {"a: 1\n", "{\"b\": 2}", "c: 3\n"};
	char url[128];

	version_begin(v, body, 1);
	for (size_t i = 0; i < 3; i++) {
		snprintf(url, sizeof(url), "%s%s", s->a.url, paths[i]);
		version_add(v, body, url, i == 1 ? "json" : "yaml", texts[i]);
	}
	version_end(v, body);
}

static void close_run(struct site *s, struct run *r)
{
	pull_free(r->g);
	assert_idle(s);
	site_close(s);
}

/* ---- what comes ---- */

static void pull__with_nothing_held__brings_all_parts(void **state)
{
	char url[1100];
	struct site s;
	struct run r;

	(void)state;
	open_three(&s, &r);
	web_find(&s.a, "/web.json")->name = "Repr-Digest";
	web_find(&s.a, "/web.json")->value = "sha-256=:AAAA:";
	assert_pulls(&r, PULL_NEW, "");
	assert_int_equal(r.begun, 1);
	assert_int_equal(pull_count(r.g), 3);
	assert_part(&r, 0, PULL_PULLED, "yaml", "a: 1\n");
	assert_part(&r, 1, PULL_PULLED, "json", "{\"b\": 2}");
	assert_part(&r, 2, PULL_PULLED, "yaml", "c: 3\n");
	assert_null(pull_part(r.g, 0)->mismatch);
	assert_string_equal(
		pull_part(r.g, 1)->mismatch, "the SHA-256 in its Repr-Digest is none of 32 bytes");
	snprintf(url, sizeof(url), "%s/web.json", s.a.url);
	assert_string_equal(pull_part(r.g, 1)->facts.url, url);
	assert_string_equal(pull_part(r.g, 1)->facts.etag, "\"1-2\"");
	assert_int_equal(pull_part(r.g, 2)->layer, 2);
	assert_false(pull_part(r.g, 2)->signature);
	assert_true(pull_showed(r.g));
	assert_true(pull_shows(r.g, etag_hash("\"1-3\"")));
	assert_false(pull_shows(r.g, etag_hash("\"1-4\"")));
	assert_false(pull_overloaded(r.g));
	assert_ptr_equal(pull_server(r.g), s.servers[0]);
	pull_url(r.g, url);
	assert_non_null(strstr(url, "/base.yaml"));
	for (size_t i = 0; i < s.a.count; i++)
		assert_string_equal(s.a.pages[i].condition, "");
	pull_release(r.g);
	assert_null(pull_part(r.g, 0));
	assert_null(pull_part(r.g, 1));
	close_run(&s, &r);
}

static void pull__of_what_is_held__is_the_same_and_asks_for_each_by_its_name(void **state)
{
	struct version held;
	struct buffer body;
	struct site s;
	struct run r;

	(void)state;
	open_three(&s, &r);
	hold_three(&s, &held, &body);
	r.held = &held;
	assert_pulls(&r, PULL_SAME, "");
	for (size_t i = 0; i < 3; i++) {
		assert_part(&r, i, PULL_HELD, "", "");
		assert_string_equal(s.a.pages[i].condition, held.parts[i].etag);
		assert_int_equal(s.a.pages[i].unchanged, 1);
	}
	assert_true(pull_showed(r.g));
	assert_true(pull_shows(r.g, etag_hash("\"1-2\"")));
	assert_true(pull_covers(r.g, &held));
	version_fini(&held);
	buffer_fini(&body);
	close_run(&s, &r);
}

static void pull__of_one_that_is_new__keeps_the_others_as_they_are_held(void **state)
{
	struct version held;
	struct buffer body;
	struct site s;
	struct run r;

	(void)state;
	open_three(&s, &r);
	hold_three(&s, &held, &body);
	r.held = &held;
	web_put(&s.a, "/web.json", 200, "\"2\"", "{\"b\": 3}");
	assert_pulls(&r, PULL_NEW, "");
	assert_part(&r, 0, PULL_HELD, "", "");
	assert_part(&r, 1, PULL_PULLED, "json", "{\"b\": 3}");
	assert_part(&r, 2, PULL_HELD, "", "");
	version_fini(&held);
	buffer_fini(&body);
	close_run(&s, &r);
}

static void pull__with_parts_held_from_elsewhere__asks_for_these_without_condition(void **state)
{
	struct version held;
	struct buffer body;
	struct site s;
	struct run r;

	(void)state;
	open_three(&s, &r);
	hold_three(&s, &held, &body);
	r.held = &held;
	held.parts[1].url[7] = '9';
	held.parts[2].etag[0] = '\0';
	assert_false(pull_covers(r.g, &held));
	assert_pulls(&r, PULL_NEW, "");
	assert_part(&r, 0, PULL_HELD, "", "");
	assert_part(&r, 1, PULL_PULLED, "json", "{\"b\": 2}");
	assert_part(&r, 2, PULL_PULLED, "yaml", "c: 3\n");
	assert_string_equal(web_find(&s.a, "/web.json")->condition, "");
	/* of another number of parts, or of none that was ever accepted: nothing is held */
	held.parts[1].url[7] = '1';
	held.generation = 0;
	assert_pulls(&r, PULL_NEW, "");
	assert_part(&r, 0, PULL_PULLED, "yaml", "a: 1\n");
	held.generation = 1;
	held.part_count = 2;
	assert_false(pull_covers(r.g, &held));
	assert_pulls(&r, PULL_NEW, "");
	assert_part(&r, 0, PULL_PULLED, "yaml", "a: 1\n");
	held.part_count = 3;
	version_fini(&held);
	buffer_fini(&body);
	close_run(&s, &r);
}

static void pull__of_an_optional_part_that_is_absent__is_new_once(void **state)
{
	static const int statuses[] = {404, 410};
	struct version held;
	struct buffer body;
	struct site s;
	struct run r;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		open_three(&s, &r);
		web_put(&s.a, "/host.yaml", statuses[i], NULL, "gone\n");
		hold_three(&s, &held, &body);
		r.held = &held;
		assert_pulls(&r, PULL_NEW, ""); /* it was there */
		assert_part(&r, 0, PULL_HELD, "", "");
		assert_part(&r, 2, PULL_ABSENT, "", "");
		held.parts[2].absent = true;
		held.parts[2].etag[0] = '\0';
		assert_pulls(&r, PULL_SAME, "");
		assert_part(&r, 2, PULL_ABSENT, "", "");
		assert_true(pull_covers(r.g, &held));
		web_put(&s.a, "/host.yaml", 200, "\"9\"", "c: 9\n");
		assert_pulls(&r, PULL_NEW, ""); /* it is there again */
		assert_part(&r, 2, PULL_PULLED, "yaml", "c: 9\n");
		r.held = NULL;
		web_put(&s.a, "/host.yaml", statuses[i], NULL, "gone\n");
		assert_pulls(&r, PULL_NEW, "");
		assert_part(&r, 2, PULL_ABSENT, "", "");
		version_fini(&held);
		buffer_fini(&body);
		close_run(&s, &r);
	}
}

static void pull__with_signatures__brings_each_behind_its_document(void **state)
{
	struct site s;
	struct run r;

	(void)state;
	site_open(&s);
	site_use(&s, scratch_settings("servers: {a: {urls: ['%s/v1']}}\n"
				      "configs:\n  web:\n    file: /run/web.yaml\n"
				      "    verify: {public_key: " KEY "}\n    from:\n"
				      "      - {server: a, path: '/web.json?x=1'}\n"
				      "      - {server: a, path: /host, optional: true}\n"
				      "      - {server: a, path: /last, optional: true}\n",
			     s.a.url));
	web_put(&s.a, "/v1/web.json?x=1", 200, "\"1\"", "{}");
	web_put(&s.a, "/v1/web.json.minisig?x=1", 200, "\"2\"", "untrusted\n");
	web_put(&s.a, "/v1/host", 200, "\"3\"", "a: 1\n");
	run_open(&r, &s, 0);
	assert_pulls(&r, PULL_NEW, "");
	assert_int_equal(pull_count(r.g), 6);
	assert_part(&r, 0, PULL_PULLED, "json", "{}");
	assert_part(&r, 1, PULL_PULLED, "minisig", "untrusted\n");
	assert_part(&r, 2, PULL_PULLED, "yaml", "a: 1\n");
	for (size_t i = 3; i < 6; i++)
		assert_part(&r, i, PULL_ABSENT, "", "");
	assert_string_equal(pull_part(r.g, 3)->facts.type, "minisig");
	for (size_t i = 0; i < 6; i++) {
		assert_int_equal(pull_part(r.g, i)->layer, i / 2);
		assert_int_equal(pull_part(r.g, i)->signature, i % 2);
	}
	/* that a document has none is for the checks to say */
	web_put(&s.a, "/v1/web.json.minisig?x=1", 404, NULL, "");
	assert_pulls(&r, PULL_NEW, "");
	assert_part(&r, 1, PULL_ABSENT, "", "");
	web_put(&s.a, "/v1/web.json.minisig?x=1", 403, NULL, "");
	assert_pulls(&r, PULL_FAILED,
		"/web.json.minisig?...: the server answered 403: the server forbids it: "
		"check auth: and the rights of its user");
	close_run(&s, &r);
}

static void pull__of_a_single_document__says_its_failure_without_its_path(void **state)
{
	struct site s;
	struct run r;

	(void)state;
	site_open(&s);
	site_use(&s, scratch_settings("configs:\n  web:\n    url: %s/web.yaml\n    file: /run/x\n",
			     s.a.url));
	run_open(&r, &s, 0);
	assert_pulls(&r, PULL_FAILED,
		"the server answered 404: there is no such document: check the path");
	web_put(&s.a, "/web.yaml", 200, NULL, "a: 1\n");
	assert_pulls(&r, PULL_NEW, "");
	assert_false(pull_showed(r.g)); /* it has no name */
	close_run(&s, &r);
}

/* ---- several servers ---- */

/* Documents /1 to /3: of server a, b and b. */
static struct settings *two_servers(const struct site *s, const char *more_of_b)
{
	return scratch_settings("servers:\n  a: {urls: ['%s']}\n  b: {urls: ['%s']%s}\n"
				"configs:\n  web:\n    file: /run/web.yaml\n    from:\n"
				"      - {server: a, path: /1}\n"
				"      - {server: b, path: /2}\n"
				"      - {server: b, path: /3}\n"
				"  x: {file: /run/x, from: [{server: b, path: /x}]}\n"
				"  y: {file: /run/y, from: [{server: b, path: /y}]}\n",
		s->a.url, s->b.url, more_of_b);
}

static void pull__from_several_servers__asks_each_for_its_own(void **state)
{
	char url[128];
	struct site s;
	struct run r;

	(void)state;
	site_open(&s);
	site_use(&s, two_servers(&s, ", max_in_flight: 1"));
	web_put(&s.a, "/1", 200, "\"1\"", "a: 1\n");
	web_put(&s.b, "/2", 200, "\"2\"", "b: 2\n");
	web_put(&s.b, "/3", 200, "\"3\"", "c: 3\n");
	run_open(&r, &s, 0);
	assert_pulls(&r, PULL_NEW, "");
	assert_part(&r, 0, PULL_PULLED, "yaml", "a: 1\n");
	assert_part(&r, 1, PULL_PULLED, "yaml", "b: 2\n");
	assert_part(&r, 2, PULL_PULLED, "yaml", "c: 3\n");
	snprintf(url, sizeof(url), "%s/3", s.b.url);
	assert_string_equal(pull_part(r.g, 2)->facts.url, url);
	close_run(&s, &r);
}

static void lift__of_a_pull_from_several_servers__ends_the_backoff_of_each(void **state)
{
	static const char *const paths[] = {"/1", "/2"};
	struct site s;
	struct run r;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct upstream_address_status address;

		site_open(&s);
		site_use(&s, two_servers(&s, ""));
		web_put(&s.a, "/1", 200, NULL, "a: 1\n");
		web_put(&s.b, "/2", 200, NULL, "b: 2\n");
		web_put(&s.b, "/3", 200, NULL, "c: 3\n");
		web_put(i ? &s.b : &s.a, paths[i], 503, NULL, "");
		run_open(&r, &s, 0);
		pull(&r);
		assert_int_equal(r.outcome, PULL_FAILED);
		upstream_address_status(s.servers[i], 0, &address);
		assert_true(address.backoff_ms > 0);
		pull_lift(r.g);
		upstream_address_status(s.servers[i], 0, &address);
		assert_int_equal(address.backoff_ms, 0);
		web_put(i ? &s.b : &s.a, paths[i], 200, NULL, "d: 4\n");
		assert_pulls(&r, PULL_NEW, "");
		close_run(&s, &r);
	}
}

/* Makes the order of this host begin with that address. */
static void begin_with(struct site *s, size_t server, const char *url)
{
	struct upstream_address_status status;

	for (host_id = 1; host_id < 1000; host_id++) {
		upstream_free(s->servers[server]);
		s->servers[server] =
			upstream_new(s->loop, s->backoffs, s->settings->servers[server]);
		upstream_address_status(s->servers[server], 0, &status);
		if (strcmp(status.url, url) == 0)
			return;
	}
	fail();
}

static void pull__from_an_address_that_fails__goes_on_at_the_next_in_the_same_run(void **state)
{
	char url[128];
	struct site s;
	struct run r;

	(void)state;
	site_open(&s);
	site_use(&s, scratch_settings("servers: {a: {urls: ['%s', '%s']}}\n"
				      "configs:\n  web:\n    file: /run/web.yaml\n    from:\n"
				      "      - {server: a, path: /1}\n"
				      "      - {server: a, path: /2}\n",
			     s.a.url, s.b.url));
	begin_with(&s, 0, s.a.url);
	web_put(&s.a, "/1", 500, NULL, "broken\n");
	web_put(&s.a, "/2", 500, NULL, "broken\n");
	web_put(&s.b, "/1", 200, "\"1\"", "a: 1\n");
	web_put(&s.b, "/2", 200, "\"2\"", "b: 2\n");
	run_open(&r, &s, 0);
	assert_pulls(&r, PULL_NEW, "");
	assert_int_equal(r.begun, 1);
	snprintf(url, sizeof(url), "%s/1", s.b.url);
	assert_string_equal(pull_part(r.g, 0)->facts.url, url);
	assert_part(&r, 1, PULL_PULLED, "yaml", "b: 2\n");
	assert_true(web_find(&s.a, "/1")->asked == 1);
	close_run(&s, &r);
}

/* ---- how it fails ---- */

static void pull__of_which_one_fails__ends_all_others_and_is_told_once(void **state)
{
	char url[1024], failed_url[1024];
	struct site s;
	struct run r;

	(void)state;
	site_open(&s);
	site_use(&s, two_servers(&s, ""));
	web_put(&s.a, "/1", 0, NULL, NULL);
	web_put(&s.b, "/2", 0, NULL, NULL);
	web_put(&s.b, "/3", 403, NULL, "no\n");
	run_open(&r, &s, 0);
	assert_pulls(&r, PULL_FAILED,
		"/3: the server answered 403: the server forbids it: "
		"check auth: and the rights of its user");
	snprintf(url, sizeof(url), "%s/3", s.b.url);
	pull_failed_url(r.g, failed_url);
	assert_string_equal(failed_url, url);
	assert_int_equal(r.begun, 1);
	assert_false(pull_showed(r.g));
	/* and the next run is one of its own */
	web_put(&s.a, "/1", 200, NULL, "a: 1\n");
	web_put(&s.b, "/2", 200, NULL, "b: 2\n");
	web_put(&s.b, "/3", 200, NULL, "c: 3\n");
	assert_pulls(&r, PULL_NEW, "");
	assert_int_equal(r.begun, 2);
	snprintf(url, sizeof(url), "%s/1", s.a.url);
	pull_failed_url(r.g, failed_url); /* what fails now is none's */
	assert_string_equal(failed_url, url);
	close_run(&s, &r);
}

static void pull__of_which_the_first_fails__withdraws_those_that_wait(void **state)
{
	struct site s;
	struct run r, x;

	(void)state;
	site_open(&s);
	site_use(&s, two_servers(&s, ", max_in_flight: 1"));
	stop_when_hanging(&s, &s.b);
	web_put(&s.b, "/x", 0, NULL, NULL);
	web_put(&s.b, "/2", 200, NULL, "b: 2\n");
	web_put(&s.b, "/3", 200, NULL, "c: 3\n");
	web_put(&s.a, "/1", 403, NULL, "no\n");
	run_open(&x, &s, 1);
	run_open(&r, &s, 0);
	pull_submit(x.g, UINT64_MAX);
	assert_int_equal(loop_run(s.loop), 0);
	pull_submit(r.g, UINT64_MAX);
	assert_int_equal(loop_run(s.loop), 0);
	assert_int_equal(r.outcome, PULL_FAILED);
	assert_string_equal(r.why, "/1: the server answered 403: the server forbids it: "
				   "check auth: and the rights of its user");
	assert_int_equal(in_flight(&s, 1), 1); /* the other config's */
	pull_free(x.g);
	assert_int_equal(x.ended, 0);
	assert_idle(&s);
	assert_int_equal(web_find(&s.b, "/2")->asked, 0);
	close_run(&s, &r);
}

static void pull__that_is_turned_away__is_told_as_overload(void **state)
{
	static const int statuses[] = {429, 503};
	struct upstream_address_status address;
	struct site s;
	struct run r;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		open_three(&s, &r);
		web_put(&s.a, "/web.json", statuses[i], NULL, "later\n");
		pull(&r);
		assert_int_equal(r.outcome, PULL_FAILED);
		assert_int_equal(strncmp(r.why, "/web.json: the server answered ", 31), 0);
		assert_true(pull_overloaded(r.g));
		web_put(&s.a, "/web.json", 200, NULL, "{}");
		upstream_address_status(s.servers[0], 0, &address);
		assert_true(address.backoff_ms > 0);
		pull_lift(r.g); /* somebody wants it now */
		upstream_address_status(s.servers[0], 0, &address);
		assert_int_equal(address.backoff_ms, 0);
		assert_pulls(&r, PULL_NEW, "");
		assert_false(pull_overloaded(r.g));
		close_run(&s, &r);
	}
}

static void pull__whose_secret_cannot_be_read__is_rejected(void **state)
{
	struct site s;
	struct run r;

	(void)state;
	site_open(&s);
	site_use(&s, two_servers(&s, ", auth: {bearer_file: /none/token}"));
	web_put(&s.a, "/1", 0, NULL, NULL);
	run_open(&r, &s, 0);
	pull(&r); /* the second one, when the first is under way */
	assert_int_equal(r.outcome, PULL_REJECTED);
	assert_int_equal(strncmp(r.why, "/2: ", 4), 0);
	assert_non_null(strstr(r.why, "/none/token"));
	assert_int_equal(r.begun, 1);
	pull_free(r.g);
	run_open(&r, &s, 1); /* the only one */
	pull(&r);
	assert_int_equal(r.outcome, PULL_REJECTED);
	assert_int_equal(r.begun, 1);
	close_run(&s, &r);
}

static void pull__rejected_with_others_in_the_same_batch__does_not_begin_again_by_them(void **state)
{
	char dir[SCRATCH_PATH], more[SCRATCH_PATH + 64], token[SCRATCH_PATH + 16];
	struct site s;
	struct run r, x, y;

	(void)state;
	scratch_open(dir, scratch_memory());
	scratch_write(dir, "token", "secret\n", 7);
	snprintf(token, sizeof(token), "%s/token", dir);
	snprintf(more, sizeof(more), ", max_in_flight: 2, auth: {bearer_file: %s}", token);
	site_open(&s);
	site_use(&s, two_servers(&s, more));
	stop_when_hanging(&s, &s.b);
	web_put(&s.a, "/1", 0, NULL, NULL);
	web_put(&s.b, "/x", 0, NULL, NULL);
	web_put(&s.b, "/y", 0, NULL, NULL);
	run_open(&x, &s, 1);
	run_open(&y, &s, 2);
	run_open(&r, &s, 0);
	pull_submit(x.g, UINT64_MAX);
	pull_submit(y.g, UINT64_MAX);
	while (web_hanging(&s.b) < 2)
		assert_int_equal(loop_run(s.loop), 0);
	pull_submit(r.g, UINT64_MAX); /* the second and third wait */
	assert_int_equal(unlink(token), 0);
	pull_give_up(x.g);
	pull_give_up(y.g); /* two slots at once */
	assert_int_equal(loop_run(s.loop), 0);
	assert_int_equal(r.outcome, PULL_REJECTED);
	assert_int_equal(r.begun, 1);
	assert_int_equal(r.ended, 1);
	assert_idle(&s);
	pull_free(x.g);
	pull_free(y.g);
	close_run(&s, &r);
	scratch_close(dir);
}

/* ---- time ---- */

static void give_up__in_the_middle__ends_all_and_tells_nobody(void **state)
{
	struct site s;
	char text[FILE_WHY];
	struct run r;

	(void)state;
	site_open(&s);
	site_use(&s, two_servers(&s, ", max_in_flight: 1"));
	stop_when_hanging(&s, &s.b);
	web_put(&s.a, "/1", 0, NULL, NULL);
	web_put(&s.b, "/2", 0, NULL, NULL); /* and /3 waits behind it */
	run_open(&r, &s, 0);
	pull_submit(r.g, UINT64_MAX);
	assert_int_equal(loop_run(s.loop), 0);
	assert_int_equal(in_flight(&s, 0), 1);
	assert_int_equal(in_flight(&s, 1), 1);
	pull_waits_for(r.g, text);
	assert_string_equal(text, ": /1: the server has taken the request, and does not answer");
	assert_false(pull_give_up(r.g)); /* there is no other address */
	pull_waits_for(r.g, text);
	assert_string_equal(text, "");
	assert_idle(&s);
	assert_int_equal(r.ended, 0);
	assert_false(pull_showed(r.g));
	assert_false(pull_waiting(r.g));
	assert_false(pull_give_up(r.g)); /* nothing runs */
	web_put(&s.a, "/1", 200, NULL, "a: 1\n");
	web_put(&s.b, "/2", 200, NULL, "b: 2\n");
	web_put(&s.b, "/3", 200, NULL, "c: 3\n");
	assert_pulls(&r, PULL_NEW, "");
	close_run(&s, &r);
}

static void give_up__with_another_address__tells_that_it_is_ready(void **state)
{
	struct site s;
	struct run r;

	(void)state;
	site_open(&s);
	site_use(&s,
		scratch_settings("servers: {a: {urls: ['%s', '%s']}}\n"
				 "configs: {web: {file: /run/x, from: [{server: a, path: /1}]}}\n",
			s.a.url, s.b.url));
	begin_with(&s, 0, s.a.url);
	stop_when_hanging(&s, &s.a);
	web_put(&s.a, "/1", 0, NULL, NULL);
	web_put(&s.b, "/1", 200, NULL, "a: 1\n");
	run_open(&r, &s, 0);
	pull_submit(r.g, UINT64_MAX);
	assert_int_equal(loop_run(s.loop), 0);
	assert_true(pull_give_up(r.g));
	assert_idle(&s);
	assert_pulls(&r, PULL_NEW, ""); /* from there */
	assert_int_equal(web_find(&s.b, "/1")->asked, 1);
	close_run(&s, &r);
}

static void pull__that_runs_into_the_transfers_own_limit__is_a_timeout(void **state)
{
	struct site s;
	struct run r;
	uint64_t begun_ms;

	(void)state;
	site_open(&s);
	site_use(&s, scratch_settings("configs:\n  web:\n    url: %s/web.yaml\n    file: /run/x\n"
				      "    timeout: 100ms\n",
			     s.a.url));
	web_put(&s.a, "/web.yaml", 0, NULL, NULL);
	run_open(&r, &s, 0);
	begun_ms = sys_real.now_ms();
	pull(&r);
	assert_int_equal(r.outcome, PULL_TIMEOUT);
	assert_int_equal(strncmp(r.why, "timed out: ", 11), 0);
	assert_true(sys_real.now_ms() - begun_ms >= 190); /* well after that of the run */
	close_run(&s, &r);
}

static void submit__without_a_slot_in_time__is_lost_and_begins_nothing(void **state)
{
	struct site s;
	struct run x, y;

	(void)state;
	site_open(&s);
	site_use(&s, two_servers(&s, ", max_in_flight: 1"));
	stop_when_hanging(&s, &s.b);
	web_put(&s.b, "/x", 0, NULL, NULL);
	web_put(&s.b, "/y", 200, NULL, "y: 1\n");
	run_open(&x, &s, 1);
	run_open(&y, &s, 2);
	pull_submit(x.g, UINT64_MAX);
	assert_int_equal(loop_run(s.loop), 0);
	pull_submit(y.g, loop_now_ms(s.loop));
	assert_true(pull_waiting(y.g));
	pull_give_up(x.g);
	assert_int_equal(loop_run(s.loop), 0);
	assert_int_equal(y.lost, 1);
	assert_string_equal(y.why, "not pulled: the server did not take it in time");
	assert_int_equal(y.begun, 0);
	assert_int_equal(y.ended, 0);
	assert_false(pull_waiting(y.g));
	assert_pulls(&y, PULL_NEW, "");
	pull_free(x.g);
	close_run(&s, &y);
}

static void submit__that_is_withdrawn_or_not_wanted__begins_nothing(void **state)
{
	struct site s;
	struct run x, y;

	(void)state;
	site_open(&s);
	site_use(&s, two_servers(&s, ", max_in_flight: 1"));
	stop_when_hanging(&s, &s.b);
	web_put(&s.b, "/x", 0, NULL, NULL);
	web_put(&s.b, "/y", 200, NULL, "y: 1\n");
	run_open(&x, &s, 1);
	run_open(&y, &s, 2);
	y.refuses = true;
	pull_submit(y.g, UINT64_MAX);
	assert_int_equal(y.begun, 1);
	assert_idle(&s); /* the slot is free for another */
	pull_submit(x.g, UINT64_MAX);
	assert_int_equal(loop_run(s.loop), 0);
	assert_false(pull_waiting(x.g)); /* it runs */
	pull_submit(y.g, UINT64_MAX);
	assert_true(pull_waiting(y.g));
	pull_withdraw(y.g);
	assert_false(pull_waiting(y.g));
	pull_give_up(x.g);
	assert_idle(&s);
	assert_int_equal(y.begun, 1);
	assert_int_equal(y.lost + y.ended, 0);
	pull_free(x.g);
	close_run(&s, &y);
}

static void free__in_the_middle__gives_all_slots_back_and_tells_nobody(void **state)
{
	struct site s;
	struct run r;

	(void)state;
	site_open(&s);
	site_use(&s, two_servers(&s, ", max_in_flight: 1"));
	stop_when_hanging(&s, &s.b);
	web_put(&s.a, "/1", 0, NULL, NULL);
	web_put(&s.b, "/2", 0, NULL, NULL);
	run_open(&r, &s, 0);
	pull_submit(r.g, UINT64_MAX);
	assert_int_equal(loop_run(s.loop), 0);
	close_run(&s, &r);
	assert_int_equal(r.ended, 0);
	pull_free(NULL);
}

/* ---- why it failed ---- */

static void cause__of_each_failure__is_told_with_it(void **state)
{
	static const struct {
		int status;
		const char *body;
		enum pull_outcome outcome;
		enum kind_cause cause;
	} table[] = {
		{404, "", PULL_FAILED, KIND_CAUSE_NOT_FOUND},
		{410, "", PULL_FAILED, KIND_CAUSE_NOT_FOUND},
		{200, "", PULL_FAILED, KIND_CAUSE_EMPTY},
		{401, "", PULL_FAILED, KIND_CAUSE_FORBIDDEN},
		{403, "", PULL_FAILED, KIND_CAUSE_FORBIDDEN},
		{429, "", PULL_FAILED, KIND_CAUSE_OVERLOADED},
		{503, "", PULL_FAILED, KIND_CAUSE_OVERLOADED},
		{502, "", PULL_FAILED, KIND_CAUSE_UNREACHABLE},
		{302, "", PULL_FAILED, KIND_CAUSE_ANSWER},
		{0, "", PULL_TIMEOUT, KIND_CAUSE_TIMEOUT},
		{200, "a: 1\n", PULL_NEW, KIND_CAUSE_NONE},
	};
	struct site s;
	struct run r;

	(void)state;
	site_open(&s);
	site_use(&s, scratch_settings("configs:\n  web:\n    url: %s/web.yaml\n    file: /run/x\n"
				      "    timeout: 100ms\n",
			     s.a.url));
	run_open(&r, &s, 0);
	assert_int_equal(pull_cause(r.g), KIND_CAUSE_NONE);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		web_put(&s.a, "/web.yaml", table[i].status, NULL, table[i].body);
		pull_lift(r.g);
		pull(&r);
		assert_int_equal(r.outcome, table[i].outcome);
		assert_int_equal(pull_cause(r.g), table[i].cause);
	}
	web_close(&s.a);
	pull(&r);
	assert_int_equal(r.outcome, PULL_FAILED);
	assert_int_equal(pull_cause(r.g), KIND_CAUSE_UNREACHABLE);
	close_run(&s, &r);
}

static void cause__of_a_run_that_is_given_up_or_not_sent__is_told_too(void **state)
{
	struct site s;
	struct run r;

	(void)state;
	site_open(&s);
	site_use(&s, two_servers(&s, ", auth: {bearer_file: /none/token}"));
	web_put(&s.a, "/1", 0, NULL, NULL);
	run_open(&r, &s, 0);
	pull(&r); /* the second one has no secret */
	assert_int_equal(r.outcome, PULL_REJECTED);
	assert_int_equal(pull_cause(r.g), KIND_CAUSE_HOST);
	pull_free(r.g);
	site_close(&s);
	site_open(&s);
	site_use(&s, two_servers(&s, ""));
	stop_when_hanging(&s, &s.b);
	web_put(&s.b, "/x", 0, NULL, NULL);
	run_open(&r, &s, 1);
	pull_submit(r.g, UINT64_MAX);
	assert_int_equal(loop_run(s.loop), 0);
	assert_int_equal(pull_cause(r.g), KIND_CAUSE_NONE);
	pull_give_up(r.g);
	assert_int_equal(pull_cause(r.g), KIND_CAUSE_TIMEOUT);
	close_run(&s, &r);
}

/* ---- another document instead ---- */

/* What is asked when nothing stands. */
static void open_instead(struct site *s, struct run *r, const char *more)
{
	site_open(s);
	site_use(s, scratch_settings("servers:\n  a: {urls: ['%s']}\n  b: {urls: ['%s']}\n"
				     "configs:\n  web:\n    file: /run/web.yaml\n%s    from:\n"
				     "      - {server: a, path: /1}\n"
				     "      - {server: a, path: /2}\n"
				     "    bootstrap: {server: b, path: /boot.json}\n",
			    s->a.url, s->b.url, more));
	web_put(&s->b, "/boot.json", 200, "\"b\"", "{\"a\": 1}");
	*r = (struct run){.site = s};
	r->g = pull_new(
		&s->env, s->settings->configs[0], s->settings->configs[0]->bootstrap, &calls, r);
	assert_non_null(r->g);
}

static void pull__of_two_layers_of_a_server__is_one_config_of_it(void **state)
{
	struct site s;
	struct run r, own;

	(void)state;
	open_instead(&s, &r, "");
	run_open(&own, &s, 0);
	assert_int_equal(upstream_outage(s.servers[0])->configs, 1);
	assert_int_equal(upstream_outage(s.servers[1])->configs, 0); /* a bootstrap's */
	pull_free(own.g);
	assert_int_equal(upstream_outage(s.servers[0])->configs, 0);
	close_run(&s, &r);
}

static void pull__of_a_document_instead__leaves_the_other_layers_absent(void **state)
{
	struct candidate *c = candidate_new();
	char why[FILE_WHY] = "", url[1024];
	struct site s;
	struct run r, other;

	(void)state;
	open_instead(&s, &r, "");
	assert_ptr_equal(pull_server(r.g), s.servers[1]);
	pull_url(r.g, url);
	assert_non_null(strstr(url, "/boot.json"));
	for (int i = 0; i < 2; i++) { /* what is absent is so in each run */
		assert_pulls(&r, PULL_NEW, "");
		assert_int_equal(pull_count(r.g), 2);
		assert_part(&r, 0, PULL_PULLED, "json", "{\"a\": 1}");
		assert_part(&r, 1, PULL_ABSENT, "", "");
		assert_int_equal(pull_part(r.g, 1)->layer, 1);
	}
	assert_true(pull_showed(r.g));
	pull_lift(r.g);
	/* it is a version like any other, but not one of the layers' own servers */
	assert_int_equal(candidate_take(c, r.g, NULL, NULL, NULL, 77, why), 0);
	assert_true(c->version.parts[1].absent);
	c->version.generation = 1;
	run_open(&other, &s, 0);
	assert_true(pull_covers(r.g, &c->version));
	assert_false(pull_covers(other.g, &c->version));
	c->version.parts[1].absent = false;
	assert_false(pull_covers(r.g, &c->version));
	c->version.parts[1].absent = true;
	r.held = &c->version;
	assert_pulls(&r, PULL_SAME, "");
	assert_part(&r, 0, PULL_HELD, "", "");
	assert_part(&r, 1, PULL_ABSENT, "", "");
	other.held = &c->version; /* nothing of it is a condition there */
	web_put(&s.a, "/1", 200, "\"b\"", "b: 1\n");
	web_put(&s.a, "/2", 404, NULL, "");
	pull(&other);
	assert_int_equal(other.outcome, PULL_FAILED);
	assert_int_equal(pull_cause(other.g), KIND_CAUSE_NOT_FOUND);
	assert_string_equal(web_find(&s.a, "/1")->condition, "");
	pull_free(other.g);
	candidate_free(c);
	close_run(&s, &r);
}

static void pull__of_a_document_instead__needs_its_signature_and_can_fail(void **state)
{
	struct site s;
	struct run r;

	(void)state;
	open_instead(&s, &r, "    verify: {public_key: " KEY "}\n");
	assert_pulls(&r, PULL_NEW, "");
	assert_int_equal(pull_count(r.g), 4);
	assert_part(&r, 0, PULL_PULLED, "json", "{\"a\": 1}");
	for (size_t i = 1; i < 4; i++)
		assert_part(&r, i, PULL_ABSENT, "", "");
	web_put(&s.b, "/boot.json.minisig", 200, NULL, "untrusted\n");
	assert_pulls(&r, PULL_NEW, "");
	assert_part(&r, 1, PULL_PULLED, "minisig", "untrusted\n");
	assert_true(pull_part(r.g, 1)->signature && pull_part(r.g, 3)->signature);
	web_put(&s.b, "/boot.json", 404, NULL, "");
	assert_pulls(&r, PULL_FAILED,
		"/boot.json: the server answered 404: there is no such document: check the path");
	pull_submit(r.g, UINT64_MAX);
	assert_false(pull_give_up(r.g)); /* the absent ones have no server */
	close_run(&s, &r);
}

/* ---- an answer without a request ---- */

static uint64_t offer_ms;

static uint64_t offer_clock(void)
{
	return offer_ms;
}

static void open_offered(struct site *s, struct run *r, const char *more)
{
	offer_ms = 1000000;
	site_open(s);
	site_use(s, scratch_settings("servers: {b: {kind: nacos, urls: ['%s']}}\n"
				     "configs: {web: {file: /run/web.yaml, from: "
				     "[{server: b, path: /g/1}%s]}}\n",
			    s->b.url, more));
	s->sys.now_ms = offer_clock;
	web_put(&s->b, "/g/1", 200, "\"1\"", "a: 1\n");
	web_put(&s->b, "/g/2", 200, "\"2\"", "b: 2\n");
	run_open(r, s, 0);
}

static void offer(struct run *r, long status, const char *etag, const char *text)
{
	struct http_client_response answer = {.status = status, .framed = true};

	snprintf(answer.etag, sizeof(answer.etag), "%s", etag);
	buffer_init(&answer.body, 2 * READING_LARGE);
	assert_int_equal(buffer_append(&answer.body, text, strlen(text)), 0);
	pull_offer(r->g, &answer);
	buffer_fini(&answer.body);
}

static void offer__of_the_only_document__needs_no_request(void **state)
{
	struct site s;
	struct run r;

	(void)state;
	open_offered(&s, &r, "");
	offer(&r, 200, "\"6\"", "a: 6\n");
	offer(&r, 200, "\"7\"", "a: 7\n"); /* the newer one counts */
	offer_ms += PULL_OFFER_MS;
	assert_pulls(&r, PULL_NEW, "");
	assert_int_equal(r.begun, 1);
	assert_part(&r, 0, PULL_PULLED, "yaml", "a: 7\n");
	assert_string_equal(pull_part(r.g, 0)->facts.etag, "\"7\"");
	assert_true(pull_shows(r.g, etag_hash("\"7\"")));
	assert_int_equal(web_find(&s.b, "/g/1")->asked, 0);
	assert_int_equal(loop_run(s.loop), 0); /* it was stopped before it ran */
	assert_pulls(&r, PULL_NEW, "");        /* the offer counts once */
	assert_part(&r, 0, PULL_PULLED, "yaml", "a: 1\n");
	close_run(&s, &r);
}

static void offer__of_what_is_held__is_the_same(void **state)
{
	struct version held;
	struct buffer body;
	char url[128];
	struct site s;
	struct run r;

	(void)state;
	open_offered(&s, &r, "");
	snprintf(url, sizeof(url), "%s/g/1", s.b.url);
	version_begin(&held, &body, 1);
	version_add(&held, &body, url, "yaml", "a: 1\n");
	version_end(&held, &body);
	r.held = &held;
	offer(&r, 200, held.parts[0].etag, "a: 1\n");
	assert_pulls(&r, PULL_SAME, "");
	assert_int_equal(web_find(&s.b, "/g/1")->asked, 0);
	version_fini(&held);
	buffer_fini(&body);
	close_run(&s, &r);
}

static void assert_asks(struct site *s, struct run *r)
{
	unsigned before = web_find(&s->b, "/g/1")->asked;

	assert_pulls(r, PULL_NEW, "");
	assert_int_equal(web_find(&s->b, "/g/1")->asked, before + 1);
	assert_part(r, 0, PULL_PULLED, "yaml", "a: 1\n");
}

static void offer__that_is_old_or_bad_or_not_enough__is_asked_for(void **state)
{
	static char large[READING_LARGE + 2];
	struct site s;
	struct run r;

	(void)state;
	open_offered(&s, &r, "");
	offer(&r, 200, "\"7\"", "a: 7\n");
	offer_ms += PULL_OFFER_MS + 1;
	assert_asks(&s, &r);
	offer(&r, 200, "\"7\"", "");
	assert_asks(&s, &r);
	offer(&r, 404, "", "no\n");
	assert_asks(&s, &r);
	offer(&r, 200, "\"7\"", "late: 7\n"); /* a newer one may have been pulled meanwhile */
	assert_asks(&s, &r);
	offer(&r, 401, "", "no\n");
	assert_asks(&s, &r);
	snprintf(large, sizeof(large), "a: %0*d\n", READING_LARGE - 4, 7);
	assert_int_equal(strlen(large), READING_LARGE);
	offer(&r, 200, "\"7\"", large);
	assert_pulls(&r, PULL_NEW, "");
	assert_part(&r, 0, PULL_PULLED, "yaml", large);
	assert_int_equal(loop_run(s.loop), 0); /* it was stopped before it ran */
	snprintf(large, sizeof(large), "a: %0*d\n", READING_LARGE - 3, 7);
	offer(&r, 200, "\"7\"", large);
	assert_asks(&s, &r);
	offer(&r, 200, "\"7\"", "a: 7\n");
	r.forced = true; /* who forces a pull wants what the server has */
	assert_asks(&s, &r);
	r.forced = false;
	assert_asks(&s, &r);
	close_run(&s, &r);
	open_offered(&s, &r, ", {server: b, path: /g/2}");
	offer(&r, 200, "\"7\"", "a: 7\n");
	assert_asks(&s, &r);
	assert_part(&r, 1, PULL_PULLED, "yaml", "b: 2\n");
	close_run(&s, &r);
}

/* ---- kinds that log in ---- */

/* Documents /1 of a web server; /g/2, /g/3 of one that wants a login. Password: a file. */
static void open_login(struct site *s, struct run *r, char dir[SCRATCH_PATH])
{
	scratch_open(dir, scratch_memory());
	scratch_write(dir, "password", "secret\n", 7);
	site_open(s);
	site_use(s, scratch_settings("servers:\n  a: {urls: ['%s']}\n"
				     "  b: {kind: nacos, urls: ['%s'], "
				     "auth: {basic: {user: me, password_file: %s/password}}}\n"
				     "configs:\n  web:\n    file: /run/web.yaml\n    from:\n"
				     "      - {server: a, path: /1}\n"
				     "      - {server: b, path: /g/2}\n"
				     "      - {server: b, path: /g/3}\n"
				     "  x: {file: /run/x, from: [{server: b, path: /g/2}]}\n"
				     "  y: {file: /run/y, from: [{server: b, path: /g/3}]}\n",
			    s->a.url, s->b.url, dir));
	web_put(&s->a, "/1", 200, "\"1\"", "a: 1\n");
	web_put(&s->b, "/login", 200, NULL, "ok");
	web_put(&s->b, "/g/2", 200, "\"2\"", "b: 2\n");
	web_put(&s->b, "/g/3", 200, "\"3\"", "c: 3\n");
	run_open(r, s, 0);
}

static void close_login(struct site *s, struct run *r, const char *dir)
{
	close_run(s, r);
	scratch_close(dir);
}

static void pull__from_a_server_with_a_login__logs_in_once(void **state)
{
	char dir[SCRATCH_PATH];
	struct site s;
	struct run r;

	(void)state;
	open_login(&s, &r, dir);
	assert_pulls(&r, PULL_NEW, "");
	assert_part(&r, 1, PULL_PULLED, "yaml", "b: 2\n");
	assert_part(&r, 2, PULL_PULLED, "yaml", "c: 3\n");
	assert_pulls(&r, PULL_NEW, "");
	assert_int_equal(web_find(&s.b, "/login")->asked, 1);
	/* a token that is refused, and again: that is no matter of the login */
	web_put(&s.b, "/g/2", 401, NULL, "no\n");
	assert_pulls(&r, PULL_FAILED, "/g/2: the answer is 401");
	assert_int_equal(pull_cause(r.g), KIND_CAUSE_FORBIDDEN);
	assert_int_equal(web_find(&s.b, "/login")->asked, 2);
	close_login(&s, &r, dir);
}

static void pull__whose_login_is_refused__says_so_and_the_address_is_well(void **state)
{
	struct upstream_address_status status;
	char dir[SCRATCH_PATH];
	struct site s;
	struct run r;

	(void)state;
	open_login(&s, &r, dir);
	web_put(&s.b, "/login", 403, NULL, "no\n");
	assert_pulls(&r, PULL_FAILED, "/g/2: the login was answered 403");
	assert_int_equal(pull_cause(r.g), KIND_CAUSE_FORBIDDEN);
	upstream_address_status(s.servers[1], 0, &status);
	assert_true(status.backoff_ms == 0 && status.in_a_row == 0);
	assert_int_equal(web_find(&s.b, "/login")->asked, 1);
	web_put(&s.b, "/login", 400, NULL, "what?\n");
	assert_pulls(&r, PULL_FAILED, "/g/2: the login was answered 400");
	assert_int_equal(pull_cause(r.g), KIND_CAUSE_ANSWER);
	close_login(&s, &r, dir);
}

static void pull__whose_login_finds_no_service__leaves_the_address_alone(void **state)
{
	static const int statuses[] = {429, 503, 500};
	struct upstream_address_status status;
	char dir[SCRATCH_PATH];
	struct site s;
	struct run r;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		open_login(&s, &r, dir);
		web_put(&s.b, "/login", statuses[i], NULL, "later\n");
		pull(&r);
		assert_int_equal(r.outcome, PULL_FAILED);
		assert_int_equal(pull_overloaded(r.g), statuses[i] != 500);
		upstream_address_status(s.servers[1], 0, &status);
		assert_int_equal(status.in_a_row, 1);
		assert_int_equal(status.congestion, statuses[i] != 500);
		close_login(&s, &r, dir);
	}
}

/* A request to a, and the login at b: both hang. */
static void hang_both(struct site *s, struct run *r)
{
	web_put(&s->a, "/1", 0, NULL, NULL);
	web_put(&s->b, "/login", 0, NULL, NULL);
	stop_when_hanging(s, &s->a);
	stop_when_hanging(s, &s->b);
	pull_submit(r->g, UINT64_MAX);
	while (web_hanging(&s->a) + web_hanging(&s->b) < 2)
		assert_int_equal(loop_run(s->loop), 0);
	assert_int_equal(in_flight(s, 1), 2);
}

/* One of the run's own pulls logs in when the one before it is cancelled, and cannot: the run is
 * over by then. */
static void pull__that_ends_while_another_part_logs_in__is_told_once(void **state)
{
	char dir[SCRATCH_PATH], password[SCRATCH_PATH + 16];
	struct httpd_request *hanging;
	struct site s;
	struct run r;

	(void)state;
	for (int way = 0; way < 3; way++) {
		open_login(&s, &r, dir);
		snprintf(password, sizeof(password), "%s/password", dir);
		hang_both(&s, &r);
		assert_int_equal(unlink(password), 0);
		if (way == 0) {
			hanging = s.a.hanging[0];
			s.a.hanging[0] = NULL;
			httpd_reply(hanging, 403, "text/plain", "no\n", 3);
			assert_int_equal(loop_run(s.loop), 0);
			assert_string_equal(r.why,
				"/1: the server answered 403: the server forbids it: "
				"check auth: and the rights of its user");
		} else if (way == 1) {
			assert_false(pull_give_up(r.g));
		} else {
			pull_free(r.g);
			r.g = NULL;
		}
		assert_int_equal(r.ended, way == 0 ? 1 : 0);
		assert_idle(&s);
		close_login(&s, &r, dir);
		assert_int_equal(r.ended, way == 0 ? 1 : 0);
	}
}

static void pull__that_ends__lets_the_login_of_another_config_go_on(void **state)
{
	struct httpd_request *hanging;
	char dir[SCRATCH_PATH];
	struct site s;
	struct run r, x;

	(void)state;
	open_login(&s, &r, dir);
	hang_both(&s, &r);
	run_open(&x, &s, 1);
	pull_submit(x.g, UINT64_MAX); /* it waits for the login of the other */
	web_put(&s.b, "/login", 200, NULL, "ok");
	hanging = s.a.hanging[0];
	s.a.hanging[0] = NULL;
	httpd_reply(hanging, 403, "text/plain", "no\n", 3);
	while (r.ended + x.ended < 2)
		assert_int_equal(loop_run(s.loop), 0);
	assert_int_equal(r.outcome, PULL_FAILED);
	assert_int_equal(x.outcome, PULL_NEW);
	assert_part(&x, 0, PULL_PULLED, "yaml", "b: 2\n");
	pull_free(x.g);
	close_login(&s, &r, dir);
}

static void pull__of_parts_of_a_document__asks_for_the_whole_once(void **state)
{
	char dir[SCRATCH_PATH];
	struct site s;
	struct run r;

	(void)state;
	open_login(&s, &r, dir);
	web_put(&s.b, "/g/2", 409, NULL, "a part\n");
	assert_pulls(&r, PULL_FAILED, "/g/2: the answer is 409");
	assert_int_equal(pull_cause(r.g), KIND_CAUSE_ANSWER);
	assert_int_equal(web_find(&s.b, "/g/2")->asked, 2);
	close_login(&s, &r, dir);
}

/* ---- large answers ---- */

/* The same, with a thread. /g/2 and /g/3 are as large as need be, and begin so. */
static void open_large(struct site *s, struct run *r, char dir[SCRATCH_PATH], const char *begin)
{
	static char text[2 * READING_LARGE];

	memset(text, '#', sizeof(text) - 1);
	memcpy(text, begin, strlen(begin));
	memset(&gate, 0, sizeof(gate));
	gate.loop = pthread_self();
	sem_init(&gate.begun, 0, 0);
	sem_init(&gate.open, 0, 0);
	open_login(s, r, dir);
	s->check = worker_start(s->loop, "check");
	assert_non_null(s->check);
	s->env.check = s->check;
	web_put(&s->b, "/g/2", 200, "\"2\"", text);
	web_put(&s->b, "/g/3", 200, "\"3\"", text);
}

static void close_large(struct site *s, struct run *r, const char *dir)
{
	close_login(s, r, dir);
	sem_destroy(&gate.begun);
	sem_destroy(&gate.open);
}

static void pull__of_large_answers__reads_them_on_the_thread(void **state)
{
	char dir[SCRATCH_PATH];
	struct site s;
	struct run r;

	(void)state;
	open_large(&s, &r, dir, "b: 2\n");
	assert_pulls(&r, PULL_NEW, "");
	assert_part(&r, 1, PULL_PULLED, "yaml", web_find(&s.b, "/g/2")->body);
	assert_part(&r, 2, PULL_PULLED, "yaml", web_find(&s.b, "/g/3")->body);
	assert_string_equal(pull_part(r.g, 1)->facts.etag, "\"2\"");
	assert_int_equal(gate.here, 0);
	assert_int_equal(gate.elsewhere, 2);
	web_put(&s.b, "/g/3", 200, "\"3\"", "c: 3\n");
	assert_pulls(&r, PULL_NEW, "");
	assert_int_equal(gate.here, 1);
	assert_int_equal(gate.elsewhere, 3);
	close_large(&s, &r, dir);
}

static void pull__of_a_large_answer_that_is_none__asks_again_once(void **state)
{
	static const char *const begins[] = {"login: ", "whole: "};
	char dir[SCRATCH_PATH];
	struct site s;
	struct run r;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		open_large(&s, &r, dir, begins[i]);
		web_put(&s.b, "/g/3", 200, "\"3\"", "c: 3\n");
		assert_pulls(&r, PULL_FAILED, "/g/2: the answer is 200");
		assert_int_equal(
			pull_cause(r.g), i == 0 ? KIND_CAUSE_FORBIDDEN : KIND_CAUSE_ANSWER);
		assert_int_equal(web_find(&s.b, "/g/2")->asked, 2);
		assert_int_equal(web_find(&s.b, "/login")->asked, i == 0 ? 2 : 1);
		assert_int_equal(gate.elsewhere, 2);
		close_large(&s, &r, dir);
	}
}

struct looking {
	struct loop_timer timer;
	struct run *run;
};

/* Stops the loop when one of two is being read, and the other one waits for that. */
static void look(void *arg)
{
	struct looking *l = arg;
	struct loop *loop = l->run->site->loop;

	if (pull_reading(l->run->g) && sem_trywait(&gate.begun) == 0)
		loop_stop(loop);
	else
		loop_timer_set(loop, &l->timer, loop_now_ms(loop) + 1);
}

static void begin_reading(struct run *r)
{
	struct looking l = {.run = r};

	gate.closed = true;
	loop_timer_init(&l.timer, look, &l);
	loop_timer_set(r->site->loop, &l.timer, 0);
	assert_false(pull_reading(r->g));
	pull_submit(r->g, UINT64_MAX);
	assert_int_equal(loop_run(r->site->loop), 0);
}

static void pull__that_ends_while_an_answer_is_read__tells_nobody(void **state)
{
	char dir[SCRATCH_PATH];
	struct site s;
	struct run r;

	(void)state;
	for (int way = 0; way < 3; way++) {
		open_large(&s, &r, dir, "b: 2\n");
		begin_reading(&r);
		assert_int_equal(in_flight(&s, 1), 2);
		if (way == 0) {
			pull_drop(r.g);
		} else if (way == 1) {
			assert_false(pull_give_up(r.g));
		} else {
			pull_free(r.g);
			r.g = NULL;
		}
		assert_idle(&s);
		assert_int_equal(gate.elsewhere, 1); /* the other one is never read */
		gate.closed = false;
		sem_post(&gate.open);
		if (r.g) {
			assert_pulls(&r, PULL_NEW, "");
			assert_int_equal(gate.elsewhere, 3);
		}
		assert_int_equal(r.ended, r.g ? 1 : 0);
		close_large(&s, &r, dir);
	}
}

/* ---- files of this host ---- */

static void pull__of_a_file_that_is_none__keeps_no_other_file_waiting(void **state)
{
	struct upstream_address_status status;
	char dir[SCRATCH_PATH];
	struct site s;
	struct run x, y;

	(void)state;
	scratch_open(dir, scratch_memory());
	scratch_write(dir, "web.yaml", "a: 1\n", 5);
	site_open(&s);
	s.files = worker_start(s.loop, "test");
	assert_non_null(s.files);
	site_use(&s,
		scratch_settings("servers: {f: {kind: file}}\nconfigs:\n"
				 "  x: {file: /run/x, from: [{server: f, path: %s}]}\n"
				 "  y: {file: /run/y, from: [{server: f, path: %s/web.yaml}]}\n",
			dir, dir));
	s.env.exchange.files = s.files;
	run_open(&x, &s, 0);
	run_open(&y, &s, 1);
	for (int i = 0; i < 3; i++) {
		assert_pulls(&x, PULL_FAILED, "the file cannot be read: it is a directory");
		assert_int_equal(pull_cause(x.g), KIND_CAUSE_ANSWER);
		upstream_address_status(s.servers[0], 0, &status);
		assert_true(status.backoff_ms == 0 && status.in_a_row == 0);
		assert_pulls(&y, PULL_NEW, "");
		assert_part(&y, 0, PULL_PULLED, "yaml", "a: 1\n");
	}
	pull_submit(y.g, UINT64_MAX);
	pull_free(y.g); /* while it is read */
	close_run(&s, &x);
	assert_int_equal(y.ended, 3);
	scratch_close(dir);
}

/* ---- versions that are ordered ---- */

static void pull__of_ordered_versions__keeps_their_order_and_tells_the_kind(void **state)
{
	struct candidate *c = candidate_new();
	char why[FILE_WHY] = "", dir[SCRATCH_PATH];
	struct web_page *page;
	struct site s;
	struct run r;

	(void)state;
	open_login(&s, &r, dir);
	pull_free(r.g);
	run_open(&r, &s, 1);
	page = web_find(&s.b, "/g/2");
	page->name = "Config-Type";
	page->value = "cluster-1 7";
	assert_pulls(&r, PULL_NEW, "");
	assert_false(asked.held);
	assert_string_equal(pull_part(r.g, 0)->facts.epoch, "cluster-1 7");
	assert_int_equal(candidate_take(c, r.g, NULL, NULL, NULL, 77, why), 0);
	assert_non_null(c->version.parts[0].epoch);
	assert_string_equal(c->version.parts[0].epoch, "cluster-1 7");
	c->version.generation = 1;
	r.held = &c->version;
	page->value = "cluster-1 8";
	assert_pulls(&r, PULL_SAME, ""); /* by the kind's own judgement */
	assert_true(asked.held && asked.same_address && !asked.forced);
	assert_string_equal(asked.epoch, "cluster-1 7");
	r.forced = true;
	page->etag = "\"9\"";
	page->value = NULL;
	page->name = NULL;
	assert_pulls(&r, PULL_NEW, "");
	assert_true(asked.forced);
	assert_null(pull_part(r.g, 0)->facts.epoch);
	candidate_free(c);
	close_login(&s, &r, dir);
}

static void pull__of_what_came_from_another_address__names_it_to_the_kind(void **state)
{
	char url[128];
	struct version held;
	struct buffer body;
	struct site s;
	struct run r;

	(void)state;
	site_open(&s);
	site_use(&s,
		scratch_settings("servers: {b: {kind: nacos, urls: ['%s', '%s']}}\n"
				 "configs: {x: {file: /run/x, from: [{server: b, path: /g/2}]}}\n",
			s.a.url, s.b.url));
	web_put(&s.a, "/g/2", 200, "\"1-1\"", "b: 2\n");
	web_put(&s.b, "/g/2", 200, "\"1-1\"", "b: 2\n");
	begin_with(&s, 0, s.a.url);
	run_open(&r, &s, 0);
	for (int other = 0; other < 4; other++) {
		snprintf(url, sizeof(url), "%s%s", other % 2 ? s.b.url : s.a.url,
			other < 2 ? "/g/2" : "/g/3");
		version_begin(&held, &body, 1);
		version_add(&held, &body, url, "yaml", "b: 2\n");
		version_end(&held, &body);
		r.held = &held;
		pull(&r);
		assert_int_equal(r.outcome, other < 2 ? PULL_SAME : PULL_NEW);
		assert_int_equal(asked.held, other < 2);
		assert_int_equal(asked.same_address, other == 0);
		version_fini(&held);
		buffer_fini(&body);
	}
	close_run(&s, &r);
}

/* ---- what a candidate makes of it ---- */

static void take__of_new_parts__has_their_bytes_and_what_their_servers_said(void **state)
{
	struct candidate *c = candidate_new();
	char why[FILE_WHY] = "";
	struct site s;
	struct run r;

	(void)state;
	open_three(&s, &r);
	web_find(&s.a, "/web.json")->name = "Repr-Digest";
	web_find(&s.a, "/web.json")->value = "sha-256=:AAAA:";
	web_put(&s.a, "/host.yaml", 404, NULL, "none\n");
	assert_pulls(&r, PULL_NEW, "");
	assert_int_equal(candidate_take(c, r.g, NULL, NULL, NULL, 77, why), 0);
	pull_release(r.g); /* it needs it no more */
	assert_string_equal(version_origin(&c->version), "pull");
	assert_true(c->version.pulled_ms == 77);
	assert_int_equal(c->version.generation, 0);
	assert_int_equal(c->version.part_count, 3);
	assert_string_equal(c->body.data, "a: 1\n{\"b\": 2}");
	assert_memory_equal(c->pieces[1].data, "{\"b\": 2}", 8);
	assert_string_equal(c->pieces[0].mismatch, "");
	assert_string_equal(
		c->pieces[1].mismatch, "the SHA-256 in its Repr-Digest is none of 32 bytes");
	assert_string_equal(c->version.parts[1].etag, "\"1-2\"");
	assert_true(c->version.parts[2].absent);
	assert_int_equal(c->version.parts[2].len, 0);
	candidate_free(c);
	close_run(&s, &r);
}

static void take__with_parts_that_are_held__has_the_bytes_of_the_held_version(void **state)
{
	static const char whole[] = "a: 1\n{\"b\": \"longer\"}c: 3\n";
	struct candidate *c;
	char dir[SCRATCH_PATH], why[FILE_WHY] = "", digest[DIGEST_HEX];
	struct version held;
	struct buffer body;
	struct store *store;
	struct site s;
	struct run r;

	(void)state;
	scratch_open(dir, scratch_memory());
	assert_int_equal(store_open(&sys_real, dir, "web", 10, &store, why), 0);
	open_three(&s, &r);
	hold_three(&s, &held, &body);
	assert_int_equal(store_save(store, &held, body.data, body.len, false, why), 0);
	r.held = &held;
	web_put(&s.a, "/web.json", 200, "\"2\"", "{\"b\": \"longer\"}");
	assert_pulls(&r, PULL_NEW, "");
	digest_sha256(whole, strlen(whole), NULL, 0, digest);
	for (int given = 0; given < 2; given++) { /* the bytes are in the store, or in memory */
		c = candidate_new();
		assert_int_equal(candidate_take(c, r.g, given ? NULL : store, &held,
					 given ? &body : NULL, 77, why),
			0);
		assert_string_equal(c->body.data, whole);
		assert_string_equal(c->version.sha256, digest);
		assert_string_equal(c->version.parts[0].etag, "\"1-1\"");
		assert_string_equal(c->version.parts[1].etag, "\"2\"");
		assert_string_equal(c->version.parts[2].url, held.parts[2].url);
		assert_memory_equal(c->pieces[2].data, "c: 3\n", 5);
		candidate_free(c);
	}
	/* the store does not have it, or has another one under its number */
	for (int other = 0; other < 2; other++) {
		if (other)
			held.sha256[0] ^= 1;
		else
			held.generation = 5;
		c = candidate_new();
		assert_true(candidate_take(c, r.g, store, &held, NULL, 77, why) < 0);
		assert_string_equal(
			why, "the current version cannot be read from the state directory");
		candidate_free(c);
		held.generation = 1;
	}
	version_fini(&held);
	buffer_fini(&body);
	store_close(store);
	close_run(&s, &r);
	scratch_close(dir);
}

static void seen__of_a_server_that_watches__is_the_last_answer_with_a_version(void **state)
{
	struct version held;
	struct buffer body;
	struct site s;
	struct run r;

	(void)state;
	open_three(&s, &r);
	s.settings->servers[0]->watch = true;
	assert_pulls(&r, PULL_NEW, "");
	assert_string_equal(pull_seen(r.g, 1), "\"1-2\"");
	web_put(&s.a, "/web.json", 200, "\"2-2\"", "{\"b\": 3}");
	assert_pulls(&r, PULL_NEW, "");
	assert_string_equal(pull_seen(r.g, 1), "\"2-2\"");
	web_put(&s.a, "/web.json", 500, NULL, "broken\n");
	pull(&r);
	assert_int_equal(r.outcome, PULL_FAILED);
	assert_string_equal(pull_seen(r.g, 1), "\"2-2\""); /* it had none */
	hold_three(&s, &held, &body);
	r.held = &held;
	web_put(&s.a, "/web.json", 200, "\"1-2\"", "{\"b\": 2}");
	assert_pulls(&r, PULL_SAME, "");
	assert_string_equal(pull_seen(r.g, 1), "\"1-2\"");
	web_put(&s.a, "/host.yaml", 404, NULL, "");
	assert_pulls(&r, PULL_NEW, "");
	assert_string_equal(pull_seen(r.g, 2), "");
	web_put(&s.a, "/web.json", 404, NULL, "");
	pull(&r);
	assert_int_equal(r.outcome, PULL_FAILED); /* it is not optional */
	assert_string_equal(pull_seen(r.g, 1), "");
	version_fini(&held);
	buffer_fini(&body);
	close_run(&s, &r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(offer__of_the_only_document__needs_no_request),
		cmocka_unit_test(offer__of_what_is_held__is_the_same),
		cmocka_unit_test(offer__that_is_old_or_bad_or_not_enough__is_asked_for),
		cmocka_unit_test(pull__with_nothing_held__brings_all_parts),
		cmocka_unit_test(pull__of_what_is_held__is_the_same_and_asks_for_each_by_its_name),
		cmocka_unit_test(pull__of_one_that_is_new__keeps_the_others_as_they_are_held),
		cmocka_unit_test(
			pull__with_parts_held_from_elsewhere__asks_for_these_without_condition),
		cmocka_unit_test(pull__of_an_optional_part_that_is_absent__is_new_once),
		cmocka_unit_test(pull__with_signatures__brings_each_behind_its_document),
		cmocka_unit_test(pull__of_a_single_document__says_its_failure_without_its_path),
		cmocka_unit_test(pull__from_several_servers__asks_each_for_its_own),
		cmocka_unit_test(lift__of_a_pull_from_several_servers__ends_the_backoff_of_each),
		cmocka_unit_test(
			pull__from_an_address_that_fails__goes_on_at_the_next_in_the_same_run),
		cmocka_unit_test(pull__of_which_one_fails__ends_all_others_and_is_told_once),
		cmocka_unit_test(pull__of_which_the_first_fails__withdraws_those_that_wait),
		cmocka_unit_test(pull__that_is_turned_away__is_told_as_overload),
		cmocka_unit_test(pull__whose_secret_cannot_be_read__is_rejected),
		cmocka_unit_test(
			pull__rejected_with_others_in_the_same_batch__does_not_begin_again_by_them),
		cmocka_unit_test(give_up__in_the_middle__ends_all_and_tells_nobody),
		cmocka_unit_test(give_up__with_another_address__tells_that_it_is_ready),
		cmocka_unit_test(pull__that_runs_into_the_transfers_own_limit__is_a_timeout),
		cmocka_unit_test(submit__without_a_slot_in_time__is_lost_and_begins_nothing),
		cmocka_unit_test(submit__that_is_withdrawn_or_not_wanted__begins_nothing),
		cmocka_unit_test(free__in_the_middle__gives_all_slots_back_and_tells_nobody),
		cmocka_unit_test(cause__of_each_failure__is_told_with_it),
		cmocka_unit_test(cause__of_a_run_that_is_given_up_or_not_sent__is_told_too),
		cmocka_unit_test(pull__of_two_layers_of_a_server__is_one_config_of_it),
		cmocka_unit_test(pull__of_a_document_instead__leaves_the_other_layers_absent),
		cmocka_unit_test(pull__of_a_document_instead__needs_its_signature_and_can_fail),
		cmocka_unit_test(pull__from_a_server_with_a_login__logs_in_once),
		cmocka_unit_test(pull__whose_login_is_refused__says_so_and_the_address_is_well),
		cmocka_unit_test(pull__whose_login_finds_no_service__leaves_the_address_alone),
		cmocka_unit_test(pull__that_ends_while_another_part_logs_in__is_told_once),
		cmocka_unit_test(pull__that_ends__lets_the_login_of_another_config_go_on),
		cmocka_unit_test(pull__of_parts_of_a_document__asks_for_the_whole_once),
		cmocka_unit_test(pull__of_large_answers__reads_them_on_the_thread),
		cmocka_unit_test(pull__of_a_large_answer_that_is_none__asks_again_once),
		cmocka_unit_test(pull__that_ends_while_an_answer_is_read__tells_nobody),
		cmocka_unit_test(pull__of_a_file_that_is_none__keeps_no_other_file_waiting),
		cmocka_unit_test(pull__of_ordered_versions__keeps_their_order_and_tells_the_kind),
		cmocka_unit_test(pull__of_what_came_from_another_address__names_it_to_the_kind),
		cmocka_unit_test(take__of_new_parts__has_their_bytes_and_what_their_servers_said),
		cmocka_unit_test(take__with_parts_that_are_held__has_the_bytes_of_the_held_version),
		cmocka_unit_test(seen__of_a_server_that_watches__is_the_last_answer_with_a_version),
	};

	alarm(20);
	log_setup(LOG_LEVEL_ERR, LOG_FORMAT_TEXT);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

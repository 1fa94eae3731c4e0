/*
 * A server's addresses: their order differs from host to host, evenly, and stays when one is added.
 * A task that fails, or shows less than there is, goes on to the next. Its line: who is withdrawn
 * does not begin. What else a server does with pulls is held by
 * tests/integration/test_servers.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "pull/upstream.h"
#include "tests/unit/fixture/captured.h"
#include "tests/unit/fixture/fault_memory.h"

#define HOSTS 3000

static uint64_t host_id;
static struct backoffs *backoffs; /* of this test */

static struct upstream *make_server(
	struct loop *l, const struct sys *sys, const struct settings_server *settings)
{
	struct upstream *s;

	backoffs = backoffs_new(sys);
	assert_non_null(backoffs);
	s = upstream_new(l, backoffs, settings);
	assert_non_null(s);
	return s;
}

static void unmake_server(struct upstream *s)
{
	upstream_free(s);
	backoffs_free(backoffs);
}

static uint64_t host(void)
{
	/* like hashes of names that differ in one digit */
	return host_id * UINT64_C(0x9e3779b97f4a7c15);
}

static char urls[4][40] = {"https://config-1.example", "https://config-2.example",
	"https://config-3.example", "https://config-4.example"};
static char *lists[2][4] = {{urls[0], urls[1], urls[2]}, {urls[3], urls[2], urls[1], urls[0]}};

/* The addresses in the order of this host. */
static void order(struct loop *l, unsigned list, size_t count, const char *ret_order[4])
{
	struct settings_server settings = {
		.urls = lists[list], .url_count = count, .max_in_flight = 1};
	struct upstream *s = make_server(l, &sys_real, &settings);
	struct upstream_address_status a;

	assert_non_null(s);
	for (size_t i = 0; i < count; i++) {
		upstream_address_status(s, i, &a);
		ret_order[i] = a.url;
	}
	unmake_server(s);
}

static void order__of_many_hosts__is_even(void **state)
{
	struct sys sys = sys_real;
	unsigned first[3][3] = {{0}};
	const char *o[4];
	struct loop *l;

	(void)state;
	sys.host = host;
	l = loop_new(&sys);
	assert_non_null(l);
	for (host_id = 0; host_id < HOSTS; host_id++) {
		order(l, 0, 3, o);
		for (unsigned place = 0; place < 3; place++)
			for (unsigned url = 0; url < 3; url++)
				first[place][url] += o[place] == urls[url];
	}
	for (unsigned place = 0; place < 3; place++)
		for (unsigned url = 0; url < 3; url++)
			assert_in_range(first[place][url], HOSTS / 3 - 150, HOSTS / 3 + 150);
	loop_free(l);
}

static void order__with_one_more_address__keeps_that_of_the_others(void **state)
{
	struct sys sys = sys_real;
	const char *before[4], *after[4];
	unsigned added_first = 0;
	struct loop *l;

	(void)state;
	sys.host = host;
	l = loop_new(&sys);
	assert_non_null(l);
	for (host_id = 0; host_id < HOSTS; host_id++) {
		unsigned n = 0;

		order(l, 0, 3, before);
		order(l, 1, 4, after); /* written in another order, too */
		for (unsigned i = 0; i < 4; i++)
			if (after[i] != urls[3])
				assert_ptr_equal(after[i], before[n++]);
		added_first += after[0] == urls[3];
	}
	assert_in_range(added_first, HOSTS / 4 - 150, HOSTS / 4 + 150);
	loop_free(l);
}

/* How many lines an upstream of these addresses writes as it begins. */
static unsigned count_warnings(struct settings_server *settings)
{
	static char plain[] = "HTTP://plain.example", secure[] = "https://secure.example",
		    other[] = "http2://other.example", own[] = "http://127.0.0.1:8080",
		    own_v6[] = "http://[::1]", own_name[] = "http://localhost:1", name[] = "main";
	char *list[] = {secure, plain, other, own, own_v6, own_name}, text[4096];
	struct captured log;
	struct loop *l = loop_new(&sys_real);
	unsigned lines = 0;

	assert_non_null(l);
	settings->urls = list;
	settings->url_count = 6;
	settings->max_in_flight = 1;
	settings->name = name;
	log_setup(LOG_LEVEL_WARN, LOG_FORMAT_TEXT);
	log = captured_begin(STDERR_FILENO);
	unmake_server(make_server(l, &sys_real, settings));
	captured_read(&log, text, sizeof(text));
	captured_end(&log);
	loop_free(l);
	for (const char *p = text; (p = strstr(p, "without TLS: anyone")); p++)
		lines++;
	if (lines)
		assert_non_null(strstr(text, "server=main url=HTTP://plain.example"));
	return lines;
}

static void secrets__over_plain_http__are_warned_of_at_the_start(void **state)
{
	static char text[] = "/nowhere";
	struct settings_header header = {.name = text, .value = text};
	struct settings_server table[] = {{.bearer_file = text}, {.user = text},
		{.headers = &header, .header_count = 1}, {.ca = text}};

	(void)state;
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(count_warnings(&table[i]), i < 3);
}

static void server__without_memory__is_none(void **state)
{
	struct settings_server settings = {.urls = lists[1], .url_count = 4, .max_in_flight = 2};
	struct backoffs *all = backoffs_new(&sys_real);
	struct loop *l = loop_new(&sys_real);
	unsigned failures = 0;
	bool hit = true;

	(void)state;
	assert_true(all && l);
	for (unsigned n = 1; hit; n++) {
		struct upstream *s;

		fault_memory.seen = 0;
		fault_memory.nth = n;
		s = upstream_new(l, all, &settings);
		fault_memory.nth = 0;
		hit = fault_memory.seen >= n;
		assert_true(s || hit);
		failures += !s;
		upstream_free(s);
		assert_in_range(n, 1, 50);
	}
	assert_true(failures > 8); /* itself, its line, each address */
	upstream_free(NULL);
	backoffs_free(all);
	loop_free(l);
}

static void leave__makes_room_for_the_next(void **state)
{
	struct settings_server settings = {.urls = lists[1], .url_count = 4, .max_in_flight = 2};
	struct loop *l = loop_new(&sys_real);
	struct upstream *s = make_server(l, &sys_real, &settings);

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(upstream_join(s), 0);
	fault_memory.seen = 0;
	fault_memory.nth = FAULT_MEMORY_MOST; /* counts them */
	for (int i = 0; i < 100; i++) {
		upstream_leave(s);
		assert_int_equal(upstream_join(s), 0);
	}
	fault_memory.nth = 0;
	assert_int_equal(fault_memory.seen, 0);
	unmake_server(s);
	loop_free(l);
}

/* ---- from one address to the next ---- */

static uint64_t now_ms;

static uint64_t clock_ms(void)
{
	return now_ms;
}

static uint64_t least(void)
{
	return 0;
}

static bool goes(void *arg)
{
	unsigned *begun = arg;

	++*begun;
	return true;
}

static void does_not_wait(void *arg, const char *why)
{
	(void)arg;
	fail_msg("%s", why);
}

/* Rests are as short as may be, and time passes. */
static struct loop *open_site(struct sys *ret_sys, struct upstream **ret_server, char *const *list)
{
	static struct settings_server settings;
	struct loop *l;

	settings =
		(struct settings_server){.urls = (char **)list, .url_count = 3, .max_in_flight = 1};
	*ret_sys = sys_real;
	ret_sys->now_ms = clock_ms;
	ret_sys->random = least;
	ret_sys->host = host;
	now_ms = 1000;
	l = loop_new(ret_sys);
	assert_non_null(l);
	*ret_server = make_server(l, ret_sys, &settings);
	assert_non_null(*ret_server);
	return l;
}

static void retry__after_very_short_rests__asks_each_address_once(void **state)
{
	const struct http_client_response refused = {.result = HTTP_CLIENT_REFUSED};
	const char *asked[3];
	unsigned begun = 0;
	struct upstream_task t = {.slot_ready = goes, .slot_lost = does_not_wait, .arg = &begun};
	struct upstream *s;
	struct sys sys;
	struct loop *l = open_site(&sys, &s, lists[0]);

	(void)state;
	upstream_submit(s, &t, UINT64_MAX);
	for (unsigned n = 0; n < 3; n++) {
		assert_int_equal(begun, n + 1);
		asked[n] = upstream_url(s, &t);
		for (unsigned k = 0; k < n; k++)
			assert_ptr_not_equal(asked[n], asked[k]);
		now_ms += 5; /* the one before it has rested */
		assert_int_equal(upstream_ended(s, &t, &refused), n < 2);
		if (n < 2)
			upstream_retry(s, &t);
	}
	unmake_server(s);
	loop_free(l);
}

static void retry__of_one_that_asked_twice__waits_since_it_asked_first(void **state)
{
	const struct http_client_response good = {.result = HTTP_CLIENT_OK, .status = 200},
					  refused = {.result = HTTP_CLIENT_REFUSED};
	unsigned begun = 0;
	struct upstream_task t[2];
	struct upstream_status status;
	struct upstream *s;
	struct sys sys;
	struct loop *l = open_site(&sys, &s, lists[0]);

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		t[i] = (struct upstream_task){
			.slot_ready = goes, .slot_lost = does_not_wait, .arg = &begun};
		assert_int_equal(upstream_join(s), 0);
		upstream_submit(s, &t[i], UINT64_MAX);
	}
	now_ms += 500;
	upstream_submit(s, &t[1], UINT64_MAX);
	assert_int_equal(begun, 1);
	now_ms += 500;
	upstream_ended(s, &t[0], &good);
	upstream_lift(s);
	assert_int_equal(begun, 2);
	assert_true(upstream_ended(s, &t[1], &refused));
	upstream_retry(s, &t[1]);
	assert_int_equal(begun, 3);
	upstream_status(s, &status);
	assert_int_equal(status.counters->latency_ms.sum, 0 + 1000 + 1000);
	upstream_ended(s, &t[1], &good);
	unmake_server(s);
	loop_free(l);
}

static void assert_lines(const char *text, const char *words, unsigned times)
{
	unsigned n = 0;

	for (const char *at = text; (at = strstr(at, words)); at++)
		n++;
	if (n != times)
		fail_msg("%u times \"%s\":\n%s", times, words, text);
}

/* All addresses fail, and then one answers. */
static void fail_and_recover(struct upstream *s, struct upstream_task *t)
{
	const struct http_client_response good = {.result = HTTP_CLIENT_OK, .status = 200};
	struct http_client_response refused = {.result = HTTP_CLIENT_REFUSED};

	snprintf(refused.message, sizeof(refused.message), "nobody listens");
	upstream_submit(s, t, UINT64_MAX);
	while (upstream_ended(s, t, &refused))
		upstream_retry(s, t);
	now_ms += 5; /* they have rested */
	for (int i = 0; i < 2; i++) {
		upstream_submit(s, t, UINT64_MAX);
		upstream_ended(s, t, &good);
	}
}

static void ended__at_one_address_and_at_all__is_a_line_each(void **state)
{
	unsigned begun = 0;
	struct upstream_task t = {.slot_ready = goes, .slot_lost = does_not_wait, .arg = &begun};
	struct upstream_address_status a[2];
	struct upstream *s;
	struct captured log;
	struct sys sys;
	struct loop *l = open_site(&sys, &s, lists[0]);
	char text[8192], line[200];

	(void)state;
	for (size_t i = 0; i < 2; i++)
		upstream_address_status(s, i, &a[i]);
	log = captured_begin(STDERR_FILENO);
	log_setup(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	fail_and_recover(s, &t);
	fail_and_recover(s, &t); /* within the minute: it is news again */
	captured_read(&log, text, sizeof(text));
	captured_end(&log);
	assert_int_equal(begun, 10);
	for (size_t i = 0; i < 2; i++) {
		snprintf(line, sizeof(line),
			"address in backoff: using another one url=%s why=\"nobody listens\" "
			"backoff_ms=1\n",
			a[i].url);
		assert_lines(text, line, 2);
	}
	assert_lines(text, "address in backoff: using another one", 4);
	snprintf(line, sizeof(line), "server in backoff: pulls deferred server=%s backoff_ms=1\n",
		urls[0]);
	assert_lines(text, line, 2);
	snprintf(line, sizeof(line), "the server answers again url=%s\n", a[0].url);
	assert_lines(text, line, 2);
	unmake_server(s);
	loop_free(l);
}

static void avoid__of_an_address__goes_round_and_returns_after_a_while(void **state)
{
	const struct http_client_response good = {.result = HTTP_CLIENT_OK, .status = 200};
	struct upstream_address_status a[3];
	unsigned begun = 0;
	struct upstream_task t = {.slot_ready = goes, .slot_lost = does_not_wait, .arg = &begun};
	struct upstream *s;
	struct sys sys;
	struct loop *l = open_site(&sys, &s, lists[0]);

	(void)state;
	for (size_t i = 0; i < 3; i++)
		upstream_address_status(s, i, &a[i]);
	for (unsigned n = 0; n < 7; n++) {
		upstream_submit(s, &t, UINT64_MAX);
		assert_string_equal(upstream_url(s, &t), a[n % 3].url);
		upstream_ended(s, &t, &good);
		upstream_avoid(s, &t);
	}
	for (unsigned n = 0; n < 2; n++) { /* and stays */
		upstream_submit(s, &t, UINT64_MAX);
		assert_string_equal(upstream_url(s, &t), a[1].url);
		upstream_ended(s, &t, &good);
	}
	now_ms += UPSTREAM_AWAY_MS;
	upstream_submit(s, &t, UINT64_MAX);
	assert_string_equal(upstream_url(s, &t), a[0].url);
	upstream_ended(s, &t, &good);
	unmake_server(s);
	loop_free(l);
}

static void ended__by_what_is_wrong_on_this_host__rests_no_address(void **state)
{
	const struct http_client_response no_key = {
		.result = HTTP_CLIENT_HOST, .message = "no key"};
	struct upstream_address_status a;
	unsigned begun = 0;
	struct upstream_task t = {.slot_ready = goes, .slot_lost = does_not_wait, .arg = &begun};
	struct upstream *s;
	struct sys sys;
	struct loop *l = open_site(&sys, &s, lists[0]);

	(void)state;
	for (unsigned n = 0; n < 3; n++) { /* the slot is free again each time */
		upstream_submit(s, &t, UINT64_MAX);
		assert_int_equal(begun, n + 1);
		upstream_address_status(s, 0, &a);
		assert_string_equal(upstream_url(s, &t), a.url);
		assert_false(upstream_ended(s, &t, &no_key));
	}
	for (size_t i = 0; i < 3; i++) {
		upstream_address_status(s, i, &a);
		assert_true(a.backoff_ms == 0 && a.in_a_row == 0 && a.network == 0);
		assert_string_equal(a.error, "");
	}
	unmake_server(s);
	loop_free(l);
}

static void ended__with_a_long_sentence__keeps_all_of_it_until_it_is_well(void **state)
{
	const struct http_client_response good = {.result = HTTP_CLIENT_OK, .status = 200};
	struct http_client_response failed = {.result = HTTP_CLIENT_NETWORK};
	struct upstream_address_status a;
	unsigned begun = 0;
	struct upstream_task t = {.slot_ready = goes, .slot_lost = does_not_wait, .arg = &begun};
	struct upstream *s;
	struct sys sys;
	struct loop *l = open_site(&sys, &s, lists[0]);

	(void)state;
	memset(failed.message, 'w', sizeof(failed.message) - 1);
	upstream_submit(s, &t, UINT64_MAX);
	upstream_ended(s, &t, &failed);
	upstream_address_status(s, 0, &a);
	assert_string_equal(a.error, failed.message);
	now_ms += 5; /* it has rested */
	upstream_submit(s, &t, UINT64_MAX);
	upstream_ended(s, &t, &good);
	upstream_address_status(s, 0, &a);
	assert_string_equal(a.error, "");
	unmake_server(s);
	loop_free(l);
}

/* ---- the line ---- */

struct job {
	struct upstream *server;
	struct upstream_task task;
	struct job *unwanted; /* withdrawn when this one begins */
	unsigned begun;
};

static bool begins(void *arg)
{
	struct job *j = arg;

	j->begun++;
	if (j->unwanted)
		upstream_withdraw(j->server, &j->unwanted->task);
	return true;
}

static void is_lost(void *arg, const char *why)
{
	(void)arg;
	fail_msg("%s", why);
}

static void submit(struct job *j, struct upstream *s)
{
	j->server = s;
	j->task = (struct upstream_task){.slot_ready = begins, .slot_lost = is_lost, .arg = j};
	upstream_submit(s, &j->task, UINT64_MAX);
}

static void withdraw__of_one_that_is_in_the_same_batch__keeps_it_from_beginning(void **state)
{
	struct settings_server settings = {.urls = lists[0], .url_count = 1, .max_in_flight = 2};
	struct job jobs[6] = {{.begun = 0}};
	struct upstream_status status;
	struct loop *l = loop_new(&sys_real);
	struct upstream *s = make_server(l, &sys_real, &settings);

	(void)state;
	assert_non_null(s);
	for (int i = 0; i < 6; i++)
		assert_int_equal(upstream_join(s), 0);
	jobs[2].unwanted = &jobs[3];
	for (int i = 0; i < 5; i++) /* the first two run, the others wait */
		submit(&jobs[i], s);
	assert_int_equal(jobs[1].begun, 1);
	assert_int_equal(jobs[2].begun, 0);
	upstream_dropped(s);
	upstream_dropped(s);
	submit(&jobs[5], s); /* two slots: the line goes on */
	assert_int_equal(jobs[2].begun, 1);
	assert_int_equal(jobs[3].begun, 0);
	assert_int_equal(jobs[4].begun, 1); /* the slot goes to the next */
	assert_int_equal(jobs[5].begun, 0);
	upstream_status(s, &status);
	assert_int_equal(status.in_flight, 2);
	assert_int_equal(status.pending, 1);
	upstream_submit(s, &jobs[3].task, UINT64_MAX); /* wanted again */
	upstream_dropped(s);
	upstream_dropped(s);
	upstream_lift(s);
	assert_int_equal(jobs[5].begun, 1);
	assert_int_equal(jobs[3].begun, 1);
	unmake_server(s);
	loop_free(l);
}

/* ---- rests that the server did not ask for ---- */

static uint64_t random_bits_now; /* what randomness is */

static uint64_t chosen(void)
{
	return random_bits_now;
}

static void stop_now(void *arg)
{
	loop_stop(arg);
}

/* What is due in so many milliseconds, millisecond by millisecond, is done. */
static void pass(struct loop *l, uint64_t ms)
{
	struct loop_timer stop;

	loop_timer_init(&stop, stop_now, l);
	for (; ms > 0; ms--) {
		now_ms++;
		loop_timer_set(l, &stop, now_ms);
		assert_int_equal(loop_run(l), 0);
		loop_timer_set(l, &stop, now_ms); /* also what that made due */
		assert_int_equal(loop_run(l), 0);
	}
}

/* A server whose only address refuses everything, with the longest rests. */
struct refusing {
	struct sys sys;
	struct loop *loop;
	struct upstream *server;
	struct settings_server settings;
};

static const struct http_client_response refused = {.result = HTTP_CLIENT_REFUSED};

static void open_refusing(struct refusing *r, unsigned slots)
{
	*r = (struct refusing){.sys = sys_real,
		.settings = {.urls = lists[0], .url_count = 1, .max_in_flight = slots}};
	r->sys.now_ms = clock_ms;
	r->sys.random = chosen;
	r->sys.host = host;
	now_ms = 1000;
	random_bits_now = 0;
	r->loop = loop_new(&r->sys);
	assert_non_null(r->loop);
	r->server = make_server(r->loop, &r->sys, &r->settings);
	assert_non_null(r->server);
}

static void close_refusing(struct refusing *r)
{
	unmake_server(r->server);
	loop_free(r->loop);
}

static uint64_t backoff_ms(const struct refusing *r)
{
	struct upstream_address_status a;

	upstream_address_status(r->server, 0, &a);
	return a.backoff_ms;
}

static void begin_job(struct job *j, struct refusing *r, uint64_t interval_ms)
{
	*j = (struct job){.server = r->server};
	j->task = (struct upstream_task){
		.slot_ready = begins, .slot_lost = is_lost, .arg = j, .interval_ms = interval_ms};
	assert_int_equal(upstream_join(r->server), 0);
}

/* It fails so often that any rest would be the longest. */
static void grow(struct refusing *r, struct job *j)
{
	random_bits_now = 0;
	for (unsigned i = 0; i < 9; i++, pass(r->loop, 2)) {
		upstream_submit(r->server, &j->task, UINT64_MAX);
		upstream_ended(r->server, &j->task, &refused);
	}
}

static void rest__is_at_most_the_longest_interval_of_those_who_wait(void **state)
{
	struct refusing r;
	struct job often, seldom;

	(void)state;
	open_refusing(&r, 4);
	begin_job(&often, &r, 5000);
	begin_job(&seldom, &r, 300000);
	grow(&r, &often);
	random_bits_now = 4999;
	upstream_submit(r.server, &often.task, UINT64_MAX);
	upstream_ended(r.server, &often.task, &refused);
	assert_int_equal(backoff_ms(&r), 5000);
	pass(r.loop, 5000);
	grow(&r, &seldom);
	random_bits_now = 59999;
	upstream_submit(r.server, &seldom.task, UINT64_MAX);
	upstream_ended(r.server, &seldom.task, &refused);
	assert_int_equal(backoff_ms(&r), 60000);
	pass(r.loop, 1000);
	upstream_submit(r.server, &seldom.task, UINT64_MAX); /* who waits does not shorten it, */
	assert_int_equal(backoff_ms(&r), 59000);
	upstream_submit(r.server, &often.task, UINT64_MAX); /* and with others neither */
	assert_int_equal(backoff_ms(&r), 59000);
	upstream_withdraw(r.server, &often.task);
	upstream_withdraw(r.server, &seldom.task);
	upstream_submit(r.server, &often.task, UINT64_MAX); /* this one alone does */
	assert_int_equal(backoff_ms(&r), 4000);
	upstream_withdraw(r.server, &often.task);
	close_refusing(&r);
}

static void rest__in_the_way_of_a_bound__lets_that_task_go_first(void **state)
{
	struct refusing r;
	struct job jobs[3];

	(void)state;
	open_refusing(&r, 1);
	for (unsigned i = 0; i < 3; i++)
		begin_job(&jobs[i], &r, 60000);
	grow(&r, &jobs[0]);
	random_bits_now = 59999;
	upstream_submit(r.server, &jobs[0].task, UINT64_MAX);
	upstream_ended(r.server, &jobs[0].task, &refused);
	assert_int_equal(backoff_ms(&r), 60000);
	jobs[2].task.latest_ms = now_ms + 20000;
	for (unsigned i = 0; i < 3; i++) {
		jobs[i].begun = 0;
		upstream_submit(r.server, &jobs[i].task, UINT64_MAX);
	}
	pass(r.loop, 19999);
	assert_int_equal(jobs[0].begun + jobs[1].begun + jobs[2].begun, 0);
	pass(r.loop, 1);
	assert_int_equal(jobs[2].begun, 1); /* it alone, and nobody probes beside it */
	assert_int_equal(jobs[0].begun + jobs[1].begun, 0);
	upstream_ended(r.server, &jobs[2].task, &refused);
	assert_int_equal(backoff_ms(&r), 60000); /* the growth stays */
	pass(r.loop, 59999);
	assert_int_equal(jobs[0].begun, 0);
	pass(r.loop, 1);
	assert_int_equal(jobs[0].begun, 1); /* in their order */
	upstream_dropped(r.server);
	upstream_withdraw(r.server, &jobs[1].task);
	close_refusing(&r);
}

static void rest__that_the_server_asked_for__no_bound_shortens_it(void **state)
{
	const struct http_client_response busy = {
		.result = HTTP_CLIENT_OK, .status = 503, .retry_after_ms = 40000};
	struct refusing r;
	struct job job;

	(void)state;
	open_refusing(&r, 1);
	begin_job(&job, &r, 5000);
	job.task.latest_ms = now_ms + 10000;
	random_bits_now = 5000;
	upstream_submit(r.server, &job.task, UINT64_MAX);
	upstream_ended(r.server, &job.task, &busy);
	assert_int_equal(backoff_ms(&r), 45001);
	job.begun = 0;
	upstream_submit(r.server, &job.task, UINT64_MAX);
	pass(r.loop, 40000);
	assert_int_equal(job.begun, 0);
	pass(r.loop, 1); /* without what was put on top of it */
	assert_int_equal(job.begun, 1);
	upstream_dropped(r.server);
	close_refusing(&r);
}

/* ---- the deadline of one that waits ---- */

static void note_lost(void *arg, const char *why)
{
	const char **lost = arg;

	assert_null(*lost);
	*lost = why;
}

static bool never(void *arg)
{
	(void)arg;
	fail();
	return false;
}

static void line__while_no_slot_is_free__tells_who_expires_at_that_moment(void **state)
{
	const char *why = NULL;
	struct upstream_task late = {.slot_ready = never, .slot_lost = note_lost, .arg = &why};
	struct upstream_status status;
	struct refusing r;
	struct job first;

	(void)state;
	open_refusing(&r, 1);
	begin_job(&first, &r, 1000);
	assert_int_equal(upstream_join(r.server), 0);
	upstream_submit(r.server, &first.task, UINT64_MAX);
	assert_int_equal(first.begun, 1);
	late.latest_ms = now_ms + 10; /* which is not the end of it */
	upstream_submit(r.server, &late, now_ms + 50);
	pass(r.loop, 20);
	upstream_submit(r.server, &late, now_ms + 50); /* newer work: it waits longer */
	pass(r.loop, 49);
	assert_null(why);
	pass(r.loop, 1);
	assert_string_equal(why, "not pulled: the server did not take it in time");
	upstream_status(r.server, &status);
	assert_int_equal(status.pending, 0);
	assert_int_equal(status.counters->expired, 1);
	assert_false(late.waiting);
	upstream_dropped(r.server);
	pass(r.loop, 10);
	close_refusing(&r);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(order__of_many_hosts__is_even),
		cmocka_unit_test(order__with_one_more_address__keeps_that_of_the_others),
		cmocka_unit_test(secrets__over_plain_http__are_warned_of_at_the_start),
		cmocka_unit_test(retry__after_very_short_rests__asks_each_address_once),
		cmocka_unit_test(retry__of_one_that_asked_twice__waits_since_it_asked_first),
		cmocka_unit_test(ended__at_one_address_and_at_all__is_a_line_each),
		cmocka_unit_test(avoid__of_an_address__goes_round_and_returns_after_a_while),
		cmocka_unit_test(ended__by_what_is_wrong_on_this_host__rests_no_address),
		cmocka_unit_test(ended__with_a_long_sentence__keeps_all_of_it_until_it_is_well),
		cmocka_unit_test(rest__is_at_most_the_longest_interval_of_those_who_wait),
		cmocka_unit_test(rest__in_the_way_of_a_bound__lets_that_task_go_first),
		cmocka_unit_test(rest__that_the_server_asked_for__no_bound_shortens_it),
		cmocka_unit_test(line__while_no_slot_is_free__tells_who_expires_at_that_moment),
		cmocka_unit_test(
			withdraw__of_one_that_is_in_the_same_batch__keeps_it_from_beginning),
		cmocka_unit_test(leave__makes_room_for_the_next),
		cmocka_unit_test(server__without_memory__is_none),
	};

	log_setup(LOG_LEVEL_ERR, LOG_FORMAT_TEXT);
	return fault_memory_run(tests, 1);
}

/*
 * A roster that follows an etcd, which is played, on a clock that only timers move: what is asked,
 * what a watch brings, what is read again and when.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/fleet/follow.h"
#include "pull/kinds/etcd_request.h"

#define HEAD(revision) "{\"header\":{\"cluster_id\":\"7\",\"revision\":\"" revision "\"}"
/* base64 of "/p/a", "/p/b", and of "x", which is no receipt */
#define PAIR_A(more) "{\"key\":\"L3AvYQ==\",\"value\":\"eA==\"" more "}"
#define PAIR_B(more) "{\"key\":\"L3AvYg==\",\"value\":\"eA==\"" more "}"

/* ---- a clock ---- */

struct loop {
	struct wheel wheel;
	bool stopped;
};

static struct loop loop;
static struct sys sys;
static uint64_t now_ms;

static uint64_t read_now(void)
{
	return now_ms;
}

static int64_t read_wall(void)
{
	return 1700000000000;
}

static uint64_t read_random(void)
{
	return 0;
}

const struct sys *loop_sys(struct loop *l)
{
	(void)l;
	return &sys;
}

uint64_t loop_now_ms(struct loop *l)
{
	(void)l;
	return now_ms;
}

void loop_timer_init(struct loop_timer *t, void (*due)(void *arg), void *arg)
{
	wheel_timer_init(&t->timer);
	t->due = due;
	t->arg = arg;
}

void loop_timer_set(struct loop *l, struct loop_timer *t, uint64_t due_ms)
{
	wheel_schedule(&l->wheel, &t->timer, due_ms);
}

void loop_timer_cancel(struct loop *l, struct loop_timer *t)
{
	wheel_cancel(&l->wheel, &t->timer);
}

void loop_stop(struct loop *l)
{
	l->stopped = true;
}

int loop_run(struct loop *l)
{
	uint64_t due_ms;

	l->stopped = false;
	while (!l->stopped) {
		struct wheel_timer *t = wheel_advance(&l->wheel, now_ms);

		if (t) {
			((struct loop_timer *)t)->due(((struct loop_timer *)t)->arg);
			continue;
		}
		assert_true(wheel_next(&l->wheel, &due_ms)); /* else it would never end */
		now_ms = due_ms > now_ms ? due_ms : now_ms;
	}
	return 0;
}

/* ---- an etcd ---- */

static struct {
	struct {
		int result;
		const char *text; /* of the answer, or the sentence */
	} answers[8];
	struct {
		uint64_t after_ms;
		const char *line; /* NULL: the watch ends */
		int error;
		const char *why;
	} events[16];
	size_t answer, event, asked, watches, unwatched;
	char bodies[16][512];
	uint64_t times[16];
	int watch_result;
	bool watching;
	void (*line)(void *arg, const struct etcd_store_answer *a);
	void (*ended)(void *arg, int error, const char *why);
	void *arg;
	struct loop_timer timer;
	uint64_t deadline_ms;
} etcd;

const char *etcd_prefix(const struct etcd *e)
{
	(void)e;
	return "/p/";
}

const char *etcd_name(const struct etcd *e)
{
	(void)e;
	return "etcd";
}

struct loop *etcd_loop(struct etcd *e)
{
	(void)e;
	return &loop;
}

void etcd_set_deadline(struct etcd *e, uint64_t deadline_ms)
{
	(void)e;
	etcd.deadline_ms = deadline_ms;
}

int etcd_open(const struct etcd_options *o, struct etcd **ret_etcd)
{
	(void)o;
	(void)ret_etcd;
	return -1;
}

void etcd_close(struct etcd *e)
{
	(void)e;
}

/* "API body" */
static void keep_request(etcd_build build, void *arg)
{
	const struct kind_place place = {.base = "http://e"};
	struct kind_request r;
	char why[FILE_WHY];

	assert_true(etcd.asked < 16);
	kind_request_init(&r);
	assert_int_equal(build(arg, &place, &r, why), 0);
	etcd.times[etcd.asked] = now_ms;
	snprintf(etcd.bodies[etcd.asked++], sizeof(etcd.bodies[0]), "%s %.*s",
		r.url.data + strlen("http://e"), (int)r.body.len, r.body.data);
	kind_request_fini(&r);
}

static void read_answer(const char *text, struct etcd_store_answer *ret)
{
	struct document_error error;
	const struct node *header;

	assert_int_equal(
		document_parse(DOCUMENT_JSON, text, strlen(text), 0, &ret->json, &error), 0);
	ret->root = document_root(ret->json);
	header = node_find(ret->root, "header");
	ret->cluster = etcd_store_number(header, "cluster_id");
	ret->revision = etcd_store_number(header, "revision");
}

int etcd_ask(struct etcd *e, etcd_build build, void *arg, struct etcd_store_answer *ret,
	char why[FILE_WHY])
{
	size_t i = etcd.answer++;

	(void)e;
	keep_request(build, arg);
	assert_true(i < 8 && (etcd.answers[i].text || etcd.answers[i].result));
	if (etcd.answers[i].result) {
		snprintf(why, FILE_WHY, "%s", etcd.answers[i].text ? etcd.answers[i].text : "");
		return etcd.answers[i].result;
	}
	read_answer(etcd.answers[i].text, ret);
	return 0;
}

static void plan_event(void)
{
	if (etcd.watching && (etcd.events[etcd.event].line || etcd.events[etcd.event].why))
		loop_timer_set(&loop, &etcd.timer, now_ms + etcd.events[etcd.event].after_ms);
}

static void event_due(void *arg)
{
	size_t i = etcd.event++;

	(void)arg;
	if (etcd.events[i].line) {
		struct etcd_store_answer a;

		read_answer(etcd.events[i].line, &a);
		etcd.line(etcd.arg, &a);
		document_free(a.json);
		plan_event();
	} else {
		etcd.watching = false;
		etcd.ended(etcd.arg, etcd.events[i].error, etcd.events[i].why);
	}
}

int etcd_watch(struct etcd *e, etcd_build build,
	void (*line)(void *arg, const struct etcd_store_answer *a),
	void (*ended)(void *arg, int error, const char *why), void *arg, char why[FILE_WHY])
{
	(void)e;
	keep_request(build, arg);
	etcd.watches++;
	if (etcd.watch_result) {
		snprintf(why, FILE_WHY, "no descriptor");
		return etcd.watch_result;
	}
	etcd.line = line;
	etcd.ended = ended;
	etcd.arg = arg;
	etcd.watching = true;
	plan_event();
	return 0;
}

void etcd_unwatch(struct etcd *e)
{
	(void)e;
	etcd.unwatched += etcd.watching;
	etcd.watching = false;
	loop_timer_cancel(&loop, &etcd.timer);
}

/* ---- who looks on ---- */

static struct {
	size_t count, done_at; /* 0: never */
	uint64_t revisions[16], times[16];
	size_t ghosts[16]; /* keys: none of them holds a receipt */
	char notes[512];
} seen;

static void count_key(void *arg, const char *key, enum ghost kind)
{
	(void)key;
	(void)kind;
	++*(size_t *)arg;
}

static bool show(void *arg, const struct roster *roster, uint64_t revision)
{
	assert_ptr_equal(arg, &seen);
	assert_true(seen.count < 16);
	roster_visit_ghosts(roster, count_key, &seen.ghosts[seen.count]);
	seen.revisions[seen.count] = revision;
	seen.times[seen.count++] = now_ms;
	return seen.count == seen.done_at;
}

static void note(void *arg, const char *text)
{
	assert_ptr_equal(arg, &seen);
	snprintf(seen.notes + strlen(seen.notes), sizeof(seen.notes) - strlen(seen.notes), "%s;",
		text);
}

static const struct follow_calls calls = {.show = show, .note = note, .arg = &seen};

static int set_up(void **state)
{
	(void)state;
	memset(&etcd, 0, sizeof(etcd));
	memset(&seen, 0, sizeof(seen));
	now_ms = 1000000;
	sys = sys_real;
	sys.now_ms = read_now;
	sys.wall_ms = read_wall;
	sys.random = read_random;
	wheel_init(&loop.wheel, now_ms);
	loop_timer_init(&etcd.timer, event_due, NULL);
	return 0;
}

static char why[FILE_WHY];

/* Follows until so many were shown, or the deadline. */
static int follow(size_t done_at, uint64_t for_ms)
{
	seen.done_at = done_at;
	why[0] = '\0';
	return follow_run(NULL, &calls, for_ms ? now_ms + for_ms : 0, why);
}

static int read_once(size_t *ret_ghosts, uint64_t *ret_revision)
{
	struct roster *roster;
	int r = follow_read(NULL, &calls, &roster, ret_revision, why);

	*ret_ghosts = 0;
	if (r)
		return r;
	roster_visit_ghosts(roster, count_key, ret_ghosts);
	roster_free(roster);
	return 0;
}

/* ---- reading ---- */

static void read__asks_for_all_keys_page_by_page(void **state)
{
	uint64_t revision;
	size_t ghosts;

	(void)state;
	etcd.answers[0].text = HEAD("9") ",\"more\":true,\"kvs\":[" PAIR_A("") "]}";
	etcd.answers[1].text = HEAD("12") ",\"kvs\":[" PAIR_B("") "]}";
	assert_int_equal(read_once(&ghosts, &revision), 0);
	assert_int_equal(ghosts, 2);
	assert_int_equal(revision, 9); /* of the first answer */
	assert_string_equal(etcd.bodies[0], "/v3/kv/range {\"key\":\"L3Av\",\"range_end\":\"L3Aw\","
					    "\"limit\":\"500\"}");
	assert_string_equal(etcd.bodies[1],
		"/v3/kv/range {\"key\":\"L3AvYQA=\",\"range_end\":\"L3Aw\",\"revision\":\"9\","
		"\"limit\":\"500\"}");
	assert_int_equal(etcd.asked, 2);
}

static void read__of_too_large_an_answer__asks_for_fewer(void **state)
{
	static const char *const limits[] = {"500", "125", "32", "8", "2", "1"};
	uint64_t revision;
	size_t ghosts;

	(void)state;
	for (size_t i = 0; i < 5; i++)
		etcd.answers[i].result = -EMSGSIZE;
	etcd.answers[5].text = HEAD("9") ",\"kvs\":[]}";
	assert_int_equal(read_once(&ghosts, &revision), 0);
	assert_int_equal(ghosts, 0);
	for (size_t i = 0; i < 6; i++) {
		char limit[32];

		snprintf(limit, sizeof(limit), "\"limit\":\"%s\"}", limits[i]);
		assert_non_null(strstr(etcd.bodies[i], limit));
	}
	memset(&etcd, 0, sizeof(etcd));
	for (size_t i = 0; i < 6; i++)
		etcd.answers[i].result = -EMSGSIZE;
	assert_int_equal(read_once(&ghosts, &revision), -EMSGSIZE);
	assert_int_equal(etcd.asked, 6);
}

static void read__of_an_invalid_answer__says_so(void **state)
{
	static const char *const answers[] = {
		HEAD("9") ",\"kvs\":[1]}",
		HEAD("9") ",\"kvs\":[{\"value\":\"eA==\"}]}",
		HEAD("9") ",\"kvs\":[{\"key\":\"\",\"value\":\"eA==\"}]}",
		HEAD("9") ",\"kvs\":[{\"key\":\"L3AvYQ==\",\"value\":\"?\"}]}",
		HEAD("9") ",\"more\":true,\"kvs\":[]}",
		HEAD("9") ",\"more\":true}",
		/* it would go back */
		HEAD("9") ",\"more\":true,\"kvs\":[{\"key\":\"L28=\"}]}",
		HEAD("9") ",\"more\":true,\"kvs\":[{\"key\":\"L3A=\"}]}",
	};
	uint64_t revision;
	size_t ghosts;

	(void)state;
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		memset(&etcd, 0, sizeof(etcd));
		etcd.answers[0].text = answers[i];
		assert_int_equal(read_once(&ghosts, &revision), -EIO);
		assert_string_equal(why, "invalid answer");
	}
	memset(&etcd, 0, sizeof(etcd));
	etcd.answers[0].result = -EACCES;
	etcd.answers[0].text = "forbidden";
	assert_int_equal(read_once(&ghosts, &revision), -EACCES);
	assert_string_equal(why, "forbidden");
}

static void read__that_the_compaction_overtakes__begins_again_three_times(void **state)
{
	uint64_t revision;
	size_t ghosts;

	(void)state;
	etcd.answers[0].text = HEAD("9") ",\"more\":true,\"kvs\":[" PAIR_A("") "]}";
	etcd.answers[1].result = -ESTALE;
	etcd.answers[2].text = HEAD("20") ",\"kvs\":[" PAIR_B("") "]}";
	assert_int_equal(read_once(&ghosts, &revision), 0);
	assert_int_equal(ghosts, 1);
	assert_int_equal(revision, 20);
	assert_null(strstr(etcd.bodies[2], "revision"));
	memset(&etcd, 0, sizeof(etcd));
	for (size_t i = 0; i < 4; i++)
		etcd.answers[i].result = -ESTALE;
	assert_int_equal(read_once(&ghosts, &revision), -ESTALE);
	assert_int_equal(etcd.asked, 3);
}

/* ---- following ---- */

static void begin_with_a(void)
{
	etcd.answers[0].text = HEAD("9") ",\"kvs\":[" PAIR_A("") "]}";
}

static void event(size_t i, uint64_t after_ms, const char *line)
{
	etcd.events[i].after_ms = after_ms;
	etcd.events[i].line = line;
}

static void end_watch(size_t i, uint64_t after_ms, int error, const char *text)
{
	etcd.events[i].after_ms = after_ms;
	etcd.events[i].error = error;
	etcd.events[i].why = text;
}

#define EVENT(revision, kv) HEAD(revision) ",\"events\":[" kv "]}"
#define KV_B(revision) "{\"kv\":" PAIR_B(",\"mod_revision\":\"" revision "\"") "}"
#define GONE_A(revision)                                                                           \
	"{\"type\":\"DELETE\",\"kv\":{\"key\":\"L3AvYQ==\",\"mod_revision\":\"" revision "\"}}"

static void follow__that_is_done_at_once__needs_no_watch(void **state)
{
	(void)state;
	begin_with_a();
	assert_int_equal(follow(1, 0), 0);
	assert_int_equal(seen.revisions[0], 9);
	assert_int_equal(seen.ghosts[0], 1);
	assert_int_equal(etcd.watches, 0);
}

static void follow__shows_changes_once_a_second(void **state)
{
	(void)state;
	begin_with_a();
	event(0, 100, HEAD("9") ",\"created\":true}");
	event(1, 100, EVENT("11", KV_B("10")));
	event(2, 100, EVENT("11", GONE_A("11")));
	event(3, 2500, EVENT("12", GONE_A("12")));
	assert_int_equal(follow(3, 0), 0);
	assert_string_equal(etcd.bodies[1],
		"/v3/watch {\"create_request\":{\"key\":\"L3Av\",\"range_end\":\"L3Aw\","
		"\"start_revision\":\"10\",\"progress_notify\":true,\"fragment\":true}}");
	assert_int_equal(seen.times[1] - seen.times[0], 1000);
	assert_int_equal(seen.revisions[1], 11);
	assert_int_equal(seen.ghosts[1], 1);
	assert_int_equal(seen.times[2] - seen.times[0], 2800); /* at once */
	assert_int_equal(seen.revisions[2], 12);
	assert_string_equal(seen.notes, "");
	assert_int_equal(etcd.unwatched, 1);
}

static void follow__after_a_watch_broke__goes_on_behind_its_last_revision(void **state)
{
	(void)state;
	begin_with_a();
	event(0, 0, EVENT("15", KV_B("12")));
	end_watch(1, 2000, -EIO, "reset");
	event(2, 0, HEAD("20") "}");      /* progress */
	end_watch(3, 10000, 0, "silent"); /* so long it did not fail */
	event(4, 0, HEAD("30") ",\"fragment\":true,\"events\":[" KV_B("25") "]}");
	end_watch(5, 20000, -EIO, "again");
	event(6, 0, EVENT("31", KV_B("31")));
	assert_int_equal(follow(4, 0), 0);
	assert_non_null(strstr(etcd.bodies[2], "\"start_revision\":\"13\""));
	assert_non_null(strstr(etcd.bodies[3], "\"start_revision\":\"21\""));
	assert_non_null(strstr(etcd.bodies[4], "\"start_revision\":\"25\"")); /* the rest of 25 */
	assert_string_equal(seen.notes, "reset;silent;again;");
	assert_int_equal(etcd.answer, 1); /* read once */
}

static void follow__of_a_watch_that_fails__pauses_longer_and_reads_again(void **state)
{
	(void)state;
	begin_with_a();
	etcd.answers[1].text = HEAD("50") ",\"kvs\":[]}";
	for (size_t i = 0; i < 4; i++)
		end_watch(i, 0, -EIO, "down");
	event(4, 0, EVENT("51", KV_B("51")));
	assert_int_equal(follow(3, 0), 0);
	/* half of 250 ms, doubled each time */
	for (size_t i = 2; i < 6; i++)
		assert_int_equal(etcd.times[i] - etcd.times[i - 1], UINT64_C(125) << (i - 2));
	assert_non_null(strstr(etcd.bodies[4], "/v3/watch"));
	assert_non_null(strstr(etcd.bodies[5], "/v3/kv/range"));
	assert_int_equal(etcd.answer, 2);
	assert_string_equal(seen.notes, "down;"); /* once in a row */
	assert_int_equal(seen.revisions[1], 50);
	assert_int_equal(seen.ghosts[1], 0);
	assert_int_equal(seen.revisions[2], 51);
}

static void follow__of_what_was_compacted_or_replaced__reads_again(void **state)
{
	static const struct {
		const char *line, *note;
	} rows[] = {
		{HEAD("60") ",\"canceled\":true}", ""},
		{"{\"header\":{\"cluster_id\":\"8\",\"revision\":\"60\"},\"created\":true}",
			"the cluster was restored or replaced;"},
		{HEAD("8") ",\"created\":true}", "the cluster was restored or replaced;"},
		{HEAD("60") ",\"events\":[{}]}", "invalid event;"},
		{HEAD("60") ",\"events\":[{\"kv\":{\"key\":\"?\"}}]}", "invalid event;"},
		{NULL, "compacted;"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		set_up(NULL);
		begin_with_a();
		etcd.answers[1].text = HEAD("61") ",\"kvs\":[]}";
		if (rows[i].line)
			event(0, 10, rows[i].line);
		else
			end_watch(0, 10, -ESTALE, "compacted");
		assert_int_equal(follow(2, 0), 0);
		assert_string_equal(seen.notes, rows[i].note);
		assert_int_equal(seen.revisions[1], 61);
		assert_int_equal(etcd.unwatched, rows[i].line != NULL);
	}
}

static void follow__that_cannot_watch__tries_until_the_deadline(void **state)
{
	(void)state;
	begin_with_a();
	etcd.watch_result = -EMFILE;
	assert_int_equal(follow(0, 600), -ETIMEDOUT);
	assert_int_equal(now_ms, 1000600);
	assert_int_equal(etcd.deadline_ms, 1000600);
	assert_string_equal(seen.notes, "no descriptor;");
	assert_int_equal(etcd.watches, 3); /* after 125 and 250 ms */
}

static void follow__at_the_deadline__shows_what_has_come(void **state)
{
	(void)state;
	begin_with_a();
	event(0, 300, EVENT("10", KV_B("10")));
	assert_int_equal(follow(0, 500), -ETIMEDOUT);
	assert_int_equal(seen.count, 2);
	assert_int_equal(seen.ghosts[1], 2);
	set_up(NULL);
	begin_with_a();
	event(0, 300, EVENT("10", KV_B("10")));
	assert_int_equal(follow(2, 500), 0); /* and that may be enough */
}

static void follow__of_what_cannot_be_read__fails(void **state)
{
	(void)state;
	etcd.answers[0].result = -EIO;
	etcd.answers[0].text = "refused";
	assert_int_equal(follow(1, 0), -EIO);
	assert_string_equal(why, "refused");
	etcd.answer = 0;
	assert_int_equal(follow(1, 500), -EIO);
	etcd.answer = 0;
	assert_int_equal(follow_run(NULL, &calls, now_ms, why), -ETIMEDOUT);
	assert_int_equal(seen.count, 0);
}

#define CASE(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(read__asks_for_all_keys_page_by_page),
		CASE(read__of_too_large_an_answer__asks_for_fewer),
		CASE(read__of_an_invalid_answer__says_so),
		CASE(read__that_the_compaction_overtakes__begins_again_three_times),
		CASE(follow__that_is_done_at_once__needs_no_watch),
		CASE(follow__shows_changes_once_a_second),
		CASE(follow__after_a_watch_broke__goes_on_behind_its_last_revision),
		CASE(follow__of_a_watch_that_fails__pauses_longer_and_reads_again),
		CASE(follow__of_what_was_compacted_or_replaced__reads_again),
		CASE(follow__that_cannot_watch__tries_until_the_deadline),
		CASE(follow__at_the_deadline__shows_what_has_come),
		CASE(follow__of_what_cannot_be_read__fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

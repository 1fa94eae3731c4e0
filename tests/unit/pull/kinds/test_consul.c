/* Consul's KV store: what is asked for, and what each answer means. The answers are written by its
 * documentation. */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pull/kinds/kind.h"
#include "text/sentence.h"
#include "tests/unit/fixture/round.h"

#define ENTRY(key, value, index)                                                                   \
	"{\"LockIndex\":0,\"Key\":\"" key "\",\"Flags\":0,\"Value\":" value                        \
	",\"CreateIndex\":100,\"ModifyIndex\":" index "}"
#define KEY "[" ENTRY("app/web.yaml", "\"bmFtZTogd2ViCg==\"", "200") "]"
#define PREFIX                                                                                     \
	"[" ENTRY("app/web/", "null", "90") "," ENTRY("app/web/db/", "null", "91") "," ENTRY(      \
		"app/web/db/host", "\"ZGIx\"", "210") "," ENTRY("app/web/empty", "null",           \
		"205") "]"

static struct settings_server server = {.kind = SETTINGS_CONSUL};
static char datacenter[] = "eu 1&x";

/* ---- one exchange ---- */

static void begin(struct round *r, const char *path)
{
	round_begin(r, SETTINGS_CONSUL, "http://consul:8500", path);
}

static void answer_bytes(
	struct round *r, long status, const char *index, const char *body, size_t len)
{
	snprintf(r->response.consul_index, sizeof(r->response.consul_index), "%s", index);
	snprintf(r->response.content_type, sizeof(r->response.content_type), "%s",
		strstr(body, "<html>") ? "text/html" : "");
	round_read(r, status, body, len);
}

static void answer(struct round *r, long status, const char *index, const char *body)
{
	answer_bytes(r, status, index, body, strlen(body));
}

static struct http_client_response response(
	long status, const char *index, const char *body, size_t len)
{
	struct http_client_response r = {.status = status, .framed = true};

	snprintf(r.consul_index, sizeof(r.consul_index), "%s", index);
	buffer_init(&r.body, len);
	buffer_append(&r.body, body, len);
	return r;
}

/* ---- requests ---- */

static void build__each_path__is_a_key_or_a_prefix(void **state)
{
	static const struct {
		const char *path, *datacenter, *url;
	} table[] = {
		{"/app/web.yaml", NULL, "http://consul:8500/v1/kv/app/web.yaml"},
		{"app/web.yaml", NULL, "http://consul:8500/v1/kv/app/web.yaml"},
		{"//app", NULL, "http://consul:8500/v1/kv//app"},
		{"/app/web/", NULL, "http://consul:8500/v1/kv/app/web/?recurse"},
		{"/", NULL, "http://consul:8500/v1/kv/?recurse"},
		{"/a b?raw&c=%20#\xc3\xa4", NULL,
			"http://consul:8500/v1/kv/a%20b%3Fraw%26c%3D%2520%23%C3%A4"},
		{"/app", datacenter, "http://consul:8500/v1/kv/app?dc=eu%201%26x"},
		{"/app/", datacenter, "http://consul:8500/v1/kv/app/?recurse&dc=eu%201%26x"},
		{"", NULL, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct settings_server s = {.datacenter = table[i].datacenter ? datacenter : NULL};
		struct kind_place place = {
			.server = &s, .base = "http://consul:8500", .path = table[i].path};
		struct kind_request r;
		char why[FILE_WHY] = "";

		kind_request_init(&r);
		if (table[i].url) {
			assert_int_equal(kind_consul.build(&place, &r, why), 0);
			assert_string_equal(r.method, "GET");
			assert_string_equal(r.url.data, table[i].url);
			assert_int_equal(r.header_count, 0);
			assert_int_equal(r.body.len, 0);
			assert_false(r.conditional);
		} else {
			assert_int_equal(kind_consul.build(&place, &r, why), -EINVAL);
			assert_non_null(strstr(why, "path"));
		}
		kind_request_fini(&r);
	}
}

/* ---- answers ---- */

static void read__a_key__is_the_document(void **state)
{
	struct round r;

	(void)state;
	begin(&r, "/app/web.yaml");
	answer(&r, 200, "200", KEY);
	assert_int_equal(r.verdict, KIND_NEW);
	assert_int_equal(r.answer.cause, KIND_CAUSE_NONE);
	assert_string_equal(r.answer.body.data, "name: web\n");
	assert_int_equal(r.answer.type, SETTINGS_TYPE_YAML);
	assert_string_equal(r.answer.version, "200");
	assert_memory_equal(r.answer.epoch, "200 1 ", 6);
	assert_string_equal(r.answer.note, "");
	round_end(&r);
	begin(&r, "/app.json");
	answer(&r, 200, "5", "[" ENTRY("app.json", "\"e30=\"", "5") "]");
	assert_int_equal(r.answer.type, SETTINGS_TYPE_JSON);
	round_end(&r);
}

static void read__a_prefix__is_a_mapping_without_its_folders(void **state)
{
	struct round r;

	(void)state;
	begin(&r, "/app/web/");
	answer(&r, 200, "215", PREFIX);
	assert_int_equal(r.verdict, KIND_NEW);
	assert_int_equal(r.answer.type, SETTINGS_TYPE_JSON);
	assert_string_equal(r.answer.body.data,
		"{\n  \"db\": {\n    \"host\": \"db1\"\n  },\n  \"empty\": \"\"\n}\n");
	assert_string_equal(r.answer.version, "210");
	assert_memory_equal(r.answer.epoch, "215 4 ", 6);
	answer(&r, 200, "90", "[" ENTRY("app/web/", "null", "90") "]");
	assert_int_equal(r.verdict, KIND_ABSENT);
	round_end(&r);
	begin(&r, "/"); /* all there is */
	answer(&r, 200, "90", "[" ENTRY("a", "\"MQ==\"", "90") "]");
	assert_int_equal(r.verdict, KIND_NEW);
	assert_string_equal(r.answer.body.data, "{\n  \"a\": \"1\"\n}\n");
	answer(&r, 200, "90", "[{\"Value\":\"YQ==\",\"ModifyIndex\":7}]");
	assert_int_equal(r.verdict, KIND_FAILED);
	round_end(&r);
}

static void read__what_an_acl_left_something_out_of__is_forbidden(void **state)
{
	static const long statuses[] = {200, 404};
	struct round r;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct http_client_response t = response(statuses[i], "200", KEY, strlen(KEY));

		begin(&r, "/app/");
		snprintf(t.filtered, sizeof(t.filtered), "true");
		assert_int_equal(kind_consul.read(&r.place, &t, &r.answer), KIND_FAILED);
		assert_int_equal(r.answer.cause, KIND_CAUSE_FORBIDDEN);
		assert_non_null(strstr(r.answer.why, "may not read all"));
		buffer_fini(&t.body);
		round_end(&r);
	}
}

static void read__flags_of_all_64_bits__do_not_matter(void **state)
{
	struct round r;

	(void)state;
	begin(&r, "/k"); /* a semaphore's */
	answer(&r, 200, "7",
		"[{\"LockIndex\":0,\"Key\":\"k\",\"Flags\":16210313421097356768,\"Value\":"
		"\"MTIzNDU2Nzg5MDEyMzQ1Njc4OTA=\",\"New\":\"\\\"18446744073709551615\",\"Other\":"
		"[18446744073709551615,-18446744073709551615],\"ModifyIndex\":7,\"CreateIndex\":"
		"3304740253564472344}]");
	assert_string_equal(r.answer.why, "");
	assert_int_equal(r.verdict, KIND_NEW);
	assert_string_equal(r.answer.body.data, "12345678901234567890");
	answer(&r, 200, "7", "[" ENTRY("k", "\"MQ==\"", "18446744073709551615") "]");
	assert_int_equal(r.verdict, KIND_FAILED); /* this one would matter */
	answer(&r, 200, "7", "[99999999999999999999");
	assert_int_equal(r.verdict, KIND_FAILED);
	answer(&r, 200, "7", "99999999999999999999");
	assert_int_equal(r.verdict, KIND_FAILED);
	round_end(&r);
}

static void read__not_found_empty_forbidden_unreachable__are_told_apart(void **state)
{
	static const struct {
		long status;
		const char *index, *body;
		enum kind_verdict verdict;
		enum kind_cause cause;
		const char *why;
	} table[] = {
		{404, "300", "", KIND_ABSENT, KIND_CAUSE_NOT_FOUND, "no such key"},
		{200, "300", "[" ENTRY("app/web.yaml", "null", "6") "]", KIND_FAILED,
			KIND_CAUSE_EMPTY, "value is empty"},
		{200, "300", "[" ENTRY("app/web.yaml", "\"\"", "6") "]", KIND_FAILED,
			KIND_CAUSE_EMPTY, "value is empty"},
		{403, "", "Permission denied", KIND_FAILED, KIND_CAUSE_FORBIDDEN,
			"403: Permission denied"},
		{403, "", "ACL not found", KIND_FAILED, KIND_CAUSE_FORBIDDEN, "403: ACL not found"},
		{401, "", "", KIND_FAILED, KIND_CAUSE_FORBIDDEN, "401: without a word"},
		{500, "", "No cluster leader", KIND_FAILED, KIND_CAUSE_UNREACHABLE,
			"500: No cluster leader"},
		{500, "", "No path to datacenter", KIND_FAILED, KIND_CAUSE_UNREACHABLE, "No path"},
		{500, "", "rpc error: i/o deadline reached\n", KIND_FAILED, KIND_CAUSE_ANSWER,
			"500: rpc error: i/o deadline reached"},
		{429, "", "Your IP is issuing too many concurrent connections", KIND_FAILED,
			KIND_CAUSE_OVERLOADED, "429"},
		{503, "", "rate limit exceeded", KIND_FAILED, KIND_CAUSE_OVERLOADED, "503"},
		{400, "", "Conflicting flags: \x1b[31m\n\xc2\x9b", KIND_FAILED, KIND_CAUSE_ANSWER,
			"400: Conflicting flags: ?[31m???"},
		{503, "", "<html>", KIND_USUAL, KIND_CAUSE_NONE, ""},
		{302, "", "", KIND_USUAL, KIND_CAUSE_NONE, ""},
		/* what is not Consul never says that a key is not there */
		{404, "", "404 page not found", KIND_FAILED, KIND_CAUSE_ANSWER, "check the urls"},
		{410, "7", "", KIND_FAILED, KIND_CAUSE_ANSWER, "check the urls"},
		{405, "", "", KIND_FAILED, KIND_CAUSE_ANSWER, "check the urls"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct round r;

		begin(&r, "/app/web.yaml");
		answer(&r, table[i].status, table[i].index, table[i].body);
		assert_int_equal(r.verdict, table[i].verdict);
		if (table[i].verdict != KIND_USUAL)
			assert_int_equal(r.answer.cause, table[i].cause);
		if (!strstr(r.answer.why, table[i].why))
			fail_msg("%zu: %s", i, r.answer.why);
		round_end(&r);
	}
}

static void read__a_malformed_answer__is_refused(void **state)
{
#define HEAD "{\"Key\":\"k\",\"Flags\":0,"
	static const char *const table[] = {
		"",
		"null",
		"{}",
		"7",
		"\"\"",
		"<body>",
		"[7]",
		"[null]",
		"[[]]",
		"[{}]",
		"[" ENTRY("k", "\"YQ==\"", "7"),
		"[" ENTRY("k", "\"YQ==\"", "7") "]]",
		"[" ENTRY("k", "\"YQ==\"", "0") "]",
		"[" ENTRY("k", "\"YQ==\"", "-7") "]",
		"[" ENTRY("k", "\"YQ==\"", "7.5") "]",
		"[" ENTRY("k", "\"YQ==\"", "\"x\"") "]",
		"[" ENTRY("k", "\"YQ==\"", "null") "]",
		"[" ENTRY("k", "\"YQ\"", "7") "]",
		"[" ENTRY("k", "\"Y$==\"", "7") "]",
		"[" ENTRY("k", "\"=\"", "7") "]",
		"[" ENTRY("k", "\"\\u0000\"", "7") "]",
		"[" ENTRY("k", "7", "7") "]",
		"[" ENTRY("k", "{}", "7") "]",
		"[" ENTRY("", "\"YQ==\"", "7") "]",
		"[" ENTRY("other", "\"YQ==\"", "7") "]",
		"[" ENTRY("k", "\"YQ==\"", "7") "," ENTRY("k", "\"YQ==\"", "7") "]",
		"[{\"Value\":\"YQ==\",\"ModifyIndex\":7}]",
		"[" HEAD "\"Value\":\"YQ==\"}]",
		"[" HEAD "\"ModifyIndex\":7,\"ModifyIndex\":8}]",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct round r;

		begin(&r, "/k");
		answer(&r, 200, "7", table[i]);
		if (r.verdict != KIND_FAILED)
			fail_msg("%zu is taken: %s", i, table[i]);
		assert_int_equal(r.answer.cause, KIND_CAUSE_ANSWER);
		assert_true(r.answer.why[0]);
		round_end(&r);
	}
}

static void read__an_answer_that_is_cut_anywhere__is_refused(void **state)
{
	struct round r;

	(void)state;
	begin(&r, "/app/web/");
	for (size_t len = 0; len < strlen(PREFIX); len++) {
		answer_bytes(&r, 200, "215", PREFIX, len);
		assert_int_equal(r.verdict, KIND_FAILED);
	}
	round_end(&r);
}

static void read__keys_that_no_document_holds__are_named(void **state)
{
	struct round r;

	(void)state;
	begin(&r, "/app/web/");
	answer(&r, 200, "7", "[" ENTRY("app/web/a", "\"/w==\"", "7") "]");
	assert_int_equal(r.verdict, KIND_FAILED);
	assert_non_null(strstr(r.answer.why, "'app/web/a' is not text"));
	answer(&r, 200, "7", "[" ENTRY("app/web/a", "\"AA==\"", "7") "]");
	assert_non_null(strstr(r.answer.why, "'app/web/a' is not text"));
	answer(&r, 200, "7", "[" ENTRY("app/web2", "\"YQ==\"", "7") "]");
	assert_non_null(strstr(r.answer.why, "'app/web2', which was not asked for"));
	r.place.max_bytes = 20;
	answer(&r, 200, "7", "[" ENTRY("app/web/a", "\"MTIzNDU2Nzg5MDEyMzQ1Njc4OTA=\"", "7") "]");
	assert_int_equal(r.verdict, KIND_FAILED);
	assert_non_null(strstr(r.answer.why, "max_size"));
	r.place.max_bytes = 19; /* a value alone */
	answer(&r, 200, "7", "[" ENTRY("app/web/a", "\"MTIzNDU2Nzg5MDEyMzQ1Njc4OTA=\"", "7") "]");
	assert_int_equal(r.verdict, KIND_FAILED);
	assert_non_null(strstr(r.answer.why, "max_size"));
	round_end(&r);
}

static void read__why_an_answer_cannot_be_read__has_no_piece_of_it(void **state)
{
	struct round r;

	(void)state;
	begin(&r, "/k");
	answer(&r, 200, "7", "[{\"password\": s3cr\x1b}]");
	assert_int_equal(r.verdict, KIND_FAILED);
	assert_string_equal(r.answer.why, "the answer of Consul cannot be read: invalid token");
	round_end(&r);
}

/* ---- what is held ---- */

static void read__what_is_held__is_the_same_whatever_the_index(void **state)
{
	struct round r;

	(void)state;
	begin(&r, "/app/web/");
	answer(&r, 200, "215", PREFIX);
	round_hold(&r);
	answer(&r, 200, "215", PREFIX);
	assert_int_equal(r.verdict, KIND_SAME);
	answer(&r, 200, "9000", PREFIX);
	assert_int_equal(r.verdict, KIND_SAME);
	answer(&r, 200, "3", PREFIX);
	assert_int_equal(r.verdict, KIND_SAME);
	r.held.absent = true;
	answer(&r, 200, "215", PREFIX);
	assert_int_equal(r.verdict, KIND_NEW);
	r.held.absent = false;
	r.place.forced = true; /* whatever is held */
	answer(&r, 200, "215", PREFIX);
	assert_int_equal(r.verdict, KIND_NEW);
	r.place.forced = false;
	r.held.epoch = NULL;
	answer(&r, 200, "215", PREFIX);
	assert_int_equal(r.verdict, KIND_NEW);
	round_end(&r);
}

static void read__an_index_that_went_back__is_taken_and_noted(void **state)
{
	struct round r;

	(void)state;
	begin(&r, "/k");
	answer(&r, 200, "200", "[" ENTRY("k", "\"YQ==\"", "200") "]");
	round_hold(&r);
	answer(&r, 200, "200", "[" ENTRY("k", "\"Yg==\"", "200") "]"); /* restored, written again */
	assert_int_equal(r.verdict, KIND_NEW);
	assert_string_equal(r.answer.note, "");
	answer(&r, 200, "50", "[" ENTRY("k", "\"Yg==\"", "50") "]");
	assert_int_equal(r.verdict, KIND_NEW);
	assert_non_null(strstr(r.answer.note, "200 -> 50"));
	assert_string_equal(r.answer.version, "50");
	answer(&r, 200, "", "[" ENTRY("k", "\"Yg==\"", "50") "]"); /* no index: no note */
	assert_int_equal(r.verdict, KIND_NEW);
	assert_string_equal(r.answer.note, "");
	round_end(&r);
}

/* ---- watches ---- */

struct watch {
	struct kind_place place;
	struct kind_watched item;
	struct kind_watch watch;
	char told[400]; /* "KEY VERSION;" for each call */
	char why[FILE_WHY];
};

static void changed(void *arg, size_t item, const char *key, size_t len, const char *version)
{
	struct watch *w = arg;
	size_t n = strlen(w->told);

	assert_int_equal(item, 0);
	snprintf(w->told + n, sizeof(w->told) - n, "%.*s %s;", (int)(key ? len : 1),
		key ? key : "*", version ? version : "-");
}

static void watch_begin(struct watch *w, const char *path, uint64_t position)
{
	*w = (struct watch){.place = {.server = &server, .base = "http://consul:8500"},
		.item = {path, "", position},
		.watch = {.count = 1, .changed = changed}};
	w->watch.place = &w->place;
	w->watch.items = &w->item;
	w->watch.arg = w;
}

static int come(struct watch *w, long status, const char *index, const char *body)
{
	struct http_client_response t = response(status, index, body, strlen(body));
	int r;

	w->told[0] = '\0';
	w->why[0] = '\0';
	r = kind_consul.watch_read(&w->watch, &t, w->why);
	buffer_fini(&t.body);
	return r;
}

static void watch__first__asks_without_an_index(void **state)
{
	struct kind_request r;
	struct watch w;

	(void)state;
	watch_begin(&w, "/app/web.yaml", 0);
	kind_request_init(&r);
	assert_int_equal(kind_consul.watch_build(&w.watch, &r, w.why), 0);
	assert_string_equal(r.url.data, "http://consul:8500/v1/kv/app/web.yaml");
	assert_int_equal(r.hold_ms, 0);
	kind_request_fini(&r);
	assert_false(kind_consul.stream);
	assert_null(kind_consul.together);
}

static void watch__from_an_index__waits_four_to_five_minutes(void **state)
{
	char url[100];
	struct kind_request r;
	struct watch w;

	(void)state;
	watch_begin(&w, "/app/web/", 215);
	for (uint64_t random = 0; random < 200; random++) {
		unsigned wait_s = 300 - (unsigned)(random % 61);

		w.place.random = random;
		kind_request_init(&r);
		assert_int_equal(kind_consul.watch_build(&w.watch, &r, w.why), 0);
		snprintf(url, sizeof(url),
			"http://consul:8500/v1/kv/app/web/?recurse&index=215&wait=%us", wait_s);
		assert_string_equal(r.url.data, url);
		assert_in_range(wait_s, 240, 300);
		assert_in_range(
			r.hold_ms, wait_s * 1000 * 17 / 16 + 1, wait_s * 1000 * 17 / 16 + 10000);
		kind_request_fini(&r);
	}
	watch_begin(&w, "/k", 7);
	w.place.server = &(struct settings_server){.datacenter = datacenter};
	kind_request_init(&r);
	assert_int_equal(kind_consul.watch_build(&w.watch, &r, w.why), 0);
	assert_string_equal(
		r.url.data, "http://consul:8500/v1/kv/k?dc=eu%201%26x&index=7&wait=300s");
	kind_request_fini(&r);
	watch_begin(&w, "", 7);
	kind_request_init(&r);
	assert_int_equal(kind_consul.watch_build(&w.watch, &r, w.why), -EINVAL);
	kind_request_fini(&r);
}

static void answered(void *arg, size_t item, const struct http_client_response *answer)
{
	struct watch *w = arg;
	size_t n = strlen(w->told);

	assert_int_equal(item, 0);
	snprintf(w->told + n, sizeof(w->told) - n, "<%s>;", answer->consul_index);
}

static void watch__that_moved_on__brings_the_answer_before_the_news(void **state)
{
	struct watch w;

	(void)state;
	watch_begin(&w, "/app/web.yaml", 100);
	w.watch.answered = answered;
	assert_int_equal(come(&w, 200, "200", KEY), 0);
	assert_string_equal(w.told, "<200>;app/web.yaml 200;");
	assert_int_equal(come(&w, 200, "200", KEY), 0); /* the wait is over */
	assert_string_equal(w.told, "");
	assert_int_equal(come(&w, 404, "201", ""), 0);
	assert_string_equal(w.told, "app/web.yaml -;");
	assert_int_equal(come(&w, 200, "7", KEY), 0); /* its numbers begin again */
	assert_string_equal(w.told, "* -;");
}

static void watch__each_answer__tells_what_changed_and_moves_on(void **state)
{
	static const struct {
		const char *path;
		uint64_t position;
		long status;
		const char *index, *body, *told;
		uint64_t next;
	} table[] = {
		/* the first answer comes at once */
		{"/app/web.yaml", 0, 200, "200", KEY, "app/web.yaml 200;", 200},
		{"/app/web.yaml", 0, 404, "300", "", "app/web.yaml -;", 300},
		{"/app/web/", 0, 200, "215", PREFIX, "* -;", 215},
		{"/app/web/", 0, 404, "215", "", "* -;", 215},
		/* the time is over, nothing changed */
		{"/app/web.yaml", 200, 200, "200", KEY, "", 200},
		{"/app/web.yaml", 300, 404, "300", "", "", 300},
		{"/app/web/", 215, 200, "215", PREFIX, "", 215},
		/* a change */
		{"/app/web.yaml", 150, 200, "200", KEY, "app/web.yaml 200;", 200},
		{"/app/web.yaml", 150, 404, "200", "", "app/web.yaml -;", 200},
		{"/app/web/", 204, 200, "210", PREFIX, "app/web/db/host 210;app/web/empty 205;",
			210},
		{"/app/web/", 209, 200, "210", PREFIX, "app/web/db/host 210;", 210},
		{"/app/web/", 209, 404, "210", "", "* -;", 210},
		/* moved, and none of the keys tells why: one was deleted, or nothing changed */
		{"/app/web/", 210, 200, "211", PREFIX, "* -;", 211},
		{"/app/web.yaml", 200, 200, "201", KEY, "* -;", 201},
		/* what cannot be read may be anything */
		{"/app/web.yaml", 200, 200, "201", "<html>", "* -;", 201},
		{"/app/web/", 200, 200, "201", "[7]", "* -;", 201},
		/* an index that goes back begins again, and is 1 at least */
		{"/app/web.yaml", 300, 200, "200", KEY, "* -;", 0},
		{"/app/web/", 300, 404, "200", "", "* -;", 0},
		{"/app/web/", 300, 404, "0", "", "* -;", 0},
		{"/app/web/", 0, 404, "0", "", "* -;", 1},
		{"/app/web/", 1, 404, "0", "", "", 1},
		{"/k", 0, 404, "18446744073709551615", "", "k -;", UINT64_MAX},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct watch w;

		watch_begin(&w, table[i].path, table[i].position);
		assert_int_equal(come(&w, table[i].status, table[i].index, table[i].body), 0);
		assert_string_equal(w.told, table[i].told);
		if (w.item.position != table[i].next)
			fail_msg("%zu: stands at %" PRIu64, i, w.item.position);
	}
}

/* A larger one may mean any change. */
static void watch__an_answer_beyond_the_bound__is_not_read(void **state)
{
	size_t len = strlen(KEY);
	char *body = malloc(KIND_MAX_NEWS + 2);

	(void)state;
	assert_non_null(body);
	for (size_t more = 0; more < 2; more++) {
		struct watch w;

		memset(body, ' ', KIND_MAX_NEWS + more);
		memcpy(body, KEY, len);
		body[KIND_MAX_NEWS + more] = '\0';
		watch_begin(&w, "/app/web.yaml", 150);
		w.watch.answered = answered;
		w.item.count = 1;
		assert_int_equal(come(&w, 200, "200", body), 0);
		assert_string_equal(w.told, more ? "* -;" : "<200>;app/web.yaml 200;");
		assert_int_equal(w.item.count, !more);
		assert_int_equal(w.item.position, 200);
	}
	free(body);
}

static void watch__that_is_refused__stays_where_it_is(void **state)
{
	static const struct {
		long status;
		const char *index, *body;
		int result;
		const char *why;
	} table[] = {
		{403, "", "Permission denied", -EACCES, "Permission denied"},
		{401, "", "", -EACCES, "401"},
		{429, "", "", -EAGAIN, "429"},
		{500, "", "No cluster leader", -EAGAIN, "No cluster leader"},
		{500, "", "odd", -EAGAIN, "odd"},
		{503, "", "odd", -EAGAIN, "odd"},
		{400, "", "Invalid index", -EPROTO, "Invalid index"},
		{302, "", "", -EPROTO, "302"},
		{404, "", "404 page not found", -EPROTO, "check the urls"},
		{200, "", KEY, -EPROTO, "X-Consul-Index"},
		{200, "x", KEY, -EPROTO, "X-Consul-Index"},
		{200, "-1", KEY, -EPROTO, "X-Consul-Index"},
		{200, "18446744073709551616", KEY, -EPROTO, "X-Consul-Index"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct watch w;

		watch_begin(&w, "/app/web.yaml", 150);
		assert_int_equal(
			come(&w, table[i].status, table[i].index, table[i].body), table[i].result);
		assert_string_equal(w.told, "");
		assert_int_equal(w.item.position, 150);
		if (!strstr(w.why, table[i].why))
			fail_msg("%zu: %s", i, w.why);
	}
}

static void watch__of_keys_that_were_all_deleted__counts_from_none(void **state)
{
	static const char again[] = "[" ENTRY("app/web/db/host", "\"ZGIx\"", "310") "]";
	struct watch w;

	(void)state;
	watch_begin(&w, "/app/web/", 0);
	assert_int_equal(come(&w, 200, "215", PREFIX), 0);
	assert_int_equal(w.item.count, 4);
	assert_int_equal(come(&w, 404, "300", ""), 0);
	assert_string_equal(w.told, "* -;");
	assert_int_equal(w.item.count, 0);
	assert_int_equal(come(&w, 200, "310", again), 0);
	assert_string_equal(w.told, "app/web/db/host 310;"); /* none is gone */
	assert_int_equal(w.item.count, 1);
	assert_int_equal(come(&w, 200, "400", again), 0);
	assert_int_equal(come(&w, 200, "401", "<html>"), 0);
	assert_int_equal(w.item.count, 1); /* not known to be fewer */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(build__each_path__is_a_key_or_a_prefix),
		cmocka_unit_test(read__a_key__is_the_document),
		cmocka_unit_test(read__a_prefix__is_a_mapping_without_its_folders),
		cmocka_unit_test(read__what_an_acl_left_something_out_of__is_forbidden),
		cmocka_unit_test(read__flags_of_all_64_bits__do_not_matter),
		cmocka_unit_test(read__not_found_empty_forbidden_unreachable__are_told_apart),
		cmocka_unit_test(read__a_malformed_answer__is_refused),
		cmocka_unit_test(read__an_answer_that_is_cut_anywhere__is_refused),
		cmocka_unit_test(read__why_an_answer_cannot_be_read__has_no_piece_of_it),
		cmocka_unit_test(read__keys_that_no_document_holds__are_named),
		cmocka_unit_test(read__what_is_held__is_the_same_whatever_the_index),
		cmocka_unit_test(read__an_index_that_went_back__is_taken_and_noted),
		cmocka_unit_test(watch__that_moved_on__brings_the_answer_before_the_news),
		cmocka_unit_test(watch__first__asks_without_an_index),
		cmocka_unit_test(watch__from_an_index__waits_four_to_five_minutes),
		cmocka_unit_test(watch__each_answer__tells_what_changed_and_moves_on),
		cmocka_unit_test(watch__an_answer_beyond_the_bound__is_not_read),
		cmocka_unit_test(watch__that_is_refused__stays_where_it_is),
		cmocka_unit_test(watch__of_keys_that_were_all_deleted__counts_from_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

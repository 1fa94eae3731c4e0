/* What all kinds share: requests put together within their bounds, the kinds' table, the causes'
 * names. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pull/kinds/kind.h"
#include "tests/unit/fixture/fault_memory.h"
#include "tests/unit/fixture/round.h"

static void escape(const char *text, size_t len, const char *keep, const char *want)
{
	struct buffer url;

	buffer_init(&url, 1000);
	assert_int_equal(buffer_append_string(&url, "x"), 0);
	assert_int_equal(kind_escape(&url, text, len, keep), 0);
	assert_string_equal(url.data + 1, want);
	assert_int_equal(url.len, strlen(want) + 1);
	buffer_fini(&url);
}

static void escape__of_each_byte__leaves_what_is_unreserved(void **state)
{
	static const char plain[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

	(void)state;
	escape("", 0, "", "");
	escape(plain, strlen(plain), "", plain);
	for (unsigned c = 0; c < 256; c++) {
		char text = (char)c, want[4];

		snprintf(want, sizeof(want), "%%%02X", c);
		if (c && strchr(plain, (int)c))
			snprintf(want, sizeof(want), "%c", (int)c);
		escape(&text, 1, "", want);
	}
	escape("a/b c%20+\xc3\xa9?&=", 14, "", "a%2Fb%20c%2520%2B%C3%A9%3F%26%3D");
	escape("a\0b", 3, "/", "a%00b");
}

static void escape__keeps_what_it_is_told_to(void **state)
{
	(void)state;
	escape("/a/b c?", 7, "/", "/a/b%20c%3F");
	escape("a:b@c", 5, ":@", "a:b@c");
	escape("%2F", 3, "%", "%2F");
	escape("\0", 1, "", "%00"); /* the end of `keep` is not one to keep */
}

static void escape__over_the_bound__is_an_error(void **state)
{
	struct kind_request r;
	char text[KIND_MAX_URL];

	(void)state;
	memset(text, 'a', sizeof(text));
	kind_request_init(&r);
	assert_int_equal(kind_escape(&r.url, text, sizeof(text) - 2, ""), 0);
	assert_int_equal(r.url.data[r.url.len], '\0');
	assert_int_equal(kind_escape(&r.url, "/", 1, ""), -EMSGSIZE);
	assert_int_equal(kind_escape(&r.url, "a", 1, ""), -EMSGSIZE); /* it stays wrong */
	kind_request_fini(&r);
}

static void hex_digit__of_each_byte__is_its_value_or_none(void **state)
{
	static const char lower[] = "0123456789abcdef", upper[] = "0123456789ABCDEF";

	(void)state;
	for (int c = 0; c < 256; c++) {
		const char *at = c ? strchr(lower, c) : NULL, *big = c ? strchr(upper, c) : NULL;
		long want = at ? at - lower : big ? big - upper : -1;

		assert_int_equal(kind_hex_digit((char)c), want);
	}
}

static void headers__up_to_the_bound__are_kept_in_order(void **state)
{
	struct kind_request r;

	(void)state;
	kind_request_init(&r);
	assert_string_equal(r.method, "GET");
	assert_int_equal(r.header_count, 0);
	for (int i = 0; i < KIND_MAX_HEADERS; i++)
		assert_int_equal(kind_header(&r, "X-%d: %s", i, "value"), 0);
	assert_int_equal(kind_header(&r, "X: one too many"), -EMSGSIZE);
	assert_int_equal(r.header_count, KIND_MAX_HEADERS);
	assert_string_equal(r.headers[0], "X-0: value");
	assert_string_equal(r.headers[KIND_MAX_HEADERS - 1], "X-7: value");
	kind_request_fini(&r);
}

static void request__that_is_finished__is_as_new(void **state)
{
	struct kind_request r;

	(void)state;
	for (int i = 0; i < 2; i++) {
		if (i == 0)
			kind_request_init(&r);
		kind_request_fini(&r); /* nothing in it is fine, twice too */
		assert_string_equal(r.method, "GET");
		assert_int_equal(r.header_count, 0);
		assert_null(r.url.data);
		assert_null(r.body.data);
		assert_false(r.conditional || r.basic);
	}
	kind_request_init(&r);
	r.method = "POST";
	r.basic = r.conditional = true;
	r.hold_ms = 1;
	assert_int_equal(buffer_append_string(&r.url, "http://h/?token=x"), 0);
	assert_int_equal(buffer_append_string(&r.body, "password"), 0);
	assert_int_equal(kind_header(&r, "Token: x"), 0);
	kind_request_fini(&r);
	assert_string_equal(r.method, "GET");
	assert_int_equal(r.header_count, 0);
	assert_null(r.url.data);
	assert_null(r.body.data);
	assert_false(r.conditional || r.basic);
	assert_int_equal(r.hold_ms, 0);
}

static void kinds__are_found_by_the_servers_kind(void **state)
{
	static const struct {
		enum settings_kind kind;
		const struct kind *is;
		const char *name;
	} table[] = {
		{SETTINGS_HTTP, &kind_http, "http"},
		{SETTINGS_ETCD, &kind_etcd, "etcd"},
		{SETTINGS_CONSUL, &kind_consul, "consul"},
		{SETTINGS_NACOS, &kind_nacos, "nacos"},
		{SETTINGS_APOLLO, &kind_apollo, "apollo"},
		{SETTINGS_SPRING, &kind_spring, "spring"},
		{SETTINGS_S3, &kind_s3, "s3"},
		{SETTINGS_FILE, &kind_file, "file"},
	};

	(void)state;
	assert_int_equal(sizeof(table) / sizeof(table[0]), SETTINGS_KINDS);
	for (size_t i = 0; i < SETTINGS_KINDS; i++) {
		struct settings_server server = {.kind = table[i].kind};

		assert_ptr_equal(kind_of(&server), table[i].is);
		assert_string_equal(table[i].is->name, table[i].name);
	}
}

static void causes__have_names_of_their_own(void **state)
{
	(void)state;
	assert_string_equal(kind_cause_name(KIND_CAUSE_NONE), "");
	for (int i = 1; i < KIND_CAUSES; i++) {
		const char *name = kind_cause_name((enum kind_cause)i);

		assert_non_null(name);
		for (int k = 0; k < i; k++)
			assert_string_not_equal(name, kind_cause_name((enum kind_cause)k));
	}
	assert_string_equal(kind_cause_name(KIND_CAUSE_NOT_FOUND), "not found");
}

static void document__larger_than_its_bound__is_refused(void **state)
{
	struct settings_server server = {.kind = SETTINGS_HTTP};
	struct kind_place place = {.server = &server, .path = "/x", .max_bytes = 3};
	struct http_client_response r = {.status = 200, .framed = true};
	struct kind_answer a;

	(void)state;
	buffer_init(&r.body, 100);
	assert_int_equal(buffer_append_string(&r.body, "a: 1"), 0);
	kind_answer_init(&a, 3);
	assert_int_equal(kind_document(&place, &r, &a), KIND_FAILED);
	assert_int_equal(a.cause, KIND_CAUSE_ANSWER);
	kind_answer_fini(&a);
	kind_answer_init(&a, 4);
	assert_int_equal(kind_document(&place, &r, &a), KIND_NEW);
	assert_int_equal(a.cause, KIND_CAUSE_NONE);
	assert_string_equal(a.body.data, "a: 1");
	kind_answer_fini(&a);
	buffer_fini(&r.body);
}

/* ---- memory that runs out ---- */

struct good_answer {
	enum settings_kind kind;
	const char *path, *type, *index, *body;
};

/* The answer is read once; the n-th allocation of that fails, 0: none. */
static void read_answer(struct round *r, const struct good_answer *a, unsigned n)
{
	round_begin(r, a->kind, "http://server", a->path);
	r->place.wall_ms = 1576478257344;
	snprintf(r->response.content_type, sizeof(r->response.content_type), "%s", a->type);
	snprintf(r->response.consul_index, sizeof(r->response.consul_index), "%s", a->index);
	buffer_append_string(&r->response.body, a->body);
	fault_memory.seen = 0;
	fault_memory.nth = n;
	r->verdict = kind_of(&r->server)->read(&r->place, &r->response, &r->answer);
	fault_memory.nth = 0;
}

static void read__with_each_allocation_failing__is_the_document_or_no_answer(void **state)
{
	static const struct good_answer answers[] = {
		{SETTINGS_ETCD, "/a/", "", "",
			"{\"header\":{\"cluster_id\":\"7\",\"revision\":\"5\",\"raft_term\":\"2\"},"
			"\"kvs\":[{\"key\":\"L2EvYg==\",\"mod_revision\":\"3\",\"value\":\"MQ==\"},"
			"{\"key\":\"L2EvYy9k\",\"mod_revision\":\"4\",\"value\":\"Mg==\"}],"
			"\"count\":\"2\"}"},
		{SETTINGS_CONSUL, "/a/", "", "9",
			"[{\"Key\":\"a/b\",\"Value\":\"MQ==\",\"CreateIndex\":1,\"ModifyIndex\":2},"
			"{\"Key\":\"a/c/d\",\"Value\":\"Mg==\",\"CreateIndex\":1,\"ModifyIndex\":"
			"3}]"},
		{SETTINGS_SPRING, "/web/prod", "application/json", "",
			"{\"name\":\"web\",\"profiles\":[\"prod\"],\"label\":null,\"version\":"
			"\"v\","
			"\"propertySources\":[{\"name\":\"n\",\"source\":{\"a.b[0]\":1,\"a.c\":"
			"\"x\"}}]}"},
		{SETTINGS_APOLLO, "/app/default/application", "", "",
			"{\"appId\":\"app\",\"cluster\":\"default\",\"namespaceName\":"
			"\"application\",\"configurations\":{\"a.b\":\"1\",\"a.c\":\"2\"},"
			"\"releaseKey\":\"20170430092936-dee2d58e74515ff3\"}"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		struct round whole, r;
		bool hit = true;

		read_answer(&whole, &answers[i], 0);
		if (whole.verdict != KIND_NEW)
			fail_msg("%zu: %d %s", i, (int)whole.verdict, whole.answer.why);
		for (unsigned n = 1; hit; n++) {
			read_answer(&r, &answers[i], n);
			hit = fault_memory.seen >= n;
			if (r.verdict == KIND_NEW) {
				assert_string_equal(r.answer.body.data, whole.answer.body.data);
				assert_string_equal(r.answer.version, whole.answer.version);
				assert_string_equal(r.answer.epoch, whole.answer.epoch);
			} else {
				assert_int_equal(r.verdict, KIND_FAILED);
				assert_true(hit && strlen(r.answer.why) > 0);
			}
			round_end(&r);
			assert_in_range(n, 1, 1000);
		}
		assert_int_equal(r.verdict, KIND_NEW);
		round_end(&whole);
	}
}

static int build_request(
	unsigned step, struct kind_request *r, const struct kind_place *place, char why[FILE_WHY])
{
	const struct kind *kind = kind_of(place->server);
	struct kind_watched item = {.path = place->path, .version = ""};
	struct kind_watch w = {.place = place, .items = &item, .count = 1};

	switch (step) {
	case 0:
		return kind->build(place, r, why);
	case 1:
		return kind->login_build ? kind->login_build(place, r, why) : 0;
	default:
		return kind->watch_build ? kind->watch_build(&w, r, why) : 0;
	}
}

static bool same_request(const struct kind_request *a, const struct kind_request *b)
{
	bool same = a->header_count == b->header_count && a->url.len == b->url.len &&
		    a->body.len == b->body.len;

	for (size_t i = 0; same && i < a->header_count; i++)
		same = strcmp(a->headers[i], b->headers[i]) == 0;
	return same && strcmp(a->url.data, b->url.data) == 0 &&
	       (!a->body.len || memcmp(a->body.data, b->body.data, a->body.len) == 0);
}

static void request__with_each_allocation_failing__is_whole_or_an_error(void **state)
{
	static const struct {
		enum settings_kind kind;
		const char *path, *token;
	} places[] = {{SETTINGS_ETCD, "/a/", "token"}, {SETTINGS_CONSUL, "/a/", NULL},
		{SETTINGS_SPRING, "/web/prod", NULL},
		{SETTINGS_APOLLO, "/app/default/application", NULL},
		{SETTINGS_NACOS, "/G/web", "token"}};

	(void)state;
	for (size_t i = 0; i < 3 * sizeof(places) / sizeof(places[0]); i++) {
		const struct settings_server server = {.kind = places[i / 3].kind, .api = 1};
		const struct kind_place place = {.server = &server,
			.base = "http://server",
			.path = places[i / 3].path,
			.user = "u",
			.password = "p",
			.secret = "s",
			.token = places[i / 3].token,
			.max_bytes = 1000};
		struct kind_request whole;
		char why[FILE_WHY];
		bool hit;

		kind_request_init(&whole);
		assert_int_equal(build_request(i % 3, &whole, &place, why), 0);
		hit = whole.url.len > 0; /* else a kind without that */
		for (unsigned n = 1; hit; n++) {
			struct kind_request r;
			int e;

			kind_request_init(&r);
			fault_memory.seen = 0;
			fault_memory.nth = n;
			e = build_request(i % 3, &r, &place, why);
			fault_memory.nth = 0;
			hit = fault_memory.seen >= n;
			if (e ? !hit : !same_request(&r, &whole))
				fail_msg("kind %d, step %zu, allocation %u: %d", (int)server.kind,
					i % 3, n, e);
			kind_request_fini(&r);
			assert_in_range(n, 1, 1000);
		}
		kind_request_fini(&whole);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(escape__of_each_byte__leaves_what_is_unreserved),
		cmocka_unit_test(escape__keeps_what_it_is_told_to),
		cmocka_unit_test(escape__over_the_bound__is_an_error),
		cmocka_unit_test(hex_digit__of_each_byte__is_its_value_or_none),
		cmocka_unit_test(headers__up_to_the_bound__are_kept_in_order),
		cmocka_unit_test(request__that_is_finished__is_as_new),
		cmocka_unit_test(kinds__are_found_by_the_servers_kind),
		cmocka_unit_test(causes__have_names_of_their_own),
		cmocka_unit_test(document__larger_than_its_bound__is_refused),
		cmocka_unit_test(read__with_each_allocation_failing__is_the_document_or_no_answer),
		cmocka_unit_test(request__with_each_allocation_failing__is_whole_or_an_error),
	};

	return fault_memory_run(tests, 2);
}

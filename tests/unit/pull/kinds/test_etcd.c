/* etcd: what is asked for, and what each answer means. The answers were recorded from etcd 3.4.23;
 * those with `made` in their name, and the tables of malformed ones, are changed from them. */
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

#include "crypto/base64.h"
#include "pull/kinds/kind.h"
#include "text/sentence.h"
#include "tests/unit/fixture/round.h"

#define CLUSTER "\"cluster_id\":\"17733079265738303813\",\"member_id\":\"1350471744993751567\","
#define HEADER(revision) "\"header\":{" CLUSTER "\"revision\":\"" revision "\",\"raft_term\":\"2\"}"
#define KEY                                                                                        \
	"{" HEADER(                                                                                \
		"2") ",\"kvs\":[{\"key\":\"L2FwcC93ZWIueWFtbA==\",\"create_revision\":\"2\","      \
		     "\"mod_revision\":\"2\",\"version\":\"1\",\"value\":\"bmFtZTogd2ViCg==\"}],"  \
		     "\"count\":\"1\"}"
#define PREFIX                                                                                     \
	"{" HEADER(                                                                                \
		"5") ",\"kvs\":[{\"key\":\"L2FwcC93ZWIvZGIvaG9zdA==\",\"create_revision\":"        \
		     "\"3\",\"mod_revision\":\"3\",\"version\":\"1\",\"value\":"                   \
		     "\"di0vYXBwL3dlYi9kYi9ob3N0\"},{\"key\":\"L2FwcC93ZWIvZGIvcG9ydA==\","        \
		     "\"create_revision\":\"4\",\"mod_revision\":\"4\",\"version\":\"1\","         \
		     "\"value\":\"di0vYXBwL3dlYi9kYi9wb3J0\"},{\"key\":\"L2FwcC93ZWIvZW1wdHk=\","  \
		     "\"create_revision\":\"5\",\"mod_revision\":\"5\",\"version\":\"1\"}],"       \
		     "\"count\":\"3\"}"
#define REFUSAL(text, code) "{\"error\":\"" text "\",\"message\":\"" text "\",\"code\":" code "}"
#define RESULT(revision, more) "{\"result\":{" HEADER(revision) "," more "}}"
#define CREATED(revision, id) RESULT(revision, "\"watch_id\":\"" id "\",\"created\":true")

static struct settings_server server = {.kind = SETTINGS_ETCD};

/* ---- one exchange ---- */

static void begin(struct round *r, const char *path)
{
	round_begin(r, SETTINGS_ETCD, "http://etcd:2379", path);
}

static struct http_client_response response(long status, const char *body, size_t len)
{
	struct http_client_response r = {.status = status, .framed = true};

	buffer_init(&r.body, len);
	buffer_append(&r.body, body, len);
	return r;
}

/* An answer at `revision` with these keys, "NAME=VALUE@REVISION", the rest NULL. */
static void made_answer(struct round *r, const char *revision, const char *const keys[4])
{
	struct buffer b;
	unsigned count = 0;

	buffer_init(&b, 10000);
	buffer_printf(&b,
		"{\"header\":{" CLUSTER "\"revision\":\"%s\",\"raft_term\":\"2\"},\"kvs\":[",
		revision);
	for (; count < 4 && keys[count]; count++) {
		const char *value = strchr(keys[count], '=') + 1, *at = strrchr(value, '@');

		buffer_printf(&b, "%s{\"key\":\"", count ? "," : "");
		base64_append(&b, keys[count], (size_t)(value - 1 - keys[count]));
		buffer_append_string(&b, "\",\"value\":\"");
		base64_append(&b, value, (size_t)(at - value));
		buffer_printf(&b, "\",\"mod_revision\":\"%s\"}", at + 1);
	}
	buffer_printf(&b, "],\"count\":\"%u\"}", count);
	assert_int_equal(b.error, 0);
	round_read(r, 200, b.data, b.len);
	buffer_fini(&b);
}

/* ---- requests ---- */

static void build__a_key__asks_for_it_as_it_is_configured(void **state)
{
	struct kind_place place = {
		.server = &server, .base = "https://etcd:2379/gate", .path = "/app/web.yaml"};
	struct kind_request r;
	char why[FILE_WHY];

	(void)state;
	kind_request_init(&r);
	assert_int_equal(kind_etcd.build(&place, &r, why), 0);
	assert_string_equal(r.method, "POST");
	assert_string_equal(r.url.data, "https://etcd:2379/gate/v3/kv/range");
	assert_string_equal(r.body.data, "{\"key\":\"L2FwcC93ZWIueWFtbA==\",\"limit\":10000}");
	assert_int_equal(r.header_count, 2);
	assert_string_equal(r.headers[0], "Content-Type: application/json");
	assert_string_equal(r.headers[1], "Grpc-Metadata-Hasleader: true");
	assert_false(r.basic);
	assert_false(r.conditional);
	kind_request_fini(&r);
}

static void build__a_prefix__asks_up_to_the_name_behind_it(void **state)
{
	struct kind_place place = {.server = &server,
		.base = "http://etcd:2379",
		.path = "/app/web/",
		.token = "GctDbwdofaCkIQYP.23"};
	struct kind_request r;
	char why[FILE_WHY];

	(void)state;
	kind_request_init(&r);
	assert_int_equal(kind_etcd.build(&place, &r, why), 0);
	assert_string_equal(r.body.data, /* "/app/web0" */
		"{\"key\":\"L2FwcC93ZWIv\",\"range_end\":\"L2FwcC93ZWIw\",\"limit\":10000}");
	assert_string_equal(r.headers[2], "Authorization: GctDbwdofaCkIQYP.23");
	kind_request_fini(&r);
}

static void build__without_a_path__is_refused(void **state)
{
	struct kind_place place = {.server = &server, .base = "http://etcd:2379", .path = ""};
	struct kind_request r;
	char why[FILE_WHY] = "";

	(void)state;
	kind_request_init(&r);
	assert_int_equal(kind_etcd.build(&place, &r, why), -EINVAL);
	assert_non_null(strstr(why, "path"));
	kind_request_fini(&r);
}

/* ---- answers ---- */

static void read__a_key__is_the_document(void **state)
{
	struct round r;

	(void)state;
	begin(&r, "/app/web.yaml");
	round_read_text(&r, 200, KEY);
	assert_int_equal(r.verdict, KIND_NEW);
	assert_int_equal(r.answer.cause, KIND_CAUSE_NONE);
	assert_string_equal(r.answer.body.data, "name: web\n");
	assert_int_equal(r.answer.type, SETTINGS_TYPE_YAML);
	assert_string_equal(r.answer.version, "2");
	assert_memory_equal(r.answer.epoch, "17733079265738303813 2 2 1 ", 27);
	assert_string_equal(r.answer.note, "");
	assert_string_equal(r.answer.mismatch, "");
	round_end(&r);
}

static void read__a_prefix__is_a_mapping_of_strings(void **state)
{
	struct round r;

	(void)state;
	begin(&r, "/app/web/");
	round_read_text(&r, 200, PREFIX);
	assert_int_equal(r.verdict, KIND_NEW);
	assert_int_equal(r.answer.type, SETTINGS_TYPE_JSON);
	assert_string_equal(r.answer.version, "5");
	assert_memory_equal(r.answer.epoch, "17733079265738303813 2 5 3 ", 27);
	assert_non_null(strstr(r.answer.body.data, "\"host\": \"v-/app/web/db/host\""));
	assert_non_null(strstr(r.answer.body.data, "\"port\": \"v-/app/web/db/port\""));
	assert_non_null(strstr(r.answer.body.data, "\"empty\": \"\""));
	assert_non_null(strstr(r.answer.body.data, "\"db\": {"));
	r.place.type = SETTINGS_TYPE_YAML; /* JSON it is all the same */
	round_read_text(&r, 200, PREFIX);
	assert_int_equal(r.answer.type, SETTINGS_TYPE_JSON);
	r.place.type = SETTINGS_TYPE_BYTES;
	round_read_text(&r, 200, PREFIX);
	assert_int_equal(r.answer.type, SETTINGS_TYPE_BYTES);
	round_end(&r);
}

static void read__numbers_that_are_no_strings__are_numbers_too(void **state)
{
	struct round r;

	(void)state;
	begin(&r, "/app/web.yaml");
	round_read_text(&r, 200,
		"{\"header\":{\"cluster_id\":7,\"revision\":9,\"raft_term\":null},\"kvs\":[{"
		"\"key\":"
		"\"L2FwcC93ZWIueWFtbA==\",\"mod_revision\":8,\"value\":\"YTogMQ==\"}],\"count\":1,"
		"\"more\":false,\"new\":[]}");
	assert_int_equal(r.verdict, KIND_NEW);
	assert_string_equal(r.answer.version, "8");
	assert_memory_equal(r.answer.epoch, "7 0 9 1 ", 8);
	round_end(&r);
}

static void read__not_found_empty_forbidden_unreachable__are_told_apart(void **state)
{
	static const struct {
		long status;
		const char *body;
		enum kind_verdict verdict;
		enum kind_cause cause;
		const char *why;
	} table[] = {
		{200, "{" HEADER("1") "}", KIND_ABSENT, KIND_CAUSE_NOT_FOUND, "no such key"},
		{200, "{" HEADER("1") ",\"kvs\":null,\"count\":\"0\"}", KIND_ABSENT,
			KIND_CAUSE_NOT_FOUND, "no such key"},
		{200,
			"{" HEADER("6") ",\"kvs\":[{\"key\":\"L2FwcC93ZWIueWFtbA==\","
					"\"create_revision\":\"6\",\"mod_revision\":\"6\","
					"\"version\":\"1\"}],\"count\":\"1\"}",
			KIND_FAILED, KIND_CAUSE_EMPTY, "value is empty"},
		{400, REFUSAL("etcdserver: user name is empty", "3"), KIND_UNAUTHORIZED,
			KIND_CAUSE_FORBIDDEN, "400: etcdserver: user name is empty"},
		{401, REFUSAL("etcdserver: invalid auth token", "16"), KIND_UNAUTHORIZED,
			KIND_CAUSE_FORBIDDEN, "401: etcdserver: invalid auth token"},
		{400, REFUSAL("etcdserver: revision of auth store is old", "3"), KIND_UNAUTHORIZED,
			KIND_CAUSE_FORBIDDEN, "is old"},
		{401, "<html>", KIND_UNAUTHORIZED, KIND_CAUSE_FORBIDDEN, "401: without a word"},
		{403, REFUSAL("etcdserver: permission denied", "7"), KIND_FAILED,
			KIND_CAUSE_FORBIDDEN, "403: etcdserver: permission denied"},
		{503, REFUSAL("etcdserver: no leader", "14"), KIND_FAILED, KIND_CAUSE_UNREACHABLE,
			"503: etcdserver: no leader"},
		{503, REFUSAL("etcdserver: request timed out", "14"), KIND_FAILED,
			KIND_CAUSE_TIMEOUT, "503: etcdserver: request timed out"},
		{503, REFUSAL("etcdserver: leader changed", "14"), KIND_FAILED,
			KIND_CAUSE_OVERLOADED, "503: etcdserver: leader changed"},
		{429, REFUSAL("etcdserver: too many requests", "8"), KIND_FAILED,
			KIND_CAUSE_OVERLOADED, "429"},
		{504, REFUSAL("context deadline exceeded", "4"), KIND_FAILED, KIND_CAUSE_TIMEOUT,
			"504"},
		{500, "{\"code\":13,\"message\":\"broken\",\"details\":[]}", KIND_FAILED,
			KIND_CAUSE_ANSWER, "500: broken"},
		{400, REFUSAL("etcdserver: key is not provided", "3"), KIND_FAILED,
			KIND_CAUSE_ANSWER, "400: etcdserver: key is not provided"},
		{400, "{\"error\":\"one\\u001b[31m\\r\\ntwo\\u007f\\u0080\",\"message\":7}",
			KIND_FAILED, KIND_CAUSE_ANSWER, "400: one?[31m??two???"},
		{503, "<html>", KIND_USUAL, KIND_CAUSE_NONE, ""},
		{302, "", KIND_USUAL, KIND_CAUSE_NONE, ""},
		{204, "{\"message\":\"\"}", KIND_USUAL, KIND_CAUSE_NONE, ""},
		/* what is not etcd never says that a key is not there */
		{404, "Not Found\n", KIND_FAILED, KIND_CAUSE_ANSWER, "check the urls"},
		{404, REFUSAL("Not Found", "5"), KIND_FAILED, KIND_CAUSE_ANSWER, "check the urls"},
		{405, "", KIND_FAILED, KIND_CAUSE_ANSWER, "check the urls"},
		{410, "", KIND_FAILED, KIND_CAUSE_ANSWER, "check the urls"},
		{501, REFUSAL("Not Implemented", "12"), KIND_FAILED, KIND_CAUSE_ANSWER, "gateway"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct round r;

		begin(&r, "/app/web.yaml");
		round_read_text(&r, table[i].status, table[i].body);
		assert_int_equal(r.verdict, table[i].verdict);
		if (table[i].verdict != KIND_USUAL)
			assert_int_equal(r.answer.cause, table[i].cause);
		if (!strstr(r.answer.why, table[i].why))
			fail_msg("%zu: %s", i, r.answer.why);
		assert_int_equal(r.answer.why[0] == '\0', table[i].verdict == KIND_USUAL);
		assert_string_equal(r.answer.epoch, "");
		round_end(&r);
	}
}

static void read__a_prefix_without_names__is_absent(void **state)
{
	static const char *const none[4] = {NULL};
	static const char *const beside[4] = {
		"/app/web/=own@3", "/app/web/.minisig=untrusted@4", "/app/web/db/=@5", NULL};
	struct round r;

	(void)state;
	begin(&r, "/app/web/");
	made_answer(&r, "9", none);
	assert_int_equal(r.verdict, KIND_ABSENT);
	assert_non_null(strstr(r.answer.why, "prefix"));
	made_answer(&r, "9", beside); /* itself, its signature, a folder */
	assert_int_equal(r.verdict, KIND_ABSENT);
	round_end(&r);
}

static void read__what_lies_beside_the_names__is_not_in_the_document(void **state)
{
	static const char *const keys[4] = {"/app/web/.minisig=untrusted@4", "/app/web/db/=@5",
		"/app/web/db/.minisig=1@6", "/app/web/db/host=2@3"};
	struct round r;

	(void)state;
	begin(&r, "/app/web/");
	made_answer(&r, "9", keys);
	assert_int_equal(r.verdict, KIND_NEW);
	assert_string_equal(r.answer.body.data,
		"{\n  \"db\": {\n    \".minisig\": \"1\",\n    \"host\": \"2\"\n  }\n}\n");
	assert_string_equal(r.answer.version, "6"); /* a new signature is a new version */
	round_end(&r);
}

static void read__keys_that_no_document_holds__are_named(void **state)
{
	static const struct {
		const char *keys[4];
		const char *why;
	} table[] = {
		{{"/app/web/a=1@2", "/app/web/db/pa\xffss=x@3"}, "'/app/web/db/pa?ss'"},
		{{"/app/web/a=\xc3\x28@2"}, "'/app/web/a'"},
		{{"/app/web/a/b=1@2", "/app/web/a//b=2@2"}, "'/app/web/a//b' is there twice"},
		{{"/app/web//=1@2"}, "'/app/web//' has no name"},
		{{"/app/other=1@2"}, "'/app/other', which was not asked for"},
		{{"/app/we=1@2"}, "'/app/we', which was not asked for"},
	};
	char large[1200];
	const char *const over[4] = {large};
	struct round r;

	(void)state;
	begin(&r, "/app/web/");
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		made_answer(&r, "9", table[i].keys);
		assert_int_equal(r.verdict, KIND_FAILED);
		assert_int_equal(r.answer.cause, KIND_CAUSE_ANSWER);
		if (!strstr(r.answer.why, table[i].why))
			fail_msg("%zu: %s", i, r.answer.why);
	}
	round_read_text(&r, 200, /* a NUL: "a\0b" */
		"{" HEADER("5") ",\"kvs\":[{\"key\":\"L2FwcC93ZWIvYQ==\",\"value\":\"YQBi\","
				"\"mod_revision\":\"5\"}],\"count\":\"1\"}");
	assert_int_equal(r.verdict, KIND_FAILED);
	assert_non_null(strstr(r.answer.why, "'/app/web/a' is not text"));
	snprintf(large, sizeof(large), "/app/web/a=%01100d@2", 1);
	made_answer(&r, "9", over);
	assert_int_equal(r.verdict, KIND_FAILED);
	assert_non_null(strstr(r.answer.why, "max_size"));
	round_end(&r);
}

static void read__more_keys_than_fit__are_refused_and_not_cut(void **state)
{
	struct round r;

	(void)state;
	begin(&r, "/app/web/");
	round_read_text(&r, 200,
		"{" HEADER(
			"5") ",\"kvs\":[{\"key\":\"L2FwcC93ZWIvZGIvaG9zdA==\",\"create_revision\":"
			     "\"3\",\"mod_revision\":\"3\",\"version\":\"1\",\"value\":"
			     "\"di0vYXBwL3dlYi9kYi9ob3N0\"}],\"more\":true,\"count\":\"12345\"}");
	assert_int_equal(r.verdict, KIND_FAILED);
	assert_int_equal(r.answer.cause, KIND_CAUSE_ANSWER);
	assert_non_null(strstr(r.answer.why, "12345 keys below the prefix"));
	round_end(&r);
}

static void read__as_many_keys_as_are_asked_for__are_read(void **state)
{
	struct buffer b;
	struct round r;

	(void)state;
	begin(&r, "/a/");
	r.place.max_bytes = 1u << 20;
	buffer_init(&b, 4u << 20);
	buffer_append_string(&b, "{" HEADER("20000") ",\"kvs\":[");
	for (int i = 0; i < 10000; i++) {
		char key[20];

		snprintf(key, sizeof(key), "/a/%06d", i);
		buffer_append_string(&b, i ? ",{\"key\":\"" : "{\"key\":\"");
		base64_append(&b, key, strlen(key));
		buffer_printf(&b,
			"\",\"create_revision\":\"2\",\"mod_revision\":\"%d\",\"version\":\"1\","
			"\"lease\":\"7\",\"value\":\"MQ==\"}",
			i + 2);
	}
	buffer_append_string(&b, "],\"count\":\"10000\"}");
	round_read(&r, 200, b.data, b.len);
	assert_string_equal(r.answer.why, "");
	assert_int_equal(r.verdict, KIND_NEW);
	assert_string_equal(r.answer.version, "10001");
	buffer_fini(&b);
	round_end(&r);
}

static void read__a_value_of_the_largest_size__fits_and_no_byte_more(void **state)
{
	struct round r;

	(void)state;
	begin(&r, "/app/web.yaml");
	r.place.max_bytes = 10;
	round_read_text(&r, 200, KEY);
	assert_int_equal(r.verdict, KIND_NEW);
	assert_int_equal(r.answer.body.len, 10);
	r.place.max_bytes = 9;
	round_read_text(&r, 200, KEY);
	assert_int_equal(r.verdict, KIND_FAILED);
	assert_int_equal(r.answer.cause, KIND_CAUSE_ANSWER);
	assert_non_null(strstr(r.answer.why, "max_size"));
	round_end(&r);
}

static void read__a_malformed_answer__is_refused(void **state)
{
#define WITH(header, rest) "{\"header\":{" header "}," rest "}"
#define GOOD "\"cluster_id\":\"1\",\"revision\":\"5\",\"raft_term\":\"2\""
#define ONE(members) WITH(GOOD, "\"kvs\":[{" members "}],\"count\":\"1\"")
#define NAME "\"key\":\"L2FwcC93ZWIueWFtbA==\""
	static const char *const table[] = {
		"",
		" ",
		"null",
		"[]",
		"{}",
		"<html>",
		"{\"header\":null}",
		"{\"header\":[]}",
		"{\"header\":{}}",
		WITH("\"revision\":\"5\"", "\"count\":\"0\""),
		WITH("\"cluster_id\":\"1\"", "\"count\":\"0\""),
		WITH("\"cluster_id\":\"1\",\"revision\":\"-5\"", "\"count\":\"0\""),
		WITH("\"cluster_id\":\"1\",\"revision\":-5", "\"count\":\"0\""),
		WITH("\"cluster_id\":\"1\",\"revision\":5.0", "\"count\":\"0\""),
		WITH("\"cluster_id\":\"1\",\"revision\":true", "\"count\":\"0\""),
		WITH("\"cluster_id\":\"1\",\"revision\":\"\"", "\"count\":\"0\""),
		WITH("\"cluster_id\":\"1\",\"revision\":\" 5\"", "\"count\":\"0\""),
		WITH("\"cluster_id\":\"1\",\"revision\":\"5x\"", "\"count\":\"0\""),
		WITH("\"cluster_id\":\"1\",\"revision\":\"9223372036854775807\"",
			"\"count\":\"0\""),
		WITH("\"cluster_id\":\"1\",\"revision\":\"18446744073709551616\"",
			"\"count\":\"0\""),
		WITH("\"cluster_id\":\"18446744073709551616\",\"revision\":\"5\"",
			"\"count\":\"0\""),
		WITH("\"cluster_id\":{},\"revision\":\"5\"", "\"count\":\"0\""),
		WITH("\"cluster_id\":\"1\",\"revision\":\"5\",\"raft_term\":[]", "\"count\":\"0\""),
		WITH(GOOD, "\"count\":\"1\""),
		WITH(GOOD, "\"count\":{}"),
		WITH(GOOD, "\"kvs\":{},\"count\":\"0\""),
		WITH(GOOD, "\"kvs\":\"\",\"count\":\"0\""),
		WITH(GOOD, "\"kvs\":[7],\"count\":\"1\""),
		WITH(GOOD, "\"kvs\":[null],\"count\":\"1\""),
		WITH(GOOD, "\"kvs\":[{" NAME ",\"value\":\"YQ==\",\"mod_revision\":\"2\"}]"),
		WITH(GOOD, "\"kvs\":[{" NAME ",\"value\":\"YQ==\",\"mod_revision\":\"2\"},{" NAME
			   ",\"value\":\"YQ==\",\"mod_revision\":\"2\"}],\"count\":\"2\""),
		ONE(""),
		ONE("\"value\":\"YQ==\",\"mod_revision\":\"2\""),
		ONE(NAME ",\"value\":\"YQ==\""),
		ONE(NAME ",\"value\":\"YQ==\",\"mod_revision\":\"0\""),
		ONE(NAME ",\"value\":\"YQ==\",\"mod_revision\":\"6\""),
		ONE(NAME ",\"value\":\"YQ==\",\"mod_revision\":\"2\",\"mod_revision\":\"3\""),
		ONE(NAME ",\"value\":7,\"mod_revision\":\"2\""),
		ONE(NAME ",\"value\":[],\"mod_revision\":\"2\""),
		ONE(NAME ",\"value\":\"YQ=\",\"mod_revision\":\"2\""),
		ONE(NAME ",\"value\":\"=\",\"mod_revision\":\"2\""),
		ONE(NAME ",\"value\":\"====\",\"mod_revision\":\"2\""),
		ONE(NAME ",\"value\":\"Y===\",\"mod_revision\":\"2\""),
		ONE(NAME ",\"value\":\"Y$==\",\"mod_revision\":\"2\""),
		ONE(NAME ",\"value\":\"Y\\u0000==\",\"mod_revision\":\"2\""),
		ONE(NAME ",\"value\":\"YR==\",\"mod_revision\":\"2\""),
		ONE("\"key\":\"L2FwcC93ZWIueWFtbA=\",\"value\":\"YQ==\",\"mod_revision\":\"2\""),
		ONE("\"key\":\"\",\"value\":\"YQ==\",\"mod_revision\":\"2\""),
		ONE("\"key\":7,\"value\":\"YQ==\",\"mod_revision\":\"2\""),
		ONE("\"key\":\"L2FwcA==\",\"value\":\"YQ==\",\"mod_revision\":\"2\""),
		ONE("\"key\":\"L2FwcC93ZWIueWFtbDE=\",\"value\":\"YQ==\",\"mod_revision\":\"2\""),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct round r;

		begin(&r, "/app/web.yaml");
		round_read_text(&r, 200, table[i]);
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
		round_read(&r, 200, PREFIX, len);
		assert_int_equal(r.verdict, KIND_FAILED);
	}
	/* the trailer of an error is no part of its body; if a proxy makes it one: */
	round_read_text(&r, 200, PREFIX "Grpc-Trailer-Content-Type: application/grpc\r\n");
	assert_int_equal(r.verdict, KIND_FAILED);
	round_read_text(&r, 200, PREFIX "\n");
	assert_int_equal(r.verdict, KIND_NEW);
	round_end(&r);
}

static void read__why_an_answer_cannot_be_read__has_no_piece_of_it(void **state)
{
	struct round r;

	(void)state;
	begin(&r, "/k");
	round_read_text(&r, 200, "[{\"password\": s3cret}]");
	assert_int_equal(r.verdict, KIND_FAILED);
	assert_string_equal(r.answer.why, "the answer of etcd cannot be read: invalid token");
	round_read_text(&r, 200, "{\"s3cret\": 1, \"s3cret\": 2}");
	assert_int_equal(r.verdict, KIND_FAILED);
	assert_string_equal(r.answer.why, "the answer of etcd cannot be read: duplicate key");
	round_read_text(&r, 200, "{\"a\": \"s3cr\x1b\"}");
	assert_int_equal(r.verdict, KIND_FAILED);
	assert_string_equal(r.answer.why,
		"the answer of etcd cannot be read: the character U+001B is not allowed");
	round_end(&r);
}

/* ---- what is held ---- */

static void read__what_is_held__is_the_same_whatever_else_was_written(void **state)
{
	static const char *const one[4] = {"/k=6@7"};
	char other[300];
	struct round r;

	(void)state;
	begin(&r, "/k");
	made_answer(&r, "7", one);
	round_hold(&r);
	made_answer(&r, "7", one);
	assert_int_equal(r.verdict, KIND_SAME);
	made_answer(&r, "5000", one);
	assert_int_equal(r.verdict, KIND_SAME);
	r.held.absent = true;
	made_answer(&r, "5000", one);
	assert_int_equal(r.verdict, KIND_NEW);
	r.held.absent = false;
	r.place.forced = true; /* whatever is held */
	made_answer(&r, "5000", one);
	assert_int_equal(r.verdict, KIND_NEW);
	r.place.forced = false;
	for (size_t i = 0; r.epoch[i]; i++) { /* an epoch that is damaged is none */
		char c = r.epoch[i];

		r.epoch[i] = 'x';
		made_answer(&r, "7", one);
		assert_int_equal(r.verdict, KIND_NEW);
		assert_string_equal(r.answer.note, "");
		r.epoch[i] = c;
	}
	r.version[0] = '6'; /* no two of its marks may differ */
	made_answer(&r, "7", one);
	assert_int_equal(r.verdict, KIND_NEW);
	r.version[0] = '7';
	*strstr(r.epoch, " 7 1 ") = '\0';
	snprintf(other, sizeof(other), "%s 7 2 %s", r.epoch, strrchr(r.answer.epoch, ' ') + 1);
	r.held.epoch = other;
	made_answer(&r, "7", one);
	assert_int_equal(r.verdict, KIND_NEW);
	r.held.epoch = NULL;
	made_answer(&r, "7", one);
	assert_int_equal(r.verdict, KIND_NEW);
	round_end(&r);
}

static void read__another_value_at_the_held_revision__is_new(void **state)
{
	static const char *const before[4] = {"/k=6@7"}, *const after[4] = {"/k=x6@7"};
	struct round r;

	(void)state;
	begin(&r, "/k"); /* restored under its old name, and written to again as often */
	made_answer(&r, "7", before);
	round_hold(&r);
	made_answer(&r, "7", after);
	assert_int_equal(r.verdict, KIND_NEW);
	assert_string_equal(r.answer.body.data, "x6");
	round_end(&r);
}

static void read__a_deleted_key_of_a_prefix__is_new_without_a_higher_version(void **state)
{
	static const char *const before[4] = {"/p/a=1@3", "/p/b=2@4"}, *const after[4] = {
									       "/p/b=2@4"};
	struct round r;

	(void)state;
	begin(&r, "/p/");
	made_answer(&r, "4", before);
	round_hold(&r);
	made_answer(&r, "5", after);
	assert_int_equal(r.verdict, KIND_NEW);
	assert_string_equal(r.answer.version, "4");
	round_hold(&r);
	made_answer(&r, "6", after);
	assert_int_equal(r.verdict, KIND_SAME);
	round_end(&r);
}

static void read__an_older_revision_of_the_same_cluster__is_refused_unless_forced(void **state)
{
	static const char *const six[4] = {"/k=6@7"}, *const three[4] = {"/k=3@4"}, *const none[4];
	struct round r;

	(void)state;
	begin(&r, "/k");
	made_answer(&r, "7", six);
	round_hold(&r);
	made_answer(&r, "4", three);
	assert_int_equal(r.verdict, KIND_FAILED);
	assert_int_equal(r.answer.cause, KIND_CAUSE_OLDER);
	assert_non_null(strstr(r.answer.why, "from 7 to 4"));
	assert_non_null(strstr(r.answer.why, "pullet refresh"));
	made_answer(&r, "1", none); /* from before the key was written */
	assert_int_equal(r.verdict, KIND_FAILED);
	assert_int_equal(r.answer.cause, KIND_CAUSE_OLDER);
	r.place.forced = true;
	made_answer(&r, "4", three);
	assert_int_equal(r.verdict, KIND_NEW);
	assert_non_null(strstr(r.answer.note, "7 -> 4"));
	round_end(&r);
}

static void read__an_older_revision_of_another_cluster__is_taken_and_noted(void **state)
{
	static const struct {
		const char *held, *cluster, *term;
		bool changed;
	} table[] = {
		{"10 3 7 1 5", "10", "3", false},
		{"10 3 7 1 5", "10", "4", false}, /* the next leader */
		{"10 3 7 1 5", "11", "3", true},
		{"10 3 7 1 5", "11", "9", true},
		{"10 3 7 1 5", "10", "2", true},
		{"10 3 7 1", "10", "3", false}, /* no epoch, so nothing is known of its order */
		{"10 3 7 1 5 9", "10", "3", false},
		{"10 3 7 1 5 ", "10", "3", false},
		{"10 3 7 1 18446744073709551616", "10", "3", false},
		{"", "10", "3", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		char text[300], epoch[40], version[] = "7";
		struct round r;

		begin(&r, "/k");
		snprintf(epoch, sizeof(epoch), "%s", table[i].held);
		r.held = (struct part){.etag = version, .epoch = epoch};
		r.place.held = &r.held;
		for (int revision = 4; revision <= 7; revision += 3) {
			snprintf(text, sizeof(text),
				"{\"header\":{\"cluster_id\":\"%s\",\"raft_term\":\"%s\","
				"\"revision\":"
				"\"%d\"},\"kvs\":[{\"key\":\"L2s=\",\"value\":\"YQ==\","
				"\"mod_revision\":\"4\"}],\"count\":\"1\"}",
				table[i].cluster, table[i].term, revision);
			round_read_text(&r, 200, text);
			assert_int_equal(r.verdict, revision == 7 || table[i].changed || i > 4
							    ? KIND_NEW
							    : KIND_FAILED);
			assert_int_equal(strstr(r.answer.note, "identity changed") != NULL,
				table[i].changed);
		}
		round_end(&r);
	}
}

static void read__the_same_from_another_cluster__is_new_and_noted(void **state)
{
	struct round r;

	(void)state; /* so that its order is the one that counts from now on */
	begin(&r, "/app/web.yaml");
	round_read_text(&r, 200, KEY);
	round_hold(&r);
	r.epoch[1] = '6';
	round_read_text(&r, 200, KEY);
	assert_int_equal(r.verdict, KIND_NEW);
	assert_non_null(strstr(r.answer.note, "identity changed"));
	round_end(&r);
}

/* ---- login ---- */

static void login__with_user_and_password__asks_for_a_token(void **state)
{
	struct kind_place place = {.server = &server,
		.base = "http://etcd:2379",
		.user = "reader",
		.password = "a\"b\\c\n"};
	struct kind_request r;
	char why[FILE_WHY];

	(void)state;
	kind_request_init(&r);
	assert_int_equal(kind_etcd.login_build(&place, &r, why), 0);
	assert_string_equal(r.method, "POST");
	assert_string_equal(r.url.data, "http://etcd:2379/v3/auth/authenticate");
	assert_string_equal(r.body.data, "{\"name\":\"reader\",\"password\":\"a\\\"b\\\\c\\n\"}");
	kind_request_fini(&r);
}

static int login(long status, const char *body, char **ret_token, char why[FILE_WHY])
{
	struct http_client_response t = response(status, body, strlen(body));
	uint64_t lifetime_ms = 77;
	int r;

	*ret_token = NULL;
	why[0] = '\0';
	r = kind_etcd.login_read(&t, ret_token, &lifetime_ms, why);
	assert_int_equal(lifetime_ms, r == 0 ? 0 : 77);
	buffer_fini(&t.body);
	return r;
}

static void login__each_answer__is_a_token_or_says_why_not(void **state)
{
	static const struct {
		long status;
		const char *body;
		int result;
		const char *why;
	} table[] = {
		{400,
			REFUSAL("etcdserver: authentication failed, invalid user ID or password",
				"3"),
			-EACCES, "invalid user ID or password"},
		{412, REFUSAL("etcdserver: authentication is not enabled", "9"), -ENOTSUP, ""},
		{400, REFUSAL("etcdserver: authentication is not enabled", "9"), -ENOTSUP, ""},
		{401, REFUSAL("no", "16"), -EACCES, "no"},
		{403, REFUSAL("no", "7"), -EACCES, "no"},
		{503, REFUSAL("etcdserver: no leader", "14"), -EAGAIN, "no leader"},
		{503, REFUSAL("etcdserver: request timed out", "14"), -EAGAIN, "timed out"},
		{429, "", -EAGAIN, "429"},
		{500, "<html>", -EAGAIN, "500"},
		{400, REFUSAL("etcdserver: name is wrong", "3"), -EPROTO, "name is wrong"},
		{302, "", -EPROTO, "302"},
		{404, "Not Found\n", -EPROTO, "gateway"},
		{200, "", -EPROTO, "no token"},
		{200, "{}", -EPROTO, "no token"},
		{200, "{\"token\":7}", -EPROTO, "no token"},
		{200, "{\"token\":\"\"}", -EPROTO, "no token"},
		{200, "{\"token\":\"a b\"}", -EPROTO, "no token"},
		{200, "{\"token\":\"a\\r\\nX-Header: b\"}", -EPROTO, "no token"},
		{200, "{\"token\":\"\\u00e4\"}", -EPROTO, "no token"},
	};
	char *token, why[FILE_WHY], large[KIND_MAX_TOKEN + 30];

	(void)state;
	assert_int_equal(
		login(200, "{" HEADER("9") ",\"token\":\"GctDbwdofaCkIQYP.23\"}", &token, why), 0);
	assert_string_equal(token, "GctDbwdofaCkIQYP.23");
	free(token);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		assert_int_equal(
			login(table[i].status, table[i].body, &token, why), table[i].result);
		assert_null(token);
		if (!strstr(why, table[i].why))
			fail_msg("%zu: %s", i, why);
	}
	snprintf(large, sizeof(large), "{\"token\":\"%0*d\"}", KIND_MAX_TOKEN + 1, 1);
	assert_int_equal(login(200, large, &token, why), -EPROTO);
	snprintf(large, sizeof(large), "{\"token\":\"%0*d\"}", KIND_MAX_TOKEN, 1);
	assert_int_equal(login(200, large, &token, why), 0);
	free(token);
}

/* ---- watches ---- */

struct watch {
	struct kind_place place;
	struct kind_watched items[2];
	struct kind_watch watch;
	char told[400]; /* "ITEM KEY VERSION;" for each call */
	char why[FILE_WHY];
};

static void changed(void *arg, size_t item, const char *key, size_t len, const char *version)
{
	struct watch *w = arg;
	size_t n = strlen(w->told);

	snprintf(w->told + n, sizeof(w->told) - n, "%zu %.*s %s;", item, (int)(key ? len : 1),
		key ? key : "*", version ? version : "-");
}

static void watch_begin(struct watch *w, uint64_t first, uint64_t second)
{
	*w = (struct watch){.place = {.server = &server, .base = "http://etcd:2379"},
		.items = {{"/app/web.yaml", "2", first}, {"/app/web/", "", second}},
		.watch = {.count = 2, .changed = changed}};
	w->watch.place = &w->place;
	w->watch.items = w->items;
	w->watch.arg = w;
}

static int come(struct watch *w, long status, const char *line)
{
	struct http_client_response t = response(status, line, strlen(line));
	int r;

	w->told[0] = '\0';
	w->why[0] = '\0';
	r = kind_etcd.watch_read(&w->watch, &t, w->why);
	buffer_fini(&t.body);
	return r;
}

static void watch__of_several__is_one_request(void **state)
{
	struct kind_request r;
	struct watch w;

	(void)state;
	watch_begin(&w, 0, 3);
	w.place.token = "t";
	kind_request_init(&r);
	assert_int_equal(kind_etcd.watch_build(&w.watch, &r, w.why), 0);
	assert_string_equal(r.url.data, "http://etcd:2379/v3/watch");
	assert_string_equal(r.method, "POST");
	assert_string_equal(r.body.data,
		"{\"create_request\":{\"key\":\"L2FwcC93ZWIueWFtbA==\",\"watch_id\":\"1\","
		"\"progress_notify\":true,\"fragment\":true}}\n"
		"{\"create_request\":{\"key\":\"L2FwcC93ZWIv\",\"range_end\":\"L2FwcC93ZWIw\","
		"\"start_revision\":\"3\",\"watch_id\":\"2\",\"progress_notify\":true,"
		"\"fragment\":true}}\n");
	assert_string_equal(r.headers[2], "Authorization: t");
	assert_int_equal(r.hold_ms, 0);
	kind_request_fini(&r);
	w.items[1].path = "";
	kind_request_init(&r);
	assert_int_equal(kind_etcd.watch_build(&w.watch, &r, w.why), -EINVAL);
	kind_request_fini(&r);
	assert_true(kind_etcd.stream);
	assert_null(kind_etcd.together);
}

/* What the last news brought, as a pull would have it: "ITEM VERSION TEXT (REVISION);" */
static void answered(void *arg, size_t item, const struct http_client_response *answer)
{
	struct watch *w = arg;
	struct kind_place place = {.server = &server,
		.base = "http://etcd:2379",
		.path = w->items[item].path,
		.max_bytes = 1000};
	size_t n = strlen(w->told);
	struct kind_answer a;

	kind_answer_init(&a, place.max_bytes);
	assert_int_equal(kind_etcd.read(&place, answer, &a), KIND_NEW);
	snprintf(w->told + n, sizeof(w->told) - n, "%zu %s \"%.*s\" (%s);", item, a.version,
		(int)a.body.len, a.body.data, a.epoch);
	kind_answer_fini(&a);
}

#define PUT(key, value, revision)                                                                  \
	"{\"kv\":{\"key\":\"" key "\",\"create_revision\":\"2\",\"mod_revision\":\"" revision      \
	"\",\"version\":\"1\"" value "}}"
#define NEWS(id, events) RESULT("9", "\"watch_id\":\"" id "\",\"events\":[" events "]")
#define WEB "L2FwcC93ZWIueWFtbA=="

static void watch__of_a_single_key__brings_what_a_pull_would_bring(void **state)
{
	static const char gone[] =
		"{\"type\":\"DELETE\",\"kv\":{\"key\":\"" WEB "\",\"mod_revision\":\"8\"}}";
	struct watch w;
	char line[600];

	(void)state;
	watch_begin(&w, 3, 3);
	w.watch.answered = answered;
	assert_int_equal(come(&w, 200, NEWS("1", PUT(WEB, ",\"value\":\"YTogMQo=\"", "7"))), 0);
	assert_non_null(strstr(w.told, "0 7 \"a: 1\n\" ("));
	assert_non_null(strstr(w.told, " 2 7 1 ")); /* the term, the revision of the change, one */
	assert_non_null(strstr(w.told, ");0 /app/web.yaml 7;"));
	/* of several the last */
	assert_int_equal(come(&w, 200,
				 NEWS("1", PUT(WEB, ",\"value\":\"YTogMQo=\"", "7") "," PUT(
						   WEB, ",\"value\":\"YTogMgo=\"", "8"))),
		0);
	assert_non_null(strstr(w.told, "0 8 \"a: 2\n\" ("));
	/* one that is gone, and what is below a prefix, is asked for */
	snprintf(line, sizeof(line), NEWS("1", "%s"), gone);
	assert_int_equal(come(&w, 200, line), 0);
	assert_string_equal(w.told, "0 /app/web.yaml -;");
	assert_int_equal(
		come(&w, 200,
			NEWS("2", PUT("L2FwcC93ZWIvZGIvcG9ydA==", ",\"value\":\"YTogMQo=\"", "7"))),
		0);
	assert_string_equal(w.told, "1 /app/web/db/port 7;");
}

static void watch__a_recorded_one__tells_each_change_and_where_it_stands(void **state)
{
	struct watch w;

	(void)state;
	watch_begin(&w, 0, 3); /* the second is resumed */
	assert_int_equal(come(&w, 200, CREATED("6", "1")), 0);
	assert_string_equal(w.told, "0 * -;"); /* what was before the watch stood */
	assert_int_equal(w.items[0].position, 7);
	assert_int_equal(come(&w, 200, CREATED("6", "2")), 0);
	assert_string_equal(w.told, "");
	assert_int_equal(w.items[1].position, 3);
	assert_int_equal(
		come(&w, 200,
			RESULT("6", "\"watch_id\":\"2\",\"events\":[{\"kv\":{\"key\":"
				    "\"L2FwcC93ZWIvZGIvaG9zdA==\",\"create_revision\":\"3\","
				    "\"mod_revision\":\"3\",\"version\":\"1\",\"value\":"
				    "\"di0vYXBwL3dlYi9kYi9ob3N0\"}},{\"kv\":{\"key\":"
				    "\"L2FwcC93ZWIvZGIvcG9ydA==\",\"create_revision\":\"4\","
				    "\"mod_revision\":\"4\",\"version\":\"1\",\"value\":"
				    "\"di0vYXBwL3dlYi9kYi9wb3J0\"}}]")),
		0);
	assert_string_equal(w.told, "1 /app/web/db/host 3;1 /app/web/db/port 4;");
	assert_int_equal(w.items[1].position, 5); /* 5 and 6 may still come */
	assert_int_equal(
		come(&w, 200,
			RESULT("7",
				"\"watch_id\":\"1\",\"events\":[{\"kv\":{\"key\":"
				"\"L2FwcC93ZWIueWFtbA==\",\"create_revision\":\"2\","
				"\"mod_revision\":\"7\",\"version\":\"2\",\"value\":\"eA==\"}}]")),
		0);
	assert_string_equal(w.told, "0 /app/web.yaml 7;");
	assert_int_equal(w.items[0].position, 8);
	assert_int_equal(
		come(&w, 200,
			RESULT("9", "\"watch_id\":\"2\",\"events\":[{\"type\":\"DELETE\","
				    "\"kv\":{\"key\":\"L2FwcC93ZWIvYQ==\",\"mod_revision\":"
				    "\"9\"}}]")),
		0);
	assert_string_equal(w.told, "1 /app/web/a -;");
	assert_int_equal(w.items[1].position, 10);
	assert_int_equal(come(&w, 200, RESULT("20", "\"watch_id\":\"1\"")), 0); /* progress */
	assert_string_equal(w.told, "");
	assert_int_equal(w.items[0].position, 21);
	assert_int_equal(come(&w, 200, RESULT("12", "\"watch_id\":\"1\"")), 0);
	assert_int_equal(w.items[0].position, 21);
	assert_int_equal(come(&w, 200, ""), 0);
	assert_int_equal(come(&w, 200, RESULT("20", "\"watch_id\":\"2\",\"events\":[]")), 0);
	assert_int_equal(w.items[1].position, 10);
	w.items[1].position = 0;
	assert_int_equal(come(&w, 200, RESULT("20", "\"watch_id\":\"2\",\"events\":[]")), 0);
	assert_int_equal(w.items[1].position, 0);
}

static void watch__a_line_beyond_the_bound__begins_anew(void **state)
{
	static const char line[] = NEWS("1", PUT(WEB, ",\"value\":\"YTogMQo=\"", "7"));
	char *body = malloc(KIND_MAX_NEWS + 2);

	(void)state;
	assert_non_null(body);
	for (size_t more = 0; more < 2; more++) {
		struct watch w;

		memset(body, ' ', KIND_MAX_NEWS + more);
		memcpy(body, line, sizeof(line) - 1);
		body[KIND_MAX_NEWS + more] = '\0';
		watch_begin(&w, 3, 3);
		assert_int_equal(come(&w, 200, body), more ? -ESTALE : 0);
		if (more)
			assert_string_equal(w.why, "more came by the watch than is read");
		else
			assert_string_equal(w.told, "0 /app/web.yaml 7;");
	}
	free(body);
}

static void watch__a_fragment__may_be_followed_by_the_same_revision(void **state)
{
	struct watch w;

	(void)state;
	watch_begin(&w, 5, 5);
	assert_int_equal(
		come(&w, 200,
			RESULT("7", "\"watch_id\":\"2\",\"fragment\":true,\"events\":[{"
				    "\"kv\":{\"key\":\"L2FwcC93ZWIvYQ==\",\"mod_revision\":"
				    "\"7\"}}]")),
		0);
	assert_string_equal(w.told, "1 /app/web/a 7;");
	assert_int_equal(w.items[1].position, 7);
	assert_int_equal(come(&w, 200,
				 RESULT("7", "\"watch_id\":\"2\",\"events\":[{\"kv\":{\"key\":"
					     "\"L2FwcC93ZWIvYg==\",\"mod_revision\":\"7\"}}]")),
		0);
	assert_int_equal(w.items[1].position, 8);
	assert_int_equal(w.items[0].position, 5);
}

static void watch__from_compacted_revisions__begins_anew(void **state)
{
	struct watch w;

	(void)state;
	watch_begin(&w, 2, 7);
	assert_int_equal(come(&w, 200, CREATED("9", "1")), 0);
	assert_string_equal(w.told, "");
	assert_int_equal(come(&w, 200,
				 "{\"result\":{\"header\":{" CLUSTER
				 "\"raft_term\":\"2\"},\"watch_id\":\"1\","
				 "\"canceled\":true,\"compact_revision\":\"5\"}}"),
		-ESTALE);
	assert_string_equal(w.told, "0 * -;1 * -;");
	assert_int_equal(w.items[0].position, 0);
	assert_int_equal(w.items[1].position, 0);
	assert_non_null(strstr(w.why, "compacted"));
}

static void watch__of_a_server_that_went_back__begins_anew(void **state)
{
	struct watch w;

	(void)state;
	watch_begin(&w, 8, 5); /* restored at 4: it would be silent until 8 */
	assert_int_equal(come(&w, 200, CREATED("4", "2")), 0);
	assert_int_equal(come(&w, 200, CREATED("4", "1")), -ESTALE);
	assert_string_equal(w.told, "0 * -;1 * -;");
	assert_int_equal(w.items[0].position, 0);
	assert_int_equal(w.items[1].position, 0);
}

static void watch__that_is_refused__says_whose_turn_it_is(void **state)
{
#define CANCELED(reason)                                                                           \
	RESULT("9", "\"watch_id\":\"-1\",\"created\":true,\"canceled\":true,\"cancel_reason\":"    \
		    "\"" reason "\"")
#define BROKEN(grpc, http, text)                                                                   \
	"{\"error\":{\"grpc_code\":" grpc ",\"http_code\":" http ",\"message\":\"" text            \
	"\",\"http_status\":\"Service Unavailable\"}}"
	static const struct {
		long status;
		const char *line;
		int result;
		const char *why;
	} table[] = {
		{200,
			CANCELED("rpc error: code = InvalidArgument desc = etcdserver: user name "
				 "is empty"),
			-EACCES, "user name is empty"},
		{200,
			CANCELED("rpc error: code = Unauthenticated desc = etcdserver: invalid "
				 "auth token"),
			-EACCES, "invalid auth token"},
		{200,
			CANCELED("rpc error: code = PermissionDenied desc = etcdserver: permission "
				 "denied"),
			-EACCES, "permission denied"},
		{200, CANCELED("mvcc: duplicate watch ID provided on the WatchStream"), -EPROTO,
			"duplicate watch ID"},
		{200, CANCELED("mvcc: watcher range is empty"), -EPROTO, "range is empty"},
		{200, CANCELED("etcdserver: no leader"), -EAGAIN, "no leader"},
		{200, BROKEN("14", "503", "etcdserver: no leader"), -EAGAIN, "no leader"},
		{200, BROKEN("14", "503", "transport is closing"), -EAGAIN, "closing"},
		{200, BROKEN("16", "401", "etcdserver: invalid auth token"), -EACCES, "invalid"},
		{200, BROKEN("11", "400", "odd"), -EPROTO, "odd"},
		{200, BROKEN("11", "7", "odd"), -EAGAIN, "odd"},
		{200, "{\"error\":{\"code\":14,\"message\":\"odd\",\"details\":[]}}", -EAGAIN,
			"odd"},
		{200, "{\"error\":{\"code\":16,\"message\":\"odd\",\"details\":[]}}", -EACCES,
			"odd"},
		{200, "{\"error\":{\"code\":7,\"message\":\"odd\",\"details\":[]}}", -EACCES,
			"odd"},
		{503, BROKEN("14", "503", "etcdserver: no leader"), -EAGAIN, "no leader"},
		{500, "<html>", -EAGAIN, "refuses the watch (500)"},
		{401, "", -EACCES, "(401)"},
		{403, REFUSAL("etcdserver: permission denied", "7"), -EACCES, "permission denied"},
		{400, REFUSAL("etcdserver: user name is empty", "3"), -EACCES, "is empty"},
		{400, REFUSAL("odd", "3"), -EPROTO, "odd"},
		{404, "Not Found\n", -EPROTO, "gateway"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct watch w;

		watch_begin(&w, 5, 6);
		assert_int_equal(come(&w, table[i].status, table[i].line), table[i].result);
		if (!strstr(w.why, table[i].why))
			fail_msg("%zu: %s", i, w.why);
		assert_string_equal(w.told, "");
		assert_int_equal(w.items[0].position, 5); /* it goes on from there */
		assert_int_equal(w.items[1].position, 6);
	}
}

static void watch__what_cannot_be_read__is_not_passed_over(void **state)
{
#define EVENTS(id, events) RESULT("9", "\"watch_id\":" id ",\"events\":" events)
#define EVENT(kv) EVENTS("\"1\"", "[{\"kv\":" kv "}]")
	static const char *const table[] = {
		"{",
		"x",
		"[]",
		"{}",
		"{\"result\":7}",
		"{\"result\":{}}",
		"{\"error\":\"odd\"}",
		"{\"error\":{\"code\":-1}}",
		"{\"error\":{\"message\":7}}",
		CREATED("0", "1"),
		CREATED("9", "0"),
		CREATED("9", "3"),
		CREATED("9", "-1"),
		CREATED("9", "18446744073709551617"),
		CREATED("9223372036854775807", "1"),
		"{\"result\":{\"watch_id\":\"1\",\"created\":true}}",
		RESULT("9", "\"canceled\":true,\"compact_revision\":\"x\""),
		RESULT("9", "\"canceled\":true,\"cancel_reason\":7"),
		EVENTS("\"1\"", "{}"),
		EVENTS("\"1\"", "7"),
		EVENTS("\"1\"", "[7]"),
		EVENTS("\"1\"", "[{}]"),
		EVENT("7"),
		EVENT("{}"),
		EVENT("{\"key\":\"L2FwcC93ZWIueWFtbA==\"}"),
		EVENT("{\"key\":\"L2FwcC93ZWIueWFtbA==\",\"mod_revision\":\"0\"}"),
		EVENT("{\"key\":\"L2FwcC93ZWIueWFtbA==\",\"mod_revision\":\"-1\"}"),
		EVENT("{\"key\":\"L2FwcC93ZWIueWFtbA==\",\"mod_revision\":"
		      "\"9223372036854775807\"}"),
		EVENT("{\"key\":\"L2FwcC93ZWIueWFtbA=\",\"mod_revision\":\"9\"}"),
		EVENT("{\"key\":7,\"mod_revision\":\"9\"}"),
		EVENT("{\"mod_revision\":\"9\"}"),
		EVENT("{\"key\":\"L2FwcA==\",\"mod_revision\":\"9\"}"),
		EVENT("{\"key\":\"L2FwcC93ZWIueWFtbDE=\",\"mod_revision\":\"9\"}"),
		EVENTS("\"1\"", "[{\"type\":7,\"kv\":{\"key\":\"L2FwcC93ZWIueWFtbA==\","
				"\"mod_revision\":\"9\"}}]"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct watch w;

		watch_begin(&w, 5, 6);
		if (come(&w, 200, table[i]) != -EPROTO)
			fail_msg("%zu is taken: %s", i, table[i]);
		assert_true(w.why[0]);
		assert_int_equal(w.items[0].position, 0); /* from now on, and then a pull */
		assert_int_equal(w.items[1].position, 0);
	}
}

static void watch__that_is_created_again_in_the_same_term__goes_on(void **state)
{
	struct watch w;

	(void)state;
	watch_begin(&w, 8, 5);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(come(&w, 200, CREATED("9", "1")), 0);
		assert_int_equal(come(&w, 200, CREATED("9", "2")), 0);
	}
	assert_string_equal(w.told, "");
	assert_int_equal(w.items[0].position, 8);
	assert_int_equal(w.items[1].position, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(build__a_key__asks_for_it_as_it_is_configured),
		cmocka_unit_test(build__a_prefix__asks_up_to_the_name_behind_it),
		cmocka_unit_test(build__without_a_path__is_refused),
		cmocka_unit_test(read__a_key__is_the_document),
		cmocka_unit_test(read__a_prefix__is_a_mapping_of_strings),
		cmocka_unit_test(read__numbers_that_are_no_strings__are_numbers_too),
		cmocka_unit_test(read__not_found_empty_forbidden_unreachable__are_told_apart),
		cmocka_unit_test(read__a_prefix_without_names__is_absent),
		cmocka_unit_test(read__what_lies_beside_the_names__is_not_in_the_document),
		cmocka_unit_test(read__keys_that_no_document_holds__are_named),
		cmocka_unit_test(read__more_keys_than_fit__are_refused_and_not_cut),
		cmocka_unit_test(read__as_many_keys_as_are_asked_for__are_read),
		cmocka_unit_test(read__a_value_of_the_largest_size__fits_and_no_byte_more),
		cmocka_unit_test(read__a_malformed_answer__is_refused),
		cmocka_unit_test(read__an_answer_that_is_cut_anywhere__is_refused),
		cmocka_unit_test(read__why_an_answer_cannot_be_read__has_no_piece_of_it),
		cmocka_unit_test(read__what_is_held__is_the_same_whatever_else_was_written),
		cmocka_unit_test(read__another_value_at_the_held_revision__is_new),
		cmocka_unit_test(read__a_deleted_key_of_a_prefix__is_new_without_a_higher_version),
		cmocka_unit_test(
			read__an_older_revision_of_the_same_cluster__is_refused_unless_forced),
		cmocka_unit_test(read__an_older_revision_of_another_cluster__is_taken_and_noted),
		cmocka_unit_test(read__the_same_from_another_cluster__is_new_and_noted),
		cmocka_unit_test(login__with_user_and_password__asks_for_a_token),
		cmocka_unit_test(login__each_answer__is_a_token_or_says_why_not),
		cmocka_unit_test(watch__of_a_single_key__brings_what_a_pull_would_bring),
		cmocka_unit_test(watch__of_several__is_one_request),
		cmocka_unit_test(watch__a_recorded_one__tells_each_change_and_where_it_stands),
		cmocka_unit_test(watch__a_line_beyond_the_bound__begins_anew),
		cmocka_unit_test(watch__a_fragment__may_be_followed_by_the_same_revision),
		cmocka_unit_test(watch__from_compacted_revisions__begins_anew),
		cmocka_unit_test(watch__of_a_server_that_went_back__begins_anew),
		cmocka_unit_test(watch__that_is_refused__says_whose_turn_it_is),
		cmocka_unit_test(watch__what_cannot_be_read__is_not_passed_over),
		cmocka_unit_test(watch__that_is_created_again_in_the_same_term__goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

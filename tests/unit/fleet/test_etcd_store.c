/* Requests to etcd's gateway beside pulls: what is written, and what is made of each answer. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fleet/etcd_store.h"
#include "settings/settings.h"

#define NOT_ETCD "the answer is not one of etcd's: "

static struct settings_server server = {.kind = SETTINGS_ETCD};
static const struct kind_place place = {.server = &server, .base = "http://etcd", .path = "/a"};
static char why[FILE_WHY];
static enum kind_cause cause;

/* What is made of an answer; the caller frees it when the result is 0. */
static int read_answer(enum http_client_result result, long status, const char *text,
	struct etcd_store_answer *ret)
{
	static struct http_client_response r;
	int e;

	memset(&r, 0, sizeof(r));
	r.result = result;
	r.status = status;
	r.framed = true;
	snprintf(r.message, sizeof(r.message), "%s", result ? "connection refused" : "");
	buffer_init(&r.body, 4096);
	if (text)
		assert_int_equal(buffer_append_string(&r.body, text), 0);
	why[0] = '\0';
	memset(ret, 0, sizeof(*ret));
	e = etcd_store_read(&place, &r, ret, &cause, why);
	buffer_fini(&r.body);
	return e;
}

static void compare__writes_what_is_tested(void **state)
{
	static const struct {
		const struct etcd_store_test *test;
		uint64_t revision;
		const char *text;
	} table[] = {
		{&etcd_store_absent, 0,
			"{\"key\":\"YWI=\",\"target\":\"CREATE\",\"result\":\"EQUAL\","
			"\"create_revision\":\"0\"}"},
		{&etcd_store_present, 0,
			"{\"key\":\"YWI=\",\"target\":\"CREATE\",\"result\":\"GREATER\","
			"\"create_revision\":\"0\"}"},
		{&etcd_store_unchanged, 18446744073709551615u,
			"{\"key\":\"YWI=\",\"target\":\"MOD\",\"result\":\"EQUAL\","
			"\"mod_revision\":\"18446744073709551615\"}"},
	};
	struct buffer b;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		buffer_init(&b, 1000);
		assert_int_equal(etcd_store_compare(&b, "ab", table[i].test, table[i].revision), 0);
		assert_string_equal(b.data, table[i].text);
		buffer_fini(&b);
	}
	buffer_init(&b, 10);
	assert_int_equal(etcd_store_compare(&b, "ab", &etcd_store_absent, 0), -EMSGSIZE);
	buffer_fini(&b);
}

static void answer__of_etcd__has_its_header(void **state)
{
	static const char *const texts[] = {
		"{\"header\":{\"cluster_id\":\"7\",\"revision\":\"42\"},\"count\":\"3\"}",
		"{\"result\":{\"header\":{\"cluster_id\":7,\"revision\":42},\"count\":3}}",
		"{\"error\":null,\"result\":{\"header\":{\"cluster_id\":\"7\",\"revision\":\"42\"},"
		"\"count\":\"3\"}}",
	};
	struct etcd_store_answer a;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		cause = KIND_CAUSE_ANSWER;
		assert_int_equal(read_answer(HTTP_CLIENT_OK, 200, texts[i], &a), 0);
		assert_int_equal(cause, KIND_CAUSE_NONE);
		assert_int_equal(a.cluster, 7);
		assert_int_equal(a.revision, 42);
		assert_int_equal(etcd_store_number(a.root, "count"), 3);
		etcd_store_answer_fini(&a);
		assert_null(a.json);
		assert_null(a.root);
	}
}

static void answer__that_is_not_etcds__says_so(void **state)
{
	static const struct {
		const char *text, *why;
	} table[] = {
		{NULL, NOT_ETCD "it is not JSON"},
		{"", NOT_ETCD "it is not JSON"},
		{"<html>", NOT_ETCD "it is not JSON"},
		{"{}", NOT_ETCD "check the urls of the server"},
		{"[]", NOT_ETCD "it is not JSON"},
		{"{\"header\":{\"revision\":\"42\"}}", NOT_ETCD "check the urls of the server"},
		{"{\"header\":{\"cluster_id\":\"x\"}}", NOT_ETCD "check the urls of the server"},
		{"{\"header\":7}", NOT_ETCD "check the urls of the server"},
	};
	struct etcd_store_answer a;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		assert_int_equal(read_answer(HTTP_CLIENT_OK, 200, table[i].text, &a), -EIO);
		assert_string_equal(why, table[i].why);
		assert_int_equal(cause, KIND_CAUSE_ANSWER);
		assert_null(a.json);
	}
}

static void answer__with_an_error_in_the_stream__is_that_error(void **state)
{
	static const struct {
		const char *error;
		int result;
		enum kind_cause cause;
		const char *why;
	} table[] = {
		{"{\"message\":\"etcdserver: requested lease not found\",\"http_code\":404}",
			-ESTALE, KIND_CAUSE_ANSWER,
			"the server says: etcdserver: requested lease not found"},
		{"{\"message\":\"etcdserver: mvcc: required revision has been compacted\"}",
			-ESTALE, KIND_CAUSE_ANSWER,
			"the server says: etcdserver: mvcc: required revision has been compacted"},
		{"{\"message\":\"etcdserver: invalid auth token\",\"http_code\":401}", -EACCES,
			KIND_CAUSE_FORBIDDEN, "the server says: etcdserver: invalid auth token"},
		{"{\"message\":\"etcdserver: user name is empty\",\"http_code\":400}", -EACCES,
			KIND_CAUSE_ANSWER, "the server says: etcdserver: user name is empty"},
		{"{\"message\":\"etcdserver: Permission Denied\",\"http_code\":\"500\"}", -EIO,
			KIND_CAUSE_FORBIDDEN, "the server says: etcdserver: Permission Denied"},
		{"{\"message\":\"no\",\"http_code\":403}", -EIO, KIND_CAUSE_FORBIDDEN,
			"the server says: no"},
		{"{\"message\":\"no leader\",\"http_code\":503}", -EIO, KIND_CAUSE_UNREACHABLE,
			"the server says: no leader"},
		{"{\"message\":\"odd\",\"http_code\":504}", -EIO, KIND_CAUSE_ANSWER,
			"the server says: odd"},
		{"\"context canceled\"", -EIO, KIND_CAUSE_ANSWER,
			"the server says: context canceled"},
		{"{}", -EIO, KIND_CAUSE_ANSWER, "the server says: an error"},
		{"7", -EIO, KIND_CAUSE_ANSWER, "the server says: an error"},
		{"\"\"", -EIO, KIND_CAUSE_ANSWER, "the server says: an error"},
	};
	struct etcd_store_answer a;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		char text[512];

		snprintf(text, sizeof(text),
			"{\"error\":%s,\"header\":{\"cluster_id\":\"7\",\"revision\":\"42\"}}",
			table[i].error);
		assert_int_equal(read_answer(HTTP_CLIENT_OK, 200, text, &a), table[i].result);
		assert_string_equal(why, table[i].why);
		assert_int_equal(cause, table[i].cause);
		assert_null(a.json);
	}
}

static void answer__that_is_none__is_told_apart(void **state)
{
	static const struct {
		enum http_client_result result;
		long status;
		const char *text;
		int expected;
		enum kind_cause cause;
		const char *why;
	} table[] = {
		{HTTP_CLIENT_NETWORK, 0, NULL, -EIO, KIND_CAUSE_UNREACHABLE, "connection refused"},
		{HTTP_CLIENT_TOO_LARGE, 200, NULL, -EMSGSIZE, KIND_CAUSE_ANSWER, ""},
		{HTTP_CLIENT_NETWORK, 404, "requested lease not found", -EIO,
			KIND_CAUSE_UNREACHABLE, "connection refused"},
		{HTTP_CLIENT_OK, 404,
			"{\"error\":\"etcdserver: requested lease not found\",\"code\":5}", -ESTALE,
			KIND_CAUSE_ANSWER, "the lease or revision does not exist any more"},
		{HTTP_CLIENT_OK, 400, "{\"message\":\"required revision has been compacted\"}",
			-ESTALE, KIND_CAUSE_ANSWER,
			"the lease or revision does not exist any more"},
		{HTTP_CLIENT_OK, 401, "{\"error\":\"etcdserver: invalid auth token\"}", -EACCES,
			KIND_CAUSE_FORBIDDEN, ""},
		{HTTP_CLIENT_OK, 500, NULL, -EIO, KIND_CAUSE_ANSWER, "500"},
	};
	struct etcd_store_answer a;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		int r = read_answer(table[i].result, table[i].status, table[i].text, &a);

		if (r != table[i].expected || !strstr(why, table[i].why) || cause != table[i].cause)
			fail_msg("%zu: %d, cause %d, %s", i, r, cause, why);
		assert_int_not_equal(why[0], '\0');
		assert_null(a.json);
	}
}

static void member__of_an_answer__is_a_number_or_bytes(void **state)
{
	struct etcd_store_answer a;
	struct buffer out;

	(void)state;
	assert_int_equal(
		read_answer(HTTP_CLIENT_OK, 200,
			"{\"header\":{\"cluster_id\":\"7\"},\"a\":\"18446744073709551615\","
			"\"b\":12,\"c\":\"-1\",\"d\":\"x\",\"key\":\"YWI=\",\"bad\":\"?\"}",
			&a),
		0);
	assert_int_equal(a.revision, 0);
	assert_true(etcd_store_number(a.root, "a") == UINT64_MAX);
	assert_int_equal(etcd_store_number(a.root, "b"), 12);
	assert_int_equal(etcd_store_number(a.root, "c"), 0);
	assert_int_equal(etcd_store_number(a.root, "d"), 0);
	assert_int_equal(etcd_store_number(a.root, "none"), 0);
	buffer_init(&out, 2);
	assert_int_equal(etcd_store_decode(a.root, "key", &out), 0);
	assert_int_equal(etcd_store_decode(a.root, "key", &out), 0); /* not behind the other */
	assert_string_equal(out.data, "ab");
	assert_int_equal(
		etcd_store_decode(a.root, "none", &out), 0); /* as protobuf leaves it out */
	assert_int_equal(out.len, 0);
	assert_int_equal(etcd_store_decode(a.root, "b", &out), -EINVAL);
	assert_int_equal(etcd_store_decode(a.root, "bad", &out), -EINVAL);
	buffer_fini(&out);
	etcd_store_answer_fini(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compare__writes_what_is_tested),
		cmocka_unit_test(answer__of_etcd__has_its_header),
		cmocka_unit_test(answer__that_is_not_etcds__says_so),
		cmocka_unit_test(answer__with_an_error_in_the_stream__is_that_error),
		cmocka_unit_test(answer__that_is_none__is_told_apart),
		cmocka_unit_test(member__of_an_answer__is_a_number_or_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

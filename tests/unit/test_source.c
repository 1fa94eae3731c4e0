/* The HTTP source: what is asked for, what is taken, what is refused and how it is said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../agent/source.h"

static char url[64] = "http://example/web.yaml", none[1], quoted[] = "\"abc\"";
static char date[] = "Sat, 21 Nov 2026 00:00:00 GMT";
static const struct source_item item = {.path = "/web.yaml", .timeout_ms = 10000};
static struct settings_server server = {
	.connect_timeout_ms = 3000, .max_bytes = SETTINGS_MAX_BYTES_DEFAULT};
static struct credentials nothing;

static void build(const struct part *held, struct source_request *r)
{
	source_build(&item, &server, "http://example", held, &nothing, r);
}

static void build__with_a_held_version_of_this_url__is_conditional(void **state)
{
	struct part held = {.url = url, .etag = quoted, .last_modified = date};
	struct source_request r;

	(void)state;
	build(&held, &r);
	assert_string_equal(r.request.headers[0], "If-None-Match: \"abc\"");
	assert_string_equal(
		r.request.headers[1], "If-Modified-Since: Sat, 21 Nov 2026 00:00:00 GMT");
	assert_null(r.request.headers[2]);
	assert_string_equal(r.request.url, url);
	assert_true(r.conditional);
	assert_true(r.request.max_bytes == SETTINGS_MAX_BYTES_DEFAULT);
	assert_int_equal(r.request.timeout_ms, 10000);
	assert_int_equal(r.request.connect_timeout_ms, 3000);
}

static void build__with_one_name_of_the_version__asks_by_that(void **state)
{
	struct part held = {.url = url, .etag = none, .last_modified = date};
	struct source_request r;

	(void)state;
	build(&held, &r);
	assert_string_equal(
		r.request.headers[0], "If-Modified-Since: Sat, 21 Nov 2026 00:00:00 GMT");
	assert_null(r.request.headers[1]);
	assert_true(r.conditional);
}

static void build__with_nothing_or_another_url_held__is_not_conditional(void **state)
{
	char elsewhere[] = "http://elsewhere/web.yaml";
	struct part held = {.url = elsewhere, .etag = quoted, .last_modified = none};
	struct source_request r;

	(void)state;
	build(NULL, &r);
	assert_null(r.request.headers[0]);
	build(&held, &r);
	assert_null(r.request.headers[0]);
	held.url = url;
	held.etag = none;
	build(&held, &r);
	assert_null(r.request.headers[0]);
	held.etag = quoted;
	held.absent = true; /* there are no bytes that a 304 could stand for */
	build(&held, &r);
	assert_null(r.request.headers[0]);
	assert_false(r.conditional);
}

static void build__with_credentials__puts_them_behind_the_conditions(void **state)
{
	struct part held = {.url = url, .etag = quoted, .last_modified = date};
	struct credentials c = {.count = 1};
	struct source_item hasty = item;
	struct source_request r;

	(void)state;
	c.lines[0] = strdup("Authorization: Bearer x");
	hasty.timeout_ms = 500;
	source_build(&hasty, &server, "http://example", &held, &c, &r);
	assert_string_equal(r.request.headers[2], "Authorization: Bearer x");
	assert_null(r.request.headers[3]);
	assert_int_equal(r.request.connect_timeout_ms, 500); /* within the whole */
	free(c.lines[0]);
}

static struct transport_response answer(long status, const char *type, const char *body)
{
	struct transport_response r = {.status = status, .framed = true};

	snprintf(r.content_type, sizeof(r.content_type), "%s", type);
	buffer_init(&r.body, 1000);
	buffer_append_string(&r.body, body);
	return r;
}

static void judge__each_answer__gets_its_verdict(void **state)
{
	static const struct {
		long status;
		const char *type, *encoding, *body;
		bool framed, conditional;
		enum source_verdict verdict;
		const char *why;
	} table[] = {
		{200, "", "", "a: 1\n", true, false, SOURCE_NEW, ""},
		{200, "", "gzip", "a: 1\n", true, true, SOURCE_NEW, ""},
		{200, "", "identity", "a: 1\n", true, true, SOURCE_NEW, ""},
		{200, "", "br", "a: 1\n", true, true, SOURCE_FAILED, "'br'"},
		{200, "", "", "a: 1\n", false, false, SOURCE_FAILED, "without a length"},
		{200, "", "", "", true, false, SOURCE_FAILED, "empty"},
		{200, "text/html", "", "<html>", true, false, SOURCE_FAILED, "HTML page"},
		{200, "application/xhtml+xml", "", "<html>", true, false, SOURCE_FAILED,
			"HTML page"},
		{304, "", "", "", true, true, SOURCE_SAME, ""},
		{304, "", "", "", true, false, SOURCE_FAILED, "nothing was asked"},
		{204, "", "", "", true, true, SOURCE_FAILED, "204"},
		{206, "", "", "x", true, true, SOURCE_FAILED, "206"},
		{301, "", "", "x", true, true, SOURCE_FAILED, "final address"},
		{401, "", "", "x", true, true, SOURCE_FAILED, "credentials"},
		{403, "", "", "x", true, true, SOURCE_FAILED, "forbids"},
		{404, "", "", "x", true, true, SOURCE_FAILED, "check the path"},
		{429, "", "", "x", true, true, SOURCE_FAILED, "overloaded"},
		{503, "", "", "x", true, true, SOURCE_FAILED, "503"},
		{599, "", "", "x", true, true, SOURCE_FAILED, "the server failed"},
		{999, "", "", "x", true, true, SOURCE_FAILED, "999"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct transport_response r = answer(table[i].status, table[i].type, table[i].body);
		enum settings_type type;
		char why[FILE_WHY] = "";

		r.framed = table[i].framed;
		snprintf(r.content_encoding, sizeof(r.content_encoding), "%s", table[i].encoding);
		assert_int_equal(source_judge(&item, &r, table[i].conditional, &type, why),
			table[i].verdict);
		assert_non_null(strstr(why, table[i].why));
		buffer_fini(&r.body);
	}
}

static void judge__of_an_optional_document__takes_404_and_410_as_absent(void **state)
{
	static const struct {
		long status;
		enum source_verdict verdict;
	} table[] = {
		{404, SOURCE_ABSENT},
		{410, SOURCE_ABSENT},
		{403, SOURCE_FAILED},
		{500, SOURCE_FAILED},
		{204, SOURCE_FAILED},
		{200, SOURCE_NEW},
		{304, SOURCE_SAME},
	};
	struct source_item optional = item;

	(void)state;
	optional.optional = true;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct transport_response r = answer(table[i].status, "", "a: 1\n");
		enum settings_type type;
		char why[FILE_WHY] = "";

		assert_int_equal(source_judge(&optional, &r, true, &type, why), table[i].verdict);
		assert_int_equal(why[0] != '\0', table[i].verdict == SOURCE_FAILED);
		buffer_fini(&r.body);
	}
}

static void judge__of_a_transfer_that_failed__tells_timeouts_from_the_rest(void **state)
{
	enum settings_type type;
	char why[FILE_WHY];

	(void)state;
	for (int result = TRANSPORT_TIMEOUT; result < TRANSPORT_RESULTS; result++) {
		struct transport_response r = {
			.result = (enum transport_result)result, .message = "the reason"};

		assert_int_equal(source_judge(&item, &r, true, &type, why),
			result == TRANSPORT_TIMEOUT ? SOURCE_TIMEOUT : SOURCE_FAILED);
		assert_string_equal(why, "the reason");
	}
}

static void judge__the_type__is_said_by_item_then_path_then_server(void **state)
{
	static const struct {
		enum settings_type configured;
		const char *url, *type;
		enum settings_type is;
	} table[] = {
		{SETTINGS_TYPE_AUTO, "/a.json", "application/yaml", SETTINGS_TYPE_JSON},
		{SETTINGS_TYPE_AUTO, "/a.JSON?v=1.yaml", "", SETTINGS_TYPE_JSON},
		{SETTINGS_TYPE_AUTO, "/a.yml", "application/json", SETTINGS_TYPE_YAML},
		{SETTINGS_TYPE_AUTO, "/a", "application/json", SETTINGS_TYPE_JSON},
		{SETTINGS_TYPE_AUTO, "/a", "application/problem+json", SETTINGS_TYPE_JSON},
		{SETTINGS_TYPE_AUTO, "/a", "application/octet-stream", SETTINGS_TYPE_YAML},
		{SETTINGS_TYPE_BYTES, "/a.json", "application/json", SETTINGS_TYPE_BYTES},
		{SETTINGS_TYPE_BYTES, "/a.html", "text/html", SETTINGS_TYPE_BYTES},
		{SETTINGS_TYPE_YAML, "/a.json", "application/json", SETTINGS_TYPE_YAML},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct source_item typed = {
			.path = table[i].url, .type = table[i].configured, .timeout_ms = 1000};
		struct transport_response r = answer(200, table[i].type, "x");
		enum settings_type type = SETTINGS_TYPE_AUTO;
		char why[FILE_WHY];

		assert_int_equal(source_judge(&typed, &r, false, &type, why), SOURCE_NEW);
		assert_int_equal(type, table[i].is);
		buffer_fini(&r.body);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(build__with_a_held_version_of_this_url__is_conditional),
		cmocka_unit_test(build__with_one_name_of_the_version__asks_by_that),
		cmocka_unit_test(build__with_credentials__puts_them_behind_the_conditions),
		cmocka_unit_test(build__with_nothing_or_another_url_held__is_not_conditional),
		cmocka_unit_test(judge__each_answer__gets_its_verdict),
		cmocka_unit_test(judge__of_an_optional_document__takes_404_and_410_as_absent),
		cmocka_unit_test(judge__of_a_transfer_that_failed__tells_timeouts_from_the_rest),
		cmocka_unit_test(judge__the_type__is_said_by_item_then_path_then_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

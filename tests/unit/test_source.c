/* The HTTP source: what is asked for, what is taken, what is refused and how it is said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../agent/source.h"

static char url[64] = "http://example/web.yaml", path[64] = "/web.yaml";
static struct settings_config config = {.path = path, .timeout_ms = 10000};
static struct settings_server server = {
	.connect_timeout_ms = 3000, .max_bytes = SETTINGS_MAX_BYTES_DEFAULT};
static struct credentials nothing;

static void build(const struct version *held, struct source_request *r)
{
	source_build(&config, &server, "http://example", held, &nothing, r);
}

static void build__with_a_held_version_of_this_url__is_conditional(void **state)
{
	struct version held = {.etag = "\"abc\"", .last_modified = "Sat, 21 Nov 2026 00:00:00 GMT"};
	struct source_request r;

	(void)state;
	held.url = url;
	build(&held, &r);
	assert_string_equal(r.request.headers[0], "If-None-Match: \"abc\"");
	assert_string_equal(
		r.request.headers[1], "If-Modified-Since: Sat, 21 Nov 2026 00:00:00 GMT");
	assert_null(r.request.headers[2]);
	assert_string_equal(r.request.url, url);
	assert_true(r.request.max_bytes == SETTINGS_MAX_BYTES_DEFAULT);
}

static void build__with_nothing_or_another_url_held__is_not_conditional(void **state)
{
	char elsewhere[] = "http://elsewhere/web.yaml";
	struct version held = {.etag = "\"abc\"", .url = elsewhere};
	struct source_request r;

	(void)state;
	build(NULL, &r);
	assert_null(r.request.headers[0]);
	build(&held, &r);
	assert_null(r.request.headers[0]);
	held.url = url;
	held.etag[0] = '\0';
	build(&held, &r);
	assert_null(r.request.headers[0]);
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
		assert_int_equal(source_judge(&config, &r, table[i].conditional, &type, why),
			table[i].verdict);
		assert_non_null(strstr(why, table[i].why));
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

		assert_int_equal(source_judge(&config, &r, true, &type, why),
			result == TRANSPORT_TIMEOUT ? SOURCE_TIMEOUT : SOURCE_FAILED);
		assert_string_equal(why, "the reason");
	}
}

static void judge__the_type__is_said_by_config_then_path_then_server(void **state)
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
		struct settings_config c = config;
		struct transport_response r = answer(200, table[i].type, "x");
		enum settings_type type = SETTINGS_TYPE_AUTO;
		char why[FILE_WHY], u[64];

		snprintf(u, sizeof(u), "%s", table[i].url);
		c.path = u;
		c.type = table[i].configured;
		assert_int_equal(source_judge(&c, &r, false, &type, why), SOURCE_NEW);
		assert_int_equal(type, table[i].is);
		buffer_fini(&r.body);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(build__with_a_held_version_of_this_url__is_conditional),
		cmocka_unit_test(build__with_nothing_or_another_url_held__is_not_conditional),
		cmocka_unit_test(judge__each_answer__gets_its_verdict),
		cmocka_unit_test(judge__of_a_transfer_that_failed__tells_timeouts_from_the_rest),
		cmocka_unit_test(judge__the_type__is_said_by_config_then_path_then_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

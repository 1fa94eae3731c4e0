/* The HTTP source: what is asked for, what is taken, what is refused, by which cause, and how it is
 * said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pull/kinds/answer.h"

static char url[64] = "http://example/web.yaml", none[1], quoted[] = "\"abc\"";
static char date[] = "Sat, 21 Nov 2026 00:00:00 GMT";
static const struct settings_server server = {.kind = SETTINGS_HTTP},
				    files = {.kind = SETTINGS_FILE},
				    other = {.kind = SETTINGS_NACOS};
static const struct kind_place web = {
	.server = &server, .base = "http://example", .path = "/web.yaml", .max_bytes = 1000};

/* ---- a kind with a verdict of its own ---- */

static enum kind_verdict verdict_of_its_own;

static enum kind_verdict read_answer(const struct kind_place *place,
	const struct http_client_response *response, struct kind_answer *ret)
{
	(void)place, (void)response;
	kind_fail(ret, KIND_CAUSE_OLDER, "in its own words");
	return verdict_of_its_own;
}

/* In place of the program's. */
const struct kind kind_nacos = {.name = "fake", .read = read_answer};

/* ---- what is asked for ---- */

/* To be finished by kind_request_fini(). */
static struct kind_request build(const struct part *held, bool same_address)
{
	struct kind_place place = web;
	struct kind_request r;
	char why[FILE_WHY];

	place.held = held;
	place.same_address = same_address;
	kind_request_init(&r);
	assert_int_equal(kind_of(&server)->build(&place, &r, why), 0);
	assert_string_equal(r.url.data, url);
	assert_string_equal(r.method, "GET");
	assert_int_equal(r.body.len, 0);
	assert_int_equal(r.hold_ms, 0);
	assert_true(r.basic);
	return r;
}

static void build__with_a_held_version_of_this_url__is_conditional(void **state)
{
	struct part held = {.url = url, .etag = quoted, .last_modified = date};
	struct kind_request r = build(&held, true);

	(void)state;
	assert_int_equal(r.header_count, 2);
	assert_string_equal(r.headers[0], "If-None-Match: \"abc\"");
	assert_string_equal(r.headers[1], "If-Modified-Since: Sat, 21 Nov 2026 00:00:00 GMT");
	assert_true(r.conditional);
	kind_request_fini(&r);
}

static void build__with_one_name_of_the_version__asks_by_that(void **state)
{
	struct part held = {.url = url, .etag = none, .last_modified = date};
	struct kind_request r = build(&held, true);

	(void)state;
	assert_int_equal(r.header_count, 1);
	assert_string_equal(r.headers[0], "If-Modified-Since: Sat, 21 Nov 2026 00:00:00 GMT");
	assert_true(r.conditional);
	kind_request_fini(&r);
}

static void build__with_nothing_or_another_url_held__is_not_conditional(void **state)
{
	struct part held = {.url = url, .etag = quoted, .last_modified = none},
		    nameless = {.url = url, .etag = none, .last_modified = none};
	const struct part *const parts[] = {NULL, &held, &nameless};
	static const bool same[] = {false, false, true};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct kind_request r = build(parts[i], same[i]);

		assert_int_equal(r.header_count, 0);
		assert_false(r.conditional);
		kind_request_fini(&r);
	}
}

static void build__with_a_held_version__is_never_conditional_when_forced(void **state)
{
	struct part held = {.url = url, .etag = quoted, .last_modified = date};
	const struct settings_server s3 = {.kind = SETTINGS_S3, .region = none},
				     apollo = {.kind = SETTINGS_APOLLO};
	const struct {
		const struct settings_server *server;
		const char *path;
	} table[] = {
		{&server, "/web.yaml"},
		{&files, "/web.yaml"},
		{&s3, "/bucket/web.yaml"},
		{&apollo, "/app/default/application"},
	};

	(void)state;
	for (int i = 0; i < 8; i++) {
		struct kind_place place = web;
		struct kind_request r;
		char why[FILE_WHY];

		place.server = table[i / 2].server;
		place.path = table[i / 2].path;
		place.held = &held;
		place.same_address = true;
		place.forced = i % 2;
		kind_request_init(&r);
		assert_int_equal(kind_of(place.server)->build(&place, &r, why), 0);
		assert_int_equal(r.conditional, !place.forced);
		for (size_t h = 0; place.forced && h < r.header_count; h++)
			assert_null(strstr(r.headers[h], "If-"));
		if (place.forced)
			assert_null(strstr(r.url.data, "releaseKey"));
		kind_request_fini(&r);
	}
}

static void build__with_an_etag_of_no_such_form__does_not_send_it_back(void **state)
{
	static const struct {
		const char *etag;
		bool sent;
	} table[] = {
		{"\"abc\"", true},
		{"W/\"abc\"", true},
		{"\"\"", true},
		{"\"!#~\xc3\xa4\xff\"", true},
		{"\"a,b\"", true},
		{"\"a'b\\c\"", true},
		{"*", false},
		{"", false},
		{"abc", false},
		{"\"abc", false},
		{"abc\"", false},
		{"\"", false},
		{"W/", false},
		{"W/\"", false},
		{"W/abc", false},
		{"w/\"abc\"", false},
		{"\"a\"b\"", false},
		{"\"a b\"", false},
		{"\"a\tb\"", false},
		{"\"a\rX: b\"", false},
		{"\"a\x7f\"", false},
		{"\"a\", \"b\"", false},
		{" \"a\"", false},
		{"'abc'", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		char etag[64], want[128];
		struct part held = {.url = url, .etag = etag, .last_modified = none};
		struct kind_request r;

		snprintf(etag, sizeof(etag), "%s", table[i].etag);
		snprintf(want, sizeof(want), "If-None-Match: %s", table[i].etag);
		assert_int_equal(kind_is_etag(etag), table[i].sent);
		r = build(&held, true);
		assert_int_equal(r.header_count, table[i].sent);
		assert_int_equal(r.conditional, table[i].sent);
		if (table[i].sent)
			assert_string_equal(r.headers[0], want);
		kind_request_fini(&r);
	}
}

static void build__of_a_path__is_put_behind_the_address_as_it_is(void **state)
{
	static const struct {
		const struct settings_server *server;
		const char *base, *path, *url;
	} table[] = {
		{&server, "https://a:8443/base", "/a%20b?x=1&y=/",
			"https://a:8443/base/a%20b?x=1&y=/"},
		{&server, "http://a", "", "http://a"},
		{&server, "http://a", "?x", "http://a?x"},
		{&files, "file://", "/etc/web.yaml", "file:///etc/web.yaml"},
		{&files, "file:///mnt/x", "/a%b c.yaml", "file:///mnt/x/a%b c.yaml"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct kind_place place = {
			.server = table[i].server, .base = table[i].base, .path = table[i].path};
		struct kind_request r;
		char why[FILE_WHY];

		kind_request_init(&r);
		assert_int_equal(kind_of(place.server)->build(&place, &r, why), 0);
		assert_string_equal(r.url.data, table[i].url);
		assert_int_equal(r.url.len, strlen(table[i].url));
		kind_request_fini(&r);
	}
	assert_true(kind_of(&files)->local);
	assert_false(kind_of(&server)->local);
}

/* ---- what comes ---- */

static struct http_client_response answer(long status, const char *type, const char *body)
{
	struct http_client_response r = {.status = status, .framed = true};

	snprintf(r.content_type, sizeof(r.content_type), "%s", type);
	buffer_init(&r.body, 1000);
	buffer_append_string(&r.body, body);
	return r;
}

/* Checks; the body is taken over as it came, if it is new. */
static enum kind_verdict check(const struct kind_place *place, struct http_client_response *r,
	bool conditional, struct kind_answer *ret, enum kind_cause *ret_cause, char why[FILE_WHY])
{
	enum kind_verdict verdict;

	kind_answer_init(ret, place->max_bytes);
	ret->cause = KIND_CAUSE_TIMEOUT; /* whatever it was before */
	verdict = answer_check(place, r, conditional, ret);
	*ret_cause = ret->cause;
	memcpy(why, ret->why, FILE_WHY);
	if (verdict == KIND_NEW) {
		assert_int_equal(ret->body.len, r->body.len);
		assert_memory_equal(ret->body.data, r->body.data, r->body.len);
		assert_int_not_equal(ret->type, SETTINGS_TYPE_AUTO);
	} else {
		assert_int_equal(ret->body.len, 0);
	}
	buffer_fini(&r->body);
	kind_answer_fini(ret);
	return verdict;
}

static void judge__each_answer__gets_its_verdict(void **state)
{
	static const struct {
		long status;
		const char *type, *encoding, *body;
		bool framed, conditional;
		enum kind_verdict verdict;
		enum kind_cause cause;
		const char *why;
	} table[] = {
		{200, "", "", "a: 1\n", true, false, KIND_NEW, KIND_CAUSE_NONE, ""},
		{200, "", "gzip", "a: 1\n", true, true, KIND_NEW, KIND_CAUSE_NONE, ""},
		{200, "", "X-GZip", "a: 1\n", true, true, KIND_NEW, KIND_CAUSE_NONE, ""},
		{200, "", "identity", "a: 1\n", true, true, KIND_NEW, KIND_CAUSE_NONE, ""},
		{200, "", "br", "a: 1\n", true, true, KIND_FAILED, KIND_CAUSE_ANSWER,
			"an encoding that was not asked for"},
		{200, "", "", "a: 1\n", false, false, KIND_FAILED, KIND_CAUSE_ANSWER,
			"without a length"},
		{200, "", "", "", true, false, KIND_FAILED, KIND_CAUSE_EMPTY, "empty"},
		{200, "", "", "", false, false, KIND_FAILED, KIND_CAUSE_ANSWER, "without a length"},
		{200, "text/html", "", "<html>", true, false, KIND_FAILED, KIND_CAUSE_ANSWER,
			"HTML page"},
		{200, "application/xhtml+xml", "", "<html>", true, false, KIND_FAILED,
			KIND_CAUSE_ANSWER, "HTML page"},
		{304, "", "", "", true, true, KIND_SAME, KIND_CAUSE_NONE, ""},
		{304, "", "", "", true, false, KIND_FAILED, KIND_CAUSE_ANSWER, "nothing was asked"},
		{100, "", "", "", true, true, KIND_FAILED, KIND_CAUSE_ANSWER, "half-way"},
		{204, "", "", "", true, true, KIND_FAILED, KIND_CAUSE_ANSWER, "204"},
		{206, "", "", "x", true, true, KIND_FAILED, KIND_CAUSE_ANSWER, "206"},
		{301, "", "", "x", true, true, KIND_FAILED, KIND_CAUSE_ANSWER, "final address"},
		{305, "", "", "x", true, true, KIND_FAILED, KIND_CAUSE_ANSWER, "final address"},
		{400, "", "", "x", true, true, KIND_FAILED, KIND_CAUSE_ANSWER,
			"a client certificate (tls:)"},
		{401, "", "", "x", true, true, KIND_FAILED, KIND_CAUSE_FORBIDDEN, "set auth:"},
		{403, "", "", "x", true, true, KIND_FAILED, KIND_CAUSE_FORBIDDEN, "forbids"},
		{404, "", "", "x", true, true, KIND_ABSENT, KIND_CAUSE_NOT_FOUND, "check the path"},
		{410, "", "", "x", true, true, KIND_ABSENT, KIND_CAUSE_NOT_FOUND, "removed"},
		{421, "", "", "x", true, true, KIND_FAILED, KIND_CAUSE_ANSWER,
			"does not go by the name in the address"},
		{429, "", "", "x", true, true, KIND_FAILED, KIND_CAUSE_OVERLOADED, "overloaded"},
		{500, "", "", "x", true, true, KIND_FAILED, KIND_CAUSE_ANSWER, "failed"},
		{502, "", "", "x", true, true, KIND_FAILED, KIND_CAUSE_UNREACHABLE, "502"},
		{503, "", "", "x", true, true, KIND_FAILED, KIND_CAUSE_OVERLOADED, "503"},
		{504, "", "", "x", true, true, KIND_FAILED, KIND_CAUSE_UNREACHABLE, "504"},
		{599, "", "", "x", true, true, KIND_FAILED, KIND_CAUSE_ANSWER, "the server failed"},
		{999, "", "", "x", true, true, KIND_FAILED, KIND_CAUSE_ANSWER, "999"},
		{0, "", "", "x", true, true, KIND_FAILED, KIND_CAUSE_ANSWER, "answered 0"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct http_client_response r =
			answer(table[i].status, table[i].type, table[i].body);
		struct kind_answer a;
		enum kind_cause cause;
		char why[FILE_WHY];

		r.framed = table[i].framed;
		snprintf(r.content_encoding, sizeof(r.content_encoding), "%s", table[i].encoding);
		assert_int_equal(
			check(&web, &r, table[i].conditional, &a, &cause, why), table[i].verdict);
		assert_int_equal(cause, table[i].cause);
		assert_non_null(strstr(why, table[i].why));
		assert_int_equal(why[0] != '\0', cause != KIND_CAUSE_NONE);
	}
}

static void judge__of_a_redirect__names_where_it_leads_without_the_query(void **state)
{
	struct http_client_response r = answer(308, "", "");
	struct kind_answer a;
	enum kind_cause cause;
	char why[FILE_WHY];

	(void)state;
	snprintf(r.location, sizeof(r.location), "https://new/web.yaml?token=1");
	assert_int_equal(check(&web, &r, false, &a, &cause, why), KIND_FAILED);
	assert_string_equal(why,
		"the server answered 308: a redirect is not followed: put the final address into "
		"the configuration (https://new/web.yaml)");
	snprintf(r.location, sizeof(r.location), "https://user:secret@new/web.yaml");
	assert_int_equal(check(&web, &r, false, &a, &cause, why), KIND_FAILED);
	assert_string_equal(why,
		"the server answered 308: a redirect is not followed: put the final address into "
		"the configuration");
}

static void judge__of_a_304_with_another_etag__asks_for_the_whole(void **state)
{
	static const struct {
		const char *held, *etag;
		enum kind_verdict verdict;
	} table[] = {
		{"\"1\"", "", KIND_SAME},
		{"\"1\"", "\"1\"", KIND_SAME},
		{"\"1\"", "W/\"1\"", KIND_SAME},
		{"W/\"1\"", "\"1\"", KIND_SAME},
		{"\"1\"", "1", KIND_SAME},
		{"1", "\"2\"", KIND_SAME},
		{"\"1\"", "\"2\"", KIND_WHOLE},
		{"\"1\"", "\"\"", KIND_WHOLE},
		{"W/\"1\"", "W/\"2\"", KIND_WHOLE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct http_client_response r = answer(304, "", "");
		char tag[8];
		struct part held = {.url = tag, .etag = tag, .last_modified = tag};
		struct kind_place place = web;
		struct kind_answer a;
		enum kind_cause cause;
		char why[FILE_WHY];

		snprintf(tag, sizeof(tag), "%s", table[i].held);
		snprintf(r.etag, sizeof(r.etag), "%s", table[i].etag);
		place.held = &held;
		assert_int_equal(check(&place, &r, true, &a, &cause, why), table[i].verdict);
		if (table[i].verdict == KIND_WHOLE)
			assert_string_equal(a.why,
				"the server answered 304, with the ETag of another version than it "
				"was asked about");
		assert_int_equal(
			cause, table[i].verdict == KIND_SAME ? KIND_CAUSE_NONE : KIND_CAUSE_ANSWER);
	}
}

static void judge__of_a_transfer_that_failed__tells_its_cause(void **state)
{
	static const enum kind_cause causes[HTTP_CLIENT_RESULTS] = {
		[HTTP_CLIENT_TIMEOUT] = KIND_CAUSE_TIMEOUT,
		[HTTP_CLIENT_REFUSED] = KIND_CAUSE_UNREACHABLE,
		[HTTP_CLIENT_NETWORK] = KIND_CAUSE_UNREACHABLE,
		[HTTP_CLIENT_TLS] = KIND_CAUSE_UNREACHABLE,
		[HTTP_CLIENT_HOST] = KIND_CAUSE_HOST,
		[HTTP_CLIENT_TOO_LARGE] = KIND_CAUSE_ANSWER,
		[HTTP_CLIENT_CODING] = KIND_CAUSE_ANSWER,
		[HTTP_CLIENT_PROTOCOL] = KIND_CAUSE_ANSWER,
	};

	(void)state;
	for (int result = HTTP_CLIENT_TIMEOUT; result < HTTP_CLIENT_RESULTS; result++) {
		struct http_client_response r = answer(200, "", "half a bo");
		struct kind_answer a;
		enum kind_cause cause;
		char why[FILE_WHY];

		r.result = (enum http_client_result)result;
		snprintf(r.message, sizeof(r.message), "the reason");
		assert_int_equal(check(&web, &r, true, &a, &cause, why), KIND_FAILED);
		assert_string_equal(why, "the reason");
		assert_int_equal(cause, causes[result]);
	}
}

static void judge__of_a_kind_that_knows_better__is_its_own(void **state)
{
	static const enum kind_verdict verdicts[] = {
		KIND_NEW, KIND_SAME, KIND_FAILED, KIND_UNAUTHORIZED, KIND_WHOLE};
	struct kind_place place = web;
	struct kind_answer a;
	enum kind_cause cause;
	char why[FILE_WHY];

	(void)state;
	place.server = &other;
	for (size_t i = 0; i < 5; i++) {
		struct http_client_response r = answer(503, "", "");

		verdict_of_its_own = verdicts[i];
		if (verdicts[i] == KIND_NEW)
			r.status = 404;
		assert_int_equal(check(&place, &r, false, &a, &cause, why), verdicts[i]);
		assert_int_equal(cause, KIND_CAUSE_OLDER);
		assert_string_equal(why, "in its own words");
	}
	for (int i = 0; i < 2; i++) { /* that it is not there, whoever says so */
		struct http_client_response r = answer(i ? 404 : 200, "", "");

		verdict_of_its_own = i ? KIND_USUAL : KIND_ABSENT;
		assert_int_equal(check(&place, &r, true, &a, &cause, why), KIND_ABSENT);
		assert_int_equal(cause, KIND_CAUSE_NOT_FOUND);
	}
}

static void judge__of_a_new_document__says_what_the_server_said_of_it(void **state)
{
	static const struct {
		const char *encoding, *digest, *mismatch, *note;
	} table[] = {
		{"", "sha-256=:N7EoxZ8fUJf3P4JpHLUZ8fVoZn+qtc7RtKuXnTaDfq4=:", "", ""},
		{"gzip", "sha-256=:AAAA:", "the SHA-256 in its Digest is none of 32 bytes", ""},
		{"identity", "md5=:AAAA:", "",
			"its Digest has neither sha-256 nor sha-512: it is not checked"},
	};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct http_client_response r = answer(200, "", "a: 1\n");
		struct kind_answer a;
		enum kind_cause cause;
		char why[FILE_WHY];

		snprintf(r.etag, sizeof(r.etag), "W/\"1\"");
		snprintf(r.last_modified, sizeof(r.last_modified), "%s", date);
		snprintf(r.server_date, sizeof(r.server_date), "Sat, 21 Nov 2026 10:00:00 GMT");
		snprintf(r.digest, sizeof(r.digest), "%s", table[i].digest);
		snprintf(r.content_encoding, sizeof(r.content_encoding), "%s", table[i].encoding);
		assert_int_equal(check(&web, &r, false, &a, &cause, why), KIND_NEW);
		assert_string_equal(a.version, "W/\"1\"");
		assert_string_equal(a.last_modified, date);
		assert_string_equal(a.mismatch, table[i].mismatch);
		assert_string_equal(a.epoch, "");
		assert_string_equal(a.note, table[i].note);
	}
}

/* What the next request may name is what the answer keeps of them. */
static void judge__of_validators__keeps_those_that_tell_changes_apart(void **state)
{
#define AT(time) "Sat, 21 Nov 2026 " time " GMT"
	static const struct {
		const char *etag, *modified, *sent, *version, *kept;
	} table[] = {
		/* within a second, and the one after it, the time may stay the same */
		{"", AT("10:00:00"), AT("10:00:00"), "", ""},
		{"", AT("10:00:00"), AT("10:00:01"), "", ""},
		{"", AT("10:00:00"), AT("10:00:02"), "", AT("10:00:00")},
		{"", AT("10:00:00"), "Sun, 22 Nov 2026 10:00:00 GMT", "", AT("10:00:00")},
		/* so may an ETag that is made of it; it stays the version's name */
		{"\"6a6-5\"", AT("10:00:00"), AT("10:00:00"), "6a6-5", ""},
		{"W/\"6a6-5\"", AT("10:00:00"), AT("10:00:01"), "6a6-5", ""},
		{"\"6a6-5\"", AT("10:00:00"), AT("10:00:02"), "\"6a6-5\"", AT("10:00:00")},
		{"\"\"", AT("10:00:00"), AT("10:00:00"), "", ""},
		{"\"abc\"", "", AT("10:00:00"), "\"abc\"", ""},
		{"\"abc\"", "", "", "\"abc\"", ""},
		/* a clock that differs, or is not told, or not in the one form */
		{"", AT("10:00:05"), AT("10:00:00"), "", ""},
		{"", AT("10:00:00"), "", "", ""},
		{"", AT("10:00:00"), "now", "", ""},
		{"", "yesterday", AT("10:00:00"), "", ""},
		{"", "Saturday, 21-Nov-26 09:00:00 GMT", AT("10:00:00"), "", ""},
		{"", "Sat Nov 21 09:00:00 2026", AT("10:00:00"), "", ""},
		{"", AT("09:00:00") "x", AT("10:00:00"), "", ""},
		{"\"abc\"", "yesterday", AT("10:00:00"), "\"abc\"", ""},
		{"*", AT("09:00:00"), AT("10:00:00"), "", AT("09:00:00")},
		{"abc", AT("09:00:00"), AT("10:00:00"), "abc", AT("09:00:00")},
		{"abc", AT("10:00:00"), AT("10:00:00"), "abc", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct http_client_response r = answer(200, "", "a: 1\n");
		struct kind_answer a;
		enum kind_cause cause;
		char why[FILE_WHY];

		snprintf(r.etag, sizeof(r.etag), "%s", table[i].etag);
		snprintf(r.last_modified, sizeof(r.last_modified), "%s", table[i].modified);
		snprintf(r.server_date, sizeof(r.server_date), "%s", table[i].sent);
		assert_int_equal(check(&web, &r, false, &a, &cause, why), KIND_NEW);
		assert_string_equal(a.version, table[i].version);
		assert_string_equal(a.last_modified, table[i].kept);
	}
}

static void judge__the_type__is_said_by_item_then_path_then_server(void **state)
{
	static const struct {
		enum settings_type configured;
		const char *path, *type;
		enum settings_type is;
	} table[] = {
		{SETTINGS_TYPE_AUTO, "/a.json", "application/yaml", SETTINGS_TYPE_JSON},
		{SETTINGS_TYPE_AUTO, "/a.JSON?v=1.yaml", "", SETTINGS_TYPE_JSON},
		{SETTINGS_TYPE_AUTO, "/a.yml", "application/json", SETTINGS_TYPE_YAML},
		{SETTINGS_TYPE_AUTO, "/a.yaml", "application/json", SETTINGS_TYPE_YAML},
		{SETTINGS_TYPE_AUTO, "/a", "application/json", SETTINGS_TYPE_JSON},
		{SETTINGS_TYPE_AUTO, "/a?x=.yaml", "application/json", SETTINGS_TYPE_JSON},
		{SETTINGS_TYPE_AUTO, "/a", "application/problem+json", SETTINGS_TYPE_JSON},
		{SETTINGS_TYPE_AUTO, "/a", "application/octet-stream", SETTINGS_TYPE_YAML},
		{SETTINGS_TYPE_AUTO, "", "", SETTINGS_TYPE_YAML},
		{SETTINGS_TYPE_BYTES, "/a.json", "application/json", SETTINGS_TYPE_BYTES},
		{SETTINGS_TYPE_BYTES, "/a.html", "text/html", SETTINGS_TYPE_BYTES},
		{SETTINGS_TYPE_BYTES, "/a.HTM?x", "application/xhtml+xml", SETTINGS_TYPE_BYTES},
		{SETTINGS_TYPE_YAML, "/a.json", "application/json", SETTINGS_TYPE_YAML},
		{SETTINGS_TYPE_JSON, "/a.yaml", "", SETTINGS_TYPE_JSON},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct kind_place place = web;
		struct http_client_response r = answer(200, table[i].type, "x");
		struct kind_answer a;
		enum kind_cause cause;
		char why[FILE_WHY];

		place.path = table[i].path;
		place.type = table[i].configured;
		assert_int_equal(kind_document_type(&place, table[i].type), table[i].is);
		assert_int_equal(check(&place, &r, false, &a, &cause, why), KIND_NEW);
		assert_int_equal(a.type, table[i].is);
	}
}

static void judge__of_a_page_where_bytes_were_expected__takes_only_what_is_named_so(void **state)
{
	struct kind_place place = web;
	struct kind_answer a;
	enum kind_cause cause;
	char why[FILE_WHY];

	(void)state;
	place.type = SETTINGS_TYPE_BYTES;
	for (int i = 0; i < 2; i++) {
		struct http_client_response r = answer(200, "text/html", "<html>");

		place.path = i ? "/logo.png?x=.html" : "/index.html";
		assert_int_equal(
			check(&place, &r, false, &a, &cause, why), i ? KIND_FAILED : KIND_NEW);
	}
	assert_int_equal(cause, KIND_CAUSE_ANSWER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(build__with_a_held_version_of_this_url__is_conditional),
		cmocka_unit_test(build__with_one_name_of_the_version__asks_by_that),
		cmocka_unit_test(build__with_nothing_or_another_url_held__is_not_conditional),
		cmocka_unit_test(build__with_a_held_version__is_never_conditional_when_forced),
		cmocka_unit_test(build__with_an_etag_of_no_such_form__does_not_send_it_back),
		cmocka_unit_test(judge__of_validators__keeps_those_that_tell_changes_apart),
		cmocka_unit_test(build__of_a_path__is_put_behind_the_address_as_it_is),
		cmocka_unit_test(judge__each_answer__gets_its_verdict),
		cmocka_unit_test(judge__of_a_redirect__names_where_it_leads_without_the_query),
		cmocka_unit_test(judge__of_a_304_with_another_etag__asks_for_the_whole),
		cmocka_unit_test(judge__of_a_transfer_that_failed__tells_its_cause),
		cmocka_unit_test(judge__of_a_kind_that_knows_better__is_its_own),
		cmocka_unit_test(judge__of_a_new_document__says_what_the_server_said_of_it),
		cmocka_unit_test(judge__the_type__is_said_by_item_then_path_then_server),
		cmocka_unit_test(
			judge__of_a_page_where_bytes_were_expected__takes_only_what_is_named_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Spring Cloud Config: what is asked for, how sources become one document, and what each answer
 * means. The answers have the form of its documentation and of its own tests. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "crypto/digest.h"
#include "pull/kinds/kind.h"
#include "text/sentence.h"
#include "tests/unit/fixture/round.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define SOURCE(name, source) "{\"name\":\"" name "\",\"source\":{" source "}}"
#define ENVIRONMENT(version, sources)                                                              \
	"{\"name\":\"web\",\"profiles\":[\"prod\"],\"label\":null,\"version\":" version            \
	",\"state\":\"s\",\"propertySources\":[" sources "]}"

static char user[] = "u";
static struct settings_server server = {.kind = SETTINGS_SPRING};

static void begin(struct round *r)
{
	round_begin(r, SETTINGS_SPRING, "http://spring:8888", "/web/prod");
	r->place.max_bytes = 100000;
}

static void answer(struct round *r, long status, const char *type, const char *body)
{
	struct http_client_response *t = &r->response;

	snprintf(t->content_type, sizeof(t->content_type), "%s", type);
	snprintf(t->digest, sizeof(t->digest), "sha-256=:x:");
	snprintf(t->last_modified, sizeof(t->last_modified), "Sat, 21 Nov 2026 00:00:00 GMT");
	round_read_text(r, status, body);
}

static void environment(struct round *r, const char *body)
{
	answer(r, 200, "application/json", body);
}

/* ---- requests ---- */

static void build__each_path__is_asked_for_as_json(void **state)
{
	static const struct {
		const char *path, *url;
	} table[] = {
		{"/web/prod", "http://spring:8888/web/prod"},
		{"/web/prod,eu/feature(_)x", "http://spring:8888/web/prod,eu/feature(_)x"},
		{"/a b/\xc3\xa4?x#y&z", "http://spring:8888/a%20b/%C3%A4%3Fx%23y%26z"},
		{"/a%20b/%C3%A4", "http://spring:8888/a%20b/%C3%A4"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct kind_place place = {.server = &server,
			.base = "http://spring:8888",
			.path = table[i].path,
			.user = i ? user : NULL};
		struct kind_request r;
		char why[FILE_WHY];

		kind_request_init(&r);
		assert_int_equal(kind_spring.build(&place, &r, why), 0);
		assert_string_equal(r.method, "GET");
		assert_string_equal(r.url.data, table[i].url);
		assert_int_equal(r.header_count, 1);
		assert_string_equal(r.headers[0], "Accept: application/json");
		assert_true(r.basic == (i > 0));
		assert_false(r.conditional);
		kind_request_fini(&r);
	}
}

static void build__of_a_path_that_is_too_long__is_refused(void **state)
{
	static char path[KIND_MAX_URL] = "/";
	struct kind_place place = {.server = &server, .base = "http://spring:8888", .path = path};
	struct kind_request r;
	char why[FILE_WHY];

	(void)state;
	memset(path + 1, 'x', sizeof(path) - 2);
	kind_request_init(&r);
	assert_int_equal(kind_spring.build(&place, &r, why), -EMSGSIZE);
	kind_request_fini(&r);
}

/* ---- the document ---- */

/* The document without its white space. */
static void check_document(const char *body, const char *document)
{
	struct round r;
	size_t n = 0;

	begin(&r);
	environment(&r, body);
	if (r.verdict != KIND_NEW)
		fail_msg("%s: %s", body, r.answer.why);
	for (size_t i = 0; i < r.answer.body.len; i++)
		if (r.answer.body.data[i] != '\n' && r.answer.body.data[i] != ' ')
			r.answer.body.data[n++] = r.answer.body.data[i];
	r.answer.body.data[n] = '\0';
	assert_string_equal(r.answer.body.data, document);
	assert_int_equal(r.answer.type, SETTINGS_TYPE_JSON);
	assert_int_equal(r.answer.cause, KIND_CAUSE_NONE);
	assert_string_equal(r.answer.why, "");
	round_end(&r);
}

static void read__several_sources__the_first_that_has_a_name_wins(void **state)
{
	(void)state;
	check_document(
		ENVIRONMENT("\"1\"",
			SOURCE("web-prod.yml", "\"db.host\":\"p\",\"a\":1") "," SOURCE("web.yml",
				"\"db.host\":\"d\",\"db.port\":5432,\"a\":"
				"2") "," SOURCE("application.yml", "\"db.port\":1,\"z\":true")),
		"{\"a\":1,\"db\":{\"host\":\"p\",\"port\":5432},\"z\":true}");
}

static void read__values__keep_their_types(void **state)
{
	(void)state;
	check_document(ENVIRONMENT("null",
			       SOURCE("x", "\"i\":9007199254740993,\"n\":-9223372036854775808,"
					   "\"d\":1.0,\"e\":0.1,\"t\":true,\"f\":false,\"z\":null,"
					   "\"s\":\"017\",\"q\":\"\\\"\\\\\\u00e4\",\"l\":[],\"m\":"
					   "{},\"v\":{\"value\":[1,{\"a\":2}]}")),
		"{\"d\":1.0,\"e\":0.1,\"f\":false,\"i\":9007199254740993,\"l\":[],\"m\":{},"
		"\"n\":-9223372036854775808,\"q\":\"\\\"\\\\\xc3\xa4\",\"s\":\"017\",\"t\":true,"
		"\"v\":{\"value\":[1,{\"a\":2}]},\"z\":null}");
}

/* What a longer list of a weaker source has beyond the shorter one must not shine through. */
static void read__lists__belong_to_the_first_source_that_has_any_of_them(void **state)
{
	static const struct {
		const char *strong, *weak, *document;
	} table[] = {
		{"\"k[0]\":\"a\"", "\"k[0]\":\"x\",\"k[1]\":\"y\"", "{\"k\":[\"a\"]}"},
		{"\"k[0]\":\"a\",\"k[1]\":\"b\"", "\"k[0]\":\"x\"", "{\"k\":[\"a\",\"b\"]}"},
		/* lists of mappings, and in mappings */
		{"\"a.k[0].p\":1", "\"a.k[0].q\":2,\"a.k[1].p\":3,\"a.m\":4",
			"{\"a\":{\"k\":[{\"p\":1}],\"m\":4}}"},
		/* lists of lists */
		{"\"k[0][0]\":1", "\"k[0][1]\":2,\"k[1][0]\":3", "{\"k\":[[1]]}"},
		/* an empty list */
		{"\"k\":\"\"", "\"k[0]\":1", "{\"k\":\"\"}"},
		{"\"k[0]\":1", "\"k\":\"a,b\"", "{\"k\":[1]}"},
		/* any of it, not only the first */
		{"\"k[1]\":1", "\"k[0]\":2,\"k[1]\":3", "{\"k[1]\":1}"},
		/* a name that only begins the same is another one */
		{"\"k[0]\":1", "\"kk[1]\":2,\"kk[0]\":3", "{\"k\":[1],\"kk\":[3,2]}"},
		{"\"a.k[0]\":1", "\"a.b.k[0]\":2", "{\"a\":{\"b\":{\"k\":[2]},\"k\":[1]}}"},
		{"\"k.a[0]\":1", "\"k.b\":2", "{\"k\":{\"a\":[1],\"b\":2}}"},
		/* a mapping is merged, and what is in brackets is a name */
		{"\"k[a.b]\":1", "\"k[c]\":2,\"k[]\":3,\"k[-1]\":4",
			"{\"k[-1]\":4,\"k[]\":3,\"k[a\":{\"b]\":1},\"k[c]\":2}"},
		{"\"k[a.b][0]\":1", "\"k[a.b][1]\":2,\"k[c][0]\":3",
			"{\"k[a\":{\"b]\":[1]},\"k[c]\":[3]}"},
		{"\"k[a]\":1", "\"k[b]\":2,\"k[]\":3", "{\"k[]\":3,\"k[a]\":1,\"k[b]\":2}"},
		{"\"kab]\":1", "\"kcd]\":2,\"k1]\":3", "{\"k1]\":3,\"kab]\":1,\"kcd]\":2}"},
		{"\"k[0\":1,\"[0]\":2", "\"k[1\":3,\"[1]\":4",
			"{\"[0]\":2,\"[1]\":4,\"k[0\":1,\"k[1\":3}"},
		/* a value and a mapping of the same name are both there */
		{"\"k\":1", "\"k.a\":2", "{\"k\":1,\"k.a\":2}"},
	};
	char body[1000];

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		snprintf(body, sizeof(body),
			ENVIRONMENT("\"1\"", SOURCE("a", "%s") "," SOURCE("b", "%s")),
			table[i].strong, table[i].weak);
		check_document(body, table[i].document);
	}
}

static void read__a_placeholder__is_passed_on_and_noted(void **state)
{
	struct round r;

	(void)state;
	begin(&r);
	environment(
		&r, ENVIRONMENT("\"1\"", SOURCE("a", "\"z\":\"a${b:c}\",\"b\":\"1$\"") "," SOURCE(
						 "b", "\"b\":\"${x}\"")));
	assert_int_equal(r.verdict, KIND_NEW);
	assert_non_null(strstr(r.answer.body.data, "\"z\": \"a${b:c}\""));
	assert_non_null(strstr(r.answer.note, "'z'"));
	environment(&r, ENVIRONMENT("\"1\"", SOURCE("a", "\"z\":\"$ {b}\"")));
	assert_string_equal(r.answer.note, "");
	round_end(&r);
}

static void read__what_is_not_decrypted__is_refused_where_it_counts(void **state)
{
	static const struct {
		const char *strong, *weak, *name; /* name NULL: it is taken */
	} table[] = {
		{"\"a\":1,\"db.password\":\"{cipher}AQA\"", "", "'db.password'"},
		{"\"a\":1", "\"db.password\":\"{cipher}AQA\"", "'db.password'"},
		{"\"a\":1,\"invalid.db.password\":\"<n/a>\"", "\"db.password\":\"old\"",
			"'db.password'"},
		{"\"k[0]\":1,\"invalid.k[1]\":\"<n/a>\"", "", "'k[1]'"},
		{"\"db.password\":\"new\"", "\"invalid.db.password\":\"<n/a>\"", NULL},
		{"\"k[0]\":1", "\"invalid.k[1]\":\"<n/a>\"", NULL},
		{"\"db.password\":\"new\"", "\"db.password\":\"{cipher}AQA\"", NULL},
		/* somebody's own */
		{"\"invalid.login\":\"Wrong password\",\"invalid\":\"<n/a>\"", "", NULL},
		{"\"invalid.\":\"<n/a>\",\"a\":\"not {cipher}\",\"b\":\"<n/a>\"", "", NULL},
	};
	struct round r;
	char body[1000];

	(void)state;
	begin(&r);
	for (size_t i = 0; i < COUNT(table); i++) {
		snprintf(body, sizeof(body),
			ENVIRONMENT("\"1\"", SOURCE("a", "%s") "," SOURCE("b", "%s")),
			table[i].strong, table[i].weak);
		environment(&r, body);
		assert_int_equal(r.verdict, table[i].name ? KIND_FAILED : KIND_NEW);
		assert_int_equal(
			r.answer.cause, table[i].name ? KIND_CAUSE_ANSWER : KIND_CAUSE_NONE);
		if (table[i].name) {
			assert_non_null(strstr(r.answer.why, table[i].name));
			assert_non_null(strstr(r.answer.why, "decrypt"));
			assert_null(strstr(r.answer.why, "AQA"));
		}
	}
	round_end(&r);
}

/* ---- versions ---- */

static void read__the_version__is_the_servers_or_the_hash_of_the_document(void **state)
{
	static const struct {
		const char *version, *expected; /* NULL: the hash */
	} table[] = {
		{"\"f5aa8d2\"", "f5aa8d2"},
		{"null", NULL},
		{"\"\"", NULL},
		{"7", NULL},
		{"[\"x\"]", NULL},
		{"\"a b\"", NULL},
		{"\"a\\nb\"", NULL},
		{"\"\\u00e4\"", NULL},
	};
	struct round r;
	char body[500], hash[DIGEST_HEX];

	(void)state;
	begin(&r);
	for (size_t i = 0; i < COUNT(table); i++) {
		snprintf(body, sizeof(body), ENVIRONMENT("%s", SOURCE("a", "\"a\":1")),
			table[i].version);
		environment(&r, body);
		assert_int_equal(r.verdict, KIND_NEW);
		digest_sha256(r.answer.body.data, r.answer.body.len, NULL, 0, hash);
		assert_string_equal(r.answer.epoch, hash);
		assert_string_equal(r.answer.version, table[i].expected ? table[i].expected : hash);
		/* what was said of the answer does not count for the document */
		assert_string_equal(r.answer.mismatch, "");
		assert_string_equal(r.answer.last_modified, "");
	}
	round_end(&r);
}

static void read__a_version_of_any_length__fits_or_is_the_hash(void **state)
{
	struct round r;
	char version[257] = "", body[500];

	(void)state;
	begin(&r);
	for (size_t len = 254; len <= 256; len++) {
		memset(version, 'v', len);
		snprintf(
			body, sizeof(body), ENVIRONMENT("\"%s\"", SOURCE("a", "\"a\":1")), version);
		environment(&r, body);
		assert_int_equal(r.verdict, KIND_NEW);
		assert_int_equal(strlen(r.answer.version), len < 256 ? len : DIGEST_HEX - 1);
	}
	round_end(&r);
}

static void read__what_is_held__is_the_same_only_by_version_and_content(void **state)
{
	static const struct {
		const char *version, *value;
		enum kind_verdict verdict;
	} table[] = {
		{"\"1\"", "1", KIND_SAME},
		{"\"2\"", "1", KIND_NEW}, /* another commit, told to whoever waits for it */
		{"\"1\"", "2", KIND_NEW}, /* a source without commits changed */
		{"null", "1", KIND_NEW},
	};
	struct round r;
	char body[500];

	(void)state;
	begin(&r);
	environment(&r, ENVIRONMENT("\"1\"", SOURCE("a", "\"a\":1")));
	round_hold(&r);
	for (size_t i = 0; i < COUNT(table); i++) {
		snprintf(body, sizeof(body), ENVIRONMENT("%s", SOURCE("a", "\"a\":%s")),
			table[i].version, table[i].value);
		environment(&r, body);
		assert_int_equal(r.verdict, table[i].verdict);
	}
	/* the order of names and sources that do not count are no difference */
	environment(&r, "{\"propertySources\":[" SOURCE("b", "\"a\":1") "," SOURCE(
				"c", "\"a\":5") "],\"version\":\"1\"}");
	assert_int_equal(r.verdict, KIND_SAME);
	r.held.absent = true;
	environment(&r, ENVIRONMENT("\"1\"", SOURCE("a", "\"a\":1")));
	assert_int_equal(r.verdict, KIND_NEW);
	r.held.absent = false;
	r.place.forced = true; /* whatever is held */
	environment(&r, ENVIRONMENT("\"1\"", SOURCE("a", "\"a\":1")));
	assert_int_equal(r.verdict, KIND_NEW);
	r.place.forced = false;
	r.held.epoch = NULL; /* of another kind of server */
	environment(&r, ENVIRONMENT("\"1\"", SOURCE("a", "\"a\":1")));
	assert_int_equal(r.verdict, KIND_NEW);
	round_end(&r);
}

static void read__without_a_version__the_same_content_is_the_same(void **state)
{
	struct round r;

	(void)state;
	begin(&r);
	environment(&r, ENVIRONMENT("null", SOURCE("a", "\"a\":1")));
	assert_string_equal(r.answer.body.data, "{\n  \"a\": 1\n}\n");
	round_hold(&r);
	environment(&r, ENVIRONMENT("null", SOURCE("a", "\"a\":1")));
	assert_int_equal(r.verdict, KIND_SAME);
	environment(&r, ENVIRONMENT("null", SOURCE("a", "\"a\":2")));
	assert_int_equal(r.verdict, KIND_NEW);
	round_end(&r);
}

/* ---- answers ---- */

static void read__an_environment_without_properties__is_empty(void **state)
{
	static const char *const bodies[] = {ENVIRONMENT("\"1\"", ""),
		ENVIRONMENT("null", SOURCE("a", "")),
		ENVIRONMENT("null", SOURCE("a", "") "," SOURCE("b", ""))};
	struct round r;

	(void)state;
	begin(&r);
	for (size_t i = 0; i < COUNT(bodies); i++) {
		environment(&r, bodies[i]);
		assert_int_equal(r.verdict, KIND_FAILED);
		assert_int_equal(r.answer.cause, KIND_CAUSE_EMPTY);
		assert_non_null(strstr(r.answer.why, "check the path"));
	}
	round_end(&r);
}

static void read__what_is_no_environment__is_refused(void **state)
{
	static const struct {
		const char *type, *body;
		enum kind_cause cause;
		const char *why;
	} table[] = {
		{"application/json", "", KIND_CAUSE_EMPTY, "empty"},
		{"text/html", "<html>", KIND_CAUSE_ANSWER, "HTML"},
		{"application/json", "{", KIND_CAUSE_ANSWER, "cannot be read"},
		{"application/json", "[]", KIND_CAUSE_ANSWER, "must be a mapping"},
		{"application/json", "{\"a\":{\"b\":1}}", KIND_CAUSE_ANSWER, "propertySources"},
		{"application/json", "{\"propertySources\":{}}", KIND_CAUSE_ANSWER,
			"propertySources"},
		{"application/json", "{\"propertySources\":null}", KIND_CAUSE_ANSWER,
			"propertySources"},
		{"application/json", "{\"propertySources\":[1]}", KIND_CAUSE_ANSWER,
			"propertySources"},
		{"application/json", "{\"propertySources\":[{\"name\":\"a\"}]}", KIND_CAUSE_ANSWER,
			"propertySources"},
		{"application/json", "{\"propertySources\":[{\"source\":[]}]}", KIND_CAUSE_ANSWER,
			"propertySources"},
		{"application/json", "{\"propertySources\":[" SOURCE("a", "\"a\":1") ",{}]}",
			KIND_CAUSE_ANSWER, "propertySources"},
		{"application/json", ENVIRONMENT("null", SOURCE("a", "\"a\":1,\"a\":2")),
			KIND_CAUSE_ANSWER, "duplicate"},
		{"application/json", ENVIRONMENT("null", SOURCE("a", "\"a\":18446744073709551616")),
			KIND_CAUSE_ANSWER, "64 bits"},
		{"application/json", ENVIRONMENT("null", SOURCE("a", "\"\":1")), KIND_CAUSE_ANSWER,
			"'' has a name that no document can hold"},
		{"application/json", ENVIRONMENT("null", SOURCE("a", "\"a\":\"\\u0000\"")),
			KIND_CAUSE_ANSWER, "NUL"},
	};
	struct round r;

	(void)state;
	begin(&r);
	for (size_t i = 0; i < COUNT(table); i++) {
		answer(&r, 200, table[i].type, table[i].body);
		assert_int_equal(r.verdict, KIND_FAILED);
		assert_int_equal(r.answer.cause, table[i].cause);
		if (!strstr(r.answer.why, table[i].why))
			fail_msg("%s: %s", table[i].body, r.answer.why);
	}
	round_end(&r);
}

static void read__more_than_fits__says_what_to_raise(void **state)
{
	struct round r;

	(void)state;
	begin(&r);
	r.place.max_bytes = 180; /* the answer would fit, the indented document does not */
	environment(&r, "{\"propertySources\":[{\"source\":{\"a.b.c.d.e.f.g.h.i.j.k.l\":1}}]}");
	assert_int_equal(r.verdict, KIND_FAILED);
	assert_non_null(strstr(r.answer.why, "the environment is more than fits: raise max_size"));
	r.place.max_bytes = 60; /* and here not even one value does, which needs escapes */
	environment(&r, "{\"propertySources\":[{\"source\":{\"ab\":\""
			"\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\"}}]}");
	assert_int_equal(r.verdict, KIND_FAILED);
	assert_int_equal(r.answer.cause, KIND_CAUSE_ANSWER);
	assert_non_null(strstr(r.answer.why, "the property 'ab' is more than fits"));
	r.place.max_bytes = 20; /* of the document, not of the answer */
	environment(&r, "{\"propertySources\":[{\"source\":{\"ab\":\"c\"}}]}");
	assert_int_equal(r.verdict, KIND_NEW);
	round_end(&r);
}

static void read__as_bytes__stays_bytes(void **state)
{
	struct round r;

	(void)state;
	begin(&r);
	r.place.type = SETTINGS_TYPE_BYTES;
	environment(&r, ENVIRONMENT("null", SOURCE("a", "\"a\":1")));
	assert_int_equal(r.verdict, KIND_NEW);
	assert_int_equal(r.answer.type, SETTINGS_TYPE_BYTES);
	r.place.type = SETTINGS_TYPE_YAML; /* which JSON is, more or less */
	environment(&r, ENVIRONMENT("null", SOURCE("a", "\"a\":1")));
	assert_int_equal(r.answer.type, SETTINGS_TYPE_JSON);
	round_end(&r);
}

#define ERROR(status, message)                                                                     \
	"{\"timestamp\":\"2026-11-21T00:00:00.000+00:00\",\"status\":" status                      \
	",\"error\":\"Whatever\"," message "\"path\":\"/web/prod\"}"
#define MESSAGE(text) "\"message\":\"" text "\","

static void read__each_error__has_its_verdict(void **state)
{
	static const struct {
		long status;
		const char *body;
		enum kind_verdict verdict;
		enum kind_cause cause;
		const char *why;
	} table[] = {
		{404, ERROR("404", ""), KIND_ABSENT, KIND_CAUSE_NOT_FOUND, "no such label"},
		{404, ERROR("404", MESSAGE("")), KIND_ABSENT, KIND_CAUSE_NOT_FOUND,
			"no such label"},
		{404, ERROR("404", MESSAGE("No such label: x")), KIND_ABSENT, KIND_CAUSE_NOT_FOUND,
			"No such label: x"},
		{404, ERROR("404", MESSAGE("Profile Not found")), KIND_ABSENT, KIND_CAUSE_NOT_FOUND,
			"Profile"},
		{404, ERROR("404", MESSAGE("Cannot clone or checkout repository: git@x")),
			KIND_FAILED, KIND_CAUSE_UNREACHABLE, "Cannot clone"},
		{404, ERROR("404", MESSAGE("No such repository: git@x")), KIND_FAILED,
			KIND_CAUSE_UNREACHABLE, "No such repository"},
		{404, ERROR("404", MESSAGE("No message available")), KIND_FAILED,
			KIND_CAUSE_NOT_FOUND, "check the urls"},
		{404, ERROR("404", MESSAGE("No static resource web/prod.")), KIND_FAILED,
			KIND_CAUSE_NOT_FOUND, "check the urls"},
		{404, "", KIND_FAILED, KIND_CAUSE_NOT_FOUND, "check the urls"},
		{404, "<html>", KIND_FAILED, KIND_CAUSE_NOT_FOUND, "check the urls"},
		{404, "{\"message\":\"No such label\"}", KIND_FAILED, KIND_CAUSE_NOT_FOUND,
			"check the urls"},
		{404, "{\"status\":\"gone\"}", KIND_FAILED, KIND_CAUSE_NOT_FOUND, "check the urls"},
		{401, ERROR("401", MESSAGE("Bad credentials")), KIND_FAILED, KIND_CAUSE_FORBIDDEN,
			"the server answered 401: Bad credentials"},
		{403, ERROR("403", MESSAGE("Forbidden")), KIND_FAILED, KIND_CAUSE_FORBIDDEN, "403"},
		{500, ERROR("500", MESSAGE("Could not\\n\\u001b[2J construct \\u00e4")),
			KIND_FAILED, KIND_CAUSE_ANSWER,
			"the server answered 500: Could not??[2J construct ??"},
		{503, ERROR("503", MESSAGE("busy")), KIND_FAILED, KIND_CAUSE_OVERLOADED, "busy"},
		{400, ERROR("400", MESSAGE("")), KIND_USUAL, KIND_CAUSE_NONE, ""},
		{401, "", KIND_USUAL, KIND_CAUSE_NONE, ""},
		{500, ERROR("500", "\"message\":[1],"), KIND_USUAL, KIND_CAUSE_NONE, ""},
		{500, "not JSON", KIND_USUAL, KIND_CAUSE_NONE, ""},
		{503, "", KIND_USUAL, KIND_CAUSE_NONE, ""},
		{302, "", KIND_USUAL, KIND_CAUSE_NONE, ""},
		{304, "", KIND_USUAL, KIND_CAUSE_NONE, ""},
		{204, "", KIND_USUAL, KIND_CAUSE_NONE, ""},
	};
	struct round r;

	(void)state;
	begin(&r);
	for (size_t i = 0; i < COUNT(table); i++) {
		answer(&r, table[i].status, "application/json", table[i].body);
		if (r.verdict != table[i].verdict || !strstr(r.answer.why, table[i].why))
			fail_msg("%ld %s: %s", table[i].status, table[i].body, r.answer.why);
		assert_int_equal(r.answer.cause, table[i].cause);
		assert_int_equal(r.answer.body.len, 0);
	}
	round_end(&r);
}

static void read__a_long_message__is_cut(void **state)
{
	char body[3000], message[2500] = "";
	struct round r;

	(void)state;
	memset(message, 'm', sizeof(message) - 1);
	snprintf(body, sizeof(body), ERROR("500", MESSAGE("%s")), message);
	begin(&r);
	answer(&r, 500, "application/json", body);
	assert_int_equal(r.verdict, KIND_FAILED);
	assert_true(strlen(r.answer.why) < FILE_WHY);
	round_end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(build__each_path__is_asked_for_as_json),
		cmocka_unit_test(build__of_a_path_that_is_too_long__is_refused),
		cmocka_unit_test(read__several_sources__the_first_that_has_a_name_wins),
		cmocka_unit_test(read__values__keep_their_types),
		cmocka_unit_test(read__lists__belong_to_the_first_source_that_has_any_of_them),
		cmocka_unit_test(read__a_placeholder__is_passed_on_and_noted),
		cmocka_unit_test(read__what_is_not_decrypted__is_refused_where_it_counts),
		cmocka_unit_test(read__the_version__is_the_servers_or_the_hash_of_the_document),
		cmocka_unit_test(read__a_version_of_any_length__fits_or_is_the_hash),
		cmocka_unit_test(read__what_is_held__is_the_same_only_by_version_and_content),
		cmocka_unit_test(read__without_a_version__the_same_content_is_the_same),
		cmocka_unit_test(read__an_environment_without_properties__is_empty),
		cmocka_unit_test(read__what_is_no_environment__is_refused),
		cmocka_unit_test(read__more_than_fits__says_what_to_raise),
		cmocka_unit_test(read__as_bytes__stays_bytes),
		cmocka_unit_test(read__each_error__has_its_verdict),
		cmocka_unit_test(read__a_long_message__is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Apollo: what is asked for, and what each answer means.
 *
 * Where the exchanges come from: Apollo's guide for clients in other languages (configs and
 * notifications), its ConfigController, NotificationControllerV2, ClientAuthenticationFilter and
 * DefaultIncrementalSyncService, the classes ApolloConfig, ConfigurationChange, ConfigSyncType and
 * Signature of apollo-java, and SignatureTest's numbers.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "crypto/base64.h"
#include "crypto/digest.h"
#include "pull/kinds/kind.h"
#include "text/json_writer.h"
#include "tests/unit/fixture/model_document.h"
#include "tests/unit/fixture/round.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define SECRET "df23df3f59884980844ff3dada30fa97"
#define KEY "20170430092936-dee2d58e74515ff3"

static char secret_file[] = "/etc/secret", datacenter[] = "eu 1", old_key[] = "20160101000000-0";
static char merged_key[] = "a+b/", no_key[] = "";

static void begin(struct round *r, const char *path)
{
	round_begin(r, SETTINGS_APOLLO, "http://apollo:8080", path);
	r->place.wall_ms = 1576478257344;
}

/* ---- requests ---- */

static void build__each_place__is_a_url(void **state)
{
	static const struct {
		const char *base, *path;
		char *datacenter, *release;
		bool absent;
		const char *url;
	} table[] = {
		{"http://apollo:8080", "/app/default/application", NULL, NULL, false,
			"http://apollo:8080/configs/app/default/application"},
		{"https://proxy/apollo", "/app/default/application", NULL, NULL, false,
			"https://proxy/apollo/configs/app/default/application"},
		{"http://apollo:8080", "app/default/application.yaml", datacenter, NULL, false,
			"http://apollo:8080/configs/app/default/"
			"application.yaml?dataCenter=eu%201"},
		{"http://apollo:8080", "/app/default/application", NULL, old_key, false,
			"http://apollo:8080/configs/app/default/"
			"application?releaseKey=20160101000000-0"},
		{"http://apollo:8080", "/app/default/application", NULL, old_key, true,
			"http://apollo:8080/configs/app/default/application"},
		{"http://apollo:8080", "/app/default/application", datacenter, merged_key, false,
			"http://apollo:8080/configs/app/default/"
			"application?dataCenter=eu%201&releaseKey=a%2Bb%2F"},
		{"http://apollo:8080", "/a b/c+d/100%?#&=\xc3\xbc:,~", NULL, no_key, false,
			"http://apollo:8080/configs/a%20b/c%2Bd/100%25%3F%23%26%3D%C3%BC%3A%2C~"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct part held = {.etag = table[i].release, .absent = table[i].absent};
		struct round r;

		begin(&r, table[i].path);
		r.place.base = table[i].base;
		r.server.datacenter = table[i].datacenter;
		r.place.held = table[i].release ? &held : NULL;
		assert_int_equal(kind_apollo.build(&r.place, &r.request, r.answer.why), 0);
		assert_string_equal(r.request.method, "GET");
		assert_string_equal(r.request.url.data, table[i].url);
		assert_int_equal(r.request.header_count, 0);
		assert_int_equal(r.request.conditional, strstr(table[i].url, "releaseKey") != NULL);
		assert_false(r.request.basic);
		round_end(&r);
	}
}

static void build__a_path_that_is_not_app_cluster_and_namespace__is_refused(void **state)
{
	static const char *const table[] = {"", "/", "/a", "/a/", "/a/b", "/a/b/", "//b/c", "/a//c",
		"/a/b/c/d", "/a/b/c/", "a"};
	char *lengthy = malloc(KIND_MAX_URL);
	struct round r;

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct kind_watched item = {.path = table[i], .version = ""};
		struct kind_watch w = {.place = &r.place, .items = &item, .count = 1};

		begin(&r, table[i]);
		assert_int_equal(kind_apollo.build(&r.place, &r.request, r.answer.why), -EINVAL);
		assert_non_null(strstr(r.answer.why, "/APPID/CLUSTER/NAMESPACE"));
		assert_int_equal(kind_apollo.watch_build(&w, &r.request, r.answer.why), -EINVAL);
		round_end(&r);
	}
	memset(lengthy, 'x', KIND_MAX_URL);
	memcpy(lengthy, "/a/b/", 5);
	lengthy[KIND_MAX_URL - 1] = '\0';
	begin(&r, lengthy);
	r.place.secret = SECRET;
	assert_int_equal(kind_apollo.build(&r.place, &r.request, r.answer.why), -EMSGSIZE);
	assert_int_equal(r.request.header_count, 0);
	round_end(&r);
	free(lengthy);
}

/* The signatures are those of `openssl dgst -sha1 -hmac`. */
static void build__with_an_access_key__is_signed_as_it_is_sent(void **state)
{
	static const struct {
		const char *base, *path, *authorization;
		bool watch;
	} table[] = {
		{"http://apollo:8080", "/100004458/default/application",
			"Authorization: Apollo 100004458:FnD0PJp+u2TLKPgOKE7bGOPS63Y=", false},
		{"http://apollo:8080/prefix", "/a b/default/x+y.yaml",
			"Authorization: Apollo a b:0mgcaezxJrnEoRTO5Zp1v543Icc=", false},
		{"http://apollo:8080", "/100004458/default/application",
			"Authorization: Apollo 100004458:MitIOb4p4egYp6/ZOQzJelSAlXk=", true},
	};
	static char release[] = "20200101-1+20200102-2", eu[] = "eu";

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct part held = {.etag = release};
		struct kind_watched item = {.path = table[i].path, .version = ""};
		struct round r;
		struct kind_watch w = {.place = &r.place, .items = &item, .count = 1};

		begin(&r, table[i].path);
		r.place.base = table[i].base;
		r.place.secret = SECRET;
		r.place.held = i == 1 ? &held : NULL;
		r.server.datacenter = i == 1 ? eu : NULL;
		assert_int_equal(table[i].watch
					 ? kind_apollo.watch_build(&w, &r.request, r.answer.why)
					 : kind_apollo.build(&r.place, &r.request, r.answer.why),
			0);
		assert_int_equal(r.request.header_count, 2);
		assert_string_equal(r.request.headers[0], table[i].authorization);
		assert_string_equal(r.request.headers[1], "Timestamp: 1576478257344");
		round_end(&r);
	}
}

static void sign__the_numbers_of_the_reference__come_out(void **state)
{
	static const char text[] =
		"1576478257344\n/configs/100004458/default/application?ip=10.0.0.1";
	unsigned char mac[DIGEST_SHA1];
	struct buffer b;

	(void)state;
	buffer_init(&b, 100);
	assert_int_equal(digest_hmac_sha1(SECRET, strlen(SECRET), text, strlen(text), mac), 0);
	assert_int_equal(base64_append(&b, mac, sizeof(mac)), 0);
	assert_string_equal(b.data, "EoKyziXvKqzHgwx+ijDJwgVTDgE=");
	buffer_fini(&b);
}

/* ---- answers ---- */

#define CONFIG(space, members)                                                                     \
	"{\"appId\":\"app\",\"cluster\":\"default\",\"namespaceName\":\"" space "\"," members "}"
#define FULL(space, configurations)                                                                \
	CONFIG(space, "\"configurations\":" configurations ",\"releaseKey\":\"" KEY "\"")
#define CHANGES(changes)                                                                           \
	CONFIG("application",                                                                      \
		"\"configurations\":null,\"releaseKey\":\"" KEY                                    \
		"\",\"configSyncType\":\"IncrementalSync\",\"configurationChanges\":" changes)
#define CHANGE(key, value, type)                                                                   \
	"{\"key\":\"" key "\",\"newValue\":" value ",\"configurationChangeType\":\"" type "\"}"

static void read__each_answer__gets_its_verdict(void **state)
{
	static const struct {
		long status;
		const char *path, *body;
		enum kind_verdict verdict;
		enum kind_cause cause;
		const char *why; /* of KIND_NEW: the document, without its white space */
	} table[] = {
		{200, "application",
			FULL("application", "{\"portal.elastic.cluster.name\":\"c\","
					    "\"db.hosts[0]\":\"a\",\"db.hosts[1]\":\"b\"}"),
			KIND_NEW, KIND_CAUSE_NONE,
			"{\"db\":{\"hosts\":[\"a\",\"b\"]},\"portal\":{\"elastic\":{\"cluster\":{"
			"\"name\":\"c\"}}}}"},
		{200, "FX.apollo", FULL("FX.apollo", "{\"n\":\"1\",\"b\":\"true\",\"e\":\"\"}"),
			KIND_NEW, KIND_CAUSE_NONE, "{\"b\":\"true\",\"e\":\"\",\"n\":\"1\"}"},
		{200, "application.properties", FULL("application.properties", "{\"a\":null}"),
			KIND_NEW, KIND_CAUSE_NONE, "{\"a\":null}"},
		{200, "web.yaml", FULL("web.yaml", "{\"content\":\"name:web\"}"), KIND_NEW,
			KIND_CAUSE_NONE, "name:web"},
		{200, "web.JSON", FULL("web.JSON", "{\"content\":\"{\\\"a\\\":1}\"}"), KIND_NEW,
			KIND_CAUSE_NONE, "{\"a\":1}"},
		{200, ".yaml", FULL(".yaml", "{\"content\":\"x\"}"), KIND_NEW, KIND_CAUSE_NONE,
			"x"},
		{200, "yaml", FULL("yaml", "{\"content\":\"x\"}"), KIND_NEW, KIND_CAUSE_NONE,
			"{\"content\":\"x\"}"},
		{200, "application", FULL("application", "{}"), KIND_FAILED, KIND_CAUSE_EMPTY,
			"no keys"},
		{200, "web.yaml", FULL("web.yaml", "{}"), KIND_FAILED, KIND_CAUSE_EMPTY,
			"file is empty"},
		{200, "web.yaml", FULL("web.yaml", "{\"content\":\"\"}"), KIND_FAILED,
			KIND_CAUSE_EMPTY, "file is empty"},
		{200, "web.yaml", FULL("web.yaml", "{\"content\":null}"), KIND_FAILED,
			KIND_CAUSE_EMPTY, "file is empty"},
		{200, "web.yaml", FULL("web.yaml", "{\"content\":\"x\",\"a\":\"y\"}"), KIND_FAILED,
			KIND_CAUSE_ANSWER, "has keys"},
		{200, "application", FULL("application", "{\"a\":1}"), KIND_FAILED,
			KIND_CAUSE_ANSWER, "not text"},
		{200, "application", FULL("application", "{\"a\":{\"b\":\"c\"}}"), KIND_FAILED,
			KIND_CAUSE_ANSWER, "not text"},
		{200, "application", FULL("application", "{\"\":\"c\"}"), KIND_FAILED,
			KIND_CAUSE_ANSWER, "no name"},
		/* all the same: what was added to nothing */
		{200, "application",
			CHANGES("[" CHANGE("b.c", "\"2\"", "ADDED") "," CHANGE(
				"a", "\"1\"", "ADDED") "]"),
			KIND_NEW, KIND_CAUSE_NONE, "{\"a\":\"1\",\"b\":{\"c\":\"2\"}}"},
		{200, "web.yml", CHANGES("[" CHANGE("content", "\"x:1\"", "ADDED") "]"), KIND_NEW,
			KIND_CAUSE_NONE, "x:1"},
		{200, "application", CHANGES("[]"), KIND_FAILED, KIND_CAUSE_EMPTY, "no keys"},
		{200, "application", CHANGES("null"), KIND_FAILED, KIND_CAUSE_EMPTY, "no keys"},
		{200, "application", CHANGES("[" CHANGE("a", "\"1\"", "MODIFIED") "]"), KIND_FAILED,
			KIND_CAUSE_ANSWER, "not one of a key that was added"},
		{200, "application", CHANGES("[" CHANGE("a", "null", "DELETED") "]"), KIND_FAILED,
			KIND_CAUSE_ANSWER, "not one of a key that was added"},
		{200, "application",
			CHANGES("[" CHANGE("a", "\"1\"", "ADDED") "," CHANGE(
				"a", "\"2\"", "ADDED") "]"),
			KIND_FAILED, KIND_CAUSE_ANSWER, "twice"},
		{200, "application", CHANGES("[1]"), KIND_FAILED, KIND_CAUSE_ANSWER, "a change"},
		{200, "web.yaml", CHANGES("[{}]"), KIND_FAILED, KIND_CAUSE_ANSWER,
			"no answer of an Apollo"},
		{200, "application",
			CONFIG("application",
				"\"releaseKey\":\"" KEY
				"\",\"configurationChanges\":[" CHANGE("a", "\"1\"", "ADDED") "]"),
			KIND_NEW, KIND_CAUSE_NONE, "{\"a\":\"1\"}"},
		{200, "application",
			CONFIG("application",
				"\"releaseKey\":\"" KEY
				"\",\"configSyncType\":\"FullSync\",\"configurations\":{\"a\":"
				"\"1\"},\"configurationChanges\":[]"),
			KIND_NEW, KIND_CAUSE_NONE, "{\"a\":\"1\"}"},
		/* no answer of Apollo */
		{200, "application", "", KIND_FAILED, KIND_CAUSE_ANSWER, "no answer of an Apollo"},
		{200, "application", "[]", KIND_FAILED, KIND_CAUSE_ANSWER,
			"no answer of an Apollo"},
		{200, "application", "{}", KIND_FAILED, KIND_CAUSE_ANSWER,
			"no answer of an Apollo"},
		{200, "application", "<html></html>", KIND_FAILED, KIND_CAUSE_ANSWER,
			"no answer of an Apollo"},
		{200, "application", CONFIG("application", "\"configurations\":{\"a\":\"1\"}"),
			KIND_FAILED, KIND_CAUSE_ANSWER, "no answer of an Apollo"},
		{200, "application",
			CONFIG("application",
				"\"configurations\":{\"a\":\"1\"},\"releaseKey\":\"\""),
			KIND_FAILED, KIND_CAUSE_ANSWER, "no answer of an Apollo"},
		{200, "application",
			CONFIG("application", "\"configurations\":[],\"releaseKey\":\"k\""),
			KIND_FAILED, KIND_CAUSE_ANSWER, "no answer of an Apollo"},
		{200, "application",
			"{\"configurations\":{\"a\":\"1\",\"a\":\"2\"},\"releaseKey\":\"k\"}",
			KIND_FAILED, KIND_CAUSE_ANSWER, "no answer of an Apollo"},
		{200, "application", "{\"configurations\":{\"a\":\"1\"},\"releaseKey\":\"k\"",
			KIND_FAILED, KIND_CAUSE_ANSWER, "no answer of an Apollo"},
		{404, "application",
			"{\"timestamp\":\"2024-01-01T00:00:00.000+0800\",\"status\":404,\"error\":"
			"\"Not Found\",\"message\":\"Could not load configurations with appId: "
			"app, clusterName: default, namespace: application\"}",
			KIND_ABSENT, KIND_CAUSE_NONE, "no such namespace"},
		{401, "application", "{\"status\":401,\"message\":\"Unauthorized\"}", KIND_FAILED,
			KIND_CAUSE_FORBIDDEN, "signed"},
		{304, "application", "", KIND_USUAL, KIND_CAUSE_NONE, ""},
		{403, "application", "", KIND_USUAL, KIND_CAUSE_NONE, ""},
		{429, "application", "", KIND_USUAL, KIND_CAUSE_NONE, ""},
		{500, "application", "", KIND_USUAL, KIND_CAUSE_NONE, ""},
		{503, "application", "", KIND_USUAL, KIND_CAUSE_NONE, ""},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		char path[100];
		struct round r;
		size_t n = 0;

		snprintf(path, sizeof(path), "/app/default/%s", table[i].path);
		begin(&r, path);
		round_read_text(&r, table[i].status, table[i].body);
		if (r.verdict == KIND_NEW)
			assert_string_equal(r.answer.version, KEY);
		for (size_t k = 0; r.verdict == KIND_NEW && k < r.answer.body.len; k++)
			if (r.answer.body.data[k] != ' ' && r.answer.body.data[k] != '\n')
				r.answer.why[n++] = r.answer.body.data[k];
		if (r.verdict == KIND_NEW)
			r.answer.why[n] = '\0';
		if (r.verdict != table[i].verdict || r.answer.cause != table[i].cause ||
			(r.verdict == KIND_NEW ? strcmp(r.answer.why, table[i].why) != 0
					       : !strstr(r.answer.why, table[i].why)))
			fail_msg("row %zu: verdict %d, cause %d, why %s", i, (int)r.verdict,
				(int)r.answer.cause, r.answer.why);
		assert_int_equal(r.answer.why[0] == '\0', table[i].why[0] == '\0');
		round_end(&r);
	}
}

static void read__the_type__follows_the_kind_of_namespace(void **state)
{
	static const struct {
		enum settings_type configured;
		const char *path;
		enum settings_type type;
	} table[] = {
		{SETTINGS_TYPE_AUTO, "/a/b/application", SETTINGS_TYPE_JSON},
		{SETTINGS_TYPE_YAML, "/a/b/application", SETTINGS_TYPE_JSON},
		{SETTINGS_TYPE_BYTES, "/a/b/application", SETTINGS_TYPE_BYTES},
		{SETTINGS_TYPE_AUTO, "/a/b/web.json", SETTINGS_TYPE_JSON},
		{SETTINGS_TYPE_AUTO, "/a/b/web.yml", SETTINGS_TYPE_YAML},
		{SETTINGS_TYPE_AUTO, "/a/b/web.yaml", SETTINGS_TYPE_YAML},
		{SETTINGS_TYPE_AUTO, "/a/b/web.txt", SETTINGS_TYPE_YAML},
		{SETTINGS_TYPE_BYTES, "/a/b/web.xml", SETTINGS_TYPE_BYTES},
		{SETTINGS_TYPE_YAML, "/a/b/web.json", SETTINGS_TYPE_YAML},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct round r;

		begin(&r, table[i].path);
		r.place.type = table[i].configured;
		round_read_text(&r, 200, FULL("x", "{\"content\":\"{}\"}"));
		assert_int_equal(r.verdict, KIND_NEW);
		assert_int_equal(r.answer.type, table[i].type);
		round_end(&r);
	}
}

static void read__a_held_release__is_the_same_by_its_key_alone(void **state)
{
	char key[] = KEY, newer[] = "29990101000000-f";
	struct part held = {.etag = key};
	struct round r;

	(void)state;
	begin(&r, "/app/default/application");
	r.place.held = &held;
	round_read_text(&r, 200, FULL("application", "{\"a\":\"1\"}"));
	assert_int_equal(r.verdict, KIND_SAME);
	round_read_text(&r, 200, CHANGES("[]"));
	assert_int_equal(r.verdict, KIND_SAME);
	r.place.forced = true; /* whatever is held */
	round_read_text(&r, 200, FULL("application", "{\"a\":\"1\"}"));
	assert_int_equal(r.verdict, KIND_NEW);
	r.place.forced = false;
	held.absent = true;
	round_read_text(&r, 200, FULL("application", "{\"a\":\"1\"}"));
	assert_int_equal(r.verdict, KIND_NEW);
	held.absent = false;
	held.etag = newer; /* one that was rolled back: equality counts */
	round_read_text(&r, 200, FULL("application", "{\"a\":\"1\"}"));
	assert_int_equal(r.verdict, KIND_NEW);
	round_end(&r);
}

static void read__changes_to_what_is_held__ask_for_the_whole(void **state)
{
	static const char *const table[] = {
		CHANGES("[" CHANGE("a", "\"2\"", "MODIFIED") "," CHANGE(
			"b", "null", "DELETED") "]"),
		CHANGES("[" CHANGE("c", "\"3\"", "ADDED") "]"),
		CHANGES("[]"),
		CHANGES("null"),
		CONFIG("application",
			"\"configurations\":{},\"releaseKey\":\"" KEY
			"\",\"configSyncType\":\"INCREMENTAL_SYNC\",\"configurationChanges\":[]"),
	};
	struct part held = {.etag = old_key};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct round r;

		begin(&r, "/app/default/application");
		r.place.held = &held;
		round_read_text(&r, 200, table[i]);
		assert_int_equal(r.verdict, KIND_WHOLE);
		/* what is asked then names no release, and cannot be answered so again */
		r.place.held = NULL;
		assert_int_equal(kind_apollo.build(&r.place, &r.request, r.answer.why), 0);
		assert_null(strstr(r.request.url.data, "releaseKey"));
		round_read_text(&r, 200, table[i]);
		assert_int_not_equal(r.verdict, KIND_WHOLE);
		round_end(&r);
	}
}

static void read__a_refused_signature__tells_of_key_and_clock(void **state)
{
	struct round r;

	(void)state;
	begin(&r, "/app/default/application");
	r.server.secret_file = secret_file;
	round_read_text(&r, 401, "{\"message\":\"RequestTimeTooSkewed " SECRET "\"}");
	assert_int_equal(r.verdict, KIND_FAILED);
	assert_int_equal(r.answer.cause, KIND_CAUSE_FORBIDDEN);
	assert_non_null(strstr(r.answer.why, "clock"));
	assert_null(strstr(r.answer.why, SECRET));
	r.server.secret_file = NULL;
	round_read_text(&r, 401, "");
	assert_int_equal(r.answer.cause, KIND_CAUSE_FORBIDDEN);
	assert_non_null(strstr(r.answer.why, "auth: access_key"));
	round_end(&r);
}

static void read__too_much__is_refused(void **state)
{
	char body[2000], text[1100];
	struct round r;

	(void)state;
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	begin(&r, "/a/b/application");
	snprintf(body, sizeof(body), "{\"configurations\":{\"a\":\"%s\"},\"releaseKey\":\"k\"}",
		text);
	round_read_text(&r, 200, body);
	assert_int_equal(r.verdict, KIND_FAILED);
	assert_non_null(strstr(r.answer.why, "max_size"));
	r.place.path = "/a/b/a.yaml";
	snprintf(body, sizeof(body),
		"{\"configurations\":{\"content\":\"%s\"},\"releaseKey\":\"k\"}", text);
	round_read_text(&r, 200, body);
	assert_int_equal(r.verdict, KIND_FAILED);
	assert_non_null(strstr(r.answer.why, "max_size"));
	snprintf(body, sizeof(body),
		"{\"configurations\":{\"content\":\"x\"},\"releaseKey\":\"%s\"}", text);
	round_read_text(&r, 200, body);
	assert_int_equal(r.verdict, KIND_FAILED);
	assert_non_null(strstr(r.answer.why, "too long"));
	round_end(&r);
}

/* ---- watches ---- */

#define MAX_TOLD 8

struct told {
	unsigned count[MAX_TOLD];
};

static void changed(void *arg, size_t item, const char *key, size_t key_len, const char *version)
{
	struct told *told = arg;

	assert_true(item < MAX_TOLD);
	assert_null(key);
	assert_int_equal(key_len, 0);
	assert_null(version);
	told->count[item]++;
}

static void watch__the_list__is_in_the_url(void **state)
{
	struct kind_watched items[] = {{.path = "/a+b/c d/application", .version = ""},
		{.path = "/a+b/c d/x&\"\xc3\xbc.yaml", .version = KEY, .position = 43}};
	struct round r;
	struct kind_watch w = {.place = &r.place, .items = items, .count = 2};

	(void)state;
	begin(&r, items[0].path);
	r.server.datacenter = datacenter;
	assert_int_equal(kind_apollo.watch_build(&w, &r.request, r.answer.why), 0);
	assert_string_equal(r.request.method, "GET");
	assert_string_equal(r.request.url.data,
		"http://apollo:8080/notifications/v2?appId=a%2Bb&cluster=c%20d&notifications=%5B%7B"
		"%22namespaceName%22:%22application%22,%22notificationId%22:-1%7D,%7B"
		"%22namespaceName%22:%22x%26%5C%22%C3%BC.yaml%22,%22notificationId%22:42%7D%5D"
		"&dataCenter=eu%201");
	assert_int_equal(r.request.header_count, 0);
	assert_true(r.request.hold_ms == 90000);
	assert_false(r.request.conditional);
	round_end(&r);
}

static void watch__as_many_as_there_may_be__fit_into_a_url(void **state)
{
	struct kind_watched items[KIND_MAX_WATCHED];
	struct round r;
	struct kind_watch w = {.place = &r.place, .items = items, .count = KIND_MAX_WATCHED};

	(void)state;
	for (size_t i = 0; i < KIND_MAX_WATCHED; i++)
		items[i] = (struct kind_watched){
			.path = "/100004458/default/a-namespace-of-32-characters.yaml",
			.version = "",
			.position = 123456789};
	begin(&r, items[0].path);
	r.place.secret = SECRET;
	assert_int_equal(kind_apollo.watch_build(&w, &r.request, r.answer.why), 0);
	assert_int_equal(r.request.header_count, 2);
	round_end(&r);
}

static void watch__one_app_and_cluster__go_together(void **state)
{
	static const struct {
		const char *a, *b;
		bool together;
	} table[] = {
		{"/app/default/a", "/app/default/b", true},
		{"/app/default/a", "app/default/b.yaml", true},
		{"/app/default/a", "/app/other/a", false},
		{"/app/default/a", "/app/defaul/a", false},
		{"/app/defaul/a", "/app/default/a", false},
		{"/app/default/a", "/ap/default/a", false},
		{"/ap/default/a", "/app/default/a", false},
		{"/app/default/a", "/app/default", false},
		{"/app", "/app/default/a", false},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++)
		if (kind_apollo.together(table[i].a, table[i].b) != table[i].together)
			fail_msg("%s, %s", table[i].a, table[i].b);
}

#define NOTE(space, id) "{\"namespaceName\":\"" space "\",\"notificationId\":" id "}"

static void watch__each_answer__tells_what_changed(void **state)
{
	static const struct {
		long status;
		const char *body;
		int error;
		unsigned told[4]; /* of application, FX.x.properties, web.yaml, WEB.yaml */
		uint64_t position[2];
	} table[] = {
		{304, "", 0, {0, 0, 0, 0}, {0, 11}},
		{200,
			"[{\"namespaceName\":\"application\",\"notificationId\":101,\"messages\":{"
			"\"details\":{\"app+default+application\":101}}}]",
			0, {1, 0, 0, 0}, {102, 11}},
		{200, "[" NOTE("application", "1") "," NOTE("FX.x", "12") "]", 0, {1, 1, 0, 0},
			{2, 13}},
		{200, "[" NOTE("FX.x", "10") "]", 0, {0, 0, 0, 0}, {0, 11}}, /* as it was */
		{200, "[" NOTE("FX.x", "9") "]", 0, {0, 1, 0, 0}, {0, 10}},  /* back */
		{200, "[" NOTE("fx.x.properties", "9") "]", 0, {0, 1, 0, 0}, {0, 10}},
		{200, "[" NOTE("application", "-1") "]", 0, {0, 0, 0, 0}, {0, 11}},
		{200, "[" NOTE("application", "0") "]", 0, {1, 0, 0, 0}, {1, 11}},
		{200, "[" NOTE("application", "9223372036854775807") "]", 0, {1, 0, 0, 0},
			{UINT64_C(1) << 63, 11}},
		{200, "[" NOTE("web.yaml", "5") "]", 0, {0, 0, 1, 1}, {0, 11}},
		{200, "[" NOTE("other", "5") "," NOTE("application", "5") "]", 0, {1, 0, 0, 0},
			{6, 11}},
		{200, "[" NOTE("application", "5") "," NOTE("application", "6") "]", 0,
			{2, 0, 0, 0}, {7, 11}},
		/* not about what was asked for, or no list */
		{200, "[]", -EPROTO, {0, 0, 0, 0}, {0, 11}},
		{200, "[" NOTE("other", "5") "]", -EPROTO, {0, 0, 0, 0}, {0, 11}},
		{200, "[" NOTE("web.yam", "5") "]", -EPROTO, {0, 0, 0, 0}, {0, 11}},
		{200, "[" NOTE("application", "-2") "]", -EPROTO, {0, 0, 0, 0}, {0, 11}},
		{200, "[" NOTE("application", "\"5\"") "]", -EPROTO, {0, 0, 0, 0}, {0, 11}},
		{200, "[" NOTE("application", "1.5") "]", -EPROTO, {0, 0, 0, 0}, {0, 11}},
		{200, "[{\"namespaceName\":\"application\"}]", -EPROTO, {0, 0, 0, 0}, {0, 11}},
		{200, "[{\"namespaceName\":1,\"notificationId\":1}]", -EPROTO, {0, 0, 0, 0},
			{0, 11}},
		{200, "[{\"notificationId\":1}]", -EPROTO, {0, 0, 0, 0}, {0, 11}},
		{200, "[1]", -EPROTO, {0, 0, 0, 0}, {0, 11}},
		{200, "[" NOTE("application", "5") ",1]", -EPROTO, {1, 0, 0, 0}, {6, 11}},
		{200, NOTE("application", "5"), -EPROTO, {0, 0, 0, 0}, {0, 11}},
		{200, "[" NOTE("application", "5"), -EPROTO, {0, 0, 0, 0}, {0, 11}},
		{200, "", -EPROTO, {0, 0, 0, 0}, {0, 11}},
		{200, "<html></html>", -EPROTO, {0, 0, 0, 0}, {0, 11}},
		{401, "", -EACCES, {0, 0, 0, 0}, {0, 11}},
		{403, "", -EACCES, {0, 0, 0, 0}, {0, 11}},
		{400, "", -EPROTO, {0, 0, 0, 0}, {0, 11}},
		{404, "", -EPROTO, {0, 0, 0, 0}, {0, 11}},
		{429, "", -EAGAIN, {0, 0, 0, 0}, {0, 11}},
		{500, "", -EAGAIN, {0, 0, 0, 0}, {0, 11}},
		{503, "", -EAGAIN, {0, 0, 0, 0}, {0, 11}},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct kind_watched items[] = {{.path = "/app/default/application", .version = ""},
			{.path = "/app/default/FX.x.properties", .version = "", .position = 11},
			{.path = "/app/default/web.yaml", .version = ""},
			{.path = "/app/default/WEB.yaml", .version = ""}};
		struct told told = {{0}};
		struct round r;
		struct kind_watch w = {.place = &r.place,
			.items = items,
			.count = 4,
			.changed = changed,
			.arg = &told};
		int e;

		begin(&r, items[0].path);
		r.response.status = table[i].status;
		buffer_append_string(&r.response.body, table[i].body);
		e = kind_apollo.watch_read(&w, &r.response, r.answer.why);
		if (e != table[i].error ||
			memcmp(told.count, table[i].told, sizeof(table[i].told)) != 0 ||
			items[0].position != table[i].position[0] ||
			items[1].position != table[i].position[1])
			fail_msg("row %zu: %d, told of %u %u %u %u, at %" PRIu64 " %" PRIu64, i, e,
				told.count[0], told.count[1], told.count[2], told.count[3],
				items[0].position, items[1].position);
		assert_true(e == 0 || strlen(r.answer.why) > 0);
		round_end(&r);
	}
}

static void watch__an_answer_beyond_the_bound__is_not_read(void **state)
{
	(void)state;
	for (size_t more = 0; more < 2; more++) {
		struct kind_watched item = {.path = "/app/default/application", .version = ""};
		struct told told = {{0}};
		struct round r;
		struct kind_watch w = {.place = &r.place,
			.items = &item,
			.count = 1,
			.changed = changed,
			.arg = &told};
		struct buffer *body = &r.response.body;

		begin(&r, item.path);
		r.response.status = 200;
		buffer_append_string(body, "[" NOTE("application", "1") "]");
		while (body->len < KIND_MAX_NEWS + more)
			buffer_append(body, " ", 1);
		assert_int_equal(body->error, 0);
		assert_int_equal(
			kind_apollo.watch_read(&w, &r.response, r.answer.why), more ? -EPROTO : 0);
		assert_int_equal(told.count[0], !more);
		round_end(&r);
	}
}

/* ---- a server of the test's own ---- */

static void decode(const char *text, struct buffer *out)
{
	char digits[3] = "", c;

	for (; *text && *text != '&'; text++) {
		c = *text;
		if (c == '%') {
			memcpy(digits, text + 1, 2);
			c = (char)strtol(digits, NULL, 16);
			text += 2;
		}
		buffer_append(out, &c, 1);
	}
}

static void random_space(size_t i, char path[40])
{
	static const char bytes[] = "ab%+ &=?#:,01\xc3\xbc\"\\\t\x7f~";
	int n = snprintf(path, 40, "/app/c/%zu", i);
	size_t len = random_below(8);

	for (size_t k = 0; k < len; k++)
		path[n++] = bytes[random_below(sizeof(bytes) - 1)];
	/* no half of a character, which JSON could not hold */
	for (int k = 0; k < n; k++)
		if ((path[k] & 0x80) != 0)
			path[k] = 'u';
	path[n] = '\0';
}

/* What the server reads is each namespace and the id the watch has of it; it tells of those that
 * differ, and the watch tells just of them, and has the new ids. */
static void watch__random_names_and_ids__are_in_step_with_a_server(void **state)
{
	char paths[MAX_TOLD][40];

	(void)state;
	model_random_start();
	for (; model_random.step < 2000; model_random.step++) {
		struct kind_watched items[MAX_TOLD];
		struct told told = {{0}};
		int64_t ids[MAX_TOLD];
		struct buffer list;
		struct document_error e = {0};
		struct document *d = document_new();
		const struct node *n;
		size_t count = 1 + random_below(MAX_TOLD), differ = 0;
		struct round r;
		struct kind_watch w = {.place = &r.place,
			.items = items,
			.count = count,
			.changed = changed,
			.arg = &told};

		for (size_t i = 0; i < count; i++) {
			random_space(i, paths[i]);
			items[i] = (struct kind_watched){
				.path = paths[i], .version = "", .position = random_below(4)};
			ids[i] = (int64_t)random_below(4) - 1;
		}
		begin(&r, paths[0]);
		buffer_init(&list, 10000);
		CHECK(kind_apollo.watch_build(&w, &r.request, r.answer.why) == 0);
		decode(strstr(r.request.url.data, "&notifications=") + 15, &list);
		CHECK(json_parse(list.data, list.len, 0, d, &e) == 0);
		n = document_root(d)->first;
		buffer_append_string(&r.response.body, "[");
		for (size_t i = 0; i < count; i++, n = n->next) {
			CHECK(strcmp(node_find(n, "namespaceName")->text,
				      paths[i] + strlen("/app/c/")) == 0);
			CHECK(node_find(n, "notificationId")->integer ==
				(int64_t)items[i].position - 1);
			if (node_find(n, "notificationId")->integer == ids[i])
				continue;
			buffer_append_string(&r.response.body, differ++ ? ",{" : "{");
			json_writer_text(&r.response.body, "namespaceName",
				node_find(n, "namespaceName")->text);
			buffer_printf(&r.response.body, ",\"notificationId\":%" PRId64 "}", ids[i]);
		}
		CHECK(!n);
		buffer_append_string(&r.response.body, "]");
		r.response.status = differ ? 200 : 304;
		CHECK(kind_apollo.watch_read(&w, &r.response, r.answer.why) == 0);
		for (size_t i = 0; i < count; i++) {
			differ -= told.count[i];
			CHECK(told.count[i] <= 1 && (int64_t)items[i].position - 1 == ids[i]);
		}
		CHECK(differ == 0);
		document_free(d);
		buffer_fini(&list);
		round_end(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(build__each_place__is_a_url),
		cmocka_unit_test(build__a_path_that_is_not_app_cluster_and_namespace__is_refused),
		cmocka_unit_test(build__with_an_access_key__is_signed_as_it_is_sent),
		cmocka_unit_test(sign__the_numbers_of_the_reference__come_out),
		cmocka_unit_test(read__each_answer__gets_its_verdict),
		cmocka_unit_test(read__the_type__follows_the_kind_of_namespace),
		cmocka_unit_test(read__a_held_release__is_the_same_by_its_key_alone),
		cmocka_unit_test(read__changes_to_what_is_held__ask_for_the_whole),
		cmocka_unit_test(read__a_refused_signature__tells_of_key_and_clock),
		cmocka_unit_test(read__too_much__is_refused),
		cmocka_unit_test(watch__the_list__is_in_the_url),
		cmocka_unit_test(watch__as_many_as_there_may_be__fit_into_a_url),
		cmocka_unit_test(watch__one_app_and_cluster__go_together),
		cmocka_unit_test(watch__each_answer__tells_what_changed),
		cmocka_unit_test(watch__an_answer_beyond_the_bound__is_not_read),
		cmocka_unit_test(watch__random_names_and_ids__are_in_step_with_a_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

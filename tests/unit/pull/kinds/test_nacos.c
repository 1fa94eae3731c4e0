/*
 * Nacos: what is asked for, and what each answer means.
 *
 * Where the exchanges come from: the API of 1.x and 2.x from Nacos' open API guide and its
 * ConfigController, ConfigServletInner, LongPollingService and MD5Util (bodies, headers, the two
 * separators, the second decoding); the API of 3.x from its client API guide,
 * ConfigOpenApiController and ErrorCode; logins from both guides.
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
#include <openssl/evp.h>

#include "pull/kinds/kind.h"
#include "tests/unit/fixture/model_random.h"
#include "tests/unit/fixture/round.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define DOCUMENT "name: web\n"
#define MD5 "16be2da84889ac3b4f0690e4e9fa3172"
#define OTHER_MD5 "0123456789abcdef0123456789abcdef"
#define TOKEN "to.ken+/%"

static char user[] = "nacos", tenant[] = "dev-1", public[] = "public", empty[] = "",
	    other_md5[] = OTHER_MD5;

static void begin(struct round *r, unsigned api)
{
	round_begin(r, SETTINGS_NACOS, "http://nacos:8848", "/G/web");
	r->server.api = api;
}

static void check(struct round *r, long status, const char *body)
{
	round_read_text(r, status, body);
	assert_null(strstr(r->answer.why, TOKEN));
}

/* ---- requests ---- */

static void build__each_place__is_a_url(void **state)
{
	static const struct {
		unsigned api;
		const char *base, *path, *token;
		char *namespace;
		const char *url;
	} table[] = {
		{1, "http://nacos:8848", "/G/web", NULL, NULL,
			"http://nacos:8848/nacos/v1/cs/configs?dataId=web&group=G"},
		{1, "http://nacos:8848/nacos", "/G/web", NULL, NULL,
			"http://nacos:8848/nacos/v1/cs/configs?dataId=web&group=G"},
		{1, "https://proxy/teams/config", "/G/web", NULL, NULL,
			"https://proxy/teams/config/v1/cs/configs?dataId=web&group=G"},
		{1, "http://[::1]:8848", "/G/web", NULL, NULL,
			"http://[::1]:8848/nacos/v1/cs/configs?dataId=web&group=G"},
		{1, "http://nacos:8848", "/DEFAULT_GROUP/web.yaml", NULL, tenant,
			"http://nacos:8848/nacos/v1/cs/"
			"configs?dataId=web.yaml&group=DEFAULT_GROUP&tenant=dev-1"},
		{1, "http://nacos:8848", "/G/web", TOKEN, public,
			"http://nacos:8848/nacos/v1/cs/"
			"configs?dataId=web&group=G&accessToken=to.ken%2B%2F%25"},
		{1, "http://nacos:8848", "/G/web", TOKEN, tenant,
			"http://nacos:8848/nacos/v1/cs/"
			"configs?dataId=web&group=G&tenant=dev-1&accessToken=to.ken%2B%2F%25"},
		{1, "http://nacos:8848", "/a b+c/100%&=?#\xc3\xbc:~", NULL, empty,
			"http://nacos:8848/nacos/v1/cs/"
			"configs?dataId=100%25%26%3D%3F%23%C3%BC%3A~&group=a%20b%2Bc"},
		{3, "http://nacos:8848", "/G/web", NULL, NULL,
			"http://nacos:8848/nacos/v3/client/cs/config?dataId=web&groupName=G"},
		{3, "http://nacos:8848/x", "/G/a b+", TOKEN, tenant,
			"http://nacos:8848/x/v3/client/cs/"
			"config?dataId=a%20b%2B&groupName=G&namespaceId=dev-1&accessToken=to.ken%2B"
			"%2F%25"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct round r;

		begin(&r, table[i].api);
		r.place.base = table[i].base;
		r.place.path = table[i].path;
		r.place.token = table[i].token;
		r.server.namespace = table[i].namespace;
		assert_int_equal(kind_nacos.build(&r.place, &r.request, r.answer.why), 0);
		assert_string_equal(r.request.method, "GET");
		assert_string_equal(r.request.url.data, table[i].url);
		assert_int_equal(r.request.header_count, 0);
		assert_int_equal(r.request.body.len, 0);
		assert_false(r.request.conditional);
		assert_false(r.request.basic);
		round_end(&r);
	}
}

static void build__a_path_that_is_not_group_and_data_id__is_refused(void **state)
{
	static const char *const table[] = {
		"", "/", "/G", "/G/", "//web", "/G/a/b", "/G/web/", "G", "/G/a\x01", "/G\x02x/a"};
	char *lengthy = malloc(KIND_MAX_URL);
	struct round r;

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct kind_watched item = {.path = table[i], .version = ""};
		struct kind_watch w = {.place = &r.place, .items = &item, .count = 1};

		begin(&r, 1);
		r.place.path = table[i];
		assert_int_equal(kind_nacos.build(&r.place, &r.request, r.answer.why), -EINVAL);
		assert_non_null(strstr(r.answer.why, "/GROUP/DATAID"));
		assert_int_equal(kind_nacos.watch_build(&w, &r.request, r.answer.why), -EINVAL);
		round_end(&r);
	}
	memset(lengthy, 'x', KIND_MAX_URL);
	memcpy(lengthy, "/G/", 3);
	lengthy[KIND_MAX_URL - 1] = '\0';
	begin(&r, 1);
	r.place.path = lengthy;
	assert_int_equal(kind_nacos.build(&r.place, &r.request, r.answer.why), -EMSGSIZE);
	round_end(&r);
	free(lengthy);
}

/* ---- answers of 1.x and 2.x ---- */

static void read__each_answer__gets_its_verdict(void **state)
{
	static const struct {
		long status;
		const char *md5, *body;
		char *user;
		bool framed;
		enum kind_verdict verdict;
		enum kind_cause cause;
		const char *why;
	} table[] = {
		{200, MD5, DOCUMENT, NULL, true, KIND_NEW, KIND_CAUSE_NONE, ""},
		{200, "", DOCUMENT, user, true, KIND_NEW, KIND_CAUSE_NONE, ""},
		{200, OTHER_MD5, DOCUMENT, NULL, true, KIND_FAILED, KIND_CAUSE_ANSWER, "MD5"},
		{200, "Fr4tqEiJrDtPBpDk6foxcg==", DOCUMENT, NULL, true, KIND_FAILED,
			KIND_CAUSE_ANSWER, "MD5"},
		{200, MD5, DOCUMENT, NULL, false, KIND_FAILED, KIND_CAUSE_ANSWER, "length"},
		{200, MD5, "", NULL, true, KIND_FAILED, KIND_CAUSE_EMPTY, "empty"},
		{404, "", "config data not exist\n", NULL, true, KIND_ABSENT, KIND_CAUSE_NONE,
			"no such document"},
		{404, "", "config data not exist", user, true, KIND_ABSENT, KIND_CAUSE_NONE,
			"no such document"},
		{404, "", "", NULL, true, KIND_FAILED, KIND_CAUSE_NOT_FOUND, "path"},
		{404, "", "{\"status\":404,\"error\":\"Not Found\",\"path\":\"/v1/cs/configs\"}",
			NULL, true, KIND_FAILED, KIND_CAUSE_NOT_FOUND, "api: 3"},
		{409, "", "requested file is being modified, please try later.\n", NULL, true,
			KIND_FAILED, KIND_CAUSE_ANSWER, "being changed"},
		{410, "", "{\"code\":40000,\"message\":\"Current API will be deprecated\"}", NULL,
			true, KIND_FAILED, KIND_CAUSE_NOT_FOUND, "api: 3"},
		{403, "", "<html>token expired!</html>", user, true, KIND_UNAUTHORIZED,
			KIND_CAUSE_FORBIDDEN, "token"},
		{401, "", "", user, true, KIND_UNAUTHORIZED, KIND_CAUSE_FORBIDDEN, "token"},
		{403, "", "<html>unknown user!</html>", NULL, true, KIND_FAILED,
			KIND_CAUSE_FORBIDDEN, "user"},
		{429, "", "", NULL, true, KIND_USUAL, KIND_CAUSE_NONE, ""},
		{500, "", "caused: x", NULL, true, KIND_USUAL, KIND_CAUSE_NONE, ""},
		{503, "", "", user, true, KIND_USUAL, KIND_CAUSE_NONE, ""},
		{304, "", "", NULL, true, KIND_USUAL, KIND_CAUSE_NONE, ""},
		{400, "", "invalid dataId", NULL, true, KIND_USUAL, KIND_CAUSE_NONE, ""},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct round r;

		begin(&r, 1);
		r.server.user = table[i].user;
		r.response.framed = table[i].framed;
		snprintf(
			r.response.content_md5, sizeof(r.response.content_md5), "%s", table[i].md5);
		check(&r, table[i].status, table[i].body);
		if (r.verdict != table[i].verdict || r.answer.cause != table[i].cause ||
			!strstr(r.answer.why, table[i].why))
			fail_msg("row %zu: verdict %d, cause %d, why %s", i, (int)r.verdict,
				(int)r.answer.cause, r.answer.why);
		assert_int_equal(r.answer.why[0] == '\0', table[i].why[0] == '\0');
		if (r.verdict == KIND_NEW) {
			assert_string_equal(r.answer.version, MD5);
			assert_string_equal(r.answer.body.data, DOCUMENT);
			assert_int_equal(r.answer.type, SETTINGS_TYPE_YAML);
			assert_string_equal(r.answer.note, "");
		}
		round_end(&r);
	}
}

static void read__the_md5_in_capitals__is_the_same_one(void **state)
{
	struct round r;

	(void)state;
	begin(&r, 1);
	for (size_t i = 0; i < sizeof(MD5); i++)
		r.response.content_md5[i] =
			(char)(MD5[i] >= 'a' && MD5[i] <= 'f' ? MD5[i] - 'a' + 'A' : MD5[i]);
	check(&r, 200, DOCUMENT);
	assert_int_equal(r.verdict, KIND_NEW);
	assert_string_equal(r.answer.version, MD5);
	round_end(&r);
}

/* As where libcrypto is set up by FIPS 140. */
static void read__where_md5_is_forbidden__the_server_is_believed_and_it_is_said(void **state)
{
	struct round r;

	(void)state;
	begin(&r, 1);
	assert_int_equal(EVP_default_properties_enable_fips(NULL, 1), 1);
	snprintf(r.response.content_md5, sizeof(r.response.content_md5), OTHER_MD5);
	check(&r, 200, DOCUMENT);
	assert_int_equal(r.verdict, KIND_NEW);
	assert_string_equal(r.answer.version, OTHER_MD5);
	assert_non_null(strstr(r.answer.note, "not checked"));
	r.response.content_md5[0] = '\0';
	check(&r, 200, DOCUMENT);
	assert_int_equal(EVP_default_properties_enable_fips(NULL, 0), 1);
	assert_int_equal(r.verdict, KIND_FAILED);
	assert_non_null(strstr(r.answer.why, "MD5"));
	round_end(&r);
}

static void read__what_is_held__is_the_same_by_its_md5_alone(void **state)
{
	char md5[] = MD5;
	struct part held = {.etag = md5};

	(void)state;
	for (unsigned api = 1; api <= 3; api += 2) {
		const char *body = api == 1
					   ? DOCUMENT
					   : "{\"code\":0,\"data\":{\"content\":\"name: web\\n\"}}";
		struct round r;

		begin(&r, api);
		r.place.held = &held;
		held.etag = md5;
		check(&r, 200, body);
		assert_int_equal(r.verdict, KIND_SAME);
		held.absent = true;
		check(&r, 200, body);
		assert_int_equal(r.verdict, KIND_NEW);
		held.absent = false;
		r.place.forced = true; /* whatever is held */
		check(&r, 200, body);
		assert_int_equal(r.verdict, KIND_NEW);
		r.place.forced = false;
		held.etag = other_md5; /* neither older nor newer: another one */
		check(&r, 200, body);
		assert_int_equal(r.verdict, KIND_NEW);
		held.etag = NULL;
		check(&r, 200, body);
		assert_int_equal(r.verdict, KIND_NEW);
		round_end(&r);
	}
}

static void read__the_type__is_told_by_the_setting_then_the_name_then_the_server(void **state)
{
	static const struct {
		enum settings_type configured;
		const char *path, *config_type, *content_type;
		enum settings_type type;
	} table[] = {
		{SETTINGS_TYPE_AUTO, "/G/web", "", "", SETTINGS_TYPE_YAML},
		{SETTINGS_TYPE_AUTO, "/G/web", "json", "", SETTINGS_TYPE_JSON},
		{SETTINGS_TYPE_AUTO, "/G/web", "JSON", "text/plain", SETTINGS_TYPE_JSON},
		{SETTINGS_TYPE_AUTO, "/G/web", "yaml", "application/json", SETTINGS_TYPE_YAML},
		{SETTINGS_TYPE_AUTO, "/G/web", "text", "application/json", SETTINGS_TYPE_JSON},
		{SETTINGS_TYPE_AUTO, "/G/web", "properties", "text/plain", SETTINGS_TYPE_YAML},
		{SETTINGS_TYPE_AUTO, "/G/web.yml", "json", "", SETTINGS_TYPE_YAML},
		{SETTINGS_TYPE_AUTO, "/G/web.json", "yaml", "", SETTINGS_TYPE_JSON},
		{SETTINGS_TYPE_BYTES, "/G/web.json", "json", "", SETTINGS_TYPE_BYTES},
		{SETTINGS_TYPE_YAML, "/G/web.json", "json", "", SETTINGS_TYPE_YAML},
	};
	char body[200];

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct round r;

		begin(&r, 1);
		r.place.path = table[i].path;
		r.place.type = table[i].configured;
		snprintf(r.response.config_type, sizeof(r.response.config_type), "%s",
			table[i].config_type);
		snprintf(r.response.content_type, sizeof(r.response.content_type), "%s",
			table[i].content_type);
		check(&r, 200, DOCUMENT);
		assert_int_equal(r.verdict, KIND_NEW);
		assert_int_equal(r.answer.type, table[i].type);
		if (strcmp(table[i].config_type, "text") != 0) { /* 3.x's Content-Type is its own */
			r.server.api = 3;
			snprintf(body, sizeof(body),
				"{\"code\":0,\"data\":{\"content\":\"x\",\"contentType\":\"%s\"}}",
				table[i].config_type);
			check(&r, 200, body);
			assert_int_equal(r.answer.type, table[i].type);
		}
		round_end(&r);
	}
}

/* ---- answers of 3.x ---- */

#define DATA(md5, key)                                                                             \
	"{\"code\":0,\"message\":\"success\",\"data\":{\"resultCode\":200,\"content\":\"name: "    \
	"web\\n\",\"contentType\":\"yaml\",\"md5\":" md5 ",\"encryptedDataKey\":" key              \
	",\"lastModified\":1712345678901,\"beta\":false,\"tag\":null}}"
#define NOT_FOUND "{\"code\":20004,\"message\":\"resource not found\",\"data\":null}"

static void read_3__each_answer__gets_its_verdict(void **state)
{
	static const struct {
		long status;
		const char *body;
		char *user;
		enum kind_verdict verdict;
		enum kind_cause cause;
		const char *why;
	} table[] = {
		{200, DATA("\"" MD5 "\"", "\"\""), NULL, KIND_NEW, KIND_CAUSE_NONE, ""},
		{200, DATA("null", "null"), user, KIND_NEW, KIND_CAUSE_NONE, ""},
		{200, "{\"code\":0,\"data\":{\"content\":\"name: web\\n\"}}", NULL, KIND_NEW,
			KIND_CAUSE_NONE, ""},
		{200, DATA("\"" OTHER_MD5 "\"", "\"\""), NULL, KIND_FAILED, KIND_CAUSE_ANSWER,
			"MD5"},
		{200, DATA("\"" MD5 "\"", "\"key\""), NULL, KIND_FAILED, KIND_CAUSE_ANSWER,
			"encrypted"},
		{200, "{\"code\":0,\"data\":{\"content\":\"\"}}", NULL, KIND_FAILED,
			KIND_CAUSE_EMPTY, "empty"},
		{200, "{\"code\":0,\"data\":{\"content\":null}}", NULL, KIND_FAILED,
			KIND_CAUSE_ANSWER, "no content"},
		{200, "{\"code\":0,\"data\":{\"content\":1}}", NULL, KIND_FAILED, KIND_CAUSE_ANSWER,
			"no content"},
		{200, "{\"code\":0,\"data\":\"x\"}", NULL, KIND_FAILED, KIND_CAUSE_ANSWER,
			"no content"},
		{200, "{\"code\":0}", NULL, KIND_FAILED, KIND_CAUSE_ANSWER, "no content"},
		{200, NOT_FOUND, NULL, KIND_ABSENT, KIND_CAUSE_NONE, "no such document"},
		{404, NOT_FOUND, user, KIND_ABSENT, KIND_CAUSE_NONE, "no such document"},
		{503, NOT_FOUND, NULL, KIND_USUAL, KIND_CAUSE_NONE, ""},
		{200, "{\"code\":22001,\"message\":\"namespace not exist\",\"data\":null}", NULL,
			KIND_FAILED, KIND_CAUSE_NOT_FOUND, "namespace"},
		{200, "{\"code\":20005,\"message\":\"resource conflict\",\"data\":null}", NULL,
			KIND_FAILED, KIND_CAUSE_ANSWER, "being changed"},
		{200, "{\"code\":30000,\"message\":\"" TOKEN "\",\"data\":null}", user, KIND_FAILED,
			KIND_CAUSE_ANSWER, "the code 30000"},
		{500, "{\"code\":30000,\"message\":\"server error\",\"data\":null}", NULL,
			KIND_USUAL, KIND_CAUSE_NONE, ""},
		{403,
			"{\"code\":10001,\"message\":\"access denied\",\"data\":\"Code: 401, "
			"Message: Invalid signature.\"}",
			user, KIND_UNAUTHORIZED, KIND_CAUSE_FORBIDDEN, "token"},
		{200, "{\"code\":10001,\"message\":\"access denied\"}", NULL, KIND_FAILED,
			KIND_CAUSE_FORBIDDEN, "user"},
		{403, "", user, KIND_UNAUTHORIZED, KIND_CAUSE_FORBIDDEN, "token"},
		{401, "<html>", NULL, KIND_FAILED, KIND_CAUSE_FORBIDDEN, "user"},
		{404, "<html>", NULL, KIND_FAILED, KIND_CAUSE_NOT_FOUND, "check the url"},
		{404, "{\"status\":404,\"error\":\"Not Found\"}", NULL, KIND_FAILED,
			KIND_CAUSE_NOT_FOUND, "check the url"},
		{410, "", NULL, KIND_FAILED, KIND_CAUSE_NOT_FOUND, "no answer of the API"},
		{410, "{\"code\":40000}", NULL, KIND_FAILED, KIND_CAUSE_NOT_FOUND,
			"no answer of the API"},
		{404, "{\"code\":0}", NULL, KIND_FAILED, KIND_CAUSE_NOT_FOUND,
			"no answer of the API"},
		{200, "", NULL, KIND_FAILED, KIND_CAUSE_ANSWER, "no answer of the API"},
		{200, DOCUMENT, NULL, KIND_FAILED, KIND_CAUSE_ANSWER, "no answer of the API"},
		{200, "{\"code\":0,\"data\":{\"content\":\"name", NULL, KIND_FAILED,
			KIND_CAUSE_ANSWER, "no answer of the API"},
		{200, "[]", NULL, KIND_FAILED, KIND_CAUSE_ANSWER, "no answer of the API"},
		{200, "{\"code\":\"0\"}", NULL, KIND_FAILED, KIND_CAUSE_ANSWER,
			"no answer of the API"},
		{409, "{\"code\":30000}", NULL, KIND_FAILED, KIND_CAUSE_ANSWER, "being changed"},
		{503, "", NULL, KIND_USUAL, KIND_CAUSE_NONE, ""},
		{429, "{\"code\":503}", NULL, KIND_USUAL, KIND_CAUSE_NONE, ""},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct round r;

		begin(&r, 3);
		r.server.user = table[i].user;
		check(&r, table[i].status, table[i].body);
		if (r.verdict != table[i].verdict || r.answer.cause != table[i].cause ||
			!strstr(r.answer.why, table[i].why))
			fail_msg("row %zu: verdict %d, cause %d, why %s", i, (int)r.verdict,
				(int)r.answer.cause, r.answer.why);
		assert_int_equal(r.answer.why[0] == '\0', table[i].why[0] == '\0');
		if (r.verdict == KIND_NEW) {
			assert_string_equal(r.answer.version, MD5);
			assert_string_equal(r.answer.body.data, DOCUMENT);
		}
		round_end(&r);
	}
}

static void read__a_document_over_the_limit__is_refused(void **state)
{
	struct round r;

	(void)state;
	for (unsigned api = 1; api <= 3; api += 2) {
		begin(&r, api);
		r.place.max_bytes = strlen(DOCUMENT) - 1;
		check(&r, 200, api == 1 ? DOCUMENT : DATA("null", "null"));
		assert_int_equal(r.verdict, KIND_FAILED);
		assert_int_equal(r.answer.cause, KIND_CAUSE_ANSWER);
		assert_non_null(strstr(r.answer.why, "max_size"));
		r.place.max_bytes++; /* of the document alone, not of what is around it */
		check(&r, 200, api == 1 ? DOCUMENT : DATA("null", "null"));
		assert_int_equal(r.verdict, KIND_NEW);
		round_end(&r);
	}
	assert_true(kind_nacos.wraps);
}

/* ---- logins ---- */

static void login__user_and_password__are_a_form(void **state)
{
	struct round r;

	(void)state;
	for (unsigned api = 1; api <= 3; api += 2) {
		begin(&r, api);
		r.place.user = "na c+s";
		r.place.password = "a&b=%\xc3\xbc";
		assert_int_equal(kind_nacos.login_build(&r.place, &r.request, r.answer.why), 0);
		assert_string_equal(r.request.method, "POST");
		assert_string_equal(r.request.url.data,
			api == 1 ? "http://nacos:8848/nacos/v1/auth/login"
				 : "http://nacos:8848/nacos/v3/auth/user/login");
		assert_int_equal(r.request.header_count, 1);
		assert_string_equal(
			r.request.headers[0], "Content-Type: application/x-www-form-urlencoded");
		assert_string_equal(
			r.request.body.data, "username=na%20c%2Bs&password=a%26b%3D%25%C3%BC");
		round_end(&r);
	}
}

static void login__each_answer__is_a_token_or_an_error(void **state)
{
	static const struct {
		long status;
		const char *body, *token;
		uint64_t lifetime_ms;
		int error;
	} table[] = {
		{200,
			"{\"accessToken\":\"e.y.J\",\"tokenTtl\":18000,\"globalAdmin\":true,"
			"\"username\":\"nacos\"}",
			"e.y.J", 16200000, 0},
		{200, "{\"code\":0,\"data\":{\"accessToken\":\"e\",\"tokenTtl\":10}}", "e", 9000,
			0},
		{200, "{\"accessToken\":\"e\"}", "e", 0, 0},
		{200, "{\"accessToken\":\"e\",\"tokenTtl\":0}", "e", 0, 0},
		{200, "{\"accessToken\":\"e\",\"tokenTtl\":-5}", "e", 0, 0},
		{200, "{\"accessToken\":\"e\",\"tokenTtl\":\"5\"}", "e", 0, 0},
		{200, "{\"accessToken\":\"e\",\"tokenTtl\":9223372036854775807}", "e",
			UINT64_C(900) * 366 * 86400, 0},
		{200, "{\"accessToken\":\"\"}", NULL, 0, -EPROTO},
		{200, "{\"accessToken\":null}", NULL, 0, -EPROTO},
		{200, "{\"accessToken\":1}", NULL, 0, -EPROTO},
		{200, "{}", NULL, 0, -EPROTO},
		{200, "[]", NULL, 0, -EPROTO},
		{200, "", NULL, 0, -EPROTO},
		{200, "{\"accessToken\":\"e\"", NULL, 0, -EPROTO},
		{403, "unknown user!", NULL, 0, -EACCES},
		{401, "", NULL, 0, -EACCES},
		{404, "", NULL, 0, -EPROTO},
		{302, "", NULL, 0, -EPROTO},
		{429, "", NULL, 0, -EAGAIN},
		{500, "", NULL, 0, -EAGAIN},
		{503, "", NULL, 0, -EAGAIN},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		uint64_t lifetime_ms = 1;
		char *token = NULL;
		struct round r;

		begin(&r, 1);
		r.response.status = table[i].status;
		buffer_append_string(&r.response.body, table[i].body);
		assert_int_equal(
			kind_nacos.login_read(&r.response, &token, &lifetime_ms, r.answer.why),
			table[i].error);
		if (table[i].token) {
			assert_string_equal(token, table[i].token);
			assert_true(lifetime_ms == table[i].lifetime_ms);
		} else {
			assert_null(token);
			assert_true(strlen(r.answer.why) > 0);
		}
		free(token);
		round_end(&r);
	}
}

static void login__a_token_that_is_too_long__is_none(void **state)
{
	uint64_t lifetime_ms;
	char *token = NULL;
	struct round r;

	(void)state;
	begin(&r, 1);
	buffer_printf(&r.response.body, "{\"accessToken\":\"%0*d\"}", KIND_MAX_TOKEN + 1, 0);
	assert_int_equal(
		kind_nacos.login_read(&r.response, &token, &lifetime_ms, r.answer.why), -EPROTO);
	round_end(&r);
}

/* ---- watches ---- */

#define MAX_TOLD 64

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

static void watch__each_list__is_spelled_with_the_two_separators(void **state)
{
	static const struct {
		char *namespace;
		struct kind_watched items[2];
		size_t count;
		const char *body;
	} table[] = {
		{NULL, {{.path = "/G/web", .version = MD5}}, 1, "web%02G%02" MD5 "%01"},
		{NULL, {{.path = "/G/web", .version = ""}}, 1, "web%02G%02%01"},
		{public, {{.path = "/G/web", .version = ""}}, 1, "web%02G%02%01"},
		{tenant, {{.path = "/G/web", .version = MD5}, {.path = "/H/b", .version = ""}}, 2,
			"web%02G%02" MD5 "%02dev-1%01b%02H%02%02dev-1%01"},
		/* held from something else: asked for as if nothing were */
		{NULL, {{.path = "/G/web", .version = "\"an etag\""}}, 1, "web%02G%02%01"},
		/* decoded once: 100%25 a%2Bb, and as the others are */
		{NULL, {{.path = "/a+b/100%", .version = ""}}, 1, "100%2525%02a%252Bb%02%01"},
		{NULL, {{.path = "/a b/\xc3\xbc&=", .version = ""}}, 1,
			"%C3%BC%26%3D%02a%20b%02%01"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct kind_watched items[2] = {table[i].items[0], table[i].items[1]};
		struct round r;
		struct kind_watch w = {.place = &r.place, .items = items, .count = table[i].count};

		begin(&r, 1);
		r.server.namespace = table[i].namespace;
		r.place.token = i == 0 ? TOKEN : NULL;
		assert_int_equal(kind_nacos.watch_build(&w, &r.request, r.answer.why), 0);
		assert_string_equal(r.request.method, "POST");
		assert_string_equal(r.request.url.data,
			i == 0 ? "http://nacos:8848/nacos/v1/cs/configs/"
				 "listener?accessToken=to.ken%2B%2F%25"
			       : "http://nacos:8848/nacos/v1/cs/configs/listener");
		assert_int_equal(strncmp(r.request.body.data, "Listening-Configs=", 18), 0);
		assert_string_equal(r.request.body.data + 18, table[i].body);
		round_end(&r);
	}
}

static void watch__the_hold__is_half_a_minute_more_or_less(void **state)
{
	struct kind_watched item = {.path = "/G/web", .version = ""};
	uint64_t least = UINT64_MAX, most = 0;
	char expected[60];

	(void)state;
	model_random_start();
	for (; model_random.step < 2000; model_random.step++) {
		struct round r;
		struct kind_watch w = {.place = &r.place, .items = &item, .count = 1};

		begin(&r, 1);
		r.place.random = random_bits();
		CHECK(kind_nacos.watch_build(&w, &r.request, r.answer.why) == 0);
		snprintf(expected, sizeof(expected), "Long-Pulling-Timeout: %" PRIu64,
			r.request.hold_ms);
		CHECK(r.request.header_count == 2);
		CHECK(strcmp(r.request.headers[1], expected) == 0);
		least = r.request.hold_ms < least ? r.request.hold_ms : least;
		most = r.request.hold_ms > most ? r.request.hold_ms : most;
		round_end(&r);
	}
	CHECK(least >= 27000 && least < 27500 && most <= 33000 && most > 32500);
}

static void watch__with_the_api_of_3__is_refused(void **state)
{
	struct kind_watched item = {.path = "/G/web", .version = ""};
	struct round r;
	struct kind_watch w = {.place = &r.place, .items = &item, .count = 1};

	(void)state;
	begin(&r, 3);
	assert_int_equal(kind_nacos.watch_build(&w, &r.request, r.answer.why), -EINVAL);
	assert_non_null(strstr(r.answer.why, "gRPC"));
	assert_true(kind_nacos.together("/G/a", "/H/b"));
	round_end(&r);
}

static void watch__each_answer__tells_what_changed(void **state)
{
	static const struct {
		long status;
		const char *body;
		char *namespace;
		int error;
		unsigned told[3]; /* of /G/a, /G/b, "/a b+/100%" */
	} table[] = {
		{200, "", NULL, 0, {0, 0, 0}},
		{200, "\n", NULL, 0, {0, 0, 0}},
		{200, "\r\n", NULL, 0, {0, 0, 0}},
		{200, "a%02G%01\n", NULL, 0, {1, 0, 0}},
		{200, "a%02G%01", NULL, 0, {1, 0, 0}},
		{200, "a%02G%01b%02G%01\n", NULL, 0, {1, 1, 0}},
		{200, "100%25%02a+b%2B%01\n", NULL, 0, {0, 0, 1}},
		{200, "100%25%02a%20b%2b%01\n", NULL, 0, {0, 0, 1}},
		{200, "a\x02G\x01", NULL, 0, {1, 0, 0}},
		{200, "a%02G%02%01", NULL, 0, {1, 0, 0}},
		{200, "a%02G%02public%01", NULL, 0, {1, 0, 0}},
		{200, "a%02G%02dev-1%01", tenant, 0, {1, 0, 0}},
		{200, "x%02G%01a%02G%01\n", NULL, 0, {1, 0, 0}}, /* one of them is ours */
		/* not about what was asked for */
		{200, "a%02G%01", tenant, -EPROTO, {0, 0, 0}},
		{200, "a%02G%02public%01", tenant, -EPROTO, {0, 0, 0}},
		{200, "a%02G%02dev-1%01", NULL, -EPROTO, {0, 0, 0}},
		{200, "x%02G%01", NULL, -EPROTO, {0, 0, 0}},
		{200, "a%02H%01", NULL, -EPROTO, {0, 0, 0}},
		{200, "A%02G%01", NULL, -EPROTO, {0, 0, 0}},
		/* no list */
		{200, "a%02G", NULL, -EPROTO, {0, 0, 0}},
		{200, "a%02G%01b%02", NULL, -EPROTO, {1, 0, 0}},
		{200, "a%01", NULL, -EPROTO, {0, 0, 0}},
		{200, "a^2G^1", NULL, -EPROTO, {0, 0, 0}},
		{200, "%01", NULL, -EPROTO, {0, 0, 0}},
		{200, "%02%01", NULL, -EPROTO, {0, 0, 0}},
		{200, "a%02G%0", NULL, -EPROTO, {0, 0, 0}},
		{200, "a%02G%", NULL, -EPROTO, {0, 0, 0}},
		{200, "a%zzG%01", NULL, -EPROTO, {0, 0, 0}},
		{200, "<html><body>login</body></html>", NULL, -EPROTO, {0, 0, 0}},
		{403, "token expired!", NULL, -EACCES, {0, 0, 0}},
		{401, "", NULL, -EACCES, {0, 0, 0}},
		{503, "", NULL, -EAGAIN, {0, 0, 0}},
		{429, "", NULL, -EAGAIN, {0, 0, 0}},
		{500, "", NULL, -EAGAIN, {0, 0, 0}},
		{400, "invalid probeModify", NULL, -EPROTO, {0, 0, 0}},
		{404, "", NULL, -EPROTO, {0, 0, 0}},
		{304, "", NULL, -EPROTO, {0, 0, 0}},
	};
	struct kind_watched items[3] = {{.path = "/G/a", .version = "", .position = 7},
		{.path = "/G/b", .version = ""}, {.path = "/a b+/100%", .version = ""}};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct told told = {{0}};
		struct round r;
		struct kind_watch w = {.place = &r.place,
			.items = items,
			.count = 3,
			.changed = changed,
			.arg = &told};
		int e;

		begin(&r, 1);
		r.server.namespace = table[i].namespace;
		r.response.status = table[i].status;
		buffer_append_string(&r.response.body, table[i].body);
		e = kind_nacos.watch_read(&w, &r.response, r.answer.why);
		if (e != table[i].error || memcmp(told.count, table[i].told, sizeof(table[i].told)))
			fail_msg("row %zu: %d, told of %u %u %u", i, e, told.count[0],
				told.count[1], told.count[2]);
		assert_true(e == 0 || strlen(r.answer.why) > 0);
		assert_true(items[0].position == 7);
		round_end(&r);
	}
}

static void watch__an_answer_beyond_the_bound__is_not_read(void **state)
{
	(void)state;
	for (size_t more = 0; more < 2; more++) {
		struct kind_watched item = {.path = "/G/a", .version = ""};
		struct told told = {{0}};
		struct round r;
		struct kind_watch w = {.place = &r.place,
			.items = &item,
			.count = 1,
			.changed = changed,
			.arg = &told};
		struct buffer *body = &r.response.body;

		begin(&r, 1);
		r.response.status = 200;
		buffer_append_string(body, more ? "xx%02G%01" : "x%02G%01");
		while (body->len < KIND_MAX_NEWS - 8)
			buffer_append_string(body, "x%02G%01");
		buffer_append_string(body, "a%02G%01\n");
		assert_int_equal(body->error, 0);
		assert_int_equal(body->len, KIND_MAX_NEWS + more + 1);
		assert_int_equal(
			kind_nacos.watch_read(&w, &r.response, r.answer.why), more ? -EPROTO : 0);
		assert_int_equal(told.count[0], !more);
		round_end(&r);
	}
}

/* A server of the test's own: decodes a form's value, appends it. */
static void decode(const char *text, struct buffer *out)
{
	char digits[3] = "", c;

	for (; *text; text++) {
		c = *text == '+' ? ' ' : *text;
		if (c == '%') {
			memcpy(digits, text + 1, 2);
			c = (char)strtol(digits, NULL, 16);
			text += 2;
		}
		buffer_append(out, &c, 1);
	}
}

static void random_segment(char *out)
{
	static const char bytes[] = "ab%+ &=?#2501\xc3\xbc\xe2\x82\xac.:_-~\"'\\\x7f\t";
	size_t len = 1 + random_below(8);

	for (size_t i = 0; i < len; i++)
		*out++ = bytes[random_below(sizeof(bytes) - 1)];
	*out = '\0';
}

/* What is asked for arrives at a server that decodes twice, and what it answers is understood. */
static void watch__random_names__arrive_whole_and_come_back(void **state)
{
	char paths[4][24], segment[12];

	(void)state;
	model_random_start();
	for (; model_random.step < 3000; model_random.step++) {
		struct kind_watched items[4];
		struct told told = {{0}};
		size_t wanted = random_below(4), at = 0;
		struct buffer once, twice, expected, answer;
		struct round r;
		struct kind_watch w = {.place = &r.place,
			.items = items,
			.count = 4,
			.changed = changed,
			.arg = &told};

		begin(&r, 1);
		r.server.namespace = random_below(2) ? tenant : NULL;
		buffer_init(&once, 10000);
		buffer_init(&twice, 10000);
		buffer_init(&expected, 10000);
		buffer_init(&answer, 10000);
		for (size_t i = 0; i < 4; i++) {
			random_segment(segment);
			at = (size_t)snprintf(paths[i], sizeof(paths[i]), "/%zu%s/", i, segment);
			random_segment(paths[i] + at);
			items[i] = (struct kind_watched){.path = paths[i], .version = MD5};
			paths[i][at - 1] = '\0';
			buffer_printf(
				&expected, "%s\x02%s\x02%s", paths[i] + at, paths[i] + 1, MD5);
			if (i == wanted)
				buffer_printf(&answer, "%s\x02%s", paths[i] + at, paths[i] + 1);
			if (r.server.namespace)
				buffer_printf(&expected, "\x02%s", tenant);
			if (r.server.namespace && i == wanted)
				buffer_printf(&answer, "\x02%s", tenant);
			buffer_append_string(&expected, "\x01");
			paths[i][at - 1] = '/';
		}
		buffer_append_string(&answer, "\x01");
		CHECK(kind_nacos.watch_build(&w, &r.request, r.answer.why) == 0);
		decode(r.request.body.data + 18, &once);
		decode(once.data, &twice);
		CHECK(strcmp(twice.data, expected.data) == 0);
		kind_escape(&r.response.body, answer.data, answer.len, "");
		CHECK(kind_nacos.watch_read(&w, &r.response, r.answer.why) == 0);
		for (size_t i = 0; i < 4; i++)
			CHECK(told.count[i] == (i == wanted));
		buffer_fini(&once);
		buffer_fini(&twice);
		buffer_fini(&expected);
		buffer_fini(&answer);
		round_end(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(build__each_place__is_a_url),
		cmocka_unit_test(build__a_path_that_is_not_group_and_data_id__is_refused),
		cmocka_unit_test(read__each_answer__gets_its_verdict),
		cmocka_unit_test(read__the_md5_in_capitals__is_the_same_one),
		cmocka_unit_test(
			read__where_md5_is_forbidden__the_server_is_believed_and_it_is_said),
		cmocka_unit_test(read__what_is_held__is_the_same_by_its_md5_alone),
		cmocka_unit_test(
			read__the_type__is_told_by_the_setting_then_the_name_then_the_server),
		cmocka_unit_test(read_3__each_answer__gets_its_verdict),
		cmocka_unit_test(read__a_document_over_the_limit__is_refused),
		cmocka_unit_test(login__user_and_password__are_a_form),
		cmocka_unit_test(login__each_answer__is_a_token_or_an_error),
		cmocka_unit_test(login__a_token_that_is_too_long__is_none),
		cmocka_unit_test(watch__each_list__is_spelled_with_the_two_separators),
		cmocka_unit_test(watch__the_hold__is_half_a_minute_more_or_less),
		cmocka_unit_test(watch__with_the_api_of_3__is_refused),
		cmocka_unit_test(watch__each_answer__tells_what_changed),
		cmocka_unit_test(watch__an_answer_beyond_the_bound__is_not_read),
		cmocka_unit_test(watch__random_names__arrive_whole_and_come_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

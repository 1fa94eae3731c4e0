/* S3: the URL that is asked for, what is signed, and what each answer means. The signatures are
 * those of the documentation's examples, the errors those that it lists. */
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
#include "text/sentence.h"
#include "tests/unit/fixture/round.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define MAY_2013 INT64_C(1369353600000) /* of the documentation's examples */
#define NO_BODY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static char id[] = "AKIAIOSFODNN7EXAMPLE", region[] = "eu-west-1";
static const char secret[] = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
static struct settings_server server = {.kind = SETTINGS_S3, .access_key = id};

static struct kind_place place_of(const char *base, const char *path)
{
	return (struct kind_place){.server = &server,
		.base = base,
		.path = path,
		.max_bytes = 1000,
		.wall_ms = MAY_2013};
}

/* The value of a header, or NULL. */
static const char *header(const struct kind_request *r, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < r->header_count; i++)
		if (!strncmp(r->headers[i], name, len) && !strncmp(r->headers[i] + len, ": ", 2))
			return r->headers[i] + len + 2;
	return NULL;
}

/* ---- requests ---- */

static void build__each_path__is_decoded_and_encoded_anew(void **state)
{
	static const struct {
		const char *base, *path, *url;
	} table[] = {
		{"https://s3.example", "/bucket/web.yaml", "https://s3.example/bucket/web.yaml"},
		{"https://s3.example/tenant a", "/b/k", "https://s3.example/tenant%20a/b/k"},
		{"https://s3.example/t%2f", "/b/k", "https://s3.example/t//b/k"},
		{"HTTP://s3.example:9000", "/b/k", "HTTP://s3.example:9000/b/k"},
		{"http://s3.example", "", "http://s3.example/"},
		{"https://s3.example", "/b/a%20b+c", "https://s3.example/b/a%20b%2Bc"},
		{"https://s3.example", "/b/%7e%2D%c3%A4/\xc3\xa4",
			"https://s3.example/b/~-%C3%A4/%C3%A4"},
		{"https://s3.example", "/b/100%25%", "https://s3.example/b/100%25%25"},
		{"https://s3.example", "/b/%4", "https://s3.example/b/%254"},
		{"https://s3.example", "/b/%zz%1g%g1", "https://s3.example/b/%25zz%251g%25g1"},
		{"https://s3.example", "/b/a//b", "https://s3.example/b/a//b"},
		{"https://s3.example", "/b/.a/b.../..c", "https://s3.example/b/.a/b.../..c"},
		{"https://s3.example", "/b/%3f%23!*'()&=$,;:@",
			"https://s3.example/b/%3F%23%21%2A%27%28%29%26%3D%24%2C%3B%3A%40"},
		{"https://s3.example", "/b/k?versionId=a%2fb",
			"https://s3.example/b/k?versionId=a%2Fb"},
		{"https://s3.example", "/b?b&a=2&a=1&&a-b=%20+&=x&",
			"https://s3.example/b?=x&a=1&a=2&a-b=%20%2B&b="},
		{"https://s3.example", "/b?", "https://s3.example/b"},
		{"https://s3.example", "/b?a=b=c?d", "https://s3.example/b?a=b%3Dc%3Fd"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct kind_place place = place_of(table[i].base, table[i].path);
		struct kind_request r;
		char why[FILE_WHY] = "";

		kind_request_init(&r);
		assert_int_equal(kind_s3.build(&place, &r, why), 0);
		assert_string_equal(r.url.data, table[i].url);
		assert_string_equal(r.method, "GET");
		assert_int_equal(r.header_count, 0);
		assert_int_equal(r.body.len, 0);
		assert_false(r.conditional || r.basic);
		kind_request_fini(&r);
	}
}

static void build__of_what_cannot_be_asked_for__says_why(void **state)
{
	static char many[200] = "/b?", slow[KIND_MAX_URL] = "/";
	const struct {
		const char *base, *path;
		int64_t wall_ms;
		int error;
		const char *why;
	} table[] = {
		{"https://s3.example", "/b/./k", 0, -EINVAL, "'.' or '..'"},
		{"https://s3.example", "/b/../k", 0, -EINVAL, "'.' or '..'"},
		{"https://s3.example", "/b/k/..", 0, -EINVAL, "'.' or '..'"},
		{"https://s3.example", "/b/%2e%2E/k", 0, -EINVAL, "'.' or '..'"},
		{"https://s3.example", "/b/%2e%2f", 0, -EINVAL, "'.' or '..'"},
		{"https://s3.example/..", "/b/k", 0, -EINVAL, "'.' or '..'"},
		{"https://s3.ex\xc3\xa4mple", "/b/k", 0, -EINVAL, "xn--"},
		{"https://s3.example", many, 0, -EINVAL, "more than 16 parameters"},
		{"https://s3.example", slow, 0, -EMSGSIZE, ""},
		{"https://s3.example", "/b/k", -1, -EINVAL, "clock"},
	};

	(void)state;
	for (size_t i = 0; i < 17; i++)
		strncat(many, "a&", 3);
	memset(slow + 1, ' ', sizeof(slow) - 2);
	for (size_t i = 0; i < COUNT(table); i++) {
		struct kind_place place = place_of(table[i].base, table[i].path);
		struct kind_request r;
		char why[FILE_WHY] = "";

		place.wall_ms = table[i].wall_ms;
		place.secret = secret;
		kind_request_init(&r);
		assert_int_equal(kind_s3.build(&place, &r, why), table[i].error);
		assert_non_null(strstr(why, table[i].why));
		assert_null(header(&r, "Authorization"));
		kind_request_fini(&r);
	}
}

static void build__of_what_is_held__asks_conditionally_at_the_same_address_only(void **state)
{
	static char etag[] = "\"abc\"", none[1], any[] = "*";
	struct part held = {.etag = etag};
	struct kind_place place = place_of("https://s3.example", "/b/k");
	struct kind_request r;
	char why[FILE_WHY];

	(void)state;
	place.held = &held;
	for (int i = 0; i < 6; i++) {
		place.same_address = i > 0;
		held.absent = i == 2; /* there are no bytes that a 304 could stand for */
		held.etag = i == 3 ? none : i == 4 ? any : etag;
		place.forced = i == 5;
		kind_request_init(&r);
		assert_int_equal(kind_s3.build(&place, &r, why), 0);
		assert_true(r.conditional == (i == 1));
		assert_int_equal(r.header_count, i == 1);
		if (i == 1)
			assert_string_equal(header(&r, "If-None-Match"), "\"abc\"");
		kind_request_fini(&r);
	}
}

static void build__with_an_access_key__signs_as_documented(void **state)
{
	static const struct {
		const char *path, *signature;
	} table[] = {
		{"?lifecycle", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
		{"?prefix=J&max-keys=2",
			"34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct kind_place place =
			place_of("https://examplebucket.s3.amazonaws.com:443", table[i].path);
		struct kind_request r;
		char why[FILE_WHY];

		place.secret = secret;
		kind_request_init(&r);
		assert_int_equal(kind_s3.build(&place, &r, why), 0);
		assert_int_equal(r.header_count, 4);
		assert_string_equal(header(&r, "Host"), "examplebucket.s3.amazonaws.com");
		assert_string_equal(header(&r, "x-amz-content-sha256"), NO_BODY);
		assert_string_equal(header(&r, "x-amz-date"), "20130524T000000Z");
		assert_non_null(strstr(header(&r, "Authorization"),
			"Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
			"SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature="));
		assert_non_null(strstr(header(&r, "Authorization"), table[i].signature));
		kind_request_fini(&r);
	}
}

static void build__with_an_access_key__names_the_host_as_it_is_sent(void **state)
{
	static const struct {
		const char *base, *host;
	} table[] = {
		{"https://s3.example:443/p", "s3.example"},
		{"https://s3.example:0443", "s3.example"},
		{"https://s3.example:80", "s3.example:80"},
		{"http://s3.example:80", "s3.example"},
		{"HTTP://S3.Example:443", "S3.Example:443"},
		{"http://[::1]:9000", "[::1]:9000"},
		{"http://[::1]:80", "[::1]"},
		{"http://[2001:db8::80]", "[2001:db8::80]"},
		{"http://[fe80::1%25eth0]:9000", "[fe80::1]:9000"},
		{"http://[fe80::1%eth0]", "[fe80::1]"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct kind_place place = place_of(table[i].base, "/b/k");
		struct kind_request r;
		char why[FILE_WHY];

		place.secret = secret;
		kind_request_init(&r);
		assert_int_equal(kind_s3.build(&place, &r, why), 0);
		assert_string_equal(header(&r, "Host"), table[i].host);
		assert_memory_equal(r.url.data, table[i].base, strlen(table[i].base));
		kind_request_fini(&r);
	}
}

static void build__with_all_there_is__signs_region_token_and_configured_headers(void **state)
{
	static char etag[] = "\"abc\"", names[][24] = {"X-Amz-Request-Payer", "Host", "Accept"},
		    values[][24] = {"requester", "s3.internal", "text/yaml"}, file[] = "/secret";
	struct settings_header headers[] = {{.name = names[0], .value = values[0]},
		{.name = names[1], .value = values[1]}, {.name = names[2], .file = file}};
	struct settings_server all = {.access_key = id,
		.region = region,
		.headers = headers,
		.header_count = COUNT(headers)};
	struct kind_place place = place_of("https://s3.example", "/b/k");
	struct part held = {.etag = etag};
	struct kind_request r;
	char why[FILE_WHY];

	(void)state;
	place.server = &all;
	place.secret = secret;
	place.session_token = "the token";
	place.held = &held;
	place.same_address = true;
	kind_request_init(&r);
	assert_int_equal(kind_s3.build(&place, &r, why), 0);
	assert_int_equal(r.header_count, 5);
	assert_true(r.conditional);
	assert_null(header(&r, "Host")); /* the configured one is sent */
	assert_string_equal(header(&r, "x-amz-security-token"), "the token");
	assert_non_null(strstr(header(&r, "Authorization"),
		"/20130524/eu-west-1/s3/aws4_request, SignedHeaders=host;x-amz-content-sha256;"
		"x-amz-date;x-amz-request-payer;x-amz-security-token, Signature="));
	/* by botocore */
	assert_non_null(strstr(header(&r, "Authorization"),
		"Signature=508158c7701f4fcf899953884954de5171f00da8b18725aa163b784e605f081c"));
	kind_request_fini(&r);
}

static void build__with_headers_that_cannot_be_signed__says_which(void **state)
{
	static const char *const wrong[] = {"authorization", "X-Amz-Date", "x-amz-content-SHA256",
		"x-amz-security-token", "X-Amz-From-File"};
	static char value[] = "v", file[] = "/secret";

	(void)state;
	for (size_t i = 0; i <= COUNT(wrong); i++) {
		bool from_file = i + 1 >= COUNT(wrong);
		char name[32];
		struct settings_header h = {.name = name,
			.value = from_file ? NULL : value,
			.file = from_file ? file : NULL};
		struct settings_server s = {.access_key = id, .headers = &h, .header_count = 1};
		struct kind_place place = place_of("https://s3.example", "/b/k");
		struct kind_request r;
		char why[FILE_WHY] = "";

		snprintf(name, sizeof(name), "%s", i < COUNT(wrong) ? wrong[i] : "host");
		place.server = &s;
		place.secret = secret;
		kind_request_init(&r);
		assert_int_equal(kind_s3.build(&place, &r, why), -EINVAL);
		assert_non_null(strstr(why, name));
		assert_non_null(strstr(why, from_file ? "file" : "remove it"));
		kind_request_fini(&r);
		place.secret = NULL; /* without a signature it is nobody's business */
		kind_request_init(&r);
		assert_int_equal(kind_s3.build(&place, &r, why), 0);
		kind_request_fini(&r);
	}
}

static void build__with_a_secret_but_no_id__is_refused(void **state)
{
	struct settings_server s = {.kind = SETTINGS_S3};
	struct kind_place place = place_of("https://s3.example", "/b/k");
	struct kind_request r;
	char why[FILE_WHY] = "";

	(void)state;
	place.server = &s;
	place.secret = secret;
	kind_request_init(&r);
	assert_int_equal(kind_s3.build(&place, &r, why), -EINVAL);
	assert_non_null(strstr(why, "id"));
	kind_request_fini(&r);
}

/* ---- answers ---- */

static void read_bytes(struct round *r, long status, const char *type, const char *body, size_t len)
{
	round_begin(r, SETTINGS_S3, "https://s3.example", "/b/web.json");
	snprintf(r->response.content_type, sizeof(r->response.content_type), "%s", type);
	snprintf(r->response.etag, sizeof(r->response.etag), "\"e\"");
	round_read(r, status, body, len);
}

static void read_text(struct round *r, long status, const char *type, const char *body)
{
	read_bytes(r, status, type, body, strlen(body));
}

static void read__an_object__is_taken_as_it_is(void **state)
{
	struct round r;

	(void)state;
	read_text(&r, 200, "application/xml", "{\"a\": 1}");
	assert_int_equal(r.verdict, KIND_NEW);
	assert_int_equal(r.answer.cause, KIND_CAUSE_NONE);
	assert_string_equal(r.answer.body.data, "{\"a\": 1}");
	assert_string_equal(r.answer.version, "\"e\"");
	assert_int_equal(r.answer.type, SETTINGS_TYPE_JSON); /* by the path */
	round_end(&r);
	read_text(&r, 200, "", "");
	assert_int_equal(r.verdict, KIND_FAILED);
	assert_int_equal(r.answer.cause, KIND_CAUSE_EMPTY);
	round_end(&r);
}

static void read__a_listing__is_not_an_object(void **state)
{
	static const char listing[] =
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
		"<Name>b</Name></ListBucketResult>";
	struct round r;

	(void)state;
	read_text(&r, 200, "application/xml", listing);
	assert_int_equal(r.verdict, KIND_FAILED);
	assert_int_equal(r.answer.cause, KIND_CAUSE_ANSWER);
	assert_non_null(strstr(r.answer.why, "/BUCKET/KEY"));
	assert_int_equal(r.answer.body.len, 0);
	round_end(&r);
	read_text(&r, 200, "text/plain", listing); /* somebody stored it */
	assert_int_equal(r.verdict, KIND_NEW);
	round_end(&r);
}

#define ERROR(code, message, more)                                                                 \
	"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>" code                           \
	"</Code><Message>" message "</Message>" more                                               \
	"<Resource>/b/web.json</Resource><RequestId>4442587FB7D0A2F9</RequestId>"                  \
	"</Error>"

static void read__each_error__has_its_sentence(void **state)
{
	static const struct {
		long status;
		const char *body;
		enum kind_verdict verdict;
		enum kind_cause cause;
		const char *why;
	} table[] = {
		{404, ERROR("NoSuchKey", "The specified key does not exist.", "<Region>r</Region>"),
			KIND_ABSENT, KIND_CAUSE_NOT_FOUND,
			"the server answered 404 NoSuchKey: there is no such object: check the "
			"path; The specified key does not exist."},
		{404, ERROR("NoSuchVersion", "The specified version does not exist.", ""),
			KIND_ABSENT, KIND_CAUSE_NOT_FOUND, "no such version"},
		{403, ERROR("NoSuchKey", "", ""), KIND_FAILED, KIND_CAUSE_NOT_FOUND, "403 NoSuch"},
		{404, ERROR("NoSuchBucket", "The specified bucket does not exist", ""), KIND_FAILED,
			KIND_CAUSE_NOT_FOUND, "the bucket does not exist"},
		{403, ERROR("AccessDenied", "Access Denied", ""), KIND_FAILED, KIND_CAUSE_FORBIDDEN,
			"may not be listed; Access Denied"},
		{403, ERROR("AllAccessDisabled", "x", ""), KIND_FAILED, KIND_CAUSE_FORBIDDEN,
			"closed"},
		{403, ERROR("AccountProblem", "x", ""), KIND_FAILED, KIND_CAUSE_FORBIDDEN,
			"account"},
		{403, ERROR("SignatureDoesNotMatch", "x", "<StringToSign>secret</StringToSign>"),
			KIND_FAILED, KIND_CAUSE_FORBIDDEN, "secret_file"},
		{403, ERROR("InvalidAccessKeyId", "x", ""), KIND_FAILED, KIND_CAUSE_FORBIDDEN,
			"does not know the id"},
		{400, ERROR("InvalidToken", "x", ""), KIND_FAILED, KIND_CAUSE_FORBIDDEN,
			"session_token_file"},
		{400, ERROR("ExpiredToken", "x", ""), KIND_FAILED, KIND_CAUSE_FORBIDDEN, "expired"},
		{403, ERROR("RequestTimeTooSkewed", "x", ""), KIND_FAILED, KIND_CAUSE_FORBIDDEN,
			"clock"},
		{400, ERROR("MissingSecurityHeader", "x", ""), KIND_FAILED, KIND_CAUSE_FORBIDDEN,
			"wants an access key"},
		{400,
			ERROR("AuthorizationHeaderMalformed",
				"The authorization header is malformed; the region 'us-east-1' is "
				"wrong; expecting 'eu-west-1'",
				"<Region>eu-west-1</Region>"),
			KIND_FAILED, KIND_CAUSE_FORBIDDEN,
			"region is not that of the bucket: set it; region eu-west-1; The auth"},
		{301,
			ERROR("PermanentRedirect",
				"The bucket you are attempting to access must be addressed using "
				"the specified endpoint.",
				"<Endpoint>b.s3.eu-west-1.amazonaws.com</Endpoint>"),
			KIND_FAILED, KIND_CAUSE_ANSWER,
			"set region and url; endpoint b.s3.eu-west-1.amazonaws.com; The bucket"},
		{307, ERROR("TemporaryRedirect", "x", ""), KIND_FAILED, KIND_CAUSE_ANSWER,
			"being moved"},
		{400, ERROR("IllegalLocationConstraintException", "x", ""), KIND_FAILED,
			KIND_CAUSE_ANSWER, "another region"},
		{403, ERROR("InvalidObjectState", "x", ""), KIND_FAILED, KIND_CAUSE_ANSWER,
			"archived"},
		{503, ERROR("SlowDown", "Please reduce your request rate.", ""), KIND_FAILED,
			KIND_CAUSE_OVERLOADED, "overloaded; Please reduce"},
		{503, ERROR("ServiceUnavailable", "x", ""), KIND_FAILED, KIND_CAUSE_OVERLOADED,
			"overloaded"},
		{429, ERROR("TooManyRequests", "x", ""), KIND_FAILED, KIND_CAUSE_OVERLOADED,
			"overloaded"},
		{400, ERROR("RequestLimitExceeded", "x", ""), KIND_FAILED, KIND_CAUSE_OVERLOADED,
			"overloaded"},
		{400, ERROR("RequestTimeout", "x", ""), KIND_FAILED, KIND_CAUSE_TIMEOUT, "in time"},
		/* those that are not known count by their status */
		{500, ERROR("InternalError", "We encountered an internal error.", ""), KIND_FAILED,
			KIND_CAUSE_ANSWER,
			"the server answered 500: InternalError; We encountered an internal "
			"error."},
		{400, ERROR("KeyTooLongError", "", ""), KIND_FAILED, KIND_CAUSE_ANSWER,
			"KeyTooLongError"},
		{403, ERROR("KMS.Whatever", "x", ""), KIND_FAILED, KIND_CAUSE_FORBIDDEN, "KMS"},
		{503, ERROR("Odd", "x", ""), KIND_FAILED, KIND_CAUSE_OVERLOADED, "Odd; x"},
		{404, ERROR("NoSuchWebsiteConfiguration", "x", ""), KIND_FAILED, KIND_CAUSE_ANSWER,
			"NoSuchWebsite"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct round r;

		read_text(&r, table[i].status, "application/xml", table[i].body);
		if (!strstr(r.answer.why, table[i].why))
			fail_msg("%s: %s", table[i].why, r.answer.why);
		assert_int_equal(r.verdict, table[i].verdict);
		assert_int_equal(r.answer.cause, table[i].cause);
		assert_null(strstr(r.answer.why, "secret<"));
		round_end(&r);
	}
}

static void read__an_answer_that_says_no_code__counts_by_its_status(void **state)
{
	static const char *const bodies[] = {"", "no XML", "<html><body>not found</body></html>",
		"<Error><Message>m</Message></Error>", "<Error><Code></Code></Error>",
		"<Error><Code>NoSuchKey", "<Code>", "<Error><code>NoSuchKey</code></Error>"};
	static const long usual[] = {206, 304, 400, 403, 500, 503};
	struct round r;

	(void)state;
	for (size_t i = 0; i < COUNT(bodies); i++) {
		for (size_t k = 0; k < COUNT(usual); k++) {
			read_text(&r, usual[k], "application/xml", bodies[i]);
			assert_int_equal(r.verdict, KIND_USUAL);
			round_end(&r);
		}
		read_text(&r, 404, "application/xml", bodies[i]);
		assert_int_equal(r.verdict, KIND_FAILED); /* never absent: who says so? */
		assert_int_equal(r.answer.cause, KIND_CAUSE_NOT_FOUND);
		assert_non_null(strstr(r.answer.why, "check the url"));
		round_end(&r);
	}
}

static void read__a_hostile_error__is_bounded_and_printable(void **state)
{
	static const char head[] = "<Error><Code>Bad\x1b[2J\n\x80</Code><Message>";
	size_t len = 200000, n = sizeof(head) - 1;
	char *body = malloc(len);
	struct round r;

	(void)state;
	assert_non_null(body);
	memset(body, 'm', len);
	memcpy(body, head, n);
	memcpy(body + 150000, "</Message>", 10);
	read_bytes(&r, 403, "", body, len);
	assert_int_equal(r.verdict, KIND_FAILED);
	assert_int_equal(r.answer.cause, KIND_CAUSE_FORBIDDEN);
	assert_non_null(strstr(r.answer.why, "Bad?[2J??; mmm"));
	assert_true(strlen(r.answer.why) < FILE_WHY);
	for (const char *c = r.answer.why; *c; c++)
		assert_in_range((unsigned char)*c, 0x20, 0x7e);
	round_end(&r);
	memset(body, ' ', len);
	memcpy(body + 70000, "<Code>NoSuchKey</Code>", 22); /* too far down to be looked for */
	read_bytes(&r, 404, "", body, len);
	assert_int_equal(r.verdict, KIND_FAILED);
	round_end(&r);
	memcpy(body, "<Code>No\0SuchKey</Code>", 23);
	read_bytes(&r, 404, "", body, len);
	assert_int_equal(r.verdict, KIND_FAILED);
	round_end(&r);
	free(body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(build__each_path__is_decoded_and_encoded_anew),
		cmocka_unit_test(build__of_what_cannot_be_asked_for__says_why),
		cmocka_unit_test(
			build__of_what_is_held__asks_conditionally_at_the_same_address_only),
		cmocka_unit_test(build__with_an_access_key__signs_as_documented),
		cmocka_unit_test(build__with_an_access_key__names_the_host_as_it_is_sent),
		cmocka_unit_test(
			build__with_all_there_is__signs_region_token_and_configured_headers),
		cmocka_unit_test(build__with_headers_that_cannot_be_signed__says_which),
		cmocka_unit_test(build__with_a_secret_but_no_id__is_refused),
		cmocka_unit_test(read__an_object__is_taken_as_it_is),
		cmocka_unit_test(read__a_listing__is_not_an_object),
		cmocka_unit_test(read__each_error__has_its_sentence),
		cmocka_unit_test(read__an_answer_that_says_no_code__counts_by_its_status),
		cmocka_unit_test(read__a_hostile_error__is_bounded_and_printable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

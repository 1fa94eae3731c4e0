/* AWS Signature Version 4 against the vectors that AWS published: its test suite, and the examples
 * in the documentation of S3. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "crypto/aws_sigv4.h"
#include "tests/unit/fixture/fault_crypto.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define UNRESERVED "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

static const struct aws_sigv4_key suite_key = {.id = "AKIDEXAMPLE",
	.secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
	.region = "us-east-1",
	.service = "service"};
static const struct aws_sigv4_key s3_key = {.id = "AKIAIOSFODNN7EXAMPLE",
	.secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
	.region = "us-east-1",
	.service = "s3"};

#define SUITE_DATE "20150830T123600Z"
#define SUITE_HEADERS                                                                              \
	{"Host", "example.amazonaws.com"},                                                         \
	{                                                                                          \
		"X-Amz-Date", SUITE_DATE                                                           \
	}
#define S3_DATE "20130524T000000Z"
#define S3_HEADERS(hash)                                                                           \
	{"Host", "examplebucket.s3.amazonaws.com"}, {"x-amz-content-sha256", hash},                \
	{                                                                                          \
		"x-amz-date", S3_DATE                                                              \
	}
#define FORM_HASH "9095672bbd1f56dfc5b65f3e153adc8731a4a654192329106275f4c7b24d0b6e"
#define PUT_HASH "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"
#define TOKEN                                                                                      \
	"AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmx" \
	"fpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0K" \
	"PkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZb" \
	"qBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA=="

static const struct {
	const struct aws_sigv4_key *key;
	struct aws_sigv4_request request; /* but for the headers */
	struct aws_sigv4_header headers[8];
	const char *names, *signature;
} vectors[] = {
	{&suite_key, {"GET", "/", "", SUITE_DATE, AWS_SIGV4_NO_BODY, NULL, 0}, {SUITE_HEADERS},
		"host;x-amz-date",
		"5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
	{&suite_key,
		{"GET", "/", "Param1=value1&Param2=value2", SUITE_DATE, AWS_SIGV4_NO_BODY, NULL, 0},
		{SUITE_HEADERS}, "host;x-amz-date",
		"b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
	{&suite_key,
		{"GET", "/", UNRESERVED "=" UNRESERVED, SUITE_DATE, AWS_SIGV4_NO_BODY, NULL, 0},
		{SUITE_HEADERS}, "host;x-amz-date",
		"9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197"},
	{&suite_key, {"GET", "/", "%E1%88%B4=bar", SUITE_DATE, AWS_SIGV4_NO_BODY, NULL, 0},
		{SUITE_HEADERS}, "host;x-amz-date",
		"2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"},
	{&suite_key, {"GET", "/%E1%88%B4", "", SUITE_DATE, AWS_SIGV4_NO_BODY, NULL, 0},
		{SUITE_HEADERS}, "host;x-amz-date",
		"8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"},
	{&suite_key, {"GET", "/", "", SUITE_DATE, AWS_SIGV4_NO_BODY, NULL, 0},
		{{"My-Header1", " value1"}, {"My-Header2", " \t\"a   b   c\"  "}, SUITE_HEADERS},
		"host;my-header1;my-header2;x-amz-date",
		"acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"},
	{&suite_key, {"POST", "/", "", SUITE_DATE, AWS_SIGV4_NO_BODY, NULL, 0}, {SUITE_HEADERS},
		"host;x-amz-date",
		"5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
	{&suite_key, {"POST", "/", "", SUITE_DATE, FORM_HASH, NULL, 0},
		{SUITE_HEADERS, {"Content-Type", "application/x-www-form-urlencoded"}},
		"content-type;host;x-amz-date",
		"ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"},
	{&suite_key, {"POST", "/", "", SUITE_DATE, AWS_SIGV4_NO_BODY, NULL, 0},
		{SUITE_HEADERS, {"X-Amz-Security-Token", TOKEN}},
		"host;x-amz-date;x-amz-security-token",
		"85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead"},
	{&s3_key, {"GET", "/test.txt", "", S3_DATE, AWS_SIGV4_NO_BODY, NULL, 0},
		{S3_HEADERS(AWS_SIGV4_NO_BODY), {"Range", "bytes=0-9"}},
		"host;range;x-amz-content-sha256;x-amz-date",
		"f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
	{&s3_key, {"PUT", "/test%24file.text", "", S3_DATE, PUT_HASH, NULL, 0},
		{S3_HEADERS(PUT_HASH), {"Date", "Fri, 24 May 2013 00:00:00 GMT"},
			{"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
		"date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
		"98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
	{&s3_key, {"GET", "/", "lifecycle=", S3_DATE, AWS_SIGV4_NO_BODY, NULL, 0},
		{S3_HEADERS(AWS_SIGV4_NO_BODY)}, "host;x-amz-content-sha256;x-amz-date",
		"fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
	{&s3_key, {"GET", "/", "max-keys=2&prefix=J", S3_DATE, AWS_SIGV4_NO_BODY, NULL, 0},
		{S3_HEADERS(AWS_SIGV4_NO_BODY)}, "host;x-amz-content-sha256;x-amz-date",
		"34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
};

static int authorize(size_t i, struct buffer *out)
{
	struct aws_sigv4_request r = vectors[i].request;

	r.headers = vectors[i].headers;
	while (r.headers[r.header_count].name)
		r.header_count++;
	return aws_sigv4_authorization(vectors[i].key, &r, out);
}

static void authorization__of_each_published_request__is_the_published_one(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(vectors); i++) {
		const struct aws_sigv4_key *key = vectors[i].key;
		struct buffer out, expected;

		buffer_init(&out, 1000);
		buffer_init(&expected, 1000);
		assert_int_equal(authorize(i, &out), 0);
		buffer_printf(&expected,
			"AWS4-HMAC-SHA256 Credential=%s/%.8s/us-east-1/%s/aws4_request, "
			"SignedHeaders=%s, Signature=%s",
			key->id, vectors[i].request.date, key->service, vectors[i].names,
			vectors[i].signature);
		assert_string_equal(out.data, expected.data);
		buffer_fini(&out);
		buffer_fini(&expected);
	}
}

static void authorization__with_more_headers_than_fit__is_refused(void **state)
{
	struct aws_sigv4_header headers[AWS_SIGV4_MAX_HEADERS + 1];
	char names[AWS_SIGV4_MAX_HEADERS + 1][8];
	struct aws_sigv4_request r = {
		"GET", "/", "", S3_DATE, AWS_SIGV4_NO_BODY, headers, AWS_SIGV4_MAX_HEADERS};
	struct buffer out;

	(void)state;
	for (size_t i = 0; i < COUNT(headers); i++) {
		snprintf(names[i], sizeof(names[i]), "x-%zu", i);
		headers[i] = (struct aws_sigv4_header){names[i], "1"};
	}
	buffer_init(&out, 1000);
	assert_int_equal(aws_sigv4_authorization(&s3_key, &r, &out), 0);
	buffer_clear(&out);
	r.header_count++;
	assert_int_equal(aws_sigv4_authorization(&s3_key, &r, &out), -EMSGSIZE);
	assert_int_equal(out.len, 0);
	buffer_fini(&out);
	buffer_init(&out, 100); /* too little for any */
	r.header_count = 1;
	assert_int_equal(aws_sigv4_authorization(&s3_key, &r, &out), -EMSGSIZE);
	buffer_fini(&out);
}

static void authorization__when_memory_runs_out_at_any_point__says_so(void **state)
{
	struct buffer out;
	bool failed = true;
	size_t nth = 0;
	int r;

	(void)state;
	while (failed) {
		buffer_init(&out, 1000);
		fault_crypto_fail(++nth);
		r = authorize(0, &out);
		failed = fault_crypto_failed();
		assert_true(r == 0 || (failed && r == -ENOMEM && out.len == 0));
		buffer_fini(&out);
	}
	assert_true(nth > 5);
}

static void date__of_a_time__has_four_digits_for_the_year(void **state)
{
	static const struct {
		int64_t ms;
		const char *date;
	} table[] = {
		{0, "19700101T000000Z"},
		{INT64_C(1369353600000), S3_DATE},
		{INT64_C(1440938160999), SUITE_DATE},
		{INT64_C(951782400000), "20000229T000000Z"},
		{-1, NULL},
		{INT64_C(253402300799999), "99991231T235959Z"},
		{INT64_C(253402300800000), NULL}, /* 10000 */
		{INT64_MAX, NULL},
		{INT64_MIN, NULL},
	};
	char date[AWS_SIGV4_DATE];

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		int r = aws_sigv4_date(table[i].ms, date);

		assert_int_equal(r, table[i].date ? 0 : -ERANGE);
		if (r == 0)
			assert_string_equal(date, table[i].date);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(authorization__of_each_published_request__is_the_published_one),
		cmocka_unit_test(authorization__with_more_headers_than_fit__is_refused),
		cmocka_unit_test(authorization__when_memory_runs_out_at_any_point__says_so),
		cmocka_unit_test(date__of_a_time__has_four_digits_for_the_year),
	};

	if (!fault_crypto_start())
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Digest headers: each way of writing, of both algorithms, in each header; what is passed over;
 * what is coded. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "http/integrity.h"

#define DOCUMENT "a: 1\n"
#define CODED "coded"
#define SHA256 "N7EoxZ8fUJf3P4JpHLUZ8fVoZn+qtc7RtKuXnTaDfq4="
#define OTHER256 "N7EoxZ8fUJf3P4JpHLUZ8fVoZn+qtc7RtKuXnTaDfq8="
#define CODED256 "d+m3yeQOGjmWG2mEOv5/PFVAWbzi6mH/CeyiBG8rEjU="
#define SHA512                                                                                     \
	"qHyLuBU9WpIkaXn18PzyLgf/AF7KLGbrxsvWr4Q1sUSd+csQggS+b8CJHdKi3yzFuND5SAguUQybNJjVsEL+jg=="
#define OTHER512                                                                                   \
	"qHyLuBU9WpIkaXn18PzyLgf/AF7KLGbrxsvWr4Q1sUSd+csQggS+b8CJHdKi3yzFuND5SAguUQybNJjVsEL+jw=="
#define CODED512                                                                                   \
	"hsGhHUdIst+cVliw5bZ10aKsZbpJfkAdxRfYdVbAYYtoog4h0q6Ih2xs0HxfuTe9oTQFriiLLcP0ldnuHthPug=="

enum header { CONTENT, REPR, OLD, HEADERS };

static const char *const names[HEADERS] = {"Content-Digest", "Repr-Digest", "Digest"};

static char why[INTEGRITY_WHY], note[INTEGRITY_WHY];

static char *value_of(struct http_client_response *r, enum header h)
{
	return h == CONTENT ? r->content_digest : h == REPR ? r->repr_digest : r->digest;
}

static struct http_client_response answer(const char *coded)
{
	struct http_client_response r = {.status = 200};

	buffer_init(&r.body, 100);
	buffer_init(&r.coded, 100);
	assert_int_equal(buffer_append_string(&r.body, DOCUMENT), 0);
	assert_int_equal(buffer_append_string(&r.coded, coded), 0);
	return r;
}

static int check(struct http_client_response *r)
{
	int error;

	snprintf(why, sizeof(why), "none");
	snprintf(note, sizeof(note), "none");
	error = integrity_check(r, why, note);
	if (error)
		assert_string_equal(note, "none");
	else
		assert_string_equal(why, "none");
	buffer_fini(&r->body);
	buffer_fini(&r->coded);
	return error;
}

static int check_header(enum header h, const char *coded, const char *value)
{
	struct http_client_response r = answer(coded);

	snprintf(value_of(&r, h), HTTP_CLIENT_DIGESTS, "%s", value);
	return check(&r);
}

static void check__of_each_way_of_writing__holds_all_that_is_known_against_the_body(void **state)
{
	static const struct {
		const char *value;
		bool good;
	} table[] = {
		{"sha-256=:" SHA256 ":", true},
		{"sha-256=:" OTHER256 ":", false},
		{"sha-512=:" SHA512 ":", true},
		{"sha-512=:" OTHER512 ":", false},
		{"SHA-256=" SHA256, true},
		{"SHA-256=" OTHER256, false},
		{"SHA-512=" SHA512, true},
		{"sha-512=" OTHER512, false},
		/* several: all must fit, wherever they stand */
		{"sha-256=:" SHA256 ":, sha-512=:" SHA512 ":", true},
		{"sha-512=:" SHA512 ":, sha-256=:" OTHER256 ":", false},
		{"sha-512=:" SHA512 ":,sha-256=:" OTHER256 ":", false},
		{"sha-512=:" SHA512 ":,\tsha-256=:" OTHER256 ":", false},
		{"sha-256=:" OTHER256 ":, sha-512=:" SHA512 ":", false},
		{"sha-256=:" SHA256 ":, sha-256=:" OTHER256 ":", false},
		{"sha-256=:" OTHER256 ":, sha-256=:" SHA256 ":", false},
		{"SHA-256=" SHA256 ",SHA-256=" OTHER256, false},
		{"unixsum=30637, sha-256=:" OTHER256 ":", false},
		{"MD5=HUXZLQLMuI/KZ5KDcJPcOA==, SHA-256=" SHA256, true},
		{"MD5=HUXZLQLMuI/KZ5KDcJPcOA==,SHA-256=" OTHER256, false},
		{",, sha-256=:" OTHER256 ":", false},
		{"garbage, sha-256=:" OTHER256 ":", false},
		{"a=\"b, sha-256=:" OTHER256 ":\"", false},
		/* parameters */
		{"sha-256=:" SHA256 ":;x=1, crc32c=:AAAAAA==:", true},
		{"sha-256=" SHA256 ";x=1", true},
		{"sha-256=:" OTHER256 ":;x=1", false},
		/* without padding: RFC 8941 */
		{"sha-256=:N7EoxZ8fUJf3P4JpHLUZ8fVoZn+qtc7RtKuXnTaDfq4:", true},
		{"sha-256=:N7EoxZ8fUJf3P4JpHLUZ8fVoZn+qtc7RtKuXnTaDfq8:", false},
		{"SHA-256=N7EoxZ8fUJf3P4JpHLUZ8fVoZn+qtc7RtKuXnTaDfq8", false},
	};

	(void)state;
	for (size_t i = 0; i < 3 * sizeof(table) / sizeof(table[0]); i++) {
		const char *value = table[i / 3].value;
		int want = table[i / 3].good ? 0 : -EINVAL;

		if (check_header((enum header)(i % 3), "", value) != want)
			fail_msg("%s: %s", names[i % 3], value);
		assert_string_equal(note, want ? "none" : "");
	}
}

static void check__of_what_does_not_fit__says_which_header_and_what(void **state)
{
	char want[INTEGRITY_WHY];

	(void)state;
	for (int h = CONTENT; h < HEADERS; h++) {
		assert_int_equal(
			check_header((enum header)h, "", "sha-256=:" OTHER256 ":"), -EINVAL);
		snprintf(want, sizeof(want),
			"SHA-256 is 37b128c59f1f5097..., its %s says 37b128c59f1f5097...",
			names[h]);
		assert_string_equal(why, want);
		assert_int_equal(
			check_header((enum header)h, "", "sha-512=:" CODED512 ":"), -EINVAL);
		snprintf(want, sizeof(want),
			"SHA-512 is a87c8bb8153d5a92..., its %s says 86c1a11d4748b2df...",
			names[h]);
		assert_string_equal(why, want);
	}
}

static void check__of_several_headers__asks_each(void **state)
{
	(void)state;
	for (int wrong = CONTENT; wrong <= HEADERS; wrong++) {
		struct http_client_response r = answer("");

		for (int h = CONTENT; h < HEADERS; h++)
			snprintf(value_of(&r, (enum header)h), HTTP_CLIENT_DIGESTS,
				"sha-256=:%s:", h == wrong ? OTHER256 : SHA256);
		assert_int_equal(check(&r), wrong == HEADERS ? 0 : -EINVAL);
		if (wrong < HEADERS)
			assert_non_null(strstr(why, names[wrong]));
	}
}

static void check__of_a_known_algorithm_without_its_digest__does_not_fit(void **state)
{
	static const char *const table[] = {
		"sha-256",
		"sha-256=",
		"sha-256=::",
		"sha-256=:not base64 at all:",
		"sha-256=:N7EoxZ8fUJf3P4JpHLUZ8fVoZn+qtc7RtKuXnTaDfq-=:",
		"sha-256=:N7EoxZ8fUJf3P4JpHLUZ8fVoZn+qtc7RtKuXnTaDfq9=:", /* bits of no byte */
		"sha-256=:" SHA512 ":",
		"sha-512=:" SHA256 ":",
		"sha-256=:N7EoxZ8fUJf3P4JpHLUZ8fVoZn+qtc7RtKuXnTaDfq:",
		"sha-256=:" SHA256 "=:",
		"sha-256=37b128c59f1f5097f73f82691cb519f1f568667faab5ced1b4ab979d36837eae",
		"sha-256= :" SHA256 ":",
		"sha-256=:" SHA256 ":, sha-256",
	};

	(void)state;
	for (size_t i = 0; i < 3 * sizeof(table) / sizeof(table[0]); i++) {
		if (check_header((enum header)(i % 3), "", table[i / 3]) != -EINVAL)
			fail_msg("'%s'", table[i / 3]);
		assert_non_null(strstr(why, names[i % 3]));
		assert_non_null(strstr(why, " is none of "));
	}
}

static void check__of_what_is_not_known__passes_it_over_and_says_so(void **state)
{
	static const struct {
		const char *value;
		bool note;
	} table[] = {
		{"", false},
		{" ", false},
		{",", false},
		{"md5=:HUXZLQLMuI/KZ5KDcJPcOA==:", true},
		{"MD5=HUXZLQLMuI/KZ5KDcJPcOA==", true},
		{"crc32c=:AAAAAA==:, unixsum=30637", true},
		{"x-sha-256=:" OTHER256 ":", true},
		{"sha-25=:" OTHER256 ":", true},
		{"sha-2566=:" OTHER256 ":", true},
		{"sha=:" OTHER256 ":", true},
		{"garbage", true},
		{"=", true},
	};
	struct http_client_response r;

	(void)state;
	for (size_t i = 0; i < 3 * sizeof(table) / sizeof(table[0]); i++) {
		assert_int_equal(check_header((enum header)(i % 3), "", table[i / 3].value), 0);
		assert_true(!note[0] == !table[i / 3].note);
		if (note[0])
			assert_non_null(strstr(note, names[i % 3]));
	}
	r = answer(""); /* another header has one that is checked */
	snprintf(r.content_digest, sizeof(r.content_digest), "md5=:HUXZLQLMuI/KZ5KDcJPcOA==:");
	snprintf(r.repr_digest, sizeof(r.repr_digest), "sha-256=:" SHA256 ":");
	assert_int_equal(check(&r), 0);
	assert_string_equal(note, "");
}

static void check__of_a_coded_body__fits_the_bytes_as_sent_or_decoded(void **state)
{
	static const struct {
		const char *value;
		bool good;
	} table[] = {
		{"sha-256=:" CODED256 ":", true},
		{"sha-256=:" SHA256 ":", true},
		{"sha-256=:" OTHER256 ":", false},
		{"sha-512=:" CODED512 ":, sha-256=:" CODED256 ":", true},
		{"sha-512=:" SHA512 ":", true},
		{"sha-512=:" CODED512 ":, sha-256=:" OTHER256 ":", false},
		{"sha-512=:" OTHER512 ":", false},
	};

	(void)state;
	for (size_t i = 0; i < 3 * sizeof(table) / sizeof(table[0]); i++)
		assert_int_equal(check_header((enum header)(i % 3), CODED, table[i / 3].value),
			table[i / 3].good ? 0 : -EINVAL);
	assert_non_null(strstr(why, "SHA-512 is 86c1a11d4748b2df")); /* as it was sent */
	/* what was not coded has one digest */
	assert_int_equal(check_header(CONTENT, "", "sha-256=:" CODED256 ":"), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			check__of_each_way_of_writing__holds_all_that_is_known_against_the_body),
		cmocka_unit_test(check__of_what_does_not_fit__says_which_header_and_what),
		cmocka_unit_test(check__of_several_headers__asks_each),
		cmocka_unit_test(check__of_a_known_algorithm_without_its_digest__does_not_fit),
		cmocka_unit_test(check__of_what_is_not_known__passes_it_over_and_says_so),
		cmocka_unit_test(check__of_a_coded_body__fits_the_bytes_as_sent_or_decoded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

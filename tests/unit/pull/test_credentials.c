/* Secrets: read from their files, and covered in what a server says. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "pull/credentials.h"
#include "tests/unit/fixture/captured.h"
#include "tests/unit/fixture/fault_memory.h"
#include "tests/unit/fixture/scratch.h"

/* ---- hiding ---- */

/* Hides in a copy that ends where its memory does, and looks at what is left. */
static void hide(const struct credentials *c, const char *token, const char *query,
	const char *said, const char *expected)
{
	size_t len = strlen(said);
	char *data = malloc(len ? len : 1);

	assert_non_null(data);
	memcpy(data, said, len);
	credentials_hide(c, token, query, data, len);
	assert_int_equal(strlen(expected), len);
	if (memcmp(data, expected, len) != 0)
		fail_msg("\"%.*s\" instead of \"%s\"", (int)len, data, expected);
	free(data);
}

static void hide__of_none__changes_nothing(void **state)
{
	const struct credentials none = {.count = 0}, empty = {.password = (char *)""};

	(void)state;
	hide(&none, NULL, NULL, "nothing is secret", "nothing is secret");
	hide(&none, "", "", "nothing is secret", "nothing is secret");
	hide(&empty, NULL, NULL, "nothing is secret", "nothing is secret");
	hide(&none, "s3cret", NULL, "", "");
}

static void hide__covers_every_kind(void **state)
{
	struct credentials c = {
		.lines = {(char *)"Authorization: Bearer tokA", (char *)"X-Key: keyB"},
		.count = 2,
		.password = (char *)"passC",
		.secret = (char *)"secD",
		.session_token = (char *)"sessE"};

	(void)state;
	hide(&c, "loginF", "sig=queryG&x=1", "tokA keyB passC secD sessE loginF ?sig=queryG&x=1.",
		"**** **** ***** **** ***** ****** ?**************.");
	hide(&c, NULL, NULL, "Bearer tokA; bearer tokA; X-Key: keyB",
		"***********; bearer ****; X-Key: ****");
	hide(&c, NULL, NULL, "loginF Authorization X-Key Bearer",
		"loginF Authorization X-Key Bearer");
}

static void hide__in_urls__leaves_the_rest(void **state)
{
	const struct credentials c = {.password = (char *)"p@ss/word"};

	(void)state;
	hide(&c, "t0k", "accessToken=t0k&tenant=a%2Fb",
		"GET https://h/v1/cs?accessToken=t0k&tenant=a%2Fb HTTP/1.1",
		"GET https://h/v1/cs?**************************** HTTP/1.1");
	hide(&c, "t0k", "accessToken=t0k&tenant=a%2Fb", "no tenant for accessToken=t0k",
		"no tenant for accessToken=***");
	hide(&c, NULL, NULL, "https://me:p@ss/word@h/", "https://me:*********@h/");
}

static void hide__of_basic__covers_what_was_sent_and_the_password(void **state)
{
	const struct credentials c = {.user = "Aladdin", .password = (char *)"open sesame"},
				 nobody = {.password = (char *)"open sesame"};

	(void)state; /* RFC 7617, 2 */
	hide(&c, NULL, NULL, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ== is not Aladdin:open sesame",
		"Basic **************************** is not Aladdin:***********");
	hide(&nobody, NULL, NULL, "QWxhZGRpbjpvcGVuIHNlc2FtZQ== open sesame",
		"QWxhZGRpbjpvcGVuIHNlc2FtZQ== ***********");
}

static void hide__of_a_header_with_a_scheme__covers_it_with_and_without(void **state)
{
	static const struct {
		const char *line, *said, *expected;
	} table[] = {
		{"Authorization: Basic Zm9v", "Basic Zm9v, Zm9v", "**********, ****"},
		{"PROXY-AUTHORIZATION: Token Zm9v", "Token Zm9v, Zm9v", "**********, ****"},
		{"X-Token: bearer Zm9v", "bearer Zm9v, Zm9v", "***********, ****"},
		{"Authorization: Zm9v", "Zm9v", "****"},
		{"X-Zone: eu 1", "eu 1, 1", "****, 1"},
		{"X: Authorization: eu 1", "Authorization: eu 1, 1", "*******************, 1"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const struct credentials c = {.lines = {(char *)table[i].line}, .count = 1};

		hide(&c, NULL, NULL, table[i].said, table[i].expected);
	}
}

static void hide__at_both_ends_and_next_to_each_other(void **state)
{
	const struct credentials c = {.password = (char *)"abc"};

	(void)state;
	hide(&c, NULL, NULL, "abc", "***");
	hide(&c, NULL, NULL, "abcabc", "******");
	hide(&c, NULL, NULL, "abc-abc", "***-***");
	hide(&c, NULL, NULL, "-abc", "-***");
	hide(&c, NULL, NULL, "ab", "ab");
	hide(&c, NULL, NULL, "abcab", "***ab");
}

static void hide__of_a_secret_longer_than_what_was_said__changes_nothing(void **state)
{
	const struct credentials c = {.password = (char *)"much longer than that"};

	(void)state;
	hide(&c, NULL, NULL, "much longer", "much longer");
	hide(&c, NULL, NULL, "m", "m");
}

/* One in another, in any order; the end of one as the beginning of the other, and of itself. */
static void hide__of_secrets_that_overlap__leaves_no_part_of_one(void **state)
{
	const struct credentials in = {.password = (char *)"key", .secret = (char *)"monkeys"},
				 turned = {.password = (char *)"monkeys", .secret = (char *)"key"},
				 chain = {.lines = {(char *)"X: abcX", (char *)"Y: Xdef"},
					 .count = 2},
				 itself = {.password = (char *)"anana"};

	(void)state;
	hide(&in, NULL, NULL, "monkeys, key", "*******, ***");
	hide(&turned, NULL, NULL, "monkeys, key", "*******, ***");
	hide(&chain, NULL, NULL, "abcXdef abcX Xdef abc", "******* **** **** abc");
	hide(&itself, NULL, NULL, "bananana!", "b*******!");
	hide(&in, "onk", "k=monkeys&v=1", "k=monkeys&v=1 monks", "************* m***s");
}

static void hide__looks_behind_a_nul(void **state)
{
	const struct credentials c = {.password = (char *)"abc"};
	char data[] = "x\0abc\0abc";

	(void)state;
	credentials_hide(&c, NULL, NULL, data, sizeof(data) - 1);
	assert_memory_equal(data, "x\0***\0***", sizeof(data));
}

/* ---- reading ---- */

static char dir[SCRATCH_PATH];

static int make_dir(void **state)
{
	(void)state;
	scratch_open(dir, "/tmp");
	return 0;
}

static int remove_dir(void **state)
{
	(void)state;
	scratch_close(dir);
	return 0;
}

/* Writes a file; its path, which the caller frees. */
static char *written(const char *name, const char *text)
{
	char *path = NULL;

	scratch_write(dir, name, text, strlen(text));
	assert_true(asprintf(&path, "%s/%s", dir, name) > 0);
	return path;
}

static void read__takes_one_line_and_not_its_end(void **state)
{
	static const struct {
		const char *file, *secret; /* NULL = refused */
	} table[] = {
		{"s3cret", "s3cret"},
		{"s3cret\n", "s3cret"},
		{"s3cret\r\n", "s3cret"},
		{" s ", " s "},
		{"", NULL},
		{"\n", NULL},
		{"\r\n", NULL},
		{"two\nlines\n", NULL},
		{"s\n\n", NULL},
		{"s\rt", NULL},
		{"s\tt", NULL},
		{"s\x7f", NULL},
		{"\ts", NULL},
		{"\nsecond", NULL},
	};
	char why[FILE_WHY];
	struct credentials c;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		char *path = written("password", table[i].file);
		const struct settings_server server = {.user = (char *)"me", .password_file = path};

		assert_int_equal(credentials_read(&sys_real, &server, &c, why),
			table[i].secret ? 0 : -EINVAL);
		if (table[i].secret) {
			assert_string_equal(c.password, table[i].secret);
			assert_string_equal(c.user, "me");
		} else {
			assert_non_null(strstr(why, path));
			assert_null(strstr(why, "lines\n"));
			assert_null(c.password);
		}
		credentials_fini(&c);
		free(path);
	}
}

static void read__of_all__makes_lines(void **state)
{
	char *token = written("token", "t0k\n"), *key = written("key", "k3y\n"), why[FILE_WHY];
	struct settings_header headers[] = {{.name = (char *)"X-Key", .file = key},
		{.name = (char *)"X-Zone", .value = (char *)"eu: 1"}};
	const struct settings_server server = {.bearer_file = token,
		.secret_file = key,
		.session_token_file = token,
		.headers = headers,
		.header_count = 2};
	struct credentials c;

	(void)state;
	assert_int_equal(credentials_read(&sys_real, &server, &c, why), 0);
	assert_int_equal(c.count, 3);
	assert_string_equal(c.lines[0], "Authorization: Bearer t0k");
	assert_string_equal(c.lines[1], "X-Key: k3y");
	assert_string_equal(c.lines[2], "X-Zone: eu: 1");
	assert_string_equal(c.secret, "k3y");
	assert_string_equal(c.session_token, "t0k");
	assert_null(c.user);
	hide(&c, NULL, NULL, "t0k k3y eu: 1, 1 eu", "*** *** *****, 1 eu");
	credentials_fini(&c);
	free(token);
	free(key);
}

static void read__without_memory__keeps_nothing_and_says_so(void **state)
{
	char *token = written("token", "t0k\n"), why[FILE_WHY];
	struct settings_header headers[] = {{.name = (char *)"X-Key", .file = token},
		{.name = (char *)"X-Zone", .value = (char *)"eu: 1"}};
	const struct settings_server server = {.bearer_file = token,
		.password_file = token,
		.headers = headers,
		.header_count = 2};
	bool hit = fault_memory_works;
	unsigned failures = 0;

	(void)state;
	for (unsigned n = 1; hit; n++) {
		struct credentials c;
		int r;

		why[0] = '\0';
		fault_memory.seen = 0;
		fault_memory.nth = n;
		r = credentials_read(&sys_real, &server, &c, why);
		fault_memory.nth = 0;
		hit = fault_memory.seen >= n;
		if (r == 0) { /* what makes a text shorter may fail */
			assert_int_equal(c.count, 3);
			assert_string_equal(c.password, "t0k");
			assert_string_equal(c.lines[0], "Authorization: Bearer t0k");
			assert_string_equal(c.lines[1], "X-Key: t0k");
			assert_string_equal(c.lines[2], "X-Zone: eu: 1");
		} else {
			failures++;
			assert_int_equal(r, -ENOMEM);
			assert_non_null(strcasestr(why, "memory"));
			assert_null(c.password);
			assert_int_equal(c.count, 0);
		}
		credentials_fini(&c);
		assert_in_range(n, 1, 50);
	}
	assert_true(failures > 6 || !fault_memory_works);
	free(token);
}

/* Also what was read before. */
static void read__of_a_file_that_is_not_there_or_too_large__keeps_nothing(void **state)
{
	char large[SETTINGS_MAX_SECRET + 3], why[FILE_WHY], *good = written("good", "g"), *file;
	struct credentials c;

	(void)state;
	memset(large, 's', sizeof(large) - 1);
	large[sizeof(large) - 1] = '\0';
	file = written("large", large);
	for (unsigned missing = 0; missing < 2; missing++) {
		const struct settings_server server = {
			.bearer_file = good, .password_file = good, .secret_file = file};

		if (missing)
			unlink(file);
		assert_int_equal(credentials_read(&sys_real, &server, &c, why),
			missing ? -ENOENT : -EMSGSIZE);
		assert_non_null(strstr(why, file));
		assert_null(c.password);
		assert_int_equal(c.count, 0);
		credentials_fini(&c);
	}
	free(file);
	free(good);
}

static void check_tls__names_the_first_file_that_cannot_be_read(void **state)
{
	char why[FILE_WHY] = "", *good = written("good", "g");
	const struct settings_server none = {.url_count = 0}, all = {.ca = good, .key = good},
				     no_key = {.ca = good, .cert = good, .key = (char *)"/none"},
				     no_ca = {.ca = (char *)"/none/ca", .key = (char *)"/none"};

	(void)state;
	assert_int_equal(credentials_check_tls(&none, why), 0);
	assert_int_equal(credentials_check_tls(&all, why), 0);
	assert_string_equal(why, "");
	assert_int_equal(credentials_check_tls(&no_key, why), -ENOENT);
	assert_non_null(strstr(why, "/none: tls.key cannot be read: No such file or directory: "));
	assert_int_equal(credentials_check_tls(&no_ca, why), -ENOENT);
	assert_non_null(strstr(why, "/none/ca: tls.ca cannot be read"));
	free(good);
}

#define PLACES 6

/* What credentials_warn() logs about a secret with this mode, which is in one of its places. */
static void warn_about(size_t place, mode_t mode, char said[1024])
{
	char *path = written("open", "t0k\n");
	struct settings_server server = {.name = (char *)"main"};
	char **const places[PLACES] = {&server.bearer_file, &server.password_file,
		&server.secret_file, &server.session_token_file, &server.key, NULL};
	struct settings_header headers[] = {
		{.name = (char *)"X-Zone", .value = (char *)"eu"}, {.name = (char *)"X-Key"}};
	struct captured log = captured_begin(STDERR_FILENO);

	log_setup(LOG_LEVEL_WARN, LOG_FORMAT_TEXT);
	assert_int_equal(chmod(path, mode), 0);
	if (places[place]) {
		*places[place] = path;
	} else {
		headers[1].file = path;
		server.headers = headers;
		server.header_count = 2;
	}
	credentials_warn(&server);
	captured_read(&log, said, 1024);
	captured_end(&log);
	free(path);
}

static void warn__of_a_secret_that_any_user_can_read_or_replace(void **state)
{
	static const mode_t open_modes[] = {0604, 0602, 0646}, closed_modes[] = {0600, 0640, 0771};
	char said[1024];

	(void)state;
	for (size_t place = 0; place < PLACES; place++) {
		warn_about(place, 0604, said);
		assert_non_null(strstr(said, "server=main file="));
	}
	for (size_t i = 0; i < 3; i++) {
		warn_about(0, open_modes[i], said);
		assert_non_null(
			strstr(said, "any user of this host can read or replace the secret"));
		assert_non_null(strstr(said, "server=main file="));
		warn_about(0, closed_modes[i], said);
		assert_string_equal(said, "");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hide__of_none__changes_nothing),
		cmocka_unit_test(hide__covers_every_kind),
		cmocka_unit_test(hide__in_urls__leaves_the_rest),
		cmocka_unit_test(hide__of_basic__covers_what_was_sent_and_the_password),
		cmocka_unit_test(hide__of_a_header_with_a_scheme__covers_it_with_and_without),
		cmocka_unit_test(hide__at_both_ends_and_next_to_each_other),
		cmocka_unit_test(hide__of_a_secret_longer_than_what_was_said__changes_nothing),
		cmocka_unit_test(hide__of_secrets_that_overlap__leaves_no_part_of_one),
		cmocka_unit_test(hide__looks_behind_a_nul),
		cmocka_unit_test(read__takes_one_line_and_not_its_end),
		cmocka_unit_test(read__of_all__makes_lines),
		cmocka_unit_test(read__without_memory__keeps_nothing_and_says_so),
		cmocka_unit_test(read__of_a_file_that_is_not_there_or_too_large__keeps_nothing),
		cmocka_unit_test(check_tls__names_the_first_file_that_cannot_be_read),
		cmocka_unit_test(warn__of_a_secret_that_any_user_can_read_or_replace),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}

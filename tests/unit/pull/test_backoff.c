/*
 * The backoffs of addresses: which sections of the configuration share one, what the end of a
 * request says about it, and which address of a list is asked.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pull/backoff.h"
#include "tests/unit/fixture/fault_memory.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static uint64_t now_ms = 1000;

static uint64_t clock_ms(void)
{
	return now_ms;
}

static uint64_t least(void)
{
	return 0;
}

static struct sys sys;
static struct backoffs *all;

static int set_up(void **state)
{
	(void)state;
	sys = sys_real;
	sys.now_ms = clock_ms;
	sys.random = least;
	now_ms = 1000;
	all = backoffs_new(&sys);
	assert_non_null(all);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	backoffs_free(all);
	return 0;
}

static const struct settings_server plain;

/* Do two sections share the backoff of these addresses? */
static bool share(const struct settings_server *a, const char *url, const struct settings_server *b,
	const char *other)
{
	struct backoff *x = backoff_join(all, a, url), *y = backoff_join(all, b, other);
	bool same = x == y;

	assert_true(x && y);
	backoff_leave(x);
	backoff_leave(y);
	return same;
}

static void join__of_one_address_in_other_words__is_the_same(void **state)
{
	static const char *const same[][2] = {
		{"http://a", "http://a"},
		{"http://a", "http://a:80"},
		{"http://a", "http://a/other/path"},
		{"http://A.Example", "HTTP://a.example"},
		{"https://a:443/x", "https://a"},
		{"http://[::1]:80", "http://[::1]"},
		{"http://a/", "http://a:80/?x=1"},
		{"file:///etc", "file:///etc"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(same); i++) {
		assert_true(share(&plain, same[i][0], &plain, same[i][1]));
		assert_true(share(&plain, same[i][1], &plain, same[i][0]));
	}
}

static void join__of_other_addresses__is_another_one(void **state)
{
	static const char *const others[][2] = {
		{"http://a", "http://b"},
		{"http://a", "https://a"},
		{"http://a", "http://a:443"},
		{"https://a", "https://a:80"},
		{"http://a:8080", "http://a:80"},
		{"http://a:180", "http://a:1"},
		{"http://[::80]", "http://[::]"},
		{"file:///etc", "file:///var"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(others); i++)
		assert_false(share(&plain, others[i][0], &plain, others[i][1]));
}

static void join__with_other_tls__is_another_one_where_tls_is_spoken(void **state)
{
	char one[] = "/ca-1", two[] = "/ca-2";
	const struct settings_server a = {.ca = one}, b = {.ca = two}, c = {.crl = one},
				     d = {.cert = one}, e = {.key = one},
				     f = {.tls_min = SETTINGS_TLS_1_3};
	const struct settings_server *list[] = {&plain, &a, &b, &c, &d, &e, &f};

	(void)state;
	for (size_t i = 0; i < COUNT(list); i++)
		for (size_t k = 0; k < COUNT(list); k++) {
			assert_int_equal(share(list[i], "https://a", list[k], "https://a"), i == k);
			assert_true(share(list[i], "http://a", list[k], "http://a"));
		}
}

static const struct http_client_response good = {.result = HTTP_CLIENT_OK, .status = 200},
					 busy = {.result = HTTP_CLIENT_OK,
						 .status = 503,
						 .retry_after_ms = 40000},
					 refused = {.result = HTTP_CLIENT_REFUSED,
						 .message = "nobody listens"};

static void leave__by_the_last_user__forgets_it(void **state)
{
	struct backoff *a = backoff_join(all, &plain, "http://a"),
		       *b = backoff_join(all, &plain, "http://a/b");

	(void)state;
	backoff_ended(a, now_ms, &busy);
	assert_int_equal(backoff_until(b, now_ms), now_ms + 40001);
	backoff_leave(a);
	a = backoff_join(all, &plain, "http://a"); /* as at a new configuration */
	assert_int_equal(backoff_until(a, now_ms), now_ms + 40001);
	backoff_leave(a);
	backoff_leave(b);
	a = backoff_join(all, &plain, "http://a");
	assert_int_equal(backoff_until(a, now_ms), 0);
	backoff_leave(a);
}

static void ended__tells_what_that_says_about_the_address(void **state)
{
	static const struct {
		struct http_client_response response;
		enum backoff_health health;
		const char *error;
	} table[] = {
		{{.result = HTTP_CLIENT_OK, .status = 200}, BACKOFF_WELL, NULL},
		{{.result = HTTP_CLIENT_OK, .status = 404}, BACKOFF_WELL, NULL},
		{{.result = HTTP_CLIENT_OK, .status = 429}, BACKOFF_CONGESTED, "it answered 429"},
		{{.result = HTTP_CLIENT_OK, .status = 503}, BACKOFF_CONGESTED, "it answered 503"},
		{{.result = HTTP_CLIENT_OK, .status = 500}, BACKOFF_FAILED, "it answered 500"},
		{{.result = HTTP_CLIENT_TOO_LARGE}, BACKOFF_WELL, NULL},
		{{.result = HTTP_CLIENT_REFUSED, .message = "no"}, BACKOFF_FAILED, "no"},
		{{.result = HTTP_CLIENT_NETWORK, .message = "cut"}, BACKOFF_FAILED, "cut"},
		{{.result = HTTP_CLIENT_TLS, .message = "tls"}, BACKOFF_FAILED, "tls"},
		{{.result = HTTP_CLIENT_CODING, .message = "cut"}, BACKOFF_WELL, NULL},
		{{.result = HTTP_CLIENT_PROTOCOL, .message = "odd"}, BACKOFF_FAILED, "odd"},
		{{.result = HTTP_CLIENT_TIMEOUT, .message = "late"}, BACKOFF_FAILED, "late"},
		{{.result = HTTP_CLIENT_TIMEOUT, .sent = true}, BACKOFF_SILENT, NULL},
		{{.result = HTTP_CLIENT_HOST}, BACKOFF_UNASKED, NULL},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct backoff *b = backoff_join(all, &plain, "http://a");

		assert_int_equal(backoff_ended(b, now_ms, &table[i].response), table[i].health);
		assert_int_equal(backoff_until(b, now_ms) != 0, table[i].error != NULL);
		assert_int_equal(b->error != NULL, table[i].error != NULL);
		if (table[i].error)
			assert_string_equal(b->error, table[i].error);
		now_ms = backoff_until(b, now_ms) + 1000; /* well again */
		backoff_ended(b, now_ms, &good);
		assert_null(b->error);
		assert_int_equal(b->shaper.in_a_row, 0);
		backoff_leave(b);
	}
}

static void lift__ends_what_the_server_did_not_ask_for(void **state)
{
	struct backoff *b = backoff_join(all, &plain, "http://a");

	(void)state;
	backoff_ended(b, now_ms, &refused);
	assert_int_equal(backoff_until(b, now_ms), now_ms + 1);
	backoff_lift(b);
	assert_int_equal(backoff_until(b, now_ms), 0);
	backoff_ended(b, now_ms, &busy);
	backoff_lift(b);
	backoff_limit(b, 1000);
	assert_int_equal(backoff_until(b, now_ms), now_ms + 40001);
	backoff_leave(b);
}

static void kept_waiting__is_left_for_as_long(void **state)
{
	struct backoff *b = backoff_join(all, &plain, "http://a");

	(void)state;
	now_ms += 7000;
	backoff_kept_waiting(b, now_ms - 7000);
	assert_int_equal(backoff_until(b, now_ms), now_ms + 7000);
	assert_string_equal(b->error, "it does not answer in time");
	backoff_leave(b);
}

static void pick__takes_the_first_that_does_not_back_off__else_the_soonest(void **state)
{
	char a[] = "http://a", b[] = "http://b", c[] = "http://c", *urls[] = {a, b, c};
	const struct settings_server server = {.urls = urls, .url_count = 3};
	struct backoff **list = backoff_join_all(all, &server);
	struct http_client_response later = busy;
	uint64_t until_ms;

	(void)state;
	assert_non_null(list);
	assert_int_equal(backoff_pick(list, 3, 0, BACKOFF_NONE, now_ms, &until_ms), 0);
	assert_int_equal(until_ms, 0);
	assert_int_equal(backoff_pick(list, 3, 2, BACKOFF_NONE, now_ms, &until_ms), 2);
	assert_int_equal(backoff_pick(list, 3, 2, 2, now_ms, &until_ms), 0);
	backoff_ended(list[0], now_ms, &busy);
	assert_int_equal(backoff_pick(list, 3, 0, BACKOFF_NONE, now_ms, &until_ms), 1);
	assert_int_equal(backoff_pick(list, 3, 2, 2, now_ms, &until_ms), 1);
	assert_int_equal(until_ms, 0);
	later.retry_after_ms = 20000;
	backoff_ended(list[1], now_ms, &later);
	backoff_ended(list[2], now_ms, &busy);
	assert_int_equal(backoff_pick(list, 3, 0, BACKOFF_NONE, now_ms, &until_ms), 1);
	assert_int_equal(until_ms, now_ms + 20001);
	assert_int_equal(backoff_pick(list, 3, 0, 1, now_ms, &until_ms), 0);
	assert_int_equal(backoff_pick(list, 1, 0, 0, now_ms, &until_ms), 0); /* none is left */
	assert_true(until_ms == UINT64_MAX);
	backoff_leave_all(list, 3);
	backoff_leave_all(NULL, 3);
}

static void join__without_memory__joins_none(void **state)
{
	static char a[] = "https://a.example", b[] = "https://b.example";
	static char *urls[] = {a, b};
	const struct settings_server server = {.urls = urls, .url_count = 2};
	unsigned failures = 0;
	bool hit = true;

	(void)state;
	for (unsigned n = 1; hit; n++) {
		struct backoff **list;

		fault_memory.seen = 0;
		fault_memory.nth = n;
		list = backoff_join_all(all, &server);
		fault_memory.nth = 0;
		hit = fault_memory.seen >= n;
		failures += !list;
		assert_true(list || hit);
		if (list)
			assert_true(
				list[0] != list[1] && list[0]->users == 1 && list[1]->users == 1);
		backoff_leave_all(list, 2);
		assert_in_range(n, 1, 50);
	}
	assert_true(failures > 4); /* the list, two of them, two names */
	backoff_leave_all(NULL, 2);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			join__of_one_address_in_other_words__is_the_same, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			join__of_other_addresses__is_another_one, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			join__with_other_tls__is_another_one_where_tls_is_spoken, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			leave__by_the_last_user__forgets_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			ended__tells_what_that_says_about_the_address, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			lift__ends_what_the_server_did_not_ask_for, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			kept_waiting__is_left_for_as_long, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			pick__takes_the_first_that_does_not_back_off__else_the_soonest, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			join__without_memory__joins_none, set_up, tear_down),
	};

	return fault_memory_run(tests, 1);
}

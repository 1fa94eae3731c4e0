/* Numbers and epochs, as etcd and Consul write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pull/kinds/kv.h"

#define MOST "18446744073709551615"

static void digits__of_any_number__are_read_whole(void **state)
{
	static const struct {
		const char *text;
		uint64_t number;
	} good[] = {{"0", 0}, {"9", 9}, {"10", 10}, {"00", 0}, {MOST, UINT64_MAX}};
	static const char *const bad[] = {
		"", "-1", "+1", " 1", "1 ", "1x", "/", ":", "18446744073709551616", MOST "0"};
	uint64_t n = 7;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_true(kv_digits(good[i].text, &n));
		assert_true(n == good[i].number);
	}
	n = 7;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (kv_digits(bad[i], &n) || n != 7)
			fail_msg("\"%s\"", bad[i]);
}

static void epoch__of_as_many_numbers__is_read(void **state)
{
	uint64_t n[3] = {0};

	(void)state;
	assert_true(kv_epoch("1 " MOST " 3", n, 3));
	assert_true(n[0] == 1 && n[1] == UINT64_MAX && n[2] == 3);
	assert_true(kv_epoch("5", n, 1));
	assert_int_equal(n[0], 5);
}

static void epoch__with_a_number_longer_than_any__is_none(void **state)
{
	uint64_t n[2];

	(void)state;
	assert_true(kv_epoch("00000000000000000007 00000000000000000008", n, 2));
	assert_true(n[0] == 7 && n[1] == 8);
	assert_false(kv_epoch("000000000000000000007 8", n, 2));
	assert_false(kv_epoch("7 000000000000000000008", n, 2));
}

static void epoch__of_more_or_fewer_or_other_words__is_none(void **state)
{
	static const char *const bad[] = {"", "1", "1 2 ", "1  2", "1 2 3", "1 x", " 1 2", "a 2",
		"1 018446744073709551615", "1 0018446744073709551615",
		"1 00000000000000000000000000000000000001"};
	uint64_t n[2];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		/* of its size exactly, so that a sanitizer sees what reads beyond it */
		char *text = strdup(bad[i]);
		bool good = kv_epoch(text, n, 2);

		free(text);
		if (good && i != 8) /* 20 digits and a zero in front are still that number */
			fail_msg("\"%s\"", bad[i]);
	}
	assert_false(kv_epoch(NULL, n, 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(digits__of_any_number__are_read_whole),
		cmocka_unit_test(epoch__of_as_many_numbers__is_read),
		cmocka_unit_test(epoch__with_a_number_longer_than_any__is_none),
		cmocka_unit_test(epoch__of_more_or_fewer_or_other_words__is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

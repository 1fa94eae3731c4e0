/* Numbers and epochs, as etcd and Consul write them, and what their refusals say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
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

static void words__end_at_the_line_and_are_printable(void **state)
{
	static const struct {
		const char *text, *words;
	} table[] = {{"", ""}, {"no", "no"}, {"no\n", "no"}, {"no\r\n", "no"}, {"no\n\r\n\n", "no"},
		{"\n", ""}, {"\r\n", ""}, {"\r", ""}, {"no\r", "no"}, {"\rno", "?no"},
		{"a\nb", "a?b"}, {"\rn\n", "?n"}, {" ~\x1f\x7f\x80", " ~???"}};
	char words[KV_WORDS], longest[KV_WORDS + 2];

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		/* of its size exactly, so that a sanitizer sees what reads beyond it */
		size_t len = strlen(table[i].text);
		char *text = len ? strndup(table[i].text, len) : NULL;

		kv_words(text ? text : "", len, words);
		free(text);
		assert_string_equal(words, table[i].words);
	}
	memset(longest, 'x', sizeof(longest));
	kv_words(longest, sizeof(longest), words);
	assert_int_equal(strlen(words), KV_WORDS - 1);
	assert_int_equal(strspn(words, "x"), KV_WORDS - 1);
}

static void unreadable__names_neither_a_key_nor_a_remedy(void **state)
{
	static const struct {
		const char *message, *words;
	} table[] = {{"'[' expected near 'secret'", "'[' expected"},
		{"too deep: see max_depth", "too deep"}, {"it has \"secret\" twice", "it has"},
		{"no map", "no map"}, {" ", ""}, {": x", ""}, {"a: b near 'c'", "a"},
		{" near 'c'", ""}};
	struct document_error e = {.line = 1};
	char why[FILE_WHY], expected[FILE_WHY];

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		snprintf(e.message, sizeof(e.message), "%s", table[i].message);
		kv_unreadable("etcd", &e, why);
		snprintf(expected, sizeof(expected), "the answer of etcd cannot be read: %s",
			table[i].words);
		assert_string_equal(why, expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(digits__of_any_number__are_read_whole),
		cmocka_unit_test(epoch__of_as_many_numbers__is_read),
		cmocka_unit_test(epoch__with_a_number_longer_than_any__is_none),
		cmocka_unit_test(epoch__of_more_or_fewer_or_other_words__is_none),
		cmocka_unit_test(words__end_at_the_line_and_are_printable),
		cmocka_unit_test(unreadable__names_neither_a_key_nor_a_remedy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * The buffer's growth, its exact bound, and sums that would overflow.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <wchar.h>

#include <cmocka.h>

#include "../../lib/buffer.h"

/* Sanitizers end the program on a request that malloc would only refuse. */
const char *__asan_default_options(void);
const char *__tsan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}
const char *__tsan_default_options(void)
{
	return "allocator_may_return_null=1";
}

static void assert_holds(const struct buffer *b, const char *text)
{
	assert_int_equal(b->len, strlen(text));
	assert_string_equal(b->data, text);
	assert_true(b->cap > b->len);
}

static void init__allocates_nothing(void **state)
{
	struct buffer b;

	(void)state;
	buffer_init(&b, 100);
	assert_null(b.data);
	assert_int_equal(b.cap, 0);
	assert_int_equal(buffer_append(&b, NULL, 0), 0);
	assert_int_equal(buffer_append_string(&b, ""), 0);
	assert_int_equal(buffer_printf(&b, "%s", ""), 0);
	assert_int_equal(buffer_reserve(&b, 0), 0);
	buffer_clear(&b);
	assert_null(b.data);
	buffer_fini(&b);
}

static void append__piece_by_piece__keeps_all_and_the_nul(void **state)
{
	struct buffer b;

	(void)state;
	buffer_init(&b, 100);
	assert_int_equal(buffer_append_string(&b, "one"), 0);
	assert_holds(&b, "one");
	assert_int_equal(buffer_append(&b, " two!", 4), 0);
	assert_holds(&b, "one two");
	assert_int_equal(buffer_printf(&b, " %d %s", 3, "four"), 0);
	assert_holds(&b, "one two 3 four");
	buffer_clear(&b);
	assert_holds(&b, "");
	assert_int_equal(buffer_append(&b, "a\0b", 3), 0);
	assert_int_equal(b.len, 3);
	assert_memory_equal(b.data, "a\0b", 4);
	buffer_fini(&b);
	assert_null(b.data);
	assert_int_equal(buffer_append_string(&b, "again"), 0);
	assert_holds(&b, "again");
	buffer_fini(&b);
}

static void append__byte_by_byte__doubles_the_memory(void **state)
{
	const size_t count = 100000;
	struct buffer b;
	size_t growths = 0, cap = 0;

	(void)state;
	buffer_init(&b, count);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(buffer_append(&b, &"0123456789"[i % 10], 1), 0);
		if (b.cap != cap) {
			growths++;
			assert_true(cap == 0 || b.cap == cap * 2 || b.cap == count + 1);
			cap = b.cap;
		}
	}
	for (size_t i = 0; i < count; i++)
		assert_int_equal(b.data[i], '0' + (char)(i % 10));
	assert_true(growths <= 12);
	assert_int_equal(b.cap, count + 1);
	assert_int_equal(buffer_append(&b, "x", 1), -EMSGSIZE);
	buffer_fini(&b);
}

static void append__at_the_maximum__takes_the_last_byte_and_no_more(void **state)
{
	struct buffer b;

	(void)state;
	buffer_init(&b, 5);
	assert_int_equal(buffer_append_string(&b, "123456"), -EMSGSIZE);
	assert_null(b.data);
	buffer_clear(&b);
	assert_int_equal(buffer_append_string(&b, "12345"), 0);
	assert_int_equal(b.cap, 6);
	assert_int_equal(buffer_append(&b, "6", 1), -EMSGSIZE);
	assert_holds(&b, "12345");
	buffer_fini(&b);
	buffer_init(&b, 0);
	assert_int_equal(buffer_append(&b, "1", 1), -EMSGSIZE);
	buffer_fini(&b);
}

static void printf__at_the_maximum__fits_exactly_or_changes_nothing(void **state)
{
	struct buffer b;

	(void)state;
	buffer_init(&b, 10);
	assert_int_equal(buffer_printf(&b, "%s", "12345678901"), -EMSGSIZE);
	assert_null(b.data);
	buffer_clear(&b);
	assert_int_equal(buffer_printf(&b, "%s-%d", "abc", 42), 0);
	assert_int_equal(buffer_printf(&b, "%s", "1234"), 0);
	assert_holds(&b, "abc-421234");
	assert_int_equal(buffer_printf(&b, "%s", "x"), -EMSGSIZE);
	assert_holds(&b, "abc-421234");
	buffer_fini(&b);
}

static void error__of_one_piece__sticks_until_cleared(void **state)
{
	struct buffer b;

	(void)state;
	buffer_init(&b, 5);
	assert_int_equal(buffer_append_string(&b, "1234"), 0);
	assert_int_equal(buffer_append_string(&b, "56"), -EMSGSIZE);
	/* it would fit, but the text would have a hole */
	assert_int_equal(buffer_append_string(&b, "5"), -EMSGSIZE);
	assert_int_equal(buffer_printf(&b, "5"), -EMSGSIZE);
	assert_int_equal(buffer_reserve(&b, 1), -EMSGSIZE);
	assert_holds(&b, "1234");
	buffer_clear(&b);
	assert_int_equal(buffer_append_string(&b, "5"), 0);
	assert_holds(&b, "5");
	buffer_fini(&b);
}

static void printf__longer_than_the_memory__grows_and_starts_over(void **state)
{
	struct buffer b;
	char expected[2 + 300 + 1] = "ab";

	(void)state;
	memset(expected + 2, ' ', 299);
	expected[301] = '7';
	buffer_init(&b, 1000);
	assert_int_equal(buffer_append_string(&b, "ab"), 0);
	assert_int_equal(buffer_printf(&b, "%300d", 7), 0);
	assert_holds(&b, expected);
	buffer_fini(&b);
}

static void printf__text_that_cannot_be_formatted__changes_nothing(void **state)
{
	static const wchar_t no_character[] = {0x7fffffff, 0};
	struct buffer b;

	(void)state;
	buffer_init(&b, SIZE_MAX);
	assert_int_equal(buffer_append_string(&b, "kept"), 0);
	assert_int_equal(buffer_printf(&b, "lost %ls", no_character), -EMSGSIZE);
	assert_holds(&b, "kept");
	buffer_fini(&b);
}

static void reserve__makes_room_for_a_filler(void **state)
{
	struct buffer b;

	(void)state;
	buffer_init(&b, 1000);
	assert_int_equal(buffer_append_string(&b, "head "), 0);
	assert_int_equal(buffer_reserve(&b, 995), 0);
	assert_holds(&b, "head ");
	memset(b.data + b.len, 'x', 995);
	b.len += 995;
	b.data[b.len] = '\0';
	assert_int_equal(b.cap, 1001);
	assert_int_equal(buffer_reserve(&b, 1), -EMSGSIZE);
	buffer_fini(&b);
}

static void reserve__sums_that_overflow__are_refused(void **state)
{
	static const size_t sizes[] = {
		SIZE_MAX - 1, SIZE_MAX - 2, SIZE_MAX / 2 + 2, SIZE_MAX / 2 - 2};
	struct buffer b;

	(void)state;
	buffer_init(&b, SIZE_MAX);
	assert_int_equal(buffer_reserve(&b, SIZE_MAX), -ENOMEM);
	buffer_clear(&b);
	assert_int_equal(buffer_append(&b, "1", 1), 0);
	assert_int_equal(buffer_reserve(&b, SIZE_MAX), -EMSGSIZE);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		buffer_clear(&b);
		assert_int_equal(buffer_append(&b, "1", 1), 0);
		assert_int_equal(buffer_reserve(&b, sizes[i]), -ENOMEM);
		assert_holds(&b, "1");
	}
	buffer_fini(&b);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(init__allocates_nothing),
		cmocka_unit_test(append__piece_by_piece__keeps_all_and_the_nul),
		cmocka_unit_test(append__byte_by_byte__doubles_the_memory),
		cmocka_unit_test(append__at_the_maximum__takes_the_last_byte_and_no_more),
		cmocka_unit_test(printf__at_the_maximum__fits_exactly_or_changes_nothing),
		cmocka_unit_test(error__of_one_piece__sticks_until_cleared),
		cmocka_unit_test(printf__longer_than_the_memory__grows_and_starts_over),
		cmocka_unit_test(printf__text_that_cannot_be_formatted__changes_nothing),
		cmocka_unit_test(reserve__makes_room_for_a_filler),
		cmocka_unit_test(reserve__sums_that_overflow__are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

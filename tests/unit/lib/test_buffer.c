/*
 * The buffer's growth, its exact bound, sums that would overflow, and all of it against a model: an
 * array that is large enough from the start.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include <cmocka.h>

#include "lib/buffer.h"
#include "tests/unit/fixture/model_random.h"

#define STEPS 1200000
#define LARGEST 3000 /* bytes in a model */

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

static void take_error__of_another__is_as_its_own_and_the_first_stays(void **state)
{
	struct buffer b, large, good;

	(void)state;
	buffer_init(&b, 8);
	buffer_init(&good, 8);
	buffer_init(&large, 1);
	buffer_append_string(&b, "a");
	buffer_take_error(&b, &good);
	assert_int_equal(b.error, 0);
	assert_int_equal(buffer_append_string(&large, "ab"), -EMSGSIZE);
	buffer_take_error(&b, &large);
	assert_int_equal(b.error, -EMSGSIZE);
	assert_int_equal(buffer_append_string(&b, "b"), -EMSGSIZE);
	buffer_take_error(&b, &(struct buffer){.error = -ENOMEM});
	assert_int_equal(b.error, -EMSGSIZE);
	buffer_take_error(&b, &good);
	assert_int_equal(b.error, -EMSGSIZE);
	assert_holds(&b, "a");
	buffer_fini(&b);
	buffer_fini(&large);
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

/* ---- against the model ---- */

static struct {
	char *bytes; /* LARGEST of them */
	size_t len, max;
	int error;
} model;

static int model_append(const char *data, size_t len)
{
	if (!model.error && len > model.max - model.len)
		model.error = -EMSGSIZE;
	if (model.error)
		return model.error;
	memcpy(model.bytes + model.len, data, len);
	model.len += len;
	return 0;
}

/* A piece of text of any length up to a random one, without a NUL; and one NUL behind it. */
static size_t random_text(char *text)
{
	static const size_t limits[] = {1, 2, 20, 20, 300, LARGEST + 2};
	size_t len = random_below(limits[random_below(sizeof(limits) / sizeof(limits[0]))]);

	memset(text, (int)('a' + random_below(26)), len);
	if (len)
		text[len - 1] = (char)('A' + random_below(26));
	text[len] = '\0';
	return len;
}

static void append_one(struct buffer *b)
{
	char text[LARGEST + 2];
	size_t len = random_text(text);

	if (len && random_below(2))
		text[random_below(len)] = '\0';
	CHECK(buffer_append(b, text, len) == model_append(text, len));
}

static void append_string_one(struct buffer *b)
{
	char text[LARGEST + 2];
	size_t len = random_text(text);

	CHECK(buffer_append_string(b, text) == model_append(text, len));
}

static void printf_one(struct buffer *b)
{
	char text[LARGEST + 2], number[16] = "-";
	size_t len = random_text(text), digits = 0;
	unsigned value = (unsigned)random_below(100000);

	for (unsigned rest = value; digits == 0 || rest; rest /= 10)
		digits++;
	for (unsigned i = 0, rest = value; i < digits; i++, rest /= 10)
		number[digits - i] = (char)('0' + rest % 10);
	if (len + 1 + digits < sizeof(text) && random_below(2)) {
		memcpy(text + len, number, 1 + digits + 1);
		CHECK(buffer_printf(b, "%.*s-%u", (int)len, text, value) ==
			model_append(text, len + 1 + digits));
	} else {
		CHECK(buffer_printf(b, "%s", text) == model_append(text, len));
	}
}

/* A filler that does not use all the room it asked for. */
static void reserve_and_fill_one(struct buffer *b)
{
	char text[LARGEST + 2];
	size_t room = random_text(text), len = room ? random_below(room + 1) : 0;
	int r = buffer_reserve(b, room);

	if (r || room == 0) {
		CHECK(r == model_append(text, room));
		return;
	}
	CHECK(b->cap > b->len + room);
	memset(b->data + b->len, '!', room + 1);
	memcpy(b->data + b->len, text, len);
	b->len += len;
	b->data[b->len] = '\0';
	CHECK(model.len + room <= model.max && model_append(text, len) == 0);
}

static void reserve_too_much(struct buffer *b)
{
	if (!model.error)
		model.error = -EMSGSIZE;
	CHECK(buffer_reserve(b, SIZE_MAX - random_below(2)) == model.error);
}

static void clear(struct buffer *b)
{
	char *data = b->data;
	size_t cap = b->cap;

	buffer_clear(b);
	CHECK(b->data == data && b->cap == cap);
	model.len = 0;
	model.error = 0;
}

static void start_over(struct buffer *b)
{
	static const size_t maxima[] = {0, 1, 10, 254, 255, 256, 257, 511, 512, 1000, LARGEST};

	buffer_fini(b);
	CHECK(!b->data && b->max == model.max);
	model.len = 0;
	model.error = 0;
	if (random_below(2)) {
		model.max = maxima[random_below(sizeof(maxima) / sizeof(maxima[0]))];
		buffer_init(b, model.max);
	}
}

static void compare(const struct buffer *b)
{
	CHECK(b->error == model.error && b->max == model.max);
	CHECK(b->len == model.len && b->len <= b->max);
	CHECK(b->data || (b->len == 0 && b->cap == 0));
	CHECK(!b->data || (b->cap > b->len && b->cap <= b->max + 1));
	CHECK(!b->data || (memcmp(b->data, model.bytes, b->len) == 0 && !b->data[b->len]));
}

static void random_operations__agree_with_the_plain_array(void **state)
{
	static void (*const operations[])(struct buffer * b) = {
		append_one, append_string_one, printf_one, reserve_and_fill_one};
	struct buffer b;

	(void)state;
	model_random_start();
	model.bytes = malloc(LARGEST);
	assert_non_null(model.bytes);
	buffer_init(&b, model.max = LARGEST);
	for (; model_random.step < STEPS; model_random.step++) {
		uint64_t rare = random_below(200);

		if (rare == 0)
			start_over(&b);
		else if (rare == 1)
			reserve_too_much(&b);
		else if (rare < 10 || (model.error && rare < 100))
			clear(&b);
		else
			operations[random_below(4)](&b);
		compare(&b);
	}
	buffer_fini(&b);
	free(model.bytes);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(init__allocates_nothing),
		cmocka_unit_test(take_error__of_another__is_as_its_own_and_the_first_stays),
		cmocka_unit_test(append__piece_by_piece__keeps_all_and_the_nul),
		cmocka_unit_test(append__byte_by_byte__doubles_the_memory),
		cmocka_unit_test(append__at_the_maximum__takes_the_last_byte_and_no_more),
		cmocka_unit_test(printf__at_the_maximum__fits_exactly_or_changes_nothing),
		cmocka_unit_test(error__of_one_piece__sticks_until_cleared),
		cmocka_unit_test(printf__longer_than_the_memory__grows_and_starts_over),
		cmocka_unit_test(printf__text_that_cannot_be_formatted__changes_nothing),
		cmocka_unit_test(reserve__makes_room_for_a_filler),
		cmocka_unit_test(reserve__sums_that_overflow__are_refused),
		cmocka_unit_test(random_operations__agree_with_the_plain_array),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

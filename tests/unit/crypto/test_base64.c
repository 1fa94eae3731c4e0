/* Base64 against the vectors of its standard, all bytes there and back, and every text that is not
 * the one way of writing. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "crypto/base64.h"

/* RFC 4648, 10 */
static const struct vector {
	const char *bytes, *text;
} vectors[] = {
	{"", ""},
	{"f", "Zg=="},
	{"fo", "Zm8="},
	{"foo", "Zm9v"},
	{"foob", "Zm9vYg=="},
	{"fooba", "Zm9vYmE="},
	{"foobar", "Zm9vYmFy"},
};
#define VECTORS (sizeof(vectors) / sizeof(vectors[0]))

static void append__is_the_standards(void **state)
{
	struct buffer b;

	(void)state;
	for (size_t i = 0; i < VECTORS; i++) {
		buffer_init(&b, 64);
		assert_int_equal(buffer_append_string(&b, "Basic "), 0);
		assert_int_equal(base64_append(&b, vectors[i].bytes, strlen(vectors[i].bytes)), 0);
		assert_int_equal(b.len, strlen(b.data));
		assert_string_equal(b.data + strlen("Basic "), vectors[i].text);
		buffer_fini(&b);
	}
}

static void append__of_nothing__needs_no_memory(void **state)
{
	struct buffer b;

	(void)state;
	buffer_init(&b, 0);
	assert_int_equal(base64_append(&b, NULL, 0), 0);
	assert_null(b.data);
	buffer_fini(&b);
}

static void append__past_the_maximum__appends_nothing(void **state)
{
	struct buffer b;

	(void)state;
	for (size_t max = 0; max <= 9; max++) {
		buffer_init(&b, max);
		assert_int_equal(buffer_append_string(&b, max ? "x" : ""), 0);
		assert_int_equal(base64_append(&b, "fooba", 5), max < 9 ? -EMSGSIZE : 0);
		assert_string_equal(b.data ? b.data : "", max < 9 ? "x" + !max : "xZm9vYmE=");
		assert_int_equal(base64_append(&b, "", 0), max < 9 ? -EMSGSIZE : 0);
		buffer_fini(&b);
	}
}

static void decode__is_the_standards(void **state)
{
	char bytes[8];
	size_t len;

	(void)state;
	for (size_t i = 0; i < VECTORS; i++) {
		size_t size = strlen(vectors[i].bytes);

		memset(bytes, '#', sizeof(bytes));
		assert_int_equal(
			base64_decode(vectors[i].text, strlen(vectors[i].text), bytes, size, &len),
			0);
		assert_int_equal(len, size);
		assert_memory_equal(bytes, vectors[i].bytes, size);
		assert_int_equal(bytes[size], '#');
	}
	assert_int_equal(base64_decode(NULL, 0, NULL, 0, &len), 0);
	assert_int_equal(len, 0);
}

static void decode__of_any_bytes_appended__is_those_bytes(void **state)
{
	unsigned char bytes[256 * 3], back[sizeof(bytes)];
	struct buffer b;
	size_t len;

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i * 167 + i / 256);
	buffer_init(&b, 4 * sizeof(bytes));
	for (size_t size = 0; size <= sizeof(bytes); size++) {
		buffer_clear(&b);
		assert_int_equal(base64_append(&b, bytes, size), 0);
		assert_int_equal(base64_decode(b.data, b.len, back, size, &len), 0);
		assert_int_equal(len, size);
		assert_memory_equal(back, bytes, size);
		if (size)
			assert_int_equal(
				base64_decode(b.data, b.len, back, size - 1, &len), -EMSGSIZE);
	}
	buffer_fini(&b);
}

/* Of all 256 bytes at each place, those are taken that append() would write there. */
static void decode__of_each_character_at_each_place__takes_the_canonical_ones(void **state)
{
	static const char *const texts[] = {"Zm9v", "Zm8=", "Zg==", "Zm9vZm9v", "Zm9vZg=="};
	/* any letter; beside it the padding; those without spare bits; the padding alone */
	static const size_t taken[][8] = {{64, 64, 64, 64}, {64, 64, 16, 65}, {64, 4, 17, 1},
		{64, 64, 64, 64, 64, 64, 64, 64}, {64, 64, 64, 64, 64, 4, 17, 1}};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		for (size_t place = 0; place < strlen(texts[i]); place++) {
			size_t good = 0, len = 99;
			char text[9], bytes[6];
			struct buffer b;

			for (int c = 0; c < 256; c++) {
				snprintf(text, sizeof(text), "%s", texts[i]);
				text[place] = (char)c;
				if (base64_decode(
					    text, strlen(texts[i]), bytes, sizeof(bytes), &len)) {
					assert_int_equal(len, 99);
					continue;
				}
				buffer_init(&b, 8);
				assert_int_equal(base64_append(&b, bytes, len), 0);
				assert_string_equal(b.data, text);
				buffer_fini(&b);
				good++;
				len = 99;
			}
			if (good != taken[i][place])
				fail_msg("%s: %zu at %zu", texts[i], good, place);
		}
	}
}

static void decode__of_another_way_of_writing__refuses_it(void **state)
{
	static const char *const table[] = {
		"Zg",           /* no padding */
		"Zm8", "Zm9vY", /* not even a byte */
		"Zg=",          /* too little */
		"Zm9v=", "Zm9v==", "Zm9v===", "Zm9v====", "Z===", "A===", "====", "=",
		"==", "Zg==Zg==", "Zm8=Zm8=", "Z=8=", "=m8=", "Zm=v",
		"Zh==", "Zm9=", /* spare bits */
		"Zm8 ", " Zm8", "Zm9v\n", "Zm9v\n===", "Zm9vZm9v\r\n", "Zm9\n", "Zm9v\n   ", "Zm8-",
		"Zm8_", "Zm8.", "Zm8\xc3", /* the other alphabet, and none */
	};
	char bytes[16];
	size_t len = 99;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (base64_decode(table[i], strlen(table[i]), bytes, sizeof(bytes), &len) !=
			-EINVAL)
			fail_msg("'%s'", table[i]);
		assert_int_equal(len, 99);
	}
	assert_int_equal(base64_decode("Zm8\0", 4, bytes, sizeof(bytes), &len), -EINVAL);
}

static void decode__of_more_than_the_maximum__writes_nothing(void **state)
{
	char bytes[3] = "##";
	size_t len = 99;

	(void)state;
	assert_int_equal(base64_decode("Zm9v", 4, bytes, 2, &len), -EMSGSIZE);
	assert_int_equal(base64_decode("Zm8=", 4, bytes, 1, &len), -EMSGSIZE);
	assert_int_equal(base64_decode("Zg==", 4, bytes, 0, &len), -EMSGSIZE);
	assert_string_equal(bytes, "##");
	assert_int_equal(len, 99);
	assert_int_equal(base64_decode("Zg==", 4, bytes, 1, &len), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(append__is_the_standards),
		cmocka_unit_test(append__of_nothing__needs_no_memory),
		cmocka_unit_test(append__past_the_maximum__appends_nothing),
		cmocka_unit_test(decode__is_the_standards),
		cmocka_unit_test(decode__of_any_bytes_appended__is_those_bytes),
		cmocka_unit_test(decode__of_each_character_at_each_place__takes_the_canonical_ones),
		cmocka_unit_test(decode__of_another_way_of_writing__refuses_it),
		cmocka_unit_test(decode__of_more_than_the_maximum__writes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

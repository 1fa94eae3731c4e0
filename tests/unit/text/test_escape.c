/* Characters that are not shown as they are, in the three forms: for people, in lines, as JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "text/escape.h"
#include "text/json_text.h"

static const struct {
	const char *text, *people, *json;
} rows[] = {
	{"plain, \xc3\xa9, \xe4\xb8\xad, \xf0\x9f\x98\x80",
		"plain, \xc3\xa9, \xe4\xb8\xad, \xf0\x9f\x98\x80",
		"\"plain, \xc3\xa9, \xe4\xb8\xad, \xf0\x9f\x98\x80\""},
	{"a\x1b[2Jb", "a\\x1b[2Jb", "\"a\\u001b[2Jb\""},
	{"a\rb\x7f", "a\\x0db\\x7f", "\"a\\rb\\u007f\""},
	{"\xc2\x9b"
	 "31m",
		"\\u009b31m", "\"\\u009b31m\""}, /* CSI in one character */
	{"\xe2\x80\xae"
	 "cod.exe",
		"\\u202ecod.exe", "\"\\u202ecod.exe\""}, /* right to left */
	{"\xe2\x81\xa6x\xe2\x81\xa9", "\\u2066x\\u2069", "\"\\u2066x\\u2069\""},
	{"\xe2\x80\xa8\xc2\x85", "\\u2028\\u0085", "\"\\u2028\\u0085\""},
	{"\xf3\xa0\x81\x81", "\\U000e0041", "\"\\udb40\\udc41\""}, /* a tag */
	{"\xff\xc2", "\\xff\\xc2", "\"\\ufffd\\ufffd\""},
	{"\xed\xa0\x80", "\\xed\\xa0\\x80", "\"\\ufffd\\ufffd\\ufffd\""}, /* a surrogate */
	{"a\\\"b", "a\\\"b", "\"a\\\\\\\"b\""},
	{"", "", "\"\""},
};

static void each_character__has_one_form_for_people_and_one_in_json(void **state)
{
	struct buffer people, json;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		buffer_init(&people, 200);
		buffer_init(&json, 200);
		assert_int_equal(escape_append(&people, rows[i].text, strlen(rows[i].text)), 0);
		assert_int_equal(json_text_append(&json, rows[i].text, strlen(rows[i].text)), 0);
		assert_string_equal(people.len ? people.data : "", rows[i].people);
		assert_string_equal(json.data, rows[i].json);
		buffer_fini(&people);
		buffer_fini(&json);
	}
}

/* The whole of Unicode: what is not plain, from the first to the last of each range. */
static void no_character__that_others_than_letters_obey__is_plain(void **state)
{
	static const uint32_t ranges[][2] = {{0, 0x1f}, {0x7f, 0x9f}, {0xad, 0xad}, {0x61c, 0x61c},
		{0x180e, 0x180e}, {0x200b, 0x200b}, {0x200e, 0x200f}, {0x2028, 0x202e},
		{0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f}};
	size_t i = 0;

	(void)state;
	for (uint32_t c = 0; c <= 0x10ffff; c++) {
		while (i < sizeof(ranges) / sizeof(ranges[0]) && c > ranges[i][1])
			i++;
		if (escape_is_plain(c) !=
			(i == sizeof(ranges) / sizeof(ranges[0]) || c < ranges[i][0]))
			fail_msg("U+%04x", c);
	}
}

/* How many bytes the character at s has, by its value: 0 = it is none, or not the shortest form. */
static size_t model_sequence(const unsigned char *s, uint32_t *ret_value)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t len = 0;

	while (len < 8 && s[0] & (0x80 >> len))
		len++;
	if (len == 1 || len > 4)
		return 0;
	*ret_value = len ? s[0] & (0x7f >> len) : s[0];
	for (size_t i = 1; i < len; i++) {
		if (s[i] >> 6 != 2)
			return 0;
		*ret_value = *ret_value * 64 + s[i] % 64;
	}
	if (len && (*ret_value < least[len] || *ret_value > 0x10ffff ||
			   (*ret_value >= 0xd800 && *ret_value <= 0xdfff)))
		return 0;
	return len ? len : 1;
}

static void sequence__of_any_bytes__is_utf8_or_none(void **state)
{
	static const unsigned char edges[] = {0x7f, 0x80, 0xbf, 0xc0};
	const size_t count = sizeof(edges);
	unsigned char s[4];

	(void)state;
	for (unsigned n = 0; n < 65536 * count * count; n++) {
		size_t len;
		uint32_t value = 0;

		s[0] = (unsigned char)(n / count / count >> 8);
		s[1] = (unsigned char)(n / count / count);
		s[2] = edges[n / count % count];
		s[3] = edges[n % count];
		len = model_sequence(s, &value);
		if (escape_sequence((const char *)s, 4) != len ||
			(len && escape_code_point((const char *)s, len) != value))
			fail_msg("%02x %02x %02x %02x", s[0], s[1], s[2], s[3]);
		for (size_t left = 1; left < len && n % 16 == 0; left++) /* cut */
			assert_int_equal(escape_sequence((const char *)s, left), 0);
	}
}

static void text__is_utf8_when_all_of_it_is(void **state)
{
	(void)state;
	assert_true(escape_is_utf8(""));
	assert_true(escape_is_utf8("a\xc3\xa9\xf0\x9f\x98\x80"));
	assert_false(escape_is_utf8("a\xff"));
	assert_false(escape_is_utf8("\xc3"));
	assert_false(escape_is_utf8("\xed\xa0\x80z"));
}

static void lines__stay_lines__and_all_else_is_escaped(void **state)
{
	struct buffer b;

	(void)state;
	buffer_init(&b, 200);
	assert_int_equal(escape_append_lines(&b, "one\ntwo\x1b\n", "\n    "), 0);
	assert_string_equal(b.data, "one\n    two\\x1b\n    ");
	buffer_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_character__has_one_form_for_people_and_one_in_json),
		cmocka_unit_test(no_character__that_others_than_letters_obey__is_plain),
		cmocka_unit_test(sequence__of_any_bytes__is_utf8_or_none),
		cmocka_unit_test(text__is_utf8_when_all_of_it_is),
		cmocka_unit_test(lines__stay_lines__and_all_else_is_escaped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

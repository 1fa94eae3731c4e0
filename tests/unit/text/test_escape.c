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

static void no_character__that_others_than_letters_obey__is_plain(void **state)
{
	static const uint32_t not_plain[] = {0, 0x1b, 0x7f, 0x80, 0x9b, 0x9f, 0x61c, 0x200e, 0x200f,
		0x202a, 0x202e, 0x2066, 0x2069, 0xfeff, 0xe007f};
	static const uint32_t plain[] = {
		' ', '~', 0xa0, 0xe9, 0x200c, 0x200d, 0x2010, 0xfffd, 0x1f600, 0x10fffd};

	(void)state;
	for (size_t i = 0; i < sizeof(not_plain) / sizeof(not_plain[0]); i++)
		assert_false(escape_is_plain(not_plain[i]));
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		assert_true(escape_is_plain(plain[i]));
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
		cmocka_unit_test(lines__stay_lines__and_all_else_is_escaped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

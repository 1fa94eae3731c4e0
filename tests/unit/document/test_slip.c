/* Slips in YAML, as people make them: the place, and a guess at what was meant. The table is
 * tests/golden/slips.txt, whose rows that are no matter of YAML are left to settings/test_guess. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "document/document.h"
#include "document/slip.h"
#include "tests/unit/fixture/slips.h"

static void slip__of_the_table__has_its_place_and_a_guess(void **state)
{
	char *at = slips_open(), place[32];
	struct document_error error;
	struct document *d = NULL;
	struct slip_row row;
	size_t known = 0;

	(void)state;
	while (at) {
		at = slips_next(at, &row);
		if (strchr(row.words, '@')) /* the settings' own sentence */
			continue;
		error = (struct document_error){0};
		if (document_parse(DOCUMENT_YAML, row.text, row.text_len, 0, &d, &error) == 0) {
			document_free(d);
			continue;
		}
		known++;
		snprintf(place, sizeof(place), "%u:%u", error.line, error.column);
		if (strcmp(place, row.place) != 0 || !strstr(error.message, row.words))
			fail_msg("%s: %s: %s", row.name, place, error.message);
		if (document_parse(DOCUMENT_YAML, row.remedy, row.remedy_len, 0, &d, &error))
			fail_msg("%s: the remedy: %s", row.name, error.message);
		document_free(d);
	}
	assert_in_range(known, 55, 1000);
}

/* What a remedy for the agent's own file would not show. */
static void slip__in_a_document__has_its_sentence(void **state)
{
	static const struct {
		const char *text, *said;
	} rows[] = {
		{"a: \"\\xZZ\"\n", "1:7: hexadecimal digits must follow: \\xHH, "},
		{"a: ]\n", "1:4: this ] closes nothing: remove it, or put the value in quotes"},
		{"a: }\n", "1:4: this } closes nothing: remove it, or put the value in quotes"},
		{"a: ,b\n", "1:4: nothing stands before this comma: remove it"},
		{"'a' b\n", "1:5: text behind the closing quote: put the whole value in quotes"},
		{"{a: 1} x\n", "1:8: text behind the bracket that closes the document"},
		{"[a] b\n", "1:1: a [section] of an INI file: "},
		{"[AZ_09-az.]\nk = v\n", "1:1: a [section] of an INI file: "},
		{"[a b]\nc: 1\n", "2:1: text behind the bracket that closes the document"},
		{"a: 1\n[b]\n", "2:1: this line has no colon: write KEY: VALUE"},
		{"a: ['it's', b]\n", "1:8: write an apostrophe inside single quotes twice: ''"},
		{"a: ['x' y, b]\n", "1:9: a comma is missing before this"},
		{"a: [\"x\"y]\n", "1:8: a comma is missing before this"},
		{"a: {b: 1\n  c: 2}\n", "2:3: a comma is missing before this"},
		{"a: 1\n- b\n", "2:1: an item of a list (-) among keys: "},
		{"- a\nb: 1\n", "2:1: a key among the items of a list: indent it, or put a dash"},
		{"a: {%b}\n", "1:4: this is a statement of a template: fill it in first"},
		{"%a\n", "1:1: unsupported directive: "},
		{"a:\n  b: 1\n c: 2\n", "3:2: "},
		{"a:\n - - b\n   - c\n d: 1\n", "4:2: "},
	};
	struct document_error error;
	struct document *d = NULL;
	char said[400];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		error = (struct document_error){0};
		assert_int_equal(document_parse(DOCUMENT_YAML, rows[i].text, strlen(rows[i].text),
					 0, &d, &error),
			-EINVAL);
		snprintf(said, sizeof(said), "%u:%u: %s", error.line, error.column, error.message);
		if (strncmp(said, rows[i].said, strlen(rows[i].said)) != 0)
			fail_msg("%s: %s", rows[i].text, said);
	}
}

/* Text before a run of one character (or two bytes that are one), and behind it. */
static int parse_long(
	const char *before, const char *unit, unsigned count, const char *behind, char said[400])
{
	struct document_error error = {0};
	struct document *d = NULL;
	struct buffer text;
	int r;

	buffer_init(&text, 32768);
	buffer_append_string(&text, before);
	for (unsigned i = 0; i < count; i++)
		buffer_append_string(&text, unit);
	buffer_append_string(&text, behind);
	r = document_parse(DOCUMENT_YAML, text.data, text.len, 0, &d, &error);
	snprintf(said, 400, "%u:%u: %s", error.line, error.column, error.message);
	buffer_fini(&text);
	document_free(d);
	return r;
}

static void key__that_is_too_long_for_yaml__is_said_to_be(void **state)
{
	static const struct {
		const char *before, *unit, *behind, *place;
		unsigned longest;
	} rows[] = {
		{"", "k", ": 1\n", "1:1", 1024},
		{"\"", "k", "\": 1\nb: 2\n", "1:1", 1022},
		{"\"", "\xc3\xa9", "\": 1\nb: 2\n", "1:1", 1022},
		{"a: 1\n'", "k", "': 1\n", "2:1", 1022},
		{"a: 1\n'it''s ", "k", "''': 1\n", "2:1", 1014},
		{"a: 1\n\"", "k", "\\\"\": 1\n", "2:1", 1020},
		{"a:\n  - \"", "k", "\": 1\n", "2:5", 1022},
		{"a:\n  b: 1\n  ", "k", ":\n", "3:3", 1024},
		{"{\"", "k", "\": 1, b: 2}\n", "1:2", 1022},
		{"b: [a, {'", "k", "': 1}]\n", "1:9", 1022},
	};
	char said[400], place[64];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (parse_long(rows[i].before, rows[i].unit, rows[i].longest, rows[i].behind, said))
			fail_msg("row %zu: %s", i, said);
		assert_int_equal(parse_long(rows[i].before, rows[i].unit, rows[i].longest + 1,
					 rows[i].behind, said),
			-EINVAL);
		snprintf(place, sizeof(place), "%s: a key may have 1024 characters", rows[i].place);
		if (strncmp(said, place, strlen(place)) != 0)
			fail_msg("row %zu: %s", i, said);
	}
	assert_int_equal(parse_long("? \"", "k", 9000, "\"\n: 1\n", said), 0); /* the remedy */
}

static void text__that_is_long_and_no_key__is_not_taken_for_one(void **state)
{
	static const struct {
		const char *before, *behind, *said;
	} rows[] = {
		{"a: \"", "\": 1\n", "1:2006: a colon and a blank inside a value"},
		{"a: ", ": 1\n", "1:2004: a colon and a blank inside a value"},
		{"a:\n  b: 1\n  ", "\n", "3:3: this line has no colon"},
		{"a:\n  b: 1\n  \"", "\n", "3:3: the double quote that opens here"},
		{"a:\n  b: 1\n  \"", "\\\n\": 1\n", "3:3: this line has no colon"},
	};
	char said[400];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(
			parse_long(rows[i].before, "k", 2000, rows[i].behind, said), -EINVAL);
		if (strncmp(said, rows[i].said, strlen(rows[i].said)) != 0)
			fail_msg("row %zu: %s", i, said);
	}
}

static void line__that_is_no_key_and_value__has_its_sentence(void **state)
{
	static const struct {
		const char *text, *message;
		size_t at;
	} rows[] = {
		{"// a", "comments begin with #", 0},
		{"/* a */", "comments begin with #", 0},
		{"-item", "a blank must follow the dash of an item", 0},
		{"--", NULL, 0},
		{"-", NULL, 0},
		{"key=1", "write KEY: VALUE, not KEY = VALUE", 3},
		{"k.e-y_ZA90 \t= 1", "write KEY: VALUE, not KEY = VALUE", 12},
		{"key:1", "a blank must follow the colon", 3},
		{"http://h", NULL, 0},
		{"key", NULL, 0},
		{"key ", NULL, 0},
		{"key :1", NULL, 0},
		{"=1", NULL, 0},
		{"", NULL, 0},
		{"\xe2\x80\x9cx\xe2\x80\x9d", SLIP_TYPOGRAPHIC, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t at = 0;
		const char *message = slip_in_line(rows[i].text, strlen(rows[i].text), &at);

		assert_string_equal(
			message ? message : "none", rows[i].message ? rows[i].message : "none");
		assert_int_equal(at, rows[i].at);
	}
}

static void line__that_goes_on_below__is_found(void **state)
{
	static const struct {
		const char *text;
		size_t at, text_len, next; /* 0 = it does not */
	} rows[] = {
		{"a: b\n", 3, 1, 0},
		{"a: b\n  c: d\n", 3, 6, 7},
		{"a: b  # x\n  c\n", 3, 3, 12},
		{"a: b  # x\n", 3, 1, 0},
		{"a: b#x\n", 3, 3, 0},
		{"a: b \n\n\r\n  c\n", 3, 3, 11},
		{"a: b\n\n", 3, 9, 0},
		{"a: bc", 3, 2, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(slip_next_line(rows[i].text, strlen(rows[i].text), rows[i].at,
					 rows[i].text_len),
			rows[i].next);
}

static void blank__that_is_none__is_found_in_an_indentation_alone(void **state)
{
	static const struct {
		const char *text, *message;
		size_t at;
	} rows[] = {
		{"a: 1\n \xc2\xa0 b: 2\n", "a no-break space is no indentation: ", 6},
		{"\xe3\x80\x80k: 1\n", "an ideographic space is no indentation: ", 0},
		{"a: 1\n\xe2\x80\x8b"
		 "b: 2\n",
			"a zero width space, which nobody sees: ", 5},
		{"a: \xc2\xa0"
		 "1\n",
			NULL, 0},
		{"a: 1\n  b: 2\n", NULL, 0},
		{"", NULL, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *message = NULL;
		size_t at = 77;
		bool found = slip_find_odd_blank(rows[i].text, strlen(rows[i].text), &at, &message);

		assert_int_equal(found, rows[i].message != NULL);
		assert_int_equal(at, found ? rows[i].at : 77);
		if (found)
			assert_ptr_equal(strstr(message, rows[i].message), message);
	}
}

static void offset__is_that_of_a_character(void **state)
{
	static const char text[] = "ab\n\xc3\xa4\xe2\x82\xac"
				   "c\r\nd";

	(void)state;
	assert_int_equal(slip_offset(text, strlen(text), 1, 1), 0);
	assert_int_equal(slip_offset(text, strlen(text), 1, 2), 1);
	assert_int_equal(slip_offset(text, strlen(text), 2, 1), 3);
	assert_int_equal(slip_offset(text, strlen(text), 2, 2), 5);
	assert_int_equal(slip_offset(text, strlen(text), 2, 3), 8);
	assert_int_equal(slip_offset(text, strlen(text), 3, 1), 11);
	assert_int_equal(slip_offset(text, 4, 2, 9), 4); /* cut in a character */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slip__of_the_table__has_its_place_and_a_guess),
		cmocka_unit_test(slip__in_a_document__has_its_sentence),
		cmocka_unit_test(key__that_is_too_long_for_yaml__is_said_to_be),
		cmocka_unit_test(text__that_is_long_and_no_key__is_not_taken_for_one),
		cmocka_unit_test(line__that_is_no_key_and_value__has_its_sentence),
		cmocka_unit_test(line__that_goes_on_below__is_found),
		cmocka_unit_test(blank__that_is_none__is_found_in_an_indentation_alone),
		cmocka_unit_test(offset__is_that_of_a_character),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

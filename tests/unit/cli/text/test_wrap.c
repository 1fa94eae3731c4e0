/* Text on lines of a certain width, and tables that fit it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/text/table.h"
#include "cli/text/words.h"

static struct buffer out;

static int set_up(void **state)
{
	(void)state;
	assert_non_null(setlocale(LC_CTYPE, "C.UTF-8"));
	buffer_init(&out, 1u << 20);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	buffer_fini(&out);
	return 0;
}

/* What was appended since. */
static const char *taken(void)
{
	static char text[4096];

	assert_true(out.len < sizeof(text));
	memcpy(text, out.data ? out.data : "", out.len);
	text[out.len] = '\0';
	buffer_clear(&out);
	return text;
}

/* ---- widths ---- */

static void width__counts_columns(void **state)
{
	(void)state;
	assert_int_equal(wrap_width(""), 0);
	assert_int_equal(wrap_width("abc"), 3);
	assert_int_equal(wrap_width("\u00e9\u00df"), 2);
	assert_int_equal(wrap_width("\u65e5\u672c"), 4); /* wide */
	assert_int_equal(wrap_width("e\u0301"), 1);      /* combining */
	assert_int_equal(wrap_width("\xff\xfe"), 2);     /* no UTF-8 */
}

static void cut__ends_in_three_dots(void **state)
{
	static const struct {
		const char *text;
		size_t columns, used;
		const char *expected;
	} rows[] = {
		{"abcdef", WRAP_ENDLESS, 6, "abcdef"},
		{"abcdef", 7, 6, "abcdef"},
		{"abcdef", 6, 6, "abcdef"},
		{"abcdef", 5, 5, "ab..."},
		{"abcdef", 4, 4, "a..."},
		{"abcdef", 3, 3, "..."},
		{"abcdef", 2, 2, ".."},
		{"abcdef", 1, 1, "."},
		{"abcdef", 0, 0, ""},
		{"\u65e5\u672c\u8a9e", 6, 6, "\u65e5\u672c\u8a9e"},
		{"\u65e5\u672c\u8a9e", 5, 5, "\u65e5..."},
		{"\u65e5\u672c\u8a9e", 4, 3, "..."}, /* half of one is none */
		{"", 0, 0, ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(wrap_cut(&out, rows[i].text, rows[i].columns), rows[i].used);
		assert_string_equal(taken(), rows[i].expected);
	}
}

static void cell__is_padded_and_may_have_a_colour(void **state)
{
	(void)state;
	wrap_cell(&out, "ab", 4, "");
	assert_string_equal(taken(), "ab    ");
	wrap_cell(&out, "ab", 2, "");
	assert_string_equal(taken(), "ab  ");
	wrap_cell(&out, "abcdef", 5, WRAP_BAD);
	assert_string_equal(taken(), "\033[31mab...\033[0m  ");
	wrap_cell(&out, "\u65e5", 3, WRAP_GOOD);
	assert_string_equal(taken(), "\033[32m\u65e5\033[0m   ");
}

/* ---- lines ---- */

static void text__is_wrapped_at_blanks(void **state)
{
	static const struct {
		const char *text;
		size_t indent, columns;
		const char *expected;
	} rows[] = {
		{"", 2, 10, ""}, {"one", 2, 10, "one\n"}, {"one\n", 2, 10, "one\n"},
		{"one\n\ntwo", 2, 10, "one\n\ntwo\n"},
		{"one two three", 2, WRAP_ENDLESS, "one two three\n"},
		{"one two three", 2, 13, "one two three\n"},
		{"one two three", 2, 12, "one two\n  three\n"},
		{"one two three", 2, 7, "one two\n  three\n"},
		{"one two three", 2, 6, "one\n  two\n  three\n"},
		{"one two six", 2, 9, "one two\n  six\n"},
		{"one two six ten", 2, 9, "one two\n  six ten\n"},
		{"one two six ten", 2, 8, "one two\n  six\n  ten\n"},
		{"  one two", 4, 5, "  one\n    two\n"},
		{"  verylong two", 4, 5, "  verylong\n    two\n"},
		{"verylong two", 4, 3, "verylong\n    two\n"}, /* a word is whole */
		{"one   two", 0, 4, "one \ntwo\n"}, {"one two ", 0, 7, "one two\n"},
		{"a b", 9, 2, "a\n         b\n"}, /* deeper than it is wide */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		wrap_text(&out, rows[i].text, rows[i].indent, rows[i].columns);
		if (strcmp(taken(), rows[i].expected) != 0) {
			wrap_text(&out, rows[i].text, rows[i].indent, rows[i].columns);
			fail_msg("row %zu is '%s'", i, taken());
		}
	}
	buffer_append_string(&out, "a\nb\nc");
	assert_int_equal(wrap_count_lines(&out), 2);
	buffer_append_string(&out, "\n");
	assert_int_equal(wrap_count_lines(&out), 3);
	buffer_clear(&out);
	assert_int_equal(wrap_count_lines(&out), 0);
}

static void span__has_the_unit_that_says_enough(void **state)
{
	static const struct {
		int64_t ms;
		const char *expected;
	} rows[] = {{-1, "-"}, {0, "0ms"}, {999, "999ms"}, {1000, "1s"}, {119999, "119s"},
		{120000, "2m"}, {7199999, "119m"}, {7200000, "2h"}, {172799999, "47h"},
		{172800000, "2d"}, {INT64_C(8640000000), "100d"}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[24];

		assert_string_equal(wrap_span(rows[i].ms, text), rows[i].expected);
	}
}

/* ---- words ---- */

static void words__of_others__are_escaped(void **state)
{
	(void)state;
	words_text(&out, "a\033[31m\nb");
	assert_string_equal(taken(), "a\\x1b[31m\\x0ab");
	words_lines(&out, "a\nb\033");
	assert_string_equal(taken(), "a\n    b\\x1b");
	words_time(&out, 1700000000999);
	assert_string_equal(taken(), "2023-11-14T22:13:20Z");
	words_time(&out, INT64_MAX);
	assert_true(strlen(taken()) > 0);
}

/* ---- tables ---- */

static const char *const heads[] = {"NAME", "N", "WORDS"};

static void fill(struct table *t)
{
	table_init(t, heads, 3);
	table_add(t, "first-name", WRAP_GOOD);
	table_printf(t, "%d", 12345);
	table_add_words(t, "some words", WRAP_ENDLESS, "");
	table_add(t, "b", "");
	table_printf(t, "%d", 6);
	table_add_words(t, "more\nwords here", 8, WRAP_BAD);
	assert_int_equal(table_error(t), 0);
}

static const char *lines_of(const struct table *t, size_t marked)
{
	table_head(t, marked, &out);
	table_row(t, 0, &out);
	table_row(t, 1, &out);
	return taken();
}

static void table__is_as_wide_as_its_texts(void **state)
{
	struct table t;

	(void)state;
	fill(&t);
	assert_string_equal(lines_of(&t, SIZE_MAX),
		"NAME        N      WORDS\n"
		"\033[32mfirst-name\033[0m  12345  some words\n"
		"b           6      \033[31mmore\\...\033[0m\n");
	assert_string_equal(lines_of(&t, 1), "NAME        \033[7mN\033[0m      WORDS\n"
					     "\033[32mfirst-name\033[0m  12345  some words\n"
					     "b           6      \033[31mmore\\...\033[0m\n");
	table_fini(&t);
}

static void table__that_is_too_wide__loses_columns_then_is_cut(void **state)
{
	static const struct {
		size_t width, min_last;
		const char *expected;
	} rows[] = {
		/* all of it has 12 + 7 + 10 columns */
		{WRAP_ENDLESS, 10,
			"NAME        N      WORDS\n\033[32mfirst-name\033[0m  12345  some words\n"
			"b           6      \033[31mmore\\...\033[0m\n"},
		{29, 10,
			"NAME        N      WORDS\n\033[32mfirst-name\033[0m  12345  some words\n"
			"b           6      \033[31mmore\\...\033[0m\n"},
		{28, 10,
			"NAME        WORDS\n\033[32mfirst-name\033[0m  some words\n"
			"b           \033[31mmore\\...\033[0m\n"},
		{28, 9,
			"NAME        N      WORDS\n\033[32mfirst-name\033[0m  12345  some w...\n"
			"b           6      \033[31mmore\\...\033[0m\n"},
		{22, 99,
			"NAME        WORDS\n\033[32mfirst-name\033[0m  some words\n"
			"b           \033[31mmore\\...\033[0m\n"},
		{21, 10,
			"NAME       WORDS\n\033[32mfirst-...\033[0m  some words\n"
			"b          \033[31mmore\\...\033[0m\n"},
		{19, 10,
			"NAME      WORDS\n\033[32mfirst...\033[0m  some w...\n"
			"b         \033[31mmore\\...\033[0m\n"},
		{11, 10, "NAME      .\n\033[32mfirst...\033[0m  .\nb         \033[31m.\033[0m\n"},
		{10, 10, "NAME\n\033[32mfirst...\033[0m\nb\n"},
		{5, 10, "NAME\n\033[32mfi...\033[0m\nb\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		static const unsigned char drop[] = {1, 0};
		struct table t;
		const char *found;

		fill(&t);
		table_fit(&t, rows[i].width, rows[i].min_last, drop);
		found = lines_of(&t, SIZE_MAX);
		if (strcmp(found, rows[i].expected) != 0)
			fail_msg("width %zu: %s", rows[i].width, found);
		table_fini(&t);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(width__counts_columns),
		CASE(cut__ends_in_three_dots),
		CASE(cell__is_padded_and_may_have_a_colour),
		CASE(text__is_wrapped_at_blanks),
		CASE(span__has_the_unit_that_says_enough),
		CASE(words__of_others__are_escaped),
		CASE(table__is_as_wide_as_its_texts),
		CASE(table__that_is_too_wide__loses_columns_then_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

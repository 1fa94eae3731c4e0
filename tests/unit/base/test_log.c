/* The log: nothing that a value holds can forge a line, the JSON is always valid, the same cause is
 * told once a minute. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/fixture/fault_memory.h"
#include "document/document.h"
#include "text/json_text.h"
#include "base/log.h"

static int pipe_fds[2], saved;

static void capture(void)
{
	fflush(stderr);
	saved = dup(STDERR_FILENO);
	assert_int_equal(pipe(pipe_fds), 0);
	dup2(pipe_fds[1], STDERR_FILENO);
	close(pipe_fds[1]);
}

static void captured(char text[4096])
{
	ssize_t n;

	dup2(saved, STDERR_FILENO);
	close(saved);
	n = read(pipe_fds[0], text, 4095);
	close(pipe_fds[0]);
	text[n > 0 ? n : 0] = '\0';
}

static void text__of_plain_and_odd_values__is_one_line(void **state)
{
	char text[4096];

	(void)state;
	log_setup(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	capture();
	log_warn("it happened", "plain", "value-1/x", "spaced", "two words", "forged",
		"x\n<3>fake key=1", "none", (char *)NULL, "empty", "", "quote", "a\"b");
	captured(text);
	assert_string_equal(text, "<4>it happened plain=value-1/x spaced=\"two words\" "
				  "forged=\"x\\n<3>fake key=1\" empty=\"\" quote=\"a\\\"b\"\n");
}

static void line__without_memory__is_the_message_alone(void **state)
{
	static const char *const expected[] = {
		[LOG_FORMAT_TEXT] = "<3>it \\ happened\n",
		[LOG_FORMAT_JSON] = "{\"level\":\"err\",\"message\":\"it \"}\n",
	};
	char text[4096];

	(void)state;
	for (unsigned n = 0; n < 2 * 12; n++) {
		log_setup(LOG_LEVEL_INFO, n % 2 ? LOG_FORMAT_JSON : LOG_FORMAT_TEXT);
		capture();
		fault_memory.seen = 0;
		fault_memory.for_ever = true;
		fault_memory.nth = 1 + n / 2;
		log_err("it \\ happened", "why", "a longer value with \"quotes\" in it", "n", "2");
		fault_memory.nth = 0;
		captured(text);
		assert_int_equal(strchr(text, '\n') - text + 1, strlen(text));
		if (n < 2)
			assert_string_equal(
				text, expected[n % 2 ? LOG_FORMAT_JSON : LOG_FORMAT_TEXT]);
	}
}

static void text__longer_than_the_bound__is_cut_to_one_line(void **state)
{
	char text[4096], value[3000];

	(void)state;
	memset(value, 'x', sizeof(value) - 1);
	value[sizeof(value) - 1] = '\0';
	log_setup(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	capture();
	log_info("long", "value", value);
	captured(text);
	assert_int_equal(strlen(text), 2048);
	assert_int_equal(text[2047], '\n');
}

static void line__of_a_value_far_too_long__is_the_message_alone(void **state)
{
	static const char *const expected[] = {
		[LOG_FORMAT_TEXT] = "<4>it\\x1b happened\n",
		[LOG_FORMAT_JSON] = ",\"level\":\"warn\",\"message\":\"it\\u001b happened\"}\n",
	};
	char text[4096], *value = malloc(1u << 20);

	(void)state;
	assert_non_null(value);
	memset(value, 'x', (1u << 20) - 1);
	value[(1u << 20) - 1] = '\0';
	for (int style = LOG_FORMAT_TEXT; style <= LOG_FORMAT_JSON; style++) {
		log_setup(LOG_LEVEL_INFO, (enum log_format)style);
		capture();
		log_warn("it\033 happened", "value", value);
		captured(text);
		/* behind the time */
		assert_string_equal(style == LOG_FORMAT_JSON ? strstr(text, ",\"level\"") : text,
			expected[style]);
	}
	free(value);
}

static void level__below_the_threshold__writes_nothing(void **state)
{
	char text[4096];
	enum log_level level;

	(void)state;
	assert_true(log_level_parse("warn", &level));
	assert_false(log_level_parse("loud", &level));
	log_setup(level, LOG_FORMAT_TEXT);
	capture();
	log_info("quiet");
	log_debug("quieter");
	log_err("loud");
	captured(text);
	assert_string_equal(text, "<3>loud\n");
}

static void json__of_any_value__is_a_valid_object(void **state)
{
	char text[4096];
	struct document *d;
	struct document_error e;

	(void)state;
	log_setup(LOG_LEVEL_DEBUG, LOG_FORMAT_JSON);
	capture();
	log_debug("bad \"bytes\"", "value", "\xff\xfe\x01\n\"\\", "n", LOG_U64(UINT64_MAX));
	captured(text);
	assert_int_equal(document_parse(DOCUMENT_JSON, text, strlen(text), 0, &d, &e), 0);
	assert_string_equal(node_find(document_root(d), "message")->text, "bad \"bytes\"");
	assert_string_equal(node_find(document_root(d), "level")->text, "debug");
	assert_string_equal(
		node_find(document_root(d), "value")->text, "\xef\xbf\xbd\xef\xbf\xbd\x01\n\"\\");
	assert_string_equal(node_find(document_root(d), "n")->text, "18446744073709551615");
	document_free(d);
}

static void url__with_a_query__is_shown_without_it(void **state)
{
	char *longer = malloc(2000);

	(void)state;
	assert_string_equal(LOG_URL("http://h/a.yaml?token=x&y"), "http://h/a.yaml?...");
	assert_string_equal(LOG_URL("http://h/a.yaml"), "http://h/a.yaml");
	assert_string_equal(LOG_URL("/a?"), "/a?...");
	assert_non_null(longer);
	memset(longer, 'a', 1999);
	longer[1999] = '\0';
	assert_int_equal(strlen(LOG_URL(longer)), 1000 + 3);
	free(longer);
}

static void limit__same_cause__passes_once_a_minute_with_a_count(void **state)
{
	struct log_limit l = {0};
	unsigned suppressed = 99;

	(void)state;
	assert_true(log_limit_pass(&l, 1000, "refused", &suppressed));
	assert_int_equal(suppressed, 0);
	for (int i = 0; i < 59; i++)
		assert_false(log_limit_pass(&l, 1000 + 1000 * (uint64_t)i, "refused", &suppressed));
	assert_true(log_limit_pass(&l, 61000, "refused", &suppressed));
	assert_int_equal(suppressed, 59);
	assert_true(log_limit_pass(&l, 61001, "timed out", &suppressed));
	assert_int_equal(suppressed, 0);
}

static void limit__causes_that_take_turns__pass_once_a_minute_each(void **state)
{
	static const char *const causes[] = {"refused", "timed out", "cut", "503"};
	struct log_limit l = {0};
	unsigned suppressed, passed = 0, held_back = 0;

	(void)state;
	for (uint64_t s = 0; s < 600; s++) {
		if (!log_limit_pass(&l, s * 1000, causes[s % 4], &suppressed))
			continue;
		passed++;
		held_back += suppressed;
	}
	assert_int_equal(passed, 4 * 10);
	assert_int_equal(held_back + l.suppressed, 600 - 4 * 10);
}

static void limit__more_causes_than_lines__some_wait_for_their_turn(void **state)
{
	struct log_limit l = {0};
	unsigned suppressed, passed = 0;
	char cause[16];

	(void)state;
	for (uint64_t s = 0; s < 600; s++) {
		snprintf(cause, sizeof(cause), "%u", (unsigned)s);
		passed += log_limit_pass(&l, s * 1000, cause, &suppressed);
	}
	assert_int_equal(passed, LOG_LIMIT_LINES * 10);
	memset(&l, 0, sizeof(l));
	assert_true(log_limit_pass(&l, 600000, "599", &suppressed));
}

static void limit__of_a_kind__are_two_a_minute_and_leave_room_for_others(void **state)
{
	struct log_limit l = {0};
	unsigned suppressed, passed = 0;
	char cause[16];

	(void)state;
	for (uint64_t s = 0; s < 600; s++) {
		snprintf(cause, sizeof(cause), "line %u", (unsigned)s);
		passed += log_limit_pass_kind(&l, s * 1000, "refused", cause, &suppressed);
	}
	assert_int_equal(passed, LOG_LIMIT_OF_A_KIND * 10);
	assert_true(log_limit_pass_kind(&l, 600000, "timed out", "line 1", &suppressed));
	assert_int_equal(suppressed, 58);
	assert_true(log_limit_told(&l, "timed out", "line 1"));
	assert_false(log_limit_told(&l, "timed out", "line 2"));
	assert_false(log_limit_told(&l, "refused", "line 1"));
}

static void jsontext__sequences__good_ones_stay_and_bad_ones_are_replaced(void **state)
{
	static const struct {
		const char *from, *to;
	} table[] = {
		{"", "\"\""},
		{"a/b", "\"a/b\""},
		{"\t\r\n\b\f\x1f\x7f", "\"\\t\\r\\n\\b\\f\\u001f\\u007f\""},
		{"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
			"\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""},
		{"\xc0\x80", "\"\\ufffd\\ufffd\""},            /* overlong */
		{"\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\""}, /* a surrogate */
		{"\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""},
		{"\xe2\x82", "\"\\ufffd\\ufffd\""}, /* cut */
		{"\x80", "\"\\ufffd\""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct buffer b;

		buffer_init(&b, 200);
		assert_int_equal(json_text_append(&b, table[i].from, strlen(table[i].from)), 0);
		assert_string_equal(b.data, table[i].to);
		buffer_fini(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text__of_plain_and_odd_values__is_one_line),
		cmocka_unit_test(text__longer_than_the_bound__is_cut_to_one_line),
		cmocka_unit_test(line__of_a_value_far_too_long__is_the_message_alone),
		cmocka_unit_test(level__below_the_threshold__writes_nothing),
		cmocka_unit_test(json__of_any_value__is_a_valid_object),
		cmocka_unit_test(url__with_a_query__is_shown_without_it),
		cmocka_unit_test(limit__same_cause__passes_once_a_minute_with_a_count),
		cmocka_unit_test(limit__causes_that_take_turns__pass_once_a_minute_each),
		cmocka_unit_test(limit__more_causes_than_lines__some_wait_for_their_turn),
		cmocka_unit_test(limit__of_a_kind__are_two_a_minute_and_leave_room_for_others),
		cmocka_unit_test(jsontext__sequences__good_ones_stay_and_bad_ones_are_replaced),
		cmocka_unit_test(line__without_memory__is_the_message_alone),
	};

	return fault_memory_run(tests, 1);
}

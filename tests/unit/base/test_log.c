/* The log: nothing that a value holds can forge a line, the JSON is always valid, the same cause is
 * told once a minute. */
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
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

/* As systemd sets it for the pipe that is standard error now. */
static void set_stream(unsigned long long more)
{
	char stream[64];
	struct stat st;

	assert_int_equal(fstat(STDERR_FILENO, &st), 0);
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
		(unsigned long long)st.st_ino + more);
	assert_int_equal(setenv("JOURNAL_STREAM", stream, 1), 0);
}

/* As it is before log_find_reader(). */
static void restore_reader(void)
{
	char text[4096];

	capture();
	set_stream(0);
	log_find_reader();
	captured(text);
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

static void text__to_the_journal__has_its_priority(void **state)
{
	char text[4096];

	(void)state;
	log_setup(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	capture();
	set_stream(0);
	log_find_reader();
	log_warn("it happened", "a", "1");
	captured(text);
	assert_string_equal(text, "<4>it happened a=1\n");
}

static void text__to_another_pipe__has_time_and_level(void **state)
{
	char text[4096], level[16];
	unsigned n[7];

	(void)state;
	log_setup(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	for (unsigned set = 0; set < 2; set++) {
		capture();
		if (set)
			set_stream(1); /* the journal's, but standard error leads elsewhere */
		else
			unsetenv("JOURNAL_STREAM");
		log_find_reader();
		log_warn("it happened", "a", "1");
		captured(text);
		assert_int_equal(sscanf(text, "%4u-%2u-%2uT%2u:%2u:%2u.%3uZ %15s", &n[0], &n[1],
					 &n[2], &n[3], &n[4], &n[5], &n[6], level),
			8);
		assert_string_equal(level, "warn");
		assert_string_equal(
			text + strlen("2026-11-27T04:48:01.123Z "), "warn it happened a=1\n");
	}
	restore_reader();
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
	static const size_t lens[] = {2047, 2048, 2049, 3000}; /* of lines, with their ends */
	char text[4096], expected[4096], value[3000];

	(void)state;
	log_setup(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		memset(value, 'x', sizeof(value));
		value[lens[i] - strlen("<6>long value=\n")] = '\0';
		snprintf(expected, sizeof(expected), "<6>long value=%s", value);
		memcpy(expected + (lens[i] < 2048 ? lens[i] : 2048) - 1, "\n", 2);
		capture();
		log_info("long", "value", value);
		captured(text);
		assert_string_equal(text, expected);
	}
}

static void value__of_each_byte__has_quotes_where_it_needs_them(void **state)
{
	char text[4096], expected[32], value[] = "a?b";

	(void)state;
	log_setup(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	for (char c = ' '; c <= '~'; c++) {
		bool quoted = strchr(" \"'\\=", c) != NULL;

		value[1] = c;
		snprintf(expected, sizeof(expected), "<6>it v=%sa%s%cb%s\n", quoted ? "\"" : "",
			c == '"' || c == '\\' ? "\\" : "", c, quoted ? "\"" : "");
		capture();
		log_info("it", "v", value);
		captured(text);
		assert_string_equal(text, expected);
	}
}

/* Where it is read by people, a line has no priority for a journal. */
static void text__on_a_terminal__has_no_priority(void **state)
{
	int terminal = posix_openpt(O_RDWR | O_NOCTTY), side = -1, kept;
	char text[128];

	(void)state;
	if (terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0)
		side = open(ptsname(terminal), O_RDWR | O_NOCTTY);
	if (side < 0)
		skip();
	log_setup(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	for (int without_memory = 0; without_memory < 2; without_memory++) {
		ssize_t n;

		if (without_memory && !fault_memory_works)
			break;
		fflush(stderr);
		kept = dup(STDERR_FILENO);
		dup2(side, STDERR_FILENO);
		log_find_reader();
		fault_memory.seen = 0;
		fault_memory.for_ever = true;
		fault_memory.nth = (unsigned)without_memory;
		log_err("it happened");
		fault_memory.nth = 0;
		dup2(kept, STDERR_FILENO);
		close(kept);
		assert_int_equal(poll(&(struct pollfd){terminal, POLLIN, 0}, 1, 10000), 1);
		n = read(terminal, text, sizeof(text) - 1);
		assert_true(n > 0);
		text[n] = '\0';
		assert_string_equal(text, "it happened\r\n");
	}
	close(side);
	close(terminal);
	restore_reader();
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
	static const char *const names[] = {"err", "warn", "info", "debug"},
				 *const lines = "<3>a\n<4>b\n<6>c\n<7>d\n";
	char text[4096], expected[64];
	enum log_level level;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		assert_true(log_level_parse(names[i], &level));
		log_setup(level, LOG_FORMAT_TEXT);
		capture();
		log_err("a");
		log_warn("b");
		log_info("c");
		log_debug("d");
		captured(text);
		snprintf(expected, sizeof(expected), "%.*s", (int)(5 * (i + 1)), lines);
		assert_string_equal(text, expected);
	}
	level = LOG_LEVEL_WARN;
	assert_false(log_level_parse("loud", &level));
	assert_false(log_level_parse("", &level));
	assert_int_equal(level, LOG_LEVEL_WARN);
}

static void log__that_nobody_reads__holds_up_nobody_and_says_how_much_is_missing(void **state)
{
	char text[8192];
	size_t unread = 0;

	(void)state;
	log_setup(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	capture();
	fcntl(STDERR_FILENO, F_SETPIPE_SZ, 4096);
	while (unread < 4096)
		unread += (size_t)write(STDERR_FILENO, ".", 1);
	alarm(20); /* the first line waits for a second, the others for nobody */
	for (int i = 0; i < 1000; i++)
		log_warn("it happened");
	assert_int_equal(read(pipe_fds[0], text, sizeof(text)), 4096);
	log_warn("it went on");
	alarm(0);
	captured(text);
	assert_string_equal(
		text, "<4>nobody read the log: lines were left out lines=1000\n<4>it went on\n");
}

static void json__of_a_line__begins_with_the_time_of_now(void **state)
{
	struct timespec before, after;
	char text[4096], again[64], rest[64];
	struct tm tm = {0};
	unsigned ms;
	int64_t at_ms;

	(void)state;
	log_setup(LOG_LEVEL_INFO, LOG_FORMAT_JSON);
	capture();
	clock_gettime(CLOCK_REALTIME, &before);
	log_info("it");
	clock_gettime(CLOCK_REALTIME, &after);
	captured(text);
	assert_non_null(strptime(text, "{\"time\":\"%Y-%m-%dT%H:%M:%S.", &tm));
	assert_int_equal(sscanf(text + strlen("{\"time\":\"2026-11-26T20:15:36."), "%3uZ%60[^\n]",
				 &ms, rest),
		2);
	assert_string_equal(rest, "\",\"level\":\"info\",\"message\":\"it\"}");
	at_ms = (int64_t)timegm(&tm) * 1000 + ms;
	assert_true(at_ms >= (int64_t)before.tv_sec * 1000 + before.tv_nsec / 1000000);
	assert_true(at_ms <= (int64_t)after.tv_sec * 1000 + after.tv_nsec / 1000000);
	strftime(again, sizeof(again), "{\"time\":\"%Y-%m-%dT%H:%M:%S.", &tm);
	snprintf(again + strlen(again), 8, "%03uZ\"", ms);
	assert_memory_equal(text, again, strlen(again)); /* each number with its zeros */
}

static struct timespec played_time; /* while it is not 0 */

int clock_gettime(clockid_t id, struct timespec *ret)
{
	if (id != CLOCK_REALTIME || !played_time.tv_sec)
		return (int)syscall(SYS_clock_gettime, id, ret);
	*ret = played_time;
	return 0;
}

/* A line that is of the next second, or of none, cannot be sorted. */
static void time__up_to_the_last_nanosecond__is_of_its_second(void **state)
{
	static const struct {
		long nsec;
		const char *ms;
	} rows[] = {{0, ".000Z"}, {999999, ".000Z"}, {1000000, ".001Z"}, {999999999, ".999Z"}};
	char text[4096], expected[64];

	(void)state;
	log_setup(LOG_LEVEL_INFO, LOG_FORMAT_JSON);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		played_time = (struct timespec){1795849167, rows[i].nsec};
		capture();
		log_info("it");
		played_time.tv_sec = 0;
		captured(text);
		snprintf(expected, sizeof(expected), "{\"time\":\"2026-11-28T06:59:27%s\"",
			rows[i].ms);
		assert_memory_equal(text, expected, strlen(expected));
	}
}

static void json__of_any_value__is_a_valid_object(void **state)
{
	char text[4096];
	struct document *d;
	struct document_error e;

	(void)state;
	log_setup(LOG_LEVEL_DEBUG, LOG_FORMAT_JSON);
	capture();
	log_debug("bad \"bytes\"", "value", "\xff\xfe\x01\n\"\\", "n", LOG_U64(UINT64_MAX), "none",
		NULL);
	captured(text);
	assert_int_equal(document_parse(DOCUMENT_JSON, text, strlen(text), 0, &d, &e), 0);
	assert_null(node_find(document_root(d), "none"));
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
	assert_string_equal(LOG_URL(longer) + 999, "a...");
	assert_string_equal(LOG_URL(longer + 998) + 999, "a...");
	assert_int_equal(strlen(LOG_URL(longer + 999)), 1000); /* it fits */
	longer[1999 - 10] = '?';
	assert_string_equal(LOG_URL(longer + 989) + 999, "a?...");
	assert_string_equal(LOG_URL(longer + 988) + 999, "a...");
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
		cmocka_unit_test(value__of_each_byte__has_quotes_where_it_needs_them),
		cmocka_unit_test(text__on_a_terminal__has_no_priority),
		cmocka_unit_test(
			log__that_nobody_reads__holds_up_nobody_and_says_how_much_is_missing),
		cmocka_unit_test(json__of_a_line__begins_with_the_time_of_now),
		cmocka_unit_test(time__up_to_the_last_nanosecond__is_of_its_second),
		cmocka_unit_test(level__below_the_threshold__writes_nothing),
		cmocka_unit_test(json__of_any_value__is_a_valid_object),
		cmocka_unit_test(url__with_a_query__is_shown_without_it),
		cmocka_unit_test(limit__same_cause__passes_once_a_minute_with_a_count),
		cmocka_unit_test(limit__causes_that_take_turns__pass_once_a_minute_each),
		cmocka_unit_test(limit__more_causes_than_lines__some_wait_for_their_turn),
		cmocka_unit_test(limit__of_a_kind__are_two_a_minute_and_leave_room_for_others),
		cmocka_unit_test(jsontext__sequences__good_ones_stay_and_bad_ones_are_replaced),
		cmocka_unit_test(text__to_the_journal__has_its_priority),
		cmocka_unit_test(text__to_another_pipe__has_time_and_level),
		cmocka_unit_test(line__without_memory__is_the_message_alone),
	};

	return fault_memory_run(tests, 1);
}

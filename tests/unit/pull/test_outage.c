/* The lines of an outage: one at once, one with the number of configs that fail, one a minute, one
 * when it is over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <string.h>

#include "pull/outage.h"
#include "tests/unit/fixture/captured.h"

#define SECOND 1000u

/* Fails each of so many configs once more, from that moment on, a millisecond apart. The lines. */
static unsigned fail_each(struct outage *o, uint64_t now_ms, unsigned configs)
{
	unsigned passed = 0, suppressed;

	for (unsigned i = 0; i < configs; i++)
		passed += outage_may_log(o, now_ms + i, &suppressed);
	return passed;
}

/* One config leaves: is it told there that it has recovered, and what is in the log? */
static void leave(struct outage *o, uint64_t now_ms, bool expected, const char *line)
{
	struct captured log = captured_begin(STDERR_FILENO);
	bool told = outage_leave(o, now_ms);
	char text[256];

	captured_read(&log, text, sizeof(text));
	captured_end(&log);
	assert_int_equal(told, expected);
	if (line)
		assert_non_null(strstr(text, line));
	else
		assert_string_equal(text, "");
}

static void outage__of_a_thousand_configs__is_a_line_a_minute(void **state)
{
	struct outage o = {.server = "main", .configs = 1001};
	unsigned passed = 0, suppressed;

	(void)state;
	for (unsigned i = 0; i < 1000; i++) {
		outage_join(&o, i);
		passed += outage_may_log(&o, i, &suppressed);
	}
	assert_int_equal(passed, 1);
	assert_int_equal(fail_each(&o, OUTAGE_COUNT_MS, 1000), 1); /* with their number */
	assert_int_equal(fail_each(&o, 30 * SECOND, 1000), 0);
	for (unsigned minute = 1; minute <= 10; minute++)
		assert_int_equal(fail_each(&o, 60 * SECOND * minute, 1000), 1);
	for (unsigned i = 1; i < 1000; i++)
		leave(&o, 700 * SECOND, true, NULL);
	leave(&o, 701 * SECOND, true,
		"recovered server=main failing_configs=1000 after_ms=701000\n");
}

static void outage__of_all_configs__is_counted_as_soon_as_the_last_one_fails(void **state)
{
	struct outage o = {.server = "main", .configs = 3};
	unsigned suppressed, passed[3];

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		outage_join(&o, i);
		passed[i] = outage_may_log(&o, i, &suppressed);
	}
	assert_int_equal(passed[0], 1);
	assert_int_equal(passed[1], 0);
	assert_int_equal(passed[2], 1);
	assert_int_equal(suppressed, 2);
	assert_int_equal(fail_each(&o, OUTAGE_COUNT_MS, 3), 0);
}

static void outage__of_one_config__is_its_own(void **state)
{
	struct outage o = {.server = "main", .configs = 1};

	(void)state;
	outage_join(&o, 1);
	assert_int_equal(fail_each(&o, 1, 1), 1);
	assert_int_equal(fail_each(&o, 1 + OUTAGE_COUNT_MS, 1), 0);
	assert_int_equal(fail_each(&o, 1 + 60 * SECOND, 1), 1);
	leave(&o, 62 * SECOND, false, NULL);
	outage_join(&o, 63 * SECOND); /* another one: at once */
	assert_int_equal(fail_each(&o, 63 * SECOND, 1), 1);
}

static void outage__of_which_one_is_forgotten__ends_with_the_last_other(void **state)
{
	struct outage o = {.server = "main"};

	(void)state;
	outage_join(&o, 1);
	outage_join(&o, 1);
	outage_join(&o, 1);
	outage_forget(&o);
	leave(&o, 2, true, NULL);
	leave(&o, 2, true, "recovered server=main failing_configs=3");
	outage_join(&o, 3);
	outage_join(&o, 3);
	outage_forget(&o);
	outage_forget(&o);
	assert_int_equal(o.failing, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(outage__of_a_thousand_configs__is_a_line_a_minute),
		cmocka_unit_test(outage__of_all_configs__is_counted_as_soon_as_the_last_one_fails),
		cmocka_unit_test(outage__of_one_config__is_its_own),
		cmocka_unit_test(outage__of_which_one_is_forgotten__ends_with_the_last_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

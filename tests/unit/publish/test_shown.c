/* The mark of what readers were shown: read as it was written, or not at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "publish/shown.h"
#include "tests/unit/fixture/fault_sys.h"
#include "tests/unit/fixture/scratch.h"

#define TAIL ".pullet-0123456789abcdef"

static struct sys sys;
static char dir[SCRATCH_PATH];

static int set_up(void **state)
{
	(void)state;
	memset(&fault, 0, sizeof(fault));
	sys = fault_table();
	scratch_open(dir, scratch_memory());
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	scratch_close(dir);
	return 0;
}

static uint64_t read_shown(void)
{
	return shown_read(&sys, dir, "web", NULL);
}

static void assert_mark(const char *text)
{
	char found[64] = "";

	assert_int_equal(scratch_read(dir, "web.shown", found, sizeof(found), NULL), text != NULL);
	assert_string_equal(found, text ? text : "");
}

static void mark__is_read_as_it_was_written(void **state)
{
	(void)state;
	scratch_need_memory();
	assert_int_equal(read_shown(), 0);
	shown_mark(&sys, dir, "web", 7);
	assert_mark("7\n");
	assert_int_equal(read_shown(), 7);
	shown_mark(&sys, dir, "web", UINT64_C(1) << 62);
	assert_int_equal(read_shown(), UINT64_C(1) << 62);
	assert_int_equal(shown_read(&sys, dir, "db", NULL), 0);
}

static void mark__costs_no_fsync_and_is_not_written_twice(void **state)
{
	(void)state;
	scratch_need_memory();
	shown_mark(&sys, dir, "web", 7);
	assert_null(strchr(fault.trace, 'f'));
	assert_non_null(strchr(fault.trace, 'r'));
	memset(&fault, 0, sizeof(fault));
	shown_mark(&sys, dir, "web", 7);
	assert_null(strchr(fault.trace, 'r'));
}

static void mark__that_is_no_line_with_a_number__is_none(void **state)
{
	static const char *const texts[] = {"", "\n", "7", "07\n", " 7\n", "+7\n", "-7\n", "7\n\n",
		"7 \n", "0x7\n", "seven\n", "18446744073709551615\n", "18446744073709551616\n",
		"4611686018427387905\n", "99999999999999999999999999999999\n"};

	(void)state;
	scratch_need_memory();
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		scratch_write(dir, "web.shown", texts[i], strlen(texts[i]));
		assert_int_equal(read_shown(), 0);
	}
}

static void mark__by_a_symlink__is_none(void **state)
{
	char link[SCRATCH_PATH + 32];

	(void)state;
	scratch_need_memory();
	scratch_write(dir, "other", "7\n", 2);
	snprintf(link, sizeof(link), "%s/web.shown", dir);
	assert_int_equal(symlink("other", link), 0);
	assert_int_equal(read_shown(), 0);
}

static void mark__on_a_disk__is_neither_written_nor_read(void **state)
{
	(void)state;
	scratch_close(dir);
	scratch_open(dir, scratch_disk());
	shown_mark(&sys, dir, "web", 7);
	assert_mark(NULL);
	scratch_write(dir, "web.shown", "7\n", 2);
	assert_int_equal(read_shown(), 0);
}

static void mark__after_a_failure_of_any_call__is_the_old_one_or_the_new_one(void **state)
{
	unsigned nth, seen, descriptors = scratch_descriptors();

	(void)state;
	scratch_need_memory();
	for (nth = 1; nth < 100; nth++) {
		memset(&fault, 0, sizeof(fault));
		shown_mark(&sys, dir, "web", 7);
		fault = (struct fault){.call = -1, .nth = nth, .error = ENOSPC};
		shown_mark(&sys, dir, "web", 8);
		seen = fault.seen;
		memset(&fault, 0, sizeof(fault));
		assert_true(read_shown() == 7 || read_shown() == 8);
		assert_int_equal(scratch_descriptors(), descriptors);
		if (seen < nth)
			break;
	}
	assert_in_range(nth, 4, 99);
	assert_int_equal(read_shown(), 8);
}

static void read__removes_what_a_killed_agent_left_beside_it(void **state)
{
	struct sweep *sweep = sweep_new(&sys);
	char found[8];

	(void)state;
	scratch_need_memory();
	scratch_write(dir, ".web.shown" TAIL, "7\n", 2);
	assert_int_equal(shown_read(&sys, dir, "web", sweep), 0);
	sweep_free(sweep);
	assert_false(scratch_read(dir, ".web.shown" TAIL, found, sizeof(found), NULL));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(mark__is_read_as_it_was_written),
		TEST(mark__costs_no_fsync_and_is_not_written_twice),
		TEST(mark__that_is_no_line_with_a_number__is_none),
		TEST(mark__by_a_symlink__is_none),
		TEST(mark__on_a_disk__is_neither_written_nor_read),
		TEST(mark__after_a_failure_of_any_call__is_the_old_one_or_the_new_one),
		TEST(read__removes_what_a_killed_agent_left_beside_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Versions of configs that are gone: marked, once, and older than what was published since. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "version/left.h"
#include "version/ledger.h"
#include "tests/unit/fixture/fault_sys.h"
#include "tests/unit/fixture/scratch.h"

static struct sys sys;
static char dir[SCRATCH_PATH], place[SCRATCH_PATH + 16], why[FILE_WHY];

static struct store *open_store(const char *name)
{
	struct store *store;

	assert_int_equal(store_open(&sys, dir, name, STORE_KEEP, &store, why), 0);
	return store;
}

static void add_state(const char *name)
{
	char path[SCRATCH_PATH + 16];

	store_close(open_store(name));
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	scratch_write(path, LEDGER_NAME, "{}", 2);
}

static int set_up(void **state)
{
	(void)state;
	memset(&fault, 0, sizeof(fault));
	sys = fault_table();
	scratch_open(dir, scratch_memory());
	snprintf(place, sizeof(place), "%s/file", dir);
	scratch_write(dir, "file", "x", 1);
	add_state("web");
	add_state("db");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	scratch_close(dir);
	return 0;
}

static bool is_older(const char *name)
{
	struct store *store = open_store(name);
	bool older = left_is_older(&sys, store, place);

	store_close(store);
	return older;
}

static int mark_all_but(const char *kept)
{
	const char *names[] = {kept};

	return left_mark(&sys, dir, names, 1, why);
}

/* Writes the place until its time is later than now. */
static void publish_later(void)
{
	struct stat before, after;

	assert_int_equal(stat(place, &before), 0);
	do {
		scratch_write(dir, "file", "y", 1);
		assert_int_equal(stat(place, &after), 0);
	} while (after.st_ctim.tv_sec == before.st_ctim.tv_sec &&
		 after.st_ctim.tv_nsec == before.st_ctim.tv_nsec);
}

static void state__of_a_config_that_is_there__is_not_left(void **state)
{
	(void)state;
	assert_int_equal(mark_all_but("web"), 0);
	publish_later();
	assert_false(is_older("web"));
	assert_true(is_older("db"));
}

static void state__that_is_left__is_older_than_what_came_after_it_alone(void **state)
{
	(void)state;
	publish_later();
	publish_later();
	assert_int_equal(mark_all_but("web"), 0);
	assert_int_equal(mark_all_but("web"), 0);
	publish_later();
	assert_true(is_older("db"));
	assert_int_equal(remove(place), 0);
	assert_false(is_older("db"));
}

static void state__that_is_taken_up__is_as_any_other(void **state)
{
	struct store *store;

	(void)state;
	assert_int_equal(mark_all_but("web"), 0);
	store = open_store("db");
	left_clear(&sys, store);
	store_close(store);
	publish_later();
	assert_false(is_older("db"));
}

static void directory__without_a_ledger__gets_no_mark(void **state)
{
	char path[SCRATCH_PATH + 32];

	(void)state;
	snprintf(path, sizeof(path), "%s/lost+found", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(mark_all_but("web"), 0);
	assert_int_equal(remove(path), 0);
}

static void mark__that_cannot_be_made__is_said(void **state)
{
	(void)state;
	fault.call = CALL_OPEN;
	fault.for_ever = true;
	fault.error = EMFILE;
	for (fault.nth = 1; mark_all_but("web") == -EMFILE; fault.nth++) {
		assert_int_not_equal(why[0], '\0');
		fault.seen = 0;
	}
	assert_true(fault.nth > 2);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(state__of_a_config_that_is_there__is_not_left),
		CASE(state__that_is_left__is_older_than_what_came_after_it_alone),
		CASE(state__that_is_taken_up__is_as_any_other),
		CASE(directory__without_a_ledger__gets_no_mark),
		CASE(mark__that_cannot_be_made__is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

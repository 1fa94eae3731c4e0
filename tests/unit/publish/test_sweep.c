/*
 * What a killed agent left: removed for who asks and for nobody else, each directory read once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "publish/sweep.h"
#include "tests/unit/fixture/fault_sys.h"
#include "tests/unit/fixture/scratch.h"

#define NAMES 300
#define TAIL ".pullet-0123456789abcdef"

static struct sys sys;

static unsigned count(char letter)
{
	unsigned n = 0;

	for (const char *p = fault.trace; *p; p++)
		n += *p == letter;
	return n;
}

static int open_dir(const char *path)
{
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(dir >= 0);
	return dir;
}

/* Asks for each of the names. */
static void clean(struct sweep *s, int dir)
{
	char name[32];

	for (unsigned i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "c%u.yaml", i);
		sweep_clean(s, &sys, dir, name);
	}
}

static void clean__of_many_names_in_one_directory__reads_it_once(void **state)
{
	char path[SCRATCH_PATH], other[SCRATCH_PATH];
	struct sweep *s = sweep_new(&sys);
	unsigned descriptors = scratch_descriptors();
	int dir, second;

	(void)state;
	scratch_open(path, scratch_memory());
	scratch_open(other, scratch_memory());
	scratch_write(path, ".c7.yaml" TAIL, "", 0);
	scratch_write(path, ".c7.yaml.pullet-1111111111111111", "", 0);
	scratch_write(path, ".c299.yaml" TAIL, "", 0);
	scratch_write(path, ".c300.yaml" TAIL, "", 0); /* somebody else's */
	scratch_write(path, ".c7.yaml.pullet-012345678", "", 0);
	scratch_write(path, "c7.yaml", "", 0);
	scratch_write(other, ".c8.yaml" TAIL, "", 0);
	dir = open_dir(path);
	second = open_dir(other);
	fault = (struct fault){0};
	clean(s, dir);
	clean(s, second);
	assert_int_equal(count('o'), 2);
	assert_int_equal(count('u'), 4);
	assert_int_equal(scratch_count(path, ""), 3);
	assert_int_equal(scratch_count(path, ".c300.yaml" TAIL), 1);
	assert_int_equal(scratch_count(other, ""), 0);
	close(dir);
	close(second);
	sweep_free(s);
	assert_int_equal(scratch_descriptors(), descriptors);
	scratch_close(path);
	scratch_close(other);
}

/* No memory for a sweep, or a directory that cannot be read now: each name for itself. */
static void clean__without_a_sweep__reads_for_each_name(void **state)
{
	char path[SCRATCH_PATH];
	struct sweep *s = sweep_new(&sys);
	int dir;

	(void)state;
	scratch_open(path, scratch_memory());
	dir = open_dir(path);
	scratch_write(path, ".a" TAIL, "", 0);
	scratch_write(path, ".b" TAIL, "", 0);
	sweep_clean(NULL, &sys, dir, "a");
	assert_int_equal(scratch_count(path, ""), 1);
	fault = (struct fault){.call = CALL_OPEN, .nth = 1, .error = EMFILE};
	sweep_clean(s, &sys, dir, "b"); /* the second look has a descriptor */
	assert_int_equal(scratch_count(path, ""), 0);
	fault = (struct fault){0};
	sweep_free(s);
	sweep_free(NULL);
	close(dir);
	scratch_close(path);
}

/* What is in the tables when it ends is freed, wherever it lies in them: its place is chance. */
static void free__after_many_directories__keeps_nothing(void **state)
{
	char path[SCRATCH_PATH], inner[SCRATCH_PATH + 32];

	(void)state;
	scratch_open(path, scratch_memory());
	for (unsigned round = 0; round < 20; round++) {
		struct sweep *s = sweep_new(&sys);

		for (unsigned i = 0; i < 16; i++) {
			int dir;

			snprintf(inner, sizeof(inner), "%s/%u-%u", path, round, i);
			assert_int_equal(mkdir(inner, 0700), 0);
			scratch_write(inner, ".a" TAIL, "", 0);
			scratch_write(inner, ".b" TAIL, "", 0); /* nobody asks for it */
			dir = open_dir(inner);
			sweep_clean(s, &sys, dir, "a");
			close(dir);
			assert_int_equal(scratch_count(inner, ".a"), 0);
			assert_int_equal(scratch_count(inner, ".b"), 1);
		}
		sweep_free(s);
	}
	scratch_close(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clean__of_many_names_in_one_directory__reads_it_once),
		cmocka_unit_test(clean__without_a_sweep__reads_for_each_name),
		cmocka_unit_test(free__after_many_directories__keeps_nothing),
	};

	sys = fault_table();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

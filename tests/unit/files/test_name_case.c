/*
 * Names where upper and lower case are one: what a file system says that does not tell them apart,
 * and one that does.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "files/name_case.h"
#include "tests/unit/fixture/scratch.h"

static struct sys sys;
static char dir[SCRATCH_PATH], why[FILE_WHY];
static int dir_fd;

/* As exFAT does. */
static int stat_in_any_case(int at, const char *name, struct stat *ret_st, int flags)
{
	DIR *d = fdopendir(openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct dirent *e;
	int r;

	assert_non_null(d);
	while ((e = readdir(d)) && strcasecmp(e->d_name, name) != 0)
		;
	r = e ? fstatat(at, e->d_name, ret_st, flags) : -1;
	closedir(d);
	return r;
}

static int set_up(void **state)
{
	(void)state;
	sys = sys_real;
	scratch_open(dir, scratch_memory());
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(dir_fd >= 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	close(dir_fd);
	scratch_close(dir);
	return 0;
}

static void name__that_is_listed_in_another_case__is_another_file(void **state)
{
	char text[FILE_WHY];

	(void)state;
	sys.fstatat = stat_in_any_case;
	assert_int_equal(name_case_check(&sys, dir_fd, "web.yaml", why), 0);
	scratch_write(dir, "WEB.yaml", "", 0);
	assert_int_equal(name_case_check(&sys, dir_fd, "web.yaml", why), -EEXIST);
	snprintf(text, sizeof(text),
		"will not use %s/web.yaml: WEB.yaml is the same there, where upper and lower case "
		"are not told apart; give one of them another name",
		dir);
	assert_string_equal(why, text);
	assert_int_equal(name_case_check(&sys, dir_fd, "WEB.yaml", why), 0);
}

static void names__in_both_cases__are_two_files(void **state)
{
	(void)state;
	scratch_write(dir, "WEB.YAML", "", 0);
	assert_int_equal(name_case_check(&sys, dir_fd, "web.yaml", why), 0);
	scratch_write(dir, "web.yaml", "", 0);
	assert_int_equal(name_case_check(&sys, dir_fd, "web.yaml", why), 0);
	assert_int_equal(name_case_check(&sys, dir_fd, "WEB.YAML", why), 0);
}

static void name__without_letters__has_no_other_case(void **state)
{
	(void)state;
	sys.fstatat = stat_in_any_case;
	scratch_write(dir, "00000000000000000001", "", 0);
	assert_int_equal(name_case_check(&sys, dir_fd, "00000000000000000001", why), 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		CASE(name__that_is_listed_in_another_case__is_another_file),
		CASE(names__in_both_cases__are_two_files),
		CASE(name__without_letters__has_no_other_case),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

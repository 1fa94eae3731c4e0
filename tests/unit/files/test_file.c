/* What file_sync and its kin bring to the disk, in which order, and what they say when it fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "files/file.h"
#include "tests/unit/fixture/fault_sys.h"
#include "tests/unit/fixture/scratch.h"

static struct sys sys;
static char dir[SCRATCH_PATH], why[FILE_WHY];
static int dir_fd;

/* What was fsynced: d the directory, p its parent, f anything else. */
static char synced[16];
static struct stat dir_stat, parent_stat;

static int note_fsync(int fd)
{
	size_t n = strlen(synced);
	struct stat st;

	assert_true(n + 1 < sizeof(synced));
	assert_int_equal(fstat(fd, &st), 0);
	synced[n] = st.st_ino == dir_stat.st_ino      ? 'd'
		    : st.st_ino == parent_stat.st_ino ? 'p'
						      : 'f';
	return fault_fsync(fd);
}

static int set_up(void **state)
{
	(void)state;
	memset(&fault, 0, sizeof(fault));
	memset(synced, 0, sizeof(synced));
	sys = fault_table();
	sys.fsync = note_fsync;
	scratch_open(dir, scratch_memory());
	scratch_write(dir, "web.yaml", "n: 1\n", 5);
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(dir_fd >= 0);
	assert_int_equal(fstat(dir_fd, &dir_stat), 0);
	assert_int_equal(fstatat(dir_fd, "..", &parent_stat, 0), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	close(dir_fd);
	scratch_close(dir);
	return 0;
}

static unsigned count_descriptors(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void fail_fsync(unsigned nth)
{
	memset(&fault, 0, sizeof(fault));
	memset(synced, 0, sizeof(synced));
	fault.call = CALL_FSYNC;
	fault.nth = nth;
	fault.error = EIO;
}

static void sync__of_a_file__is_of_its_bytes_then_of_its_name(void **state)
{
	unsigned before = count_descriptors();

	(void)state;
	assert_int_equal(file_sync(&sys, dir_fd, "web.yaml"), 0);
	assert_string_equal(synced, "fd");
	assert_int_equal(count_descriptors(), before);
}

static void sync__that_fails__says_so_and_goes_no_further(void **state)
{
	unsigned before = count_descriptors();

	(void)state;
	fail_fsync(1);
	assert_int_equal(file_sync(&sys, dir_fd, "web.yaml"), -EIO);
	assert_string_equal(synced, "f");
	fail_fsync(2);
	assert_int_equal(file_sync(&sys, dir_fd, "web.yaml"), -EIO);
	assert_string_equal(synced, "fd");
	assert_int_equal(count_descriptors(), before);
}

static void sync__of_what_is_not_there__says_so(void **state)
{
	(void)state;
	assert_int_equal(file_sync(&sys, dir_fd, "none"), -ENOENT);
	assert_int_equal(symlinkat("web.yaml", dir_fd, "link"), 0);
	assert_int_equal(file_sync(&sys, dir_fd, "link"), -ELOOP);
	assert_string_equal(synced, "");
}

static void sync__of_the_parent__is_of_the_directorys_name(void **state)
{
	unsigned before = count_descriptors();

	(void)state;
	assert_int_equal(file_sync_parent(&sys, dir_fd, why), 0);
	assert_string_equal(synced, "p");
	fail_fsync(1);
	assert_int_equal(file_sync_parent(&sys, dir_fd, why), -EIO);
	assert_non_null(strstr(why, "cannot bring to the disk the directory"));
	assert_int_equal(count_descriptors(), before);
}

static void sync__of_a_parent_that_cannot_be_opened__is_an_error_but_for_its_rights(void **state)
{
	(void)state;
	fault.call = CALL_OPEN;
	fault.nth = 1;
	fault.for_ever = true;
	fault.error = EACCES;
	assert_int_equal(file_sync_parent(&sys, dir_fd, why), 0);
	fault.error = EMFILE;
	assert_int_equal(file_sync_parent(&sys, dir_fd, why), -EMFILE);
	assert_string_equal(synced, "");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(sync__of_a_file__is_of_its_bytes_then_of_its_name),
		CASE(sync__that_fails__says_so_and_goes_no_further),
		CASE(sync__of_what_is_not_there__says_so),
		CASE(sync__of_the_parent__is_of_the_directorys_name),
		CASE(sync__of_a_parent_that_cannot_be_opened__is_an_error_but_for_its_rights),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

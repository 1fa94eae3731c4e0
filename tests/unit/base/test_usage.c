/* What a process uses: descriptors as the kernel counts them, and as they are listed before Linux
 * 6.2. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/usage.h"

static bool old_kernel;

/* In place of libc's. */
int stat(const char *path, struct stat *st)
{
	int r = fstatat(AT_FDCWD, path, st, 0);

	if (old_kernel)
		st->st_size = 0;
	return r;
}

static int64_t count_descriptors(bool old)
{
	struct usage u;

	old_kernel = old;
	usage_read(&sys_real, &u);
	return u.open_fds;
}

static void descriptors__opened_and_closed__are_counted_by_old_and_new_kernels(void **state)
{
	int64_t before = count_descriptors(true);
	int fds[3];

	(void)state;
	assert_true(before >= 3);
	assert_int_equal(count_descriptors(false), before);
	for (int i = 0; i < 3; i++)
		fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	close(fds[0]);
	assert_int_equal(count_descriptors(true), before + 2);
	assert_int_equal(count_descriptors(false), before + 2);
	close(fds[1]);
	close(fds[2]);
	assert_int_equal(count_descriptors(false), before);
}

static const char *stat_line;

static ssize_t read_line(int fd, void *data, size_t len)
{
	size_t n = strlen(stat_line);

	(void)fd;
	assert_true(n <= len);
	memcpy(data, stat_line, n);
	return (ssize_t)n;
}

static int open_nothing(int dir, const char *path, int flags, mode_t mode)
{
	(void)dir, (void)path, (void)flags, (void)mode;
	errno = ENOENT;
	return -1;
}

static void usage__is_read_from_the_kernels_line(void **state)
{
	long hz = sysconf(_SC_CLK_TCK);
	struct sys sys = sys_real;
	struct usage u;

	(void)state;
	sys.read = read_line;
	stat_line = "1 (a) b) S 4 5 6 7 8 9 10 11 12 13 2500 500 16 17 18 19 20 21 22 8765432 77 "
		    "25\n";
	usage_read(&sys, &u);
	assert_int_equal(u.cpu_ms, 3000 * 1000 / hz);
	assert_int_equal(u.virtual_bytes, 8765432);
	assert_int_equal(u.resident_bytes, 77 * sysconf(_SC_PAGESIZE));
	stat_line = "what is no such line";
	usage_read(&sys, &u);
	assert_int_equal(u.cpu_ms, -1);
	assert_int_equal(u.resident_bytes, -1);
	sys.openat = open_nothing;
	usage_read(&sys, &u);
	assert_int_equal(u.cpu_ms, -1);
	assert_int_equal(u.virtual_bytes, -1);
	assert_int_equal(u.resident_bytes, -1);
}

static void usage__of_this_process__has_memory_and_a_limit(void **state)
{
	struct rlimit limit;
	struct usage u;

	(void)state;
	usage_read(&sys_real, &u);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(u.max_fds, (int64_t)limit.rlim_cur);
	assert_true(u.resident_bytes > 100000);
	assert_true(u.virtual_bytes > u.resident_bytes);
	assert_true(u.cpu_ms >= 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			descriptors__opened_and_closed__are_counted_by_old_and_new_kernels),
		cmocka_unit_test(usage__is_read_from_the_kernels_line),
		cmocka_unit_test(usage__of_this_process__has_memory_and_a_limit),
	};

	return cmocka_run_group_tests_name("usage", tests, NULL, NULL);
}

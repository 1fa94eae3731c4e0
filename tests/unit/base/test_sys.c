/* The seam to the operating system as it is: clocks, chance, files; and versions of an ETag. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/etag.h"
#include "base/hash.h"
#include "base/sys.h"
#include "tests/unit/fixture/scratch.h"

/* ---- clocks ---- */

static uint64_t clock_of(clockid_t id, uint64_t units)
{
	struct timespec t;

	assert_int_equal(clock_gettime(id, &t), 0);
	return (uint64_t)t.tv_sec * units + (uint64_t)t.tv_nsec / (1000000000 / units);
}

static void clocks__are_those_of_the_kernel(void **state)
{
	uint64_t before, now;

	(void)state;
	before = clock_of(CLOCK_BOOTTIME, 1000);
	now = sys_real.now_ms();
	assert_in_range(now, before, clock_of(CLOCK_BOOTTIME, 1000));
	before = clock_of(CLOCK_MONOTONIC, 1000000);
	now = sys_real.monotonic_us();
	assert_in_range(now, before, clock_of(CLOCK_MONOTONIC, 1000000));
	before = clock_of(CLOCK_REALTIME, 1000);
	now = (uint64_t)sys_real.wall_ms();
	assert_in_range(now, before, clock_of(CLOCK_REALTIME, 1000));
	before = clock_of(CLOCK_THREAD_CPUTIME_ID, 1000000);
	now = sys_thread_us();
	assert_in_range(now, before, clock_of(CLOCK_THREAD_CPUTIME_ID, 1000000));
}

/* ---- chance ---- */

static uint64_t drawn[8];
static size_t draws;

static uint64_t draw(void)
{
	return drawn[draws++];
}

static void random__up_to_a_bound__favours_no_number(void **state)
{
	static const struct {
		uint64_t bound, drawn[2], expected;
		size_t draws;
	} rows[] = {
		{0, {5}, 0, 0},
		{9, {0}, 0, 1},
		{9, {9}, 9, 1},
		{9, {10}, 0, 1},
		{9, {25}, 5, 1},
		/* the last range is not whole: from ...610 on */
		{9, {UINT64_MAX - 6}, 9, 1},
		{9, {UINT64_MAX - 5, 7}, 7, 2},
		{9, {UINT64_MAX, 3}, 3, 2},
		{1, {UINT64_MAX - 2}, 1, 1},
		{UINT64_MAX, {UINT64_MAX}, UINT64_MAX, 1},
		{UINT64_MAX, {17}, 17, 1},
	};
	struct sys sys = {.random = draw};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		memcpy(drawn, rows[i].drawn, sizeof(rows[i].drawn));
		draws = 0;
		assert_true(sys_random_upto(&sys, rows[i].bound) == rows[i].expected);
		assert_int_equal(draws, rows[i].draws);
	}
}

static int no_random; /* errno */

ssize_t getrandom(void *data, size_t len, unsigned flags)
{
	if (!no_random)
		return (ssize_t)syscall(SYS_getrandom, data, len, flags);
	errno = no_random;
	return -1;
}

static void random__that_a_sandbox_denies__comes_from_the_device(void **state)
{
	uint64_t n;

	(void)state;
	no_random = EPERM;
	n = sys_real.random();
	assert_true(n != sys_real.random());
	no_random = 0;
}

static void random_and_host__differ_and_stay(void **state)
{
	(void)state;
	assert_true(sys_real.random() != sys_real.random());
	assert_true(sys_real.host() == sys_real.host());
	assert_true(sys_real.host() != HASH_START);
}

static const char *machine_id, *node; /* of this host, as long as node is not NULL */

int open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list more;
	int fd;

	va_start(more, flags);
	if (flags & O_CREAT)
		mode = va_arg(more, mode_t);
	va_end(more);
	if (!node || strcmp(path, "/etc/machine-id") != 0)
		return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
	if (!machine_id) {
		errno = ENOENT;
		return -1;
	}
	fd = (int)syscall(SYS_memfd_create, "machine-id", 0);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, machine_id, strlen(machine_id)), strlen(machine_id));
	lseek(fd, 0, SEEK_SET);
	return fd;
}

int uname(struct utsname *ret)
{
	if (!node)
		return (int)syscall(SYS_uname, ret);
	memset(ret, 0, sizeof(*ret));
	memcpy(ret->nodename, node, strlen(node));
	return 0;
}

static uint64_t host_of(const char *id, const char *name)
{
	uint64_t host;

	machine_id = id;
	node = name;
	host = sys_real.host();
	node = NULL;
	return host;
}

/* Hosts that are one to each other would all pull at the same moment. */
static void host__is_told_by_its_machine_id_and_its_name(void **state)
{
	const char *const ids[] = {"0123456789abcdef0123456789abcdef\n",
		"0123456789abcdef0123456789abcde0\n", "", NULL};
	uint64_t seen[8];
	size_t n = 0;
	int input;

	(void)state;
	for (size_t i = 0; i < 3; i++)
		for (size_t k = 0; k < 2; k++) {
			seen[n] = host_of(ids[i], k ? "web-1" : "web-2");
			assert_true(seen[n] == host_of(ids[i], k ? "web-1" : "web-2"));
			for (size_t m = 0; m < n; m++)
				assert_true(seen[m] != seen[n]);
			n++;
		}
	for (size_t i = 0; i < 2; i++) { /* whatever was read before */
		(void)host_of(ids[i], "web-1");
		assert_true(host_of(NULL, "web-1") == host_of("", "web-1"));
	}
	assert_true(host_of(NULL, "web-1") == hash_bytes(HASH_START, "web-1", 5));
	input = dup(STDIN_FILENO); /* of an agent that was started without */
	close(STDIN_FILENO);
	assert_true(host_of(ids[0], "web-2") == seen[0]);
	assert_int_equal(fcntl(STDIN_FILENO, F_GETFD), -1); /* nothing is left open */
	dup2(input, STDIN_FILENO);
	close(input);
}

/* ---- files ---- */

static void file__that_is_opened__is_not_inherited(void **state)
{
	char dir[SCRATCH_PATH], path[SCRATCH_PATH + 16];
	int fd;

	(void)state;
	scratch_open(dir, scratch_memory());
	snprintf(path, sizeof(path), "%s/a", dir);
	fd = sys_real.openat(AT_FDCWD, path, O_WRONLY | O_CREAT, 0640);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(sys_real.close(fd), 0);
	snprintf(path, sizeof(path), "%s/link", dir);
	assert_int_equal(symlink("a", path), 0);
	fd = sys_real.open_plain(AT_FDCWD, path, O_RDONLY);
	if (fd >= 0 || (errno != ENOSYS && errno != EPERM)) { /* the kernel has the call */
		assert_int_equal(fd, -1);
		assert_int_equal(errno, ELOOP);
		snprintf(path, sizeof(path), "%s/a", dir);
		fd = sys_real.open_plain(AT_FDCWD, path, O_RDONLY);
		assert_true(fd >= 0);
		assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
		assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
		close(fd);
	}
	scratch_close(dir);
}

static void dumps__can_be_forbidden(void **state)
{
	(void)state;
	assert_int_equal(prctl(PR_SET_DUMPABLE, 1), 0);
	sys_forbid_dumps();
	assert_int_equal(prctl(PR_GET_DUMPABLE), 0);
	assert_int_equal(prctl(PR_SET_DUMPABLE, 1), 0);
}

/* ---- versions ---- */

static void etag__of_one_version__has_one_hash_in_each_form(void **state)
{
	uint64_t v1 = etag_hash("v1");

	(void)state;
	assert_true(v1 == hash_bytes(HASH_START, "v1", 2));
	assert_true(etag_hash("\"v1\"") == v1);
	assert_true(etag_hash("W/\"v1\"") == v1);
	assert_true(etag_hash("W/v1") == v1);
	assert_true(etag_hash("v2") != v1);
	assert_true(etag_hash("\"v1") != v1);
	assert_true(etag_hash("v1\"") != v1);
	assert_true(etag_hash("\"") == hash_bytes(HASH_START, "\"", 1));
	assert_true(etag_hash(NULL) == 0);
	assert_true(etag_hash("") == 0);
	assert_true(etag_hash("\"\"") == 0);
	assert_true(etag_hash("W/\"\"") == 0);
	assert_true(etag_hash("W/") == 0);
	assert_true(etag_hash("w/v1") != v1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clocks__are_those_of_the_kernel),
		cmocka_unit_test(random__up_to_a_bound__favours_no_number),
		cmocka_unit_test(random__that_a_sandbox_denies__comes_from_the_device),
		cmocka_unit_test(random_and_host__differ_and_stay),
		cmocka_unit_test(host__is_told_by_its_machine_id_and_its_name),
		cmocka_unit_test(file__that_is_opened__is_not_inherited),
		cmocka_unit_test(dumps__can_be_forbidden),
		cmocka_unit_test(etag__of_one_version__has_one_hash_in_each_form),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

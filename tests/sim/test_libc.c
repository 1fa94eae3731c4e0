/* The seam of libc: calls that fail, memory, clocks, hooks, notices, the trace. */
#include "disk.h"
#include "libc.h"
#include "test_world.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/openat2.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>
#include <linux/magic.h>

static struct disk *disk;

static int begin(void **state)
{
	(void)state;
	world_begin(7);
	disk = disk_new(DISK_JOURNAL);
	disk_use(disk);
	disk_make_dir("/d");
	disk_put("/d/file", "content", 7);
	disk_owner = OWNER_AGENT;
	return 0;
}

static int end(void **state)
{
	(void)state;
	disk_owner = OWNER_WORLD;
	libc_hooks = (struct libc_hooks){0};
	disk_free(disk);
	return 0;
}

/* ---- calls that fail ---- */

static void fail_next(enum world_call call, int error)
{
	test_world.call = call;
	test_world.error = error;
}

/* The call failed with that, and was made. */
static void assert_failed(long r, int error)
{
	assert_int_equal(r, -1);
	assert_int_equal(errno, error);
	assert_int_equal(test_world.error, 0);
}

static void call__made_to_fail__changes_nothing(void **state)
{
	int fd, dir = open("/d", O_RDONLY | O_DIRECTORY);
	struct stat st;
	char text[8];
	size_t len;

	(void)state;
	fail_next(CALL_OPEN, ENOSPC);
	assert_failed(openat(dir, "new", O_WRONLY | O_CREAT, 0600), ENOSPC);
	fail_next(CALL_MKDIR, EIO);
	assert_failed(mkdirat(dir, "new", 0700), EIO);
	fail_next(CALL_SYMLINK, EIO);
	assert_failed(symlinkat("file", dir, "new"), EIO);
	fail_next(CALL_RENAME, EIO);
	assert_failed(renameat(dir, "file", dir, "new"), EIO);
	fail_next(CALL_UNLINK, EIO);
	assert_failed(unlinkat(dir, "file", 0), EIO);
	fail_next(CALL_LINK, EIO);
	assert_failed(readlinkat(dir, "file", text, sizeof(text)), EIO);
	fail_next(CALL_STAT, EIO);
	assert_failed(fstatat(dir, "file", &st, 0), EIO);
	fd = openat(dir, "file", O_RDWR);
	fail_next(CALL_WRITE, ENOSPC);
	assert_failed(write(fd, "else", 4), ENOSPC);
	fail_next(CALL_READ, EIO);
	assert_failed(read(fd, text, sizeof(text)), EIO);
	fail_next(CALL_CHMOD, EIO);
	assert_failed(fchmod(fd, 0777), EIO);
	fail_next(CALL_CHOWN, EIO);
	assert_failed(fchown(fd, 1, 1), EIO);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
	assert_int_equal(st.st_uid, 0);
	assert_memory_equal(disk_get("/d/file", &len), "content", 7);
	assert_int_equal(disk_count("/d", ""), 1);
}

static void close__made_to_fail__closes(void **state)
{
	int fd = open("/d/file", O_RDONLY);

	(void)state;
	assert_int_equal(disk_open_count(disk, OWNER_AGENT), 1);
	fail_next(CALL_CLOSE, EIO);
	assert_failed(close(fd), EIO);
	assert_int_equal(disk_open_count(disk, OWNER_AGENT), 0);
}

static void reader__is_never_made_to_fail(void **state)
{
	(void)state;
	disk_owner = OWNER_READER;
	fail_next(CALL_OPEN, EIO);
	assert_true(open("/d/file", O_RDONLY) >= 0);
	assert_int_equal(world.calls, 0);
	assert_int_equal(world.traced, 0);
}

static void write__is_short_a_quarter_of_the_time(void **state)
{
	int fd = open("/d/new", O_WRONLY | O_CREAT, 0600), fewer = 0;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		ssize_t n = write(fd, "0123456789", 10);

		assert_in_range(n, 1, 10);
		fewer += n < 10;
	}
	assert_in_range(fewer, 200, 300);
}

static void descriptors__have_a_limit(void **state)
{
	int n = 0;

	(void)state;
	while (open("/d/file", O_RDONLY) >= 0)
		n++;
	assert_int_equal(errno, EMFILE);
	assert_int_equal(n, DISK_DESCRIPTORS - 3);
	assert_true(fcntl(DISK_DESCRIPTORS - 1, F_GETFD) >= 0);
	assert_int_equal(fcntl(DISK_DESCRIPTORS, F_GETFD), -1);
}

static void openat2__follows_no_symlink(void **state)
{
	const struct open_how how = {.flags = O_RDONLY, .resolve = RESOLVE_NO_SYMLINKS};

	(void)state;
	assert_int_equal(symlinkat("/d", AT_FDCWD, "/l"), 0);
	assert_true(syscall(SYS_openat2, AT_FDCWD, "/d/file", &how, sizeof(how)) >= 0);
	assert_int_equal(syscall(SYS_openat2, AT_FDCWD, "/l/file", &how, sizeof(how)), -1);
	assert_int_equal(errno, ELOOP);
	assert_true(open("/l/file", O_RDONLY) >= 0);
}

static void file_system__is_that_of_the_place(void **state)
{
	struct statfs fs;

	(void)state;
	assert_int_equal(disk_mount_memory("/run"), 0);
	assert_int_equal(fstatfs(open("/d", O_RDONLY), &fs), 0);
	assert_int_equal(fs.f_type, EXT4_SUPER_MAGIC);
	assert_int_equal(fstatfs(open("/run", O_RDONLY), &fs), 0);
	assert_int_equal(fs.f_type, TMPFS_MAGIC);
}

/* ---- memory ---- */

static void memory__is_counted_until_it_is_freed(void **state)
{
	char *volatile text;
	void *volatile a, *volatile b;

	(void)state;
	a = malloc(10);
	b = calloc(3, 5);
	a = realloc(a, 100000);
	text = strdup("text");
	assert_int_equal(libc_allocations(OWNER_AGENT), 3);
	free(b);
	assert_int_equal(asprintf((char **)&b, "%d", 5), 1);
	assert_int_equal(libc_allocations(OWNER_AGENT), 3);
	libc_trace_allocations(OWNER_AGENT);
	assert_non_null(strstr(test_world.last, "not freed: 2 bytes of +0x"));
	free(a);
	free(text);
	free(b);
	assert_int_equal(libc_allocations(OWNER_AGENT), 0);
}

static void memory__after_a_crash__is_forgotten(void **state)
{
	void *volatile kept;

	(void)state;
	disk_owner = OWNER_SECOND;
	kept = malloc(1);
	disk_owner = OWNER_AGENT;
	for (int i = 0; i < 10000; i++)
		assert_non_null(strndup("text", (size_t)i % 7));
	assert_non_null(json_object());
	libc_forget(OWNER_AGENT);
	assert_int_equal(libc_allocations(OWNER_AGENT), 0);
	assert_int_equal(libc_allocations(OWNER_SECOND), 1);
	free(kept);
	assert_int_equal(libc_allocations(OWNER_SECOND), 0);
}

static void memory__that_is_used_up__is_refused(void **state)
{
	char *volatile text = NULL;

	(void)state;
	test_world.memory_left = 1;
	text = malloc(1);
	assert_non_null(text);
	assert_null(realloc(text, 2));
	assert_null(strdup("text"));
	assert_ptr_equal(mmap(NULL, 1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), MAP_FAILED);
	assert_int_equal(errno, ENOMEM);
	disk_owner = OWNER_WORLD;
	free(text);
	text = malloc(1); /* the simulator's own is not */
	assert_non_null(text);
	free(text);
}

/* ---- clocks, randomness, hooks ---- */

static void clocks__are_the_worlds(void **state)
{
	struct timespec t;

	(void)state;
	world.now_us = 5000007;
	world.wall_offset_us = -6000000;
	clock_gettime(CLOCK_BOOTTIME, &t);
	assert_int_equal(t.tv_sec, 5);
	assert_int_equal(t.tv_nsec, 7000);
	clock_gettime(CLOCK_REALTIME, &t);
	assert_int_equal(t.tv_sec, -1);
	assert_int_equal(t.tv_nsec, 7000);
	t = (struct timespec){2, 0};
	assert_int_equal(nanosleep(&t, NULL), 0);
	assert_int_equal(world.now_us, 7000007);
}

static int hook_wake(const void *word)
{
	return (int)*(const uint32_t *)word;
}

static int hook_kill(pid_t pid, int number)
{
	return pid == 5 && number == 1 ? 0 : EPERM;
}

static void hooks__are_called(void **state)
{
	uint32_t word = 3;

	(void)state;
	libc_hooks.on_wake = hook_wake;
	assert_int_equal(syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0), 3);
	assert_int_equal(syscall(SYS_futex, &word, FUTEX_WAIT, 4, NULL, NULL, 0), -1);
	assert_int_equal(errno, EAGAIN);
	libc_hooks.on_kill = hook_kill;
	assert_int_equal(kill(5, 1), 0);
	assert_int_equal(kill(5, 2), -1);
	assert_int_equal(errno, EPERM);
}

static uint64_t trace_some_calls(void)
{
	uint64_t n, hash;
	int fd;

	begin(NULL);
	fd = open("/d/new", O_WRONLY | O_CREAT, 0600);
	assert_int_equal(getrandom(&n, sizeof(n), 0), sizeof(n));
	assert_true(write(fd, &n, sizeof(n)) > 0);
	assert_int_equal(write(STDERR_FILENO, "a line\n", 7), 7);
	assert_string_equal(test_world.last, "log a line");
	unlinkat(AT_FDCWD, "/d/none", 0);
	assert_string_equal(test_world.last, "unlink /d/none = ENOENT");
	hash = world.trace_hash;
	end(NULL);
	return hash + n;
}

static void trace__is_the_same_for_the_same_seed(void **state)
{
	uint64_t first = trace_some_calls();

	(void)state;
	assert_true(first == trace_some_calls());
}

/* ---- notices ---- */

static char noticed[400];

static void note_change(void *arg, const char *dir, const char *name, const char *cause)
{
	size_t len = strlen(noticed);

	(void)arg;
	snprintf(noticed + len, sizeof(noticed) - len, "%s/%s %s\n", dir, name, cause);
}

static void changes__are_noticed_as_inotify_does(void **state)
{
	int fd;

	(void)state;
	noticed[0] = '\0';
	disk_on_change(disk, note_change, NULL);
	fd = open("/d/.new", O_WRONLY | O_CREAT, 0600);
	fchmod(fd, 0644);
	close(fd);
	renameat(AT_FDCWD, "/d/.new", AT_FDCWD, "/d/file");
	close(open("/d/file", O_RDONLY));
	disk_put("/d/file", "else", 4);
	unlinkat(AT_FDCWD, "/d/file", 0);
	assert_string_equal(noticed, "/d/.new its mode or owner changed\n/d/.new written\n"
				     "/d/.new removed\n/d/file replaced\n/d/file written\n"
				     "/d/file removed\n");
}

static void directory__of_a_notice__is_its_real_path(void **state)
{
	char path[100];

	(void)state;
	assert_int_equal(disk_put_link("/l", "d/../d/."), 0);
	assert_int_equal(disk_real_path("/l", path, sizeof(path)), 0);
	assert_string_equal(path, "/d");
	assert_int_equal(disk_real_path("/none", path, sizeof(path)), -ENOENT);
}

/* ---- times ---- */

static void times__are_the_worlds_in_ticks(void **state)
{
	struct stat st, later;
	int fd;

	(void)state;
	world.now_us = 10009000;
	world.wall_offset_us = 1000000000;
	fd = open("/d/file", O_RDWR);
	while (write(fd, "x", 1) != 1)
		;
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mtim.tv_sec, 1010);
	assert_int_equal(st.st_mtim.tv_nsec, 8000000);
	world.now_us += 2000; /* within the tick */
	assert_int_equal(fchmod(fd, 0600), 0);
	assert_int_equal(fstat(fd, &later), 0);
	assert_int_equal(later.st_ctim.tv_nsec, st.st_ctim.tv_nsec);
	world.now_us += 2000;
	assert_int_equal(fchmod(fd, 0600), 0);
	assert_int_equal(fstat(fd, &later), 0);
	assert_int_equal(later.st_ctim.tv_nsec, 12000000);
	assert_int_equal(later.st_mtim.tv_nsec, 8000000);
}

static void numbers_of_inodes__are_used_again(void **state)
{
	struct stat old, new;

	(void)state;
	assert_int_equal(stat("/d/file", &old), 0);
	assert_int_equal(unlinkat(AT_FDCWD, "/d/file", 0), 0);
	close(open("/d", O_RDONLY));
	disk_put("/d/other", "", 0); /* syncs: nobody needs the old one any more */
	disk_put("/d/another", "", 0);
	assert_int_equal(stat("/d/another", &new), 0);
	assert_int_equal(new.st_ino, old.st_ino);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		CASE(call__made_to_fail__changes_nothing),
		CASE(close__made_to_fail__closes),
		CASE(reader__is_never_made_to_fail),
		CASE(write__is_short_a_quarter_of_the_time),
		CASE(descriptors__have_a_limit),
		CASE(openat2__follows_no_symlink),
		CASE(file_system__is_that_of_the_place),
		CASE(memory__is_counted_until_it_is_freed),
		CASE(memory__after_a_crash__is_forgotten),
		CASE(memory__that_is_used_up__is_refused),
		CASE(clocks__are_the_worlds),
		CASE(hooks__are_called),
		cmocka_unit_test(trace__is_the_same_for_the_same_seed),
		CASE(changes__are_noticed_as_inotify_does),
		CASE(directory__of_a_notice__is_its_real_path),
		CASE(times__are_the_worlds_in_ticks),
		CASE(numbers_of_inodes__are_used_again),
	};

	libc_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

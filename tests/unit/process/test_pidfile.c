/*
 * Who may say which process is signalled: the file's hands, and whose the process is. As root; else
 * what needs two users is skipped.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "process/pidfile.h"
#include "tests/unit/fixture/fault_syscall.h"
#include "tests/unit/fixture/scratch.h"

#define OTHER 64104
#define THIRD 64105

static char dir[SCRATCH_PATH], path[PATH_MAX], why[FILE_WHY];
static struct sys sys;
static pid_t target;
static int held_end; /* of a pipe: its reader goes on when it is closed */
static unsigned descriptors;

static int set_up(void **state)
{
	(void)state;
	sys = sys_real;
	target = 0;
	umask(022);
	descriptors = scratch_descriptors();
	scratch_open(dir, "/tmp");
	assert_int_equal(chmod(dir, 0755), 0);
	snprintf(path, sizeof(path), "%s/pid", dir);
	return 0;
}

static void end_target(void)
{
	if (target) {
		kill(target, SIGKILL);
		waitpid(target, NULL, 0);
	}
	target = 0;
}

static int tear_down(void **state)
{
	(void)state;
	end_target();
	scratch_close(dir);
	assert_int_equal(scratch_descriptors(), descriptors);
	return 0;
}

static void need_root(void)
{
	if (geteuid() != 0)
		skip();
}

/* A process with these uids that USR1 ends; it is ready when this returns. */
static void start(uid_t real, uid_t effective, uid_t saved)
{
	int ends[2];
	char byte;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	target = fork();
	if (target == 0) {
		bool ok = (geteuid() != 0 || setresuid(real, effective, saved) == 0) &&
			  prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && write(ends[1], "x", 1) == 1;

		for (; ok;)
			pause();
		_exit(1);
	}
	assert_true(target > 1);
	close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	close(ends[0]);
}

static void start_plain(void)
{
	start(getuid(), getuid(), getuid());
}

static void put(const char *name, pid_t pid, uid_t uid, mode_t mode)
{
	char text[32];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	scratch_write(dir, name, text, (size_t)snprintf(text, sizeof(text), "%d\n", (int)pid));
	if (geteuid() == 0)
		assert_int_equal(chown(path, uid, uid), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static void make(const char *name, mode_t mode, uid_t uid)
{
	char at[PATH_MAX];

	snprintf(at, sizeof(at), "%s/%s", dir, name);
	assert_int_equal(mkdir(at, 0700), 0);
	assert_int_equal(chown(at, uid, uid), 0);
	assert_int_equal(chmod(at, mode), 0);
}

/* The signal comes, and the target ends. */
static void sends(void)
{
	int how;

	why[0] = '\0';
	if (pidfile_signal(&sys, path, SIGUSR1, why))
		fail_msg("%s", why);
	assert_int_equal(waitpid(target, &how, 0), target);
	assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGUSR1);
	target = 0;
}

/* It does not: signal 0 would be good, so it is one that can be seen. */
static void refuses(int error, const char *sentence)
{
	int r = pidfile_signal(&sys, path, SIGUSR1, why);

	if (!strstr(why, sentence))
		fail_msg("%s", why);
	assert_int_equal(r, error);
	assert_non_null(strstr(why, path));
	if (target)
		assert_int_equal(waitpid(target, NULL, WNOHANG), 0);
}

static void signal__by_a_file_of_this_user__arrives(void **state)
{
	(void)state;
	start_plain();
	put("pid", target, getuid(), 0644);
	sends();
}

static void signal__by_a_file_of_the_process_s_user__arrives(void **state)
{
	(void)state;
	need_root();
	make("theirs", 0755, OTHER);
	start(OTHER, OTHER, OTHER);
	put("theirs/pid", target, OTHER, 0644);
	sends();
	make("sticky", 01777, 0);
	start(OTHER, OTHER, OTHER);
	put("sticky/pid", target, OTHER, 0644);
	sends();
	start(OTHER, OTHER, OTHER);
	put("pid", target, 0, 0644);
	sends();
}

static void signal__to_a_process_that_has_other_rights__is_refused(void **state)
{
	static const uid_t uids[][3] = {{0, 0, 0}, {OTHER, 0, OTHER}, {OTHER, OTHER, 0},
		{0, OTHER, OTHER}, {0, THIRD, OTHER}, {OTHER, 0, THIRD}, {THIRD, THIRD, THIRD},
		{OTHER, THIRD, THIRD}, {THIRD, 0, OTHER}, {OTHER, THIRD, 0}};
	char expected[PATH_MAX + FILE_WHY];

	(void)state;
	need_root();
	for (size_t i = 0; i < sizeof(uids) / sizeof(uids[0]); i++) {
		start(uids[i][0], uids[i][1], uids[i][2]);
		put("pid", target, OTHER, 0644);
		refuses(-EPERM, "the pidfile ");
		snprintf(expected, sizeof(expected),
			"the pidfile %s is in the hands of uid 64104 and names process %d, which "
			"has the rights of %s; give the file and its directory to root, or to the "
			"user of the process",
			path, (int)target, i < 6 ? "root (uid 0)" : "uid 64105");
		assert_string_equal(why, expected);
		end_target();
	}
}

static void signal__by_a_file_that_several_may_change__is_refused(void **state)
{
	(void)state;
	start_plain();
	put("pid", target, getuid(), 0664);
	refuses(-EPERM, "group or others can write it (mode 0664); chmod go-w");
	put("pid", target, getuid(), 0646);
	refuses(-EPERM, "group or others can write it (mode 0646); chmod go-w");
	need_root();
	make("theirs", 0755, OTHER);
	put("theirs/of-root", target, 0, 0644);
	refuses(-EPERM, "is in the hands of uid 64104");
	end_target();
	start(THIRD, THIRD, THIRD);
	put("theirs/of-third", target, THIRD, 0644);
	refuses(-EPERM, "belongs to uid 64105");
	make("open", 0777, 0);
	put("open/pid", target, THIRD, 0644);
	refuses(-EPERM, "group or others can write (mode 0777) in its part");
	end_target();
	start(OTHER, OTHER, OTHER);
	make("group", 0775, OTHER);
	put("group/pid", target, OTHER, 0644);
	refuses(-EPERM, "group or others can write (mode 0775) in its part");
}

static void signal__through_a_link_of_another_user__reaches_that_user_s_processes_alone(
	void **state)
{
	char link[PATH_MAX];

	(void)state;
	need_root();
	snprintf(link, sizeof(link), "%s/link", dir);
	start_plain();
	put("pid", target, 0, 0644);
	assert_int_equal(symlink("pid", link), 0);
	memcpy(path, link, sizeof(path));
	assert_int_equal(lchown(link, OTHER, OTHER), 0);
	refuses(-EPERM, "is in the hands of uid 64104");
	end_target();
	start(OTHER, OTHER, OTHER);
	put("pid", target, 0, 0644);
	memcpy(path, link, sizeof(path));
	sends();
}

static void signal__to_nothing_but_a_process__is_refused(void **state)
{
	char name[32] = "";
	FILE *f = fopen("/proc/2/comm", "re");

	(void)state;
	put("pid", 1, getuid(), 0644);
	refuses(-EINVAL, "is not one line with a number over 1");
	put("pid", getpid(), getuid(), 0644);
	refuses(-EPERM, "names this process itself");
	put("pid", 2147483646, getuid(), 0644);
	refuses(-ESRCH, "No such process");
	if (f && fgets(name, sizeof(name), f) && strcmp(name, "kthreadd\n") == 0) {
		put("pid", 2, getuid(), 0644);
		refuses(-EPERM, "names a kernel thread");
	}
	if (f)
		fclose(f);
}

static void *wait_for_it(void *arg)
{
	int *ends = arg;
	pid_t tid = gettid();
	char byte;

	if (write(ends[1], &tid, sizeof(tid)) != sizeof(tid) || read(ends[2], &byte, 1) < 0)
		abort();
	return NULL;
}

/* A child with a second thread; the number of that one. */
static pid_t start_threads(void)
{
	int ends[4];
	pid_t tid = 0;

	assert_int_equal(pipe2(ends, O_CLOEXEC) || pipe2(ends + 2, O_CLOEXEC), 0);
	target = fork();
	if (target == 0) {
		pthread_t thread;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (pthread_create(&thread, NULL, wait_for_it, ends) == 0)
			pthread_join(thread, NULL);
		_exit(0);
	}
	assert_int_equal(read(ends[0], &tid, sizeof(tid)), sizeof(tid));
	for (int i = 0; i < 4; i++)
		if (i != 3)
			close(ends[i]);
	held_end = ends[3];
	return tid;
}

static void signal__to_a_thread__is_refused(void **state)
{
	char expected[PATH_MAX + FILE_WHY];
	pid_t tid = start_threads();

	(void)state;
	put("pid", tid, getuid(), 0644);
	assert_true(pidfile_signal(&sys, path, SIGUSR1, why) < 0);
	close(held_end);
	snprintf(expected, sizeof(expected), "the pidfile %s names thread %d, which is no process",
		path, (int)tid);
	assert_string_equal(why, expected);
}

/* A kernel without pidfd_open(), or a filter that does not let it through: nobody can hold the
 * process while it is looked at, so only a number that none but trusted users wrote is good. */
static void signal__without_pidfds__needs_a_file_of_trusted_users(void **state)
{
	static const int errors[] = {ENOSYS, EPERM};
	char expected[PATH_MAX + FILE_WHY];

	(void)state;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		fault_syscall.number = SYS_pidfd_open;
		fault_syscall.error = errors[i];
		start_plain();
		put("pid", target, getuid(), 0644);
		sends();
		put("pid", 2147483646, getuid(), 0644);
		assert_int_equal(pidfile_signal(&sys, path, SIGUSR1, why), -ESRCH);
		snprintf(expected, sizeof(expected),
			"cannot send signal %d to process 2147483646 of %s: No such process",
			SIGUSR1, path);
		assert_string_equal(why, expected);
	}
	if (geteuid() == 0) {
		start(OTHER, OTHER, OTHER);
		put("pid", target, OTHER, 0644);
		assert_int_equal(pidfile_signal(&sys, path, SIGUSR1, why), -ENOSYS);
		snprintf(expected, sizeof(expected),
			"cannot send signal %d to process %d of %s: Function not implemented",
			SIGUSR1, (int)target, path);
		assert_string_equal(why, expected);
		assert_int_equal(waitpid(target, NULL, WNOHANG), 0);
	}
	fault_syscall.error = 0;
}

/* ---- /proc ---- */

static const char *missing;

/* As where hidepid= hides other users' processes, or /proc is not there. */
static int hide(int at, const char *name, int flags, mode_t mode)
{
	if (strncmp(name, "/proc/", 6) == 0 && strstr(name, missing)) {
		errno = ENOENT;
		return -1;
	}
	return sys_real.openat(at, name, flags, mode);
}

static void signal__to_a_process_that_cannot_be_seen__takes_a_good_file(void **state)
{
	static const char *const files[] = {"fdinfo", "/status", "/stat"};

	(void)state;
	sys.openat = hide;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		missing = files[i];
		start_plain();
		put("pid", target, getuid(), 0644);
		sends();
	}
	need_root();
	start(OTHER, OTHER, OTHER);
	put("pid", target, OTHER, 0644);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		missing = files[i];
		refuses(-ENOENT, "cannot see whose process");
	}
}

static const char *shown; /* of the descriptor */
static int shown_fd;

static int note_descriptor(int at, const char *name, int flags, mode_t mode)
{
	int fd = sys_real.openat(at, name, flags, mode);

	if (strstr(name, "fdinfo"))
		shown_fd = fd;
	return fd;
}

static const char *unreadable;
static int unreadable_fd;

static int note_unreadable(int at, const char *name, int flags, mode_t mode)
{
	int fd = sys_real.openat(at, name, flags, mode);

	if (strncmp(name, "/proc/", 6) == 0 && strstr(name, unreadable))
		unreadable_fd = fd;
	return fd;
}

static ssize_t read_unreadable(int fd, void *data, size_t len)
{
	assert_true(fd != unreadable_fd || len < 1024);
	if (fd != unreadable_fd)
		return sys_real.read(fd, data, len);
	errno = EIO;
	return -1;
}

static void signal__to_a_process_of_which_nothing_can_be_read__is_refused(void **state)
{
	static const char *const files[] = {"fdinfo", "/status", "/stat"};

	(void)state;
	need_root();
	sys.openat = note_unreadable;
	sys.read = read_unreadable;
	start(OTHER, OTHER, OTHER);
	put("pid", target, OTHER, 0644);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		unreadable = files[i];
		unreadable_fd = -1;
		refuses(-EIO, "cannot see whose process");
		assert_non_null(strstr(why, ": Input/output error"));
	}
}

static ssize_t read_shown(int fd, void *data, size_t len)
{
	if (fd != shown_fd)
		return sys_real.read(fd, data, len);
	assert_true(strlen(shown) < len);
	memset(data, '7', len); /* what was there before */
	memcpy(data, shown, strlen(shown));
	shown_fd = -1;
	return (ssize_t)strlen(shown);
}

/* Ended by now, or of another PID namespace, or a kernel without that line: nothing says whose. */
static void signal__to_a_process_without_a_number_here__takes_a_good_file(void **state)
{
	static const char *const texts[] = {"pos:\t0\nPid:\t-1\n", "pos:\t0\nPid:\t0", "pos:\t0\n"};

	(void)state;
	need_root();
	sys.openat = note_descriptor;
	sys.read = read_shown;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		shown = texts[i];
		start(OTHER, OTHER, OTHER);
		put("pid", target, OTHER, 0644);
		refuses(-ESRCH, "cannot see whose process");
		put("pid", target, 0, 0644);
		sends();
	}
}

/* The first process of a container, from which it is seen. */
static void signal__to_a_process_that_is_the_first_here__asks_whose_it_is(void **state)
{
	(void)state;
	need_root();
	sys.openat = note_descriptor;
	sys.read = read_shown;
	shown = "pos:\t0\nPid:\t1\n";
	start(OTHER, OTHER, OTHER);
	put("pid", target, OTHER, 0644);
	refuses(-EPERM, "which has the rights of root");
}

/* ---- the text of the file ---- */

static void file__is_one_line_with_a_number_over_1(void **state)
{
	static const struct {
		const char *text;
		pid_t pid; /* 0: it is none */
	} rows[] = {{"2", 2}, {"2\n", 2}, {" 42", 42}, {"  42 \n", 42}, {"42\r\n", 42},
		{"42 \r", 42}, {"2147483647", INT_MAX}, {"2147483648", 0}, {"1", 0}, {"0", 0},
		{"", 0}, {"\n", 0}, {" ", 0}, {"-2", 0}, {"+2", 0}, {"x", 0}, {"2x", 0},
		{"2\n\n", 0}, {"2\n3", 0}, {"2 3", 0}, {"\t2", 0}, {"99999999999999999999999", 0},
		{"2                               ", 2}, {"2                                ", 0}};
	const struct trusted_who who = trusted_signaller();

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uid_t holder = 7;
		pid_t pid;

		scratch_write(dir, "pid", rows[i].text, strlen(rows[i].text));
		pid = pidfile_read(&sys, &who, path, &holder, why);
		if (pid != (rows[i].pid ? rows[i].pid : -EINVAL))
			fail_msg("'%s' is %d", rows[i].text, (int)pid);
		if (rows[i].pid)
			continue;
		assert_non_null(strstr(why, "the pidfile "));
		assert_non_null(strstr(why, "/pid is not one line with a number over 1"));
	}
}

static void file__that_cannot_be_read__says_why(void **state)
{
	const struct trusted_who who = trusted_signaller();
	uid_t holder;

	(void)state;
	assert_int_equal(pidfile_read(&sys, &who, path, &holder, why), -ENOENT);
	assert_non_null(strstr(why, "cannot read the pidfile "));
	assert_non_null(strstr(why, "/pid: "));
	assert_int_equal(mkdir(path, 0755), 0);
	assert_true(pidfile_read(&sys, &who, path, &holder, why) < 0);
	assert_non_null(strstr(why, "cannot read the pidfile "));
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(mkfifo(path, 0644), 0);
	assert_int_equal(pidfile_read(&sys, &who, path, &holder, why), -EINVAL);
	assert_non_null(strstr(why, "/pid: it is not a regular file"));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(signal__by_a_file_of_this_user__arrives),
		CASE(signal__by_a_file_of_the_process_s_user__arrives),
		CASE(signal__to_a_process_that_has_other_rights__is_refused),
		CASE(signal__by_a_file_that_several_may_change__is_refused),
		CASE(signal__through_a_link_of_another_user__reaches_that_user_s_processes_alone),
		CASE(signal__to_nothing_but_a_process__is_refused),
		CASE(signal__to_a_thread__is_refused),
		CASE(signal__without_pidfds__needs_a_file_of_trusted_users),
		CASE(signal__to_a_process_that_cannot_be_seen__takes_a_good_file),
		CASE(signal__to_a_process_of_which_nothing_can_be_read__is_refused),
		CASE(signal__to_a_process_without_a_number_here__takes_a_good_file),
		CASE(signal__to_a_process_that_is_the_first_here__asks_whose_it_is),
		CASE(file__is_one_line_with_a_number_over_1),
		CASE(file__that_cannot_be_read__says_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

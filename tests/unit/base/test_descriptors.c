/* Sums held against limits, which each case sets in a child of its own. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static bool may_not_raise;

/* Not instead of the C library's: a sanitizer calls that before anything else. */
static int played_setrlimit(int resource, const struct rlimit *limit)
{
	if (!may_not_raise)
		return setrlimit(resource, limit);
	errno = EPERM;
	return -1;
}

#define setrlimit played_setrlimit
#include "base/descriptors.c"
#undef setrlimit

#define LIMIT 64

/* What is asked of a child with these limits, where `open` descriptors are in use below the limit.
 */
struct world {
	rlim_t soft, hard;
	int open;
	struct descriptors_need needs[3];
	/* what is to come of it */
	int r;
	rlim_t after; /* the soft limit */
	const char *why;
};

/* 0 when it is as it should be, else what is not. */
static int run(const void *world)
{
	const struct world *w = world;
	struct rlimit l = {w->soft, w->hard};
	char why[DESCRIPTORS_WHY] = "";

	for (int fd = 0; fd < LIMIT; fd++)
		close(fd);
	for (int i = 0; i < w->open; i++)
		if (open("/dev/null", O_RDONLY) != i)
			return 1;
	if (setrlimit(RLIMIT_NOFILE, &l))
		return 2;
	if (descriptors_check(w->needs, 3, why) != w->r)
		return 3;
	if (getrlimit(RLIMIT_NOFILE, &l) || l.rlim_cur != w->after)
		return 4;
	return strcmp(why, w->why) == 0 ? 0 : 5;
}

static void check_in_child(int (*in_child)(const void *arg), const void *arg)
{
	pid_t pid = fork();
	int how;

	if (pid == 0)
		_exit(in_child(arg));
	assert_int_equal(waitpid(pid, &how, 0), pid);
	assert_true(WIFEXITED(how));
	assert_int_equal(WEXITSTATUS(how), 0);
}

static void check(const struct world *w)
{
	check_in_child(run, w);
}

static void check__with_enough__leaves_the_limit(void **state)
{
	(void)state;
	check(&(struct world){16, 32, 3, {{"a", 5}, {"b", 0}, {"c", 8}}, 0, 16, ""});
	check(&(struct world){16, 16, 0, {{"a", 16}}, 0, 16, ""});
	check(&(struct world){16, 16, 16, {{"a", 0}}, 0, 16, ""});
}

static void check__with_too_few__raises_the_soft_limit(void **state)
{
	(void)state;
	check(&(struct world){16, 32, 3, {{"a", 5}, {"b", 1}, {"c", 8}}, 0, 32, ""});
}

static void check__beyond_the_hard_limit__says_what_is_needed(void **state)
{
	(void)state;
	check(&(struct world){8, 16, 3, {{"a", 5}, {"b", 0}, {"c", 9}}, -EMFILE, 16,
		"14 file descriptors are needed (a 5, c 9), and the limit of 16 leaves 13: raise "
		"it to 17 or more (LimitNOFILE= in the unit, ulimit -n in a shell)"});
}

static void check__of_what_is_open_above_the_limit__counts_none(void **state)
{
	(void)state;
	check(&(struct world){4, 4, 8, {{"a", 1}}, -EMFILE, 4,
		"1 file descriptors are needed (a 1), and the limit of 4 leaves 0: raise it to 5 "
		"or more (LimitNOFILE= in the unit, ulimit -n in a shell)"});
}

static int run_where_it_may_not_raise(const void *world)
{
	const struct world *w = world;
	struct rlimit l = {w->soft, w->hard};
	char why[DESCRIPTORS_WHY] = "";

	if (setrlimit(RLIMIT_NOFILE, &l))
		return 1;
	may_not_raise = true;
	if (descriptors_check(w->needs, 3, why) != w->r)
		return 2;
	return strcmp(why, w->why) == 0 ? 0 : 3;
}

/* A seccomp filter may forbid it. */
static void check__where_the_limit_cannot_be_raised__counts_with_the_old_one(void **state)
{
	(void)state;
	check_in_child(run_where_it_may_not_raise,
		&(struct world){2, 32, 0, {{"a", 8}}, -EMFILE, 2,
			"8 file descriptors are needed (a 8), and the limit of 2 leaves 0: raise "
			"it to 10 or more (LimitNOFILE= in the unit, ulimit -n in a shell)"});
}

struct attempt {
	size_t left; /* numbers that are free */
	int r;
};

/* 0 when a try says `r` and leaves them free, else what is not so. */
static int attempt(const void *arg)
{
	const struct attempt *a = arg;
	struct rlimit l = {a->left, a->left};

	for (int fd = 0; fd < LIMIT; fd++)
		close(fd);
	if (setrlimit(RLIMIT_NOFILE, &l))
		return 1;
	if (descriptors_try() != a->r)
		return 2;
	return fcntl(0, F_GETFD) < 0 && fcntl(DESCRIPTORS_TRIED - 1, F_GETFD) < 0 ? 0 : 3;
}

static void try__with_too_few__says_so(void **state)
{
	static const struct attempt table[] = {{0, -EMFILE}, {1, -EMFILE},
		{DESCRIPTORS_TRIED - 1, -EMFILE}, {DESCRIPTORS_TRIED, 0}, {LIMIT, 0}};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		check_in_child(attempt, &table[i]);
}

/* 0 when each is taken and can still not be used, else what is not so. */
static int keep_closed(const void *mask)
{
	int closed = *(const int *)mask, status = 0;
	char byte = 0;
	pid_t child;

	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (closed & (1 << fd))
			close(fd);
	descriptors_keep_standard();
	if (open("/dev/null", O_RDONLY) <= STDERR_FILENO)
		return 1;
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if ((closed & (1 << fd)) && (write(fd, "x", 1) >= 0 || errno != EBADF ||
						    read(fd, &byte, 1) >= 0 || errno != EBADF))
			return 2;
	child = fork();
	if (child == 0) {
		execl("/bin/sh", "sh", "-c", "test ! -e /proc/self/fd/$0", closed & 4 ? "2" : "9",
			(char *)NULL);
		_exit(9);
	}
	return waitpid(child, &status, 0) == child && status == 0 ? 0 : 3;
}

static void keep_standard__takes_the_numbers_that_are_closed(void **state)
{
	(void)state;
	for (int closed = 0; closed < 8; closed++)
		check_in_child(keep_closed, &closed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check__with_enough__leaves_the_limit),
		cmocka_unit_test(check__with_too_few__raises_the_soft_limit),
		cmocka_unit_test(check__beyond_the_hard_limit__says_what_is_needed),
		cmocka_unit_test(check__of_what_is_open_above_the_limit__counts_none),
		cmocka_unit_test(check__where_the_limit_cannot_be_raised__counts_with_the_old_one),
		cmocka_unit_test(try__with_too_few__says_so),
		cmocka_unit_test(keep_standard__takes_the_numbers_that_are_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

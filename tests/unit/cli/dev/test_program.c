/* A program beside this one: what it is started with, the lines that it writes, how it ends. The
 * program is this one, started again with a word that says what it is to do. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
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

#include "cli/dev/program.h"

#define LONGER (PROGRAM_LINE + 100)

static struct loop *loop;
static struct program program;
static char self[PATH_MAX], printed[4 * PROGRAM_LINE];
static sigset_t before;

static bool no_groups;

int setpgid(pid_t pid, pid_t group)
{
	errno = EPERM;
	return no_groups ? -1 : (int)syscall(SYS_setpgid, pid, group);
}

/* ---- the program ---- */

/* What a program can find in another way than a shell starts it. */
static int tell_circumstances(void)
{
	struct sigaction act;
	sigset_t mask;
	char byte;
	int at_death = 0;

	sigprocmask(SIG_SETMASK, NULL, &mask);
	for (int n = 1; n < SIGRTMIN; n++) {
		if (sigismember(&mask, n))
			printf("blocked: %d\n", n);
		if (sigaction(n, NULL, &act) == 0 && act.sa_handler == SIG_IGN)
			printf("ignored: %d\n", n);
	}
	prctl(PR_GET_PDEATHSIG, &at_death);
	printf("when its parent dies: %d\n", at_death);
	printf("group: %s\n", getpgrp() == getpid() ? "its own" : "another's");
	printf("input: %zd\n", read(STDIN_FILENO, &byte, 1));
	printf("systemd: %s %s\n", getenv("NOTIFY_SOCKET"), getenv("WATCHDOG_USEC"));
	printf("theirs: %s\n", getenv("PULLET_THEIRS"));
	for (int fd = STDERR_FILENO + 1; fd < 64; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			printf("descriptor: %d\n", fd);
	return 0;
}

static int write_lines(void)
{
	for (int i = 0; i < LONGER; i++)
		putchar('x');
	printf("\n\nshort\nthe last, without an end");
	fflush(stdout);
	fprintf(stderr, "an error\n");
	return 7;
}

/* Says that it runs, and has a child that has its output; neither ends when asked. */
static _Noreturn void hold_on(void)
{
	signal(SIGTERM, SIG_IGN);
	if (fork())
		printf("runs\n");
	fflush(stdout);
	for (;;)
		pause();
}

static int run_until_asked(void)
{
	printf("runs\n");
	fflush(stdout);
	pause();
	return 0;
}

static int play_program(const char *word)
{
	alarm(30);
	if (strcmp(word, "tell") == 0)
		return tell_circumstances();
	if (strcmp(word, "write") == 0)
		return write_lines();
	if (strcmp(word, "hold") == 0)
		hold_on();
	return run_until_asked();
}

/* ---- the test ---- */

static void note_line(const char *of, const char *line)
{
	size_t len = strlen(printed);

	snprintf(printed + len, sizeof(printed) - len, "%s%s\n", of, line);
	if (strcmp(line, "runs") == 0)
		loop_stop(loop);
}

static void take_line(void *arg, char *line)
{
	assert_ptr_equal(arg, &program);
	note_line("", line);
}

static void take_error(void *arg, char *line)
{
	assert_ptr_equal(arg, &program);
	note_line("error: ", line);
}

static void child_ended(void *arg, int number)
{
	(void)arg, (void)number;
	if (program_reap(&program))
		loop_stop(loop);
}

static int set_up(void **state)
{
	(void)state;
	alarm(30);
	printed[0] = '\0';
	for (int n = 1; n < SIGRTMIN; n++)
		signal(n, SIG_DFL); /* a background job's are ignored */
	sigprocmask(SIG_SETMASK, NULL, &before);
	loop = loop_new(&sys_real);
	assert_non_null(loop);
	assert_int_equal(loop_on_signal(loop, SIGCHLD, child_ended, NULL), 0);
	assert_int_equal(loop_on_signal(loop, SIGTERM, child_ended, NULL), 0);
	program_init(&program, take_line, take_error, &program);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	program_end(&program, 0);
	loop_free(loop);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return 0;
}

/* Starts it and runs the loop until it has ended, or says that it runs. */
static void start(char *path, const char *word, const sigset_t *mask)
{
	char what[16];
	char *argv[] = {path, what, NULL};

	snprintf(what, sizeof(what), "%s", word);
	assert_int_equal(program_start(&program, loop, argv, mask), 0);
	assert_true(program.pid > 0);
	loop_run(loop);
}

static void program__is_started_as_by_a_shell(void **state)
{
	static const int ignored[] = {SIGPIPE, SIGHUP, SIGINT};
	char expected[512];
	sigset_t mask;

	(void)state;
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_IGN);
	setenv("NOTIFY_SOCKET", "/run/systemd/notify", 1);
	setenv("WATCHDOG_USEC", "1000000", 1);
	setenv("PULLET_THEIRS", "kept", 1);
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR2);
	start(self, "tell", &mask);
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_DFL);
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("PULLET_THEIRS");
	snprintf(expected, sizeof(expected),
		"blocked: %d\nwhen its parent dies: %d\ngroup: its own\ninput: 0\n"
		"systemd: (null) (null)\ntheirs: kept\n",
		SIGUSR2, SIGTERM);
	assert_string_equal(printed, expected);
}

static void lines__come_whole_but_long_ones_are_cut(void **state)
{
	char *expected = calloc(1, PROGRAM_LINE + 128), *error;

	(void)state;
	assert_non_null(expected);
	start(self, "write", &before);
	assert_true(program.ended);
	assert_int_equal(program.pid, 0);
	assert_true(WIFEXITED(program.status));
	assert_int_equal(WEXITSTATUS(program.status), 7);
	memset(expected, 'x', PROGRAM_LINE - 1);
	snprintf(expected + PROGRAM_LINE - 1, 128, "\n\nshort\nthe last, without an end\n");
	error = strstr(printed, "error: an error\n");
	assert_non_null(error); /* among the lines of the other stream */
	memmove(error, error + 16, strlen(error + 16) + 1);
	assert_string_equal(printed, expected);
	free(expected);
}

static void program__that_cannot_be_started__says_why(void **state)
{
	char none[] = "/nowhere/none";

	(void)state;
	start(none, "", &before);
	assert_string_equal(
		printed, "error: cannot start /nowhere/none: No such file or directory\n");
	assert_int_equal(WEXITSTATUS(program.status), 127);
}

/* Not in the group of this process either: a key of the terminal would end it first. */
static void program__whose_surroundings_cannot_be_made__is_not_started(void **state)
{
	char expected[PATH_MAX + 64];

	(void)state;
	no_groups = true;
	start(self, "tell", &before);
	no_groups = false;
	snprintf(expected, sizeof(expected), "error: cannot start %s: Operation not permitted\n",
		self);
	assert_string_equal(printed, expected);
	assert_int_equal(WEXITSTATUS(program.status), 127);
}

static void end__asks_it_and_waits(void **state)
{
	(void)state;
	start(self, "run", &before);
	assert_string_equal(printed, "runs\n");
	assert_false(program.ended);
	program_end(&program, 20000);
	assert_true(program.ended);
	assert_true(WIFSIGNALED(program.status));
	assert_int_equal(WTERMSIG(program.status), SIGTERM);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
}

static void end__of_what_does_not_end__kills_it_with_its_children(void **state)
{
	uint64_t begun_ms = loop_now_ms(loop), took_ms;
	int ends[2];
	char byte;

	(void)state;
	assert_int_equal(pipe(ends), 0); /* the child has it, too */
	start(self, "hold", &before);
	close(ends[1]);
	program_end(&program, 100);
	took_ms = sys_real.now_ms() - begun_ms;
	assert_true(took_ms >= 100);
	assert_int_equal(WTERMSIG(program.status), SIGKILL);
	assert_int_equal(read(ends[0], &byte, 1), 0); /* nobody has it any more */
	close(ends[0]);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CASE(program__is_started_as_by_a_shell),
		CASE(lines__come_whole_but_long_ones_are_cut),
		CASE(program__that_cannot_be_started__says_why),
		CASE(program__whose_surroundings_cannot_be_made__is_not_started),
		CASE(end__asks_it_and_waits),
		CASE(end__of_what_does_not_end__kills_it_with_its_children),
	};

	if (argc > 1)
		return play_program(argv[1]);
	for (int fd = STDERR_FILENO + 1; fd < 64; fd++)
		close(fd); /* what make gave it */
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) <= 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

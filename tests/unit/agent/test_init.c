/*
 * The first process of a container: its child goes on as the agent; it hands on signals, reaps what
 * loses its parent, and ends with the child's code.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "init.h"
#include "base/log.h"
#include "tests/unit/fixture/captured.h"

static int ready[2]; /* the agent's word that it runs */
static int is_first;

pid_t getpid(void)
{
	return is_first ? 1 : (pid_t)syscall(SYS_getpid);
}

static int set_up(void **state)
{
	(void)state;
	alarm(20);
	assert_int_equal(pipe(ready), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	close(ready[0]);
	close(ready[1]);
	return 0;
}

/* Runs an init whose agent is this; both in children. */
static pid_t start_init(int (*agent)(void))
{
	pid_t pid = fork();
	int code;

	assert_true(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);              /* of the test */
	prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L); /* as process 1 is by itself */
	is_first = 1;
	code = init_run();
	if (code >= 0)
		_exit(code);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	_exit(agent());
}

static int end_of(pid_t init)
{
	int status;

	assert_int_equal(waitpid(init, &status, 0), init);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int agent_that_ends(void)
{
	sigset_t blocked;

	sigprocmask(SIG_SETMASK, NULL, &blocked);
	return sigismember(&blocked, SIGTERM) ? 1 : 7; /* init's mask is not the agent's */
}

static int agent_that_ends_well(void)
{
	return 0;
}

static void init__ends_with_the_code_of_its_child(void **state)
{
	(void)state;
	assert_int_equal(end_of(start_init(agent_that_ends_well)), 0);
	assert_int_equal(end_of(start_init(agent_that_ends)), 7);
}

static int agent_that_waits(void)
{
	for (int i = 1; i < 32; i++)
		signal(i, SIG_DFL); /* whatever the shell ignores, or nohup */
	if (write(ready[1], "r", 1) == 1)
		pause();
	return 1;
}

static void signal__is_handed_on(void **state)
{
	static const int signals[] = {SIGHUP, SIGINT, SIGUSR1, SIGALRM, SIGTERM};
	struct captured log = captured_begin(STDERR_FILENO);
	char byte, said[2048];

	(void)state;
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		pid_t init = start_init(agent_that_waits);

		assert_int_equal(read(ready[0], &byte, 1), 1);
		kill(init, signals[i]);
		/* the child died of it, and init did not */
		assert_int_equal(end_of(init), 128 + signals[i]);
	}
	captured_read(&log, said, sizeof(said));
	captured_end(&log);
	assert_non_null(strstr(said, "started again signal=Hangup\n"));
	assert_non_null(strstr(said, "started again signal=Terminated\n"));
	assert_null(strstr(said, "memory"));
}

static int agent_that_is_killed(void)
{
	return kill((pid_t)syscall(SYS_getpid), SIGKILL);
}

static void agent__that_is_killed__is_said(void **state)
{
	struct captured log = captured_begin(STDERR_FILENO);
	char said[512];

	(void)state;
	assert_int_equal(end_of(start_init(agent_that_is_killed)), 128 + SIGKILL);
	captured_read(&log, said, sizeof(said));
	assert_int_equal(end_of(start_init(agent_that_ends)), 7);
	captured_end(&log);
	assert_string_equal(said,
		"<3>the agent was killed: nothing is pulled until it is started again "
		"signal=Killed why=\"memory was short, where nobody else killed it: raise its "
		"limit\"\n");
}

static int agent_that_is_killed_with_a_log_of_json(void)
{
	log_setup(LOG_LEVEL_INFO, LOG_FORMAT_JSON);
	return agent_that_is_killed();
}

static void agent__that_is_killed__is_said_in_the_format_of_its_log(void **state)
{
	struct captured log = captured_begin(STDERR_FILENO);
	char said[512];

	(void)state;
	assert_int_equal(
		end_of(start_init(agent_that_is_killed_with_a_log_of_json)), 128 + SIGKILL);
	captured_read(&log, said, sizeof(said));
	captured_end(&log);
	assert_int_equal(said[0], '{');
	assert_non_null(strstr(said, "\"level\":\"err\",\"message\":\"the agent was killed: "));
	assert_non_null(strstr(said, "\"signal\":\"Killed\""));
}

/* As an agent that has made an orphan, which has been reaped. 0, or an exit code. */
static int lose_orphan(void)
{
	pid_t orphan = 0, child;
	int tell[2];

	if (pipe(tell))
		return 1;
	child = fork();
	if (child == 0) {
		orphan = fork();
		if (orphan > 0 && write(tell[1], &orphan, sizeof(orphan)) != sizeof(orphan))
			_exit(1);
		_exit(0); /* the orphan, too */
	}
	if (child < 0 || read(tell[0], &orphan, sizeof(orphan)) != sizeof(orphan) || orphan <= 0 ||
		waitpid(child, NULL, 0) != child)
		return 2;
	while (kill(orphan, 0) == 0) /* as long as nobody has reaped it */
		poll(NULL, 0, 2);
	return 0;
}

static int agent_with_orphan(void)
{
	int code = lose_orphan();

	return code ? code : 5;
}

static void orphan__is_reaped_and_does_not_end_init(void **state)
{
	(void)state;
	assert_int_equal(end_of(start_init(agent_with_orphan)), 5);
}

static int agent_that_waits_after_an_orphan(void)
{
	int code = lose_orphan();

	return code ? code : agent_that_waits();
}

static void signal__after_an_orphan__is_handed_on(void **state)
{
	pid_t init = start_init(agent_that_waits_after_an_orphan);
	char byte;

	(void)state;
	assert_int_equal(read(ready[0], &byte, 1), 1);
	kill(init, SIGTERM);
	assert_int_equal(end_of(init), 128 + SIGTERM);
}

static bool no_child;

pid_t fork(void)
{
	pid_t (*real)(void);

	*(void **)&real = dlsym(RTLD_NEXT, "fork");
	errno = EAGAIN;
	return no_child ? -1 : real();
}

/* It is the agent itself then, and hears its signals. */
static void init__that_can_have_no_child__goes_on_as_the_agent(void **state)
{
	sigset_t blocked;

	(void)state;
	is_first = 1;
	no_child = true;
	assert_int_equal(init_run(), -1);
	no_child = false;
	is_first = 0;
	sigprocmask(SIG_SETMASK, NULL, &blocked);
	assert_false(sigismember(&blocked, SIGTERM));
}

static void other_process__is_no_init(void **state)
{
	(void)state;
	assert_int_equal(init_run(), -1);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child was made */
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(init__ends_with_the_code_of_its_child),
		CASE(signal__is_handed_on),
		CASE(agent__that_is_killed__is_said),
		CASE(agent__that_is_killed__is_said_in_the_format_of_its_log),
		CASE(init__that_can_have_no_child__goes_on_as_the_agent),
		CASE(other_process__is_no_init),
		CASE(orphan__is_reaped_and_does_not_end_init),
		CASE(signal__after_an_orphan__is_handed_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

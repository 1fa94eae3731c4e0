/* A program in front of which this process stands. Surprising: it stays in this process's group, so
 * that a terminal's keys reach it as if it had been started without us. */
#include "cli/values/child.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/common/cli.h"
#include "process/keeper.h"

#define SWEEPS 200
#define SWEEP_MS 10

int child_init(struct child *c, const char *command, char *const *argv)
{
	static const int not_ours[] = {SIGPIPE, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS,
		SIGABRT, SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT};
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	sigset_t ours;

	*c = (struct child){.command = command, .argv = argv, .signals = -1};
	sigfillset(&ours);
	for (size_t i = 0; i < sizeof(not_ours) / sizeof(not_ours[0]); i++)
		sigdelset(&ours, not_ours[i]);
	signal(SIGCHLD, SIG_DFL); /* if ignored, the kernel would reap */
	sigaction(SIGPIPE, &ignore, &c->pipe);
	if (sigprocmask(SIG_SETMASK, &ours, &c->mask) ||
		prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L))
		return -errno;
	c->signals = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
	return c->signals < 0 ? -errno : 0;
}

/* In the child. Returns only on failure, with errno. */
static void execute(const struct child *c, pid_t parent, char *const *env)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL))
		return;
	if (getppid() != parent)
		_exit(128 + SIGKILL); /* it ended before the line above */
	sigaction(SIGPIPE, &c->pipe, NULL);
	sigprocmask(SIG_SETMASK, &c->mask, NULL);
	execvpe(c->argv[0], c->argv, env);
}

int child_start(struct child *c, char *const *env)
{
	pid_t parent = getpid(), pid = fork();
	int error;

	if (pid < 0)
		return -errno;
	if (pid == 0) {
		execute(c, parent, env);
		error = errno;
		_exit(cli_error(error == ENOENT ? 127 : 126, c->command, "cannot start %s: %s",
			c->argv[0], strerror(error)));
	}
	c->pid = pid;
	return 0;
}

int child_reap(struct child *c)
{
	int status, code = -1;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != c->pid)
			continue; /* an orphan */
		code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		c->pid = 0;
	}
	return code;
}

/* ---- what it left ---- */

unsigned child_end_orphans(void)
{
	return keeper_signal_children(SIGTERM);
}

bool child_has_orphans(void)
{
	siginfo_t info;

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static bool keeps_nothing(pid_t pid)
{
	(void)pid;
	return false;
}

void child_kill_orphans(void)
{
	const struct timespec wait = {.tv_nsec = SWEEP_MS * 1000000};
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGCHLD);
	for (int i = 0; i < SWEEPS && keeper_sweep(keeps_nothing) > 0; i++)
		sigtimedwait(&ends, NULL, &wait);
}

/*
 * Process 1. Surprising: it has no signal handlers, it waits with all signals blocked; so those
 * that the kernel would not deliver to process 1 for want of a handler still reach the agent.
 */
#include "init.h"

#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* Reaps all ended children. Returns the exit code of `child` if it was one of them, else -1. */
static int reap_orphans(pid_t child)
{
	int status, code = -1;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == child)
			code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	return code;
}

int init_run(void)
{
	sigset_t all, before;
	int code = -1, signal;
	pid_t child;

	if (getpid() != 1)
		return -1;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	child = fork();
	if (child <= 0) {
		sigprocmask(SIG_SETMASK, &before, NULL);
		return -1;
	}
	while (code < 0) {
		signal = sigwaitinfo(&all, NULL);
		if (signal == SIGCHLD)
			code = reap_orphans(child);
		else if (signal > 0)
			kill(child, signal);
	}
	return code;
}

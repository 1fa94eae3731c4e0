/*
 * Process 1. Surprising: it has no signal handlers, it waits with all signals blocked; so those
 * that the kernel would not deliver to process 1 for want of a handler still reach the agent.
 */
#include "init.h"

#include <signal.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"

/* Its own log ends without a word. */
static int note_kill(int signal)
{
	log_err("the agent was killed: nothing is pulled until it is started again", "signal",
		strsignal(signal), "why",
		signal == SIGKILL ? "memory was short, where nobody else killed it: raise its limit"
				  : NULL);
	return 128 + signal;
}

/* Reaps all ended children. Returns the exit code of `child` if it was one of them, else -1. */
static int reap_orphans(pid_t child)
{
	int status, code = -1;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == child)
			code = WIFEXITED(status) ? WEXITSTATUS(status)
						 : note_kill(WTERMSIG(status));
	return code;
}

int init_run(void)
{
	sigset_t all, before;
	int code = -1, signal;
	pid_t child;

	if (getpid() != 1)
		return -1;
	log_share_format(); /* the agent reads the configuration, and is killed */
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

/*
 * The one program of a process that stands in front of it, also as process 1: started, signalled,
 * reaped, and nothing of it left behind.
 *
 * What the program gets: the caller's descriptors 0 to 2, directory, process group and terminal;
 * signals as they were before child_init(). It gets KILL when this process ends, for whatever
 * reason; what it leaves running can be ended. The caller is a subreaper from
 * child_init() on, and must have no other children.
 *
 * Threads: the main one alone; others may exist, with all signals blocked. Ownership: argv is
 * borrowed. Errors: -errno. Bounds: waits at most 2 s for what is killed at the end.
 */
#ifndef PULLET_CLI_CHILD_H
#define PULLET_CLI_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct child {
	const char *command; /* of the sentence when argv[0] cannot be started */
	char *const *argv;
	pid_t pid;   /* 0 = it does not run */
	int signals; /* readable when a signal has come: struct signalfd_siginfo */
	/* private: as they were */
	sigset_t mask;
	struct sigaction pipe;
};

/* Blocks the signals that child->signals reads from now on: all but those of faults and of a
 * terminal's stop, and SIGPIPE, which is ignored. */
int child_init(struct child *c, const char *command, char *const *argv);
/* Starts it. One that cannot be executed says so on standard error and exits with 127 (not there)
 * or 126. */
int child_start(struct child *c, char *const *env);
/* Reaps all children that have ended. The program's exit code, 128 and the number if a signal ended
 * it; -1: it runs. */
int child_reap(struct child *c);
/* Once the program has ended: sends TERM to what it left running. Returns how many processes. */
unsigned child_end_orphans(void);
/* True while there are any; reap first. */
bool child_has_orphans(void);
/* Kills and reaps them. */
void child_kill_orphans(void);

#endif

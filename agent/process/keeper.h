/*
 * The keeper: a process between the agent and a user's program, so that no descendant of the
 * program outlives it, its time limit or the agent.
 *
 * All descendants stay below the keeper: a process whose parent ends becomes the keeper's child
 * (PR_SET_CHILD_SUBREAPER), whatever session, group or name it gave itself. When the program has
 * ended, or the lifeline is closed, by the agent or by its death, all of them get KILL, level by
 * level, until the kernel reports no child. A byte in the lifeline
 * sends TERM to the program's group and to orphans.
 *
 * Threads: keeper_start() forks, and both children do nothing but system calls. Ownership: the plan
 * is borrowed for the call. Bounds: waits KEEPER_WAIT_MS after the
 * program's own end for processes that hang in the kernel, then leaves them to the agent, which is
 * its next subreaper: keeper_sweep(). Needs Linux 3.4, and /proc with the lists of children
 * (CONFIG_PROC_CHILDREN, which distributions have): without them only the program's group is
 * killed. Processes started by another service (at, cron, systemd-run) are no descendants.
 */
#ifndef PULLET_KEEPER_H
#define PULLET_KEEPER_H

#include <stdbool.h>
#include <sys/types.h>

#define KEEPER_WAIT_MS 2000

/* Written by the keeper before it ends, in memory shared with the agent. */
struct keeper_report {
	int start_error;  /* errno, when the program could not be started */
	int code, status; /* its si_code and si_status; 0: the keeper ended before it */
	unsigned left;    /* processes that the program left running, which were killed */
};

struct keeper_plan {
	char *const *argv, *const *env;
	int fds[3];   /* the program's 0 to 2 */
	int lifeline; /* to read from */
	volatile struct keeper_report *report;
};

/* Forks the keeper, which starts the program. Its number, or -errno. */
pid_t keeper_start(const struct keeper_plan *plan);
/* Kills and reaps all children of the calling process except those that is_kept(): descendants of a
 * keeper that was killed itself. Call it from the main thread of a process that is a subreaper and
 * has no other children. Returns how many there were, dead or not: until none, orphans of them may
 * still come. */
unsigned keeper_sweep(bool (*is_kept)(pid_t pid));
/* Sends a signal to each child of the calling process, from its main thread. Returns how many. */
unsigned keeper_signal_children(int signo);

#endif

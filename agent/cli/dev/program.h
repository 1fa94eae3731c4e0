/*
 * A program that runs beside this one, in a process group of its own, and what it writes, line by
 * line.
 *
 * It gets TERM when this process dies, however that ends. Threads: the loop's. Ownership:
 * program_end() before the struct goes. Errors: -errno. Bounds: lines of PROGRAM_LINE bytes, longer
 * ones are cut.
 */
#ifndef PULLET_CLI_DEV_PROGRAM_H
#define PULLET_CLI_DEV_PROGRAM_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/loop.h"

#define PROGRAM_LINE 8192

struct program {   /* fields are private but pid, ended and status */
	pid_t pid; /* 0 = it does not run */
	bool ended;
	int status; /* of waitpid(), once it ended */
	struct stream {
		struct loop_watch watch; /* fd -1 = closed */
		void (*take_line)(void *arg, char *line);
		void *arg;
		char line[PROGRAM_LINE];
		size_t len;
	} out, err;
};

/* Before the other calls. take_error gets the lines of standard error, take_line those of standard
 * output. */
void program_init(struct program *c, void (*take_line)(void *arg, char *line),
	void (*take_error)(void *arg, char *line), void *arg);
/* Starts a program by its path; mask: the signals to be blocked in it. 0 or -errno. */
int program_start(struct program *c, struct loop *l, char *const argv[], const sigset_t *mask);
/* After SIGCHLD: true once, when it ended; the rest of its lines was given first. */
bool program_reap(struct program *c);
/* Asks it to end, and waits up to timeout_ms, then kills it. SIGCHLD is blocked. */
void program_end(struct program *c, uint64_t timeout_ms);

#endif

/*
 * A program that runs with the values of a config, from its first version to its end: started,
 * restarted or signalled when they change.
 *
 * Threads: the main one. Ownership: the caller's, who fills in what is asked for. Errors: exit
 * codes, with the sentence printed. Bounds: a restart takes at most grace_ms for what the program
 * is and leaves; changes are one restart for debounce_ms each, five times that at most. What ends
 * by itself is not started again.
 */
#ifndef PULLET_CLI_RUNNER_H
#define PULLET_CLI_RUNNER_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/values/child.h"
#include "cli/values/exec_env.h"

enum change { CHANGE_RESTART, CHANGE_SIGNAL, CHANGE_NOTHING };

struct runner {
	/* what is asked for */
	const char *command, *config, *prefix;
	enum change on_change;
	int signal;
	uint64_t timeout_ms, grace_ms, debounce_ms; /* timeout UINT64_MAX = none */
	bool fresh;
	struct child child; /* argv */
	/* private */
	struct pullet *p;
	int news; /* readable when the thread has seen a change */
	uint64_t since_ms;
	struct exec_env environment, next;      /* of the program; of the one to be started */
	uint64_t generation;                    /* the last one that was acted upon */
	uint64_t first_change_ms, change_at_ms; /* since, until: changes wait; 0 = none does */
	uint64_t kill_at_ms;                    /* 0 = nobody was asked to end */
	int code;      /* of the program that has ended, while what it left ends; -1 = none */
	bool stopping; /* for a restart */
	bool ending;   /* no restart any more */
};

/* Runs it to its end: its exit code, or the command's own. */
int runner_run(struct runner *r);

#endif

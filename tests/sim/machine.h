/*
 * A host with its disk, its agent and the configs on it: what happens when the agent's process
 * ends, and what must be true at the end of a life. Works for any number of them.
 */
#ifndef SIM_MACHINE_H
#define SIM_MACHINE_H

#include "tests/sim/host.h"
#include "tests/sim/subject.h"

struct machine {
	struct host host; /* its name, number and traced are the caller's */
	struct subject *subjects;
	size_t subject_count;
	/* of the life that it is in; all may be left out */
	void (*starts)(struct machine *m); /* before a start: sets how */
	bool ends_in_changes;              /* most ends are where something is being written */
	bool cuts_after_kills;             /* the power may fail soon after a kill */
	bool cut_next;                     /* the process that ends next ends by a power cut */
};

/* Makes its disk, with the programs of its users on it and no configuration. The subjects are
 * borrowed. */
void machine_prepare(struct machine *m, enum disk_model model);
/* Ends the process and frees the disk. */
void machine_free(struct machine *m);

/* ---- the process ---- */

/* Starts the agent where none runs: what it shows is not older than what was settled. */
void machine_start(struct machine *m);
/* Ends the process within some hundred calls. cut: by a power cut. */
void machine_end_soon(struct machine *m, bool cut);
/* Cuts the power: in some call, or between two. */
void machine_fail_power(struct machine *m);
/* Ends the process at this moment, between two calls. It starts again later. */
void machine_end_now(struct machine *m, bool cut);
/* Suspends the machine until that moment. */
void machine_sleep(struct machine *m, uint64_t until_us);

/* ---- peace ---- */

void machine_observe(struct machine *m);
bool machine_shows_newest(const struct machine *m);
/* Checks that all shows the servers' newest. */
void machine_check_newest(struct machine *m);
/* Stops the agent: it leaves no memory and no descriptor. */
void machine_check_left_over(struct machine *m);
/* Starts it while no server answers. */
void machine_restart(struct machine *m);
/* A second later: the last known good is there. Stops it: no temporary file is left. */
void machine_check_restart(struct machine *m);

#endif

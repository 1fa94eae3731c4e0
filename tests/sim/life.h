/*
 * One life: a host with an agent, minutes of trouble, then peace, and what must be true by then.
 */
#ifndef SIM_LIFE_H
#define SIM_LIFE_H

#include <stdbool.h>
#include <stdint.h>

struct life_totals { /* of all lives so far */
	uint64_t lives, kills, cuts, exits, requests, changes, observed, operations, reloads,
		virtual_s, calls, failed_calls, failed_allocations;
};

extern struct life_totals life_totals;

struct life_options {
	uint64_t trouble_s; /* 0 = some minutes */
	uint64_t troubles;  /* only the first so many; 0 = all */
	uint64_t hosts;     /* of a fleet; 0 = FLEET_HOSTS */
};

/* Of the last life. */
extern uint64_t life_troubles;

/* Lives it. True: nothing was wrong; else subject_flaw says what. world.trace_hash is its hash. */
bool life_run(uint64_t seed, const struct life_options *options);

#endif

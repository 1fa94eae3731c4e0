/* One run: a scenario, a policy, a number of agents and a seed, and what came of it. */
#ifndef FLEET_SIMULATION_H
#define FLEET_SIMULATION_H

#include "agent.h"

#define FLEET_PARTS 2              /* see simulation.c */
#define FLEET_THREADS_FROM 200000u /* agents: below, threads cost more than they bring */

enum { SHARE_50, SHARE_99, SHARE_100, SHARES };

struct result {
	const struct scenario *scenario;
	const struct policy *policy;
	uint32_t agents;
	uint64_t seed;
	struct tally tally;
	uint64_t converged_ms[SHARES]; /* from measure_s; UINT64_MAX = never */
	uint64_t heard_ms[SHARES];     /* the same, of the message in the tree */
	uint32_t *per_second; /* requests that reached the server, scenario->end_s numbers; takes */
	uint32_t peak, peak_s; /* the most since measure_s, and when */
	uint32_t most;         /* requests of the agent with the most, since measure_s */
	bool stale;            /* at the end somebody still was */
	uint64_t digest;       /* of per_second and the tally */
	uint64_t bytes;        /* memory per agent */
	double wall_s;
};

/* 0 or -ENOMEM. threads: one for each part of the fleet, which changes nothing but how long it
 * takes. Free the result with result_fini(). */
int simulate(const struct scenario *s, const struct policy *p, uint32_t agents, uint64_t seed,
	bool threads, struct result *ret_result);
void result_fini(struct result *r);

#endif

/*
 * What a life is made of, drawn from its seed: configs, servers, and which kinds of trouble there
 * are. A life without a kind of trouble allows to ask for more (swarm testing).
 */
#ifndef SIM_SCENARIO_H
#define SIM_SCENARIO_H

#include "tests/sim/host.h"
#include "tests/sim/subject.h"

#define SCENARIO_MAX_SUBJECTS 5

struct scenario {
	uint64_t trouble_us; /* how long it lasts */
	enum disk_model model;
	struct subject subjects[SCENARIO_MAX_SUBJECTS];
	size_t subject_count;
	bool push, watch, two_servers;
	bool calm;    /* nothing goes wrong but what the servers have */
	bool orderly; /* nobody takes a version back: no config may go back, and most watch etcd */
	/* kinds of trouble; once in so many seconds, 0 = never */
	unsigned changes_s, bad_versions, deletes, restores, servers_s, lag, kills_s, cuts_s,
		operators_s, reloads_s, edits_s, sleeps_s, clock_s, disk_faults, memory_faults,
		programs, push_faults, hands_s;
	bool once; /* agents run with --once and --dry-run now and then */
	const char *runtime_dir;
	unsigned rule; /* of the configuration: changes at each reload */
};

/* Draws all of it. */
void scenario_draw(struct scenario *s, struct host *h, uint64_t trouble_us);
/* Writes the agent's configuration onto its disk; `broken`: one that is rejected. */
void scenario_write(struct scenario *s, bool broken);

#endif

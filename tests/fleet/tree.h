/*
 * The relay tree of a scenario: when each agent hears of the change.
 *
 * A publisher, TREE_TOPS relays below it, TREE_LEAVES below those, and the agents, as many at each
 * leaf. A message takes a hop from one to the next, and waits in each until the copies of those
 * before it in line are made. A relay that is down died at the moment of the change, with the
 * message, and is back after TREE_RESTART_MS; what was connected to it tries again as libzmq does.
 * A leaf whose relay came back says so to its agents (a new epoch), which pull within the spread of
 * the change; an agent whose leaf came back pulls at once. The figures are measured:
 * tests/bench/bench_relay.c.
 */
#ifndef FLEET_TREE_H
#define FLEET_TREE_H

#include "scenario.h"

#define TREE_TOPS 5u
#define TREE_LEAVES 40u     /* the first TREE_LEAVES / TREE_TOPS below the first top, and so on */
#define TREE_HOP_US 2000u   /* from the publisher or a relay to the next program's ears */
#define TREE_COPY_NS 11000u /* of one message; those of a stream share system calls: 280 */
#define TREE_RESTART_MS 1000u

struct tree {
	const struct scenario *scenario;
	uint32_t agents;
	uint64_t heard_ns[TREE_LEAVES]; /* by each leaf; UINT64_MAX: it is down */
};

/* Prepares what the tree of this seed does. quiet: a leaf that connects again says nothing. */
void tree_init(
	struct tree *t, const struct scenario *s, uint32_t agents, uint64_t seed, bool quiet);
/* The leaf of this agent is down. */
bool tree_is_cut_off(const struct tree *t, uint32_t agent);
/* When an agent whose leaf is not down hears of the change; UINT64_MAX = never. */
uint64_t tree_heard_ms(const struct tree *t, uint32_t agent);
/* When libzmq, which began to try at from_ms, first tries again after to_ms: an interval of 2 s and
 * a random part of the spread that doubles, plus a random part of the first one. */
#define TREE_RECONNECT_SPREAD_MS 8000u
uint64_t tree_reconnect_ms(uint64_t *random, uint64_t spread_ms, uint64_t from_ms, uint64_t to_ms);

#endif

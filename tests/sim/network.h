/*
 * The one network of a fleet: nodes (hosts, servers, publishers, relays) in zones, and what parts
 * them for a while, in one direction or both.
 *
 * Threads: one. Bounds: the tables below.
 */
#ifndef SIM_NETWORK_H
#define SIM_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#define NETWORK_NODES 1100
#define NETWORK_ZONES 4

/* All nodes are in zone 0, nothing parts them. */
void network_begin(void);
void network_place(unsigned node, unsigned zone);
unsigned network_zone(unsigned node);
/* Nothing reaches the node, and it reaches nobody, until then. */
void network_isolate(unsigned node, uint64_t until_us);
/* Nothing of one zone reaches the other, until then. The other direction is another call. */
void network_part(unsigned from, unsigned to, uint64_t until_us);
/* Ends all partitions. */
void network_heal(void);
/* Tells whether what one node sends reaches the other at this moment. */
bool network_reaches(unsigned from, unsigned to);

#endif

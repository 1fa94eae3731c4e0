/*
 * A life of a fleet: many hosts, three servers of one site, a tree of relays, one network. Trouble
 * for minutes; then all is healed, and within a bound each host shows the last good version. After
 * that some exercises, one at a time: what a change, a relay's restart, a lost message, an outage
 * may cost, and how many requests a second they may cause.
 */
#ifndef SIM_FLEET_H
#define SIM_FLEET_H

#include "tests/sim/life.h"

#define FLEET_HOSTS 200 /* where the options name no number */
#define FLEET_MAX_HOSTS 1000

/* As life_run(). */
bool fleet_run(uint64_t seed, const struct life_options *options);

#endif

/* Are the targets met? As TAP, on a file of the caller's. */
#ifndef FLEET_CHECK_H
#define FLEET_CHECK_H

#include <stdio.h>

#include "simulation.h"

/* Runs the scenarios that have targets with this policy in place of ours, the same seed twice, and
 * the seeded bugs. The number of targets missed, or -ENOMEM. */
int check(FILE *out, const struct policy *ours, uint32_t agents, uint64_t seed);
/* Seeds a bug into p: "jitter" (no jitter, no spread), "hold" (no shaper), "limit" (holds grow
 * beyond the interval) or "quiet" (no pull after a connection to a relay). False for another name.
 */
bool check_break(struct policy *p, const char *bug);

#endif

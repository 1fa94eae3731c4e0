/* Are the targets met? As TAP, on a file of the caller's. */
#ifndef FLEET_CHECK_H
#define FLEET_CHECK_H

#include <stdio.h>

#include "simulation.h"

/* Runs the scenarios that have targets with this policy in place of ours, the same seed twice, and
 * the seeded bugs. The number of targets missed, or -ENOMEM. */
int check(FILE *out, const struct policy *ours, uint32_t agents, uint64_t seed);
/* A copy of p with a seeded bug: "jitter" (no jitter, no spread) or "hold" (no shaper). False for
 * another name. */
bool check_break(struct policy *p, const char *bug);

#endif

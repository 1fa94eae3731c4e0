/*
 * SIGHUP: the new configuration is read whole, compared with the one that runs, and applied without
 * touching what did not change; or it is refused whole, with all its errors.
 *
 * Before anything changes, everything is tried that could fail: files, keys, the address to listen
 * at, the push channel. Then the configs that are gone or changed are ended: first those of which
 * the disk is just taking a version, which are waited for while all others go on. Then the new ones
 * are made. Short memory in the middle of that ends the agent, which starts from the last known
 * good.
 *
 * Threads: the loop's. Ownership: the agent is borrowed; agent->configuration, which all may read,
 * is kept here. Bounds: one at a time; what is asked for meanwhile is done once, afterwards.
 */
#ifndef PULLET_RENEWAL_H
#define PULLET_RENEWAL_H

#include "agent.h"

struct reconfigure;

/* NULL when there is no memory. */
struct reconfigure *reconfigure_new(struct agent *a);
void reconfigure_free(struct reconfigure *r);
/* Reads the configuration and applies it: before the call returns, or as soon as it can be. */
void reconfigure_begin(struct reconfigure *r);

#endif

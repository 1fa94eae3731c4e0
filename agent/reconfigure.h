/*
 * SIGHUP, or a change of the files where they are watched: reads the new configuration, compares it
 * with the current one, and applies what changed; or rejects it whole, with all its errors.
 *
 * First tries everything that could fail: files, keys, the address to listen at, the push channel.
 * Then ends the configs that were removed or changed, first those whose version is being written to
 * a disk, while all others go on. Then creates the new ones. Short memory in that step ends the
 * agent, which starts from the last known good.
 *
 * Threads: the loop's. Ownership: borrows the agent; writes agent->configuration, which all may
 * read. Bounds: one reload at a time; requests meanwhile become one more, afterwards.
 */
#ifndef PULLET_RECONFIGURE_H
#define PULLET_RECONFIGURE_H

#include "agent.h"

struct reconfigure;

/* NULL when there is no memory. */
struct reconfigure *reconfigure_new(struct agent *a);
void reconfigure_free(struct reconfigure *r);
/* Reads and applies the configuration: before the call returns, or when pending writes have ended.
 */
void reconfigure_begin(struct reconfigure *r);
/* The agent has started: watches the files of its configuration, if that asks for it. */
void reconfigure_started(struct reconfigure *r);

#endif

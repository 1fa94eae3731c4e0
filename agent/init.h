/*
 * The duties of process 1, which pulletd is in a container: passes signals on to the agent, reaps
 * orphans.
 *
 * Programs of the user (check, reload, probe) may leave processes behind. Those become children of
 * process 1, and stay as zombies, up to the container's limit of processes, unless it reaps them.
 */
#ifndef PULLET_INIT_H
#define PULLET_INIT_H

/* Forks if this is process 1: returns -1 in the child, which goes on as the agent; in the parent,
 * once the child has ended, the exit code to end with (128 and the signal's number when it was
 * killed). Otherwise, or when fork fails, does nothing and returns -1. Call it before threads
 * start. */
int init_run(void);

#endif

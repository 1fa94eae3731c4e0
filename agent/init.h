/*
 * What is to be done by the first process of a PID namespace, which in a container is pulletd:
 * signals are passed on to the agent, orphans are reaped.
 *
 * Programs of the user (check, reload, probe) may leave processes behind. Those become children of
 * process 1, and if that does not wait for them they stay as zombies until the container's limit of
 * processes is reached.
 */
#ifndef PULLET_INIT_H
#define PULLET_INIT_H

/* If this is process 1 it forks: the child returns -1 and goes on as the agent; the parent returns
 * the exit code when the child has ended (128 and the signal's number when it was killed), which
 * then ends all. Else, and if there can be no child, it returns -1 and has done nothing. To be
 * called before there are threads. */
int init_run(void);

#endif

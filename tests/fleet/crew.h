/*
 * Threads that do one step of work each on parts of their own, again and again.
 *
 * Threads: all calls from the one that started the crew; it does the step of part 0 itself. What a
 * step wrote is seen by the caller after crew_work(), and by every part in the next step. A step
 * may be much shorter than waking a thread takes.
 */
#ifndef FLEET_CREW_H
#define FLEET_CREW_H

#define CREW_MAX 8 /* parts */

struct crew;

/* Starts a thread for each part but the first. NULL if that fails. */
struct crew *crew_start(unsigned parts, void (*work)(void *arg, unsigned part), void *arg);
/* One step of each part, at the same time. Returns when all are done. */
void crew_work(struct crew *c);
/* Accepts NULL. */
void crew_stop(struct crew *c);

#endif

/*
 * A thread for calls that may block (a disk's fsync, a mounted volume): runs jobs in order.
 *
 * Threads: worker_submit() from the loop's thread. Calls the job's run() in the worker, done() in
 * the loop's thread. A job is embedded in the object it works on, which must stay in place until
 * done(). Bound: the number of embedded jobs.
 */
#ifndef PULLET_WORKER_H
#define PULLET_WORKER_H

#include <stdbool.h>

#include "base/loop.h"

struct worker;

struct worker_job {
	void (*run)(struct worker_job *job);
	void (*done)(struct worker_job *job);
	struct worker_job *next; /* private */
};

/* Starts the thread; its name has at most 15 bytes. NULL when it cannot be started. */
struct worker *worker_start(struct loop *l, const char *name);
/* The same for long work that nobody waits for: by `nice` (0 to 19) behind the other threads of the
 * agent, and of the machine, where both want a processor. A kernel that refuses it is not asked
 * again. */
struct worker *worker_start_behind(struct loop *l, const char *name, int nice);
void worker_submit(struct worker *w, struct worker_job *job);
/* Cancels a job that has not begun: true, and neither run() nor done() is called. */
bool worker_cancel(struct worker *w, struct worker_job *job);
/* Lets queued jobs finish for half of max_ms, then drops those that have not begun and waits the
 * other half for the running one; calls done() for those that ended. 0, and the worker is freed; or
 * -ETIMEDOUT when one still runs: the process should then _exit(). */
int worker_stop(struct worker *w, unsigned max_ms);

#endif

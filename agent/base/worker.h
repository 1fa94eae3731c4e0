/*
 * A thread for what may block (a disk's fsync, a mounted volume): jobs run there in order, their
 * ends are told in the loop's thread.
 *
 * Threads: worker_submit() from the loop's thread. The job's run() is called in the worker, done()
 * in the loop's thread. A job is embedded in whatever it works on, which must stay in place until
 * done(). Bound: as many jobs as there are embedded ones.
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
void worker_submit(struct worker *w, struct worker_job *job);
/* Takes the job back: true when it has not begun; it never runs then, and done() is not called. */
bool worker_cancel(struct worker *w, struct worker_job *job);
/* Lets queued jobs finish for half of max_ms, then forgets those that have not begun, and waits the
 * other half for the one that runs; done() is called for those that ended. 0, or -ETIMEDOUT when
 * one still runs: the process should then _exit(). Frees the worker when 0. */
int worker_stop(struct worker *w, unsigned max_ms);

#endif

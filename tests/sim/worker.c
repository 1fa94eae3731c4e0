/*
 * Workers without threads: a job runs at one moment, and ends at a later one; a process may end
 * between, or in the middle of it. Surprising: a job that runs sees what the loop did before, and
 * nothing of what it does meanwhile, as if its calls were made all at once.
 */
#include "base/worker.h"

#include <errno.h>
#include <stdlib.h>

#include "tests/sim/host.h"
#include "tests/sim/programs.h"
#include "tests/sim/world.h"

struct worker {
	struct host *host;
	struct worker_job *first, *running;
	bool busy;
};

static void end_job(void *arg);

static uint64_t draw_delay_us(void)
{
	return world_random(
		STREAM_DISK, world_once_in(STREAM_DISK, sim_programs.slow_disk) ? 300000 : 4000);
}

static void run_job(void *arg)
{
	struct worker *w = arg;

	w->running = w->first;
	if (!w->running) { /* cancelled */
		w->busy = false;
		return;
	}
	w->first = w->running->next;
	w->running->run(w->running);
	host_at(w->host, world.now_us + draw_delay_us(), end_job, w);
}

static void begin_job(struct worker *w)
{
	if (w->busy || !w->first)
		return;
	w->busy = true;
	host_at(w->host, world.now_us + draw_delay_us(), run_job, w);
}

static void end_job(void *arg)
{
	struct worker *w = arg;
	struct worker_job *job = w->running;

	w->running = NULL;
	w->busy = false;
	job->done(job);
	begin_job(w);
}

struct worker *worker_start(struct loop *l, const char *name)
{
	return worker_start_behind(l, name, 0);
}

struct worker *worker_start_behind(struct loop *l, const char *name, int nice)
{
	struct worker *w = calloc(1, sizeof(*w));

	(void)l;
	(void)name;
	(void)nice;
	if (w)
		w->host = host_now;
	return w;
}

void worker_submit(struct worker *w, struct worker_job *job)
{
	struct worker_job **link = &w->first;

	while (*link)
		link = &(*link)->next;
	job->next = NULL;
	*link = job;
	begin_job(w);
}

bool worker_cancel(struct worker *w, struct worker_job *job)
{
	struct worker_job **link = &w->first;

	while (*link && *link != job)
		link = &(*link)->next;
	if (!*link)
		return false;
	*link = job->next;
	return true;
}

int worker_stop(struct worker *w, unsigned max_ms)
{
	(void)max_ms;
	if (w->running)
		w->running->done(w->running);
	while (w->first) {
		struct worker_job *job = w->first;

		w->first = job->next;
		job->run(job);
		job->done(job);
	}
	free(w);
	return 0;
}

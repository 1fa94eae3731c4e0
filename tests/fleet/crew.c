/*
 * Two counters: steps begun, and parts that are done with the last one.
 *
 * What surprises: a thread that waits spins, and after a while lets others run, but never sleeps: to
 * wake it would take longer than its step.
 */
#include "crew.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#define SPINS 20000 /* some 0.1 ms */

struct member {
	struct crew *crew;
	pthread_t thread;
	unsigned part;
};

struct crew {
	void (*work)(void *arg, unsigned part);
	void *arg;
	unsigned parts; /* started */
	struct member members[CREW_MAX];
	bool over;
	_Alignas(64) _Atomic unsigned steps;
	_Alignas(64) _Atomic unsigned done; /* parts, of all steps */
};

static void wait_for(_Atomic unsigned *counter, unsigned value)
{
	unsigned spins = 0;

	while (atomic_load_explicit(counter, memory_order_acquire) != value)
		if (++spins > SPINS)
			sched_yield();
}

static void *member_run(void *arg)
{
	struct member *m = arg;
	struct crew *c = m->crew;

	for (unsigned step = 1;; step++) {
		wait_for(&c->steps, step);
		if (c->over)
			return NULL;
		c->work(c->arg, m->part);
		atomic_fetch_add_explicit(&c->done, 1, memory_order_release);
	}
}

struct crew *crew_start(unsigned parts, void (*work)(void *arg, unsigned part), void *arg)
{
	struct crew *c = aligned_alloc(64, sizeof(*c));

	assert(parts >= 1 && parts <= CREW_MAX);
	if (!c)
		return NULL;
	*c = (struct crew){.work = work, .arg = arg, .parts = 1};
	for (; c->parts < parts; c->parts++) {
		struct member *m = &c->members[c->parts];

		*m = (struct member){.crew = c, .part = c->parts};
		if (pthread_create(&m->thread, NULL, member_run, m)) {
			crew_stop(c);
			return NULL;
		}
	}
	return c;
}

void crew_work(struct crew *c)
{
	unsigned done = atomic_load_explicit(&c->done, memory_order_relaxed);

	atomic_fetch_add_explicit(&c->steps, 1, memory_order_release);
	c->work(c->arg, 0);
	wait_for(&c->done, done + c->parts - 1);
}

void crew_stop(struct crew *c)
{
	if (!c)
		return;
	c->over = true;
	atomic_fetch_add_explicit(&c->steps, 1, memory_order_release);
	while (--c->parts > 0)
		pthread_join(c->members[c->parts].thread, NULL);
	free(c);
}

/*
 * Two kinds of semaphores: one a part to begin a step, and one for all that are done with theirs.
 *
 * What surprises: who waits tries for a while before it sleeps. To wake a thread takes longer than
 * a step; but where others want the processor, trying would only keep them from it.
 */
#include "crew.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdlib.h>

#define TRIES 20000 /* some 0.1 ms */

struct member {
	struct crew *crew;
	pthread_t thread;
	unsigned part;
	sem_t begin;
};

struct crew {
	void (*work)(void *arg, unsigned part);
	void *arg;
	unsigned parts; /* started, the caller's included */
	bool over;
	sem_t done;
	struct member members[CREW_MAX];
};

static void wait_for(sem_t *s)
{
	for (unsigned i = 0; i < TRIES; i++)
		if (sem_trywait(s) == 0)
			return;
	while (sem_wait(s) && errno == EINTR)
		;
}

static void *member_run(void *arg)
{
	struct member *m = arg;
	struct crew *c = m->crew;

	for (;;) {
		wait_for(&m->begin);
		if (c->over)
			return NULL;
		c->work(c->arg, m->part);
		sem_post(&c->done);
	}
}

struct crew *crew_start(unsigned parts, void (*work)(void *arg, unsigned part), void *arg)
{
	struct crew *c = calloc(1, sizeof(*c));

	assert(parts >= 1 && parts <= CREW_MAX);
	if (!c)
		return NULL;
	*c = (struct crew){.work = work, .arg = arg, .parts = 1};
	sem_init(&c->done, 0, 0);
	for (; c->parts < parts; c->parts++) {
		struct member *m = &c->members[c->parts];

		m->crew = c;
		m->part = c->parts;
		sem_init(&m->begin, 0, 0);
		if (pthread_create(&m->thread, NULL, member_run, m)) {
			crew_stop(c);
			return NULL;
		}
	}
	return c;
}

void crew_work(struct crew *c)
{
	for (unsigned i = 1; i < c->parts; i++)
		sem_post(&c->members[i].begin);
	c->work(c->arg, 0);
	for (unsigned i = 1; i < c->parts; i++)
		wait_for(&c->done);
}

void crew_stop(struct crew *c)
{
	if (!c)
		return;
	c->over = true;
	while (--c->parts > 0) {
		sem_post(&c->members[c->parts].begin);
		pthread_join(c->members[c->parts].thread, NULL);
		sem_destroy(&c->members[c->parts].begin);
	}
	sem_destroy(&c->done);
	free(c);
}

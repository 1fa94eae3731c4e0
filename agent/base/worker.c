/*
 * Two queues and a thread. Surprising: a job is linked into a queue by its own `next`, so nothing
 * is allocated and no queue can be full.
 */
#include "base/worker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

struct queue {
	struct worker_job *first, **end;
};

struct worker {
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed; /* a job was added, a job has ended, or stopping was set */
	struct queue waiting, ended;
	bool stopping, stopped;
	int nice;
	struct loop_watch watch; /* eventfd: something has ended */
};

static void queue_append(struct queue *q, struct worker_job *job)
{
	job->next = NULL;
	*q->end = job;
	q->end = &job->next;
}

static struct worker_job *queue_take_first(struct queue *q)
{
	struct worker_job *job = q->first;

	if (job) {
		q->first = job->next;
		if (!q->first)
			q->end = &q->first;
	}
	return job;
}

static void *run_jobs(void *arg)
{
	struct worker *w = arg;
	struct worker_job *job;
	uint64_t one = 1;

	if (w->nice)
		(void)!nice(w->nice); /* of this thread alone: nice(2) */
	pthread_mutex_lock(&w->mutex);
	for (;;) {
		job = queue_take_first(&w->waiting);
		if (!job && w->stopping)
			break;
		if (!job) {
			pthread_cond_wait(&w->changed, &w->mutex);
			continue;
		}
		pthread_mutex_unlock(&w->mutex);
		job->run(job);
		pthread_mutex_lock(&w->mutex);
		queue_append(&w->ended, job);
		if (write(w->watch.fd, &one, sizeof(one)) < 0)
			continue; /* the counter is full: the loop will read it */
	}
	w->stopped = true;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->mutex);
	return NULL;
}

/* Calls done() of ended jobs, in the loop's thread. */
static void finish_jobs(void *arg, int fd, unsigned events)
{
	struct worker *w = arg;
	struct worker_job *job;
	uint64_t count;

	(void)events;
	if (read(fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		return;
	for (;;) {
		pthread_mutex_lock(&w->mutex);
		job = queue_take_first(&w->ended);
		pthread_mutex_unlock(&w->mutex);
		if (!job)
			return;
		job->done(job);
	}
}

static void free_worker(struct worker *w)
{
	loop_unwatch(&w->watch);
	if (w->watch.fd >= 0)
		close(w->watch.fd);
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->mutex);
	free(w);
}

struct worker *worker_start(struct loop *l, const char *name)
{
	return worker_start_behind(l, name, 0);
}

struct worker *worker_start_behind(struct loop *l, const char *name, int nice)
{
	struct worker *w = calloc(1, sizeof(*w));
	pthread_condattr_t attr;
	sigset_t all, before;
	int fd, r;

	if (!w)
		return NULL;
	w->nice = nice;
	w->waiting.end = &w->waiting.first;
	w->ended.end = &w->ended.first;
	pthread_mutex_init(&w->mutex, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->changed, &attr);
	pthread_condattr_destroy(&attr);
	fd = w->watch.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (fd < 0 || loop_watch(l, &w->watch, fd, LOOP_READ, finish_jobs, w))
		goto fail;
	sigfillset(&all);
	sigdelset(&all, SIGBUS); /* of a page that was cut short, in a job: it cannot wait */
	pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the loop's */
	r = pthread_create(&w->thread, NULL, run_jobs, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r)
		goto fail;
	pthread_setname_np(w->thread, name);
	return w;
fail:
	free_worker(w);
	return NULL;
}

void worker_submit(struct worker *w, struct worker_job *job)
{
	pthread_mutex_lock(&w->mutex);
	queue_append(&w->waiting, job);
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->mutex);
}

bool worker_cancel(struct worker *w, struct worker_job *job)
{
	struct worker_job **link = &w->waiting.first;
	bool found;

	pthread_mutex_lock(&w->mutex);
	while (*link && *link != job)
		link = &(*link)->next;
	found = *link;
	if (found) {
		*link = job->next;
		if (!job->next)
			w->waiting.end = link;
	}
	pthread_mutex_unlock(&w->mutex);
	return found;
}

/* Waits until the thread has stopped, at most ms; the mutex is held. */
static void wait_stopped(struct worker *w, unsigned ms)
{
	struct timespec until;
	int r = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)(ms % 1000) * 1000000;
	until.tv_sec += ms / 1000 + until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	while (!w->stopped && r == 0)
		r = pthread_cond_timedwait(&w->changed, &w->mutex, &until);
}

int worker_stop(struct worker *w, unsigned max_ms)
{
	bool stopped;

	pthread_mutex_lock(&w->mutex);
	w->stopping = true;
	pthread_cond_broadcast(&w->changed);
	wait_stopped(w, max_ms / 2);
	while (queue_take_first(&w->waiting))
		;
	wait_stopped(w, max_ms / 2);
	stopped = w->stopped;
	pthread_mutex_unlock(&w->mutex);
	if (!stopped)
		return -ETIMEDOUT;
	pthread_join(w->thread, NULL);
	finish_jobs(w, w->watch.fd, LOOP_READ);
	free_worker(w);
	return 0;
}

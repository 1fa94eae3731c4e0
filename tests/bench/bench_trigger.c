/*
 * trigger_fire() and trigger_hint() beside a mutex and a condition variable that keep the same
 * promise: what one call costs from one, two and four threads, what it allocates, and how long it
 * takes until the owner has begun the run, beside a bare eventfd between the same two threads.
 *
 * Three kinds of hint: "forward" brings the moment forward each time, "late" is later than what is
 * due, as most of a storm are, "fire, hint" takes turns with an order.
 *
 * What surprises: "owner asleep" is the cost of the call alone; it is marked already, nobody takes
 * it. "Owner taking" can be the cheaper one: a wake-up is spread over the many calls that come
 * before the owner has looked, and while it has the processor of one caller, the others do not
 * collide with that one. "wall" is wall time x threads / calls: what one caller waits for a call;
 * with more threads than processors it includes waiting for a processor. "CPU" is what a calling
 * thread itself spent on a call.
 *
 * Callers stand on processors 0, 1, ..., the owner on the last one. The callers read no clock: the
 * moment is an argument.
 *
 * Usage: bench_trigger
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "../../lib/trigger.h"
#include "bench.h"

#define ROUNDS 5
#define MAX_THREADS 4
#define DELAY_MS 300000u
#define FIRES 10000000u /* for the bytes */
#define LATENCY_ROUNDS 5
#define LATENCY_FIRES 1000 /* a round */

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "bench_trigger: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* With two processors or more, the calling thread, and what it makes, stay on this one (counted
 * from 0, and around). */
static void stand_on(unsigned processor)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t set;

	if (processors < 2)
		return;
	CPU_ZERO(&set);
	CPU_SET(processor % (unsigned)processors, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* ---- bytes: the C library's own functions, counted ---- */

static _Atomic uint64_t allocated_bytes;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

void *malloc(size_t size)
{
	atomic_fetch_add(&allocated_bytes, size);
	return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	atomic_fetch_add(&allocated_bytes, n * size);
	return __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	atomic_fetch_add(&allocated_bytes, size);
	return __libc_realloc(p, size);
}

/* A count that counts nothing would always be 0. */
static void check_count(void)
{
	uint64_t before = atomic_load(&allocated_bytes);
	void *volatile p = malloc(100);

	p = realloc(p, 200);
	free(p);
	if (atomic_load(&allocated_bytes) - before != 300) {
		fprintf(stderr, "bench_trigger: allocations are not counted\n");
		exit(1);
	}
}

/* ---- the two contenders, one of each, and their owners ---- */

static struct trigger trigger;
static struct trigger_queue queue;
static int wake_fd = -1;
static _Atomic bool stop;
static uint64_t looks;           /* how often an owner has seen a moment */
static _Atomic unsigned missing; /* threads that are not at the start yet */

static void ring(void)
{
	static const uint64_t one = 1;

	if (write(wake_fd, &one, sizeof(one)) != sizeof(one))
		die("eventfd");
}

static void wait_for_ring(void)
{
	struct pollfd p = {.fd = wake_fd, .events = POLLIN};
	uint64_t count;

	while (poll(&p, 1, -1) != 1)
		;
	if (read(wake_fd, &count, sizeof(count)) != sizeof(count))
		die("eventfd");
}

static void wake_by_ring(void *arg)
{
	(void)arg;
	ring();
}

static void wake_nobody(void *arg)
{
	(void)arg;
}

static void trigger_open(bool owned)
{
	if (wake_fd >= 0)
		close(wake_fd);
	wake_fd = eventfd(0, EFD_CLOEXEC); /* without a ring that came too late */
	if (wake_fd < 0)
		die("eventfd");
	atomic_store(&stop, false);
	looks = 0;
	trigger_queue_init(&queue, owned ? wake_by_ring : wake_nobody, NULL);
	trigger_init(&trigger, &queue);
	if (!owned)
		trigger_fire(&trigger, 0, DELAY_MS); /* marked from now on */
}

static void trigger_calls(size_t n)
{
	for (size_t i = 0; i < n; i++)
		trigger_fire(&trigger, i, DELAY_MS);
}

/* Each is sooner than the one before. The hour is further away than n ms. */
static void forward_calls(size_t n)
{
	trigger_fire(&trigger, n, 12 * DELAY_MS);
	for (size_t i = n; i > 1; i--)
		trigger_hint(&trigger, i, 2 * DELAY_MS);
}

static void late_calls(size_t n)
{
	trigger_fire(&trigger, 0, DELAY_MS);
	for (size_t i = 1; i < n; i++)
		trigger_hint(&trigger, i, DELAY_MS);
}

static void mixed_calls(size_t n)
{
	for (size_t i = 0; i < n; i += 2) {
		trigger_fire(&trigger, i, 2 * DELAY_MS);
		trigger_hint(&trigger, i, DELAY_MS);
	}
}

static void *trigger_owner(void *arg)
{
	uint64_t due_ms;

	(void)arg;
	stand_on((unsigned)-1);
	atomic_fetch_sub(&missing, 1);
	do {
		wait_for_ring();
		for (struct trigger *t; (t = trigger_queue_take(&queue));)
			if (trigger_due(t, &due_ms) && due_ms >= DELAY_MS)
				looks++;
	} while (!atomic_load(&stop));
	return NULL;
}

static void trigger_stop(void)
{
	atomic_store(&stop, true);
	ring();
}

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed_cond;
	uint64_t due_ms;
	bool armed, changed;
} locked = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed_cond = PTHREAD_COND_INITIALIZER};

static void locked_open(bool owned)
{
	(void)owned;
	atomic_store(&stop, false);
	looks = 0;
	locked.armed = locked.changed = false;
}

static void locked_fire(uint64_t now_ms, uint64_t delay_ms)
{
	pthread_mutex_lock(&locked.lock);
	locked.due_ms = now_ms + delay_ms;
	locked.armed = locked.changed = true;
	pthread_cond_signal(&locked.changed_cond);
	pthread_mutex_unlock(&locked.lock);
}

static void locked_calls(size_t n)
{
	for (size_t i = 0; i < n; i++)
		locked_fire(i, DELAY_MS);
}

static void *locked_owner(void *arg)
{
	(void)arg;
	stand_on((unsigned)-1);
	pthread_mutex_lock(&locked.lock);
	atomic_fetch_sub(&missing, 1);
	do {
		while (!locked.changed)
			pthread_cond_wait(&locked.changed_cond, &locked.lock);
		locked.changed = false;
		if (locked.armed && locked.due_ms >= DELAY_MS)
			looks++;
	} while (!atomic_load(&stop));
	pthread_mutex_unlock(&locked.lock);
	return NULL;
}

static void locked_stop(void)
{
	pthread_mutex_lock(&locked.lock);
	atomic_store(&stop, true);
	locked.changed = true;
	pthread_cond_signal(&locked.changed_cond);
	pthread_mutex_unlock(&locked.lock);
}

enum { TRIGGER, FORWARD, LATE, MIXED, LOCKED, CONTENDERS };

static const struct contender {
	const char *name;
	void (*open)(bool owned);
	void (*calls)(size_t n);
	void *(*owner)(void *arg);
	void (*stop)(void);
} contenders[CONTENDERS] = {
	{"trigger", trigger_open, trigger_calls, trigger_owner, trigger_stop},
	{"hint forward", trigger_open, forward_calls, trigger_owner, trigger_stop},
	{"hint late", trigger_open, late_calls, trigger_owner, trigger_stop},
	{"fire, hint", trigger_open, mixed_calls, trigger_owner, trigger_stop},
	{"mutex + condition", locked_open, locked_calls, locked_owner, locked_stop},
};

/* ---- ns per call ---- */

struct caller {
	pthread_t thread;
	unsigned number;
	size_t n;
	void (*calls)(size_t n);
	uint64_t begin_ns, end_ns, cpu_ns;
};

static uint64_t cpu_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void *caller_thread(void *arg)
{
	struct caller *c = arg;
	uint64_t cpu_ns;

	stand_on(c->number);
	atomic_fetch_sub(&missing, 1);
	while (atomic_load(&missing))
		sched_yield();
	cpu_ns = cpu_now_ns();
	c->begin_ns = bench_now_ns();
	c->calls(c->n);
	c->end_ns = bench_now_ns();
	c->cpu_ns = cpu_now_ns() - cpu_ns;
	return NULL;
}

static void start(pthread_t *thread, void *(*run)(void *arg), void *arg)
{
	errno = pthread_create(thread, NULL, run, arg);
	if (errno)
		die("thread");
}

static void one_round(
	const struct contender *c, unsigned threads, bool owned, double *ret_wall, double *ret_cpu)
{
	size_t n = owned ? 500000 : 1000000;
	uint64_t begin_ns = UINT64_MAX, end_ns = 0, cpu_ns = 0;
	struct caller callers[MAX_THREADS];
	pthread_t owner;

	c->open(owned);
	atomic_store(&missing, threads + owned);
	if (owned)
		start(&owner, c->owner, NULL);
	for (unsigned i = 0; i < threads; i++) {
		callers[i] = (struct caller){.number = i, .n = n, .calls = c->calls};
		start(&callers[i].thread, caller_thread, &callers[i]);
	}
	for (unsigned i = 0; i < threads; i++) {
		pthread_join(callers[i].thread, NULL);
		if (callers[i].begin_ns < begin_ns)
			begin_ns = callers[i].begin_ns;
		if (callers[i].end_ns > end_ns)
			end_ns = callers[i].end_ns;
		cpu_ns += callers[i].cpu_ns;
	}
	if (owned) {
		c->stop();
		pthread_join(owner, NULL);
	}
	if (owned && !looks) {
		fprintf(stderr, "bench_trigger: %s: its owner saw nothing\n", c->name);
		exit(1);
	}
	*ret_wall = (double)(end_ns - begin_ns) / (double)n; /* x threads / (n x threads) */
	*ret_cpu = (double)cpu_ns / (double)(n * threads);
}

static const struct run {
	unsigned threads;
	bool owned;
	const char *name;
} runs[] = {
	{1, false, "1 thread, owner asleep"},
	{2, false, "2 threads, owner asleep"},
	{4, false, "4 threads, owner asleep"},
	{1, true, "1 thread, owner taking"},
	{2, true, "2 threads, owner taking"},
	{4, true, "4 threads, owner taking"},
};

enum { RUNS = sizeof(runs) / sizeof(runs[0]) };

/* Fills medians[]: for each run wall and CPU time of each contender. */
static void measure_calls(double medians[RUNS][2 * CONTENDERS])
{
	static const char *const columns[] = {"fire wall", "CPU", "forward", "CPU", "late", "CPU",
		"fire, hint", "CPU", "mutex wall", "CPU"};
	static double ns[RUNS][2 * CONTENDERS][ROUNDS];

	for (unsigned round = 0; round < ROUNDS; round++)
		for (int r = 0; r < RUNS; r++)
			for (int c = 0; c < CONTENDERS; c++)
				one_round(&contenders[c], runs[r].threads, runs[r].owned,
					&ns[r][2 * c][round], &ns[r][2 * c + 1][round]);
	bench_head("ns per call", columns, 2 * CONTENDERS);
	for (int r = 0; r < RUNS; r++) {
		for (int i = 0; i < 2 * CONTENDERS; i++)
			medians[r][i] = bench_median(ns[r][i], ROUNDS);
		bench_row(runs[r].name, medians[r], 2 * CONTENDERS);
	}
}

/* ---- bytes ---- */

/* With an owner that takes, so that every path of a call is among them. */
static double bytes_of_fires(void)
{
	uint64_t before, bytes;
	pthread_t owner;

	check_count();
	trigger_open(true);
	atomic_store(&missing, 1);
	start(&owner, trigger_owner, NULL);
	while (atomic_load(&missing))
		sched_yield();
	before = atomic_load(&allocated_bytes);
	trigger_calls(FIRES / 2);
	mixed_calls(FIRES / 2);
	bytes = atomic_load(&allocated_bytes) - before;
	trigger_stop();
	pthread_join(owner, NULL);
	return (double)bytes;
}

/* ---- from the call to the begin of the run ---- */

static _Atomic uint64_t begun_ns; /* 0 until the owner has begun */

static void *running_owner(void *arg)
{
	(void)arg;
	stand_on((unsigned)-1);
	while (!atomic_load(&stop)) {
		bool fired = false;
		uint64_t now_ns;

		wait_for_ring();
		for (struct trigger *t; (t = trigger_queue_take(&queue));) {
			fired = true;
			if (!trigger_begin(t, bench_now_ns() / 1000000u))
				continue;
			now_ns = bench_now_ns();
			trigger_end(t, now_ns / 1000000u, TRIGGER_NO_NEXT);
			atomic_store(&begun_ns, now_ns);
		}
		if (!fired)
			atomic_store(&begun_ns, bench_now_ns());
	}
	return NULL;
}

static double one_start_us(bool bare)
{
	uint64_t call_ns, begin_ns;

	atomic_store(&begun_ns, 0);
	call_ns = bench_now_ns();
	if (bare)
		ring();
	else
		trigger_fire(&trigger, call_ns / 1000000u, 0);
	while (!(begin_ns = atomic_load(&begun_ns)))
		if (bench_now_ns() - call_ns > 5000000000u) {
			fprintf(stderr, "bench_trigger: a fire was lost\n");
			exit(1);
		}
	return (double)(begin_ns - call_ns) / 1000.;
}

static void measure_starts(void)
{
	static const char *const columns[] = {"p50", "p99"}, *const names[] = {
								     "trigger", "eventfd"};
	static double us[2][LATENCY_FIRES], quantiles[2][2][LATENCY_ROUNDS];
	uint64_t seed = 2;
	pthread_t owner;

	trigger_open(true);
	start(&owner, running_owner, NULL);
	stand_on(0);
	for (int round = 0; round < LATENCY_ROUNDS; round++) {
		for (int i = 0; i < 2 * LATENCY_FIRES; i++) {
			/* 1 ms apart, but not in step with anything else that happens each ms */
			struct timespec pause = {
				.tv_nsec = (long)(900000 + bench_random(&seed) % 200000)};

			nanosleep(&pause, NULL);
			us[i % 2][i / 2] = one_start_us(i % 2);
		}
		for (int i = 0; i < 2; i++) {
			quantiles[i][0][round] = bench_quantile(us[i], LATENCY_FIRES, 0.5);
			quantiles[i][1][round] = bench_quantile(us[i], LATENCY_FIRES, 0.99);
		}
	}
	trigger_stop();
	pthread_join(owner, NULL);
	bench_head("fire to task start, us", columns, 2);
	for (int i = 0; i < 2; i++) {
		double row[] = {bench_median(quantiles[i][0], LATENCY_ROUNDS),
			bench_median(quantiles[i][1], LATENCY_ROUNDS)};

		bench_row(names[i], row, 2);
	}
}

int main(void)
{
	double medians[RUNS][2 * CONTENDERS], bytes;

	measure_calls(medians);
	measure_starts();
	bytes = bytes_of_fires();
	printf("\nbytes allocated by %u calls: %.0f\n\n", FIRES, bytes);
	bench_target("fire, 1 thread", medians[0][0], 20, "ns");
	bench_target("fire, 2 threads, owner asleep", medians[1][0], 60, "ns");
	bench_target("fire, 2 threads, owner taking", medians[4][0], 60, "ns");
	for (int c = FORWARD; c < LOCKED; c++) {
		char text[2][64];

		snprintf(text[0], sizeof(text[0]), "%s, 1 thread", contenders[c].name);
		snprintf(text[1], sizeof(text[1]), "%s, 2 threads, owner asleep",
			contenders[c].name);
		bench_target(text[0], medians[0][2 * c], 20, "ns");
		bench_target(text[1], medians[1][2 * c], 60, "ns");
	}
	bench_target("bytes allocated", bytes, 0, "");
	close(wake_fd);
	return 0;
}

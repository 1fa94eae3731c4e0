/*
 * Stress of the trigger: threads that fire, hint and suspend at random against one owner who sleeps
 * on an eventfd and lets runs take their time. Meant for ThreadSanitizer (make SAN=thread), too.
 *
 * A storm is many rounds. In each, the firing threads call at random, then the main thread has the
 * last words for each trigger, and the owner must come to exactly what those say: a run that began
 * after them, nothing at all, or a moment far away. A run records the highest stamp it saw when
 * it began; a caller takes its stamp before it fires, so a run that covers the last stamp began
 * after the last call. Then a handover: plain memory, written before a fire, read by its run; one
 * fire, one run.
 *
 * The harness is itself tested by seeded bugs, which it must report:
 *   -DSTRESS_BREAK=1: what was said during a run is lost, the run's own next delay wins;
 *   -DSTRESS_BREAK=2: a run in progress is not respected, a second one begins beside it;
 *   -DSTRESS_BREAK=3: each fire allocates (noticed without a sanitizer only, as those bring an
 *                     allocator of their own);
 *   -DSTRESS_BREAK=4: a hint overrides, as an order does;
 *   -DSTRESS_BREAK=5: a hint is lost if nobody else calls.
 *
 * Ends with "N passed, N failed". PULLET_SEED sets another seed.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "../../lib/trigger.h"
#include "../../lib/wheel.h"

#ifndef STRESS_BREAK
#define STRESS_BREAK 0
#endif
#ifdef __has_feature
#define FEATURE(name) __has_feature(name)
#else
#define FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || FEATURE(address_sanitizer) || \
	FEATURE(thread_sanitizer)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

#define TRIGGERS 4
#define FIRERS 3
#define ROUNDS 250
#define FIRES (SANITIZED ? 1000000 : 10000000) /* in all rounds */
#define FIRES_A_ROUND (FIRES / ROUNDS / FIRERS + 1)
#define HANDOVERS 1000
#define FAR_MS UINT64_C(300000)
#define DEADLINE_S 10

/* ---- the allocator, counted ---- */

static _Atomic uint64_t allocations;

#if !SANITIZED
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *p, size_t size);

void *malloc(size_t size)
{
	atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
	return __libc_malloc(size);
}
void *calloc(size_t count, size_t size)
{
	atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
	return __libc_calloc(count, size);
}
void *realloc(void *p, size_t size)
{
	atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
	return __libc_realloc(p, size);
}
#endif

/* ---- what is shared ---- */

struct task {
	struct trigger trigger;
	_Atomic uint64_t stamp; /* number of the latest fire or hint, taken before it */
	uint64_t plain;         /* handed over by a fire alone: written before, read in the run */

	/* the owner's, written under the lock */
	struct wheel_timer due, over;
	bool running;
	uint64_t begun, covered, plain_seen;
	uint64_t doubled; /* runs that began beside another */
};

static struct task tasks[TRIGGERS];
static struct trigger_queue queue;
static struct wheel wheel;
static int wake_fd;
static uint64_t seed = 1;
static bool stopping;        /* under the lock */
static bool only_when_fired; /* under the lock: runs ask for no next one */
static uint64_t owner_turns; /* under the lock: times the owner took all there was */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER; /* after each of the owner's turns */
static pthread_barrier_t barrier;
static unsigned passed, failed;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* splitmix64 */
static uint64_t random_bits(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static void check(bool good, const char *what)
{
	*(good ? &passed : &failed) += 1;
	printf("%s %s\n", good ? "  ok  " : "  FAIL", what);
}

static void wake(void *arg)
{
	const uint64_t one = 1;

	(void)arg;
	if (write(wake_fd, &one, sizeof(one)) < 0)
		abort();
}

static void fire(struct task *k, uint64_t delay_ms)
{
#if STRESS_BREAK == 3
	void *volatile spare = malloc(1); /* volatile: the pair would be optimised away */

	free(spare);
#endif
	atomic_fetch_add_explicit(&k->stamp, 1, memory_order_relaxed);
	trigger_fire(&k->trigger, now(), delay_ms);
}

static void hint(struct task *k, uint64_t delay_ms)
{
	atomic_fetch_add_explicit(&k->stamp, 1, memory_order_relaxed);
#if STRESS_BREAK == 4
	trigger_fire(&k->trigger, now(), delay_ms);
#elif STRESS_BREAK == 5
	(void)delay_ms;
#else
	trigger_hint(&k->trigger, now(), delay_ms);
#endif
}

/* ---- the owner ---- */

static bool begin_run(struct task *k)
{
#if STRESS_BREAK == 2
	if (k->running)
		return true;
#endif
	return trigger_begin(&k->trigger, now());
}

static void end_run(struct task *k, uint64_t next_ms)
{
	trigger_end(&k->trigger, now(), next_ms);
#if STRESS_BREAK == 1
	if (next_ms == TRIGGER_NO_NEXT)
		trigger_suspend(&k->trigger);
	else
		trigger_fire(&k->trigger, now(), next_ms);
#endif
}

static void arm(struct task *k)
{
	uint64_t due_ms;

	if (trigger_due(&k->trigger, &due_ms))
		wheel_schedule(&wheel, &k->due, due_ms);
	else
		wheel_cancel(&wheel, &k->due);
}

static void due_has_come(struct task *k, uint64_t *random)
{
	if (begin_run(k)) {
		k->doubled += k->running || !trigger_running(&k->trigger);
		k->running = true;
		k->begun++;
		k->covered = atomic_load_explicit(&k->stamp, memory_order_relaxed);
		k->plain_seen = k->plain;
		wheel_schedule(&wheel, &k->over, now() + random_bits(random) % 3);
	}
	arm(k);
}

static void run_is_over(struct task *k, uint64_t *random)
{
	uint64_t next_ms = random_bits(random) % 12;

	k->running = false;
	end_run(k, next_ms > 2 || only_when_fired ? TRIGGER_NO_NEXT : next_ms);
	arm(k);
}

static void take_all(uint64_t *random)
{
	struct trigger *t;
	struct wheel_timer *timer;

	while ((t = trigger_queue_take(&queue)))
		arm((struct task *)t);
	while ((timer = wheel_advance(&wheel, now())))
		for (unsigned i = 0; i < TRIGGERS; i++)
			if (timer == &tasks[i].due)
				due_has_come(&tasks[i], random);
			else if (timer == &tasks[i].over)
				run_is_over(&tasks[i], random);
}

static void sleep_until_woken(void)
{
	struct pollfd p = {.fd = wake_fd, .events = POLLIN};
	uint64_t due_ms, now_ms = now(), count;
	int timeout_ms = -1;

	if (wheel_next(&wheel, &due_ms) && due_ms <= now_ms)
		timeout_ms = 0;
	else if (wheel.count)
		timeout_ms = due_ms - now_ms < FAR_MS ? (int)(due_ms - now_ms) : (int)FAR_MS;
	if (poll(&p, 1, timeout_ms) > 0 && read(wake_fd, &count, sizeof(count)) < 0)
		abort();
}

static void *own(void *arg)
{
	uint64_t random = seed + 1000;
	bool stop = false;

	while (!stop) {
		sleep_until_woken();
		pthread_mutex_lock(&lock);
		take_all(&random);
		owner_turns++;
		stop = stopping;
		pthread_cond_broadcast(&turned);
		pthread_mutex_unlock(&lock);
	}
	return arg;
}

/* Waits, with the lock held, for one more of the owner's turns; false past the deadline. */
static bool wait_turn(const struct timespec *deadline)
{
	return pthread_cond_timedwait(&turned, &lock, deadline) != ETIMEDOUT;
}

static struct timespec deadline_from_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += DEADLINE_S;
	return t;
}

/* ---- the storm ---- */

/* One round's random calls: most of the delays short, half of them hints, some of them suspends. */
static void fire_at_random(uint64_t *random)
{
	for (unsigned i = 0; i < FIRES_A_ROUND; i++) {
		uint64_t bits = random_bits(random);
		struct task *k = &tasks[bits % TRIGGERS];

		if (bits >> 8 & 15)
			(bits >> 12 & 1 ? fire : hint)(k, (bits >> 16) % 3);
		else
			trigger_suspend(&k->trigger);
	}
}

static void *storm_thread(void *arg)
{
	uint64_t random = seed + *(const uint64_t *)arg;

	for (unsigned round = 0; round < ROUNDS; round++) {
		pthread_barrier_wait(&barrier); /* begin */
		fire_at_random(&random);
		pthread_barrier_wait(&barrier); /* end */
	}
	return NULL;
}

/* What the last words of a round may be: one call, or an order and a hint after it. */
enum words {
	FIRE_NOW,
	FIRE_FAR,
	SUSPEND,
	FIRE_NOW_HINT_FAR,
	FIRE_FAR_HINT_NOW,
	SUSPEND_HINT_NOW,
	WORDS
};

struct last_words {
	uint64_t lost, woken, misplaced; /* by what was said: now, never, later */
};

/* Returns the stamp that a run must cover. A run may begin before a hint for later is said. */
static uint64_t say(struct task *k, enum words words)
{
	uint64_t stamp;

	if (words == SUSPEND || words == SUSPEND_HINT_NOW)
		trigger_suspend(&k->trigger);
	else
		fire(k, words == FIRE_FAR || words == FIRE_FAR_HINT_NOW ? FAR_MS : 0);
	stamp = atomic_load_explicit(&k->stamp, memory_order_relaxed);
	if (words >= FIRE_NOW_HINT_FAR)
		hint(k, words == FIRE_NOW_HINT_FAR ? FAR_MS : 0);
	return words == FIRE_FAR_HINT_NOW ? stamp + 1 : stamp;
}

/* With the lock held: waits until k does not run and the owner has seen all that was said before.
 */
static bool settle(const struct task *k, const struct timespec *deadline)
{
	uint64_t turns = owner_turns;

	wake(NULL);
	while (k->running || owner_turns == turns)
		if (!wait_turn(deadline))
			return false;
	return true;
}

/* With the lock held: a run that covers the stamp has begun, or begins. */
static void expect_run(
	struct task *k, const struct timespec *deadline, uint64_t stamp, struct last_words *wrong)
{
	while (k->covered < stamp && !wrong->lost)
		wrong->lost += !wait_turn(deadline);
}

/* With the lock held: no run begins any more, and nothing is due before the far moment. */
static void expect_peace(struct task *k, const struct timespec *deadline, bool suspended,
	uint64_t from_ms, struct last_words *wrong)
{
	uint64_t begun, due_ms;

	wrong->woken += !settle(k, deadline);
	begun = k->begun;
	wrong->woken += !settle(k, deadline) || k->begun != begun;
	if (!trigger_due(&k->trigger, &due_ms))
		wrong->misplaced += !suspended;
	else if (suspended)
		wrong->woken++;
	else
		wrong->misplaced += due_ms < from_ms + FAR_MS || due_ms > now() + FAR_MS;
}

/* Has the last words for one trigger, after all others are silent, and sees what comes of it. */
static void last_words(struct task *k, enum words words, struct last_words *wrong)
{
	struct timespec deadline = deadline_from_now();
	uint64_t from_ms = now(), stamp;
	bool suspended = words == SUSPEND || words == SUSPEND_HINT_NOW;

	if (wrong->lost || wrong->woken || wrong->misplaced)
		return; /* one failure is enough, and each may take until the deadline */
	stamp = say(k, words);
	pthread_mutex_lock(&lock);
	if (suspended || words == FIRE_FAR)
		expect_peace(k, &deadline, suspended, from_ms, wrong);
	else
		expect_run(k, &deadline, stamp, wrong);
	pthread_mutex_unlock(&lock);
}

static void storm(void)
{
	struct last_words wrong = {0, 0, 0};
	uint64_t numbers[FIRERS], random = seed + 500, before, during = 0, doubled = 0, begun = 0;
	pthread_t threads[FIRERS];

	for (unsigned i = 0; i < FIRERS; i++) {
		numbers[i] = i;
		pthread_create(&threads[i], NULL, storm_thread, &numbers[i]);
	}
	for (unsigned round = 0; round < ROUNDS; round++) {
		before = atomic_load(&allocations);
		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);
		during += atomic_load(&allocations) - before;
		for (unsigned i = 0; i < TRIGGERS; i++)
			last_words(&tasks[i], (enum words)(random_bits(&random) % WORDS), &wrong);
	}
	for (unsigned i = 0; i < FIRERS; i++)
		pthread_join(threads[i], NULL);
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < TRIGGERS; i++) {
		doubled += tasks[i].doubled;
		begun += tasks[i].begun;
	}
	pthread_mutex_unlock(&lock);
	printf("%u calls from %u threads, %" PRIu64 " runs, seed %" PRIu64 "\n",
		FIRES_A_ROUND * ROUNDS * FIRERS, FIRERS, begun, seed);
	check(doubled == 0, "a task never runs beside itself");
	check(wrong.lost == 0 && begun > ROUNDS,
		"the last fire, or hint, leads to a run that began after it");
	check(wrong.woken == 0,
		"after a last suspend, hints or not, or a last fire for later, nothing runs");
	check(wrong.misplaced == 0, "a last fire for later keeps its moment");
	check(during == 0, "fire, hint and suspend allocate nothing");
}

/* ---- the handover ---- */

/* Runs once per fire: true when all of it was seen, and counts the runs. */
static bool hand_over_all(struct task *k, uint64_t *ret_runs)
{
	struct timespec deadline = deadline_from_now();
	uint64_t begun;
	bool good;

	pthread_mutex_lock(&lock);
	only_when_fired = true;
	trigger_suspend(&k->trigger);
	good = settle(k, &deadline);
	begun = k->begun;
	pthread_mutex_unlock(&lock);
	for (uint64_t i = 1; i <= HANDOVERS && good; i++) {
		k->plain = i;
		trigger_fire(&k->trigger, now(), 0);
		deadline = deadline_from_now();
		pthread_mutex_lock(&lock);
		while (k->plain_seen < i && good)
			good = wait_turn(&deadline);
		pthread_mutex_unlock(&lock);
	}
	pthread_mutex_lock(&lock);
	good = good && settle(k, &deadline);
	*ret_runs = k->begun - begun;
	pthread_mutex_unlock(&lock);
	return good;
}

static void hand_over(void)
{
	uint64_t runs;

	check(hand_over_all(&tasks[0], &runs), "what was written before a fire is seen by its run");
	check(runs == HANDOVERS, "one fire, one run");
}

int main(void)
{
	const char *given = getenv("PULLET_SEED");
	pthread_t owner;

	if (given)
		seed = strtoull(given, NULL, 10);
	wake_fd = eventfd(0, EFD_CLOEXEC);
	if (wake_fd < 0 || pthread_barrier_init(&barrier, NULL, FIRERS + 1) != 0)
		return 1;
	trigger_queue_init(&queue, wake, NULL);
	wheel_init(&wheel, now());
	for (unsigned i = 0; i < TRIGGERS; i++) {
		trigger_init(&tasks[i].trigger, &queue);
		wheel_timer_init(&tasks[i].due);
		wheel_timer_init(&tasks[i].over);
	}
	pthread_create(&owner, NULL, own, NULL);
	storm();
	hand_over();
	pthread_mutex_lock(&lock);
	stopping = true;
	pthread_mutex_unlock(&lock);
	wake(NULL);
	pthread_join(owner, NULL);
	pthread_barrier_destroy(&barrier);
	close(wake_fd);
	printf("%u passed, %u failed\n", passed, failed);
	return failed != 0;
}

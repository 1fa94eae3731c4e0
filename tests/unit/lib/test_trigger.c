/*
 * The trigger's rules, one case each, on a virtual clock; the owner is the test itself. Then
 * against a model, which keeps in plain variables what was said last; and with threads and a signal
 * handler that call at the same time, for the swaps that fail. (More of those: tests/stress.)
 */
#include <assert.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include <cmocka.h>

#include "lib/trigger.h"
#include "tests/unit/fixture/model_random.h"

#define MINUTES UINT64_C(60000)
#define MOMENT_MAX ((UINT64_C(1) << 59) - 1)

#define STEPS 1500000
#define TRIGGERS 3
#define FIRERS 2
#define FIRES 100000 /* of each firer; every other one is a hint */
#define INTERRUPTIONS 3000
#define LOOPS 1000000 /* if there are not that many */
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* What assert() calls: lets expect_assert_failure() see it. */
void __assert_fail(const char *expression, const char *file, unsigned line, const char *function)
{
	(void)function;
	mock_assert(0, expression, file, (int)line);
	abort();
}

struct fixture {
	struct trigger_queue queue;
	struct trigger t;
	unsigned wakes;
};

static void count_wake(void *arg)
{
	((struct fixture *)arg)->wakes++;
}

static void prepare(struct fixture *f)
{
	f->wakes = 0;
	trigger_queue_init(&f->queue, count_wake, f);
	trigger_init(&f->t, &f->queue);
}

static void assert_due(const struct trigger *t, uint64_t expected_ms)
{
	uint64_t due_ms = 0;

	assert_true(trigger_due(t, &due_ms));
	assert_int_equal(due_ms, expected_ms);
}

static void assert_not_due(const struct trigger *t)
{
	uint64_t due_ms = 4711;

	assert_false(trigger_due(t, &due_ms));
	assert_int_equal(due_ms, 4711);
	assert_false(trigger_begin((struct trigger *)t, MOMENT_MAX));
}

/* A run that began at 1000 and is on. */
static void prepare_running(struct fixture *f)
{
	prepare(f);
	trigger_fire(&f->t, 1000, 0);
	assert_ptr_equal(trigger_queue_take(&f->queue), &f->t);
	assert_true(trigger_begin(&f->t, 1000));
	assert_true(trigger_running(&f->t));
}

static void init__is_suspended(void **state)
{
	struct fixture f;

	(void)state;
	prepare(&f);
	assert_null(trigger_queue_take(&f.queue));
	assert_not_due(&f.t);
	assert_false(trigger_running(&f.t));
}

static void fire__runs_after_its_delay_and_not_before(void **state)
{
	struct fixture f;

	(void)state;
	prepare(&f);
	trigger_fire(&f.t, 1000, 500);
	assert_due(&f.t, 1500);
	assert_false(trigger_begin(&f.t, 1499));
	assert_due(&f.t, 1500);
	assert_true(trigger_begin(&f.t, 1500));
	assert_not_due(&f.t);
}

static void fire__last_one_overrides_all_earlier_ones(void **state)
{
	struct fixture f;

	(void)state;
	prepare(&f);
	trigger_fire(&f.t, 1000, 0);
	trigger_fire(&f.t, 1000, 5 * MINUTES);
	assert_due(&f.t, 1000 + 5 * MINUTES);
	assert_false(trigger_begin(&f.t, 2000));
	trigger_fire(&f.t, 2000, 10);
	assert_due(&f.t, 2010);
}

static void suspend__overrides_all_earlier_fires__until_the_next(void **state)
{
	struct fixture f;

	(void)state;
	prepare(&f);
	trigger_fire(&f.t, 1000, 0);
	trigger_suspend(&f.t);
	assert_not_due(&f.t);
	trigger_fire(&f.t, 1000, 7);
	assert_due(&f.t, 1007);
}

static void end__next_delay__leads_to_the_next_run(void **state)
{
	struct fixture f;

	(void)state;
	prepare_running(&f);
	trigger_end(&f.t, 1200, 300);
	assert_false(trigger_running(&f.t));
	assert_due(&f.t, 1500);
	assert_true(trigger_begin(&f.t, 1500));
	trigger_end(&f.t, 1500, 0);
	assert_true(trigger_begin(&f.t, 1500));
}

static void end__no_next__waits_for_a_fire(void **state)
{
	struct fixture f;

	(void)state;
	prepare_running(&f);
	trigger_end(&f.t, 1200, TRIGGER_NO_NEXT);
	assert_not_due(&f.t);
	trigger_fire(&f.t, 1300, 0);
	assert_due(&f.t, 1300);
}

static void begin__while_running__never_starts_a_second_run(void **state)
{
	struct fixture f;

	(void)state;
	prepare_running(&f);
	trigger_fire(&f.t, 1100, 0);
	for (unsigned i = 0; i < 3; i++)
		assert_false(trigger_begin(&f.t, 1100 + i));
	assert_true(trigger_running(&f.t));
}

/* What falls due during the run leads to one more, whether the owner has looked meanwhile or not.
 */
static void check_one_more_run(unsigned fires, bool owner_looks)
{
	struct fixture f;

	prepare_running(&f);
	for (unsigned i = 0; i < fires; i++) {
		trigger_fire(&f.t, 1100 + i, 0);
		if (owner_looks) {
			assert_false(trigger_begin(&f.t, 1100 + i));
			assert_not_due(&f.t); /* reserved: no timer is needed */
		}
	}
	trigger_end(&f.t, 2000, 30000);
	assert_true(trigger_begin(&f.t, 2000));
	trigger_end(&f.t, 2100, TRIGGER_NO_NEXT);
	assert_not_due(&f.t);
}

static void fire__due_while_running__causes_exactly_one_more_run(void **state)
{
	(void)state;
	check_one_more_run(1, false);
	check_one_more_run(1, true);
	check_one_more_run(5, false);
	check_one_more_run(5, true);
}

static void end__after_the_one_more_run__its_own_delay_counts_again(void **state)
{
	struct fixture f;

	(void)state;
	prepare_running(&f);
	trigger_fire(&f.t, 1100, 0);
	assert_false(trigger_begin(&f.t, 1100));
	trigger_end(&f.t, 1200, 30000);
	assert_due(&f.t, 1200);
	assert_true(trigger_begin(&f.t, 1200));
	trigger_end(&f.t, 1300, 30000);
	assert_due(&f.t, 31300);
}

static void fire__while_running_for_later_than_the_end__keeps_its_moment(void **state)
{
	struct fixture f;

	(void)state;
	prepare_running(&f);
	trigger_fire(&f.t, 1100, 5000);
	assert_due(&f.t, 6100);
	assert_false(trigger_begin(&f.t, 1200));
	trigger_end(&f.t, 1300, 10);
	assert_due(&f.t, 6100);
}

static void fire__after_a_reservation__overrides_it(void **state)
{
	struct fixture f;

	(void)state;
	prepare_running(&f);
	trigger_fire(&f.t, 1100, 0);
	assert_false(trigger_begin(&f.t, 1100));
	trigger_fire(&f.t, 1200, 5 * MINUTES);
	trigger_end(&f.t, 1300, 10);
	assert_due(&f.t, 1200 + 5 * MINUTES);
}

static void suspend__after_a_reservation__overrides_it(void **state)
{
	struct fixture f;

	(void)state;
	prepare_running(&f);
	trigger_fire(&f.t, 1100, 0);
	assert_false(trigger_begin(&f.t, 1100));
	trigger_suspend(&f.t);
	trigger_end(&f.t, 1300, 10);
	assert_not_due(&f.t);
}

static void suspend__while_running__voids_the_next_delay_and_lets_the_run_be(void **state)
{
	struct fixture f;

	(void)state;
	prepare_running(&f);
	trigger_suspend(&f.t);
	assert_true(trigger_running(&f.t));
	trigger_end(&f.t, 1300, 10);
	assert_not_due(&f.t);
	trigger_fire(&f.t, 1400, 1);
	assert_due(&f.t, 1401);
	assert_true(trigger_begin(&f.t, 1401));
}

static void suspend__before_the_run__does_not_void_a_later_delay(void **state)
{
	struct fixture f;

	(void)state;
	prepare(&f);
	trigger_suspend(&f.t);
	trigger_fire(&f.t, 1000, 0);
	assert_true(trigger_begin(&f.t, 1000));
	trigger_end(&f.t, 1100, 10);
	assert_due(&f.t, 1110);
}

static void fire__moment_too_late_for_the_word__saturates(void **state)
{
	struct fixture f;

	(void)state;
	prepare(&f);
	trigger_fire(&f.t, 1000, UINT64_MAX);
	assert_due(&f.t, MOMENT_MAX);
	trigger_fire(&f.t, UINT64_MAX, 1);
	assert_due(&f.t, MOMENT_MAX);
	trigger_fire(&f.t, MOMENT_MAX - 5, 5);
	assert_due(&f.t, MOMENT_MAX);
	trigger_fire(&f.t, MOMENT_MAX - 5, 4);
	assert_due(&f.t, MOMENT_MAX - 1);
	assert_true(trigger_begin(&f.t, MOMENT_MAX));
	trigger_end(&f.t, MOMENT_MAX, TRIGGER_NO_NEXT - 1);
	assert_due(&f.t, MOMENT_MAX);
}

/* ---- hints ---- */

static void prepare_idle(struct fixture *f, uint64_t next_delay_ms)
{
	prepare_running(f);
	trigger_end(&f->t, 1000, next_delay_ms);
}

static void hint__later_than_what_is_due__changes_nothing_and_wakes_nobody(void **state)
{
	struct fixture f;

	(void)state;
	prepare_idle(&f, 2000);
	f.wakes = 0;
	trigger_hint(&f.t, 1000, 60 * MINUTES);
	trigger_hint(&f.t, 1000, 2000);
	assert_due(&f.t, 3000);
	assert_int_equal(f.wakes, 0);
	assert_null(trigger_queue_take(&f.queue));
}

static void hint__sooner_than_what_is_due__brings_it_forward(void **state)
{
	struct fixture f;

	(void)state;
	prepare_idle(&f, 2000);
	f.wakes = 0;
	trigger_hint(&f.t, 1000, 1999);
	assert_due(&f.t, 2999);
	assert_int_equal(f.wakes, 1);
	assert_ptr_equal(trigger_queue_take(&f.queue), &f.t);
	trigger_hint(&f.t, 1001, 0);
	trigger_hint(&f.t, 1002, 0);
	assert_due(&f.t, 1001);
	assert_int_equal(f.wakes, 2);
}

static void hint__with_nothing_due__sets_a_moment(void **state)
{
	struct fixture f;

	(void)state;
	prepare_idle(&f, TRIGGER_NO_NEXT);
	assert_not_due(&f.t);
	trigger_hint(&f.t, 1000, 70);
	assert_due(&f.t, 1070);
	assert_ptr_equal(trigger_queue_take(&f.queue), &f.t);
	assert_true(trigger_begin(&f.t, 1070));
}

static void hint__after_an_order__brings_it_forward_but_does_not_put_it_off(void **state)
{
	struct fixture f;

	(void)state;
	prepare(&f);
	trigger_fire(&f.t, 1000, 0);
	trigger_hint(&f.t, 1000, 18000);
	assert_due(&f.t, 1000);
	trigger_fire(&f.t, 1000, 5 * MINUTES);
	trigger_hint(&f.t, 1000, 18000);
	assert_due(&f.t, 19000);
}

static void order__after_a_hint__overrides_it(void **state)
{
	struct fixture f;

	(void)state;
	prepare_idle(&f, 2000);
	trigger_hint(&f.t, 1000, 100);
	trigger_fire(&f.t, 1000, 5 * MINUTES);
	assert_due(&f.t, 1000 + 5 * MINUTES);
	trigger_hint(&f.t, 1000, 100);
	trigger_suspend(&f.t);
	assert_not_due(&f.t);
}

static void hint__while_suspended__is_not_heard(void **state)
{
	struct fixture f;

	(void)state;
	prepare(&f); /* nobody has fired it yet */
	trigger_hint(&f.t, 1000, 0);
	assert_not_due(&f.t);
	assert_int_equal(f.wakes, 0);
	prepare_idle(&f, 2000);
	trigger_suspend(&f.t);
	trigger_hint(&f.t, 1000, 0);
	assert_not_due(&f.t);
	trigger_fire(&f.t, 1000, 10);
	trigger_hint(&f.t, 1000, 5);
	assert_due(&f.t, 1005);
}

static void hint__after_a_suspend_during_the_run__is_not_heard_then_nor_after_it(void **state)
{
	struct fixture f;

	(void)state;
	prepare_running(&f);
	trigger_suspend(&f.t);
	trigger_hint(&f.t, 1100, 0);
	trigger_end(&f.t, 1200, 10);
	assert_not_due(&f.t);
	trigger_hint(&f.t, 1300, 0);
	assert_not_due(&f.t);
}

static void hint__due_while_running__causes_exactly_one_more_run(void **state)
{
	struct fixture f;

	(void)state;
	for (unsigned looks = 0; looks < 2; looks++) {
		prepare_running(&f);
		trigger_hint(&f.t, 1100, 0);
		if (looks) {
			assert_false(trigger_begin(&f.t, 1100));
			trigger_hint(&f.t, 1150, 0); /* the run that is reserved is soon enough */
			assert_not_due(&f.t);
		}
		trigger_end(&f.t, 2000, 30000);
		assert_true(trigger_begin(&f.t, 2000));
		trigger_end(&f.t, 2100, 30000);
		assert_due(&f.t, 32100);
	}
}

static void hint__after_a_reservation__leaves_it(void **state)
{
	struct fixture f;

	(void)state;
	prepare_running(&f);
	trigger_fire(&f.t, 1100, 0);
	assert_false(trigger_begin(&f.t, 1100));
	trigger_hint(&f.t, 1200, 5 * MINUTES);
	trigger_end(&f.t, 1300, 30000);
	assert_due(&f.t, 1300);
}

static void end__own_delay__counts_if_it_ends_before_the_hint(void **state)
{
	struct fixture f;

	(void)state;
	prepare_running(&f);
	trigger_hint(&f.t, 1100, 5 * MINUTES);
	trigger_end(&f.t, 1300, 2000);
	assert_due(&f.t, 3300);
	assert_true(trigger_begin(&f.t, 3300));
	trigger_end(&f.t, 3400, TRIGGER_NO_NEXT);
	assert_not_due(&f.t);
}

static void end__own_delay__does_not_put_a_sooner_hint_off(void **state)
{
	struct fixture f;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		prepare_running(&f);
		trigger_hint(&f.t, 1100, 900);
		trigger_end(&f.t, 1300, i ? TRIGGER_NO_NEXT : 2000);
		assert_due(&f.t, 2000);
	}
}

static void end__own_delay__stays_void_when_a_hint_follows_an_order(void **state)
{
	struct fixture f;

	(void)state;
	prepare_running(&f);
	trigger_fire(&f.t, 1100, 5 * MINUTES);
	trigger_hint(&f.t, 1100, 4 * MINUTES);
	trigger_end(&f.t, 1300, 10);
	assert_due(&f.t, 1100 + 4 * MINUTES);
}

static void hint__moment_too_late_for_the_word__saturates(void **state)
{
	struct fixture f;

	(void)state;
	prepare_idle(&f, TRIGGER_NO_NEXT);
	trigger_hint(&f.t, 1000, UINT64_MAX);
	assert_due(&f.t, MOMENT_MAX);
	trigger_hint(&f.t, UINT64_MAX, 1);
	assert_due(&f.t, MOMENT_MAX);
}

/* ---- the queue ---- */

static void queue__many_triggers__come_oldest_first_with_one_wake(void **state)
{
	struct fixture f;
	struct trigger more[3];

	(void)state;
	prepare(&f);
	for (unsigned i = 0; i < 3; i++) {
		trigger_init(&more[i], &f.queue);
		trigger_fire(&more[i], 1000, i);
	}
	assert_int_equal(f.wakes, 1);
	assert_ptr_equal(trigger_queue_take(&f.queue), &more[0]);
	trigger_suspend(&f.t); /* handed over while others are being taken */
	trigger_fire(&more[0], 1000, 0);
	assert_int_equal(f.wakes, 2);
	assert_ptr_equal(trigger_queue_take(&f.queue), &more[1]);
	assert_ptr_equal(trigger_queue_take(&f.queue), &more[2]);
	assert_ptr_equal(trigger_queue_take(&f.queue), &f.t);
	assert_ptr_equal(trigger_queue_take(&f.queue), &more[0]);
	assert_null(trigger_queue_take(&f.queue));
	assert_int_equal(f.wakes, 2);
}

static void queue__not_yet_taken__stays_one_entry_through_a_run(void **state)
{
	struct fixture f;

	(void)state;
	prepare(&f);
	trigger_fire(&f.t, 1000, 0);
	assert_true(trigger_begin(&f.t, 1000));
	trigger_fire(&f.t, 1000, 0);
	assert_false(trigger_begin(&f.t, 1000));
	trigger_end(&f.t, 1000, 0);
	trigger_suspend(&f.t);
	assert_int_equal(f.wakes, 1);
	assert_ptr_equal(trigger_queue_take(&f.queue), &f.t);
	assert_null(trigger_queue_take(&f.queue));
	assert_not_due(&f.t);
}

static void calls__a_million_times__are_one_entry_and_no_allocation(void **state)
{
	struct mallinfo2 before, after;
	struct fixture f;

	(void)state;
	prepare(&f);
	before = mallinfo2();
	for (uint64_t i = 0; i < 1000000; i++) {
		trigger_hint(&f.t, i, 0);
		trigger_fire(&f.t, i, 5 * MINUTES);
	}
	after = mallinfo2();
	assert_int_equal(after.uordblks, before.uordblks);
	assert_int_equal(after.hblkhd, before.hblkhd);
	assert_int_equal(f.wakes, 1);
	assert_ptr_equal(trigger_queue_take(&f.queue), &f.t);
	assert_null(trigger_queue_take(&f.queue));
	assert_due(&f.t, 999999 + 5 * MINUTES);
}

static void end__without_begin__is_an_own_bug(void **state)
{
	struct fixture f;

	(void)state;
	prepare(&f);
	expect_assert_failure(trigger_end(&f.t, 1000, 0));
	trigger_fire(&f.t, 1000, 0);
	expect_assert_failure(trigger_end(&f.t, 1000, 0));
}

/* ---- against the model ---- */

static struct trigger_queue queue;
static struct trigger triggers[TRIGGERS];
static unsigned wakes;

static struct model_trigger {
	bool armed, running, reserved, ordered, suspended;
	uint64_t due_ms; /* if armed */
} model[TRIGGERS];

static struct {
	uint64_t now_ms;
	unsigned wakes;
	unsigned queue[TRIGGERS], queued, seen; /* oldest first; the first `seen` were looked at */
} world;

static void count_model_wake(void *arg)
{
	(void)arg;
	wakes++;
}

static uint64_t moment_after(uint64_t delay_ms)
{
	if (world.now_ms > MOMENT_MAX || delay_ms > MOMENT_MAX - world.now_ms)
		return MOMENT_MAX;
	return world.now_ms + delay_ms;
}

static uint64_t random_delay(void)
{
	switch (random_below(16)) {
	case 0:
		return UINT64_MAX - 1;
	case 1:
		return MOMENT_MAX - world.now_ms; /* the last moment there is, or nonsense */
	case 2:
		return random_bits() >> random_below(64);
	default:
		return random_below(2) ? random_below(30) : 0;
	}
}

static void start_over(void)
{
	static const uint64_t starts_ms[] = {0, 1000, UINT64_C(1) << 58, MOMENT_MAX - 1000};

	memset(model, 0, sizeof(model));
	memset(&world, 0, sizeof(world));
	world.now_ms = starts_ms[random_below(COUNT(starts_ms))];
	wakes = 0;
	trigger_queue_init(&queue, count_model_wake, NULL);
	for (unsigned i = 0; i < TRIGGERS; i++) {
		trigger_init(&triggers[i], &queue);
		model[i].suspended = true;
	}
}

static void model_hand_over(unsigned i)
{
	for (unsigned at = 0; at < world.queued; at++)
		if (world.queue[at] == i)
			return;
	if (world.queued == world.seen)
		world.wakes++;
	world.queue[world.queued++] = i;
}

static void model_order(unsigned i, bool armed, uint64_t due_ms)
{
	model[i] = (struct model_trigger){.armed = armed,
		.due_ms = due_ms,
		.running = model[i].running,
		.ordered = true,
		.suspended = !armed};
	model_hand_over(i);
}

/* At the latest then. True: it comes sooner for that. */
static bool model_bring_forward(struct model_trigger *m, uint64_t due_ms)
{
	if (m->armed && m->due_ms <= due_ms)
		return false;
	m->armed = true;
	m->due_ms = due_ms;
	return true;
}

static void fire_one(unsigned i)
{
	uint64_t delay_ms = random_delay();

	trigger_fire(&triggers[i], world.now_ms, delay_ms);
	model_order(i, true, moment_after(delay_ms));
}

static void hint_one(unsigned i)
{
	uint64_t delay_ms = random_delay();
	struct model_trigger *m = &model[i];

	trigger_hint(&triggers[i], world.now_ms, delay_ms);
	if (!m->suspended && !m->reserved && model_bring_forward(m, moment_after(delay_ms)))
		model_hand_over(i);
}

static void suspend_one(unsigned i)
{
	trigger_suspend(&triggers[i]);
	model_order(i, false, 0);
}

static void take_one(unsigned unused)
{
	struct trigger *t = trigger_queue_take(&queue);

	(void)unused;
	CHECK(t == (world.queued ? &triggers[world.queue[0]] : NULL));
	if (!t)
		return;
	if (world.seen == 0)
		world.seen = world.queued;
	world.seen--;
	world.queued--;
	memmove(world.queue, world.queue + 1, world.queued * sizeof(world.queue[0]));
}

static void begin_one(unsigned i)
{
	struct model_trigger *m = &model[i];
	bool due = m->armed && m->due_ms <= world.now_ms;

	CHECK(trigger_begin(&triggers[i], world.now_ms) == (due && !m->running));
	if (!due)
		return;
	m->armed = false;
	if (m->running) {
		m->reserved = true;
	} else {
		m->running = true;
		m->ordered = false;
	}
}

static void end_one(unsigned i)
{
	struct model_trigger *m = &model[i];
	uint64_t delay_ms = random_below(4) ? random_delay() : TRIGGER_NO_NEXT;

	if (!m->running)
		return;
	trigger_end(&triggers[i], world.now_ms, delay_ms);
	if (m->reserved)
		model_bring_forward(m, moment_after(0));
	else if (!m->ordered && delay_ms != TRIGGER_NO_NEXT)
		model_bring_forward(m, moment_after(delay_ms));
	m->running = m->reserved = false;
}

static void pass_time(unsigned i)
{
	if (random_below(2))
		world.now_ms += random_below(40);
	else if (model[i].armed && model[i].due_ms > world.now_ms && random_below(64) == 0)
		world.now_ms = model[i].due_ms - random_below(2);
}

static void compare_queue(void)
{
	const struct trigger *t = queue.taken;
	unsigned i;

	for (i = 0; i < world.seen; i++, t = t->next)
		CHECK(t == &triggers[world.queue[i]]);
	CHECK(!t);
	t = atomic_load(&queue.head);
	for (i = world.queued; i > world.seen; i--, t = t->next)
		CHECK(t == &triggers[world.queue[i - 1]]);
	CHECK(!t);
	CHECK(wakes == world.wakes);
}

static void compare_triggers(void)
{
	for (unsigned i = 0; i < TRIGGERS; i++) {
		uint64_t due_ms = 4711;

		CHECK(trigger_due(&triggers[i], &due_ms) == model[i].armed);
		CHECK(due_ms == (model[i].armed ? model[i].due_ms : 4711));
		CHECK(trigger_running(&triggers[i]) == model[i].running);
	}
}

static void random_operations__agree_with_the_plain_variables(void **state)
{
	static void (*const operations[])(unsigned i) = {fire_one, hint_one, hint_one, suspend_one,
		take_one, take_one, begin_one, begin_one, end_one, pass_time};

	(void)state;
	model_random_start();
	start_over();
	for (; model_random.step < STEPS; model_random.step++) {
		operations[random_below(COUNT(operations))]((unsigned)random_below(TRIGGERS));
		compare_queue();
		compare_triggers();
		if (random_below(1000) == 0)
			start_over();
	}
}

/* ---- calls at the same time ---- */

static _Atomic unsigned said[FIRERS]; /* number of its latest call; told without an order */
static _Atomic unsigned firing;

static void *call_many(void *arg)
{
	_Atomic unsigned *own = arg;

	for (unsigned i = 1; i <= FIRES; i++) {
		atomic_store_explicit(own, i, memory_order_relaxed);
		(i & 1 ? trigger_fire : trigger_hint)(&triggers[i % TRIGGERS], 1000, 0);
	}
	for (unsigned i = 0; i < TRIGGERS; i++)
		trigger_hint(&triggers[i], 1000, 0);
	firing--;
	return NULL;
}

static void ignore_wake(void *arg)
{
	(void)arg;
}

static void prepare_storm(void)
{
	trigger_queue_init(&queue, ignore_wake, NULL);
	for (unsigned i = 0; i < TRIGGERS; i++)
		trigger_init(&triggers[i], &queue);
	for (unsigned n = 0; n < FIRERS; n++)
		said[n] = 0;
}

/* The owner: whatever is handed over runs until it is no more due. True if there was any. */
static bool run_all(unsigned heard[TRIGGERS][FIRERS])
{
	struct trigger *t;
	bool any = false;

	while ((t = trigger_queue_take(&queue))) {
		any = true;
		while (trigger_begin(t, 1000)) {
			for (unsigned n = 0; n < FIRERS; n++)
				heard[t - triggers][n] =
					atomic_load_explicit(&said[n], memory_order_relaxed);
			trigger_begin(t, 1000); /* reserves, if somebody has fired already */
			trigger_end(t, 1000, TRIGGER_NO_NEXT);
		}
	}
	return any;
}

static void calls__by_threads_at_the_same_time__last_run_hears_all(void **state)
{
	unsigned heard[TRIGGERS][FIRERS] = {{0}};
	pthread_t threads[FIRERS];
	bool over;

	(void)state;
	prepare_storm();
	firing = FIRERS;
	for (unsigned n = 0; n < FIRERS; n++)
		assert_int_equal(pthread_create(&threads[n], NULL, call_many, &said[n]), 0);
	do
		over = firing == 0;
	while (run_all(heard) || !over);
	for (unsigned n = 0; n < FIRERS; n++)
		pthread_join(threads[n], NULL);
	for (unsigned i = 0; i < TRIGGERS; i++) {
		assert_not_due(&triggers[i]);
		for (unsigned n = 0; n < FIRERS; n++)
			assert_int_equal(heard[i][n], FIRES);
	}
}

/* Interrupts whatever the owner is about to swap. */
static void call_from_signal(int signal_number)
{
	unsigned stamp = atomic_fetch_add_explicit(&said[0], 1, memory_order_relaxed) + 1;

	(void)signal_number;
	for (unsigned i = 0; i < TRIGGERS; i++)
		(stamp & 1 ? trigger_fire : trigger_hint)(&triggers[i], 1000 - stamp % 1000, 0);
}

/* Once nothing is handed over any more, all that was said before has led to a run. */
static void assert_nothing_missed(unsigned heard[TRIGGERS][FIRERS])
{
	unsigned before;

	do
		before = said[0];
	while (run_all(heard));
	for (unsigned i = 0; i < TRIGGERS; i++)
		assert_true(heard[i][0] >= before);
}

/* Swaps that fail, on a single processor, too: there two threads hardly ever meet. */
static void calls__from_a_signal_handler__last_run_hears_all(void **state)
{
	const struct sigaction fire = {.sa_handler = call_from_signal, .sa_flags = SA_RESTART};
	const struct itimerval often = {{0, 20}, {0, 20}}, never = {{0, 0}, {0, 0}};
	unsigned heard[TRIGGERS][FIRERS] = {{0}};
	struct sigaction before;

	(void)state;
	prepare_storm();
	assert_int_equal(sigaction(SIGALRM, &fire, &before), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	for (unsigned i = 0; i < LOOPS && said[0] < INTERRUPTIONS; i++) {
		for (unsigned n = 0; n < TRIGGERS; n++)
			trigger_fire(&triggers[n], 1000, 0);
		if (i % 2)
			run_all(heard);
		else
			assert_nothing_missed(heard);
	}
	assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
	assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
	assert_nothing_missed(heard);
	assert_true(said[0] > 0);
	for (unsigned i = 0; i < TRIGGERS; i++)
		assert_not_due(&triggers[i]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(init__is_suspended),
		cmocka_unit_test(fire__runs_after_its_delay_and_not_before),
		cmocka_unit_test(fire__last_one_overrides_all_earlier_ones),
		cmocka_unit_test(suspend__overrides_all_earlier_fires__until_the_next),
		cmocka_unit_test(end__next_delay__leads_to_the_next_run),
		cmocka_unit_test(end__no_next__waits_for_a_fire),
		cmocka_unit_test(begin__while_running__never_starts_a_second_run),
		cmocka_unit_test(fire__due_while_running__causes_exactly_one_more_run),
		cmocka_unit_test(end__after_the_one_more_run__its_own_delay_counts_again),
		cmocka_unit_test(fire__while_running_for_later_than_the_end__keeps_its_moment),
		cmocka_unit_test(fire__after_a_reservation__overrides_it),
		cmocka_unit_test(suspend__after_a_reservation__overrides_it),
		cmocka_unit_test(suspend__while_running__voids_the_next_delay_and_lets_the_run_be),
		cmocka_unit_test(suspend__before_the_run__does_not_void_a_later_delay),
		cmocka_unit_test(fire__moment_too_late_for_the_word__saturates),
		cmocka_unit_test(hint__later_than_what_is_due__changes_nothing_and_wakes_nobody),
		cmocka_unit_test(hint__sooner_than_what_is_due__brings_it_forward),
		cmocka_unit_test(hint__with_nothing_due__sets_a_moment),
		cmocka_unit_test(hint__after_an_order__brings_it_forward_but_does_not_put_it_off),
		cmocka_unit_test(order__after_a_hint__overrides_it),
		cmocka_unit_test(hint__while_suspended__is_not_heard),
		cmocka_unit_test(
			hint__after_a_suspend_during_the_run__is_not_heard_then_nor_after_it),
		cmocka_unit_test(hint__due_while_running__causes_exactly_one_more_run),
		cmocka_unit_test(hint__after_a_reservation__leaves_it),
		cmocka_unit_test(end__own_delay__counts_if_it_ends_before_the_hint),
		cmocka_unit_test(end__own_delay__does_not_put_a_sooner_hint_off),
		cmocka_unit_test(end__own_delay__stays_void_when_a_hint_follows_an_order),
		cmocka_unit_test(hint__moment_too_late_for_the_word__saturates),
		cmocka_unit_test(queue__many_triggers__come_oldest_first_with_one_wake),
		cmocka_unit_test(queue__not_yet_taken__stays_one_entry_through_a_run),
		cmocka_unit_test(calls__a_million_times__are_one_entry_and_no_allocation),
		cmocka_unit_test(end__without_begin__is_an_own_bug),
		cmocka_unit_test(random_operations__agree_with_the_plain_variables),
		cmocka_unit_test(calls__by_threads_at_the_same_time__last_run_hears_all),
		cmocka_unit_test(calls__from_a_signal_handler__last_run_hears_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

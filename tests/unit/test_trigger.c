/*
 * The trigger's rules, one case each, on a virtual clock; the owner is the test itself.
 */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../lib/trigger.h"

#define MINUTES UINT64_C(60000)
#define MOMENT_MAX ((UINT64_C(1) << 59) - 1)

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

static void fire__a_million_times__is_one_entry_and_no_allocation(void **state)
{
	struct mallinfo2 before, after;
	struct fixture f;

	(void)state;
	prepare(&f);
	before = mallinfo2();
	for (uint64_t i = 0; i < 1000000; i++)
		trigger_fire(&f.t, i, 5 * MINUTES);
	after = mallinfo2();
	assert_int_equal(after.uordblks, before.uordblks);
	assert_int_equal(after.hblkhd, before.hblkhd);
	assert_int_equal(f.wakes, 1);
	assert_ptr_equal(trigger_queue_take(&f.queue), &f.t);
	assert_null(trigger_queue_take(&f.queue));
	assert_due(&f.t, 999999 + 5 * MINUTES);
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
		cmocka_unit_test(queue__many_triggers__come_oldest_first_with_one_wake),
		cmocka_unit_test(queue__not_yet_taken__stays_one_entry_through_a_run),
		cmocka_unit_test(fire__a_million_times__is_one_entry_and_no_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

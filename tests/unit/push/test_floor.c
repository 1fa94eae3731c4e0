/*
 * The floor between pulls that messages cause: one case each, then whole floods on a virtual clock,
 * in which a message comes at every moment.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "push/floor.h"

#define START_MS UINT64_C(1000000)
#define CONFIGS 2000
#define PULL_MS 3
#define SECOND 1000

static void pull(struct push_floor *f, uint64_t now_ms, bool hinted, bool useful)
{
	push_floor_begin(f, now_ms, hinted);
	push_floor_end(f, now_ms, 1, useful);
}

static void ready__before_the_first_pull__is_past(void **state)
{
	struct push_budget budget = {0};
	struct push_floor f;

	(void)state;
	push_floor_init(&f, 100, &budget);
	assert_true(push_floor_ready_ms(&f, 1) <= 1);
}

static void ready__after_any_pull__is_the_floor_later(void **state)
{
	struct push_floor f;

	(void)state;
	push_floor_init(&f, 100, NULL);
	pull(&f, START_MS, false, false);
	assert_int_equal(push_floor_ready_ms(&f, START_MS + 1), START_MS + 100);
	pull(&f, START_MS + 500, true, true);
	assert_int_equal(push_floor_ready_ms(&f, START_MS + 501), START_MS + 600);
}

static void floor__while_hints_bring_nothing__doubles_to_a_second(void **state)
{
	static const struct {
		uint64_t after_ms, floor_ms;
	} steps[] = {{0, 100}, {4900, 100}, {5000, 200}, {9900, 200}, {10000, 400}, {15000, 800},
		{20000, 1000}, {60000, 1000}, {3600000, 1000}};
	struct push_floor f;
	uint64_t now_ms = START_MS;

	(void)state;
	push_floor_init(&f, 100, NULL);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		for (; now_ms <= START_MS + steps[i].after_ms; now_ms += 100)
			pull(&f, now_ms, true, false);
		assert_int_equal(
			push_floor_ms(&f, START_MS + steps[i].after_ms), steps[i].floor_ms);
	}
}

static void floor__after_a_hint_that_brought_something__is_restored(void **state)
{
	struct push_floor f;

	(void)state;
	push_floor_init(&f, 100, NULL);
	for (uint64_t ms = 0; ms <= 30 * SECOND; ms += SECOND)
		pull(&f, START_MS + ms, true, false);
	pull(&f, START_MS + 31 * SECOND, true, true);
	assert_int_equal(push_floor_ms(&f, START_MS + 40 * SECOND), 100);
}

static void pull__that_ended__is_paid_for_once(void **state)
{
	struct push_budget budget = {0};
	struct push_floor f;
	uint64_t ready_ms;

	(void)state;
	push_floor_init(&f, 1, &budget);
	pull(&f, START_MS, true, false);
	ready_ms = push_floor_ready_ms(&f, START_MS);
	assert_int_equal(ready_ms, START_MS + PUSH_BUDGET_COST_MS);
	push_floor_end(&f, START_MS, 1, false);
	assert_int_equal(push_floor_ready_ms(&f, START_MS), ready_ms);
}

static void floor__after_silence__is_restored_by_the_next_hint(void **state)
{
	struct push_floor f;

	(void)state;
	push_floor_init(&f, 100, NULL);
	for (uint64_t ms = 0; ms <= 30 * SECOND; ms += SECOND)
		pull(&f, START_MS + ms, true, false);
	pull(&f, START_MS + 33 * SECOND, true, false);
	assert_int_equal(push_floor_ms(&f, START_MS + 33 * SECOND), 1000);
	assert_int_equal(push_floor_ms(&f, START_MS + 36 * SECOND + 1), 100);
	pull(&f, START_MS + 37 * SECOND, true, false);
	assert_int_equal(push_floor_ms(&f, START_MS + 37 * SECOND), 100);
}

/* The interval's own pulls neither grow nor restore it. */
static void floor__pulls_without_a_hint__do_not_count(void **state)
{
	struct push_budget budget = {0};
	struct push_floor f;

	(void)state;
	push_floor_init(&f, 100, &budget);
	for (uint64_t ms = 0; ms <= 60 * SECOND; ms += SECOND)
		pull(&f, START_MS + ms, false, false);
	assert_int_equal(push_floor_ms(&f, START_MS + 60 * SECOND), 100);
	assert_int_equal(budget.spent_ms, 0);
	for (uint64_t ms = 61 * SECOND; ms <= 90 * SECOND; ms += SECOND)
		pull(&f, START_MS + ms, true, false);
	pull(&f, START_MS + 90 * SECOND, false, true);
	assert_int_equal(push_floor_ms(&f, START_MS + 90 * SECOND), 1000);
}

static void floor__none_or_longer_than_a_second__stays_as_configured(void **state)
{
	static const uint64_t floors_ms[] = {0, 1000, 60000};
	struct push_floor f;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		push_floor_init(&f, floors_ms[i], NULL);
		for (uint64_t ms = 0; ms <= 300 * SECOND; ms += SECOND)
			pull(&f, START_MS + ms, true, false);
		assert_int_equal(push_floor_ms(&f, START_MS + 300 * SECOND), floors_ms[i]);
	}
}

static void budget__requests_in_vain__keep_all_hints_waiting(void **state)
{
	struct push_budget budget = {0};
	struct push_floor a, b;

	(void)state;
	push_floor_init(&a, 100, &budget);
	push_floor_init(&b, 100, &budget);
	push_floor_begin(&a, START_MS, true);
	assert_true(push_floor_ready_ms(&b, START_MS) <= START_MS);
	push_floor_end(&a, START_MS + 1, 3, false);
	assert_int_equal(push_floor_ready_ms(&b, START_MS), START_MS + 1 + 3 * PUSH_BUDGET_COST_MS);
	push_floor_begin(&a, START_MS + 500, true);
	push_floor_end(&a, START_MS + 500, 1000, false);
	assert_int_equal(push_floor_ready_ms(&b, START_MS), START_MS + 500 + PUSH_BUDGET_MAX_MS);
}

static void budget__what_brought_something__costs_nothing(void **state)
{
	static struct push_floor floors[CONFIGS];
	struct push_budget budget = {0};

	(void)state;
	for (size_t i = 0; i < CONFIGS; i++) {
		push_floor_init(&floors[i], 100, &budget);
		assert_true(push_floor_ready_ms(&floors[i], START_MS) <= START_MS);
		pull(&floors[i], START_MS, true, true);
	}
}

/* ---- floods ---- */

struct flooded {
	struct push_floor floor;
	uint64_t ends_ms; /* of the pull under way; 0 = none is */
	uint64_t last_ms;
};

struct flood {
	unsigned pulls, most; /* in all, and in any second from a full one on */
	uint64_t longest_ms;  /* between the begins of two pulls of one config */
};

/* Messages for all configs at every millisecond; pulls bring nothing. */
static struct flood flood(size_t configs, uint64_t for_ms)
{
	static struct flooded all[CONFIGS];
	static unsigned begun[60 * SECOND];
	struct push_budget budget = {0};
	struct flood r = {0};
	unsigned second = 0;

	for (size_t i = 0; i < configs; i++) {
		all[i] = (struct flooded){.last_ms = START_MS};
		push_floor_init(&all[i].floor, 100, &budget);
	}
	for (uint64_t ms = 0; ms < for_ms; ms++) {
		begun[ms] = 0;
		for (size_t i = 0; i < configs; i++) {
			struct flooded *c = &all[i];
			uint64_t now_ms = START_MS + ms;

			if (c->ends_ms && c->ends_ms <= now_ms) {
				push_floor_end(&c->floor, now_ms, 1, false);
				c->ends_ms = 0;
			}
			if (c->ends_ms || push_floor_ready_ms(&c->floor, now_ms) > now_ms)
				continue;
			push_floor_begin(&c->floor, now_ms, true);
			c->ends_ms = now_ms + PULL_MS;
			if (now_ms - c->last_ms > r.longest_ms)
				r.longest_ms = now_ms - c->last_ms;
			c->last_ms = now_ms;
			begun[ms]++;
		}
		r.pulls += begun[ms];
		second += begun[ms] - (ms >= SECOND ? begun[ms - SECOND] : 0);
		if (second > r.most)
			r.most = second;
	}
	return r;
}

static void flood__of_up_to_ten_configs__is_sixty_a_second_and_hides_nothing_for_long(void **state)
{
	(void)state;
	for (size_t configs = 1; configs <= 10; configs++) {
		struct flood r = flood(configs, 4 * SECOND);

		assert_in_range(r.most, 9, SECOND / PUSH_BUDGET_COST_MS + configs);
		assert_true(configs != 10 || r.most <= 60);
		assert_true(r.pulls <= 4 * 60);
		assert_true(r.longest_ms < 200 - PULL_MS);
	}
}

static void flood__that_goes_on__gets_a_pull_of_each_config_a_second(void **state)
{
	(void)state;
	assert_in_range(flood(1, 60 * SECOND).pulls, 50 + 25 + 13 + 7 + 38, 150);
	assert_in_range(flood(10, 60 * SECOND).pulls, 600, 1300);
	assert_true(flood(10, 60 * SECOND).longest_ms <= 1000);
}

static void flood__of_very_many_configs__is_one_pull_of_each_a_second(void **state)
{
	struct flood r = flood(CONFIGS, 10 * SECOND);

	(void)state;
	assert_in_range(r.pulls, 9 * CONFIGS, 11 * CONFIGS);
	assert_true(r.longest_ms <= SECOND + 2 * PULL_MS);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(ready__before_the_first_pull__is_past),
		cmocka_unit_test(ready__after_any_pull__is_the_floor_later),
		cmocka_unit_test(floor__while_hints_bring_nothing__doubles_to_a_second),
		cmocka_unit_test(floor__after_a_hint_that_brought_something__is_restored),
		cmocka_unit_test(pull__that_ended__is_paid_for_once),
		cmocka_unit_test(floor__after_silence__is_restored_by_the_next_hint),
		cmocka_unit_test(floor__pulls_without_a_hint__do_not_count),
		cmocka_unit_test(floor__none_or_longer_than_a_second__stays_as_configured),
		cmocka_unit_test(budget__requests_in_vain__keep_all_hints_waiting),
		cmocka_unit_test(budget__what_brought_something__costs_nothing),
		cmocka_unit_test(
			flood__of_up_to_ten_configs__is_sixty_a_second_and_hides_nothing_for_long),
		cmocka_unit_test(flood__that_goes_on__gets_a_pull_of_each_config_a_second),
		cmocka_unit_test(flood__of_very_many_configs__is_one_pull_of_each_a_second),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * The supervisor's rules, as tables of outcomes and the delays they lead to, and against a model:
 * the rule itself in 128 bits.
 */
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/supervisor.h"
#include "tests/unit/fixture/model_random.h"

#define S SUPERVISOR_SUCCESS
#define T SUPERVISOR_TIMEOUT
#define R SUPERVISOR_REJECTED
#define F SUPERVISOR_FAILED
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#define STEPS 1500000

/* What assert() calls: lets expect_assert_failure() see it. */
void __assert_fail(const char *expression, const char *file, unsigned line, const char *function)
{
	(void)function;
	mock_assert(0, expression, file, (int)line);
	abort();
}

struct step {
	enum supervisor_outcome outcome;
	uint64_t delay_ms;
};

static void walk(struct supervisor *s, const struct step *steps, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		assert_true(supervisor_end(s, supervisor_begin(s), steps[i].outcome));
		assert_int_equal(supervisor_delay(s), steps[i].delay_ms);
	}
}

static void end__timeouts_double_up_to_the_bound__success_restores(void **state)
{
	static const struct step steps[] = {
		{T, 60000}, {T, 120000}, {T, 240000}, {T, 300000}, {T, 300000}, {S, 30000}};
	struct supervisor s;

	(void)state;
	supervisor_init(&s, 30000, 10);
	assert_int_equal(supervisor_delay(&s), 30000);
	walk(&s, steps, COUNT(steps));
}

static void end__refused_or_rejected__leaves_the_delay_as_it_is(void **state)
{
	static const struct step steps[] = {{F, 30000}, {R, 30000}, {T, 60000}, {F, 60000},
		{R, 60000}, {T, 120000}, {F, 120000}, {S, 30000}, {F, 30000}};
	struct supervisor s;

	(void)state;
	supervisor_init(&s, 30000, 10);
	walk(&s, steps, COUNT(steps));
}

static void end__bound_that_is_no_power_of_two__is_reached_exactly(void **state)
{
	static const struct step steps[] = {{T, 14}, {T, 21}, {T, 21}, {S, 7}};
	static const struct step one[] = {{T, 5}, {T, 5}};
	struct supervisor s;

	(void)state;
	supervisor_init(&s, 7, 3);
	walk(&s, steps, COUNT(steps));
	supervisor_init(&s, 5, 1);
	walk(&s, one, COUNT(one));
}

static void end__product_too_large__saturates(void **state)
{
	static const struct step steps[] = {{T, UINT64_MAX - 1}, {T, UINT64_MAX}, {T, UINT64_MAX}};
	struct supervisor s;

	(void)state;
	supervisor_init(&s, UINT64_MAX / 2, 4000000000u);
	assert_int_equal(s.max_ms, UINT64_MAX);
	walk(&s, steps, COUNT(steps));
}

static void end__each_outcome__is_counted_as_itself(void **state)
{
	static const enum supervisor_outcome outcomes[] = {S, T, T, R, R, R, F, F, F, F};
	struct supervisor s;

	(void)state;
	supervisor_init(&s, 1000, 10);
	for (size_t i = 0; i < COUNT(outcomes); i++) {
		uint64_t run = supervisor_begin(&s);

		assert_int_equal(run, i + 1);
		assert_int_equal(s.in_flight, 1);
		assert_true(supervisor_end(&s, run, outcomes[i]));
		assert_int_equal(s.in_flight, 0);
	}
	assert_int_equal(s.count[S], 1);
	assert_int_equal(s.count[T], 2);
	assert_int_equal(s.count[R], 3);
	assert_int_equal(s.count[F], 4);
	assert_int_equal(s.late, 0);
}

static void assert_thrown_away(struct supervisor *s, uint64_t run, enum supervisor_outcome outcome)
{
	struct supervisor before = *s;

	assert_false(supervisor_end(s, run, outcome));
	assert_int_equal(s->late, before.late + 1);
	before.late++;
	assert_int_equal(s->delay_ms, before.delay_ms);
	assert_int_equal(s->in_flight, before.in_flight);
	assert_memory_equal(s->count, before.count, sizeof(before.count));
}

static void end__after_the_time_limit__throws_the_late_result_away(void **state)
{
	struct supervisor s;
	uint64_t run;

	(void)state;
	supervisor_init(&s, 1000, 10);
	assert_thrown_away(&s, 0, S); /* nothing has begun */
	run = supervisor_begin(&s);
	assert_true(supervisor_end(&s, run, T));
	assert_thrown_away(&s, run, S);
	assert_int_equal(supervisor_delay(&s), 2000);
}

static void end__of_a_run_given_up__leaves_the_newer_one_in_flight(void **state)
{
	struct supervisor s;
	uint64_t old_run, new_run;

	(void)state;
	supervisor_init(&s, 1000, 10);
	old_run = supervisor_begin(&s);
	new_run = supervisor_begin(&s);
	assert_int_equal(s.in_flight, 1);
	assert_thrown_away(&s, old_run, T);
	assert_thrown_away(&s, new_run + 1, T);
	assert_true(supervisor_end(&s, new_run, S));
	assert_int_equal(s.count[S], 1);
	assert_int_equal(s.late, 2);
}

static void jitter__of_a_delay__is_even_on_both_sides(void **state)
{
	static unsigned seen[2001];
	struct supervisor s;

	(void)state;
	supervisor_init(&s, 10000, 10);
	for (uint64_t random = 0; random < 3 * 2001; random++)
		seen[supervisor_jitter(&s, 10000, 10, random) - 9000]++;
	for (unsigned i = 0; i <= 2000; i++)
		assert_int_equal(seen[i], 3);
	assert_int_equal(supervisor_jitter(&s, 10000, 0, UINT64_MAX), 10000);
	assert_int_equal(supervisor_jitter(&s, 50, 50, 0), 25); /* another delay */
	assert_int_equal(supervisor_jitter(&s, 50, 50, 50), 75);
}

static void jitter__at_the_bound__ends_there(void **state)
{
	struct supervisor s;

	(void)state;
	for (unsigned bound = 1; bound <= 20; bound++) {
		supervisor_init(&s, 5000, bound);
		for (unsigned runs = 0; runs < 12; runs++) {
			uint64_t most_ms = 0, least_ms = UINT64_MAX,
				 delay_ms = supervisor_delay(&s);

			for (uint64_t random = 0; random < 60000; random += 7) {
				uint64_t ms = supervisor_jitter(&s, delay_ms, 50, random);

				most_ms = ms > most_ms ? ms : most_ms;
				least_ms = ms < least_ms ? ms : least_ms;
			}
			assert_in_range(most_ms, delay_ms - 7, 5000 * bound);
			assert_in_range(least_ms, delay_ms / 2, delay_ms / 2 + 7);
			supervisor_end(&s, supervisor_begin(&s), T);
		}
	}
	assert_int_equal(supervisor_jitter(&s, UINT64_MAX, 0, 1), 100000); /* another, too */
	supervisor_init(&s, UINT64_MAX, 1);
	assert_true(supervisor_jitter(&s, UINT64_MAX, 100, UINT64_MAX) == UINT64_MAX);
	assert_true(supervisor_jitter(&s, UINT64_MAX, 100, 7) == 7);
	assert_true(supervisor_jitter(&s, UINT64_MAX, 50, 0) > UINT64_MAX / 2);
}

static void assert__own_bugs__end_the_program(void **state)
{
	struct supervisor s;

	(void)state;
	expect_assert_failure(supervisor_init(&s, 0, 1));
	expect_assert_failure(supervisor_init(&s, 1, 0));
	supervisor_init(&s, 1, 1);
	supervisor_begin(&s);
	expect_assert_failure(supervisor_end(&s, 1, SUPERVISOR_OUTCOMES));
	expect_assert_failure(supervisor_jitter(&s, 1, 101, 0));
}

/* ---- against the model ---- */

__extension__ typedef unsigned __int128 wide;

static struct {
	wide interval_ms, bound, delay_ms;
	uint64_t count[SUPERVISOR_OUTCOMES], late, runs;
	bool in_flight;
} model;

static wide smaller(wide a, wide b)
{
	return a < b ? a : b;
}

/* The rule in three lines. */
static wide model_delay(enum supervisor_outcome outcome)
{
	wide most_ms = smaller(model.interval_ms * model.bound, UINT64_MAX);
	wide longer_ms = outcome == T ? smaller(most_ms, 2 * model.delay_ms) : model.delay_ms;

	return outcome == S ? model.interval_ms : longer_ms;
}

static void start_over(struct supervisor *s)
{
	uint64_t interval_ms = (random_bits() >> random_below(64)) | 1;
	unsigned bound = (unsigned)((random_bits() & UINT32_MAX) >> random_below(32)) | 1;

	interval_ms += interval_ms < UINT64_MAX ? random_below(2) : 0; /* even ones, too */
	bound += bound < UINT32_MAX ? (unsigned)random_below(2) : 0;
	memset(&model, 0, sizeof(model));
	model.interval_ms = model.delay_ms = interval_ms;
	model.bound = bound;
	supervisor_init(s, interval_ms, bound);
}

static void end_one(struct supervisor *s)
{
	enum supervisor_outcome outcome =
		random_below(2) ? T : (enum supervisor_outcome)random_below(SUPERVISOR_OUTCOMES);
	/* mostly the run in flight; else one before it, none, or one that is still to come */
	uint64_t run = model.runs + (random_below(4) ? 0 : random_below(5) - 3);
	bool counts = model.in_flight && run == model.runs;

	if (counts) {
		model.delay_ms = model_delay(outcome);
		model.count[outcome]++;
		model.in_flight = false;
	} else {
		model.late++;
	}
	CHECK(supervisor_end(s, run, outcome) == counts);
}

/* A draw is within its percentage of the delay, and within the bound. */
static void check_jitter(const struct supervisor *s)
{
	unsigned percent = (unsigned)random_below(101);
	wide most_ms = smaller(model.interval_ms * model.bound, UINT64_MAX),
	     span_ms = model.delay_ms * percent / 100;
	uint64_t ms = supervisor_jitter(s, supervisor_delay(s), percent, random_bits());

	CHECK(ms <= smaller(most_ms, model.delay_ms + span_ms));
	CHECK(ms >= model.delay_ms - span_ms);
}

static void random_operations__agree_with_the_rule(void **state)
{
	struct supervisor s;

	(void)state;
	model_random_start();
	start_over(&s);
	for (; model_random.step < STEPS; model_random.step++) {
		if (random_below(200) == 0) {
			start_over(&s);
		} else if (random_below(2)) {
			model.in_flight = true;
			CHECK(supervisor_begin(&s) == ++model.runs);
		} else {
			end_one(&s);
		}
		CHECK(supervisor_delay(&s) == model.delay_ms);
		check_jitter(&s);
		CHECK(s.in_flight == model.in_flight && s.run == model.runs);
		CHECK(s.late == model.late);
		for (unsigned i = 0; i < SUPERVISOR_OUTCOMES; i++)
			CHECK(s.count[i] == model.count[i]);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(end__timeouts_double_up_to_the_bound__success_restores),
		cmocka_unit_test(end__refused_or_rejected__leaves_the_delay_as_it_is),
		cmocka_unit_test(end__bound_that_is_no_power_of_two__is_reached_exactly),
		cmocka_unit_test(end__product_too_large__saturates),
		cmocka_unit_test(end__each_outcome__is_counted_as_itself),
		cmocka_unit_test(end__after_the_time_limit__throws_the_late_result_away),
		cmocka_unit_test(end__of_a_run_given_up__leaves_the_newer_one_in_flight),
		cmocka_unit_test(jitter__of_a_delay__is_even_on_both_sides),
		cmocka_unit_test(jitter__at_the_bound__ends_there),
		cmocka_unit_test(assert__own_bugs__end_the_program),
		cmocka_unit_test(random_operations__agree_with_the_rule),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

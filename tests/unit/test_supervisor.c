/*
 * The supervisor's rules, as tables of outcomes and the delays they lead to.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../lib/supervisor.h"

#define S SUPERVISOR_SUCCESS
#define T SUPERVISOR_TIMEOUT
#define R SUPERVISOR_REJECTED
#define F SUPERVISOR_FAILED
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

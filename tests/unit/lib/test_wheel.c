/*
 * The wheel, case by case and against a model: an array sorted by moment and order of scheduling.
 *
 * The model does in linear time what the wheel does in constant time, and is too simple to be
 * wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lib/wheel.h"
#include "tests/unit/fixture/model_random.h"

#define TIMERS 300
#define STEPS 250000 /* of each distribution */
#define MINUTE UINT64_C(60000)
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

_Static_assert(sizeof(void *) != 8 || sizeof(struct wheel_timer) <= 32, "a timer is small");

/* ---- case by case ---- */

static struct wheel wheel;
static struct wheel_timer timers[TIMERS];

static void prepare(uint64_t now_ms)
{
	wheel_init(&wheel, now_ms);
	for (size_t i = 0; i < TIMERS; i++)
		wheel_timer_init(&timers[i]);
}

static void assert_next(uint64_t expected_ms)
{
	uint64_t due_ms = 0;

	assert_true(wheel_next(&wheel, &due_ms));
	assert_int_equal(due_ms, expected_ms);
}

static void assert_empty(void)
{
	uint64_t due_ms;

	assert_int_equal(wheel.count, 0);
	assert_false(wheel_next(&wheel, &due_ms));
	assert_null(wheel_advance(&wheel, UINT64_MAX));
}

static void init__is_empty(void **state)
{
	(void)state;
	prepare(0);
	assert_int_equal(wheel_timer_state(&timers[0]), WHEEL_INIT);
	assert_false(wheel_cancel(&wheel, &timers[0]));
	assert_int_equal(wheel_timer_state(&timers[0]), WHEEL_INIT);
	assert_empty();
}

static void timer__goes_through_its_states(void **state)
{
	struct wheel_timer *t = &timers[0];

	(void)state;
	prepare(1000);
	wheel_schedule(&wheel, t, 1100);
	assert_int_equal(wheel_timer_state(t), WHEEL_SCHEDULED);
	assert_int_equal(wheel_timer_due(t), 1100);
	assert_int_equal(wheel.count, 1);
	assert_true(wheel_cancel(&wheel, t));
	assert_int_equal(wheel_timer_state(t), WHEEL_CANCELLED);
	assert_false(wheel_cancel(&wheel, t));
	assert_int_equal(wheel.count, 0);
	wheel_schedule(&wheel, t, 1200);
	assert_int_equal(wheel_timer_state(t), WHEEL_SCHEDULED);
	assert_null(wheel_advance(&wheel, 1199));
	assert_ptr_equal(wheel_advance(&wheel, 1200), t);
	assert_int_equal(wheel_timer_state(t), WHEEL_EXPIRED);
	assert_false(wheel_cancel(&wheel, t));
	assert_int_equal(wheel_timer_state(t), WHEEL_EXPIRED);
	wheel_schedule(&wheel, t, 1300);
	wheel_schedule(&wheel, t, 1250); /* again: one timer, the later word counts */
	assert_int_equal(wheel.count, 1);
	assert_ptr_equal(wheel_advance(&wheel, 1250), t);
	assert_empty();
}

static void advance__same_millisecond__is_first_in_first_out(void **state)
{
	(void)state;
	prepare(0);
	/* from far (level 2), from nearer, from next to it, and at the moment itself */
	wheel_schedule(&wheel, &timers[0], 10000);
	wheel_schedule(&wheel, &timers[1], 10000);
	assert_null(wheel_advance(&wheel, 9000));
	wheel_schedule(&wheel, &timers[2], 10000);
	assert_null(wheel_advance(&wheel, 9999));
	wheel_schedule(&wheel, &timers[3], 10000);
	assert_ptr_equal(wheel_advance(&wheel, 10000), &timers[0]);
	wheel_schedule(&wheel, &timers[4], 10000);
	for (unsigned i = 1; i < 5; i++)
		assert_ptr_equal(wheel_advance(&wheel, 10000), &timers[i]);
	assert_empty();
}

static void schedule__in_the_past_from_a_handler__overtakes_nothing_due(void **state)
{
	(void)state;
	prepare(0);
	wheel_schedule(&wheel, &timers[0], 10);
	wheel_schedule(&wheel, &timers[1], 20);
	wheel_schedule(&wheel, &timers[2], 5000);
	wheel_schedule(&wheel, &timers[3], 5001);
	assert_ptr_equal(wheel_advance(&wheel, 5000), &timers[0]);
	wheel_schedule(&wheel, &timers[0], 0);
	assert_int_equal(wheel_timer_due(&timers[0]), 5000);
	assert_ptr_equal(wheel_advance(&wheel, 5000), &timers[1]);
	assert_ptr_equal(wheel_advance(&wheel, 5000), &timers[2]);
	assert_ptr_equal(wheel_advance(&wheel, 5000), &timers[0]);
	assert_null(wheel_advance(&wheel, 5000));
	assert_next(5001);
}

static void cancel__of_a_timer_that_is_ready__takes_it_back(void **state)
{
	(void)state;
	prepare(0);
	for (unsigned i = 0; i < 3; i++)
		wheel_schedule(&wheel, &timers[i], 7);
	assert_ptr_equal(wheel_advance(&wheel, 9), &timers[0]);
	assert_next(7); /* past, but still to be handed out */
	assert_true(wheel_cancel(&wheel, &timers[1]));
	wheel_schedule(&wheel, &timers[2], 8);
	assert_int_equal(wheel_timer_due(&timers[2]), 9);
	assert_next(9);
	assert_ptr_equal(wheel_advance(&wheel, 9), &timers[2]);
	assert_empty();
}

static void advance__earlier_time__is_taken_as_the_latest(void **state)
{
	(void)state;
	prepare(500);
	assert_null(wheel_advance(&wheel, 1000));
	assert_null(wheel_advance(&wheel, 10));
	wheel_schedule(&wheel, &timers[0], 700);
	assert_int_equal(wheel_timer_due(&timers[0]), 1000);
	assert_ptr_equal(wheel_advance(&wheel, 10), &timers[0]);
}

static void next__is_exact_on_every_level(void **state)
{
	(void)state;
	prepare(12345);
	for (unsigned bit = 0; bit < 64; bit++)
		wheel_schedule(&wheel, &timers[bit], 12345 + (UINT64_C(1) << bit));
	for (unsigned bit = 0; bit < 63; bit++) {
		assert_next(12345 + (UINT64_C(1) << bit));
		if (bit % 2)
			assert_true(wheel_cancel(&wheel, &timers[bit]));
		else
			assert_ptr_equal(
				wheel_advance(&wheel, wheel_timer_due(&timers[bit])), &timers[bit]);
	}
	assert_next(12345 + (UINT64_C(1) << 63));
}

static void next__of_as_many_as_are_compared_in_one_far_slot__follows_cancels(void **state)
{
	(void)state;
	prepare(0);
	for (unsigned i = 0; i < WHEEL_LOOK; i++)
		wheel_schedule(&wheel, &timers[i], 20000 + (i * 37) % WHEEL_LOOK);
	for (unsigned ms = 0; ms < WHEEL_LOOK; ms++) {
		assert_next(20000 + ms);
		for (unsigned i = 0; i < WHEEL_LOOK; i++)
			if (wheel_timer_due(&timers[i]) == 20000 + ms)
				assert_true(wheel_cancel(&wheel, &timers[i]));
	}
	assert_empty();
}

static void advance__to_the_end_of_time__has_a_place_for_all(void **state)
{
	(void)state;
	prepare(UINT64_MAX - 2);
	wheel_schedule(&wheel, &timers[0], UINT64_MAX);
	wheel_schedule(&wheel, &timers[1], UINT64_MAX - 1);
	assert_next(UINT64_MAX - 1);
	assert_null(wheel_advance(&wheel, UINT64_MAX - 2));
	assert_ptr_equal(wheel_advance(&wheel, UINT64_MAX - 1), &timers[1]);
	assert_null(wheel_advance(&wheel, UINT64_MAX - 1));
	assert_ptr_equal(wheel_advance(&wheel, UINT64_MAX), &timers[0]);
	wheel_schedule(&wheel, &timers[0], 0);
	assert_next(UINT64_MAX);
	assert_ptr_equal(wheel_advance(&wheel, UINT64_MAX), &timers[0]);
	prepare(0);
	wheel_schedule(&wheel, &timers[0], UINT64_MAX);
	assert_null(wheel_advance(&wheel, UINT64_MAX - 1));
	assert_ptr_equal(wheel_advance(&wheel, UINT64_MAX), &timers[0]);
	assert_empty();
}

/* A slot of level 2: 4096 ms wide. */
static void next__after_the_earliest_of_a_crowd_was_moved__is_no_later_than_the_next_one(
	void **state)
{
	unsigned wakes = 0;
	uint64_t next_ms;

	(void)state;
	prepare(0);
	for (unsigned i = 0; i < TIMERS; i++)
		wheel_schedule(&wheel, &timers[i], 9000 + i);
	assert_next(9000);
	wheel_schedule(&wheel, &timers[0], 9500);
	assert_next(9000); /* as it was: one wake-up too early */
	assert_null(wheel_advance(&wheel, 9000));
	assert_next(9001);
	for (unsigned i = 1; i < TIMERS; i++)
		assert_true(wheel_cancel(&wheel, &timers[i]));
	assert_next(9500);
	/* before the crowd's slot begins, its beginning is the best that is known */
	prepare(0);
	for (unsigned i = 0; i < TIMERS; i++)
		wheel_schedule(&wheel, &timers[i], 9000 + i);
	wheel_schedule(&wheel, &timers[0], 100);
	assert_ptr_equal(wheel_advance(&wheel, 100), &timers[0]);
	assert_next(8192);
	while (wheel_next(&wheel, &next_ms) && !wheel_advance(&wheel, next_ms))
		wakes++;
	assert_int_equal(next_ms, 9001);
	assert_in_range(wakes, 1, 2);
}

/* ---- against the model ---- */

struct entry {
	uint64_t due_ms, order;
	unsigned id;
};

static struct {
	struct entry entries[TIMERS]; /* by due_ms, then by order */
	size_t count;
	unsigned timers; /* so many take part: WHEEL_LOOK, then next is exact, or all */
	uint64_t now_ms, scheduled;
} model;

static bool model_cancel(unsigned id)
{
	for (size_t i = 0; i < model.count; i++)
		if (model.entries[i].id == id) {
			model.count--;
			memmove(&model.entries[i], &model.entries[i + 1],
				(model.count - i) * sizeof(struct entry));
			return true;
		}
	return false;
}

static void model_schedule(unsigned id, uint64_t due_ms)
{
	size_t i;

	model_cancel(id);
	if (due_ms < model.now_ms)
		due_ms = model.now_ms;
	for (i = model.count; i > 0 && model.entries[i - 1].due_ms > due_ms; i--)
		model.entries[i] = model.entries[i - 1];
	model.entries[i] = (struct entry){due_ms, model.scheduled++, id};
	model.count++;
}

struct distribution {
	const char *name;
	uint64_t start_ms;
	uint64_t limits[4]; /* delays are below one of these */
};

static uint64_t random_delay(const struct distribution *d)
{
	return random_below(d->limits[random_below(COUNT(d->limits))]);
}

static uint64_t after(uint64_t now_ms, uint64_t delay_ms)
{
	return delay_ms > UINT64_MAX - now_ms ? UINT64_MAX : now_ms + delay_ms;
}

static void schedule_one(const struct distribution *d)
{
	unsigned id = (unsigned)random_below(model.timers);
	uint64_t due_ms = after(model.now_ms, random_delay(d));

	if (random_below(16) == 0) /* the past, now and then */
		due_ms = model.now_ms - random_below(model.now_ms < 100 ? model.now_ms + 1 : 100);
	wheel_schedule(&wheel, &timers[id], due_ms);
	model_schedule(id, due_ms);
	CHECK(wheel_timer_state(&timers[id]) == WHEEL_SCHEDULED);
}

static void cancel_one(const struct distribution *d)
{
	unsigned id = (unsigned)random_below(model.timers);
	enum wheel_state before = wheel_timer_state(&timers[id]);
	bool scheduled;

	(void)d;
	if (model.count && random_below(4) == 0) /* the earliest is what next has in its cache */
		id = model.entries[0].id, before = WHEEL_SCHEDULED;
	scheduled = model_cancel(id);
	CHECK(wheel_cancel(&wheel, &timers[id]) == scheduled);
	CHECK(wheel_timer_state(&timers[id]) == (scheduled ? WHEEL_CANCELLED : before));
}

static void check_next(const struct distribution *d)
{
	uint64_t due_ms = 0;

	(void)d;
	CHECK(wheel_next(&wheel, &due_ms) == (model.count > 0));
	if (model.timers > WHEEL_LOOK)
		CHECK(due_ms <= model.entries[0].due_ms);
	else
		CHECK(model.count == 0 || due_ms == model.entries[0].due_ms);
}

static uint64_t random_jump(const struct distribution *d)
{
	switch (random_below(8)) {
	case 0:
		return 0;
	case 1:
	case 2:
		return 1;
	case 3:
	case 4:
		return random_below(100);
	case 5:
		return random_delay(d) / 16;
	case 6: /* to just before the earliest */
		return model.count && model.entries[0].due_ms > model.now_ms
			       ? model.entries[0].due_ms - model.now_ms - 1
			       : 0;
	default: /* huge, but not so often that nothing is ever left */
		return random_below(64) ? random_delay(d) / 64 : random_delay(d);
	}
}

static void advance(const struct distribution *d)
{
	uint64_t now_ms = after(model.now_ms, random_jump(d)), next_ms;
	struct wheel_timer *t;
	unsigned handled = 0;

	model.now_ms = now_ms;
	while ((t = wheel_advance(&wheel, now_ms - (now_ms && handled % 2)))) {
		CHECK(model.count > 0 && model.entries[0].due_ms <= now_ms);
		CHECK(t == &timers[model.entries[0].id]);
		CHECK(wheel_timer_due(t) == model.entries[0].due_ms);
		CHECK(wheel_timer_state(t) == WHEEL_EXPIRED);
		model_cancel(model.entries[0].id);
		CHECK(wheel.count == model.count);
		/* What handlers do; bounded, as a handler that always asks for now has no end. */
		if (handled++ < 2 * TIMERS) {
			if (random_below(2))
				schedule_one(d);
			if (random_below(4) == 0)
				cancel_one(d);
			if (random_below(4) == 0)
				check_next(d);
		}
	}
	CHECK(model.count == 0 || model.entries[0].due_ms > now_ms);
	check_next(d);
	CHECK(!wheel_next(&wheel, &next_ms) || next_ms > now_ms);
}

static void start_over(const struct distribution *d)
{
	prepare(d->start_ms);
	memset(&model, 0, sizeof(model));
	model.timers = random_below(2) ? TIMERS : WHEEL_LOOK;
	model.now_ms = d->start_ms;
}

static void cancel_all(void)
{
	while (model.count) {
		unsigned id = model.entries[0].id;

		CHECK(wheel_cancel(&wheel, &timers[id]));
		CHECK(model_cancel(id));
	}
	CHECK(wheel.count == 0);
}

static void compare(const struct distribution *d)
{
	static void (*const operations[])(const struct distribution *d) = {
		schedule_one, schedule_one, schedule_one, cancel_one, check_next, advance};

	start_over(d);
	for (model_random.step = 0; model_random.step < STEPS; model_random.step++) {
		operations[random_below(COUNT(operations))](d);
		CHECK(wheel.count == model.count);
		/* Time only goes on, and stands still at its end. */
		if (random_below(model.now_ms == UINT64_MAX ? 64 : 10000) == 0) {
			cancel_all();
			start_over(d);
		}
	}
	cancel_all();
}

static void random_operations__agree_with_the_sorted_list(void **state)
{
	static const struct distribution distributions[] = {
		{"0..100 ms", 0, {100, 100, 100, 100}},
		{"0..10 min", 1234567, {10 * MINUTE, 10 * MINUTE, 10 * MINUTE, 10 * MINUTE}},
		{"0..2^40 ms", 0,
			{UINT64_C(1) << 40, UINT64_C(1) << 40, UINT64_C(1) << 40,
				UINT64_C(1) << 40}},
		{"mixed", UINT64_C(1) << 36, {10, 1000, 10 * MINUTE, UINT64_C(1) << 40}},
		{"any", 0, {100, UINT64_C(1) << 20, UINT64_C(1) << 50, UINT64_MAX}},
		{"the end of time", UINT64_MAX - 100000, {10, 100, 1000, UINT64_MAX}},
	};

	(void)state;
	model_random_start();
	for (size_t i = 0; i < COUNT(distributions); i++) {
		model_random.part = distributions[i].name;
		compare(&distributions[i]);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(init__is_empty),
		cmocka_unit_test(timer__goes_through_its_states),
		cmocka_unit_test(advance__same_millisecond__is_first_in_first_out),
		cmocka_unit_test(schedule__in_the_past_from_a_handler__overtakes_nothing_due),
		cmocka_unit_test(cancel__of_a_timer_that_is_ready__takes_it_back),
		cmocka_unit_test(advance__earlier_time__is_taken_as_the_latest),
		cmocka_unit_test(next__is_exact_on_every_level),
		cmocka_unit_test(next__of_as_many_as_are_compared_in_one_far_slot__follows_cancels),
		cmocka_unit_test(advance__to_the_end_of_time__has_a_place_for_all),
		cmocka_unit_test(
			next__after_the_earliest_of_a_crowd_was_moved__is_no_later_than_the_next_one),
		cmocka_unit_test(random_operations__agree_with_the_sorted_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

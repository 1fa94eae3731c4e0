/* Whether a config makes progress: each place where one can hang, and each where it only waits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "config/state.h"

#define NOW 10000000u
#define MINUTE 60000u

/* ---- what is around a config ---- */

static struct {
	bool waiting;
	uint64_t backoff_ms;
	unsigned in_flight;
} line;
static const struct settings_server server_is = {.max_in_flight = 2};

static bool suspended;

bool config_suspended(const struct config *c)
{
	(void)c;
	return suspended;
}

bool pull_waiting(const struct pull *g)
{
	(void)g;
	return line.waiting;
}

struct upstream *pull_server(const struct pull *g)
{
	(void)g;
	return NULL;
}

const struct settings_server *upstream_settings(const struct upstream *s)
{
	(void)s;
	return &server_is;
}

void upstream_status(const struct upstream *s, struct upstream_status *ret_status)
{
	(void)s;
	*ret_status = (struct upstream_status){.in_flight = line.in_flight,
		.pending = line.waiting,
		.backoff_ms = line.backoff_ms};
}

static void nobody(void *arg)
{
	(void)arg;
}

static struct trigger_queue queue;
static struct wheel wheel;
static struct config *config;

static int set_up(void **state)
{
	static struct settings_config settings = {.timeout_ms = 10000};

	(void)state;
	settings.format_run.timeout_ms = 0;
	settings.check.timeout_ms = 30000;
	line.waiting = false;
	line.backoff_ms = 0;
	line.in_flight = 0;
	trigger_queue_init(&queue, nobody, NULL);
	wheel_init(&wheel, 0);
	config = calloc(1, sizeof(*config));
	assert_non_null(config);
	config->settings = &settings;
	trigger_init(&config->run.trigger, &queue);
	wheel_timer_init(&config->run.limit.timer);
	wheel_timer_init(&config->run.due.timer);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	while (trigger_queue_take(&queue))
		;
	free(config);
	return 0;
}

static void assert_well(void)
{
	const char *why = config_stuck(config, NOW);

	if (why)
		fail_msg("%s", why);
}

static void due_since(uint64_t ms)
{
	trigger_fire(&config->run.trigger, NOW - ms, 0);
	while (trigger_queue_take(&queue))
		;
}

static void run_since(uint64_t ms)
{
	due_since(ms);
	assert_true(trigger_begin(&config->run.trigger, NOW - ms));
}

/* ---- before a run ---- */

static void idle__is_well(void **state)
{
	(void)state;
	assert_well();
	due_since(0);
	assert_well();
	due_since(MINUTE - 1);
	assert_well();
}

static void due__and_nobody_takes_it_up__is_stuck(void **state)
{
	(void)state;
	due_since(MINUTE + 1);
	assert_string_equal(config_stuck(config, NOW), "a pull is due and nobody took it up");
}

static void due__but_suspended__is_well(void **state)
{
	(void)state;
	due_since(10 * MINUTE);
	suspended = true;
	assert_well();
	suspended = false;
}

static void due__but_waiting_for_the_floor_of_messages__is_well(void **state)
{
	(void)state;
	due_since(10 * MINUTE);
	wheel_schedule(&wheel, &config->run.due.timer, NOW - MINUTE);
	assert_well();
	wheel_schedule(&wheel, &config->run.due.timer, NOW - MINUTE - 1);
	assert_string_equal(config_stuck(config, NOW), "a pull is due and nobody took it up");
	wheel_cancel(&wheel, &config->run.due.timer);
}

static void in_line__of_a_server_that_is_held_or_busy__is_well(void **state)
{
	(void)state;
	due_since(10 * MINUTE);
	line.waiting = true;
	line.backoff_ms = 1;
	assert_well();
	line.backoff_ms = 0;
	line.in_flight = 2;
	assert_well();
}

static void in_line__of_a_server_with_room__is_stuck(void **state)
{
	(void)state;
	due_since(10 * MINUTE);
	line.waiting = true;
	line.in_flight = 1;
	assert_string_equal(
		config_stuck(config, NOW), "a pull is not begun although its server has room");
}

/* ---- in a run ---- */

static void run__within_its_limit__is_well(void **state)
{
	(void)state;
	run_since(10 * MINUTE);
	wheel_schedule(&wheel, &config->run.limit.timer, NOW + 1);
	assert_well();
	wheel_schedule(&wheel, &config->run.limit.timer, NOW - MINUTE);
	assert_well();
}

static void run__far_beyond_its_limit__is_stuck(void **state)
{
	(void)state;
	run_since(10 * MINUTE);
	wheel_schedule(&wheel, &config->run.limit.timer, NOW - MINUTE - 1);
	assert_string_equal(config_stuck(config, NOW), "a pull goes on beyond its time limit");
}

static void run__in_line_for_its_bootstrap__is_well(void **state)
{
	(void)state;
	run_since(10 * MINUTE);
	line.waiting = true;
	assert_well();
}

static void run__of_which_nothing_is_under_way__is_stuck(void **state)
{
	(void)state;
	run_since(1);
	assert_string_equal(
		config_stuck(config, NOW), "a run has neither a pull nor a version under way");
}

/* ---- a version ---- */

static void publication__that_waits_for_the_worker__is_well(void **state)
{
	(void)state;
	run_since(10 * MINUTE);
	config->step.publishing = true;
	assert_well();
	config->step.on_worker_ms = NOW - MINUTE;
	assert_well();
}

static void publication__that_the_worker_has_for_longer_than_a_minute__is_stuck(void **state)
{
	static const char why[] = "the disk has not taken a version for a minute";

	(void)state;
	config->step.on_worker_ms = NOW - MINUTE - 1;
	assert_string_equal(config_stuck(config, NOW), why); /* of a state file that is synced */
	run_since(10 * MINUTE);
	config->step.publishing = true;
	assert_string_equal(config_stuck(config, NOW), why);
}

static void trial__within_its_time_and_the_grace_of_two_programs__is_well(void **state)
{
	(void)state;
	run_since(10 * MINUTE);
	config->step.programs = (struct programs *)1;
	config->step.programs_since_ms = NOW - 30000 - 2 * 5000 - MINUTE;
	assert_well();
	config->step.programs_since_ms--;
	assert_string_equal(config_stuck(config, NOW),
		"a program that checks a version does not end, not even killed");
}

static void assembly__that_waits_for_its_thread__is_well(void **state)
{
	(void)state;
	run_since(10 * MINUTE);
	config->run.assembling = (struct assembly *)1;
	assert_well();
	config->run.assembling_since_ms = NOW - MINUTE;
	assert_well();
}

static void assembly__for_longer_than_a_minute__is_stuck(void **state)
{
	(void)state;
	run_since(10 * MINUTE);
	config->run.assembling = (struct assembly *)1;
	config->run.assembling_since_ms = NOW - MINUTE - 1;
	assert_string_equal(
		config_stuck(config, NOW), "the checks have not ended with a version for a minute");
}

static void checks__that_wait_for_their_thread__are_well(void **state)
{
	(void)state;
	run_since(10 * MINUTE);
	config->step.validating = (struct validation *)1;
	assert_well();
	config->step.validating_since_ms = NOW - MINUTE;
	assert_well();
	config->step.validating_since_ms--;
	assert_string_equal(
		config_stuck(config, NOW), "the checks have not ended with a version for a minute");
	config->step.validating = NULL;
}

static void trial__has_the_time_of_both_programs(void **state)
{
	struct settings_config *s = (struct settings_config *)(uintptr_t)config->settings;

	(void)state;
	s->format_run.timeout_ms = 7000;
	config->step.programs = (struct programs *)1;
	config->step.programs_since_ms = NOW - 37000 - 2 * 5000 - MINUTE;
	assert_well();
	config->step.programs_since_ms--;
	assert_non_null(config_stuck(config, NOW));
	s->format_run.timeout_ms = 0;
}

static void in_line__within_its_minute__is_well(void **state)
{
	(void)state;
	due_since(MINUTE);
	line.waiting = true;
	assert_well();
	due_since(MINUTE + 1);
	assert_non_null(config_stuck(config, NOW));
	line.in_flight = 3;
	assert_well();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(idle__is_well),
		TEST(due__and_nobody_takes_it_up__is_stuck),
		TEST(due__but_suspended__is_well),
		TEST(due__but_waiting_for_the_floor_of_messages__is_well),
		TEST(in_line__of_a_server_that_is_held_or_busy__is_well),
		TEST(in_line__of_a_server_with_room__is_stuck),
		TEST(run__within_its_limit__is_well),
		TEST(run__far_beyond_its_limit__is_stuck),
		TEST(run__in_line_for_its_bootstrap__is_well),
		TEST(run__of_which_nothing_is_under_way__is_stuck),
		TEST(publication__that_waits_for_the_worker__is_well),
		TEST(publication__that_the_worker_has_for_longer_than_a_minute__is_stuck),
		TEST(trial__within_its_time_and_the_grace_of_two_programs__is_well),
		TEST(assembly__that_waits_for_its_thread__is_well),
		TEST(assembly__for_longer_than_a_minute__is_stuck),
		TEST(checks__that_wait_for_their_thread__are_well),
		TEST(trial__has_the_time_of_both_programs),
		TEST(in_line__within_its_minute__is_well),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

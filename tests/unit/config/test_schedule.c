/* When the next run is: interval, backoff, hints and what they promised. */
#include "tests/unit/fixture/core.h"

static void begin(void)
{
	server_has("n: 1\n");
	agent_starts("");
	world_advance(MINUTE);
}

static void interval__brings_the_next_run(void **state)
{
	(void)state;
	begin();
	server_has("n: 2\n");
	world_advance(HOUR - MINUTE - SECOND);
	assert_shows("n: 1\n");
	world_advance(2 * SECOND);
	assert_shows("n: 2\n");
}

static void start__when_something_is_published__is_splayed(void **state)
{
	(void)state;
	begin();
	agent_crashes();
	core_make("");
	config_start(core.config, false);
	assert_in_range(core_status().next_pull_in_ms, 1, CONFIG_SPLAY_MS);
}

static void start__when_the_version_came_from_elsewhere__is_not_splayed(void **state)
{
	(void)state;
	begin();
	agent_crashes();
	world.elsewhere = true;
	core_make("");
	config_start(core.config, false);
	assert_int_equal(core_status().next_pull_in_ms, 0);
}

/* ---- what is random ---- */

static struct spread {
	uint64_t least_ms, most_ms;
} spread;

/* Widens what was seen by the time until the next pull. */
static void note_next_pull(void)
{
	int64_t next_ms = core_status().next_pull_in_ms;

	assert_true(next_ms >= 0);
	if ((uint64_t)next_ms < spread.least_ms)
		spread.least_ms = (uint64_t)next_ms;
	if ((uint64_t)next_ms > spread.most_ms)
		spread.most_ms = (uint64_t)next_ms;
}

/* Whether a hundred moments were spread over this range, and reached both ends of it. */
static void assert_spread_over(uint64_t first_ms, uint64_t last_ms)
{
	uint64_t tenth_ms = (last_ms - first_ms) / 10;

	assert_in_range(spread.least_ms, first_ms, first_ms + tenth_ms);
	assert_in_range(spread.most_ms, last_ms - tenth_ms, last_ms);
	spread = (struct spread){UINT64_MAX, 0};
}

static int set_up_spread(void **state)
{
	spread = (struct spread){UINT64_MAX, 0};
	return core_set_up(state);
}

static void interval__has_its_jitter_on_both_sides(void **state)
{
	(void)state;
	begin();
	core.settings->configs[0]->jitter = 20;
	for (int i = 0; i < 100; i++) {
		pull();
		note_next_pull();
	}
	assert_spread_over(HOUR / 10 * 8, HOUR / 10 * 12);
}

static void overload__spreads_the_next_pulls_over_the_whole_interval(void **state)
{
	(void)state;
	begin();
	world.overloaded = true;
	server_fails(PULL_FAILED, KIND_CAUSE_OVERLOADED, "503");
	for (int i = 0; i < 100; i++) {
		pull();
		note_next_pull();
	}
	assert_spread_over(0, HOUR);
	world.overloaded = false;
}

static void promise__that_is_not_kept__is_pulled_again_with_jitter(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("push_min_interval: 0s");
	for (int i = 0; i < 100; i++) {
		message_comes("\"never\"");
		note_next_pull();
		world_advance(10 * MINUTE);
	}
	assert_spread_over(38, 62);
}

static void failover__is_tried_with_jitter(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < 100; i++) {
		world.holds = world.other_address = true;
		config_refresh(core.config, false);
		world_turn();
		world_advance(core.config->settings->timeout_ms);
		note_next_pull();
		world.holds = world.other_address = false;
		pull();
	}
	assert_spread_over(250, 750);
}

static void resume__of_the_machine__spreads_its_pulls(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < 100; i++) {
		world.now_ms += 2 * HOUR;
		world.wall_ms += 2 * HOUR;
		config_resumed(core.config);
		note_next_pull();
		world_advance(CONFIG_SPLAY_MS);
	}
	assert_spread_over(0, CONFIG_SPLAY_MS);
}

static void start__spreads_its_pulls(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < 100; i++) {
		agent_crashes();
		core_make("");
		config_start(core.config, false);
		note_next_pull();
	}
	assert_spread_over(0, CONFIG_SPLAY_MS);
}

static void refresh__lifts_the_backoff_and_pulls(void **state)
{
	(void)state;
	begin();
	pull();
	assert_int_equal(world.lifted, 1);
}

static void resume__of_the_machine_past_the_due_time__pulls_splayed_once(void **state)
{
	uint64_t due_ms;

	(void)state;
	begin();
	world.now_ms += 2 * HOUR;
	world.wall_ms += 2 * HOUR;
	config_resumed(core.config);
	assert_true(trigger_due(&core.config->run.trigger, &due_ms));
	assert_in_range(due_ms, 0, world.now_ms + CONFIG_SPLAY_MS);
	config_resumed(core.config);
	server_has("n: 2\n");
	world_advance(CONFIG_SPLAY_MS);
	assert_shows("n: 2\n");
}

static void overload__spreads_the_next_pull(void **state)
{
	(void)state;
	begin();
	world.overloaded = true;
	server_fails(PULL_FAILED, KIND_CAUSE_OVERLOADED, "503");
	pull();
	assert_in_range(core_status().next_pull_in_ms, 0, HOUR);
	world.overloaded = false;
}

/* ---- what a message promised ---- */

static void promise__that_the_server_does_not_show_yet__is_pulled_again(void **state)
{
	char etag[24];

	(void)state;
	begin();
	server_has("n: 2\n");
	snprintf(etag, sizeof(etag), "%s", world_find_page("/web.yaml")->etag);
	server_has("n: 1\n");
	message_comes(etag);
	world_advance(3 * SECOND);
	assert_true(world.requests > 3);
	assert_true(world.avoided > 0);
	assert_logged("the server still shows another version than the push promised");
	server_has("n: 2\n");
	world_advance(10 * SECOND);
	assert_shows("n: 2\n");
	assert_logged("the server shows the promised version now");
}

static void promise__that_is_never_kept__is_given_up(void **state)
{
	unsigned requests;

	(void)state;
	begin();
	requests = world.requests;
	message_comes("\"never\"");
	world_advance(5 * MINUTE);
	assert_int_equal(world.requests - requests, 1 + CONFIG_REPULLS);
	assert_logged("the server never showed the version that the push promised");
}

static void promise__when_the_document_is_not_there_yet__is_pulled_again(void **state)
{
	(void)state;
	begin();
	server_has(NULL);
	message_comes("\"x\"");
	server_has("n: 2\n");
	world_advance(SECOND);
	assert_shows("n: 2\n");
}

static void promise__when_a_newer_version_came__avoids_no_address(void **state)
{
	(void)state;
	begin();
	server_has("n: 3\n");
	message_comes("\"older\"");
	world_advance(SECOND);
	assert_shows("n: 3\n");
	assert_int_equal(world.avoided, 0);
}

static void message__when_the_server_is_unreachable__is_followed_later(void **state)
{
	(void)state;
	begin();
	server_is_down();
	message_comes(NULL);
	assert_true(core_status().next_pull_in_ms < SECOND);
	server_has("n: 2\n");
	world_advance(5 * SECOND);
	assert_shows("n: 2\n");
}

static void message__after_a_timeout__waits_for_the_interval(void **state)
{
	(void)state;
	begin();
	server_fails(PULL_TIMEOUT, KIND_CAUSE_TIMEOUT, "no answer");
	message_comes(NULL);
	assert_true(core_status().next_pull_in_ms > HOUR);
}

static void messages__that_bring_nothing_new__pull_less_often(void **state)
{
	static struct log_limit all;

	(void)state;
	memset(&all, 0, sizeof(all));
	core.env.goes_on = &all;
	begin();
	for (int i = 0; i < 200; i++) {
		message_comes(NULL);
		world_advance(50);
	}
	assert_in_range(world.requests, 10, 120);
	assert_logged("messages keep coming that bring nothing new: they pull less often");
	core.env.goes_on = NULL;
}

static void pull__that_is_queued__is_withdrawn_when_it_is_not_due_any_more(void **state)
{
	(void)state;
	begin();
	world.busy = true;
	pull();
	assert_true(core_status().waiting);
	schedule_set_due(core.config, 0);
	world_turn();
	assert_true(core_status().waiting);
	operator_suspends(0);
	assert_false(core_status().waiting);
}

static void timer__during_a_run__reserves_one_more(void **state)
{
	(void)state;
	begin();
	world.holds = true;
	pull();
	config_refresh(core.config, false);
	world_advance(SECOND);
	server_has("n: 2\n");
	world.holds = false;
	world_turn();
	world_advance(SECOND);
	assert_shows("n: 2\n");
	assert_true(core.runs >= 3);
}

static void pull__that_is_queued_for_a_moment_that_changes__is_queued_again(void **state)
{
	(void)state;
	begin();
	world.busy = true;
	pull();
	schedule_set_due(core.config, 5 * SECOND);
	world_turn();
	assert_false(core_status().waiting);
	world.busy = false;
	server_has("n: 2\n");
	world_advance(6 * SECOND);
	assert_shows("n: 2\n");
}

static void promise__before_anything_is_published__is_given_up_too(void **state)
{
	(void)state;
	agent_starts("");
	message_comes("\"x\"");
	world_advance(5 * MINUTE);
	assert_logged("the server never showed the version that the push promised");
}

static void promise__of_a_server_that_is_down__waits_for_it(void **state)
{
	(void)state;
	begin();
	server_is_down();
	message_comes("\"x\"");
	world_advance(10 * SECOND);
	assert_int_equal(world.avoided, 0);
	server_has("n: 2\n");
	world_advance(40 * SECOND);
	assert_shows("n: 2\n");
}

static void promise__that_a_pin_holds__avoids_the_address_that_lags(void **state)
{
	(void)state;
	begin();
	operator_pins(0);
	server_has("n: 2\n");
	message_comes("\"x\"");
	world_advance(10 * SECOND);
	assert_true(world.avoided > 0);
	assert_shows("n: 1\n");
}

static void resume__of_the_machine_while_a_pull_is_queued__leaves_it(void **state)
{
	(void)state;
	begin();
	world.busy = true;
	pull();
	world.now_ms += 10 * SECOND;
	config_resumed(core.config);
	assert_true(core_status().waiting);
	world.busy = false;
	operator_suspends(0);
	config_resumed(core.config); /* nothing is due */
	assert_int_equal(core_status().next_pull_in_ms, -1);
}

static void suspension__of_a_config_without_a_snapshot__needs_none(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("snapshot: false");
	operator_suspends(0);
	operator_resumes();
	assert_outcome(CONFIG_UNCHANGED);
}

static void suspension__before_the_server_confirmed_anything__ends_as_ever(void **state)
{
	(void)state;
	begin();
	server_is_down();
	agent_crashes();
	world.now_ms = 1000; /* the machine has booted */
	wheel_init(&world.loop.wheel, world.now_ms);
	agent_starts("");
	operator_suspends(0);
	operator_resumes();
	assert_outcome(CONFIG_FAILED);
	assert_shows("n: 1\n");
}

static void messages__without_a_bound_for_all_configs__are_not_said(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < 200; i++) {
		message_comes(NULL);
		world_advance(50);
	}
	assert_not_logged("messages keep coming");
}

static void promise__after_one_that_was_given_up__is_pulled_again_as_often(void **state)
{
	unsigned requests;

	(void)state;
	begin();
	message_comes("\"never\"");
	world_advance(5 * MINUTE);
	requests = world.requests;
	message_comes("\"neither\"");
	world_advance(5 * MINUTE);
	assert_int_equal(world.requests - requests, 1 + CONFIG_REPULLS);
}

#define SPREAD_TEST(name) cmocka_unit_test_setup_teardown(name, set_up_spread, core_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CORE_TEST(interval__brings_the_next_run),
		CORE_TEST(start__when_something_is_published__is_splayed),
		CORE_TEST(start__when_the_version_came_from_elsewhere__is_not_splayed),
		SPREAD_TEST(interval__has_its_jitter_on_both_sides),
		SPREAD_TEST(overload__spreads_the_next_pulls_over_the_whole_interval),
		SPREAD_TEST(promise__that_is_not_kept__is_pulled_again_with_jitter),
		SPREAD_TEST(failover__is_tried_with_jitter),
		SPREAD_TEST(resume__of_the_machine__spreads_its_pulls),
		SPREAD_TEST(start__spreads_its_pulls),
		CORE_TEST(refresh__lifts_the_backoff_and_pulls),
		CORE_TEST(resume__of_the_machine_past_the_due_time__pulls_splayed_once),
		CORE_TEST(overload__spreads_the_next_pull),
		CORE_TEST(promise__that_the_server_does_not_show_yet__is_pulled_again),
		CORE_TEST(promise__that_is_never_kept__is_given_up),
		CORE_TEST(promise__when_the_document_is_not_there_yet__is_pulled_again),
		CORE_TEST(promise__when_a_newer_version_came__avoids_no_address),
		CORE_TEST(message__when_the_server_is_unreachable__is_followed_later),
		CORE_TEST(message__after_a_timeout__waits_for_the_interval),
		CORE_TEST(messages__that_bring_nothing_new__pull_less_often),
		CORE_TEST(pull__that_is_queued__is_withdrawn_when_it_is_not_due_any_more),
		CORE_TEST(timer__during_a_run__reserves_one_more),
		CORE_TEST(pull__that_is_queued_for_a_moment_that_changes__is_queued_again),
		CORE_TEST(promise__before_anything_is_published__is_given_up_too),
		CORE_TEST(promise__of_a_server_that_is_down__waits_for_it),
		CORE_TEST(promise__that_a_pin_holds__avoids_the_address_that_lags),
		CORE_TEST(resume__of_the_machine_while_a_pull_is_queued__leaves_it),
		CORE_TEST(suspension__of_a_config_without_a_snapshot__needs_none),
		CORE_TEST(suspension__before_the_server_confirmed_anything__ends_as_ever),
		CORE_TEST(messages__without_a_bound_for_all_configs__are_not_said),
		CORE_TEST(promise__after_one_that_was_given_up__is_pulled_again_as_often),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

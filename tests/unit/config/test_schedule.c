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

/* ---- to the moment ---- */

static void repulls__come_after_the_delays_of_the_table(void **state)
{
	static const uint64_t delays_ms[] = {50, 200, 1000, 2000, 4000, 8000, 16000, 32000};
	unsigned requests;

	(void)state;
	server_has("n: 1\n");
	agent_starts("push_min_interval: 0s");
	world_advance(MINUTE);
	world.no_random = true; /* the least of each jitter: three quarters */
	message_comes("\"never\"");
	requests = world.requests;
	for (size_t i = 0; i < CONFIG_REPULLS; i++) {
		uint64_t next_ms = (uint64_t)core_status().next_pull_in_ms;

		assert_in_range(next_ms, delays_ms[i] * 3 / 4, delays_ms[i] * 3 / 4 + 1);
		assert_int_equal(core_count_log("never showed the version"), 0);
		world_advance(next_ms);
		assert_int_equal(world.requests, requests + i + 1);
		assert_int_equal(core_count_log("still shows another version"),
			i + 1 >= CONFIG_QUICK_REPULLS);
	}
	assert_int_equal(core_status().next_pull_in_ms, HOUR);
	assert_line("<4>the server still shows another version than the push promised: it is asked "
		    "again config=web shown=de80e4db");
	assert_line("<4>the server never showed the version that the push promised: the interval "
		    "counts config=web shown=de80e4db");
	assert_int_equal(world.avoided, CONFIG_REPULLS);
}

static void promise__that_is_kept_late__is_logged_with_its_repulls(void **state)
{
	char etag[24];

	(void)state;
	server_has("n: 2\n");
	snprintf(etag, sizeof(etag), "%s", world_find_page("/web.yaml")->etag);
	server_has("n: 1\n");
	agent_starts("push_min_interval: 0s");
	world_advance(MINUTE);
	world.no_random = true;
	message_comes(etag);
	world_advance(38 + 150 + 750);
	assert_logged("still shows another version");
	server_has("n: 2\n");
	world_advance(1500);
	assert_shows("n: 2\n");
	assert_line("<6>the server shows the promised version now config=web repulls=4");
	assert_int_equal(core.config->run.topic.wanted, 0);
	assert_int_equal(core_status().next_pull_in_ms, HOUR);
	message_comes(etag); /* it has been kept already */
	assert_int_equal(core_count_log("the server shows the promised version now"), 1);
}

static void promise__that_is_kept_at_once__is_not_logged(void **state)
{
	char etag[24];

	(void)state;
	begin();
	server_has("n: 2\n");
	snprintf(etag, sizeof(etag), "%s", world_find_page("/web.yaml")->etag);
	message_comes(etag);
	world_advance(SECOND);
	assert_shows("n: 2\n");
	assert_not_logged("promised");
	assert_int_equal(core.config->run.topic.wanted, 0);
}

static void promise__that_came_during_the_last_pull__is_not_forgotten(void **state)
{
	char etag[24];

	(void)state;
	begin();
	server_has("n: 2\n");
	snprintf(etag, sizeof(etag), "%s", world_find_page("/web.yaml")->etag);
	world.holds = true;
	message_comes(etag);
	atomic_store(&core.config->run.topic.wanted, 77); /* a newer one */
	world.holds = false;
	world_turn();
	assert_int_equal(core.config->run.topic.wanted, 77);
}

static void queued_pull__is_rejected_after_the_longest_delay(void **state)
{
	(void)state;
	begin();
	world.busy = true;
	pull();
	assert_int_equal(
		world.pulls[0]->expires_ms, world.now_ms + core.config->run.supervisor.max_ms);
	assert_int_equal(schedule_expiry_ms(core.config), world.pulls[0]->expires_ms);
	core.config->run.supervisor.max_ms = 5 * MINUTE + 1;
	assert_int_equal(schedule_expiry_ms(core.config), world.now_ms + 5 * MINUTE + 1);
	core.config->run.supervisor.max_ms = 5 * MINUTE - 1;
	assert_int_equal(schedule_expiry_ms(core.config), world.now_ms + 5 * MINUTE);
	world.busy = false;
}

static void backoff__delays_a_pull_up_to_the_longest_delay(void **state)
{
	(void)state;
	begin();
	pull();
	assert_int_equal(world.waits_until_ms, world.now_ms + core.config->run.supervisor.max_ms);
	core.config->run.supervisor.max_ms = SHAPER_CAP_MIN_MS - 1;
	schedule_bound_backoff(core.config);
	assert_int_equal(world.waits_until_ms, world.now_ms + SHAPER_CAP_MIN_MS);
	core.config->run.supervisor.max_ms = SHAPER_CAP_MIN_MS + 1;
	schedule_bound_backoff(core.config);
	assert_int_equal(world.waits_until_ms, world.now_ms + SHAPER_CAP_MIN_MS + 1);
}

static void interval__is_to_the_moment(void **state)
{
	unsigned requests;

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	requests = world.requests;
	world_advance(HOUR - 1);
	assert_int_equal(world.requests, requests);
	world_advance(1);
	assert_int_equal(world.requests, requests + 1);
	world_advance(HOUR - 1);
	assert_int_equal(world.requests, requests + 1);
	world_advance(1);
	assert_int_equal(world.requests, requests + 2);
}

static void resume__of_the_machine__before_a_pull_is_overdue__changes_nothing(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	world.now_ms += HOUR - 1;
	config_resumed(core.config);
	assert_int_equal(core_status().next_pull_in_ms, 1);
	world.now_ms++;
	config_resumed(core.config);
	assert_int_equal(core_status().next_pull_in_ms, 0); /* due now: no need of a splay */
	world.now_ms++;
	config_resumed(core.config);
	assert_true(core.config->run.own_ms > world.now_ms);
}

static void start__with_once_or_without_a_version__pulls_at_once(void **state)
{
	(void)state;
	core_make("");
	config_start(core.config, false);
	assert_int_equal(core_status().next_pull_in_ms, 0);
	agent_crashes();
	begin();
	agent_crashes();
	core.env.once = true;
	core_make("");
	config_start(core.config, false);
	assert_int_equal(core_status().next_pull_in_ms, 0);
	core.env.once = false;
}

static void hints__of_an_unreachable_server__are_followed_once_it_answers(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("push_min_interval: 0s");
	world_advance(MINUTE);
	server_is_down();
	pull();
	assert_in_range(core_status().next_pull_in_ms, HOUR - SECOND, HOUR); /* no hint has come */
	message_comes(NULL);
	assert_true(core_status().next_pull_in_ms < SECOND);
	server_recovers();
	world_advance(SECOND);
	assert_in_range(core_status().next_pull_in_ms, HOUR - SECOND, HOUR);
	server_is_down();
	pull();
	assert_in_range(
		core_status().next_pull_in_ms, HOUR - SECOND, HOUR); /* that one was followed */
	message_comes(NULL);
	server_fails(PULL_FAILED, KIND_CAUSE_FORBIDDEN, "the server answered 403");
	world_advance(SECOND);
	assert_in_range(core_status().next_pull_in_ms, HOUR - SECOND, HOUR); /* it answered */
}

static void overloaded_server__keeps_the_supervised_delay(void **state)
{
	(void)state;
	begin();
	server_fails(PULL_FAILED, KIND_CAUSE_OVERLOADED, "503");
	message_comes(NULL);
	world_advance(SECOND);
	assert_true(core_status().next_pull_in_ms > MINUTE);
}

static void suspension__ends_what_is_due(void **state)
{
	uint64_t due_ms;

	(void)state;
	begin();
	assert_true(schedule_find_due(core.config, &due_ms));
	operator_suspends(0);
	assert_false(schedule_find_due(core.config, &due_ms));
	assert_int_not_equal(wheel_timer_state(&core.config->run.due.timer), WHEEL_SCHEDULED);
	operator_resumes();
	assert_true(schedule_find_due(core.config, &due_ms));
	assert_int_equal(core.config->status.resumed_ms, world.now_ms);
}

static void retries__of_an_unreachable_server__come_after_the_longest_delay_at_last(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("push_min_interval: 0s");
	world_advance(MINUTE);
	world.no_random = true;
	server_is_down();
	message_comes(NULL);
	for (int i = 0; i < CONFIG_REPULLS + 3; i++) {
		uint64_t next_ms = (uint64_t)core_status().next_pull_in_ms;

		if (i >= CONFIG_REPULLS - 1)
			assert_int_equal(next_ms, 24000);
		else
			assert_true(next_ms < 24000);
		world_advance(next_ms);
	}
	assert_error("connection refused");
}

static void retired__arms_no_timer_any_more(void **state)
{
	(void)state;
	begin();
	assert_true(config_retire(core.config, NULL, NULL));
	trigger_hint(core.config->run.topic.trigger, world.now_ms, 0);
	world_turn();
	schedule_arm_timer(core.config);
	assert_int_not_equal(wheel_timer_state(&core.config->run.due.timer), WHEEL_SCHEDULED);
}

static void jitter__is_that_of_the_settings(void **state)
{
	(void)state;
	begin();
	core.settings->configs[0]->jitter = 20;
	world.no_random = true;
	pull();
	assert_int_equal(core_status().next_pull_in_ms, HOUR / 10 * 8);
	world.holds = world.other_address = true;
	pull();
	world_advance(core.settings->configs[0]->timeout_ms);
	assert_int_equal(core_status().next_pull_in_ms, 250); /* half of the failover's delay */
	world.holds = world.other_address = false;
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
		CORE_TEST(repulls__come_after_the_delays_of_the_table),
		CORE_TEST(promise__that_is_kept_late__is_logged_with_its_repulls),
		CORE_TEST(promise__that_is_kept_at_once__is_not_logged),
		CORE_TEST(promise__that_came_during_the_last_pull__is_not_forgotten),
		CORE_TEST(queued_pull__is_rejected_after_the_longest_delay),
		CORE_TEST(backoff__delays_a_pull_up_to_the_longest_delay),
		CORE_TEST(interval__is_to_the_moment),
		CORE_TEST(resume__of_the_machine__before_a_pull_is_overdue__changes_nothing),
		CORE_TEST(start__with_once_or_without_a_version__pulls_at_once),
		CORE_TEST(hints__of_an_unreachable_server__are_followed_once_it_answers),
		CORE_TEST(overloaded_server__keeps_the_supervised_delay),
		CORE_TEST(suspension__ends_what_is_due),
		CORE_TEST(retries__of_an_unreachable_server__come_after_the_longest_delay_at_last),
		CORE_TEST(retired__arms_no_timer_any_more),
		CORE_TEST(jitter__is_that_of_the_settings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What a config does after each event, as an operator sees it: one behaviour a case. */
#include "tests/unit/fixture/core.h"

/* ---- a pull brings a version ---- */

static void pull__when_bytes_are_new__publishes_them(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	assert_shows("n: 1\n");
	assert_generation(1);
	pull_of("n: 2\n");
	assert_shows("n: 2\n");
	assert_generation(2);
	assert_outcome(CONFIG_PUBLISHED);
	assert_logged("published config=web generation=2");
}

static void pull__when_bytes_are_the_same__confirms_the_current_version(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	world_advance(5 * SECOND);
	assert_int_equal(core_status().age_ms, 5 * SECOND);
	pull();
	assert_outcome(CONFIG_UNCHANGED);
	assert_generation(1);
	assert_int_equal(core_status().age_ms, 0);
}

static void pull__when_it_fails__keeps_the_current_version(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	server_is_down();
	pull();
	assert_outcome(CONFIG_FAILED);
	assert_state("failing");
	assert_error("connection refused");
	assert_shows("n: 1\n");
	assert_logged("pull failed: keeping the current version");
}

static void pin__when_bytes_differ__holds_the_latest(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	operator_pins(0);
	pull_of("n: 2\n");
	assert_outcome(CONFIG_HELD);
	assert_state("ok");
	assert_shows("n: 1\n");
	assert_rejected(REJECTED_BY_PIN, "pinned");
}

static void unpin__publishes_the_kept_latest__also_when_the_server_is_down(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	operator_pins(0);
	pull_of("n: 2\n");
	server_is_down();
	operator_unpins();
	assert_shows("n: 2\n");
	assert_generation(2);
}

static void rollback__publishes_the_older_bytes_under_a_new_number(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	pull_of("n: 2\n");
	operator_rolls_back(1);
	assert_done();
	assert_shows("n: 1\n");
	assert_generation(3);
	assert_origin("rollback to generation 1 by ann: pages are slow");
	pull();
	assert_outcome(CONFIG_HELD);
	assert_rejected(REJECTED_BY_OPERATOR, "rolled back by ann");
}

static void override__is_composed_over_the_current_bytes(void **state)
{
	(void)state;
	server_has("n: 1\nm: 1\n");
	agent_starts("");
	operator_overrides("n", "7", HOUR);
	assert_done();
	assert_shows("n: 7\nm: 1\n");
	assert_generation(2);
	assert_origin("override of n by ann for 1h: a try");
}

static void probe__when_it_fails__rolls_back_to_the_version_before(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("probe: {run: [/bin/true], for: 10s}");
	world_end_probe(NULL);
	pull_of("n: 2\n");
	world_end_probe("it answers 500");
	world_turn();
	assert_shows("n: 1\n");
	assert_generation(3);
	assert_origin("probe: generation 2 was bad, back to 1");
	assert_false(world.probe.running);
	pull();
	assert_outcome(CONFIG_FAILED);
	assert_rejected(REJECTED_BY_PROBE, "it answers 500");
}

static void drift__is_healed_without_a_pull(void **state)
{
	unsigned requests;

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	requests = world.requests;
	somebody_writes("harm");
	assert_shows("n: 1\n");
	assert_generation(1);
	assert_int_equal(world.requests, requests);
	assert_int_equal(core_status().restored, 1);
}

static void crash__then_a_start__shows_the_last_known_good(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	pull_of("n: 2\n");
	server_is_down();
	somebody_writes_quietly("torn");
	agent_restarts();
	assert_shows("n: 2\n");
	assert_generation(2);
	assert_logged("started from the last known good config=web generation=2");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CORE_TEST(pull__when_bytes_are_new__publishes_them),
		CORE_TEST(pull__when_bytes_are_the_same__confirms_the_current_version),
		CORE_TEST(pull__when_it_fails__keeps_the_current_version),
		CORE_TEST(pin__when_bytes_differ__holds_the_latest),
		CORE_TEST(unpin__publishes_the_kept_latest__also_when_the_server_is_down),
		CORE_TEST(rollback__publishes_the_older_bytes_under_a_new_number),
		CORE_TEST(override__is_composed_over_the_current_bytes),
		CORE_TEST(probe__when_it_fails__rolls_back_to_the_version_before),
		CORE_TEST(drift__is_healed_without_a_pull),
		CORE_TEST(crash__then_a_start__shows_the_last_known_good),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

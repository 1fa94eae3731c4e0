/* What the model of the core (tests/model) found in its code: between a failure
 * and the next tick, over a restart, beside a pull. */
#include "tests/unit/fixture/core.h"

/* The server's version is held, and what is current cannot be shown at the
 * start. */
static void start_blocked(void)
{
	agent_crashes();
	snapshot_is_blocked();
	agent_starts("");
	assert_generation(0);
	snapshot_is_free();
	pull();
}

static void last_known_good__that_could_not_be_shown__is_shown_whatever_the_servers_have(
	void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	pull_of("n: 2\n");
	operator_rolls_back(1);
	assert_done();
	start_blocked();
	assert_generation(3);
	assert_shows("n: 1\n");
	assert_outcome(CONFIG_HELD);
}

static void last_known_good__that_is_pinned_and_could_not_be_shown__is_shown(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	operator_pins(0);
	server_has("n: 2\n");
	start_blocked();
	assert_generation(1);
	assert_shows("n: 1\n");
}

static void version__that_comes_after_its_predecessor_failed__does_not_rest(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("check: [/bin/true, '{path}']");
	world.programs_break = "cannot be started";
	pull_of("n: 2\n");
	assert_outcome(CONFIG_FAILED);
	world.holds = true;
	pull_of("n: 3\n"); /* 2 is tried again, and fails before the answer is there */
	assert_true(core.config->resting & 1u << ROW_LATEST_IS_PUBLISHED);
	world.programs_break = NULL;
	world.holds = false;
	world_turn();
	assert_shows("n: 3\n");
}

static void version__that_failed__is_tried_again_when_the_server_has_answered(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("check: [/bin/true, '{path}']");
	world.programs_break = "cannot be started";
	pull_of("n: 2\n");
	world.programs_break = NULL;
	world.holds = true;
	pull();
	assert_shows("n: 1\n"); /* it may have another one by now */
	world.holds = false;
	world_turn();
	assert_shows("n: 2\n");
}

static void version__that_failed__rests_while_no_server_answers(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("check: [/bin/true, '{path}']");
	world.programs_break = "cannot be started";
	pull_of("n: 2\n");
	world.programs_break = NULL;
	server_is_down();
	pull();
	assert_shows("n: 1\n");
	assert_error("connection refused");
}

static void kept_version__with_other_rules__waits_for_the_servers_answer(void **state)
{
	static const char rules[] = "{\"properties\": {\"n\": {\"not\": {\"const\": 2}}}}";
	char schema[SCRATCH_PATH + 64];

	(void)state;
	server_has("n: 1\n");
	scratch_write(core.dir, "schema.json", rules, strlen(rules));
	snprintf(schema, sizeof(schema), "schema: %s/schema.json", core.dir);
	agent_starts(schema);
	pull_of("n: 2\n");
	assert_rejected(CHECK_SCHEMA, "n");
	scratch_write(core.dir, "schema.json", "{}", 2);
	pull_of("n: 3\n");
	assert_generation(2); /* not 2 on the way */
	assert_shows("n: 3\n");
}

static void force__ends_with_its_run(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("guard: {require: [n]}");
	operator_pins(0);
	server_has("m: 1\n");
	pull_forced();
	assert_outcome(CONFIG_HELD);
	operator_unpins();
	assert_shows("n: 1\n");
	assert_rejected(CHECK_GUARD, "n");
}

static void answer_304__to_a_request_before_a_rollback__is_about_what_was_current_then(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	pull_of("n: 2\n");
	agent_crashes();
	world.holds = true;
	agent_starts("");
	operator_rolls_back(1);
	assert_done();
	world.holds = false;
	world_turn();
	assert_outcome(CONFIG_HELD);
	assert_shows("n: 1\n");
}

static void layers__when_a_rollback_comes_between_request_and_answer__are_not_mixed(void **state)
{
	(void)state;
	core.from = "[{server: main, path: /base.yaml}, {server: main, path: /web.yaml}]";
	world_put("/base.yaml", "a: 1\n");
	world_put("/web.yaml", "b: 1\n");
	agent_starts("");
	world_put("/base.yaml", "a: 2\n");
	pull_of("b: 2\n");
	agent_crashes();
	world.holds = true;
	agent_starts("");
	server_has("b: 3\n");
	operator_rolls_back(1);
	assert_done();
	assert_shows("a: 1\nb: 1\n");
	world.holds = false;
	world_turn();
	assert_shows("a: 2\nb: 3\n");
}

static void forced_version__that_could_not_be_shown_at_first__has_no_old_verdict(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("probe: {run: [/bin/true], for: 10s}");
	world_end_probe(NULL);
	pull_of("n: 2\n");
	world_end_probe("it answers 500");
	world_turn();
	assert_shows("n: 1\n");
	snapshot_is_blocked();
	pull_forced();
	snapshot_is_free();
	pull();
	assert_shows("n: 2\n");
	assert_true(world.probe.running);
	assert_verdicts(0);
}

static void rollback_of_a_probe__that_could_not_be_shown_at_first__is_not_probed(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("probe: {run: [/bin/true], for: 10s}");
	world_end_probe(NULL);
	pull_of("n: 2\n");
	snapshot_is_blocked();
	world_end_probe("it answers 500");
	world_turn();
	assert_generation(2);
	snapshot_is_free();
	pull();
	assert_shows("n: 1\n");
	assert_generation(3);
	assert_origin("probe: generation 2 was bad, back to 1");
	assert_false(world.probe.running);
	assert_int_equal(core.config->decisions.ledger->proven, 3);
}

static void overrides__that_ended_while_nothing_can_be_shown__are_one_generation(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	operator_overrides("n", "7", 10 * SECOND);
	assert_generation(2);
	snapshot_is_blocked();
	world_advance(11 * SECOND);
	pull();
	pull();
	snapshot_is_free();
	pull();
	assert_shows("n: 1\n");
	assert_generation(3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CORE_TEST(
			last_known_good__that_could_not_be_shown__is_shown_whatever_the_servers_have),
		CORE_TEST(last_known_good__that_is_pinned_and_could_not_be_shown__is_shown),
		CORE_TEST(version__that_comes_after_its_predecessor_failed__does_not_rest),
		CORE_TEST(version__that_failed__is_tried_again_when_the_server_has_answered),
		CORE_TEST(version__that_failed__rests_while_no_server_answers),
		CORE_TEST(kept_version__with_other_rules__waits_for_the_servers_answer),
		CORE_TEST(force__ends_with_its_run),
		CORE_TEST(
			answer_304__to_a_request_before_a_rollback__is_about_what_was_current_then),
		CORE_TEST(layers__when_a_rollback_comes_between_request_and_answer__are_not_mixed),
		CORE_TEST(forced_version__that_could_not_be_shown_at_first__has_no_old_verdict),
		CORE_TEST(rollback_of_a_probe__that_could_not_be_shown_at_first__is_not_probed),
		CORE_TEST(overrides__that_ended_while_nothing_can_be_shown__are_one_generation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

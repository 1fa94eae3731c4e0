/* What operators ask for: pin, suspension, rollback, overrides; and what they are answered. */
#include "tests/unit/fixture/core.h"

static void begin(const char *extra)
{
	server_has("n: 1\n");
	agent_starts(extra);
}

static void begin_with_two(const char *extra)
{
	begin(extra);
	pull_of("n: 2\n");
	assert_generation(2);
}

/* ---- refused with a sentence ---- */

static void anything__before_a_version_is_published__is_refused(void **state)
{
	(void)state;
	agent_starts("");
	operator_pins(0);
	assert_refused(-ENODATA, "nothing is published yet");
	operator_rolls_back(1);
	assert_refused(-ENODATA, "nothing is published yet");
	operator_overrides("n", "1", HOUR);
	assert_refused(-ENODATA, "nothing is published yet");
	operator_drops("n");
	assert_refused(-ENODATA, "nothing is published yet");
	operator_unpins();
	assert_refused(-EALREADY, "it is not pinned");
	operator_resumes();
	assert_refused(-EALREADY, "it is not suspended");
}

static void suspension__whose_state_directory_is_unusable__is_refused(void **state)
{
	(void)state;
	core_make("");
	operator_suspends(0);
	assert_refused(-ENODATA, "its state directory cannot be used");
	operator_unpins();
	assert_refused(-ENODATA, "its state directory cannot be used");
	operator_resumes();
	assert_refused(-ENODATA, "its state directory cannot be used");
	assert_false(config_forget_revs(core.config));
}

static void reason__with_a_line_break_or_too_long__is_refused(void **state)
{
	char reason[CONFIG_MAX_REASON + 2];

	(void)state;
	begin("");
	memset(reason, 'x', sizeof(reason) - 1);
	reason[sizeof(reason) - 1] = '\0';
	operator.result = config_pin(core.config, 0, "ann", reason, operator.why);
	assert_refused(-EINVAL, "the reason must be at most 256 bytes");
	operator.result = config_suspend(core.config, 0, "ann", "two\nlines", operator.why);
	assert_refused(-EINVAL, "without control characters");
	operator.result = config_roll_back(core.config, 1, "ann", "\x7f", operator.why);
	assert_refused(-EINVAL, "without control characters");
	assert_null(core_status().pin);
	assert_null(core_status().suspension);
}

static void override__of_what_cannot_be_a_key_or_value__is_refused(void **state)
{
	static const struct {
		const char *key, *value, *why;
	} cases[] = {
		{"a\\b", "1", "backslash"},
		{"", "1", "the key \"\""},
		{"n", "", "the value is empty: write '' for"},
		{"n", "#fff", "the value is empty"},
		{"n", "[1", "the value cannot be read"},
		{"n", "a: b: c", "the value cannot be read"},
		{"n", "1\n---\n2", "only one is read"},
	};
	char large[CONFIG_MAX_VALUE + 2];

	(void)state;
	begin("");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		operator_overrides(cases[i].key, cases[i].value, HOUR);
		assert_refused(-EINVAL, cases[i].why);
	}
	memset(large, 'x', sizeof(large) - 1);
	large[sizeof(large) - 1] = '\0';
	operator_overrides("n", large, HOUR);
	assert_refused(-EINVAL, "the value is too long");
	operator_overrides("n", "1", 0);
	assert_refused(-EINVAL, "an override has an end");
	operator_drops("n");
	assert_refused(-ENOENT, "there is no override of that key");
	assert_generation(1);
	assert_int_equal(core_status().override_count, 0);
}

static void override__of_bytes__is_refused(void **state)
{
	(void)state;
	begin("type: bytes");
	operator_overrides("n", "1", HOUR);
	assert_refused(-ENOTSUP, "it is bytes: it has no keys");
}

static void override__of_a_set_of_files__is_refused(void **state)
{
	char place[SCRATCH_PATH + 32];

	(void)state;
	snprintf(place, sizeof(place), "dir: %s/out/set", core.dir);
	core.place = place;
	core.from = "[{server: main, path: /web.yaml, as: a.yaml}]";
	begin("");
	operator_overrides("n", "1", HOUR);
	assert_refused(-ENOTSUP, "it is a set of files: it has no keys");
}

static void overrides__are_at_most_32(void **state)
{
	char key[16];

	(void)state;
	begin("");
	for (int i = 0; i < 32; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		operator_overrides(key, "1", HOUR);
		assert_done();
	}
	operator_overrides("n", "2", HOUR);
	assert_refused(-ENOSPC, "there are 32 overrides already");
	operator_overrides("k0", "again", HOUR);
	assert_done();
	agent_restarts();
	assert_int_equal(core_status().override_count, 32);
}

/* ---- rollback ---- */

static void rollback__forward_by_number__is_good_again(void **state)
{
	(void)state;
	begin_with_two("");
	operator_rolls_back(1);
	operator_rolls_back(2);
	assert_done();
	assert_shows("n: 2\n");
	assert_generation(4);
	pull();
	assert_outcome(CONFIG_UNCHANGED);
}

static void rollback__that_a_check_rejects__leaves_no_trace(void **state)
{
	(void)state;
	begin_with_two("check: [/bin/true, '{path}']");
	operator_pins(0);
	world.check_says = "check exited with 1: the new disk is needed";
	operator_rolls_back(1);
	assert_failed("rejected by the check: keeping the current version: check exited with 1");
	assert_shows("n: 2\n");
	assert_verdicts(0);
	pull();
	assert_outcome(CONFIG_UNCHANGED);
	agent_restarts();
	assert_shows("n: 2\n");
}

static void rollback__whose_check_cannot_run__is_answered(void **state)
{
	(void)state;
	begin_with_two("check: [/bin/true, '{path}']");
	world.programs_missing = "check cannot be started";
	operator_rolls_back(1);
	assert_failed("check cannot be started");
	assert_generation(2);
}

static void rollback__to_what_is_not_there__is_answered(void **state)
{
	(void)state;
	begin_with_two("");
	operator_rolls_back(7);
	assert_failed("generation 7 cannot be read");
	assert_generation(2);
}

static void rollback__that_is_refused_by_the_disk__never_happens_later(void **state)
{
	(void)state;
	begin_with_two("");
	operator_pins(0);
	snapshot_is_blocked();
	operator_rolls_back(1);
	assert_failed("could not publish: keeping the current version");
	snapshot_is_free();
	pull();
	assert_shows("n: 2\n");
	agent_restarts();
	assert_shows("n: 2\n");
	assert_outcome(CONFIG_UNCHANGED);
	assert_verdicts(0);
}

static void rollback__killed_during_its_check__has_not_happened(void **state)
{
	(void)state;
	begin_with_two("check: [/bin/true, '{path}']");
	pull_of("n: 3\n");
	world.programs_hang = true;
	operator_rolls_back(1);
	assert_true(world.programs.running);
	world.programs_hang = false;
	agent_restarts();
	assert_shows("n: 3\n");
	assert_generation(3);
	assert_outcome(CONFIG_UNCHANGED);
	assert_verdicts(0);
}

static void rollback__is_not_probed(void **state)
{
	(void)state;
	begin("probe: {run: [/bin/true], for: 10s}");
	pull_of("n: 2\n");
	world_end_probe(NULL);
	operator_rolls_back(1);
	assert_false(world.probe.running);
	assert_int_equal(core.config->decisions.ledger->proven, 3);
	agent_restarts();
	assert_false(world.probe.running);
}

static void rollback_and_override__while_pinned__are_done(void **state)
{
	(void)state;
	begin_with_two("");
	operator_pins(0);
	operator_rolls_back(1);
	assert_done();
	assert_shows("n: 1\n");
	operator_overrides("n", "7", HOUR);
	assert_done();
	assert_shows("n: 7\n");
	operator_drops("n");
	assert_done();
	assert_shows("n: 1\n");
	assert_generation(5);
	assert_non_null(core_status().pin);
}

static void rollback__beside_an_override__keeps_it(void **state)
{
	(void)state;
	server_has("n: 1\nm: 1\n");
	agent_starts("");
	pull_of("n: 2\nm: 2\n");
	operator_overrides("m", "7", HOUR);
	operator_rolls_back(1);
	assert_shows("n: 1\nm: 7\n");
	operator_drops("m");
	assert_shows("n: 1\nm: 1\n");
}

static void override__whose_text_begins_like_null__is_a_text(void **state)
{
	(void)state;
	begin("");
	operator_overrides("n", "nullable", HOUR);
	assert_done();
	assert_shows("n: nullable\n");
	operator_overrides("n", "null # and more", HOUR);
	assert_refused(-EINVAL, "the value is empty");
}

static void override__rejected_by_the_schema__leaves_no_trace(void **state)
{
	static const char rules[] = "{\"properties\": {\"n\": {\"maximum\": 9}}}",
			  others[] = "{\"required\": [\"m\"]}";
	char schema[SCRATCH_PATH + 64];

	(void)state;
	scratch_write(core.dir, "schema.json", rules, strlen(rules));
	snprintf(schema, sizeof(schema), "schema: %s/schema.json", core.dir);
	begin(schema);
	operator_overrides("m", "2", HOUR);
	assert_done();
	operator_overrides("n", "10", HOUR);
	assert_failed("rejected by the schema: keeping the current version");
	assert_shows("n: 1\nm: 2\n");
	assert_int_equal(core_status().override_count, 1);
	scratch_write(core.dir, "schema.json", others, strlen(others));
	operator_drops("m"); /* nor does one that cannot be removed */
	assert_failed("rejected by the schema");
	assert_int_equal(core_status().override_count, 1);
}

static void override__of_null__removes_the_key_and_a_mapping_is_merged(void **state)
{
	(void)state;
	server_has("n: 1\nm: {a: 1}\n");
	agent_starts("");
	operator_overrides("n", "~ ", HOUR);
	assert_done();
	operator_overrides("m", "{b: 2}", HOUR);
	assert_done();
	assert_shows("m:\n  a: 1\n  b: 2\n");
	operator_overrides("m", "null", HOUR);
	assert_shows("{}\n");
	operator_drops("m");
	operator_drops("n");
	assert_shows("n: 1\nm: {a: 1}\n");
}

static void override__asked_for_during_a_step__is_done_after_it(void **state)
{
	(void)state;
	begin("check: [/bin/true, '{path}']");
	world.programs_hang = true;
	pull_of("n: 2\nm: 1\n");
	operator_overrides("n", "7", HOUR);
	assert_true(operator.waits);
	world.programs_hang = false;
	world_turn();
	assert_done();
	assert_shows("n: 7\nm: 1\n");
	assert_generation(3);
}

static void request__while_another_one_waits__is_refused(void **state)
{
	(void)state;
	begin_with_two("check: [/bin/true, '{path}']");
	world.programs_hang = true;
	operator_overrides("n", "7", HOUR);
	operator.result = config_roll_back(core.config, 1, "ann", "", operator.why);
	assert_refused(-EBUSY, "another change of this config is under way");
	operator.result = config_override(core.config, "n", "1", HOUR, "ann", "", operator.why);
	assert_refused(-EBUSY, "another change");
	operator.result = config_drop_override(core.config, "n", "ann", operator.why);
	assert_refused(-EBUSY, "another change");
	world_end_programs();
	world_turn();
	assert_shows("n: 7\n");
}

static void request__that_nobody_waits_for_any_more__goes_on(void **state)
{
	(void)state;
	begin_with_two("check: [/bin/true, '{path}']");
	world.programs_hang = true;
	operator_rolls_back(1);
	config_wait_cancel(core.config, &operator.waiter);
	operator.waits = false;
	world_end_programs();
	world_turn();
	assert_shows("n: 1\n");
	assert_int_equal(operator.answers, 0);
	assert_null(config_change_error(core.config));
}

static void generations__never_go_back(void **state)
{
	uint64_t expected = 2;

	(void)state;
	begin_with_two("");
	for (int i = 0; i < 3; i++) {
		operator_rolls_back(expected - 1);
		assert_generation(++expected);
		agent_restarts();
		assert_generation(expected);
		operator_overrides("n", i % 2 ? "5" : "6", HOUR);
		assert_generation(++expected);
		agent_restarts();
		assert_generation(expected);
		operator_drops("n");
		assert_generation(++expected);
	}
}

/* ---- suspension ---- */

static void suspended__begins_no_pull_whatever_asks(void **state)
{
	unsigned requests;

	(void)state;
	begin("");
	operator_suspends(0);
	requests = world.requests;
	server_has("n: 2\n");
	pull();
	pull_forced();
	message_comes("\"x\"");
	world_advance(3 * HOUR);
	assert_int_equal(world.requests, requests);
	assert_state("ok");
	assert_int_equal(core_status().next_pull_in_ms, -1);
	assert_string_equal(core_status().suspension->by, "ann");
	operator_resumes();
	assert_shows("n: 2\n");
	assert_null(core_status().suspension);
}

static void suspended__outlives_a_restart_and_ends_by_itself(void **state)
{
	(void)state;
	begin("");
	operator_suspends(HOUR);
	server_has("n: 2\n");
	agent_restarts();
	assert_shows("n: 1\n");
	assert_int_equal(core.runs, 1);
	operator_suspends(10 * SECOND); /* in place of the other one */
	world_advance(11 * SECOND + CONFIG_SPLAY_MS);
	assert_logged("the suspension has expired");
	assert_shows("n: 2\n");
}

static void suspended__rolls_back_overrides_and_heals_all_the_same(void **state)
{
	(void)state;
	begin_with_two("");
	operator_suspends(0);
	operator_rolls_back(1);
	assert_shows("n: 1\n");
	operator_overrides("n", "7", HOUR);
	assert_shows("n: 7\n");
	somebody_writes("harm");
	assert_shows("n: 7\n");
	operator_pins(0);
	operator_unpins();
	assert_non_null(core_status().suspension);
}

static void suspended__ends_the_run_under_way_as_ever(void **state)
{
	(void)state;
	begin("");
	world.holds = true;
	pull_of("n: 2\n");
	operator_suspends(0);
	assert_true(core_status().running);
	world.holds = false;
	world_turn();
	assert_shows("n: 2\n");
	assert_int_equal(core_status().next_pull_in_ms, -1);
}

static void suspended__leaves_the_queue_of_its_server(void **state)
{
	(void)state;
	begin("");
	world.busy = true;
	pull_of("n: 2\n");
	assert_true(core_status().waiting);
	operator_suspends(0);
	assert_false(core_status().waiting);
	world.busy = false;
	world_turn();
	assert_shows("n: 1\n");
}

static void suspended__with_once__pulls(void **state)
{
	(void)state;
	begin("");
	operator_suspends(0);
	agent_crashes();
	core.env.once = true;
	server_has("n: 2\n");
	agent_starts("");
	assert_shows("n: 2\n");
}

static void deadline__beyond_all_time__is_for_ever(void **state)
{
	(void)state;
	begin("");
	operator_pins(UINT64_MAX);
	assert_true(core_status().pin->until_ms == LEDGER_FOREVER);
	operator_pins(HOUR);
	assert_true(core_status().pin->until_ms == world.wall_ms + HOUR);
}

static void reason__that_is_empty__is_left_out(void **state)
{
	(void)state;
	begin_with_two("");
	assert_int_equal(config_roll_back(core.config, 1, "ann", "", operator.why), 0);
	world_turn();
	assert_string_equal(core.config->current.version.origin, "rollback to generation 1 by ann");
	assert_int_equal(
		config_override(core.config, "n", "nullable", HOUR, "ann", "", operator.why), 0);
	world_turn();
	assert_shows("n: nullable\n");
}

static void pin__while_the_disk_heals__is_about_the_current_version(void **state)
{
	(void)state;
	begin("");
	world.disk.held = true;
	somebody_writes("harm");
	assert_true(core.config->step.publishing);
	operator_pins(0);
	assert_logged("pinned: keeping the current version config=web generation=1");
	world.disk.held = false;
	world_turn();
	assert_shows("n: 1\n");
}

static void override__of_an_explicit_null__is_meant(void **state)
{
	(void)state;
	server_has("n: 1\nm: 1\n");
	agent_starts("");
	operator_overrides("n", "nullx", HOUR);
	assert_done();
	operator_overrides("n", "NULL", HOUR);
	assert_done();
	assert_shows("m: 1\n");
}

static void suspended__forgets_what_a_forced_refresh_asked(void **state)
{
	unsigned lifted;

	(void)state;
	begin("guard: {require: [n]}");
	operator_suspends(0);
	lifted = world.lifted;
	server_has("m: 1\n");
	pull_forced();
	assert_int_equal(world.lifted, lifted);
	operator_resumes();
	assert_rejected(REJECTED_BY_GUARD, "the required key");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CORE_TEST(anything__before_a_version_is_published__is_refused),
		CORE_TEST(suspension__whose_state_directory_is_unusable__is_refused),
		CORE_TEST(reason__with_a_line_break_or_too_long__is_refused),
		CORE_TEST(override__of_what_cannot_be_a_key_or_value__is_refused),
		CORE_TEST(override__of_bytes__is_refused),
		CORE_TEST(override__of_a_set_of_files__is_refused),
		CORE_TEST(overrides__are_at_most_32),
		CORE_TEST(rollback__forward_by_number__is_good_again),
		CORE_TEST(rollback__that_a_check_rejects__leaves_no_trace),
		CORE_TEST(rollback__whose_check_cannot_run__is_answered),
		CORE_TEST(rollback__to_what_is_not_there__is_answered),
		CORE_TEST(rollback__that_is_refused_by_the_disk__never_happens_later),
		CORE_TEST(rollback__killed_during_its_check__has_not_happened),
		CORE_TEST(rollback__is_not_probed),
		CORE_TEST(rollback_and_override__while_pinned__are_done),
		CORE_TEST(rollback__beside_an_override__keeps_it),
		CORE_TEST(override__rejected_by_the_schema__leaves_no_trace),
		CORE_TEST(override__of_null__removes_the_key_and_a_mapping_is_merged),
		CORE_TEST(override__asked_for_during_a_step__is_done_after_it),
		CORE_TEST(request__while_another_one_waits__is_refused),
		CORE_TEST(request__that_nobody_waits_for_any_more__goes_on),
		CORE_TEST(generations__never_go_back),
		CORE_TEST(suspended__begins_no_pull_whatever_asks),
		CORE_TEST(suspended__outlives_a_restart_and_ends_by_itself),
		CORE_TEST(suspended__rolls_back_overrides_and_heals_all_the_same),
		CORE_TEST(suspended__ends_the_run_under_way_as_ever),
		CORE_TEST(suspended__leaves_the_queue_of_its_server),
		CORE_TEST(suspended__with_once__pulls),
		CORE_TEST(deadline__beyond_all_time__is_for_ever),
		CORE_TEST(reason__that_is_empty__is_left_out),
		CORE_TEST_DISK(pin__while_the_disk_heals__is_about_the_current_version),
		CORE_TEST(override__of_an_explicit_null__is_meant),
		CORE_TEST(suspended__forgets_what_a_forced_refresh_asked),
		CORE_TEST(override__whose_text_begins_like_null__is_a_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

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
		{"a\xff", "1", "is not UTF-8"},
		{"a\xed\xa0\x80", "1", "is not UTF-8"},
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
	trigger_hint(config_push_topic(core.config)->trigger, world.now_ms, 0);
	assert_null(trigger_queue_take(&world.queue)); /* messages do not even wake the agent */
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

/* ---- what is logged, and when it ends ---- */

static void each_request__is_logged_with_who_and_why(void **state)
{
	(void)state;
	begin_with_two("");
	operator_pins(0);
	assert_line("<6>pinned: keeping the current version config=web generation=2 by=ann "
		    "reason=\"release day\"");
	operator_pins(HOUR);
	assert_line("<6>pinned: keeping the current version config=web generation=2 by=ann "
		    "reason=\"release day\" for=1h");
	operator_unpins();
	assert_line("<6>unpinned config=web by=ann");
	assert_int_equal(operator.result, 0);
	operator_suspends(0);
	assert_line("<6>suspended: no pulls until it resumes config=web by=ann reason=move");
	operator_suspends(2 * HOUR);
	assert_line("<6>suspended: no pulls until it resumes config=web by=ann reason=move for=2h");
	operator_resumes();
	assert_line("<6>resumed config=web by=ann");
	operator_rolls_back(1);
	assert_line("<6>a rollback was asked for config=web from=2 to=1 by=ann reason=\"pages are "
		    "slow\"");
	operator_overrides("n", "7", HOUR);
	assert_line("<6>an override was asked for config=web key=n by=ann reason=\"a try\" for=1h");
	operator_drops("n");
	assert_line("<6>an override is to be removed config=web key=n by=ann");
	assert_done();
}

static void each_request__without_a_reason__says_none(void **state)
{
	(void)state;
	begin_with_two("");
	assert_int_equal(config_pin(core.config, 0, "ann", "", operator.why), 0);
	assert_line("<6>pinned: keeping the current version config=web generation=2 by=ann");
	assert_int_equal(config_suspend(core.config, 0, "ann", "", operator.why), 0);
	assert_line("<6>suspended: no pulls until it resumes config=web by=ann");
	assert_int_equal(config_roll_back(core.config, 1, "ann", "", operator.why), 0);
	assert_line("<6>a rollback was asked for config=web from=2 to=1 by=ann");
	assert_string_equal(core.config->decisions.ledger->verdicts[0].why, "rolled back by ann");
	assert_int_equal(config_override(core.config, "n", "7", HOUR, "ann", "", operator.why), 0);
	assert_line("<6>an override was asked for config=web key=n by=ann for=1h");
	assert_origin("override of n by ann for 1h");
	assert_string_equal(core_status().overrides[0].reason, "");
}

static void decision__keeps_who_why_and_until_when(void **state)
{
	(void)state;
	begin("");
	operator_pins(HOUR);
	operator_suspends(2 * HOUR);
	operator_overrides("n", "7", 3 * HOUR);
	assert_string_equal(core_status().pin->by, "ann");
	assert_string_equal(core_status().pin->reason, "release day");
	assert_int_equal(core_status().pin->until_ms, world.wall_ms + HOUR);
	assert_string_equal(core_status().pin->sha256, core.config->current.version.sha256);
	assert_string_equal(core_status().suspension->by, "ann");
	assert_string_equal(core_status().suspension->reason, "move");
	assert_int_equal(core_status().suspension->until_ms, world.wall_ms + 2 * HOUR);
	assert_string_equal(core_status().overrides[0].by, "ann");
	assert_string_equal(core_status().overrides[0].key, "n");
	assert_non_null(strstr(core_status().overrides[0].value, "7"));
	assert_string_equal(core_status().overrides[0].reason, "a try");
	assert_int_equal(core_status().overrides[0].until_ms, world.wall_ms + 3 * HOUR);
}

static void deadline__a_moment_before_all_time__is_that_moment(void **state)
{
	uint64_t left;

	(void)state;
	begin("");
	left = (uint64_t)(LEDGER_FOREVER - world.wall_ms);
	operator_pins(left);
	assert_true(core_status().pin->until_ms == LEDGER_FOREVER);
	operator_pins(left - 1);
	assert_true(core_status().pin->until_ms == LEDGER_FOREVER - 1);
	operator_pins(1);
	assert_true(core_status().pin->until_ms == world.wall_ms + 1);
}

static void reason__up_to_the_longest_and_of_any_letters__is_taken(void **state)
{
	static const char *const bad[] = {"\x1f", "a\tb", "\x7f", "a\n"};
	char reason[CONFIG_MAX_REASON + 2];

	(void)state;
	begin("");
	memset(reason, 'x', sizeof(reason));
	reason[CONFIG_MAX_REASON] = '\0';
	assert_int_equal(config_pin(core.config, 0, "ann", reason, operator.why), 0);
	assert_int_equal(config_pin(core.config, 0, "ann", "a ~b", operator.why), 0);
	assert_int_equal(config_pin(core.config, 0, "ann", "\xc3\xa9t\xc3\xa9", operator.why), 0);
	reason[CONFIG_MAX_REASON] = 'x';
	reason[CONFIG_MAX_REASON + 1] = '\0';
	assert_int_equal(config_pin(core.config, 0, "ann", reason, operator.why), -EINVAL);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(config_pin(core.config, 0, "ann", bad[i], operator.why), -EINVAL);
		assert_string_equal(operator.why,
			"the reason must be at most 256 bytes without control characters");
		assert_int_equal(
			config_override(core.config, "n", "1", HOUR, "ann", bad[i], operator.why),
			-EINVAL);
		assert_int_equal(config_check_change(core.config, bad[i], operator.why), -EINVAL);
	}
	assert_int_equal(config_check_change(core.config, "a reason", operator.why), 0);
}

static void value__up_to_the_longest__is_taken(void **state)
{
	char value[CONFIG_MAX_VALUE + 1];

	(void)state;
	begin("");
	memset(value, 'x', sizeof(value));
	value[CONFIG_MAX_VALUE - 4] = '\0'; /* quotes, a blank and a newline are with it */
	operator_overrides("n", value, HOUR);
	assert_done();
	value[CONFIG_MAX_VALUE - 4] = 'x';
	value[CONFIG_MAX_VALUE - 3] = '\0';
	operator_overrides("n", value, HOUR);
	assert_refused(-EINVAL, "the value is too long: at most 4096 bytes as JSON");
}

static void value__that_is_null_in_any_spelling__removes_the_key(void **state)
{
	static const char *const words[] = {
		"null", "Null", "NULL", "~", " null", "\tnull", "null ", "Null\t ", " ~ "};
	static const char *const others[] = {"", " ", "# null", "null # x", "~ # x"};

	(void)state;
	server_has("n: 1\nm: 1\n");
	agent_starts("");
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		operator_overrides("n", words[i], HOUR);
		assert_done();
		assert_shows("m: 1\n");
		operator_drops("n");
		assert_shows("n: 1\nm: 1\n");
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		operator_overrides("n", others[i], HOUR);
		assert_refused(-EINVAL,
			"the value is empty: write '' for an empty text, null to remove the key; a "
			"text that begins with # needs quotes");
	}
	operator_overrides("n", "'null'", HOUR);
	assert_done();
	operator_overrides("n", "{a: null, b: 1}", HOUR);
	assert_done();
}

static void key__that_is_wrong__is_shown(void **state)
{
	(void)state;
	begin("");
	operator_overrides("", "1", HOUR);
	assert_int_equal(strncmp(operator.why, "the key \"\" ", 11), 0);
	operator_overrides("a\\b", "1", HOUR);
	assert_int_equal(strncmp(operator.why, "the key \"a\\", 11), 0);
	operator_overrides("n", "1", 0);
	assert_refused(-EINVAL, "an override has an end: say for how long it is");
	operator_overrides("n", "1", 1);
	assert_done();
	operator_drops("m");
	assert_refused(-ENOENT, "there is no override of that key: `pullet status web` lists them");
	operator_drops("nn");
	assert_refused(-ENOENT, "there is no override of that key");
}

static void override_of_several__removes_the_one_that_is_named(void **state)
{
	(void)state;
	begin("");
	operator_overrides("a", "1", HOUR);
	operator_overrides("b", "2", HOUR);
	operator_overrides("c", "3", HOUR);
	operator_drops("b");
	assert_done();
	assert_int_equal(core_status().override_count, 2);
	assert_string_equal(core_status().overrides[0].key, "a");
	assert_string_equal(core_status().overrides[1].key, "c");
	assert_shows("n: 1\na: 1\nc: 3\n");
}

static void decision__that_cannot_be_saved__is_done_all_the_same(void **state)
{
	static const char lost[] =
		"done, but not saved: it will be lost on restart (the log says why)";

	(void)state;
	begin("");
	disk_fails(CALL_RENAME, 1, true, ENOSPC);
	operator_pins(0);
	assert_refused(-EIO, lost);
	assert_non_null(core_status().pin);
	assert_line("<6>pinned: keeping the current version config=web generation=1 by=ann "
		    "reason=\"release day\"");
	operator_suspends(0);
	assert_refused(-EIO, lost);
	assert_non_null(core_status().suspension);
	operator_resumes();
	assert_refused(-EIO, lost);
	assert_null(core_status().suspension);
	operator_unpins();
	assert_refused(-EIO, lost);
	assert_null(core_status().pin);
	disk_recovers();
}

static void unpin_and_resume__pull(void **state)
{
	unsigned requests;

	(void)state;
	begin("");
	operator_pins(0);
	requests = world.requests;
	operator_unpins();
	assert_int_equal(world.requests, requests + 1);
	operator_suspends(0);
	operator_resumes();
	assert_int_equal(world.requests, requests + 2);
}

static void rollback__of_a_version_that_was_lost__waits_for_its_pull(void **state)
{
	(void)state;
	begin_with_two("");
	current_forget(core.config);
	operator_rolls_back(1);
	assert_refused(-EAGAIN, "the current version could not be read, and is pulled again: try "
				"again when it was");
	assert_null(core.config->decisions.request);
	pull();
	operator_rolls_back(1);
	assert_done();
}

static void error__of_the_last_change__is_forgotten_by_the_next(void **state)
{
	(void)state;
	begin_with_two("");
	assert_null(config_change_error(core.config));
	operator_rolls_back(7);
	assert_non_null(config_change_error(core.config));
	operator_overrides("n", "7", HOUR);
	assert_done();
	assert_null(config_change_error(core.config));
}

static void error__of_a_change__is_none_while_the_next_is_under_way(void **state)
{
	(void)state;
	begin_with_two("check: [/bin/true, '{path}']");
	operator_rolls_back(7);
	assert_non_null(config_change_error(core.config));
	world.programs_hang = true;
	operator_rolls_back(1);
	assert_null(config_change_error(core.config));
	world.programs_hang = false;
	world_turn();
	assert_done();
}

static void pinned_generation__is_that_which_the_disk_takes(void **state)
{
	(void)state;
	begin("");
	assert_int_equal(config_pinned_generation(core.config), 1);
	world.disk.held = true;
	pull_of("n: 2\n");
	assert_int_equal(config_pinned_generation(core.config), 2);
	world.disk.held = false;
	world_turn();
	world.disk.held = true;
	somebody_writes("harm");
	assert_true(core.config->step.publishing);
	assert_int_equal(config_pinned_generation(core.config), 2);
	world.disk.held = false;
	world_turn();
}

static void pin__before_a_ledger_or_store__is_refused(void **state)
{
	(void)state;
	core_make("");
	assert_int_equal(operate_check_published(core.config, operator.why), -ENODATA);
	assert_string_equal(operator.why, "nothing is published yet");
	operator_suspends(0);
	assert_refused(-ENODATA, "its state directory cannot be used: the log says why");
}

static void request__when_another_is_under_way__is_refused_with_a_sentence(void **state)
{
	(void)state;
	begin_with_two("check: [/bin/true, '{path}']");
	world.programs_hang = true;
	operator_rolls_back(1);
	assert_int_equal(config_check_change(core.config, "", operator.why), -EBUSY);
	assert_string_equal(operator.why, "another change of this config is under way: try again "
					  "when it has ended");
	world.programs_hang = false;
	world_turn();
	assert_int_equal(config_check_change(core.config, "", operator.why), 0);
}

static void overrides__beyond_the_most__are_refused_with_a_sentence(void **state)
{
	char key[16];

	(void)state;
	begin("");
	for (int i = 0; i < LEDGER_MAX_OVERRIDES; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		operator_overrides(key, "1", HOUR);
	}
	operator_overrides("n", "2", HOUR);
	assert_refused(-ENOSPC, "there are 32 overrides already: remove one");
	assert_null(core.config->decisions.request);
	operator_drops("k31");
	operator_overrides("n", "2", HOUR);
	assert_done();
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
		CORE_TEST(each_request__is_logged_with_who_and_why),
		CORE_TEST(each_request__without_a_reason__says_none),
		CORE_TEST(decision__keeps_who_why_and_until_when),
		CORE_TEST(deadline__a_moment_before_all_time__is_that_moment),
		CORE_TEST(reason__up_to_the_longest_and_of_any_letters__is_taken),
		CORE_TEST(value__up_to_the_longest__is_taken),
		CORE_TEST(value__that_is_null_in_any_spelling__removes_the_key),
		CORE_TEST(key__that_is_wrong__is_shown),
		CORE_TEST(override_of_several__removes_the_one_that_is_named),
		CORE_TEST(decision__that_cannot_be_saved__is_done_all_the_same),
		CORE_TEST(unpin_and_resume__pull),
		CORE_TEST(rollback__of_a_version_that_was_lost__waits_for_its_pull),
		CORE_TEST(error__of_the_last_change__is_forgotten_by_the_next),
		CORE_TEST(error__of_a_change__is_none_while_the_next_is_under_way),
		CORE_TEST_DISK(pinned_generation__is_that_which_the_disk_takes),
		CORE_TEST(pin__before_a_ledger_or_store__is_refused),
		CORE_TEST(request__when_another_is_under_way__is_refused_with_a_sentence),
		CORE_TEST(overrides__beyond_the_most__are_refused_with_a_sentence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

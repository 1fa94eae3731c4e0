/* What the status says: state, age, what the server has, what is decided. */
#include "tests/unit/fixture/core.h"

static void state__follows_the_confirmations_of_the_server(void **state)
{
	(void)state;
	agent_starts("backoff_bound: 1, timeout: 10s");
	assert_state("waiting");
	assert_int_equal(core_status().age_ms, -1);
	server_has("n: 1\n");
	pull();
	assert_state("ok");
	server_is_down();
	pull();
	assert_state("failing");
	assert_true(core_status().failing_since_ms > 0);
	world_advance(HOUR + 11 * SECOND);
	assert_state("stale");
	server_recovers();
	pull();
	assert_state("ok");
	assert_int_equal(core_status().failing_since_ms, 0);
}

static void stale__while_suspended__never_comes(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("backoff_bound: 1, timeout: 10s");
	operator_suspends(0);
	world_advance(100 * (uint64_t)HOUR);
	assert_state("ok");
	assert_true(config_stale_ms(core.config) == CONFIG_NEVER);
	assert_true(status_readers_stale_ms(core.config) == CONFIG_NEVER);
	server_is_down();
	operator_resumes();
	assert_state("failing"); /* the time of the suspension does not count */
	world_advance(HOUR + 11 * SECOND);
	assert_state("stale");
}

static void age__of_a_version_from_an_earlier_life__is_an_upper_bound(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	server_is_down();
	agent_crashes();
	world.wall_ms += HOUR;
	core_make("");
	scratch_close(core.settings->runtime_dir);
	assert_int_equal(mkdir(core.settings->runtime_dir, 0700), 0); /* the machine has booted */
	core.env.starting = true;
	config_start(core.config, true);
	assert_int_equal(core_status().age_ms, HOUR);
	world.wall_ms -= 2 * HOUR; /* a clock that was set back */
	assert_int_equal(core_status().age_ms, 0);
}

static void rejected_version__is_named_with_its_reason(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("guard: {require: [n]}");
	assert_null(core_status().rejected);
	pull_of("m: 1\n");
	assert_rejected(REJECTED_BY_GUARD, "the required key");
	assert_false(core_status().held);
	assert_true(core_status().rejected_is_error);
	assert_int_equal(core_status().rejections, 1);
}

static void status__has_the_places_and_decisions(void **state)
{
	char path[SCRATCH_PATH + 64];

	(void)state;
	server_has("n: 1\n");
	agent_starts("reload: {run: [/bin/true]}");
	core_path(path, "run/web.snap");
	assert_string_equal(core_status().snapshot, path);
	assert_string_equal(core_status().url, "http://server/web.yaml");
	assert_true(core_status().has_notify);
	assert_null(core_status().pin);
	operator_pins(0);
	operator_overrides("n", "7", HOUR);
	assert_int_equal(core_status().override_count, 1);
	assert_string_equal(core_status().overrides[0].key, "n");
	assert_non_null(core_status().pin);
	assert_true(core_status().expires_ms == INT64_MAX);
}

static void status__without_a_snapshot__names_none(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("snapshot: false");
	assert_string_equal(core_status().snapshot, "");
	assert_false(core_status().has_notify);
}

static void version_that_is_being_published__is_not_rejected(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("check: [/bin/true, '{path}']");
	world.programs_hang = true;
	pull_of("n: 2\n");
	assert_not_rejected();
	assert_true(core_status().running);
	world.programs_hang = false;
	world_turn();
}

static void version_that_could_not_be_published__is_not_rejected(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	snapshot_is_blocked();
	pull_of("n: 2\n");
	assert_not_rejected(); /* no decision keeps it */
	assert_state("failing");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CORE_TEST(state__follows_the_confirmations_of_the_server),
		CORE_TEST(stale__while_suspended__never_comes),
		CORE_TEST(age__of_a_version_from_an_earlier_life__is_an_upper_bound),
		CORE_TEST(rejected_version__is_named_with_its_reason),
		CORE_TEST(status__has_the_places_and_decisions),
		CORE_TEST(status__without_a_snapshot__names_none),
		CORE_TEST(version_that_is_being_published__is_not_rejected),
		CORE_TEST(version_that_could_not_be_published__is_not_rejected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

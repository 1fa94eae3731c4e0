/* What follows a publication: the application is notified, then its probe says whether the version
 * stays. */
#include "tests/unit/fixture/core.h"

#define PROBE "probe: {run: [/bin/true], for: 10s}"
#define RELOAD "reload: {run: [/bin/true]}"

static void begin(const char *extra)
{
	server_has("n: 1\n");
	agent_starts(extra);
}

static void probe_says(const char *why)
{
	world_end_probe(why);
	world_turn();
}

static uint64_t notified(void)
{
	return core.config->decisions.ledger->notified;
}

/* ---- notified ---- */

static void published__notifies_the_application(void **state)
{
	(void)state;
	begin(RELOAD);
	assert_int_equal(notified(), 1);
	pull_of("n: 2\n");
	assert_int_equal(notified(), 2);
	assert_int_equal(world.reloads, 2);
}

static void published__when_no_rule_matches__counts_as_notified(void **state)
{
	(void)state;
	begin(RELOAD);
	world.no_rule_matches = true;
	pull_of("n: 2\n");
	assert_int_equal(notified(), 2);
	assert_int_equal(world.reloads, 1);
}

static void reload__that_fails__rolls_nothing_back(void **state)
{
	(void)state;
	begin(RELOAD ", " PROBE);
	world_end_probe(NULL);
	world.reload_says = "hook exited with 9";
	pull_of("n: 2\n");
	assert_logged("reload failed");
	assert_shows("n: 2\n");
	assert_int_equal(notified(), 1);
	assert_false(world.probe.running);
	assert_int_equal(core_status().notify.reload.in_a_row, 1);
	world.reload_says = NULL;
	world_reload();
	assert_int_equal(notified(), 2);
	assert_true(world.probe.running);
}

static void healed__notifies_nobody(void **state)
{
	(void)state;
	begin(RELOAD);
	somebody_writes("harm");
	assert_int_equal(world.reloads, 1);
}

static void rejected__notifies_nobody(void **state)
{
	(void)state;
	begin(RELOAD);
	pull_of("n: [\n");
	assert_int_equal(world.reloads, 1);
}

static void override__that_expires__notifies_of_it(void **state)
{
	(void)state;
	begin(RELOAD);
	operator_overrides("n", "7", 10 * SECOND);
	world_advance(11 * SECOND);
	assert_int_equal(world.reloads, 3);
	assert_int_equal(notified(), 3);
}

static void notify__without_memory__is_said(void **state)
{
	(void)state;
	world.no_memory_for_notify = true;
	begin(RELOAD);
	assert_logged("out of memory: the application will not be notified");
	assert_shows("n: 1\n");
}

/* ---- watched ---- */

static void probe__that_passes__proves_the_version(void **state)
{
	(void)state;
	begin(PROBE);
	probe_says(NULL);
	pull_of("n: 2\n");
	probe_says(NULL);
	assert_generation(2);
	assert_int_equal(core.config->decisions.ledger->proven, 2);
	assert_int_equal(core_status().notify.probe, PROBE_PASSED);
	agent_restarts();
	assert_false(world.probe.running);
}

static void probe__that_fails__rejects_the_bytes_also_after_a_crash(void **state)
{
	(void)state;
	begin(PROBE ", " RELOAD);
	probe_says(NULL);
	pull_of("n: 2\n");
	probe_says("it answers 500");
	assert_shows("n: 1\n");
	assert_generation(3);
	assert_int_equal(notified(), 3);
	assert_false(world.probe.running);
	assert_logged("the version failed its probe and was rolled back");
	for (int i = 0; i < 2; i++) {
		pull();
		assert_outcome(CONFIG_FAILED);
		assert_error("it answers 500");
	}
	assert_logged("the server still has the version that was rolled back");
	snprintf(world_find_page("/web.yaml")->etag, 24, "\"other\""); /* the bytes come again */
	pull();
	assert_rejected(REJECTED_BY_PROBE, "it answers 500");
	agent_restarts();
	assert_outcome(CONFIG_FAILED);
	assert_shows("n: 1\n");
	pull_of("n: 4\n");
	assert_shows("n: 4\n");
}

static void probe__that_fails__without_an_older_version__keeps_it(void **state)
{
	(void)state;
	begin(PROBE);
	probe_says("bad");
	assert_logged("there is no older one to go back to");
	assert_shows("n: 1\n");
	assert_verdicts(0);
	pull_of("n: 2\n");
	assert_shows("n: 2\n");
	assert_true(world.probe.running);
}

static void probe__that_fails_while_pinned__keeps_it_until_the_unpin(void **state)
{
	(void)state;
	begin(PROBE);
	probe_says(NULL);
	pull_of("n: 2\n");
	operator_pins(0);
	probe_says("bad");
	assert_logged("and is pinned: it stays until the unpin");
	assert_shows("n: 2\n");
	agent_restarts();
	assert_shows("n: 2\n");
	operator_unpins();
	assert_shows("n: 1\n");
	assert_generation(3);
}

static void probe__of_a_version_that_was_replaced__ends(void **state)
{
	(void)state;
	begin(PROBE);
	probe_says(NULL);
	pull_of("n: 2\n");
	pull_of("n: 3\n");
	assert_int_equal(world.probe.o.generation, 3);
	probe_says("bad");
	assert_shows("n: 1\n"); /* the last that was proven */
	assert_origin("probe: generation 3 was bad, back to 1");
}

static void probe__that_says_something_of_an_older_version__is_ignored(void **state)
{
	(void)state;
	begin(PROBE);
	probe_says(NULL);
	pull_of("n: 2\n");
	world.disk.held = true;
	core.config->current.version.generation = 7; /* as if it had been replaced */
	probe_says("bad");
	core.config->current.version.generation = 2;
	assert_shows("n: 2\n");
	assert_verdicts(0);
}

static void probe__when_only_the_overrides_differ__drops_these(void **state)
{
	(void)state;
	begin(PROBE);
	probe_says(NULL);
	operator_overrides("n", "7", HOUR);
	assert_shows("n: 7\n");
	probe_says("bad");
	assert_logged("the overrides failed the probe and are removed");
	assert_shows("n: 1\n");
	assert_int_equal(core_status().override_count, 0);
	assert_origin("probe: the overrides were bad, and are removed");
	assert_verdicts(0);
	assert_false(world.probe.running); /* these bytes are proven */
	assert_int_equal(core.config->decisions.ledger->proven, 3);
}

static void probe__of_a_new_version_with_an_override__blames_the_version(void **state)
{
	(void)state;
	server_has("n: 1\nm: 1\n");
	agent_starts(PROBE);
	probe_says(NULL);
	operator_overrides("n", "7", HOUR);
	probe_says(NULL);
	pull_of("n: 2\nm: 2\n");
	probe_says("bad");
	assert_shows("n: 7\nm: 1\n");
	assert_int_equal(core_status().override_count, 1);
}

static void probe__that_fails__when_all_older_ones_have_the_same_bytes__keeps_it(void **state)
{
	(void)state;
	begin(PROBE);
	operator_overrides("n", "7", HOUR);
	operator_drops("n");
	probe_says("it answers 500");
	assert_logged("there is no older one to go back to");
	assert_error("it answers 500");
	assert_not_logged("was rolled back");
	assert_verdicts(0); /* else the server's bytes would be refused for ever */
	assert_generation(3);
	agent_restarts();
	assert_verdicts(0);
	assert_shows("n: 1\n");
	assert_outcome(CONFIG_UNCHANGED);
}

static void probe__with_overrides_over_bytes_that_were_not_probed__drops_and_probes(void **state)
{
	(void)state;
	begin(PROBE);
	operator_overrides("n", "7", HOUR);
	probe_says("bad");
	assert_logged("the overrides failed the probe and are removed");
	assert_shows("n: 1\n");
	assert_true(world.probe.running); /* nobody knows yet that these bytes are good */
	assert_int_equal(core.config->decisions.ledger->proven, 0);
}

static void probe__of_a_new_version_with_an_override_that_is_new_as_well__blames_it(void **state)
{
	(void)state;
	server_has("n: 1\nm: 1\n");
	agent_starts(PROBE);
	probe_says(NULL);
	operator_overrides("n", "7", HOUR);
	pull_of("n: 2\nm: 2\n");
	probe_says("bad");
	assert_shows("n: 2\nm: 2\n");
	assert_int_equal(core_status().override_count, 0);
	assert_true(world.probe.running);
}

static void probes_rollback__that_fails__is_tried_again_whatever_the_server_says(void **state)
{
	(void)state;
	begin(PROBE ", check: [/bin/true, '{path}']");
	probe_says(NULL);
	pull_of("n: 2\n");
	snapshot_is_blocked();
	probe_says("it answers 500");
	assert_generation(2);
	snapshot_is_free();
	server_is_down();
	pull();
	assert_shows("n: 1\n");
	assert_generation(3);
	assert_outcome(CONFIG_FAILED);
	assert_error("connection refused");
}

static void probes_rollback__that_fails__when_the_server_has_a_rejected_version(void **state)
{
	(void)state;
	begin(PROBE ", check: [/bin/true, '{path}']");
	probe_says(NULL);
	pull_of("n: 2\n");
	world.check_says = "no";
	pull_of("n: 3\n");
	world.check_says = NULL;
	snapshot_is_blocked();
	probe_says("it answers 500");
	snapshot_is_free();
	pull();
	assert_shows("n: 1\n");
	assert_rejected(CHECK_PROGRAM, "no");
}

static void harmful_version__that_is_forced_again__is_good_when_its_probe_passes(void **state)
{
	(void)state;
	begin(PROBE);
	probe_says(NULL);
	pull_of("n: 2\n");
	probe_says("bad");
	pull_forced();
	assert_shows("n: 2\n");
	probe_says(NULL);
	assert_state("ok");
	assert_verdicts(0);
	assert_generation(4);
}

static void pin__during_a_probes_rollback__keeps_the_version(void **state)
{
	(void)state;
	begin(PROBE ", check: [/bin/true, '{path}']");
	probe_says(NULL);
	pull_of("n: 2\n");
	world.programs_hang = true;
	probe_says("bad");
	assert_true(world.programs.running);
	operator_pins(0);
	world.programs_hang = false;
	world_turn();
	assert_shows("n: 2\n");
	operator_unpins();
	assert_shows("n: 1\n");
}

/* ---- to the letter ---- */

static void probe__that_fails__is_logged_by_what_becomes_of_it(void **state)
{
	(void)state;
	begin(PROBE);
	probe_says("bad");
	assert_line("<3>the version fails its probe, and there is no older one to go back to "
		    "config=web generation=1");
	assert_line("<4>the version fails its probe, and there is no older one config=web why=bad "
		    "next_in_ms=3600000 generation=1");
	pull_of("n: 2\n");
	probe_says(NULL);
	operator_overrides("n", "7", HOUR);
	probe_says("worse");
	assert_line("<4>the overrides failed the probe and are removed config=web why=worse "
		    "next_in_ms=3600000 generation=3");
	pull_of("n: 3\n");
	operator_pins(0);
	probe_says("worst");
	assert_line("<4>the version fails its probe, and is pinned: it stays until the unpin "
		    "config=web why=worst next_in_ms=3600000 generation=5 version=a14179f4");
	assert_error("worst");
}

static void overrides__that_failed_the_probe__are_removed_for_good(void **state)
{
	(void)state;
	begin(PROBE);
	probe_says(NULL);
	operator_overrides("a", "1", HOUR);
	probe_says(NULL);
	operator_overrides("b", "2", HOUR);
	assert_shows("n: 1\na: 1\nb: 2\n");
	probe_says("bad");
	assert_shows("n: 1\n"); /* all of them: nobody knows which it was */
	agent_restarts();
	assert_shows("n: 1\n");
	assert_int_equal(core_status().override_count, 0);
}

static void notify__is_made_for_what_is_current(void **state)
{
	(void)state;
	begin(RELOAD);
	assert_int_equal(world.reload->o.current, 0); /* when it was made */
	assert_ptr_equal(world.reload->o.loop, &world.loop);
	agent_restarts();
	assert_int_equal(world.reload->o.current, 1);
	assert_int_equal(world.reload->o.notified, 1);
}

static void probe_failure__after_one_of_the_server__has_not_its_cause(void **state)
{
	(void)state;
	begin(PROBE);
	probe_says(NULL);
	pull_of("n: 2\n");
	server_is_down();
	pull();
	assert_int_equal(core_status().cause, KIND_CAUSE_UNREACHABLE);
	probe_says("503");
	assert_error("503");
	assert_int_equal(core_status().cause, KIND_CAUSE_NONE);
	assert_shows("n: 1\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CORE_TEST(published__notifies_the_application),
		CORE_TEST(published__when_no_rule_matches__counts_as_notified),
		CORE_TEST(reload__that_fails__rolls_nothing_back),
		CORE_TEST(healed__notifies_nobody),
		CORE_TEST(rejected__notifies_nobody),
		CORE_TEST(override__that_expires__notifies_of_it),
		CORE_TEST(notify__without_memory__is_said),
		CORE_TEST(probe__that_passes__proves_the_version),
		CORE_TEST(probe__that_fails__rejects_the_bytes_also_after_a_crash),
		CORE_TEST(probe__that_fails__without_an_older_version__keeps_it),
		CORE_TEST(probe__that_fails_while_pinned__keeps_it_until_the_unpin),
		CORE_TEST(probe__of_a_version_that_was_replaced__ends),
		CORE_TEST(probe__that_says_something_of_an_older_version__is_ignored),
		CORE_TEST(probe__when_only_the_overrides_differ__drops_these),
		CORE_TEST(probe__of_a_new_version_with_an_override__blames_the_version),
		CORE_TEST(probes_rollback__that_fails__is_tried_again_whatever_the_server_says),
		CORE_TEST(probes_rollback__that_fails__when_the_server_has_a_rejected_version),
		CORE_TEST(harmful_version__that_is_forced_again__is_good_when_its_probe_passes),
		CORE_TEST(pin__during_a_probes_rollback__keeps_the_version),
		CORE_TEST(probe__that_fails__when_all_older_ones_have_the_same_bytes__keeps_it),
		CORE_TEST(probe__with_overrides_over_bytes_that_were_not_probed__drops_and_probes),
		CORE_TEST(probe__of_a_new_version_with_an_override_that_is_new_as_well__blames_it),
		CORE_TEST(probe__that_fails__is_logged_by_what_becomes_of_it),
		CORE_TEST(overrides__that_failed_the_probe__are_removed_for_good),
		CORE_TEST(notify__is_made_for_what_is_current),
		CORE_TEST(probe_failure__after_one_of_the_server__has_not_its_cause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What the servers have: the current version, a rejected one that is kept, a mixture of layers that
 * came at different times. */
#include "tests/unit/fixture/core.h"

#define TWO "[{server: main, path: /base.yaml}, {server: main, path: /web.yaml}]"

static void two(const char *base, const char *web)
{
	world_put("/base.yaml", base);
	world_put("/web.yaml", web);
}

/* ---- the same bytes ---- */

static void same_bytes__under_a_new_etag__become_no_generation(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	snprintf(world_find_page("/web.yaml")->etag, 24, "\"other\"");
	pull();
	assert_outcome(CONFIG_UNCHANGED);
	assert_generation(1);
	assert_string_equal(core.config->current.version.parts[0].etag, "\"other\"");
	assert_not_rejected();
}

static void rejected_version__answered_by_304__is_rejected_again_without_a_check(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("check: [/bin/true, '{path}']");
	world.check_says = "no such host";
	pull_of("n: bad\n");
	assert_rejected(CHECK_PROGRAM, "no such host");
	for (int i = 1; i <= 3; i++) {
		pull();
		assert_outcome(CONFIG_FAILED);
		assert_error("no such host");
		assert_int_equal(world.unchanged, i);
	}
	assert_int_equal(world.checked, 2);
	assert_int_equal(core_status().rejections, 1);
}

static void rejected_version__when_the_current_one_comes_back__is_forgotten(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("check: [/bin/true, '{path}']");
	world.check_says = "no";
	pull_of("n: bad\n");
	pull_of("n: 1\n");
	assert_outcome(CONFIG_UNCHANGED);
	assert_not_rejected();
	assert_state("ok");
	world.check_says = NULL;
	pull_of("n: bad\n");
	assert_outcome(CONFIG_FAILED);
	assert_int_equal(world.checked, 2);
}

static void check_times_out(bool does)
{
	world.programs_time_out = does;
	world.programs_break = does ? "still ran after 30 s" : NULL;
}

static void version__whose_check_times_out_three_times_in_a_row__is_rejected(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("check: [/bin/true, '{path}']");
	check_times_out(true);
	pull_of("n: 2\n");
	world_find_page("/web.yaml")->etag[0] = '\0'; /* its bytes come again and again */
	for (int i = 1; i < 3; i++) {
		assert_outcome(CONFIG_FAILED);
		assert_error("still ran after 30 s");
		assert_not_rejected();
		pull();
	}
	assert_rejected(CHECK_PROGRAM, "still ran after 30 s");
	assert_int_equal(world.checked, 4);
	pull();
	assert_int_equal(world.checked, 4);
}

static void check__that_times_out_now_and_then__rejects_nothing(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("check: [/bin/true, '{path}']");
	check_times_out(true);
	pull_of("n: 2\n");
	pull();
	world.programs_time_out = false; /* it was killed */
	pull();
	check_times_out(true);
	pull();
	pull();
	assert_not_rejected();
	pull_of("n: 3\n");
	pull();
	pull_of("n: 2\n");
	pull();
	assert_not_rejected();
	assert_shows("n: 1\n");
	check_times_out(false);
	pull();
	assert_shows("n: 2\n");
}

static void forced_pull__of_a_kept_version_that_is_answered_by_304__publishes_it(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("check: [/bin/true, '{path}']");
	world.check_says = "no";
	pull_of("n: 2\n");
	world.check_says = NULL;
	pull_forced();
	assert_shows("n: 2\n");
	assert_verdicts(0);
}

/* ---- layers ---- */

static void layers__merge_in_their_order(void **state)
{
	(void)state;
	core.from = TWO;
	two("a: 1\nb: {x: 1, y: 2}\nc: 3\n", "b: {x: 9}\nc: null\n");
	agent_starts("format: json");
	assert_shows("{\n  \"a\": 1,\n  \"b\": {\n    \"x\": 9,\n    \"y\": 2\n  }\n}\n");
}

static void layers__when_one_fails__publish_nothing(void **state)
{
	(void)state;
	core.from = TWO;
	two("base: 1\n", NULL);
	agent_starts("");
	assert_shows(NULL);
	assert_error("/web.yaml: the server answered 404");
	assert_logged("nothing is published yet");
	two("base: 1\n", "web: 1\n");
	pull();
	assert_generation(1);
	two("base: 2\n", NULL);
	pull();
	assert_shows("base: 1\nweb: 1\n");
	two(NULL, "web: 2\n");
	pull();
	assert_shows("base: 1\nweb: 1\n");
	two("base: 2\n", "web: 2\n");
	pull();
	assert_shows("base: 2\nweb: 2\n");
	assert_generation(2);
}

static void layers__when_one_is_new__keep_the_other_as_it_was_also_over_a_restart(void **state)
{
	(void)state;
	core.from = TWO;
	two("base: 1\n", "web: 1\n");
	agent_starts("");
	world.holds = true;
	two("base: 2\n", "web: 1\n");
	pull();
	world.holds = false;
	world_turn();
	assert_shows("base: 2\nweb: 1\n");
	agent_restarts();
	assert_outcome(CONFIG_UNCHANGED);
	two("base: 2\n", "web: 3\n");
	pull();
	assert_shows("base: 2\nweb: 3\n");
	assert_generation(3);
}

static void layers__of_which_one_was_rejected__are_a_part_of_the_next_whole(void **state)
{
	(void)state;
	core.from = TWO;
	two("base: 1\n", "web: 1\n");
	agent_starts("guard: {require: [must]}");
	assert_shows(NULL);
	assert_rejected(REJECTED_BY_GUARD, "must");
	two("base: 3\nmust: 1\n", "web: 1\n"); /* 304 for a document that was never current */
	pull();
	assert_shows("base: 3\nmust: 1\nweb: 1\n");
	two("base: 3\n", "web: 2\n");
	pull();
	assert_rejected(REJECTED_BY_GUARD, "must");
	two("base: 4\nmust: 1\n", "web: 2\n");
	pull();
	assert_shows("base: 4\nmust: 1\nweb: 2\n");
}

static void optional_layer__comes_changes_and_goes(void **state)
{
	(void)state;
	core.from = "[{server: main, path: /base.yaml}, {server: main, path: /web.yaml, optional: "
		    "true}]";
	two("a: 1\n", NULL);
	agent_starts("");
	assert_shows("a: 1\n");
	pull();
	assert_outcome(CONFIG_UNCHANGED);
	two("a: 1\n", "b: 2\n");
	pull();
	assert_shows("a: 1\nb: 2\n");
	two("a: 1\n", NULL);
	pull();
	assert_shows("a: 1\n");
	assert_generation(3);
	agent_restarts();
	assert_outcome(CONFIG_UNCHANGED);
}

static void optional_layer__that_fails_otherwise__fails_the_run(void **state)
{
	(void)state;
	core.from = "[{server: main, path: /base.yaml}, {server: main, path: /web.yaml, optional: "
		    "true}]";
	two("a: 1\n", NULL);
	agent_starts("");
	server_fails(PULL_FAILED, KIND_CAUSE_FORBIDDEN, "the server answered 403");
	pull();
	assert_outcome(CONFIG_FAILED);
	assert_error("the server answered 403");
}

/* ---- digests that came with it ---- */

static void wrong_digest__is_counted_and_not_remembered(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	server_has("n: 2\n");
	world_find_page("/web.yaml")->mismatch = "SHA-256 is 0123";
	for (int i = 1; i <= 2; i++) {
		pull();
		assert_outcome(CONFIG_FAILED);
		assert_error("is not what its server says: SHA-256 is 0123");
		assert_int_equal(core_status().rejections_by[CHECK_DIGEST], i);
		assert_not_rejected();
	}
	assert_verdicts(0);
	world_find_page("/web.yaml")->mismatch = NULL; /* the very same bytes */
	pull();
	assert_shows("n: 2\n");
}

static void wrong_digest__of_the_very_bytes_that_are_current__does_not_matter(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	snprintf(world_find_page("/web.yaml")->etag, 24, "\"other\"");
	world_find_page("/web.yaml")->mismatch = "SHA-256 is 0123";
	pull();
	assert_outcome(CONFIG_UNCHANGED);
}

/* ---- what was current before ---- */

static void after_a_rollback__the_servers_version_is_asked_for_by_its_etag(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	pull_of("n: 2\n");
	operator_rolls_back(1);
	assert_done();
	assert_int_equal(latest_generation(core.config), 2);
	world.holds = true;
	pull();
	assert_string_equal(world.pulls[0]->held.parts[0].etag, world_find_page("/web.yaml")->etag);
	world.holds = false;
	world_turn();
	assert_rejected(REJECTED_BY_OPERATOR, "rolled back by ann");
}

static void forced_pull__after_a_rollback__publishes_the_stored_bytes_again(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	pull_of("n: 2\n");
	operator_rolls_back(1);
	pull_forced();
	assert_shows("n: 2\n");
	assert_generation(4);
	assert_origin("pull");
	assert_verdicts(0);
	pull();
	assert_outcome(CONFIG_UNCHANGED);
}

static void stored_bytes_that_are_lost__are_pulled_as_a_whole(void **state)
{
	char path[SCRATCH_PATH + 64];

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	pull_of("n: 2\n");
	operator_rolls_back(1);
	core_path(path, "state/web/00000000000000000002");
	assert_int_equal(unlink(path), 0);
	pull_forced(); /* it cannot be read, and is not known any more */
	assert_outcome(CONFIG_FAILED);
	assert_error("generation 2 cannot be read");
	pull_forced();
	assert_shows("n: 2\n");
}

static void held_part_whose_bytes_are_lost__is_pulled_anew(void **state)
{
	char path[SCRATCH_PATH + 64];

	(void)state;
	core.from = TWO;
	two("base: 1\n", "web: 1\n");
	agent_starts("");
	core_path(path, "state/web/00000000000000000001");
	assert_int_equal(unlink(path), 0);
	two("base: 2\n", "web: 1\n");
	pull();
	assert_outcome(CONFIG_FAILED);
	assert_error("the current version cannot be read from the state directory");
	pull();
	assert_shows("base: 2\nweb: 1\n");
}

static void held_part_of_a_stored_latest_whose_bytes_are_lost__is_pulled_anew(void **state)
{
	char path[SCRATCH_PATH + 64];

	(void)state;
	core.from = TWO;
	two("base: 1\n", "web: 1\n");
	agent_starts("");
	two("base: 2\n", "web: 1\n");
	pull();
	operator_rolls_back(1);
	core_path(path, "state/web/00000000000000000002");
	assert_int_equal(unlink(path), 0);
	two("base: 2\n", "web: 3\n");
	pull();
	assert_error("the current version cannot be read from the state directory");
	pull();
	assert_shows("base: 2\nweb: 3\n");
}

static void held_part_of_a_stored_latest_that_is_damaged__is_pulled_anew(void **state)
{
	char path[SCRATCH_PATH + 64];

	(void)state;
	core.from = TWO;
	two("base: 1\n", "web: 1\n");
	agent_starts("");
	two("base: 2\n", "web: 1\n");
	pull();
	operator_rolls_back(1);
	core_path(path, "state/web");
	scratch_write(path, "00000000000000000002", "harm", 4);
	two("base: 2\n", "web: 3\n");
	pull();
	assert_outcome(CONFIG_FAILED);
	assert_shows("base: 1\nweb: 1\n");
	pull();
	assert_shows("base: 2\nweb: 3\n");
}

static void version_that_is_asked_about__replaced_meanwhile__is_not_published_again(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	disk_fails(CALL_RENAME, 2, false, EIO); /* saved, not shown */
	pull_of("n: 2\n");
	disk_fails(CALL_OPEN, 1, true, EIO);
	somebody_writes("harm"); /* what the servers have is not known any more */
	disk_recovers();
	assert_int_equal(core.config->latest.state, LATEST_NOT_KNOWN);
	world.holds = world.disk.held = true;
	pull(); /* about 1, while the disk shows 2 */
	world.disk.held = false;
	world_turn();
	assert_shows("n: 2\n");
	assert_generation(2);
	world.holds = false;
	world_turn();
	assert_shows("n: 2\n");
	assert_generation(2);
	assert_outcome(CONFIG_PUBLISHED);
}

static void failed_step__of_a_kept_version__when_something_newer_came__gives_way(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("check: [/bin/true, '{path}']");
	operator_overrides("n", "7", 10 * SECOND);
	world.check_says = "not beside this override";
	pull_of("n: 2\n");
	world.programs_hang = true;
	server_has("n: 3\n");
	world_advance(11 * SECOND); /* 2 is checked once more, and 3 is pulled meanwhile */
	assert_true(world.programs.running);
	world_end_programs();
	world.check_says = NULL;
	world.programs_hang = false;
	world_turn();
	assert_shows("n: 3\n");
	assert_generation(3);
	assert_verdicts(1); /* 2 is bad without the override too */
}

static void pull__that_has_a_new_version_during_its_predecessors_step__replaces_nothing(
	void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("check: [/bin/true, '{path}']");
	world.programs_hang = true;
	pull_of("n: 2\n");
	pull_of("n: 3\n"); /* the step goes on with 2 */
	assert_true(world.programs.running);
	world.programs_hang = false;
	world_turn();
	assert_shows("n: 3\n");
	assert_generation(3);
	assert_not_rejected();
}

static void failed_step__when_something_newer_came__does_not_bring_its_version_back(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("check: [/bin/true, '{path}']");
	world.programs_hang = true;
	pull_of("n: 2\n");
	pull_of("n: 3\n");
	world.check_says = "no";
	world_end_programs();
	world.check_says = NULL;
	world.programs_hang = false;
	world_turn();
	assert_shows("n: 3\n");
	assert_generation(2);
	assert_verdicts(1); /* 2 is known to be bad */
}

static void forced_pull__of_the_current_version__changes_nothing(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	pull_forced();
	assert_outcome(CONFIG_UNCHANGED);
	assert_int_equal(core.config->latest.force, FORCE_NONE);
	pull_of("{}\n");
	assert_outcome(CONFIG_FAILED); /* nothing of it is left */
}

static void forced_pull__that_brings_new_bytes__asks_no_guard(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("guard: {require: [n]}");
	server_has("m: 1\n");
	pull_forced();
	assert_shows("m: 1\n");
	assert_verdicts(0);
}

static void forced_pull__whose_step_fails__stays_forced(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("guard: {require: [n]}");
	snapshot_is_blocked();
	server_has("m: 1\n");
	pull_forced();
	assert_outcome(CONFIG_FAILED);
	snapshot_is_free();
	pull();
	assert_shows("m: 1\n");
}

static void same_version__before_any_is_known__is_none(void **state)
{
	(void)state;
	core_make("");
	latest_confirm(core.config, true);
	assert_int_equal(core.config->latest.state, LATEST_NOT_KNOWN);
}

/* ---- what stays, and what is said ---- */

static void same_bytes__under_a_new_etag__keep_what_programs_made(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("format: {run: [/bin/cat]}");
	assert_int_equal(world.checked, 1);
	snprintf(world_find_page("/web.yaml")->etag, 24, "\"other\"");
	pull();
	assert_generation(1);
	assert_false(current_settings_differ(core.config));
	somebody_writes("harm");
	assert_shows("made: n: 1\n");
	assert_int_equal(world.checked, 1); /* nothing ran for it */
	assert_int_equal(core.config->latest.state, LATEST_IS_CURRENT);
}

static void wrong_digest__of_the_second_document__names_it(void **state)
{
	(void)state;
	core.from = TWO;
	two("base: 1\n", "web: 1\n");
	agent_starts("");
	two("base: 1\n", "web: 2\n");
	world_find_page("/web.yaml")->mismatch = "SHA-256 is 0123";
	pull();
	assert_string_equal(core_status().last_error,
		"http://server/web.yaml is not what its server says: SHA-256 is 0123");
	assert_shows("base: 1\nweb: 1\n");
}

static void forced_pull__of_what_a_check_rejects__checks_it_once(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("check: [/bin/true, '{path}']");
	world.check_says = "no such host";
	server_has("n: 2\n");
	pull_forced();
	assert_outcome(CONFIG_FAILED);
	assert_int_equal(world.checked, 2);
	assert_rejected(CHECK_PROGRAM, "no such host");
	pull();
	assert_int_equal(world.checked, 2);
	pull_forced();
	assert_int_equal(world.checked, 3); /* once more */
	assert_outcome(CONFIG_FAILED);
}

static void kept_version__is_forgotten_with_what_the_rollout_said(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	operator_pins(0);
	pull_of("n: 2\n");
	latest_set_rollout(core.config, ROLLOUT_OUT, "not yet");
	assert_string_equal(core.config->latest.rollout_why, "not yet");
	latest_set_rollout(core.config, ROLLOUT_OUT, "later");
	assert_string_equal(core.config->latest.rollout_why, "later");
	core.config->latest.force = FORCE_ASKED;
	latest_forget(core.config);
	assert_int_equal(core.config->latest.state, LATEST_NOT_KNOWN);
	assert_int_equal(core.config->latest.rollout, ROLLOUT_NONE);
	assert_int_equal(core.config->latest.force, FORCE_NONE);
	assert_int_equal(core.config->latest.said, REJECTION_REASONS);
	assert_null(core.config->latest.rollout_why);
	assert_null(core.config->latest.candidate);
	assert_ptr_equal(latest_version(core.config), &core.config->current.version);
	assert_int_equal(latest_generation(core.config), 0);
}

static void kept_version__is_asked_about_until_it_is_published(void **state)
{
	(void)state;
	server_has("n: 1\n");
	core_make("");
	assert_null(latest_version(core.config));
	config_start(core.config, true);
	world_turn();
	operator_pins(0);
	pull_of("n: 2\n");
	assert_ptr_equal(latest_version(core.config), &core.config->latest.candidate->version);
	assert_int_equal(latest_generation(core.config), 0); /* its bytes are here */
	world.holds = true;
	pull();
	assert_string_equal(world.pulls[0]->held.sha256, latest_version(core.config)->sha256);
	assert_true(latest_is_asked(core.config));
	world.pulls[0]->held.sha256[0] ^= 1;
	assert_false(latest_is_asked(core.config));
	world.pulls[0]->held.sha256[0] ^= 1;
	world.holds = false;
	world_turn();
	assert_outcome(CONFIG_HELD);
}

static void bytes__that_are_not_read__are_no_latest_version(void **state)
{
	(void)state;
	core.from = TWO;
	two("base: 1\n", "web: 1\n");
	agent_starts("");
	two("base: 2\n", "web: 1\n");
	disk_fails(CALL_OPEN, 1, true, EMFILE); /* of the stored bytes */
	pull();
	disk_recovers();
	assert_outcome(CONFIG_FAILED);
	assert_int_equal(core.config->latest.state, LATEST_IS_CURRENT); /* known as before */
	assert_string_not_equal(core.config->current.version.sha256, "");
	pull();
	assert_shows("base: 2\nweb: 1\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CORE_TEST(same_bytes__under_a_new_etag__become_no_generation),
		CORE_TEST(rejected_version__answered_by_304__is_rejected_again_without_a_check),
		CORE_TEST(rejected_version__when_the_current_one_comes_back__is_forgotten),
		CORE_TEST(version__whose_check_times_out_three_times_in_a_row__is_rejected),
		CORE_TEST(check__that_times_out_now_and_then__rejects_nothing),
		CORE_TEST(forced_pull__of_a_kept_version_that_is_answered_by_304__publishes_it),
		CORE_TEST(layers__merge_in_their_order),
		CORE_TEST(layers__when_one_fails__publish_nothing),
		CORE_TEST(layers__when_one_is_new__keep_the_other_as_it_was_also_over_a_restart),
		CORE_TEST(layers__of_which_one_was_rejected__are_a_part_of_the_next_whole),
		CORE_TEST(optional_layer__comes_changes_and_goes),
		CORE_TEST(optional_layer__that_fails_otherwise__fails_the_run),
		CORE_TEST(wrong_digest__is_counted_and_not_remembered),
		CORE_TEST(wrong_digest__of_the_very_bytes_that_are_current__does_not_matter),
		CORE_TEST(after_a_rollback__the_servers_version_is_asked_for_by_its_etag),
		CORE_TEST(forced_pull__after_a_rollback__publishes_the_stored_bytes_again),
		CORE_TEST(stored_bytes_that_are_lost__are_pulled_as_a_whole),
		CORE_TEST(held_part_whose_bytes_are_lost__is_pulled_anew),
		CORE_TEST(held_part_of_a_stored_latest_whose_bytes_are_lost__is_pulled_anew),
		CORE_TEST(
			pull__that_has_a_new_version_during_its_predecessors_step__replaces_nothing),
		CORE_TEST(failed_step__when_something_newer_came__does_not_bring_its_version_back),
		CORE_TEST(forced_pull__of_the_current_version__changes_nothing),
		CORE_TEST(forced_pull__that_brings_new_bytes__asks_no_guard),
		CORE_TEST(forced_pull__whose_step_fails__stays_forced),
		CORE_TEST(same_version__before_any_is_known__is_none),
		CORE_TEST(held_part_of_a_stored_latest_that_is_damaged__is_pulled_anew),
		CORE_TEST_DISK(
			version_that_is_asked_about__replaced_meanwhile__is_not_published_again),
		CORE_TEST(failed_step__of_a_kept_version__when_something_newer_came__gives_way),
		CORE_TEST(same_bytes__under_a_new_etag__keep_what_programs_made),
		CORE_TEST(wrong_digest__of_the_second_document__names_it),
		CORE_TEST(forced_pull__of_what_a_check_rejects__checks_it_once),
		CORE_TEST(kept_version__is_forgotten_with_what_the_rollout_said),
		CORE_TEST(kept_version__is_asked_about_until_it_is_published),
		CORE_TEST(bytes__that_are_not_read__are_no_latest_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

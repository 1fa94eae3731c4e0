/* A step from its decision to its end: what each check says, what fails without a verdict, what a
 * step leaves behind when it is given up in each of its phases. */
#include "tests/unit/fixture/core.h"

/* Pulls what this check must reject: it is counted and named, and the current version stays. */
static void assert_rejects(const char *text, enum verify_check check, const char *why)
{
	uint64_t counted = core_status().rejections_by[check];
	uint64_t generation = core.config->current.version.generation;

	pull_of(text);
	assert_outcome(CONFIG_FAILED);
	assert_generation(generation);
	assert_rejected(check, why);
	assert_true(core_status().rejected_is_error);
	assert_int_equal(core_status().rejections_by[check], counted + 1);
}

static unsigned strays(void)
{
	char path[SCRATCH_PATH + 64];
	unsigned n = 0;

	for (const char *const *name = (const char *const[]){"out", "run", "state/web", NULL};
		*name; name++) {
		core_path(path, *name);
		n += scratch_count(path, ".pullet-");
	}
	return n;
}

/* ---- checks ---- */

static void syntax__rejects_what_is_no_document(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	assert_rejects("n: 2\ndb: {host: 1, host: 2}\n", CHECK_SYNTAX,
		"invalid YAML, line 2, column 15: duplicate key \"host\"");
	assert_rejects("n: [2\n", CHECK_SYNTAX, "invalid YAML");
	assert_rejects("- 1\n", CHECK_SYNTAX, "invalid YAML");
	assert_shows("n: 1\n");
	pull_of("n: 2\n");
	assert_not_rejected();
}

static void syntax__of_json__is_strict_too(void **state)
{
	(void)state;
	core.from = "[{server: main, path: /web.json}]";
	world_put("/web.json", "{\"n\": 1}");
	agent_starts("");
	assert_shows("{\"n\": 1}");
	world_put("/web.json", "{\"n\": 1,\n \"n\": 2}");
	pull();
	assert_rejected(CHECK_SYNTAX, "invalid JSON");
}

static void guard__rejects_what_shrank_lacks_a_key_or_changes_too_much(void **state)
{
	(void)state;
	server_has("db: {host: a}\nn: 1\npad: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n");
	agent_starts("guard: {max_shrink: 50%, require: [db.host], max_changes: 2}");
	assert_rejects("{}\n", CHECK_GUARD, "the document is empty, and the current one is not");
	assert_rejects("db: {host: a}\nn: 2\n", CHECK_GUARD, "more than max_shrink 50%");
	assert_rejects("db: {hosts: a}\nn: 1\npad: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n",
		CHECK_GUARD, "the required key db.host is not there");
	assert_rejects("db: {host: b}\nn: 2\nm: 1\npad: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n",
		CHECK_GUARD, "3 keys would change, more than max_changes 2");
	pull_forced();
	assert_generation(2);
	assert_not_rejected();
	assert_rejects("{}\n", CHECK_GUARD, "the document is empty"); /* force was for one pull */
	pull_forced();
	assert_shows("{}\n");
	agent_restarts();
	assert_outcome(CONFIG_UNCHANGED);
}

static void guard__without_keys__rejects_an_empty_document_alone(void **state)
{
	(void)state;
	server_has("db: {host: a}\nn: 1\npad: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n");
	agent_starts("");
	pull_of("n: 2\n");
	assert_generation(2);
	assert_rejects("{}\n", CHECK_GUARD, "empty");
	agent_reloads("guard: {allow_empty: true}");
	assert_shows("{}\n");
}

static void guard__when_something_else_becomes_current__compares_again(void **state)
{
	(void)state;
	server_has("a: 1\nb: 1\n");
	agent_starts("guard: {max_changes: 1}");
	assert_rejects("a: 2\nb: 2\n", CHECK_GUARD, "2 keys would change");
	pull_of("a: 2\nb: 1\n");
	assert_verdicts(0);
	pull_of("a: 2\nb: 2\n");
	assert_shows("a: 2\nb: 2\n");
}

static void write_schema(const char *text)
{
	scratch_write(core.dir, "schema.json", text, strlen(text));
}

static const char *schema_key(void)
{
	static char text[SCRATCH_PATH + 64];

	snprintf(text, sizeof(text), "schema: %s/schema.json", core.dir);
	return text;
}

static void schema__rejects_with_the_place_and_comes_before_the_check(void **state)
{
	char extra[SCRATCH_PATH + 128];

	(void)state;
	write_schema("{\"properties\": {\"workers\": {\"maximum\": 64}}, \"x-owner\": \"us\"}");
	server_has("n: 1\nworkers: 4\n");
	snprintf(extra, sizeof(extra), "%s, check: [/bin/true, '{path}']", schema_key());
	agent_starts(extra);
	assert_logged("the schema has keywords that mean nothing here");
	assert_rejects("n: 1\nworkers: 1000\n", CHECK_SCHEMA, "line 2, column 10: /workers");
	assert_int_equal(world.checked, 1);
}

static void schema__when_it_changes__validates_the_rejected_version_again(void **state)
{
	(void)state;
	write_schema("{\"properties\": {\"n\": {\"maximum\": 1}}}");
	server_has("n: 1\n");
	agent_starts(schema_key());
	assert_rejects("n: 22\n", CHECK_SCHEMA, "more than the maximum");
	write_schema("{\"properties\": {\"n\": {\"maximum\": 30}}}");
	pull();
	assert_shows("n: 22\n");
}

static void schema__that_is_bad__checks_nothing_and_nothing_is_remembered(void **state)
{
	(void)state;
	write_schema("{}");
	server_has("n: 1\n");
	agent_starts(schema_key());
	write_schema("{\"properties\": {\"n\": {\"maximum\": \"many\"}}}");
	pull_of("n: 2\n");
	assert_outcome(CONFIG_FAILED);
	assert_error("schema.json");
	assert_logged("not validated: keeping the current version");
	assert_verdicts(0);
	assert_int_equal(core_status().rejections, 0);
	write_schema("{}");
	pull();
	assert_shows("n: 2\n");
}

static void format__that_cannot_hold_it__rejects_and_names_the_key(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("format: env");
	assert_shows("N=1\n");
	assert_rejects("a: {b: \"two\\nlines\"}\n", CHECK_FORMAT, "a.b");
	pull_of("a_b: 2\n");
	assert_shows("A_B=2\n");
}

static void check__that_rejects__is_not_asked_again_also_after_a_restart(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("check: [/bin/true, '{path}']");
	world.check_says = "check exited with 7: no such host";
	assert_rejects("n: bad\n", CHECK_PROGRAM, "check exited with 7: no such host");
	pull();
	agent_restarts();
	assert_error("no such host");
	assert_int_equal(world.checked, 2);
	assert_rejects("n: bad too\n", CHECK_PROGRAM, "no such host");
	pull_of("n: bad\n");
	assert_outcome(CONFIG_FAILED);
	assert_int_equal(world.checked, 3); /* each is remembered */
	assert_shows("n: 1\n");
}

static void check__of_other_settings__is_asked_again(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("check: [/bin/true, '{path}']");
	world.check_says = "no";
	assert_rejects("n: 2\n", CHECK_PROGRAM, "no");
	agent_reloads("check: [/bin/true, '{path}'], guard: {max_shrink: 10%}");
	assert_rejected(CHECK_PROGRAM, "no");
	assert_int_equal(world.checked, 3);
	world.check_says = NULL;
	agent_reloads("check: [/bin/false, '{path}']");
	assert_shows("n: 2\n");
}

static void check__that_cannot_run__says_nothing_about_the_version(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("check: [/bin/true, '{path}']");
	world.programs_missing = "check cannot be started: No such file";
	pull_of("n: 2\n");
	assert_outcome(CONFIG_FAILED);
	assert_error("check cannot be started");
	assert_logged("the version could not be checked");
	assert_verdicts(0);
	assert_not_rejected();
	world.programs_missing = NULL;
	world.programs_break = "out of memory";
	pull();
	assert_error("out of memory");
	assert_verdicts(0);
	world.programs_break = NULL;
	pull();
	assert_shows("n: 2\n");
}

static void syntax_verdict__of_other_settings__does_not_count(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	assert_rejects("n: [2\n", CHECK_SYNTAX, "invalid YAML");
	agent_reloads("type: bytes");
	assert_shows("n: [2\n");
}

/* ---- a program makes the text ---- */

static void format_program__makes_the_text_which_a_restart_does_not_need(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("format: {run: [/bin/cat]}");
	assert_shows("made: n: 1\n");
	world.programs_missing = "it is gone";
	somebody_writes_quietly("harm");
	agent_restarts();
	assert_shows("made: n: 1\n");
	assert_outcome(CONFIG_UNCHANGED);
	somebody_writes("harm");
	assert_shows("made: n: 1\n");
	assert_int_equal(world.checked, 1);
}

static void format_program__whose_text_is_published_at_the_second_try__is_saved_once(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("snapshot: true, format: {run: [/bin/cat]}");
	snapshot_is_blocked();
	pull_of("n: 2\n");
	assert_generation(1);
	snapshot_is_free();
	pull();
	assert_shows("made: n: 2\n");
	agent_restarts(); /* the state file verifies */
	assert_shows("made: n: 2\n");
	assert_not_logged("damaged");
}

static void format_program__that_fails__rejects(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("format: {run: [/bin/cat]}");
	world.check_says = "program exited with 3";
	pull_of("n: 2\n");
	assert_outcome(CONFIG_FAILED);
	assert_shows("made: n: 1\n");
	assert_verdicts(1);
}

static void format__that_changes__becomes_a_generation_of_its_own(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("reload: {run: [/bin/true]}");
	assert_int_equal(world.reloads, 1);
	agent_reloads("reload: {run: [/bin/true]}, format: env");
	assert_shows("N=1\n");
	assert_generation(2);
	assert_origin("the format has changed");
	assert_int_equal(world.reloads, 2);
	agent_reloads("reload: {run: [/bin/true]}, format: {run: [/bin/cat]}");
	assert_shows("made: n: 1\n");
	assert_generation(3);
	agent_reloads("reload: {run: [/bin/true]}, format: verbatim");
	assert_shows("n: 1\n");
	assert_int_equal(core.config->decisions.ledger->notified, 4);
}

/* ---- given up, in each phase ---- */

static void given_up__while_programs_check__leaves_nothing(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("check: [/bin/true, '{path}']");
	world.programs_hang = true;
	pull_of("n: 2\n");
	assert_true(world.programs.running);
	assert_true(config_retire(core.config, NULL, NULL));
	assert_false(world.programs.running);
	agent_crashes();
	world.programs_hang = false;
	agent_starts("check: [/bin/true, '{path}']");
	assert_shows("n: 2\n");
	assert_generation(2);
	assert_int_equal(strays(), 0);
}

static void pinned__while_programs_check__is_not_committed(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("check: [/bin/true, '{path}']");
	world.programs_hang = true;
	pull_of("n: 2\n");
	operator_pins(0);
	world.programs_hang = false;
	world_turn();
	assert_shows("n: 1\n");
	assert_outcome(CONFIG_HELD);
	assert_line("<6>not published: it is held meanwhile config=web version=49a609b0");
	assert_line("<6>pinned: a new version is not published config=web version=49a609b0");
	assert_error(NULL);
	assert_int_equal(core.config->current.saved_generation, 0);
	operator_unpins();
	assert_shows("n: 2\n");
}

static void pinned__while_programs_check_a_forced_version__is_not_committed(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("check: [/bin/true, '{path}']");
	world.programs_hang = true;
	server_has("n: 2\n");
	pull_forced();
	operator_pins(0);
	world.programs_hang = false;
	world_turn();
	assert_shows("n: 1\n");
	assert_outcome(CONFIG_HELD);
}

static void version__that_comes_during_a_slow_check__does_not_starve_it(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("check: [/bin/true, '{path}']");
	world.programs_hang = true;
	pull_of("n: 2\n");
	pull_of("n: 3\n");
	world_end_programs(); /* 2, although the server has 3 */
	assert_shows("n: 2\n");
	world_turn();
	assert_true(world.programs.running); /* 3 */
	world_end_programs();
	world_turn();
	assert_shows("n: 3\n");
}

/* ---- what failed without a verdict rests ---- */

static void step__that_fails_without_a_verdict__rests_until_the_next_tick(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	snapshot_is_blocked();
	pull_of("n: 2\n");
	assert_outcome(CONFIG_FAILED);
	assert_error("web.snap");
	world_turn();
	assert_true(core.config->resting & 1u << ROW_LATEST_IS_PUBLISHED);
	forget_log();
	operator_pins(0); /* an event is no tick */
	operator_unpins();
	assert_not_logged("could not publish");
	snapshot_is_free();
	world_advance(HOUR);
	assert_shows("n: 2\n");
	assert_state("ok");
}

static void publication__that_failed_half_way__does_not_use_another_number(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	snapshot_is_blocked();
	pull_of("n: 2\n");
	assert_int_equal(core.config->current.saved_generation, 2);
	snapshot_is_free();
	pull();
	assert_shows("n: 2\n");
	assert_generation(2);
	assert_logged("published config=web generation=2");
}

static void publication__whose_version_is_old_by_now__is_not_shown(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	snapshot_is_blocked();
	pull_of("n: 2\n");
	snapshot_is_free();
	pull_of("n: 3\n");
	assert_shows("n: 3\n");
	assert_generation(3);
	pull_of("n: 1\n");
	assert_generation(4);
}

static void force__is_used_up_by_one_publication(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("probe: {run: [/bin/true], for: 10s}");
	world_end_probe(NULL);
	server_has("n: 2\n");
	pull_forced();
	world_end_probe("it answers 500");
	world_turn();
	assert_shows("n: 1\n");
	pull();
	assert_outcome(CONFIG_FAILED);
	assert_generation(3);
	assert_rejected(REJECTED_BY_PROBE, "it answers 500");
}

/* ---- what programs are given ---- */

static void programs__are_given_the_version_and_its_number(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("check: [/bin/true, '{path}']");
	world.programs_hang = true;
	pull_of("n: 2\n");
	assert_ptr_equal(world.programs.o.candidate, core.config->step.candidate);
	assert_ptr_equal(world.programs.o.config, core.settings->configs[0]);
	assert_int_equal(world.programs.o.generation, 2);
	assert_string_equal(world.programs.o.runtime_dir, core.settings->runtime_dir);
	assert_ptr_equal(world.programs.o.scrub, scrub_output);
	assert_int_equal(core.config->step.programs_since_ms, world.now_ms);
	assert_null(config_stuck(core.config, world.now_ms));
	world.programs_hang = false;
	world_turn();
	agent_crashes();
	core.env.dry_run = true;
	agent_starts("check: [/bin/true, '{path}']");
	assert_int_equal(world.programs.o.generation, 0); /* nothing is stored then */
	core.env.dry_run = false;
}

/* ---- to the letter ---- */

static void rejection__is_logged_by_its_check(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("check: [/bin/true, '{path}']");
	world.check_says = "check exited with 7";
	pull_of("n: 2\n");
	assert_line("<4>rejected by the check: keeping the current version config=web why=\"check "
		    "exited with 7\" next_in_ms=3600000 generation=1 version=49a609b0");
	world.check_says = NULL;
	world.programs_break = "out of descriptors";
	pull_of("n: 3\n");
	assert_line("<4>the version could not be checked: keeping the current version "
		    "config=web why=\"out of descriptors\" next_in_ms=3600000 generation=1");
}

static void request__that_fails__is_logged_with_what_was_asked(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("check: [/bin/true, '{path}']");
	pull_of("n: 2\n");
	world.check_says = "no such host";
	operator_rolls_back(1);
	assert_line("<3>request failed: keeping the current version config=web what=\"rollback to "
		    "generation 1 by ann: pages are slow\" why=\"rejected by the check: keeping "
		    "the current version: no such host\"");
	assert_failed("rejected by the check: keeping the current version: no such host");
	assert_int_equal(core_status().rejections_by[CHECK_PROGRAM], 1);
	assert_error(NULL); /* it is the operator's failure alone */
	world.check_says = NULL;
	operator_rolls_back(1);
	assert_done();
}

static void recomposition__whose_bytes_are_lost__is_said_and_tried_again(void **state)
{
	char path[SCRATCH_PATH + 64];

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	operator_overrides("n", "7", 10 * SECOND);
	core_path(path, "state/web/00000000000000000002");
	assert_int_equal(unlink(path), 0);
	world_advance(11 * SECOND);
	assert_logged("<4>cannot compose the current version again config=web why=");
	assert_shows("n: 7\n");
	assert_true(core.config->resting & 1u << ROW_OTHER_OVERRIDES);
}

static void rollback__asks_neither_guard_nor_schema(void **state)
{
	char extra[SCRATCH_PATH + 128];

	(void)state;
	write_schema("{}");
	server_has("n: 1\n");
	snprintf(extra, sizeof(extra), "%s, guard: {require: [m], max_changes: 1}", schema_key());
	agent_starts("");
	pull_of("m: 2\nx: 2\ny: 2\n");
	agent_reloads(extra);
	write_schema("{\"required\": [\"m\"]}");
	operator_rolls_back(1);
	assert_done();
	assert_shows("n: 1\n");
}

/* ---- what is saved and cannot be shown ---- */

/* Is saved by a step, not shown; and cannot be shown at the next tick. */
static void fail_to_show_twice(uint64_t generation)
{
	assert_int_equal(core.config->current.saved_generation, generation);
	server_is_down();
	disk_fails(CALL_RENAME, 1, false, EIO);
	pull();
	disk_recovers();
	assert_int_equal(store_next_generation(core.config->current.store), generation + 1);
}

static void saved_form__that_cannot_be_shown__is_not_saved_again(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	agent_crashes();
	core_make("format: env");
	core.env.starting = true;
	disk_fails(CALL_RENAME, 3, false, EIO); /* after the commit of the other form */
	config_start(core.config, false);
	disk_recovers();
	core.env.starting = false;
	fail_to_show_twice(2);
	pull();
	assert_shows("N=1\n");
	assert_generation(2);
}

static void saved_rollback_of_a_probe__that_cannot_be_shown__is_not_saved_again(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("probe: {run: [/bin/true], for: 10s}");
	world_end_probe(NULL);
	pull_of("n: 2\n");
	disk_fails(CALL_RENAME, 3, false, EIO); /* verdict, commit, file */
	world_end_probe("it answers 500");
	world_turn();
	disk_recovers();
	fail_to_show_twice(3);
	assert_shows("n: 2\n");
	pull();
	assert_shows("n: 1\n");
	assert_generation(3);
}

static void saved_overrides__that_cannot_be_shown__are_not_saved_again(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	operator_overrides("n", "7", 10 * SECOND);
	disk_fails(CALL_RENAME, 3, false, EIO); /* ledger, commit, file */
	world_advance(11 * SECOND);
	disk_recovers();
	fail_to_show_twice(3);
	assert_shows("n: 7\n");
	pull();
	assert_shows("n: 1\n");
	assert_generation(3);
}

static void pin__on_what_does_not_fit_any_more__is_dropped_with_its_maker(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	operator_pins(0);
	agent_crashes();
	core.from = "[{server: main, path: /base.yaml}, {server: main, path: /web.yaml}]";
	agent_starts("");
	assert_line("<3>the pinned version does not fit the present configuration: the pin is "
		    "dropped config=web by=ann");
	assert_logged("<4>the last known good does not fit the present configuration config=web "
		      "why=");
	assert_null(core_status().pin);
	assert_int_equal(core.config->current.saved_generation, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CORE_TEST(syntax__rejects_what_is_no_document),
		CORE_TEST(syntax__of_json__is_strict_too),
		CORE_TEST(guard__rejects_what_shrank_lacks_a_key_or_changes_too_much),
		CORE_TEST(guard__without_keys__rejects_an_empty_document_alone),
		CORE_TEST(guard__when_something_else_becomes_current__compares_again),
		CORE_TEST(schema__rejects_with_the_place_and_comes_before_the_check),
		CORE_TEST(schema__when_it_changes__validates_the_rejected_version_again),
		CORE_TEST(schema__that_is_bad__checks_nothing_and_nothing_is_remembered),
		CORE_TEST(format__that_cannot_hold_it__rejects_and_names_the_key),
		CORE_TEST(check__that_rejects__is_not_asked_again_also_after_a_restart),
		CORE_TEST(check__of_other_settings__is_asked_again),
		CORE_TEST(check__that_cannot_run__says_nothing_about_the_version),
		CORE_TEST(syntax_verdict__of_other_settings__does_not_count),
		CORE_TEST(format_program__makes_the_text_which_a_restart_does_not_need),
		CORE_TEST(format_program__whose_text_is_published_at_the_second_try__is_saved_once),
		CORE_TEST(format_program__that_fails__rejects),
		CORE_TEST(format__that_changes__becomes_a_generation_of_its_own),
		CORE_TEST(given_up__while_programs_check__leaves_nothing),
		CORE_TEST(pinned__while_programs_check__is_not_committed),
		CORE_TEST(pinned__while_programs_check_a_forced_version__is_not_committed),
		CORE_TEST(version__that_comes_during_a_slow_check__does_not_starve_it),
		CORE_TEST(step__that_fails_without_a_verdict__rests_until_the_next_tick),
		CORE_TEST(publication__that_failed_half_way__does_not_use_another_number),
		CORE_TEST(publication__whose_version_is_old_by_now__is_not_shown),
		CORE_TEST(force__is_used_up_by_one_publication),
		CORE_TEST(programs__are_given_the_version_and_its_number),
		CORE_TEST(rejection__is_logged_by_its_check),
		CORE_TEST(request__that_fails__is_logged_with_what_was_asked),
		CORE_TEST(recomposition__whose_bytes_are_lost__is_said_and_tried_again),
		CORE_TEST(rollback__asks_neither_guard_nor_schema),
		CORE_TEST(saved_form__that_cannot_be_shown__is_not_saved_again),
		CORE_TEST(saved_rollback_of_a_probe__that_cannot_be_shown__is_not_saved_again),
		CORE_TEST(saved_overrides__that_cannot_be_shown__are_not_saved_again),
		CORE_TEST(pin__on_what_does_not_fit_any_more__is_dropped_with_its_maker),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

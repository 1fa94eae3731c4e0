/* How a run ends: what the status says, and who waited for it. */
#include "tests/unit/fixture/core.h"

static unsigned ended;
static enum config_outcome outcome;

static void note_end(void *arg, struct config *c)
{
	struct config_status s;

	(void)arg;
	config_status(c, &s);
	outcome = s.outcome;
	ended++;
}

static void wait_for_a_run(struct config_waiter *w)
{
	*w = (struct config_waiter){.ended = note_end};
	ended = 0;
	outcome = CONFIG_NONE;
	config_wait(core.config, w);
}

static void waiter__hears_of_the_run_that_begins_after_it(void **state)
{
	struct config_waiter w;

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	world.holds = true;
	pull();
	wait_for_a_run(&w); /* of the next one */
	config_refresh(core.config, false);
	world_answer(world.pulls[0]);
	assert_int_equal(ended, 0);
	server_has("n: 2\n");
	world.holds = false;
	world_turn();
	assert_int_equal(ended, 1);
	assert_int_equal(outcome, CONFIG_PUBLISHED);
}

static void waiter__hears_only_when_the_version_is_published(void **state)
{
	struct config_waiter w;

	(void)state;
	server_has("n: 1\n");
	agent_starts("check: [/bin/true, '{path}']");
	wait_for_a_run(&w);
	world.programs_hang = true;
	pull_of("n: 2\n");
	assert_int_equal(ended, 0);
	world.programs_hang = false;
	world_turn();
	assert_int_equal(outcome, CONFIG_PUBLISHED);
}

static void waiter__of_any_end__hears_of_changes_too(void **state)
{
	struct config_waiter w = {.ended = note_end};

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	ended = 0;
	config_wait_any(core.config, &w);
	operator_overrides("n", "7", HOUR);
	assert_int_equal(ended, 1);
	config_wait_any(core.config, &w);
	pull();
	assert_int_equal(ended, 2);
}

static void waiter__that_is_cancelled__hears_nothing(void **state)
{
	struct config_waiter w, other;

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	wait_for_a_run(&w);
	wait_for_a_run(&other);
	config_wait_cancel(core.config, &w);
	config_wait_cancel(core.config, &w);
	pull();
	assert_int_equal(ended, 1);
}

static void held__is_no_failure_and_confirms_the_current_version(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	operator_pins(0);
	server_has("n: 2\n");
	world_advance(10 * SECOND);
	pull();
	assert_outcome(CONFIG_HELD);
	assert_error(NULL);
	assert_int_equal(core_status().age_ms, 0);
	assert_true(core_status().held);
	assert_int_equal(core_status().supervisor->count[SUPERVISOR_SUCCESS], 2);
	forget_log();
	pull();
	assert_not_logged("pinned: a new version is not published"); /* said once */
}

static void held__while_pulls_fail__is_said_as_a_failure(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	operator_pins(0);
	pull_of("n: 2\n");
	server_is_down();
	pull();
	assert_outcome(CONFIG_FAILED);
	assert_state("failing");
	assert_rejected(REJECTED_BY_PIN, "pinned");
	assert_false(core_status().rejected_is_error);
}

static void failure__is_logged_once_a_minute_for_its_cause(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	server_is_down();
	for (int i = 0; i < 5; i++)
		pull();
	assert_int_equal(core_count_log("connection refused"), 1);
	world_advance(MINUTE + SECOND);
	pull();
	assert_int_equal(core_count_log("connection refused"), 2);
	assert_logged("repeated=");
	server_recovers();
	pull();
	assert_logged("recovered");
	assert_state("ok");
}

static void failure__that_all_configs_have__is_repeated_by_one(void **state)
{
	static struct log_limit all;

	(void)state;
	memset(&all, 0, sizeof(all));
	core.env.goes_on = &all;
	server_has("n: 1\n");
	agent_starts("");
	server_is_down();
	pull();
	world_advance(2 * MINUTE);
	pull();
	assert_int_equal(core_count_log("connection refused"), 2);
	world_advance(MINUTE + 30 * SECOND);
	all.lines[0].last_ms = world.now_ms; /* another config said it */
	pull();
	assert_int_equal(core_count_log("connection refused"), 2);
	core.env.goes_on = NULL;
}

static void failed_step__outside_a_run__is_reported_at_once(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("check: [/bin/true, '{path}']");
	operator_pins(0);
	pull_of("n: 2\n");
	world.check_says = "no such host";
	operator_unpins(); /* the kept version is checked: nobody pulls */
	assert_error("no such host");
	assert_int_equal(core_status().rejections_by[CHECK_PROGRAM], 1);
}

static void rejection__outside_a_run__is_reported_at_once(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("check: [/bin/true, '{path}']");
	operator_pins(0);
	pull_of("n: 2\n");
	world.busy = true;
	world.check_says = "no such host";
	operator_unpins();
	assert_error("no such host");
	assert_state("failing");
	world.busy = false;
}

static void version_of_a_run__whose_pull_is_over__is_published_by_it(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	assert_int_equal(core.runs, 1);
	assert_true(config_has_published(core.config, 1, ""));
	assert_true(
		config_has_published(core.config, 1, core.config->current.version.parts[0].etag));
	assert_false(config_has_published(core.config, 1, "\"other\""));
	assert_false(config_has_published(core.config, 2, ""));
}

/* ---- who waits ---- */

static struct config_waiter again;
static unsigned rounds;

static void wait_again(void *arg, struct config *c)
{
	rounds++;
	config_wait_any(c, arg);
}

static void waiters__of_one_run__are_all_woken_once(void **state)
{
	struct config_waiter w[3], other;

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	for (int i = 0; i < 3; i++)
		wait_for_a_run(&w[i]);
	wait_for_a_run(&other);
	config_wait_cancel(core.config, &w[1]); /* between others */
	again = (struct config_waiter){.ended = wait_again, .arg = &again};
	rounds = 0;
	config_wait_any(core.config, &again);
	pull();
	assert_int_equal(ended, 3);
	assert_int_equal(rounds, 1); /* the next end is another one */
	pull();
	assert_int_equal(ended, 3);
	assert_int_equal(rounds, 2);
	config_wait_cancel(core.config, &again);
}

static void waiter__of_a_change__does_not_hear_of_runs(void **state)
{
	struct config_waiter w = {.ended = note_end};

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	ended = 0;
	config_wait_change(core.config, &w);
	pull();
	assert_int_equal(ended, 0);
	operator_overrides("n", "7", HOUR);
	assert_int_equal(ended, 1);
	wait_for_a_run(&w);
	operator_drops("n");
	assert_int_equal(ended, 0); /* nor one of a run of changes */
	pull();
	assert_int_equal(ended, 1);
}

static void ask_for_an_override(void *arg, struct config *c)
{
	char why[FILE_WHY];

	(void)arg;
	assert_int_equal(config_override(c, "n", "7", HOUR, "ann", "", why), 0);
}

static void change__that_is_asked_for_at_the_end_of_a_run__is_done(void **state)
{
	struct config_waiter w = {.ended = ask_for_an_override};

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	config_wait(core.config, &w);
	pull();
	assert_shows("n: 7\n");
	w = (struct config_waiter){.ended = ask_for_an_override};
	operator_drops("n");
	server_is_down();
	config_wait(core.config, &w);
	pull();
	assert_shows("n: 7\n");
}

static unsigned told;

static void note_run(void *arg, struct config *c)
{
	assert_ptr_equal(arg, &told);
	assert_ptr_equal(c, core.config);
	assert_false(trigger_running(&c->run.trigger));
	told++;
}

static void agent__is_told_of_each_run(void **state)
{
	(void)state;
	told = 0;
	server_has("n: 1\n");
	core_make("");
	core.env.run_ended = note_run;
	core.env.arg = &told;
	config_start(core.config, true);
	world_turn();
	server_is_down();
	pull();
	assert_int_equal(told, 2);
	core.env.run_ended = NULL;
	pull();
	assert_int_equal(told, 2);
}

/* ---- to the letter ---- */

static void held__is_said_once_for_each_version(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	operator_pins(0);
	pull_of("n: 2\n");
	pull();
	assert_int_equal(core_count_log("<6>pinned: a new version is not published config=web "
					"version=49a609b0\n"),
		1);
	pull_of("n: 3\n");
	assert_int_equal(core_count_log("pinned: a new version is not published"), 2);
	agent_crashes();
	forget_log();
	agent_starts("");
	assert_int_equal(core_count_log("pinned: a new version is not published"), 1);
}

static void held__by_an_operator__is_said_by_nobody(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	pull_of("n: 2\n");
	operator_rolls_back(1);
	forget_log();
	pull();
	assert_outcome(CONFIG_HELD);
	assert_string_equal(core_read_log(), "");
}

static void rolled_back__is_a_failure_of_each_run(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("probe: {run: [/bin/true], for: 10s}");
	world_end_probe(NULL);
	pull_of("n: 2\n");
	forget_log();
	world_end_probe("it answers 500");
	world_turn();
	assert_line("<4>the version failed its probe and was rolled back config=web why=\"it "
		    "answers 500\" next_in_ms=3600000 generation=2 version=49a609b0");
	pull();
	assert_line("<4>the server still has the version that was rolled back config=web why=\"it "
		    "answers 500\" next_in_ms=3600000 generation=3 version=49a609b0");
	assert_int_equal(core_status().supervisor->count[SUPERVISOR_FAILED], 1);
}

static void force__ends_with_its_run_whatever_came_of_it(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	operator_pins(0);
	server_has("n: 2\n");
	pull_forced();
	assert_int_equal(core.config->latest.force, FORCE_NONE);
	assert_false(core.config->run.forced);
	assert_false(core.config->run.force);
}

static void result__of_a_run__is_not_that_of_the_next(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	assert_outcome(CONFIG_PUBLISHED);
	pull();
	assert_outcome(CONFIG_UNCHANGED);
	disk_fails(CALL_WRITE, 1, true, ENOSPC);
	pull_of("n: 2\n");
	assert_outcome(CONFIG_FAILED);
	disk_recovers();
	server_has("n: 1\n");
	pull();
	assert_outcome(CONFIG_UNCHANGED);
	assert_error(NULL);
}

static void heal__during_a_run__is_no_publication(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	somebody_writes_quietly("harm");
	pull();
	assert_shows("n: 1\n");
	assert_outcome(CONFIG_UNCHANGED);
}

static void published__is_known_by_generation_and_each_document(void **state)
{
	char etags[2][64];

	(void)state;
	core.from = "[{server: main, path: /web.yaml}, {server: main, path: /b.yaml}]";
	world_put("/b.yaml", "b: 1\n");
	server_has("n: 1\n");
	core_make("");
	assert_false(config_has_published(core.config, 0, ""));
	config_start(core.config, true);
	world_turn();
	for (int i = 0; i < 2; i++) {
		snprintf(etags[i], sizeof(etags[i]), "%s",
			core.config->current.version.parts[i].etag);
		assert_true(config_has_published(core.config, 0, etags[i]));
		assert_true(config_has_published(core.config, 1, etags[i]));
		assert_false(config_has_published(core.config, 2, etags[i]));
	}
	assert_true(config_has_published(core.config, 0, ""));
	assert_false(config_has_published(core.config, 1, "\"neither\""));
}

static void failure__of_this_host_after_one_of_the_server__is_of_this_host(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	world_put("/web.yaml", NULL);
	pull();
	assert_int_equal(core_status().cause, KIND_CAUSE_NOT_FOUND);
	run_note_failure(core.config, "could not publish", "the disk is full");
	assert_error("the disk is full");
	assert_int_equal(core_status().cause, KIND_CAUSE_HOST);
	pull();
	assert_int_equal(core_status().cause, KIND_CAUSE_NOT_FOUND);
}

static void wrong_digest__after_a_failure_of_the_server__has_not_its_cause(void **state)
{
	char url[CONFIG_URL];

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	server_is_down();
	pull();
	assert_int_equal(core_status().cause, KIND_CAUSE_UNREACHABLE);
	server_has("n: 2\n");
	world_find_page("/web.yaml")->mismatch = "SHA-256 is 0123";
	pull();
	assert_error("is not what its server says");
	assert_int_equal(core_status().cause, KIND_CAUSE_NONE);
	config_failed_url(core.config, url);
	assert_string_equal(url, "");
}

static void rejection__between_two_runs__has_not_the_cause_of_the_last_one(void **state)
{
	char why[FILE_WHY];

	(void)state;
	server_has("n: 1\n");
	agent_starts("guard: {require: [n]}");
	operator_pins(0);
	pull_of("m: 2\n");
	server_is_down();
	pull();
	assert_int_equal(core_status().cause, KIND_CAUSE_UNREACHABLE);
	assert_int_equal(config_unpin(core.config, "ann", why), 0); /* its pull has not begun */
	assert_rejected(REJECTED_BY_GUARD, "n");
	assert_int_equal(core_status().cause, KIND_CAUSE_NONE);
	server_recovers();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CORE_TEST(failure__of_this_host_after_one_of_the_server__is_of_this_host),
		CORE_TEST(wrong_digest__after_a_failure_of_the_server__has_not_its_cause),
		CORE_TEST(rejection__between_two_runs__has_not_the_cause_of_the_last_one),
		CORE_TEST(waiter__hears_of_the_run_that_begins_after_it),
		CORE_TEST(waiter__hears_only_when_the_version_is_published),
		CORE_TEST(waiter__of_any_end__hears_of_changes_too),
		CORE_TEST(waiter__that_is_cancelled__hears_nothing),
		CORE_TEST(held__is_no_failure_and_confirms_the_current_version),
		CORE_TEST(held__while_pulls_fail__is_said_as_a_failure),
		CORE_TEST(failure__is_logged_once_a_minute_for_its_cause),
		CORE_TEST(failure__that_all_configs_have__is_repeated_by_one),
		CORE_TEST(failed_step__outside_a_run__is_reported_at_once),
		CORE_TEST(rejection__outside_a_run__is_reported_at_once),
		CORE_TEST(version_of_a_run__whose_pull_is_over__is_published_by_it),
		CORE_TEST(waiters__of_one_run__are_all_woken_once),
		CORE_TEST(waiter__of_a_change__does_not_hear_of_runs),
		CORE_TEST(change__that_is_asked_for_at_the_end_of_a_run__is_done),
		CORE_TEST(agent__is_told_of_each_run),
		CORE_TEST(held__is_said_once_for_each_version),
		CORE_TEST(held__by_an_operator__is_said_by_nobody),
		CORE_TEST(rolled_back__is_a_failure_of_each_run),
		CORE_TEST(force__ends_with_its_run_whatever_came_of_it),
		CORE_TEST(result__of_a_run__is_not_that_of_the_next),
		CORE_TEST(heal__during_a_run__is_no_publication),
		CORE_TEST(published__is_known_by_generation_and_each_document),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

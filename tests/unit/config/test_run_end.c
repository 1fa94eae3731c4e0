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

int main(void)
{
	const struct CMUnitTest tests[] = {
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

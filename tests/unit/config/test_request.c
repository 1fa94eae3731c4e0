/* How an operator's request ends: superseded, cancelled, answered. */
#include "tests/unit/fixture/core.h"

static unsigned retired;

static void note_retired(void *arg)
{
	(void)arg;
	retired++;
}

static void begin_with_a_check(void)
{
	server_has("n: 1\n");
	agent_starts("check: [/bin/true, '{path}']");
	pull_of("n: 2\n");
	world.programs_hang = true;
}

static void rollback__when_another_version_comes_meanwhile__is_superseded(void **state)
{
	(void)state;
	begin_with_a_check();
	pull_of("n: 3\n"); /* being checked */
	operator_rolls_back(1);
	assert_true(operator.waits);
	world.programs_hang = false;
	world_turn();
	assert_failed("another version was published meanwhile: check it and try again");
	assert_logged("not rolled back: another version was published meanwhile");
	assert_shows("n: 3\n");
	assert_generation(3);
	assert_verdicts(0);
}

static void overrides__when_another_version_comes_meanwhile__are_laid_over_it(void **state)
{
	(void)state;
	begin_with_a_check();
	pull_of("n: 3\n");
	operator_overrides("n", "7", HOUR);
	world.programs_hang = false;
	world_turn();
	assert_done();
	assert_shows("n: 7\n");
}

static void request__that_is_not_begun__is_cancelled_with_its_config(void **state)
{
	(void)state;
	begin_with_a_check();
	pull_of("n: 3\n");
	operator_rolls_back(1);
	assert_true(config_retire(core.config, note_retired, NULL));
	assert_failed("was not done yet: ask again");
	assert_logged("change cancelled");
	agent_crashes();
	world.programs_hang = false;
	agent_starts("");
	assert_shows("n: 3\n");
	assert_verdicts(0);
}

static void request__that_is_being_checked__is_cancelled_with_its_config(void **state)
{
	(void)state;
	begin_with_a_check();
	operator_overrides("n", "7", HOUR);
	assert_true(world.programs.running);
	assert_true(config_retire(core.config, note_retired, NULL));
	assert_failed("was not done yet: ask again");
	agent_crashes();
	world.programs_hang = false;
	agent_starts("");
	assert_shows("n: 2\n");
	assert_int_equal(core_status().override_count, 0);
}

static void request__that_the_disk_has__is_finished(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	pull_of("n: 2\n");
	world.disk.held = true;
	operator_rolls_back(1);
	retired = 0;
	assert_false(config_retire(core.config, note_retired, NULL));
	assert_true(operator.waits);
	world.disk.held = false;
	world_turn();
	assert_int_equal(retired, 1);
	assert_done();
	assert_shows("n: 1\n");
}

static void request__while_the_disk_has_a_pulled_version__is_cancelled_with_its_config(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	pull_of("n: 2\n");
	world.disk.held = true;
	pull_of("n: 3\n");
	assert_true(core.config->step.publishing);
	operator_overrides("n", "7", HOUR);
	assert_true(operator.waits);
	retired = 0;
	assert_false(config_retire(core.config, note_retired, NULL));
	assert_failed("was not done yet: ask again");
	world.disk.held = false;
	world_turn();
	assert_int_equal(retired, 1);
	assert_shows("n: 3\n");
}

static void request__at_the_end_of_the_agent__is_not_answered(void **state)
{
	(void)state;
	begin_with_a_check();
	operator_rolls_back(1);
	assert_true(config_retire(core.config, NULL, NULL));
	assert_int_equal(operator.answers, 0);
}

static void change__in_a_retiring_config__is_refused(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	assert_true(config_retire(core.config, note_retired, NULL));
	operator_overrides("n", "1", HOUR);
	assert_refused(-EBUSY, "another change");
}

static void answer__without_a_request__changes_nothing(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	request_answer(core.config, "no");
	request_cancel(core.config);
	assert_null(config_change_error(core.config));
}

/* ---- to the letter ---- */

static void rollback__that_is_superseded__is_logged_with_what_was_asked(void **state)
{
	(void)state;
	begin_with_a_check();
	pull_of("n: 3\n");
	operator_rolls_back(1);
	world.programs_hang = false;
	world_turn();
	assert_line("<6>not rolled back: another version was published meanwhile config=web "
		    "what=\"rollback to generation 1 by ann: pages are slow\"");
	assert_string_equal(operator.answer,
		"another version was published meanwhile: check it and try again");
	assert_int_equal(operator.answers, 1);
	assert_null(core.config->decisions.request);
}

static void request__that_is_cancelled__is_logged_and_answered_once(void **state)
{
	static const char why[] = "a new configuration changes this config, or removes it, and "
				  "this was not done yet: ask again";

	(void)state;
	begin_with_a_check();
	pull_of("n: 3\n");
	operator_overrides("n", "7", HOUR);
	assert_true(config_retire(core.config, note_retired, NULL));
	assert_line("<4>change cancelled config=web why=\"%s\"", why);
	assert_string_equal(operator.answer, why);
	assert_string_equal(config_change_error(core.config), why);
	assert_int_equal(operator.answers, 1);
	assert_null(core.config->decisions.request);
	request_cancel(core.config);
	assert_int_equal(core_count_log("change cancelled"), 1);
}

static unsigned others;

static void note_other(void *arg, struct config *c)
{
	(void)arg;
	(void)c;
	others++;
}

static void answer__is_heard_by_who_waits_for_it_or_for_anything(void **state)
{
	struct config_waiter any = {.ended = note_other}, run = {.ended = note_other};

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	others = 0;
	config_wait_any(core.config, &any);
	config_wait(core.config, &run);
	operator_overrides("n", "7", HOUR);
	assert_done();
	assert_int_equal(others, 1); /* not by who waits for a run */
	config_wait_cancel(core.config, &run);
}

static void request__of_another_kind__is_not_superseded(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	assert_false(request_supersede(core.config));
	assert_null(config_change_error(core.config));
	request_drop(core.config); /* there is none */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CORE_TEST(rollback__when_another_version_comes_meanwhile__is_superseded),
		CORE_TEST(overrides__when_another_version_comes_meanwhile__are_laid_over_it),
		CORE_TEST(request__that_is_not_begun__is_cancelled_with_its_config),
		CORE_TEST(request__that_is_being_checked__is_cancelled_with_its_config),
		CORE_TEST_DISK(request__that_the_disk_has__is_finished),
		CORE_TEST(request__at_the_end_of_the_agent__is_not_answered),
		CORE_TEST(change__in_a_retiring_config__is_refused),
		CORE_TEST(answer__without_a_request__changes_nothing),
		CORE_TEST_DISK(
			request__while_the_disk_has_a_pulled_version__is_cancelled_with_its_config),
		CORE_TEST(rollback__that_is_superseded__is_logged_with_what_was_asked),
		CORE_TEST(request__that_is_cancelled__is_logged_and_answered_once),
		CORE_TEST(answer__is_heard_by_who_waits_for_it_or_for_anything),
		CORE_TEST(request__of_another_kind__is_not_superseded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

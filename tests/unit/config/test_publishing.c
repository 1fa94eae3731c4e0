/* The last phase of a step: commit, show, record; on the worker where a disk may block. */
#include "tests/unit/fixture/core.h"

static unsigned retired;

static void note_retired(void *arg)
{
	(void)arg;
	retired++;
}

static void begin(const char *extra)
{
	server_has("n: 1\n");
	agent_starts(extra);
	assert_shows("n: 1\n");
}

static void publication__to_a_disk__is_the_workers(void **state)
{
	(void)state;
	begin("");
	world.disk.held = true;
	pull_of("n: 2\n");
	assert_true(config_at_disk(core.config));
	assert_true(core_status().running);
	assert_shows("n: 1\n");
	world.disk.held = false;
	world_turn();
	assert_shows("n: 2\n");
	assert_outcome(CONFIG_PUBLISHED);
}

static void publication__in_memory__is_the_loops(void **state)
{
	(void)state;
	begin("");
	world.disk.held = true;
	pull_of("n: 2\n");
	assert_shows("n: 2\n");
}

static void publication__that_is_large__is_the_workers(void **state)
{
	size_t len = 1u << 20;
	char *text = malloc(len + 1);

	(void)state;
	begin("type: bytes");
	assert_non_null(text);
	memset(text, 'x', len);
	text[len] = '\0';
	world.disk.held = true;
	pull_of(text);
	free(text);
	assert_true(core.config->step.publishing);
	world.disk.held = false;
	world_turn();
	assert_generation(2);
}

static void retired__while_the_disk_has_a_version__finishes_it(void **state)
{
	(void)state;
	begin("");
	world.disk.held = true;
	pull_of("n: 2\n");
	retired = 0;
	assert_false(config_retire(core.config, note_retired, NULL));
	assert_int_equal(retired, 0);
	world.disk.held = false;
	world_turn();
	assert_int_equal(retired, 1);
	assert_shows("n: 2\n");
	assert_int_equal(core.runs, 2); /* that run has ended with it */
}

static void stopped__while_the_disk_has_a_version__is_as_after_a_crash(void **state)
{
	(void)state;
	begin("");
	world.disk.held = true;
	pull_of("n: 2\n");
	assert_false(config_retire(core.config, NULL, NULL));
	world.disk.held = false;
	agent_restarts();
	assert_shows("n: 2\n"); /* pulled again */
	assert_generation(2);
}

static void pull__while_the_disk_has_a_version__waits_for_nothing(void **state)
{
	(void)state;
	begin("");
	world.disk.held = true;
	pull_of("n: 2\n");
	pull_of("n: 3\n");
	world.disk.held = false;
	world_turn();
	assert_shows("n: 3\n");
	assert_generation(3);
}

static void file_touched__while_the_disk_has_a_version__is_healed_after_it(void **state)
{
	(void)state;
	begin("");
	world.disk.held = true;
	pull_of("n: 2\n");
	somebody_writes("harm");
	assert_shows("harm");
	world.disk.held = false;
	world_turn();
	assert_shows("n: 2\n");
}

static void state_file__in_memory__is_never_synced(void **state)
{
	(void)state;
	begin("");
	world.disk.held = true;
	operator_pins(0);
	assert_null(world.disk.first);
}

static void ledger__is_brought_to_the_disk_by_the_worker(void **state)
{
	(void)state;
	begin("");
	world.disk.held = true;
	operator_pins(0);
	assert_non_null(world.disk.first);
	operator_pins(HOUR); /* one job at a time */
	assert_null(world.disk.first->next);
	assert_true(config_at_disk(core.config));
	world.disk.held = false;
	world_turn();
	assert_false(config_at_disk(core.config));
}

static void sync__that_fails__is_said(void **state)
{
	(void)state;
	begin("");
	world.disk.held = true;
	operator_pins(0);
	disk_fails(CALL_FSYNC, 1, true, EIO);
	world.disk.held = false;
	world_turn();
	disk_recovers();
	assert_logged("the state file is not on the disk: a power cut may lose it");
}

static void sync__without_a_descriptor__is_made_after_the_next_pull(void **state)
{
	(void)state;
	begin("");
	world.disk.held = true;
	operator_pins(0);
	disk_fails(CALL_OPEN, 1, true, EMFILE);
	world.disk.held = false;
	world_turn();
	disk_recovers();
	assert_logged("the state file is not on the disk yet");
	world.disk.held = true;
	pull();
	assert_non_null(world.disk.first);
	world.disk.held = false;
	world_turn();
	assert_false(config_at_disk(core.config));
	world.disk.held = true;
	pull();
	assert_null(world.disk.first); /* it is there now */
}

static void strict__writes_the_ledger_to_the_disk_at_once(void **state)
{
	(void)state;
	begin("durability: strict");
	world.disk.held = true;
	operator_pins(0);
	assert_null(world.disk.first);
	world.disk.held = false;
	pull_of("n: 2\n");
	operator_unpins();
	assert_shows("n: 2\n");
}

static void publication__that_may_be_lost_by_a_power_cut__is_said(void **state)
{
	(void)state;
	begin("");
	world.disk.held = true;
	pull_of("n: 2\n");
	for (unsigned n = 1; n < 20 && !core_count_log("a power cut may bring"); n++) {
		char text[32];

		disk_fails(CALL_FSYNC, n, false, EIO);
		world.disk.held = false;
		world_turn();
		disk_recovers();
		world.disk.held = true;
		snprintf(text, sizeof(text), "n: %u\n", n + 2);
		pull_of(text);
	}
	world.disk.held = false;
	world_turn();
	assert_logged("published, but a power cut may bring the old version back");
}

/* At each call that can fail, once or from then on: the old version or the new one, never a mixture
 * that lasts, and the next run finishes what is left. */
static void fail_at_each_call(bool for_ever, int error)
{
	for (unsigned n = 1;; n++) {
		bool hit;
		char text[32];

		disk_fails(CALL_OPEN, n, for_ever, error);
		fault.call = -1;
		snprintf(text, sizeof(text), "n: %u\n", 1000 + n);
		pull_of(text);
		hit = fault.seen >= n;
		disk_recovers();
		pull();
		pull();
		assert_shows(text);
		assert_state("ok");
		if (!hit)
			break;
		assert_in_range(n, 1, 200);
	}
}

static void disk__that_is_full_at_any_call__delays_the_version(void **state)
{
	(void)state;
	begin("");
	fail_at_each_call(false, ENOSPC);
	fail_at_each_call(true, ENOSPC);
}

static void disk__that_breaks_at_any_call__delays_the_version(void **state)
{
	(void)state;
	begin("");
	fail_at_each_call(false, EIO);
	fail_at_each_call(true, EIO);
}

/* Committed; its file is not replaced. */
static void save_only(const char *text)
{
	disk_fails(CALL_RENAME, 2, false, EIO);
	pull_of(text);
	disk_recovers();
	assert_int_equal(core.config->current.saved_generation, 2);
	assert_generation(1);
}

static void saved_version__that_fails_before_it_touches_anything__is_no_drift(void **state)
{
	(void)state;
	begin("drift: report");
	save_only("n: 2\n");
	server_is_down();
	disk_fails(CALL_WRITE, 1, false, ENOSPC); /* of the snapshot, which is written first */
	pull();
	assert_true(fault.seen >= 1);
	assert_shows("n: 1\n");
	inotify_says("out/web.yaml", "replaced");
	assert_not_logged("changed by somebody else");
	assert_false(core_status().drifted);
	assert_int_equal(core_status().restored, 0);
	pull();
	assert_shows("n: 2\n");
	assert_not_logged("changed by somebody else");
}

static void publication__that_the_disk_fails__is_a_problem_of_this_host(void **state)
{
	(void)state;
	begin("");
	disk_fails(CALL_WRITE, 1, true, ENOSPC);
	pull_of("n: 2\n");
	assert_int_equal(core_status().cause, KIND_CAUSE_HOST);
	assert_non_null(strstr(core_status().last_error, "make room"));
	server_is_down();
	pull();
	assert_int_equal(core_status().cause, KIND_CAUSE_UNREACHABLE);
	disk_recovers();
	pull_of("n: 3\n");
	assert_int_equal(core_status().cause, KIND_CAUSE_NONE);
	assert_shows("n: 3\n");
}

static void pin__while_a_saved_version_is_validated__holds_it(void **state)
{
	static char text[40000];

	(void)state;
	core.env.check = &world.checks;
	begin("");
	memset(text, 'x', 30000);
	memcpy(text, "n: ", 3);
	text[29999] = '\n';
	save_only(text);
	server_is_down();
	world.checks.held = true;
	pull();
	assert_int_equal(core.config->step.decision.action, ACTION_SHOW);
	assert_non_null(core.config->step.validating);
	operator_pins(0);
	world.checks.held = false;
	world_turn();
	assert_logged("not published: it is held meanwhile");
	assert_shows("n: 1\n");
	assert_generation(1);
	operator_unpins();
	assert_shows(text);
	assert_generation(2);
}

static void rename__that_fails__in_an_operators_change__leaves_nothing(void **state)
{
	(void)state;
	begin("");
	pull_of("n: 2\n");
	for (unsigned n = 1; n <= 3; n++) {
		disk_fails(CALL_RENAME, n, false, EIO);
		operator_rolls_back(1);
		disk_recovers();
		assert_failed("could not publish");
		agent_restarts();
		assert_shows("n: 2\n");
		assert_generation(2);
	}
}

static void empty_document__is_published(void **state)
{
	(void)state;
	server_has("");
	agent_starts("type: bytes");
	assert_shows("");
	assert_generation(1);
}

static void state_file_and_ledger__are_brought_to_the_disk_together(void **state)
{
	(void)state;
	begin("");
	world.disk.held = true;
	operator_pins(0);
	publishing_sync(core.config, PUBLISHING_STATE);
	world.disk.held = false;
	world_turn();
	world.disk.held = true;
	publishing_sync(core.config, PUBLISHING_STATE);
	world.disk.held = false;
	world_turn();
	assert_not_logged("is not on the disk");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CORE_TEST_DISK(publication__to_a_disk__is_the_workers),
		CORE_TEST(publication__in_memory__is_the_loops),
		CORE_TEST(publication__that_is_large__is_the_workers),
		CORE_TEST_DISK(retired__while_the_disk_has_a_version__finishes_it),
		CORE_TEST_DISK(stopped__while_the_disk_has_a_version__is_as_after_a_crash),
		CORE_TEST_DISK(pull__while_the_disk_has_a_version__waits_for_nothing),
		CORE_TEST_DISK(file_touched__while_the_disk_has_a_version__is_healed_after_it),
		CORE_TEST(state_file__in_memory__is_never_synced),
		CORE_TEST_DISK(ledger__is_brought_to_the_disk_by_the_worker),
		CORE_TEST_DISK(sync__that_fails__is_said),
		CORE_TEST_DISK(sync__without_a_descriptor__is_made_after_the_next_pull),
		CORE_TEST_DISK(strict__writes_the_ledger_to_the_disk_at_once),
		CORE_TEST_DISK(publication__that_may_be_lost_by_a_power_cut__is_said),
		CORE_TEST(disk__that_is_full_at_any_call__delays_the_version),
		CORE_TEST(disk__that_breaks_at_any_call__delays_the_version),
		CORE_TEST(rename__that_fails__in_an_operators_change__leaves_nothing),
		CORE_TEST(empty_document__is_published),
		CORE_TEST_DISK(state_file_and_ledger__are_brought_to_the_disk_together),
		CORE_TEST(saved_version__that_fails_before_it_touches_anything__is_no_drift),
		CORE_TEST(publication__that_the_disk_fails__is_a_problem_of_this_host),
		CORE_TEST(pin__while_a_saved_version_is_validated__holds_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

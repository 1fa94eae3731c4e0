/* Which stored version becomes current at a start, and what an earlier life left to do. */
#include "publish/shown.h"
#include "tests/unit/fixture/core.h"

static void begin_with_two(const char *extra)
{
	server_has("n: 1\n");
	agent_starts(extra);
	pull_of("n: 2\n");
	assert_generation(2);
}

static void damage(const char *generation)
{
	char path[SCRATCH_PATH + 64], name[32];

	core_path(path, "state/web");
	snprintf(name, sizeof(name), "0000000000000000000%s", generation);
	scratch_write(path, name, "harm", 4);
}

static void start__without_a_stored_version__publishes_nothing(void **state)
{
	(void)state;
	agent_starts("");
	assert_shows(NULL);
	assert_generation(0);
	assert_state("waiting");
}

/* The runtime directory is in memory. */
static void machine_boots(void)
{
	for (const char *const *name = (const char *const[]){"run/web.snap", "run/web.gen", NULL};
		*name; name++) {
		char path[SCRATCH_PATH + 64];

		core_path(path, *name);
		assert_int_equal(unlink(path), 0);
	}
}

static void start__with_damaged_state_files__shows_the_newest_that_verifies(void **state)
{
	(void)state;
	begin_with_two("");
	pull_of("n: 3\n");
	agent_crashes();
	damage("3");
	server_is_down();
	machine_boots();
	agent_starts("");
	assert_logged("state files were damaged (set aside) or could not be read");
	assert_shows("n: 2\n");
	assert_generation(2);
	pull_of("n: 4\n");
	assert_generation(4); /* numbers never go back */
}

static void start__with_nothing_but_damaged_files__waits_for_the_server(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	agent_crashes();
	damage("1");
	server_is_down();
	agent_starts("");
	assert_generation(0);
	server_recovers();
	pull();
	assert_shows("n: 1\n");
}

static void start__while_the_disk_fails__waits_and_keeps_the_newest(void **state)
{
	(void)state;
	begin_with_two("");
	agent_crashes();
	core_make("");
	disk_fails(CALL_READ, 2, true, EIO);
	config_start(core.config, true);
	assert_generation(0);
	assert_logged("Input/output error");
	disk_recovers();
	pull();
	assert_shows("n: 2\n");
	assert_generation(2);
}

static void start__on_a_disk_that_goes_on_failing__says_what_is_forgotten(void **state)
{
	(void)state;
	begin_with_two("");
	agent_crashes();
	core_make("");
	disk_fails(CALL_READ, 1, true, EIO);
	config_start(core.config, true);
	for (int i = 0; i < 12; i++)
		pull();
	assert_logged("the ledger cannot be read: pins and rejections are forgotten");
	assert_logged("state files were damaged (set aside) or could not be read");
	disk_recovers();
	pull_of("n: 3\n");
	assert_shows("n: 3\n");
	assert_generation(4); /* numbers never go back */
}

/* An agent that was killed may not have brought it to the disk. */
static void start__of_a_version_written_a_moment_ago__brings_it_to_the_disk(void **state)
{
	(void)state;
	begin_with_two("");
	world.disk.held = true;
	agent_restarts();
	assert_non_null(world.disk.first);
	world.disk.held = false;
	world_turn();
	world.wall_ms = INT64_C(9000000000000); /* the kernel has written it long since */
	world.disk.held = true;
	agent_restarts();
	assert_null(world.disk.first);
	world.disk.held = false;
}

static void start__when_the_file_is_right_already__does_not_touch_it(void **state)
{
	char path[SCRATCH_PATH + 64];
	struct stat before, after;

	(void)state;
	begin_with_two("");
	core_path(path, "out/web.yaml");
	assert_int_equal(stat(path, &before), 0);
	agent_restarts();
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_generation(2);
}

static void start__with_other_layers_than_were_stored__publishes_nothing_of_it(void **state)
{
	(void)state;
	begin_with_two("");
	agent_crashes();
	core.from = "[{server: main, path: /base.yaml}, {server: main, path: /web.yaml}]";
	agent_starts("");
	assert_logged("the last known good does not fit the present configuration");
	assert_shows("n: 2\n"); /* nothing better is known */
	assert_generation(0);
	world_put("/base.yaml", "b: 1\n");
	pull();
	assert_shows("b: 1\nn: 2\n");
	assert_generation(3);
}

static void start__pinned__when_nothing_stored_fits__takes_what_the_server_has(void **state)
{
	(void)state;
	begin_with_two("");
	operator_pins(0);
	agent_crashes();
	core.from = "[{server: main, path: /base.yaml}, {server: main, path: /web.yaml}]";
	world_put("/base.yaml", "b: 1\n");
	agent_starts("");
	assert_shows("b: 1\nn: 2\n");
	assert_generation(3);
}

static void start__pinned_at_an_older_version__shows_that_one(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	snapshot_is_blocked();
	pull_of("n: 2\n");
	operator_pins(0);
	snapshot_is_free();
	server_is_down();
	somebody_writes_quietly("harm");
	agent_restarts();
	assert_generation(3); /* readers may have seen something of 2 */
	assert_shows("n: 1\n");
	agent_restarts();
	assert_generation(3);
}

static void start__pinned_at_an_older_version__with_a_disk_that_fails__keeps_its_number(
	void **state)
{
	char path[SCRATCH_PATH + 64], text[4096] = "";

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	snapshot_is_blocked();
	pull_of("n: 2\n");
	operator_pins(0);
	snapshot_is_free();
	agent_crashes();
	disk_fails(CALL_WRITE, 2, false, ENOSPC); /* after the ledger */
	agent_starts("");
	assert_logged("the pinned version keeps its old number");
	assert_generation(1);
	assert_shows("n: 1\n");
	assert_int_equal(core.config->decisions.ledger->generation, 2);
	core_path(path, "state/web");
	assert_true(scratch_read(path, "ledger.json", text, sizeof(text) - 1, NULL));
	assert_non_null(strstr(text, "\"generation\":\"2\""));
}

/* The pin names the bytes that the rollback would bring. */
static void start__pinned_while_a_rollback_waits_for_the_disk__takes_a_new_number(void **state)
{
	(void)state;
	begin_with_two("");
	world.disk.held = true;
	operator_rolls_back(1);
	operator_pins(0);
	agent_restarts();
	assert_logged("pinned: keeping the current version config=web generation=3");
	world.disk.held = false;
	assert_shows("n: 1\n");
	assert_generation(3);
	assert_non_null(core_status().pin);
}

static void start__pinned__with_an_unreadable_file_between__finds_the_pinned_one(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	operator_pins(0);
	agent_crashes();
	server_has("n: 1\n");
	agent_starts("");
	snapshot_is_blocked();
	snapshot_is_free();
	agent_crashes();
	damage("2");
	damage("3");
	agent_starts("");
	assert_generation(1);
	assert_non_null(core_status().pin);
}

static void start__with_an_unusable_place__says_so_while_the_server_is_down_too(void **state)
{
	char path[SCRATCH_PATH + 64];

	(void)state;
	begin_with_two("");
	agent_crashes();
	core_path(path, "out/web.yaml");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	server_is_down();
	agent_starts("");
	assert_non_null(strstr(
		core_status().last_error, "connection refused; and here: will not replace "));
	assert_int_equal(rmdir(path), 0);
	pull();
	assert_shows("n: 2\n");
	assert_null(strstr(core_status().last_error, "and here"));
}

static void start__with_an_unusable_place__is_tried_again_at_each_run(void **state)
{
	char path[SCRATCH_PATH + 64];

	(void)state;
	begin_with_two("");
	agent_crashes();
	core_path(path, "out/web.yaml");
	assert_int_equal(unlink(path), 0);
	core_path(path, "out");
	assert_int_equal(rmdir(path), 0);
	scratch_write(core.dir, "out", "a file", 6);
	agent_starts("");
	assert_logged("cannot publish here");
	assert_generation(0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	pull();
	assert_shows("n: 2\n");
	assert_generation(2);
}

static void start__whose_disk_fails__is_finished_by_the_next_run(void **state)
{
	(void)state;
	begin_with_two("");
	somebody_writes_quietly("harm");
	agent_crashes();
	core_make("");
	core.env.starting = true;
	disk_fails(CALL_RENAME, 1, true, ENOSPC);
	config_start(core.config, true);
	assert_generation(0);
	assert_shows("harm");
	disk_recovers();
	world_turn();
	assert_shows("n: 2\n");
	assert_generation(2);
}

static void start__after_a_crash_during_a_probe__probes_again(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("probe: {run: [/bin/true], for: 1h}, reload: {run: [/bin/true]}");
	world_end_probe(NULL);
	pull_of("n: 2\n");
	assert_true(world.probe.running);
	agent_restarts();
	assert_true(world.probe.running);
	world_end_probe("bad");
	world_turn();
	assert_shows("n: 1\n");
	assert_generation(3);
}

static void start__after_a_crash_during_a_reload__notifies_again(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("reload: {run: [/bin/true]}");
	world.reload_hangs = true;
	pull_of("n: 2\n");
	world.reload_hangs = false;
	agent_restarts();
	assert_int_equal(core.config->decisions.ledger->notified, 2);
	assert_int_equal(world.reloads, 2);
	agent_restarts();
	assert_int_equal(world.reloads, 2); /* it knows */
}

static void start__with_a_harmful_version__finishes_its_rollback(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("probe: {run: [/bin/true], for: 10s}");
	world_end_probe(NULL);
	pull_of("n: 2\n");
	world.dies_at = 2; /* the verdict is in the ledger, the rollback is not saved */
	world_end_probe("it answers 500");
	world_turn();
	server_is_down();
	agent_restarts();
	assert_shows("n: 1\n");
	assert_origin("probe: generation 2 was bad");
}

/* After a crash between the state file and the ledger. */
static void start__after_an_operators_rollback__needs_no_probe(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("probe: {run: [/bin/true], for: 10s}");
	world_end_probe(NULL);
	pull_of("n: 2\n");
	world.dies_at = 2;
	operator_rolls_back(1);
	server_is_down();
	agent_restarts();
	assert_shows("n: 1\n");
	assert_generation(3);
	assert_false(world.probe.running);
	assert_int_equal(core.config->decisions.ledger->proven, 3);
}

static void start__after_a_probes_rollback__needs_no_probe(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("probe: {run: [/bin/true], for: 10s}");
	world_end_probe(NULL);
	pull_of("n: 2\n");
	world.dies_at = 3; /* after the verdict and the state file */
	world_end_probe("it answers 500");
	world_turn();
	server_is_down();
	agent_restarts();
	assert_generation(3);
	assert_shows("n: 1\n");
	assert_false(world.probe.running);
}

static void start__with_once__pulls_at_once_and_notifies_nobody(void **state)
{
	(void)state;
	core.env.once = true;
	server_has("n: 1\n");
	agent_starts("reload: {run: [/bin/true]}");
	assert_shows("n: 1\n");
	assert_int_equal(world.reloads, 0);
	assert_int_equal(core.runs, 1);
}

static void start__keeps_the_age_of_the_snapshot(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	agent_crashes();
	world.now_ms += 10 * SECOND;
	world.wall_ms += 10 * SECOND;
	server_is_down();
	agent_starts("");
	assert_int_equal(core_status().age_ms, 10 * SECOND);
}

static void start__of_a_large_version__is_validated_on_the_thread(void **state)
{
	static char text[40000];
	char path[SCRATCH_PATH + 64];

	(void)state;
	core_path(path, "out/web.yaml");
	core.env.check = &world.checks;
	memset(text, 'x', 30000);
	memcpy(text, "n: ", 3);
	text[29999] = '\n';
	server_has(text);
	agent_starts("");
	assert_shows(text);
	somebody_writes_quietly("harm");
	agent_crashes();
	core_make("");
	world.checks.held = true;
	config_start(core.config, true); /* others are served meanwhile */
	assert_shows("harm");
	assert_int_equal(core_status().version->generation, 1); /* as before */
	assert_state("ok");
	assert_true(core_status().age_ms >= 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(core_status().version->generation, 0);
	assert_state("waiting");
	assert_non_null(core.config->step.validating);
	world.checks.held = false;
	world_turn();
	assert_shows(text);
	assert_logged("started from the last known good");
}

static void start__in_every_phase_of_a_crash__shows_old_or_new_whole(void **state)
{
	(void)state;
	for (unsigned n = 1;; n++) {
		bool died;

		server_has("n: 1\n");
		agent_starts("");
		pull_of("n: 1\n");
		world.dies_at = n;
		pull_of("n: 2\n");
		died = fault.nth;
		server_is_down();
		agent_restarts();
		if (core.config->current.version.generation % 2 == 1)
			assert_shows("n: 1\n");
		else
			assert_shows("n: 2\n");
		server_recovers();
		pull();
		assert_shows("n: 2\n");
		pull_of("n: 1\n");
		agent_crashes();
		scratch_close(core.dir);
		core_close();
		core_open(scratch_memory());
		if (!died)
			break;
		assert_in_range(n, 1, 20);
	}
}

static void start__pinned_by_an_older_agent__keeps_the_newest(void **state)
{
	(void)state;
	begin_with_two("");
	operator_pins(0);
	core.config->decisions.ledger->pin.sha256[0] = '\0'; /* the bytes were not noted then */
	decisions_save(core.config);
	server_has("n: 3\n");
	agent_restarts();
	assert_generation(2);
	assert_outcome(CONFIG_HELD);
}

static void start__pinned__with_newer_versions_of_overrides__finds_the_pinned_bytes(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	snapshot_is_blocked();
	pull_of("n: 2\n"); /* saved, not shown */
	snapshot_is_free();
	operator_pins(0);
	agent_restarts();
	operator_overrides("n", "7", HOUR);
	assert_done();
	agent_restarts();
	assert_shows("n: 7\n");
	assert_non_null(core_status().pin);
}

static void start__pinned__between_others__shows_the_pinned_one(void **state)
{
	(void)state;
	begin_with_two("");
	disk_fails(CALL_RENAME, 2, false, EIO);
	pull_of("n: 3\n"); /* saved, not shown */
	operator_pins(0);
	server_is_down();
	agent_restarts();
	assert_shows("n: 2\n");
	assert_generation(4);
	assert_non_null(core_status().pin);
}

static void start__pinned__with_a_damaged_file_before_the_pinned_one__finds_it(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	operator_pins(0);
	operator_overrides("n", "7", HOUR);
	operator_drops("n");
	operator_unpins();
	pull_of("n: 4\n");
	operator_rolls_back(1);
	operator_pins(0);
	assert_generation(5);
	damage("5");
	damage("3");
	agent_restarts();
	assert_logged("started from the last known good config=web generation=6");
	assert_shows("n: 1\n"); /* composed again, without the override of then */
	assert_non_null(core_status().pin);
	assert_outcome(CONFIG_HELD);
}

static void start__pinned__with_nothing_stored__drops_the_pin(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	operator_pins(0);
	agent_crashes();
	damage("1");
	server_has("n: 2\n");
	agent_starts("");
	assert_logged("the pinned version is not in the state directory: the pin is dropped");
	assert_null(core_status().pin);
	assert_shows("n: 2\n");
}

static void start__pinned__on_a_disk_that_goes_on_failing__drops_the_pin_in_the_end(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	operator_pins(0);
	agent_crashes();
	core_make("");
	disk_fails(CALL_READ, 5, true, EIO); /* when it is to be shown */
	config_start(core.config, true);
	pull();
	assert_non_null(core_status().pin);
	for (int i = 0; i < 12; i++)
		pull();
	assert_logged("the pinned version cannot be read: the pin is dropped config=web by=ann");
	assert_null(core_status().pin);
}

static void start__without_descriptors_for_the_pinned_version__keeps_the_pin(void **state)
{
	static const char said[] = "the last known good does not fit the present configuration";

	(void)state;
	begin_with_two("");
	operator_pins(0);
	server_is_down();
	for (unsigned n = 1; n < 100 && !core_count_log(said); n++) {
		agent_crashes();
		somebody_writes_quietly("harm");
		core_make("");
		disk_fails(CALL_OPEN, n, false, EMFILE);
		config_start(core.config, false);
		disk_recovers();
	}
	assert_logged(said);
	assert_shows("harm");
	assert_non_null(core_status().pin);
	pull();
	assert_shows("n: 2\n");
	assert_generation(2);
}

static void start__not_possible_until_the_pull_has_ended__keeps_the_operators_verdict(void **state)
{
	(void)state;
	begin_with_two("");
	world.dies_at = 2; /* the rollback is saved, the ledger does not know it */
	operator_rolls_back(1);
	agent_crashes();
	core_make("");
	world.holds = true;
	disk_fails(CALL_READ, 3, true, EMFILE);
	config_start(core.config, true);
	world_turn();
	assert_generation(0);
	disk_recovers();
	world.holds = false;
	world_turn();
	assert_shows("n: 1\n");
	pull();
	assert_shows("n: 1\n");
	assert_outcome(CONFIG_HELD);
}

static void start__not_possible_when_a_new_version_comes__publishes_nothing_before(void **state)
{
	(void)state;
	begin_with_two("");
	agent_crashes();
	core_make("");
	server_has("n: 3\n");
	disk_fails(CALL_READ, 3, true, EMFILE);
	config_start(core.config, true);
	world_turn();
	assert_outcome(CONFIG_FAILED);
	assert_error("the state directory cannot be read now");
	assert_generation(0);
	disk_recovers();
	assert_shows("n: 2\n");
	pull();
	assert_shows("n: 3\n");
	assert_generation(3);
}

static void start__without_a_descriptor_at_any_call__is_finished_by_a_run(void **state)
{
	(void)state;
	begin_with_two("");
	server_is_down();
	for (unsigned n = 1; n < 40; n++) {
		agent_crashes();
		somebody_writes_quietly("harm");
		core_make("");
		disk_fails(CALL_OPEN, n, false, EMFILE);
		config_start(core.config, false);
		disk_recovers();
		pull();
		assert_shows("n: 2\n");
		assert_generation(2);
	}
}

static void start__after_a_boot__does_not_know_the_age(void **state)
{
	(void)state;
	begin_with_two("");
	server_is_down();
	agent_crashes();
	world.now_ms = 1000; /* younger than the last confirmation */
	wheel_init(&world.loop.wheel, world.now_ms);
	agent_starts("");
	assert_int_equal(core.config->status.confirmed_ms, 0);
	assert_shows("n: 2\n");
}

static void start__has_the_age_of_the_last_confirmation_not_of_the_pull(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	world_advance(10 * MINUTE);
	pull();
	assert_outcome(CONFIG_UNCHANGED);
	agent_crashes();
	world.now_ms += 10 * SECOND;
	world.wall_ms += 10 * SECOND;
	server_is_down();
	agent_starts("");
	assert_int_equal(core_status().age_ms, 10 * SECOND);
	assert_int_equal(core.config->status.confirmed_wall_ms, world.wall_ms - 10 * SECOND);
}

/* ---- to the letter ---- */

static void start__is_logged_with_version_and_file(void **state)
{
	int64_t pulled_ms;

	(void)state;
	begin_with_two("");
	pulled_ms = world.wall_ms;
	server_is_down();
	agent_crashes();
	world.wall_ms += 5000;
	world.now_ms += 5000;
	agent_starts("");
	assert_line("<6>started from the last known good config=web generation=2 version=49a609b0 "
		    "file=%s/out/web.yaml",
		core.dir);
	assert_int_equal(core_status().published_ms, pulled_ms);
	assert_int_equal(core_status().confirmed_ms, pulled_ms);
	assert_int_equal(core.config->status.confirmed_ms, world.now_ms - 5000);
	assert_int_equal(core_count_log("<6>started from"), 1);
}

static void start__at_the_moment_of_the_last_confirmation__knows_it(void **state)
{
	(void)state;
	begin_with_two("");
	server_is_down();
	agent_restarts();
	assert_int_equal(core.config->status.confirmed_ms, world.now_ms);
	assert_int_equal(core_status().age_ms, 0);
	agent_crashes();
	world.now_ms--;
	wheel_init(&world.loop.wheel, world.now_ms);
	agent_starts("");
	assert_int_equal(core.config->status.confirmed_ms, 0); /* of another boot */
}

static void start__with_damaged_files__says_how_many(void **state)
{
	(void)state;
	begin_with_two("");
	pull_of("n: 3\n");
	agent_crashes();
	damage("3");
	damage("2");
	server_is_down();
	machine_boots();
	agent_starts("");
	assert_line("<3>state files were damaged (set aside) or could not be read config=web "
		    "files=2");
	assert_generation(1);
}

static void start__does_not_read_what_it_does_not_need(void **state)
{
	(void)state;
	begin_with_two("");
	agent_crashes();
	damage("1");
	agent_starts("");
	assert_not_logged("damaged");
	assert_generation(2);
}

static void start__whose_directory_cannot_be_read__says_why(void **state)
{
	(void)state;
	begin_with_two("");
	server_is_down();
	for (unsigned n = 1; n < 100 && !core_count_log("the state directory cannot be read");
		n++) {
		agent_crashes();
		core_make("");
		disk_fails(CALL_OPEN, n, true, EMFILE);
		config_start(core.config, false);
		disk_recovers();
	}
	assert_logged("<4>the state directory cannot be read config=web why=\"Too many open "
		      "files\" next_in_ms=3600000 generation=0");
	assert_int_equal(core_status().cause, KIND_CAUSE_HOST);
	pull();
	assert_generation(2);
}

static void start__whose_directory_could_not_be_read__notifies_again_when_it_can(void **state)
{
	static const char reload[] = "reload: {run: [/bin/true]}";

	(void)state;
	server_has("n: 1\n");
	agent_starts(reload);
	world.reload_hangs = true;
	pull_of("n: 2\n");
	server_is_down();
	for (unsigned n = 1; n < 100 && !core_count_log("the state directory cannot be read");
		n++) {
		agent_crashes();
		core_make(reload);
		disk_fails(CALL_OPEN, n, true, EMFILE);
		config_start(core.config, false);
		disk_recovers();
	}
	assert_logged("the state directory cannot be read");
	world.reload_hangs = false;
	assert_int_equal(world.reloads, 1);
	pull();
	assert_int_equal(core.config->decisions.ledger->notified, 2);
	assert_int_equal(world.reloads, 2);
}

static void start__whose_place_cannot_be_used__says_why(void **state)
{
	char path[SCRATCH_PATH + 64];

	(void)state;
	core_path(path, "out");
	assert_int_equal(rmdir(path), 0);
	scratch_write(core.dir, "out", "a file", 6);
	server_is_down();
	core_make("");
	config_start(core.config, false);
	assert_logged("<4>cannot publish here: trying again at every pull config=web why=");
	assert_int_equal(core_status().cause, KIND_CAUSE_HOST);
	assert_false(core.config->current.started);
}

static void pin__whose_bytes_are_lost__is_dropped_with_its_maker(void **state)
{
	(void)state;
	begin_with_two("");
	operator_pins(0);
	agent_crashes();
	damage("2");
	server_is_down();
	machine_boots();
	agent_starts("");
	assert_line("<3>the pinned version is not in the state directory: the pin is dropped "
		    "config=web by=ann");
	assert_generation(1);
}

static void pin__of_an_older_agent__names_its_bytes_from_then_on(void **state)
{
	char text[4096], path[SCRATCH_PATH + 64];

	(void)state;
	begin_with_two("");
	operator_pins(HOUR);
	core.config->decisions.ledger->pin.sha256[0] = '\0';
	decisions_save(core.config);
	server_is_down();
	agent_restarts();
	assert_string_equal(core_status().pin->sha256, core.config->current.version.sha256);
	assert_string_equal(core_status().pin->by, "ann");
	assert_string_equal(core_status().pin->reason, "release day");
	assert_int_equal(core_status().pin->until_ms, world.wall_ms + HOUR);
	core_path(path, "state/web");
	assert_true(scratch_read(path, "ledger.json", text, sizeof(text), NULL));
	assert_non_null(strstr(text, core.config->current.version.sha256)); /* also on the disk */
}

static void pin__that_names_its_bytes__is_not_written_again(void **state)
{
	struct stat before, after;
	char path[SCRATCH_PATH + 64];

	(void)state;
	begin_with_two("");
	operator_pins(0);
	server_is_down();
	core_path(path, "state/web/ledger.json");
	assert_int_equal(stat(path, &before), 0);
	agent_restarts();
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
}

static void dry_run__starts_from_nothing(void **state)
{
	(void)state;
	begin_with_two("");
	agent_crashes();
	core_make("");
	core.env.dry_run = true;
	config_start(core.config, false);
	assert_generation(0);
	assert_null(core.config->current.store);
	core.env.dry_run = false;
}

static void overrides__that_ended_while_it_was_down__are_no_work_of_the_start(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	operator_overrides("n", "7", 10 * SECOND);
	agent_crashes();
	world.now_ms += MINUTE;
	world.wall_ms += MINUTE;
	server_is_down();
	agent_starts("");
	assert_shows("n: 7\n");
	assert_generation(2);
	world_advance(1);
	assert_shows("n: 1\n");
	assert_generation(3);
	assert_line("<6>an override has expired config=web");
}

static void start__of_a_version_of_ten_minutes_ago__leaves_it_to_the_kernel(void **state)
{
	static const struct {
		int64_t age_ms;
		bool syncs;
	} cases[] = {{10 * MINUTE - 1, true}, {10 * MINUTE, false}, {10 * MINUTE + 1, false}};

	(void)state;
	begin_with_two("");
	server_is_down();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		agent_crashes();
		state_file_is_of("web", 2, world.wall_ms - cases[i].age_ms);
		world.disk.held = true;
		agent_starts("");
		assert_int_equal(world.disk.first != NULL, cases[i].syncs);
		world.disk.held = false;
		world_turn();
	}
}

static void start__without_a_snapshot__knows_no_confirmation(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("snapshot: false");
	world_advance(10 * SECOND);
	server_is_down();
	agent_restarts();
	assert_int_equal(core.config->status.confirmed_ms, 0);
	assert_int_equal(core_status().confirmed_ms, 0);
	assert_int_equal(core_status().age_ms, 10 * SECOND); /* since the pull */
}

static void version__that_is_shown_after_the_start__is_the_workers(void **state)
{
	(void)state;
	begin_with_two("");
	agent_restarts();
	disk_fails(CALL_RENAME, 2, false, EIO);
	pull_of("n: 3\n");
	disk_recovers();
	assert_int_equal(core.config->current.saved_generation, 3);
	server_is_down();
	world.disk.held = true;
	pull();
	assert_int_equal(core.config->step.decision.action, ACTION_SHOW);
	assert_true(core.config->step.publishing);
	world.disk.held = false;
	world_turn();
	assert_shows("n: 3\n");
}

static void state__from_a_backup__takes_no_newer_file_back(void **state)
{
	char newest[SCRATCH_PATH + 64];

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	pull_of("n: 2\n");
	assert_generation(2);
	agent_crashes();
	core_path(newest, "state/web/00000000000000000002");
	assert_int_equal(unlink(newest), 0);
	server_is_down();
	agent_starts("");
	assert_logged(
		"the state directory is older than what readers were shown: the server is asked "
		"before an older version is shown");
	assert_shows("n: 2\n");
	server_recovers();
	pull();
	assert_shows("n: 2\n");
	assert_generation(3); /* readers have seen 2 */
}

static void state__of_a_snapshot_from_a_backup__takes_no_newer_one_back(void **state)
{
	char newest[SCRATCH_PATH + 64];

	(void)state;
	core.place = "snapshot: true";
	server_has("n: 1\n");
	agent_starts("");
	pull_of("n: 2\n");
	agent_crashes();
	core_path(newest, "state/web/00000000000000000002");
	assert_int_equal(unlink(newest), 0);
	server_is_down();
	agent_starts("");
	assert_int_equal(image_generation(core.config->current.image), 2);
	server_recovers();
	pull();
	assert_generation(3);
}

/* Begins with two versions and no snapshot, and loses the newest state file. */
static void begin_with_a_backup_without_a_snapshot(void)
{
	char newest[SCRATCH_PATH + 64];

	server_has("n: 1\n");
	agent_starts("snapshot: false");
	pull_of("n: 2\n");
	agent_crashes();
	core_path(newest, "state/web/00000000000000000002");
	assert_int_equal(unlink(newest), 0);
	server_is_down();
}

static void state__from_a_backup__without_a_snapshot__takes_no_newer_file_back(void **state)
{
	(void)state;
	scratch_need_memory();
	begin_with_a_backup_without_a_snapshot();
	agent_starts("snapshot: false");
	assert_logged(
		"the state directory is older than what readers were shown: the server is asked "
		"before an older version is shown");
	assert_shows("n: 2\n");
	agent_restarts(); /* the mark stays as it was until the server has answered */
	assert_shows("n: 2\n");
	server_recovers();
	pull();
	assert_shows("n: 2\n");
	assert_generation(3);
}

static void state__from_a_backup__is_no_reason_to_keep_what_the_server_has_not(void **state)
{
	(void)state;
	scratch_need_memory();
	begin_with_a_backup_without_a_snapshot();
	agent_starts("snapshot: false");
	server_recovers();
	pull_of("n: 1\n");
	assert_shows("n: 1\n");
	forget_log();
	server_is_down();
	agent_restarts();
	assert_shows("n: 1\n");
	assert_not_logged("readers were shown");
}

static void state__from_a_backup__with_a_snapshot_from_now_on__takes_no_newer_file_back(
	void **state)
{
	(void)state;
	scratch_need_memory();
	begin_with_a_backup_without_a_snapshot();
	agent_starts("");
	assert_shows("n: 2\n");
	server_recovers();
	pull();
	assert_generation(3);
}

static void publication__that_fails__is_not_marked_as_shown(void **state)
{
	(void)state;
	scratch_need_memory();
	server_has("n: 1\n");
	agent_starts("snapshot: false");
	disk_fails(CALL_RENAME, 2, true, EIO); /* the state file is there, the file is not */
	pull_of("n: 2\n");
	disk_recovers();
	assert_int_equal(shown_read(&world.sys, core.env.runtime_dir, "web", NULL), 1);
	server_is_down();
	agent_restarts();
	assert_int_equal(shown_read(&world.sys, core.env.runtime_dir, "web", NULL), 2);
}

static void state__whose_newest_is_damaged__takes_no_newer_file_back(void **state)
{
	(void)state;
	begin_with_two("");
	pull_of("n: 3\n");
	agent_crashes();
	damage("3");
	server_is_down();
	agent_starts("");
	assert_logged("the state file of what readers were shown is damaged: the server is asked "
		      "before an older version is shown");
	assert_shows("n: 3\n");
	server_recovers();
	pull();
	assert_shows("n: 3\n");
	assert_generation(4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CORE_TEST(state__from_a_backup__takes_no_newer_file_back),
		CORE_TEST(state__of_a_snapshot_from_a_backup__takes_no_newer_one_back),
		CORE_TEST(state__from_a_backup__without_a_snapshot__takes_no_newer_file_back),
		CORE_TEST(state__from_a_backup__is_no_reason_to_keep_what_the_server_has_not),
		CORE_TEST(
			state__from_a_backup__with_a_snapshot_from_now_on__takes_no_newer_file_back),
		CORE_TEST(publication__that_fails__is_not_marked_as_shown),
		CORE_TEST(state__whose_newest_is_damaged__takes_no_newer_file_back),
		CORE_TEST(start__without_a_stored_version__publishes_nothing),
		CORE_TEST(start__with_damaged_state_files__shows_the_newest_that_verifies),
		CORE_TEST(start__with_nothing_but_damaged_files__waits_for_the_server),
		CORE_TEST(start__while_the_disk_fails__waits_and_keeps_the_newest),
		CORE_TEST(start__on_a_disk_that_goes_on_failing__says_what_is_forgotten),
		CORE_TEST_DISK(start__of_a_version_written_a_moment_ago__brings_it_to_the_disk),
		CORE_TEST(start__when_the_file_is_right_already__does_not_touch_it),
		CORE_TEST(start__with_other_layers_than_were_stored__publishes_nothing_of_it),
		CORE_TEST(start__pinned__when_nothing_stored_fits__takes_what_the_server_has),
		CORE_TEST(start__pinned_at_an_older_version__shows_that_one),
		CORE_TEST(
			start__pinned_at_an_older_version__with_a_disk_that_fails__keeps_its_number),
		CORE_TEST_DISK(
			start__pinned_while_a_rollback_waits_for_the_disk__takes_a_new_number),
		CORE_TEST(start__pinned__with_an_unreadable_file_between__finds_the_pinned_one),
		CORE_TEST(start__with_an_unusable_place__says_so_while_the_server_is_down_too),
		CORE_TEST(start__with_an_unusable_place__is_tried_again_at_each_run),
		CORE_TEST(start__whose_disk_fails__is_finished_by_the_next_run),
		CORE_TEST(start__after_a_crash_during_a_probe__probes_again),
		CORE_TEST(start__after_a_crash_during_a_reload__notifies_again),
		CORE_TEST(start__with_a_harmful_version__finishes_its_rollback),
		CORE_TEST(start__after_an_operators_rollback__needs_no_probe),
		CORE_TEST(start__after_a_probes_rollback__needs_no_probe),
		CORE_TEST(start__with_once__pulls_at_once_and_notifies_nobody),
		CORE_TEST(start__keeps_the_age_of_the_snapshot),
		CORE_TEST(start__of_a_large_version__is_validated_on_the_thread),
		CORE_TEST(start__in_every_phase_of_a_crash__shows_old_or_new_whole),
		CORE_TEST(start__pinned_by_an_older_agent__keeps_the_newest),
		CORE_TEST(start__pinned__with_newer_versions_of_overrides__finds_the_pinned_bytes),
		CORE_TEST(start__not_possible_when_a_new_version_comes__publishes_nothing_before),
		CORE_TEST(start__without_a_descriptor_at_any_call__is_finished_by_a_run),
		CORE_TEST(start__after_a_boot__does_not_know_the_age),
		CORE_TEST(
			start__not_possible_until_the_pull_has_ended__keeps_the_operators_verdict),
		CORE_TEST(start__pinned__between_others__shows_the_pinned_one),
		CORE_TEST(start__pinned__with_a_damaged_file_before_the_pinned_one__finds_it),
		CORE_TEST(start__pinned__with_nothing_stored__drops_the_pin),
		CORE_TEST(start__pinned__on_a_disk_that_goes_on_failing__drops_the_pin_in_the_end),
		CORE_TEST(start__without_descriptors_for_the_pinned_version__keeps_the_pin),
		CORE_TEST(start__has_the_age_of_the_last_confirmation_not_of_the_pull),
		CORE_TEST(start__is_logged_with_version_and_file),
		CORE_TEST(start__at_the_moment_of_the_last_confirmation__knows_it),
		CORE_TEST(start__with_damaged_files__says_how_many),
		CORE_TEST(start__does_not_read_what_it_does_not_need),
		CORE_TEST(start__whose_directory_cannot_be_read__says_why),
		CORE_TEST(start__whose_directory_could_not_be_read__notifies_again_when_it_can),
		CORE_TEST(start__whose_place_cannot_be_used__says_why),
		CORE_TEST(pin__whose_bytes_are_lost__is_dropped_with_its_maker),
		CORE_TEST(pin__of_an_older_agent__names_its_bytes_from_then_on),
		CORE_TEST(pin__that_names_its_bytes__is_not_written_again),
		CORE_TEST(dry_run__starts_from_nothing),
		CORE_TEST(overrides__that_ended_while_it_was_down__are_no_work_of_the_start),
		CORE_TEST_DISK(start__of_a_version_of_ten_minutes_ago__leaves_it_to_the_kernel),
		CORE_TEST(start__without_a_snapshot__knows_no_confirmation),
		CORE_TEST_DISK(version__that_is_shown_after_the_start__is_the_workers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The last phase of a step: commit, show, record; on the worker where a disk may block. */
#include "config/inspect.h"
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

/* Megabytes that go back to the system hold the loop. */
static void publication__by_the_worker__is_freed_by_it(void **state)
{
	struct worker_job *job;

	(void)state;
	begin("");
	world.disk.held = true;
	pull_of("n: 2\n");
	job = world_run_job(&world.disk);
	assert_null(core.config->step.candidate->body.data);
	assert_null(core.config->step.candidate->image);
	world_end_job(&world.disk, job);
	assert_shows("n: 2\n");
}

/* A pull that has ended meanwhile uses parts of it. */
static void publication__by_the_worker__of_bytes_that_are_held__leaves_them(void **state)
{
	struct candidate *held;
	struct worker_job *job;

	(void)state;
	begin("");
	world.disk.held = true;
	pull_of("n: 2\n");
	held = latest_hold_bytes(core.config);
	job = world_run_job(&world.disk);
	world_end_job(&world.disk, job);
	assert_shows("n: 2\n");
	assert_memory_equal(held->body.data, "n: 2\n", 5);
	candidate_free(held);
}

static void publication__by_the_worker__that_is_freed__is_in_the_store(void **state)
{
	struct worker_job *job;

	(void)state;
	begin("");
	world.disk.held = true;
	pull_of("n: 2\n");
	job = world_run_job(&world.disk);
	assert_null(latest_hold_bytes(core.config));
	assert_int_equal(latest_version(core.config)->generation, 2);
	world_end_job(&world.disk, job);
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

static void publication__whose_snapshot_fails__confirms_nothing_to_readers(void **state)
{
	uint64_t confirmed_ms;

	(void)state;
	begin("");
	confirmed_ms = image_confirmed_ms(core.config->current.image);
	assert_int_not_equal(confirmed_ms, 0);
	world_advance(MINUTE);
	snapshot_is_blocked();
	pull_of("n: 2\n");
	assert_outcome(CONFIG_FAILED);
	assert_int_equal(image_confirmed_ms(core.config->current.image), confirmed_ms);
	snapshot_is_free();
	pull();
	assert_generation(2);
	assert_int_equal(image_confirmed_ms(core.config->current.image), world.now_ms);
}

static int fsyncs;

static int fail_first_fsync(int fd)
{
	(void)fd;
	if (fsyncs++)
		return 0;
	errno = EIO;
	return -1;
}

static void sync__of_a_state_file_that_fails__leaves_the_ledger_its_own(void **state)
{
	(void)state;
	begin("");
	operator_pins(0);
	world.sys.fsync = fail_first_fsync;
	fsyncs = 0;
	syncing_ask(core.config, SYNCING_STATE | SYNCING_LEDGER);
	world_turn();
	assert_logged("the state file is not on the disk: a power cut may lose it");
	assert_int_equal(fsyncs, 3); /* the ledger, and its directory */
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

/* The directory with this name, of the file or of the snapshot, cannot be brought to the disk. */
static struct {
	const char *name;
	bool fails;
	unsigned spared; /* that many more succeed */
	unsigned failed, synced;
} bad_dir;

static int fsync_but_of_bad_dir(int fd)
{
	struct stat st, bad;
	char path[SCRATCH_PATH + 64];

	core_path(path, bad_dir.name);
	if (fstat(fd, &st) || stat(path, &bad) || st.st_ino != bad.st_ino)
		return 0;
	if (bad_dir.spared) {
		bad_dir.spared--;
		return 0;
	}
	bad_dir.failed += bad_dir.fails;
	bad_dir.synced += !bad_dir.fails;
	errno = EIO;
	return bad_dir.fails ? -1 : 0;
}

static void assert_is_tried_again(const char *place)
{
	struct buffer out;

	bad_dir.name = place;
	bad_dir.fails = true;
	world.sys.fsync = fsync_but_of_bad_dir;
	pull_of("n: 2\n");
	assert_logged("published, but a power cut may bring the old version back");
	forget_log();
	for (unsigned n = 1; n < 4; n++) {
		bad_dir.failed = 0;
		pull();
		assert_int_equal(bad_dir.failed, 1);
	}
	assert_int_equal(core_read_log()[0], '\0');
	buffer_init(&out, 16384);
	assert_int_equal(explain_config(core.config, AUDIENCE_OPERATOR, &out), 0);
	assert_non_null(strstr(out.data, "what is published is not known to be on the disk"));
	buffer_fini(&out);
	bad_dir.fails = false;
	bad_dir.synced = 0;
	pull();
	assert_int_equal(bad_dir.synced, 1);
	assert_int_equal(core_count_log("what was published is on the disk now"), 1);
	pull();
	assert_int_equal(bad_dir.synced, 1); /* it is there now */
	assert_generation(2);
}

static void directory__of_a_file__that_failed__is_tried_again_by_each_run(void **state)
{
	(void)state;
	begin("snapshot: false");
	assert_is_tried_again("out");
}

static void directory__of_a_snapshot__that_failed__is_tried_again_by_each_run(void **state)
{
	(void)state;
	begin("");
	assert_is_tried_again("run");
}

static void directory__of_a_set__that_failed__is_tried_again_by_each_run(void **state)
{
	char place[SCRATCH_PATH + 32];

	(void)state;
	snprintf(place, sizeof(place), "dir: %s/out", core.dir);
	core.place = place;
	core.from = "[{server: main, path: /web.yaml, as: web.yaml}]";
	server_has("n: 1\n");
	agent_starts("");
	bad_dir.spared = 1; /* before the flip: without that there is none */
	assert_is_tried_again("out");
}

static void directory__above_a_new_one__that_failed__is_tried_again_by_each_run(void **state)
{
	char place[SCRATCH_PATH + 32], made[SCRATCH_PATH + 64];

	(void)state;
	snprintf(place, sizeof(place), "file: %s/out/new/web.yaml", core.dir);
	core.place = place;
	server_has("n: 1\n");
	agent_starts("snapshot: false");
	core_path(made, "out/new");
	scratch_close(made); /* the next publication makes it again */
	assert_is_tried_again("out");
}

static void directory__that_failed__does_not_keep_the_state_file_from_the_disk(void **state)
{
	(void)state;
	begin("snapshot: false");
	bad_dir.name = "out";
	bad_dir.fails = true;
	world.sys.fsync = fsync_but_of_bad_dir;
	pull_of("n: 2\n");
	world.disk.held = true;
	operator_pins(0);
	operator_unpins(); /* asked for while the first is under way */
	world.disk.held = false;
	world_turn();
	assert_int_equal(core.config->current.to_sync & ~(unsigned)SYNCING_PLACES, 0);
	assert_null(core.config->current.syncing);
}

static void start__that_may_be_lost_by_a_power_cut__is_said(void **state)
{
	char path[SCRATCH_PATH + 64];

	(void)state;
	begin("durability: strict");
	for (unsigned n = 1; n < 20 && !core_count_log("a power cut may bring"); n++) {
		agent_crashes();
		core_path(path, "out/web.yaml");
		unlink(path);
		core_make("durability: strict");
		disk_fails(CALL_FSYNC, n, false, EIO);
		config_start(core.config, true);
		world_turn();
		disk_recovers();
	}
	assert_logged("started from the last known good");
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

static void publication__that_fails_when_it_was_saved__is_said_of_nothing_else(void **state)
{
	(void)state;
	begin("");
	disk_fails(CALL_RENAME, 2, true, ENOSPC); /* all but the state file */
	pull_of("n: 2\n");
	assert_int_equal(core.config->current.saved_generation, 2);
	assert_logged("could not publish");
	assert_not_logged("cannot save rejections, pins and overrides"); /* there are none */
}

static void publication__that_failed__is_a_problem_of_this_host_until_it_is_done(void **state)
{
	(void)state;
	begin("");
	disk_fails(CALL_WRITE, 1, true, ENOSPC);
	pull_of("n: 2\n");
	assert_int_equal(core_status().cause, KIND_CAUSE_HOST);
	disk_recovers();
	world.disk.held = true;
	pull();
	assert_true(core.config->step.publishing);
	assert_non_null(core_status().last_error);
	assert_int_equal(core_status().cause, KIND_CAUSE_HOST);
	world.disk.held = false;
	world_turn();
	assert_shows("n: 2\n");
	assert_int_equal(core_status().cause, KIND_CAUSE_NONE);
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
	syncing_ask(core.config, SYNCING_STATE);
	world.disk.held = false;
	world_turn();
	world.disk.held = true;
	syncing_ask(core.config, SYNCING_STATE);
	world.disk.held = false;
	world_turn();
	assert_not_logged("is not on the disk");
}

/* ---- to the letter ---- */

static void publication__is_logged_with_version_size_file_and_origin(void **state)
{
	(void)state;
	begin("");
	assert_line("<6>published config=web generation=1 version=de80e4db bytes=5 "
		    "file=%s/out/web.yaml cause=start",
		core.dir);
	operator_overrides("m", "22", HOUR);
	assert_line("<6>published config=web generation=2 version=de80e4db bytes=11 "
		    "file=%s/out/web.yaml origin=\"override of m by ann for 1h: a try\"",
		core.dir);
	world_advance(SECOND);
	pull_of("n: 3\n");
	assert_int_equal(core_status().published_ms, world.wall_ms);
}

static void publication__up_to_the_bound__is_the_loops(void **state)
{
	static char text[(1u << 19) + 2];

	(void)state;
	begin("type: bytes, snapshot: false");
	world.disk.held = true;
	memset(text, 'x', sizeof(text));
	text[1u << 19] = '\0'; /* the document, and the text for the file */
	pull_of(text);
	assert_false(core.config->step.publishing);
	assert_generation(2);
	text[1u << 19] = 'x';
	text[(1u << 19) + 1] = '\0';
	pull_of(text);
	assert_true(core.config->step.publishing);
	world.disk.held = false;
	world_turn();
	assert_generation(3);
}

static void saved_version__that_could_not_be_shown_at_the_start__is_said(void **state)
{
	(void)state;
	begin("");
	agent_crashes();
	snapshot_is_blocked();
	server_is_down();
	agent_starts("");
	assert_logged("<4>the last known good could not be published config=web why=");
	assert_not_logged("could not publish: keeping the current version");
	snapshot_is_free();
}

static void heal__leaves_what_failed_to_the_next_tick(void **state)
{
	(void)state;
	begin("");
	disk_fails(CALL_WRITE, 1, false, ENOSPC);
	pull_of("n: 2\n");
	assert_true(core.config->resting & 1u << ROW_LATEST_IS_PUBLISHED);
	somebody_writes("harm");
	assert_shows("n: 1\n");
	assert_true(core.config->resting & 1u << ROW_LATEST_IS_PUBLISHED);
	pull();
	assert_shows("n: 2\n");
	assert_int_equal(core.config->resting, 0);
}

static void application__is_told_which_keys_changed(void **state)
{
	(void)state;
	server_has("n: 1\nm: 1\n");
	agent_starts("reload: {run: [/bin/true]}");
	pull_of("n: 2\nm: 2\n");
	assert_int_equal(world.changed, 2);
	assert_false(world.changed_all);
	pull_of("n: 3\nm: 2\n");
	assert_int_equal(world.changed, 1);
	agent_reloads("reload: {run: [/bin/true]}, format: json");
	assert_generation(4);
	assert_true(world.changed_all); /* the same keys, in another form */
}

static void application__of_a_version_that_was_saved_before__is_told_all_the_same(void **state)
{
	(void)state;
	begin("reload: {run: [/bin/true]}");
	agent_crashes();
	core_make("reload: {run: [/bin/true]}, format: env");
	disk_fails(CALL_RENAME, 3, false, EIO); /* after the commit of the other form */
	config_start(core.config, true);
	disk_recovers();
	world.changed_all = false;
	server_is_down();
	world_turn();
	pull();
	assert_shows("N=1\n");
	assert_generation(2);
	assert_true(world.changed_all);
}

/* ---- on a disk ---- */

static const char *stuck;
static unsigned synced;

/* As the watchdog sees it a minute later. */
static int watched_fsync(int fd)
{
	(void)fd;
	if (!stuck)
		stuck = config_stuck(core.config, world.now_ms + MINUTE + 1);
	synced++;
	return 0;
}

static void disk__that_takes_long__is_seen_by_the_watchdog(void **state)
{
	(void)state;
	begin("durability: strict");
	world.sys.fsync = watched_fsync;
	stuck = NULL;
	pull_of("n: 2\n");
	assert_non_null(stuck);
	assert_string_equal(stuck, "the disk has not taken a version for a minute");
	assert_null(config_stuck(core.config, world.now_ms + MINUTE + 1));
}

static void sync__that_takes_long__is_seen_by_the_watchdog(void **state)
{
	(void)state;
	begin("");
	world.sys.fsync = watched_fsync;
	stuck = NULL;
	synced = 0;
	operator_pins(0);
	assert_true(synced > 0);
	assert_non_null(stuck);
	assert_null(config_stuck(core.config, world.now_ms + MINUTE + 1));
}

static void sync__asked_for_during_another__follows_it(void **state)
{
	struct worker_job *job;

	(void)state;
	begin("");
	world.sys.fsync = watched_fsync;
	world.disk.held = true;
	operator_pins(0);
	job = world_run_job(&world.disk);
	operator_pins(HOUR); /* after the first has read the ledger */
	synced = 0;
	world_end_job(&world.disk, job);
	assert_non_null(world.disk.first);
	world.disk.held = false;
	world_turn();
	assert_true(synced > 0);
	assert_null(world.disk.first);
	assert_false(config_at_disk(core.config));
}

static void sync__that_fails__says_why(void **state)
{
	static const char line[] =
		"<4>the state file is not on the disk%s: a power cut may lose it "
		"config=web why=\"%s\"";

	(void)state;
	begin("");
	world.disk.held = true;
	operator_pins(0);
	disk_fails(CALL_OPEN, 1, true, EMFILE);
	world.disk.held = false;
	world_turn();
	disk_recovers();
	assert_line(line, " yet", "Too many open files");
	world.disk.held = true;
	syncing_ask(core.config, SYNCING_STATE);
	disk_fails(CALL_FSYNC, 1, true, EIO);
	world.disk.held = false;
	world_turn();
	disk_recovers();
	assert_line(line, "", "Input/output error");
}

static unsigned state_files(void)
{
	char path[SCRATCH_PATH + 64];

	core_path(path, "state/web");
	return scratch_count(path, "000000000000");
}

/* Publishes so many more generations, by overrides. */
static void publish_more(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		char value[16];

		snprintf(value, sizeof(value), "%u", i);
		operator_overrides("m", value, HOUR);
		assert_done();
	}
}

static void older_versions__are_removed_when_the_new_one_is_on_the_disk(void **state)
{
	(void)state;
	begin("history: 2");
	publish_more(8);
	assert_generation(9);
	assert_int_equal(state_files(), 2);
	server_is_down();
	agent_restarts();
	assert_generation(9);
	assert_int_equal(state_files(), 2);
}

static void current_version__beside_newer_ones_that_are_not_shown__is_kept(void **state)
{
	(void)state;
	begin("history: 1");
	save_only("n: 2\n");
	syncing_ask(core.config, SYNCING_STATE);
	world_turn();
	somebody_writes("harm");
	assert_shows("n: 1\n");
	assert_generation(1);
}

/* What is proven, and what the servers have, can be gone back to whatever the history. */
static void spared__are_the_proven_and_the_servers_version(void)
{
	begin("history: 2, probe: {run: [/bin/true], for: 10s}");
	world_end_probe(NULL);
	world_turn();
	pull_of("n: 2\n");
	operator_rolls_back(1);
	assert_done();
	assert_int_equal(latest_generation(core.config), 2);
	publish_more(6);
	pull_forced();
	assert_shows("n: 2\nm: 5\n");
	assert_int_equal(world.unchanged, 1); /* its bytes were not sent again */
	world_end_probe("it answers 500");    /* the overrides are suspected first */
	world_turn();
	assert_shows("n: 2\n");
	world_end_probe("it answers 500");
	world_turn();
	assert_shows("n: 1\n");
}

static void spared__on_a_disk__are_the_proven_and_the_servers_version(void **state)
{
	(void)state;
	spared__are_the_proven_and_the_servers_version();
}

static void spared__in_memory__are_the_proven_and_the_servers_version(void **state)
{
	(void)state;
	spared__are_the_proven_and_the_servers_version();
}

/* What an operator does with one version costs no older one its place. */
static void history__of_overrides_and_rollbacks__has_the_versions_before(void)
{
	begin("history: 3");
	pull_of("n: 2\n");
	pull_of("n: 3\n");
	publish_more(8);
	assert_int_equal(state_files(), 3);
	operator_rolls_back(2);
	assert_done();
	operator_rolls_back(1);
	assert_done();
	assert_shows("n: 1\nm: 7\n");
	assert_int_equal(state_files(), 3);
}

static void history__on_a_disk__has_the_versions_before(void **state)
{
	(void)state;
	history__of_overrides_and_rollbacks__has_the_versions_before();
}

static void history__in_memory__has_the_versions_before(void **state)
{
	(void)state;
	history__of_overrides_and_rollbacks__has_the_versions_before();
}

#define IN_TURN "the server shows two versions in turn"

/* Caches, or addresses, that do not agree. */
static void history__of_versions_in_turn__has_the_one_before_them(void)
{
	begin("history: 3");
	for (int i = 0; i < 6; i++) {
		pull_of("n: 2\n");
		assert_shows("n: 2\n");
		pull_of("n: 3\n");
		assert_shows("n: 3\n");
		assert_int_equal(state_files(), 3);
	}
	operator_rolls_back(1);
	assert_done();
	assert_shows("n: 1\n");
}

static void history__on_a_disk__of_versions_in_turn(void **state)
{
	(void)state;
	history__of_versions_in_turn__has_the_one_before_them();
}

static void history__in_memory__of_versions_in_turn(void **state)
{
	(void)state;
	history__of_versions_in_turn__has_the_one_before_them();
}

static void versions__that_come_in_turn__are_said_at_the_third_time_and_rarely(void **state)
{
	(void)state;
	begin("");
	pull_of("n: 2\n");
	pull_of("n: 1\n"); /* taken back, */
	pull_of("n: 2\n"); /* and mended */
	assert_not_logged(IN_TURN);
	pull_of("n: 1\n");
	assert_int_equal(core_count_log(IN_TURN), 1);
	for (int i = 0; i < 100; i++) {
		pull_of("n: 2\n");
		pull_of("n: 1\n");
	}
	assert_int_equal(core_count_log(IN_TURN), 4);
	pull_of("n: 5\n");
	pull_of("n: 6\n");
	pull_of("n: 5\n");
	assert_int_equal(core_count_log(IN_TURN), 4);
}

static void versions__that_an_operator_publishes_in_turn__are_not_said(void **state)
{
	(void)state;
	begin("");
	pull_of("n: 2\n");
	for (uint64_t i = 1; i < 8; i++) {
		operator_rolls_back(i);
		assert_done();
	}
	assert_not_logged(IN_TURN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CORE_TEST_DISK(publication__to_a_disk__is_the_workers),
		CORE_TEST_DISK(publication__by_the_worker__is_freed_by_it),
		CORE_TEST_DISK(publication__by_the_worker__of_bytes_that_are_held__leaves_them),
		CORE_TEST_DISK(publication__by_the_worker__that_is_freed__is_in_the_store),
		CORE_TEST(publication__in_memory__is_the_loops),
		CORE_TEST(publication__that_is_large__is_the_workers),
		CORE_TEST_DISK(retired__while_the_disk_has_a_version__finishes_it),
		CORE_TEST_DISK(stopped__while_the_disk_has_a_version__is_as_after_a_crash),
		CORE_TEST_DISK(pull__while_the_disk_has_a_version__waits_for_nothing),
		CORE_TEST_DISK(file_touched__while_the_disk_has_a_version__is_healed_after_it),
		CORE_TEST(state_file__in_memory__is_never_synced),
		CORE_TEST_DISK(ledger__is_brought_to_the_disk_by_the_worker),
		CORE_TEST(publication__whose_snapshot_fails__confirms_nothing_to_readers),
		CORE_TEST_DISK(sync__that_fails__is_said),
		CORE_TEST_DISK(sync__of_a_state_file_that_fails__leaves_the_ledger_its_own),
		CORE_TEST_DISK(directory__of_a_file__that_failed__is_tried_again_by_each_run),
		CORE_TEST_DISK(directory__of_a_snapshot__that_failed__is_tried_again_by_each_run),
		CORE_TEST_DISK(directory__of_a_set__that_failed__is_tried_again_by_each_run),
		CORE_TEST_DISK(directory__above_a_new_one__that_failed__is_tried_again_by_each_run),
		CORE_TEST_DISK(directory__that_failed__does_not_keep_the_state_file_from_the_disk),
		CORE_TEST_DISK(sync__without_a_descriptor__is_made_after_the_next_pull),
		CORE_TEST_DISK(start__that_may_be_lost_by_a_power_cut__is_said),
		CORE_TEST_DISK(strict__writes_the_ledger_to_the_disk_at_once),
		CORE_TEST_DISK(publication__that_may_be_lost_by_a_power_cut__is_said),
		CORE_TEST(disk__that_is_full_at_any_call__delays_the_version),
		CORE_TEST(disk__that_breaks_at_any_call__delays_the_version),
		CORE_TEST(rename__that_fails__in_an_operators_change__leaves_nothing),
		CORE_TEST(empty_document__is_published),
		CORE_TEST_DISK(state_file_and_ledger__are_brought_to_the_disk_together),
		CORE_TEST(saved_version__that_fails_before_it_touches_anything__is_no_drift),
		CORE_TEST(publication__that_fails_when_it_was_saved__is_said_of_nothing_else),
		CORE_TEST(publication__that_the_disk_fails__is_a_problem_of_this_host),
		CORE_TEST_DISK(
			publication__that_failed__is_a_problem_of_this_host_until_it_is_done),
		CORE_TEST(pin__while_a_saved_version_is_validated__holds_it),
		CORE_TEST(publication__is_logged_with_version_size_file_and_origin),
		CORE_TEST(publication__up_to_the_bound__is_the_loops),
		CORE_TEST(saved_version__that_could_not_be_shown_at_the_start__is_said),
		CORE_TEST(heal__leaves_what_failed_to_the_next_tick),
		CORE_TEST(application__is_told_which_keys_changed),
		CORE_TEST_DISK(history__on_a_disk__of_versions_in_turn),
		CORE_TEST(history__in_memory__of_versions_in_turn),
		CORE_TEST(versions__that_come_in_turn__are_said_at_the_third_time_and_rarely),
		CORE_TEST(versions__that_an_operator_publishes_in_turn__are_not_said),
		CORE_TEST(application__of_a_version_that_was_saved_before__is_told_all_the_same),
		CORE_TEST_DISK(disk__that_takes_long__is_seen_by_the_watchdog),
		CORE_TEST_DISK(sync__that_takes_long__is_seen_by_the_watchdog),
		CORE_TEST_DISK(sync__asked_for_during_another__follows_it),
		CORE_TEST_DISK(sync__that_fails__says_why),
		CORE_TEST_DISK(older_versions__are_removed_when_the_new_one_is_on_the_disk),
		CORE_TEST_DISK(current_version__beside_newer_ones_that_are_not_shown__is_kept),
		CORE_TEST_DISK(spared__on_a_disk__are_the_proven_and_the_servers_version),
		CORE_TEST_DISK(history__on_a_disk__has_the_versions_before),
		CORE_TEST(history__in_memory__has_the_versions_before),
		CORE_TEST(spared__in_memory__are_the_proven_and_the_servers_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

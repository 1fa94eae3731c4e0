/* What readers see: file, set of files and snapshot, healed when somebody else changes them. */
#include "tests/unit/fixture/core.h"

#define PROBE "probe: {run: [/bin/true], for: 10s}"

static void begin(const char *extra)
{
	server_has("n: 1\n");
	agent_starts(extra);
	assert_shows("n: 1\n");
}

static void set_of_files(char place[SCRATCH_PATH + 32])
{
	snprintf(place, SCRATCH_PATH + 32, "dir: %s/out/set", core.dir);
	core.place = place;
	core.from = "[{server: main, path: /web.yaml, as: a.yaml}, {server: main, path: "
		    "/b.yaml, as: b.yaml, optional: true}]";
}

static bool set_has(const char *name, const char *text)
{
	char path[SCRATCH_PATH + 64], found[256];

	core_path(path, "out/set");
	return scratch_read(path, name, found, sizeof(found), NULL) && strcmp(found, text) == 0;
}

static void probe_says(const char *why)
{
	world_end_probe(why);
	world_turn();
}

/* Somebody writes over a state file. */
static void lose(const char *generation)
{
	char path[SCRATCH_PATH + 64], name[32];

	core_path(path, "state/web");
	snprintf(name, sizeof(name), "0000000000000000000%s", generation);
	scratch_write(path, name, "harm", 4);
}

/* ---- drift ---- */

static void file__that_is_removed_replaced_or_of_another_mode__is_restored(void **state)
{
	char path[SCRATCH_PATH + 64], other[SCRATCH_PATH + 64];
	struct stat st;

	(void)state;
	begin("");
	core_path(path, "out/web.yaml");
	core_path(other, "out/other");
	assert_int_equal(unlink(path), 0);
	inotify_says("out/web.yaml", "removed");
	assert_shows("n: 1\n");
	world_advance(2 * SECOND);
	assert_int_equal(chmod(path, 0666), 0);
	inotify_says("out/web.yaml", "its mode or owner changed");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	world_advance(2 * SECOND);
	core_path(path, "out");
	scratch_write(path, "other", "harm", 4);
	core_path(path, "out/web.yaml");
	assert_int_equal(rename(other, path), 0);
	inotify_says("out/web.yaml", "replaced");
	assert_shows("n: 1\n");
	assert_int_equal(core_status().restored, 3);
	assert_generation(1);
	assert_false(core_status().drifted);
}

static void file__that_cannot_be_restored__is_not_counted_as_restored(void **state)
{
	char path[SCRATCH_PATH + 64];

	(void)state;
	begin("");
	core_path(path, "out/web.yaml");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0755), 0);
	for (int i = 0; i < 5; i++) {
		inotify_says("out/web.yaml", "replaced");
		world_advance(2 * SECOND);
	}
	assert_int_equal(core_status().restored, 0);
	assert_int_equal(rmdir(path), 0);
	inotify_says("out/web.yaml", "removed");
	assert_shows("n: 1\n");
	assert_int_equal(core_status().restored, 1);
}

static void file__that_is_touched_by_the_agent_alone__is_left(void **state)
{
	(void)state;
	begin("");
	inotify_says("out/web.yaml", "replaced");
	assert_int_equal(core_status().restored, 0);
}

static void file__that_is_touched_at_each_moment__is_restored_once_a_second(void **state)
{
	(void)state;
	begin("");
	for (int i = 0; i < 50; i++) {
		somebody_writes("mine");
		world_advance(100);
	}
	world_advance(SECOND);
	assert_in_range(core_status().restored, 4, 7);
	assert_shows("n: 1\n");
	assert_in_range(core_count_log("restoring it"), 1, 2);
}

static void file__without_inotify__is_restored_at_the_interval(void **state)
{
	(void)state;
	begin("");
	somebody_writes_quietly("harm");
	pull();
	assert_outcome(CONFIG_UNCHANGED);
	assert_shows("n: 1\n");
	assert_logged("seen at the interval");
}

static void file__without_inotify__is_restored_while_the_server_is_down(void **state)
{
	char path[SCRATCH_PATH + 64];

	(void)state;
	begin("");
	server_is_down();
	somebody_writes_quietly("harm");
	core_path(path, "run/web.snap");
	assert_int_equal(unlink(path), 0);
	pull();
	assert_outcome(CONFIG_FAILED);
	assert_error("connection refused");
	assert_shows("n: 1\n");
	assert_int_equal(access(path, R_OK), 0);
	assert_logged("seen at the interval");
	assert_int_equal(world.renewed, 2); /* of the file and the snapshot */
}

static void file__touched_while_a_pull_fails__is_restored(void **state)
{
	(void)state;
	begin("");
	world.holds = true;
	server_is_down();
	pull();
	somebody_writes("harm");
	world.holds = false;
	world_turn();
	assert_outcome(CONFIG_FAILED);
	assert_shows("n: 1\n");
}

static void file__touched_during_a_step__is_restored_with_it(void **state)
{
	(void)state;
	begin("check: [/bin/true, '{path}']");
	world.programs_hang = true;
	pull_of("n: 2\n");
	somebody_writes("harm");
	assert_shows("harm");
	world.check_says = "no";
	world.programs_hang = false;
	world_turn();
	assert_shows("n: 1\n");
}

static void report__says_it_once_and_leaves_the_file(void **state)
{
	(void)state;
	begin("drift: report");
	somebody_writes("mine");
	somebody_writes("mine too");
	pull();
	assert_shows("mine too");
	assert_true(core_status().drifted);
	assert_int_equal(core_count_log("leaving it as it is"), 1);
	pull_of("n: 2\n");
	assert_shows("n: 2\n");
	assert_false(core_status().drifted);
}

static void leave__says_nothing(void **state)
{
	(void)state;
	begin("drift: leave");
	somebody_writes("mine");
	pull();
	assert_shows("mine");
	assert_true(core_status().drifted);
	assert_not_logged("changed by somebody else");
	assert_int_equal(core_status().restored, 0);
}

static void snapshot__that_is_touched__is_restored(void **state)
{
	char path[SCRATCH_PATH + 64], found[8192];

	(void)state;
	begin("");
	core_path(path, "run/web.snap");
	assert_int_equal(unlink(path), 0);
	inotify_says("run/web.snap", "removed");
	core_path(path, "run");
	assert_true(scratch_read(path, "web.snap", found, sizeof(found), NULL));
	world_advance(2 * SECOND);
	scratch_write(path, "web.snap", "harm", 4);
	inotify_says("run/web.snap", "replaced");
	assert_true(scratch_read(path, "web.snap", found, sizeof(found), NULL));
	assert_string_not_equal(found, "harm");
	assert_int_equal(core_status().restored, 2);
}

static void file__touched_before_anything_is_published__is_left(void **state)
{
	(void)state;
	server_has(NULL);
	agent_starts("drift: report");
	somebody_writes("mine");
	assert_shows("mine");
	assert_int_equal(core_status().restored, 0);
	assert_not_logged("changed by somebody else");
	assert_false(core_status().drifted);
}

static void set_of_files__is_published_restored_and_started_from(void **state)
{
	char place[SCRATCH_PATH + 32], path[SCRATCH_PATH + 64];

	(void)state;
	set_of_files(place);
	server_has("n: 1\n");
	agent_starts("");
	assert_true(set_has("a.yaml", "n: 1\n"));
	world_put("/b.yaml", "b: 1\n");
	pull();
	assert_true(set_has("b.yaml", "b: 1\n"));
	core_path(path, "out/set/a.yaml");
	assert_int_equal(unlink(path), 0);
	inotify_says("out/set/", "removed");
	assert_true(set_has("a.yaml", "n: 1\n"));
	assert_generation(2);
	server_is_down();
	agent_restarts();
	assert_true(set_has("b.yaml", "b: 1\n"));
	agent_crashes();
	core_path(path, "out/set");
	scratch_close(path);
	agent_starts("");
	assert_true(set_has("a.yaml", "n: 1\n"));
	operator_rolls_back(1);
	assert_done();
	assert_false(set_has("b.yaml", "b: 1\n"));
}

static void file_in_the_root_directory__is_watched_there(void **state)
{
	(void)state;
	core.place = "file: /pullet-unit-web.yaml";
	server_has(NULL);
	agent_starts("");
	assert_string_equal(world.entries[0].path, "//pullet-unit-web.yaml");
}

/* ---- what cannot be healed ---- */

static void heal__whose_stored_bytes_are_lost__pulls_everything_anew(void **state)
{
	char path[SCRATCH_PATH + 64];

	(void)state;
	begin("");
	core_path(path, "state/web/00000000000000000001");
	assert_int_equal(unlink(path), 0);
	somebody_writes("harm");
	assert_error("cannot be read from the state directory");
	assert_logged("cannot repair the published file");
	pull();
	pull();
	assert_shows("n: 1\n");
	assert_generation(2);
	assert_state("ok");
}

static void heal__that_fails__rests_until_the_next_tick(void **state)
{
	(void)state;
	begin("");
	disk_fails(CALL_RENAME, 1, true, EIO);
	somebody_writes("harm");
	assert_shows("harm");
	assert_error("Input/output error");
	disk_recovers();
	pull();
	assert_shows("n: 1\n");
}

static void run__whose_places_cannot_be_opened__fails(void **state)
{
	char path[SCRATCH_PATH + 64];

	(void)state;
	core_path(path, "out");
	assert_int_equal(rmdir(path), 0);
	scratch_write(core.dir, "out", "a file", 6);
	server_has("n: 1\n");
	agent_starts("");
	assert_outcome(CONFIG_FAILED);
	assert_logged("cannot publish here: trying again at every pull");
	assert_generation(0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	pull();
	assert_shows("n: 1\n");
}

static void run__whose_image_cannot_be_opened__watches_both_when_it_can(void **state)
{
	char path[SCRATCH_PATH + 64];

	(void)state;
	core_path(path, "run");
	assert_int_equal(rmdir(path), 0);
	scratch_write(core.dir, "run", "a file", 6);
	server_has("n: 1\n");
	agent_starts("");
	assert_outcome(CONFIG_FAILED);
	assert_null(world.entries[0].entry);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	pull();
	assert_shows("n: 1\n");
	assert_non_null(strstr(world.entries[0].path, "/out/web.yaml"));
	assert_non_null(strstr(world.entries[1].path, "/run/web.snap"));
}

/* ---- a publication that fails half-way ---- */

static void publication__that_fails_after_the_file__puts_the_old_file_back(void **state)
{
	(void)state;
	begin("");
	snapshot_is_blocked(); /* comes after the text */
	pull_of("n: 2\n");
	assert_outcome(CONFIG_FAILED);
	assert_generation(1);
	assert_shows("n: 1\n");
	snapshot_is_free();
	server_is_down();
	pull();
	assert_shows("n: 2\n"); /* the saved one is shown whole */
	assert_generation(2);
	assert_error("connection refused");
}

static void publication__that_fails_after_the_file__is_put_back_whatever_drift_says(void **state)
{
	(void)state;
	begin("drift: leave");
	snapshot_is_blocked();
	pull_of("n: 2\n");
	assert_shows("n: 1\n");
	assert_int_equal(core_status().restored, 0);
	assert_logged("restoring the files of the current version");
}

static void publication__that_fails_between_two_repairs__is_put_back_at_once(void **state)
{
	(void)state;
	begin("");
	somebody_writes("harm");
	assert_shows("n: 1\n");
	somebody_writes("more harm"); /* within a second: left for the rest of it */
	assert_shows("more harm");
	snapshot_is_blocked();
	pull_of("n: 2\n");
	assert_outcome(CONFIG_FAILED);
	assert_shows("n: 1\n");
	assert_logged("restoring the files of the current version");
}

static void operators_change__that_fails_after_the_file__is_healed(void **state)
{
	(void)state;
	begin("");
	pull_of("n: 2\n");
	snapshot_is_blocked();
	operator_rolls_back(1);
	assert_failed("could not publish");
	assert_shows("n: 2\n");
	snapshot_is_free();
	world_advance(2 * SECOND);
	pull();
	assert_shows("n: 2\n");
	assert_generation(2);
}

/* ---- where a probe's rollback goes ---- */

static void older__is_the_proven_one_however_old_it_is(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("history: 2, probe: {run: [/bin/true], for: 10s}");
	world_end_probe(NULL);
	pull_of("n: 2\n");
	pull_of("n: 3\n");
	pull_of("n: 4\n");
	world_end_probe("bad");
	world_turn();
	assert_shows("n: 1\n");
	assert_origin("probe: generation 4 was bad, back to 1");
}

static void older__without_a_proven_one__is_the_newest_before(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("probe: {run: [/bin/true], for: 10s}");
	pull_of("n: 2\n");
	pull_of("n: 3\n");
	world_end_probe("bad");
	world_turn();
	assert_shows("n: 2\n");
}

static void older__with_the_bytes_that_failed__is_passed_over(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts(PROBE);
	pull_of("n: 2\n");
	operator_overrides("n", "7", HOUR);
	operator_drops("n");
	assert_generation(4);
	probe_says("bad");
	assert_shows("n: 1\n"); /* 2 and 3 are what failed */
	assert_origin("probe: generation 4 was bad, back to 1");
	pull();
	assert_rejected(REJECTED_BY_PROBE, "bad");
	agent_restarts();
	assert_shows("n: 1\n");
}

static void older__that_was_proven_once_and_failed_since__is_passed_over(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts(PROBE);
	probe_says(NULL);
	pull_of("n: 2\n");
	pull_of("n: 1\n");
	assert_true(world.probe.running);
	probe_says("bad");
	assert_shows("n: 2\n");
	assert_origin("probe: generation 3 was bad, back to 2");
}

static void older__that_an_operator_rolled_back__is_passed_over(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts(PROBE);
	pull_of("n: 2\n");
	probe_says(NULL); /* proven, and worse for somebody */
	operator_rolls_back(1);
	pull_of("n: 4\n");
	probe_says("bad");
	assert_shows("n: 1\n");
	assert_origin("probe: generation 4 was bad, back to 3");
}

static void older__that_cannot_be_read__is_passed_over(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts(PROBE);
	pull_of("n: 2\n");
	probe_says(NULL); /* proven, and lost */
	pull_of("n: 3\n");
	pull_of("n: 4\n");
	lose("2");
	lose("3");
	probe_says("bad");
	assert_shows("n: 1\n");
	assert_origin("probe: generation 4 was bad, back to 1");
}

static void retired__and_touched__is_left(void **state)
{
	(void)state;
	begin("");
	assert_true(config_retire(core.config, NULL, NULL));
	core.config->current.drift_cause = "written";
	current_look(core.config);
	assert_int_equal(core.config->current.place, PLACE_AS_PUBLISHED);
}

static void without_inotify__nothing_is_watched(void **state)
{
	(void)state;
	server_has("n: 1\n");
	core_make("");
	core.env.drift = NULL;
	config_start(core.config, true);
	world_turn();
	assert_null(world.entries[0].entry);
	somebody_writes_quietly("harm");
	pull();
	assert_shows("n: 1\n");
}

static void snapshot_alone__is_watched(void **state)
{
	(void)state;
	core.place = "snapshot: true";
	server_has("n: 1\n");
	agent_starts("");
	assert_non_null(strstr(world.entries[0].path, "/run/web.snap"));
	assert_generation(1);
}

static void settings_of_an_older_agent__are_no_difference(void **state)
{
	(void)state;
	begin("");
	core.config->current.version.settings[0] = '\0';
	assert_false(current_settings_differ(core.config));
}

static void settings__with_another_name_of_a_layer__have_another_digest(void **state)
{
	static const char *const froms[] = {"[{server: main, path: /web.yaml, as: a.yaml}]",
		"[{server: main, path: /web.yaml, as: b.yaml}]"};
	char place[SCRATCH_PATH + 32], seen[2][VERSION_SETTINGS];

	(void)state;
	snprintf(place, sizeof(place), "dir: %s/out/set", core.dir);
	core.place = place;
	for (size_t i = 0; i < 2; i++) {
		core.from = froms[i];
		core_make("");
		snprintf(seen[i], sizeof(seen[i]), "%s", core.config->current.settings);
		assert_string_not_equal(seen[i], "");
		agent_crashes();
	}
	assert_string_not_equal(seen[0], seen[1]);
}

/* ---- to the letter ---- */

static void repair__is_logged_with_its_cause(void **state)
{
	(void)state;
	begin("");
	somebody_writes("harm");
	assert_line("<4>the file was changed by somebody else: restoring it config=web "
		    "file=%s/out/web.yaml cause=written",
		core.dir);
	forget_log();
	for (int i = 0; i < 3; i++) {
		world_advance(2 * SECOND);
		somebody_writes("harm");
	}
	assert_not_logged("restoring it"); /* once a minute */
	assert_not_logged("published");
	world_advance(MINUTE);
	somebody_writes("harm");
	assert_line("<4>the file was changed by somebody else: restoring it config=web "
		    "file=%s/out/web.yaml cause=written repeated=3",
		core.dir);
	assert_int_equal(core_status().restored, 5);
	pull_of("n: 2\n");
	assert_logged("<6>published config=web generation=2");
}

static void report__is_logged_with_its_cause(void **state)
{
	(void)state;
	begin("drift: report");
	somebody_writes("mine");
	assert_line("<4>the file was changed by somebody else: leaving it as it is config=web "
		    "file=%s/out/web.yaml cause=written",
		core.dir);
}

static void files_of_a_failed_publication__are_restored_with_a_line_of_their_own(void **state)
{
	(void)state;
	begin("");
	snapshot_is_blocked();
	pull_of("n: 2\n");
	assert_line("<4>restoring the files of the current version config=web "
		    "file=%s/out/web.yaml cause=\"a publication failed\"",
		core.dir);
	assert_int_equal(core_status().restored, 0);
	snapshot_is_free();
}

static void file__touched_again_within_a_second__is_restored_at_its_end(void **state)
{
	(void)state;
	begin("");
	somebody_writes("harm");
	assert_shows("n: 1\n");
	world_advance(500);
	somebody_writes("harm");
	assert_shows("harm");
	world_advance(499);
	assert_shows("harm");
	world_advance(1);
	assert_shows("n: 1\n");
	world_advance(999);
	somebody_writes("harm");
	assert_shows("harm");
	world_advance(1);
	assert_shows("n: 1\n");
	world_advance(1000);
	somebody_writes("harm");
	assert_shows("n: 1\n"); /* the second is over */
	assert_int_equal(core_status().restored, 4);
}

/* ---- what is watched ---- */

static void watched__are_file_and_snapshot(void **state)
{
	char path[SCRATCH_PATH + 64];

	(void)state;
	begin("");
	core_path(path, "out/web.yaml");
	assert_string_equal(world.entries[0].path, path);
	core_path(path, "run/web.snap");
	assert_string_equal(world.entries[1].path, path);
	assert_non_null(strstr(world.entries[2].path, "bytes of "));
	assert_null(world.entries[3].entry);
	pull(); /* each once */
	assert_null(world.entries[3].entry);
	agent_reloads("snapshot: false");
	assert_non_null(strstr(world.entries[0].path, "/out/web.yaml"));
	assert_non_null(strstr(world.entries[1].path, "bytes of "));
	assert_null(world.entries[2].entry);
	agent_reloads("drift: leave");
	assert_null(world.entries[0].entry);
}

/* The file's bytes are watched until they change, and from the next look or publication on. */
static void watched__bytes__are_listened_to_once(void **state)
{
	struct file_watch_entry *bytes;

	(void)state;
	begin("drift: report");
	bytes = world.entries[2].entry;
	assert_non_null(bytes);
	somebody_writes_quietly("harm");
	bytes->noticed(bytes->arg, "written");
	world_turn();
	assert_true(core_status().drifted);
	assert_null(world.entries[2].entry);
	pull();
	assert_null(world.entries[2].entry); /* it is not put right */
	server_has("n: 2\n");
	pull();
	assert_shows("n: 2\n");
	bytes = world.entries[2].entry;
	assert_non_null(bytes);
	bytes->noticed(bytes->arg, "written"); /* with the same bytes */
	world_turn();
	assert_false(core_status().drifted);
	assert_non_null(world.entries[2].entry);
}

static void watched__bytes__that_change__are_put_back(void **state)
{
	struct file_watch_entry *bytes;

	(void)state;
	begin("");
	bytes = world.entries[2].entry;
	somebody_writes_quietly("");
	bytes->noticed(bytes->arg, "written");
	world_turn();
	assert_shows("n: 1\n");
	assert_int_equal(core_status().restored, 1);
	assert_non_null(world.entries[2].entry);
}

/* Of a file that is removed the kernel says so twice; the first says what happened. */
static void watched__bytes__that_are_gone__are_told_by_their_name(void **state)
{
	struct file_watch_entry *bytes;

	(void)state;
	begin("");
	bytes = world.entries[2].entry;
	somebody_writes_quietly("harm");
	bytes->noticed(bytes->arg, "changed");
	world_turn();
	assert_shows("harm");
	assert_null(world.entries[2].entry);
	inotify_says("out/web.yaml", "replaced");
	assert_shows("n: 1\n");
	assert_non_null(world.entries[2].entry);
}

static void watched__of_a_set__is_its_directory(void **state)
{
	char place[SCRATCH_PATH + 32], path[SCRATCH_PATH + 64];

	(void)state;
	set_of_files(place);
	server_has("n: 1\n");
	agent_starts("");
	core_path(path, "out/set/");
	assert_string_equal(world.entries[0].path, path);
	assert_null(world.entries[1].entry); /* nor are the bytes of its files */
}

static void page_of_the_snapshot__that_is_removed__is_made_again_by_a_run(void **state)
{
	char path[SCRATCH_PATH + 64];

	(void)state;
	begin("");
	core_path(path, "run/web.gen");
	assert_int_equal(unlink(path), 0);
	pull();
	assert_int_equal(access(path, F_OK), 0);
	assert_outcome(CONFIG_UNCHANGED);
}

static void page_of_the_snapshot__that_cannot_be_made_again__fails_the_run(void **state)
{
	char path[SCRATCH_PATH + 64];

	(void)state;
	begin("");
	core_path(path, "run/web.gen");
	assert_int_equal(unlink(path), 0);
	disk_fails(CALL_OPEN, 1, true, EMFILE);
	pull();
	disk_recovers();
	assert_outcome(CONFIG_FAILED);
	assert_logged("<4>cannot repair the published file config=web why=");
	assert_int_equal(core_status().cause, KIND_CAUSE_HOST);
	pull();
	assert_int_equal(access(path, F_OK), 0);
	assert_state("ok");
}

/* ---- what a version is composed with ---- */

static void settings__that_make_another_output__have_another_digest(void **state)
{
	static const char
		one[] = "[{server: main, path: /web.yaml}]",
		two[] = "[{server: main, path: /web.yaml}, {server: main, path: /b.yaml}]";
	static const struct {
		const char *from, *extra;
		bool same; /* as the first */
	} cases[] = {
		{one, "", false},
		{one, "mask: [n], guard: {require: [n]}, history: 3", true},
		{one, "format: json", false},
		{one, "format: env", false},
		{one, "type: bytes", false},
		{one, "format: {run: [/bin/cat]}", false},
		{one, "format: {run: [/bin/cat, -n]}", false},
		{one, "format: {run: [/bin/cat, -m]}", false},
		{one, "format: {run: [/bin/cat, -n, -n]}", false},
		{two, "", false},
	};
	char seen[sizeof(cases) / sizeof(cases[0])][VERSION_SETTINGS];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		core.from = cases[i].from;
		core_make(cases[i].extra);
		snprintf(seen[i], sizeof(seen[i]), "%s", core.config->current.settings);
		assert_int_equal(strlen(seen[i]), VERSION_SETTINGS - 1);
		for (size_t k = 0; k < i; k++)
			assert_int_equal(strcmp(seen[i], seen[k]) == 0,
				cases[i].same || (cases[k].same && i == k));
		agent_crashes();
	}
}

static void settings__before_anything_is_published__do_not_differ(void **state)
{
	(void)state;
	core_make("");
	assert_false(current_settings_differ(core.config));
	agent_crashes();
	begin("");
	assert_false(current_settings_differ(core.config));
	core.config->current.settings[0] ^= 1;
	assert_true(current_settings_differ(core.config));
	core.config->current.settings[0] ^= 1;
}

static void version__without_what_a_program_makes__differs(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("format: {run: [/bin/cat]}");
	assert_false(current_settings_differ(core.config));
	core.config->current.version.product_len = 0;
	assert_true(current_settings_differ(core.config));
	config_settle(core.config); /* so it is made again */
	world_turn();
	assert_int_equal(world.checked, 2);
	assert_generation(2);
	assert_shows("made: n: 1\n");
	assert_false(current_settings_differ(core.config));
}

static void version__that_is_forgotten__is_asked_for_as_a_whole(void **state)
{
	const struct version *v;

	(void)state;
	core.from = "[{server: main, path: /web.yaml}, {server: main, path: /b.yaml}]";
	world_put("/b.yaml", "b: 1\n");
	server_has("n: 1\n");
	agent_starts("");
	v = &core.config->current.version;
	current_forget(core.config);
	for (size_t i = 0; i < 2; i++) {
		assert_string_equal(v->parts[i].etag, "");
		assert_string_equal(v->parts[i].last_modified, "");
	}
	assert_string_equal(v->sha256, "");
	pull();
	assert_int_equal(world.unchanged, 0);
	assert_generation(2);
}

static void older__is_looked_for_once_a_tick(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts(PROBE);
	probe_says(NULL);
	assert_int_equal(current_find_older(core.config), 0);
	pull_of("n: 2\n");
	assert_int_equal(current_find_older(core.config), 1);
	current_read_older(core.config); /* nothing is harmful */
	assert_int_equal(core.config->current.older, 0);
	assert_false(core.config->current.older_known);
	operator_pins(0);
	probe_says("bad");
	assert_int_equal(core.config->current.older, 1);
	lose("1");
	current_read_older(core.config);
	assert_int_equal(core.config->current.older, 1);
	pull();
	assert_int_equal(core.config->current.older, 0);
	assert_shows("n: 2\n");
}

static void heal__puts_back_what_is_current_whatever_was_decided_since(void **state)
{
	(void)state;
	begin("");
	operator_overrides("n", "7", 10 * SECOND);
	operator_pins(0);
	disk_fails(CALL_WRITE, 2, true, ENOSPC); /* the ledger is written, nothing else is */
	world_advance(11 * SECOND);
	disk_recovers();
	assert_true(core.config->resting & 1u << ROW_OTHER_OVERRIDES);
	assert_shows("n: 7\n");
	somebody_writes("harm");
	assert_shows("n: 7\n");
	assert_generation(2);
	pull();
	assert_shows("n: 1\n");
	assert_generation(3);
}

static void heal__that_failed__is_a_repair_when_it_is_tried_again(void **state)
{
	(void)state;
	begin("");
	disk_fails(CALL_RENAME, 1, true, EIO);
	somebody_writes("harm");
	disk_recovers();
	assert_shows("harm");
	forget_log();
	world_advance(MINUTE);
	pull();
	assert_shows("n: 1\n");
	assert_logged("<4>the file was changed by somebody else: restoring it config=web file=");
	assert_not_logged("restoring the files of the current version"); /* nobody published */
}

static void heal__that_failed__is_tried_again_when_the_file_changes_again(void **state)
{
	(void)state;
	begin("");
	disk_fails(CALL_RENAME, 1, true, EIO);
	somebody_writes("harm");
	disk_recovers();
	world_advance(2 * SECOND);
	assert_shows("harm");
	somebody_writes("more");
	assert_shows("n: 1\n");
	disk_fails(CALL_RENAME, 1, true, EIO); /* and no more often than any repair */
	world_advance(2 * SECOND);
	somebody_writes("harm");
	disk_recovers();
	somebody_writes("more");
	assert_shows("more");
	world_advance(SECOND);
	assert_shows("n: 1\n");
}

static void failure_of_a_repair__ends_with_the_next_one(void **state)
{
	(void)state;
	begin("");
	disk_fails(CALL_RENAME, 1, true, EIO);
	somebody_writes("harm");
	disk_recovers();
	assert_state("failing");
	world_advance(2 * SECOND);
	somebody_writes("more");
	assert_shows("n: 1\n");
	assert_state("ok");
	assert_logged("recovered");
	server_is_down(); /* another failure, before or after, stays */
	pull();
	assert_state("failing");
	world_advance(2 * SECOND);
	disk_fails(CALL_RENAME, 1, true, EIO);
	somebody_writes("harm");
	disk_recovers();
	world_advance(2 * SECOND);
	somebody_writes("more");
	assert_shows("n: 1\n");
	assert_state("failing");
}

static void retired__within_a_second_of_a_repair__has_no_timer(void **state)
{
	struct wheel_timer *repair;

	(void)state;
	begin("");
	somebody_writes("harm");
	somebody_writes("harm");
	repair = &core.config->current.repairs->timer.timer;
	assert_int_equal(wheel_timer_state(repair), WHEEL_SCHEDULED);
	assert_true(config_retire(core.config, NULL, NULL));
	assert_int_not_equal(wheel_timer_state(repair), WHEEL_SCHEDULED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CORE_TEST(file__that_is_removed_replaced_or_of_another_mode__is_restored),
		CORE_TEST(file__that_is_touched_by_the_agent_alone__is_left),
		CORE_TEST(file__that_is_touched_at_each_moment__is_restored_once_a_second),
		CORE_TEST(file__that_cannot_be_restored__is_not_counted_as_restored),
		CORE_TEST(file__without_inotify__is_restored_at_the_interval),
		CORE_TEST(file__without_inotify__is_restored_while_the_server_is_down),
		CORE_TEST(file__touched_while_a_pull_fails__is_restored),
		CORE_TEST(file__touched_during_a_step__is_restored_with_it),
		CORE_TEST(report__says_it_once_and_leaves_the_file),
		CORE_TEST(leave__says_nothing),
		CORE_TEST(snapshot__that_is_touched__is_restored),
		CORE_TEST(set_of_files__is_published_restored_and_started_from),
		CORE_TEST(file_in_the_root_directory__is_watched_there),
		CORE_TEST(heal__whose_stored_bytes_are_lost__pulls_everything_anew),
		CORE_TEST(heal__that_fails__rests_until_the_next_tick),
		CORE_TEST(run__whose_places_cannot_be_opened__fails),
		CORE_TEST(run__whose_image_cannot_be_opened__watches_both_when_it_can),
		CORE_TEST(publication__that_fails_after_the_file__puts_the_old_file_back),
		CORE_TEST(publication__that_fails_after_the_file__is_put_back_whatever_drift_says),
		CORE_TEST(publication__that_fails_between_two_repairs__is_put_back_at_once),
		CORE_TEST(operators_change__that_fails_after_the_file__is_healed),
		CORE_TEST(older__is_the_proven_one_however_old_it_is),
		CORE_TEST(older__without_a_proven_one__is_the_newest_before),
		CORE_TEST(retired__and_touched__is_left),
		CORE_TEST(without_inotify__nothing_is_watched),
		CORE_TEST(snapshot_alone__is_watched),
		CORE_TEST(settings_of_an_older_agent__are_no_difference),
		CORE_TEST(older__with_the_bytes_that_failed__is_passed_over),
		CORE_TEST(older__that_was_proven_once_and_failed_since__is_passed_over),
		CORE_TEST(older__that_an_operator_rolled_back__is_passed_over),
		CORE_TEST(older__that_cannot_be_read__is_passed_over),
		CORE_TEST(file__touched_before_anything_is_published__is_left),
		CORE_TEST(settings__with_another_name_of_a_layer__have_another_digest),
		CORE_TEST(repair__is_logged_with_its_cause),
		CORE_TEST(report__is_logged_with_its_cause),
		CORE_TEST(files_of_a_failed_publication__are_restored_with_a_line_of_their_own),
		CORE_TEST(file__touched_again_within_a_second__is_restored_at_its_end),
		CORE_TEST(watched__are_file_and_snapshot),
		CORE_TEST(watched__bytes__are_listened_to_once),
		CORE_TEST(watched__bytes__that_change__are_put_back),
		CORE_TEST(watched__bytes__that_are_gone__are_told_by_their_name),
		CORE_TEST(watched__of_a_set__is_its_directory),
		CORE_TEST(page_of_the_snapshot__that_is_removed__is_made_again_by_a_run),
		CORE_TEST(page_of_the_snapshot__that_cannot_be_made_again__fails_the_run),
		CORE_TEST(settings__that_make_another_output__have_another_digest),
		CORE_TEST(settings__before_anything_is_published__do_not_differ),
		CORE_TEST(version__without_what_a_program_makes__differs),
		CORE_TEST(version__that_is_forgotten__is_asked_for_as_a_whole),
		CORE_TEST(older__is_looked_for_once_a_tick),
		CORE_TEST(heal__puts_back_what_is_current_whatever_was_decided_since),
		CORE_TEST(heal__that_failed__is_a_repair_when_it_is_tried_again),
		CORE_TEST(heal__that_failed__is_tried_again_when_the_file_changes_again),
		CORE_TEST(failure_of_a_repair__ends_with_the_next_one),
		CORE_TEST(retired__within_a_second_of_a_repair__has_no_timer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

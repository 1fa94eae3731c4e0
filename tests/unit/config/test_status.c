/* What the status says: state, age, what the server has, what is decided. */
#include "tests/unit/fixture/core.h"

#define page control_page /* the world has pages too */
#include "lib/page.h"
#undef page

static void state__follows_the_confirmations_of_the_server(void **state)
{
	(void)state;
	agent_starts("backoff_bound: 1, timeout: 10s");
	assert_state("waiting");
	assert_int_equal(core_status().age_ms, -1);
	server_has("n: 1\n");
	pull();
	assert_state("ok");
	server_is_down();
	pull();
	assert_state("failing");
	assert_true(core_status().failing_since_ms > 0);
	assert_not_logged("stale=true");
	world_advance(HOUR + 11 * SECOND);
	assert_state("stale");
	world_advance(2 * MINUTE);
	pull();
	assert_logged("stale=true");
	server_recovers();
	pull();
	assert_state("ok");
	assert_int_equal(core_status().failing_since_ms, 0);
}

static void stale__while_suspended__never_comes(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("backoff_bound: 1, timeout: 10s");
	operator_suspends(0);
	world_advance(100 * (uint64_t)HOUR);
	assert_state("ok");
	assert_true(config_stale_ms(core.config) == CONFIG_NEVER);
	assert_true(status_readers_stale_ms(core.config) == CONFIG_NEVER);
	server_is_down();
	operator_resumes();
	assert_state("failing"); /* the time of the suspension does not count */
	world_advance(HOUR + 11 * SECOND);
	assert_state("stale");
}

static void age__of_a_version_from_an_earlier_life__is_an_upper_bound(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	server_is_down();
	agent_crashes();
	world.wall_ms += HOUR;
	core_make("");
	scratch_close(core.settings->runtime_dir);
	assert_int_equal(mkdir(core.settings->runtime_dir, 0700), 0); /* the machine has booted */
	core.env.starting = true;
	config_start(core.config, true);
	assert_int_equal(core_status().age_ms, HOUR);
	world.wall_ms -=
		2 * HOUR; /* a clock that was set back: it is as old as this life at least */
	assert_int_equal(core_status().age_ms, 0);
	world_advance(5 * SECOND);
	assert_int_equal(core_status().age_ms, 5 * SECOND);
}

static void failing__while_the_clock_is_set__has_lasted_as_long_as_it_has(void **state)
{
	int64_t began_ms;

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	server_is_down();
	pull();
	began_ms = world.wall_ms;
	world_advance(MINUTE);
	world.wall_ms -= SECOND / 2; /* slewed */
	assert_int_equal(core_status().failing_since_ms, began_ms);
	world.wall_ms -= 2 * HOUR;
	assert_int_equal(core_status().failing_since_ms, world.wall_ms - MINUTE);
	world.wall_ms += 9 * HOUR;
	assert_int_equal(core_status().failing_since_ms, world.wall_ms - MINUTE);
}

static void rejected_version__is_named_with_its_reason(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("guard: {require: [n]}");
	assert_null(core_status().rejected);
	pull_of("m: 1\n");
	assert_rejected(REJECTED_BY_GUARD, "the required key");
	assert_false(core_status().held);
	assert_true(core_status().rejected_is_error);
	assert_int_equal(core_status().rejections, 1);
}

static void status__has_the_places_and_decisions(void **state)
{
	char path[SCRATCH_PATH + 64], snapshot[CONFIG_PATH], url[CONFIG_URL];

	(void)state;
	server_has("n: 1\n");
	agent_starts("reload: {run: [/bin/true]}");
	core_path(path, "run/web.snap");
	config_snapshot_path(core.config, snapshot);
	assert_string_equal(snapshot, path);
	config_url(core.config, url);
	assert_string_equal(url, "http://server/web.yaml");
	assert_true(core_status().has_notify);
	assert_null(core_status().pin);
	operator_pins(0);
	operator_overrides("n", "7", HOUR);
	assert_int_equal(core_status().override_count, 1);
	assert_string_equal(core_status().overrides[0].key, "n");
	assert_non_null(core_status().pin);
	assert_true(core_status().expires_ms == INT64_MAX);
}

static void status__without_a_snapshot__names_none(void **state)
{
	char snapshot[CONFIG_PATH];

	(void)state;
	server_has("n: 1\n");
	agent_starts("snapshot: false");
	config_snapshot_path(core.config, snapshot);
	assert_string_equal(snapshot, "");
	assert_false(core_status().has_notify);
}

static void version_that_is_being_published__is_not_rejected(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("check: [/bin/true, '{path}']");
	world.programs_hang = true;
	pull_of("n: 2\n");
	assert_not_rejected();
	assert_true(core_status().running);
	world.programs_hang = false;
	world_turn();
}

static void version_that_could_not_be_published__is_not_rejected(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	snapshot_is_blocked();
	pull_of("n: 2\n");
	assert_not_rejected(); /* no decision keeps it */
	assert_state("failing");
}

/* ---- each member ---- */

static void status__of_a_first_publication__has_each_member(void **state)
{
	struct config_status s;

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	s = core_status();
	assert_ptr_equal(s.settings, core.settings->configs[0]);
	assert_ptr_equal(s.version, &core.config->current.version);
	assert_ptr_equal(s.supervisor, &core.config->run.supervisor);
	assert_ptr_equal(s.server, &world.server);
	assert_string_equal(s.state, "ok");
	assert_string_equal(s.last_error, "");
	assert_int_equal(s.cause, KIND_CAUSE_NONE);
	assert_int_equal(s.last_error_ms, 0);
	assert_int_equal(s.failing_since_ms, 0);
	assert_int_equal(s.published_ms, world.wall_ms);
	assert_int_equal(s.confirmed_ms, world.wall_ms);
	assert_int_equal(s.age_ms, 0);
	assert_int_equal(s.next_pull_in_ms, HOUR);
	assert_int_equal(s.outcome, CONFIG_PUBLISHED);
	assert_false(s.running || s.waiting || s.held || s.drifted || s.rejected_is_error);
	assert_int_equal(s.rejections + s.restored + s.pushes + s.watched + s.watch_changes, 0);
	for (int i = 0; i < CHECK_COUNT; i++)
		assert_int_equal(s.rejections_by[i], 0);
	assert_null(s.rejected);
	assert_null(s.suspension);
	assert_string_equal(s.watch_error, "");
	assert_int_equal(s.override_count, 0);
}

/* A version that is bad is no failure of this host, also after one that was. */
static void status__of_a_rejection__has_no_cause(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	disk_fails(CALL_RENAME, 1, true, ENOSPC);
	pull_of("n: 2\n");
	assert_int_equal(core_status().cause, KIND_CAUSE_HOST);
	disk_recovers();
	for (int i = 0; i < 2; i++) {
		pull_of("n: [\n");
		assert_outcome(CONFIG_FAILED);
		assert_int_equal(core_status().cause, KIND_CAUSE_NONE);
	}
}

static void status__of_a_failure__has_when_it_began_and_when_it_was_seen_last(void **state)
{
	int64_t published_ms, began_ms;

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	published_ms = world.wall_ms;
	world_advance(5 * SECOND);
	server_is_down();
	pull();
	began_ms = world.wall_ms;
	world_advance(7 * SECOND);
	pull();
	assert_int_equal(core_status().failing_since_ms, began_ms);
	assert_int_equal(core_status().last_error_ms, began_ms + 7 * SECOND);
	assert_int_equal(core_status().published_ms, published_ms);
	assert_int_equal(core_status().confirmed_ms, published_ms);
	assert_int_equal(core_status().age_ms, 12 * SECOND);
	assert_int_equal(core_status().cause, KIND_CAUSE_UNREACHABLE);
	server_recovers();
	pull();
	assert_int_equal(core_status().last_error_ms, began_ms + 7 * SECOND); /* it was then */
	assert_int_equal(core_status().cause, KIND_CAUSE_NONE);
	assert_int_equal(core_status().confirmed_ms, world.wall_ms);
	assert_int_equal(core_status().published_ms, published_ms);
	world_advance(SECOND);
	server_is_down();
	pull();
	assert_int_equal(core_status().failing_since_ms, world.wall_ms);
}

static void status__before_anything_is_opened__knows_no_decisions(void **state)
{
	(void)state;
	core_make("");
	assert_null(core_status().pin);
	assert_null(core_status().suspension);
	assert_int_equal(core_status().override_count, 0);
	assert_int_equal(core_status().next_pull_in_ms, -1);
	assert_int_equal(core_status().age_ms, -1);
}

static void next_pull__that_is_overdue__is_in_no_time(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	assert_int_equal(core_status().next_pull_in_ms, HOUR);
	world.now_ms += HOUR - 1;
	assert_int_equal(core_status().next_pull_in_ms, 1);
	world.now_ms += 1;
	assert_int_equal(core_status().next_pull_in_ms, 0);
	world.now_ms += SECOND;
	assert_int_equal(core_status().next_pull_in_ms, 0);
}

static void pushes_and_rejections__are_counted(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("guard: {require: [n]}");
	message_comes(NULL);
	message_comes(NULL);
	assert_int_equal(core_status().pushes, 2);
	pull_of("n: [\n");
	pull_of("m: 1\n");
	pull_of("m: 2\n");
	assert_int_equal(core_status().rejections, 3);
	assert_int_equal(core_status().rejections_by[CHECK_GUARD], 2);
	assert_int_equal(core_status().rejections_by[CHECK_SYNTAX], 1);
	assert_ptr_equal(core_status().rejected, &core.config->latest.candidate->version);
	server_is_down();
	pull();
	assert_rejected(REJECTED_BY_GUARD, "the required key");
	assert_false(core_status().rejected_is_error); /* the error is another one */
}

/* ---- when it is stale ---- */

static void stale__begins_after_the_slowest_pull_and_its_limit(void **state)
{
	const uint64_t stale_ms = HOUR + 10 * SECOND;

	(void)state;
	server_has("n: 1\n");
	agent_starts("backoff_bound: 1, timeout: 10s");
	assert_int_equal(config_stale_ms(core.config), stale_ms);
	assert_int_equal(status_readers_stale_ms(core.config), stale_ms);
	world.now_ms += stale_ms;
	assert_state("ok");
	world.now_ms++;
	assert_state("stale");
}

static void stale__after_a_suspension__does_not_count_its_time(void **state)
{
	const uint64_t stale_ms = HOUR + 10 * SECOND;

	(void)state;
	server_has("n: 1\n");
	agent_starts("backoff_bound: 1, timeout: 10s");
	world_advance(5 * SECOND);
	operator_suspends(0);
	world_advance(100 * SECOND);
	server_is_down();
	operator_resumes();
	assert_int_equal(config_stale_ms(core.config), stale_ms + 105 * SECOND);
	server_recovers();
	pull(); /* confirmed after it */
	assert_int_equal(config_stale_ms(core.config), stale_ms);
	world_advance(SECOND);
	pull();
	assert_int_equal(config_stale_ms(core.config), stale_ms);
}

static void stale__when_nothing_was_confirmed_since_a_boot__counts_from_the_start(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("backoff_bound: 1, timeout: 10s");
	server_is_down();
	agent_crashes();
	world.now_ms = 1000;
	wheel_init(&world.loop.wheel, world.now_ms);
	agent_starts("backoff_bound: 1, timeout: 10s");
	assert_int_equal(core.config->status.confirmed_ms, 0);
	operator_suspends(0);
	world_advance(3 * SECOND);
	operator_resumes();
	assert_int_equal(config_stale_ms(core.config), HOUR + 13 * SECOND);
	world.now_ms = 1000 + HOUR + 13 * SECOND;
	assert_state("failing");
	world.now_ms++;
	assert_state("stale");
}

static void stale__by_a_signature__begins_when_it_expires(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("backoff_bound: 1, timeout: 10s");
	core.config->current.expires_ms = world.wall_ms + 5000;
	assert_state("ok");
	assert_int_equal(core_status().expires_ms, world.wall_ms + 5000);
	assert_int_equal(status_readers_stale_ms(core.config), 5000);
	core.config->current.expires_ms = world.wall_ms + 1;
	assert_state("ok");
	assert_int_equal(status_readers_stale_ms(core.config), 1);
	core.config->current.expires_ms = world.wall_ms;
	assert_state("stale");
	assert_int_equal(status_readers_stale_ms(core.config), 1);
	core.config->current.expires_ms =
		world.wall_ms + 2 * (int64_t)HOUR; /* the server is sooner */
	assert_int_equal(status_readers_stale_ms(core.config), HOUR + 10 * SECOND);
	core.config->current.expires_ms = INT64_MAX;
}

/* What readers of the snapshot are told. */
static struct control_page read_page(void)
{
	char path[SCRATCH_PATH + 64], bytes[PAGE_SIZE + 8];
	struct control_page page;

	core_path(path, "run");
	assert_true(scratch_read(path, "web.gen", bytes, sizeof(bytes), NULL));
	memcpy(&page, bytes, sizeof(page));
	return page;
}

static void snapshot__says_when_it_was_confirmed_and_becomes_stale(void **state)
{
	struct control_page page;

	(void)state;
	server_has("n: 1\n");
	agent_starts("backoff_bound: 1, timeout: 10s");
	page = read_page();
	assert_int_equal(page.confirmed_ms, world.now_ms);
	assert_int_equal(page.stale_ms, HOUR + 10 * SECOND);
	world_advance(20 * SECOND);
	operator_suspends(0);
	page = read_page();
	assert_int_equal(page.confirmed_ms, world.now_ms - 20 * SECOND);
	assert_true(page.stale_ms == CONFIG_NEVER);
	world_advance(SECOND);
	server_is_down();
	operator_resumes();
	page = read_page();
	assert_int_equal(page.confirmed_ms, world.now_ms - 21 * SECOND);
	assert_int_equal(page.stale_ms, HOUR + 31 * SECOND);
	server_recovers();
	pull();
	page = read_page();
	assert_int_equal(page.confirmed_ms, world.now_ms);
	assert_int_equal(page.stale_ms, HOUR + 10 * SECOND);
}

/* ---- while the last known good is validated ---- */

static char large[40000];

/* A life whose version is validated on a thread when the next one starts. */
static void begin_large(const char *place)
{
	core.env.check = &world.checks;
	core.place = place;
	memset(large, 'x', 30000);
	memcpy(large, "n: ", 3);
	large[29999] = '\n';
	server_has(large);
	agent_starts("");
	assert_generation(1);
	world_advance(MINUTE);
	agent_crashes();
}

static void start_held(void)
{
	core_make("");
	world.checks.held = true;
	config_start(core.config, true);
	assert_non_null(core.config->step.validating);
}

static void status__while_the_snapshot_is_validated__has_it_if_it_is_there(void **state)
{
	char path[SCRATCH_PATH + 64];

	(void)state;
	begin_large("snapshot: true");
	start_held();
	assert_int_equal(core_status().version->generation, 1);
	assert_ptr_equal(core_status().version, core.config->current.saved);
	assert_int_equal(core_status().published_ms, world.wall_ms - MINUTE);
	assert_int_equal(core_status().age_ms, MINUTE);
	assert_state("ok");
	world.checks.held = false;
	agent_crashes();
	core_path(path, "run/web.gen"); /* the machine has booted */
	assert_int_equal(unlink(path), 0);
	start_held();
	assert_int_equal(core_status().version->generation, 0);
	assert_int_equal(core_status().age_ms, -1);
	assert_state("waiting");
	world.checks.held = false;
	world_turn();
	assert_generation(1);
}

static void status__of_a_saved_version_that_could_not_be_shown__has_none(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	agent_crashes();
	snapshot_is_blocked();
	server_is_down();
	agent_starts("");
	assert_int_equal(core.config->current.saved_generation, 1);
	assert_int_equal(core_status().version->generation, 0);
	assert_state("waiting");
	snapshot_is_free();
}

static void status__while_a_saved_version_is_validated__has_the_current_one(void **state)
{
	(void)state;
	core.env.check = &world.checks;
	server_has("n: 1\n");
	agent_starts("");
	memset(large, 'x', 30000);
	memcpy(large, "n: ", 3);
	large[29999] = '\n';
	disk_fails(CALL_RENAME, 2, false, EIO);
	pull_of(large);
	disk_recovers();
	server_is_down();
	world.checks.held = true;
	pull();
	assert_int_equal(core.config->step.decision.action, ACTION_SHOW);
	assert_int_equal(core_status().version->generation, 1);
	assert_int_equal(core_status().published_ms, core.config->status.published_wall_ms);
	world.checks.held = false;
	world_turn();
	assert_int_equal(core_status().version->generation, 2);
}

/* ---- failures ---- */

static void failure__before_anything_is_published__does_not_speak_of_a_current_version(void **state)
{
	(void)state;
	core_make("");
	config_report_failure(core.config, "it broke: keeping the current version", "a reason");
	assert_line("<4>it broke: nothing is published yet config=web why=\"a reason\" "
		    "next_in_ms=3600000 generation=0");
	assert_error("a reason");
	config_report_failure(core.config, "it broke: keeping the current version", "");
	assert_error("it broke: nothing is published yet");
	config_report_failure(core.config, ": keeping the current version", "");
	assert_error(": nothing is published yet");
	config_report_failure(core.config, "keeping the current version", "");
	assert_string_equal(core_status().last_error, "keeping the current version");
	config_report_failure(core.config, "it broke: keeping the current version, or so", "");
	assert_error("it broke: nothing is published yet, or so");
	core.env.dry_run = true;
	config_report_failure(core.config, "it broke: keeping the current version", "");
	assert_error("it broke");
	core.env.dry_run = false;
}

static void failure__that_lasts__is_repeated_with_its_count(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	forget_log();
	server_is_down();
	for (int i = 0; i < 5; i++)
		pull();
	world_advance(MINUTE);
	pull();
	assert_line("<4>pull failed: keeping the current version config=web why=\"/web.yaml: "
		    "connection refused\" next_in_ms=%llu generation=1",
		(unsigned long long)HOUR);
	assert_logged("repeated=4\n");
	assert_int_equal(core_count_log("connection refused"), 2);
	forget_log();
	server_recovers();
	pull();
	pull();
	assert_int_equal(core_count_log("<6>recovered config=web\n"), 1);
	server_is_down();
	pull(); /* told anew */
	assert_int_equal(core_count_log("connection refused"), 1);
	assert_not_logged("repeated");
}

static void failure__that_another_config_repeats__counts_on(void **state)
{
	static struct log_limit all;

	(void)state;
	memset(&all, 0, sizeof(all));
	core.env.goes_on = &all;
	server_has("n: 1\n");
	agent_starts("");
	server_is_down();
	pull(); /* its own: all say it once */
	assert_int_equal(all.used, 0);
	world_advance(MINUTE);
	pull();
	assert_int_equal(all.used, 1);
	pull(); /* within the minute */
	world_advance(MINUTE);
	all.lines[0].last_ms = world.now_ms; /* another config says it */
	forget_log();
	pull();
	assert_not_logged("connection refused");
	world_advance(MINUTE);
	pull();
	assert_int_equal(core_count_log("connection refused"), 1);
	assert_logged("repeated=2\n");
	core.env.goes_on = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CORE_TEST(state__follows_the_confirmations_of_the_server),
		CORE_TEST(stale__while_suspended__never_comes),
		CORE_TEST(age__of_a_version_from_an_earlier_life__is_an_upper_bound),
		CORE_TEST(failing__while_the_clock_is_set__has_lasted_as_long_as_it_has),
		CORE_TEST(rejected_version__is_named_with_its_reason),
		CORE_TEST(status__has_the_places_and_decisions),
		CORE_TEST(status__without_a_snapshot__names_none),
		CORE_TEST(version_that_is_being_published__is_not_rejected),
		CORE_TEST(version_that_could_not_be_published__is_not_rejected),
		CORE_TEST(status__of_a_first_publication__has_each_member),
		CORE_TEST(status__of_a_rejection__has_no_cause),
		CORE_TEST(status__of_a_failure__has_when_it_began_and_when_it_was_seen_last),
		CORE_TEST(status__before_anything_is_opened__knows_no_decisions),
		CORE_TEST(next_pull__that_is_overdue__is_in_no_time),
		CORE_TEST(pushes_and_rejections__are_counted),
		CORE_TEST(stale__begins_after_the_slowest_pull_and_its_limit),
		CORE_TEST(stale__after_a_suspension__does_not_count_its_time),
		CORE_TEST(stale__when_nothing_was_confirmed_since_a_boot__counts_from_the_start),
		CORE_TEST(stale__by_a_signature__begins_when_it_expires),
		CORE_TEST(snapshot__says_when_it_was_confirmed_and_becomes_stale),
		CORE_TEST(status__while_the_snapshot_is_validated__has_it_if_it_is_there),
		CORE_TEST(status__of_a_saved_version_that_could_not_be_shown__has_none),
		CORE_TEST(status__while_a_saved_version_is_validated__has_the_current_one),
		CORE_TEST(
			failure__before_anything_is_published__does_not_speak_of_a_current_version),
		CORE_TEST(failure__that_lasts__is_repeated_with_its_count),
		CORE_TEST(failure__that_another_config_repeats__counts_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

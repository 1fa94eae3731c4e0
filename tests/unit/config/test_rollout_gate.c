/* Whether this host takes a new version yet: the rollout document, read after the version. */
#include "tests/unit/fixture/core.h"

#include "verify/rollout.h"

#define ROLLOUT "rollout: {server: main, path: /rollout.yaml}"

static void begin(void)
{
	server_has("n: 1\n");
	agent_starts(ROLLOUT);
	assert_shows("n: 1\n");
}

static void rollout_says(const char *text)
{
	world_put("/rollout.yaml", text);
}

static void rollout_fails(enum pull_outcome outcome, enum kind_cause cause, const char *why)
{
	page_fails("/rollout.yaml", outcome, cause, why);
}

/* The rollout's server is to blame, for that. */
static void assert_blamed(enum kind_cause cause)
{
	char url[CONFIG_URL];

	assert_int_equal(core_status().cause, cause);
	config_failed_url(core.config, url);
	assert_string_equal(url, "http://server/rollout.yaml");
}

static void rollout__that_is_not_there__lets_every_host_take_it(void **state)
{
	(void)state;
	begin();
	pull_of("n: 2\n");
	assert_shows("n: 2\n");
}

static void rollout__of_no_host__holds_until_it_comes_to_this_one(void **state)
{
	(void)state;
	begin();
	rollout_says("percent: 0\n");
	pull_of("n: 2\n");
	assert_outcome(CONFIG_HELD);
	assert_state("ok");
	assert_shows("n: 1\n");
	assert_rejected(REJECTED_BY_ROLLOUT, "");
	assert_logged("not rolled out to this host yet: keeping the current version");
	pull();
	assert_int_equal(core_count_log("not rolled out to this host yet"), 1);
	rollout_says("percent: 100\n");
	pull();
	assert_logged("the rollout has come to this host");
	assert_shows("n: 2\n");
	assert_not_rejected();
}

static void rollout__of_bytes_that_are_held__holds_them_under_any_name(void **state)
{
	char digest[DIGEST_HEX], text[128];

	(void)state;
	begin();
	assert_int_equal(digest_sha256("n: 2\n", 5, NULL, 0, digest), 0);
	snprintf(text, sizeof(text), "version: ['no such', %.16s]\npercent: 0\n", digest);
	rollout_says(text);
	pull_of("n: 2\n");
	assert_rejected(REJECTED_BY_ROLLOUT, "");
	assert_shows("n: 1\n");
	pull_of("n: 3\n");
	assert_shows("n: 3\n");
}

static void rollout__that_lets_it_in__publishes_the_kept_bytes(void **state)
{
	(void)state;
	begin();
	rollout_says("percent: 0\n");
	pull_of("n: 2\n");
	rollout_says("percent: 100\n");
	world.holds = true;
	pull();
	assert_string_equal(world.pulls[0]->held.parts[0].etag,
		world_find_page("/web.yaml")->etag); /* 304 is enough */
	world.holds = false;
	world_turn();
	assert_shows("n: 2\n");
}

static void rollout__that_is_unchanged__is_read_again_for_the_next_version(void **state)
{
	(void)state;
	begin();
	rollout_says("percent: 0\n");
	pull_of("n: 2\n");
	pull_of("n: 3\n");
	assert_rejected(REJECTED_BY_ROLLOUT, "");
	rollout_says("percent: 100\n");
	pull_of("n: 4\n"); /* the first that it lets in is a new one */
	assert_shows("n: 4\n");
	assert_not_logged("the rollout has come to this host");
}

static void rollout__that_let_it_in_before_the_disk_failed__is_read_again_quietly(void **state)
{
	(void)state;
	begin();
	rollout_says("percent: 100\n");
	disk_fails(CALL_RENAME, 1, false, EIO);
	pull_of("n: 2\n");
	assert_outcome(CONFIG_FAILED);
	pull();
	assert_shows("n: 2\n");
	assert_not_logged("the rollout has come to this host");
}

static void rollout__of_a_version_without_an_etag__is_about_no_version(void **state)
{
	(void)state;
	begin();
	rollout_says("version: \"v2\"\npercent: 0\n");
	server_has("n: 2\n");
	world_find_page("/web.yaml")->etag[0] = '\0';
	pull();
	assert_outcome(CONFIG_PUBLISHED);
	assert_shows("n: 2\n");
}

static void rollout__when_the_server_has_nothing_new__is_not_asked(void **state)
{
	unsigned requests;

	(void)state;
	begin();
	rollout_says("percent: 0\n");
	requests = world.requests;
	pull();
	assert_outcome(CONFIG_UNCHANGED);
	assert_int_equal(world.requests, requests + 1);
}

static void rollout__that_holds_a_newer_version__does_not_hold_the_step_before(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts(ROLLOUT ", check: [/bin/true, '{path}']");
	operator_overrides("n", "7", 10 * SECOND);
	rollout_says("percent: 100\n");
	world.check_says = "not beside this override";
	pull_of("n: 2\n");
	assert_rejected(CHECK_PROGRAM, "");
	world.check_says = NULL;
	world.programs_hang = true;
	rollout_says("percent: 0\n");
	server_has("n: 3\n");
	world_advance(11 * SECOND); /* 2 is checked once more, and 3 is pulled meanwhile */
	assert_int_equal(core.config->latest.state, LATEST_IS_KEPT);
	assert_int_equal(core.config->latest.rollout, ROLLOUT_OUT);
	world.programs_hang = false;
	world_turn();
	assert_shows("n: 2\n");
	assert_rejected(REJECTED_BY_ROLLOUT, "");
}

static void rollout__by_labels__is_about_this_host(void **state)
{
	(void)state;
	core.agent_part = ", labels: {zone: us}";
	begin();
	rollout_says("labels: {zone: eu}\n");
	pull_of("n: 2\n");
	assert_outcome(CONFIG_HELD);
	rollout_says("labels: {zone: us}\n");
	pull();
	assert_shows("n: 2\n");
}

static void rollout__as_json__is_read_too(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("rollout: {server: main, path: /rollout.json}");
	world_put("/rollout.json", "{\"percent\": 0}");
	pull_of("n: 2\n");
	assert_outcome(CONFIG_HELD);
}

static void rollout__is_not_asked_on_a_host_without_a_version(void **state)
{
	(void)state;
	server_has("n: 1\n");
	rollout_says("percent: 0\n");
	agent_starts(ROLLOUT);
	assert_shows("n: 1\n");
}

static void rollout__is_not_asked_by_a_forced_pull(void **state)
{
	(void)state;
	begin();
	rollout_says("percent: 0\n");
	server_has("n: 2\n");
	pull_forced();
	assert_shows("n: 2\n");
}

static void rollout__is_not_asked_where_a_pin_holds_anyway(void **state)
{
	unsigned requests;

	(void)state;
	begin();
	operator_pins(0);
	requests = world.requests;
	pull_of("n: 2\n");
	assert_int_equal(world.requests, requests + 1);
	assert_rejected(REJECTED_BY_PIN, "pinned");
	rollout_says("percent: 0\n");
	operator_unpins(); /* not published before the rollout was read */
	assert_shows("n: 1\n");
	assert_rejected(REJECTED_BY_ROLLOUT, "");
}

static void rollout__that_fails__fails_the_run_and_remembers_nothing(void **state)
{
	static const char *const bad[] = {"percent: many\n", "percent: [\n"};

	(void)state;
	begin();
	server_has("n: 2\n");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		rollout_says(bad[i]);
		pull();
		assert_outcome(CONFIG_FAILED);
		assert_shows("n: 1\n");
		assert_verdicts(0);
	}
	assert_logged("the rollout cannot be read: keeping the current version");
	rollout_says("percent: 100\n");
	world_find_page("/rollout.yaml")->mismatch = "SHA-256 is 0123";
	pull();
	assert_error("it is not what its server says: SHA-256 is 0123");
	rollout_says("percent: 100\n");
	pull();
	assert_shows("n: 2\n");
}

static void rollout__that_is_too_large__fails_the_run(void **state)
{
	char *text = malloc(70000);

	(void)state;
	begin();
	assert_non_null(text);
	memset(text, '#', 70000 - 1);
	text[70000 - 1] = '\0';
	rollout_says(text);
	free(text);
	pull_of("n: 2\n");
	assert_error("and a rollout has at most 65536");
}

static void rollout__whose_server_is_down__fails_the_run(void **state)
{
	char url[CONFIG_URL];

	(void)state;
	begin();
	rollout_says("percent: 0\n");
	rollout_fails(PULL_FAILED, KIND_CAUSE_UNREACHABLE, "connection refused");
	pull_of("n: 2\n");
	assert_outcome(CONFIG_FAILED);
	assert_error("/rollout.yaml: connection refused");
	config_failed_url(core.config, url);
	assert_string_equal(url, "http://server/rollout.yaml");
	assert_shows("n: 1\n");
	rollout_fails(PULL_TIMEOUT, KIND_CAUSE_UNREACHABLE, "no answer");
	pull();
	assert_true(core_status().next_pull_in_ms > HOUR);
	server_fails(PULL_FAILED, KIND_CAUSE_UNREACHABLE, "no");
	pull();
	config_failed_url(core.config, url);
	assert_string_equal(url, "http://server/web.yaml");
	server_has("n: 1\n");
	pull();
	config_failed_url(core.config, url);
	assert_string_equal(url, "");
}

static void rollout__that_does_not_answer__ends_the_run_at_its_limit(void **state)
{
	(void)state;
	begin();
	rollout_says("percent: 100\n");
	server_has("n: 2\n");
	config_refresh(core.config, false);
	for (int i = 0; i < 20 && core.config->run.state != RUN_ASKING; i++)
		world_step();
	world.holds = true;
	world_advance(11 * SECOND);
	assert_error("request timed out after 10s");
	assert_blamed(KIND_CAUSE_TIMEOUT);
	assert_shows("n: 1\n");
	world.holds = false;
	pull();
	assert_shows("n: 2\n");
}

static void rollout__without_a_slot__ends_the_run(void **state)
{
	(void)state;
	begin();
	rollout_says("percent: 100\n");
	server_has("n: 2\n");
	config_refresh(core.config, false);
	for (int i = 0; i < 20 && core.config->run.state != RUN_ASKING; i++)
		world_step();
	world.busy = true;
	world.now_ms += 10 * SECOND; /* both are due: the queue's end comes first */
	loop_timer_cancel(&world.loop, &core.config->run.limit);
	world_turn();
	assert_error("no slot came in time");
	assert_blamed(KIND_CAUSE_OVERLOADED);
	assert_false(core_status().running);
	world.busy = false;
}

static void rolled_back_version__stays_held_when_the_rollout_lets_it_in(void **state)
{
	(void)state;
	begin();
	pull_of("n: 2\n");
	operator_rolls_back(1);
	rollout_says("percent: 100\n");
	pull();
	assert_rejected(REJECTED_BY_OPERATOR, "rolled back by ann");
	assert_shows("n: 1\n");
}

/* ---- to the letter ---- */

static void rollout__that_holds_and_comes__is_logged(void **state)
{
	char why[FILE_WHY];

	(void)state;
	begin();
	rollout_says("percent: 0\n");
	pull_of("n: 2\n");
	snprintf(why, sizeof(why), "%s", core_status().rejected_why);
	assert_line("<6>not rolled out to this host yet: keeping the current version config=web "
		    "version=49a609b0 why=\"%s\"",
		why);
	rollout_says("percent: 100\n");
	pull();
	assert_shows("n: 2\n");
	assert_line("<6>the rollout has come to this host config=web");
	pull_of("n: 3\n");
	assert_int_equal(core_count_log("the rollout has come to this host"), 1);
}

static void rollout__of_the_largest_size__is_read(void **state)
{
	static char text[ROLLOUT_MAX_BYTES + 2];
	static const char head[] = "percent: 100\n#";

	(void)state;
	begin();
	memset(text, 'x', sizeof(text));
	memcpy(text, head, strlen(head));
	text[ROLLOUT_MAX_BYTES] = '\0';
	rollout_says(text);
	pull_of("n: 2\n");
	assert_shows("n: 2\n");
	text[ROLLOUT_MAX_BYTES] = 'x';
	text[ROLLOUT_MAX_BYTES + 1] = '\0';
	rollout_says(text);
	pull_of("n: 3\n");
	assert_shows("n: 2\n");
	assert_string_equal(core_status().last_error,
		"rollout document /rollout.yaml: it has 65537 bytes, "
		"and a rollout has at most 65536");
}

static void rollout__that_is_wrong__says_where(void **state)
{
	(void)state;
	begin();
	rollout_says("percent: 0\npercent: 1\n");
	pull_of("n: 2\n");
	assert_outcome(CONFIG_FAILED);
	assert_non_null(strstr(core_status().last_error, "rollout document /rollout.yaml: 2:1: "));
	assert_logged("<4>the rollout cannot be read: keeping the current version config=web "
		      "why=\"rollout document /rollout.yaml: 2:1: ");
	rollout_says("percent: 100\n");
	world_find_page("/rollout.yaml")->mismatch = "SHA-256 is 0123";
	pull();
	assert_string_equal(core_status().last_error,
		"rollout document /rollout.yaml: it is not what its "
		"server says: SHA-256 is 0123");
	assert_int_equal(core_status().supervisor->count[SUPERVISOR_FAILED], 2);
}

static void rollout__that_is_invalid_after_a_full_disk__is_no_fault_of_this_host(void **state)
{
	(void)state;
	begin();
	rollout_says("percent: 100\n");
	disk_fails(CALL_RENAME, 1, false, ENOSPC);
	pull_of("n: 2\n");
	assert_int_equal(core_status().cause, KIND_CAUSE_HOST);
	rollout_says("percent: many\n");
	pull();
	assert_error("/rollout.yaml");
	assert_int_equal(core_status().cause, KIND_CAUSE_NONE);
}

static void rollout__whose_server_fails__has_its_cause(void **state)
{
	(void)state;
	begin();
	rollout_says("percent: 100\n");
	rollout_fails(PULL_TIMEOUT, KIND_CAUSE_TIMEOUT, "no answer");
	pull_of("n: 2\n");
	assert_int_equal(core_status().cause, KIND_CAUSE_TIMEOUT);
	assert_int_equal(core_status().supervisor->count[SUPERVISOR_TIMEOUT], 1);
	rollout_fails(PULL_FAILED, KIND_CAUSE_FORBIDDEN, "no answer");
	pull();
	assert_int_equal(core_status().cause, KIND_CAUSE_FORBIDDEN);
	assert_int_equal(core_status().supervisor->count[SUPERVISOR_FAILED], 1);
	assert_int_not_equal(wheel_timer_state(&core.config->run.limit.timer), WHEEL_SCHEDULED);
}

static void rollout__without_a_slot__is_rejected_at_the_limit(void **state)
{
	(void)state;
	begin();
	rollout_says("percent: 100\n");
	server_has("n: 2\n");
	world.holds = true;
	pull();
	world.holds = false;
	world_answer(world.pulls[0]);
	assert_int_equal(core.config->run.state, RUN_ASKING);
	assert_int_equal(
		world.pulls[1]->expires_ms, world.now_ms + core.settings->configs[0]->timeout_ms);
	assert_int_equal(wheel_timer_due(&core.config->run.limit.timer),
		world.now_ms + core.settings->configs[0]->timeout_ms);
	world.busy = true;
	world.pulls[1]->calls->slot_lost(world.pulls[1]->arg, "no slot came in time");
	assert_outcome(CONFIG_FAILED);
	assert_error("no slot came in time");
	assert_int_not_equal(wheel_timer_state(&core.config->run.limit.timer), WHEEL_SCHEDULED);
	assert_int_equal(core_status().supervisor->count[SUPERVISOR_REJECTED], 1);
	world.pulls[1]->waiting = false;
	world.busy = false;
}

static void rollout__that_does_not_answer__is_given_up(void **state)
{
	(void)state;
	begin();
	rollout_says("percent: 100\n");
	server_has("n: 2\n");
	world.holds = true;
	pull();
	world_answer(world.pulls[0]);
	world_turn();
	assert_true(world.pulls[1]->running);
	assert_int_equal(world.pulls[1]->held.generation, 0);
	world_advance(core.settings->configs[0]->timeout_ms);
	assert_false(world.pulls[1]->running || world.pulls[1]->waiting);
	assert_outcome(CONFIG_FAILED);
	assert_int_equal(core_status().supervisor->count[SUPERVISOR_TIMEOUT], 1);
	assert_logged("<4>the rollout cannot be read: keeping the current version config=web "
		      "why=\"rollout document /rollout.yaml: request timed out after ");
	world.holds = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CORE_TEST(rollout__that_is_not_there__lets_every_host_take_it),
		CORE_TEST(rollout__of_no_host__holds_until_it_comes_to_this_one),
		CORE_TEST(rollout__of_bytes_that_are_held__holds_them_under_any_name),
		CORE_TEST(rollout__that_lets_it_in__publishes_the_kept_bytes),
		CORE_TEST(rollout__by_labels__is_about_this_host),
		CORE_TEST(rollout__as_json__is_read_too),
		CORE_TEST(rollout__is_not_asked_on_a_host_without_a_version),
		CORE_TEST(rollout__is_not_asked_by_a_forced_pull),
		CORE_TEST(rollout__is_not_asked_where_a_pin_holds_anyway),
		CORE_TEST(rollout__that_fails__fails_the_run_and_remembers_nothing),
		CORE_TEST(rollout__that_is_too_large__fails_the_run),
		CORE_TEST(rollout__whose_server_is_down__fails_the_run),
		CORE_TEST(rollout__that_does_not_answer__ends_the_run_at_its_limit),
		CORE_TEST(rollout__without_a_slot__ends_the_run),
		CORE_TEST(rolled_back_version__stays_held_when_the_rollout_lets_it_in),
		CORE_TEST(rollout__that_is_unchanged__is_read_again_for_the_next_version),
		CORE_TEST(rollout__that_let_it_in_before_the_disk_failed__is_read_again_quietly),
		CORE_TEST(rollout__of_a_version_without_an_etag__is_about_no_version),
		CORE_TEST(rollout__when_the_server_has_nothing_new__is_not_asked),
		CORE_TEST(rollout__that_holds_a_newer_version__does_not_hold_the_step_before),
		CORE_TEST(rollout__that_holds_and_comes__is_logged),
		CORE_TEST(rollout__of_the_largest_size__is_read),
		CORE_TEST(rollout__that_is_wrong__says_where),
		CORE_TEST(rollout__that_is_invalid_after_a_full_disk__is_no_fault_of_this_host),
		CORE_TEST(rollout__whose_server_fails__has_its_cause),
		CORE_TEST(rollout__without_a_slot__is_rejected_at_the_limit),
		CORE_TEST(rollout__that_does_not_answer__is_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

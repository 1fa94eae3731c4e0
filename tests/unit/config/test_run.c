/* A run: its pull, its time limit, its bootstrap; what comes too late does not count. */
#include "tests/unit/fixture/core.h"

#define BOOTSTRAP "bootstrap: {server: main, path: /boot.yaml}"

static void run__without_an_answer__ends_at_its_limit_and_slows_down(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("timeout: 10s");
	world.holds = true;
	world.waits_for = ": it hangs";
	server_has("n: 2\n");
	pull();
	world_advance(9 * SECOND);
	assert_true(core_status().running);
	world_advance(2 * SECOND);
	assert_false(core_status().running);
	assert_error("request timed out after 10s: it hangs");
	assert_logged("the server timed out: keeping the current version, pulls slow down");
	assert_in_range(core_status().next_pull_in_ms, HOUR, 2 * HOUR);
	world.holds = false;
	world_turn(); /* a late answer does not exist */
	assert_shows("n: 1\n");
	pull();
	assert_shows("n: 2\n");
	assert_in_range(core_status().next_pull_in_ms, HOUR - MINUTE, HOUR);
}

static void run__while_answers_are_read_here__has_time(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("timeout: 10s");
	world.holds = world.reads = true;
	pull_of("n: 2\n");
	world_advance(35 * SECOND);
	assert_true(core_status().running);
	world.holds = world.reads = false;
	world_turn();
	assert_shows("n: 2\n");
}

static void run__at_its_limit__is_soon_tried_at_another_address(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("timeout: 10s");
	world.holds = world.other_address = true;
	pull_of("n: 2\n");
	world_advance(10 * SECOND);
	assert_in_range(core_status().next_pull_in_ms, 100, SECOND);
	world.holds = false;
	world_advance(SECOND);
	assert_shows("n: 2\n");
}

static void pull__that_times_out__slows_down(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	server_fails(PULL_TIMEOUT, KIND_CAUSE_TIMEOUT, "connecting took too long");
	pull();
	assert_error("connecting took too long");
	assert_true(core_status().next_pull_in_ms > HOUR);
}

static void pull__that_cannot_be_started__is_a_failure(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	server_fails(PULL_REJECTED, KIND_CAUSE_HOST, "the secret cannot be read");
	pull();
	assert_logged("pull could not be started");
	assert_error("the secret cannot be read");
	assert_in_range(core_status().next_pull_in_ms, 0, HOUR);
}

static void pull__without_a_slot__is_rejected_in_the_end(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("backoff_bound: 1");
	world.busy = true;
	pull_of("n: 2\n");
	assert_true(core_status().waiting);
	world_advance(59 * MINUTE);
	assert_true(core_status().waiting);
	world_advance(2 * MINUTE);
	assert_error("no slot came in time");
	world.busy = false;
	world_advance(HOUR);
	assert_shows("n: 2\n");
}

static void slot__for_a_pull_that_is_not_due_any_more__goes_to_another(void **state)
{
	struct pull *p;

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	p = world.pulls[0];
	assert_false(p->calls->run_may_begin(p->arg));
	p->calls->slot_lost(p->arg, "no slot");
	assert_outcome(CONFIG_PUBLISHED);
}

/* ---- the bootstrap ---- */

static void bootstrap__when_nothing_is_stored_and_the_server_is_down__is_published(void **state)
{
	(void)state;
	world_put("/boot.yaml", "n: 0\n");
	server_is_down();
	agent_starts(BOOTSTRAP);
	assert_shows("n: 0\n");
	assert_outcome(CONFIG_PUBLISHED);
	assert_error("connection refused");
	assert_logged("pull failed and nothing is stored: trying the bootstrap server");
	assert_logged("published from the bootstrap server: the server is still unreachable");
	server_has("n: 1\n");
	pull();
	assert_shows("n: 1\n");
	assert_state("ok");
	server_is_down();
	pull(); /* it is never asked again */
	assert_shows("n: 1\n");
	assert_int_equal(core_count_log("trying the bootstrap server"), 1);
}

static void bootstrap__that_fails_too__names_both_causes(void **state)
{
	(void)state;
	server_is_down();
	agent_starts(BOOTSTRAP);
	assert_error("connection refused; bootstrap: /boot.yaml: the server answered 404");
	assert_shows(NULL);
	assert_int_equal(core_status().cause, KIND_CAUSE_UNREACHABLE);
}

static void bootstrap__after_a_timeout__counts_the_timeout(void **state)
{
	(void)state;
	server_fails(PULL_TIMEOUT, KIND_CAUSE_TIMEOUT, "no answer");
	world_put("/boot.yaml", "n: 0\n");
	agent_starts(BOOTSTRAP);
	assert_shows("n: 0\n");
	assert_true(core_status().next_pull_in_ms > HOUR);
}

/* The server is down, and the bootstrap server is asked. */
static void begin_bootstrap(void)
{
	server_is_down();
	world_put("/boot.yaml", "n: 0\n");
	core_make(BOOTSTRAP);
	config_start(core.config, true);
	for (int i = 0; i < 10 && !core.config->run.bootstrapping; i++)
		world_step();
}

static void bootstrap__without_a_slot__fails_the_run(void **state)
{
	(void)state;
	begin_bootstrap();
	world.busy = true;
	world_advance(11 * HOUR);
	assert_error("no slot came in time");
	assert_false(core.config->run.bootstrapping);
}

static void bootstrap__when_a_version_is_stored__is_not_asked(void **state)
{
	(void)state;
	world_put("/boot.yaml", "n: 0\n");
	server_has("n: 1\n");
	agent_starts(BOOTSTRAP);
	server_is_down();
	agent_restarts();
	assert_shows("n: 1\n");
	assert_not_logged("trying the bootstrap server");
}

static void bootstrap__when_a_version_is_saved_and_cannot_be_shown__is_not_asked(void **state)
{
	(void)state;
	world_put("/boot.yaml", "n: 0\n");
	server_has("n: 1\n");
	agent_starts(BOOTSTRAP);
	server_is_down();
	somebody_writes_quietly("harm");
	agent_crashes();
	core_make(BOOTSTRAP);
	disk_fails(CALL_RENAME, 1, true, EIO);
	config_start(core.config, true);
	world_turn();
	disk_recovers();
	assert_generation(0);
	assert_not_logged("trying the bootstrap server");
	pull();
	assert_shows("n: 1\n");
}

/* ---- what was asked about ---- */

static void two(const char *base, const char *web)
{
	world_put("/base.yaml", base);
	world_put("/web.yaml", web);
}

static void pull__about_a_version_that_is_lost_meanwhile__fails_and_mixes_nothing(void **state)
{
	char path[SCRATCH_PATH + 64];

	(void)state;
	core.from = "[{server: main, path: /base.yaml}, {server: main, path: /web.yaml}]";
	two("base: 1\n", "web: 1\n");
	agent_starts("");
	two("base: 2\n", "web: 1\n");
	pull();
	operator_rolls_back(1);
	world.holds = true;
	pull(); /* about the version that was rolled back */
	core_path(path, "state/web/00000000000000000002");
	assert_int_equal(unlink(path), 0);
	ledger_forgive(
		core.config->decisions.ledger, core.config->latest.candidate->version.sha256);
	config_settle(core.config);
	assert_int_equal(core.config->latest.state, LATEST_NOT_KNOWN);
	two("base: 2\n", "web: 3\n"); /* the base is answered by 304 */
	world.holds = false;
	world_turn();
	assert_outcome(CONFIG_FAILED);
	assert_error("the version that the servers were asked about is not here any more");
	assert_logged("pull failed: keeping the current version");
	assert_shows("base: 1\nweb: 1\n");
	assert_generation(3);
	pull();
	assert_outcome(CONFIG_PUBLISHED);
	assert_shows("base: 2\nweb: 3\n");
	assert_state("ok");
}

static void pull__of_another_version_than_is_saved_and_cannot_be_shown__is_tried(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	disk_fails(CALL_RENAME, 2, false, EIO); /* of the file, after the commit */
	pull_of("n: 2\n");
	disk_fails(CALL_RENAME, 1, false, EIO); /* nor can it be shown */
	pull_of("n: 3\n");
	assert_shows("n: 3\n");
	assert_generation(3);
	assert_outcome(CONFIG_PUBLISHED);
}

static void pull__of_what_is_saved_and_cannot_be_shown__is_not_saved_again(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	disk_fails(CALL_RENAME, 2, false, EIO);
	pull_of("n: 2\n");
	disk_fails(CALL_RENAME, 1, false, EIO);
	pull();
	assert_int_equal(store_next_generation(core.config->current.store), 3);
	assert_shows("n: 1\n");
	pull();
	assert_shows("n: 2\n");
	assert_generation(2);
}

static void pull__of_another_version_than_is_saved__when_nothing_is_current__is_tried(void **state)
{
	(void)state;
	server_has("n: 1\n");
	core_make("");
	disk_fails(CALL_RENAME, 3, false, EIO); /* of the file, after the commit */
	config_start(core.config, true);
	world_turn();
	assert_generation(0);
	assert_int_equal(core.config->current.saved_generation, 1);
	disk_fails(CALL_RENAME, 1, false, EIO); /* nor can it be shown */
	pull_of("n: 2\n");
	disk_recovers();
	pull();
	assert_shows("n: 2\n");
	assert_state("ok");
}

/* ---- hints ---- */

static void message__pulls_at_once(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	world_advance(MINUTE);
	server_has("n: 2\n");
	message_comes(NULL);
	world_advance(SECOND);
	assert_shows("n: 2\n");
}

static void message__during_a_run__is_followed_by_one_more(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	world_advance(MINUTE);
	world.holds = true;
	pull();
	message_comes(NULL);
	world.holds = false;
	server_has("n: 2\n");
	world_turn();
	world_advance(SECOND);
	assert_shows("n: 2\n");
	assert_true(world.requests >= 3);
}

/* ---- the limit ---- */

static void run__ends_at_its_limit_to_the_moment(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("timeout: 10s");
	world.holds = true;
	pull();
	world_advance(10 * SECOND - 1);
	assert_true(core_status().running);
	world_advance(1);
	assert_false(core_status().running);
	assert_line("<4>the server timed out: keeping the current version, pulls slow down "
		    "config=web why=\"request timed out after 10s\" next_in_ms=%llu generation=1",
		(unsigned long long)supervisor_delay(&core.config->run.supervisor));
	assert_int_equal(core_status().cause, KIND_CAUSE_TIMEOUT);
	assert_int_equal(core_status().supervisor->count[SUPERVISOR_TIMEOUT], 1);
	world.holds = false;
}

static void run__that_has_ended__has_no_limit_any_more(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("timeout: 10s");
	assert_int_not_equal(wheel_timer_state(&core.config->run.limit.timer), WHEEL_SCHEDULED);
	server_is_down();
	pull();
	assert_int_not_equal(wheel_timer_state(&core.config->run.limit.timer), WHEEL_SCHEDULED);
	world_advance(MINUTE);
	assert_error("connection refused");
}

/* ---- the bootstrap ---- */

static void bootstrap__has_the_limit_of_a_pull(void **state)
{
	(void)state;
	world_put("/boot.yaml", "n: 0\n");
	server_is_down();
	core_make(BOOTSTRAP ", timeout: 10s");
	config_start(core.config, true);
	for (int i = 0; i < 10 && !core.config->run.bootstrapping; i++)
		world_step();
	world.holds = true;
	world_turn();
	world_advance(10 * SECOND);
	assert_false(core_status().running);
	assert_error("/web.yaml: connection refused; bootstrap: request timed out after 10s");
	assert_int_equal(core_status().cause, KIND_CAUSE_UNREACHABLE);
	assert_false(core.config->run.bootstrapping);
	world.holds = false;
}

static void bootstrap__is_logged_and_leaves_the_servers_failure(void **state)
{
	(void)state;
	world_put("/boot.yaml", "n: 0\n");
	server_is_down();
	agent_starts(BOOTSTRAP);
	assert_line("<4>pull failed and nothing is stored: trying the bootstrap server config=web "
		    "why=\"/web.yaml: connection refused\"");
	assert_line("<4>published from the bootstrap server: the server is still unreachable "
		    "config=web why=\"/web.yaml: connection refused\" next_in_ms=3600000 "
		    "generation=1");
	assert_string_equal(core_status().last_error, "/web.yaml: connection refused");
	assert_int_equal(core_status().cause, KIND_CAUSE_UNREACHABLE);
	assert_int_equal(core_status().confirmed_ms, 0); /* no server has */
	assert_int_equal(core_status().supervisor->count[SUPERVISOR_SUCCESS], 0);
}

static void bootstrap__where_nothing_can_be_published__leaves_the_servers_cause(void **state)
{
	char path[SCRATCH_PATH + 64];

	(void)state;
	core_path(path, "out");
	assert_int_equal(rmdir(path), 0);
	scratch_write(core.dir, "out", "a file", 6);
	world_put("/boot.yaml", "n: 0\n");
	server_is_down();
	agent_starts(BOOTSTRAP);
	assert_generation(0);
	assert_int_equal(core_status().cause, KIND_CAUSE_UNREACHABLE);
	assert_outcome(CONFIG_FAILED);
}

static void bootstrap__of_a_forced_pull__is_forced(void **state)
{
	(void)state;
	server_is_down();
	agent_starts(BOOTSTRAP);
	config_refresh(core.config, true);
	for (int i = 0; i < 10 && !core.config->run.bootstrapping; i++)
		world_step();
	world.holds = true;
	world_turn();
	assert_true(core.config->run.pull->forced);
	assert_int_equal(core.config->run.pull->held.generation, 0);
	world.holds = false;
	world_turn();
	for (int i = 0; i < 2; i++)
		assert_false(world.pulls[i]->forced);
	assert_false(core.config->run.bootstrapping);
}

static void bootstrap__of_a_version_that_is_kept__leaves_nothing_held(void **state)
{
	(void)state;
	world_put("/boot.yaml", "m: 0\n");
	server_is_down();
	agent_starts(BOOTSTRAP ", guard: {require: [n]}");
	assert_int_equal(core.config->latest.state, LATEST_IS_KEPT);
	assert_generation(0);
	pull();
	for (int i = 0; i < 2; i++)
		assert_int_equal(world.pulls[i]->held.generation, 0);
}

static void retired__during_a_bootstrap__asks_nobody_any_more(void **state)
{
	(void)state;
	begin_bootstrap();
	assert_true(core.config->run.pull->waiting);
	assert_true(config_retire(core.config, NULL, NULL));
	for (int i = 0; i < 2; i++)
		assert_false(world.pulls[i]->waiting || world.pulls[i]->running);
	world_turn();
	assert_shows(NULL);
}

/* ---- whose fault it is ---- */

static void failure_here__after_one_of_the_server__is_of_this_host(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	server_is_down();
	pull();
	assert_int_equal(core_status().cause, KIND_CAUSE_UNREACHABLE);
	disk_fails(CALL_WRITE, 1, true, ENOSPC);
	pull_of("n: 2\n");
	assert_int_equal(core_status().cause, KIND_CAUSE_HOST);
	disk_recovers();
}

static void publication_here__that_is_not_possible__after_one_of_the_server(void **state)
{
	char path[SCRATCH_PATH + 64];

	(void)state;
	core_path(path, "out");
	assert_int_equal(rmdir(path), 0);
	scratch_write(core.dir, "out", "a file", 6);
	server_is_down();
	agent_starts("");
	assert_int_equal(core_status().cause, KIND_CAUSE_UNREACHABLE);
	pull_of("n: 1\n");
	assert_int_equal(core_status().cause, KIND_CAUSE_HOST);
	assert_logged("<4>cannot publish here: trying again at every pull config=web why=");
}

static void wrong_digest__is_logged_as_a_rejection(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	server_has("n: 2\n");
	world_find_page("/web.yaml")->mismatch = "SHA-256 is 0123";
	pull();
	assert_line("<4>rejected by the digest: keeping the current version config=web "
		    "why=\"http://server/web.yaml is not what its server says: SHA-256 is 0123\" "
		    "next_in_ms=3600000 generation=1");
}

static void held_bytes__that_are_lost__are_no_rejection_by_a_check(void **state)
{
	char path[SCRATCH_PATH + 64];

	(void)state;
	core.from = "[{server: main, path: /base.yaml}, {server: main, path: /web.yaml}]";
	two("base: 1\n", "web: 1\n");
	agent_starts("");
	core_path(path, "state/web/00000000000000000001");
	assert_int_equal(unlink(path), 0);
	two("base: 2\n", "web: 1\n");
	pull();
	assert_logged("<4>rejected: keeping the current version config=web why=");
	assert_int_equal(core_status().rejections, 0);
}

/* ---- what a run remembers ---- */

static void run__that_has_ended__holds_nothing(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	world.holds = true;
	pull_forced();
	assert_int_equal(world.pulls[0]->held.generation, 1);
	assert_true(world.pulls[0]->forced);
	world.holds = false;
	world_turn();
	assert_int_equal(world.pulls[0]->held.generation, 0);
	assert_false(world.pulls[0]->forced);
	world.holds = true;
	pull(); /* force was for one run */
	assert_false(world.pulls[0]->forced);
	world.holds = false;
	world_turn();
}

static void push_topic__says_that_a_pull_has_begun(void **state)
{
	struct push_topic *t;

	(void)state;
	server_has("n: 1\n");
	core_make("");
	t = config_push_topic(core.config);
	assert_false(atomic_load(&t->pulled));
	assert_ptr_equal(t->trigger, &core.config->run.trigger);
	config_start(core.config, true);
	world_turn();
	assert_true(atomic_load(&t->pulled));
}

static void ledger__that_could_not_be_written__is_left_when_it_was_meanwhile(void **state)
{
	char path[SCRATCH_PATH + 64];
	struct stat before, after;

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	operator_pins(0);
	core_path(path, "state/web/ledger.json");
	assert_int_equal(stat(path, &before), 0);
	pull();
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino); /* nothing to write */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CORE_TEST(run__without_an_answer__ends_at_its_limit_and_slows_down),
		CORE_TEST(run__while_answers_are_read_here__has_time),
		CORE_TEST(run__at_its_limit__is_soon_tried_at_another_address),
		CORE_TEST(pull__that_times_out__slows_down),
		CORE_TEST(pull__that_cannot_be_started__is_a_failure),
		CORE_TEST(pull__without_a_slot__is_rejected_in_the_end),
		CORE_TEST(slot__for_a_pull_that_is_not_due_any_more__goes_to_another),
		CORE_TEST(bootstrap__when_nothing_is_stored_and_the_server_is_down__is_published),
		CORE_TEST(bootstrap__that_fails_too__names_both_causes),
		CORE_TEST(bootstrap__after_a_timeout__counts_the_timeout),
		CORE_TEST(bootstrap__without_a_slot__fails_the_run),
		CORE_TEST(bootstrap__when_a_version_is_stored__is_not_asked),
		CORE_TEST(message__pulls_at_once),
		CORE_TEST(message__during_a_run__is_followed_by_one_more),
		CORE_TEST(pull__about_a_version_that_is_lost_meanwhile__fails_and_mixes_nothing),
		CORE_TEST(pull__of_another_version_than_is_saved_and_cannot_be_shown__is_tried),
		CORE_TEST(pull__of_what_is_saved_and_cannot_be_shown__is_not_saved_again),
		CORE_TEST(
			pull__of_another_version_than_is_saved__when_nothing_is_current__is_tried),
		CORE_TEST(bootstrap__when_a_version_is_saved_and_cannot_be_shown__is_not_asked),
		CORE_TEST(run__ends_at_its_limit_to_the_moment),
		CORE_TEST(run__that_has_ended__has_no_limit_any_more),
		CORE_TEST(bootstrap__has_the_limit_of_a_pull),
		CORE_TEST(bootstrap__is_logged_and_leaves_the_servers_failure),
		CORE_TEST(bootstrap__where_nothing_can_be_published__leaves_the_servers_cause),
		CORE_TEST(bootstrap__of_a_forced_pull__is_forced),
		CORE_TEST(bootstrap__of_a_version_that_is_kept__leaves_nothing_held),
		CORE_TEST(retired__during_a_bootstrap__asks_nobody_any_more),
		CORE_TEST(failure_here__after_one_of_the_server__is_of_this_host),
		CORE_TEST(publication_here__that_is_not_possible__after_one_of_the_server),
		CORE_TEST(wrong_digest__is_logged_as_a_rejection),
		CORE_TEST(held_bytes__that_are_lost__are_no_rejection_by_a_check),
		CORE_TEST(run__that_has_ended__holds_nothing),
		CORE_TEST(push_topic__says_that_a_pull_has_begun),
		CORE_TEST(ledger__that_could_not_be_written__is_left_when_it_was_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

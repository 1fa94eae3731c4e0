/* The life of a config beside its runs: watches of its documents, questions on the checks' thread,
 * programs' output without masked values, its end. */
#include "tests/unit/fixture/core.h"

#define WATCHER ((struct watch *)&world)

static int set_up_watched(void **state)
{
	int r = core_set_up(state);

	core.env.watcher = WATCHER;
	return r;
}

/* As if the server had `watch: true`, from the next start of watches on. */
static void begin_watched(const char *extra)
{
	server_has("n: 1\n");
	core_make(extra);
	((struct settings_server *)(uintptr_t)world.server.settings)->watch = true;
	config_start(core.config, true);
	world_turn();
}

/* ---- watches ---- */

static void watch__that_reports_a_change__pulls(void **state)
{
	struct watch_item *item;

	(void)state;
	begin_watched("");
	assert_shows("n: 1\n");
	item = world.items[0];
	assert_non_null(item);
	assert_string_equal(item->path, "/web.yaml");
	world_advance(MINUTE);
	server_has("n: 2\n");
	item->changed(item->arg, "", 0, "");
	world_advance(SECOND);
	assert_shows("n: 2\n");
	assert_int_equal(core_status().watch_changes, 1);
	assert_true(world.followed > 0);
	assert_string_equal(item->version(item->arg), core.config->current.version.parts[0].etag);
}

static void watch_brings_answers(size_t items)
{
	const struct http_client_response answer = {.status = 200};

	world.offered = 0;
	for (size_t i = 0; i < items; i++)
		world.items[i]->answered(world.items[i]->arg, &answer);
}

static void watch__that_brings_the_document__offers_it_to_the_pull(void **state)
{
	(void)state;
	begin_watched("rollout: {server: main, path: /rollout.yaml}");
	watch_brings_answers(2);
	assert_int_equal(world.offered, 1); /* the rollout's is no version */
}

/* Hosts that wait for their turns would show what was new when they began to wait. */
static void watch__that_brings_the_document__with_a_spread__only_pulls(void **state)
{
	(void)state;
	begin_watched("push_spread: 2s");
	watch_brings_answers(1);
	assert_int_equal(world.offered, 0);
}

static void watch__before_a_first_pull__holds_no_version(void **state)
{
	(void)state;
	world.holds = true;
	begin_watched("");
	assert_string_equal(world.items[0]->version(world.items[0]->arg), "");
	world.items[0]->changed(world.items[0]->arg, "", 0, ""); /* a pull is due anyway */
	world.holds = false;
	world_turn();
	assert_shows("n: 1\n");
}

static void watch__of_the_rollout__is_one_more(void **state)
{
	(void)state;
	begin_watched("rollout: {server: main, path: /rollout.yaml}");
	assert_int_equal(core_status().watched, 2);
	assert_string_equal(world.items[1]->version(world.items[1]->arg), "");
}

static void watch__that_cannot_be_added__leaves_the_interval(void **state)
{
	(void)state;
	world.watch_result = -ENOSPC;
	begin_watched("");
	assert_int_equal(core_status().watched, 0);
	assert_shows("n: 1\n");
}

static void watch__that_fails__is_in_the_status(void **state)
{
	(void)state;
	begin_watched("");
	assert_int_equal(core_status().watch, WATCH_ON);
	world.watch_state = WATCH_FAILING;
	world.watch_error = "connection refused";
	assert_int_equal(core_status().watch, WATCH_FAILING);
	assert_string_equal(core_status().watch_error, "connection refused");
}

static void watch__while_suspended__is_ended(void **state)
{
	(void)state;
	begin_watched("");
	operator_suspends(0);
	assert_null(world.items[0]);
	agent_crashes();
	core_make("");
	((struct settings_server *)(uintptr_t)world.server.settings)->watch = true;
	config_start(core.config, true);
	assert_null(world.items[0]);
	operator_resumes();
	assert_non_null(world.items[0]);
}

/* Whether it is suspended was not known at the start, so that its documents are watched. */
static void watch__when_a_late_ledger_suspended_it__begins_once(void **state)
{
	(void)state;
	begin_watched("");
	operator_suspends(0);
	agent_crashes();
	core_make("");
	((struct settings_server *)(uintptr_t)world.server.settings)->watch = true;
	disk_fails(CALL_READ, 1, true, EIO);
	config_start(core.config, true);
	assert_non_null(world.items[0]);
	disk_recovers();
	pull();
	assert_true(config_suspended(core.config));
	operator_resumes();
	assert_non_null(world.items[0]);
	assert_null(world.items[1]);
	assert_string_equal(world.items[0]->path, "/web.yaml");
}

/* ---- questions ---- */

static unsigned asked, answered, dropped;

static void run_question(struct config_task *t)
{
	(void)t;
	asked++;
}

static void end_question(struct config_task *t)
{
	answered++;
	dropped += t->dropped;
}

static struct config_task question(void)
{
	asked = answered = dropped = 0;
	return (struct config_task){.run = run_question, .ended = end_question};
}

static void question__without_a_thread__is_answered_at_once(void **state)
{
	struct config_task t = question();

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	config_task_begin(core.config, &t);
	assert_int_equal(asked, 1);
	assert_int_equal(answered, 1);
}

static void questions__on_the_thread__are_answered_in_order(void **state)
{
	struct config_task first = question(), second = question();

	(void)state;
	core.env.check = &world.checks;
	server_has("n: 1\n");
	agent_starts("");
	world.checks.held = true;
	config_task_begin(core.config, &first);
	config_task_begin(core.config, &second);
	assert_true(config_at_disk(core.config));
	world.checks.held = false;
	world_turn();
	assert_int_equal(asked, 2);
	assert_int_equal(answered, 2);
	assert_false(config_at_disk(core.config));
}

static void question__of_a_retired_config__is_dropped(void **state)
{
	struct config_task t = question(), late = question();

	(void)state;
	core.env.check = &world.checks;
	server_has("n: 1\n");
	agent_starts("");
	world.checks.held = true;
	config_task_begin(core.config, &t);
	assert_false(config_retire(core.config, NULL, NULL));
	config_task_begin(core.config, &late);
	world.checks.held = false;
	world_turn();
	assert_int_equal(asked, 0);
	assert_int_equal(dropped, 2);
}

static void question__when_the_config_ends__is_ended(void **state)
{
	struct config_task t = question();

	(void)state;
	core.env.check = &world.checks;
	server_has("n: 1\n");
	agent_starts("");
	world.checks.held = true;
	config_task_begin(core.config, &t);
	agent_crashes();
	assert_int_equal(asked, 0);
	assert_int_equal(dropped, 1);
}

/* ---- what programs say ---- */

static void assert_scrubbed(const char *text, const char *expected)
{
	struct buffer out;

	buffer_init(&out, 4096);
	scrub_output(core.config, &out, text, strlen(text));
	assert_string_equal(out.data, expected);
	buffer_fini(&out);
}

static void output__without_a_mask__is_as_it_is(void **state)
{
	(void)state;
	server_has("token: plan-one\n");
	agent_starts("");
	assert_scrubbed("no plan-one here", "no plan-one here");
}

static void output__with_a_mask__hides_values_of_now_and_before(void **state)
{
	(void)state;
	server_has("token: plan-one\n");
	agent_starts("mask: [token], check: [/bin/true, '{path}']");
	pull_of("token: plan-two\n");
	world.programs_hang = true;
	pull_of("token: plan-three\nshown: x\n");
	assert_scrubbed("plan-one plan-two plan-three x", "*** *** *** x");
	world.programs_hang = false;
	world_turn();
}

static void output__of_an_override__is_hidden_too(void **state)
{
	(void)state;
	server_has("token: plan-one\n");
	agent_starts("mask: [token]");
	operator_overrides("token", "plan-four", HOUR);
	assert_scrubbed("plan-one plan-four", "*** ***");
}

static void output__when_a_version_cannot_be_read__is_hidden(void **state)
{
	char path[SCRATCH_PATH + 64];

	(void)state;
	server_has("token: plan-one\n");
	agent_starts("mask: [token]");
	core_path(path, "state/web/00000000000000000001");
	assert_int_equal(unlink(path), 0);
	pull_of("token: plan-two\n");
	core_path(path, "state/web");
	scratch_write(path, "00000000000000000002", "harm", 4);
	assert_scrubbed("what is plan-two", "***");
}

/* ---- the end ---- */

static void note_retired(void *arg)
{
	(void)arg;
	asked++;
}

static void retired__with_nothing_at_a_thread__has_ended(void **state)
{
	struct push_topic *topic;

	(void)state;
	begin_watched("reload: {run: [/bin/true]}");
	topic = config_push_topic(core.config);
	world.reload_hangs = true;
	pull_of("n: 2\n");
	assert_non_null(world.reload);
	assert_true(config_retire(core.config, note_retired, NULL));
	assert_null(world.reload);           /* programs have ended, */
	assert_null(world.items[0]);         /* watches, */
	assert_null(world.entries[0].entry); /* and inotify */
	trigger_hint(topic->trigger, world.now_ms, 0);
	world_advance(2 * (uint64_t)HOUR);
	assert_shows("n: 2\n");
	assert_int_equal(core.runs, 2);
}

static void retired__during_a_pull__drops_it(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("bootstrap: {server: main, path: /boot.yaml}, rollout: {server: main, path: "
		     "/rollout.yaml}");
	world.holds = true;
	pull_of("n: 2\n");
	assert_true(config_retire(core.config, note_retired, NULL));
	assert_false(core_status().running);
	world.holds = false;
	world_turn();
	assert_shows("n: 1\n");
}

static void config__has_a_name_and_a_place(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	assert_string_equal(config_name(core.config), "web");
	config_set_place(core.config, 3);
	assert_int_equal(config_place(core.config), 3);
	config_free(NULL);
}

static void watch__of_signed_documents__is_one_a_layer(void **state)
{
	(void)state;
	core.from = "[{server: main, path: /a.yaml}, {server: main, path: /b.yaml}]";
	begin_watched("verify: {public_key: "
		      "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3}");
	assert_int_equal(core_status().watched, 2);
	assert_string_equal(world.items[1]->version(world.items[1]->arg), "");
}

static void watch__during_a_bootstrap__is_about_the_server(void **state)
{
	(void)state;
	world_put("/boot.yaml", "n: 0\n");
	core_make("bootstrap: {server: main, path: /boot.yaml}");
	((struct settings_server *)(uintptr_t)world.server.settings)->watch = true;
	server_is_down();
	config_start(core.config, true);
	for (int i = 0; i < 20 && !core.config->run.bootstrapping; i++)
		world_step();
	assert_string_equal(world.items[0]->version(world.items[0]->arg), "");
	world_turn();
	assert_shows("n: 0\n");
}

static void watch__of_a_server_that_does_not_watch__is_none(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	assert_int_equal(core_status().watched, 0);
	operator_suspends(0);
	operator_resumes();
}

static void watch__of_a_rollout_in_nacos__is_none(void **state)
{
	struct settings_server *s;

	(void)state;
	server_has("n: 1\n");
	core_make("rollout: {server: main, path: /rollout.yaml}");
	s = (struct settings_server *)(uintptr_t)world.server.settings;
	s->watch = true;
	s->kind = SETTINGS_NACOS;
	config_start(core.config, true);
	assert_int_equal(core_status().watched, 1);
}

static void watches__of_two_documents__show_the_worst(void **state)
{
	(void)state;
	core.from = "[{server: main, path: /web.yaml}, {server: main, path: /b.yaml, optional: "
		    "true}]";
	begin_watched("");
	assert_int_equal(core_status().watch, WATCH_ON);
	world.watch_state = WATCH_CONNECTING;
	assert_int_equal(core_status().watch, WATCH_CONNECTING);
	core.config->run.followed = 99; /* a change that no pull has followed */
	pull();
	assert_shows("n: 1\n");
}

static void watch__within_a_spread_window__is_one_pull(void **state)
{
	uint64_t due_ms, later_ms;

	(void)state;
	begin_watched("push_spread: 10s");
	world_advance(MINUTE);
	world.items[0]->changed(world.items[0]->arg, "", 0, "");
	assert_true(trigger_due(&core.config->run.trigger, &due_ms));
	world.items[0]->changed(world.items[0]->arg, "", 0, "");
	assert_true(trigger_due(&core.config->run.trigger, &later_ms));
	assert_int_equal(due_ms, later_ms);
}

static void output__before_anything_is_published__is_as_it_is(void **state)
{
	(void)state;
	agent_starts("mask: [token]");
	assert_scrubbed("plan-one", "plan-one");
}

static void output__beside_a_version_that_is_not_visible__hides_what_is(void **state)
{
	(void)state;
	server_has("token: plan-one\n");
	agent_starts("mask: [token]");
	pull_of("token: plan-two\n");
	pull_of("token: plan-three\n");
	snapshot_is_blocked();
	pull_of("token: plan-four\n");
	assert_scrubbed("plan-two plan-three", "*** ***");
	snapshot_is_free();
}

static void output__of_what_a_layer_between_says__is_hidden_too(void **state)
{
	(void)state;
	core.from = "[{server: main, path: /a.yaml}, {server: main, path: /b.yaml}, "
		    "{server: main, path: /web.yaml}]";
	world_put("/a.yaml", "token: plan-one\n");
	world_put("/b.yaml", "token: plan-two\n");
	server_has("token: plan-three\n");
	agent_starts("mask: [token]");
	assert_scrubbed("plan-one plan-two plan-three", "*** *** ***");
}

static void config__that_ends_during_a_pull__leaves_no_timer(void **state)
{
	uint64_t due_ms;

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	world.holds = true;
	pull_of("n: 2\n");
	assert_true(core_status().running);
	agent_crashes();
	assert_false(wheel_next(&world.loop.wheel, &due_ms));
}

/* ---- how often somebody hears of it ---- */

static void retired__with_jobs_at_two_threads__has_ended_once(void **state)
{
	struct config_task t = question();

	(void)state;
	core.env.check = &world.checks;
	server_has("n: 1\n");
	agent_starts("");
	world.disk.held = world.checks.held = true;
	operator_pins(0);
	config_task_begin(core.config, &t);
	asked = 0;
	assert_false(config_retire(core.config, note_retired, NULL));
	world.checks.held = false;
	world_turn();
	assert_int_equal(answered, 1);
	assert_int_equal(asked, 0); /* the disk is at work still */
	world.disk.held = false;
	world_turn();
	assert_int_equal(asked, 1);
	config_finish_retiring(core.config);
	assert_int_equal(asked, 1);
}

static void questions__in_any_order__are_ended_each(void **state)
{
	struct config_task t[3] = {question(), question(), question()};

	(void)state;
	core.env.check = &world.checks;
	server_has("n: 1\n");
	agent_starts("");
	world.checks.held = true;
	for (int i = 0; i < 3; i++)
		config_task_begin(core.config, &t[i]);
	world_end_job(&world.checks, world_run_job(&world.checks));
	assert_int_equal(answered, 1);
	assert_true(config_at_disk(core.config));
	assert_false(t[1].dropped || t[2].dropped);
	assert_false(config_retire(core.config, note_retired, NULL));
	assert_true(t[1].dropped && t[2].dropped);
	world.checks.held = false;
	world_turn();
	assert_int_equal(answered, 3);
	assert_int_equal(dropped, 2);
	assert_false(config_at_disk(core.config));
}

static void retired__writes_what_the_ledger_did_not_take(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	disk_fails(CALL_RENAME, 1, true, ENOSPC);
	operator_pins(0);
	disk_recovers();
	assert_true(core.config->decisions.unsaved);
	assert_true(config_retire(core.config, note_retired, NULL));
	agent_crashes();
	agent_starts("");
	assert_non_null(core_status().pin);
}

/* ---- output ---- */

static void output__hides_values_of_two_generations_and_no_more(void **state)
{
	(void)state;
	server_has("token: plan-one\n");
	agent_starts("mask: [token]");
	pull_of("token: plan-two\n");
	pull_of("token: plan-three\n");
	assert_scrubbed("plan-one plan-two plan-three", "plan-one *** ***");
}

static void output__of_what_the_layers_make_together__is_hidden(void **state)
{
	(void)state;
	core.from = "[{server: main, path: /a.yaml}, {server: main, path: /web.yaml}]";
	world_put("/a.yaml", "token: [plan-one]\n");
	server_has("token: [plan-two]\n");
	agent_starts("mask: [token, 'token.*']");
	assert_scrubbed("plan-one plan-two", "*** ***");
}

/* ---- watches ---- */

static void watches__of_several_layers__are_of_each_in_its_order(void **state)
{
	(void)state;
	core.from = "[{server: main, path: /a.yaml}, {server: main, path: /b.yaml}, "
		    "{server: main, path: /web.yaml}]";
	world_put("/a.yaml", "a: 1\n");
	world_put("/b.yaml", "b: 1\n");
	begin_watched("rollout: {server: main, path: /rollout.yaml}");
	assert_int_equal(core_status().watched, 4);
	assert_string_equal(world.items[0]->path, "/a.yaml");
	assert_string_equal(world.items[1]->path, "/b.yaml");
	assert_string_equal(world.items[2]->path, "/web.yaml");
	assert_string_equal(world.items[3]->path, "/rollout.yaml");
	for (int i = 0; i < 3; i++)
		assert_string_equal(world.items[i]->version(world.items[i]->arg),
			core.config->current.version.parts[i].etag);
	assert_string_equal(world.items[3]->version(world.items[3]->arg), "");
	world.followed = 0;
	pull();
	assert_int_equal(world.followed, 4);
}

static void watch__that_reports_during_a_run__is_followed_by_the_next(void **state)
{
	(void)state;
	begin_watched("");
	world_advance(MINUTE);
	world.holds = true;
	pull();
	world.items[0]->changed(world.items[0]->arg, "", 0, "");
	world.followed = 0;
	world.busy = true;
	world.holds = false;
	world_turn();
	assert_int_equal(world.followed, 0); /* it may not have seen that change */
	assert_int_equal(core_status().watch_changes, 1);
	world.busy = false;
	world_turn();
	world_advance(SECOND);
	assert_int_equal(world.followed, 1);
}

static void watch__hears_of_a_version_that_was_seen_and_not_published(void **state)
{
	(void)state;
	begin_watched("guard: {require: [n]}");
	pull_of("m: 1\n");
	assert_string_equal(
		world.items[0]->version(world.items[0]->arg), world_find_page("/web.yaml")->etag);
}

static void watch__of_a_change__waits_within_the_spread(void **state)
{
	(void)state;
	begin_watched("push_spread: 10s");
	world_advance(MINUTE);
	world.items[0]->changed(world.items[0]->arg, "", 0, "");
	assert_in_range(core_status().next_pull_in_ms, 0, 10 * SECOND);
	world_advance(10 * SECOND);
	schedule_set_due(core.config, 10 * SECOND); /* within the window already */
	world.items[0]->changed(world.items[0]->arg, "", 0, "");
	assert_int_equal(core_status().next_pull_in_ms, 10 * SECOND);
	assert_int_equal(core_status().watch_changes, 2);
}

static void watches__that_fail__show_the_worst_state_and_an_error(void **state)
{
	(void)state;
	core.from = "[{server: main, path: /web.yaml}, {server: main, path: /b.yaml, optional: "
		    "true}]";
	begin_watched("");
	assert_string_equal(core_status().watch_error, "");
	world.watch_state = WATCH_FAILING;
	assert_int_equal(core_status().watch, WATCH_FAILING);
	assert_string_equal(core_status().watch_error, "");
	world.watch_state = WATCH_ON;
	for (int i = 0; i < 2; i++) {
		world.watch_fails = world.items[i];
		assert_int_equal(core_status().watch, WATCH_FAILING);
	}
	world.watch_state = WATCH_CONNECTING; /* is better than failing */
	assert_int_equal(core_status().watch, WATCH_FAILING);
	world.watch_fails = world.items[0];
	assert_int_equal(core_status().watch, WATCH_FAILING);
	world.watch_fails = NULL;
	assert_int_equal(core_status().watch, WATCH_CONNECTING);
	world.watch_state = WATCH_ON;
	world.watch_error = "refused";
	assert_int_equal(core_status().watch, WATCH_ON);
	assert_string_equal(core_status().watch_error, "refused");
}

int main(void)
{
#define WATCHED(name) cmocka_unit_test_setup_teardown(name, set_up_watched, core_tear_down)
	const struct CMUnitTest tests[] = {
		WATCHED(watch__that_reports_a_change__pulls),
		WATCHED(watch__that_brings_the_document__offers_it_to_the_pull),
		WATCHED(watch__that_brings_the_document__with_a_spread__only_pulls),
		WATCHED(watch__before_a_first_pull__holds_no_version),
		WATCHED(watch__of_the_rollout__is_one_more),
		WATCHED(watch__that_cannot_be_added__leaves_the_interval),
		WATCHED(watch__that_fails__is_in_the_status),
		WATCHED(watch__while_suspended__is_ended),
		WATCHED(watch__when_a_late_ledger_suspended_it__begins_once),
		CORE_TEST(question__without_a_thread__is_answered_at_once),
		CORE_TEST(questions__on_the_thread__are_answered_in_order),
		CORE_TEST(question__of_a_retired_config__is_dropped),
		CORE_TEST(question__when_the_config_ends__is_ended),
		CORE_TEST(output__without_a_mask__is_as_it_is),
		CORE_TEST(output__with_a_mask__hides_values_of_now_and_before),
		CORE_TEST(output__of_an_override__is_hidden_too),
		CORE_TEST(output__when_a_version_cannot_be_read__is_hidden),
		WATCHED(retired__with_nothing_at_a_thread__has_ended),
		CORE_TEST(retired__during_a_pull__drops_it),
		CORE_TEST(config__has_a_name_and_a_place),
		WATCHED(watch__of_signed_documents__is_one_a_layer),
		WATCHED(watch__during_a_bootstrap__is_about_the_server),
		WATCHED(watch__of_a_server_that_does_not_watch__is_none),
		WATCHED(watch__of_a_rollout_in_nacos__is_none),
		WATCHED(watches__of_two_documents__show_the_worst),
		WATCHED(watch__within_a_spread_window__is_one_pull),
		CORE_TEST(output__before_anything_is_published__is_as_it_is),
		CORE_TEST(output__beside_a_version_that_is_not_visible__hides_what_is),
		CORE_TEST(output__of_what_a_layer_between_says__is_hidden_too),
		CORE_TEST(config__that_ends_during_a_pull__leaves_no_timer),
		CORE_TEST_DISK(retired__with_jobs_at_two_threads__has_ended_once),
		CORE_TEST(questions__in_any_order__are_ended_each),
		CORE_TEST(retired__writes_what_the_ledger_did_not_take),
		CORE_TEST(output__hides_values_of_two_generations_and_no_more),
		CORE_TEST(output__of_what_the_layers_make_together__is_hidden),
		WATCHED(watches__of_several_layers__are_of_each_in_its_order),
		WATCHED(watch__that_reports_during_a_run__is_followed_by_the_next),
		WATCHED(watch__hears_of_a_version_that_was_seen_and_not_published),
		WATCHED(watch__of_a_change__waits_within_the_spread),
		WATCHED(watches__that_fail__show_the_worst_state_and_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

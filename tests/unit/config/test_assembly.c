/* What a pull brought becomes one version: that of a large one on the checks' thread, while steps,
 * operators and the end of the config go on. */
#include "tests/unit/fixture/core.h"

#define TWO "[{server: main, path: /base.yaml}, {server: main, path: /web.yaml}]"

static char large[80000];
static unsigned retired;

static void note_retired(void *arg)
{
	(void)arg;
	retired++;
}

/* A document of more than 64 KiB. */
static const char *make_large(const char *key, int n)
{
	int len = snprintf(large, sizeof(large), "%s: %d\npad: ", key, n);

	memset(large + len, 'x', 70000);
	snprintf(large + len + 70000, 2, "\n");
	return large;
}

static void begin(const char *extra)
{
	core.env.check = &world.checks;
	server_has("n: 1\n");
	agent_starts(extra);
	assert_shows("n: 1\n");
}

/* A large version is pulled, and waits to be put together. */
static void begin_assembling(void)
{
	begin("");
	world.checks.held = true;
	pull_of(make_large("n", 2));
	assert_non_null(core.config->run.assembling);
}

static void go_on(void)
{
	world.checks.held = false;
	world_turn();
	assert_null(core.config->run.assembling);
}

static void small_version__is_put_together_at_once(void **state)
{
	(void)state;
	begin("");
	world.checks.held = true;
	pull_of("n: 2\n");
	assert_shows("n: 2\n");
}

static void large_version__is_put_together_on_the_thread(void **state)
{
	(void)state;
	begin_assembling();
	assert_true(config_at_disk(core.config));
	assert_true(core_status().running);
	assert_shows("n: 1\n");
	go_on();
	assert_generation(2);
	assert_outcome(CONFIG_PUBLISHED);
}

static void large_version__that_waits_for_the_thread__is_progress(void **state)
{
	struct worker_job *job;

	(void)state;
	begin_assembling();
	assert_null(config_stuck(core.config, world.now_ms + HOUR));
	job = world_run_job(&world.checks);
	assert_null(config_stuck(core.config, world.now_ms + HOUR));
	world.checks.held = false;
	world_end_job(&world.checks, job);
	world_turn();
	assert_generation(2);
}

static void large_version__that_is_current_already__is_not_published_again(void **state)
{
	(void)state;
	begin("");
	pull_of(make_large("n", 2));
	assert_generation(2);
	snprintf(world_find_page("/web.yaml")->etag, 24, "\"other\"");
	pull();
	assert_outcome(CONFIG_UNCHANGED);
	assert_generation(2);
}

static void layer__that_is_held_by_a_kept_version__is_taken_from_it(void **state)
{
	(void)state;
	core.env.check = &world.checks;
	core.from = TWO;
	world_put("/base.yaml", "base: 1\n");
	world_put("/web.yaml", make_large("web", 1));
	agent_starts("guard: {require: [must]}");
	assert_rejected(REJECTED_BY_GUARD, "must");
	world_put("/base.yaml", "base: 1\nmust: 1\n");
	world.checks.held = true;
	pull();
	assert_non_null(core.config->run.assembling);
	latest_forget(core.config); /* its bytes stay for the thread */
	go_on();
	assert_generation(1);
	assert_outcome(CONFIG_PUBLISHED);
}

static void retired__before_it_is_put_together__leaves_nothing(void **state)
{
	(void)state;
	begin_assembling();
	retired = 0;
	assert_false(config_retire(core.config, note_retired, NULL));
	assert_int_equal(retired, 0);
	world.checks.held = false;
	world_turn();
	assert_int_equal(retired, 1);
	assert_generation(1);
}

static void retired__while_it_is_put_together__leaves_nothing(void **state)
{
	struct worker_job *job;

	(void)state;
	begin_assembling();
	job = world_run_job(&world.checks);
	retired = 0;
	assert_false(config_retire(core.config, note_retired, NULL));
	world_end_job(&world.checks, job);
	assert_int_equal(retired, 1);
	assert_generation(1);
}

static void crashed__while_it_is_put_together__leaves_nothing(void **state)
{
	(void)state;
	begin_assembling();
	world_run_job(&world.checks);
	world.checks.held = false;
	agent_restarts();
	assert_generation(2);
}

static void pinned__while_it_is_put_together__is_held(void **state)
{
	(void)state;
	begin_assembling();
	operator_pins(0);
	go_on();
	assert_shows("n: 1\n");
	assert_outcome(CONFIG_HELD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CORE_TEST(small_version__is_put_together_at_once),
		CORE_TEST(large_version__is_put_together_on_the_thread),
		CORE_TEST(large_version__that_waits_for_the_thread__is_progress),
		CORE_TEST(large_version__that_is_current_already__is_not_published_again),
		CORE_TEST(layer__that_is_held_by_a_kept_version__is_taken_from_it),
		CORE_TEST(retired__before_it_is_put_together__leaves_nothing),
		CORE_TEST(retired__while_it_is_put_together__leaves_nothing),
		CORE_TEST(crashed__while_it_is_put_together__leaves_nothing),
		CORE_TEST(pinned__while_it_is_put_together__is_held),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

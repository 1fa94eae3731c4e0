/* Reload, then probe: what a publication begins, what their ends lead to, what is remembered. */
#include "tests/unit/fixture/core.h"

#include "notify/notify.h"

static struct settings *settings;
static struct ledger ledger;
static struct notify *notify;
static unsigned remembered;
static uint64_t bad_generation;
static char bad_why[64];

static void remember(void *arg)
{
	assert_ptr_equal(arg, &ledger);
	remembered++;
}

static void bad(void *arg, uint64_t generation, const char *why)
{
	assert_ptr_equal(arg, &ledger);
	bad_generation = generation;
	snprintf(bad_why, sizeof(bad_why), "%.60s", why);
}

static char told[128]; /* what happened last */

static void happened(void *arg, enum notify_event what, const char *why)
{
	static const char *const names[] = {[NOTIFY_RELOADED] = "reloaded",
		[NOTIFY_RELOAD_FAILED] = "reload failed",
		[NOTIFY_PROBE_PASSED] = "probe passed",
		[NOTIFY_PROBE_FAILED] = "probe failed"};

	assert_ptr_equal(arg, &ledger);
	snprintf(told, sizeof(told), "%s: %s", names[what], why);
}

static const struct notify_calls calls = {.remember = remember, .bad = bad, .happened = happened};

static int set_up(void **state)
{
	core_set_up(state);
	ledger = (struct ledger){0};
	notify = NULL;
	remembered = 0;
	bad_generation = 0;
	return 0;
}

static int tear_down(void **state)
{
	notify_free(notify);
	settings_free(settings);
	settings = NULL;
	return core_tear_down(state);
}

#define RELOAD ", reload: {run: [/bin/true]}"
#define PROBE ", probe: {run: [/bin/true], for: 10s, every: 1s}"

/* A config with these members, that has this generation. */
static void begin(const char *members, uint64_t current)
{
	struct notify_options options = {.loop = &world.loop,
		.ledger = &ledger,
		.current = current,
		.calls = &calls,
		.arg = &ledger};

	settings_free(settings);
	settings = scratch_settings(
		"configs:\n  web: {url: 'http://127.0.0.1:1/w', file: /nowhere/w, type: yaml%s}\n",
		members);
	options.config = settings->configs[0];
	notify = notify_new(&options);
}

static void publish(uint64_t generation, bool stays)
{
	notify_published(notify, generation, NULL, 0, true, stays);
}

static struct notify_status status(void)
{
	struct notify_status s;

	notify_status(notify, &s);
	return s;
}

static void assert_remembered(unsigned times, uint64_t notified, uint64_t proven)
{
	assert_int_equal(remembered, times);
	assert_int_equal(ledger.notified, notified);
	assert_int_equal(ledger.proven, proven);
}

/* ---- what is wanted ---- */

static void notify__is_wanted_with_a_reload_or_a_probe(void **state)
{
	static const struct {
		const char *members;
		bool wanted;
	} rows[] = {{"", false}, {RELOAD, true}, {PROBE, true},
		{", probe: {url: 'http://127.0.0.1:1/', for: 10s, every: 1s}", true}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		begin(rows[i].members, 0);
		assert_int_equal(notify_wanted(settings->configs[0]), rows[i].wanted);
		notify_free(notify);
		notify = NULL;
	}
	notify_free(NULL);
	world.no_memory_for_notify = true;
	begin(RELOAD, 0);
	assert_null(notify);
}

/* ---- reload ---- */

static void reload__that_succeeds__is_remembered(void **state)
{
	(void)state;
	begin(RELOAD, 0);
	assert_true(status().has_reload);
	assert_false(status().has_probe);
	assert_int_equal(status().probe, PROBE_NONE);
	publish(1, false);
	assert_remembered(0, 0, 0);
	world_turn();
	assert_int_equal(world.reloads, 1);
	assert_remembered(1, 1, 0);
	assert_logged("reload succeeded config=web generation=1");
	assert_string_equal(told, "reloaded: ");
	assert_int_equal(status().probe, PROBE_NONE);
}

static void reload__that_no_rule_asks_for__is_as_good_as_done(void **state)
{
	(void)state;
	world.no_rule_matches = true;
	begin(RELOAD PROBE, 0);
	publish(1, false);
	assert_remembered(1, 1, 0);
	assert_true(world.probe.running);
	assert_int_equal(world.reloads, 0);
}

static void reload__that_fails__is_logged_once_and_remembered_by_nobody(void **state)
{
	(void)state;
	world.reload_says = "exit 1";
	begin(RELOAD PROBE, 0);
	publish(1, false);
	world_turn();
	assert_remembered(0, 0, 0);
	assert_false(world.probe.running);
	assert_int_equal(status().probe, PROBE_WAITING);
	assert_string_equal(told, "reload failed: exit 1");
	assert_logged("reload failed: the application runs with an old version, trying again "
		      "config=web generation=1 why=\"exit 1\"");
	world_reload(); /* again, and for the same reason */
	assert_int_equal(core_count_log("reload failed"), 1);
	world.reload_says = "exit 2";
	world_reload();
	world.reload_says = NULL;
	world_reload();
	assert_remembered(1, 1, 0);
	assert_true(world.probe.running);
	world.reload_says = "exit 2"; /* after a success it is news */
	publish(2, false);
	world_turn();
	assert_logged("generation=2 why=\"exit 2\"");
}

static void reload__of_a_version_before__does_not_begin_the_probe(void **state)
{
	struct reload_result result = {.generation = 1, .ok = true, .why = "", .output = "said"};

	(void)state;
	world.reload_hangs = true;
	begin(RELOAD PROBE, 0);
	publish(1, false);
	publish(2, false);
	world.reload->o.ended(world.reload->o.arg, &result);
	assert_remembered(1, 1, 0);
	assert_false(world.probe.running);
	assert_logged("reload succeeded config=web generation=1 output=said");
	result.generation = 2;
	world.reload->o.ended(world.reload->o.arg, &result);
	assert_remembered(2, 2, 0);
	assert_true(world.probe.running);
}

/* ---- probe ---- */

static void probe__that_passes__proves_the_version(void **state)
{
	(void)state;
	begin(PROBE, 0);
	assert_false(status().has_reload);
	assert_true(status().has_probe);
	assert_int_equal(status().probe, PROBE_NONE);
	publish(3, false);
	assert_int_equal(ledger.notified, 3);
	assert_int_equal(remembered, 0); /* there is no reload to go on with */
	assert_int_equal(status().probe, PROBE_RUNNING);
	assert_int_equal(status().probe_generation, 3);
	assert_string_equal(world.probe.o.name, "web");
	assert_string_equal(world.probe.o.file, "/nowhere/w");
	assert_int_equal(world.probe.o.generation, 3);
	world_end_probe(NULL);
	assert_remembered(1, 3, 3);
	assert_int_equal(status().probe, PROBE_PASSED);
	assert_int_equal(bad_generation, 0);
	assert_int_equal(core_count_log("out of memory"), 0);
	assert_string_equal(told, "probe passed: ");
	assert_logged("probe passed: keeping the version config=web generation=3");
	publish(3, false); /* published again: it is proven */
	assert_false(world.probe.running);
}

static void probe__that_fails__is_seen_until_the_next_version(void **state)
{
	(void)state;
	begin(PROBE, 0);
	publish(3, false);
	world_end_probe("it is down");
	assert_int_equal(bad_generation, 3);
	assert_string_equal(bad_why, "it is down");
	assert_remembered(0, 3, 0);
	assert_logged("probe failed config=web generation=3 why=\"it is down\"");
	publish(4, true); /* the version before is back */
	assert_remembered(1, 4, 4);
	assert_int_equal(status().probe, PROBE_FAILED);
	assert_string_equal(status().probe_why, "it is down");
	assert_int_equal(status().probes_failed, 1);
	assert_int_equal(status().probe_generation, 3);
	assert_false(world.probe.running);
	publish(5, false);
	assert_int_equal(status().probe, PROBE_RUNNING);
	world_end_probe("again");
	assert_int_equal(status().probes_failed, 2);
}

static void probe__of_a_version_that_is_replaced__ends(void **state)
{
	(void)state;
	world.reload_hangs = true;
	begin(RELOAD PROBE, 0);
	ledger.notified = 1;
	world.no_rule_matches = true;
	publish(1, false);
	assert_true(world.probe.running);
	world.no_rule_matches = false;
	publish(2, false);
	assert_false(world.probe.running);
	assert_int_equal(status().probe, PROBE_WAITING);
	notify_free(notify);
	notify = NULL;
	begin(PROBE, 0);
	publish(2, true);
	assert_int_equal(status().probe, PROBE_PASSED);
	assert_false(world.probe.running);
	publish(3, false);
	notify_free(notify);
	notify = NULL;
	assert_false(world.probe.running);
}

static void probe__without_memory__is_told(void **state)
{
	(void)state;
	begin(PROBE, 0);
	world.no_memory_for_notify = true;
	publish(1, false);
	assert_int_equal(status().probe, PROBE_NONE);
	assert_logged("out of memory: the version is not watched config=web");
}

/* ---- a restart ---- */

static void start__goes_on_where_the_agent_ended(void **state)
{
	(void)state;
	begin(PROBE, 0); /* nothing is published */
	assert_false(world.probe.running);
	notify_free(notify);
	begin(PROBE, 7);
	assert_true(world.probe.running);
	assert_int_equal(status().probe_generation, 7);
	notify_free(notify);
	ledger.proven = 7;
	begin(PROBE, 7);
	assert_false(world.probe.running);
	notify_free(notify);
	ledger.proven = 0;
	ledger.notified = 6; /* the reload comes first */
	world.reload_hangs = true;
	begin(RELOAD PROBE, 7);
	assert_false(world.probe.running);
	assert_int_equal(world.reload->o.notified, 6);
	assert_int_equal(world.reload->o.current, 7);
	assert_string_equal(world.reload->o.name, "web");
	assert_string_equal(world.reload->o.file, "/nowhere/w");
	world.reload_hangs = false;
	world_turn();
	assert_true(world.probe.running);
	notify_free(notify);
	ledger.notified = 7;
	begin(RELOAD PROBE, 7);
	assert_true(world.probe.running);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(notify__is_wanted_with_a_reload_or_a_probe),
		CASE(reload__that_succeeds__is_remembered),
		CASE(reload__that_no_rule_asks_for__is_as_good_as_done),
		CASE(reload__that_fails__is_logged_once_and_remembered_by_nobody),
		CASE(reload__of_a_version_before__does_not_begin_the_probe),
		CASE(probe__that_passes__proves_the_version),
		CASE(probe__that_fails__is_seen_until_the_next_version),
		CASE(probe__of_a_version_that_is_replaced__ends),
		CASE(probe__without_memory__is_told),
		CASE(start__goes_on_where_the_agent_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Why a version was published, and when, as its state file says it: what the history shows. */
#include "tests/unit/fixture/core.h"

/* Of a generation of the state directory. */
static void check_cause(
	uint64_t generation, const char *cause, const char *by, const char *file, int line)
{
	struct version v;
	struct buffer body;
	const char *name;

	buffer_init(&body, 65536);
	if (store_load_generation(core.config->current.store, generation, &v, &body))
		core_fail(file, line, "generation %d cannot be read", (int)generation);
	name = version_cause_name(v.cause) ? version_cause_name(v.cause) : "unknown";
	if (strcmp(name, cause) != 0 || strcmp(v.by ? v.by : "nobody", by) != 0 ||
		v.published_ms == 0)
		core_fail(file, line, "it is %s by %s at %lld, not %s by %s", name,
			v.by ? v.by : "nobody", (long long)v.published_ms, cause, by);
	buffer_fini(&body);
	version_fini(&v);
}

#define assert_cause(generation, cause, by) check_cause(generation, cause, by, __FILE__, __LINE__)

static void begin(void)
{
	server_has("n: 1\n");
	agent_starts("");
}

/* At the interval. */
static void interval_passes(const char *text)
{
	server_has(text);
	world_advance(4000000);
}

static void pull__has_what_began_it(void **state)
{
	(void)state;
	begin();
	assert_cause(1, "start", "nobody");
	interval_passes("n: 2\n");
	assert_cause(2, "pull", "nobody");
	server_has("n: 3\n");
	message_comes(NULL);
	assert_cause(3, "push", "nobody");
	interval_passes("n: 4\n");
	assert_cause(4, "pull", "nobody");
	config_note_order(core.config, CAUSE_OPERATOR, "ann");
	pull_of("n: 5\n");
	assert_cause(5, "operator", "ann");
	core.config->run.watch_changes++;
	pull_of("n: 6\n");
	assert_cause(6, "watch", "nobody");
}

static void publication__has_its_own_time_and_not_that_of_the_pull(void **state)
{
	int64_t first_ms = world.wall_ms;

	(void)state;
	begin();
	pull_of("n: 2\n");
	world.wall_ms += 5000;
	operator_rolls_back(1);
	assert_int_equal(core.config->current.version.pulled_ms, first_ms);
	assert_int_equal(core.config->current.version.published_ms, world.wall_ms);
	world.wall_ms += 5000;
	agent_restarts();
	assert_int_equal(core.config->status.published_wall_ms, world.wall_ms - 5000);
}

static void what_operators_do__names_them(void **state)
{
	(void)state;
	begin();
	pull_of("n: 2\n");
	operator_rolls_back(1);
	assert_cause(3, "rollback", "ann");
	operator_overrides("n", "7", HOUR);
	assert_cause(4, "override", "ann");
	operator_drops("n");
	assert_cause(5, "override", "ann");
	operator_overrides("n", "7", HOUR);
	world_advance(HOUR + 1);
	assert_cause(7, "override", "nobody");
}

static void held_version__is_published_for_the_end_of_the_pin(void **state)
{
	(void)state;
	begin();
	operator_pins(0);
	pull_of("n: 2\n");
	operator_unpins();
	assert_cause(2, "pin", "ann");
	operator_pins(HOUR);
	pull_of("n: 3\n");
	world_advance(HOUR + 1);
	assert_cause(3, "pin", "nobody");
}

static void pin__of_another_delay__is_no_cause(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	disk_fails(CALL_RENAME, 1, true, ENOSPC);
	pull_of("n: 2\n");
	operator_pins(0);
	operator_unpins();
	disk_recovers();
	pull();
	assert_cause(2, "pull", "nobody");
}

static void bad_probe__is_the_cause_of_its_rollback(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("probe: {run: [/bin/true], for: 10s}");
	world_end_probe(NULL);
	world_turn();
	pull_of("n: 2\n");
	world_end_probe("it is down");
	world_turn();
	assert_cause(3, "probe", "nobody");
}

static void other_format__is_the_cause_of_a_new_composition(void **state)
{
	(void)state;
	begin();
	agent_reloads("format: json");
	assert_cause(2, "settings", "nobody");
}

static void forced_pull__of_what_was_held__is_the_operators(void **state)
{
	(void)state;
	begin();
	pull_of("n: 2\n");
	operator_rolls_back(1);
	config_note_order(core.config, CAUSE_OPERATOR, "ben");
	pull_forced();
	assert_cause(4, "operator", "ben");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CORE_TEST(pull__has_what_began_it),
		CORE_TEST(publication__has_its_own_time_and_not_that_of_the_pull),
		CORE_TEST(what_operators_do__names_them),
		CORE_TEST(held_version__is_published_for_the_end_of_the_pin),
		CORE_TEST(pin__of_another_delay__is_no_cause),
		CORE_TEST(bad_probe__is_the_cause_of_its_rollback),
		CORE_TEST(other_format__is_the_cause_of_a_new_composition),
		CORE_TEST(forced_pull__of_what_was_held__is_the_operators),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

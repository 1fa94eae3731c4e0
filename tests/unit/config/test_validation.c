/* The checks at work on their own thread: what is large goes there, nobody waits for it, and what
 * is given up meanwhile leaves nothing. */
#include "tests/unit/fixture/core.h"

static char large[60000];
static unsigned retired;
static struct kept_shelf shelf;

static void note_retired(void *arg)
{
	(void)arg;
	retired++;
}

/* A version of more than 16 KiB. */
static const char *make_large(int n)
{
	int len = snprintf(large, sizeof(large), "n: %d\npad: ", n);

	memset(large + len, 'x', 20000);
	snprintf(large + len + 20000, 2, "\n");
	return large;
}

static void begin(const char *extra)
{
	core.env.check = &world.checks;
	server_has("n: 1\n");
	agent_starts(extra);
	assert_shows("n: 1\n");
}

static void small_version__is_validated_at_once(void **state)
{
	(void)state;
	begin("");
	world.checks.held = true;
	pull_of("n: 2\n");
	assert_shows("n: 2\n");
}

static void large_version__is_validated_on_the_thread(void **state)
{
	(void)state;
	begin("");
	world.checks.held = true;
	pull_of(make_large(2));
	assert_true(config_at_disk(core.config));
	assert_true(core_status().running);
	assert_shows("n: 1\n");
	world.checks.held = false;
	world_turn();
	assert_shows(make_large(2));
	world.checks.held = true;
	pull_of("n: 3\n"); /* compared with a large one */
	assert_non_null(core.config->step.validating);
	world.checks.held = false;
	world_turn();
	assert_shows("n: 3\n");
}

static void version_with_aliases__is_validated_on_the_thread(void **state)
{
	(void)state;
	begin("");
	world.checks.held = true;
	pull_of("a: &x {b: 1}\nc: *x\n");
	assert_non_null(core.config->step.validating);
	world.checks.held = false;
	world_turn();
	assert_shows("a: &x {b: 1}\nc: *x\n");
}

static void version_with_a_schema__is_validated_on_the_thread(void **state)
{
	char schema[SCRATCH_PATH + 64];

	(void)state;
	scratch_write(core.dir, "schema.json", "{}", 2);
	snprintf(schema, sizeof(schema), "schema: %s/schema.json", core.dir);
	begin(schema);
	world.checks.held = true;
	pull_of("n: 2\n");
	assert_non_null(core.config->step.validating);
	world.checks.held = false;
	world_turn();
	assert_shows("n: 2\n");
}

static void stored_large_version__is_loaded_on_the_thread(void **state)
{
	(void)state;
	begin("");
	pull_of(make_large(2));
	pull_of("n: 3\n");
	world.checks.held = true;
	operator_rolls_back(2);
	assert_non_null(core.config->step.validating);
	world.checks.held = false;
	world_turn();
	assert_done();
	assert_shows(make_large(2));
}

static void retired__before_the_checks_begin__leaves_nothing(void **state)
{
	(void)state;
	begin("");
	world.checks.held = true;
	pull_of(make_large(2));
	retired = 0;
	assert_false(config_retire(core.config, note_retired, NULL));
	assert_int_equal(retired, 0);
	world.checks.held = false;
	world_turn();
	assert_int_equal(retired, 1);
	agent_crashes();
	agent_starts("");
	assert_shows(make_large(2));
	assert_generation(2);
}

static void retired__while_the_checks_are_at_work__leaves_nothing(void **state)
{
	struct worker_job *job;

	(void)state;
	begin("");
	world.checks.held = true;
	pull_of(make_large(2));
	job = world_run_job(&world.checks);
	retired = 0;
	assert_false(config_retire(core.config, note_retired, NULL));
	world_end_job(&world.checks, job);
	assert_int_equal(retired, 1);
	assert_generation(1);
}

static void crashed__while_the_checks_are_at_work__leaves_nothing(void **state)
{
	(void)state;
	begin("");
	world.checks.held = true;
	pull_of(make_large(2));
	world_run_job(&world.checks);
	world.checks.held = false;
	agent_restarts();
	assert_shows(make_large(2));
	assert_generation(2);
}

static void pinned__while_the_checks_are_at_work__is_not_published(void **state)
{
	(void)state;
	begin("");
	world.checks.held = true;
	pull_of(make_large(2));
	operator_pins(0);
	world.checks.held = false;
	world_turn();
	assert_shows("n: 1\n");
	assert_outcome(CONFIG_HELD);
}

static void pull__that_has_the_same_during_the_checks__changes_nothing(void **state)
{
	(void)state;
	begin("");
	world.checks.held = true;
	pull_of(make_large(2));
	pull();
	pull();
	world.checks.held = false;
	world_turn();
	assert_shows(make_large(2));
	assert_generation(2);
	pull();
	assert_outcome(CONFIG_UNCHANGED);
}

static void load__of_other_layers_or_of_nothing__says_why(void **state)
{
	struct candidate *v;
	char why[FILE_WHY];

	(void)state;
	begin("");
	assert_int_equal(validation_load(core.config, 9, NULL, &v, why), -ENOENT);
	assert_non_null(strstr(why, "there is no generation 9 in the state directory"));
	agent_crashes();
	core.from = "[{server: main, path: /a}, {server: main, path: /b}]";
	agent_starts("");
	assert_int_equal(validation_load(core.config, 1, NULL, &v, why), -EBADMSG);
	assert_non_null(strstr(why, "it is made of 1 layers"));
}

static void document__too_large_for_its_text__is_rejected_by_size(void **state)
{
	(void)state;
	core.env.check = &world.checks;
	server_has("n: 1\n");
	agent_starts("format: json");
	core.settings->configs[0]->max_made = 1000;
	pull_of(make_large(2));
	assert_int_equal(core_status().rejections_by[CHECK_SIZE], 1);
	assert_generation(1);
}

static void watchdog__of_checks_that_do_not_end__says_so(void **state)
{
	(void)state;
	begin("");
	world.checks.held = true;
	pull_of(make_large(2));
	assert_null(config_stuck(core.config, world.now_ms + HOUR)); /* it has not begun */
	core.config->step.validating_since_ms = world.now_ms;
	assert_null(config_stuck(core.config, world.now_ms + MINUTE));
	assert_string_equal(config_stuck(core.config, world.now_ms + MINUTE + 1),
		"the checks have not ended with a version for a minute");
	world.checks.held = false;
	world_turn();
}

static void retired__in_each_moment_of_the_checks__ends_them(void **state)
{
	(void)state;
	begin("reload: {run: [/bin/true]}, guard: {max_changes: 9}");
	pull_of(make_large(2));
	world.checks.held = true;
	operator_rolls_back(1);
	assert_false(config_retire(core.config, note_retired, NULL));
	world.checks.held = false;
	world_turn();
	assert_failed("ask again");
	assert_generation(2);
}

static void bad_schema__of_a_large_version__is_no_verdict(void **state)
{
	char schema[SCRATCH_PATH + 64];

	(void)state;
	scratch_write(core.dir, "schema.json", "{}", 2);
	snprintf(schema, sizeof(schema), "schema: %s/schema.json", core.dir);
	begin(schema);
	scratch_write(core.dir, "schema.json", "{", 1);
	pull_of(make_large(2));
	assert_outcome(CONFIG_FAILED);
	assert_verdicts(0);
	assert_generation(1);
}

static void text_with_one_of_the_two__is_no_alias(void **state)
{
	(void)state;
	begin("");
	world.checks.held = true;
	pull_of("n: a & b\n");
	assert_shows("n: a & b\n");
	world.checks.held = false;
}

/* ---- given up between two of its steps ---- */

static unsigned opens, gives_up_at;

static int open_and_give_up(int dir, const char *path, int flags, mode_t mode)
{
	int fd = fault_openat(dir, path, flags, mode);

	if (core.config->step.validating && ++opens == gives_up_at)
		validation_give_up(core.config->step.validating);
	return fd;
}

static void given_up__at_each_file_that_is_read__is_begun_again_and_done_once(void **state)
{
	(void)state;
	world.sys.openat = open_and_give_up;
	begin("guard: {max_changes: 9}");
	pull_of(make_large(2));
	assert_generation(2);
	for (gives_up_at = 1; gives_up_at < 4; gives_up_at++) {
		uint64_t generation = core.config->current.version.generation;

		opens = 0;
		operator_rolls_back(1); /* whose request is still there */
		assert_done();
		assert_true(opens >= gives_up_at);
		assert_generation(generation + 1);
		assert_shows("n: 1\n");
		operator_rolls_back(2);
	}
	gives_up_at = 0;
}

/* ---- where it is done ---- */

static char sized[17000];

/* A document of so many bytes. */
static const char *document_of(size_t len, char fill)
{
	memset(sized, fill, sizeof(sized));
	memcpy(sized, "n: ", 3);
	sized[len - 1] = '\n';
	sized[len] = '\0';
	return sized;
}

static bool is_on_thread(const char *text)
{
	bool is;

	world.checks.held = true;
	pull_of(text);
	is = core.config->step.validating != NULL;
	world.checks.held = false;
	world_turn();
	assert_outcome(CONFIG_PUBLISHED);
	return is;
}

static void version__beyond_the_bound_or_with_aliases__is_the_threads(void **state)
{
	(void)state;
	core.env.check = &world.checks;
	server_has("n: 1\n");
	agent_starts("");
	assert_false(is_on_thread("n: 2\n"));
	assert_false(is_on_thread(document_of(16384, 'a')));
	assert_false(is_on_thread("n: 3\n"));
	assert_true(is_on_thread(document_of(16385, 'b')));
	assert_true(is_on_thread("n: 4\n")); /* it is compared with a large one */
	assert_false(is_on_thread("n: 5\n"));
	assert_false(is_on_thread("n: '&'\n"));
	assert_false(is_on_thread("n: '*'\n"));
	assert_true(is_on_thread("n: '& and *'\n"));
	core.env.check = NULL;
	assert_false(is_on_thread(document_of(16385, 'c')));
}

static void version__with_a_schema__is_the_threads(void **state)
{
	char schema[SCRATCH_PATH + 64];

	(void)state;
	core.env.check = &world.checks;
	scratch_write(core.dir, "schema.json", "{}", 2);
	snprintf(schema, sizeof(schema), "schema: %s/schema.json", core.dir);
	server_has("n: 1\n");
	agent_starts(schema);
	assert_true(is_on_thread("n: 2\n"));
}

static void thread__that_has_ended__is_not_stuck(void **state)
{
	struct worker_job *job;

	(void)state;
	core.env.check = &world.checks;
	server_has("n: 1\n");
	agent_starts("");
	world.checks.held = true;
	pull_of(document_of(16385, 'a'));
	assert_null(config_stuck(core.config, world.now_ms + HOUR)); /* it waits for its turn */
	job = world_run_job(&world.checks);
	assert_null(config_stuck(core.config, world.now_ms + HOUR));
	world_end_job(&world.checks, job);
	world.checks.held = false;
	world_turn();
	assert_generation(2);
}

static void file__of_a_version__is_large_beyond_the_bound(void **state)
{
	struct store_file file;

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	assert_false(validation_is_large_file(core.config, 0));
	assert_false(validation_is_large_file(core.config, 1));
	assert_true(validation_is_large_file(core.config, 99)); /* not known */
	pull_of(document_of(15000, 'a'));
	assert_int_equal(store_describe_file(core.config->current.store, 2, &file), 0);
	pull_of(document_of(16384 - (file.bytes - 15000), 'b'));
	assert_int_equal(store_describe_file(core.config->current.store, 3, &file), 0);
	assert_int_equal(file.bytes, 16384);
	assert_false(validation_is_large_file(core.config, 3));
	pull_of(document_of(strlen(sized) + 1, 'c'));
	assert_true(validation_is_large_file(core.config, 4));
}

static void schema__with_strange_keywords__is_said_with_them(void **state)
{
	char schema[SCRATCH_PATH + 64];

	(void)state;
	scratch_write(core.dir, "schema.json", "{\"x-owner\": 1}", 14);
	snprintf(schema, sizeof(schema), "schema: %s/schema.json", core.dir);
	server_has("n: 1\n");
	agent_starts(schema);
	assert_logged("<4>the schema has keywords that mean nothing here config=web keywords=");
	assert_logged("x-owner");
	assert_int_equal(core_count_log("keywords that mean nothing"), 1);
	scratch_write(core.dir, "schema.json", "{}", 2);
	forget_log();
	pull();
	assert_not_logged("keywords that mean nothing");
}

/* ---- how long it takes ---- */

static const char *stuck;
static bool reads;

/* As the watchdog sees it a minute later. */
static ssize_t watched_read(int fd, void *data, size_t len)
{
	if (!reads) {
		reads = true;
		stuck = config_stuck(core.config, world.now_ms + MINUTE + 1);
		if (stuck && config_stuck(core.config, world.now_ms + MINUTE))
			stuck = "too soon";
	}
	return read(fd, data, len);
}

static void checks__that_take_long__are_seen_by_the_watchdog(void **state)
{
	(void)state;
	core.env.check = &world.checks;
	server_has("n: 1\n");
	agent_starts("");
	disk_fails(CALL_RENAME, 2, false, EIO); /* saved, not shown */
	pull_of(document_of(16385, 'a'));
	disk_recovers();
	server_is_down();
	world.checks.held = true;
	pull();
	assert_non_null(core.config->step.validating);
	reads = false;
	world.sys.read = watched_read;
	world.checks.held = false;
	world_turn();
	assert_true(reads);
	assert_non_null(stuck);
	assert_string_equal(stuck, "the checks have not ended with a version for a minute");
	assert_generation(2);
	assert_null(config_stuck(core.config, world.now_ms + MINUTE));
}

static void schema__that_is_bad__matters_to_new_versions_alone(void **state)
{
	char schema[SCRATCH_PATH + 64];

	(void)state;
	scratch_write(core.dir, "schema.json", "{}", 2);
	snprintf(schema, sizeof(schema), "schema: %s/schema.json", core.dir);
	server_has("n: 1\n");
	agent_starts(schema);
	pull_of("n: 2\n");
	scratch_write(core.dir, "schema.json", "{", 1);
	somebody_writes("harm");
	assert_shows("n: 2\n"); /* healed, */
	operator_rolls_back(1);
	assert_done(); /* rolled back, */
	server_is_down();
	somebody_writes_quietly("harm");
	agent_restarts();
	assert_shows("n: 1\n"); /* and started from */
	operator_overrides("m", "1", HOUR);
	assert_failed("cannot compose the current version again"); /* it is checked */
}

/* ---- layers that are kept ---- */

/* Three layers, of which the first is large. */
static void begin_layers(const char *extra)
{
	core.env.check = &world.checks;
	core.env.shelf = &shelf;
	core.from = "[{server: main, path: /base.yaml}, {server: main, path: /web.yaml}, "
		    "{server: main, path: /host.yaml}]";
	world_put("/base.yaml", make_large(1));
	world_put("/host.yaml", "h: 1\n");
	server_has("w: 1\n");
	agent_starts(extra);
}

/* The tree that is kept of a text, or NULL. */
static const struct document *kept(const char *text)
{
	struct document *d = core.config->kept ? kept_layers_find(core.config->kept, DOCUMENT_YAML,
							 text, strlen(text))
					       : NULL;

	document_free(d); /* whose owner the config is */
	return d;
}

static void one_layer__that_changes__is_the_only_one_that_is_parsed(void **state)
{
	const struct document *base, *host;

	(void)state;
	begin_layers("format: json, guard: {max_changes: 9}");
	base = kept(make_large(1));
	host = kept("h: 1\n");
	assert_non_null(base);
	assert_non_null(host);
	pull_of("w: 2\n");
	assert_generation(2);
	assert_ptr_equal(kept(make_large(1)), base);
	assert_ptr_equal(kept("h: 1\n"), host);
	assert_non_null(kept("w: 2\n"));
	assert_null(kept("w: 1\n"));
	world_put("/base.yaml", make_large(2));
	pull();
	assert_generation(3);
	assert_null(kept(make_large(1)));
	assert_non_null(kept(make_large(2)));
	assert_ptr_equal(kept("h: 1\n"), host);
}

static void bad_layer__leaves_what_was_kept(void **state)
{
	const struct document *base;

	(void)state;
	begin_layers("");
	base = kept(make_large(1));
	pull_of("w: [\n");
	assert_generation(1);
	assert_ptr_equal(kept(make_large(1)), base);
	assert_non_null(kept("w: 1\n"));
	pull_of("w: 3\n");
	assert_generation(2);
	assert_ptr_equal(kept(make_large(1)), base);
}

static void reload__forgets_what_was_kept(void **state)
{
	(void)state;
	begin_layers("");
	assert_true(shelf.bytes > strlen(make_large(1)));
	agent_reloads("");
	assert_null(core.config->kept); /* a start keeps nothing */
	assert_int_equal(shelf.bytes, 0);
	pull_of("w: 2\n");
	assert_non_null(kept("w: 2\n"));
}

static void retired__while_layers_are_lent__frees_them(void **state)
{
	(void)state;
	begin_layers("");
	world.checks.held = true;
	pull_of("w: 2\n");
	assert_non_null(core.config->step.validating);
	agent_crashes();
	assert_int_equal(shelf.bytes, 0);
	assert_null(shelf.first);
	world.checks.held = false;
	agent_starts("");
	world.checks.held = true;
	pull_of("w: 3\n");
	assert_false(config_retire(core.config, note_retired, NULL));
	world.checks.held = false;
	world_turn();
	agent_crashes();
	assert_int_equal(shelf.bytes, 0);
}

static void layers__that_are_not_merged_or_not_large__are_not_kept(void **state)
{
	(void)state;
	core.env.shelf = &shelf;
	begin("");
	pull_of(make_large(2)); /* a single one */
	assert_null(core.config->kept);
	agent_crashes();
	core.from = "[{server: main, path: /web.yaml}, {server: main, path: /host.yaml}]";
	world_put("/host.yaml", "h: 1\n");
	server_has("w: 1\n");
	agent_starts("format: json");
	pull_of("w: 2\n"); /* small ones */
	assert_generation(4);
	assert_null(core.config->kept);
	agent_crashes();
	core.env.shelf = NULL; /* nothing is kept */
	agent_starts("");
	pull_of(make_large(3));
	assert_null(core.config->kept);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CORE_TEST(small_version__is_validated_at_once),
		CORE_TEST(large_version__is_validated_on_the_thread),
		CORE_TEST(version_with_aliases__is_validated_on_the_thread),
		CORE_TEST(version_with_a_schema__is_validated_on_the_thread),
		CORE_TEST(stored_large_version__is_loaded_on_the_thread),
		CORE_TEST(retired__before_the_checks_begin__leaves_nothing),
		CORE_TEST(retired__while_the_checks_are_at_work__leaves_nothing),
		CORE_TEST(crashed__while_the_checks_are_at_work__leaves_nothing),
		CORE_TEST(pinned__while_the_checks_are_at_work__is_not_published),
		CORE_TEST(pull__that_has_the_same_during_the_checks__changes_nothing),
		CORE_TEST(load__of_other_layers_or_of_nothing__says_why),
		CORE_TEST(document__too_large_for_its_text__is_rejected_by_size),
		CORE_TEST(watchdog__of_checks_that_do_not_end__says_so),
		CORE_TEST(retired__in_each_moment_of_the_checks__ends_them),
		CORE_TEST(bad_schema__of_a_large_version__is_no_verdict),
		CORE_TEST(text_with_one_of_the_two__is_no_alias),
		CORE_TEST(given_up__at_each_file_that_is_read__is_begun_again_and_done_once),
		CORE_TEST(version__beyond_the_bound_or_with_aliases__is_the_threads),
		CORE_TEST(version__with_a_schema__is_the_threads),
		CORE_TEST(thread__that_has_ended__is_not_stuck),
		CORE_TEST(file__of_a_version__is_large_beyond_the_bound),
		CORE_TEST(schema__with_strange_keywords__is_said_with_them),
		CORE_TEST(checks__that_take_long__are_seen_by_the_watchdog),
		CORE_TEST(schema__that_is_bad__matters_to_new_versions_alone),
		CORE_TEST(one_layer__that_changes__is_the_only_one_that_is_parsed),
		CORE_TEST(bad_layer__leaves_what_was_kept),
		CORE_TEST(reload__forgets_what_was_kept),
		CORE_TEST(retired__while_layers_are_lent__frees_them),
		CORE_TEST(layers__that_are_not_merged_or_not_large__are_not_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

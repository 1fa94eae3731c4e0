/* The last publications, and the keys that each changed. */
#include "tests/unit/fixture/fault_memory.h"
#include "tests/unit/fixture/core.h"

#include "config/changes.h"

#define MOST 5000

static struct changes *changes;
static char answer[262144];

static int set_up(void **state)
{
	int r = core_set_up(state);

	fault_memory.nth = 0;
	changes = changes_new();
	assert_non_null(changes);
	return r;
}

static int tear_down(void **state)
{
	changes_free(changes);
	return core_tear_down(state);
}

/* Compares what is missing, as the control socket does; at most so many. Returns how many. */
static unsigned find_missing(unsigned most)
{
	struct changes_entry *e;
	uint64_t read = 0;
	unsigned n = 0;

	while (n < most && changes_find_missing(changes, &core.config, 1, &read, &e) > 0) {
		assert_ptr_equal(changes_config(e), core.config);
		changes_compare(e);
		changes_keep(changes, e);
		n++;
	}
	return n;
}

static const char *show(bool values)
{
	struct buffer out;

	buffer_init(&out, sizeof(answer) - 1);
	assert_int_equal(changes_write(changes, values, &out), 0);
	snprintf(answer, sizeof(answer), "%s", out.data);
	buffer_fini(&out);
	return answer;
}

static bool has(const char *words)
{
	if (!strstr(show(true), words))
		print_error("%s\n", answer);
	return strstr(answer, words);
}

static void publications__are_compared_once_and_listed_newest_first(void **state)
{
	(void)state;
	server_has("n: 1\ngone: 1\n");
	agent_starts("");
	pull_of("n: 2\nnew: [1]\n");
	assert_int_equal(find_missing(9), 2);
	assert_true(has("{\"publications\":[{\"config\":\"web\",\"generation\":2,\"from\":1,"));
	assert_true(has("{\"key\":\"n\",\"op\":\"changed\",\"old\":\"1\",\"new\":\"2\"}"));
	assert_true(has("{\"key\":\"gone\",\"op\":\"removed\",\"old\":\"1\"}"));
	assert_true(has("\"generation\":1,\"from\":null,"));
	assert_true(has("\"complete\":true"));
	assert_int_equal(find_missing(9), 0);
	pull_of("n: 3\n");
	assert_int_equal(find_missing(9), 1);
	assert_true(has("\"generation\":3"));
	assert_non_null(strstr(show(false), "\"old\":\"***\""));
}

static void publications__that_are_compared_in_parts__are_complete_later(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	pull_of("n: 2\n");
	pull_of("n: 3\n");
	assert_int_equal(find_missing(1), 1);
	assert_true(has("\"complete\":false"));
	pull_of("n: 4\n"); /* what was kept is not the newest any more */
	assert_int_equal(find_missing(9), 4);
	assert_true(has("\"complete\":true"));
}

static void masked_values__are_hidden(void **state)
{
	(void)state;
	server_has("token: one\n");
	agent_starts("mask: [token]");
	pull_of("token: two\n");
	find_missing(9);
	assert_true(has("\"old\":\"***\",\"new\":\"***\""));
}

static void many_changes__are_counted(void **state)
{
	char text[4096] = "n: 1\n";

	(void)state;
	server_has(text);
	agent_starts("");
	for (int i = 0; i < 30; i++)
		snprintf(text + strlen(text), 32, "k%d: 1\n", i);
	snprintf(text + strlen(text), 1000, "%0*d: 1\n", 600, 7); /* a long key */
	pull_of(text);
	find_missing(9);
	assert_true(has("\"more\":11"));
}

static void many_publications__are_listed_up_to_a_bound(void **state)
{
	char text[32];

	(void)state;
	server_has("n: 1\n");
	agent_starts("history: 40");
	for (int i = 2; i < 30; i++) {
		snprintf(text, sizeof(text), "n: %d\n", i);
		pull_of(text);
	}
	assert_int_equal(find_missing(99), CHANGES_MAX);
	assert_true(has("\"complete\":true"));
	assert_null(strstr(answer, "\"generation\":9,"));
	pull_of("n: 99\n");
	assert_int_equal(find_missing(99), 1);
	assert_true(has("\"generation\":30"));
	assert_null(strstr(answer, "\"generation\":10,"));
}

static void bytes_and_older_versions_that_are_gone__have_no_changes(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("type: bytes, history: 1");
	pull_of("n: 2\n");
	pull_of("n: 3\n");
	find_missing(9);
	assert_true(has("\"changes\":null"));
}

static void set_of_files__has_its_files_as_keys(void **state)
{
	char place[SCRATCH_PATH + 32];

	(void)state;
	snprintf(place, sizeof(place), "dir: %s/out/set", core.dir);
	core.place = place;
	core.from = "[{server: main, path: /web.yaml, as: a.yaml}]";
	server_has("n: 1\n");
	agent_starts("");
	pull_of("n: 2\n");
	find_missing(9);
	assert_true(has("{\"key\":\"a.yaml\",\"op\":\"changed\"}"));
}

static void damaged_version__has_its_error(void **state)
{
	char path[SCRATCH_PATH + 64];

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	pull_of("n: 2\n");
	core_path(path, "state/web");
	scratch_write(path, "00000000000000000001", "harm", 4);
	find_missing(9);
	assert_true(has("\"error\":\"generation 1 cannot be read"));
	assert_non_null(strstr(show(false), "\"error\":"));
}

static void large_version__is_not_compared(void **state)
{
	size_t len = CHANGES_MAX_BYTES + 10;
	char *text = malloc(len + 1);

	(void)state;
	assert_non_null(text);
	memset(text, 'x', len);
	text[len] = '\0';
	server_has(text);
	agent_starts("type: bytes");
	pull_of("n: 2\n");
	free(text);
	find_missing(9);
	assert_true(has("it is too long to be compared here"));
}

static void config__that_goes__is_forgotten(void **state)
{
	struct changes_entry *e;
	uint64_t read = 0;

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	find_missing(9);
	pull_of("n: 2\n");
	find_missing(1);
	changes_forget(changes, NULL); /* another one: all stays */
	assert_true(has("\"generation\":1"));
	changes_forget(changes, core.config);
	assert_true(has("\"publications\":[]"));
	assert_int_equal(changes_find_missing(changes, NULL, 0, &read, &e), 0);
	find_missing(9);
	assert_true(has("\"generation\":2"));
}

static void config__without_a_version_or_store__has_none(void **state)
{
	(void)state;
	core_make("");
	find_missing(9);
	assert_true(has("\"publications\":[]"));
	agent_crashes();
	agent_starts("");
	find_missing(9);
	assert_true(has("\"publications\":[]"));
	changes_drop(NULL);
}

static void answer__that_reads_much__goes_on_with_the_next(void **state)
{
	struct changes_entry *e;
	uint64_t read = CHANGES_MAX_READ;

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	assert_int_equal(changes_find_missing(changes, &core.config, 1, &read, &e), 0);
	assert_true(has("\"complete\":false"));
	find_missing(9);
	assert_true(has("\"complete\":true"));
}

static void removed_files__of_known_publications__do_not_matter(void **state)
{
	char path[SCRATCH_PATH + 64];

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	pull_of("n: 2\n");
	find_missing(9);
	core_path(path, "state/web/00000000000000000001");
	assert_int_equal(unlink(path), 0);
	pull_of("n: 3\n");
	core_path(path, "state/web/00000000000000000002");
	assert_int_equal(unlink(path), 0);
	find_missing(9);
	assert_true(has("\"generation\":3"));
}

static void answer__without_memory__is_an_error_and_comes_later(void **state)
{
	(void)state;
	server_has("n: 1\nm: {a: 1}\n");
	agent_starts("");
	pull_of("n: 2\nm: {b: 1}\n");
	for (unsigned n = 1;; n++) {
		struct buffer out;

		changes_free(changes);
		changes = changes_new();
		fault_memory.seen = 0;
		fault_memory.nth = n;
		find_missing(9);
		buffer_init(&out, sizeof(answer));
		changes_write(changes, true, &out);
		buffer_fini(&out);
		fault_memory.nth = 0;
		if (fault_memory.seen < n)
			break;
		assert_in_range(n, 1, MOST);
	}
	find_missing(9);
	assert_true(has("\"complete\":true"));
}

static void publications__of_two_configs__are_merged_by_their_time(void **state)
{
	struct settings *settings;
	struct config *both[2];
	struct changes_entry *e;
	uint64_t read = 0;

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	settings = scratch_settings(
		"agent: {state_dir: %s/state, runtime_dir: %s/run}\n"
		"servers: {main: {urls: [\"http://server\"]}}\n"
		"configs: {db: {file: %s/out/db.yaml, from: [{server: main, path: /web.yaml}]}}\n",
		core.dir, core.dir, core.dir);
	both[0] = core.config;
	both[1] = config_new(&core.env, settings->configs[0]);
	assert_non_null(both[1]);
	config_start(both[1], true);
	pull_of("n: 2\n");
	while (changes_find_missing(changes, both, 2, &read, &e) > 0) {
		changes_compare(e);
		changes_keep(changes, e);
	}
	assert_true(has("\"config\":\"web\",\"generation\":2"));
	assert_true(has("\"config\":\"db\",\"generation\":1"));
	changes_forget(changes, both[1]);
	assert_null(strstr(show(true), "\"config\":\"db\""));
	core_forget_neighbours();
	config_free(both[1]);
	settings_free(settings);
}

static void bytes__that_are_read_for_an_answer__are_counted(void **state)
{
	struct changes_entry *e;
	uint64_t read = 0, before;

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	pull_of("n: 2\n");
	assert_int_equal(changes_find_missing(changes, &core.config, 1, &read, &e), 1);
	before = read;
	assert_true(before > 0);
	changes_compare(e);
	changes_keep(changes, e);
	assert_int_equal(changes_find_missing(changes, &core.config, 1, &read, &e), 1);
	assert_true(read > before);
	changes_drop(e);
	changes_free(NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(publications__are_compared_once_and_listed_newest_first),
		TEST(publications__that_are_compared_in_parts__are_complete_later),
		TEST(masked_values__are_hidden),
		TEST(many_changes__are_counted),
		TEST(many_publications__are_listed_up_to_a_bound),
		TEST(bytes_and_older_versions_that_are_gone__have_no_changes),
		TEST(set_of_files__has_its_files_as_keys),
		TEST(damaged_version__has_its_error),
		TEST(large_version__is_not_compared),
		TEST(config__that_goes__is_forgotten),
		TEST(config__without_a_version_or_store__has_none),
		TEST(answer__that_reads_much__goes_on_with_the_next),
		TEST(removed_files__of_known_publications__do_not_matter),
		TEST(publications__of_two_configs__are_merged_by_their_time),
		TEST(answer__without_memory__is_an_error_and_comes_later),
		TEST(bytes__that_are_read_for_an_answer__are_counted),
	};

	return fault_memory_run(tests, 1);
}

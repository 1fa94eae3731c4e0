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
		struct changes_entry *e;
		struct buffer out;
		uint64_t read = 0;
		int r;

		changes_free(changes);
		changes = changes_new();
		if (fault_memory_works && n <= 2) { /* the heads, their merge */
			fault_memory.seen = 0;
			fault_memory.nth = n;
			r = changes_find_missing(changes, &core.config, 1, &read, &e);
			fault_memory.nth = 0;
			assert_int_equal(r, -ENOMEM);
		}
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

/* ---- whole answers ---- */

static void assert_shows_all(bool values, const char *expected)
{
	assert_string_equal(show(values), expected);
}

static void answer__has_each_member_of_a_publication_and_a_change(void **state)
{
	(void)state;
	server_has("n: 1\ngone: {a: x}\n");
	agent_starts("mask: [secret]");
	pull_of("n: 2\nadded: [1]\nsecret: s\n");
	operator_rolls_back(1);
	state_file_is_of("web", 1, 1500);
	state_file_is_of("web", 2, 2500);
	state_file_is_of("web", 3, 3500);
	assert_int_equal(find_missing(9), 3);
	assert_shows_all(true,
		"{\"publications\":["
		"{\"config\":\"web\",\"generation\":3,\"from\":2,\"at_ms\":3500,\"origin\":"
		"\"rollback to generation 1 by ann: pages are slow\",\"changes\":["
		"{\"key\":\"added.0\",\"op\":\"removed\",\"old\":\"1\"},"
		"{\"key\":\"gone.a\",\"op\":\"added\",\"new\":\"\\\"x\\\"\"},"
		"{\"key\":\"n\",\"op\":\"changed\",\"old\":\"2\",\"new\":\"1\"},"
		"{\"key\":\"secret\",\"op\":\"removed\",\"old\":\"***\"}],\"more\":0},"
		"{\"config\":\"web\",\"generation\":2,\"from\":1,\"at_ms\":2500,\"origin\":"
		"\"pull\",\"changes\":["
		"{\"key\":\"added.0\",\"op\":\"added\",\"new\":\"1\"},"
		"{\"key\":\"gone.a\",\"op\":\"removed\",\"old\":\"\\\"x\\\"\"},"
		"{\"key\":\"n\",\"op\":\"changed\",\"old\":\"1\",\"new\":\"2\"},"
		"{\"key\":\"secret\",\"op\":\"added\",\"new\":\"***\"}],\"more\":0},"
		"{\"config\":\"web\",\"generation\":1,\"from\":null,\"at_ms\":1500,\"origin\":"
		"\"pull\",\"changes\":["
		"{\"key\":\"gone.a\",\"op\":\"added\",\"new\":\"\\\"x\\\"\"},"
		"{\"key\":\"n\",\"op\":\"added\",\"new\":\"1\"}],\"more\":0}],"
		"\"complete\":true,\"values\":true}");
}

static void answer__without_values__hides_each(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	pull_of("n: 2\n");
	state_file_is_of("web", 1, 1500);
	state_file_is_of("web", 2, 2500);
	assert_int_equal(find_missing(9), 2);
	assert_shows_all(false,
		"{\"publications\":["
		"{\"config\":\"web\",\"generation\":2,\"from\":1,\"at_ms\":2500,\"origin\":"
		"\"pull\",\"changes\":["
		"{\"key\":\"n\",\"op\":\"changed\",\"old\":\"***\",\"new\":\"***\"}],\"more\":0},"
		"{\"config\":\"web\",\"generation\":1,\"from\":null,\"at_ms\":1500,\"origin\":"
		"\"pull\",\"changes\":["
		"{\"key\":\"n\",\"op\":\"added\",\"new\":\"***\"}],\"more\":0}],"
		"\"complete\":true,\"values\":false}");
}

static void answer__of_bytes__has_no_changes(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("type: bytes");
	state_file_is_of("web", 1, 1500);
	assert_int_equal(find_missing(9), 1);
	assert_shows_all(true,
		"{\"publications\":[{\"config\":\"web\",\"generation\":1,\"from\":null,\"at_ms\":"
		"1500,\"origin\":\"pull\",\"changes\":null,\"more\":0}],"
		"\"complete\":true,\"values\":true}");
}

static void version__whose_predecessor_is_not_kept__has_no_changes(void **state)
{
	char path[SCRATCH_PATH + 64];

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	pull_of("n: 2\n");
	core_path(path, "state/web/00000000000000000001");
	assert_int_equal(unlink(path), 0);
	state_file_is_of("web", 2, 2500);
	find_missing(9);
	assert_shows_all(true,
		"{\"publications\":[{\"config\":\"web\",\"generation\":2,\"from\":null,\"at_ms\":"
		"2500,\"origin\":\"pull\",\"changes\":null,\"more\":0}],"
		"\"complete\":true,\"values\":true}");
}

static void set_of_files__lists_each_file_without_values(void **state)
{
	char place[SCRATCH_PATH + 32];

	(void)state;
	snprintf(place, sizeof(place), "dir: %s/out/set", core.dir);
	core.place = place;
	core.from = "[{server: main, path: /web.yaml, as: a.yaml}, {server: main, path: /b.yaml, "
		    "as: b.yaml}, {server: main, path: /c.yaml, as: c.yaml}]";
	world_put("/b.yaml", "b: 1\n");
	world_put("/c.yaml", "c: 1\n");
	server_has("n: 1\n");
	agent_starts("");
	world_put("/c.yaml", "c: 2\n");
	pull_of("n: 2\n");
	state_file_is_of("web", 1, 1500);
	state_file_is_of("web", 2, 2500);
	assert_int_equal(find_missing(9), 2);
	assert_shows_all(true,
		"{\"publications\":["
		"{\"config\":\"web\",\"generation\":2,\"from\":1,\"at_ms\":2500,\"origin\":"
		"\"pull\",\"changes\":[{\"key\":\"a.yaml\",\"op\":\"changed\"},"
		"{\"key\":\"c.yaml\",\"op\":\"changed\"}],\"more\":0},"
		"{\"config\":\"web\",\"generation\":1,\"from\":null,\"at_ms\":1500,\"origin\":"
		"\"pull\",\"changes\":null,\"more\":0}],"
		"\"complete\":true,\"values\":true}");
}

static void version__that_cannot_be_compared__says_why_and_has_its_origin(void **state)
{
	char path[SCRATCH_PATH + 64];

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	pull_of("n: 2\n");
	core_path(path, "state/web");
	scratch_write(path, "00000000000000000001", "harm", 4);
	state_file_is_of("web", 1, 1500);
	state_file_is_of("web", 2, 2500);
	find_missing(9);
	assert_true(
		has("\"generation\":2,\"from\":1,\"at_ms\":2500,\"origin\":\"pull\",\"changes\":"
		    "null,\"more\":0,\"error\":\"generation 1 cannot be read"));
	assert_true(has("\"generation\":1,\"from\":null,\"at_ms\":1500,\"origin\":null,\"changes\":"
			"null,\"more\":0,\"error\":\"generation 1 cannot be read"));
}

/* ---- bounds ---- */

/* Publishes `count` more keys, the first of them with a name of so many bytes. */
static void pull_keys(unsigned count, unsigned name)
{
	char text[8192];
	size_t len = (size_t)snprintf(text, sizeof(text), "n: 1\n");

	server_has(text);
	agent_starts("");
	for (unsigned i = 0; i < count; i++)
		len += (size_t)snprintf(
			text + len, sizeof(text) - len, "k%0*u: 1\n", i ? 3 : (int)name - 1, i);
	pull_of(text);
}

static void changes__up_to_the_bound__are_listed(void **state)
{
	static const struct {
		unsigned count, name, more;
	} cases[] = {
		{CHANGES_MAX_KEYS - 1, 4, 0},
		{CHANGES_MAX_KEYS, 4, 0},
		{CHANGES_MAX_KEYS + 1, 4, 1},
		{CHANGES_MAX_KEYS + 7, 4, 7},
		{2, CHANGES_MAX_KEY, 0},
		{2, CHANGES_MAX_KEY + 1, 1},
	};
	char words[64];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned listed = cases[i].count - cases[i].more, found = 0;

		pull_keys(cases[i].count, cases[i].name);
		assert_int_equal(find_missing(1), 1);
		find_missing(9);
		snprintf(words, sizeof(words), "\"more\":%u}", cases[i].more);
		assert_true(has(words));
		for (const char *p = answer; (p = strstr(p, "\"key\":\"k")); p++)
			found++;
		assert_int_equal(found, listed);
		changes_forget(changes, core.config);
		core_close();
		core_open(scratch_memory());
	}
}

/* Publishes bytes whose state file has so many. */
static void publish_file_of(uint64_t bytes, char fill)
{
	static char text[CHANGES_MAX_BYTES + 1];
	struct store_file file;
	uint64_t other;

	memset(text, fill, bytes - 1000);
	text[bytes - 1000] = '\0';
	pull_of(text);
	assert_int_equal(store_describe_file(core.config->current.store,
				 core.config->current.version.generation, &file),
		0);
	other = file.bytes - (bytes - 1000); /* what is in it besides */
	memset(text, fill + 1, bytes - other);
	text[bytes - other] = '\0';
	pull_of(text);
	assert_int_equal(store_describe_file(core.config->current.store,
				 core.config->current.version.generation, &file),
		0);
	assert_int_equal(file.bytes, bytes);
}

static void version__up_to_the_longest__is_compared(void **state)
{
	static const char too_long[] =
		"\"error\":\"it is too long to be compared here: see `pullet diff`\"";

	(void)state;
	server_has("n: 1\n");
	agent_starts("type: bytes, history: 9");
	publish_file_of(CHANGES_MAX_BYTES, 'a');
	pull_of("n: 2\n");
	find_missing(9);
	assert_null(strstr(show(true), "too long"));
	publish_file_of(CHANGES_MAX_BYTES + 1, 'e');
	find_missing(9);
	assert_true(has("\"generation\":6,\"from\":5,"));
	assert_non_null(strstr(answer, too_long));
	assert_null(strstr(strstr(answer, too_long) + sizeof(too_long),
		"too long")); /* not the one before it */
	pull_of("n: 3\n");    /* short, but what it is compared with is not */
	find_missing(9);
	assert_true(has("\"generation\":7,\"from\":6,"));
	assert_non_null(strstr(strstr(answer, too_long) + 1, too_long));
}

static void bytes_to_read__are_those_of_both_files(void **state)
{
	struct store_file first, second;
	struct changes_entry *e;
	uint64_t bytes = 7;

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	pull_of("n: 22222222\n");
	assert_int_equal(store_describe_file(core.config->current.store, 1, &first), 0);
	assert_int_equal(store_describe_file(core.config->current.store, 2, &second), 0);
	e = changes_entry_new(core.config, 2, &bytes);
	assert_non_null(e);
	assert_int_equal(bytes, first.bytes + second.bytes);
	changes_drop(e);
	e = changes_entry_new(core.config, 1, &bytes);
	assert_non_null(e);
	assert_int_equal(bytes, first.bytes);
	changes_drop(e);
	assert_null(changes_entry_new(core.config, 3, &bytes));
}

static void answer__one_byte_before_its_bound__reads_one_more(void **state)
{
	struct changes_entry *e;
	uint64_t read = CHANGES_MAX_READ - 1;

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	pull_of("n: 2\n");
	assert_int_equal(changes_find_missing(changes, &core.config, 1, &read, &e), 1);
	assert_true(read > CHANGES_MAX_READ);
	assert_true(has("\"complete\":false"));
	changes_compare(e);
	changes_keep(changes, e);
	assert_int_equal(changes_find_missing(changes, &core.config, 1, &read, &e), 0);
	assert_true(has("\"generation\":2"));
	assert_true(has("\"complete\":false"));
	assert_null(strstr(answer, "\"generation\":1"));
	read = 0;
	assert_int_equal(changes_find_missing(changes, &core.config, 1, &read, &e), 1);
	changes_keep(changes, e);
	assert_int_equal(changes_find_missing(changes, &core.config, 1, &read, &e), 0);
	assert_true(has("\"complete\":true"));
}

static void entries__that_are_known__stay_while_a_newer_one_is_compared(void **state)
{
	struct changes_entry *e, *again;
	uint64_t read = 0;

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	pull_of("n: 2\n");
	find_missing(9);
	pull_of("n: 3\n");
	assert_int_equal(changes_find_missing(changes, &core.config, 1, &read, &e), 1);
	assert_true(has("\"generation\":2"));
	assert_true(has("\"generation\":1"));
	assert_null(strstr(answer, "\"generation\":3"));
	assert_true(has("\"complete\":false"));
	pull_of("n: 4\n"); /* what is compared is not the newest any more */
	changes_compare(e);
	changes_keep(changes, e);
	assert_int_equal(changes_find_missing(changes, &core.config, 1, &read, &again), 1);
	assert_int_equal(again->generation, 4);
	changes_keep(changes, again); /* in place of the other one */
	assert_int_equal(find_missing(9), 1);
	assert_true(has("\"complete\":true"));
	for (int i = 1; i <= 4; i++) {
		char words[32];

		snprintf(words, sizeof(words), "\"generation\":%d,", i);
		assert_true(has(words));
	}
}

/* ---- several configs ---- */

static struct settings *db_settings;
static struct config *two[2];

static void begin_two(void)
{
	server_has("n: 1\n");
	agent_starts("");
	db_settings = scratch_settings(
		"agent: {state_dir: %s/state, runtime_dir: %s/run}\n"
		"servers: {main: {urls: [\"http://server\"]}}\n"
		"configs: {db: {file: %s/out/db.yaml, from: [{server: main, path: /web.yaml}]}}\n",
		core.dir, core.dir, core.dir);
	two[0] = core.config;
	two[1] = config_new(&core.env, db_settings->configs[0]);
	assert_non_null(two[1]);
	config_start(two[1], true);
	world_turn();
	pull_of("n: 2\n");
}

static void end_two(void)
{
	changes_forget(changes, two[1]);
	core_forget_neighbours();
	config_free(two[1]);
	settings_free(db_settings);
}

static unsigned find_missing_of(struct config *const *configs, size_t count)
{
	struct changes_entry *e;
	uint64_t read = 0;
	unsigned n = 0;

	while (changes_find_missing(changes, configs, count, &read, &e) > 0) {
		changes_compare(e);
		changes_keep(changes, e);
		n++;
	}
	return n;
}

/* "web 2 db 1", in their order. */
static const char *list_entries(void)
{
	static char text[256];
	size_t len = 0;

	text[0] = '\0';
	for (const char *p = show(true); (p = strstr(p, "{\"config\":\"")); p++) {
		char name[16];
		unsigned generation;

		assert_int_equal(
			sscanf(p, "{\"config\":\"%15[a-z]\",\"generation\":%u", name, &generation),
			2);
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s %u", len ? " " : "",
			name, generation);
	}
	return text;
}

static void publications__of_two_configs__are_in_the_order_of_their_times(void **state)
{
	(void)state;
	begin_two();
	state_file_is_of("web", 1, 1000);
	state_file_is_of("db", 1, 2000);
	state_file_is_of("web", 2, 3000);
	assert_int_equal(find_missing_of(two, 2), 3);
	assert_string_equal(list_entries(), "web 2 db 1 web 1");
	changes_forget(changes, two[0]);
	assert_string_equal(list_entries(), "db 1");
	assert_true(has("\"complete\":false"));
	assert_int_equal(find_missing_of(two, 2), 2);
	assert_string_equal(list_entries(), "web 2 db 1 web 1");
	end_two();
	assert_string_equal(list_entries(), "web 2 web 1");
}

static void publications__of_the_same_moment__are_in_the_order_of_the_configs(void **state)
{
	struct config *turned[2];

	(void)state;
	begin_two();
	state_file_is_of("web", 1, 1000);
	state_file_is_of("db", 1, 3000);
	state_file_is_of("web", 2, 3000);
	assert_int_equal(find_missing_of(two, 2), 3);
	assert_string_equal(list_entries(), "web 2 db 1 web 1");
	turned[0] = two[1];
	turned[1] = two[0];
	assert_int_equal(find_missing_of(turned, 2), 0); /* all are known */
	assert_string_equal(list_entries(), "db 1 web 2 web 1");
	assert_int_equal(find_missing_of(turned, 1), 0);
	assert_string_equal(list_entries(), "db 1");
	assert_int_equal(find_missing_of(turned, 0), 0);
	assert_string_equal(list_entries(), "");
	assert_int_equal(find_missing_of(two, 2), 3);
	end_two();
}

static void entry__that_is_compared__survives_what_becomes_of_another_config(void **state)
{
	struct changes_entry *e;
	uint64_t read = 0;

	(void)state;
	begin_two();
	state_file_is_of("web", 1, 1000);
	state_file_is_of("db", 1, 2000);
	state_file_is_of("web", 2, 3000);
	assert_int_equal(changes_find_missing(changes, two, 2, &read, &e), 1);
	assert_ptr_equal(changes_config(e), two[0]);
	changes_keep(changes, e);
	changes_forget(changes, two[1]);
	assert_int_equal(changes_find_missing(changes, two, 2, &read, &e), 1);
	assert_ptr_equal(changes_config(e), two[1]); /* that of the other one was kept */
	changes_keep(changes, e);
	changes_forget(changes, two[1]);
	assert_int_equal(changes_find_missing(changes, two, 2, &read, &e), 1);
	assert_ptr_equal(changes_config(e), two[1]); /* forgotten with its config */
	changes_drop(e);
	end_two();
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
		TEST(answer__has_each_member_of_a_publication_and_a_change),
		TEST(answer__without_values__hides_each),
		TEST(answer__of_bytes__has_no_changes),
		TEST(version__whose_predecessor_is_not_kept__has_no_changes),
		TEST(set_of_files__lists_each_file_without_values),
		TEST(version__that_cannot_be_compared__says_why_and_has_its_origin),
		TEST(changes__up_to_the_bound__are_listed),
		TEST(version__up_to_the_longest__is_compared),
		TEST(bytes_to_read__are_those_of_both_files),
		TEST(answer__one_byte_before_its_bound__reads_one_more),
		TEST(entries__that_are_known__stay_while_a_newer_one_is_compared),
		TEST(publications__of_two_configs__are_in_the_order_of_their_times),
		TEST(publications__of_the_same_moment__are_in_the_order_of_the_configs),
		TEST(entry__that_is_compared__survives_what_becomes_of_another_config),
		TEST(bytes__that_are_read_for_an_answer__are_counted),
	};

	return fault_memory_run(tests, 1);
}

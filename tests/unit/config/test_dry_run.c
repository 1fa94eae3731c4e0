/* --dry-run: all checks, what would change, and nothing is written. */
#include "tests/unit/fixture/captured.h"
#include "tests/unit/fixture/core.h"

static char printed[8192];
static char verdict[1024]; /* the line above what would change; "" = none */

/* Moves the first line out of what was printed, if it is about the config. */
static void take_line(void)
{
	char *end = strchr(printed, '\n');

	verdict[0] = '\0';
	if (!end || strncmp(printed, "web: ", 5) != 0)
		return;
	snprintf(verdict, sizeof(verdict), "%.*s", (int)(end - printed), printed);
	memmove(printed, end + 1, strlen(end + 1) + 1);
}

/* One run, whose standard output is kept; NULL: one more of the same agent. */
static void dry_run(const char *extra)
{
	struct captured out = captured_begin(STDOUT_FILENO);

	core.env.dry_run = core.env.once = true;
	if (extra)
		agent_starts(extra);
	else
		pull();
	captured_read(&out, printed, sizeof(printed));
	captured_end(&out);
	take_line();
}

static unsigned written(void)
{
	char path[SCRATCH_PATH + 64];
	unsigned n;

	core_path(path, "state");
	n = scratch_count(path, "");
	core_path(path, "run");
	return n + scratch_count(path, "");
}

static void dry_run__prints_what_would_change_without_masked_values(void **state)
{
	(void)state;
	somebody_writes_quietly("db: {host: a, password: old}\ngone: 1\nsame: 1\n");
	server_has("db: {host: b, password: new}\nlist: [1, 2]\nsame: 1\n");
	dry_run("mask: ['*.password'], check: [/bin/true, '{path}']");
	assert_string_equal(printed,
		"~ db.host: \"a\" -> \"b\"\n~ db.password: *** -> ***\n- gone: 1\n+ list.0: "
		"1\n+ list.1: 2\n");
	assert_logged("dry run: would publish");
	assert_int_equal(world.checked, 1);
	assert_int_equal(written(), 0);
	assert_shows("db: {host: a, password: old}\ngone: 1\nsame: 1\n");
}

static void dry_run__when_the_file_is_right__prints_nothing(void **state)
{
	(void)state;
	somebody_writes_quietly("n: 1\n");
	server_has("n: 1\n");
	dry_run("");
	assert_string_equal(printed, "");
	assert_non_null(strstr(verdict, "web: is up to date: 5 bytes, sha256 "));
	assert_logged("dry run: the file is up to date");
	assert_outcome(CONFIG_UNCHANGED);
}

static void dry_run__of_bytes__prints_no_keys(void **state)
{
	(void)state;
	somebody_writes_quietly("n: 1\n");
	server_has("n: 2\n");
	dry_run("type: bytes");
	assert_string_equal(printed, "");
	assert_logged("dry run: would publish");
	assert_shows("n: 1\n");
}

static void dry_run__of_an_empty_file__is_up_to_date(void **state)
{
	(void)state;
	somebody_writes_quietly("");
	server_has("");
	dry_run("type: bytes");
	assert_logged("dry run: the file is up to date");
	assert_outcome(CONFIG_UNCHANGED);
}

static void dry_run__without_a_file__prints_all_keys(void **state)
{
	(void)state;
	server_has("n: 1\n");
	dry_run("format: json");
	assert_string_equal(printed, "+ n: 1\n");
	assert_shows(NULL);
}

static void dry_run__says_who_would_reject_it_and_remembers_nothing(void **state)
{
	(void)state;
	server_has("n: 1\n");
	world.check_says = "check exited with 1: no such host";
	dry_run("check: [/bin/true, '{path}']");
	assert_outcome(CONFIG_FAILED);
	assert_error("no such host");
	assert_string_equal(printed, "");
	agent_crashes();
	dry_run("guard: {require: [none]}");
	assert_error("the required key none is not there");
	assert_int_equal(written(), 0);
	agent_crashes();
	dry_run("");
	assert_outcome(CONFIG_PUBLISHED);
}

static void dry_run__of_other_formats__compares_what_it_can(void **state)
{
	(void)state;
	somebody_writes_quietly("N=0\n");
	server_has("n: 1\n");
	dry_run("format: env");
	assert_string_equal(printed, "+ n: 1\n");
	agent_crashes();
	somebody_writes_quietly("{\"n\": 0}");
	world_put("/web.json", "{\"n\": 1}");
	core.from = "[{server: main, path: /web.json}]";
	dry_run("");
	assert_string_equal(printed, "~ n: 0 -> 1\n");
	agent_crashes();
	somebody_writes_quietly("n: [");
	dry_run("format: yaml");
	assert_string_equal(printed, "+ n: 1\n");
	agent_crashes();
	dry_run("type: bytes, format: verbatim");
	assert_string_equal(printed, "");
	assert_logged("dry run: would publish");
}

static void dry_run__of_a_set_of_files__writes_nothing(void **state)
{
	char place[SCRATCH_PATH + 32];

	(void)state;
	snprintf(place, sizeof(place), "dir: %s/out/set", core.dir);
	core.place = place;
	core.from = "[{server: main, path: /web.yaml, as: a.yaml}]";
	server_has("n: 1\n");
	dry_run("");
	assert_outcome(CONFIG_PUBLISHED);
	assert_int_equal(written(), 0);
}

static void dry_run__is_logged_with_file_size_and_version(void **state)
{
	(void)state;
	somebody_writes_quietly("n: 1\n");
	server_has("n: 1\n");
	dry_run("");
	assert_line("<6>dry run: the file is up to date config=web file=%s/out/web.yaml bytes=5 "
		    "version=de80e4db",
		core.dir);
	assert_outcome(CONFIG_UNCHANGED);
	agent_crashes();
	server_has("n: 22\n");
	dry_run("");
	assert_logged("<6>dry run: would publish config=web file=");
	assert_logged("/out/web.yaml bytes=6 version=");
	assert_outcome(CONFIG_PUBLISHED);
	assert_string_equal(printed, "~ n: 1 -> 22\n");
	agent_crashes();
	server_has("n: 2\n"); /* as long as what is there */
	dry_run("");
	assert_string_equal(printed, "~ n: 1 -> 2\n");
	assert_outcome(CONFIG_PUBLISHED);
}

static void dry_run__of_json__compares_it_as_such(void **state)
{
	(void)state;
	somebody_writes_quietly("{\"n\": 0,}"); /* YAML, and no JSON */
	server_has("n: 1\n");
	dry_run("format: json");
	assert_string_equal(printed, "+ n: 1\n");
	agent_crashes();
	dry_run("format: yaml");
	assert_string_equal(printed, "~ n: 0 -> 1\n");
	agent_crashes();
	dry_run("");
	assert_string_equal(printed, "~ n: 0 -> 1\n");
	agent_crashes();
	world_put("/web.json", "{\"n\": 1}");
	core.from = "[{server: main, path: /web.json}]";
	dry_run("");
	assert_string_equal(printed, "+ n: 1\n");
}

static void dry_run__that_is_asked_again__says_it_again(void **state)
{
	(void)state;
	server_has("n: 1\n");
	dry_run("");
	dry_run(NULL);
	assert_string_equal(printed, "+ n: 1\n");
	assert_int_equal(core_count_log("dry run: would publish"), 2);
	assert_outcome(CONFIG_PUBLISHED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CORE_TEST(dry_run__prints_what_would_change_without_masked_values),
		CORE_TEST(dry_run__when_the_file_is_right__prints_nothing),
		CORE_TEST(dry_run__without_a_file__prints_all_keys),
		CORE_TEST(dry_run__says_who_would_reject_it_and_remembers_nothing),
		CORE_TEST(dry_run__of_other_formats__compares_what_it_can),
		CORE_TEST(dry_run__of_a_set_of_files__writes_nothing),
		CORE_TEST(dry_run__of_bytes__prints_no_keys),
		CORE_TEST(dry_run__of_an_empty_file__is_up_to_date),
		CORE_TEST(dry_run__is_logged_with_file_size_and_version),
		CORE_TEST(dry_run__of_json__compares_it_as_such),
		CORE_TEST(dry_run__that_is_asked_again__says_it_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

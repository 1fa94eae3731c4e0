/* `pullet build`: the snapshot of a document, built again, and what it does not replace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "cli/common/cli.h"
#include "lib/pullet.h"
#include "lib/snapshot.h"
#include "tests/unit/fixture/command.h"

static char in_dir[8][SCRATCH_PATH + 32];
static unsigned next_path;

/* Valid for eight calls. */
static const char *place(const char *name)
{
	char *path = in_dir[next_path++ % 8];

	snprintf(path, sizeof(in_dir[0]), "%s/%s", played.dir, name);
	return path;
}

static void put(const char *name, const char *text)
{
	scratch_write(played.dir, name, text, strlen(text));
}

static int set_up(void **state)
{
	(void)state;
	alarm(20);
	played_open();
	played_stop();
	put("web.yaml", "db: {host: h, port: 5432}\n");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	played_close();
	return 0;
}

#define BUILD(...)                                                                                 \
	RUN(cli_build, "pullet build", place("web.yaml"), "-o", place("web.snap"), __VA_ARGS__)
#define VERSION(text) "--version", text

static void assert_snapshot(uint64_t generation, const char *version, int64_t port)
{
	struct pullet *p;

	assert_int_equal(pullet_open(place("web.snap"), 0, &p), 0);
	assert_int_equal(pullet_generation(p), generation);
	assert_string_equal(pullet_version(p), version);
	assert_int_equal(pullet_get_int(p, "db.port", 0), port);
	assert_string_equal(pullet_get_string(p, "db.host", ""), "h");
	pullet_close(p);
}

/* It cannot be built, for that reason. */
static void assert_fails(int code, const char *sentence)
{
	assert_ended(code, "", NULL);
	assert_shows(command.err, sentence);
}

static void document__becomes_a_snapshot_that_readers_open(void **state)
{
	struct stat st;

	(void)state;
	umask(077);
	BUILD(VERSION("v1"));
	umask(022);
	assert_ended(CLI_OK, "", "");
	assert_snapshot(1, "v1", 5432);
	assert_int_equal(stat(place("web.snap"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0644);
	put("web.json", "{\"db\":{\"host\":\"h\",\"port\":7}}");
	RUN(cli_build, "pullet build", place("web.json"), "-o", place("json.snap"));
	assert_ended(CLI_OK, "", "");
	put("web.json", "db: 1\n"); /* is no JSON */
	RUN(cli_build, "pullet build", place("web.json"), "-o", place("json.snap"));
	assert_fails(CLI_FAILED, "/web.json:1:2: invalid token");
}

static void document__that_changed__has_the_next_generation(void **state)
{
	struct stat first, second;

	(void)state;
	BUILD(VERSION("v1"));
	assert_int_equal(stat(place("web.snap"), &first), 0);
	BUILD(VERSION("v1")); /* the same: it is left alone */
	assert_int_equal(command.code, CLI_OK);
	assert_int_equal(stat(place("web.snap"), &second), 0);
	assert_int_equal(first.st_ino, second.st_ino);
	put("web.yaml", "db: {host: h, port: 5433}\n");
	BUILD(VERSION("v2"));
	assert_ended(CLI_OK, "", "");
	assert_snapshot(2, "v2", 5433);
}

static void snapshot__of_an_agent_or_of_nobody__is_not_replaced(void **state)
{
	(void)state;
	put("web.snap", "no snapshot");
	BUILD(VERSION("v1"));
	assert_fails(CLI_FAILED, "/web.snap is no snapshot, or a damaged one: remove it first\n");
	put("web.snap", "");
	BUILD(VERSION("v1"));
	assert_fails(CLI_FAILED, "/web.snap is no snapshot, or a damaged one: remove it first\n");
	unlink(place("web.snap"));
	put("web.gen", "");
	BUILD(VERSION("v1"));
	assert_fails(CLI_FAILED,
		"/web.snap is an agent's: web.gen lies beside it; write to another place\n");
	assert_int_equal(access(place("web.snap"), F_OK), -1);
	unlink(place("web.gen"));
	assert_int_equal(mkdir(place("web.snap"), 0755), 0);
	BUILD(VERSION("v1"));
	assert_fails(CLI_FAILED, "/web.snap cannot be read: ");
	rmdir(place("web.snap"));
	RUN(cli_build, "pullet build", place("web.yaml"), "-o", place("none/web.snap"));
	assert_fails(CLI_FAILED, "/none/web.snap cannot be written: ");
}

static void document__that_cannot_be_read__is_named(void **state)
{
	(void)state;
	put("web.yaml", "a: [1\n");
	BUILD(VERSION("v1"));
	assert_fails(CLI_FAILED, "/web.yaml:1:4: the bracket [ that opens here is never closed");
	RUN(cli_build, "pullet build", place("none.yaml"), "-o", place("web.snap"));
	assert_fails(CLI_FAILED, "/none.yaml cannot be read: ");
	assert_int_equal(access(place("web.snap"), F_OK), -1);
}

static void schema__decides(void **state)
{
	(void)state;
	put("schema.json", "{\"properties\":{\"db\":{\"$ref\":\"db.json\"}}}");
	put("db.json", "{\"properties\":{\"port\":{\"maximum\":9}}}");
	BUILD("--schema", place("schema.json"), "--schema-dir", played.dir);
	assert_fails(CLI_FAILED, "/web.yaml does not fit ");
	assert_shows(command.err, "/schema.json:\n");
	assert_shows(command.err, "5432");
	assert_int_not_equal(
		command.err[strlen(command.err) - 2], '\n'); /* one newline at its end */
	assert_int_equal(access(place("web.snap"), F_OK), -1);
	put("db.json", "{\"properties\":{\"port\":{\"maximum\":5432}}}");
	BUILD("--schema", place("schema.json"), "--schema-dir", played.dir);
	assert_ended(CLI_OK, "", "");
	BUILD("--schema", place("none.json"));
	assert_fails(CLI_FAILED, "/none.json cannot be read: No such file or directory\n");
	BUILD("--schema", place("schema.json"), "--schema-dir", place("none"));
	assert_fails(CLI_FAILED, "/none cannot be read: No such file or directory\n");
	put("schema.json", "{\"type\":7}");
	BUILD("--schema", place("schema.json"));
	assert_fails(CLI_FAILED, "schema.json");
}

static void option__that_is_wrong__is_misused(void **state)
{
	static char long_version[SNAPSHOT_MAX_VERSION + 2];

	(void)state;
	RUN(cli_build, "pullet build");
	assert_fails(CLI_USAGE, "name one document, and the snapshot to write with -o");
	RUN(cli_build, "pullet build", place("web.yaml"));
	assert_fails(CLI_USAGE, "name the snapshot to write with -o");
	RUN(cli_build, "pullet build", place("web.yaml"), "-o", "x.snap/web.bin");
	assert_fails(
		CLI_USAGE, "-o takes the name of a snapshot, NAME.snap, not 'x.snap/web.bin'\n");
	RUN(cli_build, "pullet build", place("web.yaml"), "-o", "web");
	assert_fails(CLI_USAGE, "-o takes the name of a snapshot");
	BUILD("--schema-dir", played.dir);
	assert_fails(CLI_USAGE, "--schema-dir goes with --schema");
	memset(long_version, 'v', SNAPSHOT_MAX_VERSION + 1);
	BUILD(VERSION(long_version));
	assert_fails(CLI_USAGE, "a version has at most ");
	long_version[SNAPSHOT_MAX_VERSION] = '\0';
	BUILD(VERSION(long_version));
	assert_ended(CLI_OK, "", "");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(document__becomes_a_snapshot_that_readers_open),
		CASE(document__that_changed__has_the_next_generation),
		CASE(snapshot__of_an_agent_or_of_nobody__is_not_replaced),
		CASE(document__that_cannot_be_read__is_named),
		CASE(schema__decides),
		CASE(option__that_is_wrong__is_misused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What `pullet dev` proposes to try: commands that a shell takes as they are printed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "cli/dev/try.h"
#include "lib/snapshot.h"
#include "tests/unit/fixture/command.h"

static struct dev_place place;
static const struct served_document document = {.name = "web", .path = "web.yaml"};
static bool example;

static int run_try(int argc, char **argv)
{
	(void)argc, (void)argv;
	return try_print(&place, &document, "/srv/docs", example) ? 0 : 1;
}

static void publish(const char *key, enum pullet_type type)
{
	struct snapshot_entry e[3] = {{.key = "a", .key_len = 1, .value = {.type = PULLET_LIST}},
		{.key = "b", .key_len = 1, .value = {.type = PULLET_NULL}},
		{.key = key, .key_len = strlen(key), .value = {.type = type}}};
	void *image;
	size_t len;

	for (size_t i = 0; i < 3; i++)
		e[i].value.text = "";
	assert_int_equal(snapshot_build(e, 3, 1, 0, "v", &image, &len), 0);
	scratch_write(played.dir, "web.snap", image, len);
	free(image);
}

static int set_up(void **state)
{
	(void)state;
	alarm(20);
	played_open();
	played_stop();
	place = (struct dev_place){.root = "/r"};
	snprintf(place.run, sizeof(place.run), "%s", played.dir);
	snprintf(place.files, sizeof(place.files), "/r/files");
	snprintf(place.pullet, sizeof(place.pullet), "%s/bin/pullet", played.dir);
	example = false;
	setenv("PATH", "/nowhere", 1);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	played_close();
	return 0;
}

/* The first command that is proposed, behind the variable. */
static void assert_proposed(const char *program, const char *rest)
{
	char expected[1024];

	RUN(run_try, "x");
	assert_int_equal(command.code, 0);
	snprintf(expected, sizeof(expected),
		"\nIn another shell:\n    PULLET_RUNTIME_DIR=%s %s %s\n    PULLET_RUNTIME_DIR=%s "
		"%s "
		"status\n",
		played.dir, program, rest, played.dir, program);
	assert_shows(command.out, expected);
}

static void key__that_is_tried__is_the_first_with_a_value__as_one_word_of_a_shell(void **state)
{
	static const struct {
		const char *key, *rest;
		enum pullet_type type;
	} rows[] = {
		{"db.host", "get web db.host", PULLET_STRING},
		{"x:y/z=1-_.", "get web x:y/z=1-_.", PULLET_STRING},
		{"it's", "get web 'it'\\''s'", PULLET_STRING},
		{"two words", "get web 'two words'", PULLET_INT},
		{"c\n", "list web", PULLET_STRING}, /* nobody can type that */
		{"c\303\244", "list web", PULLET_STRING},
		{"c", "list web", PULLET_MAP},
		{"c", "list web", PULLET_NULL},
		{"c", "get web c", PULLET_BOOL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		publish(rows[i].key, rows[i].type);
		assert_proposed(place.pullet, rows[i].rest);
		assert_int_equal(try_count(&place, "web"), rows[i].type == PULLET_MAP ? 1 : 2);
	}
	assert_int_equal(try_count(&place, "none"), 0);
}

static void program__is_named_by_its_path_unless_a_shell_finds_it_by_its_name(void **state)
{
	char other[SCRATCH_PATH + 32], path[2 * SCRATCH_PATH + 64];

	(void)state;
	publish("c", PULLET_BOOL);
	snprintf(path, sizeof(path), "%s/bin", played.dir);
	snprintf(other, sizeof(other), "%s/other", played.dir);
	assert_int_equal(mkdir(path, 0755) || mkdir(other, 0755), 0);
	scratch_write(path, "pullet", "x", 1);
	scratch_write(other, "pullet", "y", 1);
	assert_proposed(place.pullet, "get web c");
	snprintf(path, sizeof(path), "/nowhere:%s/bin:%s", played.dir, other);
	setenv("PATH", path, 1);
	assert_proposed("pullet", "get web c");
	snprintf(path, sizeof(path), "%s:%s/bin", other, played.dir); /* another one is first */
	setenv("PATH", path, 1);
	assert_proposed(place.pullet, "get web c");
	unsetenv("PATH");
	assert_proposed(place.pullet, "get web c");
}

static void places__are_named__and_of_the_example_a_change(void **state)
{
	(void)state;
	publish("c", PULLET_BOOL);
	RUN(run_try, "x");
	assert_shows(command.out,
		" status\nChange a value in /srv/docs/web.yaml and save it: what changed is "
		"printed "
		"here. Applications read\n/r/files/web.yaml, or the snapshot with "
		"PULLET_RUNTIME_DIR as above. Ctrl-C ends it.\n\n");
	example = true;
	RUN(run_try, "x");
	assert_shows(command.out,
		" status\n    sed -i s/hello/goodbye/ /srv/docs/web.yaml\nChange a value in ");
}

static void snapshot__that_is_not_there__proposes_nothing(void **state)
{
	(void)state;
	RUN(run_try, "x");
	assert_ended(1, "", "");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(key__that_is_tried__is_the_first_with_a_value__as_one_word_of_a_shell),
		CASE(program__is_named_by_its_path_unless_a_shell_finds_it_by_its_name),
		CASE(places__are_named__and_of_the_example_a_change),
		CASE(snapshot__that_is_not_there__proposes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

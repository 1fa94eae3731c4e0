/* Documents of a served directory as configs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "cli/serve/served.h"
#include "origin/origin.h"
#include "tests/unit/fixture/scratch.h"

static struct served served;
static char dir[SCRATCH_PATH];

static int set_up(void **state)
{
	(void)state;
	memset(&served, 0, sizeof(served));
	scratch_open(dir, scratch_memory());
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	scratch_close(dir);
	return 0;
}

static const char *name(size_t i)
{
	assert_true(i < served.count);
	return served.documents[i].name;
}

static void add__document__is_a_config_of_its_paths_name(void **state)
{
	(void)state;
	assert_int_equal(served_add(&served, "web.yaml"), SERVED_NEW);
	assert_int_equal(served_add(&served, "team/app.yml"), SERVED_NEW);
	assert_int_equal(served_add(&served, "a.b.JSON"), SERVED_NEW);
	assert_string_equal(name(0), "web");
	assert_string_equal(name(1), "team-app");
	assert_string_equal(name(2), "a.b");
	assert_int_equal(served_add(&served, "web.yaml"), SERVED_KNOWN);
}

static void add__second_of_a_name__keeps_its_ending(void **state)
{
	static const char *const names[] = {
		"web", "web.json", "a-b", "a-b.yaml", "a-b-", "x-y", "x-y.json", "x-y.yml"};

	(void)state;
	served_add(&served, "web.yaml");
	assert_int_equal(served_add(&served, "web.json"), SERVED_NEW);
	assert_string_equal(name(1), "web.json");
	assert_string_equal(served_ending(&served.documents[0]), ".yaml");
	assert_string_equal(served_ending(&served.documents[1]), "");
	served_add(&served, "a/b.yaml");
	served_add(&served, "a-b.yaml");
	assert_int_equal(served_add(&served, "a/b-.yaml"), SERVED_NEW);
	assert_int_equal(served_add(&served, "x-y.json"), SERVED_NEW);
	assert_int_equal(served_add(&served, "x/y.json"), SERVED_NEW);
	assert_int_equal(served_add(&served, "x/y.yml"), SERVED_NEW);
	assert_int_equal(served.count, sizeof(names) / sizeof(names[0]));
	for (size_t i = 0; i < served.count; i++)
		assert_string_equal(name(i), names[i]);
}

static void add__what_is_no_document__is_left_alone(void **state)
{
	static const char *const others[] = {
		"README", "a.txt", ".yaml", "web.yaml~", ".git/a.yaml", "../a.yaml", "/a.yaml", ""};

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_int_equal(served_add(&served, others[i]), SERVED_OTHER);
	assert_int_equal(served.count, 0);
}

static void add__odd_characters__are_said(void **state)
{
	char path[SERVED_PATH + 8];

	(void)state;
	assert_int_equal(served_add(&served, "my file.yaml"), SERVED_ODD);
	assert_string_equal(served.odd, "my file.yaml");
	assert_int_equal(served_add(&served, "a'\nb.yaml"), SERVED_ODD);
	assert_int_equal(served_add(&served, "_a.yaml"), SERVED_ODD);
	memset(path, 'a', 66);
	memcpy(path + 66, ".yaml", 6);
	assert_int_equal(served_add(&served, path), SERVED_ODD);
	assert_int_equal(served.odd_count, 4);
	assert_int_equal(served.count, 0);
	memcpy(path + SETTINGS_MAX_NAME, ".yaml", 6); /* is as long as a name may be */
	assert_int_equal(served_add(&served, path), SERVED_NEW);
	assert_int_equal(strlen(name(0)), SETTINGS_MAX_NAME);
	memcpy(path + SETTINGS_MAX_NAME, ".json", 6); /* has no room for its ending */
	assert_int_equal(served_add(&served, path), SERVED_ODD);
	for (size_t i = 0; i < SERVED_PATH; i++)
		path[i] = i % 2 ? '/' : 'a';
	memcpy(path + SERVED_PATH - 5, ".yml", 5);
	assert_int_equal(served_add(&served, path), SERVED_ODD);
}

static void add__more_than_there_is_room_for__is_said(void **state)
{
	char path[32];

	(void)state;
	for (int i = 0; i < SERVED_MAX; i++) {
		snprintf(path, sizeof(path), "a%d.yaml", i);
		assert_int_equal(served_add(&served, path), SERVED_NEW);
	}
	assert_false(served.full);
	assert_int_equal(served_add(&served, "b.yaml"), SERVED_FULL);
	assert_true(served.full);
}

static void find__takes_files_folder_by_folder(void **state)
{
	char folder[SCRATCH_PATH + 8], path[SCRATCH_PATH + 64];
	int fd;

	(void)state;
	snprintf(folder, sizeof(folder), "%s/team", dir);
	assert_int_equal(mkdir(folder, 0700), 0);
	scratch_write(folder, "app.json", "{}", 2);
	scratch_write(dir, "web.yaml", "a: 1\n", 5);
	scratch_write(dir, ".hidden.yaml", "a: 1\n", 5);
	snprintf(path, sizeof(path), "%s/fifo.yaml", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	snprintf(path, sizeof(path), "%s/loop", dir);
	assert_int_equal(symlink(".", path), 0);
	snprintf(path, sizeof(path), "%s/link.yaml", dir);
	assert_int_equal(symlink("web.yaml", path), 0);
	fd = origin_open(dir);
	assert_true(fd >= 0);
	served_find(&served, fd);
	close(fd);
	assert_int_equal(served.count, 3);
	assert_string_equal(name(0), "link");
	assert_string_equal(name(1), "team-app");
	assert_string_equal(name(2), "web");
}

static void write__is_a_configuration(void **state)
{
	const struct served_from from = {.url = "http://a:1",
		.push = "tcp://a:2",
		.server_key = "",
		.insecure = true,
		.files = "/it's",
		.more = "    interval: 1s\n"};
	struct buffer out;

	(void)state;
	buffer_init(&out, 4096);
	assert_int_equal(served_write(&served, &from, &out), 0);
	assert_int_equal(out.len, 0);
	served_add(&served, "team/app.yml");
	assert_int_equal(served_write(&served, &from, &out), 0);
	assert_string_equal(out.data,
		"push:\n  - endpoint: tcp://a:2\n    insecure: true\nconfigs:\n"
		"  team-app:\n    url: http://a:1/team/app.yml\n"
		"    file: '/it''s/team-app.yml'\n    topic: 'team/app'\n"
		"    interval: 1s\n");
	buffer_fini(&out);
}

static void write__with_a_key__names_it_and_no_topic_that_is_the_name(void **state)
{
	const struct served_from from = {.url = "http://a:1",
		.push = "tcp://a:2",
		.server_key = "KEY",
		.insecure = true,
		.files = "/run",
		.more = ""};
	struct buffer out;

	(void)state;
	buffer_init(&out, 4096);
	served_add(&served, "web.yaml");
	served_add(&served, "web.json");
	assert_int_equal(served_write(&served, &from, &out), 0);
	assert_string_equal(out.data,
		"push:\n  - endpoint: tcp://a:2\n    curve: {server_key: 'KEY'}\nconfigs:\n"
		"  web:\n    url: http://a:1/web.yaml\n    file: /run/web.yaml\n"
		"  web.json:\n    url: http://a:1/web.json\n    file: /run/web.json\n"
		"    topic: 'web'\n");
	buffer_fini(&out);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(add__document__is_a_config_of_its_paths_name),
		CASE(add__second_of_a_name__keeps_its_ending),
		CASE(add__what_is_no_document__is_left_alone),
		CASE(add__odd_characters__are_said),
		CASE(add__more_than_there_is_room_for__is_said),
		CASE(find__takes_files_folder_by_folder),
		CASE(write__is_a_configuration),
		CASE(write__with_a_key__names_it_and_no_topic_that_is_the_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

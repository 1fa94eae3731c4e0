/* pullet_explain(): what an error of opening a config means here; nearly the same names. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/explain.h"
#include "lib/pullet.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#define LONG "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" /* 65 letters */

static char dir[64], text[512];

static int make_dir(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "%s", "/tmp/pullet-explain-XXXXXX");
	return !mkdtemp(dir) || setenv("PULLET_RUNTIME_DIR", dir, 1);
}

static int remove_dir(void **state)
{
	char path[192];

	(void)state;
	for (const char *names =
			"web.snap\0web.gen\0web1.snap\0api.snap\0big.snap\0old.snap\0.x.snap\0we "
			"b.snap\0" LONG ".snap\0";
		*names; names += strlen(names) + 1) {
		snprintf(path, sizeof(path), "%s/%s", dir, names);
		unlink(path);
	}
	return rmdir(dir);
}

static void put(const char *name)
{
	char path[192];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s%s", dir, name, strchr(name, '.') > name ? "" : ".snap");
	f = fopen(path, "w");
	assert_non_null(f);
	fclose(f);
}

static void assert_says(const char *config, int error, const char *before, const char *after)
{
	char want[512];

	snprintf(want, sizeof(want), "%s%s%s", before, dir, after);
	assert_string_equal(pullet_explain(config, error, text, sizeof(text)), want);
}

static void explain__nothing_of_that_name__says_what_there_is(void **state)
{
	const char *nothing = "nothing is published under this name in ";

	(void)state;
	assert_says("wbe", -ENOENT, nothing, ", nor under any: is the agent running?");
	put(".x"); /* the agent's own, on its way */
	put("web.gen");
	put("we b");
	put(LONG);
	put("web");
	assert_says("web", -ENOENT, nothing, " yet (there is web)");
	assert_says("we", -ENOENT, nothing, " yet (there is web)"); /* too short to guess */
	put("api");
	assert_says("wbe", -ENOENT, nothing, ": did you mean 'web'?");
	assert_says("API", -ENOENT, nothing, ": did you mean 'api'?");
	pullet_explain("shop", -ENOENT, text, sizeof(text));
	assert_non_null(strstr(text, " yet (there is "));
	assert_non_null(strstr(text, "web"));
	put("old");
	put("big");
	put("web1");
	pullet_explain("wed", -ENOENT, text, sizeof(text));
	assert_non_null(strstr(text, ": did you mean '"));
	assert_says("shop", -ENOENT, nothing, " yet: 'pullet status --names' lists what there is");
	assert_string_equal(pullet_explain("./none.snap", -ENOENT, text, sizeof(text)),
		"there is no snapshot at this path");
	pullet_explain("wbe", -ENOENT, text, 60); /* cut, with its end */
	assert_int_equal(strlen(text), 59);
	remove_dir(NULL);
	assert_says("web", -ENOENT, "nothing is published under this name: ",
		": No such file or directory: is the agent running? PULLET_RUNTIME_DIR names "
		"another directory");
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(setenv("PULLET_RUNTIME_DIR", "/dev/null", 1), 0);
	assert_string_equal(pullet_explain("web", -ENOENT, text, sizeof(text)),
		"nothing is published under this name: /dev/null: Not a directory");
}

static void explain__what_may_not_be_read__names_the_directory_and_its_group(void **state)
{
	char path[192];

	(void)state;
	put("web");
	if (chown(dir, (uid_t)-1, 1)) {
		print_message("# only root may give a directory to a group\n");
		skip();
	}
	assert_int_equal(chmod(dir, 0750), 0);
	assert_says("none", -EACCES, "",
		" may be read by the group daemon only: add this program's user to it (usermod -aG "
		"daemon USER), and start the program again");
	assert_int_equal(chown(dir, (uid_t)-1, 543210), 0); /* has no name */
	assert_says("none", -EACCES, "",
		" may be read by the group 543210 only: add this program's user to it (usermod -aG "
		"543210 USER), and start the program again");
	assert_int_equal(chmod(dir, 0740), 0); /* and may not search it */
	pullet_explain("none", -EACCES, text, sizeof(text));
	assert_non_null(strstr(text, " may be read by root and the agent's user only"));
	assert_int_equal(chown(dir, (uid_t)-1, 0), 0);
	assert_int_equal(chmod(dir, 0750), 0);
	pullet_explain("none", -EACCES, text, sizeof(text));
	assert_non_null(strstr(text, " may be read by root and the agent's user only"));
	assert_says("web", -EACCES, "",
		"/web.snap may be read by root and the agent's user only: the agent publishes for "
		"the group that it runs with (Group= of its unit, or that of a setgid directory)");
	snprintf(path, sizeof(path), "%s/web.snap", dir);
	assert_int_equal(chown(path, (uid_t)-1, 1), 0);
	assert_int_equal(chmod(path, 0640), 0);
	pullet_explain("web", -EACCES, text, sizeof(text));
	assert_non_null(strstr(text, "/web.snap may be read by the group daemon only"));
	assert_int_equal(chmod(path, 0610), 0);
	pullet_explain("web", -EACCES, text, sizeof(text));
	assert_non_null(strstr(text, " may be read by root and the agent's user only"));
}

static void explain__a_directory_that_is_not_there__is_named_with_what_is_around_it(void **state)
{
	static const struct {
		const char *dir, *config, *names;
	} table[] = {{"none/of/these", "web", "none may be read by root"},
		{"none", "/none-of-these/web.snap",
			"/none-of-these may not be read by this program's user"},
		{"", "web", "/run"}, {NULL, "web", "/run"}};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		assert_int_equal(table[i].dir ? setenv("PULLET_RUNTIME_DIR", table[i].dir, 1)
					      : unsetenv("PULLET_RUNTIME_DIR"),
			0);
		pullet_explain(table[i].config, -EACCES, text, sizeof(text));
		assert_memory_equal(text, table[i].names, strlen(table[i].names));
	}
}

static void explain__a_file_given_by_its_path__has_no_agent(void **state)
{
	char path[192], want[256];
	char beside[256];

	(void)state;
	snprintf(path, sizeof(path), "%s/web.snap", dir);
	put("web");
	assert_int_equal(chmod(path, 0), 0);
	setenv("PULLET_RUNTIME_DIR", "/none-of-these", 1);
	pullet_explain(path, -EACCES, text, sizeof(text));
	snprintf(want, sizeof(want),
		"%s may not be read by this program's user: it belongs to the user %u, and "
		"its mode is 0000",
		path, (unsigned)geteuid());
	assert_string_equal(text, want);
	assert_string_equal(pullet_explain(path, -EBADMSG, text, sizeof(text)),
		"the snapshot is damaged: make it or copy it again");
	setenv("PULLET_RUNTIME_DIR", dir, 1); /* there it is one of the agent's */
	pullet_explain(path, -EACCES, text, sizeof(text));
	assert_non_null(strstr(text, " may be read by root and the agent's user only: "));
	unlink(path);
	assert_says(path, -ENOENT, "nothing is published under this name in ",
		", nor under any: is the agent running?");
	snprintf(beside, sizeof(beside), "%s-2/web.snap", dir);
	assert_string_equal(pullet_explain(beside, -ENOENT, text, sizeof(text)),
		"there is no snapshot at this path");
}

static void explain__the_users_own_agent_has_it__says_where(void **state)
{
	bool is_root = geteuid() == 0;
	char own[128], want[512], home[256];

	(void)state;
	snprintf(own, sizeof(own), "%s/pullet", dir);
	assert_int_equal(mkdir(own, 0755) | chmod(dir, 0755), 0);
	put("pullet/web.snap");
	unsetenv("PULLET_RUNTIME_DIR");
	setenv("XDG_RUNTIME_DIR", dir, 1);
	if (is_root) { /* which has no agent of its own */
		pullet_explain("web", -ENOENT, text, sizeof(text));
		assert_null(strstr(text, "your own"));
		assert_int_equal(seteuid(65534), 0);
	}
	pullet_explain("web", -ENOENT, text, sizeof(text));
	snprintf(want, sizeof(want), "your own agent publishes it in %s: set PULLET_RUNTIME_DIR=%s",
		own, own);
	assert_string_equal(text, want);
	pullet_explain("wbe", -ENOENT, text, sizeof(text));
	assert_null(strstr(text, "your own"));
	setenv("XDG_RUNTIME_DIR", "run", 1); /* relative: as if it were not there */
	unsetenv("XDG_STATE_HOME");
	setenv("HOME", dir, 1);
	pullet_explain("web", -ENOENT, text, sizeof(text));
	assert_null(strstr(text, "your own"));
	if (is_root)
		assert_int_equal(seteuid(0), 0);
	snprintf(want, sizeof(want), "%s-run", own);
	assert_int_equal(rename(own, want), 0);
	if (is_root)
		assert_int_equal(seteuid(65534), 0);
	setenv("XDG_STATE_HOME", dir, 1);
	pullet_explain("web", -ENOENT, text, sizeof(text));
	assert_non_null(strstr(text, "your own agent publishes it in "));
	assert_non_null(strstr(text, "/pullet-run: set PULLET_RUNTIME_DIR="));
	if (is_root)
		assert_int_equal(seteuid(0), 0);
	snprintf(home, sizeof(home), "%s/.local", dir);
	assert_int_equal(mkdir(home, 0755), 0);
	snprintf(home, sizeof(home), "%s/.local/state", dir);
	assert_int_equal(mkdir(home, 0755), 0);
	snprintf(want, sizeof(want), "%s-run", own);
	snprintf(home, sizeof(home), "%s/.local/state/pullet-run", dir);
	assert_int_equal(rename(want, home), 0);
	if (is_root)
		assert_int_equal(seteuid(65534), 0);
	unsetenv("XDG_STATE_HOME");
	pullet_explain("web", -ENOENT, text, sizeof(text));
	assert_non_null(strstr(text, "/.local/state/pullet-run: set PULLET_RUNTIME_DIR="));
	if (is_root)
		assert_int_equal(seteuid(0), 0);
	snprintf(want, sizeof(want), "%s/web.snap", home);
	assert_int_equal(unlink(want) | rmdir(home), 0);
	snprintf(home, sizeof(home), "%s/.local/state", dir);
	assert_int_equal(rmdir(home), 0);
	snprintf(home, sizeof(home), "%s/.local", dir);
	assert_int_equal(rmdir(home), 0);
}

static void explain__another_error__is_as_strerror_says(void **state)
{
	static const int errors[] = {-EIDRM, -EBADMSG, -EPROTO, -EINVAL, -ENOMEM};

	(void)state;
	for (size_t i = 0; i < COUNT(errors); i++)
		assert_string_equal(pullet_explain("web", errors[i], text, sizeof(text)),
			pullet_strerror(errors[i]));
}

static void explain__an_empty_name__is_said_to_be(void **state)
{
	struct pullet *p = NULL;
	int r = pullet_open("", PULLET_WAIT_FIRST, &p);

	(void)state;
	assert_string_equal(
		pullet_explain("", r, text, sizeof(text)), "the name of the config is empty");
	assert_null(p);
	assert_string_equal(
		pullet_explain("", -ENOMEM, text, sizeof(text)), pullet_strerror(-ENOMEM));
}

static void near__a_character_or_a_swap__and_no_more(void **state)
{
	static const struct {
		const char *a, *b;
		bool near;
	} table[] = {{"web", "web", true}, {"web", "wbe", true}, {"web", "we", true},
		{"web", "webs", true}, {"web", "wab", true}, {"web", "WEB", true},
		{"max_conns", "maxConns", true}, {"web", "abw", false}, {"web", "w", false},
		{"web", "wxyb", false}, {"web", "", false}, {"ab", "ba", true}, {"", "", true},
		{"abcd", "abdcd", true}, {"abcd", "badc", false}, {"a-b", "ab", true},
		{"abcd", "axbd", false},
		{LONG LONG LONG LONG LONG LONG LONG LONG "x",
			LONG LONG LONG LONG LONG LONG LONG LONG, true}};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		size_t a = strlen(table[i].a), b = strlen(table[i].b);

		assert_int_equal(explain_is_near(table[i].a, a, table[i].b, b), table[i].near);
		assert_int_equal(explain_is_near(table[i].b, b, table[i].a, a), table[i].near);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			explain__nothing_of_that_name__says_what_there_is, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(
			explain__what_may_not_be_read__names_the_directory_and_its_group, make_dir,
			remove_dir),
		cmocka_unit_test_setup_teardown(
			explain__a_directory_that_is_not_there__is_named_with_what_is_around_it,
			make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(
			explain__a_file_given_by_its_path__has_no_agent, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(
			explain__the_users_own_agent_has_it__says_where, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(
			explain__another_error__is_as_strerror_says, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(
			explain__an_empty_name__is_said_to_be, make_dir, remove_dir),
		cmocka_unit_test(near__a_character_or_a_swap__and_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Where an ordinary user's agent has its files, and that root's are the host's.
 *
 * Surprising: the host's places are below the test's directory, for those of this machine may be
 * there, or open to all.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "settings/settings.h"
#include "tests/unit/fixture/scratch.h"

#undef SETTINGS_DEFAULT_PATH
#undef SETTINGS_DEFAULT_STATE_DIR
#undef SETTINGS_DEFAULT_RUNTIME_DIR
#define SETTINGS_DEFAULT_PATH host_configuration
#define SETTINGS_DEFAULT_STATE_DIR host_state_dir
#define SETTINGS_DEFAULT_RUNTIME_DIR host_runtime_dir
static char host[SCRATCH_PATH + 8], host_configuration[sizeof(host) + 16],
	host_state_dir[sizeof(host) + 16], host_runtime_dir[sizeof(host) + 16];

#include "settings/places.c"

#define NOBODY 65534

static char dir[SCRATCH_PATH], path[PLACES_PATH], wanted[PLACES_PATH];
static uid_t was;
static const char *const variables[] = {
	"PULLET_CONFIG", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"};

/* As an ordinary user, whose home is an empty directory, and who says nothing else. */
static int become_user(void **state)
{
	(void)state;
	scratch_open(dir, "/tmp");
	snprintf(host, sizeof(host), "%s/host", dir);
	snprintf(host_configuration, sizeof(host_configuration), "%s/pullet.yaml", host);
	snprintf(host_state_dir, sizeof(host_state_dir), "%s/state", host);
	snprintf(host_runtime_dir, sizeof(host_runtime_dir), "%s/run", host);
	assert_int_equal(mkdir(host, 0555), 0);
	was = geteuid();
	if (was == 0) {
		assert_int_equal(chown(dir, NOBODY, NOBODY), 0);
		assert_int_equal(seteuid(NOBODY), 0);
	}
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		unsetenv(variables[i]);
	setenv("HOME", dir, 1);
	return 0;
}

static int become_who_it_was(void **state)
{
	(void)state;
	assert_int_equal(seteuid(was), 0);
	scratch_close(dir);
	return 0;
}

static const char *below(const char *name)
{
	snprintf(wanted, sizeof(wanted), "%s%s", dir, name);
	return wanted;
}

static void make_file(const char *name)
{
	FILE *f;

	snprintf(path, sizeof(path), "%s%s", dir, name);
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	f = fopen(path, "w");
	assert_non_null(f);
	fclose(f);
}

static void places__of_an_ordinary_user__are_in_the_home(void **state)
{
	(void)state;
	assert_string_equal(places_state_dir(path), below("/.local/state/pullet"));
	make_file("/.config/pullet/pullet.yaml");
	assert_string_equal(places_configuration(path), below("/.config/pullet/pullet.yaml"));
}

static void places__with_xdg_variables__are_there(void **state)
{
	(void)state;
	setenv("XDG_STATE_HOME", below("/state"), 1);
	setenv("XDG_RUNTIME_DIR", dir, 1);
	setenv("XDG_CONFIG_HOME", below("/config"), 1);
	make_file("/config/pullet/pullet.yaml");
	assert_string_equal(places_state_dir(path), below("/state/pullet"));
	assert_string_equal(places_runtime_dir(path), below("/pullet"));
	assert_string_equal(places_configuration(path), below("/config/pullet/pullet.yaml"));
}

static void places__when_the_hosts_may_be_written__are_the_hosts(void **state)
{
	(void)state;
	setenv("XDG_RUNTIME_DIR", dir, 1);
	assert_int_equal(seteuid(was), 0);
	assert_int_equal(chmod(host, 01777), 0);
	assert_int_equal(was == 0 ? seteuid(NOBODY) : 0, 0);
	assert_string_equal(places_runtime_dir(path), host_runtime_dir);
	assert_string_equal(places_state_dir(path), host_state_dir);
}

static void places__with_a_relative_variable__do_not_heed_it(void **state)
{
	(void)state;
	setenv("XDG_STATE_HOME", "state", 1);
	assert_string_equal(places_state_dir(path), below("/.local/state/pullet"));
}

static void runtime_dir__of_another_user__is_not_taken(void **state)
{
	char usual[64];
	int n = snprintf(usual, sizeof(usual), "/run/user/%u", (unsigned)geteuid());

	(void)state;
	setenv("XDG_RUNTIME_DIR", "/proc/1", 1);
	assert_true(places_own_runtime_dir(path));
	if (access(usual, W_OK) == 0)
		assert_int_equal(strncmp(path, usual, (size_t)n), 0);
	else
		assert_string_equal(path, below("/.local/state/pullet-run"));
}

static void places__without_a_home__are_the_hosts(void **state)
{
	(void)state;
	unsetenv("HOME");
	assert_string_equal(places_state_dir(path), SETTINGS_DEFAULT_STATE_DIR);
	assert_string_equal(places_configuration(path), SETTINGS_DEFAULT_PATH);
}

static void configuration__that_is_named__is_that(void **state)
{
	(void)state;
	make_file("/.config/pullet/pullet.yaml");
	setenv("PULLET_CONFIG", "/a", 1);
	assert_string_equal(places_configuration(path), "/a");
	setenv("PULLET_CONFIG", "", 1);
	assert_string_equal(places_configuration(path), below("/.config/pullet/pullet.yaml"));
}

static void make_above__makes_only_what_is_above_an_own_place(void **state)
{
	(void)state;
	places_make_above(below("/.local/state/pullet"));
	assert_int_equal(access(below("/.local/state"), F_OK), 0);
	assert_int_not_equal(access(below("/.local/state/pullet"), F_OK), 0);
	places_make_above(below("/typo/pullet"));
	assert_int_not_equal(access(below("/typo"), F_OK), 0);
}

static void places__of_root__are_the_hosts(void **state)
{
	(void)state;
	if (was != 0) {
		print_message("# only root can be root\n");
		skip();
	}
	assert_int_equal(seteuid(0), 0);
	setenv("XDG_STATE_HOME", dir, 1);
	setenv("XDG_RUNTIME_DIR", dir, 1);
	make_file("/.config/pullet/pullet.yaml");
	assert_string_equal(places_state_dir(path), SETTINGS_DEFAULT_STATE_DIR);
	assert_string_equal(places_runtime_dir(path), SETTINGS_DEFAULT_RUNTIME_DIR);
	assert_string_equal(places_configuration(path), SETTINGS_DEFAULT_PATH);
	assert_false(places_own_runtime_dir(path));
}

static void places__of_the_services_user__are_the_hosts_also_before_its_first_start(void **state)
{
	(void)state;
	setenv("HOME", SETTINGS_DEFAULT_STATE_DIR, 1);
	assert_string_equal(places_state_dir(path), SETTINGS_DEFAULT_STATE_DIR);
	assert_string_equal(places_configuration(path), SETTINGS_DEFAULT_PATH);
	setenv("HOME", below("/host/state-x"), 1);
	assert_string_not_equal(places_state_dir(path), SETTINGS_DEFAULT_STATE_DIR);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, become_user, become_who_it_was)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(places__of_an_ordinary_user__are_in_the_home),
		CASE(places__of_the_services_user__are_the_hosts_also_before_its_first_start),
		CASE(places__with_xdg_variables__are_there),
		CASE(places__when_the_hosts_may_be_written__are_the_hosts),
		CASE(places__with_a_relative_variable__do_not_heed_it),
		CASE(runtime_dir__of_another_user__is_not_taken),
		CASE(places__without_a_home__are_the_hosts),
		CASE(configuration__that_is_named__is_that),
		CASE(make_above__makes_only_what_is_above_an_own_place),
		CASE(places__of_root__are_the_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

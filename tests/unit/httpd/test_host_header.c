/* Host headers: whose they are. */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "httpd/host_header.h"

static char *const names[] = {(char[]){"metrics.example"}, (char[]){"Web.Example."}, NULL};

static void check(const char *const *hosts, bool ours)
{
	for (; *hosts; hosts++)
		if (host_header_is_ours(*hosts, "web-1", names) != ours)
			fail_msg("%s must be %s", *hosts, ours ? "ours" : "refused");
}

static void an_address__is_ours(void **state)
{
	static const char *const hosts[] = {"127.0.0.1", "127.0.0.1:9377", "10.1.2.3:80", "[::1]",
		"[::1]:9377", "[2001:db8::1]:1", "[::ffff:10.0.0.1]", NULL};

	(void)state;
	check(hosts, true);
}

static void what_is_almost_an_address__is_not(void **state)
{
	static const char *const hosts[] = {"127.0.0.1.evil.example", "0x7f.1", "2130706433",
		"127.1", "::1", "[::1", "[]", "[localhost]", "[127.0.0.1]",
		"127.0.0.1:", "127.0.0.1:80:80", "[::1]x:80", "[", "]", "[:80", "::1]", "256.0.0.1",
		"[fe80::1%25eth0]", NULL};

	(void)state;
	check(hosts, false);
}

static void localhost__is_ours(void **state)
{
	static const char *const hosts[] = {
		"localhost", "LocalHost:8377", "localhost.", "web.localhost:1", NULL};

	(void)state;
	check(hosts, true);
}

static void the_machine_and_configured_names__are_ours(void **state)
{
	static const char *const hosts[] = {"web-1", "WEB-1:9377", "web-1.", "metrics.example",
		"metrics.example:80", "web.example", "web.example.:80", NULL};

	(void)state;
	check(hosts, true);
}

static const char *machine;

/* As the C library's: a name that has no room with its NUL is an error. */
int gethostname(char *name, size_t len)
{
	if (strlen(machine) >= len) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(name, machine, strlen(machine) + 1);
	return 0;
}

static void the_longest_name_of_a_machine__is_ours(void **state)
{
	char name[HOST_NAME_MAX + 1];

	(void)state;
	memset(name, 'a', HOST_NAME_MAX);
	name[HOST_NAME_MAX] = '\0';
	machine = name;
	assert_true(host_header_is_this_machines(name, names));
	assert_false(host_header_is_this_machines("b", names));
	machine = "b";
	assert_true(host_header_is_this_machines("b:80", names));
	machine = "b."; /* with the dot of a whole name */
	assert_true(host_header_is_this_machines("b:80", names));
	assert_true(host_header_is_this_machines("b.", names));
	machine = "b";
	assert_false(host_header_is_this_machines(name, names));
}

static void any_other_name__is_not(void **state)
{
	static const char *const hosts[] = {"evil.example", "web-1.evil.example", "notlocalhost",
		".localhost", "localhost.evil.example", "xmetrics.example", "metrics.example.evil",
		"metrics.example@evil", "", ":80", ".", " localhost", "localhost ", NULL};
	char longest[400];

	(void)state;
	check(hosts, false);
	for (size_t i = 0; i < sizeof(longest); i++)
		longest[i] = 'a';
	longest[sizeof(longest) - 1] = '\0';
	assert_false(host_header_is_ours(longest, longest, NULL));
	for (size_t i = 0; i < 3; i++) { /* nor is it what was looked at before */
		static const char *const none[] = {"", ":80", "."};

		assert_true(host_header_is_ours("localhost", "web-1", names));
		assert_false(host_header_is_ours(none[i], "web-1", names));
		assert_true(host_header_is_ours("localhost", "web-1", names));
		assert_false(host_header_is_ours(longest, "web-1", names));
	}
}

static void longest_name__is_255_letters(void **state)
{
	char longest[258];

	(void)state;
	memset(longest, 'a', sizeof(longest));
	longest[255] = '\0';
	assert_true(host_header_is_ours(longest, longest, NULL));
	longest[255] = 'a';
	longest[256] = '\0';
	assert_false(host_header_is_ours(longest, longest, NULL));
}

static void nothing__is_no_name(void **state)
{
	(void)state;
	assert_false(host_header_is_ours(NULL, "web-1", names));
	assert_false(host_header_is_ours("", "", NULL));
	assert_false(host_header_is_ours(".", "", NULL));
	assert_false(host_header_is_ours("a", "", NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address__is_ours),
		cmocka_unit_test(what_is_almost_an_address__is_not),
		cmocka_unit_test(localhost__is_ours),
		cmocka_unit_test(the_machine_and_configured_names__are_ours),
		cmocka_unit_test(the_longest_name_of_a_machine__is_ours),
		cmocka_unit_test(any_other_name__is_not),
		cmocka_unit_test(longest_name__is_255_letters),
		cmocka_unit_test(nothing__is_no_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

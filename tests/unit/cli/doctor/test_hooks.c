/* `pullet doctor`, the hooks: programs that the agent runs, and processes that it signals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>

#include <cmocka.h>

#include "tests/unit/fixture/examined.h"

#define UNITS                                                                                      \
	" -> let it leave a flag (run: [/usr/bin/touch, /run/pullet-changed/NAME]), and enable "   \
	"pullet-changed@NAME.path, which does the rest as root: pulletd(8)\n"
#define GOOD "ok web: programs and processes are there, and the agent may use them\n"

/* A config with these members. */
static void put_hooks(const char *members)
{
	settings_free(doctor.settings);
	doctor.settings = scratch_settings(
		"configs:\n  web: {url: 'http://127.0.0.1:1/w', type: yaml, snapshot: true%s}\n"
		"  app: {url: 'http://127.0.0.1:1/w', type: yaml, snapshot: true}\n",
		in_dir(members));
}

static const char *examine(void)
{
	doctor_hooks(&doctor, &list);
	return findings_of(NULL);
}

/* ---- programs ---- */

static void config__without_hooks__has_no_finding(void **state)
{
	(void)state;
	put_hooks("");
	assert_string_equal(examine(), "");
	put_file("run-me", 0755);
	put_hooks(", reload: {run: [@/run-me]}");
	assert_string_equal(examine(), GOOD);
	doctor.only = "app";
	assert_string_equal(examine(), "");
	doctor.only = "web";
	doctor.who.can_try = false;
	assert_string_equal(examine(), "");
}

static void program__of_each_hook__is_named_by_its_key(void **state)
{
	static const struct {
		const char *members, *key;
	} rows[] = {
		{", check: {run: [@/nope, '{path}']}", "check"},
		{", probe: {run: [@/nope], for: 10s, every: 1s}", "probe"},
		{", reload: {run: [@/nope]}", "reload"},
		{", format: {run: [@/nope]}, file: @/out/w", "format"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char expected[512];

		put_hooks(rows[i].members);
		snprintf(expected, sizeof(expected),
			"error web: %s: there is no program %s/nope: No such file or directory -> "
			"install it, or name its absolute path\n",
			rows[i].key, dir);
		assert_string_equal(examine(), expected);
	}
}

static void program__has_a_mode_and_a_kind(void **state)
{
	static const struct {
		mode_t mode;
		bool no_new_privileges;
		const char *expected;
	} rows[] = {
		{0755, true, GOOD},
		{0644, false,
			"error web: check: @/run-me is not a program -> chmod +x, or name another "
			"one\n"},
		{0757, false,
			"error web: check: everybody can change the program @/run-me, which robot "
			"runs -> chmod o-w\n"},
		{04755, false, GOOD},
		{04755, true,
			"error web: check: @/run-me is set-user-ID, which the service forbids "
			"(NoNewPrivileges): it runs as robot"},
		{02755, true,
			"error web: check: @/run-me is set-user-ID, which the service forbids "
			"(NoNewPrivileges): it runs as robot"},
	};

	char expected[1024];

	(void)state;
	put_hooks(", check: {run: [@/run-me, '{path}']}");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		put_file("run-me", rows[i].mode);
		doctor.who.no_new_privileges = rows[i].no_new_privileges;
		snprintf(expected, sizeof(expected), "%s%s", in_dir(rows[i].expected),
			strstr(rows[i].expected, "set-user-ID") ? UNITS : "");
		assert_string_equal(examine(), expected);
	}
	put_hooks(", check: {run: [@/out, '{path}']}");
	assert_string_equal(examine(), in_dir("error web: check: @/out is not a program -> chmod "
					      "+x, or name another one\n"));
}

static void program__that_the_agent_may_not_run__is_an_error(void **state)
{
	(void)state;
	if (!we_are_root())
		skip();
	put_file("run-me", 0750);
	assert_int_equal(chmod(dir, 0711), 0);
	put_hooks(", check: {run: [@/run-me, '{path}']}");
	doctor.who.uid = doctor.who.gid = OTHER;
	doctor.who.capabilities = 0;
	assert_string_equal(
		examine(), in_dir("error web: check: robot may not run @/run-me: Permission denied "
				  "-> let the agent's user execute it, and enter its directory\n"));
	doctor.who.can_try = false;
	assert_string_equal(examine(), "");
	assert_int_equal(chmod(dir, 0700), 0);
	assert_int_equal(seteuid(OTHER), 0);
	doctor_hooks(&doctor, &list);
	assert_int_equal(seteuid(0), 0);
	assert_string_equal(
		findings_of(NULL), in_dir("note web: check: you may not look at @/run-me -> run "
					  "this as root or as the agent's user\n"));
}

static void service_tool__for_an_agent_that_is_not_root__is_a_warning(void **state)
{
	static const char *const names[] = {
		"systemctl", "service", "rc-service", "invoke-rc.d", "supervisorctl", "sh"};

	(void)state;
	doctor.who.can_try = false;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char expected[1024] = "", name[64], members[128];
		char path[SCRATCH_PATH + 64];

		snprintf(name, sizeof(name), "out/%s", names[i]);
		put_file(name, 0700);
		snprintf(path, sizeof(path), "%s/%s", dir, name);
		assert_int_equal(chmod(path, 0755), 0);
		snprintf(members, sizeof(members), ", reload: {run: [@/%s]}", name);
		put_hooks(members);
		doctor.who.uid = OTHER;
		if (strcmp(names[i], "sh") != 0)
			snprintf(expected, sizeof(expected),
				"warning web: reload: %s will refuse robot, who is not root, "
				"unless a rule of polkit allows it%s",
				path, UNITS);
		assert_string_equal(examine(), expected);
		doctor.who.uid = 0;
		assert_string_equal(examine(), "");
		doctor.who.uid = OTHER;
		doctor.who.known = false;
		assert_string_equal(examine(), "");
		doctor.who.known = true;
	}
}

/* ---- signals ---- */

static void put_number(const char *number)
{
	scratch_write(dir, "pid", number, strlen(number));
	assert_int_equal(chmod(in_dir("@/pid"), 0644), 0);
	put_hooks(", reload: {signal: HUP, pidfile: @/pid}");
}

static void pidfile__holds_a_number_alone(void **state)
{
	static const char wrong[] =
		"error web: reload: @/pid does not hold the number of a process "
		"-> name the file that holds the number alone\n";
	static const char gone[] =
		"warning web: reload: @/pid names process 2147483646, which is not there -> start "
		"the application, or remove what it left there\n";
	static const struct {
		const char *text, *expected;
	} rows[] = {
		{"2147483646", gone},
		{"2147483646\n", gone},
		{"2147483646\nmore", gone},
		{"2147483646 x", wrong},
		{"2147483648", wrong},
		{"99999999999999", wrong},
		{"", wrong},
		{"hello", wrong},
		{"1", wrong},
		{"0", wrong},
		{"-5", wrong},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		put_number(rows[i].text);
		assert_string_equal(examine(), in_dir(rows[i].expected));
	}
	assert_int_equal(unlink(in_dir("@/pid")), 0);
	assert_string_equal(examine(),
		in_dir("warning web: reload: there is no @/pid: changes are not notified -> start "
		       "the application, or name the file that it writes its number into\n"));
}

static void process__of_another_user__needs_a_right(void **state)
{
	char number[32], expected[1024];

	(void)state;
	snprintf(number, sizeof(number), "%d\n", (int)getpid());
	put_number(number);
	assert_string_equal(examine(), GOOD);
	doctor.who.uid = geteuid() + 1;
	doctor.who.capabilities = 0;
	doctor.who.can_try = false;
	snprintf(expected, sizeof(expected),
		"error web: reload: robot may not signal process %d, which belongs to another user "
		"(uid %u)%s",
		(int)getpid(), geteuid(), UNITS);
	examine();
	assert_non_null(strstr(text, expected));
	doctor.who.capabilities = UINT64_C(1) << 5; /* CAP_KILL */
	examine();
	assert_null(strstr(text, "may not signal"));
	doctor.who.capabilities = UINT64_C(1) << 4;
	examine();
	assert_non_null(strstr(text, "may not signal"));
	doctor.who.known = false;
	assert_string_equal(examine(), "");
}

static void pidfile__in_the_hands_of_others__is_refused(void **state)
{
	char number[32], expected[1024];

	(void)state;
	if (!we_are_root())
		skip();
	snprintf(number, sizeof(number), "%d\n", (int)getpid());
	put_number(number);
	assert_int_equal(chmod(in_dir("@/pid"), 0666), 0);
	examine();
	assert_int_equal(strncmp(text,
				 "error web: reload: the agent will say: cannot read the "
				 "pidfile ",
				 strlen("error web: reload: the agent will say: cannot read the "
					"pidfile ")),
		0);
	assert_non_null(strstr(text, " -> give it to root (chown) and chmod go-w\n"));
	assert_int_equal(chmod(in_dir("@/pid"), 0644), 0);
	assert_int_equal(chown(in_dir("@/pid"), OTHER, OTHER), 0);
	snprintf(expected, sizeof(expected),
		"warning web: reload: the agent will refuse %s/pid: it is in the hands of uid "
		"%u, and process %d belongs to uid 0 -> give the file and its directory to root, "
		"or to the user of the process\n",
		dir, OTHER, (int)getpid());
	assert_string_equal(examine(), expected);
	doctor.who.known = false;
	assert_string_equal(examine(), GOOD);
}

static void pidfile__that_cannot_be_read__says_who_may_not(void **state)
{
	(void)state;
	if (!we_are_root())
		skip();
	put_number("2147483646");
	assert_int_equal(chmod(in_dir("@/pid"), 0600), 0);
	assert_int_equal(chmod(dir, 0711), 0);
	doctor.who.uid = doctor.who.gid = OTHER;
	doctor.who.capabilities = 0;
	assert_string_equal(
		examine(), in_dir("error web: reload: robot may not read @/pid: Permission denied "
				  "-> let the agent's user read it\n"));
	doctor.who.can_try = false;
	assert_int_equal(seteuid(OTHER), 0);
	doctor_hooks(&doctor, &list);
	assert_int_equal(seteuid(0), 0);
	assert_string_equal(findings_of(NULL),
		in_dir("note web: reload: you may not read @/pid -> run this as root or as the "
		       "agent's user\n"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, examined_set_up, examined_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(config__without_hooks__has_no_finding),
		CASE(program__of_each_hook__is_named_by_its_key),
		CASE(program__has_a_mode_and_a_kind),
		CASE(program__that_the_agent_may_not_run__is_an_error),
		CASE(service_tool__for_an_agent_that_is_not_root__is_a_warning),
		CASE(pidfile__holds_a_number_alone),
		CASE(process__of_another_user__needs_a_right),
		CASE(pidfile__in_the_hands_of_others__is_refused),
		CASE(pidfile__that_cannot_be_read__says_who_may_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

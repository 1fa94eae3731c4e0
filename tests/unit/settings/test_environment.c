/*
 * ${NAME} in the agent's configuration: what it may be and where, what is refused and where that
 * stands, the file of env_file beside the environment.
 */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "settings/settings.h"
#include "tests/unit/fixture/scratch.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static char dir[SCRATCH_PATH], told[16][1024];
static size_t told_count;

static void tell(void *arg, const char *message)
{
	(void)arg;
	assert_true(told_count < COUNT(told));
	snprintf(told[told_count++], sizeof(told[0]), "%s", message);
}

/* Of a file with this in the place of its interval. NULL: refused. */
static struct settings *read_interval(const char *value)
{
	struct settings *s = NULL;
	char text[2048];

	snprintf(text, sizeof(text),
		"configs:\n  web:\n    url: http://h/web.yaml\n    file: /run/web.yaml\n"
		"    interval: %s\n",
		value);
	told_count = 0;
	settings_parse("t.yaml", text, strlen(text), tell, NULL, &s);
	return s;
}

/* Of a file of that directory, with this behind a good config. NULL: refused. */
__attribute__((format(printf, 1, 2))) static struct settings *load_with(const char *format, ...)
{
	char text[8192], path[SCRATCH_PATH + 32];
	struct settings *s = NULL;
	va_list args;
	int n;

	n = snprintf(text, sizeof(text),
		"configs:\n  web:\n    url: http://h/web.yaml\n    file: /run/web.yaml\n");
	va_start(args, format);
	vsnprintf(text + n, sizeof(text) - (size_t)n, format, args);
	va_end(args);
	scratch_write(dir, "pullet.yaml", text, strlen(text));
	snprintf(path, sizeof(path), "%s/pullet.yaml", dir);
	told_count = 0;
	settings_load(path, tell, NULL, &s);
	return s;
}

static void environment_has(const char *text)
{
	scratch_write(dir, "environment", text, strlen(text));
}

static void assert_told(const char *message)
{
	if (told_count != 1 || strcmp(told[0], message) != 0)
		for (size_t i = 0; i < told_count; i++)
			print_error("%s\n", told[i]);
	assert_int_equal(told_count, 1);
	assert_string_equal(told[0], message);
}

static void reference__is_what_the_variable_says(void **state)
{
	static const struct {
		const char *value;
		uint64_t ms;
	} cases[] = {
		{"${PULLET_T}", 30000},
		{"'${PULLET_T}'", 30000},
		{"\"${PULLET_T}\"", 30000},
		{"1${PULLET_N}s", 142000},
		{"${PULLET_N}m${PULLET_T}", 42 * 60000 + 30000},
		{"${PULLET_EMPTY}7s", 7000},
		{"|-\n      ${PULLET_T}", 30000},
	};

	(void)state;
	setenv("PULLET_T", "30s", 1);
	setenv("PULLET_N", "42", 1);
	setenv("PULLET_EMPTY", "", 1);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct settings *s = read_interval(cases[i].value);

		if (!s)
			print_error("%s: %s\n", cases[i].value, told[0]);
		assert_non_null(s);
		assert_int_equal(s->configs[0]->interval_ms, cases[i].ms);
		settings_free(s);
	}
}

static void reference__that_is_none__is_refused_with_its_place(void **state)
{
	static const char form[] =
		"t.yaml:5:15: after ${ a name of letters, digits and _ is wanted, then }; for the "
		"two characters themselves write $${";
	static const struct {
		const char *value, *message;
	} cases[] = {
		{"${PULLET_UNSET}",
			"t.yaml:5:15: ${PULLET_UNSET} is not set: set it in the environment of the "
			"agent, or in the file that env_file names"},
		{"'${PULLET_T}${PULLET_UNSET}'",
			"t.yaml:5:15: ${PULLET_UNSET} is not set: set it in the environment of the "
			"agent, or in the file that env_file names"},
		{"${}", form},
		{"${1A}", form},
		{"${PULLET_T", form},
		{"'${PULLET_T:-1s}'", form},
		{"${PULLET T}", form},
		{"'${'", form},
	};

	(void)state;
	setenv("PULLET_T", "30s", 1);
	unsetenv("PULLET_UNSET");
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_null(read_interval(cases[i].value));
		assert_told(cases[i].message);
	}
}

static void reference__each_bad_one__is_reported(void **state)
{
	(void)state;
	unsetenv("PULLET_UNSET");
	assert_null(load_with("    interval: ${PULLET_UNSET}\n    history: ${%s}\n", ""));
	assert_int_equal(told_count, 2);
	assert_non_null(strstr(told[0], "/pullet.yaml:5:15: ${PULLET_UNSET} is not set"));
	assert_non_null(strstr(told[1], "/pullet.yaml:6:14: after ${ a name"));
}

static void two_dollars__are_the_characters_themselves(void **state)
{
	struct settings *s;

	(void)state;
	setenv("PULLET_T", "x", 1);
	s = load_with("    check: {run: [/bin/sh, -c, '%s', '{path}']}\n",
		"echo $${PULLET_T} $$ $HOME ${PULLET_T} $$$${A}");
	assert_non_null(s);
	assert_string_equal(s->configs[0]->check.argv[2], "echo ${PULLET_T} $$ $HOME x $$${A}");
	settings_free(s);
}

/* A number is one where it stands without quotes, and a text in quotes, as everywhere. */
static void number__without_quotes__is_a_number(void **state)
{
	struct settings *s;

	(void)state;
	setenv("PULLET_N", "12", 1);
	s = load_with("    history: ${PULLET_N}\n%s", "");
	assert_non_null(s);
	assert_int_equal(s->configs[0]->history, 12);
	settings_free(s);
	assert_null(load_with("    history: '${PULLET_N}'\n%s", ""));
	assert_non_null(strstr(told[0], ":5:14: history must be a whole number, but it is a text"));
	setenv("PULLET_N", "7", 1); /* one character is a word, and none is a text */
	s = load_with("    history: ${PULLET_N}\n%s", "");
	assert_non_null(s);
	assert_int_equal(s->configs[0]->history, 7);
	settings_free(s);
	setenv("PULLET_N", "", 1);
	assert_null(load_with("    history: ${PULLET_N}\n%s", ""));
	assert_non_null(strstr(told[0], ":5:14: history must be a whole number, but it is a text"));
	setenv("PULLET_N", "1e999", 1);
	assert_null(load_with("    history: ${PULLET_N}\n%s", ""));
	assert_non_null(strstr(told[0], ":5:14: history must be a whole number"));
}

/* What it says is one value, whatever it looks like. */
static void value__is_never_a_key_or_a_list(void **state)
{
	static const char *const values[] = {
		"10s\n    history: 3", "[10s]", "{a: b}", "10s # more", "*a", "10s\n"};

	(void)state;
	for (size_t i = 0; i < COUNT(values); i++) {
		setenv("PULLET_T", values[i], 1);
		assert_null(read_interval("${PULLET_T}"));
		assert_int_equal(told_count, 1);
		assert_non_null(strstr(told[0], "t.yaml:5:15: interval: "));
		assert_non_null(strstr(told[0], " is not a duration"));
	}
}

static void key__that_is_unknown__keeps_its_place(void **state)
{
	(void)state;
	setenv("PULLET_N", "12", 1);
	assert_null(load_with("    histery:   ${PULLET_N}\n%s", ""));
	assert_non_null(strstr(told[0], ":5:5: "));
}

static void key__with_a_reference__is_no_reference(void **state)
{
	(void)state;
	setenv("PULLET_T", "history", 1);
	assert_null(load_with("    ${PULLET_T}: 3\n%s", ""));
	assert_int_equal(told_count, 1);
	assert_non_null(strstr(told[0], "unknown key \"${PULLET_T}\" in config \"web\""));
}

static void value__of_more_than_the_bound__is_refused(void **state)
{
	char *longest = malloc(64 * 1024 + 2);

	(void)state;
	assert_non_null(longest);
	memset(longest, 'a', 64 * 1024 + 1);
	longest[64 * 1024 + 1] = '\0';
	setenv("PULLET_T", longest, 1);
	assert_null(read_interval("${PULLET_T}"));
	assert_told("t.yaml:5:15: is longer than 65536 bytes with what ${} brings");
	free(longest);
	setenv("PULLET_T", "1s", 1);
}

static void reference__to_a_bad_value__is_named(void **state)
{
	(void)state;
	setenv("PULLET_T", "7", 1);
	assert_null(read_interval("${PULLET_T}"));
	assert_told(
		"t.yaml:5:15: interval: \"7\" has no unit: write it with ms, s, m, h or d behind "
		"the number; ${PULLET_T} stands there");
	assert_null(read_interval("\"${PULLET_T}\""));
	assert_non_null(strstr(told[0], "; ${PULLET_T} stands there"));
	assert_null(read_interval("7"));
	assert_null(strstr(told[0], "stands there"));
}

static void env_file__says_what_the_environment_does_not(void **state)
{
	static const char more[] =
		"configs: {db: {url: 'http://h/db', file: '${PULLET_E}', interval: '${PULLET_Q}', "
		"topic: 'a${PULLET_U}b'}}\n";
	struct settings *s;
	char part[SCRATCH_PATH + 16];

	(void)state;
	environment_has("# of this host\n\n  PULLET_E=/run/first.yaml\r\nPULLET_T=1s\n"
			"PULLET_E=/run/second.yaml\nPULLET_Q='11s'\nPULLET_R=\"web # 2\"\n"
			"PULLET_U=\"\n"); /* one quote quotes nothing */
	setenv("PULLET_T", "30s", 1);
	unsetenv("PULLET_E");
	snprintf(part, sizeof(part), "%s/conf.d", dir);
	assert_int_equal(mkdir(part, 0700), 0);
	scratch_write(part, "a.yaml", more, strlen(more));
	s = load_with("    interval: ${PULLET_T}\nenv_file: %s/environment\n", dir);
	assert_non_null(s);
	assert_int_equal(s->configs[0]->interval_ms, 30000);
	assert_string_equal(s->configs[1]->file, "/run/second.yaml");
	assert_int_equal(s->configs[1]->interval_ms, 11000);
	assert_string_equal(s->configs[1]->topic, "a\"b");
	settings_free(s);
}

static void env_file__with_a_line_that_is_none__names_it(void **state)
{
	static const char *const lines[] = {"export A=b", "A", "A =b", "1A=b", "=b", "A-B=c"};
	char text[64], want[SCRATCH_PATH + 128];

	(void)state;
	for (size_t i = 0; i < COUNT(lines); i++) {
		snprintf(text, sizeof(text), "GOOD=1\n\n%s\n", lines[i]);
		environment_has(text);
		assert_null(load_with("env_file: %s/environment\n", dir));
		snprintf(want, sizeof(want),
			"%s/environment:3:1: is not NAME=VALUE: a name has letters, digits and _, "
			"and the = stands right behind it",
			dir);
		assert_told(want);
	}
	scratch_write(dir, "environment", "A=b\0c", 5);
	assert_null(load_with("env_file: %s/environment\n", dir));
	snprintf(want, sizeof(want), "%s/environment:1:1: holds a NUL: it is not a text", dir);
	assert_told(want);
}

static void env_file__that_is_not_there__is_said(void **state)
{
	char want[SCRATCH_PATH + 128];

	(void)state;
	assert_null(load_with("env_file: %s/nowhere\n", dir));
	snprintf(want, sizeof(want),
		"%s/nowhere: cannot be read: No such file or directory: make it, or name another "
		"one",
		dir);
	assert_told(want);
	assert_null(load_with("env_file: %s\n", "somewhere"));
	assert_non_null(strstr(told[0], "/pullet.yaml:5:11: env_file "));
	assert_null(load_with("env_file: [%s]\n", "/x"));
	assert_non_null(strstr(told[0], "/pullet.yaml:5:11: env_file must be a text"));
}

static void env_file__in_conf_d__is_refused(void **state)
{
	char part[SCRATCH_PATH + 16];

	(void)state;
	snprintf(part, sizeof(part), "%s/conf.d", dir);
	assert_int_equal(mkdir(part, 0700), 0);
	scratch_write(part, "a.yaml", "env_file: /etc/environment\n", 27);
	assert_null(load_with("%s", ""));
	assert_int_equal(told_count, 1);
	assert_non_null(strstr(told[0], "/conf.d/a.yaml:1:1: env_file belongs into "));
	assert_non_null(strstr(told[0], "/pullet.yaml: it is read before the files of conf.d"));
}

/* The servers of a file that is missed may be there. */
static void error__in_the_file_of_the_servers__is_the_only_one(void **state)
{
	static const char used[] =
		"configs: {db: {from: [{server: main, path: /db}], file: /run/db}}\n";
	char part[SCRATCH_PATH + 16], want[SCRATCH_PATH + 128];

	(void)state;
	unsetenv("PULLET_E");
	snprintf(part, sizeof(part), "%s/conf.d", dir);
	assert_int_equal(mkdir(part, 0700), 0);
	scratch_write(part, "a.yaml", used, sizeof(used) - 1);
	assert_null(load_with("%s", "servers: {main: {urls: ['http://${PULLET_E}']}}\n"));
	snprintf(want, sizeof(want),
		"%s/pullet.yaml:5:25: ${PULLET_E} is not set: set it in the environment of the "
		"agent, or in the file that env_file names",
		dir);
	assert_told(want);
	assert_null(load_with("%s", ""));
	assert_non_null(strstr(told[0], "there is no server \"main\": add it under"));
}

/* A reload sees a file that changed: the config is another one then. */
static void fingerprint__changes_with_what_the_file_says(void **state)
{
	struct settings *s[3];

	(void)state;
	unsetenv("PULLET_E");
	for (int i = 0; i < 3; i++) {
		environment_has(i < 2 ? "PULLET_E=10s\n" : "PULLET_E=20s\n");
		s[i] = load_with("    interval: ${PULLET_E}\nenv_file: %s/environment\n", dir);
		assert_non_null(s[i]);
	}
	assert_memory_equal(&s[0]->configs[0]->print, &s[1]->configs[0]->print,
		sizeof(s[0]->configs[0]->print));
	assert_memory_not_equal(&s[0]->configs[0]->print, &s[2]->configs[0]->print,
		sizeof(s[0]->configs[0]->print));
	for (int i = 0; i < 3; i++)
		settings_free(s[i]);
}

static int make_directory(void **state)
{
	(void)state;
	scratch_open(dir, scratch_memory());
	return 0;
}

static int remove_directory(void **state)
{
	(void)state;
	scratch_close(dir);
	return 0;
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(reference__is_what_the_variable_says),
		CASE(reference__that_is_none__is_refused_with_its_place),
		CASE(reference__each_bad_one__is_reported),
		CASE(two_dollars__are_the_characters_themselves),
		CASE(number__without_quotes__is_a_number),
		CASE(value__is_never_a_key_or_a_list),
		CASE(key__that_is_unknown__keeps_its_place),
		CASE(key__with_a_reference__is_no_reference),
		CASE(value__of_more_than_the_bound__is_refused),
		CASE(reference__to_a_bad_value__is_named),
		CASE(env_file__says_what_the_environment_does_not),
		CASE(env_file__with_a_line_that_is_none__names_it),
		CASE(env_file__that_is_not_there__is_said),
		CASE(env_file__in_conf_d__is_refused),
		CASE(error__in_the_file_of_the_servers__is_the_only_one),
		CASE(fingerprint__changes_with_what_the_file_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

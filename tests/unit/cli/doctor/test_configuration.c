/* `pullet doctor`, the configuration: its errors, and what is allowed and still seldom meant. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/log.h"
#include "tests/unit/fixture/examined.h"

#define KEY "RWSYMC7n8ADplDfW2kiEMNo8BX8IPthSF1HxnEXGBzB/KwlR4ZfoNZlN"

static char path[SCRATCH_PATH + 16];

static int set_up(void **state)
{
	examined_set_up(state);
	snprintf(path, sizeof(path), "%s/p.yaml", dir);
	doctor.path = path;
	return 0;
}

/* All that is found in this file. */
static const char *examine_text(const char *words)
{
	scratch_write(dir, "p.yaml", words, strlen(words));
	settings_free(doctor.settings);
	doctor.settings = NULL;
	doctor_configuration(&doctor, &list);
	return findings_of(NULL);
}

/* What is found of a config with these members, beside that it is good. */
static const char *examine_config(const char *more, const char *members)
{
	static const char good[] = ": 1 config, no error\n";
	char words[2048];
	const char *end;

	snprintf(words, sizeof(words),
		"%sservers:\n  l: {urls: ['http://127.0.0.1:1']}\n"
		"  e: {kind: etcd, urls: ['http://127.0.0.1:1'], watch: true}\n"
		"  o: {urls: ['https://127.0.0.1:1', 'http://192.0.2.1']}\n"
		"configs:\n  web: {type: yaml%s}\n",
		more, members);
	end = strstr(examine_text(words), good);
	if (!end)
		fail_msg("%s of %s", text, words);
	return end + strlen(good);
}

static void file__with_errors__names_each_place(void **state)
{
	char expected[1024];

	(void)state;
	snprintf(expected, sizeof(expected),
		"error %s:2:9: unknown key \"nope\" in config \"web\": did you mean", path);
	examine_text("configs:\n  web: {nope: 1, url: 'http://127.0.0.1:1/w', snapshot: true}\n");
	assert_true(doctor.bad_settings);
	assert_null(doctor.settings);
	assert_int_equal(strncmp(text, "error ", 6), 0);
	assert_int_equal(strncmp(text + 6, path, strlen(path)), 0);
	assert_int_equal(strncmp(text + 6 + strlen(path), ":2:9: unknown key", 17), 0);
	snprintf(expected, sizeof(expected),
		"\nnote %s: with 1 error in it, servers, push, hooks and published files were not "
		"looked at -> put it right, and run this again\n",
		path);
	assert_non_null(strstr(text, expected));
	examine_text("configs:\n  web: {nope: 1, nor: 1, url: 'http://127.0.0.1:1/w', snapshot: "
		     "true}\n");
	assert_non_null(strstr(text, ": with 2 errors in it, servers,"));
	assert_int_equal(unlink(path), 0);
	doctor_configuration(&doctor, &list);
	findings_of(NULL);
	assert_true(doctor.bad_settings);
	assert_non_null(strstr(text, "error "));
}

static void file__with_errors__still_says_where_the_agent_is(void **state)
{
	static const struct {
		const char *text, *dir; /* NULL: the place of who names none */
	} rows[] = {
		{"agent: {state_dir: /s, runtime_dir: /r/x}\nconfigs: [\n", "/r/x"},
		{"agent:\n  runtime_dir: \"/r y\" # here\n\t", "/r y"},
		{"agent:\n  'runtime_dir' : /r\n\t", "/r"},
		{"agent:\n  \"runtime_dir\": '/r'\n  x", "/r"},
		{"# runtime_dir: /no\nagent: {my_runtime_dir: /no, runtime_dir: ${DIR}\n", NULL},
		{"x: a#b runtime_dir: /r\n\t", "/r"},
		{"runtime_dir:", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		examine_text(rows[i].text);
		assert_true(doctor.bad_settings);
		assert_string_equal(
			doctor.runtime_dir, rows[i].dir ? rows[i].dir : client_runtime_dir());
	}
}

static void file__that_is_good__has_its_configs_counted(void **state)
{
	char expected[1024];

	(void)state;
	examine_text("configs:\n  web: {url: 'http://127.0.0.1:1/w', snapshot: true}\n");
	snprintf(expected, sizeof(expected), "ok %s: 1 config, no error\n", path);
	assert_string_equal(text, expected);
	assert_false(doctor.bad_settings);
	examine_text("configs:\n  web: {url: 'http://127.0.0.1:1/w', snapshot: true}\n"
		     "  db: {url: 'http://127.0.0.1:1/d', snapshot: true}\n");
	snprintf(expected, sizeof(expected), "ok %s: 2 configs, no error\n", path);
	assert_string_equal(text, expected);
}

#define LOCAL ", from: [{server: l, path: /w}], snapshot: true"
#define PLAIN                                                                                      \
	"warning web: comes over plain http from another host, unsigned: anybody on the way can "  \
	"change it -> use https, or sign it (verify: public_key)\n"
#define SLOW                                                                                       \
	"note web: nothing tells the agent of a change, and interval is five minutes or more -> "  \
	"set push, or watch: true of a server that can, or a shorter interval\n"
#define LEFT                                                                                       \
	"note web: drift: leave: what somebody else writes into the file stays, and is not "       \
	"reported -> use heal, or report\n"
#define UNTOLD                                                                                     \
	"note web: probe checks an application that was not notified of the change -> set "        \
	"reload, unless the application notices the file by itself\n"

static void config__that_is_seldom_meant__is_noted_from_its_bound_on(void **state)
{
	static const struct {
		const char *more, *members, *expected;
	} rows[] = {
		{"", LOCAL, ""},
		{"", ", from: [{server: l, path: /w}, {server: o, path: /w}], snapshot: true",
			PLAIN},
		{"",
			", from: [{server: o, path: /w}], snapshot: true, verify: {public_key: " KEY
			"}",
			""},
		{"", LOCAL ", interval: 10s, timeout: 10s", ""},
		{"", LOCAL ", interval: 10s, timeout: 11s",
			"note web: timeout is longer than interval: a server that hangs delays "
			"pulls by more than one interval -> set timeout below interval\n"},
		{"", LOCAL ", jitter: 1%", ""},
		{"", LOCAL ", jitter: 0%",
			"note web: jitter is 0%: hosts that were started together pull in the same "
			"moment for ever -> leave jitter at its 10%\n"},
		{"", LOCAL ", interval: 299s", ""},
		{"", LOCAL ", interval: 300s", SLOW},
		{"push:\n- {endpoint: 'ipc:///nowhere/p'}\n", LOCAL ", interval: 300s", ""},
		{"",
			", from: [{server: l, path: /w}, {server: e, path: /w}], snapshot: true, "
			"interval: 300s",
			""},
		{"", ", from: [{server: l, path: /w}], file: /nowhere/w, drift: leave", LEFT},
		{"", LOCAL ", drift: leave", ""},
		{"", ", from: [{server: l, path: /w}], file: /nowhere/w, drift: report", ""},
		{"", LOCAL ", history: 2", ""},
		{"", LOCAL ", history: 1",
			"note web: history is 1: there is no version to roll back to -> keep at "
			"least 2\n"},
		{"", LOCAL ", probe: {run: [/bin/true], for: 10s, every: 1s}", UNTOLD},
		{"", LOCAL ", probe: {url: 'http://127.0.0.1:1/', for: 10s, every: 1s}", UNTOLD},
		{"",
			LOCAL ", probe: {run: [/bin/true], for: 10s, every: 1s}, reload: {run: "
			      "[/bin/true]}",
			""},
		{"agent: {listen: '127.0.0.1:1'}\n", LOCAL, ""},
		{"agent: {listen: '0.0.0.0:1'}\n", LOCAL,
			"warning listen: 0.0.0.0:1 can be reached from other hosts: names of "
			"configs and servers, versions and errors are shown to every client -> "
			"listen on 127.0.0.1, or let a firewall say who may come\n"},
		{"push:\n- {endpoint: 'tcp://192.0.2.1:1', insecure: true}\n", LOCAL,
			"warning tcp://192.0.2.1:1: push messages in plain text from another host: "
			"anybody on the way can make all hosts pull at once -> use curve\n"},
		{"agent: {log: {level: debug}}\n", LOCAL,
			"note log: level is debug: several lines for each pull -> set level: "
			"info\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *found = examine_config(rows[i].more, rows[i].members);

		if (strcmp(found, rows[i].expected) != 0)
			fail_msg("row %zu is %s", i, found);
	}
	doctor.only = "other";
	assert_string_equal(examine_config("", LOCAL ", history: 1"), "");
	doctor.only = "web";
	assert_string_not_equal(examine_config("", LOCAL ", history: 1"), "");
}

static void header__that_is_a_secret__is_known_by_its_name(void **state)
{
	static const struct {
		const char *header;
		bool secret;
	} rows[] = {{"X-Auth", true}, {"Token", true}, {"Api-KEY", true}, {"My-Secret", true},
		{"password", true}, {"Cookie", true}, {"Credentials", true}, {"X-Site", false},
		{"Accept", false}};

	(void)state;
	assert_int_equal(chmod(dir, 0755), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char words[512], expected[512];

		snprintf(words, sizeof(words),
			"servers:\n  s: {urls: ['http://127.0.0.1:1'], auth: {headers: {%s: "
			"abc}}}\n"
			"configs:\n  web: {from: [{server: s, path: /w}], snapshot: true}\n",
			rows[i].header);
		put_file("p.yaml", 0600);
		assert_int_equal(chmod(path, 0640), 0);
		assert_null(strstr(examine_text(words), "header"));
		assert_int_equal(chmod(path, 0644), 0);
		snprintf(expected, sizeof(expected),
			"warning s: the header %s is in the configuration, which everybody on this "
			"host can read -> put it into a file of its own (headers: NAME: {file: "
			"PATH}), or take the right to read this one from others (chmod o-r)\n",
			rows[i].header);
		examine_text(words);
		assert_int_equal(strstr(text, expected) != NULL, rows[i].secret);
		assert_int_equal(chmod(path, 0602), 0);
		examine_text(words);
		assert_null(strstr(text, "header"));
		snprintf(expected, sizeof(expected),
			"error %s: everybody on this host can write in it, and so choose the "
			"programs that the agent runs -> chmod o-w\n",
			path);
		assert_non_null(strstr(text, expected));
		assert_int_equal(chmod(dir, 0700), 0);
		assert_null(strstr(examine_text(words), "everybody"));
		assert_int_equal(chmod(dir, 0755), 0);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, examined_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(file__with_errors__names_each_place),
		CASE(file__with_errors__still_says_where_the_agent_is),
		CASE(file__that_is_good__has_its_configs_counted),
		CASE(config__that_is_seldom_meant__is_noted_from_its_bound_on),
		CASE(header__that_is_a_secret__is_known_by_its_name),
	};

	log_setup(LOG_LEVEL_ERR, LOG_FORMAT_TEXT);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

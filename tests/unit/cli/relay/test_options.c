/* The command line of `pullet relay`: what is set by each option, and for which source. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/common/cli.h"
#include "cli/relay/options.h"
#include "tests/unit/fixture/command.h"

#define KEY "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"

static struct relay_setup setup;
static int result;

/* What a command would do with them: arguments outlive the setup. */
static int read_setup(int argc, char **argv)
{
	static char words[COMMAND_ARGUMENTS][512];
	char *lasting[COMMAND_ARGUMENTS + 1] = {NULL};

	relay_setup_fini(&setup);
	memset(&setup, 0, sizeof(setup));
	for (int i = 0; i < argc; i++) {
		snprintf(words[i], sizeof(words[i]), "%s", argv[i]);
		lasting[i] = words[i];
	}
	result = relay_setup_read(&setup, argc, lasting);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	relay_setup_fini(&setup);
	memset(&setup, 0, sizeof(setup));
	return 0;
}

static void setup__without_options__has_its_defaults(void **state)
{
	(void)state;
	RUN(read_setup, "pullet relay", "--dir", "/d");
	assert_int_equal(result, -1);
	assert_string_equal(setup.command, "pullet relay");
	assert_string_equal(setup.push, "tcp://127.0.0.1:7377");
	assert_int_equal(setup.publishing.queue, 100);
	assert_false(setup.publishing.insecure);
	assert_int_equal(setup.relaying.heartbeat_ms, 5000);
	assert_int_equal(setup.relaying.spread_ms, 0);
	assert_int_equal(setup.relaying.upstreams, 0);
	assert_int_equal(setup.dir_count, 1);
	assert_string_equal(setup.dirs[0], "/d");
	assert_int_equal(setup.origin_count + setup.prefix_count + setup.upstream_count, 0);
	assert_null(setup.config);
}

static void names_to_listen_for__are_few_and_have_a_form(void **state)
{
	const char *arguments[OPTIONS_NAMES + 6] = {
		"pullet relay", "--dir", "/d", "--listen=127.0.0.1:1"};
	size_t count = 4;

	(void)state;
	for (int i = 0; i <= OPTIONS_NAMES; i++) {
		command_run(read_setup, arguments);
		assert_int_equal(result, -1);
		for (int k = 0; k < i; k++)
			assert_string_equal(setup.listen_names[k], k % 2 ? "b.example" : "a");
		assert_null(setup.listen_names[i]);
		arguments[count++] = i % 2 ? "--listen-name=b.example" : "--listen-name=a";
	}
	command_run(read_setup, arguments);
	assert_int_equal(result, CLI_USAGE);
	assert_shows(command.err, "names can be named with --listen-name");
	RUN(read_setup, "pullet relay", "--dir", "/d", "--listen=127.0.0.1:1", "--listen-name=a b");
	assert_int_equal(result, CLI_USAGE);
	assert_shows(command.err, "--listen-name 'a b' ");
}

static void options__of_servers__belong_to_the_one_before(void **state)
{
	const struct settings_server *own;

	(void)state;
	RUN(read_setup, "pullet relay", "--etcd", "http://a:1//,https://b:2/x/", "--prefix", "/e/",
		"--prefix", "/f/", "--consul", "http://c:3", "--prefix", "k/", "--server", "s",
		"--prefix", "/", "-c", "/p.yaml", "--push", "tcp://127.0.0.1:0");
	assert_int_equal(result, -1);
	assert_string_equal(setup.push, "tcp://127.0.0.1:0");
	assert_string_equal(setup.config, "/p.yaml");
	assert_int_equal(setup.origin_count, 3);
	own = &setup.origins[0].own;
	assert_int_equal(own->kind, SETTINGS_ETCD);
	assert_int_equal(own->url_count, 2);
	assert_string_equal(own->urls[0], "http://a:1");
	assert_string_equal(own->urls[1], "https://b:2/x");
	assert_string_equal(own->name, "http://a:1");
	assert_int_equal(own->connect_timeout_ms, 3000);
	assert_int_equal(own->max_in_flight, 1);
	assert_int_equal(own->max_bytes, SETTINGS_MAX_BYTES_DEFAULT);
	assert_null(setup.origins[0].name);
	assert_int_equal(setup.origins[0].prefixes, 2);
	assert_int_equal(setup.origins[1].own.kind, SETTINGS_CONSUL);
	assert_int_equal(setup.origins[1].own.url_count, 1);
	assert_string_equal(setup.origins[1].own.urls[0], "http://c:3");
	assert_int_equal(setup.origins[1].prefixes, 1);
	assert_string_equal(setup.origins[2].name, "s");
	assert_int_equal(setup.origins[2].prefixes, 1);
	assert_int_equal(setup.prefix_count, 4);
	assert_string_equal(setup.prefixes[0].text, "/e/");
	assert_ptr_equal(setup.prefixes[0].origin, &setup.origins[0]);
	assert_string_equal(setup.prefixes[1].text, "/f/");
	assert_ptr_equal(setup.prefixes[1].origin, &setup.origins[0]);
	assert_string_equal(setup.prefixes[2].text, "k/");
	assert_ptr_equal(setup.prefixes[2].origin, &setup.origins[1]);
	assert_string_equal(setup.prefixes[3].text, "/");
	assert_ptr_equal(setup.prefixes[3].origin, &setup.origins[2]);
}

static void options__of_upstreams__belong_to_the_one_before(void **state)
{
	(void)state;
	RUN(read_setup, "pullet relay", "--upstream", "tcp://192.0.2.1:1",
		"--upstream-curve-server-key", KEY, "--upstream-curve-secret-key", "/k",
		"--upstream-heartbeat", "100ms", "--upstream", "tcp://192.0.2.2:1",
		"--upstream-insecure", "--upstream", "ipc:///u", "--upstream-heartbeat", "1h",
		"--heartbeat", "100ms", "--spread", "1h");
	assert_int_equal(result, -1);
	assert_int_equal(setup.upstream_count, 3);
	assert_int_equal(setup.relaying.upstreams, 3);
	assert_int_equal(setup.relaying.heartbeat_ms, 100);
	assert_int_equal(setup.relaying.spread_ms, 3600000);
	assert_string_equal(setup.upstreams[0].endpoint, "tcp://192.0.2.1:1");
	assert_string_equal(setup.upstreams[0].server_key, KEY);
	assert_string_equal(setup.upstreams[0].secret_key_file, "/k");
	assert_int_equal(setup.upstreams[0].heartbeat_ms, 100);
	assert_false(setup.upstream_insecure[0]);
	assert_string_equal(setup.upstreams[1].endpoint, "tcp://192.0.2.2:1");
	assert_null(setup.upstreams[1].server_key);
	assert_null(setup.upstreams[1].secret_key_file);
	assert_int_equal(setup.upstreams[1].heartbeat_ms, 5000);
	assert_true(setup.upstream_insecure[1]);
	assert_int_equal(setup.upstreams[2].heartbeat_ms, 3600000);
	assert_false(setup.upstream_insecure[2]);
}

static void options__of_the_publisher__reach_it(void **state)
{
	(void)state;
	RUN(read_setup, "pullet relay", "--dir", "/a", "--dir", "/b", "--curve-secret-key", "/s",
		"--curve-allow", "/l", "--insecure");
	assert_int_equal(result, -1);
	assert_int_equal(setup.dir_count, 2);
	assert_string_equal(setup.dirs[1], "/b");
	assert_string_equal(setup.publishing.secret_key_file, "/s");
	assert_string_equal(setup.publishing.allow_file, "/l");
	assert_true(setup.publishing.insecure);
}

/* Each is refused with exit code and sentence; the bound itself is taken. */
static void options__beyond_a_bound__are_refused(void **state)
{
	static const struct {
		const char *a, *b, *c, *sentence;
	} rows[] = {
		{"--dir=/d", "--heartbeat=100ms", NULL, NULL},
		{"--dir=/d", "--heartbeat=99ms", NULL,
			"--heartbeat takes 100ms to 1h, not '99ms'\n"},
		{"--dir=/d", "--heartbeat=1h", NULL, NULL},
		{"--dir=/d", "--heartbeat=3601s", NULL,
			"--heartbeat takes 100ms to 1h, not '3601s'\n"},
		{"--dir=/d", "--heartbeat=soon", NULL,
			"--heartbeat takes a duration like 500ms, 10s, 5m or 1h, not 'soon'\n"},
		{"--dir=/d", "--spread=0s", NULL, NULL},
		{"--dir=/d", "--spread=3601s", NULL, "--spread takes 0s to 1h, not '3601s'\n"},
		{"--upstream=ipc:///u", "--upstream-heartbeat=99ms", NULL,
			"--upstream-heartbeat takes 100ms to 1h, not '99ms'\n"},
		{"--upstream=ipc:///u", "--upstream-heartbeat=3601s", NULL,
			"--upstream-heartbeat takes 100ms to 1h, not '3601s'\n"},
		{"--etcd=http://h:1", "--prefix=", NULL, "--prefix ends in '/'"},
		{"--etcd=http://h:1", "--prefix=/", NULL, NULL},
		{"--consul=http://h:1", "--dir=/d", NULL, "a server needs a --prefix behind it"},
		{"--upstream=tcp://127.0.0.1:1", NULL, NULL, NULL},
		{"--upstream=tcp://127.0.0.1:1", "--upstream-curve-secret-key=/f",
			"--upstream-insecure",
			"--upstream-curve-secret-key needs --upstream-curve-server-key beside it"},
		{"--upstream-curve-secret-key=/f", NULL, NULL,
			"--upstream-curve-secret-key belongs to an upstream: name it first"},
		{"--upstream-curve-server-key=" KEY, NULL, NULL,
			"--upstream-curve-server-key belongs to an upstream: name it first"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		RUN(read_setup, "pullet relay", rows[i].a, rows[i].b, rows[i].c);
		if (rows[i].sentence) {
			assert_int_equal(result, CLI_USAGE);
			assert_shows(command.err, rows[i].sentence);
		} else {
			assert_int_equal(result, -1);
			assert_string_equal(command.err, "");
		}
	}
}

/* Of each list so many fit, and one more does not. */
static void lists__have_room_for_so_many(void **state)
{
	static const struct {
		const char *option, *sentence;
	} rows[] = {
		{"--dir=/d", "directories can be named"},
		{"--upstream=ipc:///u", "upstreams can be named"},
		{"--prefix=/p/", "prefixes can be named"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *arguments[COMMAND_ARGUMENTS + 1] = {
			"pullet relay", "--etcd=http://h:1", "--prefix=/p/"};
		size_t n = i == 2 ? 2 : 3, end;

		for (end = n + RELAY_SETUP_MAX; n < end; n++)
			arguments[n] = rows[i].option;
		assert_true(n < COMMAND_ARGUMENTS);
		command_run(read_setup, arguments);
		assert_int_equal(result, -1);
		arguments[n] = rows[i].option;
		command_run(read_setup, arguments);
		assert_int_equal(result, CLI_USAGE);
		assert_shows(command.err, rows[i].sentence);
	}
}

#define CASE(name) cmocka_unit_test_teardown(name, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(setup__without_options__has_its_defaults),
		CASE(names_to_listen_for__are_few_and_have_a_form),
		CASE(options__of_servers__belong_to_the_one_before),
		CASE(options__of_upstreams__belong_to_the_one_before),
		CASE(options__of_the_publisher__reach_it),
		CASE(options__beyond_a_bound__are_refused),
		CASE(lists__have_room_for_so_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

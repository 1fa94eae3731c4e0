/* Which etcd a command asks, by the agent's configuration or by options, and what is no choice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/common/cli.h"
#include "cli/fleet/etcd.h"
#include "tests/unit/fixture/command.h"

static char path[SCRATCH_PATH + 32];
static struct etcd_options options;
static int (*check)(void);

/* In a command, for its sentences are collected. */
static int run_check(int argc, char **argv)
{
	(void)argc;
	options.command = argv[0];
	return check();
}

static void run(int (*what)(void), struct etcd_options o)
{
	options = o;
	check = what;
	RUN(run_check, "pullet x");
}

static char chosen[256];

static int open_and_name(void)
{
	struct etcd *e;
	int r = etcd_open(&options, &e);

	chosen[0] = '\0';
	if (r)
		return r;
	snprintf(chosen, sizeof(chosen), "%s %s %s", etcd_name(e), etcd_prefix(e),
		etcd_rollout_key(e) ? etcd_rollout_key(e) : "-");
	etcd_close(e);
	return CLI_OK;
}

static int check_options(void)
{
	return etcd_check_options(&options);
}

static void put_settings(const char *report)
{
	char text[2048];

	snprintf(text, sizeof(text),
		"servers:\n"
		"  first: {kind: etcd, urls: ['http://127.0.0.1:1']}\n"
		"  main: {kind: etcd, urls: ['http://127.0.0.1:2', 'http://127.0.0.1:3']}\n"
		"  web: {urls: ['http://127.0.0.1:4']}\n"
		"%s"
		"configs:\n"
		"  web: {url: 'http://h/w', file: /run/w, rollout: {server: main, path: /w.r}}\n"
		"  odd: {url: 'http://h/o', file: /run/o, rollout: {server: web, path: /o.r}}\n"
		"  bare: {url: 'http://h/b', file: /run/b}\n",
		report);
	scratch_write(played.dir, "pullet.yaml", text, strlen(text));
}

static int set_up(void **state)
{
	(void)state;
	alarm(20);
	played_open();
	played_stop();
	snprintf(path, sizeof(path), "%s/pullet.yaml", played.dir);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	played_close();
	return 0;
}

#define FILE_SAYS(member, value) ((struct etcd_options){.file = path, .member = value})

static void file__names_the_etcd_of_its_report_or_another(void **state)
{
	(void)state;
	put_settings("report: {server: main, prefix: /p/}\n");
	run(open_and_name, (struct etcd_options){.file = path});
	assert_ended(CLI_OK, "", "");
	assert_string_equal(chosen, "http://127.0.0.1:2 /p/ -");
	run(open_and_name, FILE_SAYS(server, "first"));
	assert_string_equal(chosen, "http://127.0.0.1:1 /p/ -");
	run(open_and_name, FILE_SAYS(prefix, "/other/"));
	assert_string_equal(chosen, "http://127.0.0.1:2 /other/ -");
	run(open_and_name, FILE_SAYS(server, "none"));
	assert_int_equal(command.code, CLI_CONFIG);
	assert_shows(command.err, "/pullet.yaml has no server none\n");
	run(open_and_name, FILE_SAYS(server, "web"));
	assert_ended(CLI_CONFIG, "", "pullet x: the server web is not of kind etcd\n");
	put_settings("");
	run(open_and_name, (struct etcd_options){.file = path});
	assert_int_equal(command.code, CLI_CONFIG);
	assert_shows(command.err, " has no report: name an etcd with --etcd or --server\n");
	setenv("PULLET_CONFIG", path, 1);
	run(open_and_name, (struct etcd_options){.server = "first"});
	unsetenv("PULLET_CONFIG");
	assert_string_equal(chosen, "http://127.0.0.1:1 " RECEIPT_PREFIX " -");
	run(open_and_name, (struct etcd_options){.file = "/nowhere.yaml"});
	assert_int_equal(command.code, CLI_CONFIG);
	assert_shows(command.err, "pullet x: the agent's configuration names the etcd; without it "
				  "use --etcd\n");
}

static void file__names_the_etcd_of_a_rollout_document(void **state)
{
	(void)state;
	put_settings("report: {server: first}\n");
	run(open_and_name, FILE_SAYS(rollout_of, "web"));
	assert_ended(CLI_OK, "", "");
	assert_string_equal(chosen, "http://127.0.0.1:2 " RECEIPT_PREFIX " /w.r");
	run(open_and_name, FILE_SAYS(rollout_of, "none"));
	assert_int_equal(command.code, CLI_NOT_FOUND);
	assert_shows(command.err, "/pullet.yaml has no config none\n");
	run(open_and_name, FILE_SAYS(rollout_of, "bare"));
	assert_int_equal(command.code, CLI_CONFIG);
	assert_shows(command.err, "pullet x: bare has no rollout in ");
	assert_shows(command.err, ": give it `rollout: {server: NAME, path: KEY}`, on all hosts\n");
	run(open_and_name, FILE_SAYS(rollout_of, "odd"));
	assert_ended(CLI_CONFIG, "",
		"pullet x: the rollout document of odd is not in an etcd: write it as that server "
		"takes it\n");
}

#define URL(...) ((struct etcd_options){.url = "http://127.0.0.1:9//", __VA_ARGS__})

static void options__name_an_etcd(void **state)
{
	(void)state;
	run(open_and_name, URL(.prefix = "/q/"));
	assert_string_equal(chosen, "http://127.0.0.1:9 /q/ -"); /* without its slashes */
	run(open_and_name, URL(.prefix = "/q"));
	assert_ended(CLI_USAGE, "", "pullet x: --prefix must end with /\n");
	run(open_and_name, URL(.prefix = ""));
	assert_ended(CLI_USAGE, "", "pullet x: --prefix must end with /\n");
	run(open_and_name, (struct etcd_options){.url = "ftp://h"});
	assert_int_equal(command.code, CLI_USAGE);
	assert_shows(command.err, "pullet x: the address of --etcd ");
	run(open_and_name, URL(.user = "u"));
	assert_ended(CLI_USAGE, "", "pullet x: --user and --password-file belong together\n");
	run(open_and_name, URL(.password_file = "/p"));
	assert_ended(CLI_USAGE, "", "pullet x: --user and --password-file belong together\n");
	run(open_and_name, URL(.user = "u", .password_file = "/p"));
	assert_ended(CLI_OK, "", "");
	run(open_and_name, URL(.key = "/k"));
	assert_ended(CLI_USAGE, "", "pullet x: --key needs --cert\n");
	run(open_and_name, URL(.cert = "/c", .key = "/k"));
	assert_ended(CLI_OK, "", "");
}

static void options__of_both_ways__exclude_each_other(void **state)
{
	static const struct etcd_options apart[] = {
		{.user = "u"}, {.password_file = "p"}, {.ca = "c"}, {.cert = "c"}, {.key = "k"}};

	(void)state;
	for (size_t i = 0; i < sizeof(apart) / sizeof(apart[0]); i++) {
		run(check_options, apart[i]);
		assert_ended(CLI_USAGE, "",
			"pullet x: --user, --password-file, --ca, --cert and --key belong to "
			"--etcd\n");
	}
	run(check_options, URL(.file = "f"));
	assert_ended(
		CLI_USAGE, "", "pullet x: --etcd is used alone: without --config and --server\n");
	run(check_options, URL(.server = "s"));
	assert_int_equal(command.code, CLI_USAGE);
	run(check_options, URL(.user = "u", .password_file = "p", .ca = "c"));
	assert_ended(CLI_OK, "", "");
	run(check_options, (struct etcd_options){.file = "f", .server = "s", .prefix = "/p/"});
	assert_ended(CLI_OK, "", "");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(file__names_the_etcd_of_its_report_or_another),
		CASE(file__names_the_etcd_of_a_rollout_document),
		CASE(options__name_an_etcd),
		CASE(options__of_both_ways__exclude_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

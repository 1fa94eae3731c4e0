/*
 * `pullet doctor`: what it finds of a configuration, an agent that is played, servers and files,
 * each from a directory that has that one thing wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/common/cli.h"
#include "cli/doctor/doctor.h"
#include "tests/unit/fixture/command.h"

#define STATUS(head, configs)                                                                      \
	"{\"version\":\"" PULLET_VERSION "\"," head                                                \
	"\"configuration\":{\"loaded_ms\":9999999999999},"                                         \
	"\"configs\":[" configs "]}"
#define WEB "  web: {from: [{server: d, path: /web.yaml}], snapshot: true, interval: 1h}\n"

static char path[SCRATCH_PATH + 64];

static int set_up(void **state)
{
	(void)state;
	alarm(60);
	played_open();
	snprintf(path, sizeof(path), "%s/pullet.yaml", played.dir);
	scratch_write(played.dir, "web.yaml", "port: 1\n", 8);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	played_close();
	return 0;
}

static void put_settings(const char *more, const char *configs)
{
	char text[8192];

	snprintf(text, sizeof(text),
		"agent: {state_dir: %s/state, runtime_dir: %s}\n"
		"servers:\n  d: {kind: file, urls: ['file://%s']}\n%sconfigs:\n%s",
		played.dir, played.dir, played.dir, more, configs);
	scratch_write(played.dir, "pullet.yaml", text, strlen(text));
}

/* Of a program or a file, below the directory, with a mode. */
static void put_file(const char *name, const char *text, mode_t mode)
{
	char file[SCRATCH_PATH + 64];

	scratch_write(played.dir, name, text, strlen(text));
	snprintf(file, sizeof(file), "%s/%s", played.dir, name);
	assert_int_equal(chmod(file, mode), 0);
}

static int examine(void)
{
	return RUN(cli_doctor, "pullet doctor", "-c", path, "--timeout", "5s");
}

/* The text with the directory in the place of each "@". */

static const char *in_dir(const char *format)
{
	static char text[4][4096];
	static unsigned next;
	char *p = text[next++ % 4];
	size_t len = 0;

	for (; *format && len < sizeof(text[0]) - SCRATCH_PATH; format++)
		if (*format == '@')
			len += (size_t)snprintf(p + len, SCRATCH_PATH, "%s", played.dir);
		else
			p[len++] = *format;
	p[len] = '\0';
	return p;
}

/* ---- the configuration ---- */

static void configuration__with_errors__exits_78_and_names_places(void **state)
{
	(void)state;
	put_settings("", "  web: {nonsense: 1}\n");
	played_answers("GET /v1/status", 200, STATUS("", ""));
	assert_int_equal(examine(), CLI_CONFIG);
	assert_shows(command.out, "configuration\n  error   ");
	assert_shows(command.out, "unknown key \"nonsense\" in config \"web\"");
	assert_shows(command.out,
		"errors in it, servers, push, hooks and published files were not looked at");
	assert_int_equal(RUN(cli_doctor, "pullet doctor", "-c", "/nowhere.yaml", "--timeout", "1s"),
		CLI_CONFIG);
}

static void configuration__with_what_is_seldom_meant__is_noted(void **state)
{
	(void)state;
	put_settings("",
		"  web: {url: 'http://192.0.2.1/w.yaml', file: /tmp/nowhere/w, jitter: 0%, "
		"interval: 5m, timeout: 10m, drift: leave, probe: {run: [/bin/true]}}\n");
	played_stop();
	RUN(cli_doctor, "pullet doctor", "-c", path, "--timeout", "100ms");
	if (command.code != CLI_FAILED)
		print_message("%s", command.out);
	assert_int_equal(command.code, CLI_FAILED);
	assert_shows(command.out, "comes over plain http from another host, unsigned");
	assert_shows(command.out, "timeout is longer than interval");
	assert_shows(command.out, "no agent runs here");
}

static void config__that_there_is_not__exits_2(void **state)
{
	(void)state;
	put_settings("", WEB);
	played_answers("GET /v1/status", 200, STATUS("", ""));
	assert_int_equal(RUN(cli_doctor, "pullet doctor", "-c", path, "nope"), CLI_NOT_FOUND);
	assert_shows(command.err, "has no config 'nope'");
}

static void json__is_a_list_of_findings(void **state)
{
	(void)state;
	put_settings("", WEB);
	played_answers("GET /v1/status", 200,
		STATUS("", "{\"name\":\"web\",\"state\":\"ok\",\"generation\":1}"));
	RUN(cli_doctor, "pullet doctor", "-c", path, "--json");
	assert_int_equal(command.out[0], '[');
	assert_shows(command.out, "{\"check\":\"configuration\",\"subject\":\"");
	assert_shows(command.out,
		"\"severity\":\"ok\",\"finding\":\"1 config, no error\",\"remedy\":null}");
}

/* ---- the agent ---- */

static void agent__that_is_well__is_good(void **state)
{
	(void)state;
	put_settings("", WEB);
	played_answers("GET /v1/status", 200,
		STATUS("", "{\"name\":\"web\",\"state\":\"ok\",\"generation\":1}"));
	examine();
	assert_shows(command.out, "servers\n  ok      file://");
	assert_shows(command.out, ": 1 document came, the slowest in ");
	assert_shows(command.out, "runtime_dir");
	assert_null(strstr(command.out, "nothing is published yet"));
}

static void agent__whose_configs_are_in_trouble__says_each(void **state)
{
	(void)state;
	put_settings("", "  a: {from: [{server: d, path: /web.yaml}], snapshot: true}\n"
			 "  b: {from: [{server: d, path: /web.yaml}], snapshot: true}\n"
			 "  c: {from: [{server: d, path: /web.yaml}], snapshot: true}\n"
			 "  e: {from: [{server: d, path: /web.yaml}], snapshot: true}\n"
			 "  f: {from: [{server: d, path: /web.yaml}], snapshot: true}\n");
	played_answers("GET /v1/status", 200,
		"{\"version\":\"0.0.9\",\"configuration\":{\"file\":\"/"
		"other.yaml\",\"error\":\"bad\","
		"\"errors\":2,\"loaded_ms\":1},"
		"\"push\":[{\"endpoint\":\"tcp://"
		"p:1\",\"state\":\"silent\"},{\"state\":\"connected\"}],"
		"\"configs\":["
		"{\"name\":\"a\",\"state\":\"waiting\",\"last_error\":\"404\",\"cause\":\"not "
		"found\"},"
		"{\"name\":\"b\",\"state\":\"stale\",\"generation\":1,\"age_ms\":90000,\"last_"
		"error\":\"x\","
		"\"cause\":\"this host\"},"
		"{\"name\":\"c\",\"state\":\"failing\",\"generation\":1,\"last_error\":\"y\","
		"\"rejected\":"
		"{\"by\":\"schema\",\"why\":\"/a\"},\"explanation\":[\"the server has version x, "
		"rejected by the schema: /a\",\"under way\"],\"drifted\":true},"
		"{\"name\":\"e\",\"state\":\"ok\",\"generation\":1,\"rejected\":{\"by\":\"pin\","
		"\"why\":\"p\"},"
		"\"pin\":{\"by\":\"root\"},\"suspension\":{\"by\":\"root\",\"reason\":\"r\"},"
		"\"overrides\":[{\"key\":\"k\"}]},"
		"{\"name\":\"f\",\"state\":\"ok\",\"generation\":1,\"reload\":{\"state\":"
		"\"failed\",\"error\":"
		"\"exit 1\"},\"probe\":{\"state\":\"failed\",\"error\":\"exit 2\"}}]}");
	assert_int_equal(examine(), CLI_FAILED);
	assert_shows(command.out, "a: nothing is published yet: 404 -> see servers, below");
	assert_shows(command.out,
		"b: stale: no server has confirmed it for 90 s: x -> see files, below");
	assert_shows(command.out, "c: the server has version x, rejected by the schema: /a");
	assert_shows(command.out, "c: what is published was changed by somebody else");
	assert_shows(command.out, "c: under way -> pullet explain c");
	assert_shows(command.out, "e: p -> pullet unpin e");
	assert_shows(command.out, "e: pinned by root: what the server has is not taken");
	assert_shows(command.out, "e: suspended by root: r: the server is not asked");
	assert_shows(command.out, "e: some values are overridden on this host");
	assert_shows(command.out, "f: the reload after the last change failed: exit 1");
	assert_shows(command.out, "f: the last probe of a version failed: exit 2");
	assert_shows(command.out,
		"tcp://p:1: the agent's push channel is silent: pulls go on by interval");
	assert_shows(command.out, "it runs version 0.0.9, installed is " PULLET_VERSION);
	assert_shows(command.out, "the agent refused it when it was last reloaded, and runs the "
				  "one before: bad (and more)");
	assert_shows(command.out, "the agent that runs reads /other.yaml");
}

static void agent__that_read_an_older_file__is_to_be_reloaded(void **state)
{
	(void)state;
	put_settings("", WEB);
	played_answers("GET /v1/status", 200,
		"{\"version\":\"" PULLET_VERSION
		"\",\"configuration\":{\"loaded_ms\":1},\"configs\":[]}");
	examine();
	assert_shows(command.out, "it was changed after the running agent had read it");
}

static void agent__that_answers_nonsense_or_is_dead__says_so(void **state)
{
	(void)state;
	put_settings("", WEB);
	played_answers("GET /v1/status", 500, "{}");
	assert_int_equal(examine(), CLI_FAILED);
	assert_shows(command.out, "the agent takes connections, and does not answer as it should");
	played_stop();
	scratch_write(played.dir, "control.sock", "", 0);
	examine();
	assert_shows(command.out, "no agent runs here: the socket is left from one that died");
	RUN(cli_doctor, "pullet doctor", "-c", path, "--socket",
		"/a-path-that-is-too-long-for-a-socket-of-this-kind-on-linux-where-one-hundred-and-"
		"seven-"
		"bytes-is-all-it-may-have");
	assert_shows(command.out, "the agent cannot be asked: File name too long");
}

/* ---- servers ---- */

static void servers__that_lack_documents__are_errors(void **state)
{
	const char *url;
	char more[256];

	(void)state;
	url = played_listen_tcp();
	snprintf(more, sizeof(more), "  h: {urls: ['%s']}\n  n: {urls: ['http://127.0.0.1:1']}\n",
		url);
	played_answers("GET /forbidden.yaml", 403, "");
	played_answers("GET /broken.yaml", 200, "a: [\n");
	played_answers("GET /good.yaml", 200, "a: 1\n");
	played_answers("GET /busy.yaml", 503, "");
	put_settings(more,
		"  a: {from: [{server: h, path: /missing.yaml}], type: yaml, snapshot: true}\n"
		"  b: {from: [{server: h, path: /forbidden.yaml}], type: yaml, snapshot: true}\n"
		"  c: {from: [{server: h, path: /broken.yaml}], type: yaml, snapshot: true}\n"
		"  e: {from: [{server: h, path: /good.yaml}], type: yaml, snapshot: true}\n"
		"  f: {from: [{server: n, path: /x.yaml}], type: yaml, snapshot: true}\n"
		"  g: {from: [{server: h, path: /busy.yaml}], type: yaml, snapshot: true}\n"
		"  i: {from: [{server: d, path: /not-there.yaml}], type: yaml, snapshot: true}\n");
	assert_int_equal(examine(), CLI_FAILED);
	assert_shows(command.out, "put it there, or name the path where it is");
	assert_shows(command.out, "look at auth: of the server here");
	assert_shows(command.out, "line 1, column 4:");
	assert_shows(
		command.out, "has neither ETag nor Last-Modified: each pull transfers it whole");
	assert_shows(command.out, "check the address, whether a server runs there");
	assert_shows(command.out, "nothing here: the agent holds back and comes again");
}

/* ---- hooks ---- */

static void hooks__that_cannot_work__are_named(void **state)
{
	(void)state;
	put_file("run", "#!/bin/sh\n", 0755);
	put_file("plain", "", 0644);
	put_file("open", "#!/bin/sh\n", 0777);
	put_file("no-pid", "hello\n", 0644);
	put_file("dead-pid", "2147483646\n", 0644);
	put_settings("", in_dir("  a: {from: [{server: d, path: /web.yaml}], snapshot: true, "
				"check: {run: [@/run, '{path}']}}\n"
				"  b: {from: [{server: d, path: /web.yaml}], snapshot: true, "
				"check: {run: [@/missing, '{path}']}}\n"
				"  c: {from: [{server: d, path: /web.yaml}], snapshot: true, "
				"check: {run: [@/plain, '{path}']}}\n"
				"  e: {from: [{server: d, path: /web.yaml}], snapshot: true, "
				"check: {run: [@/open, '{path}']}}\n"
				"  f: {from: [{server: d, path: /web.yaml}], snapshot: true, "
				"reload: {signal: HUP, "
				"pidfile: @/no-pid}}\n"
				"  g: {from: [{server: d, path: /web.yaml}], snapshot: true, "
				"reload: {signal: HUP, "
				"pidfile: @/dead-pid}}\n"
				"  h: {from: [{server: d, path: /web.yaml}], snapshot: true, "
				"reload: {signal: HUP, "
				"pidfile: @/nowhere}}\n"));
	played_stop();
	assert_int_equal(examine(), CLI_FAILED);
	assert_shows(
		command.out, "a: programs and processes are there, and the agent may use them");
	assert_shows(command.out, "/missing: No such file or directory");
	assert_shows(command.out, "/plain is not a program");
	assert_shows(command.out, "everybody can change the program ");
	assert_shows(command.out, "/no-pid does not hold the number of a process");
	assert_shows(command.out, "names process 2147483646, which is not there");
	assert_shows(command.out, "/nowhere: changes are not notified");
}

/* ---- files ---- */

static void files__that_are_no_good_places__are_named(void **state)
{
	(void)state;
	put_file("open-dir", "", 0644);
	assert_int_equal(unlink(in_dir("@/open-dir")), 0);
	assert_int_equal(mkdir(in_dir("@/open-dir"), 0700), 0);
	assert_int_equal(chmod(in_dir("@/open-dir"), 0777), 0);
	assert_int_equal(mkdir(in_dir("@/a-dir"), 0755), 0);
	assert_int_equal(mkdir(in_dir("@/state"), 0700), 0);
	assert_int_equal(symlink("web.yaml", in_dir("@/link")), 0);
	put_file("token", "secret", 0644);
	put_settings(
		in_dir("  t: {urls: ['http://127.0.0.1:1'], auth: {bearer_file: @/token}}\n"
		       "  u: {urls: ['http://127.0.0.1:1'], auth: {bearer_file: @/no-token}}\n"),
		in_dir("  a: {from: [{server: d, path: /web.yaml}], file: @/out}\n"
		       "  b: {from: [{server: d, path: /web.yaml}], file: @/open-dir/out}\n"
		       "  c: {from: [{server: d, path: /web.yaml}], file: @/a-dir}\n"
		       "  e: {from: [{server: d, path: /web.yaml}], file: @/link}\n"
		       "  f: {from: [{server: d, path: /web.yaml}], file: @/nowhere/at/all}\n"
		       "  g: {from: [{server: d, path: /web.yaml}], file: @/token}\n"
		       "  h: {from: [{server: t, path: /web.yaml}], file: @/made/y}\n"
		       "  i: {from: [{server: u, path: /web.yaml}], file: @/made/x}\n"));
	played_stop();
	assert_int_equal(examine(), CLI_FAILED);
	assert_shows(command.out, "group or others can write in ");
	assert_shows(command.out, "/a-dir is a directory");
	assert_shows(command.out, "/link is a symlink: the next version replaces the link");
	assert_shows(command.out, "it is not there, nor is the directory it would lie in");
	assert_shows(command.out, "/token has not the mode or owner that is configured");
	assert_shows(command.out, "/no-token: bearer_file: No such file or directory");
	assert_shows(command.out, "it is not there; the agent makes it");
}

static void file_systems__are_told_apart(void **state)
{
	char parent[64];

	(void)state;
	assert_string_equal(doctor_file_system(0x6969), "NFS");
	assert_true(doctor_is_remote(0x6969));
	assert_true(doctor_is_in_memory(0x01021994));
	assert_false(doctor_is_remote(0x01021994));
	assert_string_equal(doctor_file_system(1), "");
	assert_false(doctor_is_in_memory(1));
	doctor_parent("/a", parent, sizeof(parent));
	assert_string_equal(parent, "/");
	doctor_parent("/a/b/c", parent, sizeof(parent));
	assert_string_equal(parent, "/a/b");
}

/* ---- push ---- */

static void push__that_nobody_serves__is_an_error(void **state)
{
	char more[512];

	(void)state;
	snprintf(more, sizeof(more), "push:\n- {endpoint: 'ipc://%s/push', heartbeat: 100ms}\n",
		played.dir);
	put_settings(more, WEB);
	played_stop();
	assert_int_equal(
		RUN(cli_doctor, "pullet doctor", "-c", path, "--timeout", "200ms"), CLI_FAILED);
	assert_shows(command.out, "push\n  error   ipc://");
	assert_shows(command.out, "no connection: ");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(configuration__with_errors__exits_78_and_names_places),
		CASE(configuration__with_what_is_seldom_meant__is_noted),
		CASE(config__that_there_is_not__exits_2),
		CASE(json__is_a_list_of_findings),
		CASE(agent__that_is_well__is_good),
		CASE(agent__whose_configs_are_in_trouble__says_each),
		CASE(agent__that_read_an_older_file__is_to_be_reloaded),
		CASE(agent__that_answers_nonsense_or_is_dead__says_so),
		CASE(servers__that_lack_documents__are_errors),
		CASE(hooks__that_cannot_work__are_named),
		CASE(files__that_are_no_good_places__are_named),
		CASE(file_systems__are_told_apart),
		CASE(push__that_nobody_serves__is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

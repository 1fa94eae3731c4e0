/*
 * pulletd whole, with servers of kind file: its start and stop, its signals,
 * a new configuration, and the control socket as a child asks it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/fixture/pulletd.h"

/* ---- the command line ---- */

static void options__print_and_reject(void **state)
{
	(void)state;
	assert_int_equal(RUN(run_pulletd, "pulletd", "--version"), 0);
	assert_shows(command.out, "pulletd " PULLET_VERSION "\n");
	assert_int_equal(RUN(run_pulletd, "pulletd", "--help"), 0);
	assert_shows(command.out, "Usage: pulletd");
	assert_int_equal(RUN(run_pulletd, "pulletd", "--nope"), 64);
	assert_shows(command.err, "Try 'pulletd --help'.");
	assert_int_equal(RUN(run_pulletd, "pulletd", "file"), 64);
	assert_shows(command.err, "'file' is one argument too many");
	assert_int_equal(RUN(run_pulletd, "pulletd", "--log-level", "loud"), 64);
	assert_shows(command.err, "--log-level is err, warn, info or debug, not 'loud'");
	assert_int_equal(RUN(run_pulletd, "pulletd", "-c", "/nowhere.yaml"), 78);
	assert_string_equal(command.err,
		"/nowhere.yaml: cannot be read: No such file or directory: make it, or name "
		"another one\n");
	put("pullet.yaml", "configs: 7\nx: 1\n");
	assert_int_equal(RUN(run_pulletd, "pulletd", "-c", settings_path), 78);
	assert_shows(
		command.err, "pullet.yaml:1:10: configs must be a mapping, but it is a number\n");
	assert_shows(command.err, "pullet.yaml:2:1: unknown key \"x\" in the file: ");
}

#define SIGNED(name, from, bind, key)                                                              \
	"  " name ": {" from ", snapshot: true, verify: {public_key: " key ", bind: " bind "}}\n"
#define FROM(path) "from: [{server: d, path: " path "}]"

static void test__prints_what_signatures_must_say(void **state)
{
#define KEY "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3"
#define OTHER_KEY "RWSYMC7n8ADplDfW2kiEMNo8BX8IPthSF1HxnEXGBzB/KwlR4ZfoNZlN"
	char expected[4096];

	(void)state;
	put_settings("",
		SIGNED("a", FROM("/a.yaml"), "path", KEY) SIGNED("b", FROM("/b.yaml"), "config",
			KEY) SIGNED("c", FROM("/c.yaml"), "none, rev: required", OTHER_KEY)
			SIGNED("d", "url: 'http://127.0.0.1:1?x=1'", "path, rev: required", KEY)
				SIGNED("e", FROM("/e.yaml"), "none", KEY) WEB);
	snprintf(expected, sizeof(expected),
		"%s: valid, 6 configs\n"
		"config a: bind: path, its key is trusted for other documents too\n"
		"  a signature must say path=/a.yaml: pullet sign FILE -s KEY --path /a.yaml\n"
		"config b: bind: config, its key is trusted for other documents too\n"
		"  a signature must say config=b: pullet sign FILE -s KEY --config b\n"
		"config c: bind: none, rev: required\n"
		"  a signature need not say what it is for, but must say rev=N; one that names "
		"another config or path is rejected: pullet sign FILE -s KEY --unbound\n"
		"config d: bind: path, its key is trusted for other documents too, rev: required\n"
		"  a signature must say path=/ rev=N: pullet sign FILE -s KEY --path /\n"
		"config e: bind: none, its key is trusted for other documents too\n"
		"  a signature need not say what it is for; one that names another config or path "
		"is rejected: pullet sign FILE -s KEY --unbound\n",
		settings_path);
	assert_int_equal(RUN(run_pulletd, "pulletd", "-t", "-c", settings_path), 0);
	assert_string_equal(command.out, expected);
	assert_string_equal(command.err, ""); /* nothing is wrong with its paths */
	put("pullet.yaml", "configs: 7\n");
	assert_int_equal(RUN(run_pulletd, "pulletd", "-t", "-c", settings_path), 78);
	assert_string_equal(command.out, "");
	assert_shows(
		command.err, "pullet.yaml:1:10: configs must be a mapping, but it is a number\n");
}

static void test__of_paths_that_others_can_change__warns_of_each(void **state)
{
	char path[SCRATCH_PATH + 16], text[4096];

	(void)state;
	snprintf(path, sizeof(path), "%s/open", played.dir);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chmod(path, 0777), 0);
	snprintf(text, sizeof(text),
		"agent: {state_dir: %s/state, runtime_dir: %s/run}\nconfigs:\n"
		"  web: {url: 'http://127.0.0.1:1/w', file: %s/web}\n"
		"  db: {url: 'http://127.0.0.1:1/d', file: %s/db}\n",
		path, played.dir, path, played.dir);
	put("pullet.yaml", text);
	assert_int_equal(RUN(run_pulletd, "pulletd", "-t", "-c", settings_path), 0);
	for (size_t i = 0; i < 2; i++)
		snprintf(text + strlen(text) * i, 1000,
			"%s: an agent of this user will fail: will not use the directory %s: group "
			"or others can write in it and could replace the file; chmod go-w\n",
			i ? "web" : "state_dir", path);
	assert_string_equal(command.err, text);
}

/* ---- once ---- */

static void once__publishes_and_ends(void **state)
{
	(void)state;
	put("web.yaml", "port: 1\n");
	put_settings("", WEB);
	assert_int_equal(RUN(run_pulletd, "pulletd", "-c", settings_path, "--once"), 0);
	assert_true(scratch_count(played.dir, "state") == 1);
	put("web.yaml", "port: [\n");
	assert_int_equal(RUN(run_pulletd, "pulletd", "-c", settings_path, "--once"), 1);
	put("web.yaml", "port: 2\n");
	assert_int_equal(RUN(run_pulletd, "pulletd", "-c", settings_path, "--dry-run"), 0);
	assert_shows(command.err, "dry run: would publish config=web");
}

static void start__where_it_may_not_write__says_why(void **state)
{
	(void)state;
	put("state", "a file");
	put_settings("", WEB);
	assert_int_equal(RUN(run_pulletd, "pulletd", "-c", settings_path), 1);
	assert_shows(command.err, "cannot use the directory: see why, or name another one");
	put("pullet.yaml", "agent: {state_dir: /dev/pts/pullet}\nconfigs: {a: {url: "
			   "'http://127.0.0.1:1/w'}}\n");
	assert_int_equal(RUN(run_pulletd, "pulletd", "-c", settings_path, "--once"), 1);
	assert_shows(command.err,
		"cannot make the directory: make it, or name another one in the configuration "
		"path=/dev/pts/pullet why=");
}

/* ---- the control socket ---- */

static void ask_everything(int printed)
{
	if (!log_has(printed, "published", 1))
		return;
	ask("GET /v1/status");                                                         /* 0 */
	ask("GET /v1/configs/web");                                                    /* 1 */
	ask("GET /v1/configs/web/history");                                            /* 2 */
	ask("GET /v1/configs/web/explain?key=port");                                   /* 3 */
	ask("GET /v1/configs/web/wait?generation=1");                                  /* 4 */
	ask("GET /v1/configs/web/wait?generation=99&timeout_ms=1");                    /* 5 */
	ask("GET /v1/configs/web/wait");                                               /* 6 */
	ask("GET /readyz");                                                            /* 7 */
	ask("GET /readyz?verbose");                                                    /* 8 */
	ask("GET /livez");                                                             /* 9 */
	ask("GET /metrics");                                                           /* 10 */
	ask("GET /");                                                                  /* 11 */
	ask("GET /nope");                                                              /* 12 */
	ask("POST /v1/status");                                                        /* 13 */
	ask("GET /v1/configs/nope");                                                   /* 14 */
	ask("POST /v1/configs/web/refresh?wait=1");                                    /* 15 */
	ask("POST /v1/configs/web/refresh?wait=2");                                    /* 16 */
	ask("POST /v1/configs/web/refresh?nope=1");                                    /* 17 */
	ask("POST /v1/configs/web/override?key=port&value=7&for_ms=60000&reason=try"); /* 18 */
	ask("GET /v1/configs/web/diff");                                               /* 19 */
	ask("GET /v1/changes");                                                        /* 20 */
	ask("POST /v1/configs/web/override?key=port&remove=1");                        /* 21 */
	ask("POST /v1/configs/web/override?key=port&for_ms=1");                        /* 22 */
	ask("POST /v1/configs/web/pin?for_ms=60000&reason=hold");                      /* 23 */
	ask("POST /v1/configs/web/pin?for_ms=x");                                      /* 24 */
	ask("POST /v1/configs/web/unpin");                                             /* 25 */
	ask("POST /v1/configs/web/suspend?reason=work");                               /* 26 */
	ask("POST /v1/configs/web/refresh");                                           /* 27 */
	ask("POST /v1/configs/web/resume");                                            /* 28 */
	ask("POST /v1/configs/web/resume");                                            /* 29 */
	ask("POST /v1/configs/web/rollback?generation=99");                            /* 30 */
	ask("POST /v1/configs/web/rollback?generation=x");                             /* 31 */
	ask("POST /v1/configs/web/refresh?wait=1"); /* 32: the pull of resume has ended */
	put("web.yaml", "port: 2\n");
	ask("POST /v1/configs/web/refresh?wait=1");               /* 33 */
	ask("POST /v1/configs/web/rollback");                     /* 34 */
	ask("POST /v1/configs/web/refresh?force=1&forget_rev=1"); /* 35 */
}

static void control__answers_at_each_path(void **state)
{
	static const struct {
		int status;
		const char *part;
	} rows[] = {{200, "\"configs\":[{\"name\":\"web\",\"state\":\"ok\""},
		{200, "\"generation\":1,"}, {200, "\"versions\":[{\"generation\":1"},
		{200, "\"found\":true"}, {200, "{\"ok\":true,\"name\":\"web\",\"generation\":1"},
		{504, "generation 99 was not published within 1ms; generation 1 is current"},
		{400, "generation=N or version=V is missing"}, {200, "ok\n"},
		{200, "[+]web: generation 1, ok\nok\n"}, {200, "ok\n"}, {200, "pullet_configs 1\n"},
		{200, "<!DOCTYPE html>"}, {404, "there is nothing at this path"},
		{405, "Allow: GET, HEAD"}, {404, "there is no config of that name"},
		{200, "\"outcome\":\"unchanged\",\"generation\":1"}, {400, "wait takes 0 or 1"},
		{400, "no parameter here is called nope"}, {200, "\"generation\":2"},
		{200, "\"equal\":true"}, {200, "\"publications\":[{\"config\":\"web\""},
		{200, "\"generation\":3"}, {400, "an override needs a value, or remove=1"},
		{200, "\"generation\":3"}, {400, "for_ms takes a number"}, {200, "\"ok\":true"},
		{200, "\"ok\":true"}, {409, "web is suspended by "}, {200, "\"ok\":true"},
		{409, "not suspended"}, {404, "99"}, {400, "generation takes a number"},
		{200, "\"outcome\":\"unchanged\",\"generation\":3"},
		{200, "\"outcome\":\"published\",\"generation\":4"}, {200, "\"generation\":5"},
		{202, "{\"fired\":true}"}};

	(void)state;
	put("web.yaml", "port: 1\n");
	put_settings("", WEB);
	run_with(ask_everything);
	assert_int_equal(talk->count, sizeof(rows) / sizeof(rows[0]));
	for (size_t i = 0; i < talk->count; i++)
		assert_answer(i, rows[i].status, rows[i].part);
}

static void ask_before_anything(int printed)
{
	if (!log_has(printed, "started version", 1))
		return;
	ask("GET /readyz?verbose");
	ask("POST /v1/configs/web/refresh?wait=1");
	ask("GET /readyz");
	ask("GET /v1/status");
}

static void control__of_an_agent_with_nothing__is_not_ready(void **state)
{
	(void)state;
	put_settings("", WEB);
	run_with(ask_before_anything);
	assert_answer(0, 503, "[-]web: nothing is published yet: ");
	assert_answer(1, 200, "\"outcome\":\"failed\"");
	assert_answer(2, 503, "web: nothing is published yet: ");
	assert_answer(3, 200, "\"state\":\"waiting\"");
}

/* ---- another configuration ---- */

static void reload_things(int printed)
{
	if (!log_has(printed, "published", 1))
		return;
	put_settings("", "  web: {nonsense: 1}\n");
	kill(agent_pid, SIGHUP);
	if (!log_has(printed, "the new configuration is invalid", 1))
		return;
	ask("GET /v1/status"); /* 0 */
	put_settings("", WEB DB);
	kill(agent_pid, SIGHUP);
	if (!log_has(printed, "the new configuration is applied", 1) ||
		!log_has(printed, "published", 2))
		return;
	ask("GET /v1/configs/db"); /* 1 */
	put_settings(", labels: {zone: eu}", "  db: {from: [{server: d, path: /web.yaml}], type: "
					     "yaml, snapshot: true, interval: "
					     "1h}\n");
	kill(agent_pid, SIGHUP);
	if (!log_has(printed, "the new configuration is applied", 2) ||
		!log_has(printed, "published", 3))
		return;
	ask("GET /v1/status"); /* 2 */
	put_settings(", listen: 'nonsense:1'", WEB);
	kill(agent_pid, SIGHUP);
	log_has(printed, "the new configuration is invalid", 2);
	put("pullet.yaml", "agent: {state_dir: /elsewhere}\nconfigs:\n  web: {url: "
			   "'http://127.0.0.1:1/w', snapshot: true}\n");
	kill(agent_pid, SIGHUP);
	log_has(printed, "the new configuration is invalid", 3);
	ask("GET /v1/status"); /* 3 */
	kill(agent_pid, SIGUSR1);
	log_has(printed, "pulling everything now", 1);
}

static void hup__applies_what_is_valid_and_rejects_the_rest(void **state)
{
	(void)state;
	put("web.yaml", "port: 1\n");
	put("db.yaml", "port: 5\n");
	put_settings("", WEB);
	run_with(reload_things);
	assert_answer(0, 200, "\"rejections\":1");
	assert_answer(0, 200, "nonsense");
	assert_answer(1, 200, "\"generation\":1");
	assert_answer(2, 200, "\"configs\":[{\"name\":\"db\"");
	assert_answer(2, 200, "\"labels\":{\"zone\":\"eu\"}");
	assert_null(strstr(talk->answers[2], "\"name\":\"web\""));
	assert_answer(3, 200, "state_dir cannot change while the agent runs");
	assert_shows(talk->log, "added=\"1: db\"");
	assert_shows(talk->log, "removed=\"1: web\"");
	assert_shows(talk->log,
		"state_dir cannot change while the agent runs, for readers and the state are "
		"there: restart it, or write the value back\"\n");
}

/* Threads of the agent that listen to publishers. */
static unsigned count_listeners(void)
{
	char path[PATH_MAX], name[32];
	const struct dirent *e;
	unsigned n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)agent_pid);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%d/task/%.20s/comm", (int)agent_pid, e->d_name);
		f = fopen(path, "re");
		n += f && fgets(name, sizeof(name), f) && strcmp(name, "pullet-push\n") == 0;
		if (f)
			fclose(f);
	}
	if (d)
		closedir(d);
	return n;
}

static unsigned listeners[4];

static void change_channels(int printed)
{
	char part[512];

	if (!log_has(printed, "published", 1))
		return;
	snprintf(part, sizeof(part), "}\npush:\n- {endpoint: 'ipc://%s/push'", played.dir);
	put_settings(part, WEB);
	kill(agent_pid, SIGHUP);
	if (!log_has(printed, "the new configuration is applied", 1))
		return;
	ask("GET /v1/status"); /* 0 */
	listeners[0] = count_listeners();
	snprintf(part, sizeof(part), "}\npush:\n- {endpoint: 'ipc://%s/more'", played.dir);
	put_settings(part, WEB DB);
	kill(agent_pid, SIGHUP);
	if (!log_has(printed, "the new configuration is applied", 2))
		return;
	ask("GET /v1/status"); /* 1 */
	listeners[1] = count_listeners();
	put_settings(part, WEB);
	kill(agent_pid, SIGHUP);
	if (!log_has(printed, "the new configuration is applied", 3))
		return;
	listeners[2] = count_listeners();
	put_settings(", listen: '127.0.0.1:0'", WEB);
	kill(agent_pid, SIGHUP);
	if (!log_has(printed, "the new configuration is applied", 4))
		return;
	ask("GET /v1/status"); /* 2 */
	listeners[3] = count_listeners();
}

static void hup__changes_the_push_channel_and_the_listener(void **state)
{
	(void)state;
	put("web.yaml", "port: 1\n");
	put_settings("", WEB);
	run_with(change_channels);
	assert_answer(0, 200, "\"push\":[{\"endpoint\":\"ipc://");
	assert_answer(1, 200, "\"push\":[{\"endpoint\":\"ipc://");
	assert_answer(2, 200, "\"push\":[]");
	assert_int_equal(listeners[0], 1); /* one, whatever was there before */
	assert_int_equal(listeners[1], 1);
	assert_int_equal(listeners[2], 1); /* nor does it end with a config */
	assert_int_equal(listeners[3], 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, pulletd_set_up, pulletd_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(options__print_and_reject),
		CASE(test__prints_what_signatures_must_say),
		CASE(test__of_paths_that_others_can_change__warns_of_each),
		CASE(once__publishes_and_ends),
		CASE(start__where_it_may_not_write__says_why),
		CASE(control__answers_at_each_path),
		CASE(control__of_an_agent_with_nothing__is_not_ready),
		CASE(hup__applies_what_is_valid_and_rejects_the_rest),
		CASE(hup__changes_the_push_channel_and_the_listener),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * One reload: what is read, rejected, waited for and logged, in which order. Here
 * agent/reconfigure.c is compiled in, and all around it only writes down how it is called.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "agent.h"
#include "base/log.h"
#include "tests/unit/fixture/captured.h"
#include "tests/unit/fixture/did.h"
#include "tests/unit/fixture/fault_memory.h"
#include "tests/unit/fixture/scratch.h"

/* ---- what is around it ---- */

/* The configs of the agent. */
static struct thing {
	const struct settings_config *settings;
	bool at_disk, pinned, suspended;
	size_t overrides;
	void (*retired)(void *arg);
	void *arg;
} things[16];

static void make_things(const struct agent *a)
{
	for (size_t i = 0; i < a->settings->config_count; i++) {
		things[i] = (struct thing){.settings = a->settings->configs[i]};
		a->configs[i] = (struct config *)&things[i];
	}
}

static int prepare_error, apply_error;

static int played_prepare(struct agent *a, const struct settings *new,
	const struct settings_diff *diff, char why[FILE_WHY])
{
	(void)a, (void)new, (void)diff;
	say("prepare\n");
	snprintf(why, FILE_WHY, "no room for it");
	return prepare_error;
}

static int played_apply(struct agent *a, struct settings *new, const struct settings_diff *diff)
{
	struct settings old = *a->settings;

	(void)diff;
	if (apply_error)
		return apply_error;
	say("apply\n");
	*a->settings = *new;
	*new = old;
	settings_free(new);
	make_things(a);
	return 0;
}

static void played_set_log(const struct agent *a, const struct settings *s)
{
	(void)a;
	say("log level %d\n", (int)s->log_level);
}

static bool played_at_disk(const struct config *c)
{
	return ((const struct thing *)c)->at_disk;
}

static bool played_retire(struct config *c, void (*ended)(void *arg), void *arg)
{
	struct thing *t = (struct thing *)c;

	say("retire %s\n", t->settings->name);
	t->retired = ended;
	t->arg = arg;
	return !t->at_disk;
}

static void played_status(struct config *c, struct config_status *ret_status)
{
	static const struct ledger_pin pin;
	const struct thing *t = (struct thing *)c;

	*ret_status = (struct config_status){.settings = t->settings,
		.pin = t->pinned ? &pin : NULL,
		.suspension = t->suspended ? &pin : NULL,
		.override_count = t->overrides};
}

static void played_reloading(struct systemd *s)
{
	(void)s;
	say("reloading\n");
}

static void played_reloaded(struct systemd *s)
{
	(void)s;
	say("reloaded\n");
}

static char watch;

static struct watch_config *played_watch_new(struct loop *l, const char *path,
	const struct watched_files *seen, void (*changed)(void *arg), void *arg)
{
	(void)l, (void)path, (void)seen, (void)changed, (void)arg;
	return (struct watch_config *)&watch;
}

static void played_watch_set(struct watch_config *w, bool on)
{
	assert_ptr_equal(w, &watch);
	say("watch %s\n", on ? "on" : "off");
}

static void played_watch_free(struct watch_config *w)
{
	assert_ptr_equal(w, &watch);
}

#define agent_prepare played_prepare
#define agent_apply played_apply
#define agent_set_log played_set_log
#define config_at_disk played_at_disk
#define config_retire played_retire
#define config_status(c, s) played_status(c, s)
#define systemd_reloading played_reloading
#define systemd_reloaded played_reloaded
#define watch_config_new played_watch_new
#define watch_config_set played_watch_set
#define watch_config_free played_watch_free
#include "reconfigure.c"

/* ---- an agent ---- */

static struct agent a;
static struct settings held;
static struct reconfigure *reload;
static struct config *configs[16];
static char dir[SCRATCH_PATH], path[SCRATCH_PATH + 16];
static uint64_t clock_ms;
static struct sys sys;
static char logged[8192];

static uint64_t virtual_now_ms(void)
{
	return clock_ms;
}

static void put(const char *text)
{
	scratch_write(dir, "pullet.yaml", text, strlen(text));
}

static int set_up(void **state)
{
	(void)state;
	scratch_open(dir, scratch_memory());
	snprintf(path, sizeof(path), "%s/pullet.yaml", dir);
	memset(&a, 0, sizeof(a));
	memset(&held, 0, sizeof(held));
	memset(things, 0, sizeof(things));
	sys = sys_real;
	sys.now_ms = virtual_now_ms;
	clock_ms = 1000;
	a.settings = &held;
	a.path = path;
	a.configs = configs;
	a.loop = loop_new(&sys);
	did[0] = '\0';
	prepare_error = apply_error = 0;
	reload = reconfigure_new(&a);
	assert_non_null(reload);
	return 0;
}

static void drop_held(void)
{
	if (held.config_count)
		settings_free(memcpy(malloc(sizeof(held)), &held, sizeof(held)));
	memset(&held, 0, sizeof(held));
}

static int tear_down(void **state)
{
	(void)state;
	reconfigure_free(reload);
	assert_null(a.configuration.error);
	watched_files_fini(&a.files_read);
	loop_free(a.loop);
	drop_held();
	scratch_close(dir);
	return 0;
}

/* These are the settings of the agent. */
static void have(const char *text)
{
	struct settings *s = scratch_settings("%s", text);

	drop_held();
	held = *s;
	free(s);
	make_things(&a);
}

/* Reads these, and keeps what is logged without the level. */
static void hang_up(const char *text)
{
	struct captured errors = captured_begin(STDERR_FILENO);

	put(text);
	reconfigure_begin(reload);
	captured_read(&errors, logged, sizeof(logged));
	captured_end(&errors);
}

static void stop_it(void *arg)
{
	(void)arg;
	loop_stop(a.loop);
}

/* Runs the loop for what is due. */
static void run_due(void)
{
	struct captured errors = captured_begin(STDERR_FILENO);
	struct loop_timer end;

	loop_timer_init(&end, stop_it, NULL);
	loop_timer_set(a.loop, &end, clock_ms);
	assert_int_equal(loop_run(a.loop), 0);
	captured_read(&errors, logged, sizeof(logged));
	captured_end(&errors);
}

static void assert_log(const char *words)
{
	if (!strstr(logged, words))
		fail_msg("no '%s' in: %s", words, logged);
}

#define DIRS "agent: {state_dir: /state, runtime_dir: /run}\n"
#define D "  d: {kind: file, urls: ['file:///d']}\n"
#define E "  e: {kind: file, urls: ['file:///e']}\n"
#define CONFIG(name, more)                                                                         \
	"  " name ": {from: [{server: d, path: /" name "}], type: yaml" more "}\n"
#define WEB CONFIG("web", ", snapshot: true")
#define DB CONFIG("db", ", snapshot: true")

/* ---- what is logged ---- */

static void change__of_each_kind__is_logged(void **state)
{
	static const struct {
		const char *old, *new, *line;
	} rows[] = {
		{DIRS "servers:\n" D "configs:\n" WEB, DIRS "servers:\n" D "configs:\n" WEB,
			" unchanged=1\n"},
		{DIRS "servers:\n" D "configs:\n" WEB DB,
			DIRS "servers:\n" D E "configs:\n" DB CONFIG("x", ", file: /f")
				CONFIG("y", ", file: /g"),
			" unchanged=1 added=\"2: x y\" removed=\"1: web\" servers_added=\"1: "
			"e\"\n"},
		{DIRS "servers:\n" D E "configs:\n" WEB DB,
			DIRS "servers:\n" D
			     "configs:\n" CONFIG("web", ", snapshot: true, timeout: 5s") DB,
			" unchanged=1 changed=\"1: web\" servers_removed=\"1: e\"\n"},
		{DIRS "servers:\n" D "configs:\n" WEB,
			DIRS "servers:\n  d: {kind: file, urls: ['file:///d'], watch: true}\n"
			     "configs:\n" WEB,
			" unchanged=0 changed=\"1: web\" servers_changed=\"1: d\"\n"},
		/* a server without a name is called by its address */
		{DIRS "servers:\n" D "configs:\n" WEB,
			DIRS "servers:\n" D "configs:\n" WEB
			     "  u: {url: 'http://127.0.0.1:1/u', snapshot: true}\n",
			" unchanged=1 added=\"1: u\" servers_added=\"1: http://127.0.0.1:1\"\n"},
		{DIRS "servers:\n" D "configs:\n" WEB,
			"agent: {state_dir: /state, runtime_dir: /run, listen: '127.0.0.1:1', "
			"operators: 901, labels: {a: b}, watch_config: true}\n"
			"push:\n- {endpoint: 'ipc:///nowhere/a'}\n"
			"report: {server: r}\nservers:\n" D
			"  r: {kind: etcd, urls: ['http://127.0.0.1:2']}\nconfigs:\n" WEB,
			" unchanged=1 servers_added=\"1: r\" other=\"push listen operators "
			"report watch_config\"\n"},
		{DIRS "servers:\n" D "configs:\n" WEB,
			"agent: {state_dir: /state, runtime_dir: /run, labels: {a: b}}\n"
			"servers:\n" D "configs:\n" WEB,
			" unchanged=1 other=labels\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char line[1024];

		have(rows[i].old);
		hang_up(rows[i].new);
		if (i == 5) /* whether the host's name has changed, it says itself */
			snprintf(line, sizeof(line), " unchanged=1 servers_added=\"1: r\" ");
		else
			snprintf(line, sizeof(line), "the new configuration is applied file=%s%s",
				path, rows[i].line);
		assert_log(line);
		if (i == 5) {
			assert_log("push listen operators");
			assert_log(" report watch_config\"\n");
		}
		assert_int_equal(strstr(logged, "files and history of the removed configs are kept "
						"state_dir=/state\n") != NULL,
			i == 1);
		assert_null(strstr(logged, "published to another file"));
	}
}

static void names__fill_a_line_and_no_more(void **state)
{
	static const char *const last[] = {"abcd", "abcde"}; /* it fits, and it does not */

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		char text[4096] = DIRS "servers:\n" D "configs:\n", expected[1024] = "added=\"11:";

		for (int k = 0; k < 9; k++) { /* 21 bytes each, with a blank */
			snprintf(text + strlen(text), 128,
				"  name-of-20-bytes-%03d: {from: [{server: d, path: /x}], "
				"snapshot: "
				"true}\n",
				k);
			snprintf(expected + strlen(expected), 64, " name-of-20-bytes-%03d", k);
		}
		snprintf(text + strlen(text), 256,
			"  %s: {from: [{server: d, path: /x}], snapshot: true}\n"
			"  a-long-one: {from: [{server: d, path: /x}], snapshot: true}\n",
			last[i]);
		snprintf(expected + strlen(expected), 64, "%s\" ", i ? " ..." : " abcd ...");
		have(DIRS "servers:\n" D "configs:\n" WEB);
		hang_up(text);
		assert_log(expected);
	}
}

static void file__that_is_another_one__is_said_to_stay(void **state)
{
	static const struct {
		const char *old, *new, *file;
	} rows[] = {{", file: /f", ", file: /g", "/f"}, {", file: /g", ", file: /f", "/g"},
		{", file: /f", ", snapshot: true", "/f"},
		{", file: /f", ", file: /f, timeout: 5s", NULL},
		{", snapshot: true", ", file: /f", NULL}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char old[512], new[512], line[256];

		snprintf(old, sizeof(old), DIRS "servers:\n" D "configs:\n" CONFIG("web", "%s") DB,
			rows[i].old);
		snprintf(new, sizeof(new),
			DIRS "servers:\n" D "configs:\n" CONFIG("x", ", file: /x")
				DB CONFIG("web", "%s"),
			rows[i].new);
		have(old);
		hang_up(new);
		snprintf(line, sizeof(line),
			"published to another file: the old one is kept config=web file=%s\n",
			rows[i].file ? rows[i].file : "");
		if (rows[i].file)
			assert_log(line);
		else
			assert_null(strstr(logged, "published to another file"));
	}
}

static void decisions__of_configs_that_go__are_said(void **state)
{
	static const struct {
		bool pinned, suspended;
		size_t overrides;
		const char *line;
	} rows[] = {{true, false, 0, "config=db pinned=yes\n"},
		{false, true, 0, "config=db suspended=yes\n"},
		{false, false, 2, "config=db overrides=2\n"}, {false, false, 0, NULL}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		have(DIRS "servers:\n" D "configs:\n" WEB DB);
		things[0].pinned = true; /* which stays */
		things[1].pinned = rows[i].pinned;
		things[1].suspended = rows[i].suspended;
		things[1].overrides = rows[i].overrides;
		hang_up(DIRS "servers:\n" D "configs:\n" WEB);
		if (rows[i].line)
			assert_log(rows[i].line);
		assert_int_equal(strstr(logged, "a config with decisions of operators is removed: "
						"they hold again when one of this name is back, "
						"and for no other name ") != NULL,
			rows[i].line != NULL);
		assert_null(strstr(logged, "config=web"));
	}
}

/* ---- what is done ---- */

static void settings__that_are_good__are_applied(void **state)
{
	(void)state;
	have(DIRS "servers:\n" D "configs:\n" WEB DB);
	a.configuration.rejections = 3;
	a.configuration.error = strdup("an old one");
	hang_up("agent: {state_dir: /state, runtime_dir: /run, watch_config: true, log: {level: "
		"err}}\nservers:\n" D "configs:\n" WEB);
	assert_did("reloading\nprepare\nretire db\nlog level 0\napply\nwatch on\nreloaded\n");
	assert_int_equal(a.configuration.reloads, 1);
	assert_int_equal(a.configuration.rejections, 3);
	assert_null(a.configuration.error);
	assert_false(a.configuration.applying);
	assert_true(a.configuration.loaded_ms > 1600000000000);
	hang_up(DIRS "servers:\n" D "configs:\n" WEB);
	assert_int_equal(a.configuration.reloads, 2);
	assert_did("reloading\nprepare\nlog level 2\napply\nwatch off\nreloaded\n");
}

static void settings__that_are_not__change_nothing(void **state)
{
	static const struct {
		const char *text;
		int prepare;
		size_t errors;
		const char *error, *what;
	} rows[] = {
		{"configs: 7\nx: 1\n", 0, 2, ":1:10: configs must be a mapping",
			"reloading\nwatch on\nreloaded\n"},
		{"agent: {state_dir: /other, runtime_dir: /run}\nservers:\n" D "configs:\n" WEB, 0,
			1,
			": state_dir cannot change while the agent runs, for readers and the state "
			"are there: restart it, or write the value back",
			"reloading\nwatch on\nreloaded\n"},
		{DIRS "servers:\n" D "configs:\n" WEB DB, -EMFILE, 1, "no room for it",
			"reloading\nprepare\nwatch on\nreloaded\n"},
	};

	(void)state;
	have("agent: {state_dir: /state, runtime_dir: /run, watch_config: true}\nservers:\n" D
	     "configs:\n" WEB);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char line[512];

		prepare_error = rows[i].prepare;
		hang_up(rows[i].text);
		assert_did(rows[i].what);
		assert_int_equal(a.configuration.rejections, i + 1);
		assert_int_equal(a.configuration.reloads, 0);
		assert_int_equal(a.configuration.errors, rows[i].errors);
		assert_log(rows[i].error);
		assert_non_null(a.configuration.error);
		assert_non_null(strstr(a.configuration.error, rows[i].error));
		assert_false(a.configuration.applying);
		snprintf(line, sizeof(line),
			"the new configuration is invalid: nothing was changed file=%s "
			"errors=%zu\n",
			path, (size_t)a.configuration.errors);
		assert_log(line);
	}
	assert_int_equal(held.config_count, 1);
}

static void writes__under_way__are_waited_for_and_the_last_signal_counts(void **state)
{
	(void)state;
	have(DIRS "servers:\n" D "configs:\n" WEB DB CONFIG("x", ", snapshot: true"));
	things[0].at_disk = things[2].at_disk = true;
	hang_up(DIRS "servers:\n" D "configs:\n" CONFIG("y", ", snapshot: true"));
	/* those with a write alone: the other one goes on */
	assert_did("reloading\nprepare\nretire web\nretire x\n");
	assert_log("reload pending: waiting for writes to finish configs=2\n");
	assert_true(a.configuration.applying);
	hang_up(DIRS "servers:\n" D "configs:\n" DB); /* meanwhile */
	assert_did("");
	things[0].at_disk = false;
	things[0].retired(things[0].arg);
	run_due();
	assert_did(""); /* one is left */
	things[2].at_disk = false;
	things[2].retired(things[2].arg);
	things[1].at_disk = true; /* it has begun one */
	clock_ms++;
	run_due();
	assert_did("retire db\n");
	assert_log("reload pending: waiting for writes to finish configs=1\n");
	things[1].at_disk = false;
	things[1].retired(things[1].arg);
	run_due();
	assert_int_equal(a.configuration.reloads, 2);
	assert_int_equal(held.config_count, 1);
	assert_string_equal(held.configs[0]->name, "db");
	assert_false(a.configuration.applying);
}

static void reload__that_waits__ends_with_the_agent(void **state)
{
	(void)state;
	have(DIRS "servers:\n" D "configs:\n" WEB DB);
	things[0].at_disk = true;
	hang_up(DIRS "servers:\n" D "configs:\n" DB);
	things[0].retired(things[0].arg);
	reconfigure_free(reload);
	reload = reconfigure_new(&a);
	did[0] = '\0';
	run_due();
	assert_did("");
	assert_false(a.configuration.applying);
}

/* What it has is of neither configuration: it starts again from the last known good. */
static void settings__for_which_there_is_no_memory__end_the_agent(void **state)
{
	struct captured errors;
	int status;
	pid_t pid;

	(void)state;
	have(DIRS "servers:\n" D "configs:\n" WEB);
	put(DIRS "servers:\n" D "configs:\n" DB);
	apply_error = -ENOMEM;
	errors = captured_begin(STDERR_FILENO);
	pid = fork();
	if (pid == 0) {
		reconfigure_begin(reload);
		_exit(99);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	captured_read(&errors, logged, sizeof(logged));
	captured_end(&errors);
	assert_int_equal(status, EXIT_FAILURE << 8);
	assert_log("out of memory during a reload: exiting, to start from the last known good\n");
}

static void agent__that_has_started__watches_as_its_settings_say(void **state)
{
	(void)state;
	reconfigure_started(reload);
	assert_did("watch off\n");
	held.watch_config = true;
	reconfigure_started(reload);
	assert_did("watch on\n");
	a.once = true;
	reconfigure_started(reload);
	assert_did("");
}

static void reload__of_each_kind__leaves_no_memory(void **state)
{
	long before = 0;

	(void)state;
	for (int i = 0; i < 4; i++) {
		have(DIRS "servers:\n" D "configs:\n" WEB);
		hang_up("configs: 7\nx: 1\n");
		hang_up(DIRS "servers:\n" D "configs:\n" DB);
		hang_up("configs: 7\n");
		reconfigure_free(reload);
		watched_files_fini(&a.files_read);
		if (i == 0)
			before = fault_memory.live;
		else
			assert_int_equal(fault_memory.live, before);
		reload = reconfigure_new(&a);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(change__of_each_kind__is_logged),
		CASE(names__fill_a_line_and_no_more),
		CASE(file__that_is_another_one__is_said_to_stay),
		CASE(decisions__of_configs_that_go__are_said),
		CASE(settings__that_are_good__are_applied),
		CASE(settings__that_are_not__change_nothing),
		CASE(writes__under_way__are_waited_for_and_the_last_signal_counts),
		CASE(reload__that_waits__ends_with_the_agent),
		CASE(settings__for_which_there_is_no_memory__end_the_agent),
		CASE(agent__that_has_started__watches_as_its_settings_say),
		CASE(reload__of_each_kind__leaves_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

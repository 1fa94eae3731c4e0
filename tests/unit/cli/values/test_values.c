/* What scripts read from a snapshot: get, list, export and watch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>

#include <cmocka.h>

#include "cli/common/cli.h"
#include "cli/values/exec_env.h"
#include "lib/snapshot.h"
#include "tests/unit/fixture/command.h"
#include "tests/unit/fixture/fault_memory.h"

#define MAX_ENTRIES 32

static struct snapshot_entry entries[MAX_ENTRIES];
static size_t count;

static struct pullet_value *add(const char *key, enum pullet_type type, const char *text)
{
	struct snapshot_entry *e = &entries[count++];

	assert_true(count <= MAX_ENTRIES);
	*e = (struct snapshot_entry){.key = key, .key_len = strlen(key)};
	e->value.type = type;
	e->value.text = text;
	e->value.len = strlen(text);
	return &e->value;
}

static void publish(uint64_t generation)
{
	void *image;
	size_t len;

	assert_int_equal(snapshot_build(entries, count, generation, 0, "v1", &image, &len), 0);
	scratch_write(played.dir, "web.snap", image, len);
	free(image);
}

static void fill_entries(void)
{
	count = 0;
	add("db", PULLET_MAP, "")->count = 3;
	add("db.host", PULLET_STRING, "it's");
	add("db.port", PULLET_INT, "5432")->integer = 5432;
	add("db.tls", PULLET_BOOL, "true")->boolean = true;
	add("empty", PULLET_LIST, "");
	add("list", PULLET_LIST, "")->count = 2;
	add("list.0", PULLET_STRING, "a\nb\\");
	add("list.1", PULLET_NULL, "");
	add("ratio", PULLET_DOUBLE, "0.10")->number = 0.1;
	add("wait", PULLET_STRING, "5m");
	add("size", PULLET_STRING, "2KiB");
}

static int set_up(void **state)
{
	(void)state;
	alarm(30);
	played_open();
	played_stop();
	fill_entries();
	publish(4);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	played_close();
	return 0;
}

/* ---- get ---- */

static void get__prints_a_value_as_it_was_written(void **state)
{
	char path[SCRATCH_PATH + 16];

	(void)state;
	RUN(cli_get, "pullet get", "web", "db.host");
	assert_ended(CLI_OK, "it's\n", "");
	RUN(cli_get, "pullet get", "web", "ratio");
	assert_ended(CLI_OK, "0.10\n", "");
	snprintf(path, sizeof(path), "%s/web.snap", played.dir);
	RUN(cli_get, "pullet get", path, "db.port");
	assert_ended(CLI_OK, "5432\n", "");
}

static void get__of_a_type__prints_it_in_one_form(void **state)
{
	static const struct {
		const char *key, *type, *out;
	} rows[] = {{"db.host", "string", "it's\n"}, {"db.port", "int", "5432\n"},
		{"ratio", "double", "0.1\n"}, {"db.port", "double", "5432\n"},
		{"db.tls", "bool", "true\n"}, {"wait", "duration", "300000\n"},
		{"size", "size", "2048\n"}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		RUN(cli_get, "pullet get", "web", rows[i].key, "--type", rows[i].type);
		assert_ended(CLI_OK, rows[i].out, "");
	}
	RUN(cli_get, "pullet get", "web", "db.host", "--type", "string", "--json");
	assert_int_equal(command.code, CLI_OK);
	assert_shows(command.out, "\"it's\"");
}

static void get__of_another_type__says_which_it_is(void **state)
{
	static const char *const types[] = {"int", "double", "bool", "duration", "size"};

	(void)state;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		RUN(cli_get, "pullet get", "web", "db.host", "--type", types[i]);
		assert_int_equal(command.code, CLI_FAILED);
		assert_shows(command.err, "but is a text of another form");
	}
	RUN(cli_get, "pullet get", "web", "list", "--type", "string");
	assert_ended(CLI_FAILED, "", "pullet get: 'list' must be a text, but is a list\n");
	RUN(cli_get, "pullet get", "web", "list", "--type", "date");
	assert_int_equal(command.code, CLI_USAGE);
}

static void get__of_a_list_or_map__wants_json(void **state)
{
	(void)state;
	RUN(cli_get, "pullet get", "web", "db");
	assert_ended(CLI_FAILED, "",
		"pullet get: 'db' is a map: use --json, or 'pullet list web db.'\n");
	RUN(cli_get, "pullet get", "web", "db", "--json");
	assert_int_equal(command.code, CLI_OK);
	assert_shows(command.out, "\"host\": \"it's\"");
	assert_shows(command.out, "\"tls\": true");
	RUN(cli_get, "pullet get", "web", "list", "--json");
	assert_shows(command.out, "\"a\\nb\\\\\"");
}

static void get__of_an_unknown_key__names_those_near_it(void **state)
{
	(void)state;
	RUN(cli_get, "pullet get", "web", "db.haste");
	assert_ended(CLI_NOT_FOUND, "",
		"pullet get: there is no key 'db.haste' in web; near it: \"db.host\"\n");
	RUN(cli_get, "pullet get", "web", "zzz");
	assert_ended(CLI_NOT_FOUND, "",
		"pullet get: there is no key 'zzz' in web: 'pullet list web' shows all\n");
	RUN(cli_get, "pullet get", "web", "zzz", "--default", "7");
	assert_ended(CLI_OK, "7\n", "");
}

static void get__of_an_unknown_config__names_those_that_there_are(void **state)
{
	(void)state;
	RUN(cli_get, "pullet get", "wev", "a");
	assert_int_equal(command.code, CLI_NOT_FOUND);
	assert_shows(command.err, "did you mean 'web'?");
	RUN(cli_get, "pullet get", "/nowhere/at.all", "a");
	assert_ended(CLI_NOT_FOUND, "", "pullet get: there is no snapshot /nowhere/at.all\n");
	RUN(cli_get, "pullet get", "no name", "a");
	assert_int_equal(command.code, CLI_USAGE);
	assert_shows(command.err, "is not the name of a config; a path needs a '/' in it");
	RUN(cli_get, "pullet get", "wev", "a", "--default", "x");
	assert_ended(CLI_OK, "x\n", "");
	setenv("PULLET_RUNTIME_DIR", "/nowhere", 1);
	RUN(cli_get, "pullet get", "web", "a");
	assert_int_equal(command.code, CLI_NOT_FOUND);
	assert_shows(command.err, "nor of any config: 'pullet status' says why");
}

static void get__with_help__lists_its_options(void **state)
{
	(void)state;
	RUN(cli_get, "pullet get", "--help");
	assert_ended(CLI_OK,
		"Usage: pullet get CONFIG KEY [--default V] [--type T] [--json]\n"
		"Prints one value of a config, as it was written. Needs no running agent.\n"
		"CONFIG is a name, or a path of a snapshot if there is a '/' in it.\n"
		"\n"
		"      --default V  print V when there is no such key or config\n"
		"      --type T     fail unless the value is a string, int, double, bool, duration "
		"(printed in\n"
		"                   milliseconds) or size (in bytes)\n"
		"      --json       print JSON; a list or map with all its members\n",
		"");
}

static void get__of_a_damaged_snapshot__says_so(void **state)
{
	(void)state;
	scratch_write(played.dir, "web.snap", "not a snapshot at all", 21);
	RUN(cli_get, "pullet get", "web", "a");
	assert_int_equal(command.code, CLI_FAILED);
	assert_shows(command.err, "pullet get: web: ");
}

/* ---- list ---- */

static void list__prints_lines_in_key_order_escaped(void **state)
{
	(void)state;
	RUN(cli_list, "pullet list", "web");
	assert_ended(CLI_OK,
		"db.host=it's\ndb.port=5432\ndb.tls=true\nlist.0=a\\nb\\\\\nlist.1=\nratio=0.10\n"
		"size=2KiB\nwait=5m\n",
		"");
	RUN(cli_list, "pullet list", "web", "db.");
	assert_ended(CLI_OK, "db.host=it's\ndb.port=5432\ndb.tls=true\n", "");
	count = 0;
	/* a key as `get` takes it; what terminals obey (U+009B), and what turns text around */
	add("a\\.b", PULLET_STRING,
		"\x1f !~\x7f\x80\t\r\xc2\x9b"
		"2J\xe2\x80\xae"
		"\xc3\xa4");
	publish(5);
	RUN(cli_list, "pullet list", "web");
	assert_ended(CLI_OK, "a\\.b=\\x1f !~\\x7f\\x80\\t\\r\\u009b2J\\u202e\xc3\xa4\n", "");
	RUN(cli_get, "pullet get", "web", "a\\.b");
	assert_ended(CLI_OK,
		"\x1f !~\x7f\x80\t\r\xc2\x9b"
		"2J\xe2\x80\xae"
		"\xc3\xa4"
		"\n",
		"");
}

static void list__with_json__is_one_object_with_empty_ones_too(void **state)
{
	(void)state;
	RUN(cli_list, "pullet list", "web", "--json");
	assert_int_equal(command.code, CLI_OK);
	assert_shows(command.out, "\"db.port\": 5432");
	assert_shows(command.out, "\"empty\": []");
	assert_shows(command.out, "\"list.1\": null");
	assert_null(strstr(command.out, "\"db\""));
	add("x", PULLET_DOUBLE, ".inf")->number = INFINITY;
	publish(5);
	RUN(cli_list, "pullet list", "web", "--json");
	assert_ended(CLI_FAILED, "", "pullet list: 'x' is no finite number: JSON has none such\n");
}

static void list__of_a_prefix_that_no_key_has__exits_2(void **state)
{
	(void)state;
	RUN(cli_list, "pullet list", "web", "nope");
	assert_ended(CLI_NOT_FOUND, "", "pullet list: no key in web begins with 'nope'\n");
	RUN(cli_list, "pullet list", "other");
	assert_int_equal(command.code, CLI_NOT_FOUND);
}

/* ---- export ---- */

static void export__to_a_shell__quotes(void **state)
{
	(void)state;
	RUN(cli_export, "pullet export", "web", "--format", "sh", "--prefix", "APP_", "db.");
	assert_ended(CLI_OK,
		"export APP_DB_HOST='it'\\''s'\nexport APP_DB_PORT='5432'\nexport "
		"APP_DB_TLS='true'\n",
		"");
	RUN(cli_export, "pullet export", "web", "--format", "env", "db.");
	assert_ended(CLI_OK, "DB_HOST=it's\nDB_PORT=5432\nDB_TLS=true\n", "");
	RUN(cli_export, "pullet export", "web", "--format", "properties", "db.p", "wait");
	assert_ended(CLI_OK, "db.port=5432\nwait=5m\n", "");
}

static void export__of_what_the_form_does_not_have__fails_whole(void **state)
{
	(void)state;
	RUN(cli_export, "pullet export", "web", "--format", "env");
	assert_int_equal(command.code, CLI_FAILED);
	assert_string_equal(command.out, "");
	assert_shows(command.err, "list.0");
}

static void export__of_an_unknown_config__exits_2(void **state)
{
	(void)state;
	RUN(cli_export, "pullet export", "wev", "--format", "json");
	assert_int_equal(command.code, CLI_NOT_FOUND);
	assert_string_equal(command.out, "");
	assert_shows(command.err, "there is no snapshot of 'wev' in ");
	assert_shows(command.err, ": did you mean 'web'?\n");
}

static void export__as_a_document__has_the_tree_again(void **state)
{
	(void)state;
	RUN(cli_export, "pullet export", "web", "--format", "yaml", "list", "db.port");
	assert_ended(CLI_OK, "db:\n  port: 5432\nlist:\n- |-\n  a\n  b\\\n-\n", NULL);
	RUN(cli_export, "pullet export", "web", "--format", "json", "ratio", "empty");
	assert_int_equal(command.code, CLI_OK);
	assert_shows(command.out, "\"empty\": []");
	assert_shows(command.out, "\"ratio\": 0.10");
}

static void export__of_keys_that_are_no_tree__fails(void **state)
{
	(void)state;
	add("orphan.child", PULLET_STRING, "x");
	publish(5);
	RUN(cli_export, "pullet export", "web", "--format", "json");
	assert_ended(CLI_FAILED, "",
		"pullet export: 'orphan.child' is in no list or map: the snapshot is not whole\n");
	fill_entries();
	add("x", PULLET_DOUBLE, ".nan")->number = NAN;
	publish(6);
	RUN(cli_export, "pullet export", "web", "--format", "json");
	assert_ended(
		CLI_FAILED, "", "pullet export: 'x' is no finite number: JSON has none such\n");
}

static void export__with_escaped_dots_and_many_items__keeps_keys_and_order(void **state)
{
	static char keys[12][8];

	(void)state;
	count = 0;
	add("a\\.b", PULLET_STRING, "dot");
	add("l", PULLET_LIST, "")->count = 12;
	for (int i = 0; i < 12; i++) {
		snprintf(keys[i], sizeof(keys[i]), "l.%d", i);
		add(keys[i], PULLET_STRING, keys[i]);
	}
	publish(5);
	RUN(cli_export, "pullet export", "web", "--format", "yaml");
	assert_int_equal(command.code, CLI_OK);
	assert_shows(command.out, "a.b: dot\n");
	assert_shows(command.out, "- l.1\n- l.2\n");
	assert_shows(command.out, "- l.9\n- l.10\n- l.11\n");
}

static void export__misused__says_how(void **state)
{
	(void)state;
	RUN(cli_export, "pullet export", "web");
	assert_shows(command.err, "--format is needed");
	RUN(cli_export, "pullet export", "--format", "sh");
	assert_shows(command.err, "name a config");
	RUN(cli_export, "pullet export", "web", "--format", "xml");
	assert_ended(CLI_USAGE, "",
		"pullet export: --format takes sh, env, properties, json or yaml, not 'xml'\n");
	RUN(cli_export, "pullet export", "web", "--format", "json", "--prefix", "A");
	assert_ended(CLI_USAGE, "", "pullet export: --prefix goes with sh, env or properties\n");
	RUN(cli_export, "pullet export", "web", "--format", "sh", "--prefix", "1");
	assert_int_equal(command.code, CLI_USAGE);
	assert_shows(command.err, "--prefix takes letters, digits and '_' here");
	RUN(cli_export, "pullet export", "web", "--format", "sh", "nope");
	assert_ended(CLI_NOT_FOUND, "", "pullet export: no key in web begins with 'nope'\n");
}

/* ---- watch ---- */

static void watch__prints_the_current_version_and_gives_up_in_time(void **state)
{
	(void)state;
	RUN(cli_watch, "pullet watch", "web", "--timeout", "0s");
	assert_ended(
		CLI_TIMED_OUT, "4 v1\n", "pullet watch: nothing newer has come in that time\n");
	RUN(cli_watch, "pullet watch", "other", "--timeout", "0s");
	assert_int_equal(command.code, CLI_TIMED_OUT);
	assert_shows(command.err, "nothing is published as other yet, waiting");
}

/* Reads what is printed until it ends so, and keeps it. */
static void read_printed(int printed, const char *end)
{
	char *text = played.log->body;
	size_t len = strlen(text), n = strlen(end);

	while (len < n || strcmp(text + len - n, end) != 0) {
		if (read(printed, text + len, 1) != 1)
			_exit(1);
		text[++len] = '\0';
	}
}

/* Replaces the snapshot, as the agent does. */
static void replace_snapshot(uint64_t generation)
{
	char from[SCRATCH_PATH + 16], to[SCRATCH_PATH + 16];
	void *image;
	size_t len;

	if (snapshot_build(entries, count, generation, 0, "v2", &image, &len))
		_exit(1);
	scratch_write(played.dir, ".new", image, len);
	free(image);
	snprintf(from, sizeof(from), "%s/.new", played.dir);
	snprintf(to, sizeof(to), "%s/web.snap", played.dir);
	rename(from, to);
}

static pid_t watching = -1;

static void pass_on(int signo)
{
	kill(watching, signo);
}

/* In a process of its own, for it blocks signals, and remembers that one came. */
static int run_watch_apart(int argc, char **argv)
{
	const struct sigaction passing = {.sa_handler = pass_on};
	sigset_t set;
	int how = 0;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_SETMASK, &set, NULL);
	sigaction(SIGTERM, &passing, NULL);
	watching = fork();
	assert_true(watching >= 0);
	sigemptyset(&set);
	if (watching == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGTERM, SIG_DFL);
		sigprocmask(SIG_SETMASK, &set, NULL);
		how = cli_watch(argc, argv);
		fflush(NULL);
		_exit(how);
	}
	sigprocmask(SIG_SETMASK, &set, NULL);
	while (waitpid(watching, &how, 0) < 0)
		;
	signal(SIGTERM, SIG_DFL);
	return WIFEXITED(how) ? WEXITSTATUS(how) : -1;
}

static void publish_one_more(int printed)
{
	read_printed(printed, "4 v1\n");
	replace_snapshot(5);
	read_printed(printed, "5 v2\n");
}

static void watch__prints_each_newer_version_until_it_is_ended(void **state)
{
	(void)state;
	played.log->body[0] = '\0';
	command.peer = publish_one_more;
	RUN(run_watch_apart, "pullet watch", "web");
	assert_int_equal(command.code, CLI_OK);
	assert_string_equal(played.log->body, "4 v1\n5 v2\n");
	assert_string_equal(command.err, "");
}

static void end_while_the_command_runs(int printed)
{
	read_printed(printed, "it runs\n");
}

/* With its children; one that is not yet another program than its shell would not notice. */
static void watch__that_is_ended__ends_the_command_that_runs(void **state)
{
	char script[SCRATCH_PATH + 128];

	(void)state;
	played.log->body[0] = '\0';
	snprintf(script, sizeof(script),
		"trap 'wait; echo ended > %s/said; exit 3' TERM; "
		"/bin/sh -c \"echo it runs; exec sleep 100\" & wait",
		played.dir);
	command.peer = end_while_the_command_runs;
	RUN(run_watch_apart, "pullet watch", "web", "--now", "--", "/bin/sh", "-c", script);
	assert_int_equal(command.code, CLI_OK);
	assert_string_equal(command.err, "pullet watch: /bin/sh: exit 3 at generation 4\n");
	assert_int_equal(scratch_count(played.dir, "said"), 1);
}

static void watch__with_a_command__runs_it_with_the_version(void **state)
{
	static const char *const names[] = {
		"PULLET_CONFIG_NAME", "PULLET_GENERATION", "PULLET_VERSION"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		setenv(names[i], "of another watch", 1);
	RUN(cli_watch, "pullet watch", "web", "--now", "--timeout", "0s", "--", "/bin/sh", "-c",
		"echo $PULLET_CONFIG_NAME $PULLET_GENERATION $PULLET_VERSION; exit 3");
	assert_ended(CLI_TIMED_OUT, "web 4 v1\n",
		"pullet watch: /bin/sh: exit 3 at generation 4\n"
		"pullet watch: nothing newer has come in that time\n");
	RUN(cli_watch, "pullet watch", "web", "--now", "--timeout", "0s", "--", "/bin/sh", "-c",
		"kill -9 $$");
	assert_shows(command.err, "/bin/sh: ended by signal 9 at generation 4");
	RUN(cli_watch, "pullet watch", "web", "--now", "--timeout", "0s", "--", "/no/such/program");
	assert_shows(command.err, "/no/such/program: exit 127");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
}

static void watch__with_a_pidfile__signals_that_process(void **state)
{
	char pidfile[SCRATCH_PATH + 16], number[16];
	int status;
	pid_t pid;

	(void)state;
	pid = fork();
	if (pid == 0) {
		pause();
		_exit(0);
	}
	snprintf(pidfile, sizeof(pidfile), "%s/pid", played.dir);
	snprintf(number, sizeof(number), "%d\n", (int)pid);
	scratch_write(played.dir, "pid", number, strlen(number));
	RUN(cli_watch, "pullet watch", "web", "--now", "--timeout", "0s", "--signal", "SIGUSR1",
		"--pidfile", pidfile);
	assert_int_equal(command.code, CLI_TIMED_OUT);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1);
	RUN(cli_watch, "pullet watch", "web", "--now", "--timeout", "0s", "--signal", "HUP",
		"--pidfile", "/nowhere/pid");
	assert_shows(command.err, "/nowhere/pid");
}

static void watch__misused__says_how(void **state)
{
	(void)state;
	RUN(cli_watch, "pullet watch");
	assert_shows(command.err, "name a config");
	RUN(cli_watch, "pullet watch", "web", "--signal", "HUP");
	assert_shows(command.err, "--signal and --pidfile go together");
	RUN(cli_watch, "pullet watch", "web", "--signal", "KILL");
	assert_shows(command.err, "--signal takes HUP, INT, QUIT");
	RUN(cli_watch, "pullet watch", "web", "--now");
	assert_shows(command.err, "--now goes with a command or a signal");
	RUN(cli_watch, "pullet watch", "web", "--signal", "HUP", "--pidfile", "x", "--", "y");
	assert_shows(command.err, "a signal or a command, not both");
}

/* ---- memory ---- */

static int (*wanted)(int argc, char **argv);

/* The allocation that fault_memory names fails. */
static int run_short_of_memory(int argc, char **argv)
{
	int r;

	fault_memory.paused = 0;
	r = wanted(argc, argv);
	fault_memory.paused = 1;
	return r;
}

/* Each allocation fails in turn: nothing is printed then, instead of a part. */
static void memory__that_is_short__leaves_no_part(void **state)
{
	static const struct {
		int (*run)(int argc, char **argv);
		const char *arguments[8];
	} rows[] = {
		{cli_get, {"pullet get", "web", "db.host"}},
		{cli_get, {"pullet get", "web", "db.port", "--type", "int"}},
		{cli_get, {"pullet get", "web", "db", "--json"}},
		{cli_get, {"pullet get", "web", "nope", "--default", "x"}},
		{cli_get, {"pullet get", "web", "db.haste"}},
		{cli_list, {"pullet list", "web"}},
		{cli_list, {"pullet list", "web", "--json"}},
		{cli_export, {"pullet export", "web", "--format", "sh", "db."}},
		{cli_export, {"pullet export", "web", "--format", "json"}},
		{cli_export, {"pullet export", "web", "--format", "yaml"}},
	};
	static char whole[COMMAND_MAX];

	(void)state;
	add("odd\\.key", PULLET_STRING, "x");
	publish(5);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned nth = 0;
		int code;

		wanted = rows[i].run;
		code = command_run(wanted, rows[i].arguments);
		memcpy(whole, command.out, sizeof(whole));
		do {
			fault_memory.paused = 1;
			fault_memory.seen = 0;
			fault_memory.nth = ++nth;
			command_run(run_short_of_memory, rows[i].arguments);
			fault_memory.nth = 0;
			assert_string_equal(command.out, command.code == code ? whole : "");
			assert_null(strstr(command.err, "(null)"));
			if (command.code != code)
				assert_shows(command.err, "out of memory\n");
		} while (fault_memory.seen >= nth && nth < 100);
		assert_int_equal(command.code, code);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* ---- the environment of a program ---- */

static struct pullet *environment_of;

/* How often one of that name is in the list; *ret_value: of the last. */
static unsigned find_variable(char *const *list, const char *name, const char **ret_value)
{
	size_t len = strlen(name);
	unsigned found = 0;

	for (; *list; list++)
		if (strncmp(*list, name, len) == 0 && (*list)[len] == '=') {
			*ret_value = *list + len + 1;
			found++;
		}
	return found;
}

static bool read_environment(void)
{
	static const struct {
		const char *name, *value;
	} rows[] = {
		{"APP_DB_HOST", "it's"},
		{"APP_LIST_0", "a\nb\\"},
		{"PULLET_CONFIG_NAME", "web"},
		{"PULLET_GENERATION", "4"},
		{"PULLET_VERSION", "v1"},
		{"TEST_INHERITED", "kept"},
	};
	char program[] = "/bin/true", *argv[] = {program, NULL};
	struct export_error error;
	struct exec_env e;
	const char *value;

	if (exec_env_read(environment_of, "web", "APP_", argv, &e, &error))
		return true;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(find_variable(e.list, rows[i].name, &value), 1);
		assert_string_equal(value, rows[i].value);
	}
	exec_env_fini(&e);
	exec_env_fini(&e); /* is empty now */
	return false;
}

static void environment__has_each_variable_once__or_is_not_made(void **state)
{
	(void)state;
	setenv("TEST_INHERITED", "kept", 1);
	setenv("APP_DB_HOST", "old", 1);
	assert_int_equal(pullet_open("web", 0, &environment_of), 0);
	assert_false(read_environment());
	if (fault_memory_works)
		assert_true(fault_memory_each(read_environment, false) >= 2);
	pullet_close(environment_of);
	unsetenv("TEST_INHERITED");
	unsetenv("APP_DB_HOST");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(environment__has_each_variable_once__or_is_not_made),
		CASE(get__prints_a_value_as_it_was_written),
		CASE(get__of_a_type__prints_it_in_one_form),
		CASE(get__of_another_type__says_which_it_is),
		CASE(get__of_a_list_or_map__wants_json),
		CASE(get__of_an_unknown_key__names_those_near_it),
		CASE(get__of_an_unknown_config__names_those_that_there_are),
		CASE(get__with_help__lists_its_options), CASE(get__of_a_damaged_snapshot__says_so),
		CASE(list__prints_lines_in_key_order_escaped),
		CASE(list__with_json__is_one_object_with_empty_ones_too),
		CASE(list__of_a_prefix_that_no_key_has__exits_2), CASE(export__to_a_shell__quotes),
		CASE(export__of_what_the_form_does_not_have__fails_whole),
		CASE(export__of_an_unknown_config__exits_2),
		CASE(export__as_a_document__has_the_tree_again),
		CASE(export__of_keys_that_are_no_tree__fails),
		CASE(export__with_escaped_dots_and_many_items__keeps_keys_and_order),
		CASE(export__misused__says_how),
		CASE(watch__prints_the_current_version_and_gives_up_in_time),
		CASE(watch__prints_each_newer_version_until_it_is_ended),
		CASE(watch__that_is_ended__ends_the_command_that_runs),
		CASE(watch__with_a_command__runs_it_with_the_version),
		CASE(watch__with_a_pidfile__signals_that_process), CASE(watch__misused__says_how),
		CASE(memory__that_is_short__leaves_no_part), /* last */
	};

	return fault_memory_run(tests, 1);
}

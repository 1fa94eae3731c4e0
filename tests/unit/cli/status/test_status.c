/* `pullet status`: its table, the notes below it, its exit codes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <grp.h>
#include <pty.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/common/cli.h"
#include "tests/unit/fixture/command.h"

#define WELL                                                                                       \
	"{\"name\":\"web\",\"state\":\"ok\",\"generation\":3,\"age_ms\":5000,"                     \
	"\"next_pull_in_ms\":25000,\"version\":\"\\\"v3\\\"\",\"server\":\"origin\"}"
#define STATUS(configs) "{\"configuration\":{},\"configs\":[" configs "]}"

static int set_up(void **state)
{
	(void)state;
	alarm(30);
	played_open();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	played_close();
	return 0;
}

/* ---- what is shown ---- */

static void status__of_one_config_that_is_well__is_two_lines(void **state)
{
	(void)state;
	played_answers("GET /v1/status", 200, STATUS(WELL));
	RUN(cli_status, "pullet status");
	assert_ended(CLI_OK,
		"1 config: ok\n"
		"NAME  STATE  GENERATION  AGE  NEXT  VERSION\n"
		"web   ok     3           5s   25s   v3\n",
		"");
}

static void status__shows_the_worst_first_and_why(void **state)
{
	char *end;

	(void)state;
	played_answers("GET /v1/status", 200,
		STATUS(WELL
			",{\"name\":\"old\",\"state\":\"stale\",\"generation\":2,\"age_ms\":90000,"
			"\"next_pull_in_ms\":1000,\"confirmed_ms\":1700000000000,"
			"\"last_error\":\"no route\",\"cause\":\"unreachable\"},"
			"{\"name\":\"new\",\"state\":\"waiting\",\"running\":true,"
			"\"last_error\":\"404\",\"cause\":\"not found\"},"
			"{\"name\":\"bad\",\"state\":\"failing\",\"generation\":9,\"age_ms\":4000,"
			"\"deferred\":true,\"backoff_ms\":7000,\"failing_since_ms\":1,"
			"\"last_error\":\"x\"}"));
	RUN(cli_status, "pullet status");
	assert_int_equal(command.code, CLI_OK);
	end = strstr(command.out, "; generation 9");
	assert_string_equal(end, "; generation 9 stays, last confirmed 4s ago; pull deferred: "
				 "server in backoff for 7s\n"
				 "web   ok       3           5s   25s      v3\n");
	end[0] = '\0';
	end = strstr(command.out, "failing for ") + 12; /* since 1970 */
	assert_in_range(strtoul(end, &end, 10), 20000, 100000);
	assert_string_equal(end, "d");
	*strstr(command.out, "failing for ") = '\0';
	assert_string_equal(command.out,
		"4 configs: 1 ok, 1 waiting, 1 stale, 1 failing; the worst is new (waiting)\n"
		"NAME  STATE    GENERATION  AGE  NEXT     VERSION\n"
		"new   waiting  0           -    running  -\n"
		"  not found: 404\n"
		"  nothing is published; a pull is running\n"
		"old   stale    2           90s  1s       -\n"
		"  unreachable: no route\n"
		"  generation 2 stays, last confirmed 90s ago (2023-11-14T22:13:20Z); next pull in "
		"1s\n"
		"bad   failing  9           4s   held 7s  -\n"
		"  x\n"
		"  ");
}

static void status__shows_what_operators_and_checks_decided(void **state)
{
	(void)state;
	played_answers("GET /v1/status", 200,
		STATUS("{\"name\":\"a\",\"state\":\"ok\",\"generation\":1,"
		       "\"rejected\":{\"by\":\"schema\",\"version\":\"v2\",\"why\":\"/port: "
		       "70000\"}},"
		       "{\"name\":\"b\",\"state\":\"ok\",\"rejected\":{\"by\":\"pin\",\"version\":"
		       "\"v9\"},\"pin\":{\"by\":\"root\",\"reason\":\"launch\"}},"
		       "{\"name\":\"c\",\"state\":\"ok\",\"rejected\":{\"by\":\"probe\",\"why\":"
		       "\"exit 1\"},"
		       "\"probe\":{\"state\":\"failed\",\"generation\":4,\"error\":\"exit 1\"}},"
		       "{\"name\":\"d\",\"state\":\"ok\",\"rejected\":{\"by\":\"rollout\",\"why\":"
		       "\"10 %\"},"
		       "\"suspension\":{\"by\":\"root\",\"until_ms\":1700000000000},"
		       "\"overrides\":[{\"key\":\"k\",\"by\":\"root\"}]},"
		       "{\"name\":\"e\",\"state\":\"ok\",\"drifted\":true,\"expires_ms\":1000,"
		       "\"reload\":{\"state\":\"failed\",\"next_ms\":4000,\"error\":\"exit 3\"},"
		       "\"watch\":{\"state\":\"failing\",\"error\":\"cut\"}},"
		       "{\"name\":\"f\",\"state\":\"ok\",\"reload\":{\"state\":\"pending\","
		       "\"pending\":8},"
		       "\"rejected\":{\"by\":\"guard\",\"why\":\"empty\",\"is_last_error\":true},"
		       "\"last_error\":\"empty\"}"));
	RUN(cli_status, "pullet status");
	assert_ended(CLI_OK,
		"6 configs: all ok; 3 with a rejected version; 1 held by the rollout; 1 suspended; "
		"1 pinned; 1 "
		"overridden; 2 with a reload pending; 1 that failed a probe; 1 whose file somebody "
		"changed; 1 whose watch fails; 1 whose signature has expired\n"
		"NAME  STATE  GENERATION  AGE  NEXT  VERSION\n"
		"a     ok     1           -    -     -\n"
		"  the server's version v2 is rejected by the schema: /port: 70000\n"
		"b     ok     0           -    -     -\n"
		"  the server's version v9 is held by the pin\n"
		"  pinned by root: launch\n"
		"c     ok     0           -    -     -\n"
		"  the server's version (without a name) was rolled back by the probe: exit 1\n"
		"  generation 4 failed its probe: exit 1\n"
		"d     ok     0           -    -     -\n"
		"  the server's version (without a name) is held by the rollout: 10 %\n"
		"  suspended by root until 2023-11-14T22:13:20Z\n"
		"  override of k by root\n"
		"e     ok     0           -    -     -\n"
		"  reload failed, next attempt in 4s: exit 3\n"
		"  the watch fails, changes come with the interval: cut\n"
		"  the published file was changed by somebody and is not restored\n"
		"  the signature expired at 1970-01-01T00:00:01Z\n"
		"f     ok     0           -    -     -\n"
		"  the server's version (without a name) is rejected by the guard: empty\n"
		"  reload pending for generation 8\n",
		"");
}

static void status__shows_what_fails_of_the_agent(void **state)
{
	(void)state;
	played_answers("GET /v1/status", 200,
		"{\"version\":\"0.1.0\",\"pid\":7,\"uptime_ms\":180000,"
		"\"configuration\":{\"error\":\"a.yaml:1:1: no\",\"errors\":3,\"applying\":true},"
		"\"servers\":[{\"name\":\"origin\",\"backoff_ms\":9000,\"pending\":1,\"addresses\":"
		"["
		"{\"url\":\"http://"
		"a\",\"backoff_ms\":9000,\"failures_in_a_row\":2,\"error\":\"503\"},"
		"{\"url\":\"http://b\"}]}],"
		"\"push\":[{\"endpoint\":\"tcp://"
		"p:1\",\"state\":\"silent\",\"last_message_ago_ms\":5000},"
		"{\"endpoint\":\"tcp://q:1\",\"state\":\"refused\",\"error\":\"bad key\"},"
		"{\"endpoint\":\"tcp://r:1\",\"state\":\"connected\"}],"
		"\"report\":{\"state\":\"failing\",\"server\":\"etcd\",\"error\":\"403\"},"
		"\"configs\":[{\"name\":\"web\",\"state\":\"ok\",\"server\":\"origin\","
		"\"next_pull_in_ms\":1}]}");
	RUN(cli_status, "pullet status", "--all");
	assert_ended(CLI_OK,
		"1 config: ok; pulletd 0.1.0 up 3m\n"
		"reload pending: waiting for writes to finish\n"
		"the new configuration is rejected, keeping the old one: a.yaml:1:1: no (3 errors; "
		"pulletd -t prints them)\n"
		"server origin: in backoff for 9s, 1 pull queued; http://a is in backoff for 9s "
		"after 2 failures in a row: 503\n"
		"push tcp://p:1: silent, last message 5s ago; changes come with the interval\n"
		"push tcp://q:1: refused, no message yet: bad key\n"
		"receipts to the server etcd fail: 403\n"
		"NAME  STATE  GENERATION  AGE  NEXT  VERSION\n"
		"web   ok     0           -    9s    -\n",
		"");
}

static void status__of_a_named_config__lists_all_members(void **state)
{
	(void)state;
	played_answers("GET /v1/configs/web", 200,
		"{\"name\":\"web\",\"state\":\"ok\",\"generation\":3,\"version\":\"\\\"v3\\\"\","
		"\"published_ms\":1700000000000,\"interval_ms\":30000,\"empty\":null,"
		"\"runs\":{\"success\":4,\"timeouts\":1},\"list\":[1,{\"until_ms\":1000}]}");
	RUN(cli_status, "pullet status", "web");
	assert_ended(CLI_OK,
		"NAME  STATE  GENERATION  AGE  NEXT  VERSION\n"
		"web   ok     3           -    -     v3\n"
		"\n"
		"name: web\n"
		"state: ok\n"
		"generation: 3\n"
		"version: v3\n"
		"published: 2023-11-14T22:13:20Z\n"
		"interval: 30s\n"
		"runs.success: 4\n"
		"runs.timeouts: 1\n"
		"list.0: 1\n"
		"list.1.until: 1970-01-01T00:00:01Z\n",
		"");
}

static void status__of_texts_with_control_characters__escapes_them(void **state)
{
	(void)state;
	played_answers("GET /v1/status", 200,
		STATUS("{\"name\":\"w\\u001b[31mb\",\"state\":\"failing\",\"generation\":1,"
		       "\"last_error\":\"a\\u0007b\"}"));
	RUN(cli_status, "pullet status");
	assert_int_equal(command.code, CLI_OK);
	assert_null(strchr(command.out, '\033'));
	assert_null(strchr(command.out, '\a'));
}

/* ---- on a terminal ---- */

static int terminal = -1;

/* Standard output is the terminal instead. */
static int run_on_terminal(int argc, char **argv)
{
	dup2(terminal, STDOUT_FILENO);
	return cli_status(argc, argv);
}

/* Runs it on a terminal of that size; what it showed. */
static const char *show_on(unsigned short columns, unsigned short rows, const char *option)
{
	const struct winsize size = {.ws_col = columns, .ws_row = rows};
	static char text[16384];
	size_t len = 0;
	ssize_t n;
	int master;

	assert_int_equal(openpty(&master, &terminal, NULL, NULL, &size), 0);
	RUN(run_on_terminal, "pullet status", option);
	assert_int_equal(command.code, CLI_OK);
	close(terminal);
	while ((n = read(master, text + len, sizeof(text) - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	for (char *p = text; (p = strchr(p, '\r'));)
		memmove(p, p + 1, strlen(p));
	close(master);
	return text;
}

/* So many configs fail, each with a note below it, and so many are well. */
static void answer_many(size_t failing, size_t well)
{
	static char text[16384];
	size_t len = (size_t)snprintf(text, sizeof(text), "{\"configuration\":{},\"configs\":[");

	for (size_t i = 0; i < failing + well; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
			"%s{\"name\":\"c%02zu\",\"state\":\"%s\",\"generation\":7,\"age_ms\":4000,"
			"\"next_pull_in_ms\":1000,\"version\":\"\\\"v1\\\"\"%s}",
			i ? "," : "", i, i < failing ? "failing" : "ok",
			i < failing ? ",\"last_error\":\"x\"" : "");
	snprintf(text + len, sizeof(text) - len, "]}");
	played_answers("GET /v1/status", 200, text);
}

static size_t count_lines(const char *shown)
{
	size_t n = 0;

	for (; *shown; shown++)
		n += *shown == '\n';
	return n;
}

static void terminal__that_is_low__shows_the_first(void **state)
{
	const char *shown;

	(void)state;
	setenv("NO_COLOR", "1", 1);
	answer_many(0, 30);
	shown = show_on(80, 24, NULL); /* all but a line for the prompt */
	assert_int_equal(count_lines(shown), 23);
	assert_shows(shown, "\nc19   ok     7           4s   1s    v1\n"
			    "and 10 more, all ok: --all lists them\n");
	shown = show_on(80, 33, NULL);
	assert_int_equal(count_lines(shown), 32);
	assert_shows(shown, "\nc28   ok     7           4s   1s    v1\n"
			    "and 1 more, all ok: --all lists them\n");
	shown = show_on(80, 34, NULL);
	assert_int_equal(count_lines(shown), 32);
	assert_null(strstr(shown, "more"));
	shown = show_on(80, 3, NULL); /* ten in any case */
	assert_shows(shown, "\nc09   ok     7           4s   1s    v1\n"
			    "and 20 more, all ok: --all lists them\n");
	assert_int_equal(count_lines(show_on(80, 3, "--all")), 32);
	answer_many(6, 2);
	shown = show_on(80, 3, NULL); /* each with its note */
	assert_shows(shown, "and 5 more, 3 of them not ok: --all lists them\n");
}

static void terminal__that_is_narrow__cuts_and_wraps(void **state)
{
	(void)state;
	setenv("NO_COLOR", "1", 1);
	played_answers("GET /v1/status", 200,
		STATUS("{\"name\":\"application\",\"state\":\"failing\",\"generation\":7,"
		       "\"age_ms\":4000,\"next_pull_in_ms\":9000,\"version\":"
		       "\"\\\"0123456789abcdef\\\"\",\"last_error\":\"no route to "
		       "that host over there\"}"));
	assert_string_equal(show_on(60, 24, NULL),
		"1 config: 0 ok, 1 failing\n"
		"NAME         STATE    GENERATION  AGE  NEXT  VERSION\n"
		"application  failing  7           4s   9s    0123456789ab...\n"
		"  no route to that host over there\n"
		"  generation 7 stays, last confirmed 4s ago; next pull in 9s\n");
	assert_string_equal(show_on(50, 24, NULL),
		"1 config: 0 ok, 1 failing\n"
		"NAME         STATE    AGE  NEXT  VERSION\n"
		"application  failing  4s   9s    0123456789abcdef\n"
		"  no route to that host over there\n"
		"  generation 7 stays, last confirmed 4s ago; next\n"
		"    pull in 9s\n");
	assert_string_equal(show_on(30, 24, NULL), "1 config: 0 ok, 1 failing\n"
						   "NAME      STATE    AGE  NEXT\n"
						   "appli...  failing  4s   9s\n"
						   "  no route to that host over\n"
						   "    there\n"
						   "  generation 7 stays, last\n"
						   "    confirmed 4s ago; next\n"
						   "    pull in 9s\n");
}

static void terminal__with_colours__shows_states_in_them(void **state)
{
	(void)state;
	unsetenv("NO_COLOR");
	setenv("TERM", "xterm", 1);
	answer_many(1, 1);
	assert_shows(show_on(80, 24, NULL), "\nc00   \033[33mfailing\033[0m  7 ");
	assert_shows(show_on(80, 24, NULL), "\nc01   \033[32mok\033[0m       7 ");
	setenv("TERM", "dumb", 1);
	assert_null(strchr(show_on(80, 24, NULL), '\033'));
	setenv("TERM", "xterm", 1);
	setenv("NO_COLOR", "1", 1);
	assert_null(strchr(show_on(80, 24, NULL), '\033'));
}

/* ---- options ---- */

static void names__are_a_line_each_in_the_agents_order(void **state)
{
	(void)state;
	played_answers("GET /v1/status", 200,
		STATUS("{\"name\":\"z\",\"state\":\"ok\"},{\"name\":\"a\",\"state\":\"stale\"}"));
	RUN(cli_status, "pullet status", "--names");
	assert_ended(CLI_OK, "z\na\n", "");
}

static void names__without_an_agent__are_those_of_snapshots(void **state)
{
	(void)state;
	played_stop();
	scratch_write(played.dir, "web.snap", "", 0);
	scratch_write(played.dir, "db.snap", "", 0);
	scratch_write(played.dir, "no-snapshot", "", 0);
	scratch_write(played.dir, ".snap", "", 0);
	RUN(cli_status, "pullet status", "--names");
	assert_int_equal(command.code, CLI_UNREACHABLE);
	assert_string_equal(command.out, "db\nweb\n");
	assert_shows(command.err, "start it (systemctl start pullet), or name its socket");
}

static void json__is_the_answer_as_it_is(void **state)
{
	(void)state;
	played_answers("GET /v1/status", 200, STATUS(WELL));
	RUN(cli_status, "pullet status", "--json");
	assert_ended(CLI_OK, STATUS(WELL), "");
	RUN(cli_status, "pullet status", "--json", "--check");
	assert_ended(CLI_OK, STATUS(WELL), "");
}

static void check__fails_unless_every_config_is_ok(void **state)
{
	(void)state;
	played_answers("GET /v1/status", 200, STATUS(WELL));
	assert_int_equal(RUN(cli_status, "pullet status", "--check"), CLI_OK);
	played_answers(
		"GET /v1/status", 200, STATUS(WELL ",{\"name\":\"b\",\"state\":\"failing\"}"));
	assert_int_equal(RUN(cli_status, "pullet status", "--check"), CLI_FAILED);
	played_answers("GET /v1/status", 200,
		"{\"configuration\":{\"error\":\"no\"},\"configs\":[" WELL "]}");
	assert_int_equal(RUN(cli_status, "pullet status", "--check"), CLI_FAILED);
}

static void ready__prints_only_what_is_not(void **state)
{
	(void)state;
	played_answers("GET /readyz", 200, "ok\n");
	RUN(cli_status, "pullet status", "--ready");
	assert_ended(CLI_OK, "", "");
	played_answers("GET /readyz", 500, "web: not found\ndb: 404\n\n");
	RUN(cli_status, "pullet status", "--ready");
	assert_int_equal(command.code, CLI_FAILED);
	assert_string_equal(command.out, "");
	assert_shows(command.err, "not ready: web: not found");
	played_answers("GET /readyz", 503, "{\"error\":\"too many requests\"}");
	RUN(cli_status, "pullet status", "--ready");
	assert_ended(CLI_BUSY, "", "pullet status: the agent is busy: too many requests\n");
}

static void options__that_exclude_each_other__are_misused(void **state)
{
	(void)state;
	assert_int_equal(RUN(cli_status, "pullet status", "--ready", "web"), CLI_USAGE);
	assert_shows(command.err, "pullet status: --ready is about all configs");
	for (size_t i = 0; i < 3; i++) {
		static const char *const forms[] = {"--all", "--names", "--json"};

		RUN(cli_status, "pullet status", forms[i], forms[(i + 1) % 3]);
		assert_int_equal(command.code, CLI_USAGE);
		assert_shows(command.err, "pullet status: --all, --names, --json: one of them\n");
	}
	assert_int_equal(RUN(cli_status, "pullet status", "a", "b"), CLI_USAGE);
	assert_shows(command.err, "one config at most");
	assert_int_equal(RUN(cli_status, "pullet status", "--nope"), CLI_USAGE);
	assert_shows(command.err, "Try 'pullet status --help'.");
	assert_string_equal(played_asked(0), "");
}

/* ---- answers that are none ---- */

static void status__of_no_agent__exits_3_and_says_what_to_do(void **state)
{
	(void)state;
	played_stop();
	RUN(cli_status, "pullet status");
	assert_int_equal(command.code, CLI_UNREACHABLE);
	assert_shows(command.err, "no agent answers at ");
	scratch_write(played.dir, "control.sock", "", 0);
	RUN(cli_status, "pullet status");
	assert_int_equal(command.code, CLI_UNREACHABLE);
	assert_shows(command.err, "start it (systemctl start pullet)\n");
	RUN(cli_status, "pullet status", "--socket", "/dev/null/x");
	assert_int_equal(command.code, CLI_UNREACHABLE);
	assert_shows(command.err, "Not a directory");
}

static void status__of_no_agent__whose_configuration_is_empty__says_what_to_add(void **state)
{
	char path[SCRATCH_PATH + 32], expected[512];

	(void)state;
	played_stop();
	snprintf(path, sizeof(path), "%s/pullet.yaml", played.dir);
	scratch_write(played.dir, "pullet.yaml", "# nothing\n", 10);
	setenv("PULLET_CONFIG", path, 1);
	RUN(cli_status, "pullet status");
	snprintf(expected, sizeof(expected),
		"pullet status: no agent answers at %s/control.sock: nothing is configured in %s: "
		"add a config to %s, and start it (systemctl start pullet)\n",
		played.dir, played.dir, path);
	assert_ended(CLI_UNREACHABLE, "", expected);
	RUN(cli_status, "pullet status", "--socket", "/nowhere/x"); /* is of another agent */
	assert_null(strstr(command.err, "nothing is configured"));
	scratch_write(played.dir, "pullet.yaml", "agent: {}\n", 10);
	RUN(cli_status, "pullet status");
	assert_shows(command.err, "/control.sock: start it (systemctl start pullet), or name its "
				  "socket with --socket");
	unsetenv("PULLET_CONFIG");
}

#define STRANGER 54321 /* a user and a group that nothing here is of */

static int run_as_stranger(int argc, char **argv)
{
	int r;

	assert_int_equal(setresuid(STRANGER, STRANGER, 0), 0);
	r = cli_status(argc, argv);
	assert_int_equal(setresuid(0, 0, 0), 0);
	return r;
}

/* By the socket's group, or that of its directory if that is all one sees. */
static void status__for_a_user_who_may_not_ask__names_who_may(void **state)
{
	const struct {
		mode_t dir_mode;
		const char *dir_group, *group, *who, *of_root; /* whose group is root */
	} rows[] = {
		{0700, "root", "bin", NULL, played.dir}, {0700, "daemon", "bin", "daemon", NULL},
		{0711, "daemon", "bin", "bin", NULL}, {0711, "daemon", "root", NULL, played.socket},
		{0711, "daemon", "54321", "54321", NULL}, /* without a name */
	};
	const struct group *g;
	char expected[512];
	int n;

	(void)state;
	if (geteuid() != 0) {
		print_message("# another user needs root\n");
		skip();
	}
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(chmod(played.dir, rows[i].dir_mode), 0);
		assert_int_equal(chmod(played.socket, 0600), 0);
		assert_int_equal(
			chown(played.dir, (uid_t)-1, getgrnam(rows[i].dir_group)->gr_gid), 0);
		g = getgrnam(rows[i].group);
		assert_int_equal(chown(played.socket, (uid_t)-1,
					 g ? g->gr_gid : (gid_t)strtoul(rows[i].group, NULL, 10)),
			0);
		RUN(run_as_stranger, "pullet status");
		n = snprintf(expected, sizeof(expected),
			"pullet status: the control socket %s may not be used by this user: only "
			"by root",
			played.socket);
		if (rows[i].who)
			snprintf(expected + n, sizeof(expected) - (size_t)n,
				" and the group %s: usermod -aG %s USER, then log in again\n",
				rows[i].who, rows[i].who);
		else
			snprintf(expected + n, sizeof(expected) - (size_t)n,
				", as %s belongs to no other group\n", rows[i].of_root);
		assert_ended(CLI_UNREACHABLE, "", expected);
	}
}

static void status__of_no_meaning__is_an_error(void **state)
{
	static const char *const bodies[] = {"", "hello", "{}", STATUS("{\"name\":\"x\"}"),
		"{\"configs\":[1],\"configuration\":{}}"};

	(void)state;
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		played_answers("GET /v1/status", 200, bodies[i]);
		RUN(cli_status, "pullet status");
		assert_ended(CLI_FAILED, "",
			"pullet status: the agent's answer cannot be read: see whether pulletd is "
			"of "
			"the same version\n");
	}
	played_answers("GET /v1/status", 418, "{}");
	RUN(cli_status, "pullet status");
	assert_ended(CLI_FAILED, "", "pullet status: the agent answered 418: it gives no reason\n");
}

static void status__of_too_long_a_name__asks_nothing(void **state)
{
	static char name[9000];

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	RUN(cli_status, "pullet status", name);
	assert_ended(CLI_NOT_FOUND, "", "pullet status: no config has so long a name\n");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(status__of_one_config_that_is_well__is_two_lines),
		CASE(status__shows_the_worst_first_and_why),
		CASE(status__shows_what_operators_and_checks_decided),
		CASE(status__shows_what_fails_of_the_agent),
		CASE(status__of_a_named_config__lists_all_members),
		CASE(status__of_texts_with_control_characters__escapes_them),
		CASE(terminal__that_is_low__shows_the_first),
		CASE(terminal__that_is_narrow__cuts_and_wraps),
		CASE(terminal__with_colours__shows_states_in_them),
		CASE(names__are_a_line_each_in_the_agents_order),
		CASE(names__without_an_agent__are_those_of_snapshots),
		CASE(json__is_the_answer_as_it_is),
		CASE(check__fails_unless_every_config_is_ok),
		CASE(ready__prints_only_what_is_not),
		CASE(options__that_exclude_each_other__are_misused),
		CASE(status__of_no_agent__exits_3_and_says_what_to_do),
		CASE(status__of_no_agent__whose_configuration_is_empty__says_what_to_add),
		CASE(status__for_a_user_who_may_not_ask__names_who_may),
		CASE(status__of_no_meaning__is_an_error),
		CASE(status__of_too_long_a_name__asks_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

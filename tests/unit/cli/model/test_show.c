/* What the agent's status means to an operator: headline, ranks, notes and details, to the letter.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <fcntl.h>

#include <cmocka.h>

#include "base/sys.h"
#include "cli/model/show.h"
#include "document/document.h"

static struct document *json;
static struct show shown;
static struct buffer out;

static int tear_down(void **state)
{
	(void)state;
	show_fini(&shown);
	document_free(json);
	json = NULL;
	buffer_fini(&out);
	return 0;
}

/* Reads that answer. */
static void read_status(const char *text)
{
	struct document_error e;

	tear_down(NULL);
	buffer_init(&out, 1u << 20);
	assert_int_equal(document_parse(DOCUMENT_JSON, text, strlen(text), 0, &json, &e), 0);
	assert_int_equal(show_read(document_root(json), &shown), 0);
}

static void check(const char *expected, const char *file, int line)
{
	static char text[8192];

	assert_true(out.len < sizeof(text));
	memcpy(text, out.data ? out.data : "", out.len);
	text[out.len] = '\0';
	buffer_clear(&out);
	if (strcmp(text, expected) != 0) {
		print_error("it is\n%s\nnot\n%s\n", text, expected);
		_fail(file, line);
	}
}

#define assert_out(expected) check(expected, __FILE__, __LINE__)

static void check_headline(const char *status, const char *expected, const char *file, int line)
{
	read_status(status);
	show_headline(&shown, &out);
	check(expected, file, line);
}

#define assert_headline(status, expected) check_headline(status, expected, __FILE__, __LINE__)

/* ---- the headline ---- */

static void headline__counts_states_and_names_the_worst(void **state)
{
	(void)state;
	assert_headline("{\"configs\":[]}", "0 configs: all ok");
	assert_headline("{\"configs\":[{\"name\":\"a\",\"state\":\"ok\"}]}", "1 config: ok");
	assert_headline("{\"name\":\"a\",\"state\":\"stale\"}", "1 config: 0 ok, 1 stale");
	assert_headline(
		"{\"configs\":[{\"state\":\"ok\"},{\"state\":\"ok\"},1]}", "2 configs: all ok");
	assert_headline(
		"{\"configs\":[{\"name\":\"f\",\"state\":\"failing\",\"age_ms\":5},"
		"{\"name\":\"s\",\"state\":\"stale\",\"age_ms\":5},{\"name\":\"o\",\"state\":"
		"\"ok\"},{\"name\":\"t\",\"state\":\"stale\",\"age_ms\":6}]}",
		"4 configs: 1 ok, 2 stale, 1 failing; the worst is t (stale)");
	assert_headline("{\"configs\":[{\"name\":\"s\",\"state\":\"stale\",\"age_ms\":9},"
			"{\"name\":\"w\",\"state\":\"waiting\"}]}",
		"2 configs: 0 ok, 1 waiting, 1 stale; the worst is w (waiting)");
}

static void headline__counts_what_was_not_pulled_since_the_start(void **state)
{
#define RUNS(success, failed)                                                                      \
	"\"runs\":{\"success\":" #success ",\"failed\":" #failed                                   \
	",\"timeouts\":0,\"not_started\":0}"
	(void)state;
	assert_headline("{\"configs\":[{\"state\":\"ok\"," RUNS(0, 0) "},{\"state\":\"ok\"," RUNS(
				1, 0) "},{\"state\":\"ok\"," RUNS(0, 2) "}]}",
		"3 configs: all ok; 1 not pulled yet since the start");
	assert_int_equal(shown.configs[0].rank, SHOW_QUIET);
	assert_headline("{\"state\":\"ok\",\"suspension\":{\"by\":\"a\"}," RUNS(0, 0) "}",
		"1 config: ok; 1 suspended");
	assert_headline("{\"state\":\"waiting\"," RUNS(0, 0) "}", "1 config: 0 ok, 1 waiting");
}

static void headline__counts_each_mark(void **state)
{
	static const struct {
		const char *members, *words;
	} rows[] = {
		{"\"rejected\":{\"by\":\"schema\"}", "; 1 with a rejected version"},
		{"\"rejected\":{\"by\":\"operator\"}", "; 1 rolled back by an operator"},
		{"\"rejected\":{\"by\":\"rollout\"}", "; 1 held by the rollout"},
		{"\"rejected\":{\"by\":\"pin\"}", ""},
		{"\"rejected\":null", ""},
		{"\"suspension\":{\"by\":\"a\"}", "; 1 suspended"},
		{"\"pin\":{\"by\":\"a\"}", "; 1 pinned"},
		{"\"overrides\":[{\"key\":\"k\"}]", "; 1 overridden"},
		{"\"overrides\":[]", ""},
		{"\"reload\":{\"state\":\"failed\"}", "; 1 with a reload pending"},
		{"\"reload\":{\"state\":\"idle\"}", ""},
		{"\"probe\":{\"state\":\"failed\"}", "; 1 that failed a probe"},
		{"\"probe\":{\"state\":\"passed\"}", ""},
		{"\"probe\":{\"state\":\"waiting\"}", "; 1 being probed"},
		{"\"probe\":{\"state\":\"running\"}", "; 1 being probed"},
		{"\"drifted\":true", "; 1 whose file somebody changed"},
		{"\"drifted\":false", ""},
		{"\"watch\":{\"state\":\"failing\"}", "; 1 whose watch fails"},
		{"\"watch\":{\"state\":\"watching\"}", ""},
		{"\"expires_ms\":1", "; 1 whose signature has expired"},
		{"\"expires_ms\":0", ""},
		{"\"expires_ms\":9999999999999", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char status[256], expected[256];

		snprintf(status, sizeof(status), "{\"state\":\"ok\",%s}", rows[i].members);
		snprintf(expected, sizeof(expected), "1 config: ok%s", rows[i].words);
		assert_headline(status, expected);
		assert_int_equal(shown.configs[0].rank, rows[i].words[0] ? SHOW_NOTED : SHOW_QUIET);
	}
	for (int later = 0; later < 2; later++) {
		char status[256];

		snprintf(status, sizeof(status), "{\"state\":\"ok\",\"expires_ms\":%lld}",
			(long long)(sys_real.wall_ms() + SHOW_SOON_MS + (later ? 60000 : -60000)));
		assert_headline(status,
			later ? "1 config: ok" : "1 config: ok; 1 whose signature expires soon");
	}
}

/* ---- what is read ---- */

static void config__has_its_numbers_and_those_of_all(void **state)
{
	const struct show_config *c;

	(void)state;
	read_status("{\"configs\":[{\"name\":\"a\",\"state\":\"ok\",\"age_ms\":7,"
		    "\"next_pull_in_ms\":8,\"rejections\":9,\"runs\":{\"success\":1,\"timeouts\":2,"
		    "\"not_started\":4,\"failed\":8}},{\"name\":\"b\",\"rejections\":1,\"runs\":"
		    "{\"success\":16,\"timeouts\":32,\"not_started\":64,\"failed\":128}},{}]}");
	c = shown.configs;
	assert_int_equal(shown.count, 3);
	assert_string_equal(c[0].name, "a");
	assert_string_equal(c[0].state, "ok");
	assert_int_equal(c[0].age_ms, 7);
	assert_int_equal(c[0].next_ms, 8);
	assert_int_equal(c[0].rejected, 9);
	assert_int_equal(c[0].runs, 15);
	assert_int_equal(c[0].timeouts, 2);
	assert_int_equal(c[1].runs, 240);
	assert_int_equal(c[1].index, 1);
	assert_string_equal(c[2].name, "?");
	assert_string_equal(c[2].state, "?");
	assert_int_equal(c[2].age_ms, -1);
	assert_int_equal(c[2].next_ms, -1);
	assert_int_equal(c[2].runs, 0);
	assert_int_equal(shown.runs, 255);
	assert_int_equal(shown.failed, 136);
	assert_int_equal(shown.timeouts, 34);
	assert_int_equal(shown.rejected, 10);
	assert_int_equal(shown.ranks[SHOW_QUIET], 3);
}

static void next_pull__is_after_the_backoff_of_its_server(void **state)
{
	(void)state;
	read_status("{\"configs\":[{\"server\":\"m\",\"next_pull_in_ms\":5},"
		    "{\"server\":\"m\",\"next_pull_in_ms\":5000},{\"server\":\"n\","
		    "\"next_pull_in_ms\":5},{\"server\":\"m\"},"
		    "{\"url\":\"http://a/w\",\"next_pull_in_ms\":5},"
		    "{\"url\":\"http://b/w\",\"next_pull_in_ms\":5}],"
		    "\"servers\":[{\"name\":\"m\",\"backoff_ms\":3000},{\"name\":\"n\","
		    "\"backoff_ms\":5},{\"addresses\":[{\"url\":\"http://a\"}],\"backoff_ms\":"
		    "70}]}");
	assert_int_equal(shown.configs[0].next_ms, 3000);
	assert_int_equal(shown.configs[1].next_ms, 5000);
	assert_int_equal(shown.configs[2].next_ms, 5);
	assert_int_equal(shown.configs[3].next_ms, -1); /* it runs */
	assert_int_equal(shown.configs[4].next_ms, 70);
	assert_int_equal(shown.configs[5].next_ms, 5);
}

static void configs__are_sorted_by_rank_then_age(void **state)
{
	static const char *const order[] = {"w", "s2", "s1", "s3", "f", "n", "q1", "q2"};

	(void)state;
	read_status("{\"configs\":[{\"name\":\"q1\",\"state\":\"ok\",\"age_ms\":1},"
		    "{\"name\":\"s1\",\"state\":\"stale\",\"age_ms\":5},{\"name\":\"f\","
		    "\"state\":\"failing\",\"age_ms\":99},{\"name\":\"q2\",\"state\":\"ok\","
		    "\"age_ms\":9},{\"name\":\"n\",\"state\":\"ok\",\"drifted\":true},"
		    "{\"name\":\"s2\",\"state\":\"stale\",\"age_ms\":6},{\"name\":\"w\",\"state\":"
		    "\"waiting\"},{\"name\":\"s3\",\"state\":\"stale\",\"age_ms\":5}]}");
	show_sort(&shown, show_by_rank);
	for (size_t i = 0; i < 8; i++)
		assert_string_equal(shown.configs[i].name, order[i]);
	assert_int_equal(shown.ranks[SHOW_STALE], 3);
	assert_int_equal(shown.ranks[SHOW_NOTED], 1);
	read_status("{\"configs\":[]}");
	show_sort(&shown, show_by_rank);
}

/* ---- small words ---- */

static void version__is_shown_without_its_quotes(void **state)
{
	static const struct {
		const char *version, *expected;
	} rows[] = {{NULL, "-"}, {"v1", "v1"}, {"\"v1\"", "v1"}, {"\"\"", "-"}, {"\"", "\""},
		{"\"v1", "\"v1"}, {"v1\"", "v1\""}, {"", ""}, {"\"a\033\"", "a\\x1b"}};

	(void)state;
	read_status("{}");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		show_version(rows[i].version, &out);
		assert_out(rows[i].expected);
	}
}

static void colour__of_a_state(void **state)
{
	static const struct {
		const char *state, *colour;
	} rows[] = {{"ok", WRAP_GOOD}, {"connected", WRAP_GOOD}, {"failing", WRAP_WARNING},
		{"connecting", WRAP_WARNING}, {"waiting", WRAP_BAD}, {"stale", WRAP_BAD},
		{"silent", WRAP_BAD}, {"refused", WRAP_BAD}, {"?", ""}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(show_colour(rows[i].state), rows[i].colour);
}

static void next_pull__is_a_word_or_a_span(void **state)
{
	static const struct {
		const char *members, *expected;
	} rows[] = {
		{"\"running\":true,\"deferred\":true,\"backoff_ms\":5", "running"},
		{"\"deferred\":true,\"backoff_ms\":40000", "held 40s"},
		{"\"deferred\":true,\"backoff_ms\":0", "queued"},
		{"\"deferred\":false,\"backoff_ms\":5,\"next_pull_in_ms\":12000", "12s"},
		{"\"deferred\":false", "-"},
	};
	char text[24];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char status[256];

		snprintf(status, sizeof(status), "{%s}", rows[i].members);
		read_status(status);
		assert_string_equal(show_next_pull(&shown.configs[0], text), rows[i].expected);
	}
	assert_string_equal(show_clean("a\033", &out), "a\\x1b");
	assert_string_equal(show_clean("", &out), "");
}

/* ---- notes on a config ---- */

static void notes__of_each_kind__are_a_sentence(void **state)
{
	static const struct {
		const char *members, *expected;
	} rows[] = {
		{"\"state\":\"ok\"", ""},
		{"\"state\":\"ok\",\"last_error\":\"refused\"", "  refused\n"},
		{"\"state\":\"ok\",\"last_error\":\"refused\\nnow\",\"cause\":\"unreachable\"",
			"  unreachable: refused\n    now\n"},
		{"\"state\":\"ok\",\"last_error\":\"down\",\"cause\":\"unreachable\",\"url\":"
		 "\"https://u:p@h:8/x?token=1\"",
			"  unreachable: down (at https://h:8)\n"},
		{"\"state\":\"ok\",\"last_error\":\"full\",\"cause\":\"this host\",\"url\":"
		 "\"https://h:8/x\"",
			"  this host: full\n"},
		{"\"state\":\"ok\",\"last_error\":\"no\",\"rejected\":{\"by\":\"schema\","
		 "\"version\":\"v2\",\"why\":\"no\",\"is_last_error\":true}",
			"  the server's version v2 is rejected by the schema: no\n"},
		{"\"state\":\"ok\",\"last_error\":\"down\",\"rejected\":{\"by\":\"pin\","
		 "\"is_last_error\":false}",
			"  down\n  the server's version (without a name) is held by the pin\n"},
		{"\"state\":\"ok\",\"rejected\":{\"by\":\"probe\",\"version\":\"v\",\"why\":\"w\"}",
			"  the server's version v was rolled back by the probe: w\n"},
		{"\"state\":\"ok\",\"rejected\":{\"by\":\"operator\",\"version\":\"v\"}",
			"  the server's version v was rolled back by the operator\n"},
		{"\"state\":\"ok\",\"rejected\":{\"by\":\"rollout\",\"version\":\"v\",\"why\":"
		 "\"w\"}",
			"  the server's version v is held by the rollout: w\n"},
		{"\"state\":\"ok\",\"rejected\":{\"version\":\"v\"}",
			"  the server's version v is rejected by the ?: ?\n"},
		{"\"state\":\"waiting\",\"generation\":0,\"next_pull_in_ms\":3000",
			"  nothing is published; next pull in 3s\n"},
		{"\"state\":\"stale\",\"generation\":4,\"age_ms\":90000,\"confirmed_ms\":"
		 "1700000000000,\"running\":true",
			"  generation 4 stays, last confirmed 90s ago (2023-11-14T22:13:20Z); a "
			"pull "
			"is running\n"},
		{"\"state\":\"failing\",\"generation\":4,\"age_ms\":90000,\"deferred\":true,"
		 "\"backoff_ms\":2000",
			"  generation 4 stays, last confirmed 90s ago; pull deferred: server in "
			"backoff for 2s\n"},
		{"\"state\":\"failing\",\"generation\":1,\"age_ms\":5,\"failing_since_ms\":"
		 "9999999999999,\"deferred\":true,\"backoff_ms\":0",
			"  failing for 0ms; generation 1 stays, last confirmed 5ms ago; pull "
			"queued "
			"(server busy)\n"},
		{"\"state\":\"ok\",\"pin\":{\"by\":\"ann\",\"reason\":\"r\"},\"suspension\":"
		 "{\"by\":\"bob\",\"reason\":\"s\"},\"overrides\":[{\"key\":\"k\",\"by\":\"c\","
		 "\"reason\":\"t\"},{}]",
			"  suspended by bob: s\n  pinned by ann: r\n  override of k by c: t\n"
			"  override of ?\n"},
		{"\"state\":\"ok\",\"reload\":{\"state\":\"failed\",\"next_ms\":4000,\"error\":"
		 "\"exit 1\"}",
			"  reload failed, next attempt in 4s: exit 1\n"},
		{"\"state\":\"ok\",\"reload\":{\"state\":\"waiting\",\"pending\":7}",
			"  reload pending for generation 7\n"},
		{"\"state\":\"ok\",\"reload\":{\"state\":\"idle\",\"pending\":7}", ""},
		{"\"state\":\"ok\",\"probe\":{\"state\":\"failed\",\"generation\":3,\"error\":"
		 "\"down\"}",
			"  generation 3 failed its probe: down\n"},
		{"\"state\":\"ok\",\"probe\":{\"state\":\"waiting\",\"generation\":3}",
			"  generation 3 is being probed\n"},
		{"\"state\":\"ok\",\"probe\":{\"state\":\"waiting\",\"generation\":0}",
			"  the probe waits for the reload\n"},
		{"\"state\":\"ok\",\"probe\":{\"state\":\"running\",\"generation\":3}",
			"  generation 3 is being probed\n"},
		{"\"state\":\"ok\",\"probe\":{\"state\":\"failed\",\"generation\":3}", ""},
		{"\"state\":\"ok\",\"probe\":{\"state\":\"passed\",\"error\":\"before\"}", ""},
		{"\"state\":\"ok\",\"watch\":{\"state\":\"failing\",\"error\":\"reset\"}",
			"  the watch fails, changes come with the interval: reset\n"},
		{"\"state\":\"ok\",\"watch\":{\"state\":\"watching\",\"error\":\"reset\"}", ""},
		{"\"state\":\"ok\",\"drifted\":true",
			"  the published file was changed by somebody and is not restored\n"},
		{"\"state\":\"ok\",\"expires_ms\":1700000000000",
			"  the signature expired at 2023-11-14T22:13:20Z\n"},
		{"\"state\":\"ok\",\"expires_ms\":32503680000000", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char status[512];

		snprintf(status, sizeof(status), "{\"name\":\"web\",%s}", rows[i].members);
		read_status(status);
		show_notes(&shown.configs[0], false, &out);
		assert_out(rows[i].expected);
	}
	show_notes(&shown.configs[0], true, &out);
	assert_out("  the signature expires at 3000-01-01T00:00:00Z\n");
}

static void failure__has_lasted_since(void **state)
{
	char status[256];

	(void)state;
	snprintf(status, sizeof(status),
		"{\"state\":\"failing\",\"failing_since_ms\":%lld,\"next_pull_in_ms\":0}",
		(long long)sys_real.wall_ms() - 3 * 3600000 - 60000);
	read_status(status);
	show_notes(&shown.configs[0], false, &out);
	assert_out("  failing for 3h; nothing is published; next pull in 0ms\n");
}

/* ---- notes on the agent ---- */

static void agent__has_notes_on_what_is_not_in_order(void **state)
{
	(void)state;
	read_status(
		"{\"configs\":[],\"configuration\":{\"applying\":true,\"error\":\"bad\\nworse\","
		"\"errors\":3},\"servers\":[{\"name\":\"m\",\"backoff_ms\":3000,\"pending\":1,"
		"\"addresses\":[{\"url\":\"http://a\",\"backoff_ms\":3000,\"failures_in_a_row\":1,"
		"\"error\":\"reset\"},{\"url\":\"http://b\",\"backoff_ms\":0},{\"backoff_ms\":1,"
		"\"failures_in_a_row\":2}]},{\"backoff_ms\":0,\"addresses\":[{\"url\":"
		"\"http://c\"}]},{\"backoff_ms\":9,\"pending\":2,\"addresses\":[{\"url\":"
		"\"http://d\"}]},{\"backoff_ms\":1}],\"push\":[{\"endpoint\":\"tcp://1\","
		"\"state\":\"connected\"},{\"endpoint\":\"tcp://2\",\"state\":\"connected\","
		"\"error\":\"odd\",\"last_message_ago_ms\":0},{\"endpoint\":\"tcp://3\",\"state\":"
		"\"silent\",\"last_message_ago_ms\":4000},{}],\"report\":{\"state\":\"failing\","
		"\"server\":\"e\",\"error\":\"no lease\"}}");
	show_agent(&shown, &out);
	assert_out(
		"reload pending: waiting for writes to finish\n"
		"the new configuration is rejected, keeping the old one: bad\n    worse (3 "
		"errors; pulletd -t prints them)\n"
		"server m: in backoff for 3s, 1 pull queued; http://a is in backoff for 3s after "
		"1 failure in a row: reset; ? is in backoff for 1ms after 2 failures in a row: ?\n"
		"server http://d: in backoff for 9ms, 2 pulls queued\n"
		"server ?: in backoff for 1ms, 0 pulls queued\n"
		"push tcp://2: connected, last message 0ms ago: odd\n"
		"push tcp://3: silent, last message 4s ago; changes come with the interval\n"
		"push ?: ?, no message yet; changes come with the interval\n"
		"receipts to the server e fail: no lease\n");
	assert_true(show_configuration_is_rejected(&shown));
	assert_false(show_push_is_good(&shown));
	show_push(&shown, &out);
	assert_out("2 of 4 connected");
}

static void agent__whose_receipts_another_one_overwrites__says_so(void **state)
{
	(void)state;
	read_status("{\"configs\":[],\"report\":{\"state\":\"ok\",\"server\":\"e\",\"error\":"
		    "\"the key was changed by another writer: give each its own\"}}");
	show_agent(&shown, &out);
	assert_out("receipts to the server e: the key was changed by another writer: give each its "
		   "own\n");
}

static void agent__that_is_well__has_none(void **state)
{
	(void)state;
	read_status("{\"configs\":[],\"configuration\":{\"applying\":false,\"error\":null,"
		    "\"errors\":0},\"servers\":[{\"name\":\"m\",\"backoff_ms\":0}],\"push\":["
		    "{\"state\":\"connected\"}],\"report\":{\"state\":\"ok\",\"error\":null}}");
	show_agent(&shown, &out);
	assert_out("");
	assert_false(show_configuration_is_rejected(&shown));
	assert_true(show_push_is_good(&shown));
	show_push(&shown, &out);
	assert_out("1 of 1 connected");
	read_status("{\"configs\":[],\"configuration\":{\"error\":\"bad\",\"errors\":1}}");
	show_agent(&shown, &out);
	assert_out("the new configuration is rejected, keeping the old one: bad\n");
	read_status("{\"configs\":[],\"configuration\":{\"error\":\"bad\",\"errors\":2}}");
	show_agent(&shown, &out);
	assert_out("the new configuration is rejected, keeping the old one: bad (2 errors; "
		   "pulletd -t prints them)\n");
	assert_false(show_push_is_good(&shown));
	show_push(&shown, &out);
	assert_out("not configured");
}

/* ---- details ---- */

static void details__are_all_members(void **state)
{
	(void)state;
	read_status("{\"name\":\"web\",\"version\":\"\\\"v1\\\"\",\"none\":null,\"published_ms\":"
		    "1700000000000,\"confirmed_ms\":1700000000000,\"last_error_ms\":1700000000000,"
		    "\"failing_since_ms\":1700000000000,\"expires_ms\":1700000000000,\"age_ms\":"
		    "12000,\"_ms\":5,\"x_ms\":\"text\",\"running\":true,\"runs\":{\"success\":3},"
		    "\"overrides\":[{\"key\":\"a\\u001b\",\"until_ms\":1700000000000}],\"pin\":"
		    "{\"version\":\"v\",\"next_ms\":7}}");
	show_details(&shown, &out);
	assert_out("name: web\nversion: v1\npublished: 2023-11-14T22:13:20Z\n"
		   "confirmed: 2023-11-14T22:13:20Z\nlast_error_at: 2023-11-14T22:13:20Z\n"
		   "failing_since: 2023-11-14T22:13:20Z\nexpires: 2023-11-14T22:13:20Z\n"
		   "age: 12s\n_ms: 5\nx_ms: text\nrunning: true\nruns.success: 3\n"
		   "overrides.0.key: a\\x1b\noverrides.0.until: 2023-11-14T22:13:20Z\n"
		   "pin.version: v\npin.next: 7ms\n");
}

/* ---- colours ---- */

static void colours__are_for_terminals_that_have_them(void **state)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), slave, ends[2];

	(void)state;
	assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
	slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(slave >= 0);
	assert_int_equal(pipe(ends), 0);
	unsetenv("NO_COLOR");
	setenv("TERM", "xterm", 1);
	assert_true(show_colours_on(slave));
	assert_false(show_colours_on(ends[0]));
	setenv("NO_COLOR", "", 1);
	assert_true(show_colours_on(slave));
	setenv("NO_COLOR", "1", 1);
	assert_false(show_colours_on(slave));
	unsetenv("NO_COLOR");
	setenv("TERM", "dumb", 1);
	assert_false(show_colours_on(slave));
	unsetenv("TERM");
	assert_true(show_colours_on(slave));
	close(ends[0]);
	close(ends[1]);
	close(slave);
	close(master);
}

#define CASE(name) cmocka_unit_test_teardown(name, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(headline__counts_states_and_names_the_worst),
		CASE(headline__counts_what_was_not_pulled_since_the_start),
		CASE(headline__counts_each_mark),
		CASE(config__has_its_numbers_and_those_of_all),
		CASE(next_pull__is_after_the_backoff_of_its_server),
		CASE(configs__are_sorted_by_rank_then_age),
		CASE(version__is_shown_without_its_quotes),
		CASE(colour__of_a_state),
		CASE(next_pull__is_a_word_or_a_span),
		CASE(notes__of_each_kind__are_a_sentence),
		CASE(failure__has_lasted_since),
		CASE(agent__has_notes_on_what_is_not_in_order),
		CASE(agent__whose_receipts_another_one_overwrites__says_so),
		CASE(agent__that_is_well__has_none),
		CASE(details__are_all_members),
		CASE(colours__are_for_terminals_that_have_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

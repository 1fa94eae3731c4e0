/* What operators ask about one config, by history, diff, explain and wait: which request is sent,
 * and how its answer is shown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/common/cli.h"
#include "tests/unit/fixture/command.h"

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

/* ---- history ---- */

static void history__lists_versions_in_columns(void **state)
{
	(void)state;
	played_answers("GET /v1/configs/web/history", 200,
		"{\"name\":\"web\",\"truncated\":true,\"versions\":["
		"{\"generation\":13,\"published_ms\":1700000000000,\"bytes\":1,\"origin\":\"pull\","
		"\"cause\":\"operator\",\"by\":\"ann\\u001b\"},"
		"{\"generation\":12,\"published_ms\":1700000000000,\"bytes\":1,\"origin\":\"pull\","
		"\"cause\":\"pin\",\"by\":\"ann\"},"
		"{\"generation\":11,\"published_ms\":1700000000000,\"bytes\":1,\"origin\":\"pull\","
		"\"cause\":\"pin\",\"by\":null},"
		"{\"generation\":10,\"published_ms\":1700000000000,\"bytes\":1,\"origin\":"
		"\"rollback to generation 1 by ann\",\"cause\":\"rollback\",\"by\":\"ann\"},"
		"{\"generation\":9,\"published\":true,\"published_ms\":1700000000000,\"pulled_ms\":"
		"1,"
		"\"bytes\":120,\"version\":\"\\\"abc\\\"\",\"sha256\":\"0123456789abcdef\","
		"\"origin\":\"pull\",\"cause\":\"push\",\"by\":null},"
		"{\"generation\":8,\"pulled_ms\":1600000000000,\"bytes\":5,\"version\":"
		"\"\\\"\\\"\","
		"\"sha256\":\"ff\",\"origin\":\"pull\",\"rejected\":{\"by\":\"probe\",\"why\":"
		"\"exit 1\"}},"
		"{\"generation\":7,\"error\":\"damaged\",\"rejected\":{\"by\":\"schema\",\"why\":"
		"\"/a\"}}"
		"],\"forward\":[\"`pullet unpin web`: go on\",7]}");
	RUN(cli_history, "pullet history", "web");
	assert_ended(CLI_OK,
		"GENERATION  PUBLISHED             BYTES  VERSION  SHA256        WHY\n"
		"13          2023-11-14T22:13:20Z  1      -        -             pull asked for by "
		"ann\\x1b\n"
		"12          2023-11-14T22:13:20Z  1      -        -             unpinned by ann\n"
		"11          2023-11-14T22:13:20Z  1      -        -             the pin has "
		"expired\n"
		"10          2023-11-14T22:13:20Z  1      -        -             rollback to "
		"generation 1 by ann\n"
		"9 *         2023-11-14T22:13:20Z  120    abc      0123456789ab  push\n"
		"8           unknown               5      -        ff            pull\n"
		"  pulled at 2020-09-13T12:26:40Z; an older agent did not note when and why it "
		"published it\n"
		"  rolled back by the probe: exit 1\n"
		"7           -                     -      -        -             damaged\n"
		"  rejected by the schema: /a\n"
		"  there are older ones\n"
		"  `pullet unpin web`: go on\n",
		"");
}

static void history__of_an_unknown_config__says_what_was_meant(void **state)
{
	(void)state;
	played_answers("GET /v1/status", 200,
		"{\"configuration\":{},\"configs\":[{\"name\":\"web\",\"state\":\"ok\"},"
		"{\"name\":\"database\",\"state\":\"ok\"}]}");
	RUN(cli_history, "pullet history", "wab");
	assert_ended(CLI_NOT_FOUND, "",
		"pullet history: there is no config of that name, 'wab': did you mean 'web'?\n");
	RUN(cli_history, "pullet history", "zzzzzzzzzzzzzz");
	assert_ended(CLI_NOT_FOUND, "",
		"pullet history: there is no config of that name, 'zzzzzzzzzzzzzz': there are web, "
		"database\n");
	RUN(cli_history, "pullet history", "web");
	assert_ended(CLI_NOT_FOUND, "", "pullet history: there is nothing of that name\n");
}

static void history__of_an_agent_that_lists_no_configs__says_what_it_said(void **state)
{
	(void)state;
	RUN(cli_history, "pullet history", "web");
	assert_ended(CLI_NOT_FOUND, "", "pullet history: there is nothing of that name\n");
	assert_string_equal(played_asked(1), "GET /v1/status");
	played_answers("GET /v1/status", AGENT_CLOSES, "");
	RUN(cli_history, "pullet history", "web");
	assert_ended(CLI_NOT_FOUND, "", "pullet history: there is nothing of that name\n");
}

/* ---- diff ---- */

#define SIDES                                                                                      \
	"\"name\":\"web\",\"from\":{\"bytes\":1,\"sha256\":\"aa\"},\"to\":{\"bytes\":2,"           \
	"\"sha256\":\"bb\"}"

static void diff__shows_a_line_for_each_key(void **state)
{
	(void)state;
	played_answers("GET /v1/configs/web/diff", 200,
		"{" SIDES ",\"equal\":false,\"more\":3,\"changes\":["
		"{\"change\":\"added\",\"path\":\"a\",\"after\":1},"
		"{\"change\":\"removed\",\"path\":\"b\",\"before\":\"x\"},"
		"{\"change\":\"changed\",\"path\":\"c\",\"before\":1,\"after\":2},"
		"{\"change\":\"changed\",\"path\":\"pw\",\"before\":\"old\",\"after\":\"new\","
		"\"masked\":true}]}");
	RUN(cli_diff, "pullet diff", "web", "3", "4");
	assert_ended(CLI_OK,
		"+ a: 1\n- b: \"x\"\n~ c: 1 -> 2\n~ pw: *** -> ***\nand 3 more, too long to list\n",
		"");
	assert_string_equal(played_asked(0), "GET /v1/configs/web/diff?from=3&to=4");
}

static void diff__between_generations__says_which(void **state)
{
	(void)state;
	played_answers("GET /v1/configs/web/diff", 200,
		"{\"name\":\"web\",\"from\":{\"generation\":3},\"to\":{\"generation\":4},\"equal\":"
		"false,"
		"\"changes\":[{\"change\":\"added\",\"path\":\"a\",\"after\":1}]}");
	RUN(cli_diff, "pullet diff", "web");
	assert_ended(CLI_OK, "# generation 3 -> generation 4\n+ a: 1\n", "");
	played_answers("GET /v1/configs/web/diff", 200,
		"{\"name\":\"web\",\"from\":{\"generation\":3},\"to\":{\"generation\":4},\"equal\":"
		"false,"
		"\"changes\":[]}");
	RUN(cli_diff, "pullet diff", "web");
	assert_ended(CLI_OK, "", "");
}

static void diff__of_what_no_decision_holds__names_none(void **state)
{
	(void)state;
	played_answers("GET /v1/configs/web/diff", 200,
		"{\"name\":\"web\",\"from\":{\"generation\":3},\"to\":{\"version\":\"\\\"v\\\"\"},"
		"\"equal\":false,"
		"\"held\":{\"by\":null,\"why\":\"it could not be published\"},\"changes\":[]}");
	RUN(cli_diff, "pullet diff", "web", "--held");
	assert_ended(CLI_OK, "# the server's version v: it could not be published\n", "");
}

static void history__of_nothing__says_so(void **state)
{
	(void)state;
	played_answers("GET /v1/configs/web/history", 200, "{\"name\":\"web\",\"versions\":[]}");
	RUN(cli_history, "pullet history", "web");
	assert_ended(CLI_OK, "web: nothing is published yet\n", "");
}

static void diff__of_bytes__shows_sizes_and_digests(void **state)
{
	(void)state;
	played_answers("GET /v1/configs/web/diff", 200, "{" SIDES ",\"equal\":false}");
	RUN(cli_diff, "pullet diff", "web");
	assert_ended(CLI_OK, "~ 1 bytes, SHA-256 aa -> 2 bytes, SHA-256 bb\n", "");
	played_answers("GET /v1/configs/web/diff", 200, "{" SIDES ",\"equal\":true}");
	RUN(cli_diff, "pullet diff", "web");
	assert_ended(CLI_OK, "", "");
}

static void diff__with_hidden_values__says_who_sees_them(void **state)
{
	(void)state;
	played_answers(
		"GET /v1/configs/web/diff", 200, "{" SIDES ",\"equal\":true,\"values\":false}");
	RUN(cli_diff, "pullet diff", "web");
	assert_int_equal(command.code, CLI_OK);
	assert_string_equal(command.err,
		"pullet diff: values are hidden: root, the agent's user and members of the group "
		"that agent: {operators: GROUP} names see them\n");
}

static void diff__names_overrides_and_what_they_hide(void **state)
{
	(void)state;
	played_answers("GET /v1/configs/web/diff", 200,
		"{\"name\":\"web\",\"from\":{\"generation\":3,\"overrides\":[{\"key\":\"b\"}]},"
		"\"to\":{\"generation\":4,\"overrides\":[{\"key\":\"x\",\"by\":\"bob\"},"
		"{\"key\":\"a\",\"by\":\"ann\",\"until_ms\":1700000000000,\"reason\":\"try\"}]},"
		"\"equal\":false,\"changes\":["
		"{\"change\":\"changed\",\"path\":\"a\",\"before\":1,\"after\":2,"
		"\"overridden_after\":\"a\",\"server_after\":3},"
		"{\"change\":\"changed\",\"path\":\"a.l\",\"before\":1,\"after\":2,"
		"\"overridden_after\":\"a\",\"server_after\":[1,2]},"
		"{\"change\":\"changed\",\"path\":\"a.m\",\"before\":1,\"after\":2,"
		"\"overridden_after\":\"a\",\"server_after\":{\"k\":1}},"
		"{\"change\":\"changed\",\"path\":\"a.e\",\"before\":1,\"after\":2,"
		"\"overridden_after\":\"a\",\"server_after\":[]},"
		"{\"change\":\"changed\",\"path\":\"a.p\",\"masked\":true,\"before\":\"s\","
		"\"after\":\"t\",\"overridden_after\":\"a\",\"server_after\":\"u\"},"
		"{\"change\":\"removed\",\"path\":\"b\",\"before\":1,"
		"\"overridden_before\":\"b\"}],"
		"\"hidden\":[{\"change\":\"changed\",\"path\":\"x\",\"before\":7,\"after\":8,"
		"\"override\":\"x\"}]}");
	RUN(cli_diff, "pullet diff", "web");
	assert_ended(CLI_OK,
		"# generation 3 -> generation 4\n"
		"~ a: 1 -> 2  # the override of a by ann until 2023-11-14T22:13:20Z: try; the "
		"server has 3\n"
		"~ a.l: 1 -> 2  # the override of a by ann until 2023-11-14T22:13:20Z: try; the "
		"server has a list of 2\n"
		"~ a.m: 1 -> 2  # the override of a by ann until 2023-11-14T22:13:20Z: try; the "
		"server has a mapping of 1\n"
		"~ a.e: 1 -> 2  # the override of a by ann until 2023-11-14T22:13:20Z: try; the "
		"server has []\n"
		"~ a.p: *** -> ***  # the override of a by ann until 2023-11-14T22:13:20Z: try; "
		"the server has ***\n"
		"- b: 1  # the override of b was in effect before; the server had no value\n"
		"# ~ x: 7 -> 8: hidden by the override of x by bob\n",
		"");
	played_answers("GET /v1/configs/web/diff", 200,
		"{\"name\":\"web\",\"from\":{\"generation\":3},\"to\":{\"generation\":4},"
		"\"equal\":true,\"changes\":[],\"hidden\":[{\"change\":\"added\",\"path\":\"x\","
		"\"after\":8,\"override\":\"x\"}]}");
	RUN(cli_diff, "pullet diff", "web"); /* is all there is */
	assert_ended(CLI_OK,
		"# generation 3 -> generation 4\n# + x: 8: hidden by the override of x\n", "");
	RUN(cli_diff, "pullet diff", "web", "--held", "3", "4");
	assert_ended(CLI_USAGE, "",
		"pullet diff: --held takes one generation: it is compared with the version that is "
		"held\n");
}

static void diff__of_what_is_no_generation__asks_nothing(void **state)
{
	(void)state;
	RUN(cli_diff, "pullet diff", "web", "3", "four");
	assert_ended(CLI_USAGE, "",
		"pullet diff: a generation is a number: 'pullet history web' lists them\n");
	RUN(cli_diff, "pullet diff", "web", "");
	assert_int_equal(command.code, CLI_USAGE);
	RUN(cli_diff, "pullet diff");
	assert_int_equal(command.code, CLI_USAGE);
	assert_shows(command.err, "an argument is missing");
	assert_string_equal(played_asked(0), "");
}

/* ---- explain ---- */

static void explain__marks_what_is_in_effect(void **state)
{
	(void)state;
	played_answers("GET /v1/configs/web/explain", 200,
		"{\"name\":\"web\",\"found\":true,\"value\":2,\"layers\":["
		"{\"effect\":\"absent\",\"path\":\"/base.yaml\"},"
		"{\"effect\":\"set\",\"path\":\"/web.yaml\",\"line\":3,\"value\":1},"
		"{\"effect\":\"set\",\"override\":true,\"key\":\"a\",\"effective\":true,\"value\":"
		"2,"
		"\"by\":\"root\",\"until_ms\":1700000000000,\"reason\":\"test\"}]}");
	RUN(cli_explain, "pullet explain", "web", "a");
	assert_ended(CLI_OK,
		"a: 2\n  absent    /base.yaml\n  set       /web.yaml, line 3: 1\n"
		"* set       override of a: 2 by root until 2023-11-14T22:13:20Z: test\n",
		"");
	assert_string_equal(played_asked(0), "GET /v1/configs/web/explain?key=a");
}

static void explain__of_lists_and_secrets__shows_no_value(void **state)
{
	(void)state;
	played_answers("GET /v1/configs/web/explain", 200,
		"{\"name\":\"web\",\"found\":true,\"value\":[1,2,3],\"layers\":["
		"{\"effect\":\"set\",\"path\":\"/1\",\"value\":{\"a\":1}},"
		"{\"effect\":\"set\",\"path\":\"/2\",\"value\":\"x\",\"masked\":true},"
		"{\"effect\":\"set\",\"path\":\"/3\",\"value\":[]}]}");
	RUN(cli_explain, "pullet explain", "web", "l");
	assert_ended(CLI_OK,
		"l: a list of 3\n  set       /1: a mapping of 1\n  set       /2: ***\n"
		"  set       /3: []\n",
		"");
}

static void explain__of_an_unknown_key__exits_2(void **state)
{
	(void)state;
	played_answers("GET /v1/configs/web/explain", 200,
		"{\"name\":\"web\",\"found\":false,\"layers\":[]}");
	RUN(cli_explain, "pullet explain", "web", "nope");
	assert_ended(CLI_NOT_FOUND, "nope: not there\n", "");
	RUN(cli_explain, "pullet explain");
	assert_int_equal(command.code, CLI_USAGE);
	assert_shows(command.err, "an argument is missing");
}

static void explain__without_a_key__says_why_the_version_is_current(void **state)
{
	(void)state;
	played_answers("GET /v1/configs/web/explain", 200,
		"{\"name\":\"web\",\"generation\":3,\"facts\":{},\"sentences\":["
		"\"generation 3 is current\",7,\"the servers have\\u202e another one\"]}");
	RUN(cli_explain, "pullet explain", "web");
	assert_ended(CLI_OK, NULL, "");
	assert_shows(command.out, "generation 3 is current\nthe servers have");
	assert_null(strstr(command.out, "\xe2\x80\xae"));
	assert_string_equal(played_asked(0), "GET /v1/configs/web/explain");
	played_answers("GET /v1/configs/web/explain", 200, "{\"name\":\"web\"}");
	RUN(cli_explain, "pullet explain", "web");
	assert_ended(CLI_FAILED, "",
		"pullet explain: the agent's answer cannot be read: see whether pulletd is of the "
		"same version\n");
}

/* ---- wait ---- */

static void wait__says_which_generation_was_reached(void **state)
{
	(void)state;
	played_answers("GET /v1/configs/web/wait", 200,
		"{\"ok\":true,\"name\":\"web\",\"generation\":12}");
	RUN(cli_wait, "pullet wait", "web", "--generation", "10", "--timeout", "5s");
	assert_ended(CLI_OK, "web: generation 12 is current\n", "");
	assert_string_equal(
		played_asked(0), "GET /v1/configs/web/wait?generation=10&timeout_ms=5000");
	RUN(cli_wait, "pullet wait", "web", "--generation", "08"); /* not by eights */
	assert_ended(CLI_OK, "web: generation 12 is current\n", "");
	RUN(cli_wait, "pullet wait", "web", "--version", "v 1");
	assert_string_equal(
		played_asked(0), "GET /v1/configs/web/wait?version=v%201&timeout_ms=60000");
}

static void wait__that_takes_too_long__exits_4(void **state)
{
	(void)state;
	played_answers("GET /v1/configs/web/wait", 504, "{\"error\":\"not in 1s\"}");
	RUN(cli_wait, "pullet wait", "web", "--generation", "10");
	assert_ended(CLI_TIMED_OUT, "", "pullet wait: not in 1s\n");
}

#define STATUS(configs) "{\"configuration\":{},\"configs\":[" configs "]}"
#define CONFIG(name, generation)                                                                   \
	"{\"name\":\"" name "\",\"state\":\"ok\",\"generation\":" generation "}"
#define REACHED "{\"ok\":true,\"name\":\"web\",\"generation\":1}"
#define BUSY "{\"error\":\"too many requests\"}"

static void ready__of_all__waits_for_those_without_a_version__until_there_is_none(void **state)
{
	(void)state;
	played_answers("GET /v1/status", 200,
		STATUS(CONFIG("db", "3") "," CONFIG("web", "0") "," CONFIG("gone", "0")));
	played_answers_then("GET /v1/status", 200,
		STATUS(CONFIG("db", "3") "," CONFIG("web", "1") "," CONFIG("new", "1")));
	played_answers("GET /v1/configs/web/wait", 200, REACHED);
	RUN(cli_wait, "pullet wait", "--ready", "--timeout", "20s");
	assert_ended(CLI_OK, "3 configs ready: a version is published\n", "");
	assert_string_equal(played_asked(0), "GET /v1/status");
	assert_int_equal(
		strncmp(played_asked(1), "GET /v1/configs/web/wait?generation=1&timeout_ms=", 49),
		0);
	assert_in_range(strtoul(played_asked(1) + 49, NULL, 10), 15000, 20000);
	assert_shows(played_asked(2), "/v1/configs/gone/wait?"); /* removed: no error */
	assert_string_equal(played_asked(3), "GET /v1/status");
	assert_string_equal(played_asked(4), "");
}

static void ready__of_named_ones__asks_for_each(void **state)
{
	(void)state;
	played_answers("GET /v1/configs/web/wait", 200, REACHED);
	RUN(cli_wait, "pullet wait", "--ready", "web");
	assert_ended(CLI_OK, "1 config ready: a version is published\n", "");
	RUN(cli_wait, "pullet wait", "--ready", "web", "web");
	assert_ended(CLI_OK, "2 configs ready: a version is published\n", "");
	played_answers("GET /v1/status", 200, STATUS(CONFIG("web", "1")));
	RUN(cli_wait, "pullet wait", "--ready", "wbe");
	assert_ended(CLI_NOT_FOUND, "", NULL);
	assert_shows(command.err, "there is no config of that name, 'wbe': ");
}

static void ready__that_takes_too_long__says_what_is_missing_and_why(void **state)
{
	(void)state;
	played_answers("GET /v1/status", 200, STATUS(CONFIG("web", "0")));
	played_answers("GET /v1/configs/web/wait", 504, "{\"error\":\"not in 0s\"}");
	played_answers("GET /v1/configs/web", 200, "{\"last_error\":\"no\\nroute\"}");
	RUN(cli_wait, "pullet wait", "--ready", "--timeout", "0ms");
	assert_ended(CLI_TIMED_OUT, "",
		"pullet wait: not ready after 0ms: web: nothing is published yet: no\n    "
		"route\n");
	played_answers("GET /v1/configs/web", 200, "{}");
	RUN(cli_wait, "pullet wait", "--ready", "web", "--timeout", "0ms");
	assert_ended(CLI_TIMED_OUT, "",
		"pullet wait: not ready after 0ms: web: nothing is published yet\n");
	/* it was the agent that was late */
	played_answers("GET /v1/configs/web", 200,
		"{\"name\":\"web\",\"state\":\"failing\",\"generation\":1,\"last_error\":\"no "
		"route\"}");
	RUN(cli_wait, "pullet wait", "--ready", "web", "--timeout", "0ms");
	assert_ended(CLI_OK, "1 config ready: a version is published\n", "");
}

static void ready__of_a_busy_agent__asks_again(void **state)
{
	(void)state;
	played_answers("GET /v1/status", 503, BUSY);
	played_answers_then("GET /v1/status", 200, STATUS(CONFIG("web", "0")));
	played_answers_then("GET /v1/status", 200, STATUS(CONFIG("web", "1")));
	played_answers("GET /v1/configs/web/wait", 503, BUSY);
	played_answers_then("GET /v1/configs/web/wait", 504, "{\"error\":\"not in 1s\"}");
	played_answers_then("GET /v1/configs/web/wait", 200, REACHED);
	RUN(cli_wait, "pullet wait", "--ready", "--timeout", "20s");
	assert_ended(CLI_OK, "1 config ready: a version is published\n", "");
	played_answers("GET /v1/status", 503, BUSY);
	RUN(cli_wait, "pullet wait", "--ready", "--timeout", "0ms");
	assert_ended(CLI_BUSY, "", "pullet wait: the agent is busy: too many requests\n");
}

static void ready__without_an_agent__waits_for_it_and_says_so_once(void **state)
{
	(void)state;
	played_stop();
	RUN(cli_wait, "pullet wait", "--ready", "--timeout", "300ms");
	assert_ended(CLI_UNREACHABLE, "", NULL);
	assert_int_equal(
		strncmp(command.err,
			"pullet wait: waiting for the agent, which does not listen at ", 60),
		0);
	assert_shows(command.err, "/control.sock yet\npullet wait: no agent answers at ");
	RUN(cli_wait, "pullet wait", "--ready", "web", "--timeout", "0ms");
	assert_ended(CLI_UNREACHABLE, "", NULL);
	assert_null(strstr(command.err, "waiting for"));
	RUN(cli_wait, "pullet wait", "--ready", "--socket", "/dev/null/x", "--timeout", "20s");
	assert_ended(CLI_UNREACHABLE, "", NULL); /* at once: nothing comes there */
	assert_shows(command.err, "Not a directory");
}

static void wait__for_nothing_or_two_things__is_misused(void **state)
{
	(void)state;
	RUN(cli_wait, "pullet wait", "web");
	assert_shows(command.err, "say --generation N, --version V or --ready, one of them");
	RUN(cli_wait, "pullet wait", "web", "--generation", "1", "--version", "x");
	assert_int_equal(command.code, CLI_USAGE);
	RUN(cli_wait, "pullet wait", "web", "--generation", "0");
	assert_ended(CLI_USAGE, "", "pullet wait: --generation takes a number from 1 on\n");
	RUN(cli_wait, "pullet wait", "web", "--version", "");
	assert_ended(CLI_USAGE, "", "pullet wait: --version is empty\n");
	RUN(cli_wait, "pullet wait", "web", "--version", "x", "--timeout", "soon");
	assert_int_equal(command.code, CLI_USAGE);
	assert_shows(command.err, "--timeout takes a duration like 500ms, 10s, 5m or 1h");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(history__lists_versions_in_columns),
		CASE(history__of_an_unknown_config__says_what_was_meant),
		CASE(history__of_an_agent_that_lists_no_configs__says_what_it_said),
		CASE(diff__shows_a_line_for_each_key),
		CASE(diff__between_generations__says_which),
		CASE(diff__of_what_no_decision_holds__names_none),
		CASE(history__of_nothing__says_so),
		CASE(diff__of_bytes__shows_sizes_and_digests),
		CASE(diff__with_hidden_values__says_who_sees_them),
		CASE(diff__names_overrides_and_what_they_hide),
		CASE(diff__of_what_is_no_generation__asks_nothing),
		CASE(explain__marks_what_is_in_effect),
		CASE(explain__of_lists_and_secrets__shows_no_value),
		CASE(explain__of_an_unknown_key__exits_2),
		CASE(explain__without_a_key__says_why_the_version_is_current),
		CASE(wait__says_which_generation_was_reached),
		CASE(wait__that_takes_too_long__exits_4),
		CASE(ready__of_all__waits_for_those_without_a_version__until_there_is_none),
		CASE(ready__of_named_ones__asks_for_each),
		CASE(ready__that_takes_too_long__says_what_is_missing_and_why),
		CASE(ready__of_a_busy_agent__asks_again),
		CASE(ready__without_an_agent__waits_for_it_and_says_so_once),
		CASE(wait__for_nothing_or_two_things__is_misused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

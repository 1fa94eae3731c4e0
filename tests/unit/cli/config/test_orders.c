/* What operators order, by refresh, rollback, pin, suspend and override: which request is sent, and
 * what the answer becomes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/common/cli.h"
#include "tests/unit/fixture/command.h"

#define CURRENT "{\"ok\":true,\"name\":\"web\",\"generation\":7,\"origin\":\"rollback to 5\"}"
#define REFRESHED(outcome)                                                                         \
	"{\"name\":\"web\",\"outcome\":\"" outcome "\",\"generation\":7,\"error\":\"no route\"}"
#define CONFIGS                                                                                    \
	"{\"configuration\":{},\"configs\":[{\"name\":\"web\",\"state\":\"ok\"},"                  \
	"{\"name\":\"db\",\"state\":\"ok\",\"suspension\":{\"by\":\"root\"}}]}"

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

/* ---- refresh ---- */

static void refresh__without_wait__asks_and_prints_nothing(void **state)
{
	(void)state;
	played_answers("POST /v1/configs/web/refresh", 202, "{\"fired\":true}");
	RUN(cli_refresh, "pullet refresh", "web");
	assert_ended(CLI_OK, "", "");
	assert_string_equal(played_asked(0), "POST /v1/configs/web/refresh");
}

static void refresh__with_all_options__names_them_in_its_request(void **state)
{
	(void)state;
	played_answers("POST /v1/configs/web/refresh", 200, REFRESHED("unchanged"));
	RUN(cli_refresh, "pullet refresh", "web", "--force", "--forget-rev", "--wait", "--timeout",
		"2s");
	assert_ended(CLI_OK, "web: unchanged, generation 7: no route\n", "");
	assert_string_equal(played_asked(0),
		"POST /v1/configs/web/refresh?force=1&forget_rev=1&wait=1&timeout_ms=2000");
}

static void refresh__of_a_version_that_is_held__says_what_publishes_it(void **state)
{
	static const struct {
		const char *by, *remedy;
	} rows[] = {
		{"pin", "  the pin holds the server's version: `pullet unpin web` publishes it\n"},
		{"rollout", "  the rollout holds the server's version: `pullet rollout status web` "
			    "says when this host has its turn\n"},
		{"operator", "  a rollback holds the server's version: `pullet refresh web "
			     "--force` publishes it\n"},
		{"somebody", ""},
	};
	char answer[256], expected[256];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(answer, sizeof(answer),
			"{\"name\":\"web\",\"outcome\":\"held\",\"generation\":7,\"held_by\":"
			"\"%s\"}",
			rows[i].by);
		played_answers("POST /v1/configs/web/refresh", 200, answer);
		RUN(cli_refresh, "pullet refresh", "web", "--wait");
		snprintf(expected, sizeof(expected), "web: held, generation 7\n%s", rows[i].remedy);
		assert_string_equal(command.out, expected);
		assert_string_equal(command.err, "");
	}
}

static void refresh__of_a_pull_that_failed__exits_1(void **state)
{
	(void)state;
	played_answers("POST /v1/configs/web/refresh", 200, REFRESHED("failed"));
	RUN(cli_refresh, "pullet refresh", "web", "--wait");
	assert_ended(CLI_FAILED, "web: failed, generation 7: no route\n", "");
}

static void refresh__whose_wait_got_no_result__is_an_error(void **state)
{
	(void)state;
	played_answers("POST /v1/configs/web/refresh", 202, "{\"fired\":true}");
	RUN(cli_refresh, "pullet refresh", "web", "--wait");
	assert_int_equal(command.code, CLI_FAILED);
	assert_shows(command.err, "cannot be read");
}

static void refresh__without_a_name__pulls_all_but_suspended_configs(void **state)
{
	(void)state;
	played_answers("GET /v1/status", 200, CONFIGS);
	played_answers("POST /v1/configs/web/refresh", 202, "{\"fired\":true}");
	RUN(cli_refresh, "pullet refresh");
	assert_ended(CLI_OK, "", "pullet refresh: db is suspended: not pulled\n");
	assert_string_equal(played_asked(1), "POST /v1/configs/web/refresh");
	assert_string_equal(played_asked(2), "");
}

static void refresh__of_all__of_an_agent_that_does_not_say_which__pulls_none(void **state)
{
	(void)state;
	played_answers("GET /v1/status", 500, "{\"error\":\"no memory\"}");
	RUN(cli_refresh, "pullet refresh");
	assert_ended(CLI_FAILED, "", "pullet refresh: the agent answered 500: no memory\n");
	assert_string_equal(played_asked(1), "");
}

static void refresh__of_all__ends_with_the_first_failure(void **state)
{
	(void)state;
	played_answers("GET /v1/status", 200,
		"{\"configuration\":{},\"configs\":[{\"name\":\"a\",\"state\":\"ok\"},{\"name\":"
		"\"b\","
		"\"state\":\"ok\"}]}");
	played_answers("POST /v1/configs/a/refresh", 409, "{\"error\":\"a is withdrawn\"}");
	played_answers("POST /v1/configs/b/refresh", 202, "{\"fired\":true}");
	RUN(cli_refresh, "pullet refresh");
	assert_ended(CLI_FAILED, "", "pullet refresh: a is withdrawn\n");
	assert_string_equal(played_asked(2), "POST /v1/configs/b/refresh");
}

static void refresh__with_force_and_no_name__is_misused(void **state)
{
	(void)state;
	RUN(cli_refresh, "pullet refresh", "--force");
	assert_ended(CLI_USAGE, "",
		"pullet refresh: --force is for one config: name it\n"
		"Usage: pullet refresh [CONFIG] [--wait] [--timeout DURATION] [--socket PATH]\n"
		"       pullet refresh CONFIG [--force] [--forget-rev] [--wait] [--timeout "
		"DURATION] [--socket PATH]\n"
		"Try 'pullet refresh --help'.\n");
	RUN(cli_refresh, "pullet refresh", "--forget-rev");
	assert_int_equal(command.code, CLI_USAGE);
	assert_shows(command.err, "--forget-rev is for one config");
	RUN(cli_refresh, "pullet refresh", "a", "b");
	assert_shows(command.err, "one config at most");
}

/* ---- rollback ---- */

static void rollback__with_a_number__asks_for_that_generation(void **state)
{
	(void)state;
	played_answers("POST /v1/configs/web/rollback", 200, CURRENT);
	RUN(cli_rollback, "pullet rollback", "web", "5", "--reason", "bad port", "--timeout", "1m");
	assert_ended(CLI_OK, "web: generation 7 is current: rollback to 5\n", "");
	assert_string_equal(played_asked(0),
		"POST /v1/configs/web/rollback?generation=5&reason=bad%20port&timeout_ms=60000");
}

static void rollback__without_a_number__leaves_the_choice_to_the_agent(void **state)
{
	(void)state;
	played_answers("POST /v1/configs/web/rollback", 200, CURRENT);
	RUN(cli_rollback, "pullet rollback", "web");
	assert_int_equal(command.code, CLI_OK);
	assert_string_equal(played_asked(0), "POST /v1/configs/web/rollback?timeout_ms=60000");
}

static void rollback__to_what_is_no_generation__says_where_they_are_listed(void **state)
{
	static const char *const wrong[] = {"0", "x"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		RUN(cli_rollback, "pullet rollback", "web", wrong[i]);
		assert_ended(CLI_USAGE, "",
			"pullet rollback: a generation is a number: 'pullet history web' lists "
			"them\n");
	}
	RUN(cli_rollback, "pullet rollback");
	assert_int_equal(command.code, CLI_USAGE);
	assert_string_equal(played_asked(0), "");
}

static void rollback__with_json__prints_the_answer_as_it_is(void **state)
{
	(void)state;
	played_answers("POST /v1/configs/web/rollback", 200, CURRENT);
	RUN(cli_rollback, "pullet rollback", "web", "--json");
	assert_ended(CLI_OK, CURRENT, "");
}

/* ---- pin ---- */

static void pin__for_a_while__says_how_long(void **state)
{
	(void)state;
	played_answers("POST /v1/configs/web/pin", 200, CURRENT);
	RUN(cli_pin, "pullet pin", "web", "--for", "2h", "--reason", "launch");
	assert_ended(CLI_OK, "web: pinned at generation 7 for 2h\n", "");
	assert_string_equal(
		played_asked(0), "POST /v1/configs/web/pin?for_ms=7200000&reason=launch");
	RUN(cli_pin, "pullet pin", "web");
	assert_ended(CLI_OK, "web: pinned at generation 7 until it is unpinned\n", "");
}

static void pin__for_no_time__is_misused(void **state)
{
	(void)state;
	RUN(cli_pin, "pullet pin", "web", "--for", "0");
	assert_int_equal(command.code, CLI_USAGE);
	assert_string_equal(played_asked(0), "");
}

static void unpin__says_so(void **state)
{
	(void)state;
	played_answers("POST /v1/configs/web/unpin", 200, CURRENT);
	RUN(cli_unpin, "pullet unpin", "web");
	assert_ended(CLI_OK, "web: unpinned\n", "");
}

static void unpin__that_the_agent_rejects__exits_1_with_its_sentence(void **state)
{
	(void)state;
	played_answers("POST /v1/configs/web/unpin", 409, "{\"error\":\"web is not pinned\"}");
	RUN(cli_unpin, "pullet unpin", "web");
	assert_ended(CLI_FAILED, "", "pullet unpin: web is not pinned\n");
	RUN(cli_unpin, "pullet unpin");
	assert_int_equal(command.code, CLI_USAGE);
	RUN(cli_pin, "pullet pin", "--help");
	assert_int_equal(command.code, CLI_OK);
	assert_shows(command.out, "Usage: pullet pin CONFIG");
}

static void refresh__that_fails__names_the_server_without_secrets(void **state)
{
	(void)state;
	played_answers("POST /v1/configs/web/refresh", 200,
		"{\"name\":\"web\",\"outcome\":\"failed\",\"generation\":3,\"version\":null,"
		"\"error\":\"cut\",\"url\":\"https://ann:pw@h:8443/web.yaml?token=s\"}");
	RUN(cli_refresh, "pullet refresh", "web", "--wait");
	assert_ended(CLI_FAILED, "web: failed, generation 3: cut (at https://h:8443)\n", "");
	played_answers("POST /v1/configs/web/refresh", 200,
		"{\"name\":\"web\",\"outcome\":\"failed\",\"generation\":3,\"version\":null,"
		"\"error\":\"probe exited with 1\",\"rejected_by\":\"probe\"}");
	RUN(cli_refresh, "pullet refresh", "web", "--wait");
	assert_ended(CLI_FAILED,
		"web: failed, generation 3 stays: the server still has the version that failed its "
		"probe: probe exited with 1\n",
		"");
}

/* ---- suspend ---- */

static void suspend__of_one__says_how_long(void **state)
{
	(void)state;
	played_answers("POST /v1/configs/web/suspend", 200, CURRENT);
	RUN(cli_suspend, "pullet suspend", "web", "--for", "10m");
	assert_ended(CLI_OK, "web: suspended for 10m\n", "");
	assert_string_equal(played_asked(0), "POST /v1/configs/web/suspend?for_ms=600000");
	RUN(cli_suspend, "pullet suspend", "web", "--reason", "work");
	assert_ended(CLI_OK, "web: suspended until it is resumed\n", "");
}

static void suspend__of_all__asks_for_each(void **state)
{
	(void)state;
	played_answers("GET /v1/status", 200, CONFIGS);
	played_answers("POST /v1/configs/web/suspend", 200, CURRENT);
	played_answers("POST /v1/configs/db/suspend", 200, CURRENT);
	RUN(cli_suspend, "pullet suspend", "--all");
	assert_ended(CLI_OK,
		"web: suspended until it is resumed\ndb: suspended until it is resumed\n", "");
}

static void resume__of_all__passes_over_what_is_not_suspended(void **state)
{
	(void)state;
	played_answers("GET /v1/status", 200, CONFIGS);
	played_answers("POST /v1/configs/db/resume", 200, CURRENT);
	RUN(cli_resume, "pullet resume", "--all");
	assert_ended(CLI_OK, "db: resumed\n", "");
	played_answers("GET /v1/status", 200,
		"{\"configuration\":{},\"configs\":[{\"name\":\"web\",\"state\":\"ok\"}]}");
	RUN(cli_resume, "pullet resume", "--all");
	assert_ended(CLI_OK, "no config is suspended\n", "");
}

static void suspend__of_one_and_all_or_of_none__is_misused(void **state)
{
	(void)state;
	RUN(cli_suspend, "pullet suspend");
	assert_int_equal(command.code, CLI_USAGE);
	assert_shows(command.err, "name a config, or give --all");
	RUN(cli_resume, "pullet resume", "web", "--all");
	assert_int_equal(command.code, CLI_USAGE);
	RUN(cli_resume, "pullet resume", "web", "db");
	assert_ended(CLI_USAGE, "",
		"pullet resume: 'db' is one argument too many\n"
		"Usage: pullet resume CONFIG [--json] [--socket PATH]\n"
		"       pullet resume --all [--json] [--socket PATH]\n"
		"Try 'pullet resume --help'.\n");
}

/* ---- override ---- */

static void override__sends_key_value_and_time(void **state)
{
	(void)state;
	played_answers("POST /v1/configs/web/override", 200, CURRENT);
	RUN(cli_override, "pullet override", "web", "a.b=x=1&2", "--for", "1h", "--reason", "try");
	assert_ended(CLI_OK, "web: generation 7 is current: rollback to 5\n", "");
	assert_string_equal(played_asked(0),
		"POST /v1/configs/web/override?key=a.b&for_ms=3600000&reason=try&value=x%3D1%262&"
		"timeout_ms=60000");
}

#define EFFECT(members)                                                                            \
	"{\"ok\":true,\"name\":\"web\",\"generation\":7,\"origin\":\"pull\"," members "}"
#define OVERRIDDEN "web: generation 7 is current: pull\n"
#define UNDO "  `pullet override web 'a.b' --remove` ends it now\n"

static void override__of_what_may_not_be_meant__says_so_and_the_way_back(void **state)
{
	static const struct {
		const char *answer, *out;
	} rows[] = {
		{EFFECT("\"adds_key\":true"), OVERRIDDEN
			"  the version before had no such key: is its name right?\n" UNDO},
		{EFFECT("\"adds_key\":true,\"near_key\":\"a.c\""),
			OVERRIDDEN "  the version before had no such key: is its name right? There "
				   "is a.c\n" UNDO},
		{EFFECT("\"replaced_keys\":3"),
			OVERRIDDEN "  it replaces a mapping of 3: readers see none of its keys "
				   "until it ends\n" UNDO},
		{EFFECT("\"replaced_items\":2"),
			OVERRIDDEN "  it replaces a list of 2 until it ends\n" UNDO},
		{EFFECT("\"adds_key\":false,\"near_key\":\"a.c\""), OVERRIDDEN},
		{EFFECT("\"overridden\":[\"a.b\",7,\"c\"]"),
			OVERRIDDEN "  overrides stay in effect: a.b, c\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		played_answers("POST /v1/configs/web/override", 200, rows[i].answer);
		RUN(cli_override, "pullet override", "web", "a.b=x", "--for", "1h");
		assert_ended(CLI_OK, rows[i].out, "");
	}
}

static void override__of_standard_input__takes_it_without_its_last_newline(void **state)
{
	(void)state;
	played_answers("POST /v1/configs/web/override", 200, CURRENT);
	command.input = "top secret\n";
	RUN(cli_override, "pullet override", "web", "password=-", "--for", "1h");
	assert_int_equal(command.code, CLI_OK);
	assert_shows(played_asked(0), "&value=top%20secret&");
	RUN(cli_override, "pullet override", "web", "password=-", "--for", "1h");
	assert_shows(played_asked(0), "&value=&");
}

static void override__of_too_much_input__is_rejected(void **state)
{
	static char much[9000];

	(void)state;
	memset(much, 'x', sizeof(much) - 1);
	command.input = much;
	RUN(cli_override, "pullet override", "web", "a=-", "--for", "1h");
	assert_ended(CLI_USAGE, "",
		"pullet override: the value on standard input has more than 8192 bytes\n");
	assert_string_equal(played_asked(0), "");
	much[8100] = '\0';
	command.input = much;
	RUN(cli_override, "pullet override", "web", "a=-", "--for", "1h");
	assert_ended(CLI_USAGE, "", "pullet override: that is too long for a request\n");
}

static void override__of_input_with_a_nul__is_rejected(void **state)
{
	static const char input[] = "secret\0more\n";

	(void)state;
	command.input = input;
	command.input_len = sizeof(input) - 1;
	RUN(cli_override, "pullet override", "web", "a=-", "--for", "1h");
	assert_ended(
		CLI_USAGE, "", "pullet override: the value on standard input has a NUL in it\n");
	assert_string_equal(played_asked(0), "");
}

static void override__of_any_text__sends_it_whole(void **state)
{
	(void)state;
	played_answers("POST /v1/configs/web/override", 200, CURRENT);
	RUN(cli_override, "pullet override", "web",
		"a= !\"#$%&'()*+,-./09:;<=>?@AZ[\\]^_`az{|}~\177\303\244", "--for", "1h");
	assert_int_equal(command.code, CLI_OK);
	assert_shows(played_asked(0),
		"&value=%20%21%22%23%24%25%26%27%28%29%2A%2B%2C-.%2F09%3A%3B%3C%3D%3E%3F%40AZ%5B%5C"
		"%5D%5E_%60az%7B%7C%7D~%7F%C3%A4&");
}

static void override__removed__needs_no_time(void **state)
{
	(void)state;
	played_answers("POST /v1/configs/web/override", 200, CURRENT);
	RUN(cli_override, "pullet override", "web", "a.b", "--remove");
	assert_int_equal(command.code, CLI_OK);
	assert_string_equal(
		played_asked(0), "POST /v1/configs/web/override?key=a.b&remove=1&timeout_ms=60000");
	RUN(cli_override, "pullet override", "web", "a.b", "--remove", "--for", "1h");
	assert_ended(CLI_USAGE, "",
		"pullet override: --remove is now, and needs no --for and no --reason\n");
}

static void override__without_a_key_or_an_end__is_misused(void **state)
{
	(void)state;
	RUN(cli_override, "pullet override", "web", "=1", "--for", "1h");
	assert_ended(CLI_USAGE, "", "pullet override: KEY=VALUE is needed, not '=1'\n");
	RUN(cli_override, "pullet override", "web", "a", "--for", "1h");
	assert_ended(CLI_USAGE, "", "pullet override: KEY=VALUE is needed, not 'a'\n");
	RUN(cli_override, "pullet override", "web", "a=1");
	assert_int_equal(command.code, CLI_USAGE);
	assert_shows(command.err, "--for is needed: an override ends by itself");
	assert_string_equal(played_asked(0), "");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(refresh__without_wait__asks_and_prints_nothing),
		CASE(refresh__with_all_options__names_them_in_its_request),
		CASE(refresh__of_a_version_that_is_held__says_what_publishes_it),
		CASE(refresh__of_a_pull_that_failed__exits_1),
		CASE(refresh__whose_wait_got_no_result__is_an_error),
		CASE(refresh__without_a_name__pulls_all_but_suspended_configs),
		CASE(refresh__of_all__of_an_agent_that_does_not_say_which__pulls_none),
		CASE(refresh__of_all__ends_with_the_first_failure),
		CASE(refresh__with_force_and_no_name__is_misused),
		CASE(rollback__with_a_number__asks_for_that_generation),
		CASE(rollback__without_a_number__leaves_the_choice_to_the_agent),
		CASE(rollback__to_what_is_no_generation__says_where_they_are_listed),
		CASE(rollback__with_json__prints_the_answer_as_it_is),
		CASE(pin__for_a_while__says_how_long),
		CASE(pin__for_no_time__is_misused),
		CASE(unpin__says_so),
		CASE(unpin__that_the_agent_rejects__exits_1_with_its_sentence),
		CASE(refresh__that_fails__names_the_server_without_secrets),
		CASE(suspend__of_one__says_how_long),
		CASE(suspend__of_all__asks_for_each),
		CASE(resume__of_all__passes_over_what_is_not_suspended),
		CASE(suspend__of_one_and_all_or_of_none__is_misused),
		CASE(override__sends_key_value_and_time),
		CASE(override__of_what_may_not_be_meant__says_so_and_the_way_back),
		CASE(override__of_standard_input__takes_it_without_its_last_newline),
		CASE(override__of_too_much_input__is_rejected),
		CASE(override__of_input_with_a_nul__is_rejected),
		CASE(override__of_any_text__sends_it_whole),
		CASE(override__removed__needs_no_time),
		CASE(override__without_a_key_or_an_end__is_misused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* One request to the agent: where it goes, what each answer means, and which sentence there is when
 * none comes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "cli/common/cli.h"
#include "cli/common/client.h"
#include "tests/unit/fixture/command.h"

#define STATUS                                                                                     \
	"{\"configuration\":{},\"configs\":[{\"name\":\"web\",\"state\":\"ok\"},"                  \
	"{\"name\":\"db\",\"state\":\"ok\"}]}"

static uint64_t timeout_ms;
static const char *config; /* NULL = the answer is about none */

/* Asks PATH, and ends as a command would. */
static int ask_path(int argc, char **argv)
{
	struct client_answer a = {0};
	int r = client_ask(argv[0], client_default_socket(), "GET", argv[1], timeout_ms, &a);

	(void)argc;
	if (r == CLI_OK)
		r = config ? client_config_code(argv[0], client_default_socket(), config, &a)
			   : client_exit_code(argv[0], &a);
	if (r == CLI_OK)
		printf("%s", a.body.data);
	client_fini(&a);
	return r;
}

#define ASK(path) RUN(ask_path, "pullet x", path)

static int set_up(void **state)
{
	(void)state;
	alarm(20);
	played_open();
	timeout_ms = 10000;
	config = NULL;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	played_close();
	return 0;
}

static void answer__of_each_status__has_its_exit_code_and_sentence(void **state)
{
	static const struct {
		int status;
		const char *body;
		int code;
		const char *err;
	} rows[] = {
		{200, STATUS, CLI_OK, ""},
		{200, "{\"configs\":[]}", CLI_FAILED,
			"pullet x: the agent's answer cannot be read: see whether pulletd is of "
			"the same version\n"},
		{200, "no JSON", CLI_FAILED,
			"pullet x: the agent's answer cannot be read: see whether pulletd is of "
			"the same version\n"},
		{400, "{\"error\":\"no\\nway\"}", CLI_USAGE, "pullet x: no\n    way\n"},
		{404, "{\"error\":\"none\"}", CLI_NOT_FOUND, "pullet x: none\n"},
		{409, "{\"error\":\"it is held\"}", CLI_FAILED, "pullet x: it is held\n"},
		{504, "{\"error\":\"not in 1s\"}", CLI_TIMED_OUT, "pullet x: not in 1s\n"},
		{503, "{\"error\":\"too many\"}", CLI_BUSY,
			"pullet x: the agent is busy: too many\n"},
		{503, "", CLI_FAILED, "pullet x: the agent answered 503: it gives no reason\n"},
		{500, "{\"error\":\"\\u001b[31m\"}", CLI_FAILED,
			"pullet x: the agent answered 500: \\x1b[31m\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		played_answers("GET /v1/status", rows[i].status, rows[i].body);
		ASK("/v1/status");
		assert_ended(rows[i].code, rows[i].code ? "" : rows[i].body, rows[i].err);
	}
	assert_string_equal(played_asked(0), "GET /v1/status");
}

static void answer__that_does_not_come__is_named(void **state)
{
	(void)state;
	played_answers("GET /v1/status", AGENT_HANGS, "");
	timeout_ms = 50;
	ASK("/v1/status");
	assert_ended(CLI_TIMED_OUT, "",
		"pullet x: the agent did not answer in time: `pullet doctor` says why\n");
	timeout_ms = 10000;
	played_answers("GET /v1/status", AGENT_CLOSES, "");
	ASK("/v1/status");
	assert_int_equal(command.code, CLI_UNREACHABLE);
	assert_shows(command.err, "pullet x: no agent answers at ");
	assert_shows(command.err, "/control.sock: start it (systemctl start pullet)\n");
}

static void config__that_there_is_not__is_guessed(void **state)
{
	(void)state;
	config = "wbe";
	played_answers("GET /v1/configs/wbe", 404, "{\"error\":\"there is no config\"}");
	played_answers("GET /v1/status", 200, STATUS);
	ASK("/v1/configs/wbe");
	assert_int_equal(command.code, CLI_NOT_FOUND);
	assert_shows(command.err, "pullet x: there is no config of that name, 'wbe': ");
	assert_shows(command.err, "web");
	config = "db"; /* there is one: what is missing is something else */
	played_answers("GET /v1/configs/db", 404, "{\"error\":\"no such generation\"}");
	ASK("/v1/configs/db");
	assert_ended(CLI_NOT_FOUND, "", "pullet x: no such generation\n");
	played_answers("GET /v1/status", 503, "");
	ASK("/v1/configs/db");
	assert_ended(CLI_NOT_FOUND, "", "pullet x: no such generation\n");
	played_answers("GET /v1/configs/db", 409, "{\"error\":\"no\"}");
	ASK("/v1/configs/db");
	assert_ended(CLI_FAILED, "", "pullet x: no\n");
	assert_string_equal(played_asked(1), "");
}

static void path__and_its_parameters__are_escaped_and_joined(void **state)
{
	struct buffer path;

	(void)state;
	client_path(&path, "a b/c", "/wait");
	assert_string_equal(path.data, "/v1/configs/a%20b%2Fc/wait");
	client_query(&path, "none", NULL);
	client_query(&path, "one", "x&y");
	client_query_number(&path, "two", UINT64_MAX);
	assert_string_equal(
		path.data, "/v1/configs/a%20b%2Fc/wait?one=x%26y&two=18446744073709551615");
	buffer_fini(&path);
}

static void runtime_directory__is_the_given_one__else_the_hosts(void **state)
{
	char expected[SCRATCH_PATH + 32];

	(void)state;
	snprintf(expected, sizeof(expected), "%s/control.sock", played.dir);
	assert_string_equal(client_runtime_dir(), played.dir);
	assert_string_equal(client_default_socket(), expected);
	setenv("PULLET_RUNTIME_DIR", "", 1);
	assert_string_equal(client_runtime_dir(), PULLET_RUNSTATEDIR "/pullet");
	unsetenv("PULLET_RUNTIME_DIR");
	assert_string_equal(client_runtime_dir(), PULLET_RUNSTATEDIR "/pullet");
	assert_string_equal(client_default_socket(), PULLET_RUNSTATEDIR "/pullet/control.sock");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(answer__of_each_status__has_its_exit_code_and_sentence),
		CASE(answer__that_does_not_come__is_named),
		CASE(config__that_there_is_not__is_guessed),
		CASE(path__and_its_parameters__are_escaped_and_joined),
		CASE(runtime_directory__is_the_given_one__else_the_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

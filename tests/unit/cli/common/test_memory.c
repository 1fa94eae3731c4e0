/* Commands that ask the agent, with each allocation failing in turn: all of the output or none, and
 * then a sentence and an exit code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/common/cli.h"
#include "tests/unit/fixture/command.h"
#include "tests/unit/fixture/fault_memory.h"

#define OF_REQUEST 89 /* allocations: http/test_memory has those */
#define STATUS                                                                                     \
	"{\"configuration\":{},\"configs\":[{\"name\":\"web\",\"state\":\"ok\",\"generation\":3,"  \
	"\"path\":\"/web.yaml\",\"server\":\"main\"},"                                             \
	"{\"name\":\"db\",\"state\":\"failing\",\"last_error\":\"no route\",\"generation\":1}]}"

#define CURRENT "{\"ok\":true,\"name\":\"web\",\"generation\":3,\"origin\":\"pull\"}"

static const char *const changes[] = {"POST /v1/configs/web/rollback", "POST /v1/configs/web/pin",
	"POST /v1/configs/web/unpin", "POST /v1/configs/web/suspend", "POST /v1/configs/web/resume",
	"POST /v1/configs/web/override"};

static int set_up(void **state)
{
	(void)state;
	alarm(60);
	played_open();
	played_answers("GET /v1/status", 200, STATUS);
	played_answers("GET /v1/configs/web", 200,
		"{\"name\":\"web\",\"state\":\"ok\",\"generation\":3,\"version\":\"v\"}");
	played_answers("GET /v1/configs/web/history", 200,
		"{\"name\":\"web\",\"versions\":[{\"generation\":9,\"published\":true,\"published_"
		"ms\":1700000000000,\"bytes\":120,\"version\":\"abc\",\"sha256\":\"0123\","
		"\"origin\":\"pull\",\"cause\":\"push\",\"by\":null}]}");
	played_answers("GET /v1/configs/web/diff", 200,
		"{\"name\":\"web\",\"from\":{\"generation\":3},\"to\":{\"generation\":4},\"equal\":"
		"false,\"changes\":[{\"change\":\"changed\",\"path\":\"a.b\",\"before\":1,"
		"\"after\":"
		"\"x y\"}]}");
	played_answers("GET /v1/configs/web/explain", 200,
		"{\"name\":\"web\",\"found\":true,\"value\":2,\"layers\":[{\"path\":\"/base.yaml\","
		"\"state\":\"absent\"}]}");
	played_answers("GET /v1/configs/web/wait", 200, CURRENT);
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
		played_answers(changes[i], 200, CURRENT);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	played_close();
	return 0;
}

static int (*wanted)(int argc, char **argv);
static unsigned *seen; /* allocations of the last run; shared with it */

/* The allocation that fault_memory names fails. In a child: libevent ends a process that has no
 * memory. */
static int run_short_of_memory(int argc, char **argv)
{
	pid_t pid = fork();
	int how = 0;

	assert_true(pid >= 0);
	if (pid == 0) {
		fault_memory.paused = 0;
		how = wanted(argc, argv);
		fault_memory.paused = 1;
		*seen = fault_memory.seen;
		fflush(NULL);
		_exit(how);
	}
	waitpid(pid, &how, 0);
	return WIFEXITED(how) ? WEXITSTATUS(how) : -1;
}

static void command__without_memory__prints_all_or_a_sentence(void **state)
{
	static const struct {
		int (*run)(int argc, char **argv);
		const char *arguments[8];
	} rows[] = {
		{cli_status, {"pullet status"}},
		{cli_status, {"pullet status", "web"}},
		{cli_status, {"pullet status", "--names"}},
		{cli_history, {"pullet history", "web"}},
		{cli_diff, {"pullet diff", "web"}},
		{cli_explain, {"pullet explain", "web", "a"}},
		{cli_wait, {"pullet wait", "web", "--generation", "3"}},
		{cli_wait, {"pullet wait", "--ready", "web"}},
		{cli_rollback, {"pullet rollback", "web"}},
		{cli_pin, {"pullet pin", "web"}},
		{cli_unpin, {"pullet unpin", "web"}},
		{cli_suspend, {"pullet suspend", "web"}},
		{cli_resume, {"pullet resume", "web"}},
		{cli_override, {"pullet override", "web", "a=1", "--for", "1h"}},
	};
	static char whole[COMMAND_MAX];

	(void)state;
	seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(seen != MAP_FAILED);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned nth = OF_REQUEST;
		int code;

		wanted = rows[i].run;
		code = command_run(wanted, rows[i].arguments);
		if (!command.out[0])
			fail_msg("%s: %d '%s'", rows[i].arguments[0], code, command.err);
		memcpy(whole, command.out, sizeof(whole));
		do {
			fault_memory.paused = 1;
			fault_memory.seen = 0;
			fault_memory.nth = ++nth;
			*seen = UINT_MAX;
			command_run(run_short_of_memory, rows[i].arguments);
			fault_memory.nth = 0;
			assert_null(strstr(command.err, "(null)"));
			if (command.code == code && strcmp(command.out, whole) == 0)
				continue;
			if (command.code == CLI_OK || command.out[0] || !command.err[0])
				fail_msg("%s, allocation %u: %d '%s' '%s'", rows[i].arguments[0],
					nth, command.code, command.out, command.err);
		} while (*seen >= nth && nth < 1000);
		assert_int_equal(command.code, code);
		assert_true(nth < 1000);
	}
	munmap(seen, sizeof(*seen));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			command__without_memory__prints_all_or_a_sentence, set_up, tear_down),
	};

	return fault_memory_run(tests, 1);
}

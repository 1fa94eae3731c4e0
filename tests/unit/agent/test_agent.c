/*
 * Parts of the agent by themselves: agent/agent.c is compiled in here, with receipts that are only
 * counted.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fleet/report.h"
#include "reconfigure.h"
#include "tests/unit/fixture/captured.h"
#include "tests/unit/fixture/fault_memory.h"

static struct report *played_start(const struct report_env *env);
static void played_changed(struct report *r, size_t config);

#define report_start played_start
#define report_changed played_changed
#include "agent.c"
#undef report_start
#undef report_changed

static struct {
	unsigned started;
	char changed[64];
} receipts;

static struct report *played_start(const struct report_env *env)
{
	(void)env;
	receipts.started++;
	return NULL;
}

static void played_changed(struct report *r, size_t config)
{
	size_t len = strlen(receipts.changed);

	(void)r;
	snprintf(receipts.changed + len, sizeof(receipts.changed) - len, " %zu", config);
}

/* Until its pull has ended, which may take long, the receipt is that of the old one else. */
static void receipt__of_each_config_that_changed__is_written_at_once(void **state)
{
	bool same[] = {false, true, false, false};
	const struct settings_diff diff = {.configs.same = same};
	struct settings settings = {.config_count = 4};
	struct agent a = {.settings = &settings, .report = (struct report *)&receipts};

	(void)state;
	assert_int_equal(renew_report(&a, &diff), 0);
	assert_string_equal(receipts.changed, " 0 2 3");
	assert_int_equal(receipts.started, 0);
	a.report = NULL; /* none is written */
	assert_int_equal(renew_report(&a, &diff), 0);
	assert_string_equal(receipts.changed, " 0 2 3");
	assert_int_equal(receipts.started, 0);
	settings.report.from = (char *)"etcd"; /* out of memory */
	assert_int_equal(renew_report(&a, &diff), -ENOMEM);
	assert_int_equal(receipts.started, 1);
}

static void hup__of_an_agent_that_runs_once__is_ignored(void **state)
{
	struct agent a = {.once = true, .path = "/nowhere.yaml", .loop = loop_new(&sys_real)};
	struct reconfigure *r = reconfigure_new(&a);
	struct captured errors = captured_begin(STDERR_FILENO);
	char text[512];

	(void)state;
	reconfigure_begin(r);
	captured_read(&errors, text, sizeof(text));
	captured_end(&errors);
	assert_non_null(
		strstr(text, "SIGHUP ignored: --once keeps the configuration it started with\n"));
	assert_null(strstr(text, "nowhere")); /* it is not read */
	assert_int_equal(a.configuration.rejections, 0);
	reconfigure_free(r);
	reconfigure_free(NULL);
	loop_free(a.loop);
}

/* The agent ends then: what it has begun is not taken back. */
static void apply__without_memory__says_so(void **state)
{
	(void)state;
	for (unsigned nth = 1; nth <= 3; nth++) {
		const struct settings_diff diff = {.push = false};
		struct settings settings = {.config_count = 0}, *new = calloc(1, sizeof(*new));
		struct agent a = {.settings = &settings, .lock = -1};

		fault_memory.seen = 0;
		fault_memory.nth = nth;
		assert_int_equal(agent_apply(&a, new, &diff), -ENOMEM);
		fault_memory.nth = 0;
		settings_free(new);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(receipt__of_each_config_that_changed__is_written_at_once),
		cmocka_unit_test(hup__of_an_agent_that_runs_once__is_ignored),
		cmocka_unit_test(apply__without_memory__says_so),
	};

	return fault_memory_run(tests, 1);
}

/*
 * The metrics as text: the rules of the format, and those of naming, for every row of the table;
 * labels with their escapes, histograms; 10,000 configs. That the values are right, and move, is
 * held by tests/integration/test_metrics.py.
 */
#include <ctype.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <cmocka.h>

#include "verify/verify.h"
#include "pull/kinds/kind.h"
#include "control/metrics.h"
#include "control/metrics_table.h"
#include "control/state_names.h"

#define MAX_TEXT (256u << 20)

/* An agent that was put together and not started. */
static struct agent {
	struct settings *settings;
	struct config_env config_env;
	struct trigger_queue queue;
	struct control_env env;
	struct config **configs;
	struct upstream **servers;
	struct backoffs *backoffs;
	struct subscriber *push;
	struct report *report;
} agent;

static struct control_counts counts;

static void complain(void *arg, const char *message)
{
	(void)arg;
	fail_msg("%s", message);
}

static void wake(void *arg)
{
	(void)arg;
}

static void prepare(const char *text)
{
	struct agent *a = &agent;

	*a = (struct agent){0};
	assert_int_equal(
		settings_parse("test", text, strlen(text), complain, NULL, &a->settings), 0);
	a->configs = calloc(a->settings->config_count, sizeof(*a->configs));
	a->servers = calloc(a->settings->server_count, sizeof(*a->servers));
	trigger_queue_init(&a->queue, wake, NULL);
	a->config_env = (struct config_env){
		.sys = &sys_real,
		.loop = loop_new(&sys_real),
		.pull = {.servers = a->servers},
		.queue = &a->queue,
		.state_dir = "/nowhere",
		.runtime_dir = "/nowhere",
		.host = "here",
	};
	a->backoffs = backoffs_new(&sys_real);
	assert_true(a->backoffs && a->configs && a->servers && a->config_env.loop);
	for (size_t i = 0; i < a->settings->server_count; i++) {
		a->servers[i] =
			upstream_new(a->config_env.loop, a->backoffs, a->settings->servers[i]);
		assert_non_null(a->servers[i]);
	}
	for (size_t i = 0; i < a->settings->config_count; i++) {
		a->configs[i] = config_new(&a->config_env, a->settings->configs[i]);
		assert_non_null(a->configs[i]);
	}
	a->env = (struct control_env){
		.loop = a->config_env.loop,
		.settings = a->settings,
		.configs = a->configs,
		.servers = a->servers,
		.push = &a->push,
		.report = &a->report,
		.counts = &counts,
		.started_ms = 1700000000123,
	};
}

static void finish(void)
{
	for (size_t i = 0; i < agent.settings->config_count; i++)
		config_free(agent.configs[i]);
	for (size_t i = 0; i < agent.settings->server_count; i++)
		upstream_free(agent.servers[i]);
	backoffs_free(agent.backoffs);
	free(agent.configs);
	free(agent.servers);
	loop_free(agent.config_env.loop);
	settings_free(agent.settings);
}

static const char one[] = "configs:\n  web: {url: 'http://127.0.0.1:1/w.yaml', file: /nowhere/w}\n";

static char *text_of(bool openmetrics)
{
	struct buffer b;
	char *text;

	buffer_init(&b, MAX_TEXT);
	assert_int_equal(metrics_write(&agent.env, openmetrics, &b), 0);
	text = strdup(b.data);
	assert_non_null(text);
	assert_int_equal(strlen(text), b.len);
	buffer_fini(&b);
	return text;
}

static void assert_has(const char *text, const char *lines)
{
	if (!strstr(text, lines))
		fail_msg("there is no\n%sin\n%s", lines, text);
}

static bool ends(const char *s, const char *ending)
{
	size_t len = strlen(s), n = strlen(ending);

	return len >= n && strcmp(s + len - n, ending) == 0;
}

/* ---- the table ---- */

static void check_name(const struct metric *m)
{
	static const char *const units[] = {"", "_seconds", "_seconds", "_bytes"};
	char family[128];

	assert_true(!strncmp(m->name, "pullet_", 7) || !strncmp(m->name, "process_", 8));
	assert_int_equal(strspn(m->name, "abcdefghijklmnopqrstuvwxyz_"), strlen(m->name));
	assert_int_equal(ends(m->name, "_total"), m->type == METRIC_COUNTER);
	assert_int_equal(ends(m->name, "_info"), m->type == METRIC_INFO);
	assert_false(ends(m->name, "_count") || ends(m->name, "_sum") || ends(m->name, "_bucket"));
	snprintf(family, sizeof(family), "%s", m->name);
	if (m->type == METRIC_COUNTER)
		family[strlen(family) - 6] = '\0';
	assert_true(ends(family, units[m->unit]));
	assert_true(m->unit || (!ends(family, "_seconds") && !ends(family, "_bytes")));
}

static void table__every_row__keeps_the_rules_of_naming(void **state)
{
	const char *seen[256];
	size_t count = 0;

	(void)state;
	for (size_t s = 0; s < METRIC_SCOPES; s++) {
		for (size_t i = 0; i < metric_scopes[s].count; i++) {
			const struct metric *m = &metric_scopes[s].metrics[i];
			size_t len = strlen(m->help);

			check_name(m);
			assert_int_equal(strcspn(m->help, "\\\"\n"), len);
			assert_int_equal(m->help[len - 1], '.');
			for (size_t k = 0; k < count; k++)
				assert_string_not_equal(seen[k], m->name);
			seen[count++] = m->name;
			assert_int_equal(!m->label, !m->values);
			assert_true(m->label || !m->is_set);
			for (size_t v = 0; v < m->values; v++) {
				const char *name = m->names ? m->names[v] : m->name_of(v);

				assert_int_equal(strcspn(name, "\\\"\n"), strlen(name));
			}
		}
	}
}

/* ---- the text ---- */

static void write__of_one_config__is_this(void **state)
{
	static const char *const zeros[] = {"stale", "failure", "rejection", "generation",
		"runs_total", "run_failures_total", "restored_total", "operator_decisions"};
	char *text, line[128];

	(void)state;
	prepare(one);
	text = text_of(false);
	assert_has(text,
		"# HELP pullet_build_info The version of the agent.\n# TYPE pullet_build_info "
		"gauge\n"
		"pullet_build_info{version=\"" PULLET_VERSION "\"} 1\n"
		"# HELP pullet_configs Configs of the agent.\n# TYPE pullet_configs gauge\n"
		"pullet_configs 1\n");
	assert_has(text, "# TYPE pullet_loop_longest_turn_seconds gauge\n"
			 "pullet_loop_longest_turn_seconds 0.000\n");
	assert_has(text, "\nprocess_start_time_seconds 1700000000.123\n");
	assert_has(text, "# HELP pullet_config_ready 1 when a version is published.\n"
			 "# TYPE pullet_config_ready gauge\n"
			 "pullet_config_ready{config=\"web\"} 0\n");
	/* what has not happened yet is there: rate() sees the first time, avg() each host */
	for (size_t i = 0; i < sizeof(zeros) / sizeof(zeros[0]); i++) {
		snprintf(line, sizeof(line), "\npullet_config_%s{config=\"web\"} 0\n", zeros[i]);
		assert_has(text, line);
	}
	assert_has(text, "\npullet_address_backoff_seconds{server=\"http://127.0.0.1:1\","
			 "address=\"http://127.0.0.1:1\"} 0.000\n");
	/* what is not there has neither a series nor a head */
	assert_null(strstr(text, "pullet_config_confirmed_timestamp_seconds"));
	assert_null(strstr(text, "pullet_config_drifted"));
	assert_null(strstr(text, "pullet_config_reload"));
	assert_null(strstr(text, "pullet_push_"));
	assert_null(strstr(text, "pullet_report"));
	assert_null(strstr(text, "# EOF"));
	assert_null(strstr(text, "# UNIT"));
	free(text);
	finish();
}

static void write__as_openmetrics__names_families_and_units(void **state)
{
	char *text;

	(void)state;
	prepare(one);
	text = text_of(true);
	assert_has(text, "# HELP pullet_build The version of the agent.\n# TYPE pullet_build info\n"
			 "pullet_build_info{version=\"" PULLET_VERSION "\"} 1\n");
	assert_has(text, "# TYPE pullet_config_runs counter\n"
			 "pullet_config_runs_total{config=\"web\"} 0\n");
	assert_has(text, "# TYPE pullet_runs counter\n"
			 "pullet_runs_total{outcome=\"success\"} 0\n");
	assert_has(text, "# TYPE process_cpu_seconds counter\n# UNIT process_cpu_seconds seconds\n"
			 "process_cpu_seconds_total ");
	assert_has(text, "# UNIT process_resident_memory_bytes bytes\n");
	assert_true(ends(text, "\n# EOF\n"));
	free(text);
	finish();
}

/* ---- states as numbers ---- */

static const char *failure_name(size_t i)
{
	return i == 0   ? "it succeeded"
	       : i == 1 ? "other"
			: kind_cause_name((enum kind_cause)(i - 1));
}

static const char *watch_name(size_t i)
{
	return state_names_watch[i];
}

static const char *probe_name(size_t i)
{
	return state_names_probe[i];
}

static const struct metric *find_metric(const char *name)
{
	for (size_t s = 0; s < METRIC_SCOPES; s++)
		for (size_t i = 0; i < metric_scopes[s].count; i++)
			if (strcmp(metric_scopes[s].metrics[i].name, name) == 0)
				return &metric_scopes[s].metrics[i];
	fail_msg("there is no %s", name);
	return NULL;
}

static void help__of_a_state__has_the_number_of_each(void **state)
{
	static const struct {
		const char *metric;
		const char *(*name_of)(size_t i);
		size_t count;
	} table[] = {
		{"pullet_config_failure", failure_name, KIND_CAUSES + 1},
		{"pullet_config_watch_state", watch_name, WATCH_FAILING + 1},
		{"pullet_config_probe_state", probe_name, PROBE_FAILED + 1},
	};
	char text[64];

	(void)state;
	for (size_t t = 0; t < sizeof(table) / sizeof(table[0]); t++) {
		const struct metric *m = find_metric(table[t].metric);
		const char *at = m->help;

		for (size_t i = 0; i < table[t].count; i++) {
			snprintf(text, sizeof(text), " %zu %s%s", i, table[t].name_of(i),
				i + 1 == table[t].count ? "." : ",");
			at = strstr(at, text);
			if (!at)
				fail_msg("%s: no%s", m->help, text);
		}
		assert_int_equal(strlen(at), strlen(text));
	}
}

static void write__every_check_and_outcome__has_its_series(void **state)
{
	static const char *const outcomes[] = {"success", "timeout", "not_started", "failed"};
	char line[256], *text;

	(void)state;
	prepare(one);
	text = text_of(false);
	for (int i = 0; i < CHECK_COUNT; i++) {
		snprintf(line, sizeof(line), "pullet_rejections_total{check=\"%s\"} 0\n",
			verify_check_name((enum verify_check)i));
		assert_has(text, line);
	}
	for (int i = 0; i < SUPERVISOR_OUTCOMES; i++) {
		snprintf(line, sizeof(line), "pullet_runs_total{outcome=\"%s\"} 0\n", outcomes[i]);
		assert_has(text, line);
	}
	free(text);
	finish();
}

static void write__an_address_with_quotes__is_escaped(void **state)
{
	static const char odd[] = "servers:\n"
				  "  main: {urls: ['http://127.0.0.1:1/a\"b\\c\"']}\n"
				  "configs:\n"
				  "  web: {from: [{server: main, path: /w}], file: /nowhere/w}\n";
	char *text;

	(void)state;
	prepare(odd);
	text = text_of(false);
	assert_has(text, "pullet_address_backoff_seconds{server=\"main\","
			 "address=\"http://127.0.0.1:1/a\\\"b\\\\c\\\"\"} 0.000\n");
	free(text);
	finish();
}

static void write__each_address_of_each_server__has_its_series(void **state)
{
	static const char several[] =
		"servers:\n"
		"  main: {urls: ['http://127.0.0.1:1', 'http://127.0.0.1:2']}\n"
		"  more: {urls: ['http://127.0.0.1:2', 'http://127.0.0.1:3']}\n"
		"configs:\n"
		"  web: {from: [{server: main, path: /w}], file: /nowhere/w}\n"
		"  db: {from: [{server: more, path: /w}], file: /nowhere/d}\n";
	static const char *const lines[] = {
		"_backoff_seconds{server=\"main\",address=\"http://127.0.0.1:1\"} 0.000\n",
		"_backoff_seconds{server=\"main\",address=\"http://127.0.0.1:2\"} 0.000\n",
		"_backoff_seconds{server=\"more\",address=\"http://127.0.0.1:2\"} 0.000\n",
		"_backoff_seconds{server=\"more\",address=\"http://127.0.0.1:3\"} 0.000\n",
	};
	char *text;

	(void)state;
	prepare(several);
	text = text_of(false);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) { /* in any order, once */
		assert_has(text, lines[i]);
		assert_null(strstr(strstr(text, lines[i]) + 1, lines[i]));
	}
	free(text);
	finish();
}

static void write__to_a_buffer_that_is_full__is_an_error(void **state)
{
	struct buffer b;

	(void)state;
	prepare(one);
	buffer_init(&b, 2000);
	assert_int_equal(metrics_write(&agent.env, false, &b), -EMSGSIZE);
	buffer_fini(&b);
	finish();
}

/* ---- histograms ---- */

static bool declines(void *arg)
{
	(void)arg;
	return false;
}

static void not_pulled(void *arg, const char *why)
{
	(void)arg, (void)why;
}

static void histogram__is_cumulative_and_has_a_sum(void **state)
{
	struct upstream_task task = {.slot_ready = declines, .slot_lost = not_pulled};
	char *text;

	(void)state;
	prepare(one);
	for (int i = 0; i < 5; i++)
		upstream_submit(agent.servers[0], &task, UINT64_MAX);
	text = text_of(false);
	assert_has(text,
		"# TYPE pullet_server_batch_pulls histogram\n"
		"pullet_server_batch_pulls_bucket{server=\"http://127.0.0.1:1\",le=\"0.0\"} 0\n"
		"pullet_server_batch_pulls_bucket{server=\"http://127.0.0.1:1\",le=\"1.0\"} 5\n"
		"pullet_server_batch_pulls_bucket{server=\"http://127.0.0.1:1\",le=\"3.0\"} 5\n");
	assert_has(text,
		"le=\"16383.0\"} 5\n"
		"pullet_server_batch_pulls_bucket{server=\"http://127.0.0.1:1\",le=\"+Inf\"} 5\n"
		"pullet_server_batch_pulls_sum{server=\"http://127.0.0.1:1\"} 5\n"
		"pullet_server_batch_pulls_count{server=\"http://127.0.0.1:1\"} 5\n");
	assert_has(text, "le=\"0.001\"} ");
	assert_has(text, "le=\"16.384\"} 5\n");
	assert_has(text,
		"pullet_server_dispatch_delay_seconds_sum{server=\"http://127.0.0.1:1\"} 0.0");
	assert_has(text, "pullet_server_pulls_accepted_total{server=\"http://127.0.0.1:1\"} 5\n");
	free(text);
	finish();
}

/* ---- size ---- */

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void prepare_many(int count)
{
	struct buffer b;

	buffer_init(&b, 8u << 20);
	buffer_append_string(&b, "servers:\n  main: {urls: ['http://127.0.0.1:1']}\nconfigs:\n");
	for (int i = 0; i < count; i++)
		buffer_printf(&b,
			" application-config-%05d: {from: [{server: main, path: /%d}], file: "
			"/nowhere/%d}\n",
			i, i, i);
	prepare(b.data);
	buffer_fini(&b);
}

/* Samples; those that have the text, or all. */
static size_t count_series(const char *text, const char *with)
{
	size_t count = 0;

	for (const char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
		const char *found = with ? strstr(line, with) : line;

		count += *line != '#' && found && found < end;
	}
	return count;
}

/* 15 less the one that says when a server confirmed, which none did, and the 5 of reload, probe,
 * watch and a signature. */
#define PLAIN_SERIES 9
#define STRING(number) STRING_OF(number)
#define STRING_OF(number) #number

static void write__series__are_few_of_a_config_and_no_more_of_the_agent(void **state)
{
	size_t all[2], of_configs[2];
	char *text;

	(void)state;
	for (int i = 0; i < 2; i++) {
		prepare_many(i ? 1000 : 1);
		text = text_of(false);
		all[i] = count_series(text, NULL);
		of_configs[i] = count_series(text, "config=\"");
		free(text);
		finish();
	}
	if (of_configs[0] > PLAIN_SERIES)
		fail_msg("config_metrics[] writes %zu series of a config that has nothing "
			 "special, and " STRING(PLAIN_SERIES) " are allowed: with those of "
							      "its features a config may have 15. "
							      "Count it in total_metrics[], or "
							      "show it in the status",
			of_configs[0]);
	assert_int_equal(of_configs[1], 1000 * of_configs[0]);
	assert_int_equal(all[1] - all[0], 999 * of_configs[0]);
}

/* What 15 lines of each config cost that nobody thought about. */
static double print_lines(int count)
{
	double begin = seconds();
	struct buffer b;

	buffer_init(&b, MAX_TEXT);
	for (int m = 0; m < 15; m++)
		for (int i = 0; i < count; i++)
			buffer_printf(&b, "%s{config=\"application-config-%05d\"} %d\n",
				"pullet_config_run_failures_total", i, m * i);
	buffer_fini(&b);
	return seconds() - begin;
}

static double write_all(void)
{
	double begin = seconds();
	struct buffer b;

	buffer_init(&b, MAX_TEXT);
	assert_int_equal(metrics_write(&agent.env, false, &b), 0);
	buffer_fini(&b);
	return seconds() - begin;
}

static void write__of_1000_configs__costs_no_more_than_printing_15_lines_of_each(void **state)
{
	double written = 1e9, printed = 1e9, t;

	(void)state;
	prepare_many(1000);
	for (int i = 0; i < 7; i++) {
		written = (t = write_all()) < written ? t : written;
		printed = (t = print_lines(1000)) < printed ? t : printed;
	}
	print_message("1,000 configs: %.2f ms; their lines printed: %.2f ms\n", written * 1000,
		printed * 1000);
	assert_true(
		written < 2 * printed); /* a quarter of it is usual; sanitizers weigh otherwise */
	finish();
}

static void write__10000_configs__is_answered_in_memory(void **state)
{
	struct rusage before, after;
	struct buffer b;

	(void)state;
	prepare_many(10000);
	getrusage(RUSAGE_SELF, &before);
	buffer_init(&b, 64u << 20); /* that of the control API's answers */
	assert_int_equal(metrics_write(&agent.env, false, &b), 0);
	getrusage(RUSAGE_SELF, &after);
	print_message("10,000 configs: %zu series, %.1f MiB, %ld KiB more memory\n",
		count_series(b.data, NULL), (double)b.len / (1 << 20),
		after.ru_maxrss - before.ru_maxrss);
	buffer_fini(&b);
	finish();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table__every_row__keeps_the_rules_of_naming),
		cmocka_unit_test(write__of_one_config__is_this),
		cmocka_unit_test(write__as_openmetrics__names_families_and_units),
		cmocka_unit_test(write__every_check_and_outcome__has_its_series),
		cmocka_unit_test(help__of_a_state__has_the_number_of_each),
		cmocka_unit_test(write__an_address_with_quotes__is_escaped),
		cmocka_unit_test(write__each_address_of_each_server__has_its_series),
		cmocka_unit_test(write__to_a_buffer_that_is_full__is_an_error),
		cmocka_unit_test(histogram__is_cumulative_and_has_a_sum),
		cmocka_unit_test(write__series__are_few_of_a_config_and_no_more_of_the_agent),
		cmocka_unit_test(
			write__of_1000_configs__costs_no_more_than_printing_15_lines_of_each),
		cmocka_unit_test(write__10000_configs__is_answered_in_memory),
	};

	log_setup(LOG_LEVEL_ERR, LOG_FORMAT_TEXT);
	return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}

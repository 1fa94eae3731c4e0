/* Metrics as text, to the letter, in both formats: heads, labels, histograms, what is absent. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "text/exposition.h"

struct subject {
	unsigned turn;
	bool known, on;
	unsigned small;
	int64_t age_ms, sent, bytes, state, shares[2];
	int64_t waits[5], sizes[5], quick[4]; /* the sum behind the counts */
};

static const char *label_values[METRIC_LABELS];

#define ODD "quote \" slash \\ line\nend"
#define ODD_SHOWN "quote \\\" slash \\\\ line\\nend"

/* Two objects; of the second there is little to say. */
static bool next_subject(void *arg)
{
	struct subject *s = arg;
	unsigned turn = s->turn + 1;

	*s = (struct subject){.turn = turn, .age_ms = -1, .sent = 7, .waits = {-1}};
	label_values[0] = turn == 1 ? "one" : "two";
	label_values[1] = turn == 1 ? ODD : "";
	if (turn == 1)
		*s = (struct subject){.turn = turn,
			.known = true,
			.on = true,
			.small = 4000000000u,
			.age_ms = 61005,
			.sent = 12,
			.bytes = 9,
			.state = 1,
			.shares = {5, 0},
			.waits = {1, 2, 3, 4, 2500},
			.sizes = {1, 0, 1, 0, 99},
			.quick = {1, 1, 1, 1000001}};
	return turn <= 2;
}

static const char *name_share(size_t i)
{
	return i ? "b" : "a";
}

static const char *const states[] = {"good", "bad"};

#define FIELD(member) METRIC_FIELD(struct subject, member)

static const struct metric metrics[] = {
	{"x_age_seconds", METRIC_GAUGE, METRIC_SECONDS, "Its age.", FIELD(age_ms)},
	{"x_sent_total", METRIC_COUNTER, METRIC_NUMBER, "Sent.", FIELD(sent)},
	{"x_build_info", METRIC_INFO, METRIC_NUMBER, "Built.", FIELD(on),
		.when = offsetof(struct subject, known)},
	{"x_size_bytes", METRIC_GAUGE, METRIC_BYTES, "Size.", FIELD(bytes),
		.when = offsetof(struct subject, known)},
	{"x_small", METRIC_GAUGE, METRIC_NUMBER, "Small.", FIELD(small),
		.when = offsetof(struct subject, known)},
	{"x_state", METRIC_GAUGE, METRIC_NUMBER, "State.", FIELD(state), .label = "state",
		.names = states, .values = 2, .is_set = true,
		.when = offsetof(struct subject, known)},
	{"x_shares", METRIC_GAUGE, METRIC_NUMBER, "Shares.", FIELD(shares), .label = "of",
		.name_of = name_share, .values = 2, .when = offsetof(struct subject, known)},
	{"x_wait_seconds", METRIC_HISTOGRAM, METRIC_SECONDS, "Waits.", FIELD(waits), .buckets = 4},
	{"x_sizes", METRIC_HISTOGRAM, METRIC_NUMBER, "Sizes.", FIELD(sizes), .buckets = 4,
		.when = offsetof(struct subject, known)},
	{"x_quick_seconds", METRIC_HISTOGRAM, METRIC_MICROSECONDS, "Quick.", FIELD(quick),
		.buckets = 3, .step = 10, .when = offsetof(struct subject, known)},
};

static const struct metric_scope scope = {
	{"name", "odd"}, metrics, sizeof(metrics) / sizeof(metrics[0]), next_subject};

#define ONE "{name=\"one\",odd=\"" ODD_SHOWN "\"}"
#define ONE_AND(more) "{name=\"one\",odd=\"" ODD_SHOWN "\"," more "}"
#define TWO "{name=\"two\",odd=\"\"}"
#define BUCKET(metric, le, n) metric "_bucket" ONE_AND("le=\"" le "\"") " " n "\n"
#define HEAD(name, help, type) "# HELP " name " " help "\n# TYPE " name " " type "\n"
#define UNIT(name, unit) "# UNIT " name " " unit "\n"

#define AGE "x_age_seconds" ONE " 61.005\n"
#define SENT "x_sent_total" ONE " 12\nx_sent_total" TWO " 7\n"
#define BUILD "x_build_info" ONE " 1\n"
#define SIZE "x_size_bytes" ONE " 9\n"
#define SMALL                                                                                      \
	HEAD("x_small", "Small.", "gauge")                                                         \
	"x_small" ONE " 4000000000\n" HEAD("x_state", "State.", "gauge") "x_state" ONE_AND(        \
		"state=\"good\"") " 0\n"                                                           \
				  "x_state" ONE_AND("state=\"bad\"") " 1\n" HEAD("x_shares",       \
					  "Shares.",                                               \
					  "gauge") "x_shares" ONE_AND("of=\"a\"") " 5\n"           \
										  "x_"             \
										  "share"          \
										  "s" ONE_AND(     \
											  "of="    \
											  "\"b\"") " 0\n"
#define WAITS                                                                                      \
	BUCKET("x_wait_seconds", "0.001", "1")                                                     \
	BUCKET("x_wait_seconds", "0.002", "3")                                                     \
	BUCKET("x_wait_seconds", "0.004", "6")                                                     \
	BUCKET("x_wait_seconds", "+Inf", "10")                                                     \
	"x_wait_seconds_sum" ONE " 2.500\nx_wait_seconds_count" ONE " 10\n"
#define SIZES                                                                                      \
	HEAD("x_sizes", "Sizes.", "histogram")                                                     \
	BUCKET("x_sizes", "0.0", "1")                                                              \
	BUCKET("x_sizes", "1.0", "1")                                                              \
	BUCKET("x_sizes", "3.0", "2")                                                              \
	BUCKET("x_sizes", "+Inf", "2")                                                             \
	"x_sizes_sum" ONE " 99\nx_sizes_count" ONE " 2\n"
#define QUICK                                                                                      \
	BUCKET("x_quick_seconds", "1e-05", "1")                                                    \
	BUCKET("x_quick_seconds", "2e-05", "2")                                                    \
	BUCKET("x_quick_seconds", "+Inf", "3")                                                     \
	"x_quick_seconds_sum" ONE " 1.000001\nx_quick_seconds_count" ONE " 3\n"

static void check_text(bool openmetrics, const char *expected)
{
	struct subject subject = {.turn = 0};
	struct buffer out;

	buffer_init(&out, 1u << 16);
	assert_int_equal(exposition_write(&scope, &subject, label_values, openmetrics, &out), 0);
	assert_string_equal(out.data, expected);
	buffer_fini(&out);
}

static void text__for_prometheus__is_this(void **state)
{
	(void)state;
	check_text(false, HEAD("x_age_seconds", "Its age.", "gauge") AGE HEAD(
				  "x_sent_total", "Sent.", "counter") SENT HEAD("x_build_info",
				  "Built.", "gauge") BUILD HEAD("x_size_bytes", "Size.",
				  "gauge") SIZE SMALL HEAD("x_wait_seconds", "Waits.", "histogram")
				  WAITS SIZES HEAD("x_quick_seconds", "Quick.", "histogram") QUICK);
}

static void text__for_openmetrics__names_families_and_units(void **state)
{
	(void)state;
	check_text(true,
		HEAD("x_age_seconds", "Its age.", "gauge") UNIT("x_age_seconds", "seconds")
			AGE HEAD("x_sent", "Sent.", "counter") SENT HEAD("x_build", "Built.",
				"info") BUILD HEAD("x_size_bytes", "Size.", "gauge")
				UNIT("x_size_bytes", "bytes") SIZE SMALL HEAD("x_wait_seconds",
					"Waits.", "histogram") UNIT("x_wait_seconds", "seconds")
					WAITS SIZES HEAD("x_quick_seconds", "Quick.", "histogram")
						UNIT("x_quick_seconds", "seconds") QUICK);
}

static void text__beyond_its_bound__is_an_error(void **state)
{
	struct subject subject = {.turn = 0};
	struct buffer out;

	(void)state;
	buffer_init(&out, 1000);
	assert_int_equal(exposition_write(&scope, &subject, label_values, false, &out), -EMSGSIZE);
	buffer_fini(&out);
}

static void format__is_the_one_that_is_asked_for(void **state)
{
	(void)state;
	assert_false(exposition_is_open(NULL));
	assert_false(exposition_is_open("text/plain"));
	assert_true(exposition_is_open("application/openmetrics-text; version=1.0.0,text/plain"));
	assert_string_equal(exposition_type(false), "text/plain; version=0.0.4; charset=utf-8");
	assert_string_equal(exposition_type(true),
		"application/openmetrics-text; version=1.0.0; charset=utf-8");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text__for_prometheus__is_this),
		cmocka_unit_test(text__for_openmetrics__names_families_and_units),
		cmocka_unit_test(text__beyond_its_bound__is_an_error),
		cmocka_unit_test(format__is_the_one_that_is_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

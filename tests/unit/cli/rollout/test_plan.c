/* The rollout document of `pullet rollout`: written, read back, as agents read it, and what is
 * refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cli/rollout/plan.h"

static struct plan make_plan(void)
{
	return (struct plan){.state = PLAN_RUNNING,
		.version = "43",
		.waves = {1000, 12500, PLAN_WHOLE},
		.wave_count = 3,
		.wave = 2,
		.every_ms = 600000,
		.timeout_ms = 60000,
		.abort_at = 2000,
		.driver = "0123456789abcdef",
		.by = "root (uid 0) at \"h\"",
		.since_ms = 1700000000000,
		.salt = "s",
		.labels = {{"zone", "eu"}},
		.label_count = 1};
}

static void write__then_read__is_the_same(void **state)
{
	struct plan p = make_plan(), back;
	struct buffer text;
	char why[FILE_WHY];

	(void)state;
	p.labels[p.label_count++] = (struct roster_label){"tier", "web"};
	buffer_init(&text, ROLLOUT_MAX_BYTES);
	assert_int_equal(plan_write(&p, &text), 0);
	assert_string_equal(text.data,
		"{\"percent\":12.5,\"salt\":\"s\",\"labels\":{\"zone\":\"eu\",\"tier\":\"web\"},"
		"\"only\":\"43\","
		"\"plan\":{\"v\":1,"
		"\"state\":\"running\",\"version\":\"43\",\"waves\":[1,12.5,100],\"wave\":2,"
		"\"every_ms\":600000,\"abort_at\":2,\"driver\":\"0123456789abcdef\","
		"\"by\":\"root (uid 0) at "
		"\\\"h\\\"\",\"since_ms\":1700000000000,\"why\":\"\",\"digest\":\"\","
		"\"timeout_ms\":60000,\"aborted\":[]}}\n");
	assert_int_equal(plan_read(text.data, text.len, &back, why), 0);
	assert_int_equal(back.state, PLAN_RUNNING);
	assert_string_equal(back.version, "43");
	assert_memory_equal(back.waves, p.waves, sizeof(p.waves));
	assert_int_equal(back.wave_count, 3);
	assert_int_equal(back.wave, 2);
	assert_int_equal(back.every_ms, 600000);
	assert_int_equal(back.timeout_ms, 60000);
	assert_int_equal(back.abort_at, 2000);
	assert_string_equal(back.driver, p.driver);
	assert_string_equal(back.by, p.by);
	assert_int_equal(back.since_ms, p.since_ms);
	assert_string_equal(back.salt, "s");
	assert_int_equal(back.label_count, 2);
	assert_string_equal(back.labels[0].value, "eu");
	assert_string_equal(back.labels[1].name, "tier");
	assert_string_equal(back.labels[1].value, "web");
	plan_fini(&back);
	buffer_fini(&text);
}

/* What an agent makes of the document of p for a version with such bytes. */
static bool takes_bytes(
	const struct plan *p, const char *host, const char *version, const char *sum)
{
	static struct settings_label label = {(char *)"zone", (char *)"eu"};
	const struct rollout_host h = {host, &label, 1, 0};
	struct document *d = NULL;
	struct document_error error;
	struct buffer text;
	char why[FILE_WHY];
	bool ret = false;

	buffer_init(&text, ROLLOUT_MAX_BYTES);
	assert_int_equal(plan_write(p, &text), 0);
	assert_int_equal(document_parse(DOCUMENT_JSON, text.data, text.len, 0, &d, &error), 0);
	assert_int_equal(rollout_decide(document_root(d), &h, "web", version, sum, &ret, why), 0);
	document_free(d);
	buffer_fini(&text);
	return ret;
}

static bool takes(const struct plan *p, const char *host, const char *version)
{
	return takes_bytes(p, host, version, "");
}

static void agents__in_each_state__take_what_it_says(void **state)
{
	struct plan p = make_plan();
	double place;

	(void)state;
	p.salt = NULL;
	assert_int_equal(rollout_place("web", "h7", &place), 0); /* 71.5 */
	assert_false(takes(&p, "h7", "43"));
	assert_false(takes(&p, "h7", "44")); /* another one that comes meanwhile */
	p.wave = 3;
	assert_true(takes(&p, "h7", "43"));
	assert_false(takes(&p, "h7", "44")); /* nor where the waves have come */
	p.wave = 0;
	assert_false(takes(&p, "h7", "43"));
	p.wave = 3;
	p.state = PLAN_PAUSED;
	assert_true(takes(&p, "h7", "43"));
	assert_false(takes(&p, "h7", "44"));
	p.state = PLAN_FINISHED;
	assert_true(takes(&p, "h7", "44"));
	p.state = PLAN_ABORTED;
	assert_false(takes(&p, "h7", "43"));
	assert_true(takes(&p, "h7", "42")); /* the way back */
	p.version[0] = '\0';
	assert_false(takes(&p, "h7", "42")); /* none had come: nothing does */
}

static void abort__of_a_version_whose_bytes_are_known__holds_them_by_any_name(void **state)
{
	static const char sum[] = "0123456789abcdef00112233445566778899aabbccddeeff00112233445566";
	struct plan p = make_plan(), next = make_plan();

	(void)state;
	p.salt = next.salt = NULL;
	p.state = PLAN_ABORTED;
	assert_true(takes_bytes(&p, "h7", "44", sum));
	snprintf(p.digest, sizeof(p.digest), "%.16s", sum);
	assert_false(takes_bytes(&p, "h7", "44", sum));
	assert_false(takes_bytes(&p, "h7", "43", "ffff"));
	assert_true(takes_bytes(&p, "h7", "44", "ffff"));
	plan_keep_aborted(&next, &p); /* and after the abort of another one */
	snprintf(next.version, sizeof(next.version), "50");
	next.state = PLAN_ABORTED;
	assert_false(takes_bytes(&next, "h7", "51", sum));
	assert_true(takes_bytes(&next, "h7", "51", "ffff"));
	snprintf(p.version, sizeof(p.version), "44"); /* the same bytes, rolled out to all */
	plan_keep_aborted(&p, &next);
	plan_forget_aborted(&p);
	for (size_t i = 0; i < p.aborted_count; i++)
		assert_string_not_equal(p.aborted[i], p.digest);
	assert_true(p.aborted_count > 0);
}

static void finished_rollout__forgets_that_its_own_version_was_aborted(void **state)
{
	struct plan p = {.version = "43",
		.digest = "feed",
		.aborted = {"41", "43", "430", "feed", "42"},
		.aborted_count = 5};

	(void)state;
	plan_forget_aborted(&p);
	assert_int_equal(p.aborted_count, 3);
	assert_string_equal(p.aborted[0], "41");
	assert_string_equal(p.aborted[1], "430");
	assert_string_equal(p.aborted[2], "42");
}

static void abort__of_one_rollout_after_another__opens_the_way_for_no_version_of_before(
	void **state)
{
	struct plan before = make_plan(), p = make_plan(), back;
	struct buffer text;
	char why[FILE_WHY];

	(void)state;
	p.salt = NULL;
	before.state = PLAN_FINISHED;
	plan_keep_aborted(&p, &before);
	assert_int_equal(p.aborted_count, 0);
	before.state = PLAN_ABORTED;
	plan_keep_aborted(&p, &before);
	plan_keep_aborted(&p, &before);
	assert_int_equal(p.aborted_count, 1);
	snprintf(p.version, sizeof(p.version), "99");
	p.wave = 1;
	p.state = PLAN_ABORTED;
	assert_false(takes(&p, "h7", "43"));
	assert_false(takes(&p, "h7", "99"));
	assert_true(takes(&p, "h7", "42"));
	buffer_init(&text, ROLLOUT_MAX_BYTES);
	assert_int_equal(plan_write(&p, &text), 0);
	assert_int_equal(plan_read(text.data, text.len, &back, why), 0);
	plan_keep_aborted(&p, &back); /* the third one */
	assert_int_equal(p.aborted_count, 2);
	assert_string_equal(p.aborted[1], "99");
	for (int i = 0; i < PLAN_ABORTED_MAX; i++) {
		snprintf(before.version, sizeof(before.version), "n%d", i);
		plan_keep_aborted(&p, &before);
	}
	assert_int_equal(p.aborted_count, PLAN_ABORTED_MAX);
	assert_string_equal(p.aborted[0], "n0");
	plan_fini(&back);
	buffer_fini(&text);
}

static void read__what_is_no_plan__says_what(void **state)
{
	static const struct {
		const char *text, *why;
	} table[] = {
		{"percent: 10\nfoo: 1\n", "2:6: there is no key foo: percent, salt, labels, "
					  "version, only and waves are "
					  "the "
					  "keys of a rollout"},
		{"percent: [", "1:10: "},
		{"percent: 101", "1:10: percent must be a number from 0 to 100"},
		{"labels: 7", "1:9: labels must be a mapping of names to texts"},
		{"plan: {v: 2}", "its plan is of another version of pullet"},
		{"plan: 7", "its plan is of another version of pullet"},
		{"plan: {v: 1}", "state of its plan"},
		{"plan: {v: 1, state: none}", "state of its plan"},
		{"plan: {v: 1, state: running}", "waves of its plan"},
		{"plan: {v: 1, state: running, waves: []}", "waves of its plan"},
		{"plan: {v: 1, state: running, waves: [10, 10]}", "waves of its plan"},
		{"plan: {v: 1, state: running, waves: [101]}", "waves of its plan"},
		{"plan: {v: 1, state: running, waves: [x]}", "waves of its plan"},
		{"plan: {v: 1, state: running, waves: [10], wave: 2}", "wave of its plan"},
		{"plan: {v: 1, state: running, waves: [10], wave: -1}", "wave of its plan"},
		{"plan: {v: 1, state: running, waves: [10], wave: 1}",
			"every_ms or abort_at of its plan"},
		{"plan: {v: 1, state: running, waves: [10], wave: 1, every_ms: 1, abort_at: 1}",
			"version, driver, by or why of its plan"},
		{"plan: {v: 1, state: running, waves: [10], wave: 1, every_ms: 1, abort_at: 1, "
		 "version: '', driver: 12345678901234567, by: '', why: ''}",
			"version, driver, by or why of its plan"},
		{"plan: {v: 1, state: running, waves: [10], wave: 1, every_ms: 1, abort_at: 1, "
		 "timeout_ms: -1}",
			"timeout_ms of its plan"},
	};
	struct plan p;
	char why[FILE_WHY];

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		/* agents go by a document whose plan alone is bad */
		assert_int_equal(plan_read(table[i].text, strlen(table[i].text), &p, why),
			strncmp(table[i].text, "plan", 4) == 0 ? -EPROTO : -EINVAL);
		if (strncmp(why, table[i].why, strlen(table[i].why)) != 0)
			fail_msg("%s: %s", table[i].text, why);
		assert_null(p.document);
	}
}

static void read__beyond_its_bounds__is_refused(void **state)
{
	static char text[ROLLOUT_MAX_BYTES + 2];
	struct plan p;
	char why[FILE_WHY];
	size_t len;

	(void)state;
	memset(text, ' ', sizeof(text));
	assert_int_equal(plan_read(text, ROLLOUT_MAX_BYTES + 1, &p, why), -EINVAL);
	assert_string_equal(why, "it has 65537 bytes, and a rollout has at most 65536");
	len = (size_t)snprintf(text, sizeof(text), "labels: {");
	for (int i = 0; i <= PLAN_LABELS; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "l%d: x, ", i);
	len += (size_t)snprintf(text + len, sizeof(text) - len, "}");
	assert_int_equal(plan_read(text, len, &p, why), -EPROTO);
	assert_string_equal(why, "it has more than 16 labels");
}

static void read__without_a_plan__is_by_hand(void **state)
{
	static const char text[] = "percent: 10\nsalt: 15\nversion: '42'\n";
	struct plan p;
	char why[FILE_WHY];

	(void)state;
	assert_int_equal(plan_read("", 0, &p, why), 0);
	assert_int_equal(p.state, PLAN_NONE);
	assert_null(p.document);
	assert_int_equal(plan_read(text, strlen(text), &p, why), 0);
	assert_int_equal(p.state, PLAN_NONE);
	assert_string_equal(p.salt, "15");
	assert_int_equal(plan_percent(&p), 0);
	plan_fini(&p);
}

static void percent__as_people_write_it__is_read_and_written(void **state)
{
	static const struct {
		const char *text;
		uint32_t percent;
		const char *rest;
	} good[] = {{"1%,10%", 1000, ",10%"}, {"100", PLAN_WHOLE, ""}, {"0.125%", 125, ""},
		{"2.5", 2500, ""}, {"0", 0, ""}, {"1.2345", 1234, "5"}, {"7.", 7000, "."},
		{"1.5x", 1500, "x"}, {"1.x5", 1000, ".x5"}};
	static const char *const bad[] = {"", "%", "x", "-1", "100.001", "101", "99999999999"};
	const char *end;
	uint32_t percent;
	char text[16];

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_true(plan_read_percent(good[i].text, &end, &percent));
		assert_int_equal(percent, good[i].percent);
		assert_string_equal(end, good[i].rest);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(plan_read_percent(bad[i], &end, &percent));
	assert_string_equal(plan_percent_text(0, text), "0");
	assert_string_equal(plan_percent_text(125, text), "0.125");
	assert_string_equal(plan_percent_text(10000, text), "10");
	assert_string_equal(plan_percent_text(PLAN_WHOLE, text), "100");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(write__then_read__is_the_same),
		cmocka_unit_test(agents__in_each_state__take_what_it_says),
		cmocka_unit_test(abort__of_a_version_whose_bytes_are_known__holds_them_by_any_name),
		cmocka_unit_test(finished_rollout__forgets_that_its_own_version_was_aborted),
		cmocka_unit_test(
			abort__of_one_rollout_after_another__opens_the_way_for_no_version_of_before),
		cmocka_unit_test(read__what_is_no_plan__says_what),
		cmocka_unit_test(read__beyond_its_bounds__is_refused),
		cmocka_unit_test(read__without_a_plan__is_by_hand),
		cmocka_unit_test(percent__as_people_write_it__is_read_and_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

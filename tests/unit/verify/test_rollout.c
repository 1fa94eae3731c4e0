/* Rollouts: which hosts take a version, and what is refused as a rollout. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "verify/rollout.h"

static char zone[] = "zone", eu[] = "eu-1", tier[] = "tier", gold[] = "gold";
static const struct settings_label labels[] = {{zone, eu}, {tier, gold}};
static const int64_t noon = INT64_C(1795262400000); /* 2026-11-21T12:00:00Z */

/* 1, 0 or -errno. */
static int decide(const char *text, const char *host, const char *version, char why[FILE_WHY])
{
	const struct rollout_host h = {host, labels, 2, noon};
	struct document *d = NULL;
	struct document_error error;
	bool takes = false;
	int r;

	why[0] = '\0';
	assert_int_equal(
		document_parse(DOCUMENT_YAML, text, strlen(text), DOCUMENT_ALLOW_EMPTY, &d, &error),
		0);
	r = rollout_decide(document_root(d), &h, "web", version, &takes, why);
	document_free(d);
	return r ? r : takes;
}

static void place__is_the_one_that_anybody_can_compute(void **state)
{
	double place;

	(void)state;
	/* python3: int.from_bytes(sha256(b"web\nh7").digest()[:8]) / 2**64 * 100 */
	assert_int_equal(rollout_place("web", "h7", &place), 0);
	assert_true(place > 71.5 && place < 71.52);
	assert_int_equal(rollout_place("", "", &place), 0);
	assert_true(place >= 0 && place < 100);
}

static void decide__in_each_case__says_who_takes_it(void **state)
{
	static const struct {
		const char *text;
		int takes;
		const char *why;
	} table[] = {
		{"{}", 1, ""},
		{"percent: 100", 1, ""},
		{"percent: 0", 0, "the rollout at 0 %"},
		{"percent: 71.6", 1, ""},
		{"percent: 71.4", 0, "this host is at 71.51 %, the rollout at 71.4 %"},
		{"labels: {zone: eu-1}", 1, ""},
		{"labels: {zone: eu-1, tier: gold}", 1, ""},
		{"labels: {zone: us-1}", 0, "label zone: us-1, this one has eu-1"},
		{"labels: {rack: 7}", 0, "label rack: 7, this one has none"},
		{"{labels: {zone: us-1}, percent: 100}", 0, "label"},
		{"{labels: {zone: eu-1}, percent: 0}", 0, "0 %"},
		{"{version: 42, percent: 0}", 0, "0 %"},
		{"{version: '\"42\"', percent: 0}", 0, "0 %"},
		{"{version: 41, percent: 0}", 1, ""},
		{"waves: [{at: '2026-11-21T12:00:00Z', percent: 100}]", 1, ""},
		{"waves: [{at: '2026-11-21T12:00:01Z', percent: 100}]", 0, "0 %"},
		{"waves: [{at: '2026-11-20T00:00:00Z', percent: 1}, {at: "
		 "'2026-11-21T11:00:00Z', percent: 80}, {at: '2026-11-22T00:00:00Z', percent: "
		 "100}]",
			1, ""},
		{"waves: [{at: '2026-11-20T00:00:00Z', percent: 1}, {at: "
		 "'2026-11-22T00:00:00Z', percent: 100}]",
			0, "at 1 %"},
	};
	char why[FILE_WHY];

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		assert_int_equal(decide(table[i].text, "h7", "42", why), table[i].takes);
		assert_non_null(strstr(why, table[i].why));
	}
}

static void decide__of_what_is_no_rollout__refuses_it_with_its_place(void **state)
{
	static const struct {
		const char *text, *why;
	} table[] = {
		{"precent: 10", "1:10: there is no key precent"},
		{"percent: ten", "1:10: percent must be a number"},
		{"percent: -1", "from 0 to 100"},
		{"percent: 100.5", "from 0 to 100"},
		{"percent: .nan", "from 0 to 100"},
		{"salt: []", "salt must be a text"},
		{"version: {}", "version must be a text"},
		{"labels: 3", "labels must be a mapping"},
		{"labels: {a: []}", "a label's value must be a text"},
		{"labels: {no: x, a: []}", "a label's value must be a text"},
		{"{percent: 1, waves: []}", "exclude each other"},
		{"waves: []", "1 to 64"},
		{"waves: [1]", "a wave is"},
		{"waves: [{at: '2026-11-21T03:00:00Z'}]", "a wave is"},
		{"waves: [{at: '2026-11-21T03:00:00Z', percent: 1, x: 2}]", "a wave is"},
		{"waves: [{at: tomorrow, percent: 1}]", "at must be a time like"},
		{"waves: [{at: '2026-11-21T03:00:00Z+1', percent: 1}]", "at must be a time like"},
		{"waves: [{at: '2026-11-21T03:00:00Z', percent: 5}, {at: '2026-11-21T03:00:00Z', "
		 "percent: 6}]",
			"later than the one before"},
		{"waves: [{at: '2026-11-21T03:00:00Z', percent: 5}, {at: '2026-11-21T04:00:00Z', "
		 "percent: 4}]",
			"not smaller"},
	};
	char why[FILE_WHY];

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		assert_int_equal(decide(table[i].text, "h7", "42", why), -22);
		assert_non_null(strstr(why, table[i].why));
	}
}

/* Of 20,000 hosts about that many are in, and nobody leaves when the percentage grows. */
static void decide__as_the_percentage_grows__only_adds_hosts(void **state)
{
	static const int steps[] = {1, 10, 50, 99};
	char why[FILE_WHY], host[32], text[64];
	int in[4] = {0};

	(void)state;
	for (int i = 0; i < 20000; i++) {
		int before = 0;

		snprintf(host, sizeof(host), "host-%d", i);
		for (int k = 0; k < 4; k++) {
			int takes;

			snprintf(text, sizeof(text), "{percent: %d, salt: s}", steps[k]);
			takes = decide(text, host, "1", why);
			assert_true(takes >= before);
			before = takes;
			in[k] += takes;
		}
	}
	for (int k = 0; k < 4; k++) /* five standard deviations */
		assert_true(abs(in[k] - 200 * steps[k]) < 360);
}

static void decide__with_another_salt__takes_other_hosts(void **state)
{
	char why[FILE_WHY], host[32];
	int both = 0;

	(void)state;
	for (int i = 0; i < 10000; i++) {
		snprintf(host, sizeof(host), "host-%d", i);
		both += decide("{percent: 10, salt: a}", host, "1", why) &&
			decide("{percent: 10, salt: b}", host, "1", why);
	}
	assert_in_range(both, 50, 150); /* a hundredth, not a tenth */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(place__is_the_one_that_anybody_can_compute),
		cmocka_unit_test(decide__in_each_case__says_who_takes_it),
		cmocka_unit_test(decide__of_what_is_no_rollout__refuses_it_with_its_place),
		cmocka_unit_test(decide__as_the_percentage_grows__only_adds_hosts),
		cmocka_unit_test(decide__with_another_salt__takes_other_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

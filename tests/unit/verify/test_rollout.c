/* Rollouts: which hosts take a version, and what is refused as a rollout. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/fixture/fault_crypto.h"
#include "verify/rollout.h"

#define OTHER_ALONE                                                                                \
	"the rollout is of another version alone: when that one is finished or aborted, this one " \
	"comes"

static char zone[] = "zone", eu[] = "eu-1", tier[] = "tier", gold[] = "gold";
static const struct settings_label labels[] = {{zone, eu}, {tier, gold}};
static const int64_t noon = INT64_C(1795262400000); /* 2026-11-21T12:00:00Z */

static const char digest[] = "0123456789abcdef00112233445566778899aabbccddeeff0011223344556677";

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
	r = rollout_decide(document_root(d), &h, "web", version, digest, &takes, why);
	document_free(d);
	return r ? r : takes;
}

static void place__is_the_one_that_anybody_can_compute(void **state)
{
	double place;

	(void)state;
	/* python3: int.from_bytes(sha256(b"web\nh7").digest()[:8]) / 2**64 * 100 */
	assert_int_equal(rollout_place("web", "h7", &place), 0);
	assert_true(place > 71.505026902297 && place < 71.505026902298);
	assert_int_equal(rollout_place("", "", &place), 0);
	assert_true(place > 0.674862269810 && place < 0.674862269811);
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
		{"percent: 0", 0, "this host is at 71.51 %, the rollout at 0 %"},
		{"percent: 71.50502690229705", 0,
			"this host is at 71.51 %, the rollout at 71.505 %"},
		{"percent: 71.50502690229706", 0,
			"this host is at 71.51 %, the rollout at 71.505 %"},
		{"percent: 71.50502690229707", 1, ""},
		{"percent: 72", 1, ""},
		{"percent: 71", 0, "this host is at 71.51 %, the rollout at 71 %"},
		{"{percent: 41, salt: s}", 1, ""},
		{"{percent: 40, salt: s}", 0, "this host is at 40.05 %, the rollout at 40 %"},
		{"{percent: 0, salt: 1.5}", 0, "this host is at 93.43 %, the rollout at 0 %"},
		{"{percent: 0, salt: 15}", 0, "this host is at 9.73 %, the rollout at 0 %"},
		{"{percent: 0, plan: {state: finished}}", 0,
			"this host is at 71.51 %, the rollout at 0 %"},
		{"plan: 7", 1, ""}, /* it is not looked into */
		{"labels: {}", 1, ""},
		{"{labels: {zone: us-1, tier: tin}}", 0,
			"it is for hosts with the label zone: us-1, this one has eu-1"},
		{"percent: 71.4", 0, "this host is at 71.51 %, the rollout at 71.4 %"},
		{"labels: {zone: eu-1}", 1, ""},
		{"labels: {zone: eu-1, tier: gold}", 1, ""},
		{"labels: {zone: us-1}", 0,
			"it is for hosts with the label zone: us-1, this one has eu-1"},
		{"labels: {rack: 7}", 0,
			"it is for hosts with the label rack: 7, this one has none"},
		{"{labels: {zone: us-1}, percent: 100}", 0,
			"it is for hosts with the label zone: us-1, this one has eu-1"},
		{"{labels: {zone: eu-1}, percent: 0}", 0,
			"this host is at 71.51 %, the rollout at 0 %"},
		{"{version: 42, percent: 0}", 0, "this host is at 71.51 %, the rollout at 0 %"},
		{"{version: '\"42\"', percent: 0}", 0,
			"this host is at 71.51 %, the rollout at 0 %"},
		{"{version: 41, percent: 0}", 1, ""},
		{"{version: [41, 0123456789abcdef], percent: 0}", 0,
			"this host is at 71.51 %, the rollout at 0 %"},
		{"{version: 0123456789AB, percent: 0}", 0,
			"this host is at 71.51 %, the rollout at 0 %"},
		{"{version: 0123456789a, percent: 0}", 1, ""}, /* too short to mean it */
		{"only: 42", 1, ""},
		{"only: [41, '\"42\"']", 1, ""},
		{"only: 0123456789ab", 1, ""},
		{"{only: 42, percent: 0}", 0, "this host is at 71.51 %, the rollout at 0 %"},
		{"{only: 41, version: 41}", 0, OTHER_ALONE},
		{"only: [41, 43]", 0, OTHER_ALONE},
		{"{version: 0123456789ac, percent: 0}", 1, ""},
		{"waves: [{at: '2026-11-21T12:00:00Z', percent: 100}]", 1, ""},
		{"waves: [{at: '2026-11-21T12:00:01Z', percent: 100}]", 0,
			"this host is at 71.51 %, the rollout at 0 %"},
		{"waves: [{at: '2026-11-20T00:00:00Z', percent: 1}, {at: "
		 "'2026-11-21T11:00:00Z', percent: 80}, {at: '2026-11-22T00:00:00Z', percent: "
		 "100}]",
			1, ""},
		{"waves: [{at: '2026-11-20T00:00:00Z', percent: 1}, {at: "
		 "'2026-11-22T00:00:00Z', percent: 100}]",
			0, "this host is at 71.51 %, the rollout at 1 %"},
	};
	char why[FILE_WHY];

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		assert_int_equal(decide(table[i].text, "h7", "42", why), table[i].takes);
		assert_string_equal(why, table[i].why);
	}
}

/* A host behind 99 % takes nothing until all hosts do. */
static void decide__for_the_last_hundredth__waits_for_all(void **state)
{
	char host[16] = "", why[FILE_WHY];
	double place = 0;

	(void)state;
	for (int i = 0; place <= 99.5 && i < 10000; i++) {
		snprintf(host, sizeof(host), "h%d", i);
		assert_int_equal(rollout_place("web", host, &place), 0);
	}
	assert_true(place > 99.5);
	assert_int_equal(decide("percent: 99", host, "42", why), 0);
	assert_int_equal(decide("percent: 99.5", host, "42", why), 0);
	assert_int_equal(decide("percent: 100", host, "42", why), 1);
}

static void decide__of_what_is_no_rollout__refuses_it_with_its_place(void **state)
{
	static const struct {
		const char *text, *why;
	} table[] = {
		{"percent: 100.00000000000002", "1:10: percent must be a number from 0 to 100"},
		{"percent: -0.0000001", "1:10: percent must be a number from 0 to 100"},
		{"version: true", "1:10: version must be a text, or a list of texts"},
		{"only: {}", "1:7: only must be a text, or a list of texts"},
		{"version: []", "1:10: version must be a text, or a list of texts"},
		{"version: ['1', {}]", "1:16: version must be a text, or a list of texts"},
		{"labels: {a: null}", "1:13: a label's value must be a text"},
		{"waves: {}", "1:8: waves must be a list of 1 to 64 times {at: ..., percent: ...}"},
		{"waves: [{at: '2026-11-21T03:00:00Z', share: 1}]",
			"1:9: a wave is {at: TIME, percent: NUMBER}"},
		{"waves: [{time: '2026-11-21T03:00:00Z', percent: 1}]",
			"1:9: a wave is {at: TIME, percent: NUMBER}"},
		{"waves: [{at: 7, percent: 1}]",
			"1:14: at must be a time like 2026-11-21T03:00:00Z"},
		{"waves: [{at: '2026-11-21T03:00:00Z', percent: 101}]",
			"1:47: percent must be a number from 0 to 100"},
		{"precent: 10", "1:10: there is no key precent: percent, salt, labels, version, "
				"only and waves are the keys of a rollout"},
		{"percent: ten", "1:10: percent must be a number from 0 to 100"},
		{"percent: -1", "1:10: percent must be a number from 0 to 100"},
		{"percent: 100.5", "1:10: percent must be a number from 0 to 100"},
		{"percent: .nan", "1:10: percent must be a number from 0 to 100"},
		{"salt: []", "1:7: salt must be a text"},
		{"version: {}", "1:10: version must be a text, or a list of texts"},
		{"labels: 3", "1:9: labels must be a mapping of names to texts"},
		{"labels: {a: []}", "1:13: a label's value must be a text"},
		{"labels: {no: x, a: []}", "1:20: a label's value must be a text"},
		{"{percent: 1, waves: []}", "1:21: percent and waves exclude each other"},
		{"waves: []", "1:8: waves must be a list of 1 to 64 times {at: ..., percent: ...}"},
		{"waves: [1]", "1:9: a wave is {at: TIME, percent: NUMBER}"},
		{"waves: [{at: '2026-11-21T03:00:00Z'}]",
			"1:9: a wave is {at: TIME, percent: NUMBER}"},
		{"waves: [{at: '2026-11-21T03:00:00Z', percent: 1, x: 2}]",
			"1:9: a wave is {at: TIME, percent: NUMBER}"},
		{"waves: [{at: tomorrow, percent: 1}]",
			"1:14: at must be a time like 2026-11-21T03:00:00Z"},
		{"waves: [{at: '2026-11-21T03:00:00Z+1', percent: 1}]",
			"1:14: at must be a time like 2026-11-21T03:00:00Z"},
		{"waves: [{at: '2026-11-21T03:00:00Z', percent: 5}, {at: '2026-11-21T03:00:00Z', "
		 "percent: 6}]",
			"1:51: a wave must be later than the one before, and not smaller"},
		{"waves: [{at: '2026-11-21T03:00:00Z', percent: 5}, {at: '2026-11-21T04:00:00Z', "
		 "percent: 4}]",
			"1:51: a wave must be later than the one before, and not smaller"},
	};
	char why[FILE_WHY];

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		assert_int_equal(decide(table[i].text, "h7", "42", why), -22);
		assert_string_equal(why, table[i].why);
	}
}

static void waves__of_the_greatest_number__are_read(void **state)
{
	char text[8192] = "waves: [", why[FILE_WHY];
	size_t len = strlen(text);

	(void)state;
	for (int i = 0; i <= ROLLOUT_MAX_WAVES; i++) {
		if (i == ROLLOUT_MAX_WAVES) {
			snprintf(text + len, sizeof(text) - len, "]");
			assert_int_equal(decide(text, "h7", "42", why), 1);
		}
		len += (size_t)snprintf(text + len, sizeof(text) - len,
			"%s{at: '2026-11-21T03:%02d:%02dZ', percent: %d}", i ? ", " : "", i / 60,
			i % 60, 20 + i);
	}
	snprintf(text + len, sizeof(text) - len, "]");
	assert_int_equal(decide(text, "h7", "42", why), -EINVAL);
	assert_string_equal(
		why, "1:8: waves must be a list of 1 to 64 times {at: ..., percent: ...}");
}

static void place__without_memory__lets_nobody_in(void **state)
{
	char why[FILE_WHY];
	size_t nth = 0, said = 0;
	double place;
	bool failed;
	int r;

	(void)state;
	do {
		fault_crypto_fail(++nth);
		r = rollout_place("web", "h7", &place);
		failed = fault_crypto_failed();
		assert_true(r == 0 || (failed && r == -ENOMEM));
		fault_crypto_fail(nth);
		if (decide("percent: 99", "h7", "42", why) == -ENOMEM) {
			assert_string_equal(why, "out of memory");
			said++;
		}
		fault_crypto_failed();
	} while (failed);
	assert_true(said > 0);
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
		cmocka_unit_test(decide__for_the_last_hundredth__waits_for_all),
		cmocka_unit_test(decide__of_what_is_no_rollout__refuses_it_with_its_place),
		cmocka_unit_test(waves__of_the_greatest_number__are_read),
		cmocka_unit_test(place__without_memory__lets_nobody_in),
		cmocka_unit_test(decide__as_the_percentage_grows__only_adds_hosts),
		cmocka_unit_test(decide__with_another_salt__takes_other_hosts),
	};

	if (!fault_crypto_start()) {
		fprintf(stderr, "libcrypto is in use before the test begins\n");
		return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Hosts of a rollout, counted by wave and by what they do with the version. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cli/rollout/tally.h"

#define HOSTS 100

static struct settings_label eu = {(char *)"zone", (char *)"eu"},
			     us = {(char *)"zone", (char *)"us"};
static const struct receipt in_eu = {.labels = &eu, .label_count = 1},
			    in_us = {.labels = &us, .label_count = 1};
static struct receipt_config runs[HOSTS];
static struct roster_row rows[HOSTS];
static char names[HOSTS][8];

static struct receipt_config on(
	const char *version, enum receipt_state state, const char *rejected, const char *why)
{
	return (struct receipt_config){.name = "web",
		.generation = 1,
		.version = version,
		.others = "",
		.digest = strcmp(version, "42") == 0 ? "4242424242424242" : "0123456789abcdef",
		.state = state,
		.rejected = rejected,
		.rejected_digest = "fedcba9876543210",
		.why = why};
}

static void make_hosts(const char *version, enum receipt_state state)
{
	for (size_t i = 0; i < HOSTS; i++) {
		snprintf(names[i], sizeof(names[i]), "h%zu", i);
		runs[i] = on(version, state, "", "");
		rows[i] =
			(struct roster_row){.host = names[i], .receipt = &in_eu, .runs = &runs[i]};
	}
}

static struct plan make_plan(size_t wave)
{
	return (struct plan){.state = PLAN_RUNNING,
		.version = "43",
		.waves = {1000, 10000, PLAN_WHOLE},
		.wave_count = 3,
		.wave = wave};
}

static void stand__of_each_receipt__is_what_it_means(void **state)
{
	static const struct {
		const char *version;
		enum receipt_state state;
		const char *rejected, *why;
		enum tally_stand stand;
	} table[] = {
		{"43", RECEIPT_OK, "", "", TALLY_RUNS},
		{"42", RECEIPT_OK, "", "", TALLY_UNDECIDED},
		{"43", RECEIPT_PINNED, "", "", TALLY_RUNS},
		{"42", RECEIPT_PINNED, "", "by root", TALLY_EXCUSED},
		{"42", RECEIPT_SUSPENDED, "", "by root", TALLY_EXCUSED},
		{"42", RECEIPT_HELD, "43", "rollout: this host is at", TALLY_HELD},
		{"42", RECEIPT_HELD, "43", "operator: by root", TALLY_EXCUSED},
		{"42", RECEIPT_REJECTED, "43", "schema: x", TALLY_REJECTED},
		{"42", RECEIPT_REJECTED, "41", "schema: x", TALLY_UNDECIDED},
		{"42", RECEIPT_APPLYING, "", "", TALLY_UNDECIDED},
		{"43", RECEIPT_APPLYING, "", "", TALLY_UNDECIDED},
		{"43", RECEIPT_FAILING, "", "the reload failed", TALLY_TROUBLED},
		{"42", RECEIPT_STALE, "", "", TALLY_TROUBLED},
		{"", RECEIPT_WAITING, "", "", TALLY_TROUBLED},
		{"43", RECEIPT_OTHER, "", "", TALLY_TROUBLED},
	};
	struct roster_row row = {.host = "h", .receipt = &in_eu};
	struct receipt_config c;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		c = on(table[i].version, table[i].state, table[i].rejected, table[i].why);
		row.runs = &c;
		assert_int_equal(tally_stand_of(&row, "43"), table[i].stand);
	}
	row.silent = true;
	c = on("43", RECEIPT_OK, "", "");
	assert_int_equal(tally_stand_of(&row, "43"), TALLY_TROUBLED);
	row.silent = false;
	assert_int_equal(tally_stand_of(&row, ""), TALLY_UNDECIDED); /* none is known yet */
}

static void count__by_wave__is_where_agents_see_themselves(void **state)
{
	struct plan p = make_plan(2);
	struct tally t;
	size_t first = 0, second = 0;
	double place;

	(void)state;
	make_hosts("42", RECEIPT_OK);
	for (size_t i = 0; i < HOSTS; i++) {
		assert_int_equal(rollout_place("web", names[i], &place), 0);
		first += place < 1;
		second += place >= 1 && place < 10;
	}
	assert_int_equal(tally_count(&p, "web", rows, HOSTS, 0, &t), 0);
	assert_int_equal(t.waves[0].hosts, first);
	assert_int_equal(t.waves[1].hosts, second);
	assert_int_equal(t.waves[2].hosts, HOSTS - first - second);
	assert_int_equal(t.begun.hosts, first + second);
	assert_int_equal(t.begun.stands[TALLY_UNDECIDED], first + second);
	assert_int_equal(t.outside.hosts, 0);
	assert_non_null(t.named[TALLY_UNDECIDED][0]);
	p.wave_count = 2;
	assert_int_equal(tally_count(&p, "web", rows, HOSTS, 0, &t), 0);
	assert_int_equal(t.outside.hosts, HOSTS - first - second);
	p.wave = 0;
	assert_int_equal(tally_count(&p, "web", rows, HOSTS, 0, &t), 0);
	assert_int_equal(t.begun.hosts, 0);
}

static void count__of_other_labels__is_outside(void **state)
{
	struct plan p = make_plan(3);
	struct tally t;

	(void)state;
	make_hosts("43", RECEIPT_OK);
	for (size_t i = 0; i < 30; i++)
		rows[i].receipt = &in_us;
	p.labels[p.label_count++] = (struct roster_label){"zone", "eu"};
	assert_int_equal(tally_count(&p, "web", rows, HOSTS, 0, &t), 0);
	assert_int_equal(t.begun.hosts, 70);
	assert_int_equal(t.begun.stands[TALLY_RUNS], 70);
	assert_int_equal(t.outside.hosts, 30);
}

static void count__of_a_document_by_hand__is_who_takes_it_now(void **state)
{
	static const char text[] = "waves:\n- {at: 2026-11-21T03:00:00Z, percent: 10}\n"
				   "- {at: 2026-11-21T04:00:00Z, percent: 100}\n";
	const int64_t noon = INT64_C(1795262400000), before = noon - INT64_C(8 * 3600000) - 1;
	struct plan p;
	struct tally t;
	char why[FILE_WHY];

	(void)state;
	make_hosts("42", RECEIPT_OK);
	assert_int_equal(plan_read(text, strlen(text), &p, why), 0);
	assert_int_equal(tally_count(&p, "web", rows, HOSTS, noon, &t), 0);
	assert_int_equal(t.waves[0].hosts, HOSTS);
	assert_int_equal(tally_count(&p, "web", rows, HOSTS, before, &t), 0);
	assert_in_range(t.waves[0].hosts, 1, 30);
	assert_int_equal(t.waves[0].hosts + t.outside.hosts, HOSTS);
	plan_fini(&p);
	assert_int_equal(tally_count(&p, "web", rows, HOSTS, noon, &t), 0); /* no document */
	assert_int_equal(t.waves[0].hosts, HOSTS);
}

static void held_version__of_hosts__is_known_when_they_agree(void **state)
{
	struct plan p = {.aborted_count = 0};
	const char *version = NULL;

	(void)state;
	make_hosts("42", RECEIPT_OK);
	assert_int_equal(tally_held_version(&p, rows, HOSTS, &version), 0);
	runs[1] = on("42", RECEIPT_HELD, "41", "operator: by root");
	runs[2] = on("42", RECEIPT_REJECTED, "40", "schema: x");
	assert_int_equal(tally_held_version(&p, rows, HOSTS, &version), 0);
	runs[3] = runs[4] = on("42", RECEIPT_HELD, "43", "rollout: x");
	assert_int_equal(tally_held_version(&p, rows, HOSTS, &version), 1);
	assert_string_equal(version, "43");
	runs[5] = on("42", RECEIPT_HELD, "44", "rollout: x");
	assert_int_equal(tally_held_version(&p, rows, HOSTS, &version), 2);
	rows[5].silent = true;
	assert_int_equal(tally_held_version(&p, rows, HOSTS, &version), 1);
	snprintf(p.aborted[p.aborted_count++], sizeof(p.aborted[0]), "43"); /* not once more */
	assert_int_equal(tally_held_version(&p, rows, HOSTS, &version), 0);
	rows[5].silent = false;
	assert_int_equal(tally_held_version(&p, rows, HOSTS, &version), 1);
	assert_string_equal(version, "44");
	runs[5].rejected_digest = "0123456789abcdef";
	snprintf(p.aborted[p.aborted_count++], sizeof(p.aborted[0]), "0123456789abcdef");
	assert_int_equal(tally_held_version(&p, rows, HOSTS, &version), 0);
}

static void digest__of_a_version__is_the_one_that_a_host_has_of_it(void **state)
{
	(void)state;
	make_hosts("42", RECEIPT_OK);
	assert_null(tally_digest(rows, HOSTS, "43"));
	assert_null(tally_digest(rows, HOSTS, ""));
	runs[7] = on("42", RECEIPT_REJECTED, "43", "schema: x");
	assert_string_equal(tally_digest(rows, HOSTS, "43"), "fedcba9876543210");
	runs[6] = on("43", RECEIPT_OK, "", ""); /* two receipts, two digests */
	assert_string_equal(tally_digest(rows, HOSTS, "43"), "");
	rows[7].silent = true;
	assert_string_equal(tally_digest(rows, HOSTS, "43"), "0123456789abcdef");
	runs[7].digest = runs[6].digest; /* another version has these bytes */
	assert_string_equal(tally_digest(rows, HOSTS, "43"), "");
	runs[7] = on("42", RECEIPT_REJECTED, "43", "schema: x");
	rows[6].silent = true;
	assert_null(tally_digest(rows, HOSTS, "43"));
	rows[7].silent = false;
	runs[7].rejected_digest = ""; /* of an older agent */
	assert_null(tally_digest(rows, HOSTS, "43"));
}

static void least__of_a_fleet__reaches_one_host_and_no_less_does(void **state)
{
	struct plan p = make_plan(1);
	struct tally t;
	uint32_t least;

	(void)state;
	make_hosts("42", RECEIPT_OK);
	assert_int_equal(tally_least(&p, "web", rows, 0, &least), 0);
	assert_int_equal(least, 0);
	for (size_t n = 1; n <= HOSTS; n *= 10) {
		assert_int_equal(tally_least(&p, "web", rows, n, &least), 0);
		p.waves[0] = least;
		assert_int_equal(tally_count(&p, "web", rows, n, 0, &t), 0);
		assert_in_range(t.waves[0].hosts, 1, 2);
		p.waves[0] = least - 1;
		assert_int_equal(tally_count(&p, "web", rows, n, 0, &t), 0);
		assert_int_equal(t.waves[0].hosts, 0);
	}
	rows[0].silent = true; /* nothing would be heard of it */
	assert_int_equal(tally_least(&p, "web", rows, 1, &least), 0);
	assert_int_equal(least, 0);
}

static void know__of_a_version__is_to_run_reject_or_hold_it(void **state)
{
	(void)state;
	make_hosts("42", RECEIPT_OK);
	assert_false(tally_knows(rows, HOSTS, "43"));
	runs[1] = on("42", RECEIPT_HELD, "43", "rollout: x");
	runs[2] = on("42", RECEIPT_REJECTED, "43", "schema: x");
	runs[3] = on("43", RECEIPT_OK, "", "");
	for (size_t i = 0; i < HOSTS; i++)
		rows[i].silent = true;
	assert_false(tally_knows(rows, HOSTS, "43"));
	for (size_t i = 1; i <= 3; i++) {
		rows[i].silent = false;
		assert_true(tally_knows(rows, HOSTS, "43"));
		rows[i].silent = true;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stand__of_each_receipt__is_what_it_means),
		cmocka_unit_test(count__by_wave__is_where_agents_see_themselves),
		cmocka_unit_test(count__of_other_labels__is_outside),
		cmocka_unit_test(count__of_a_document_by_hand__is_who_takes_it_now),
		cmocka_unit_test(digest__of_a_version__is_the_one_that_a_host_has_of_it),
		cmocka_unit_test(least__of_a_fleet__reaches_one_host_and_no_less_does),
		cmocka_unit_test(know__of_a_version__is_to_run_reject_or_hold_it),
		cmocka_unit_test(held_version__of_hosts__is_known_when_they_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

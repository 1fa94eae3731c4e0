/* Tables and JSON of a fleet, to the letter, of rows that the test made up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cli/fleet/show.h"
#include "cli/text/wrap.h"

static struct receipt_config runs[64];
static struct receipt receipt;
static struct roster_row rows[64];
static struct roster_sum sum;
static struct buffer out;

/* So many hosts: h0 to hN, on v1 and in this state each. */
static void make_hosts(size_t count, enum receipt_state state)
{
	static struct settings_label label = {(char *)"zone", (char *)"eu"};
	static char names[64][8];

	receipt = (struct receipt){.pullet = "0.1.0", .labels = &label, .label_count = 1};
	for (size_t i = 0; i < count; i++) {
		snprintf(names[i], sizeof(names[i]), "h%zu", i);
		runs[i] = (struct receipt_config){.name = "web",
			.generation = 3,
			.version = "v1",
			.others = "",
			.digest = "0123456789abcdef",
			.state = state,
			.why = "",
			.rejected = "",
			.rejected_digest = "",
			.since_ms = 1700000000000,
			.pulled_ms = 1700000000001};
		rows[i] = (struct roster_row){
			.host = names[i], .receipt = &receipt, .runs = &runs[i]};
	}
}

static void add_up(size_t count, const char *version)
{
	assert_int_equal(roster_sum(rows, count, version, &sum), 0);
	buffer_init(&out, 1u << 20);
}

/* Compares, and lets go of the sum. */
static void check(const char *expected, const char *file, int line)
{
	buffer_append(&out, "", 1);
	if (strcmp(out.data, expected) != 0) {
		print_error("%s\n", out.data);
		_fail(file, line);
	}
	buffer_fini(&out);
	roster_sum_fini(&sum);
}

#define assert_shown(expected) check(expected, __FILE__, __LINE__)

/* ---- the first line ---- */

static void headline__counts_hosts(void **state)
{
	(void)state;
	make_hosts(3, RECEIPT_OK);
	add_up(1, "v1");
	fleet_headline(&sum, &out);
	assert_shown("web: 1 of 1 host run v1 (100.0%)\n");
	runs[1].version = "v2";
	runs[1].digest = "f";
	add_up(3, "v1");
	fleet_headline(&sum, &out);
	assert_shown("web: 2 of 3 hosts run v1 (66.6%)\n");
	rows[2].silent = true;
	add_up(3, "v1");
	fleet_headline(&sum, &out);
	assert_shown("web: 1 of 3 hosts run v1 (33.3%), 1 silent\n");
	rows[0].silent = rows[1].silent = true;
	add_up(3, NULL);
	fleet_headline(&sum, &out);
	assert_shown("web: 3 hosts; the newest version is unknown, 3 silent\n");
	add_up(1, NULL);
	fleet_headline(&sum, &out);
	assert_shown("web: 1 host; the newest version is unknown, 1 silent\n");
}

/* ---- the tables ---- */

static void headline__of_hosts_that_refuse_what_their_server_has__says_so(void **state)
{
	const struct fleet_style plain = {.all = false};

	(void)state;
	make_hosts(4, RECEIPT_HELD);
	runs[0].state = RECEIPT_REJECTED; /* all run v1: green is not all that there is to say */
	runs[0].rejected = "v2";
	runs[0].why = "probe: red";
	add_up(4, NULL);
	fleet_headline(&sum, &out);
	fleet_hosts(&sum, &plain, &out);
	assert_shown("web: 4 of 4 hosts run v1 (100.0%), 1 rejected and 3 hold back what the "
		     "server has\n"
		     "  HOST  STATE        VERSION  SINCE                 WHY\n"
		     "  h0    rolled back  v1       2023-11-14T22:13:20Z  v2: probe: red\n"
		     "  h1    held         v1       2023-11-14T22:13:20Z\n"
		     "  h2    held         v1       2023-11-14T22:13:20Z\n"
		     "  h3    held         v1       2023-11-14T22:13:20Z\n");
}

static void table__groups_versions_and_lists_who_is_behind(void **state)
{
	const struct fleet_style plain = {.all = false}, all = {.all = true};

	(void)state;
	make_hosts(6, RECEIPT_OK);
	runs[1].state = RECEIPT_PINNED;
	runs[2].version = "";
	runs[2].digest = "ffffffffffffeeee";
	runs[2].state = RECEIPT_FAILING;
	runs[2].why = "down";
	runs[3].version = runs[3].digest = "";
	runs[3].state = RECEIPT_WAITING;
	runs[4].state = RECEIPT_REJECTED;
	runs[4].rejected = "v2";
	runs[4].why = "schema: no";
	rows[5].silent = true;
	add_up(6, "v1");
	fleet_table(&sum, &plain, &out);
	assert_shown("web: 3 of 6 hosts run v1 (50.0%), 1 rejected what the server has, 1 silent\n"
		     "  VERSION    DIGEST        HOSTS  PERCENT  STATES\n"
		     "  v1         0123456789ab  3      50.0% *  1 ok, 1 pinned, 1 rejected\n"
		     "  (nothing)  -             1      16.6%    1 waiting\n"
		     "  -          ffffffffffff  1      16.6%    1 failing\n"
		     "  (silent)   -             1      16.6%\n"
		     "  HOST  STATE     VERSION           SINCE                 WHY\n"
		     "  h2    failing   ffffffffffffeeee  2023-11-14T22:13:20Z  down\n"
		     "  h3    waiting   -                 2023-11-14T22:13:20Z\n"
		     "  h4    rejected  v1                2023-11-14T22:13:20Z  v2: schema: no\n"
		     "  h5    silent    v1                -\n");
	add_up(2, "v1");
	fleet_hosts(&sum, &all, &out);
	assert_shown("  HOST  STATE   VERSION  SINCE                 WHY\n"
		     "  h0    ok      v1       2023-11-14T22:13:20Z\n"
		     "  h1    pinned  v1       2023-11-14T22:13:20Z\n");
	add_up(1, "v1");
	fleet_hosts(&sum, &plain, &out);
	assert_shown("");
}

static void table__of_many_hosts__is_cut(void **state)
{
	struct fleet_style style = {.all = false};
	char more[64];

	(void)state;
	make_hosts(FLEET_LISTED + 2, RECEIPT_FAILING);
	add_up(FLEET_LISTED, "v1");
	fleet_hosts(&sum, &style, &out);
	buffer_append(&out, "", 1);
	assert_null(strstr(out.data, "more"));
	snprintf(more, sizeof(more), "\n  h%d ", FLEET_LISTED - 1);
	assert_non_null(strstr(out.data, more));
	buffer_fini(&out);
	roster_sum_fini(&sum);
	add_up(FLEET_LISTED + 2, "v1");
	fleet_hosts(&sum, &style, &out);
	buffer_append(&out, "", 1);
	assert_non_null(strstr(out.data, "\n  and 2 more: --all lists them\n"));
	assert_non_null(strstr(out.data, more));
	snprintf(more, sizeof(more), "\n  h%d ", FLEET_LISTED);
	assert_null(strstr(out.data, more));
	buffer_fini(&out);
	style.all = true;
	buffer_init(&out, 1u << 20);
	fleet_hosts(&sum, &style, &out);
	buffer_append(&out, "", 1);
	assert_null(strstr(out.data, "more"));
	assert_non_null(strstr(out.data, more));
	buffer_fini(&out);
	roster_sum_fini(&sum);
}

static void state__of_a_host__has_its_colour(void **state)
{
	static const char *const colours[RECEIPT_STATES] = {
		[RECEIPT_OK] = WRAP_GOOD,
		[RECEIPT_APPLYING] = WRAP_WARNING,
		[RECEIPT_PINNED] = WRAP_WARNING,
		[RECEIPT_SUSPENDED] = WRAP_WARNING,
		[RECEIPT_HELD] = WRAP_WARNING,
		[RECEIPT_REJECTED] = WRAP_BAD,
		[RECEIPT_FAILING] = WRAP_BAD,
		[RECEIPT_STALE] = WRAP_BAD,
		[RECEIPT_WAITING] = WRAP_WARNING,
		[RECEIPT_OTHER] = WRAP_BAD,
	};
	const struct fleet_style colour = {.all = true, .colour = true};

	(void)state;
	for (int i = 0; i <= RECEIPT_STATES; i++) {
		bool silent = i == RECEIPT_STATES;
		char cell[64];

		make_hosts(1, silent ? RECEIPT_OK : (enum receipt_state)i);
		rows[0].silent = silent;
		snprintf(cell, sizeof(cell), "%s%s\033[0m", silent ? WRAP_BAD : colours[i],
			silent ? "silent" : receipt_state_name((enum receipt_state)i));
		add_up(1, "v1");
		fleet_hosts(&sum, &colour, &out);
		buffer_append(&out, "", 1);
		if (!strstr(out.data, cell))
			fail_msg("'%s' is not in %s", cell, out.data);
		buffer_fini(&out);
		roster_sum_fini(&sum);
	}
}

/* ---- JSON ---- */

static void host__that_was_told_to_stop__says_since_when(void **state)
{
	const struct fleet_style style = {.all = false};
	struct receipt known = {.stopped_ms = 1700000000000};

	(void)state;
	make_hosts(3, RECEIPT_OK);
	rows[1].silent = rows[2].silent = true;
	rows[2].receipt = &known;
	add_up(3, "v1");
	assert_int_equal(sum.stopped, 1);
	fleet_headline(&sum, &out);
	fleet_hosts(&sum, &style, &out);
	buffer_append(&out, "", 1);
	assert_non_null(strstr(out.data, "run v1 (33.3%), 2 silent (1 of them stopped)\n"));
	assert_non_null(strstr(out.data, "  h1    silent   v1       -\n"));
	assert_non_null(strstr(out.data, "  h2    stopped  v1       2023-11-14"));
	assert_non_null(strstr(out.data, "its agent was told to stop\n"));
	buffer_fini(&out);
	buffer_init(&out, 1u << 20);
	fleet_json(&sum, &out);
	buffer_append(&out, "", 1);
	assert_non_null(strstr(out.data, "\"silent\":2,\"stopped\":1,"));
	assert_non_null(strstr(out.data, "\"host\":\"h2\",\"state\":\"silent\""));
	assert_non_null(strstr(out.data, "\"stopped_ms\":1700000000000"));
	buffer_fini(&out);
	roster_sum_fini(&sum);
}

static void json__has_everything(void **state)
{
	(void)state;
	make_hosts(3, RECEIPT_OK);
	runs[1].version = "v2";
	runs[1].digest = "f";
	runs[1].others = "o";
	runs[1].state = RECEIPT_REJECTED;
	runs[1].rejected = "v3";
	runs[1].why = "no";
	rows[2].silent = true;
	add_up(3, "v1");
	fleet_json(&sum, &out);
	assert_shown(
		"{\"config\":\"web\",\"wanted\":\"v1\",\"count\":3,\"on_it\":1,\"percent\":33.333,"
		"\"rejected\":1,\"held\":0,\"silent\":1,\"stopped\":0,\"versions\":["
		"{\"version\":\"v1\",\"digest\":\"0123456789abcdef\",\"hosts\":1,\"percent\":"
		"33.333,\"wanted\":true,\"states\":{\"ok\":1}},"
		"{\"version\":\"v2\",\"digest\":\"f\",\"hosts\":1,\"percent\":33.333,\"wanted\":"
		"false,\"states\":{\"rejected\":1}}],\"hosts\":["
		"{\"host\":\"h0\",\"state\":\"ok\",\"behind\":false,\"labels\":{\"zone\":\"eu\"},"
		"\"generation\":3,\"version\":\"v1\",\"others\":null,\"digest\":"
		"\"0123456789abcdef\",\"why\":null,\"rejected\":null,\"since_ms\":1700000000000,"
		"\"pulled_ms\":1700000000001,\"pullet\":\"0.1.0\"},"
		"{\"host\":\"h1\",\"state\":\"rejected\",\"behind\":true,\"labels\":{\"zone\":"
		"\"eu\"},\"generation\":3,\"version\":\"v2\",\"others\":\"o\",\"digest\":\"f\","
		"\"why\":\"no\",\"rejected\":\"v3\",\"since_ms\":1700000000000,\"pulled_ms\":"
		"1700000000001,\"pullet\":\"0.1.0\"},"
		"{\"host\":\"h2\",\"state\":\"silent\",\"behind\":true,\"labels\":{\"zone\":"
		"\"eu\"}}]}");
}

/* ---- invalid receipts ---- */

static void put(struct roster *r, const char *key, const char *text, uint64_t lease)
{
	const struct roster_value value = {text, strlen(text), lease};

	assert_int_equal(roster_put(r, key, strlen(key), &value), 0);
}

static void ghosts__are_counted_by_kind_and_named(void **state)
{
	struct roster *r = roster_new("/p/", ROSTER_MAX_BYTES);

	(void)state;
	assert_non_null(r);
	buffer_init(&out, 4096);
	assert_int_equal(roster_settle(r, 1), 0);
	fleet_ghosts(r, true, &out);
	assert_int_equal(out.len, 0);
	put(r, "/p/a", "nonsense", 1);
	assert_int_equal(roster_settle(r, 1), 0);
	fleet_ghosts(r, false, &out);
	put(r, "/p/b", "nonsense", 2);
	put(r, "/p/c/d/e", "nonsense", 3);
	assert_int_equal(roster_settle(r, 1), 0);
	fleet_ghosts(r, true, &out);
	fleet_json_ghosts(r, &out);
	buffer_append(&out, "", 1);
	assert_string_equal(out.data,
		"1 invalid receipt: 1 the value is not a receipt\n"
		"3 invalid receipts: 1 the key names no host, 2 the value is not a receipt\n"
		"  a  the value is not a receipt\n"
		"  b  the value is not a receipt\n"
		"  c/d/e  the key names no host\n"
		"[{\"key\":\"a\",\"why\":\"the value is not a receipt\"},"
		"{\"key\":\"b\",\"why\":\"the value is not a receipt\"},"
		"{\"key\":\"c/d/e\",\"why\":\"the key names no host\"}]");
	buffer_fini(&out);
	roster_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(headline__counts_hosts),
		cmocka_unit_test(headline__of_hosts_that_refuse_what_their_server_has__says_so),
		cmocka_unit_test(table__groups_versions_and_lists_who_is_behind),
		cmocka_unit_test(table__of_many_hosts__is_cut),
		cmocka_unit_test(state__of_a_host__has_its_colour),
		cmocka_unit_test(host__that_was_told_to_stop__says_since_when),
		cmocka_unit_test(json__has_everything),
		cmocka_unit_test(ghosts__are_counted_by_kind_and_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Why the current version is current, and what would change it: facts, row and sentences. */
#include "tests/unit/fixture/core.h"

#include "config/explain.h"
#include "config/inspect.h"

static char answer[16384];

static const char *explain_to(enum audience audience, bool news)
{
	struct buffer out;

	buffer_init(&out, sizeof(answer) - 1);
	if (news) {
		buffer_append(&out, "{", 1);
		assert_int_equal(explain_news(core.config, audience, &out), 0);
	} else {
		assert_int_equal(explain_config(core.config, audience, &out), 0);
	}
	snprintf(answer, sizeof(answer), "%s", out.data);
	buffer_fini(&out);
	return answer;
}

static void core_assert_says(const char *words, bool does, const char *file, int line)
{
	explain_to(AUDIENCE_OPERATOR, false);
	if ((strstr(answer, words) != NULL) != does)
		core_fail(file, line, "%s is%s explained: %s", words, does ? " not" : "", answer);
}

#define assert_says(words) core_assert_says(words, true, __FILE__, __LINE__)
#define assert_says_not(words) core_assert_says(words, false, __FILE__, __LINE__)

static void begin(const char *extra)
{
	server_has("n: 1\n");
	agent_starts(extra);
}

static void nothing__is_published_yet(void **state)
{
	(void)state;
	agent_starts("");
	assert_says("nothing is published yet");
	assert_says("it is not known which version the server has");
	assert_says("failing since 20");
	assert_says("\"row\":\"nothing\"");
	assert_says("\"latest\":\"unknown\"");
	assert_says("\"under_way\":null");
}

static void current__from_the_server__is_confirmed(void **state)
{
	(void)state;
	begin("");
	pull();
	world_advance(5 * SECOND);
	assert_says("generation 1 (version de80e4db) is current since 20");
	assert_says("pulled from the server");
	assert_says("the server has the current version: confirmed 5s ago");
	assert_says("the agent does nothing before the next pull, in ");
	assert_says("\"latest\":\"same\"");
	world_advance(10 * MINUTE);
	assert_says("confirmed 10m ago");
}

static void pinned__says_what_the_unpin_would_do(void **state)
{
	(void)state;
	begin("");
	operator_pins(HOUR);
	assert_says("pinned by ann until 20");
	assert_says("`pullet unpin web`: the server's versions are published again");
	pull_of("n: 2\n");
	assert_says("the server has version 49a609b0, held by the pin");
	assert_says("`pullet unpin web`: the server's version is published");
	assert_says_not("--force");
}

static void rejected__says_who_and_what_force_would_do(void **state)
{
	(void)state;
	begin("guard: {require: [n]}");
	pull_of("m: 1\n");
	assert_says("rejected by the guard: the required key");
	assert_says("`pullet refresh web --force`: the server's version is published");
	assert_says("another version at the server is checked when it is pulled");
	explain_to(AUDIENCE_PUBLIC, false);
	assert_null(strstr(answer, "the required key"));
	assert_non_null(strstr(answer, "see the control socket for the reason"));
	assert_non_null(strstr(explain_to(AUDIENCE_READER, true), "\"explanation\":["));
	assert_non_null(strstr(answer, "rejected by the guard"));
}

static void rolled_back__says_by_whom(void **state)
{
	(void)state;
	begin("probe: {run: [/bin/true], for: 10s}");
	world_end_probe(NULL);
	pull_of("n: 2\n");
	world_end_probe("it answers 500");
	world_turn();
	pull();
	assert_says("which failed its probe and was rolled back: it answers 500");
	pull_of("n: 3\n");
	operator_rolls_back(1);
	pull();
	assert_says("which was rolled back by ann");
	assert_says("rollback to generation 1 by ann");
}

static void not_rolled_out__says_when_it_is_asked_again(void **state)
{
	(void)state;
	begin("rollout: {server: main, path: /rollout.yaml}");
	world_put("/rollout.yaml", "percent: 0\n");
	pull_of("n: 2\n");
	assert_says("not rolled out to this host yet: ");
	assert_says("the rollout is read again at each pull");
	explain_to(AUDIENCE_PUBLIC, false);
	assert_non_null(strstr(answer, "see the control socket"));
}

static void suspended__says_how_to_resume(void **state)
{
	(void)state;
	begin("");
	operator_suspends(0);
	assert_says("suspended by ann: move");
	assert_says("`pullet resume web`: pulls begin again");
	assert_says_not("the next pull is in");
}

static void overridden__names_key_user_and_end(void **state)
{
	(void)state;
	begin("");
	operator_overrides("n", "7", HOUR);
	assert_says("the server's value of n is overridden by ann until 20");
	assert_says("override of n by ann for 1h: a try");
}

static void harmful__says_why_it_stays(void **state)
{
	(void)state;
	begin("probe: {run: [/bin/true], for: 10s}");
	world_end_probe(NULL);
	pull_of("n: 2\n");
	operator_pins(0);
	world_end_probe("bad");
	world_turn();
	assert_says("the current version failed its probe, and the pin keeps it: bad");
	assert_says("`pullet unpin web`: the version that failed its probe is rolled back");
}

static void step_under_way__is_named_with_its_phase(void **state)
{
	(void)state;
	begin("check: [/bin/true, '{path}']");
	world.programs_hang = true;
	pull_of("n: 2\n");
	world_advance(3 * SECOND);
	assert_says("which is being published for 3s: its programs check it");
	assert_says("\"under_way\":{\"row\":\"latest_is_published\",\"phase\":\"programs\"");
	operator_overrides("n", "7", HOUR);
	assert_says("next: an operator's overrides are published");
	world.programs_hang = false;
	world_turn();
}

static void step_that_failed__is_tried_again_at_the_next_pull(void **state)
{
	(void)state;
	begin("check: [/bin/true, '{path}']");
	world.programs_missing = "check cannot be started";
	pull_of("n: 2\n");
	assert_says("which could not be published: it is tried again at the next pull");
	assert_says("\"resting\":[\"latest_is_published\"]");
	assert_non_null(strstr(explain_to(AUDIENCE_OPERATOR, true), "could not be published"));
}

static void saved__and_not_visible__is_said(void **state)
{
	(void)state;
	begin("");
	snapshot_is_blocked();
	pull_of("n: 2\n");
	operator_pins(0);
	assert_says("generation 2 is saved and was never visible: the pin holds it");
	operator_unpins();
	server_has("n: 1\n");
	core.config->latest.state = LATEST_IS_CURRENT;
	assert_says("is saved and was never visible: the server has another version by now");
}

static void drifted__and_left__is_said(void **state)
{
	(void)state;
	begin("drift: report");
	somebody_writes("mine");
	assert_says("were changed by others, and are not restored before the next version is "
		    "published (drift: report)");
}

static void stale__says_since_when(void **state)
{
	(void)state;
	begin("backoff_bound: 1");
	server_is_down();
	world_advance(3 * (uint64_t)HOUR);
	assert_says("it is stale: no pull has confirmed it for ");
	core.config->current.expires_ms = world.wall_ms - 1;
	assert_says("it is stale: its signature expired at 20");
}

static void reload_that_fails__is_said(void **state)
{
	(void)state;
	world.reload_says = "hook exited with 9";
	begin("reload: {run: [/bin/true]}");
	assert_says("the application was not reloaded, which is tried again in ");
}

static void queued__is_said(void **state)
{
	(void)state;
	begin("");
	world.busy = true;
	pull_of("n: 2\n");
	assert_says("it is queued for its server, which is busy or in backoff");
	world.busy = false;
}

static void version_without_an_etag__has_no_name(void **state)
{
	(void)state;
	begin("");
	core.config->current.version.parts[0].etag[0] = '\0';
	assert_says("generation 1 is current since");
	operator_pins(0);
	pull_of("n: 2\n");
	core.config->latest.candidate->version.parts[0].etag[0] = '\0';
	assert_says("the server has another version, held by the pin");
}

static void kept_version__that_nothing_holds__is_published_next(void **state)
{
	(void)state;
	begin("check: [/bin/true, '{path}']");
	operator_pins(0);
	pull_of("n: 2\n");
	ledger_unpin(core.config->decisions.ledger); /* before the next look */
	assert_says("which is published next");
	assert_says("next: the server's version is published");
	assert_says("\"row\":\"latest_is_published\"");
	core.config->resting = 1u << ROW_OTHER_OVERRIDES; /* does not hold: no word of it */
	assert_says_not("failed, and is tried again");
	core.config->resting = 0;
}

static void harmful__and_alone__stays(void **state)
{
	(void)state;
	begin("");
	decisions_reject(core.config, core.config->current.version.sha256, "probe", "", "bad");
	assert_says(
		"the current version failed its probe, and there is no older one to roll back to");
	pull_of("n: 2\n");
	pull_of("n: 3\n");
	decisions_reject(core.config, core.config->current.version.sha256, "probe", "", "bad");
	current_read_older(core.config);
	assert_says("the current version failed its probe\"");
	assert_says("next: the version that failed its probe is rolled back");
}

static void left_by_drift__is_said(void **state)
{
	(void)state;
	begin("drift: leave");
	somebody_writes("mine");
	pull();
	assert_says("are not restored before the next version is published (drift: leave)");
}

static void removal_without_an_end_and_reason__is_said(void **state)
{
	(void)state;
	begin("");
	assert_int_equal(
		ledger_override(core.config->decisions.ledger, "n", "7", LEDGER_FOREVER, "ann", ""),
		0);
	assert_int_equal(ledger_pin(core.config->decisions.ledger, world.wall_ms + 1000, "ann", "",
				 core.config->current.version.sha256),
		0);
	assert_says("the server's value of n is overridden by ann until it is removed");
	assert_says("pinned by ann until 20");
}

static void suspended__with_a_rejected_version__offers_no_force(void **state)
{
	(void)state;
	begin("guard: {require: [n]}");
	pull_of("m: 1\n");
	operator_suspends(0);
	assert_says_not("--force");
	pull();
	server_is_down();
	world.wall_ms -= 100 * (int64_t)HOUR; /* a clock that was set back */
	assert_says("rejected by the guard");
}

/* ---- whole answers ---- */

static void answer__has_each_fact_and_what_follows(void **state)
{
	char expected[8192];

	(void)state;
	begin("");
	world_advance(5 * SECOND);
	explain_to(AUDIENCE_OPERATOR, false);
	snprintf(expected, sizeof(expected),
		"{\"name\":\"web\",\"generation\":1,\"facts\":{\"mode\":\"active\",\"request\":"
		"\"none\",\"pin\":\"none\",\"saved\":\"none\",\"current\":\"good\",\"older\":"
		"\"none\",\"latest\":\"same\",\"verdict\":\"free\",\"force\":\"none\",\"rollout\":"
		"\"none\",\"overrides\":\"same\",\"settings\":\"same\",\"place\":\"as published\","
		"\"drift\":\"heal\"},\"row\":\"nothing\",\"action\":\"none\",\"origin\":null,"
		"\"gate\":null,\"resting\":[],\"under_way\":null,\"sentences\":["
		"\"generation 1 (version de80e4db) is current since 2023-11-14T22:13:20Z (5s ago): "
		"pulled from the server\","
		"\"the server has the current version: confirmed 5s ago\","
		"\"the agent does nothing before the next pull, in 59m\"]}");
	assert_string_equal(answer, expected);
}

static void answer__during_a_step__has_its_row_phase_and_moment(void **state)
{
	char words[512];

	(void)state;
	begin("check: [/bin/true, '{path}']");
	world.programs_hang = true;
	pull_of("n: 2\n");
	world_advance(3 * SECOND);
	snprintf(words, sizeof(words),
		"\"row\":\"latest_is_published\",\"action\":\"publish\",\"origin\":\"pull\","
		"\"gate\":"
		"\"open\",\"resting\":[],\"under_way\":{\"row\":\"latest_is_published\",\"phase\":"
		"\"programs\",\"since_ms\":%lld},\"sentences\":[",
		(long long)world.wall_ms - 3000);
	assert_says(words);
	world.programs_hang = false;
	world_turn();
}

static void phase__of_each_step__is_named(void **state)
{
	(void)state;
	core.env.check = &world.checks;
	begin("");
	world.checks.held = world.disk.held = true;
	pull_of("a: &a 1\nb: *a\n"); /* a document with aliases goes to the thread */
	assert_says("\"under_way\":{\"row\":\"latest_is_published\",\"phase\":\"validate\",");
	world.checks.held = false;
	world_turn();
	assert_says("\"under_way\":{\"row\":\"latest_is_published\",\"phase\":\"publish\",");
	world.disk.held = false;
	world_turn();
	assert_says("\"under_way\":null");
}

static void gate__of_a_new_version__is_the_first_that_is_closed(void **state)
{
	(void)state;
	begin("rollout: {server: main, path: /rollout.yaml}, guard: {require: [n]}");
	assert_says("\"gate\":null");
	world_put("/rollout.yaml", "percent: 0\n");
	pull_of("n: 2\n");
	assert_says("\"row\":\"nothing\",\"action\":\"none\",\"origin\":null,\"gate\":\"rollout\"");
	assert_says(
		"\"latest\":\"new\",\"verdict\":\"free\",\"force\":\"none\",\"rollout\":\"out\"");
	operator_pins(0);
	assert_says("\"gate\":\"pin\"");
	operator_unpins();
	world_put("/rollout.yaml", "percent: 100\n");
	pull_of("m: 1\n");
	assert_says("\"gate\":\"verdict\"");
	assert_says("\"verdict\":\"rejected\"");
}

static void news__are_an_array_of_their_own(void **state)
{
	(void)state;
	begin("");
	assert_string_equal(explain_to(AUDIENCE_OPERATOR, true), "{\"explanation\":[]");
	operator_pins(0);
	pull_of("n: 2\n");
	assert_string_equal(explain_to(AUDIENCE_OPERATOR, true),
		"{\"explanation\":[\"the server has version 49a609b0, held by the pin\"]");
}

static void rows_that_failed__are_listed_when_they_would_be_next(void **state)
{
	(void)state;
	begin("");
	core.config->resting = 1u << ROW_OTHER_OVERRIDES | 1u << ROW_CHANGED_BY_OTHERS;
	assert_says("\"resting\":[]"); /* neither holds */
	somebody_writes_quietly("harm");
	core.config->current.place = PLACE_CHANGED;
	assert_says("\"resting\":[\"changed_by_others\"]");
	ledger_override(core.config->decisions.ledger, "n", "7", LEDGER_FOREVER, "ann", "");
	assert_says("\"resting\":[\"other_overrides\",\"changed_by_others\"]");
	core.config->resting = 0;
	assert_says(
		"\"row\":\"other_overrides\",\"action\":\"recompose\",\"origin\":\"overrides\"");
	assert_says("\"resting\":[]");
}

static void step__that_began_just_now__has_its_moment(void **state)
{
	struct explanation e = {.config = NULL};

	(void)state;
	begin("");
	e.config = core.config;
	e.wall_ms = 5000;
	core.config->step.since_ms = world.now_ms;
	assert_int_equal(explain_step_start(&e), 5000);
	core.config->step.since_ms = world.now_ms - 1;
	assert_int_equal(explain_step_start(&e), 4999);
	core.config->step.since_ms = world.now_ms + 7; /* a clock that was read before */
	assert_int_equal(explain_step_start(&e), 5000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CORE_TEST(nothing__is_published_yet),
		CORE_TEST(current__from_the_server__is_confirmed),
		CORE_TEST(pinned__says_what_the_unpin_would_do),
		CORE_TEST(rejected__says_who_and_what_force_would_do),
		CORE_TEST(rolled_back__says_by_whom),
		CORE_TEST(not_rolled_out__says_when_it_is_asked_again),
		CORE_TEST(suspended__says_how_to_resume),
		CORE_TEST(overridden__names_key_user_and_end),
		CORE_TEST(harmful__says_why_it_stays),
		CORE_TEST(step_under_way__is_named_with_its_phase),
		CORE_TEST(step_that_failed__is_tried_again_at_the_next_pull),
		CORE_TEST(saved__and_not_visible__is_said),
		CORE_TEST(drifted__and_left__is_said),
		CORE_TEST(stale__says_since_when),
		CORE_TEST(reload_that_fails__is_said),
		CORE_TEST(queued__is_said),
		CORE_TEST(version_without_an_etag__has_no_name),
		CORE_TEST(kept_version__that_nothing_holds__is_published_next),
		CORE_TEST(harmful__and_alone__stays),
		CORE_TEST(left_by_drift__is_said),
		CORE_TEST(removal_without_an_end_and_reason__is_said),
		CORE_TEST(suspended__with_a_rejected_version__offers_no_force),
		CORE_TEST(answer__has_each_fact_and_what_follows),
		CORE_TEST(answer__during_a_step__has_its_row_phase_and_moment),
		CORE_TEST_DISK(phase__of_each_step__is_named),
		CORE_TEST(gate__of_a_new_version__is_the_first_that_is_closed),
		CORE_TEST(news__are_an_array_of_their_own),
		CORE_TEST(rows_that_failed__are_listed_when_they_would_be_next),
		CORE_TEST(step__that_began_just_now__has_its_moment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

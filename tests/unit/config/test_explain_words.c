/* What an explanation says in each situation: what is current, what the server has, what would
 * change it; and to whom. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/explain.h"

#define NOW 1795521247000 /* 2026-11-24T11:54:07Z */
#define BYTES "bbbb"
#define HAS_B "the server has version b"
#define CURRENT_A                                                                                  \
	"generation 3 (version a) is current since 2026-11-24T11:50:07Z (4m ago): pulled from "    \
	"the server"
#define CONFIRMED "the server has the current version: confirmed 10s ago"
#define LOOK "`pullet diff web --held` shows what it would change: put it right at its source"
#define UNPIN_OTHERS                                                                               \
	"`pullet unpin web`: other versions at the server are published again, this one is not"
#define NEXT "the agent does nothing before the next pull, in 57m"

/* ---- a config that is explained ---- */

static struct sys sys;
static struct config_env env = {.sys = &sys};
static struct settings_config settings = {.name = (char *)"web"};
static struct config *c;
static struct explanation e;
static struct buffer out;

static uint64_t now_ms(void)
{
	return 100000;
}

static void fill_version(struct version *v, uint64_t generation, const char *etag, const char *sha)
{
	v->generation = generation;
	v->parts = calloc(1, sizeof(*v->parts));
	assert_int_equal(part_init(v->parts, "http://h/web", etag, "", "yaml"), 0);
	v->part_count = 1;
	snprintf(v->sha256, sizeof(v->sha256), "%s", sha);
}

static int set_up(void **state)
{
	(void)state;
	sys.now_ms = now_ms;
	buffer_init(&out, 65536);
	c = calloc(1, sizeof(*c));
	*c = (struct config){.env = &env, .settings = &settings};
	c->decisions.ledger = calloc(1, sizeof(*c->decisions.ledger));
	fill_version(&c->current.version, 3, "\"a\"", "aaaa");
	c->latest.state = LATEST_IS_CURRENT;
	e = (struct explanation){.config = c,
		.situation = {.current = CURRENT_GOOD, .latest = LATEST_SAME},
		.status = {.settings = &settings,
			.version = &c->current.version,
			.state = "ok",
			.last_error = "",
			.published_ms = NOW - 240000,
			.age_ms = 10000,
			.next_pull_in_ms = 57 * 60000,
			.expires_ms = INT64_MAX,
			.rejected_by = REJECTION_REASONS},
		.audience = AUDIENCE_OPERATOR,
		.all = true,
		.wall_ms = NOW,
		.out = &out};
	return 0;
}

static struct repairs repairs = {.timer.timer.state = WHEEL_SCHEDULED};

static int tear_down(void **state)
{
	(void)state;
	candidate_free(c->latest.candidate);
	version_fini(&c->current.version);
	ledger_free(c->decisions.ledger);
	free(c);
	buffer_fini(&out);
	return 0;
}

/* The server has another version. */
static void have_new_version(void)
{
	struct candidate *candidate = candidate_new();

	fill_version(&candidate->version, UINT64_MAX, "\"b\"", BYTES);
	c->latest.candidate = candidate;
	c->latest.state = LATEST_IS_KEPT;
	e.situation.latest = LATEST_NEW;
}

static void have_verdict(
	enum situation_verdict verdict, enum rejection_reason reason, const char *why)
{
	have_new_version();
	assert_int_equal(
		ledger_reject(c->decisions.ledger, BYTES, rejection_name(reason), "", 0, why), 0);
	e.situation.verdict = verdict;
	e.status.rejected_by = reason;
	e.status.rejected_is_error = !rejection_is_held(reason);
	if (e.status.rejected_is_error)
		e.status.last_error = why;
}

static void have_pin(const char *reason)
{
	assert_int_equal(
		ledger_pin(c->decisions.ledger, LEDGER_FOREVER, "root (uid 0)", reason, "aaaa"), 0);
	e.status.pin = &c->decisions.ledger->pin;
	e.situation.pin = PIN_SET;
}

static void have_step(enum decide_row row, enum step_phase phase)
{
	c->step.decision.row = row;
	c->step.phase = phase;
	c->step.since_ms = now_ms() - 12000;
}

/* The sentences are these; in the order, and no other one. */
static void assert_says(const char *first, ...)
{
	struct buffer expected;
	va_list more;

	buffer_init(&expected, 65536);
	va_start(more, first);
	for (const char *s = first; s; s = va_arg(more, const char *))
		buffer_printf(&expected, "%s\"%s\"", s == first ? "" : ",", s);
	va_end(more);
	buffer_clear(&out);
	explain_append_sentences(&e);
	assert_string_equal(out.len ? out.data : "", expected.len ? expected.data : "");
	buffer_fini(&expected);
}

/* ---- current ---- */

static void explain__when_the_server_has_it__says_when_it_was_confirmed(void **state)
{
	(void)state;
	assert_says(CURRENT_A, CONFIRMED, NEXT, NULL);
	e.status.version = &(struct version){.generation = 0};
	e.situation.current = CURRENT_NONE;
	e.situation.latest = LATEST_UNKNOWN;
	assert_says("nothing is published yet", "it is not known which version the server has",
		NEXT, NULL);
}

static void explain__of_a_rollback__names_its_origin(void **state)
{
	(void)state;
	free(c->current.version.origin);
	c->current.version.origin = strdup("rollback to generation 1 by root (uid 0): bad");
	have_verdict(VERDICT_OPERATOR, REJECTED_BY_OPERATOR, "rolled back by root (uid 0): bad");
	assert_says("generation 3 (version a) is current since 2026-11-24T11:50:07Z (4m ago): "
		    "rollback to generation 1 by root (uid 0): bad",
		HAS_B ", which was rolled back by root (uid 0): bad",
		"`pullet refresh web --force`: the server's version is published all the same, if "
		"all checks accept it",
		"another version at the server is checked when it is pulled", NEXT, NULL);
}

static void explain__when_stale__says_since_when(void **state)
{
	(void)state;
	e.status.state = "stale";
	e.status.age_ms = 3 * 3600000;
	e.status.last_error = "connection refused";
	e.status.failing_since_ms = NOW - 7200000;
	e.status.last_error_ms = NOW - 3000;
	assert_says(CURRENT_A, "it is stale: no pull has confirmed it for 3h",
		"the server had the current version when it answered last, 3h ago",
		"failing since 2026-11-24T09:54:07Z (2h ago), last at 2026-11-24T11:54:04Z: "
		"connection refused",
		"`pullet refresh web`: pulls, and tries again, at once", NEXT, NULL);
	e.status.expires_ms = NOW - 1000;
	buffer_clear(&out);
	explain_append_sentences(&e);
	assert_non_null(
		strstr(out.data, "it is stale: its signature expired at 2026-11-24T11:54:06Z"));
}

/* ---- why the server's version is not current ---- */

static void explain__of_a_rejected_version__says_by_what_and_why(void **state)
{
	(void)state;
	have_verdict(VERDICT_REJECTED, REJECTED_BY_GUARD, "it shrank");
	assert_says(CURRENT_A, HAS_B ", rejected by the guard: it shrank", LOOK,
		"`pullet refresh web --force`: the server's version is published as it is, if all "
		"other checks accept it",
		"another version at the server is checked when it is pulled", NEXT, NULL);
	e.status.rejected_by = (enum rejection_reason)CHECK_SCHEMA;
	ledger_reject(c->decisions.ledger, BYTES, "schema", "", 0, "/n: must be an integer");
	assert_says(CURRENT_A, HAS_B ", rejected by the schema: /n: must be an integer",
		"a corrected schema is read at the next pull, which checks this version again; "
		"`pullet refresh web` pulls now",
		"another version at the server is checked when it is pulled", NEXT, NULL);
	e.status.rejected_by = (enum rejection_reason)CHECK_PROGRAM;
	ledger_reject(c->decisions.ledger, BYTES, "check", "", 0, "exited with 1");
	assert_says(CURRENT_A, HAS_B ", rejected by the check: exited with 1",
		"`pullet refresh web --force`: it is checked once more, and published if it is "
		"accepted now",
		"another version at the server is checked when it is pulled", NEXT, NULL);
}

static void explain__of_a_failed_probe__says_that_it_was_rolled_back(void **state)
{
	(void)state;
	have_verdict(VERDICT_PROBE, REJECTED_BY_PROBE, "exited with 1");
	assert_says(CURRENT_A, HAS_B ", which failed its probe and was rolled back: exited with 1",
		LOOK,
		"`pullet refresh web --force`: the server's version is published as it is, if all "
		"checks accept it",
		"another version at the server is checked when it is pulled", NEXT, NULL);
	have_pin("freeze"); /* then force does nothing */
	assert_says(CURRENT_A, HAS_B ", which failed its probe and was rolled back: exited with 1",
		"pinned by root (uid 0): freeze", UNPIN_OTHERS, LOOK,
		"`pullet refresh web --force`, after that: the server's version is published as it "
		"is, if all checks accept it",
		NEXT, NULL);
}

static void explain__of_a_pinned_rollback__says_that_the_unpin_is_not_enough(void **state)
{
	(void)state;
	have_verdict(VERDICT_OPERATOR, REJECTED_BY_OPERATOR, "rolled back by root (uid 0)");
	have_pin("");
	assert_says(CURRENT_A, HAS_B ", which was rolled back by root (uid 0)",
		"pinned by root (uid 0)", UNPIN_OTHERS,
		"`pullet refresh web --force`, after that: the server's version is published all "
		"the same, if all checks accept it",
		NEXT, NULL);
	e.situation.verdict = VERDICT_FREE;
	e.situation.rollout = ROLLOUT_OUT;
	assert_says(CURRENT_A, HAS_B ", held by the pin", "pinned by root (uid 0)",
		"`pullet unpin web`: the server's versions are published again, as the rollout "
		"says",
		"`pullet refresh web --force`, after that: the server's version is published all "
		"the same, if all checks accept it",
		NEXT, NULL);
}

static void explain__while_pinned__says_what_the_unpin_does(void **state)
{
	(void)state;
	have_pin("freeze");
	assert_says(CURRENT_A, CONFIRMED, "pinned by root (uid 0): freeze",
		"`pullet unpin web`: the server's versions are published again", NEXT, NULL);
	have_new_version();
	assert_says(CURRENT_A, HAS_B ", held by the pin", "pinned by root (uid 0): freeze",
		"`pullet unpin web`: the server's version is published", NEXT, NULL);
}

static void explain__while_a_pin_keeps_what_does_harm__says_so(void **state)
{
	(void)state;
	have_pin("");
	e.situation.current = CURRENT_HARMFUL;
	e.situation.older = OLDER_THERE;
	e.status.last_error = e.status.notify.probe_why = "exited with 1";
	e.status.has_notify = true;
	e.status.notify.probe = PROBE_FAILED;
	e.status.notify.probe_generation = 3;
	assert_says(CURRENT_A, CONFIRMED, "pinned by root (uid 0)",
		"the current version failed its probe, and the pin keeps it: exited with 1",
		"`pullet unpin web`: the version that failed its probe is rolled back", NEXT, NULL);
}

static void explain__when_nothing_is_older__says_that_it_stays(void **state)
{
	(void)state;
	e.status.last_error = e.status.notify.probe_why = "exited with 1";
	e.status.has_notify = true;
	e.status.notify.probe = PROBE_FAILED;
	e.status.notify.probe_generation = 3;
	assert_says(CURRENT_A, CONFIRMED,
		"the current version failed its probe, and there is no older one to roll back to: "
		"exited with 1",
		NEXT, NULL);
}

static void explain__outside_a_rollout__says_why(void **state)
{
	(void)state;
	have_new_version();
	e.situation.rollout = ROLLOUT_OUT;
	e.status.rejected_by = REJECTED_BY_ROLLOUT;
	c->latest.rollout_why = strdup("this host is at 71.51 %, the rollout at 50 %");
	assert_says(CURRENT_A,
		HAS_B ", not rolled out to this host yet: this host is at 71.51 %, the rollout at "
		      "50 %",
		"`pullet refresh web --force`: the server's version is published all the same, if "
		"all checks accept it",
		"the rollout is read again at each pull", NEXT, NULL);
	free(c->latest.rollout_why);
}

static void explain__of_what_could_not_be_published__says_when_it_is_tried_again(void **state)
{
	(void)state;
	have_new_version();
	e.situation.resting = 1u << ROW_LATEST_IS_PUBLISHED;
	e.status.last_error = "cannot replace: No space left on device";
	e.status.failing_since_ms = e.status.last_error_ms = NOW - 60000;
	assert_says(CURRENT_A,
		HAS_B ", which could not be published: it is tried again at the next pull",
		"failing since 2026-11-24T11:53:07Z (1m ago): cannot replace: No space left on "
		"device",
		"`pullet refresh web`: pulls, and tries again, at once", NEXT, NULL);
	e.situation.saved = SAVED_WANTED; /* the same bytes */
	e.situation.resting |= 1u << ROW_SAVED_IS_SHOWN;
	buffer_clear(&out);
	explain_append_sentences(&e);
	assert_null(strstr(out.data, "not done yet"));
}

/* ---- what is done ---- */

static void explain__during_a_slow_check__says_how_long(void **state)
{
	(void)state;
	have_new_version();
	have_step(ROW_LATEST_IS_PUBLISHED, STEP_PROGRAMS);
	assert_says(CURRENT_A, HAS_B ", which is being published for 12s: its programs check it",
		"the next pull is in 57m", NULL);
	have_pin("");
	assert_says(CURRENT_A, HAS_B ", held by the pin", "pinned by root (uid 0)",
		"under way for 12s: the server's version is published (its programs check it); it "
		"is held at the end of its check",
		"`pullet unpin web`: the server's version is published", "the next pull is in 57m",
		NULL);
}

static void explain__of_each_row__says_that_it_comes_next(void **state)
{
	static const struct {
		enum decide_row row;
		const struct situation s;
	} table[] = {
		{ROW_OPERATOR_ROLLS_BACK, {.request = REQUEST_ROLL_BACK}},
		{ROW_OPERATOR_OVERRIDES, {.request = REQUEST_OVERRIDES}},
		{ROW_SAVED_IS_SHOWN, {.saved = SAVED_WANTED}},
		{ROW_HARMFUL_IS_ROLLED_BACK, {.current = CURRENT_HARMFUL, .older = OLDER_THERE}},
		{ROW_OTHER_OVERRIDES, {.current = CURRENT_GOOD, .overrides = OVERRIDES_OTHER}},
		{ROW_OTHER_SETTINGS, {.current = CURRENT_GOOD, .settings = SETTINGS_OTHER}},
		{ROW_CHANGED_BY_OTHERS, {.current = CURRENT_GOOD, .place = PLACE_CHANGED}},
	};
	char expected[256];

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		e.situation = table[i].s;
		snprintf(expected, sizeof(expected), "\"next: %s\"", decide_row_text(table[i].row));
		buffer_clear(&out);
		explain_append_sentences(&e);
		assert_non_null(strstr(out.data, expected));
		assert_null(strstr(out.data, "the agent does nothing"));
		e.situation.resting = 1u << table[i].row;
		snprintf(expected, sizeof(expected),
			"\"not done yet, and tried again at the next pull: %s\"",
			decide_row_text(table[i].row));
		buffer_clear(&out);
		explain_append_sentences(&e);
		assert_non_null(strstr(out.data, expected));
	}
}

static void explain__of_files_restored_just_now__says_that_it_is_not_idle(void **state)
{
	(void)state;
	e.situation.place = PLACE_CHANGED;
	e.situation.resting = 1u << ROW_CHANGED_BY_OTHERS;
	c->current.repairs = &repairs;
	assert_says(CURRENT_A, CONFIRMED,
		"not done yet, and tried again in a moment: what is published is restored",
		"the next pull is in 57m", NULL);
}

static bool says(const char *sentence)
{
	buffer_clear(&out);
	explain_append_sentences(&e);
	if (!strstr(out.data, sentence))
		print_error("%s\n", out.data);
	return strstr(out.data, sentence);
}

static void explain__of_a_step__names_its_row_and_phase(void **state)
{
	(void)state;
	have_step(ROW_OPERATOR_ROLLS_BACK, STEP_LOAD);
	assert_says(CURRENT_A, CONFIRMED,
		"under way for 12s: an operator's rollback is published (being validated)",
		"the next pull is in 57m", NULL);
	have_step(ROW_OPERATOR_ROLLS_BACK, STEP_SHOW);
	assert_true(says("an operator's rollback is published (being written)\""));
	have_new_version();
	have_step(ROW_LATEST_IS_PUBLISHED, STEP_LOAD);
	assert_true(says(HAS_B ", which is being published for 12s: being validated\""));
	assert_null(strstr(out.data, "under way"));
	have_step(ROW_LATEST_IS_PUBLISHED, STEP_SHOW);
	assert_true(says("being published for 12s: being written\""));
}

static void explain__of_what_rests_beside_the_servers_version__says_both(void **state)
{
	(void)state;
	have_new_version();
	e.situation.overrides = OVERRIDES_OTHER;
	e.situation.resting = 1u << ROW_LATEST_IS_PUBLISHED | 1u << ROW_OTHER_OVERRIDES;
	assert_true(says(HAS_B ", which could not be published: it is tried again"));
	assert_non_null(strstr(out.data,
		"not done yet, and tried again at the next pull: the current version is composed "
		"again, with the overrides of now"));
}

static void explain__of_files_restored_just_now__says_it_of_them_alone(void **state)
{
	(void)state;
	e.situation.place = PLACE_CHANGED;
	e.situation.overrides = OVERRIDES_OTHER;
	e.situation.resting = 1u << ROW_CHANGED_BY_OTHERS | 1u << ROW_OTHER_OVERRIDES;
	c->current.repairs = &repairs;
	assert_true(says("tried again in a moment: what is published is restored"));
	assert_non_null(strstr(out.data, "tried again at the next pull: the current version"));
}

static void explain__in_a_retiring_config__says_that_nothing_begins(void **state)
{
	(void)state;
	e.situation.mode = MODE_RETIRING;
	e.status.next_pull_in_ms = -1;
	assert_says(CURRENT_A, CONFIRMED,
		"the agent's configuration has changed: nothing begins before it is taken over",
		NULL);
}

static void explain__before_the_server_has_confirmed_anything__says_so(void **state)
{
	(void)state;
	e.status.age_ms = -1;
	assert_says(CURRENT_A, "it is not known which version the server has", NEXT, NULL);
}

static void explain__while_a_probe_runs__names_its_generation(void **state)
{
	(void)state;
	e.status.has_notify = true;
	e.status.notify = (struct notify_status){
		.probe = PROBE_RUNNING, .probe_generation = 3, .probe_why = ""};
	e.status.notify.reload.in_a_row = 1; /* of no reload */
	assert_says(CURRENT_A, CONFIRMED, "the probe of generation 3 is running", NEXT, NULL);
}

static void explain__of_a_rollback__tells_the_public_no_reason(void **state)
{
	(void)state;
	have_verdict(VERDICT_OPERATOR, REJECTED_BY_OPERATOR, "rolled back by root (uid 0): bad");
	e.all = false;
	e.audience = AUDIENCE_PUBLIC;
	assert_says(HAS_B ", which was rolled back by an operator", NULL);
}

/* ---- what else holds ---- */

static void explain__of_decisions__names_who_and_how_they_end(void **state)
{
	struct ledger *l = c->decisions.ledger;

	(void)state;
	ledger_suspend(l, NOW + 60000, "eve (uid 7)", "night");
	ledger_override(l, "db.host", "1", NOW + 3600000, "eve (uid 7)", "");
	e.status.suspension = l->suspension;
	e.status.overrides = l->overrides;
	e.status.override_count = l->override_count;
	e.status.next_pull_in_ms = -1;
	e.situation.place = PLACE_CHANGED;
	e.situation.drift = DRIFT_REPORT;
	assert_says(CURRENT_A, "the server had the current version when it answered last, 10s ago",
		"suspended by eve (uid 7) until 2026-11-24T11:55:07Z: night",
		"the server's value of db.host is overridden by eve (uid 7) until "
		"2026-11-24T12:54:07Z",
		"the published files were changed by others, and are not restored before the next "
		"version is published (drift: report)",
		"`pullet resume web`: pulls begin again",
		"`pullet override web KEY --remove`: the server's value comes back",
		"the agent does nothing before it is resumed", NULL);
}

static void explain__of_a_saved_version__says_why_it_is_not_visible(void **state)
{
	(void)state;
	c->current.saved_generation = 4;
	e.situation.saved = SAVED_LATE;
	assert_says(CURRENT_A, CONFIRMED,
		"generation 4 is saved and was never visible: the server has another version by "
		"now",
		NEXT, NULL);
	have_pin("");
	e.situation.saved = SAVED_HELD;
	assert_says(CURRENT_A, CONFIRMED, "pinned by root (uid 0)",
		"generation 4 is saved and was never visible: the pin holds it",
		"`pullet unpin web`: a version that is saved, but not visible, is shown", NEXT,
		NULL);
}

static void explain__of_a_failed_reload__says_when_it_is_tried_again(void **state)
{
	(void)state;
	e.status.has_notify = true;
	e.status.notify = (struct notify_status){.has_reload = true,
		.probe_why = "",
		.reload = {.in_a_row = 2, .next_ms = 4000, .why = "exited with 3"}};
	assert_says(CURRENT_A, CONFIRMED,
		"the application was not reloaded, which is tried again in 4s: exited with 3", NEXT,
		NULL);
}

/* ---- the next pull ---- */

static void explain__of_the_next_pull__says_what_it_waits_for(void **state)
{
	(void)state;
	e.status.running = true;
	c->run.state = RUN_PULLING;
	assert_says(CURRENT_A, CONFIRMED, "a pull is under way", NULL);
	e.status.running = false;
	e.status.waiting = true;
	assert_says(CURRENT_A, CONFIRMED,
		"the next pull is due: it is queued for its server, which is busy or in backoff",
		NULL);
}

/* ---- to whom ---- */

static void explain__to_others__shows_no_value(void **state)
{
	char why[256], quoted[128];

	(void)state;
	snprintf(why, sizeof(why), "/n: must be an integer, but is %s",
		sentence_quote(quoted, sizeof(quoted), "\"hunter2\"", 9, "a string"));
	have_verdict(VERDICT_REJECTED, (enum rejection_reason)CHECK_SCHEMA, why);
	e.all = false;
	e.audience = AUDIENCE_READER;
	assert_says(
		HAS_B ", rejected by the schema: /n: must be an integer, but is a string", NULL);
	e.audience = AUDIENCE_PUBLIC;
	assert_says(HAS_B ", rejected by the schema: see the control socket for the reason", NULL);
}

static void explain_news__when_all_is_well__says_nothing(void **state)
{
	(void)state;
	e.all = false;
	assert_says(NULL);
	have_pin("");
	assert_says(NULL);
	have_new_version();
	assert_says(HAS_B ", held by the pin", NULL);
}

/* ---- times ---- */

static void span__is_in_whole_units(void **state)
{
	static const struct {
		int64_t ms;
		const char *text;
	} cases[] = {
		{-5, "1s"},
		{0, "1s"},
		{999, "1s"},
		{1000, "1s"},
		{1999, "1s"},
		{2000, "2s"},
		{119999, "119s"},
		{120000, "2m"},
		{179999, "2m"},
		{180000, "3m"},
		{7199999, "119m"},
		{7200000, "2h"},
		{7200001, "2h"},
		{10799999, "2h"},
		{10800000, "3h"},
		{90000000, "25h"},
	};
	char text[24];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(explain_write_span(cases[i].ms, text), cases[i].text);
}

static void explain__of_a_signature_that_expires_now__says_stale_by_it(void **state)
{
	(void)state;
	e.status.state = "stale";
	e.status.expires_ms = NOW;
	assert_true(says("it is stale: its signature expired at 2026-11-24T11:54:07Z\""));
	e.status.expires_ms = NOW + 1;
	assert_true(says("it is stale: no pull has confirmed it for 10s\""));
}

static void explain__of_a_failure__says_when_it_was_seen_last_if_that_differs(void **state)
{
	(void)state;
	e.status.last_error = "connection refused";
	e.status.failing_since_ms = NOW - 60000;
	e.status.last_error_ms = NOW - 60000 + 999;
	assert_true(says("failing since 2026-11-24T11:53:07Z (1m ago): connection refused\""));
	e.status.last_error_ms = NOW - 60000 + 1000;
	assert_true(says(", last at 2026-11-24T11:53:08Z: connection refused\""));
}

static void explain__of_a_failure__tells_the_public_no_reason(void **state)
{
	static const char hidden[] = ": see the control socket for the reason\"";

	(void)state;
	e.audience = AUDIENCE_PUBLIC;
	e.status.last_error = "connection refused";
	e.status.failing_since_ms = e.status.last_error_ms = NOW - 60000;
	assert_true(says(hidden));
	assert_null(strstr(out.data, "refused"));
	e.status.last_error = "";
	e.status.has_notify = e.status.notify.has_reload = true;
	e.status.notify.probe_why = "";
	e.status.notify.reload =
		(struct reload_status){.in_a_row = 1, .next_ms = 4000, .why = "x9"};
	assert_true(says("the application was not reloaded, which is tried again in 4s: see the"));
	e.status.notify = (struct notify_status){
		.probe = PROBE_FAILED, .probe_generation = 3, .probe_why = "x9"};
	assert_true(says("there is no older one to roll back to: see the control socket"));
	assert_null(strstr(out.data, "x9"));
}

/* ---- the next pull ---- */

static void explain__of_a_pull_that_is_due__says_it(void **state)
{
	(void)state;
	e.status.next_pull_in_ms = 0;
	assert_says(
		CURRENT_A, CONFIRMED, "the agent does nothing before the next pull, in 1s", NULL);
	e.status.next_pull_in_ms = -1;
	assert_says(CURRENT_A, CONFIRMED, NULL);
}

static void explain__while_a_version_settles__speaks_of_the_next_pull(void **state)
{
	(void)state;
	e.status.running = true;
	c->run.state = RUN_SETTLING;
	have_step(ROW_OTHER_OVERRIDES, STEP_PROGRAMS);
	assert_true(says("\"the next pull is in 57m\""));
	assert_null(strstr(out.data, "a pull is under way"));
	c->run.state = RUN_ASKING;
	assert_true(says("\"a pull is under way\""));
	assert_null(strstr(out.data, "the next pull is in"));
}

static void explain__while_suspended_and_at_work__does_not_say_that_it_waits(void **state)
{
	struct ledger *l = c->decisions.ledger;

	(void)state;
	ledger_suspend(l, LEDGER_FOREVER, "eve (uid 7)", "");
	e.status.suspension = l->suspension;
	assert_true(says("\"the agent does nothing before it is resumed\""));
	assert_null(strstr(out.data, "the next pull is in"));
	assert_non_null(strstr(out.data, "\"suspended by eve (uid 7)\","));
	have_step(ROW_OTHER_OVERRIDES, STEP_PROGRAMS);
	assert_true(says("under way for 12s"));
	assert_null(strstr(out.data, "the agent does nothing"));
}

/* ---- commands ---- */

static void explain__of_force__when_the_pin_holds_too__offers_it_after_the_unpin(void **state)
{
	(void)state;
	have_new_version();
	e.situation.rollout = ROLLOUT_OUT;
	e.status.rejected_by = REJECTED_BY_ROLLOUT;
	assert_true(says("--force`"));
	have_pin("");
	buffer_clear(&out);
	explain_append_sentences(&e);
	assert_non_null(strstr(out.data, "--force`, after that: "));
	assert_null(strstr(out.data, "the rollout is read again"));
}

static void explain__of_an_unpin__when_a_row_rests__foresees_the_next_pull(void **state)
{
	(void)state;
	have_new_version();
	have_pin("");
	e.situation.resting = 1u << ROW_LATEST_IS_PUBLISHED;
	assert_true(says("`pullet unpin web`: the server's version is published\""));
	e.situation.resting = ~0u;
	assert_true(says("`pullet unpin web`: the server's version is published\""));
}

static void explain__of_force__when_a_row_rests__foresees_the_next_pull(void **state)
{
	(void)state;
	have_verdict(VERDICT_PROBE, REJECTED_BY_PROBE, "exited with 1");
	e.situation.resting = 1u << ROW_LATEST_IS_PUBLISHED;
	assert_true(says("--force`: the server's version is published as it is"));
	/* what is due anyway is no work of the command */
	e.situation.request = REQUEST_OVERRIDES;
	e.situation.resting = 1u << ROW_OPERATOR_OVERRIDES;
	buffer_clear(&out);
	explain_append_sentences(&e);
	assert_null(strstr(out.data, "--force"));
}

static void explain__of_overrides_and_pulls_that_fail__names_both_commands(void **state)
{
	struct ledger *l = c->decisions.ledger;

	(void)state;
	ledger_override(l, "a", "1", LEDGER_FOREVER, "eve", "night");
	ledger_override(l, "b", "1", LEDGER_FOREVER, "ann", "");
	e.status.overrides = l->overrides;
	e.status.override_count = l->override_count;
	e.status.last_error = "connection refused";
	e.status.failing_since_ms = e.status.last_error_ms = NOW - 2000;
	assert_says(CURRENT_A, "the server had the current version when it answered last, 10s ago",
		"the server's value of a is overridden by eve until it is removed: night",
		"the server's value of b is overridden by ann until it is removed",
		"failing since 2026-11-24T11:54:05Z (2s ago): connection refused",
		"`pullet refresh web`: pulls, and tries again, at once",
		"`pullet override web KEY --remove`: the server's value comes back", NEXT, NULL);
}

/* ---- the probe ---- */

static void explain__of_a_probe_of_another_generation__says_nothing(void **state)
{
	(void)state;
	e.status.has_notify = true;
	e.status.notify = (struct notify_status){
		.probe = PROBE_FAILED, .probe_generation = 2, .probe_why = "x"};
	assert_says(CURRENT_A, CONFIRMED, NEXT, NULL);
	e.status.has_notify = false;
	e.status.notify.probe_generation = 3;
	assert_says(CURRENT_A, CONFIRMED, NEXT, NULL);
	e.status.has_notify = true;
	e.status.notify.probe = PROBE_PASSED;
	assert_says(CURRENT_A, CONFIRMED, NEXT, NULL);
}

static void explain__of_what_does_harm__when_it_is_rolled_back__gives_no_reason(void **state)
{
	(void)state;
	e.situation.current = CURRENT_HARMFUL;
	e.situation.older = OLDER_THERE;
	assert_true(says("\"the current version failed its probe\""));
	e.situation.pin = PIN_SET;
	assert_true(says("\"the current version failed its probe, and the pin keeps it\""));
	e.situation.older = OLDER_NONE;
	assert_true(says("failed its probe, and there is no older one to roll back to\""));
}

static void news__of_files_changed_by_others__are_none(void **state)
{
	(void)state;
	e.all = false;
	e.situation.place = PLACE_CHANGED;
	e.situation.drift = DRIFT_LEAVE;
	assert_says(NULL);
	e.situation.drift = DRIFT_HEAL;
	assert_says("next: what is published is restored", NULL);
	e.all = true;
	assert_true(says("next: what is published is restored"));
	assert_null(strstr(out.data, "changed by others, and are not restored"));
}

static void explain__of_a_version_of_an_unread_rollout__says_so(void **state)
{
	(void)state;
	have_new_version();
	e.situation.rollout = ROLLOUT_OUT;
	assert_true(says(HAS_B ", not rolled out to this host yet: it was not read yet\""));
	e.audience = AUDIENCE_PUBLIC;
	assert_true(says("not rolled out to this host yet: see the control socket for the reason"));
}

static void explain__of_a_failed_probe__is_no_failed_pull(void **state)
{
	(void)state;
	e.status.last_error = e.status.notify.probe_why = "exited with 1";
	e.status.has_notify = true;
	assert_string_equal(explain_pull_error(&e), "");
	e.status.notify.probe_why = "exited with 2";
	assert_string_equal(explain_pull_error(&e), "exited with 1");
	e.status.has_notify = false;
	e.status.notify.probe_why = "exited with 1";
	assert_string_equal(explain_pull_error(&e), "exited with 1");
	e.status.rejected_is_error = true;
	assert_string_equal(explain_pull_error(&e), "");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(explain__when_the_server_has_it__says_when_it_was_confirmed),
		CASE(explain__of_a_rollback__names_its_origin),
		CASE(explain__when_stale__says_since_when),
		CASE(explain__of_a_rejected_version__says_by_what_and_why),
		CASE(explain__of_a_failed_probe__says_that_it_was_rolled_back),
		CASE(explain__of_a_pinned_rollback__says_that_the_unpin_is_not_enough),
		CASE(explain__while_pinned__says_what_the_unpin_does),
		CASE(explain__while_a_pin_keeps_what_does_harm__says_so),
		CASE(explain__when_nothing_is_older__says_that_it_stays),
		CASE(explain__outside_a_rollout__says_why),
		CASE(explain__of_what_could_not_be_published__says_when_it_is_tried_again),
		CASE(explain__during_a_slow_check__says_how_long),
		CASE(explain__of_each_row__says_that_it_comes_next),
		CASE(explain__of_files_restored_just_now__says_that_it_is_not_idle),
		CASE(explain__of_decisions__names_who_and_how_they_end),
		CASE(explain__of_a_saved_version__says_why_it_is_not_visible),
		CASE(explain__of_a_failed_reload__says_when_it_is_tried_again),
		CASE(explain__of_the_next_pull__says_what_it_waits_for),
		CASE(explain__to_others__shows_no_value),
		CASE(explain_news__when_all_is_well__says_nothing),
		CASE(explain__of_a_step__names_its_row_and_phase),
		CASE(explain__of_what_rests_beside_the_servers_version__says_both),
		CASE(explain__of_files_restored_just_now__says_it_of_them_alone),
		CASE(explain__in_a_retiring_config__says_that_nothing_begins),
		CASE(explain__before_the_server_has_confirmed_anything__says_so),
		CASE(explain__while_a_probe_runs__names_its_generation),
		CASE(explain__of_a_rollback__tells_the_public_no_reason),
		CASE(span__is_in_whole_units),
		CASE(explain__of_a_signature_that_expires_now__says_stale_by_it),
		CASE(explain__of_a_failure__says_when_it_was_seen_last_if_that_differs),
		CASE(explain__of_a_failure__tells_the_public_no_reason),
		CASE(explain__of_a_pull_that_is_due__says_it),
		CASE(explain__while_a_version_settles__speaks_of_the_next_pull),
		CASE(explain__while_suspended_and_at_work__does_not_say_that_it_waits),
		CASE(explain__of_force__when_the_pin_holds_too__offers_it_after_the_unpin),
		CASE(explain__of_an_unpin__when_a_row_rests__foresees_the_next_pull),
		CASE(explain__of_force__when_a_row_rests__foresees_the_next_pull),
		CASE(explain__of_overrides_and_pulls_that_fail__names_both_commands),
		CASE(explain__of_a_probe_of_another_generation__says_nothing),
		CASE(explain__of_what_does_harm__when_it_is_rolled_back__gives_no_reason),
		CASE(news__of_files_changed_by_others__are_none),
		CASE(explain__of_a_version_of_an_unread_rollout__says_so),
		CASE(explain__of_a_failed_probe__is_no_failed_pull),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

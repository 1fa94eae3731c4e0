/*
 * Orders and questions, drawn. Surprising: an order that was answered "done" counts from then on,
 * whatever happens to the process; the oracle holds the agent to it.
 */
#include "tests/sim/operator.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/changes.h"
#include "config/config.h"
#include "config/explain.h"
#include "config/inspect.h"
#include "tests/sim/control.h"
#include "tests/sim/programs.h"
#include "tests/sim/world.h"

#define GRACE_US 10000000u /* a publication under way is finished */
#define ANSWER_SIZE (1u << 20)

static void hold(struct subject *s, uint64_t for_ms)
{
	if (for_ms && s->clock_steps)
		return; /* it may end at any moment */
	s->pinned = false;
	s->held_us = world.now_us + GRACE_US;
	s->held_until_us = !for_ms ? UINT64_MAX : s->clock_steps ? 0 : world.now_us + for_ms * 1000;
	s->at_hold.there = false; /* taken when the grace is over */
}

/* Something else than the servers may change what is visible. */
static void let_go(struct subject *s)
{
	s->held_us = 0;
}

struct order {
	struct subject *subject;
	struct config *config;
	int (*act)(struct order *o, char why[FILE_WHY]);
	const char *name;
	bool keeps_version; /* allowed while pinned, and changes nothing */
	int result;
};

static uint64_t draw(uint64_t bound)
{
	return world_random(STREAM_OPERATOR, bound);
}

/* ---- orders ---- */

static int refresh(struct order *o, char why[FILE_WHY])
{
	(void)why;
	config_refresh(o->config, false);
	return 0;
}

static int force(struct order *o, char why[FILE_WHY])
{
	(void)why;
	o->subject->forced = o->subject->may_go_back = true;
	o->subject->rolled_back.there = false;
	o->subject->rolling_us = 0;
	let_go(o->subject);
	config_refresh(o->config, true);
	return 0;
}

/* A rollback, or a version that the disk takes: a pin is about what it brings. */
static bool will_show_another(struct config *c)
{
	struct config_status status;
	char why[FILE_WHY];

	config_status(c, &status);
	return config_check_change(c, "", why) == -EBUSY ||
	       config_pinned_generation(c) != status.version->generation;
}

static int pin(struct order *o, char why[FILE_WHY])
{
	uint64_t for_ms = draw(1) ? 0 : 1000 + draw(60000);
	bool moves = will_show_another(o->config);
	int r;

	let_go(o->subject);
	o->subject->pin_until_ms = 0;
	r = config_pin(o->config, for_ms, "uid 0", draw(9) ? "held" : "he\nld", why);
	if (r == 0 && !moves)
		hold(o->subject, for_ms);
	o->subject->pinned = true;
	return r;
}

static int unpin(struct order *o, char why[FILE_WHY])
{
	let_go(o->subject);
	o->subject->pin_until_ms = 0;
	return config_unpin(o->config, "uid 0", why);
}

static int suspend(struct order *o, char why[FILE_WHY])
{
	/* holds nothing for the oracle: what was pulled before may still become visible */
	return config_suspend(o->config, draw(1) ? 0 : 1000 + draw(60000), "uid 0", "", why);
}

static int resume(struct order *o, char why[FILE_WHY])
{
	let_go(o->subject);
	return config_resume(o->config, "uid 0", why);
}

static int roll_back(struct order *o, char why[FILE_WHY])
{
	struct inspection i;
	uint64_t generation = draw(2) ? 0 : 1 + draw(20);
	int r = inspect_begin(o->config, &i, why);

	if (r)
		return r;
	r = inspect_rollback(&i, &generation, why);
	if (r == 0)
		r = inspect_unchanged(&i, why);
	inspect_end(&i);
	if (r)
		return r;
	/* from now on: the process may end in the middle of it */
	let_go(o->subject);
	o->subject->rolled_back.there = false;
	o->subject->rolling_us = 0;
	r = config_roll_back(o->config, generation, "uid 0", "worse", why);
	if (r == 0) {
		o->subject->rolling = o->subject->last;
		o->subject->rolling_us = world.now_us;
	}
	return r;
}

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* Mostly one that operator_end() knows. */
static void draw_key(unsigned n, char ret_key[24])
{
	static const char *const odd[] = {
		"over.k1.a", "over.k1.a.b", "over..", "over.k2.a", "over.a\\.b", ""};

	snprintf(ret_key, 24, "over.k%u", n);
	if (draw(5) == 0)
		snprintf(ret_key, 24, "%s", odd[draw(COUNT(odd) - 1)]);
}

static const char *draw_value(void)
{
	static const char *const values[] = {"1", "{a: 1}", "null", "[1, 2]", "text", "]", "1.5",
		"- 1\n- 2", "--- 1\n--- 2", "\"a\\nb\"", "true", ".inf", "", "# a text", " ~ ",
		"Null"};
	static char long_text[CONFIG_MAX_VALUE + 2];

	if (draw(30))
		return values[draw(COUNT(values) - 1)];
	memset(long_text, 'l', sizeof(long_text) - 1);
	return long_text;
}

static int override(struct order *o, char why[FILE_WHY])
{
	struct inspection i;
	unsigned n = (unsigned)draw(SUBJECT_OVERRIDES - 1);
	uint64_t for_ms = draw(19) ? 1000 + draw(60000) : 0;
	char key[24];
	int r = 0;
	struct inspect_effect effect;

	draw_key(n, key);
	o->subject->override_until_ms[n] = 0; /* the new one may be shorter */
	if (draw(3)) {
		r = inspect_begin(o->config, &i, why);
		if (r)
			return r;
		r = inspect_override(&i, key, &effect, why);
		inspect_end(&i);
	}
	return r ? r
		 : config_override(o->config, key, draw_value(), for_ms, "uid 0",
			   draw(9) ? "try" : "tr\x7fy", why);
}

static int drop_override(struct order *o, char why[FILE_WHY])
{
	char key[24];
	unsigned i = (unsigned)draw(SUBJECT_OVERRIDES - 1);

	snprintf(key, sizeof(key), "over.k%u", i);
	o->subject->override_until_ms[i] = 0;
	return config_drop_override(o->config, key, "uid 0", why);
}

static int forget_revs(struct order *o, char why[FILE_WHY])
{
	(void)why;
	config_forget_revs(o->config);
	return 0;
}

/* ---- questions ---- */

/* What `pullet wait` answers agrees with the status. */
static void check_published(const struct order *o, const struct config_status *status)
{
	const struct version *v = status->version;
	const struct config *c = o->config;

	/* a version that is validated at a start is shown in the status before */
	if (v->generation && config_has_published(c, 1, "") && !o->subject->damaged &&
		(!config_has_published(c, v->generation, "") ||
			!config_has_published(c, 0, v->parts[0].etag)))
		subject_report_flaw("%s: what is published is not said to be", o->subject->name);
	if (config_has_published(c, v->generation + 1, "") ||
		config_has_published(c, 0, "\"no such version\""))
		subject_report_flaw("%s: what is not published is said to be", o->subject->name);
}

static int ask(struct order *o, char why[FILE_WHY])
{
	static const char *const keys[] = {"over.k1", "over", "d0_0", "d0_1", "over.k1.a", "none"};
	struct inspection i;
	struct config_status status;
	struct subscriber_status push;
	struct buffer out;
	bool values = draw(1);
	int r = inspect_begin(o->config, &i, why);

	if (r)
		return r;
	buffer_init(&out, ANSWER_SIZE);
	inspect_history(&i, AUDIENCE_OPERATOR, &out, why);
	inspect_diff(&i, 0, 0, values, &out, why);
	inspect_diff(&i, 1 + draw(9), 1 + draw(9), values, &out, why);
	inspect_explain(&i, keys[draw(COUNT(keys) - 1)], values, &out, why);
	explain_config(o->config, AUDIENCE_OPERATOR, &out);
	explain_config(o->config, AUDIENCE_READER, &out);
	explain_config(o->config, AUDIENCE_PUBLIC, &out);
	explain_news(o->config, AUDIENCE_READER, &out);
	inspect_history(&i, AUDIENCE_PUBLIC, &out, why);
	inspect_end(&i);
	config_status(o->config, &status);
	check_published(o, &status);
	if (o->subject->host->agent.push)
		subscriber_get_status(o->subject->host->agent.push, 0, &push);
	buffer_fini(&out);
	return 0;
}

static int ask_later(struct order *o, char why[FILE_WHY])
{
	struct control *c = o->subject->host->agent.control;

	(void)why;
	if (draw(1))
		control_ask_changes(c, draw(1));
	else
		control_ask_versions(c, o->config, (unsigned)draw(10), draw(1));
	return 0;
}

static int wait_for_run(struct order *o, char why[FILE_WHY])
{
	(void)why;
	control_wait(o->subject->host->agent.control, o->config, (unsigned)draw(3));
	return 0;
}

static const struct {
	const char *name;
	int (*act)(struct order *o, char why[FILE_WHY]);
	unsigned weight;
	bool is_pin, keeps_version;
} orders[] = {
	{"refresh", refresh, 3, false, true},
	{"forced refresh", force, 1, false, false},
	{"pin", pin, 2, true, true},
	{"unpin", unpin, 3, false, false},
	{"suspend", suspend, 1, false, true},
	{"resume", resume, 2, false, true},
	{"rollback", roll_back, 3, false, false},
	{"override", override, 3, false, true},
	{"drop", drop_override, 2, false, true},
	{"forget revs", forget_revs, 1, false, true},
	{"questions", ask, 4, false, true},
	{"questions that take long", ask_later, 4, false, true},
	{"wait", wait_for_run, 2, false, true},
};

static struct config *find_config(const struct subject *s)
{
	const struct agent *a = &s->host->agent;

	for (size_t i = 0; a->configs && i < a->settings->config_count; i++)
		if (strcmp(config_name(a->configs[i]), s->name) == 0)
			return a->configs[i];
	return NULL;
}

static void give_order(void *arg)
{
	struct order *o = arg;
	char why[FILE_WHY] = "";

	o->config = find_config(o->subject);
	if (!o->config)
		return;
	if (world_once_in(STREAM_OPERATOR, sim_programs.short_orders)) {
		world_faults.memory_first = world.allocations + 1 + draw(draw(1) ? 8 : 80);
		world_faults.memory_count = 1;
	}
	o->result = o->act(o, why);
	world_trace("%s of %s: %d %s", o->name, o->subject->name, o->result, why);
	o->subject->unsaved |= o->result == -EIO;
	if (o->result < 0 && !why[0])
		subject_report_flaw(
			"P7 %s: %s is refused without a word", o->subject->name, o->name);
}

static int order(struct subject *s, size_t i)
{
	struct order o = {
		.subject = s, .act = orders[i].act, .name = orders[i].name, .result = -ESRCH};

	host_call(s->host, give_order, &o);
	return o.result;
}

/* ---- what was answered must be so ---- */

static int64_t wall_ms(void)
{
	return (int64_t)(world.now_us + (uint64_t)world.wall_offset_us) / 1000;
}

/* Until when an override of that key is in force; 0 = there is none. */
static int64_t find_override(const struct config_status *status, size_t i)
{
	char key[24];

	snprintf(key, sizeof(key), "over.k%zu", i);
	for (size_t j = 0; j < status->override_count; j++)
		if (strcmp(status->overrides[j].key, key) == 0)
			return status->overrides[j].until_ms ? status->overrides[j].until_ms
							     : INT64_MAX;
	return 0;
}

static void check_decisions(struct subject *s, const struct config_status *status)
{
	int64_t now_ms = s->clock_steps || s->unsaved ? INT64_MAX : wall_ms();

	if (!status->version->generation) /* the ledger could not be read yet */
		return;
	if (s->pin_until_ms > now_ms && !status->pin)
		subject_report_flaw("%s: the pin is lost", s->name);
	s->pin_until_ms = !status->pin            ? 0
			  : status->pin->until_ms ? status->pin->until_ms
						  : INT64_MAX;
	for (size_t i = 0; i < SUBJECT_OVERRIDES; i++) {
		int64_t until_ms = find_override(status, i);

		if (s->override_until_ms[i] > now_ms && !until_ms && !s->probed)
			subject_report_flaw("%s: the override of k%zu is lost", s->name, i);
		s->override_until_ms[i] = until_ms;
	}
}

/* As the watchdog: an agent that says twice that it does not make progress is ended. */
static void check_progress(struct subject *s, struct config *c)
{
	const char *stuck = config_stuck(c, world_now_ms());

	if (!stuck)
		s->stuck_us = 0;
	else if (!s->stuck_us)
		s->stuck_us = world.now_us;
	else if (world.now_us > s->stuck_us + 30000000)
		subject_report_flaw("%s is stuck: %s", s->name, stuck);
}

static void look_at_config(void *arg)
{
	struct subject *s = arg;
	struct config *c = find_config(s);
	struct config_status status;
	char why[FILE_WHY];

	if (!c)
		return;
	config_status(c, &status);
	if (config_change_error(c) && !config_change_error(c)[0])
		subject_report_flaw("P7 %s: a change failed without a word", s->name);
	if (status.version->generation && config_check_change(c, "", why) != -EBUSY)
		check_decisions(
			s, &status); /* else it may not have read them yet, or changes them */
	check_progress(s, c);
	if (s->rolling_us && world.now_us > s->rolling_us + GRACE_US)
		s->rolling_us = 0;
	if (s->held_us && world.now_us > s->held_us && !s->at_hold.there && !s->foreign)
		s->at_hold = s->last;
}

void operator_look(struct subject *s)
{
	bool stopped = world.now_us < s->host->stopped_until_us; /* so is its watchdog */

	if (!s->removed && s->host->state == HOST_UP && !stopped)
		host_call(s->host, look_at_config, s);
}

void operator_act(struct subject *s)
{
	unsigned sum = 0, drawn;
	size_t i = 0;

	for (size_t j = 0; j < COUNT(orders); j++)
		sum += orders[j].weight;
	for (drawn = (unsigned)draw(sum - 1); drawn >= orders[i].weight; i++)
		drawn -= orders[i].weight;
	order(s, i);
}

static size_t find_order(int (*act)(struct order *o, char why[FILE_WHY]))
{
	size_t i = 0;

	while (orders[i].act != act)
		i++;
	return i;
}

/* Until the config is there, a reload may wait, and what was decided is known: it is read with the
 * state directory, at a pull. */
static void insist(void *arg, uint64_t i)
{
	struct subject *s = arg;
	int r = s->host->state == HOST_UP ? order(s, i) : 0;

	if (r == -ESRCH || r == -ENODATA)
		world_at(world.now_us + GRACE_US, insist, s, i);
}

void operator_end(struct subject *s)
{
	let_go(s);
	if (s->removed || s->host->state != HOST_UP)
		return;
	insist(s, find_order(unpin));
	insist(s, find_order(resume));
	if (s->damaged)
		order(s, find_order(forget_revs));
}

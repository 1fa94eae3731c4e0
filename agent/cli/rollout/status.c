/* The state of a rollout. Surprising: a document that was written by hand has one wave: the hosts
 * that take a new version now. */
#include "cli/rollout/status.h"

#include <errno.h>
#include <stdio.h>

#include "text/json_writer.h"
#include "settings/value.h"
#include "cli/fleet/show.h"
#include "cli/rollout/drive.h"
#include "cli/text/table.h"
#include "cli/text/words.h"

static size_t count_waves(const struct plan *p)
{
	return p->state == PLAN_NONE ? 1 : p->wave_count;
}

/* NULL: the newest one. */
static const char *wanted_version(const struct plan *p)
{
	return p->version[0] ? p->version : NULL;
}

/* ---- text ---- */

static void append_plan(const struct plan *p, struct buffer *out)
{
	char text[24];

	if (p->version[0]) {
		buffer_append_string(out, " of ");
		words_text(out, p->version);
	}
	buffer_printf(
		out, " is %s, wave %zu of %zu", plan_state_name(p->state), p->wave, p->wave_count);
	buffer_printf(out, ", since ");
	words_time(out, p->since_ms);
	buffer_append_string(out, " by ");
	words_text(out, p->by);
	buffer_append_string(out, "\n");
	if (p->why[0]) {
		buffer_append_string(out, "  ");
		words_text(out, p->why);
		buffer_append_string(out, "\n");
	}
	if (p->state == PLAN_RUNNING || p->state == PLAN_PAUSED) {
		buffer_printf(out, "  each wave is watched for %s",
			settings_duration_text(p->every_ms, text));
		buffer_printf(out, "; aborted at %s%% of its hosts\n",
			plan_percent_text(p->abort_at, text));
	}
}

static bool is_driven(const struct status_rollout *s)
{
	return s->driven_ms && s->wall_ms - s->driven_ms < DRIVE_SILENT_MS;
}

/* Of a rollout that runs. */
static void append_driver(const struct status_rollout *s, struct buffer *out)
{
	uint64_t ago_ms = s->driven_ms < s->wall_ms ? (uint64_t)(s->wall_ms - s->driven_ms) : 0;

	if (is_driven(s)) {
		buffer_printf(out, "  the command that drives it spoke %us ago\n",
			(unsigned)(ago_ms / 1000));
		return;
	}
	if (!s->driver_known) {
		buffer_append_string(out,
			"  whether a command drives it is unknown: there is no note of it in ");
		words_text(out, s->key);
		buffer_append_string(out, "#driver that can be read\n");
		return;
	}
	buffer_append_string(out, "  nobody drives it: the command that did ");
	if (s->driven_ms) {
		buffer_append_string(out, "spoke last at ");
		words_time(out, s->driven_ms);
	} else {
		buffer_append_string(out, "has ended");
	}
	buffer_append_string(out, ": `pullet rollout resume ");
	words_text(out, s->config);
	buffer_append_string(out, "` goes on\n");
}

static void append_status_head(const struct status_rollout *s, struct buffer *out)
{
	words_text(out, s->config);
	if (s->plan->state != PLAN_NONE) {
		buffer_append_string(out, ": the rollout");
		append_plan(s->plan, out);
		if (s->plan->state == PLAN_RUNNING)
			append_driver(s, out);
		return;
	}
	buffer_append_string(out, s->revision ? ": a rollout document that was written by hand: "
					      : ": no rollout document at ");
	words_text(out, s->key);
	buffer_append_string(out, s->revision ? "\n" : ": all hosts take each version\n");
}

static void add_wave(
	struct table *t, const char *name, const char *percent, const struct tally_wave *w)
{
	table_add(t, name, "");
	table_add(t, percent, "");
	table_printf(t, "%zu", w->hosts);
	for (int i = 0; i < TALLY_STANDS; i++)
		table_printf(t, "%zu", w->stands[i]);
}

static void append_waves(const struct status_rollout *s, struct buffer *out)
{
	static const char *const heads[] = {"WAVE", "PERCENT", "HOSTS", "RUN IT", "REJECTED",
		"HELD", "UNDECIDED", "TROUBLED", "EXCUSED"};
	const struct plan *p = s->plan;
	char name[32], percent[24], text[16];
	struct table t;

	table_init(&t, heads, sizeof(heads) / sizeof(heads[0]));
	for (size_t i = 0; p->state != PLAN_NONE && i < p->wave_count; i++) {
		snprintf(name, sizeof(name), "%zu%s", i + 1, i + 1 == p->wave ? " *" : "");
		snprintf(percent, sizeof(percent), "%s%%", plan_percent_text(p->waves[i], text));
		add_wave(&t, name, percent, &s->tally->waves[i]);
	}
	if (p->state == PLAN_NONE)
		add_wave(&t, "now", "-", &s->tally->waves[0]);
	if (s->tally->outside.hosts)
		add_wave(&t, "none", "-", &s->tally->outside);
	buffer_append_string(out, "  ");
	table_head(&t, SIZE_MAX, out);
	for (size_t i = 0; i * t.columns < t.count; i++) {
		buffer_append_string(out, "  ");
		table_row(&t, i, out);
	}
	if (table_error(&t))
		out->error = table_error(&t);
	table_fini(&t);
}

int status_show(const struct status_rollout *s, struct buffer *out)
{
	struct roster_sum sum;

	append_status_head(s, out);
	append_waves(s, out);
	if (s->count == 0)
		return out->error;
	if (roster_sum(s->rows, s->count, wanted_version(s->plan), &sum))
		return -ENOMEM;
	buffer_append_string(out, "\n");
	fleet_headline(&sum, out);
	fleet_versions(&sum, out);
	roster_sum_fini(&sum);
	return out->error;
}

/* ---- JSON ---- */

static void json_plan_percent(struct buffer *out, const char *name, uint32_t percent)
{
	char text[16];

	json_writer_member(out, name);
	buffer_append_string(out, plan_percent_text(percent, text));
}

static void json_counts(struct buffer *out, const struct tally_wave *w)
{
	json_writer_number(out, "hosts", w->hosts);
	for (int i = 0; i < TALLY_STANDS; i++)
		json_writer_number(out, tally_stand_name((enum tally_stand)i), w->stands[i]);
}

static void json_plan(struct buffer *out, const struct status_rollout *s)
{
	const struct plan *p = s->plan;

	json_writer_text(out, "version", wanted_version(p));
	json_plan_percent(out, "percent", plan_percent(p));
	json_writer_number(out, "wave", p->wave);
	json_writer_number(out, "every_ms", p->every_ms);
	json_plan_percent(out, "abort_at", p->abort_at);
	json_writer_number(out, "timeout_ms", p->timeout_ms);
	if (p->state == PLAN_RUNNING && s->driver_known) {
		json_writer_boolean(out, "driven", is_driven(s));
		json_writer_integer(out, "driven_ms", s->driven_ms);
	}
	json_writer_text(out, "by", p->by);
	json_writer_integer(out, "since_ms", p->since_ms);
	json_writer_text(out, "why", p->why[0] ? p->why : NULL);
}

int status_json(const struct status_rollout *s, struct buffer *out)
{
	const struct plan *p = s->plan;
	struct roster_sum sum;

	json_writer_begin_object(out, NULL);
	json_writer_text(out, "config", s->config);
	json_writer_text(out, "document", s->key);
	json_writer_number(out, "revision", s->revision);
	json_writer_text(out, "state", plan_state_name(p->state));
	if (p->state != PLAN_NONE)
		json_plan(out, s);
	json_writer_begin_array(out, "waves");
	for (size_t i = 0; i < count_waves(p); i++) {
		json_writer_begin_object(out, NULL);
		if (p->state != PLAN_NONE)
			json_plan_percent(out, "percent", p->waves[i]);
		json_counts(out, &s->tally->waves[i]);
		json_writer_end_object(out);
	}
	json_writer_end_array(out);
	json_writer_begin_object(out, "outside");
	json_counts(out, &s->tally->outside);
	json_writer_end_object(out);
	if (s->count) {
		if (roster_sum(s->rows, s->count, wanted_version(p), &sum))
			return -ENOMEM;
		json_writer_member(out, "fleet");
		fleet_json(&sum, out);
		roster_sum_fini(&sum);
	}
	json_writer_end_object(out);
	return buffer_append_string(out, "\n");
}

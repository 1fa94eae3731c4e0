/*
 * Why the current version is current, and what would change it, as JSON: the facts that the agent
 * decides by, what decide() says of them, and sentences.
 *
 * Surprising: nothing is decided or remembered for this; the same two calls as after each event are
 * made once more.
 */
#include "config/explain.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/inspect.h"
#include "text/json_writer.h"

static const char *const phases[] = {
	[STEP_LOAD] = "validate", [STEP_PROGRAMS] = "programs", [STEP_SHOW] = "publish"};
static const char *const gates[] = {[GATE_OPEN] = "open",
	[GATE_VERDICT] = "verdict",
	[GATE_PIN] = "pin",
	[GATE_ROLLOUT] = "rollout"};

bool explain_is_resting(const struct situation *s, enum decide_row row)
{
	struct situation alone = *s;

	alone.resting = ~(1u << row);
	return s->resting & 1u << row && decide(&alone).row == row;
}

int64_t explain_step_start(const struct explanation *e)
{
	uint64_t now_ms = e->config->env->sys->now_ms(), since_ms = e->config->step.since_ms;

	return e->wall_ms - (int64_t)(now_ms > since_ms ? now_ms - since_ms : 0);
}

static void write_facts(const struct explanation *e)
{
	const struct situation *s = &e->situation;
	const struct step *step = &e->config->step;
	struct decision d = decide(s);

	json_writer_begin_object(e->out, "facts");
	for (size_t i = 0; i < SITUATION_FACTS; i++)
		json_writer_text(e->out, situation_facts[i].name,
			situation_facts[i].values[situation_value(s, &situation_facts[i])]);
	json_writer_end_object(e->out);
	json_writer_text(e->out, "row", decide_row_name(d.row));
	json_writer_text(e->out, "action", decide_action_name(d.action));
	json_writer_text(e->out, "origin", d.row == ROW_NONE ? NULL : decide_origin_name(d.origin));
	json_writer_text(e->out, "gate", s->latest == LATEST_NEW ? gates[decide_gate(s)] : NULL);
	json_writer_begin_array(e->out, "resting");
	for (unsigned row = ROW_NONE + 1; row < ROWS; row++)
		if (explain_is_resting(s, (enum decide_row)row))
			json_writer_text(e->out, NULL, decide_row_name((enum decide_row)row));
	json_writer_end_array(e->out);
	if (step->decision.row == ROW_NONE) {
		json_writer_null(e->out, "under_way");
		return;
	}
	json_writer_begin_object(e->out, "under_way");
	json_writer_text(e->out, "row", decide_row_name(step->decision.row));
	json_writer_text(e->out, "phase", phases[step->phase]);
	json_writer_number(e->out, "since_ms", (unsigned long long)explain_step_start(e));
	json_writer_end_object(e->out);
}

static void begin_explanation(struct config *c, enum audience audience, bool all,
	struct buffer *out, struct explanation *ret)
{
	*ret = (struct explanation){.config = c,
		.audience = audience,
		.all = all,
		.wall_ms = c->env->sys->wall_ms(),
		.out = out};
	settle_read_facts(c, &ret->situation);
	if (all)
		config_status(c, &ret->status);
}

static int append_sentences(const struct explanation *e, const char *name)
{
	json_writer_begin_array(e->out, name);
	explain_append_sentences(e);
	return json_writer_end_array(e->out);
}

int explain_config(struct config *c, enum audience audience, struct buffer *out)
{
	struct explanation e;

	begin_explanation(c, audience, true, out, &e);
	json_writer_begin_object(out, NULL);
	json_writer_text(out, "name", c->settings->name);
	json_writer_number(out, "generation", c->current.version.generation);
	write_facts(&e);
	append_sentences(&e, "sentences");
	return json_writer_end_object(out);
}

int explain_forward(struct config *c, struct buffer *out)
{
	struct explanation e;

	begin_explanation(c, AUDIENCE_OPERATOR, true, out, &e);
	json_writer_begin_array(out, "forward");
	explain_way_forward(&e);
	return json_writer_end_array(out);
}

int explain_news(struct config *c, enum audience audience, struct buffer *out)
{
	struct explanation e;

	begin_explanation(c, audience, false, out, &e);
	return append_sentences(&e, "explanation");
}

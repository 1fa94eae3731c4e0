/*
 * The world around the table: one event, what follows from it at once, and the step that the table
 * then begins. Surprising: a commit is one state file; what it implies (a verdict, where the pin
 * is) follows when it is visible, or at the next start. A start knows no current version until it
 * has shown the one of the newest state file, again or for the first time.
 */
#include "core.h"

#include <string.h>

#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* ---- a step begins ---- */

static void begin_step(struct world *w, struct decision d)
{
	struct world_step step = {.row = (uint8_t)d.row,
		.action = (uint8_t)d.action,
		.origin = (uint8_t)d.origin,
		.content = w->current,
		.overrides = w->overrides,
		.phase = PHASE_CHECKING};

	switch (d.action) {
	case ACTION_ROLL_BACK:
		step.content = w->older;
		break;
	case ACTION_PUBLISH:
		step.content = w->latest;
		step.forced = w->latest_forced;
		if (step.forced) /* an order that is newer than the rollback */
			w->rolled_back &= (uint8_t) ~(1u << step.content);
		break;
	case ACTION_SHOW:
		step.content = w->saved.content;
		step.overrides = w->saved.overrides;
		step.phase = PHASE_SHOWING;
		break;
	case ACTION_RECOMPOSE: /* an operator asks for the other set */
		if (d.origin == ORIGIN_OPERATOR)
			step.overrides = !w->overrides;
		break;
	default:
		step.overrides = w->current_overrides;
		step.phase = PHASE_SHOWING;
	}
	w->step = step;
}

/* Beside the steps: the reload after a publication, then the probe. */
static enum follow_state decide_follow(const struct profile *p, const struct world *w)
{
	if (w->mode == MODE_RETIRING || !w->started)
		return FOLLOW_NOTHING;
	if (!w->notified && !seed_has(BUG_NOBODY_IS_NOTIFIED))
		return w->resting & RESTING_NOTIFY ? FOLLOW_NOTHING : FOLLOW_NOTIFYING;
	if (w->notified && p->has_probe && !w->proven &&
		world_verdict(w, (enum document)w->current) != VERDICT_PROBE)
		return FOLLOW_PROBING;
	return FOLLOW_NOTHING;
}

/* After each event: answers a late request, decides, begins. Nothing else begins a step. */
static void settle_world(const struct profile *p, struct world *w, struct happened *ret)
{
	const struct world_request none = {REQUEST_NONE, DOCUMENT_NONE};

	if (w->request.what && !w->step.row &&
		(w->request.about != w->current ||
			(w->request.what == REQUEST_ROLL_BACK && !w->older))) {
		ret->answered = true;
		w->request = none;
	}
	if (w->mode == MODE_ACTIVE && w->pull == PULL_WANTED)
		w->pull = PULL_RUNNING;
	if (!w->step.row) {
		ret->begun_in = world_situation(p, w);
		ret->begun = seeded_decide(&ret->begun_in);
		if (ret->begun.row)
			begin_step(w, ret->begun);
		else if (w->pull == PULL_IDLE && !seed_has(BUG_FORCED_FOR_EVER))
			w->latest_forced = false; /* an order ends with its run */
	}
	if (w->follow == FOLLOW_NOTHING)
		w->follow = (uint8_t)decide_follow(p, w);
}

/* ---- a step goes on ---- */

static void end_step(struct world *w)
{
	memset(&w->step, 0, sizeof(w->step));
}

/* What is saved cannot be shown: nor what has the same bytes, and nothing is saved again for it.
 * Where nothing is current yet, it comes before what the servers have. */
static void rest_beside_saved_version(struct world *w)
{
	static const unsigned again = 1u << ROW_HARMFUL_IS_ROLLED_BACK | 1u << ROW_OTHER_OVERRIDES |
				      1u << ROW_OTHER_SETTINGS;

	w->resting |= 1u << ROW_SAVED_IS_SHOWN;
	if (!seed_has(BUG_SAVED_IS_SAVED_AGAIN))
		w->resting |= w->saved.origin == ORIGIN_PROBE
				      ? again
				      : again & ~(1u << ROW_HARMFUL_IS_ROLLED_BACK);
	if ((!w->started || w->saved.content == w->latest) && !seed_has(BUG_SAVED_LETS_LATEST_PASS))
		w->resting |= 1u << ROW_LATEST_IS_PUBLISHED;
}

/* What failed rests. Another version than the one that failed has not been tried. */
static void rest_failed_row(struct world *w)
{
	const struct world_step *step = &w->step;

	if (step->action != ACTION_PUBLISH || step->content == w->latest ||
		seed_has(BUG_OTHER_VERSION_RESTS))
		w->resting |= (uint16_t)(1u << step->row);
	if (w->saved.present && step->phase == PHASE_SHOWING)
		rest_beside_saved_version(w);
}

/* Ends a step whose failure says nothing about the document. The operator is answered; all others
 * rest. */
static void fail_step(struct world *w, struct happened *ret)
{
	bool is_operators = w->step.origin == ORIGIN_OPERATOR;

	if (!is_operators)
		rest_failed_row(w);
	else if (!seed_has(BUG_FAILED_REQUEST_IS_FORGOTTEN))
		ret->answered = ret->refused = true;
	if (is_operators) {
		memset(&w->request, 0, sizeof(w->request));
		if (w->step.phase == PHASE_SHOWING && !seed_has(BUG_REFUSED_STAYS_SAVED))
			memset(&w->saved, 0, sizeof(w->saved));
	}
	/* one that was asked while the disk took the version */
	if (w->pin && w->started && !seed_has(BUG_FAILURE_LOSES_PIN))
		w->pin = w->current;
	end_step(w);
}

/* No older revision than this one is accepted. */
static void raise_floor(const struct profile *p, struct world *w, uint8_t content)
{
	if (p->nature == NATURE_REVISIONS)
		w->floor = MAX(w->floor, content);
}

/* The checks accepted the document. The gate is asked again, about the document of the step; then
 * the commit. */
static void commit_world_step(const struct profile *p, struct world *w, struct happened *ret)
{
	const struct world_step *step = &w->step;
	struct world now = *w;
	struct situation s;

	if (step->origin == ORIGIN_PULL) {
		now.latest = step->content;
		now.latest_forced = step->forced;
		now.latest_rollout = w->latest == step->content ? w->latest_rollout : ROLLOUT_NONE;
	}
	s = world_situation(p, &now);
	if (!seeded_may_commit(&s, (enum decide_origin)step->origin)) {
		end_step(w);
		return;
	}
	if (step->origin == ORIGIN_PULL && !seed_has(BUG_REVISION_AFTER_SHOW))
		raise_floor(p, w, step->content);
	ret->committed = true;
	ret->commit = *step;
	w->saved = (struct world_saved){
		true, step->content, step->overrides, step->origin, w->current, true, false, false};
	w->step.phase = PHASE_SHOWING;
}

/* A rollback goes to the last version that was proven, or the last. */
static void keep_older(struct world *w)
{
	if (w->saved.origin == ORIGIN_OPERATOR || w->saved.origin == ORIGIN_PROBE)
		w->older = DOCUMENT_NONE;
	else if (w->proven || !w->older)
		w->older = w->current;
	if (w->older == w->saved.content)
		w->older = DOCUMENT_NONE;
}

/* Who is to be notified of the step's version, and whether it needs a probe. */
static void renew_follow(struct world *w)
{
	const struct world_saved *saved = &w->saved;
	bool came_back = (saved->origin == ORIGIN_PROBE || saved->origin == ORIGIN_OPERATOR) &&
			 saved->content != saved->replaces;

	w->notified = false;
	w->proven = came_back && !seed_has(BUG_ROLLED_BACK_IS_PROBED);
	w->follow = w->follow == FOLLOW_NOTIFYING || w->follow == FOLLOW_STALE ? FOLLOW_STALE
									       : FOLLOW_NOTHING;
}

/* Readers see it. The ledger does not know yet, the state file does. */
static void show_step(struct world *w, struct happened *ret)
{
	const struct world_saved *saved = &w->saved;

	w->changed = false;
	if (w->step.action == ACTION_HEAL) {
		end_step(w);
		return;
	}
	if (!saved->visible)
		renew_follow(w);
	if (saved->content != w->current)
		keep_older(w);
	ret->shown = true;
	ret->show = *saved;
	w->step.phase = PHASE_RECORDING;
	w->current = saved->content;
	w->current_overrides = saved->overrides;
	w->fits = saved->fits;
	w->started = true;
	w->saved.visible = true;
	if (w->latest == w->current && !seed_has(BUG_FORCED_FOR_EVER))
		w->latest_forced = false; /* used up, whichever row showed it */
	w->rolled_back &= (uint8_t) ~(1u << saved->content);
	if (saved->origin == ORIGIN_OPERATOR && saved->content != saved->replaces)
		w->rolled_back |= (uint8_t)(1u << saved->replaces);
	if (saved->origin == ORIGIN_PULL)
		w->highest = MAX(w->highest, saved->content);
}

/* What a state file implies goes to the ledger, once; a pin moves with an operator's version. */
static void adopt_saved(const struct profile *p, struct world *w)
{
	const struct world_saved saved = w->saved;
	bool is_operators = saved.origin == ORIGIN_OPERATOR;

	if (saved.adopted)
		return;
	w->saved.adopted = true;
	if (w->pin && is_operators && !seed_has(BUG_PIN_STAYS_BEHIND))
		w->pin = saved.content;
	if (saved.content != saved.replaces) {
		w->verdicts[saved.content] = VERDICT_FREE;
		if (is_operators && saved.replaces && !seed_has(BUG_OPERATOR_KEEPS_NO_VERDICT))
			w->verdicts[saved.replaces] = VERDICT_OPERATOR;
	}
	if (is_operators)
		w->overrides = saved.overrides;
	if (saved.origin == ORIGIN_PULL && !seed_has(BUG_REVISION_AFTER_SHOW))
		raise_floor(p, w, saved.content);
}

/* The version is visible, and the ledger has it. */
static void record_step(const struct profile *p, struct world *w, struct happened *ret)
{
	bool is_operators = w->saved.origin == ORIGIN_OPERATOR;

	adopt_saved(p, w);
	if (w->step.action == ACTION_PUBLISH) /* for a seeded bug: else it was done */
		raise_floor(p, w, w->saved.content);
	w->resting = 0;
	memset(&w->saved, 0, sizeof(w->saved));
	end_step(w);
	if (is_operators && w->request.what) {
		ret->answered = true;
		memset(&w->request, 0, sizeof(w->request));
	}
}

static void end_checks(const struct profile *p, struct world *w, struct happened *ret)
{
	enum document document = (enum document)w->step.content;

	if (w->step.origin != ORIGIN_PULL || !world_rejects(p, w, document)) {
		commit_world_step(p, w, ret);
		return;
	}
	w->latest_forced = false;
	if (p->nature == NATURE_REJECTED && !seed_has(BUG_NO_VERDICT_IS_KEPT))
		w->verdicts[document] = VERDICT_REJECTED;
	if (p->nature == NATURE_REVISIONS)
		rest_failed_row(w);
	end_step(w);
}

/* ---- ends of pulls, of lives ---- */

static void end_pull(struct world *w)
{
	bool is_new = w->latest != w->server, is_other = !w->started || w->server != w->current,
	     may_try = !w->saved.present || (w->started && w->saved.content != w->server);

	if (is_new || w->pull_forced)
		w->latest_forced = w->pull_forced && is_other;
	if (may_try && !(is_new && seed_has(BUG_NEW_VERSION_RESTS)) &&
		!seed_has(BUG_NOTHING_STOPS_RESTING))
		w->resting &= (uint16_t) ~(1u << ROW_LATEST_IS_PUBLISHED);
	w->latest = w->server;
	w->latest_rollout = w->rollout;
	w->pull = PULL_IDLE;
	w->pull_forced = false;
}

static void end_world_probe(const struct profile *p, struct world *w)
{
	w->follow = FOLLOW_NOTHING;
	if (p->nature != NATURE_HARMFUL || w->current != DOCUMENT_X)
		w->proven = true;
	else
		w->verdicts[w->current] =
			seed_has(BUG_PROBE_KEEPS_NO_VERDICT) ? VERDICT_FREE : VERDICT_PROBE;
}

/* Forgets what is volatile. */
static void forget_volatile(struct world *w)
{
	w->resting = 0;
	w->latest = w->latest_forced = w->latest_rollout = 0;
	w->pull = PULL_WANTED;
	w->pull_forced = false;
	memset(&w->request, 0, sizeof(w->request));
	end_step(w);
	w->follow = FOLLOW_NOTHING;
	w->mode = MODE_ACTIVE;
}

/* The newest state file is replayed into the ledger, and shown; if it is not what is pinned, the
 * current version's, which is older. */
static void start_world_again(const struct profile *p, struct world *w)
{
	const struct world_saved current = {w->current, w->current, w->current_overrides,
		ORIGIN_START, w->current, w->fits, true, true};

	forget_volatile(w);
	w->started = false;
	if (!w->saved.present ||
		(w->pin && w->pin != w->saved.content && w->saved.origin != ORIGIN_OPERATOR))
		w->saved = current;
	else if (!seed_has(BUG_START_REPLAYS_NOTHING))
		adopt_saved(p, w);
}

/* Retires as soon as the disk has nothing of it; the successor begins. */
static void retire_world(const struct profile *p, struct world *w, struct happened *ret)
{
	bool at_disk = w->step.row && w->step.phase != PHASE_CHECKING;

	if (w->mode != MODE_RETIRING || (at_disk && !seed_has(BUG_RETIREMENT_SKIPS_DISK)))
		return;
	ret->dropped = w->step.row && w->step.phase == PHASE_SHOWING;
	if (w->request.what)
		ret->answered = ret->refused = true;
	w->fits = w->saved.fits = false;
	start_world_again(p, w);
}

/* ---- events ---- */

static void apply_arrival(const struct profile *p, struct world *w, enum event event)
{
	bool at_disk =
		w->step.row && w->step.phase == PHASE_SHOWING && w->step.action != ACTION_HEAL;

	switch (event) {
	case EVENT_FORCED_REFRESH:
		w->pull_forced = true; /* fallthrough */
	case EVENT_TICK:
		w->pull = MAX(w->pull, PULL_WANTED);
		if (!seed_has(BUG_NOTHING_STOPS_RESTING)) /* that one when they have answered */
			w->resting &= 1u << ROW_LATEST_IS_PUBLISHED;
		break;
	case EVENT_ROLLBACK_REQUESTED:
		w->request = (struct world_request){REQUEST_ROLL_BACK, w->current};
		break;
	case EVENT_OVERRIDE_REQUESTED:
		w->request = (struct world_request){REQUEST_OVERRIDES, w->current};
		break;
	case EVENT_PINNED: /* names the version that the disk is taking */
		w->pin =
			at_disk && !seed_has(BUG_PIN_NAMES_CURRENT) ? w->saved.content : w->current;
		break;
	case EVENT_UNPINNED:
		w->pin = DOCUMENT_NONE;
		break;
	case EVENT_OVERRIDES_EXPIRED:
		w->overrides = false;
		break;
	case EVENT_FILES_CHANGED:
		w->changed = true;
		break;
	case EVENT_RULES_CHANGED: /* seen at a tick: the servers may have another version */
		w->new_rules = !w->new_rules;
		w->resting |= 1u << ROW_LATEST_IS_PUBLISHED;
		break;
	case EVENT_ROLLOUT_CHANGED:
		w->rollout = w->rollout == ROLLOUT_IN ? ROLLOUT_OUT : ROLLOUT_IN;
		break;
	case EVENT_CRASHED:
		start_world_again(p, w);
		break;
	case EVENT_RETIRED:
		w->mode = MODE_RETIRING;
		break;
	default:
		w->server = (uint8_t)(DOCUMENT_A + (event - EVENT_SERVER_HAS_A));
	}
}

static void apply_ending(
	const struct profile *p, struct world *w, enum event event, struct happened *ret)
{
	switch (event) {
	case EVENT_PULL_SUCCEEDED:
		end_pull(w);
		break;
	case EVENT_PULL_FAILED:
		w->pull = PULL_IDLE;
		w->pull_forced = false;
		break;
	case EVENT_CHECKS_ENDED:
		end_checks(p, w, ret);
		break;
	case EVENT_CHECKS_FAILED:
	case EVENT_SHOW_FAILED:
		fail_step(w, ret);
		break;
	case EVENT_SHOW_SUCCEEDED:
		show_step(w, ret);
		break;
	case EVENT_RECORD_ENDED:
		record_step(p, w, ret);
		break;
	case EVENT_NOTIFY_SUCCEEDED:
		if (w->follow == FOLLOW_NOTIFYING)
			w->notified = true;
		w->follow = FOLLOW_NOTHING;
		break;
	case EVENT_NOTIFY_FAILED:
		w->follow = FOLLOW_NOTHING;
		w->resting |= RESTING_NOTIFY;
		break;
	default:
		end_world_probe(p, w);
	}
}

struct world world_apply(
	const struct profile *p, struct world w, enum event event, struct happened *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (event < EVENT_PULL_SUCCEEDED)
		apply_arrival(p, &w, event);
	else
		apply_ending(p, &w, event, ret);
	retire_world(p, &w, ret);
	settle_world(p, &w, ret);
	return w;
}

struct world world_begin(const struct profile *p)
{
	struct world w;
	struct happened ignored;

	memset(&w, 0, sizeof(w));
	w.server = DOCUMENT_A;
	w.rollout = p->has_rollout ? ROLLOUT_OUT : ROLLOUT_NONE;
	w.notified = w.proven = w.fits = true;
	forget_volatile(&w);
	settle_world(p, &w, &ignored);
	return w;
}

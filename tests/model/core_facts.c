/*
 * The facts of a world, as the table sees them. Surprising: the table is not shown documents, only
 * how they compare.
 */
#include "core.h"

enum situation_verdict world_verdict(const struct world *w, enum document document)
{
	enum situation_verdict verdict = (enum situation_verdict)w->verdicts[document];

	if (verdict == VERDICT_REJECTED && w->new_rules && !seed_has(BUG_VERDICT_OUTLIVES_RULES))
		return VERDICT_FREE;
	return verdict;
}

/* What a pull brought is late when the servers have another one by now; but where nothing is
 * current yet, it is better than that. */
static enum situation_saved find_saved(const struct world *w)
{
	const struct world_saved *saved = &w->saved;
	bool may_be_late =
		saved->origin == ORIGIN_PULL && (w->started || seed_has(BUG_LAST_GOOD_IS_LATE));

	if (!saved->present)
		return SAVED_NONE;
	if (w->pin && w->pin != saved->content)
		return SAVED_HELD;
	return may_be_late && w->latest && w->latest != saved->content ? SAVED_LATE : SAVED_WANTED;
}

struct situation world_situation(const struct profile *p, const struct world *w)
{
	struct situation s = {
		.mode = (enum situation_mode)w->mode,
		.request = (enum situation_request)w->request.what,
		.pin = w->pin ? PIN_SET : PIN_NONE,
		.saved = find_saved(w),
		.current = CURRENT_NONE,
		.older = w->older ? OLDER_THERE : OLDER_NONE,
		.latest = LATEST_UNKNOWN,
		.verdict = w->latest ? world_verdict(w, (enum document)w->latest) : VERDICT_FREE,
		.force = w->latest_forced ? FORCE_ASKED : FORCE_NONE,
		.rollout = (enum situation_rollout)w->latest_rollout,
		.overrides =
			w->overrides == w->current_overrides ? OVERRIDES_SAME : OVERRIDES_OTHER,
		.settings = w->fits ? SETTINGS_SAME : SETTINGS_OTHER,
		.place = w->changed ? PLACE_CHANGED : PLACE_AS_PUBLISHED,
		.drift = p->drift,
		.resting = w->resting,
	};

	if (w->started)
		s.current = world_verdict(w, (enum document)w->current) == VERDICT_PROBE
				    ? CURRENT_HARMFUL
				    : CURRENT_GOOD;
	if (w->latest)
		s.latest = w->started && w->latest == w->current ? LATEST_SAME : LATEST_NEW;
	return s;
}

bool world_rejects(const struct profile *p, const struct world *w, enum document document)
{
	if (p->nature == NATURE_REJECTED)
		return document == DOCUMENT_X && !w->new_rules;
	return p->nature == NATURE_REVISIONS && document < w->floor;
}

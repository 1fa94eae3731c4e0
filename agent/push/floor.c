/*
 * Two moments: the end of the config's floor, and the end of the time that the agent's budget has
 * spent. Surprising: a pull is paid for when it has ended in vain, not when it begins, so that a
 * thousand honest messages for a thousand configs do not wait.
 */
#include "push/floor.h"

void push_floor_init(struct push_floor *f, uint64_t min_ms, struct push_budget *budget)
{
	*f = (struct push_floor){.budget = budget, .min_ms = min_ms};
}

static uint64_t longest_floor_ms(const struct push_floor *f)
{
	return f->min_ms > PUSH_FLOOR_MAX_MS ? f->min_ms : PUSH_FLOOR_MAX_MS;
}

/* No hint has caused a pull of late: what they brought before says nothing any more. */
static bool is_quiet(const struct push_floor *f, uint64_t now_ms)
{
	return now_ms - f->hinted_ms > PUSH_FLOOR_QUIET_MS + longest_floor_ms(f);
}

uint64_t push_floor_ms(const struct push_floor *f, uint64_t now_ms)
{
	bool futile = f->futile_ms && !is_quiet(f, now_ms);
	uint64_t floor_ms = f->min_ms, since_ms = futile ? f->futile_ms : now_ms;

	for (; since_ms + PUSH_FLOOR_PATIENCE_MS <= now_ms; since_ms += PUSH_FLOOR_PATIENCE_MS) {
		floor_ms *= 2;
		if (floor_ms == 0 || floor_ms >= longest_floor_ms(f))
			break;
	}
	return floor_ms < longest_floor_ms(f) ? floor_ms : longest_floor_ms(f);
}

uint64_t push_floor_ready_ms(const struct push_floor *f, uint64_t now_ms)
{
	uint64_t ready_ms = f->begun_ms ? f->begun_ms + push_floor_ms(f, now_ms) : 0;

	return f->budget && f->budget->spent_ms > ready_ms ? f->budget->spent_ms : ready_ms;
}

void push_floor_begin(struct push_floor *f, uint64_t now_ms, bool hinted)
{
	f->begun_ms = now_ms;
	f->hinted = hinted;
	if (!hinted)
		return;
	if (is_quiet(f, now_ms))
		f->futile_ms = 0;
	f->hinted_ms = now_ms;
}

static void spend_budget(struct push_budget *b, uint64_t now_ms, uint64_t cost_ms)
{
	if (b->spent_ms < now_ms)
		b->spent_ms = now_ms;
	b->spent_ms += cost_ms;
	if (b->spent_ms > now_ms + PUSH_BUDGET_MAX_MS)
		b->spent_ms = now_ms + PUSH_BUDGET_MAX_MS;
}

void push_floor_end(struct push_floor *f, uint64_t now_ms, unsigned requests, bool useful)
{
	if (!f->hinted)
		return;
	f->hinted = false;
	if (useful) {
		f->futile_ms = 0;
		return;
	}
	if (!f->futile_ms)
		f->futile_ms = now_ms;
	if (f->budget)
		spend_budget(f->budget, now_ms, (uint64_t)requests * PUSH_BUDGET_COST_MS);
}

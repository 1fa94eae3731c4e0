/*
 * Traffic shaping: how long a server that rejected work is in backoff.
 *
 * Surprising: requests that were under way together fail together, and only the first of them
 * counts for the growth; else eight refused connections would look like eight tries in a row.
 */
#include "shaper.h"

#include <assert.h>

static uint64_t smaller_ms(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t larger_ms(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* first x 2^in_a_row, at most the cap. */
static uint64_t ceiling_ms(const struct shaper *s, enum shaper_failure kind)
{
	static const uint64_t first_ms[] = {[SHAPER_CONGESTION] = 100, [SHAPER_NETWORK] = 1000};

	return smaller_ms(s->cap_ms, first_ms[kind] << smaller_ms(s->in_a_row, 16));
}

static uint64_t add_saturated(uint64_t now_ms, uint64_t ms)
{
	return now_ms > UINT64_MAX - ms ? UINT64_MAX : now_ms + ms;
}

/* True when a request that began then is newer than the failure that last counted. */
static bool is_news(const struct shaper *s, uint64_t started_ms)
{
	return !s->counted || started_ms > s->counted_ms;
}

void shaper_init(struct shaper *s)
{
	*s = (struct shaper){.cap_ms = SHAPER_CAP_MS};
}

/* The remainder of a draw from 1 to the ceiling is nearly as even a draw from 1 to the cap. */
void shaper_limit(struct shaper *s, uint64_t longest_ms)
{
	uint64_t hold = s->own_ms && s->until_ms > s->own_ms ? s->until_ms - s->own_ms : 0;

	s->cap_ms = smaller_ms(larger_ms(longest_ms, SHAPER_CAP_MIN_MS), SHAPER_CAP_MS);
	if (hold > s->cap_ms)
		s->until_ms =
			larger_ms(s->advised_until_ms, s->own_ms + 1 + (hold - 1) % s->cap_ms);
}

void shaper_failed(struct shaper *s, uint64_t started_ms, uint64_t now_ms, enum shaper_failure kind,
	uint64_t advice_ms, uint64_t random)
{
	bool news = is_news(s, started_ms);
	uint64_t ceiling, hold = 0;

	assert((unsigned)kind < SHAPER_FAILURES);
	ceiling = ceiling_ms(s, kind);
	s->count[kind]++;
	/* The modulus is below 2^16: its bias is below 2^-48. */
	if (advice_ms != SHAPER_NO_ADVICE) {
		advice_ms = smaller_ms(larger_ms(advice_ms, SHAPER_ADVICE_MIN_MS), SHAPER_CAP_MS);
		s->advised++;
		s->advised_until_ms =
			larger_ms(s->advised_until_ms, add_saturated(now_ms, advice_ms));
		hold = advice_ms + random % (1 + larger_ms(advice_ms / 2,
							 smaller_ms(ceiling, SHAPER_CAP_MS / 2)));
	} else if (news) {
		hold = 1 + random % ceiling;
	}
	if (hold && add_saturated(now_ms, hold) > s->until_ms) {
		s->until_ms = add_saturated(now_ms, hold);
		s->own_ms = advice_ms == SHAPER_NO_ADVICE ? now_ms : 0;
	}
	if (!news)
		return;
	s->in_a_row++;
	s->counted = true;
	s->counted_ms = now_ms;
}

void shaper_lift(struct shaper *s)
{
	s->until_ms = s->advised_until_ms;
}

void shaper_succeeded(struct shaper *s, uint64_t started_ms)
{
	/* of the same millisecond: what ended later knows more */
	if (started_ms >= s->counted_ms)
		s->in_a_row = 0;
}

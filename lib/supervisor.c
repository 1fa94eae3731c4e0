/*
 * Supervised backoff: one delay that a timeout doubles and a success restores.
 *
 * Surprising: only timeouts slow a config down. A server that rejects at once costs little; one
 * that answers slowly must be spared.
 */
#include "supervisor.h"

#include <assert.h>

void supervisor_init(struct supervisor *s, uint64_t interval_ms, unsigned bound)
{
	assert(interval_ms >= 1 && bound >= 1);
	*s = (struct supervisor){.interval_ms = interval_ms, .delay_ms = interval_ms};
	if (__builtin_mul_overflow(interval_ms, bound, &s->max_ms))
		s->max_ms = UINT64_MAX;
}

uint64_t supervisor_begin(struct supervisor *s)
{
	s->in_flight = 1;
	return ++s->run;
}

bool supervisor_end(struct supervisor *s, uint64_t run, enum supervisor_outcome outcome)
{
	assert((unsigned)outcome < SUPERVISOR_OUTCOMES);
	if (!s->in_flight || run != s->run) {
		s->late++;
		return false;
	}
	s->in_flight = 0;
	s->count[outcome]++;
	if (outcome == SUPERVISOR_SUCCESS)
		s->delay_ms = s->interval_ms;
	else if (outcome == SUPERVISOR_TIMEOUT)
		s->delay_ms = s->delay_ms > s->max_ms / 2 ? s->max_ms : s->delay_ms * 2;
	return true;
}

uint64_t supervisor_delay(const struct supervisor *s)
{
	return s->delay_ms;
}

uint64_t supervisor_jitter(
	const struct supervisor *s, uint64_t delay_ms, unsigned percent, uint64_t random)
{
	uint64_t span, room, range;

	assert(percent <= 100);
	if (delay_ms > s->max_ms)
		delay_ms = s->max_ms;
	span = delay_ms / 100 * percent + delay_ms % 100 * percent / 100;
	room = s->max_ms - delay_ms;
	range = span + (span < room ? span : room);
	return delay_ms - span + (range == UINT64_MAX ? random : random % (range + 1));
}

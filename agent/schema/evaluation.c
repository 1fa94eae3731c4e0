/*
 * The bounds of one evaluation: its work, and what ends it.
 */
#include "schema/evaluation.h"

#include <errno.h>

bool evaluation_spend(struct evaluation *e, uint64_t steps)
{
	if (e->error == 0 && e->work >= steps) {
		e->work -= steps;
		return true;
	}
	if (e->error == 0)
		e->error = -E2BIG;
	return false;
}

uint64_t evaluation_halvings(size_t count)
{
	uint64_t n = 1;

	for (; count > 0; count /= 2)
		n++;
	return n;
}

bool evaluation_spend_finds(struct evaluation *e, size_t count, size_t among)
{
	return evaluation_spend(e, count * (1 + evaluation_halvings(among) / 2));
}

bool evaluation_may_continue(const struct evaluation *e, bool valid)
{
	return e->error == 0 && (valid || e->report);
}

bool evaluation_matches(struct evaluation *e, const struct pattern *p, const char *text, size_t len)
{
	int r;

	if (!e->matcher)
		e->matcher = matcher_new();
	r = e->matcher ? pattern_match(p, e->matcher, text, len, &e->work) : -ENOMEM;
	if (r < 0 && e->error == 0)
		e->error = r;
	return r == 1;
}

/*
 * The virtual clock: it jumps from one timer of the wheel to the next.
 *
 * What surprises: a timer of an agent is told from the messages' own timer by its address, so that
 * a timer needs no room for a name.
 */
#include "simulation.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <time.h>

struct messages { /* the publisher */
	struct wheel_timer timer;
	uint32_t sent;
};

static double wall_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint64_t used_bytes(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/* The simulated owner takes the queue right after each call. */
static void wake(void *arg)
{
	(void)arg;
}

static void send(struct fleet *f, struct messages *m)
{
	const struct scenario *s = f->scenario;

	/* most messages of a storm find a window open: do not touch those agents */
	for (uint32_t i = 0; i < f->count; i++)
		if (f->now_ms >= f->pending_ms[i] &&
			!(s->fault == FAULT_UNREACHABLE && scenario_fault(s, f->now_ms, i)))
			agent_pushed(f, i, s->spread_ms);
	if (++m->sent < s->change_count)
		wheel_schedule(&f->wheel, &m->timer, f->now_ms + s->change_every_ms);
}

static void expired(struct fleet *f, struct messages *m, struct wheel_timer *t)
{
	size_t offset = (size_t)((char *)t - (char *)f->agents);

	if (t == &m->timer)
		send(f, m);
	else
		agent_expired(f, (uint32_t)(offset / sizeof(struct agent)),
			(enum agent_timer)(
				offset % sizeof(struct agent) / sizeof(struct wheel_timer)));
}

static void live(struct fleet *f)
{
	struct messages m = {.sent = 0};
	struct wheel_timer *t;
	uint64_t end_ms = f->scenario->end_s * UINT64_C(1000), next_ms;

	wheel_timer_init(&m.timer);
	if (f->scenario->pushed && f->policy->push)
		wheel_schedule(&f->wheel, &m.timer, f->scenario->change_ms);
	while (wheel_next(&f->wheel, &next_ms) && next_ms < end_ms) {
		f->now_ms = next_ms;
		while ((t = wheel_advance(&f->wheel, f->now_ms)))
			expired(f, &m, t);
	}
	f->now_ms = end_ms;
}

static uint64_t mix(uint64_t digest, uint64_t value)
{
	return (digest ^ value) * UINT64_C(0x100000001b3) ^ digest >> 29;
}

static void evaluate(struct fleet *f, struct result *r)
{
	const struct scenario *s = f->scenario;
	uint64_t since_ms;

	r->tally = f->tally;
	for (uint32_t i = 0; i < f->count; i++) {
		const struct agent *a = &f->agents[i];

		if (a->requests > r->most)
			r->most = a->requests;
		if (a->version == scenario_last_version(s))
			continue;
		r->stale = true;
		since_ms = f->now_ms - scenario_changed_ms(s, a->version + 1);
		if (since_ms > r->tally.stalest_ms)
			r->tally.stalest_ms = since_ms;
	}
	r->digest = UINT64_C(0xcbf29ce484222325);
	for (uint32_t i = 0; i < s->end_s; i++) {
		r->digest = mix(r->digest, r->per_second[i]);
		if (i >= s->measure_s && r->per_second[i] > r->peak) {
			r->peak = r->per_second[i];
			r->peak_s = i;
		}
	}
	r->digest = mix(mix(r->digest, r->tally.requests), r->tally.wasted);
	r->digest = mix(mix(r->digest, r->tally.converged_ms[TALLY_100]), r->tally.stalest_ms);
}

static void fini(struct fleet *f)
{
	for (uint32_t i = 0; f->agents && i < f->count; i++)
		agent_fini(f, i);
	free(f->agents);
	free(f->pending_ms);
}

static int init(struct fleet *f, uint32_t agents)
{
	int r = 0;

	wheel_init(&f->wheel, 0);
	trigger_queue_init(&f->queue, wake, NULL);
	for (unsigned i = 0; i < TALLY_SHARES; i++)
		f->tally.converged_ms[i] = UINT64_MAX;
	f->agents = calloc(agents, sizeof(*f->agents));
	f->pending_ms = calloc(agents, sizeof(*f->pending_ms));
	if (!f->agents || !f->pending_ms)
		return -ENOMEM;
	for (; f->count < agents && r == 0; f->count++)
		r = agent_init(f, f->count);
	return r;
}

int simulate(const struct scenario *s, const struct policy *p, uint32_t agents, uint64_t seed,
	struct result *ret_result)
{
	struct fleet *f = calloc(1, sizeof(*f));
	struct result r = {.scenario = s, .policy = p, .agents = agents, .seed = seed};
	uint64_t before = used_bytes();
	double from_s = wall_s();
	int error = -ENOMEM;

	r.per_second = calloc(s->end_s, sizeof(*r.per_second));
	if (!f || !r.per_second)
		goto out;
	f->scenario = s;
	f->policy = p;
	f->random = seed;
	server_init(&f->server, s, agents, ~seed, r.per_second);
	error = init(f, agents);
	if (error)
		goto out;
	r.bytes = (used_bytes() - before) / agents;
	live(f);
	evaluate(f, &r);
	r.wall_s = wall_s() - from_s;
	*ret_result = r;
	r.per_second = NULL;
out:
	if (f)
		fini(f);
	free(f);
	free(r.per_second);
	return error;
}

void result_fini(struct result *r)
{
	free(r->per_second);
	r->per_second = NULL;
}

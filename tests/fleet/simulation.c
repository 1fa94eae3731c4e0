/*
 * The virtual clock: it jumps from one timer of the wheel to the next, a window of time after the
 * other.
 *
 * What surprises: the fleet is FLEET_PARTS worlds that share nothing but the server. A reply comes
 * after the window of its request (server_foresight_ms()), so each part lives through a window by
 * itself, and then the server takes what all of them asked, in one order. So the run is the same
 * whether each part has a thread or not.
 */
#include "simulation.h"

#include <assert.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "crew.h"

#define BATCH 128 /* timers taken from the wheel at once */
#define AHEAD 8
#define LINE_BYTES 64u
#define HUGE_BYTES (2u << 20)

struct part {
	struct fleet fleet;
	struct wheel_timer message; /* the next one of the publisher */
	uint32_t sent;
	uint32_t agents;
	int error; /* of part_init() */
};

struct world {
	struct part parts[FLEET_PARTS];
	struct server server;
	struct tree tree;
	uint64_t until_ms; /* the end of the window */
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

static uint64_t measured_ms(const struct scenario *s)
{
	return (s->end_s - s->measure_s) * UINT64_C(1000);
}

/* The simulated owner takes the queue right after each call. */
static void wake(void *arg)
{
	(void)arg;
}

/* ---- a part's window ---- */

static void send_message(struct part *p)
{
	struct fleet *f = &p->fleet;
	const struct scenario *s = f->scenario;

	/* most messages of a storm find a window open: do not touch those agents */
	for (uint32_t i = 0; i < f->count; i++)
		if (f->now_ms >= f->pending_ms[i] &&
			!(s->fault == FAULT_UNREACHABLE &&
				scenario_fault(s, f->now_ms, f->first + i)))
			agent_pushed(f, i, s->spread_ms);
	if (++p->sent < s->change_count)
		wheel_schedule(&f->wheel, &p->message, f->now_ms + s->change_every_ms);
}

/* Takes timers that are due. What they will touch is far away in memory: it is asked for ahead. */
static size_t take_batch(struct part *p, struct wheel_timer *ret[BATCH])
{
	struct fleet *f = &p->fleet;
	size_t n = 0;

	while (n < BATCH && (ret[n] = wheel_advance(&f->wheel, f->now_ms))) {
		if (ret[n] != &p->message)
			agent_prefetch(f, ret[n], false);
		n++;
	}
	return n;
}

/* A timer that an earlier one of the batch set again comes twice; at first nothing is due. */
static void expire_batch(struct part *p, struct wheel_timer *const *timers, size_t n)
{
	struct fleet *f = &p->fleet;

	for (size_t i = 0; i < n; i++) {
		if (i + AHEAD < n && timers[i + AHEAD] != &p->message)
			agent_prefetch(f, timers[i + AHEAD], true);
		if (timers[i] == &p->message)
			send_message(p);
		else
			agent_expired(f, timers[i]);
	}
}

/* Takes the replies to what was asked in the last window, and lives through this one. */
static void live(void *arg, unsigned part)
{
	struct world *w = arg;
	struct part *p = &w->parts[part];
	struct fleet *f = &p->fleet;
	struct wheel_timer *batch[BATCH];
	uint64_t next_ms;
	size_t n;

	for (uint32_t i = 0; i < f->asked_count; i++)
		agent_answered(f, &f->asked[i]);
	f->asked_count = 0;
	while (wheel_next(&f->wheel, &next_ms) && next_ms < w->until_ms) {
		f->now_ms = next_ms;
		while ((n = take_batch(p, batch)))
			expire_batch(p, batch, n);
	}
}

/* ---- windows ---- */

/* What was asked in the window that began at from_ms, in the order of time. */
static void serve(struct world *w, uint64_t from_ms)
{
	uint32_t taken[FLEET_PARTS] = {0};

	for (uint64_t ms = from_ms; ms < w->until_ms; ms++)
		for (unsigned i = 0; i < FLEET_PARTS; i++) {
			struct fleet *f = &w->parts[i].fleet;

			for (; taken[i] < f->asked_count && f->asked[taken[i]].at_ms == ms;
				taken[i]++) {
				struct request *r = &f->asked[taken[i]];

				server_ask(&w->server, r);
				assert(r->reply.at_ms >= w->until_ms);
			}
		}
}

static struct crew *start_threads(struct world *w, void (*work)(void *arg, unsigned part))
{
	mallopt(M_ARENA_MAX, 1); /* used_bytes() looks into one */
	return crew_start(FLEET_PARTS, work, w);
}

static int live_all(struct world *w, const struct scenario *s, bool threads)
{
	uint64_t end_ms = s->end_s * UINT64_C(1000), step_ms = server_foresight_ms(s);
	struct crew *crew = NULL;

	if (threads && !(crew = start_threads(w, live)))
		return -ENOMEM;
	for (uint64_t from_ms = 0; from_ms < end_ms; from_ms += step_ms) {
		w->until_ms = from_ms + step_ms;
		for (unsigned i = 0; i < FLEET_PARTS && !crew; i++)
			live(w, i);
		if (crew)
			crew_work(crew);
		serve(w, from_ms);
	}
	crew_stop(crew);
	return 0;
}

/* ---- what came of it ---- */

static uint64_t mix(uint64_t digest, uint64_t value)
{
	return (digest ^ value) * UINT64_C(0x100000001b3) ^ digest >> 29;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void evaluate_part(const struct fleet *f, struct result *r)
{
	const struct scenario *s = f->scenario;

	r->tally.requests += f->tally.requests;
	r->tally.wasted += f->tally.wasted;
	r->tally.early += f->tally.early;
	r->tally.stalest_ms = larger(r->tally.stalest_ms, f->tally.stalest_ms);
	for (uint32_t i = 0; i < f->count; i++) {
		const struct agent *a = &f->agents[i];

		if (a->requests > r->most)
			r->most = a->requests;
		if (a->version == scenario_last_version(s))
			continue;
		r->stale = true;
		r->tally.stalest_ms = larger(r->tally.stalest_ms,
			s->end_s * UINT64_C(1000) - scenario_changed_ms(s, a->version + 1));
	}
}

/* When each share of the agents was counted. parts: the counts of each ms since measure_s. */
static void find_shares(
	uint32_t *const parts[FLEET_PARTS], const struct result *r, uint64_t ret_ms[SHARES])
{
	static const uint32_t shares[SHARES] = {50, 99, 100};
	uint64_t counted = 0, spans_ms = measured_ms(r->scenario);

	for (unsigned share = 0; share < SHARES; share++)
		ret_ms[share] = UINT64_MAX;
	for (uint64_t ms = 0; ms < spans_ms; ms++) {
		for (unsigned i = 0; i < FLEET_PARTS; i++)
			counted += parts[i][ms];
		for (unsigned share = 0; share < SHARES; share++)
			if (ret_ms[share] == UINT64_MAX &&
				counted * 100 >= (uint64_t)r->agents * shares[share])
				ret_ms[share] = ms;
	}
}

static void evaluate(const struct world *w, struct result *r)
{
	const struct scenario *s = r->scenario;

	uint32_t *converged[FLEET_PARTS], *heard[FLEET_PARTS];

	for (unsigned i = 0; i < FLEET_PARTS; i++) {
		evaluate_part(&w->parts[i].fleet, r);
		converged[i] = w->parts[i].fleet.converged;
		heard[i] = w->parts[i].fleet.heard;
	}
	find_shares(converged, r, r->converged_ms);
	find_shares(heard, r, r->heard_ms);
	r->digest = UINT64_C(0xcbf29ce484222325);
	for (uint32_t i = 0; i < s->end_s; i++) {
		r->digest = mix(r->digest, r->per_second[i]);
		if (i >= s->measure_s && r->per_second[i] > r->peak) {
			r->peak = r->per_second[i];
			r->peak_s = i;
		}
	}
	r->digest = mix(mix(r->digest, r->tally.requests), r->tally.wasted);
	r->digest = mix(mix(r->digest, r->converged_ms[SHARE_100]), r->tally.stalest_ms);
}

/* ---- memory ---- */

static void part_fini(struct part *p)
{
	struct fleet *f = &p->fleet;

	for (uint32_t i = 0; f->agents && i < f->count; i++)
		agent_fini(f, i);
	free(f->agents);
	free(f->timers);
	free(f->pending_ms);
	free(f->asked);
	free(f->converged);
	free(f->heard);
}

/* Memory on whole cache lines; where it is much, in huge pages, if the system has them. */
static void *huge_alloc(size_t count, size_t size)
{
	size_t align = count * size >= 8 * HUGE_BYTES ? HUGE_BYTES : LINE_BYTES;
	size_t bytes = (count * size + align - 1) / align * align;
	void *p = aligned_alloc(align, bytes);

	if (p && align == HUGE_BYTES)
		madvise(p, bytes, MADV_HUGEPAGE);
	return p;
}

static int part_init(struct part *p)
{
	struct fleet *f = &p->fleet;
	const struct scenario *s = f->scenario;
	uint32_t agents = p->agents;
	int r = 0;

	wheel_init(&f->wheel, 0);
	trigger_queue_init(&f->queue, wake, NULL);
	wheel_timer_init(&p->message);
	f->agents = huge_alloc(agents, sizeof(*f->agents));
	f->timers = huge_alloc(agents, sizeof(*f->timers));
	f->pending_ms = calloc(agents, sizeof(*f->pending_ms));
	f->asked = calloc(agents, sizeof(*f->asked));
	if (!f->agents || !f->timers || !f->pending_ms || !f->asked)
		return -ENOMEM;
	for (; f->count < agents && r == 0; f->count++)
		r = agent_init(f, f->count);
	if (s->pushed && f->policy->push && !s->tree)
		wheel_schedule(&f->wheel, &p->message, s->change_ms);
	return r;
}

/* What does not grow with the fleet. */
static int moments_init(struct fleet *f)
{
	f->converged = calloc(measured_ms(f->scenario), sizeof(*f->converged));
	f->heard = calloc(measured_ms(f->scenario), sizeof(*f->heard));
	return f->converged && f->heard ? 0 : -ENOMEM;
}

static void init_one(void *arg, unsigned part)
{
	struct part *p = &((struct world *)arg)->parts[part];

	p->error = part_init(p);
}

static int init_parts(struct world *w, bool threads)
{
	struct crew *crew = NULL;
	int error = 0;

	if (threads && !(crew = start_threads(w, init_one)))
		return -ENOMEM;
	for (unsigned i = 0; i < FLEET_PARTS && !crew; i++)
		init_one(w, i);
	if (crew)
		crew_work(crew);
	crew_stop(crew);
	for (unsigned i = 0; i < FLEET_PARTS && !error; i++)
		error = w->parts[i].error;
	return error;
}

static int init(struct world *w, struct result *r, bool threads)
{
	uint32_t first = 0, end;
	uint64_t before;
	int error = 0;

	server_init(&w->server, r->scenario, r->agents, ~r->seed, r->per_second);
	tree_init(&w->tree, r->scenario, r->agents, r->seed, r->policy->quiet);
	for (unsigned i = 0; i < FLEET_PARTS && !error; i++) {
		end = (uint32_t)((uint64_t)r->agents * (i + 1) / FLEET_PARTS);
		w->parts[i].agents = end - first;
		w->parts[i].fleet = (struct fleet){
			.scenario = r->scenario,
			.policy = r->policy,
			.tree = r->scenario->tree ? &w->tree : NULL,
			.random = r->seed ^ (uint64_t)i << 56,
			.first = first,
		};
		first = end;
		error = moments_init(&w->parts[i].fleet);
	}
	before = used_bytes();
	if (!error)
		error = init_parts(w, threads);
	r->bytes = (used_bytes() - before) / r->agents;
	return error;
}

int simulate(const struct scenario *s, const struct policy *p, uint32_t agents, uint64_t seed,
	bool threads, struct result *ret_result)
{
	struct world *w = calloc(1, sizeof(*w));
	struct result r = {.scenario = s, .policy = p, .agents = agents, .seed = seed};
	double from_s = wall_s();
	int error = -ENOMEM;

	r.per_second = calloc(s->end_s, sizeof(*r.per_second));
	if (!w || !r.per_second)
		goto out;
	error = init(w, &r, threads);
	if (error)
		goto out;
	error = live_all(w, s, threads);
	if (error)
		goto out;
	evaluate(w, &r);
	r.wall_s = wall_s() - from_s;
	*ret_result = r;
	r.per_second = NULL;
out:
	for (unsigned i = 0; w && i < FLEET_PARTS; i++)
		part_fini(&w->parts[i]);
	free(w);
	free(r.per_second);
	return error;
}

void result_fini(struct result *r)
{
	free(r->per_second);
	r->per_second = NULL;
}

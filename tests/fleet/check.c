/*
 * The targets: a table of what is measured, in which scenario, and how much it may be.
 *
 * What surprises: limits per second are scaled with the fleet, and a fleet below 100,000 agents is
 * allowed what chance brings more to it than to one of 100,000 (3.5 standard deviations).
 */
#include "agent.h"
#include "check.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define STORM_PULLS 2u
#define CONNECT_SECONDS 200

struct target {
	const char *scenario, *says;
	double (*measured)(const struct result *r);
	double (*limit)(const struct result *r);
};

static double peak(const struct result *r)
{
	return r->peak;
}

static double convergence_s(const struct result *r)
{
	uint64_t ms = r->converged_ms[SHARE_100];

	return ms == UINT64_MAX ? INFINITY : (double)ms / 1000;
}

static double nearly_all_s(const struct result *r)
{
	uint64_t ms = r->converged_ms[SHARE_99];

	return ms == UINT64_MAX ? INFINITY : (double)ms / 1000;
}

static double heard_ms(const struct result *r)
{
	uint64_t ms = r->heard_ms[SHARE_100];

	return ms == UINT64_MAX ? INFINITY : (double)ms;
}

static double most(const struct result *r)
{
	return r->most;
}

static double early(const struct result *r)
{
	return (double)r->tally.early;
}

static double memory(const struct result *r)
{
	return (double)r->bytes;
}

static double scaled(double limit, double mean, uint32_t agents)
{
	return limit + 3.5 * sqrt(mean) * fmax(0, 1 - sqrt((double)agents / FLEET_UNIT));
}

/* 1.2 x N/W */
static double spread_peak(const struct result *r)
{
	double mean = r->agents / (r->scenario->spread_ms / 1000.0);

	return scaled(1.2 * mean, mean, r->agents);
}

/* 4,000 of 100,000 */
static double outage_peak(const struct result *r)
{
	return scaled(
		r->agents * 4000.0 / FLEET_UNIT, r->agents * 1000.0 / FLEET_INTERVAL_MS, r->agents);
}

/* with its jitter; and what waits in the server's queue */
static double interval_s(const struct result *r)
{
	(void)r;
	return FLEET_INTERVAL_MS * 1.1 / 1000 + FLEET_QUEUE_S;
}

static double spread_and_limit_s(const struct result *r)
{
	return (r->scenario->spread_ms + FLEET_LIMIT_MS) / 1000.0;
}

/* three hops, and the last one of each line of copies; and what the clock rounds */
static double hops_ms(const struct result *r)
{
	uint32_t copies = TREE_TOPS + TREE_LEAVES / TREE_TOPS + r->agents / TREE_LEAVES + 1;

	return 3 * TREE_HOP_US / 1e3 + copies * (TREE_COPY_NS / 1e6) + 1;
}

/* and what waits in the server's queue */
static double tree_s(const struct result *r)
{
	return (hops_ms(r) + r->scenario->spread_ms) / 1000 + FLEET_QUEUE_S;
}

/* the connection below the dead relay comes back first, after two intervals of libzmq's at most */
static double broken_tree_s(const struct result *r)
{
	return 2 * (2000 + TREE_RECONNECT_SPREAD_MS) / 1000.0 + tree_s(r);
}

/* two, and one per interval at its shortest */
static double storm_pulls(const struct result *r)
{
	double interval_s = FLEET_INTERVAL_MS * 0.9 / 1000;

	return STORM_PULLS + ceil((r->scenario->end_s - r->scenario->measure_s) / interval_s);
}

static double none(const struct result *r)
{
	(void)r;
	return 0;
}

static double kibibyte(const struct result *r)
{
	(void)r;
	return 1024;
}

static const struct target targets[] = {
	{"push-spread", "requests in one second after a push", peak, spread_peak},
	{"push-spread", "seconds until everyone has it", convergence_s, spread_and_limit_s},
	{"outage", "requests in one second after the return", peak, outage_peak},
	{"outage", "seconds from the return until everyone has it", convergence_s, interval_s},
	{"push-storm", "pulls of the busiest agent", most, storm_pulls},
	{"overload", "requests before the Retry-After has passed", early, none},
	{"tree", "milliseconds until everyone has heard of it", heard_ms, hops_ms},
	{"tree", "seconds until 99 % have it", nearly_all_s, tree_s},
	{"tree-one", "seconds until 99 % have it", nearly_all_s, broken_tree_s},
	{"tree-tenth", "seconds until 99 % have it", nearly_all_s, broken_tree_s},
	{"tree-tenth", "seconds until everyone has it", convergence_s, broken_tree_s},
	{"tree-tenth", "requests in one second after a push", peak, spread_peak},
	{"steady", "bytes of memory per agent", memory, kibibyte},
};

static const struct {
	const char *name, *missing;
} bugs[] = {
	{"jitter", "jitter and spread"},
	{"hold", "the hold"},
	{"limit", "the limit of holds"},
	{"quiet", "a pull after a connection to a relay"},
};

bool check_break(struct policy *p, const char *bug)
{
	if (strcmp(bug, "jitter") == 0) {
		p->jitter_percent = 0;
		p->spread = false;
	} else if (strcmp(bug, "hold") == 0) {
		p->shaper = false;
	} else if (strcmp(bug, "limit") == 0) {
		p->limits_holds = false;
	} else if (strcmp(bug, "quiet") == 0) {
		p->quiet = true;
	} else {
		return false;
	}
	return true;
}

/* One line of TAP. */
static void tell(FILE *out, unsigned *number, bool ok, const char *what)
{
	if (out)
		fprintf(out, "%s %u - %s\n", ok ? "ok" : "not ok", ++*number, what);
}

/* The number of targets missed, each told; or -ENOMEM. out may be NULL. */
static int verify(
	FILE *out, unsigned *number, const struct policy *p, uint32_t agents, uint64_t seed)
{
	struct result r = {.scenario = NULL};
	char text[160];
	int missed = 0, error;

	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		const struct target *t = &targets[i];
		bool ok;

		if (!r.scenario || strcmp(r.scenario->name, t->scenario) != 0) {
			result_fini(&r);
			error = simulate(scenario_find(t->scenario), p, agents, seed, false, &r);
			if (error)
				return error;
		}
		ok = t->measured(&r) <= t->limit(&r);
		snprintf(text, sizeof(text), "%s: %s: %.1f, at most %.1f", t->scenario, t->says,
			t->measured(&r), t->limit(&r));
		tell(out, number, ok, text);
		missed += !ok;
	}
	result_fini(&r);
	return missed;
}

/* 1 when the same seed gave the same run, by threads or not, and another seed another one. */
static int is_deterministic(const struct policy *p, uint32_t agents, uint64_t seed)
{
	static const struct {
		unsigned more;
		bool threads;
	} runs[] = {{0, false}, {0, true}, {1, false}};
	uint64_t digests[3];
	struct result r;
	int error;

	for (unsigned i = 0; i < 3; i++) {
		error = simulate(scenario_find("push-spread"), p, agents, seed + runs[i].more,
			runs[i].threads, &r);
		if (error)
			return error;
		digests[i] = r.digest;
		result_fini(&r);
	}
	return digests[0] == digests[1] && digests[0] != digests[2];
}

/* Connections of the push channel in the worst second after ten minutes without a publisher. */
static uint32_t find_connects_peak(uint32_t agents, uint64_t seed, uint64_t spread_ms)
{
	const uint64_t outage_ms = 600000;
	uint32_t per_second[CONNECT_SECONDS] = {0}, peak = 0;

	for (uint32_t i = 0; i < agents; i++) {
		uint64_t after_s =
			(tree_reconnect_ms(&seed, spread_ms, 0, outage_ms) - outage_ms) / 1000;
		uint32_t *n = &per_second[after_s < CONNECT_SECONDS ? after_s : 0];

		if (++*n > peak)
			peak = *n;
	}
	return peak;
}

/* 2,500 of 100,000; an interval that is the same for all must be seen. Returns what is missed. */
static int check_connects(FILE *out, unsigned *number, uint32_t agents, uint64_t seed)
{
	double mean = agents * 1900.0 / FLEET_UNIT,
	       most = scaled(agents * 2500.0 / FLEET_UNIT, mean, agents),
	       peak = find_connects_peak(agents, seed, TREE_RECONNECT_SPREAD_MS);
	bool sees = find_connects_peak(agents, seed, 0) > most;
	char text[160];

	snprintf(text, sizeof(text),
		"outage: connections of the push channel in one second after the return: %.0f, at "
		"most %.1f",
		peak, most);
	tell(out, number, peak <= most, text);
	tell(out, number, sees, "without a random interval that check fails");
	return (peak > most) + !sees;
}

int check(FILE *out, const struct policy *ours, uint32_t agents, uint64_t seed)
{
	unsigned number = 0;
	int missed = 0, r;
	char text[96];

	r = verify(out, &number, ours, agents, seed);
	if (r < 0)
		return r;
	missed += r + check_connects(out, &number, agents, seed);
	r = is_deterministic(ours, agents, seed);
	if (r < 0)
		return r;
	tell(out, &number, r,
		"the same seed gives the same run, by threads or not, another seed another");
	missed += !r;
	for (size_t i = 0; i < sizeof(bugs) / sizeof(bugs[0]); i++) {
		struct policy broken = *policy_find("ours");

		check_break(&broken, bugs[i].name);
		r = verify(NULL, &number, &broken, agents, seed);
		if (r < 0)
			return r;
		snprintf(text, sizeof(text), "without %s the check fails", bugs[i].missing);
		tell(out, &number, r > 0, text);
		missed += r == 0;
	}
	fprintf(out, "1..%u\n", number);
	return missed;
}

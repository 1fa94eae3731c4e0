/*
 * The table. What surprises: times are told from different moments: requests, waste and staleness
 * from the beginning of the trouble, the peak and the convergence from its end (see the legend).
 */
#include "report.h"

#include <inttypes.h>

void report_legend(FILE *out, uint32_t agents, uint64_t seed)
{
	uint64_t capacity = (uint64_t)FLEET_CAPACITY * agents / FLEET_UNIT;

	fprintf(out,
		"%u agents, seed %" PRIu64
		". Interval 30 s (tree: 300 s), time limit 10 s, connect limit 3 s.\n"
		"The server serves %" PRIu64
		" requests/s in 20 to 40 ms; what would wait over %u s gets a "
		"503, which costs it nothing.\n"
		"Everyone starts within 1 s; only ours splays its first pull (over 30 s, not at a "
		"first start).\n"
		"\"fixed\" keeps its phase to the millisecond, so it is always the same agents "
		"that "
		"the server\nhas no room for; \"sleep\" rests 30 s after each answer, so the "
		"server's "
		"queue spreads it.\n\n"
		"requests  sent since the event began (the second column of times in the title "
		"line)\n"
		"wasted    of these: timed out, refused, rejected, or told \"unchanged\" within "
		"half "
		"an interval of the last answer\n"
		"peak      the most requests that reached the server in one second, and in which, "
		"since `measured from`\n"
		"50/99/100%%  seconds since `measured from` until so many agents had the last "
		"version; - = not within the run\n"
		"heard     seconds until 50, 99 and 100%% heard of the change through the relays "
		"(tree)\n"
		"stalest   seconds for which an agent missed a version, at worst; + = it still "
		"does "
		"at the end\n"
		"most      requests of the busiest agent since `measured from`\n"
		"early     requests sent before the Retry-After of a 503 had passed\n"
		"speed     virtual seconds per second\n",
		agents, seed, capacity ? capacity : 1, FLEET_QUEUE_S);
}

/* Seconds, or "-" for never. */
static const char *seconds(uint64_t ms, int digits, char text[16])
{
	if (ms == UINT64_MAX)
		return "-";
	snprintf(text, 16, "%.*f", digits, (double)ms / 1000);
	return text;
}

#define SECONDS(ms) seconds(ms, 1, (char[16]){0})
#define MILLISECONDS(ms) seconds(ms, 3, (char[16]){0})

void report_text(FILE *out, const struct result *results, size_t count)
{
	const struct scenario *s = results[0].scenario;

	fprintf(out, "\n%s: %s (begins at %u s, measured from %u s to %u s)\n", s->name, s->title,
		s->count_s, s->measure_s, s->end_s);
	fprintf(out, "  %-10s %8s %5s %9s %9s %7s %7s %7s %8s %5s %8s %7s\n", "policy", "peak/s",
		"at s", "requests", "wasted", "50% s", "99% s", "100% s", "stalest", "most",
		"early", "speed");
	for (size_t i = 0; i < count; i++) {
		const struct result *r = &results[i];

		fprintf(out,
			"  %-10s %8u %5u %9" PRIu64 " %9" PRIu64 " %7s %7s %7s %7s%s %5u %8" PRIu64
			" %6.0fx\n",
			r->policy->name, r->peak, r->peak_s, r->tally.requests, r->tally.wasted,
			SECONDS(r->converged_ms[SHARE_50]), SECONDS(r->converged_ms[SHARE_99]),
			SECONDS(r->converged_ms[SHARE_100]), SECONDS(r->tally.stalest_ms),
			r->stale ? "+" : " ", r->most, r->tally.early, s->end_s / r->wall_s);
		if (s->tree && r->policy->push)
			fprintf(out, "  %-10s heard: 50%% %s, 99%% %s, 100%% %s\n", "",
				MILLISECONDS(r->heard_ms[SHARE_50]),
				MILLISECONDS(r->heard_ms[SHARE_99]),
				MILLISECONDS(r->heard_ms[SHARE_100]));
	}
	fflush(out);
}

void report_csv(FILE *out, const struct result *results, size_t count, bool header)
{
	if (header)
		fprintf(out, "scenario,policy,agents,seed,peak,peak_at_s,requests,wasted,"
			     "converged_50_s,converged_99_s,converged_100_s,heard_50_s,"
			     "heard_99_s,heard_100_s,stalest_s,still_stale,"
			     "most_requests,early,bytes_per_agent,speed,digest\n");
	for (size_t i = 0; i < count; i++) {
		const struct result *r = &results[i];

		fprintf(out,
			"%s,%s,%u,%" PRIu64 ",%u,%u,%" PRIu64 ",%" PRIu64
			",%s,%s,%s,%s,%s,%s,%s,%d,%u,%" PRIu64 ",%" PRIu64 ",%.0f,%016" PRIx64 "\n",
			r->scenario->name, r->policy->name, r->agents, r->seed, r->peak, r->peak_s,
			r->tally.requests, r->tally.wasted, SECONDS(r->converged_ms[SHARE_50]),
			SECONDS(r->converged_ms[SHARE_99]), SECONDS(r->converged_ms[SHARE_100]),
			MILLISECONDS(r->heard_ms[SHARE_50]), MILLISECONDS(r->heard_ms[SHARE_99]),
			MILLISECONDS(r->heard_ms[SHARE_100]), SECONDS(r->tally.stalest_ms),
			r->stale, r->most, r->tally.early, r->bytes, r->scenario->end_s / r->wall_s,
			r->digest);
	}
}

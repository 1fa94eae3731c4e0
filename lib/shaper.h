/*
 * Traffic shaper: after an overload or a network failure, hold back all work for one server.
 *
 * After Eureka's TrafficShaper: congestion (429, 503) and network failures (connect and I/O errors)
 * each hold from the last such event on, 100 ms and 1 s at first. Added: the hold grows with each
 * failure in a row, with full jitter ("Exponential Backoff And Jitter", AWS architecture blog,
 * 2015), up to a cap, and the server's own advice (Retry-After) is honoured within bounds. The cap
 * is at most the longest interval of the waiting configs: a hold that the server did not ask for
 * costs them one interval. A success ends the growth; it does not shorten a hold, for other
 * requests may still be rejected.
 *
 * Pure policy: no clock, no timer; randomness is an argument. Threads: one owner.
 */
#ifndef PULLET_SHAPER_H
#define PULLET_SHAPER_H

#include <stdbool.h>
#include <stdint.h>

#define SHAPER_CAP_MS 60000u       /* no cap, and no advice, counts for more */
#define SHAPER_CAP_MIN_MS 1000u    /* a cap is never less */
#define SHAPER_ADVICE_MIN_MS 1000u /* no advice counts for less */
#define SHAPER_NO_ADVICE UINT64_MAX

enum shaper_failure {
	SHAPER_CONGESTION, /* at most 100 ms at first */
	SHAPER_NETWORK,    /* at most 1 s at first */
	SHAPER_FAILURES
};

struct shaper {                          /* read freely, written by the functions only */
	uint64_t cap_ms;                 /* of holds that the server did not ask for */
	uint64_t until_ms;               /* hold back until then */
	uint64_t own_ms;                 /* since when, if the server did not ask for it; else 0 */
	uint64_t advised_until_ms;       /* the server itself asked for that much of it */
	uint64_t counted_ms;             /* when a failure last counted for the growth */
	bool counted;                    /* one ever did */
	unsigned in_a_row;               /* failures that counted, since the last success */
	uint32_t count[SHAPER_FAILURES]; /* all failures */
	uint32_t advised;                /* failures that came with advice */
};

void shaper_init(struct shaper *s);
/* Sets the cap by the longest interval of the waiting configs: from now on no hold that the server
 * did not ask for, the present one included, lasts longer than max(1 s, min(60 s, longest_ms)). A
 * hold that is too long is brought within that without more randomness; one is never made longer.
 */
void shaper_limit(struct shaper *s, uint64_t longest_ms);
/* A request that began at started_ms failed now: hold back until shaper_until(). Without advice for
 * 1 ms to the ceiling, evenly: min(cap, first x 2^(failures in a row before this one)). With advice
 * for at least the advice, brought into [1 s, 60 s], and at random up to half of it, or up to the
 * ceiling (at most 30 s), longer. A request that began before the failure that last counted says
 * nothing new: it is counted, its advice is taken, but eight that fail at once are one failure.
 * random: 64 random bits. */
void shaper_failed(struct shaper *s, uint64_t started_ms, uint64_t now_ms, enum shaper_failure kind,
	uint64_t advice_ms, uint64_t random);
/* Ends a hold for an operator, but not before the server's own advice. The growth stays. */
void shaper_lift(struct shaper *s);
/* A request that began at started_ms, not before the failure that last counted, succeeded: ends the
 * growth. */
void shaper_succeeded(struct shaper *s, uint64_t started_ms);

static inline bool shaper_holds(const struct shaper *s, uint64_t now_ms)
{
	return now_ms < s->until_ms;
}
static inline uint64_t shaper_until(const struct shaper *s)
{
	return s->until_ms;
}

#endif

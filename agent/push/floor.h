/*
 * The floor between the pulls of one config that messages cause, and what an agent spends on
 * messages that bring nothing.
 *
 * Anybody who can send messages can ask for pulls. So between two pulls of a config that a hint
 * causes, or between any pull and such a one, lies push_min_interval, whatever the messages say.
 * While hints bring nothing new for longer than PUSH_FLOOR_PATIENCE_MS, the floor doubles, again
 * and again, to PUSH_FLOOR_MAX_MS; a hint that brings something, or silence, restores it. And each
 * request of an agent that a hint caused in vain keeps all hints waiting for PUSH_BUDGET_COST_MS,
 * all together at most PUSH_BUDGET_MAX_MS: that is some 55 requests a second, or one pull of each
 * config a second where that is more. What brought something costs nothing.
 *
 * Threads: the loop's. Time: an argument. Bounds: no hint waits longer than PUSH_FLOOR_MAX_MS, or
 * push_min_interval where that is longer. Orders and the interval are not asked about here.
 */
#ifndef PULLET_PUSH_FLOOR_H
#define PULLET_PUSH_FLOOR_H

#include <stdbool.h>
#include <stdint.h>

#define PUSH_FLOOR_MAX_MS 1000u
#define PUSH_FLOOR_PATIENCE_MS 5000u
#define PUSH_FLOOR_QUIET_MS 2000u /* without such a pull: then they are news again */
#define PUSH_BUDGET_COST_MS 18u
#define PUSH_BUDGET_MAX_MS 1000u

struct push_budget {       /* of an agent; zeroed at first; fields are private */
	uint64_t spent_ms; /* until then it is spent */
};

struct push_floor { /* of a config; fields are private */
	struct push_budget *budget;
	uint64_t min_ms;
	uint64_t begun_ms;  /* the last pull; 0 = none yet */
	uint64_t hinted_ms; /* the last one that a hint caused */
	uint64_t futile_ms; /* since when hints bring nothing; 0 = they do not */
	bool hinted;        /* the pull under way */
};

/* min_ms: push_min_interval. The budget is borrowed; NULL = it is unlimited. */
void push_floor_init(struct push_floor *f, uint64_t min_ms, struct push_budget *budget);
/* The floor as it is now. */
uint64_t push_floor_ms(const struct push_floor *f, uint64_t now_ms);
/* The moment, maybe past, from which a hint may make the config pull. */
uint64_t push_floor_ready_ms(const struct push_floor *f, uint64_t now_ms);
/* A pull begins. hinted: without hints it would not begin yet. */
void push_floor_begin(struct push_floor *f, uint64_t now_ms, bool hinted);
/* It has ended, after so many requests. useful: it brought a new version. */
void push_floor_end(struct push_floor *f, uint64_t now_ms, unsigned requests, bool useful);

#endif

/*
 * The floor between pulls of one config that messages cause, and the budget that an agent spends on
 * messages without a new version.
 *
 * A sender of messages can cause pulls. So a pull that a hint causes comes push_min_interval after
 * the pull before it, whatever the messages say. While hints bring nothing new for longer than
 * PUSH_FLOOR_PATIENCE_MS, the floor doubles, again and again, to PUSH_FLOOR_MAX_MS; a hint that
 * brings a version, or silence, restores it. Each request that a hint caused in vain delays all
 * hints of the agent by PUSH_BUDGET_COST_MS, together at most by PUSH_BUDGET_MAX_MS: some 55
 * requests a second, or one pull of each config a second where that is more. Useful pulls cost
 * nothing.
 *
 * Threads: the loop's. Time: an argument. Bounds: no hint waits longer than PUSH_FLOOR_MAX_MS, or
 * push_min_interval where that is longer. Orders and the interval do not come here.
 */
#ifndef PULLET_PUSH_FLOOR_H
#define PULLET_PUSH_FLOOR_H

#include <stdbool.h>
#include <stdint.h>

#define PUSH_FLOOR_MAX_MS 1000u
#define PUSH_FLOOR_PATIENCE_MS 5000u
#define PUSH_FLOOR_QUIET_MS 2000u /* without such a pull: hints count as useful again */
#define PUSH_BUDGET_COST_MS 18u
#define PUSH_BUDGET_MAX_MS 1000u

struct push_budget {       /* of an agent; zeroed at first; fields are private */
	uint64_t spent_ms; /* when it is free again */
};

struct push_floor { /* of a config; fields are private */
	struct push_budget *budget;
	uint64_t min_ms;
	uint64_t begun_ms;  /* the last pull; 0 = none yet */
	uint64_t hinted_ms; /* the last pull that a hint caused */
	uint64_t futile_ms; /* since when hints bring nothing; 0 = they are useful */
	bool hinted;        /* the pull under way */
};

/* min_ms: push_min_interval. Borrows the budget; NULL = unlimited. */
void push_floor_init(struct push_floor *f, uint64_t min_ms, struct push_budget *budget);
/* Returns the current floor. */
uint64_t push_floor_ms(const struct push_floor *f, uint64_t now_ms);
/* Returns the moment, maybe past, from which a hint may cause a pull. */
uint64_t push_floor_ready_ms(const struct push_floor *f, uint64_t now_ms);
/* Begins a pull. hinted: without hints it would not begin yet. */
void push_floor_begin(struct push_floor *f, uint64_t now_ms, bool hinted);
/* Ends the pull after so many requests. useful: it brought a new version. */
void push_floor_end(struct push_floor *f, uint64_t now_ms, unsigned requests, bool useful);

#endif

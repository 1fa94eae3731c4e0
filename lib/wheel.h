/*
 * Hierarchical, tickless timing wheel with intrusive timers.
 *
 * After Varghese & Lauck's hierarchical wheels as Kafka's purgatory and wahern/timeout use them,
 * with Dubbo's and Netty's HashedWheelTimer states. Unlike those it has no tick: wheel_next() gives
 * the moment of the earliest timer, so that the caller sleeps until then and nothing wakes in
 * between. Only where more than WHEEL_LOOK timers share one slot that is still far away, and its
 * earliest was moved, is the caller woken once too early, which gives each of them a finer place.
 *
 * Threads: one owner. Time: the caller's, in milliseconds, never going back (an earlier now_ms is
 * taken as the latest seen). Ownership: the caller owns wheel and timers; a scheduled timer must
 * stay in place until it has expired or was cancelled. Bounds: none on the number of timers;
 * allocates nothing. O(1) schedule, cancel and wheel_next(); wheel_advance() gives each timer a
 * finer place at most WHEEL_LEVELS - 1 times, all of one slot at once.
 */
#ifndef PULLET_WHEEL_H
#define PULLET_WHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WHEEL_LEVELS 11 /* 6 bits each: every 64-bit moment has a place */
#define WHEEL_SLOTS 64
#define WHEEL_LOOK 64 /* timers of a slot that wheel_next() compares */

enum wheel_state { WHEEL_INIT, WHEEL_SCHEDULED, WHEEL_CANCELLED, WHEEL_EXPIRED };

struct wheel_link { /* fields are private */
	struct wheel_link *next, *prev;
};

struct wheel_timer { /* fields are private; read them with the functions below */
	struct wheel_link link;
	uint64_t due_ms;
	enum wheel_state state;
};

struct wheel {                   /* fields are private but count */
	uint64_t position_ms;    /* every slot before it is empty */
	uint64_t now_ms;         /* latest time seen */
	uint64_t next_ms;        /* no timer is earlier */
	size_t count;            /* of scheduled timers; read freely */
	bool next_known;         /* next_ms is what wheel_next() says */
	struct wheel_link ready; /* due, not yet handed out */
	uint64_t occupied[WHEEL_LEVELS];
	struct wheel_link slots[WHEEL_LEVELS][WHEEL_SLOTS];
};

/* Prepares an empty wheel whose time starts at now_ms. */
void wheel_init(struct wheel *w, uint64_t now_ms);
/* Prepares a timer; must be called once before its first use. */
void wheel_timer_init(struct wheel_timer *t);
/* Schedules t for due_ms, first cancelling it if it was scheduled. A moment in the past means
 * "now", behind everything that is already due. Timers of the same millisecond expire in the order
 * of scheduling. */
void wheel_schedule(struct wheel *w, struct wheel_timer *t, uint64_t due_ms);
/* Cancels t. True if it was scheduled; false (and no change) otherwise. */
bool wheel_cancel(struct wheel *w, struct wheel_timer *t);
/* Moves time on to now_ms and takes the earliest due timer off the wheel, or returns NULL when
 * nothing more is due. Call it until NULL. Between two calls any timer may be scheduled or
 * cancelled. Never returns a timer before its time; returns them in the order of their due times.
 */
struct wheel_timer *wheel_advance(struct wheel *w, uint64_t now_ms);
/* True and the moment to call wheel_advance() at (possibly past), or false when no timer is
 * scheduled. It is that of the earliest timer, or one before it, see above; never one at which
 * wheel_advance() has returned NULL already. */
bool wheel_next(struct wheel *w, uint64_t *ret_due_ms);

static inline enum wheel_state wheel_timer_state(const struct wheel_timer *t)
{
	return t->state;
}
static inline uint64_t wheel_timer_due(const struct wheel_timer *t)
{
	return t->due_ms;
}

#endif

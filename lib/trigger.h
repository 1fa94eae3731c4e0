/*
 * Circulation trigger: one task that runs again and again, ordered or hinted at from any thread.
 *
 * After Qunar's Circulation Trigger. All calls act in one order. The task never runs concurrently
 * with itself. A moment that falls due while the task runs causes exactly one more run right after
 * it. A million calls cost one timer: the trigger holds one moment, in one atomic word, and
 * allocates nothing.
 *
 * There are two kinds of calls, which the original has not:
 * - An order, trigger_fire() or trigger_suspend(), is somebody's decision. The last order overrides
 *   all earlier orders and hints; one during a run makes the run's own next delay void.
 * - A hint, trigger_hint(), is news: "at that moment at the latest". It brings a run forward and
 *   never puts one off: a moment that is sooner stays, a reservation stays, and the run's own next
 *   delay counts if it ends sooner. It does not wake a suspended task.
 *
 * Threads: trigger_fire(), trigger_suspend() and trigger_hint() from any thread, lock-free.
 * Everything marked "owner" from the one thread that owns the queue. Handover: a call marks the
 * word and, if the owner has not yet looked at the mark before, pushes the trigger on its queue;
 * the queue's wake() is called when the queue was empty.
 *
 * The owner's loop:
 * - woken: take from the queue until NULL; for each, arm a timer for trigger_due(), or disarm it;
 * - timer due: if trigger_begin() is true, start the run;
 * - run over: trigger_end(), then look at trigger_due() again.
 *
 * Lifetime: a trigger may go once no thread can call it any more and the owner has then taken the
 * queue until NULL.
 *
 * Time: the caller's monotonic milliseconds, below 2^59.
 */
#ifndef PULLET_TRIGGER_H
#define PULLET_TRIGGER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define TRIGGER_NO_NEXT UINT64_MAX /* "no next run by itself", for trigger_end() */

struct trigger;

struct trigger_queue {                  /* fields are private */
	_Atomic(struct trigger *) head; /* handed over, newest first */
	struct trigger *taken;          /* owner's: oldest first */
	void (*wake)(void *arg);
	void *arg;
};

struct trigger { /* fields are private */
	_Atomic uint64_t word;
	struct trigger_queue *queue;
	struct trigger *next; /* in the queue */
};

/* Prepares a queue. wake(arg) is called from whichever thread hands a trigger to an empty queue: it
 * must be safe there and make the owner call trigger_queue_take() soon. */
void trigger_queue_init(struct trigger_queue *q, void (*wake_loop)(void *arg), void *arg);
/* Owner: takes the next trigger whose moment was changed by a call since it was last taken; NULL
 * when there is none. */
struct trigger *trigger_queue_take(struct trigger_queue *q);

/* Prepares a suspended trigger. */
void trigger_init(struct trigger *t, struct trigger_queue *q);
/* Any thread: run at now_ms + delay_ms (at most 2^59 - 1), whatever was said before. What the
 * caller wrote before is seen by the run. Never blocks, never allocates. */
void trigger_fire(struct trigger *t, uint64_t now_ms, uint64_t delay_ms);
/* Any thread: do not run again until fired, whatever was said before, and whatever is hinted later.
 * A run in progress is not disturbed. */
void trigger_suspend(struct trigger *t);
/* Any thread: run at now_ms + delay_ms (as above) at the latest, unless suspended. Never puts off
 * what is due sooner, a reservation, or a shorter delay of the run's own. What the caller wrote
 * before is seen by the run, also where the hint changes nothing. Never blocks, never allocates. */
void trigger_hint(struct trigger *t, uint64_t now_ms, uint64_t delay_ms);

/* Any thread: true and the moment to call trigger_begin() at, or false when there is none:
 * suspended, or what fell due during the run is already reserved. Only the owner can rely on it. */
bool trigger_due(const struct trigger *t, uint64_t *ret_due_ms);
/* Owner: call when the moment has come. True: the run has begun, trigger_end() must follow. False:
 * nothing is due at now_ms, or the task runs already; in the latter case, if something is due,
 * exactly one more run is reserved. */
bool trigger_begin(struct trigger *t, uint64_t now_ms);
/* Owner: the run is over. next_delay_ms (or TRIGGER_NO_NEXT) counts only if no order came since
 * trigger_begin(), and if no hint named a sooner moment; what fell due meanwhile is due at once. */
void trigger_end(struct trigger *t, uint64_t now_ms, uint64_t next_delay_ms);
/* Any thread: is the task running? */
bool trigger_running(const struct trigger *t);

#endif

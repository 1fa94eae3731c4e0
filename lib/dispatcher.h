/*
 * Task dispatcher: a bounded, ordered set of tasks for one server, handed out on request.
 *
 * After Eureka's AcceptorExecutor and TaskDispatcher. Work is named by an id: newer work of an id
 * that still waits takes its place, and the older one is lost ("overridden"). When the set is full,
 * new work of another id pushes out the oldest ("overflowed"). Work that waited past its expiry is
 * not handed out ("expired"). Failed work comes back to the front, but loses to newer work of its
 * id and to a full set. Batches are handed out when they are full or when the first in line has
 * waited long enough, and not during a hold.
 *
 * Different from Eureka, on purpose: an overriding task at a full set pushes out nobody (it needs
 * no room); work that is overridden again and again does not wait longer for that; a batch that is
 * full goes at once; and nothing polls: dispatcher_next() names the moment to ask again.
 *
 * Threads: one owner. Time: the caller's milliseconds. Ownership: tasks are the caller's pointers,
 * lent until they are handed out, lost or cancelled. Errors: -ENOMEM from dispatcher_init() and
 * dispatcher_grow() only. Bounds: max_pending tasks, 52 to 56 bytes each, all allocated there. O(1)
 * each, expected: ids must not be an enemy's choice.
 */
#ifndef PULLET_DISPATCHER_H
#define PULLET_DISPATCHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DISPATCHER_NEVER UINT64_MAX /* as an expiry */
#define DISPATCHER_BUCKETS 16       /* of the histograms: bucket b counts values below 2^b */

enum dispatcher_loss { DISPATCHER_OVERRIDDEN, DISPATCHER_OVERFLOWED, DISPATCHER_EXPIRED };

struct dispatcher_limits {
	uint32_t max_pending;  /* tasks that wait, 1 to 2^24 */
	uint32_t max_batch;    /* tasks handed out at once, >= 1; Eureka's: 250 */
	uint64_t max_delay_ms; /* the first one waits so long for a batch to fill; Eureka's: 500
				*/
};

struct dispatcher_item {
	uint64_t id;
	void *task;
	uint64_t since_ms;   /* when this id first asked; ages batches, measures latency */
	uint64_t expires_ms; /* not handed out from then on */
};

struct dispatcher_histogram {                /* of whole numbers */
	uint64_t counts[DISPATCHER_BUCKETS]; /* the last bucket counts all that is larger */
	uint64_t sum;                        /* of the numbers themselves */
};

struct dispatcher_counters { /* since dispatcher_init() */
	uint64_t accepted;   /* submitted */
	uint64_t overflowed, expired, cancelled, overridden;
	uint64_t retried; /* came back and were taken */
	uint64_t batches, taken;
	struct dispatcher_histogram batch_size;
	struct dispatcher_histogram latency_ms; /* of each task taken: since_ms to now */
};

struct dispatcher_entry;

struct dispatcher { /* counters are read freely, the rest is private */
	struct dispatcher_counters counters;
	struct dispatcher_limits limits;
	uint64_t hold_until_ms;
	struct dispatcher_entry *entries;
	uint32_t *buckets; /* index + 1 of the first entry of a chain; 0 = none */
	uint32_t count, used, free, first, last;
	unsigned hash_shift;
	/* Called with each task that is lost; must not call the dispatcher. */
	void (*lost)(void *arg, void *task, enum dispatcher_loss why);
	void *arg;
};

/* Prepares an empty set. 0 or -ENOMEM. lost(arg, task, why) may be NULL. */
int dispatcher_init(struct dispatcher *d, const struct dispatcher_limits *limits,
	void (*lost)(void *arg, void *task, enum dispatcher_loss why), void *arg);
/* Raises the bound to max_pending tasks (to 2^24); a lower one changes nothing. Loses nothing and
 * keeps the order. 0, or -ENOMEM, and nothing changed. */
int dispatcher_grow(struct dispatcher *d, uint32_t max_pending);
/* Frees the set; tasks in it are forgotten. */
void dispatcher_fini(struct dispatcher *d);
/* Adds new work: at the end of the queue, or in place of waiting work of its id. */
void dispatcher_submit(
	struct dispatcher *d, uint64_t now_ms, uint64_t id, void *task, uint64_t expires_ms);
/* Returns failed work to the front, in its order. Loses it where newer work of its id waits, where
 * it has expired, and where there is no room (the first ones first). */
void dispatcher_retry(
	struct dispatcher *d, uint64_t now_ms, const struct dispatcher_item *items, size_t count);
/* Removes the work of an id. False if none waits. */
bool dispatcher_cancel(struct dispatcher *d, uint64_t id);
/* Loses the work of an id as "expired", for a caller with a deadline of its own. False if none
 * waits.
 */
bool dispatcher_expire(struct dispatcher *d, uint64_t id);
/* Fills ret_items with the next batch, at most room and max_batch tasks, and returns how many; 0
 * when there is none now (see dispatcher_next()). */
size_t dispatcher_take(
	struct dispatcher *d, uint64_t now_ms, size_t room, struct dispatcher_item *ret_items);
/* Hands out nothing before until_ms; 0 ends a hold. */
void dispatcher_hold(struct dispatcher *d, uint64_t until_ms);
/* True and the moment (possibly past) from which dispatcher_take() has work, or finds that all that
 * waits has expired; false when nothing waits. */
bool dispatcher_next(const struct dispatcher *d, uint64_t *ret_due_ms);
/* Number of tasks that wait. */
size_t dispatcher_pending(const struct dispatcher *d);

#endif

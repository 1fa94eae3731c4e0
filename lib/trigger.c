/*
 * Circulation trigger: the last calls, and the state of the task, in one atomic word.
 *
 * The word: the moment in the upper 59 bits, then the flags below. Each function reads it, decides,
 * and swaps it; the loser of a race reads and decides again. That is the one order of all calls.
 *
 * Surprising: the version counter of the original, which shows at the end of a run whether an order
 * came meanwhile, is one sticky bit here. A short counter can wrap around in a storm of calls; a
 * bit that stays set until the next run begins cannot. The same bit without a moment, and without a
 * reservation, is a suspended trigger: only an order that takes the moment away leaves that behind.
 *
 * Memory order: every swap of the word acquires and releases. Release in trigger_fire() and
 * trigger_hint(), and acquire in trigger_begin(): what the caller wrote before it called is seen by
 * the run that this leads to. So a hint that changes nothing swaps the word all the same.
 * Release in trigger_queue_take() and acquire in the call that sets QUEUED again: the caller's
 * write of `next` comes after the owner's read. On x86 this costs nothing beyond the swap itself.
 */
#include "trigger.h"

#include <assert.h>
#include <stddef.h>

#define ARMED UINT64_C(1)    /* a moment is set */
#define RUNNING UINT64_C(2)  /* between begin and end */
#define RESERVED UINT64_C(4) /* a moment came during the run: one more run right after it */
#define ORDERED UINT64_C(8)  /* an order came since the run began: its own next delay is void */
#define QUEUED UINT64_C(16)  /* on the owner's queue; who sets it may write `next` */
#define DUE_SHIFT 5
#define DUE_MAX (UINT64_MAX >> DUE_SHIFT)

static inline uint64_t armed_at(uint64_t now_ms, uint64_t delay_ms)
{
	uint64_t due_ms = DUE_MAX;

	if (now_ms <= DUE_MAX && delay_ms <= DUE_MAX - now_ms)
		due_ms = now_ms + delay_ms;
	return due_ms << DUE_SHIFT | ARMED;
}

static inline bool word_is_suspended(uint64_t word)
{
	return (word & (ARMED | RESERVED | ORDERED)) == ORDERED;
}

/* The word with this moment, unless it has one that is not later. */
static inline uint64_t armed_at_latest(uint64_t word, uint64_t moment)
{
	if (word & ARMED && word >> DUE_SHIFT <= moment >> DUE_SHIFT)
		return word;
	return (word & (RUNNING | ORDERED | QUEUED)) | moment;
}

/* Replaces the word if it still is *old, else reads it again into *old. The load of a failed swap
 * may be relaxed: it is only compared again. */
static inline bool swap_word(struct trigger *t, uint64_t *old, uint64_t new)
{
	return atomic_compare_exchange_weak_explicit(
		&t->word, old, new, memory_order_acq_rel, memory_order_relaxed);
}

/* Hands t to the owner. The release makes `next` and all before it visible to the owner's acquiring
 * exchange; the swaps of others in between carry it on. */
static void push_trigger(struct trigger_queue *q, struct trigger *t)
{
	struct trigger *head = atomic_load_explicit(&q->head, memory_order_relaxed);

	do {
		t->next = head;
	} while (!atomic_compare_exchange_weak_explicit(
		&q->head, &head, t, memory_order_release, memory_order_relaxed));
	if (!head)
		q->wake(q->arg);
}

/* The last order overrides all: the moment set before, and the reservation. */
static inline void give_order(struct trigger *t, uint64_t moment)
{
	uint64_t old = atomic_load_explicit(&t->word, memory_order_relaxed);

	while (!swap_word(t, &old, (old & RUNNING) | ORDERED | QUEUED | moment))
		;
	if (!(old & QUEUED))
		push_trigger(t->queue, t);
}

void trigger_queue_init(struct trigger_queue *q, void (*wake)(void *arg), void *arg)
{
	atomic_init(&q->head, NULL);
	q->taken = NULL;
	q->wake = wake;
	q->arg = arg;
}

/* Takes the whole queue and turns it around: oldest first. */
static void refill_taken(struct trigger_queue *q)
{
	struct trigger *t, *next;

	t = atomic_exchange_explicit(&q->head, NULL, memory_order_acquire);
	for (; t; t = next) {
		next = t->next;
		t->next = q->taken;
		q->taken = t;
	}
}

struct trigger *trigger_queue_take(struct trigger_queue *q)
{
	struct trigger *t;

	if (!q->taken)
		refill_taken(q);
	t = q->taken;
	if (!t)
		return NULL;
	/* Once the bit is clear, `next` belongs to the next caller. */
	q->taken = t->next;
	atomic_fetch_and_explicit(&t->word, ~QUEUED, memory_order_acq_rel);
	return t;
}

void trigger_init(struct trigger *t, struct trigger_queue *q)
{
	atomic_init(&t->word, ORDERED);
	t->queue = q;
	t->next = NULL;
}

void trigger_fire(struct trigger *t, uint64_t now_ms, uint64_t delay_ms)
{
	give_order(t, armed_at(now_ms, delay_ms));
}

void trigger_suspend(struct trigger *t)
{
	give_order(t, 0);
}

void trigger_hint(struct trigger *t, uint64_t now_ms, uint64_t delay_ms)
{
	uint64_t old = atomic_load_explicit(&t->word, memory_order_relaxed), new;
	const uint64_t moment = armed_at(now_ms, delay_ms);

	do {
		new = old;
		if (!(old & RESERVED) && !word_is_suspended(old))
			new = armed_at_latest(old, moment);
		if (new != old)
			new |= QUEUED;
	} while (!swap_word(t, &old, new));
	if (new & ~old & QUEUED)
		push_trigger(t->queue, t);
}

bool trigger_due(const struct trigger *t, uint64_t *ret_due_ms)
{
	uint64_t word = atomic_load_explicit(&t->word, memory_order_relaxed);

	/* Relaxed is enough for a moment to wait for: it is begin that acquires. */
	if (!(word & ARMED))
		return false;
	*ret_due_ms = word >> DUE_SHIFT;
	return true;
}

bool trigger_begin(struct trigger *t, uint64_t now_ms)
{
	uint64_t old = atomic_load_explicit(&t->word, memory_order_relaxed), new;

	do {
		if (!(old & ARMED) || old >> DUE_SHIFT > now_ms)
			return false;
		new = old &QUEUED;
		new |= old &RUNNING ? RUNNING | RESERVED | ORDERED : RUNNING;
	} while (!swap_word(t, &old, new));
	return !(old & RUNNING);
}

void trigger_end(struct trigger *t, uint64_t now_ms, uint64_t next_delay_ms)
{
	uint64_t old = atomic_load_explicit(&t->word, memory_order_relaxed), new;

	do {
		assert(old & RUNNING);
		new = old & ~(RUNNING | RESERVED);
		if (old & RESERVED)
			new |= armed_at(now_ms, 0);
		else if (!(old & ORDERED) && next_delay_ms != TRIGGER_NO_NEXT)
			new = armed_at_latest(new, armed_at(now_ms, next_delay_ms));
	} while (!swap_word(t, &old, new));
}

bool trigger_running(const struct trigger *t)
{
	return atomic_load_explicit(&t->word, memory_order_acquire) & RUNNING;
}

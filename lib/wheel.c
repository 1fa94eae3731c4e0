/*
 * Timing wheel: a timer sits at the highest 6-bit digit in which its moment differs from the
 * wheel's position, in the slot that this digit of its moment names.
 *
 * Surprising: slots are addressed by absolute bits of the moment and not by distance. So each
 * timer of a lower level is earlier than each of a higher one, no level ever wraps around, and the
 * earliest slot is the first set bit of the lowest level that is not empty. The position moves from
 * one occupied slot straight to the next, however far away it is: there is no tick to count.
 */
#include "wheel.h"

#define DIGIT_BITS 6

static inline struct wheel_timer *timer_of(struct wheel_link *link)
{
	return (struct wheel_timer *)(void *)((char *)link - offsetof(struct wheel_timer, link));
}

static inline void list_init(struct wheel_link *head)
{
	head->next = head->prev = head;
}

static inline bool list_empty(const struct wheel_link *head)
{
	return head->next == head;
}

static inline void list_append(struct wheel_link *head, struct wheel_link *link)
{
	link->prev = head->prev;
	link->next = head;
	head->prev->next = link;
	head->prev = link;
}

/* Moves all links of `from`, which is not empty, to `to`, which is. */
static inline void list_move(struct wheel_link *from, struct wheel_link *to)
{
	*to = *from;
	to->next->prev = to;
	to->prev->next = to;
	list_init(from);
}

static inline void place_timer(struct wheel *w, struct wheel_timer *t)
{
	unsigned highest_bit = 63 - (unsigned)__builtin_clzll((t->due_ms ^ w->position_ms) | 1);
	unsigned level = highest_bit / DIGIT_BITS;
	unsigned slot = (t->due_ms >> (level * DIGIT_BITS)) % WHEEL_SLOTS;

	list_append(&w->slots[level][slot], &t->link);
	w->occupied[level] |= UINT64_C(1) << slot;
}

static inline void set_vacant(struct wheel *w, const struct wheel_link *head)
{
	size_t index = (size_t)(head - &w->slots[0][0]);

	w->occupied[index / WHEEL_SLOTS] &= ~(UINT64_C(1) << (index % WHEEL_SLOTS));
}

static inline void unlink_timer(struct wheel *w, struct wheel_timer *t)
{
	struct wheel_link *prev = t->link.prev, *next = t->link.next;

	prev->next = next;
	next->prev = prev;
	/* Only a head is its own neighbour on both sides, and its address tells which slot it is.
	 */
	if (prev == next && prev != &w->ready)
		set_vacant(w, prev);
	w->count--;
}

/* The slot of the earliest timer that is not yet ready, or NULL. No bit below the position's own
 * digit is ever set, so the first one is the earliest. */
static struct wheel_link *earliest_slot(struct wheel *w, unsigned *ret_level)
{
	for (unsigned level = 0; level < WHEEL_LEVELS; level++)
		if (w->occupied[level]) {
			*ret_level = level;
			return &w->slots[level][__builtin_ctzll(w->occupied[level])];
		}
	return NULL;
}

/* Gives each timer of a slot its place as seen from the new position, in the same order. Where
 * there are many, each one is a cache miss, and its neighbour is not known before: walking from the
 * other end as well has two of them under way. */
static void demote_slot(struct wheel *w, struct wheel_link *slot)
{
	struct wheel_link list, *link, *next, *far_end;

	list_move(slot, &list);
	far_end = list.prev;
	for (link = list.next; link != &list; link = next) {
		next = link->next;
		far_end = far_end->prev;
		__builtin_prefetch(far_end, 1);
		place_timer(w, timer_of(link));
	}
}

/* Moves the position to the first occupied slot that has come, if any, and on. True when timers are
 * ready. */
static bool make_ready(struct wheel *w)
{
	struct wheel_link *slot;
	uint64_t start_ms;
	unsigned level;

	while (list_empty(&w->ready)) {
		slot = earliest_slot(w, &level);
		start_ms = UINT64_MAX;
		if (slot)
			start_ms = timer_of(slot->next)->due_ms >> (level * DIGIT_BITS)
									   << (level * DIGIT_BITS);
		if (!slot || start_ms > w->now_ms) {
			/* Nothing lies between here and there, so all places stay valid. */
			w->position_ms = w->now_ms;
			return false;
		}
		w->position_ms = start_ms;
		set_vacant(w, slot);
		if (level)
			demote_slot(w, slot);
		else
			list_move(slot, &w->ready);
	}
	return true;
}

void wheel_init(struct wheel *w, uint64_t now_ms)
{
	w->position_ms = w->now_ms = now_ms;
	w->next_ms = 0;
	w->next_known = false;
	w->count = 0;
	list_init(&w->ready);
	for (unsigned level = 0; level < WHEEL_LEVELS; level++) {
		w->occupied[level] = 0;
		for (unsigned slot = 0; slot < WHEEL_SLOTS; slot++)
			list_init(&w->slots[level][slot]);
	}
}

void wheel_timer_init(struct wheel_timer *t)
{
	t->link.next = t->link.prev = NULL;
	t->due_ms = 0;
	t->state = WHEEL_INIT;
}

void wheel_schedule(struct wheel *w, struct wheel_timer *t, uint64_t due_ms)
{
	if (t->state == WHEEL_SCHEDULED)
		wheel_cancel(w, t);
	/* Time may stand past many moments that are still to be handed out. A handler that asks for
	 * the past again and again must not get ahead of those. */
	t->due_ms = due_ms > w->now_ms ? due_ms : w->now_ms;
	t->state = WHEEL_SCHEDULED;
	place_timer(w, t);
	if (w->count++ == 0) {
		w->next_ms = t->due_ms;
		w->next_known = true;
	} else if (t->due_ms < w->next_ms) {
		w->next_ms = t->due_ms;
	}
}

bool wheel_cancel(struct wheel *w, struct wheel_timer *t)
{
	if (t->state != WHEEL_SCHEDULED)
		return false;
	unlink_timer(w, t);
	t->state = WHEEL_CANCELLED;
	if (t->due_ms == w->next_ms)
		w->next_known = false;
	return true;
}

struct wheel_timer *wheel_advance(struct wheel *w, uint64_t now_ms)
{
	struct wheel_timer *t;

	if (now_ms > w->now_ms)
		w->now_ms = now_ms;
	if (!make_ready(w)) {
		/* a moment that was too early has passed */
		w->next_known &= w->next_ms > w->now_ms;
		return NULL;
	}
	t = timer_of(w->ready.next);
	unlink_timer(w, t);
	t->state = WHEEL_EXPIRED;
	w->next_known = false;
	return t;
}

/* The moment of the earliest timer; or, where a far slot has too many to compare, the beginning of
 * that slot, or what was the earliest moment so far, whichever is later. */
static uint64_t find_earliest_ms(struct wheel *w)
{
	const struct wheel_link *head = &w->ready;
	struct wheel_link *link;
	unsigned level = 0, looks = 0;
	uint64_t next_ms, start_ms;

	if (list_empty(head))
		head = earliest_slot(w, &level);
	next_ms = timer_of(head->next)->due_ms;
	if (level == 0) /* one millisecond is one slot; above it, a slot is in no order */
		return next_ms;
	start_ms = next_ms >> (level * DIGIT_BITS) << (level * DIGIT_BITS);
	for (link = head->next; link != head && looks < WHEEL_LOOK; link = link->next, looks++)
		if (timer_of(link)->due_ms < next_ms)
			next_ms = timer_of(link)->due_ms;
	if (link == head)
		return next_ms;
	return start_ms > w->next_ms ? start_ms : w->next_ms;
}

bool wheel_next(struct wheel *w, uint64_t *ret_due_ms)
{
	if (w->count == 0)
		return false;
	if (!w->next_known) {
		w->next_ms = find_earliest_ms(w);
		w->next_known = true;
	}
	*ret_due_ms = w->next_ms;
	return true;
}

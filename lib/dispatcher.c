/*
 * The set of waiting tasks: a table of entries, a hash chain through it to find an id, and a queue
 * through it in the order of handing out.
 *
 * Surprising: links are indexes and not pointers, so that one allocation of 52 to 56 bytes an entry
 * holds all; and entries beyond the highest one ever used are not touched, so that a wide bound
 * costs no memory until it is needed.
 */
#include "dispatcher.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define NIL UINT32_MAX

struct dispatcher_entry {
	struct dispatcher_item item;
	uint32_t next, prev; /* in the queue; next is also that of the free list */
	uint32_t chain;      /* index + 1 of the next entry of this bucket */
};

int dispatcher_init(struct dispatcher *d, const struct dispatcher_limits *limits,
	void (*lost)(void *arg, void *task, enum dispatcher_loss why), void *arg)
{
	unsigned bits = 1;
	size_t entries = limits->max_pending * sizeof(struct dispatcher_entry);

	assert(limits->max_pending >= 1 && limits->max_pending <= 1u << 24);
	assert(limits->max_batch >= 1);
	while (UINT32_C(1) << bits < limits->max_pending)
		bits++;
	*d = (struct dispatcher){
		.limits = *limits,
		.free = NIL,
		.first = NIL,
		.last = NIL,
		.hash_shift = 64 - bits,
		.lost = lost,
		.arg = arg,
	};
	d->entries = calloc(1, entries + (sizeof(*d->buckets) << bits));
	if (!d->entries)
		return -ENOMEM;
	d->buckets = (uint32_t *)(void *)((char *)d->entries + entries);
	return 0;
}

void dispatcher_fini(struct dispatcher *d)
{
	free(d->entries);
	d->entries = NULL;
	d->count = 0;
}

/* Fibonacci hashing: ids may be counters or addresses. */
static uint32_t *id_bucket(const struct dispatcher *d, uint64_t id)
{
	return &d->buckets[(id * UINT64_C(0x9e3779b97f4a7c15)) >> d->hash_shift];
}

/* The link that holds the entry of id, or the 0 at the end of its chain. */
static uint32_t *find_entry(const struct dispatcher *d, uint64_t id)
{
	uint32_t *link = id_bucket(d, id);

	while (*link && d->entries[*link - 1].item.id != id)
		link = &d->entries[*link - 1].chain;
	return link;
}

static void lose_task(struct dispatcher *d, void *task, enum dispatcher_loss why)
{
	uint64_t *const counters[] = {
		[DISPATCHER_OVERRIDDEN] = &d->counters.overridden,
		[DISPATCHER_OVERFLOWED] = &d->counters.overflowed,
		[DISPATCHER_EXPIRED] = &d->counters.expired,
	};

	++*counters[why];
	if (d->lost)
		d->lost(d->arg, task, why);
}

/* Removes the entry that this link of a chain holds from chain and queue. */
static struct dispatcher_item remove_at(struct dispatcher *d, uint32_t *link)
{
	uint32_t index = *link - 1;
	struct dispatcher_entry *e = &d->entries[index];

	*link = e->chain;
	*(e->prev == NIL ? &d->first : &d->entries[e->prev].next) = e->next;
	*(e->next == NIL ? &d->last : &d->entries[e->next].prev) = e->prev;
	e->next = d->free;
	d->free = index;
	d->count--;
	return e->item;
}

static struct dispatcher_item remove_first(struct dispatcher *d)
{
	return remove_at(d, find_entry(d, d->entries[d->first].item.id));
}

/* Puts an item, whose id is not there, at one end of the queue. There is room. */
static void insert_item(struct dispatcher *d, const struct dispatcher_item *item, bool at_front)
{
	uint32_t index = d->free, *bucket = id_bucket(d, item->id);
	struct dispatcher_entry *e;

	if (index == NIL)
		index = d->used++;
	else
		d->free = d->entries[index].next;
	e = &d->entries[index];
	e->item = *item;
	e->chain = *bucket;
	*bucket = index + 1;
	e->prev = at_front ? NIL : d->last;
	e->next = at_front ? d->first : NIL;
	*(e->prev == NIL ? &d->first : &d->entries[e->prev].next) = index;
	*(e->next == NIL ? &d->last : &d->entries[e->next].prev) = index;
	d->count++;
}

int dispatcher_grow(struct dispatcher *d, uint32_t max_pending)
{
	struct dispatcher_limits limits = d->limits;
	struct dispatcher larger;

	if (max_pending <= limits.max_pending)
		return 0;
	limits.max_pending = max_pending;
	if (dispatcher_init(&larger, &limits, d->lost, d->arg))
		return -ENOMEM;
	larger.counters = d->counters;
	larger.hold_until_ms = d->hold_until_ms;
	for (uint32_t i = d->first; i != NIL; i = d->entries[i].next)
		insert_item(&larger, &d->entries[i].item, false);
	dispatcher_fini(d);
	*d = larger;
	return 0;
}

static bool is_full(const struct dispatcher *d)
{
	return d->count == d->limits.max_pending;
}

void dispatcher_submit(
	struct dispatcher *d, uint64_t now_ms, uint64_t id, void *task, uint64_t expires_ms)
{
	struct dispatcher_item item = {id, task, now_ms, expires_ms}, *older;
	uint32_t found = *find_entry(d, id);

	d->counters.accepted++;
	if (found) {
		older = &d->entries[found - 1].item;
		task = older->task;
		older->task = item.task;
		older->expires_ms = expires_ms;
		lose_task(d, task, DISPATCHER_OVERRIDDEN);
		return;
	}
	if (is_full(d))
		lose_task(d, remove_first(d).task, DISPATCHER_OVERFLOWED);
	insert_item(d, &item, false);
}

void dispatcher_retry(
	struct dispatcher *d, uint64_t now_ms, const struct dispatcher_item *items, size_t count)
{
	while (count-- > 0) {
		const struct dispatcher_item *item = &items[count];

		if (item->expires_ms <= now_ms) {
			lose_task(d, item->task, DISPATCHER_EXPIRED);
		} else if (*find_entry(d, item->id)) {
			lose_task(d, item->task, DISPATCHER_OVERRIDDEN);
		} else if (is_full(d)) {
			lose_task(d, item->task, DISPATCHER_OVERFLOWED);
		} else {
			insert_item(d, item, true);
			d->counters.retried++;
		}
	}
}

bool dispatcher_cancel(struct dispatcher *d, uint64_t id)
{
	uint32_t *link = find_entry(d, id);

	if (!*link)
		return false;
	remove_at(d, link);
	d->counters.cancelled++;
	return true;
}

bool dispatcher_expire(struct dispatcher *d, uint64_t id)
{
	uint32_t *link = find_entry(d, id);

	if (!*link)
		return false;
	lose_task(d, remove_at(d, link).task, DISPATCHER_EXPIRED);
	return true;
}

/* The moment from which the queue, which is not empty, has a batch. */
static uint64_t batch_due_ms(const struct dispatcher *d)
{
	uint64_t since_ms = d->entries[d->first].item.since_ms, due_ms;

	if (d->count >= d->limits.max_batch || is_full(d))
		return 0;
	return __builtin_add_overflow(since_ms, d->limits.max_delay_ms, &due_ms) ? UINT64_MAX
										 : due_ms;
}

static void count_value(struct dispatcher_histogram *h, uint64_t value)
{
	unsigned bits = value ? 64 - (unsigned)__builtin_clzll(value) : 0;

	h->counts[bits < DISPATCHER_BUCKETS ? bits : DISPATCHER_BUCKETS - 1]++;
	h->sum += value;
}

size_t dispatcher_take(
	struct dispatcher *d, uint64_t now_ms, size_t room, struct dispatcher_item *ret_items)
{
	struct dispatcher_item item;
	size_t n = 0;
	uint64_t due_ms;

	if (!dispatcher_next(d, &due_ms) || now_ms < due_ms)
		return 0;
	if (room > d->limits.max_batch)
		room = d->limits.max_batch;
	while (n < room && d->count) {
		item = remove_first(d);
		if (item.expires_ms <= now_ms) {
			lose_task(d, item.task, DISPATCHER_EXPIRED);
			continue;
		}
		count_value(&d->counters.latency_ms,
			now_ms > item.since_ms ? now_ms - item.since_ms : 0);
		ret_items[n++] = item;
	}
	if (n) {
		d->counters.batches++;
		d->counters.taken += n;
		count_value(&d->counters.batch_size, n);
	}
	return n;
}

void dispatcher_hold(struct dispatcher *d, uint64_t until_ms)
{
	d->hold_until_ms = until_ms;
}

bool dispatcher_next(const struct dispatcher *d, uint64_t *ret_due_ms)
{
	uint64_t due_ms;

	if (!d->count)
		return false;
	due_ms = batch_due_ms(d);
	*ret_due_ms = due_ms > d->hold_until_ms ? due_ms : d->hold_until_ms;
	return true;
}

size_t dispatcher_pending(const struct dispatcher *d)
{
	return d->count;
}

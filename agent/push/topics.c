/*
 * The table of topics. Surprising: several configs may have the same topic; its sequence number is
 * kept with the first of them.
 */
#include "push/topics.h"

#include <stdlib.h>
#include <string.h>

#include "base/etag.h"
#include "base/sorted.h"

struct seen { /* of one topic at one endpoint */
	bool any;
	uint64_t seq;
};

struct topic {
	struct push_topic *topic;
	uint64_t pending_ms; /* this host's moment within a spread window */
	uint64_t window_ms;  /* the end of the window */
};

struct push_topics {
	const struct sys *sys;
	struct topic *topics; /* sorted by name */
	size_t count, endpoints;
	struct seen *seen; /* for each endpoint, one per topic */
};

/* ---- looking up ---- */

static int compare_topics(const void *a, const void *b)
{
	const struct topic *x = a, *y = b;

	return strcmp(x->topic->topic, y->topic->topic);
}

static const char *topic_name(const void *topics, size_t i)
{
	return ((const struct push_topics *)topics)->topics[i].topic->topic;
}

/* The first of the topics with this name, or NULL. */
static struct topic *find_first_topic(const struct push_topics *t, const char *name)
{
	size_t at;

	return sorted_find(t, t->count, topic_name, name, &at) ? &t->topics[at] : NULL;
}

static struct seen *seen_of(const struct push_topics *t, size_t endpoint, const struct topic *topic)
{
	return &t->seen[endpoint * t->count + (size_t)(topic - t->topics)];
}

const char *push_topics_name(const struct push_topics *t, size_t i)
{
	return i < t->count ? t->topics[i].topic->topic : NULL;
}

bool push_topics_has(const struct push_topics *t, const char *name)
{
	return find_first_topic(t, name);
}

/* ---- hints ---- */

/* Causes a pull within `spread_ms`. A pull that is due within that is the one: hosts that pull then
 * anyway do not pull once more. An open window stays as it is; a message in it after this host's
 * own pull waits for the next window, which follows directly. So a storm of messages costs one pull
 * per window, and each window has the load of one. */
static void hint_topic(const struct sys *sys, struct topic *t, uint64_t spread_ms)
{
	uint64_t now_ms = sys->now_ms(), begin_ms = now_ms, due_ms;
	/* not a window that was much wider than this one: it promised less */
	bool is_open = spread_ms > 0 && t->window_ms <= now_ms + 2 * spread_ms;

	if (!is_open || now_ms >= t->pending_ms) {
		if (is_open && now_ms < t->window_ms)
			begin_ms = t->window_ms;
		t->window_ms = begin_ms + spread_ms;
		t->pending_ms = begin_ms + sys_random_upto(sys, spread_ms);
		if (trigger_due(t->topic->trigger, &due_ms) && due_ms <= t->window_ms)
			t->pending_ms = due_ms;
	}
	trigger_hint(
		t->topic->trigger, now_ms, t->pending_ms > now_ms ? t->pending_ms - now_ms : 0);
}

/* A message may name a longer spread than is configured, not a shorter one. */
static void hint_within(const struct push_topics *t, struct topic *topic, uint64_t spread_ms)
{
	uint64_t least_ms = topic->topic->spread_ms;

	hint_topic(t->sys, topic, spread_ms > least_ms ? spread_ms : least_ms);
}

void push_topics_hint_all(struct push_topics *t, uint64_t least_spread_ms)
{
	for (size_t i = 0; i < t->count; i++)
		if (atomic_load_explicit(&t->topics[i].topic->pulled, memory_order_acquire))
			hint_within(t, &t->topics[i], least_spread_ms);
}

/* ---- messages ---- */

static enum push_seen classify_message(struct seen *seen, const struct push_message *m)
{
	enum push_seen result = PUSH_NEXT;

	if (!m->has_seq)
		return PUSH_NEXT;
	if (seen->any && m->seq == seen->seq)
		result = PUSH_REPEATED;
	else if (seen->any && m->seq != seen->seq + 1)
		result = PUSH_GAP; /* this message's pull makes up for lost ones */
	seen->any = true;
	seen->seq = m->seq;
	return result;
}

enum push_seen push_topics_update(
	struct push_topics *t, size_t endpoint, const char *name, const struct push_message *m)
{
	struct topic *topic = find_first_topic(t, name);
	enum push_seen result;

	if (!topic)
		return PUSH_UNKNOWN;
	result = classify_message(seen_of(t, endpoint, topic), m);
	for (; result != PUSH_REPEATED && topic < t->topics + t->count &&
		strcmp(topic->topic->topic, name) == 0;
		topic++) {
		uint64_t none = 0;

		atomic_fetch_add_explicit(&topic->topic->messages, 1, memory_order_relaxed);
		atomic_compare_exchange_strong_explicit(&topic->topic->heard_us, &none,
			t->sys->monotonic_us(), memory_order_relaxed, memory_order_relaxed);
		/* before the hint, whose release makes it visible to the run */
		atomic_store_explicit(
			&topic->topic->wanted, etag_hash(m->version), memory_order_relaxed);
		hint_within(t, topic, m->spread_ms);
	}
	return result;
}

void push_topics_forget(struct push_topics *t, size_t endpoint)
{
	memset(&t->seen[endpoint * t->count], 0, t->count * sizeof(*t->seen));
}

/* ---- memory ---- */

struct push_topics *push_topics_new(
	const struct sys *sys, struct push_topic *const *topics, size_t count, size_t endpoints)
{
	struct push_topics *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->sys = sys;
	t->count = count;
	t->endpoints = endpoints;
	t->topics = calloc(count + 1, sizeof(*t->topics));
	t->seen = calloc(count * endpoints + 1, sizeof(*t->seen));
	if (!t->topics || !t->seen) {
		push_topics_free(t);
		return NULL;
	}
	for (size_t i = 0; i < count; i++)
		t->topics[i].topic = topics[i];
	qsort(t->topics, count, sizeof(*t->topics), compare_topics);
	return t;
}

void push_topics_free(struct push_topics *t)
{
	if (!t)
		return;
	free(t->topics);
	free(t->seen);
	free(t);
}

void push_topics_follow(struct push_topics *t, const struct push_topics *before)
{
	for (size_t i = 0; i < t->count; i++) {
		struct topic *topic = &t->topics[i];
		const struct topic *was = find_first_topic(before, topic->topic->topic);

		if (!was)
			continue;
		topic->pending_ms = was->pending_ms;
		topic->window_ms = was->window_ms;
		for (size_t k = 0; k < t->endpoints; k++)
			*seen_of(t, k, topic) = *seen_of(before, k, was);
	}
}

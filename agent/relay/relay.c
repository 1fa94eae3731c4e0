/*
 * The relay's topics, and the queues in which they wait.
 *
 * Surprising: sequence numbers go on over a change of the epoch, so that there is a last message
 * for late subscribers also then; but its version, if sources were in doubt, is not promised again.
 * libzmq silently leaves out a subscriber that lost a message, until its queue has room again; so
 * one new epoch is enough however long that takes: the first message it gets then carries it.
 */
#include "relay/relay.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/array.h"
#include "base/log.h"
#include "base/sorted.h"

#define FORGET (RELAY_MAX_TOPICS / 16)
#define BATCH 64 /* messages a turn */
#define WHERE 256

enum state {
	SENT,   /* the last message of the topic, or there was none yet */
	READY,  /* a change waits for its turn */
	PAUSED, /* a change waits for the end of the pause */
	GONE
};

struct topic {
	TAILQ_ENTRY(topic) age, queue, join;
	enum state state;
	bool joined; /* a new subscriber waits for the last message */
	bool has_spread;
	uint64_t seq; /* of the last message; 0 = none */
	uint64_t sent_ms, due_ms;
	uint64_t spread_ms;
	uint64_t hops;    /* of the change that waits, or was sent */
	char *version;    /* NULL = none */
	char *name;       /* behind heard[] */
	uint64_t heard[]; /* next seq of each upstream; 0 = not known */
};

TAILQ_HEAD(topic_queue, topic);

/* A message that found a full queue: heartbeats and changes apart, as subscribers differ. */
struct stall {
	bool on;
	uint64_t since_ms;
};

struct relay {
	const struct sys *sys;
	struct relay_options options;
	relay_send send;
	void *arg;
	struct topic **topics; /* sorted by name */
	size_t count;
	struct topic_queue ages;          /* all, the one that changed last at the end */
	struct topic_queue ready, paused; /* by state */
	struct topic_queue joins;
	char epoch[24];
	uint64_t epoch_ms; /* when it began */
	uint64_t epoch_spread_ms, epoch_hops;
	uint64_t beat_ms, join_ms; /* when due */
	bool missed;               /* a new epoch is due */
	const char *cause;
	char where[WHERE];
	uint64_t missed_spread_ms, missed_hops;
	bool lost; /* a slow subscriber lost a message: a new epoch with the next heartbeat */
	struct stall beat_stall, change_stall;
	uint64_t impatient_ms; /* until then */
	struct log_limit epoch_log, slow_log, circle_log;
	struct relay_counts counts;
	char upstream[][sizeof(((struct push_message *)0)->epoch)]; /* epochs */
};

/* ---- topics ---- */

static const char *kept_name_at(const void *relay, size_t i)
{
	return ((const struct relay *)relay)->topics[i]->name;
}

static void leave_topic_queue(struct relay *r, struct topic *t)
{
	if (t->state == READY)
		TAILQ_REMOVE(&r->ready, t, queue);
	else if (t->state == PAUSED)
		TAILQ_REMOVE(&r->paused, t, queue);
	r->counts.waiting -= t->state != SENT;
	t->state = SENT;
}

static void leave_joins(struct relay *r, struct topic *t)
{
	if (t->joined)
		TAILQ_REMOVE(&r->joins, t, join);
	t->joined = false;
}

static void topic_free(struct topic *t)
{
	free(t->version);
	free(t);
}

static void renew_epoch(struct relay *r, const char *cause, const char *where, uint64_t spread_ms);

/* Forgets the topics that changed last of all. Their numbers start again: a new epoch, at once. */
static void forget_oldest(struct relay *r)
{
	size_t kept = 0;
	struct topic *t;

	for (size_t i = 0; i < FORGET; i++) {
		t = TAILQ_FIRST(&r->ages);
		TAILQ_REMOVE(&r->ages, t, age);
		r->counts.no_room += t->state != SENT;
		leave_topic_queue(r, t);
		leave_joins(r, t);
		t->state = GONE;
	}
	for (size_t i = 0; i < r->count; i++)
		if (r->topics[i]->state == GONE)
			topic_free(r->topics[i]);
		else
			r->topics[kept++] = r->topics[i];
	r->counts.topics = r->count = kept;
	r->counts.forgets++;
	renew_epoch(r, "too many topics: the oldest are forgotten", NULL, 0);
}

static struct topic *topic_new(const struct relay *r, const char *name)
{
	size_t heard = r->options.upstreams * sizeof(uint64_t), len = strlen(name);
	struct topic *t = calloc(1, sizeof(*t) + heard + len + 1);

	if (!t)
		return NULL;
	t->name = (char *)&t->heard[r->options.upstreams];
	memcpy(t->name, name, len + 1);
	return t;
}

/* NULL when memory is short: then messages count as missed. */
static struct topic *find_or_add_topic(struct relay *r, const char *name)
{
	size_t i;
	struct topic **grown, *t;

	if (sorted_find(r, r->count, kept_name_at, name, &i))
		return r->topics[i];
	if (r->count == RELAY_MAX_TOPICS) {
		forget_oldest(r);
		sorted_find(r, r->count, kept_name_at, name, &i);
	}
	grown = array_room(r->topics, r->count, sizeof(*grown));
	if (grown)
		r->topics = grown;
	t = grown ? topic_new(r, name) : NULL;
	if (!t) {
		r->counts.no_room++;
		relay_missed(r, "out of memory", NULL, 0);
		return NULL;
	}
	memmove(&r->topics[i + 1], &r->topics[i], (r->count - i) * sizeof(*r->topics));
	r->topics[i] = t;
	r->counts.topics = ++r->count;
	TAILQ_INSERT_TAIL(&r->ages, t, age);
	return t;
}

int relay_topic(const char *key, size_t len, char ret_topic[PUSH_MAX_TOPIC + 1])
{
	const char *slash = memrchr(key, '/', len), *name = slash ? slash + 1 : key;
	const char *dot = memrchr(name, '.', len - (size_t)(name - key));

	if (dot && dot > name)
		len = (size_t)(dot - key);
	if (len == 0 || len > PUSH_MAX_TOPIC || memchr(key, '\0', len) ||
		(len == strlen(PUSH_HEARTBEAT_TOPIC) && !memcmp(key, PUSH_HEARTBEAT_TOPIC, len)))
		return -EINVAL;
	memcpy(ret_topic, key, len);
	ret_topic[len] = '\0';
	return 0;
}

/* ---- changes that come in ---- */

static void set_topic_version(struct topic *t, const char *version)
{
	if (version && t->version && strcmp(version, t->version) == 0)
		return;
	free(t->version);
	t->version = version && *version ? strdup(version) : NULL;
}

/* Queues a change; a topic that waits already keeps its place. What is news to anybody is sent on
 * as such: in a circle, a change of which an older one goes round. */
static void queue_topic(struct relay *r, struct topic *t, uint64_t hops)
{
	uint64_t now_ms = r->sys->now_ms();

	if (t->state == SENT || hops < t->hops)
		t->hops = hops;
	TAILQ_REMOVE(&r->ages, t, age);
	TAILQ_INSERT_TAIL(&r->ages, t, age);
	if (t->state != SENT) {
		r->counts.superseded++;
		return;
	}
	r->counts.waiting++;
	t->due_ms = now_ms + RELAY_PAUSE_MS;
	t->state = t->seq && now_ms < t->sent_ms + RELAY_PAUSE_MS ? PAUSED : READY;
	TAILQ_INSERT_TAIL(t->state == PAUSED ? &r->paused : &r->ready, t, queue);
}

void relay_changed(struct relay *r, const char *topic, const char *version)
{
	struct topic *t = find_or_add_topic(r, topic);

	r->counts.changes++;
	if (!t)
		return;
	set_topic_version(t, version);
	t->has_spread = r->options.spread_ms > 0;
	t->spread_ms = r->options.spread_ms;
	queue_topic(r, t, 0);
}

static void note_missed(
	struct relay *r, const char *cause, const char *where, uint64_t spread_ms, uint64_t hops)
{
	if (!r->missed || hops < r->missed_hops)
		r->missed_hops = hops;
	if (!r->missed) {
		r->missed_spread_ms = 0;
		r->cause = cause;
		snprintf(r->where, sizeof(r->where), "%s", where ? where : "");
	}
	r->missed = true;
	if (spread_ms > r->missed_spread_ms)
		r->missed_spread_ms = spread_ms;
}

void relay_missed(struct relay *r, const char *cause, const char *where, uint64_t spread_ms)
{
	note_missed(r, cause, where, spread_ms, 0);
}

static void warn_of_circle(struct relay *r, const char *where)
{
	unsigned repeated;

	if (log_limit_pass(&r->circle_log, r->sys->now_ms(), "circle", &repeated))
		log_warn("dropped what came through too many relays: is an upstream fed by this "
			 "relay, in a circle?",
			"upstream", where, "relays", LOG_U64(PUSH_MAX_HOPS), "repeated",
			repeated ? LOG_U64(repeated) : NULL);
}

/* Takes the upstream's epoch. True: it replaces another one. */
static bool note_upstream_epoch(struct relay *r, unsigned upstream, const char *epoch)
{
	char *known = r->upstream[upstream];
	bool other = *epoch && strcmp(epoch, known) != 0, was_known = *known;

	if (!other)
		return false;
	snprintf(known, sizeof(r->upstream[0]), "%s", epoch);
	for (size_t i = 0; i < r->count; i++)
		r->topics[i]->heard[upstream] = 0;
	return was_known;
}

void relay_heard(struct relay *r, unsigned upstream, const char *where, const char *topic,
	const struct push_message *m)
{
	bool heartbeat = strcmp(topic, PUSH_HEARTBEAT_TOPIC) == 0, other;
	uint64_t *heard, expected;
	struct topic *t;

	other = note_upstream_epoch(r, upstream, m->epoch);
	if (m->hops >= PUSH_MAX_HOPS && (other || !heartbeat))
		warn_of_circle(r, where);
	else if (other)
		note_missed(r, "upstream has a new epoch", where, m->spread_ms, m->hops + 1);
	if (heartbeat)
		return;
	r->counts.changes++;
	t = find_or_add_topic(r, topic);
	if (!t)
		return;
	heard = &t->heard[upstream];
	expected = *heard;
	if (m->has_seq)
		*heard = m->seq + 1;
	if (m->has_seq && expected == m->seq + 1) {
		r->counts.repeated++; /* for a late subscriber */
		return;
	}
	if (m->has_seq && expected && expected != m->seq)
		relay_missed(r, "a message from upstream is missing", where, m->spread_ms);
	if (m->hops >= PUSH_MAX_HOPS) {
		r->counts.circled++;
		return;
	}
	set_topic_version(t, m->version);
	t->has_spread = m->has_spread || r->options.spread_ms > 0;
	t->spread_ms = m->spread_ms > r->options.spread_ms ? m->spread_ms : r->options.spread_ms;
	queue_topic(r, t, m->hops + 1);
}

void relay_joined(struct relay *r, const char *prefix)
{
	size_t i, len = strlen(prefix);

	if (TAILQ_EMPTY(&r->joins))
		r->join_ms = r->sys->now_ms() + RELAY_JOIN_MS;
	for (sorted_find(r, r->count, kept_name_at, prefix, &i); i < r->count; i++) {
		struct topic *t = r->topics[i];

		if (strncmp(t->name, prefix, len) != 0)
			break;
		if (t->joined || t->seq == 0)
			continue;
		t->joined = true;
		TAILQ_INSERT_TAIL(&r->joins, t, join);
	}
}

/* ---- messages that go out ---- */

static void renew_epoch(struct relay *r, const char *cause, const char *where, uint64_t spread_ms)
{
	uint64_t now_ms = r->sys->now_ms();
	unsigned repeated;

	snprintf(r->epoch, sizeof(r->epoch), "%016" PRIx64, r->sys->random());
	r->epoch_ms = now_ms;
	r->epoch_spread_ms = spread_ms > r->options.spread_ms ? spread_ms : r->options.spread_ms;
	r->beat_ms = now_ms;
	r->epoch_hops = 0;
	r->lost = false;
	if (cause && log_limit_pass(&r->epoch_log, now_ms, cause, &repeated))
		log_info("new epoch: all agents pull", "cause", cause, "where", where, "epoch",
			r->epoch, "repeated", repeated ? LOG_U64(repeated) : NULL);
}

/* Begins a new epoch, and forgets versions that were sent, which may be old ones. Versions that
 * wait came later, or a pull follows all the same. */
static void begin_doubted_epoch(struct relay *r)
{
	for (size_t i = 0; i < r->count; i++)
		if (r->topics[i]->state == SENT)
			set_topic_version(r->topics[i], NULL);
	r->missed = false;
	r->counts.doubts++;
	renew_epoch(r, r->cause, r->where[0] ? r->where : NULL, r->missed_spread_ms);
	r->epoch_hops = r->missed_hops;
}

static void message_lost(struct relay *r, uint64_t now_ms, int error)
{
	unsigned repeated;

	r->lost = true;
	*(error == -EAGAIN ? &r->counts.slow : &r->counts.failed) += 1;
	r->impatient_ms = now_ms + RELAY_IMPATIENT_MS;
	if (log_limit_pass(&r->slow_log, now_ms, "slow", &repeated))
		log_warn(error == -EAGAIN
				 ? "subscriber too slow: it loses messages, and pulls later"
				 : "cannot send a message: agents pull instead",
			"why", error == -EAGAIN ? NULL : strerror(-error), "repeated",
			repeated ? LOG_U64(repeated) : NULL);
}

/* Sends to all, or, when that was tried for long enough, to all with room in their queue. False:
 * try again later. */
static bool send_or_wait(
	struct relay *r, struct stall *stall, const char *topic, const struct push_message *m)
{
	uint64_t now_ms = r->sys->now_ms();
	uint64_t patience_ms = now_ms < r->impatient_ms ? RELAY_IMPATIENCE_MS : RELAY_PATIENCE_MS;
	int e = r->send(r->arg, topic, m, true);

	if (e == -EAGAIN) {
		if (!stall->on)
			*stall = (struct stall){true, now_ms};
		if (now_ms < stall->since_ms + patience_ms)
			return false;
		message_lost(r, now_ms, e);
		e = r->send(r->arg, topic, m, false);
	}
	stall->on = false;
	if (e)
		message_lost(r, now_ms, e);
	return true;
}

static struct push_message make_message(const struct relay *r, const struct topic *t, uint64_t seq)
{
	struct push_message m = {.has_seq = true,
		.seq = seq,
		.has_spread = t->has_spread,
		.spread_ms = t->spread_ms,
		.hops = t->hops};

	memcpy(m.epoch, r->epoch, sizeof(r->epoch));
	snprintf(m.version, sizeof(m.version), "%s", t->version ? t->version : "");
	return m;
}

static bool send_heartbeat(struct relay *r, uint64_t now_ms)
{
	struct push_message m = {
		.has_spread = r->epoch_spread_ms > 0, .spread_ms = r->epoch_spread_ms};

	if (r->lost) {
		r->counts.losses++;
		renew_epoch(r, "a subscriber lost messages", NULL, 0);
	}
	memcpy(m.epoch, r->epoch, sizeof(r->epoch));
	m.hops = r->epoch_hops;
	if (!send_or_wait(r, &r->beat_stall, PUSH_HEARTBEAT_TOPIC, &m))
		return false;
	r->counts.heartbeats++;
	r->beat_ms = now_ms + r->options.heartbeat_ms;
	return true;
}

static bool send_changes(struct relay *r, uint64_t now_ms)
{
	struct push_message m;
	struct topic *t;

	while ((t = TAILQ_FIRST(&r->paused)) && t->due_ms <= now_ms) {
		TAILQ_REMOVE(&r->paused, t, queue);
		t->state = READY;
		TAILQ_INSERT_TAIL(&r->ready, t, queue);
	}
	for (unsigned i = 0; i < BATCH && (t = TAILQ_FIRST(&r->ready)); i++) {
		m = make_message(r, t, t->seq + 1);
		if (!send_or_wait(r, &r->change_stall, t->name, &m))
			return false;
		r->counts.messages++;
		t->seq++;
		t->sent_ms = now_ms;
		leave_topic_queue(r, t);
		leave_joins(r, t); /* this message is the last one now */
	}
	return true;
}

/* Sends last messages again, but drops none for them. */
static void send_again(struct relay *r, uint64_t now_ms)
{
	struct push_message m;
	struct topic *t;

	r->join_ms = now_ms + RELAY_JOIN_MS;
	for (unsigned i = 0; i < RELAY_JOIN_BATCH && (t = TAILQ_FIRST(&r->joins)); i++) {
		m = make_message(r, t, t->seq);
		/* a change that waits comes anyway, with the version */
		if (t->state == SENT && r->send(r->arg, t->name, &m, true))
			return;
		r->counts.repetitions += t->state == SENT;
		leave_joins(r, t);
	}
}

static uint64_t next_turn_ms(const struct relay *r, uint64_t now_ms)
{
	uint64_t next = r->beat_ms;

	if (r->missed && r->epoch_ms + RELAY_EPOCH_MS < next)
		next = r->epoch_ms + RELAY_EPOCH_MS;
	if (!TAILQ_EMPTY(&r->ready))
		next = now_ms;
	if (!TAILQ_EMPTY(&r->paused) && TAILQ_FIRST(&r->paused)->due_ms < next)
		next = TAILQ_FIRST(&r->paused)->due_ms;
	if (!TAILQ_EMPTY(&r->joins) && r->join_ms < next)
		next = r->join_ms;
	return r->beat_stall.on || r->change_stall.on ? now_ms + RELAY_RETRY_MS : next;
}

uint64_t relay_turn(struct relay *r)
{
	uint64_t now_ms = r->sys->now_ms();

	if (r->missed && now_ms >= r->epoch_ms + RELAY_EPOCH_MS)
		begin_doubted_epoch(r);
	if ((now_ms < r->beat_ms || send_heartbeat(r, now_ms)) && send_changes(r, now_ms) &&
		now_ms >= r->join_ms)
		send_again(r, now_ms);
	return next_turn_ms(r, now_ms);
}

/* ---- memory ---- */

struct relay *relay_new(
	const struct sys *sys, const struct relay_options *options, relay_send send, void *arg)
{
	struct relay *r = calloc(1, sizeof(*r) + options->upstreams * sizeof(r->upstream[0]));

	if (!r)
		return NULL;
	r->sys = sys;
	r->options = *options;
	r->send = send;
	r->arg = arg;
	TAILQ_INIT(&r->ages);
	TAILQ_INIT(&r->ready);
	TAILQ_INIT(&r->paused);
	TAILQ_INIT(&r->joins);
	renew_epoch(r, NULL, NULL, 0);
	return r;
}

void relay_free(struct relay *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->count; i++)
		topic_free(r->topics[i]);
	free(r->topics);
	free(r);
}

const char *relay_epoch(const struct relay *r)
{
	return r->epoch;
}

const struct relay_counts *relay_counts(const struct relay *r)
{
	return &r->counts;
}

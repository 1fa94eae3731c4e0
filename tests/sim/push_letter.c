/*
 * Messages under way to their subscribers: lost, copied, late, forged. Surprising: one letter has
 * many recipients; what is forged is a letter of its own.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/push_network.h"
#include "tests/sim/world.h"

/* ---- letters ---- */

/* Returns one that is held by the caller; NULL = there are too many. */
static struct letter *letter_new(void)
{
	struct push_network *n = push_network;
	struct letter *letter = NULL;

	if (n->free_letter) {
		letter = &n->letters[n->free_letter - 1];
		n->free_letter = letter->next_free;
	} else if (n->letter_count < PUSH_MAX_LETTERS) {
		letter = &n->letters[n->letter_count++];
	}
	if (letter) {
		letter->users = 1;
		letter->bare = letter->has_more = false;
	}
	return letter;
}

static void release_letter(struct letter *letter)
{
	if (--letter->users)
		return;
	letter->next_free = push_network->free_letter;
	push_network->free_letter = (unsigned)(letter - push_network->letters) + 1;
}

static void write_envelope(struct letter *letter)
{
	struct buffer b;

	buffer_init(&b, sizeof(letter->envelope));
	letter->envelope_len = 0;
	if (push_message_write(&letter->m, &b) == 0 && b.len < sizeof(letter->envelope)) {
		letter->envelope_len = b.len;
		memcpy(letter->envelope, b.data, b.len + 1);
	}
	buffer_fini(&b);
}

static void write_topic(struct letter *letter, const char *topic, const char *more)
{
	int n = snprintf(letter->topic, sizeof(letter->topic), "%s%s", topic, more);

	letter->topic_len = n < (int)sizeof(letter->topic) ? (size_t)n : sizeof(letter->topic) - 1;
}

/* ---- on the way ---- */

static void deliver_letter(void *arg, uint64_t number)
{
	struct letter *letter = &push_network->letters[(uint32_t)number];
	struct link *l = arg;
	uint64_t until_us;

	if (l->serial == number >> 32 && push_link_sleeps(l, &until_us)) {
		world_at(until_us, deliver_letter, l, number);
		return;
	}
	push_network->under_way--;
	if (l->serial == number >> 32 && (l->state == LINK_UP || l->state == LINK_DEAF) &&
		push_reaches(l->to->host, l->host)) {
		push_network->totals.delivered++;
		push_link_hear(l, letter);
	} else {
		push_network->totals.lost++;
	}
	release_letter(letter);
}

static void send_off(struct link *l, struct letter *letter, uint64_t due_us)
{
	uint64_t number = (uint64_t)l->serial << 32 | (uint64_t)(letter - push_network->letters);

	letter->users++;
	push_network->under_way++;
	world_at(due_us, deliver_letter, l, number);
}

static const char *const bad_envelopes[] = {"{nonsense", "{\"v\":2}", "", "[]",
	"{\"v\":1,\"seq\":-1}", "{\"v\":1,\"epoch\":7}", "{\"v\":1,\"spread_ms\":\"x\"}",
	"{\"v\":\"1\"}", "{\"seq\":1}", "{\"v\":1,\"spread_ms\":99999999999}",
	"{\"v\":1,\"seq\":1.5}", "{\"v\":1,\"version\":7}"};

#define BAD_ENVELOPES (sizeof(bad_envelopes) / sizeof(bad_envelopes[0]))

enum forgery {
	FORGED_TOPIC,    /* nobody's, or one that a filter lets through */
	FORGED_VERSION,  /* no server has it */
	FORGED_OLD,      /* a number from before */
	FORGED_AHEAD,    /* a number that comes later, or never */
	FORGED_EPOCH,    /* another publisher's */
	FORGED_SPREAD,   /* an hour */
	FORGED_ENVELOPE, /* not JSON, or of another version */
	FORGED_LENGTH,   /* an envelope over the limit, or more frames */
	FORGED_BARE,     /* no envelope, or a topic with a NUL */
	FORGERIES
};

static void forge_form(struct letter *letter, enum forgery kind)
{
	size_t which = world_random(STREAM_PUSH, 5);

	if (kind == FORGED_ENVELOPE) {
		letter->envelope_len = (size_t)snprintf(letter->envelope, sizeof(letter->envelope),
			"%s", bad_envelopes[world_random(STREAM_PUSH, BAD_ENVELOPES - 1)]);
	} else if (kind == FORGED_LENGTH && which < 3) {
		letter->has_more = true;
	} else if (kind == FORGED_LENGTH) {
		letter->envelope_len = PUSH_MAX_ENVELOPE + 1;
	} else if (which < 4) {
		letter->bare = true;
	} else {
		letter->topic_len++;
	}
}

static void forge_words(struct letter *letter, enum forgery kind)
{
	struct push_message *m = &letter->m;
	uint64_t drawn = world_random(STREAM_PUSH, 1000);

	if (kind == FORGED_TOPIC) {
		write_topic(letter, drawn < 500 ? "nobody's" : letter->topic, "x");
	} else if (kind == FORGED_VERSION) {
		snprintf(m->version, sizeof(m->version), "forged-%" PRIu64, drawn);
		m->has_seq = drawn < 500;
	} else if (kind == FORGED_OLD) {
		m->seq = m->seq > drawn ? m->seq - drawn : 0;
	} else if (kind == FORGED_AHEAD) {
		m->seq += drawn;
	} else if (kind == FORGED_EPOCH) {
		snprintf(m->epoch, sizeof(m->epoch), "forged-%" PRIu64, drawn);
	} else {
		m->has_spread = true;
		m->spread_ms = PUSH_MAX_SPREAD_MS;
	}
	write_envelope(letter);
}

/* Sends one more, made from a true one. */
static void forge_letter(struct link *l, const struct letter *from)
{
	enum forgery kind = (enum forgery)world_random(STREAM_PUSH, FORGERIES - 1);
	uint64_t due_us = world.now_us + push_delay_us();
	struct letter *letter = letter_new();
	unsigned next_free;

	if (!letter)
		return;
	next_free = letter->next_free;
	*letter = *from;
	letter->next_free = next_free;
	letter->users = 1;
	if (kind >= FORGED_ENVELOPE)
		forge_form(letter, kind);
	else
		forge_words(letter, kind);
	push_network->totals.forged++;
	world_trace("push: forged %u for %zu: %s", kind, (size_t)(l - push_network->links),
		letter->topic);
	send_off(l, letter, due_us);
	release_letter(letter);
}

/* Messages of one connection arrive in order, but for those that are late. */
static void post_letter_to(struct link *l, struct letter *letter)
{
	const struct push_faults *f = &push_network->faults;
	struct push_totals *t = &push_network->totals;
	uint64_t due_us = world.now_us + push_delay_us();

	t->sent++;
	if (l->state == LINK_MUTE || push_strikes(f->lose) ||
		(l->to->full_until_us > world.now_us && push_strikes(2))) {
		t->lost++;
		world_trace(
			"push: lost for %zu: %s", (size_t)(l - push_network->links), letter->topic);
		return;
	}
	if (push_strikes(f->delay)) {
		t->delayed++;
		due_us += 1000 * world_random(STREAM_PUSH, f->delay_ms);
	} else {
		due_us = due_us > l->last_due_us ? due_us : l->last_due_us;
		l->last_due_us = due_us;
	}
	send_off(l, letter, due_us);
	if (push_strikes(f->copy)) {
		t->copied++;
		send_off(l, letter, due_us + 1000 * world_random(STREAM_PUSH, f->delay_ms));
	}
	if (push_strikes(f->forge))
		forge_letter(l, letter);
}

void push_post(struct push_publisher *p, const char *topic, const struct push_message *m)
{
	struct letter *letter = letter_new();

	if (!letter) {
		world_trace("push: too many messages under way");
		return;
	}
	letter->m = *m;
	write_topic(letter, topic, "");
	write_envelope(letter);
	for (size_t i = 0; i < push_network->link_count; i++) {
		struct link *l = &push_network->links[i];

		if (l->to == p && (l->state == LINK_UP || l->state == LINK_MUTE) &&
			l->subscribed_us <= world.now_us &&
			push_subscriber_wants(l->subscriber, topic))
			post_letter_to(l, letter);
	}
	release_letter(letter);
}

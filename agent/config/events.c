/*
 * The last events of all configs. Surprising: an event is found by walking over all of them; there
 * are few, and they are added and asked for seldom.
 */
#include "config/events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "config/state.h"
#include "text/json_writer.h"

struct event {
	uint64_t config, number; /* the hash of its name; events are numbered from 1 */
	int64_t at_ms;
	uint64_t generation;
	const char *by;
	char *text;
	enum event_kind kind;
	unsigned times;
};

struct events {
	uint64_t count;
	size_t used;
	struct event *slots; /* room for more as they come */
};

struct events *events_new(void)
{
	return calloc(1, sizeof(struct events));
}

void events_free(struct events *e)
{
	for (size_t i = 0; e && i < e->used; i++)
		free(e->slots[i].text);
	if (e)
		free(e->slots);
	free(e);
}

static uint64_t config_key(const struct config *c)
{
	return hash_bytes(HASH_START, c->settings->name, strlen(c->settings->name));
}

/* ---- adding ---- */

/* Whole characters of it; what is cut within a value is hidden with it. */
static char *copy_text(const char *text)
{
	size_t len = text ? strnlen(text, EVENTS_MAX_TEXT + 1) : 0;

	if (len > EVENTS_MAX_TEXT)
		for (len = EVENTS_MAX_TEXT; len && ((unsigned char)text[len] & 0xc0) == 0x80;)
			len--;
	return len ? strndup(text, len) : NULL;
}

static bool is_same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool is_same_event(const struct event *a, const struct event *b)
{
	return a->kind == b->kind && a->generation == b->generation && is_same_text(a->by, b->by) &&
	       is_same_text(a->text, b->text);
}

struct found {
	struct event *oldest, *newest; /* of the config */
	struct event *first;           /* of all */
	size_t count;                  /* of the config */
};

static struct found look_over(struct events *e, uint64_t config)
{
	struct found f = {.count = 0};

	for (size_t i = 0; i < e->used; i++) {
		struct event *slot = &e->slots[i];

		if (!f.first || slot->number < f.first->number)
			f.first = slot;
		if (slot->config != config)
			continue;
		f.count++;
		if (!f.oldest || slot->number < f.oldest->number)
			f.oldest = slot;
		if (!f.newest || slot->number > f.newest->number)
			f.newest = slot;
	}
	return f;
}

/* An empty one, or NULL. The others may move. */
static struct event *add_slot(struct events *e)
{
	struct event *more = array_room(e->slots, e->used, sizeof(*more));

	if (!more)
		return NULL;
	e->slots = more;
	e->slots[e->used] = (struct event){.number = 0};
	return &e->slots[e->used++];
}

/* Takes the text of the event. */
static void add_event(struct events *e, const struct event *event)
{
	struct found f = look_over(e, event->config);
	struct event *slot = f.first;

	if (f.newest && is_same_event(f.newest, event)) {
		f.newest->times++;
		f.newest->at_ms = event->at_ms;
		f.newest->number = event->number;
		free(event->text);
		return;
	}
	if (f.count >= EVENTS_A_CONFIG)
		slot = f.oldest;
	else if (e->used < EVENTS_MAX)
		slot = add_slot(e);
	if (!slot) {
		free(event->text);
		return;
	}
	free(slot->text);
	*slot = *event;
}

void events_note(const struct config *c, enum event_kind kind, const char *by, const char *text)
{
	struct events *e = c->env->events;
	struct event event = {
		.kind = kind, .by = by, .generation = c->current.version.generation, .times = 1};

	if (!e)
		return;
	event.config = config_key(c);
	event.number = ++e->count;
	event.at_ms = c->env->sys->wall_ms();
	event.text = copy_text(text);
	add_event(e, &event);
}

void events_note_verdict(const struct config *c, const char *check, const char *why)
{
	if (rejection_parse(check) != REJECTED_BY_PROBE)
		events_note(c, EVENT_REJECTED, check, why);
}

void config_note_decision(struct config *c, const char *what, const char *by, const char *reason)
{
	char text[EVENTS_MAX_TEXT];

	snprintf(text, sizeof(text), "%s by %s%s%s", what, by, reason[0] ? ": " : "", reason);
	events_note(c, EVENT_DECIDED, NULL, text);
}

/* ---- JSON ---- */

/* What anybody may read in the status or the history, too. */
static bool is_for_all(enum event_kind kind)
{
	return kind == EVENT_PUBLISHED || kind == EVENT_DECIDED;
}

static void write_event(const struct event *e, enum audience audience, struct buffer *out)
{
	static const char *const names[EVENT_KINDS] = {
		[EVENT_PUBLISHED] = "published",
		[EVENT_REJECTED] = "rejected",
		[EVENT_HELD] = "held",
		[EVENT_FAILED] = "failed",
		[EVENT_RECOVERED] = "recovered",
		[EVENT_DECIDED] = "decided",
		[EVENT_RESTORED] = "restored",
		[EVENT_RELOADED] = "reloaded",
		[EVENT_RELOAD_FAILED] = "reload failed",
		[EVENT_PROBE_PASSED] = "probe passed",
		[EVENT_PROBE_FAILED] = "probe failed",
	};
	bool hidden = e->text && audience == AUDIENCE_PUBLIC && !is_for_all(e->kind);

	json_writer_begin_object(out, NULL);
	json_writer_number(out, "at_ms", (unsigned long long)e->at_ms);
	json_writer_text(out, "event", names[e->kind]);
	json_writer_number(out, "generation", e->generation);
	json_writer_text(out, "by", e->by);
	sentence_member(
		out, "text", hidden ? "see the control socket for the reason" : e->text, audience);
	json_writer_number(out, "times", e->times);
	json_writer_end_object(out);
}

static int compare_newest_first(const void *a, const void *b)
{
	const struct event *const *x = a, *const *y = b;

	return ((*x)->number < (*y)->number) - ((*x)->number > (*y)->number);
}

int events_write(const struct config *c, enum audience audience, struct buffer *out)
{
	const struct event *found[EVENTS_A_CONFIG] = {NULL};
	const struct events *e = c->env->events;
	uint64_t key = config_key(c);
	size_t count = 0;

	for (size_t i = 0; e && i < e->used && count < EVENTS_A_CONFIG; i++)
		if (e->slots[i].config == key)
			found[count++] = &e->slots[i];
	qsort(found, count, sizeof(found[0]), compare_newest_first);
	json_writer_begin_object(out, NULL);
	json_writer_text(out, "name", c->settings->name);
	json_writer_begin_array(out, "events");
	for (size_t i = 0; i < count; i++) {
		write_event(found[i], audience, out);
	}
	json_writer_end_array(out);
	return json_writer_end_object(out);
}

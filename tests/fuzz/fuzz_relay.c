/*
 * Fuzz target: what a relay hears from upstream, between changes, subscriptions and queues that
 * fill up. Whatever comes, what it sends is well formed, and the numbers of a topic have no gaps.
 *
 * A line is a step: "TOPIC ENVELOPE" is a message; a step's own sign before a blank: c KEY (a
 * change), j PREFIX (a subscription), m (something was missed), f (queues are full, or not any
 * more), 0 to 9 (time passes, by powers of two).
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "relay/relay.h"

#define MAX_NAMES 256

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
	uint64_t now_ms, random;
	bool full;
	struct {
		char name[PUSH_MAX_TOPIC + 1];
		uint64_t seq;
	} topics[MAX_NAMES];
	size_t count;
} world;

static void demand(int condition)
{
	if (!condition)
		abort();
}

static uint64_t now_ms(void)
{
	return world.now_ms;
}

static uint64_t next_random(void)
{
	return ++world.random;
}

static void count(const char *topic, uint64_t seq)
{
	for (size_t i = 0; i < world.count; i++) {
		if (strcmp(world.topics[i].name, topic) != 0)
			continue;
		demand(seq == world.topics[i].seq || seq == world.topics[i].seq + 1);
		world.topics[i].seq = seq;
		return;
	}
	demand(seq == 1 || world.count == MAX_NAMES);
	if (world.count == MAX_NAMES)
		return;
	memcpy(world.topics[world.count].name, topic, strlen(topic) + 1);
	world.topics[world.count++].seq = seq;
}

static int check(void *arg, const char *topic, const struct push_message *m, bool strict)
{
	const struct relay *r = *(struct relay **)arg;
	struct buffer b;

	demand(topic[0] && strlen(topic) <= PUSH_MAX_TOPIC);
	demand(strcmp(m->epoch, relay_epoch(r)) == 0);
	demand(m->has_seq == (strcmp(topic, PUSH_HEARTBEAT_TOPIC) != 0));
	demand(m->spread_ms <= PUSH_MAX_SPREAD_MS);
	buffer_init(&b, PUSH_MAX_ENVELOPE);
	demand(push_message_write(m, &b) == 0);
	buffer_fini(&b);
	if (world.full && strict)
		return -EAGAIN;
	if (m->has_seq)
		count(topic, m->seq);
	return 0;
}

/* The bytes up to the end or a NUL, at most so many, as a text. */
static void text(char *to, size_t room, const char *from, size_t len)
{
	len = strnlen(from, len < room ? len : room - 1);
	memcpy(to, from, len);
	to[len] = '\0';
}

static void hear(struct relay *r, const char *line, size_t len, unsigned upstream)
{
	const char *blank = memchr(line, ' ', len), *why;
	size_t name = blank ? (size_t)(blank - line) : len;
	struct push_message m = {0};
	char topic[PUSH_MAX_TOPIC + 1];

	if (name == 0 || name > PUSH_MAX_TOPIC || memchr(line, '\0', name))
		return; /* subscriber.c lets none of these through */
	text(topic, sizeof(topic), line, name);
	if (blank && push_message_parse(blank + 1, len - name - 1, &m, &why))
		m = (struct push_message){0};
	relay_heard(r, upstream, "upstream", topic, &m);
}

static void step(struct relay *r, const char *line, size_t len, unsigned number)
{
	char name[PUSH_MAX_TOPIC + 1];

	if (len == 1 && line[0] >= '0' && line[0] <= '9')
		world.now_ms += UINT64_C(1) << (2 * (line[0] - '0'));
	else if (len == 1 && line[0] == 'm')
		relay_missed(r, "test", NULL, 0);
	else if (len == 1 && line[0] == 'f')
		world.full = !world.full;
	else if (len >= 2 && line[1] == ' ' && line[0] == 'c') {
		if (relay_topic(line + 2, len - 2, name) == 0)
			relay_changed(r, name, "1");
	} else if (len >= 2 && line[1] == ' ' && line[0] == 'j') {
		text(name, sizeof(name), line + 2, len - 2);
		relay_joined(r, name);
	} else {
		hear(r, line, len, number % 2);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct sys sys = {.now_ms = now_ms, .random = next_random};
	static const struct relay_options options = {1000, 0, 2};
	const char *line = (const char *)data, *end = line + size;
	struct relay *r = NULL;
	unsigned number = 0;

	log_setup(LOG_LEVEL_ERR, LOG_FORMAT_TEXT);
	memset(&world, 0, sizeof(world));
	world.now_ms = 1000000;
	r = relay_new(&sys, &options, check, &r);
	demand(r != NULL);
	while (line < end) {
		const char *next = memchr(line, '\n', (size_t)(end - line));

		step(r, line, (size_t)((next ? next : end) - line), number++);
		demand(relay_turn(r) <= world.now_ms + options.heartbeat_ms);
		line = next ? next + 1 : end;
	}
	relay_free(r);
	return 0;
}

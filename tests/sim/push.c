/*
 * Publishers: epochs, numbers, heartbeats, and what goes wrong with them and, at their heartbeats,
 * with the connections to them.
 */
#include "tests/sim/push.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/push_network.h"
#include "tests/sim/world.h"

static struct push_network the_network;
struct push_network *const push_network = &the_network;

static uint64_t draw_push_random(void)
{
	uint64_t high = world_random(STREAM_PUSH, UINT32_MAX);

	return high << 32 | world_random(STREAM_PUSH, UINT32_MAX);
}

const struct sys push_sys = {
	.now_ms = world_now_ms, .monotonic_us = world_now_us, .random = draw_push_random};

/* ---- the world's ---- */

/* Frees what its process has. */
static void end_publisher(struct push_publisher *p)
{
	push_relay_stop(p);
	push_numbers_fini(&p->numbers);
}

void push_begin(const struct push_surroundings *around)
{
	struct push_network *n = push_network;

	for (size_t i = 0; i < n->publisher_count; i++)
		end_publisher(&n->publishers[i]);
	memset(n->publishers, 0, n->publisher_count * sizeof(n->publishers[0]));
	memset(n->links, 0, n->link_count * sizeof(n->links[0]));
	n->around = around ? *around : (struct push_surroundings){NULL};
	n->faults = (struct push_faults){0};
	n->totals = (struct push_totals){0};
	n->host = 0;
	n->spread_ms = 0;
	n->publisher_count = n->link_count = n->under_way = 0;
	n->letter_count = n->free_letter = 0;
}

void push_set_faults(const struct push_faults *f)
{
	push_network->faults = f ? *f : (struct push_faults){0};
	for (size_t i = 0; !f && i < push_network->publisher_count; i++) {
		push_network->publishers[i].hangs_until_us = 0;
		push_network->publishers[i].full_until_us = 0;
	}
}

void push_set_spread(uint64_t spread_ms)
{
	push_network->spread_ms = spread_ms;
}

void push_set_host(unsigned host)
{
	push_network->host = host;
}

void push_forget_host(unsigned host)
{
	for (size_t i = 0; i < push_network->link_count; i++) {
		struct link *l = &push_network->links[i];

		if (l->host == host && !l->relay)
			push_link_free(l);
	}
}

bool push_reaches(unsigned from, unsigned to)
{
	return from == to || !push_network->around.reaches ||
	       push_network->around.reaches(from, to);
}

uint64_t push_delay_us(void)
{
	return 200 + world_random(STREAM_NETWORK, world_once_in(STREAM_NETWORK, 20) ? 50000 : 2000);
}

bool push_strikes(uint64_t n)
{
	return world_once_in(STREAM_PUSH, n);
}

const struct push_totals *push_totals(void)
{
	return &push_network->totals;
}

size_t push_unconnected(void)
{
	size_t count = 0;

	for (size_t i = 0; i < push_network->link_count; i++) {
		const struct link *l = &push_network->links[i];

		count += l->state != LINK_UNUSED && l->state != LINK_UP;
	}
	return count;
}

size_t push_under_way(void)
{
	return push_network->under_way;
}

/* ---- publishers ---- */

struct push_publisher *push_find_publisher(const char *endpoint)
{
	for (size_t i = 0; i < push_network->publisher_count; i++)
		if (strcmp(push_network->publishers[i].endpoint, endpoint) == 0)
			return &push_network->publishers[i];
	return NULL;
}

static bool hangs(const struct push_publisher *p)
{
	return p->hangs_until_us > world.now_us;
}

void push_send(struct push_publisher *p, const char *topic, const struct push_message *m)
{
	if (!hangs(p))
		push_post(p, topic, m);
}

void push_publish(
	struct push_publisher *p, const char *topic, const char *version, uint64_t spread_ms)
{
	struct push_message m = {.has_spread = spread_ms > 0, .spread_ms = spread_ms};

	if (!p->runs)
		return;
	world_trace("push: %s says %s %s", p->endpoint, topic, version ? version : "");
	if (p->relays) {
		push_relay_change(p, topic, version);
		return;
	}
	if (push_numbers_set_next(&p->numbers, topic, &m))
		abort();
	snprintf(m.version, sizeof(m.version), "%s", version ? version : "");
	push_send(p, topic, &m);
}

static void restart_publisher(void *arg, uint64_t serial)
{
	struct push_publisher *p = arg;

	if (p->serial == serial && !p->runs)
		push_publisher_start(p);
}

/* What goes wrong with one connection. */
static void trouble_link(const struct push_publisher *p, struct link *l)
{
	const struct push_faults *f = &push_network->faults;

	if (push_strikes(f->cut))
		push_link_end(l);
	else if (push_strikes(f->deaf))
		push_link_deafen(l);
	else if (push_strikes(f->mute) || !push_reaches(l->host, p->host))
		push_link_mute(l);
}

/* False: the publisher does not run now. */
static bool trouble_publisher(struct push_publisher *p)
{
	const struct push_faults *f = &push_network->faults;

	for (size_t i = 0; i < push_network->link_count; i++) {
		struct link *l = &push_network->links[i];

		if (l->to == p && l->state == LINK_UP)
			trouble_link(p, l);
	}
	if (push_strikes(f->hang)) {
		world_trace("push: %s hangs", p->endpoint);
		push_network->totals.hangs++;
		p->hangs_until_us = world.now_us + 1000 * world_random(STREAM_PUSH, f->hang_ms);
	}
	if (p->relays && push_strikes(f->mute))
		p->full_until_us = world.now_us + world_random(STREAM_PUSH, 3000000);
	if (!push_strikes(f->restart))
		return true;
	push_network->totals.restarts++;
	push_publisher_stop(p);
	world_at(world.now_us + 1000 * world_random(STREAM_PUSH, f->hang_ms), restart_publisher, p,
		p->serial);
	return false;
}

static void beat(void *arg, uint64_t serial)
{
	struct push_publisher *p = arg;
	struct push_message m = {0};

	if (p->serial != serial || !trouble_publisher(p))
		return;
	push_numbers_set_epoch(&p->numbers, &m);
	if (!p->relays) /* a relay has its own */
		push_send(p, PUSH_HEARTBEAT_TOPIC, &m);
	world_at(world.now_us + 1000 * PUSH_HEARTBEAT_MS, beat, p, serial);
}

static struct push_publisher *add_publisher(const char *endpoint, unsigned host)
{
	struct push_publisher *p = &push_network->publishers[push_network->publisher_count++];

	if (push_network->publisher_count > PUSH_MAX_PUBLISHERS)
		abort();
	snprintf(p->endpoint, sizeof(p->endpoint), "%s", endpoint);
	p->host = host;
	return p;
}

struct push_publisher *push_publisher_new(const char *endpoint, unsigned host)
{
	struct push_publisher *p = add_publisher(endpoint, host);

	push_publisher_start(p);
	return p;
}

struct push_publisher *push_relay_new(
	const char *endpoint, unsigned host, const char *const *upstreams, size_t count)
{
	struct push_publisher *p = add_publisher(endpoint, host);

	if (count > PUSH_MAX_UPSTREAMS)
		abort();
	p->relays = true;
	p->upstream_count = count;
	for (size_t i = 0; i < count; i++)
		snprintf(p->upstreams[i], sizeof(p->upstreams[0]), "%s", upstreams[i]);
	push_publisher_start(p);
	return p;
}

void push_publisher_start(struct push_publisher *p)
{
	if (p->runs)
		return;
	world_trace("push: %s starts", p->endpoint);
	p->runs = true;
	p->serial++;
	p->hangs_until_us = 0;
	if (p->relays)
		push_relay_start(p);
	else
		push_numbers_init(&p->numbers, &push_sys);
	world_at(world.now_us + 1000 * world_random(STREAM_NETWORK, PUSH_HEARTBEAT_MS), beat, p,
		p->serial);
}

void push_publisher_stop(struct push_publisher *p)
{
	if (!p->runs)
		return;
	world_trace("push: %s stops", p->endpoint);
	p->runs = false;
	p->serial++;
	end_publisher(p);
	for (size_t i = 0; i < push_network->link_count; i++)
		if (push_network->links[i].to == p)
			push_link_end(&push_network->links[i]);
}

bool push_publisher_runs(const struct push_publisher *p)
{
	return p->runs;
}

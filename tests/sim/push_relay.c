/*
 * Relays: the product's own engine (relay/relay.c) between a simulated subscriber and a simulated
 * publisher. Surprising: a relay is another process, whose memory is the world's: only the network
 * troubles it, and its own end.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/push_network.h"
#include "tests/sim/world.h"

static void take_relay_turn(void *arg, uint64_t turn);

/* Has its turn come now. */
static void wake_relay(struct push_publisher *p)
{
	world_at(world.now_us, take_relay_turn, p, ++p->turn);
}

static void take_relay_turn(void *arg, uint64_t turn)
{
	struct push_publisher *p = arg;
	uint64_t next_us;

	if (!p->relay || p->turn != turn)
		return;
	next_us =
		p->hangs_until_us > world.now_us ? p->hangs_until_us : 1000 * relay_turn(p->relay);
	world_at(next_us, take_relay_turn, p, turn);
}

static int send_on(void *arg, const char *topic, const struct push_message *m, bool strict)
{
	struct push_publisher *p = arg;

	if (strict && p->full_until_us > world.now_us)
		return -EAGAIN;
	push_send(p, topic, m);
	return 0;
}

static void hear_upstream(
	void *arg, size_t endpoint, const char *topic, const struct push_message *m)
{
	struct push_publisher *p = arg;

	relay_heard(p->relay, (unsigned)endpoint, p->upstreams[endpoint], topic, m);
	wake_relay(p);
}

static void miss_upstream(void *arg, size_t endpoint, const char *cause)
{
	struct push_publisher *p = arg;

	relay_missed(p->relay, cause, p->upstreams[endpoint], 0);
	wake_relay(p);
}

void push_relay_start(struct push_publisher *p)
{
	const struct relay_options options = {
		PUSH_HEARTBEAT_MS, push_network->spread_ms, (unsigned)p->upstream_count};
	const struct subscriber_listener listener = {hear_upstream, miss_upstream, p, true};
	struct subscriber_endpoint endpoints[PUSH_MAX_UPSTREAMS];

	for (size_t i = 0; i < p->upstream_count; i++)
		endpoints[i] = (struct subscriber_endpoint){
			.endpoint = p->upstreams[i], .heartbeat_ms = PUSH_HEARTBEAT_MS};
	p->relay = relay_new(&push_sys, &options, send_on, p);
	if (!p->relay)
		abort();
	push_network->starting = p;
	if (subscriber_listen(&push_sys, endpoints, p->upstream_count, &listener, &p->listens))
		abort();
	push_network->starting = NULL;
	wake_relay(p);
}

void push_relay_stop(struct push_publisher *p)
{
	subscriber_stop(p->listens);
	relay_free(p->relay);
	p->listens = NULL;
	p->relay = NULL;
}

void push_relay_change(struct push_publisher *p, const char *topic, const char *version)
{
	relay_changed(p->relay, topic, version);
	wake_relay(p);
}

void push_relay_join(struct push_publisher *p, const struct link *l)
{
	const char *filter;

	if (!p->relay)
		return;
	for (size_t i = 0; (filter = push_subscriber_filter(l->subscriber, i)); i++)
		relay_joined(p->relay, filter);
	wake_relay(p);
}

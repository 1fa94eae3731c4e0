/*
 * What the files of the fleet share.
 *
 * Nodes of the network and numbers of push.h: hosts from 0, then servers, the publisher, relays.
 */
#ifndef SIM_FLEET_PARTS_H
#define SIM_FLEET_PARTS_H

#include "tests/sim/fleet.h"
#include "tests/sim/machine.h"
#include "tests/sim/network.h"
#include "tests/sim/push.h"
#include "tests/sim/site.h"

#define FLEET_SERVERS 3
#define FLEET_BRANCHES NETWORK_ZONES /* relays below the publisher, one a zone */
#define FLEET_LEAVES 20              /* relays below those */
#define FLEET_RELAYS (FLEET_BRANCHES + FLEET_LEAVES)
#define FLEET_CONFIGS 2 /* of a host, at most */
#define FLEET_BACKOFF_BOUND 2
#define FLEET_TIMEOUT_MS 5000u
#define FLEET_SPREAD_MS 10000u /* of pulls after a message */
#define SECOND_US 1000000ull

/* Who says over how long hosts spread their pulls after a message. */
enum fleet_spread {
	SPREAD_AGENTS,   /* push_spread */
	SPREAD_MESSAGES, /* of the publisher; nothing spreads the pulls after a new epoch */
	SPREAD_RELAYS,
	SPREADS
};

struct fleet_host {
	struct machine machine;
	struct subject subjects[FLEET_CONFIGS];
	unsigned leaves[2]; /* relays that it listens to */
	size_t leaf_count;
};

struct fleet {
	struct fleet_host hosts[FLEET_MAX_HOSTS];
	size_t host_count, subject_count;
	size_t part_count; /* requests, when each config pulls once */
	struct site_document *base, *of_zone[NETWORK_ZONES];
	struct push_publisher *publisher, *relays[FLEET_RELAYS];
	uint64_t interval_ms;
	enum fleet_spread spread;
	bool lags; /* servers show what was some time ago */
	bool operators;
	uint64_t heal_us; /* trouble ends then */
	uint64_t most_troubles;
	/* requests, looked at each second: at all servers, and at the busiest one */
	uint64_t counted[FLEET_SERVERS], worst, worst_of_one;
};

extern struct fleet fleet;

#define FOR_EACH_HOST(h)                                                                           \
	for (struct fleet_host *h = fleet.hosts; h < fleet.hosts + fleet.host_count; h++)

static inline unsigned fleet_server_node(size_t i)
{
	return (unsigned)(fleet.host_count + i);
}
static inline unsigned fleet_publisher_node(void)
{
	return (unsigned)(fleet.host_count + FLEET_SERVERS);
}
static inline unsigned fleet_relay_node(size_t i)
{
	return (unsigned)(fleet.host_count + FLEET_SERVERS + 1 + i);
}

/* ---- fleet_hosts.c ---- */

/* Draws the site, the relays and the hosts, and writes their configurations. */
void fleet_build(size_t host_count);
/* Changes a document, and publishes that. */
void fleet_change(struct site_document *d, enum site_quality quality);
void fleet_change_all(void);

/* ---- fleet_trouble.c ---- */

/* Draws the kinds of trouble, and begins them. */
void fleet_begin_trouble(void);
void fleet_end_trouble(void);

/* ---- fleet_exercise.c ---- */

/* Lets time pass until all hosts show the newest: a flaw when it takes longer. */
void fleet_await_newest(uint64_t within_us, const char *after);
/* Some exercises, drawn. */
void fleet_exercise(void);
/* Begins to count requests. */
void fleet_begin_load(void);
/* A flaw when there were more in a second than spread pulls of the fleet may cause; connecting:
 * hosts connected to relays meanwhile, too. */
void fleet_check_load(const char *after, bool connecting);
/* A flaw when one server had more than the whole fleet may cause. */
void fleet_check_busiest(const char *after);

#endif

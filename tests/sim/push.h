/*
 * Simulated publishers, relays, and the network between them and the agents' push threads: stands
 * in for agent/push/subscriber.c, over the agent's own session.c, topics.c and relay.c.
 *
 * A connection goes through what libzmq makes of it: an attempt, a handshake, messages in order
 * with a delay each, an end that libzmq retries after, or one that leaves the socket deaf. Faults
 * come on top, drawn from STREAM_PUSH (what becomes of messages and handshakes) and STREAM_NETWORK
 * (delays, ends of connections).
 *
 * Hosts are numbers. A subscriber belongs to the host whose code calls subscriber_start(), see
 * push_set_host(). What arrives for it runs at that moment, out of world_at(): it hints at
 * triggers, whose queue wakes the loop.
 *
 * Memory: publishers, relays and what is under way are the world's, in tables of a fixed size (one
 * too many ends the program); a subscriber is the agent's, from calloc(), and gone with it.
 * Threads: one.
 */
#ifndef SIM_PUSH_H
#define SIM_PUSH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* After faults have ended and hosts reach each other again, each subscriber of a running publisher
 * is connected within this; where the endpoint is on the same host (ipc, 127.0.0.1), much sooner.
 */
#define PUSH_HEAL_MS 150000u
#define PUSH_HEARTBEAT_MS 5000u /* of all publishers */
#define PUSH_MUTE_MS 20000u     /* libzmq's own heartbeats find a dead connection */

/* Rates: once in so many; 0 = never. */
struct push_faults {
	/* of messages and heartbeats, to one subscriber */
	uint64_t lose, copy;
	uint64_t delay; /* by up to delay_ms more: later ones overtake it */
	uint64_t delay_ms;
	uint64_t forge; /* one more that the publisher never sent: unknown topics, wrong versions,
			   old numbers, invalid envelopes, another epoch */
	/* of the heartbeats of one connection */
	uint64_t cut;  /* an end that libzmq retries after */
	uint64_t deaf; /* a protocol error: libzmq does not retry; or the guard of memory cuts it */
	uint64_t mute; /* nothing more arrives, and libzmq finds the end PUSH_MUTE_MS later */
	/* of handshakes: refused, broken, ended, or never answered; of sockets: none to be had */
	uint64_t refuse;
	/* of the heartbeats of a publisher */
	uint64_t hang;    /* sends nothing for up to hang_ms */
	uint64_t restart; /* away for up to hang_ms, then another epoch and numbers from 1 */
	uint64_t hang_ms;
};

struct push_surroundings { /* each may be NULL */
	/* Runs a call in the agent's process on that host, which may end in it. NULL: calls. */
	void (*run)(unsigned host, void (*call)(void *arg), void *arg);
	/* Until when that host's processes do not run (SIGSTOP, suspended); what arrives waits.
	 * NULL: never. */
	uint64_t (*asleep_until_us)(unsigned host);
	/* Tells whether a host reaches another one at this moment. NULL: always. */
	bool (*reaches)(unsigned from, unsigned to);
};

/* ---- the world's ---- */

/* Begins a world without publishers, relays, subscribers and faults; forgets those of the one
 * before. Call it after world_begin(). surroundings: NULL = as zeroed; copied. */
void push_begin(const struct push_surroundings *surroundings);
/* Sets the faults from now on; NULL = none: those that last end within PUSH_HEAL_MS. */
void push_set_faults(const struct push_faults *f);
/* Sets how long relays that start from now on have agents spread their pulls; 0 at first. */
void push_set_spread(uint64_t spread_ms);
/* Names the host that subscriber_start() is called on from now on; 0 at first. */
void push_set_host(unsigned host);
/* The process of that host has ended at any point: drops its subscribers without a call into them.
 * Its publishers and relays are other processes: they stay. */
void push_forget_host(unsigned host);

/* ---- publishers ---- */

struct push_publisher;

/* Starts a publisher on that host: a random epoch, numbers from 1, heartbeats. The endpoint is what
 * an agent's settings name; copied. */
struct push_publisher *push_publisher_new(const char *endpoint, unsigned host);
/* Sends one message to whoever is subscribed now; nothing while it is stopped. version: an ETag or
 * a revision; NULL = none. spread_ms: 0 = none. */
void push_publish(
	struct push_publisher *p, const char *topic, const char *version, uint64_t spread_ms);
void push_publisher_stop(struct push_publisher *p);
/* Starts it again: another epoch, numbers from 1. */
void push_publisher_start(struct push_publisher *p);
bool push_publisher_runs(const struct push_publisher *p);

/* Starts a relay on that host: it listens to these endpoints, publishers or other relays, which
 * exist by then or later, and publishes on at its own endpoint with its own epoch and numbers.
 * Stop and start it, or let it publish changes of a source of its own, as any publisher. */
struct push_publisher *push_relay_new(
	const char *endpoint, unsigned host, const char *const *upstreams, size_t count);

/* ---- push_strangers.c: subscribers that are no agents ---- */

/* They subscribe to something, or leave. */
void push_strangers_act(void);
/* They are gone. */
void push_strangers_end(void);

/* ---- what happened ---- */

struct push_totals {   /* since push_begin() */
	uint64_t sent; /* messages and heartbeats, to one subscriber each */
	uint64_t delivered, lost, copied, delayed, forged;
	uint64_t handshakes, refusals, cuts, deaf, mute, hangs, restarts;
	uint64_t rebuilds; /* sockets that sessions replaced */
};

const struct push_totals *push_totals(void);
/* Subscribers' endpoints that are not connected, and messages under way. */
size_t push_unconnected(void);
size_t push_under_way(void);

#endif

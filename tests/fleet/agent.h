/*
 * One agent's life, with the real trigger, supervisor, dispatcher and shaper.
 *
 * The world of all agents is struct fleet: one wheel, one trigger queue, one server, one stream of
 * randomness. The caller moves the time on and hands expired timers to agent_expired().
 */
#ifndef FLEET_AGENT_H
#define FLEET_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../lib/dispatcher.h"
#include "../../lib/shaper.h"
#include "../../lib/supervisor.h"
#include "../../lib/trigger.h"
#include "../../lib/wheel.h"
#include "scenario.h"
#include "server.h"

enum agent_timer {
	TIMER_DUE,     /* the trigger's moment, or the dispatcher's */
	TIMER_REPLY,   /* the run in flight ends */
	TIMER_CHANNEL, /* the push channel is connected again */
	AGENT_TIMERS
};

struct agent {
	struct wheel_timer timers[AGENT_TIMERS];
	struct trigger trigger;
	struct supervisor supervisor;
	struct dispatcher dispatcher;
	struct shaper shaper;
	uint64_t run, started_ms;
	struct reply reply;     /* of the run in flight */
	uint64_t window_ms;     /* the end of the window of the last push */
	uint64_t not_before_ms; /* a 503 with advice said so */
	uint64_t answered_ms;   /* last time; 0 = never */
	uint32_t version;       /* 0 = none */
	uint32_t requests;      /* since measure_s */
};

enum { TALLY_50, TALLY_99, TALLY_100, TALLY_SHARES };

struct tally {                               /* what the agents' lives came to */
	uint64_t requests, wasted;           /* since count_s */
	uint64_t early;                      /* sent before a server's advice had passed */
	uint64_t converged;                  /* agents with the last version */
	uint64_t converged_ms[TALLY_SHARES]; /* from measure_s; UINT64_MAX = never */
	uint64_t stalest_ms;
};

struct fleet {
	const struct scenario *scenario;
	const struct policy *policy;
	struct wheel wheel;
	struct trigger_queue queue;
	struct server server;
	struct tally tally;
	uint64_t now_ms, random;
	uint32_t count;
	struct agent *agents;
	uint64_t *pending_ms; /* of each agent: until then a message changes nothing */
};

/* Prepares agent number i, and its first pull. 0 or -ENOMEM. */
int agent_init(struct fleet *f, uint32_t i);
void agent_fini(struct fleet *f, uint32_t i);
/* A timer of this agent expired. */
void agent_expired(struct fleet *f, uint32_t i, enum agent_timer timer);
/* A message came: pull within spread_ms. */
void agent_pushed(struct fleet *f, uint32_t i, uint64_t spread_ms);
/* When libzmq, which began to try at from_ms, first tries again after to_ms: an interval of 2 s and
 * a random part of the spread that doubles, plus a random part of the first one. */
#define AGENT_RECONNECT_SPREAD_MS 8000
uint64_t agent_reconnect_ms(uint64_t *random, uint64_t spread_ms, uint64_t from_ms, uint64_t to_ms);

#endif

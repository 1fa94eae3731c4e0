/*
 * One agent's life, with the real trigger, supervisor, dispatcher and shaper.
 *
 * The world of agents is struct fleet, the whole of them or a part: one wheel, one trigger queue,
 * one stream of randomness. The caller moves the time on, hands expired timers to agent_expired(),
 * and the requests that came of it to the server, whose replies it hands to agent_answered().
 * Threads: one for each struct fleet.
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
#include "tree.h"

enum agent_timer {
	TIMER_DUE,   /* the trigger's moment, or the dispatcher's */
	TIMER_REPLY, /* the run in flight ends */
	AGENT_TIMERS,
	TIMER_CHANNEL = AGENT_TIMERS /* the push channel is connected again, or a relay's message */
};

/* The timers of an agent's runs: one cache line, and nothing else in it, for the wheel touches the
 * timers of agents that have nothing to do yet. */
struct agent_timers {
	_Alignas(64) struct wheel_timer timers[AGENT_TIMERS];
};

/* What a run touches stands together at the beginning: see agent_prefetch(). */
struct agent {
	_Alignas(64) struct trigger trigger;
	struct reply reply; /* of the run in flight */
	uint64_t run, started_ms;
	struct shaper shaper;
	struct supervisor supervisor;
	uint64_t not_before_ms; /* a 503 with advice said so */
	uint64_t answered_ms;   /* last time; 0 = never */
	uint32_t version;       /* 0 = none */
	uint32_t requests;      /* since measure_s */
	struct dispatcher dispatcher;
	uint64_t window_ms; /* the end of the window of the last push */
	struct wheel_timer channel;
};

struct tally {                     /* what the agents' lives came to */
	uint64_t requests, wasted; /* since count_s */
	uint64_t early;            /* sent before a server's advice had passed */
	uint64_t stalest_ms;
};

struct fleet {
	const struct scenario *scenario;
	const struct policy *policy;
	const struct tree *tree; /* of the scenario; NULL = none */
	struct wheel wheel;
	struct trigger_queue queue;
	struct tally tally;
	uint32_t *converged; /* agents that got the last version in each ms since measure_s */
	uint32_t *heard;     /* agents that heard of it through the tree */
	uint64_t now_ms, random;
	uint32_t first, count; /* agents */
	struct request *asked; /* count of them at most: an agent has one run at a time */
	uint32_t asked_count;
	struct agent *agents;
	struct agent_timers *timers;
	uint64_t *pending_ms; /* of each agent: until then a message changes nothing */
};

/* In all these, i is counted from the first agent of f. */

/* Prepares agent number i, and its first pull. 0 or -ENOMEM. */
int agent_init(struct fleet *f, uint32_t i);
void agent_fini(struct fleet *f, uint32_t i);
/* An agent's timer expired. */
void agent_expired(struct fleet *f, const struct wheel_timer *t);
/* The server has decided about a request of now or before; nothing of that has come yet. */
void agent_answered(struct fleet *f, const struct request *r);
/* Brings near what agent_expired() will touch: the agent, or (deep; it reads the agent) what hangs
 * on it. */
void agent_prefetch(const struct fleet *f, const struct wheel_timer *t, bool deep);
/* A message came: pull within spread_ms. */
void agent_pushed(struct fleet *f, uint32_t i, uint64_t spread_ms);

#endif

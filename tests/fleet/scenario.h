/*
 * What happens to the fleet (scenarios), and how its agents behave (policies): two tables.
 *
 * All times are virtual, from the start of the run. Numbers of requests a second are given for
 * FLEET_UNIT agents and scaled with the fleet. Everything is constant.
 */
#ifndef FLEET_SCENARIO_H
#define FLEET_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FLEET_UNIT 100000u
#define FLEET_INTERVAL_MS 30000u
#define FLEET_LONG_INTERVAL_MS 300000u /* where a message tells of changes */
#define FLEET_LIMIT_MS 10000u          /* of a pull */
#define FLEET_CONNECT_MS 3000u         /* of a connection to a host that does not answer */
#define FLEET_CAPACITY                                                                             \
	10000u                  /* requests a second that the server serves, for FLEET_UNIT agents \
				 */
#define FLEET_QUEUE_S 2u        /* what would wait longer than so many seconds gets a 503 */
#define FLEET_LATENCY_MS 20u    /* at least; at most twice as much */
#define FLEET_SLOW_MS 20000u    /* the latency of a slow server */
#define FLEET_OVERLOAD 6u       /* an overloaded server has 1/6 of the capacity */
#define FLEET_HELD_MS 60000u    /* a long poll is held so long */
#define FLEET_TOGETHER_MS 1000u /* "everyone starts" takes so long */

enum fault { FAULT_NONE, FAULT_SLOW, FAULT_DOWN, FAULT_UNREACHABLE, FAULT_OVERLOADED };

struct scenario {
	const char *name, *title;
	uint32_t interval_ms; /* of the agents */
	uint32_t end_s;
	uint32_t count_s;   /* requests, waste and staleness count from here */
	uint32_t measure_s; /* the peak and the convergence count from here */

	enum fault fault;
	const char *fault_label;
	uint32_t fault_from_s, fault_to_s;
	bool fault_half;    /* only every other agent meets it */
	bool fault_channel; /* it breaks the push channel too, and a new connection pulls */
	uint64_t advice_ms; /* Retry-After of each 503; UINT64_MAX = none */

	uint64_t change_ms;    /* version 2 appears */
	uint32_t change_count; /* and so many versions in all, */
	uint32_t change_every_ms;
	bool pushed; /* each with a message */
	uint32_t spread_ms;

	bool tree; /* the message comes through relays; change_count is 1, change_ms measure_s */
	uint32_t tops_down, leaves_down; /* relays that die at the moment of the change */

	bool first_start; /* nobody has a last known good: no splay */
};

struct policy {
	const char *name, *title;
	unsigned jitter_percent; /* of each delay, up and down */
	bool splay;              /* the first pull is anywhere in the first interval */
	bool shaper;
	bool limits_holds; /* to the interval, where the server did not ask for more */
	unsigned bound;    /* of the supervisor; 1 = a timeout doubles nothing */
	bool push;
	bool spread; /* heeds the spread of a message */
	bool quiet;  /* what connects to a relay again does not pull, nor tell others to */
	bool long_poll;
	bool sharp;        /* the interval counts from the beginning of a pull, not its end */
	bool scatter;      /* after a 503 the next pull is anywhere in the next interval */
	bool fixed_delays; /* after a pull wait delay_ms[failed] whatever the supervisor says */
	uint64_t delay_ms[2];
	uint64_t limit_ms;
};

extern const struct scenario scenarios[];
extern const size_t scenario_count;
extern const struct policy policies[];
extern const size_t policy_count;

/* By name, or NULL. */
const struct scenario *scenario_find(const char *name);
const struct policy *policy_find(const char *name);

/* The newest version at a moment: 0 never, 1 from the beginning on. */
uint32_t scenario_version(const struct scenario *s, uint64_t now_ms);
uint32_t scenario_last_version(const struct scenario *s);
/* When a version appeared; UINT64_MAX for one that never will. */
uint64_t scenario_changed_ms(const struct scenario *s, uint32_t version);
/* Does the fault hit this agent now? */
bool scenario_fault(const struct scenario *s, uint64_t now_ms, uint32_t agent);

#endif

/*
 * The tables of scenarios and policies.
 *
 * What surprises: only "ours" splays its start, so the others keep the step in which they were
 * started, and every scenario after that meets a fleet in step. That is what happens to them after
 * each deploy.
 */
#include "scenario.h"

#include <string.h>

const struct scenario scenarios[] = {
	{
		.name = "steady",
		.title = "steady state, one change, no push",
		.interval_ms = FLEET_INTERVAL_MS,
		.end_s = 300,
		.count_s = 120,
		.measure_s = 150,
		.change_ms = 150000,
		.change_count = 1,
		.advice_ms = UINT64_MAX,
	},
	{
		.name = "first-start",
		.title = "first start of everyone: nobody has a last known good",
		.interval_ms = FLEET_INTERVAL_MS,
		.end_s = 300,
		.change_ms = UINT64_MAX,
		.advice_ms = UINT64_MAX,
		.first_start = true,
	},
	{
		.name = "restart",
		.title = "restart of everyone with a last known good, one change meanwhile",
		.interval_ms = FLEET_INTERVAL_MS,
		.end_s = 300,
		.change_ms = 0,
		.change_count = 1,
		.advice_ms = UINT64_MAX,
	},
	{
		.name = "slow",
		.title = "the server answers after 20 s for a minute: time-outs",
		.interval_ms = FLEET_INTERVAL_MS,
		.end_s = 660,
		.count_s = 120,
		.measure_s = 180,
		.fault = FAULT_SLOW,
		.fault_label = "server slow",
		.fault_from_s = 120,
		.fault_to_s = 180,
		.change_ms = 150000,
		.change_count = 1,
		.advice_ms = UINT64_MAX,
	},
	{
		.name = "outage",
		.title = "the server refuses for 10 minutes and returns",
		.interval_ms = FLEET_INTERVAL_MS,
		.end_s = 1080,
		.count_s = 120,
		.measure_s = 720,
		.fault = FAULT_DOWN,
		.fault_label = "server down",
		.fault_from_s = 120,
		.fault_to_s = 720,
		.change_ms = 420000,
		.change_count = 1,
		.advice_ms = UINT64_MAX,
	},
	{
		.name = "outage-channel",
		.title = "server and push channel down for 10 minutes; each reconnection pulls",
		.interval_ms = FLEET_INTERVAL_MS,
		.end_s = 1080,
		.count_s = 120,
		.measure_s = 720,
		.fault = FAULT_DOWN,
		.fault_label = "server and publisher down",
		.fault_from_s = 120,
		.fault_to_s = 720,
		.fault_channel = true,
		.change_ms = 420000,
		.change_count = 1,
		.advice_ms = UINT64_MAX,
	},
	{
		.name = "push-spread",
		.title = "one push to everyone, spread over 20 s",
		.interval_ms = FLEET_INTERVAL_MS,
		.end_s = 300,
		.count_s = 120,
		.measure_s = 120,
		.change_ms = 120000,
		.change_count = 1,
		.pushed = true,
		.spread_ms = 20000,
		.advice_ms = UINT64_MAX,
	},
	{
		.name = "push-sharp",
		.title = "one push to everyone without a spread",
		.interval_ms = FLEET_INTERVAL_MS,
		.end_s = 300,
		.count_s = 120,
		.measure_s = 120,
		.change_ms = 120000,
		.change_count = 1,
		.pushed = true,
		.advice_ms = UINT64_MAX,
	},
	{
		.name = "push-storm",
		.title = "100 pushes a second for a minute, each spread over 20 s",
		.interval_ms = FLEET_INTERVAL_MS,
		.end_s = 360,
		.count_s = 120,
		.measure_s = 120,
		.change_ms = 120000,
		.change_count = 6000,
		.change_every_ms = 10,
		.pushed = true,
		.spread_ms = 20000,
		.advice_ms = UINT64_MAX,
	},
	{
		.name = "overload",
		.title = "a sixth of the capacity for two minutes, 503 with Retry-After: 45",
		.interval_ms = FLEET_INTERVAL_MS,
		.end_s = 480,
		.count_s = 120,
		.measure_s = 240,
		.fault = FAULT_OVERLOADED,
		.fault_label = "server overloaded",
		.fault_from_s = 120,
		.fault_to_s = 240,
		.change_ms = 180000,
		.change_count = 1,
		.advice_ms = 45000,
	},
	{
		.name = "partition",
		.title = "every other agent cut off for 5 minutes, one push meanwhile",
		.interval_ms = FLEET_INTERVAL_MS,
		.end_s = 840,
		.count_s = 120,
		.measure_s = 420,
		.fault = FAULT_UNREACHABLE,
		.fault_label = "half the fleet cut off",
		.fault_from_s = 120,
		.fault_to_s = 420,
		.fault_half = true,
		.change_ms = 270000,
		.change_count = 1,
		.pushed = true,
		.spread_ms = 20000,
		.advice_ms = UINT64_MAX,
	},
	{
		.name = "partition-channel",
		.title = "as partition, and each reconnection of the push channel pulls",
		.interval_ms = FLEET_INTERVAL_MS,
		.end_s = 840,
		.count_s = 120,
		.measure_s = 420,
		.fault = FAULT_UNREACHABLE,
		.fault_label = "half the fleet cut off",
		.fault_from_s = 120,
		.fault_to_s = 420,
		.fault_half = true,
		.fault_channel = true,
		.change_ms = 270000,
		.change_count = 1,
		.pushed = true,
		.spread_ms = 20000,
		.advice_ms = UINT64_MAX,
	},
	{
		.name = "tree",
		.title = "a push spread over 20 s through two levels of relays",
		.interval_ms = FLEET_LONG_INTERVAL_MS,
		.end_s = 900,
		.count_s = 400,
		.measure_s = 400,
		.change_ms = 400000,
		.change_count = 1,
		.pushed = true,
		.spread_ms = 20000,
		.tree = true,
		.advice_ms = UINT64_MAX,
	},
	{
		.name = "tree-one",
		.title =
			"a push spread over 20 s through two levels of relays, one of 5 above dies",
		.interval_ms = FLEET_LONG_INTERVAL_MS,
		.end_s = 900,
		.count_s = 400,
		.measure_s = 400,
		.change_ms = 400000,
		.change_count = 1,
		.pushed = true,
		.spread_ms = 20000,
		.tree = true,
		.tops_down = 1,
		.advice_ms = UINT64_MAX,
	},
	{
		.name = "tree-tenth",
		.title = "a push spread over 20 s through two levels of relays, 5 of 45 die",
		.interval_ms = FLEET_LONG_INTERVAL_MS,
		.end_s = 900,
		.count_s = 400,
		.measure_s = 400,
		.change_ms = 400000,
		.change_count = 1,
		.pushed = true,
		.spread_ms = 20000,
		.tree = true,
		.tops_down = 1,
		.leaves_down = 4,
		.advice_ms = UINT64_MAX,
	},
};
const size_t scenario_count = sizeof(scenarios) / sizeof(scenarios[0]);

#define OURS                                                                                       \
	.jitter_percent = 10, .splay = true, .shaper = true, .limits_holds = true, .bound = 10,    \
	.push = true, .spread = true, .scatter = true, .limit_ms = FLEET_LIMIT_MS

const struct policy policies[] = {
	{.name = "ours", .title = "ours", OURS},
	{.name = "fixed",
		.title = "fixed interval, sharp",
		.bound = 1,
		.sharp = true,
		.limit_ms = FLEET_LIMIT_MS},
	{.name = "sleep",
		.title = "fixed pause after each pull (confd)",
		.bound = 1,
		.limit_ms = FLEET_LIMIT_MS},
	{.name = "doubling",
		.title = "doubling without jitter (Eureka)",
		.bound = 10,
		.limit_ms = FLEET_LIMIT_MS},
	{.name = "long-poll",
		.title = "long poll, reconnect after 1 s",
		.bound = 1,
		.long_poll = true,
		.fixed_delays = true,
		.delay_ms = {0, 1000},
		.limit_ms = FLEET_HELD_MS + FLEET_LIMIT_MS},
};
const size_t policy_count = sizeof(policies) / sizeof(policies[0]);

const struct scenario *scenario_find(const char *name)
{
	for (size_t i = 0; i < scenario_count; i++)
		if (strcmp(scenarios[i].name, name) == 0)
			return &scenarios[i];
	return NULL;
}

const struct policy *policy_find(const char *name)
{
	for (size_t i = 0; i < policy_count; i++)
		if (strcmp(policies[i].name, name) == 0)
			return &policies[i];
	return NULL;
}

uint32_t scenario_version(const struct scenario *s, uint64_t now_ms)
{
	uint64_t more;

	if (!s->change_count || now_ms < s->change_ms)
		return 1;
	more = s->change_every_ms ? (now_ms - s->change_ms) / s->change_every_ms : 0;
	return 2 + (uint32_t)(more < s->change_count ? more : s->change_count - 1);
}

uint32_t scenario_last_version(const struct scenario *s)
{
	return 1 + s->change_count;
}

uint64_t scenario_changed_ms(const struct scenario *s, uint32_t version)
{
	if (version > scenario_last_version(s))
		return UINT64_MAX;
	return version < 2 ? 0 : s->change_ms + (uint64_t)(version - 2) * s->change_every_ms;
}

bool scenario_fault(const struct scenario *s, uint64_t now_ms, uint32_t agent)
{
	return s->fault && now_ms >= s->fault_from_s * UINT64_C(1000) &&
	       now_ms < s->fault_to_s * UINT64_C(1000) && (!s->fault_half || agent % 2);
}

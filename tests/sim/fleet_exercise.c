/*
 * Exercises with a fleet that is well: one thing happens, and what follows has a bound in time and
 * in requests per second. Surprising: a change must be visible long before the interval, or
 * it was not the push that brought it.
 */
#include <math.h>

#include "tests/sim/fleet_parts.h"
#include "tests/sim/world.h"

#define RECONNECT_MS 8000 /* push/session.c: from 2 to 10 s */
#define QUICK_REPULLS 2   /* config/schedule.c: within a second */

static uint64_t draw_chance(uint64_t bound)
{
	return world_random(STREAM_LIFE, bound);
}

/* ---- requests ---- */

void fleet_begin_load(void)
{
	fleet.worst = fleet.worst_of_one = 0;
}

/* Requests in a second when all configs pull within FLEET_SPREAD_MS, besides those of their
 * interval: 1.2 times the average (DESIGN, A29; tests/fleet/check.c), and five standard deviations,
 * because a fleet of this size is small. Hosts connect again at a moment within RECONNECT_MS, each
 * at its own, and pull then, unless their push_spread says more. */
static double load_bound(bool connecting, bool repulling)
{
	double n = (double)fleet.part_count;
	double mean = n * 1000 / FLEET_SPREAD_MS + n * 1000 / (double)fleet.interval_ms;

	if (connecting)
		mean += n * 1000 / RECONNECT_MS;
	if (repulling)
		mean += QUICK_REPULLS * n * 1000 / FLEET_SPREAD_MS;
	return 1.2 * mean + 5 * sqrt(mean);
}

void fleet_check_load(const char *after, bool connecting)
{
	double bound = load_bound(connecting, false);

	world_trace("%s: at most %llu requests a second, %llu at one server, of %.0f", after,
		(unsigned long long)fleet.worst, (unsigned long long)fleet.worst_of_one, bound);
	if ((double)fleet.worst > bound)
		subject_report_flaw("%s: %llu requests in one second, at most %.0f may come", after,
			(unsigned long long)fleet.worst, bound);
}

/* In trouble a pull that finds no promised version is repeated at once. An outage of seconds ends
 * with a rush to all servers together, as holds have not grown yet: the bound is one server's. */
void fleet_check_busiest(const char *after)
{
	double bound = load_bound(true, true);

	world_trace("%s: at most %llu requests a second at one server, of %.0f", after,
		(unsigned long long)fleet.worst_of_one, bound);
	if ((double)fleet.worst_of_one > bound)
		subject_report_flaw("%s: %llu requests in one second at one server, at most %.0f "
				    "may come",
			after, (unsigned long long)fleet.worst_of_one, bound);
}

/* ---- time ---- */

static size_t count_late(const struct fleet_host **ret_first)
{
	size_t late = 0;

	FOR_EACH_HOST (h)
		if (!machine_shows_newest(&h->machine) && late++ == 0)
			*ret_first = h;
	return late;
}

void fleet_await_newest(uint64_t within_us, const char *after)
{
	uint64_t begin_us = world.now_us;
	const struct fleet_host *first = NULL;
	size_t late = count_late(&first);

	while (late && world.now_us < begin_us + within_us) {
		world_run(world.now_us + SECOND_US / 4);
		late = count_late(&first);
	}
	world_trace("%s: all show the newest after %llu ms", after,
		(unsigned long long)((world.now_us - begin_us) / 1000));
	if (late)
		subject_report_flaw("%s: %zu hosts do not show the newest within %llu s, %s is one",
			after, late, (unsigned long long)(within_us / SECOND_US),
			first->machine.host.name);
}

/* ---- exercises ---- */

#define PUSHED_US ((FLEET_SPREAD_MS + 3000) * 1000ull)
/* A message in a window that is open already may wait for the next. */
#define PUSHED_AGAIN_US ((2 * FLEET_SPREAD_MS + 6000) * 1000ull)
#define RECONNECTED_US (45 * SECOND_US) /* an agent whose relay was away for some seconds */

static void change_base(void)
{
	fleet_change(fleet.base, SITE_GOOD);
}

static uint64_t pulled_us(void)
{
	return fleet.interval_ms * 1100 + 3 * SECOND_US;
}

static void push_change(void)
{
	fleet_begin_load();
	change_base();
	fleet_await_newest(PUSHED_US, "a change");
	fleet_check_load("a change", false);
}

/* Messages that bring nothing new, for two spread windows: a pull a window. */
static void push_storm(void)
{
	const char *version = site_current(fleet.base)->etag;

	for (unsigned i = 0; i < 20 * FLEET_SPREAD_MS / 1000; i++) {
		push_publish(fleet.publisher, "base", version,
			fleet.spread == SPREAD_MESSAGES ? FLEET_SPREAD_MS : 0);
		world_run(world.now_us + SECOND_US / 10);
	}
	fleet_check_load("a storm of messages", false);
}

/* The next message shows the gap. */
static void lose_change(void)
{
	const struct push_faults all = {.lose = 1};

	push_set_faults(&all);
	change_base();
	world_run(world.now_us + SECOND_US);
	push_set_faults(NULL);
	fleet_await_newest(pulled_us(), "P5 a lost message");
	fleet_check_load("a lost message", false);
	change_base();
	fleet_await_newest(PUSHED_US, "the message after a lost one");
}

static void restart_publisher(void)
{
	push_publisher_stop(fleet.publisher);
	change_base();
	world_run(world.now_us + (1 + draw_chance(3)) * SECOND_US);
	push_publisher_start(fleet.publisher);
	fleet_await_newest(PUSHED_AGAIN_US, "the publisher's restart");
	if (fleet.spread != SPREAD_MESSAGES)
		fleet_check_load("the publisher's restart", false);
}

static void restart_relays(size_t first, size_t count, uint64_t within_us)
{
	for (size_t i = first; i < first + count; i++)
		push_publisher_stop(fleet.relays[i]);
	world_run(world.now_us + SECOND_US);
	change_base();
	world_run(world.now_us + (1 + draw_chance(3)) * SECOND_US);
	for (size_t i = first; i < first + count; i++)
		push_publisher_start(fleet.relays[i]);
	fleet_await_newest(within_us, "relays' restart");
	if (fleet.spread != SPREAD_MESSAGES)
		fleet_check_load("relays' restart", true);
}

static void restart_branch(void)
{
	restart_relays(draw_chance(FLEET_BRANCHES - 1), 1, PUSHED_AGAIN_US);
}

static void restart_leaves(void)
{
	restart_relays(FLEET_BRANCHES, FLEET_LEAVES, RECONNECTED_US + PUSHED_US);
}

static void restart_agents(void)
{
	FOR_EACH_HOST (h) {
		machine_end_now(&h->machine, false);
		machine_start(&h->machine);
	}
	world_run(world.now_us + 40 * SECOND_US);
	fleet_check_load("all agents' restart", true);
	push_change();
}

static void stop_site_for_long(void)
{
	for (size_t i = 0; i < FLEET_SERVERS; i++)
		site.servers[i].mode = SERVER_REFUSES;
	world_run(world.now_us + draw_chance(60) * SECOND_US);
	change_base();
	world_run(world.now_us + (60 + draw_chance(60)) * SECOND_US);
	site_heal();
	fleet_begin_load();
	fleet_await_newest(fleet.interval_ms * FLEET_BACKOFF_BOUND * 1000 + 10 * SECOND_US,
		"the servers' return");
	fleet_check_load("the servers' return", false);
}

/* All keep the last good one. */
static void publish_broken(void)
{
	uint64_t good = site_current(fleet.base)->number;

	fleet_change(fleet.base, SITE_BROKEN);
	world_run(world.now_us + PUSHED_AGAIN_US);
	FOR_EACH_HOST (h)
		for (size_t i = 0; i < h->machine.subject_count; i++)
			if (!subject_shows(&h->subjects[i], h->subjects[i].layer_count - 1, good))
				subject_report_flaw("%s does not show the last good version",
					h->machine.host.name);
	fleet_check_load("a broken version", false);
	push_change();
}

void fleet_exercise(void)
{
	static void (*const exercises[])(void) = {push_change, lose_change, restart_publisher,
		push_storm, restart_branch, restart_leaves, restart_agents, stop_site_for_long,
		publish_broken};

	for (size_t i = 0; i < sizeof(exercises) / sizeof(exercises[0]) && !subject_flaw[0]; i++) {
		if (draw_chance(1))
			continue;
		world_run(world.now_us + 2 * FLEET_SPREAD_MS * 1000ull);
		fleet_begin_load();
		exercises[i]();
	}
}

/*
 * What goes wrong in a fleet, drawn by seed: each kind comes again and again, or not at all.
 * Surprising: whatever lasts ends before the healing, but for processes, which come back by
 * themselves.
 */
#include "tests/sim/fleet_parts.h"
#include "tests/sim/operator.h"
#include "tests/sim/world.h"

static uint64_t draw_number(uint64_t bound)
{
	return world_random(STREAM_LIFE, bound);
}

/* A moment within that span, but not after the healing. */
static uint64_t draw_end(uint64_t least_s, uint64_t most_s)
{
	uint64_t end_us = world.now_us + (least_s + draw_number(most_s - least_s)) * SECOND_US;

	return end_us < fleet.heal_us ? end_us : fleet.heal_us;
}

static struct machine *draw_machine(void)
{
	return &fleet.hosts[draw_number(fleet.host_count - 1)].machine;
}

/* ---- the site ---- */

static void change_fleet_document(void)
{
	static const enum site_quality bad[] = {SITE_BROKEN, SITE_SHRUNK, SITE_HARMFUL};
	uint64_t which = world_random(STREAM_SERVER, NETWORK_ZONES);
	bool good = !world_once_in(STREAM_SERVER, 6);

	fleet_change(which ? fleet.of_zone[which - 1] : fleet.base,
		good ? SITE_GOOD : bad[world_random(STREAM_SERVER, 2)]);
}

static void heal_server(void *arg, uint64_t number)
{
	struct site_server *s = &site.servers[number];

	(void)arg;
	if (s->mode_until_us > world.now_us)
		return;
	s->mode = SERVER_GOOD;
	s->delay_us = 1000;
}

static void break_server(size_t i, enum server_mode mode, uint64_t until_us)
{
	struct site_server *s = &site.servers[i];

	s->mode = mode;
	s->mode_until_us = until_us;
	s->delay_us =
		world_once_in(STREAM_SERVER, 3) ? world_random(STREAM_SERVER, 3 * SECOND_US) : 1000;
	world_trace("server %s: mode %d until %llu", s->name, mode, (unsigned long long)until_us);
	world_at(until_us, heal_server, NULL, i);
}

static void trouble_fleet_server(void)
{
	static const enum server_mode modes[] = {SERVER_REFUSES, SERVER_HANGS, SERVER_OVERLOADED,
		SERVER_FAILS, SERVER_DENIES, SERVER_CUTS, SERVER_GARBLES};

	break_server(draw_number(FLEET_SERVERS - 1),
		modes[draw_number(sizeof(modes) / sizeof(modes[0]) - 1)], draw_end(2, 40));
}

static void stop_site(void)
{
	uint64_t until_us = draw_end(10, 60);

	for (size_t i = 0; i < FLEET_SERVERS; i++)
		break_server(i, draw_number(1) ? SERVER_REFUSES : SERVER_OVERLOADED, until_us);
}

static void lag_server(void)
{
	struct site_server *s = &site.servers[draw_number(FLEET_SERVERS - 1)];

	s->lag_us = draw_number(1) ? draw_number(20 * SECOND_US) : 0;
	world_trace("server %s: lag %llu us", s->name, (unsigned long long)s->lag_us);
}

/* ---- the network ---- */

static void part_zones(void)
{
	unsigned zone = (unsigned)draw_number(NETWORK_ZONES - 1);
	uint64_t until_us = draw_end(5, 60), ways = draw_number(2);

	for (unsigned other = 0; other < NETWORK_ZONES; other++) {
		if (other == zone)
			continue;
		if (ways != 1)
			network_part(zone, other, until_us);
		if (ways != 2)
			network_part(other, zone, until_us);
	}
	world_trace("zone %u is cut off until %llu, %llu", zone, (unsigned long long)until_us,
		(unsigned long long)ways);
}

static void isolate_node(void)
{
	unsigned node = draw_number(1)
				? draw_machine()->host.number
				: fleet_server_node(draw_number(FLEET_SERVERS + FLEET_RELAYS));

	network_isolate(node, draw_end(5, 60));
	world_trace("node %u is cut off", node);
}

static void lose_packets(void)
{
	const struct push_faults faults = {.lose = 5,
		.copy = 9,
		.delay = 6,
		.delay_ms = 3000,
		.cut = 40,
		.deaf = 40,
		.mute = 40,
		.refuse = 20,
		.hang = 40,
		.hang_ms = 20000};
	bool on = draw_number(1);

	push_set_faults(on ? &faults : NULL);
	site.lost = on ? 5 + (unsigned)draw_number(30) : 0;
	world_trace("losses %s", on ? "begin" : "end");
}

/* ---- relays ---- */

static void start_relay(void *arg, uint64_t number)
{
	(void)number;
	push_publisher_start(arg);
}

static void restart_relay(void)
{
	uint64_t which = draw_number(FLEET_RELAYS);
	struct push_publisher *p = which < FLEET_RELAYS ? fleet.relays[which] : fleet.publisher;

	push_publisher_stop(p);
	world_at(draw_end(0, 30), start_relay, p, 0);
}

/* ---- hosts ---- */

static void kill_some_process(void)
{
	life_totals.kills++;
	machine_end_soon(draw_machine(), false);
}

static void fail_some_power(void)
{
	machine_fail_power(draw_machine());
}

static void fail_power_of_zone(void)
{
	unsigned zone = (unsigned)draw_number(NETWORK_ZONES - 1);

	FOR_EACH_HOST (h)
		if (network_zone(h->machine.host.number) == zone)
			machine_end_now(&h->machine, true);
}

static void let_one_sleep(void)
{
	machine_sleep(draw_machine(), draw_end(1, 60));
}

static void operate_one(void)
{
	struct machine *m = draw_machine();

	if (m->host.stopped_until_us > world.now_us)
		return;
	operator_act(&m->subjects[draw_number(m->subject_count - 1)]);
	life_totals.operations++;
}

static void look_at_decisions(void)
{
	FOR_EACH_HOST (h)
		for (size_t i = 0; i < h->machine.subject_count; i++)
			if (h->machine.host.stopped_until_us <= world.now_us)
				operator_look(&h->subjects[i]);
}

/* ---- when ---- */

static const struct trouble {
	void (*happens)(void);
	unsigned every_s; /* on average, where it is part of the life */
	unsigned one_in;  /* lives */
} troubles[] = {
	{change_fleet_document, 8, 1},
	{trouble_fleet_server, 15, 2},
	{stop_site, 60, 3},
	{part_zones, 30, 2},
	{isolate_node, 5, 2},
	{lose_packets, 20, 2},
	{restart_relay, 6, 2},
	{kill_some_process, 2, 2},
	{fail_some_power, 5, 2},
	{fail_power_of_zone, 60, 3},
	{let_one_sleep, 5, 2},
};

static void await_trouble(void (*happens)(void), uint64_t every_s);

struct wait { /* of one kind of trouble */
	void (*happens)(void);
	uint64_t every_s;
};

static struct wait waits[sizeof(troubles) / sizeof(troubles[0]) + 3];
static size_t wait_count;

static void fleet_trouble_comes(void *arg, uint64_t number);

static void wait_for_next(struct wait *w)
{
	world_at(world.now_us + draw_number(2 * w->every_s * SECOND_US), fleet_trouble_comes, w, 0);
}

static void fleet_trouble_comes(void *arg, uint64_t number)
{
	struct wait *w = arg;

	(void)number;
	if (world.now_us >= fleet.heal_us)
		return;
	life_troubles++;
	if (fleet.most_troubles && life_troubles > fleet.most_troubles)
		return;
	w->happens();
	wait_for_next(w);
}

static void await_trouble(void (*happens)(void), uint64_t every_s)
{
	waits[wait_count] = (struct wait){happens, every_s};
	wait_for_next(&waits[wait_count++]);
}

void fleet_begin_trouble(void)
{
	wait_count = 0;
	fleet.heal_us = world.now_us + (60 + draw_number(120)) * SECOND_US;
	for (size_t i = 0; i < sizeof(troubles) / sizeof(troubles[0]); i++)
		if (world_once_in(STREAM_LIFE, troubles[i].one_in))
			await_trouble(troubles[i].happens,
				1 + draw_number(2 * (uint64_t)troubles[i].every_s));
	if (fleet.lags)
		await_trouble(lag_server, 10);
	if (fleet.operators) {
		await_trouble(operate_one, 2);
		await_trouble(look_at_decisions, 10);
	}
}

void fleet_end_trouble(void)
{
	world_trace("all is healed");
	site_heal();
	network_heal();
	push_set_faults(NULL);
	push_publisher_start(fleet.publisher);
	for (size_t i = 0; i < FLEET_RELAYS; i++)
		push_publisher_start(fleet.relays[i]);
	FOR_EACH_HOST (h) {
		h->machine.host.calls_left = 0;
		machine_start(&h->machine);
		for (size_t i = 0; i < h->machine.subject_count; i++)
			operator_end(&h->subjects[i]);
	}
}

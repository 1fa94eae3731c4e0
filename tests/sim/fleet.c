/* A fleet's life, from the first start to the last stop. */
#include "tests/sim/fleet.h"

#include <stdlib.h>
#include <string.h>

#include "tests/sim/fleet_parts.h"
#include "tests/sim/programs.h"
#include "tests/sim/world.h"

#define BOOT_US (10 * SECOND_US) /* hosts start within this */

/* ---- what runs where ---- */

static void run_in_fleet_host(unsigned host, void (*call)(void *arg), void *arg)
{
	host_call(&fleet.hosts[host].machine.host, call, arg);
}

static uint64_t fleet_host_sleeps_until(unsigned host)
{
	return host < fleet.host_count ? fleet.hosts[host].machine.host.stopped_until_us : 0;
}

/* ---- begin ---- */

static void count_requests(void *arg, uint64_t number)
{
	uint64_t sum = 0;

	(void)arg;
	for (size_t i = 0; i < FLEET_SERVERS; i++) {
		uint64_t n = site.servers[i].requests - fleet.counted[i];

		fleet.counted[i] = site.servers[i].requests;
		sum += n;
		fleet.worst_of_one = n > fleet.worst_of_one ? n : fleet.worst_of_one;
	}
	fleet.worst = sum > fleet.worst ? sum : fleet.worst;
	world_at(world.now_us + SECOND_US, count_requests, NULL, number);
}

static void boot_host(void *arg, uint64_t number)
{
	(void)number;
	machine_start(arg);
}

static void begin_fleet(uint64_t seed, const struct life_options *o)
{
	const struct push_surroundings surroundings = {
		run_in_fleet_host, fleet_host_sleeps_until, network_reaches};

	memset(&fleet, 0, sizeof(fleet));
	fleet.most_troubles = o->troubles;
	life_troubles = 0;
	subject_flaw[0] = '\0';
	world_begin(seed);
	site_begin();
	network_begin();
	push_begin(&surroundings);
	memset(&sim_programs, 0, sizeof(sim_programs));
	fleet_build(o->hosts ? o->hosts : FLEET_HOSTS);
	fleet_change_all();
	FOR_EACH_HOST (h)
		world_at(world.now_us + world_random(STREAM_LIFE, BOOT_US), boot_host, &h->machine,
			0);
	count_requests(NULL, 0);
	world_trace("seed %llu: %zu hosts, %zu configs, every %llu ms, spread %d",
		(unsigned long long)seed, fleet.host_count, fleet.subject_count,
		(unsigned long long)fleet.interval_ms, fleet.spread);
}

/* ---- the end of trouble ---- */

/* Backoff after timeouts and the servers' own Retry-After are over by then. */
static uint64_t fleet_peace_us(void)
{
	uint64_t longest_ms = FLEET_BACKOFF_BOUND * fleet.interval_ms;

	if (longest_ms < 90000)
		longest_ms = 90000;
	return (longest_ms + FLEET_TIMEOUT_MS + 10000) * 1000;
}

static void make_peace(void)
{
	uint64_t connected_us;

	fleet_end_trouble();
	fleet_change_all();
	fleet_begin_load();
	connected_us = world.now_us + PUSH_HEAL_MS * 1000ull;
	fleet_await_newest(fleet_peace_us(), "the healing");
	if (fleet.spread != SPREAD_MESSAGES)
		fleet_check_busiest("the healing");
	if (world.now_us < connected_us)
		world_run(connected_us);
	if (push_unconnected())
		subject_report_flaw("%zu push channels are not connected after the healing",
			push_unconnected());
	FOR_EACH_HOST (h)
		machine_check_newest(&h->machine);
}

static void end_peace(void)
{
	FOR_EACH_HOST (h)
		machine_check_left_over(&h->machine);
	for (size_t i = 0; i < FLEET_SERVERS; i++)
		site.servers[i].mode = SERVER_REFUSES;
	FOR_EACH_HOST (h)
		machine_restart(&h->machine);
	world_run(world.now_us + SECOND_US);
	FOR_EACH_HOST (h)
		machine_check_restart(&h->machine);
}

static void end_fleet(void)
{
	for (size_t i = 0; i < site.server_count; i++)
		life_totals.requests += site.servers[i].requests;
	life_totals.lives++;
	life_totals.calls += world.calls;
	life_totals.virtual_s += world.now_us / SECOND_US - 1000;
	push_begin(NULL);
	FOR_EACH_HOST (h)
		machine_free(&h->machine);
	site_end();
}

bool fleet_run(uint64_t seed, const struct life_options *o)
{
	begin_fleet(seed, o);
	world_run(world.now_us + 2 * BOOT_US);
	fleet_begin_load();
	fleet_begin_trouble();
	world_run(fleet.heal_us);
	if (fleet.spread != SPREAD_MESSAGES)
		fleet_check_busiest("the trouble");
	if (!subject_flaw[0])
		make_peace();
	if (!subject_flaw[0])
		fleet_exercise();
	if (!subject_flaw[0])
		end_peace();
	end_fleet();
	return !subject_flaw[0];
}

/*
 * Trouble, as the scenario says; then all is healed, and the agent must come to what the servers
 * have, hold nothing back, and leave nothing behind.
 */
#include "tests/sim/life.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/disk.h"
#include "tests/sim/hands.h"
#include "tests/sim/host.h"
#include "tests/sim/machine.h"
#include "tests/sim/operator.h"
#include "tests/sim/programs.h"
#include "tests/sim/push.h"
#include "tests/sim/scenario.h"
#include "tests/sim/site.h"
#include "tests/sim/subject.h"
#include "tests/sim/world.h"

#define LAST_CHANGES 8 /* of each document, when all is healed */
#define SECOND_US 1000000ull
#define LONGEST_HOLD_US (90 * SECOND_US)

struct life_totals life_totals;
uint64_t life_troubles;

static struct life {
	struct machine machine;
	struct scenario scenario;
	struct push_publisher *publisher;
	bool healed;
	bool unpushed;          /* changes are not published by push */
	uint64_t most_troubles; /* 0 = all */
	uint64_t pushes_us;     /* messages arrive from then on */
} life;

#define FOR_EACH_SUBJECT(s)                                                                        \
	for (struct subject *s = life.scenario.subjects;                                           \
		s < life.scenario.subjects + life.scenario.subject_count; s++)

/* ---- the process ---- */

/* It may be one that runs once, or dry. */
static void draw_start(struct machine *m)
{
	m->host.once = !life.healed && life.scenario.once && world_once_in(STREAM_LIFE, 3);
	m->host.dry_run = m->host.once && world_once_in(STREAM_LIFE, 2);
}

/* ---- trouble ---- */

static struct subject *draw_subject(void)
{
	return &life.scenario
			.subjects[world_random(STREAM_SERVER, life.scenario.subject_count - 1)];
}

static enum site_quality draw_quality(const struct subject *s, const struct site_document *d)
{
	static const enum site_quality bad[] = {SITE_BROKEN, SITE_SHRUNK, SITE_HARMFUL, SITE_SICK};

	if (d->may_be_absent && world_once_in(STREAM_SERVER, life.scenario.deletes))
		return SITE_ABSENT;
	if (!world_once_in(STREAM_SERVER, life.scenario.bad_versions))
		return SITE_GOOD;
	return s->probed && world_once_in(STREAM_SERVER, 2) ? SITE_SICK
							    : bad[world_random(STREAM_SERVER, 3)];
}

static void restore_backup(struct site_document *d)
{
	FOR_EACH_SUBJECT (s) {
		s->rolled_back.there = false;
		s->rolling_us = 0;
	}
	site_go_back(d, 1 + world_random(STREAM_SERVER, 3));
}

static void change_one(struct subject *s, struct site_document *d)
{
	if (d->count > SITE_MAX_VERSIONS - LAST_CHANGES)
		return;
	if (life.scenario.servers_s && world_once_in(STREAM_SERVER, 4))
		site.rollout = (unsigned)world_random(STREAM_SERVER, SITE_ROLLOUTS - 1);
	if (world_once_in(STREAM_SERVER, life.scenario.restores))
		restore_backup(d);
	else
		site_change(d, draw_quality(s, d));
	life_totals.changes++;
}

static void change_again(void *arg, uint64_t layer)
{
	struct subject *s = arg;

	if (!life.healed)
		change_one(s, s->layers[layer]);
}

/* Who changes something often mends it at once. */
static void change_document(void)
{
	struct subject *s = draw_subject();
	size_t layer = world_random(STREAM_SERVER, s->layer_count - 1);

	change_one(s, s->layers[layer]);
	if (world_once_in(STREAM_SERVER, 4))
		world_at(world.now_us + world_random(STREAM_SERVER, 5 * SECOND_US), change_again, s,
			layer);
}

static void trouble_one(struct site_server *s)
{
	s->mode = (enum server_mode)world_random(STREAM_SERVER, SERVER_MODES - 1);
	if (s->may_lag && world_random(STREAM_SERVER, 1))
		s->mode = SERVER_GOOD; /* late, but there */
	s->delay_us =
		world_once_in(STREAM_SERVER, 3) ? world_random(STREAM_SERVER, 3 * SECOND_US) : 1000;
	site.wrong_signature = world_once_in(STREAM_SERVER, 4) ? 3 : 0;
	site.unasked_304 = world_once_in(STREAM_SERVER, 9) ? 3 : 0;
	site.cut = world_once_in(STREAM_SERVER, 4) ? 3 : 0;
	s->lag_us = s->may_lag ? world_random(STREAM_SERVER, 20 * SECOND_US) : 0;
	world_trace("server %s: mode %d, delay %llu us, lag %llu us", s->name, s->mode,
		(unsigned long long)s->delay_us, (unsigned long long)s->lag_us);
}

/* One of the four, and a member of etcd. */
static void trouble_server(void)
{
	trouble_one(&site.servers[world_random(STREAM_SERVER, 3)]);
	trouble_one(&site.servers[4 + world_random(STREAM_SERVER, 1)]);
	if (world_once_in(STREAM_SERVER, 3))
		site_elect();
	if (world_once_in(STREAM_SERVER, 8))
		site_restore_etcd();
}

static void kill_process(void)
{
	life_totals.kills++;
	machine_end_soon(&life.machine, false);
}

static void fail_power(void)
{
	machine_fail_power(&life.machine);
}

static void edit_file(void)
{
	struct subject *s = draw_subject();

	if (s->place != PLACE_FILE || !s->last.there)
		return;
	world_trace("somebody edits %s", s->path);
	disk_use(life.machine.host.disk);
	s->foreign = true;
	if (world_once_in(STREAM_OPERATOR, 2))
		disk_remove(s->path);
	else
		disk_put(s->path, "something: else\n", 16);
}

static void sleep_for_a_while(void)
{
	machine_sleep(&life.machine,
		world.now_us + SECOND_US + world_random(STREAM_LIFE, 60) * SECOND_US);
}

static void step_clock(void)
{
	int64_t day_us = 86400ll * (int64_t)SECOND_US;

	world.wall_offset_us +=
		day_us * ((int64_t)world_random(STREAM_LIFE, 2) - 1) + (int64_t)SECOND_US;
	world_trace("the wall clock is set");
}

static void reload_configuration(void)
{
	struct subject *s = draw_subject();
	bool broken = world_once_in(STREAM_OPERATOR, 3);

	disk_use(life.machine.host.disk);
	life.scenario.rule++;
	if (!broken && life.scenario.subject_count > 1 && world_once_in(STREAM_OPERATOR, 4) &&
		s != life.scenario.subjects)
		s->removed = !s->removed;
	scenario_write(&life.scenario, broken);
	world_trace("SIGHUP, %s", broken ? "invalid" : "valid");
	life_totals.reloads++;
	host_reload(&life.machine.host);
}

static void operate(void)
{
	struct subject *s = draw_subject();

	if (!s->removed)
		operator_act(s);
	life_totals.operations++;
}

/* One in n calls of some kinds fails; 0 = none. */
static void let_disk_fail(unsigned n)
{
	for (unsigned i = 0; i < CALL_KINDS; i++)
		world_faults.one_in[i] = n && world_once_in(STREAM_FAULT, 3) ? n : 0;
	world_trace("disk faults %s", n ? "begin" : "end");
}

static void set_disk_faults(void)
{
	unsigned n = 4 + (unsigned)world_random(STREAM_FAULT, life.scenario.disk_faults);

	let_disk_fail(world_once_in(STREAM_FAULT, 2) ? n : 0);
}

/* Memory fails now and then, or from some allocation on for a while. */
static void set_memory_faults(void)
{
	unsigned kind = (unsigned)world_random(STREAM_FAULT, 3);

	world_faults.memory_one_in = kind == 0 ? life.scenario.memory_faults : 0;
	world_faults.memory_first = 0;
	if (kind < 2)
		return;
	world_faults.memory_first = world.allocations + 1 + world_random(STREAM_FAULT, 3000);
	world_faults.memory_count = 1 + world_random(STREAM_FAULT, 5);
}

static void touch_files(void)
{
	hands_act(draw_subject());
}

static const struct trouble {
	void (*happens)(void);
	size_t every; /* offset in the scenario of the mean time between, in seconds */
} troubles[] = {
#define ROW(function, member)                                                                      \
	{                                                                                          \
		function, offsetof(struct scenario, member)                                        \
	}
	ROW(change_document, changes_s),
	ROW(trouble_server, servers_s),
	ROW(kill_process, kills_s),
	ROW(fail_power, cuts_s),
	ROW(operate, operators_s),
	ROW(reload_configuration, reloads_s),
	ROW(edit_file, edits_s),
	ROW(sleep_for_a_while, sleeps_s),
	ROW(step_clock, clock_s),
	ROW(set_disk_faults, disk_faults),
	ROW(set_memory_faults, memory_faults),
	ROW(touch_files, hands_s),
	ROW(push_strangers_act, push_faults),
#undef ROW
};

static void next_trouble(size_t i);

static void trouble_comes(void *arg, uint64_t number)
{
	(void)arg;
	if (life.healed)
		return;
	life_troubles++;
	if (life.most_troubles && life_troubles > life.most_troubles)
		return;
	troubles[number].happens();
	next_trouble(number);
}

static void next_trouble(size_t i)
{
	const unsigned *every =
		(const unsigned *)((const char *)&life.scenario + troubles[i].every);
	uint64_t span_s = *every > 60 ? 15 : *every;

	if (span_s)
		world_at(world.now_us + world_random(STREAM_LIFE, 2 * span_s * SECOND_US),
			trouble_comes, NULL, i);
}

/* ---- begin and end ---- */

#define LOOK_US (3 * SECOND_US)

static void look_at_all(void *arg, uint64_t number)
{
	(void)arg;
	(void)number;
	FOR_EACH_SUBJECT (s)
		operator_look(s);
	if (!life.healed)
		world_at(world.now_us + LOOK_US, look_at_all, NULL, 0);
}

/* A calm life: nothing goes wrong but what the servers have. So each change is visible in time, or
 * the status says why not. */
static void check_promise(void *arg, uint64_t number)
{
	struct subject *s = arg;
	size_t layer = number >> 32;
	uint64_t version = number & UINT32_MAX;

	for (size_t i = version - 1; i < s->layers[layer]->count; i++)
		if (s->layers[layer]->versions[i].quality != SITE_GOOD)
			return;
	if (s->layer_count == 1 && !subject_shows(s, layer, version))
		subject_report_flaw("P5 %s: version %llu of %s is not visible in time", s->name,
			(unsigned long long)version, s->layers[layer]->path);
}

#define PROBED_US (60 * SECOND_US)

/* What makes the application sick is rolled back. Beside another layer's new version it is other
 * bytes, which are probed anew. */
static void check_sick(void *arg, uint64_t number)
{
	struct subject *s = arg;

	if (s->last.numbers[number >> 32] != (number & UINT32_MAX))
		return;
	if (world.now_us < s->changed_us + PROBED_US)
		world_at(s->changed_us + PROBED_US, check_sick, s, number);
	else
		subject_report_flaw("%s still has the version that fails its probe", s->name);
}

static void expect_change(struct subject *s, size_t layer, uint64_t version)
{
	uint64_t pull_ms = s->interval_ms * 5 / 4 + s->timeout_ms + 1000,
		 span_ms = life.scenario.push && !life.unpushed && world.now_us > life.pushes_us
				   ? 3000
				   : pull_ms;

	if (s->place == PLACE_FILE && s->probed && !s->features.rollout && !s->features.is_signed &&
		s->layers[layer]->versions[version - 1].quality == SITE_SICK)
		world_at(world.now_us + pull_ms * 1000 + PROBED_US, check_sick, s,
			(uint64_t)layer << 32 | version);
	if (s->place == PLACE_FILE && !s->probed && !s->features.rollout &&
		!s->features.is_signed && !s->features.min_interval_ms && !s->features.spread_ms)
		world_at(world.now_us + span_ms * 1000, check_promise, s,
			(uint64_t)layer << 32 | version);
}

static void push_change(const struct subject *s, const struct site_version *v)
{
	const char *topic = s->features.shared_topic ? "shared" : s->name;
	char number[24];

	snprintf(number, sizeof(number), "%llu",
		(unsigned long long)(s->features.etcd ? v->revision : v->index));
	push_publish(life.publisher, topic,
		s->features.etcd || s->features.consul ? number : v->etag, 0);
}

static void publish_change(void *arg, struct site_document *d, struct site_version *v)
{
	(void)arg;
	FOR_EACH_SUBJECT (s)
		for (size_t i = 0; i < s->layer_count; i++) {
			if (s->layers[i] != d)
				continue;
			s->rolled_back.there = false;
			s->rolling_us = 0;
			if (life.publisher && !life.unpushed)
				push_change(s, v);
			if (life.scenario.calm)
				expect_change(s, i, v->number);
		}
}

static void change_all(void)
{
	FOR_EACH_SUBJECT (s)
		for (size_t i = 0; i < s->layer_count; i++)
			site_change(s->layers[i], SITE_GOOD);
}

static void run_in_host(unsigned host, void (*call)(void *arg), void *arg)
{
	(void)host;
	host_call(&life.machine.host, call, arg);
}

static uint64_t host_sleeps_until(unsigned host)
{
	(void)host;
	return life.machine.host.stopped_until_us;
}

static void begin_push(void)
{
	const struct push_surroundings surroundings = {
		.run = run_in_host, .asleep_until_us = host_sleeps_until};
	const struct push_faults faults = {.lose = 5,
		.copy = 7,
		.delay = 4,
		.delay_ms = 3000,
		.forge = 10,
		.cut = 6,
		.deaf = 10,
		.mute = 10,
		.refuse = 5,
		.hang = 10,
		.restart = 10,
		.hang_ms = 20000};

	push_begin(&surroundings);
	life.publisher = NULL;
	if (!life.scenario.push)
		return;
	life.publisher = push_publisher_new("tcp://127.0.0.1:7377", 0);
	push_set_faults(life.scenario.push_faults ? &faults : NULL);
}

static void begin_life(uint64_t seed, const struct life_options *o)
{
	uint64_t trouble_us = o->trouble_s * SECOND_US;

	memset(&life, 0, sizeof(life));
	life.most_troubles = o->troubles;
	life.pushes_us = UINT64_MAX;
	life_troubles = 0;
	subject_flaw[0] = '\0';
	world_begin(seed);
	site_begin();
	memset(&sim_programs, 0, sizeof(sim_programs));
	snprintf(life.machine.host.name, sizeof(life.machine.host.name), "host");
	if (!trouble_us)
		trouble_us = (60 + world_random(STREAM_LIFE, 240)) * SECOND_US;
	scenario_draw(&life.scenario, &life.machine.host, trouble_us);
	life.machine.subjects = life.scenario.subjects;
	life.machine.subject_count = life.scenario.subject_count;
	life.machine.starts = draw_start;
	life.machine.ends_in_changes = true;
	life.machine.cuts_after_kills = life.scenario.cuts_s;
	sim_programs.fails = sim_programs.killed = life.scenario.programs;
	sim_programs.slow_disk = life.scenario.disk_faults ? 4 : 0;
	sim_programs.short_orders = life.scenario.memory_faults ? 2 : 0;
	sim_programs.hangs = sim_programs.not_started = 2 * life.scenario.programs;
	machine_prepare(&life.machine, life.scenario.model);
	scenario_write(&life.scenario, false);
	begin_push();
	site.changed = publish_change;
	change_all();
}

/* From now on nothing goes wrong any more; each document changes once more. */
static void heal(void)
{
	world_trace("all is healed");
	life.healed = true;
	life.machine.host.calls_left = life.machine.host.changes_left = 0;
	life.machine.cuts_after_kills = false;
	world_faults = (struct world_faults){.died = world_faults.died};
	memset(&sim_programs, 0, sizeof(sim_programs));
	site_heal();
	push_set_faults(NULL);
	change_all();
	disk_use(life.machine.host.disk);
	life.scenario.rule +=
		(unsigned)world_random(STREAM_LIFE, 1); /* all configs change, or none */
	scenario_write(&life.scenario, false);
	if (life.machine.host.once)
		host_kill(&life.machine.host);
	FOR_EACH_SUBJECT (s)
		hands_end(s);
	machine_start(&life.machine);
	host_reload(&life.machine.host);
	FOR_EACH_SUBJECT (s) {
		operator_end(s);
		if (life.scenario.hands_s) /* the page that a reader has mapped may be anybody's */
			subject_close(s);
	}
}

/* The longest time until the newest versions must be visible. */
static uint64_t peace_us(void)
{
	uint64_t longest_ms = 0;

	FOR_EACH_SUBJECT (s) {
		uint64_t ms = 11 * s->interval_ms * 3 / 2 + s->timeout_ms;

		longest_ms = ms > longest_ms ? ms : longest_ms;
	}
	return (longest_ms + 180000) * 1000;
}

/* The longest time until a change is visible when all has been well for a while: backoff is over,
 * pulls come at their interval. */
static uint64_t calm_us(void)
{
	uint64_t longest_ms = 0;

	FOR_EACH_SUBJECT (s) {
		uint64_t ms = s->interval_ms * 5 / 4 + 2 * s->timeout_ms + 12000;

		longest_ms = ms > longest_ms ? ms : longest_ms;
	}
	return longest_ms * 1000;
}

/* Until all is visible, at most as long as it may take. */
static void wait_for_newest(uint64_t longest_us)
{
	uint64_t end_us = world.now_us + longest_us;

	do
		world_run(world.now_us + 5 * SECOND_US);
	while (world.now_us < end_us && !machine_shows_newest(&life.machine));
}

/* Faults of the network end, and each subscriber is connected again. */
static void wait_for_push(void)
{
	uint64_t end_us = world.now_us + PUSH_HEAL_MS * 1000;

	/* what a server in trouble asked for by Retry-After is over, too */
	world_run(world.now_us + LONGEST_HOLD_US);
	while (push_unconnected() && world.now_us < end_us)
		world_run(world.now_us + SECOND_US);
	if (push_unconnected())
		subject_report_flaw("P5 the push channel is not connected again");
}

static void mend_disk(void *arg, uint64_t number)
{
	(void)arg;
	(void)number;
	let_disk_fail(0);
}

/* A change is visible in time, said or not; where the disk fails at first, after a while. */
static void check_change(void)
{
	bool fails = life.scenario.disk_faults;

	life.unpushed = world_random(STREAM_LIFE, 1);
	if (fails) {
		let_disk_fail(4);
		world_at(world.now_us + 5 * SECOND_US, mend_disk, NULL, 0);
	}
	change_all();
	if (fails)
		wait_for_newest(peace_us());
	else
		world_run(world.now_us + calm_us());
	machine_check_newest(&life.machine);
}

/* What somebody writes over a file is healed, also when no server has anything new. */
static void check_healing(void)
{
	FOR_EACH_SUBJECT (s)
		hands_spoil(s);
	wait_for_newest(calm_us());
	machine_check_newest(&life.machine);
}

/* Once more, with all servers down: the last known good is there at once, and nothing is left of
 * what went wrong before. */
static void check_restart(void)
{
	for (size_t i = 0; i < site.server_count; i++)
		site.servers[i].mode = SERVER_REFUSES;
	machine_restart(&life.machine);
	world_run(world.now_us + SECOND_US);
	machine_check_restart(&life.machine);
}

static void end_life(void)
{
	for (size_t i = 0; i < site.server_count; i++)
		life_totals.requests += site.servers[i].requests;
	life_totals.lives++;
	life_totals.calls += world.calls;
	life_totals.failed_calls += world.failed_calls;
	life_totals.failed_allocations += world.failed_allocations;
	life_totals.virtual_s += (world.now_us - 1000 * SECOND_US) / SECOND_US;
	machine_free(&life.machine);
	push_strangers_end();
	push_begin(NULL);
	site_end();
}

bool life_run(uint64_t seed, const struct life_options *o)
{
	begin_life(seed, o);
	world_trace("seed %llu: %zu configs, %llu s of trouble", (unsigned long long)seed,
		life.scenario.subject_count,
		(unsigned long long)(life.scenario.trouble_us / SECOND_US));
	machine_start(&life.machine);
	for (size_t i = 0; i < sizeof(troubles) / sizeof(troubles[0]); i++)
		next_trouble(i);
	life.pushes_us = world.now_us + 20 * SECOND_US;
	look_at_all(NULL, 0);
	world_run(world.now_us + life.scenario.trouble_us);
	if (!subject_flaw[0]) {
		heal();
		wait_for_newest(peace_us());
		machine_check_newest(&life.machine);
		wait_for_push();
		check_change();
		check_healing();
		machine_check_left_over(&life.machine);
		check_restart();
	}
	end_life();
	return !subject_flaw[0];
}

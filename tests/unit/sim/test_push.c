/*
 * The simulated push channel: what publishers say arrives, what goes wrong is seen by the agents'
 * sessions, all is well again when it ends, and one seed is one course of events. The world here
 * has a clock and events only.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/log.h"
#include "push/subscriber.h"
#include "tests/fleet/random.h"
#include "tests/sim/disk.h"
#include "tests/sim/push.h"
#include "tests/sim/world.h"

#define MINUTE_US 60000000ull
#define MAX_HOSTS 200
#define FAR "tcp://192.0.2.1:7377"
#define INTERVAL_MS 3600000000

/* ---- a world of a clock and events ---- */

struct world world;
volatile enum disk_owner disk_owner;

static struct event {
	uint64_t due_us, order, number;
	void (*event)(void *arg, uint64_t number);
	void *arg;
} heap[200000];
static size_t heap_count;
static uint64_t heap_order;

static bool is_before(const struct event *a, const struct event *b)
{
	return a->due_us != b->due_us ? a->due_us < b->due_us : a->order < b->order;
}

void world_at(
	uint64_t due_us, void (*event)(void *arg, uint64_t number), void *arg, uint64_t number)
{
	struct event e = {
		due_us > world.now_us ? due_us : world.now_us, heap_order++, number, event, arg};
	size_t i = heap_count++;

	assert_true(heap_count < sizeof(heap) / sizeof(heap[0]));
	for (; i && is_before(&e, &heap[(i - 1) / 2]); i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = e;
}

static struct event take_event(void)
{
	struct event first = heap[0], last = heap[--heap_count];
	size_t i = 0, next;

	while ((next = 2 * i + 1) < heap_count) {
		next += next + 1 < heap_count && is_before(&heap[next + 1], &heap[next]);
		if (!is_before(&heap[next], &last))
			break;
		heap[i] = heap[next];
		i = next;
	}
	heap[i] = last;
	return first;
}

static void run_for(uint64_t us)
{
	uint64_t until_us = world.now_us + us;

	while (heap_count && heap[0].due_us <= until_us) {
		struct event e = take_event();

		world.now_us = e.due_us;
		e.event(e.arg, e.number);
	}
	world.now_us = until_us;
}

uint64_t world_random(enum world_stream s, uint64_t bound)
{
	return random_upto(&world.streams[s], bound);
}

bool world_once_in(enum world_stream s, uint64_t n)
{
	return n && world_random(s, n - 1) == 0;
}

void world_trace(const char *format, ...)
{
	char line[512];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	world.trace_hash = hash_bytes(world.trace_hash, &world.now_us, sizeof(world.now_us));
	world.trace_hash = hash_bytes(world.trace_hash, line, strlen(line));
	world.traced++;
}

static uint64_t draw_random(void)
{
	return random_next(&world.streams[STREAM_AGENT]);
}

static const struct sys sys = {
	.now_ms = world_now_ms, .monotonic_us = world_now_us, .random = draw_random};

/* ---- hosts, each with an agent's topics ---- */

static struct host {
	struct trigger_queue queue;
	struct trigger triggers[2];
	struct push_topic topics[2];
	struct subscriber *push;
	uint64_t hints[2]; /* taken */
} hosts[MAX_HOSTS];
static unsigned split; /* hosts below do not reach those from here on; 0 = all reach all */
static uint64_t asleep_until_us;
static unsigned ran_on;

static void wake_host(void *arg)
{
	struct host *h = arg;
	struct trigger *t;
	uint64_t due_ms;

	while ((t = trigger_queue_take(&h->queue)))
		if (trigger_due(t, &due_ms) && due_ms < world_now_ms() + INTERVAL_MS / 2)
			h->hints[t - h->triggers]++;
}

static void run_call(unsigned host, void (*call)(void *arg), void *arg)
{
	ran_on = host;
	call(arg);
}

static bool reaches(unsigned from, unsigned to)
{
	return !split || (from < split) == (to < split);
}

static uint64_t sleep_of(unsigned host)
{
	return host == 1 ? asleep_until_us : 0;
}

static void begin(uint64_t seed)
{
	static const struct push_surroundings around = {run_call, sleep_of, reaches};

	log_setup(LOG_LEVEL_ERR, LOG_FORMAT_TEXT);
	memset(&world, 0, sizeof(world));
	heap_count = 0;
	heap_order = 0;
	world.now_us = 1000000000;
	for (unsigned i = 0; i < STREAMS; i++)
		world.streams[i] = seed * STREAMS + i;
	split = 0;
	asleep_until_us = 0;
	push_begin(&around);
}

static struct host *start_host(unsigned i, const char *endpoint)
{
	struct host *h = &hosts[i];
	const struct subscriber_endpoint at = {endpoint, PUSH_HEARTBEAT_MS, NULL, NULL};
	struct push_topic *const list[] = {&h->topics[0], &h->topics[1]};

	*h = (struct host){.push = NULL};
	trigger_queue_init(&h->queue, wake_host, h);
	for (size_t k = 0; k < 2; k++) {
		trigger_init(&h->triggers[k], &h->queue);
		trigger_fire(&h->triggers[k], world_now_ms(), INTERVAL_MS);
		h->topics[k] = (struct push_topic){
			.topic = k ? "db" : "web", .trigger = &h->triggers[k], .pulled = true};
	}
	push_set_host(i);
	assert_int_equal(subscriber_start(&sys, &at, 1, list, 2, &h->push), 0);
	return h;
}

/* Makes all that was hinted at due much later again. */
static void settle(struct host *h)
{
	for (size_t k = 0; k < 2; k++) {
		trigger_fire(&h->triggers[k], world_now_ms(), INTERVAL_MS);
		h->hints[k] = 0;
	}
	wake_host(h);
	h->hints[0] = h->hints[1] = 0;
}

static struct subscriber_status status_of(const struct host *h)
{
	struct subscriber_status s;

	subscriber_get_status(h->push, 0, &s);
	return s;
}

static void stop_hosts(void)
{
	for (unsigned i = 0; i < MAX_HOSTS; i++) {
		subscriber_stop(hosts[i].push);
		hosts[i].push = NULL;
	}
	push_begin(NULL);
}

/* ---- cases ---- */

static void message__without_faults__arrives_once(void **state)
{
	struct push_publisher *p;
	struct host *h;

	(void)state;
	begin(1);
	p = push_publisher_new(FAR, 7);
	h = start_host(3, FAR);
	run_for(MINUTE_US);
	assert_int_equal(status_of(h).state, PUSH_CONNECTED);
	assert_true(status_of(h).heartbeats >= 10);
	settle(h);
	push_publish(p, "web", "v1", 0);
	push_publish(p, "other", "v1", 0);
	run_for(MINUTE_US);
	assert_int_equal(h->hints[0], 1);
	assert_int_equal(h->hints[1], 0);
	assert_true(h->topics[0].wanted != 0);
	assert_int_equal(ran_on, 3);
	assert_int_equal(status_of(h).gaps + status_of(h).epochs + status_of(h).bad, 0);
	assert_int_equal(push_under_way(), 0);
	stop_hosts();
}

static void publisher__that_is_away__is_found_again(void **state)
{
	struct push_publisher *p;
	struct host *h;

	(void)state;
	begin(2);
	h = start_host(1, FAR);
	run_for(MINUTE_US);
	assert_int_equal(push_unconnected(), 1);
	p = push_publisher_new(FAR, 7);
	run_for(2 * MINUTE_US);
	assert_int_equal(status_of(h).state, PUSH_CONNECTED);
	push_publisher_stop(p);
	assert_false(push_publisher_runs(p));
	run_for(1000000);
	assert_int_equal(status_of(h).state, PUSH_CONNECTING);
	settle(h);
	push_publisher_start(p);
	run_for(2 * MINUTE_US);
	assert_int_equal(status_of(h).connects, 2);
	assert_true(h->hints[0] && h->hints[1]);
	push_publisher_stop(p); /* and another epoch while nobody is there */
	stop_hosts();
}

static void host__that_sleeps__hears_it_later(void **state)
{
	struct push_publisher *p;
	struct host *h;

	(void)state;
	begin(3);
	p = push_publisher_new(FAR, 7);
	h = start_host(1, FAR);
	run_for(MINUTE_US);
	settle(h);
	asleep_until_us = world.now_us + MINUTE_US;
	push_publish(p, "db", NULL, 0);
	run_for(MINUTE_US - 1);
	assert_int_equal(h->hints[1], 0);
	run_for(1000000);
	assert_true(h->hints[1] > 0);
	stop_hosts();
}

static void process__that_ended__is_not_called_any_more(void **state)
{
	struct push_publisher *p;
	struct host *h;
	uint64_t heartbeats;

	(void)state;
	begin(4);
	p = push_publisher_new(FAR, 7);
	h = start_host(2, FAR);
	run_for(MINUTE_US);
	heartbeats = status_of(h).heartbeats;
	push_publish(p, "web", NULL, 0);
	push_forget_host(2);
	run_for(10 * MINUTE_US);
	assert_int_equal(status_of(h).heartbeats, heartbeats);
	assert_int_equal(push_under_way(), 0);
	subscriber_stop(h->push);
	h = start_host(2, FAR); /* the next process */
	run_for(MINUTE_US);
	assert_int_equal(status_of(h).state, PUSH_CONNECTED);
	stop_hosts();
}

static void split__of_the_network__is_noticed_and_heals(void **state)
{
	struct host *h;

	(void)state;
	begin(5);
	push_publisher_new(FAR, 7);
	h = start_host(1, FAR);
	run_for(MINUTE_US);
	split = 5;
	run_for(MINUTE_US);
	assert_int_not_equal(status_of(h).state, PUSH_CONNECTED);
	settle(h);
	split = 0;
	run_for(1000 * PUSH_HEAL_MS);
	assert_int_equal(status_of(h).state, PUSH_CONNECTED);
	assert_true(h->hints[0] && h->hints[1]);
	stop_hosts();
}

/* Other topics, as after a SIGHUP. */
static void renew_topics(struct host *h, size_t count)
{
	struct push_topic *const list[] = {&h->topics[0], &h->topics[1]};

	assert_int_equal(subscriber_renew(h->push, list, count), 0);
}

/* Changes while all goes wrong; then peace. */
static void live_with_faults(uint64_t seed, unsigned count, const char *const *endpoints,
	size_t endpoint_count, struct push_publisher *const *publishers, size_t publisher_count)
{
	static const struct push_faults faults = {.lose = 5,
		.copy = 7,
		.delay = 5,
		.delay_ms = 3000,
		.forge = 6,
		.cut = 20,
		.deaf = 20,
		.mute = 20,
		.refuse = 3,
		.hang = 10,
		.restart = 20,
		.hang_ms = 30000};
	char version[32];

	for (unsigned i = 0; i < count; i++)
		start_host(i, endpoints[i % endpoint_count]);
	push_set_faults(&faults);
	for (unsigned i = 0; i < 600; i++) {
		snprintf(version, sizeof(version), "v%u", i);
		push_publish(
			publishers[(seed + i) % publisher_count], i % 2 ? "web" : "db", version, 0);
		if (i % 20 == 0)
			renew_topics(&hosts[i % count], 2 - i / 20 % 2);
		run_for(1000000);
	}
	for (unsigned i = 0; i < count; i++)
		renew_topics(&hosts[i], 2);
	push_set_faults(NULL);
	run_for(1000 * PUSH_HEAL_MS);
}

static void faults__of_all_kinds__strike_and_heal(void **state)
{
	static const char *const endpoints[] = {FAR, "tcp://127.0.0.1:7377"};
	struct push_publisher *p[2];
	const struct push_totals *t;
	struct subscriber_status s, sum = {0};

	(void)state;
	for (uint64_t seed = 10; seed < 30; seed++) {
		begin(seed);
		p[0] = push_publisher_new(endpoints[0], 7);
		p[1] = push_publisher_new(endpoints[1], 0);
		live_with_faults(seed, 4, endpoints, 2, p, 2);
		assert_int_equal(push_unconnected(), 0);
		t = push_totals();
		assert_true(t->lost && t->copied && t->delayed && t->forged && t->refusals &&
			    t->cuts && t->deaf && t->mute && t->hangs && t->restarts &&
			    t->rebuilds);
		for (unsigned i = 0; i < 4; i++) {
			s = status_of(&hosts[i]);
			sum.bad += s.bad;
			sum.gaps += s.gaps;
			sum.epochs += s.epochs;
			sum.refused += s.refused;
			sum.rebuilds += s.rebuilds;
			sum.cuts += s.cuts;
		}
		for (unsigned i = 0; i < 4; i++)
			settle(&hosts[i]);
		push_publish(p[0], "web", "last", 0);
		run_for(MINUTE_US);
		assert_true(hosts[0].hints[0] && hosts[2].hints[0]);
		assert_int_equal(hosts[1].hints[0] + hosts[0].hints[1], 0);
		stop_hosts();
	}
	assert_true(sum.bad && sum.gaps && sum.epochs && sum.refused && sum.rebuilds && sum.cuts);
}

static uint64_t live_as_fleet(uint64_t seed)
{
	static const char *const leaves[] = {
		"tcp://10.0.1.1:1", "tcp://10.0.1.2:1", "tcp://10.0.1.3:1", "tcp://10.0.1.4:1"};
	static const char *const roots[] = {"tcp://10.0.0.1:1", "tcp://10.0.0.2:1"};
	struct push_publisher *p[2];

	begin(seed);
	p[0] = push_publisher_new(roots[0], 1000);
	p[1] = push_publisher_new(roots[1], 1001);
	for (unsigned i = 0; i < 4; i++)
		push_relay_new(leaves[i], 1010 + i, roots, 2);
	live_with_faults(seed, MAX_HOSTS, leaves, 4, p, 2);
	assert_int_equal(push_unconnected(), 0);
	for (unsigned i = 0; i < MAX_HOSTS; i++)
		settle(&hosts[i]);
	push_publish(p[0], "web", "last", 0);
	run_for(10000000);
	for (unsigned i = 0; i < MAX_HOSTS; i++)
		assert_true(hosts[i].hints[0]);
	stop_hosts();
	return world.trace_hash;
}

static void fleet__behind_relays__hears_the_last_change(void **state)
{
	(void)state;
	live_as_fleet(100);
}

static void seed__gives_the_same_course(void **state)
{
	(void)state;
	assert_true(live_as_fleet(7) == live_as_fleet(7));
	assert_true(live_as_fleet(7) != live_as_fleet(8));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(message__without_faults__arrives_once),
		cmocka_unit_test(publisher__that_is_away__is_found_again),
		cmocka_unit_test(host__that_sleeps__hears_it_later),
		cmocka_unit_test(process__that_ended__is_not_called_any_more),
		cmocka_unit_test(split__of_the_network__is_noticed_and_heals),
		cmocka_unit_test(faults__of_all_kinds__strike_and_heal),
		cmocka_unit_test(fleet__behind_relays__hears_the_last_change),
		cmocka_unit_test(seed__gives_the_same_course),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

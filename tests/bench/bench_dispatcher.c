/*
 * Tasks per second through the dispatcher, one thread, virtual time: submitted, and handed out in
 * batches of 250.
 *
 * Two ways: "flow" submits 250 and asks for a batch, so that little waits; "burst" submits as many
 * as there are ids and then asks until nothing waits, so that the set is as large as it gets, and
 * out of the processor's caches. When no batch is due, time goes on to the moment that
 * dispatcher_next() names. In random order ids repeat within a burst, and override.
 *
 * Rounds alternate between the orders; the median is printed. Tasks are those submitted, also where
 * they are lost.
 */
#include <malloc.h>
#include <stdbool.h>
#include <string.h>

#include "../../lib/dispatcher.h"
#include "bench.h"

#define BATCH 250u
#define ROUNDS 5u
#define MILLION 1000000u
#define EUREKAS_BOUND 10000u
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

enum order { RANDOM, SEQUENTIAL, ORDERS };

static uint32_t *ids_in_order[ORDERS]; /* of a round: a million each */
static struct dispatcher dispatcher;
static uint64_t now_ms;

static void drain(void)
{
	struct dispatcher_item items[BATCH];
	uint64_t due_ms;

	while (dispatcher_next(&dispatcher, &due_ms)) {
		if (now_ms < due_ms)
			now_ms = due_ms;
		dispatcher_take(&dispatcher, now_ms, BATCH, items);
	}
}

/* A million tasks: so many at once, then all batches (burst) or those that are due. */
static void run_round(const uint32_t *ids, size_t at_once, bool burst)
{
	struct dispatcher_item items[BATCH];

	for (size_t i = 0; i < MILLION; now_ms++) {
		for (size_t end = i + at_once; i < end && i < MILLION; i++)
			dispatcher_submit(
				&dispatcher, now_ms, ids[i], &dispatcher, DISPATCHER_NEVER);
		if (burst)
			drain();
		else
			dispatcher_take(&dispatcher, now_ms, BATCH, items);
	}
	drain();
}

static void prepare_ids(uint32_t ids)
{
	uint64_t seed = 1;

	for (uint32_t i = 0; i < MILLION; i++) {
		ids_in_order[SEQUENTIAL][i] = i % ids;
		ids_in_order[RANDOM][i] = (uint32_t)(bench_random(&seed) % ids);
	}
}

static void set_up(const struct dispatcher_limits *limits)
{
	if (dispatcher_init(&dispatcher, limits, NULL, NULL)) {
		fprintf(stderr, "bench_dispatcher: no memory\n");
		exit(1);
	}
	now_ms = 1;
}

/* Prints a row; the least of its two rates, in millions a second. */
static double measure(uint32_t ids, const struct dispatcher_limits *limits, bool burst)
{
	double rates[ORDERS][ROUNDS], figures[3 * ORDERS], *figure = figures, least;
	struct dispatcher_counters counters[ORDERS];
	char name[64];

	for (unsigned round = 0; round <= ROUNDS; round++) /* the first is not counted */
		for (unsigned order = 0; order < ORDERS; order++) {
			uint64_t begin_ns;

			set_up(limits);
			run_round(ids_in_order[order], burst ? ids : BATCH, burst);
			memset(&dispatcher.counters, 0, sizeof(dispatcher.counters));
			begin_ns = bench_now_ns();
			run_round(ids_in_order[order], burst ? ids : BATCH, burst);
			if (round > 0)
				rates[order][round - 1] =
					MILLION * 1e3 / (double)(bench_now_ns() - begin_ns);
			counters[order] = dispatcher.counters;
			dispatcher_fini(&dispatcher);
		}
	for (unsigned order = 0; order < ORDERS; order++) {
		*figure++ = bench_median(rates[order], ROUNDS);
		*figure++ = (double)counters[order].overridden * 100 / MILLION;
		*figure++ = (double)counters[order].overflowed * 100 / MILLION;
	}
	least = figures[0] < figures[3] ? figures[0] : figures[3];
	snprintf(name, sizeof(name), "%u ids, %u ms, %s", ids, (unsigned)limits->max_delay_ms,
		burst ? "burst" : "flow");
	bench_row(name, figures, COUNT(figures));
	return least;
}

static const uint32_t counts[] = {100, 10000, MILLION};

/* max_pending 0: as many as there are ids. Writes the least rate of each count. */
static void table(const char *title, uint32_t max_pending, bool with_flow, double *ret_least)
{
	static const char *const columns[] = {
		"random M/s", "overrid. %", "overfl. %", "ordered M/s", "overrid. %", "overfl. %"};

	bench_head(title, columns, COUNT(columns));
	for (size_t i = 0; i < COUNT(counts); i++) {
		ret_least[i] = 1e9;
		prepare_ids(counts[i]);
		for (unsigned way = 0; way < (with_flow ? 4u : 2u); way++) {
			struct dispatcher_limits limits = {
				max_pending ? max_pending : counts[i], BATCH, way % 2 ? 500 : 0};
			double rate = measure(counts[i], &limits, way < 2);

			if (rate < ret_least[i])
				ret_least[i] = rate;
		}
	}
}

static void print_memory(void)
{
	for (size_t i = 0; i < COUNT(counts); i++) {
		struct dispatcher_limits limits = {counts[i], BATCH, 0};

		set_up(&limits);
		printf("bytes a pending task, max_pending %u: %.1f\n", counts[i],
			(double)malloc_usable_size(dispatcher.entries) / counts[i]);
		dispatcher_fini(&dispatcher);
	}
}

int main(void)
{
	static const double targets[] = {5, 5, 3};
	double least[COUNT(counts)], ignored[COUNT(counts)];
	char what[64];

	for (unsigned order = 0; order < ORDERS; order++) {
		ids_in_order[order] = malloc(MILLION * sizeof(uint32_t));
		if (!ids_in_order[order])
			return 1;
	}
	table("room for all", 0, true, least);
	table("Eureka's room: 10000", EUREKAS_BOUND, false, ignored);
	printf("\n");
	print_memory();
	for (size_t i = 0; i < COUNT(counts); i++) {
		snprintf(what, sizeof(what), "%u ids, the slowest way, millions of tasks",
			counts[i]);
		bench_least(what, least[i], targets[i], "1/s");
	}
	for (unsigned order = 0; order < ORDERS; order++)
		free(ids_in_order[order]);
	return 0;
}

/*
 * Lives by seed: thousands of them, or one with its trace.
 *
 * Usage: sim [--seeds N] [--from S] [--jobs N] [--hours H] [--twice] [--until-flaw]
 *        sim --seed S [--trace] [--troubles N] [--hours H]
 *        sim --fleet [--hosts N] ...: lives of a fleet
 *
 * Ends with a line of figures and, where something was wrong, each seed with what it was. A life
 * that went wrong is lived again with fewer and fewer troubles: the fewest that still show it are
 * printed. Exit code: 0 = nothing was wrong.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hash.h"
#include "tests/sim/fleet.h"
#include "tests/sim/libc.h"
#include "tests/sim/life.h"
#include "tests/sim/subject.h"
#include "tests/sim/world.h"

void __gcov_dump(void) __attribute__((weak));

#define MAX_JOBS 64
#define MAX_FLAWS 20 /* printed */
#define MAX_SEEDS 10000000
#define MAX_HOURS 1000000

struct options {
	uint64_t seeds, from, jobs;
	bool one, twice, until_flaw;
	bool (*run)(uint64_t seed, const struct life_options *options);
	struct life_options life;
};

struct result { /* of one seed, in memory that all processes share */
	uint64_t hash;
	bool begun, done, failed;
	char flaw[200];
};

static void *share(size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED) {
		perror("mmap");
		exit(2);
	}
	return at;
}

static void live_one(const struct options *o, uint64_t seed, struct result *ret)
{
	ret->failed = !o->run(seed, &o->life);
	ret->hash = world.trace_hash;
	snprintf(ret->flaw, sizeof(ret->flaw), "%.199s", subject_flaw);
	if (o->twice && !ret->failed) {
		o->run(seed, &o->life);
		if (world.trace_hash != ret->hash) {
			ret->failed = true;
			snprintf(ret->flaw, sizeof(ret->flaw), "another trace the second time");
		}
	}
	ret->done = true;
}

/* ---- many ---- */

/* What a process does: its share of the seeds, but those that are begun already. */
static void live_share(
	const struct options *o, uint64_t job, struct result *results, struct life_totals *totals)
{
	life_totals = *totals;
	for (uint64_t i = job; i < o->seeds; i += o->jobs) {
		if (results[i].begun)
			continue;
		results[i].begun = true;
		live_one(o, o->from + i, &results[i]);
		*totals = life_totals;
		if (results[i].failed && o->until_flaw)
			break;
	}
}

/* Starts that process. */
static pid_t start_job(
	const struct options *o, uint64_t job, struct result *results, struct life_totals *totals)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	live_share(o, job, results, &totals[job]);
	fflush(stdout);
	if (__gcov_dump) /* make sim-coverage */
		__gcov_dump();
	_Exit(0);
}

/* A process that ends by a signal failed in its last life: another one goes on. */
static void live_all(const struct options *o, struct result *results, struct life_totals *totals)
{
	pid_t pids[MAX_JOBS], pid;
	int status;

	for (uint64_t job = 0; job < o->jobs; job++)
		pids[job] = start_job(o, job, results, totals);
	while ((pid = wait(&status)) > 0)
		for (uint64_t job = 0; job < o->jobs; job++)
			if (pids[job] == pid && status != 0 && !o->until_flaw)
				pids[job] = start_job(o, job, results, totals);
}

static struct life_totals add_totals(const struct life_totals *totals, uint64_t jobs)
{
	struct life_totals sum = {0};

	for (uint64_t i = 0; i < jobs; i++)
		for (size_t j = 0; j < sizeof(sum) / sizeof(uint64_t); j++)
			((uint64_t *)&sum)[j] += ((const uint64_t *)&totals[i])[j];
	return sum;
}

static void print_totals(
	const struct options *o, const struct life_totals *t, uint64_t hash, uint64_t took_us)
{
	double took_s = (double)took_us / 1e6;

	printf("%llu lives in %.1f s (%.0f/s on each of %llu), %llu virtual hours, trace %016llx\n",
		(unsigned long long)t->lives, took_s, (double)t->lives / took_s / (double)o->jobs,
		(unsigned long long)o->jobs, (unsigned long long)(t->virtual_s / 3600),
		(unsigned long long)hash);
	printf("%llu changes, %llu requests, %llu sights, %llu kills, %llu power cuts, %llu exits, "
	       "%llu operations, %llu reloads, %llu calls, %llu of them failed, %llu allocations "
	       "failed\n",
		(unsigned long long)t->changes, (unsigned long long)t->requests,
		(unsigned long long)t->observed, (unsigned long long)t->kills,
		(unsigned long long)t->cuts, (unsigned long long)t->exits,
		(unsigned long long)t->operations, (unsigned long long)t->reloads,
		(unsigned long long)t->calls, (unsigned long long)t->failed_calls,
		(unsigned long long)t->failed_allocations);
}

/* Lives it again with fewer troubles. Returns the fewest that still go wrong. */
static uint64_t shorten(struct options *o, uint64_t seed)
{
	uint64_t good = 0, bad;

	if (o->run(seed, &o->life))
		return 0;
	bad = life_troubles;
	while (good + 1 < bad) {
		o->life.troubles = good + (bad - good) / 2;
		if (o->run(seed, &o->life))
			good = o->life.troubles;
		else
			bad = o->life.troubles;
	}
	o->life.troubles = 0;
	return bad;
}

static uint64_t print_flaws(struct options *o, const struct result *results)
{
	uint64_t failed = 0;

	for (uint64_t i = 0; i < o->seeds; i++) {
		const struct result *r = &results[i];

		if ((r->done && !r->failed) || !r->begun)
			continue;
		if (failed++ >= MAX_FLAWS)
			continue;
		printf("seed %llu: %s\n", (unsigned long long)(o->from + i),
			r->done ? r->flaw : "the simulator itself ended");
		if (r->done && failed <= 3 && !o->until_flaw)
			printf("    again: SEED=%llu TROUBLES=%llu TRACE=1\n",
				(unsigned long long)(o->from + i),
				(unsigned long long)shorten(o, o->from + i));
	}
	return failed;
}

static int live_many(struct options *o)
{
	struct result *results = share(o->seeds * sizeof(*results));
	struct life_totals *totals = share(o->jobs * sizeof(*totals)), sum;
	uint64_t begin_us = libc_real_us(), failed, hash = HASH_START, took_us;

	live_all(o, results, totals);
	took_us = libc_real_us() - begin_us;
	for (uint64_t i = 0; i < o->seeds; i++)
		hash = hash_bytes(hash, &results[i].hash, sizeof(results[i].hash));
	sum = add_totals(totals, o->jobs);
	failed = print_flaws(o, results);
	print_totals(o, &sum, hash, took_us);
	printf("%llu passed, %llu failed\n", (unsigned long long)(o->seeds - failed),
		(unsigned long long)failed);
	return failed != 0;
}

/* ---- one ---- */

static int live_seed(const struct options *o)
{
	bool good = o->run(o->from, &o->life);

	printf("seed %llu: %s, %llu troubles, trace %016llx\n", (unsigned long long)o->from,
		good ? "good" : subject_flaw, (unsigned long long)life_troubles,
		(unsigned long long)world.trace_hash);
	return !good;
}

/* A number of the option's bounds; anything else ends the program. */
static uint64_t read_number(const char *option, const char *text, uint64_t min, uint64_t max)
{
	uint64_t n;
	char *end;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (*text >= '0' && *text <= '9' && !*end && !errno && n >= min && n <= max)
		return n;
	fprintf(stderr, "sim: --%s \"%s\": a whole number from %llu to %llu is needed\n", option,
		text, (unsigned long long)min, (unsigned long long)max);
	exit(2);
}

int main(int argc, char **argv)
{
	static const struct option names[] = {{"seeds", 1, NULL, 'n'}, {"from", 1, NULL, 'f'},
		{"jobs", 1, NULL, 'j'}, {"hours", 1, NULL, 'h'}, {"twice", 0, NULL, 't'},
		{"until-flaw", 0, NULL, 'u'}, {"seed", 1, NULL, 's'}, {"trace", 0, NULL, 'v'},
		{"troubles", 1, NULL, 'k'}, {"fleet", 0, NULL, 'F'}, {"hosts", 1, NULL, 'H'}, {0}};
	struct options o = {.seeds = 1000, .from = 1, .jobs = 1, .run = life_run};
	int c, i;

	libc_init();
	while ((c = getopt_long(argc, argv, "", names, &i)) != -1) {
		uint64_t max = c == 'n' ? MAX_SEEDS : c == 'h' ? MAX_HOURS : UINT64_MAX, n = 0;

		if (optarg)
			n = read_number(names[i].name, optarg, c == 'n', max);
		if (c == 'n')
			o.seeds = n;
		else if (c == 'f')
			o.from = n;
		else if (c == 'j')
			o.jobs = n < 1 ? 1 : n > MAX_JOBS ? MAX_JOBS : n;
		else if (c == 'h')
			o.life.trouble_s = n * 3600;
		else if (c == 't')
			o.twice = true;
		else if (c == 'u')
			o.until_flaw = true;
		else if (c == 's') {
			o.one = true;
			o.from = n;
		} else if (c == 'v')
			world.print = true;
		else if (c == 'k')
			o.life.troubles = n;
		else if (c == 'F')
			o.run = fleet_run;
		else if (c == 'H')
			o.life.hosts = n > FLEET_MAX_HOSTS ? FLEET_MAX_HOSTS : n;
		else
			return 2;
	}
	return o.one ? live_seed(&o) : live_many(&o);
}

/*
 * The program: options, and which runs they ask for.
 *
 * What surprises: the runs follow each other, so that each one's speed and memory are its own.
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chart.h"
#include "check.h"
#include "report.h"

#define MAX_AGENTS 4000000u
#define MAX_POLICIES 16

struct options {
	uint32_t agents;
	uint64_t seed;
	const struct scenario *scenario; /* NULL = all */
	const struct policy *policy;     /* NULL = all */
	const char *out;                 /* NULL = no files */
	struct policy ours;              /* with the seeded bug */
	bool check, broken;
};

static const char help[] =
	"Usage: fleet [OPTION]...\n"
	"Simulates a fleet of agents (the real trigger, wheel, supervisor, dispatcher and shaper)\n"
	"on a virtual clock against a modelled server. Same seed, same run.\n\n"
	"  --agents N       size of the fleet, 100 to 4000000 (100000; with --check 10000)\n"
	"  --seed S         (1)\n"
	"  --scenario NAME  only this one\n"
	"  --policy NAME    only this one\n"
	"  --out DIR        also DIR/fleet.csv and DIR/SCENARIO.svg\n"
	"  --check          are the targets met? TAP; exit 1 when not\n"
	"  --break BUG      seed a bug into ours: jitter (no jitter, no spread), hold (no "
	"shaper),\n"
	"                   limit (holds grow beyond the interval), quiet (no pull after a "
	"connection "
	"to a\n"
	"                   relay)\n"
	"  --help\n";

static int usage(const char *what, const char *value)
{
	fprintf(stderr, "fleet: %s '%s'; see fleet --help\n", what, value);
	return 64;
}

static void print_names(void)
{
	printf("\nScenarios:\n");
	for (size_t i = 0; i < scenario_count; i++)
		printf("  %-18s %s\n", scenarios[i].name, scenarios[i].title);
	printf("\nPolicies:\n");
	for (size_t i = 0; i < policy_count; i++)
		printf("  %-18s %s\n", policies[i].name, policies[i].title);
}

static bool parse_number(const char *text, uint64_t least, uint64_t most, uint64_t *ret)
{
	char *end;
	uint64_t value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || end == text || *end || text[0] == '-' || value < least || value > most)
		return false;
	*ret = value;
	return true;
}

/* One option. 0, or the exit code. */
static int take(struct options *o, int option, const char *value)
{
	uint64_t number;

	switch (option) {
	case 'a':
		if (!parse_number(value, 100, MAX_AGENTS, &number))
			return usage("not 100 to 4000000 agents:", value);
		o->agents = (uint32_t)number;
		return 0;
	case 's':
		return parse_number(value, 0, UINT64_MAX, &o->seed) ? 0 : usage("no seed:", value);
	case 'S':
		o->scenario = scenario_find(value);
		return o->scenario ? 0 : usage("no such scenario:", value);
	case 'p':
		o->policy = policy_find(value);
		return o->policy ? 0 : usage("no such policy:", value);
	case 'b':
		o->broken = check_break(&o->ours, value);
		return o->broken ? 0 : usage("no such bug:", value);
	case 'o':
		o->out = value;
		return 0;
	case 'c':
		o->check = true;
		return 0;
	}
	return 64;
}

static int parse(int argc, char **argv, struct options *o)
{
	static const struct option table[] = {
		{"agents", required_argument, NULL, 'a'},
		{"seed", required_argument, NULL, 's'},
		{"scenario", required_argument, NULL, 'S'},
		{"policy", required_argument, NULL, 'p'},
		{"out", required_argument, NULL, 'o'},
		{"check", no_argument, NULL, 'c'},
		{"break", required_argument, NULL, 'b'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int option, r = 0;

	while (r == 0 && (option = getopt_long(argc, argv, "", table, NULL)) != -1) {
		if (option == 'h') {
			fputs(help, stdout);
			print_names();
			exit(0);
		}
		r = take(o, option, optarg);
	}
	if (r == 0 && optind < argc)
		return usage("not expected:", argv[optind]);
	if (!o->agents)
		o->agents = o->check ? 10000 : FLEET_UNIT;
	return r;
}

/* All policies of one scenario. 0 or -errno. */
static int run_scenario(const struct options *o, const struct scenario *s, FILE *csv, bool first)
{
	struct result results[MAX_POLICIES];
	char path[4096];
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; i < policy_count && n < MAX_POLICIES && r == 0; i++) {
		const struct policy *p = &policies[i];

		if (o->policy && o->policy != p)
			continue;
		if (p == policy_find("ours"))
			p = &o->ours;
		r = simulate(
			s, p, o->agents, o->seed, o->agents >= FLEET_THREADS_FROM, &results[n]);
		n += r == 0;
	}
	if (r == 0) {
		report_text(stdout, results, n);
		if (first)
			printf("  (memory: %llu bytes per agent)\n",
				(unsigned long long)results[0].bytes);
	}
	if (r == 0 && csv) {
		report_csv(csv, results, n, first);
		snprintf(path, sizeof(path), "%s/%s.svg", o->out, s->name);
		r = chart_write(path, results, n);
	}
	while (n > 0)
		result_fini(&results[--n]);
	return r;
}

static int run(const struct options *o)
{
	char path[4096];
	FILE *csv = NULL;
	bool first = true;
	int r = 0;

	if (o->out) {
		snprintf(path, sizeof(path), "%s/fleet.csv", o->out);
		if (mkdir(o->out, 0777) && errno != EEXIST)
			return -errno;
		csv = fopen(path, "we");
		if (!csv)
			return -errno;
	}
	report_legend(stdout, o->agents, o->seed);
	for (size_t i = 0; i < scenario_count && r == 0; i++) {
		if (o->scenario && o->scenario != &scenarios[i])
			continue;
		r = run_scenario(o, &scenarios[i], csv, first);
		first = false;
	}
	if (csv && fclose(csv) && r == 0)
		r = -errno;
	return r;
}

/* The C library reads it when the program begins, so it begins again. What each agent allocates is
 * spread over much memory, which is slow to reach in small pages. */
static void use_huge_pages(char **argv)
{
	if (getenv("GLIBC_TUNABLES") || setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1", 1))
		return;
	execv("/proc/self/exe", argv);
}

int main(int argc, char **argv)
{
	struct options o = {.seed = 1, .ours = *policy_find("ours")};
	int r = parse(argc, argv, &o);

	if (r)
		return r;
	if (o.agents >= FLEET_THREADS_FROM)
		use_huge_pages(argv);
	if (o.check)
		r = check(stdout, &o.ours, o.agents, o.seed);
	else
		r = run(&o);
	if (r < 0)
		fprintf(stderr, "fleet: %s\n", strerror(-r));
	return r != 0;
}

/*
 * Runs the model: the table over each combination of facts, all worlds of each profile, long lives
 * with all features, seeded bugs.
 *
 *   core_model            prints TAP without numbers; false when something is not ok
 *   core_model lives      the lives alone
 *   core_model flaw       the same without lives and seeded bugs, up to the first flaw
 *   core_model table      prints facts and rows, for tests/model/core_same.py
 *   core_model answers N  writes two bytes for each combination of facts: what the table answers,
 *                         with the seeded bug N or none (0)
 */
#include "core.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct profile profiles[] = {
	{"heal", "AB", NATURE_NONE, false, false, DRIFT_HEAL,
		CAN_CHANGE_FILES | CAN_PIN | CAN_CRASH},
	{"settings", "AB", NATURE_NONE, false, false, DRIFT_LEAVE, CAN_PIN | CAN_RETIRE},
	{"report", "A", NATURE_NONE, false, false, DRIFT_REPORT,
		CAN_CHANGE_FILES | CAN_CRASH | CAN_RETIRE},
	{"probe", "AX", NATURE_HARMFUL, true, false, DRIFT_LEAVE, CAN_ROLL_BACK | CAN_CRASH},
	{"force", "AX", NATURE_HARMFUL, true, false, DRIFT_LEAVE, CAN_FORCE},
	{"pinned", "AX", NATURE_HARMFUL, true, false, DRIFT_LEAVE, CAN_PIN | CAN_CRASH},
	{"rules", "AX", NATURE_REJECTED, false, false, DRIFT_LEAVE,
		CAN_FORCE | CAN_CHANGE_RULES | CAN_CRASH},
	{"rollout", "AB", NATURE_NONE, false, true, DRIFT_LEAVE,
		CAN_PIN | CAN_ROLL_OUT | CAN_CRASH},
	{"revisions", "AB", NATURE_REVISIONS, false, false, DRIFT_LEAVE,
		CAN_ROLL_BACK | CAN_PIN | CAN_CRASH},
	{"replay", "ABX", NATURE_REVISIONS, false, false, DRIFT_LEAVE, CAN_PIN},
	{"overrides", "A", NATURE_NONE, false, false, DRIFT_LEAVE,
		CAN_OVERRIDE | CAN_PIN | CAN_CRASH},
	{"all of probe", "AX", NATURE_HARMFUL, true, false, DRIFT_LEAVE,
		CAN_FORCE | CAN_ROLL_BACK | CAN_PIN | CAN_CRASH},
	{"all of overrides", "AB", NATURE_NONE, false, false, DRIFT_LEAVE,
		CAN_OVERRIDE | CAN_CRASH},
};

/* All features at once are too many worlds. */
static const struct profile lives[] = {
	{"harmful", "ABX", NATURE_HARMFUL, true, true, DRIFT_HEAL, CAN_ALL},
	{"rejected", "ABX", NATURE_REJECTED, true, true, DRIFT_REPORT, CAN_ALL},
	{"revisions", "ABX", NATURE_REVISIONS, true, true, DRIFT_LEAVE, CAN_ALL},
};
#define LIFE_EVENTS 30000

static bool all_good = true;
static struct sightings sightings;

/* Begins a result; the caller ends the line. */
static void say_result(bool good, const char *what)
{
	all_good = all_good && good;
	printf("%s - core: %s", good ? "ok" : "not ok", what);
}

/* ---- the table ---- */

/* The next combination of facts, the last fact first; false after the last. */
static bool next_situation(struct situation *s)
{
	for (size_t i = SITUATION_FACTS; i-- > 0;) {
		unsigned value = situation_value(s, &situation_facts[i]) + 1;

		situation_set(s, &situation_facts[i], value % situation_facts[i].count);
		if (value < situation_facts[i].count)
			return true;
	}
	return false;
}

static void check_table(void)
{
	unsigned long counts[ROWS] = {0}, all = 0;
	struct situation s = {0};
	const char *flaw = NULL;

	do {
		struct decision d = decide(&s);

		counts[d.row]++;
		all++;
		if (!flaw)
			flaw = rules_of_table(&s, d);
	} while (next_situation(&s));
	say_result(!flaw, "the table keeps its rules over each combination of facts");
	printf(" (%lu)\n", all);
	if (flaw)
		printf("# %s\n", flaw);
	for (unsigned row = 0; row < ROWS; row++)
		printf("# %-24s %6lu\n", decide_row_name((enum decide_row)row), counts[row]);
}

/* ---- walks ---- */

static void print_path(const struct walk_result *r)
{
	printf("# %s, after %zu worlds; by %u events%s\n", r->flaw, r->worlds, r->events,
		r->events > r->path_length ? ", of which the last are:" : ":");
	for (unsigned i = 0; i < r->path_length; i++)
		printf("#   %s\n", event_name(r->path[i]));
	if (r->last != EVENTS)
		printf("#   %s\n", event_name(r->last));
}

static void print_rests(const struct walk_result *r)
{
	printf("# K: comes to rest in %d endings, after a tick in %d, with nothing but faults in "
	       "%d\n",
		r->rest, r->rest_after_tick, r->rest_of_faults);
}

/* All profiles, or up to the first that is not ok. */
static void check_profiles(bool stops)
{
	size_t worlds = 0, transitions = 0;

	for (size_t i = 0; i < COUNT(profiles) && (all_good || !stops); i++) {
		struct walk_result r = walk_all(&profiles[i], &sightings);

		worlds += r.worlds;
		transitions += r.transitions;
		say_result(!r.flaw, "no flaw in any world of profile ");
		printf("%s (%zu worlds, %zu transitions, %zu situations)\n", profiles[i].name,
			r.worlds, r.transitions, sightings.last);
		if (r.flaw)
			print_path(&r);
		print_rests(&r);
	}
	printf("# all profiles: %zu worlds, %zu transitions, %zu situations\n", worlds, transitions,
		sightings.all);
}

/* $PULLET_SEED if set, else the clock. */
static uint64_t choose_seed(void)
{
	const char *given = getenv("PULLET_SEED");
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return given ? strtoull(given, NULL, 10)
		     : (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void check_lives(void)
{
	uint64_t seed = choose_seed();

	printf("# PULLET_SEED=%" PRIu64 " repeats these lives\n", seed);
	for (size_t i = 0; i < COUNT(lives); i++) {
		struct walk_result r = walk_life(&lives[i], seed + i, LIFE_EVENTS, &sightings);

		say_result(!r.flaw, "no flaw in a life at random, ");
		printf("%s (%d events, %zu worlds, %zu situations)\n", lives[i].name, LIFE_EVENTS,
			r.worlds, sightings.last);
		print_rests(&r);
		if (r.flaw)
			print_path(&r);
	}
	printf("# with the lives: %zu situations\n", sightings.all);
}

/* ---- seeded bugs ---- */

static const struct profile *find_profile(const char *name)
{
	for (size_t i = 0; i < COUNT(profiles); i++)
		if (!strcmp(profiles[i].name, name))
			return &profiles[i];
	return NULL;
}

static void check_seeds(void)
{
	for (size_t i = 0; i < SEEDS; i++) {
		const struct profile *p = find_profile(seeds[i].profile);
		struct sightings ignored = {0};
		struct walk_result r = {0};

		if (p) {
			seed_plant(&seeds[i]);
			r = walk_all(p, &ignored);
			seed_plant(NULL);
		}
		say_result(r.flaw, "finds seeded bug ");
		printf("%zu: %s\n", i + 1, seeds[i].text);
		if (r.flaw)
			printf("# %s (%s, %zu worlds, %u events)\n", r.flaw, seeds[i].profile,
				r.worlds, r.events);
	}
}

/* ---- for the comparison ---- */

static void print_table(void)
{
	for (size_t i = 0; i < SITUATION_FACTS; i++) {
		printf("fact\t%s", situation_facts[i].name);
		for (unsigned value = 0; value < situation_facts[i].count; value++)
			printf("\t%s", situation_facts[i].values[value]);
		putchar('\n');
	}
	for (unsigned row = ROW_NONE + 1; row < ROWS; row++) {
		struct situation s = {.request = row == ROW_OPERATOR_ROLLS_BACK ? REQUEST_ROLL_BACK
										: REQUEST_OVERRIDES,
			.saved = SAVED_WANTED,
			.current = CURRENT_HARMFUL,
			.older = OLDER_THERE,
			.latest = LATEST_NEW,
			.overrides = OVERRIDES_OTHER,
			.settings = SETTINGS_OTHER,
			.place = PLACE_CHANGED,
			.resting = ~(1u << row)};
		struct decision d = decide(&s);

		printf("row\t%s\t%s\t%s\n", decide_row_name(d.row), decide_action_name(d.action),
			decide_origin_name(d.origin));
	}
	for (size_t i = 0; i < SEEDS; i++)
		if (seeds[i].bug <= BUG_HELD_IS_FAILURE)
			printf("seed\t%zu\t%s\n", i + 1, seeds[i].text);
}

/* What the table answers, then all rows that hold: what failed rests, and the next is asked for. */
static void write_answer(const struct situation *about)
{
	struct situation s = *about;
	struct decision d = seeded_decide(&s);
	unsigned first = d.row | (unsigned)seeded_may_commit(&s, ORIGIN_PULL) << 4 |
			 (unsigned)seeded_outcome(&s) << 5 |
			 (unsigned)seeded_may_commit(&s, ORIGIN_PROBE) << 7;
	unsigned hold = 0;

	for (unsigned n = 0; d.row && n < ROWS; n++) {
		hold |= 1u << (d.row - 1);
		s.resting |= 1u << d.row;
		d = seeded_decide(&s);
	}
	putchar((int)first);
	putchar((int)hold);
}

static void write_answers(unsigned long seed)
{
	struct situation s = {0};

	if (seed)
		seed_plant(&seeds[seed - 1]);
	do
		write_answer(&s);
	while (next_situation(&s));
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "table")) {
		print_table();
	} else if (argc == 3 && !strcmp(argv[1], "answers")) {
		unsigned long seed = strtoul(argv[2], NULL, 10);

		if (seed > SEEDS)
			return 2;
		write_answers(seed);
	} else if (argc == 2 && !strcmp(argv[1], "lives")) {
		check_lives();
	} else if (argc == 2 && !strcmp(argv[1], "flaw")) {
		check_table();
		if (all_good)
			check_profiles(true);
	} else if (argc == 1) {
		check_table();
		check_profiles(false);
		check_lives();
		check_seeds();
	} else {
		return 2;
	}
	return all_good ? 0 : 1;
}

/*
 * The soak's reader in C: NAME... of configs, in $PULLET_RUNTIME_DIR. Computes the checksum of each
 * version that it sees, and looks that neither generation nor number goes back. Prints a line
 * "wrong: ..." for each flaw, and "LANGUAGE: N versions" when the last version of all was there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pullet.h"

#define MOST 32
#define WAIT_MS 20

struct config {
	const char *name;
	struct pullet *p;
	uint64_t generation;
	long n;
	bool ended;
};

static const char *const keys[] = {"n", "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8", "k9",
	"k10", "k11", "pad", "end"};
static long versions;

static uint32_t add_text(uint32_t sum, const char *text)
{
	for (; *text; text++)
		sum = (sum ^ (unsigned char)*text) * 16777619u;
	return (sum ^ '\n') * 16777619u;
}

static void check_version(struct config *c)
{
	uint32_t sum = 2166136261u;
	uint64_t generation = pullet_generation(c->p);
	long n = strtol(pullet_get_string(c->p, "n", "-1"), NULL, 10);
	const char *said = pullet_get_string(c->p, "sum", "none");

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		sum = add_text(sum, pullet_get_string(c->p, keys[i], ""));
	if (strtoul(said, NULL, 10) != sum)
		printf("wrong: %s, version %ld: the sum is %s, of what is there %u\n", c->name, n,
			said, sum);
	if (generation < c->generation || n < c->n)
		printf("wrong: %s went back from version %ld of generation %llu to %ld of %llu\n",
			c->name, c->n, (unsigned long long)c->generation, n,
			(unsigned long long)generation);
	c->generation = generation;
	c->n = n;
	c->ended = strcmp(pullet_get_string(c->p, "end", ""), "yes") == 0;
	versions++;
}

static void move_on(struct config *c, int r)
{
	if (r < 0)
		printf("wrong: %s: %s\n", c->name, pullet_strerror(r));
	else if (r)
		check_version(c);
}

int main(int argc, char **argv)
{
	struct config configs[MOST] = {0};
	int count = argc - 1, ended = 0, r;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 0; i < count && i < MOST; i++) {
		configs[i].name = argv[i + 1];
		r = pullet_open(configs[i].name, PULLET_WAIT_FIRST, &configs[i].p);
		if (r < 0)
			return printf("wrong: %s: %s\n", configs[i].name, pullet_strerror(r)), 1;
		if (pullet_generation(configs[i].p))
			check_version(&configs[i]);
	}
	for (int turn = 0; ended < count; turn = (turn + 1) % count) {
		move_on(&configs[turn], pullet_wait(configs[turn].p, WAIT_MS));
		ended = 0;
		for (int i = 0; i < count; i++) {
			move_on(&configs[i], pullet_refresh(configs[i].p));
			ended += configs[i].ended;
		}
	}
	for (int i = 0; i < count; i++)
		pullet_close(configs[i].p);
	printf("C: %ld versions\n", versions);
	return 0;
}

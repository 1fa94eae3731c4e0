/*
 * Randomness for the tests that compare a module with a model, and checks that say how to repeat
 * a failure. The seed is $PULLET_SEED if set, else the clock; model_random_start() prints it.
 * Included after <cmocka.h>. One test program, one thread.
 */
#ifndef PULLET_MODEL_RANDOM_H
#define PULLET_MODEL_RANDOM_H

#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static struct {
	uint64_t seed, state, step;
	const char *part; /* what the steps are part of; "" = the whole */
} model_random = {.part = ""};

/* Begins the sequence anew, from the seed. */
static inline void model_random_start(void)
{
	const char *given = getenv("PULLET_SEED");
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	model_random.seed = given ? strtoull(given, NULL, 10)
				  : (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	model_random.state = model_random.seed;
	model_random.step = 0;
	print_message("# PULLET_SEED=%" PRIu64 " repeats this\n", model_random.seed);
}

/* splitmix64 */
static inline uint64_t random_bits(void)
{
	uint64_t z = model_random.state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static inline uint64_t random_below(uint64_t limit)
{
	return random_bits() % limit;
}

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			fail_msg("%s: PULLET_SEED=%" PRIu64 ", %s step %" PRIu64, #condition,      \
				model_random.seed, model_random.part, model_random.step);          \
	} while (0)

#endif

/*
 * The simulator's randomness: splitmix64, one stream for a whole run.
 *
 * What surprises: nothing else may be random, neither addresses nor the clock, or the same seed
 * would not give the same run.
 */
#ifndef FLEET_RANDOM_H
#define FLEET_RANDOM_H

#include <stdint.h>

static inline uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* In [0, bound]. The modulus is small against 2^64: its bias does not show. */
static inline uint64_t random_upto(uint64_t *state, uint64_t bound)
{
	return bound ? random_next(state) % (bound + 1) : 0;
}

#endif

/*
 * What the benchmarks share: a clock, fixed random numbers, the median, and how figures and
 * targets are printed.
 *
 * Threads: all of it from any thread. A target that is missed is only printed: figures of time are
 * never asserted.
 */
#ifndef PULLET_BENCH_H
#define PULLET_BENCH_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline uint64_t bench_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* splitmix64: the same numbers from the same seed, on every machine. */
static inline uint64_t bench_random(uint64_t *seed)
{
	uint64_t z = *seed += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static inline int bench_by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts v; its value at this share of the way from the least (0) to the greatest (1). */
static inline double bench_quantile(double *v, size_t n, double share)
{
	qsort(v, n, sizeof(*v), bench_by_value);
	return v[(size_t)((double)(n - 1) * share)];
}

static inline double bench_median(double *v, size_t n)
{
	return bench_quantile(v, n, 0.5);
}

static inline void bench_head(const char *name, const char *const *columns, size_t n)
{
	printf("\n%-30s", name);
	for (size_t i = 0; i < n; i++)
		printf(" %11s", columns[i]);
	printf("\n");
}

/* A figure that is not a number is printed as a dash. */
static inline void bench_row(const char *name, const double *figures, size_t n)
{
	printf("%-30s", name);
	for (size_t i = 0; i < n; i++)
		if (isnan(figures[i]))
			printf(" %11s", "-");
		else
			printf(" %11.1f", figures[i]);
	printf("\n");
	fflush(stdout);
}

/* One line for a target: at most `limit`. run.py reads these lines. */
static inline void bench_target(const char *what, double figure, double limit, const char *unit)
{
	printf("%s  %s: %.1f %s (target: at most %.1f)\n", figure <= limit ? "PASS" : "MISS", what,
		figure, unit, limit);
}

/* The same of a ratio to something that was measured in the same run. */
static inline void bench_ratio(const char *what, double ratio, double limit)
{
	printf("%s  %s: %.2f x (target: at most %.2f)\n", ratio <= limit ? "PASS" : "MISS", what,
		ratio, limit);
}

/* The same of what should be high. */
static inline void bench_least(const char *what, double figure, double limit, const char *unit)
{
	printf("%s  %s: %.2f %s (target: at least %.2f)\n", figure >= limit ? "PASS" : "MISS", what,
		figure, unit, limit);
}

#endif

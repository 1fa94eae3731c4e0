/*
 * The control page as it lies in the file: what the agent writes and libpullet reads. FORMAT.md has
 * the meaning of each field, and the order in which they are written and read.
 */
#ifndef PULLET_PAGE_H
#define PULLET_PAGE_H

#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#define PAGE_SIZE 4096u
#define PAGE_MAGIC "PULGENP\1" /* 8 bytes, without a NUL */

struct page {
	char magic[8];
	_Atomic uint64_t generation;
	_Atomic uint32_t futex;
	_Atomic uint32_t withdrawn;
	_Atomic uint64_t confirmed_ms;
	_Atomic uint64_t stale_ms;
	_Atomic uint64_t verified_ino; /* of the image with that digest; 0 = of none */
	_Atomic uint64_t verified_ctime_ns;
	_Atomic uint64_t verified_digest;
};

/* Nanoseconds since 1970. */
static inline uint64_t page_time_ns(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * 1000000000 + (uint64_t)t->tv_nsec;
}

#endif

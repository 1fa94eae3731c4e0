/*
 * The control page as it lies in the file: what the agent writes and libpullet reads. FORMAT.md has
 * the meaning of each field, and the order in which they are written and read.
 */
#ifndef PULLET_PAGE_H
#define PULLET_PAGE_H

#include <stdatomic.h>
#include <stdint.h>

#define PAGE_SIZE 4096u
#define PAGE_MAGIC "PULGENP\1" /* 8 bytes, without a NUL */

struct page {
	char magic[8];
	_Atomic uint64_t generation;
	_Atomic uint32_t futex;
	_Atomic uint32_t withdrawn;
	_Atomic uint64_t confirmed_ms;
	_Atomic uint64_t stale_ms;
};

#endif

/*
 * FNV-1a, 64 bits: texts that are only compared with themselves, and order that differs by host.
 * Public domain, by Fowler, Noll and Vo. Not for anything an enemy can choose.
 */
#ifndef PULLET_HASH_H
#define PULLET_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_START UINT64_C(0xcbf29ce484222325)

/* Goes on from `hash` (HASH_START at first) over len bytes. */
static inline uint64_t hash_bytes(uint64_t hash, const void *data, size_t len)
{
	const unsigned char *p = data;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
	return hash;
}

#endif

/*
 * What this process uses, as the kernel counts it.
 *
 * Threads: any. Errors: what cannot be read is -1. No I/O except /proc.
 */
#ifndef PULLET_USAGE_H
#define PULLET_USAGE_H

#include <stdint.h>

#include "base/sys.h"

struct usage {
	int64_t cpu_ms; /* without children */
	int64_t resident_bytes, virtual_bytes;
	int64_t open_fds, max_fds; /* descriptors; the limit in force */
};

void usage_read(const struct sys *sys, struct usage *ret_usage);

#endif

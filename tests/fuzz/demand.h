/* Shared by the fuzz targets: libFuzzer's entry, and a condition that must hold. */
#ifndef PULLET_FUZZ_DEMAND_H
#define PULLET_FUZZ_DEMAND_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void demand(bool condition)
{
	if (!condition)
		abort();
}

#endif

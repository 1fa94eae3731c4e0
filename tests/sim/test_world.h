/* The least world that the disk's tests need: seeded streams, a hash of the trace, and one call
 * that fails or does not return. */
#ifndef SIM_TEST_WORLD_H
#define SIM_TEST_WORLD_H

#include <setjmp.h>

#include "world.h"

extern struct test_world {
	enum world_call call; /* the next of this kind */
	int error;            /* fails with this; 0 = none */
	jmp_buf *end;         /* comes back here instead; NULL = none */
	uint64_t last_call;   /* counted by world.calls: jumps there, too; 0 = none */
	uint64_t memory_left; /* allocations before there is none */
	char last[200];       /* line of the trace */
} test_world;

#endif

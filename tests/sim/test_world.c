/* A world that is as small as can be. */
#include "test_world.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct world world;
struct test_world test_world;

void world_begin(uint64_t seed)
{
	memset(&world, 0, sizeof(world));
	memset(&test_world, 0, sizeof(test_world));
	test_world.memory_left = UINT64_MAX;
	world.now_us = 1000000;
	for (int i = 0; i < STREAMS; i++)
		world.streams[i] = seed * STREAMS + (uint64_t)i;
}

uint64_t world_random(enum world_stream s, uint64_t bound)
{
	uint64_t z = (world.streams[s] += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	z ^= z >> 31;
	return bound == UINT64_MAX ? z : z % (bound + 1);
}

bool world_once_in(enum world_stream s, uint64_t n)
{
	return n && world_random(s, n - 1) == 0;
}

void world_trace(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(test_world.last, sizeof(test_world.last), format, args);
	va_end(args);
	for (const char *p = test_world.last; *p; p++)
		world.trace_hash = (world.trace_hash ^ (unsigned char)*p) * UINT64_C(1099511628211);
	world.traced++;
}

void world_trace_text(const char *line, size_t len)
{
	world_trace("%.*s", (int)len, line);
}

int world_call(enum world_call call, const char *path)
{
	(void)path;
	world.calls++;
	if (test_world.end && (world.calls == test_world.last_call ||
				      (!test_world.last_call && call == test_world.call)))
		longjmp(*test_world.end, 1);
	if (test_world.error && call == test_world.call) {
		int error = test_world.error;

		test_world.error = 0;
		return error;
	}
	return 0;
}

bool world_has_memory(void)
{
	if (test_world.memory_left == 0)
		return false;
	test_world.memory_left--;
	return true;
}

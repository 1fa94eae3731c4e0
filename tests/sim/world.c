/*
 * The world's clock, events, randomness and trace. Surprising: the trace is a hash of its lines;
 * they are formatted only where somebody reads them, or else their arguments are hashed as text.
 */
#include "tests/sim/world.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "tests/fleet/random.h"

#define BEGIN_US (1000u * 1000000ull)           /* a host that has run for a while */
#define BEGIN_WALL_US (1700000000ull * 1000000) /* 2023-11-14 */
#define MAX_EVENTS 65536

struct world world;
struct world_faults world_faults;

struct event {
	uint64_t due_us, order, number;
	world_event event;
	void *arg;
};

static struct {
	struct event heap[MAX_EVENTS];
	size_t count;
	uint64_t order;
} events;

void world_begin(uint64_t seed)
{
	bool print = world.print;

	memset(&world, 0, sizeof(world));
	memset(&world_faults, 0, sizeof(world_faults));
	world.print = print;
	world.now_us = BEGIN_US;
	world.wall_offset_us = (int64_t)(BEGIN_WALL_US - BEGIN_US);
	world.trace_hash = HASH_START;
	for (unsigned i = 0; i < STREAMS; i++) {
		uint64_t state = seed * STREAMS + i;

		world.streams[i] = random_next(&state);
	}
	events.count = 0;
	events.order = 0;
}

uint64_t world_random(enum world_stream s, uint64_t bound)
{
	return bound == UINT64_MAX ? random_next(&world.streams[s])
				   : random_upto(&world.streams[s], bound);
}

bool world_once_in(enum world_stream s, uint64_t n)
{
	return n && world_random(s, n - 1) == 0;
}

void world_trace_text(const char *line, size_t len)
{
	world.trace_hash = hash_bytes(world.trace_hash, &world.now_us, sizeof(world.now_us));
	world.trace_hash = hash_bytes(world.trace_hash, line, len);
	world.traced++;
	if (world.print)
		fprintf(stdout, "%10.3f %s%s%.*s\n", (double)(world.now_us - BEGIN_US) / 1e6,
			world.who ? world.who : "", world.who ? " " : "", (int)len, line);
}

void world_trace(const char *format, ...)
{
	char line[512];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (len >= (int)sizeof(line))
		len = sizeof(line) - 1;
	world_trace_text(line, (size_t)len);
}

/* ---- events: a binary heap ---- */

static bool is_before(const struct event *a, const struct event *b)
{
	return a->due_us != b->due_us ? a->due_us < b->due_us : a->order < b->order;
}

void world_at(uint64_t due_us, world_event event, void *arg, uint64_t number)
{
	size_t i = events.count++, up;
	struct event e = {
		due_us > world.now_us ? due_us : world.now_us, events.order++, number, event, arg};

	if (i == MAX_EVENTS) {
		fprintf(stderr, "more than %d events wait\n", MAX_EVENTS);
		abort();
	}
	for (; i > 0 && is_before(&e, &events.heap[up = (i - 1) / 2]); i = up)
		events.heap[i] = events.heap[up];
	events.heap[i] = e;
}

static struct event take_first(void)
{
	struct event first = events.heap[0], last = events.heap[--events.count];
	size_t i = 0, next;

	while ((next = 2 * i + 1) < events.count) {
		if (next + 1 < events.count &&
			is_before(&events.heap[next + 1], &events.heap[next]))
			next++;
		if (!is_before(&events.heap[next], &last))
			break;
		events.heap[i] = events.heap[next];
		i = next;
	}
	events.heap[i] = last;
	return first;
}

void world_run(uint64_t until_us)
{
	while (events.count && events.heap[0].due_us <= until_us) {
		struct event e = take_first();

		if (e.due_us > world.now_us)
			world.now_us = e.due_us;
		e.event(e.arg, e.number);
	}
	if (until_us > world.now_us)
		world.now_us = until_us;
}

/* ---- what can fail ---- */

static const int errors[CALL_KINDS][3] = {
	[CALL_OPEN] = {EMFILE, EIO, ENOMEM},
	[CALL_READ] = {EIO, EIO, EIO},
	[CALL_WRITE] = {ENOSPC, EIO, EDQUOT},
	[CALL_FSYNC] = {EIO, ENOSPC, EDQUOT},
	[CALL_CLOSE] = {EIO, EIO, EIO},
	[CALL_STAT] = {EIO, ENOMEM, EIO},
	[CALL_LIST] = {EIO, ENOMEM, EMFILE},
	[CALL_LINK] = {EIO, ENOMEM, EIO},
	[CALL_RENAME] = {EIO, ENOSPC, EDQUOT},
	[CALL_UNLINK] = {EIO, EROFS, EIO},
	[CALL_MKDIR] = {ENOSPC, EIO, EDQUOT},
	[CALL_SYMLINK] = {ENOSPC, EIO, EDQUOT},
	[CALL_CHMOD] = {EIO, EROFS, EPERM},
	[CALL_CHOWN] = {EIO, EPERM, EIO},
	[CALL_MAP] = {ENOMEM, ENOMEM, ENFILE},
	[CALL_WAKE] = {0, 0, 0},
	[CALL_LOCK] = {EIO, ENOLCK, EIO},
	[CALL_KILL] = {0, 0, 0},
};

static const bool changes_disk[CALL_KINDS] = {
	[CALL_WRITE] = true,
	[CALL_FSYNC] = true,
	[CALL_RENAME] = true,
	[CALL_UNLINK] = true,
	[CALL_MKDIR] = true,
	[CALL_SYMLINK] = true,
	[CALL_CHMOD] = true,
};

int world_call(enum world_call call, const char *path)
{
	int error;

	(void)path;
	world.changes += changes_disk[call];
	if (++world.calls == world_faults.last_call ||
		(changes_disk[call] && world.changes == world_faults.last_change))
		world_faults.died();
	if (!world_once_in(STREAM_FAULT, world_faults.one_in[call]))
		return 0;
	error = errors[call][world_random(STREAM_FAULT, 2)];
	world.failed_calls += error != 0;
	return error;
}

bool world_has_memory(void)
{
	uint64_t n = ++world.allocations;
	bool has = !world_once_in(STREAM_FAULT, world_faults.memory_one_in) &&
		   (!world_faults.memory_first || n < world_faults.memory_first ||
			   n >= world_faults.memory_first + world_faults.memory_count);

	world.failed_allocations += !has;
	return has;
}

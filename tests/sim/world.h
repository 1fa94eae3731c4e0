/*
 * One simulated world: a clock that jumps from moment to moment, randomness from one seed, a trace
 * of all that happens, and the point where every system call of a simulated process comes by.
 *
 * One world at a time, one thread. Each kind of decision draws from a stream of its own, so that
 * one call more of one kind shifts no decision of another.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum world_stream {
	STREAM_LIFE,     /* what this life is made of, and when its process ends */
	STREAM_SERVER,   /* what servers have and say, and when */
	STREAM_NETWORK,  /* delays, losses */
	STREAM_PUSH,     /* messages and what becomes of them */
	STREAM_DISK,     /* short writes, what a power cut leaves */
	STREAM_FAULT,    /* which calls and allocations fail */
	STREAM_PROGRAM,  /* what checks, reloads and probes say, and when */
	STREAM_OPERATOR, /* requests, edits of files, SIGHUP */
	STREAM_AGENT,    /* the agent's own getrandom() */
	STREAMS
};

/* The system calls that can fail or be a process's last one. */
enum world_call {
	CALL_OPEN,
	CALL_READ,
	CALL_WRITE,
	CALL_FSYNC,
	CALL_CLOSE,
	CALL_STAT,
	CALL_LIST,
	CALL_LINK, /* readlink */
	CALL_RENAME,
	CALL_UNLINK,
	CALL_MKDIR,
	CALL_SYMLINK,
	CALL_CHMOD,
	CALL_CHOWN,
	CALL_MAP,
	CALL_WAKE, /* futex */
	CALL_LOCK,
	CALL_KILL,
	CALL_KINDS
};

extern struct world {
	uint64_t now_us;        /* monotonic, counts suspend */
	int64_t wall_offset_us; /* wall clock = now_us + this */
	uint64_t streams[STREAMS];
	uint64_t trace_hash;
	uint64_t traced; /* lines */
	bool print;      /* the trace goes to standard output, too */
	uint64_t calls;  /* made by the agent in this life */
	uint64_t changes;
	const char *who; /* whose code runs, printed before its lines; NULL = nobody's */
	uint64_t allocations;
	uint64_t failed_calls, failed_allocations;
} world;

/* Begins a world: all streams from this seed. */
void world_begin(uint64_t seed);
static inline uint64_t world_now_us(void)
{
	return world.now_us;
}
static inline uint64_t world_now_ms(void)
{
	return world.now_us / 1000;
}
/* A random number in [0, bound] of that stream. */
uint64_t world_random(enum world_stream s, uint64_t bound);
/* True once in n times; never where n is 0. */
bool world_once_in(enum world_stream s, uint64_t n);
/* Adds a line to the trace, with its moment before it. */
void world_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- what happens when ---- */

typedef void (*world_event)(void *arg, uint64_t number);
/* Calls event at that moment, in the order of the calls where moments are the same. Events cannot
 * be cancelled: the number tells a late one. Forgotten when the next world begins. */
void world_at(uint64_t due_us, world_event event, void *arg, uint64_t number);
/* Lets time pass until that moment, event by event. */
void world_run(uint64_t until_us);

/* ---- what can fail ---- */

struct world_faults {
	/* The call that is the last one, counted by world.calls; 0 = none. Calls died(), which must
	 * not return. */
	uint64_t last_call;
	/* The same, of the calls that change the disk, counted by world.changes. */
	uint64_t last_change;
	/* One in so many calls of a kind fails; 0 = none. */
	unsigned one_in[CALL_KINDS];
	/* One in so many allocations fails, or the n-th (by world.allocations) and those after it,
	 * so many; 0 = none. */
	unsigned memory_one_in;
	uint64_t memory_first, memory_count;
	void (*died)(void);
};

extern struct world_faults world_faults;

/* The same of a text as it is. */
void world_trace_text(const char *line, size_t len);

/* Comes before each system call of the agent (not of readers, nor of the world itself): may not
 * return, when the process ends here; else 0, or the errno which the call fails with instead of
 * doing anything. path: for the trace; NULL = a descriptor's. */
int world_call(enum world_call call, const char *path);
/* Comes before each allocation of the agent: false = there is no memory. */
bool world_has_memory(void);

#endif

/*
 * A simulated host: a disk, an agent process on it, and the order in which that process gets to
 * run. All that calls into the agent goes through host_call(), which is left when the process ends.
 *
 * Threads: one. Ownership: what the agent allocates is forgotten with its process.
 */
#ifndef SIM_HOST_H
#define SIM_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "agent.h"
#include "reconfigure.h"
#include "tests/sim/disk.h"

#define HOST_WORKERS 3

enum host_state { HOST_DOWN, HOST_UP };

struct host {
	char name[32];
	unsigned number;    /* of push.h, and of its processes */
	const char *traced; /* what its lines of the trace begin with; NULL = nothing */
	struct disk *disk;
	enum host_state state;
	uint64_t process; /* counts them; a late event of an earlier one is dropped */
	struct agent agent;
	struct reconfigure *reconfigure;
	struct worker *workers[HOST_WORKERS];
	uint64_t stopped_until_us; /* SIGSTOP, or the machine sleeps */
	uint64_t calls_left;       /* the process ends in the last one of these; 0 = it goes on */
	uint64_t changes_left;     /* the same, of the calls that change the disk */
	uint64_t armed_us, armed_number; /* the loop's next turn */
	int exit_code;
	bool once, dry_run; /* how it starts */
	/* of the life */
	void (*died)(struct host *h, int code); /* code: -1 = killed in a call */
	void (*turned)(struct host *h);         /* after each call into the agent */
	/* a name changed on the disk; may not call the disk */
	void (*changed)(void *arg, const char *dir, const char *name);
	/* the agent's own file_watch; NULL = it has none */
	struct file_watch *watch;
	void *arg;
};

/* Whose code runs; NULL = the world's. */
extern struct host *host_now;

/* To be called once, when the disk is there. */
void host_prepare(struct host *h);
/* Starts the agent as agent/main.c does. False: it ended, with a line in the trace. */
bool host_start(struct host *h);
/* Ends the process as kill -9 does: at once, from outside. */
void host_kill(struct host *h);
/* SIGTERM: the agent stops in order, unless its process ends meanwhile. */
void host_stop(struct host *h);
/* SIGHUP. */
void host_reload(struct host *h);

/* Calls into the agent. False: its process ended in it, or there is none. */
bool host_call(struct host *h, void (*call)(void *arg), void *arg);

/* file_watch.c: a name of the disk has changed. */
void sim_watch_note(struct file_watch *w, const char *dir, const char *name, const char *cause);

/* The agent's loop has ended: it stops in order, and its process ends. Does not return. */
void host_loop_ended(void) __attribute__((noreturn));
/* The agent's process ends by itself: does not return. */
void host_exit(int code) __attribute__((noreturn));

/* Calls into the agent later, unless its process has ended by then. The handle is good until that
 * moment. */
struct host_event;
struct host_event *host_at(struct host *h, uint64_t due_us, void (*call)(void *arg), void *arg);
void host_cancel(struct host_event *e);

#endif

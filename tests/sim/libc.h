/*
 * The seam: each libc function by which the product touches the world, caught by the linker
 * (--wrap=NAME for each name of wrap.txt). Files go to the disk in use (disk.h), clocks are the
 * world's, memory is counted.
 *
 * Applies to the whole program: the simulator's own calls come by, too. As OWNER_WORLD memory,
 * environment and standard output are the real ones; files and clocks are simulated for everybody.
 *
 * Threads: one. Bounds: none.
 */
#ifndef SIM_LIBC_H
#define SIM_LIBC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "disk.h"

/* ---- hooks: set once, NULL = nothing happens ---- */

struct libc_hooks {
	/* kill(pid, signal): 0 or an errno. NULL = ESRCH. */
	int (*on_kill)(pid_t pid, int number);
	/* futex(word, FUTEX_WAKE): how many woke up. */
	int (*on_wake)(const void *word);
	/* futex(word, FUTEX_WAIT, value) of a reader, after the word was found to be value: returns
	 * 0 (woken), EINTR, or ETIMEDOUT with the clock where it ends. timeout_us UINT64_MAX =
	 * none. NULL = the clock goes on by the timeout. */
	int (*on_wait)(const void *word, uint32_t value, uint64_t timeout_us);
	/* nanosleep(): 0 or EINTR. NULL = the clock goes on. */
	int (*on_sleep)(uint64_t us);
	/* _exit(status): does not return. NULL = the simulator fails. */
	void (*on_exit)(int status);
	/* One line that the agent logged, without its end; it is in the trace already. Where it is
	 * set, what the product logs outside of an agent (relays) goes to the trace, too. */
	void (*on_log)(const char *line, size_t len);
};
extern struct libc_hooks libc_hooks;

/* ---- who the process is ---- */

struct libc_process {
	pid_t pid;
	const char *host; /* gethostname(), uname() */
	/* pairs "NAME=value", ended by NULL; all that getenv() knows */
	const char *const *environment;
};
/* pid 1000, host "host", no environment, until somebody sets it. */
extern struct libc_process libc_process;
/* Users: root 0:0 and "app" 1000:1000 of the groups root and app. */

/* ---- memory of an agent: of the disk in use ---- */

/* Once, before the first life: lets jansson's memory come by, too. */
void libc_init(void);
/* Allocations of that owner that are not freed. After an orderly stop each is a leak. */
size_t libc_allocations(enum disk_owner owner);
/* Adds the first ten of them to the trace: size, and the code that allocated it as an offset in the
 * program (for addr2line -e). */
void libc_trace_allocations(enum disk_owner owner);
/* Frees all of them: after a crash. */
void libc_forget(enum disk_owner owner);

/* ---- the real world ---- */

/* A real clock, for measuring. */
uint64_t libc_real_us(void);

#endif

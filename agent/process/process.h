/*
 * A user's program, run from the event loop: never by a shell, never blocking the loop.
 *
 * What the program gets: its argv; PATH, HOME=/, LANG=C.UTF-8 and the caller's environment, nothing
 * inherited; standard input empty or the caller's bytes (in memory, from the start: no pipe to
 * fill); standard output and error captured; no other descriptor; signals as after login; umask
 * 022; the directory /; a process group of its own. User, nice value, OOM score and limits are the
 * agent's.
 *
 * Time: at the limit the whole group gets TERM, after a grace KILL. When the program itself ends,
 * all processes that it leaves running get KILL, whatever their session or group (keeper.h); output
 * is what was written by then, and a child that holds the pipe is not waited for. A service manager
 * starts daemons, not a hook. A program that hangs in the kernel ends when the kernel lets it. The
 * time a machine sleeps counts.
 *
 * The agent's own end: the program and its descendants get KILL when the agent ends for any reason,
 * so that the next agent never runs it twice at once. An orderly stop must process_free() each of
 * them first: a running program is killed, and its task is repeated later. The agent becomes a
 * subreaper, which kills the descendants of a keeper that was killed itself, and must have no other
 * children. Unless the agent is root, nothing gains rights by exec (no_new_privs): a process of
 * another user could not be killed.
 *
 * Threads: the loop's; other threads may exist. Ownership: the options are borrowed for the call.
 * Errors: -errno from process_start() when nothing was started; everything later, a failed exec
 * included, is a result. Sets SIGCHLD to its default. Bounds: time; output, by the caller; a
 * message PROCESS_MAX_MESSAGE; four descriptors and two processes each. Needs Linux 5.3 (pidfd).
 */
#ifndef PULLET_PROCESS_H
#define PULLET_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/loop.h"

#define PROCESS_GRACE_MS 5000
#define PROCESS_MAX_MESSAGE 4096
#define PROCESS_WHY 192

struct process;

struct process_options {
	char *const *argv; /* ends with NULL; argv[0] is an absolute path */
	char *const *env;  /* "NAME=value" beside the standard ones, at most 60; ends with NULL; or
			      NULL */
	const void *input; /* its standard input; NULL = empty */
	size_t input_len;
	const char *input_dir; /* the agent's own; where input lies, without a name, if a sandbox
				  denies memfd_create(); NULL = nowhere */
	bool product;        /* standard output is the output, and whole or an error; standard error
				is the message. Else both together are the output, in their order */
	size_t max_output;   /* bytes; what is beyond is read, counted and thrown away */
	uint64_t timeout_ms; /* then TERM */
	uint64_t grace_ms;   /* then KILL; 0 = PROCESS_GRACE_MS */
};

enum process_end {
	PROCESS_EXITED,
	PROCESS_SIGNALLED,
	PROCESS_TIMED_OUT,
	PROCESS_NOT_STARTED /* exec, or what leads to it, failed */
};

struct process_result {
	enum process_end end;
	int code;                     /* exit code, signal, or errno of NOT_STARTED; else 0 */
	bool ok;                      /* exited with 0; a product also within max_output */
	const char *output, *message; /* never NULL, with a NUL behind; message only of a product */
	size_t output_len, message_len;
	uint64_t dropped; /* bytes of output beyond max_output */
	uint64_t took_ms;
	unsigned left; /* processes that it left running when it ended, and that were killed */
	char why[PROCESS_WHY]; /* "" when ok; else what follows its name: "exited with 1" */
};

/* Starts a program. ended(arg, result) is called once, later, from the loop (never from inside
 * process_start), with a result that is lent; the process is gone when ended() returns, and must
 * not be freed in it. 0 and *ret_process, or -errno. */
int process_start(struct loop *l, const struct process_options *options,
	void (*ended)(void *arg, const struct process_result *result), void *arg,
	struct process **ret_process);
/* Takes p (NULL is fine): kills the group and reaps the program; ended() is not called. Returns as
 * soon as it is dead; waits for at most a second (a program that hangs in the kernel). */
void process_free(struct process *p);

#endif

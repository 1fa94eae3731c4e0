/*
 * A context of libzmq whose connections are guarded, and the options of both ends' sockets.
 * Threads: any. Ownership: the caller's.
 */
#ifndef PULLET_PUSH_CONTEXT_H
#define PULLET_PUSH_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

#include "push/peer_guard.h"

struct push_option {
	int option, value; /* of zmq_setsockopt() */
};

/* Whether this process may have a context: libzmq aborts where it cannot start its threads, as at
 * the limit of processes, or these may not set their scheduling, as under
 * SystemCallFilter=~@resources. 0 or -errno. */
int push_context_try(void);
/* side: the peers that are guarded against. End it with zmq_ctx_term(). NULL when memory is
 * short. */
void *push_context_new(enum peer_guard_side side);
/* Sets the largest frame, the options that both ends share, and these. 0 or -1, as
 * zmq_setsockopt(). */
int push_context_set_options(
	void *socket, int64_t max_frame, const struct push_option *options, size_t count);

#endif

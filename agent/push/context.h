/*
 * A context of libzmq's whose connections are guarded. Threads: any. Ownership: the caller's.
 */
#ifndef PULLET_PUSH_CONTEXT_H
#define PULLET_PUSH_CONTEXT_H

#include "push/peer_guard.h"

/* side: who is guarded against. To be ended by zmq_ctx_term(). NULL when memory is short. */
void *push_context_new(enum peer_guard_side side);

#endif

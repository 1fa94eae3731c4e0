/*
 * What both ends of the push channel ask of libzmq itself, before any socket.
 */
#include "push/context.h"

#include <zmq.h>

#define ZERO_COPY_RECV                                                                             \
	10 /* libzmq's, named in its draft only; else a small frame holds 8 to 18 KiB */

void *push_context_new(enum peer_guard_side side)
{
	void *context = zmq_ctx_new();

	if (context && zmq_ctx_set(context, ZMQ_THREAD_NAME_PREFIX, (int)side)) {
		zmq_ctx_term(context);
		return NULL;
	}
	if (context)
		zmq_ctx_set(context, ZERO_COPY_RECV, 0);
	return context;
}

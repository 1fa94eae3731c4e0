/* What both ends of the push channel set in libzmq: the context, and options of their sockets. */
#include "push/context.h"

#include <pthread.h>
#include <sched.h>

#include <zmq.h>

#include "push/endpoint.h"

/* libzmq's, named in its draft only; without it a small frame holds 8 to 18 KiB */
#define ZERO_COPY_RECV 10

int push_context_try(void)
{
	struct sched_param param;
	int policy, r = pthread_getschedparam(pthread_self(), &policy, &param);

	return r ? -r : -pthread_setschedparam(pthread_self(), policy, &param);
}

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

static int set_each(void *socket, const struct push_option *options, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (zmq_setsockopt(socket, options[i].option, &options[i].value, sizeof(int)))
			return -1;
	return 0;
}

int push_context_set_options(
	void *socket, int64_t max_frame, const struct push_option *options, size_t count)
{
	static const struct push_option shared[] = {
		{ZMQ_HEARTBEAT_IVL, 5000},
		{ZMQ_HEARTBEAT_TIMEOUT, 15000},
		{ZMQ_HEARTBEAT_TTL, 15000},
		{ZMQ_HANDSHAKE_IVL, PUSH_HANDSHAKE_MS},
		{ZMQ_TCP_KEEPALIVE, 1},
		{ZMQ_TCP_KEEPALIVE_IDLE, 60},
	};

	return zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &max_frame, sizeof(max_frame)) ||
			       set_each(socket, shared, sizeof(shared) / sizeof(shared[0])) ||
			       set_each(socket, options, count)
		       ? -1
		       : 0;
}

/* What both ends of the push channel set in libzmq: the context, and options of their sockets. */
#include "push/context.h"

#include <pthread.h>
#include <sched.h>

#include <zmq.h>

#include "push/endpoint.h"

/* libzmq's, named in its draft only; without it a small frame holds 8 to 18 KiB */
#define ZERO_COPY_RECV 10
#define THREADS 2 /* of a context, begun with its first socket */

static void *wait_for_lock(void *lock)
{
	pthread_mutex_lock(lock);
	pthread_mutex_unlock(lock);
	return NULL;
}

/* Has as many threads at a time as a context. 0 or -errno. */
static int try_threads(void)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_t threads[THREADS];
	int r = 0, n = 0;

	pthread_mutex_lock(&lock);
	while (r == 0 && n < THREADS) {
		r = pthread_create(&threads[n], NULL, wait_for_lock, &lock);
		n += r == 0;
	}
	pthread_mutex_unlock(&lock);
	while (n > 0)
		pthread_join(threads[--n], NULL);
	return -r;
}

int push_context_try(void)
{
	struct sched_param param;
	int policy, r = pthread_getschedparam(pthread_self(), &policy, &param);

	if (r == 0)
		r = pthread_setschedparam(pthread_self(), policy, &param);
	return r ? -r : try_threads();
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

/* Contexts whose threads are guarded, the options of both ends' sockets, and libzmq that fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

#include <cmocka.h>

#include "push/context.h"
#include "push/endpoint.h"
#include "tests/unit/fixture/fault_zmq.h"

#define ZERO_COPY_RECV 10 /* named in the drafts of zmq.h only */

static void context__of_a_side__has_its_number_and_copies_small_frames(void **state)
{
	(void)state;
	for (int side = PEER_GUARD_PUBLISHERS; side <= PEER_GUARD_SUBSCRIBERS; side++) {
		void *context = push_context_new((enum peer_guard_side)side);

		assert_non_null(context);
		assert_int_equal(zmq_ctx_get(context, ZMQ_THREAD_NAME_PREFIX), side);
		assert_int_equal(zmq_ctx_get(context, ZERO_COPY_RECV), 0);
		zmq_ctx_term(context);
	}
}

static void context__that_cannot_be_guarded__is_none(void **state)
{
	(void)state;
	for (size_t nth = 1; nth <= 2; nth++) {
		fault_zmq_fail(nth, ENOMEM);
		assert_null(push_context_new(PEER_GUARD_PUBLISHERS));
		assert_true(fault_zmq_failed());
		assert_int_equal(fault_zmq.contexts, 0);
	}
}

static unsigned threads_left = 99;

int pthread_create(
	pthread_t *ret, const pthread_attr_t *attributes, void *(*start_it)(void *), void *arg)
{
	static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

	if (threads_left == 0)
		return EAGAIN;
	threads_left--;
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
	return real(ret, attributes, start_it, arg);
}

static void context__without_its_threads__is_none_beforehand(void **state)
{
	(void)state;
	for (unsigned n = 0; n <= 2; n++) {
		threads_left = n;
		assert_int_equal(push_context_try(), n < 2 ? -EAGAIN : 0);
		assert_int_equal(threads_left, 0);
	}
	threads_left = 99;
}

static void options__are_those_of_both_ends_and_the_callers(void **state)
{
	static const struct push_option own[] = {{ZMQ_LINGER, 123}, {ZMQ_RCVHWM, 7}};
	static const struct push_option all[] = {
		{ZMQ_LINGER, 123},
		{ZMQ_RCVHWM, 7},
		{ZMQ_HEARTBEAT_IVL, 5000},
		{ZMQ_HEARTBEAT_TIMEOUT, 15000},
		{ZMQ_HEARTBEAT_TTL, 15000},
		{ZMQ_HANDSHAKE_IVL, PUSH_HANDSHAKE_MS},
		{ZMQ_TCP_KEEPALIVE, 1},
		{ZMQ_TCP_KEEPALIVE_IDLE, 60},
	};
	void *context = push_context_new(PEER_GUARD_PUBLISHERS), *s = zmq_socket(context, ZMQ_PAIR);
	int64_t most = 0;
	size_t size = sizeof(most);
	int value;

	(void)state;
	assert_int_equal(push_context_set_options(s, 4321, own, 2), 0);
	assert_int_equal(zmq_getsockopt(s, ZMQ_MAXMSGSIZE, &most, &size), 0);
	assert_int_equal(most, 4321);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		size = sizeof(value);
		assert_int_equal(zmq_getsockopt(s, all[i].option, &value, &size), 0);
		assert_int_equal(value, all[i].value);
	}
	zmq_close(s);
	zmq_ctx_term(context);
}

static void options__of_which_one_cannot_be_set__fail(void **state)
{
	static const struct push_option own[] = {{ZMQ_LINGER, 0}, {ZMQ_RCVHWM, 7}};
	void *context = push_context_new(PEER_GUARD_PUBLISHERS), *s = zmq_socket(context, ZMQ_PAIR);

	(void)state;
	for (size_t nth = 1; nth <= 9; nth++) {
		fault_zmq_fail(nth, EINVAL);
		assert_int_equal(push_context_set_options(s, 4321, own, 2), -1);
		assert_true(fault_zmq_failed());
	}
	zmq_close(s);
	zmq_ctx_term(context);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(context__of_a_side__has_its_number_and_copies_small_frames),
		cmocka_unit_test(context__that_cannot_be_guarded__is_none),
		cmocka_unit_test(context__without_its_threads__is_none_beforehand),
		cmocka_unit_test(options__are_those_of_both_ends_and_the_callers),
		cmocka_unit_test(options__of_which_one_cannot_be_set__fail),
	};

	return cmocka_run_group_tests_name("context", tests, NULL, NULL);
}

/*
 * The HTTP server while memory runs out at each allocation of its start, and at its own of a
 * connection. Not at those of libevent 2.1.12, which leaks, and crashes, where it has none there.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <dlfcn.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include <event2/bufferevent.h>

#include "httpd/server.h"
#include "tests/unit/fixture/fault_memory.h"
#include "tests/unit/fixture/quick_loop.h"
#include "tests/unit/fixture/scratch.h"

static char dir[SCRATCH_PATH], path[SCRATCH_PATH + 16];
static struct loop *loop;

static void handle(void *arg, struct httpd_request *r)
{
	(void)arg;
	httpd_reply(r, 200, "text/plain", "body\n", 5);
}

static int set_up(void **state)
{
	(void)state;
	alarm(20);
	scratch_open(dir, scratch_memory());
	snprintf(path, sizeof(path), "%s/s", dir);
	loop = quick_open();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	quick_close();
	scratch_close(dir);
	return 0;
}

/* Whether it could not start, and said why. */
static bool has_failed(struct httpd *h)
{
	if (!h)
		assert_true(errno == ENOMEM || errno == EIO);
	fault_memory.paused++;
	if (h)
		httpd_close(h);
	fault_memory.paused--;
	return !h;
}

static bool open_unix_once(void)
{
	bool failed = has_failed(httpd_open_unix(loop, path, handle, NULL));

	assert_int_equal(access(path, F_OK), -1); /* no socket is left */
	return failed;
}

static bool open_tcp_once(void)
{
	return has_failed(httpd_open_tcp(loop, "127.0.0.1:0", handle, NULL));
}

static void start__without_memory__says_so_and_leaves_no_socket(void **state)
{
	(void)state;
	assert_true(fault_memory_each(open_unix_once, false) >= 5);
	assert_true(fault_memory_each(open_tcp_once, false) >= 5);
}

static bool stops_after_accept;
static unsigned own; /* the allocation of a connection, counted from the accepting on */

int accept4(int fd, struct sockaddr *address, socklen_t *len, int flags)
{
	int r = (int)syscall(SYS_accept4, fd, address, len, flags);

	if (r >= 0)
		fault_memory.seen = 0;
	if (r >= 0 && stops_after_accept) {
		loop_stop(loop);
		stops_after_accept = false;
	}
	return r;
}

/* Comes right after it. */
struct bufferevent *bufferevent_socket_new(struct event_base *base, evutil_socket_t fd, int options)
{
	struct bufferevent *(*real)(struct event_base *, evutil_socket_t, int);

	if (!own)
		own = fault_memory.seen;
	*(void **)&real = dlsym(RTLD_NEXT, "bufferevent_socket_new");
	return real(base, fd, options);
}

static void connection__without_memory__is_answered_503(void **state)
{
	struct quick_client client;
	struct httpd *server = httpd_open_unix(loop, path, handle, NULL);

	(void)state;
	fault_memory.for_ever = false;
	for (unsigned i = 0; i < 3; i++) {
		fault_memory.nth = i == 1 ? own : FAULT_MEMORY_MOST;
		quick_ask(&client, path, "GET /x");
		fault_memory.nth = 0;
		quick_check_answer(
			client.text, i == 1 ? 503 : 200, i == 1 ? "no memory left" : "body");
	}
	httpd_close(server);
}

/* What the server keeps of requests that were answered, or given up. */
static void requests__of_each_kind__leave_no_memory(void **state)
{
	static const char *const lines[] = {"GET /x", "GET /x?a=1&b", "GET /a%00b", "GET /x?=1",
		"HEAD /x", "POST /x", "PUT /x"};
	struct httpd *server = httpd_open_unix(loop, path, handle, NULL);
	struct quick_client client;
	long before = 0;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		if (i == 1)
			before = fault_memory.live;
		for (size_t k = 0; k < sizeof(lines) / sizeof(lines[0]); k++)
			quick_ask(&client, path, lines[k]);
		quick_run();
	}
	assert_int_equal(fault_memory.live, before);
	httpd_close(server);
}

static void connection__that_was_only_accepted__is_freed_with_the_server(void **state)
{
	long before = 0;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct httpd *server = httpd_open_unix(loop, path, handle, NULL);
		struct quick_client client;

		quick_connect(&client, path);
		stops_after_accept = true;
		while (stops_after_accept)
			quick_run();
		httpd_close(server);
		assert_true(quick_has_ended(&client));
		quick_hang_up(&client);
		if (i == 0)
			before = fault_memory.live;
	}
	assert_int_equal(fault_memory.live, before);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(start__without_memory__says_so_and_leaves_no_socket),
		CASE(connection__without_memory__is_answered_503),
		CASE(requests__of_each_kind__leave_no_memory),
		CASE(connection__that_was_only_accepted__is_freed_with_the_server),
	};

	return fault_memory_run(tests, 4);
}

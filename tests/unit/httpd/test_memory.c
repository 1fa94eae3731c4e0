/*
 * The HTTP server while memory runs out at each allocation of its start. Not of a request: libevent
 * 2.1.12 leaks, and crashes, where it has none for a connection.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(start__without_memory__says_so_and_leaves_no_socket),
	};

	return fault_memory_run(tests, 1);
}

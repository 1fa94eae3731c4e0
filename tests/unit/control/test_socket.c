/*
 * The control socket: made again when it is gone, however often that fails, and the TCP address
 * beside it, which may change.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "control/socket.h"
#include "tests/unit/fixture/captured.h"
#include "tests/unit/fixture/fault_memory.h"
#include "tests/unit/fixture/quick_loop.h"
#include "tests/unit/fixture/scratch.h"

static char base[SCRATCH_PATH], dir[SCRATCH_PATH + 16], path[SCRATCH_PATH + 32], why[FILE_WHY];
static struct file_watch *watch;
static struct control_socket *served;
static struct quick_client client;

static void handle(void *arg, struct httpd_request *r)
{
	(void)arg;
	httpd_reply(r, 200, "text/plain", httpd_is_tcp(r) ? "tcp\n" : "unix\n", 5);
}

static int set_up(void **state)
{
	(void)state;
	alarm(20);
	scratch_open(base, scratch_memory());
	snprintf(dir, sizeof(dir), "%s/run", base);
	snprintf(path, sizeof(path), "%s/control.sock", dir);
	mkdir(dir, 0750);
	watch = file_watch_new(quick_open());
	client.fd = -1;
	assert_int_equal(
		control_socket_open(quick.loop, watch, dir, handle, NULL, &served, why), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	quick_hang_up(&client);
	control_socket_close(served);
	control_socket_close(NULL); /* one that could not be made */
	served = NULL;
	file_watch_free(watch);
	quick_close();
	scratch_close(base);
	return 0;
}

static bool is_there(void *arg)
{
	struct stat st;

	(void)arg;
	return stat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

static void assert_served(void)
{
	quick_check_answer(quick_ask(&client, path, "GET /"), 200, "unix\n");
}

/* ---- the socket ---- */

static void socket__that_was_removed__comes_back_after_a_second(void **state)
{
	struct captured log = captured_begin(STDERR_FILENO);
	char text[1024];
	uint64_t begin_ms;

	(void)state;
	assert_served();
	unlink(path);
	begin_ms = quick_now_ms();
	quick_until(is_there, NULL, 50);
	assert_in_range(quick_now_ms() - begin_ms, 1000, 1900);
	assert_served();
	unlink(path); /* the new one is watched too */
	begin_ms = quick_now_ms();
	quick_until(is_there, NULL, 50);
	assert_in_range(quick_now_ms() - begin_ms, 1000, 1900);
	assert_served();
	captured_read(&log, text, sizeof(text));
	captured_end(&log);
	assert_non_null(strstr(text, "the control socket was removed: recreated path="));
	assert_null(strstr(text, "is gone"));
}

/* Each run that ends looks for it: those looks do not put it off. */
static void socket__that_is_looked_for_again_and_again__comes_back_all_the_same(void **state)
{
	uint64_t begin_ms;

	(void)state;
	unlink(path);
	begin_ms = quick_now_ms();
	while (!is_there(NULL) && quick_now_ms() - begin_ms < 10000) {
		control_socket_check(served);
		quick_run();
		quick.skipped_ms += 50;
	}
	assert_in_range(quick_now_ms() - begin_ms, 1000, 1900);
	assert_served();
}

static void socket__that_is_there_again__is_not_said_to_be_gone(void **state)
{
	struct captured log = captured_begin(STDERR_FILENO);
	char aside[SCRATCH_PATH + 16], text[1024];

	(void)state;
	snprintf(aside, sizeof(aside), "%s/aside", base);
	assert_int_equal(rename(path, aside), 0);
	control_socket_check(served);
	quick_run();
	assert_int_equal(rename(aside, path), 0);
	for (int i = 0; i < 50; i++) {
		quick_run();
		quick.skipped_ms += 100;
	}
	captured_read(&log, text, sizeof(text));
	captured_end(&log);
	assert_string_equal(text, "");
	assert_served();
}

static void socket__without_a_watch__is_served(void **state)
{
	(void)state;
	control_socket_close(served);
	assert_int_equal(control_socket_open(quick.loop, NULL, dir, handle, NULL, &served, why), 0);
	assert_served();
}

static void directory__that_was_removed__comes_back_too(void **state)
{
	struct stat st;

	(void)state;
	unlink(path);
	assert_int_equal(rmdir(dir), 0);
	quick_until(is_there, NULL, 50);
	assert_served();
	assert_int_equal(stat(dir, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0750);
	unlink(path);
	quick_until(is_there, NULL, 50);
}

static int listen_there(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%.100s", path);
	assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 64), 0);
	return fd;
}

static bool is_restored(void *arg)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), r;

	(void)arg;
	snprintf(address.sun_path, sizeof(address.sun_path), "%.100s", path);
	r = connect(fd, (const struct sockaddr *)&address, sizeof(address));
	close(fd);
	return r == 0;
}

/* Another program has its path: it is left alone, and tried again, later each time. */
static void socket__of_another_program__is_waited_for(void **state)
{
	struct stat before, after;
	int fd;

	(void)state;
	unlink(path);
	fd = listen_there();
	assert_int_equal(lstat(path, &before), 0);
	for (int i = 0; i < 60; i++) { /* tries after 1, 2, 4, 8, 16 s, then one after 32 s more */
		quick_run();
		quick.skipped_ms += 1000;
	}
	assert_int_equal(lstat(path, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	close(fd);
	assert_false(is_restored(NULL));
	quick_until(is_restored, NULL, 1000);
	assert_served();
}

static int bind_error; /* 0 = none */

int bind(int fd, const struct sockaddr *address, socklen_t len)
{
	errno = bind_error;
	return bind_error ? -1 : (int)syscall(SYS_bind, fd, address, len);
}

static void socket__in_no_place__says_why(void **state)
{
	struct control_socket *p;

	(void)state;
	assert_int_equal(
		control_socket_open(quick.loop, watch, "/nowhere/at/all", handle, NULL, &p, why),
		-ENOENT);
	assert_non_null(strstr(why, "cannot listen on /nowhere/at/all/control.sock: "));
	assert_int_equal(
		control_socket_open(quick.loop, watch, dir, handle, NULL, &p, why), -EADDRINUSE);
	assert_non_null(strstr(why, "another program has it: stop that"));
	control_socket_close(served);
	served = NULL;
	bind_error = EACCES; /* by a security module */
	assert_int_equal(
		control_socket_open(quick.loop, watch, dir, handle, NULL, &p, why), -EACCES);
	bind_error = 0;
	assert_null(strstr(why, "ports below 1024"));
}

static bool open_once(void)
{
	struct control_socket *p = NULL;
	char other[SCRATCH_PATH + 16];
	int r;

	snprintf(other, sizeof(other), "%s/other", base);
	r = control_socket_open(quick.loop, watch, other, handle, NULL, &p, why);
	fault_memory.paused++;
	control_socket_close(p);
	fault_memory.paused--;
	assert_true(r ? (r == -ENOMEM || r == -EIO) && why[0] : p != NULL);
	return r != 0;
}

static void socket__without_memory__says_so(void **state)
{
	char other[SCRATCH_PATH + 16];

	(void)state;
	snprintf(other, sizeof(other), "%s/other", base);
	assert_int_equal(mkdir(other, 0750), 0);
	assert_true(fault_memory_each(open_once, false) >= 5);
}

/* ---- the address ---- */

static int free_port(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(fd, (const struct sockaddr *)&a, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	close(fd);
	return ntohs(a.sin_port);
}

/* -1: nobody listens. */
static int connect_port(int port)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (connect(fd, (const struct sockaddr *)&a, sizeof(a)) == 0)
		return fd;
	close(fd);
	return -1;
}

static bool connects(int port)
{
	int fd = connect_port(port);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void address__may_change_and_end(void **state)
{
	int one = free_port(), two;
	char text[64], other[64];

	(void)state;
	snprintf(text, sizeof(text), "127.0.0.1:%d", one);
	assert_int_equal(control_socket_listen(served, text, why), 0);
	assert_int_equal(control_socket_listen(served, text, why), 0);
	two = free_port();
	snprintf(other, sizeof(other), "127.0.0.1:%d", two);
	assert_int_equal(control_socket_listen(served, other, why), 0);
	assert_true(connects(two));
	assert_false(connects(one));
	assert_int_equal(control_socket_listen(served, NULL, why), 0);
	assert_false(connects(two));
	assert_served();
}

/* A reload that is about something else cuts nobody off. */
static void address__that_is_the_same__keeps_its_connections(void **state)
{
	char text[64], again[64], byte;
	int port = free_port(), fd;

	(void)state;
	snprintf(text, sizeof(text), "127.0.0.1:%d", port);
	snprintf(again, sizeof(again), "%s", text);
	assert_int_equal(control_socket_listen(served, text, why), 0);
	fd = connect_port(port);
	assert_true(fd >= 0);
	assert_int_equal(control_socket_listen(served, again, why), 0);
	assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	close(fd);
}

static void address__that_is_taken__changes_nothing(void **state)
{
	int one = free_port(), taken = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	char text[64];

	(void)state;
	snprintf(text, sizeof(text), "127.0.0.1:%d", one);
	assert_int_equal(control_socket_listen(served, text, why), 0);
	assert_int_equal(bind(taken, (const struct sockaddr *)&a, len), 0);
	assert_int_equal(listen(taken, 1), 0);
	assert_int_equal(getsockname(taken, (struct sockaddr *)&a, &len), 0);
	snprintf(text, sizeof(text), "127.0.0.1:%d", ntohs(a.sin_port));
	assert_int_equal(control_socket_listen(served, text, why), -EADDRINUSE);
	assert_non_null(strstr(why, "another program has it: stop that, or listen elsewhere"));
	assert_true(connects(one));
	close(taken);
	assert_int_equal(control_socket_listen(served, "nonsense", why), -EINVAL);
	assert_non_null(strstr(why, "the name is not known here: write an address"));
	assert_true(connects(one));
}

/* Of one port: the old listener is in the way of the new one. */
static void address__of_the_same_port__takes_over_or_goes_back(void **state)
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	int port = free_port(), other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char text[64];

	(void)state;
	snprintf(text, sizeof(text), "127.0.0.1:%d", port);
	assert_int_equal(control_socket_listen(served, text, why), 0);
	snprintf(text, sizeof(text), "0.0.0.0:%d", port);
	assert_int_equal(control_socket_listen(served, text, why), 0);
	assert_true(connects(port));
	snprintf(text, sizeof(text), "192.0.2.1:%d", port); /* not of this host */
	assert_int_equal(control_socket_listen(served, text, why), -EADDRNOTAVAIL);
	assert_non_null(strstr(why, "this host does not have that address"));
	assert_true(connects(port));
	snprintf(text, sizeof(text), "127.0.0.1:%d", port);
	assert_int_equal(control_socket_listen(served, text, why), 0);
	a.sin_port = htons((uint16_t)port);
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
	assert_int_equal(bind(other, (const struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(other, 1), 0);
	snprintf(text, sizeof(text), "0.0.0.0:%d", port); /* the other one is in the way, too */
	assert_int_equal(control_socket_listen(served, text, why), -EADDRINUSE);
	close(other);
	assert_true(connects(port));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(socket__that_was_removed__comes_back_after_a_second),
		CASE(socket__that_is_looked_for_again_and_again__comes_back_all_the_same),
		CASE(socket__that_is_there_again__is_not_said_to_be_gone),
		CASE(socket__without_a_watch__is_served),
		CASE(directory__that_was_removed__comes_back_too),
		CASE(socket__of_another_program__is_waited_for),
		CASE(socket__in_no_place__says_why),
		CASE(address__may_change_and_end),
		CASE(address__that_is_the_same__keeps_its_connections),
		CASE(address__that_is_taken__changes_nothing),
		CASE(address__of_the_same_port__takes_over_or_goes_back),
		CASE(socket__without_memory__says_so),
	};

	return fault_memory_run(tests, 1);
}

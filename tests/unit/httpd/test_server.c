/*
 * The HTTP server behind one handler: how requests are read and answered, how many clients and how
 * much of answers there may be, who is too slow, and the shares of users. Other users are this
 * process with another effective uid when it connects (root only).
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
#include <sys/un.h>

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <dlfcn.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <sys/syscall.h>

#include "httpd/server.h"
#include "tests/unit/fixture/quick_loop.h"
#include "tests/unit/fixture/scratch.h"

#define STRANGER 54321u
#define CLIENTS 16

static char dir[SCRATCH_PATH], path[SCRATCH_PATH + 16];
static struct httpd *server;
static struct quick_client clients[CLIENTS + 8];
static char seen[256];             /* of the last request */
static struct httpd_request *held; /* of the path /hold */
static unsigned gone, denied;
static uid_t denied_uid;
static char large[1u << 20]; /* more than a socket takes unread */

/* The kernel has no descriptors; libevent has no memory for a connection, or for a body. */
static bool no_descriptors, no_connection, no_body;
static bool no_listening, other_device; /* of the socket's file */
static unsigned accepts;

int accept4(int fd, struct sockaddr *address, socklen_t *len, int flags)
{
	accepts++;
	if (!no_descriptors)
		return (int)syscall(SYS_accept4, fd, address, len, flags);
	errno = EMFILE;
	return -1;
}

int listen(int fd, int backlog)
{
	if (!no_listening)
		return (int)syscall(SYS_listen, fd, backlog);
	unlink(path);
	errno = EADDRINUSE;
	return -1;
}

int lstat(const char *name, struct stat *ret)
{
	int r = fstatat(AT_FDCWD, name, ret, AT_SYMLINK_NOFOLLOW);

	ret->st_dev += other_device;
	return r;
}

void bufferevent_getcb(struct bufferevent *b, bufferevent_data_cb *read, bufferevent_data_cb *write,
	bufferevent_event_cb *event, void **arg)
{
	void (*real)(struct bufferevent *, bufferevent_data_cb *, bufferevent_data_cb *,
		bufferevent_event_cb *, void **) =
		(void (*)(struct bufferevent *, bufferevent_data_cb *, bufferevent_data_cb *,
			bufferevent_event_cb *, void **))dlsym(RTLD_NEXT, "bufferevent_getcb");

	real(b, read, write, event, arg);
	if (no_connection)
		*arg = NULL;
}

static bool ticks; /* of the list of clients come in each turn */

int event_add(struct event *e, const struct timeval *timeout)
{
	static const struct timeval at_once = {0};
	int (*real)(struct event *, const struct timeval *);

	*(void **)&real = dlsym(RTLD_NEXT, "event_add");
	return real(e, ticks && timeout && timeout->tv_usec == 250000 ? &at_once : timeout);
}

struct evbuffer *evbuffer_new(void)
{
	struct evbuffer *(*real)(void);

	*(void **)&real = dlsym(RTLD_NEXT, "evbuffer_new");
	return no_body ? NULL : real();
}

static void hold_gone(void *arg)
{
	(void)arg;
	held = NULL;
	gone++;
}

static void count_denied(void *arg, const struct peer *peer)
{
	(void)arg;
	denied++;
	denied_uid = peer->uid;
}

/* "/304": the status of the answer; 0 = none is asked for. */
static int status_of(const char *request)
{
	return (int)strtol(request + 1, NULL, 10);
}

static void handle(void *arg, struct httpd_request *r)
{
	static const char *const methods[] = {"GET", "HEAD", "POST", "OTHER"};
	const char *a = httpd_query(r, "a"), *second = httpd_query_name(r, 1),
		   *header = httpd_header(r, "X-Test");
	int status = status_of(httpd_path(r));

	(void)arg;
	snprintf(seen, sizeof(seen), "%s %s a=%s second=%s x=%s", methods[httpd_method(r)],
		httpd_path(r), a ? a : "-", second ? second : "-", header ? header : "-");
	if (strcmp(httpd_path(r), "/hold") == 0) {
		held = r;
		httpd_on_gone(r, hold_gone, NULL);
		return;
	}
	httpd_add_header(r, "X-Tcp", httpd_is_tcp(r) ? "yes" : "no");
	httpd_add_header(r, "X-Values", httpd_may_see_values(r) ? "yes" : "no");
	httpd_reply(r, status ? status : 200, "text/plain", "body\n", 5);
}

static int set_up(void **state)
{
	(void)state;
	alarm(20);
	memset(large, 'x', sizeof(large));
	held = NULL;
	ticks = false;
	gone = denied = 0;
	seen[0] = '\0';
	scratch_open(dir, scratch_memory());
	chmod(dir, 0711);
	snprintf(path, sizeof(path), "%s/s", dir);
	server = httpd_open_unix(quick_open(), path, handle, NULL);
	assert_non_null(server);
	chmod(path, 0666);
	for (size_t i = 0; i < CLIENTS + 8; i++)
		clients[i].fd = -1;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	for (size_t i = 0; i < CLIENTS + 8; i++)
		quick_hang_up(&clients[i]);
	if (server)
		httpd_close(server);
	server = NULL;
	quick_close();
	scratch_close(dir);
	return 0;
}

static const char *ask(const char *line)
{
	return quick_ask(&clients[0], path, line);
}

/* ---- requests and answers ---- */

static void request__reaches_the_handler_decoded(void **state)
{
	(void)state;
	quick_check_answer(ask("GET /a%20b/c+d?verbose&a=1%202"), 200, "\r\n\r\nbody\n");
	assert_string_equal(seen, "GET /a b/c+d a=1 2 second=a x=-");
	assert_non_null(strstr(clients[0].text, "Content-Type: text/plain"));
	assert_non_null(strstr(clients[0].text, "X-Tcp: no"));
	quick_check_answer(ask("POST /?a=&&b=2"), 200, "body");
	assert_string_equal(seen, "POST / a= second=b x=-");
	quick_check_answer(ask("GET /x HTTP/1.1\r\nX-Test: y\r\nZ:"), 200, "body");
	assert_string_equal(seen, "GET /x a=- second=- x=y");
}

static void head_and_304__have_no_body(void **state)
{
	(void)state;
	quick_check_answer(ask("HEAD /x"), 200, "Content-Length: 5\r\n");
	assert_null(strstr(clients[0].text, "body"));
	assert_non_null(strstr(seen, "HEAD /x"));
	quick_check_answer(ask("GET /304"), 304, "");
	assert_null(strstr(clients[0].text, "body"));
	assert_null(strstr(clients[0].text, "Content-Length"));
}

static void method__of_any_kind__reaches_the_handler(void **state)
{
	static const char *const methods[] = {"PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"};
	char line[32];

	(void)state;
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		snprintf(line, sizeof(line), "%s /x", methods[i]);
		seen[0] = '\0';
		quick_check_answer(ask(line), 200, "Connection: close\r\n");
		assert_string_equal(seen, "OTHER /x a=- second=- x=-");
	}
}

static void request__larger_than_the_bounds__never_reaches_the_handler(void **state)
{
	static const struct {
		size_t body, header;
		int status;
	} rows[] = {{4096, 0, 200}, {4097, 0, 413}, {0, 8000, 200}, {0, 8192, 400}};
	char text[16384];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(text, sizeof(text),
			"POST /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: "
			"%zu\r\nZ: %.*s\r\n\r\n%.*s",
			rows[i].body, (int)rows[i].header, large, (int)rows[i].body, large);
		seen[0] = '\0';
		clients[i].len = 0;
		quick_connect(&clients[i], path);
		quick_send(&clients[i], text);
		quick_until(quick_has_answer, &clients[i], 0);
		quick_check_answer(clients[i].text, rows[i].status, "");
		assert_int_equal(seen[0] != '\0', rows[i].status == 200);
	}
}

/* To a proxy that speaks HTTP/1.0, as nginx does, the end of a connection is that of the answer. */
static void answer__of_http_1_0__says_its_length_once(void **state)
{
	static const char *const requests[] = {"GET /x HTTP/1.0\r\n\r\n",
		"GET /x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
		"GET /x HTTP/1.1\r\nHost: x\r\n\r\n"};

	(void)state;
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		const char *length;

		clients[i].len = 0;
		quick_connect(&clients[i], path);
		quick_send(&clients[i], requests[i]);
		quick_until(quick_has_answer, &clients[i], 0);
		length = strstr(clients[i].text, "Content-Length: 5\r\n");
		assert_non_null(length);
		assert_null(strstr(length + 1, "Content-Length"));
	}
}

static void answer__of_each_status__has_its_reason(void **state)
{
	static const struct {
		const char *path, *line;
	} table[] = {
		{"GET /200", "HTTP/1.1 200 OK\r\n"},
		{"GET /202", "HTTP/1.1 202 Accepted\r\n"},
		{"GET /304", "HTTP/1.1 304 Not Modified\r\n"},
		{"GET /400", "HTTP/1.1 400 Bad Request\r\n"},
		{"GET /403", "HTTP/1.1 403 Forbidden\r\n"},
		{"GET /404", "HTTP/1.1 404 Not Found\r\n"},
		{"GET /405", "HTTP/1.1 405 Method Not Allowed\r\n"},
		{"GET /409", "HTTP/1.1 409 Conflict\r\n"},
		{"GET /421", "HTTP/1.1 421 Misdirected Request\r\n"},
		{"GET /500", "HTTP/1.1 500 Internal Server Error\r\n"},
		{"GET /503", "HTTP/1.1 503 Service Unavailable\r\n"},
		{"GET /504", "HTTP/1.1 504 Gateway Timeout\r\n"},
		{"GET /299", "HTTP/1.1 299 Answer\r\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		assert_memory_equal(ask(table[i].path), table[i].line, strlen(table[i].line));
}

static void connection__carries_one_request_after_the_other(void **state)
{
	(void)state;
	quick_connect(&clients[0], path);
	for (int i = 0; i < 3; i++) {
		clients[0].len = 0;
		quick_send(&clients[0], "GET /x HTTP/1.1\r\nHost: x\r\n\r\n");
		quick_until(quick_has_answer, &clients[0], 0);
		quick_check_answer(clients[0].text, 200, "");
		assert_false(clients[0].ended);
	}
	/* an idle one is dropped as one that sends no request */
	quick_until(quick_has_ended, &clients[0], 1000);
}

static void query__of_many_parameters_without_a_value__names_each(void **state)
{
	char line[8001] = "GET /x?";

	(void)state;
	for (size_t i = strlen(line); i < sizeof(line) - 1; i++)
		line[i] = i % 2 ? 'b' : '&';
	quick_check_answer(ask(line), 200, "body");
	assert_string_equal(seen, "GET /x a=- second=b x=-");
}

static void query__names_its_parameters_in_order(void **state)
{
	(void)state;
	ask("GET /x?b");
	assert_string_equal(seen, "GET /x a=- second=- x=-");
	ask("GET /x?a");
	assert_string_equal(seen, "GET /x a= second=- x=-");
	ask("GET /x?&&a=1&b&");
	assert_string_equal(seen, "GET /x a=1 second=b x=-");
	ask("GET /x?");
	assert_string_equal(seen, "GET /x a=- second=- x=-");
}

static void request__over_tcp__sees_no_values(void **state)
{
	struct httpd *tcp = httpd_open_tcp(quick.loop, "127.0.0.1:0", handle, NULL);
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	(void)state;
	assert_non_null(tcp);
	assert_in_range(httpd_port(tcp), 1, 65535);
	assert_int_equal(httpd_port(server), 0);
	a.sin_port = htons((uint16_t)httpd_port(tcp));
	clients[0] = (struct quick_client){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
	assert_int_equal(connect(clients[0].fd, (const struct sockaddr *)&a, sizeof(a)), 0);
	quick_send(&clients[0], "GET /x HTTP/1.1\r\nHost: x\r\n\r\n");
	quick_until(quick_has_answer, &clients[0], 0);
	quick_check_answer(clients[0].text, 200, "X-Tcp: yes");
	assert_non_null(strstr(clients[0].text, "X-Values: no"));
	httpd_close(tcp);
	ask("GET /x"); /* the agent's own user owns all */
	assert_non_null(strstr(clients[0].text, "X-Values: yes"));
}

static void request__that_is_answered_or_forgotten__is_not_gone(void **state)
{
	(void)state;
	quick_connect(&clients[0], path);
	quick_send(&clients[0], "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
	while (!held)
		quick_run();
	httpd_on_gone(held, NULL, NULL);
	httpd_on_gone(held, hold_gone, NULL);
	httpd_reply(held, 200, NULL, "done", 4);
	quick_until(quick_has_answer, &clients[0], 0);
	quick_check_answer(clients[0].text, 200, "done");
	quick_hang_up(&clients[0]);
	held = NULL;
	quick_connect(&clients[1], path);
	quick_send(&clients[1], "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
	while (!held)
		quick_run();
	httpd_on_gone(held, NULL, NULL);
	quick_hang_up(&clients[1]);
	for (int i = 0; i < 10; i++)
		quick_run();
	assert_int_equal(gone, 0);
	httpd_reply(held, 200, NULL, "", 0);
}

/* Its answer would leave an unread rest, which is not taken for the next request. */
static void request__that_is_invalid__ends_the_connection(void **state)
{
	(void)state;
	quick_connect(&clients[0], path);
	quick_send(&clients[0], "GET /a%00b HTTP/1.1\r\nHost: x\r\n\r\n");
	quick_until(quick_has_ended, &clients[0], 0);
	quick_check_answer(clients[0].text, 400, "\r\nConnection: close\r\n");
}

static unsigned gone_elsewhere;

static void note_gone_elsewhere(void *arg)
{
	assert_ptr_equal(arg, &gone_elsewhere);
	gone_elsewhere++;
}

static void request__that_is_watched_again__tells_the_last_one_alone(void **state)
{
	(void)state;
	gone_elsewhere = 0;
	quick_connect(&clients[0], path);
	quick_send(&clients[0], "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
	while (!held)
		quick_run();
	httpd_on_gone(held, note_gone_elsewhere, &gone_elsewhere);
	quick_hang_up(&clients[0]);
	for (unsigned turns = 0; !gone_elsewhere; turns++) {
		assert_true(turns < 1000);
		quick_run();
	}
	assert_int_equal(gone_elsewhere, 1);
	assert_int_equal(gone, 0);
}

static void close__leaves_what_another_put_in_its_place(void **state)
{
	(void)state;
	unlink(path);
	scratch_write(dir, "s", "text", 4);
	assert_int_equal(httpd_restore(server), -EADDRINUSE);
	httpd_close(server);
	server = NULL;
	assert_int_equal(scratch_count(dir, "s"), 1);
}

static void method__that_is_unknown__ends_the_connection(void **state)
{
	(void)state;
	quick_connect(&clients[0], path);
	quick_send(&clients[0], "DELETE /x HTTP/1.1\r\nHost: x\r\n\r\n");
	quick_until(quick_has_ended, &clients[0], 0); /* though it may be kept alive */
	quick_check_answer(clients[0].text, 200, "Connection: close");
	assert_non_null(strstr(seen, "OTHER /x"));
}

static void path__with_a_nul__never_reaches_the_handler(void **state)
{
	(void)state;
	quick_check_answer(ask("GET /a%00b"), 400, "{\"error\":\"invalid path or query\"}\n");
	assert_non_null(strstr(clients[0].text, "\r\nContent-Type: application/json\r\n"));
	quick_check_answer(ask("OPTIONS *"), 400, "{\"error\":\"invalid path or query\"}");
	quick_check_answer(ask("GET /a?b=%00"), 400, "{\"error\":\"invalid path or query\"}");
	quick_check_answer(ask("HEAD /a%00b"), 400, "\r\n\r\n");
	assert_null(strstr(clients[0].text, "{"));
	assert_string_equal(seen, "");
}

/* It would be taken for a request without the parameter. */
static void query__of_a_parameter_without_a_name__never_reaches_the_handler(void **state)
{
	(void)state;
	quick_check_answer(ask("GET /x?=1"), 400, "{\"error\":\"invalid path or query\"}");
	quick_check_answer(ask("GET /x?a=1&=2"), 400, "{\"error\":\"invalid path or query\"}");
	assert_string_equal(seen, "");
}

static void client__that_hangs_up__is_gone(void **state)
{
	(void)state;
	quick_connect(&clients[0], path);
	quick_send(&clients[0], "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
	while (!held)
		quick_run();
	quick_hang_up(&clients[0]);
	while (!gone)
		quick_run();
	assert_int_equal(gone, 1);
	quick_check_answer(ask("GET /x"), 200, "body"); /* and the others are served */
}

static void close__drops_open_requests_in_silence(void **state)
{
	(void)state;
	quick_connect(&clients[0], path);
	quick_send(&clients[0], "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
	while (!held)
		quick_run();
	held = NULL;
	quick_connect(&clients[1], path);
	quick_send(&clients[1], "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
	while (!held)
		quick_run();
	httpd_close(server);
	server = NULL;
	assert_int_equal(gone, 0);
	assert_true(quick_has_ended(&clients[0]) && quick_has_ended(&clients[1]));
	assert_int_equal(access(path, F_OK), -1);
}

/* ---- the socket ---- */

static unsigned count_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void socket__is_restored_unless_another_has_its_place(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	unsigned before = count_descriptors();

	(void)state;
	assert_true(httpd_is_there(server));
	assert_int_equal(httpd_restore(server), 0);
	quick_connect(&clients[1], path);
	quick_run();
	unlink(path);
	assert_false(httpd_is_there(server));
	snprintf(address.sun_path, sizeof(address.sun_path), "%.100s", path);
	assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(httpd_restore(server), -EADDRINUSE);
	close(fd); /* now nobody listens at that file */
	assert_int_equal(httpd_restore(server), 1);
	/* that connection is one more at each end; the socket before is closed, as is fd */
	assert_int_equal(count_descriptors(), before + 1);
	quick_check_answer(ask("GET /new"), 200, "body");
	quick_send(&clients[1], "GET /old HTTP/1.1\r\nHost: x\r\n\r\n");
	quick_until(quick_has_answer, &clients[1], 0);
	quick_check_answer(clients[1].text, 200, ""); /* who was connected still is */
}

static void socket__of_another_device__is_not_its_own(void **state)
{
	(void)state;
	other_device = true;
	assert_false(httpd_is_there(server));
	other_device = false;
	assert_true(httpd_is_there(server));
	unlink(path);
	assert_int_equal(httpd_restore(server), 1);
	assert_true(httpd_is_there(server));
	assert_int_equal(httpd_restore(server), 0);
}

static void socket__at_which_nobody_may_listen__says_so_and_leaves_nothing(void **state)
{
	unsigned before = count_descriptors();

	(void)state;
	quick_connect(&clients[0], path);
	quick_run();
	unlink(path);
	no_listening = true;
	assert_int_equal(httpd_restore(server), -EIO);
	assert_null(httpd_open_unix(quick.loop, path, handle, NULL));
	assert_int_equal(errno, EIO);
	assert_null(httpd_open_tcp(quick.loop, "127.0.0.1:0", handle, NULL));
	assert_int_equal(errno, EIO);
	no_listening = false;
	assert_int_equal(count_descriptors(), before + 2); /* both ends of that connection */
	assert_int_equal(scratch_count(dir, "s"), 0);
	quick_send(&clients[0], "GET /old HTTP/1.1\r\nHost: x\r\n\r\n");
	quick_until(quick_has_answer, &clients[0], 0);
	quick_check_answer(clients[0].text, 200, "");
	assert_int_equal(httpd_restore(server), 1);
	quick_check_answer(ask("GET /x"), 200, "body");
}

static void socket__that_cannot_be__says_why(void **state)
{
	char longer[200];

	(void)state;
	memset(longer, 'a', sizeof(longer) - 1);
	longer[0] = '/';
	longer[sizeof(longer) - 1] = '\0';
	assert_null(httpd_open_unix(quick.loop, longer, handle, NULL));
	assert_int_equal(errno, ENAMETOOLONG);
	assert_null(httpd_open_unix(quick.loop, "/nowhere/at/all", handle, NULL));
	assert_int_equal(errno, ENOENT);
	assert_null(httpd_open_unix(quick.loop, path, handle, NULL)); /* this server has it */
	assert_int_equal(errno, EADDRINUSE);
	assert_true(httpd_is_there(server));
	assert_null(httpd_open_tcp(quick.loop, "127.0.0.1", handle, NULL));
	assert_int_equal(errno, EINVAL);
	assert_null(httpd_open_tcp(quick.loop, "nobody.invalid.:80", handle, NULL));
	assert_int_equal(errno, EINVAL);
}

/* ---- bounds ---- */

static void clients__above_the_bound__wait_until_one_goes(void **state)
{
	uint64_t begin_ms = quick_now_ms();

	(void)state;
	httpd_limit(server, 2, HTTPD_QUEUED);
	for (size_t i = 0; i < 3; i++)
		quick_connect(&clients[i], path);
	quick_send(&clients[0], "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
	while (!held)
		quick_run();
	quick_send(&clients[2], "GET /third HTTP/1.1\r\nHost: x\r\n\r\n");
	for (int i = 0; i < 20; i++)
		quick_run();
	assert_string_equal(seen, "GET /hold a=- second=- x=-");
	/* the idle one is late after half a second, since others wait; the one that thinks is not
	 */
	quick_until(quick_has_ended, &clients[1], 20);
	assert_in_range(quick_now_ms() - begin_ms, 500, 25000);
	for (unsigned turns = 0; !quick_has_answer(&clients[2]); turns++) {
		assert_in_range(turns, 0, 10); /* its place is free at once */
		quick_run();
	}
	quick_check_answer(clients[2].text, 200, "");
	assert_false(quick_has_ended(&clients[0]));
	httpd_reply(held, 200, NULL, "", 0);
	quick_until(quick_has_answer, &clients[0], 0);
}

static void descriptors__that_are_short__are_not_asked_for_again_at_once(void **state)
{
	(void)state;
	accepts = 0;
	no_descriptors = true;
	quick_connect(&clients[0], path);
	for (int i = 0; i < 10; i++)
		quick_run();
	no_descriptors = false;
	assert_in_range(accepts, 1, 2);
	quick_send(&clients[0], "GET /x HTTP/1.1\r\nHost: x\r\n\r\n");
	quick_until(quick_has_answer, &clients[0], 0); /* but in a moment */
	quick_check_answer(clients[0].text, 200, "body");
}

static void connection__without_memory__is_answered_503_and_takes_no_place(void **state)
{
	(void)state;
	httpd_limit(server, 1, HTTPD_QUEUED);
	no_connection = true;
	quick_check_answer(ask("GET /x"), 503, "no memory left");
	no_connection = false;
	quick_check_answer(ask("GET /x"), 200, "body");
}

static void answer__without_memory_for_its_body__has_none(void **state)
{
	static const struct {
		const char *request;
		int status;
	} rows[] = {{"GET /a%00b", 400}, {"GET /x", 503}};
	char text[128];

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		quick_connect(&clients[i], path);
		quick_run(); /* what libevent needs by itself is there */
		snprintf(text, sizeof(text), "%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
			rows[i].request);
		no_body = true;
		quick_send(&clients[i], text);
		quick_until(quick_has_ended, &clients[i], 0);
		no_body = false;
		quick_check_answer(clients[i].text, rows[i].status, "Content-Length: 0\r\n");
	}
}

static void client__that_sends_no_request__is_dropped_after_30_s(void **state)
{
	uint64_t begin_ms;

	(void)state;
	quick_connect(&clients[0], path);
	quick_send(&clients[0], "GET /slow");
	quick_run();
	begin_ms = quick_now_ms();
	while (quick_now_ms() < begin_ms + 29000) {
		quick_run();
		quick.skipped_ms += 1000;
		assert_false(quick_has_ended(&clients[0]));
	}
	quick_until(quick_has_ended, &clients[0], 1000);
	assert_string_equal(seen, "");
}

/* The client's request is answered with much that it does not read. */
static void answer_large(size_t i)
{
	held = NULL;
	quick_send(&clients[i], "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
	while (!held)
		quick_run();
	httpd_reply(held, 200, NULL, large, sizeof(large));
	quick_run();
}

static void answers__that_are_not_read__are_bounded(void **state)
{
	(void)state;
	httpd_limit(server, 8, sizeof(large) + 10);
	quick_connect(&clients[0], path);
	quick_connect(&clients[1], path);
	answer_large(0);
	answer_large(1);
	quick_until(quick_has_answer, &clients[1], 0);
	quick_check_answer(clients[1].text, 503, "Content-Length: 66\r\n");
	assert_non_null(strstr(clients[1].text, "\r\nContent-Type: application/json\r\n"));
	assert_string_equal(strstr(clients[1].text, "\r\n\r\n") + 4,
		"{\"error\":\"no memory left, or too many unread answers: try again\"}\n");
	assert_int_equal(clients[1].len, strlen(clients[1].text)); /* not a byte behind it */
	quick_until(quick_has_answer, &clients[0], 0);
	quick_check_answer(clients[0].text, 200, "");
}

/* For so many seconds; that client reads meanwhile, slowly. */
static void pass_seconds(int seconds, struct quick_client *reader)
{
	for (int i = 0; i < seconds; i++) {
		quick.skipped_ms += 1000;
		reader->len = 0;
		quick_receive(reader);
		reader->len = 0;
		quick_run();
	}
}

static void answers__of_which_nothing_is_read__make_room_for_others(void **state)
{
	(void)state;
	ticks = true;
	httpd_limit(server, 8, 2 * sizeof(large) + 10);
	for (size_t i = 0; i < 4; i++)
		quick_connect(&clients[i], path);
	answer_large(0);
	answer_large(1);
	pass_seconds(4, &clients[1]);
	answer_large(2);
	quick_until(quick_has_answer, &clients[2], 0);
	quick_check_answer(clients[2].text, 503, "");
	pass_seconds(2, &clients[1]);
	answer_large(3);
	quick_until(quick_has_answer, &clients[3], 0);
	quick_check_answer(clients[3].text, 200, "");
	quick_until(quick_has_ended, &clients[0], 0); /* it had read nothing */
	assert_false(quick_has_ended(&clients[1]));
}

static void answer__of_which_nothing_is_read__gives_its_place_to_others(void **state)
{
	uint64_t begin_ms;

	(void)state;
	ticks = true;
	httpd_limit(server, 2, HTTPD_QUEUED);
	for (size_t i = 0; i < 3; i++)
		quick_connect(&clients[i], path);
	answer_large(0);
	answer_large(1);
	begin_ms = quick_now_ms();
	quick_send(&clients[2], "GET /third HTTP/1.1\r\nHost: x\r\n\r\n");
	while (!quick_has_answer(&clients[2]))
		pass_seconds(1, &clients[1]);
	assert_in_range(quick_now_ms() - begin_ms, 5000, 7500);
	quick_until(quick_has_ended, &clients[0], 0);
	assert_false(quick_has_ended(&clients[1]));
}

/* Reads a large answer to its end. */
static void drain(size_t i)
{
	struct quick_client *c = &clients[i];
	size_t len, whole;

	quick_until(quick_has_answer, c, 0);
	len = c->len;
	whole = (size_t)(strstr(c->text, "\r\n\r\n") + 4 - c->text) + sizeof(large);
	for (; len < whole; len += c->len) {
		c->len = 0;
		quick_receive(c);
		quick_run();
	}
	c->len = 0;
}

static void answers__that_were_read_or_given_up__count_no_more(void **state)
{
	(void)state;
	httpd_limit(server, 8, sizeof(large));
	for (size_t i = 0; i < 3; i++)
		quick_connect(&clients[i], path);
	answer_large(0);
	drain(0);
	answer_large(1);
	quick_until(quick_has_answer, &clients[1], 0);
	quick_check_answer(clients[1].text, 200, "");
	quick_hang_up(&clients[1]);
	clients[3].fd = -1;
	quick_ask(&clients[3], path, "GET /x"); /* by then it is gone */
	answer_large(2);
	quick_until(quick_has_answer, &clients[2], 0);
	quick_check_answer(clients[2].text, 200, "");
	answer_large(0); /* and that of the first one counts */
	quick_until(quick_has_answer, &clients[0], 0);
	quick_check_answer(clients[0].text, 503, "");
}

/* ---- shares ---- */

/* Connects as another user. */
static void connect_as(size_t i, uid_t uid)
{
	assert_int_equal(seteuid(uid), 0);
	quick_connect(&clients[i], path);
	assert_int_equal(seteuid(0), 0);
}

static void need_root(void)
{
	if (geteuid() == 0)
		return;
	print_message("# another user needs root\n");
	skip();
}

static void operator__sees_values(void **state)
{
	const gid_t group = STRANGER + 9, root = 0;

	(void)state;
	need_root();
	assert_int_equal(setgroups(1, &root), 0); /* nobody operates yet */
	connect_as(1, STRANGER);
	quick_send(&clients[1], "GET /x HTTP/1.1\r\nHost: x\r\n\r\n");
	quick_until(quick_has_answer, &clients[1], 0);
	quick_check_answer(clients[1].text, 200, "X-Values: no\r\n");
	assert_int_equal(setgroups(1, &group), 0);
	for (int operators = 0; operators < 2; operators++) {
		if (operators)
			httpd_operators(server, group);
		connect_as(0, STRANGER);
		quick_send(&clients[0], "GET /x HTTP/1.1\r\nHost: x\r\n\r\n");
		quick_until(quick_has_answer, &clients[0], 0);
		quick_check_answer(
			clients[0].text, 200, operators ? "X-Values: yes\r\n" : "X-Values: no\r\n");
		quick_hang_up(&clients[0]);
	}
	assert_int_equal(setgroups(0, NULL), 0);
}

static void user__above_its_quarter__gets_503_and_others_do_not(void **state)
{
	(void)state;
	need_root();
	httpd_limit(server, CLIENTS, HTTPD_QUEUED);
	httpd_share(server, count_denied, NULL);
	for (size_t i = 0; i <= CLIENTS / 4; i++) {
		connect_as(i, STRANGER);
		quick_run();
	}
	assert_int_equal(denied, 1);
	assert_int_equal(denied_uid, STRANGER);
	quick_send(&clients[CLIENTS / 4], "GET /x HTTP/1.1\r\nHost: x\r\n\r\n");
	quick_until(quick_has_ended, &clients[CLIENTS / 4], 0);
	quick_check_answer(clients[CLIENTS / 4].text, 503,
		"this user has all the connections that one user may have: end some");
	assert_string_equal(seen, "");
	quick_send(&clients[0], "GET /x HTTP/1.1\r\nHost: x\r\n\r\n");
	quick_until(quick_has_answer, &clients[0], 0);
	quick_check_answer(clients[0].text, 200, "");
	connect_as(10, STRANGER + 1);
	quick_send(&clients[10], "GET /x HTTP/1.1\r\nHost: x\r\n\r\n");
	quick_until(quick_has_answer, &clients[10], 0);
	quick_check_answer(clients[10].text, 200, "");
}

static void idle_connection__gives_its_place_to_a_new_one_of_its_user(void **state)
{
	(void)state;
	need_root();
	httpd_limit(server, CLIENTS, HTTPD_QUEUED);
	httpd_share(server, count_denied, NULL);
	for (size_t i = 0; i < CLIENTS / 4; i++) {
		connect_as(i, STRANGER);
		quick_run();
		quick.skipped_ms += 10;
	}
	quick.skipped_ms += 600; /* all are idle now, the first the longest */
	connect_as(5, STRANGER);
	quick_until(quick_has_ended, &clients[0], 0);
	assert_string_equal(clients[0].text, "");
	assert_int_equal(denied, 0);
	quick_send(&clients[5], "GET /x HTTP/1.1\r\nHost: x\r\n\r\n");
	quick_until(quick_has_answer, &clients[5], 0);
	quick_check_answer(clients[5].text, 200, "");
	assert_false(quick_has_ended(&clients[1]));
}

static uint64_t stopped_ms;

static uint64_t stopped_clock(void)
{
	return stopped_ms;
}

/* So many of a user, one after the other. Returns when the first one came. */
static uint64_t connect_idle_ones(void)
{
	uint64_t first_ms = stopped_ms = quick_now_ms();

	need_root();
	quick.sys.now_ms = stopped_clock;
	httpd_limit(server, CLIENTS, HTTPD_QUEUED);
	httpd_share(server, count_denied, NULL);
	for (size_t i = 0; i < CLIENTS / 4; i++) {
		connect_as(i, STRANGER);
		quick_run();
		stopped_ms += 10;
	}
	return first_ms;
}

static void connection__is_idle_after_half_a_second(void **state)
{
	(void)state;
	stopped_ms = connect_idle_ones() + 499;
	connect_as(5, STRANGER);
	quick_run();
	assert_int_equal(denied, 1);
	for (size_t i = 0; i < CLIENTS / 4; i++)
		assert_false(quick_has_ended(&clients[i]));
	stopped_ms++;
	connect_as(6, STRANGER);
	quick_run();
	assert_int_equal(denied, 1);
	quick_until(quick_has_ended, &clients[0], 0);
	assert_string_equal(clients[0].text, "");
	assert_false(quick_has_ended(&clients[1]));
}

static void idle_connections__give_a_place_each_and_those_at_work_none(void **state)
{
	(void)state;
	connect_idle_ones();
	quick_send(&clients[0], "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
	while (!held)
		quick_run();
	stopped_ms += 600;
	connect_as(5, STRANGER);
	connect_as(6, STRANGER);
	quick_until(quick_has_ended, &clients[1], 0);
	quick_until(quick_has_ended, &clients[2], 0);
	assert_int_equal(denied, 0);
	assert_false(quick_has_ended(&clients[0]));
	httpd_reply(held, 200, NULL, "", 0);
	quick_until(quick_has_answer, &clients[0], 0);
	quick_check_answer(clients[0].text, 200, "");
}

static void readers__leave_places_for_root(void **state)
{
	size_t n = 0;

	(void)state;
	need_root();
	httpd_limit(server, CLIENTS, HTTPD_QUEUED);
	httpd_share(server, count_denied, NULL);
	for (uid_t user = 0; user < 3; user++)
		for (size_t i = 0; i < CLIENTS / 4 && n < CLIENTS * 5 / 8; i++, n++) {
			connect_as(n, STRANGER + user);
			quick_run();
		}
	assert_int_equal(denied, 0);
	connect_as(n, STRANGER + 3);
	quick_run();
	assert_int_equal(denied, 1);
	quick_until(quick_has_ended, &clients[n], 100); /* without a request, too */
	quick_check_answer(clients[n].text, 503, "other users have all the connections but");
	quick_check_answer(quick_ask(&clients[CLIENTS + 7], path, "GET /root"), 200, "body");
}

static void busy_connections__are_few__and_the_oldest_ends(void **state)
{
	enum { SHARE = CLIENTS / 4, BUSY = CLIENTS / 8 };

	(void)state;
	need_root();
	httpd_limit(server, CLIENTS, HTTPD_QUEUED);
	httpd_share(server, count_denied, NULL);
	for (size_t i = 0; i < SHARE + BUSY; i++) {
		connect_as(i, STRANGER);
		quick_run();
	}
	assert_int_equal(denied, BUSY);
	quick_until(quick_has_ended, &clients[SHARE], 0); /* at once: it is the oldest */
	quick_check_answer(clients[SHARE].text, 503, "this user has all the connections");
	assert_false(quick_has_ended(&clients[SHARE + BUSY - 1]));
}

static void answer__above_a_users_share__is_503(void **state)
{
	(void)state;
	need_root();
	httpd_limit(server, CLIENTS, 2 * sizeof(large));
	httpd_share(server, count_denied, NULL);
	connect_as(0, STRANGER);
	connect_as(1, STRANGER);
	answer_large(0); /* the first is never denied for its size */
	assert_int_equal(denied, 0);
	answer_large(1);
	assert_int_equal(denied, 1);
	quick_until(quick_has_answer, &clients[0], 0);
	quick_check_answer(clients[0].text, 200, "");
	quick_until(quick_has_answer, &clients[1], 0);
	quick_check_answer(clients[1].text, 503, "");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(request__reaches_the_handler_decoded),
		CASE(head_and_304__have_no_body),
		CASE(answer__of_http_1_0__says_its_length_once),
		CASE(request__larger_than_the_bounds__never_reaches_the_handler),
		CASE(method__of_any_kind__reaches_the_handler),
		CASE(answer__of_each_status__has_its_reason),
		CASE(connection__carries_one_request_after_the_other),
		CASE(query__of_many_parameters_without_a_value__names_each),
		CASE(query__names_its_parameters_in_order),
		CASE(request__over_tcp__sees_no_values),
		CASE(request__that_is_answered_or_forgotten__is_not_gone),
		CASE(request__that_is_watched_again__tells_the_last_one_alone),
		CASE(request__that_is_invalid__ends_the_connection),
		CASE(close__leaves_what_another_put_in_its_place),
		CASE(method__that_is_unknown__ends_the_connection),
		CASE(path__with_a_nul__never_reaches_the_handler),
		CASE(query__of_a_parameter_without_a_name__never_reaches_the_handler),
		CASE(client__that_hangs_up__is_gone),
		CASE(close__drops_open_requests_in_silence),
		CASE(socket__is_restored_unless_another_has_its_place),
		CASE(socket__at_which_nobody_may_listen__says_so_and_leaves_nothing),
		CASE(socket__of_another_device__is_not_its_own),
		CASE(socket__that_cannot_be__says_why),
		CASE(clients__above_the_bound__wait_until_one_goes),
		CASE(descriptors__that_are_short__are_not_asked_for_again_at_once),
		CASE(connection__without_memory__is_answered_503_and_takes_no_place),
		CASE(answer__without_memory_for_its_body__has_none),
		CASE(client__that_sends_no_request__is_dropped_after_30_s),
		CASE(answers__that_are_not_read__are_bounded),
		CASE(answers__of_which_nothing_is_read__make_room_for_others),
		CASE(answer__of_which_nothing_is_read__gives_its_place_to_others),
		CASE(answers__that_were_read_or_given_up__count_no_more),
		CASE(operator__sees_values),
		CASE(user__above_its_quarter__gets_503_and_others_do_not),
		CASE(idle_connection__gives_its_place_to_a_new_one_of_its_user),
		CASE(connection__is_idle_after_half_a_second),
		CASE(idle_connections__give_a_place_each_and_those_at_work_none),
		CASE(readers__leave_places_for_root),
		CASE(busy_connections__are_few__and_the_oldest_ends),
		CASE(answer__above_a_users_share__is_503),
	};

	signal(SIGPIPE, SIG_IGN); /* as the programs do */
	return cmocka_run_group_tests(tests, NULL, NULL);
}

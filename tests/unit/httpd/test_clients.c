/*
 * The connections of a server: when each is taken on, dropped or denied, to the millisecond. The
 * clock stands, and the tick comes when the test says so. Other users are this process with another
 * effective uid when it connects (root only).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <grp.h>
#include <linux/sockios.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "httpd/server.h"
#include "tests/unit/fixture/quick_loop.h"
#include "tests/unit/fixture/scratch.h"

#define STRANGER 54321u
#define OPERATORS 54400u
#define MOST 72
#define SOON_MS 250
#define LATER_MS 86400000

static char dir[SCRATCH_PATH], path[SCRATCH_PATH + 16];
static struct httpd *server;
static struct quick_client clients[MOST];
static struct httpd_request *held[MOST];
static size_t held_count;
static unsigned gone, denied, accepts;
static uint64_t clock_ms;
static char large[1u << 20]; /* more than a socket takes unread */

/* ---- what the test plays ---- */

static struct event *tick;
static uint64_t tick_ms; /* so long after it was set */

int event_add(struct event *e, const struct timeval *after)
{
	int (*real)(struct event *, const struct timeval *);

	*(void **)&real = dlsym(RTLD_NEXT, "event_add");
	if (e != quick.turn && event_get_fd(e) == -1 && after) {
		tick = e;
		tick_ms = (uint64_t)after->tv_sec * 1000 + (uint64_t)after->tv_usec / 1000;
	}
	return real(e, after);
}

static bool no_descriptors, stops_after_accept;

int accept4(int fd, struct sockaddr *address, socklen_t *len, int flags)
{
	int r = no_descriptors ? -1 : (int)syscall(SYS_accept4, fd, address, len, flags);

	if (no_descriptors)
		errno = EMFILE;
	if (stops_after_accept)
		loop_stop(quick.loop);
	accepts += r >= 0 || errno != EAGAIN;
	return r;
}

static uint64_t stopped_clock(void)
{
	return clock_ms;
}

static void request_gone(void *arg)
{
	(void)arg;
	gone++;
}

static void handle(void *arg, struct httpd_request *r)
{
	(void)arg;
	held[held_count++] = r;
	if (strcmp(httpd_path(r), "/watched") == 0)
		httpd_on_gone(r, request_gone, NULL);
}

static void count_denied(void *arg, const struct peer *peer)
{
	(void)arg, (void)peer;
	denied++;
}

static int set_up(void **state)
{
	(void)state;
	alarm(20);
	memset(large, 'x', sizeof(large));
	gone = denied = accepts = 0;
	held_count = 0;
	clock_ms = 1000000;
	scratch_open(dir, scratch_memory());
	chmod(dir, 0711);
	snprintf(path, sizeof(path), "%s/s", dir);
	quick_open();
	quick.sys.now_ms = stopped_clock;
	server = httpd_open_unix(quick.loop, path, handle, NULL);
	assert_non_null(server);
	chmod(path, 0666);
	for (size_t i = 0; i < MOST; i++)
		clients[i].fd = -1;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	no_descriptors = stops_after_accept = false;
	for (size_t i = 0; i < MOST; i++)
		quick_hang_up(&clients[i]);
	httpd_close(server);
	quick_close();
	scratch_close(dir);
	return 0;
}

/* ---- what the test does ---- */

static void tick_now(void)
{
	event_active(tick, EV_TIMEOUT, 1);
	quick_run();
}

static void go_on(uint64_t ms)
{
	clock_ms += ms;
	tick_now();
}

/* A connection is accepted in one turn, and taken on in the same or the next one. */
static void take_on(void)
{
	quick_run();
	quick_run();
}

static void come(size_t i)
{
	quick_connect(&clients[i], path);
	take_on();
}

static void leave(size_t i)
{
	quick_hang_up(&clients[i]);
	quick_run();
}

/* Sends a request and waits until the handler has it. */
static struct httpd_request *request_of(size_t i, const char *line)
{
	size_t before = held_count;
	char text[128];

	snprintf(text, sizeof(text), "%s HTTP/1.1\r\nHost: x\r\n\r\n", line);
	quick_send(&clients[i], text);
	for (unsigned turns = 0; held_count == before; turns++) {
		assert_true(turns < 1000);
		quick_run();
	}
	return held[before];
}

static bool has_ended(size_t i)
{
	return quick_has_ended(&clients[i]);
}

static void check_status(size_t i, int status)
{
	for (unsigned turns = 0; !quick_has_answer(&clients[i]); turns++) {
		assert_true(turns < 1000);
		quick_run();
	}
	quick_check_answer(clients[i].text, status, "");
}

/* ---- the tick ---- */

static void tick__is_soon_while_a_connection_may_be_late(void **state)
{
	struct httpd_request *first, *second;

	(void)state;
	assert_int_equal(tick_ms, LATER_MS);
	come(0);
	assert_int_equal(tick_ms, SOON_MS);
	first = request_of(0, "GET /");
	tick_now();
	assert_int_equal(tick_ms, LATER_MS); /* the handler takes its time */
	come(1);
	assert_int_equal(tick_ms, SOON_MS);
	tick_now(); /* the newer one reads */
	assert_int_equal(tick_ms, SOON_MS);
	second = request_of(1, "GET /");
	tick_now();
	assert_int_equal(tick_ms, LATER_MS);
	httpd_reply(first, 200, NULL, large, sizeof(large));
	assert_int_equal(tick_ms, SOON_MS);
	tick_now(); /* the older one writes */
	assert_int_equal(tick_ms, SOON_MS);
	leave(0);
	tick_now();
	assert_int_equal(tick_ms, LATER_MS);
	httpd_reply(second, 200, NULL, "", 0);
	check_status(1, 200);
	tick_now();
	assert_int_equal(tick_ms, SOON_MS); /* the next request may be slow */
	leave(1);
	tick_now();
	assert_int_equal(tick_ms, LATER_MS);
}

static void tick__is_soon_while_others_wait(void **state)
{
	struct httpd_request *r;

	(void)state;
	httpd_limit(server, 1, HTTPD_QUEUED);
	come(0);
	r = request_of(0, "GET /");
	tick_now();
	assert_int_equal(tick_ms, SOON_MS);
	httpd_reply(r, 200, NULL, "", 0);
	check_status(0, 200);
	come(1);
	assert_int_equal(accepts, 1);
	leave(0);
	tick_now();
	assert_int_equal(accepts, 2);
}

/* ---- who is too slow ---- */

static void connection__without_a_whole_request__ends_after_30_s(void **state)
{
	(void)state;
	come(0);
	come(1);
	quick_send(&clients[1], "GET /slow");
	go_on(29999);
	assert_false(has_ended(0) || has_ended(1));
	go_on(1);
	assert_true(has_ended(0) && has_ended(1));
	assert_int_equal(clients[0].len + clients[1].len, 0);
}

static void connection__after_an_answer__has_30_s_again(void **state)
{
	(void)state;
	come(0);
	go_on(20000);
	httpd_reply(request_of(0, "GET /"), 200, NULL, "", 0);
	check_status(0, 200);
	go_on(29999);
	assert_false(has_ended(0));
	go_on(1);
	assert_true(has_ended(0));
}

static void answer__that_is_not_read__ends_its_connection_by_its_length(void **state)
{
	(void)state;
	httpd_limit(server, 1, HTTPD_QUEUED); /* which is of no account to it */
	come(0);
	go_on(10000 - 9501);
	httpd_reply(request_of(0, "GET /"), 200, NULL, large, sizeof(large));
	quick_run();
	go_on(30000 + sizeof(large) / 32 - 1);
	assert_false(has_ended(0));
	go_on(1);
	for (unsigned turns = 0; !has_ended(0); turns++) { /* behind what has come */
		assert_true(turns < 1000);
		clients[0].len = 0;
	}
}

static void handler__has_all_the_time_it_wants(void **state)
{
	struct httpd_request *r;

	(void)state;
	httpd_limit(server, 1, HTTPD_QUEUED);
	come(0);
	r = request_of(0, "GET /watched");
	go_on(864000000);
	assert_false(has_ended(0));
	assert_int_equal(gone, 0);
	httpd_reply(r, 200, NULL, "", 0);
	check_status(0, 200);
}

static void connection__while_others_wait__has_half_a_second(void **state)
{
	(void)state;
	httpd_limit(server, 2, HTTPD_QUEUED);
	come(0);
	go_on(500);
	assert_false(has_ended(0)); /* there is a place */
	go_on(20000);
	come(1);
	assert_true(has_ended(0)); /* now the last one is taken */
	go_on(499);
	assert_false(has_ended(1));
	come(2);
	go_on(0);
	go_on(1);
	assert_true(has_ended(1));
	assert_false(has_ended(2));
}

/* ---- bytes that are not read ---- */

static void answers__of_the_bound_together__go_out_and_no_byte_more(void **state)
{
	struct httpd_request *r[4];

	(void)state;
	httpd_limit(server, 8, 2000);
	for (size_t i = 0; i < 4; i++) {
		come(i);
		r[i] = request_of(i, i ? "GET /" : "HEAD /");
	}
	httpd_reply(r[0], 200, NULL, large, sizeof(large)); /* of which nothing goes out */
	httpd_reply(r[1], 200, NULL, large, 1000);
	httpd_reply(r[2], 200, NULL, large, 1000);
	httpd_reply(r[3], 200, NULL, large, 1);
	for (size_t i = 0; i < 4; i++)
		check_status(i, i == 3 ? 503 : 200);
}

static void answers__are_bounded_from_the_start(void **state)
{
	size_t len = 40u << 20;
	char *body = calloc(1, len);
	struct httpd_request *r[2];

	(void)state;
	assert_non_null(body);
	for (size_t i = 0; i < 2; i++) {
		come(i);
		r[i] = request_of(i, "GET /");
	}
	httpd_reply(r[0], 200, NULL, body, len);
	httpd_reply(r[1], 200, NULL, body, len);
	free(body);
	check_status(0, 200);
	check_status(1, 503);
}

/* Bytes that were sent and have not been read. */
static int unread_of(size_t i)
{
	int n = -1;

	assert_int_equal(ioctl(clients[i].fd, SIOCOUTQ, &n), 0);
	return n;
}

static void client__that_gets_an_answer__is_not_read_meanwhile_nor_gone(void **state)
{
	size_t len = 0;

	(void)state;
	come(0);
	httpd_reply(request_of(0, "GET /watched"), 200, NULL, large, sizeof(large));
	quick_run();
	assert_int_equal(unread_of(0), 0);
	quick_send(&clients[0], "GET /next HTTP/1.1\r\nHost: x\r\n\r\n");
	for (int i = 0; i < 5; i++)
		quick_run();
	assert_true(unread_of(0) > 0);
	shutdown(clients[0].fd, SHUT_WR); /* it has no more to ask */
	for (unsigned turns = 0; len < sizeof(large); turns++) {
		assert_true(turns < 10000);
		clients[0].len = 0;
		quick_receive(&clients[0]);
		len += clients[0].len;
		quick_run();
	}
	assert_int_equal(gone, 0);
	while (held_count < 2) /* but afterwards */
		quick_run();
	assert_string_equal(httpd_path(held[1]), "/next");
	httpd_reply(held[1], 200, NULL, "", 0);
}

static void client__that_hangs_up_during_an_answer__is_not_gone(void **state)
{
	(void)state;
	come(0);
	httpd_reply(request_of(0, "GET /watched"), 200, NULL, large, sizeof(large));
	quick_run();
	leave(0);
	for (int i = 0; i < 5; i++)
		quick_run();
	assert_int_equal(gone, 0);
}

/* That has no more to ask, which is seen before the answer is out. */
static void client__that_ends_its_half_at_once__gets_its_answer(void **state)
{
	static const char *const lines[] = {"/a%00b", "/"};
	char text[128];

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		quick_connect(&clients[i], path);
		snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", lines[i]);
		quick_send(&clients[i], text);
		shutdown(clients[i].fd, SHUT_WR);
		while (i == 1 && held_count == 0)
			quick_run();
		if (i == 1)
			httpd_reply(held[0], 200, NULL, "", 0);
		check_status(i, i ? 200 : 400);
	}
}

/* libevent looks for the end of that line, however long it is. */
static void chunk__whose_length_never_ends__is_not_read_for_ever(void **state)
{
	static const char begin[] =
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
	size_t sent = 0;
	unsigned idle = 0;

	(void)state;
	memset(large, '0', sizeof(large));
	come(0);
	quick_send(&clients[0], begin);
	while (idle < 5) {
		ssize_t n = send(clients[0].fd, large, 65536, MSG_DONTWAIT | MSG_NOSIGNAL);

		sent += n > 0 ? (size_t)n : 0;
		idle = n > 0 ? 0 : idle + 1;
		assert_true(sent < 8u << 20);
		quick_run();
	}
	assert_false(has_ended(0));
	assert_int_equal(held_count, 0);
}

/* ---- accepting ---- */

static void socket__that_is_restored__accepts_nobody_where_no_place_is_free(void **state)
{
	(void)state;
	httpd_limit(server, 1, HTTPD_QUEUED);
	come(0);
	request_of(0, "GET /");
	unlink(path);
	assert_int_equal(httpd_restore(server), 1);
	accepts = 0;
	come(1);
	assert_int_equal(accepts, 0);
	tick_now();
	assert_int_equal(accepts, 0);
	httpd_reply(held[0], 200, NULL, "", 0);
	check_status(0, 200);
	leave(0);
	tick_now();
	assert_int_equal(accepts, 1);
	httpd_reply(request_of(1, "GET /"), 200, NULL, "", 0);
	check_status(1, 200);
}

static void descriptors__that_are_short__stop_that_server_until_the_tick(void **state)
{
	struct event *own = tick, *others;
	char other_path[SCRATCH_PATH + 16];
	struct httpd *other;

	(void)state;
	snprintf(other_path, sizeof(other_path), "%s/other", dir);
	other = httpd_open_unix(quick.loop, other_path, handle, NULL);
	others = tick;
	no_descriptors = true;
	come(0);
	quick_run();
	no_descriptors = false;
	assert_int_equal(accepts, 1);
	assert_ptr_equal(tick, own);
	assert_int_equal(tick_ms, SOON_MS);
	quick_connect(&clients[1], other_path);
	quick_run();
	assert_int_equal(accepts, 2);
	assert_ptr_equal(tick, others);
	tick = own;
	tick_now();
	assert_int_equal(accepts, 3);
	httpd_close(other);
	assert_true(has_ended(1));
}

/* ---- shares ---- */

/* Connects as a user, as a member of the operators or not. */
static void connect_as(size_t i, uid_t uid, bool operates)
{
	const gid_t group = operates ? OPERATORS : STRANGER;

	assert_int_equal(setgroups(1, &group), 0);
	assert_int_equal(seteuid(uid), 0);
	quick_connect(&clients[i], path);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(setgroups(0, NULL), 0);
}

/* The same, and some milliseconds pass. */
static void come_as(size_t i, uid_t uid, bool operates)
{
	connect_as(i, uid, operates);
	take_on();
	clock_ms += 3;
}

static void share_places(size_t max)
{
	if (geteuid() != 0) {
		print_message("# another user needs root\n");
		skip();
	}
	httpd_limit(server, max, HTTPD_QUEUED);
	httpd_share(server, count_denied, NULL);
	httpd_operators(server, OPERATORS);
}

/* Which of them have ended, as numbers. */
static void assert_ended(size_t count, const char *expected)
{
	char said[256] = "";

	for (size_t i = 0; i < count; i++)
		if (has_ended(i))
			snprintf(said + strlen(said), sizeof(said) - strlen(said), " %zu", i);
	assert_string_equal(said, expected);
}

/* Root first, then two operators, then ten readers of three users. */
static void fill_places(void)
{
	share_places(16);
	come_as(0, 0, false);
	for (size_t i = 1; i < 13; i++)
		come_as(i, i < 3 ? STRANGER : STRANGER + 1 + (uid_t)(i - 3) / 4, i < 3);
	assert_int_equal(denied, 0);
}

static void place__for_a_reader__is_that_of_the_reader_who_is_longest_idle(void **state)
{
	(void)state;
	fill_places();
	clock_ms += 500;
	come_as(13, STRANGER + 9, false);
	assert_ended(14, " 3");
	come_as(13 + 1, STRANGER + 9, false);
	assert_ended(15, " 3 4");
	assert_int_equal(denied, 0);
}

static void place__for_an_operator__is_that_of_a_reader_first(void **state)
{
	(void)state;
	fill_places();
	clock_ms += 500;
	come_as(13, STRANGER + 9, true);
	assert_ended(14, " 3");
	assert_int_equal(denied, 0);
}

static void place__for_an_operator__is_that_of_another_where_no_reader_is_idle(void **state)
{
	(void)state;
	fill_places();
	for (size_t i = 3; i < 13; i++)
		request_of(i, "GET /");
	clock_ms += 500;
	come_as(13, STRANGER + 9, true);
	assert_ended(14, " 1");
	come_as(14, STRANGER + 10, false); /* a reader gets none of theirs */
	assert_int_equal(denied, 1);
	assert_ended(15, " 1");
	for (size_t i = 0; i < 10; i++)
		httpd_reply(held[i], 200, NULL, "", 0);
}

static void place__above_a_users_share__is_one_of_that_user(void **state)
{
	(void)state;
	share_places(16);
	come_as(0, STRANGER + 1, false);
	for (size_t i = 1; i < 5; i++)
		come_as(i, STRANGER, true);
	clock_ms += 500;
	come_as(5, STRANGER, true);
	assert_ended(6, " 1");
	assert_int_equal(denied, 0);
}

static const char denied_whole[] =
	"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
	"Content-Length: 93\r\nConnection: close\r\n\r\n"
	"{\"error\":\"this user has all the connections that one user may have: end some, or try "
	"again\"}\n";

/* 16 have a place, two are busy. */
static void fill_and_deny(void)
{
	share_places(64);
	for (size_t i = 0; i < 18; i++)
		come_as(i, STRANGER, false);
	assert_int_equal(denied, 2);
	assert_ended(18, "");
}

static void busy_connection__ends_for_a_newer_one_of_its_user(void **state)
{
	(void)state;
	fill_and_deny();
	come_as(18, STRANGER, false);
	assert_int_equal(denied, 3);
	assert_ended(19, " 16");
	assert_string_equal(clients[16].text, denied_whole);
	connect_as(19, STRANGER, false); /* both at once */
	connect_as(20, STRANGER, false);
	take_on();
	assert_int_equal(denied, 5);
	assert_ended(21, " 16 17 18");
	come_as(21, STRANGER + 1, false);
	assert_int_equal(denied, 5);
	httpd_reply(request_of(21, "GET /"), 200, NULL, "", 0);
	check_status(21, 200);
}

static void busy_connection__without_a_request__ends_after_half_a_second(void **state)
{
	(void)state;
	fill_and_deny();
	go_on(500 - 3 - 1); /* the last one came 3 ms ago */
	assert_ended(18, " 16");
	assert_string_equal(clients[16].text, denied_whole);
	go_on(1);
	assert_ended(18, " 16 17");
}

static void busy_connections__of_all_users__are_an_eighth(void **state)
{
	size_t n = 0;

	(void)state;
	share_places(64);
	for (uid_t user = 0; user < 3; user++)
		for (size_t i = 0; i < 16 && n < 40; i++)
			come_as(n++, STRANGER + user, false);
	assert_int_equal(denied, 0);
	for (uid_t user = 3; user < 8; user++)
		come_as(n++, STRANGER + user, false);
	assert_int_equal(denied, 5);
	assert_ended(n, "");
	come_as(n++, STRANGER + 8, false);
	assert_int_equal(denied, 6);
	httpd_share(server, NULL, NULL); /* nobody counts any more */
	come_as(n++, STRANGER + 9, false);
	assert_int_equal(denied, 6);
	assert_ended(n, " 45 46");
	quick_check_answer(clients[45].text, 503,
		"{\"error\":\"other users have all the connections but those that are kept for "
		"root: try again in a second\"}\n");
}

/* It is as old as that when it is looked at for the first time, and yet not idle. */
static void connection__that_waited_for_the_loop__does_not_end_itself(void **state)
{
	(void)state;
	share_places(16);
	for (size_t i = 0; i < 4; i++) {
		come_as(i, STRANGER, false);
		request_of(i, "GET /");
	}
	stops_after_accept = true;
	connect_as(4, STRANGER, false);
	while (accepts < 5)
		quick_run();
	stops_after_accept = false;
	clock_ms += 499;
	quick_run();
	assert_int_equal(denied, 1);
	assert_ended(5, "");
	for (size_t i = 0; i < 4; i++)
		httpd_reply(held[i], 200, NULL, "", 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(tick__is_soon_while_a_connection_may_be_late),
		CASE(tick__is_soon_while_others_wait),
		CASE(connection__without_a_whole_request__ends_after_30_s),
		CASE(connection__after_an_answer__has_30_s_again),
		CASE(answer__that_is_not_read__ends_its_connection_by_its_length),
		CASE(handler__has_all_the_time_it_wants),
		CASE(connection__while_others_wait__has_half_a_second),
		CASE(answers__of_the_bound_together__go_out_and_no_byte_more),
		CASE(answers__are_bounded_from_the_start),
		CASE(client__that_gets_an_answer__is_not_read_meanwhile_nor_gone),
		CASE(client__that_hangs_up_during_an_answer__is_not_gone),
		CASE(client__that_ends_its_half_at_once__gets_its_answer),
		CASE(chunk__whose_length_never_ends__is_not_read_for_ever),
		CASE(socket__that_is_restored__accepts_nobody_where_no_place_is_free),
		CASE(descriptors__that_are_short__stop_that_server_until_the_tick),
		CASE(place__for_a_reader__is_that_of_the_reader_who_is_longest_idle),
		CASE(place__for_an_operator__is_that_of_a_reader_first),
		CASE(place__for_an_operator__is_that_of_another_where_no_reader_is_idle),
		CASE(place__above_a_users_share__is_one_of_that_user),
		CASE(busy_connection__ends_for_a_newer_one_of_its_user),
		CASE(busy_connection__without_a_request__ends_after_half_a_second),
		CASE(busy_connections__of_all_users__are_an_eighth),
		CASE(connection__that_waited_for_the_loop__does_not_end_itself),
	};

	signal(SIGPIPE, SIG_IGN); /* as the programs do */
	return cmocka_run_group_tests(tests, NULL, NULL);
}

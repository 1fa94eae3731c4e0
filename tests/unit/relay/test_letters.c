/*
 * The box between the push thread and the loop, letter by letter: agent/relay/listener.c is
 * compiled in here with a subscriber that hears what the test says.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "push/subscriber.h"
#include "tests/unit/fixture/fault_memory.h"
#include "tests/unit/fixture/quick_loop.h"

static int played_listen(const struct sys *sys, const struct subscriber_endpoint *endpoints,
	size_t count, const struct subscriber_listener *listener, struct subscriber **ret_push);
static void played_stop(struct subscriber *p);

#define subscriber_listen played_listen
#define subscriber_stop played_stop
#include "relay/listener.c"
#undef subscriber_listen
#undef subscriber_stop

static struct {
	struct loop *loop;
	struct listener *listener;
	struct subscriber_listener subscriber; /* what the push thread calls */
	int listens;                           /* 0, or -errno */
	unsigned stopped;
	char told[4096]; /* what came out of the box */
	size_t count;
} w;

static int played_listen(const struct sys *sys, const struct subscriber_endpoint *endpoints,
	size_t count, const struct subscriber_listener *listener, struct subscriber **ret_push)
{
	assert_ptr_equal(sys, &quick.sys);
	assert_string_equal(endpoints[1].endpoint, "tcp://b:1");
	assert_int_equal(count, 2);
	w.subscriber = *listener;
	if (w.listens == 0)
		*ret_push = (struct subscriber *)&w;
	return w.listens;
}

static void played_stop(struct subscriber *p)
{
	w.stopped += p != NULL;
}

static void tell(const char *what, size_t endpoint, const char *text)
{
	size_t len = strlen(w.told);

	w.count++;
	snprintf(w.told + len, sizeof(w.told) - len, "%s %zu %s; ", what, endpoint, text);
}

static void heard(void *arg, size_t endpoint, const char *topic, const struct push_message *m)
{
	assert_ptr_equal(arg, &w);
	assert_string_equal(m->version, "v");
	tell("heard", endpoint, topic);
}

static void missed(void *arg, size_t endpoint, const char *cause)
{
	assert_ptr_equal(arg, &w);
	tell("missed", endpoint, cause);
}

static int start(void)
{
	static const struct listener_calls calls = {heard, missed};
	const struct subscriber_endpoint endpoints[] = {
		{.endpoint = "tcp://a:1"}, {.endpoint = "tcp://b:1"}};

	return listener_start(w.loop, endpoints, 2, &calls, &w, &w.listener);
}

static int box_open(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	w.loop = quick_open();
	return 0;
}

static int box_close(void **state)
{
	(void)state;
	listener_stop(w.listener);
	quick_close();
	return 0;
}

/* The push thread hears a message. */
static void hear(size_t endpoint, const char *topic)
{
	const struct push_message m = {.version = "v"};

	w.subscriber.heard(w.subscriber.arg, endpoint, topic, &m);
}

/* Lets the loop empty the box; this came out of it. */
static void assert_told(const char *told)
{
	quick_run();
	assert_string_equal(w.told, told);
	w.told[0] = '\0';
}

static void letters__of_each_kind__come_in_their_order_with_their_endpoint(void **state)
{
	(void)state;
	assert_int_equal(start(), 0);
	hear(1, "web");
	w.subscriber.missed(w.subscriber.arg, 1, "connected");
	hear(0, "db");
	hear(0, "");
	assert_string_equal(w.told, ""); /* not in the push thread */
	assert_told("heard 1 web; missed 1 connected; heard 0 db; heard 0 ; ");
	assert_told("");
	hear(1, "web");
	assert_told("heard 1 web; ");
}

static void box__takes_letters_up_to_its_bound__and_then_says_that_one_was_missed(void **state)
{
	(void)state;
	assert_int_equal(start(), 0);
	for (unsigned i = 0; i < LISTENER_MAX_WAITING; i++)
		hear(0, "web");
	quick_run();
	assert_int_equal(w.count, LISTENER_MAX_WAITING);
	assert_null(strstr(w.told, "missed"));
	w.count = 0;
	for (unsigned i = 0; i < LISTENER_MAX_WAITING + 2; i++)
		hear(0, "web");
	w.told[0] = '\0';
	quick_run();
	assert_int_equal(w.count, LISTENER_MAX_WAITING + 1); /* said once */
	w.told[0] = '\0';
	hear(0, "web");
	assert_told("heard 0 web; ");
}

static void letter__without_memory__counts_as_missed(void **state)
{
	(void)state;
	assert_int_equal(start(), 0);
	fault_memory.seen = 0;
	fault_memory.nth = 1;
	hear(1, "web");
	fault_memory.nth = 0;
	assert_told("missed 0 too many messages at once; ");
	hear(1, "web");
	fault_memory.seen = 0;
	fault_memory.nth = 1;
	w.subscriber.missed(w.subscriber.arg, 1, "connected");
	fault_memory.nth = 0;
	assert_told("heard 1 web; missed 0 too many messages at once; ");
}

static void start__that_fails__leaves_nothing(void **state)
{
	(void)state;
	w.listens = -EOPNOTSUPP;
	assert_int_equal(start(), -EOPNOTSUPP);
	assert_null(w.listener);
	assert_int_equal(w.stopped, 0);
}

static void stop__ends_the_subscriber__and_what_is_in_the_box_is_not_told(void **state)
{
	(void)state;
	assert_int_equal(start(), 0);
	hear(0, "web");
	listener_stop(w.listener);
	w.listener = NULL;
	assert_int_equal(w.stopped, 1);
	assert_told("");
}

static bool start_once(void)
{
	int r = start();

	assert_true(r == 0 || r == -ENOMEM);
	listener_stop(w.listener);
	w.listener = NULL;
	return r;
}

static void start__without_memory__says_so(void **state)
{
	(void)state;
	assert_int_equal(fault_memory_each(start_once, false), 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, box_open, box_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(letters__of_each_kind__come_in_their_order_with_their_endpoint),
		CASE(box__takes_letters_up_to_its_bound__and_then_says_that_one_was_missed),
		CASE(start__that_fails__leaves_nothing),
		CASE(stop__ends_the_subscriber__and_what_is_in_the_box_is_not_told),
		CASE(letter__without_memory__counts_as_missed),
		CASE(start__without_memory__says_so),
	};

	return fault_memory_run(tests, 2);
}

/*
 * From a publisher through the push thread into the loop: in order, all of it, or told that it was
 * not.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "push/publisher.h"
#include "relay/listener.h"

#define GIVE_UP_MS 20000

struct site {
	struct loop *loop;
	struct publisher *publisher;
	struct listener *upstream;
	struct loop_timer give_up;
	uint64_t heard, sent;
	unsigned connected, overflows;
	uint64_t last; /* seq */
	bool in_order, enough_is_an_overflow;
	bool waits_for_connection; /* libzmq tells of it beside the messages, perhaps after them */
};

static void end_when_all_came(struct site *s)
{
	if (s->last == s->sent && !s->enough_is_an_overflow &&
		(s->connected || !s->waits_for_connection))
		loop_stop(s->loop);
}

static void heard(void *arg, size_t endpoint, const char *topic, const struct push_message *m)
{
	struct site *s = arg;

	assert_int_equal(endpoint, 0);
	assert_string_equal(topic, "web");
	s->in_order &= m->seq > s->last;
	s->last = m->seq;
	s->heard++;
	end_when_all_came(s);
}

static void missed(void *arg, size_t endpoint, const char *cause)
{
	struct site *s = arg;

	assert_int_equal(endpoint, 0);
	if (strcmp(cause, "connected") == 0)
		s->connected++;
	else
		s->overflows++;
	end_when_all_came(s);
	if (s->enough_is_an_overflow && s->overflows)
		loop_stop(s->loop);
}

static void too_late(void *arg)
{
	struct site *s = arg;

	(void)s;
	fail_msg("nothing came");
}

static const struct listener_calls calls = {heard, missed};

static void wait_subscribed(struct publisher *p)
{
	struct pollfd fd = {.fd = publisher_fd(p), .events = POLLIN};
	char prefix[512];
	int is_new;

	while (publisher_poll(p, prefix, sizeof(prefix), &is_new) == 0)
		assert_int_equal(poll(&fd, 1, GIVE_UP_MS), 1);
	assert_string_equal(prefix, "");
}

static void site_open(struct site *s)
{
	const struct publisher_options options = {.queue = 1000};
	struct subscriber_endpoint endpoint = {.heartbeat_ms = 5000};
	char why[CURVE_WHY];

	memset(s, 0, sizeof(*s));
	s->in_order = true;
	log_setup(LOG_LEVEL_ERR, LOG_FORMAT_TEXT);
	s->loop = loop_new(&sys_real);
	assert_non_null(s->loop);
	assert_int_equal(
		publisher_open(&sys_real, "tcp://127.0.0.1:0", &options, &s->publisher, why), 0);
	endpoint.endpoint = publisher_endpoint(s->publisher);
	assert_int_equal(listener_start(s->loop, &endpoint, 1, &calls, s, &s->upstream), 0);
	wait_subscribed(s->publisher);
	loop_timer_init(&s->give_up, too_late, s);
	loop_timer_set(s->loop, &s->give_up, loop_now_ms(s->loop) + GIVE_UP_MS);
}

static void site_close(struct site *s)
{
	listener_stop(s->upstream);
	publisher_close(s->publisher);
	loop_free(s->loop);
}

/* Sends so many; waits for room when there is none. */
static void send_all(struct site *s, uint64_t count)
{
	struct push_message m = {.epoch = "e", .has_seq = true};
	int r;

	for (uint64_t end = s->sent + count; s->sent < end; s->sent++) {
		m.seq = s->sent + 1;
		while ((r = publisher_forward(s->publisher, "web", &m, true)) == -EAGAIN)
			poll(NULL, 0, 1);
		assert_int_equal(r, 0);
	}
}

static void messages__of_a_publisher__come_in_order(void **state)
{
	struct site s;

	(void)state;
	site_open(&s);
	s.waits_for_connection = true;
	send_all(&s, 5000);
	assert_int_equal(loop_run(s.loop), 0);
	assert_int_equal(s.heard, 5000);
	assert_true(s.in_order);
	assert_int_equal(s.connected, 1);
	assert_int_equal(s.overflows, 0);
	site_close(&s);
}

static void box__that_is_full__says_that_something_was_missed_and_takes_more_then(void **state)
{
	struct site s;

	(void)state;
	site_open(&s);
	s.enough_is_an_overflow = true;
	send_all(&s, 3 * LISTENER_MAX_WAITING); /* while nobody empties it */
	assert_int_equal(loop_run(s.loop), 0);
	assert_in_range(s.heard, LISTENER_MAX_WAITING - 1, 3 * LISTENER_MAX_WAITING - 1);
	assert_true(s.in_order);
	s.enough_is_an_overflow = false;
	send_all(&s, 1);
	assert_int_equal(loop_run(s.loop), 0);
	assert_int_equal(s.last, s.sent);
	site_close(&s);
}

static void stop__with_messages_in_the_box__frees_them(void **state)
{
	struct site s;

	(void)state;
	site_open(&s);
	send_all(&s, 100);
	site_close(&s);
	listener_stop(NULL);
	assert_int_equal(s.heard, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages__of_a_publisher__come_in_order),
		cmocka_unit_test(
			box__that_is_full__says_that_something_was_missed_and_takes_more_then),
		cmocka_unit_test(stop__with_messages_in_the_box__frees_them),
	};

	return cmocka_run_group_tests_name("upstream", tests, NULL, NULL);
}

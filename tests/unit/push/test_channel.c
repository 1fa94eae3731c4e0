/*
 * Publisher and subscriber of the push channel beside each other: what makes a config pull, keys
 * that fit and that do not, a publisher that is silent, gone, or another one.
 */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <unistd.h>

#include <cmocka.h>

#include "push/publisher.h"
#include "tests/unit/fixture/listening.h"
#include "tests/unit/fixture/scratch.h"

#define LIMIT_MS 20000
#define INTERVAL_MS 3600000

static char dir[SCRATCH_PATH], endpoint[SCRATCH_PATH + 16];
static struct publisher *publisher;
static struct trigger_queue queue;
static struct trigger triggers[2];
static struct push_topic topics[2];
static struct subscriber *subscriber;
static sem_t hinted;
static uint64_t hinted_ms; /* when the last one is due */

static void wake(void *arg)
{
	(void)arg;
	sem_post(&hinted);
}

static int set_up(void **state)
{
	(void)state;
	alarm(60);
	scratch_open(dir, scratch_memory());
	snprintf(endpoint, sizeof(endpoint), "ipc://%s/push", dir);
	sem_init(&hinted, 0, 0);
	trigger_queue_init(&queue, wake, NULL);
	for (size_t i = 0; i < 2; i++) {
		trigger_init(&triggers[i], &queue);
		trigger_fire(&triggers[i], sys_real.now_ms(), INTERVAL_MS);
		topics[i] = (struct push_topic){.topic = i ? "db" : "web", .trigger = &triggers[i]};
	}
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	subscriber_stop(subscriber);
	subscriber = NULL;
	if (listening.push)
		listening_close();
	publisher_close(publisher);
	publisher = NULL;
	while (trigger_queue_take(&queue))
		;
	sem_destroy(&hinted);
	scratch_close(dir);
	return 0;
}

static void publish_at(const struct publisher_options *options)
{
	static const struct publisher_options plain;
	char why[CURVE_WHY] = "";

	if (publisher_open(&sys_real, endpoint, options ? options : &plain, &publisher, why))
		fail_msg("%s", why);
}

/* Serves the publisher's socket until so many subscriptions came, or the subscriber has this state.
 */
static void serve_until(unsigned subscriptions, int wanted)
{
	struct pollfd fd = {.fd = publisher_fd(publisher), .events = POLLIN};
	uint64_t end_ms = sys_real.now_ms() + LIMIT_MS;
	struct subscriber_status s;
	char prefix[256];
	unsigned count = 0;
	int is_new;

	for (;;) {
		while (publisher_poll(publisher, prefix, sizeof(prefix), &is_new) > 0)
			count += is_new == 1;
		if (subscriptions && count >= subscriptions)
			return;
		if (subscriber)
			subscriber_get_status(subscriber, 0, &s);
		if (!subscriptions && subscriber && (int)s.state == wanted)
			return;
		assert_true(sys_real.now_ms() < end_ms);
		poll(&fd, 1, 20);
	}
}

static void wait_for_state(enum subscriber_state wanted)
{
	uint64_t end_ms = sys_real.now_ms() + LIMIT_MS;
	struct subscriber_status s;

	do {
		subscriber_get_status(subscriber, 0, &s);
		assert_true(sys_real.now_ms() < end_ms);
		poll(NULL, 0, 5);
	} while (s.state != wanted);
}

static struct subscriber_status status_now(void)
{
	struct subscriber_status s;

	subscriber_get_status(subscriber, 0, &s);
	return s;
}

/* Waits until a counter of the status, by its offset, is that much. */
static void wait_for_count(size_t offset, uint64_t wanted)
{
	uint64_t end_ms = sys_real.now_ms() + LIMIT_MS, now;
	struct subscriber_status s;

	for (;;) {
		s = status_now();
		memcpy(&now, (const char *)&s + offset, sizeof(now));
		if (now >= wanted)
			break;
		assert_true(sys_real.now_ms() < end_ms);
		poll(NULL, 0, 2);
	}
	assert_int_equal(now, wanted);
}

#define WAIT_FOR(member, wanted) wait_for_count(offsetof(struct subscriber_status, member), wanted)

static void subscribe(uint64_t heartbeat_ms, const char *server_key, const char *secret_file)
{
	struct push_topic *const list[] = {&topics[0], &topics[1]};
	const struct subscriber_endpoint e = {endpoint, heartbeat_ms, server_key, secret_file};

	assert_int_equal(subscriber_start(&sys_real, &e, 1, list, 2, &subscriber), 0);
}

/* Until the subscriber is connected, and the hints of that are given. */
static void connect_wholly(void)
{
	const struct push_message empty = {0};

	serve_until(3, -1); /* two topics and heartbeats */
	wait_for_state(PUSH_CONNECTED);
	assert_int_equal(publisher_forward(publisher, PUSH_HEARTBEAT_TOPIC, &empty, true), 0);
	WAIT_FOR(heartbeats, 1);
}

/* The next trigger that was hinted at, which waits for its interval again then; NULL: none within
 * the limit. */
static struct trigger *next_hint(void)
{
	struct timespec end;
	struct trigger *t;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += LIMIT_MS / 1000;
	for (;;) {
		while (!(t = trigger_queue_take(&queue)))
			if (sem_timedwait(&hinted, &end))
				return NULL;
		if (trigger_due(t, &hinted_ms) && hinted_ms < sys_real.now_ms() + INTERVAL_MS / 2) {
			trigger_fire(t, sys_real.now_ms(), INTERVAL_MS);
			return t;
		}
	}
}

/* ---- messages ---- */

static void message__hints_at_the_config_of_its_topic_only(void **state)
{
	(void)state;
	publish_at(NULL);
	subscribe(5000, NULL, NULL);
	connect_wholly();
	assert_int_equal(publisher_send(publisher, "web2", "x", 0), 0);
	assert_int_equal(publisher_send(publisher, "db", "v1", 0), 0);
	assert_ptr_equal(next_hint(), &triggers[1]);
	assert_true(topics[1].wanted != 0);
	assert_true(topics[0].wanted == 0);
	WAIT_FOR(messages, 1);
	assert_int_equal(status_now().gaps, 0);
}

static struct push_message numbered(uint64_t seq, const char *epoch)
{
	struct push_message m = {.has_seq = true, .seq = seq};

	snprintf(m.epoch, sizeof(m.epoch), "%s", epoch);
	return m;
}

static void message__that_was_lost__is_a_gap(void **state)
{
	const struct push_message first = numbered(1, "e1"), third = numbered(3, "e1");

	(void)state;
	publish_at(NULL);
	subscribe(5000, NULL, NULL);
	connect_wholly();
	assert_int_equal(publisher_forward(publisher, "web", &first, true), 0);
	assert_ptr_equal(next_hint(), &triggers[0]);
	assert_int_equal(publisher_forward(publisher, "web", &first, true), 0);
	assert_int_equal(publisher_forward(publisher, "web", &third, true), 0);
	assert_ptr_equal(next_hint(), &triggers[0]);
	assert_int_equal(topics[0].messages, 2); /* the repeated one is none */
	WAIT_FOR(gaps, 1);                       /* after the hint */
}

static void publisher__that_is_another_one__makes_all_pull(void **state)
{
	const struct push_message old = numbered(7, "e1"), new = numbered(1, "e2");
	struct trigger *a, *b;

	(void)state;
	publish_at(NULL);
	subscribe(5000, NULL, NULL);
	connect_wholly();
	topics[0].pulled = topics[1].pulled = true;
	assert_int_equal(publisher_forward(publisher, "web", &old, true), 0);
	assert_ptr_equal(next_hint(), &triggers[0]);
	assert_int_equal(publisher_forward(publisher, "web", &new, true), 0);
	a = next_hint();
	b = next_hint();
	assert_true(a && b);
	WAIT_FOR(epochs, 1);
}

static void spread__is_within_its_window(void **state)
{
	uint64_t now_ms;

	(void)state;
	publish_at(NULL);
	subscribe(5000, NULL, NULL);
	connect_wholly();
	now_ms = sys_real.now_ms();
	assert_int_equal(publisher_send(publisher, "web", NULL, 60000), 0);
	assert_ptr_equal(next_hint(), &triggers[0]);
	assert_in_range(hinted_ms, now_ms, sys_real.now_ms() + 60000);
	assert_int_equal(publisher_send(publisher, "web", NULL, 60000), 0);
	assert_ptr_equal(next_hint(), &triggers[0]); /* in the same window, or the one after it */
	assert_in_range(hinted_ms, now_ms, sys_real.now_ms() + 120000);
}

/* ---- a channel that ends ---- */

static void publisher__that_ends_and_comes_back__is_found(void **state)
{
	(void)state;
	publish_at(NULL);
	subscribe(5000, NULL, NULL);
	connect_wholly();
	topics[0].pulled = true;
	publisher_close(publisher);
	publisher = NULL;
	wait_for_state(PUSH_CONNECTING);
	publish_at(NULL);
	assert_ptr_equal(next_hint(), &triggers[0]); /* messages may be lost: it pulls */
	WAIT_FOR(connects, 2);
}

static void publisher__that_is_silent__makes_all_pull(void **state)
{
	(void)state;
	publish_at(NULL);
	subscribe(100, NULL, NULL);
	connect_wholly();
	topics[0].pulled = true;
	assert_ptr_equal(next_hint(), &triggers[0]); /* only this one has pulled before */
	WAIT_FOR(rebuilds, 1);
	WAIT_FOR(connects, 2);
}

static void topics__renewed__are_subscribed_and_the_others_not(void **state)
{
	struct push_topic *const one[] = {&topics[1]};
	char prefix[256];
	uint64_t end_ms = sys_real.now_ms() + LIMIT_MS;
	int is_new = 1;

	(void)state;
	publish_at(NULL);
	subscribe(5000, NULL, NULL);
	connect_wholly();
	assert_int_equal(subscriber_renew(subscriber, one, 1), 0);
	while (publisher_poll(publisher, prefix, sizeof(prefix), &is_new) == 0 || is_new) {
		assert_true(sys_real.now_ms() < end_ms);
		poll(NULL, 0, 5);
	}
	assert_string_equal(prefix, "web");
}

/* ---- keys ---- */

static char server_key[CURVE_TEXT], agent_key[CURVE_TEXT], secret_file[SCRATCH_PATH + 16],
	agent_file[SCRATCH_PATH + 16], allow_file[SCRATCH_PATH + 16];

static void make_keys(void)
{
	char secret[CURVE_TEXT], why[CURVE_WHY];

	snprintf(secret_file, sizeof(secret_file), "%s/server", dir);
	snprintf(agent_file, sizeof(agent_file), "%s/agent", dir);
	snprintf(allow_file, sizeof(allow_file), "%s/allow", dir);
	assert_int_equal(subscriber_make_keys(server_key, secret), 0);
	assert_int_equal(curve_write_pair(&sys_real, secret_file, server_key, secret, why), 0);
	assert_int_equal(subscriber_make_keys(agent_key, secret), 0);
	assert_int_equal(curve_write_pair(&sys_real, agent_file, agent_key, secret, why), 0);
}

static void keys__that_fit__connect(void **state)
{
	struct publisher_options options = {.secret_key_file = secret_file};

	(void)state;
	make_keys();
	scratch_write(dir, "allow", agent_key, strlen(agent_key));
	options.allow_file = allow_file;
	publish_at(&options);
	assert_string_equal(publisher_public_key(publisher), server_key);
	subscribe(5000, server_key, agent_file);
	serve_until(3, -1);
	assert_int_equal(publisher_send(publisher, "web", "", 0), 0);
	assert_ptr_equal(next_hint(), &triggers[0]);
}

static void key__that_is_not_on_the_list__is_refused(void **state)
{
	struct publisher_options options = {.secret_key_file = secret_file};

	(void)state;
	make_keys();
	scratch_write(dir, "allow", server_key, strlen(server_key));
	options.allow_file = allow_file;
	publish_at(&options);
	subscribe(5000, server_key, agent_file);
	serve_until(0, PUSH_REFUSED);
	assert_non_null(
		strstr(status_now().error, "the publisher does not allow this agent's key"));
	assert_true(status_now().refused >= 1);
}

static void key__of_another_publisher__is_refused(void **state)
{
	const struct publisher_options options = {.secret_key_file = secret_file};

	(void)state;
	make_keys();
	publish_at(&options);
	subscribe(5000, agent_key, NULL);
	serve_until(0, PUSH_REFUSED);
	assert_non_null(status_now().error);
}

static void plain_text__of_a_publisher_with_a_key__is_refused(void **state)
{
	const struct publisher_options options = {.secret_key_file = secret_file};

	(void)state;
	make_keys();
	publish_at(&options);
	subscribe(5000, NULL, NULL);
	serve_until(0, PUSH_REFUSED);
	assert_non_null(strstr(status_now().error, "CURVE"));
}

static void key__of_the_agent_that_cannot_be_read__is_refused(void **state)
{
	(void)state;
	make_keys();
	publish_at(NULL);
	unlink(agent_file);
	subscribe(5000, server_key, agent_file);
	wait_for_state(PUSH_REFUSED);
	assert_non_null(status_now().error);
}

/* ---- the publisher ---- */

static void publisher__of_what_cannot_be__says_why(void **state)
{
	struct publisher_options options = {.allow_file = "/nowhere"};
	struct publisher *p;
	char why[CURVE_WHY], text[700];

	(void)state;
	make_keys();
	assert_int_equal(publisher_open(&sys_real, endpoint, &options, &p, why), -EINVAL);
	assert_string_equal(why, "--curve-allow needs --curve-secret-key beside it");
	options.secret_key_file = secret_file;
	assert_true(publisher_open(&sys_real, endpoint, &options, &p, why) < 0);
	options = (struct publisher_options){.secret_key_file = "/nowhere"};
	assert_true(publisher_open(&sys_real, endpoint, &options, &p, why) < 0);
	scratch_write(dir, "server", "no key\n", 7);
	options.secret_key_file = secret_file;
	assert_true(publisher_open(&sys_real, endpoint, &options, &p, why) < 0);
	options = (struct publisher_options){.queue = 0};
	assert_int_equal(publisher_open(&sys_real, "tcp://0.0.0.0:0", &options, &p, why), -EINVAL);
	memset(text, 'x', sizeof(text) - 1);
	memcpy(text, "ipc://", 6);
	text[sizeof(text) - 1] = '\0';
	assert_true(publisher_open(&sys_real, text, &options, &p, why) < 0);
	assert_non_null(strstr(why, "it is too long"));
	publish_at(NULL);
	assert_string_equal(publisher_endpoint(publisher), endpoint);
	assert_string_equal(publisher_public_key(publisher), "");
}

static void listener__hears_heartbeats_and_numbers(void **state)
{
	const struct listening_message *m;

	(void)state;
	publish_at(NULL);
	listening_open(endpoint, NULL);
	serve_until(1, -1);
	assert_int_equal(publisher_send(publisher, "a", "v1", 0), 0);
	assert_int_equal(publisher_heartbeat(publisher), 0);
	assert_int_equal(publisher_send(publisher, "a", "v2", 0), 0);
	m = listening_wait(2);
	assert_non_null(m);
	assert_string_equal(m->version, "v2");
	assert_true(m->seq == listening.messages[0].seq + 1);
	assert_string_equal(listening.messages[1].topic, PUSH_HEARTBEAT_TOPIC);
}

static void publisher__that_begins_again__has_another_epoch_in_all_messages(void **state)
{
	char epoch[sizeof(listening.messages->epoch)] = "";

	(void)state;
	for (int i = 0; i < 2; i++) {
		publish_at(NULL);
		listening_open(endpoint, NULL);
		serve_until(1, -1);
		assert_int_equal(publisher_heartbeat(publisher), 0);
		assert_int_equal(publisher_send(publisher, "a", "", 1500), 0);
		assert_non_null(listening_wait(1));
		assert_int_equal(strlen(listening.messages[0].epoch), 16);
		assert_string_equal(listening.messages[1].epoch, listening.messages[0].epoch);
		assert_int_equal(listening.messages[1].spread_ms, 1500);
		assert_string_not_equal(listening.messages[0].epoch, epoch);
		memcpy(epoch, listening.messages[0].epoch, sizeof(epoch));
		listening_close();
		publisher_close(publisher);
		publisher = NULL;
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(message__hints_at_the_config_of_its_topic_only),
		CASE(message__that_was_lost__is_a_gap),
		CASE(publisher__that_is_another_one__makes_all_pull),
		CASE(spread__is_within_its_window),
		CASE(publisher__that_ends_and_comes_back__is_found),
		CASE(publisher__that_is_silent__makes_all_pull),
		CASE(topics__renewed__are_subscribed_and_the_others_not),
		CASE(keys__that_fit__connect),
		CASE(key__that_is_not_on_the_list__is_refused),
		CASE(key__of_another_publisher__is_refused),
		CASE(plain_text__of_a_publisher_with_a_key__is_refused),
		CASE(key__of_the_agent_that_cannot_be_read__is_refused),
		CASE(publisher__of_what_cannot_be__says_why),
		CASE(listener__hears_heartbeats_and_numbers),
		CASE(publisher__that_begins_again__has_another_epoch_in_all_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

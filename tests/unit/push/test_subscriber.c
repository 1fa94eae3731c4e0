/*
 * The push thread in front of publishers that are none of ours: what is sent in odd forms,
 * endpoints that speak something else, and more topics than there may be filters.
 */
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include <zmq.h>

#include "base/log.h"
#include "push/subscriber.h"
#include "tests/unit/fixture/captured.h"
#include "tests/unit/fixture/fault_zmq.h"
#include "tests/unit/fixture/scratch.h"

#define LIMIT_MS 10000
#define INTERVAL_MS 3600000
#define MANY 501

static char dir[SCRATCH_PATH], path[SCRATCH_PATH + 16], endpoint[SCRATCH_PATH + 32];
static void *context, *out; /* a publisher */
static struct trigger_queue queue;
static struct trigger triggers[3];
static struct push_topic topics[3], many[MANY];
static char many_names[MANY][16];
static struct subscriber *subscriber;
static sem_t hinted;

static struct captured captured;
static bool captures;

static void begin_log(void)
{
	log_setup(LOG_LEVEL_WARN, LOG_FORMAT_TEXT);
	captured = captured_begin(STDERR_FILENO);
	captures = true;
}

static void end_log(void)
{
	if (captures)
		captured_end(&captured);
	captures = false;
}

static void wait_for_log(const char *words)
{
	uint64_t end_ms = sys_real.now_ms() + LIMIT_MS;
	char text[4096];

	do {
		captured_read(&captured, text, sizeof(text));
		if (sys_real.now_ms() >= end_ms)
			fail_msg("%s: %s", words, text);
		poll(NULL, 0, 2);
	} while (!strstr(text, words));
}

static void wake(void *arg)
{
	(void)arg;
	sem_post(&hinted);
}

static int set_up(void **state)
{
	static const char *const names[] = {"web", "db", "web"};

	(void)state;
	alarm(30);
	scratch_open(dir, scratch_memory());
	snprintf(path, sizeof(path), "%s/push", dir);
	snprintf(endpoint, sizeof(endpoint), "ipc://%s", path);
	sem_init(&hinted, 0, 0);
	trigger_queue_init(&queue, wake, NULL);
	for (size_t i = 0; i < 3; i++) {
		trigger_init(&triggers[i], &queue);
		trigger_fire(&triggers[i], sys_real.now_ms(), INTERVAL_MS);
		topics[i] = (struct push_topic){.topic = names[i], .trigger = &triggers[i]};
	}
	for (size_t i = 0; i < MANY; i++) {
		snprintf(many_names[i], sizeof(many_names[i]), "t%03zu", i);
		many[i] = (struct push_topic){.topic = many_names[i], .trigger = &triggers[1]};
	}
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	fault_zmq_fail(0, 0);
	fault_zmq.only = NULL;
	fault_zmq.here = false;
	subscriber_stop(subscriber);
	subscriber = NULL;
	end_log();
	if (out)
		zmq_close(out);
	if (context)
		zmq_ctx_term(context);
	out = context = NULL;
	while (trigger_queue_take(&queue))
		;
	sem_destroy(&hinted);
	scratch_close(dir);
	return 0;
}

static void publish(void)
{
	int zero = 0;

	context = zmq_ctx_new();
	out = zmq_socket(context, ZMQ_XPUB);
	assert_non_null(out);
	zmq_setsockopt(out, ZMQ_LINGER, &zero, sizeof(zero));
	assert_int_equal(zmq_bind(out, endpoint), 0);
}

/* The next subscription, after '+', or cancellation, after '-'. */
static const char *next_filter(void)
{
	static char text[300];
	zmq_pollitem_t item = {.socket = out, .events = ZMQ_POLLIN};
	char message[300];
	int n;

	assert_int_equal(zmq_poll(&item, 1, LIMIT_MS), 1);
	n = zmq_recv(out, message, sizeof(message) - 1, 0);
	assert_in_range(n, 1, sizeof(message) - 1);
	message[n] = '\0';
	snprintf(text, sizeof(text), "%c%s", message[0] ? '+' : '-', message + 1);
	return text;
}

static void subscribe(struct push_topic *const *list, size_t count, const char *server_key)
{
	const struct subscriber_endpoint e = {endpoint, 5000, server_key, NULL};

	assert_int_equal(subscriber_start(&sys_real, &e, 1, list, count, &subscriber), 0);
}

static void subscribe_all(void)
{
	struct push_topic *const list[] = {&topics[0], &topics[1], &topics[2]};

	subscribe(list, 3, NULL);
	for (int i = 0; i < 3; i++) /* heartbeats, "db", and "web" once */
		next_filter();
}

static struct subscriber_status status_now(void)
{
	struct subscriber_status s;

	subscriber_get_status(subscriber, 0, &s);
	return s;
}

static void wait_for_state(enum subscriber_state wanted)
{
	uint64_t end_ms = sys_real.now_ms() + LIMIT_MS;

	while (status_now().state != wanted) {
		assert_true(sys_real.now_ms() < end_ms);
		poll(NULL, 0, 2);
	}
}

static struct trigger *next_hint(void)
{
	struct timespec end;
	struct trigger *t;
	uint64_t due_ms;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += LIMIT_MS / 1000;
	for (;;) {
		while (!(t = trigger_queue_take(&queue)))
			if (sem_timedwait(&hinted, &end))
				return NULL;
		if (trigger_due(t, &due_ms) && due_ms < sys_real.now_ms() + INTERVAL_MS / 2) {
			trigger_fire(t, sys_real.now_ms(), INTERVAL_MS);
			return t;
		}
	}
}

static void send_frames(size_t count, const char *const *frames, const size_t *lens)
{
	for (size_t i = 0; i < count; i++)
		assert_int_equal(zmq_send(out, frames[i], lens[i], i + 1 < count ? ZMQ_SNDMORE : 0),
			lens[i]);
}

/* ---- messages ---- */

static void topic__alone__is_a_message(void **state)
{
	(void)state;
	publish();
	subscribe_all();
	send_frames(1, (const char *[]){"db"}, (size_t[]){2});
	assert_ptr_equal(next_hint(), &triggers[1]);
	assert_int_equal(topics[1].messages, 1);
	assert_int_equal(status_now().bad, 0);
}

static void topic__of_two_configs__hints_at_both(void **state)
{
	const struct trigger *a, *b;

	(void)state;
	publish();
	subscribe_all();
	send_frames(2, (const char *[]){"web", "{\"v\":1,\"version\":\"x\"}"}, (size_t[]){3, 21});
	a = next_hint();
	b = next_hint();
	assert_true((a == &triggers[0] && b == &triggers[2]) ||
		    (a == &triggers[2] && b == &triggers[0]));
	assert_true(topics[0].wanted != 0 && topics[0].wanted == topics[2].wanted);
}

/* It could be an update all the same. */
static void envelope__that_is_invalid__is_a_hint_still(void **state)
{
	static char huge[PUSH_MAX_ENVELOPE + 1];

	(void)state;
	memset(huge, ' ', sizeof(huge));
	publish();
	subscribe_all();
	send_frames(2, (const char *[]){"db", "{nonsense"}, (size_t[]){2, 9});
	assert_ptr_equal(next_hint(), &triggers[1]);
	send_frames(2, (const char *[]){"db", huge}, (size_t[]){2, sizeof(huge)});
	assert_ptr_equal(next_hint(), &triggers[1]);
	assert_int_equal(status_now().bad, 2);
	assert_int_equal(topics[1].messages, 2);
}

static void message__of_no_known_form__is_dropped(void **state)
{
	char longer[PUSH_MAX_TOPIC + 1];

	(void)state;
	memset(longer, 'x', sizeof(longer));
	memcpy(longer, "web", 3); /* the filter lets it through */
	publish();
	subscribe_all();
	send_frames(1, (const char *[]){"db\0x"}, (size_t[]){4});
	send_frames(1, (const char *[]){"web\0x"}, (size_t[]){5});
	send_frames(1, (const char *[]){longer}, (size_t[]){sizeof(longer)});
	send_frames(1, (const char *[]){"dbx"}, (size_t[]){3}); /* another topic: no fault */
	send_frames(1, (const char *[]){"db"}, (size_t[]){2});
	assert_ptr_equal(next_hint(), &triggers[1]);
	assert_int_equal(status_now().bad, 3);
	assert_int_equal(topics[0].messages, 0);
	assert_int_equal(topics[1].messages, 1);
}

/* ---- filters ---- */

static void topics__more_than_filters__are_one_subscription_to_all(void **state)
{
	struct push_topic *list[MANY];
	unsigned removed = 0, added = 0;

	(void)state;
	for (size_t i = 0; i < MANY; i++)
		list[i] = &many[i];
	publish();
	subscribe(list, MANY, NULL);
	assert_string_equal(next_filter(), "+");
	send_frames(1, (const char *[]){"t500"}, (size_t[]){4});
	assert_ptr_equal(next_hint(), &triggers[1]);
	assert_int_equal(subscriber_renew(subscriber, list, 2), 0);
	for (int i = 0; i < 4; i++) {
		const char *filter = next_filter();

		removed += strcmp(filter, "-") == 0;
		added += strcmp(filter, "+t000") == 0 || strcmp(filter, "+t001") == 0 ||
			 strcmp(filter, "+" PUSH_HEARTBEAT_TOPIC) == 0;
	}
	assert_int_equal(removed, 1);
	assert_int_equal(added, 3);
	assert_int_equal(subscriber_renew(subscriber, list, MANY), 0);
	assert_string_equal(next_filter(), "+");
}

static void topics__renewed__keep_their_numbers(void **state)
{
	static const char one[] = "{\"v\":1,\"epoch\":\"e\",\"seq\":1}",
			  two[] = "{\"v\":1,\"epoch\":\"e\",\"seq\":2}";
	struct push_topic *const both[] = {&topics[0], &topics[1]}, *const left[] = {&topics[1]};

	(void)state;
	publish();
	subscribe(both, 2, NULL);
	for (int i = 0; i < 3; i++)
		next_filter();
	send_frames(2, (const char *[]){"db", one}, (size_t[]){2, sizeof(one) - 1});
	assert_ptr_equal(next_hint(), &triggers[1]);
	assert_int_equal(subscriber_renew(subscriber, left, 1), 0);
	assert_string_equal(next_filter(), "-web");
	send_frames(2, (const char *[]){"db", one}, (size_t[]){2, sizeof(one) - 1}); /* again */
	send_frames(2, (const char *[]){"db", two}, (size_t[]){2, sizeof(two) - 1});
	send_frames(1, (const char *[]){"db\0x"}, (size_t[]){4});
	while (status_now().bad == 0) /* by then both have come */
		poll(NULL, 0, 2);
	assert_int_equal(topics[1].messages, 2);
	assert_int_equal(status_now().gaps, 0);
	assert_ptr_equal(next_hint(), &triggers[1]);
}

/* ---- endpoints ---- */

static int listener;
static const char *greeting; /* what a connection gets before it is closed */

static void *serve_greeting(void *arg)
{
	int fd;

	(void)arg;
	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		(void)!send(fd, greeting, strlen(greeting), MSG_NOSIGNAL);
		close(fd);
	}
	return NULL;
}

static void check_endpoint(const char *words, const char *server_key)
{
	struct push_topic *const list[] = {&topics[0]};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	pthread_t thread;

	greeting = words;
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%.100s", path);
	assert_int_equal(bind(listener, (const struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 8), 0);
	assert_int_equal(pthread_create(&thread, NULL, serve_greeting, NULL), 0);
	subscribe(list, 1, server_key);
	wait_for_state(PUSH_REFUSED);
	assert_non_null(status_now().error);
	assert_true(status_now().refused >= 1);
	assert_int_equal(status_now().connects, 0);
	while (status_now().refused < 2) /* it is tried again */
		poll(NULL, 0, 2);
	shutdown(listener, SHUT_RDWR);
	pthread_join(thread, NULL);
	close(listener);
}

static void endpoint__that_hangs_up__is_refused_and_tried_again(void **state)
{
	(void)state;
	check_endpoint("", NULL);
}

static void endpoint__that_speaks_http__is_refused_and_tried_again(void **state)
{
	(void)state;
	check_endpoint("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
		       "and so on, for more bytes than a greeting has",
		NULL);
}

static void publisher__without_curve__is_refused_by_an_agent_with_a_key(void **state)
{
	struct push_topic *const list[] = {&topics[0]};
	char public_key[CURVE_TEXT], secret[CURVE_TEXT];

	(void)state;
	assert_int_equal(subscriber_make_keys(public_key, secret), 0);
	publish();
	subscribe(list, 1, public_key);
	wait_for_state(PUSH_REFUSED);
	assert_non_null(strstr(status_now().error, "CURVE"));
	assert_ptr_equal(strstr(subscriber_version(), "libzmq/"), subscriber_version());
}

/* ---- libzmq that fails ---- */

static size_t count_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* The publisher, too, closes its end of a connection that is gone. */
static void wait_for_descriptors(size_t wanted)
{
	uint64_t end_ms = sys_real.now_ms() + LIMIT_MS;

	while (count_descriptors() != wanted) {
		if (sys_real.now_ms() >= end_ms)
			fail_msg("%zu are open, not %zu", count_descriptors(), wanted);
		poll(NULL, 0, 2);
	}
}

/* What did start is stopped when it is connected: before, libzmq may leave memory behind. */
static void subscriber__that_cannot_start__leaves_nothing_open(void **state)
{
	struct push_topic *const list[] = {&topics[0], &topics[1]};
	const struct subscriber_endpoint e = {endpoint, 5000, NULL, NULL};
	size_t nth = 1, before, failures = 0;
	bool hit = true;

	(void)state;
	publish();
	before = count_descriptors();
	fault_zmq.here = true;
	for (; hit; nth++) {
		int r, sockets = fault_zmq.sockets, contexts = fault_zmq.contexts;

		fault_zmq_fail(nth, EMFILE);
		r = subscriber_start(&sys_real, &e, 1, list, 2, &subscriber);
		hit = fault_zmq_failed();
		if (r == 0) { /* what is a hint for libzmq may fail */
			wait_for_state(PUSH_CONNECTED);
			subscriber_stop(subscriber);
			subscriber = NULL;
		} else {
			assert_true(hit && r < 0);
			assert_null(subscriber);
			wait_for_descriptors(before);
			failures++;
		}
		assert_int_equal(fault_zmq.sockets, sockets);
		assert_int_equal(fault_zmq.contexts, contexts);
	}
	assert_true(failures > 20);
}

static int scheduling_error; /* of the sandbox; libzmq asks, too */

int pthread_setschedparam(pthread_t thread, int policy, const struct sched_param *param)
{
	(void)thread, (void)policy, (void)param;
	return scheduling_error;
}

static void subscriber__that_may_not_set_its_scheduling__does_not_start(void **state)
{
	struct push_topic *const list[] = {&topics[0]};
	const struct subscriber_endpoint e = {endpoint, 5000, NULL, NULL};

	(void)state;
	scheduling_error = EPERM;
	assert_int_equal(subscriber_start(&sys_real, &e, 1, list, 1, &subscriber), -EPERM);
	scheduling_error = 0;
	assert_null(subscriber);
	assert_int_equal(fault_zmq.contexts, 0);
}

static void subscriber__with_a_key_and_no_curve__does_not_start(void **state)
{
	struct push_topic *const list[] = {&topics[0]};
	char public_key[CURVE_TEXT], secret[CURVE_TEXT];
	const struct subscriber_endpoint e = {endpoint, 5000, public_key, NULL};

	(void)state;
	assert_int_equal(subscriber_make_keys(public_key, secret), 0);
	fault_zmq.only = "zmq_has";
	fault_zmq_fail(1, 0);
	assert_int_equal(subscriber_start(&sys_real, &e, 1, list, 1, &subscriber), -EOPNOTSUPP);
	assert_null(subscriber);
	assert_int_equal(fault_zmq.sockets, 0);
	assert_int_equal(fault_zmq.contexts, 0);
}

static void curve__that_libzmq_has_not__is_said(void **state)
{
	char public_key[CURVE_TEXT], secret[CURVE_TEXT];

	(void)state;
	assert_true(subscriber_has_curve());
	fault_zmq_fail(1, ENOTSUP);
	assert_false(subscriber_has_curve());
	fault_zmq_fail(1, ENOTSUP);
	assert_int_equal(subscriber_make_keys(public_key, secret), -EOPNOTSUPP);
}

static void version__has_three_numbers_in_their_order(void **state)
{
	char wanted[64];
	int major, minor, patch;

	(void)state;
	zmq_version(&major, &minor, &patch);
	snprintf(wanted, sizeof(wanted), "libzmq/%d.%d.%d", major, minor, patch);
	assert_string_equal(subscriber_version(), wanted);
}

static void thread__that_is_interrupted__goes_on(void **state)
{
	(void)state;
	publish();
	subscribe_all();
	fault_zmq.only = "zmq_poll";
	fault_zmq_fail(1, EINTR);
	while (fault_zmq.nth) { /* one turn may take several messages */
		send_frames(1, (const char *[]){"db"}, (size_t[]){2});
		assert_ptr_equal(next_hint(), &triggers[1]);
	}
	send_frames(1, (const char *[]){"db"}, (size_t[]){2});
	assert_ptr_equal(next_hint(), &triggers[1]);
}

/* Topics are still replaced, and it still ends. */
static void thread__that_ended__is_logged_and_holds_up_nobody(void **state)
{
	static const char *const calls[] = {"zmq_poll", "zmq_msg_recv"};
	struct push_topic *const list[] = {&topics[1]};
	struct subscriber_status status;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		begin_log();
		publish();
		subscribe_all();
		fault_zmq.only = calls[i];
		fault_zmq_fail(1, ENOMEM);
		send_frames(1, (const char *[]){"db"}, (size_t[]){2});
		wait_for_log("push channel ended: pulls go on by interval why=\"Cannot allocate "
			     "memory\"");
		assert_true(fault_zmq_failed());
		subscriber_get_status(subscriber, 0, &status);
		assert_int_equal(status.state, PUSH_CONNECTING);
		assert_string_equal(status.error, "it has ended: restart the agent");
		assert_int_equal(subscriber_renew(subscriber, list, 1), 0);
		assert_int_equal(subscriber_renew(subscriber, list, 1), 0);
		tear_down(NULL);
		set_up(NULL);
	}
}

static void socket__that_cannot_be_made_again__is_said_and_tried_later(void **state)
{
	struct push_topic *const list[] = {&topics[0]};
	char public_key[CURVE_TEXT], secret[CURVE_TEXT];

	(void)state;
	assert_int_equal(subscriber_make_keys(public_key, secret), 0);
	begin_log();
	publish();
	subscribe(list, 1, public_key); /* which the publisher does not use */
	wait_for_state(PUSH_REFUSED);
	fault_zmq.only = "zmq_socket";
	fault_zmq_fail(1, EMFILE);
	wait_for_log("cannot open a socket: the agent has no memory or descriptors left");
	while (status_now().refused < 2) /* it is tried again */
		poll(NULL, 0, 2);
}

static void status__is_of_the_endpoint_that_is_asked_for(void **state)
{
	struct push_topic *const list[] = {&topics[1]};
	char nowhere[SCRATCH_PATH + 48];
	const struct subscriber_endpoint e[] = {
		{nowhere, 5000, NULL, NULL}, {endpoint, 5000, NULL, NULL}};
	struct subscriber_status s;

	(void)state;
	snprintf(nowhere, sizeof(nowhere), "%s-nowhere", endpoint);
	publish();
	assert_int_equal(subscriber_start(&sys_real, e, 2, list, 1, &subscriber), 0);
	assert_int_equal(subscriber_endpoint_count(subscriber), 2);
	for (int i = 0; i < 2; i++)
		next_filter();
	send_frames(1, (const char *[]){"db"}, (size_t[]){2});
	assert_ptr_equal(next_hint(), &triggers[1]);
	subscriber_get_status(subscriber, 1, &s);
	assert_string_equal(s.endpoint, endpoint);
	assert_int_equal(s.messages, 1);
	subscriber_get_status(subscriber, 0, &s);
	assert_string_equal(s.endpoint, nowhere);
	assert_int_equal(s.messages, 0);
	assert_int_equal(s.state, PUSH_CONNECTING);
}

/* ---- how long the thread sleeps ---- */

static void wait_for_sleep(long least_ms, long most_ms)
{
	uint64_t end_ms = sys_real.now_ms() + LIMIT_MS;

	while (fault_zmq_wait_ms < least_ms || fault_zmq_wait_ms > most_ms) {
		if (sys_real.now_ms() >= end_ms)
			fail_msg("it sleeps %ld ms", (long)fault_zmq_wait_ms);
		poll(NULL, 0, 2);
	}
}

/* Both endpoints are the one publisher, which sends a heartbeat. */
static void hear_heartbeat(uint64_t one_ms, uint64_t other_ms)
{
	static const char heartbeat[] = "{\"v\":1,\"epoch\":\"e\",\"seq\":1}";
	struct push_topic *const list[] = {&topics[1]};
	const struct subscriber_endpoint e[] = {
		{endpoint, one_ms, NULL, NULL}, {endpoint, other_ms, NULL, NULL}};
	int yes = 1;

	publish();
	zmq_setsockopt(out, ZMQ_XPUB_VERBOSE, &yes, sizeof(yes));
	assert_int_equal(subscriber_start(&sys_real, e, 2, list, 1, &subscriber), 0);
	for (int i = 0; i < 4; i++) /* heartbeats and "db", of each */
		next_filter();
	wait_for_sleep(-1, -1); /* no news is to be waited for */
	send_frames(2, (const char *[]){PUSH_HEARTBEAT_TOPIC, heartbeat},
		(size_t[]){strlen(PUSH_HEARTBEAT_TOPIC), sizeof(heartbeat) - 1});
	for (size_t i = 0; i < 2; i++) {
		struct subscriber_status s;

		do
			subscriber_get_status(subscriber, i, &s);
		while (s.heartbeats == 0 && poll(NULL, 0, 2) == 0);
	}
}

static void thread__with_nothing_to_do__sleeps_until_the_first_publisher_would_be_silent(
	void **state)
{
	const uint64_t hour_ms = 3600000;

	(void)state;
	hear_heartbeat(10 * hour_ms, hour_ms);
	wait_for_sleep(3 * (long)hour_ms - LIMIT_MS, 3 * (long)hour_ms);
	tear_down(NULL);
	set_up(NULL);
	hear_heartbeat(hour_ms, 10 * hour_ms);
	wait_for_sleep(3 * (long)hour_ms - LIMIT_MS, 3 * (long)hour_ms);
}

static void thread__with_nothing_to_do__sleeps_for_a_day_at_most(void **state)
{
	const uint64_t day_ms = 86400000;

	(void)state;
	hear_heartbeat(day_ms, day_ms);
	wait_for_sleep((long)day_ms, (long)day_ms);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* Of a pair in 200 the public key has what a configuration takes for a variable. */
static void make_keys__many__can_stand_in_a_configuration(void **state)
{
	char public_key[CURVE_TEXT], secret[CURVE_TEXT];

	(void)state;
	for (int i = 0; i < 1500; i++) {
		assert_int_equal(subscriber_make_keys(public_key, secret), 0);
		assert_null(strstr(public_key, "${"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(make_keys__many__can_stand_in_a_configuration),
		CASE(topic__alone__is_a_message),
		CASE(topic__of_two_configs__hints_at_both),
		CASE(envelope__that_is_invalid__is_a_hint_still),
		CASE(message__of_no_known_form__is_dropped),
		CASE(topics__more_than_filters__are_one_subscription_to_all),
		CASE(topics__renewed__keep_their_numbers),
		CASE(endpoint__that_hangs_up__is_refused_and_tried_again),
		CASE(endpoint__that_speaks_http__is_refused_and_tried_again),
		CASE(publisher__without_curve__is_refused_by_an_agent_with_a_key),
		CASE(subscriber__that_cannot_start__leaves_nothing_open),
		CASE(subscriber__that_may_not_set_its_scheduling__does_not_start),
		CASE(subscriber__with_a_key_and_no_curve__does_not_start),
		CASE(curve__that_libzmq_has_not__is_said),
		CASE(version__has_three_numbers_in_their_order),
		CASE(thread__that_is_interrupted__goes_on),
		CASE(thread__that_ended__is_logged_and_holds_up_nobody),
		CASE(socket__that_cannot_be_made_again__is_said_and_tried_later),
		CASE(status__is_of_the_endpoint_that_is_asked_for),
		CASE(thread__with_nothing_to_do__sleeps_until_the_first_publisher_would_be_silent),
		CASE(thread__with_nothing_to_do__sleeps_for_a_day_at_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

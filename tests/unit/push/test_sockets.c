/*
 * The sockets of one endpoint beside a session on a virtual clock: pairs of sockets play libzmq's
 * connection and its monitor. What each event and each form of message becomes, which filters are
 * sent, which options are set, and libzmq that fails.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "push/context.h"
#include "push/sockets.h"
#include "tests/unit/fixture/fault_zmq.h"
#include "tests/unit/fixture/scratch.h"

#define NOW_MS 1000000
#define MANY 501
#define NOTHING "(nothing)"

static char dir[SCRATCH_PATH], key_file[SCRATCH_PATH + 16], endpoint[SCRATCH_PATH + 16];
static void *context, *connection, *monitor; /* the far ends */
static struct sys sys;
static struct session session;
static struct push_sockets sockets;
static struct subscriber_listener listener;
static struct trigger_queue queue;
static struct trigger trigger;
static struct push_topic topics[MANY];
static char names[MANY][16];
static char heard[PUSH_MAX_TOPIC + 1];
static unsigned heard_count;
static struct push_message heard_message;

static uint64_t now_ms(void)
{
	return NOW_MS;
}

static void wake(void *arg)
{
	(void)arg;
}

static void hear(void *arg, size_t number, const char *topic, const struct push_message *m)
{
	(void)arg;
	(void)number;
	heard_count++;
	snprintf(heard, sizeof(heard), "%s", topic);
	heard_message = *m;
}

static void miss(void *arg, size_t number, const char *cause)
{
	(void)arg;
	(void)number;
	(void)cause;
}

static void begin(const char *server_key, const char *secret_key_file)
{
	const struct subscriber_endpoint at = {endpoint, 5000, server_key, secret_key_file};

	session_init(&session, &(struct session_setup){.sys = &sys,
				       .at = &at,
				       .public_key = sockets.public_key,
				       .number = 3,
				       .listener = &listener});
	push_sockets_init(&sockets, context, &session);
}

static int set_up(void **state)
{
	(void)state;
	alarm(30);
	log_setup(LOG_LEVEL_ERR, LOG_FORMAT_TEXT);
	sys = sys_real;
	sys.now_ms = now_ms;
	listener = (struct subscriber_listener){hear, miss, NULL, false};
	heard_count = 0;
	scratch_open(dir, scratch_memory());
	snprintf(key_file, sizeof(key_file), "%s/key", dir);
	snprintf(endpoint, sizeof(endpoint), "ipc://%s/push", dir);
	trigger_queue_init(&queue, wake, NULL);
	trigger_init(&trigger, &queue);
	for (size_t i = 0; i < MANY; i++) {
		snprintf(names[i], sizeof(names[i]), "t%03zu", i);
		topics[i] = (struct push_topic){.topic = names[i], .trigger = &trigger};
	}
	context = push_context_new(PEER_GUARD_PUBLISHERS);
	assert_non_null(context);
	begin(NULL, NULL);
	return 0;
}

/* Two ends, of which the first is returned. */
static void *open_pair(void **ret_far)
{
	static unsigned made; /* a name is free again some time after the end of its pair */
	void *near = zmq_socket(context, ZMQ_PAIR);
	char name[32];
	int zero = 0;

	snprintf(name, sizeof(name), "inproc://pair-%u", made++);
	*ret_far = zmq_socket(context, ZMQ_PAIR);
	assert_true(near && *ret_far);
	zmq_setsockopt(near, ZMQ_LINGER, &zero, sizeof(zero));
	zmq_setsockopt(*ret_far, ZMQ_LINGER, &zero, sizeof(zero));
	assert_int_equal(zmq_bind(near, name), 0);
	assert_int_equal(zmq_connect(*ret_far, name), 0);
	return near;
}

static void play_connection(void)
{
	sockets.socket = open_pair(&connection);
	sockets.monitor = open_pair(&monitor);
}

static void end_connection(void)
{
	push_sockets_close(&sockets);
	if (connection)
		zmq_close(connection);
	if (monitor)
		zmq_close(monitor);
	connection = monitor = NULL;
}

static int tear_down(void **state)
{
	(void)state;
	fault_zmq_fail(0, 0);
	end_connection();
	zmq_ctx_term(context);
	while (trigger_queue_take(&queue))
		;
	scratch_close(dir);
	assert_int_equal(fault_zmq.sockets, 0);
	assert_int_equal(fault_zmq.contexts, 0);
	return 0;
}

static struct subscriber_status status_now(void)
{
	struct subscriber_status s;

	session_get_status(&session, &s);
	return s;
}

static void assert_words(const char *text, const char *words)
{
	assert_non_null(text);
	if (!strstr(text, words))
		fail_msg("%s: %s", words, text);
}

/* ---- events ---- */

static int play_event(uint16_t event, uint32_t value)
{
	unsigned char frame[6];

	memcpy(frame, &event, 2);
	memcpy(frame + 2, &value, 4);
	assert_int_equal(zmq_send(monitor, frame, sizeof(frame), ZMQ_SNDMORE), sizeof(frame));
	assert_int_equal(zmq_send(monitor, endpoint, strlen(endpoint), 0), strlen(endpoint));
	return push_sockets_take_event(&sockets);
}

static void connect_wholly(void)
{
	assert_int_equal(play_event(ZMQ_EVENT_CONNECTED, 0), 1);
	assert_int_equal(session.phase, SESSION_GREETING);
	assert_int_equal(play_event(ZMQ_EVENT_HANDSHAKE_SUCCEEDED, 0), 1);
	assert_int_equal(session.phase, SESSION_UP);
}

static void event__of_a_connection__is_passed_on(void **state)
{
	(void)state;
	play_connection();
	connect_wholly();
	assert_int_equal(status_now().connects, 1);
	assert_int_equal(play_event(ZMQ_EVENT_DISCONNECTED, 9999), 1);
	assert_int_equal(session.phase, SESSION_LOST);
	assert_non_null(sockets.socket);
	assert_int_equal(play_event(ZMQ_EVENT_CONNECT_RETRIED, 0), 1);
	assert_int_equal(session.phase, SESSION_DIALING);
	assert_int_equal(push_sockets_take_event(&sockets), 0);
}

static void event__that_says_nothing__changes_nothing(void **state)
{
	static const uint16_t events[] = {ZMQ_EVENT_CONNECT_DELAYED, ZMQ_EVENT_CLOSED,
		ZMQ_EVENT_LISTENING, ZMQ_EVENT_MONITOR_STOPPED};

	(void)state;
	play_connection();
	connect_wholly();
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		assert_int_equal(play_event(events[i], 0), 1);
		assert_int_equal(session.phase, SESSION_UP);
		assert_non_null(sockets.socket);
	}
}

static void event__of_a_failed_handshake__says_why_and_closes(void **state)
{
	static const struct {
		uint16_t event;
		uint32_t value;
		const char *why;
	} table[] = {
		{ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL, EPIPE, "the publisher ended the handshake"},
		{ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL, ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH,
			"it wants CURVE (set curve)"},
		{ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL, ZMQ_PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC,
			"cannot decrypt"},
		{ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL, ZMQ_PROTOCOL_ERROR_ZMTP_INVALID_METADATA,
			"does not keep to the protocol"},
		{ZMQ_EVENT_HANDSHAKE_FAILED_AUTH, 400, "allows known keys only"},
		{ZMQ_EVENT_DISCONNECTED, 9999, "not a ZeroMQ publisher"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		begin(NULL, NULL);
		play_connection();
		assert_int_equal(play_event(ZMQ_EVENT_CONNECTED, 0), 1);
		assert_int_equal(play_event(table[i].event, table[i].value), 1);
		assert_words(status_now().error, table[i].why);
		assert_int_equal(status_now().state, PUSH_REFUSED);
		assert_true(!sockets.socket && !sockets.monitor);
		assert_int_equal(push_sockets_take_event(&sockets), 0);
		assert_int_equal(push_sockets_take_message(&sockets), 0);
		end_connection();
	}
}

static void event__that_cannot_be_read__is_an_error(void **state)
{
	(void)state;
	play_connection();
	fault_zmq_fail(1, ETERM);
	assert_int_equal(push_sockets_take_event(&sockets), -ETERM);
	assert_int_equal(zmq_send(monitor, "\1\0\0\0\0\0", 6, ZMQ_SNDMORE), 6);
	assert_int_equal(zmq_send(monitor, "", 0, 0), 0);
	fault_zmq_fail(2, ETERM);
	assert_int_equal(push_sockets_take_event(&sockets), -ETERM);
	assert_int_equal(session.phase, SESSION_DIALING);
}

/* ---- messages ---- */

static void play_frames(size_t count, const char *const *frames, const size_t *lens)
{
	for (size_t i = 0; i < count; i++)
		assert_int_equal(
			zmq_send(connection, frames[i], lens[i], i + 1 < count ? ZMQ_SNDMORE : 0),
			lens[i]);
}

static void message__in_each_form__is_heard_or_bad(void **state)
{
	static char large[PUSH_MAX_ENVELOPE + 2] = "{\"v\":1,\"version\":\"x\"}";
	static char topic[PUSH_MAX_TOPIC + 2];
	static const char small[] = "{\"v\":1,\"version\":\"y\"}";
	static const struct {
		size_t count;
		const char *frames[4];
		size_t lens[4];
		unsigned heard, bad;
		const char *version;
	} table[] = {
		{1, {"web"}, {3}, 1, 0, ""},
		{2, {"web", small}, {3, sizeof(small) - 1}, 1, 0, "y"},
		{2, {"web", ""}, {3, 0}, 1, 1, ""},
		{2, {"web", large}, {3, PUSH_MAX_ENVELOPE}, 1, 0, "x"},
		{2, {"web", large}, {3, PUSH_MAX_ENVELOPE + 1}, 1, 1, ""},
		{1, {topic}, {PUSH_MAX_TOPIC}, 1, 0, ""},
		{1, {topic}, {PUSH_MAX_TOPIC + 1}, 0, 1, ""},
		{1, {large}, {PUSH_MAX_ENVELOPE + 1}, 0, 1, ""},
		{1, {""}, {0}, 0, 1, ""},
		{3, {"web", small, ""}, {3, sizeof(small) - 1, 0}, 1, 1, ""},
		{4, {"web", small, "a", "b"}, {3, sizeof(small) - 1, 1, 1}, 1, 1, ""},
	};

	(void)state;
	memset(large + sizeof(small) - 1, ' ', sizeof(large) - sizeof(small));
	memset(topic, 't', sizeof(topic) - 1);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		begin(NULL, NULL);
		play_connection();
		heard_count = 0;
		play_frames(table[i].count, table[i].frames, table[i].lens);
		assert_int_equal(push_sockets_take_message(&sockets), 1);
		assert_int_equal(push_sockets_take_message(&sockets), 0);
		assert_int_equal(heard_count, table[i].heard);
		assert_int_equal(status_now().bad, table[i].bad);
		assert_int_equal(status_now().last_message_ms, table[i].heard ? NOW_MS : 0);
		if (table[i].heard) {
			assert_int_equal(strlen(heard), table[i].lens[0]);
			assert_string_equal(heard_message.version, table[i].version);
		}
		end_connection();
	}
}

static void message__of_which_a_frame_cannot_be_read__is_an_error(void **state)
{
	(void)state;
	for (size_t nth = 1; nth <= 3; nth++) {
		play_connection();
		play_frames(3, (const char *[]){"web", "{}", ""}, (size_t[]){3, 2, 0});
		fault_zmq_fail(nth, ETERM);
		assert_int_equal(push_sockets_take_message(&sockets), -ETERM);
		assert_true(fault_zmq_failed());
		end_connection();
	}
	assert_int_equal(heard_count, 0);
	assert_int_equal(status_now().bad, 0);
}

/* ---- filters ---- */

static struct push_topics *make_topics(const size_t *of, size_t count)
{
	struct push_topic *list[MANY];
	struct push_topics *t;

	for (size_t i = 0; i < count; i++)
		list[i] = &topics[of ? of[i] : i];
	t = push_topics_new(&sys, list, count, 4);
	assert_non_null(t);
	return t;
}

/* What was sent since: "+NAME " and "-NAME " for each filter; the first ones of many. */
static const char *take_filters(void)
{
	static char text[200];
	size_t len = 0;
	char frame[300];
	int n;

	text[0] = '\0';
	while ((n = zmq_recv(connection, frame, sizeof(frame) - 1, ZMQ_DONTWAIT)) > 0) {
		frame[n] = '\0';
		if (len < sizeof(text) - 30)
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%c%s ",
				frame[0] == 1 ? '+' : '-', frame + 1);
	}
	return text;
}

static void filters__of_other_topics__are_what_differs(void **state)
{
	static const struct {
		size_t before[3], before_count, next[3], next_count;
		const char *sent;
	} table[] = {
		{{0, 1}, 2, {0, 1}, 2, ""},
		{{0, 1}, 2, {1, 2}, 2, "+t002 -t000 "},
		{{0}, 1, {0, 0, 1}, 3, "+t001 "},
		{{0, 0, 1}, 3, {1}, 1, "-t000 "},
		{{0}, 0, {2}, 1, "+t002 "},
		{{2}, 1, {0}, 0, "-t002 "},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct push_topics *before = make_topics(table[i].before, table[i].before_count),
				   *next = make_topics(table[i].next, table[i].next_count);

		play_connection();
		push_sockets_follow(&sockets, before, next);
		assert_string_equal(take_filters(), table[i].sent);
		end_connection();
		push_topics_free(before);
		push_topics_free(next);
	}
}

static void filters__beyond_the_bound__are_one_for_all(void **state)
{
	static const struct {
		size_t before, next;
		const char *sent; /* its beginning */
	} table[] = {
		{MANY, MANY, ""},
		{1, MANY, "+ -" PUSH_HEARTBEAT_TOPIC " -t000 "},
		{MANY, 1, "+" PUSH_HEARTBEAT_TOPIC " +t000 - "},
		{1, MANY - 1, "+t001 +t002 "},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct push_topics *before = make_topics(NULL, table[i].before),
				   *next = make_topics(NULL, table[i].next);
		const char *sent;

		play_connection();
		push_sockets_follow(&sockets, before, next);
		sent = take_filters();
		if (table[i].sent[0] == '\0' || table[i].next != MANY - 1)
			assert_string_equal(sent, table[i].sent);
		else
			assert_memory_equal(sent, table[i].sent, strlen(table[i].sent));
		end_connection();
		push_topics_free(before);
		push_topics_free(next);
	}
}

static void filters__that_cannot_be_sent__give_the_session_up(void **state)
{
	static const size_t one[] = {0}, other[] = {1};
	static const struct {
		const size_t *before, *next;
		size_t before_count, next_count, nth;
	} table[] = {
		{one, other, 1, 1, 1},
		{one, other, 1, 1, 2},
		{NULL, one, MANY, 1, 1},
		{NULL, one, MANY, 1, 3},
		{one, NULL, 1, MANY, 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct push_topics *before = make_topics(table[i].before, table[i].before_count),
				   *next = make_topics(table[i].next, table[i].next_count);

		begin(NULL, NULL);
		play_connection();
		connect_wholly();
		fault_zmq_fail(table[i].nth, EAGAIN);
		push_sockets_follow(&sockets, before, next);
		assert_true(fault_zmq_failed());
		assert_int_equal(session.phase, SESSION_CLOSED);
		assert_words(status_now().error, "cannot change its subscriptions");
		assert_true(!sockets.socket && !sockets.monitor);
		push_sockets_follow(&sockets, before, next); /* nothing is there to be changed */
		end_connection();
		push_topics_free(before);
		push_topics_free(next);
	}
}

/* ---- open ---- */

static void write_key(char ret_public[CURVE_TEXT])
{
	char secret[CURVE_TEXT], why[CURVE_WHY];

	assert_int_equal(zmq_curve_keypair(ret_public, secret), 0);
	assert_int_equal(curve_write_pair(&sys_real, key_file, ret_public, secret, why), 0);
}

static void sockets__opened__have_their_options(void **state)
{
	static const struct {
		int option, value;
	} table[] = {
		{ZMQ_LINGER, 0},
		{ZMQ_RCVHWM, 64},
		{ZMQ_CONNECT_TIMEOUT, 5000},
		{ZMQ_TCP_MAXRT, 20000},
		{ZMQ_TCP_KEEPALIVE_INTVL, 10},
		{ZMQ_TCP_KEEPALIVE_CNT, 6},
		{ZMQ_IPV6, 1},
		{ZMQ_HEARTBEAT_IVL, 5000},
		{ZMQ_RECONNECT_IVL_MAX, 2000},
	};
	int64_t most = 0;
	size_t size = sizeof(most);
	int linger = -1;

	(void)state;
	fault_zmq.option_count = 0;
	assert_int_equal(push_sockets_open(&sockets, NULL), 0);
	assert_true(sockets.socket && sockets.monitor);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		assert_int_equal(fault_zmq_option(table[i].option), table[i].value);
	assert_int_equal(fault_zmq_option(ZMQ_RECONNECT_IVL), session.reconnect_ms);
	assert_int_equal(zmq_getsockopt(sockets.socket, ZMQ_MAXMSGSIZE, &most, &size), 0);
	assert_int_equal(most, PUSH_MAX_ENVELOPE + 64);
	size = sizeof(linger);
	assert_int_equal(zmq_getsockopt(sockets.monitor, ZMQ_LINGER, &linger, &size), 0);
	assert_int_equal(linger, 0);
	assert_string_equal(sockets.public_key, "");
	push_sockets_close(&sockets);
	session.only_ipv4 = true;
	fault_zmq.option_count = 0;
	assert_int_equal(push_sockets_open(&sockets, NULL), 0);
	assert_int_equal(fault_zmq_option(ZMQ_IPV6), 0);
}

/* Each call that may fail: two sockets, the monitor's linger, all options, three keys, a filter,
 * the monitor, two connections. */
static void sockets__that_cannot_be_opened__leave_nothing_open(void **state)
{
	char server_key[CURVE_TEXT];
	struct push_topics *two = make_topics(NULL, 2);
	size_t nth = 1;

	(void)state;
	write_key(server_key);
	begin(server_key, key_file);
	for (;; nth++) {
		fault_zmq_fail(nth, EMFILE);
		if (push_sockets_open(&sockets, two) == 0 && !fault_zmq_failed())
			break;
		assert_true(!sockets.socket && !sockets.monitor);
		assert_int_equal(fault_zmq.sockets, 0);
	}
	assert_true(nth > 25);
	assert_true(sockets.socket && sockets.monitor);
	push_topics_free(two);
}

static void sockets__without_descriptors__are_an_error(void **state)
{
	(void)state;
	for (size_t nth = 1; nth <= 20; nth++) { /* the last is the endpoint's */
		fault_zmq_fail(nth, EMFILE);
		assert_int_equal(push_sockets_open(&sockets, NULL), -EMFILE);
		assert_true(fault_zmq_failed());
	}
}

static void check_key(void *socket, int option, const char *wanted)
{
	char key[CURVE_TEXT] = "";
	size_t size = sizeof(key);

	assert_int_equal(zmq_getsockopt(socket, option, key, &size), 0);
	assert_string_equal(key, wanted);
}

static void key__of_the_agent__is_shown_and_used(void **state)
{
	char server_key[CURVE_TEXT], secret[CURVE_TEXT], own[CURVE_TEXT];
	const char *why = NULL;

	(void)state;
	assert_int_equal(zmq_curve_keypair(server_key, secret), 0);
	write_key(own);
	begin(server_key, key_file);
	assert_int_equal(push_sockets_open(&sockets, NULL), 0);
	assert_string_equal(sockets.public_key, own);
	check_key(sockets.socket, ZMQ_CURVE_SERVERKEY, server_key);
	check_key(sockets.socket, ZMQ_CURVE_PUBLICKEY, own);
	assert_int_equal(curve_read_secret(&sys_real, key_file, secret, &why), 0);
	check_key(sockets.socket, ZMQ_CURVE_SECRETKEY, secret);
}

static void key__made_for_a_connection__is_another_each_time_and_not_shown(void **state)
{
	char server_key[CURVE_TEXT], secret[CURVE_TEXT], first[CURVE_TEXT], second[CURVE_TEXT];
	size_t size = CURVE_TEXT;

	(void)state;
	assert_int_equal(zmq_curve_keypair(server_key, secret), 0);
	begin(server_key, NULL);
	assert_int_equal(push_sockets_open(&sockets, NULL), 0);
	assert_int_equal(zmq_getsockopt(sockets.socket, ZMQ_CURVE_PUBLICKEY, first, &size), 0);
	push_sockets_close(&sockets);
	assert_int_equal(push_sockets_open(&sockets, NULL), 0);
	assert_int_equal(zmq_getsockopt(sockets.socket, ZMQ_CURVE_PUBLICKEY, second, &size), 0);
	assert_string_not_equal(first, second);
	assert_string_equal(sockets.public_key, "");
}

static void key__that_cannot_be_had__refuses_without_a_socket(void **state)
{
	char server_key[CURVE_TEXT];

	(void)state;
	write_key(server_key);
	begin(server_key, NULL);
	fault_zmq_fail(1, ENOTSUP);
	assert_int_equal(push_sockets_open(&sockets, NULL), 0);
	assert_words(status_now().error, "no key could be made for this connection");
	assert_true(status_now().state == PUSH_REFUSED && !sockets.socket);

	begin(server_key, key_file);
	fault_zmq_fail(1, EINVAL);
	assert_int_equal(push_sockets_open(&sockets, NULL), 0);
	assert_words(status_now().error, "the secret key's file does not hold a secret key");
	assert_true(status_now().state == PUSH_REFUSED && !sockets.socket);

	unlink(key_file);
	begin(server_key, key_file);
	assert_int_equal(push_sockets_open(&sockets, NULL), 0);
	assert_non_null(status_now().error);
	assert_true(status_now().state == PUSH_REFUSED && !sockets.socket);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(event__of_a_connection__is_passed_on),
		CASE(event__that_says_nothing__changes_nothing),
		CASE(event__of_a_failed_handshake__says_why_and_closes),
		CASE(event__that_cannot_be_read__is_an_error),
		CASE(message__in_each_form__is_heard_or_bad),
		CASE(message__of_which_a_frame_cannot_be_read__is_an_error),
		CASE(filters__of_other_topics__are_what_differs),
		CASE(filters__beyond_the_bound__are_one_for_all),
		CASE(filters__that_cannot_be_sent__give_the_session_up),
		CASE(sockets__opened__have_their_options),
		CASE(sockets__that_cannot_be_opened__leave_nothing_open),
		CASE(sockets__without_descriptors__are_an_error),
		CASE(key__of_the_agent__is_shown_and_used),
		CASE(key__made_for_a_connection__is_another_each_time_and_not_shown),
		CASE(key__that_cannot_be_had__refuses_without_a_socket),
	};

	return cmocka_run_group_tests_name("sockets", tests, NULL, NULL);
}

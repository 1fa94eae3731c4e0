/*
 * The policy of one endpoint on a virtual clock: which messages are news, what each end of a
 * connection and of a handshake leads to, silence, and sockets that are replaced.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "push/session.h"
#include "tests/unit/fixture/captured.h"

#define BEGIN_MS UINT64_C(1000000)
#define HEARTBEAT_MS 5000
#define INTERVAL_MS 3600000

static uint64_t clock_ms, drawn; /* drawn: what randomness gives */

static uint64_t now_ms(void)
{
	return clock_ms;
}

static uint64_t next_random(void)
{
	return drawn;
}

static uint64_t now_us(void)
{
	return clock_ms * 1000;
}

static const struct sys sys = {.now_ms = now_ms, .monotonic_us = now_us, .random = next_random};

static struct trigger_queue queue;
static struct trigger triggers[2];
static struct push_topic topics[2];
static struct push_topics *table;
static struct session s;
static struct subscriber_listener listener;
static unsigned heard, missed;
static const char *heard_topic, *missed_cause;
static struct push_message heard_message;

static void wake(void *arg)
{
	(void)arg;
}

static int set_up(void **state)
{
	struct push_topic *const list[] = {&topics[0], &topics[1]};

	(void)state;
	log_setup(LOG_LEVEL_ERR, LOG_FORMAT_TEXT);
	clock_ms = BEGIN_MS;
	drawn = 0;
	heard = missed = 0;
	listener = (struct subscriber_listener){NULL};
	trigger_queue_init(&queue, wake, NULL);
	for (size_t i = 0; i < 2; i++) {
		trigger_init(&triggers[i], &queue);
		trigger_fire(&triggers[i], clock_ms, INTERVAL_MS);
		topics[i] = (struct push_topic){
			.topic = i ? "db" : "web", .trigger = &triggers[i], .pulled = true};
	}
	table = push_topics_new(&sys, list, 2, 2);
	return table ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	push_topics_free(table);
	while (trigger_queue_take(&queue))
		;
	return 0;
}

static void begin_session(const struct subscriber_endpoint *at, const char *public_key)
{
	session_init(&s, &(struct session_setup){.sys = &sys,
				 .at = at,
				 .public_key = public_key,
				 .number = 1,
				 .listener = &listener,
				 .topics = table});
}

static unsigned count_words(const char *text, const char *words)
{
	unsigned n = 0;

	for (; (text = strstr(text, words)); text++)
		n++;
	return n;
}

static void begin_far(void)
{
	begin_session(
		&(struct subscriber_endpoint){"tcp://192.0.2.1:7377", HEARTBEAT_MS, NULL, NULL},
		"");
}

/* Takes the hints that came since, as bits: the first or second topic's. */
static unsigned take_hints(void)
{
	unsigned hinted = 0;
	uint64_t due_ms;

	while (trigger_queue_take(&queue))
		;
	for (size_t i = 0; i < 2; i++) {
		assert_true(trigger_due(&triggers[i], &due_ms));
		if (due_ms < clock_ms + INTERVAL_MS / 2)
			hinted |= 1u << i;
		trigger_fire(&triggers[i], clock_ms, INTERVAL_MS);
	}
	return hinted;
}

static struct subscriber_status status_now(void)
{
	struct subscriber_status now;

	session_get_status(&s, &now);
	return now;
}

static enum session_action note(enum session_event e)
{
	return session_note(&s, e, clock_ms);
}

static void connect_wholly(void)
{
	assert_int_equal(note(SESSION_CONNECTED), SESSION_NONE);
	assert_int_equal(s.phase, SESSION_GREETING);
	assert_int_equal(note(SESSION_GREETED), SESSION_NONE);
	assert_int_equal(s.phase, SESSION_UP);
	assert_int_equal(status_now().state, PUSH_CONNECTED);
	take_hints();
}

static void send_envelope(const char *topic, const char *envelope)
{
	const struct session_message m = {
		topic, envelope, strlen(topic), envelope ? strlen(envelope) : 0, false};

	session_hear(&s, &m, clock_ms);
}

static void expect_failure(enum session_event e, enum subscriber_state state, const char *words)
{
	assert_int_equal(note(e), SESSION_CLOSE);
	assert_int_equal(s.phase, SESSION_CLOSED);
	assert_int_equal(status_now().state, state);
	assert_non_null(status_now().error);
	if (!strstr(status_now().error, words))
		fail_msg("%s: %s", words, status_now().error);
}

/* Until the deadline, and then. */
static void rebuild(void)
{
	uint64_t due_ms = session_deadline_ms(&s);

	assert_true(due_ms > clock_ms);
	clock_ms = due_ms - 1;
	assert_int_equal(session_due(&s, clock_ms), SESSION_NONE);
	clock_ms = due_ms;
	assert_int_equal(session_due(&s, clock_ms), SESSION_REBUILD);
	assert_int_equal(s.phase, SESSION_DIALING);
	assert_int_equal(session_deadline_ms(&s), 0);
}

/* ---- beginning ---- */

static void intervals__far_away__are_long_and_random(void **state)
{
	(void)state;
	begin_far();
	assert_int_equal(s.reconnect_ms, 2000);
	assert_int_equal(s.retry_max_ms, 60000);
	drawn = 8000;
	begin_far();
	assert_int_equal(s.reconnect_ms, 10000);
	assert_int_equal(status_now().state, PUSH_CONNECTING);
	assert_int_equal(session_deadline_ms(&s), 0);
	assert_int_equal(session_due(&s, UINT64_MAX), SESSION_NONE);
}

static void hear_one(void *arg, size_t endpoint, const char *topic, const struct push_message *m)
{
	assert_ptr_equal(arg, &heard);
	assert_int_equal(endpoint, 1);
	heard++;
	heard_topic = topic;
	heard_message = *m;
}

static void miss_some(void *arg, size_t endpoint, const char *cause)
{
	assert_ptr_equal(arg, &heard);
	assert_int_equal(endpoint, 1);
	missed++;
	missed_cause = cause;
}

static void intervals__on_this_host_and_of_a_relay__are_short(void **state)
{
	(void)state;
	begin_session(&(struct subscriber_endpoint){"ipc:///run/push", 100, NULL, NULL}, "");
	assert_int_equal(s.reconnect_ms, 100);
	assert_int_equal(s.retry_max_ms, 2000);
	listener.heard = hear_one;
	begin_far();
	assert_int_equal(s.reconnect_ms, 100);
	assert_int_equal(s.retry_max_ms, 2000);
}

/* ---- messages ---- */

static void connection__that_is_made__makes_all_pull(void **state)
{
	(void)state;
	begin_far();
	topics[1].pulled = false; /* its first pull is about to begin */
	assert_int_equal(note(SESSION_CONNECTED), SESSION_NONE);
	assert_int_equal(take_hints(), 0);
	assert_int_equal(note(SESSION_GREETED), SESSION_NONE);
	assert_int_equal(take_hints(), 1);
	assert_int_equal(status_now().connects, 1);
	assert_null(status_now().error);
}

static void message__hints_at_its_topic_only(void **state)
{
	(void)state;
	begin_far();
	connect_wholly();
	clock_ms += 7;
	send_envelope("db", "{\"v\":1,\"version\":\"x\"}");
	assert_int_equal(take_hints(), 2);
	assert_true(topics[1].wanted != 0);
	send_envelope("db2", NULL);
	send_envelope("web", NULL);
	assert_int_equal(take_hints(), 1);
	assert_int_equal(status_now().messages, 2);
	assert_int_equal(status_now().last_message_ms, clock_ms);
	assert_string_equal(status_now().endpoint, "tcp://192.0.2.1:7377");
}

static void message__of_no_known_form__is_counted_and_dropped(void **state)
{
	char longer[PUSH_MAX_TOPIC + 2] = "web";
	const struct session_message bad[] = {
		{"", NULL, 0, 0, false},
		{longer, NULL, PUSH_MAX_TOPIC + 1, 0, false},
		{"web\0x", NULL, 5, 0, false},
	};

	(void)state;
	begin_far();
	connect_wholly();
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		session_hear(&s, &bad[i], clock_ms);
	assert_int_equal(status_now().bad, 3);
	assert_int_equal(status_now().last_message_ms, 0);
	assert_int_equal(take_hints(), 0);
}

static void envelope__that_is_invalid__is_a_hint_still(void **state)
{
	(void)state;
	begin_far();
	connect_wholly();
	send_envelope("web", "{nonsense");
	assert_int_equal(status_now().bad, 1);
	assert_int_equal(take_hints(), 1);
}

static void message__of_more_than_two_frames__is_a_hint_still(void **state)
{
	const char envelope[] = "{\"v\":1,\"epoch\":\"e\",\"seq\":7}";
	const struct session_message m = {"web", envelope, 3, sizeof(envelope) - 1, true};

	(void)state;
	begin_far();
	connect_wholly();
	session_hear(&s, &m, clock_ms);
	session_hear(&s, &m, clock_ms);
	assert_int_equal(status_now().bad, 2);
	assert_int_equal(status_now().messages, 2);
	assert_int_equal(take_hints(), 1); /* of both: nothing is read of the envelope */
	assert_string_equal(s.epoch, "");
}

static void number__that_repeats_or_is_missing__is_known(void **state)
{
	(void)state;
	begin_far();
	connect_wholly();
	send_envelope("web", "{\"v\":1,\"epoch\":\"e\",\"seq\":1}");
	assert_int_equal(take_hints(), 1);
	send_envelope("web", "{\"v\":1,\"epoch\":\"e\",\"seq\":1}");
	assert_int_equal(take_hints(), 0);
	send_envelope("web", "{\"v\":1,\"epoch\":\"e\",\"seq\":3}");
	assert_int_equal(take_hints(), 1);
	assert_int_equal(status_now().gaps, 1);
	assert_int_equal(status_now().epochs, 0);
}

static void epoch__that_is_another_one__makes_all_pull(void **state)
{
	(void)state;
	begin_far();
	connect_wholly();
	send_envelope(PUSH_HEARTBEAT_TOPIC, "{\"v\":1,\"epoch\":\"e\"}");
	assert_int_equal(take_hints(), 0); /* the first one that is known */
	send_envelope("web", "{\"v\":1,\"epoch\":\"e\",\"seq\":9}");
	take_hints();
	send_envelope(PUSH_HEARTBEAT_TOPIC, "{\"v\":1,\"epoch\":\"f\"}");
	assert_int_equal(take_hints(), 3);
	assert_int_equal(status_now().epochs, 1);
	send_envelope("web", "{\"v\":1,\"epoch\":\"f\",\"seq\":1}"); /* numbers begin again */
	assert_int_equal(take_hints(), 1);
	assert_int_equal(status_now().gaps, 0);
	send_envelope("web", "{\"v\":1,\"epoch\":\"g\",\"seq\":2}");
	assert_int_equal(take_hints(), 3);
	assert_int_equal(status_now().epochs, 2);
	send_envelope(PUSH_HEARTBEAT_TOPIC, NULL); /* says nothing about it */
	assert_int_equal(take_hints(), 0);
	assert_int_equal(status_now().heartbeats, 3);
}

static void topics__that_are_set__count_from_then_on(void **state)
{
	struct push_topic *const one[] = {&topics[1]};
	struct push_topics *before = table;

	(void)state;
	begin_far();
	connect_wholly();
	table = push_topics_new(&sys, one, 1, 2);
	assert_non_null(table);
	push_topics_follow(table, before);
	session_set_topics(&s, table);
	push_topics_free(before);
	send_envelope("web", NULL);
	send_envelope("db", NULL);
	assert_int_equal(take_hints(), 2);
	assert_int_equal(status_now().messages, 1);
}

static void listener__hears_all_in_place_of_hints(void **state)
{
	(void)state;
	listener = (struct subscriber_listener){hear_one, miss_some, &heard, false};
	begin_far();
	connect_wholly();
	assert_int_equal(missed, 1);
	assert_string_equal(missed_cause, "connected");
	send_envelope("any", "{\"v\":1,\"epoch\":\"e\",\"seq\":4}");
	assert_string_equal(heard_topic, "any");
	assert_int_equal(heard_message.seq, 4);
	send_envelope(PUSH_HEARTBEAT_TOPIC, "{\"v\":1,\"epoch\":\"f\"}");
	assert_string_equal(heard_topic, PUSH_HEARTBEAT_TOPIC);
	send_envelope(PUSH_HEARTBEAT_TOPIC, "{\"v\":1,\"epoch\":\"g\"}");
	assert_int_equal(heard, 3);
	assert_int_equal(take_hints(), 0);
	assert_int_equal(status_now().messages, 1);
	assert_int_equal(status_now().epochs, 0); /* the listener's to compare */
	rebuild();
	assert_int_equal(missed, 2);
	assert_string_equal(missed_cause, "no heartbeat");
}

/* ---- silence ---- */

static void silence__of_three_heartbeats__makes_all_pull_and_replaces_the_socket(void **state)
{
	(void)state;
	begin_far();
	connect_wholly();
	assert_int_equal(session_deadline_ms(&s), 0); /* it may have none */
	send_envelope("web", NULL);
	assert_int_equal(session_deadline_ms(&s), 0);
	send_envelope(PUSH_HEARTBEAT_TOPIC, NULL);
	assert_int_equal(session_deadline_ms(&s), clock_ms + 3 * HEARTBEAT_MS);
	clock_ms += HEARTBEAT_MS;
	send_envelope("web", NULL);
	take_hints();
	assert_int_equal(session_deadline_ms(&s), clock_ms + 3 * HEARTBEAT_MS);
	rebuild();
	assert_int_equal(take_hints(), 3);
	assert_int_equal(status_now().state, PUSH_SILENT);
	assert_int_equal(status_now().rebuilds, 1);
	note(SESSION_CONNECTED);
	assert_int_equal(status_now().state, PUSH_SILENT);
	send_envelope("web", NULL); /* comes before the event */
	assert_int_equal(status_now().state, PUSH_CONNECTED);
}

/* Spread over a heartbeat, at most five seconds: the whole fleet finds it at that moment. */
static void silence__spreads_the_pulls(void **state)
{
	static const uint64_t heartbeats_ms[] = {1000, 60000}, spread_ms[] = {1000, 5000};
	uint64_t due_ms;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		begin_session(&(struct subscriber_endpoint){"tcp://192.0.2.1:1", heartbeats_ms[i],
				      NULL, NULL},
			"");
		connect_wholly();
		send_envelope(PUSH_HEARTBEAT_TOPIC, NULL);
		drawn = spread_ms[i]; /* of 0 to that */
		rebuild();
		assert_true(trigger_due(&triggers[0], &due_ms));
		assert_int_equal(due_ms, clock_ms + spread_ms[i]);
		drawn = 0;
		clock_ms += 100000;
		take_hints();
	}
}

/* ---- connections that end ---- */

static void end__without_a_retry__is_shown_at_once_and_replaces_the_socket(void **state)
{
	(void)state;
	begin_far();
	connect_wholly();
	send_envelope(PUSH_HEARTBEAT_TOPIC, NULL);
	assert_int_equal(note(SESSION_ENDED), SESSION_NONE);
	assert_int_equal(s.phase, SESSION_LOST);
	assert_int_equal(status_now().state, PUSH_CONNECTING);
	assert_int_equal(session_deadline_ms(&s), clock_ms + 1000);
	send_envelope("web", NULL); /* was still in the queue */
	assert_int_equal(session_deadline_ms(&s), clock_ms + 1000);
	assert_int_equal(status_now().state, PUSH_CONNECTING);
	rebuild();
	assert_int_equal(status_now().rebuilds, 1);
	assert_int_equal(status_now().state, PUSH_CONNECTING); /* not silent */
}

static void address__that_reaches_nobody__is_said_once_a_minute_and_tried_by_its_socket(
	void **state)
{
	struct captured log = captured_begin(STDERR_FILENO);
	char said[4096];

	(void)state;
	log_setup(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	begin_far();
	for (int i = 0; i < 61; i++) {
		assert_int_equal(note(SESSION_RETRIED), SESSION_NONE);
		assert_int_equal(session_deadline_ms(&s), 0);
		assert_int_equal(status_now().state, PUSH_CONNECTING);
		assert_non_null(strstr(status_now().error, "nobody answers there"));
		clock_ms += 1000;
	}
	note(SESSION_CONNECTED);
	assert_null(status_now().error); /* somebody is there */
	note(SESSION_GREETED);
	assert_null(status_now().error);
	captured_read(&log, said, sizeof(said));
	captured_end(&log);
	assert_int_equal(count_words(said, "push channel not connected"), 2);
	assert_int_equal(status_now().rebuilds, 0);
}

static void end__with_a_retry__replaces_nothing(void **state)
{
	(void)state;
	begin_far();
	connect_wholly();
	note(SESSION_ENDED);
	assert_int_equal(note(SESSION_RETRIED), SESSION_NONE);
	assert_int_equal(s.phase, SESSION_DIALING);
	assert_int_equal(session_deadline_ms(&s), 0);
	note(SESSION_RETRIED);
	connect_wholly();
	assert_int_equal(status_now().connects, 2);
	assert_int_equal(status_now().rebuilds, 0);
	note(SESSION_ENDED);
	note(SESSION_CONNECTED); /* without a word before */
	assert_int_equal(session_deadline_ms(&s), 0);
}

static void name__that_reaches_nobody__is_dialled_by_the_other_family_next(void **state)
{
	static const char *const named[] = {
		"tcp://push.example:1", "tcp://10.example:1", "tcp://192.0.2.1:1"};
	static const bool has_name[] = {true, true, false};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		begin_session(
			&(struct subscriber_endpoint){named[i], HEARTBEAT_MS, NULL, NULL}, "");
		assert_false(s.only_ipv4);
		assert_int_equal(note(SESSION_RETRIED), has_name[i] ? SESSION_CLOSE : SESSION_NONE);
		assert_int_equal(s.only_ipv4, has_name[i]);
		if (!has_name[i])
			continue;
		assert_int_equal(s.phase, SESSION_CLOSED);
		assert_null(status_now().error); /* the other half is next, at once */
		assert_int_equal(session_deadline_ms(&s), clock_ms + 1);
		clock_ms++;
		assert_int_equal(session_due(&s, clock_ms), SESSION_REBUILD);
		assert_int_equal(note(SESSION_RETRIED), SESSION_CLOSE);
		assert_false(s.only_ipv4);
		assert_non_null(strstr(status_now().error, "nobody answers at its name"));
		assert_true(session_deadline_ms(&s) >= clock_ms + s.reconnect_ms / 2);
		clock_ms = session_deadline_ms(&s);
		session_due(&s, clock_ms);
		note(SESSION_RETRIED);
		session_due(&s, ++clock_ms);
		assert_true(s.only_ipv4);
		connect_wholly(); /* the one that reaches somebody stays */
		assert_null(status_now().error);
		note(SESSION_ENDED);
		assert_int_equal(note(SESSION_RETRIED), SESSION_NONE);
		assert_true(s.only_ipv4);
		note(SESSION_RETRIED); /* and is the first of the next two */
		assert_false(s.only_ipv4);
		assert_int_equal(session_deadline_ms(&s), clock_ms + 1);
		assert_int_equal(status_now().rebuilds, 0);
	}
}

static void lose_and_connect(void)
{
	note(SESSION_ENDED);
	note(SESSION_RETRIED);
	clock_ms += 100;
	connect_wholly();
}

static void end__again_and_again__is_two_lines_a_minute(void **state)
{
	struct captured log = captured_begin(STDERR_FILENO);
	char said[4096];

	(void)state;
	log_setup(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	begin_far();
	connect_wholly();
	for (int i = 0; i < 20; i++)
		lose_and_connect();
	clock_ms += 60000;
	lose_and_connect();
	captured_read(&log, said, sizeof(said));
	captured_end(&log);
	assert_int_equal(count_words(said, "push channel lost: reconnecting"), 2);
	assert_int_equal(count_words(said, "push channel lost again: it comes and goes"), 1);
	assert_int_equal(count_words(said, "push channel connected"), 4);
	assert_non_null(strstr(said, "repeated="));
}

static void end__after_silence__is_no_news(void **state)
{
	(void)state;
	begin_far();
	connect_wholly();
	send_envelope(PUSH_HEARTBEAT_TOPIC, NULL);
	rebuild();
	note(SESSION_RETRIED);
	assert_int_equal(status_now().state, PUSH_SILENT);
	connect_wholly();
	atomic_store(&s.state, PUSH_CONNECTING);
	note(SESSION_ENDED);
	assert_int_equal(status_now().state, PUSH_CONNECTING);
}

static void cut__gives_up(void **state)
{
	(void)state;
	begin_far();
	connect_wholly();
	expect_failure(SESSION_CUT, PUSH_CONNECTING, "over the limit of memory");
	assert_int_equal(status_now().cuts, 1);
	assert_int_equal(status_now().refused, 0);
	assert_int_equal(note(SESSION_GREETED), SESSION_NONE); /* from before */
	assert_int_equal(s.phase, SESSION_CLOSED);
	rebuild();
	assert_int_equal(status_now().rebuilds, 0); /* there was none any more */
}

static void pauses__grow_while_it_fails_and_begin_again(void **state)
{
	static const uint64_t pauses_ms[] = {1000, 2000, 4000, 8000, 16000, 30000, 30000};

	(void)state;
	begin_far();
	for (size_t i = 0; i < sizeof(pauses_ms) / sizeof(pauses_ms[0]); i++) {
		note(SESSION_CONNECTED);
		note(SESSION_ENDED);
		assert_int_equal(session_deadline_ms(&s), clock_ms + pauses_ms[i]);
		rebuild();
	}
	connect_wholly();
	note(SESSION_ENDED);
	assert_int_equal(session_deadline_ms(&s), clock_ms + 1000);
	rebuild();
	connect_wholly();
	drawn = 1000; /* of 0 to 1000 */
	note(SESSION_ENDED);
	assert_int_equal(session_deadline_ms(&s), clock_ms + 2000);
}

/* ---- handshakes ---- */

static const char key[] = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7";

static void handshake__that_fails__says_what_to_do(void **state)
{
	static const struct {
		enum session_event event;
		const char *text[4]; /* of an agent, without and with a key; of a relay */
	} rows[] = {
		{SESSION_REJECTED,
			{"it wants CURVE (set curve)", ": server_key is not its public key",
				"it wants CURVE (--upstream-curve-server-key)",
				": --upstream-curve-server-key is not its public key"}},
		{SESSION_MISMATCHED,
			{"does not send plain text: it wants CURVE (set curve)", "or remove curve",
				"it wants CURVE (--upstream-curve-server-key)",
				"or leave --upstream-curve-server-key out"}},
		{SESSION_UNDECIPHERED, {"cannot decrypt", ": server_key is not", "cannot decrypt",
					       ": --upstream-curve-server-key is not"}},
		{SESSION_BROKEN, {"to the protocol", "to the protocol", "to the protocol",
					 "to the protocol"}},
		{SESSION_DENIED, {"set secret_key_file", "does not allow this agent's key",
					 "set --upstream-curve-secret-key",
					 "does not allow this relay's "
					 "key"}},
		{SESSION_ENDED, {"not a ZeroMQ publisher", "not a ZeroMQ publisher",
					"not a ZeroMQ publisher", "not a ZeroMQ publisher"}},
	};
	const struct subscriber_endpoint plain = {"tcp://192.0.2.1:1", HEARTBEAT_MS, NULL, NULL},
					 keyed = {"tcp://192.0.2.1:1", HEARTBEAT_MS, key, "/key"};

	(void)state;
	for (size_t i = 0; i < 4 * sizeof(rows) / sizeof(rows[0]); i++) {
		listener.relays = i % 4 >= 2;
		begin_session(i % 2 ? &keyed : &plain, i % 2 ? key : "");
		note(SESSION_CONNECTED);
		expect_failure(rows[i / 4].event, PUSH_REFUSED, rows[i / 4].text[i % 4]);
		assert_int_equal(status_now().refused, 1);
	}
}

static void handshake__refused__is_shown_until_the_publisher_is_gone(void **state)
{
	(void)state;
	begin_far();
	note(SESSION_CONNECTED);
	expect_failure(SESSION_MISMATCHED, PUSH_REFUSED, "CURVE");
	rebuild();
	note(SESSION_CONNECTED);
	note(SESSION_RETRIED); /* it ended once more: the reason comes, or has come */
	assert_int_equal(status_now().state, PUSH_REFUSED);
	assert_non_null(status_now().error);
	note(SESSION_RETRIED); /* nobody there */
	assert_int_equal(status_now().state, PUSH_CONNECTING);
	assert_non_null(strstr(status_now().error, "nobody answers there"));
}

static void handshake__without_an_answer__is_no_refusal(void **state)
{
	(void)state;
	begin_far();
	note(SESSION_CONNECTED);
	clock_ms += PUSH_HANDSHAKE_MS / 2;
	expect_failure(SESSION_REJECTED, PUSH_CONNECTING, "does not answer");
	assert_int_equal(status_now().refused, 0);
	rebuild();
	expect_failure(SESSION_REJECTED, PUSH_REFUSED, "ended the handshake"); /* none began */
}

static void handshake__without_an_answer_after_silence__leaves_it_silent(void **state)
{
	(void)state;
	begin_far();
	connect_wholly();
	send_envelope(PUSH_HEARTBEAT_TOPIC, NULL);
	rebuild();
	note(SESSION_CONNECTED);
	clock_ms += PUSH_HANDSHAKE_MS;
	expect_failure(SESSION_REJECTED, PUSH_SILENT, "does not answer");
}

/* ---- the owner's failures ---- */

static void socket__that_cannot_be_opened__changes_nothing_else(void **state)
{
	(void)state;
	begin_far();
	note(SESSION_CONNECTED);
	expect_failure(SESSION_DENIED, PUSH_REFUSED, "list");
	rebuild();
	expect_failure(SESSION_NO_SOCKET, PUSH_REFUSED, "cannot open a socket");
	rebuild();
	connect_wholly();
	expect_failure(SESSION_NO_FILTER, PUSH_CONNECTING, "cannot change");
}

static void own_key__that_cannot_be_read__is_a_refusal(void **state)
{
	(void)state;
	begin_session(
		&(struct subscriber_endpoint){"tcp://192.0.2.1:1", HEARTBEAT_MS, key, "/key"}, "");
	session_refuse_key(&s, "unreadable", clock_ms);
	assert_int_equal(s.phase, SESSION_CLOSED);
	assert_int_equal(status_now().state, PUSH_REFUSED);
	assert_string_equal(status_now().error, "unreadable");
	rebuild();
	assert_int_equal(status_now().rebuilds, 0);
}

/* One line a minute; the next one counts. */
static void cause__that_repeats__is_one_line_a_minute(void **state)
{
	(void)state;
	begin_far();
	for (unsigned i = 0; i < 5; i++) {
		note(SESSION_CONNECTED);
		expect_failure(SESSION_BROKEN, PUSH_REFUSED, "protocol");
		rebuild();
	}
	assert_true(s.log_limit.suppressed >= 3);
	clock_ms += LOG_LIMIT_MS;
	expect_failure(SESSION_BROKEN, PUSH_REFUSED, "protocol");
	assert_int_equal(s.log_limit.suppressed, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* Whatever randomness gives: each agent connects at a moment of its own. */
static void connected__pulls_at_once(void **state)
{
	uint64_t due_ms = 0;

	(void)state;
	begin_far();
	drawn = 1;
	note(SESSION_CONNECTED);
	clock_ms += 100;
	note(SESSION_GREETED);
	while (trigger_queue_take(&queue))
		;
	for (size_t i = 0; i < 2; i++) {
		assert_true(trigger_due(&triggers[i], &due_ms));
		assert_int_equal(due_ms, clock_ms);
	}
}

static void connection__that_is_made_again__is_silent_only_after_a_heartbeat(void **state)
{
	(void)state;
	begin_far();
	connect_wholly();
	send_envelope(PUSH_HEARTBEAT_TOPIC, NULL);
	assert_int_equal(session_deadline_ms(&s), clock_ms + 3 * HEARTBEAT_MS);
	assert_int_equal(note(SESSION_ENDED), SESSION_NONE);
	assert_int_equal(note(SESSION_RETRIED), SESSION_NONE);
	connect_wholly();
	send_envelope("web", NULL); /* an old publisher may send none */
	assert_int_equal(session_deadline_ms(&s), 0);
	send_envelope(PUSH_HEARTBEAT_TOPIC, NULL);
	assert_int_equal(session_deadline_ms(&s), clock_ms + 3 * HEARTBEAT_MS);
}

static void silence__again_and_again__is_a_line_a_minute(void **state)
{
	struct captured log = captured_begin(STDERR_FILENO);
	char said[4096];

	(void)state;
	log_setup(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	begin_far();
	for (int i = 0; i < 4; i++) {
		connect_wholly();
		send_envelope(PUSH_HEARTBEAT_TOPIC, NULL);
		clock_ms = session_deadline_ms(&s);
		assert_int_equal(session_due(&s, clock_ms), SESSION_REBUILD);
	}
	captured_read(&log, said, sizeof(said));
	captured_end(&log);
	assert_int_equal(count_words(said, "push channel silent: pulling"),
		1 + 3 * 3 * HEARTBEAT_MS / 60000);
	assert_in_range(count_words(said, "push channel connected"), 1, 2);
}

/* Once through everything that is logged. */
static void live_through(const char *envelope)
{
	begin_far();
	connect_wholly();
	send_envelope("web", envelope);
	note(SESSION_ENDED);
	rebuild();
	connect_wholly();
	note(SESSION_ENDED);
	note(SESSION_RETRIED);
	connect_wholly();
	send_envelope(PUSH_HEARTBEAT_TOPIC, NULL);
	rebuild();
	note(SESSION_CONNECTED);
	expect_failure(SESSION_BROKEN, PUSH_REFUSED, "protocol");
	rebuild();
	connect_wholly();
	expect_failure(SESSION_CUT, PUSH_CONNECTING, "memory");
}

static void each_change__is_a_line_of_an_agent_or_of_a_relay(void **state)
{
	static const struct {
		const char *of_agent, *of_relay;
		unsigned times;
	} lines[] = {
		{"push channel connected endpoint=tcp://192.0.2.1:7377\n",
			"upstream connected endpoint=tcp://192.0.2.1:7377\n", 4},
		{"push channel lost: reconnecting; pulls go on by interval endpoint=tcp",
			"upstream lost: reconnecting endpoint=tcp", 1},
		{"push channel lost again: it comes and goes; logged once a minute endpoint=",
			"upstream lost again: it comes and goes; logged once a minute "
			"endpoint=",
			1},
		{"push channel silent: pulling, and making a new socket endpoint=tcp",
			"upstream silent: all agents pull; making a new socket endpoint=tcp", 1},
		{"push channel rebuilt: the socket received nothing any more endpoint=tcp",
			"upstream rebuilt: the socket received nothing any more endpoint=tcp", 1},
		{"push channel refused: pulls go on by interval endpoint=tcp",
			"upstream refused: trying again endpoint=tcp", 1},
		{"push channel not connected: pulls go on by interval endpoint=tcp",
			"upstream not connected: trying again endpoint=tcp", 1},
		{"invalid envelope of a push message: taking the bare topic endpoint=tcp",
			"invalid envelope of a push message: taking the bare topic "
			"endpoint=tcp",
			1},
	};
	struct captured log;
	char said[8192];

	(void)state;
	for (int relays = 0; relays < 2; relays++) {
		listener = (struct subscriber_listener){.relays = relays};
		log = captured_begin(STDERR_FILENO);
		log_setup(LOG_LEVEL_DEBUG, LOG_FORMAT_TEXT);
		live_through("{nonsense");
		captured_read(&log, said, sizeof(said));
		captured_end(&log);
		for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
			const char *words = relays ? lines[i].of_relay : lines[i].of_agent;

			if (count_words(said, words) != lines[i].times)
				fail_msg("%u times %s:\n%s", lines[i].times, words, said);
		}
	}
}

/* The owner reads messages before events. */
static void heartbeat__before_the_event_of_its_connection__counts(void **state)
{
	(void)state;
	begin_far();
	for (int i = 0; i < 2; i++) { /* the second one is made again */
		if (i == 0)
			note(SESSION_CONNECTED);
		send_envelope(PUSH_HEARTBEAT_TOPIC, NULL);
		if (i == 1)
			note(SESSION_CONNECTED);
		note(SESSION_GREETED);
		assert_int_equal(session_deadline_ms(&s), clock_ms + 3 * HEARTBEAT_MS);
		note(SESSION_ENDED);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(intervals__far_away__are_long_and_random),
		CASE(intervals__on_this_host_and_of_a_relay__are_short),
		CASE(connection__that_is_made__makes_all_pull),
		CASE(message__hints_at_its_topic_only),
		CASE(message__of_no_known_form__is_counted_and_dropped),
		CASE(envelope__that_is_invalid__is_a_hint_still),
		CASE(message__of_more_than_two_frames__is_a_hint_still),
		CASE(number__that_repeats_or_is_missing__is_known),
		CASE(epoch__that_is_another_one__makes_all_pull),
		CASE(topics__that_are_set__count_from_then_on),
		CASE(listener__hears_all_in_place_of_hints),
		CASE(silence__of_three_heartbeats__makes_all_pull_and_replaces_the_socket),
		CASE(silence__spreads_the_pulls),
		CASE(end__without_a_retry__is_shown_at_once_and_replaces_the_socket),
		CASE(name__that_reaches_nobody__is_dialled_by_the_other_family_next),
		CASE(address__that_reaches_nobody__is_said_once_a_minute_and_tried_by_its_socket),
		CASE(end__with_a_retry__replaces_nothing),
		CASE(end__again_and_again__is_two_lines_a_minute),
		CASE(end__after_silence__is_no_news),
		CASE(cut__gives_up),
		CASE(pauses__grow_while_it_fails_and_begin_again),
		CASE(handshake__that_fails__says_what_to_do),
		CASE(handshake__refused__is_shown_until_the_publisher_is_gone),
		CASE(handshake__without_an_answer__is_no_refusal),
		CASE(handshake__without_an_answer_after_silence__leaves_it_silent),
		CASE(socket__that_cannot_be_opened__changes_nothing_else),
		CASE(own_key__that_cannot_be_read__is_a_refusal),
		CASE(cause__that_repeats__is_one_line_a_minute),
		CASE(connected__pulls_at_once),
		CASE(connection__that_is_made_again__is_silent_only_after_a_heartbeat),
		CASE(silence__again_and_again__is_a_line_a_minute),
		CASE(each_change__is_a_line_of_an_agent_or_of_a_relay),
		CASE(heartbeat__before_the_event_of_its_connection__counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* `pullet doctor`, the push channel: what is said of endpoints whose counters the test plays. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "push/subscriber.h"
#include "tests/unit/fixture/examined.h"

#define KEY "1234512345123451234512345123451234512345"
#define ENDPOINTS 3

static struct subscriber_status statuses[ENDPOINTS];
static struct subscriber_endpoint listened[ENDPOINTS]; /* to these */
static size_t listened_count;
static int result; /* of listening */
static bool stopped;

int subscriber_listen(const struct sys *sys, const struct subscriber_endpoint *endpoints,
	size_t endpoint_count, const struct subscriber_listener *listener,
	struct subscriber **ret_push)
{
	assert_ptr_equal(sys, &sys_real);
	assert_non_null(listener->heard);
	assert_in_range(endpoint_count, 1, ENDPOINTS);
	memcpy(listened, endpoints, endpoint_count * sizeof(*endpoints));
	listened_count = endpoint_count;
	if (result == 0)
		*ret_push = (struct subscriber *)(void *)statuses;
	return result;
}

void subscriber_get_status(
	const struct subscriber *p, size_t endpoint, struct subscriber_status *ret_status)
{
	assert_ptr_equal(p, statuses);
	*ret_status = statuses[endpoint];
	ret_status->endpoint = listened[endpoint].endpoint;
}

void subscriber_stop(struct subscriber *p)
{
	assert_true(p == NULL || p == (struct subscriber *)(void *)statuses);
	stopped = true;
}

static void configure(const char *push)
{
	settings_free(doctor.settings);
	doctor.settings = scratch_settings(
		"%sconfigs:\n  web: {url: 'http://127.0.0.1:1/w', snapshot: true}\n", push);
}

static int set_up(void **state)
{
	alarm(30);
	examined_set_up(state);
	doctor.loop = loop_new(&sys_real);
	doctor.timeout_ms = 20000;
	memset(statuses, 0, sizeof(statuses));
	listened_count = 0;
	result = 0;
	stopped = false;
	configure("push:\n- {endpoint: 'ipc:///p', heartbeat: 100ms}\n");
	return 0;
}

static int tear_down(void **state)
{
	loop_free(doctor.loop);
	return examined_tear_down(state);
}

static const char *examine(void)
{
	doctor_push(&doctor, &list);
	return findings_of(NULL);
}

static void endpoint__that_answers__is_good(void **state)
{
	(void)state;
	statuses[0] = (struct subscriber_status){.connects = 1, .heartbeats = 1, .messages = 1};
	assert_string_equal(examine(), "ok ipc:///p: connected, and a heartbeat came\n");
	statuses[0].heartbeats = 0;
	assert_string_equal(examine(), "ok ipc:///p: connected, and a message came\n");
	assert_true(stopped);
}

static void endpoint__that_refuses__is_an_error(void **state)
{
	static const char remedy[] = " -> put the keys right here or there (FILE.pub beside a "
				     "secret key has the public one); "
				     "no restart is needed\n";

	(void)state;
	statuses[0] = (struct subscriber_status){.state = PUSH_REFUSED, .error = "wrong key"};
	assert_string_equal(strstr(examine(), " -> "), remedy);
	assert_int_equal(strncmp(text, "error ipc:///p: refused: wrong key -> ", 38), 0);
	statuses[0].error = NULL;
	examine();
	assert_int_equal(strncmp(text, "error ipc:///p: refused: the handshake failed -> ", 49), 0);
}

/* Each is waited for until its time is up. */
static void endpoint__that_is_silent__is_told_when_its_time_is_up(void **state)
{
	static const char remedy[] = " -> check name, port, firewall, and whether the publisher "
				     "runs; until then changes "
				     "are seen at the interval\n";

	(void)state;
	doctor.timeout_ms = 0;
	statuses[0].error = "refused";
	assert_string_equal(strstr(examine(), " -> "), remedy);
	assert_int_equal(strncmp(text, "error ipc:///p: no connection: refused -> ", 42), 0);
	statuses[0].error = NULL;
	examine();
	assert_int_equal(
		strncmp(text, "error ipc:///p: no connection: nobody answers there -> ", 55), 0);
	statuses[0].connects = 1;
	doctor.settings->push[0].heartbeat_ms = 1000; /* too short a time for three of these */
	assert_string_equal(examine(), "ok ipc:///p: connected\n");
	doctor.settings->push[0].heartbeat_ms = 1;
	doctor.timeout_ms = 1;
	assert_int_equal(
		strncmp(examine(), "note ipc:///p: connected, but no heartbeat came in ", 51), 0);
	assert_string_equal(strstr(text, " ms, three times"),
		" ms, three times what is configured: a publisher that hangs is not noticed -> let "
		"the publisher send the topic pullet.heartbeat that often, as pullet serve and "
		"relay do, or set heartbeat to what it does\n");
}

static uint64_t passed_ms;

static uint64_t now_passed(void)
{
	return 1000 + passed_ms;
}

static void pass(uint64_t due_ms)
{
	if (due_ms != UINT64_MAX) /* it has stopped */
		passed_ms = due_ms - 1000;
}

/* How long a silent endpoint with that heartbeat is listened to. */
static uint64_t patience_for(uint64_t heartbeat_ms)
{
	static struct sys sys;

	passed_ms = 0;
	sys = sys_real;
	sys.now_ms = now_passed;
	sys.wait_until = pass;
	loop_free(doctor.loop);
	doctor.loop = loop_new(&sys);
	doctor.settings->push[0].heartbeat_ms = heartbeat_ms;
	examine();
	return passed_ms;
}

static void endpoint__that_is_silent__has_three_heartbeats_but_no_more_than_ten_seconds(
	void **state)
{
	(void)state;
	assert_in_range(patience_for(100), 800, 900);
	assert_in_range(patience_for(1000), 3500, 3600);
	assert_in_range(patience_for(60000), 10000, 10100);
	doctor.timeout_ms = 2000;
	assert_in_range(patience_for(1000), 2000, 2100);
}

static void endpoints__are_listened_to_with_their_keys(void **state)
{
	(void)state;
	put_file("key", 0600);
	configure(in_dir(
		"push:\n- {endpoint: 'tcp://192.0.2.1:1', heartbeat: 7s, curve: {server_key: '" KEY
		"', secret_key_file: @/key}}\n- {endpoint: 'ipc:///q'}\n"));
	statuses[0].messages = statuses[1].messages = 1;
	statuses[0].connects = statuses[1].connects = 1;
	assert_string_equal(examine(), "ok tcp://192.0.2.1:1: connected, and a message came\n"
				       "ok ipc:///q: connected, and a message came\n");
	assert_int_equal(listened_count, 2);
	assert_string_equal(listened[0].endpoint, "tcp://192.0.2.1:1");
	assert_string_equal(listened[0].server_key, KEY);
	assert_string_equal(listened[0].secret_key_file, in_dir("@/key"));
	assert_int_equal(listened[0].heartbeat_ms, 7000);
	assert_null(listened[1].server_key);
	assert_int_equal(listened[1].heartbeat_ms, 5000);
}

static void endpoint__whose_key_we_may_not_read__is_not_looked_at(void **state)
{
	(void)state;
	if (!we_are_root())
		skip();
	put_file("key", 0600);
	assert_int_equal(chmod(in_dir("@"), 0755), 0);
	configure(in_dir("push:\n- {endpoint: 'tcp://192.0.2.1:1', curve: {server_key: '" KEY
			 "', secret_key_file: @/key}}\n- {endpoint: 'ipc:///q'}\n"));
	doctor.who.can_try = false;
	statuses[0].messages = statuses[0].connects = 1;
	assert_int_equal(setreuid(OTHER, 0), 0); /* access() asks for the real user */
	examine();
	assert_int_equal(setreuid(0, 0), 0);
	assert_string_equal(text,
		"note tcp://192.0.2.1:1: not looked at: you may not read the secret key -> run "
		"this as root or as the agent's user\n"
		"ok ipc:///q: connected, and a message came\n");
	assert_int_equal(listened_count, 1);
}

static void channel__that_cannot_be_listened_to__says_why(void **state)
{
	(void)state;
	result = -EMFILE;
	assert_string_equal(examine(),
		"error push: cannot be listened to: Too many open files -> look at memory and the "
		"limit of open files\n");
	result = -EOPNOTSUPP;
	assert_string_equal(examine(), "error push: cannot be listened to: Operation not supported "
				       "-> install a libzmq that has CURVE\n");
	result = -EPERM;
	assert_string_equal(examine(),
		"error push: cannot be listened to: Operation not permitted -> allow "
		"sched_setscheduler() in the sandbox (seccomp), here and for the agent; in a unit, "
		"SystemCallFilter=sched_setscheduler\n");
	configure(""); /* there is none */
	result = -EIO;
	assert_string_equal(examine(), "");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(endpoint__that_answers__is_good),
		CASE(endpoint__that_refuses__is_an_error),
		CASE(endpoint__that_is_silent__is_told_when_its_time_is_up),
		CASE(endpoint__that_is_silent__has_three_heartbeats_but_no_more_than_ten_seconds),
		CASE(endpoints__are_listened_to_with_their_keys),
		CASE(endpoint__whose_key_we_may_not_read__is_not_looked_at),
		CASE(channel__that_cannot_be_listened_to__says_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

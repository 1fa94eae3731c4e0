/*
 * What libcurl is told by a client, each option that it refuses, and when it is called again. It is
 * played where it takes options and where it works; the clock stands still.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <curl/curl.h>

#include "http/client.h"

#undef curl_easy_setopt
#undef curl_multi_setopt

#define OPTIONS 80
#define NOW_MS 1000

static struct loop *loop;
static struct http_client *client;
static uint64_t next_ms; /* the next timer, counted from now */

/* ---- libcurl ---- */

static struct {
	size_t count, refused; /* the refused-th option from 1 on; 0: none */
	size_t of_start;       /* how many there were when the transfer was started */
	struct {
		CURLoption option;
		intptr_t value;
	} options[OPTIONS];
	/* the client's timer, and how long it is asked to wait by libcurl at work */
	int (*timer)(CURLM *multi, long timeout_ms, void *arg);
	void *timer_arg;
	long wait_ms;
	CURLMcode error;
	unsigned works, performs, multis;
} told;

CURLcode curl_easy_setopt(CURL *easy, CURLoption option, ...)
{
	va_list args;

	(void)easy;
	assert_true(told.count < OPTIONS);
	va_start(args, option);
	told.options[told.count].option = option;
	told.options[told.count++].value = va_arg(args, intptr_t);
	va_end(args);
	return told.count == told.refused ? CURLE_UNKNOWN_OPTION : CURLE_OK;
}

CURLMcode curl_multi_setopt(CURLM *multi, CURLMoption option, ...)
{
	va_list args;

	(void)multi;
	va_start(args, option);
	told.multis += option == CURLMOPT_TIMERDATA; /* of each once */
	if (option == CURLMOPT_TIMERFUNCTION)
		told.timer = va_arg(args, int (*)(CURLM *, long, void *));
	if (option == CURLMOPT_TIMERDATA)
		told.timer_arg = va_arg(args, void *);
	va_end(args);
	return CURLM_OK;
}

CURLMcode curl_multi_socket_action(CURLM *multi, curl_socket_t fd, int mask, int *running)
{
	assert_int_equal(fd, CURL_SOCKET_TIMEOUT);
	assert_int_equal(mask, 0);
	*running = 0;
	told.works++;
	if (told.works == 1)
		assert_int_equal(told.timer(multi, told.wait_ms, told.timer_arg), 0);
	return told.error;
}

CURLMcode curl_multi_perform(CURLM *multi, int *running)
{
	(void)multi;
	*running = 0;
	told.performs++;
	return CURLM_OK;
}

/* The last value of an option; "missing" is none that libcurl has. */
static intptr_t value_of(CURLoption option, intptr_t missing)
{
	for (size_t i = told.count; i-- > 0;)
		if (told.options[i].option == option)
			return told.options[i].value;
	return missing;
}

/* ---- the client ---- */

static uint64_t stand_still(void)
{
	return NOW_MS;
}

static void note_next(uint64_t due_ms)
{
	next_ms = due_ms == UINT64_MAX ? UINT64_MAX : due_ms - NOW_MS;
	loop_stop(loop);
}

static int set_up(void **state)
{
	static struct sys sys;

	(void)state;
	sys = sys_real;
	sys.now_ms = stand_still;
	sys.wait_until = note_next;
	memset(&told, 0, sizeof(told));
	loop = loop_new(&sys);
	client = http_client_new(loop);
	return loop && client ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	http_client_free(client);
	loop_free(loop);
	return 0;
}

static void never_done(void *arg, struct http_client_response *r)
{
	(void)arg, (void)r;
	fail_msg("a transfer ended that never ran");
}

static int start_and_cancel(const struct http_client_request *q)
{
	struct transfer *t = NULL;
	int r;

	told.count = 0;
	r = http_client_start(client, q, never_done, NULL, &t);
	assert_int_equal(t != NULL, r == 0);
	told.of_start = told.count;
	if (t)
		http_client_cancel(t);
	return r;
}

/* ---- options ---- */

static const struct http_client_request plain = {.url = "http://127.0.0.1:1/x",
						.max_bytes = 1000,
						.timeout_ms = 7000,
						.connect_timeout_ms = 3000},
					whole = {.url = "https://127.0.0.1:1/x",
						.unix_socket = "/s",
						.method = "PUT",
						.body = "b",
						.body_len = 1,
						.user = "u",
						.password = "p",
						.tls = {"/ca", "/crl", "/cert", "/key", true},
						.max_bytes = 1000,
						.timeout_ms = 7000,
						.connect_timeout_ms = 3000};

static void option__that_safety_depends_on__is_set(void **state)
{
	static const struct {
		CURLoption option;
		long value;
	} table[] = {
		{CURLOPT_FOLLOWLOCATION, 0},
		{CURLOPT_UNRESTRICTED_AUTH, 0},
		{CURLOPT_SSL_VERIFYPEER, 1},
		{CURLOPT_SSL_VERIFYHOST, 2},
		{CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2},
		{CURLOPT_HTTP09_ALLOWED, 0},
		{CURLOPT_NETRC, CURL_NETRC_IGNORED},
		{CURLOPT_DISALLOW_USERNAME_IN_URL, 1},
		{CURLOPT_HTTP_CONTENT_DECODING, 0},
		{CURLOPT_HTTP_TRANSFER_DECODING, 0},
		{CURLOPT_NOSIGNAL, 1},
		{CURLOPT_QUICK_EXIT, 1},
		{CURLOPT_TCP_NODELAY, 1},
		{CURLOPT_TCP_KEEPALIVE, 1},
		{CURLOPT_TIMEOUT_MS, 7000},
		{CURLOPT_CONNECTTIMEOUT_MS, 3000},
	};

	(void)state;
	assert_int_equal(start_and_cancel(&plain), 0);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (value_of(table[i].option, -1) != table[i].value)
			fail_msg("option %d is not %ld", (int)table[i].option, table[i].value);
	assert_int_not_equal(value_of(CURLOPT_HTTP_VERSION, -1), CURL_HTTP_VERSION_1_1);
	assert_string_equal((const char *)value_of(CURLOPT_PROTOCOLS_STR, 0), "http,https");
	assert_string_equal((const char *)value_of(CURLOPT_REDIR_PROTOCOLS_STR, 0), "https");
	assert_string_equal((const char *)value_of(CURLOPT_PROXY, 0), "");
	assert_string_equal((const char *)value_of(CURLOPT_NOPROXY, 0), "*");
}

static void option__of_a_request__is_set_where_it_has_one(void **state)
{
	static const struct {
		CURLoption option;
		const char *text;
	} table[] = {
		{CURLOPT_UNIX_SOCKET_PATH, "/s"},
		{CURLOPT_CAINFO, "/ca"},
		{CURLOPT_CRLFILE, "/crl"},
		{CURLOPT_SSLCERT, "/cert"},
		{CURLOPT_SSLKEY, "/key"},
		{CURLOPT_USERNAME, "u"},
		{CURLOPT_PASSWORD, "p"},
		{CURLOPT_CUSTOMREQUEST, "PUT"},
	};

	(void)state;
	assert_int_equal(start_and_cancel(&whole), 0);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		assert_string_equal((const char *)value_of(table[i].option, 0), table[i].text);
	assert_int_equal(value_of(CURLOPT_SSLVERSION, 0), CURL_SSLVERSION_TLSv1_3);
	assert_int_equal(value_of(CURLOPT_HTTPAUTH, 0), CURLAUTH_BASIC);
	assert_int_equal(value_of(CURLOPT_PATH_AS_IS, -1), 1);
	assert_int_equal(start_and_cancel(&plain), 0);
	assert_int_equal(value_of(CURLOPT_PATH_AS_IS, -1), -1);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		assert_int_equal(value_of(table[i].option, -1), -1);
	assert_int_equal(value_of(CURLOPT_HTTPAUTH, -1), -1);
	assert_int_equal(value_of(CURLOPT_CERTINFO, -1), 0);
	http_client_examine(client);
	assert_int_equal(start_and_cancel(&plain), 0);
	assert_int_equal(value_of(CURLOPT_CERTINFO, -1), 1);
}

static void option__that_libcurl_refuses__is_an_error_whichever_it_is(void **state)
{
	size_t count;

	(void)state;
	assert_int_equal(start_and_cancel(&whole), 0);
	count = told.of_start;
	assert_in_range(count, 40, OPTIONS);
	for (told.refused = 1; told.refused <= count; told.refused++)
		if (start_and_cancel(&whole) == 0)
			fail_msg("option %d is not needed",
				(int)told.options[told.refused - 1].option);
}

/* ---- idle connections ---- */

static void connections__that_are_forgotten__go_when_none_is_used(void **state)
{
	struct transfer *t;

	(void)state;
	assert_int_equal(told.multis, 1);
	assert_int_equal(start_and_cancel(&plain), 0);
	assert_int_equal(told.multis, 1);
	told.count = 0;
	assert_int_equal(http_client_start(client, &plain, never_done, NULL, &t), 0);
	http_client_forget(client);
	assert_int_equal(start_and_cancel(&plain), 0);
	assert_int_equal(told.multis, 1);
	http_client_cancel(t);
	for (int i = 0; i < 2; i++) { /* once */
		assert_int_equal(start_and_cancel(&plain), 0);
		assert_int_equal(told.multis, 2);
	}
}

/* ---- the timer ---- */

/* libcurl asks to be called in so long, outside of its work; the next timer then. */
static uint64_t next_after(long timeout_ms)
{
	told.works = told.performs = 0;
	assert_int_equal(told.timer(NULL, timeout_ms, told.timer_arg), 0);
	assert_int_equal(loop_run(loop), 0);
	return next_ms;
}

static void timer__is_due_when_libcurl_asks__and_is_none_when_it_does_not(void **state)
{
	(void)state;
	assert_int_equal(next_after(50), 50);
	assert_int_equal(next_after(1), 1);
	assert_int_equal(next_after(-1), UINT64_MAX);
	assert_int_equal(told.works, 0);
}

static void timer__of_libcurl_at_work__is_a_millisecond_at_least(void **state)
{
	static const struct {
		long wait_ms;
		uint64_t next_ms;
	} table[] = {{0, 1}, {1, 1}, {2, 2}, {50, 50}, {-1, UINT64_MAX}};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		told.wait_ms = table[i].wait_ms;
		assert_int_equal(next_after(0), table[i].next_ms);
		assert_int_equal(told.works, 1);
	}
}

static void work__that_fails__is_tried_again(void **state)
{
	(void)state;
	told.wait_ms = -1;
	told.error = CURLM_OUT_OF_MEMORY;
	assert_int_equal(next_after(0), 100);
	assert_int_equal(told.performs, 0);
	told.error = CURLM_ABORTED_BY_CALLBACK; /* its transfers end then */
	assert_int_equal(next_after(0), UINT64_MAX);
	assert_int_equal(told.performs, 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(option__that_safety_depends_on__is_set),
		CASE(option__of_a_request__is_set_where_it_has_one),
		CASE(option__that_libcurl_refuses__is_an_error_whichever_it_is),
		CASE(connections__that_are_forgotten__go_when_none_is_used),
		CASE(timer__is_due_when_libcurl_asks__and_is_none_when_it_does_not),
		CASE(timer__of_libcurl_at_work__is_a_millisecond_at_least),
		CASE(work__that_fails__is_tried_again),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

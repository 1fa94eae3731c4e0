/*
 * A server's addresses: their order differs from host to host, evenly, and stays when one is added.
 * A task that fails, or shows less than there is, goes on to the next. Its line: who is withdrawn
 * does not begin. What else a server does with pulls is held by
 * tests/integration/test_servers.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../agent/log.h"
#include "../../agent/server.h"

#define HOSTS 3000

static uint64_t host_id;

static uint64_t host(void)
{
	/* like hashes of names that differ in one digit */
	return host_id * UINT64_C(0x9e3779b97f4a7c15);
}

static char urls[4][40] = {"https://config-1.example", "https://config-2.example",
	"https://config-3.example", "https://config-4.example"};
static char *lists[2][4] = {{urls[0], urls[1], urls[2]}, {urls[3], urls[2], urls[1], urls[0]}};

/* The addresses in the order of this host. */
static void order(struct loop *l, unsigned list, size_t count, const char *ret_order[4])
{
	struct settings_server settings = {
		.urls = lists[list], .url_count = count, .max_in_flight = 1};
	struct server *s = server_new(l, &settings);
	struct server_address_status a;

	assert_non_null(s);
	for (size_t i = 0; i < count; i++) {
		server_address_status(s, i, &a);
		ret_order[i] = a.url;
	}
	server_free(s);
}

static void order__of_many_hosts__is_even(void **state)
{
	struct sys sys = sys_real;
	unsigned first[3][3] = {{0}};
	const char *o[4];
	struct loop *l;

	(void)state;
	sys.host = host;
	l = loop_new(&sys);
	assert_non_null(l);
	for (host_id = 0; host_id < HOSTS; host_id++) {
		order(l, 0, 3, o);
		for (unsigned place = 0; place < 3; place++)
			for (unsigned url = 0; url < 3; url++)
				first[place][url] += o[place] == urls[url];
	}
	for (unsigned place = 0; place < 3; place++)
		for (unsigned url = 0; url < 3; url++)
			assert_in_range(first[place][url], HOSTS / 3 - 150, HOSTS / 3 + 150);
	loop_free(l);
}

static void order__with_one_more_address__keeps_that_of_the_others(void **state)
{
	struct sys sys = sys_real;
	const char *before[4], *after[4];
	unsigned added_first = 0;
	struct loop *l;

	(void)state;
	sys.host = host;
	l = loop_new(&sys);
	assert_non_null(l);
	for (host_id = 0; host_id < HOSTS; host_id++) {
		unsigned n = 0;

		order(l, 0, 3, before);
		order(l, 1, 4, after); /* written in another order, too */
		for (unsigned i = 0; i < 4; i++)
			if (after[i] != urls[3])
				assert_ptr_equal(after[i], before[n++]);
		added_first += after[0] == urls[3];
	}
	assert_in_range(added_first, HOSTS / 4 - 150, HOSTS / 4 + 150);
	loop_free(l);
}

/* ---- from one address to the next ---- */

static uint64_t now_ms;

static uint64_t clock_ms(void)
{
	return now_ms;
}

static uint64_t least(void)
{
	return 0;
}

static bool goes(void *arg)
{
	unsigned *begun = arg;

	++*begun;
	return true;
}

static void does_not_wait(void *arg, const char *why)
{
	(void)arg;
	fail_msg("%s", why);
}

/* Rests are as short as may be, and time passes. */
static struct loop *open_site(struct sys *ret_sys, struct server **ret_server, char *const *list)
{
	static struct settings_server settings;
	struct loop *l;

	settings =
		(struct settings_server){.urls = (char **)list, .url_count = 3, .max_in_flight = 1};
	*ret_sys = sys_real;
	ret_sys->now_ms = clock_ms;
	ret_sys->random = least;
	ret_sys->host = host;
	now_ms = 1000;
	l = loop_new(ret_sys);
	assert_non_null(l);
	*ret_server = server_new(l, &settings);
	assert_non_null(*ret_server);
	return l;
}

static void retry__after_very_short_rests__asks_each_address_once(void **state)
{
	const struct transport_response refused = {.result = TRANSPORT_REFUSED};
	const char *asked[3];
	unsigned begun = 0;
	struct server_task t = {.begin = goes, .lost = does_not_wait, .arg = &begun};
	struct server *s;
	struct sys sys;
	struct loop *l = open_site(&sys, &s, lists[0]);

	(void)state;
	server_submit(s, &t, UINT64_MAX);
	for (unsigned n = 0; n < 3; n++) {
		assert_int_equal(begun, n + 1);
		asked[n] = server_url(s, &t);
		for (unsigned k = 0; k < n; k++)
			assert_ptr_not_equal(asked[n], asked[k]);
		now_ms += 5; /* the one before it has rested */
		assert_int_equal(server_ended(s, &t, &refused), n < 2);
		if (n < 2)
			server_retry(s, &t);
	}
	server_free(s);
	loop_free(l);
}

static void avoid__of_an_address__goes_round_and_returns_after_a_while(void **state)
{
	const struct transport_response good = {.result = TRANSPORT_OK, .status = 200};
	struct server_address_status a[3];
	unsigned begun = 0;
	struct server_task t = {.begin = goes, .lost = does_not_wait, .arg = &begun};
	struct server *s;
	struct sys sys;
	struct loop *l = open_site(&sys, &s, lists[0]);

	(void)state;
	for (size_t i = 0; i < 3; i++)
		server_address_status(s, i, &a[i]);
	for (unsigned n = 0; n < 7; n++) {
		server_submit(s, &t, UINT64_MAX);
		assert_string_equal(server_url(s, &t), a[n % 3].url);
		server_ended(s, &t, &good);
		server_avoid(s, &t);
	}
	for (unsigned n = 0; n < 2; n++) { /* and stays */
		server_submit(s, &t, UINT64_MAX);
		assert_string_equal(server_url(s, &t), a[1].url);
		server_ended(s, &t, &good);
	}
	now_ms += SERVER_AWAY_MS;
	server_submit(s, &t, UINT64_MAX);
	assert_string_equal(server_url(s, &t), a[0].url);
	server_ended(s, &t, &good);
	server_free(s);
	loop_free(l);
}

static void ended__by_what_is_wrong_on_this_host__rests_no_address(void **state)
{
	const struct transport_response no_key = {.result = TRANSPORT_HOST, .message = "no key"};
	struct server_address_status a;
	unsigned begun = 0;
	struct server_task t = {.begin = goes, .lost = does_not_wait, .arg = &begun};
	struct server *s;
	struct sys sys;
	struct loop *l = open_site(&sys, &s, lists[0]);

	(void)state;
	for (unsigned n = 0; n < 3; n++) { /* the slot is free again each time */
		server_submit(s, &t, UINT64_MAX);
		assert_int_equal(begun, n + 1);
		server_address_status(s, 0, &a);
		assert_string_equal(server_url(s, &t), a.url);
		assert_false(server_ended(s, &t, &no_key));
	}
	for (size_t i = 0; i < 3; i++) {
		server_address_status(s, i, &a);
		assert_true(a.rests_ms == 0 && a.in_a_row == 0 && a.network == 0);
		assert_string_equal(a.error, "");
	}
	server_free(s);
	loop_free(l);
}

static void ended__with_a_long_sentence__keeps_all_of_it_until_it_is_well(void **state)
{
	const struct transport_response good = {.result = TRANSPORT_OK, .status = 200};
	struct transport_response failed = {.result = TRANSPORT_NETWORK};
	struct server_address_status a;
	unsigned begun = 0;
	struct server_task t = {.begin = goes, .lost = does_not_wait, .arg = &begun};
	struct server *s;
	struct sys sys;
	struct loop *l = open_site(&sys, &s, lists[0]);

	(void)state;
	memset(failed.message, 'w', sizeof(failed.message) - 1);
	server_submit(s, &t, UINT64_MAX);
	server_ended(s, &t, &failed);
	server_address_status(s, 0, &a);
	assert_string_equal(a.error, failed.message);
	now_ms += 5; /* it has rested */
	server_submit(s, &t, UINT64_MAX);
	server_ended(s, &t, &good);
	server_address_status(s, 0, &a);
	assert_string_equal(a.error, "");
	server_free(s);
	loop_free(l);
}

/* ---- the line ---- */

struct job {
	struct server *server;
	struct server_task task;
	struct job *unwanted; /* withdrawn when this one begins */
	unsigned begun;
};

static bool begins(void *arg)
{
	struct job *j = arg;

	j->begun++;
	if (j->unwanted)
		server_withdraw(j->server, &j->unwanted->task);
	return true;
}

static void is_lost(void *arg, const char *why)
{
	(void)arg;
	fail_msg("%s", why);
}

static void submit(struct job *j, struct server *s)
{
	j->server = s;
	j->task = (struct server_task){.begin = begins, .lost = is_lost, .arg = j};
	server_submit(s, &j->task, UINT64_MAX);
}

static void withdraw__of_one_that_is_in_the_same_batch__keeps_it_from_beginning(void **state)
{
	struct settings_server settings = {.urls = lists[0], .url_count = 1, .max_in_flight = 2};
	struct job jobs[6] = {{.begun = 0}};
	struct server_status status;
	struct loop *l = loop_new(&sys_real);
	struct server *s = server_new(l, &settings);

	(void)state;
	assert_non_null(s);
	for (int i = 0; i < 6; i++)
		assert_int_equal(server_join(s), 0);
	jobs[2].unwanted = &jobs[3];
	for (int i = 0; i < 5; i++) /* the first two run, the others wait */
		submit(&jobs[i], s);
	assert_int_equal(jobs[1].begun, 1);
	assert_int_equal(jobs[2].begun, 0);
	server_dropped(s);
	server_dropped(s);
	submit(&jobs[5], s); /* two slots: the line goes on */
	assert_int_equal(jobs[2].begun, 1);
	assert_int_equal(jobs[3].begun, 0);
	assert_int_equal(jobs[4].begun, 1); /* the slot goes to the next */
	assert_int_equal(jobs[5].begun, 0);
	server_status(s, &status);
	assert_int_equal(status.in_flight, 2);
	assert_int_equal(status.pending, 1);
	server_submit(s, &jobs[3].task, UINT64_MAX); /* wanted again */
	server_dropped(s);
	server_dropped(s);
	server_lift(s);
	assert_int_equal(jobs[5].begun, 1);
	assert_int_equal(jobs[3].begun, 1);
	server_free(s);
	loop_free(l);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(order__of_many_hosts__is_even),
		cmocka_unit_test(order__with_one_more_address__keeps_that_of_the_others),
		cmocka_unit_test(retry__after_very_short_rests__asks_each_address_once),
		cmocka_unit_test(avoid__of_an_address__goes_round_and_returns_after_a_while),
		cmocka_unit_test(ended__by_what_is_wrong_on_this_host__rests_no_address),
		cmocka_unit_test(ended__with_a_long_sentence__keeps_all_of_it_until_it_is_well),
		cmocka_unit_test(
			withdraw__of_one_that_is_in_the_same_batch__keeps_it_from_beginning),
	};

	log_setup(LOG_LEVEL_ERR, LOG_FORMAT_TEXT);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The metrics of a relay and whether it is ready, from counters that are played: each in its own
 * row, with its labels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/usage.h"
#include "cli/relay/relay_metrics.h"

struct listener {
	struct subscriber_status endpoints[2];
};

static struct listener upstreams;
static struct watch_item items[2];
static enum watch_state states[2];
static struct relay_view_source sources[3];
static struct relay_view view;
static struct sys sys;

static uint64_t virtual_now_ms(void)
{
	return 100000;
}

const struct relay_counts *relay_counts(const struct relay *r)
{
	static const struct relay_counts counts = {.changes = 101,
		.repeated = 102,
		.superseded = 103,
		.no_room = 104,
		.circled = 115,
		.messages = 105,
		.heartbeats = 106,
		.repetitions = 107,
		.slow = 108,
		.failed = 109,
		.doubts = 110,
		.losses = 111,
		.forgets = 112,
		.topics = 113,
		.waiting = 114};

	(void)r;
	return &counts;
}

void publisher_get_counts(const struct publisher *p, struct publisher_counts *ret_counts)
{
	(void)p;
	*ret_counts = (struct publisher_counts){.bytes = 201,
		.denied = 202,
		.cuts = 203,
		.held = {.subscribers = 204, .subscriptions = 205}};
}

void usage_read(const struct sys *read_by, struct usage *ret_usage)
{
	assert_ptr_equal(read_by, &sys);
	*ret_usage = (struct usage){.cpu_ms = 1500,
		.resident_bytes = 302,
		.virtual_bytes = 303,
		.open_fds = 304,
		.max_fds = 305};
}

void listener_get_status(
	const struct listener *u, size_t endpoint, struct subscriber_status *ret_status)
{
	assert_ptr_equal(u, &upstreams);
	assert_true(endpoint < 2);
	*ret_status = u->endpoints[endpoint];
}

enum watch_state watch_status(const struct watch_item *item, const char **ret_error)
{
	*ret_error = "";
	return states[item - items];
}

static int set_up(void **state)
{
	(void)state;
	sys = sys_real;
	sys.now_ms = virtual_now_ms;
	memset(&upstreams, 0, sizeof(upstreams));
	upstreams.endpoints[0] = (struct subscriber_status){.endpoint = "tcp://a:1",
		.state = PUSH_SILENT,
		.messages = 401,
		.heartbeats = 402,
		.bad = 403,
		.connects = 404,
		.rebuilds = 405,
		.refused = 406,
		.cuts = 407,
		.last_message_ms = 98500};
	upstreams.endpoints[1] = (struct subscriber_status){
		.endpoint = "tcp://b:1", .state = PUSH_REFUSED, .error = "the key is wrong"};
	sources[0] = (struct relay_view_source){(char *)"/a/", &items[0], 501};
	sources[1] = (struct relay_view_source){(char *)"/b/", &items[1], 502};
	sources[2] = (struct relay_view_source){(char *)"/dir", NULL, 503};
	states[0] = WATCH_FAILING;
	states[1] = WATCH_CONNECTING;
	view = (struct relay_view){.loop = loop_new(&sys),
		.upstreams = &upstreams,
		.upstream_count = 2,
		.sources = {&sources[0], &sources[1], &sources[2]},
		.source_count = 2,
		.invalid_names = 7,
		.started_ms = 1700000000500};
	assert_non_null(view.loop);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	loop_free(view.loop);
	return 0;
}

/* The lines without HELP, TYPE and UNIT. */
static void read_values(bool openmetrics, char *ret, size_t size)
{
	struct buffer out;
	size_t len = 0;

	buffer_init(&out, 1u << 20);
	assert_int_equal(relay_metrics_write(&view, openmetrics, &out), 0);
	ret[0] = '\0';
	for (const char *line = out.data, *end; (end = strchr(line, '\n')); line = end + 1)
		if (line[0] != '#' || strncmp(line, "# EOF", 5) == 0)
			len += (size_t)snprintf(
				ret + len, size - len, "%.*s\n", (int)(end - line), line);
	assert_true(len < size);
	buffer_fini(&out);
}

static void metrics__have_each_counter_once(void **state)
{
	char text[16384];

	(void)state;
	view.source_count = 3;
	read_values(false, text, sizeof(text));
	assert_string_equal(text,
		"pullet_relay_build_info{version=\"" PULLET_VERSION "\"} 1\n"
		"pullet_relay_ready 1\n"
		"pullet_relay_subscribers 204\n"
		"pullet_relay_subscriptions 205\n"
		"pullet_relay_topics 113\n"
		"pullet_relay_waiting_changes 114\n"
		"pullet_relay_changes_total 108\n" /* and 7 that no topic can have */
		"pullet_relay_dropped_changes_total{cause=\"repeated\"} 102\n"
		"pullet_relay_dropped_changes_total{cause=\"superseded\"} 103\n"
		"pullet_relay_dropped_changes_total{cause=\"no_room\"} 104\n"
		"pullet_relay_dropped_changes_total{cause=\"invalid_name\"} 7\n"
		"pullet_relay_dropped_changes_total{cause=\"circle\"} 115\n"
		"pullet_relay_messages_total 105\n"
		"pullet_relay_lost_messages_total{cause=\"slow_subscriber\"} 108\n"
		"pullet_relay_lost_messages_total{cause=\"error\"} 109\n"
		"pullet_relay_repetitions_total 107\n"
		"pullet_relay_heartbeats_total 106\n"
		"pullet_relay_sent_bytes_total 201\n"
		"pullet_relay_epochs_total{cause=\"doubt\"} 110\n"
		"pullet_relay_epochs_total{cause=\"lost_message\"} 111\n"
		"pullet_relay_epochs_total{cause=\"too_many_topics\"} 112\n"
		"pullet_relay_denied_subscribers_total 202\n"
		"pullet_relay_cut_subscribers_total 203\n"
		"process_start_time_seconds 1700000000.500\n"
		"process_cpu_seconds_total 1.500\n"
		"process_resident_memory_bytes 302\n"
		"process_virtual_memory_bytes 303\n"
		"process_open_fds 304\n"
		"process_max_fds 305\n"
		"pullet_relay_upstream_state{endpoint=\"tcp://a:1\",state=\"connecting\"} 0\n"
		"pullet_relay_upstream_state{endpoint=\"tcp://a:1\",state=\"connected\"} 0\n"
		"pullet_relay_upstream_state{endpoint=\"tcp://a:1\",state=\"silent\"} 1\n"
		"pullet_relay_upstream_state{endpoint=\"tcp://a:1\",state=\"refused\"} 0\n"
		"pullet_relay_upstream_state{endpoint=\"tcp://b:1\",state=\"connecting\"} 0\n"
		"pullet_relay_upstream_state{endpoint=\"tcp://b:1\",state=\"connected\"} 0\n"
		"pullet_relay_upstream_state{endpoint=\"tcp://b:1\",state=\"silent\"} 0\n"
		"pullet_relay_upstream_state{endpoint=\"tcp://b:1\",state=\"refused\"} 1\n"
		"pullet_relay_upstream_messages_total{endpoint=\"tcp://a:1\"} 401\n"
		"pullet_relay_upstream_messages_total{endpoint=\"tcp://b:1\"} 0\n"
		"pullet_relay_upstream_heartbeats_total{endpoint=\"tcp://a:1\"} 402\n"
		"pullet_relay_upstream_heartbeats_total{endpoint=\"tcp://b:1\"} 0\n"
		"pullet_relay_upstream_bad_messages_total{endpoint=\"tcp://a:1\"} 403\n"
		"pullet_relay_upstream_bad_messages_total{endpoint=\"tcp://b:1\"} 0\n"
		"pullet_relay_upstream_connects_total{endpoint=\"tcp://a:1\"} 404\n"
		"pullet_relay_upstream_connects_total{endpoint=\"tcp://b:1\"} 0\n"
		"pullet_relay_upstream_rebuilds_total{endpoint=\"tcp://a:1\"} 405\n"
		"pullet_relay_upstream_rebuilds_total{endpoint=\"tcp://b:1\"} 0\n"
		"pullet_relay_upstream_handshake_failures_total{endpoint=\"tcp://a:1\"} 406\n"
		"pullet_relay_upstream_handshake_failures_total{endpoint=\"tcp://b:1\"} 0\n"
		"pullet_relay_upstream_cuts_total{endpoint=\"tcp://a:1\"} 407\n"
		"pullet_relay_upstream_cuts_total{endpoint=\"tcp://b:1\"} 0\n"
		"pullet_relay_upstream_last_message_age_seconds{endpoint=\"tcp://a:1\"} 1.500\n"
		"pullet_relay_source_changes_total{source=\"/a/\"} 501\n"
		"pullet_relay_source_changes_total{source=\"/b/\"} 502\n"
		"pullet_relay_source_changes_total{source=\"/dir\"} 503\n"
		"pullet_relay_source_state{source=\"/a/\",state=\"off\"} 0\n"
		"pullet_relay_source_state{source=\"/a/\",state=\"connecting\"} 0\n"
		"pullet_relay_source_state{source=\"/a/\",state=\"watching\"} 0\n"
		"pullet_relay_source_state{source=\"/a/\",state=\"failing\"} 1\n"
		"pullet_relay_source_state{source=\"/b/\",state=\"off\"} 0\n"
		"pullet_relay_source_state{source=\"/b/\",state=\"connecting\"} 1\n"
		"pullet_relay_source_state{source=\"/b/\",state=\"watching\"} 0\n"
		"pullet_relay_source_state{source=\"/b/\",state=\"failing\"} 0\n");
}

static void metrics__of_no_upstream__have_none__and_open_ones_an_end(void **state)
{
	char text[16384];

	(void)state;
	view.upstreams = NULL;
	read_values(true, text, sizeof(text));
	assert_null(strstr(text, "upstream"));
	assert_non_null(strstr(text, "pullet_relay_ready 0\n"));
	assert_string_equal(text + strlen(text) - 6, "# EOF\n");
	upstreams.endpoints[0].last_message_ms = 100001; /* read a moment later */
	view.upstreams = &upstreams;
	read_values(false, text, sizeof(text));
	assert_non_null(strstr(text, "last_message_age_seconds{endpoint=\"tcp://a:1\"} 0.000\n"));
}

static void assert_ready(bool ready, bool verbose, const char *text)
{
	struct buffer out;

	buffer_init(&out, 4096);
	assert_int_equal(relay_metrics_ready(&view, false, NULL), ready);
	assert_int_equal(relay_metrics_ready(&view, verbose, &out), ready);
	assert_string_equal(out.data, text);
	buffer_fini(&out);
}

static void ready__is_one_that_hears_of_changes(void **state)
{
	(void)state;
	assert_ready(false, false,
		"[-]tcp://a:1: silent\n[-]tcp://b:1: refused, the key is wrong\n"
		"[-]/a/: failing\n[-]/b/: connecting\nnot ready\n");
	states[1] = WATCH_ON; /* the last one alone */
	assert_ready(true, false, "ok\n");
	assert_ready(true, true,
		"[-]tcp://a:1: silent\n[-]tcp://b:1: refused, the key is wrong\n"
		"[-]/a/: failing\n[+]/b/: watching\nok\n");
	states[1] = WATCH_OFF;
	upstreams.endpoints[0].state = PUSH_CONNECTED; /* the first one alone */
	assert_ready(true, false, "ok\n");
	view.upstreams = NULL; /* a directory alone */
	view.source_count = 3;
	assert_ready(true, true, "[-]/a/: failing\n[-]/b/: off\n[+]/dir: watching\nok\n");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(metrics__have_each_counter_once),
		CASE(metrics__of_no_upstream__have_none__and_open_ones_an_end),
		CASE(ready__is_one_that_hears_of_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

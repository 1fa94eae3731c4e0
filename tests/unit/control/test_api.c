/*
 * The control API of a whole agent: who waits, how long and how many; what a user who is no
 * operator may do and see. Another user is this process with another effective uid when it connects
 * (root only).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "control/api.h"
#include "tests/unit/fixture/pulletd.h"

#define STRANGER 54321u
#define WAIT "POST /v1/configs/slow/refresh?wait=1"

/* A config whose server accepts, and never answers. */
static void put_slow_settings(const char *agent_part, const char *configs)
{
	const char *url = played_listen_tcp();
	char text[1024];

	snprintf(text, sizeof(text),
		"  slow: {url: '%s/slow.yaml', type: yaml, snapshot: true, interval: 1h, timeout: "
		"20s}\n%s",
		url, configs);
	put_settings(agent_part, text);
}

/* Until the agent has so many waiters it is asked for more: each is in its hands when a later
 * request is answered. */
static void ask_in_order(void)
{
	ask("GET /livez");
	talk->count--;
}

/* ---- waiting ---- */

static void wait_in_vain(int printed)
{
	int fd;

	if (!log_has(printed, "started version", 1))
		return;
	ask(WAIT "&timeout_ms=20"); /* 0 */
	ask(WAIT "&timeout_ms=x");  /* 1 */
	fd = ask_begin(WAIT);
	ask_in_order();
	ask("GET /v1/configs/slow");                               /* 2 */
	ask("POST /v1/configs/slow/suspend?reason=repair");        /* 3 */
	ask_end(fd);                                               /* 4 */
	ask(WAIT);                                                 /* 5 */
	ask("GET /v1/configs/slow/wait?version=v7&timeout_ms=20"); /* 6 */
	ask("GET /readyz");                                        /* 7 */
}

static void waiter__whose_pull_does_not_end__is_answered_all_the_same(void **state)
{
	(void)state;
	put_slow_settings("", "");
	run_with(wait_in_vain);
	assert_answer(0, 504, "{\"error\":\"timed out: the request continues\"}");
	assert_answer(1, 400, "timeout_ms takes a number");
	assert_answer(2, 200, "\"running\":true");
	assert_answer(3, 200, "\"ok\":true");
	assert_answer(4, 409, "slow is suspended by ");
	assert_answer(4, 409, ": repair: `pullet resume slow` ends that");
	assert_answer(5, 409, "slow is suspended by ");
	assert_answer(6, 504, "version v7 was not published within 20ms; nothing is published yet");
	assert_answer(7, 503, "slow: nothing is published yet: the first pull ");
}

static void wait_in_a_crowd(int printed)
{
	int fds[CONTROL_MAX_WAITING];

	if (!log_has(printed, "started version", 1))
		return;
	for (size_t i = 0; i < CONTROL_MAX_WAITING; i++)
		fds[i] = ask_begin(WAIT);
	ask_in_order();
	ask(WAIT); /* 0 */
	close(fds[7]);
	ask_until(WAIT "&timeout_ms=1", "504"); /* 1: there is a place again */
	for (size_t i = 0; i < CONTROL_MAX_WAITING; i++)
		if (i != 7)
			close(fds[i]);
}

static void waiters__are_bounded__and_who_hangs_up_leaves_its_place(void **state)
{
	(void)state;
	put_slow_settings("", "");
	run_with(wait_in_a_crowd);
	assert_answer(0, 503, "too many clients wait already: try again, or without waiting");
	assert_answer(1, 504, "timed out");
}

static void wait_for_a_version(int printed)
{
	int generation, version;

	if (!log_has(printed, "published", 1))
		return;
	generation = ask_begin("GET /v1/configs/web/wait?generation=3");
	version = ask_begin("GET /v1/configs/web/wait?version=nonsense");
	ask_in_order();
	put("web.yaml", "port: 2\n");
	ask("POST /v1/configs/web/refresh?wait=1"); /* 0 */
	put("web.yaml", "port: 3\n");
	ask("POST /v1/configs/web/refresh?wait=1"); /* 1 */
	ask_end(generation);                        /* 2 */
	close(version);
	ask("GET /v1/configs/web/wait?version=5a29d0afc3d055524e95588d83c1881a&timeout_ms=1"); /* 3
												*/
}

static void waiter__for_a_generation__sleeps_over_the_ones_before(void **state)
{
	(void)state;
	put("web.yaml", "port: 1\n");
	put_settings("", WEB);
	run_with(wait_for_a_version);
	assert_answer(0, 200, "\"outcome\":\"published\",\"generation\":2");
	assert_answer(2, 200, "\"generation\":3");
	assert_answer(3, 200, "\"generation\":3");
}

static int waits[2];

static void change_what_is_waited_for(int printed)
{
	if (!log_has(printed, "started version", 1))
		return;
	waits[0] = ask_begin(WAIT);
	waits[1] = ask_begin("GET /v1/configs/gone/wait?generation=1");
	ask_in_order();
	put_slow_settings("", "  new: {from: [{server: d, path: /new.yaml}], snapshot: true}\n");
	kill(agent_pid, SIGHUP);
	ask_end(waits[0]); /* 0 */
	ask_end(waits[1]); /* 1 */
}

static void waiter__of_a_config_that_changes_or_goes__is_answered(void **state)
{
	(void)state;
	put_slow_settings("", "  gone: {from: [{server: d, path: /gone.yaml}], snapshot: true}\n");
	run_with(change_what_is_waited_for); /* the server's port is another one */
	assert_answer(0, 409, "the config was recreated by a new configuration");
	assert_answer(1, 404, "the config was removed from the configuration");
}

/* ---- rights ---- */

static int begin_as(uid_t uid, const char *request)
{
	int fd;

	if (seteuid(uid))
		talk->failed = true;
	fd = ask_begin(request);
	if (seteuid(0))
		talk->failed = true;
	return fd;
}

static void ask_as(uid_t uid, const char *request)
{
	ask_end(begin_as(uid, request));
}

/* Opens the way for everybody, so that the agent itself has to say no. */
static void open_socket(void)
{
	char path[SCRATCH_PATH + 32];

	snprintf(path, sizeof(path), "%s/run", played.dir);
	chmod(played.dir, 0755);
	chmod(path, 0755);
	snprintf(path, sizeof(path), "%s/run/control.sock", played.dir);
	chmod(path, 0666);
}

static void need_root(void)
{
	if (geteuid() == 0)
		return;
	print_message("# another user needs root\n");
	skip();
}

static void ask_as_stranger(int printed)
{
	if (!log_has(printed, "published", 1))
		return;
	open_socket();
	put("web.yaml", "port: 7\n");
	ask("POST /v1/configs/web/refresh?wait=1");               /* 0 */
	ask_as(STRANGER, "POST /v1/configs/web/refresh");         /* 1 */
	ask_as(STRANGER, "POST /v1/configs/web/pin");             /* 2 */
	ask_as(STRANGER, "GET /v1/configs/web/explain?key=port"); /* 3 */
	ask_as(STRANGER, "GET /v1/configs/web/diff?from=1&to=2"); /* 4 */
	ask_as(STRANGER, "GET /v1/configs/web");                  /* 5 */
	ask_as(STRANGER, "GET /v1/configs/web/explain");          /* 6 */
	ask("GET /metrics");                                      /* 7 */
	ask("GET /v1/configs/web/diff?from=1&to=2");              /* 8 */
}

static void stranger__may_read_but_not_change_nor_see_values(void **state)
{
	(void)state;
	need_root();
	put("web.yaml", "port: 1\n");
	put_settings("", WEB);
	run_with(ask_as_stranger);
	assert_answer(0, 200, "\"generation\":2");
	assert_answer(1, 403, "may only read: root, the agent's user and members of the group");
	assert_answer(2, 403, "may only read");
	assert_answer(3, 200, "\"values\":false");
	assert_null(strstr(talk->answers[3], "\"value\":7"));
	assert_answer(4, 200, "\"values\":false");
	assert_null(strstr(talk->answers[4], "\"after\":7"));
	assert_answer(5, 200, "\"generation\":2");
	assert_answer(6, 200, "generation 2");
	assert_answer(8, 200, "\"after\":7");
	assert_shows(talk->log, "a request for a change was denied config=web by=");
	assert_null(strstr(talk->log, "a request for a change was denied config=web by=root"));
}

static void wait_as_stranger(int printed)
{
	enum { SHARE = CONTROL_MAX_WAITING / 4 };
	int fds[SHARE];

	if (!log_has(printed, "started version", 1))
		return;
	open_socket();
	for (size_t i = 0; i < SHARE; i++)
		fds[i] = begin_as(STRANGER, "GET /v1/configs/slow/wait?generation=1");
	ask_in_order();
	ask_as(STRANGER, "GET /v1/configs/slow/wait?generation=1"); /* 0 */
	ask("GET /v1/configs/slow/wait?generation=1&timeout_ms=1"); /* 1 */
	log_has(printed, "the control socket is busy", 1);
	for (size_t i = 0; i < SHARE; i++)
		close(fds[i]);
}

static void stranger__has_a_quarter_of_the_places(void **state)
{
	(void)state;
	need_root();
	put_slow_settings("", "");
	run_with(wait_as_stranger);
	assert_shows(talk->answers[0], "HTTP/1.1 503 ");
	assert_answer(1, 504, "generation 1 was not published within 1ms");
	assert_shows(talk->log, "the control socket is busy: a request was denied");
}

/* ---- refusals ---- */

static void ask_for_what_is_refused(int printed)
{
	if (!log_has(printed, "published", 1))
		return;
	ask("POST /v1/configs/web/override?key=port&value=many&for_ms=60000&reason=x"); /* 0 */
	ask("POST /v1/configs/web/override?key=port&value=8&for_ms=60000&reason=x");    /* 1 */
	ask("GET /v1/configs/web");                                                     /* 2 */
	ask("POST /v1/configs/web/override?key=nope&remove=1");                         /* 3 */
	ask("POST /v1/configs/web/override?key=port&remove=1");                         /* 4 */
	put("web.yaml", "port: many\n");
	ask("POST /v1/configs/web/refresh?wait=1");        /* 5 */
	ask("GET /v1/configs/web");                        /* 6 */
	ask("GET /metrics");                               /* 7 */
	ask("POST /v1/configs/web/rollback?generation=1"); /* 8 */
	ask("GET /v1/configs/web/history");                /* 9 */
}

static void schema__refuses_an_override_and_a_version(void **state)
{
	char config[512];

	(void)state;
	put("web.yaml", "port: 1\n");
	put("schema.json", "{\"properties\":{\"port\":{\"type\":\"integer\"}}}");
	snprintf(config, sizeof(config),
		"  web: {from: [{server: d, path: /web.yaml}], type: yaml, snapshot: true, "
		"interval: 1h, schema: %s/schema.json}\n",
		played.dir);
	put_settings("", config);
	run_with(ask_for_what_is_refused);
	assert_answer(0, 409, "schema");
	assert_answer(1, 200, "\"generation\":2");
	assert_answer(2, 200, "\"overrides\":[{\"key\":\"port\"");
	assert_answer(3, 404, "there is no override of that key: `pullet status web` lists them");
	assert_answer(4, 200, "\"generation\":3");
	assert_answer(5, 200, "\"outcome\":\"failed\"");
	assert_answer(6, 200, "\"rejected\":{\"by\":\"schema\"");
	assert_answer(7, 200, "pullet_config_generation{config=\"web\"} 3\n");
	assert_answer(8, 409, "generation 1 has the same bytes as the current version");
	assert_answer(9, 200, "\"versions\":[{\"generation\":3");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, pulletd_set_up, pulletd_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(waiter__whose_pull_does_not_end__is_answered_all_the_same),
		CASE(waiters__are_bounded__and_who_hangs_up_leaves_its_place),
		CASE(waiter__for_a_generation__sleeps_over_the_ones_before),
		CASE(waiter__of_a_config_that_changes_or_goes__is_answered),
		CASE(stranger__may_read_but_not_change_nor_see_values),
		CASE(stranger__has_a_quarter_of_the_places),
		CASE(schema__refuses_an_override_and_a_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * The control API of a whole agent: who waits, how long and how many; what a user who is no
 * operator may do and see. Another user is this process with another effective uid when it connects
 * (root only).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <grp.h>

#include <cmocka.h>

#include "control/api.h"
#include "control/waiting.h"
#include "tests/unit/fixture/pulletd.h"

#define STRANGER 54321u
#define OPERATORS 54400u
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
	int fds[2];

	if (!log_has(printed, "started version", 1))
		return;
	ask(WAIT "&timeout_ms=20"); /* 0 */
	ask(WAIT "&timeout_ms=x");  /* 1 */
	for (size_t i = 0; i < 2; i++)
		fds[i] = ask_begin(WAIT);
	ask_in_order();
	ask("GET /v1/configs/slow");                               /* 2 */
	ask("POST /v1/configs/slow/suspend?reason=repair");        /* 3 */
	ask_end(fds[0]);                                           /* 4 */
	ask(WAIT);                                                 /* 5 */
	ask("GET /v1/configs/slow/wait?version=v7&timeout_ms=20"); /* 6 */
	ask("GET /readyz");                                        /* 7 */
	ask_end(fds[1]);                                           /* 8 */
	ask("POST /v1/configs/slow/resume");                       /* 9 */
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
	assert_answer(8, 409, "slow is suspended by ");
	assert_answer(9, 200, "\"ended\":{\"by\":\"");
	assert_answer(9, 200, "\"reason\":\"repair\",\"until_ms\":null}}\n");
}

static void wait_in_a_crowd(int printed)
{
	int fds[WAITING_MAX];

	if (!log_has(printed, "started version", 1))
		return;
	for (size_t i = 0; i < WAITING_MAX; i++)
		fds[i] = ask_begin(WAIT);
	ask_in_order();
	ask(WAIT); /* 0 */
	close(fds[7]);
	ask_until(WAIT "&timeout_ms=1", "504"); /* 1: there is a place again */
	for (size_t i = 0; i < WAITING_MAX; i++)
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

static void leave_waiting(int printed)
{
	if (!log_has(printed, "started version", 1))
		return;
	waits[0] = ask_begin(WAIT);
	waits[1] = ask_begin("GET /v1/configs/slow/wait?generation=1");
	ask_in_order();
}

static void waiter__of_an_agent_that_ends__does_not_keep_it_from_ending(void **state)
{
	(void)state;
	put_slow_settings("", "");
	run_with(leave_waiting);
	for (size_t i = 0; i < 2; i++) {
		ask_end(waits[i]);
		assert_string_equal(talk->answers[i], ""); /* it hears the end, and no lie */
	}
}

static void change_what_is_waited_for(int printed)
{
	if (!log_has(printed, "started version", 1))
		return;
	waits[0] = ask_begin(WAIT);
	waits[1] = ask_begin(/* as long as there is time */
		"GET /v1/configs/gone/wait?generation=1&timeout_ms=18446744073709551615");
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
	assert_answer(7, 200, "\npullet_control_denied_total 2\n");
	assert_answer(8, 200, "\"after\":7");
	assert_shows(talk->log, "a request for a change was denied config=web by=");
	assert_shows(talk->log, " request=refresh\n");
	assert_null(strstr(talk->log, "a request for a change was denied config=web by=root"));
}

/* A member of the group. */
static void ask_as_operator(int printed)
{
	const gid_t group = OPERATORS;

	if (!log_has(printed, "published", 1))
		return;
	open_socket();
	talk->failed |= setgroups(1, &group) != 0;
	ask_as(STRANGER, "POST /v1/configs/web/suspend"); /* 0 */
	talk->failed |= setgroups(0, NULL) != 0;
	ask_as(STRANGER, "POST /v1/configs/web/resume"); /* 1 */
}

static void operator__may_change_from_the_first_moment_on(void **state)
{
	char part[64];

	(void)state;
	need_root();
	put("web.yaml", "port: 1\n");
	snprintf(part, sizeof(part), ", operators: '%u'", OPERATORS);
	put_settings(part, WEB);
	run_with(ask_as_operator);
	assert_answer(0, 200, "\"ok\":true");
	assert_answer(1, 403, "may only read");
}

static void wait_as_stranger(int printed)
{
	enum { SHARE = WAITING_MAX / 4 };
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

static void wait_beside_root(int printed)
{
	enum { MANY = WAITING_MAX / 4 * 3 };
	int fds[MANY];

	if (!log_has(printed, "started version", 1))
		return;
	open_socket();
	for (size_t i = 0; i < MANY; i++)
		fds[i] = ask_begin("GET /v1/configs/slow/wait?generation=1");
	ask_in_order();
	ask_as(STRANGER, "GET /v1/configs/slow/wait?generation=1&timeout_ms=1"); /* 0 */
	for (size_t i = 0; i < MANY; i++)
		close(fds[i]);
}

static void stranger__has_its_places_beside_those_of_root(void **state)
{
	(void)state;
	need_root();
	put_slow_settings("", "");
	run_with(wait_beside_root);
	assert_answer(0, 504, "generation 1 was not published within 1ms");
}

/* ---- receipts ---- */

static size_t before_the_end; /* requests to the etcd */

static void wait_for_receipt(int printed)
{
	if (!log_has(printed, "published", 1))
		return;
	for (int i = 0; i < 200 && !strstr(played.log->body, "\"success\""); i++)
		poll(NULL, 0, 20);
	ask("GET /v1/status");
	ask("POST /v1/configs/web/suspend?reason=x");
	ask("POST /v1/configs/web/resume");
	ask("GET /metrics");
	before_the_end = played.log->count;
}

static void receipt__is_written_to_the_etcd(void **state)
{
	char text[4096];
	const char *url;
	pid_t etcd;

	(void)state;
	url = played_listen_tcp();
	played_answers("POST /v3/lease/grant", 200,
		"{\"header\":{\"cluster_id\":\"7\",\"revision\":\"9\"},\"ID\":\"5\",\"TTL\":"
		"\"60\"}");
	played_answers("POST /v3/kv/txn", 200,
		"{\"header\":{\"cluster_id\":\"7\",\"revision\":\"9\"},\"succeeded\":true}");
	etcd = played_fork();
	put("web.yaml", "port: 1\n");
	snprintf(text, sizeof(text),
		"agent: {state_dir: %s/state, runtime_dir: %s/run}\nservers:\n"
		"  d: {kind: file, urls: ['file://%s']}\n  e: {kind: etcd, urls: ['%s']}\n"
		"report: {server: e, host: h1}\nconfigs:\n%s",
		played.dir, played.dir, played.dir, url, WEB);
	put("pullet.yaml", text);
	run_with(wait_for_receipt);
	kill(etcd, SIGKILL);
	waitpid(etcd, NULL, 0);
	assert_answer(0, 200, "\"report\":{\"server\":\"e\",\"key\":\"/pullet/agents/h1\"");
	assert_answer(1, 200, "\"ok\":true");
	assert_shows(talk->answers[3], "\npullet_report_leases_total 1\n");
	assert_shows(played.log->body, "\"success\"");
	assert_true(played.log->count > before_the_end); /* that it stopped, and was not lost */
	assert_string_equal(played_asked(played.log->count - 1), "POST /v3/kv/txn");
}

/* ---- TCP ---- */

static int free_port(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(fd, (const struct sockaddr *)&a, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	close(fd);
	return ntohs(a.sin_port);
}

static int port;

static void ask_tcp(const char *request)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons((uint16_t)port)};
	char text[1024], *to = talk->answers[talk->count++];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	size_t len = 0;
	ssize_t n = 1;

	if (connect(fd, (const struct sockaddr *)&a, sizeof(a)))
		talk->failed = true;
	snprintf(text, sizeof(text), "%s\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
		request);
	(void)!send(fd, text, strlen(text), MSG_NOSIGNAL);
	while (n > 0 && len < sizeof(talk->answers[0]) - 1) {
		n = read(fd, to + len, sizeof(talk->answers[0]) - 1 - len);
		len += n > 0 ? (size_t)n : 0;
	}
	to[len] = '\0';
	close(fd);
}

static void ask_as_public(int printed)
{
	if (!log_has(printed, "started version", 1))
		return;
	ask("POST /v1/configs/web/refresh?wait=1"); /* 0: it fails */
	ask_tcp("GET /v1/status HTTP/1.1\r\nHost: 127.0.0.1");
	ask_tcp("GET /readyz HTTP/1.1\r\nHost: 127.0.0.1");
	ask_tcp("GET /v1/configs/web/explain?key=a HTTP/1.1\r\nHost: 127.0.0.1");
	ask_tcp("POST /v1/configs/web/refresh HTTP/1.1\r\nHost: 127.0.0.1");
	ask_tcp("GET / HTTP/1.1\r\nHost: evil.example");
	ask_tcp("GET /%00 HTTP/1.1\r\nHost: 127.0.0.1");
	ask_tcp("BREW / HTTP/1.1\r\nHost: 127.0.0.1");
	ask("POST /v1/configs/web/refresh HTTP/1.1\r\nOrigin: http://evil.example\r\nX:"); /* 8 */
	ask("GET /metrics");
	ask_tcp("GET /v1/status HTTP/1.1"); /* 10 */
}

static void tcp__is_read_only_and_told_no_reasons(void **state)
{
	char part[64];

	(void)state;
	port = free_port();
	snprintf(part, sizeof(part), ", listen: '127.0.0.1:%d'", port);
	put_settings(part, WEB);
	run_with(ask_as_public);
	assert_answer(0, 200, "\"outcome\":\"failed\"");
	assert_answer(1, 200, "\"last_error\":\"there is no such document\"");
	assert_answer(2, 503, "web: nothing is published yet: there is no such document");
	assert_answer(3, 403, "this is on the control socket only");
	assert_answer(4, 403, "this listener is read-only");
	assert_answer(5, 421, "this host does not have the requested name");
	assert_answer(6, 400, "");
	assert_shows(talk->answers[7], "HTTP/1.1 ");
	assert_null(strstr(talk->answers[7], " 200 "));
	assert_answer(8, 403, "a browser may only read");
	assert_answer(10, 400, "the request has no Host header");
	assert_shows(talk->answers[9], "\npullet_config_failure{config=\"web\"} 2\n");
}

/* ---- the table of paths ---- */

#define N63 "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"

/* Each path with each method, and what it says of a name or a parameter that is wrong. */
static const struct {
	const char *request;
	int status;
	const char *part;
} paths[] = {
	{"GET /", 200, "Content-Type: text/html"}, {"GET /?x=1", 200, "<!DOCTYPE html>"},
	{"GET /page.css", 200, "Content-Type: text/css"}, {"GET /page.js", 200, "javascript"},
	{"POST /page.js", 405, "Allow: GET, HEAD\r\n"},
	{"GET /livez", 200, "text/plain; charset=utf-8"}, {"GET /healthz?x=1", 200, "\r\n\r\nok\n"},
	{"HEAD /livez", 200, ""}, {"POST /livez", 405, "this path does not take that method"},
	{"GET /readyz", 200, "\r\n\r\nok\n"},
	{"GET /readyz?verbose", 200, "[+]web: generation 1, ok\nok\n"},
	{"GET /metrics", 200, "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"},
	{"GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text\r\nX:", 200,
		"Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"},
	{"GET /v1/status", 200, "\"configs\":[{\"name\":\"web\""},
	{"GET /v1/status?x=1", 400, "{\"error\":\"no parameter here is called x\"}\n"},
	{"GET /v1/changes", 200, "Content-Type: application/json\r\n"},
	{"POST /v1/status", 405, "Allow: GET, HEAD\r\n"},
	{"GET /v1/configs/web", 200, "{\"name\":\"web\",\"state\":\"ok\""},
	{"GET /v1/configs/nope", 404,
		"there is no config of that name: `pullet status` lists them"},
	{"GET /v1/configs/", 404, "there is nothing at this path: see pulletd(8)"},
	{"GET /v1/configs/web/nope", 404, "there is nothing at this path: see pulletd(8)"},
	{"GET /v1/configs/a/b/history", 404, "there is nothing at this path"},
	{"GET /v1/configs//history", 404, "there is nothing at this path"},
	{"GET /nowhere", 404, "there is nothing at this path"},
	{"GET /v1/configs/" N63 N63 "n", 404, "there is no config of that name"},
	{"GET /v1/configs/" N63 N63 "nn", 404, "there is nothing at this path"},
	{"GET /v1/configs/web/history", 200, "\"versions\":[{\"generation\":1"},
	{"GET /v1/configs/web/events", 200, "Content-Type: application/json\r\n"},
	{"POST /v1/configs/web/history", 405, "Allow: GET, HEAD\r\n"},
	{"GET /v1/configs/web/diff?from=0&to=1", 404, "generation 1 is the oldest"},
	{"GET /v1/configs/web/diff?from=1&to=9", 404, "\"error\":"},
	{"GET /v1/configs/web/diff?from=x", 400, "from takes a number"},
	{"GET /v1/configs/web/diff?to=", 400, "to takes a number"},
	{"GET /v1/configs/web/diff?from=99999999999999999999999", 400, "from takes a number"},
	{"GET /v1/configs/web/diff?key=a", 400, "no parameter here is called key"},
	{"GET /v1/configs/web/diff?held=1", 404, "\"error\":"},
	{"GET /v1/configs/web/diff?held=1&to=1", 400, "held=1 says what it compares with"},
	{"GET /v1/configs/web/explain", 200, "generation 1"},
	{"GET /v1/configs/web/explain?key=port", 200, "\"value\":1"},
	{"GET /v1/configs/web/explain?key=nope", 404, "\"error\":"},
	{"GET /v1/configs/web/wait", 400, "generation=N or version=V is missing"},
	{"GET /v1/configs/web/wait?generation=0", 400, "generation=N or version=V is missing"},
	{"GET /v1/configs/web/wait?generation=x", 400, "generation takes a number"},
	{"GET /v1/configs/web/wait?generation=1&timeout_ms=x", 400, "timeout_ms takes a number"},
	{"GET /v1/configs/web/wait?generation=1", 200,
		"{\"ok\":true,\"name\":\"web\",\"generation\":1,\"origin\":\"pull\"}\n"},
	{"GET /v1/configs/web/wait?generation=08&timeout_ms=1", 504, /* not by eights */
		"generation 08 was not published within 1ms; generation 1 is current"},
	{"GET /v1/configs/web/wait?version=v9&timeout_ms=0", 504,
		"version v9 was not published within 0ms; generation 1 is current"},
	{"GET /v1/configs/web/refresh", 405, "Allow: POST\r\n"},
	{"POST /v1/configs/web/refresh", 202, "{\"fired\":true}\n"},
	{"POST /v1/configs/web/refresh?wait=1", 200,
		"{\"name\":\"web\",\"outcome\":\"unchanged\",\"generation\":1,"},
	{"POST /v1/configs/web/refresh?wait=2", 400, "wait takes 0 or 1"},
	{"POST /v1/configs/web/refresh?force=yes", 400, "force takes 0 or 1"},
	{"POST /v1/configs/web/refresh?forget_rev=", 400, "forget_rev takes 0 or 1"},
	{"POST /v1/configs/web/refresh?x=1", 400, "no parameter here is called x"},
	{"POST /v1/configs/web/refresh?force=1&wait=1", 200, "\"outcome\":\"unchanged\""},
	{"POST /v1/configs/web/rollback?generation=9", 404, "\"error\":"},
	{"POST /v1/configs/web/rollback?generation=x", 400, "generation takes a number"},
	{"POST /v1/configs/web/rollback?timeout_ms=x", 400, "timeout_ms takes a number"},
	{"POST /v1/configs/web/override?key=port", 400, "an override needs a value, or remove=1"},
	{"POST /v1/configs/web/override?key=port&value=2&for_ms=x", 400, "for_ms takes a number"},
	{"POST /v1/configs/web/override?remove=2", 400, "remove takes 0 or 1"},
	{"POST /v1/configs/web/pin?for_ms=x", 400, "for_ms takes a number"},
	{"POST /v1/configs/web/suspend?for_ms=x", 400, "for_ms takes a number"},
	{"POST /v1/configs/web/unpin?reason=x", 400, "no parameter here is called reason"},
	{"POST /v1/configs/web/unpin", 409, "{\"error\":\"it is not pinned\"}\n"},
	{"POST /v1/configs/web/resume", 409, "{\"error\":\"it is not suspended\"}\n"},
	{"POST /v1/configs/nope/pin", 404, "there is no config of that name"},
	{"GET /v1/configs/web/events", 200, "\"events\":[]"}, /* nothing was decided */
};

enum { PATHS = sizeof(paths) / sizeof(paths[0]) };
_Static_assert(PATHS < ANSWERS, "each has its answer");

static void ask_each_path(int printed)
{
	if (!log_has(printed, "published", 1))
		return;
	for (size_t i = 0; i < PATHS; i++)
		ask(paths[i].request);
}

static void path__of_each_kind__answers_so(void **state)
{
	(void)state;
	put("web.yaml", "port: 1\n");
	put_settings("", WEB);
	run_with(ask_each_path);
	for (size_t i = 0; i < PATHS; i++) {
		assert_answer(i, paths[i].status, paths[i].part);
		assert_shows(talk->answers[i], "\r\nCache-Control: no-store\r\n");
		assert_shows(talk->answers[i], "\r\nContent-Security-Policy: ");
		assert_shows(talk->answers[i], "\r\nCross-Origin-Resource-Policy: same-origin\r\n");
		assert_shows(talk->answers[i], "\r\nReferrer-Policy: no-referrer\r\n");
		assert_shows(talk->answers[i], "\r\nX-Content-Type-Options: nosniff\r\n");
		assert_shows(talk->answers[i], "\r\nX-Frame-Options: DENY\r\n");
	}
	assert_shows(talk->log, geteuid() == 0
					? "forced pull requested config=web by=\"root (uid 0)\""
					: "forced pull requested config=web by=");
}

/* ---- changes ---- */

static void change_things(int printed)
{
	if (!log_has(printed, "published", 1))
		return;
	put("web.yaml", "port: 2\n");
	ask("POST /v1/configs/web/refresh?wait=1");                                    /* 0 */
	ask("POST /v1/configs/web/rollback?generation=1&reason=bad&wait=0");           /* 1 */
	ask_until("GET /v1/configs/web/history", "\"generation\":3,");                 /* 2 */
	ask("POST /v1/configs/web/rollback");                                          /* 3 */
	ask("POST /v1/configs/web/override?key=port&value=7&for_ms=60000&reason=try"); /* 4 */
	ask("POST /v1/configs/web/override?key=port&remove=1&wait=0");                 /* 5 */
	ask_until("GET /v1/configs/web", "\"overrides\":[]");                          /* 6 */
	ask("POST /v1/configs/web/pin?for_ms=60000&reason=hold");                      /* 7 */
	ask("POST /v1/configs/web/unpin");                                             /* 8 */
	ask("POST /v1/configs/web/suspend?for_ms=60000&reason=move");                  /* 9 */
	ask("POST /v1/configs/web/suspend");                                           /* 10 */
	ask("POST /v1/configs/web/refresh?force=1");                                   /* 11 */
	ask("POST /v1/configs/web/resume");                                            /* 12 */
	ask("GET /v1/changes");                                                        /* 13 */
	ask("POST /v1/configs/web/override?key=port&value=8");                         /* 14 */
	ask("GET /v1/changes");                                                        /* 15 */
	ask("GET /v1/configs/web/diff");                                               /* 16 */
	ask("POST /v1/configs/web/suspend");                                           /* 17 */
	ask("GET /v1/configs/web");                                                    /* 18 */
	ask("POST /v1/configs/web/resume");
	ask("POST /v1/configs/web/override?key=more&value=7&for_ms=60000");
	ask("POST /v1/configs/web/rollback?generation=2"); /* 21 */
}

static void change__of_each_kind__is_answered_with_what_is_current(void **state)
{
	(void)state;
	put("web.yaml", "port: 1\n");
	put_settings("", WEB);
	run_with(change_things);
	assert_answer(0, 200, "\"outcome\":\"published\",\"generation\":2,");
	assert_answer(1, 202, "{\"ok\":true,\"name\":\"web\",\"generation\":3,\"origin\":");
	assert_answer(1, 202, "\"rollback to generation 1 by ");
	assert_answer(1, 202, ": bad\",\"forward\":[\"");
	assert_answer(2, 200, "\"versions\":[{\"generation\":3,");
	assert_answer(3, 404, "there is no older version that differs");
	assert_answer(4, 200, "\"generation\":4,\"origin\":\"override of port by ");
	assert_answer(4, 200, " for 1m: try\"}\n");
	assert_answer(5, 202, "\"generation\":5,\"origin\":\"override of port removed by ");
	assert_null(strstr(talk->answers[5], "replaced")); /* no value replaces any */
	assert_answer(6, 200, "\"generation\":5,");
	for (size_t i = 7; i <= 12; i++)
		if (i != 11)
			assert_answer(i, 200, "{\"ok\":true,\"name\":\"web\",\"generation\":5,");
	assert_answer(11, 409, "{\"error\":\"web is suspended by ");
	assert_answer(11, 409, ": `pullet resume web` ends that\"}\n");
	assert_answer(
		13, 200, "{\"publications\":[{\"config\":\"web\",\"generation\":5,\"from\":4,");
	assert_answer(13, 200,
		"\"changes\":[{\"key\":\"port\",\"op\":\"changed\",\"old\":\"2\",\"new\":\"1\"}]");
	assert_answer(13, 200, "\"changes\":[{\"key\":\"port\",\"op\":\"added\",\"new\":\"1\"}]");
	assert_answer(13, 200, "\"complete\":true,\"values\":true}\n");
	assert_answer(14, 400, "an override has an end: say for how long it is");
	assert_string_equal(strstr(talk->answers[13], "{\""), strstr(talk->answers[15], "{\""));
	assert_answer(16, 200, "{\"name\":\"web\",\"from\":{\"generation\":4,");
	assert_answer(16, 200, "\"to\":{\"generation\":5,");
	assert_answer(18, 200, "\"suspension\":{\"by\":\"");
	assert_answer(18, 200, "\"reason\":\"\",\"until_ms\":null}"); /* it has no end */
	assert_answer(20, 200, "\"adds_key\":true");                  /* it may be a slip */
	assert_answer(21, 200, "\"overridden\":[\"more\"],\"forward\":[");
}

/* ---- refusals ---- */

static void decide_things(int printed)
{
	if (!log_has(printed, "published", 1))
		return;
	ask("POST /v1/configs/web/pin?reason=hold"); /* 0 */
	put("web.yaml", "port: 2\n");
	ask("POST /v1/configs/web/refresh?wait=1");                             /* 1 */
	ask("POST /v1/configs/web/override?key=a&value=1&for_ms=60000&wait=0"); /* 2 */
	ask("POST /v1/configs/web/override?key=b&value=%5B&for_ms=60000");      /* 3 */
	ask("GET /v1/configs/web");                                             /* 4 */
	ask("POST /v1/configs/web/unpin");                                      /* 5 */
	log_has(printed, "published", 2);
	put("web.yaml", "port: [\n");
	ask("POST /v1/configs/web/refresh?wait=1"); /* 6 */
	ask("GET /v1/configs/web");                 /* 7 */
}

static void status__shows_decisions_and_rejections(void **state)
{
	(void)state;
	put("web.yaml", "port: 1\n");
	put_settings("", WEB);
	run_with(decide_things);
	assert_answer(0, 200, "\"ok\":true");
	assert_answer(1, 200, "\"outcome\":\"held\"");
	assert_shows(talk->answers[2], "HTTP/1.1 ");
	assert_shows(talk->answers[3], "HTTP/1.1 4");
	assert_answer(4, 200, "\"pin\":{\"by\":\"");
	assert_answer(4, 200, "\"reason\":\"hold\",\"until_ms\":null}");
	assert_answer(4, 200, "\"rejected\":{\"by\":\"pin\"");
	assert_answer(5, 200, "\"ok\":true");
	assert_answer(5, 200, "\"ended\":{\"by\":\"");
	assert_answer(5, 200, "\"reason\":\"hold\",\"until_ms\":null}}\n");
	assert_answer(6, 200, "\"outcome\":\"failed\"");
	assert_answer(7, 200, "\"state\":\"failing\"");
}

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

static void ask_where_it_cannot_publish(int printed)
{
	char path[SCRATCH_PATH + 16], aside[SCRATCH_PATH + 16];

	if (!log_has(printed, "published", 1))
		return;
	snprintf(path, sizeof(path), "%s/out", played.dir);
	snprintf(aside, sizeof(aside), "%s/aside", played.dir);
	talk->failed |= rename(path, aside) != 0;
	put("out", "a file");
	ask("POST /v1/configs/web/override?key=port&value=8&for_ms=60000&wait=0"); /* 0 */
}

static void change__that_fails_at_once__says_so_to_who_does_not_wait(void **state)
{
	char config[512];

	(void)state;
	scratch_need_memory(); /* on a disk it takes longer */
	put("web.yaml", "port: 1\n");
	snprintf(config, sizeof(config),
		"  web: {from: [{server: d, path: /web.yaml}], type: yaml, file: %s/out/web, "
		"interval: 1h}\n",
		played.dir);
	put_settings("", config);
	run_with(ask_where_it_cannot_publish);
	assert_answer(0, 409, "could not publish: keeping the current version: cannot open the ");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, pulletd_set_up, pulletd_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(waiter__whose_pull_does_not_end__is_answered_all_the_same),
		CASE(waiters__are_bounded__and_who_hangs_up_leaves_its_place),
		CASE(waiter__for_a_generation__sleeps_over_the_ones_before),
		CASE(waiter__of_a_config_that_changes_or_goes__is_answered),
		CASE(waiter__of_an_agent_that_ends__does_not_keep_it_from_ending),
		CASE(stranger__may_read_but_not_change_nor_see_values),
		CASE(operator__may_change_from_the_first_moment_on),
		CASE(stranger__has_a_quarter_of_the_places),
		CASE(stranger__has_its_places_beside_those_of_root),
		CASE(schema__refuses_an_override_and_a_version),
		CASE(change__that_fails_at_once__says_so_to_who_does_not_wait),
		CASE(receipt__is_written_to_the_etcd),
		CASE(tcp__is_read_only_and_told_no_reasons),
		CASE(status__shows_decisions_and_rejections),
		CASE(path__of_each_kind__answers_so),
		CASE(change__of_each_kind__is_answered_with_what_is_current),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * A machine that slept: an agent whose clock jumps asks again on new connections, spread, for the
 * hosts of a fleet may have slept together.
 *
 * What would surprise: clock_gettime() is defined here. What it adds to the clock of boots is in
 * memory that is shared with the agent, which is a child (pulletd.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include <cmocka.h>

#include "tests/unit/fixture/pulletd.h"

#define CONFIGS 6
#define CONNECTIONS 16
#define LIMIT_MS 4000
#define SLEPT_S (2 * 3600)

static _Atomic time_t *slept_s;

int clock_gettime(clockid_t id, struct timespec *ret)
{
	long r = syscall(SYS_clock_gettime, id, ret);

	if (r == 0 && id == CLOCK_BOOTTIME && slept_s)
		ret->tv_sec += atomic_load(slept_s);
	return (int)r;
}

/* ---- the server, which the test plays beside the agent ---- */

static struct origin {
	int listener;
	struct pollfd connections[CONNECTIONS]; /* fd -1: none */
	char requests[CONNECTIONS][2048];
	unsigned accepted, ended, asked;
	char url[64];
} origin;

static void origin_open(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);

	origin = (struct origin){.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
	for (int i = 0; i < CONNECTIONS; i++)
		origin.connections[i] = (struct pollfd){.fd = -1, .events = POLLIN};
	assert_int_equal(bind(origin.listener, (struct sockaddr *)&a, len), 0);
	assert_int_equal(listen(origin.listener, CONNECTIONS), 0);
	assert_int_equal(getsockname(origin.listener, (struct sockaddr *)&a, &len), 0);
	snprintf(origin.url, sizeof(origin.url), "http://127.0.0.1:%d", ntohs(a.sin_port));
}

/* Reads what came on a connection, and answers a whole request. */
static void answer_request(int i)
{
	static const char good[] = "HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Type: text/yaml\r\n"
				   "Content-Length: 5\r\n\r\nn: 1\n",
			  same[] = "HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n";
	char *request = origin.requests[i];
	size_t len = strlen(request);
	ssize_t n = read(origin.connections[i].fd, request + len, 2047 - len);
	const char *text;

	if (n <= 0) {
		close(origin.connections[i].fd);
		origin.connections[i].fd = -1;
		request[0] = '\0';
		origin.ended++;
		return;
	}
	request[len + (size_t)n] = '\0';
	if (!strstr(request, "\r\n\r\n"))
		return;
	text = strstr(request, "If-None-Match") ? same : good;
	(void)!send(origin.connections[i].fd, text, strlen(text), MSG_NOSIGNAL);
	request[0] = '\0';
	origin.asked++;
}

/* What comes within a moment. False: nothing did. */
static bool serve_once(int wait_ms)
{
	struct pollfd fds[CONNECTIONS + 1];
	int free_place = -1;

	memcpy(fds, origin.connections, sizeof(origin.connections));
	fds[CONNECTIONS] = (struct pollfd){.fd = origin.listener, .events = POLLIN};
	if (poll(fds, CONNECTIONS + 1, wait_ms) <= 0)
		return false;
	for (int i = 0; i < CONNECTIONS; i++) {
		if (fds[i].fd < 0)
			free_place = i;
		else if (fds[i].revents)
			answer_request(i);
	}
	if (fds[CONNECTIONS].revents && free_place >= 0) {
		origin.connections[free_place].fd =
			accept4(origin.listener, NULL, NULL, SOCK_CLOEXEC);
		origin.accepted++;
	}
	return true;
}

/* Serves until a count is that high. */
static void serve_until(const unsigned *count, unsigned wanted)
{
	while (*count < wanted)
		if (!serve_once(LIMIT_MS)) {
			talk->failed = true;
			return;
		}
}

/* ---- asleep ---- */

static unsigned kept, at_once;

static void sleep_and_wake(int printed)
{
	serve_until(&origin.asked, CONFIGS);
	if (!log_has(printed, "published", CONFIGS))
		return;
	ask("GET /v1/configs"); /* the last run has ended, too */
	kept = origin.accepted - origin.ended;
	atomic_fetch_add(slept_s, SLEPT_S);
	ask("GET /v1/configs"); /* it turns */
	log_has(printed, "the agent did not run for a while: pulling again", 1);
	serve_until(&origin.ended, origin.accepted);
	ask("GET /v1/configs");
	while (serve_once(0))
		;
	at_once = origin.asked - CONFIGS;
	/* the timers of the kernel do not jump: each request makes the agent turn */
	for (unsigned i = 0; i < 1000 && origin.asked < 2 * CONFIGS; i++) {
		if (i * 1000 <= CONFIG_SPLAY_MS) /* less than what is taken for a sleep */
			atomic_fetch_add(slept_s, 1);
		ask("GET /v1/configs");
		talk->count--;
		while (serve_once(5))
			;
	}
}

static void machine__that_slept__is_followed_by_new_connections_and_spread_pulls(void **state)
{
	char text[4096];

	(void)state;
	slept_s = mmap(
		NULL, sizeof(*slept_s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(slept_s != MAP_FAILED);
	origin_open();
	snprintf(text, sizeof(text),
		"agent: {state_dir: %s/state, runtime_dir: %s/run}\n"
		"servers: {s: {urls: ['%s']}}\nconfigs:\n",
		played.dir, played.dir, origin.url);
	for (int i = 0; i < CONFIGS; i++)
		snprintf(text + strlen(text), 256,
			"  c%d: {from: [{server: s, path: /%d.yaml}], snapshot: true, timeout: "
			"30m, interval: "
			"1h}\n",
			i, i);
	put("pullet.yaml", text);
	run_with(sleep_and_wake);
	assert_true(kept > 0); /* or nothing was shown of them */
	assert_true(at_once < CONFIGS);
	assert_int_equal(origin.asked, 2 * CONFIGS);
	close(origin.listener);
	munmap(slept_s, sizeof(*slept_s));
	slept_s = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			machine__that_slept__is_followed_by_new_connections_and_spread_pulls,
			pulletd_set_up, pulletd_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What a relay answers at --listen: its paths, methods and names. Counters are played. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/relay/monitor.h"
#include "cli/relay/relay_metrics.h"

static bool ready;
static int metrics_error;
static struct relay_view view;
static struct monitor *monitor;
static char name[] = "relay.example", *names[] = {name, NULL};
static char *answer; /* shared with the client */

#define ANSWER_MAX 65536

int relay_metrics_write(const struct relay_view *v, bool openmetrics, struct buffer *out)
{
	assert_ptr_equal(v, &view);
	buffer_append_string(out, openmetrics ? "open 1\n" : "plain 1\n");
	return metrics_error;
}

bool relay_metrics_ready(const struct relay_view *v, bool verbose, struct buffer *out)
{
	assert_ptr_equal(v, &view);
	buffer_append_string(out, verbose ? "all\n" : "short\n");
	return ready;
}

static void client_ended(void *arg, int number)
{
	(void)arg, (void)number;
	loop_stop(view.loop);
}

static int set_up(void **state)
{
	(void)state;
	alarm(20);
	ready = true;
	metrics_error = 0;
	view = (struct relay_view){.loop = loop_new(&sys_real)};
	assert_non_null(view.loop);
	assert_int_equal(loop_on_signal(view.loop, SIGCHLD, client_ended, NULL), 0);
	answer = mmap(NULL, ANSWER_MAX, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(answer != MAP_FAILED);
	assert_int_equal(monitor_open(&view, "127.0.0.1:0", names, &monitor), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	monitor_close(monitor);
	loop_free(view.loop);
	munmap(answer, ANSWER_MAX);
	return 0;
}

/* In a child. */
static void fetch(const char *line, const char *host, const char *more)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons((uint16_t)monitor_port(monitor))};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char text[1024];
	size_t len = 0;
	ssize_t n;

	snprintf(text, sizeof(text), "%s HTTP/1.1\r\n%s%s%s%sConnection: close\r\n\r\n", line,
		host ? "Host: " : "", host ? host : "", host ? "\r\n" : "", more);
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 &&
		send(fd, text, strlen(text), MSG_NOSIGNAL) > 0)
		while ((n = read(fd, answer + len, ANSWER_MAX - 1 - len)) > 0)
			len += (size_t)n;
	answer[len] = '\0';
	_exit(0);
}

/* The answer to one request. */
static void ask(const char *line, const char *host, const char *more)
{
	pid_t parent = getpid(), pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == parent)
			fetch(line, host, more);
		_exit(1);
	}
	assert_int_equal(loop_run(view.loop), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void assert_answer(int status, const char *type, const char *body)
{
	char line[32], header[128];
	const char *end = strstr(answer, "\r\n\r\n");

	snprintf(line, sizeof(line), "HTTP/1.1 %d ", status);
	assert_int_equal(strncmp(answer, line, strlen(line)), 0);
	snprintf(header, sizeof(header), "\r\nContent-Type: %s\r\n", type);
	assert_non_null(strstr(answer, header));
	assert_non_null(end);
	assert_string_equal(end + 4, body);
	assert_non_null(strstr(answer, "\r\nCache-Control: no-store\r\n"));
	assert_non_null(strstr(answer, "\r\nCross-Origin-Resource-Policy: same-origin\r\n"));
	assert_non_null(strstr(answer, "\r\nX-Content-Type-Options: nosniff\r\n"));
}

#define PLAIN "text/plain; charset=utf-8"
#define JSON "application/json"

static void path__has_its_answer(void **state)
{
	(void)state;
	ask("GET /livez", "127.0.0.1", "");
	assert_answer(200, PLAIN, "ok\n");
	ask("GET /healthz", "127.0.0.1", "");
	assert_answer(200, PLAIN, "ok\n");
	ask("HEAD /livez", "127.0.0.1", "");
	assert_answer(200, PLAIN, "");
	ask("GET /readyz", "127.0.0.1", "");
	assert_answer(200, PLAIN, "short\n");
	ask("GET /readyz?verbose", "127.0.0.1", "");
	assert_answer(200, PLAIN, "all\n");
	ready = false;
	ask("GET /readyz", "127.0.0.1", "");
	assert_answer(503, PLAIN, "short\n");
	ask("GET /nope", "127.0.0.1", "");
	assert_answer(404, JSON,
		"{\"error\":\"there is nothing at this path: there are /metrics, /livez, /healthz "
		"and /readyz\"}\n");
	ask("POST /livez", "127.0.0.1", "Content-Length: 0\r\n");
	assert_answer(405, JSON, "{\"error\":\"this path does not take that method\"}\n");
	assert_non_null(strstr(answer, "\r\nAllow: GET, HEAD\r\n"));
}

static void metrics__are_of_the_form_that_is_asked_for(void **state)
{
	(void)state;
	ask("GET /metrics", "127.0.0.1", "");
	assert_answer(200, "text/plain; version=0.0.4; charset=utf-8", "plain 1\n");
	ask("GET /metrics", "127.0.0.1", "Accept: application/openmetrics-text;version=1.0.0\r\n");
	assert_answer(
		200, "application/openmetrics-text; version=1.0.0; charset=utf-8", "open 1\n");
	metrics_error = -ENOMEM;
	ask("GET /metrics", "127.0.0.1", "");
	assert_answer(500, JSON, "{\"error\":\"Cannot allocate memory\"}\n");
}

/* A page of somebody else's, in a browser on this host. */
static void name__that_is_not_this_hosts__is_refused(void **state)
{
	(void)state;
	ask("GET /livez", "evil.example", "");
	assert_answer(421, JSON,
		"{\"error\":\"this host does not have the requested name: use its address, or name "
		"it with --listen-name\"}\n");
	ask("GET /nope", "evil.example", "");
	assert_int_equal(strncmp(answer, "HTTP/1.1 421 ", 13), 0);
	ask("GET /livez", NULL, "");
	assert_answer(
		400, JSON, "{\"error\":\"the request has no Host header: HTTP wants one\"}\n");
	ask("GET /livez", "relay.example:9378", "");
	assert_answer(200, PLAIN, "ok\n");
}

static void address__that_is_taken__is_an_error(void **state)
{
	struct monitor *second = NULL;
	char address[32];

	(void)state;
	snprintf(address, sizeof(address), "127.0.0.1:%d", monitor_port(monitor));
	assert_int_equal(monitor_open(&view, address, names, &second), -EADDRINUSE);
	assert_null(second);
	monitor_close(NULL);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(path__has_its_answer),
		CASE(metrics__are_of_the_form_that_is_asked_for),
		CASE(name__that_is_not_this_hosts__is_refused),
		CASE(address__that_is_taken__is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

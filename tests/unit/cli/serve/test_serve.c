/* `pullet serve` and `pullet publish`, each beside a child that asks and listens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/common/cli.h"
#include "tests/unit/fixture/command.h"
#include "tests/unit/fixture/listening.h"

static char endpoint[SCRATCH_PATH + 32], endpoint_file[SCRATCH_PATH + 16];

static int set_up(void **state)
{
	(void)state;
	alarm(30);
	played_open();
	played_stop();
	played.log->body[0] = '\0';
	snprintf(endpoint_file, sizeof(endpoint_file), "%s/push", played.dir);
	snprintf(endpoint, sizeof(endpoint), "ipc://%s", endpoint_file);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	played_close();
	return 0;
}

/* ---- the child ---- */

/* What the command prints up to the line with these words; in the child. */
static const char *read_until(int printed, const char *words)
{
	static char text[4096];
	size_t len = 0;
	ssize_t n = 1;

	text[0] = '\0';
	while (n > 0 && !(strstr(text, words) && text[len - 1] == '\n')) {
		n = read(printed, text + len, sizeof(text) - 1 - len);
		len += n > 0 ? (size_t)n : 0;
		text[len] = '\0';
	}
	return text;
}

/* Asks the server, whose address is printed, with these lines; appends its answer to the log. */
static void ask_server(const char *printed, const char *request)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const char *port = strstr(printed, "http://127.0.0.1:");
	size_t at = strlen(played.log->body);
	char text[512];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ssize_t n = 1;

	address.sin_port = htons((uint16_t)strtoul(port ? port + 17 : "0", NULL, 10));
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)))
		_exit(1);
	snprintf(text, sizeof(text), "%s\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", request);
	(void)!write(fd, text, strlen(text));
	while (n > 0 && at < sizeof(played.log->body) - 2) {
		n = read(fd, played.log->body + at, sizeof(played.log->body) - 2 - at);
		at += n > 0 ? (size_t)n : 0;
	}
	played.log->body[at++] = '\f';
	played.log->body[at] = '\0';
	close(fd);
}

/* The n-th answer in the log. */
static const char *answer(size_t n)
{
	static char text[8192];
	const char *p = played.log->body;

	while (n-- > 0)
		p += strcspn(p, "\f") + 1;
	snprintf(text, sizeof(text), "%.*s", (int)strcspn(p, "\f"), p);
	return text;
}

/* ---- serve ---- */

static void ask_for_files(int printed)
{
	const char *text = read_until(printed, "publishing on");

	snprintf(played.log->requests[0], sizeof(played.log->requests[0]), "%s", text);
	ask_server(text, "GET /web.yaml HTTP/1.1");
	ask_server(text, "GET /nope.yaml HTTP/1.1");
	ask_server(text, "POST /web.yaml HTTP/1.1\r\nContent-Length: 0");
	ask_server(text, "GET /../etc/passwd HTTP/1.1");
	ask_server(text, "GET /old.json HTTP/1.1\r\nIf-None-Match: *");
	ask_server(text, "HEAD /old.json HTTP/1.1");
	ask_server(
		text, "GET /old.json HTTP/1.1\r\nIf-Modified-Since: Sat, 01 Jan 2000 00:00:00 GMT");
	ask_server(
		text, "GET /old.json HTTP/1.1\r\nIf-Modified-Since: Sun, 02 Jan 2000 00:00:00 GMT");
}

#define OLD                                                                                        \
	"ETag: \"44136fa355b3678a1146ad16f7e8649e\"\n"                                             \
	"Last-Modified: Sat, 01 Jan 2000 00:00:00 GMT\nCache-Control: no-cache\n"                  \
	"X-Content-Type-Options: nosniff\n"

/* All lines of an answer, but for its date. */
static void check_answer(size_t n, const char *status, const char *headers, const char *body)
{
	char expected[1024], *text = strdup(answer(n)), *to = text;
	const char *date = strstr(text, "Date: ");

	snprintf(expected, sizeof(expected), "HTTP/1.1 %s\n%sConnection: close\n\n%s", status,
		headers, body);
	assert_non_null(date);
	for (const char *from = text; *from; from++) {
		from += from == date ? strcspn(from, "\n") + 1 : 0;
		if (*from != '\r')
			*to++ = *from;
	}
	*to = '\0';
	assert_string_equal(text, expected);
	free(text);
}

static void serve__answers_as_an_origin(void **state)
{
	const struct timespec old[2] = {{.tv_sec = 946684800}, {.tv_sec = 946684800}};
	char path[SCRATCH_PATH + 16], first[SCRATCH_PATH + 64], last[SCRATCH_PATH + 64];

	(void)state;
	scratch_write(played.dir, "web.yaml", "port: 1\n", 8);
	scratch_write(played.dir, "old.json", "{}", 2);
	snprintf(path, sizeof(path), "%s/old.json", played.dir);
	assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
	command.peer = ask_for_files;
	RUN(cli_serve, "pullet serve", played.dir, "--http", "127.0.0.1:0", "--push", endpoint);
	assert_int_equal(command.code, CLI_OK);
	snprintf(first, sizeof(first), "serving %s on http://127.0.0.1:", played.dir);
	snprintf(last, sizeof(last), "\npublishing on %s\n", endpoint);
	assert_ptr_equal(strstr(played.log->requests[0], first), played.log->requests[0]);
	assert_int_equal(strncmp(strchr(played.log->requests[0], '\n'), last, strlen(last)), 0);
	check_answer(0, "200 OK",
		"ETag: \"854e00f83420ae39530b0f44de6273fa\"\nCache-Control: no-cache\n"
		"X-Content-Type-Options: nosniff\nContent-Type: application/yaml\n"
		"Content-Length: 8\n",
		"port: 1\n");
	check_answer(1, "404 Not Found",
		"Content-Type: text/plain; charset=utf-8\nContent-Length: 10\n", "not found\n");
	check_answer(2, "405 Method Not Allowed",
		"Allow: GET, HEAD\nContent-Type: text/plain; charset=utf-8\nContent-Length: 18\n",
		"only GET and HEAD\n");
	check_answer(3, "404 Not Found",
		"Content-Type: text/plain; charset=utf-8\nContent-Length: 10\n", "not found\n");
	check_answer(4, "304 Not Modified", OLD, "");
	check_answer(5, "200 OK", OLD "Content-Type: application/json\nContent-Length: 2\n", "");
	check_answer(6, "304 Not Modified", OLD, "");
	check_answer(7, "200 OK", OLD "Content-Type: application/json\nContent-Length: 2\n", "{}");
}

/* Asks for a file of that age; again when the second has passed meanwhile. */
static void ask_for_file_of_age(const char *printed, time_t age)
{
	char path[SCRATCH_PATH + 16];
	int64_t now;

	snprintf(path, sizeof(path), "%s/web.yaml", played.dir);
	for (int i = 0; i < 5; i++) {
		struct timespec times[2] = {{0}};
		size_t len = strlen(played.log->body);

		now = sys_real.wall_ms() / 1000;
		times[0].tv_sec = times[1].tv_sec = (time_t)now - age;
		utimensat(AT_FDCWD, path, times, 0);
		ask_server(printed, "GET /web.yaml HTTP/1.1");
		if (sys_real.wall_ms() / 1000 == now)
			return;
		played.log->body[len] = '\0';
	}
	_exit(1);
}

static void ask_for_young_files(int printed)
{
	const char *text = read_until(printed, "publishing on");

	ask_for_file_of_age(text, 1);
	ask_for_file_of_age(text, 2);
}

/* It could change once more under the same time. */
static void serve__of_a_file_that_just_changed__sends_no_time(void **state)
{
	(void)state;
	scratch_write(played.dir, "web.yaml", "port: 1\n", 8);
	command.peer = ask_for_young_files;
	RUN(cli_serve, "pullet serve", played.dir, "--http", "127.0.0.1:0", "--push", endpoint);
	assert_int_equal(command.code, CLI_OK);
	assert_shows(answer(0), "\r\n\r\nport: 1\n");
	assert_null(strstr(answer(0), "Last-Modified"));
	assert_shows(answer(1), "\r\nLast-Modified: ");
}

static void put_beside(const char *name, const char *text)
{
	char from[SCRATCH_PATH + 16], to[SCRATCH_PATH + 16];

	scratch_write(played.dir, ".new", text, strlen(text));
	snprintf(from, sizeof(from), "%s/.new", played.dir);
	snprintf(to, sizeof(to), "%s/%s", played.dir, name);
	rename(from, to);
}

/* Changes files once a heartbeat showed that it listens. */
static void listen_for_changes(int printed)
{
	const struct listening_message *m;
	size_t n = 0;
	char path[SCRATCH_PATH + 16];

	read_until(printed, "publishing on");
	listening_open(endpoint, NULL);
	if (!listening_wait(0))
		_exit(1);
	put_beside("web.yaml", "port: 2\n");
	while ((m = listening_wait(n++)) && strcmp(m->topic, "web") != 0)
		;
	snprintf(played.log->requests[0], sizeof(played.log->requests[0]), "%s %s",
		m ? m->topic : "", m ? m->version : "");
	snprintf(path, sizeof(path), "%s/web.yaml", played.dir);
	unlink(path);
	while ((m = listening_wait(n++)) && strcmp(m->topic, "web") != 0)
		;
	snprintf(played.log->requests[1], sizeof(played.log->requests[1]), "%s %s",
		m ? m->topic : "", m ? m->version : "");
	listening_close();
}

static void read_configuration(int printed)
{
	const char *text = read_until(printed, "    guard: ");

	snprintf(played.log->body, sizeof(played.log->body), "%s", text);
}

static void serve__at_all_addresses__prints_a_configuration_with_its_name(void **state)
{
	char name[256] = "", http[300], push[300];

	(void)state;
	assert_int_equal(gethostname(name, sizeof(name) - 1), 0);
	scratch_write(played.dir, "web.yaml", "port: 1\n", 8);
	command.peer = read_configuration;
	RUN(cli_serve, "pullet serve", played.dir, "--http", "0.0.0.0:0", "--push",
		"tcp://0.0.0.0:0", "--insecure");
	assert_int_equal(command.code, CLI_OK);
	snprintf(http, sizeof(http), "http://%s:", name);
	snprintf(push, sizeof(push), "tcp://%s:", name);
	assert_shows(played.log->body, "# a configuration for the agent");
	assert_shows(strstr(played.log->body, "# a configuration"), http);
	assert_shows(strstr(played.log->body, "# a configuration"), push);
	assert_null(strstr(strstr(played.log->body, "# a configuration"), "0.0.0.0"));
}

static void serve__publishes_what_changes(void **state)
{
	(void)state;
	command.peer = listen_for_changes;
	RUN(cli_serve, "pullet serve", played.dir, "--http", "127.0.0.1:0", "--push", endpoint,
		"--heartbeat", "100ms");
	assert_int_equal(command.code, CLI_OK);
	assert_int_equal(strncmp(played.log->requests[0], "web ", 4), 0);
	assert_true(strlen(played.log->requests[0]) > 10); /* the ETag */
	assert_string_equal(played.log->requests[1], "web ");
}

static void serve__of_what_it_cannot__says_what_to_do(void **state)
{
	(void)state;
	RUN(cli_serve, "pullet serve", "/nowhere", "--http", "127.0.0.1:0");
	assert_ended(
		CLI_FAILED, "", "pullet serve: cannot serve /nowhere: No such file or directory\n");
	RUN(cli_serve, "pullet serve", played.dir, "--http", "nonsense");
	assert_int_equal(command.code, CLI_USAGE);
	assert_shows(command.err, "--http 'nonsense' ");
	RUN(cli_serve, "pullet serve", played.dir, "--http", "192.0.2.1:0");
	assert_int_equal(command.code, CLI_FAILED);
	assert_shows(command.err, "this host does not have that address (ip address)");
	RUN(cli_serve, "pullet serve", played.dir, "--http", "127.0.0.1:0", "--push", "udp://x");
	assert_int_equal(command.code, CLI_USAGE);
	RUN(cli_serve, "pullet serve", played.dir, "--http", "127.0.0.1:0", "--push",
		"tcp://0.0.0.0:0");
	assert_int_equal(command.code, CLI_USAGE);
	RUN(cli_serve, "pullet serve");
	assert_shows(command.err, "name one directory");
}

/* Nothing is said of keys, which it would not mend. */
static void serve__at_what_is_no_endpoint__says_how_one_is_written(void **state)
{
	static const struct {
		const char *endpoint, *says;
	} table[] = {{"", "names no port: write tcp://HOST:PORT"},
		{"foo", "names no port: write tcp://HOST:PORT"},
		{"tcp://foo", "names no port: write tcp://HOST:PORT"},
		{":7377", "names no host: write tcp://HOST:PORT"},
		{"tcp://:7377", "names no host: write tcp://HOST:PORT"},
		{"foo:", "has no valid port: write a number up to 65535 behind the host"},
		{"tcp:/x", "has no valid port: write a number up to 65535 behind the host"},
		{"ipc://", "names no path: write ipc:///PATH"},
		{"http://127.0.0.1:7377", "must be tcp://HOST:PORT or ipc:///PATH"}};
	char expected[256];

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		RUN(cli_serve, "pullet serve", played.dir, "--http", "127.0.0.1:0", "--push",
			table[i].endpoint);
		snprintf(expected, sizeof(expected), "pullet serve: --push '%s' %s\n",
			table[i].endpoint, table[i].says);
		assert_ended(CLI_USAGE, "", expected);
	}
}

static void serve__at_a_port_that_is_taken__names_the_option(void **state)
{
	const char *url;

	(void)state;
	url = played_listen_tcp();
	RUN(cli_serve, "pullet serve", played.dir, "--http", url + strlen("http://"), "--push",
		endpoint);
	assert_int_equal(command.code, CLI_FAILED);
	assert_shows(command.err, "another program has it: stop that, or name another with --http");
}

/* ---- publish ---- */

/* In a child; keeps what comes first. */
static pid_t fork_listener(void)
{
	const struct listening_message *m;
	pid_t parent = getpid(), pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	listening_open(endpoint, NULL);
	m = listening_wait(0);
	snprintf(played.log->requests[0], sizeof(played.log->requests[0]), "%s %s",
		m ? m->topic : "", m ? m->version : "");
	pause();
	_exit(0);
}

static void publish__to_a_subscriber__sends_topic_and_version(void **state)
{
	pid_t pid = fork_listener();

	(void)state;
	RUN(cli_publish, "pullet publish", "web", "--version", "v7", "--endpoint", endpoint);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_ended(CLI_OK, "web: sent to 1 subscription\n", "");
	assert_string_equal(played.log->requests[0], "web v7");
}

static void publish__to_nobody__exits_4(void **state)
{
	char expected[512];

	(void)state;
	RUN(cli_publish, "pullet publish", "web", "--timeout", "10ms", "--endpoint", endpoint);
	snprintf(expected, sizeof(expected),
		"pullet publish: nobody subscribed to 'web' at %s in time\n", endpoint);
	assert_ended(CLI_TIMED_OUT, "", expected);
}

static void publish__misused__says_how(void **state)
{
	static char topic[4000];

	(void)state;
	memset(topic, 'x', sizeof(topic) - 1);
	assert_int_equal(RUN(cli_publish, "pullet publish", topic), CLI_USAGE);
	assert_shows(command.err, "a topic has 1 to ");
	assert_int_equal(RUN(cli_publish, "pullet publish", ""), CLI_USAGE);
	assert_int_equal(RUN(cli_publish, "pullet publish"), CLI_USAGE);
	assert_shows(command.err, "name one topic");
	assert_int_equal(RUN(cli_publish, "pullet publish", "web", "--spread", "2h"), CLI_USAGE);
	assert_shows(command.err, "--spread takes at most 1h, not '2h'");
	RUN(cli_publish, "pullet publish", "web", "--endpoint", endpoint, "--curve-secret-key",
		"/nowhere/key");
	assert_int_equal(command.code, CLI_FAILED);
	RUN(cli_publish, "pullet publish", "web", "--endpoint", "ipc:///nowhere/at/all");
	assert_int_equal(command.code, CLI_FAILED);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(serve__answers_as_an_origin),
		CASE(serve__of_a_file_that_just_changed__sends_no_time),
		CASE(serve__at_all_addresses__prints_a_configuration_with_its_name),
		CASE(serve__publishes_what_changes),
		CASE(serve__of_what_it_cannot__says_what_to_do),
		CASE(serve__at_what_is_no_endpoint__says_how_one_is_written),
		CASE(serve__at_a_port_that_is_taken__names_the_option),
		CASE(publish__to_a_subscriber__sends_topic_and_version),
		CASE(publish__to_nobody__exits_4),
		CASE(publish__misused__says_how),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

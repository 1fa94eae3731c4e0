/* `pullet relay`: its options, and changes of a directory and of an etcd that come out as messages.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <poll.h>

#include <cmocka.h>

#include "cli/common/cli.h"
#include "push/publisher.h"
#include "tests/unit/fixture/command.h"
#include "tests/unit/fixture/listening.h"

static char endpoint[SCRATCH_PATH + 32];

static int set_up(void **state)
{
	(void)state;
	alarm(30);
	played_open();
	played_stop();
	snprintf(endpoint, sizeof(endpoint), "ipc://%s/push", played.dir);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	played_close();
	return 0;
}

static void change_file(int printed)
{
	char from[SCRATCH_PATH + 16], to[SCRATCH_PATH + 16], text[1024];
	const struct listening_message *m;
	ssize_t len = read(printed, text, sizeof(text) - 1);
	size_t n = 0;

	text[len > 0 ? len : 0] = '\0';
	snprintf(played.log->body, sizeof(played.log->body), "%s", text);
	listening_open(endpoint, NULL);
	if (!listening_wait(0)) /* a heartbeat: it is connected */
		_exit(1);
	scratch_write(played.dir, ".new", "a: 1\n", 5);
	snprintf(from, sizeof(from), "%s/.new", played.dir);
	snprintf(to, sizeof(to), "%s/web.yaml", played.dir);
	rename(from, to);
	for (; (m = listening_wait(n)) && strcmp(m->topic, "web") != 0; n++)
		;
	snprintf(played.log->requests[0], sizeof(played.log->requests[0]), "%s %s",
		m ? m->topic : "nothing came", m ? m->version : "");
	unlink(to);
	for (n++; (m = listening_wait(n)) && strcmp(m->topic, "web") != 0; n++)
		;
	snprintf(played.log->requests[1], sizeof(played.log->requests[1]), "%s %s",
		m ? m->topic : "nothing came", m ? m->version : "");
	listening_close();
}

static void relay__of_a_directory__publishes_what_changes(void **state)
{
	(void)state;
	command.peer = change_file;
	RUN(cli_relay, "pullet relay", "--dir", played.dir, "--push", endpoint, "--heartbeat",
		"200ms");
	assert_int_equal(command.code, CLI_OK);
	assert_string_equal(played.log->requests[0], "web 37b128c59f1f5097f73f82691cb519f1");
	assert_string_equal(played.log->requests[1], "web "); /* it is gone */
	assert_shows(played.log->body, "relaying /");
	assert_shows(played.log->body, "publishing on ipc://");
}

/* Waits until the relay's heartbeat has come: it is connected. */
static void listen_to_relay(void)
{
	listening_open(endpoint, NULL);
	if (!listening_wait(0))
		_exit(1);
}

/* Keeps the next so many messages that are no heartbeats. */
static void keep_messages(size_t count)
{
	const struct listening_message *m;

	for (size_t i = 0; count && (m = listening_wait(i)); i++)
		if (strcmp(m->topic, "pullet.heartbeat") != 0) {
			snprintf(played.log->requests[played.log->count++],
				sizeof(played.log->requests[0]), "%s %s %llu", m->topic, m->version,
				(unsigned long long)m->spread_ms);
			count--;
		}
	listening_close();
}

/* Answers the relay's next request. */
static void answer_request(const char *answer)
{
	char request[4096] = "";
	size_t len = 0;
	int fd = accept(played.listener, NULL, NULL);
	ssize_t n = 1;

	while (n > 0 && !played_has_request(request, len)) {
		n = read(fd, request + len, sizeof(request) - 1 - len);
		len += n > 0 ? (size_t)n : 0;
		request[len] = '\0';
	}
	played_reply(fd, answer);
	close(fd);
}

static void change_keys(int printed)
{
	(void)printed;
	played.log->count = 0;
	listen_to_relay();
	answer_request("POST /v3/watch");
	keep_messages(2);
}

#define ETCD(revision, members)                                                                    \
	"{\"result\":{\"header\":{\"cluster_id\":\"7\",\"revision\":\"" revision                   \
	"\"},\"watch_id\":\"1\"," members "}}\n"

/* "/e/web" and "/e/team/db" change, and "/e/", which is no name. */
static void relay__of_an_etcd__publishes_keys_below_the_prefix(void **state)
{
	const char *url = played_listen_tcp();

	(void)state;
	played_answers("POST /v3/watch", 200,
		ETCD("9", "\"created\":true") ETCD("10", "\"events\":[{\"kv\":{\"key\":\"L2Uv\","
							 "\"mod_revision\":\"10\"}}]") ETCD("11",
			"\"events\":[{\"kv\":{\"key\":\"L2Uvd2Vi\",\"mod_revision\":\"11\"}}]")
			ETCD("12", "\"events\":[{\"kv\":{\"key\":\"L2UvdGVhbS9kYg==\","
				   "\"mod_revision\":\"12\"}}]"));
	command.peer = change_keys;
	RUN(cli_relay, "pullet relay", "--etcd", url, "--prefix", "/e/", "--push", endpoint,
		"--heartbeat", "100ms", "--spread", "3s");
	played_stop();
	assert_int_equal(command.code, CLI_OK);
	assert_string_equal(played.log->requests[0], "web 11 3000");
	assert_string_equal(played.log->requests[1], "team/db 12 3000");
	assert_shows(command.err, "invalid topic name: changes will not be published name=");
}

static void change_consul_keys(int printed)
{
	(void)printed;
	played.log->count = 0;
	listen_to_relay();
	played.headers = "X-Consul-Index: 5\r\n";
	played_answers("GET /v1/kv/c/", 200,
		"[{\"Key\":\"c/web\",\"ModifyIndex\":5,\"Flags\":0,\"Value\":\"\"}]");
	answer_request("GET /v1/kv/c/");
	played.headers = "X-Consul-Index: 6\r\n";
	played_answers("GET /v1/kv/c/", 200,
		"[{\"Key\":\"c/web\",\"ModifyIndex\":6,\"Flags\":0,\"Value\":\"\"}]");
	answer_request("GET /v1/kv/c/");
	keep_messages(1);
}

/* Its keys begin without the slash of a path. */
static void relay__of_a_consul__publishes_keys_below_the_prefix(void **state)
{
	const char *url = played_listen_tcp();

	(void)state;
	command.peer = change_consul_keys;
	RUN(cli_relay, "pullet relay", "--consul", url, "--prefix", "/c/", "--push", endpoint,
		"--heartbeat", "200ms");
	played_stop();
	assert_int_equal(command.code, CLI_OK);
	assert_string_equal(played.log->requests[0], "web 6 0");
	assert_string_equal(command.err, "");
}

static char upstream[SCRATCH_PATH + 32];

/* One that subscribes later gets what was sent before, without waiting for a heartbeat. */
static void publish_upstream(int printed)
{
	struct publisher_options options = {.queue = 0};
	struct publisher *p;
	char why[CURVE_WHY], prefix[512];
	int is_new = 0;

	(void)printed;
	played.log->count = 0;
	if (publisher_open(&sys_real, upstream, &options, &p, why))
		_exit(1);
	while (publisher_poll(p, prefix, sizeof(prefix), &is_new) <= 0 || !is_new)
		poll(&(struct pollfd){.fd = publisher_fd(p), .events = POLLIN}, 1, 10);
	publisher_send(p, "web", "v7", 500);
	listening_open(endpoint, NULL);
	keep_messages(1);
	listening_open(endpoint, NULL);
	listening_wait(0); /* it is connected */
	publisher_send(p, "db", "v8", 0);
	keep_messages(2);
	publisher_close(p);
}

static void relay__of_an_upstream__passes_messages_on(void **state)
{
	(void)state;
	snprintf(upstream, sizeof(upstream), "ipc://%s/up", played.dir);
	command.peer = publish_upstream;
	RUN(cli_relay, "pullet relay", "--upstream", upstream, "--push", endpoint, "--heartbeat",
		"1h", "--upstream-heartbeat", "1h");
	assert_int_equal(command.code, CLI_OK);
	assert_string_equal(played.log->requests[0], "web v7 500");
	assert_string_equal(played.log->requests[1], "web v7 500");
	assert_string_equal(played.log->requests[2], "db v8 0");
}

static void relay__in_a_circle__is_rejected(void **state)
{
	(void)state;
	RUN(cli_relay, "pullet relay", "--upstream", endpoint, "--push", endpoint);
	assert_int_equal(command.code, CLI_FAILED);
	assert_shows(command.err, "is the relay's own endpoint: messages would go in a circle");
}

static void relay__of_what_is_not_there__says_so(void **state)
{
	(void)state;
	RUN(cli_relay, "pullet relay", "--dir", "/nowhere", "--push", endpoint);
	assert_ended(
		CLI_FAILED, "", "pullet relay: cannot watch /nowhere: No such file or directory\n");
	RUN(cli_relay, "pullet relay", "--dir", played.dir, "--push", "ipc:///nowhere/at/all");
	assert_int_equal(command.code, CLI_FAILED);
}

static void stop_at_once(int printed)
{
	char text[1024];
	ssize_t n = read(printed, text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	snprintf(played.log->body, sizeof(played.log->body), "%s", text);
}

static void relay__of_servers_and_upstreams__names_them(void **state)
{
	char path[SCRATCH_PATH + 16];
	static const char text[] =
		"servers:\n  store: {kind: consul, urls: ['http://127.0.0.1:1']}\n"
		"  web: {urls: ['http://127.0.0.1:1']}\n"
		"configs:\n  a: {from: [{server: web, path: /a.yaml}]}\n";

	(void)state;
	scratch_write(played.dir, "p.yaml", text, strlen(text));
	snprintf(path, sizeof(path), "%s/p.yaml", played.dir);
	command.peer = stop_at_once;
	RUN(cli_relay, "pullet relay", "-c", path, "--server", "store", "--prefix", "/c/", "--etcd",
		"http://127.0.0.1:1//,http://127.0.0.1:2", "--prefix", "/e/", "--prefix", "/f/",
		"--upstream", "ipc:///nowhere/up", "--upstream-heartbeat", "1s", "--push",
		endpoint);
	assert_int_equal(command.code, CLI_OK);
	assert_shows(played.log->body, "relaying store /c/\nrelaying http://127.0.0.1:1 /e/\n"
				       "relaying http://127.0.0.1:1 /f/\n"
				       "relaying ipc:///nowhere/up\npublishing on ");
	RUN(cli_relay, "pullet relay", "-c", path, "--server", "nope", "--prefix", "/c/", "--push",
		endpoint);
	assert_int_equal(command.code, CLI_CONFIG);
	assert_shows(command.err, "there is no server nope");
	RUN(cli_relay, "pullet relay", "-c", path, "--server", "web", "--prefix", "/c/", "--push",
		endpoint);
	assert_ended(CLI_CONFIG, "",
		"pullet relay: server web: only etcd and Consul can watch the keys below a "
		"prefix\n");
	RUN(cli_relay, "pullet relay", "-c", "/nowhere.yaml", "--server", "x", "--prefix", "/c/",
		"--push", endpoint);
	assert_ended(CLI_CONFIG, "",
		"pullet relay: /nowhere.yaml: cannot be read: No such file or directory: make it, "
		"or name another one\n");
}

/* Its metrics could not be told apart. */
static void source__that_is_named_twice__is_rejected_where_metrics_are(void **state)
{
	static const char *const sources[] = {"--dir", "--upstream"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		const char *source = i ? "ipc:///nowhere/up" : played.dir;
		char expected[256];

		RUN(cli_relay, "pullet relay", sources[i], source, sources[i], source, "--push",
			endpoint, "--listen", "127.0.0.1:0");
		assert_int_equal(command.code, CLI_USAGE);
		snprintf(expected, sizeof(expected), "%s", source);
		assert_shows(command.err, expected);
	}
}

static void options__that_do_not_fit__are_misused(void **state)
{
	static const struct {
		const char *a, *b, *c, *sentence;
	} rows[] = {
		{NULL, NULL, NULL, "there is nothing to relay: name a source"},
		{"file.yaml", NULL, NULL, "'file.yaml' is no option: all sources are"},
		{"--prefix=/a/", NULL, NULL, "--prefix belongs to a server: name it first"},
		{"--etcd=http://h:1", "--prefix=a", NULL, "--prefix ends in '/'"},
		{"--etcd=http://h:1", NULL, NULL, "a server needs a --prefix behind it"},
		{"--etcd=nonsense", NULL, NULL, "the url of a server "},
		{"--etcd=http://a:1,http://b:1,http://c:1,http://d:1,http://e:1,http://f:1,http://"
		 "g:1,"
		 "http://h:1,http://i:1,http://j:1,http://k:1,http://l:1,http://m:1,http://n:1,"
		 "http://o:1,http://p:1,http://q:1",
			NULL, NULL, "a server has at most "},
		{"--server=s", "--prefix=/a/", NULL, "--server needs -c FILE"},
		{"--dir=/", "-cx", NULL, "-c is read for --server only, and none is named"},
		{"--upstream=udp://x", NULL, NULL, "--upstream "},
		{"--upstream-heartbeat=1s", NULL, NULL,
			"--upstream-heartbeat belongs to an upstream"},
		{"--upstream=tcp://127.0.0.1:1", "--upstream-heartbeat=1ms", NULL,
			"--upstream-heartbeat takes 100ms to 1h"},
		{"--upstream=tcp://127.0.0.1:1", "--upstream-curve-server-key=short", NULL,
			"--upstream-curve-server-key "},
		{"--upstream=tcp://127.0.0.1:1", "--upstream-curve-secret-key=f", NULL,
			"--upstream-curve-secret-key needs --upstream-curve-server-key"},
		{"--upstream=tcp://192.0.2.1:1", NULL, NULL, "is not on this host, and plain text"},
		{"--upstream=tcp://127.0.0.1:1", "--upstream-insecure",
			"--upstream-curve-server-key=rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7",
			"exclude each other"},
		{"--upstream-insecure", NULL, NULL, "belongs to an upstream: name it first"},
		{"--heartbeat=1ms", NULL, NULL, "--heartbeat takes 100ms to 1h"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		RUN(cli_relay, "pullet relay", rows[i].a, rows[i].b, rows[i].c);
		if (command.code != CLI_USAGE)
			print_error("%s\n", rows[i].sentence);
		assert_int_equal(command.code, CLI_USAGE);
		assert_shows(command.err, rows[i].sentence);
	}
}

static void options__that_are_too_many__are_rejected(void **state)
{
	static const char *const options[] = {
		"--dir=/x", "--upstream=tcp://127.0.0.1:1", "--etcd=http://h:1", "--server=s"};
	static const char *const sentences[] = {"directories can be named",
		"upstreams can be named", "servers can be named", "servers can be named"};
	const char *arguments[COMMAND_ARGUMENTS + 1] = {"pullet relay"};

	(void)state;
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		for (size_t n = 1; n < COMMAND_ARGUMENTS; n++)
			arguments[n] = options[i];
		assert_int_equal(command_run(cli_relay, arguments), CLI_USAGE);
		assert_shows(command.err, sentences[i]);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(relay__of_a_directory__publishes_what_changes),
		CASE(relay__of_an_etcd__publishes_keys_below_the_prefix),
		CASE(relay__of_a_consul__publishes_keys_below_the_prefix),
		CASE(relay__of_an_upstream__passes_messages_on),
		CASE(relay__in_a_circle__is_rejected),
		CASE(relay__of_what_is_not_there__says_so),
		CASE(relay__of_servers_and_upstreams__names_them),
		CASE(source__that_is_named_twice__is_rejected_where_metrics_are),
		CASE(options__that_do_not_fit__are_misused),
		CASE(options__that_are_too_many__are_rejected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

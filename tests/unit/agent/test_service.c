/* What pulletd tells others: systemd, the application and its probe; and what a push does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "push/publisher.h"
#include "tests/unit/fixture/pulletd.h"

/* ---- systemd ---- */

static int notified = -1; /* what systemd would read */

/* Receives notifications until one begins so. */
static bool was_notified(const char *words)
{
	char text[1024];
	struct pollfd fd = {.fd = notified, .events = POLLIN};
	ssize_t n;

	while (poll(&fd, 1, 20000) == 1) {
		n = recv(notified, text, sizeof(text) - 1, 0);
		text[n > 0 ? n : 0] = '\0';
		if (strncmp(text, words, strlen(words)) == 0)
			return true;
	}
	talk->failed = true;
	return false;
}

static void listen_as_systemd(int printed)
{
	was_notified("READY=1\nSTATUS=0 configs ok; waiting for the first version of 1: web");
	put("web.yaml", "port: 1\n");
	kill(agent_pid, SIGUSR1);
	was_notified("STATUS=1 config ok");
	was_notified("WATCHDOG=1");
	kill(agent_pid, SIGHUP);
	was_notified("RELOADING=1\nMONOTONIC_USEC=");
	was_notified("READY=1\nSTATUS=1 config ok");
	(void)printed;
}

static void systemd__hears_of_each_state(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	(void)state;
	snprintf(address.sun_path, sizeof(address.sun_path), "%.80s/notify", played.dir);
	notified = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(notified, (const struct sockaddr *)&address, sizeof(address)), 0);
	setenv("NOTIFY_SOCKET", address.sun_path, 1);
	setenv("WATCHDOG_USEC", "20000", 1);
	put_settings("", WEB);
	run_with(listen_as_systemd);
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	assert_true(was_notified("STOPPING=1"));
	close(notified);
}

static void only_wait_for_version(int printed)
{
	log_has(printed, "published", 1);
}

static void systemd__with_an_invalid_address__is_not_notified(void **state)
{
	(void)state;
	put("web.yaml", "port: 1\n");
	put_settings("", WEB);
	setenv("NOTIFY_SOCKET", "nonsense", 1);
	run_with(only_wait_for_version);
	unsetenv("NOTIFY_SOCKET");
	assert_shows(talk->log, "systemd is not notified: invalid NOTIFY_SOCKET");
}

/* ---- reload and probe ---- */

static void watch_application(int printed)
{
	if (!log_has(printed, "reload succeeded", 1))
		return;
	log_has(printed, "probe", 1);
	ask("GET /v1/configs/web"); /* 0 */
	put("bad", "");
	put("web.yaml", "port: 2\n");
	ask("POST /v1/configs/web/refresh?wait=1"); /* 1 */
	if (!log_has(printed, "published", 3))      /* the version before comes back */
		return;
	ask("GET /v1/configs/web");         /* 2 */
	ask("GET /v1/configs/web/history"); /* 3 */
}

static void application__is_notified_and_a_bad_version_taken_back(void **state)
{
	char config[1024];

	(void)state;
	put("web.yaml", "port: 1\n");
	snprintf(config, sizeof(config),
		"  web:\n    from: [{server: d, path: /web.yaml}]\n    type: yaml\n    snapshot: "
		"true\n"
		"    interval: 1h\n    reload: {run: [/bin/true], debounce: 0s}\n"
		"    probe: {run: [/usr/bin/test, '!', -e, %s/bad], for: 100ms, every: 100ms, "
		"failures: 1}\n",
		played.dir);
	put_settings("", config);
	run_with(watch_application);
	assert_answer(0, 200, "\"reload\":{\"state\":");
	assert_answer(2, 200, "\"generation\":3");
	assert_answer(3, 200, "\"rejected\":{\"by\":\"probe\"");
}

/* ---- push ---- */

static void push_changes(int printed)
{
	struct publisher *p;
	const struct publisher_options options = {0};
	char endpoint[SCRATCH_PATH + 16], why[CURVE_WHY], prefix[512];
	struct pollfd fd = {.events = POLLIN};
	unsigned subscriptions = 0;
	int is_new;

	snprintf(endpoint, sizeof(endpoint), "ipc://%s/push", played.dir);
	if (!log_has(printed, "published", 1) ||
		publisher_open(&sys_real, endpoint, &options, &p, why)) {
		talk->failed = true;
		return;
	}
	fd.fd = publisher_fd(p);
	while (subscriptions < 2 && poll(&fd, 1, 10000) == 1) /* "web" and heartbeats */
		while (publisher_poll(p, prefix, sizeof(prefix), &is_new) > 0)
			subscriptions += is_new == 1;
	log_has(printed, "push channel connected", 1);
	put("web.yaml", "port: 2\n");
	publisher_send(p, "web", "", 0);
	log_has(printed, "published", 2);
	put("web.yaml", "port: 3\n");
	publisher_send(p, "web", "", 0);
	log_has(printed, "published", 3);
	ask_until("GET /v1/status", "\"messages\":2");
	ask("GET /metrics");
	publisher_close(p);
	log_has(printed, "push channel lost", 1);
}

static void push__makes_the_agent_pull_at_once(void **state)
{
	char part[512];

	(void)state;
	put("web.yaml", "port: 1\n");
	snprintf(part, sizeof(part), "}\npush:\n- {endpoint: 'ipc://%s/push'", played.dir);
	put_settings(part,
		"  web: {from: [{server: d, path: /web.yaml}], type: yaml, snapshot: true, "
		"interval: 1h, push_min_interval: 0s}\n");
	run_with(push_changes);
	assert_answer(0, 200, "\"state\":\"connected\"");
	assert_answer(0, 200, "\"messages\":2");
	assert_shows(talk->answers[1], "\npullet_push_messages_total{endpoint=\"ipc://");
	assert_shows(talk->answers[1], ",state=\"connected\"} 1\n");
	assert_answer(0, 200, "\"generation\":3");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, pulletd_set_up, pulletd_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(systemd__hears_of_each_state),
		CASE(systemd__with_an_invalid_address__is_not_notified),
		CASE(application__is_notified_and_a_bad_version_taken_back),
		CASE(push__makes_the_agent_pull_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * What systemd is told, message by message, of one config on a virtual clock; the test reads the
 * socket.
 */
#include "tests/unit/fixture/fault_memory.h"

#include "tests/unit/fixture/core.h"

#include <sys/socket.h>
#include <sys/un.h>

#include "control/systemd.h"

static char place[SCRATCH_PATH + 16];
static int inbox = -1;
static struct config *configs[2];
static struct control_env env;
static struct systemd *notifier;

const struct sys *loop_sys(struct loop *l)
{
	(void)l;
	return &world.sys;
}

static void open_inbox(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	unlink(place);
	snprintf(address.sun_path, sizeof(address.sun_path), "%.100s", place);
	inbox = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(inbox, (const struct sockaddr *)&address, sizeof(address)), 0);
}

static void close_inbox(void)
{
	close(inbox);
	inbox = -1;
}

static int set_up(void **state)
{
	core_set_up(state);
	snprintf(place, sizeof(place), "%s/notify", core.dir);
	open_inbox();
	setenv("NOTIFY_SOCKET", place, 1);
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	return 0;
}

static int tear_down(void **state)
{
	systemd_stop(notifier);
	notifier = NULL;
	if (inbox >= 0)
		close_inbox();
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	return core_tear_down(state);
}

/* The next message; "" = there is none. */
static const char *received(void)
{
	static char text[1024];
	ssize_t n = recv(inbox, text, sizeof(text) - 1, MSG_DONTWAIT);

	text[n > 0 ? n : 0] = '\0';
	return text;
}

static void check_received(const char *const messages[], const char *file, int line)
{
	for (size_t i = 0; messages[i]; i++) {
		const char *found = received();

		if (strcmp(found, messages[i]) != 0)
			core_fail(file, line, "message %zu is \"%s\", not \"%s\"", i, found,
				messages[i]);
	}
	if (received()[0])
		core_fail(file, line, "one more message came");
}

/* These, and no more. */
#define assert_received(...)                                                                       \
	check_received((const char *const[]){__VA_ARGS__, NULL}, __FILE__, __LINE__)

static void begin(void)
{
	configs[0] = core.config;
	configs[1] = NULL; /* there is but one */
	env = (struct control_env){
		.loop = &world.loop, .settings = core.settings, .configs = configs};
	notifier = systemd_start(&env);
	world_turn();
}

/* ---- start ---- */

static void start__of_an_agent_that_waits_for_its_server__is_ready(void **state)
{
	(void)state;
	agent_starts("");
	begin();
	assert_received("READY=1\nSTATUS=0 configs ok; waiting for the first version of 1: web: "
			"/web.yaml: the server answered 404");
	world_advance(HOUR);
	assert_received(NULL); /* no watchdog */
	pull_of("n: 1\n");
	systemd_run_ended(notifier, 0);
	assert_received("STATUS=1 config ok");
	world_advance(SECOND);
	systemd_run_ended(notifier, 1); /* one that is new, before the reload has ended */
	assert_received(NULL);
	systemd_stop(notifier);
	notifier = NULL;
	assert_received("STOPPING=1\nSTATUS=stopping");
	world_advance(HOUR);
	assert_received(NULL);
}

static void start__without_systemd__is_none(void **state)
{
	(void)state;
	unsetenv("NOTIFY_SOCKET");
	core_make("");
	begin();
	assert_null(notifier);
	systemd_run_ended(NULL, 0);
	systemd_reloading(NULL);
	systemd_reloaded(NULL);
	systemd_stop(NULL);
	assert_not_logged("systemd");
}

static void address__of_each_form__is_taken_or_refused(void **state)
{
	static const struct {
		const char *first;
		size_t len;
		bool good;
	} rows[] = {{"/", 1, false}, {"@", 1, false}, {"/", 2, true}, {"@", 2, true},
		{"x", 9, false}, {"/", 107, true}, {"/", 108, false}, {"@", 107, true},
		{"", 0, false}};

	(void)state;
	core_make("");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[128] = "";

		memset(text, 'y', rows[i].len);
		if (rows[i].len)
			text[0] = rows[i].first[0];
		setenv("NOTIFY_SOCKET", text, 1);
		forget_log();
		begin();
		assert_int_equal(notifier != NULL, rows[i].good);
		if (!rows[i].good)
			assert_logged("systemd is not notified: invalid NOTIFY_SOCKET");
		systemd_stop(notifier);
		notifier = NULL;
	}
}

static void address__that_is_abstract__is_reached(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	socklen_t len = sizeof(sa_family_t); /* the kernel chooses a name */
	char text[64];

	(void)state;
	close_inbox();
	inbox = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(inbox, (const struct sockaddr *)&address, len), 0);
	len = sizeof(address);
	assert_int_equal(getsockname(inbox, (struct sockaddr *)&address, &len), 0);
	snprintf(text, sizeof(text), "@%.*s",
		(int)(len - offsetof(struct sockaddr_un, sun_path) - 1), address.sun_path + 1);
	setenv("NOTIFY_SOCKET", text, 1);
	server_has("n: 1\n");
	agent_starts("");
	begin();
	assert_received("READY=1\nSTATUS=1 config ok");
}

/* ---- the status text ---- */

static void status__is_sent_when_it_changes__once_a_second(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	begin();
	assert_received("READY=1\nSTATUS=1 config ok");
	systemd_run_ended(notifier, 0);
	world_advance(2000);
	assert_received(NULL); /* nothing has changed */
	server_is_down();
	pull();
	systemd_run_ended(notifier, 0);
	assert_received("STATUS=0 configs ok; 1 failing: web: /web.yaml: connection refused");
	server_recovers();
	world_advance(400);
	pull();
	systemd_run_ended(notifier, 0);
	assert_received(NULL);
	world_advance(599);
	assert_received(NULL);
	world_advance(1);
	assert_received("STATUS=1 config ok");
	server_is_down();
	pull();
	world_advance(999);
	systemd_run_ended(notifier, 0);
	assert_received(NULL);
	world_advance(1);
	assert_received("STATUS=0 configs ok; 1 failing: web: /web.yaml: connection refused");
}

static void status__of_several_configs__counts_them_and_names_the_first(void **state)
{
	struct settings two;

	(void)state;
	server_has("n: 1\n");
	agent_starts("backoff_bound: 1, timeout: 10s");
	two = *core.settings;
	two.config_count = 2;
	configs[0] = configs[1] = core.config;
	env = (struct control_env){.loop = &world.loop, .settings = &two, .configs = configs};
	notifier = systemd_start(&env);
	world_turn();
	assert_received("READY=1\nSTATUS=2 configs ok");
	server_fails(PULL_FAILED, KIND_CAUSE_HOST, "two\nlines");
	pull();
	world_advance(SECOND);
	systemd_run_ended(notifier, 0);
	received();
	assert_received(NULL);
	systemd_reloaded(notifier);
	assert_received("READY=1\nSTATUS=0 configs ok; 2 failing: web: /web.yaml: two\\x0alines");
	world_advance(HOUR + 11 * SECOND);
	systemd_run_ended(notifier, 0);
	assert_received("STATUS=0 configs ok; 2 stale: web: /web.yaml: two\\x0alines");
}

/* The text that it has stays; it is ready all the same. */
static void status__without_memory__comes_later(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	configs[0] = core.config;
	env = (struct control_env){
		.loop = &world.loop, .settings = core.settings, .configs = configs};
	notifier = systemd_start(&env);
	fault_memory.seen = 0;
	fault_memory.nth = 1;
	world_turn();
	fault_memory.nth = 0;
	assert_received("READY=1\nSTATUS=");
	systemd_run_ended(notifier, 0);
	world_advance(SECOND);
	assert_received("STATUS=1 config ok");
}

/* A run costs the same with 200 configs as with 100: it looks at its own and at 64 others. */
static void status__of_many_configs__looks_at_some_in_turn(void **state)
{
	struct config *many[200];
	struct settings all;

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	all = *core.settings;
	all.config_count = 200;
	for (size_t i = 0; i < 200; i++)
		many[i] = core.config;
	env = (struct control_env){.loop = &world.loop, .settings = &all, .configs = many};
	notifier = systemd_start(&env);
	world_turn();
	assert_received("READY=1\nSTATUS=200 configs ok");
	server_is_down();
	pull();
	world_advance(SECOND);
	systemd_run_ended(notifier, 199);
	assert_received("STATUS=135 configs ok; 65 failing: web: /web.yaml: connection refused");
	world_advance(SECOND);
	systemd_run_ended(notifier, 199);
	assert_received("STATUS=71 configs ok; 129 failing: web: /web.yaml: connection refused");
	world_advance(SECOND);
	systemd_run_ended(notifier, 199);
	world_advance(SECOND);
	systemd_run_ended(notifier, 199);
	received();
	assert_received("STATUS=0 configs ok; 200 failing: web: /web.yaml: connection refused");
	all.config_count = 3; /* others, before it is told */
	systemd_run_ended(notifier, 1);
	world_advance(SECOND);
	assert_received("STATUS=0 configs ok; 3 failing: web: /web.yaml: connection refused");
}

/* ---- reloads ---- */

static void reload__begins_and_ends(void **state)
{
	char expected[128];

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	begin();
	received();
	systemd_reloading(notifier);
	snprintf(expected, sizeof(expected), "RELOADING=1\nMONOTONIC_USEC=%llu",
		(unsigned long long)world.sys.monotonic_us());
	assert_received(expected);
	systemd_reloaded(notifier);
	assert_received("READY=1\nSTATUS=1 config ok");
}

static void reload__before_the_first_version__waits_for_no_server(void **state)
{
	static const char text[] =
		"READY=1\nSTATUS=0 configs ok; waiting for the first version of 1: web";

	(void)state;
	core_make("");
	begin();
	assert_received(text);
	systemd_reloaded(notifier);
	assert_received(text);
}

static void ready__that_systemd_did_not_take__is_sent_again(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	close_inbox();
	begin();
	world_advance(2500);
	open_inbox();
	world_advance(499);
	assert_received(NULL);
	world_advance(1);
	assert_received("READY=1\nSTATUS=1 config ok");
	world_advance(MINUTE);
	assert_received(NULL);
}

/* ---- the watchdog ---- */

static void watchdog__of_that_time__is_fed_in_half_of_it(void **state)
{
	static const struct {
		const char *usec;
		int pid; /* 0: none is named; 1: ours; 2: another one */
		unsigned period_ms;
	} rows[] = {{"20000000", 0, 10000}, {"20000000", 1, 10000}, {"20000000", 2, 0}, {"0", 0, 0},
		{"nonsense", 0, 0}, {"1", 0, 1}, {"1999", 0, 1}, {"2000", 0, 1}, {"4000", 0, 2},
		{"010000", 0, 5}};

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char pid[32];

		snprintf(pid, sizeof(pid), "%d", (int)getpid() + rows[i].pid - 1);
		setenv("WATCHDOG_USEC", rows[i].usec, 1);
		if (rows[i].pid)
			setenv("WATCHDOG_PID", pid, 1);
		else
			unsetenv("WATCHDOG_PID");
		begin();
		assert_string_equal(received(), "READY=1\nSTATUS=1 config ok");
		if (rows[i].period_ms) {
			assert_received("WATCHDOG=1");
			world_advance(rows[i].period_ms - 1);
			assert_received(NULL);
			world_advance(1);
			assert_received("WATCHDOG=1");
			world_advance(rows[i].period_ms);
			assert_received("WATCHDOG=1");
		} else {
			world_advance(HOUR);
			assert_received(NULL);
		}
		systemd_stop(notifier);
		notifier = NULL;
		assert_received("STOPPING=1\nSTATUS=stopping");
	}
}

static void watchdog__of_an_agent_that_is_stuck__is_not_fed(void **state)
{
	unsigned fed = 0;

	(void)state;
	setenv("WATCHDOG_USEC", "120000000", 1);
	server_has("n: 1\n");
	agent_starts("check: [/bin/true, '{path}']");
	begin();
	assert_received("READY=1\nSTATUS=1 config ok", "WATCHDOG=1");
	world.programs_hang = true;
	pull_of("n: 2\n");
	world_advance(10 * MINUTE);
	while (received()[0])
		fed++;
	assert_in_range(fed, 1, 5);
	assert_logged("withholding watchdog keepalive config=web why=\"a program that checks a "
		      "version does not end, not even killed\"");
	assert_int_equal(core_count_log("withholding"), 1);
	assert_not_logged("the agent makes progress again");
	world.programs_hang = false;
	world_turn();
	world_advance(SECOND);
	assert_received("WATCHDOG=1"); /* it is tried again soon */
	assert_logged("the agent makes progress again");
	world_advance(MINUTE);
	assert_received("WATCHDOG=1");
}

/* One that is to come each so often, and again so long after it did not. */
static void check_another_try(const char *usec, uint64_t period_ms, uint64_t again_ms)
{
	setenv("WATCHDOG_USEC", usec, 1);
	server_has("n: 1\n");
	agent_starts("");
	begin();
	assert_received("READY=1\nSTATUS=1 config ok", "WATCHDOG=1");
	close_inbox();
	world_advance(period_ms);
	open_inbox();
	world_advance(again_ms - 1);
	assert_received(NULL);
	world_advance(1);
	assert_received("WATCHDOG=1");
}

static void keepalive__that_systemd_did_not_take__is_tried_again_soon(void **state)
{
	(void)state;
	check_another_try("2000000", 1000, 251); /* a quarter of its half, and 1 ms */
}

static void keepalive__that_systemd_did_not_take__is_tried_again_in_a_second(void **state)
{
	(void)state;
	check_another_try("8800000", 4400, 1000);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(start__of_an_agent_that_waits_for_its_server__is_ready),
		CASE(start__without_systemd__is_none),
		CASE(address__of_each_form__is_taken_or_refused),
		CASE(address__that_is_abstract__is_reached),
		CASE(status__is_sent_when_it_changes__once_a_second),
		CASE(status__of_several_configs__counts_them_and_names_the_first),
		CASE(status__of_many_configs__looks_at_some_in_turn),
		CASE(reload__begins_and_ends),
		CASE(reload__before_the_first_version__waits_for_no_server),
		CASE(ready__that_systemd_did_not_take__is_sent_again),
		CASE(watchdog__of_that_time__is_fed_in_half_of_it),
		CASE(watchdog__of_an_agent_that_is_stuck__is_not_fed),
		CASE(keepalive__that_systemd_did_not_take__is_tried_again_soon),
		CASE(keepalive__that_systemd_did_not_take__is_tried_again_in_a_second),
		CASE(status__without_memory__comes_later),
	};

	return fault_memory_run(tests, 1);
}

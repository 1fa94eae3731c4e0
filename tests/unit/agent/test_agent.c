/*
 * Parts of the agent by themselves: agent/agent.c is compiled in here, with receipts that are only
 * counted.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/inotify.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "fleet/report.h"
#include "reconfigure.h"
#include "tests/unit/fixture/captured.h"
#include "tests/unit/fixture/fault_memory.h"
#include "tests/unit/fixture/scratch.h"

static struct report *played_start(const struct report_env *env);
static void played_changed(struct report *r, size_t config);
static bool played_leave(struct report *r, void (*done)(void *arg), void *arg);
static int played_subscribe(const struct sys *sys, const struct subscriber_endpoint *endpoints,
	size_t count, struct push_topic *const *topics, size_t topic_count,
	struct subscriber **ret_subscriber);

static int played_control(
	const struct control_env *env, struct control **ret_control, char why[FILE_WHY]);
static struct systemd *played_systemd(const struct control_env *env);
static void played_upstream_free(struct upstream *s);
static void played_config_free(struct config *c);
static bool played_config_retire(struct config *c, void (*ended)(void *arg), void *arg);

#define control_start played_control
#define systemd_start played_systemd
#define upstream_free played_upstream_free
#define config_free played_config_free
#define config_retire played_config_retire
#define report_start played_start
#define report_changed played_changed
#define report_leave played_leave
#define subscriber_start played_subscribe
#include "agent.c"
#undef control_start
#undef systemd_start
#undef upstream_free
#undef config_free
#undef config_retire
#undef report_start
#undef report_changed
#undef report_leave
#undef subscriber_start

static struct {
	unsigned started, left;
	char changed[64];
	bool has_last_word;
	struct loop_timer written; /* the last word, after so long; 0 = never */
	uint64_t written_ms;
} receipts;

static uint64_t clock_ms;

static uint64_t virtual_now_ms(void)
{
	return clock_ms;
}

static void wait_until(uint64_t due_ms)
{
	assert_int_not_equal(due_ms, UINT64_MAX);
	clock_ms = due_ms > clock_ms ? due_ms : clock_ms;
}

static struct report *played_start(const struct report_env *env)
{
	(void)env;
	receipts.started++;
	return NULL;
}

static void played_changed(struct report *r, size_t config)
{
	size_t len = strlen(receipts.changed);

	(void)r;
	snprintf(receipts.changed + len, sizeof(receipts.changed) - len, " %zu", config);
}

static struct loop *loop;

static bool played_leave(struct report *r, void (*done)(void *arg), void *arg)
{
	assert_ptr_equal(r, &receipts);
	receipts.left++;
	if (receipts.has_last_word && receipts.written_ms) {
		loop_timer_init(&receipts.written, done, arg);
		loop_timer_set(loop, &receipts.written, clock_ms + receipts.written_ms);
	}
	return receipts.has_last_word;
}

static int subscribe_error;

static int played_subscribe(const struct sys *sys, const struct subscriber_endpoint *endpoints,
	size_t count, struct push_topic *const *topics, size_t topic_count,
	struct subscriber **ret_subscriber)
{
	(void)sys, (void)topics, (void)topic_count, (void)ret_subscriber;
	assert_int_equal(count, 2);
	assert_string_equal(endpoints[0].endpoint, "tcp://127.0.0.1:1");
	assert_string_equal(endpoints[1].endpoint, "tcp://127.0.0.1:2");
	assert_int_equal(endpoints[1].heartbeat_ms, 7);
	assert_string_equal(endpoints[1].server_key, "KEY");
	assert_string_equal(endpoints[1].secret_key_file, "/key");
	return subscribe_error;
}

/* Until its pull has ended, which may take long, the receipt is that of the old one else. */
static void receipt__of_each_config_that_changed__is_written_at_once(void **state)
{
	bool same[] = {false, true, false, false};
	const struct settings_diff diff = {.configs.same = same};
	struct settings settings = {.config_count = 4};
	struct agent a = {.settings = &settings, .report = (struct report *)&receipts};

	(void)state;
	assert_int_equal(renew_report(&a, &diff), 0);
	assert_string_equal(receipts.changed, " 0 2 3");
	assert_int_equal(receipts.started, 0);
	a.report = NULL; /* none is written */
	assert_int_equal(renew_report(&a, &diff), 0);
	assert_string_equal(receipts.changed, " 0 2 3");
	assert_int_equal(receipts.started, 0);
	settings.report.from = (char *)"etcd"; /* out of memory */
	assert_int_equal(renew_report(&a, &diff), -ENOMEM);
	assert_int_equal(receipts.started, 1);
}

static void stop__waits_for_the_last_word_to_the_fleet_and_half_a_second_at_most(void **state)
{
	static const struct {
		bool has_last_word;
		uint64_t written_ms, took_ms;
	} rows[] = {{false, 0, 0}, {true, 70, 70}, {true, 0, 500}, {true, 5000, 500}};
	struct sys sys = sys_real;

	(void)state;
	sys.now_ms = virtual_now_ms;
	sys.wait_until = wait_until;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct agent a = {.lock = -1};

		clock_ms = 1000;
		a.loop = loop = loop_new(&sys);
		receipts.left = 0;
		receipts.has_last_word = rows[i].has_last_word;
		receipts.written_ms = rows[i].written_ms;
		agent_leave(&a); /* which writes no receipts */
		assert_int_equal(receipts.left, 0);
		a.report = (struct report *)&receipts;
		agent_leave(&a);
		assert_int_equal(receipts.left, 1);
		assert_int_equal(clock_ms, 1000 + rows[i].took_ms);
		loop_timer_cancel(loop, &receipts.written);
		loop_timer_init(&receipts.written, end_loop, &a);
		loop_timer_set(loop, &receipts.written, 9000);
		assert_int_equal(loop_run(loop), 0); /* its patience is over */
		assert_int_equal(clock_ms, 9000);
		loop_free(loop);
	}
}

static struct settings_push two_endpoints[] = {
	{.endpoint = (char *)"tcp://127.0.0.1:1"}, {.endpoint = (char *)"tcp://127.0.0.1:2",
							   .heartbeat_ms = 7,
							   .server_key = (char *)"KEY",
							   .secret_key_file = (char *)"/key"}};

static void push__that_cannot_start__says_why(void **state)
{
	static const struct {
		int error;
		const char *why;
	} rows[] = {
		{-EMFILE, "cannot start the push channel: Too many open files: raise the limit of "
			  "open "
			  "files (LimitNOFILE)"},
		{-EOPNOTSUPP,
			"cannot start the push channel: libzmq was built without CURVE, which the "
			"configuration asks for: install one that has it"},
		{0, ""},
	};
	struct settings settings = {.push = two_endpoints, .push_count = 2};
	struct agent a = {.settings = &settings};
	struct subscriber *started = NULL;
	char why[FILE_WHY];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		why[0] = '\0';
		subscribe_error = rows[i].error;
		assert_int_equal(start_push(&a, &settings, &started, why), rows[i].error);
		assert_string_equal(why, rows[i].why);
	}
	subscribe_error = -EMFILE;
	settings.push_count = 0;
	assert_int_equal(start_push(&a, &settings, &started, why), 0);
}

static int control_error;
static unsigned notifiers;

static int played_control(
	const struct control_env *env, struct control **ret_control, char why[FILE_WHY])
{
	(void)env, (void)ret_control;
	snprintf(why, FILE_WHY, "no such socket");
	return control_error;
}

static struct systemd *played_systemd(const struct control_env *env)
{
	(void)env;
	notifiers++;
	return NULL;
}

/* A service manager must not be told that it is ready. */
static void start__where_a_channel_cannot_be__fails_and_says_why(void **state)
{
	static const struct {
		int control, push, r;
		unsigned notifiers;
		const char *line;
	} rows[] = {
		{-EADDRINUSE, 0, -EADDRINUSE, 0,
			"cannot serve the control API why=\"no such socket\"\n"},
		{0, -EMFILE, -EMFILE, 0,
			"cannot start why=\"cannot start the push channel: Too many open "
			"files: raise the limit of open files (LimitNOFILE)\"\n"},
		{0, 0, 0, 1, ""},
	};
	struct settings settings = {.push = two_endpoints, .push_count = 2};
	struct agent a = {.settings = &settings};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct captured errors = captured_begin(STDERR_FILENO);
		char text[512];
		int r;

		control_error = rows[i].control;
		subscribe_error = rows[i].push;
		notifiers = 0;
		r = start_channels(&a);
		captured_read(&errors, text, sizeof(text));
		captured_end(&errors);
		assert_int_equal(r, rows[i].r);
		assert_int_equal(notifiers, rows[i].notifiers);
		if (rows[i].line[0] ? !strstr(text, rows[i].line) : text[0])
			fail_msg("%zu: %s", i, text);
	}
}

static void thread_for_files__is_started_once_a_server_needs_it(void **state)
{
	struct settings_server web = {.kind = SETTINGS_HTTP}, files = {.kind = SETTINGS_FILE};
	struct settings_server *servers[] = {&web, &files};
	struct settings settings = {.servers = servers, .server_count = 1};
	struct agent a = {.loop = loop_new(&sys_real)};
	struct worker *first;

	(void)state;
	assert_int_equal(start_helpers(&a, &settings), 0);
	assert_null(a.files);
	assert_null(a.watcher);
	settings.server_count = 2;
	assert_int_equal(start_helpers(&a, &settings), 0);
	first = a.files;
	assert_non_null(first);
	assert_ptr_equal(a.env.pull.exchange.files, first);
	settings.server_count = 1; /* it is there, and may have work */
	assert_int_equal(start_helpers(&a, &settings), 0);
	assert_ptr_equal(a.files, first);
	settings.server_count = 2;
	assert_int_equal(start_helpers(&a, &settings), 0);
	assert_ptr_equal(a.files, first);
	assert_null(a.watcher);
	worker_stop(a.files, 10000);
	loop_free(a.loop);
}

static char servers_there[3], configs_there[2], ended[64];

static void note_end(const char *what, ptrdiff_t which)
{
	size_t len = strlen(ended);

	snprintf(ended + len, sizeof(ended) - len, " %s%d", what, (int)which);
}

static void played_upstream_free(struct upstream *s)
{
	note_end("server", (char *)s - servers_there);
}

static void played_config_free(struct config *c)
{
	note_end("config", (char *)c - configs_there);
}

static bool played_config_retire(struct config *c, void (*done)(void *arg), void *arg)
{
	(void)done, (void)arg;
	note_end("pull", (char *)c - configs_there);
	return true;
}

static void servers__that_are_not_kept__are_freed(void **state)
{
	bool kept[] = {false, true, false};
	const struct settings_diff diff = {.servers.kept = kept};
	const struct settings old = {.server_count = 3};
	struct agent a = {.servers = calloc(3, sizeof(*a.servers))};

	(void)state;
	ended[0] = '\0';
	trigger_queue_init(&a.queue, wake_loop, NULL);
	for (size_t i = 0; i < 3; i++)
		a.servers[i] = (struct upstream *)&servers_there[i];
	free_old(&a, &old, &diff, NULL);
	assert_string_equal(ended, " server0 server2");
}

static void **make_pointers(char *to, size_t count)
{
	void **list = calloc(count, sizeof(*list));

	for (size_t i = 0; i < count; i++)
		list[i] = to ? to + i : calloc(1, 4096);
	return list;
}

static void agent__that_stops__ends_all_it_has(void **state)
{
	struct agent a = {.lock = -1, .settings = calloc(1, sizeof(*a.settings))};

	(void)state;
	a.configs = (struct config **)make_pointers(configs_there, 2);
	a.servers = (struct upstream **)make_pointers(servers_there, 2);
	a.settings->config_count = a.settings->server_count = 2;
	a.settings->configs = (struct settings_config **)make_pointers(NULL, 2);
	a.settings->servers = (struct settings_server **)make_pointers(NULL, 2);
	ended[0] = '\0';
	agent_stop(&a);
	assert_string_equal(ended, " pull0 pull1 config0 config1 server0 server1");
}

int gethostname(char *name, size_t len)
{
	if (len <= HOST_NAME_MAX)
		return -1;
	memset(name, 'h', HOST_NAME_MAX);
	name[HOST_NAME_MAX] = '\0';
	return 0;
}

/* Hosts of one name would write over each other's receipts. */
static void host__with_the_longest_name__is_called_so(void **state)
{
	struct settings settings = {.config_count = 0};
	struct agent a = {.path = "/nowhere.yaml"};

	(void)state;
	name_host(&a, &settings);
	assert_int_equal(strlen(a.host), HOST_NAME_MAX);
	settings.report.host = (char[]){"h1"};
	name_host(&a, &settings);
	assert_string_equal(a.host, "h1");
}

static void hup__of_an_agent_that_runs_once__is_ignored(void **state)
{
	struct agent a = {.once = true, .path = "/nowhere.yaml", .loop = loop_new(&sys_real)};
	struct reconfigure *r = reconfigure_new(&a);
	struct captured errors = captured_begin(STDERR_FILENO);
	char text[512];

	(void)state;
	reconfigure_begin(r);
	captured_read(&errors, text, sizeof(text));
	captured_end(&errors);
	assert_non_null(
		strstr(text, "SIGHUP ignored: --once keeps the configuration it started with\n"));
	assert_null(strstr(text, "nowhere")); /* it is not read */
	assert_int_equal(a.configuration.rejections, 0);
	reconfigure_free(r);
	reconfigure_free(NULL);
	loop_free(a.loop);
}

static void reload__that_is_rejected_again__keeps_the_last_reason_alone(void **state)
{
	struct settings settings = {.config_count = 0};
	struct agent a = {
		.settings = &settings, .path = "/nowhere.yaml", .loop = loop_new(&sys_real)};
	struct reconfigure *r = reconfigure_new(&a);
	struct captured errors = captured_begin(STDERR_FILENO);
	long before;

	(void)state;
	reconfigure_begin(r);
	before = fault_memory.live;
	reconfigure_begin(r);
	captured_end(&errors);
	assert_int_equal(a.configuration.rejections, 2);
	assert_non_null(strstr(a.configuration.error, "/nowhere.yaml: cannot be read: "));
	assert_int_equal(fault_memory.live, before);
	reconfigure_free(r);
	loop_free(a.loop);
}

static char dir[SCRATCH_PATH];

/* Puts an agent together, and takes it apart. */
static bool open_agent(void)
{
	char state_dir[SCRATCH_PATH + 8], runtime_dir[SCRATCH_PATH + 8];
	struct settings settings = {.state_dir = state_dir, .runtime_dir = runtime_dir};
	struct agent a = {.path = "/nowhere.yaml", .lock = -1};
	int r;

	snprintf(state_dir, sizeof(state_dir), "%s/state", dir);
	snprintf(runtime_dir, sizeof(runtime_dir), "%s/run", dir);
	r = agent_open(&a, &settings);
	fault_memory.nth = 0;
	assert_true(r == 0 || r == -ENOMEM);
	if (r == 0)
		assert_true(a.env.starting && a.loop && a.transport && a.worker && a.check &&
			    a.backoffs && a.settings);
	agent_stop(&a);
	return r != 0;
}

static void agent__without_memory__does_not_begin_and_leaves_nothing(void **state)
{
	struct captured errors;
	unsigned before;

	(void)state;
	scratch_open(dir, scratch_memory());
	errors = captured_begin(STDERR_FILENO);
	assert_false(open_agent());
	before = scratch_descriptors();
	assert_true(fault_memory_each(open_agent, false) >= 5);
	assert_int_equal(scratch_descriptors(), before);
	captured_end(&errors);
	scratch_close(dir);
}

static bool no_inotify;

int inotify_init1(int flags)
{
	errno = EMFILE;
	return no_inotify ? -1 : (int)syscall(SYS_inotify_init1, flags);
}

static void agent__without_inotify__begins_and_says_so(void **state)
{
	struct captured errors;
	char text[1024];

	(void)state;
	scratch_open(dir, scratch_memory());
	errors = captured_begin(STDERR_FILENO);
	no_inotify = true;
	assert_false(open_agent());
	no_inotify = false;
	captured_read(&errors, text, sizeof(text));
	captured_end(&errors);
	scratch_close(dir);
	assert_non_null(strstr(text,
		"files cannot be watched: changes by others are seen at the interval "
		"why=\"this user has no inotify instances left, or this process no descriptors: "
		"raise fs.inotify.max_user_instances (sysctl), or LimitNOFILE\"\n"));
}

static bool new_reconfigure(void)
{
	struct agent a = {.path = "/nowhere.yaml"};
	struct reconfigure *r;

	a.loop = loop;
	r = reconfigure_new(&a);
	reconfigure_free(r);
	return !r;
}

static void reconfigure__without_memory__is_none(void **state)
{
	(void)state;
	loop = loop_new(&sys_real);
	assert_int_equal(fault_memory_each(new_reconfigure, false), 2);
	loop_free(loop);
}

/* The agent ends then: what it has begun is not taken back. */
static void apply__without_memory__says_so(void **state)
{
	(void)state;
	for (unsigned nth = 1; nth <= 3; nth++) {
		const struct settings_diff diff = {.push = false};
		struct settings settings = {.config_count = 0}, *new = calloc(1, sizeof(*new));
		struct agent a = {.settings = &settings, .lock = -1};

		fault_memory.seen = 0;
		fault_memory.nth = nth;
		assert_int_equal(agent_apply(&a, new, &diff), -ENOMEM);
		fault_memory.nth = 0;
		settings_free(new);
	}
}

static void start__without_memory__fails_until_there_is_enough(void **state)
{
	struct settings settings = {.config_count = 0};
	struct agent a = {.settings = &settings, .lock = -1, .once = true, .env.starting = true};
	struct captured errors = captured_begin(STDERR_FILENO);
	unsigned failures = 0, compared;
	struct settings_diff diff;
	int r = -ENOMEM;

	(void)state;
	trigger_queue_init(&a.queue, wake_loop, NULL);
	fault_memory.seen = 0;
	fault_memory.nth = FAULT_MEMORY_MOST;
	assert_int_equal(settings_diff(&settings, &settings, &diff), 0);
	fault_memory.nth = 0;
	compared = fault_memory.seen;
	settings_diff_fini(&diff);
	while (r) {
		struct settings *new = calloc(1, sizeof(*new));

		fault_memory.seen = 0;
		fault_memory.nth = failures + 1;
		r = agent_start(&a, new);
		fault_memory.nth = 0;
		assert_true(r == 0 || r == -ENOMEM);
		failures += r != 0;
	}
	captured_end(&errors);
	assert_int_equal(failures, compared + 3); /* as agent_apply() has */
	assert_false(a.env.starting);
	free(a.configs);
	free(a.servers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(receipt__of_each_config_that_changed__is_written_at_once),
		cmocka_unit_test(
			stop__waits_for_the_last_word_to_the_fleet_and_half_a_second_at_most),
		cmocka_unit_test(push__that_cannot_start__says_why),
		cmocka_unit_test(start__where_a_channel_cannot_be__fails_and_says_why),
		cmocka_unit_test(thread_for_files__is_started_once_a_server_needs_it),
		cmocka_unit_test(host__with_the_longest_name__is_called_so),
		cmocka_unit_test(hup__of_an_agent_that_runs_once__is_ignored),
		cmocka_unit_test(servers__that_are_not_kept__are_freed),
		cmocka_unit_test(agent__that_stops__ends_all_it_has),
		cmocka_unit_test(reload__that_is_rejected_again__keeps_the_last_reason_alone),
		cmocka_unit_test(apply__without_memory__says_so),
		cmocka_unit_test(start__without_memory__fails_until_there_is_enough),
		cmocka_unit_test(reconfigure__without_memory__is_none),
		cmocka_unit_test(agent__without_memory__does_not_begin_and_leaves_nothing),
		cmocka_unit_test(agent__without_inotify__begins_and_says_so),
	};

	return fault_memory_run(tests, 5);
}

/* The control API where memory runs out, and where an address cannot be had: each request is
 * answered once, whole or with an error. The server is played; the agent was put together and not
 * started. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "config/config.h"
#include "control/answers.h"
#include "control/api.h"
#include "control/socket.h"
#include "fleet/report.h"
#include "tests/unit/fixture/fault_memory.h"
#include "tests/unit/fixture/scratch.h"

static void played_changed(struct report *r, size_t config);

static int played_begin(struct answers *answers, const struct answer *what, struct httpd_request *r,
	struct config *c, char why[FILE_WHY]);

#define report_changed played_changed
#define answers_begin played_begin
#include "control/handler.c"
#include "control/post.c"
#undef answers_begin
#undef report_changed

#define TRIES 400

/* ---- a server that is played ---- */

struct httpd_request {
	enum httpd_method method;
	const char *path, *query[6]; /* names and values in turn */
	unsigned replies;
	int status;
	size_t len;
	char body[65536];
};

static struct httpd_request request;
static httpd_handler handle;
static void *handle_arg;

static int open_error;

int control_socket_open(struct loop *l, struct file_watch *d, const char *dir,
	httpd_handler handler, void *arg, struct control_socket **ret_socket, char why[FILE_WHY])
{
	(void)l, (void)d, (void)dir;
	if (open_error) {
		snprintf(why, FILE_WHY, "no such socket");
		return open_error;
	}
	handle = handler;
	handle_arg = arg;
	*ret_socket = (struct control_socket *)(void *)&request;
	return 0;
}

void control_socket_limit(struct control_socket *p, size_t clients, size_t queued)
{
	(void)p, (void)clients, (void)queued;
}

void control_socket_share(
	struct control_socket *p, void (*refused)(void *arg, const struct peer *peer), void *arg)
{
	(void)p, (void)refused, (void)arg;
}

void control_socket_operators(struct control_socket *p, gid_t operators)
{
	(void)p, (void)operators;
}

static const char *listened; /* the last address */
static int listen_error;

int control_socket_listen(struct control_socket *p, const char *address, char why[FILE_WHY])
{
	assert_ptr_equal(p, &request); /* one that was opened */
	listened = address;
	if (listen_error)
		snprintf(why, FILE_WHY, "no such address");
	return listen_error;
}

void control_socket_check(struct control_socket *p)
{
	(void)p;
}

void control_socket_close(struct control_socket *p)
{
	(void)p;
}

enum httpd_method httpd_method(const struct httpd_request *r)
{
	return r->method;
}

const char *httpd_path(const struct httpd_request *r)
{
	return r->path;
}

const char *httpd_query(const struct httpd_request *r, const char *name)
{
	for (size_t i = 0; r->query[i]; i += 2)
		if (strcmp(r->query[i], name) == 0)
			return r->query[i + 1];
	return NULL;
}

const char *httpd_query_name(const struct httpd_request *r, size_t i)
{
	for (size_t k = 0; k <= i; k++)
		if (!r->query[2 * k])
			return NULL;
	return r->query[2 * i];
}

const char *httpd_header(const struct httpd_request *r, const char *name)
{
	(void)r;
	return strcmp(name, "Host") == 0 ? "localhost" : NULL;
}

bool httpd_is_tcp(const struct httpd_request *r)
{
	(void)r;
	return false;
}

void httpd_peer(const struct httpd_request *r, struct peer *ret_peer)
{
	(void)r;
	*ret_peer = (struct peer){.local = true, .uid = 0, .right = RIGHT_OWN};
}

bool httpd_may_see_values(const struct httpd_request *r)
{
	(void)r;
	return true;
}

void httpd_on_gone(struct httpd_request *r, void (*gone)(void *arg), void *arg)
{
	(void)r, (void)gone, (void)arg;
}

void httpd_add_header(struct httpd_request *r, const char *name, const char *value)
{
	assert_non_null(r);
	assert_true(name[0] && value[0]);
}

void httpd_reply(
	struct httpd_request *r, int status, const char *content_type, const void *body, size_t len)
{
	assert_non_null(content_type);
	assert_true(len < sizeof(r->body));
	memcpy(r->body, body, len);
	r->body[len] = '\0';
	r->len = len;
	r->status = status;
	r->replies++;
}

/* ---- the agent ---- */

static struct agent {
	struct settings *settings;
	struct trigger_queue queue;
	struct config_env config_env;
	struct config *configs[2];
	struct upstream *servers[1];
	struct backoffs *backoffs;
	struct subscriber *push;
	struct report *report;
	struct control_counts counts;
	struct configuration_status configuration;
	struct control_env env;
	struct control *control;
} agent;

static void wake(void *arg)
{
	(void)arg;
}

static int set_up(void **state)
{
	static char file[] = "/proc/nowhere/pullet.yaml";
	struct agent *a = &agent;
	char why[FILE_WHY];

	(void)state;
	*a = (struct agent){.settings = scratch_settings("configs:\n  web: {url: "
							 "'http://127.0.0.1:1/w.yaml', file: "
							 "/proc/nowhere/w}\n  db: {url: "
							 "'http://127.0.0.1:1/d.yaml', file: "
							 "/proc/nowhere/d}\n")};
	trigger_queue_init(&a->queue, wake, NULL);
	a->config_env = (struct config_env){.sys = &sys_real,
		.loop = loop_new(&sys_real),
		.pull = {.servers = a->servers},
		.queue = &a->queue,
		.state_dir = "/proc/nowhere",
		.runtime_dir = "/proc/nowhere",
		.host = "here"};
	a->backoffs = backoffs_new(&sys_real);
	a->servers[0] = upstream_new(a->config_env.loop, a->backoffs, a->settings->servers[0]);
	for (size_t i = 0; i < 2; i++)
		a->configs[i] = config_new(&a->config_env, a->settings->configs[i]);
	assert_true(a->servers[0] && a->configs[0] && a->configs[1]);
	a->configuration = (struct configuration_status){.file = file};
	a->env = (struct control_env){.loop = a->config_env.loop,
		.settings = a->settings,
		.configs = a->configs,
		.servers = a->servers,
		.push = &a->push,
		.report = &a->report,
		.configuration = &a->configuration,
		.counts = &a->counts,
		.host = "here"};
	assert_int_equal(control_start(&a->env, &a->control, why), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	control_stop(agent.control);
	for (size_t i = 0; i < 2; i++)
		config_free(agent.configs[i]);
	upstream_free(agent.servers[0]);
	backoffs_free(agent.backoffs);
	loop_free(agent.config_env.loop);
	settings_free(agent.settings);
	return 0;
}

/* ---- requests ---- */

#define CONFIG "/v1/configs/web"

static const struct row {
	enum httpd_method method;
	const char *path, *query[6];
	int status;       /* with memory */
	const char *body; /* a part of it */
} rows[] = {
	{HTTPD_GET, "/v1/status", {NULL}, 200, "\"configs\":[{\"name\":\"web\","},
	{HTTPD_GET, CONFIG, {NULL}, 200, "{\"name\":\"web\",\"state\":\"waiting\","},
	{HTTPD_GET, CONFIG "/history", {NULL}, 200, "{\"name\":\"web\",\"versions\":[]}\n"},
	{HTTPD_GET, CONFIG "/diff", {NULL}, 409, "{\"error\":\"nothing is published yet\"}\n"},
	{HTTPD_GET, CONFIG "/explain", {NULL}, 200, "{\"name\":\"web\","},
	{HTTPD_GET, CONFIG "/explain", {"key", "a"}, 409,
		"{\"error\":\"nothing is published yet\"}\n"},
	{HTTPD_GET, CONFIG "/wait", {"generation", "x"}, 400, "generation takes a number"},
	{HTTPD_GET, "/v1/changes", {NULL}, 200, "\"publications\":[]"},
	{HTTPD_GET, "/metrics", {NULL}, 200, "\npullet_configs 2\n"},
	{HTTPD_GET, "/readyz", {"verbose", ""}, 503, "[-]web: nothing is published yet: "},
	{HTTPD_GET, "/nowhere", {NULL}, 404, "there is nothing at this path"},
	{HTTPD_POST, CONFIG "/pin", {"for_ms", "x"}, 400, "for_ms takes a number"},
	{HTTPD_POST, CONFIG "/rollback", {NULL}, 409, "\"error\":"},
	{HTTPD_POST, CONFIG "/override", {"key", "a", "value", "1"}, 409, "\"error\":"},
};

static void ask(const struct row *row)
{
	request = (struct httpd_request){.method = row->method, .path = row->path};
	memcpy(request.query, row->query, sizeof(request.query));
	fault_memory.paused = 0;
	handle(handle_arg, &request);
	fault_memory.paused = 1;
	if (request.replies != 1 || strlen(request.body) != request.len)
		fail_msg("%s: %u answers, %zu bytes of %s", row->path, request.replies, request.len,
			request.body);
}

static void request__with_memory__is_answered(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ask(&rows[i]);
		if (request.status != rows[i].status || !strstr(request.body, rows[i].body))
			fail_msg("%s: %d %s", rows[i].path, request.status, request.body);
	}
}

static void request__without_memory__is_answered_by_an_error(void **state)
{
	unsigned nth;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (nth = 1; nth < TRIES; nth++) {
			fault_memory.seen = 0;
			fault_memory.nth = nth;
			ask(&rows[i]);
			fault_memory.nth = 0;
			if (fault_memory.seen < nth)
				break;
			if (request.status == 503 && !request.len)
				continue; /* a probe asks for no more */
			if (request.status != rows[i].status && request.status != 500)
				fail_msg("%s: %d", rows[i].path, request.status);
			if (!strstr(request.body,
				    request.status == 500 ? "{\"error\":\"" : rows[i].body))
				fail_msg("%s: %d %s", rows[i].path, request.status, request.body);
		}
		assert_in_range(nth, 2, TRIES - 1); /* all were tried */
		assert_int_equal(request.status, rows[i].status);
	}
}

static char reported[16];

static void played_changed(struct report *r, size_t config)
{
	size_t len = strlen(reported);

	assert_ptr_equal(r, &agent);
	snprintf(reported + len, sizeof(reported) - len, " %zu", config);
}

/* A deployment waits for the fleet, and must not wait for a host that is suspended. */
static void decision__about_any_config__is_in_the_receipt_at_once(void **state)
{
	static const struct {
		const char *path, *reported;
		int status;
	} asked[] = {{"/v1/configs/db/suspend", " 1", 200}, {"/v1/configs/web/suspend", " 0", 200},
		{"/v1/configs/db/resume", " 1", 200}, {"/v1/configs/db/resume", "", 409}};

	char dir[SCRATCH_PATH];

	(void)state;
	scratch_open(dir, scratch_memory());
	agent.config_env.state_dir = dir;
	for (size_t i = 0; i < 2; i++)
		config_start(agent.configs[i], false);
	agent.report = (struct report *)&agent;
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		reported[0] = '\0';
		ask(&(struct row){HTTPD_POST, asked[i].path, {NULL}, asked[i].status, ""});
		if (strcmp(reported, asked[i].reported) != 0 || request.status != asked[i].status)
			fail_msg("%s: %d %s, reported%s", asked[i].path, request.status,
				request.body, reported);
	}
	scratch_close(dir);
}

static int room_error;

static int played_begin(struct answers *answers, const struct answer *what, struct httpd_request *r,
	struct config *c, char why[FILE_WHY])
{
	if (!room_error)
		return answers_begin(answers, what, r, c, why);
	snprintf(why, FILE_WHY, "there is no room");
	return room_error;
}

/* Who gets a 503 tries again. */
static void question__for_which_there_is_no_room__is_answered_503_and_counted(void **state)
{
	const struct row question = {HTTPD_GET, CONFIG "/explain", {"key", "a"}, 503, ""};

	(void)state;
	room_error = -EBUSY;
	ask(&question);
	assert_int_equal(request.status, 503);
	assert_string_equal(request.body, "{\"error\":\"there is no room\"}\n");
	assert_int_equal(agent.counts.busy, 1);
	room_error = -ENOMEM;
	ask(&question);
	assert_int_equal(request.status, 500);
	assert_int_equal(agent.counts.busy, 1);
	room_error = 0;
}

static void address__of_a_reload__is_listened_at_or_says_why(void **state)
{
	char why[FILE_WHY] = "";

	(void)state;
	assert_int_equal(control_listen(agent.control, "127.0.0.1:1", why), 0);
	assert_string_equal(listened, "127.0.0.1:1");
	assert_string_equal(why, "");
	listen_error = -EADDRNOTAVAIL;
	assert_int_equal(control_listen(agent.control, "192.0.2.1:1", why), -EADDRNOTAVAIL);
	assert_string_equal(why, "no such address");
	listen_error = 0;
}

static void start__without_a_socket_or_an_address__says_why(void **state)
{
	struct control *c = NULL;
	char why[FILE_WHY];

	(void)state;
	open_error = -EADDRINUSE;
	assert_int_equal(control_start(&agent.env, &c, why), -EADDRINUSE);
	assert_string_equal(why, "no such socket");
	assert_null(c);
	open_error = 0;
	listen_error = -EADDRNOTAVAIL;
	assert_int_equal(control_start(&agent.env, &c, why), -EADDRNOTAVAIL);
	assert_string_equal(why, "no such address");
	assert_null(c);
	listen_error = 0;
}

static void start__without_memory__says_so(void **state)
{
	struct control *c = NULL;
	char why[FILE_WHY];
	unsigned nth;
	int r = -ENOMEM;

	(void)state;
	for (nth = 1; r && nth < TRIES; nth++) {
		fault_memory.seen = 0;
		fault_memory.nth = nth;
		fault_memory.paused = 0;
		r = control_start(&agent.env, &c, why);
		fault_memory.paused = 1;
		fault_memory.nth = 0;
		if (r) {
			assert_int_equal(r, -ENOMEM);
			assert_string_equal(why, "out of memory");
			assert_null(c);
		}
	}
	assert_int_equal(nth, 4); /* after two that failed */
	control_stop(c);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(request__with_memory__is_answered),
		CASE(decision__about_any_config__is_in_the_receipt_at_once),
		CASE(question__for_which_there_is_no_room__is_answered_503_and_counted),
		CASE(address__of_a_reload__is_listened_at_or_says_why),
		CASE(start__without_a_socket_or_an_address__says_why),
		CASE(request__without_memory__is_answered_by_an_error),
		CASE(start__without_memory__says_so),
	};

	log_setup(LOG_LEVEL_ERR, LOG_FORMAT_TEXT);
	fault_memory.paused = 1;
	return fault_memory_run(tests, 2);
}

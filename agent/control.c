/*
 * The control API: a table of paths, each a few lines. What is shown is put together in status.c
 * and inspect.c, what is done is done in config_operate.c.
 *
 * Surprising: a request that waits stays open until the run, or the change, that it caused has
 * ended; the client may go away before that, and then only the waiting ends.
 */
#include "control.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "changes.h"
#include "host.h"
#include "httpd.h"
#include "inspect.h"
#include "jsontext.h"
#include "log.h"
#include "metrics.h"
#include "page/page.h"
#include "places.h"
#include "settings_value.h"
#include "status.h"

#define MAX_ANSWER (64u << 20)
#define MAX_WAIT_MS 3600000u
#define WAIT_MS 60000u

struct waiting { /* one client that waits for a run or a change */
	struct control *control;
	struct httpd_request *request; /* NULL = free */
	struct config *config;
	struct config_waiter waiter;
	struct loop_timer limit;
	uint64_t limit_ms;
};

struct control {
	const struct control_env *env; /* as it is now: it may change between two calls */
	struct places *places;
	struct changes *changes;
	struct waiting waiting[CONTROL_MAX_WAITING];
};

static void reply(struct httpd_request *r, int status, struct buffer *b)
{
	static const char cut[] = "{\"error\":\"the answer is too large, or memory is short\"}\n";

	if (buffer_append(b, "\n", 1)) /* or what was appended before was cut */
		httpd_reply(r, 500, "application/json", cut, sizeof(cut) - 1);
	else
		httpd_reply(r, status, "application/json", b->data, b->len);
	buffer_fini(b);
}

static void reply_error(struct httpd_request *r, int status, const char *sentence)
{
	struct buffer b;

	buffer_init(&b, 4096);
	buffer_append(&b, "{", 1);
	jsontext_member(&b, "error", sentence);
	buffer_append(&b, "}", 1);
	reply(r, status, &b);
}

/* What a sentence with this -errno is in HTTP. */
static void reply_errno(struct httpd_request *r, int error, const char *sentence)
{
	static const struct {
		int error, status;
	} table[] = {{-EINVAL, 400}, {-ENOENT, 404}, {-ENOMEM, 500}, {-EMSGSIZE, 500}};
	int status = 409;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].error == error)
			status = table[i].status;
	reply_error(r, status, sentence);
}

static struct config *find(struct control *c, const char *name)
{
	for (size_t i = 0; i < c->env->settings->config_count; i++)
		if (strcmp(config_name(c->env->configs[i]), name) == 0)
			return c->env->configs[i];
	return NULL;
}

/* ---- query ---- */

static bool is_set(const struct httpd_request *r, const char *name, bool fallback)
{
	const char *text = httpd_query(r, name);

	return text ? strcmp(text, "0") != 0 : fallback;
}

static const char *text_of(const struct httpd_request *r, const char *name)
{
	const char *text = httpd_query(r, name);

	return text ? text : "";
}

/* A number of the query; not there: the fallback. False, and answered: it is none. */
static bool number_of(
	struct httpd_request *r, const char *name, uint64_t fallback, uint64_t *ret_number)
{
	const char *text = httpd_query(r, name);
	char why[64];

	*ret_number = fallback;
	if (!text)
		return true;
	errno = 0;
	*ret_number = strtoull(text, NULL, 10);
	if (text[0] && strspn(text, "0123456789") == strlen(text) && errno == 0)
		return true;
	snprintf(why, sizeof(why), "%s takes a number", name);
	reply_error(r, 400, why);
	return false;
}

/* ---- GET ---- */

static void get_status(struct control *c, struct httpd_request *r, const char *name)
{
	struct buffer b;
	int e;

	(void)name;
	buffer_init(&b, MAX_ANSWER);
	e = status_agent(c->env, &b);
	if (e) {
		buffer_fini(&b);
		reply_error(r, 500, strerror(-e));
		return;
	}
	reply(r, 200, &b);
}

static void get_config(struct control *c, struct httpd_request *r, const char *name)
{
	struct buffer b;

	buffer_init(&b, MAX_ANSWER);
	status_config(find(c, name), &b);
	reply(r, 200, &b);
}

/* Answers with what was put into b, or why not. */
static void reply_view(struct httpd_request *r, int error, struct buffer *b, const char *why)
{
	if (error == 0) {
		reply(r, 200, b);
		return;
	}
	buffer_fini(b);
	reply_errno(r, error, why);
}

static void get_history(struct control *c, struct httpd_request *r, const char *name)
{
	char why[FILE_WHY];
	struct buffer b;

	buffer_init(&b, MAX_ANSWER);
	reply_view(r, inspect_history(find(c, name), &b, why), &b, why);
}

static void get_diff(struct control *c, struct httpd_request *r, const char *name)
{
	char why[FILE_WHY];
	uint64_t from, to;
	struct buffer b;

	if (!number_of(r, "from", 0, &from) || !number_of(r, "to", 0, &to))
		return;
	buffer_init(&b, MAX_ANSWER);
	reply_view(r, inspect_diff(find(c, name), from, to, &b, why), &b, why);
}

static void get_explain(struct control *c, struct httpd_request *r, const char *name)
{
	char why[FILE_WHY];
	struct buffer b;

	buffer_init(&b, MAX_ANSWER);
	reply_view(r, inspect_explain(find(c, name), text_of(r, "key"), &b, why), &b, why);
}

static void get_changes(struct control *c, struct httpd_request *r, const char *name)
{
	const struct control_env *env = c->env;
	struct buffer b;
	int e;

	(void)name;
	buffer_init(&b, MAX_ANSWER);
	e = changes_write(
		c->changes, env->configs, env->settings->config_count, !httpd_is_tcp(r), &b);
	reply_view(r, e, &b, strerror(-e));
}

/* ---- the page ---- */

static void get_page(struct control *c, struct httpd_request *r, const char *name)
{
	const struct page *p = page_find(httpd_path(r));

	(void)c, (void)name;
	httpd_reply(r, 200, p->type, p->data, (size_t)(p->end - p->data));
}

/* ---- health ---- */

/* The loop turns: it answers. */
static void get_livez(struct control *c, struct httpd_request *r, const char *name)
{
	(void)c, (void)name;
	httpd_reply(r, 200, "text/plain; charset=utf-8", "ok\n", 3);
}

/* Every config has a published version, from the network or from the last known good. */
static void get_readyz(struct control *c, struct httpd_request *r, const char *name)
{
	struct buffer b;
	bool ready;

	(void)name;
	buffer_init(&b, MAX_ANSWER);
	ready = status_ready(c->env, httpd_query(r, "verbose") != NULL, &b);
	httpd_reply(r, ready ? 200 : 503, "text/plain; charset=utf-8", b.data ? b.data : "", b.len);
	buffer_fini(&b);
}

/* What a scraper reads: the old text unless it asks for OpenMetrics. */
static void get_metrics(struct control *c, struct httpd_request *r, const char *name)
{
	const char *accept = httpd_header(r, "Accept");
	bool open = accept && strstr(accept, "application/openmetrics-text");
	struct buffer b;
	int e;

	(void)name;
	buffer_init(&b, MAX_ANSWER);
	e = metrics_write(c->env, open, &b);
	if (e)
		reply_error(r, 500, strerror(-e));
	else
		httpd_reply(r, 200,
			open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
			     : "text/plain; version=0.0.4; charset=utf-8",
			b.data, b.len);
	buffer_fini(&b);
}

/* ---- clients that wait ---- */

static void waiting_end(struct waiting *w)
{
	loop_timer_cancel(w->control->env->loop, &w->limit);
	config_wait_cancel(w->config, &w->waiter);
	w->request = NULL;
}

static void run_ended(void *arg, struct config *config)
{
	struct waiting *w = arg;
	struct httpd_request *r = w->request;
	struct buffer b;

	waiting_end(w);
	buffer_init(&b, 8192);
	status_outcome(config, &b);
	reply(r, 200, &b);
}

/* What stands now, as the answer to a change. */
static void reply_standing(struct httpd_request *r, int status, struct config *config)
{
	struct config_status s;
	struct buffer b;

	config_status(config, &s);
	buffer_init(&b, 1u << 20);
	buffer_append_string(&b, "{\"ok\":true");
	jsontext_member(&b, "name", config_name(config));
	jsontext_number(&b, "generation", s.version->generation);
	jsontext_member(&b, "origin", s.version->origin);
	buffer_append(&b, "}", 1);
	reply(r, status, &b);
}

static void change_ended(void *arg, struct config *config)
{
	struct waiting *w = arg;
	struct httpd_request *r = w->request;
	const char *error = config_change_error(config);

	waiting_end(w);
	if (error)
		reply_error(r, 409, error);
	else
		reply_standing(r, 200, config);
}

static void wait_passed(void *arg)
{
	struct waiting *w = arg;
	struct httpd_request *r = w->request;

	waiting_end(w);
	reply_error(r, 504, "it has not ended within the time given, and goes on");
}

/* The same for a version, where nothing goes on. */
static void not_come(void *arg)
{
	struct waiting *w = arg;
	struct httpd_request *r = w->request;
	const char *version = text_of(r, "version"), *generation = text_of(r, "generation");
	struct config_status s;
	char why[256], span[24], now[64] = "nothing is published yet";

	config_status(w->config, &s);
	if (s.version->generation)
		snprintf(now, sizeof(now), "generation %" PRIu64 " stands", s.version->generation);
	snprintf(why, sizeof(why), "%s %.64s did not come within %s; %s",
		version[0] ? "version" : "generation", version[0] ? version : generation,
		settings_duration_text(w->limit_ms, span), now);
	waiting_end(w);
	reply_error(r, 504, why);
}

static void client_gone(void *arg)
{
	waiting_end(arg);
}

/* From now on the client waits; how, the caller says with config_wait(). NULL, and answered: it
 * cannot. */
static struct waiting *waiting_begin(struct control *c, struct httpd_request *r,
	struct config *config, void (*ended)(void *arg, struct config *c),
	void (*passed)(void *arg))
{
	struct waiting *w = NULL;
	uint64_t timeout_ms;

	if (!number_of(r, "timeout_ms", WAIT_MS, &timeout_ms))
		return NULL;
	for (size_t i = 0; i < CONTROL_MAX_WAITING && !w; i++)
		if (!c->waiting[i].request)
			w = &c->waiting[i];
	if (!w) {
		reply_error(r, 503, "too many clients wait already: try again, or without waiting");
		return NULL;
	}
	if (timeout_ms > MAX_WAIT_MS)
		timeout_ms = MAX_WAIT_MS;
	*w = (struct waiting){.control = c, .request = r, .config = config};
	w->waiter.ended = ended;
	w->waiter.arg = w;
	w->limit_ms = timeout_ms;
	loop_timer_init(&w->limit, passed, w);
	loop_timer_set(c->env->loop, &w->limit, loop_now_ms(c->env->loop) + timeout_ms);
	httpd_on_gone(r, client_gone, w);
	return w;
}

/* ---- waiting for a version ---- */

static bool stands(const struct waiting *w)
{
	uint64_t generation = strtoull(text_of(w->request, "generation"), NULL, 10);

	return config_stands(w->config, generation, text_of(w->request, "version"));
}

static void look_again(void *arg, struct config *config)
{
	struct waiting *w = arg;
	struct httpd_request *r = w->request;

	if (!stands(w)) {
		config_wait_any(config, &w->waiter);
		return;
	}
	waiting_end(w);
	reply_standing(r, 200, config);
}

static void get_wait(struct control *c, struct httpd_request *r, const char *name)
{
	struct config *config = find(c, name);
	struct waiting *w;
	uint64_t generation;

	if (!number_of(r, "generation", 0, &generation))
		return;
	if (generation == 0 && !text_of(r, "version")[0]) {
		reply_error(r, 400, "generation=N or version=V is missing");
		return;
	}
	w = waiting_begin(c, r, config, look_again, not_come);
	if (w)
		look_again(w, config);
}

/* ---- POST ---- */

#define WHO 32

/* Who asks, for the log and the history. */
static const char *who(const struct httpd_request *r, char text[WHO])
{
	uid_t uid = 0;
	gid_t gid;

	snprintf(text, WHO, "somebody");
	if (httpd_peer(r, &uid, &gid) == 0)
		snprintf(text, WHO, "uid %u", (unsigned)uid);
	return text;
}

static void post_refresh(struct control *c, struct httpd_request *r, const char *name)
{
	struct config *config = find(c, name);
	bool forced = is_set(r, "force", false);
	struct waiting *w;
	char by[WHO];

	if (forced)
		log_info("a forced pull was asked for", "config", name, "by", who(r, by));
	if (is_set(r, "wait", false)) {
		w = waiting_begin(c, r, config, run_ended, wait_passed);
		if (!w)
			return;
		config_wait(config, &w->waiter);
	} else {
		httpd_reply(r, 202, "application/json", "{\"fired\":true}\n", 15);
	}
	config_refresh(config, forced);
}

static int roll_back(
	struct config *config, struct httpd_request *r, uint64_t generation, char why[FILE_WHY])
{
	char by[WHO];

	return config_roll_back(config, generation, who(r, by), text_of(r, "reason"), why);
}

static int override(
	struct config *config, struct httpd_request *r, uint64_t for_ms, char why[FILE_WHY])
{
	const char *key = text_of(r, "key"), *value = httpd_query(r, "value");
	char by[WHO];

	if (is_set(r, "remove", false))
		return config_drop_override(config, key, who(r, by), why);
	if (value)
		return config_override(
			config, key, value, for_ms, who(r, by), text_of(r, "reason"), why);
	snprintf(why, FILE_WHY, "an override needs a value, or remove=1");
	return -EINVAL;
}

/* Asks for a change that takes one number, and answers when it has ended. */
static void change(struct control *c, struct httpd_request *r, const char *name, const char *number,
	int (*ask)(struct config *config, struct httpd_request *r, uint64_t number,
		char why[FILE_WHY]))
{
	struct config *config = find(c, name);
	bool waits = is_set(r, "wait", true);
	struct waiting *w = NULL;
	char why[FILE_WHY];
	uint64_t n;
	int e;

	if (!number_of(r, number, 0, &n))
		return;
	if (waits) {
		w = waiting_begin(c, r, config, change_ended, wait_passed);
		if (!w)
			return;
		config_wait_change(config, &w->waiter);
	}
	e = ask(config, r, n, why); /* which may have answered, and freed r */
	if (e && w)
		waiting_end(w);
	if (e)
		reply_errno(r, e, why);
	else if (!waits && config_change_error(config)) /* already */
		reply_error(r, 409, config_change_error(config));
	else if (!waits)
		reply_standing(r, 202, config);
}

static void post_rollback(struct control *c, struct httpd_request *r, const char *name)
{
	change(c, r, name, "generation", roll_back);
}

static void post_override(struct control *c, struct httpd_request *r, const char *name)
{
	change(c, r, name, "for_ms", override);
}

static void post_pin(struct control *c, struct httpd_request *r, const char *name)
{
	char by[WHO], why[FILE_WHY];
	uint64_t for_ms;
	int e;

	if (!number_of(r, "for_ms", 0, &for_ms))
		return;
	e = config_pin(find(c, name), for_ms, who(r, by), text_of(r, "reason"), why);
	if (e)
		reply_errno(r, e, why);
	else
		reply_standing(r, 200, find(c, name));
}

static void post_unpin(struct control *c, struct httpd_request *r, const char *name)
{
	char by[WHO], why[FILE_WHY];
	int e = config_unpin(find(c, name), who(r, by), why);

	if (e)
		reply_errno(r, e, why);
	else
		reply_standing(r, 200, find(c, name));
}

/* ---- the table ---- */

#define CONFIGS "/v1/configs/"
#define ANY                                                                                        \
	{                                                                                          \
		"*"                                                                                \
	} /* what a browser, a probe or a scraper adds is nothing to us */

static const struct route {
	enum httpd_method method;
	const char *before, *after; /* the config's name stands between; after NULL: no name */
	void (*handle)(struct control *c, struct httpd_request *r, const char *name);
	bool values;         /* shows some, or waits: not on the TCP listener */
	const char *keys[8]; /* of the query */
} routes[] = {
	{HTTPD_GET, "/", NULL, get_page, false, ANY},
	{HTTPD_GET, "/page.css", NULL, get_page, false, ANY},
	{HTTPD_GET, "/page.js", NULL, get_page, false, ANY},
	{HTTPD_GET, "/v1/status", NULL, get_status, false, {NULL}},
	{HTTPD_GET, "/v1/changes", NULL, get_changes, false, {NULL}},
	{HTTPD_GET, "/livez", NULL, get_livez, false, ANY},
	{HTTPD_GET, "/healthz", NULL, get_livez, false, ANY},
	{HTTPD_GET, "/metrics", NULL, get_metrics, false, ANY},
	{HTTPD_GET, "/readyz", NULL, get_readyz, false, ANY},
	{HTTPD_GET, CONFIGS, "", get_config, false, {NULL}},
	{HTTPD_GET, CONFIGS, "/history", get_history, false, {NULL}},
	{HTTPD_GET, CONFIGS, "/wait", get_wait, true, {"generation", "version", "timeout_ms"}},
	{HTTPD_GET, CONFIGS, "/diff", get_diff, true, {"from", "to"}},
	{HTTPD_GET, CONFIGS, "/explain", get_explain, true, {"key"}},
	{HTTPD_POST, CONFIGS, "/refresh", post_refresh, false, {"force", "wait", "timeout_ms"}},
	{HTTPD_POST, CONFIGS, "/rollback", post_rollback, false,
		{"generation", "reason", "wait", "timeout_ms"}},
	{HTTPD_POST, CONFIGS, "/pin", post_pin, false, {"for_ms", "reason"}},
	{HTTPD_POST, CONFIGS, "/unpin", post_unpin, false, {NULL}},
	{HTTPD_POST, CONFIGS, "/override", post_override, false,
		{"key", "value", "for_ms", "remove", "reason", "wait", "timeout_ms"}},
};

/* Does path fit the route? The config's name, if the route has one, is copied. */
static bool matches(const struct route *route, const char *path, char name[128])
{
	size_t before = strlen(route->before), len = strlen(path), after;

	if (!route->after)
		return strcmp(path, route->before) == 0;
	after = strlen(route->after);
	if (len <= before + after || len - before - after >= 128 ||
		strncmp(path, route->before, before) != 0 ||
		strcmp(path + len - after, route->after) != 0)
		return false;
	memcpy(name, path + before, len - before - after);
	name[len - before - after] = '\0';
	return !strchr(name, '/');
}

static bool takes(const struct route *route, const char *key)
{
	for (size_t i = 0; route->keys[i]; i++)
		if (strcmp(route->keys[i], key) == 0)
			return true;
	return false;
}

/* False, and answered: a key that the route does not have, or a switch that is neither on nor off.
 */
static bool check_query(const struct route *route, struct httpd_request *r)
{
	static const char *const switches[] = {"force", "wait", "remove"};
	const char *key;
	char why[128];

	for (size_t i = 0; !takes(route, "*") && (key = httpd_query_name(r, i)); i++)
		if (!takes(route, key)) {
			snprintf(why, sizeof(why), "no parameter here is called %.64s", key);
			reply_error(r, 400, why);
			return false;
		}
	for (size_t i = 0; i < sizeof(switches) / sizeof(switches[0]); i++) {
		const char *value = httpd_query(r, switches[i]);

		if (!value || strcmp(value, "0") == 0 || strcmp(value, "1") == 0)
			continue;
		snprintf(why, sizeof(why), "%s takes 0 or 1", switches[i]);
		reply_error(r, 400, why);
		return false;
	}
	return true;
}

/* A browser that opens a page of somebody else's sends these; ours changes nothing. */
static bool is_browser(const struct httpd_request *r)
{
	return httpd_header(r, "Origin") || httpd_header(r, "Sec-Fetch-Site");
}

static bool may_change(const struct httpd_request *r)
{
	uid_t uid;
	gid_t gid;

	return httpd_peer(r, &uid, &gid) == 0 && (uid == 0 || uid == geteuid() || gid == getegid());
}

/* No browser is to keep, guess at, frame or pass on anything. */
static void add_headers(struct httpd_request *r)
{
	static const struct {
		const char *name, *value;
	} headers[] = {
		{"Cache-Control", "no-store"},
		{"Content-Security-Policy", PAGE_POLICY},
		{"Cross-Origin-Resource-Policy", "same-origin"},
		{"Referrer-Policy", "no-referrer"},
		{"X-Content-Type-Options", "nosniff"},
		{"X-Frame-Options", "DENY"},
	};

	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
		httpd_add_header(r, headers[i].name, headers[i].value);
}

static bool is_ours(const struct control *c, const struct httpd_request *r)
{
	char machine[HOST_NAME_MAX + 1] = "";

	if (gethostname(machine, sizeof(machine) - 1))
		machine[0] = '\0';
	return host_is_ours(httpd_header(r, "Host"), machine, c->env->settings->listen_names);
}

static void dispatch(void *arg, struct httpd_request *r)
{
	enum httpd_method method = httpd_method(r);
	bool read_only = httpd_is_tcp(r);
	const char *allow = NULL;
	struct control *c = arg;
	char name[128] = "";

	add_headers(r);
	if (!is_ours(c, r)) {
		reply_error(r, 421,
			"this host does not have the name that was asked for: use its address, or "
			"list the name in agent.listen_names");
		return;
	}
	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
		const struct route *route = &routes[i];

		if (!matches(route, httpd_path(r), name))
			continue;
		allow = route->method == HTTPD_GET ? "GET, HEAD" : "POST";
		if (route->method != (method == HTTPD_HEAD ? HTTPD_GET : method))
			continue;
		if (method == HTTPD_POST && read_only)
			reply_error(r, 403, "this listener is read-only: use the control socket");
		else if (method == HTTPD_POST && is_browser(r))
			reply_error(r, 403, "a browser may only look: use the command line");
		else if (method == HTTPD_POST && !may_change(r))
			reply_error(
				r, 403, "only root, the agent's user and its group may do this");
		else if (route->values && read_only)
			reply_error(r, 403, "this is on the control socket only: use that one");
		else if (route->after && !find(c, name))
			reply_error(r, 404,
				"there is no config of that name: `pullet status` lists them");
		else if (check_query(route, r))
			route->handle(c, r, name);
		return;
	}
	if (!allow) {
		reply_error(r, 404, "there is nothing at this path: see pulletd(8)");
		return;
	}
	httpd_add_header(r, "Allow", allow);
	reply_error(r, 405, "this path does not take that method");
}

int control_listen(struct control *c, const char *address, char why[FILE_WHY])
{
	return places_listen(c->places, address, why);
}

void control_look(struct control *c)
{
	places_look(c->places);
}

int control_start(const struct control_env *env, struct control **ret_control, char why[FILE_WHY])
{
	struct control *c = calloc(1, sizeof(*c));
	int r = -ENOMEM;

	snprintf(why, FILE_WHY, "out of memory");
	if (!c)
		return r;
	c->env = env;
	c->changes = changes_new();
	if (!c->changes)
		goto fail;
	r = places_open(
		env->loop, env->drift, env->settings->runtime_dir, dispatch, c, &c->places, why);
	if (r)
		goto fail;
	places_limit(c->places, 2 * CONTROL_MAX_WAITING, HTTPD_QUEUED);
	r = places_listen(c->places, env->settings->listen, why);
	if (r)
		goto fail;
	*ret_control = c;
	return 0;
fail:
	control_stop(c);
	return r;
}

void control_forget(struct control *c, const struct config *config, bool gone)
{
	for (size_t i = 0; i < CONTROL_MAX_WAITING; i++) {
		struct waiting *w = &c->waiting[i];
		struct httpd_request *r = w->request;

		if (!r || w->config != config)
			continue;
		waiting_end(w);
		reply_error(r, gone ? 404 : 409,
			gone ? "the config was taken out of the configuration"
			     : "the config was changed by a new configuration: it has begun anew");
	}
	changes_forget(c->changes, config);
}

void control_stop(struct control *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < CONTROL_MAX_WAITING; i++)
		if (c->waiting[i].request)
			waiting_end(&c->waiting[i]);
	places_close(c->places);
	changes_free(c->changes);
	free(c);
}

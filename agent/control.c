/*
 * The control API: a table of paths, each a few lines. What is shown is put together in status.c.
 *
 * Surprising: a refresh that waits keeps its request open until the run it caused has ended; the
 * client may go away before that, and then only the waiting ends, not the run.
 */
#include "control.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "httpd.h"
#include "jsontext.h"
#include "log.h"
#include "status.h"

#define MAX_ANSWER (64u << 20)
#define MAX_WAIT_MS 3600000u

struct waiting { /* one client that waits for a run */
	struct control *control;
	struct httpd_request *request; /* NULL = free */
	struct config *config;
	struct config_waiter waiter;
	struct loop_timer limit;
};

struct control {
	struct control_env env;
	struct httpd *unix_httpd, *tcp_httpd;
	struct waiting waiting[CONTROL_MAX_WAITING];
};

static void reply(struct httpd_request *r, int status, struct buffer *b)
{
	buffer_append(b, "\n", 1);
	httpd_reply(r, status, "application/json", b->data ? b->data : "", b->len);
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

static struct config *find(struct control *c, const char *name)
{
	for (size_t i = 0; i < c->env.settings->config_count; i++)
		if (strcmp(config_name(c->env.configs[i]), name) == 0)
			return c->env.configs[i];
	return NULL;
}

/* ---- GET ---- */

static void get_status(struct control *c, struct httpd_request *r, const char *name)
{
	struct buffer b;
	int e;

	(void)name;
	buffer_init(&b, MAX_ANSWER);
	e = status_agent(&c->env, &b);
	if (e) {
		buffer_fini(&b);
		reply_error(r, 500, strerror(-e));
		return;
	}
	reply(r, 200, &b);
}

static void get_config(struct control *c, struct httpd_request *r, const char *name)
{
	struct config *config = find(c, name);
	struct buffer b;

	if (!config) {
		reply_error(r, 404, "there is no config of that name: `pullet status` lists them");
		return;
	}
	buffer_init(&b, MAX_ANSWER);
	status_config(config, &b);
	reply(r, 200, &b);
}

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
	ready = status_ready(&c->env, &b);
	httpd_reply(r, ready ? 200 : 503, "text/plain; charset=utf-8", b.data ? b.data : "", b.len);
	buffer_fini(&b);
}

/* ---- POST refresh ---- */

static void waiting_end(struct waiting *w)
{
	loop_timer_cancel(w->control->env.loop, &w->limit);
	config_wait_cancel(w->config, &w->waiter);
	w->request = NULL;
}

static void waited(void *arg, struct config *config)
{
	struct waiting *w = arg;
	struct httpd_request *r = w->request;
	struct buffer b;

	waiting_end(w);
	buffer_init(&b, 8192);
	status_outcome(config, &b);
	reply(r, 200, &b);
}

static void wait_passed(void *arg)
{
	struct waiting *w = arg;
	struct httpd_request *r = w->request;

	waiting_end(w);
	reply_error(r, 504, "the run has not ended within the time given");
}

static void client_gone(void *arg)
{
	waiting_end(arg);
}

static void wait_for_run(struct control *c, struct httpd_request *r, struct config *config)
{
	const char *text = httpd_query(r, "timeout_ms");
	unsigned long timeout_ms = text ? strtoul(text, NULL, 10) : 60000;
	struct waiting *w = NULL;

	for (size_t i = 0; i < CONTROL_MAX_WAITING && !w; i++)
		if (!c->waiting[i].request)
			w = &c->waiting[i];
	if (!w) {
		reply_error(r, 503, "too many clients wait already: try again, or without waiting");
		return;
	}
	if (timeout_ms > MAX_WAIT_MS)
		timeout_ms = MAX_WAIT_MS;
	*w = (struct waiting){.control = c, .request = r, .config = config};
	w->waiter.ended = waited;
	w->waiter.arg = w;
	loop_timer_init(&w->limit, wait_passed, w);
	loop_timer_set(c->env.loop, &w->limit, loop_now_ms(c->env.loop) + timeout_ms);
	httpd_on_gone(r, client_gone, w);
	config_wait(config, &w->waiter);
}

static void post_refresh(struct control *c, struct httpd_request *r, const char *name)
{
	struct config *config = find(c, name);
	const char *wait = httpd_query(r, "wait");

	if (!config) {
		reply_error(r, 404, "there is no config of that name: `pullet status` lists them");
		return;
	}
	if (wait && strcmp(wait, "0") != 0)
		wait_for_run(c, r, config);
	else
		httpd_reply(r, 202, "application/json", "{\"fired\":true}\n", 15);
	config_refresh(config);
}

/* ---- the table ---- */

static const struct route {
	enum httpd_method method;
	const char *before, *after; /* the config's name stands between; after NULL: no name */
	void (*handle)(struct control *c, struct httpd_request *r, const char *name);
} routes[] = {
	{HTTPD_GET, "/v1/status", NULL, get_status},
	{HTTPD_GET, "/livez", NULL, get_livez},
	{HTTPD_GET, "/readyz", NULL, get_readyz},
	{HTTPD_GET, "/v1/configs/", "", get_config},
	{HTTPD_POST, "/v1/configs/", "/refresh", post_refresh},
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

static bool may_change(const struct httpd_request *r)
{
	uid_t uid;
	gid_t gid;

	return httpd_peer(r, &uid, &gid) == 0 && (uid == 0 || uid == geteuid() || gid == getegid());
}

static void dispatch(struct control *c, struct httpd_request *r, bool read_only)
{
	enum httpd_method method = httpd_method(r);
	bool known = false;
	char name[128] = "";

	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
		const struct route *route = &routes[i];

		if (!matches(route, httpd_path(r), name))
			continue;
		known = true;
		if (route->method != (method == HTTPD_HEAD ? HTTPD_GET : method))
			continue;
		if (method == HTTPD_POST && read_only)
			reply_error(r, 403, "this listener is read-only: use the control socket");
		else if (method == HTTPD_POST && !may_change(r))
			reply_error(
				r, 403, "only root, the agent's user and its group may do this");
		else
			route->handle(c, r, name);
		return;
	}
	if (known)
		reply_error(r, 405, "this path does not take that method");
	else
		reply_error(r, 404, "there is nothing at this path: see pulletd(8)");
}

static void handle_unix(void *arg, struct httpd_request *r)
{
	dispatch(arg, r, false);
}

static void handle_tcp(void *arg, struct httpd_request *r)
{
	dispatch(arg, r, true);
}

int control_start(const struct control_env *env, struct control **ret_control, char why[FILE_WHY])
{
	struct control *c = calloc(1, sizeof(*c));
	char path[256];
	int r = -ENOMEM;

	if (!c) {
		snprintf(why, FILE_WHY, "out of memory");
		goto fail;
	}
	c->env = *env;
	snprintf(path, sizeof(path), "%s/control.sock", env->settings->runtime_dir);
	c->unix_httpd = httpd_open_unix(env->loop, path, handle_unix, c);
	if (!c->unix_httpd) {
		r = -errno;
		snprintf(why, FILE_WHY, "cannot listen on %.180s: %s", path, strerror(errno));
		goto fail;
	}
	if (env->settings->listen) {
		c->tcp_httpd = httpd_open_tcp(env->loop, env->settings->listen, handle_tcp, c);
		if (!c->tcp_httpd) {
			r = -errno;
			snprintf(why, FILE_WHY, "cannot listen on %.180s: %s",
				env->settings->listen, strerror(errno));
			goto fail;
		}
	}
	*ret_control = c;
	return 0;
fail:
	control_stop(c);
	return r;
}

void control_stop(struct control *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < CONTROL_MAX_WAITING; i++)
		if (c->waiting[i].request)
			waiting_end(&c->waiting[i]);
	if (c->tcp_httpd)
		httpd_close(c->tcp_httpd);
	if (c->unix_httpd)
		httpd_close(c->unix_httpd);
	free(c);
}

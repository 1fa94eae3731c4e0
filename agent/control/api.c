/*
 * The control API: a table of paths. Surprising: nothing of what they do is here, only who may ask.
 */
#include "control/api.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "config/changes.h"
#include "control/get.h"
#include "control/handler.h"
#include "control/page/page.h"
#include "control/post.h"
#include "control/query.h"
#include "control/reply.h"
#include "control/socket.h"
#include "httpd/host_header.h"
#include "httpd/peer.h"

/* ---- the table ---- */

#define CONFIGS "/v1/configs/"
#define ANY                                                                                        \
	{                                                                                          \
		"*"                                                                                \
	} /* browsers, probes and scrapers may add parameters */

static const struct route {
	enum httpd_method method;
	const char *before, *after; /* around the config's name; after NULL: no name */
	void (*handle)(struct control *c, struct httpd_request *r, struct config *config);
	enum right right;    /* required; the handler decides how much is shown */
	bool local;          /* not on the TCP listener: expensive, or waits */
	const char *keys[8]; /* of the query */
} routes[] = {
	{HTTPD_GET, "/", NULL, get_page, RIGHT_READ, false, ANY},
	{HTTPD_GET, "/page.css", NULL, get_page, RIGHT_READ, false, ANY},
	{HTTPD_GET, "/page.js", NULL, get_page, RIGHT_READ, false, ANY},
	{HTTPD_GET, "/detail.js", NULL, get_page, RIGHT_READ, false, ANY},
	{HTTPD_GET, "/v1/status", NULL, get_status, RIGHT_READ, false, {NULL}},
	{HTTPD_GET, "/v1/changes", NULL, get_changes, RIGHT_READ, false, {NULL}},
	{HTTPD_GET, "/livez", NULL, get_livez, RIGHT_READ, false, ANY},
	{HTTPD_GET, "/healthz", NULL, get_livez, RIGHT_READ, false, ANY},
	{HTTPD_GET, "/metrics", NULL, get_metrics, RIGHT_READ, false, ANY},
	{HTTPD_GET, "/readyz", NULL, get_readyz, RIGHT_READ, false, ANY},
	{HTTPD_GET, CONFIGS, "", get_config, RIGHT_READ, false, {NULL}},
	{HTTPD_GET, CONFIGS, "/history", get_history, RIGHT_READ, false, {NULL}},
	{HTTPD_GET, CONFIGS, "/events", get_events, RIGHT_READ, false, {NULL}},
	{HTTPD_GET, CONFIGS, "/wait", get_wait, RIGHT_READ, true,
		{"generation", "version", "timeout_ms"}},
	{HTTPD_GET, CONFIGS, "/diff", get_diff, RIGHT_READ, true, {"from", "to", "held"}},
	{HTTPD_GET, CONFIGS, "/explain", get_explain, RIGHT_READ, true, {"key"}},
	{HTTPD_POST, CONFIGS, "/refresh", post_refresh, RIGHT_OPERATE, true,
		{"force", "forget_rev", "wait", "timeout_ms"}},
	{HTTPD_POST, CONFIGS, "/rollback", post_rollback, RIGHT_OPERATE, true,
		{"generation", "reason", "wait", "timeout_ms"}},
	{HTTPD_POST, CONFIGS, "/pin", post_pin, RIGHT_OPERATE, true, {"for_ms", "reason"}},
	{HTTPD_POST, CONFIGS, "/unpin", post_unpin, RIGHT_OPERATE, true, {NULL}},
	{HTTPD_POST, CONFIGS, "/suspend", post_suspend, RIGHT_OPERATE, true, {"for_ms", "reason"}},
	{HTTPD_POST, CONFIGS, "/resume", post_resume, RIGHT_OPERATE, true, {NULL}},
	{HTTPD_POST, CONFIGS, "/override", post_override, RIGHT_OPERATE, true,
		{"key", "value", "for_ms", "remove", "reason", "wait", "timeout_ms"}},
};

/* Does path match the route? Copies the config's name, if any. */
static bool route_matches(const struct route *route, const char *path, char name[128])
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

static bool route_takes(const struct route *route, const char *key)
{
	for (size_t i = 0; route->keys[i]; i++)
		if (strcmp(route->keys[i], key) == 0)
			return true;
	return false;
}

/* False, and answered: an unknown parameter, or a switch that is not 0 or 1. */
static bool check_query(const struct route *route, struct httpd_request *r)
{
	static const char *const switches[] = {"force", "forget_rev", "wait", "remove", "held"};
	const char *key;
	char why[128];

	for (size_t i = 0; !route_takes(route, "*") && (key = httpd_query_name(r, i)); i++)
		if (!route_takes(route, key)) {
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

/* Browsers send these from foreign pages; the status page changes nothing. */
static bool is_browser(const struct httpd_request *r)
{
	return httpd_header(r, "Origin") || httpd_header(r, "Sec-Fetch-Site");
}

/* Browsers must not cache, sniff, frame or leak answers. */
static void add_page_headers(struct httpd_request *r)
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

/* True when that was answered: the request names no host, or not this one. */
static bool deny_host(const struct control *c, struct httpd_request *r)
{
	const char *host = httpd_header(r, "Host");

	if (!host)
		reply_error(r, 400, "the request has no Host header: HTTP wants one");
	else if (!host_header_is_this_machines(host, c->env->settings->listen_names))
		reply_error(r, 421,
			"this host does not have the requested name: use its address, or "
			"list the name in agent.listen_names");
	else
		return false;
	return true;
}

/* Answers and logs that the user is not allowed, and how that is configured. */
static void deny_right(struct control *c, struct httpd_request *r, const char *name)
{
	char by[QUERY_CLIENT], why[FILE_WHY];

	query_client(r, by);
	snprintf(why, sizeof(why),
		"%s may only read: root, the agent's user and members of the group that "
		"agent: {operators: GROUP} names may change something",
		by);
	c->env->counts->denied++;
	if (log_limit_pass(&c->denied, loop_now_ms(c->env->loop), by, &(unsigned){0}))
		log_warn("a request for a change was denied", "config", name, "by", by, "request",
			strrchr(httpd_path(r), '/') + 1);
	reply_error(r, 403, why);
}

/* True, and answered: not on this listener, or not allowed. */
static bool deny_request(
	struct control *c, const struct route *route, struct httpd_request *r, const char *name)
{
	bool changes = route->method == HTTPD_POST;
	struct peer peer;

	if (route->local && httpd_is_tcp(r)) {
		c->env->counts->denied += changes;
		reply_error(r, 403,
			changes ? "this listener is read-only: use the control socket"
				: "this is on the control socket only: use that one");
		return true;
	}
	if (changes && is_browser(r)) {
		reply_error(r, 403, "a browser may only read: use the command line");
		return true;
	}
	httpd_peer(r, &peer);
	if (peer.right >= route->right)
		return false;
	deny_right(c, r, name);
	return true;
}

/* The route of the request; NULL: none, and *ret_allow lists the methods of that path, if any. */
static const struct route *find_route(
	const struct httpd_request *r, char name[128], const char **ret_allow)
{
	enum httpd_method method = httpd_method(r) == HTTPD_HEAD ? HTTPD_GET : httpd_method(r);

	*ret_allow = NULL;
	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
		if (!route_matches(&routes[i], httpd_path(r), name))
			continue;
		*ret_allow = routes[i].method == HTTPD_GET ? "GET, HEAD" : "POST";
		if (routes[i].method == method)
			return &routes[i];
	}
	return NULL;
}

static struct config *find_named_config(struct control *c, const char *name)
{
	for (size_t i = 0; i < c->env->settings->config_count; i++)
		if (strcmp(config_name(c->env->configs[i]), name) == 0)
			return c->env->configs[i];
	return NULL;
}

static void dispatch_request(void *arg, struct httpd_request *r)
{
	const struct route *route;
	struct config *config;
	const char *allow;
	struct control *c = arg;
	char name[128] = "";

	add_page_headers(r);
	if (deny_host(c, r))
		return;
	route = find_route(r, name, &allow);
	if (route) {
		if (deny_request(c, route, r, name))
			return;
		config = route->after ? find_named_config(c, name) : NULL;
		if (route->after && !config)
			reply_error(r, 404,
				"there is no config of that name: `pullet status` lists them");
		else if (check_query(route, r))
			route->handle(c, r, config);
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
	return control_socket_listen(c->socket, address, why);
}

void control_operators(struct control *c, gid_t operators)
{
	control_socket_operators(c->socket, operators);
}

void control_check(struct control *c)
{
	control_socket_check(c->socket);
}

int control_start(const struct control_env *env, struct control **ret_control, char why[FILE_WHY])
{
	struct control *c = calloc(1, sizeof(*c));
	int r = -ENOMEM;

	snprintf(why, FILE_WHY, "out of memory");
	if (!c)
		return r;
	c->env = env;
	c->room.loop = env->loop;
	c->room.refused = handler_share_refused;
	c->room.arg = c;
	c->changes = changes_new();
	if (!c->changes)
		goto fail;
	r = control_socket_open(env->loop, env->drift, env->settings->runtime_dir, dispatch_request,
		c, &c->socket, why);
	if (r)
		goto fail;
	control_socket_limit(c->socket, 2 * WAITING_MAX, HTTPD_QUEUED);
	control_socket_share(c->socket, handler_share_refused, c);
	control_socket_operators(c->socket, env->settings->operators);
	r = control_socket_listen(c->socket, env->settings->listen, why);
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
	waiting_forget(&c->room, config, gone);
	changes_forget(c->changes, config);
}

void control_stop(struct control *c)
{
	if (!c)
		return;
	waiting_stop(&c->room);
	answers_forget(&c->answers);
	control_socket_close(c->socket);
	changes_free(c->changes);
	free(c);
}

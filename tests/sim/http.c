/*
 * The agent's HTTP client over simulated servers: http/client.h without sockets. A request arrives
 * after a delay, the server answers by what it has at that moment, and the answer comes after
 * another one, unless the time limit, the agent's end or a cancel is first.
 *
 * Surprising: requests belong to the world, and outlive the process that sent them.
 */
#include "http/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/host.h"
#include "tests/sim/server_consul.h"
#include "tests/sim/server_etcd.h"
#include "tests/sim/site.h"
#include "tests/sim/world.h"

#define LONGEST_WAIT_US 30000000u /* of a blocking query */
#define NEXT_LOOK_US 200000u      /* of a stream, at what is new */

struct http_client {
	struct host *host;
	struct transfer *first;
};

struct request;

struct transfer { /* the agent's */
	struct http_client *client;
	struct transfer *next;
	struct request *request; /* NULL = answered */
	http_client_done done;
	http_client_line line; /* NULL = it has one answer */
	void *arg;
	uint64_t begun_us, limit_us;
	size_t max_bytes;
};

struct request { /* the world's */
	struct host *host;
	struct transfer *transfer; /* NULL = cancelled, or the process has ended */
	struct host_event *limit;
	uint64_t connect_limit_us;
	char path[160], if_none_match[64];
	struct site_server *server;
	/* the answer */
	enum http_client_result result;
	const char *message;
	bool unreached; /* nothing was sent */
	long status;
	const struct site_version *version;
	const char *text; /* in place of a version's; lives as long as the life */
	char *wrapped;    /* the same around it, the request's own */
	bool consul, etcd, stream, counted, signature;
	uint64_t position,
		index; /* of Consul: waits behind; is at; of a stream: its next revision */
	uint64_t begun_us;
	const char *etag;
	uint64_t retry_after_ms;
};

/* ---- the answer arrives ---- */

static void unlink_transfer(struct transfer *t)
{
	struct transfer **link = &t->client->first;

	while (*link != t)
		link = &(*link)->next;
	*link = t->next;
}

static void fill_response(
	const struct request *r, struct http_client_response *ret, size_t max_bytes)
{
	const char *text = r->text ? r->text : r->version ? r->version->text : "";
	size_t len = r->text ? strlen(r->text) : r->version ? r->version->len : 0;

	snprintf(ret->message, sizeof(ret->message), "%s", r->message ? r->message : "");
	ret->result = r->result;
	ret->sent = r->result != HTTP_CLIENT_REFUSED && !r->unreached;
	ret->status = r->status;
	ret->retry_after_ms = r->retry_after_ms;
	ret->framed = true;
	snprintf(ret->etag, sizeof(ret->etag), "%s", r->etag ? r->etag : "");
	if (r->consul && r->index)
		snprintf(ret->consul_index, sizeof(ret->consul_index), "%llu",
			(unsigned long long)r->index);
	buffer_init(&ret->body, max_bytes);
	buffer_init(&ret->coded, 0);
	if (r->status == 200 && len && buffer_append(&ret->body, text, len)) {
		ret->result = len > max_bytes ? HTTP_CLIENT_TOO_LARGE : HTTP_CLIENT_PROTOCOL;
		snprintf(ret->message, sizeof(ret->message), "out of memory or too large");
	}
}

static void limit_passed(void *arg);

/* In the agent's process. */
static void deliver_answer(void *arg)
{
	struct transfer *t = arg;
	struct request *r = t->request;
	struct http_client_response response = {.retry_after_ms = HTTP_CLIENT_NO_ADVICE};

	fill_response(r, &response, t->max_bytes);
	response.duration_ms = (world.now_us - t->begun_us) / 1000;
	unlink_transfer(t);
	r->transfer = NULL;
	host_cancel(r->limit);
	t->done(t->arg, &response);
	buffer_fini(&response.body);
	free(t);
}

/* In the agent's process; without memory that is the end of the stream. May cancel it. */
static void deliver_line(void *arg)
{
	struct transfer *t = arg;
	struct request *r = t->request;
	struct http_client_response line = {.status = 200, .framed = true};

	buffer_init(&line.body, t->max_bytes);
	if (buffer_append(&line.body, r->wrapped, strlen(r->wrapped))) {
		r->result = HTTP_CLIENT_PROTOCOL;
		r->message = "out of memory or too large";
		deliver_answer(t);
		return;
	}
	host_cancel(r->limit);
	r->limit = host_at(r->host, world.now_us + t->limit_us, limit_passed, t);
	t->line(t->arg, &line);
	buffer_fini(&line.body);
}

static void limit_passed(void *arg)
{
	struct transfer *t = arg;
	struct request *r = t->request;

	r->result = HTTP_CLIENT_TIMEOUT;
	r->status = 0;
	r->message = "request timed out";
	deliver_answer(t);
}

/* ---- the network ---- */

static void set_error(struct request *r, enum http_client_result result, const char *message)
{
	r->result = result;
	r->message = message;
}

static void answer_arrives(void *arg, uint64_t number);

static bool is_reached(unsigned from, unsigned to)
{
	return !site.reaches || site.reaches(from, to);
}

/* Nothing comes: the time limit ends it. */
static void lose_answer(struct request *r, uint64_t process)
{
	r->server = NULL;
	world_at(world.now_us + 600 * 1000000ull, answer_arrives, r, process);
}

/* The server is not reached: a router says so, or nobody does. */
static void fail_connection(struct request *r, uint64_t process)
{
	uint64_t delay_us = 1000;

	r->unreached = true;
	if (world_once_in(STREAM_NETWORK, 2)) {
		set_error(r, HTTP_CLIENT_NETWORK, "no route to host");
	} else {
		set_error(r, HTTP_CLIENT_TIMEOUT, "the connection was not made in time");
		delay_us = r->connect_limit_us;
	}
	r->server = NULL;
	world_at(world.now_us + delay_us, answer_arrives, r, process);
}

static bool is_answer_lost(const struct request *r)
{
	return r->server && (!is_reached(r->server->node, r->host->number) ||
				    world_once_in(STREAM_NETWORK, site.lost));
}

/* Its process still waits for it. */
static bool is_wanted(const struct request *r, uint64_t process)
{
	return r->transfer && r->host->process == process;
}

static void free_request(struct request *r)
{
	free(r->wrapped);
	free(r);
}

static void answer_arrives(void *arg, uint64_t number)
{
	struct request *r = arg;

	if (is_wanted(r, number) && is_answer_lost(r)) {
		lose_answer(r, number);
		return;
	}
	if (is_wanted(r, number)) {
		if (r->host->stopped_until_us > world.now_us) {
			world_at(r->host->stopped_until_us, answer_arrives, r, number);
			return;
		}
		host_call(r->host, deliver_answer, r->transfer);
	}
	free_request(r);
}

/* ---- streams: one line is under way at a time ---- */

static void line_arrives(void *arg, uint64_t number);

/* The server has gone, or is another one since. */
static bool is_cut(const struct request *r)
{
	return r->server->mode == SERVER_REFUSES || r->server->mode == SERVER_CUTS ||
	       site.etcd.restored_us > r->begun_us;
}

static void stream_goes_on(void *arg, uint64_t number)
{
	struct request *r = arg;

	if (is_wanted(r, number) && is_cut(r)) {
		set_error(r, HTTP_CLIENT_NETWORK, "the connection was cut");
		answer_arrives(r, number);
		return;
	}
	if (!is_wanted(r, number)) {
		free_request(r);
		return;
	}
	if (!r->wrapped && r->server->mode == SERVER_GOOD)
		r->wrapped = etcd_next_line(r->server, r->path, &r->position);
	if (r->wrapped)
		world_at(world.now_us + r->server->delay_us + world_random(STREAM_NETWORK, 2000),
			line_arrives, r, number);
	else
		world_at(world.now_us + 1000 + world_random(STREAM_NETWORK, NEXT_LOOK_US),
			stream_goes_on, r, number);
}

static void line_arrives(void *arg, uint64_t number)
{
	struct request *r = arg;
	uint64_t again_us = world.now_us + NEXT_LOOK_US;

	if (is_wanted(r, number) && (r->host->stopped_until_us > world.now_us ||
					    !is_reached(r->server->node, r->host->number))) {
		if (r->host->stopped_until_us > again_us)
			again_us = r->host->stopped_until_us;
		world_at(again_us, line_arrives, r, number);
		return;
	}
	if (is_wanted(r, number)) {
		world_trace("%s: %s to %s", r->server->name, r->wrapped, r->host->name);
		host_call(r->host, deliver_line, r->transfer);
	}
	free(r->wrapped);
	r->wrapped = NULL;
	stream_goes_on(r, number);
}

/* False: it is answered once, with what went wrong. */
static bool begin_stream(struct request *r, uint64_t process)
{
	if (r->server->mode == SERVER_GOOD)
		r->wrapped = etcd_begin_watch(r->server, &r->position);
	else if (r->server->mode == SERVER_GARBLES)
		r->wrapped = strdup("<html><body>Please log in</body></html>");
	else
		return false;
	stream_goes_on(r, process);
	return true;
}

/* ---- the server ---- */

static void answer_text(struct request *r, const char *text)
{
	r->status = text ? 200 : 404;
	r->text = text;
}

/* Cuts ".minisig" off the path. */
static bool asks_for_signature(struct request *r)
{
	char *end = strstr(r->path, ".minisig");

	if (end)
		*end = '\0';
	return end;
}

static void answer_document(struct request *r)
{
	bool signature = r->signature = asks_for_signature(r);
	struct site_document *d = site_find_document(r->path);
	uint64_t lag_us = r->etcd ? 0 : r->server->lag_us; /* etcd asks its leader */
	struct site_version *v =
		d ? site_version_at(d, world.now_us - (lag_us < world.now_us ? lag_us : 0)) : NULL;

	if (strncmp(r->path, "/rollout/", 9) == 0) {
		answer_text(r, site_rollout());
		return;
	}
	if (!v) {
		r->status = 404;
		return;
	}
	r->index = r->etcd ? v->revision : v->index;
	if (signature) {
		answer_text(r, world_once_in(STREAM_SERVER, site.wrong_signature)
				       ? "untrusted comment: none\n"
				       : site_signature(d, v));
		return;
	}
	if (world_once_in(STREAM_SERVER, site.cut)) {
		set_error(r, HTTP_CLIENT_NETWORK, "the connection was cut");
		return;
	}
	r->etag = r->consul || r->etcd ? NULL : v->etag;
	r->status = 200;
	if (r->consul || r->etcd) {
		answer_text(r, v->text);
		return;
	}
	if (strcmp(r->if_none_match, v->etag) == 0 ||
		world_once_in(STREAM_SERVER, site.unasked_304)) {
		r->status = 304;
		return;
	}
	r->version = v;
	v->sent = true;
}

static void wrap_answer(struct request *r)
{
	char key[180];

	snprintf(key, sizeof(key), "%s%s", r->path, r->signature ? ".minisig" : "");
	if (r->etcd && (r->status == 200 || r->status == 404)) {
		r->wrapped = etcd_wrap_range(key, r->status == 200 ? r->text : NULL, r->index);
		r->text = r->wrapped;
		r->status = 200;
		return;
	}
	if (!r->index)
		r->index = site.index;
	if (r->status == 200 && r->consul)
		r->text = r->wrapped = consul_wrap(key, r->text, strlen(r->text), r->index);
}

/* True: there will be an answer. */
static bool make_answer(struct request *r)
{
	struct site_server *s = r->server;
	static const struct site_version garbage = {
		.text = (char *)"<html><body>Please log in</body></html>\n", .len = 40};

	switch (s->mode) {
	case SERVER_HANGS:
		return false;
	case SERVER_REFUSES:
		set_error(r, HTTP_CLIENT_REFUSED, "connection refused");
		return true;
	case SERVER_CUTS:
		set_error(r, HTTP_CLIENT_NETWORK, "the connection was cut");
		return true;
	case SERVER_OVERLOADED:
		r->status = 503;
		if (world_once_in(STREAM_SERVER, 2))
			r->retry_after_ms = world_random(STREAM_SERVER, 90) * 1000;
		return true;
	case SERVER_FAILS:
		r->status = 500;
		return true;
	case SERVER_DENIES:
		r->status = 403;
		return true;
	case SERVER_LOST:
		r->status = 404;
		return true;
	case SERVER_GARBLES:
		r->status = 200;
		r->version = &garbage;
		return true;
	case SERVER_GOOD:
	case SERVER_MODES:
		break;
	}
	answer_document(r);
	if (r->consul || r->etcd)
		wrap_answer(r);
	return true;
}

/* A blocking query goes on waiting. */
static bool waits_for_change(struct request *r)
{
	struct site_document *d = site_find_document(r->path);
	struct site_version *v = d ? site_current(d) : NULL;

	return r->consul && r->position && v && v->index <= r->position &&
	       r->server->mode == SERVER_GOOD && world.now_us < r->begun_us + LONGEST_WAIT_US;
}

static void count_request(struct site_server *s)
{
	uint64_t second = world.now_us / 1000000;

	s->requests++;
	if (s->busy_second != second) {
		s->busy_second = second;
		s->in_second = 0;
	}
	if (++s->in_second > s->worst_second)
		s->worst_second = s->in_second;
}

static void request_arrives(void *arg, uint64_t number)
{
	struct request *r = arg;
	uint64_t delay_us;

	if (!is_reached(r->host->number, r->server->node)) {
		fail_connection(r, number);
		return;
	}
	if (world_once_in(STREAM_NETWORK, site.lost)) {
		lose_answer(r, number);
		return;
	}
	if (!r->counted)
		count_request(r->server);
	r->counted = true;
	if (r->stream && begin_stream(r, number))
		return;
	if (waits_for_change(r)) {
		world_at(world.now_us + 1000000, request_arrives, r, number);
		return;
	}
	if (!make_answer(r)) {
		lose_answer(r, number);
		return;
	}
	r->server->answers++;
	delay_us = r->server->delay_us + world_random(STREAM_NETWORK, 2000);
	world_trace("%s: %s for %s: %ld %s", r->server->name, r->path, r->host->name, r->status,
		r->etag      ? r->etag
		: r->message ? r->message
			     : "");
	world_at(world.now_us + delay_us, answer_arrives, r, number);
}

/* ---- the client ---- */

struct http_client *http_client_new(struct loop *l)
{
	struct http_client *c = calloc(1, sizeof(*c));

	(void)l;
	if (c)
		c->host = host_now;
	return c;
}

void http_client_free(struct http_client *c)
{
	while (c && c->first)
		http_client_cancel(c->first);
	free(c);
}

static void copy_headers(struct request *r, const char *const *headers)
{
	for (size_t i = 0; headers && headers[i]; i++)
		if (strncmp(headers[i], "If-None-Match: ", 15) == 0)
			snprintf(r->if_none_match, sizeof(r->if_none_match), "%s", headers[i] + 15);
}

/* NULL: no such server. */
static struct request *make_request(struct host *h, const struct http_client_request *q)
{
	const char *host = strstr(q->url, "://") + 3, *path = strchr(host, '/');
	enum disk_owner owner = disk_owner;
	struct request *r;

	disk_owner = OWNER_WORLD;
	r = calloc(1, sizeof(*r));
	disk_owner = owner;
	r->host = h;
	r->retry_after_ms = HTTP_CLIENT_NO_ADVICE;
	r->server = site_find_server(host, path ? (size_t)(path - host) : strlen(host));
	snprintf(r->path, sizeof(r->path), "%s", path ? path : "/");
	r->connect_limit_us = 1000 * q->connect_timeout_ms;
	copy_headers(r, q->headers);
	r->begun_us = world.now_us;
	r->consul = consul_is_asked(r->path);
	r->etcd = etcd_is_asked(r->path);
	r->stream = q->line;
	if (r->consul)
		r->position = consul_unwrap(r->path);
	if (r->etcd)
		etcd_read_question(q->body, q->body_len, r->path, sizeof(r->path), &r->position);
	return r;
}

int http_client_start(struct http_client *c, const struct http_client_request *q,
	http_client_done done, void *arg, struct transfer **ret_transfer)
{
	struct transfer *t = calloc(1, sizeof(*t));
	struct request *r;
	uint64_t limit_us = (q->idle_ms ? q->idle_ms : q->timeout_ms) * 1000;

	if (!t)
		return -ENOMEM;
	r = make_request(c->host, q);
	*t = (struct transfer){.client = c,
		.next = c->first,
		.request = r,
		.done = done,
		.line = q->line,
		.arg = arg,
		.begun_us = world.now_us,
		.limit_us = limit_us,
		.max_bytes = q->max_bytes};
	c->first = t;
	r->transfer = t;
	r->limit = host_at(c->host, world.now_us + limit_us, limit_passed, t);
	if (r->server) {
		world_at(world.now_us + 200 + world_random(STREAM_NETWORK, 2000), request_arrives,
			r, c->host->process);
	} else {
		set_error(r, HTTP_CLIENT_NETWORK, "name not found");
		world_at(world.now_us + 1000, answer_arrives, r, c->host->process);
	}
	*ret_transfer = t;
	return 0;
}

const char *http_client_waits_for(const struct transfer *t)
{
	(void)t;
	return "it hangs";
}

void http_client_cancel(struct transfer *t)
{
	t->request->transfer = NULL;
	host_cancel(t->request->limit);
	unlink_transfer(t);
	free(t);
}

void http_client_forget(struct http_client *c)
{
	(void)c;
}

void http_client_examine(struct http_client *c)
{
	(void)c;
}

const char *http_client_version(void)
{
	return "none";
}

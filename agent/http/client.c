/*
 * Transfers, from their start to done().
 *
 * Surprising: QUICK_EXIT (options.c) is what makes cancelling during a name look-up not block. What
 * comes is read by reception.c, which has the size cap.
 */
#include "http/client.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include <curl/curl.h>

#include "http/connections.h"
#include "http/multi.h"
#include "http/options.h"
#include "http/reception.h"
#include "http/result.h"

struct http_client {
	struct loop *loop;
	struct multi *multi;
	struct transfer *transfers;
	struct connections *connections;
	bool made;    /* a new connection, which leaves holes in the heap */
	bool forget;  /* drop all idle connections when no transfer is left */
	bool examine; /* read the servers' certificates too */
};

struct transfer {
	struct http_client *client;
	struct transfer *next, **link;
	CURL *easy;
	struct curl_slist *headers;
	struct connections_use use;
	struct multi_entry entry;
	struct reception in;    /* stopped: it was cancelled */
	struct loop_timer idle; /* with line: the limit of silence */
	uint64_t idle_ms, heard_ms;
	http_client_done done;
	void *arg;
	uint64_t started_ms, timeout_ms;
	char error[CURL_ERROR_SIZE];
};

/* ---- callbacks of libcurl ---- */

static size_t take_body(char *data, size_t size, size_t n, void *arg)
{
	struct transfer *t = arg;
	bool good;

	t->heard_ms = loop_now_ms(t->client->loop);
	good = reception_take_body(&t->in, data, size * n);
	if (t->in.more)
		connections_spoil(&t->use);
	if (good && reception_is_whole(&t->in))
		connections_whole(&t->use);
	return good ? size * n : 0;
}

static size_t take_header(char *data, size_t size, size_t n, void *arg)
{
	struct transfer *t = arg;
	bool was_over = t->in.framing.over, good;

	good = reception_take_header(&t->in, data, size * n);
	if (t->in.framing.over && !was_over)
		connections_answered(&t->use, &t->in.framing, loop_now_ms(t->client->loop));
	return good ? size * n : 0;
}

/* ---- transfers ---- */

/* Returns memory to the system when no transfer is left. */
static void trim_heap(struct http_client *client)
{
	if (client->transfers || !client->made)
		return;
	client->made = false;
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}

static void release_transfer(struct transfer *t)
{
	struct http_client *client = t->client;

	*t->link = t->next;
	if (t->next)
		t->next->link = t->link;
	client->made |= t->use.fresh;
	loop_timer_cancel(t->client->loop, &t->idle);
	if (t->easy) {
		multi_remove(client->multi, &t->entry);
		connections_return(&t->use, loop_now_ms(t->client->loop));
		curl_easy_cleanup(t->easy);
	}
	curl_slist_free_all(t->headers);
	reception_fini(&t->in);
	free(t);
	trim_heap(client);
}

/* Ends a stream of lines that is silent. */
static void idle_due(void *arg)
{
	struct transfer *t = arg;
	struct http_client_response *r = &t->in.response;
	uint64_t now_ms = loop_now_ms(t->client->loop);

	if (now_ms - t->heard_ms < t->idle_ms) {
		loop_timer_set(t->client->loop, &t->idle, t->heard_ms + t->idle_ms);
		return;
	}
	r->sent = result_was_sent(t->easy);
	r->result = HTTP_CLIENT_TIMEOUT;
	r->retry_after_ms = HTTP_CLIENT_NO_ADVICE;
	r->duration_ms = now_ms - t->started_ms;
	snprintf(r->message, sizeof(r->message), "timed out: nothing came for %llu ms",
		(unsigned long long)t->idle_ms);
	multi_remove(t->client->multi, &t->entry);
	t->done(t->arg, r);
	release_transfer(t);
}

/* Starts again on a new connection if the old one was stale. */
static bool start_again(struct transfer *t)
{
	struct multi *multi = t->client->multi;

	if (!connections_is_stale(&t->use))
		return false;
	multi_remove(multi, &t->entry);
	t->error[0] = '\0';
	return connections_renew(&t->use, loop_now_ms(t->client->loop)) &&
	       multi_add(multi, &t->entry, t->easy, t) == 0;
}

/* Starts again over HTTP/1.1, in the time that is left. */
static bool start_over_http1(struct transfer *t)
{
	struct multi *multi = t->client->multi;
	uint64_t spent_ms = loop_now_ms(t->client->loop) - t->started_ms;

	if (!t->in.endless || spent_ms >= t->timeout_ms)
		return false;
	reception_restart(&t->in);
	multi_remove(multi, &t->entry);
	t->error[0] = '\0';
	return connections_leave_http2(&t->use) == 0 &&
	       options_limit_time(t->easy, t->timeout_ms - spent_ms) == CURLE_OK &&
	       multi_add(multi, &t->entry, t->easy, t) == 0;
}

static void finish_response(struct transfer *t, CURLcode code)
{
	const struct result_of_curl result = {t->easy, code, t->error};

	result_take(&t->in, &result, loop_sys(t->client->loop));
	t->in.response.duration_ms = loop_now_ms(t->client->loop) - t->started_ms;
}

/* Finishes the transfers that have ended. */
static void reap_transfers(void *arg)
{
	struct http_client *client = arg;
	struct transfer *t;
	CURLcode code;

	while ((t = multi_next_ended(client->multi, &code))) {
		if (start_again(t) || start_over_http1(t))
			continue;
		finish_response(t, code);
		connections_ended(
			&t->use, code == CURLE_OK, code == CURLE_OK || code == CURLE_WRITE_ERROR);
		/* off the multi handle, and the connection back, first: done() may start another
		 * transfer on it */
		multi_remove(client->multi, &t->entry);
		connections_return(&t->use, loop_now_ms(client->loop));
		if (!t->in.stopped)
			t->done(t->arg, &t->in.response);
		release_transfer(t);
	}
}

static int lend_connection(struct transfer *t, const struct http_client_request *q)
{
	const struct connections_request request = {
		.document = q->document,
		.url = q->url,
		.ca = q->tls.ca,
		.crl = q->tls.crl,
		.cert = q->tls.cert,
		.key = q->tls.key,
		.alone = q->alone || t->client->examine,
	};

	return connections_lend(t->client->connections, &t->use, t->easy, &request, t->started_ms);
}

/* Over HTTP/1.x a connection without a place closes behind the answer. */
static int set_options(struct transfer *t, const struct http_client_request *q)
{
	CURL *e = t->easy;
	CURLcode bad = CURLE_OK;
	int r = options_set(e, q, !connections_has_place(&t->use), &t->headers);

	if (r)
		return r;
	if (connections_left_http2(&t->use))
		bad |= curl_easy_setopt(e, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
	bad |= curl_easy_setopt(e, CURLOPT_ERRORBUFFER, t->error);
	bad |= curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, take_body);
	bad |= curl_easy_setopt(e, CURLOPT_WRITEDATA, t);
	bad |= curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, take_header);
	bad |= curl_easy_setopt(e, CURLOPT_HEADERDATA, t);
	bad |= curl_easy_setopt(e, CURLOPT_CERTINFO, (long)t->client->examine);
	return bad ? -EINVAL : 0;
}

int http_client_start(struct http_client *client, const struct http_client_request *q,
	http_client_done done, void *arg, struct transfer **ret_transfer)
{
	struct transfer *t = calloc(1, sizeof(*t));
	int r = -ENOMEM;

	if (!t)
		return -ENOMEM;
	if (client->forget && !client->transfers) /* else dead connections cost a timeout each */
		client->forget = !multi_renew(client->multi);
	t->client = client;
	t->in.max_bytes = q->max_bytes;
	t->in.may_be_packed = q->may_be_packed;
	t->in.line = q->line;
	t->in.must_end = q->must_end && !q->line;
	t->timeout_ms = q->timeout_ms;
	t->idle_ms = q->idle_ms;
	loop_timer_init(&t->idle, idle_due, t);
	t->done = done;
	t->arg = t->in.arg = arg;
	t->started_ms = loop_now_ms(client->loop);
	reception_init(&t->in);
	t->next = client->transfers;
	t->link = &client->transfers;
	if (t->next)
		t->next->link = &t->next;
	client->transfers = t;

	t->easy = curl_easy_init();
	if (!t->easy)
		goto fail;
	r = lend_connection(t, q);
	if (r == 0)
		r = set_options(t, q);
	if (r == 0)
		r = multi_add(client->multi, &t->entry, t->easy, t);
	if (r)
		goto fail;
	t->heard_ms = t->started_ms;
	if (t->in.line)
		loop_timer_set(client->loop, &t->idle, t->heard_ms + t->idle_ms);
	*ret_transfer = t;
	return 0;
fail:
	release_transfer(t);
	return r;
}

void http_client_cancel(struct transfer *t)
{
	t->in.stopped = true;
	if (!t->in.in_line) /* else libcurl has it: it ends when the call returns */
		release_transfer(t);
}

/* ---- the client ---- */

struct http_client *http_client_new(struct loop *l)
{
	struct http_client *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->loop = l;
	if (curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
		t->multi = multi_new(l, reap_transfers, t);
	if (t->multi)
		t->connections = connections_new(multi_watches, t->multi);
	if (t->connections)
		return t;
	http_client_free(t);
	return NULL;
}

void http_client_free(struct http_client *t)
{
	if (!t)
		return;
	while (t->transfers)
		release_transfer(t->transfers);
	multi_free(t->multi);
	connections_free(t->connections);
	curl_global_cleanup();
	free(t);
}

const char *http_client_waits_for(const struct transfer *t)
{
	return result_waits_for(t->easy, multi_has_peer(&t->entry));
}

void http_client_forget(struct http_client *t)
{
	t->forget = true;
	connections_forget(t->connections);
}

void http_client_examine(struct http_client *t)
{
	t->examine = true;
}

const char *http_client_version(void)
{
	return curl_version();
}

/*
 * libcurl's multi interface on the loop.
 *
 * Surprising: the size cap counts decoded bytes in the write callback, because CURLOPT_MAXFILESIZE
 * does nothing in the middle of a transfer before curl 8.4; and QUICK_EXIT is what makes cancelling
 * during a name look-up not block. What comes is read by reception.c.
 */
#include "http/client.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <linux/close_range.h>

#define CURL_DISABLE_DEPRECATION /* curl_multi_socket_all(), with a libcurl that needs it */
#include <curl/curl.h>

#include "base/descriptors.h"
#include "files/file.h"
#include "http/advice.h"
#include "http/connections.h"
#include "http/reception.h"

#define TRIM_AFTER 256u        /* transfers: new connections leave holes in the heap */
#define RECEIVED_AT_ONCE 4096L /* bytes; libcurl does it 100 times before others have a turn */
#define MAX_CONNECTIONS 256L   /* of all servers; each has its own limit of transfers */
#define MAX_IDLE_CONNECTIONS 64L
#define AGAIN_MS 100u               /* after libcurl had no memory */
#define ADDRESSES_AT_ONCE 64        /* of a name, that fail one after the other without a wait */
#define GOES_ON_BY_ITSELF 0x080400u /* the first libcurl that does, to a name's next address */

struct http_client {
	struct loop *loop;
	CURLM *multi;
	struct loop_timer timer; /* libcurl's one timeout */
	struct transfer *transfers;
	struct watched *watched;
	struct connections *connections;
	bool driven;  /* libcurl is at work for a socket or its timeout */
	bool made;    /* a new connection, which leaves holes in the heap */
	bool forget;  /* recreate the multi handle when idle */
	bool examine; /* read the servers' certificates too */
	bool waits;   /* libcurl waits to be called between two addresses of a name */
};

struct watched { /* a socket, as libcurl asks for it */
	struct loop_watch watch;
	struct watched *next, **link;
};

struct transfer {
	struct http_client *client;
	struct transfer *next, **link;
	CURL *easy;
	struct curl_slist *headers;
	struct connections_use use;
	struct reception in;    /* stopped: it was cancelled */
	struct loop_timer idle; /* with line: the limit of silence */
	uint64_t idle_ms, heard_ms;
	unsigned sockets; /* that are watched for it */
	bool lost_one;    /* of them, since it was called */
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

static void reap_transfers(struct http_client *client);

/* Its name was found, and it has no connection, and lost a socket that might have become one, or
 * has none. */
static bool is_between_addresses(const struct transfer *t)
{
	curl_off_t found_us = 0, sent_us = 0;

	if (t->sockets > 0 && !t->lost_one)
		return false;
	curl_easy_getinfo(t->easy, CURLINFO_NAMELOOKUP_TIME_T, &found_us);
	curl_easy_getinfo(t->easy, CURLINFO_PRETRANSFER_TIME_T, &sent_us);
	return found_us > 0 && sent_us == 0;
}

static bool have_some_lost_an_address(struct http_client *client)
{
	bool some = false;

	for (struct transfer *t = client->transfers; t; t = t->next) {
		some |= is_between_addresses(t);
		t->lost_one = false;
	}
	return some;
}

static void finish_turn(struct http_client *client, CURLMcode error)
{
	int running;

	client->driven = false;
	if (error == CURLM_ABORTED_BY_CALLBACK) /* on_socket() had no memory: this ends them all */
		error = curl_multi_perform(client->multi, &running);
	if (error) /* libcurl has asked for no timer then: transfers would never end */
		loop_timer_set(client->loop, &client->timer, loop_now_ms(client->loop) + AGAIN_MS);
	reap_transfers(client);
}

/* Calls libcurl when a transfer has lost an address: 7.88 to 8.3 picks the name's next one, and
 * opens its socket only at the next call, which may be the end of the time limit. 8.4 asks for that
 * call itself. */
static void go_on_to_next_addresses(struct http_client *client)
{
	int running;

	for (unsigned n = 0; client->waits && n < ADDRESSES_AT_ONCE; n++) {
		if (!have_some_lost_an_address(client))
			return;
		client->driven = true;
		finish_turn(client, curl_multi_socket_all(client->multi, &running));
	}
}

static void drive_socket(struct http_client *client, curl_socket_t fd, int mask)
{
	int running;

	client->driven = true;
	finish_turn(client, curl_multi_socket_action(client->multi, fd, mask, &running));
	go_on_to_next_addresses(client);
}

static void socket_ready(void *arg, int fd, unsigned events)
{
	drive_socket(arg, fd,
		(events & LOOP_READ ? CURL_CSELECT_IN : 0) |
			(events & LOOP_WRITE ? CURL_CSELECT_OUT : 0));
}

static void timeout_due(void *arg)
{
	drive_socket(arg, CURL_SOCKET_TIMEOUT, 0);
}

/* Of a connection that is left over there is no transfer: NULL. */
static struct transfer *transfer_of(CURL *easy)
{
	struct transfer *t = NULL;

	curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&t);
	return t;
}

static bool has_watched(void *arg, int fd)
{
	const struct http_client *client = arg;
	const struct watched *w = client->watched;

	while (w && w->watch.fd != fd)
		w = w->next;
	return w;
}

static void watched_free(struct watched *w)
{
	*w->link = w->next;
	if (w->next)
		w->next->link = w->link;
	free(w);
}

/* t: NULL = of none. */
static int watched_drop(struct http_client *client, struct transfer *t, int fd, struct watched *w)
{
	if (!w)
		return 0;
	if (t && t->sockets > 0) {
		t->sockets--;
		t->lost_one = true;
	}
	loop_unwatch(&w->watch);
	watched_free(w);
	curl_multi_assign(client->multi, fd, NULL);
	return 0;
}

static struct watched *watched_new(struct http_client *client, int fd)
{
	struct watched *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->next = client->watched;
	w->link = &client->watched;
	if (w->next)
		w->next->link = &w->next;
	client->watched = w;
	curl_multi_assign(client->multi, fd, w);
	return w;
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *watch_arg)
{
	struct http_client *client = arg;
	struct watched *w = watch_arg;
	struct transfer *t = transfer_of(easy);
	unsigned events = what == CURL_POLL_IN    ? LOOP_READ
			  : what == CURL_POLL_OUT ? LOOP_WRITE
						  : LOOP_READ | LOOP_WRITE;

	if (what == CURL_POLL_REMOVE)
		return watched_drop(client, t, fd, w);
	if (!w)
		w = watched_new(client, fd);
	if (!w)
		return -1;
	if (loop_watch(client->loop, &w->watch, fd, events, socket_ready, client) == 0) {
		if (t && !watch_arg)
			t->sockets++;
		return 0;
	}
	curl_multi_assign(client->multi, fd, NULL); /* libcurl does not ask for its removal then */
	watched_free(w);
	return -1;
}

/* "At once" from libcurl at work means that it has had its turn and there is more: the next one
 * comes with the socket, or in a millisecond where all was read from it already. Otherwise a large
 * body has every turn of the timer too, and what else is ready waits behind both. */
static int on_timer(CURLM *multi, long timeout_ms, void *arg)
{
	struct http_client *t = arg;

	(void)multi;
	if (timeout_ms == 0 && t->driven)
		timeout_ms = 1;
	if (timeout_ms < 0)
		loop_timer_cancel(t->loop, &t->timer);
	else
		loop_timer_set(t->loop, &t->timer, loop_now_ms(t->loop) + (uint64_t)timeout_ms);
	return 0;
}

/* ---- results ---- */

static enum http_client_result result_of(CURLcode code, long os_error)
{
	static const struct {
		CURLcode code;
		enum http_client_result result;
	} table[] = {
		{CURLE_OPERATION_TIMEDOUT, HTTP_CLIENT_TIMEOUT},
		{CURLE_COULDNT_RESOLVE_HOST, HTTP_CLIENT_NETWORK},
		{CURLE_COULDNT_RESOLVE_PROXY, HTTP_CLIENT_NETWORK},
		{CURLE_PARTIAL_FILE, HTTP_CLIENT_NETWORK},
		{CURLE_GOT_NOTHING, HTTP_CLIENT_NETWORK},
		{CURLE_SEND_ERROR, HTTP_CLIENT_NETWORK},
		{CURLE_RECV_ERROR, HTTP_CLIENT_NETWORK},
		{CURLE_HTTP2, HTTP_CLIENT_NETWORK},
		{CURLE_HTTP2_STREAM, HTTP_CLIENT_NETWORK},
		{CURLE_SSL_CONNECT_ERROR, HTTP_CLIENT_TLS},
		{CURLE_PEER_FAILED_VERIFICATION, HTTP_CLIENT_TLS},
		{CURLE_SSL_CERTPROBLEM, HTTP_CLIENT_HOST},
		{CURLE_SSL_CLIENTCERT, HTTP_CLIENT_TLS},
		{CURLE_SSL_CIPHER, HTTP_CLIENT_TLS},
		{CURLE_SSL_CACERT_BADFILE, HTTP_CLIENT_HOST},
		{CURLE_SSL_CRL_BADFILE, HTTP_CLIENT_HOST},
		{CURLE_SSL_ISSUER_ERROR, HTTP_CLIENT_TLS},
		{CURLE_SSL_INVALIDCERTSTATUS, HTTP_CLIENT_TLS},
		{CURLE_SSL_ENGINE_NOTFOUND, HTTP_CLIENT_TLS},
	};

	if (code == CURLE_OK)
		return HTTP_CLIENT_OK;
	if (code == CURLE_COULDNT_CONNECT)
		return os_error == ECONNREFUSED ? HTTP_CLIENT_REFUSED : HTTP_CLIENT_NETWORK;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].code == code)
			return table[i].result;
	return HTTP_CLIENT_PROTOCOL;
}

/* Reads seconds or a date; of a date, the distance from the server's own. 0 for a past or
 * unreadable one: it still asks for backoff. */
static uint64_t retry_after_ms(const struct transfer *t)
{
	const char *text = t->in.response.retry_after;
	size_t digits = strspn(text, "0123456789");
	time_t then, now;

	if (!text[0])
		return HTTP_CLIENT_NO_ADVICE;
	if (!text[digits])
		return digits > 9 ? UINT32_MAX * UINT64_C(1000)
				  : strtoul(text, NULL, 10) * UINT64_C(1000);
	then = curl_getdate(text, NULL);
	now = curl_getdate(t->in.response.server_date, NULL);
	if (now < 0)
		now = (time_t)(loop_sys(t->client->loop)->wall_ms() / 1000);
	return then > now ? (uint64_t)(then - now) * 1000 : 0;
}

/* Joins libcurl's text and the remedy. */
static void explain_curl_error(struct transfer *t, CURLcode code, const char *begin)
{
	struct http_client_response *r = &t->in.response;
	const char *said = t->error[0] ? t->error : curl_easy_strerror(code);
	const char *advice;
	long verify_result = 0;

	curl_easy_getinfo(t->easy, CURLINFO_SSL_VERIFYRESULT, &verify_result);
	advice = advice_find(code, verify_result, said);
	snprintf(r->message, sizeof(r->message), "%s%.*s%s%s", begin,
		(int)(sizeof(r->message) - strlen(begin) - strlen(advice) - sizeof(": ")), said,
		advice[0] ? ": " : "", advice);
}

/* "Expire date:Feb  1 00:00:00 2027 GMT" is one of the lines that libcurl makes of each. */
static int64_t certificates_end_ms(const struct transfer *t)
{
	static const char name[] = "Expire date:";
	struct curl_certinfo *info = NULL;
	int64_t first_ms = 0, ms;

	if (!t->client->examine || curl_easy_getinfo(t->easy, CURLINFO_CERTINFO, &info) || !info)
		return 0;
	for (int i = 0; i < info->num_of_certs; i++)
		for (const struct curl_slist *l = info->certinfo[i]; l; l = l->next) {
			if (strncmp(l->data, name, strlen(name)) != 0)
				continue;
			ms = (int64_t)curl_getdate(l->data + strlen(name), NULL) * 1000;
			if (ms > 0 && (first_ms == 0 || ms < first_ms))
				first_ms = ms;
		}
	return first_ms;
}

static void describe_transfer_failure(struct transfer *t, CURLcode code)
{
	struct http_client_response *r = &t->in.response;

	if (r->result == HTTP_CLIENT_TOO_LARGE)
		snprintf(r->message, sizeof(r->message), HTTP_CLIENT_SAYS_TOO_LARGE,
			t->in.max_bytes);
	else if (t->in.fault)
		snprintf(r->message, sizeof(r->message), HTTP_CLIENT_SAYS_MALFORMED, "",
			t->in.fault);
	else if (r->result == HTTP_CLIENT_REFUSED)
		snprintf(r->message, sizeof(r->message),
			"connection refused: is the server running?");
	else if (r->result == HTTP_CLIENT_TIMEOUT)
		explain_curl_error(t, code, "timed out: ");
	else if (code == CURLE_PARTIAL_FILE)
		snprintf(r->message, sizeof(r->message), "the body was cut short: %s", t->error);
	else
		explain_curl_error(t, code, "");
}

/* There was no connection: it may be this host that has no socket for one, which libcurl does not
 * tell. */
static void blame_host(struct http_client_response *r)
{
	char remedy[FILE_REMEDY];
	int error;

	if (r->sent || (r->result != HTTP_CLIENT_NETWORK && r->result != HTTP_CLIENT_PROTOCOL))
		return;
	error = descriptors_try();
	if (error == 0)
		return;
	r->result = HTTP_CLIENT_HOST;
	file_remedy(remedy, -error, true);
	snprintf(r->message, sizeof(r->message), "cannot open a socket: %s", remedy);
}

static void finish_response(struct transfer *t, CURLcode code)
{
	struct http_client_response *r = &t->in.response;
	long os_error = 0;
	curl_off_t sent_us = 0, lookup_us = 0;

	curl_easy_getinfo(t->easy, CURLINFO_OS_ERRNO, &os_error);
	curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &r->status);
	curl_easy_getinfo(t->easy, CURLINFO_PRETRANSFER_TIME_T, &sent_us);
	r->sent = sent_us > 0;
	curl_easy_getinfo(t->easy, CURLINFO_NAMELOOKUP_TIME_T, &lookup_us);
	r->lookup_ms = (uint64_t)lookup_us / 1000;
	r->certificates_end_ms = certificates_end_ms(t);
	r->retry_after_ms = retry_after_ms(t);
	r->duration_ms = loop_now_ms(t->client->loop) - t->started_ms;
	if (code == CURLE_OK)
		reception_end(&t->in);
	r->result = t->in.too_large ? HTTP_CLIENT_TOO_LARGE
		    : t->in.broken  ? HTTP_CLIENT_CODING
		    : t->in.fault   ? HTTP_CLIENT_PROTOCOL
				    : result_of(code, os_error);
	if (r->result == HTTP_CLIENT_OK)
		return;
	describe_transfer_failure(t, code);
	blame_host(r);
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
		curl_multi_remove_handle(t->client->multi, t->easy);
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
	curl_off_t sent_us = 0;

	if (now_ms - t->heard_ms < t->idle_ms) {
		loop_timer_set(t->client->loop, &t->idle, t->heard_ms + t->idle_ms);
		return;
	}
	curl_easy_getinfo(t->easy, CURLINFO_PRETRANSFER_TIME_T, &sent_us);
	r->sent = sent_us > 0;
	r->result = HTTP_CLIENT_TIMEOUT;
	r->retry_after_ms = HTTP_CLIENT_NO_ADVICE;
	r->duration_ms = now_ms - t->started_ms;
	snprintf(r->message, sizeof(r->message), "timed out: nothing came for %llu ms",
		(unsigned long long)t->idle_ms);
	curl_multi_remove_handle(t->client->multi, t->easy);
	t->done(t->arg, r);
	release_transfer(t);
}

static long at_least(uint64_t ms, uint64_t least)
{
	return (long)(ms < least ? least : ms > INT32_MAX ? INT32_MAX : ms);
}

/* Off the multi handle, to be added again. */
static void leave_multi(struct transfer *t)
{
	curl_multi_remove_handle(t->client->multi, t->easy);
	t->error[0] = '\0';
	t->sockets = 0;
	t->lost_one = false;
}

/* Starts again on a new connection if the old one was stale. */
static bool start_again(struct transfer *t)
{
	if (!connections_is_stale(&t->use))
		return false;
	leave_multi(t);
	return connections_renew(&t->use, loop_now_ms(t->client->loop)) &&
	       curl_multi_add_handle(t->client->multi, t->easy) == CURLM_OK;
}

/* Starts again over HTTP/1.1, in the time that is left. */
static bool start_over_http1(struct transfer *t)
{
	uint64_t spent_ms = loop_now_ms(t->client->loop) - t->started_ms;

	if (!t->in.endless || spent_ms >= t->timeout_ms)
		return false;
	reception_restart(&t->in);
	leave_multi(t);
	return connections_leave_http2(&t->use) == 0 &&
	       curl_easy_setopt(t->easy, CURLOPT_TIMEOUT_MS,
		       at_least(t->timeout_ms - spent_ms, 1)) == CURLE_OK &&
	       curl_multi_add_handle(t->client->multi, t->easy) == CURLM_OK;
}

/* Finishes the transfers that have ended. */
static void reap_transfers(struct http_client *client)
{
	struct CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(client->multi, &left))) {
		struct transfer *t = NULL;
		CURLcode code = m->data.result;

		if (m->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&t);
		if (start_again(t) || start_over_http1(t))
			continue;
		finish_response(t, code);
		connections_ended(
			&t->use, code == CURLE_OK, code == CURLE_OK || code == CURLE_WRITE_ERROR);
		/* off the multi handle, and the connection back, first: done() may start another
		 * transfer on it, or free us */
		curl_multi_remove_handle(client->multi, t->easy);
		connections_return(&t->use, loop_now_ms(client->loop));
		if (!t->in.stopped)
			t->done(t->arg, &t->in.response);
		release_transfer(t);
	}
}

static int add_request_header(struct transfer *t, const char *line)
{
	struct curl_slist *more = curl_slist_append(t->headers, line);

	if (!more)
		return -ENOMEM;
	t->headers = more;
	return 0;
}

/* A stream of lines is not coded: a decoder may hold lines back. */
static int add_request_headers(struct transfer *t, const struct http_client_request *q)
{
	int r = q->line ? 0 : add_request_header(t, "Accept-Encoding: gzip");

	for (size_t i = 0; r == 0 && q->headers && q->headers[i]; i++)
		r = add_request_header(t, q->headers[i]);
	return r;
}

/* Sets every option that safety depends on. 0 when libcurl took them all. */
static int set_safety_options(CURL *e)
{
	static const struct {
		CURLoption option;
		long value;
	} numbers[] = {
		{CURLOPT_NOSIGNAL, 1},
		{CURLOPT_QUICK_EXIT, 1},
		{CURLOPT_FOLLOWLOCATION, 0},
		{CURLOPT_UNRESTRICTED_AUTH, 0},
		{CURLOPT_SSL_VERIFYPEER, 1},
		{CURLOPT_SSL_VERIFYHOST, 2},
		{CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2},
		{CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2TLS},
		{CURLOPT_HTTP09_ALLOWED, 0},
		{CURLOPT_MAXAGE_CONN, CONNECTIONS_IDLE_S},
		{CURLOPT_MAXLIFETIME_CONN, CONNECTIONS_LIFE_S},
		{CURLOPT_DNS_CACHE_TIMEOUT, 60},
		{CURLOPT_CA_CACHE_TIMEOUT,
			CONNECTIONS_CA_CACHE_S}, /* then a rotated file is read */
		{CURLOPT_NETRC, CURL_NETRC_IGNORED},
		{CURLOPT_DISALLOW_USERNAME_IN_URL, 1},
		{CURLOPT_HTTP_CONTENT_DECODING, 0},
		{CURLOPT_HTTP_TRANSFER_DECODING, 0},
		{CURLOPT_TCP_NODELAY, 1},
		{CURLOPT_BUFFERSIZE, RECEIVED_AT_ONCE},
		{CURLOPT_TCP_KEEPALIVE, 1},
		{CURLOPT_TCP_KEEPIDLE, 30}, /* for long polls */
		{CURLOPT_TCP_KEEPINTVL, 10},
	};
	static const struct {
		CURLoption option;
		const char *value;
	} texts[] = {
		{CURLOPT_PROTOCOLS_STR, "http,https"},
		{CURLOPT_REDIR_PROTOCOLS_STR, "https"},
		{CURLOPT_PROXY, ""},
		{CURLOPT_NOPROXY, "*"},
		{CURLOPT_USERAGENT, "pullet/" PULLET_VERSION},
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (curl_easy_setopt(e, numbers[i].option, numbers[i].value))
			return -EINVAL;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (curl_easy_setopt(e, texts[i].option, texts[i].value))
			return -EINVAL;
	return 0;
}

/* Chooses a connection. Over HTTP/1.x without a place it closes behind the answer. */
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
	int r = connections_lend(t->client->connections, &t->use, t->easy, &request, t->started_ms);

	if (r == 0 && !connections_has_place(&t->use))
		r = add_request_header(t, "Connection: close");
	return r;
}

/* Skips what is NULL: libcurl's own default holds. */
static int set_text_options(CURL *e, const struct http_client_request *q)
{
	const struct {
		CURLoption option;
		const char *value;
	} texts[] = {
		{CURLOPT_UNIX_SOCKET_PATH, q->unix_socket},
		{CURLOPT_CAINFO, q->tls.ca},
		{CURLOPT_CRLFILE, q->tls.crl},
		{CURLOPT_SSLCERT, q->tls.cert},
		{CURLOPT_SSLKEY, q->tls.key},
		{CURLOPT_USERNAME, q->user},
		{CURLOPT_PASSWORD, q->password},
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].value && curl_easy_setopt(e, texts[i].option, texts[i].value))
			return -EINVAL;
	if (q->tls.only_1_3 && curl_easy_setopt(e, CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_3))
		return -EINVAL;
	if (q->user && curl_easy_setopt(e, CURLOPT_HTTPAUTH, CURLAUTH_BASIC))
		return -EINVAL;
	return 0;
}

static bool has_method(const struct http_client_request *q, const char *method)
{
	return q->method && strcmp(q->method, method) == 0;
}

static CURLcode set_body(CURL *e, const struct http_client_request *q)
{
	CURLcode bad = curl_easy_setopt(e, CURLOPT_POST, 1L);

	bad |= curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->body_len);
	bad |= curl_easy_setopt(e, CURLOPT_COPYPOSTFIELDS, q->body ? q->body : "");
	if (has_method(q, "PUT"))
		bad |= curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, "PUT");
	return bad;
}

static CURLcode set_time_limits(CURL *e, const struct http_client_request *q)
{
	CURLcode bad =
		curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, at_least(q->connect_timeout_ms, 1));

	if (q->line)
		return bad; /* our own timer: libcurl would wake up each second */
	return bad | curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, at_least(q->timeout_ms, 1));
}

static int set_request_options(struct transfer *t, const struct http_client_request *q)
{
	CURL *e = t->easy;
	CURLcode bad = set_time_limits(e, q);

	if (connections_left_http2(&t->use))
		bad |= curl_easy_setopt(e, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
	bad |= curl_easy_setopt(e, CURLOPT_URL, q->url);
	bad |= curl_easy_setopt(e, CURLOPT_PRIVATE, t);
	bad |= curl_easy_setopt(e, CURLOPT_ERRORBUFFER, t->error);
	bad |= curl_easy_setopt(e, CURLOPT_HTTPHEADER, t->headers);
	bad |= curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, take_body);
	bad |= curl_easy_setopt(e, CURLOPT_WRITEDATA, t);
	bad |= curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, take_header);
	bad |= curl_easy_setopt(e, CURLOPT_HEADERDATA, t);
	bad |= curl_easy_setopt(e, CURLOPT_CERTINFO, (long)t->client->examine);
	if (has_method(q, "POST") || has_method(q, "PUT"))
		bad |= set_body(e, q);
	return bad ? -EINVAL : set_text_options(e, q);
}

static int make_multi(struct http_client *t)
{
	CURLMcode bad = CURLM_OK;

	t->multi = curl_multi_init();
	if (!t->multi)
		return -ENOMEM;
	/* its wake-up pair comes without CLOEXEC too: marks all, as none may be inherited */
	close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
	bad |= curl_multi_setopt(t->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
	bad |= curl_multi_setopt(t->multi, CURLMOPT_SOCKETDATA, t);
	bad |= curl_multi_setopt(t->multi, CURLMOPT_TIMERFUNCTION, on_timer);
	bad |= curl_multi_setopt(t->multi, CURLMOPT_TIMERDATA, t);
	bad |= curl_multi_setopt(t->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, MAX_CONNECTIONS);
	bad |= curl_multi_setopt(t->multi, CURLMOPT_MAXCONNECTS, MAX_IDLE_CONNECTIONS);
	return bad ? -EINVAL : 0;
}

/* Replaces the multi handle, and so its idle connections. Without memory for a new one the old one
 * stays, and its dead connections cost a timeout each. */
static void renew_multi(struct http_client *t)
{
	CURLM *old = t->multi;

	if (make_multi(t)) {
		if (t->multi)
			curl_multi_cleanup(t->multi);
		t->multi = old;
		return;
	}
	curl_multi_cleanup(old);
	loop_timer_cancel(t->loop, &t->timer);
	t->forget = false;
}

int http_client_start(struct http_client *client, const struct http_client_request *q,
	http_client_done done, void *arg, struct transfer **ret_transfer)
{
	struct transfer *t = calloc(1, sizeof(*t));
	int r = -ENOMEM;

	if (!t)
		return -ENOMEM;
	if (client->forget && !client->transfers)
		renew_multi(client);
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
	r = add_request_headers(t, q);
	if (r == 0)
		r = lend_connection(t, q);
	if (r == 0)
		r = set_safety_options(t->easy);
	if (r == 0)
		r = set_request_options(t, q);
	if (r == 0 && curl_multi_add_handle(client->multi, t->easy))
		r = -EIO;
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
	loop_timer_init(&t->timer, timeout_due, t);
	t->waits = curl_version_info(CURLVERSION_NOW)->version_num < GOES_ON_BY_ITSELF;
	t->connections = connections_new(has_watched, t);
	if (curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK && t->connections &&
		make_multi(t) == 0)
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
	if (t->multi) {
		curl_multi_cleanup(t->multi);
		loop_timer_cancel(t->loop, &t->timer);
	}
	connections_free(t->connections);
	curl_global_cleanup();
	free(t);
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

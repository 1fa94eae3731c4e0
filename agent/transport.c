/*
 * libcurl's multi interface on the loop.
 *
 * Surprising: the size cap counts decoded bytes in the write callback, because CURLOPT_MAXFILESIZE
 * does nothing in the middle of a transfer before curl 8.4; and QUICK_EXIT is what makes cancelling
 * during a name look-up not block.
 */
#include "transport.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <linux/close_range.h>

#include <curl/curl.h>

#define MAX_CONNECTIONS 256L /* of all servers; each has its own limit of transfers */
#define MAX_IDLE_CONNECTIONS 64L

struct transport {
	struct loop *loop;
	CURLM *multi;
	struct loop_timer timer; /* libcurl's one timeout */
	struct transfer *transfers;
	bool forget;  /* the multi handle is to be made anew once it is idle */
	bool examine; /* the servers' certificates too */
};

struct transfer {
	struct transport *transport;
	struct transfer *next, **link;
	CURL *easy;
	struct curl_slist *headers;
	struct transport_response response;
	size_t max_bytes;
	bool too_large;
	transport_line line; /* NULL: the body is kept whole */
	bool in_line, cancelled;
	struct loop_timer idle; /* with line: nothing came for so long */
	uint64_t idle_ms, heard_ms;
	transport_done done;
	void *arg;
	uint64_t started_ms;
	char retry_after[64];
	char error[CURL_ERROR_SIZE];
};

/* ---- what libcurl calls ---- */

static bool keep(struct transfer *t, const char *data, size_t len)
{
	if (len > t->max_bytes - t->response.body.len) {
		t->too_large = true;
		return false;
	}
	return buffer_append(&t->response.body, data, len) == 0;
}

/* Hands out the lines that are whole now. */
static bool take_lines(struct transfer *t, const char *data, size_t len)
{
	const char *end;

	while ((end = memchr(data, '\n', len))) {
		if (!keep(t, data, (size_t)(end - data)))
			return false;
		len -= (size_t)(end - data) + 1;
		data = end + 1;
		t->in_line = true;
		t->line(t->arg, &t->response);
		t->in_line = false;
		if (t->cancelled)
			return false;
		t->response.body.len = 0;
	}
	return keep(t, data, len);
}

static size_t take_body(char *data, size_t size, size_t n, void *arg)
{
	struct transfer *t = arg;
	size_t len = size * n;

	t->heard_ms = loop_now_ms(t->transport->loop);
	if (t->line)
		curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &t->response.status);
	if (t->line && t->response.status == 200)
		return take_lines(t, data, len) ? len : 0;
	return keep(t, data, len) ? len : 0;
}

static void copy_value(char *to, size_t size, const char *value, size_t len)
{
	if (len < size) {
		memcpy(to, value, len);
		to[len] = '\0';
	} else {
		to[0] = '\0'; /* longer than anybody means it: as if it were not there */
	}
}

static void copy_type(char *to, size_t size, const char *value, size_t len)
{
	size_t n = 0;

	while (n < len && value[n] != ';' && value[n] != ' ')
		n++;
	copy_value(to, size, value, n);
	for (char *p = to; *p; p++)
		*p = (char)tolower((unsigned char)*p);
}

static void read_header(
	struct transfer *t, const char *name, size_t name_len, const char *value, size_t len)
{
	struct transport_response *r = &t->response;
	const struct {
		const char *name;
		char *to;
		size_t size;
	} copied[] = {
		{"etag", r->etag, sizeof(r->etag)},
		{"last-modified", r->last_modified, sizeof(r->last_modified)},
		{"repr-digest", r->digest, sizeof(r->digest)},
		{"digest", r->digest, sizeof(r->digest)},
		{"content-encoding", r->content_encoding, sizeof(r->content_encoding)},
		{"date", r->server_date, sizeof(r->server_date)},
		{"x-consul-index", r->consul_index, sizeof(r->consul_index)},
		{"x-consul-results-filtered-by-acls", r->filtered, sizeof(r->filtered)},
		{"content-md5", r->content_md5, sizeof(r->content_md5)},
		{"config-type", r->config_type, sizeof(r->config_type)},
		{"retry-after", t->retry_after, sizeof(t->retry_after)},
	};

	for (size_t i = 0; i < sizeof(copied) / sizeof(copied[0]); i++)
		if (strlen(copied[i].name) == name_len &&
			strncasecmp(copied[i].name, name, name_len) == 0)
			copy_value(copied[i].to, copied[i].size, value, len);
	if (name_len == 12 && strncasecmp(name, "content-type", 12) == 0)
		copy_type(r->content_type, sizeof(r->content_type), value, len);
	if (name_len == 14 && strncasecmp(name, "content-length", 14) == 0)
		r->framed = true;
	if (name_len == 17 && strncasecmp(name, "transfer-encoding", 17) == 0 && len >= 7 &&
		strncasecmp(value + len - 7, "chunked", 7) == 0)
		r->framed = true;
}

static size_t take_header(char *data, size_t size, size_t n, void *arg)
{
	struct transfer *t = arg;
	size_t len = size * n, end = len;
	const char *colon = memchr(data, ':', len);

	if (len >= 5 && memcmp(data, "HTTP/", 5) == 0) { /* a 1xx before it does not count */
		struct transport_response *r = &t->response;

		r->etag[0] = r->last_modified[0] = r->content_type[0] = r->content_encoding[0] =
			r->digest[0] = r->server_date[0] = r->consul_index[0] = r->filtered[0] =
				r->content_md5[0] = r->config_type[0] = t->retry_after[0] = '\0';
		r->framed = len >= 6 && data[5] >= '2'; /* HTTP/2 frames every body */
		return len;
	}
	if (!colon)
		return len;
	while (end > 0 && isspace((unsigned char)data[end - 1]))
		end--;
	for (size_t v = (size_t)(colon - data) + 1;; v++) {
		if (v < end && isspace((unsigned char)data[v]))
			continue;
		read_header(t, data, (size_t)(colon - data), data + (v < end ? v : end),
			v < end ? end - v : 0);
		return len;
	}
}

/* libcurl 7.88 opens sockets without CLOEXEC. */
static curl_socket_t open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
	(void)arg, (void)purpose;
	return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static void reap(struct transport *transport);

static void act(struct transport *t, curl_socket_t fd, int mask)
{
	int running;

	curl_multi_socket_action(t->multi, fd, mask, &running);
	reap(t);
}

static void socket_ready(void *arg, int fd, unsigned events)
{
	act(arg, fd,
		(events & LOOP_READ ? CURL_CSELECT_IN : 0) |
			(events & LOOP_WRITE ? CURL_CSELECT_OUT : 0));
}

static void timeout_due(void *arg)
{
	act(arg, CURL_SOCKET_TIMEOUT, 0);
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *watch_arg)
{
	struct transport *t = arg;
	struct loop_watch *w = watch_arg;
	unsigned events = what == CURL_POLL_IN    ? LOOP_READ
			  : what == CURL_POLL_OUT ? LOOP_WRITE
						  : LOOP_READ | LOOP_WRITE;

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		if (w) {
			loop_unwatch(w);
			free(w);
			curl_multi_assign(t->multi, fd, NULL);
		}
		return 0;
	}
	if (!w) {
		w = calloc(1, sizeof(*w));
		if (!w)
			return -1;
		curl_multi_assign(t->multi, fd, w);
	}
	return loop_watch(t->loop, w, fd, events, socket_ready, t) ? -1 : 0;
}

static int on_timer(CURLM *multi, long timeout_ms, void *arg)
{
	struct transport *t = arg;

	(void)multi;
	if (timeout_ms < 0)
		loop_timer_cancel(t->loop, &t->timer);
	else
		loop_timer_set(t->loop, &t->timer, loop_now_ms(t->loop) + (uint64_t)timeout_ms);
	return 0;
}

/* ---- results ---- */

static enum transport_result result_of(CURLcode code, long os_error)
{
	static const struct {
		CURLcode code;
		enum transport_result result;
	} table[] = {
		{CURLE_OPERATION_TIMEDOUT, TRANSPORT_TIMEOUT},
		{CURLE_COULDNT_RESOLVE_HOST, TRANSPORT_NETWORK},
		{CURLE_COULDNT_RESOLVE_PROXY, TRANSPORT_NETWORK},
		{CURLE_PARTIAL_FILE, TRANSPORT_NETWORK},
		{CURLE_GOT_NOTHING, TRANSPORT_NETWORK},
		{CURLE_SEND_ERROR, TRANSPORT_NETWORK},
		{CURLE_RECV_ERROR, TRANSPORT_NETWORK},
		{CURLE_HTTP2, TRANSPORT_NETWORK},
		{CURLE_HTTP2_STREAM, TRANSPORT_NETWORK},
		{CURLE_SSL_CONNECT_ERROR, TRANSPORT_TLS},
		{CURLE_PEER_FAILED_VERIFICATION, TRANSPORT_TLS},
		{CURLE_SSL_CERTPROBLEM, TRANSPORT_HOST},
		{CURLE_SSL_CLIENTCERT, TRANSPORT_TLS},
		{CURLE_SSL_CIPHER, TRANSPORT_TLS},
		{CURLE_SSL_CACERT_BADFILE, TRANSPORT_HOST},
		{CURLE_SSL_CRL_BADFILE, TRANSPORT_HOST},
		{CURLE_SSL_ISSUER_ERROR, TRANSPORT_TLS},
		{CURLE_SSL_INVALIDCERTSTATUS, TRANSPORT_TLS},
		{CURLE_SSL_ENGINE_NOTFOUND, TRANSPORT_TLS},
	};

	if (code == CURLE_OK)
		return TRANSPORT_OK;
	if (code == CURLE_COULDNT_CONNECT)
		return os_error == ECONNREFUSED ? TRANSPORT_REFUSED : TRANSPORT_NETWORK;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].code == code)
			return table[i].result;
	return TRANSPORT_PROTOCOL;
}

/* Seconds or a date; of a date, the distance from the server's own. What is past or cannot be read
 * still says that the server wants to be left alone: 0. */
static uint64_t advice_ms(const struct transfer *t)
{
	const char *text = t->retry_after;
	size_t digits = strspn(text, "0123456789");
	time_t then, now;

	if (!text[0])
		return TRANSPORT_NO_ADVICE;
	if (!text[digits])
		return digits > 9 ? UINT32_MAX * UINT64_C(1000)
				  : strtoul(text, NULL, 10) * UINT64_C(1000);
	then = curl_getdate(text, NULL);
	now = curl_getdate(t->response.server_date, NULL);
	if (now < 0)
		now = (time_t)(loop_sys(t->transport->loop)->wall_ms() / 1000);
	return then > now ? (uint64_t)(then - now) * 1000 : 0;
}

/* What an operator is to do about what libcurl and OpenSSL say; "" = it says all. */
static const char *advice_for(const char *said)
{
	static const struct {
		const char *part, *advice;
	} table[] = {
		{"Could not resolve host",
			"check the name in the url, and this host's resolver (/etc/resolv.conf)"},
		{"Couldn't connect to server", "check the address, and firewalls on the way to it"},
		{"Empty reply from server",
			"it closed the connection without an answer: look at its log"},
		{"certificate has expired",
			"the server needs a new one, or the clock of this host is wrong"},
		{"certificate is not yet valid", "is the clock of this host right?"},
		{"target host name", "the server's certificate is for another name than the url's"},
		{"unable to get local issuer",
			"name the authority that signed the server's certificate in tls.ca (or the "
			"server leaves out the certificates in between)"},
		{"self-signed certificate", "if it is the right one, name it in tls.ca"},
		{"certificate purpose", "the server's certificate is not one for servers"},
		{"too weak", "the server needs a certificate with a longer key"},
		{"get certificate CRL",
			"tls.crl has no list of an authority in the server's chain"},
		{"CRL has expired", "put a newer list into tls.crl"},
		{"alert protocol version",
			"the server speaks no version of TLS from tls.min_version on (1.2, unless "
			"set)"},
		{"unsupported protocol",
			"the server speaks no version of TLS from tls.min_version on (1.2, unless "
			"set)"},
		{"wrong version number",
			"the server does not speak TLS at this port: should the url begin with "
			"http://?"},
		{"alert certificate required",
			"the server wants a certificate of this host: set tls.cert and tls.key"},
		{"alert handshake failure",
			"the server wants a certificate of this host (tls.cert, tls.key), or "
			"ciphers that are not allowed here"},
		{"alert unknown ca",
			"the server does not know the authority of this host's certificate "
			"(tls.cert)"},
		{"alert certificate expired", "this host's certificate (tls.cert) needs renewing"},
		/* so libcurl calls that alert in the middle of a handshake */
		{"SSL certificate verification failed",
			"the server says that this host's certificate (tls.cert) has expired"},
		{"alert bad certificate", "the server refuses this host's certificate (tls.cert)"},
		{"alert unsupported certificate",
			"the server refuses this host's certificate (tls.cert)"},
		{"alert certificate revoked", "this host's certificate (tls.cert) was revoked"},
		{"alert certificate unknown",
			"the server refuses this host's certificate (tls.cert)"},
		{"SSL_ERROR_SYSCALL",
			"the server closed the connection in the middle of the TLS handshake"},
		{"getpeername() failed", "the server closed the connection at once: it may want a "
					 "certificate of this host, or refuse it (tls.cert)"},
		{"error setting certificate file",
			"tls.ca cannot be read, or holds no certificate in PEM (if it is not set: "
			"mend SSL_CERT_FILE, or install ca-certificates)"},
		{"error loading CRL file", "tls.crl cannot be read, or holds no list in PEM"},
		{"unable to set private key",
			"it cannot be read, or is not the key of tls.cert (tls.key)"},
		{"load PEM client certificate", "tls.cert cannot be read, or is not PEM"},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (strstr(said, table[i].part))
			return table[i].advice;
	return "";
}

/* libcurl's own words, and what to do. */
static void explain(struct transfer *t, CURLcode code)
{
	struct transport_response *r = &t->response;
	const char *said = t->error[0] ? t->error : curl_easy_strerror(code);
	const char *advice = advice_for(said);

	snprintf(r->message, sizeof(r->message), "%.*s%s%s",
		(int)(sizeof(r->message) - strlen(advice) - sizeof(": ")), said,
		advice[0] ? ": " : "", advice);
}

/* "Expire date:Feb  1 00:00:00 2027 GMT" is one of the lines that libcurl makes of each. */
static int64_t certificates_end_ms(const struct transfer *t)
{
	static const char name[] = "Expire date:";
	struct curl_certinfo *info = NULL;
	int64_t first_ms = 0, ms;

	if (!t->transport->examine || curl_easy_getinfo(t->easy, CURLINFO_CERTINFO, &info) || !info)
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

static void finish_response(struct transfer *t, CURLcode code)
{
	struct transport_response *r = &t->response;
	long os_error = 0;
	curl_off_t sent_us = 0, lookup_us = 0;

	curl_easy_getinfo(t->easy, CURLINFO_OS_ERRNO, &os_error);
	curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &r->status);
	curl_easy_getinfo(t->easy, CURLINFO_PRETRANSFER_TIME_T, &sent_us);
	r->sent = sent_us > 0;
	curl_easy_getinfo(t->easy, CURLINFO_NAMELOOKUP_TIME_T, &lookup_us);
	r->lookup_ms = (uint64_t)lookup_us / 1000;
	r->certificates_end_ms = certificates_end_ms(t);
	r->retry_after_ms = advice_ms(t);
	r->duration_ms = loop_now_ms(t->transport->loop) - t->started_ms;
	r->result = t->too_large ? TRANSPORT_TOO_LARGE : result_of(code, os_error);
	if (r->result == TRANSPORT_OK)
		return;
	if (r->result == TRANSPORT_TOO_LARGE)
		snprintf(r->message, sizeof(r->message),
			"the body is larger than the limit of %zu bytes", t->max_bytes);
	else if (r->result == TRANSPORT_REFUSED)
		snprintf(r->message, sizeof(r->message),
			"connection refused: is the server running?");
	else if (r->result == TRANSPORT_TIMEOUT)
		snprintf(r->message, sizeof(r->message), "timed out: %s",
			t->error[0] ? t->error : curl_easy_strerror(code));
	else if (code == CURLE_PARTIAL_FILE)
		snprintf(r->message, sizeof(r->message), "the body was cut short: %s", t->error);
	else
		explain(t, code);
}

/* ---- transfers ---- */

static void release(struct transfer *t)
{
	*t->link = t->next;
	if (t->next)
		t->next->link = t->link;
	loop_timer_cancel(t->transport->loop, &t->idle);
	if (t->easy) {
		curl_multi_remove_handle(t->transport->multi, t->easy);
		curl_easy_cleanup(t->easy);
	}
	curl_slist_free_all(t->headers);
	buffer_fini(&t->response.body);
	free(t);
}

/* A stream of lines is silent. */
static void idle_due(void *arg)
{
	struct transfer *t = arg;
	struct transport_response *r = &t->response;
	uint64_t now_ms = loop_now_ms(t->transport->loop);
	curl_off_t sent_us = 0;

	if (now_ms - t->heard_ms < t->idle_ms) {
		loop_timer_set(t->transport->loop, &t->idle, t->heard_ms + t->idle_ms);
		return;
	}
	curl_easy_getinfo(t->easy, CURLINFO_PRETRANSFER_TIME_T, &sent_us);
	r->sent = sent_us > 0;
	r->result = TRANSPORT_TIMEOUT;
	r->retry_after_ms = TRANSPORT_NO_ADVICE;
	r->duration_ms = now_ms - t->started_ms;
	snprintf(r->message, sizeof(r->message), "timed out: nothing came for %llu ms",
		(unsigned long long)t->idle_ms);
	curl_multi_remove_handle(t->transport->multi, t->easy);
	t->done(t->arg, r);
	release(t);
}

/* Tells the transfers that have ended. */
static void reap(struct transport *transport)
{
	struct CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(transport->multi, &left))) {
		struct transfer *t = NULL;
		CURLcode code = m->data.result;

		if (m->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&t);
		finish_response(t, code);
		/* off the multi handle first: done() may start another transfer on the same
		 * connection, or free us */
		curl_multi_remove_handle(transport->multi, t->easy);
		if (!t->cancelled)
			t->done(t->arg, &t->response);
		release(t);
	}
}

static int add_headers(struct transfer *t, const struct transport_request *q)
{
	struct curl_slist *more;

	for (size_t i = 0; q->headers && q->headers[i]; i++) {
		more = curl_slist_append(t->headers, q->headers[i]);
		if (!more)
			return -ENOMEM;
		t->headers = more;
	}
	return 0;
}

/* Every option that safety depends on. 0 when libcurl took them all. */
static int set_safety(CURL *e)
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
		{CURLOPT_MAXAGE_CONN, 118},
		{CURLOPT_MAXLIFETIME_CONN, 3600},
		{CURLOPT_DNS_CACHE_TIMEOUT, 60},
		{CURLOPT_CA_CACHE_TIMEOUT, 60}, /* a rotated file is read within a minute */
		{CURLOPT_NETRC, CURL_NETRC_IGNORED},
		{CURLOPT_DISALLOW_USERNAME_IN_URL, 1},
		{CURLOPT_TCP_NODELAY, 1},
		{CURLOPT_TCP_KEEPALIVE, 1},
		{CURLOPT_TCP_KEEPIDLE, 30}, /* for answers that are waited for */
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
		{CURLOPT_ACCEPT_ENCODING, "gzip"},
		{CURLOPT_USERAGENT, "pullet/" PULLET_VERSION},
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (curl_easy_setopt(e, numbers[i].option, numbers[i].value))
			return -EINVAL;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (curl_easy_setopt(e, texts[i].option, texts[i].value))
			return -EINVAL;
	return curl_easy_setopt(e, CURLOPT_OPENSOCKETFUNCTION, open_socket) ? -EINVAL : 0;
}

static long at_least(uint64_t ms, uint64_t least)
{
	return (long)(ms < least ? least : ms > INT32_MAX ? INT32_MAX : ms);
}

/* Nothing is set that is NULL: libcurl's own default stands. */
static int set_texts(CURL *e, const struct transport_request *q)
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

static bool is_method(const struct transport_request *q, const char *method)
{
	return q->method && strcmp(q->method, method) == 0;
}

static CURLcode set_body(CURL *e, const struct transport_request *q)
{
	CURLcode bad = curl_easy_setopt(e, CURLOPT_POST, 1L);

	bad |= curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->body_len);
	bad |= curl_easy_setopt(e, CURLOPT_COPYPOSTFIELDS, q->body ? q->body : "");
	if (is_method(q, "PUT"))
		bad |= curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, "PUT");
	return bad;
}

static CURLcode set_limits(CURL *e, const struct transport_request *q)
{
	uint64_t idle_ms = q->idle_ms ? q->idle_ms : q->timeout_ms / 2;
	CURLcode bad = CURLE_OK;

	bad |= curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, at_least(q->connect_timeout_ms, 1));
	if (q->line)
		return bad; /* our own timer: libcurl would wake up each second to look */
	bad |= curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, at_least(q->timeout_ms, 1));
	if (idle_ms >= q->timeout_ms)
		return bad; /* the same for what the total covers */
	bad |= curl_easy_setopt(e, CURLOPT_LOW_SPEED_LIMIT, 100L);
	bad |= curl_easy_setopt(e, CURLOPT_LOW_SPEED_TIME, at_least(idle_ms / 1000, 1));
	return bad;
}

static int set_request(struct transfer *t, const struct transport_request *q)
{
	CURL *e = t->easy;
	CURLcode bad = set_limits(e, q);

	bad |= curl_easy_setopt(e, CURLOPT_URL, q->url);
	bad |= curl_easy_setopt(e, CURLOPT_PRIVATE, t);
	bad |= curl_easy_setopt(e, CURLOPT_ERRORBUFFER, t->error);
	bad |= curl_easy_setopt(e, CURLOPT_HTTPHEADER, t->headers);
	bad |= curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, take_body);
	bad |= curl_easy_setopt(e, CURLOPT_WRITEDATA, t);
	bad |= curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, take_header);
	bad |= curl_easy_setopt(e, CURLOPT_HEADERDATA, t);
	bad |= curl_easy_setopt(e, CURLOPT_FRESH_CONNECT, (long)q->alone);
	bad |= curl_easy_setopt(e, CURLOPT_FORBID_REUSE, (long)q->alone);
	bad |= curl_easy_setopt(e, CURLOPT_CERTINFO, (long)t->transport->examine);
	if (is_method(q, "POST") || is_method(q, "PUT"))
		bad |= set_body(e, q);
	return bad ? -EINVAL : set_texts(e, q);
}

static int make_multi(struct transport *t)
{
	CURLMcode bad = CURLM_OK;

	t->multi = curl_multi_init();
	if (!t->multi)
		return -ENOMEM;
	/* its wake-up pair comes without CLOEXEC too; nothing of ours is to be inherited, so all
	 * are marked */
	close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
	bad |= curl_multi_setopt(t->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
	bad |= curl_multi_setopt(t->multi, CURLMOPT_SOCKETDATA, t);
	bad |= curl_multi_setopt(t->multi, CURLMOPT_TIMERFUNCTION, on_timer);
	bad |= curl_multi_setopt(t->multi, CURLMOPT_TIMERDATA, t);
	bad |= curl_multi_setopt(t->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, MAX_CONNECTIONS);
	bad |= curl_multi_setopt(t->multi, CURLMOPT_MAXCONNECTS, MAX_IDLE_CONNECTIONS);
	return bad ? -EINVAL : 0;
}

/* The connections kept alive belong to the multi handle: they go with it. If no new one can be made
 * the old one stays, and its dead connections cost a timeout each. */
static void renew(struct transport *t)
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

int transport_start(struct transport *transport, const struct transport_request *q,
	transport_done done, void *arg, struct transfer **ret_transfer)
{
	struct transfer *t = calloc(1, sizeof(*t));
	int r = -ENOMEM;

	if (!t)
		return -ENOMEM;
	if (transport->forget && !transport->transfers)
		renew(transport);
	t->transport = transport;
	t->max_bytes = q->max_bytes;
	t->line = q->line;
	t->idle_ms = q->idle_ms;
	loop_timer_init(&t->idle, idle_due, t);
	t->done = done;
	t->arg = arg;
	t->started_ms = loop_now_ms(transport->loop);
	buffer_init(&t->response.body, q->max_bytes);
	t->next = transport->transfers;
	t->link = &transport->transfers;
	if (t->next)
		t->next->link = &t->next;
	transport->transfers = t;

	t->easy = curl_easy_init();
	if (!t->easy)
		goto fail;
	r = add_headers(t, q);
	if (r == 0)
		r = set_safety(t->easy);
	if (r == 0)
		r = set_request(t, q);
	if (r == 0 && curl_multi_add_handle(transport->multi, t->easy))
		r = -EIO;
	if (r)
		goto fail;
	t->heard_ms = t->started_ms;
	if (t->line)
		loop_timer_set(transport->loop, &t->idle, t->heard_ms + t->idle_ms);
	*ret_transfer = t;
	return 0;
fail:
	release(t);
	return r;
}

void transport_cancel(struct transfer *t)
{
	t->cancelled = true;
	if (!t->in_line) /* else libcurl has it: it ends when the call returns */
		release(t);
}

/* ---- the transport ---- */

struct transport *transport_new(struct loop *l)
{
	struct transport *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->loop = l;
	loop_timer_init(&t->timer, timeout_due, t);
	if (curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK && make_multi(t) == 0)
		return t;
	transport_free(t);
	return NULL;
}

void transport_free(struct transport *t)
{
	if (!t)
		return;
	while (t->transfers)
		release(t->transfers);
	if (t->multi) {
		curl_multi_cleanup(t->multi);
		loop_timer_cancel(t->loop, &t->timer);
	}
	curl_global_cleanup();
	free(t);
}

void transport_forget(struct transport *t)
{
	t->forget = true;
}

void transport_examine(struct transport *t)
{
	t->examine = true;
}

const char *transport_version(void)
{
	return curl_version();
}

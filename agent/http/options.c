#include "http/options.h"

#include <errno.h>
#include <string.h>

#include "http/connections.h"

#define RECEIVED_AT_ONCE 4096L /* bytes; libcurl does it 100 times before others have a turn */

static int add_header(struct curl_slist **headers, const char *line)
{
	struct curl_slist *more = curl_slist_append(*headers, line);

	if (!more)
		return -ENOMEM;
	*headers = more;
	return 0;
}

/* A stream of lines is not coded: a decoder may hold lines back. */
static int add_headers(
	struct curl_slist **headers, const struct http_client_request *q, bool closes)
{
	int r = q->line ? 0 : add_header(headers, "Accept-Encoding: gzip");

	for (size_t i = 0; r == 0 && q->headers && q->headers[i]; i++)
		r = add_header(headers, q->headers[i]);
	if (r == 0 && closes)
		r = add_header(headers, "Connection: close");
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
	/* what a user named is a part of the path: "." is a name there */
	if (q->unix_socket && curl_easy_setopt(e, CURLOPT_PATH_AS_IS, 1L))
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

static long milliseconds(uint64_t ms)
{
	return (long)(ms < 1 ? 1 : ms > INT32_MAX ? INT32_MAX : ms);
}

CURLcode options_limit_time(CURL *easy, uint64_t ms)
{
	return curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, milliseconds(ms));
}

static CURLcode set_time_limits(CURL *e, const struct http_client_request *q)
{
	CURLcode bad =
		curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(q->connect_timeout_ms));

	if (q->line)
		return bad; /* our own timer: libcurl would wake up each second */
	return bad | options_limit_time(e, q->timeout_ms);
}

int options_set(
	CURL *easy, const struct http_client_request *q, bool closes, struct curl_slist **headers)
{
	CURLcode bad;
	int r = add_headers(headers, q, closes);

	if (r == 0)
		r = set_safety_options(easy);
	if (r)
		return r;
	bad = set_time_limits(easy, q);
	bad |= curl_easy_setopt(easy, CURLOPT_URL, q->url);
	bad |= curl_easy_setopt(easy, CURLOPT_HTTPHEADER, *headers);
	if (has_method(q, "POST") || has_method(q, "PUT"))
		bad |= set_body(easy, q);
	return bad ? -EINVAL : set_text_options(easy, q);
}

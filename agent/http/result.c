#include "http/result.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/descriptors.h"
#include "base/sys.h"
#include "files/file.h"
#include "http/advice.h"

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
static uint64_t retry_after_ms(const struct http_client_response *r, const struct sys *sys)
{
	const char *text = r->retry_after;
	size_t digits = strspn(text, "0123456789");
	time_t then, now;

	if (!text[0])
		return HTTP_CLIENT_NO_ADVICE;
	if (!text[digits])
		return digits > 9 ? UINT32_MAX * UINT64_C(1000)
				  : strtoul(text, NULL, 10) * UINT64_C(1000);
	then = curl_getdate(text, NULL);
	now = curl_getdate(r->server_date, NULL);
	if (now < 0)
		now = (time_t)(sys->wall_ms() / 1000);
	return then > now ? (uint64_t)(then - now) * 1000 : 0;
}

/* Joins libcurl's text and the remedy. */
static void explain_curl_error(
	struct http_client_response *r, const struct result_of_curl *c, const char *begin)
{
	const char *said = c->error[0] ? c->error : curl_easy_strerror(c->code);
	const char *advice;
	long verify_result = 0;

	curl_easy_getinfo(c->easy, CURLINFO_SSL_VERIFYRESULT, &verify_result);
	advice = advice_find(c->code, verify_result, said);
	snprintf(r->message, sizeof(r->message), "%s%.*s%s%s", begin,
		(int)(sizeof(r->message) - strlen(begin) - strlen(advice) - sizeof(": ")), said,
		advice[0] ? ": " : "", advice);
}

/* "Expire date:Feb  1 00:00:00 2027 GMT" is one of the lines that libcurl makes of each. */
static int64_t certificates_end_ms(CURL *easy)
{
	static const char name[] = "Expire date:";
	struct curl_certinfo *info = NULL;
	int64_t first_ms = 0, ms;

	if (curl_easy_getinfo(easy, CURLINFO_CERTINFO, &info) || !info)
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

static void describe_failure(struct reception *in, const struct result_of_curl *c)
{
	struct http_client_response *r = &in->response;

	if (r->result == HTTP_CLIENT_TOO_LARGE)
		snprintf(r->message, sizeof(r->message), HTTP_CLIENT_SAYS_TOO_LARGE, in->max_bytes);
	else if (in->fault)
		snprintf(r->message, sizeof(r->message), HTTP_CLIENT_SAYS_MALFORMED, "", in->fault);
	else if (r->result == HTTP_CLIENT_REFUSED)
		snprintf(r->message, sizeof(r->message),
			"connection refused: is the server running?");
	else if (r->result == HTTP_CLIENT_TIMEOUT)
		explain_curl_error(r, c, "timed out: ");
	else if (c->code == CURLE_PARTIAL_FILE)
		snprintf(r->message, sizeof(r->message), "the body was cut short: %s", c->error);
	else
		explain_curl_error(r, c, "");
}

/* There was no connection: it may be this host that has no socket, which libcurl does not tell. */
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

bool result_has_reached(CURL *easy, CURLINFO moment)
{
	curl_off_t at_us = 0;

	curl_easy_getinfo(easy, moment, &at_us);
	return at_us > 0;
}

bool result_was_sent(CURL *easy)
{
	return result_has_reached(easy, CURLINFO_PRETRANSFER_TIME_T);
}

const char *result_waits_for(CURL *easy, bool connected)
{
	static const struct {
		CURLINFO reached;
		const char *next;
	} table[] = {
		{CURLINFO_STARTTRANSFER_TIME_T,
			"the answer came in part: the server or the way to it is slow"},
		{CURLINFO_PRETRANSFER_TIME_T,
			"the server has taken the request, and does not answer"},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (result_has_reached(easy, table[i].reached))
			return table[i].next;
	if (!result_has_reached(easy, CURLINFO_NAMELOOKUP_TIME_T))
		return ADVICE_RESOLVER;
	/* libcurl's time of the connection is that of the handshake's end */
	return connected ? "the server does not end the TLS handshake"
			 : "no connection: the host is down, or a firewall is on the way";
}

void result_take(struct reception *in, const struct result_of_curl *c, const struct sys *sys)
{
	struct http_client_response *r = &in->response;
	long os_error = 0;
	curl_off_t lookup_us = 0;

	curl_easy_getinfo(c->easy, CURLINFO_OS_ERRNO, &os_error);
	curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &r->status);
	r->sent = result_was_sent(c->easy);
	curl_easy_getinfo(c->easy, CURLINFO_NAMELOOKUP_TIME_T, &lookup_us);
	r->lookup_ms = (uint64_t)lookup_us / 1000;
	r->certificates_end_ms = certificates_end_ms(c->easy);
	r->retry_after_ms = retry_after_ms(r, sys);
	if (c->code == CURLE_OK)
		reception_end(in);
	r->result = in->too_large ? HTTP_CLIENT_TOO_LARGE
		    : in->broken  ? HTTP_CLIENT_CODING
		    : in->fault   ? HTTP_CLIENT_PROTOCOL
				  : result_of(c->code, os_error);
	if (r->result == HTTP_CLIENT_OK)
		return;
	describe_failure(in, c);
	blame_host(r);
}

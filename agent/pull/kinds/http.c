/*
 * Any web server: a conditional GET, and the document is the body.
 *
 * Surprising: a request names a version (If-None-Match) only when it is held, verified and from
 * this very address, so that a 304 never means one that the agent does not have.
 */
#include "pull/kinds/kind.h"

#include <string.h>
#include <time.h>

/* A document that was modified so shortly before its answer may be modified again without another
 * Last-Modified. One second is what its clock shows (RFC 9110, 8.8.2.2); one more, because a kernel
 * stamps files by a clock that is up to 10 ms late, and FAT counts two seconds at a time. */
#define SETTLED_S 2

static int http_build(const struct kind_place *place, struct kind_request *r, char why[FILE_WHY])
{
	const struct part *held = place->same_address ? kind_held(place) : NULL;
	int e = buffer_printf(&r->url, "%s%s", place->base, place->path);

	(void)why;
	if (e == 0 && held && kind_is_etag(held->etag))
		e = kind_header(r, "If-None-Match: %s", held->etag);
	if (e == 0 && held && held->last_modified[0])
		e = kind_header(r, "If-Modified-Since: %s", held->last_modified);
	r->conditional = r->header_count > 0;
	r->basic = true;
	return e;
}

/* 0 or more, or -1. Only the form that servers must send counts, no older one. */
static time_t date_of(const char *text)
{
	struct tm tm = {0};
	const char *end = strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &tm);

	return end && *end == '\0' ? timegm(&tm) : -1;
}

/* Many servers make the ETag from the time, too (nginx: seconds and length), so that neither tells
 * two changes of one second apart: then the next request asks for the whole document again. */
static void keep_validators(const struct http_client_response *r, struct kind_answer *a)
{
	time_t modified = date_of(r->last_modified), sent = date_of(r->server_date);
	char *v = a->version;
	size_t len = strlen(v);

	if (!r->last_modified[0] || (modified >= 0 && sent >= modified + SETTLED_S))
		return;
	a->last_modified[0] = '\0';
	if (!kind_is_etag(v) || sent < 0 || modified < 0)
		return;
	v[len - 1] = '\0';
	memmove(v, strchr(v, '"') + 1, strlen(strchr(v, '"')));
}

static enum kind_verdict http_read(const struct kind_place *place,
	const struct http_client_response *response, struct kind_answer *ret)
{
	enum kind_verdict verdict;

	if (response->status != 200)
		return KIND_USUAL;
	verdict = kind_document(place, response, ret);
	keep_validators(response, ret);
	return verdict;
}

static enum kind_verdict http_read_file(const struct kind_place *place,
	const struct http_client_response *response, struct kind_answer *ret)
{
	return response->message[0] ? kind_fail(ret, KIND_CAUSE_ANSWER, "%s", response->message)
				    : http_read(place, response, ret);
}

const struct kind kind_http = {.name = "http", .build = http_build, .read = http_read};
/* A file of this host answers like a web server: pull/exchange.c reads it in place of a transfer.
 */
const struct kind kind_file = {
	.name = "file", .local = true, .build = http_build, .read = http_read_file};

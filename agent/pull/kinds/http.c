/*
 * Any web server: a conditional GET, and the document is the body.
 *
 * Surprising: a version is only named in the request (If-None-Match) when it is held, verified and
 * came from this very address, so that a 304 can never stand for something the agent does not have.
 */
#include "pull/kinds/kind.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* A document that was modified so shortly before its answer may be modified again without another
 * Last-Modified. One second is what its clock shows (RFC 9110, 8.8.2.2); one more, because a kernel
 * stamps files by a clock that is up to 10 ms late, and FAT counts two seconds at a time. */
#define SETTLED_S 2

static int build(const struct kind_place *place, struct kind_request *r, char why[FILE_WHY])
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

/* 0 or more, or -1. Only the form that servers must send: an older one is as if it were not there.
 */
static time_t date_of(const char *text)
{
	struct tm tm = {0};
	const char *end = strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &tm);

	return end && *end == '\0' ? timegm(&tm) : -1;
}

/* Many servers make the ETag of the time, too (nginx: seconds and length), so that neither tells
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

static enum kind_verdict read_answer(const struct kind_place *place,
	const struct http_client_response *response, struct kind_answer *ret,
	enum kind_cause *ret_cause, char why[FILE_WHY])
{
	enum kind_verdict verdict;

	if (response->status != 200)
		return KIND_USUAL;
	verdict = kind_document(place, response, ret, ret_cause, why);
	keep_validators(response, ret);
	return verdict;
}

/* Of a file that is none. */
static enum kind_verdict read_file(const struct kind_place *place,
	const struct http_client_response *response, struct kind_answer *ret,
	enum kind_cause *ret_cause, char why[FILE_WHY])
{
	if (!response->message[0])
		return read_answer(place, response, ret, ret_cause, why);
	*ret_cause = KIND_CAUSE_ANSWER;
	snprintf(why, FILE_WHY, "%s", response->message);
	return KIND_FAILED;
}

const struct kind kind_http = {.name = "http", .build = build, .read = read_answer};
/* A file of this host answers like a web server: pull/exchange.c reads it in place of a transfer.
 */
const struct kind kind_file = {.name = "file", .local = true, .build = build, .read = read_file};

/*
 * Any web server: a conditional GET, and the document is the body.
 *
 * Surprising: a version is only named in the request (If-None-Match) when it is held, verified and
 * came from this very address, so that a 304 can never stand for something the agent does not have.
 */
#include "../kind.h"

#include <stdio.h>

static int build(const struct kind_place *place, struct kind_request *r, char why[FILE_WHY])
{
	const struct part *held = place->same_address ? place->held : NULL;
	int e = buffer_printf(&r->url, "%s%s", place->base, place->path);

	(void)why;
	if (e == 0 && held && held->etag[0])
		e = kind_header(r, "If-None-Match: %s", held->etag);
	if (e == 0 && held && held->last_modified[0])
		e = kind_header(r, "If-Modified-Since: %s", held->last_modified);
	r->conditional = r->header_count > 0;
	r->basic = true;
	return e;
}

static enum kind_verdict read_answer(const struct kind_place *place,
	const struct transport_response *response, struct kind_answer *ret,
	enum kind_cause *ret_cause, char why[FILE_WHY])
{
	return response->status == 200 ? kind_document(place, response, ret, ret_cause, why)
				       : KIND_USUAL;
}

/* Of a file that is none. */
static enum kind_verdict read_file(const struct kind_place *place,
	const struct transport_response *response, struct kind_answer *ret,
	enum kind_cause *ret_cause, char why[FILE_WHY])
{
	if (!response->message[0])
		return read_answer(place, response, ret, ret_cause, why);
	*ret_cause = KIND_CAUSE_ANSWER;
	snprintf(why, FILE_WHY, "%s", response->message);
	return KIND_FAILED;
}

const struct kind kind_http = {.name = "http", .build = build, .read = read_answer};
/* A file of this host answers like a web server: exchange.c reads it in place of a transfer. */
const struct kind kind_file = {.name = "file", .local = true, .build = build, .read = read_file};

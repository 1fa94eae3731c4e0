/*
 * gzip bodies after their transfer. Surprising: the client has decoded the first 64 KiB already,
 * to see that there is more; that is thrown away, for it costs less than to carry a decoder from
 * thread to thread.
 */
#include "http/unpack.h"

#include <errno.h>
#include <stdio.h>

#include "http/gunzip.h"

static int decode(struct http_client_response *r, const char **ret_why)
{
	struct gunzip *g = gunzip_new();
	int e = g ? gunzip_put(g, r->coded.data, r->coded.len, &r->body, ret_why) : -ENOMEM;

	if (e == 0)
		e = gunzip_end(g, ret_why);
	gunzip_free(g);
	return e;
}

void unpack_body(struct http_client_response *r)
{
	const char *why = "";
	int e;

	if (!r->packed || r->result != HTTP_CLIENT_OK)
		return;
	r->packed = false;
	buffer_init(&r->body, r->max_bytes);
	e = decode(r, &why);
	if (e == -EMSGSIZE) {
		r->result = HTTP_CLIENT_TOO_LARGE;
		snprintf(r->message, sizeof(r->message), HTTP_CLIENT_SAYS_TOO_LARGE, r->max_bytes);
	} else if (e == -EBADMSG) {
		r->result = HTTP_CLIENT_CODING;
		snprintf(r->message, sizeof(r->message), HTTP_CLIENT_SAYS_MALFORMED,
			"its gzip body is broken: ", why);
	} else if (e) {
		r->result = HTTP_CLIENT_PROTOCOL;
		snprintf(r->message, sizeof(r->message), "out of memory");
	}
	if (!http_client_has_digest(r))
		buffer_fini(&r->coded);
}

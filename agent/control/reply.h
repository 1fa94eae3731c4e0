/*
 * How a request of the API is answered. Threads: the loop's. Each of these ends the request, which
 * is not to be used any more.
 */
#ifndef PULLET_CONTROL_REPLY_H
#define PULLET_CONTROL_REPLY_H

#include "httpd/server.h"
#include "lib/buffer.h"
#include "text/sentence.h"

#define REPLY_MAX (64u << 20) /* bytes */

/* Who will read the answer, which is what it may show. */
enum audience reply_audience(const struct httpd_request *r);
/* Frees b. 500 instead, when an append to it failed. */
void reply_json(struct httpd_request *r, int status, struct buffer *b);
/* {"error": sentence} */
void reply_error(struct httpd_request *r, int status, const char *sentence);
/* The same with the HTTP status of this -errno. */
void reply_errno(struct httpd_request *r, int error, const char *sentence);

#endif

/*
 * What became of a transfer: from libcurl's end of it to the result, and the sentence that an
 * operator reads.
 */
#ifndef PULLET_HTTP_RESULT_H
#define PULLET_HTTP_RESULT_H

#include <stdbool.h>

#include <curl/curl.h>

#include "base/sys.h"
#include "http/reception.h"

/* How libcurl ended it; borrowed. */
struct result_of_curl {
	CURL *easy;
	CURLcode code;
	const char *error; /* of CURLOPT_ERRORBUFFER; "" = libcurl's usual words */
};

/* Fills in the response that was received: all but its duration. */
void result_take(struct reception *in, const struct result_of_curl *c, const struct sys *sys);
/* That moment of a transfer, one of CURLINFO_*_TIME_T, has come. */
bool result_has_reached(CURL *easy, CURLINFO moment);
/* There was a connection, and the request went out on it. */
bool result_was_sent(CURL *easy);
/* What a transfer waits for that is not over, and where to look. connected: to an address of its
 * server. */
const char *result_waits_for(CURL *easy, bool connected);

#endif

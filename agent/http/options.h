/*
 * A request in libcurl's options, with those that safety depends on.
 */
#ifndef PULLET_HTTP_OPTIONS_H
#define PULLET_HTTP_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include <curl/curl.h>

#include "http/request.h"

/* Sets the handle up, but for its callbacks. closes: the connection is not kept. *headers (NULL at
 * first) is the caller's, to be freed after the handle, whatever is returned. 0, -ENOMEM, or
 * -EINVAL: libcurl does not take an option. */
int options_set(
	CURL *easy, const struct http_client_request *q, bool closes, struct curl_slist **headers);
/* The time limit of all, 0 being 1 ms. */
CURLcode options_limit_time(CURL *easy, uint64_t ms);

#endif

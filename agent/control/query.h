/*
 * What a request of the API says: its parameters, and who sent it. Texts live as long as the
 * request.
 */
#ifndef PULLET_CONTROL_QUERY_H
#define PULLET_CONTROL_QUERY_H

#include <stdbool.h>
#include <stdint.h>

#include "files/user.h"
#include "httpd/server.h"

#define QUERY_CLIENT USER_TEXT

bool query_is_set(const struct httpd_request *r, const char *name, bool fallback);
/* "" = it is not there. */
const char *query_text(const struct httpd_request *r, const char *name);
/* A number of the query, or the fallback. False, and answered: it is not a number. */
bool query_number(
	struct httpd_request *r, const char *name, uint64_t fallback, uint64_t *ret_number);
/* The client, for the log and the history. Returns text. */
const char *query_client(const struct httpd_request *r, char text[QUERY_CLIENT]);

#endif

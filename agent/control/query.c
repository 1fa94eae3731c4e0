/* What a request of the API says: its parameters, and who sent it. */
#include "control/query.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/reply.h"
#include "httpd/peer.h"

bool query_is_set(const struct httpd_request *r, const char *name, bool fallback)
{
	const char *text = httpd_query(r, name);

	return text ? strcmp(text, "0") != 0 : fallback;
}

const char *query_text(const struct httpd_request *r, const char *name)
{
	const char *text = httpd_query(r, name);

	return text ? text : "";
}

bool query_number(
	struct httpd_request *r, const char *name, uint64_t fallback, uint64_t *ret_number)
{
	const char *text = httpd_query(r, name);
	char why[64];

	*ret_number = fallback;
	if (!text)
		return true;
	errno = 0;
	*ret_number = strtoull(text, NULL, 10);
	if (text[0] && strspn(text, "0123456789") == strlen(text) && errno == 0)
		return true;
	snprintf(why, sizeof(why), "%s takes a number", name);
	reply_error(r, 400, why);
	return false;
}

const char *query_client(const struct httpd_request *r, char text[QUERY_CLIENT])
{
	struct peer peer;

	httpd_peer(r, &peer);
	if (peer.local)
		user_describe(&sys_real, peer.uid, text);
	else
		snprintf(text, QUERY_CLIENT, "somebody");
	return text;
}

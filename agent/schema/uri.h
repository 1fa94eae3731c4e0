/*
 * URI references of schemas, resolved (RFC 3986, 5.2). Private to agent/schema.
 *
 * Threads: any.
 */
#ifndef PULLET_SCHEMA_URI_H
#define PULLET_SCHEMA_URI_H

#include <stdbool.h>
#include <stddef.h>

/* What a reference of len bytes, without a fragment, means beside base, itself resolved and without
 * a fragment ("" = none is known: then a relative reference stays one). The caller's, to be freed;
 * NULL when memory is out. */
char *schema_uri_resolve(const char *base, const char *reference, size_t len);
/* True when the URI's path is `name`, or ends in it behind a slash. */
bool schema_uri_is_file(const char *uri, const char *name);

#endif

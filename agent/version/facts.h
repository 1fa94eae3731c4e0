/*
 * The facts of a version, as one line of JSON: all of struct version.
 *
 * Threads: any, one at a time for a version.
 */
#ifndef PULLET_FACTS_H
#define PULLET_FACTS_H

#include "lib/buffer.h"
#include "version/version.h"

#define FACTS_LARGEST (2u << 20) /* bytes of the line */

/* Appends the line; without decisions they are an empty object. What fails is the buffer's error.
 */
void facts_append(const struct version *v, struct buffer *out);
/* Reads it: what older agents did not write is unknown. 0, and the caller ends *ret with
 * version_fini(); -EBADMSG, or -ENOMEM. */
int facts_parse(const char *line, size_t len, struct version *ret);

#endif

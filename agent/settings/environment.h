/*
 * ${NAME} in the values of the agent's configuration: from its environment, else from the file that
 * env_file names. Private to agent/settings.
 *
 * Threads: one. Ownership: of the loader, which ends it. Errors: each is reported with its place.
 * Bounds: a value of at most ENVIRONMENT_MAX_VALUE bytes when it is filled in; a file of as many
 * lines as its 1 MiB has.
 */
#ifndef PULLET_SETTINGS_ENVIRONMENT_H
#define PULLET_SETTINGS_ENVIRONMENT_H

#include <stddef.h>

#define ENVIRONMENT_MAX_VALUE (64u << 10)

struct buffer;
struct document;
struct loader;

/* Reads lines NAME=VALUE; empty ones and those that begin with # are skipped. Quotes around the
 * whole of a value are taken off, nothing else is special. */
void environment_read(struct loader *l, const char *file, const struct buffer *text);
/* A copy of the document with its references replaced, places as they were; what was written
 * without quotes is read again: a number is one then. 0, also without a reference, *ret_filled is
 * NULL then; -EINVAL: reported; -ENOMEM. */
int environment_fill(struct loader *l, const struct document *d, struct document **ret_filled);

#endif

/*
 * Watches an application for a while after the reload of a new version: runs a program, or asks a
 * URL, at an interval. It fails after so many failed attempts in a row, and passes when the time is
 * over and the last attempt succeeded.
 *
 * Threads: the loop's. Ownership: settings and names are borrowed. Errors: a probe that cannot be
 * started counts as failed. Bounds: one attempt at a time; PROBE_MAX_BYTES of an answer.
 */
#ifndef PULLET_PROBE_H
#define PULLET_PROBE_H

#include "lib/buffer.h"
#include "base/loop.h"
#include "settings/settings.h"
#include "http/client.h"

#define PROBE_MAX_BYTES 65536
#define PROBE_WHY 512

struct probe;

struct probe_options {
	struct loop *loop;
	struct http_client *transport;
	const char *ca_file; /* NULL = the system's */
	const struct settings_probe *settings;
	const char *name, *file; /* of the config */
	uint64_t generation;
	/* Appends what a program wrote without the values of masked keys; NULL = as it is. */
	void (*scrub)(void *arg, struct buffer *out, const char *text, size_t len);
	void *scrub_arg;
	/* Once, later, from the loop; the probe is gone when it returns. why: the last failure. */
	void (*ended)(void *arg, bool good, const char *why);
	void *arg;
};

/* NULL when there is no memory. The first attempt comes after `every`. */
struct probe *probe_start(const struct probe_options *options);
/* Ends it; ended() is not called. NULL is fine. */
void probe_free(struct probe *p);

#endif

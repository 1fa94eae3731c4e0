/*
 * agent: {watch_config: true}: reports when the files of the agent's own configuration have
 * changed.
 *
 * Watches, by inotify, the folder of the configuration, conf.d in it and, where the file is a
 * symlink, the folder of the file that it leads to; a volume of Kubernetes replaces the link
 * "..data" in the first two. An event only makes it compare: a file changed when it is another one,
 * or its size or times are others. So the swap files of editors, and secrets that lie beside the
 * configuration, change nothing.
 *
 * Threads: the loop's. Errors: what cannot be watched is logged. Bounds: one inotify instance; a
 * report WATCH_CONFIG_QUIET_MS after the last of several events, WATCH_CONFIG_LONGEST_MS after the
 * first at the latest.
 */
#ifndef PULLET_WATCH_CONFIG_H
#define PULLET_WATCH_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/loop.h"

#define WATCH_CONFIG_QUIET_MS 500u
#define WATCH_CONFIG_LONGEST_MS 10000u

struct watch_config;

/* What is known of the files of the configuration at `path`, and of conf.d beside it, as one
 * number: another one when one of them changed. */
uint64_t watch_config_fingerprint(const char *path);
/* Off at first. Borrows path; *seen is the fingerprint from just before the configuration was read
 * last. changed() may call any function but _free(). NULL when there is no memory. */
struct watch_config *watch_config_new(struct loop *l, const char *path, const uint64_t *seen,
	void (*changed)(void *arg), void *arg);
void watch_config_free(struct watch_config *w);
/* Begins or ends watching; again is nothing new. What changed since *seen is reported. */
void watch_config_set(struct watch_config *w, bool on);

#endif

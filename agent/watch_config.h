/*
 * agent: {watch_config: true}: reports when the files of the agent's own configuration have
 * changed.
 *
 * Watches, by inotify, the folder of the configuration, conf.d in it and, where the file is a
 * symlink, the folder of the file that it leads to; a volume of Kubernetes replaces the link
 * "..data" in the first two. So are the folders of the files that it names and consists of:
 * env_file, templates and their partials. An event only makes it compare: a file changed when it is
 * another one, or its size or times are others. So the swap files of editors, and secrets that lie
 * beside the configuration, change nothing.
 *
 * Threads: the loop's. Errors: what cannot be watched is logged. Bounds: one inotify instance; a
 * report WATCH_CONFIG_QUIET_MS after the last of several events, WATCH_CONFIG_LONGEST_MS after the
 * first at the latest; WATCH_CONFIG_MAX_NAMED files that are named, the others are not watched.
 */
#ifndef PULLET_WATCH_CONFIG_H
#define PULLET_WATCH_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/loop.h"

#define WATCH_CONFIG_QUIET_MS 500u
#define WATCH_CONFIG_LONGEST_MS 10000u
#define WATCH_CONFIG_MAX_NAMED 4096u

struct watch_config;

/* The files of a configuration, as they were just before they were read. Zeroed at first. */
struct watched_files { /* fields are private */
	uint64_t own;  /* of the configuration and conf.d: another number when one changed */
	uint64_t hash; /* the same of those that it names */
	char **named;  /* their paths */
	size_t count;
};

/* Forgets what was known, and looks at the configuration at path, and at conf.d beside it. */
void watched_files_begin(struct watched_files *f, const char *path);
/* Looks at a file that the configuration names; a settings_reading's opens(). */
void watched_files_add(void *files, const char *path);
void watched_files_fini(struct watched_files *f);
/* Off at first. Borrows path; *seen is from just before the configuration was read last. changed()
 * may call any function but _free(). NULL when there is no memory. */
struct watch_config *watch_config_new(struct loop *l, const char *path,
	const struct watched_files *seen, void (*changed)(void *arg), void *arg);
void watch_config_free(struct watch_config *w);
/* Begins or ends watching; after *seen was filled again, looks where the files are now. What
 * changed since *seen is reported. */
void watch_config_set(struct watch_config *w, bool on);

#endif

/*
 * Notices at once when somebody touches a published file: one inotify instance for the agent, one
 * watch per directory.
 *
 * Only a hint: what is there is looked at afterwards, and every interval anyway, so that nothing is
 * missed where inotify is not to be had or loses events (its queue has a bound).
 *
 * Threads: the loop's. Ownership: entries are embedded in their users and must be removed before
 * they go. Errors: a directory that cannot be watched is left to the interval. Bounds: one event
 * queue of the kernel's size.
 */
#ifndef PULLET_DRIFT_H
#define PULLET_DRIFT_H

#include "base/index.h"
#include "base/loop.h"

struct file_watch;

struct file_watch_entry { /* fields are private but the first two */
	/* cause: "written", "replaced", "removed", "its mode or owner changed" */
	void (*noticed)(void *arg, const char *cause);
	void *arg;
	struct index_link link;
	const char *name; /* in the directory; NULL = any name */
	int directory;
};

/* NULL when inotify or memory is not to be had: then nothing is noticed. */
struct file_watch *file_watch_new(struct loop *l);
void file_watch_free(struct file_watch *d);
/* Watches dir/name (NULL = all in it); the name is borrowed as long as the entry is there. 0 or
 * -errno. */
int file_watch_add(
	struct file_watch *d, struct file_watch_entry *e, const char *dir, const char *name);
void file_watch_remove(struct file_watch *d, struct file_watch_entry *e);

#endif

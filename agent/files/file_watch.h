/*
 * Reports changes of published files at once: one inotify instance for the agent, one watch per
 * directory, and one per file whose bytes are watched while somebody has it open.
 *
 * Only a hint: files are checked afterwards, and at each interval anyway, so that nothing is missed
 * where inotify is unavailable or loses events (its queue has a bound).
 *
 * Threads: the loop's. Ownership: entries are embedded in their users and must be removed before
 * these are freed. Errors: a directory that cannot be watched is checked at the interval only.
 * Bounds: one event queue of the kernel's size.
 */
#ifndef PULLET_FILE_WATCH_H
#define PULLET_FILE_WATCH_H

#include "base/index.h"
#include "base/loop.h"

struct file_watch;

struct file_watch_entry { /* fields are private but the first two */
	/* cause: "written", "replaced", "removed", "its mode or owner changed" */
	void (*noticed)(void *arg, const char *cause);
	void *arg;
	struct index_link link;
	const char *name; /* in the directory; NULL = any name */
	int descriptor;
};

/* NULL when inotify or memory is unavailable. */
struct file_watch *file_watch_new(struct loop *l);
void file_watch_free(struct file_watch *d);
/* Reports also what is created, folders and links among them ("changed"), in the directories that
 * are watched from now on. */
void file_watch_creations(struct file_watch *d);
/* Watches dir/name (NULL = all in it); borrows the name until the entry is removed. 0 or -errno. */
int file_watch_add(
	struct file_watch *d, struct file_watch_entry *e, const char *dir, const char *name);
/* The same of an entry that is watched, or was to be: once more, where another directory is there
 * by now (made late, replaced, mounted over). 1: it is another one; 0: as before; -errno: the old
 * one, if any, stays. */
int file_watch_renew(
	struct file_watch *d, struct file_watch_entry *e, const char *dir, const char *name);
/* What keeps from watching, and the remedy. Constant. */
const char *file_watch_explain(int error);
/* Watches the file itself, not its name: bytes that are written into it, or cut off, by somebody
 * who keeps it open; one entry a file. Ends with the file, which it reports ("changed"). 0 or
 * -errno: -EISDIR, it is no regular file. */
int file_watch_add_bytes(struct file_watch *d, struct file_watch_entry *e, const char *path);
void file_watch_remove(struct file_watch *d, struct file_watch_entry *e);

#endif

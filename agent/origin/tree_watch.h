/*
 * Reports which files of a directory changed their content: inotify over the tree, ETags to
 * compare.
 *
 * Threads: the loop's. Bounds: TREE_WATCH_MAX_DIRS folders, TREE_WATCH_MAX_FILES files; others are
 * logged and not watched.
 */
#ifndef PULLET_TREE_WATCH_H
#define PULLET_TREE_WATCH_H

#include "base/loop.h"

#define TREE_WATCH_MAX_DIRS 1024
#define TREE_WATCH_MAX_FILES 65536

struct tree_watch;

/* Called for each file whose content is new, changed, or gone (etag NULL). path is relative to the
 * directory. */
typedef void (*tree_watch_changed)(void *arg, const char *path, const char *etag);

/* Watches path, which is also open as dir; no call for the files that are there now. 0 or -errno.
 */
int tree_watch_start(struct loop *l, const char *path, int dir, tree_watch_changed changed,
	void *arg, struct tree_watch **ret_watch);
void tree_watch_stop(struct tree_watch *w);

#endif

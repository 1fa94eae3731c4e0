/*
 * Reports which files of a directory changed their content: inotify over the tree, ETags to
 * compare.
 *
 * A file that is replaced by a rename, or written and closed, is reported at once. One that is
 * written in place is looked at when it is closed, or when nobody has written in it for
 * TREE_WATCH_QUIET_MS, and at the latest after TREE_WATCH_WRITING_MS of writing. One that became
 * empty counts as being written for TREE_WATCH_QUIET_MS.
 *
 * Threads: the loop's. Bounds: TREE_WATCH_MAX_DIRS folders, TREE_WATCH_MAX_FILES files; others are
 * logged and not watched. TREE_WATCH_KEPT_FILE bytes of a file that is kept.
 */
#ifndef PULLET_TREE_WATCH_H
#define PULLET_TREE_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "base/loop.h"

#define TREE_WATCH_MAX_DIRS 1024
#define TREE_WATCH_MAX_FILES 65536
#define TREE_WATCH_QUIET_MS 2000u
#define TREE_WATCH_WRITING_MS 60000u
#define TREE_WATCH_KEPT_FILE (1u << 20)

struct tree_watch;

/* Called for each file whose content is new, changed, or gone (etag NULL). path is relative to the
 * directory. */
typedef void (*tree_watch_changed)(void *arg, const char *path, const char *etag);

/* Watches path, which is also open as dir; no call for the files that are there now. When path
 * leads to another directory, dir is that one within about a second, under the same number. Keeps
 * up to so many bytes of the files, for tree_watch_is_written(). 0 or -errno. */
int tree_watch_start(struct loop *l, const char *path, int dir, size_t keep,
	tree_watch_changed changed, void *arg, struct tree_watch **ret_watch);

/* What an error of watching a directory means, and what to do. */
const char *tree_watch_explain(int error);

/* What is in a file, or was before somebody began to write in it. */
struct tree_watch_before {
	const char *etag; /* "" = it was not there, or is not watched */
	const char *body; /* NULL = not kept: the file is large, or there are many */
	size_t len;
	time_t modified;
};

/* Takes in what has happened until now, which may report changes. True: somebody writes in the file
 * and has not closed it; ret_before is good until the next event of the loop. */
bool tree_watch_is_written(
	struct tree_watch *w, const char *path, struct tree_watch_before *ret_before);
/* Checks a file that no event has named. */
void tree_watch_check(struct tree_watch *w, const char *path);
void tree_watch_stop(struct tree_watch *w);

#endif

/*
 * A descriptor that is readable when a file at a path, or the one beside it, may be another one:
 * what libpullet gives event loops.
 *
 * Threads: one at a time. After fork() a watch is its parent's: the child's copy reads nothing from
 * it. Ownership: the watch owns its descriptor; if the program closed it and reused the number,
 * that file is not touched. Errors: -errno. Bounds: three watches of the kernel's, and the few
 * events that each of them can give once.
 */
#ifndef PULLET_PATH_WATCH_H
#define PULLET_PATH_WATCH_H

#include <stdbool.h>
#include <sys/types.h>

struct path_watch {
	int fd; /* -1 = none */
	pid_t pid;
	dev_t dev; /* what the descriptor is of */
	ino_t ino;
};

/* Opens one, which is readable at once. 0, or -errno (-EMFILE: also the user's inotify instances
 * are used up). */
int path_watch_open(struct path_watch *ret_watch);
/* True when it is this process's. */
bool path_watch_is_own(const struct path_watch *w);
/* True when its descriptor is still there, too. */
bool path_watch_is_usable(const struct path_watch *w);
/* Takes what made it readable, then watches what is at both paths now; where nothing is at the
 * first, also the deepest directory of its path that is there. Who looks at the files after this
 * misses nothing: what changes from here on makes it readable. 0, or -errno (-ENOSPC: the user's
 * inotify watches are used up; -EACCES): then it watches less; -EBADF: the program has closed the
 * descriptor, and nothing is watched. */
int path_watch_renew(struct path_watch *w, const char *path, const char *beside);
/* Closes its descriptor, if the number is still that. */
void path_watch_close(struct path_watch *w);

#endif

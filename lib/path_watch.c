/*
 * Inotify, on the inodes themselves: a file that is replaced or removed loses a name, which is
 * IN_ATTRIB, so that what happens to other files in the directory wakes nobody.
 *
 * Surprising: each watch fires once and is gone (IN_ONESHOT), and is set before the files are
 * looked at, never after. So nothing is missed: what was changed before the watch was set is seen
 * by that look, what is changed later fires the watch. The other way round there is a gap. And it
 * is set twice, until both times the same file was there: one that is replaced while the first is
 * being set never fires again, and lives on for as long as any reader has it mapped. So does one
 * whose last name is just being removed: the kernel says so while the name is still found.
 */
#include "path_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

/* A page that is withdrawn is written through a mapping, which inotify does not see, and closed for
 * writing afterwards, which it does. */
#define OF_FILE (IN_ATTRIB | IN_CLOSE_WRITE | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONESHOT)
#define OF_DIR                                                                                     \
	(IN_CREATE | IN_MOVED_TO | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONESHOT |        \
		IN_ONLYDIR)

#define MAX_TURNS 64 /* more than a path has directories, as a rule */

/* Makes it readable: the end of a watch is an event. 0 or -errno. */
static int make_readable(int fd)
{
	int wd = inotify_add_watch(fd, "/", IN_MOVE_SELF);

	if (wd < 0)
		return -errno;
	inotify_rm_watch(fd, wd);
	return 0;
}

int path_watch_open(struct path_watch *ret_watch)
{
	struct path_watch w = {.fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK), .pid = getpid()};
	struct stat st;
	int r;

	if (w.fd < 0)
		return -errno;
	r = fstat(w.fd, &st) ? -errno : make_readable(w.fd); /* whoever polls looks once */
	if (r) {
		close(w.fd);
		return r;
	}
	w.dev = st.st_dev;
	w.ino = st.st_ino;
	*ret_watch = w;
	return 0;
}

/* The number still means an inotify descriptor: who closes all that are open (a daemon, a worker
 * after a fork) gets the numbers again for files, pipes and sockets, which have an inode of their
 * own, or for an epoll, an eventfd or a timer, which have the same one and are never read-only. */
static bool has_descriptor(const struct path_watch *w)
{
	int flags = w->fd < 0 ? -1 : fcntl(w->fd, F_GETFL);
	struct stat st;

	return flags >= 0 && (flags & O_ACCMODE) == O_RDONLY && fstat(w->fd, &st) == 0 &&
	       st.st_dev == w->dev && st.st_ino == w->ino;
}

bool path_watch_is_own(const struct path_watch *w)
{
	return w->fd >= 0 && w->pid == getpid();
}

bool path_watch_is_usable(const struct path_watch *w)
{
	return path_watch_is_own(w) && has_descriptor(w);
}

static void take_events(int fd)
{
	char events[4096];

	while (read(fd, events, sizeof(events)) > 0)
		;
}

/* There is nothing at a path, which this errno says. */
static bool leads_nowhere(int error)
{
	return error == ENOENT || error == ENOTDIR || error == ELOOP;
}

/* Watches the deepest directory above a path that is there. Its number, or -errno. */
static int watch_above(int fd, const char *path)
{
	char copy[PATH_MAX], *at = copy; /* no file has a longer one */
	int wd;

	snprintf(copy, sizeof(copy), "%s", path);
	do {
		at = dirname(at);
		wd = inotify_add_watch(fd, at, OF_DIR);
	} while (wd < 0 && leads_nowhere(errno) && strcmp(at, "/") != 0 && strcmp(at, ".") != 0);
	return wd < 0 ? -errno : wd;
}

/* The last name of what is at the path is being removed. */
static bool is_going(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && st.st_nlink == 0;
}

/* Watches the file that is at the path. 0, or -errno. */
static int watch_this_file(int fd, const char *path)
{
	int wd = -1, before;

	for (unsigned turns = 0; turns < MAX_TURNS; turns++) {
		before = wd;
		wd = inotify_add_watch(fd, path, OF_FILE);
		if (wd < 0)
			return -errno;
		if (is_going(path))
			sched_yield(); /* to who removes it */
		else if (wd == before)
			return 0;
	}
	return make_readable(fd); /* for another look */
}

/* Watches a file, and a directory above where that is not there, or may not be read. What comes
 * between the two tries is in neither: so both are tried until the directory is the same as before.
 * Each turn goes a directory deeper, or something fired, and the descriptor is readable. */
static int watch_file_or_above(int fd, const char *path)
{
	int wd = -1, before, r;

	for (unsigned turns = 0; turns < MAX_TURNS; turns++) {
		r = watch_this_file(fd, path);
		if (r != -EACCES && !leads_nowhere(-r))
			return r;
		before = wd;
		wd = watch_above(fd, path);
		if (wd < 0 || wd == before)
			return wd < 0 ? wd : 0;
	}
	return 0;
}

int path_watch_renew(struct path_watch *w, const char *path, const char *beside)
{
	int r, of_beside;

	if (!has_descriptor(w))
		return -EBADF;
	take_events(w->fd);
	r = watch_file_or_above(w->fd, path);
	of_beside = watch_this_file(w->fd, beside);
	return of_beside == -ENOSPC || of_beside == -ENOMEM ? of_beside : r;
}

void path_watch_close(struct path_watch *w)
{
	if (has_descriptor(w))
		close(w->fd);
	w->fd = -1;
}

/*
 * Drift by inotify. Surprising: the agent's own publications are events too; the callback checks
 * the file and finds it current.
 */
#include "files/file_watch.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"

#define BYTES (IN_MODIFY | IN_DONT_FOLLOW)
#define EVENTS (IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ATTRIB | IN_ONLYDIR)

struct directory {
	struct index_link link;
	int descriptor; /* of the watch */
	size_t users;   /* entries in it */
};

struct file_watch {
	struct loop_watch watch;
	int fd;
	uint32_t events;
	struct index directories, entries;
};

/* ---- events ---- */

static uint64_t entry_hash(int descriptor, const char *name)
{
	uint64_t hash = hash_bytes(HASH_START, &descriptor, sizeof(descriptor));

	return name ? hash_bytes(hash, name, strlen(name)) : hash;
}

static bool is_about(const struct file_watch_entry *e, int descriptor, const char *name)
{
	return e->descriptor == descriptor && !e->name == !name &&
	       (!name || strcmp(e->name, name) == 0);
}

static const char *event_cause(uint32_t mask)
{
	static const struct {
		uint32_t mask;
		const char *cause;
	} table[] = {
		{IN_DELETE | IN_MOVED_FROM, "removed"},
		{IN_MOVED_TO, "replaced"},
		{IN_CLOSE_WRITE | IN_MODIFY, "written"},
		{IN_ATTRIB, "its mode or owner changed"},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (mask & table[i].mask)
			return table[i].cause;
	return "changed";
}

static void notify_entries(
	struct file_watch *d, int descriptor, const char *name, const char *cause)
{
	struct index_link *l, *next;

	for (l = index_first(&d->entries, entry_hash(descriptor, name)); l; l = next) {
		struct file_watch_entry *e =
			(struct file_watch_entry *)((char *)l -
						    offsetof(struct file_watch_entry, link));

		next = index_next(l); /* noticed() may remove it */
		if (is_about(e, descriptor, name))
			e->noticed(e->arg, cause);
	}
}

static void read_inotify(void *arg, int fd, unsigned events)
{
	char data[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	struct file_watch *d = arg;
	ssize_t len;

	(void)events;
	len = read(fd, data, sizeof(data)); /* what is left makes the loop call again */
	for (ssize_t at = 0; at < len;) {
		const struct inotify_event *event = (const struct inotify_event *)(data + at);

		if (event->len)
			notify_entries(d, event->wd, event->name, event_cause(event->mask));
		notify_entries(d, event->wd, NULL, event_cause(event->mask));
		at += (ssize_t)(sizeof(*event) + event->len);
	}
}

struct file_watch *file_watch_new(struct loop *l)
{
	struct file_watch *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->events = EVENTS;
	d->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (d->fd >= 0 && loop_watch(l, &d->watch, d->fd, LOOP_READ, read_inotify, d) == 0)
		return d;
	if (d->fd >= 0)
		close(d->fd);
	free(d);
	return NULL;
}

void file_watch_creations(struct file_watch *d)
{
	d->events |= IN_CREATE;
}

void file_watch_free(struct file_watch *d)
{
	struct index_link *link;
	size_t at = 0;

	if (!d)
		return;
	loop_unwatch(&d->watch);
	close(d->fd);
	while ((link = index_take(&d->directories, &at)))
		free(link); /* the first member of a struct directory */
	index_fini(&d->directories);
	index_fini(&d->entries);
	free(d);
}

/* Finds the directory of a watch descriptor, of which the kernel has one per directory. */
static struct directory *find_directory(const struct file_watch *d, int descriptor)
{
	struct index_link *l = index_first(&d->directories, entry_hash(descriptor, NULL));

	while (l && ((struct directory *)l)->descriptor != descriptor)
		l = index_next(l);
	return (struct directory *)l;
}

/* Counts one more entry in the directory. 0; or -ENOMEM, and a new watch is removed. */
static int join_directory(struct file_watch *d, int descriptor)
{
	struct directory *directory = find_directory(d, descriptor);

	if (!directory) {
		directory = calloc(1, sizeof(*directory));
		if (!directory || index_add(&d->directories, &directory->link,
					  entry_hash(descriptor, NULL))) {
			free(directory);
			inotify_rm_watch(d->fd, descriptor);
			return -ENOMEM;
		}
		directory->descriptor = descriptor;
	}
	directory->users++;
	return 0;
}

static void leave_directory(struct file_watch *d, int descriptor)
{
	struct directory *directory = find_directory(d, descriptor);

	if (--directory->users)
		return;
	inotify_rm_watch(d->fd, descriptor);
	index_remove(&d->directories, &directory->link);
	free(directory);
}

static int add_entry(
	struct file_watch *d, struct file_watch_entry *e, int descriptor, const char *name)
{
	if (index_add(&d->entries, &e->link, entry_hash(descriptor, name)))
		return -ENOMEM;
	e->name = name;
	e->descriptor = descriptor;
	return 0;
}

int file_watch_add(
	struct file_watch *d, struct file_watch_entry *e, const char *dir, const char *name)
{
	int descriptor = inotify_add_watch(d->fd, dir, d->events);

	if (descriptor < 0)
		return -errno;
	if (join_directory(d, descriptor))
		return -ENOMEM;
	if (add_entry(d, e, descriptor, name)) {
		leave_directory(d, descriptor);
		return -ENOMEM;
	}
	return 0;
}

int file_watch_renew(
	struct file_watch *d, struct file_watch_entry *e, const char *dir, const char *name)
{
	const struct file_watch_entry before = *e;
	int r, descriptor = inotify_add_watch(d->fd, dir, d->events);

	if (descriptor < 0)
		return -errno;
	if (descriptor == before.descriptor)
		return 0;
	file_watch_remove(d, e);
	*e = (struct file_watch_entry){.noticed = before.noticed, .arg = before.arg};
	r = file_watch_add(d, e, dir, name);
	return r ? r : 1;
}

const char *file_watch_explain(int error)
{
	switch (error) {
	case EMFILE:
		return "this user has no inotify instances left, or this process no descriptors: "
		       "raise fs.inotify.max_user_instances (sysctl), or LimitNOFILE";
	case ENOSPC:
		return "this user has no inotify watches left: raise fs.inotify.max_user_watches "
		       "(sysctl)";
	case ENOENT:
		return "its directory is not there";
	default:
		return strerror(error);
	}
}

int file_watch_add_bytes(struct file_watch *d, struct file_watch_entry *e, const char *path)
{
	struct stat st;
	int descriptor;

	if (lstat(path, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EISDIR;
	descriptor = inotify_add_watch(d->fd, path, BYTES);
	if (descriptor < 0)
		return -errno;
	if (add_entry(d, e, descriptor, NULL)) {
		inotify_rm_watch(d->fd, descriptor);
		return -ENOMEM;
	}
	return 0;
}

void file_watch_remove(struct file_watch *d, struct file_watch_entry *e)
{
	int descriptor = e->descriptor;

	if (!descriptor) /* they begin at 1: it is not watched */
		return;
	index_remove(&d->entries, &e->link);
	*e = (struct file_watch_entry){.descriptor = 0};
	if (find_directory(d, descriptor))
		leave_directory(d, descriptor);
	else
		inotify_rm_watch(d->fd, descriptor);
}

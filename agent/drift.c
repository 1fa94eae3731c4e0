/*
 * Drift by inotify. Surprising: the agent's own publications are events too; whoever is told looks
 * at the file and finds it as it should be.
 */
#include "drift.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#define EVENTS (IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ATTRIB | IN_ONLYDIR)

struct directory {
	int descriptor; /* of the watch; -1 = none */
	struct drift_entry *entries;
};

struct drift {
	struct loop_watch watch;
	int fd;
	struct directory *directories;
	size_t count;
};

static const char *cause_of(uint32_t mask)
{
	static const struct {
		uint32_t mask;
		const char *cause;
	} table[] = {
		{IN_DELETE | IN_MOVED_FROM, "removed"},
		{IN_MOVED_TO, "replaced"},
		{IN_CLOSE_WRITE, "written"},
		{IN_ATTRIB, "its mode or owner changed"},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (mask & table[i].mask)
			return table[i].cause;
	return "changed";
}

static void tell(struct drift *d, const struct inotify_event *event)
{
	struct drift_entry *e, *next;

	for (size_t i = 0; i < d->count; i++) {
		if (d->directories[i].descriptor != event->wd)
			continue;
		for (e = d->directories[i].entries; e; e = next) {
			next = e->next; /* it may be removed by what it is told */
			if (!e->name || (event->len && strcmp(e->name, event->name) == 0))
				e->noticed(e->arg, cause_of(event->mask));
		}
		return;
	}
}

static void ready(void *arg, int fd, unsigned events)
{
	char data[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	struct drift *d = arg;
	ssize_t len;

	(void)events;
	len = read(fd, data, sizeof(data)); /* what is left makes the loop call again */
	for (ssize_t at = 0; at < len;) {
		const struct inotify_event *event = (const struct inotify_event *)(data + at);

		tell(d, event);
		at += (ssize_t)(sizeof(*event) + event->len);
	}
}

struct drift *drift_new(struct loop *l)
{
	struct drift *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (d->fd >= 0 && loop_watch(l, &d->watch, d->fd, LOOP_READ, ready, d) == 0)
		return d;
	if (d->fd >= 0)
		close(d->fd);
	free(d);
	return NULL;
}

void drift_free(struct drift *d)
{
	if (!d)
		return;
	loop_unwatch(&d->watch);
	close(d->fd);
	free(d->directories);
	free(d);
}

/* The kernel gives one directory one descriptor, however often it is added. */
static struct directory *find(struct drift *d, int descriptor)
{
	struct directory *grown;

	for (size_t i = 0; i < d->count; i++)
		if (d->directories[i].descriptor == descriptor)
			return &d->directories[i];
	grown = reallocarray(d->directories, d->count + 1, sizeof(*grown));
	if (!grown)
		return NULL;
	d->directories = grown;
	grown[d->count] = (struct directory){.descriptor = descriptor};
	return &grown[d->count++];
}

int drift_add(struct drift *d, struct drift_entry *e, const char *dir, const char *name)
{
	int descriptor = inotify_add_watch(d->fd, dir, EVENTS);
	struct directory *directory;

	if (descriptor < 0)
		return -errno;
	directory = find(d, descriptor);
	e->name = name ? strdup(name) : NULL;
	if (!directory || (name && !e->name)) {
		free(e->name);
		e->name = NULL;
		return -ENOMEM;
	}
	e->directory = descriptor;
	e->next = directory->entries;
	directory->entries = e;
	return 0;
}

/* Nobody watches anything in it any more. */
static void forget(struct drift *d, struct directory *directory)
{
	inotify_rm_watch(d->fd, directory->descriptor);
	*directory = d->directories[--d->count];
}

void drift_remove(struct drift *d, struct drift_entry *e)
{
	for (size_t i = 0; i < d->count; i++)
		for (struct drift_entry **link = &d->directories[i].entries; *link;
			link = &(*link)->next)
			if (*link == e) {
				*link = e->next;
				free(e->name);
				*e = (struct drift_entry){.next = NULL};
				if (!d->directories[i].entries)
					forget(d, &d->directories[i]);
				return;
			}
}

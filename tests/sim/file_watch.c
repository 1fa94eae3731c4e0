/*
 * files/file_watch.h over the simulated disk's notices, which come a moment later, as the kernel's
 * do. Some are lost where the life says so.
 */
#include "files/file_watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/disk.h"
#include "tests/sim/host.h"
#include "tests/sim/world.h"

#define MAX_ENTRIES 512
#define MAX_NOTICES 64

struct notice {
	char dir[96], name[64];
	const char *cause;
};

struct file_watch {
	struct host *host;
	struct {
		struct file_watch_entry *entry; /* NULL = free */
		char dir[96];
	} entries[MAX_ENTRIES];
	struct notice notices[MAX_NOTICES];
	size_t notice_count;
};

/* Calls who watches it; one call may remove any entry. */
static void report_notice(struct file_watch *d, const struct notice *n)
{
	for (size_t i = 0; i < MAX_ENTRIES; i++) {
		struct file_watch_entry *e = d->entries[i].entry;

		if (e && strcmp(d->entries[i].dir, n->dir) == 0 &&
			(!e->name || strcmp(e->name, n->name) == 0))
			e->noticed(e->arg, n->cause);
	}
}

static void report_notices(void *arg)
{
	struct file_watch *d = arg;
	struct notice notices[MAX_NOTICES];
	size_t count = d->notice_count;

	memcpy(notices, d->notices, sizeof(notices[0]) * count);
	d->notice_count = 0;
	for (size_t i = 0; i < count; i++)
		report_notice(d, &notices[i]);
}

static bool is_watched(const struct file_watch *d, const char *dir)
{
	for (size_t i = 0; i < MAX_ENTRIES; i++)
		if (d->entries[i].entry && strcmp(d->entries[i].dir, dir) == 0)
			return true;
	return false;
}

void sim_watch_note(struct file_watch *d, const char *dir, const char *name, const char *cause)
{
	struct notice *n = &d->notices[d->notice_count];

	if (d->notice_count == MAX_NOTICES || !is_watched(d, dir))
		return;
	if (d->notice_count++ == 0)
		host_at(d->host, world.now_us + 100 + world_random(STREAM_NETWORK, 1000),
			report_notices, d);
	snprintf(n->dir, sizeof(n->dir), "%s", dir);
	snprintf(n->name, sizeof(n->name), "%s", name);
	n->cause = cause;
}

struct file_watch *file_watch_new(struct loop *l)
{
	struct file_watch *d = calloc(1, sizeof(*d));

	(void)l;
	if (d) {
		d->host = host_now;
		d->host->watch = d;
	}
	return d;
}

void file_watch_creations(struct file_watch *d)
{
	(void)d; /* nothing here watches the agent's own configuration */
}

void file_watch_free(struct file_watch *d)
{
	if (d)
		d->host->watch = NULL;
	free(d);
}

int file_watch_add(
	struct file_watch *d, struct file_watch_entry *e, const char *dir, const char *name)
{
	for (size_t i = 0; i < MAX_ENTRIES; i++) {
		if (d->entries[i].entry)
			continue;
		e->name = name;
		d->entries[i].entry = e;
		snprintf(d->entries[i].dir, sizeof(d->entries[i].dir), "%s", dir);
		return 0;
	}
	return -ENOSPC;
}

/* Directories are watched by name here, so that none is another one. */
int file_watch_renew(
	struct file_watch *d, struct file_watch_entry *e, const char *dir, const char *name)
{
	for (size_t i = 0; i < MAX_ENTRIES; i++)
		if (d->entries[i].entry == e)
			return 0;
	return file_watch_add(d, e, dir, name);
}

const char *file_watch_explain(int error)
{
	return strerror(error);
}

/* Who changes a file here also closes it, which is noticed by its name. */
int file_watch_add_bytes(struct file_watch *d, struct file_watch_entry *e, const char *path)
{
	return file_watch_add(d, e, path, NULL);
}

void file_watch_remove(struct file_watch *d, struct file_watch_entry *e)
{
	for (size_t i = 0; i < MAX_ENTRIES; i++)
		if (d->entries[i].entry == e) {
			d->entries[i].entry = NULL;
			*e = (struct file_watch_entry){.noticed = NULL};
		}
}

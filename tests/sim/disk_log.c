/* The changes of names, modes and owners that are not durable yet, in their order. Surprising: what
 * is written back by itself some day counts as lost until somebody syncs, for up to LOG_MAX
 * changes.
 */
#include "disk_tree.h"

#include <string.h>

#define LOG_MAX 8192

/* Memory file systems lose all anyway. */
static bool is_logged(const struct inode *n)
{
	return n->device == DISK_DEVICE;
}

static struct change *log_append(struct disk *d)
{
	if (d->logged == LOG_MAX)
		log_forget(d, 0, LOG_MAX / 2);
	if (d->logged == d->log_room) {
		d->log_room = d->log_room ? 2 * d->log_room : 64;
		d->log = disk_grow(d->log, d->log_room * sizeof(*d->log));
	}
	memset(&d->log[d->logged], 0, sizeof(*d->log));
	return &d->log[d->logged++];
}

static void release_change(struct change *c)
{
	name_unref(c->name);
	name_unref(c->to);
	inode_unref(c->before);
	inode_unref(c->after);
	inode_unref(c->moved);
	inode_unref(c->dir);
}

void log_forget(struct disk *d, size_t first, size_t count)
{
	for (size_t i = first; i < first + count; i++)
		release_change(&d->log[i]);
	memmove(&d->log[first], &d->log[first + count],
		(d->logged - first - count) * sizeof(*d->log));
	d->logged -= count;
}

void log_name(struct inode *dir, struct name *name, struct inode *before, struct inode *after)
{
	struct change *c;

	if (!is_logged(dir))
		return;
	c = log_append(dir->disk);
	c->dir = inode_ref(dir);
	c->name = name_ref(name);
	c->before = inode_ref(before);
	c->after = inode_ref(after);
}

void log_rename(struct inode *from_dir, struct name *from, struct inode *dir, struct name *to,
	struct inode *replaced, struct inode *moved)
{
	struct change *c;

	if (!is_logged(dir))
		return;
	if (from_dir != dir) { /* the new name first: a cut may leave both, never none */
		log_name(dir, to, replaced, moved);
		dir->disk->log[dir->disk->logged - 1].joined = true;
		log_name(from_dir, from, moved, NULL);
		return;
	}
	c = log_append(dir->disk);
	c->dir = inode_ref(dir);
	c->name = name_ref(from);
	c->to = name_ref(to);
	c->moved = inode_ref(moved);
	c->before = inode_ref(replaced);
	c->after = inode_ref(moved);
}

void log_attributes(struct inode *n, mode_t mode, uid_t uid, gid_t gid)
{
	struct change *c;

	if (!is_logged(n))
		return;
	c = log_append(n->disk);
	c->after = inode_ref(n);
	c->was.mode = n->mode;
	c->was.uid = n->uid;
	c->was.gid = n->gid;
	c->is.mode = mode;
	c->is.uid = uid;
	c->is.gid = gid;
}

void log_sync(struct inode *n)
{
	struct disk *d = n->disk;
	size_t kept = 0;

	if (!is_logged(n) || d->logged == 0)
		return;
	if (d->model == DISK_JOURNAL) {
		log_forget(d, 0, d->logged);
		return;
	}
	for (size_t i = 0; i < d->logged; i++) {
		struct change c = d->log[i];

		if (c.dir ? c.dir != n : c.after != n) {
			d->log[kept++] = c;
			continue;
		}
		release_change(&c);
		if (kept > 0 &&
			d->log[kept - 1].joined) /* c is the old name: the new one is durable too */
			release_change(&d->log[--kept]);
	}
	d->logged = kept;
}

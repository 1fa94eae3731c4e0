/* Descriptors and what is done by them: open, read, write, fsync, close, modes and owners, locks.
 * Surprising: after an fsync that failed the next one succeeds, and the data still never gets to
 * the disk, as the kernel took the pages for written. */
#include "disk_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define FIRST_FD 3

/* ---- descriptors ---- */

struct descriptor *descriptor_get(int fd)
{
	struct disk *d = disk_require();

	if (fd < 0 || (size_t)fd >= d->descriptor_room[disk_owner] ||
		!d->descriptors[disk_owner][fd].inode)
		return NULL;
	return &d->descriptors[disk_owner][fd];
}

/* One that is not O_PATH. */
static struct descriptor *get_file(int fd)
{
	struct descriptor *f = descriptor_get(fd);

	return f && !(f->flags & O_PATH) ? f : NULL;
}

int descriptor_new(struct disk *d, struct inode *n, int flags, int from)
{
	struct descriptor **all = &d->descriptors[disk_owner];
	size_t *room = &d->descriptor_room[disk_owner],
	       fd = from < FIRST_FD ? FIRST_FD : (size_t)from;

	while (fd < *room && (*all)[fd].inode)
		fd++;
	if (fd >= d->limit)
		return -EMFILE;
	while (fd >= *room) {
		size_t more = *room ? 2 * *room : 32;

		*all = disk_grow(*all, more * sizeof(**all));
		memset(*all + *room, 0, (more - *room) * sizeof(**all));
		*room = more;
	}
	(*all)[fd] = (struct descriptor){.inode = inode_ref(n), .flags = flags};
	d->open[disk_owner]++;
	return (int)fd;
}

int call_close(int fd)
{
	struct descriptor *f = descriptor_get(fd), old;

	if (!f)
		return -EBADF;
	old = *f;
	memset(f, 0, sizeof(*f));
	disk_require()->open[disk_owner]--;
	stream_free(old.stream);
	if (!(old.flags & O_PATH)) {
		lock_drop(old.inode, disk_owner);
		if (old.flags & O_ACCMODE)
			inode_notify(old.inode, "written");
	}
	inode_unref(old.inode);
	return 0;
}

/* ---- open ---- */

static int create_file(struct place *p, mode_t mode)
{
	struct inode *n;
	struct name *name;

	if (p->dir->links == 0)
		return -ENOENT;
	n = inode_new(p->dir->disk, p->dir->device, S_IFREG | (mode & 07777));
	name = name_new(p->last, p->len);
	dir_set(p->dir, name, n);
	log_name(p->dir, name, NULL, n);
	inode_touch(p->dir, true);
	name_unref(name);
	p->inode = n;
	inode_unref(n); /* its name has it */
	return 0;
}

static int check_open(const struct place *p, int flags)
{
	mode_t mode = p->inode->mode;

	if ((flags & O_CREAT) && (flags & O_EXCL))
		return -EEXIST;
	if ((flags & O_CREAT) && S_ISDIR(mode))
		return -EISDIR;
	if ((flags & O_DIRECTORY || p->slash) && !S_ISDIR(mode))
		return -ENOTDIR;
	if (flags & O_PATH)
		return 0;
	if (S_ISLNK(mode))
		return -ELOOP;
	if (S_ISDIR(mode) && (flags & O_ACCMODE || flags & O_TRUNC))
		return -EISDIR;
	return 0;
}

int call_open(int at, const char *path, int flags, mode_t mode, bool no_links)
{
	struct disk *d = disk_require();
	bool follow = !(flags & O_NOFOLLOW) && !((flags & O_CREAT) && (flags & O_EXCL));
	unsigned walk = (follow ? WALK_FOLLOW : 0) | (no_links ? WALK_NO_LINKS : 0);
	struct place p;
	int r, fd;

	if (d->open[disk_owner] + FIRST_FD >= d->limit)
		return -EMFILE;
	if (flags & O_PATH)
		flags &= O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	if (flags & O_CREAT && path[0] && path[strlen(path) - 1] == '/')
		walk = WALK_PARENT;
	r = walk_find(d, at, path, walk, &p);
	if (r)
		return r;
	if (flags & O_CREAT && p.slash && !p.special)
		return -EISDIR;
	if (no_links && p.inode && S_ISLNK(p.inode->mode) && !(flags & O_PATH))
		return -ELOOP;
	if (p.inode)
		r = check_open(&p, flags);
	else
		r = flags & O_CREAT ? create_file(&p, mode) : -ENOENT;
	if (r)
		return r;
	if (flags & O_TRUNC && S_ISREG(p.inode->mode))
		file_truncate(p.inode);
	fd = descriptor_new(d, p.inode, flags, 0);
	return fd;
}

/* ---- data ---- */

ssize_t call_read(int fd, void *data, size_t len, off_t at)
{
	struct descriptor *f = get_file(fd);
	size_t from;

	if (!f || (f->flags & O_ACCMODE) == O_WRONLY)
		return -EBADF;
	if (S_ISDIR(f->inode->mode))
		return -EISDIR;
	from = at < 0 ? f->at : (size_t)at;
	if (from >= f->inode->len)
		return 0;
	if (len > f->inode->len - from)
		len = f->inode->len - from;
	if (len)
		memcpy(data, f->inode->data->data + from, len);
	if (at < 0)
		f->at += len;
	return (ssize_t)len;
}

ssize_t call_write(int fd, const void *data, size_t len)
{
	struct descriptor *f = get_file(fd);

	if (!f || !(f->flags & O_ACCMODE))
		return -EBADF;
	if (len == 0)
		return 0;
	if (f->flags & O_APPEND)
		f->at = f->inode->len;
	file_append_at(f->inode, f->at, data, len);
	f->at += len;
	return (ssize_t)len;
}

int call_sync(int fd, bool fails)
{
	struct descriptor *f = get_file(fd);

	if (!f)
		return -EBADF;
	if (fails) {
		if (f->inode->dirty)
			f->inode->lost = true;
		return 0;
	}
	if (S_ISREG(f->inode->mode) && f->inode->device == DISK_DEVICE && !f->inode->lost)
		file_make_durable(f->inode);
	log_sync(f->inode);
	return 0;
}

/* ---- attributes ---- */

void inode_set_attributes(struct inode *n, mode_t mode, uid_t uid, gid_t gid)
{
	mode = (n->mode & S_IFMT) | (mode & 07777);
	log_attributes(n, mode, uid, gid);
	n->mode = mode;
	n->uid = uid;
	n->gid = gid;
	inode_touch(n, false);
	inode_notify(n, "its mode or owner changed");
}

int call_fchmod(int fd, mode_t mode)
{
	struct descriptor *f = get_file(fd);

	if (!f)
		return -EBADF;
	inode_set_attributes(f->inode, mode, f->inode->uid, f->inode->gid);
	return 0;
}

int call_fchown(int fd, uid_t uid, gid_t gid)
{
	struct descriptor *f = get_file(fd);
	mode_t mode;

	if (!f)
		return -EBADF;
	mode = f->inode->mode;
	if (!S_ISDIR(mode))
		mode &= ~(mode_t)(S_ISUID | (mode & S_IXGRP ? S_ISGID : 0));
	inode_set_attributes(f->inode, mode, uid == (uid_t)-1 ? f->inode->uid : uid,
		gid == (gid_t)-1 ? f->inode->gid : gid);
	return 0;
}

/* ---- locks: whole files ---- */

void lock_drop(struct inode *n, enum disk_owner owner)
{
	if (n->lock_owner == (unsigned)owner + 1)
		n->lock_owner = 0;
}

int call_lock(int fd, bool query, struct flock *lock)
{
	struct descriptor *f = get_file(fd);
	unsigned me = (unsigned)disk_owner + 1;
	struct inode *n;
	bool taken;

	if (!f)
		return -EBADF;
	n = f->inode;
	if (!query && lock->l_type == F_WRLCK && !(f->flags & O_ACCMODE))
		return -EBADF;
	taken = n->lock_owner && n->lock_owner != me &&
		(n->lock_type == F_WRLCK || lock->l_type == F_WRLCK);
	if (query) {
		if (taken)
			lock->l_type = n->lock_type;
		else
			lock->l_type = F_UNLCK;
		lock->l_pid = taken ? (pid_t)n->lock_owner : 0;
		return 0;
	}
	if (lock->l_type == F_UNLCK) {
		lock_drop(n, disk_owner);
		return 0;
	}
	if (taken)
		return -EAGAIN;
	n->lock_owner = me;
	n->lock_type = lock->l_type;
	return 0;
}

/* Calls by path that change names or ask about them. Surprising: nothing is refused for a mode or
 * an owner, as the agent is root. */
#include "disk_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct timespec make_time(int64_t us)
{
	struct timespec t = {us / 1000000, us % 1000000 * 1000};

	if (t.tv_nsec < 0) {
		t.tv_sec--;
		t.tv_nsec += 1000000000;
	}
	return t;
}

int call_stat(int at, const char *path, int flags, struct stat *ret)
{
	unsigned walk = (flags & AT_SYMLINK_NOFOLLOW ? 0 : WALK_FOLLOW) |
			(flags & AT_EMPTY_PATH ? WALK_EMPTY : 0);
	struct inode *n;
	int r = walk_inode(disk_require(), at, path, walk, &n);

	if (r)
		return r;
	memset(ret, 0, sizeof(*ret));
	ret->st_dev = n->device;
	ret->st_ino = n->number;
	ret->st_mode = n->mode;
	ret->st_nlink = n->links;
	ret->st_uid = n->uid;
	ret->st_gid = n->gid;
	ret->st_size = S_ISDIR(n->mode) ? DISK_PAGE : (off_t)n->len;
	ret->st_blksize = DISK_PAGE;
	ret->st_blocks = (ret->st_size + 511) / 512;
	ret->st_mtim = ret->st_atim = make_time(n->modified_us);
	ret->st_ctim = make_time(n->changed_us);
	return 0;
}

int call_access(int at, const char *path, int mode)
{
	struct inode *n;
	int r = walk_inode(disk_require(), at, path, WALK_FOLLOW, &n);

	if (r == 0 && mode & X_OK && !S_ISDIR(n->mode) && !(n->mode & 0111))
		r = -EACCES;
	return r;
}

/* "/proc/self/fd/N", the one thing below /proc. */
static ssize_t read_descriptor_link(const char *path, char *ret, size_t size)
{
	static const char prefix[] = "/proc/self/fd/";
	struct descriptor *f;
	char text[PATH_MAX];
	size_t len;

	if (strncmp(path, prefix, strlen(prefix)) != 0)
		return -1;
	f = descriptor_get((int)strtol(path + strlen(prefix), NULL, 10));
	if (!f)
		return -ENOENT;
	inode_path(f->inode, text, sizeof(text));
	len = strlen(text);
	memcpy(ret, text, len < size ? len : size);
	return (ssize_t)(len < size ? len : size);
}

ssize_t call_readlink(int at, const char *path, char *ret, size_t size)
{
	ssize_t len = read_descriptor_link(path, ret, size);
	struct inode *n;
	int r;

	if (len != -1)
		return len;
	r = walk_inode(disk_require(), at, path, WALK_EMPTY, &n);
	if (r)
		return r;
	if (!S_ISLNK(n->mode))
		return path[0] ? -EINVAL : -ENOENT;
	if (size > n->len)
		size = n->len;
	memcpy(ret, n->data->data, size);
	return (ssize_t)size;
}

/* ---- names ---- */

/* Gives the new inode, whose reference it takes, the name of the place. */
static void give_name(struct place *p, struct inode *n)
{
	struct name *name = name_new(p->last, p->len);

	dir_set(p->dir, name, n);
	log_name(p->dir, name, NULL, n);
	inode_touch(p->dir, true);
	name_unref(name);
	p->inode = n;
	inode_unref(n);
}

/* A place for a name that is not there yet. */
static int find_free(int at, const char *path, bool dir, struct place *ret)
{
	int r = walk_find(disk_require(), at, path, WALK_PARENT, ret);

	if (r)
		return r;
	if (ret->inode || ret->special)
		return -EEXIST;
	if (ret->slash && !dir)
		return -ENOENT;
	return ret->dir->links == 0 ? -ENOENT : 0;
}

int call_mkdir(int at, const char *path, mode_t mode)
{
	struct place p;
	int r = find_free(at, path, true, &p);

	if (r == 0)
		give_name(&p, inode_new(p.dir->disk, p.dir->device, S_IFDIR | (mode & 01777)));
	return r;
}

int call_symlink(const char *target, int at, const char *path)
{
	size_t len = strlen(target);
	struct inode *n;
	struct place p;
	int r;

	if (len == 0 || len >= PATH_MAX)
		return len ? -ENAMETOOLONG : -ENOENT;
	r = find_free(at, path, false, &p);
	if (r)
		return r;
	n = inode_new(p.dir->disk, p.dir->device, S_IFLNK | 0777);
	file_prepare_write(n, len + 1); /* zeros follow */
	memcpy(n->data->data, target, len);
	n->len = len;
	give_name(&p, n);
	return 0;
}

static int check_unlink(const struct place *p, bool dir)
{
	if (p->special)
		return !dir                ? -EISDIR
		       : p->special == '.' ? -EINVAL
		       : p->special == ':' ? -ENOTEMPTY
					   : -EBUSY;
	if (!p->inode)
		return -ENOENT;
	if (!S_ISDIR(p->inode->mode))
		return dir || p->slash ? -ENOTDIR : 0;
	if (!dir)
		return -EISDIR;
	if (p->inode->mount)
		return -EBUSY;
	return p->inode->count ? -ENOTEMPTY : 0;
}

int call_unlink(int at, const char *path, int flags)
{
	struct name *name;
	struct place p;
	int r = walk_find(disk_require(), at, path, WALK_PARENT, &p);

	if (r == 0)
		r = check_unlink(&p, flags & AT_REMOVEDIR);
	if (r)
		return r;
	name = name_new(p.last, p.len);
	inode_touch(p.inode, false);
	log_name(p.dir, name, p.inode, NULL);
	dir_set(p.dir, name, NULL);
	inode_touch(p.dir, true);
	dir_notify(p.dir, name->text, "removed");
	name_unref(name);
	return 0;
}

/* ---- rename ---- */

static bool is_above(const struct inode *n, const struct inode *below)
{
	for (; below->parent != below; below = below->parent)
		if (below == n)
			return true;
	return below == n;
}

static int check_rename(const struct place *from, const struct place *to)
{
	bool dir;

	if (from->dir && to->dir && from->dir->device != to->dir->device)
		return -EXDEV;
	if (from->special || to->special)
		return -EBUSY;
	if (!from->inode)
		return -ENOENT;
	dir = S_ISDIR(from->inode->mode);
	if (!dir && (from->slash || to->slash))
		return -ENOTDIR;
	if (dir && is_above(from->inode, to->dir))
		return -EINVAL;
	if (to->inode && is_above(to->inode, from->dir))
		return -ENOTEMPTY;
	if (to->inode == from->inode)
		return 0;
	if (to->dir->links == 0)
		return -ENOENT;
	if (to->inode && dir != S_ISDIR(to->inode->mode))
		return dir ? -ENOTDIR : -EISDIR;
	if (from->inode->mount || (to->inode && to->inode->mount))
		return -EBUSY;
	return to->inode && to->inode->count ? -ENOTEMPTY : 0;
}

int call_rename(int from_at, const char *from_path, int to_at, const char *to_path)
{
	struct disk *d = disk_require();
	struct name *from_name, *to_name;
	struct place from, to;
	struct inode *moved;
	int r = walk_find(d, from_at, from_path, WALK_PARENT, &from);

	if (r == 0)
		r = walk_find(d, to_at, to_path, WALK_PARENT, &to);
	if (r == 0)
		r = check_rename(&from, &to);
	if (r || from.inode == to.inode)
		return r;
	from_name = name_new(from.last, from.len);
	to_name = name_new(to.last, to.len);
	moved = inode_ref(from.inode);
	log_rename(from.dir, from_name, to.dir, to_name, to.inode, moved);
	if (to.inode)
		inode_touch(to.inode, false);
	dir_set(to.dir, to_name, moved);
	dir_set(from.dir, from_name, NULL);
	inode_touch(from.dir, true);
	inode_touch(to.dir, true);
	inode_touch(moved, false);
	dir_notify(from.dir, from_name->text, "removed");
	dir_notify(to.dir, to_name->text, "replaced");
	inode_unref(moved);
	name_unref(from_name);
	name_unref(to_name);
	return 0;
}

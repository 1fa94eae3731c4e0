/* From a path to an inode, as the kernel does it. Surprising: the last part need not exist; callers
 * look at the place. */
#include "disk_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#define MAX_LINKS 40

struct walk {
	unsigned flags, links;
	struct place place;
};

static int walk_parts(struct walk *w, struct inode *dir, const char *path, bool final, bool slash);

/* Follows the symlink that `place` is at; its text has a NUL behind it. */
static int follow_symlink(struct walk *w, struct inode *dir, bool final, bool slash)
{
	struct inode *link = w->place.inode;

	if (w->flags & WALK_NO_LINKS || ++w->links > MAX_LINKS)
		return -ELOOP;
	return walk_parts(w, dir, (const char *)link->data->data, final, slash);
}

/* One part: where it leads to, without following it. */
static void find_part(struct walk *w, struct inode *dir, const char *part, size_t len)
{
	struct place *p = &w->place;
	struct entry *e;

	*p = (struct place){.dir = dir, .last = part, .len = len};
	if (len == 1 && part[0] == '.') {
		p->special = '.';
		p->inode = dir;
	} else if (len == 2 && part[0] == '.' && part[1] == '.') {
		p->special = ':';
		p->inode = dir->parent;
	} else {
		e = dir_find(dir, part, len);
		p->inode = e ? e->inode : NULL;
	}
}

static int walk_parts(struct walk *w, struct inode *dir, const char *path, bool final, bool slash)
{
	const char *p = path;
	int r;

	if (*p == '/') {
		dir = dir->disk->root;
		w->place = (struct place){.inode = dir, .special = '/'};
		p += strspn(p, "/");
	}
	while (*p) {
		size_t len = strcspn(p, "/"), gap = strspn(p + len, "/");
		bool last = p[len + gap] == '\0', ends = slash || gap;

		if (!S_ISDIR(dir->mode))
			return -ENOTDIR;
		if (len > DISK_NAME)
			return -ENAMETOOLONG;
		find_part(w, dir, p, len);
		w->place.slash = last && ends;
		if (w->place.inode && S_ISLNK(w->place.inode->mode) &&
			(!last || !final || (ends && !(w->flags & WALK_PARENT)) ||
				w->flags & WALK_FOLLOW)) {
			r = follow_symlink(w, dir, last && final, last && ends);
			if (r)
				return r;
		}
		if (last && final)
			return 0;
		if (!w->place.inode)
			return -ENOENT;
		dir = w->place.inode;
		p += len + gap;
	}
	return 0;
}

int walk_find(struct disk *d, int at, const char *path, unsigned flags, struct place *ret)
{
	struct walk w = {.flags = flags};
	struct inode *dir = d->root;
	int r;

	if (!path)
		return -EFAULT;
	if (!path[0] && !(flags & WALK_EMPTY))
		return -ENOENT;
	if (path[0] != '/' && at != AT_FDCWD) {
		struct descriptor *fd = descriptor_get(at);

		if (!fd)
			return -EBADF;
		dir = fd->inode;
		if (path[0] && !S_ISDIR(dir->mode))
			return -ENOTDIR;
	}
	if (strlen(path) >= PATH_MAX)
		return -ENAMETOOLONG;
	w.place = (struct place){.inode = dir, .special = '.'};
	r = walk_parts(&w, dir, path, true, false);
	if (r == 0)
		*ret = w.place;
	return r;
}

int walk_inode(struct disk *d, int at, const char *path, unsigned flags, struct inode **ret)
{
	struct place p;
	int r = walk_find(d, at, path, flags, &p);

	if (r)
		return r;
	if (!p.inode)
		return -ENOENT;
	if (p.slash && !S_ISDIR(p.inode->mode))
		return -ENOTDIR;
	*ret = p.inode;
	return 0;
}

/* What other people do to files, and what the simulator asks about them: at once, whole, durable.
 * Surprising: an edit syncs the directory it is made in, and so what the agent left unsynced there.
 */
#include "disk_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

static int find_path(const char *path, unsigned flags, struct inode **ret)
{
	return walk_inode(disk_require(), AT_FDCWD, path, flags, ret);
}

static void sync_name(const struct inode *n)
{
	log_sync(n->parent);
}

/* One directory, made unless it is there. */
static int make_one(const char *path, struct inode **ret)
{
	int r = call_mkdir(AT_FDCWD, path, 0755);

	if (r && r != -EEXIST)
		return r;
	if (find_path(path, WALK_FOLLOW, ret))
		return -ENOENT;
	if (r == 0)
		sync_name(*ret);
	return S_ISDIR((*ret)->mode) ? 0 : -ENOTDIR;
}

static int make_path(const char *path, struct inode **ret)
{
	char part[1024];
	size_t len = 0;
	int r = -EINVAL;

	while (path[len]) {
		len += strspn(path + len, "/");
		len += strcspn(path + len, "/");
		if (len >= sizeof(part))
			return -ENAMETOOLONG;
		memcpy(part, path, len);
		part[len] = '\0';
		r = make_one(part, ret);
		if (r)
			return r;
	}
	return r;
}

int disk_make_dir(const char *path)
{
	struct inode *n;

	return make_path(path, &n);
}

int disk_mount_memory(const char *path)
{
	struct inode *n;
	int r = make_path(path, &n);

	if (r)
		return r;
	if (n->count || n->mount)
		return -EBUSY;
	n->mount = true;
	n->device = ++n->disk->last_device;
	return 0;
}

/* ---- changes ---- */

static void fill_file(struct inode *n, const void *data, size_t len)
{
	file_truncate(n);
	n->lost = false;
	if (len)
		file_append_at(n, 0, data, len);
	file_make_durable(n);
	log_sync(n);
	sync_name(n);
}

int disk_put(const char *path, const void *data, size_t len)
{
	enum disk_owner before = disk_owner;
	int fd;

	disk_owner = OWNER_WORLD;
	fd = call_open(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0644, false);
	if (fd >= 0) {
		fill_file(descriptor_get(fd)->inode, data, len);
		call_close(fd);
	}
	disk_owner = before;
	return fd < 0 ? fd : 0;
}

int disk_replace(const char *path, const void *data, size_t len)
{
	char aside[1024];
	size_t room = strlen(path);
	struct inode *old = NULL, *n;
	int r;

	if (room + 2 > sizeof(aside))
		return -ENAMETOOLONG;
	memcpy(aside, path, room);
	memcpy(aside + room, "~", 2);
	find_path(path, WALK_FOLLOW, &old);
	r = disk_put(aside, data, len);
	if (r == 0)
		r = find_path(aside, 0, &n);
	if (r == 0 && old)
		inode_set_attributes(n, old->mode, old->uid, old->gid);
	if (r == 0)
		r = call_rename(AT_FDCWD, aside, AT_FDCWD, path);
	if (r == 0) {
		log_sync(n);
		sync_name(n);
	}
	return r;
}

int disk_put_link(const char *path, const char *target)
{
	struct inode *n;
	int r = call_symlink(target, AT_FDCWD, path);

	if (r == 0)
		r = find_path(path, 0, &n);
	if (r == 0)
		sync_name(n);
	return r;
}

int disk_set_mode(const char *path, mode_t mode)
{
	struct inode *n;
	int r = find_path(path, WALK_FOLLOW, &n);

	if (r == 0) {
		inode_set_attributes(n, mode, n->uid, n->gid);
		log_sync(n);
	}
	return r;
}

int disk_set_owner(const char *path, uid_t uid, gid_t gid)
{
	struct inode *n;
	int r = find_path(path, WALK_FOLLOW, &n);

	if (r == 0) {
		inode_set_attributes(n, n->mode, uid, gid);
		log_sync(n);
	}
	return r;
}

static int remove_below(struct inode *dir)
{
	char path[1024];
	int r = 0;

	while (r == 0 && dir->count > 0) {
		inode_path(dir->entries[0].inode, path, sizeof(path));
		r = disk_remove(path);
	}
	return r;
}

int disk_remove(const char *path)
{
	struct inode *n, *parent;
	bool dir;
	int r = find_path(path, 0, &n);

	if (r)
		return r;
	dir = S_ISDIR(n->mode);
	r = dir ? remove_below(n) : 0;
	parent = inode_ref(n->parent);
	if (r == 0)
		r = call_unlink(AT_FDCWD, path, dir ? AT_REMOVEDIR : 0);
	if (r == 0)
		log_sync(parent);
	inode_unref(parent);
	return r;
}

/* ---- questions ---- */

const void *disk_get(const char *path, size_t *ret_len)
{
	struct inode *n;

	if (find_path(path, WALK_FOLLOW, &n) || !S_ISREG(n->mode))
		return NULL;
	*ret_len = n->len;
	return n->data ? (const char *)n->data->data : "";
}

const void *disk_get_synced(const char *path, size_t *ret_len)
{
	struct inode *n;

	if (find_path(path, WALK_FOLLOW, &n) || !S_ISREG(n->mode))
		return NULL;
	*ret_len = n->device == DISK_DEVICE ? n->safe_len : 0;
	return *ret_len ? (const char *)n->safe->data : "";
}

int disk_real_path(const char *path, char *ret, size_t size)
{
	struct inode *n;
	int r = find_path(path, WALK_FOLLOW, &n);

	if (r == 0)
		inode_path(n, ret, size);
	return r;
}

static int compare_entries(const void *a, const void *b)
{
	return strcmp(((const struct entry *)a)->name->text, ((const struct entry *)b)->name->text);
}

int disk_list(const char *path, int (*visit)(void *arg, const char *name, mode_t mode), void *arg)
{
	struct entry *sorted;
	struct inode *n;
	size_t count;
	int r = find_path(path, WALK_FOLLOW, &n);

	if (r || !S_ISDIR(n->mode))
		return r ? r : -ENOTDIR;
	count = n->count;
	sorted = disk_alloc(count * sizeof(*sorted));
	for (size_t i = 0; i < count; i++)
		sorted[i] = (struct entry){
			name_ref(n->entries[i].name), inode_ref(n->entries[i].inode)};
	qsort(sorted, count, sizeof(*sorted), compare_entries);
	for (size_t i = 0; i < count; i++) {
		if (r == 0)
			r = visit(arg, sorted[i].name->text, sorted[i].inode->mode);
		name_unref(sorted[i].name);
		inode_unref(sorted[i].inode);
	}
	disk_release(sorted);
	return r;
}

static size_t count_below(const struct inode *dir, const char *part)
{
	size_t n = 0;

	for (size_t i = 0; i < dir->count; i++) {
		n += strstr(dir->entries[i].name->text, part) != NULL;
		if (S_ISDIR(dir->entries[i].inode->mode))
			n += count_below(dir->entries[i].inode, part);
	}
	return n;
}

size_t disk_count(const char *path, const char *part)
{
	struct inode *n;

	return find_path(path, WALK_FOLLOW, &n) || !S_ISDIR(n->mode) ? 0 : count_below(n, part);
}

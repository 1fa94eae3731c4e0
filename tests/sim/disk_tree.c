/* Inodes and names. Surprising: inode numbers are used again at once, so that code that compares
 * nothing else is found out. */
#include "disk_tree.h"

#include <stdio.h>
#include <string.h>

#include "world.h"

#define TICK_US 4000

struct name *name_new(const char *text, size_t len)
{
	struct name *n = disk_alloc(sizeof(*n) + len + 1);

	n->refs = 1;
	n->len = len;
	n->hash = 2166136261U;
	for (size_t i = 0; i < len; i++)
		n->hash = (n->hash ^ (unsigned char)text[i]) * 16777619U;
	memcpy(n->text, text, len);
	n->text[len] = '\0';
	return n;
}

struct name *name_ref(struct name *n)
{
	if (n)
		n->refs++;
	return n;
}

void name_unref(struct name *n)
{
	if (n && --n->refs == 0)
		disk_release(n);
}

/* ---- inodes ---- */

static ino_t take_number(struct disk *d)
{
	return d->free_count ? d->free_numbers[--d->free_count] : ++d->last_number;
}

static void give_number(struct disk *d, ino_t number)
{
	if (d->free_count == d->free_room) {
		d->free_room = d->free_room ? 2 * d->free_room : 64;
		d->free_numbers = disk_grow(d->free_numbers, d->free_room * sizeof(ino_t));
	}
	d->free_numbers[d->free_count++] = number;
}

struct inode *inode_new(struct disk *d, dev_t device, mode_t mode)
{
	struct inode *n = disk_alloc(sizeof(*n));

	memset(n, 0, sizeof(*n));
	n->disk = d;
	n->next = d->inodes;
	if (n->next)
		n->next->previous = n;
	d->inodes = n;
	n->refs = 1;
	n->device = device;
	n->number = take_number(d);
	n->mode = mode;
	inode_touch(n, true);
	return n;
}

struct inode *inode_ref(struct inode *n)
{
	if (n)
		n->refs++;
	return n;
}

void inode_destroy(struct inode *n)
{
	struct disk *d = n->disk;

	*(n->previous ? &n->previous->next : &d->inodes) = n->next;
	if (n->next)
		n->next->previous = n->previous;
	for (size_t i = 0; i < n->count; i++)
		name_unref(n->entries[i].name);
	disk_release(n->entries);
	name_unref(n->name);
	pages_unref(n->data);
	pages_unref(n->safe);
	give_number(d, n->number);
	disk_release(n);
}

void inode_unref(struct inode *n)
{
	struct inode *parent;

	for (; n && --n->refs == 0; n = parent) {
		parent = n->parent == n ? NULL : n->parent;
		inode_destroy(n);
	}
}

void inode_touch(struct inode *n, bool modified)
{
	int64_t us = (int64_t)world.now_us + world.wall_offset_us;

	us -= us % TICK_US;
	n->changed_us = us;
	if (modified)
		n->modified_us = us;
}

/* ---- directories ---- */

struct entry *dir_find(const struct inode *dir, const char *name, size_t len)
{
	for (size_t i = 0; i < dir->count; i++) {
		const struct name *n = dir->entries[i].name;

		if (n->len == len && memcmp(n->text, name, len) == 0)
			return &dir->entries[i];
	}
	return NULL;
}

void inode_place(struct inode *n, struct inode *parent, struct name *name)
{
	struct inode *old = n->parent == n ? NULL : n->parent;

	n->parent = parent == n ? n : inode_ref(parent);
	name_ref(name);
	name_unref(n->name);
	n->name = name;
	inode_unref(old);
}

static void count_link(struct inode *dir, struct inode *n, bool more)
{
	if (S_ISDIR(n->mode)) {
		n->links = more ? n->links + 2 : n->links - 2;
		dir->links = more ? dir->links + 1 : dir->links - 1;
	} else {
		n->links = more ? n->links + 1 : n->links - 1;
	}
}

void dir_set(struct inode *dir, struct name *name, struct inode *n)
{
	struct entry *e = dir_find(dir, name->text, name->len);
	struct inode *old = e ? e->inode : NULL;

	if (n) {
		count_link(dir, n, true);
		inode_ref(n);
		inode_place(n, dir, name);
	}
	if (e && n) {
		e->inode = n;
	} else if (n) {
		if (dir->count == dir->room) {
			dir->room = dir->room ? 2 * dir->room : 8;
			dir->entries = disk_grow(dir->entries, dir->room * sizeof(*e));
		}
		dir->entries[dir->count++] = (struct entry){name_ref(name), n};
	} else if (e) {
		name_unref(e->name);
		*e = dir->entries[--dir->count];
	}
	if (old) {
		count_link(dir, old, false);
		inode_unref(old);
	}
}

/* ---- paths, notices ---- */

void inode_path(const struct inode *n, char *ret, size_t size)
{
	const struct inode *chain[64];
	size_t depth = 0, len = 0;

	for (; n->parent != n && n->parent && depth < 64; n = n->parent)
		chain[depth++] = n;
	ret[0] = '/';
	ret[1] = '\0';
	while (depth > 0 && len + 1 < size) {
		n = chain[--depth];
		len += (size_t)snprintf(ret + len, size - len, "/%s", n->name->text);
	}
}

void dir_notify(const struct inode *dir, const char *name, const char *cause)
{
	char path[1024];

	if (!dir->disk->changed)
		return;
	inode_path(dir, path, sizeof(path));
	dir->disk->changed(dir->disk->changed_arg, path, name, cause);
}

void inode_notify(const struct inode *n, const char *cause)
{
	if (n->links && n->parent && n->parent != n)
		dir_notify(n->parent, n->name->text, cause);
}

/* A disk as a whole: its life, and which one is in use. */
#include "disk_tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *__real_realloc(void *old, size_t size);
void __real_free(void *p);

volatile enum disk_owner disk_owner = OWNER_WORLD;
static struct disk *in_use;

void disk_fail(const char *what)
{
	fprintf(stderr, "sim: %s\n", what);
	abort();
}

void *disk_alloc(size_t size)
{
	return disk_grow(NULL, size);
}

void *disk_grow(void *old, size_t size)
{
	void *p = __real_realloc(old, size ? size : 1);

	if (!p)
		disk_fail("out of memory");
	return p;
}

void disk_release(void *p)
{
	__real_free(p);
}

struct disk *disk_require(void)
{
	if (!in_use)
		disk_fail("a system call while no disk is in use");
	return in_use;
}

void disk_use(struct disk *d)
{
	in_use = d;
}

struct disk *disk_in_use(void)
{
	return in_use;
}

struct disk *disk_new(enum disk_model model)
{
	struct disk *d = disk_alloc(sizeof(*d));

	memset(d, 0, sizeof(*d));
	d->model = model;
	d->limit = DISK_DESCRIPTORS;
	d->last_device = DISK_DEVICE;
	d->last_number = 1; /* the root's is 2 */
	d->root = inode_new(d, DISK_DEVICE, S_IFDIR | 0755);
	d->root->links = 2;
	d->root->parent = d->root;
	d->root->name = name_new("", 0);
	return d;
}

void disk_free(struct disk *d)
{
	if (!d)
		return;
	d->changed = NULL;
	for (int owner = 0; owner < OWNERS; owner++) {
		disk_kill(d, (enum disk_owner)owner);
		disk_release(d->descriptors[owner]);
	}
	log_forget(d, 0, d->logged);
	while (d->inodes)
		inode_destroy(d->inodes);
	disk_release(d->free_numbers);
	disk_release(d->log);
	disk_release(d);
	if (in_use == d)
		in_use = NULL;
}

void disk_kill(struct disk *d, enum disk_owner owner)
{
	enum disk_owner before = disk_owner;
	struct disk *used = in_use;

	disk_owner = owner;
	in_use = d;
	for (size_t fd = 0; fd < d->descriptor_room[owner]; fd++)
		call_close((int)fd);
	map_end(d, owner);
	disk_owner = before;
	in_use = used;
}

size_t disk_open_count(const struct disk *d, enum disk_owner owner)
{
	return d->open[owner];
}

void disk_on_change(struct disk *d,
	void (*changed)(void *arg, const char *dir, const char *name, const char *cause), void *arg)
{
	d->changed = changed;
	d->changed_arg = arg;
}

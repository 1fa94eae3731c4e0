/* Mappings: pointers into the pages of a file. Surprising: a reader's outlives the disk, as its
 * handle is closed by whoever simulates it, after the crash that ended it. */
#include "disk_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

int __real_munmap(void *at, size_t len);

struct mapping {
	void *at;
	size_t len;
	enum disk_owner owner;
	struct disk *disk;
	struct pages *pages; /* NULL = anonymous */
	struct inode *inode; /* NULL = it is gone */
	bool writer;
};

static struct {
	struct mapping *all;
	size_t count, room;
} maps;

static struct mapping *add_mapping(void *at, size_t len)
{
	if (maps.count == maps.room) {
		maps.room = maps.room ? 2 * maps.room : 64;
		maps.all = disk_grow(maps.all, maps.room * sizeof(*maps.all));
	}
	maps.all[maps.count] =
		(struct mapping){.at = at, .len = len, .owner = disk_owner, .disk = disk_in_use()};
	return &maps.all[maps.count++];
}

/* Lets go of the file; the pages remain. */
static void leave_inode(struct mapping *m)
{
	if (m->inode) {
		m->inode->writers -= m->writer;
		m->inode->dirty |= m->writer;
		inode_unref(m->inode);
	}
	m->inode = NULL;
	m->disk = NULL;
}

static int drop_mapping(struct mapping *m)
{
	struct mapping old = *m;

	*m = maps.all[--maps.count];
	if (!old.pages)
		return __real_munmap(old.at, old.len) ? -errno : 0;
	leave_inode(&old);
	pages_unref(old.pages);
	return 0;
}

int call_map(int fd, size_t len, int protection, void **ret)
{
	struct descriptor *f = descriptor_get(fd);
	bool writes = protection & PROT_WRITE;
	struct mapping *m;
	struct inode *n;

	if (!f || f->flags & O_PATH)
		return -EBADF;
	n = f->inode;
	if (len == 0)
		return -EINVAL;
	if ((f->flags & O_ACCMODE) == O_WRONLY || (writes && (f->flags & O_ACCMODE) != O_RDWR))
		return -EACCES;
	if (!S_ISREG(n->mode))
		return -ENODEV;
	if (writes || !n->data || n->data->room < len)
		file_prepare_write(n, len > n->len ? len : n->len);
	m = add_mapping(n->data->data, len);
	m->pages = n->data;
	m->pages->refs++;
	m->inode = inode_ref(n);
	m->writer = writes;
	n->writers += writes;
	n->dirty |= writes;
	*ret = m->at;
	return 0;
}

void map_note_anonymous(void *at, size_t len)
{
	add_mapping(at, len);
}

int call_unmap(void *at, size_t len)
{
	(void)len;
	for (size_t i = maps.count; i-- > 0;)
		if (maps.all[i].at == at && maps.all[i].owner == disk_owner)
			return drop_mapping(&maps.all[i]);
	for (size_t i = maps.count; i-- > 0;)
		if (maps.all[i].at == at)
			return drop_mapping(&maps.all[i]);
	disk_fail("munmap() of what is not mapped");
}

void map_end(struct disk *d, enum disk_owner owner)
{
	for (size_t i = maps.count; i-- > 0;) {
		if (maps.all[i].disk != d || maps.all[i].owner != owner)
			continue;
		if (owner == OWNER_READER && maps.all[i].pages)
			leave_inode(&maps.all[i]);
		else
			drop_mapping(&maps.all[i]);
	}
}

size_t disk_map_count(const struct disk *d, enum disk_owner owner)
{
	size_t n = 0;

	for (size_t i = 0; i < maps.count; i++)
		n += maps.all[i].disk == d && maps.all[i].owner == owner;
	return n;
}

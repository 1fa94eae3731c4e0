/* The data of a file: as it is in memory, and as the last fsync left it on the disk. Surprising:
 * both are one buffer until somebody writes, and then the durable one moves, as mappings point to
 * the other. */
#include "disk_tree.h"

#include <string.h>

static struct pages *pages_new(size_t room)
{
	struct pages *p;

	room = (room + 63) & ~(size_t)63;
	p = disk_alloc(sizeof(*p) + room);
	p->refs = 1;
	p->room = room;
	return p;
}

void pages_unref(struct pages *p)
{
	if (p && --p->refs == 0)
		disk_release(p);
}

struct pages *pages_copy(const struct pages *from, size_t len, size_t room)
{
	struct pages *p = pages_new(room > len ? room : len);

	if (len)
		memcpy(p->data, from->data, len);
	memset(p->data + len, 0, p->room - len);
	return p;
}

void file_prepare_write(struct inode *n, size_t len)
{
	struct pages *old = n->data;

	if (!old || old->room < len) {
		n->data = pages_copy(old, n->len, old ? len + len / 2 : len);
		pages_unref(old);
	} else if (n->safe == old) {
		n->safe = pages_copy(old, n->safe_len, 0);
		pages_unref(old);
	}
}

void file_truncate(struct inode *n)
{
	pages_unref(n->data);
	n->data = NULL;
	n->len = 0;
	n->dirty = n->truncated = true;
	inode_touch(n, true);
}

void file_append_at(struct inode *n, size_t at, const void *data, size_t len)
{
	file_prepare_write(n, at + len > n->len ? at + len : n->len);
	memcpy(n->data->data + at, data, len);
	if (at + len > n->len)
		n->len = at + len;
	n->dirty = true;
	inode_touch(n, true);
}

void file_make_durable(struct inode *n)
{
	struct pages *safe;

	if (!n->dirty && !n->writers)
		return;
	safe = n->data && n->writers ? pages_copy(n->data, n->len, 0) : n->data;
	if (safe && safe == n->data)
		safe->refs++;
	pages_unref(n->safe);
	n->safe = safe;
	n->safe_len = n->len;
	n->dirty = n->truncated = false;
}

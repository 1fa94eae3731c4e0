/* Streams of directories. Surprising: the names are those at the first readdir(), as getdents()
 * fetches 32 KiB of them at a time. */
#include "disk_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

struct listed {
	struct name *name;
	ino_t number;
	mode_t mode;
};

struct stream {
	int fd;
	bool begun;
	struct inode *dir;
	struct listed *names;
	size_t count, at;
	struct dirent entry;
};

int call_list(int fd, struct stream **ret)
{
	struct descriptor *f = descriptor_get(fd);
	struct stream *s;

	if (!f || f->flags & O_PATH)
		return -EBADF;
	if (!S_ISDIR(f->inode->mode))
		return -ENOTDIR;
	s = disk_alloc(sizeof(*s));
	memset(s, 0, offsetof(struct stream, entry));
	s->fd = fd;
	s->dir = f->inode;
	f->stream = s;
	*ret = s;
	return 0;
}

static void begin_stream(struct stream *s)
{
	const struct inode *dir = s->dir;

	s->begun = true;
	if (dir->links == 0)
		return;
	s->names = disk_alloc((dir->count + 2) * sizeof(*s->names));
	s->names[s->count++] = (struct listed){name_new(".", 1), dir->number, dir->mode};
	s->names[s->count++] =
		(struct listed){name_new("..", 2), dir->parent->number, dir->parent->mode};
	for (size_t i = 0; i < dir->count; i++)
		s->names[s->count++] = (struct listed){name_ref(dir->entries[i].name),
			dir->entries[i].inode->number, dir->entries[i].inode->mode};
}

struct dirent *stream_next(struct stream *s)
{
	const struct listed *l;

	if (!s->begun)
		begin_stream(s);
	if (s->at == s->count)
		return NULL;
	l = &s->names[s->at++];
	s->entry.d_ino = l->number;
	s->entry.d_off = (off_t)s->at;
	s->entry.d_reclen = sizeof(s->entry);
	s->entry.d_type = (unsigned char)((l->mode & S_IFMT) >> 12);
	memcpy(s->entry.d_name, l->name->text, l->name->len + 1);
	return &s->entry;
}

bool stream_begun(const struct stream *s)
{
	return s->begun && s->at < s->count;
}

int stream_fd(const struct stream *s)
{
	return s->fd;
}

void stream_free(struct stream *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->count; i++)
		name_unref(s->names[i].name);
	disk_release(s->names);
	disk_release(s);
}

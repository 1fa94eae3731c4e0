/*
 * Inside the simulated disk: inodes, their pages, names, and the log of changes that are not
 * durable yet. For disk*.c and libc*.c only.
 *
 * Ownership: an inode lives as long as a name, descriptor, mapping, child, or log entry refers to
 * it. Errors: -errno.
 */
#ifndef SIM_DISK_TREE_H
#define SIM_DISK_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "disk.h"

#define DISK_PAGE 4096
#define DISK_DEVICE 1 /* of the disk; memory file systems have others */

struct pages { /* what a mapping points to */
	size_t refs, room;
	unsigned char data[] __attribute__((aligned(16)));
};

struct name {
	unsigned refs;
	uint32_t hash;
	size_t len;
	char text[];
};

struct entry {
	struct name *name;
	struct inode *inode;
};

struct inode {
	struct disk *disk;
	struct inode *next, *previous; /* in disk->inodes */
	size_t refs;
	dev_t device;
	ino_t number;
	mode_t mode;
	uid_t uid;
	gid_t gid;
	nlink_t links;
	int64_t changed_us, modified_us; /* ctime, mtime, of the wall clock */
	struct inode *parent;            /* where its name is; the root's is itself */
	struct name *name;
	bool mount, marked;
	/* a file's, or the text of a symlink */
	struct pages *data, *safe; /* safe: what the last fsync brought to the disk */
	size_t len, safe_len;
	bool dirty, truncated; /* since then */
	bool lost;             /* an fsync failed: what was written before never gets there */
	unsigned writers;      /* mappings that can write */
	unsigned lock_owner;   /* its owner + 1; 0 = not locked */
	short lock_type;
	/* a directory's */
	struct entry *entries;
	size_t count, room;
};

/* A change that a power cut may take back. */
struct change {
	struct inode *dir;            /* NULL: of mode or owner */
	struct name *name, *to;       /* to: a rename within the directory */
	struct inode *before, *after; /* at `name`; at `to`, if there is one */
	struct inode *moved;          /* at `name` before, if there is a `to` */
	bool joined; /* the new name of a rename, whose old name is the next change */
	struct {
		mode_t mode;
		uid_t uid;
		gid_t gid;
	} was, is;
};

struct descriptor {
	struct inode *inode; /* NULL = free */
	size_t at;
	int flags; /* as opened */
	struct stream *stream;
};

struct disk {
	enum disk_model model;
	struct inode *root, *inodes;
	dev_t last_device;
	ino_t last_number;
	ino_t *free_numbers;
	size_t free_count, free_room;
	struct change *log;
	size_t logged, log_room;
	struct descriptor *descriptors[OWNERS];
	size_t descriptor_room[OWNERS], open[OWNERS];
	unsigned long limit; /* RLIMIT_NOFILE */
	void (*changed)(void *arg, const char *dir, const char *name, const char *cause);
	void *changed_arg;
};

/* The disk in use; ends the program when there is none. */
struct disk *disk_require(void);
_Noreturn void disk_fail(const char *what);
/* Real memory, never counted as the agent's; ends the program when there is none. */
void *disk_alloc(size_t size);
void *disk_grow(void *old, size_t size);
void disk_release(void *p);

/* ---- disk_tree.c ---- */
struct name *name_new(const char *text, size_t len);
struct name *name_ref(struct name *n);
void name_unref(struct name *n);
struct inode *inode_new(struct disk *d, dev_t device, mode_t mode);
struct inode *inode_ref(struct inode *n);
void inode_unref(struct inode *n);
/* Frees it whatever refers to it. */
void inode_destroy(struct inode *n);
void inode_touch(struct inode *n, bool modified);
/* The entry of that name, or NULL. */
struct entry *dir_find(const struct inode *dir, const char *name, size_t len);
/* Sets what the name leads to; NULL = nothing. Logs nothing. */
void dir_set(struct inode *dir, struct name *name, struct inode *n);
void inode_place(struct inode *n, struct inode *parent, struct name *name);
/* Fills the absolute path. */
void inode_path(const struct inode *n, char *ret, size_t size);
void inode_notify(const struct inode *n, const char *cause);
void dir_notify(const struct inode *dir, const char *name, const char *cause);

/* ---- disk_pages.c ---- */
/* A new buffer of at least `room` bytes; `len` of them are those of `from`, zeros follow. */
struct pages *pages_copy(const struct pages *from, size_t len, size_t room);
void pages_unref(struct pages *p);
/* Makes room for that many bytes and keeps what is durable apart from what is written now. */
void file_prepare_write(struct inode *n, size_t len);
void file_truncate(struct inode *n);
void file_append_at(struct inode *n, size_t at, const void *data, size_t len);
void file_make_durable(struct inode *n);

/* ---- disk_log.c ---- */
void log_name(struct inode *dir, struct name *name, struct inode *before, struct inode *after);
void log_rename(struct inode *from_dir, struct name *from, struct inode *dir, struct name *to,
	struct inode *replaced, struct inode *moved);
void log_attributes(struct inode *n, mode_t mode, uid_t uid, gid_t gid);
/* An fsync of the inode: forgets the changes that are durable now. */
void log_sync(struct inode *n);
void log_forget(struct disk *d, size_t first, size_t count);

/* ---- disk_walk.c ---- */
/* WALK_PARENT: a slash at the end does not make the last symlink be followed. */
enum walk_flags { WALK_FOLLOW = 1, WALK_NO_LINKS = 2, WALK_EMPTY = 4, WALK_PARENT = 8 };
struct place {
	struct inode *dir; /* where the last part is; NULL = the path ends in ".", ".." or "/" */
	const char *last;  /* not terminated */
	size_t len;
	struct inode *inode; /* NULL = no such name in dir */
	bool slash;          /* behind the last part */
	char special;        /* '.', ':' for "..", '/' for the root; 0 = a name */
};
int walk_find(struct disk *d, int at, const char *path, unsigned flags, struct place *ret);
/* The same, and there must be an inode. */
int walk_inode(struct disk *d, int at, const char *path, unsigned flags, struct inode **ret);

/* ---- disk_calls.c, disk_names.c, disk_list.c, disk_maps.c: system calls of the current owner ----
 */
struct descriptor *descriptor_get(int fd);
int descriptor_new(struct disk *d, struct inode *n, int flags, int from);
int call_open(int at, const char *path, int flags, mode_t mode, bool no_links);
int call_close(int fd);
ssize_t call_read(int fd, void *data, size_t len, off_t at); /* at -1 = where it is */
ssize_t call_write(int fd, const void *data, size_t len);
int call_sync(int fd, bool fails);
int call_stat(int at, const char *path, int flags, struct stat *ret);
int call_fchmod(int fd, mode_t mode);
int call_fchown(int fd, uid_t uid, gid_t gid);
int call_access(int at, const char *path, int mode);
int call_rename(int from_at, const char *from, int to_at, const char *to);
int call_unlink(int at, const char *path, int flags);
int call_mkdir(int at, const char *path, mode_t mode);
int call_symlink(const char *target, int at, const char *path);
ssize_t call_readlink(int at, const char *path, char *ret, size_t size);
void inode_set_attributes(struct inode *n, mode_t mode, uid_t uid, gid_t gid);
struct flock;
int call_lock(int fd, bool query, struct flock *lock);
void lock_drop(struct inode *n, enum disk_owner owner);
struct dirent;
int call_list(int fd, struct stream **ret);
struct dirent *stream_next(struct stream *s);
bool stream_begun(const struct stream *s);
int stream_fd(const struct stream *s);
void stream_free(struct stream *s);
int call_map(int fd, size_t len, int protection, void **ret);
void map_note_anonymous(void *at, size_t len);
int call_unmap(void *at, size_t len);
void map_end(struct disk *d, enum disk_owner owner);

#endif

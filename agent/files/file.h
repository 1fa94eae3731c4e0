/*
 * Atomic replacement of one file, bounded reading of one, in a directory that is open.
 *
 * Replacing: a temporary file in the same directory (O_EXCL, O_NOFOLLOW; mode and owner set by
 * descriptor), written whole, fsynced if asked, renamed over the target, the directory fsynced if
 * asked. Never truncates or writes in place, not even on EBUSY (a single-file bind mount), which is
 * an error that says so. A failed fsync is never retried on the same file: the temporary file is
 * removed, the target is untouched. Temporary names are ".NAME.pullet-" and 16 hexadecimal digits.
 * Where they could not be removed again (chattr +a) none is made.
 *
 * Threads: any. Errors: -errno, with a sentence in `why`.
 */
#ifndef PULLET_FILE_H
#define PULLET_FILE_H

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "lib/buffer.h"
#include "base/sys.h"

#define FILE_WHY 512
#define FILE_REMEDY 160
#define FILE_DIR 184

struct file_options {
	mode_t mode;
	uid_t uid;                /* (uid_t)-1 = leave */
	gid_t gid;                /* (gid_t)-1 = leave */
	bool sync;                /* fsync file and directory */
	struct stat *ret_written; /* the file before anybody else could see it; or NULL */
	bool again; /* the last one failed: none is made while its temporary file stays */
};

/* Writes the error's text and its remedy: "Permission denied: the agent's user must be able to
 * write there (it runs as user 110, group 110)". */
void file_remedy(char remedy[FILE_REMEDY], int error, bool reading);
/* The path of an open directory, with a slash at its end; "" where there is no /proc. */
void file_show_dir(char text[FILE_DIR], int dir);
/* Replaces dir/name by len bytes. 0; or -errno and nothing changed; or FILE_NOT_DURABLE: the new
 * content is in place, but fsync of the directory failed. */
#define FILE_NOT_DURABLE 1
int file_replace(const struct sys *sys, int dir, const char *name, const void *data, size_t len,
	const struct file_options *options, char why[FILE_WHY]);
/* Its two halves: first the temporary file, whose name is returned, with all that may fail for want
 * of room or permission; then the rename, which makes it visible. Both remove the temporary file
 * after an error. */
int file_prepare(const struct sys *sys, int dir, const char *name, const void *data, size_t len,
	const struct file_options *options, char ret_temporary[NAME_MAX + 1], char why[FILE_WHY]);
int file_commit(const struct sys *sys, int dir, const char *name,
	const char temporary[NAME_MAX + 1], bool sync, char why[FILE_WHY]);
/* Reads dir/name whole into out (up to out's maximum); regular files only, no symlink followed. 0
 * or -errno. */
int file_read(const struct sys *sys, int dir, const char *name, struct buffer *out);
/* True when dir/name has exactly these bytes. */
bool file_holds(const struct sys *sys, int dir, const char *name, const void *data, size_t len);
/* Reads an open file as file_read() does, and closes it. */
int file_take(const struct sys *sys, int fd, struct buffer *out);
/* If entry is the name of a temporary file: the length of its target's name, which begins at
 * entry + 1; else 0. */
size_t file_temporary(const char *entry);
/* Opens a directory below dir ("." = itself) for readdir(), at its beginning; not by a symlink.
 * NULL: errno says why. For closedir(). */
DIR *file_list_dir(const struct sys *sys, int dir, const char *name);
/* Removes temporary files that a crash left behind for name (NULL: for any name). Returns how many.
 */
int file_clean(const struct sys *sys, int dir, const char *name);
/* Fsyncs dir/name (opened read-only) and then dir. 0 or -errno. */
int file_sync(const struct sys *sys, int dir, const char *name);
/* Fsyncs the directory above an open one, so that a new directory survives a power cut. 0 or
 * -errno; 0 also for a parent that may not be read. */
int file_sync_parent(const struct sys *sys, int dir, char why[FILE_WHY]);
/* 0; or -EPERM with a sentence: what is made in the directory stays there (chattr +a). Part of each
 * replacement. */
int file_check_removable(int dir, const char *name, char why[FILE_WHY]);
/* True when the directory lies in memory (tmpfs, ramfs), where fsync is of no use. */
bool file_in_memory(int dir);
/* True of a file of another file system than its directory's, of which st was read, that is mounted
 * there. One on an overlay of several file systems has another device as well, and is not; before
 * Linux 5.8 nothing tells these apart. */
bool file_is_mount_point(int dir, const char *name, const struct stat *st);

/* This errno says nothing about the file: memory or descriptors are short. */
bool file_error_is_ours(int error);
/* The medium failed (EIO, a stale handle, a timeout): it may be read a moment later. */
bool file_error_may_pass(int error);

#endif

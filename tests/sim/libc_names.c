/* libc's functions of paths and directories, over the simulated disk. Surprising: readdir() is a
 * call twice: for all names, and for the end. */
#include "libc_seam.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

#include "disk_tree.h"

/* ---- questions ---- */

static int stat_file(int at, const char *path, int flags, struct stat *ret)
{
	int r = seam_ask(CALL_STAT, path);

	if (r == 0)
		r = call_stat(at, path, flags, ret);
	return (int)seam_end("stat", at, path, r);
}

int __wrap_fstat(int fd, struct stat *ret)
{
	return stat_file(fd, "", AT_EMPTY_PATH, ret);
}

int __wrap_fstatat(int at, const char *path, struct stat *ret, int flags)
{
	return stat_file(at, path, flags, ret);
}

int __wrap_stat(const char *path, struct stat *ret)
{
	return stat_file(AT_FDCWD, path, 0, ret);
}

int __wrap_lstat(const char *path, struct stat *ret)
{
	return stat_file(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, ret);
}

/* Asked for attributes alone, which this file system has not. */
int __wrap_statx(int at, const char *path, int flags, unsigned mask, struct statx *ret)
{
	(void)at, (void)path, (void)flags, (void)mask, (void)ret;
	errno = ENOSYS;
	return -1;
}

int __wrap_fstatfs(int fd, struct statfs *ret)
{
	struct descriptor *f;
	int r = seam_ask(CALL_STAT, NULL);

	f = descriptor_get(fd);
	if (r == 0 && !f)
		r = -EBADF;
	if (r == 0) {
		memset(ret, 0, sizeof(*ret));
		ret->f_type = f->inode->device == DISK_DEVICE ? EXT4_SUPER_MAGIC : TMPFS_MAGIC;
		ret->f_bsize = DISK_PAGE;
		ret->f_namelen = DISK_NAME;
	}
	return (int)seam_end("fstatfs", fd, NULL, r);
}

int __wrap_faccessat(int at, const char *path, int mode, int flags)
{
	int r = seam_ask(CALL_STAT, path);

	(void)flags;
	if (r == 0)
		r = call_access(at, path, mode);
	return (int)seam_end("access", at, path, r);
}

int __wrap_access(const char *path, int mode)
{
	return __wrap_faccessat(AT_FDCWD, path, mode, 0);
}

ssize_t __wrap_readlinkat(int at, const char *path, char *ret, size_t size)
{
	ssize_t r = seam_ask(CALL_LINK, path);

	if (r == 0)
		r = call_readlink(at, path, ret, size);
	return seam_end("readlink", at, path, r);
}

ssize_t __wrap___readlinkat_chk(int at, const char *path, char *ret, size_t size, size_t room)
{
	if (size > room)
		disk_fail("readlinkat() past the end of its buffer");
	return __wrap_readlinkat(at, path, ret, size);
}

ssize_t __wrap_readlink(const char *path, char *ret, size_t size)
{
	return __wrap_readlinkat(AT_FDCWD, path, ret, size);
}

ssize_t __wrap___readlink_chk(const char *path, char *ret, size_t size, size_t room)
{
	return __wrap___readlinkat_chk(AT_FDCWD, path, ret, size, room);
}

/* ---- names, modes ---- */

int __wrap_renameat(int from_at, const char *from, int to_at, const char *to)
{
	int r = seam_ask(CALL_RENAME, to);

	if (r == 0)
		r = call_rename(from_at, from, to_at, to);
	return (int)seam_end("rename", to_at, to, r);
}

int __wrap_rename(const char *from, const char *to)
{
	return __wrap_renameat(AT_FDCWD, from, AT_FDCWD, to);
}

int __wrap_unlinkat(int at, const char *path, int flags)
{
	int r = seam_ask(CALL_UNLINK, path);

	if (r == 0)
		r = call_unlink(at, path, flags);
	return (int)seam_end("unlink", at, path, r);
}

int __wrap_unlink(const char *path)
{
	return __wrap_unlinkat(AT_FDCWD, path, 0);
}

int __wrap_rmdir(const char *path)
{
	return __wrap_unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

int __wrap_mkdirat(int at, const char *path, mode_t mode)
{
	int r = seam_ask(CALL_MKDIR, path);

	if (r == 0)
		r = call_mkdir(at, path, mode);
	return (int)seam_end("mkdir", at, path, r);
}

int __wrap_mkdir(const char *path, mode_t mode)
{
	return __wrap_mkdirat(AT_FDCWD, path, mode);
}

int __wrap_symlinkat(const char *target, int at, const char *path)
{
	int r = seam_ask(CALL_SYMLINK, path);

	if (r == 0)
		r = call_symlink(target, at, path);
	return (int)seam_end("symlink", at, path, r);
}

/* ---- directories ---- */

DIR *__wrap_fdopendir(int fd)
{
	struct stream *s = NULL;
	int r = seam_ask(CALL_LIST, NULL);

	if (r == 0)
		r = call_list(fd, &s);
	seam_end("fdopendir", fd, NULL, r);
	return (DIR *)s;
}

DIR *__wrap_opendir(const char *path)
{
	int fd = __wrap_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stream *s = NULL;

	if (fd >= 0)
		call_list(fd, &s);
	return (DIR *)s;
}

/* Only what the kernel is called for is a call: the first one, and the one after the last name. */
struct dirent *__wrap_readdir(DIR *dir)
{
	struct stream *s = (struct stream *)dir;
	int r = stream_begun(s) ? 0 : seam_ask(CALL_LIST, NULL);

	if (r == 0)
		return stream_next(s);
	seam_end("readdir", stream_fd(s), NULL, r);
	return NULL;
}

int __wrap_closedir(DIR *dir)
{
	return __wrap_close(stream_fd((struct stream *)dir));
}

int __wrap_dirfd(DIR *dir)
{
	return stream_fd((struct stream *)dir);
}

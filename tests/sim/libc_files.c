/* libc's functions of files, over the simulated disk. Surprising: a call that is made to fail has
 * changed nothing, but close(), which closes, and fsync(), whose data is lost. */
#include "disk_tree.h"
#include "libc_seam.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>
#include <linux/openat2.h>

#include "libc.h"

/* ---- how each call goes ---- */

bool seam_is_agent(void)
{
	return disk_owner == OWNER_AGENT || disk_owner == OWNER_SECOND;
}

/* 0, or the negative errno that the call fails with. Does not return where the process ends. */
static int ask_world(enum world_call call, const char *path)
{
	int r;

	if (!seam_is_agent())
		return 0;
	r = world_call(call, path);
	return r > 0 ? -r : r;
}

static char *put_text(char *at, const char *end, const char *text)
{
	while (at < end && *text)
		*at++ = *text++;
	return at;
}

static char *put_number(char *at, const char *end, long n)
{
	char digits[24], *p = digits + sizeof(digits) - 1;
	unsigned long left = n < 0 ? -(unsigned long)n : (unsigned long)n;

	*p = '\0';
	do
		*--p = (char)('0' + left % 10);
	while (left /= 10);
	if (n < 0)
		*--p = '-';
	return put_text(at, end, p);
}

/* "openat 5:name = 6"; "fsync 6 = EIO" */
static void trace_call(const char *what, int at, const char *path, long r)
{
	const char *error = r < 0 ? strerrorname_np((int)-r) : NULL;
	char line[400], *p, *end = line + sizeof(line) - 1;

	p = put_text(line, end, what);
	p = put_text(p, end, " ");
	if (at != AT_FDCWD)
		p = put_number(p, end, at);
	if (path && path[0]) {
		p = put_text(p, end, at == AT_FDCWD ? "" : ":");
		p = put_text(p, end, path);
	}
	p = put_text(p, end, " = ");
	p = error ? put_text(p, end, error) : put_number(p, end, r);
	*p = '\0';
	world_trace("%s", line);
}

long seam_end(const char *what, int at, const char *path, long r)
{
	if (seam_is_agent())
		trace_call(what, at, path, r);
	if (r >= 0)
		return r;
	errno = (int)-r;
	return -1;
}

/* A quarter of the agent's transfers are short. */
static size_t shorten(size_t len)
{
	if (len < 2 || !seam_is_agent() || world_random(STREAM_DISK, 3))
		return len;
	return 1 + world_random(STREAM_DISK, len - 2);
}

/* ---- open and close ---- */

static int open_file(int at, const char *path, int flags, mode_t mode, bool no_links)
{
	int r = ask_world(CALL_OPEN, path);

	if (r == 0)
		r = call_open(at, path, flags, mode, no_links);
	return (int)seam_end("open", at, path, r);
}

int __wrap_openat(int at, const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list args;

	if (flags & O_CREAT) {
		va_start(args, flags);
		mode = va_arg(args, mode_t);
		va_end(args);
	}
	return open_file(at, path, flags, mode, false);
}

int __wrap_open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list args;

	if (flags & O_CREAT) {
		va_start(args, flags);
		mode = va_arg(args, mode_t);
		va_end(args);
	}
	return open_file(AT_FDCWD, path, flags, mode, false);
}

int __wrap___open_2(const char *path, int flags)
{
	return open_file(AT_FDCWD, path, flags, 0, false);
}

int __wrap___openat_2(int at, const char *path, int flags)
{
	return open_file(at, path, flags, 0, false);
}

int seam_openat2(int at, const char *path, const struct open_how *how)
{
	return open_file(
		at, path, (int)how->flags, (mode_t)how->mode, how->resolve & RESOLVE_NO_SYMLINKS);
}

int __wrap_close(int fd)
{
	int asked, r;

	if (!descriptor_get(fd))
		return (int)seam_end("close", fd, NULL, -EBADF);
	asked = ask_world(CALL_CLOSE, NULL);
	r = call_close(fd);
	return (int)seam_end("close", fd, NULL, asked ? asked : r);
}

/* ---- data ---- */

static ssize_t read_file(int fd, void *data, size_t len, off_t at)
{
	ssize_t r = ask_world(CALL_READ, NULL);

	if (r == 0)
		r = call_read(fd, data, at < 0 ? shorten(len) : len, at);
	return seam_end("read", fd, NULL, r);
}

ssize_t __wrap_read(int fd, void *data, size_t len)
{
	return read_file(fd, data, len, -1);
}

ssize_t __wrap___read_chk(int fd, void *data, size_t len, size_t room)
{
	if (len > room)
		disk_fail("read() past the end of its buffer");
	return read_file(fd, data, len, -1);
}

ssize_t __wrap_pread(int fd, void *data, size_t len, off_t at)
{
	if (at < 0)
		return seam_end("read", fd, NULL, -EINVAL);
	return read_file(fd, data, len, at);
}

ssize_t __wrap___pread_chk(int fd, void *data, size_t len, off_t at, size_t room)
{
	if (len > room)
		disk_fail("pread() past the end of its buffer");
	return __wrap_pread(fd, data, len, at);
}

ssize_t __wrap_write(int fd, const void *data, size_t len)
{
	ssize_t r;

	if (fd == STDOUT_FILENO || fd == STDERR_FILENO)
		return seam_write_log(fd, data, len);
	r = ask_world(CALL_WRITE, NULL);
	if (r == 0)
		r = call_write(fd, data, shorten(len));
	return seam_end("write", fd, NULL, r);
}

int __wrap_fsync(int fd)
{
	int asked = ask_world(CALL_FSYNC, NULL), r = call_sync(fd, asked);

	return (int)seam_end("fsync", fd, NULL, r ? r : asked);
}

/* ---- questions ---- */

static int stat_file(int at, const char *path, int flags, struct stat *ret)
{
	int r = ask_world(CALL_STAT, path);

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

int __wrap_fstatfs(int fd, struct statfs *ret)
{
	struct descriptor *f;
	int r = ask_world(CALL_STAT, NULL);

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
	int r = ask_world(CALL_STAT, path);

	(void)flags;
	if (r == 0)
		r = call_access(at, path, mode);
	return (int)seam_end("access", at, path, r);
}

ssize_t __wrap_readlinkat(int at, const char *path, char *ret, size_t size)
{
	ssize_t r = ask_world(CALL_LINK, path);

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
	int r = ask_world(CALL_RENAME, to);

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
	int r = ask_world(CALL_UNLINK, path);

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
	int r = ask_world(CALL_MKDIR, path);

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
	int r = ask_world(CALL_SYMLINK, path);

	if (r == 0)
		r = call_symlink(target, at, path);
	return (int)seam_end("symlink", at, path, r);
}

int __wrap_fchmod(int fd, mode_t mode)
{
	int r = ask_world(CALL_CHMOD, NULL);

	if (r == 0)
		r = call_fchmod(fd, mode);
	return (int)seam_end("fchmod", fd, NULL, r);
}

int __wrap_fchown(int fd, uid_t uid, gid_t gid)
{
	int r = ask_world(CALL_CHOWN, NULL);

	if (r == 0)
		r = call_fchown(fd, uid, gid);
	return (int)seam_end("fchown", fd, NULL, r);
}

/* ---- directories ---- */

DIR *__wrap_fdopendir(int fd)
{
	struct stream *s = NULL;
	int r = ask_world(CALL_LIST, NULL);

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
	int r = stream_begun(s) ? 0 : ask_world(CALL_LIST, NULL);

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

/* ---- fcntl, limits ---- */

static int lock_file(int fd, bool query, struct flock *lock)
{
	int r = ask_world(CALL_LOCK, NULL);

	if (r == 0)
		r = call_lock(fd, query, lock);
	if (r == 0 && lock->l_pid)
		lock->l_pid = libc_process.pid;
	return (int)seam_end("lock", fd, NULL, r);
}

int __wrap_fcntl(int fd, int command, ...)
{
	struct descriptor *f = descriptor_get(fd);
	bool standard = fd >= 0 && fd <= STDERR_FILENO;
	va_list args;
	void *pointer;
	long number;
	int r = -EINVAL;

	va_start(args, command);
	if (command == F_SETLK || command == F_GETLK) {
		pointer = va_arg(args, void *);
		va_end(args);
		return lock_file(fd, command == F_GETLK, pointer);
	}
	number = command == F_GETFD || command == F_GETFL ? 0 : va_arg(args, int);
	va_end(args);
	if (!f && !(standard && command == F_GETFD)) {
		errno = EBADF;
		return -1;
	}
	if (command == F_GETFD)
		r = FD_CLOEXEC;
	else if (command == F_GETFL)
		r = f->flags;
	else if (command == F_SETFD || command == F_SETFL)
		r = 0;
	else if (command == F_DUPFD || command == F_DUPFD_CLOEXEC)
		r = descriptor_new(disk_require(), f->inode, f->flags, (int)number);
	else
		disk_fail("an fcntl() that is not simulated");
	return (int)seam_end("fcntl", fd, NULL, r);
}

int __wrap_getrlimit(int resource, struct rlimit *ret)
{
	ret->rlim_cur = ret->rlim_max =
		resource == RLIMIT_NOFILE ? disk_require()->limit : RLIM_INFINITY;
	return 0;
}

int __wrap_setrlimit(int resource, const struct rlimit *limit)
{
	if (resource == RLIMIT_NOFILE)
		disk_require()->limit = limit->rlim_cur;
	return 0;
}

/* ---- mappings ---- */

void *__wrap_mmap(void *at, size_t len, int protection, int flags, int fd, off_t offset)
{
	void *map = MAP_FAILED;
	int r;

	if (flags & MAP_ANONYMOUS) {
		if (seam_is_agent() && !world_has_memory()) {
			errno = ENOMEM;
			return MAP_FAILED;
		}
		map = __real_mmap(at, len, protection, flags, fd, offset);
		if (map != MAP_FAILED)
			map_note_anonymous(map, len);
		return map;
	}
	if (offset || !(flags & MAP_SHARED))
		disk_fail("an mmap() that is not simulated");
	r = ask_world(CALL_MAP, NULL);
	if (r == 0)
		r = call_map(fd, len, protection, &map);
	seam_end("mmap", fd, NULL, r);
	return map;
}

int __wrap_munmap(void *at, size_t len)
{
	int r = call_unmap(at, len);

	if (r == 0)
		return 0;
	errno = -r;
	return -1;
}

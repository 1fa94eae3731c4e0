/* libc's functions of descriptors, over the simulated disk. Surprising: a call that is made to fail
 * has changed nothing, but close(), which closes, and fsync(), whose data is lost. */
#include "libc_seam.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/openat2.h>

#include "disk_tree.h"
#include "libc.h"

/* ---- open and close ---- */

static int open_file(int at, const char *path, int flags, mode_t mode, bool no_links)
{
	int r = seam_ask(CALL_OPEN, path);

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
	asked = seam_ask(CALL_CLOSE, NULL);
	r = call_close(fd);
	return (int)seam_end("close", fd, NULL, asked ? asked : r);
}

/* ---- data ---- */

/* A quarter of the agent's transfers are short. */
static size_t shorten_transfer(size_t len)
{
	if (len < 2 || !seam_is_agent() || world_random(STREAM_DISK, 3))
		return len;
	return 1 + world_random(STREAM_DISK, len - 2);
}

static ssize_t read_file(int fd, void *data, size_t len, off_t at)
{
	ssize_t r = seam_ask(CALL_READ, NULL);

	if (r == 0)
		r = call_read(fd, data, at < 0 ? shorten_transfer(len) : len, at);
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
	r = seam_ask(CALL_WRITE, NULL);
	if (r == 0)
		r = call_write(fd, data, shorten_transfer(len));
	return seam_end("write", fd, NULL, r);
}

int __wrap_fsync(int fd)
{
	int asked = seam_ask(CALL_FSYNC, NULL), r = call_sync(fd, asked);

	return (int)seam_end("fsync", fd, NULL, r ? r : asked);
}

int __wrap_fchmod(int fd, mode_t mode)
{
	int r = seam_ask(CALL_CHMOD, NULL);

	if (r == 0)
		r = call_fchmod(fd, mode);
	return (int)seam_end("fchmod", fd, NULL, r);
}

int __wrap_fchown(int fd, uid_t uid, gid_t gid)
{
	int r = seam_ask(CALL_CHOWN, NULL);

	if (r == 0)
		r = call_fchown(fd, uid, gid);
	return (int)seam_end("fchown", fd, NULL, r);
}

/* ---- fcntl, limits ---- */

static int lock_file(int fd, bool query, struct flock *lock)
{
	int r = seam_ask(CALL_LOCK, NULL);

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
	r = seam_ask(CALL_MAP, NULL);
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

/*
 * A seam whose file calls can be made to fail: the n-th call, or all from the n-th on, with a given
 * errno; writes of one byte; a process that ends at the n-th call. Everything else goes to the real
 * operating system. One test program, one thread.
 */
#ifndef PULLET_FAULT_SYS_H
#define PULLET_FAULT_SYS_H

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../agent/sys.h"

enum fault_call {
	CALL_OPEN,
	CALL_WRITE,
	CALL_FSYNC,
	CALL_FCHMOD,
	CALL_FCHOWN,
	CALL_RENAME,
	CALL_UNLINK,
	CALL_MKDIR,
	CALL_CLOSE,
	CALL_READ,
	CALL_SYMLINK,
	CALLS
};

static struct fault {
	int call;      /* of fault_call; -1 = any */
	unsigned nth;  /* 1 = the first; 0 = never */
	bool for_ever; /* and all after it */
	int error;     /* errno, or 0: the process ends there with status 99 */
	bool short_writes;
	bool interrupt; /* every other write gives EINTR */
	/* what happened */
	unsigned seen, writes;
	char trace[512]; /* one letter a call */
} fault;

static bool fault_hits(enum fault_call call)
{
	static const char letters[] = "owfmcrukxil";
	size_t n = strlen(fault.trace);

	if (n + 1 < sizeof(fault.trace)) {
		fault.trace[n] = letters[call];
		fault.trace[n + 1] = '\0';
	}
	if (fault.nth == 0 || (fault.call >= 0 && fault.call != (int)call))
		return false;
	fault.seen++;
	if (fault.seen < fault.nth || (fault.seen > fault.nth && !fault.for_ever))
		return false;
	if (fault.error == 0)
		_exit(99);
	errno = fault.error;
	return true;
}

static int fault_openat(int dir, const char *path, int flags, mode_t mode)
{
	return fault_hits(CALL_OPEN) ? -1 : sys_real.openat(dir, path, flags, mode);
}

static int fault_open_plain(int dir, const char *path, int flags)
{
	return fault_hits(CALL_OPEN) ? -1 : sys_real.open_plain(dir, path, flags);
}

static ssize_t fault_read(int fd, void *data, size_t len)
{
	return fault_hits(CALL_READ) ? -1 : read(fd, data, len);
}

static ssize_t fault_write(int fd, const void *data, size_t len)
{
	if (fault_hits(CALL_WRITE))
		return -1;
	if (fault.interrupt && fault.writes++ % 2 == 0) {
		errno = EINTR;
		return -1;
	}
	return write(fd, data, fault.short_writes && len > 1 ? 1 : len);
}

static int fault_fsync(int fd)
{
	return fault_hits(CALL_FSYNC) ? -1 : fsync(fd);
}

static int fault_fchmod(int fd, mode_t mode)
{
	return fault_hits(CALL_FCHMOD) ? -1 : fchmod(fd, mode);
}

static int fault_fchown(int fd, uid_t uid, gid_t gid)
{
	return fault_hits(CALL_FCHOWN) ? -1 : fchown(fd, uid, gid);
}

static int fault_renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	return fault_hits(CALL_RENAME) ? -1 : sys_real.renameat(from_dir, from, to_dir, to);
}

static int fault_unlinkat(int dir, const char *path, int flags)
{
	return fault_hits(CALL_UNLINK) ? -1 : unlinkat(dir, path, flags);
}

static int fault_mkdirat(int dir, const char *path, mode_t mode)
{
	return fault_hits(CALL_MKDIR) ? -1 : mkdirat(dir, path, mode);
}

static int fault_symlinkat(const char *text, int dir, const char *path)
{
	return fault_hits(CALL_SYMLINK) ? -1 : symlinkat(text, dir, path);
}

/* As Linux does it: the descriptor is closed even when close() fails. */
static int fault_close(int fd)
{
	bool hit = fault_hits(CALL_CLOSE);
	int error = errno, r = close(fd);

	errno = error;
	return hit ? -1 : r;
}

static struct sys fault_table(void)
{
	struct sys sys = sys_real;

	sys.openat = fault_openat;
	sys.open_plain = fault_open_plain;
	sys.read = fault_read;
	sys.write = fault_write;
	sys.fsync = fault_fsync;
	sys.fchmod = fault_fchmod;
	sys.fchown = fault_fchown;
	sys.renameat = fault_renameat;
	sys.unlinkat = fault_unlinkat;
	sys.mkdirat = fault_mkdirat;
	sys.symlinkat = fault_symlinkat;
	sys.close = fault_close;
	return sys;
}

#endif

/* The real operating system behind the seam. Surprising: mkdirat and openat take the mode as it is,
 * so callers set it by descriptor. */
#include "base/sys.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <linux/openat2.h>

#include "base/hash.h"

static uint64_t clock_us(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static uint64_t real_now_ms(void)
{
	return clock_us(CLOCK_BOOTTIME) / 1000;
}

static uint64_t real_monotonic_us(void)
{
	return clock_us(CLOCK_MONOTONIC);
}

static int64_t real_wall_ms(void)
{
	return (int64_t)(clock_us(CLOCK_REALTIME) / 1000);
}

/* Where a sandbox denies getrandom(). Nothing is safe without: the process ends. */
static uint64_t read_random_device(void)
{
	uint64_t n = 0;
	int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
	bool known = fd >= 0 && read(fd, &n, sizeof(n)) == sizeof(n);

	assert(known);
	close(fd);
	return n;
}

static uint64_t real_random(void)
{
	uint64_t n = 0;

	/* up to 256 bytes are never cut short, once the kernel's pool is ready */
	while (getrandom(&n, sizeof(n), 0) != sizeof(n))
		if (errno != EINTR)
			return read_random_device();
	return n;
}

/* Machine id and node name: containers share the one or the other. */
static uint64_t real_host(void)
{
	struct utsname u = {0};
	char id[64];
	int fd = open("/etc/machine-id", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? 0 : read(fd, id, sizeof(id));

	if (fd >= 0)
		close(fd);
	uname(&u);
	return hash_bytes(
		hash_bytes(HASH_START, id, n > 0 ? (size_t)n : 0), u.nodename, strlen(u.nodename));
}

static int real_openat(int dir, const char *path, int flags, mode_t mode)
{
	return openat(dir, path, flags | O_CLOEXEC, mode);
}

#ifdef __SANITIZE_THREAD__
/* ThreadSanitizer knows no openat2(): to it the close of such a descriptor races with what another
 * thread did with an earlier one of that number. It sees another one opened, which is replaced. */
static int make_known(int fd)
{
	int known;

	if (fd < 0)
		return fd;
	known = open("/", O_PATH | O_CLOEXEC);
	if (known >= 0)
		syscall(SYS_dup3, fd, known, O_CLOEXEC);
	syscall(SYS_close, fd);
	return known;
}
#else
static int make_known(int fd)
{
	return fd;
}
#endif

static int real_open_plain(int dir, const char *path, int flags)
{
	const struct open_how how = {
		.flags = (unsigned)flags | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};

	return make_known((int)syscall(SYS_openat2, dir, path, &how, sizeof(how)));
}

uint64_t sys_thread_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

const struct sys sys_real = {
	.now_ms = real_now_ms,
	.monotonic_us = real_monotonic_us,
	.wall_ms = real_wall_ms,
	.random = real_random,
	.host = real_host,
	.openat = real_openat,
	.open_plain = real_open_plain,
	.fstatat = fstatat,
	.readlinkat = readlinkat,
	.read = read,
	.write = write,
	.fsync = fsync,
	.fchmod = fchmod,
	.fchown = fchown,
	.renameat = renameat,
	.unlinkat = unlinkat,
	.mkdirat = mkdirat,
	.symlinkat = symlinkat,
	.close = close,
};

void sys_forbid_dumps(void)
{
	prctl(PR_SET_DUMPABLE, 0);
}

const char *sys_advice(int error)
{
	switch (error) {
	case EAGAIN:
		return ": raise the limit of processes (TasksMax, pids.max)";
	case EMFILE:
		return ": raise the limit of open files (LimitNOFILE)";
	case EPERM:
	case ENOSYS:
		return ": a sandbox (seccomp) denies it, or the kernel is older than 5.3";
	default:
		return "";
	}
}

uint64_t sys_random_upto(const struct sys *sys, uint64_t bound)
{
	uint64_t range = bound + 1, limit;

	if (bound == 0)
		return 0;
	if (range == 0)
		return sys->random();
	limit = UINT64_MAX -
		UINT64_MAX % range; /* the last, incomplete range would favour small numbers */
	for (;;) {
		uint64_t n = sys->random();

		if (n < limit)
			return n % range;
	}
}

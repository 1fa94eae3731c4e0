/*
 * The seam to the operating system: clock, randomness, file system calls.
 *
 * Everything that publishes or schedules goes through a `const struct sys *`; production passes
 * &sys_real, tests pass a table of their own that fails the n-th call, cuts writes short or runs a
 * virtual clock.
 *
 * Threads: every function may be called from any thread. Errors: file calls return what the system
 * call returns and set errno.
 */
#ifndef PULLET_SYS_H
#define PULLET_SYS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct stat;

struct sys {
	uint64_t (*now_ms)(void); /* CLOCK_BOOTTIME: monotonic, counts suspend */
	/* NULL = the kernel's clock. A virtual clock may go on here: the loop calls it instead of
	 * sleeping, with the moment when its next timer is due (UINT64_MAX = none). */
	void (*wait_until)(uint64_t due_ms);
	uint64_t (*monotonic_us)(void); /* CLOCK_MONOTONIC, for systemd */
	int64_t (*wall_ms)(void); /* CLOCK_REALTIME, since 1970; for people and certificates only */
	uint64_t (*random)(void); /* 64 random bits from the kernel */
	/* Constant on this host (or container): for an order that differs by host. */
	uint64_t (*host)(void);

	int (*openat)(int dir, const char *path, int flags, mode_t mode);
	/* openat() that follows no symlink: ELOOP; ENOSYS or EPERM where the kernel lacks it. */
	int (*open_plain)(int dir, const char *path, int flags);
	int (*fstatat)(int dir, const char *path, struct stat *ret_st, int flags);
	ssize_t (*readlinkat)(int dir, const char *path, char *text, size_t size);
	ssize_t (*read)(int fd, void *data, size_t len);
	ssize_t (*write)(int fd, const void *data, size_t len);
	int (*fsync)(int fd);
	int (*fchmod)(int fd, mode_t mode);
	int (*fchown)(int fd, uid_t uid, gid_t gid);
	int (*renameat)(int from_dir, const char *from, int to_dir, const char *to);
	int (*unlinkat)(int dir, const char *path, int flags);
	int (*mkdirat)(int dir, const char *path, mode_t mode);
	int (*symlinkat)(const char *text, int dir, const char *path);
	int (*close)(int fd);
};

extern const struct sys sys_real;

/* Processor time of this thread, in microseconds. */
uint64_t sys_thread_us(void);
/* Allows only root to dump or debug this process, whose memory holds secrets for moments. Ends with
 * an exec. */
void sys_forbid_dumps(void);
/* What to do where a call failed that needs only limits and the kernel: ": raise ...", or "". */
const char *sys_advice(int error);
/* A random number in [0, bound]; 0 when bound is 0. */
uint64_t sys_random_upto(const struct sys *sys, uint64_t bound);

#endif

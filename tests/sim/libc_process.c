/* What libc tells a process of itself and of the machine: clocks, randomness, users, environment,
 * output, the calls without a name. Surprising: a reader that sleeps moves the clock, as there is
 * nobody else to do it. */
#include "libc_seam.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "disk_tree.h"
#include "libc.h"

#define THREAD_US 1000 /* what a thread has used of its processor, always */

struct libc_hooks libc_hooks;
struct libc_process libc_process = {.pid = 1000, .host = "host"};

/* ---- clocks ---- */

uint64_t libc_real_us(void)
{
	struct timespec t;

	__real_clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

int __wrap_clock_gettime(clockid_t id, struct timespec *ret)
{
	int64_t us = (int64_t)world.now_us;

	if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)
		us += world.wall_offset_us;
	else if (id == CLOCK_THREAD_CPUTIME_ID || id == CLOCK_PROCESS_CPUTIME_ID)
		us = THREAD_US;
	ret->tv_sec = us / 1000000;
	ret->tv_nsec = us % 1000000 * 1000;
	if (ret->tv_nsec < 0) {
		ret->tv_sec--;
		ret->tv_nsec += 1000000000;
	}
	return 0;
}

static uint64_t span_us(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * 1000000 + (uint64_t)t->tv_nsec / 1000;
}

int __wrap_nanosleep(const struct timespec *t, struct timespec *ret_left)
{
	int r = 0;

	if (libc_hooks.on_sleep)
		r = libc_hooks.on_sleep(span_us(t));
	else
		world.now_us += span_us(t);
	if (ret_left)
		memset(ret_left, 0, sizeof(*ret_left));
	errno = r;
	return r ? -1 : 0;
}

/* ---- randomness ---- */

ssize_t __wrap_getrandom(void *data, size_t len, unsigned flags)
{
	if (!seam_is_agent())
		return __real_getrandom(data, len, flags);
	for (size_t at = 0; at < len; at += sizeof(uint64_t)) {
		uint64_t n = world_random(STREAM_AGENT, UINT64_MAX);

		memcpy((char *)data + at, &n, len - at < sizeof(n) ? len - at : sizeof(n));
	}
	return (ssize_t)len;
}

/* ---- system calls without a function ---- */

static long use_futex(const uint32_t *word, int operation, uint32_t value, const struct timespec *t)
{
	uint64_t timeout_us = t ? span_us(t) : UINT64_MAX;
	int r;

	if ((operation & FUTEX_CMD_MASK) == FUTEX_WAKE) {
		if (seam_is_agent())
			world_call(CALL_WAKE, NULL); /* cannot fail, may be the last one */
		r = libc_hooks.on_wake ? libc_hooks.on_wake(word) : 0;
		return seam_end("wake", AT_FDCWD, NULL, r);
	}
	if (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value) {
		r = EAGAIN;
	} else if (libc_hooks.on_wait) {
		r = libc_hooks.on_wait(word, value, timeout_us);
	} else {
		if (!t)
			disk_fail("a reader that sleeps for ever");
		world.now_us += timeout_us;
		r = ETIMEDOUT;
	}
	return seam_end("wait", AT_FDCWD, NULL, -r);
}

/* All of them: root's. */
static long fill_capabilities(struct __user_cap_data_struct *caps)
{
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		caps[i] = (struct __user_cap_data_struct){UINT32_MAX, UINT32_MAX, 0};
	return 0;
}

long __wrap_syscall(long number, ...)
{
	long a[4];
	va_list args;

	va_start(args, number);
	for (int i = 0; i < 4; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	switch (number) {
	case SYS_openat2:
		return seam_openat2((int)a[0], (const char *)a[1], (const struct open_how *)a[2]);
	case SYS_futex:
		return use_futex((const uint32_t *)a[0], (int)a[1], (uint32_t)a[2],
			(const struct timespec *)a[3]);
	case SYS_capget:
		return fill_capabilities((struct __user_cap_data_struct *)a[1]);
	default:
		fprintf(stderr, "sim: syscall(%ld) goes past the seam\n", number);
		abort();
	}
}

int __wrap_kill(pid_t pid, int number)
{
	int r = seam_is_agent() ? world_call(CALL_KILL, NULL) : 0;

	if (r == 0)
		r = libc_hooks.on_kill ? libc_hooks.on_kill(pid, number) : ESRCH;
	return (int)seam_end("kill", AT_FDCWD, NULL, -r);
}

/* ---- who the process is ---- */

pid_t __wrap_getpid(void)
{
	return libc_process.pid;
}

uid_t __wrap_geteuid(void)
{
	return 0;
}

gid_t __wrap_getegid(void)
{
	return 0;
}

static char *find_variable(const char *name)
{
	size_t len = strlen(name);

	for (const char *const *v = libc_process.environment; v && *v; v++)
		if (strncmp(*v, name, len) == 0 && (*v)[len] == '=')
			return (char *)(uintptr_t)(*v + len + 1);
	return NULL;
}

char *__wrap_getenv(const char *name)
{
	return disk_owner == OWNER_WORLD ? __real_getenv(name) : find_variable(name);
}

char *__wrap_secure_getenv(const char *name)
{
	return disk_owner == OWNER_WORLD ? __real_secure_getenv(name) : find_variable(name);
}

int __wrap_gethostname(char *ret, size_t size)
{
	snprintf(ret, size, "%s", libc_process.host);
	return 0;
}

int __wrap_uname(struct utsname *ret)
{
	memset(ret, 0, sizeof(*ret));
	snprintf(ret->sysname, sizeof(ret->sysname), "Linux");
	snprintf(ret->nodename, sizeof(ret->nodename), "%s", libc_process.host);
	return 0;
}

struct passwd *__wrap_getpwnam(const char *name)
{
	static char root[] = "root", app[] = "app", empty[] = "";
	static struct passwd users[] = {
		{.pw_name = root,
			.pw_passwd = empty,
			.pw_gecos = empty,
			.pw_dir = empty,
			.pw_shell = empty},
		{.pw_name = app,
			.pw_passwd = empty,
			.pw_uid = 1000,
			.pw_gid = 1000,
			.pw_gecos = empty,
			.pw_dir = empty,
			.pw_shell = empty},
	};

	for (size_t i = 0; i < sizeof(users) / sizeof(users[0]); i++)
		if (strcmp(users[i].pw_name, name) == 0)
			return &users[i];
	errno = 0;
	return NULL;
}

struct group *__wrap_getgrnam(const char *name)
{
	static char root[] = "root", app[] = "app", empty[] = "";
	static char *nobody[] = {NULL};
	static struct group groups[] = {
		{.gr_name = root, .gr_passwd = empty, .gr_mem = nobody},
		{.gr_name = app, .gr_passwd = empty, .gr_gid = 1000, .gr_mem = nobody},
	};

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		if (strcmp(groups[i].gr_name, name) == 0)
			return &groups[i];
	errno = 0;
	return NULL;
}

int __wrap_prctl(int option, ...)
{
	(void)option;
	return 0;
}

_Noreturn void __wrap__exit(int status)
{
	if (!seam_is_agent())
		__real__exit(status);
	world_trace("_exit %d", status);
	if (libc_hooks.on_exit)
		libc_hooks.on_exit(status);
	disk_fail("the agent called _exit()");
}

/* ---- output ---- */

ssize_t seam_write_log(int fd, const char *data, size_t len)
{
	size_t shown = len > 0 && data[len - 1] == '\n' ? len - 1 : len;

	if (!seam_is_agent() && (fd != STDERR_FILENO || !libc_hooks.on_log))
		return __real_write(fd, data, len);
	world_trace("log %.*s", (int)shown, data);
	if (seam_is_agent() && libc_hooks.on_log)
		libc_hooks.on_log(data, shown);
	return (ssize_t)len;
}

size_t __wrap_fwrite(const void *data, size_t size, size_t count, FILE *f)
{
	if (!seam_is_agent())
		return __real_fwrite(data, size, count, f);
	seam_write_log(STDOUT_FILENO, data, size * count);
	return count;
}

int __wrap_fflush(FILE *f)
{
	return seam_is_agent() ? 0 : __real_fflush(f);
}

int __wrap_isatty(int fd)
{
	return disk_owner == OWNER_WORLD ? __real_isatty(fd) : 0;
}

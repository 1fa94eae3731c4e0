/*
 * An hour of the real agent in seconds: preloaded, it lets the clocks jump to the loop's next timer
 * whenever the loop has nothing to do. Nothing jumps while a child runs, nor for $HOUR_PATIENCE_MS
 * after something was sent or a connection was begun (a server may be about to answer), nor for the
 * waiting of other threads. The name $HOUR_NO_NAME is not found; while there is a file $HOUR_FULL
 * all disks are full. Surprising: the timerfd is armed for the moment on the real clock that is
 * left until the due one on the jumping clock.
 */
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000ll
#define IDLE_NS 200000 /* another thread may be about to wake the loop */

static _Atomic int64_t jumped_ns;
static int64_t due_ns; /* of the loop's timer, on the jumping clock; 0 = not armed */
static int timer_fd = -1, loop_fd = -1;
static int64_t patient_until_ns; /* on the real clock */

static int64_t real_ns(clockid_t id)
{
	struct timespec t;

	syscall(SYS_clock_gettime, id, &t);
	return t.tv_sec * SECOND + t.tv_nsec;
}

int clock_gettime(clockid_t id, struct timespec *t)
{
	int r = (int)syscall(SYS_clock_gettime, id, t);
	int64_t ns = t->tv_sec * SECOND + t->tv_nsec + jumped_ns;

	if (r == 0 && id != CLOCK_PROCESS_CPUTIME_ID && id != CLOCK_THREAD_CPUTIME_ID) {
		t->tv_sec = ns / SECOND;
		t->tv_nsec = ns % SECOND;
	}
	return r;
}

static int arm(void)
{
	int64_t left_ns = due_ns - jumped_ns;
	struct itimerspec t = {0};

	if (due_ns && left_ns < 1)
		left_ns = 1;
	t.it_value.tv_sec = due_ns ? left_ns / SECOND : 0;
	t.it_value.tv_nsec = due_ns ? left_ns % SECOND : 0;
	return (int)syscall(SYS_timerfd_settime, timer_fd, TFD_TIMER_ABSTIME, &t, NULL);
}

/* The loop's, on CLOCK_BOOTTIME and absolute. */
int timerfd_settime(int fd, int flags, const struct itimerspec *new, struct itimerspec *old)
{
	(void)flags, (void)old;
	timer_fd = fd;
	due_ns = new->it_value.tv_sec *SECOND + new->it_value.tv_nsec;
	return arm();
}

static void wait_for_an_answer(void)
{
	const char *text = getenv("HOUR_PATIENCE_MS");

	if (syscall(SYS_gettid) != getpid())
		return; /* a thread that looks a name up tells so by a socket */
	patient_until_ns = real_ns(CLOCK_MONOTONIC) + (text ? atoll(text) : 1000) * 1000000;
}

int connect(int fd, const struct sockaddr *address, socklen_t len)
{
	int r = (int)syscall(SYS_connect, fd, address, len);

	if (r == 0 || errno == EINPROGRESS)
		wait_for_an_answer();
	return r;
}

ssize_t send(int fd, const void *data, size_t len, int flags)
{
	wait_for_an_answer();
	return syscall(SYS_sendto, fd, data, len, flags, NULL, 0);
}

/* recv() is the program's own (peer_guard), and calls this. */
ssize_t recvfrom(
	int fd, void *data, size_t len, int flags, struct sockaddr *from, socklen_t *from_len)
{
	ssize_t n = syscall(SYS_recvfrom, fd, data, len, flags, from, from_len);

	if (n >= 0)
		patient_until_ns = 0;
	return n;
}

static bool has_children(void)
{
	siginfo_t info;

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* The loop's is the one that its timer is in. */
int epoll_ctl(int epoll_fd, int what, int fd, struct epoll_event *event)
{
	char link[32] = "", path[64] = "";
	const char *prefix = "/proc/self/fd/";
	size_t n = strlen(prefix);

	if (what == EPOLL_CTL_ADD && loop_fd < 0 && fd < 1000) {
		memcpy(link, prefix, n);
		if (fd >= 100)
			link[n++] = (char)('0' + fd / 100);
		if (fd >= 10)
			link[n++] = (char)('0' + fd / 10 % 10);
		link[n] = (char)('0' + fd % 10);
		if (readlink(link, path, sizeof(path) - 1) > 0 && strstr(path, "timerfd"))
			loop_fd = epoll_fd;
	}
	return (int)syscall(SYS_epoll_ctl, epoll_fd, what, fd, event);
}

int epoll_wait(int epoll_fd, struct epoll_event *events, int max, int timeout_ms)
{
	int n;

	if (epoll_fd != loop_fd || timeout_ms == 0)
		return (int)syscall(SYS_epoll_pwait, epoll_fd, events, max, timeout_ms, NULL, 8);
	for (;;) {
		int64_t wait_ns = patient_until_ns - real_ns(CLOCK_MONOTONIC);
		struct timespec wait = {0};

		if (wait_ns < IDLE_NS)
			wait_ns = IDLE_NS;
		wait.tv_sec = wait_ns / SECOND;
		wait.tv_nsec = wait_ns % SECOND;
		n = (int)syscall(SYS_epoll_pwait2, epoll_fd, events, max, &wait, NULL, 8);
		for (int i = 0; i < n; i++)
			if (events[i].events & (EPOLLERR | EPOLLHUP))
				patient_until_ns = 0; /* the answer is that there is none */
		if (n || !due_ns)
			return n;
		if (has_children() || real_ns(CLOCK_MONOTONIC) < patient_until_ns)
			continue;
		if (real_ns(CLOCK_BOOTTIME) + jumped_ns < due_ns)
			jumped_ns = due_ns - real_ns(CLOCK_BOOTTIME);
		arm();
	}
}

ssize_t write(int fd, const void *data, size_t len)
{
	const char *full = getenv("HOUR_FULL");
	struct stat st;

	if (full && access(full, F_OK) == 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		errno = ENOSPC;
		return -1;
	}
	return syscall(SYS_write, fd, data, len);
}

int getaddrinfo(
	const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **ret)
{
	static int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
	const char *none = getenv("HOUR_NO_NAME");

	if (none && name && strcmp(name, none) == 0)
		return EAI_AGAIN;
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
	return real(name, service, hints, ret);
}

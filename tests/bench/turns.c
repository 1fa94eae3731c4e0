/*
 * Preloaded into the agent: how long its loop is at work between two waits. Writes each turn of the
 * main thread that took long into $TURNS, as two numbers of 64 bits: its end (CLOCK_MONOTONIC), and
 * its processor time, both in nanoseconds.
 *
 * Surprising: processor time, which does not count what other processes of the machine take.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define LONG_NS 100000u

static int (*wait_really)(int, struct epoll_event *, int, int);
static int out = -1;
static uint64_t begin_ns;

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

__attribute__((constructor)) static void find_wait(void)
{
	const char *path = getenv("TURNS");

	*(void **)&wait_really = dlsym(RTLD_NEXT, "epoll_wait");
	if (path)
		out = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

int epoll_wait(int fd, struct epoll_event *events, int max, int timeout)
{
	uint64_t turn[2];
	int n;

	if (out < 0 || gettid() != getpid())
		return wait_really(fd, events, max, timeout);
	turn[1] = now_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
	turn[0] = now_ns(CLOCK_MONOTONIC);
	if (begin_ns && turn[1] > LONG_NS && write(out, turn, sizeof(turn)) < 0)
		_exit(1);
	n = wait_really(fd, events, max, timeout);
	begin_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
	return n;
}

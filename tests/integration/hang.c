/*
 * A disk that hangs or is full, and clocks that are moved, of one process. Preloaded: while there
 * is a file $FULL_FILE, nothing can be written to regular files; if there is a FIFO $HANG_FIFO,
 * fsync() of a file whose path has $HANG_PATH in it says so on standard error, opens the FIFO, and
 * so waits until somebody opens it for writing. CLOCK_BOOTTIME is as many seconds ahead as the file
 * $BOOT_OFFSET_FILE says, for timers too; one that is armed when the clock moves keeps its moment.
 * The wall clock, and nothing else, is ahead as $WALL_OFFSET_FILE says. Surprising: libfaketime
 * cannot be used, for it moves timers on CLOCK_BOOTTIME along with the wall clock.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

/* Seconds, in the file that the variable names. */
static time_t offset(const char *variable)
{
	const char *path = getenv(variable);
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	char text[32] = "";
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	return n > 0 ? (time_t)strtoll(text, NULL, 10) : 0;
}

int clock_gettime(clockid_t id, struct timespec *t)
{
	int r = (int)syscall(SYS_clock_gettime, id, t);

	if (r == 0 && id == CLOCK_BOOTTIME)
		t->tv_sec += offset("BOOT_OFFSET_FILE");
	if (r == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
		t->tv_sec += offset("WALL_OFFSET_FILE");
	return r;
}

time_t time(time_t *ret)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	if (ret)
		*ret = t.tv_sec;
	return t.tv_sec;
}

int gettimeofday(struct timeval *ret, void *zone)
{
	struct timespec t;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &t);
	ret->tv_sec = t.tv_sec;
	ret->tv_usec = t.tv_nsec / 1000;
	return 0;
}

/* All timers of the agent are absolute and on that clock. */
int timerfd_settime(int fd, int flags, const struct itimerspec *new, struct itimerspec *old)
{
	struct itimerspec t = *new;
	time_t ahead = offset("BOOT_OFFSET_FILE");

	if (t.it_value.tv_sec > ahead)
		t.it_value.tv_sec -= ahead;
	return (int)syscall(SYS_timerfd_settime, fd, flags, &t, old);
}

ssize_t write(int fd, const void *data, size_t len)
{
	const char *full = getenv("FULL_FILE");
	struct stat st;

	if (full && access(full, F_OK) == 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		errno = ENOSPC;
		return -1;
	}
	return syscall(SYS_write, fd, data, len);
}

int fsync(int fd)
{
	const char *part = getenv("HANG_PATH"), *fifo = getenv("HANG_FIFO");
	char link[64], path[1024];
	ssize_t n;
	int fifo_fd;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	if (part && fifo && strstr(path, part) && access(fifo, F_OK) == 0) {
		dprintf(STDERR_FILENO, "fsync hangs\n");
		fifo_fd = open(fifo, O_RDONLY | O_CLOEXEC);
		if (fifo_fd >= 0)
			close(fifo_fd);
	}
	return (int)syscall(SYS_fsync, fd);
}

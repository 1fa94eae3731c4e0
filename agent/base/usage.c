/*
 * /proc/self. Surprising: descriptors are listed only where they are not counted by the kernel: a
 * relay may have tens of thousands. The listing has the one by which it is read.
 */
#include "base/usage.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reads /proc/self/stat: the fields of proc(5). */
static void read_process_stat(const struct sys *sys, struct usage *u)
{
	enum { UTIME = 14, STIME = 15, VSIZE = 23, RSS = 24, FIELDS = 25 };
	int fd = sys->openat(AT_FDCWD, "/proc/self/stat", O_RDONLY | O_CLOEXEC, 0);
	long long fields[FIELDS] = {0}, hz = sysconf(_SC_CLK_TCK);
	char text[1024], *at;
	ssize_t n = fd >= 0 ? sys->read(fd, text, sizeof(text) - 1) : -1;

	u->cpu_ms = u->resident_bytes = u->virtual_bytes = -1;
	if (fd >= 0)
		sys->close(fd);
	if (n <= 0 || hz <= 0)
		return;
	text[n] = '\0';
	at = strrchr(text, ')'); /* the end of the name, field 2; field 3 is a letter */
	if (!at || strlen(at) < 4)
		return;
	at += 3;
	for (size_t i = 4; i < FIELDS; i++)
		fields[i] = strtoll(at, &at, 10);
	u->cpu_ms = (fields[UTIME] + fields[STIME]) * 1000 / hz;
	u->virtual_bytes = fields[VSIZE];
	u->resident_bytes = fields[RSS] * sysconf(_SC_PAGESIZE);
}

static int64_t list_open_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int64_t n = d ? -3 : -1; /* without ., .. and the directory itself */

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static void count_open_descriptors(struct usage *u)
{
	struct rlimit limit;
	struct stat st;

	/* the size of the directory is their number, from Linux 6.2 on; before, it is 0 */
	u->open_fds = stat("/proc/self/fd", &st) == 0 && st.st_size > 0 ? st.st_size
									: list_open_descriptors();
	u->max_fds = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur <= INT64_MAX
			     ? (int64_t)limit.rlim_cur
			     : -1;
}

void usage_read(const struct sys *sys, struct usage *ret_usage)
{
	read_process_stat(sys, ret_usage);
	count_open_descriptors(ret_usage);
}

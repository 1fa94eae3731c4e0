/* Compares the sum of all needs with what the limit leaves. Surprising: the limit bounds descriptor
 * numbers, so inherited descriptors count only below it. */
#include "base/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* How many numbers below the limit are free; stops counting at `wanted`. */
static size_t count_free(rlim_t limit, size_t wanted)
{
	size_t n = 0;

	for (int fd = 0; fd < INT_MAX && (rlim_t)fd < limit && n < wanted; fd++)
		n += fcntl(fd, F_GETFD) < 0;
	return n;
}

/* "a 1, b 2"; one at least is needed. */
static void list_needs(
	const struct descriptors_need *needs, size_t count, char *ret_text, size_t size)
{
	size_t len = 0;

	for (size_t i = 0; i < count; i++)
		if (needs[i].count && len < size)
			len += (size_t)snprintf(ret_text + len, size - len, "%s%s %zu",
				len ? ", " : "", needs[i].what, needs[i].count);
}

int descriptors_check(const struct descriptors_need *needs, size_t count, char why[DESCRIPTORS_WHY])
{
	struct rlimit limit;
	size_t sum = 0, left;
	char list[256];

	for (size_t i = 0; i < count; i++)
		sum += needs[i].count;
	if (getrlimit(RLIMIT_NOFILE, &limit))
		return 0;
	left = count_free(limit.rlim_cur, sum);
	if (left < sum && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &limit))
			getrlimit(RLIMIT_NOFILE, &limit);
		left = count_free(limit.rlim_cur, sum);
	}
	if (left >= sum)
		return 0;
	list_needs(needs, count, list, sizeof(list));
	snprintf(why, DESCRIPTORS_WHY,
		"%zu file descriptors are needed (%s), and the limit of %llu leaves %zu: raise it "
		"to %llu or more (LimitNOFILE= in the unit, ulimit -n in a shell)",
		sum, list, (unsigned long long)limit.rlim_cur, left,
		(unsigned long long)limit.rlim_cur + (sum - left));
	return -EMFILE;
}

void descriptors_keep_standard(void)
{
	int fd;

	do
		fd = open("/", O_PATH | O_CLOEXEC);
	while (fd >= 0 && fd < STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

int descriptors_try(void)
{
	int fds[DESCRIPTORS_TRIED], r = 0;
	size_t n = 0;

	while (r == 0 && n < DESCRIPTORS_TRIED) {
		fds[n] = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		if (fds[n] < 0)
			r = -errno;
		else
			n++;
	}
	while (n > 0)
		close(fds[--n]);
	return r;
}

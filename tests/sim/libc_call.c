/* How each call goes: the world is asked first, the result is traced. Surprising: only the agent's
 * calls; others are as if they took no time. */
#include "libc_seam.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "disk_tree.h"

bool seam_is_agent(void)
{
	return disk_owner == OWNER_AGENT || disk_owner == OWNER_SECOND;
}

int seam_ask(enum world_call call, const char *path)
{
	int r;

	if (!seam_is_agent())
		return 0;
	r = world_call(call, path);
	return r > 0 ? -r : r;
}

static char *put_text(char *at, const char *end, const char *text)
{
	while (at < end && *text)
		*at++ = *text++;
	return at;
}

static char *put_number(char *at, const char *end, long n)
{
	char digits[24], *p = digits + sizeof(digits) - 1;
	unsigned long left = n < 0 ? -(unsigned long)n : (unsigned long)n;

	*p = '\0';
	do
		*--p = (char)('0' + left % 10);
	while (left /= 10);
	if (n < 0)
		*--p = '-';
	return put_text(at, end, p);
}

/* "openat 5:name = 6"; "fsync 6 = EIO" */
static void trace_call(const char *what, int at, const char *path, long r)
{
	const char *error = r < 0 ? strerrorname_np((int)-r) : NULL;
	char line[400], *p, *end = line + sizeof(line) - 1;

	p = put_text(line, end, what);
	p = put_text(p, end, " ");
	if (at != AT_FDCWD)
		p = put_number(p, end, at);
	if (path && path[0]) {
		p = put_text(p, end, at == AT_FDCWD ? "" : ":");
		p = put_text(p, end, path);
	}
	p = put_text(p, end, " = ");
	p = error ? put_text(p, end, error) : put_number(p, end, r);
	*p = '\0';
	world_trace_text(line, (size_t)(p - line));
}

long seam_end(const char *what, int at, const char *path, long r)
{
	if (seam_is_agent())
		trace_call(what, at, path, r);
	if (r >= 0)
		return r;
	errno = (int)-r;
	return -1;
}

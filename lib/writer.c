/*
 * Snapshots for tests of applications: built by the agent's own code, put in place by a rename.
 * Surprising: nothing; the agent itself does not use this (agent/publish/image.c).
 */
#include "pullet.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "snapshot.h"

/* One more than that of the snapshot there; 1 when there is none. */
static uint64_t next_generation(const char *path)
{
	struct pullet *p;
	uint64_t generation;

	if (pullet_open(path, 0, &p))
		return 1;
	generation = pullet_generation(p) + 1;
	pullet_close(p);
	return generation;
}

static int write_all(int fd, const char *data, size_t len)
{
	ssize_t n;

	for (; len; data += n, len -= (size_t)n) {
		n = write(fd, data, len);
		if (n < 0)
			return -errno;
	}
	return fchmod(fd, 0644) ? -errno : 0;
}

static int replace_file(const char *path, const char *data, size_t len)
{
	char beside[PATH_MAX];
	int fd, r;

	if (snprintf(beside, sizeof(beside), "%s.XXXXXX", path) >= (int)sizeof(beside))
		return -ENAMETOOLONG;
	fd = mkostemp(beside, O_CLOEXEC);
	r = fd < 0 ? -errno : write_all(fd, data, len);
	if (fd >= 0)
		close(fd);
	if (r == 0 && rename(beside, path))
		r = -errno;
	if (r && fd >= 0)
		unlink(beside);
	return r;
}

int pullet_write(
	const char *path, const struct pullet_entry *entries, size_t count, const char *version)
{
	struct snapshot_entry *sorted;
	void *image;
	size_t len;
	int r;

	if (!path || !strchr(path, '/'))
		return -EINVAL;
	sorted = calloc(count + 1, sizeof(*sorted));
	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		sorted[i] = (struct snapshot_entry){
			entries[i].key, entries[i].key_len, entries[i].value};
	r = snapshot_build(sorted, count, next_generation(path), 0, version, &image, &len);
	free(sorted);
	if (r)
		return r;
	r = replace_file(path, image, len);
	free(image);
	return r;
}

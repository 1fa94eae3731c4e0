/*
 * Versions without a config. Surprising: a directory without a ledger is not the agent's own, as
 * lost+found, and gets no mark.
 */
#include "version/left.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/trusted.h"
#include "version/ledger.h"

#define LEFT "left"

static int compare_left_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* 0, also where it was marked before, or -errno. */
static int mark_directory(const struct sys *sys, int parent, const char *name)
{
	int dir = trusted_open_below(sys, parent, name), fd, r = 0;
	struct stat st;

	if (dir < 0)
		return dir == -ENOTDIR || dir == -EPERM ? 0 : dir;
	if (sys->fstatat(dir, LEDGER_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		fd = sys->openat(dir, LEFT, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd >= 0)
			sys->close(fd);
		else if (errno != EEXIST)
			r = -errno;
	}
	sys->close(dir);
	return r;
}

int left_mark(const struct sys *sys, const char *state_dir, const char **kept, size_t count,
	char why[FILE_WHY])
{
	int parent = trusted_open_dir(sys, state_dir, TRUSTED_OWN, why), error = 0, r;
	DIR *d = parent < 0 ? NULL : fdopendir(parent);
	struct dirent *entry;

	if (parent < 0)
		return parent;
	if (!d) {
		error = -errno;
		snprintf(why, FILE_WHY, "cannot read %.200s: %s", state_dir, strerror(-error));
		sys->close(parent);
		return error;
	}
	qsort(kept, count, sizeof(*kept), compare_left_names);
	while ((entry = readdir(d))) {
		const char *name = entry->d_name;

		if (name[0] == '.' || (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN) ||
			bsearch(&name, kept, count, sizeof(*kept), compare_left_names))
			continue;
		r = mark_directory(sys, parent, name);
		if (r) {
			error = r;
			snprintf(why, FILE_WHY, "cannot mark %.100s in %.200s: %s", name, state_dir,
				strerror(-r));
		}
	}
	closedir(d);
	return error;
}

static bool is_before(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

bool left_is_older(const struct sys *sys, const struct store *store, const char *place)
{
	int dir = store_dir(store);
	struct stat left, now;
	bool older;

	if (dir < 0)
		return false;
	older = sys->fstatat(dir, LEFT, &left, AT_SYMLINK_NOFOLLOW) == 0 &&
		sys->fstatat(AT_FDCWD, place, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
		!is_before(&now.st_ctim, &left.st_mtim);
	sys->close(dir);
	return older;
}

bool left_is_removed(
	const struct sys *sys, const char *state_dir, const char *name, uint64_t generation)
{
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s/%020" PRIu64, state_dir, name, generation);
	return sys->fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) && errno == ENOENT;
}

void left_clear(const struct sys *sys, const struct store *store)
{
	int dir = store_dir(store);

	if (dir < 0)
		return;
	sys->unlinkat(dir, LEFT, 0);
	sys->close(dir);
}

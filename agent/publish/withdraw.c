/*
 * Pages without a config. Surprising: the page stays, marked, and its futex keeps counting; so a
 * config that comes back wakes the same readers. Unmapping the page closes it, after it was
 * changed: that is the event that inotify has for readers in an event loop (lib/FORMAT.md).
 */
#include "publish/withdraw.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/page.h"
#include "files/trusted.h"

#define NAME_ROOM 65 /* of a config, with its NUL */

static const char page_end[] = ".gen", image_end[] = ".snap";

static int compare_kept(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Maps a page that this user made; NULL when it is none. */
static struct page *map_own_page(int dir, const char *file)
{
	int fd = openat(dir, file, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct page *page = MAP_FAILED;
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == PAGE_SIZE &&
		st.st_uid == geteuid() && st.st_nlink == 1)
		page = mmap(NULL, PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	if (page == MAP_FAILED)
		return NULL;
	if (memcmp(page->magic, PAGE_MAGIC, sizeof(page->magic)) == 0)
		return page;
	munmap(page, PAGE_SIZE);
	return NULL;
}

/* 1 when it was withdrawn now, 0 before, or -errno. After a crash in between the next start repeats
 * it. */
static int withdraw_snapshot(const struct sys *sys, int dir, const char *file, const char *name)
{
	char image[NAME_MAX + 1];
	struct page *page = map_own_page(dir, file);
	struct stat st;
	int r = 0;

	if (!page)
		return 0;
	snprintf(image, sizeof(image), "%.64s%s", name, image_end);
	if (fstatat(dir, image, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
		st.st_uid == geteuid())
		r = sys->unlinkat(dir, image, 0) ? -errno : 1;
	if (r >= 0 && !atomic_load(&page->withdrawn)) {
		atomic_store(&page->withdrawn, 1);
		atomic_store(&page->confirmed_ms, 0);
		atomic_fetch_add_explicit(&page->futex, 1, memory_order_release);
		syscall(SYS_futex, &page->futex, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
		r = 1;
	}
	munmap(page, PAGE_SIZE);
	return r;
}

/* The name in front of `end`, if that is how the len bytes of text end. */
static bool cut_name(const char *text, size_t len, const char *end, char ret_name[NAME_ROOM])
{
	size_t end_len = strlen(end);

	if (len <= end_len || len - end_len >= NAME_ROOM || text[0] == '.' ||
		strncmp(text + len - end_len, end, end_len) != 0)
		return false;
	snprintf(ret_name, NAME_ROOM, "%.*s", (int)(len - end_len), text);
	return true;
}

/* Removes a temporary file that a killed agent left beside a page of its own. */
static int remove_temporary(const struct sys *sys, int dir, const char *file, const char *name)
{
	char page_file[NAME_MAX + 1];
	struct page *page;

	snprintf(page_file, sizeof(page_file), "%.64s%s", name, page_end);
	page = map_own_page(dir, page_file);
	if (!page)
		return 0;
	munmap(page, PAGE_SIZE);
	return sys->unlinkat(dir, file, 0) && errno != ENOENT ? -errno : 0;
}

int withdraw_snapshots(const struct sys *sys, const char *runtime_dir, const char **kept,
	size_t count, char why[FILE_WHY])
{
	int dir = trusted_open_dir(sys, runtime_dir, TRUSTED_OWN, why), withdrawn = 0, error = 0, r;
	DIR *d = dir < 0 ? NULL : fdopendir(dir);
	struct dirent *entry;

	if (dir < 0)
		return dir;
	if (!d) {
		r = -errno;
		snprintf(why, FILE_WHY, "cannot read %.200s: %s", runtime_dir, strerror(-r));
		sys->close(dir);
		return r;
	}
	qsort(kept, count, sizeof(*kept), compare_kept);
	while ((entry = readdir(d))) {
		const char *file = entry->d_name;
		size_t temporary = file_temporary(file);
		char name[NAME_ROOM];
		const char *key = name;

		if (!(temporary ? cut_name(file + 1, temporary, image_end, name)
				: cut_name(file, strlen(file), page_end, name)) ||
			bsearch(&key, kept, count, sizeof(*kept), compare_kept))
			continue;
		r = temporary ? remove_temporary(sys, dir, file, name)
			      : withdraw_snapshot(sys, dir, file, name);
		withdrawn += r > 0;
		if (r < 0) {
			error = r;
			snprintf(why, FILE_WHY, "cannot remove the snapshot of %s in %.200s: %s",
				name, runtime_dir, strerror(-r));
		}
	}
	closedir(d);
	return error ? error : withdrawn;
}

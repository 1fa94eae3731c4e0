/*
 * A set of files behind one symlink. Surprising: no list of links is kept; one of the set is known
 * by its text ("..data/NAME"), a stale one by leading nowhere, so that the same few lines repair
 * them after a publication and after a crash.
 */
#include "publish/file_set.h"

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

#include "base/hash.h"
#include "files/trusted.h"

#define HEX 16
#define NAME_LONGEST 200   /* with room for file.c's temporary name */
#define GENERATION_NAME 48 /* "..", 20 digits, "-", HEX and a NUL */
#define LINK_TEXT (sizeof(FILE_SET_LINK "/") + NAME_MAX)
#define MAX_LISTED 64 /* generations looked at in one go */

struct file_set {
	const struct sys *sys;
	char *dir;
	bool in_memory;
	bool dir_synced; /* the directory's name is on the disk */
	bool known;      /* mark is that of the last publication */
	uint64_t mark;   /* hash of everything that others could change */
};

struct generation {
	char name[GENERATION_NAME]; /* "" = none */
	uint64_t number;
	struct timespec made;
};

/* "WHAT DIR/NAME: ADVICE", with the error's own remedy when there is no better advice. */
static int explain_set(const struct file_set *f, char why[FILE_WHY], int error, const char *what,
	const char *name, const char *advice)
{
	char remedy[FILE_REMEDY];

	file_remedy(remedy, error, false);
	snprintf(why, FILE_WHY, "%s %.100s%s%.100s: %s", what, f->dir, name ? "/" : "",
		name ? name : "", advice ? advice : remedy);
	return -error;
}

/* ---- the directory ---- */

static bool is_entry_name(const char *name)
{
	static const char chars[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
	size_t len = strspn(name, chars);

	return len > 0 && len <= NAME_LONGEST && name[len] == '\0' && strcmp(name, ".") != 0 &&
	       strncmp(name, "..", 2) != 0;
}

/* ---- generations ---- */

/* True when this is the name of a generation; reads its number and time. */
static bool parse_generation(int dir, const char *name, struct generation *ret)
{
	const char *digits, *tail;
	struct stat st;

	if (strncmp(name, "..", 2) != 0)
		return false;
	digits = name + 2;
	tail = digits + strspn(digits, "0123456789");
	if (tail == digits || tail - digits > 20 || tail[0] != '-' ||
		strspn(tail + 1, "0123456789abcdef") != HEX || tail[1 + HEX] != '\0')
		return false;
	*ret = (struct generation){.number = strtoull(digits, NULL, 10)};
	snprintf(ret->name, sizeof(ret->name), "%s", name);
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		ret->made = st.st_mtim;
	return true;
}

static bool is_newer(const struct generation *a, const struct generation *b)
{
	if (a->number != b->number)
		return a->number > b->number;
	if (a->made.tv_sec != b->made.tv_sec)
		return a->made.tv_sec > b->made.tv_sec;
	return a->made.tv_nsec > b->made.tv_nsec;
}

static int compare_age(const void *a, const void *b)
{
	return is_newer(b, a) - is_newer(a, b);
}

/* The generation that is visible; none is no error. */
static int read_current(
	const struct file_set *f, int dir, struct generation *ret, char why[FILE_WHY])
{
	char text[GENERATION_NAME + 1];
	ssize_t n = readlinkat(dir, FILE_SET_LINK, text, sizeof(text) - 1);

	*ret = (struct generation){.number = 0};
	if (n < 0 && errno == ENOENT)
		return 0;
	if (n >= 0)
		text[n] = '\0';
	if (n >= 0 && parse_generation(dir, text, ret))
		return 0;
	if (n < 0 && errno != EINVAL)
		return explain_set(f, why, errno, "cannot read", FILE_SET_LINK, NULL);
	return explain_set(f, why, EEXIST, "will not replace", FILE_SET_LINK,
		"it is not one of this agent's; use another directory, or remove it");
}

/* Removes what it can; the next pruning finds the rest. */
static void remove_generation(const struct file_set *f, int dir, const char *name)
{
	DIR *d = file_list_dir(f->sys, dir, name);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			f->sys->unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
	f->sys->unlinkat(dir, name, AT_REMOVEDIR);
}

/* Removes all but `current`, `previous` and the newest others. Without a previous one, at the
 * start, also removes what is newer than the current one, as it never was visible. */
static void prune_generations(const struct file_set *f, int dir, const struct generation *current,
	const struct generation *previous)
{
	struct generation all[MAX_LISTED];
	size_t n = 0, kept = previous && previous->name[0] ? 2 : 1;
	DIR *d = file_list_dir(f->sys, dir, ".");
	struct dirent *e;

	while (d && n < MAX_LISTED && (e = readdir(d)))
		n += parse_generation(dir, e->d_name, &all[n]);
	if (d)
		closedir(d);
	qsort(all, n, sizeof(all[0]), compare_age);
	for (size_t i = 0; i < n; i++) {
		if (strcmp(all[i].name, current->name) == 0 ||
			(previous && strcmp(all[i].name, previous->name) == 0))
			continue;
		if (kept == FILE_SET_KEEP || (!previous && is_newer(&all[i], current)))
			remove_generation(f, dir, all[i].name);
		else
			kept++;
	}
}

/* At the start: removes sets that were being validated when the agent crashed. */
static void remove_tried(const struct file_set *f, int dir)
{
	DIR *d = file_list_dir(f->sys, dir, ".");
	size_t head = strlen(FILE_SET_CHECKED);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (strncmp(e->d_name, FILE_SET_CHECKED, head) == 0 &&
			strspn(e->d_name + head, "0123456789abcdef") == HEX &&
			e->d_name[head + HEX] == '\0')
			remove_generation(f, dir, e->d_name);
	if (d)
		closedir(d);
}

/* ---- links ---- */

/* 1 = DIR/name is the set's link, 0 = there is nothing, -EEXIST = it is something else, -errno. */
static int find_link(int dir, const char *name)
{
	char text[LINK_TEXT];
	ssize_t n = readlinkat(dir, name, text, sizeof(text));
	size_t head = strlen(FILE_SET_LINK "/");

	if (n < 0)
		return errno == ENOENT ? 0 : errno == EINVAL ? -EEXIST : -errno;
	return (size_t)n == head + strlen(name) && memcmp(text, FILE_SET_LINK "/", head) == 0 &&
			       memcmp(text + head, name, strlen(name)) == 0
		       ? 1
		       : -EEXIST;
}

static int explain_link(const struct file_set *f, char why[FILE_WHY], int error, const char *name)
{
	return explain_set(f, why, error, "cannot make the link", name,
		error == EEXIST ? "something else has that name; remove it, or name it otherwise"
				: NULL);
}

static int make_links(const struct file_set *f, int dir, const struct generation *current,
	bool *changed, char why[FILE_WHY])
{
	DIR *d = file_list_dir(f->sys, dir, current->name);
	char text[LINK_TEXT];
	struct dirent *e;
	int r = 0;

	if (!d)
		return explain_set(f, why, errno, "cannot read", current->name, NULL);
	while (r == 0 && (e = readdir(d))) {
		if (!is_entry_name(e->d_name))
			continue;
		r = find_link(dir, e->d_name);
		if (r == 0) {
			snprintf(text, sizeof(text), FILE_SET_LINK "/%s", e->d_name);
			r = f->sys->symlinkat(text, dir, e->d_name) ? -errno : 1;
			*changed = true;
		}
		r = r < 0 ? explain_link(f, why, -r, e->d_name) : 0;
	}
	closedir(d);
	return r;
}

static int remove_stale_links(const struct file_set *f, int dir, bool *changed, char why[FILE_WHY])
{
	DIR *d = file_list_dir(f->sys, dir, ".");
	struct dirent *e;
	struct stat st;
	int r = 0;

	if (!d)
		return explain_set(f, why, errno, "cannot read", NULL, NULL);
	while (r == 0 && (e = readdir(d))) {
		if (!is_entry_name(e->d_name) || find_link(dir, e->d_name) != 1 ||
			fstatat(dir, e->d_name, &st, 0) == 0 || errno != ENOENT)
			continue;
		if (f->sys->unlinkat(dir, e->d_name, 0))
			r = explain_set(f, why, errno, "cannot remove the link", e->d_name, NULL);
		*changed = true;
	}
	closedir(d);
	return r;
}

/* Makes the links those of the current generation. 0, FILE_NOT_DURABLE or -errno. */
static int settle_links(const struct file_set *f, int dir, const struct generation *current,
	bool sync, char why[FILE_WHY])
{
	bool changed = false;
	int r = current->name[0] ? make_links(f, dir, current, &changed, why) : 0;

	if (r == 0)
		r = remove_stale_links(f, dir, &changed, why);
	if (r == 0 && changed && sync && f->sys->fsync(dir)) {
		explain_set(f, why, errno,
			"the set is visible, but its links are not on the disk yet:", NULL, NULL);
		r = FILE_NOT_DURABLE;
	}
	return r;
}

/* ---- open and close ---- */

/* The directory, which is made where there is none. The descriptor, or -errno. */
static int open_set_dir(struct file_set *f, char why[FILE_WHY])
{
	bool made;
	int dir = trusted_provide_dir(f->sys, f->dir, 0755, TRUSTED_SET, &made, why);

	f->dir_synced &= !made;
	return dir;
}

int file_set_open(
	const struct sys *sys, const char *dir, struct file_set **ret_fileset, char why[FILE_WHY])
{
	struct file_set *f = calloc(1, sizeof(*f));
	struct generation current;
	char ignored[FILE_WHY];
	int fd, r;

	if (!f || !(f->dir = strdup(dir))) {
		free(f);
		snprintf(why, FILE_WHY, "out of memory");
		return -ENOMEM;
	}
	f->sys = sys;
	r = fd = open_set_dir(f, why);
	if (fd >= 0) {
		f->in_memory = file_in_memory(fd);
		r = read_current(f, fd, &current, why);
		if (r == 0) {
			file_clean(sys, fd, FILE_SET_LINK);
			remove_tried(f, fd);
			settle_links(f, fd, &current, !f->in_memory, ignored);
			prune_generations(f, fd, &current, NULL);
		}
		sys->close(fd);
	}
	if (r < 0) {
		file_set_close(f);
		return r;
	}
	*ret_fileset = f;
	return 0;
}

void file_set_close(struct file_set *f)
{
	if (f)
		free(f->dir);
	free(f);
}

void file_set_forget(struct file_set *f)
{
	f->known = false;
}

bool file_set_in_memory(const struct file_set *f)
{
	return f->in_memory;
}

/* ---- what is there ---- */

static uint64_t mark_of(const char *name, const struct stat *st)
{
	const uint64_t facts[] = {st->st_dev, st->st_ino, st->st_mode, st->st_uid, st->st_gid,
		(uint64_t)st->st_size, (uint64_t)st->st_mtim.tv_sec, (uint64_t)st->st_mtim.tv_nsec,
		(uint64_t)st->st_ctim.tv_sec, (uint64_t)st->st_ctim.tv_nsec};

	return hash_bytes(hash_bytes(HASH_START, name, strlen(name)), facts, sizeof(facts));
}

/* Hashes the files of the visible generation and their links, in any order. */
static bool mark_current(const struct file_set *f, int dir, uint64_t *ret_mark, size_t *ret_count)
{
	struct generation current;
	char why[FILE_WHY];
	struct dirent *e;
	struct stat st;
	DIR *d = NULL;
	bool good;

	if (read_current(f, dir, &current, why) == 0 && current.name[0])
		d = file_list_dir(f->sys, dir, current.name);
	if (!d)
		return false;
	good = fstat(dirfd(d), &st) == 0;
	*ret_mark = good ? mark_of(current.name, &st) : 0;
	*ret_count = 0;
	while (good && (e = readdir(d))) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		good = find_link(dir, e->d_name) == 1 &&
		       fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0;
		if (good)
			*ret_mark += mark_of(e->d_name, &st);
		++*ret_count;
	}
	closedir(d);
	return good;
}

static bool entry_has_content(const struct file_set *f, int dir, const struct file_set_entry *e,
	const struct file_options *o)
{
	char path[LINK_TEXT];
	struct stat st;

	snprintf(path, sizeof(path), FILE_SET_LINK "/%.*s", NAME_LONGEST, e->name);
	if (fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) || (st.st_mode & 07777) != o->mode ||
		(o->uid != (uid_t)-1 && st.st_uid != o->uid) ||
		(o->gid != (gid_t)-1 && st.st_gid != o->gid))
		return false;
	return file_holds(f->sys, dir, path, e->data, e->len);
}

bool file_set_is_current(struct file_set *f, const struct file_set_entry *entries, size_t count,
	const struct file_options *options)
{
	char why[FILE_WHY];
	int dir = trusted_open_dir(f->sys, f->dir, TRUSTED_ANY, why); /* only looks */
	uint64_t now;
	size_t files;
	bool same = dir >= 0 && mark_current(f, dir, &now, &files);

	if (f->known) {
		same = same && now == f->mark;
	} else if (same) {
		same = entries && files == count;
		for (size_t i = 0; same && i < count; i++)
			same = entry_has_content(f, dir, &entries[i], options);
		f->known = same;
		f->mark = now;
	}
	if (dir >= 0)
		f->sys->close(dir);
	return same;
}

/* ---- publishing ---- */

static int compare_file_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int check_entries(const struct file_set *f, const struct file_set_entry *entries,
	size_t count, char why[FILE_WHY])
{
	const char *names[FILE_SET_MAX];

	if (count > FILE_SET_MAX) {
		snprintf(why, FILE_WHY, "%zu files are too many for %.100s: at most %d", count,
			f->dir, FILE_SET_MAX);
		return -E2BIG;
	}
	for (size_t i = 0; i < count; i++) {
		names[i] = entries[i].name;
		if (!is_entry_name(names[i]))
			return explain_set(f, why, EINVAL, "cannot make the file", names[i],
				"a name is 1 to 200 of A-Z a-z 0-9 . _ - and does not begin with "
				"'..'");
	}
	qsort(names, count, sizeof(names[0]), compare_file_names);
	for (size_t i = 1; i < count; i++)
		if (strcmp(names[i - 1], names[i]) == 0)
			return explain_set(f, why, EINVAL, "cannot make the file", names[i],
				"two of the set have this name; rename one");
	return 0;
}

/* Checks that each name is free, or a link of the set. */
static int check_links(const struct file_set *f, int dir, const struct file_set_entry *entries,
	size_t count, char why[FILE_WHY])
{
	for (size_t i = 0; i < count; i++) {
		int r = find_link(dir, entries[i].name);

		if (r < 0)
			return explain_link(f, why, -r, entries[i].name);
	}
	return 0;
}

/* The new directory's descriptor, or -errno. */
static int make_generation(
	const struct file_set *f, int dir, uint64_t number, char name[GENERATION_NAME])
{
	int r, tries = 0;

	do {
		snprintf(name, GENERATION_NAME, "..%" PRIu64 "-%016" PRIx64, number,
			f->sys->random());
		r = f->sys->mkdirat(dir, name, 0700);
	} while (r && errno == EEXIST && tries++ < 4);
	if (r) {
		name[0] = '\0'; /* it may be somebody's */
		return -errno;
	}
	r = f->sys->openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	return r < 0 ? -errno : r;
}

static int fill_generation(const struct file_set *f, int fd, const struct file_set_entry *entries,
	size_t count, const struct file_options *o, char why[FILE_WHY])
{
	int r = 0;

	for (size_t i = 0; i < count && r == 0; i++) {
		r = file_replace(
			f->sys, fd, entries[i].name, entries[i].data, entries[i].len, o, why);
		if (r == FILE_NOT_DURABLE) /* nothing is visible yet */
			r = explain_set(
				f, why, EIO, "cannot bring to the disk", entries[i].name, NULL);
	}
	if (r == 0 && f->sys->fchmod(fd, 0755))
		r = explain_set(f, why, errno, "cannot set the mode of a directory in", NULL, NULL);
	if (r == 0 && o->sync && f->sys->fsync(fd))
		r = explain_set(
			f, why, errno, "cannot bring to the disk a directory in", NULL, NULL);
	return r;
}

/* What mark_current() will find, unless somebody changes it first; 0 where
 * somebody was there already. */
static uint64_t mark_written(
	int fd, const char *name, const struct file_set_entry *entries, size_t count)
{
	uint64_t sum = 0;
	struct stat st;

	if (fstat(fd, &st))
		return 0;
	sum = mark_of(name, &st);
	for (size_t i = 0; i < count; i++) {
		if (fstatat(fd, entries[i].name, &st, AT_SYMLINK_NOFOLLOW) ||
			!S_ISREG(st.st_mode) || (size_t)st.st_size != entries[i].len)
			return 0;
		sum += mark_of(entries[i].name, &st);
	}
	return sum;
}

static int write_generation(const struct file_set *f, int dir, const struct file_set_entry *entries,
	size_t count, const struct file_options *options, struct generation *g, uint64_t *ret_mark,
	char why[FILE_WHY])
{
	int r, fd = make_generation(f, dir, g->number, g->name);

	if (fd < 0)
		r = explain_set(f, why, -fd, "cannot make a directory in", NULL, NULL);
	else
		r = fill_generation(f, fd, entries, count, options, why);
	if (r == 0)
		*ret_mark = mark_written(fd, g->name, entries, count);
	if (fd >= 0)
		f->sys->close(fd);
	return r;
}

/* Fsyncs the directory before as well: a power cut must not leave ..data without its target. */
static int flip_data(
	const struct file_set *f, int dir, const char *name, bool sync, char why[FILE_WHY])
{
	char temporary[sizeof("." FILE_SET_LINK ".pullet-") + HEX]; /* as file_clean() knows it */
	int r;

	snprintf(temporary, sizeof(temporary), "." FILE_SET_LINK ".pullet-%016" PRIx64,
		f->sys->random());
	if (sync && f->sys->fsync(dir))
		return explain_set(f, why, errno, "cannot bring to the disk", NULL, NULL);
	if (f->sys->symlinkat(name, dir, temporary))
		return explain_set(f, why, errno, "cannot make", temporary, NULL);
	if (f->sys->renameat(dir, temporary, dir, FILE_SET_LINK)) {
		r = explain_set(f, why, errno, "cannot replace", FILE_SET_LINK, NULL);
		f->sys->unlinkat(dir, temporary, 0);
		return r;
	}
	if (sync && f->sys->fsync(dir)) {
		explain_set(f, why, errno, "the new set is visible, but not on the disk yet:", NULL,
			NULL);
		return FILE_NOT_DURABLE;
	}
	return 0;
}

int file_set_publish(struct file_set *f, const struct file_set_entry *entries, size_t count,
	uint64_t generation, const struct file_options *options, char why[FILE_WHY])
{
	struct generation g = {.number = generation}, previous;
	uint64_t written = 0;
	int dir, links, r = check_entries(f, entries, count, why);

	if (r)
		return r;
	dir = open_set_dir(f, why);
	if (dir < 0)
		return dir;
	r = file_check_removable(dir, FILE_SET_LINK, why);
	if (r == 0)
		r = read_current(f, dir, &previous, why);
	if (r == 0)
		r = check_links(f, dir, entries, count, why);
	if (r == 0)
		r = write_generation(f, dir, entries, count, options, &g, &written, why);
	if (r == 0)
		r = flip_data(f, dir, g.name, options->sync, why);
	if (r == 0 && options->sync && !f->dir_synced) { /* it may be new */
		f->dir_synced = file_sync_parent(f->sys, dir, why) == 0;
		r = f->dir_synced ? 0 : FILE_NOT_DURABLE;
	}
	if (r >= 0) {
		links = settle_links(f, dir, &g, options->sync, why);
		r = links < 0 ? FILE_SET_INCOMPLETE : links ? links : r;
		prune_generations(f, dir, &g, &previous);
		f->known = r != FILE_SET_INCOMPLETE && mark_current(f, dir, &f->mark, &count) &&
			   written && f->mark == written; /* else somebody was there already */
	} else if (g.name[0]) {
		remove_generation(f, dir, g.name);
	}
	f->sys->close(dir);
	return r;
}

int file_set_sync(struct file_set *f)
{
	return trusted_sync_dir(f->sys, f->dir, &f->dir_synced);
}

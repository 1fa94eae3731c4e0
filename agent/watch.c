/*
 * Watching a directory tree.
 *
 * Surprising: an event only says where to look. What counts is the ETag: an editor's touch tells
 * nothing, and when events were lost, or a symlink that others lead through was flipped
 * (Kubernetes' ..data), the whole tree is looked at again.
 */
#include "watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
#include "origin.h"

#define EVENTS (IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CREATE | IN_ONLYDIR)
#define MAX_DEPTH 16

struct file {
	char *path;
	char etag[ORIGIN_ETAG]; /* "" = it could not be read */
};

struct folder {
	int number; /* inotify's */
	char *path; /* relative; "" = the directory itself */
};

struct watch {
	const char *root;
	int dir;
	watch_changed changed;
	void *arg;
	struct loop_watch watch;
	struct file *files; /* sorted by path */
	size_t file_count;
	struct folder *folders;
	size_t folder_count;
};

/* ---- files ---- */

static size_t place(const struct watch *w, const char *path)
{
	size_t low = 0, high = w->file_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(w->files[middle].path, path) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct file *find_or_add(struct watch *w, const char *path)
{
	size_t i = place(w, path);
	struct file *more;
	char *copy;

	if (i < w->file_count && strcmp(w->files[i].path, path) == 0)
		return &w->files[i];
	if (w->file_count == WATCH_MAX_FILES) {
		log_warn("too many files: changes of this one are not told", "path", path);
		return NULL;
	}
	copy = strdup(path);
	more = realloc(w->files, (w->file_count + 1) * sizeof(*more));
	if (more)
		w->files = more;
	if (!copy || !more) {
		free(copy);
		return NULL;
	}
	memmove(&more[i + 1], &more[i], (w->file_count - i) * sizeof(*more));
	more[i] = (struct file){.path = copy};
	w->file_count++;
	return &more[i];
}

/* Looks at one file; tells if its content is another than before. */
static void look(struct watch *w, const char *path, bool tell)
{
	struct origin_file content;
	struct file *f;
	int r;

	if (!origin_serves(path))
		return;
	r = origin_read(w->dir, path, &content);
	if (r == -EISDIR || r == -EINVAL)
		return;
	f = r == 0 || (place(w, path) < w->file_count &&
			      strcmp(w->files[place(w, path)].path, path) == 0)
		    ? find_or_add(w, path)
		    : NULL;
	if (!f) {
		if (r == 0)
			buffer_fini(&content.body);
		return;
	}
	if (r) {
		if (f->etag[0] && tell)
			w->changed(w->arg, path, NULL);
		f->etag[0] = '\0';
		return;
	}
	if (strcmp(f->etag, content.etag) != 0) {
		memcpy(f->etag, content.etag, sizeof(f->etag));
		if (tell)
			w->changed(w->arg, path, f->etag);
	}
	buffer_fini(&content.body);
}

/* ---- folders ---- */

static bool join(char path[PATH_MAX], const char *folder, const char *name)
{
	return snprintf(path, PATH_MAX, "%s%s%s", folder, folder[0] ? "/" : "", name) < PATH_MAX;
}

static const char *add_folder(struct watch *w, const char *path)
{
	char full[PATH_MAX];
	struct folder *more;
	char *copy;
	int number;

	if (snprintf(full, sizeof(full), "%s/%s", w->root, path) >= (int)sizeof(full))
		return NULL;
	number = inotify_add_watch(w->watch.fd, full, EVENTS);
	if (number < 0) {
		log_warn("cannot watch a folder: changes there are not told", "path", full, "why",
			strerror(errno));
		return NULL;
	}
	for (size_t i = 0; i < w->folder_count; i++)
		if (w->folders[i].number == number)
			return w->folders[i].path;
	if (w->folder_count == WATCH_MAX_DIRS) {
		inotify_rm_watch(w->watch.fd, number);
		log_warn("too many folders: changes in this one are not told", "path", full);
		return NULL;
	}
	copy = strdup(path);
	more = realloc(w->folders, (w->folder_count + 1) * sizeof(*more));
	if (more)
		w->folders = more;
	if (!copy || !more) {
		free(copy);
		return NULL;
	}
	more[w->folder_count++] = (struct folder){number, copy};
	return copy;
}

/* Watches a folder and looks at all that is in it. The watch comes first, so that nothing falls
 * between. */
static void scan(struct watch *w, const char *path, bool tell, unsigned depth)
{
	int fd;
	DIR *d;
	struct dirent *e;
	struct stat st;
	char inner[PATH_MAX];

	if (depth > MAX_DEPTH || !add_folder(w, path))
		return;
	fd = openat(w->dir, path[0] ? path : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	d = fd >= 0 ? fdopendir(fd) : NULL;
	if (!d) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((e = readdir(d))) {
		if (e->d_name[0] == '.' || !join(inner, path, e->d_name))
			continue;
		if (fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
			scan(w, inner, tell, depth + 1);
		else
			look(w, inner, tell);
	}
	closedir(d);
}

static void rescan(struct watch *w)
{
	for (size_t i = 0; i < w->file_count; i++)
		look(w, w->files[i].path, true); /* what is gone is not met by the scan */
	scan(w, "", true, 0);
}

/* ---- events ---- */

static void forget_folder(struct watch *w, int number)
{
	for (size_t i = 0; i < w->folder_count; i++) {
		if (w->folders[i].number != number)
			continue;
		free(w->folders[i].path);
		w->folders[i] = w->folders[--w->folder_count];
		return;
	}
}

static void handle(struct watch *w, const struct inotify_event *e)
{
	const char *folder = NULL;
	char path[PATH_MAX];

	for (size_t i = 0; i < w->folder_count; i++)
		if (w->folders[i].number == e->wd)
			folder = w->folders[i].path;
	if (e->mask & IN_IGNORED) {
		forget_folder(w, e->wd);
	} else if (e->mask & IN_Q_OVERFLOW || !folder ||
		   (e->len && strcmp(e->name, "..data") == 0)) {
		rescan(w);
	} else if (e->len && e->name[0] != '.' && join(path, folder, e->name)) {
		if (e->mask & IN_ISDIR && e->mask & (IN_CREATE | IN_MOVED_TO))
			scan(w, path, true, 1);
		else if (e->mask & IN_ISDIR)
			rescan(w);
		else if (!(e->mask & IN_CREATE))
			look(w, path, true);
		else { /* a new file tells again when it is closed; a new symlink does not */
			struct stat st;

			if (fstatat(w->dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
				S_ISLNK(st.st_mode))
				look(w, path, true);
		}
	}
}

static void readable(void *arg, int fd, unsigned events)
{
	struct watch *w = arg;
	_Alignas(struct inotify_event) char data[16384];
	ssize_t n = read(fd, data, sizeof(data));

	(void)events;
	for (ssize_t at = 0; at < n;) {
		const struct inotify_event *e = (const struct inotify_event *)(data + at);

		handle(w, e);
		at += (ssize_t)(sizeof(*e) + e->len);
	}
}

int watch_start(struct loop *l, const char *path, int dir, watch_changed changed, void *arg,
	struct watch **ret_watch)
{
	struct watch *w = calloc(1, sizeof(*w));
	int fd, r;

	if (!w)
		return -ENOMEM;
	w->root = path;
	w->dir = dir;
	w->changed = changed;
	w->arg = arg;
	fd = w->watch.fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	r = fd < 0 ? -errno : loop_watch(l, &w->watch, fd, LOOP_READ, readable, w);
	if (r) {
		watch_stop(w);
		return r;
	}
	scan(w, "", false, 0);
	*ret_watch = w;
	return 0;
}

void watch_stop(struct watch *w)
{
	if (!w)
		return;
	loop_unwatch(&w->watch);
	if (w->watch.fd >= 0)
		close(w->watch.fd);
	for (size_t i = 0; i < w->file_count; i++)
		free(w->files[i].path);
	for (size_t i = 0; i < w->folder_count; i++)
		free(w->folders[i].path);
	free(w->files);
	free(w->folders);
	free(w);
}

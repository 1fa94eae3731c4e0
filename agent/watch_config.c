/*
 * The files of the agent's own configuration, watched. Surprising: after each burst of events the
 * watches are made again, since the folders themselves may have been replaced; and only then are
 * the files compared, so that nothing is missed in between.
 */
#include "watch_config.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/log.h"
#include "files/file_watch.h"
#include "files/trusted.h"

#define MAX_FILES 1000 /* of conf.d; more are an error of the configuration */

#define MAX_UNASKED 3 /* reloads, without an event between them */
#define OWN_FOLDERS 3 /* of the configuration, conf.d, the link's target */

struct folder {
	struct file_watch_entry entry;
	char *path;
	int error; /* 0 = it is watched; else -errno, which was said */
};

/* Each path once. */
struct folders {
	struct folder *items;
	size_t count;
};

struct watch_config {
	struct loop *loop;
	const char *path;
	const struct watched_files *seen;
	void (*changed)(void *arg);
	void *arg;
	struct file_watch *watch; /* NULL = off */
	struct folders folders;
	struct loop_timer due;
	uint64_t first_ms; /* of the events that are not looked at yet; 0 = there is none */
	unsigned unasked;  /* reloads since the last event */
};

/* ---- comparing ---- */

static uint64_t hash_watched_file(uint64_t hash, const char *path)
{
	char why[FILE_WHY];
	int fd = trusted_open(&sys_real, path, why), error = fd < 0 ? -fd : 0;
	struct stat st;

	hash = hash_bytes(hash, path, strlen(path) + 1);
	if (fd >= 0 && fstat(fd, &st))
		error = errno;
	if (fd >= 0)
		close(fd);
	if (error)
		return hash_bytes(hash, &error, sizeof(error));
	hash = hash_bytes(hash, &st.st_dev, sizeof(st.st_dev));
	hash = hash_bytes(hash, &st.st_ino, sizeof(st.st_ino));
	hash = hash_bytes(hash, &st.st_size, sizeof(st.st_size));
	hash = hash_bytes(hash, &st.st_mtim, sizeof(st.st_mtim));
	return hash_bytes(hash, &st.st_ctim, sizeof(st.st_ctim));
}

/* The folder of a file, with what follows in it. */
static void place_beside(char ret_path[PATH_MAX], const char *file, const char *name)
{
	const char *slash = strrchr(file, '/');
	int len = slash ? (int)(slash + 1 - file) : 0;

	snprintf(ret_path, PATH_MAX, "%.*s%s", len, file, name);
}

static uint64_t look_at_own(const char *path)
{
	static const char *const endings[] = {".yaml", NULL};
	char parts[PATH_MAX], file[PATH_MAX + NAME_MAX], why[FILE_WHY], *names[MAX_FILES];
	uint64_t hash = hash_watched_file(HASH_START, path);
	int n;

	place_beside(parts, path, "conf.d");
	n = trusted_list(&sys_real, parts, endings, names, MAX_FILES, why);
	for (int i = 0; i < n; i++) {
		snprintf(file, sizeof(file), "%s/%s", parts, names[i]);
		hash = hash_watched_file(hash, file);
		free(names[i]);
	}
	return n < 0 ? hash_bytes(hash, &n, sizeof(n)) : hash;
}

static uint64_t look_at_named(const struct watched_files *f)
{
	uint64_t hash = HASH_START;

	for (size_t i = 0; i < f->count; i++)
		hash = hash_watched_file(hash, f->named[i]);
	return hash;
}

void watched_files_fini(struct watched_files *f)
{
	for (size_t i = 0; i < f->count; i++)
		free(f->named[i]);
	free(f->named);
	*f = (struct watched_files){0};
}

void watched_files_begin(struct watched_files *f, const char *path)
{
	watched_files_fini(f);
	f->own = look_at_own(path);
	f->hash = HASH_START;
}

void watched_files_add(void *files, const char *path)
{
	struct watched_files *f = files;
	char **named, *copy;

	for (size_t i = 0; i < f->count; i++)
		if (strcmp(f->named[i], path) == 0)
			return;
	if (f->count == WATCH_CONFIG_MAX_NAMED) {
		log_warn("too many files are named to watch all of them: a change needs a SIGHUP",
			"path", path);
		return;
	}
	named = realloc(f->named, (f->count + 1) * sizeof(*named));
	if (named)
		f->named = named;
	copy = named ? strdup(path) : NULL;
	if (!copy) /* what comes of it is not noticed: a SIGHUP is */
		return;
	f->named[f->count++] = copy;
	f->hash = hash_watched_file(f->hash, path);
}

/* ---- watching ---- */

static void arm_look(struct watch_config *w)
{
	uint64_t now_ms = loop_now_ms(w->loop), due_ms = now_ms + WATCH_CONFIG_QUIET_MS;

	if (!w->first_ms)
		w->first_ms = now_ms;
	if (due_ms > w->first_ms + WATCH_CONFIG_LONGEST_MS)
		due_ms = w->first_ms + WATCH_CONFIG_LONGEST_MS;
	loop_timer_set(w->loop, &w->due, due_ms);
}

static void noticed(void *arg, const char *cause)
{
	struct watch_config *w = arg;

	(void)cause;
	w->unasked = 0;
	arm_look(w);
}

static void unwatch_folders(struct watch_config *w)
{
	for (size_t i = 0; i < w->folders.count; i++)
		if (!w->folders.items[i].error)
			file_watch_remove(w->watch, &w->folders.items[i].entry);
}

static void free_folders(struct folders *f)
{
	for (size_t i = 0; i < f->count; i++)
		free(f->items[i].path);
	free(f->items);
	*f = (struct folders){0};
}

static const struct folder *find_watched_folder(const struct folders *f, const char *path)
{
	for (size_t i = 0; i < f->count; i++)
		if (strcmp(f->items[i].path, path) == 0)
			return &f->items[i];
	return NULL;
}

/* The log has a line when a folder's state is not what it was before. */
static void log_folder_state(const struct folder *f, const struct folders *before)
{
	const struct folder *was = find_watched_folder(before, f->path);
	int error = was ? was->error : 0;

	if (f->error == error)
		return;
	if (f->error)
		log_warn("the configuration cannot be watched here: a change needs a SIGHUP",
			"path", f->path, "why", strerror(-f->error));
	else
		log_info("the configuration is watched here again", "path", f->path);
}

/* The folder of the file; room for it is there. */
static void watch_folder(
	struct watch_config *w, const char *file, const char *name, const struct folders *before)
{
	char path[PATH_MAX];
	struct folder *f = &w->folders.items[w->folders.count];

	place_beside(path, file, name);
	if (find_watched_folder(&w->folders, path))
		return;
	*f = (struct folder){.entry = {.noticed = noticed, .arg = w}, .path = strdup(path)};
	if (!f->path) {
		log_warn("the configuration cannot be watched here: a change needs a SIGHUP",
			"path", path, "why", strerror(ENOMEM));
		return;
	}
	f->error = file_watch_add(w->watch, &f->entry, path, NULL);
	if (f->error == -ENOENT && name[0] != '.') { /* need not be there */
		free(f->path);
		return;
	}
	w->folders.count++;
	log_folder_state(f, before);
}

static void watch_file(struct watch_config *w, const char *file, const struct folders *before)
{
	char *target = realpath(file, NULL);

	watch_folder(w, file, ".", before);
	if (target)
		watch_folder(w, target, ".", before);
	free(target);
}

static void watch_folders(struct watch_config *w)
{
	struct folders before = w->folders;

	unwatch_folders(w);
	w->folders = (struct folders){
		calloc(OWN_FOLDERS + 2 * w->seen->count, sizeof(*w->folders.items)), 0};
	if (w->folders.items) {
		watch_file(w, w->path, &before);
		watch_folder(w, w->path, "conf.d", &before);
		for (size_t i = 0; i < w->seen->count; i++)
			watch_file(w, w->seen->named[i], &before);
	} else {
		log_warn("the configuration cannot be watched: a change needs a SIGHUP", "why",
			strerror(ENOMEM));
	}
	free_folders(&before);
}

static void look_at_files(void *arg)
{
	struct watch_config *w = arg;

	bool same = look_at_own(w->path) == w->seen->own;

	w->first_ms = 0;
	watch_folders(w);
	if (same && look_at_named(w->seen) == w->seen->hash)
		return;
	w->unasked++;
	log_info("the configuration changed: reading it again", "file",
		same && w->seen->count == 1 ? w->seen->named[0] : w->path);
	w->changed(w->arg);
}

/* ---- outside ---- */

struct watch_config *watch_config_new(struct loop *l, const char *path,
	const struct watched_files *seen, void (*changed)(void *arg), void *arg)
{
	struct watch_config *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	*w = (struct watch_config){
		.loop = l, .path = path, .seen = seen, .changed = changed, .arg = arg};
	loop_timer_init(&w->due, look_at_files, w);
	return w;
}

static void stop_watching(struct watch_config *w)
{
	loop_timer_cancel(w->loop, &w->due);
	w->first_ms = 0;
	unwatch_folders(w);
	free_folders(&w->folders);
	file_watch_free(w->watch);
	w->watch = NULL;
}

void watch_config_free(struct watch_config *w)
{
	if (!w)
		return;
	stop_watching(w);
	free(w);
}

void watch_config_set(struct watch_config *w, bool on)
{
	if (!on) {
		stop_watching(w);
		return;
	}
	if (w->watch) { /* it may have changed while it was read; some files are never the same */
		if (w->unasked <= MAX_UNASKED)
			arm_look(w);
		return;
	}
	w->watch = file_watch_new(w->loop);
	if (!w->watch) {
		log_warn("the configuration cannot be watched: a change needs a SIGHUP", "why",
			strerror(errno));
		return;
	}
	file_watch_creations(w->watch);
	watch_folders(w);
	noticed(w, NULL);
}

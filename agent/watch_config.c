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

enum { MAIN, PARTS, TARGET, FOLDERS };

struct watch_config {
	struct loop *loop;
	const char *path;
	const uint64_t *seen;
	void (*changed)(void *arg);
	void *arg;
	struct file_watch *watch; /* NULL = off */
	struct file_watch_entry folders[FOLDERS];
	struct loop_timer due;
	uint64_t first_ms; /* of the events that are not looked at yet; 0 = there is none */
};

/* ---- comparing ---- */

static uint64_t add_file(uint64_t hash, const char *path)
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

uint64_t watch_config_fingerprint(const char *path)
{
	static const char *const endings[] = {".yaml", NULL};
	char parts[PATH_MAX], file[PATH_MAX + NAME_MAX], why[FILE_WHY], *names[MAX_FILES];
	uint64_t hash = add_file(HASH_START, path);
	int n;

	place_beside(parts, path, "conf.d");
	n = trusted_list(&sys_real, parts, endings, names, MAX_FILES, why);
	for (int i = 0; i < n; i++) {
		snprintf(file, sizeof(file), "%s/%s", parts, names[i]);
		hash = add_file(hash, file);
		free(names[i]);
	}
	return n < 0 ? hash_bytes(hash, &n, sizeof(n)) : hash;
}

/* ---- watching ---- */

static void noticed(void *arg, const char *cause)
{
	struct watch_config *w = arg;
	uint64_t now_ms = loop_now_ms(w->loop), due_ms = now_ms + WATCH_CONFIG_QUIET_MS;

	(void)cause;
	if (!w->first_ms)
		w->first_ms = now_ms;
	if (due_ms > w->first_ms + WATCH_CONFIG_LONGEST_MS)
		due_ms = w->first_ms + WATCH_CONFIG_LONGEST_MS;
	loop_timer_set(w->loop, &w->due, due_ms);
}

static void watch_folder(struct watch_config *w, int i, const char *path)
{
	int r;

	file_watch_remove(w->watch, &w->folders[i]);
	w->folders[i] = (struct file_watch_entry){.noticed = noticed, .arg = w};
	r = file_watch_add(w->watch, &w->folders[i], path, NULL);
	if (r && (i == MAIN || r != -ENOENT))
		log_warn("the configuration cannot be watched here: a change needs a SIGHUP",
			"path", path, "why", strerror(-r));
}

static void watch_folders(struct watch_config *w)
{
	char folder[PATH_MAX], *target = realpath(w->path, NULL);

	place_beside(folder, w->path, ".");
	watch_folder(w, MAIN, folder);
	place_beside(folder, w->path, "conf.d");
	watch_folder(w, PARTS, folder);
	if (target) {
		place_beside(folder, target, ".");
		watch_folder(w, TARGET, folder);
	}
	free(target);
}

static void look_at_files(void *arg)
{
	struct watch_config *w = arg;

	w->first_ms = 0;
	watch_folders(w);
	if (watch_config_fingerprint(w->path) == *w->seen)
		return;
	log_info("the configuration changed: reading it again", "file", w->path);
	w->changed(w->arg);
}

/* ---- outside ---- */

struct watch_config *watch_config_new(struct loop *l, const char *path, const uint64_t *seen,
	void (*changed)(void *arg), void *arg)
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
	for (int i = 0; w->watch && i < FOLDERS; i++)
		file_watch_remove(w->watch, &w->folders[i]);
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
	if (on == !!w->watch)
		return;
	if (!on) {
		stop_watching(w);
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

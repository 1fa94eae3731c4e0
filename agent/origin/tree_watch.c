/*
 * Watching a directory tree.
 *
 * Surprising: an event only names a file to check. The ETag decides: a touch is no change, and when
 * events were lost, or a symlink to folders was flipped (Kubernetes' ..data), the whole tree is
 * checked again.
 *
 * Files are checked in rounds. They may take a quarter of the processor's time: a round that makes
 * it more than a moment more is followed by a pause, so that a storm of changes leaves most of the
 * loop to others, and a single one is published at once. A name is queued once, however often it
 * changed, so each gets its turn; events that the kernel drops meanwhile lead to a check of the
 * whole tree.
 *
 * Where the directory's path leads to another one (a release that is replaced, a symlink that is
 * flipped), that takes the place of the first, under the same descriptor. No event says so: the
 * path is looked at now and then.
 *
 * A file that was written in, and not closed yet, is in the queue `writing`, out of which it comes
 * by the close, by a rename over it, or when nobody has written in it for a while. What is read out
 * of a file counts only if no event then says that the next writer has begun.
 */
#include "origin/tree_watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/index.h"
#include "base/log.h"
#include "files/file_watch.h"
#include "origin/origin.h"

#define EVENTS                                                                                     \
	(IN_CLOSE_WRITE | IN_MODIFY | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CREATE |        \
		IN_ATTRIB | IN_ONLYDIR | IN_DONT_FOLLOW)
#define MAX_DEPTH 16
#define MAX_READS 64  /* of events, for one file */
#define LOOK_MS 1000u /* from one look at the directory's path to the next */
#define ROUND_US 5000u
#define OWED_US 4000u /* without a pause */

TAILQ_HEAD(queue, name);

/* A file that is there, or a name that waits for its check. */
struct name {
	struct index_link link;
	TAILQ_ENTRY(name) line;
	struct queue *in;              /* which `line` is in */
	uint64_t written_ms, began_ms; /* in `writing`: the last write, the first since a check */
	uint64_t emptied_ms;           /* since when nothing is in it; 0 = something was */
	char *body;                    /* of that etag; NULL = it was not kept */
	size_t len;
	time_t modified;
	char etag[ORIGIN_ETAG]; /* "" = unknown, or it cannot be read */
	char path[];
};

struct folder {
	int number; /* inotify's */
	char *path; /* relative; "" = the directory itself */
};

struct tree_watch {
	const char *root;
	int dir;
	tree_watch_changed changed;
	void *arg;
	struct loop *loop;
	struct loop_watch watch;              /* not during a pause */
	struct loop_timer pause, quiet_timer; /* quiet_timer: of `writing` */
	struct loop_timer look;               /* at the directory's path */
	struct log_limit warnings;            /* of single files */
	size_t room;                          /* bytes that may still be kept */
	uint64_t owed_us, owed_at_us; /* four times what the rounds worked, less what passed */
	bool reports, again;          /* again: check the whole tree */
	bool pauses;
	bool is_gone; /* root leads to no directory: the last one counts */
	struct index names;
	struct queue quiet, waiting, later, writing; /* later: in the next round */
	struct folder *folders;
	size_t folder_count;
};

const char *tree_watch_explain(int error)
{
	return error == ENOENT ? strerror(error) : file_watch_explain(error);
}

/* ---- names ---- */

static struct name *find_watched_name(const struct tree_watch *w, const char *path, uint64_t hash)
{
	for (struct index_link *l = index_first(&w->names, hash); l; l = index_next(l))
		if (strcmp(((struct name *)l)->path, path) == 0)
			return (struct name *)l;
	return NULL;
}

static bool may_warn(
	struct tree_watch *w, const char *kind, const char *path, unsigned *ret_repeated)
{
	return log_limit_pass_kind(&w->warnings, loop_now_ms(w->loop), kind, path, ret_repeated);
}

static struct name *add_name(struct tree_watch *w, const char *path, uint64_t hash)
{
	size_t size = strlen(path) + 1;
	struct name *n;
	unsigned repeated;

	if (w->names.count >= TREE_WATCH_MAX_FILES) {
		if (may_warn(w, "too many", path, &repeated))
			log_warn("too many files: changes of this one will not be published",
				"path", path, "repeated", repeated ? LOG_U64(repeated) : NULL);
		return NULL;
	}
	n = calloc(1, sizeof(*n) + size);
	if (!n || index_add(&w->names, &n->link, hash)) {
		free(n);
		return NULL;
	}
	memcpy(n->path, path, size);
	return n;
}

/* Puts it at the end of a queue; NULL: in none. */
static void move_name(struct name *n, struct queue *to)
{
	if (n->in)
		TAILQ_REMOVE(n->in, n, line);
	n->in = to;
	if (to)
		TAILQ_INSERT_TAIL(to, n, line);
}

static void move_names(struct queue *from, struct queue *to)
{
	struct name *n;

	while ((n = TAILQ_FIRST(from)))
		move_name(n, to);
}

/* The name of a path, a new one where it has none. NULL: it is none, or there is no room. */
static struct name *watched_name(struct tree_watch *w, const char *path)
{
	uint64_t hash = hash_bytes(HASH_START, path, strlen(path));
	struct name *n = find_watched_name(w, path, hash);

	return n || !origin_serves(path) ? n : add_name(w, path, hash);
}

static void queue_name(struct tree_watch *w, const char *path)
{
	struct name *n = watched_name(w, path);

	if (n && n->in != &w->waiting && n->in != &w->later)
		move_name(n, &w->waiting);
}

/* ---- files that are written in place ---- */

static void drop_body(struct tree_watch *w, struct name *n)
{
	w->room += n->body ? n->len : 0;
	free(n->body);
	n->body = NULL;
}

/* A copy, for as long as the file is being written next time. */
static void keep_body(struct tree_watch *w, struct name *n, const struct origin_file *content)
{
	size_t len = content->body.len;

	drop_body(w, n);
	if (len > TREE_WATCH_KEPT_FILE || len > w->room || !(n->body = malloc(len + 1)))
		return;
	memcpy(n->body, content->body.data, len);
	n->len = len;
	n->modified = content->modified;
	w->room -= len;
}

static void set_quiet_timer(struct tree_watch *w)
{
	const struct name *first = TAILQ_FIRST(&w->writing);

	if (first)
		loop_timer_set(w->loop, &w->quiet_timer, first->written_ms + TREE_WATCH_QUIET_MS);
}

/* Somebody has written in it, and not closed it yet. */
static void note_write(struct tree_watch *w, const char *path)
{
	struct name *n = watched_name(w, path);
	bool is_first = TAILQ_EMPTY(&w->writing);

	if (!n)
		return;
	n->written_ms = loop_now_ms(w->loop);
	if (!n->began_ms)
		n->began_ms = n->written_ms;
	if (n->written_ms - n->began_ms >= TREE_WATCH_WRITING_MS)
		queue_name(w, path);
	else
		move_name(n, &w->writing);
	if (is_first)
		set_quiet_timer(w);
}

/* ---- folders ---- */

static bool join_watched_path(char path[PATH_MAX], const char *folder, const char *name)
{
	return snprintf(path, PATH_MAX, "%s%s%s", folder, folder[0] ? "/" : "", name) < PATH_MAX;
}

/* A renamed folder keeps its number. */
static struct folder *folder_of(struct tree_watch *w, int number)
{
	for (size_t i = 0; i < w->folder_count; i++)
		if (w->folders[i].number == number)
			return &w->folders[i];
	return NULL;
}

static bool add_folder(struct tree_watch *w, const char *path)
{
	char full[PATH_MAX];
	struct folder *f, *more;
	char *copy;
	int number;

	if (snprintf(full, sizeof(full), "%s/%s", w->root, path) >= (int)sizeof(full))
		return false;
	number = inotify_add_watch(w->watch.fd, full, path[0] ? EVENTS : EVENTS & ~IN_DONT_FOLLOW);
	if (number < 0) {
		log_warn("cannot watch a folder: changes there will not be published", "path", full,
			"why", tree_watch_explain(errno));
		return false;
	}
	f = folder_of(w, number);
	if (f && strcmp(f->path, path) == 0)
		return true;
	if (!f && w->folder_count == TREE_WATCH_MAX_DIRS) {
		inotify_rm_watch(w->watch.fd, number);
		log_warn("too many folders: changes in this one will not be published", "path",
			full);
		return false;
	}
	copy = strdup(path);
	if (f && copy) {
		free(f->path);
		f->path = copy;
		return true;
	}
	more = copy ? realloc(w->folders, (w->folder_count + 1) * sizeof(*more)) : NULL;
	if (!more) {
		free(copy);
		return false;
	}
	w->folders = more;
	more[w->folder_count++] = (struct folder){number, copy};
	return true;
}

static void queue_scanned(struct tree_watch *w, const char *path)
{
	struct name *n = watched_name(w, path);

	if (n && n->in != &w->writing)
		queue_name(w, path);
}

/* Watches a folder, then queues all names in it: in this order, so that no change falls between. */
static void scan_folder(struct tree_watch *w, const char *path)
{
	unsigned depth = 0;
	int fd;
	DIR *d;
	struct dirent *e;
	char inner[PATH_MAX];

	for (const char *at = path; (at = strchr(at, '/')); at++)
		depth++;
	if (depth >= MAX_DEPTH || !add_folder(w, path))
		return;
	fd = openat(w->dir, path[0] ? path : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	d = fd >= 0 ? fdopendir(fd) : NULL;
	if (!d) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((e = readdir(d)))
		if (e->d_name[0] != '.' && join_watched_path(inner, path, e->d_name))
			queue_scanned(w, inner);
	closedir(d);
}

/* Queues the known names too: a scan does not meet those that are gone. */
static void scan_all(struct tree_watch *w)
{
	w->again = false;
	move_names(&w->quiet, &w->waiting);
	scan_folder(w, "");
}

/* ---- events ---- */

static void forget_folder(struct tree_watch *w, int number)
{
	struct folder *f = folder_of(w, number);

	if (!f)
		return;
	free(f->path);
	*f = w->folders[--w->folder_count];
}

static void handle_event(struct tree_watch *w, const struct inotify_event *e)
{
	const struct folder *folder = folder_of(w, e->wd);
	char path[PATH_MAX];
	struct stat st;

	if (e->mask & IN_IGNORED)
		forget_folder(w, e->wd);
	else if (e->mask & IN_Q_OVERFLOW || !folder || (e->len && strcmp(e->name, "..data") == 0))
		w->again = true;
	else if (!e->len || e->name[0] == '.' || !join_watched_path(path, folder->path, e->name))
		return;
	else if (e->mask & IN_ISDIR && e->mask & (IN_MOVED_FROM | IN_DELETE))
		w->again = true;
	else if (e->mask & IN_ATTRIB) /* it may be readable now; who writes in it goes on */
		queue_scanned(w, path);
	/* a new file has another event when it is closed; a new link, soft or hard, has not */
	else if (e->mask & IN_MODIFY ||
		 (e->mask & IN_CREATE && !(e->mask & IN_ISDIR) &&
			 fstatat(w->dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			 S_ISREG(st.st_mode) && st.st_nlink == 1))
		note_write(w, path);
	else
		queue_name(w, path);
}

/* Queues the names of the next events. False: there was none. */
static bool read_changes(struct tree_watch *w)
{
	_Alignas(struct inotify_event) char data[16384];
	ssize_t n = read(w->watch.fd, data, sizeof(data));

	for (ssize_t at = 0; at < n;) {
		const struct inotify_event *e = (const struct inotify_event *)(data + at);

		handle_event(w, e);
		at += (ssize_t)(sizeof(*e) + e->len);
	}
	return n > 0;
}

/* ---- checks ---- */

/* A file that becomes empty is probably truncated and about to be written. If it stays empty, that
 * is its new content. */
static bool was_just_emptied(
	struct tree_watch *w, struct name *n, const struct origin_file *content)
{
	uint64_t now_ms = loop_now_ms(w->loop);

	if (content->body.len > 0 || !content->etag[0] || !n->etag[0] ||
		strcmp(n->etag, content->etag) == 0)
		n->emptied_ms = 0;
	else if (!n->emptied_ms)
		n->emptied_ms = now_ms;
	if (!n->emptied_ms || now_ms - n->emptied_ms >= TREE_WATCH_QUIET_MS)
		return false;
	note_write(w, n->path);
	return true;
}

/* True: somebody began to write in it again, before or while that was read. */
static bool is_overtaken(struct tree_watch *w, struct name *n, const struct origin_file *content)
{
	uint64_t began_ms = n->began_ms;

	n->began_ms = 0;
	for (int i = 0; strcmp(n->etag, content->etag) != 0 && i < MAX_READS; i++)
		if (!read_changes(w))
			break;
	if (n->in != &w->writing && !was_just_emptied(w, n, content))
		return false;
	if (began_ms)
		n->began_ms = began_ms;
	return true;
}

/* What is no file is not missed. */
static void note_unreadable(struct tree_watch *w, const char *path, int error)
{
	static const struct {
		int error;
		const char *why; /* NULL = none is needed */
	} table[] = {
		{ENOENT, NULL},
		{ENOTDIR, NULL},
		{EISDIR, NULL},
		{EINVAL, NULL}, /* a device, a FIFO */
		{ENXIO, NULL},  /* a socket */
		{EXDEV, "it leads out of the directory"},
		{EFBIG, "it is larger than 64 MiB"},
	};
	const char *why = strerror(error);
	unsigned repeated;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].error == error)
			why = table[i].why;
	if (why && may_warn(w, "unreadable", path, &repeated))
		log_warn("cannot read a file: changes of it will not be published", "path", path,
			"why", why, "repeated", repeated ? LOG_U64(repeated) : NULL);
}

static void take_content(struct tree_watch *w, struct name *n, const struct origin_file *content)
{
	bool is_there = content->etag[0] != '\0';

	if (is_there)
		keep_body(w, n, content);
	else
		drop_body(w, n);
	if (strcmp(n->etag, content->etag) != 0) {
		memcpy(n->etag, content->etag, sizeof(n->etag));
		if (w->reports)
			w->changed(w->arg, n->path, is_there ? n->etag : NULL);
	}
	if (is_there || n->in != &w->quiet)
		return;
	move_name(n, NULL);
	index_remove(&w->names, &n->link);
	free(n);
}

/* Reports the first name of the queue if its content changed. */
static void check_next_name(struct tree_watch *w)
{
	struct name *n = TAILQ_FIRST(&w->waiting);
	struct origin_file content = {.etag = ""};
	struct stat st;
	int r;

	if (fstatat(w->dir, n->path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
		scan_folder(w, n->path);
	r = origin_read(w->dir, n->path, &content);
	move_name(n, r == -EAGAIN ? &w->later : &w->quiet); /* -EAGAIN: it is being written */
	if (r == -EAGAIN)
		return;
	if (r) {
		note_unreadable(w, n->path, -r);
		content = (struct origin_file){.etag = ""};
	}
	if (!is_overtaken(w, n, &content))
		take_content(w, n, &content);
	if (r == 0)
		buffer_fini(&content.body);
}

/* Queues the names of the next events, or all names. False: there was no event. */
static bool fill_queue(struct tree_watch *w)
{
	if (!w->again)
		return read_changes(w);
	scan_all(w);
	return true;
}

static bool work_is_left(const struct tree_watch *w)
{
	return w->again || !TAILQ_EMPTY(&w->waiting) || !TAILQ_EMPTY(&w->later);
}

static void add_work(struct tree_watch *w, uint64_t work_us, uint64_t now_us)
{
	uint64_t passed_us = now_us - w->owed_at_us;

	w->owed_us = (w->owed_us > passed_us ? w->owed_us - passed_us : 0) + 4 * work_us;
	w->owed_at_us = now_us;
}

static void run_round(struct tree_watch *w)
{
	const struct sys *sys = loop_sys(w->loop);
	uint64_t end_us = sys->monotonic_us() + ROUND_US, work_us = sys_thread_us();

	move_names(&w->later, &w->waiting);
	while (sys->monotonic_us() < end_us && (!TAILQ_EMPTY(&w->waiting) || fill_queue(w)))
		if (!TAILQ_EMPTY(&w->waiting))
			check_next_name(w);
	add_work(w, sys_thread_us() - work_us, sys->monotonic_us());
}

static void start_pause(struct tree_watch *w)
{
	loop_unwatch(&w->watch);
	w->pauses = true;
	loop_timer_set(w->loop, &w->pause, loop_now_ms(w->loop) + 1 + w->owed_us / 1000);
}

static void events_readable(void *arg, int fd, unsigned events)
{
	struct tree_watch *w = arg;

	(void)fd, (void)events;
	run_round(w);
	if (work_is_left(w) || w->owed_us > OWED_US)
		start_pause(w);
}

static void pause_ended(void *arg)
{
	struct tree_watch *w = arg;

	if (!work_is_left(w) &&
		loop_watch(w->loop, &w->watch, w->watch.fd, LOOP_READ, events_readable, w) == 0) {
		w->pauses = false;
		return;
	}
	run_round(w);
	start_pause(w);
}

/* Takes in what has happened until now; during a pause it is queued only. */
static void catch_up(struct tree_watch *w)
{
	read_changes(w);
	if (!w->pauses && work_is_left(w))
		events_readable(w, w->watch.fd, LOOP_READ);
}

static void quiet_timer_due(void *arg)
{
	struct tree_watch *w = arg;
	struct name *n;

	catch_up(w); /* the last writes */
	while ((n = TAILQ_FIRST(&w->writing)) &&
		n->written_ms + TREE_WATCH_QUIET_MS <= loop_now_ms(w->loop))
		move_name(n, &w->waiting);
	set_quiet_timer(w);
	catch_up(w);
}

static bool is_same_directory(int one, int other)
{
	struct stat x, y;

	return fstat(one, &x) == 0 && fstat(other, &y) == 0 && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

static void forget_folders(struct tree_watch *w)
{
	for (size_t i = 0; i < w->folder_count; i++) {
		inotify_rm_watch(w->watch.fd, w->folders[i].number);
		free(w->folders[i].path);
	}
	w->folder_count = 0;
}

/* One that is gone is waited for. */
static void look_timer_due(void *arg)
{
	struct tree_watch *w = arg;
	int fd = origin_open(w->root);

	loop_timer_set(w->loop, &w->look, loop_now_ms(w->loop) + LOOK_MS);
	if (fd < 0 && !w->is_gone)
		log_warn("the directory is gone: what is left of it counts until it is back",
			"path", w->root, "why", strerror(-fd));
	else if (fd >= 0 && w->is_gone)
		log_info("the directory is back", "path", w->root);
	w->is_gone = fd < 0;
	if (fd < 0)
		return;
	if (!is_same_directory(w->dir, fd) && dup3(fd, w->dir, O_CLOEXEC) == w->dir) {
		log_info("the directory is another one now: it takes the place of the first",
			"path", w->root);
		forget_folders(w);
		w->again = true;
		catch_up(w);
	}
	close(fd);
}

void tree_watch_check(struct tree_watch *w, const char *path)
{
	queue_name(w, path);
	catch_up(w);
}

bool tree_watch_is_written(
	struct tree_watch *w, const char *path, struct tree_watch_before *ret_before)
{
	struct name *n;

	catch_up(w);
	n = find_watched_name(w, path, hash_bytes(HASH_START, path, strlen(path)));
	*ret_before = n ? (struct tree_watch_before){n->etag, n->body, n->len, n->modified}
			: (struct tree_watch_before){.etag = ""};
	return n && n->in == &w->writing;
}

int tree_watch_start(struct loop *l, const char *path, int dir, size_t keep,
	tree_watch_changed changed, void *arg, struct tree_watch **ret_watch)
{
	struct tree_watch *w = calloc(1, sizeof(*w));
	int fd, r;

	if (!w)
		return -ENOMEM;
	*w = (struct tree_watch){
		.root = path, .dir = dir, .changed = changed, .arg = arg, .loop = l};
	TAILQ_INIT(&w->quiet);
	TAILQ_INIT(&w->waiting);
	TAILQ_INIT(&w->later);
	TAILQ_INIT(&w->writing);
	w->room = keep;
	loop_timer_init(&w->pause, pause_ended, w);
	loop_timer_init(&w->quiet_timer, quiet_timer_due, w);
	loop_timer_init(&w->look, look_timer_due, w);
	fd = w->watch.fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	r = fd < 0 ? -errno : loop_watch(l, &w->watch, fd, LOOP_READ, events_readable, w);
	if (r) {
		tree_watch_stop(w);
		return r;
	}
	scan_folder(w, "");
	while (!TAILQ_EMPTY(&w->waiting))
		check_next_name(w);
	w->reports = true;
	loop_timer_set(l, &w->look, loop_now_ms(l) + LOOK_MS);
	*ret_watch = w;
	return 0;
}

void tree_watch_stop(struct tree_watch *w)
{
	struct index_link *n;
	size_t at = 0;

	if (!w)
		return;
	loop_timer_cancel(w->loop, &w->pause);
	loop_timer_cancel(w->loop, &w->quiet_timer);
	loop_timer_cancel(w->loop, &w->look);
	loop_unwatch(&w->watch);
	if (w->watch.fd >= 0)
		close(w->watch.fd);
	while ((n = index_take(&w->names, &at))) {
		drop_body(w, (struct name *)n);
		free((struct name *)n);
	}
	index_fini(&w->names);
	for (size_t i = 0; i < w->folder_count; i++)
		free(w->folders[i].path);
	free(w->folders);
	free(w);
}

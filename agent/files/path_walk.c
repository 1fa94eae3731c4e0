/*
 * Surprising: a plain path costs one openat2() and a stat for each part, upwards from the opened
 * one; it is walked part by part, downwards, only where it has symlinks, or the kernel lacks
 * openat2() (filters answer ENOSYS, EPERM).
 */
#include "files/path_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "files/user.h"

#define MAX_LINKS 40
#define MAX_DEPTH 64            /* of a path that is checked upwards */
#define MAX_PART (NAME_MAX + 2) /* with a NUL: one that is too long is for the kernel to refuse */
#define READ_FLAGS (O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

/* ---- who ---- */

static bool is_trusted(const struct path_walk *w, uid_t uid)
{
	return uid == 0 || uid == w->who.uid || uid == w->top;
}

/* True when this user may control the path; records the one other user who does. */
static bool accept_owner(struct path_walk *w, uid_t uid)
{
	if (is_trusted(w, uid))
		return true;
	if (w->holdable && w->holder == (uid_t)-1)
		w->holder = uid;
	return w->holdable && w->holder == uid;
}

static int set_fault(struct path_walk *w, enum path_walk_fault fault, const struct stat *st)
{
	w->fault = fault;
	w->fault_uid = st->st_uid;
	w->fault_mode = st->st_mode;
	return -EPERM;
}

/* One directory on the way. */
static int check_part(struct path_walk *w, const struct stat *st)
{
	if (!w->who.strict)
		return 0;
	if (!accept_owner(w, st->st_uid))
		return set_fault(w, PATH_WALK_OWNER, st);
	if (st->st_mode & PATH_WALK_OTHERS && !(st->st_mode & S_ISVTX))
		return set_fault(w, PATH_WALK_MODE, st);
	return 0;
}

/* ---- downwards ---- */

static void move_to(struct path_walk *w, int dir)
{
	if (w->dir >= 0)
		w->sys->close(w->dir);
	w->dir = dir;
}

/* To where a path begins. */
static int begin_walk(struct path_walk *w)
{
	int from = w->who.root >= 0 ? w->who.root : AT_FDCWD, dir;
	const char *root = w->who.root >= 0 ? "." : "/";
	struct stat top;

	if (w->sys->fstatat(from, root, &top, 0))
		return -errno;
	w->top = top.st_uid;
	dir = w->sys->openat(
		from, w->rest[0] == '/' ? root : ".", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	if (dir < 0)
		return -errno;
	w->at[0] = '\0';
	move_to(w, dir);
	if (w->sys->fstatat(dir, "", &w->st, AT_EMPTY_PATH))
		return -errno;
	return check_part(w, &w->st);
}

/* Takes the next part off `rest`. False at its end. */
static bool next_part(struct path_walk *w, char part[MAX_PART], bool *ret_last)
{
	const char *p = w->rest + strspn(w->rest, "/"), *end = p + strcspn(p, "/");
	size_t len = (size_t)(end - p);

	if (len == 0)
		return false;
	if (len >= MAX_PART)
		len = MAX_PART - 1;
	memcpy(part, p, len);
	part[len] = '\0';
	*ret_last = end[strspn(end, "/")] == '\0';
	memmove(w->rest, end, strlen(end) + 1);
	return true;
}

/* Appends the part to `at`. Returns the length before. */
static size_t append_path_part(struct path_walk *w, const char *part)
{
	size_t len = strlen(w->at);

	snprintf(w->at + len, sizeof(w->at) - len, "/%s", part);
	return len;
}

/* Puts the symlink's text in front of `rest`. */
static int follow_link(struct path_walk *w, int link, const struct stat *st)
{
	char text[PATH_MAX], rest[PATH_MAX];
	ssize_t n;

	if (!(w->who.strict ? accept_owner(w, st->st_uid) : is_trusted(w, st->st_uid))) {
		if (w->who.strict || (w->foreign && w->whose != st->st_uid))
			return set_fault(w, PATH_WALK_LINK, st);
		w->foreign = true;
		w->whose = st->st_uid;
	}
	if (++w->links > MAX_LINKS)
		return -ELOOP;
	n = w->sys->readlinkat(link, "", text, sizeof(text) - 1);
	if (n <= 0)
		return n < 0 ? -errno : -ENOENT;
	text[n] = '\0';
	if (snprintf(rest, sizeof(rest), "%s/%s", text, w->rest) >= (int)sizeof(rest))
		return -ENAMETOOLONG;
	memcpy(w->rest, rest, sizeof(rest));
	return text[0] == '/' ? begin_walk(w) : 0;
}

/* Records who else can replace the next part, of this owner, in the current directory. */
static void note_openers(struct path_walk *w, bool is_dir, uid_t next)
{
	bool theirs = !is_trusted(w, w->st.st_uid);
	bool sticky = is_dir && w->st.st_mode & S_ISVTX && is_trusted(w, next);

	if (!theirs && (!(w->st.st_mode & PATH_WALK_OTHERS) || sticky))
		return;
	w->opener = (w->st.st_mode & PATH_WALK_OTHERS && !sticky) ||
				    (w->open && w->opener != w->st.st_uid)
			    ? (uid_t)-1
			    : w->st.st_uid;
	w->open = true;
}

static int enter_part(struct path_walk *w, const char *part)
{
	struct stat above = w->st;
	int dir;

	if (strcmp(part, "..") == 0) {
		if (w->who.root >= 0 && w->sys->fstatat(w->who.root, "", &w->st, AT_EMPTY_PATH))
			return -errno;
		if (w->who.root >= 0 && above.st_ino == w->st.st_ino &&
			above.st_dev == w->st.st_dev)
			return 0;
	}
	dir = w->sys->openat(w->dir, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (dir < 0)
		return -errno;
	if (w->sys->fstatat(dir, "", &w->st, AT_EMPTY_PATH)) {
		int r = -errno;

		w->sys->close(dir);
		return r;
	}
	move_to(w, dir);
	return check_part(w, &w->st);
}

/* Walks one part. 0 for a directory or symlink, 1 for a file as the last part, or -errno. */
static int walk_part(struct path_walk *w, const char *part, bool last)
{
	struct stat st;
	size_t len;
	int r, fd;

	if (strcmp(part, ".") == 0)
		return 0;
	len = append_path_part(w, part);
	if (strcmp(part, "..") == 0)
		return enter_part(w, part);
	fd = w->sys->openat(w->dir, part, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	r = w->sys->fstatat(fd, "", &st, AT_EMPTY_PATH) ? -errno : 0;
	if (r == 0 && S_ISLNK(st.st_mode)) {
		r = follow_link(w, fd, &st);
		if (r == 0 && w->at[0])
			w->at[len] = '\0';
	} else if (r == 0 && S_ISDIR(st.st_mode)) {
		note_openers(w, true, st.st_uid);
		w->st = st;
		move_to(w, fd);
		return check_part(w, &st);
	} else if (r == 0) {
		note_openers(w, false, st.st_uid);
		r = last ? 1 : -ENOTDIR;
	}
	w->sys->close(fd);
	return r;
}

/* Walks the path. 0: it is a directory, w->dir; 1: it is the file `part` in w->dir; or -errno. */
static int walk_path(struct path_walk *w, const char *path, char part[MAX_PART])
{
	bool last;
	int r;

	if (snprintf(w->rest, sizeof(w->rest), "%s", path) >= (int)sizeof(w->rest))
		return -ENAMETOOLONG;
	r = begin_walk(w);
	while (r == 0 && next_part(w, part, &last))
		r = walk_part(w, part, last);
	return r;
}

/* Another user's symlink may lead to that user's own files only. */
static int check_link_target(struct path_walk *w, const struct stat *st)
{
	return w->foreign && st->st_uid != w->whose ? set_fault(w, PATH_WALK_TARGET, st) : 0;
}

static int walk_dir(struct path_walk *w, const char *path)
{
	char part[MAX_PART];
	int r = walk_path(w, path, part), fd = -1;

	r = r == 1 ? -ENOTDIR : r;
	if (r == 0)
		r = check_link_target(w, &w->st);
	if (r == 0) {
		fd = w->sys->openat(w->dir, ".", PATH_WALK_DIR_FLAGS, 0);
		r = fd < 0 ? -errno : fd;
	}
	move_to(w, -1);
	return r;
}

/* ---- upwards ---- */

/* Counts the parts of an absolute path without ".", ".." and empty ones; else -1. */
static int depth_of(const char *path)
{
	int n = 0;

	if (path[0] != '/')
		return -1;
	if (!path[1])
		return 0;
	for (const char *p = path; p; p = strchr(p + 1, '/'), n++)
		if (p[1] == '/' || p[1] == '\0' ||
			(p[1] == '.' && (p[2] == '/' || p[2] == '\0' ||
						(p[2] == '.' && (p[3] == '/' || !p[3])))))
			return -1;
	return n <= MAX_DEPTH ? n : -1;
}

/* Sets `at` to the first `parts` parts of the path. */
static void note_prefix(struct path_walk *w, const char *path, int parts)
{
	size_t len = 0;

	for (; parts; parts--)
		len += 1 + strcspn(path + len + 1, "/");
	snprintf(w->at, sizeof(w->at), "%.*s", (int)len, path);
}

/* Checks all directories from the root to the opened one. */
static int check_upwards(struct path_walk *w, const char *path, int depth, int fd)
{
	char ups[3 * MAX_DEPTH + 1];
	struct stat st;

	for (int i = 0; i < depth; i++)
		memcpy(ups + 3 * i, "../", 3);
	ups[3 * depth] = '\0';
	for (int i = 0; i <= depth; i++) {
		if (w->sys->fstatat(fd, ups + 3 * i, &st, AT_EMPTY_PATH))
			return -errno;
		if (i == 0)
			w->top = st.st_uid;
		if (check_part(w, &st)) {
			note_prefix(w, path, i);
			return -EPERM;
		}
	}
	return 0;
}

int path_walk_open_dir(struct path_walk *w, const char *path)
{
	int depth = w->who.root < 0 ? depth_of(path) : -1, fd, r;

	fd = depth < 0 ? -1 : w->sys->open_plain(AT_FDCWD, path, PATH_WALK_DIR_FLAGS);
	if (depth < 0 || (fd < 0 && (errno == ELOOP || errno == ENOSYS || errno == EPERM)))
		return walk_dir(w, path);
	if (fd < 0)
		return -errno;
	r = w->who.strict ? check_upwards(w, path, depth, fd) : 0;
	if (r == 0)
		return fd;
	w->sys->close(fd);
	return r;
}

/* ---- files ---- */

static int check_opened_file(struct path_walk *w, const struct stat *st)
{
	int r = check_link_target(w, st);

	if (r == 0 && S_ISREG(st->st_mode) && st->st_nlink > 1 && w->open &&
		w->opener != st->st_uid)
		r = set_fault(w, PATH_WALK_HARD_LINK, st);
	if (r == 0 && w->holdable && !accept_owner(w, st->st_uid))
		r = set_fault(w, PATH_WALK_OWNER, st);
	if (r == 0 && w->holdable && st->st_mode & PATH_WALK_OTHERS)
		r = set_fault(w, PATH_WALK_FILE_MODE, st);
	return r;
}

/* Opens the file by a walk. The descriptor, or -errno. */
static int walk_file(struct path_walk *w, const char *path)
{
	char part[MAX_PART];
	struct stat st;
	int r = walk_path(w, path, part), fd = -1;

	if (r >= 0) { /* it may be another one than the walk met: what is opened is checked */
		fd = w->sys->openat(w->dir, r ? part : ".", READ_FLAGS | O_NOFOLLOW, 0);
		r = fd < 0 || w->sys->fstatat(fd, "", &st, AT_EMPTY_PATH) ? -errno : 0;
	}
	if (r == 0)
		r = check_opened_file(w, &st);
	move_to(w, -1);
	if (r == 0)
		return fd;
	if (fd >= 0)
		w->sys->close(fd);
	return r;
}

int path_walk_open_file(struct path_walk *w, const char *path)
{
	struct stat st;
	int fd;

	if (w->holdable) /* who has it in hand is found on the way */
		return walk_file(w, path);
	fd = w->sys->open_plain(AT_FDCWD, path, READ_FLAGS);
	if (fd < 0 && errno != ELOOP && errno != ENOSYS && errno != EPERM)
		return -errno;
	if (fd >= 0 && w->sys->fstatat(fd, "", &st, AT_EMPTY_PATH) == 0 &&
		(!S_ISREG(st.st_mode) || st.st_nlink == 1))
		return fd;
	if (fd >= 0)
		w->sys->close(fd);
	return walk_file(w, path);
}

/* ---- a walk ---- */

void path_walk_init(struct path_walk *w, const struct sys *sys, const struct trusted_who *who)
{
	w->sys = sys;
	w->who = *who;
	w->top = 0;
	w->dir = -1;
	w->links = 0;
	w->foreign = w->open = false;
	w->whose = w->opener = w->holder = (uid_t)-1;
	w->holdable = false;
	w->fault = PATH_WALK_NONE;
	w->at[0] = '\0';
}

void path_walk_explain(const struct path_walk *w, bool itself, char why[FILE_WHY])
{
	char user[USER_TEXT];
	const char *at = w->at[0] ? w->at : "/";
	int mode = w->fault_mode & 07777;

	user_describe(w->sys, w->fault_uid, user);
	switch (w->fault) {
	case PATH_WALK_NONE:
		why[0] = '\0';
		break;
	case PATH_WALK_OWNER:
		snprintf(why, FILE_WHY,
			"%s%.150s belongs to %s, who could lead the agent, which has root's "
			"rights, elsewhere; give it to root, name another directory, or run the "
			"agent as that user",
			itself ? "" : "its part ", itself ? "it" : at, user);
		break;
	case PATH_WALK_MODE:
		if (itself)
			snprintf(why, FILE_WHY,
				"group or others can write in it and could replace the file; "
				"chmod go-w");
		else
			snprintf(why, FILE_WHY,
				"group or others can write (mode %04o) in its part %.150s, and "
				"could "
				"lead the agent, which has root's rights, elsewhere; chmod go-w, "
				"or +t",
				mode, at);
		break;
	case PATH_WALK_FILE_MODE:
		snprintf(why, FILE_WHY, "group or others can write it (mode %04o); chmod go-w",
			mode);
		break;
	case PATH_WALK_LINK:
		snprintf(why, FILE_WHY,
			"the symlink %.150s belongs to %s, who could lead the agent, which has "
			"root's rights, elsewhere; name what it leads to",
			at, user);
		break;
	case PATH_WALK_TARGET:
		snprintf(why, FILE_WHY,
			"a symlink of another user leads to it, and it belongs to %s; name it "
			"without the link",
			user);
		break;
	case PATH_WALK_HARD_LINK:
		snprintf(why, FILE_WHY,
			"it has more than one name (hard links), belongs to %s, and others can "
			"write in its directory; copy it",
			user);
		break;
	}
}

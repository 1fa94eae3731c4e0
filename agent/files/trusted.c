/*
 * Opens a path that no other user controls. Surprising: a plain path costs one openat2() and a stat
 * for each part, upwards from the opened one; it is walked part by part, downwards, only where it
 * has symlinks, or the kernel lacks openat2() (filters answer ENOSYS, EPERM).
 */
#include "files/trusted.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

#include "base/ending.h"
#include "files/user.h"

#define MAX_LINKS 40
#define MAX_DEPTH 64            /* of a path that is checked upwards */
#define MAX_PART (NAME_MAX + 2) /* with a NUL: one that is too long is for the kernel to refuse */
#define OTHERS (S_IWGRP | S_IWOTH)
#define READ_FLAGS (O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC)

enum fault {
	FAULT_NONE,
	FAULT_OWNER,
	FAULT_MODE,
	FAULT_FILE_MODE,
	FAULT_LINK,
	FAULT_TARGET,
	FAULT_HARD_LINK
};

struct walk {
	const struct sys *sys;
	struct trusted_who who;
	uid_t top;      /* owner of "/" */
	int dir;        /* where we are; O_PATH */
	struct stat st; /* of it */
	unsigned links; /* followed */
	bool foreign;   /* one of them was another user's: */
	uid_t whose;
	bool open;     /* others can change a directory on the way: */
	uid_t opener;  /* its owner; (uid_t)-1 = more than one can */
	bool holdable; /* one other user may decide, whom the caller checks: */
	uid_t holder;  /* (uid_t)-1 = none was met */
	enum fault fault;
	uid_t fault_uid; /* owner of what is to blame */
	mode_t fault_mode;
	char at[PATH_MAX]; /* where we are, as a text; "" = the root directory; what is to blame */
	char rest[PATH_MAX]; /* what is left of the path */
};

/* ---- who ---- */

/* This process; strict when it has one of these capabilities. */
static struct trusted_who self_with(uint64_t mighty)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3] = {{0}};
	struct trusted_who who = {.root = -1, .uid = geteuid()};

	who.strict = who.uid == 0 ||
		     (syscall(SYS_capget, &header, caps) == 0 && caps[0].effective & mighty);
	return who;
}

struct trusted_who trusted_self(void)
{
	return self_with(TRUSTED_RIGHTS);
}

struct trusted_who trusted_signaller(void)
{
	return self_with(TRUSTED_SIGNAL_RIGHTS);
}

static bool is_trusted(const struct walk *w, uid_t uid)
{
	return uid == 0 || uid == w->who.uid || uid == w->top;
}

/* True when this user may control the path; records the one other user who does. */
static bool accept_owner(struct walk *w, uid_t uid)
{
	if (is_trusted(w, uid))
		return true;
	if (w->holdable && w->holder == (uid_t)-1)
		w->holder = uid;
	return w->holdable && w->holder == uid;
}

static int set_fault(struct walk *w, enum fault fault, const struct stat *st)
{
	w->fault = fault;
	w->fault_uid = st->st_uid;
	w->fault_mode = st->st_mode;
	return -EPERM;
}

/* One directory on the way. */
static int check_part(struct walk *w, const struct stat *st)
{
	if (!w->who.strict)
		return 0;
	if (!accept_owner(w, st->st_uid))
		return set_fault(w, FAULT_OWNER, st);
	if (st->st_mode & OTHERS && !(st->st_mode & S_ISVTX))
		return set_fault(w, FAULT_MODE, st);
	return 0;
}

/* ---- sentences ---- */

static void explain_fault(const struct walk *w, bool itself, char why[FILE_WHY])
{
	char user[USER_TEXT];
	const char *at = w->at[0] ? w->at : "/";
	int mode = w->fault_mode & 07777;

	user_describe(w->sys, w->fault_uid, user);
	switch (w->fault) {
	case FAULT_NONE:
		why[0] = '\0';
		break;
	case FAULT_OWNER:
		snprintf(why, FILE_WHY,
			"%s%.150s belongs to %s, who could lead the agent, which has root's "
			"rights, elsewhere; give it to root, name another directory, or run the "
			"agent as that user",
			itself ? "" : "its part ", itself ? "it" : at, user);
		break;
	case FAULT_MODE:
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
	case FAULT_FILE_MODE:
		snprintf(why, FILE_WHY, "group or others can write it (mode %04o); chmod go-w",
			mode);
		break;
	case FAULT_LINK:
		snprintf(why, FILE_WHY,
			"the symlink %.150s belongs to %s, who could lead the agent, which has "
			"root's rights, elsewhere; name what it leads to",
			at, user);
		break;
	case FAULT_TARGET:
		snprintf(why, FILE_WHY,
			"a symlink of another user leads to it, and it belongs to %s; name it "
			"without the link",
			user);
		break;
	case FAULT_HARD_LINK:
		snprintf(why, FILE_WHY,
			"it has more than one name (hard links), belongs to %s, and others can "
			"write in its directory; copy it",
			user);
		break;
	}
}

/* "WHAT the directory PATH: ADVICE", with the error's own remedy when there is no better advice. */
static int refuse_dir(
	char why[FILE_WHY], int error, const char *what, const char *path, const char *advice)
{
	char remedy[FILE_REMEDY];

	file_remedy(remedy, error, false);
	snprintf(why, FILE_WHY, "%s the directory %.150s: %.330s", what, path,
		advice ? advice : remedy);
	return -error;
}

static int refuse_walk(const struct walk *w, int error, const char *path, char why[FILE_WHY])
{
	char fault[FILE_WHY];

	if (!w->fault)
		return refuse_dir(why, error, "cannot open", path, NULL);
	explain_fault(w, strcmp(w->at, path) == 0, fault);
	return refuse_dir(why, error, "will not use", path, fault);
}

/* ---- downwards ---- */

static void move_to(struct walk *w, int dir)
{
	if (w->dir >= 0)
		w->sys->close(w->dir);
	w->dir = dir;
}

/* To where a path begins. */
static int begin_walk(struct walk *w)
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
static bool next_part(struct walk *w, char part[MAX_PART], bool *ret_last)
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
static size_t append_path_part(struct walk *w, const char *part)
{
	size_t len = strlen(w->at);

	snprintf(w->at + len, sizeof(w->at) - len, "/%s", part);
	return len;
}

/* Puts the symlink's text in front of `rest`. */
static int follow_link(struct walk *w, int link, const struct stat *st)
{
	char text[PATH_MAX], rest[PATH_MAX];
	ssize_t n;

	if (!(w->who.strict ? accept_owner(w, st->st_uid) : is_trusted(w, st->st_uid))) {
		if (w->who.strict || (w->foreign && w->whose != st->st_uid))
			return set_fault(w, FAULT_LINK, st);
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
static void note_openers(struct walk *w, bool is_dir, uid_t next)
{
	bool theirs = !is_trusted(w, w->st.st_uid);
	bool sticky = is_dir && w->st.st_mode & S_ISVTX && is_trusted(w, next);

	if (!theirs && (!(w->st.st_mode & OTHERS) || sticky))
		return;
	w->opener = (w->st.st_mode & OTHERS && !sticky) || (w->open && w->opener != w->st.st_uid)
			    ? (uid_t)-1
			    : w->st.st_uid;
	w->open = true;
}

static int enter_part(struct walk *w, const char *part)
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
static int walk_part(struct walk *w, const char *part, bool last)
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
static int walk_path(struct walk *w, const char *path, char part[MAX_PART])
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
static int check_link_target(struct walk *w, const struct stat *st)
{
	return w->foreign && st->st_uid != w->whose ? set_fault(w, FAULT_TARGET, st) : 0;
}

static int walk_dir(struct walk *w, const char *path)
{
	char part[MAX_PART];
	int r = walk_path(w, path, part), fd = -1;

	r = r == 1 ? -ENOTDIR : r;
	if (r == 0)
		r = check_link_target(w, &w->st);
	if (r == 0) {
		fd = w->sys->openat(w->dir, ".", DIR_FLAGS, 0);
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
static void note_prefix(struct walk *w, const char *path, int parts)
{
	size_t len = 0;

	for (; parts; parts--)
		len += 1 + strcspn(path + len + 1, "/");
	snprintf(w->at, sizeof(w->at), "%.*s", (int)len, path);
}

/* Checks all directories from the root to the opened one. */
static int check_upwards(struct walk *w, const char *path, int depth, int fd)
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

/* The descriptor, or -errno; writes no sentence. */
static int open_checked_dir(struct walk *w, const char *path)
{
	int depth = w->who.root < 0 ? depth_of(path) : -1, fd, r;

	fd = depth < 0 ? -1 : w->sys->open_plain(AT_FDCWD, path, DIR_FLAGS);
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

static void walk_init(struct walk *w, const struct sys *sys, const struct trusted_who *who)
{
	w->sys = sys;
	w->who = *who;
	w->top = 0;
	w->dir = -1;
	w->links = 0;
	w->foreign = w->open = false;
	w->whose = w->opener = w->holder = (uid_t)-1;
	w->holdable = false;
	w->fault = FAULT_NONE;
	w->at[0] = '\0';
}

/* ---- directories ---- */

/* Checks the mode of the directory itself. */
static int check_mode(int dir, const char *path, enum trusted_use use, char why[FILE_WHY])
{
	struct stat st;

	if (use < TRUSTED_FILE)
		return 0;
	if (fstat(dir, &st))
		return refuse_dir(why, errno, "cannot look at", path, NULL);
	if (st.st_mode & OTHERS && (use == TRUSTED_SET || !(st.st_mode & S_ISVTX)))
		return refuse_dir(why, EPERM, "will not use", path,
			use == TRUSTED_SET
				? "group or others can write in it and could replace the files; "
				  "chmod go-w"
				: "group or others can write in it and could replace the file; "
				  "chmod go-w");
	return 0;
}

static int check_place(int dir, const char *path, enum trusted_use use, char why[FILE_WHY])
{
	struct statfs fs;

	if (use < TRUSTED_FILE)
		return 0;
	if (fstatfs(dir, &fs))
		return refuse_dir(why, errno, "cannot look at", path, NULL);
	if (fs.f_type == NFS_SUPER_MAGIC)
		return refuse_dir(why, ENOTSUP, "will not use", path,
			"it is on NFS, where a rename may fail and have happened; use a local one");
	if (faccessat(dir, ".", W_OK | X_OK, AT_EACCESS))
		return refuse_dir(why, errno, "cannot write in", path, NULL);
	return 0;
}

static struct trusted_who self_for(enum trusted_use use)
{
	struct trusted_who who = trusted_self();

	who.strict &= use != TRUSTED_ANY;
	return who;
}

int trusted_open_dir(
	const struct sys *sys, const char *path, enum trusted_use use, char why[FILE_WHY])
{
	const struct trusted_who who = self_for(use);
	struct walk w;
	int r, fd;

	walk_init(&w, sys, &who);
	fd = open_checked_dir(&w, path);
	if (fd < 0)
		return refuse_walk(&w, -fd, path, why);
	r = check_mode(fd, path, use, why);
	if (r == 0)
		r = check_place(fd, path, use, why);
	if (r == 0)
		return fd;
	sys->close(fd);
	return r;
}

int trusted_check_dir(const struct sys *sys, const struct trusted_who *who, const char *path,
	enum trusted_use use, char why[FILE_WHY])
{
	struct walk w;
	int fd, r;

	walk_init(&w, sys, who);
	fd = open_checked_dir(&w, path);
	if (fd < 0)
		return refuse_walk(&w, -fd, path, why);
	r = check_mode(fd, path, use, why);
	sys->close(fd);
	return r;
}

int trusted_open_parent(const struct sys *sys, const char *path, enum trusted_use use,
	const char **ret_name, char why[FILE_WHY])
{
	const char *slash = strrchr(path, '/');
	char *parent =
		slash ? strndup(path, slash > path ? (size_t)(slash - path) : 1) : strdup(".");
	int dir;

	if (!parent) {
		snprintf(why, FILE_WHY, "out of memory");
		return -ENOMEM;
	}
	dir = trusted_open_dir(sys, parent, use, why);
	if (dir >= 0)
		*ret_name = slash ? slash + 1 : path;
	free(parent);
	return dir;
}

int trusted_make_dir(const struct sys *sys, const char *path, mode_t mode, enum trusted_use use,
	char why[FILE_WHY])
{
	const char *name;
	int r, dir = trusted_open_parent(
		       sys, path, use == TRUSTED_ANY ? use : TRUSTED_OWN, &name, why);

	if (dir == -ENOENT) /* what is missing is above */
		return refuse_dir(why, ENOENT, "cannot make", path, NULL);
	if (dir < 0)
		return dir;
	r = sys->mkdirat(dir, name, mode) ? -errno : 1;
	if (r < 0 && r != -EEXIST)
		refuse_dir(why, -r, "cannot make", path, NULL);
	sys->close(dir);
	return r == -EEXIST ? 0 : r;
}

int trusted_provide_dir(const struct sys *sys, const char *path, mode_t mode, enum trusted_use use,
	bool *ret_made, char why[FILE_WHY])
{
	int r, dir = trusted_open_dir(sys, path, use, why);

	*ret_made = false;
	if (dir != -ENOENT)
		return dir;
	r = trusted_make_dir(sys, path, mode, use, why);
	if (r < 0)
		return r;
	*ret_made = r > 0;
	why[0] = '\0';
	return trusted_open_dir(sys, path, use, why);
}

int trusted_open_below(const struct sys *sys, int dir, const char *name)
{
	const struct trusted_who who = trusted_self();
	int fd = sys->openat(dir, name, DIR_FLAGS | O_NOFOLLOW, 0), r = 0;
	struct stat st;

	if (fd < 0)
		return -errno;
	if (sys->fstatat(fd, "", &st, AT_EMPTY_PATH))
		r = -errno;
	else if (who.strict && ((st.st_uid != 0 && st.st_uid != who.uid) ||
				       (st.st_mode & OTHERS && !(st.st_mode & S_ISVTX))))
		r = -EPERM;
	if (r == 0)
		return fd;
	sys->close(fd);
	return r;
}

/* ---- files ---- */

static int check_opened_file(struct walk *w, const struct stat *st)
{
	int r = check_link_target(w, st);

	if (r == 0 && S_ISREG(st->st_mode) && st->st_nlink > 1 && w->open &&
		w->opener != st->st_uid)
		r = set_fault(w, FAULT_HARD_LINK, st);
	if (r == 0 && w->holdable && !accept_owner(w, st->st_uid))
		r = set_fault(w, FAULT_OWNER, st);
	if (r == 0 && w->holdable && st->st_mode & OTHERS)
		r = set_fault(w, FAULT_FILE_MODE, st);
	return r;
}

/* Opens the file by a walk. The descriptor, or -errno. */
static int walk_file(struct walk *w, const char *path)
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

static int open_checked_file(struct walk *w, const char *path)
{
	int fd = w->sys->open_plain(AT_FDCWD, path, READ_FLAGS);
	struct stat st;

	if (fd < 0 && errno != ELOOP && errno != ENOSYS && errno != EPERM)
		return -errno;
	if (fd >= 0 && w->sys->fstatat(fd, "", &st, AT_EMPTY_PATH) == 0 &&
		(!S_ISREG(st.st_mode) || st.st_nlink == 1))
		return fd;
	if (fd >= 0)
		w->sys->close(fd);
	return walk_file(w, path);
}

static int refuse_file(const struct walk *w, int error, char why[FILE_WHY])
{
	char remedy[FILE_REMEDY];

	file_remedy(remedy, -error, true);
	snprintf(why, FILE_WHY, "%s", remedy);
	if (w->fault)
		explain_fault(w, false, why);
	return error;
}

/* Appends owner and mode of the part of the path that denied access. */
static void explain_denied(const struct sys *sys, const char *path, char why[FILE_WHY])
{
	char part[PATH_MAX], user[USER_TEXT], group[USER_TEXT];
	struct stat st, denies = {0};
	size_t len = 0, last = 0, at = strlen(why);

	while (path[len]) { /* a part is visible to a process that may pass the one before */
		len += strspn(path + len, "/");
		len += strcspn(path + len, "/");
		snprintf(part, sizeof(part), "%.*s", (int)len, path);
		if (sys->fstatat(AT_FDCWD, part, &st, 0))
			break;
		denies = st;
		last = len;
	}
	if (last == 0)
		return;
	user_describe(sys, denies.st_uid, user);
	user_describe_group(sys, denies.st_gid, group);
	snprintf(why + at, FILE_WHY - at, "; %.*s is of %s and the group %s, mode %04o",
		last > 150 ? 150 : (int)last, path, user, group, denies.st_mode & 07777);
}

int trusted_open(const struct sys *sys, const char *path, char why[FILE_WHY])
{
	const struct trusted_who who = self_for(TRUSTED_ANY);
	struct walk w;
	int fd;

	walk_init(&w, sys, &who);
	fd = open_checked_file(&w, path);
	if (fd < 0 && why)
		refuse_file(&w, fd, why);
	if (fd == -EACCES && why)
		explain_denied(sys, path, why);
	return fd;
}

int trusted_open_held(const struct sys *sys, const struct trusted_who *who, const char *path,
	uid_t *ret_holder, char why[FILE_WHY])
{
	struct walk w;
	int fd;

	walk_init(&w, sys, who);
	w.holdable = true;
	fd = walk_file(&w, path);
	if (fd < 0)
		return refuse_file(&w, fd, why);
	*ret_holder = w.holder;
	return fd;
}

int trusted_read(const struct sys *sys, const char *path, struct buffer *out, char why[FILE_WHY])
{
	int r = trusted_open(sys, path, why);
	char remedy[FILE_REMEDY];

	if (r < 0)
		return r;
	r = file_take(sys, r, out);
	if (r && why) {
		file_remedy(remedy, -r, true);
		snprintf(why, FILE_WHY, "%s", r == -EINVAL ? "it is not a regular file" : remedy);
	}
	return r;
}

/* ---- lists ---- */

static bool has_ending(const char *name, const char *const endings[])
{
	size_t len = strlen(name);

	for (; *endings; endings++)
		if (ends_in(name, len, *endings))
			return name[0] != '.';
	return false;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int trusted_list(const struct sys *sys, const char *dir, const char *const endings[],
	char **ret_names, int max, char why[FILE_WHY])
{
	int count = 0, r = trusted_open(sys, dir, why), fd = r;
	DIR *d = r < 0 ? NULL : fdopendir(fd);
	char remedy[FILE_REMEDY];
	struct dirent *e = NULL;

	if (r >= 0 && !d) {
		r = -errno;
		sys->close(fd);
		file_remedy(remedy, -r, true);
		if (why)
			snprintf(why, FILE_WHY, "%s", remedy);
	}
	r = r < 0 ? r : 0;
	while (r == 0 && (e = readdir(d))) {
		if (!has_ending(e->d_name, endings))
			continue;
		if (count == max)
			r = -E2BIG;
		else if (!(ret_names[count] = strdup(e->d_name)))
			r = -ENOMEM;
		else
			count++;
	}
	if (d)
		closedir(d);
	while (r && count)
		free(ret_names[--count]);
	if (count)
		qsort(ret_names, (size_t)count, sizeof(*ret_names), compare_names);
	return r ? r : count;
}

/*
 * What may be used of what a walk has opened, and the sentences where it may not.
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

/* ---- sentences ---- */

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

static int refuse_walk(const struct path_walk *w, int error, const char *path, char why[FILE_WHY])
{
	char fault[FILE_WHY];

	if (!w->fault)
		return refuse_dir(why, error, "cannot open", path, NULL);
	path_walk_explain(w, strcmp(w->at, path) == 0, fault);
	return refuse_dir(why, error, "will not use", path, fault);
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
	if (st.st_mode & PATH_WALK_OTHERS && (use == TRUSTED_SET || !(st.st_mode & S_ISVTX)))
		return refuse_dir(why, EPERM, "will not use", path,
			use == TRUSTED_SET
				? "group or others can write in it and could replace the files; "
				  "chmod go-w"
				: "group or others can write in it and could replace the file; "
				  "chmod go-w");
	return 0;
}

/* Older seccomp filters answer EPERM to each faccessat2(): what can be done there then shows when
 * it is done. */
static bool is_access_denied_to_all(int dir)
{
	int error = errno;
	bool denied = error == EPERM && faccessat(dir, ".", F_OK, AT_EACCESS) && errno == EPERM;

	errno = error;
	return denied;
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
	if (faccessat(dir, ".", W_OK | X_OK, AT_EACCESS) && !is_access_denied_to_all(dir))
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
	struct path_walk w;
	int r, fd;

	path_walk_init(&w, sys, &who);
	fd = path_walk_open_dir(&w, path);
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
	struct path_walk w;
	int fd, r;

	path_walk_init(&w, sys, who);
	fd = path_walk_open_dir(&w, path);
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
	int fd = sys->openat(dir, name, PATH_WALK_DIR_FLAGS | O_NOFOLLOW, 0), r = 0;
	struct stat st;

	if (fd < 0)
		return -errno;
	if (sys->fstatat(fd, "", &st, AT_EMPTY_PATH))
		r = -errno;
	else if (who.strict && ((st.st_uid != 0 && st.st_uid != who.uid) ||
				       (st.st_mode & PATH_WALK_OTHERS && !(st.st_mode & S_ISVTX))))
		r = -EPERM;
	if (r == 0)
		return fd;
	sys->close(fd);
	return r;
}

/* ---- files ---- */

static int refuse_file(const struct path_walk *w, int error, char why[FILE_WHY])
{
	char remedy[FILE_REMEDY];

	file_remedy(remedy, -error, true);
	snprintf(why, FILE_WHY, "%s", remedy);
	if (w->fault)
		path_walk_explain(w, false, why);
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
	struct path_walk w;
	int fd;

	path_walk_init(&w, sys, &who);
	fd = path_walk_open_file(&w, path);
	if (fd < 0 && why)
		refuse_file(&w, fd, why);
	if (fd == -EACCES && why)
		explain_denied(sys, path, why);
	return fd;
}

int trusted_open_held(const struct sys *sys, const struct trusted_who *who, const char *path,
	uid_t *ret_holder, char why[FILE_WHY])
{
	struct path_walk w;
	int fd;

	path_walk_init(&w, sys, who);
	w.holdable = true;
	fd = path_walk_open_file(&w, path);
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

static int sync_open_dir(const struct sys *sys, int dir, bool *named)
{
	char why[FILE_WHY];
	int r = 0;

	if (file_in_memory(dir))
		return 0;
	if (sys->fsync(dir))
		return -errno;
	if (!*named)
		r = file_sync_parent(sys, dir, why);
	*named |= r == 0;
	return r;
}

int trusted_sync_dir(const struct sys *sys, const char *path, bool *named)
{
	char why[FILE_WHY];
	int r, dir = trusted_open_dir(sys, path, TRUSTED_ANY, why);

	if (dir < 0)
		return dir;
	r = sync_open_dir(sys, dir, named);
	sys->close(dir);
	return r;
}

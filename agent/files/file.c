/*
 * Atomic replacement of one file. Surprising: nothing here retries after a failed fsync. The kernel
 * marks the pages clean and the next fsync lies, so the temporary file is removed and the caller
 * starts again with a new one.
 */
#include "files/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

#define TEMPORARY ".pullet-"
#define HEX 16

/* Remedies that strerror() does not name. */
static const struct {
	int error;
	const char *write, *read;
} advices[] = {
	{ENOSPC, ": make room on that file system (df, df -i)", ""},
	{EDQUOT, ": raise the quota or make room", ""},
	{EROFS,
		": mount it writable, or name a place that is; under systemd, open it with "
		"ReadWritePaths= (systemctl edit pullet)",
		""},
	{EBUSY, ": the file itself is a mount point; mount the directory instead", ""},
	{EXDEV, ": the file itself is a mount point; mount the directory instead", ""},
	{EACCES, ": the agent's user must be able to write there",
		": the agent's user must be able to read it"},
	{EPERM, ": what is there belongs to another user, or is immutable or append-only", ""},
	{ENOTSUP,
		": its file system keeps no modes; mount it with a stricter umask, or name another "
		"place",
		""},
	{EFBIG, ": raise the limit of the size of files (LimitFSIZE)", ""},
	{EIO, ": the disk fails", ": the disk fails"},
	{EMFILE, ": raise the limit of open files (LimitNOFILE)",
		": raise the limit of open files (LimitNOFILE)"},
	{ENFILE, ": the system has no file descriptors left",
		": the system has no file descriptors left"},
	{ENOENT, ": the directory is not there; make it", ": make it, or name another one"},
	{ENOTDIR, ": a part of the path is not a directory",
		": a part of the path is not a directory"},
};

void file_remedy(char remedy[FILE_REMEDY], int error, bool reading)
{
	const char *advice = "";
	char user[64] = "";

	for (size_t i = 0; i < sizeof(advices) / sizeof(advices[0]); i++)
		if (advices[i].error == error)
			advice = reading ? advices[i].read : advices[i].write;
	if (error == EACCES || error == EPERM)
		snprintf(user, sizeof(user), " (it runs as user %u, group %u)", (unsigned)geteuid(),
			(unsigned)getegid());
	snprintf(remedy, FILE_REMEDY, "%s%s%s", strerror(error), advice, user);
}

void file_show_dir(char text[FILE_DIR], int dir)
{
	char link[32];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
	n = readlink(link, text, FILE_DIR - 2);
	snprintf(&text[n > 0 ? n : 0], 2, "%s", n > 0 ? "/" : "");
}

/* "WHAT DIRECTORY/NAME: REMEDY" */
static int explain_file_error(
	char why[FILE_WHY], const char *what, int dir, const char *name, int error)
{
	char path[FILE_DIR], remedy[FILE_REMEDY];

	file_show_dir(path, dir);
	file_remedy(remedy, error, false);
	snprintf(why, FILE_WHY, "%s %s%.100s: %s", what, path, name, remedy);
	return -error;
}

/* ---- temporary files ---- */

size_t file_temporary(const char *entry)
{
	size_t len, tail = strlen(TEMPORARY) + HEX;

	if (entry[0] != '.')
		return 0;
	len = strlen(entry);
	if (len <= tail + 1 || strncmp(entry + len - tail, TEMPORARY, strlen(TEMPORARY)) != 0 ||
		strspn(entry + len - HEX, "0123456789abcdef") != HEX)
		return 0;
	return len - tail - 1;
}

/* Is `entry` a temporary file of `name` (NULL: of any)? */
static bool is_temporary(const char *entry, const char *name)
{
	size_t len = file_temporary(entry);

	return len && (!name || (strlen(name) == len && strncmp(entry + 1, name, len) == 0));
}

DIR *file_list_dir(const struct sys *sys, int dir, const char *name)
{
	int error, fd = sys->openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;

	if (!d && fd >= 0) {
		error = errno;
		sys->close(fd);
		errno = error;
	}
	return d;
}

/* Returns how many were removed; adds those that stay. */
static int clean_temporaries(const struct sys *sys, int dir, const char *name, unsigned *left)
{
	DIR *d = file_list_dir(sys, dir, ".");
	struct dirent *e;
	int removed = 0;

	if (!d)
		return 0;
	while ((e = readdir(d))) {
		if (!is_temporary(e->d_name, name))
			continue;
		if (sys->unlinkat(dir, e->d_name, 0) == 0)
			removed++;
		else
			++*left;
	}
	closedir(d);
	return removed;
}

int file_clean(const struct sys *sys, int dir, const char *name)
{
	unsigned left = 0;

	return clean_temporaries(sys, dir, name, &left);
}

/* ---- one file replaced ---- */

static int write_whole(const struct sys *sys, int fd, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = sys->write(fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

/* A file system without modes (exFAT, CIFS) gives a new file its own: nothing is written to it. */
static int refuse_wider_mode(
	const struct sys *sys, int dir, int fd, const char *name, mode_t mode, char why[FILE_WHY])
{
	char what[64];
	struct stat st;

	if (sys->fstatat(fd, "", &st, AT_EMPTY_PATH))
		return explain_file_error(why, "cannot look at", dir, name, errno);
	if (!(st.st_mode & ~mode & 066))
		return 0;
	snprintf(what, sizeof(what), "the mode would be %04o, not %04o, of",
		(unsigned)(st.st_mode & 0777), (unsigned)mode);
	return explain_file_error(why, what, dir, name, ENOTSUP);
}

/* Writes the open temporary file: all steps up to the rename. */
static int fill_temporary(const struct sys *sys, int dir, int fd, const char *name,
	const void *data, size_t len, const struct file_options *o, char why[FILE_WHY])
{
	int r = refuse_wider_mode(sys, dir, fd, name, o->mode, why);

	if (r)
		return r;
	r = write_whole(sys, fd, data, len);
	if (r)
		return explain_file_error(why, "cannot write", dir, name, -r);
	if ((o->uid != (uid_t)-1 || o->gid != (gid_t)-1) && sys->fchown(fd, o->uid, o->gid)) {
		r = explain_file_error(why, "cannot set the owner of", dir, name, errno);
		if (r == -EPERM)
			snprintf(why, FILE_WHY,
				"cannot set the owner of %.200s: only root may: run the agent as "
				"root, or leave owner out",
				name);
		return r;
	}
	if (sys->fchmod(fd, o->mode)) /* after fchown, which clears bits */
		return explain_file_error(why, "cannot set the mode of", dir, name, errno);
	if (o->sync && sys->fsync(fd))
		return explain_file_error(why, "cannot bring to the disk", dir, name, errno);
	return 0;
}

static int create_temporary(
	const struct sys *sys, int dir, const char *name, char temporary[NAME_MAX + 1])
{
	int fd, tries = 0;

	do {
		if (snprintf(temporary, NAME_MAX + 1, ".%s" TEMPORARY "%016" PRIx64, name,
			    sys->random()) > NAME_MAX) {
			errno = ENAMETOOLONG;
			return -1;
		}
		fd = sys->openat(
			dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	} while (fd < 0 && (errno == EINTR || (errno == EEXIST && tries++ < 4)));
	return fd;
}

/* Names can be made in it, and never removed. */
static bool is_append_only(int dir)
{
	struct statx st;

	return statx(dir, "", AT_EMPTY_PATH, STATX_TYPE, &st) == 0 &&
	       st.stx_attributes & STATX_ATTR_APPEND;
}

int file_check_removable(int dir, const char *name, char why[FILE_WHY])
{
	char path[FILE_DIR];

	if (!is_append_only(dir))
		return 0;
	file_show_dir(path, dir);
	snprintf(why, FILE_WHY,
		"cannot replace %s%.100s: nothing can be removed from its directory, which is "
		"append-only: chattr -a it, or name another place",
		path, name);
	return -EPERM;
}

/* Each attempt would leave a temporary file there, for ever. */
static int check_leftovers(
	const struct sys *sys, int dir, const char *name, bool again, char why[FILE_WHY])
{
	unsigned left = 0;
	int r = file_check_removable(dir, name, why);

	if (r == 0 && again)
		clean_temporaries(sys, dir, name, &left);
	return left ? explain_file_error(
			      why, "cannot remove the temporary files beside", dir, name, EPERM)
		    : r;
}

int file_prepare(const struct sys *sys, int dir, const char *name, const void *data, size_t len,
	const struct file_options *o, char temporary[NAME_MAX + 1], char why[FILE_WHY])
{
	int fd, r = check_leftovers(sys, dir, name, o->again, why);

	if (r)
		return r;
	fd = create_temporary(sys, dir, name, temporary);
	if (fd < 0)
		return explain_file_error(why, "cannot make a new file for", dir, name, errno);
	r = fill_temporary(sys, dir, fd, name, data, len, o, why);
	if (r == 0 && o->ret_written && fstat(fd, o->ret_written))
		r = explain_file_error(why, "cannot look at", dir, name, errno);
	if (sys->close(fd) && errno != EINTR && r == 0)
		r = explain_file_error(why, "cannot close", dir, name, errno);
	if (r)
		sys->unlinkat(dir, temporary, 0);
	return r;
}

int file_commit(const struct sys *sys, int dir, const char *name,
	const char temporary[NAME_MAX + 1], bool sync, char why[FILE_WHY])
{
	int r;

	if (sys->renameat(dir, temporary, dir, name)) {
		r = explain_file_error(why, "cannot replace", dir, name, errno);
		sys->unlinkat(dir, temporary, 0);
		return r;
	}
	if (sync && sys->fsync(dir)) {
		explain_file_error(why,
			"the new version is visible, but its directory is not on the disk yet:",
			dir, name, errno);
		return FILE_NOT_DURABLE;
	}
	return 0;
}

int file_replace(const struct sys *sys, int dir, const char *name, const void *data, size_t len,
	const struct file_options *o, char why[FILE_WHY])
{
	char temporary[NAME_MAX + 1];
	int r = file_prepare(sys, dir, name, data, len, o, temporary, why);

	return r ? r : file_commit(sys, dir, name, temporary, o->sync, why);
}

int file_take(const struct sys *sys, int fd, struct buffer *out)
{
	struct stat st;
	int r = 0;

	if (fstat(fd, &st))
		r = -errno;
	else if (!S_ISREG(st.st_mode))
		r = -EINVAL;
	else if (st.st_size > 0)
		r = buffer_reserve(out, (size_t)st.st_size);
	while (r == 0) {
		char piece[4096];
		ssize_t n = sys->read(fd, piece, sizeof(piece));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			r = n < 0 ? -errno : 0;
			break;
		}
		r = buffer_append(out, piece, (size_t)n);
	}
	sys->close(fd);
	return r;
}

int file_read(const struct sys *sys, int dir, const char *name, struct buffer *out)
{
	int fd;

	do
		fd = sys->openat(dir, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC, 0);
	while (fd < 0 && errno == EINTR);
	return fd < 0 ? -errno : file_take(sys, fd, out);
}

bool file_holds(const struct sys *sys, int dir, const char *name, const void *data, size_t len)
{
	struct buffer there;
	bool same;

	buffer_init(&there, len);
	same = file_read(sys, dir, name, &there) == 0 && there.len == len &&
	       (len == 0 || memcmp(there.data, data, len) == 0);
	buffer_fini(&there);
	return same;
}

int file_sync(const struct sys *sys, int dir, const char *name)
{
	int r = 0, fd = sys->openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (sys->fsync(fd))
		r = -errno;
	sys->close(fd);
	if (r == 0 && sys->fsync(dir))
		r = -errno;
	return r;
}

int file_sync_parent(const struct sys *sys, int dir, char why[FILE_WHY])
{
	int r = 0, parent = sys->openat(dir, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

	/* EACCES: the agent cannot have made a directory there */
	if (parent < 0 ? errno != EACCES : sys->fsync(parent))
		r = explain_file_error(
			why, "cannot bring to the disk the directory", dir, "..", errno);
	if (parent >= 0)
		sys->close(parent);
	return r;
}

bool file_is_mount_point(int dir, const char *name, const struct stat *st)
{
	struct stat above;
	struct statx x;

	if (fstat(dir, &above) || above.st_dev == st->st_dev)
		return false;
	return statx(dir, name, AT_SYMLINK_NOFOLLOW, 0, &x) != 0 ||
	       !(x.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) ||
	       x.stx_attributes & STATX_ATTR_MOUNT_ROOT;
}

bool file_in_memory(int dir)
{
	struct statfs fs;

	return fstatfs(dir, &fs) == 0 &&
	       (fs.f_type == TMPFS_MAGIC || fs.f_type == (__typeof__(fs.f_type))RAMFS_MAGIC);
}

bool file_error_is_ours(int error)
{
	return error == ENOMEM || error == EMFILE || error == ENFILE;
}

bool file_error_may_pass(int error)
{
	return error == EIO || error == ESTALE || error == ETIMEDOUT;
}

/*
 * Files of keys, of the push channel and of signatures.
 */
#include "crypto/key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "files/trusted.h"

/* ---- reading ---- */

int key_file_open(const struct sys *sys, const char *path, struct stat *ret_st, char why[FILE_WHY])
{
	int r, fd = trusted_open(sys, path, why);

	if (fd < 0)
		return fd;
	r = fstat(fd, ret_st) ? -errno : S_ISREG(ret_st->st_mode) ? 0 : -EINVAL;
	if (r == 0)
		return fd;
	sys->close(fd);
	return r;
}

ssize_t key_file_take(const struct sys *sys, int fd, char *data, size_t size)
{
	size_t len = 0;

	while (len < size) {
		ssize_t n = sys->read(fd, data + len, size - len);

		if (n == 0)
			return (ssize_t)len;
		if (n < 0 && errno != EINTR)
			return -errno;
		len += n > 0 ? (size_t)n : 0;
	}
	return -EMSGSIZE;
}

static const char *explain_read_error(int error)
{
	switch (error) {
	case ENOENT:
	case ENOTDIR:
		return "the secret key's file does not exist: pullet keygen makes one";
	case EACCES:
		return "the secret key's file cannot be read by this user";
	case EINVAL:
		return "the secret key's file is not a regular file";
	case EPERM:
		return "the secret key's file is not trusted: another user's symlink leads to it, "
		       "or it has several names (hard links) where others can write";
	case EMSGSIZE:
		return "the secret key's file is too large to be one";
	case EMFILE:
	case ENFILE:
		return "the secret key's file cannot be read: no descriptors are left";
	default:
		return "the secret key's file cannot be read";
	}
}

int key_file_read_secret(const struct sys *sys, const char *path, char *data, size_t size,
	size_t *ret_len, const char **ret_why)
{
	struct stat st;
	ssize_t n;
	int fd = key_file_open(sys, path, &st, NULL);

	if (fd < 0) {
		*ret_why = explain_read_error(-fd);
		return fd;
	}
	n = key_file_take(sys, fd, data, size);
	sys->close(fd);
	if (n >= 0 && !(st.st_mode & 0027)) {
		*ret_len = (size_t)n;
		return 0;
	}
	explicit_bzero(data, size);
	*ret_why = n < 0 ? explain_read_error((int)-n)
			 : "the secret key's file can be read by others, or written by more than "
			   "its owner: chmod 600 it, and make a new key if it was open for long";
	return n < 0 ? (int)n : -EINVAL;
}

/* ---- writing ---- */

/* In the directory `dir`; path is for sentences. */
static int create_key_file(const struct sys *sys, int dir, const char *name, const char *path,
	mode_t mode, const char *text, char why[FILE_WHY])
{
	size_t len = strlen(text);
	int r = 0,
	    fd = sys->openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0) {
		r = -errno;
		snprintf(why, FILE_WHY, "cannot make %.300s: %s", path,
			r == -EEXIST ? "it is there already, and a key is never overwritten"
				     : strerror(-r));
		return r;
	}
	while (r == 0 && len > 0) {
		ssize_t n = sys->write(fd, text, len);

		if (n > 0)
			text += n, len -= (size_t)n;
		else if (n == 0 || errno != EINTR)
			r = n < 0 ? -errno : -EIO;
	}
	if (r == 0 && (sys->fchmod(fd, mode) || sys->fsync(fd)))
		r = -errno;
	if (sys->close(fd) && r == 0 && errno != EINTR)
		r = -errno;
	if (r) {
		sys->unlinkat(dir, name, 0);
		snprintf(why, FILE_WHY, "cannot write %.300s: %s", path, strerror(-r));
	}
	return r;
}

static int create_pair(const struct sys *sys, int dir, const char *name, const char *path,
	const char *secret_text, const char *public_text, char why[FILE_WHY])
{
	char public_path[PATH_MAX];
	int r;

	if (snprintf(public_path, sizeof(public_path), "%s.pub", path) >=
		(int)sizeof(public_path)) {
		snprintf(why, FILE_WHY, "the path is too long");
		return -ENAMETOOLONG;
	}
	r = create_key_file(sys, dir, name, path, 0600, secret_text, why);
	if (r)
		return r;
	r = create_key_file(
		sys, dir, public_path + (name - path), public_path, 0644, public_text, why);
	if (r)
		sys->unlinkat(dir, name, 0);
	return r;
}

int key_file_write_pair(const struct sys *sys, const char *path, const char *secret_text,
	const char *public_text, char why[FILE_WHY])
{
	char remedy[FILE_WHY];
	const char *name;
	int r, dir = trusted_open_parent(sys, path, TRUSTED_ANY, &name, remedy);

	if (dir < 0) {
		snprintf(why, FILE_WHY, "cannot make %.200s: %.280s", path, remedy);
		return dir;
	}
	r = create_pair(sys, dir, name, path, secret_text, public_text, why);
	sys->close(dir);
	return r;
}

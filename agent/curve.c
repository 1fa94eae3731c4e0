/*
 * Keys as text, files of keys. Surprising: a comment needs no rule of its own, although '#' is one
 * of Z85's characters: five of them are a number of 32 bits, and one that begins with '#' would be
 * larger.
 */
#include "curve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define TEXT_LEN (CURVE_TEXT - 1)

/* ---- text ---- */

/* False when the TEXT_LEN characters are no key. */
static bool decode(const char *text, unsigned char ret_key[CURVE_KEY])
{
	static const char digits[] =
		"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		".-:+=^!/*?&<>()[]{}@%$#";

	for (size_t i = 0; i < TEXT_LEN; i += 5) {
		uint64_t n = 0;

		for (size_t k = i; k < i + 5; k++) {
			const char *digit = memchr(digits, text[k], sizeof(digits) - 1);

			if (!digit)
				return false;
			n = n * 85 + (uint64_t)(digit - digits);
		}
		if (n > UINT32_MAX)
			return false;
		for (int k = 3; k >= 0; k--, n >>= 8)
			ret_key[i / 5 * 4 + (size_t)k] = (unsigned char)n;
	}
	return true;
}

const char *curve_check_key(const char *text)
{
	unsigned char key[CURVE_KEY];

	return strlen(text) == TEXT_LEN && decode(text, key)
		       ? NULL
		       : "is not a public key: 40 characters of Z85, as pullet keygen prints them, "
			 "in single quotes";
}

bool curve_stays_here(const char *endpoint)
{
	const char *end;
	struct in6_addr v6;
	struct in_addr v4;
	char host[64];
	size_t len;

	if (strncmp(endpoint, "ipc://", 6) == 0)
		return true;
	if (strncmp(endpoint, "tcp://", 6) == 0)
		endpoint += 6;
	end = strrchr(endpoint, ':');
	len = end ? (size_t)(end - endpoint) : strlen(endpoint);
	if (len >= 2 && endpoint[0] == '[' && endpoint[len - 1] == ']') {
		endpoint++;
		len -= 2;
	}
	if (len >= sizeof(host))
		return false;
	memcpy(host, endpoint, len);
	host[len] = '\0';
	if (inet_pton(AF_INET, host, &v4) == 1)
		return ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
	if (inet_pton(AF_INET6, host, &v6) == 1)
		return IN6_IS_ADDR_LOOPBACK(&v6) ||
		       (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == IN_LOOPBACKNET);
	return strcasecmp(host, "localhost") == 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

struct lines {
	const char *at, *end;
	unsigned number; /* of the line that was looked at last */
};

/* The next key of a text: 1 and its bytes and where it stands, 0 at the end, -EINVAL for a line
 * that is none. */
static int next_key(struct lines *l, unsigned char ret_key[CURVE_KEY], const char **ret_text)
{
	while (l->at < l->end) {
		const char *line = l->at, *stop = memchr(line, '\n', (size_t)(l->end - line));

		if (!stop)
			stop = l->end;
		l->at = stop + (stop < l->end);
		l->number++;
		while (line < stop && is_blank(*line))
			line++;
		if (line == stop || *line == '#')
			continue;
		if (stop - line < TEXT_LEN || !decode(line, ret_key))
			return -EINVAL;
		*ret_text = line;
		line += TEXT_LEN;
		if (line < stop && !is_blank(*line))
			return -EINVAL;
		while (line < stop && is_blank(*line))
			line++;
		return line == stop || *line == '#' ? 1 : -EINVAL;
	}
	return 0;
}

/* ---- reading ---- */

/* Opens a regular file: its descriptor, or -errno. */
static int open_regular(const struct sys *sys, const char *path, struct stat *ret_st)
{
	int r, fd = sys->openat(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	r = fstat(fd, ret_st) ? -errno : S_ISREG(ret_st->st_mode) ? 0 : -EINVAL;
	if (r == 0)
		return fd;
	sys->close(fd);
	return r;
}

/* Reads all there is: its length, or -errno; -EMSGSIZE when it does not fit. */
static ssize_t read_all(const struct sys *sys, int fd, char *data, size_t size)
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

static const char *explain(int error)
{
	switch (error) {
	case ENOENT:
	case ENOTDIR:
		return "the secret key's file does not exist: pullet keygen makes one";
	case EACCES:
		return "the secret key's file cannot be read by this user";
	case EINVAL:
		return "the secret key's file is not a regular file";
	case EMSGSIZE:
		return "the secret key's file is too large to be one";
	case EMFILE:
	case ENFILE:
		return "the secret key's file cannot be read: no descriptors are left";
	default:
		return "the secret key's file cannot be read";
	}
}

static const char *one_key(const char *data, size_t len, char ret_text[CURVE_TEXT])
{
	struct lines l = {.at = data, .end = data + len};
	unsigned char key[CURVE_KEY];
	const char *text = NULL, *more, *why = NULL;
	int r = next_key(&l, key, &text);

	if (r == 1 && next_key(&l, key, &more) != 0)
		why = "the secret key's file holds more than one key";
	else if (r != 1)
		why = "the secret key's file holds no key: 40 characters of Z85 on a line, as "
		      "pullet keygen writes them";
	else
		memcpy(ret_text, text, TEXT_LEN);
	ret_text[TEXT_LEN] = '\0';
	explicit_bzero(key, sizeof(key));
	return why;
}

int curve_read_secret(
	const struct sys *sys, const char *path, char ret_secret[CURVE_TEXT], const char **ret_why)
{
	char data[CURVE_MAX_SECRET_FILE + 1];
	const char *why = NULL;
	struct stat st;
	ssize_t n;
	int fd = open_regular(sys, path, &st);

	if (fd < 0) {
		*ret_why = explain(-fd);
		return fd;
	}
	n = read_all(sys, fd, data, sizeof(data));
	sys->close(fd);
	if (n < 0)
		why = explain((int)-n);
	else if (st.st_mode & 0027)
		why = "the secret key's file can be read by others, or written by more than its "
		      "owner: chmod 600 it, and make a new key if it was open for long";
	else
		why = one_key(data, (size_t)n, ret_secret);
	explicit_bzero(data, sizeof(data));
	if (!why)
		return 0;
	*ret_why = why;
	return n < 0 ? (int)n : -EINVAL;
}

/* ---- writing ---- */

static int create(
	const struct sys *sys, const char *path, mode_t mode, const char *text, char why[CURVE_WHY])
{
	size_t len = strlen(text);
	int r = 0, fd = sys->openat(AT_FDCWD, path,
			   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0) {
		r = -errno;
		snprintf(why, CURVE_WHY, "cannot make %.300s: %s", path,
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
		sys->unlinkat(AT_FDCWD, path, 0);
		snprintf(why, CURVE_WHY, "cannot write %.300s: %s", path, strerror(-r));
	}
	return r;
}

int curve_write_pair(const struct sys *sys, const char *path, const char *public_key,
	const char *secret_key, char why[CURVE_WHY])
{
	char public_path[PATH_MAX], text[256];
	int r;

	if (snprintf(public_path, sizeof(public_path), "%s.pub", path) >=
		(int)sizeof(public_path)) {
		snprintf(why, CURVE_WHY, "the path is too long");
		return -ENAMETOOLONG;
	}
	snprintf(text, sizeof(text),
		"# secret key of a pullet: let nobody read it\n# its public key is %s\n%s\n",
		public_key, secret_key);
	r = create(sys, path, 0600, text, why);
	explicit_bzero(text, sizeof(text));
	if (r)
		return r;
	snprintf(text, sizeof(text), "# public key of a pullet\n%s\n", public_key);
	r = create(sys, public_path, 0644, text, why);
	if (r)
		sys->unlinkat(AT_FDCWD, path, 0);
	return r;
}

/* ---- lists ---- */

static int compare(const void *a, const void *b)
{
	return memcmp(a, b, CURVE_KEY);
}

/* The keys of a text, into a list that has room for all. 0, or -EINVAL and why. */
static int parse(
	struct curve_allow *a, const char *path, const char *data, size_t len, char why[CURVE_WHY])
{
	struct lines l = {.at = data, .end = data + len};
	const char *text;
	int r;

	while ((r = next_key(&l, a->keys[a->count], &text)) == 1)
		a->count++;
	if (r)
		snprintf(why, CURVE_WHY,
			"the list %.300s: line %u is not a public key, which is 40 characters of "
			"Z85, and a comment behind a # if you like",
			path, l.number);
	else if (a->count == 0)
		snprintf(why, CURVE_WHY,
			"the list %.300s holds no public key: nobody could connect", path);
	if (r || a->count == 0)
		return -EINVAL;
	qsort(a->keys, a->count, CURVE_KEY, compare);
	return 0;
}

static int load(const struct sys *sys, struct curve_allow *a, const char *path, char why[CURVE_WHY])
{
	struct stat st;
	int fd = open_regular(sys, path, &st);
	size_t size = fd >= 0 && st.st_size < CURVE_MAX_ALLOW ? (size_t)st.st_size + 1 : 0;
	ssize_t n = fd < 0 ? fd : size == 0 ? -EMSGSIZE : -ENOMEM;
	char *data = malloc(size + 1);

	a->keys = calloc(size / TEXT_LEN + 1, CURVE_KEY);
	if (size && data && a->keys)
		n = read_all(sys, fd, data, size); /* it grew meanwhile: too large */
	if (fd >= 0)
		sys->close(fd);
	if (n < 0)
		snprintf(why, CURVE_WHY, "the list %.300s cannot be read: %s", path,
			n == -EMSGSIZE ? "it is larger than 4 MiB, or grew meanwhile"
			: n == -EINVAL ? "it is not a regular file"
				       : strerror((int)-n));
	else
		n = parse(a, path, data, (size_t)n, why);
	free(data);
	return (int)n;
}

static bool same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

int curve_allow_refresh(
	const struct sys *sys, struct curve_allow *a, const char *path, char why[CURVE_WHY])
{
	struct curve_allow fresh = {0};
	int r;

	/* looked at before it is read: what is written meanwhile is read next time */
	if (stat(path, &fresh.seen))
		memset(&fresh.seen, 0, sizeof(fresh.seen));
	if ((a->keys || fresh.seen.st_ino) && same(&a->seen, &fresh.seen))
		return 0;
	r = load(sys, &fresh, path, why);
	a->seen = fresh.seen;
	if (r) {
		curve_allow_fini(&fresh);
		return r;
	}
	free(a->keys);
	*a = fresh;
	return 1;
}

bool curve_allow_has(const struct curve_allow *a, const unsigned char key[CURVE_KEY])
{
	return a->count && bsearch(key, a->keys, a->count, CURVE_KEY, compare);
}

void curve_allow_fini(struct curve_allow *a)
{
	free(a->keys);
	*a = (struct curve_allow){0};
}

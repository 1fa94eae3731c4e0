/*
 * Looking up and reading the files of the embedded origin.
 *
 * Surprising: a file is read into memory before the first byte is sent, and read again if it
 * changed meanwhile, so that ETag and body always belong together.
 */
#include "origin/origin.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/openat2.h>

#include "crypto/digest.h"
#include "files/trusted.h"

#define RETRIES 5 /* of a file that is being written */
#define OPENS 100 /* of a path through `..` while others rename */

int origin_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static bool name_ends(const char *path, const char *ending)
{
	size_t len = strlen(path), n = strlen(ending);

	return len >= n && strcasecmp(path + len - n, ending) == 0;
}

/* What editors write beside a file: vim's and backups (x~, x.swp, 4913), Emacs' (#x#). Those that
 * begin with a dot are not served anyway. */
static bool is_of_editor(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	return name_ends(name, "~") || name_ends(name, ".swp") || strcmp(name, "4913") == 0 ||
	       (name[0] == '#' && name_ends(name, "#"));
}

bool origin_serves(const char *path)
{
	if (!path[0] || path[0] == '/' || strlen(path) > 1024 || is_of_editor(path))
		return false;
	for (const char *part = path; part; part = strchr(part, '/') ? strchr(part, '/') + 1 : NULL)
		if (part[0] == '.' || part[0] == '/' || part[0] == '\0')
			return false;
	return true;
}

/* O_NONBLOCK: a FIFO must not hang the server. */
static int open_beneath(int dir, const char *path, char *why)
{
	struct open_how how = {
		.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
	};
	long fd = -1;

	(void)why;
	errno = EAGAIN; /* a rename during the walk */
	for (int i = 0; i < OPENS && fd < 0 && errno == EAGAIN; i++)
		fd = syscall(SYS_openat2, dir, path, &how, sizeof(how));
	return fd < 0 ? -errno : (int)fd;
}

static bool same_state(const struct stat *a, const struct stat *b)
{
	return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static int read_to_end(int fd, size_t size, struct buffer *body)
{
	int r = buffer_reserve(body, size + 1);

	while (r == 0) {
		ssize_t n = read(fd, body->data + body->len, body->cap - body->len - 1);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		body->len += (size_t)n;
		body->data[body->len] = '\0';
		r = buffer_reserve(body, 4096);
	}
	return r;
}

static int open_anywhere(int dir, const char *path, char *why)
{
	(void)dir;
	return trusted_open(&sys_real, path, why);
}

/* Reads what the path stands for now. -EAGAIN: it changed during the reading. */
static int read_once(int (*open_it)(int dir, const char *path, char *why), int dir,
	const char *path, char *why, struct origin_file *f)
{
	struct stat before, after;
	char hex[DIGEST_HEX];
	int r, fd = open_it(dir, path, why);

	if (fd < 0)
		return fd;
	if (fstat(fd, &before))
		r = -errno;
	else if (!S_ISREG(before.st_mode))
		r = S_ISDIR(before.st_mode) ? -EISDIR : -EINVAL;
	else if (before.st_size > ORIGIN_MAX_FILE)
		r = -EFBIG;
	else
		r = read_to_end(fd, (size_t)before.st_size, &f->body);
	if (r == 0)
		r = fstat(fd, &after) ? -errno : same_state(&before, &after) ? 0 : -EAGAIN;
	if (r == 0)
		r = digest_sha256(f->body.data, f->body.len, NULL, 0, hex);
	if (r == 0) {
		snprintf(f->etag, sizeof(f->etag), "\"%.32s\"", hex);
		f->modified = after.st_mtime;
	}
	close(fd);
	return r;
}

static int read_stable(int (*open_it)(int dir, const char *path, char *why), int dir,
	const char *path, char *why, struct origin_file *ret_file)
{
	int r = -EAGAIN;

	buffer_init(&ret_file->body, ORIGIN_MAX_FILE + 8192);
	for (int i = 0; i < RETRIES && r == -EAGAIN; i++) {
		buffer_clear(&ret_file->body);
		r = read_once(open_it, dir, path, why, ret_file);
	}
	if (r)
		buffer_fini(&ret_file->body);
	return r;
}

int origin_read(int dir, const char *path, struct origin_file *ret_file)
{
	return origin_serves(path) ? read_stable(open_beneath, dir, path, NULL, ret_file) : -ENOENT;
}

int origin_read_path(const char *path, struct origin_file *ret_file, char why[FILE_WHY])
{
	return read_stable(open_anywhere, -1, path, why, ret_file);
}

const char *origin_content_type(const char *path)
{
	static const struct {
		const char *ending, *type;
	} table[] = {
		{".yaml", "application/yaml"},
		{".yml", "application/yaml"},
		{".json", "application/json"},
		{".env", "text/plain; charset=utf-8"},
		{".properties", "text/plain; charset=utf-8"},
		{".txt", "text/plain; charset=utf-8"},
		{".html", "text/html; charset=utf-8"},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (name_ends(path, table[i].ending))
			return table[i].type;
	return "application/octet-stream";
}

bool origin_etag_matches(const char *list, const char *etag)
{
	size_t n = strlen(etag);

	while (*list) {
		list += strspn(list, " \t,");
		if (*list == '*')
			return true;
		if (strncmp(list, "W/", 2) == 0)
			list += 2;
		if (strncmp(list, etag, n) == 0 && (list[n] == '\0' || strchr(" \t,", list[n])))
			return true;
		list += strcspn(list, ",");
	}
	return false;
}

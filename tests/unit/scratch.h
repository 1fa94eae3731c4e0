/*
 * A directory of its own for a test, and what stands in such a directory: files, settings, versions
 * of a config. What goes wrong fails the test.
 */
#ifndef PULLET_SCRATCH_H
#define PULLET_SCRATCH_H

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../agent/compose.h"
#include "../../agent/settings.h"
#include "../../agent/store.h"

#define SCRATCH_PATH 256

/* ---- directories and files ---- */

/* A directory on a disk: /tmp may lie in memory. */
static inline const char *scratch_disk(void)
{
	const char *dir = getenv("TMPDIR");

	return dir ? dir : "/var/tmp";
}

/* A directory in memory, where nothing waits for a disk; on a machine that has none, on a disk. */
static inline const char *scratch_memory(void)
{
	return access("/dev/shm", W_OK) ? scratch_disk() : "/dev/shm";
}

/* Skips the test where scratch_memory() is on a disk; tests/run tells why. To be called first. */
static inline void scratch_need_memory(void)
{
	struct statfs fs;

	if (statfs(scratch_memory(), &fs) == 0 && fs.f_type == TMPFS_MAGIC)
		return;
	print_message("# no tmpfs to write in, such as /dev/shm\n");
	skip();
}

static inline void scratch_open(char ret_path[SCRATCH_PATH], const char *base)
{
	snprintf(ret_path, SCRATCH_PATH, "%.200s/pullet-unit-XXXXXX", base);
	assert_non_null(mkdtemp(ret_path));
}

static inline void scratch_close(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		char inner[PATH_MAX];

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		snprintf(inner, sizeof(inner), "%.3000s/%.255s", path, e->d_name);
		if (unlink(inner))
			scratch_close(inner);
	}
	if (d)
		closedir(d);
	rmdir(path);
}

/* How many names it holds that have `part` in them. */
static inline unsigned scratch_count(const char *path, const char *part)
{
	DIR *d = opendir(path);
	struct dirent *e;
	unsigned n = 0;

	while (d && (e = readdir(d)))
		n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
		     strstr(e->d_name, part) != NULL;
	if (d)
		closedir(d);
	return n;
}

static inline void scratch_write(const char *dir, const char *name, const void *data, size_t len)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%.3000s/%.255s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), len);
	close(fd);
}

/* The bytes, with a NUL behind them; false when it is not there. */
static inline bool scratch_read(
	const char *dir, const char *name, char *ret, size_t size, size_t *ret_len)
{
	char path[PATH_MAX];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%.3000s/%.255s", dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, ret, size - 1);
	close(fd);
	assert_true(n >= 0 && (size_t)n < size - 1);
	ret[n] = '\0';
	if (ret_len)
		*ret_len = (size_t)n;
	return true;
}

static inline unsigned scratch_descriptors(void)
{
	return scratch_count("/proc/self/fd", "");
}

/* ---- settings ---- */

static inline void scratch_wrong(void *arg, const char *message)
{
	(void)arg;
	print_error("%s\n", message);
}

/* Of a whole configuration, as text of printf(). */
__attribute__((format(printf, 1, 2))) static inline struct settings *scratch_settings(
	const char *format, ...)
{
	struct settings *s = NULL;
	char text[16384];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	assert_in_range(n, 1, sizeof(text) - 1);
	assert_int_equal(settings_parse("test.yaml", text, (size_t)n, scratch_wrong, NULL, &s), 0);
	return s;
}

/* ---- versions ---- */

static inline void version_begin(struct version *v, struct buffer *body, uint64_t generation)
{
	buffer_init(body, 1u << 20);
	*v = (struct version){.generation = generation, .pulled_ms = 1};
	v->origin = strdup("pull");
	v->parts = calloc(STORE_MAX_PARTS + 1, sizeof(*v->parts));
	assert_true(v->origin && v->parts);
}

/* One part more; text NULL = it is absent. */
static inline void version_add(
	struct version *v, struct buffer *body, const char *url, const char *type, const char *text)
{
	struct part *p = &v->parts[v->part_count++];
	char etag[64] = "";

	assert_true(v->part_count <= STORE_MAX_PARTS + 1);
	if (text)
		snprintf(etag, sizeof(etag), "\"%llu-%zu\"", (unsigned long long)v->generation,
			v->part_count);
	assert_int_equal(part_init(p, url, etag, "", type), 0);
	p->absent = !text;
	p->len = text ? strlen(text) : 0;
	if (p->len)
		assert_int_equal(buffer_append(body, text, p->len), 0);
}

static inline void version_end(struct version *v, const struct buffer *body)
{
	assert_int_equal(
		digest_sha256(body->data ? body->data : "", body->len, NULL, 0, v->sha256), 0);
}

/* The pieces of a version that version_add() made of documents, each with or without a signature.
 */
static inline void version_pieces(const struct version *v, const struct buffer *body,
	struct compose_piece ret_pieces[STORE_MAX_PARTS])
{
	size_t at = 0, layer = 0;

	for (size_t i = 0; i < v->part_count; at += v->parts[i++].len) {
		bool signature = strcmp(v->parts[i].type, "minisig") == 0;

		layer += i && !signature;
		ret_pieces[i] = (struct compose_piece){
			&v->parts[i], body->data ? body->data + at : "", layer, signature, ""};
	}
}

/* Of one part. To be finished by version_fini(). */
static inline struct version version_of(uint64_t generation, const char *text)
{
	struct buffer body;
	struct version v;

	version_begin(&v, &body, generation);
	version_add(&v, &body, "http://example/web.yaml", "yaml", text);
	version_end(&v, &body);
	buffer_fini(&body);
	return v;
}

#endif

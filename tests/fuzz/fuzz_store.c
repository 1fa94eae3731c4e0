/*
 * Fuzz target: a state file; the first byte says how much of it (r, f). r: any bytes. f: a line of
 * facts, then the body, in which a byte 1 stands before the product; checksums are made here, else
 * no input would get as far as the facts ("@" in the line is the digest of the parts).
 *
 * What is checked beside memory: what loads is what agent/version/store.h promises, can be written,
 * and is the same when that is read. There is no disk: files are descriptors in memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "version/store.h"

#define GENERATION 7u
#define SHORT 16000u /* such facts can be written again, however their texts are escaped */
#define MAGIC "pullet-state 1 "
#define LARGEST (64u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int file = -1, written = -1;

static void demand(bool what)
{
	if (!what)
		abort();
}

static int memory(void)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	demand(fd >= 0 && fchmod(fd, 0600) == 0);
	return fd;
}

/* Directories are one without a state file in it. */
static int fake_openat(int dir, const char *path, int flags, mode_t mode)
{
	(void)dir, (void)path, (void)mode;
	if (flags & O_DIRECTORY)
		return open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (flags & O_CREAT)
		return dup(written = memory());
	demand(lseek(file, 0, SEEK_SET) == 0);
	return dup(file);
}

static int fake_mkdirat(int dir, const char *path, mode_t mode)
{
	(void)dir, (void)path, (void)mode;
	return 0;
}

static int fake_rename(int from_dir, const char *from, int to_dir, const char *to)
{
	(void)from_dir, (void)from, (void)to_dir, (void)to;
	close(file);
	file = written;
	return 0;
}

static int fake_unlinkat(int dir, const char *path, int flags)
{
	(void)dir, (void)path, (void)flags;
	return 0;
}

static void check(const struct version *v, const struct buffer *body)
{
	char digest[DIGEST_HEX];
	size_t sum = 0;

	demand(v->generation == GENERATION && version_origin(v));
	demand(v->part_count >= 1 && v->part_count <= VERSION_MAX_PARTS);
	for (size_t i = 0; i < v->part_count; i++) {
		const struct part *p = &v->parts[i];

		demand(p->url && p->etag && p->last_modified);
		demand(memchr(p->type, '\0', sizeof(p->type)) && p->len <= body->len - sum);
		sum += p->len;
	}
	demand(v->product_len <= body->len && sum == body->len - v->product_len);
	demand(digest_sha256(body->data ? body->data : "", sum, NULL, 0, digest) == 0 &&
		!strcmp(digest, v->sha256));
}

static void check_same(const struct version *a, const struct version *b)
{
	demand(version_same(a, b) && a->pulled_ms == b->pulled_ms);
	demand(a->product_len == b->product_len && !strcmp(version_origin(a), version_origin(b)));
	for (size_t i = 0; i < a->part_count; i++) {
		const struct part *p = &a->parts[i], *q = &b->parts[i];

		demand(!strcmp(p->url, q->url) && !strcmp(p->etag, q->etag) &&
			!strcmp(p->last_modified, q->last_modified) && !strcmp(p->type, q->type));
	}
}

/* Written and read again it is the same. */
static void check_again(struct store *s, const struct version *v, const struct buffer *body)
{
	const char *bytes = body->data ? body->data : "";
	char why[FILE_WHY];
	struct version again;
	struct buffer same;

	buffer_init(&same, LARGEST);
	demand(store_save(s, v, bytes, body->len, false, why) == 0);
	demand(store_load_generation(s, GENERATION, &again, &same) == 0);
	check(&again, &same);
	check_same(v, &again);
	demand(same.len == body->len && (!same.len || !memcmp(same.data, bytes, same.len)));
	version_fini(&again);
	buffer_fini(&same);
}

static void make_facts(const char *data, size_t size, struct buffer *out)
{
	const char *line_end = memchr(data, '\n', size), *product, *at;
	size_t len;
	char digest[DIGEST_HEX];
	struct buffer rest;

	buffer_init(&rest, LARGEST);
	if (!line_end)
		line_end = data + size;
	len = (size_t)(data + size - line_end);
	product = len ? memchr(line_end + 1, 1, len - 1) : NULL;
	demand(digest_sha256(line_end + (len > 0),
		       product ? (size_t)(product - line_end) - 1 : len - (len > 0), NULL, 0,
		       digest) == 0);
	while ((at = memchr(data, '@', (size_t)(line_end - data)))) {
		buffer_append(&rest, data, (size_t)(at - data));
		buffer_append_string(&rest, digest);
		data = at + 1;
	}
	buffer_append(&rest, data, (size_t)((product ? product : line_end + len) - data));
	if (product)
		buffer_append(&rest, product + 1, (size_t)(line_end + len - product) - 1);
	demand(digest_sha256(rest.data ? rest.data : "", rest.len, NULL, 0, digest) == 0);
	buffer_printf(out, MAGIC "%s\n", digest);
	demand(buffer_append(out, rest.data ? rest.data : "", rest.len) == 0);
	buffer_fini(&rest);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sys sys = sys_real;
	struct store *s = NULL;
	struct buffer bytes, body;
	struct version v;
	char why[FILE_WHY];
	int r;

	if (size == 0 || (*data != 'r' && *data != 'f') || size > SHORT)
		return 0;
	sys.openat = fake_openat;
	sys.mkdirat = fake_mkdirat;
	sys.renameat = fake_rename;
	sys.unlinkat = fake_unlinkat;
	buffer_init(&bytes, LARGEST);
	buffer_init(&body, LARGEST);
	if (*data == 'r')
		buffer_append(&bytes, data + 1, size - 1);
	else
		make_facts((const char *)data + 1, size - 1, &bytes);
	file = memory();
	demand(write(file, bytes.data ? bytes.data : "", bytes.len) == (ssize_t)bytes.len);
	demand(store_open(&sys, "/", "web", STORE_KEEP, &s, why) == 0);
	r = store_load_generation(s, GENERATION, &v, &body);
	demand(r == 0 || (r == -EBADMSG && body.len == 0));
	if (r == 0) {
		check(&v, &body);
		check_again(s, &v, &body);
		version_fini(&v);
	}
	store_close(s);
	close(file);
	buffer_fini(&bytes);
	buffer_fini(&body);
	return 0;
}

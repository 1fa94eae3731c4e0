/*
 * The state directory of one config. Surprising: a damaged file is never deleted; it is set aside
 * as GENERATION.bad, and its number is never used again.
 */
#include "store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "document.h"
#include "jsontext.h"

#define NUMBER 20
#define MAX_FILE (257u << 20)
#define MAGIC "pullet-state 1 "
#define MAX_LISTED 1000

struct store {
	const struct sys *sys;
	char *path; /* opened for each use: a thousand configs are not a thousand descriptors */
	bool in_memory;
	uint64_t highest; /* number of any file seen or written */
};

static void file_name(uint64_t generation, char name[NUMBER + 8])
{
	snprintf(name, NUMBER + 8, "%020" PRIu64, generation);
}

/* "00000000000000000012" or, with a tail, "00000000000000000012.bad". */
static bool number_of(const char *name, const char *tail, uint64_t *ret_number)
{
	if (strspn(name, "0123456789") != NUMBER || strcmp(name + NUMBER, tail) != 0)
		return false;
	errno = 0;
	*ret_number = strtoull(name, NULL, 10);
	return errno == 0;
}

static int descending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x < y) - (x > y);
}

static int open_dir(const struct store *s)
{
	return s->sys->openat(
		AT_FDCWD, s->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
}

/* The numbers of the files with this tail, highest first; at most MAX_LISTED. */
static size_t list(const struct store *s, int dir, const char *tail, uint64_t numbers[MAX_LISTED])
{
	int fd = s->sys->openat(
		dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0); /* a position of its own */
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;
	size_t n = 0;

	if (!d) {
		if (fd >= 0)
			s->sys->close(fd);
		return 0;
	}
	while (n < MAX_LISTED && (e = readdir(d)))
		if (number_of(e->d_name, tail, &numbers[n]))
			n++;
	closedir(d);
	qsort(numbers, n, sizeof(numbers[0]), descending);
	return n;
}

static void prune(const struct store *s, int dir, const char *tail)
{
	uint64_t numbers[MAX_LISTED];
	size_t n = list(s, dir, tail, numbers);
	char name[NUMBER + 8];

	for (size_t i = STORE_KEEP; i < n; i++) {
		file_name(numbers[i], name);
		memcpy(name + NUMBER, tail, strlen(tail) + 1);
		s->sys->unlinkat(dir, name, 0);
	}
}

/* Makes and opens the directory. The descriptor, or -errno. */
static int make_dir(const struct store *s)
{
	int dir;

	if (s->sys->mkdirat(AT_FDCWD, s->path, 0700) && errno != EEXIST)
		return -errno;
	dir = open_dir(s);
	return dir < 0 ? -errno : dir;
}

int store_open(const struct sys *sys, const char *state_dir, const char *name,
	struct store **ret_store, char why[FILE_WHY])
{
	struct store *s = calloc(1, sizeof(*s));
	uint64_t numbers[MAX_LISTED];
	int dir;

	if (!s || asprintf(&s->path, "%s/%s", state_dir, name) < 0) {
		free(s);
		snprintf(why, FILE_WHY, "out of memory");
		return -ENOMEM;
	}
	s->sys = sys;
	dir = make_dir(s);
	if (dir < 0) {
		snprintf(why, FILE_WHY,
			"cannot use the state directory %.200s: %s: it must belong to the agent's "
			"user",
			s->path, strerror(-dir));
		store_close(s);
		return dir;
	}
	s->in_memory = file_in_memory(dir);
	file_clean(sys, dir, NULL);
	prune(s, dir, "");
	if (list(s, dir, "", numbers) > 0)
		s->highest = numbers[0];
	if (list(s, dir, ".bad", numbers) > 0 && numbers[0] > s->highest)
		s->highest = numbers[0];
	sys->close(dir);
	*ret_store = s;
	return 0;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	free(s->path);
	free(s);
}

uint64_t store_next_generation(const struct store *s)
{
	return s->highest + 1;
}

/* ---- the facts, as one line of JSON ---- */

static const struct {
	const char *name;
	size_t offset, size;
} texts[] = {
	{"sha256", offsetof(struct version, sha256), sizeof(((struct version *)0)->sha256)},
	{"etag", offsetof(struct version, etag), sizeof(((struct version *)0)->etag)},
	{"last_modified", offsetof(struct version, last_modified),
		sizeof(((struct version *)0)->last_modified)},
	{"type", offsetof(struct version, type), sizeof(((struct version *)0)->type)},
};

static void write_facts(const struct version *v, struct buffer *out)
{
	buffer_append(out, "{", 1);
	jsontext_number(out, "generation", v->generation);
	jsontext_number(out, "pulled_ms", (unsigned long long)v->pulled_ms);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		jsontext_member(out, texts[i].name, (const char *)v + texts[i].offset);
	jsontext_member(out, "url", v->url);
	buffer_append(out, "}\n", 2);
}

static bool read_facts(const char *line, size_t len, struct version *ret)
{
	struct document *d = NULL;
	struct document_error e;
	const struct node *n, *root;
	bool good;

	if (document_parse(DOCUMENT_JSON, line, len, 0, &d, &e))
		return false;
	root = document_root(d);
	*ret = (struct version){0};
	n = node_find(root, "generation");
	good = n && n->type == NODE_INT;
	if (good)
		ret->generation = (uint64_t)n->integer;
	n = node_find(root, "pulled_ms");
	if (n && n->type == NODE_INT)
		ret->pulled_ms = n->integer;
	for (size_t i = 0; good && i < sizeof(texts) / sizeof(texts[0]); i++) {
		n = node_find(root, texts[i].name);
		good = n && n->type == NODE_STRING && n->text_len < texts[i].size;
		if (good)
			memcpy((char *)ret + texts[i].offset, n->text, n->text_len + 1);
	}
	n = node_find(root, "url");
	good = good && n && n->type == NODE_STRING && (ret->url = strdup(n->text));
	document_free(d);
	return good;
}

/* ---- save and load ---- */

int store_save(struct store *s, const struct version *v, const void *body, size_t len, bool sync,
	char why[FILE_WHY])
{
	const struct file_options options = {
		.mode = 0600, .uid = (uid_t)-1, .gid = (gid_t)-1, .sync = sync};
	char name[NUMBER + 8], digest[DIGEST_HEX];
	struct buffer facts, file;
	int r, dir = open_dir(s), open_error = errno;

	buffer_init(&facts, 64u << 10);
	buffer_init(&file, MAX_FILE);
	write_facts(v, &facts);
	r = facts.error ? facts.error : digest_sha256(facts.data, facts.len, body, len, digest);
	if (r == 0) {
		buffer_reserve(&file, sizeof(MAGIC) + DIGEST_HEX + facts.len + len);
		buffer_printf(&file, MAGIC "%s\n", digest);
		buffer_append(&file, facts.data, facts.len);
		r = buffer_append(&file, body, len);
	}
	if (r == 0 && dir < 0)
		r = -open_error;
	if (r) {
		snprintf(why, FILE_WHY, "cannot make a state file in %.200s: %s", s->path,
			strerror(-r));
	} else {
		file_name(v->generation, name);
		r = file_replace(s->sys, dir, name, file.data, file.len, &options, why);
	}
	if (r >= 0)
		s->highest = v->generation;
	if (r == FILE_NOT_DURABLE) /* asked to be on the disk, and is not known to be */
		r = -EIO;
	if (dir >= 0)
		s->sys->close(dir);
	buffer_fini(&facts);
	buffer_fini(&file);
	return r;
}

void store_prune(struct store *s)
{
	char name[NUMBER + 8];
	int dir;

	if (s->highest <= STORE_KEEP)
		return;
	dir = open_dir(s);
	if (dir < 0)
		return;
	file_name(s->highest - STORE_KEEP, name);
	s->sys->unlinkat(dir, name, 0);
	s->sys->close(dir);
}

bool store_in_memory(const struct store *s)
{
	return s->in_memory;
}

/* Takes a state file apart and verifies it. On success body holds the document alone. */
static bool verify(uint64_t generation, struct buffer *file, struct version *ret_version)
{
	size_t head = strlen(MAGIC) + DIGEST_HEX; /* the digest's NUL stands for the newline */
	char digest[DIGEST_HEX];
	const char *line_end;

	if (file->len < head || memcmp(file->data, MAGIC, strlen(MAGIC)) != 0 ||
		file->data[head - 1] != '\n')
		return false;
	if (digest_sha256(file->data + head, file->len - head, NULL, 0, digest) ||
		memcmp(digest, file->data + strlen(MAGIC), DIGEST_HEX - 1) != 0)
		return false;
	line_end = memchr(file->data + head, '\n', file->len - head);
	if (!line_end ||
		!read_facts(file->data + head, (size_t)(line_end - file->data) - head, ret_version))
		return false;
	head = (size_t)(line_end - file->data) + 1;
	memmove(file->data, file->data + head, file->len - head + 1);
	file->len -= head;
	if (digest_sha256(file->data, file->len, NULL, 0, digest))
		digest[0] = '\0';
	if (ret_version->generation == generation && strcmp(digest, ret_version->sha256) == 0)
		return true;
	free(ret_version->url);
	ret_version->url = NULL;
	return false;
}

static void set_aside(struct store *s, int dir, uint64_t generation)
{
	char name[NUMBER + 8], bad[NUMBER + 8];

	file_name(generation, name);
	file_name(generation, bad);
	memcpy(bad + NUMBER, ".bad", 5);
	s->sys->renameat(dir, name, dir, bad);
	prune(s, dir, ".bad");
}

int store_load(
	struct store *s, struct version *ret_version, struct buffer *body, unsigned *ret_damaged)
{
	uint64_t numbers[MAX_LISTED];
	int r = -ENOENT, dir = open_dir(s);
	char name[NUMBER + 8];
	struct buffer file;
	size_t n;

	*ret_damaged = 0;
	if (dir < 0)
		return -errno;
	buffer_init(&file, MAX_FILE);
	n = list(s, dir, "", numbers);
	for (size_t i = 0; i < n; i++) {
		file_name(numbers[i], name);
		buffer_clear(&file);
		r = file_read(s->sys, dir, name, &file);
		if (r == -ENOMEM || r == -EMFILE || r == -ENFILE)
			break; /* our trouble, not the file's */
		if (r == 0 && verify(numbers[i], &file, ret_version)) {
			r = buffer_append(body, file.data, file.len);
			break;
		}
		if (r == 0) /* what cannot even be read stays where it is */
			set_aside(s, dir, numbers[i]);
		++*ret_damaged;
		r = -ENOENT;
	}
	buffer_fini(&file);
	s->sys->close(dir);
	return r;
}

int store_sync(struct store *s, uint64_t generation)
{
	char name[NUMBER + 8];
	int r, dir = open_dir(s);

	if (dir < 0)
		return -errno;
	file_name(generation, name);
	r = file_sync(s->sys, dir, name);
	s->sys->close(dir);
	return r;
}

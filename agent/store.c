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
#define MAX_FILE (256u << 20)
#define MAGIC "pullet-state 1 "
#define MAX_LISTED 1000

struct store {
	const struct sys *sys;
	int dir;
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

/* The numbers of the files with this tail, highest first; at most MAX_LISTED. */
static size_t list(const struct store *s, const char *tail, uint64_t numbers[MAX_LISTED])
{
	int fd = s->sys->openat(s->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
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

static void prune(const struct store *s, const char *tail)
{
	uint64_t numbers[MAX_LISTED];
	size_t n = list(s, tail, numbers);
	char name[NUMBER + 8];

	for (size_t i = STORE_KEEP; i < n; i++) {
		file_name(numbers[i], name);
		memcpy(name + NUMBER, tail, strlen(tail) + 1);
		s->sys->unlinkat(s->dir, name, 0);
	}
}

int store_open(const struct sys *sys, const char *state_dir, const char *name,
	struct store **ret_store, char why[FILE_WHY])
{
	struct store *s = calloc(1, sizeof(*s));
	int r = 0, parent = -1;
	uint64_t numbers[MAX_LISTED];

	if (!s) {
		snprintf(why, FILE_WHY, "out of memory");
		return -ENOMEM;
	}
	s->sys = sys;
	s->dir = -1;
	parent = sys->openat(AT_FDCWD, state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (parent < 0 || (sys->mkdirat(parent, name, 0700) && errno != EEXIST) ||
		(s->dir = sys->openat(
			 parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0)) < 0)
		r = -errno;
	if (r)
		snprintf(why, FILE_WHY,
			"cannot use the state directory %.128s/%.64s: %s: it must belong to the "
			"agent's user",
			state_dir, name, strerror(-r));
	if (parent >= 0)
		sys->close(parent);
	if (r) {
		store_close(s);
		return r;
	}
	s->in_memory = file_in_memory(s->dir);
	file_clean(sys, s->dir, NULL);
	prune(s, "");
	if (list(s, "", numbers) > 0)
		s->highest = numbers[0];
	if (list(s, ".bad", numbers) > 0 && numbers[0] > s->highest)
		s->highest = numbers[0];
	*ret_store = s;
	return 0;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	if (s->dir >= 0)
		s->sys->close(s->dir);
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
	{"url", offsetof(struct version, url), sizeof(((struct version *)0)->url)},
};

static void write_facts(const struct version *v, struct buffer *out)
{
	buffer_append(out, "{", 1);
	jsontext_number(out, "generation", v->generation);
	jsontext_number(out, "pulled_ms", (unsigned long long)v->pulled_ms);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		jsontext_member(out, texts[i].name, (const char *)v + texts[i].offset);
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
	int r;

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
	if (r) {
		snprintf(why, FILE_WHY, "cannot make the state file: %s", strerror(-r));
	} else {
		file_name(v->generation, name);
		r = file_replace(s->sys, s->dir, name, file.data, file.len, &options, why);
	}
	if (r >= 0) {
		s->highest = v->generation;
		r = 0;
	}
	buffer_fini(&facts);
	buffer_fini(&file);
	return r;
}

void store_prune(struct store *s)
{
	char name[NUMBER + 8];

	if (s->highest <= STORE_KEEP)
		return;
	file_name(s->highest - STORE_KEEP, name);
	s->sys->unlinkat(s->dir, name, 0);
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
		return false;
	return ret_version->generation == generation && strcmp(digest, ret_version->sha256) == 0;
}

static void set_aside(struct store *s, uint64_t generation)
{
	char name[NUMBER + 8], bad[NUMBER + 8];

	file_name(generation, name);
	file_name(generation, bad);
	memcpy(bad + NUMBER, ".bad", 5);
	s->sys->renameat(s->dir, name, s->dir, bad);
	prune(s, ".bad");
}

int store_load(
	struct store *s, struct version *ret_version, struct buffer *body, unsigned *ret_damaged)
{
	uint64_t numbers[MAX_LISTED];
	size_t n = list(s, "", numbers);
	char name[NUMBER + 8];
	struct buffer file;
	int r = -ENOENT;

	*ret_damaged = 0;
	buffer_init(&file, MAX_FILE);
	for (size_t i = 0; i < n; i++) {
		file_name(numbers[i], name);
		buffer_clear(&file);
		r = file_read(s->sys, s->dir, name, &file);
		if (r == -ENOMEM || r == -EMFILE || r == -ENFILE)
			break; /* our trouble, not the file's */
		if (r == 0 && verify(numbers[i], &file, ret_version)) {
			r = buffer_append(body, file.data, file.len);
			break;
		}
		set_aside(s, numbers[i]);
		++*ret_damaged;
		r = -ENOENT;
	}
	buffer_fini(&file);
	return r;
}

int store_sync(struct store *s, uint64_t generation)
{
	char name[NUMBER + 8];

	file_name(generation, name);
	return file_sync(s->sys, s->dir, name);
}

/*
 * The state directory of one config. Surprising: a damaged file is never deleted; it is set aside
 * as GENERATION.bad, and its number is never used again.
 */
#include "version/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/name_case.h"
#include "files/trusted.h"
#include "version/facts.h"

#define NUMBER 20
#define MAX_FILE (257u << 20)
#define MAGIC "pullet-state 1 "
#define MAX_LISTED (STORE_MAX_KEEP + STORE_UNSYNCED + 4)

struct store {
	const struct sys *sys;
	const char *state_dir, *name; /* opened for each use: a thousand configs are not a
				       * thousand descriptors */
	unsigned keep;
	bool in_memory;
	bool was_open;           /* the directory was there */
	bool failed;             /* the last file could not be saved */
	_Atomic bool dir_synced; /* its name is on the disk; the worker sets it while it syncs */
	uint64_t highest;        /* number of any file seen or written */
};

static void file_name(uint64_t generation, char name[NUMBER + 8])
{
	snprintf(name, NUMBER + 8, "%020" PRIu64, generation);
}

/* "00000000000000000012" or, with a tail, "00000000000000000012.bad". */
static bool parse_file_name(const char *name, const char *tail, uint64_t *ret_number)
{
	if (strspn(name, "0123456789") != NUMBER || strcmp(name + NUMBER, tail) != 0)
		return false;
	errno = 0;
	*ret_number = strtoull(name, NULL, 10);
	return errno == 0;
}

static int compare_descending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x < y) - (x > y);
}

static int describe_error(const struct store *s, char why[FILE_WHY], int error)
{
	char remedy[FILE_REMEDY];

	file_remedy(remedy, -error, false);
	snprintf(why, FILE_WHY, "cannot use the state directory %.160s/%s: %s", s->state_dir,
		s->name,
		error == -EPERM ? "it belongs to another user, or others can write in it; give it "
				  "to the agent's user (chown), and chmod 0700"
				: remedy);
	return error;
}

/* Opens the directory, with one above it that the caller has open. */
static int open_below(const struct store *s, int parent, char why[FILE_WHY])
{
	int dir = trusted_open_below(s->sys, parent, s->name);

	return dir < 0 ? describe_error(s, why, dir) : dir;
}

static int open_parent(const struct store *s, char why[FILE_WHY])
{
	return trusted_open_dir(s->sys, s->state_dir, TRUSTED_OWN, why);
}

/* As open_parent(); one that somebody removed while the agent runs is made again. */
static int provide_parent(const struct store *s, char why[FILE_WHY])
{
	bool made;

	return s->was_open
		       ? trusted_provide_dir(s->sys, s->state_dir, 0700, TRUSTED_OWN, &made, why)
		       : open_parent(s, why);
}

/* The descriptor, or -errno. */
static int open_store_dir(const struct store *s)
{
	char why[FILE_WHY];
	int parent = open_parent(s, why), dir;

	if (parent < 0)
		return parent;
	dir = open_below(s, parent, why);
	s->sys->close(parent);
	return dir;
}

/* The numbers of the files with this tail, highest first; at most MAX_LISTED. How many, or -errno.
 */
static int list_generations(
	const struct store *s, int dir, const char *tail, uint64_t numbers[MAX_LISTED])
{
	DIR *d = file_list_dir(s->sys, dir, ".");
	struct dirent *e;
	int n = 0, error;

	if (!d)
		return -errno;
	while (n < MAX_LISTED && (errno = 0, e = readdir(d)))
		if (parse_file_name(e->d_name, tail, &numbers[n]))
			n++;
	error = n < MAX_LISTED ? errno : 0;
	closedir(d);
	qsort(numbers, (size_t)n, sizeof(numbers[0]), compare_descending);
	return error ? -error : n;
}

/* Removes all but the first that are kept; changes the order of the numbers. */
static void remove_old(const struct store *s, int dir, const char *tail, uint64_t *numbers, int n)
{
	char name[NUMBER + 8];

	qsort(numbers, (size_t)n, sizeof(numbers[0]), compare_descending);
	for (int i = (int)s->keep; i < n; i++) {
		file_name(numbers[i], name);
		memcpy(name + NUMBER, tail, strlen(tail) + 1);
		s->sys->unlinkat(dir, name, 0);
	}
}

/* Reads the directory once: removes temporary files, and finds the highest number of any file, the
 * damaged ones included. 0 or -errno: it must be known. */
static int clean_directory(struct store *s, int dir)
{
	uint64_t number;
	DIR *d = file_list_dir(s->sys, dir, ".");
	struct dirent *e;
	int error;

	if (!d)
		return -errno;
	while ((errno = 0, e = readdir(d))) {
		if (file_temporary(e->d_name))
			s->sys->unlinkat(dir, e->d_name, 0);
		else if ((parse_file_name(e->d_name, "", &number) ||
				 parse_file_name(e->d_name, ".bad", &number)) &&
			 number > s->highest)
			s->highest = number;
	}
	error = errno;
	closedir(d);
	return -error;
}

/* Opens the directory, which is made where there is none. The descriptor, or -errno. */
static int make_dir(struct store *s, char why[FILE_WHY])
{
	int parent = provide_parent(s, why), dir;

	if (parent < 0)
		return parent;
	dir = open_below(s, parent, why);
	if (dir == -ENOENT) {
		if (s->sys->mkdirat(parent, s->name, 0700))
			dir = describe_error(s, why, -errno);
		else
			s->dir_synced = false;
		if (dir == -ENOENT || dir == -EEXIST)
			dir = open_below(s, parent, why);
	}
	if (dir >= 0 && name_case_check(s->sys, parent, s->name, why)) {
		s->sys->close(dir);
		dir = -EEXIST;
	}
	s->sys->close(parent);
	return dir;
}

int store_open(const struct sys *sys, const char *state_dir, const char *name, size_t keep,
	struct store **ret_store, char why[FILE_WHY])
{
	struct store *s = calloc(1, sizeof(*s));
	int r, dir;

	if (!s) {
		snprintf(why, FILE_WHY, "out of memory");
		return -ENOMEM;
	}
	s->sys = sys;
	s->state_dir = state_dir;
	s->name = name;
	s->keep = (unsigned)keep;
	r = dir = make_dir(s, why);
	if (dir >= 0) {
		s->in_memory = file_in_memory(dir);
		r = clean_directory(s, dir);
		sys->close(dir);
		if (r < 0)
			describe_error(s, why, r);
	}
	if (r < 0) {
		store_close(s);
		return r;
	}
	s->was_open = true;
	*ret_store = s;
	return 0;
}

void store_close(struct store *s)
{
	free(s);
}

uint64_t store_next_generation(const struct store *s)
{
	return s->highest + 1;
}

void store_go_on_from(struct store *s, uint64_t generation)
{
	if (s->highest < generation)
		s->highest = generation;
}

/* ---- save and load ---- */

/* The parts' bytes and the product are all of the body, and the parts are what was accepted. */
static int check_body(struct version *v, const char *body, size_t len)
{
	char digest[DIGEST_HEX];
	size_t sum = 0;

	if (v->product_len > len)
		return -EBADMSG;
	len -= v->product_len;
	if (v->part_count == 1 && v->parts[0].len == SIZE_MAX) /* written before there were parts */
		v->parts[0].len = len;
	for (size_t i = 0; i < v->part_count; i++) {
		if (v->parts[i].len > len - sum)
			return -EBADMSG;
		sum += v->parts[i].len;
	}
	if (digest_sha256(body, len, NULL, 0, digest))
		return -ENOMEM;
	return sum == len && strcmp(digest, v->sha256) == 0 ? 0 : -EBADMSG;
}

/* A directory that somebody made, this process or one that was killed, has its name in its parent:
 * once in a process that is brought to the disk too. 0 or -errno. */
static int sync_dir_name(struct store *s, int dir, char why[FILE_WHY])
{
	int r = s->dir_synced ? 0 : file_sync_parent(s->sys, dir, why);

	s->dir_synced = r == 0;
	return r;
}

int store_save(struct store *s, const struct version *v, const void *body, size_t len, bool sync,
	char why[FILE_WHY])
{
	const struct file_options options = {
		.mode = 0600, .uid = (uid_t)-1, .gid = (gid_t)-1, .sync = sync, .again = s->failed};
	char name[NUMBER + 8], digest[DIGEST_HEX], remedy[FILE_REMEDY];
	struct buffer facts, file;
	int r, dir = make_dir(s, why); /* somebody may have removed it */

	buffer_init(&facts, FACTS_LARGEST);
	buffer_init(&file, MAX_FILE);
	facts_append(v, &facts);
	r = facts.error ? facts.error : digest_sha256(facts.data, facts.len, body, len, digest);
	if (r == 0) {
		buffer_reserve(&file, sizeof(MAGIC) + DIGEST_HEX + facts.len + len);
		buffer_printf(&file, MAGIC "%s\n", digest);
		buffer_append(&file, facts.data, facts.len);
		r = buffer_append(&file, body, len);
	}
	if (dir < 0)
		r = dir;
	if (r && r != -EPERM) {
		file_remedy(remedy, -r, false);
		snprintf(why, FILE_WHY, "cannot make a state file in %.160s/%s: %s", s->state_dir,
			s->name, remedy);
	} else if (r == 0) {
		file_name(v->generation, name);
		r = file_replace(s->sys, dir, name, file.data, file.len, &options, why);
		s->failed = r < 0;
	}
	if (r >= 0)
		s->highest = v->generation;
	if (r == 0 && sync)
		r = sync_dir_name(s, dir, why);
	if (r == FILE_NOT_DURABLE) /* asked to be on the disk, and is not known to be */
		r = -EIO;
	if (dir >= 0)
		s->sys->close(dir);
	buffer_fini(&facts);
	buffer_fini(&file);
	return r;
}

static bool is_spared(uint64_t generation, const uint64_t *spared, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (spared[i] == generation)
			return true;
	return false;
}

static void remove_version(const struct store *s, int dir, uint64_t generation)
{
	char name[NUMBER + 8];

	file_name(generation, name);
	s->sys->unlinkat(dir, name, 0);
}

/* Moves it, if it is there and not the newest, behind all others: it is removed first. */
static void prune_first(uint64_t *numbers, int n, uint64_t generation)
{
	for (int i = 1; i < n; i++) {
		if (numbers[i] != generation)
			continue;
		memmove(&numbers[i], &numbers[i + 1], (size_t)(n - i - 1) * sizeof(numbers[0]));
		numbers[n - 1] = generation;
		return;
	}
}

void store_prune(
	struct store *s, bool synced, const uint64_t *spared, size_t count, uint64_t repeated)
{
	bool safe = synced || s->in_memory;
	size_t keep = s->keep + (safe ? 0 : STORE_UNSYNCED);
	uint64_t numbers[MAX_LISTED];
	int n, dir = s->highest > keep ? open_store_dir(s) : -1;

	if (dir < 0)
		return;
	n = list_generations(s, dir, "", numbers);
	if (safe && !is_spared(repeated, spared, count))
		prune_first(numbers, n, repeated);
	for (int i = (int)keep; i < n; i++)
		if (!is_spared(numbers[i], spared, count))
			remove_version(s, dir, numbers[i]);
	s->sys->close(dir);
}

void store_remove(struct store *s, uint64_t generation)
{
	char name[NUMBER + 8];
	int dir = open_store_dir(s);

	if (dir < 0)
		return;
	file_name(generation, name);
	s->sys->unlinkat(dir, name, 0);
	if (!s->in_memory)
		s->sys->fsync(dir);
	s->sys->close(dir);
}

bool store_in_memory(const struct store *s)
{
	return s->in_memory;
}

/* Takes a state file apart and verifies it. On success file holds the document alone. 0, -EBADMSG
 * where it is damaged, or -ENOMEM. */
static int verify_file(uint64_t generation, struct buffer *file, struct version *ret_version)
{
	size_t head = strlen(MAGIC) + DIGEST_HEX; /* the digest's NUL stands for the newline */
	char digest[DIGEST_HEX];
	const char *line_end;
	int r;

	if (file->len < head || memcmp(file->data, MAGIC, strlen(MAGIC)) != 0 ||
		file->data[head - 1] != '\n')
		return -EBADMSG;
	if (digest_sha256(file->data + head, file->len - head, NULL, 0, digest))
		return -ENOMEM;
	line_end = memchr(file->data + head, '\n', file->len - head);
	if (!line_end || memcmp(digest, file->data + strlen(MAGIC), DIGEST_HEX - 1) != 0)
		return -EBADMSG;
	r = facts_parse(file->data + head, (size_t)(line_end - file->data) - head, ret_version);
	if (r)
		return r;
	head = (size_t)(line_end - file->data) + 1;
	memmove(file->data, file->data + head, file->len - head + 1);
	file->len -= head;
	r = ret_version->generation == generation ? check_body(ret_version, file->data, file->len)
						  : -EBADMSG;
	if (r)
		version_fini(ret_version);
	return r;
}

static void set_aside(struct store *s, int dir, uint64_t generation)
{
	uint64_t numbers[MAX_LISTED];
	int n;
	char name[NUMBER + 8], bad[NUMBER + 8];

	file_name(generation, name);
	file_name(generation, bad);
	memcpy(bad + NUMBER, ".bad", 5);
	s->sys->renameat(dir, name, dir, bad);
	n = list_generations(s, dir, ".bad", numbers);
	remove_old(s, dir, ".bad", numbers, n < 0 ? 0 : n);
}

/* Reads and verifies one file. 0; -EBADMSG where it is damaged; -EMSGSIZE where body is too small;
 * or -errno. */
static int read_state_file(const struct store *s, int dir, uint64_t generation, struct buffer *file,
	struct version *ret_version, struct buffer *body)
{
	char name[NUMBER + 8];
	int r;

	file_name(generation, name);
	buffer_clear(file);
	r = file_read(s->sys, dir, name, file);
	if (r == -EMSGSIZE)
		r = -EFBIG;
	if (r == 0)
		r = verify_file(generation, file, ret_version);
	if (r)
		return r;
	r = buffer_append(body, file->data, file->len);
	if (r)
		version_fini(ret_version);
	return r;
}

int store_load(
	struct store *s, struct version *ret_version, struct buffer *body, unsigned *ret_damaged)
{
	*ret_damaged = 0;
	return store_load_below(s, UINT64_MAX, false, ret_version, body, ret_damaged);
}

int store_load_below(struct store *s, uint64_t below, bool patient, struct version *ret_version,
	struct buffer *body, unsigned *damaged)
{
	uint64_t numbers[MAX_LISTED];
	int n, r = -ENOENT, dir = open_store_dir(s);
	struct buffer file;

	if (dir < 0)
		return dir;
	buffer_init(&file, MAX_FILE);
	n = list_generations(s, dir, "", numbers);
	if (n < 0)
		r = n;
	for (int i = 0; i < n; i++) {
		if (numbers[i] >= below)
			continue;
		r = read_state_file(s, dir, numbers[i], &file, ret_version, body);
		if (r == 0 || r == -EMSGSIZE || file_error_is_ours(-r) ||
			(patient && file_error_may_pass(-r)))
			break;
		if (r == -EBADMSG) /* what cannot even be read stays where it is */
			set_aside(s, dir, numbers[i]);
		++*damaged;
		r = -ENOENT;
	}
	buffer_fini(&file);
	s->sys->close(dir);
	return r;
}

int store_load_generation(
	struct store *s, uint64_t generation, struct version *ret_version, struct buffer *body)
{
	struct buffer file;
	int r, dir = open_store_dir(s);

	if (dir < 0)
		return dir;
	buffer_init(&file, MAX_FILE);
	r = read_state_file(s, dir, generation, &file, ret_version, body);
	buffer_fini(&file);
	s->sys->close(dir);
	return r;
}

size_t store_list(struct store *s, uint64_t ret_generations[STORE_MAX_KEEP])
{
	uint64_t numbers[MAX_LISTED];
	int n = 0, dir = open_store_dir(s);

	if (dir >= 0) {
		n = list_generations(s, dir, "", numbers);
		s->sys->close(dir);
	}
	if (n > STORE_MAX_KEEP)
		n = STORE_MAX_KEEP;
	if (n <= 0)
		return 0;
	memcpy(ret_generations, numbers, (size_t)n * sizeof(numbers[0]));
	return (size_t)n;
}

int store_describe_file(struct store *s, uint64_t generation, struct store_file *ret_file)
{
	char name[NUMBER + 8];
	struct stat st;
	int r, dir = open_store_dir(s);

	if (dir < 0)
		return dir;
	file_name(generation, name);
	r = fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) ? -errno : 0;
	s->sys->close(dir);
	if (r)
		return r;
	ret_file->at_ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
	ret_file->bytes = (size_t)st.st_size;
	return 0;
}

int store_dir(const struct store *s)
{
	return open_store_dir(s);
}

int store_sync(struct store *s, uint64_t generation)
{
	char name[NUMBER + 8], why[FILE_WHY];
	int r, dir = open_store_dir(s);

	if (dir < 0)
		return dir;
	file_name(generation, name);
	r = file_sync(s->sys, dir, name);
	if (r == 0)
		r = sync_dir_name(s, dir, why);
	s->sys->close(dir);
	return r;
}

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

#include "document/document.h"
#include "text/json_writer.h"
#include "files/trusted.h"

#define NUMBER 20
#define MAX_FILE (257u << 20)
#define MAGIC "pullet-state 1 "
#define MAX_LISTED (STORE_MAX_KEEP + STORE_UNSYNCED + 4)
#define MAX_FACTS (2u << 20)

struct store {
	const struct sys *sys;
	char *path; /* STATE_DIR/NAME; opened for each use: a thousand configs are not a thousand
		     * descriptors */
	size_t keep;
	bool in_memory;
	bool was_open;           /* the directory was there */
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

static const char *config_directory(const struct store *s)
{
	return strrchr(s->path, '/') + 1;
}

static int describe_error(const struct store *s, char why[FILE_WHY], int error)
{
	char remedy[FILE_REMEDY];

	file_remedy(remedy, -error, false);
	snprintf(why, FILE_WHY, "cannot use the state directory %.200s: %s", s->path,
		error == -EPERM ? "it belongs to another user, or others can write in it; give it "
				  "to the agent's user (chown), and chmod 0700"
				: remedy);
	return error;
}

/* Opens the directory, with one above it that the caller has open. */
static int open_below(const struct store *s, int parent, char why[FILE_WHY])
{
	int dir = trusted_open_below(s->sys, parent, config_directory(s));

	return dir < 0 ? describe_error(s, why, dir) : dir;
}

/* The path of the directory above. 0 or -ENAMETOOLONG. */
static int find_state_dir(const struct store *s, char ret_parent[PATH_MAX], char why[FILE_WHY])
{
	size_t len = (size_t)(config_directory(s) - 1 - s->path);

	if (len >= PATH_MAX)
		return describe_error(s, why, -ENAMETOOLONG);
	memcpy(ret_parent, s->path, len);
	ret_parent[len] = '\0';
	return 0;
}

static int open_parent(const struct store *s, char why[FILE_WHY])
{
	char parent[PATH_MAX];
	int r = find_state_dir(s, parent, why);

	return r ? r : trusted_open_dir(s->sys, parent, TRUSTED_OWN, why);
}

/* As open_parent(); one that somebody removed while the agent runs is made again. */
static int provide_parent(const struct store *s, char why[FILE_WHY])
{
	char parent[PATH_MAX];
	bool made;
	int r = find_state_dir(s, parent, why);

	if (r || !s->was_open)
		return r ? r : trusted_open_dir(s->sys, parent, TRUSTED_OWN, why);
	return trusted_provide_dir(s->sys, parent, 0700, TRUSTED_OWN, &made, why);
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
	int fd = s->sys->openat(
		dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0); /* a position of its own */
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;
	int n = 0, error = errno;

	if (!d) {
		if (fd >= 0)
			s->sys->close(fd);
		return -error;
	}
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
	int error, fd = s->sys->openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;

	if (!d) {
		error = errno;
		if (fd >= 0)
			s->sys->close(fd);
		return -error;
	}
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
		if (s->sys->mkdirat(parent, config_directory(s), 0700))
			dir = describe_error(s, why, -errno);
		else
			s->dir_synced = false;
		if (dir == -ENOENT || dir == -EEXIST)
			dir = open_below(s, parent, why);
	}
	s->sys->close(parent);
	return dir;
}

int store_open(const struct sys *sys, const char *state_dir, const char *name, size_t keep,
	struct store **ret_store, char why[FILE_WHY])
{
	struct store *s = calloc(1, sizeof(*s));
	int r, dir;

	if (s && asprintf(&s->path, "%s/%s", state_dir, name) < 0)
		s->path = NULL;
	if (!s || !s->path) {
		store_close(s);
		snprintf(why, FILE_WHY, "out of memory");
		return -ENOMEM;
	}
	s->sys = sys;
	s->keep = keep;
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
	if (!s)
		return;
	free(s->path);
	free(s);
}

uint64_t store_next_generation(const struct store *s)
{
	return s->highest + 1;
}

/* ---- versions ---- */

int part_init(struct part *p, const char *url, const char *etag, const char *last_modified,
	const char *type)
{
	*p = (struct part){
		.url = strdup(url), .etag = strdup(etag), .last_modified = strdup(last_modified)};
	snprintf(p->type, sizeof(p->type), "%s", type);
	if (p->url && p->etag && p->last_modified)
		return 0;
	part_fini(p);
	return -ENOMEM;
}

int part_set_epoch(struct part *p, const char *epoch)
{
	free(p->epoch);
	p->epoch = epoch && epoch[0] ? strdup(epoch) : NULL;
	return epoch && epoch[0] && !p->epoch ? -ENOMEM : 0;
}

int part_copy(const struct part *p, struct part *ret_copy)
{
	int r = part_init(ret_copy, p->url, p->etag, p->last_modified, p->type);

	if (r)
		return r;
	ret_copy->absent = p->absent;
	ret_copy->len = p->len;
	r = part_set_epoch(ret_copy, p->epoch);
	if (r)
		part_fini(ret_copy);
	return r;
}

void part_fini(struct part *p)
{
	free(p->url);
	free(p->etag);
	free(p->last_modified);
	free(p->epoch);
	*p = (struct part){.len = 0};
}

int version_copy(const struct version *v, struct version *ret_copy)
{
	struct version copy = *v;
	int r = 0;

	copy.decisions = NULL;
	copy.by = v->by ? strdup(v->by) : NULL;
	copy.part_count = 0;
	copy.parts = calloc(v->part_count ? v->part_count : 1, sizeof(*copy.parts));
	copy.origin = v->origin ? strdup(v->origin) : NULL;
	if (!copy.parts || (v->origin && !copy.origin) || (v->by && !copy.by))
		r = -ENOMEM;
	for (size_t i = 0; r == 0 && i < v->part_count; i++, copy.part_count++) {
		r = part_copy(&v->parts[i], &copy.parts[i]);
		if (r)
			break;
	}
	if (r)
		version_fini(&copy);
	else
		*ret_copy = copy;
	return r;
}

void version_fini(struct version *v)
{
	for (size_t i = 0; i < v->part_count; i++)
		part_fini(&v->parts[i]);
	free(v->parts);
	free(v->origin);
	free(v->by);
	free(v->decisions);
	*v = (struct version){.generation = 0};
}

static const char *const causes[VERSION_CAUSES] = {
	[CAUSE_PULL] = "pull",
	[CAUSE_PUSH] = "push",
	[CAUSE_WATCH] = "watch",
	[CAUSE_START] = "start",
	[CAUSE_OPERATOR] = "operator",
	[CAUSE_ROLLBACK] = "rollback",
	[CAUSE_PROBE] = "probe",
	[CAUSE_OVERRIDE] = "override",
	[CAUSE_PIN] = "pin",
	[CAUSE_SETTINGS] = "settings",
};

const char *version_cause_name(enum version_cause cause)
{
	return causes[cause];
}

/* A word that this version of the agent does not know is unknown. */
static enum version_cause parse_cause(const char *name)
{
	int i = VERSION_CAUSES - 1;

	while (i > CAUSE_UNKNOWN && (!name || strcmp(name, causes[i]) != 0))
		i--;
	return (enum version_cause)i;
}

int version_set_cause(struct version *v, enum version_cause cause, const char *by)
{
	char *copy = by ? strdup(by) : NULL;

	free(v->by);
	v->by = copy;
	v->cause = (unsigned char)cause;
	return by && !copy ? -ENOMEM : 0;
}

int64_t version_shown_ms(const struct version *v)
{
	return v->published_ms ? v->published_ms : v->pulled_ms;
}

bool version_same(const struct version *a, const struct version *b)
{
	if (strcmp(a->sha256, b->sha256) != 0 || a->part_count != b->part_count)
		return false;
	for (size_t i = 0; i < a->part_count; i++)
		if (a->parts[i].len != b->parts[i].len || a->parts[i].absent != b->parts[i].absent)
			return false;
	return true;
}

size_t version_bytes(const struct version *v)
{
	size_t bytes = 0;

	for (size_t i = 0; i < v->part_count; i++)
		if (strcmp(v->parts[i].type, "minisig") != 0)
			bytes += v->parts[i].len;
	return bytes;
}

const char *version_text(const struct version *v, char text[VERSION_TEXT_SIZE])
{
	const char *etag = v->part_count ? v->parts[0].etag : "";
	size_t len = strlen(etag);
	bool quoted = len >= 2 && etag[0] == '"' && etag[len - 1] == '"';

	snprintf(text, VERSION_TEXT_SIZE, "%.*s", (int)(quoted ? len - 2 : len), etag + quoted);
	return text[0] ? text : NULL;
}

/* ---- the facts, as one line of JSON ---- */

/* The first part's members stand beside the version's, as they did when there was only one. */
static void append_part_facts(const struct part *p, struct buffer *out)
{
	json_writer_text(out, "etag", p->etag);
	json_writer_text(out, "last_modified", p->last_modified);
	json_writer_text(out, "type", p->type);
	json_writer_text(out, "url", p->url);
	json_writer_number(out, "len", p->len);
	if (p->absent)
		json_writer_boolean(out, "absent", true);
	if (p->epoch)
		json_writer_text(out, "epoch", p->epoch);
}

static void append_facts(const struct version *v, struct buffer *out)
{
	json_writer_begin_object(out, NULL);
	json_writer_number(out, "generation", v->generation);
	json_writer_number(out, "pulled_ms", (unsigned long long)v->pulled_ms);
	json_writer_text(out, "sha256", v->sha256);
	json_writer_text(out, "origin", v->origin);
	if (v->published_ms)
		json_writer_number(out, "published_ms", (unsigned long long)v->published_ms);
	if (v->cause)
		json_writer_text(out, "cause", causes[v->cause]);
	if (v->by)
		json_writer_text(out, "by", v->by);
	if (v->product_len)
		json_writer_number(out, "product", v->product_len);
	if (v->settings[0])
		json_writer_text(out, "settings", v->settings);
	append_part_facts(&v->parts[0], out);
	if (v->part_count > 1) {
		json_writer_begin_array(out, "more");
		for (size_t i = 1; i < v->part_count; i++) {
			json_writer_begin_object(out, NULL);
			append_part_facts(&v->parts[i], out);
			json_writer_end_object(out);
		}
		json_writer_end_array(out);
	}
	json_writer_member(out, "decisions");
	buffer_append_string(out, v->decisions && v->decisions[0] ? v->decisions : "{}");
	json_writer_end_object(out);
	buffer_append(out, "\n", 1);
}

static const char *stored_text(const struct node *map, const char *name)
{
	const struct node *n = node_find(map, name);

	return n && n->type == NODE_STRING ? n->text : NULL;
}

/* 0, -EBADMSG or -ENOMEM, as all that reads facts. */
static int parse_part(const struct node *map, struct part *ret)
{
	const char *url = stored_text(map, "url"), *etag = stored_text(map, "etag");
	const char *last_modified = stored_text(map, "last_modified"),
		   *type = stored_text(map, "type");
	const struct node *len = node_find(map, "len"), *absent = node_find(map, "absent");

	if (!url || !etag || !last_modified || !type || strlen(type) >= sizeof(ret->type))
		return -EBADMSG;
	if (part_init(ret, url, etag, last_modified, type))
		return -ENOMEM;
	if (part_set_epoch(ret, stored_text(map, "epoch"))) {
		part_fini(ret);
		return -ENOMEM;
	}
	ret->len = len && len->type == NODE_INT ? (size_t)len->integer : SIZE_MAX;
	ret->absent = absent && absent->type == NODE_BOOL && absent->boolean;
	return 0;
}

static int parse_parts(const struct node *root, struct version *ret)
{
	const struct node *more = node_find(root, "more"), *n;
	size_t count = 1 + (more && more->type == NODE_LIST ? more->count : 0);
	int r;

	if (count > STORE_MAX_PARTS)
		return -EBADMSG;
	ret->parts = calloc(count, sizeof(*ret->parts));
	r = ret->parts ? parse_part(root, &ret->parts[0]) : -ENOMEM;
	if (r)
		return r;
	ret->part_count = 1;
	for (n = count > 1 ? more->first : NULL; n; n = n->next) {
		r = n->type == NODE_MAP ? parse_part(n, &ret->parts[ret->part_count]) : -EBADMSG;
		if (r)
			return r;
		ret->part_count++;
	}
	return 0;
}

/* Older state files have none. */
static int parse_decisions(const struct node *root, struct version *ret)
{
	const struct node *n = node_find(root, "decisions");
	struct buffer text;
	int r;

	if (!n)
		return 0;
	if (n->type != NODE_MAP)
		return -EBADMSG;
	buffer_init(&text, MAX_FACTS);
	r = n->count ? document_write(n, DOCUMENT_JSON, &text) : 0;
	if (r == 0) {
		ret->decisions = strdup(text.len ? text.data : "");
		r = ret->decisions ? 0 : -ENOMEM;
	}
	buffer_fini(&text);
	for (char *p = r ? NULL : ret->decisions; p && *p; p++)
		if (*p == '\n') /* facts are one line */
			*p = ' ';
	return r == 0 || r == -ENOMEM ? r : -EBADMSG;
}

/* A number of at least 0; 0 where there is none, or another one. */
static int64_t stored_number(const struct node *map, const char *name)
{
	const struct node *n = node_find(map, name);

	return n && n->type == NODE_INT && n->integer > 0 ? n->integer : 0;
}

/* Texts that older state files do not have are empty. */
static int parse_texts(const struct node *root, struct version *ret)
{
	const char *origin = stored_text(root, "origin"), *settings = stored_text(root, "settings");

	ret->origin = strdup(origin ? origin : "pull");
	if (!ret->origin)
		return -ENOMEM;
	if (settings && strlen(settings) < sizeof(ret->settings))
		memcpy(ret->settings, settings, strlen(settings) + 1);
	return version_set_cause(
		ret, parse_cause(stored_text(root, "cause")), stored_text(root, "by"));
}

/* 0, and the caller ends *ret with version_fini(); or an error. */
static int parse_facts(const char *line, size_t len, struct version *ret)
{
	struct document *d = NULL;
	struct document_error e;
	const struct node *generation, *product, *root;
	const char *sha256;
	int r = document_parse(DOCUMENT_JSON, line, len, 0, &d, &e);

	if (r)
		return r == -ENOMEM ? r : -EBADMSG;
	root = document_root(d);
	generation = node_find(root, "generation");
	product = node_find(root, "product");
	sha256 = stored_text(root, "sha256");
	*ret = (struct version){.generation = 0};
	if (!generation || generation->type != NODE_INT || !sha256 ||
		strlen(sha256) >= sizeof(ret->sha256))
		r = -EBADMSG;
	if (r == 0)
		r = parse_parts(root, ret);
	if (r == 0)
		r = parse_decisions(root, ret);
	if (r == 0)
		r = parse_texts(root, ret);
	if (r == 0) {
		ret->generation = (uint64_t)generation->integer;
		ret->pulled_ms = stored_number(root, "pulled_ms");
		ret->published_ms = stored_number(root, "published_ms");
		ret->product_len =
			product && product->type == NODE_INT ? (size_t)product->integer : 0;
		memcpy(ret->sha256, sha256, strlen(sha256) + 1);
	} else {
		version_fini(ret);
	}
	document_free(d);
	return r;
}

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

/* ---- save and load ---- */

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
		.mode = 0600, .uid = (uid_t)-1, .gid = (gid_t)-1, .sync = sync};
	char name[NUMBER + 8], digest[DIGEST_HEX], remedy[FILE_REMEDY];
	struct buffer facts, file;
	int r, dir = make_dir(s, why); /* somebody may have removed it */

	buffer_init(&facts, MAX_FACTS);
	buffer_init(&file, MAX_FILE);
	append_facts(v, &facts);
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
		snprintf(why, FILE_WHY, "cannot make a state file in %.200s: %s", s->path, remedy);
	} else if (r == 0) {
		file_name(v->generation, name);
		r = file_replace(s->sys, dir, name, file.data, file.len, &options, why);
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
	r = parse_facts(file->data + head, (size_t)(line_end - file->data) - head, ret_version);
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

/*
 * The state directory: what is saved comes back, whole or not at all. Files with any byte changed,
 * and files whose checksum is right and whose facts are not, are set aside; files of the former
 * format, which knew one part only, are read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "tests/unit/fixture/fault_sys.h"
#include "tests/unit/fixture/scratch.h"

#define OLD "a: old version\n"
#define NEW "a: new version, and of another length\n"
#define URL "http://example/web.yaml"

static struct sys sys;

struct place {
	char dir[SCRATCH_PATH], files[SCRATCH_PATH + 8]; /* where the versions lie */
	struct store *store;
	unsigned descriptors;
};

static void place_open(struct place *p, size_t keep)
{
	char why[FILE_WHY] = "";

	if (store_open(&sys, p->dir, "web", keep, &p->store, why))
		fail_msg("%s", why);
}

static void place_init(struct place *p, size_t keep)
{
	memset(&fault, 0, sizeof(fault));
	scratch_open(p->dir, scratch_memory());
	snprintf(p->files, sizeof(p->files), "%s/web", p->dir);
	p->descriptors = scratch_descriptors();
	place_open(p, keep);
}

static void place_fini(struct place *p)
{
	memset(&fault, 0, sizeof(fault));
	store_close(p->store);
	assert_int_equal(scratch_descriptors(), p->descriptors);
	scratch_close(p->dir);
}

static void save(struct place *p, const struct version *v, const struct buffer *body)
{
	char why[FILE_WHY] = "";

	if (store_save(p->store, v, body->data ? body->data : "", body->len, false, why))
		fail_msg("%s", why);
}

/* A version of one part. */
static void save_text(struct place *p, uint64_t generation, const char *text)
{
	struct version v = version_of(generation, text);
	char why[FILE_WHY] = "";

	if (store_save(p->store, &v, text, strlen(text), false, why))
		fail_msg("%s", why);
	version_fini(&v);
}

static void name_of(uint64_t generation, char ret[32])
{
	snprintf(ret, 32, "%020llu", (unsigned long long)generation);
}

static bool is_there(const struct place *p, uint64_t generation, const char *tail)
{
	char path[PATH_MAX];
	struct stat st;

	snprintf(
		path, sizeof(path), "%s/%020llu%s", p->files, (unsigned long long)generation, tail);
	return stat(path, &st) == 0;
}

/* A state file with these facts and this body; its own checksum is right. */
static void write_raw(
	const struct place *p, uint64_t generation, const char *facts, const char *body)
{
	char file[65536], digest[DIGEST_HEX], name[32];
	int len;

	digest_sha256(facts, strlen(facts), body, strlen(body), digest);
	len = snprintf(file, sizeof(file), "pullet-state 1 %s\n%s%s", digest, facts, body);
	assert_in_range(len, 1, sizeof(file) - 1);
	name_of(generation, name);
	scratch_write(p->files, name, file, (size_t)len);
}

/* The newest that verifies: its bytes, or "" when there is none. */
static void load_newest(
	struct place *p, char *ret, size_t size, uint64_t *ret_generation, unsigned *ret_damaged)
{
	struct version v;
	struct buffer body;
	int r;

	buffer_init(&body, 1u << 20);
	*ret_generation = 0;
	ret[0] = '\0';
	r = store_load(p->store, &v, &body, ret_damaged);
	if (r == 0) {
		snprintf(ret, size, "%s", body.data ? body.data : "");
		*ret_generation = v.generation;
		version_fini(&v);
	} else {
		assert_int_equal(r, -ENOENT);
	}
	buffer_fini(&body);
}

static int load_generation(struct place *p, uint64_t generation)
{
	struct version v;
	struct buffer body;
	int r;

	buffer_init(&body, 1u << 20);
	r = store_load_generation(p->store, generation, &v, &body);
	if (r == 0)
		version_fini(&v);
	else
		assert_int_equal(body.len, 0);
	buffer_fini(&body);
	return r;
}

static void assert_same(const struct version *a, const struct version *b)
{
	assert_int_equal(a->generation, b->generation);
	assert_int_equal(a->pulled_ms, b->pulled_ms);
	assert_string_equal(a->sha256, b->sha256);
	assert_string_equal(version_origin(a), version_origin(b));
	assert_int_equal(a->product_len, b->product_len);
	assert_string_equal(a->settings, b->settings);
	assert_int_equal(a->part_count, b->part_count);
	for (size_t i = 0; i < a->part_count; i++) {
		assert_string_equal(a->parts[i].url, b->parts[i].url);
		assert_string_equal(a->parts[i].etag, b->parts[i].etag);
		assert_string_equal(a->parts[i].last_modified, b->parts[i].last_modified);
		assert_string_equal(a->parts[i].type, b->parts[i].type);
		assert_string_equal(a->parts[i].epoch ? a->parts[i].epoch : "none",
			b->parts[i].epoch ? b->parts[i].epoch : "none");
		assert_int_equal(a->parts[i].absent, b->parts[i].absent);
		assert_int_equal(a->parts[i].len, b->parts[i].len);
	}
}

/* Saves it, loads it in both ways and compares. */
static void assert_comes_back(struct place *p, const struct version *v, const struct buffer *body)
{
	struct version newest, one;
	struct buffer bytes, same_bytes;
	unsigned damaged;

	buffer_init(&bytes, 1u << 20);
	buffer_init(&same_bytes, 1u << 20);
	save(p, v, body);
	assert_int_equal(store_load(p->store, &newest, &bytes, &damaged), 0);
	assert_int_equal(damaged, 0);
	assert_int_equal(store_load_generation(p->store, v->generation, &one, &same_bytes), 0);
	assert_same(&newest, v);
	assert_same(&one, v);
	assert_int_equal(bytes.len, body->len);
	assert_int_equal(same_bytes.len, body->len);
	if (body->len) {
		assert_memory_equal(bytes.data, body->data, body->len);
		assert_memory_equal(same_bytes.data, body->data, body->len);
	}
	version_fini(&newest);
	version_fini(&one);
	buffer_fini(&bytes);
	buffer_fini(&same_bytes);
}

/* ---- what comes back ---- */

static void load__of_a_file_of_the_former_format__is_one_part_that_was_pulled(void **state)
{
	static const char file[] =
		"pullet-state 1 8032c87f7cd0a339c6363d9f853a9bb2288481cccd8f7596afc811de2a6951b8\n"
		"{\"generation\":7,\"pulled_ms\":1795255163123,\"sha256\":"
		"\"0a942856f715c3f58e33d22baf4716d91b84e73dd6c975cb1a7fa23bd6a2b2e8\","
		"\"etag\":\"W/\\\"a\\\\b\\\"\","
		"\"last_modified\":\"Sat, 21 Nov 2026 00:00:00 GMT\",\"type\":\"yaml\","
		"\"url\":\"http://config.example:8080/web.yaml\"}\n"
		"# as it was pulled\nhost: old.example\nport: 8080\n";
	struct place place;
	struct version v;
	struct buffer body;
	unsigned damaged;

	(void)state;
	place_init(&place, 10);
	scratch_write(place.files, "00000000000000000007", file, sizeof(file) - 1);
	buffer_init(&body, 1u << 20);
	assert_int_equal(store_load(place.store, &v, &body, &damaged), 0);
	assert_int_equal(damaged, 0);
	assert_int_equal(v.generation, 7);
	assert_true(v.pulled_ms == INT64_C(1795255163123));
	assert_null(v.origin);
	assert_int_equal(v.product_len, 0);
	assert_null(v.decisions);
	assert_int_equal(v.part_count, 1);
	assert_string_equal(v.parts[0].etag, "W/\"a\\b\"");
	assert_string_equal(v.parts[0].last_modified, "Sat, 21 Nov 2026 00:00:00 GMT");
	assert_string_equal(v.parts[0].type, "yaml");
	assert_string_equal(v.parts[0].url, "http://config.example:8080/web.yaml");
	assert_false(v.parts[0].absent);
	assert_string_equal(body.data, "# as it was pulled\nhost: old.example\nport: 8080\n");
	assert_int_equal(v.parts[0].len, body.len);
	/* and what is written of it now is the same version */
	store_close(place.store);
	place_open(&place, 10);
	assert_int_equal(store_next_generation(place.store), 8);
	v.generation = 8;
	assert_comes_back(&place, &v, &body);
	version_fini(&v);
	buffer_fini(&body);
	place_fini(&place);
}

static void save__of_several_parts__keeps_the_bytes_of_each_in_their_place(void **state)
{
	struct place place;
	struct version v;
	struct buffer body;

	(void)state;
	place_init(&place, 10);
	version_begin(&v, &body, 1);
	version_add(&v, &body, URL, "yaml", "a: 1\n");
	version_add(&v, &body, URL ".minisig", "minisig", "untrusted comment: x\n");
	version_add(&v, &body, "", "yaml", NULL); /* an optional one, not there */
	version_add(&v, &body, "", "minisig", NULL);
	version_add(&v, &body, "http://example/empty", "bytes", "");
	version_add(&v, &body, "http://example/web.json", "json", "{\"b\": \"two\\nlines\"}");
	version_end(&v, &body);
	assert_comes_back(&place, &v, &body);
	assert_int_equal(v.parts[0].len, 5);
	assert_int_equal(v.parts[4].len, 0);
	version_fini(&v);
	buffer_fini(&body);
	place_fini(&place);
}

static void save__of_absent_parts_only__is_a_version_without_bytes(void **state)
{
	struct place place;
	struct version v;
	struct buffer body;

	(void)state;
	place_init(&place, 10);
	version_begin(&v, &body, 1);
	version_add(&v, &body, "", "yaml", NULL);
	version_add(&v, &body, "", "json", NULL);
	version_end(&v, &body);
	assert_comes_back(&place, &v, &body);
	version_fini(&v);
	buffer_fini(&body);
	place_fini(&place);
}

static void save__with_a_product__keeps_it_behind_the_parts(void **state)
{
	struct place place;
	struct version v;
	struct buffer body;

	(void)state;
	place_init(&place, 10);
	version_begin(&v, &body, 1);
	version_add(&v, &body, URL, "yaml", "a: 1\n");
	version_add(&v, &body, URL, "yaml", "b: 2\n");
	version_end(&v, &body); /* the product is not in the digest */
	buffer_append_string(&body, "a=1\nb=2\n");
	v.product_len = 8;
	free(v.origin);
	v.origin = strdup("override of a, by \"root\"");
	assert_comes_back(&place, &v, &body);
	version_fini(&v);
	buffer_fini(&body);
	place_fini(&place);
}

static void save__with_any_character_in_the_facts__brings_them_back(void **state)
{
	struct place place;
	struct version v = version_of(1, OLD);
	struct buffer body;

	(void)state;
	place_init(&place, 10);
	part_fini(&v.parts[0]);
	assert_int_equal(part_init(&v.parts[0], "http://h/web.yaml", "W/\"a\\\"b\t{}\"",
				 "Sat, 21 Nov 2026 00:00:00 GMT", "yaml"),
		0);
	v.parts[0].len = strlen(OLD);
	buffer_init(&body, 1u << 20);
	buffer_append_string(&body, OLD);
	assert_comes_back(&place, &v, &body);
	version_fini(&v);
	buffer_fini(&body);
	place_fini(&place);
}

static void save__with_epochs__brings_each_back_to_its_part(void **state)
{
	struct place place;
	struct version v;
	struct buffer body;

	(void)state;
	place_init(&place, 10);
	version_begin(&v, &body, 1);
	version_add(&v, &body, URL, "yaml", "a: 1\n");
	version_add(&v, &body, "", "yaml", NULL);
	version_add(&v, &body, "http://etcd:2379/x", "json", "{}");
	version_end(&v, &body);
	assert_comes_back(&place, &v, &body); /* without any */
	assert_int_equal(part_set_epoch(&v.parts[0], "17733079265738303813 2 5 1 42"), 0);
	assert_int_equal(part_set_epoch(&v.parts[2], "\"a\\b\t{}\" \xc3\xa9"), 0);
	v.generation = 2;
	assert_comes_back(&place, &v, &body);
	assert_int_equal(part_set_epoch(&v.parts[0], ""), 0); /* none again */
	assert_null(v.parts[0].epoch);
	assert_int_equal(part_set_epoch(&v.parts[2], NULL), 0);
	assert_int_equal(part_set_epoch(&v.parts[2], NULL), 0);
	assert_null(v.parts[2].epoch);
	v.generation = 3;
	assert_comes_back(&place, &v, &body);
	version_fini(&v);
	buffer_fini(&body);
	place_fini(&place);
}

static void save__of_as_many_parts_as_there_may_be__comes_back_and_one_more_does_not(void **state)
{
	struct place place;
	struct version v;
	struct buffer body;
	char url[128];

	(void)state;
	place_init(&place, 10);
	version_begin(&v, &body, 1);
	for (int i = 0; i < VERSION_MAX_PARTS; i++) {
		snprintf(url, sizeof(url), "http://example/%d", i);
		version_add(&v, &body, url, "bytes", i % 3 ? "x" : NULL);
	}
	version_end(&v, &body);
	assert_comes_back(&place, &v, &body);
	version_add(&v, &body, "http://example/more", "bytes", NULL);
	v.generation = 2;
	save(&place, &v, &body);
	assert_int_equal(load_generation(&place, 2), -EBADMSG);
	assert_int_equal(load_generation(&place, 1), 0);
	version_fini(&v);
	buffer_fini(&body);
	place_fini(&place);
}

static void save__with_the_digest_of_settings__brings_it_back(void **state)
{
	struct version v = version_of(1, OLD), copy;
	struct buffer body;
	struct place place;

	(void)state;
	place_init(&place, 10);
	buffer_init(&body, 1000);
	buffer_append_string(&body, OLD);
	snprintf(v.settings, sizeof(v.settings), "0123456789abcde");
	assert_comes_back(&place, &v, &body);
	assert_int_equal(version_copy(&v, &copy), 0);
	assert_string_equal(copy.settings, v.settings);
	version_fini(&copy);
	version_fini(&v);
	buffer_fini(&body);
	place_fini(&place);
}

static void text__of_a_version__is_its_etag_without_quotes(void **state)
{
	static const struct {
		const char *etag, *text;
	} table[] = {
		{"\"v1\"", "v1"},
		{"v1", "v1"},
		{"\"v1", "\"v1"},
		{"v1\"", "v1\""},
		{"\"", "\""},
		{"\"\"", NULL},
		{"", NULL},
		{"W/\"v1\"", "W/\"v1\""},
	};
	struct version v = version_of(1, OLD);
	char text[VERSION_TEXT_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		char *kept = v.parts[0].etag, *mine = strdup(table[i].etag);
		const char *got;

		v.parts[0].etag = mine;
		got = version_text(&v, text);
		v.parts[0].etag = kept;
		free(mine);
		assert_int_equal(got != NULL, table[i].text != NULL);
		if (got)
			assert_string_equal(got, table[i].text);
	}
	version_fini(&v);
	assert_null(version_text(&(struct version){.part_count = 0}, text));
}

static void bytes__of_a_version__are_those_of_documents(void **state)
{
	struct part parts[] = {{.type = "yaml", .len = 5}, {.type = "minisig", .len = 70},
		{.type = "json", .len = 3}, {.type = "bytes", .len = 0}};
	const struct version v = {.part_count = 4, .parts = parts};

	(void)state;
	assert_int_equal(version_bytes(&v), 8);
}

static void descriptor_0__is_as_good_as_any(void **state)
{
	uint64_t list[STORE_MAX_KEEP], generation = 0;
	char text[100] = "", why[FILE_WHY];
	struct version v = version_of(1, OLD);
	struct store_file file;
	struct place p;
	unsigned damaged;
	int kept, r[5], dir;
	size_t count = 0;
	bool closed;

	(void)state;
	place_init(&p, 10);
	store_close(p.store);
	kept = fault_begin_zero();
	r[0] = store_open(&sys, p.dir, "web", 10, &p.store, why);
	r[1] = store_save(p.store, &v, OLD, strlen(OLD), true, why);
	load_newest(&p, text, sizeof(text), &generation, &damaged);
	r[2] = store_describe_file(p.store, 1, &file);
	r[3] = store_sync(p.store, 1);
	count = store_list(p.store, list);
	dir = store_dir(p.store);
	r[4] = dir < 0 ? dir : close(dir);
	store_prune(p.store, true, NULL, 0, 0);
	closed = fault_end_zero(kept);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(r[i], 0);
	assert_true(closed && generation == 1 && count == 1 && list[0] == 1);
	assert_string_equal(text, OLD);
	store_remove(p.store, 1);
	version_fini(&v);
	place_fini(&p);
}

static void state_directory__of_a_path_that_is_too_long__says_so(void **state)
{
	static char path[PATH_MAX + 16];
	struct store *s = NULL;
	char why[FILE_WHY];

	(void)state;
	memset(path, 'd', sizeof(path) - 1);
	path[0] = '/';
	for (size_t len = PATH_MAX - 1; len <= PATH_MAX + 1; len++) {
		path[len] = '\0';
		why[0] = '\0';
		assert_int_equal(store_open(&sys_real, path, "web", 10, &s, why), -ENAMETOOLONG);
		assert_null(s);
		assert_non_null(strstr(why, "File name too long"));
		assert_non_null(strstr(why, " /ddd"));
		path[len] = 'd';
	}
}

static void save__with_decisions__brings_them_back(void **state)
{
	struct version v = version_of(1, OLD), back;
	struct buffer body;
	struct place place;
	unsigned damaged;
	char why[FILE_WHY];

	(void)state;
	place_init(&place, 10);
	buffer_init(&body, 1000);
	v.decisions = strdup("{\"revs\":[\"18446744073709551615\"],\"a\":{\"b\":\"c\\nd\"}}");
	assert_int_equal(store_save(place.store, &v, OLD, strlen(OLD), false, why), 0);
	assert_int_equal(store_load(place.store, &back, &body, &damaged), 0);
	assert_int_equal(damaged, 0);
	assert_non_null(strstr(back.decisions, "\"18446744073709551615\""));
	assert_non_null(strstr(back.decisions, "\"c\\nd\""));
	assert_null(strchr(back.decisions, '\n')); /* they can be written again as they are */
	back.generation = 2;
	assert_int_equal(store_save(place.store, &back, OLD, strlen(OLD), false, why), 0);
	version_fini(&back);
	buffer_clear(&body);
	assert_int_equal(store_load(place.store, &back, &body, &damaged), 0);
	assert_true(back.generation == 2 && back.decisions);
	version_fini(&back);
	buffer_clear(&body);
	save_text(&place, 3, NEW);
	assert_int_equal(store_load(place.store, &back, &body, &damaged), 0);
	assert_int_equal(back.generation, 3);
	assert_string_equal(back.decisions, "");
	version_fini(&back);
	buffer_fini(&body);
	version_fini(&v);
	place_fini(&place);
}

/* ---- the names that lead to a state file ---- */

static ino_t synced[16]; /* the inodes that were fsynced, in order */
static size_t synced_count;

static int noted_fsync(int fd)
{
	struct stat st;

	assert_true(fstat(fd, &st) == 0 && synced_count < 16);
	synced[synced_count++] = st.st_ino;
	return fault_fsync(fd);
}

static ino_t inode_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_ino;
}

static void sync__brings_the_directory_s_own_name_to_the_disk_once(void **state)
{
	struct version v = version_of(1, OLD);
	char why[FILE_WHY] = "", path[PATH_MAX], file[32];
	struct place place;

	(void)state;
	sys.fsync = noted_fsync;
	for (int late = 0; late < 2; late++) { /* by store_sync() after it, or at once */
		place_init(&place, 10);
		synced_count = 0;
		v.generation = 1;
		assert_int_equal(store_save(place.store, &v, OLD, strlen(OLD), !late, why), 0);
		assert_int_equal(synced_count, late ? 0 : 3);
		if (late)
			assert_int_equal(store_sync(place.store, 1), 0);
		name_of(1, file);
		snprintf(path, sizeof(path), "%s/%s", place.files, file);
		assert_int_equal(synced_count, 3);
		assert_true(synced[0] == inode_of(path) && synced[1] == inode_of(place.files) &&
			    synced[2] == inode_of(place.dir));
		v.generation = 2;
		assert_int_equal(store_save(place.store, &v, OLD, strlen(OLD), true, why), 0);
		assert_int_equal(synced_count, 5); /* file and directory */
		scratch_close(place.files);        /* somebody removes it */
		v.generation = 3;
		assert_int_equal(store_save(place.store, &v, OLD, strlen(OLD), true, why), 0);
		assert_int_equal(synced_count, 8);
		assert_true(synced[7] == inode_of(place.dir));
		place_fini(&place);
	}
	sys.fsync = fault_fsync;
	version_fini(&v);
}

static void save__when_the_directory_s_name_cannot_be_synced__has_failed(void **state)
{
	struct version v = version_of(1, OLD);
	char why[FILE_WHY] = "";
	struct place place;

	(void)state;
	place_init(&place, 10);
	fault = (struct fault){.call = CALL_FSYNC, .nth = 3, .error = EIO};
	assert_int_equal(store_save(place.store, &v, OLD, strlen(OLD), true, why), -EIO);
	assert_non_null(strstr(why, "cannot bring to the disk the directory"));
	fault = (struct fault){0};
	assert_int_equal(store_sync(place.store, 1), 0);
	assert_string_equal(fault.trace, "ooxofxfofxx"); /* it is tried again */
	version_fini(&v);
	place_fini(&place);
}

static void copy__is_the_same_version_in_memory_of_its_own(void **state)
{
	struct version v, copy, nothing = {.generation = 0};
	struct buffer body;

	(void)state;
	version_begin(&v, &body, 5);
	version_add(&v, &body, URL, "yaml", "a: 1\n");
	version_add(&v, &body, "", "yaml", NULL);
	version_end(&v, &body);
	v.product_len = 3;
	assert_int_equal(part_set_epoch(&v.parts[0], "cluster 7"), 0);
	assert_int_equal(version_copy(&v, &copy), 0);
	assert_same(&v, &copy);
	assert_ptr_not_equal(v.parts[0].epoch, copy.parts[0].epoch);
	assert_null(copy.parts[1].epoch);
	assert_ptr_not_equal(v.parts, copy.parts);
	assert_ptr_not_equal(v.parts[0].url, copy.parts[0].url);
	version_fini(&copy);
	assert_int_equal(copy.part_count, 0);
	assert_int_equal(version_copy(&nothing, &copy), 0);
	assert_null(copy.origin);
	version_fini(&copy);
	version_fini(&v);
	buffer_fini(&body);
}

static void same__is_about_bytes_and_where_they_are_and_nothing_else(void **state)
{
	struct version v, other;
	struct buffer body;

	(void)state;
	version_begin(&v, &body, 5);
	version_add(&v, &body, URL, "yaml", "a: 1\n");
	version_add(&v, &body, "", "yaml", NULL);
	version_end(&v, &body);
	assert_int_equal(version_copy(&v, &other), 0);
	other.generation = 6;
	other.pulled_ms = 7;
	other.parts[0].etag[1] = 'X';
	assert_int_equal(part_set_epoch(&other.parts[0], "cluster 8"), 0);
	assert_true(version_same(&v, &other));
	other.parts[0].len--;
	other.parts[1].len++;
	assert_false(version_same(&v, &other));
	other.parts[0].len++;
	other.parts[1].len--;
	other.parts[1].absent = false;
	assert_false(version_same(&v, &other));
	other.parts[1].absent = true;
	assert_true(version_same(&v, &other));
	other.sha256[0] ^= 1;
	assert_false(version_same(&v, &other));
	other.sha256[0] ^= 1;
	part_fini(&other.parts[--other.part_count]);
	assert_false(version_same(&v, &other));
	version_fini(&other);
	version_fini(&v);
	buffer_fini(&body);
}

/* ---- damage ---- */

static void load__of_a_file_with_any_byte_flipped_or_cut_off__takes_the_older(void **state)
{
	struct place place;
	char file[8192], text[256];
	size_t len = 0;
	unsigned damaged, points = 0;
	uint64_t generation;

	(void)state;
	place_init(&place, 10);
	save_text(&place, 1, OLD);
	save_text(&place, 2, NEW);
	assert_true(scratch_read(place.files, "00000000000000000002", file, sizeof(file), &len));
	for (size_t i = 0; i < 2 * len; i++) {
		bool flip = i < len;

		if (flip)
			file[i] ^= 0x20;
		scratch_write(place.files, "00000000000000000002", file, flip ? len : i - len);
		if (flip)
			file[i] ^= 0x20;
		load_newest(&place, text, sizeof(text), &generation, &damaged);
		assert_string_equal(text, OLD);
		assert_int_equal(generation, 1);
		assert_int_equal(damaged, 1);
		assert_false(is_there(&place, 2, ""));
		assert_true(is_there(&place, 2, ".bad"));
		points++;
	}
	print_message("%u damaged files\n", points);
	place_fini(&place);
}

#define HEAD "{\"generation\":1,\"pulled_ms\":1,\"sha256\":\"DIGEST\""
#define TEXTS ",\"etag\":\"\",\"last_modified\":\"\",\"type\":\"yaml\",\"url\":\"http://x/\""

/* The facts with the digest in the place of DIGEST. */
static void put_digest(const char *facts, const char *digest, char *ret, size_t size)
{
	const char *at = strstr(facts, "DIGEST");

	if (at)
		snprintf(ret, size, "%.*s%s%s", (int)(at - facts), facts, digest,
			at + strlen("DIGEST"));
	else
		snprintf(ret, size, "%s", facts);
}

static void load__of_facts_that_are_damaged_under_a_good_checksum__refuses_them(void **state)
{
	/* the body is "a: 1\n" and its digest stands for DIGEST */
	static const char *const good[] = {
		HEAD TEXTS "}\n", HEAD TEXTS ",\"len\":5}\n",
		HEAD ",\"origin\":\"x\"" TEXTS ",\"len\":5,\"later\":[1]}\n", /* of a later agent */
		HEAD TEXTS ",\"len\":5,\"more\":[]}\n",
		HEAD TEXTS ",\"len\":5,\"epoch\":\"cluster 7\"}\n",
		HEAD TEXTS ",\"len\":5,\"epoch\":7}\n", /* is none */
	};
	static const char *const bad[] = {
		"",
		"\n",
		"no JSON\n",
		"[]\n",
		"\"DIGEST\"\n",
		"{}\n",
		HEAD TEXTS ",\"len\":5}", /* without an end of the line */
		"{\"pulled_ms\":1,\"sha256\":\"DIGEST\"" TEXTS ",\"len\":5}\n",
		"{\"generation\":\"1\",\"sha256\":\"DIGEST\"" TEXTS ",\"len\":5}\n",
		"{\"generation\":2,\"sha256\":\"DIGEST\"" TEXTS ",\"len\":5}\n",
		"{\"generation\":-1,\"sha256\":\"DIGEST\"" TEXTS ",\"len\":5}\n",
		"{\"generation\":1" TEXTS ",\"len\":5}\n",
		"{\"generation\":1,\"sha256\":1" TEXTS ",\"len\":5}\n",
		"{\"generation\":1,\"sha256\":\"\"" TEXTS ",\"len\":5}\n",
		"{\"generation\":1,\"sha256\":\"DIGEST0\"" TEXTS ",\"len\":5}\n",
		"{\"generation\":1,\"sha256\":\"0DIGEST\"" TEXTS ",\"len\":5}\n",
		HEAD ",\"last_modified\":\"\",\"type\":\"yaml\",\"url\":\"\",\"len\":5}\n",
		HEAD ",\"etag\":\"\",\"type\":\"yaml\",\"url\":\"\",\"len\":5}\n",
		HEAD ",\"etag\":\"\",\"last_modified\":\"\",\"url\":\"\",\"len\":5}\n",
		HEAD ",\"etag\":\"\",\"last_modified\":\"\",\"type\":\"yaml\",\"len\":5}\n",
		HEAD
		",\"etag\":null,\"last_modified\":\"\",\"type\":\"\",\"url\":\"\",\"len\":5}\n",
		HEAD ",\"etag\":\"\",\"last_modified\":\"\",\"type\":\"yaml4567\",\"url\":\"\"}\n",
		HEAD TEXTS ",\"len\":4}\n",
		HEAD TEXTS ",\"len\":6}\n",
		HEAD TEXTS ",\"len\":0}\n",
		HEAD TEXTS ",\"len\":-5}\n",
		HEAD TEXTS ",\"len\":9223372036854775807}\n",
		HEAD TEXTS ",\"len\":5,\"product\":1}\n",
		HEAD TEXTS ",\"len\":5,\"product\":6}\n",
		HEAD TEXTS ",\"len\":5,\"product\":-1}\n",
		HEAD TEXTS ",\"len\":5,\"more\":[1]}\n",
		HEAD TEXTS ",\"len\":5,\"more\":[{}]}\n",
		HEAD TEXTS ",\"len\":5,\"more\":[{\"len\":0}]}\n",
		HEAD TEXTS ",\"more\":[{\"etag\":\"\",\"last_modified\":\"\",\"type\":\"yaml\","
			   "\"url\":\"\",\"len\":0}]}\n",
		HEAD TEXTS ",\"len\":5,\"more\":[{\"etag\":\"\",\"last_modified\":\"\","
			   "\"type\":\"yaml\",\"url\":\"\"}]}\n",
		HEAD TEXTS ",\"len\":5,\"more\":[{\"etag\":\"\",\"last_modified\":\"\","
			   "\"type\":\"yaml\",\"url\":\"\",\"len\":1}]}\n",
		HEAD TEXTS ",\"len\":6,\"more\":[{\"etag\":\"\",\"last_modified\":\"\","
			   "\"type\":\"yaml\",\"url\":\"\",\"len\":-1}]}\n",
	};
	char digest[DIGEST_HEX], facts[1024], text[64];
	struct place place;
	unsigned damaged;
	uint64_t generation;

	(void)state;
	place_init(&place, 10);
	digest_sha256("a: 1\n", 5, NULL, 0, digest);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		put_digest(good[i], digest, facts, sizeof(facts));
		write_raw(&place, 1, facts, "a: 1\n");
		if (load_generation(&place, 1))
			fail_msg("%s", facts);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		put_digest(bad[i], digest, facts, sizeof(facts));
		write_raw(&place, 1, facts, "a: 1\n");
		if (load_generation(&place, 1) != -EBADMSG)
			fail_msg("%s", facts);
		assert_true(is_there(&place, 1, "")); /* who looks for one does not move it */
		load_newest(&place, text, sizeof(text), &generation, &damaged);
		assert_int_equal(generation, 0);
		assert_int_equal(damaged, 1);
		assert_true(is_there(&place, 1, ".bad"));
	}
	place_fini(&place);
}

/* Why and when it was published: of an older agent's file, or in a later one's word, unknown. */
static void cause__comes_back_and_is_unknown_where_it_is_not_there(void **state)
{
	static const char *const facts[] = {HEAD TEXTS ",\"len\":5}\n",
		HEAD TEXTS ",\"len\":5,\"cause\":\"moon\",\"by\":7,\"published_ms\":\"1\"}\n",
		HEAD TEXTS ",\"len\":5,\"cause\":null,\"published_ms\":-1}\n"};
	char digest[DIGEST_HEX], text[1024];
	struct version v, copy;
	struct buffer body;
	struct place place;

	(void)state;
	place_init(&place, 10);
	version_begin(&v, &body, 1);
	version_add(&v, &body, URL, "yaml", "a: 1\n");
	version_end(&v, &body);
	v.published_ms = 1700000000123;
	assert_int_equal(version_set_cause(&v, CAUSE_ROLLBACK, "ann \"x\" (uid 0)"), 0);
	save(&place, &v, &body);
	version_fini(&v);
	buffer_clear(&body);
	assert_int_equal(store_load_generation(place.store, 1, &v, &body), 0);
	assert_int_equal(version_copy(&v, &copy), 0);
	version_fini(&v);
	assert_true(copy.published_ms == 1700000000123 && version_shown_ms(&copy) == 1700000000123);
	assert_string_equal(version_cause_name(copy.cause), "rollback");
	assert_string_equal(copy.by, "ann \"x\" (uid 0)");
	version_fini(&copy);
	digest_sha256("a: 1\n", 5, NULL, 0, digest);
	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
		put_digest(facts[i], digest, text, sizeof(text));
		write_raw(&place, 1, text, "a: 1\n");
		buffer_clear(&body);
		assert_int_equal(store_load_generation(place.store, 1, &v, &body), 0);
		assert_int_equal(v.published_ms, 0);
		assert_int_equal(v.cause, CAUSE_UNKNOWN);
		assert_null(version_cause_name(v.cause));
		assert_null(v.by);
		assert_true(version_shown_ms(&v) == v.pulled_ms);
		version_fini(&v);
	}
	buffer_fini(&body);
	place_fini(&place);
}

static void load_generation__of_one_that_is_missing_or_damaged__tells_which(void **state)
{
	struct place place;
	char from[PATH_MAX], to[PATH_MAX];

	(void)state;
	place_init(&place, 10);
	save_text(&place, 1, OLD);
	save_text(&place, 2, NEW);
	scratch_write(place.files, "00000000000000000003", "x", 1);
	assert_int_equal(load_generation(&place, 1), 0);
	assert_int_equal(load_generation(&place, 2), 0);
	assert_int_equal(load_generation(&place, 3), -EBADMSG);
	assert_int_equal(load_generation(&place, 4), -ENOENT);
	assert_int_equal(load_generation(&place, 0), -ENOENT);
	assert_int_equal(load_generation(&place, UINT64_MAX), -ENOENT);
	/* a good file under another number is not that version */
	snprintf(from, sizeof(from), "%s/00000000000000000002", place.files);
	snprintf(to, sizeof(to), "%s/00000000000000000004", place.files);
	assert_int_equal(rename(from, to), 0);
	assert_int_equal(load_generation(&place, 4), -EBADMSG);
	assert_int_equal(load_generation(&place, 2), -ENOENT);
	place_fini(&place);
}

static void load__when_the_fault_is_ours__leaves_the_file_where_it_is(void **state)
{
	static const int errors[] = {EMFILE, ENFILE, ENOMEM};
	struct place place;
	struct version v;
	struct buffer body;
	unsigned damaged;

	(void)state;
	place_init(&place, 10);
	save_text(&place, 1, OLD);
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		buffer_init(&body, 100);
		for (unsigned nth = 1; nth <= 3; nth++) {
			/* the directory, the same for its list, the file */
			fault = (struct fault){.call = CALL_OPEN, .nth = nth, .error = errors[i]};
			assert_int_equal(store_load(place.store, &v, &body, &damaged), -errors[i]);
			assert_int_equal(damaged, 0);
		}
		fault = (struct fault){.call = CALL_OPEN, .nth = 2, .error = errors[i]};
		assert_int_equal(store_load_generation(place.store, 1, &v, &body), -errors[i]);
		buffer_fini(&body);
	}
	fault.nth = 0;
	assert_true(is_there(&place, 1, ""));
	buffer_init(&body, 3); /* no room for what it holds */
	assert_int_equal(store_load(place.store, &v, &body, &damaged), -EMSGSIZE);
	buffer_clear(&body);
	assert_int_equal(store_load_generation(place.store, 1, &v, &body), -EMSGSIZE);
	buffer_fini(&body);
	assert_true(is_there(&place, 1, ""));
	place_fini(&place);
}

/* ---- numbers ---- */

static void generations__never_go_back(void **state)
{
	struct place place;
	char text[64];
	unsigned damaged;
	uint64_t generation;

	(void)state;
	place_init(&place, 10);
	assert_int_equal(store_next_generation(place.store), 1);
	save_text(&place, 1, OLD);
	assert_int_equal(store_next_generation(place.store), 2);
	save_text(&place, 2, NEW);
	scratch_write(place.files, "00000000000000000002", "", 0);
	load_newest(&place, text, sizeof(text), &generation, &damaged);
	assert_int_equal(generation, 1);
	store_close(place.store);
	place_open(&place, 10);
	assert_int_equal(store_next_generation(place.store), 3); /* the damaged one's counts */
	place_fini(&place);
}

static void open__that_cannot_see_the_numbers__does_not_begin_again_at_one(void **state)
{
	struct place place;
	char why[FILE_WHY];
	unsigned opens, failed = 0;

	(void)state;
	place_init(&place, 10);
	save_text(&place, 7, OLD);
	store_close(place.store);
	fault = (struct fault){.call = CALL_OPEN, .nth = 1000, .error = EMFILE};
	place_open(&place, 10);
	opens = fault.seen;
	for (unsigned nth = 1; nth <= opens; nth++) {
		store_close(place.store);
		place.store = NULL;
		fault = (struct fault){.call = CALL_OPEN, .nth = nth, .error = EMFILE};
		if (store_open(&sys, place.dir, "web", 10, &place.store, why)) {
			assert_non_null(strstr(why, "Too many open files"));
			failed++;
		} else {
			assert_int_equal(store_next_generation(place.store), 8);
		}
	}
	assert_int_equal(failed, 3); /* the state directory, its own, and its list */
	place_fini(&place);
}

static void list__is_highest_first_and_only_of_versions(void **state)
{
	static const uint64_t saved[] = {1, 2, 9, 10, 11, 100};
	uint64_t there[STORE_MAX_KEEP];
	struct place place;

	(void)state;
	place_init(&place, 10);
	assert_int_equal(store_list(place.store, there), 0);
	for (size_t i = 0; i < sizeof(saved) / sizeof(saved[0]); i++)
		save_text(&place, saved[i], OLD);
	scratch_write(place.files, "ledger.json", "{}", 2);
	scratch_write(place.files, "00000000000000000012.bad", "", 0);
	scratch_write(place.files, "12", "", 0);
	scratch_write(place.files, "99999999999999999999", "", 0); /* more than 64 bits */
	assert_int_equal(store_list(place.store, there), 6);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(there[i], saved[5 - i]);
	place_fini(&place);
}

/* Saves 1 to 25, one after the other, as a publication does. */
static void save_many(struct place *p)
{
	for (uint64_t n = 1; n <= 25; n++) {
		save_text(p, n, OLD);
		store_prune(p->store, true, NULL, 0, 0);
	}
}

static void prune__keeps_as_many_as_it_is_told(void **state)
{
	static const size_t keeps[] = {1, 3, 10};
	uint64_t there[STORE_MAX_KEEP];

	(void)state;
	for (size_t k = 0; k < sizeof(keeps) / sizeof(keeps[0]); k++) {
		struct place place;

		place_init(&place, keeps[k]);
		save_many(&place);
		assert_int_equal(store_list(place.store, there), keeps[k]);
		for (uint64_t n = 1; n <= 25; n++)
			assert_int_equal(is_there(&place, n, ""), n > 25 - keeps[k]);
		place_fini(&place);
	}
}

static void prune__with_another_number_to_keep__removes_what_is_too_old(void **state)
{
	uint64_t there[STORE_MAX_KEEP];
	struct place place;

	(void)state;
	place_init(&place, STORE_MAX_KEEP);
	save_many(&place);
	assert_int_equal(store_list(place.store, there), 25);
	store_close(place.store);
	place_open(&place, 3);
	assert_int_equal(store_list(place.store, there), 25); /* who is spared is not known yet */
	store_prune(place.store, true, NULL, 0, 0);
	assert_int_equal(store_list(place.store, there), 3);
	assert_int_equal(there[0], 25);
	assert_int_equal(there[2], 23);
	store_close(place.store);
	place_open(&place, 1);
	store_prune(place.store, true, NULL, 0, 0);
	assert_int_equal(store_list(place.store, there), 1);
	assert_int_equal(there[0], 25);
	save_text(&place, 26, NEW);
	assert_int_equal(store_list(place.store, there), 2); /* until the new one is visible */
	store_prune(place.store, true, NULL, 0, 0);
	assert_int_equal(store_list(place.store, there), 1);
	assert_int_equal(there[0], 26);
	place_fini(&place);
}

static void prune__spares_the_proven_and_what_the_server_has(void **state)
{
	static const uint64_t spared[] = {2, 7};
	uint64_t there[STORE_MAX_KEEP];
	struct place place;

	(void)state;
	place_init(&place, 3);
	for (uint64_t n = 1; n <= 12; n++) {
		save_text(&place, n, OLD);
		store_prune(place.store, true, spared, 2, 0);
	}
	assert_int_equal(store_list(place.store, there), 5);
	assert_int_equal(there[0], 12);
	assert_int_equal(there[2], 10);
	assert_int_equal(there[3], 7);
	assert_int_equal(there[4], 2);
	store_prune(place.store, true, (uint64_t[]){0}, 1, 0);
	assert_int_equal(store_list(place.store, there), 3);
	place_fini(&place);
}

static void prune__of_what_has_the_newest_ones_bytes__comes_before_older_ones(void **state)
{
	uint64_t there[STORE_MAX_KEEP];
	struct place place;

	(void)state;
	place_init(&place, 3);
	save_text(&place, 1, OLD);
	save_text(&place, 2, OLD);
	for (uint64_t n = 3; n <= 12; n++) { /* as overrides do */
		save_text(&place, n, NEW);
		store_prune(place.store, true, NULL, 0, n - 1);
	}
	assert_int_equal(store_list(place.store, there), 3);
	assert_int_equal(there[0], 12);
	assert_int_equal(there[1], 2);
	assert_int_equal(there[2], 1);
	save_text(&place, 13, NEW);
	store_prune(place.store, true, NULL, 0, 13); /* never the newest */
	assert_int_equal(store_list(place.store, there), 3);
	assert_int_equal(there[0], 13);
	assert_int_equal(there[2], 2);
	save_text(&place, 14, NEW);
	store_prune(place.store, true, (uint64_t[]){13}, 1, 13); /* nor a spared one */
	assert_int_equal(store_list(place.store, there), 3);
	assert_int_equal(there[1], 13);
	place_fini(&place);
}

static void prune__while_the_newest_may_be_lost__keeps_those_that_are_not(void **state)
{
	uint64_t there[STORE_MAX_KEEP];
	struct place place;

	(void)state;
	memset(&place, 0, sizeof(place));
	scratch_open(place.dir, scratch_disk());
	snprintf(place.files, sizeof(place.files), "%s/web", place.dir);
	place.descriptors = scratch_descriptors();
	place_open(&place, 2);
	for (uint64_t n = 1; n <= 20; n++) {
		save_text(&place, n, OLD);
		store_prune(place.store, false, NULL, 0, 0);
	}
	assert_int_equal(store_list(place.store, there),
		store_in_memory(place.store) ? 2 : 2 + STORE_UNSYNCED);
	store_prune(place.store, true, NULL, 0, 0);
	assert_int_equal(store_list(place.store, there), 2);
	assert_int_equal(there[1], 19);
	place_fini(&place);
}

static void remove__takes_one_away_and_its_number_is_not_used_again(void **state)
{
	struct place place;

	(void)state;
	place_init(&place, 10);
	save_text(&place, 1, OLD);
	save_text(&place, 2, NEW);
	store_remove(place.store, 2);
	assert_true(is_there(&place, 1, ""));
	assert_false(is_there(&place, 2, ""));
	assert_int_equal(store_next_generation(place.store), 3);
	place_fini(&place);
}

static void keep__of_damaged_files__is_the_same_number(void **state)
{
	struct place place;
	char text[64], name[32];
	unsigned damaged;
	uint64_t generation;

	(void)state;
	place_init(&place, 3);
	for (uint64_t n = 1; n <= 8; n++) {
		name_of(n, name);
		scratch_write(place.files, name, "x", 1);
		load_newest(&place, text, sizeof(text), &generation, &damaged);
		assert_int_equal(damaged, 1);
	}
	assert_int_equal(scratch_count(place.files, ".bad"), 3);
	assert_true(is_there(&place, 6, ".bad"));
	assert_true(is_there(&place, 8, ".bad"));
	place_fini(&place);
}

/* ---- the directory ---- */

/* A start makes it, so does an agent that runs. */
static void save__when_the_state_directory_was_removed__makes_it_again(void **state)
{
	struct place place;

	(void)state;
	place_init(&place, 10);
	save_text(&place, 1, OLD);
	scratch_close(place.dir);
	save_text(&place, 2, NEW);
	assert_true(is_there(&place, 2, ""));
	assert_false(is_there(&place, 1, ""));
	place_fini(&place);
}

static void open__where_it_cannot_be__says_where_and_why(void **state)
{
	char dir[SCRATCH_PATH], path[SCRATCH_PATH + 16], why[FILE_WHY];
	struct store *s;

	(void)state;
	scratch_open(dir, scratch_memory());
	snprintf(path, sizeof(path), "%s/none", dir);
	assert_int_equal(store_open(&sys, path, "web", 10, &s, why), -ENOENT);
	assert_non_null(strstr(why, "none: No such file"));
	scratch_write(dir, "web", "", 0);
	assert_int_equal(store_open(&sys, dir, "web", 10, &s, why), -ENOTDIR);
	assert_non_null(strstr(why, "not a directory"));
	snprintf(path, sizeof(path), "%s/link", dir);
	assert_int_equal(symlink(".", path), 0);
	assert_true(store_open(&sys, dir, "link", 10, &s, why) < 0);
	fault = (struct fault){.call = CALL_MKDIR, .nth = 1, .error = EROFS};
	assert_int_equal(store_open(&sys, dir, "api", 10, &s, why), -EROFS);
	fault.nth = 0;
	scratch_close(dir);
}

static void directory__that_others_may_write_in__is_not_used(void **state)
{
	struct place p;
	struct version v = version_of(1, OLD);
	char why[FILE_WHY] = "", path[SCRATCH_PATH + 128];
	struct store *s = NULL;

	(void)state;
	place_init(&p, 10);
	snprintf(path, sizeof(path),
		"cannot use the state directory %s: it belongs to another user", p.files);
	assert_int_equal(chmod(p.files, 0777), 0);
	assert_int_equal(store_open(&sys, p.dir, "web", 10, &s, why), -EPERM);
	assert_ptr_equal(strstr(why, path), why);
	assert_null(s);
	why[0] = '\0';
	assert_int_equal(store_save(p.store, &v, OLD, strlen(OLD), false, why), -EPERM);
	assert_ptr_equal(strstr(why, path), why);
	assert_int_equal(store_dir(p.store), -EPERM);
	assert_int_equal(store_sync(p.store, 1), -EPERM);
	assert_int_equal(load_generation(&p, 1), -EPERM);
	assert_int_equal(chmod(p.files, 0700), 0);
	version_fini(&v);
	place_fini(&p);
}

/* It is no damage: the file stays, and is not passed over. */
static void load__of_more_than_there_is_room_for__is_that(void **state)
{
	struct version v;
	struct buffer body;
	struct place p;
	unsigned damaged = 7;

	(void)state;
	place_init(&p, 10);
	save_text(&p, 1, "n: 1\n");
	save_text(&p, 2, "n: 22\n");
	buffer_init(&body, 5);
	assert_int_equal(store_load(p.store, &v, &body, &damaged), -EMSGSIZE);
	assert_int_equal(damaged, 0);
	buffer_fini(&body);
	buffer_init(&body, 5);
	assert_int_equal(store_load_generation(p.store, 2, &v, &body), -EMSGSIZE);
	buffer_fini(&body);
	buffer_init(&body, 6);
	assert_int_equal(store_load(p.store, &v, &body, &damaged), 0);
	assert_int_equal(v.generation, 2);
	assert_true(is_there(&p, 1, "") && is_there(&p, 2, "") && !is_there(&p, 2, ".bad"));
	version_fini(&v);
	buffer_fini(&body);
	place_fini(&p);
}

static void load_below__of_a_number__is_of_what_is_lower(void **state)
{
	static const struct {
		uint64_t below, generation;
	} table[] = {{UINT64_MAX, 3}, {4, 3}, {3, 2}, {2, 1}, {1, 0}, {0, 0}};
	struct place p;
	unsigned damaged = 5;

	(void)state;
	place_init(&p, 10);
	for (uint64_t n = 1; n <= 3; n++)
		save_text(&p, n, OLD);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct version v;
		struct buffer body;
		int r;

		buffer_init(&body, 1000);
		r = store_load_below(p.store, table[i].below, true, &v, &body, &damaged);
		assert_int_equal(r, table[i].generation ? 0 : -ENOENT);
		if (r == 0) {
			assert_int_equal(v.generation, table[i].generation);
			version_fini(&v);
		}
		buffer_fini(&body);
	}
	assert_int_equal(damaged, 5);
	place_fini(&p);
}

static void save__of_facts_without_end__says_so_and_writes_nothing(void **state)
{
	struct version v = version_of(1, OLD);
	char why[FILE_WHY] = "", words[SCRATCH_PATH + 64];
	const size_t len = 4u << 20;
	struct place p;

	(void)state;
	place_init(&p, 10);
	v.decisions = malloc(len + 1);
	assert_non_null(v.decisions);
	memset(v.decisions, ' ', len);
	v.decisions[0] = '{';
	v.decisions[len - 1] = '}';
	v.decisions[len] = '\0';
	assert_int_equal(store_save(p.store, &v, OLD, strlen(OLD), false, why), -EMSGSIZE);
	snprintf(words, sizeof(words), "cannot make a state file in %s: ", p.files);
	assert_ptr_equal(strstr(why, words), why);
	assert_int_equal(store_next_generation(p.store), 1);
	assert_int_equal(scratch_count(p.files, ""), 0);
	version_fini(&v);
	place_fini(&p);
}

static void files__are_the_agents_alone(void **state)
{
	char path[PATH_MAX];
	struct place p;
	struct stat st;

	(void)state;
	place_init(&p, 10);
	save_text(&p, 1, OLD);
	assert_int_equal(stat(p.files, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	snprintf(path, sizeof(path), "%s/%020d", p.files, 1);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_true(st.st_uid == geteuid() && st.st_gid == getegid());
	place_fini(&p);
}

static void open__removes_what_a_crash_left_and_nothing_else(void **state)
{
	struct place place;
	struct stat st;
	int dir;

	(void)state;
	scratch_need_memory();
	place_init(&place, 10);
	assert_int_equal(stat(place.files, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_true(store_in_memory(place.store));
	scratch_write(place.files, ".00000000000000000001.pullet-0123456789abcdef", "", 0);
	scratch_write(place.files, "notes", "", 0);
	store_close(place.store);
	place_open(&place, 10);
	assert_int_equal(scratch_count(place.files, ""), 1);
	dir = store_dir(place.store);
	assert_true(dir >= 0);
	assert_int_equal(faccessat(dir, "notes", R_OK, 0), 0);
	assert_true(fcntl(dir, F_GETFD) & FD_CLOEXEC);
	close(dir);
	save_text(&place, 1, OLD);
	assert_int_equal(store_sync(place.store, 1), 0);
	assert_int_equal(store_sync(place.store, 2), -ENOENT);
	place_fini(&place);
}

static void save__that_fails__uses_up_no_number_and_names_the_reason(void **state)
{
	struct version v = version_of(1, OLD);
	struct place place;
	char why[FILE_WHY];

	(void)state;
	place_init(&place, 10);
	for (int call = CALL_OPEN; call <= CALL_RENAME; call++) {
		if (call == CALL_FCHOWN)
			continue; /* not called: it is the agent's */
		why[0] = '\0';
		fault = (struct fault){.call = call, .nth = 1, .error = ENOSPC};
		assert_int_equal(store_save(place.store, &v, OLD, strlen(OLD), true, why), -ENOSPC);
		assert_non_null(strstr(why, "No space left on device: make room"));
		assert_int_equal(store_next_generation(place.store), 1);
		assert_int_equal(scratch_count(place.files, ""), 0);
	}
	/* the directory's fsync: it is there, but not known to be on the disk */
	fault = (struct fault){.call = CALL_FSYNC, .nth = 2, .error = EIO};
	assert_int_equal(store_save(place.store, &v, OLD, strlen(OLD), true, why), -EIO);
	assert_int_equal(store_next_generation(place.store), 2);
	version_fini(&v);
	place_fini(&place);
}

static void describe_file__has_its_size_and_time(void **state)
{
	struct store_file file = {0};
	int64_t now_ms = (int64_t)time(NULL) * 1000;
	struct place place;

	(void)state;
	place_init(&place, 10);
	save_text(&place, 1, OLD);
	assert_int_equal(store_describe_file(place.store, 1, &file), 0);
	assert_true(file.bytes > strlen(OLD));
	assert_in_range(file.at_ms, now_ms - 60000, now_ms + 60000);
	assert_int_equal(store_describe_file(place.store, 2, &file), -ENOENT);
	place_fini(&place);
}

/* ---- where upper and lower case are one ---- */

static const char *listed_name(const char *name)
{
	return strcmp(name, "WEB") == 0 ? "web" : name;
}

static int open_in_any_case(int dir, const char *path, int flags, mode_t mode)
{
	return openat(dir, listed_name(path), flags, mode);
}

static int open_plain_in_any_case(int dir, const char *path, int flags)
{
	return openat(dir, listed_name(path), flags | O_CLOEXEC);
}

static int stat_in_any_case(int dir, const char *path, struct stat *ret_st, int flags)
{
	return fstatat(dir, listed_name(path), ret_st, flags);
}

static void state__of_a_config_whose_name_is_in_another_case__is_not_opened(void **state)
{
	struct store *other = NULL;
	struct sys caseless = sys;
	struct place p;
	char why[FILE_WHY];

	(void)state;
	place_init(&p, 10);
	save_text(&p, 1, OLD);
	caseless.openat = open_in_any_case;
	caseless.open_plain = open_plain_in_any_case;
	caseless.fstatat = stat_in_any_case;
	assert_int_equal(store_open(&caseless, p.dir, "WEB", 10, &other, why), -EEXIST);
	assert_non_null(strstr(why, "/WEB: web is the same there"));
	assert_null(other);
	place_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(state__of_a_config_whose_name_is_in_another_case__is_not_opened),
		cmocka_unit_test(load__of_a_file_of_the_former_format__is_one_part_that_was_pulled),
		cmocka_unit_test(save__of_several_parts__keeps_the_bytes_of_each_in_their_place),
		cmocka_unit_test(save__of_absent_parts_only__is_a_version_without_bytes),
		cmocka_unit_test(save__with_a_product__keeps_it_behind_the_parts),
		cmocka_unit_test(save__with_any_character_in_the_facts__brings_them_back),
		cmocka_unit_test(save__with_decisions__brings_them_back),
		cmocka_unit_test(save__with_the_digest_of_settings__brings_it_back),
		cmocka_unit_test(text__of_a_version__is_its_etag_without_quotes),
		cmocka_unit_test(bytes__of_a_version__are_those_of_documents),
		cmocka_unit_test(descriptor_0__is_as_good_as_any),
		cmocka_unit_test(state_directory__of_a_path_that_is_too_long__says_so),
		cmocka_unit_test(sync__brings_the_directory_s_own_name_to_the_disk_once),
		cmocka_unit_test(save__when_the_directory_s_name_cannot_be_synced__has_failed),
		cmocka_unit_test(save__with_epochs__brings_each_back_to_its_part),
		cmocka_unit_test(
			save__of_as_many_parts_as_there_may_be__comes_back_and_one_more_does_not),
		cmocka_unit_test(copy__is_the_same_version_in_memory_of_its_own),
		cmocka_unit_test(same__is_about_bytes_and_where_they_are_and_nothing_else),
		cmocka_unit_test(load__of_a_file_with_any_byte_flipped_or_cut_off__takes_the_older),
		cmocka_unit_test(
			load__of_facts_that_are_damaged_under_a_good_checksum__refuses_them),
		cmocka_unit_test(cause__comes_back_and_is_unknown_where_it_is_not_there),
		cmocka_unit_test(load_generation__of_one_that_is_missing_or_damaged__tells_which),
		cmocka_unit_test(load__when_the_fault_is_ours__leaves_the_file_where_it_is),
		cmocka_unit_test(generations__never_go_back),
		cmocka_unit_test(open__that_cannot_see_the_numbers__does_not_begin_again_at_one),
		cmocka_unit_test(list__is_highest_first_and_only_of_versions),
		cmocka_unit_test(prune__keeps_as_many_as_it_is_told),
		cmocka_unit_test(prune__with_another_number_to_keep__removes_what_is_too_old),
		cmocka_unit_test(prune__spares_the_proven_and_what_the_server_has),
		cmocka_unit_test(prune__of_what_has_the_newest_ones_bytes__comes_before_older_ones),
		cmocka_unit_test(prune__while_the_newest_may_be_lost__keeps_those_that_are_not),
		cmocka_unit_test(remove__takes_one_away_and_its_number_is_not_used_again),
		cmocka_unit_test(keep__of_damaged_files__is_the_same_number),
		cmocka_unit_test(save__when_the_state_directory_was_removed__makes_it_again),
		cmocka_unit_test(open__where_it_cannot_be__says_where_and_why),
		cmocka_unit_test(directory__that_others_may_write_in__is_not_used),
		cmocka_unit_test(load__of_more_than_there_is_room_for__is_that),
		cmocka_unit_test(load_below__of_a_number__is_of_what_is_lower),
		cmocka_unit_test(save__of_facts_without_end__says_so_and_writes_nothing),
		cmocka_unit_test(files__are_the_agents_alone),
		cmocka_unit_test(open__removes_what_a_crash_left_and_nothing_else),
		cmocka_unit_test(save__that_fails__uses_up_no_number_and_names_the_reason),
		cmocka_unit_test(describe_file__has_its_size_and_time),
	};

	umask(077);
	sys = fault_table();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

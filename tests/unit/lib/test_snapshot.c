/*
 * The image: written as the golden files are, which another program wrote from FORMAT.md; read back
 * against a model, a plain sorted list; and damaged in every place.
 *
 * An image under test lies in memory of exactly its length, so that a sanitizer sees the first byte
 * beyond. With a digest made good again, damage reaches what only the later checks can see.
 */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cmocka.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "lib/snapshot.h"
#include "tests/unit/fixture/model_random.h"

#define STEPS 1000000
#define DAMAGES 100000
#define LARGEST 2000 /* entries of an image */
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Sanitizers end the program on a request that malloc would only refuse. */
const char *__asan_default_options(void);
const char *__tsan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}
const char *__tsan_default_options(void)
{
	return "allocator_may_return_null=1";
}

static struct snapshot_entry entries[LARGEST];
static char names[LARGEST][100], texts[LARGEST][24];

/* ---- golden files ---- */

static unsigned char *read_golden(const char *name, size_t *ret_len)
{
	static unsigned char whole[1 << 18];
	unsigned char *exact;
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%.*s../../golden/%s",
		(int)(sizeof(__FILE__) - sizeof("test_snapshot.c")), __FILE__, name);
	f = fopen(path, "rb");
	if (!f)
		fail_msg("%s can not be read: run from the root of the repository", path);
	*ret_len = fread(whole, 1, sizeof(whole), f);
	assert_true(*ret_len < sizeof(whole));
	fclose(f);
	exact = malloc(*ret_len ? *ret_len : 1);
	assert_non_null(exact);
	return memcpy(exact, whole, *ret_len);
}

#define NUL(k)                                                                                     \
	{                                                                                          \
		k, PULLET_NULL, "", 0, 0                                                           \
	}
#define BOOL(k, t, v)                                                                              \
	{                                                                                          \
		k, PULLET_BOOL, t, v, 0                                                            \
	}
#define INT(k, t, v)                                                                               \
	{                                                                                          \
		k, PULLET_INT, t, v, 0                                                             \
	}
#define DOUBLE(k, t, v)                                                                            \
	{                                                                                          \
		k, PULLET_DOUBLE, t, 0, v                                                          \
	}
#define STRING(k, t)                                                                               \
	{                                                                                          \
		k, PULLET_STRING, t, 0, 0                                                          \
	}
#define LIST(k, n)                                                                                 \
	{                                                                                          \
		k, PULLET_LIST, "", n, 0                                                           \
	}
#define MAP(k, n)                                                                                  \
	{                                                                                          \
		k, PULLET_MAP, "", n, 0                                                            \
	}
#define X10 "xxxxxxxxxx"
#define X100 X10 X10 X10 X10 X10 X10 X10 X10 X10 X10
#define HEX8                                                                                       \
	"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"                         \
	"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HEX64 HEX8 HEX8 HEX8 HEX8 HEX8 HEX8 HEX8 HEX8

/* What is in types.snap, but for the numbered and the deep ones. */
static const struct row {
	const char *key;
	enum pullet_type type;
	const char *text;
	int64_t integer; /* or what is counted */
	double number;
} type_rows[] = {
	NUL("null.plain"),
	MAP("null", 1),
	MAP("bool", 2),
	BOOL("bool.yes", "true", 1),
	BOOL("bool.no", "false", 0),
	MAP("int", 9),
	INT("int.min", "-9223372036854775808", INT64_MIN),
	INT("int.max", "9223372036854775807", INT64_MAX),
	INT("int.zero", "0", 0),
	INT("int.one", "1", 1),
	INT("int.minus", "-1", -1),
	INT("int.plus", "+7", 7),
	INT("int.hex", "0x1F", 31),
	INT("int.octal", "0o17", 15),
	INT("int.zeros", "007", 7),
	MAP("double", 10),
	DOUBLE("double.tenth", "0.1", 0.1),
	DOUBLE("double.minus_zero", "-0.0", -0.0),
	DOUBLE("double.small", "1e-300", 1e-300),
	DOUBLE("double.subnormal", "5e-324", 4.9406564584124654e-324),
	DOUBLE("double.largest", "1.7976931348623157e308", 1.7976931348623157e308),
	DOUBLE("double.third", "0.3333333333333333", 0.3333333333333333),
	DOUBLE("double.exponent", "12E03", 12000),
	DOUBLE("double.inf", ".inf", INFINITY),
	DOUBLE("double.minus_inf", "-.Inf", -INFINITY),
	DOUBLE("double.nan", ".NaN", NAN),
	MAP("string", 13),
	STRING("string.empty", ""),
	STRING("string.host", "db.example.com"),
	STRING("string.long", HEX64 HEX64 HEX64),
	STRING("string.utf8", "gr\xc3\xbc\xc3\x9f"
			      "e \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x90\x94"),
	STRING("string.lines", "one\ntwo\n\ttab \"quote\" \\ "),
	STRING("string.control", "\x01\x1f\x7f"),
	STRING("string.like_int", "42"),
	STRING("string.like_bool", "true"),
	STRING("string.like_double", "2.5"),
	STRING("string.duration", "1500ms"),
	STRING("string.size", "64KiB"),
	STRING("string.seven", "7 bytes"),
	STRING("string.space", " 42"),
	MAP("list", 3),
	LIST("list.empty", 0),
	LIST("list.servers", 2),
	MAP("list.servers.0", 1),
	STRING("list.servers.0.host", "a"),
	MAP("list.servers.1", 1),
	STRING("list.servers.1.host", "b"),
	LIST("list.many", 12),
	MAP("map", 1),
	MAP("map.empty", 0),
	MAP("a\\.b", 2),
	STRING("a\\.b.c\\\\d", "dot and backslash"),
	STRING("a\\.b.\\.\\.", "two dots"),
	STRING("a", "a"),
	STRING("a.", "an empty segment"),
	STRING("a b", "a space"),
	STRING("A", "upper"),
	STRING("k\xc3\xa4se", "umlaut"),
	STRING("k\xee\x80\x80", "private"),
	STRING("k\xef\xbd\x9e", "wide tilde"),
	STRING("k\xf0\x9f\x90\x94", "hen"),
	STRING("kz", "z"),
	STRING(X100 X100, "a long key"),
};

static struct snapshot_entry entry(const char *key, enum pullet_type type, const char *text)
{
	struct snapshot_entry e = {.key = key, .key_len = strlen(key)};

	e.value.type = type;
	e.value.text = text;
	e.value.len = strlen(text);
	return e;
}

static size_t types_entries(void)
{
	size_t n = 0;

	for (; n < COUNT(type_rows); n++) {
		const struct row *r = &type_rows[n];

		entries[n] = entry(r->key, r->type, r->text);
		if (r->type == PULLET_DOUBLE)
			entries[n].value.number = r->number;
		else if (r->type == PULLET_BOOL)
			entries[n].value.boolean = r->integer != 0;
		else
			entries[n].value.integer = r->integer;
	}
	for (int i = 0; i < 12; i++, n++) {
		snprintf(names[n], sizeof(names[n]), "list.many.%d", i);
		snprintf(texts[n], sizeof(texts[n]), "%d", i * i);
		entries[n] = entry(names[n], PULLET_INT, texts[n]);
		entries[n].value.integer = i * i;
	}
	for (int i = 0; i <= 40; i++, n++) {
		int len = snprintf(names[n], sizeof(names[n]), "deep");

		for (int level = 0; level < i; level++)
			len += snprintf(names[n] + len, sizeof(names[n]) - (size_t)len, ".d");
		entries[n] = i == 40 ? entry(names[n], PULLET_STRING, "bottom")
				     : entry(names[n], PULLET_MAP, "");
		entries[n].value.count = i < 40;
	}
	return n;
}

static size_t many_entries(void) /* the same rule is in tests/golden/make.py */
{
	for (int i = 0; i < 2000; i++) {
		snprintf(names[i], sizeof(names[i]), "section%d.key%d", i % 13, i);
		if (i % 3 == 0) {
			snprintf(texts[i], sizeof(texts[i]), "%d", i * 37 - 1000);
			entries[i] = entry(names[i], PULLET_INT, texts[i]);
			entries[i].value.integer = i * 37 - 1000;
		} else if (i % 3 == 1) {
			snprintf(texts[i], sizeof(texts[i]), "value %d", i);
			entries[i] = entry(names[i], PULLET_STRING, texts[i]);
		} else {
			entries[i] = entry(names[i], PULLET_BOOL, i % 2 ? "true" : "false");
			entries[i].value.boolean = i % 2;
		}
	}
	return 2000;
}

static size_t one_entry(void)
{
	entries[0] = entry("only", PULLET_STRING, "value");
	return 1;
}

static size_t no_entries(void)
{
	return 0;
}

static size_t collide_entries(void)
{
	entries[0] = entry("", PULLET_STRING, "the empty key");
	for (int i = 0; i < 14; i++) {
		snprintf(names[i], sizeof(names[i]), "c%d", i);
		entries[i + 1] = entry(names[i], PULLET_INT, names[i] + 1);
		entries[i + 1].value.integer = i;
	}
	return 15;
}

static char version_255[256];

static const struct golden {
	const char *name;
	size_t (*entries)(void);
	uint64_t generation;
	int64_t created_ms;
	const char *version;
	bool ours; /* written with as many slots as snapshot_build() writes */
} goldens[] = {
	{"types.snap", types_entries, 7, 1700000000123,
		"W/7-gr\xc3\xbc\xc3\x9f"
		"e",
		true},
	{"empty.snap", no_entries, 3, 1700000000000, "none", true},
	{"one.snap", one_entry, 1, 0, NULL, true},
	{"many.snap", many_entries, 4294967301, 1732180000000, version_255, true},
	{"collide.snap", collide_entries, UINT64_MAX, INT64_MAX, "c", false},
};

static int set_up(void **state)
{
	(void)state;
	memset(version_255, 'v', 255);
	return 0;
}

static uint64_t bits_of(const struct pullet_value *v)
{
	uint64_t bits = 0;

	switch (v->type) {
	case PULLET_BOOL:
		return v->boolean;
	case PULLET_DOUBLE:
		memcpy(&bits, &v->number, sizeof(bits));
		return bits;
	default:
		return v->count;
	}
}

static bool same_value(const struct pullet_value *a, const struct pullet_value *b)
{
	return a->type == b->type && a->len == b->len && memcmp(a->text, b->text, a->len) == 0 &&
	       a->text[a->len] == '\0' && bits_of(a) == bits_of(b);
}

static int by_key(const void *a, const void *b)
{
	const struct snapshot_entry *x = a, *y = b;
	size_t shorter = x->key_len < y->key_len ? x->key_len : y->key_len;
	int r = memcmp(x->key, y->key, shorter);

	return r ? r : (int)(x->key_len > y->key_len) - (int)(x->key_len < y->key_len);
}

static void build__what_the_golden_files_hold__gives_their_bytes(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(goldens); i++) {
		const struct golden *g = &goldens[i];
		size_t count = g->entries(), golden_len, len = 0;
		unsigned char *golden = read_golden(g->name, &golden_len);
		void *image = NULL;
		uint64_t counted = snapshot_frame_size(count);

		for (size_t k = 0; k < count; k++)
			counted += snapshot_record_size(entries[k].key_len, entries[k].value.len);
		assert_int_equal(snapshot_build(entries, count, g->generation, g->created_ms,
					 g->version, &image, &len),
			0);
		assert_true(len >= counted &&
			    len <= counted + (g->version ? strlen(g->version) : 0) + 7);
		if (g->ours) {
			assert_int_equal(len, golden_len);
			assert_memory_equal(image, golden, len);
		}
		free(image);
		free(golden);
	}
}

static void open__golden_files__hold_what_they_should(void **state)
{
	static const char *const absent[] = {"", "nul", "null.", "null.plain.", "int.mi",
		"int.minn", "int.Min", ".", "a.b", "a\\", "a\\.", "a\\.b.", "list.many.12",
		"list.many.00", "deep.", "k", "k\xc3", X100, X100 X100 "x", "zzz", "\xff\xff", "o",
		"onl", "only.", "Only", "onlyx", "section0.key1", "section12.key2000", "section0.",
		"c", "c14", "c00", "c15"};

	(void)state;
	for (size_t i = 0; i < COUNT(goldens); i++) {
		const struct golden *g = &goldens[i];
		size_t count = g->entries(), len, key_len;
		unsigned char *golden = read_golden(g->name, &len);
		struct pullet_value v;
		struct snapshot s;
		const char *key;

		qsort(entries, count, sizeof(entries[0]), by_key);
		assert_int_equal(snapshot_open(golden, len, &s), 0);
		assert_true(snapshot_generation(&s) == g->generation);
		assert_string_equal(snapshot_version(&s), g->version ? g->version : "");
		assert_int_equal(s.count, count);
		for (size_t k = 0; k < count; k++) {
			const struct snapshot_entry *e = &entries[k];

			assert_int_equal(snapshot_get(&s, e->key, e->key_len, &v), 0);
			assert_true(same_value(&v, &e->value));
			assert_true(snapshot_at(&s, k, &key, &key_len, &v));
			assert_int_equal(key_len, e->key_len);
			assert_memory_equal(key, e->key, key_len + 1);
			assert_true(same_value(&v, &e->value));
			assert_int_equal(snapshot_lower_bound(&s, e->key, e->key_len), k);
		}
		assert_false(snapshot_at(&s, count, &key, &key_len, &v));
		assert_false(snapshot_at(&s, SIZE_MAX, &key, &key_len, &v));
		assert_int_equal(snapshot_lower_bound(&s, "\xff\xff", 2), count);
		assert_int_equal(snapshot_lower_bound(&s, "", 0), 0);
		for (size_t k = 0; k < COUNT(absent); k++) {
			struct snapshot_entry e = entry(absent[k], PULLET_NULL, "");

			if (!bsearch(&e, entries, count, sizeof(e), by_key))
				assert_int_equal(snapshot_get(&s, e.key, e.key_len, &v), -ENOENT);
		}
		free(golden);
	}
}

/* ---- rule by rule ---- */

static void *build(size_t count, size_t *ret_len)
{
	void *image = NULL;

	assert_int_equal(snapshot_build(entries, count, 1, -1, NULL, &image, ret_len), 0);
	return image;
}

static int build_result(size_t count, uint64_t generation, const char *version)
{
	void *image = &image;
	size_t len = 77;
	int r = snapshot_build(entries, count, generation, 0, version, &image, &len);

	if (r) { /* written only on success */
		assert_ptr_equal(image, &image);
		assert_int_equal(len, 77);
	} else {
		free(image);
	}
	return r;
}

static void build__generation_0__is_refused(void **state)
{
	(void)state;
	assert_int_equal(build_result(0, 0, NULL), -EINVAL);
	assert_int_equal(build_result(one_entry(), 0, NULL), -EINVAL);
	assert_int_equal(build_result(one_entry(), UINT64_MAX, NULL), 0);
}

static void build__two_equal_keys__are_refused(void **state)
{
	(void)state;
	for (size_t twin = 0; twin < 60; twin++) {
		size_t count = types_entries();

		entries[count] = entry(entries[twin].key, PULLET_STRING, "twin");
		assert_int_equal(build_result(count + 1, 1, NULL), -EINVAL);
	}
	entries[0] = entries[1] = entry("", PULLET_STRING, "");
	assert_int_equal(build_result(2, 1, NULL), -EINVAL);
}

static void build__a_key_that_begins_another__is_another(void **state)
{
	struct pullet_value v;
	struct snapshot s;
	void *image;
	size_t len;

	(void)state;
	for (size_t i = 0; i < 100; i++) {
		entries[i] = entry("", PULLET_LIST, "");
		entries[i].key = X100;
		entries[i].key_len = 99 - i;
		entries[i].value.count = 99 - i;
	}
	image = build(100, &len);
	assert_int_equal(snapshot_open(image, len, &s), 0);
	for (size_t i = 0; i < 100; i++) {
		assert_int_equal(entries[i].key_len, i); /* sorted in place */
		assert_int_equal(snapshot_get(&s, X100, i, &v), 0);
		assert_int_equal(v.count, i);
		assert_int_equal(snapshot_lower_bound(&s, X100, i), i);
	}
	assert_int_equal(snapshot_get(&s, X100, 100, &v), -ENOENT);
	assert_int_equal(snapshot_lower_bound(&s, X100, 100), 100);
	free(image);
}

static void build__beyond_the_bounds__is_refused(void **state)
{
	static char long_version[SNAPSHOT_MAX_VERSION + 2];
	size_t len;

	(void)state;
	memset(long_version, 'v', sizeof(long_version) - 1);
	assert_int_equal(build_result(one_entry(), 1, long_version), -EMSGSIZE);
	assert_int_equal(build_result(one_entry(), 1, long_version + 1), 0);
	one_entry();
	entries[0].key_len = 1 << 24; /* refused before anything is read */
	assert_int_equal(build_result(1, 1, NULL), -EMSGSIZE);
	entries[0].key_len = SIZE_MAX;
	assert_int_equal(build_result(1, 1, NULL), -EMSGSIZE);
	one_entry();
	for (len = SIZE_MAX; len > UINT32_MAX - 100; len = len / 2 + (len == UINT32_MAX)) {
		entries[0].value.len = len;
		assert_int_equal(build_result(1, 1, NULL), -EMSGSIZE);
	}
	for (len = (size_t)UINT32_MAX + 10; len > UINT32_MAX - 100; len--) {
		entries[0].value.len = len;
		assert_int_equal(build_result(1, 1, NULL), -EMSGSIZE);
	}
	for (int i = 0; i < 3; i++) { /* each fits, all do not */
		entries[i] = entry(i == 0 ? "a" : i == 1 ? "b" : "c", PULLET_STRING, "");
		entries[i].value.len = UINT32_C(1) << 31;
	}
	assert_int_equal(build_result(3, 1, NULL), -EMSGSIZE);
	assert_int_equal(build_result(((size_t)1 << 28) + 1, 1, NULL), -EMSGSIZE);
	assert_int_equal(build_result((size_t)1 << 32, 1, NULL), -EMSGSIZE);
	assert_int_equal(build_result(SIZE_MAX, 1, NULL), -EMSGSIZE);
}

static void build__the_longest_key__is_found(void **state)
{
	size_t key_len = (1 << 24) - 1, len, got_len;
	char *key = malloc(key_len + 1);
	struct pullet_value v;
	struct snapshot s;
	const char *got;
	void *image;

	(void)state;
	assert_non_null(key);
	memset(key, 'k', key_len + 1);
	entries[0] = entry("", PULLET_STRING, "long");
	entries[0].key = key;
	entries[0].key_len = key_len;
	image = build(1, &len);
	assert_int_equal(snapshot_open(image, len, &s), 0);
	assert_int_equal(snapshot_get(&s, key, key_len, &v), 0);
	assert_string_equal(v.text, "long");
	assert_int_equal(snapshot_get(&s, key, key_len - 1, &v), -ENOENT);
	assert_int_equal(snapshot_get(&s, key, key_len + 1, &v), -ENOENT);
	assert_true(snapshot_at(&s, 0, &got, &got_len, &v));
	assert_int_equal(got_len, key_len);
	free(image);
	free(key);
}

static void build__without_memory__says_so(void **state)
{
	size_t len = 32 << 20;
	struct rlimit before, none;
	char *text = malloc(len);
	void *image = NULL;
	int r;

	(void)state;
	assert_non_null(text);
	memset(text, 't', len);
	one_entry();
	entries[0].value.text = text;
	entries[0].value.len = len;
	assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
	none = before;
	none.rlim_cur = 4096;
	assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
	r = snapshot_build(entries, 1, 1, 0, NULL, &image, &len);
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
	free(text);
	assert_int_equal(r, -ENOMEM);
	assert_null(image);
}

static void build__a_type_that_is_none__makes_a_record_that_is_not_found(void **state)
{
	struct pullet_value v;
	struct snapshot s;
	const char *key;
	size_t len, key_len;
	void *image;

	(void)state;
	one_entry();
	entries[0].value.type = (enum pullet_type)(PULLET_MAP + 1);
	image = build(1, &len);
	assert_int_equal(snapshot_open(image, len, &s), 0);
	assert_int_equal(snapshot_get(&s, "only", 4, &v), -ENOENT);
	assert_false(snapshot_at(&s, 0, &key, &key_len, &v));
	free(image);
}

static void stamp__gives_another_generation_and_changes_nothing_else(void **state)
{
	unsigned char *stamped = NULL;
	void *built = NULL;
	size_t count = types_entries(), len = 0, built_len = 0;
	struct snapshot s;
	uint64_t digest;

	(void)state;
	assert_int_equal(snapshot_build(entries, count, 1, 17, "v", (void **)&stamped, &len), 0);
	digest = snapshot_stamp(stamped, len, UINT64_MAX);
	assert_int_equal(snapshot_open(stamped, len, &s), 0);
	assert_true(snapshot_generation(&s) == UINT64_MAX);
	assert_true(snapshot_digest(&s) == digest);
	assert_true(snapshot_digest(&s) == XXH64(stamped + 16, len - 16, 0));
	assert_int_equal(
		snapshot_build(entries, count, UINT64_MAX, 17, "v", &built, &built_len), 0);
	assert_int_equal(len, built_len);
	assert_memory_equal(stamped, built, len);
	snapshot_stamp(stamped, len, 0);
	assert_int_equal(snapshot_open(stamped, len, &s), -EBADMSG);
	free(built);
	free(stamped);
}

/* Finds the record by its hash, whose key is another one in one byte. */
static void get__compares_each_byte_of_a_key(void **state)
{
	char key[50] = "";
	unsigned char *image;
	struct pullet_value v;
	struct snapshot s;
	size_t len, at;

	(void)state;
	for (size_t key_len = 1; key_len < sizeof(key); key_len++) {
		key[key_len - 1] = (char)('a' + key_len % 26);
		entries[0] = entry(key, PULLET_STRING, "text");
		image = build(1, &len);
		assert_int_equal(snapshot_open(image, len, &s), 0);
		assert_int_equal(snapshot_get(&s, key, key_len, &v), 0);
		at = (size_t)((const unsigned char *)v.text - image) - 1 - key_len;
		for (size_t i = 0; i < key_len; i++) {
			image[at + i] ^= 0x80;
			assert_int_equal(snapshot_get(&s, key, key_len, &v), -ENOENT);
			image[at + i] ^= 0x80;
		}
		assert_int_equal(snapshot_get(&s, key, key_len, &v), 0);
		free(image);
	}
}

/* One byte of a text is another one: only the digest tells. */
static void open_verified__checks_all_but_the_digest(void **state)
{
	unsigned char *image = NULL;
	struct pullet_value v;
	struct snapshot s;
	size_t len = 0;

	(void)state;
	entries[0] = entry("key", PULLET_STRING, "text");
	image = build(1, &len);
	assert_int_equal(snapshot_open_verified(image, len, &s), 0);
	assert_true(snapshot_verify(&s));
	assert_int_equal(snapshot_get(&s, "key", 3, &v), 0);
	*(unsigned char *)(uintptr_t)v.text ^= 1;
	assert_int_equal(snapshot_open(image, len, &s), -EBADMSG);
	assert_int_equal(snapshot_open_verified(image, len, &s), 0);
	assert_false(snapshot_verify(&s));
	assert_int_equal(snapshot_get(&s, "key", 3, &v), 0);
	assert_string_equal(v.text, "uext");
	assert_int_equal(snapshot_open_verified(image, len - 8, &s), -EBADMSG);
	image[44] = 3; /* slots: not a power of two */
	assert_int_equal(snapshot_open_verified(image, len, &s), -EBADMSG);
	image[0] ^= 1;
	assert_int_equal(snapshot_open_verified(image, len, &s), -EPROTO);
	free(image);
}

static void open__beyond_4_gib__is_refused(void **state)
{
	uint64_t len = UINT64_C(1) << 32;
	struct snapshot s;
	size_t good_len;
	unsigned char *good = read_golden("one.snap", &good_len);
	unsigned char *image = mmap(NULL, len, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	(void)state;
	assert_true(image != MAP_FAILED);
	memcpy(image, good, good_len);
	memcpy(image + 16, &len, 8);
	assert_int_equal(snapshot_open(image, len, &s), -EBADMSG);
	munmap(image, len);
	free(good);
}

/* ---- damage ---- */

/* Makes file_size and digest good again. */
static void mend(unsigned char *image, size_t len)
{
	uint64_t size = len, digest;

	if (len < 64)
		return;
	memcpy(image + 16, &size, 8);
	digest = XXH64(image + 16, len - 16, 0);
	memcpy(image + 8, &digest, 8);
}

/* Uses all there is of an image that may be bad in any way; what it gives lies inside it. */
static void use(const unsigned char *image, size_t len)
{
	struct pullet_value v;
	size_t key_len, n = 0;
	struct snapshot s;
	const char *key;

	if (snapshot_open(image, len, &s))
		return;
	CHECK(snapshot_generation(&s) > 0);
	n += strlen(snapshot_version(&s));
	for (size_t i = 0; i < s.count; i++) {
		if (!snapshot_at(&s, i, &key, &key_len, &v))
			continue;
		CHECK((const unsigned char *)key >= image && key[key_len] == '\0');
		CHECK((const unsigned char *)v.text + v.len < image + len && v.text[v.len] == '\0');
		CHECK(v.type <= PULLET_MAP);
		n += strlen(key) + strlen(v.text) + bits_of(&v);
		CHECK(snapshot_lower_bound(&s, key, key_len) <= s.count);
		n += snapshot_get(&s, key, key_len, &v) == 0;
	}
	CHECK(snapshot_get(&s, "absent", 6, &v) == -ENOENT);
	model_random.step += n == SIZE_MAX; /* n is used */
}

static void open__any_byte_changed__is_refused(void **state)
{
	static const unsigned char changes[] = {0x01, 0x80, 0xff};
	struct snapshot s;
	size_t len;
	unsigned char *image = read_golden("types.snap", &len);

	(void)state;
	for (size_t i = 0; i < len; i++)
		for (size_t c = 0; c < COUNT(changes); c++) {
			image[i] ^= changes[c];
			assert_int_equal(snapshot_open(image, len, &s), i < 8 ? -EPROTO : -EBADMSG);
			image[i] ^= changes[c];
		}
	assert_int_equal(snapshot_open(image, len, &s), 0);
	free(image);
}

/* Each but for the number of slots as it was: at least two, a power of two, more than keys. */
static void open__another_number_of_slots__is_refused(void **state)
{
	static const uint32_t numbers[] = {0, 1, 3, 5, 6, 7};
	struct snapshot s;
	size_t len;
	unsigned char *image = read_golden("empty.snap", &len);

	(void)state;
	assert_int_equal(snapshot_open(image, len, &s), 0);
	for (size_t i = 0; i < COUNT(numbers); i++) {
		memset(image + 44, 0, 4);
		image[44] = (unsigned char)numbers[i];
		mend(image, len);
		assert_int_equal(snapshot_open(image, len, &s), -EBADMSG);
	}
	free(image);
}

static void open__any_other_length__is_refused(void **state)
{
	struct snapshot s;
	size_t len;
	unsigned char *image = read_golden("types.snap", &len);

	(void)state;
	for (size_t n = 0; n <= len + 64; n++) {
		unsigned char *other = calloc(1, n ? n : 1);
		int r;

		assert_non_null(other);
		memcpy(other, image, n < len ? n : len);
		r = snapshot_open(other, n, &s);
		if (n == len)
			assert_int_equal(r, 0);
		else
			assert_true(r == -EBADMSG || (r == -EPROTO && n < 64));
		free(other);
	}
	free(image);
}

static void open__any_length_with_a_good_digest__reads_nothing_beyond(void **state)
{
	static const char *const files[] = {"types.snap", "collide.snap", "one.snap", "empty.snap"};

	(void)state;
	model_random_start();
	model_random.part = "a shorter file,";
	for (size_t i = 0; i < COUNT(files); i++) {
		size_t len;
		unsigned char *image = read_golden(files[i], &len);

		for (size_t n = 0; n < len; n++) {
			unsigned char *other = malloc(n ? n : 1);

			assert_non_null(other);
			memcpy(other, image, n);
			mend(other, n);
			model_random.step = n;
			use(other, n);
			free(other);
		}
		free(image);
	}
}

static void open__bytes_changed_and_a_good_digest__reads_nothing_beyond(void **state)
{
	static const char *const files[] = {"collide.snap", "one.snap", "empty.snap", "types.snap"};
	static const unsigned char likely[] = {0, 1, 7, 8, 0x7f, 0x80, 0xff};

	(void)state;
	model_random_start();
	model_random.part = "changed bytes,";
	for (size_t i = 0; i < COUNT(files); i++) {
		size_t len, at;
		unsigned char *good = read_golden(files[i], &len), *image = malloc(len);
		uint64_t rounds = len > 1000 ? DAMAGES / 100 : DAMAGES;

		assert_non_null(image);
		while (rounds--) {
			model_random.step = rounds;
			memcpy(image, good, len);
			for (uint64_t changes = 1 + random_below(6); changes; changes--) {
				at = random_below(4) ? 24 + random_below(len - 24)
						     : 40 + random_below(24);
				image[at] = random_below(2) ? (unsigned char)random_bits()
							    : likely[random_below(COUNT(likely))];
			}
			mend(image, len);
			use(image, len);
		}
		free(image);
		free(good);
	}
}

static const struct bad {
	const char *name;
	int error;                  /* 0 = either -EBADMSG or -EPROTO */
	const char *lost, *good[4]; /* opens, but this key is not found; keys and texts of others */
} bads[] = {
#define REFUSED(name)                                                                              \
	{                                                                                          \
		"bad/" name ".snap", -EBADMSG, NULL,                                               \
		{                                                                                  \
			NULL                                                                       \
		}                                                                                  \
	}
#define OPENS(name, ...)                                                                           \
	{                                                                                          \
		"bad/" name ".snap", 0, __VA_ARGS__                                                \
	}
#define B_LOST                                                                                     \
	"b",                                                                                       \
	{                                                                                          \
		"a", "first", "c", "true"                                                          \
	}
#define C_LOST                                                                                     \
	"c",                                                                                       \
	{                                                                                          \
		"a", "first", "b", "2"                                                             \
	}
	{"bad/magic.snap", -EPROTO, NULL, {NULL}},
	{"bad/layout-version.snap", -EPROTO, NULL, {NULL}},
	{"bad/no-bytes.snap", 0, NULL, {NULL}},
	{"bad/only-magic.snap", 0, NULL, {NULL}},
	{"bad/short-header.snap", 0, NULL, {NULL}},
	REFUSED("digest"),
	REFUSED("file-size-less"),
	REFUSED("file-size-more"),
	REFUSED("file-size-upper-half"),
	REFUSED("generation-0"),
	REFUSED("key-count-huge"),
	REFUSED("key-count-is-slot-count"),
	REFUSED("key-count-overflows"),
	REFUSED("order-end-outside"),
	REFUSED("order-far-outside"),
	REFUSED("order-misaligned"),
	REFUSED("order-outside"),
	REFUSED("records-far-outside"),
	REFUSED("records-misaligned"),
	REFUSED("records-outside"),
	REFUSED("slot-count-0"),
	REFUSED("slot-count-1"),
	REFUSED("slot-count-2"),
	REFUSED("slot-count-3"),
	REFUSED("slot-count-huge"),
	REFUSED("slot-count-not-power"),
	REFUSED("slot-count-overflows"),
	REFUSED("slots-end-outside"),
	REFUSED("slots-far-outside"),
	REFUSED("slots-misaligned"),
	REFUSED("slots-outside"),
	REFUSED("version-far-outside"),
	REFUSED("version-outside"),
	REFUSED("version-without-nul"),
	OPENS("key-len-outside", B_LOST),
	OPENS("key-len-to-end", C_LOST),
	OPENS("key-without-nul", B_LOST),
	OPENS("no-empty-slot", "absent", {"a", "first", "b", "2"}),
	OPENS("record-0", B_LOST),
	OPENS("record-cut", B_LOST),
	OPENS("record-far-outside", B_LOST),
	OPENS("record-in-header", B_LOST),
	OPENS("record-misaligned", B_LOST),
	OPENS("record-outside", B_LOST),
	OPENS("record-without-key", B_LOST),
	OPENS("text-len-outside", B_LOST),
	OPENS("text-len-overflows", B_LOST),
	OPENS("text-len-to-end", C_LOST),
	OPENS("text-without-nul", B_LOST),
	OPENS("type-255", B_LOST),
	OPENS("type-7", B_LOST),
};

static void opens_without(const struct snapshot *s, const struct bad *b)
{
	struct pullet_value v;
	const char *key;
	size_t key_len;

	assert_int_equal(snapshot_get(s, b->lost, strlen(b->lost), &v), -ENOENT);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(snapshot_get(s, b->good[2 * i], strlen(b->good[2 * i]), &v), 0);
		assert_string_equal(v.text, b->good[2 * i + 1]);
	}
	assert_int_equal(s->count, 3);
	for (size_t i = 0; i < 3; i++)
		assert_true(snapshot_at(s, i, &key, &key_len, &v) !=
			    ("abc"[i] == b->lost[0] && !b->lost[1]));
	for (const char *k = "abcd"; *k; k++)
		assert_true(snapshot_lower_bound(s, k, 1) <= 3);
}

static void open__bad_files__are_refused_or_lose_the_bad_record(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(bads); i++) {
		struct snapshot s;
		size_t len;
		unsigned char *image = read_golden(bads[i].name, &len);
		int r = snapshot_open(image, len, &s);

		if (!bads[i].lost != (r != 0) || (bads[i].error && bads[i].error != r))
			fail_msg("%s: %d", bads[i].name, r);
		if (bads[i].lost) {
			opens_without(&s, &bads[i]);
		} else {
			assert_true(r == -EBADMSG || r == -EPROTO);
		}
		free(image);
	}
}

static void bad_files__all_are_in_the_table(void **state)
{
	char path[4096];
	size_t files = 0;
	struct dirent *e;
	DIR *d;

	(void)state;
	snprintf(path, sizeof(path), "%.*s../../golden/bad",
		(int)(sizeof(__FILE__) - sizeof("test_snapshot.c")), __FILE__);
	d = opendir(path);
	assert_non_null(d);
	while ((e = readdir(d)))
		files += strstr(e->d_name, ".snap") != NULL;
	closedir(d);
	assert_int_equal(files, COUNT(bads));
}

/* ---- against the model ---- */

#define KEY 12 /* bytes of a random key at most */

static struct { /* in key order */
	struct snapshot_entry entry;
	char key[KEY], text[24];
} model[300];
static size_t model_count;

/* Few letters: many keys begin others, or are equal. */
static size_t random_key(char *key)
{
	static const char letters[] = "aab.\\\x01\x7f\x80\xff";
	size_t len = random_below(random_below(8) ? 5 : KEY + 1);

	for (size_t i = 0; i < len; i++)
		key[i] = letters[random_below(sizeof(letters) - 1)];
	return len;
}

static size_t model_bound(const char *key, size_t len)
{
	struct snapshot_entry e = {.key = key, .key_len = len};
	size_t i = 0;

	while (i < model_count && by_key(&model[i].entry, &e) < 0)
		i++;
	return i;
}

static bool model_has(size_t place, const char *key, size_t len)
{
	struct snapshot_entry e = {.key = key, .key_len = len};

	return place < model_count && by_key(&model[place].entry, &e) == 0;
}

static void point_into_model(size_t i)
{
	model[i].entry.key = model[i].key;
	model[i].entry.value.text = model[i].text;
}

static void model_insert(void)
{
	char key[KEY];
	size_t len = random_key(key), place = model_bound(key, len);
	struct pullet_value v = {.type = (enum pullet_type)random_below(PULLET_MAP + 1)};

	if (model_has(place, key, len))
		return;
	memmove(&model[place + 1], &model[place], (model_count - place) * sizeof(model[0]));
	model_count++;
	for (size_t i = place + 1; i < model_count; i++)
		point_into_model(i);
	v.len = v.type >= PULLET_BOOL && v.type <= PULLET_STRING ? random_below(24) : 0;
	memset(model[place].text, 'a' + (int)random_below(26), v.len);
	model[place].text[v.len] = '\0';
	if (v.type == PULLET_BOOL)
		v.boolean = random_below(2);
	else if (v.type != PULLET_NULL && v.type != PULLET_STRING)
		v.count = random_bits() >> random_below(64);
	memcpy(model[place].key, key, len);
	model[place].entry = (struct snapshot_entry){.key_len = len, .value = v};
	point_into_model(place);
}

static void shuffle_entries(void)
{
	for (size_t i = 0; i < model_count; i++) {
		size_t other = random_below(i + 1);

		entries[i] = entries[other];
		entries[other] = model[i].entry;
	}
}

/* An image of the model, from its entries in any order. */
static void *random_image(size_t *ret_len, uint64_t generation)
{
	void *image = NULL;

	model_count = 0;
	for (uint64_t n = random_below(random_below(8) ? 20 : COUNT(model)); n; n--)
		model_insert();
	if (model_count && random_below(16) == 0) { /* a twin */
		shuffle_entries();
		entries[model_count] = entries[random_below(model_count)];
		CHECK(snapshot_build(entries, model_count + 1, 1, 0, NULL, &image, ret_len) ==
			-EINVAL);
	}
	shuffle_entries();
	CHECK(snapshot_build(entries, model_count, generation, 0, "v", &image, ret_len) == 0);
	return image;
}

static void look_up(const struct snapshot *s)
{
	char key[KEY];
	size_t len = random_key(key), place, got_len;
	struct pullet_value v;
	const char *got;
	int r;

	if (model_count && random_below(2)) {
		place = random_below(model_count);
		len = model[place].entry.key_len;
		memcpy(key, model[place].key, len);
	}
	place = model_bound(key, len);
	switch (random_below(3)) {
	case 0:
		r = snapshot_get(s, key, len, &v);
		CHECK(r == (model_has(place, key, len) ? 0 : -ENOENT));
		CHECK(r || same_value(&v, &model[place].entry.value));
		return;
	case 1:
		CHECK(snapshot_lower_bound(s, key, len) == place);
		return;
	default:
		place = random_below(model_count + 2);
		CHECK(snapshot_at(s, place, &got, &got_len, &v) == (place < model_count));
		CHECK(place >= model_count || model_has(place, got, got_len));
		CHECK(place >= model_count || same_value(&v, &model[place].entry.value));
	}
}

static void random_operations__agree_with_a_sorted_list(void **state)
{
	struct snapshot s;
	void *image;
	size_t len;

	(void)state;
	model_random_start();
	model_random.part = "operations,";
	while (model_random.step < STEPS) {
		uint64_t generation = 1 + random_bits() / 2;

		image = random_image(&len, generation);
		CHECK(snapshot_open(image, len, &s) == 0);
		CHECK(snapshot_generation(&s) == generation);
		CHECK(s.count == model_count);
		for (int i = 0; i < 200; i++, model_random.step++)
			look_up(&s);
		free(image);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(build__what_the_golden_files_hold__gives_their_bytes),
		cmocka_unit_test(open__golden_files__hold_what_they_should),
		cmocka_unit_test(build__generation_0__is_refused),
		cmocka_unit_test(build__two_equal_keys__are_refused),
		cmocka_unit_test(build__a_key_that_begins_another__is_another),
		cmocka_unit_test(build__beyond_the_bounds__is_refused),
		cmocka_unit_test(build__the_longest_key__is_found),
		cmocka_unit_test(build__without_memory__says_so),
		cmocka_unit_test(build__a_type_that_is_none__makes_a_record_that_is_not_found),
		cmocka_unit_test(stamp__gives_another_generation_and_changes_nothing_else),
		cmocka_unit_test(get__compares_each_byte_of_a_key),
		cmocka_unit_test(open_verified__checks_all_but_the_digest),
		cmocka_unit_test(open__beyond_4_gib__is_refused),
		cmocka_unit_test(open__any_byte_changed__is_refused),
		cmocka_unit_test(open__another_number_of_slots__is_refused),
		cmocka_unit_test(open__any_other_length__is_refused),
		cmocka_unit_test(open__any_length_with_a_good_digest__reads_nothing_beyond),
		cmocka_unit_test(open__bytes_changed_and_a_good_digest__reads_nothing_beyond),
		cmocka_unit_test(open__bad_files__are_refused_or_lose_the_bad_record),
		cmocka_unit_test(bad_files__all_are_in_the_table),
		cmocka_unit_test(random_operations__agree_with_a_sorted_list),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}

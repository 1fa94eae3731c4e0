/*
 * Flat formats: what is written for each kind of value, what is refused, and that the agent's text
 * of a document is byte for byte what libpullet's values of its snapshot give, hostile and random
 * documents included.
 */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "document/flatten.h"
#include "publish/image.h"
#include "lib/pullet.h"
#include "tests/unit/fixture/model_random.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define KINDS 4
#define RANDOM_DOCUMENTS 2000

static char dir[PATH_MAX];

static struct document *parse(enum document_type type, const char *text)
{
	struct document *d = NULL;
	struct document_error e;

	if (document_parse(type, text, strlen(text), 0, &d, &e))
		fail_msg("%s in: %s", e.message, text);
	return d;
}

/* The text, or the sentence of the error; the buffer is the caller's. */
static int write_yaml(const char *yaml, enum flatten_kind kind, struct buffer *out)
{
	struct document *d = parse(DOCUMENT_YAML, yaml);
	char why[FILE_WHY] = "";
	int r;

	buffer_init(out, 1u << 20);
	buffer_append_string(out, "before\n");
	r = flatten_write(document_root(d), kind, out, why);
	document_free(d);
	assert_int_equal(strncmp(out->data, "before\n", 7), 0);
	if (r) {
		assert_string_equal(out->data, "before\n");
		assert_int_equal(out->len, 7);
		buffer_clear(out);
		buffer_append_string(out, why);
	} else {
		memmove(out->data, out->data + 7, out->len - 7 + 1);
	}
	return r;
}

static void expect(const char *yaml, enum flatten_kind kind, const char *text)
{
	struct buffer out;

	assert_int_equal(write_yaml(yaml, kind, &out), 0);
	assert_string_equal(out.data, text);
	buffer_fini(&out);
}

static void expect_refused(const char *yaml, enum flatten_kind kind, const char *sentence)
{
	struct buffer out;

	assert_int_equal(write_yaml(yaml, kind, &out), -EINVAL);
	assert_string_equal(out.data, sentence);
	buffer_fini(&out);
}

/* ---- what is written ---- */

static const char everything[] =
	"db: {host: localhost, port: 5432, on: true, none: ~, ratio: 1.50}\n"
	"l: [z, 1, 2, 3, 4, 5, 6, 7, 8, 9, ten]\n"
	"a.b: dotted\n"
	"a-b: {}\n"
	"9a: 3\n"
	"\u00e4\u00f6: \" it's\\t\\\\ \u20ac\U0001F600 \"\n";

static void write__env__is_a_line_for_each_scalar_in_key_order(void **state)
{
	(void)state;
	expect(everything, FLATTEN_ENV,
		"_9A=3\nA_B=dotted\nDB_HOST=localhost\nDB_NONE=\nDB_ON=true\nDB_PORT=5432\n"
		"DB_RATIO=1.50\nL_0=z\nL_1=1\nL_10=ten\nL_2=2\nL_3=3\nL_4=4\nL_5=5\nL_6=6\nL_7=7\n"
		"L_8=8\nL_9=9\n__= it's\t\\ \u20ac\U0001F600 \n");
}

static void write__sh__quotes_each_value(void **state)
{
	(void)state;
	expect("a: it's ''\nb: \"l\\nm\"\nc: $(x) `y` \\\nd: ''\n", FLATTEN_SH,
		"export A='it'\\''s '\\'''\\'''\nexport B='l\nm'\nexport C='$(x) `y` \\'\n"
		"export D=''\n");
}

static void write__environ__ends_each_value_with_a_nul(void **state)
{
	static const char all[] = "A=it's\0B=l\nm\0C=\0";
	struct buffer out;

	(void)state;
	assert_int_equal(write_yaml("a: it's\nb: \"l\\nm\"\nc: null\n", FLATTEN_ENVIRON, &out), 0);
	assert_int_equal(out.len, strlen("before\n") + sizeof(all) - 1);
	assert_memory_equal(out.data, all, sizeof(all));
	buffer_fini(&out);
}

static void write__properties__escapes_and_leaves_null_out(void **state)
{
	(void)state;
	expect("a: ' x = y '\nb: ~\nc.d: \"\\t\\n\\r\\f\\\\:#!\"\n'k =:#!': 1\n\u00e4: "
	       "\u20ac\U0001F600\n",
		FLATTEN_PROPERTIES,
		"a=\\ x \\= y \nc\\\\.d=\\t\\n\\r\\f\\\\\\:\\#\\!\nk\\ \\=\\:\\#\\!=1\n"
		"\\u00E4=\\u20AC\\uD83D\\uDE00\n");
}

static void write__of_a_document_without_scalars__is_nothing(void **state)
{
	(void)state;
	for (int kind = 0; kind < KINDS; kind++) {
		expect("{}", (enum flatten_kind)kind, "");
		expect("a: {b: []}", (enum flatten_kind)kind, "");
	}
}

static void values__with_a_prefix__need_no_underscore_before_a_digit(void **state)
{
	const struct flatten_value v[] = {
		{"9", 1, NODE_INT, "1", 1}, {"a\\.b", 4, NODE_INT, "2", 1}};
	char why[FILE_WHY];
	struct buffer out;

	(void)state;
	buffer_init(&out, 100);
	assert_int_equal(flatten_values(v, 2, FLATTEN_ENV, "APP_", &out, why), 0);
	assert_int_equal(flatten_values(v, 2, FLATTEN_PROPERTIES, "app ", &out, why), 0);
	assert_string_equal(out.data, "APP_9=1\nAPP_A_B=2\napp\\ 9=1\napp\\ a\\\\.b=2\n");
	buffer_fini(&out);
}

static void prefix__is_the_beginning_of_a_variable(void **state)
{
	static const char *const good[] = {"", "A", "_", "a_9"}, *const bad[] = {"9", "a-", "a b",
									 "\u00e4"};

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++)
		assert_true(flatten_is_prefix(good[i]));
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_false(flatten_is_prefix(bad[i]));
}

/* ---- what is refused ---- */

static void write__of_keys_that_become_one_name__names_both(void **state)
{
	static const char sentence[] = "the keys 'db.host' and 'db_host' give the same name "
				       "DB_HOST: rename one of them or leave it out";

	(void)state;
	expect_refused("db: {host: 1}\ndb_host: 2\nz: 3\n", FLATTEN_ENV, sentence);
	expect_refused("db_host: 2\ndb: {host: ~}\n", FLATTEN_SH, sentence);
	expect("db: {host: 1}\ndb_host: 2\n", FLATTEN_PROPERTIES, "db.host=1\ndb_host=2\n");
}

static void write__of_a_key_that_is_no_variable__names_it(void **state)
{
	(void)state;
	expect_refused("'-': 1", FLATTEN_ENV,
		"'-' would be the variable _, which is set by shells themselves: rename it, put it "
		"below another key (app.path is APP_PATH), or give all names a prefix (--prefix "
		"APP_)");
	expect_refused("\u00e4: 1", FLATTEN_SH,
		"'\u00e4' would be the variable _, which is set by shells themselves: rename it, "
		"put it below another key (app.path is APP_PATH), or give all names a prefix "
		"(--prefix APP_)");
	expect("'-': 1", FLATTEN_PROPERTIES, "-=1\n");
}

static void write__env_of_a_line_break__names_the_key(void **state)
{
	static const char *const breaks[] = {
		"k: {a: \"x\\ny\"}", "k: {a: \"x\\r\"}", "k: {a: \"\\n\"}"};

	(void)state;
	for (size_t i = 0; i < COUNT(breaks); i++)
		expect_refused(breaks[i], FLATTEN_ENV,
			"'k.a' has a line break in it: an env file cannot hold that; take it out, "
			"or choose another format, such as properties");
}

static void values__with_a_nul__are_refused_where_no_variable_can_hold_it(void **state)
{
	const struct flatten_value v = {"key", 3, NODE_STRING, "a\0b", 3};
	char why[FILE_WHY] = "";
	struct buffer out;

	(void)state;
	buffer_init(&out, 100);
	for (int kind = FLATTEN_SH; kind <= FLATTEN_ENV; kind++) {
		assert_int_equal(
			flatten_values(&v, 1, (enum flatten_kind)kind, "", &out, why), -EINVAL);
		assert_string_equal(
			why, "'key' has a NUL in it: no variable can hold that; take it out");
	}
	assert_int_equal(flatten_values(&v, 1, FLATTEN_PROPERTIES, "", &out, why), 0);
	assert_string_equal(out.data, "key=a\\u0000b\n");
	buffer_fini(&out);
}

static void values__that_are_too_large__say_so(void **state)
{
	const struct flatten_value v = {"-key", 4, NODE_STRING, "0123456789", 10};

	(void)state;
	for (int kind = 0; kind < KINDS; kind++)
		for (size_t max = 0; max < 15; max++) {
			char why[FILE_WHY] = "";
			struct buffer out;

			buffer_init(&out, max);
			assert_int_equal(
				flatten_values(&v, 1, (enum flatten_kind)kind, "", &out, why),
				-EMSGSIZE);
			assert_non_null(strstr(why, "more bytes than are allowed"));
			assert_int_equal(out.len, 0);
			buffer_fini(&out);
		}
}

static void write__with_long_keys__still_names_them(void **state)
{
	char yaml[1500], key[600];
	struct buffer out;

	(void)state;
	memset(key, 'k', sizeof(key));
	key[sizeof(key) - 1] = '\0';
	snprintf(yaml, sizeof(yaml), "%s-: 1\n%s_: 1\n", key, key);
	assert_int_equal(write_yaml(yaml, FLATTEN_ENV, &out), -EINVAL);
	assert_non_null(strstr(out.data, "give the same name KKK"));
	assert_non_null(strstr(out.data, "rename one of them"));
	buffer_fini(&out);
}

/* ---- the same as of the snapshot ---- */

struct values {
	struct flatten_value v[DOCUMENT_MAX_NODES / 100];
	size_t count;
};

static int collect(const char *key, size_t key_len, const struct pullet_value *v, void *arg)
{
	static const enum node_type types[] = {[PULLET_NULL] = NODE_NULL,
		[PULLET_BOOL] = NODE_BOOL,
		[PULLET_INT] = NODE_INT,
		[PULLET_DOUBLE] = NODE_DOUBLE,
		[PULLET_STRING] = NODE_STRING};
	struct values *all = arg;

	if (v->type == PULLET_LIST || v->type == PULLET_MAP)
		return 0;
	assert_true(all->count < COUNT(all->v));
	all->v[all->count++] =
		(struct flatten_value){key, key_len, types[v->type], v->text, v->len};
	return 0;
}

/* Publishes the document as the agent does and opens its snapshot. NULL: none can be made of it. */
static struct pullet *publish(const struct node *root)
{
	char path[PATH_MAX + 16], why[FILE_WHY];
	struct image *image = NULL;
	struct pullet *p = NULL;
	void *data;
	size_t len;

	if (image_build(root, 1, NULL, 32u << 20, &data, &len, why))
		return NULL;
	assert_int_equal(image_open(&sys_real, dir, "a", NULL, &image, why), 0);
	assert_int_equal(image_publish(image, data, len, 1, why), 0);
	image_close(image);
	free(data);
	snprintf(path, sizeof(path), "%s/a.snap", dir);
	assert_int_equal(pullet_open(path, 0, &p), 0);
	return p;
}

/* True when there was something to compare. */
static bool compare(enum document_type type, const char *text)
{
	static struct values all;
	struct document *d = parse(type, text);
	struct pullet *p = publish(document_root(d));
	bool written = false;

	all.count = 0;
	if (p)
		pullet_each(p, "", collect, &all);
	for (int kind = 0; p && kind < KINDS; kind++) {
		char why_agent[FILE_WHY] = "", why_export[FILE_WHY] = "";
		struct buffer agent, export;
		int r;

		buffer_init(&agent, 1u << 20);
		buffer_init(&export, 1u << 20);
		r = flatten_write(document_root(d), (enum flatten_kind)kind, &agent, why_agent);
		assert_int_equal(flatten_values(all.v, all.count, (enum flatten_kind)kind, "",
					 &export, why_export),
			r);
		assert_string_equal(why_agent, why_export);
		assert_int_equal(agent.len, export.len);
		if (agent.len)
			assert_memory_equal(agent.data, export.data, agent.len);
		written = written || (r == 0 && agent.len);
		buffer_fini(&agent);
		buffer_fini(&export);
	}
	pullet_close(p);
	document_free(d);
	return written;
}

static void write__of_hostile_documents__is_what_the_snapshot_gives(void **state)
{
	static const char *const hostile[] = {
		everything,
		"b: {y: 1}\nb-c: 2\nb.x: 3\nb/: 4\n", /* '-' before '.' before '/' */
		"a\\b: {c\\.d: 1}\na: {b: {c: 2}}\n",
		"n: [0, -5, 9223372036854775807, 1.5, 2.5e300, .inf, -0.0, 0x10, 1_000, 010]\n",
		"t: [true, True, ~, Null, '', yes, 'no']\n",
		"l: [[[], {}], [[1]], [{a: [~]}]]\n",
		"big: \"\\u0001\\u001f\\u007f\\u0085\\u2028\"\n",
		"'': {x: 1, '': {'': 2}}\n",
		"x: &x {a: 1, b: 2}\ny: {<<: *x, b: 3}\n",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(hostile); i++)
		assert_true(compare(DOCUMENT_YAML, hostile[i]));
}

/* A map with up to five members, or a list; unique keys by a number in them, mostly. */
static void random_value(struct buffer *out, unsigned depth)
{
	static const char *const keys[] = {"a", "b", "a.b", "a\\\\b", "-", "0", "1", "10", "2",
		"\u00e4", "A", "a_b", " ", "=", ".", "\\t"};
	static const char *const scalars[] = {"1", "-2.5", "true", "null", "\"\"", "\"x y\"",
		"\"it's\"", "\"\\\\\"", "\"a\\nb\"", "\"\u20ac\"", "\" \"", "1e300"};
	unsigned n = (unsigned)random_below(6), first = (unsigned)random_below(COUNT(keys));
	bool list = depth > 0 && random_below(3) == 0;

	if (depth > 0 && (depth == 4 || random_below(2))) {
		buffer_append_string(out, scalars[random_below(COUNT(scalars))]);
		return;
	}
	buffer_append_string(out, list ? "[" : "{");
	for (unsigned i = 0; i < n; i++) {
		if (i)
			buffer_append_string(out, ",");
		if (!list)
			buffer_printf(out, "\"%s\":", keys[(first + 5 * i) % COUNT(keys)]);
		random_value(out, depth + 1);
	}
	buffer_append_string(out, list ? "]" : "}");
}

static void write__of_random_documents__is_what_the_snapshot_gives(void **state)
{
	unsigned written = 0;
	struct buffer json;

	(void)state;
	model_random_start();
	buffer_init(&json, 1u << 20);
	for (unsigned i = 0; i < RANDOM_DOCUMENTS; i++) {
		buffer_clear(&json);
		random_value(&json, 0);
		written += compare(DOCUMENT_JSON, json.data);
	}
	buffer_fini(&json);
	print_message("%u of %d documents had text\n", written, RANDOM_DOCUMENTS);
	assert_true(written > RANDOM_DOCUMENTS / 4);
}

static int make_dir(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "%s/pullet-format-XXXXXX", /* nothing is fsynced in memory */
		access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	static const char *const names[] = {"a.snap", "a.gen"};
	char path[PATH_MAX + 16];

	(void)state;
	for (size_t i = 0; i < COUNT(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		unlink(path);
	}
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(write__env__is_a_line_for_each_scalar_in_key_order),
		cmocka_unit_test(write__sh__quotes_each_value),
		cmocka_unit_test(write__environ__ends_each_value_with_a_nul),
		cmocka_unit_test(write__properties__escapes_and_leaves_null_out),
		cmocka_unit_test(write__of_a_document_without_scalars__is_nothing),
		cmocka_unit_test(values__with_a_prefix__need_no_underscore_before_a_digit),
		cmocka_unit_test(prefix__is_the_beginning_of_a_variable),
		cmocka_unit_test(write__of_keys_that_become_one_name__names_both),
		cmocka_unit_test(write__of_a_key_that_is_no_variable__names_it),
		cmocka_unit_test(write__env_of_a_line_break__names_the_key),
		cmocka_unit_test(values__with_a_nul__are_refused_where_no_variable_can_hold_it),
		cmocka_unit_test(values__that_are_too_large__say_so),
		cmocka_unit_test(write__with_long_keys__still_names_them),
		cmocka_unit_test(write__of_hostile_documents__is_what_the_snapshot_gives),
		cmocka_unit_test(write__of_random_documents__is_what_the_snapshot_gives),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}

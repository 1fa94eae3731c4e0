/* The files of a schema: when they are read again, and what is said of those that are bad. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "schema/files.h"
#include "tests/unit/fixture/scratch.h"

#define INTEGER "{\"type\": \"integer\"}"
#define STRING "{\"type\": \"string\"}"
#define REFERS "{\"properties\": {\"n\": {\"$ref\": \"a.json\"}}}"

static char dir[SCRATCH_PATH], defs[SCRATCH_PATH + 16], path[SCRATCH_PATH + 16], why[FILE_WHY];
static struct schema_files *files;

static void begin(const char *name, const char *schema_dir)
{
	schema_files_free(files);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	files = schema_files_new(&sys_real, path, schema_dir);
	assert_non_null(files);
	assert_null(schema_files_schema(files));
	assert_string_equal(schema_files_digest(files), "");
}

static int set_up(void **state)
{
	(void)state;
	scratch_open(dir, scratch_memory());
	snprintf(defs, sizeof(defs), "%s/defs", dir);
	assert_int_equal(mkdir(defs, 0700), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	schema_files_free(files);
	files = NULL;
	scratch_close(dir);
	return 0;
}

static void put(const char *where, const char *name, const char *text)
{
	scratch_write(where, name, text, strlen(text));
}

/* The result, and its sentence. */
static void assert_read(int result, const char *sentence)
{
	int r;

	why[0] = '\0';
	r = schema_files_read(files, why);
	if (r != result || strcmp(why, sentence) != 0)
		fail_msg("%d: %s", r, why);
	assert_int_equal(schema_files_schema(files) != NULL, schema_files_digest(files)[0] != 0);
}

/* Whether the schema takes this document. */
static bool takes(const char *yaml)
{
	struct document_error e;
	struct document *d;
	struct buffer out;
	int r;

	assert_int_equal(document_parse(DOCUMENT_YAML, yaml, strlen(yaml), 0, &d, &e), 0);
	buffer_init(&out, 10000);
	r = schema_check(schema_files_schema(files), document_root(d), NULL, &out);
	assert_true(r == 0 || r == -EINVAL);
	buffer_fini(&out);
	document_free(d);
	return r == 0;
}

static void files__are_compiled_when_a_byte_has_changed(void **state)
{
	char digest[DIGEST_HEX];

	(void)state;
	begin("s.json", NULL);
	put(dir, "s.json", "{\"properties\": {\"n\": " INTEGER "}}");
	assert_read(1, "");
	assert_true(takes("n: 1\n") && !takes("n: a\n"));
	snprintf(digest, sizeof(digest), "%s", schema_files_digest(files));
	assert_int_equal(strlen(digest), 64);
	assert_read(0, "");
	put(dir, "s.json", "{\"properties\": {\"n\": " STRING "}}");
	assert_read(1, "");
	assert_true(takes("n: a\n") && !takes("n: 1\n"));
	assert_string_not_equal(schema_files_digest(files), digest);
	assert_read(0, "");
	put(dir, "s.json", "{\"properties\": {\"n\": " INTEGER "}}");
	assert_read(1, "");
	assert_string_equal(schema_files_digest(files), digest);
}

static void files__of_the_directory__are_those_that_are_referred_to(void **state)
{
	(void)state;
	begin("s.yaml", defs);
	put(dir, "s.yaml",
		"properties: {n: {$ref: a.json}, m: {$ref: b.yaml}, o: {$ref: c.yml}}\n");
	put(defs, "a.json", INTEGER);
	put(defs, "b.yaml", "type: string\n");
	put(defs, "c.yml", "type: boolean\n");
	put(defs, "d.txt", "[ no schema");
	put(defs, ".e.json", "[ no schema");
	assert_read(1, "");
	assert_true(takes("{n: 1, m: a, o: true}\n"));
	assert_false(takes("n: a\n"));
	assert_false(takes("m: 1\n"));
	assert_false(takes("o: 1\n"));
	assert_read(0, "");
	put(defs, "a.json", STRING);
	assert_read(1, "");
	assert_true(takes("n: a\n"));
	put(defs, "f.json", INTEGER); /* that nothing refers to, yet */
	assert_read(1, "");
	assert_read(0, "");
}

static void files__that_change_their_names__are_other_ones(void **state)
{
	char from[SCRATCH_PATH + 32], to[SCRATCH_PATH + 32];

	(void)state;
	begin("s.json", defs);
	put(dir, "s.json", REFERS);
	put(defs, "a.json", INTEGER);
	put(defs, "b.json", INTEGER);
	assert_read(1, "");
	snprintf(from, sizeof(from), "%s/b.json", defs);
	snprintf(to, sizeof(to), "%s/c.json", defs);
	assert_int_equal(rename(from, to), 0);
	assert_read(1, "");
	assert_read(0, "");
}

static void files__whose_texts_run_together__are_told_apart(void **state)
{
	(void)state;
	begin("s.json", defs);
	put(dir, "s.json", REFERS);
	put(defs, "a.json", INTEGER);
	put(defs, "x.yaml", "# a\n{}");
	assert_read(1, "");
	put(defs, "a.json", INTEGER "x.yaml");
	scratch_write(defs, "x.yaml", "", 0);
	assert_int_equal(schema_files_read(files, why), -EINVAL); /* bad, and not the same */
}

static void files__that_are_bad__leave_none(void **state)
{
	static const struct {
		const char *where, *name, *text, *why;
	} table[] = {
		{dir, "s.json", "{]", "%s:1:2: the schema cannot be read: "},
		{dir, "s.json", "type: integer\n", "%s:1:4: the schema cannot be read: "},
		{defs, "a.json", "\n{", "a.json:2:"},
		{defs, "b.yaml", "a: [\n", "b.yaml:1:4: the schema cannot be read: "},
		{dir, "s.json", "{\"type\": 7}", "%s: "},
		{dir, "s.json", "{\"$ref\": \"none.json\"}", "%s: "},
		{defs, "a.json", "{\"type\": 7}", "%s: a.json: "},
	};
	const char *const good[][2] = {{"s.json", REFERS}, {"a.json", INTEGER}, {"b.yaml", "{}"}};

	(void)state;
	begin("s.json", defs);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const char *named = table[i].why;
		char expected[FILE_WHY];
		bool whole = named[0] == '%';

		for (size_t k = 0; k < 3; k++)
			put(k ? defs : dir, good[k][0], good[k][1]);
		assert_read(1, "");
		put(table[i].where, table[i].name, table[i].text);
		for (int again = 0; again < 2; again++) {
			assert_int_equal(schema_files_read(files, why), -EINVAL);
			snprintf(expected, sizeof(expected), "%.80s%s", whole ? path : "",
				named + (whole ? 2 : 0));
			if (strncmp(why, expected, strlen(expected)) != 0)
				fail_msg("%s, not %s", why, expected);
			assert_true(strlen(why) > strlen(expected));
			assert_null(schema_files_schema(files));
			assert_string_equal(schema_files_digest(files), "");
		}
	}
}

static void files__that_cannot_be_read__leave_those_before(void **state)
{
	char expected[2 * FILE_WHY], away[SCRATCH_PATH + 32];

	(void)state;
	snprintf(away, sizeof(away), "%s/away", dir);
	begin("s.json", defs);
	snprintf(expected, sizeof(expected),
		"cannot read the schema %s: No such file or directory: make it, or name another "
		"one",
		path);
	assert_read(-ENOENT, expected);
	put(dir, "s.json", REFERS);
	put(defs, "a.json", INTEGER);
	assert_read(1, "");
	assert_int_equal(rename(defs, away), 0);
	snprintf(expected, sizeof(expected),
		"cannot read the schema %s: No such file or directory: make it, or name another "
		"one",
		defs);
	assert_read(-ENOENT, expected);
	assert_true(takes("n: 1\n"));
	assert_int_equal(rename(away, defs), 0);
	assert_read(0, "");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(expected, sizeof(expected), "cannot read the schema %s: it is not a regular file",
		path);
	assert_read(-EINVAL, expected);
	assert_non_null(schema_files_schema(files));
	/* one of several */
	assert_int_equal(rmdir(path), 0);
	put(dir, "s.json", REFERS);
	snprintf(away, sizeof(away), "%s/b.json", defs);
	assert_int_equal(mkdir(away, 0700), 0);
	put(defs, "c.json", INTEGER);
	snprintf(expected, sizeof(expected), "cannot read the schema %s: it is not a regular file",
		away);
	assert_read(-EINVAL, expected);
	assert_true(takes("n: 1\n"));
}

static void files__that_are_too_many__are_refused(void **state)
{
	char expected[2 * FILE_WHY], name[32];

	(void)state;
	begin("s.json", defs);
	put(dir, "s.json", REFERS);
	put(defs, "a.json", INTEGER);
	for (int i = 1; i < SCHEMA_MAX_FILES; i++) {
		snprintf(name, sizeof(name), "f%d.json", i);
		put(defs, name, INTEGER);
	}
	assert_read(1, "");
	put(defs, "more.json", INTEGER);
	snprintf(expected, sizeof(expected),
		"cannot read the schema %s: more than %d schemas in a directory", defs,
		SCHEMA_MAX_FILES);
	assert_read(-E2BIG, expected);
	assert_true(takes("n: 1\n"));
}

static void files__that_are_too_large__are_refused(void **state)
{
	size_t len = SCHEMA_FILES_MAX_BYTES;
	char *text = malloc(len + 1), expected[2 * FILE_WHY];

	(void)state;
	assert_non_null(text);
	memset(text, ' ', len + 1);
	memcpy(text, "{}", 2);
	begin("s.json", defs);
	scratch_write(dir, "s.json", text, len);
	assert_read(1, "");
	scratch_write(dir, "s.json", text, len + 1);
	snprintf(expected, sizeof(expected),
		"cannot read the schema %s: more than 8 MiB of schemas", path);
	assert_read(-EMSGSIZE, expected);
	/* together */
	scratch_write(dir, "s.json", text, len - 9);
	put(defs, "a.json", "{}");
	assert_read(1, "");
	scratch_write(dir, "s.json", text, len - 8);
	snprintf(expected, sizeof(expected),
		"cannot read the schema %s/a.json: more than 8 MiB of schemas", defs);
	assert_read(-EMSGSIZE, expected);
	scratch_write(dir, "s.json", text, len - 6);
	assert_read(-EMSGSIZE, expected);
	free(text);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(files__are_compiled_when_a_byte_has_changed),
		CASE(files__of_the_directory__are_those_that_are_referred_to),
		CASE(files__that_change_their_names__are_other_ones),
		CASE(files__whose_texts_run_together__are_told_apart),
		CASE(files__that_are_bad__leave_none),
		CASE(files__that_cannot_be_read__leave_those_before),
		CASE(files__that_are_too_many__are_refused),
		CASE(files__that_are_too_large__are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Paths of keys: written, found again, and told from each other by patterns; with a naive walk over
 * random documents beside it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "document/key_path.h"
#include "tests/unit/fixture/model_document.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char document[] = "a: 1\n"
			       "db: {host: h, 'a.b': 2, 'c\\d': 3, '': 4}\n"
			       "'.': dot\n"
			       "'\\': backslash\n"
			       "'\\.': both\n"
			       "'': {x: 5, '': {y: 6}}\n"
			       "servers: [{host: s0}, {host: s1}, [n]]\n"
			       "'0': zero\n"
			       "'01': one\n"
			       "\xc3\xbc: {\xe2\x82\xac: euro}\n"
			       "none: null\n";

/* ---- one path each ---- */

static void find__a_path__is_the_node(void **state)
{
	static const struct {
		const char *path, *text;
	} table[] = {
		{"a", "1"},
		{"db.host", "h"},
		{"db.a\\.b", "2"},
		{"db.c\\\\d", "3"},
		{"db.", "4"},
		{"\\.", "dot"},
		{"\\\\", "backslash"},
		{"\\\\\\.", "both"},
		{".x", "5"},
		{"..y", "6"},
		{"servers.0.host", "s0"},
		{"servers.1.host", "s1"},
		{"servers.2.0", "n"},
		{"0", "zero"},
		{"01", "one"},
		{"\xc3\xbc.\xe2\x82\xac", "euro"},
		{"none", "null"},
	};
	struct document *d = parsed(DOCUMENT_YAML, document);

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		const struct node *n = key_path_find(document_root(d), table[i].path);

		if (!n)
			fail_msg("%s: not found", table[i].path);
		assert_string_equal(n->text, table[i].text);
	}
	assert_int_equal(key_path_find(document_root(d), "")->type, NODE_MAP);
	assert_int_equal(key_path_find(document_root(d), "")->count, 2);
	assert_int_equal(key_path_find(document_root(d), "servers")->count, 3);
	document_free(d);
}

static void find__what_is_no_path_of_the_document__is_null(void **state)
{
	static const char *const table[] = {"b", "A", "a.b", "a.", "a.0", "db.b", "db.host.x",
		"db.a.b", "db.c\\d", "db.hos", "db.hostx", "...", "..x", "servers.3", "servers.-1",
		"servers.00", "servers.01", "servers.+1", "servers. 1", "servers.1x", "servers.",
		"servers.18446744073709551616", "servers.4294967296", "servers.0.host.", "\\",
		"\\a", "a\\", "\\\\\\", "db.\\host", "none.x", "\xc3", "servers.000000000000"};
	struct document *d = parsed(DOCUMENT_YAML, document);

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++)
		if (key_path_find(document_root(d), table[i]))
			fail_msg("%s: found", table[i]);
	assert_null(key_path_find(NULL, "a"));
	document_free(d);
}

static void step__one_after_the_other__goes_down_and_ends(void **state)
{
	struct document *d = parsed(DOCUMENT_YAML, document);
	const char *path = "servers.1.host";
	const struct node *n = key_path_step(document_root(d), &path);

	(void)state;
	assert_int_equal(n->type, NODE_LIST);
	assert_string_equal(path, "1.host");
	n = key_path_step(n, &path);
	assert_string_equal(path, "host");
	n = key_path_step(n, &path);
	assert_string_equal(n->text, "s1");
	assert_null(path);
	path = "x.y";
	assert_null(key_path_step(n, &path)); /* of a single value */
	assert_string_equal(path, "y");
	document_free(d);
}

static void append__after_a_cut__begins_where_the_cut_is(void **state)
{
	const struct node empty = {.key = ""}, name = {.key = "a.b\\", .key_len = 4}, item = {0};
	struct buffer b;

	(void)state;
	buffer_init(&b, 100);
	assert_int_equal(key_path_append(&b, true, &empty, 0), 0);
	assert_non_null(b.data);
	assert_string_equal(b.data, "");
	assert_int_equal(key_path_append(&b, false, &empty, 0), 0);
	assert_string_equal(b.data, ".");
	assert_int_equal(key_path_append(&b, false, &name, 0), 0);
	assert_string_equal(b.data, "..a\\.b\\\\");
	b.len = 0;
	assert_int_equal(key_path_append(&b, true, &empty, 0), 0);
	assert_string_equal(b.data, "");
	assert_int_equal(key_path_append(&b, true, &item, 17), 0);
	assert_string_equal(b.data, "17");
	buffer_fini(&b);
	buffer_init(&b, 5);
	assert_int_equal(key_path_append(&b, true, &name, 0), -EMSGSIZE);
	buffer_fini(&b);
}

/* Every node of a document is found at its path. */
static void check_below(const struct node *root, const struct node *parent, struct buffer *path)
{
	size_t len = path->len, number = 0;

	for (const struct node *n = parent->first; n; n = n->next, number++) {
		CHECK(key_path_append(path, parent == root, n, number) == 0);
		CHECK(strlen(path->data) == path->len);
		CHECK(key_path_find(root, path->data) == n);
		check_below(root, n, path);
		path->len = len;
	}
}

static void find__random_documents__each_node_is_at_its_path(void **state)
{
	struct buffer path;

	(void)state;
	model_random_start();
	buffer_init(&path, 10000);
	for (; model_random.step < 2000; model_random.step++) {
		struct document *d = random_document((struct random_shape){4, true, false});

		path.len = 0;
		check_below(document_root(d), document_root(d), &path);
		document_free(d);
	}
	buffer_fini(&path);
}

/* ---- patterns ---- */

static bool fits(const char *pattern, const char *path)
{
	char *patterns[] = {(char *)pattern, NULL};

	return key_path_matches(patterns, path);
}

static void matches__each_rule__holds(void **state)
{
	static const struct {
		const char *pattern, *path;
		bool fits;
	} table[] = {
		/* a key, and what is in it */
		{"db", "db", true},
		{"db", "db.host", true},
		{"db", "db.a.b", true},
		{"db", "dbx", false},
		{"db", "xdb", false},
		{"db", "x.db", false},
		{"db.host", "db", false},
		{"db.host", "db.host.0", true},
		{"db", "db\\.host", false}, /* one segment */
		{"db\\.host", "db\\.host", true},
		{"db\\.host", "db\\.host.x", true},
		{"db\\.host", "db.host", false},
		{"db\\", "db\\.host", false},
		{"a\\\\", "a\\\\.b", true}, /* the backslash is escaped, the dot is not */
		/* any text */
		{"*", "a", true},
		{"*", "a.b", true},
		{"*", "", true},
		{"db.*", "db.host", true},
		{"db.*", "db.a.b", true},
		{"db.*", "db", false},
		{"db.*", "dbx.a", false},
		{"*.password", "db.password", true},
		{"*.password", "a.b.password", true},
		{"*.password", "db.password.0", true},
		{"*.password", "password", false},
		{"*.password", "db.passwords", false},
		{"*password", "password", true},
		{"db.*.host", "db.a.b.host", true},
		{"db.*.host", "db.host", false},
		{"*secret*", "a.my_secret_key.x", true},
		{"servers.*.host", "servers.10.host", true},
		/* one byte, a set */
		{"db.hos?", "db.host", true},
		{"db.hos?", "db.hos", false},
		{"d?", "d\\.x", false}, /* the path above is not "d\" */
		{"servers.[0-9]", "servers.7.host", true},
		{"servers.[0-9]", "servers.17", false},
		{"servers.[!0]", "servers.1", true},
		{"servers.[!0]", "servers.0", false},
		/* as it is written */
		{"a[b]", "a[b]", true},
		{"a[b]", "a[b].c", true},
		{"a[b]", "ab", true},
		{"a*", "a*", true},
		{"a[*]", "a*", true},
		{"a[*]", "ab", false},
		{"a[", "a[", true},
		{"a\\b", "ab", false},
		{"a\\*", "a*", false},
		{"a\\*", "a\\\\", true},
		{"A", "a", false},
		/* names that are empty */
		{"", "", true},
		{"", ".x", true},
		{"", "x", false},
		{".x", ".x", true},
		{"*x", ".x", true},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++)
		if (fits(table[i].pattern, table[i].path) != table[i].fits)
			fail_msg("pattern %s, path %s: not %d", table[i].pattern, table[i].path,
				table[i].fits);
}

static void matches__several_patterns__one_is_enough_and_none_fits_nothing(void **state)
{
	char *patterns[] = {(char *)"a", (char *)"b.*", NULL}, *none[] = {NULL};

	(void)state;
	assert_true(key_path_matches(patterns, "a"));
	assert_true(key_path_matches(patterns, "b.c"));
	assert_false(key_path_matches(patterns, "b"));
	assert_false(key_path_matches(none, "a"));
	assert_false(key_path_matches(NULL, "a"));
}

/* Each path fits itself and what is above it, whatever is in the names. */
static void check_patterns(const struct node *parent, const struct buffer *above, bool first)
{
	struct buffer path;
	size_t number = 0;

	for (const struct node *n = parent->first; n; n = n->next, number++) {
		buffer_init(&path, 10000);
		CHECK(buffer_append(&path, above->data, above->len) == 0);
		CHECK(key_path_append(&path, first, n, number) == 0);
		CHECK(fits(path.data, path.data));
		CHECK(first || fits(above->data, path.data));
		CHECK(first || !fits(path.data, above->data));
		check_patterns(n, &path, false);
		buffer_fini(&path);
	}
}

static void matches__random_paths__fit_themselves_and_what_is_above(void **state)
{
	struct buffer root;

	(void)state;
	model_random_start();
	buffer_init(&root, 1);
	for (; model_random.step < 500; model_random.step++) {
		struct document *d = random_document((struct random_shape){4, true, false});

		check_patterns(document_root(d), &root, true);
		document_free(d);
	}
}

/* Any bytes as path and pattern: nothing crashes, and a found node spells its path. */
static void find__random_bytes__never_crash(void **state)
{
	static const char bytes[] = "aab01.\\*?[]x\xc3";
	struct document *d = parsed(DOCUMENT_YAML, document);
	char path[16], pattern[16];
	uint64_t found = 0;

	(void)state;
	model_random_start();
	for (; model_random.step < 200000; model_random.step++) {
		size_t n = random_below(8), m = random_below(8);

		for (size_t i = 0; i < n; i++)
			path[i] = bytes[random_below(sizeof(bytes) - 1)];
		for (size_t i = 0; i < m; i++)
			pattern[i] = bytes[random_below(sizeof(bytes) - 1)];
		path[n] = pattern[m] = '\0';
		found += key_path_find(document_root(d), path) != NULL;
		found += fits(pattern, path);
		CHECK(fits(path, path));
	}
	assert_true(found > 0);
	document_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(find__a_path__is_the_node),
		cmocka_unit_test(find__what_is_no_path_of_the_document__is_null),
		cmocka_unit_test(step__one_after_the_other__goes_down_and_ends),
		cmocka_unit_test(append__after_a_cut__begins_where_the_cut_is),
		cmocka_unit_test(find__random_documents__each_node_is_at_its_path),
		cmocka_unit_test(matches__each_rule__holds),
		cmocka_unit_test(matches__several_patterns__one_is_enough_and_none_fits_nothing),
		cmocka_unit_test(matches__random_paths__fit_themselves_and_what_is_above),
		cmocka_unit_test(find__random_bytes__never_crash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

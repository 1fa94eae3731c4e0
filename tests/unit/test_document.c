/* Documents: every refusal with its place, the core schema, merge keys, limits, and that what is
 * written reads back equal. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "../../agent/document.h"

static struct document *good(enum document_type type, const char *text, unsigned flags)
{
	struct document *d = NULL;
	struct document_error e;
	int r = document_parse(type, text, strlen(text), flags, &d, &e);

	if (r)
		print_error("%s\nline %u, column %u: %s\n", text, e.line, e.column, e.message);
	assert_int_equal(r, 0);
	return d;
}

static void refused(enum document_type type, const char *text, size_t len, unsigned line,
	unsigned column, const char *why)
{
	struct document *d = NULL;
	struct document_error e;

	assert_int_equal(document_parse(type, text, len, 0, &d, &e), -EINVAL);
	assert_null(d);
	if (e.line != line || e.column != column || !strstr(e.message, why))
		print_error("%.60s\nline %u, column %u: %s\n", text, e.line, e.column, e.message);
	assert_int_equal(e.line, line);
	assert_int_equal(e.column, column);
	assert_non_null(strstr(e.message, why));
}

static void yaml__what_is_not_good__is_refused_with_its_place(void **state)
{
	static const struct {
		const char *text;
		unsigned line, column;
		const char *why;
	} table[] = {
		{"", 1, 1, "empty"},
		{"# only a comment\n", 1, 1, "empty"},
		{"- a\n- b\n", 1, 1, "mapping"},
		{"hello\n", 1, 1, "mapping"},
		{"a: 1\nb: 2\na: 3\n", 3, 1, "duplicate key \"a\" (first at line 1)"},
		{"x:\n  a: 1\n  a: 2\n", 3, 3, "duplicate"},
		{"a: 1\n---\nb: 2\n", 2, 1, "second document"},
		{"a: !!python/object x\n", 1, 4, "tag"},
		{"a: !mine x\n", 1, 4, "tag"},
		{"a: !!set {b}\n", 1, 4, "tag"},
		{"a: !!int x\n", 1, 4, "tag"},
		{"a: \"x\\0y\"\n", 1, 4, "NUL"},
		{"\"a\\0b\": 1\n", 1, 1, "NUL"},
		{"a: &x [*x]\n", 1, 8, "never ends"},
		{"a: *none\n", 1, 4, "no anchor"},
		{"? [a]\n: b\n", 1, 3, "key"},
		{"a: {<<: 5}\n", 1, 10, "merge key"},
		{"a: 99999999999999999999\n", 1, 4, "64 bits"},
		{"a: -9223372036854775809\n", 1, 4, "64 bits"},
		{"a: 0xffffffffffffffff\n", 1, 4, "64 bits"},
		{"a: [1\n", 2, 1, "expected"},
		{"a:\n\t- b\n", 2, 1, "tabs cannot indent YAML: use spaces"},
		{"\tb: 1\n", 1, 1, "tabs"},
		{"a: 1\n\tb: 2\n", 2, 1, "tabs"},
		{"a: |\n\tb\n", 2, 1, "tabs"},
		{"\xef\xbb\xbf\"\xc3\xa4\":\r\n\tb: 1\r\n", 2, 1, "tabs"},
		{"\xc3\xa4\xc3\xa4: @b\n\tc: 1\n", 1, 5, "in quotes"},
		{"a: ok\nb: \xff\n", 2, 4, "UTF-8"},
		{"a: \x01\n", 1, 4, "UTF-8"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		refused(DOCUMENT_YAML, table[i].text, strlen(table[i].text), table[i].line,
			table[i].column, table[i].why);
	refused(DOCUMENT_YAML, "a\0:\0 \0001\0", 8, 1, 2, "UTF-8"); /* UTF-16 */
}

static void json__what_is_not_good__is_refused_with_its_place(void **state)
{
	static const struct {
		const char *text;
		unsigned line, column;
		const char *why;
	} table[] = {
		{"", 1, 1, "empty"},
		{" \n", 1, 1, "empty"},
		{"[1]", 1, 1, "mapping"},
		{"5", 1, 1, "mapping"},
		{"{\"a\": 1,\n \"a\": 2}", 2, 4, "duplicate"},
		{"{\"a\": 99999999999999999999}", 1, 26, "64 bits"},
		{"{\"a\": \"x\\u0000\"}", 1, 15, "NUL"},
		{"{\"a\": \"\xff\"}", 1, 7, "UTF-8"},
		{"{} x", 1, 4, "after the end"},
		{"{\"a\": ", 1, 6, "end of file"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		refused(DOCUMENT_JSON, table[i].text, strlen(table[i].text), table[i].line,
			table[i].column, table[i].why);
}

static void yaml__plain_scalars__follow_the_core_schema(void **state)
{
	static const struct {
		const char *text;
		enum node_type type;
	} table[] = {
		{"null", NODE_NULL},
		{"Null", NODE_NULL},
		{"NULL", NODE_NULL},
		{"~", NODE_NULL},
		{"", NODE_NULL},
		{"nULL", NODE_STRING},
		{"true", NODE_BOOL},
		{"False", NODE_BOOL},
		{"TRUE", NODE_BOOL},
		{"tRUE", NODE_STRING},
		{"yes", NODE_STRING},
		{"no", NODE_STRING},
		{"on", NODE_STRING},
		{"off", NODE_STRING},
		{"y", NODE_STRING},
		{"0", NODE_INT},
		{"-1", NODE_INT},
		{"+12", NODE_INT},
		{"017", NODE_INT},
		{"0o17", NODE_INT},
		{"0x1F", NODE_INT},
		{"0o18", NODE_STRING},
		{"0xG", NODE_STRING},
		{"0x", NODE_STRING},
		{"1_000", NODE_STRING},
		{"0b1", NODE_STRING},
		{"22:30", NODE_STRING},
		{"1.5", NODE_DOUBLE},
		{"1.", NODE_DOUBLE},
		{".5", NODE_DOUBLE},
		{"1e3", NODE_DOUBLE},
		{"1.5E-3", NODE_DOUBLE},
		{"+.inf", NODE_DOUBLE},
		{"-.INF", NODE_DOUBLE},
		{".NaN", NODE_DOUBLE},
		{".", NODE_STRING},
		{"1e", NODE_STRING},
		{"1.2.3", NODE_STRING},
		{"-", NODE_STRING},
		{"2001-12-14", NODE_STRING},
		{"'1'", NODE_STRING},
		{"\"true\"", NODE_STRING},
		{"! 5", NODE_STRING},
		{"!!str 5", NODE_STRING},
		{"!!float 5", NODE_DOUBLE},
		{"!!int '5'", NODE_INT},
		{"!!bool true", NODE_BOOL},
		{"!!null ''", NODE_NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		char text[64];
		struct document *d;

		if (strcmp(table[i].text, "-") == 0)
			snprintf(text, sizeof(text), "k: '-'\n");
		else
			snprintf(text, sizeof(text), "k: %s\n", table[i].text);
		d = good(DOCUMENT_YAML, text, 0);
		if (node_find(document_root(d), "k")->type != table[i].type)
			print_error("%s\n", text);
		assert_int_equal(node_find(document_root(d), "k")->type, table[i].type);
		document_free(d);
	}
}

static void yaml__integers__keep_all_64_bits(void **state)
{
	struct document *d = good(DOCUMENT_YAML,
		"a: 9007199254740993\nb: -9223372036854775808\nc: 0o17\nd: 0x7fffffffffffffff\n",
		0);
	const struct node *root = document_root(d);

	(void)state;
	assert_true(node_find(root, "a")->integer == INT64_C(9007199254740993));
	assert_true(node_find(root, "b")->integer == INT64_MIN);
	assert_true(node_find(root, "c")->integer == 15);
	assert_true(node_find(root, "d")->integer == INT64_MAX);
	document_free(d);
}

static void yaml__places__are_those_of_value_and_key(void **state)
{
	struct document *d = good(DOCUMENT_YAML, "a:\n  key: value\n", 0);
	const struct node *n = node_find(node_find(document_root(d), "a"), "key");

	(void)state;
	assert_int_equal(n->key_line, 2);
	assert_int_equal(n->key_column, 3);
	assert_int_equal(n->line, 2);
	assert_int_equal(n->column, 8);
	assert_string_equal(n->text, "value");
	document_free(d);
}

/* Both texts must give equal trees. */
static void same_tree(const char *one, const char *other)
{
	struct document *a = good(DOCUMENT_YAML, one, 0), *b = good(DOCUMENT_YAML, other, 0);

	if (!node_equal(document_root(a), document_root(b)))
		print_error("%s---\n%s", one, other);
	assert_true(node_equal(document_root(a), document_root(b)));
	document_free(a);
	document_free(b);
}

static void yaml__merge_keys__give_way_to_explicit_ones_and_to_earlier_ones(void **state)
{
	(void)state;
	same_tree(
		"b: &b {x: 1, y: 2}\nm:\n  <<: *b\n  y: 3\n", "b: {x: 1, y: 2}\nm: {y: 3, x: 1}\n");
	same_tree("b: &b {x: 1}\nc: &c {x: 2, z: 5}\nm: {<<: [*b, *c]}\n",
		"b: {x: 1}\nc: {x: 2, z: 5}\nm: {x: 1, z: 5}\n");
	same_tree("m: {<<: {q: {r: 1}}, s: 2}\n", "m: {s: 2, q: {r: 1}}\n");
	same_tree("m: {\"<<\": 1}\n", "m: {'<<': 1}\n");
	same_tree("a: &a {x: 1}\nb: &b {<<: *a, y: 2}\nc: {<<: *b}\n",
		"a: {x: 1}\nb: {y: 2, x: 1}\nc: {y: 2, x: 1}\n");
	refused(DOCUMENT_YAML, "m: {a: 1, <<: {b: 2}, a: 3}\n", 28, 1, 23, "duplicate");
}

static void yaml__aliases__are_copied_and_the_latest_anchor_counts(void **state)
{
	(void)state;
	same_tree("a: &x [1, {b: 2}]\nc: *x\n", "a: [1, {b: 2}]\nc: [1, {b: 2}]\n");
	same_tree("a: &x 1\nb: &x 2\nc: *x\n", "a: 1\nb: 2\nc: 2\n");
}

static char *nested(unsigned depth, const char *open, const char *close)
{
	struct buffer b;

	buffer_init(&b, 1u << 20);
	buffer_append_string(&b, "{\"a\":");
	for (unsigned i = 1; i < depth; i++)
		buffer_append_string(&b, open);
	buffer_append_string(&b, "1");
	for (unsigned i = 1; i < depth; i++)
		buffer_append_string(&b, close);
	buffer_append_string(&b, "}");
	return b.data;
}

static void depth__of_64__is_read_and_65_refused(void **state)
{
	(void)state;
	for (int type = DOCUMENT_YAML; type <= DOCUMENT_JSON; type++) {
		char *text = nested(64, "[", "]");

		document_free(good((enum document_type)type, text, 0));
		free(text);
		text = nested(65, "[", "]");
		refused((enum document_type)type, text, strlen(text), 1, 5 + 64, "64 levels");
		free(text);
	}
}

/* {"a": [1,1,...]}: items + 2 nodes. */
static char *many(size_t items)
{
	struct buffer b;

	buffer_init(&b, 16u << 20);
	buffer_append_string(&b, "{\"a\":[1");
	for (size_t i = 1; i < items; i++)
		buffer_append_string(&b, ",1");
	buffer_append_string(&b, "]}");
	return b.data;
}

static void nodes__of_100000__are_read_and_one_more_refused(void **state)
{
	struct document *d = NULL;
	struct document_error e;

	(void)state;
	for (int type = DOCUMENT_YAML; type <= DOCUMENT_JSON; type++) {
		char *text = many(DOCUMENT_MAX_NODES - 2);

		d = good((enum document_type)type, text, 0);
		assert_int_equal(document_nodes(d), DOCUMENT_MAX_NODES);
		document_free(d);
		free(text);
		text = many(DOCUMENT_MAX_NODES - 1);
		assert_int_equal(
			document_parse((enum document_type)type, text, strlen(text), 0, &d, &e),
			-EINVAL);
		assert_non_null(strstr(e.message, "100000"));
		free(text);
	}
}

static void yaml__a_billion_laughs__are_refused(void **state)
{
	struct buffer b;
	struct document *d = NULL;
	struct document_error e;

	(void)state;
	buffer_init(&b, 1u << 20);
	buffer_append_string(&b, "l0: &l0 [x,x,x,x,x,x,x,x,x,x]\n");
	for (int i = 1; i < 10; i++)
		buffer_printf(&b, "l%d: &l%d [*l%d,*l%d,*l%d,*l%d,*l%d,*l%d,*l%d,*l%d,*l%d,*l%d]\n",
			i, i, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
	assert_int_equal(document_parse(DOCUMENT_YAML, b.data, b.len, 0, &d, &e), -EINVAL);
	assert_non_null(strstr(e.message, "100000"));
	buffer_fini(&b);
}

static double seconds_for_keys(size_t n)
{
	struct buffer b;
	clock_t begin;

	buffer_init(&b, 16u << 20);
	for (size_t i = 0; i < n; i++)
		buffer_printf(&b, "key%zu: 1\n", i);
	begin = clock();
	document_free(good(DOCUMENT_YAML, b.data, 0));
	buffer_fini(&b);
	return (double)(clock() - begin);
}

/* What `pullet status` reads of an agent with 10,000 configs. */
static void json__of_our_own__has_no_cap_on_its_nodes(void **state)
{
	const size_t items = 3 * (size_t)DOCUMENT_MAX_NODES;
	char *text = many(items);
	struct document_error e;
	struct document *d = NULL;

	(void)state;
	assert_int_equal(document_parse(DOCUMENT_JSON, text, strlen(text), 0, &d, &e), -EINVAL);
	d = good(DOCUMENT_JSON, text, DOCUMENT_OURS);
	assert_int_equal(document_nodes(d), items + 2);
	document_free(d);
	free(text);
}

/* A long text, used a thousand times: few nodes, but far more bytes than came. */
static void yaml__aliases_of_a_long_text__are_refused(void **state)
{
	struct document_error e;
	struct document *d = NULL;
	struct buffer b;

	(void)state;
	buffer_init(&b, 1u << 20);
	buffer_append_string(&b, "a: &a ");
	for (int i = 0; i < 10000; i++)
		buffer_append(&b, "x", 1);
	buffer_append_string(&b, "\nb: [*a");
	for (int i = 0; i < 1000; i++)
		buffer_append_string(&b, ", *a");
	buffer_append_string(&b, "]\n");
	assert_int_equal(document_parse(DOCUMENT_YAML, b.data, b.len, 0, &d, &e), -EINVAL);
	assert_string_equal(e.message, "its aliases make it far larger than it is written");
	buffer_fini(&b);
}

static void yaml__a_map_of_many_keys__is_not_quadratic(void **state)
{
	double few = seconds_for_keys(5000), all = seconds_for_keys(50000);

	(void)state;
	/* linear would be 10 times, quadratic 100 times */
	assert_true(all < 40 * (few + 1));
}

static void flags__keep_duplicates_and_allow_empty__do_so(void **state)
{
	struct document *d = good(DOCUMENT_YAML, "a: 1\na: 2\n", DOCUMENT_KEEP_DUPLICATES);

	(void)state;
	assert_int_equal(document_root(d)->count, 2);
	assert_true(document_root(d)->first->next->integer == 2);
	document_free(d);
	d = good(DOCUMENT_YAML, "# nothing\n", DOCUMENT_ALLOW_EMPTY);
	assert_int_equal(document_root(d)->type, NODE_MAP);
	assert_int_equal(document_root(d)->count, 0);
	document_free(d);
	d = good(DOCUMENT_YAML, "---\n", DOCUMENT_ALLOW_EMPTY);
	assert_int_equal(document_root(d)->count, 0);
	document_free(d);
}

static void prefixes__of_a_document__never_crash(void **state)
{
	static const char text[] = "a: &x {b: [1, \"t\\u00e9\", 'q'], c: |\n  lines\n  here\n}\nd: "
				   "*x\n<<: {e: !!str 5}\n";
	static const char json[] =
		"{\"a\": [1.5e3, true, null, \"\\ud83d\\ude00\"], \"b\": {\"c\": -1}}";
	struct document *d;
	struct document_error e;

	(void)state;
	for (size_t n = 0; n < sizeof(text); n++) {
		d = NULL;
		if (document_parse(DOCUMENT_YAML, text, n, 0, &d, &e))
			assert_true(e.message[0] && e.line);
		document_free(d);
	}
	for (size_t n = 0; n < sizeof(json) - 1; n++) {
		d = NULL;
		assert_int_equal(document_parse(DOCUMENT_JSON, json, n, 0, &d, &e), -EINVAL);
		assert_true(e.message[0] && e.line);
	}
}

/* ---- writing ---- */

static void yaml_write__strings_that_look_like_something_else__are_quoted(void **state)
{
	static const char *const strings[] = {"no", "yes", "on", "Off", "y", "null", "~", "",
		"true", "017", "1_000", "22:30", "1.5", ".5", "-", "- a", "a: b", "# x", " lead",
		"trail ", "two\nlines", "two\nlines\n", "\n", "a\n\n", " x\ny", "tab\there", "@x",
		"%x", "`x", "&a", "*a", "!x", "|", ">", "'", "\"", "{", "[", "a #b", "<<", "=",
		"\xc3\xa9", "\xf0\x9f\x98\x80", "\x7f", "\xc2\x85", "\xe2\x80\xa8",
		"\xef\xbb\xbf"
		"a",
		"0x1f", "2001-12-14", "?", "? a", ":", "key:", "...", "---"};

	(void)state;
	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++) {
		struct buffer json, yaml;
		struct document *a, *b;

		buffer_init(&json, 4096);
		buffer_init(&yaml, 4096);
		buffer_append_string(&json, "{\"k\":");
		/* by hand: no escape but these occurs above */
		buffer_append_string(&json, "\"");
		for (const char *p = strings[i]; *p; p++) {
			if (*p == '\n')
				buffer_append_string(&json, "\\n");
			else if (*p == '\t')
				buffer_append_string(&json, "\\t");
			else {
				if (*p == '"')
					buffer_append_string(&json, "\\");
				buffer_append(&json, p, 1);
			}
		}
		buffer_append_string(&json, "\"}");
		a = good(DOCUMENT_JSON, json.data, 0);
		assert_int_equal(document_write(document_root(a), DOCUMENT_YAML, &yaml), 0);
		b = good(DOCUMENT_YAML, yaml.data, 0);
		if (!node_equal(document_root(a), document_root(b)))
			print_error("'%s' became %s", strings[i], yaml.data);
		assert_true(node_equal(document_root(a), document_root(b)));
		document_free(a);
		document_free(b);
		buffer_fini(&json);
		buffer_fini(&yaml);
	}
}

static uint64_t seed;

static unsigned pick(unsigned below)
{
	seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (unsigned)(seed >> 33) % below;
}

static void random_value(struct buffer *json, unsigned depth);

static void random_string(struct buffer *json, unsigned unique)
{
	static const char *const pieces[] = {"a", "B", " ", "\\n", "\\t", ":", "#", "- ", "1", ".",
		"\\\"", "\\\\", "\xc3\xa9", "true", "~", "'", "\\u0001", "\xe2\x82\xac", "{", "]",
		",", "&", "*", "!", "%", "0", "x"};

	buffer_append_string(json, "\"");
	for (unsigned n = pick(6); n > 0; n--)
		buffer_append_string(json, pieces[pick(sizeof(pieces) / sizeof(pieces[0]))]);
	if (unique)
		buffer_printf(json, "%u", unique);
	buffer_append_string(json, "\"");
}

static void random_collection(struct buffer *json, unsigned depth, int map)
{
	unsigned n = pick(5);

	buffer_append_string(json, map ? "{" : "[");
	for (unsigned i = 0; i < n; i++) {
		if (i)
			buffer_append_string(json, ",");
		if (map) {
			random_string(json, i + 1);
			buffer_append_string(json, ":");
		}
		random_value(json, depth + 1);
	}
	buffer_append_string(json, map ? "}" : "]");
}

static void random_value(struct buffer *json, unsigned depth)
{
	static const char *const scalars[] = {"null", "true", "false", "0", "-5",
		"9223372036854775807", "-9223372036854775808", "1.5", "-0.0", "1e300", "0.1",
		"123456789.123456789", "5e-324", "1.0"};
	unsigned choice = pick(depth > 5 ? 2 : 4);

	if (choice == 0)
		buffer_append_string(json, scalars[pick(sizeof(scalars) / sizeof(scalars[0]))]);
	else if (choice == 1)
		random_string(json, 0);
	else
		random_collection(json, depth, choice == 2);
}

static void write__of_random_trees__reads_back_equal(void **state)
{
	const char *given = getenv("PULLET_SEED");
	uint64_t first = given ? strtoull(given, NULL, 10) : 1;

	(void)state;
	for (uint64_t n = 0; n < 10000; n++) {
		struct buffer json;
		struct document *d;

		seed = first + n;
		buffer_init(&json, 1u << 20);
		random_collection(&json, 0, 1);
		d = good(DOCUMENT_JSON, json.data, 0);
		for (int type = DOCUMENT_YAML; type <= DOCUMENT_JSON; type++) {
			struct buffer out;
			struct document *again;

			buffer_init(&out, 1u << 20);
			assert_int_equal(
				document_write(document_root(d), (enum document_type)type, &out),
				0);
			again = good((enum document_type)type, out.data, 0);
			if (!node_equal(document_root(d), document_root(again)))
				print_error("seed %llu:\n%s\nbecame\n%s\n",
					(unsigned long long)(first + n), json.data, out.data);
			assert_true(node_equal(document_root(d), document_root(again)));
			document_free(again);
			buffer_fini(&out);
		}
		document_free(d);
		buffer_fini(&json);
	}
}

static void write__over_the_buffers_maximum__is_refused(void **state)
{
	struct document *d = good(DOCUMENT_YAML, "a: long enough to be too long\n", 0);
	struct buffer b;

	(void)state;
	buffer_init(&b, 10);
	assert_int_equal(document_write(document_root(d), DOCUMENT_YAML, &b), -EMSGSIZE);
	buffer_fini(&b);
	assert_int_equal(document_write(document_root(d), DOCUMENT_JSON, &b), -EMSGSIZE);
	buffer_fini(&b);
	document_free(d);
}

static void json_write__of_infinity__is_refused(void **state)
{
	struct document *d = good(DOCUMENT_YAML, "a: {b: [.inf]}\n", 0);
	struct buffer b;

	(void)state;
	buffer_init(&b, 1000);
	assert_int_equal(document_write(document_root(d), DOCUMENT_JSON, &b), -EINVAL);
	buffer_fini(&b);
	document_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(yaml__what_is_not_good__is_refused_with_its_place),
		cmocka_unit_test(json__what_is_not_good__is_refused_with_its_place),
		cmocka_unit_test(yaml__plain_scalars__follow_the_core_schema),
		cmocka_unit_test(yaml__integers__keep_all_64_bits),
		cmocka_unit_test(yaml__places__are_those_of_value_and_key),
		cmocka_unit_test(yaml__merge_keys__give_way_to_explicit_ones_and_to_earlier_ones),
		cmocka_unit_test(yaml__aliases__are_copied_and_the_latest_anchor_counts),
		cmocka_unit_test(depth__of_64__is_read_and_65_refused),
		cmocka_unit_test(nodes__of_100000__are_read_and_one_more_refused),
		cmocka_unit_test(json__of_our_own__has_no_cap_on_its_nodes),
		cmocka_unit_test(yaml__a_billion_laughs__are_refused),
		cmocka_unit_test(yaml__aliases_of_a_long_text__are_refused),
		cmocka_unit_test(yaml__a_map_of_many_keys__is_not_quadratic),
		cmocka_unit_test(flags__keep_duplicates_and_allow_empty__do_so),
		cmocka_unit_test(prefixes__of_a_document__never_crash),
		cmocka_unit_test(yaml_write__strings_that_look_like_something_else__are_quoted),
		cmocka_unit_test(write__of_random_trees__reads_back_equal),
		cmocka_unit_test(write__over_the_buffers_maximum__is_refused),
		cmocka_unit_test(json_write__of_infinity__is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

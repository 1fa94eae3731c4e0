/*
 * Differences, rule by rule as the lines that people read, and against a model: two flat lists of
 * leaves, each searched for the other's from its start.
 */
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

#include "document/diff.h"
#include "document/merge.h"
#include "tests/unit/fixture/model_document.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct diff *diff_of(const struct document *before, const struct document *after)
{
	struct diff *d = NULL;

	assert_int_equal(diff_new(before ? document_root(before) : NULL,
				 after ? document_root(after) : NULL, &d),
		0);
	return d;
}

/* ---- rule by rule ---- */

/* The difference of two texts (NULL = nothing) in lines, or as JSON objects in lines. */
static void assert_written(
	const char *before, const char *after, char *const *mask, bool json, const char *expected)
{
	struct document *b = before ? parsed(DOCUMENT_YAML, before) : NULL,
			*a = after ? parsed(DOCUMENT_YAML, after) : NULL;
	struct diff *d = diff_of(b, a);
	struct buffer out;

	buffer_init(&out, 10000);
	assert_int_equal(buffer_append_string(&out, ""), 0);
	for (size_t i = 0; i < diff_count(d); i++) {
		assert_int_equal(json ? diff_write_json(diff_at(d, i), mask, &out)
				      : diff_write_text(diff_at(d, i), mask, &out),
			0);
		if (json)
			buffer_append_string(&out, "\n");
	}
	assert_null(diff_at(d, diff_count(d)));
	if (strcmp(out.data ? out.data : "", expected) != 0)
		fail_msg("%s to %s: not\n%s but\n%s", before, after, expected, out.data);
	buffer_fini(&out);
	diff_free(d);
	document_free(b);
	document_free(a);
}

static void diff__each_rule__holds(void **state)
{
	static const struct {
		const char *before, *after, *lines;
	} table[] = {
		{"{a: 1, b: 2}", "{a: 1, b: 3}", "~ b: 2 -> 3\n"},
		{"{a: 1}", "{a: 1, x: 1}", "+ x: 1\n"},
		{"{a: 1, y: 2}", "{a: 1}", "- y: 2\n"},
		{"{db: {host: a, port: 1}}", "{db: {host: b, port: 1}}",
			"~ db.host: \"a\" -> \"b\"\n"},
		{"{a: {b: {c: {d: 1}}}}", "{a: {b: {c: {d: 2}}}}", "~ a.b.c.d: 1 -> 2\n"},
		/* nothing */
		{NULL, "{a: {b: 1}, c: []}", "+ a.b: 1\n+ c: []\n"},
		{"{a: {b: 1}, c: []}", NULL, "- a.b: 1\n- c: []\n"},
		{"{}", "{a: 1}", "+ a: 1\n"},
		{NULL, NULL, ""},
		{NULL, "{}", ""},
		/* the order of keys is none, that of items is */
		{"{a: 1, b: {c: 2, d: 3}}", "{b: {d: 3, c: 2}, a: 1}", ""},
		{"{l: [1, 2]}", "{l: [2, 1]}", "~ l.0: 1 -> 2\n~ l.1: 2 -> 1\n"},
		{"{l: [1, 2]}", "{l: [1, 2, 3]}", "+ l.2: 3\n"},
		{"{l: [1, 2, 3]}", "{l: [2, 3]}", "~ l.0: 1 -> 2\n~ l.1: 2 -> 3\n- l.2: 3\n"},
		{"{l: [{a: 1}, {a: 2}]}", "{l: [{a: 1}, {a: 3}]}", "~ l.1.a: 2 -> 3\n"},
		/* types */
		{"{a: 1}", "{a: '1'}", "~ a: 1 -> \"1\"\n"},
		{"{a: 1}", "{a: 1.0}", "~ a: 1 -> 1.0\n"},
		{"{a: !!float 1}", "{a: 1}", "~ a: 1.0 -> 1\n"},
		{"{a: true}", "{a: 'true'}", "~ a: true -> \"true\"\n"},
		{"{a: null}", "{a: ''}", "~ a: null -> \"\"\n"},
		{"{a: null}", "{}", "- a: null\n"},
		{"{a: 16}", "{a: 0x10}", ""},
		{"{a: 1.5}", "{a: 1.50}", ""},
		{"{a: .nan}", "{a: .NaN}", ""},
		{"{a: .nan}", "{a: -.inf}", "~ a: .nan -> -.inf\n"},
		{"{a: 'x'}", "{a: x}", ""},
		/* containers: empty ones are leaves */
		{"{a: {}}", "{a: []}", "~ a: {} -> []\n"},
		{"{a: {}}", "{a: {b: 1}}", "- a: {}\n+ a.b: 1\n"},
		{"{a: {b: 1}}", "{a: {}}", "+ a: {}\n- a.b: 1\n"},
		{"{a: {b: 1, c: 2}}", "{a: x}", "+ a: \"x\"\n- a.b: 1\n- a.c: 2\n"},
		{"{a: x}", "{a: {b: 1, c: 2}}", "- a: \"x\"\n+ a.b: 1\n+ a.c: 2\n"},
		{"{a: 1}", "{a: []}", "~ a: 1 -> []\n"},
		{"{a: [1]}", "{a: 1}", "+ a: 1\n- a.0: 1\n"},
		{"{a: {b: 1}}", "{a: {b: 1, c: {}}}", "+ a.c: {}\n"},
		/* a list and a mapping are two things, even with the same paths */
		{"{l: [a, b]}", "{l: {'0': a, '1': c}}",
			"- l.0: \"a\"\n+ l.0: \"a\"\n- l.1: \"b\"\n+ l.1: \"c\"\n"},
		{"{l: {'0': {x: 1, y: 2}}}", "{l: [{x: 1, y: 3}]}",
			"- l.0.x: 1\n+ l.0.x: 1\n- l.0.y: 2\n+ l.0.y: 3\n"},
		{"{l: [[]]}", "{l: {'0': []}}", "- l.0: []\n+ l.0: []\n"},
		/* the order of paths */
		{"{}", "{b: 1, a: {z: 1, b: 2}, aa: 3, B: 4}",
			"+ B: 4\n+ a.b: 2\n+ a.z: 1\n+ aa: 3\n+ b: 1\n"},
		{"{l: [0,0,0,0,0,0,0,0,0,0,0]}", "{l: [0,0,1,0,0,0,0,0,0,0,1]}",
			"~ l.2: 0 -> 1\n~ l.10: 0 -> 1\n"},
		{"{}", "{'10': a, '9': b, '09': c, x: d, '': e, '100000000000000000000': f}",
			"+ 9: \"b\"\n+ 10: \"a\"\n+ 100000000000000000000: \"f\"\n+ : \"e\"\n+ 09: "
			"\"c\"\n+ x: \"d\"\n"},
		{"{l: [0,0,0,0,0,0,0,0,0,0,0]}", "{l: {'10': 0, '9': 0, a: 0, '2': 0, '11': 0}}",
			"- l.0: 0\n- l.1: 0\n- l.2: 0\n+ l.2: 0\n- l.3: 0\n- l.4: 0\n- l.5: 0\n- "
			"l.6: "
			"0\n- l.7: 0\n- l.8: 0\n- l.9: 0\n+ l.9: 0\n- l.10: 0\n+ l.10: 0\n+ l.11: "
			"0\n+ "
			"l.a: 0\n"},
		/* names */
		{"{'a.b': 1, a: {b: 1}}", "{'a.b': 2, a: {b: 3}}",
			"~ a.b: 1 -> 3\n~ a\\.b: 1 -> 2\n"},
		{"{'\\': 1}", "{'\\': 2}", "~ \\\\: 1 -> 2\n"},
		{"{'': {a: 1}, a: 1}", "{'': {a: 2}, a: 1}", "~ .a: 1 -> 2\n"},
		{"{\xc3\xbc: {\xe2\x82\xac: 1}}", "{\xc3\xbc: {\xe2\x82\xac: \xc3\xbc}}",
			"~ \xc3\xbc.\xe2\x82\xac: 1 -> \"\xc3\xbc\"\n"},
		/* what a merge key brought is there as if it was written */
		{"b: &b {x: 1}\nw:\n  <<: *b\n", "{b: {x: 1}, w: {x: 1}}", ""},
		{"b: &b {x: 1}\nw:\n  <<: *b\n", "b: &b {x: 2}\nw:\n  <<: *b\n",
			"~ b.x: 1 -> 2\n~ w.x: 1 -> 2\n"},
		/* on one line, harmless to a terminal */
		{"{}", "{a: \"q\\\"b\\\\n\\n\\r\\t\\e[0m\\x7f\\u009b\"}",
			"+ a: \"q\\\"b\\\\n\\n\\r\\t\\u001b[0m\\u007f\\u009b\"\n"},
		{"{}", "{\"a\\n\\e\\\"\\u0085\\\\\": 1}", "+ a\\n\\u001b\"\\u0085\\\\: 1\n"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++)
		assert_written(table[i].before, table[i].after, NULL, false, table[i].lines);
}

static void text__a_long_value__is_cut_near_the_first_difference(void **state)
{
#define A16 "aaaaaaaaaaaaaaaa"
#define A64 A16 A16 A16 A16
#define U16 "\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc"
#define U64 U16 U16 U16 U16
	(void)state;
	assert_written("{}", "{a: " A64 "}", NULL, false, "+ a: \"" A64 "\"\n");
	assert_written("{}", "{a: " A16 A16 A16 "aaaaaaaaaaaaaaa}", NULL, false,
		"+ a: \"" A16 A16 A16 "aaaaaaaaaaaaaaa\"\n");
	assert_written("{}", "{a: " A64 "b}", NULL, false, "+ a: \"" A64 "\"...\n");
	assert_written("{}", "{a: b" U64 "}", NULL, false, /* not through a character */
		"+ a: \"b" U16 U16 U16
		"\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\"...\n");
	assert_written("{a: " A64 A64 "}", "{a: " A64 A64 "b}", NULL, false,
		"~ a: ...\"" A16 "\" -> ...\"" A16 "b\"\n");
	assert_written("{a: " A64 "bc" A64 "}", "{a: " A64 "xyc" A64 A64 "}", NULL, false,
		"~ a: ...\"" A16 "bc" A16 A16 "aaaaaaaaaaaaaa\"... -> ...\"" A16 "xyc" A16 A16
		"aaaaaaaaaaaaa\"...\n");
	assert_written("{a: b" A64 "}", "{a: c" A64 "}", NULL, false,
		"~ a: \"b" A16 A16 A16 "aaaaaaaaaaaaaaa\"... -> \"c" A16 A16 A16
		"aaaaaaaaaaaaaaa\"...\n");
	assert_written("{a: " A64 "}", "{a: " A64 "b}", NULL, false,
		"~ a: \"" A64 "\" -> ...\"" A16 "b\"\n");
	assert_written("{a: 1}", "{a: " A64 A64 "}", NULL, false, "~ a: 1 -> \"" A64 "\"...\n");
	/* the difference is inside a character, and the context begins in one */
	assert_written("{a: x" U64 "\xc3\xbc" U64 "}", "{a: x" U64 "\xc3\xa4" U64 "}", NULL, false,
		"~ a: ...\"" U16 "\xc3\xbc" U16 U16
		"\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\"... -> ...\"" U16
		"\xc3\xa4" U16 U16
		"\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\"...\n");
}

static void text__a_masked_value__is_stars(void **state)
{
	char *mask[] = {(char *)"*.password", (char *)"keys", NULL};

	(void)state;
	assert_written("{db: {password: secret, user: u}, keys: [a, b]}",
		"{db: {password: other, user: v}, keys: [a], x: {password: {old: 1}}}", mask, false,
		"~ db.password: *** -> ***\n~ db.user: \"u\" -> \"v\"\n- keys.1: ***\n+ "
		"x.password.old: ***\n");
	assert_written("{keys: {}}", "{keys: 5}", mask, false, "~ keys: *** -> ***\n");
}

static void json__each_change__is_one_object(void **state)
{
	char *mask[] = {(char *)"p*", NULL};

	(void)state;
	assert_written("{a: x, b: 1, l: [], n: null}",
		"{a: \"\\e\\\"\", b: 1.0, 'c.d': true, l: {}, n: .inf}", NULL, true,
		"{\"change\":\"changed\",\"path\":\"a\",\"before\":\"x\",\"after\":\"\\u001b\\\"\"}"
		"\n"
		"{\"change\":\"changed\",\"path\":\"b\",\"before\":1,\"after\":1.0}\n"
		"{\"change\":\"added\",\"path\":\"c\\\\.d\",\"after\":true}\n"
		"{\"change\":\"changed\",\"path\":\"l\",\"before\":[],\"after\":{}}\n"
		"{\"change\":\"changed\",\"path\":\"n\",\"before\":null,\"after\":\".inf\"}\n");
	assert_written("{p1: secret, p2: 2, q: 3}", "{p1: other, p3: 3}", mask, true,
		"{\"change\":\"changed\",\"path\":\"p1\",\"before\":\"***\",\"after\":\"***\","
		"\"masked\":true}\n"
		"{\"change\":\"removed\",\"path\":\"p2\",\"before\":\"***\",\"masked\":true}\n"
		"{\"change\":\"added\",\"path\":\"p3\",\"after\":\"***\",\"masked\":true}\n"
		"{\"change\":\"removed\",\"path\":\"q\",\"before\":3}\n");
	assert_written("{}", "{a: " A64 A64 "}", NULL, true, /* whole */
		"{\"change\":\"added\",\"path\":\"a\",\"after\":\"" A64 A64 "\"}\n");
}

static void write__a_full_buffer__is_told(void **state)
{
	const struct node n = {.type = NODE_INT, .integer = 12345};
	const struct diff_change change = {DIFF_ADDED, "path", NULL, &n};
	struct buffer out;

	(void)state;
	for (size_t max = 0; max < sizeof("+ path: 12345\n") - 1; max++) {
		buffer_init(&out, max);
		assert_int_equal(diff_write_text(&change, NULL, &out), -EMSGSIZE);
		assert_int_equal(diff_write_json(&change, NULL, &out), -EMSGSIZE);
		buffer_fini(&out);
	}
}

/* ---- the model ---- */

struct leaf {
	char path[128];
	char kinds[128]; /* the path with an 'i' before each item's number and a 'k' before each key
			  */
	const struct node *node;
};

struct leaves {
	struct leaf all[4000];
	size_t count;
};

static void flatten(struct leaves *l, const struct node *n, const char *path, const char *kinds)
{
	struct leaf *leaf = &l->all[l->count];
	char segment[64], below[128], below_kinds[128];
	unsigned number = 0;

	if (!n->first && *kinds) {
		assert_true(++l->count < COUNT(l->all));
		snprintf(leaf->path, sizeof(leaf->path), "%s", path);
		snprintf(leaf->kinds, sizeof(leaf->kinds), "%s", kinds);
		leaf->node = n;
	}
	for (const struct node *c = n->first; c; c = c->next, number++) {
		size_t len = 0;

		snprintf(segment, sizeof(segment), "%u", number);
		for (const char *k = c->key; k && *k; k++)
			len += (size_t)snprintf(segment + len, sizeof(segment) - len,
				*k == '.' || *k == '\\' ? "\\%c" : "%c", *k);
		if (c->key)
			segment[len] = '\0';
		snprintf(below, sizeof(below), "%s%s%s", path, *kinds ? "." : "", segment);
		snprintf(below_kinds, sizeof(below_kinds), "%s.%c%s", kinds, c->key ? 'k' : 'i',
			segment);
		flatten(l, c, below, below_kinds);
	}
}

static const struct leaf *find_leaf(const struct leaves *l, const char *kinds)
{
	for (size_t i = 0; i < l->count; i++)
		if (strcmp(l->all[i].kinds, kinds) == 0)
			return &l->all[i];
	return NULL;
}

static const struct leaf *leaf_of(const struct leaves *l, const struct node *n)
{
	for (size_t i = 0; i < l->count; i++)
		if (l->all[i].node == n)
			return &l->all[i];
	return NULL;
}

/* The next segment of a path, out of its escapes. */
static const char *next_segment(const char *path, char segment[64])
{
	size_t n = 0;

	for (; *path && *path != '.'; path++) {
		path += *path == '\\';
		segment[n++] = *path;
	}
	segment[n] = '\0';
	return *path ? path + 1 : NULL;
}

/* As agent/document/diff.h has it, from the paths alone. */
static int compare_paths(const char *a, const char *b)
{
	char x[64], y[64];
	bool x_number, y_number;
	int c;

	while (a && b) {
		a = next_segment(a, x);
		b = next_segment(b, y);
		x_number =
			strcmp(x, "0") == 0 || (strspn(x, "0123456789") == strlen(x) && *x > '0');
		y_number =
			strcmp(y, "0") == 0 || (strspn(y, "0123456789") == strlen(y) && *y > '0');
		if (x_number != y_number)
			return x_number ? -1 : 1;
		c = x_number ? atol(x) - atol(y) : strcmp(x, y);
		if (c)
			return c;
	}
	return (a != NULL) - (b != NULL);
}

/* Every change is one of the model, and it stands in order. */
static void check_changes(
	const struct diff *d, const struct leaves *before, const struct leaves *after)
{
	for (size_t i = 0; i < diff_count(d); i++) {
		const struct diff_change *c = diff_at(d, i);
		const struct leaf *was = c->before ? leaf_of(before, c->before) : NULL,
				  *is = c->after ? leaf_of(after, c->after) : NULL;
		int order = i ? compare_paths(diff_at(d, i - 1)->path, c->path) : -1;

		CHECK(order < 0 || (order == 0 && diff_at(d, i - 1)->kind == DIFF_REMOVED &&
					   c->kind == DIFF_ADDED));
		CHECK(!was == !c->before && !is == !c->after);
		CHECK(!was || strcmp(was->path, c->path) == 0);
		CHECK(!is || strcmp(is->path, c->path) == 0);
		CHECK(c->kind == (was && is ? DIFF_CHANGED : was ? DIFF_REMOVED : DIFF_ADDED));
		CHECK(!was || !is || strcmp(was->kinds, is->kinds) == 0);
	}
}

/* How many changes there are to be. */
static size_t count_changes(const struct leaves *before, const struct leaves *after)
{
	size_t count = 0;

	for (size_t i = 0; i < before->count; i++) {
		const struct leaf *is = find_leaf(after, before->all[i].kinds);

		count += !is || !node_equal(before->all[i].node, is->node);
	}
	for (size_t i = 0; i < after->count; i++)
		count += !find_leaf(before, after->all[i].kinds);
	return count;
}

/* Does what it says. A leaf that is gone has no node. */
static void apply(const struct diff *d, struct leaves *before, const struct leaves *after)
{
	for (size_t i = 0; i < diff_count(d); i++) {
		const struct diff_change *c = diff_at(d, i);
		struct leaf *was = c->before ? (struct leaf *)leaf_of(before, c->before)
					     : &before->all[before->count++];

		CHECK(was && before->count <= COUNT(before->all));
		if (c->kind == DIFF_ADDED)
			*was = *leaf_of(after, c->after);
		was->node = c->after;
	}
}

static void check_same_leaves(const struct leaves *a, const struct leaves *b)
{
	size_t there = 0;

	for (size_t i = 0; i < a->count; i++) {
		const struct leaf *other = a->all[i].node ? find_leaf(b, a->all[i].kinds) : NULL;

		there += a->all[i].node != NULL;
		CHECK(!a->all[i].node || (other && node_equal(a->all[i].node, other->node)));
	}
	CHECK(there == b->count);
}

/* A document that has much in common with another one. */
static struct document *near(const struct document *to)
{
	struct document *patch = random_document((struct random_shape){2, true, false}), *d = NULL;
	const struct merge_layer layers[] = {
		{document_root(to), "document"}, {document_root(patch), "patch"}};
	struct document_error e;

	CHECK(merge_layers(layers, 2, &d, &e) == 0);
	document_free(patch);
	return d;
}

static void diff__random_documents__is_the_models_and_makes_one_of_the_other(void **state)
{
	static struct leaves b, a;
	size_t changes = 0;

	(void)state;
	model_random_start();
	for (; model_random.step < 3000; model_random.step++) {
		struct document *before = random_document((struct random_shape){4, true, false}),
				*after = random_below(2) ? near(before)
							 : random_document((struct random_shape){
								   4, true, false});
		struct diff *d = diff_of(before, after);

		b.count = a.count = 0;
		flatten(&b, document_root(before), "", "");
		flatten(&a, document_root(after), "", "");
		check_changes(d, &b, &a);
		CHECK(diff_count(d) == count_changes(&b, &a));
		apply(d, &b, &a);
		check_same_leaves(&b, &a);
		changes += diff_count(d);
		diff_free(d);
		document_free(before);
		document_free(after);
	}
	assert_true(changes > 3000);
}

static void diff__a_document_with_itself__is_empty_and_the_other_way_is_the_reverse(void **state)
{
	(void)state;
	model_random_start();
	for (; model_random.step < 1000; model_random.step++) {
		struct document *x = random_document((struct random_shape){4, true, false}),
				*y = near(x);
		struct diff *none = diff_of(x, x), *there = diff_of(x, y), *back = diff_of(y, x);
		size_t added = 0, removed = 0;

		CHECK(diff_count(none) == 0);
		CHECK(diff_count(there) == diff_count(back));
		for (size_t i = 0; i < diff_count(there); i++) {
			CHECK(strcmp(diff_at(there, i)->path, diff_at(back, i)->path) == 0);
			added += diff_at(there, i)->kind == DIFF_ADDED;
			removed += diff_at(back, i)->kind == DIFF_REMOVED;
		}
		CHECK(added == removed);
		diff_free(none);
		diff_free(there);
		diff_free(back);
		document_free(x);
		document_free(y);
	}
}

/* ---- bounds ---- */

/* One key of key_len bytes with a mapping of `count` keys in it. */
static struct document *below_long_key(size_t key_len, unsigned count)
{
	struct document *d;
	struct buffer b;

	buffer_init(&b, 1u << 24);
	buffer_append_string(&b, "{\"");
	for (size_t i = 0; i < key_len; i++)
		buffer_append_string(&b, "k");
	buffer_append_string(&b, "\": {");
	for (unsigned i = 0; i < count; i++)
		buffer_printf(&b, "%s\"%u\": 1", i ? "," : "", (i * 7919u) % count);
	buffer_append_string(&b, "}}");
	d = parsed(DOCUMENT_JSON, b.data);
	buffer_fini(&b);
	return d;
}

static void diff__paths_beyond_the_bound__are_refused(void **state)
{
	struct document *d = below_long_key(1u << 20, 70);
	struct diff *diff = NULL, *same = diff_of(d, d);
	size_t count;

	(void)state;
	assert_int_equal(diff_count(same), 0);
	assert_int_equal(diff_new(NULL, document_root(d), &diff), -EMSGSIZE);
	assert_int_equal(diff_new(document_root(d), NULL, &diff), -EMSGSIZE);
	assert_null(diff);
	assert_int_equal(diff_measure(NULL, document_root(d), &count), 0);
	assert_int_equal(count, 70); /* none of them is put together */
	diff_free(same);
	diff_free(NULL);
	document_free(d);
}

/* The least of some runs, in ms of CPU: so many keys, and as many new ones. */
static double diff_ms(unsigned keys)
{
	struct document *before = below_long_key(1, keys), *after = below_long_key(1, 2 * keys);
	double least = 1e9;

	for (int run = 0; run < 7; run++) {
		clock_t begin = clock();
		struct diff *d = diff_of(before, after);
		double ms = (double)(clock() - begin) * 1000 / CLOCKS_PER_SEC;

		least = ms < least ? ms : least;
		assert_int_equal(diff_count(d), keys);
		diff_free(d);
	}
	document_free(before);
	document_free(after);
	return least;
}

static void diff__four_times_the_keys__takes_not_sixteen_times_as_long(void **state)
{
	double small_ms = diff_ms(1000), large_ms = diff_ms(4000);

	(void)state;
	print_message("# 1000 keys and 1000 more: %.2f ms, 4000: %.2f ms\n", small_ms, large_ms);
	assert_true(large_ms < 8 * small_ms);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(diff__each_rule__holds),
		cmocka_unit_test(text__a_long_value__is_cut_near_the_first_difference),
		cmocka_unit_test(text__a_masked_value__is_stars),
		cmocka_unit_test(json__each_change__is_one_object),
		cmocka_unit_test(write__a_full_buffer__is_told),
		cmocka_unit_test(diff__random_documents__is_the_models_and_makes_one_of_the_other),
		cmocka_unit_test(
			diff__a_document_with_itself__is_empty_and_the_other_way_is_the_reverse),
		cmocka_unit_test(diff__paths_beyond_the_bound__are_refused),
		cmocka_unit_test(diff__four_times_the_keys__takes_not_sixteen_times_as_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Layers, rule by rule, the examples of RFC 7386, and against a model: the RFC's own recursive
 * function, one layer after the other, on a tree of arrays.
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

#include "document/key_path.h"
#include "document/merge.h"
#include "tests/unit/fixture/model_document.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define MOST 6 /* layers, in these tests */

/* ---- rule by rule ---- */

static struct document *merged(const struct merge_layer *layers, size_t count)
{
	struct document *d = NULL;
	struct document_error e;

	if (merge_layers(layers, count, &d, &e))
		fail_msg("%s", e.message);
	return d;
}

static struct document *merged_roots(const struct document *const *layers, size_t count)
{
	struct merge_layer l[MOST] = {{0}};

	for (size_t i = 0; i < count; i++)
		l[i] = (struct merge_layer){layers[i] ? document_root(layers[i]) : NULL, "layer"};
	return merged(l, count);
}

/* Texts of layers, "-" = absent, up to a NULL. */
static struct document *merged_texts(const char *const *texts, struct document **ret_layers)
{
	struct document *d;
	size_t count = 0;

	for (; count < MOST && texts[count]; count++)
		ret_layers[count] =
			strcmp(texts[count], "-") == 0 ? NULL : parsed(DOCUMENT_YAML, texts[count]);
	d = merged_roots((const struct document *const *)ret_layers, count);
	for (; count < MOST; count++)
		ret_layers[count] = NULL;
	return d;
}

static void free_all(struct document **documents, size_t count)
{
	for (size_t i = 0; i < count; i++)
		document_free(documents[i]);
}

static void assert_merged(const char *const *texts, const char *expected)
{
	struct document *layers[MOST], *is = merged_texts(texts, layers),
				       *wanted = parsed(DOCUMENT_YAML, expected);
	struct buffer written;

	buffer_init(&written, 10000);
	document_write(document_root(is), DOCUMENT_JSON, &written);
	if (!node_equal(document_root(is), document_root(wanted)))
		fail_msg("%s + %s + ...: not %s, but %s", texts[0], texts[1], expected,
			written.data);
	buffer_fini(&written);
	document_free(wanted);
	document_free(is);
	free_all(layers, MOST);
}

static void merge__each_rule__holds(void **state)
{
	static const struct {
		const char *layers[MOST], *result;
	} table[] = {
		/* mappings merge deeply, later layers win */
		{{"{a: 1, b: 2}", "{b: 3}"}, "{a: 1, b: 3}"},
		{{"{a: {b: {c: 1, d: 2}, e: 3}}", "{a: {b: {d: 4}}}"},
			"{a: {b: {c: 1, d: 4}, e: 3}}"},
		{{"{a: 1}", "{a: 2}", "{a: 3}"}, "{a: 3}"},
		{{"{a: 1}", "{a: '1'}"}, "{a: '1'}"},
		{{"{a: 1}", "{a: 1.0}"}, "{a: 1.0}"},
		/* everything else is replaced whole */
		{{"{l: [1, 2, 3]}", "{l: [4]}"}, "{l: [4]}"},
		{{"{l: [{a: 1}]}", "{l: [{b: 2}]}"}, "{l: [{b: 2}]}"},
		{{"{l: [1]}", "{l: []}"}, "{l: []}"},
		{{"{a: {b: 1}}", "{a: x}"}, "{a: x}"},
		{{"{a: x}", "{a: {b: 1}}"}, "{a: {b: 1}}"},
		{{"{a: [1]}", "{a: {b: 1}}"}, "{a: {b: 1}}"},
		{{"{a: {b: 1}}", "{a: [1]}"}, "{a: [1]}"},
		{{"{a: {b: 1}}", "{a: x}", "{a: {c: 2}}"}, "{a: {c: 2}}"},
		{{"{a: {b: 1}}", "{a: x}", "{a: {c: 2}}", "{a: {d: 3}}"}, "{a: {c: 2, d: 3}}"},
		/* a null deletes */
		{{"{a: 1, b: 2}", "{a: null}"}, "{b: 2}"},
		{{"{a: {b: 1, c: 2}}", "{a: {b: null}}"}, "{a: {c: 2}}"},
		{{"{a: {b: 1}}", "{a: {b: null}}"}, "{a: {}}"},
		{{"{a: {b: 1}}", "{a: null}"}, "{}"},
		{{"{a: {b: 1}}", "{a: null}", "{a: {c: 2}}"}, "{a: {c: 2}}"},
		{{"{a: 1}", "{b: null}"}, "{a: 1}"},
		{{"{a: 1}", "{b: {c: null, d: {e: null}}}"}, "{a: 1, b: {d: {}}}"},
		{{"{a: x}", "{a: {b: null, c: 1}}"}, "{a: {c: 1}}"},
		{{"{a: 1}", "{a: null}", "{a: null}"}, "{}"},
		/* but not where it is a value: in the first layer, in a list */
		{{"{a: null, b: {c: null}}"}, "{a: null, b: {c: null}}"},
		{{"{a: null, b: {c: null}}", "{}"}, "{a: null, b: {c: null}}"},
		{{"{a: null, b: {c: null}}", "{b: {d: 1}}"}, "{a: null, b: {c: null, d: 1}}"},
		{{"{a: null}", "{a: 1}"}, "{a: 1}"},
		{{"{a: null}", "{a: {b: null}}"}, "{a: {}}"},
		{{"{a: null}", "{a: null}"}, "{}"},
		{{"{a: 1}", "{l: [null, {b: null}, [{c: null}]]}"},
			"{a: 1, l: [null, {b: null}, [{c: null}]]}"},
		{{"{l: [null]}", "{l: [null, null]}"}, "{l: [null, null]}"},
		/* empty mappings and absent layers */
		{{"{}", "{}"}, "{}"},
		{{"{a: {b: 1}}", "{a: {}}"}, "{a: {b: 1}}"},
		{{"{a: 1}", "{a: {}}"}, "{a: {}}"},
		{{"{}", "{a: {}}"}, "{a: {}}"},
		{{"{a: 1}", "-", "{b: 2}"}, "{a: 1, b: 2}"},
		{{"-", "{a: null, b: {c: null}}"}, "{b: {}}"},
		{{"-"}, "{}"},
		{{NULL}, "{}"},
		/* order: as it came; a new key behind; one that comes again is new */
		{{"{z: 1, a: 2, m: 3}", "{b: 4, m: 5, z: 6, c: 7}"},
			"{z: 6, a: 2, m: 5, b: 4, c: 7}"},
		{{"{a: 1, b: 2}", "{a: null}", "{c: 3, a: 4}"}, "{b: 2, c: 3, a: 4}"},
		{{"{a: 1, b: 2}", "{a: {x: 1}}"}, "{a: {x: 1}, b: 2}"},
		{{"{m: {b: 1, a: 2}}", "{m: {c: 3, a: 4}}"}, "{m: {b: 1, a: 4, c: 3}}"},
		/* names */
		{{"{\xc3\xbc: {\xe2\x82\xac: 1}, u: 2}", "{\xc3\xbc: {\xe2\x82\xac: 3}}"},
			"{\xc3\xbc: {\xe2\x82\xac: 3}, u: 2}"},
		{{"{'a.b': 1, a: {b: 2}}", "{a: {b: null}}"}, "{'a.b': 1, a: {}}"},
		{{"{'a.b': 1, a: {b: 2}}", "{'a.b': null}"}, "{a: {b: 2}}"},
		{{"{'a\\b': 1, '\\': 2}", "{'\\': 3, 'a\\\\b': 4}"},
			"{'a\\b': 1, '\\': 3, 'a\\\\b': 4}"},
		{{"{'': 1, a: {'': 2}}", "{'': null, a: {'': 3}}"}, "{a: {'': 3}}"},
		{{"{ab: 1, a: 2, abc: 3}", "{a: 4}"}, "{ab: 1, a: 4, abc: 3}"},
		{{"{'1': a, 1.0: b}", "{1: c}"}, "{'1': c, '1.0': b}"},
		/* merge keys are worked out within a layer, before */
		{{"base: &b {x: 1, y: 2}\nweb:\n  <<: *b\n  y: 3\n",
			 "{base: {x: 9}, web: {y: null}}"},
			"{base: {x: 9, y: 2}, web: {x: 1}}"},
		{{"{a: {x: 1, y: 2}}", "d: &d {x: 5, z: 6}\na:\n  x: 7\n  <<: *d\n"},
			"{a: {x: 7, y: 2, z: 6}, d: {x: 5, z: 6}}"},
		{{"{a: {x: 1}}", "d: &d {x: null}\na:\n  <<: *d\n"}, "{a: {}, d: {}}"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++)
		assert_merged(table[i].layers, table[i].result);
}

/* Appendix A. Its roots are of all types, and ours are mappings: each stands one level deeper. */
static void merge__the_examples_of_rfc_7386__come_out(void **state)
{
	static const char *const table[][3] = {
		{"{a: b}", "{a: c}", "{v: {a: c}}"},
		{"{a: b}", "{b: c}", "{v: {a: b, b: c}}"},
		{"{a: b}", "{a: null}", "{v: {}}"},
		{"{a: b, b: c}", "{a: null}", "{v: {b: c}}"},
		{"{a: [b]}", "{a: c}", "{v: {a: c}}"},
		{"{a: c}", "{a: [b]}", "{v: {a: [b]}}"},
		{"{a: {b: c}}", "{a: {b: d, c: null}}", "{v: {a: {b: d}}}"},
		{"{a: [{b: c}]}", "{a: [1]}", "{v: {a: [1]}}"},
		{"[a, b]", "[c, d]", "{v: [c, d]}"},
		{"{a: b}", "[c]", "{v: [c]}"},
		{"{a: foo}", "null", "{}"},
		{"{a: foo}", "bar", "{v: bar}"},
		{"{e: null}", "{a: 1}", "{v: {e: null, a: 1}}"},
		{"[1, 2]", "{a: b, c: null}", "{v: {a: b}}"},
		{"{}", "{a: {bb: {ccc: null}}}", "{v: {a: {bb: {}}}}"},
	};
	char text[2][64];
	const char *const layers[MOST] = {text[0], text[1]};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		snprintf(text[0], sizeof(text[0]), "{v: %s}", table[i][0]);
		snprintf(text[1], sizeof(text[1]), "{v: %s}", table[i][1]);
		assert_merged(layers, table[i][2]);
	}
}

static void merge__each_node__tells_its_layer_and_its_place(void **state)
{
	static const struct {
		const char *path;
		unsigned layer, line, column, key_line, key_column;
	} table[] = {
		{"a", 0, 1, 4, 1, 1},
		{"m", 0, 3, 3, 2, 1}, /* merged of two: the first */
		{"m.x", 0, 3, 6, 3, 3},
		{"m.y", 2, 3, 6, 3, 3},
		{"m.z", 2, 4, 6, 4, 3},
		{"l", 2, 5, 4, 5, 1},
		{"l.0", 2, 5, 5, 0, 0},
		{"l.1.k", 2, 5, 12, 5, 9},
		{"n", 2, 6, 4, 6, 1}, /* a mapping where there was none */
		{"n.o", 2, 6, 8, 6, 5},
	};
	static const char *const texts[] = {"a: 1\nm:\n  x: 1\n  y: 2\nl: [1]\nn: 5\n", "-",
		"\nm:\n  y: 3\n  z: 4\nl: [1, {k: v}]\nn: {o: p}\n", NULL};
	struct document *layers[MOST], *d = merged_texts(texts, layers);

	(void)state;
	free_all(layers, MOST); /* the result needs none of them */
	for (size_t i = 0; i < COUNT(table); i++) {
		const struct node *n = key_path_find(document_root(d), table[i].path);

		assert_non_null(n);
		if (n->layer != table[i].layer || n->line != table[i].line ||
			n->column != table[i].column || n->key_line != table[i].key_line ||
			n->key_column != table[i].key_column)
			fail_msg("%s: layer %u, %u:%u, key %u:%u", table[i].path, n->layer, n->line,
				n->column, n->key_line, n->key_column);
		assert_false(n->merged);
	}
	document_free(d);
}

static void merge__values_of_all_types__are_whole(void **state)
{
	static const char *const texts[] = {"{a: 1}",
		"{i: -0x7f, b: true, d: 1.50, n: .nan, f: -.inf, s: \"x\\ty\", e: ''}", NULL};
	struct document *layers[MOST], *d = merged_texts(texts, layers);
	const struct node *was = document_root(layers[1])->first,
			  *is = document_root(d)->first->next;

	(void)state;
	for (; was; was = was->next, is = is->next) {
		assert_true(node_equal(was, is));
		assert_string_equal(was->text, is->text);
		assert_int_equal(was->text_len, is->text_len);
		assert_string_equal(was->key, is->key);
	}
	assert_null(is);
	document_free(d);
	free_all(layers, MOST);
}

static void merge__of_keys_with_quotes__keeps_those_of_the_layer_that_brought_them(void **state)
{
	static const struct {
		const char *layers[MOST], *yaml;
	} table[] = {
		{{"'a': 1\nb: 2\n\"c\": {d: 3}\n", "a: 4\n'b': 5\nc: {'d': 6, 'e': 7}\n"},
			"'a': 4\nb: 5\n\"c\":\n  d: 6\n  'e': 7\n"},
		{{"'a': 1\nb: 2\n", "a: null\n'b': null\n", "a: 3\n\"b\": 4\n"},
			"a: 3\n\"b\": 4\n"},
	};
	struct buffer written;

	(void)state;
	buffer_init(&written, 1000);
	for (size_t i = 0; i < COUNT(table); i++) {
		struct document *layers[MOST], *d = merged_texts(table[i].layers, layers);

		buffer_clear(&written);
		assert_int_equal(document_write(document_root(d), DOCUMENT_YAML, &written), 0);
		assert_string_equal(written.data, table[i].yaml);
		document_free(d);
		free_all(layers, MOST);
	}
	buffer_fini(&written);
}

/* ---- bounds ---- */

/* { PREFIX0: 0, ... } */
static struct document *many(const char *prefix, unsigned count)
{
	struct document *d;
	struct buffer b;

	buffer_init(&b, 1u << 24);
	buffer_append_string(&b, "{");
	for (unsigned i = 0; i < count; i++)
		buffer_printf(&b, "%s\"%s%u\": %u", i ? "," : "", prefix, i, i);
	buffer_append_string(&b, "}");
	d = parsed(DOCUMENT_JSON, b.data);
	buffer_fini(&b);
	return d;
}

static void merge__100000_nodes__fit_and_one_more_is_refused(void **state)
{
	struct document *layers[] = {many("a", 50000), many("b", 49999), many("b", 49999),
		many("c", 1)},
			*d = merged_roots((const struct document *const *)layers, 3);
	const struct merge_layer too_many[] = {{document_root(layers[0]), "a"},
		{document_root(layers[1]), "b"}, {document_root(layers[3]), "c"}};
	struct document_error e;

	(void)state;
	/* with the root; replaced ones do not count */
	assert_int_equal(document_root(d)->count, DOCUMENT_MAX_NODES - 1);
	document_free(d);
	d = NULL;
	assert_int_equal(merge_layers(too_many, 3, &d, &e), -EINVAL);
	assert_null(d);
	assert_int_equal(e.line, 0);
	assert_non_null(strstr(e.message, "together the layers have more than 100000 values"));
	free_all(layers, COUNT(layers));
}

static void merge__256_layers__come_out_with_their_numbers(void **state)
{
	struct merge_layer layers[MERGE_MAX_LAYERS];
	struct document *documents[MERGE_MAX_LAYERS], *d;
	unsigned i = 0;

	(void)state;
	for (; i < MERGE_MAX_LAYERS; i++) {
		char text[64];

		snprintf(text, sizeof(text), "{same: %u, k%u: {same: 1}}", i, i);
		documents[i] = parsed(DOCUMENT_YAML, text);
		layers[i] = (struct merge_layer){document_root(documents[i]), text};
	}
	d = merged(layers, MERGE_MAX_LAYERS);
	i = 0;
	assert_int_equal(document_root(d)->count, MERGE_MAX_LAYERS + 1);
	assert_int_equal(document_root(d)->first->integer, MERGE_MAX_LAYERS - 1);
	for (const struct node *n = document_root(d)->first->next; n; n = n->next)
		assert_int_equal(n->layer, i++);
	document_free(d);
	free_all(documents, MERGE_MAX_LAYERS);
}

static void merge__64_levels__are_merged(void **state)
{
	char text[2][64 * 5 + 8] = {""}, path[64 * 2] = "";
	const char *const texts[MOST] = {text[0], text[1]};
	struct document *layers[MOST], *d;

	(void)state;
	for (int layer = 0; layer < 2; layer++) {
		size_t n = 0;

		for (int i = 0; i < DOCUMENT_MAX_DEPTH - 1; i++)
			n += (size_t)snprintf(text[layer] + n, sizeof(text[layer]) - n, "{a: ");
		n += (size_t)snprintf(
			text[layer] + n, sizeof(text[layer]) - n, "{%c: 1}", "xy"[layer]);
		memset(text[layer] + n, '}', DOCUMENT_MAX_DEPTH - 1);
	}
	d = merged_texts(texts, layers);
	for (int i = 0; i < DOCUMENT_MAX_DEPTH - 1; i++)
		memcpy(path + 2 * i, "a.", 2);
	path[sizeof(path) - 2] = 'x';
	assert_int_equal(key_path_find(document_root(d), path)->layer, 0);
	path[sizeof(path) - 2] = 'y';
	assert_int_equal(key_path_find(document_root(d), path)->layer, 1);
	document_free(d);
	free_all(layers, MOST);
}

/* The least of some runs, in ms of CPU: ten layers, two of them for each set of keys. */
static double merge_ms(unsigned keys)
{
	struct document *documents[10];
	struct merge_layer layers[10];
	double least = 1e9;
	char name[16];

	for (unsigned i = 0; i < 10; i++) {
		snprintf(name, sizeof(name), "key%u-", i / 2);
		documents[i] = many(name, keys);
		layers[i] = (struct merge_layer){document_root(documents[i]), name};
	}
	for (int run = 0; run < 7; run++) {
		clock_t begin = clock();
		struct document *d = merged(layers, 10);
		double ms = (double)(clock() - begin) * 1000 / CLOCKS_PER_SEC;

		least = ms < least ? ms : least;
		assert_int_equal(document_root(d)->count, 5 * keys);
		document_free(d);
	}
	free_all(documents, 10);
	return least;
}

static void merge__four_times_the_keys__takes_not_sixteen_times_as_long(void **state)
{
	double small_ms = merge_ms(1000), large_ms = merge_ms(4000);

	(void)state;
	print_message(
		"# 10 layers of 1000 keys: %.2f ms, of 4000 keys: %.2f ms\n", small_ms, large_ms);
	assert_true(large_ms < 8 * small_ms);
}

/* ---- the model ---- */

struct model {
	const struct node *from, *key; /* where the value and the key came from */
	unsigned layer;
	size_t count; /* of a mapping */
	struct model *children[MODEL_MAX_KEYS];
};

static struct model pool[20000];
static size_t pool_used;

static struct model *model_new(const struct node *from, unsigned layer)
{
	struct model *m = &pool[pool_used++];

	assert_true(pool_used < COUNT(pool));
	*m = (struct model){.from = from, .layer = layer};
	return m;
}

static size_t model_index(const struct model *m, const char *key)
{
	size_t i = 0;

	while (i < m->count && strcmp(m->children[i]->key->key, key) != 0)
		i++;
	return i;
}

/* MergePatch(Target, Patch) of RFC 7386; target is NULL when there is none. The first layer is the
 * target of all. */
static struct model *merge_patch(struct model *target, const struct node *patch, unsigned layer)
{
	if (patch->type != NODE_MAP)
		return model_new(patch, layer);
	if (!target || target->from->type != NODE_MAP)
		target = model_new(patch, layer);
	for (const struct node *c = patch->first; c; c = c->next) {
		size_t i = model_index(target, c->key);
		struct model *old = i < target->count ? target->children[i] : NULL, *new;

		if (c->type == NODE_NULL && layer > 0) {
			if (old)
				memmove(&target->children[i], &target->children[i + 1],
					(--target->count - i) * sizeof(target->children[0]));
			continue;
		}
		new = merge_patch(old, c, layer);
		if (new != old)
			new->key = c;
		target->children[i] = new;
		target->count += !old;
	}
	return target;
}

static void check_layer(const struct node *n, unsigned layer)
{
	CHECK(n->layer == layer);
	for (const struct node *c = n->first; c; c = c->next)
		check_layer(c, layer);
}

static void check_model(const struct model *m, const struct node *n)
{
	size_t i = 0;

	CHECK(n->type == m->from->type);
	CHECK(n->line == m->from->line && n->column == m->from->column);
	CHECK(n->layer == m->layer);
	if (m->from->type != NODE_MAP) {
		CHECK(node_equal(n, m->from));
		check_layer(n, m->layer);
		return;
	}
	CHECK(n->count == m->count);
	for (const struct node *c = n->first; c; c = c->next, i++) {
		const struct model *child = m->children[i];

		CHECK(strcmp(c->key, child->key->key) == 0 && c->key_len == child->key->key_len);
		CHECK(c->key_line == child->key->key_line);
		CHECK(c->key_column == child->key->key_column);
		check_model(child, c);
	}
}

/* Random layers, some of them absent. Returns how many. */
static size_t random_layers(struct document **ret_layers, struct random_shape shape, bool absent)
{
	size_t count = 1 + random_below(MOST - 1);

	for (size_t i = 0; i < count; i++)
		ret_layers[i] = absent && random_below(8) == 0 ? NULL : random_document(shape);
	return count;
}

static void merge__random_layers__are_what_the_model_makes_of_them(void **state)
{
	static const struct node empty = {.type = NODE_MAP};

	(void)state;
	model_random_start();
	for (; model_random.step < 5000; model_random.step++) {
		struct document *layers[MOST], *d;
		size_t count = random_layers(layers, (struct random_shape){4, true, false}, true);
		struct model *m = NULL;

		pool_used = 0;
		for (unsigned i = 0; i < count; i++)
			if (layers[i])
				m = merge_patch(m, document_root(layers[i]), i);
		if (!m)
			m = model_new(&empty, 0);
		d = merged_roots((const struct document *const *)layers, count);
		check_model(m, document_root(d));
		document_free(d);
		free_all(layers, count);
	}
}

/* ---- properties ---- */

static struct document *merged_two(const struct document *a, const struct document *b)
{
	const struct document *const both[] = {a, b};

	return merged_roots(both, 2);
}

static void merge__with_nothing_or_with_itself__changes_nothing(void **state)
{
	struct document *nothing = parsed(DOCUMENT_YAML, "{}");

	(void)state;
	model_random_start();
	for (; model_random.step < 1000; model_random.step++) {
		struct document *a = random_document((struct random_shape){4, true, false}),
				*b = random_document((struct random_shape){4, false, false}),
				*same[] = {merged_two(a, nothing), merged_two(a, NULL),
					merged_two(b, b), merged_two(nothing, b)};

		CHECK(node_equal(document_root(same[0]), document_root(a)));
		CHECK(node_equal(document_root(same[1]), document_root(a)));
		CHECK(node_equal(document_root(same[2]), document_root(b)));
		CHECK(node_equal(document_root(same[3]), document_root(b)));
		free_all(same, COUNT(same));
		document_free(a);
		document_free(b);
	}
	document_free(nothing);
}

static void merge__all_at_once__is_one_after_the_other(void **state)
{
	(void)state;
	model_random_start();
	for (; model_random.step < 2000; model_random.step++) {
		struct document *layers[MOST], *d, *next, *at_once;
		size_t count = random_layers(layers, (struct random_shape){4, true, false}, true);

		at_once = merged_roots((const struct document *const *)layers, count);
		d = merged_roots((const struct document *const *)layers, 1);
		for (size_t i = 1; i < count; i++) {
			next = merged_two(d, layers[i]);
			document_free(d);
			d = next;
		}
		CHECK(node_equal(document_root(d), document_root(at_once)));
		document_free(d);
		document_free(at_once);
		free_all(layers, count);
	}
}

/* a + (b + c) = (a + b) + c where b + c can be told beforehand: no nulls, and all agree on what is
 * a mapping. (Else what b + c drops could not drop anything of a.) */
static void merge__layers_of_one_shape_without_nulls__is_associative(void **state)
{
	const struct random_shape shape = {4, false, true};

	(void)state;
	model_random_start();
	for (; model_random.step < 2000; model_random.step++) {
		struct document *d[7] = {
			random_document(shape), random_document(shape), random_document(shape)};

		d[3] = merged_two(d[0], d[1]);
		d[4] = merged_two(d[3], d[2]);
		d[5] = merged_two(d[1], d[2]);
		d[6] = merged_two(d[0], d[5]);
		CHECK(node_equal(document_root(d[4]), document_root(d[6])));
		free_all(d, COUNT(d));
	}
}

/* ---- explain ---- */

static void explain__each_word__is_said(void **state)
{
	static const struct {
		const char *layers[MOST], *path;
		const char *words; /* of each layer: - absent, . silent, s sets, S sets and counts,
				      d deletes, r replaces */
		const char *nodes[MOST]; /* what says it: a text, or the key of a list or map */
	} table[] = {
		{{"{a: 1}", "{a: 2}", "{b: 3}", "-"}, "a", "sS.-", {"1", "2"}},
		{{"{a: 1}", "{b: 2}"}, "c", "..", {NULL}},
		{{"{a: {b: 1}}", "{a: {b: null}}"}, "a.b", "sd", {"1", "null"}},
		{{"{a: {b: 1}}", "{a: null}"}, "a.b", "sd", {"1", "null"}},
		{{"{a: {b: 1}}", "{a: null}", "{a: {b: 2}}"}, "a.b", "sdS", {"1", "null", "2"}},
		{{"{a: {b: 1}}", "{a: x}"}, "a.b", "sr", {"1", "x"}},
		{{"{a: {b: 1}}", "{a: x}", "{a: {c: 1}}"}, "a.b", "srr", {"1", "x", "a"}},
		{{"{a: {b: 1}}", "{a: null}", "{a: {c: 1}}"}, "a.b", "sd.", {"1", "null"}},
		{{"{a: x}", "{a: {c: 1}}", "{a: {d: 1}}"}, "a.b", "rr.", {"x", "a"}},
		{{"{a: {b: 1}}", "{a: {}}"}, "a.b", "S.", {"1"}},
		/* mappings join */
		{{"{a: {b: 1}}", "{c: 1}", "{a: {d: 1}}"}, "a", "S.S", {"a", NULL, "a"}},
		{{"{a: {b: 1}}", "{a: x}", "{a: {d: 1}}", "{a: {}}"}, "a", "ssSS",
			{"a", "x", "a", "a"}},
		{{"{a: {b: 1}}", "{a: null}", "{a: {d: 1}}"}, "a", "sdS", {"a", "null", "a"}},
		/* lists are one value */
		{{"{l: [x, y]}", "{l: [z]}"}, "l.0", "sS", {"x", "z"}},
		{{"{l: [x, y]}", "{l: [z]}"}, "l.1", "sr", {"y", "l"}},
		{{"{l: [{a: x}]}", "{l: [{b: y}]}"}, "l.0", "sS", {"-", "-"}},
		{{"{l: [x]}", "{l: {}}"}, "l.0", "sr", {"x", "l"}},
		{{"{l: [x]}", "{l: {'0': y}}"}, "l.0", "sS", {"x", "y"}},
		{{"{l: {'0': {a: 1}}}", "{l: [{b: 1}]}"}, "l.0", "sS", {"0", "-"}},
		{{"{l: [{b: 1}]}", "{l: {'0': {a: 1}}}"}, "l.0", "sS", {"-", "0"}},
		{{"{a: 1}", "{l: [null]}"}, "l.0", ".S", {NULL, "null"}},
		/* a null of the first layer is a value */
		{{"{a: null}", "{b: 1}"}, "a", "S.", {"null"}},
		{{"{a: null}", "{b: 1}"}, "a.b", "r.", {"null"}},
		{{"-", "{a: null}"}, "a", "-d", {NULL, "null"}},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct document *documents[MOST], *d = merged_texts(table[i].layers, documents);
		struct merge_layer layers[MOST] = {{0}};
		struct merge_effect effects[MOST];
		size_t count = strlen(table[i].words);
		char words[MOST + 1] = "";
		bool there;

		for (size_t k = 0; k < count; k++)
			layers[k].root = documents[k] ? document_root(documents[k]) : NULL;
		there = merge_explain(layers, count, table[i].path, effects);
		assert_int_equal(there, key_path_find(document_root(d), table[i].path) != NULL);
		for (size_t k = 0; k < count; k++) {
			const struct node *n = effects[k].node;
			const char *text = table[i].nodes[k];

			words[k] = effects[k].counts ? 'S' : "-.sdr"[effects[k].kind];
			if (!n != !text || (n && strcmp(n->text   ? n->text
							 : n->key ? n->key
								  : "-",
							 text) != 0))
				fail_msg("%zu: the node of layer %zu", i, k);
		}
		assert_string_equal(words, table[i].words);
		document_free(d);
		free_all(documents, MOST);
	}
}

static void check_effects(const struct merge_layer *layers, size_t count,
	const struct merge_effect *effects, bool there, const struct node *is, const char *path)
{
	static const struct node empty = {.type = NODE_MAP};
	struct merge_layer without[MOST];
	const struct node *still;
	struct document *d;
	bool counted = false;

	CHECK(there == (is != NULL));
	for (size_t i = 0; i < count; i++) {
		const struct merge_effect *v = &effects[i];

		CHECK((v->kind == MERGE_ABSENT) == !layers[i].root);
		CHECK(!v->node == (v->kind == MERGE_ABSENT || v->kind == MERGE_SILENT));
		CHECK(!v->counts || (is && v->kind == MERGE_SETS && v->node->type == is->type));
		CHECK(!v->counts || counted || is->layer == i); /* the first that counts */
		CHECK(!v->counts || is->type == NODE_MAP || node_equal(v->node, is));
		CHECK(!v->counts || !counted || is->type == NODE_MAP); /* more than one */
		counted |= v->counts;
		if (v->kind != MERGE_SILENT)
			continue;
		memcpy(without, layers, sizeof(without));
		without[i].root = &empty;
		d = merged(without, count);
		still = key_path_find(document_root(d), path);
		CHECK(!still == !is && (!is || node_equal(still, is)));
		document_free(d);
	}
	CHECK(counted == there);
}

static void explain__random_layers__is_what_the_merge_did(void **state)
{
	static const char *const segments[] = {"a", "b", "c", "0", "1", "", "a\\.b"};
	struct buffer path;
	uint64_t found = 0;

	(void)state;
	model_random_start();
	buffer_init(&path, 100);
	assert_int_equal(buffer_reserve(&path, 1), 0); /* "" has a text too */
	for (; model_random.step < 5000; model_random.step++) {
		struct document *documents[MOST], *d;
		struct merge_layer layers[MOST] = {{0}};
		struct merge_effect effects[MOST];
		size_t count =
			random_layers(documents, (struct random_shape){4, true, false}, true);
		const struct node *is;
		bool there;

		buffer_clear(&path);
		for (uint64_t n = random_below(4) + 1; n > 0; n--) {
			buffer_append_string(&path,
				random_text(segments, random_below(2) ? 2 : COUNT(segments)));
			buffer_append_string(&path, n > 1 ? "." : "");
		}
		for (size_t i = 0; i < count; i++)
			layers[i].root = documents[i] ? document_root(documents[i]) : NULL;
		d = merged(layers, count);
		is = key_path_find(document_root(d), path.data);
		there = merge_explain(layers, count, path.data, effects);
		check_effects(layers, count, effects, there, is, path.data);
		found += there;
		document_free(d);
		free_all(documents, count);
	}
	buffer_fini(&path);
	assert_true(found > 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(merge__each_rule__holds),
		cmocka_unit_test(merge__the_examples_of_rfc_7386__come_out),
		cmocka_unit_test(merge__each_node__tells_its_layer_and_its_place),
		cmocka_unit_test(merge__values_of_all_types__are_whole),
		cmocka_unit_test(
			merge__of_keys_with_quotes__keeps_those_of_the_layer_that_brought_them),
		cmocka_unit_test(merge__100000_nodes__fit_and_one_more_is_refused),
		cmocka_unit_test(merge__256_layers__come_out_with_their_numbers),
		cmocka_unit_test(merge__64_levels__are_merged),
		cmocka_unit_test(merge__four_times_the_keys__takes_not_sixteen_times_as_long),
		cmocka_unit_test(merge__random_layers__are_what_the_model_makes_of_them),
		cmocka_unit_test(merge__with_nothing_or_with_itself__changes_nothing),
		cmocka_unit_test(merge__all_at_once__is_one_after_the_other),
		cmocka_unit_test(merge__layers_of_one_shape_without_nulls__is_associative),
		cmocka_unit_test(explain__each_word__is_said),
		cmocka_unit_test(explain__random_layers__is_what_the_merge_did),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

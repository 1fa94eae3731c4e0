/*
 * From parts to one document: layers of either kind, absent ones, overrides on top; and what is
 * said when one of them is not good.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "version/compose.h"
#include "document/key_path.h"
#include "tests/unit/fixture/fault_memory.h"
#include "tests/unit/fixture/model_random.h"
#include "tests/unit/fixture/scratch.h"

#define ONE "configs:\n  web:\n    url: http://x/web.yaml\n    file: /run/web.yaml\n"
#define THREE                                                                                      \
	"servers: {main: {urls: [http://x]}}\n"                                                    \
	"configs:\n  web:\n    file: /run/web.yaml\n    from:\n"                                   \
	"      - {server: main, path: /base.yaml}\n"                                               \
	"      - {server: main, path: /web.json, optional: true}\n"                                \
	"      - {server: main, path: /host.yaml, optional: true}\n"

/* One version under composition. */
struct work {
	struct settings *settings;
	struct version version;
	struct buffer body;
	struct ledger *ledger;
	struct composition c;
	char why[FILE_WHY];
};

static void begin(struct work *w, const char *settings)
{
	memset(w, 0, sizeof(*w));
	w->settings = scratch_settings("%s", settings);
	w->ledger = calloc(1, sizeof(*w->ledger));
	assert_non_null(w->ledger);
	version_begin(&w->version, &w->body, 1);
}

static void add(struct work *w, const char *type, const char *text)
{
	version_add(&w->version, &w->body, "http://x/", type, text);
}

static void override(struct work *w, const char *key, const char *json)
{
	assert_int_equal(ledger_override(w->ledger, key, json, LEDGER_FOREVER, "uid 0", ""), 0);
}

static int compose_it(struct work *w)
{
	struct compose_piece pieces[VERSION_MAX_PARTS];

	version_pieces(&w->version, &w->body, pieces);
	return compose_document(w->settings->configs[0], pieces, w->version.part_count, w->ledger,
		NULL, &w->c, w->why);
}

static void end(struct work *w)
{
	compose_fini(&w->c);
	ledger_free(w->ledger);
	version_fini(&w->version);
	buffer_fini(&w->body);
	settings_free(w->settings);
}

static void assert_document(const struct node *root, const char *yaml)
{
	struct buffer out;

	assert_non_null(root);
	buffer_init(&out, 1u << 20);
	assert_int_equal(document_write(root, DOCUMENT_YAML, &out), 0);
	assert_string_equal(out.data, yaml);
	buffer_fini(&out);
}

/* Composes, compares, ends. */
static void assert_composed(struct work *w, const char *yaml)
{
	if (compose_it(w))
		fail_msg("%s", w->why);
	assert_document(w->c.root, yaml);
	end(w);
}

static void assert_refused(struct work *w, const char *sentence)
{
	static const struct composition untouched;

	assert_int_equal(compose_it(w), -EINVAL);
	assert_string_equal(w->why, sentence);
	assert_memory_equal(&w->c, &untouched, sizeof(untouched));
	end(w);
}

/* ---- layers ---- */

static void compose__of_one_layer__is_that_layer_and_nothing_is_merged(void **state)
{
	static const struct {
		const char *type, *text, *yaml;
	} table[] = {
		{"yaml", "# comment\na: 1\nb: [x, null]\n", "a: 1\nb:\n- x\n- null\n"},
		{"json", "{\"a\": 1.50, \"b\": null}", "a: 1.50\nb: null\n"},
	};
	struct work w;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		begin(&w, ONE);
		add(&w, table[i].type, table[i].text);
		assert_int_equal(compose_it(&w), 0);
		assert_null(w.c.merged);
		assert_ptr_equal(w.c.root, document_root(w.c.layers[0]));
		assert_document(w.c.root, table[i].yaml);
		end(&w);
	}
}

static void compose__of_several_layers__lets_the_later_ones_win(void **state)
{
	struct work w;

	(void)state;
	begin(&w, THREE);
	add(&w, "yaml", "db: {host: a, port: 1}\nlist: [1, 2]\ngone: x\n");
	add(&w, "json", "{\"db\": {\"port\": 2, \"user\": \"u\"}, \"list\": [3]}");
	add(&w, "yaml", "db: {host: c}\ngone: null\n");
	assert_composed(&w, "db:\n  host: c\n  port: 2\n  user: u\nlist:\n- 3\n");
}

static void compose__with_absent_layers__takes_them_for_empty(void **state)
{
	struct work w;

	(void)state;
	begin(&w, THREE);
	add(&w, "yaml", "a: 1\nb: null\n");
	add(&w, "yaml", NULL);
	add(&w, "yaml", "c: 3\n");
	assert_composed(&w, "a: 1\nb: null\nc: 3\n");
	begin(&w, THREE);
	for (int i = 0; i < 3; i++)
		add(&w, "yaml", NULL);
	assert_int_equal(compose_it(&w), 0);
	assert_int_equal(w.c.root->type, NODE_MAP);
	assert_int_equal(w.c.root->count, 0);
	end(&w);
}

static void compose__with_signatures__looks_at_documents_only(void **state)
{
	struct work w;

	(void)state;
	begin(&w, THREE);
	add(&w, "yaml", "a: 1\n");
	add(&w, "minisig", "untrusted comment: not YAML\n\t\n");
	add(&w, "yaml", NULL);
	add(&w, "minisig", NULL);
	add(&w, "json", "{\"b\": 2}");
	add(&w, "minisig", "\x01");
	assert_composed(&w, "a: 1\nb: 2\n");
}

static void compose__of_bytes__does_not_look_into_them(void **state)
{
	struct work w;

	(void)state;
	begin(&w, ONE "    type: bytes\n");
	add(&w, "bytes", "\x01: [");
	assert_int_equal(compose_it(&w), 0);
	assert_null(w.c.root);
	end(&w);
}

#define SET                                                                                        \
	"servers: {main: {urls: [http://x]}}\n"                                                    \
	"configs:\n  web:\n    dir: /run/web\n    snapshot: false\n    from:\n"                    \
	"      - {server: main, path: /a, as: a.yaml}\n"                                           \
	"      - {server: main, path: /b, as: b.bin}\n"

static void compose__of_a_set_of_files__judges_each_by_its_kind_and_merges_nothing(void **state)
{
	struct work w;

	(void)state;
	begin(&w, SET);
	add(&w, "yaml", "a: 1\n");
	add(&w, "bytes", "\x01: [");
	assert_int_equal(compose_it(&w), 0);
	assert_null(w.c.root);
	assert_null(w.c.merged);
	assert_non_null(w.c.layers[0]);
	assert_null(w.c.layers[1]);
	end(&w);
	begin(&w, SET);
	add(&w, "yaml", "a: [\n");
	add(&w, "bytes", "");
	assert_int_equal(compose_it(&w), -EINVAL);
	assert_non_null(strstr(w.why, "/a: invalid YAML, line 1, column 4: "));
	end(&w);
}

static void compose__of_a_bad_layer__says_where_and_of_several_which(void **state)
{
	struct work w;

	(void)state;
	begin(&w, ONE);
	add(&w, "yaml", "a: 1\na: 2\n");
	assert_refused(&w, "invalid YAML, line 2, column 1: duplicate key \"a\" (first at line "
			   "1): remove one");
	begin(&w, ONE);
	add(&w, "json", "{\"a\": 1}\n7");
	assert_refused(&w, "invalid JSON, line 2, column 1: unexpected text after the end of the "
			   "document");
	begin(&w, ONE);
	add(&w, "yaml", "- a\n");
	assert_refused(&w, "invalid YAML, line 1, column 1: the document must be a mapping (key: "
			   "value), not a list");
	begin(&w, THREE);
	add(&w, "yaml", "a: 1\n");
	add(&w, "json", "[]");
	add(&w, "yaml", "a: [\n");
	assert_refused(&w, "/web.json: invalid JSON, line 1, column 1: the document must be a "
			   "mapping (key: value), not a list");
	begin(&w, THREE);
	add(&w, "yaml", "a: 1\n");
	add(&w, "yaml", NULL);
	add(&w, "yaml", "");
	assert_refused(&w, "/host.yaml: invalid YAML, line 1, column 1: the document is empty");
}

/* A document of so many values. */
static char *many_values(int count, const char *prefix)
{
	struct buffer b;

	buffer_init(&b, 64u << 20);
	for (int i = 0; i < count; i++)
		buffer_printf(&b, "%s%d: 1\n", prefix, i);
	assert_int_equal(b.error, 0);
	return b.data;
}

static void compose__of_layers_that_are_too_much_together__says_so(void **state)
{
	char *first = many_values(60000, "a"), *second = many_values(60000, "b");
	struct work w;

	(void)state;
	begin(&w, THREE);
	buffer_fini(&w.body);
	buffer_init(&w.body, 64u << 20);
	add(&w, "yaml", first);
	add(&w, "yaml", second);
	add(&w, "yaml", NULL);
	assert_refused(&w, "the layers cannot be merged: together the layers have more than 100000 "
			   "values: split the config");
	free(first);
	free(second);
}

/* ---- overrides ---- */

static void override__of_any_key_and_value__stands_on_top(void **state)
{
	static const struct {
		const char *key, *json, *yaml;
	} table[] = {
		/* values of each type */
		{"a", "\"x\"", "a: x\nm:\n  k: v\n  l: w\n"},
		{"a", "-9223372036854775808", "a: -9223372036854775808\nm:\n  k: v\n  l: w\n"},
		{"a", "2.5", "a: 2.5\nm:\n  k: v\n  l: w\n"},
		{"a", "true", "a: true\nm:\n  k: v\n  l: w\n"},
		{"a", "[1, {\"b\": null}]", "a:\n- 1\n- b: null\nm:\n  k: v\n  l: w\n"},
		{"a", "{\"b\": {\"c\": 1}}", "a:\n  b:\n    c: 1\nm:\n  k: v\n  l: w\n"},
		{"a", "null", "m:\n  k: v\n  l: w\n"},
		/* keys */
		{"new", "1", "a: 1\nm:\n  k: v\n  l: w\nnew: 1\n"},
		{"m.k", "1", "a: 1\nm:\n  k: 1\n  l: w\n"},
		{"m.k", "null", "a: 1\nm:\n  l: w\n"},
		{"m.new.deep", "1", "a: 1\nm:\n  k: v\n  l: w\n  new:\n    deep: 1\n"},
		{"m", "{\"l\": null, \"o\": 1}", "a: 1\nm:\n  k: v\n  o: 1\n"},
		{"m", "\"flat\"", "a: 1\nm: flat\n"},
		{"a.b", "1", "a:\n  b: 1\nm:\n  k: v\n  l: w\n"},
		{"m\\.k", "1", "a: 1\nm:\n  k: v\n  l: w\nm.k: 1\n"},
		{"m.k\\\\.x", "1", "a: 1\nm:\n  k: v\n  l: w\n  k\\:\n    x: 1\n"},
		{"", "1", "a: 1\nm:\n  k: v\n  l: w\n'': 1\n"},
		{"m.", "1", "a: 1\nm:\n  k: v\n  l: w\n  '': 1\n"},
		{"m.\"q\"", "1", "a: 1\nm:\n  k: v\n  l: w\n  '\"q\"': 1\n"},
		{"m.\xc3\xbc", "1", "a: 1\nm:\n  k: v\n  l: w\n  \"\xc3\xbc\": 1\n"},
		{"none", "null", "a: 1\nm:\n  k: v\n  l: w\n"},
	};
	struct work w;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		begin(&w, ONE);
		add(&w, "yaml", "a: 1\nm: {k: v, l: w}\n");
		override(&w, table[i].key, table[i].json);
		assert_composed(&w, table[i].yaml);
	}
}

static void override__of_many_short_values__is_used(void **state)
{
	char list[2 * 1000 + 2] = "[";
	struct work w;

	(void)state;
	for (size_t i = 0; i < 1000; i++)
		memcpy(list + 2 * i, i ? ",1" : "[1", 2);
	memcpy(list + 2 * 1000, "]", 2);
	begin(&w, ONE);
	add(&w, "yaml", "a: 1\n");
	override(&w, "a", list);
	assert_int_equal(compose_it(&w), 0);
	end(&w);
}

static void override__of_several_keys__is_one_layer_each_in_the_order_they_came(void **state)
{
	struct merge_layer layers[SETTINGS_MAX_LAYERS + LEDGER_MAX_OVERRIDES];
	struct merge_effect effects[6];
	struct work w;

	(void)state;
	begin(&w, THREE);
	add(&w, "yaml", "a: 1\nm: {k: 1}\n");
	add(&w, "yaml", NULL);
	add(&w, "json", "{\"m\": {\"k\": 3}}");
	override(&w, "m.k", "4");
	override(&w, "m", "\"flat\"");
	override(&w, "m.l", "5");
	assert_int_equal(compose_it(&w), 0);
	assert_document(w.c.root, "a: 1\nm:\n  l: 5\n");
	assert_int_equal(compose_layers(&w.c, layers), 6);
	assert_null(layers[1].root);
	assert_int_equal(key_path_find(layers[3].root, "m.k")->integer, 4);
	assert_true(merge_explain(layers, 6, "m.l", effects));
	assert_int_equal(effects[0].kind, MERGE_SILENT);
	assert_int_equal(effects[1].kind, MERGE_ABSENT);
	assert_int_equal(effects[4].kind, MERGE_REPLACES);
	assert_true(effects[5].kind == MERGE_SETS && effects[5].counts);
	end(&w);
}

static void override__of_a_single_absent_or_uninteresting_layer__is_still_on_top(void **state)
{
	struct work w;

	(void)state;
	begin(&w, ONE);
	add(&w, "yaml", NULL);
	override(&w, "a", "1");
	assert_composed(&w, "a: 1\n");
	begin(&w, ONE "    type: bytes\n"); /* they have no keys */
	add(&w, "bytes", "x");
	override(&w, "a", "1");
	assert_int_equal(compose_it(&w), 0);
	assert_null(w.c.root);
	end(&w);
}

static void override__without_a_ledger__is_none(void **state)
{
	struct compose_piece pieces[VERSION_MAX_PARTS];
	struct work w;

	(void)state;
	begin(&w, ONE);
	add(&w, "yaml", "a: 1\n");
	version_pieces(&w.version, &w.body, pieces);
	assert_int_equal(
		compose_document(w.settings->configs[0], pieces, 1, NULL, NULL, &w.c, w.why), 0);
	assert_document(w.c.root, "a: 1\n");
	end(&w);
}

static void override__that_cannot_be_used__is_named(void **state)
{
	static const char *const bad[] = {"", "x", "1}", "1, \"b\": 2", "[", "\"", "1 2",
		"{\"b\": 1, \"b\": 2}", "99999999999999999999"};
	char deep[2 * DOCUMENT_MAX_DEPTH + 1];
	struct work w;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		begin(&w, ONE);
		add(&w, "yaml", "a: 1\n");
		override(&w, "good", "1");
		override(&w, "a.b", bad[i]);
		if (compose_it(&w) != -EINVAL)
			fail_msg("'%s'", bad[i]);
		assert_non_null(strstr(w.why, "the override of a.b cannot be used: "));
		end(&w);
	}
	for (size_t i = 0; i < sizeof(deep) - 1; i++)
		deep[i] = i % 2 ? '.' : 'x';
	deep[sizeof(deep) - 1] = '\0'; /* 64 segments and a dot: one level too deep */
	begin(&w, ONE);
	add(&w, "yaml", "a: 1\n");
	override(&w, deep, "1");
	assert_int_equal(compose_it(&w), -EINVAL);
	assert_non_null(strstr(w.why, "nested deeper than 64 levels"));
	end(&w);
	deep[sizeof(deep) - 2] = '\0';
	begin(&w, ONE);
	add(&w, "yaml", "a: 1\n");
	override(&w, deep, "1");
	assert_int_equal(compose_it(&w), 0);
	end(&w);
}

/* ---- what an override says ---- */

static void value__of_each_type__is_json(void **state)
{
	static const struct {
		const char *yaml, *json;
	} table[] = {
		{"1", "1"},
		{" 1 ", "1"},
		{"0x10", "16"},
		{"1 # comment", "1"},
		{"1.50", "1.50"},
		{"true", "true"},
		{"no", "\"no\""},
		{"null", "null"},
		{"~", "null"},
		{"", "null"},
		{"'text with: \"quotes'", "\"text with: \\\"quotes\""},
		{"plain words", "\"plain words\""},
		{"\"1\"", "\"1\""},
		{"\"}\"", "\"}\""},
		{"\"a\\nb\"", "\"a\\nb\""},
		{"|\n  two\n  lines", "\"two\\nlines\\n\""},
		{"[1, x]", "[1,\"x\"]"},
		{"{a: {b: [null]}}", "{\"a\":{\"b\":[null]}}"},
		{"{}", "{}"},
		{"[]", "[]"},
		{"\xc3\xbc", "\"\xc3\xbc\""},
	};
	struct document *got, *expected;
	struct document_error e;
	char why[FILE_WHY], text[256], *json;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (compose_override_value(table[i].yaml, &json, why))
			fail_msg("%s: %s", table[i].yaml, why);
		snprintf(text, sizeof(text), "{\"v\":%s}", json);
		assert_int_equal(document_parse(DOCUMENT_JSON, text, strlen(text), 0, &got, &e), 0);
		snprintf(text, sizeof(text), "{\"v\":%s}", table[i].json);
		assert_int_equal(
			document_parse(DOCUMENT_JSON, text, strlen(text), 0, &expected, &e), 0);
		assert_true(node_equal(document_root(got), document_root(expected)));
		document_free(got);
		document_free(expected);
		free(json);
	}
}

/* Of JSON it would be two members. */
static void value__of_plain_yaml_that_ends_a_value_of_json__is_text(void **state)
{
	char why[FILE_WHY], *json = NULL;

	(void)state;
	assert_int_equal(compose_override_value("1, \"w\":2", &json, why), 0);
	assert_non_null(strstr(json, "\"1, \\\"w\\\":2\""));
	free(json);
}

/* In YAML each half of the pair would be a character, and none is one. */
static void value__of_long_json__is_read_as_json(void **state)
{
	char value[200], why[FILE_WHY], *json = NULL;

	(void)state;
	snprintf(value, sizeof(value), "\"%0100d\\ud83d\\ude00\"", 0);
	if (compose_override_value(value, &json, why))
		fail_msg("%s", why);
	assert_true(strstr(json, "\xf0\x9f\x98\x80") || strstr(json, "\\ud83d\\ude00"));
	free(json);
}

static void value__that_is_not_one_value__is_refused_with_a_sentence(void **state)
{
	static const struct {
		const char *value, *sentence;
	} table[] = {
		{"1\nw: 2", "it is more than one value"},
		{"1\n---\nv: 2", "a second document"},
		{"a: 1", "a colon and a blank inside a value"},
		{"- a", "a list begins in a line of its own"},
		{"[1", "never closed"},
		{"}", "closes nothing"},
		{"*none", "alias"},
		{"!!binary aGk=", "tag"},
		{".inf", "a number that JSON does not have"},
		{"[1, -.inf]", "a number that JSON does not have"},
		{".nan", "a number that JSON does not have"},
		{"99999999999999999999", "64 bits"},
		{"{a: 1, a: 2}", "duplicate key"},
		{"\xff", "UTF-8"},
	};
	char why[FILE_WHY], *json = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		assert_int_equal(compose_override_value(table[i].value, &json, why), -EINVAL);
		assert_null(json);
		if (strncmp(why, "the value cannot be read: ", 26) != 0 ||
			!strstr(why, table[i].sentence))
			fail_msg("'%s': %s", table[i].value, why);
	}
}

static void value__that_is_too_long__is_refused_with_a_sentence(void **state)
{
	char *value = calloc(1, 70000), *json = NULL, why[FILE_WHY];

	(void)state;
	assert_non_null(value);
	memset(value, 'x', 65000);
	assert_int_equal(compose_override_value(value, &json, why), 0);
	assert_int_equal(strspn(json + strcspn(json, "x"), "x"), 65000);
	free(json);
	json = NULL;
	memset(value, 'x', 69999);
	assert_int_equal(compose_override_value(value, &json, why), -EMSGSIZE);
	assert_string_equal(why, "the value cannot be read: Message too long");
	memset(value, '"', 40002); /* as JSON each tab is two bytes */
	memset(value + 1, '\t', 40000);
	value[40002] = '\0';
	assert_int_equal(compose_override_value(value, &json, why), -EMSGSIZE);
	assert_null(json);
	free(value);
}

static void compose__of_as_many_layers_as_there_may_be__frees_each_once(void **state)
{
	char settings[4096] = "servers: {main: {urls: [http://x]}}\n"
			      "configs:\n  web:\n    file: /run/web.yaml\n    from:\n";
	struct work w;

	(void)state;
	for (int i = 0; i < SETTINGS_MAX_LAYERS; i++)
		snprintf(settings + strlen(settings), 100,
			"      - {server: main, path: /%d.yaml}\n", i);
	begin(&w, settings);
	for (int i = 0; i < SETTINGS_MAX_LAYERS; i++)
		add(&w, "yaml", "a: 1\n");
	override(&w, "a", "2");
	assert_int_equal(compose_it(&w), 0);
	assert_document(w.c.root, "a: 2\n");
	assert_int_equal(w.c.layer_count, SETTINGS_MAX_LAYERS);
	assert_int_equal(w.c.override_count, 1);
	compose_drop_layers(&w.c);
	assert_document(w.c.root, "a: 2\n");
	end(&w);
}

/* ---- kept layers ---- */

/* Composes these three layers by what is kept, and keeps them. */
static void compose_by_kept(struct work *w, struct kept_layers *k, const char *const texts[3])
{
	struct compose_piece pieces[VERSION_MAX_PARTS];

	begin(w, THREE);
	add(w, "yaml", texts[0]);
	add(w, "json", texts[1]);
	add(w, "yaml", texts[2]);
	version_pieces(&w->version, &w->body, pieces);
	assert_int_equal(
		compose_document(w->settings->configs[0], pieces, 3, NULL, k, &w->c, w->why), 0);
	compose_keep_layers(&w->c, pieces, 3, k);
}

static void compose__by_kept_layers__parses_only_what_has_changed(void **state)
{
	struct kept_shelf shelf = {0};
	struct kept_layers *k = kept_layers_new(&shelf);
	const struct document *layers[3];
	struct work w;

	(void)state;
	compose_by_kept(&w, k, (const char *const[]){"a: 1\nb: 1\n", "{\"b\": 2}", "c: 1\n"});
	memcpy(layers, w.c.layers, sizeof(layers));
	assert_document(w.c.root, "a: 1\nb: 2\nc: 1\n");
	end(&w);
	compose_by_kept(&w, k, (const char *const[]){"a: 1\nb: 1\n", "{\"b\": 3}", "c: 1\n"});
	assert_ptr_equal(w.c.layers[0], layers[0]);
	assert_ptr_equal(w.c.layers[2], layers[2]);
	assert_document(w.c.root, "a: 1\nb: 3\nc: 1\n");
	layers[1] = w.c.layers[1];
	end(&w);
	compose_by_kept(&w, k, (const char *const[]){"b: 4\n", "{\"b\": 3}", NULL});
	assert_ptr_equal(w.c.layers[1], layers[1]);
	assert_document(w.c.root, "b: 3\n");
	end(&w);
	kept_layers_free(k);
}

/* The same text is read by another reader when its type has changed. */
static void compose__by_kept_layers_of_another_type__parses_them_again(void **state)
{
	struct kept_shelf shelf = {0};
	struct kept_layers *k = kept_layers_new(&shelf);
	struct compose_piece pieces[VERSION_MAX_PARTS];
	struct work w;

	(void)state;
	compose_by_kept(&w, k, (const char *const[]){"a: 1\n", "{\"b\": 2}", "c: 1\n"});
	end(&w);
	begin(&w, THREE);
	add(&w, "json", "a: 1\n");
	add(&w, "json", "{\"b\": 2}");
	version_pieces(&w.version, &w.body, pieces);
	assert_int_equal(
		compose_document(w.settings->configs[0], pieces, 2, NULL, k, &w.c, w.why), -EINVAL);
	end(&w);
	kept_layers_free(k);
}

static void compose__of_random_versions__is_the_same_with_and_without_kept_layers(void **state)
{
	static const char *const yaml[] = {
		"a: 1\n", "a: {b: 1}\n", "a: ~\nb: 2\n", "&x k: [1, 2]\n", "a: {c: 1.50}\n", NULL};
	static const char *const json[] = {"{}", "{\"a\": {\"b\": 2}}", "{\"a\": null}", NULL};
	struct kept_shelf shelf = {0};
	struct kept_layers *k = kept_layers_new(&shelf);

	(void)state;
	model_random_start();
	for (unsigned i = 0; i < 500; i++) {
		const char *texts[3] = {
			yaml[random_bits() % 6], json[random_bits() % 4], yaml[random_bits() % 6]};
		struct work by_kept, fresh;
		struct buffer expected;

		begin(&fresh, THREE);
		add(&fresh, "yaml", texts[0]);
		add(&fresh, "json", texts[1]);
		add(&fresh, "yaml", texts[2]);
		assert_int_equal(compose_it(&fresh), 0);
		buffer_init(&expected, 1u << 20);
		assert_int_equal(document_write(fresh.c.root, DOCUMENT_YAML, &expected), 0);
		compose_by_kept(&by_kept, k, texts);
		assert_document(by_kept.c.root, expected.data);
		buffer_fini(&expected);
		end(&by_kept);
		end(&fresh);
	}
	kept_layers_free(k);
	assert_int_equal(shelf.bytes, 0);
}

/* Never one with a shorter key, or without an override. */
static void compose__with_each_allocation_failing__is_the_document_or_none(void **state)
{
	bool hit = true;

	(void)state;
	for (unsigned n = 1; hit; n++) {
		struct work w;
		int r;

		begin(&w, ONE);
		add(&w, "yaml", "a: 1\nm: {k: v}\n");
		override(&w, "m.k\\.x", "2");
		override(&w, "a", "{\"b\": 3}");
		fault_memory.seen = 0;
		fault_memory.nth = n;
		r = compose_it(&w);
		fault_memory.nth = 0;
		hit = fault_memory.seen >= n;
		if (r == 0)
			assert_document(w.c.root, "a:\n  b: 3\nm:\n  k: v\n  k.x: 2\n");
		else
			assert_true(hit && r == -ENOMEM && w.why[0]);
		end(&w);
		assert_in_range(n, 1, 1000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compose__of_one_layer__is_that_layer_and_nothing_is_merged),
		cmocka_unit_test(compose__of_several_layers__lets_the_later_ones_win),
		cmocka_unit_test(compose__with_absent_layers__takes_them_for_empty),
		cmocka_unit_test(compose__with_signatures__looks_at_documents_only),
		cmocka_unit_test(compose__of_bytes__does_not_look_into_them),
		cmocka_unit_test(
			compose__of_a_set_of_files__judges_each_by_its_kind_and_merges_nothing),
		cmocka_unit_test(compose__of_a_bad_layer__says_where_and_of_several_which),
		cmocka_unit_test(compose__of_layers_that_are_too_much_together__says_so),
		cmocka_unit_test(override__of_any_key_and_value__stands_on_top),
		cmocka_unit_test(override__of_many_short_values__is_used),
		cmocka_unit_test(
			override__of_several_keys__is_one_layer_each_in_the_order_they_came),
		cmocka_unit_test(
			override__of_a_single_absent_or_uninteresting_layer__is_still_on_top),
		cmocka_unit_test(override__without_a_ledger__is_none),
		cmocka_unit_test(override__that_cannot_be_used__is_named),
		cmocka_unit_test(value__of_each_type__is_json),
		cmocka_unit_test(value__of_plain_yaml_that_ends_a_value_of_json__is_text),
		cmocka_unit_test(value__that_is_not_one_value__is_refused_with_a_sentence),
		cmocka_unit_test(value__of_long_json__is_read_as_json),
		cmocka_unit_test(value__that_is_too_long__is_refused_with_a_sentence),
		cmocka_unit_test(compose__of_as_many_layers_as_there_may_be__frees_each_once),
		cmocka_unit_test(compose__by_kept_layers__parses_only_what_has_changed),
		cmocka_unit_test(compose__by_kept_layers_of_another_type__parses_them_again),
		cmocka_unit_test(
			compose__of_random_versions__is_the_same_with_and_without_kept_layers),
		cmocka_unit_test(compose__with_each_allocation_failing__is_the_document_or_none),
	};

	return fault_memory_run(tests, 1);
}

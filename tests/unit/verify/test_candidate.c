/*
 * A version from the state directory on its way to its publication: what is composed of it, what
 * the file and the snapshot get in each format, which keys changed. How it is made of what came
 * from servers is shown by tests/unit/pull/test_pull.c.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "verify/candidate.h"
#include "lib/snapshot.h"
#include "tests/unit/fixture/scratch.h"

#define CONFIG "configs:\n  web:\n    url: http://x/web.yaml\n    file: /run/web.yaml\n"
#define KEY "RWSYMC7n8ADplDfW2kiEMNo8BX8IPthSF1HxnEXGBzB/KwlR4ZfoNZlN"
#define TWO                                                                                        \
	"servers: {main: {urls: [http://x]}}\n"                                                    \
	"configs:\n  web:\n    file: /run/web.yaml\n    from:\n"                                   \
	"      - {server: main, path: /base.yaml}\n"                                               \
	"      - {server: main, path: /web.yaml, optional: true}\n"

/* One version, saved and loaded again. */
struct work {
	char dir[SCRATCH_PATH];
	struct settings *settings;
	struct store *store;
	struct version version;
	struct buffer body;
	struct ledger *ledger;
	struct candidate *candidate;
	char why[FILE_WHY];
};

static void begin(struct work *w, const char *settings)
{
	memset(w, 0, sizeof(*w));
	scratch_open(w->dir, scratch_memory());
	w->settings = scratch_settings("%s", settings);
	assert_int_equal(store_open(&sys_real, w->dir, "web", 10, &w->store, w->why), 0);
	w->ledger = calloc(1, sizeof(*w->ledger));
	assert_non_null(w->ledger);
	version_begin(&w->version, &w->body, 1);
}

static void add(struct work *w, const char *type, const char *text)
{
	version_add(&w->version, &w->body, "http://x/web.yaml", type, text);
}

/* All parts are added: saves it, behind them what a program made, and loads it. */
static void load(struct work *w, const char *product)
{
	unsigned damaged;

	version_end(&w->version, &w->body);
	w->version.product_len = strlen(product);
	buffer_append_string(&w->body, product);
	assert_int_equal(store_save(w->store, &w->version, w->body.data ? w->body.data : "",
				 w->body.len, false, w->why),
		0);
	w->candidate = candidate_new();
	assert_non_null(w->candidate);
	if (candidate_load(w->candidate, w->store, 0, &damaged, w->why))
		fail_msg("%s", w->why);
	assert_int_equal(damaged, 0);
}

static int outputs(struct work *w, bool snapshot)
{
	struct settings_config *c = w->settings->configs[0];
	int r = candidate_compose(w->candidate, c, w->ledger, NULL, w->why);

	return r ? r : candidate_outputs(w->candidate, c, "v1", snapshot, w->why);
}

static void end(struct work *w)
{
	candidate_free(w->candidate);
	store_close(w->store);
	ledger_free(w->ledger);
	version_fini(&w->version);
	buffer_fini(&w->body);
	settings_free(w->settings);
	scratch_close(w->dir);
}

static void assert_text(const struct work *w, const char *text)
{
	const struct buffer *b = candidate_text(w->candidate);

	assert_int_equal(b->len, strlen(text));
	assert_memory_equal(b->data ? b->data : "", text, b->len);
}

/* Makes the outputs, compares the text, ends. */
static void assert_gives(struct work *w, const char *text)
{
	if (outputs(w, false))
		fail_msg("%s", w->why);
	assert_text(w, text);
	end(w);
}

/* ---- bytes ---- */

static void load__of_a_version__finds_the_bytes_of_each_part(void **state)
{
	static const size_t layers[] = {0, 0, 1, 1, 2};
	struct candidate *c;
	struct work w;

	(void)state;
	begin(&w, CONFIG);
	add(&w, "yaml", "a: 1\n");
	add(&w, "minisig", "sig\n");
	add(&w, "yaml", NULL);
	add(&w, "minisig", NULL);
	add(&w, "json", "{}");
	load(&w, "made");
	c = w.candidate;
	for (size_t i = 0; i < 5; i++) {
		assert_ptr_equal(c->pieces[i].facts, &c->version.parts[i]);
		assert_int_equal(c->pieces[i].layer, layers[i]);
		assert_int_equal(c->pieces[i].signature, i == 1 || i == 3);
		assert_string_equal(c->pieces[i].mismatch, "");
	}
	assert_memory_equal(c->pieces[0].data, "a: 1\n", 5);
	assert_memory_equal(c->pieces[1].data, "sig\n", 4);
	assert_memory_equal(c->pieces[4].data, "{}", 2);
	assert_int_equal(version_bytes(&c->version), 7);
	assert_int_equal(version_bytes(&w.version), 7);
	assert_int_equal(c->body.len, 11); /* without what the program made */
	assert_text(&w, "made");
	assert_true(c->expires_ms == INT64_MAX);
	end(&w);
	candidate_free(NULL);
}

static void copy__has_bytes_of_its_own(void **state)
{
	struct candidate *copy;
	struct work w;

	(void)state;
	begin(&w, TWO);
	add(&w, "yaml", "a: 1\n");
	add(&w, "yaml", "b: 22\n");
	load(&w, "");
	copy = candidate_copy(w.candidate);
	assert_non_null(copy);
	candidate_free(w.candidate);
	w.candidate = copy;
	assert_int_equal(copy->body.len, 11);
	assert_memory_equal(copy->pieces[0].data, "a: 1\n", 5);
	assert_memory_equal(copy->pieces[1].data, "b: 22\n", 6);
	assert_gives(&w, "a: 1\nb: 22\n");
}

static void product__behind_the_parts__is_put_there_once(void **state)
{
	struct candidate *c;
	struct work w;

	(void)state;
	begin(&w, TWO);
	add(&w, "yaml", "a: 1\n");
	add(&w, "yaml", "b: 22\n");
	load(&w, "");
	c = w.candidate;
	for (int again = 0; again < 2; again++) {
		buffer_clear(&c->text);
		assert_int_equal(buffer_append_string(&c->text, again ? "made" : "it"), 0);
		assert_int_equal(candidate_append_product(c), 0);
		assert_int_equal(c->version.product_len, again ? 4 : 2);
		assert_string_equal(c->body.data, again ? "a: 1\nb: 22\nmade" : "a: 1\nb: 22\nit");
		assert_ptr_equal(c->pieces[0].data, c->body.data);
		assert_ptr_equal(c->pieces[1].data, c->body.data + 5);
	}
	buffer_clear(&c->text);
	assert_int_equal(candidate_append_product(c), 0);
	assert_int_equal(c->version.product_len, 0);
	assert_int_equal(c->body.len, 11);
	end(&w);
}

static void load__of_one_that_is_not_there__says_which(void **state)
{
	struct candidate *c = candidate_new();
	struct work w;
	unsigned damaged;

	(void)state;
	begin(&w, CONFIG);
	assert_int_equal(candidate_load(c, w.store, 7, &damaged, w.why), -ENOENT);
	assert_string_equal(w.why,
		"generation 7 cannot be read from the state directory: No such file or directory");
	assert_int_equal(candidate_load(c, w.store, 0, &damaged, w.why), -ENOENT);
	assert_int_equal(damaged, 0);
	candidate_free(c);
	end(&w);
}

static void compose__of_other_layers_than_are_configured__is_refused(void **state)
{
	static const struct {
		const char *settings;
		size_t documents;
		bool signatures, good;
	} table[] = {
		{CONFIG, 1, false, true},
		{CONFIG, 1, true, true}, /* "verify" was taken out */
		{CONFIG, 2, false, false},
		{CONFIG, 2, true, false},
		{TWO, 1, false, false},
		{TWO, 1, true, false},
		{TWO, 2, false, true},
		{TWO, 2, true, true},
		{TWO, VERSION_MAX_PARTS, false, false},
		{TWO, VERSION_MAX_PARTS / 2, true, false},
	};
	struct work w;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		begin(&w, table[i].settings);
		for (size_t n = 0; n < table[i].documents; n++) {
			add(&w, "yaml", "a: 1\n");
			if (table[i].signatures)
				add(&w, "minisig", "sig\n");
		}
		load(&w, "");
		assert_int_equal(outputs(&w, false), table[i].good ? 0 : -EINVAL);
		if (!table[i].good)
			assert_non_null(strstr(w.why, "layers"));
		end(&w);
	}
}

/* ---- what the file gets ---- */

#define DOCUMENT "# as pulled\na:   1\nm: {b: x y}\n"

static void text__per_format__is_written_anew_unless_verbatim(void **state)
{
	static const struct {
		const char *format, *text;
	} table[] = {
		{"", DOCUMENT},
		{"    format: verbatim\n", DOCUMENT},
		{"    format: yaml\n", "a: 1\nm:\n  b: x y\n"},
		{"    format: json\n", "{\n  \"a\": 1,\n  \"m\": {\n    \"b\": \"x y\"\n  }\n}\n"},
		{"    format: env\n", "A=1\nM_B=x y\n"},
		{"    format: properties\n", "a=1\nm.b=x y\n"},
	};
	char settings[1024];
	struct work w;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		snprintf(settings, sizeof(settings), CONFIG "%s", table[i].format);
		begin(&w, settings);
		add(&w, "yaml", DOCUMENT);
		load(&w, "");
		assert_gives(&w, table[i].text);
	}
}

static void text__verbatim__is_without_the_signature(void **state)
{
	struct work w;

	(void)state;
	begin(&w, CONFIG "    verify: {public_key: " KEY "}\n");
	add(&w, "yaml", DOCUMENT);
	add(&w, "minisig", "untrusted comment: x\n");
	load(&w, "");
	assert_gives(&w, DOCUMENT);
}

static void text__of_bytes__is_what_was_pulled(void **state)
{
	struct work w;

	(void)state;
	begin(&w, CONFIG "    type: bytes\n    verify: {public_key: " KEY "}\n");
	add(&w, "bytes", "\x01\x02 [");
	add(&w, "minisig", "untrusted comment: x\n");
	load(&w, "");
	assert_gives(&w, "\x01\x02 [");
}

static void text__verbatim_with_an_override__is_written_anew_in_its_kind(void **state)
{
	struct work w;

	(void)state;
	begin(&w, CONFIG);
	add(&w, "yaml", DOCUMENT);
	load(&w, "");
	ledger_override(w.ledger, "m.b", "2", LEDGER_FOREVER, "", "");
	assert_gives(&w, "a: 1\nm:\n  b: 2\n");
	begin(&w, CONFIG);
	add(&w, "json", "{\"a\":1}");
	load(&w, "");
	ledger_override(w.ledger, "b", "2", LEDGER_FOREVER, "", "");
	assert_gives(&w, "{\n  \"a\": 1,\n  \"b\": 2\n}\n");
	begin(&w, CONFIG);
	add(&w, "yaml", DOCUMENT);
	load(&w, "");
	ledger_override(w.ledger, "none", "null", LEDGER_FOREVER, "", ""); /* changes nothing */
	assert_gives(&w, "a: 1\nm:\n  b: x y\n");
}

static void text__of_several_layers__is_yaml_unless_said_otherwise(void **state)
{
	struct work w;

	(void)state;
	begin(&w, TWO);
	add(&w, "json", "{\"a\": 1}");
	add(&w, "json", "{\"b\": 2}");
	load(&w, "");
	assert_gives(&w, "a: 1\nb: 2\n");
	begin(&w, TWO);
	add(&w, "yaml", "a: 1   # alone\n");
	add(&w, "yaml", NULL);
	load(&w, "");
	assert_gives(&w, "a: 1\n");
	begin(&w, TWO "    format: json\n");
	add(&w, "yaml", "a: 1\n");
	add(&w, "yaml", "a: null\n");
	load(&w, "");
	assert_gives(&w, "{}\n");
}

#define SET                                                                                        \
	"servers: {main: {urls: [http://x]}}\n"                                                    \
	"configs:\n  web:\n    dir: /run/web\n    snapshot: false\n    from:\n"                    \
	"      - {server: main, path: /a, as: a.yaml}\n"                                           \
	"      - {server: main, path: /b, as: b.bin, optional: true}\n"                            \
	"      - {server: main, path: /c, as: c.bin, optional: true}\n"

static void text__of_a_set__is_none(void **state)
{
	struct work w;

	(void)state;
	begin(&w, SET);
	add(&w, "yaml", "a: 1\n");
	add(&w, "bytes", "b");
	add(&w, "bytes", NULL);
	load(&w, "");
	assert_int_equal(outputs(&w, false), 0);
	assert_false(w.candidate->has_text);
	end(&w);
}

static void text__that_a_program_made__counts_only_while_that_is_the_format(void **state)
{
	struct work w;

	(void)state;
	begin(&w, CONFIG "    format: {run: [/bin/false]}\n");
	add(&w, "yaml", "a: 1\n");
	load(&w, "[a]\n1\n");
	assert_gives(&w, "[a]\n1\n"); /* no program runs for it */
	begin(&w, CONFIG "    format: {run: [/bin/false]}\n");
	add(&w, "yaml", "a: 1\n");
	load(&w, "");
	assert_int_equal(outputs(&w, false), 0);
	assert_false(w.candidate->has_text);
	end(&w);
	begin(&w, CONFIG "    format: json\n");
	add(&w, "yaml", "a: 1\n");
	load(&w, "[a]\n1\n");
	assert_gives(&w, "{\n  \"a\": 1\n}\n");
	begin(&w, CONFIG);
	add(&w, "yaml", "a: 1  # x\n");
	load(&w, "[a]\n1\n");
	assert_gives(&w, "a: 1  # x\n");
	begin(&w, CONFIG "    type: bytes\n");
	add(&w, "bytes", "a: 1  # x\n");
	load(&w, "[a]\n1\n");
	assert_gives(&w, "a: 1  # x\n");
}

static void text__that_the_format_cannot_hold__is_refused_with_a_sentence(void **state)
{
	static const struct {
		const char *format, *text, *sentence;
	} table[] = {
		{"json", "a: {b: [1, .inf], c: 1}\n",
			"cannot be written as json: 'b' holds no finite number"},
		{"env", "a: \"two\\nlines\"\n", "'a' has a line break in it"},
		{"env", "a.b: 1\na_b: 2\n", "give the same name A_B"},
	};
	char settings[1024];
	struct work w;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		snprintf(settings, sizeof(settings), CONFIG "    format: %s\n", table[i].format);
		begin(&w, settings);
		add(&w, "yaml", table[i].text);
		load(&w, "");
		assert_int_equal(outputs(&w, false), -EINVAL);
		if (!strstr(w.why, table[i].sentence))
			fail_msg("%s", w.why);
		end(&w);
	}
}

/* A document may become so many bytes in another form, and no more. */
static void text__of_more_than_may_be_made__is_refused(void **state)
{
	static const char *const formats[] = {"json", "yaml", "env", "properties"};
	char settings[1024];
	struct work w;

	(void)state;
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		for (int less = 0; less < 2; less++) {
			snprintf(settings, sizeof(settings), CONFIG "    format: %s\n", formats[i]);
			begin(&w, settings);
			add(&w, "yaml", DOCUMENT);
			load(&w, "");
			assert_int_equal(outputs(&w, false), 0);
			w.settings->configs[0]->max_made =
				candidate_text(w.candidate)->len - (size_t)less;
			candidate_drop_outputs(w.candidate);
			assert_int_equal(outputs(&w, false), less ? -EMSGSIZE : 0);
			end(&w);
		}
}

/* ---- the snapshot ---- */

static void outputs__with_a_snapshot__has_the_values_of_the_whole(void **state)
{
	struct pullet_value value;
	struct snapshot snapshot;
	struct work w;

	(void)state;
	begin(&w, TWO);
	add(&w, "yaml", "a: 1\nm: {b: x}\n");
	add(&w, "yaml", "m: {b: z}\n");
	load(&w, "");
	ledger_override(w.ledger, "c", "true", LEDGER_FOREVER, "", "");
	assert_int_equal(outputs(&w, true), 0);
	assert_int_equal(snapshot_open(w.candidate->image, w.candidate->image_len, &snapshot), 0);
	assert_string_equal(snapshot_version(&snapshot), "v1");
	assert_int_equal(snapshot_get(&snapshot, "m.b", 3, &value), 0);
	assert_string_equal(value.text, "z");
	assert_int_equal(snapshot_get(&snapshot, "c", 1, &value), 0);
	assert_true(value.type == PULLET_BOOL && value.boolean);
	assert_text(&w, "a: 1\nm:\n  b: z\nc: true\n");
	end(&w);
	begin(&w, TWO);
	add(&w, "yaml", "a: 1\n");
	add(&w, "yaml", NULL);
	load(&w, "");
	assert_int_equal(outputs(&w, false), 0); /* none was asked for */
	assert_null(w.candidate->image);
	end(&w);
	begin(&w, CONFIG "    type: bytes\n");
	add(&w, "bytes", "x");
	load(&w, "");
	assert_int_equal(outputs(&w, true), 0); /* it has no values */
	assert_null(w.candidate->image);
	end(&w);
}

/* ---- what changed ---- */

static void compare__names_each_key_once(void **state)
{
	static const struct {
		const char *before, *after, *keys;
	} table[] = {
		{"a: 1\nb: 2\n", "b: 2\na: 1\n", ""},
		{"a: 1\nb: 2\n", "a: 1\nb: 3\n", "b "},
		{"a: 1\n", "a: 1\nm: {x: 1, y.z: 2}\n", "m.x m.y\\.z "},
		{"a: 1\nm: {x: 1}\n", "a: 1\n", "m.x "},
		{"l: [1, 2]\n", "l: [1, 3, 4]\n", "l.1 l.2 "},
		{"a: []\n", "a: {}\n", "a "},
		{"a: []\nb: 1\n", "a: {c: 1}\nb: 2\n", "a a.c b "},
		{"a: [x]\n", "a: {'0': x}\n", "a.0 "}, /* one path of two kinds */
		{"a: 1\n", "{}", "a "},
		{"{}", "{}", ""},
	};
	struct document *before;
	struct document_error e;
	struct buffer keys;
	struct work w;

	(void)state;
	buffer_init(&keys, 4096);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		begin(&w, CONFIG);
		add(&w, "yaml", table[i].after);
		load(&w, "");
		assert_int_equal(outputs(&w, false), 0);
		assert_int_equal(document_parse(DOCUMENT_YAML, table[i].before,
					 strlen(table[i].before), 0, &before, &e),
			0);
		assert_int_equal(candidate_compare(w.candidate, document_root(before)), 0);
		document_free(before); /* the names are its own */
		assert_false(w.candidate->all_changed);
		buffer_clear(&keys);
		buffer_append(&keys, "", 0);
		for (size_t k = 0; k < w.candidate->key_count; k++)
			buffer_printf(&keys, "%s ", w.candidate->keys[k]);
		assert_string_equal(keys.data ? keys.data : "", table[i].keys);
		assert_null(w.candidate->keys[w.candidate->key_count]);
		end(&w);
	}
	buffer_fini(&keys);
}

static void compare__with_nothing_or_of_bytes__takes_all_for_changed(void **state)
{
	struct document_error e;
	struct document *before;
	struct work w;

	(void)state;
	begin(&w, CONFIG);
	add(&w, "yaml", "a: 1\n");
	load(&w, "");
	assert_int_equal(outputs(&w, false), 0);
	assert_int_equal(candidate_compare(w.candidate, NULL), 0);
	assert_true(w.candidate->all_changed);
	assert_null(w.candidate->keys);
	end(&w);
	begin(&w, CONFIG "    type: bytes\n");
	add(&w, "bytes", "a: 1\n");
	load(&w, "");
	assert_int_equal(outputs(&w, false), 0);
	assert_int_equal(document_parse(DOCUMENT_YAML, "a: 1\n", 5, 0, &before, &e), 0);
	assert_int_equal(candidate_compare(w.candidate, document_root(before)), 0);
	assert_true(w.candidate->all_changed);
	document_free(before);
	end(&w);
}

static void begin_set(struct work *w, const char *b, const char *c, bool signatures)
{
	begin(w, SET);
	add(w, "yaml", "a: 1\n");
	if (signatures)
		add(w, "minisig", "of a");
	add(w, "bytes", b);
	if (signatures)
		add(w, "minisig", "of b");
	add(w, "bytes", c);
	if (signatures)
		add(w, "minisig", NULL);
	load(w, "");
	assert_int_equal(outputs(w, false), 0);
}

static void compare_files__names_the_files_that_are_not_the_same(void **state)
{
	static const struct {
		const char *before[2], *after[2], *keys;
	} table[] = {
		{{"b", "c"}, {"b", "c"}, ""},
		{{"b", "c"}, {"B", "c"}, "b.bin "},
		{{"b", "c"}, {"bb", "c"}, "b.bin "},
		{{"bc", ""}, {"b", "c"}, "b.bin c.bin "},
		{{"b", NULL}, {"b", ""}, "c.bin "},
		{{"b", ""}, {"b", NULL}, "c.bin "},
		{{NULL, NULL}, {NULL, NULL}, ""},
	};
	char keys[64];

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct work before, w;
		struct settings_config *c;

		/* signatures are no files */
		begin_set(&before, table[i].before[0], table[i].before[1], i % 2);
		begin_set(&w, table[i].after[0], table[i].after[1], true);
		c = w.settings->configs[0];
		assert_int_equal(candidate_compare_files(w.candidate, before.candidate, c), 0);
		assert_false(w.candidate->all_changed);
		keys[0] = '\0';
		for (size_t k = 0; k < w.candidate->key_count; k++)
			snprintf(keys + strlen(keys), sizeof(keys) - strlen(keys), "%s ",
				w.candidate->keys[k]);
		assert_string_equal(keys, table[i].keys);
		assert_null(w.candidate->keys[w.candidate->key_count]);
		end(&w);
		end(&before);
	}
}

static void compare_files__with_nothing__takes_all_for_changed(void **state)
{
	struct work w;

	(void)state;
	begin_set(&w, "b", "c", false);
	assert_int_equal(candidate_compare_files(w.candidate, NULL, w.settings->configs[0]), 0);
	assert_true(w.candidate->all_changed);
	assert_null(w.candidate->keys);
	end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(load__of_a_version__finds_the_bytes_of_each_part),
		cmocka_unit_test(load__of_one_that_is_not_there__says_which),
		cmocka_unit_test(copy__has_bytes_of_its_own),
		cmocka_unit_test(product__behind_the_parts__is_put_there_once),
		cmocka_unit_test(compose__of_other_layers_than_are_configured__is_refused),
		cmocka_unit_test(text__per_format__is_written_anew_unless_verbatim),
		cmocka_unit_test(text__verbatim__is_without_the_signature),
		cmocka_unit_test(text__of_bytes__is_what_was_pulled),
		cmocka_unit_test(text__verbatim_with_an_override__is_written_anew_in_its_kind),
		cmocka_unit_test(text__of_several_layers__is_yaml_unless_said_otherwise),
		cmocka_unit_test(text__of_a_set__is_none),
		cmocka_unit_test(text__that_a_program_made__counts_only_while_that_is_the_format),
		cmocka_unit_test(text__that_the_format_cannot_hold__is_refused_with_a_sentence),
		cmocka_unit_test(text__of_more_than_may_be_made__is_refused),
		cmocka_unit_test(outputs__with_a_snapshot__has_the_values_of_the_whole),
		cmocka_unit_test(compare__names_each_key_once),
		cmocka_unit_test(compare__with_nothing_or_of_bytes__takes_all_for_changed),
		cmocka_unit_test(compare_files__names_the_files_that_are_not_the_same),
		cmocka_unit_test(compare_files__with_nothing__takes_all_for_changed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

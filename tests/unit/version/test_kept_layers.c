/*
 * Trees of layers, found by all that they were made of and by nothing else; on a shelf with an end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "version/kept_layers.h"
#include "settings/settings.h"
#include "tests/unit/fixture/model_random.h"

static struct document *parse(enum document_type type, const char *text)
{
	struct document_error e;
	struct document *d = NULL;

	assert_int_equal(document_parse(type, text, strlen(text), 0, &d, &e), 0);
	return d;
}

static struct document *find(const struct kept_layers *k, enum document_type type, const char *text)
{
	struct document *d = kept_layers_find(k, type, text, strlen(text));

	document_free(d); /* whose owner is the shelf */
	return d;
}

/* Keeps these texts, NULL-ended, each parsed unless it is kept. */
static void keep(struct kept_layers *k, enum document_type type, const char *const *texts)
{
	struct kept_layer layers[SETTINGS_MAX_LAYERS] = {{0}};
	size_t n = 0;

	for (; texts[n]; n++) {
		size_t len = strlen(texts[n]);
		struct document *d = kept_layers_find(k, type, texts[n], len);

		layers[n] = (struct kept_layer){type, texts[n], len, d ? d : parse(type, texts[n])};
	}
	kept_layers_replace(k, layers, n);
	for (size_t i = 0; i < n; i++)
		document_free(layers[i].document);
}

static void find__of_another_byte_length_or_type__is_nothing(void **state)
{
	struct kept_shelf shelf = {0};
	struct kept_layers *k = kept_layers_new(&shelf);

	(void)state;
	keep(k, DOCUMENT_YAML, (const char *const[]){"{\"a\": 1}", "b: 2", NULL});
	assert_non_null(find(k, DOCUMENT_YAML, "{\"a\": 1}"));
	assert_non_null(find(k, DOCUMENT_YAML, "b: 2"));
	assert_null(find(k, DOCUMENT_JSON, "{\"a\": 1}"));
	assert_null(find(k, DOCUMENT_YAML, "b: 3"));
	assert_null(find(k, DOCUMENT_YAML, "c: 2"));
	assert_null(find(k, DOCUMENT_YAML, "b: 2\n"));
	assert_null(find(k, DOCUMENT_YAML, "b: "));
	kept_layers_free(k);
	assert_int_equal(shelf.bytes, 0);
}

static void replace__keeps_what_is_there_again_and_drops_the_rest(void **state)
{
	struct kept_shelf shelf = {0};
	struct kept_layers *k = kept_layers_new(&shelf);
	const struct document *a, *c;

	(void)state;
	keep(k, DOCUMENT_YAML, (const char *const[]){"a: 1", "b: 1", "c: 1", NULL});
	a = find(k, DOCUMENT_YAML, "a: 1");
	c = find(k, DOCUMENT_YAML, "c: 1");
	keep(k, DOCUMENT_YAML, (const char *const[]){"c: 1", "b: 2", "a: 1", "c: 1", NULL});
	assert_ptr_equal(find(k, DOCUMENT_YAML, "a: 1"), a);
	assert_ptr_equal(find(k, DOCUMENT_YAML, "c: 1"), c);
	assert_non_null(find(k, DOCUMENT_YAML, "b: 2"));
	assert_null(find(k, DOCUMENT_YAML, "b: 1"));
	keep(k, DOCUMENT_YAML, (const char *const[]){NULL});
	assert_null(find(k, DOCUMENT_YAML, "a: 1"));
	kept_layers_free(k);
}

static void find__after_the_owner_is_gone__is_a_share_that_lives(void **state)
{
	struct kept_shelf shelf = {0};
	struct kept_layers *k = kept_layers_new(&shelf);
	struct document *d;

	(void)state;
	keep(k, DOCUMENT_YAML, (const char *const[]){"a: 1", NULL});
	d = kept_layers_find(k, DOCUMENT_YAML, "a: 1", 4);
	kept_layers_free(k);
	assert_string_equal(node_text(document_root(d), "a", "?"), "?");
	assert_int_equal(node_integer(document_root(d), "a", 0), 1);
	document_free(d);
}

/* ---- the shelf ---- */

static char large[3u << 20];

/* A layer that fills, with its tree, more than a third of the shelf. */
static struct kept_layers *keep_large(struct kept_shelf *shelf, char of)
{
	struct kept_layers *k = kept_layers_new(shelf);

	memset(large, 'x', sizeof(large) - 1);
	memcpy(large, "v: ", 3);
	large[3] = of;
	keep(k, DOCUMENT_YAML, (const char *const[]){large, NULL});
	return k;
}

static bool has_large(const struct kept_layers *k, char of)
{
	large[3] = of;
	return find(k, DOCUMENT_YAML, large) != NULL;
}

static void shelf__that_is_full__drops_what_was_used_longest_ago(void **state)
{
	struct kept_shelf shelf = {0};
	struct kept_layers *a = keep_large(&shelf, 'a'), *b = keep_large(&shelf, 'b'),
			   *c = keep_large(&shelf, 'c');

	(void)state;
	kept_layers_return(a);
	kept_layers_return(b);
	assert_true(has_large(a, 'a') && has_large(b, 'b'));
	kept_layers_lend(a); /* used again */
	kept_layers_return(a);
	kept_layers_return(c);
	assert_true(has_large(a, 'a') && has_large(c, 'c'));
	assert_false(has_large(b, 'b'));
	assert_true(shelf.bytes <= KEPT_LAYERS_MAX_BYTES);
	kept_layers_free(b);
	kept_layers_free(a);
	kept_layers_free(c);
	assert_int_equal(shelf.bytes, 0);
}

static void shelf__drops_nothing_that_is_lent(void **state)
{
	struct kept_shelf shelf = {0};
	struct kept_layers *a = keep_large(&shelf, 'a'), *b = keep_large(&shelf, 'b'),
			   *c = keep_large(&shelf, 'c');

	(void)state;
	kept_layers_return(a);
	kept_layers_return(b);
	kept_layers_lend(a);
	kept_layers_lend(b);
	kept_layers_return(c); /* no room beside them */
	assert_true(has_large(a, 'a') && has_large(b, 'b'));
	assert_false(has_large(c, 'c'));
	assert_true(shelf.bytes <= KEPT_LAYERS_MAX_BYTES);
	kept_layers_free(a);
	kept_layers_free(b);
	kept_layers_free(kept_layers_new(&shelf)); /* which is lent, too */
	assert_ptr_equal(shelf.first, c);
	assert_ptr_equal(shelf.last, c);
	kept_layers_free(c);
	assert_int_equal(shelf.bytes, 0);
}

static void keep_random(struct kept_layers *k)
{
	char texts[3][16];

	for (size_t i = 0; i < 3; i++)
		snprintf(texts[i], sizeof(texts[i]), "k: %u", (unsigned)(random_bits() % 4));
	keep(k, DOCUMENT_YAML, (const char *const[]){texts[0], texts[1], texts[2], NULL});
	for (size_t i = 0; i < 3; i++)
		assert_non_null(find(k, DOCUMENT_YAML, texts[i]));
}

static void shelf__after_any_calls__is_empty_when_all_are_gone(void **state)
{
	enum { CONFIGS = 5 };
	struct kept_shelf shelf = {0};
	struct kept_layers *configs[CONFIGS] = {NULL};
	bool lent[CONFIGS];

	(void)state;
	model_random_start();
	for (unsigned i = 0; i < 2000; i++) {
		size_t at = random_bits() % CONFIGS;

		if (configs[at] && random_bits() % 10 == 0) {
			kept_layers_free(configs[at]);
			configs[at] = NULL;
		} else if (!configs[at]) {
			configs[at] = kept_layers_new(&shelf);
			lent[at] = true;
		} else if (lent[at]) {
			keep_random(configs[at]);
			kept_layers_return(configs[at]);
			lent[at] = false;
		} else {
			kept_layers_lend(configs[at]);
			lent[at] = true;
		}
	}
	for (size_t at = 0; at < CONFIGS; at++)
		kept_layers_free(configs[at]);
	assert_int_equal(shelf.bytes, 0);
	assert_null(shelf.first);
	assert_null(shelf.last);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(find__of_another_byte_length_or_type__is_nothing),
		cmocka_unit_test(replace__keeps_what_is_there_again_and_drops_the_rest),
		cmocka_unit_test(find__after_the_owner_is_gone__is_a_share_that_lives),
		cmocka_unit_test(shelf__that_is_full__drops_what_was_used_longest_ago),
		cmocka_unit_test(shelf__drops_nothing_that_is_lent),
		cmocka_unit_test(shelf__after_any_calls__is_empty_when_all_are_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

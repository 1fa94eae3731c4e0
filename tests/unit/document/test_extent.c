/* What a document would become, counted beforehand, is what it becomes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "document/extent.h"
#include "document/flatten.h"
#include "publish/image.h"

#define PLENTY (64u << 20)

static struct document *parse(const char *text)
{
	struct document_error e;
	struct document *d = NULL;

	if (document_parse(DOCUMENT_YAML, text, strlen(text), 0, &d, &e))
		fail_msg("%u:%u: %s", e.line, e.column, e.message);
	return d;
}

/* Keys of `width` bytes, one in the other; in the last one so many values. */
static struct document *nested(unsigned depth, unsigned width, unsigned values)
{
	struct buffer text;
	struct document *d;
	char *key = malloc(width + 1);

	assert_non_null(key);
	buffer_init(&text, PLENTY);
	for (unsigned i = 0; i < depth; i++) {
		memset(key, 'a' + (int)(i % 26), width);
		key[width] = '\0';
		buffer_printf(&text, "%*s? %s\n%*s:\n", (int)i, "", key, (int)i, "");
	}
	for (unsigned i = 0; i < values; i++)
		buffer_printf(&text, "%*sv%u: %u\n", (int)depth, "", i, i);
	assert_int_equal(text.error, 0);
	d = parse(text.data);
	buffer_fini(&text);
	free(key);
	return d;
}

static size_t count_below(const struct node *parent)
{
	size_t count = 0;

	for (const struct node *n = parent->type < NODE_LIST ? NULL : parent->first; n; n = n->next)
		count += 1 + count_below(n);
	return count;
}

static void image_bytes__are_those_of_the_image(void **state)
{
	static const char *const texts[] = {
		"a: 1\n",
		"a: {}\nb: []\nc: ''\nd: ~\n",
		"a.b: {'c\\d': [1, 2.5, true, null, text]}\n'': {'': x}\n",
		"l: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, {a: 10}, [11, [12]]]\n",
		"\"\\u00e9\": \"\\u00e9\\n\"\nlong: "
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct document *d = parse(texts[i]);
		char why[FILE_WHY] = "";
		struct extent e;
		void *data;
		size_t len;

		extent_measure(document_root(d), &e);
		assert_int_equal(
			image_build(document_root(d), 1, "", e.image_bytes, &data, &len, why), 0);
		assert_int_equal(len, e.image_bytes);
		assert_int_equal(e.values, count_below(document_root(d)));
		free(data);
		assert_int_equal(
			image_build(document_root(d), 1, "", e.image_bytes - 1, &data, &len, why),
			-EMSGSIZE);
		document_free(d);
	}
}

static void image__of_long_keys_above_many_values__is_refused_unbuilt(void **state)
{
	struct document *d = nested(60, 60000, 200);
	char why[FILE_WHY] = "";
	void *data;
	size_t len;

	(void)state;
	assert_int_equal(
		image_build(document_root(d), 1, "", 32u << 20, &data, &len, why), -EMSGSIZE);
	assert_non_null(strstr(why, "its snapshot would take 8"));
	assert_non_null(strstr(why, "33554432 are allowed (4 times max_size of the server): "));
	document_free(d);
}

static void env__of_long_keys_above_many_values__is_refused_unwritten(void **state)
{
	struct document *d = nested(60, 60000, 200);
	char why[FILE_WHY] = "";
	struct buffer out;

	(void)state;
	buffer_init(&out, 32u << 20);
	assert_int_equal(flatten_write(document_root(d), FLATTEN_ENV, &out, why), -EMSGSIZE);
	assert_non_null(strstr(why, "its keys, each with its whole path, would take 7"));
	assert_null(out.data);
	document_free(d);
}

static void check__of_what_is_allowed__says_nothing(void **state)
{
	char why[FILE_WHY] = "";

	(void)state;
	assert_int_equal(extent_check("it", 10, 10, why), 0);
	assert_string_equal(why, "");
	assert_int_equal(extent_check("it", 11, 10, why), -EMSGSIZE);
	assert_memory_equal(why, "it would take 11 bytes, and 10 are", 34);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(image_bytes__are_those_of_the_image),
		cmocka_unit_test(image__of_long_keys_above_many_values__is_refused_unbuilt),
		cmocka_unit_test(env__of_long_keys_above_many_values__is_refused_unwritten),
		cmocka_unit_test(check__of_what_is_allowed__says_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

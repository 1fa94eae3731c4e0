/*
 * Documents while memory runs out at each allocation of reading, writing, merging, comparing and
 * flattening them: that is said, no good document is called a bad one, and nothing is made of a
 * part. What is masked stays so.
 */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "document/diff.h"
#include "document/flatten.h"
#include "document/key_path.h"
#include "document/merge.h"
#include "document/scrub.h"
#include "document/unflatten.h"
#include "tests/unit/fixture/fault_memory.h"

#define MOST 5000

/* Reads the text as a document and writes it in both forms; 0 or the first error. */
static int read_and_write(enum document_type type, const char *text)
{
	struct document_error e;
	struct document *d = NULL;
	struct buffer out;
	int r = document_parse(type, text, strlen(text), 0, &d, &e);

	buffer_init(&out, 1u << 20);
	if (r == 0)
		r = document_write(document_root(d), DOCUMENT_JSON, &out);
	if (r == 0)
		r = document_write(document_root(d), DOCUMENT_YAML, &out);
	buffer_fini(&out);
	document_free(d);
	return r;
}

static void fail_each(enum document_type type, const char *text)
{
	for (int round = 0; round < 2; round++) {
		for (unsigned n = 1;; n++) {
			long live = fault_memory.live;
			bool hit;
			int r;

			fault_memory.seen = 0;
			fault_memory.for_ever = round;
			fault_memory.nth = n;
			r = read_and_write(type, text);
			fault_memory.nth = 0;
			hit = fault_memory.seen >= n;
			assert_true(r == 0 || r == -ENOMEM);
			assert_int_equal(fault_memory.live, live);
			assert_int_equal(read_and_write(type, text), 0);
			if (!hit)
				break;
			assert_in_range(n, 1, MOST);
		}
	}
}

/* {"k1": "v", ...}, whose tree takes several blocks of memory. */
static const char *many_members(unsigned count)
{
	static char text[64 << 10];
	int len = snprintf(text, sizeof(text), "{");

	for (unsigned i = 0; i < count; i++)
		len += snprintf(text + len, sizeof(text) - (size_t)len, "%s\"k%u\": \"v\"",
			i ? ", " : "", i);
	snprintf(text + len, sizeof(text) - (size_t)len, "}");
	return text;
}

static void json__of_many_values__is_read_with_few_allocations(void **state)
{
	const char *text = many_members(2000);
	struct document_error e;
	struct document *d;

	(void)state;
	fault_memory.seen = 0;
	fault_memory.for_ever = false;
	fault_memory.nth = UINT_MAX; /* they are only counted */
	assert_int_equal(document_parse(DOCUMENT_JSON, text, strlen(text), 0, &d, &e), 0);
	fault_memory.nth = 0;
	document_free(d);
	assert_true(fault_memory.seen > 0 && fault_memory.seen < 200);
}

/* Told of a failure. */
static bool parse_many(void)
{
	const char *text = many_members(300);
	struct document_error e;
	struct document *d = NULL;
	int r = document_parse(DOCUMENT_JSON, text, strlen(text), 0, &d, &e);

	assert_true(r == 0 || r == -ENOMEM);
	document_free(d);
	return r != 0;
}

static void json__of_many_values_without_memory__is_not_invalid(void **state)
{
	(void)state;
	assert_true(fault_memory_each(parse_many, false) > 5);
	assert_true(fault_memory_each(parse_many, true) > 5);
}

static void json__without_memory__is_not_invalid(void **state)
{
	(void)state;
	fail_each(DOCUMENT_JSON, "{\"text\": \"a \\u00e9 b\", \"list\": [1, 2.5, true, null], "
				 "\"map\": {\"long\": \"012345678901234567890123456789\", "
				 "\"e\": {}}}\n");
}

static void yaml__without_memory__is_not_invalid(void **state)
{
	(void)state;
	fail_each(DOCUMENT_YAML, "text: \"a \\u00e9 b\"\nlist: [1, 2.5, true, null]\nmap: &a\n"
				 "  long: '012345678901234567890123456789'\n  e: {}\nmore: *a\n");
}

/* ---- what is made of two documents ---- */

#define BEFORE "a: {b: 1, c.d: [1, 2, 3]}\nsecret: 'hunter2 \"x\"'\nn: null\nx: {y: {z: w}}\n"
#define AFTER                                                                                      \
	"a: {b: 2, e: 'a text of more than a few bytes, so that a buffer grows'}\nx: {y: {}}\n"    \
	"k0: 0\nk1: 1\nk2: 2\nk3: 3\nk4: 4\nk5: 5\nk6: 6\nk7: 7\nk8: 8\nk9: 9\n"

static struct document *before, *after;

/* Appends what it makes to out. 0 or an error. */
typedef int make_text(struct buffer *out);

static int merge(struct buffer *out)
{
	const struct merge_layer layers[] = {
		{document_root(before), "one"}, {document_root(after), "two"}};
	struct document_error e;
	struct document *d = NULL;
	int r = merge_layers(layers, 2, &d, &e);

	assert_string_equal(e.message, "");
	if (r)
		return r;
	r = document_write(document_root(d), DOCUMENT_JSON, out);
	document_free(d);
	return r;
}

static int compare(struct buffer *out)
{
	struct diff *d = NULL;
	int r = diff_new(document_root(before), document_root(after), &d);

	for (size_t i = 0; r == 0 && i < diff_count(d); i++) {
		r = diff_write_text(diff_at(d, i), NULL, out);
		if (r == 0)
			r = diff_write_json(diff_at(d, i), NULL, out);
	}
	diff_free(d);
	return r;
}

static int measure(struct buffer *out)
{
	size_t count = 77;
	int r = diff_measure(document_root(before), document_root(after), &count);

	assert_true(r == 0 || count == 77);
	return r ? r : buffer_printf(out, "%zu", count);
}

static int flatten(struct buffer *out, enum flatten_kind kind)
{
	char why[FILE_WHY] = "";
	int r = flatten_write(document_root(before), kind, out, why);

	assert_string_equal(why, r ? "cannot write the values: out of memory" : "");
	return r;
}

static int flatten_to_shell(struct buffer *out)
{
	return flatten(out, FLATTEN_SH);
}

static int flatten_to_properties(struct buffer *out)
{
	return flatten(out, FLATTEN_PROPERTIES);
}

static int unflatten(struct buffer *out)
{
	static const char *const names[] = {
		"a.b", "a.c[0].d", "a.c[1]", "e", "e.f", "g[1]", "h.i.j", "h.i.k", "l", "m", "n"};
	struct unflatten *n = unflatten_new(UNFLATTEN_PROPERTIES, 10000);
	int r = n ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < sizeof(names) / sizeof(names[0]); i++)
		r = unflatten_add_text(n, names[i], strlen(names[i]), "a text", 6);
	if (n && r) { /* it stays so, with memory too */
		assert_int_equal(unflatten_add(n, "z", 1, "1", 1), -ENOMEM);
		assert_int_equal(unflatten_write(n, out), -ENOMEM);
		assert_int_equal(out->len, 0);
	}
	if (r == 0)
		r = unflatten_write(n, out);
	unflatten_free(n);
	return r;
}

/* The same text each time or -ENOMEM, whichever allocation fails, alone or with all behind it. */
static void fail_each_making(make_text *make)
{
	struct buffer whole, out;

	buffer_init(&whole, 1u << 20);
	assert_int_equal(make(&whole), 0);
	assert_true(whole.len > 0);
	for (int round = 0; round < 2; round++) {
		unsigned failures = 0;

		for (unsigned n = 1; n == 1 || fault_memory.seen >= n - 1; n++) {
			long live = fault_memory.live;
			int r;

			buffer_init(&out, 1u << 20);
			fault_memory.seen = 0;
			fault_memory.for_ever = round;
			fault_memory.nth = n;
			r = make(&out);
			fault_memory.nth = 0;
			if (r == 0)
				assert_string_equal(out.data, whole.data);
			else
				assert_int_equal(r, -ENOMEM);
			failures += r != 0;
			buffer_fini(&out);
			assert_int_equal(fault_memory.live, live);
			assert_in_range(n, 1, MOST);
		}
		assert_true(failures > 1);
	}
	buffer_fini(&whole);
}

static void two_documents__without_memory__give_all_or_nothing(void **state)
{
	static make_text *const makes[] = {
		merge, compare, measure, flatten_to_shell, flatten_to_properties, unflatten};

	(void)state;
	for (size_t i = 0; i < sizeof(makes) / sizeof(makes[0]); i++)
		fail_each_making(makes[i]);
}

/* ---- what is masked ---- */

static void masked__values_without_memory__are_not_shown(void **state)
{
	char *const mask[] = {(char[]){"secret"}, (char[]){"*.z"}, NULL};
	static const char text[] = "hunter2 \"x\" and hunter2 \\\"x\\\"";
	bool hidden_all = false;

	(void)state;
	for (unsigned n = 1; n == 1 || fault_memory.seen >= n - 1; n++) {
		long live = fault_memory.live;
		struct scrub *s = scrub_new();
		struct buffer out;

		assert_non_null(s);
		fault_memory.seen = 0;
		fault_memory.for_ever = false;
		fault_memory.nth = n;
		scrub_add(s, document_root(before), mask);
		fault_memory.nth = 0;
		buffer_init(&out, 1000);
		assert_int_equal(scrub_append(s, &out, text, strlen(text)), 0);
		if (strcmp(out.data, "*** and ***") != 0)
			assert_string_equal(out.data, "***");
		hidden_all |= strcmp(out.data, "***") == 0;
		buffer_fini(&out);
		scrub_free(s);
		assert_int_equal(fault_memory.live, live);
		assert_in_range(n, 1, MOST);
	}
	assert_true(hidden_all);
	fault_memory.seen = 0;
	fault_memory.nth = 1;
	fault_memory.for_ever = true;
	assert_null(scrub_new());
	assert_true(key_path_matches(mask, "public"));
	fault_memory.nth = 0;
	assert_false(key_path_matches(mask, "public"));
}

static int read_both(void **state)
{
	struct document_error e;

	(void)state;
	return document_parse(DOCUMENT_YAML, BEFORE, strlen(BEFORE), 0, &before, &e) ||
	       document_parse(DOCUMENT_YAML, AFTER, strlen(AFTER), 0, &after, &e);
}

static int free_both(void **state)
{
	(void)state;
	document_free(before);
	document_free(after);
	return 0;
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, read_both, free_both)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(json__without_memory__is_not_invalid),
		CASE(json__of_many_values__is_read_with_few_allocations),
		CASE(json__of_many_values_without_memory__is_not_invalid),
		CASE(yaml__without_memory__is_not_invalid),
		CASE(two_documents__without_memory__give_all_or_nothing),
		CASE(masked__values_without_memory__are_not_shown),
	};

	return fault_memory_run(tests, 4);
}

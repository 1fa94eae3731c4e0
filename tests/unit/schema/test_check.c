/*
 * Checks of values with many children: which of them are evaluated, whatever keyword did it; and
 * lists of what is allowed that are longer than a sentence.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "schema/schema.h"
#include "text/sentence.h"
#include "tests/unit/fixture/fault_memory.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define MANY 200 /* children: some words of bits */

/* What the schema says of the value, line by line, without the places; "" = it fits. */
static const char *checked(const char *schema, const char *value)
{
	static char shown[1u << 16];
	struct document_error e;
	struct document *d;
	struct schema *s;
	struct buffer text, out;
	char why[FILE_WHY];
	int r;

	buffer_init(&text, 1u << 20);
	buffer_init(&out, SCHEMA_MAX_REPORT);
	buffer_printf(&text, "{s: %s, v: %s}", schema, value);
	if (document_parse(DOCUMENT_YAML, text.data, text.len, 0, &d, &e))
		fail_msg("%s: %s", text.data, e.message);
	if (schema_new(node_find(document_root(d), "s"), NULL, 0, &s, why))
		fail_msg("%s: %s", schema, why);
	r = schema_check(s, node_find(document_root(d), "v"), NULL, &out);
	assert_int_equal(r, out.len ? -EINVAL : 0);
	sentence_show(shown, sizeof(shown), out.len ? out.data : "", AUDIENCE_OPERATOR);
	schema_free(s);
	document_free(d);
	buffer_fini(&out);
	buffer_fini(&text);
	return shown;
}

/* The report with each "line 1, column 2: " taken out. */
static void without_places(const char *report, char ret[4096])
{
	size_t len = 0;

	while (*report) {
		size_t line;
		int place = 0;

		sscanf(report, "line %*u, column %*u: %n", &place);
		report += place;
		line = strcspn(report, "\n") + 1;
		assert_true(len + line < 4096);
		memcpy(ret + len, report, line);
		report += line;
		len += line;
	}
	ret[len] = '\0';
}

/* A line of the report stays one, and a path says which key it is, as in a JSON pointer. */
static void path__of_an_odd_key__holds_no_control_character(void **state)
{
	char value[64], expected[64], report[4096];

	(void)state;
	for (unsigned c = 1; c < 0x80; c++) {
		if (c >= 0x20 && c < 0x7e && c != '~' && c != '/')
			continue;
		snprintf(value, sizeof(value), "{\"a\\x%02xb\": x}", c);
		without_places(checked("{additionalProperties: {type: integer}}", value), report);
		snprintf(expected, sizeof(expected), "/a%sb: ",
			c == '~'   ? "~0"
			: c == '/' ? "~1"
				   : "?");
		if (strncmp(report, expected, strlen(expected)) != 0)
			fail_msg("%s is not about %s", report, expected);
	}
}

/* The children that are left over, across the words that note the others. */
static const unsigned left[] = {0, 63, 64, 65, 127, 128, MANY - 1};

static bool is_left(unsigned i)
{
	for (size_t k = 0; k < COUNT(left); k++)
		if (left[k] == i)
			return true;
	return false;
}

/* A list of 0 and, where one is left, 1; or a mapping with the keys o and, where one is left, x. */
static const char *many(bool map)
{
	static char text[MANY * 12];
	size_t len = 1;

	text[0] = map ? '{' : '[';
	for (unsigned i = 0; i < MANY; i++)
		len += (size_t)(map ? snprintf(text + len, 12, "%c%u: 0, ", is_left(i) ? 'x' : 'o',
					      i)
				    : snprintf(text + len, 12, "%d, ", is_left(i)));
	snprintf(text + len, 3, "%c", map ? '}' : ']');
	return text;
}

#define SOME "contains: {const: 0}"
#define NAMED "patternProperties: {'^o': true}"

static void unevaluated__of_many_children__are_those_that_no_keyword_evaluated(void **state)
{
	static const struct {
		bool map;
		const char *keywords;
	} table[] = {
		{false, SOME},
		{false, "allOf: [{" SOME "}, true]"},
		{false, "anyOf: [{contains: {const: 7}}, {" SOME "}]"},
		{false, "oneOf: [{contains: {const: 7}}, {" SOME "}]"},
		{false, "if: {" SOME "}, then: true"},
		{false, "if: false, else: {" SOME "}"},
		{false, "$ref: '#/$defs/a', $defs: {a: {" SOME "}}"},
		{false, "allOf: [{" SOME ", allOf: [{" SOME "}]}]"},
		{true, NAMED},
		{true, "allOf: [{" NAMED "}, true]"},
		{true, "anyOf: [{maxProperties: 0}, {" NAMED "}]"},
		{true, "oneOf: [{maxProperties: 0}, {" NAMED "}]"},
		{true, "dependentSchemas: {x0: {" NAMED "}, o0: true}"},
	};
	char expected[4096], schema[512], report[4096];

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		size_t len = 0;

		for (size_t k = 0; k < COUNT(left); k++)
			len += (size_t)snprintf(expected + len, sizeof(expected) - len,
				table[i].map ? "/x%u: this key is not allowed here\n"
					     : "/%u: this item is not allowed here\n",
				left[k]);
		snprintf(schema, sizeof(schema), "{%s, %s: false}", table[i].keywords,
			table[i].map ? "unevaluatedProperties" : "unevaluatedItems");
		without_places(checked(schema, many(table[i].map)), report);
		assert_string_equal(report, expected);
	}
}

/* A list that a sentence has room for, and one with a value more. */
static void enum__that_is_longer_than_a_sentence__is_cut_in_it(void **state)
{
	char schema[2048], report[4096], expected[2048];

	(void)state;
	for (unsigned count = 1; count < 80; count++) {
		size_t len = 0, all = 0;

		for (unsigned i = 0; i < count; i++) {
			len += (size_t)snprintf(schema + len, sizeof(schema) - len, "%s1%05u",
				i ? ", " : "{enum: [", i);
			all += (size_t)snprintf(expected + all, sizeof(expected) - all, "%s1%05u",
				i ? ", " : "0 is none of: ", i);
		}
		snprintf(schema + len, sizeof(schema) - len, "]}");
		without_places(checked(schema, "0"), report);
		if (all < 512 + strlen("0 is none of: ")) {
			snprintf(expected + all, sizeof(expected) - all, "\n");
			assert_string_equal(report, expected);
			continue;
		}
		/* as much as there is room for; the last character may not be whole */
		assert_memory_equal(report, expected, 510 + strlen("0 is none of: "));
		assert_string_equal(report + 510 + strlen("0 is none of: "), "...\n");
	}
}

/* A schema of all that allocates, and a value that does not fit. */
#define SCHEMA                                                                                     \
	"{$id: 'http://h/s', $ref: '#/$defs/x', $defs: {x: {$anchor: x, uniqueItems: true}, "      \
	"y: {$id: y, not: {type: 'null'}}}, properties: {a: {anyOf: [{pattern: '^(a|b)+$'}, "      \
	"{type: [integer, 'null']}]}, b: {$ref: 'y'}}, patternProperties: {'^c': true}, "          \
	"required: [a, z], dependentRequired: {a: [b]}, propertyNames: {maxLength: 1}, "           \
	"enum: [1, {a: 1}], unevaluatedProperties: false, unknown: 1, multipleOf: 0.5, "           \
	"prefixItems: [true], minItems: 1, if: {const: 1}, then: false}"
#define VALUE "{a: xyz, b: 2, cc: 3, d: 4}"

/* The schema, then its report of the value. 0 or the first error. */
static int compile_and_check(const struct node *root, struct buffer *out)
{
	struct schema *s = NULL;
	char why[FILE_WHY] = "";
	int r = schema_new(node_find(root, "s"), NULL, 0, &s, why);

	if (r) {
		assert_string_equal(why, "there is no memory for the schema");
		return r;
	}
	r = schema_check(s, node_find(root, "v"), NULL, out);
	schema_free(s);
	return r;
}

static unsigned count_lines(const char *text)
{
	unsigned n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static void memory__that_runs_out_once__is_said_or_was_not_needed(void **state)
{
	static const char text[] = "{s: " SCHEMA ", v: " VALUE "}";
	struct document_error e;
	unsigned failures = 0, errors;
	struct document *d;
	struct buffer out;

	(void)state;
	if (document_parse(DOCUMENT_YAML, text, strlen(text), 0, &d, &e))
		fail_msg("%u: %s", e.column, e.message);
	buffer_init(&out, SCHEMA_MAX_REPORT);
	assert_int_equal(compile_and_check(document_root(d), &out), -EINVAL);
	errors = count_lines(out.data);
	assert_int_equal(errors, 4);
	buffer_fini(&out);
	for (unsigned n = 1; n == 1 || fault_memory.seen >= n - 1; n++) {
		long live = fault_memory.live;
		int r;

		buffer_init(&out, SCHEMA_MAX_REPORT);
		fault_memory.seen = 0;
		fault_memory.nth = n;
		r = compile_and_check(document_root(d), &out);
		fault_memory.nth = 0;
		if (r == -EINVAL) /* a value may be left out, no error is */
			assert_int_equal(count_lines(out.data), errors);
		else
			assert_int_equal(r, -ENOMEM);
		failures += r == -ENOMEM;
		buffer_fini(&out);
		assert_int_equal(fault_memory.live, live);
		assert_in_range(n, 1, 5000);
	}
	assert_true(failures > 20);
	document_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(path__of_an_odd_key__holds_no_control_character),
		cmocka_unit_test(
			unevaluated__of_many_children__are_those_that_no_keyword_evaluated),
		cmocka_unit_test(enum__that_is_longer_than_a_sentence__is_cut_in_it),
		cmocka_unit_test(memory__that_runs_out_once__is_said_or_was_not_needed),
	};

	return fault_memory_run(tests, 1);
}

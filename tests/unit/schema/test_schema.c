/* JSON Schema: every keyword on values that it accepts, refuses and leaves alone, read as JSON and
 * as YAML; schemas that are refused; places and texts of errors; the bounds. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "schema/schema.h"
#include "schema/uri.h"
#include "text/sentence.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- memory that runs out ---- */

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static unsigned allocations_left = UINT_MAX; /* then there is no memory */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

static bool allocation_fails(void)
{
	if (allocations_left == UINT_MAX)
		return false;
	if (allocations_left) {
		allocations_left--;
		return false;
	}
	errno = ENOMEM;
	return true;
}

void *malloc(size_t size)
{
	return allocation_fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	return allocation_fails() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	return allocation_fails() ? NULL : __libc_realloc(p, size);
}
#endif

/* ---- the harness ---- */

/* Texts here have ' for ", which would need a backslash. */
static char *quoted(const char *text)
{
	char *copy = strdup(text);

	assert_non_null(copy);
	for (char *p = copy; *p; p++)
		if (*p == '\'')
			*p = '"';
	return copy;
}

/* A schema and a value out of one text, {"s": SCHEMA, "v": VALUE}, so that both may be anything. */
struct pair {
	struct document *document;
	const struct node *schema, *value;
};

static struct pair parse(enum document_type type, const char *schema, const char *value)
{
	struct buffer text;
	struct document_error e;
	struct pair p;
	char *both;
	int r;

	buffer_init(&text, 64u << 20);
	assert_int_equal(buffer_printf(&text, "{'s': %s, 'v': %s}", schema, value), 0);
	both = quoted(text.data);
	r = document_parse(type, both, text.len, 0, &p.document, &e);
	if (r)
		print_error("%.300s\nline %u, column %u: %s\n", both, e.line, e.column, e.message);
	assert_int_equal(r, 0);
	buffer_fini(&text);
	free(both);
	p.schema = node_find(document_root(p.document), "s");
	p.value = node_find(document_root(p.document), "v");
	return p;
}

static struct schema *compiled(const struct node *root)
{
	struct schema *s = NULL;
	char why[FILE_WHY] = "";
	int r = schema_new(root, NULL, 0, &s, why);

	if (r)
		print_error("%s\n", why);
	assert_int_equal(r, 0);
	return s;
}

/* Takes "line 1, column 7: " off the start of each line. */
static void without_places(char *text)
{
	char *to = text;

	while (*text) {
		unsigned line, column;
		int n = 0;

		if (sscanf(text, "line %u, column %u: %n", &line, &column, &n) == 2)
			text += n;
		while (*text && *text != '\n')
			*to++ = *text++;
		if (*text)
			*to++ = *text++;
	}
	*to = '\0';
}

typedef char report_text[SCHEMA_MAX_REPORT + 1];

/* The errors without the last newline. */
static int check(enum document_type type, const char *schema, const char *value, report_text report)
{
	struct pair p = parse(type, schema, value);
	struct schema *s = compiled(p.schema);
	struct buffer out;
	int r;

	buffer_init(&out, SCHEMA_MAX_REPORT);
	r = schema_check(s, p.value, NULL, &out);
	assert_true((r == 0) == (out.len == 0));
	sentence_show(report, sizeof(report_text), out.len ? out.data : "", AUDIENCE_OPERATOR);
	if (out.len) {
		assert_int_equal(report[strlen(report) - 1], '\n');
		report[strlen(report) - 1] = '\0';
	}
	buffer_fini(&out);
	schema_free(s);
	document_free(p.document);
	return r;
}

struct row {
	const char *schema, *value;
	const char *errors; /* NULL: it fits */
};

static bool row_is_right(const struct row *row, enum document_type type)
{
	static report_text report;
	char *expected = quoted(row->errors ? row->errors : "");
	int r = check(type, row->schema, row->value, report);
	bool right;

	if (r) {
		assert_int_equal(strncmp(report, "line 1, column ", 15), 0);
		without_places(report);
	}
	right = r == (row->errors ? -EINVAL : 0) && strcmp(report, expected) == 0;
	if (!right)
		print_error("%s << %s (%s)\n  expected %s\n  returned %d: %s\n", row->schema,
			row->value, type == DOCUMENT_YAML ? "YAML" : "JSON", expected, r, report);
	free(expected);
	return right;
}

#define check_rows(rows) check_all(rows, COUNT(rows))
static void check_all(const struct row *rows, size_t count)
{
	size_t wrong = 0;

	for (size_t i = 0; i < count; i++) {
		wrong += !row_is_right(&rows[i], DOCUMENT_YAML);
		wrong += !row_is_right(&rows[i], DOCUMENT_JSON);
	}
	assert_int_equal(wrong, 0);
}

/* ---- keywords: any value ---- */

static void type__of_each_kind__is_told_apart(void **state)
{
	static const struct row rows[] = {
		{"{'type':'null'}", "null", NULL},
		{"{'type':'null'}", "0", "must be null, but is 0"},
		{"{'type':'null'}", "''", "must be null, but is ''"},
		{"{'type':'boolean'}", "false", NULL},
		{"{'type':'boolean'}", "'true'", "must be true or false, but is 'true'"},
		{"{'type':'boolean'}", "1", "must be true or false, but is 1"},
		{"{'type':'integer'}", "1", NULL},
		{"{'type':'integer'}", "-9223372036854775808", NULL},
		{"{'type':'integer'}", "1.0", NULL},
		{"{'type':'integer'}", "1.0e300", NULL},
		{"{'type':'integer'}", "1.5", "must be an integer, but is 1.5"},
		{"{'type':'integer'}", "'1'", "must be an integer, but is '1'"},
		{"{'type':'integer'}", "true", "must be an integer, but is true"},
		{"{'type':'number'}", "1.5", NULL},
		{"{'type':'number'}", "1", NULL},
		{"{'type':'number'}", "null", "must be a number, but is null"},
		{"{'type':'string'}", "''", NULL},
		{"{'type':'string'}", "8080", "must be a string, but is 8080: put it in quotes"},
		{"{'type':'string'}", "true", "must be a string, but is true: put it in quotes"},
		{"{'type':'string'}", "[]", "must be a string, but is a list"},
		{"{'type':'array'}", "[]", NULL},
		{"{'type':'array'}", "{}", "must be a list, but is a mapping"},
		{"{'type':'object'}", "{}", NULL},
		{"{'type':'object'}", "[1]", "must be a mapping, but is a list"},
		{"{'type':['integer','null']}", "null", NULL},
		{"{'type':['integer','null']}", "2.0", NULL},
		{"{'type':['integer','null']}", "'x'", "must be an integer or null, but is 'x'"},
		{"{'type':['integer','number']}", "2.5", NULL},
		{"{'type':['string','object','array']}", "2.5",
			"must be a mapping, a list or a string, but is 2.5"},
		{"{'type':['null','boolean','integer','number','string','array','object']}",
			"{'a':1}", NULL},
	};

	(void)state;
	check_rows(rows);
}

static void enum_and_const__compare_by_value(void **state)
{
	static const struct row rows[] = {
		{"{'enum':[1,'a',null]}", "1", NULL},
		{"{'enum':[1,'a',null]}", "1.0", NULL},
		{"{'enum':[1,'a',null]}", "'a'", NULL},
		{"{'enum':[1,'a',null]}", "null", NULL},
		{"{'enum':[1,'a',null]}", "true", "true is none of: 1, 'a', null"},
		{"{'enum':[1,'a',null]}", "'1'", "'1' is none of: 1, 'a', null"},
		{"{'enum':[true]}", "1", "1 is none of: true"},
		{"{'enum':[false]}", "0", "0 is none of: false"},
		{"{'enum':[0]}", "false", "false is none of: 0"},
		{"{'enum':[0]}", "-0.0", NULL},
		{"{'enum':[]}", "1", "1 is none of: nothing"},
		{"{'enum':[[1,{'a':2}]]}", "[1.0,{'a':2.0}]", NULL},
		{"{'enum':[[1,2]]}", "[2,1]", "a list is none of: a list"},
		{"{'enum':[{'a':1,'b':2}]}", "{'b':2,'a':1}", NULL},
		{"{'enum':[{'a':1}]}", "{'a':1,'b':2}", "a mapping is none of: a mapping"},
		{"{'enum':[6,5,4,3,2,1]}", "4", NULL},
		{"{'enum':['b','b','a']}", "'a'", NULL},
		{"{'enum':[9007199254740993]}", "9007199254740992",
			"9007199254740992 is none of: 9007199254740993"},
		{"{'enum':[9007199254740993]}", "9007199254740992.0",
			"9007199254740992.0 is none of: 9007199254740993"},
		{"{'const':3}", "3", NULL},
		{"{'const':3}", "3.0", NULL},
		{"{'const':3}", "4", "must be 3, but is 4"},
		{"{'const':3}", "'3'", "must be 3, but is '3'"},
		{"{'const':null}", "null", NULL},
		{"{'const':null}", "0", "must be null, but is 0"},
		{"{'const':false}", "0", "must be false, but is 0"},
		{"{'const':1}", "true", "must be 1, but is true"},
		{"{'const':'\xc3\xa9'}", "'\xc3\xa9'", NULL},
		{"{'const':'e'}", "'\xc3\xa9'", "must be 'e', but is '\xc3\xa9'"},
		{"{'const':{'a':[1,{'b':true}]}}", "{'a':[1.0,{'b':true}]}", NULL},
		{"{'const':{'a':[1,{'b':true}]}}", "{'a':[1.0,{'b':1}]}",
			"differs from the one that the schema asks for"},
		{"{'const':{'a':1}}", "{'b':1}", "differs from the one that the schema asks for"},
		{"{'const':[]}", "{}", "must be a list, but is a mapping"},
		{"{'const':0.1}", "0.1", NULL},
		{"{'const':0.1}", "0.10", NULL},
	};

	(void)state;
	check_rows(rows);
}

/* ---- keywords: numbers ---- */

static void limits__of_numbers__are_exact(void **state)
{
	static const struct row rows[] = {
		{"{'maximum':65535}", "65535", NULL},
		{"{'maximum':65535}", "65535.0", NULL},
		{"{'maximum':65535}", "65536", "65536 is more than the maximum 65535"},
		{"{'maximum':65535}", "65535.5", "65535.5 is more than the maximum 65535"},
		{"{'maximum':65535}", "'99999999'", NULL},
		{"{'maximum':-1.5}", "-1.5", NULL},
		{"{'maximum':-1.5}", "-1", "-1 is more than the maximum -1.5"},
		{"{'maximum':0.1}", "0.1", NULL},
		{"{'maximum':9007199254740992}", "9007199254740993",
			"9007199254740993 is more than the maximum 9007199254740992"},
		{"{'maximum':9007199254740992.0}", "9007199254740993",
			"9007199254740993 is more than the maximum 9007199254740992.0"},
		{"{'maximum':9007199254740993}", "9007199254740992.0", NULL},
		{"{'maximum':9223372036854775807}", "9223372036854775807", NULL},
		{"{'maximum':9223372036854775807}", "1.5e+300",
			"1.5e+300 is more than the maximum 9223372036854775807"},
		{"{'exclusiveMaximum':9223372036854775808.0}", "9223372036854775807", NULL},
		{"{'minimum':-9223372036854775808.0}", "-9223372036854775808", NULL},
		{"{'exclusiveMaximum':3}", "2.9", NULL},
		{"{'exclusiveMaximum':3}", "3", "3 must be less than 3"},
		{"{'exclusiveMaximum':3}", "3.0", "3.0 must be less than 3"},
		{"{'exclusiveMaximum':9007199254740993}", "9007199254740992", NULL},
		{"{'exclusiveMaximum':3}", "null", NULL},
		{"{'minimum':1}", "1", NULL},
		{"{'minimum':1}", "0", "0 is less than the minimum 1"},
		{"{'minimum':1}", "0.5", "0.5 is less than the minimum 1"},
		{"{'minimum':1}", "[]", NULL},
		{"{'minimum':-9223372036854775808}", "-9223372036854775808", NULL},
		{"{'minimum':-9223372036854775807}", "-9223372036854775808",
			"-9223372036854775808 is less than the minimum -9223372036854775807"},
		{"{'minimum':-9223372036854775808}", "-1.5e+300",
			"-1.5e+300 is less than the minimum -9223372036854775808"},
		{"{'exclusiveMinimum':0}", "0.5", NULL},
		{"{'exclusiveMinimum':0}", "0", "0 must be more than 0"},
		{"{'exclusiveMinimum':0}", "-0.0", "-0.0 must be more than 0"},
		{"{'exclusiveMinimum':9007199254740992.0}", "9007199254740993", NULL},
		{"{'exclusiveMinimum':0}", "true", NULL},
		{"{'minimum':1,'maximum':2}", "3", "3 is more than the maximum 2"},
	};

	(void)state;
	check_rows(rows);
}

static void multipleOf__divides_what_is_written(void **state)
{
	static const struct row rows[] = {
		{"{'multipleOf':2}", "4", NULL},
		{"{'multipleOf':2}", "-4", NULL},
		{"{'multipleOf':2}", "0", NULL},
		{"{'multipleOf':2}", "0.0", NULL},
		{"{'multipleOf':2}", "5", "5 is not a multiple of 2"},
		{"{'multipleOf':2}", "4.0", NULL},
		{"{'multipleOf':2}", "4.5", "4.5 is not a multiple of 2"},
		{"{'multipleOf':2}", "'5'", NULL},
		{"{'multipleOf':2.0}", "9223372036854775807",
			"9223372036854775807 is not a multiple of 2.0"},
		{"{'multipleOf':3}", "9223372036854775807",
			"9223372036854775807 is not a multiple of 3"},
		{"{'multipleOf':7}", "9223372036854775807", NULL},
		{"{'multipleOf':2}", "-9223372036854775808", NULL},
		{"{'multipleOf':9007199254740993}", "9007199254740993", NULL},
		{"{'multipleOf':9007199254740993}", "9007199254740992",
			"9007199254740992 is not a multiple of 9007199254740993"},
		{"{'multipleOf':0.01}", "19.99", NULL},
		{"{'multipleOf':0.01}", "-19.99", NULL},
		{"{'multipleOf':0.01}", "4.35", NULL},
		{"{'multipleOf':0.01}", "1.1", NULL},
		{"{'multipleOf':0.01}", "7", NULL},
		{"{'multipleOf':0.01}", "19.995", "19.995 is not a multiple of 0.01"},
		{"{'multipleOf':0.0001}", "0.0075", NULL},
		{"{'multipleOf':0.0001}", "0.00751", "0.00751 is not a multiple of 0.0001"},
		{"{'multipleOf':400}", "10000", NULL},
		{"{'multipleOf':0.04}", "1", NULL},
		{"{'multipleOf':0.04}", "1.1", "1.1 is not a multiple of 0.04"},
		{"{'multipleOf':576460752303423488}", "1e+300", NULL}, /* 2^59 */
		{"{'multipleOf':576460752303423488}", "1e+58",
			"1e+58 is not a multiple of 576460752303423488"},
		{"{'multipleOf':1.5}", "4.5", NULL},
		{"{'multipleOf':1.5}", "4", "4 is not a multiple of 1.5"},
		{"{'multipleOf':0.1}", "0.3", NULL},
		{"{'multipleOf':0.3}", "0.1", "0.1 is not a multiple of 0.3"},
		{"{'multipleOf':1.0e-8}", "12391239123", NULL},
		{"{'multipleOf':1.0e100}", "2.0e100", NULL},
		{"{'multipleOf':3e+100}", "2e+101", "2e+101 is not a multiple of 3e+100"},
		{"{'multipleOf':0.5}", "1.0e308", NULL},
		{"{'multipleOf':0.123456789}", "1e+308", "1e+308 is not a multiple of 0.123456789"},
		{"{'multipleOf':999999999999999999}", "1999999999999999998", NULL},
		/* what a double would round, or write otherwise */
		{"{'multipleOf':0.01}", "1.10", NULL},
		{"{'multipleOf':0.10}", "1.10", NULL},
		{"{'multipleOf':0.01}", "1E5", NULL},
		{"{'multipleOf':1E-2}", "1.100E+1", NULL},
		{"{'multipleOf':1e-9}", "0.000000001", NULL},
		{"{'multipleOf':1e-10}", "1e-11", "1e-11 is not a multiple of 1e-10"},
		{"{'multipleOf':10}", "12345678901234567890.0", NULL},
		{"{'multipleOf':10}", "12345678901234567891.0",
			"12345678901234567891.0 is not a multiple of 10"},
		{"{'multipleOf':0.1}", "0.1000000000000000055",
			"0.1000000000000000055 is not a multiple of 0.1"},
		{"{'multipleOf':0.1}", "123456789012345678901234567890.3", NULL},
		{"{'const':1.10}", "1.1", NULL},
		{"{'enum':[1E5]}", "100000", NULL},
		{"{'maximum':1E5}", "1.00001E5", "1.00001E5 is more than the maximum 1E5"},
	};
	struct row row = {.schema = "{'multipleOf': 0.05}"};

	(void)state;
	check_rows(rows);
	for (int cents = -500; cents < 500; cents++) {
		char value[16], errors[48];

		snprintf(value, sizeof(value), "%s%d.%d%d", cents < 0 ? "-" : "", abs(cents) / 100,
			abs(cents) / 10 % 10, abs(cents) % 10);
		snprintf(errors, sizeof(errors), "%s is not a multiple of 0.05", value);
		row.value = value;
		row.errors = cents % 5 ? errors : NULL;
		assert_true(row_is_right(&row, DOCUMENT_YAML));
		assert_true(row_is_right(&row, DOCUMENT_JSON));
	}
}

/* What JSON cannot write. */
static void numbers__of_yaml__are_read_as_yaml_reads_them(void **state)
{
	static const struct row rows[] = {
		{"{type: integer}", "0x1F", NULL},
		{"{const: 31}", "0x1F", NULL},
		{"{const: 15}", "0o17", NULL},
		{"{multipleOf: 0x10}", "0x20", NULL},
		{"{multipleOf: 0x10}", "0x21", "0x21 is not a multiple of 0x10"},
		{"{multipleOf: .5}", "+1.5", NULL},
		{"{multipleOf: 5.}", "1.e1", NULL},
		{"{multipleOf: 4}", "!!float 0x10", NULL},
		{"{multipleOf: 4}", "!!float 0x11", "0x11 is not a multiple of 4"},
		{"{multipleOf: 4}", "012", NULL}, /* decimal */
		{"{multipleOf: 1e-999999999999999999999}", "1", NULL},
		{"{multipleOf: 10}", "1e-99999999999999999999",
			"1e-99999999999999999999 is not a multiple of 10"},
		{"{multipleOf: 0.1}", "1000000000000000000000000000000000000000000000.1", NULL},
		{"{multipleOf: 0.1}", "0.3000000000000000000000000000000000000000000001",
			"0.30000000000000000000000000000000000000... is not a multiple of 0.1"},
		{"{multipleOf: 2}", ".inf", ".inf is not a multiple of 2"},
		{"{multipleOf: 2}", ".nan", ".nan is not a multiple of 2"},
		{"{type: number}", ".inf", NULL},
		{"{type: integer}", ".inf", "must be an integer, but is .inf"},
		{"{type: integer}", ".nan", "must be an integer, but is .nan"},
		{"{maximum: 5}", "-.inf", NULL},
		{"{maximum: 5}", ".inf", ".inf is more than the maximum 5"},
		{"{maximum: .inf}", ".inf", NULL},
		{"{maximum: 5}", ".nan", ".nan is more than the maximum 5"},
		{"{minimum: 5}", ".nan", ".nan is less than the minimum 5"},
		{"{const: .nan}", ".nan", NULL},
		{"{enum: [1, .nan, 2]}", ".nan", NULL},
		{"{enum: [1, .nan, 2]}", "2", NULL},
		{"{uniqueItems: true}", "[.nan, 1, .NaN]",
			"the items 0 and 2 are equal (.nan), but all must differ"},
		{"{type: 'null'}", "", NULL},
		{"{type: string}", "~", "must be a string, but is null: put it in quotes"},
		{"{type: string}", "no", NULL},
		{"{properties: {1: {type: string}}}", "{1: x}", NULL},
		{"{required: ['1', 'true']}", "{1: x, true: y}", NULL},
		{"{maxLength: 2.0}", "abc", "has 3 characters, at most 2 allowed"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_true(row_is_right(&rows[i], DOCUMENT_YAML));
}

/* ---- keywords: strings ---- */

static void lengths__count_characters(void **state)
{
	static const struct row rows[] = {
		{"{'maxLength':3}", "'abc'", NULL},
		{"{'maxLength':3}", "'abcd'", "has 4 characters, at most 3 allowed"},
		{"{'maxLength':3}", "1234", NULL},
		{"{'maxLength':3.0}", "'abcd'", "has 4 characters, at most 3 allowed"},
		{"{'maxLength':0}", "''", NULL},
		{"{'maxLength':0}", "'a'", "has 1 character, at most 0 allowed"},
		{"{'maxLength':0.0}", "'a'", "has 1 character, at most 0 allowed"},
		{"{'maxLength':-0.0}", "''", NULL},
		{"{'maxLength':2}", "'\xe6\x97\xa5\xe6\x9c\xac'", NULL},
		{"{'maxLength':1}", "'\xf0\x9f\x98\x80'", NULL},
		{"{'maxLength':1}", "'e\xcc\x81'", "has 2 characters, at most 1 allowed"},
		{"{'maxLength':1.0e30}", "'abc'", NULL},
		{"{'minLength':3}", "'abc'", NULL},
		{"{'minLength':3}", "'ab'", "has 2 characters, at least 3 required"},
		{"{'minLength':3}", "'\xe6\x97\xa5\xe6\x9c\xac'",
			"has 2 characters, at least 3 required"},
		{"{'minLength':1}", "''", "has 0 characters, at least 1 required"},
		{"{'minLength':3}", "[]", NULL},
	};

	(void)state;
	check_rows(rows);
}

static void pattern__means_what_ecma_262_says(void **state)
{
	static const struct row rows[] = {
		{"{'pattern':'^a*$'}", "'aaa'", NULL},
		{"{'pattern':'^a*$'}", "'aab'", "'aab' does not match the pattern '^a*$'"},
		{"{'pattern':'^a*$'}", "17", NULL},
		{"{'pattern':'^a*$'}", "''", NULL},
		{"{'pattern':'b'}", "'abc'", NULL},
		{"{'pattern':''}", "'abc'", NULL},
		{"{'pattern':'^abc$'}", "'abc\\n'", "'abc\\n' does not match the pattern '^abc$'"},
		{"{'pattern':'^b'}", "'a\\nb'", "'a\\nb' does not match the pattern '^b'"},
		{"{'pattern':'^.$'}", "'\xf0\x9f\x98\x80'", NULL},
		{"{'pattern':'^.$'}", "'\\n'", "'\\n' does not match the pattern '^.$'"},
		{"{'pattern':'^\\\\d$'}", "'5'", NULL},
		{"{'pattern':'^\\\\d$'}", "'\xd9\xa3'",
			"'\xd9\xa3' does not match the pattern '^\\\\d$'"},
		{"{'pattern':'^\\\\w$'}", "'\xc3\xa9'",
			"'\xc3\xa9' does not match the pattern '^\\\\w$'"},
		{"{'pattern':'^\\\\W$'}", "'\xc3\xa9'", NULL},
		{"{'pattern':'^\\\\s$'}", "'\xc2\xa0'", NULL},
		{"{'pattern':'^[x\\\\s-]$'}", "'\xef\xbb\xbf'", NULL},
		{"{'pattern':'^[x\\\\s-]$'}", "'-'", NULL},
		{"{'pattern':'^[^\\\\s]$'}", "'\xe2\x80\xa9'",
			"'\\u2029' does not match the pattern '^[^\\\\s]$'"},
		{"{'pattern':'^\\\\S+$'}", "'a\xc2\xa0'",
			"'a\xc2\xa0' does not match the pattern '^\\\\S+$'"},
		{"{'pattern':'^[\\\\s\\\\S]$'}", "'\\n'", NULL},
		{"{'pattern':'^\\\\\\\\s$'}", "'\\\\s'", NULL},
		{"{'pattern':'^[[:alpha:]]$'}", "'a]'", NULL},
		{"{'pattern':'^[[:alpha:]]$'}", "'z'",
			"'z' does not match the pattern '^[[:alpha:]]$'"},
		{"{'pattern':'^\\\\u00e9\\\\x41\\\\u{1F600}$'}",
			"'\xc3\xa9"
			"A\xf0\x9f\x98\x80'",
			NULL},
		{"{'pattern':'^[]'}", "'a'", "'a' does not match the pattern '^[]'"},
		{"{'pattern':'^[^]$'}", "'\\n'", NULL},
		{"{'pattern':'^(?:(a)|b)\\\\1$'}", "'b'", NULL},
		{"{'pattern':'^\\\\p{L}$'}", "'\xe6\x97\xa5'", NULL},
		{"{'pattern':'^(?!x)(?<n>a|b)\\\\k<n>\\\\/$'}", "'aa/'", NULL},
		{"{'pattern':'^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$'}", "'db-1'", NULL},
		{"{'pattern':'^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$'}", "'db-'",
			"'db-' does not match the pattern '^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$'"},
	};

	(void)state;
	check_rows(rows);
}

/* ---- keywords: lists ---- */

static void items__are_counted_and_compared(void **state)
{
	static const struct row rows[] = {
		{"{'maxItems':2}", "[1,2]", NULL},
		{"{'maxItems':2}", "[1,2,3]", "has 3 items, at most 2 allowed"},
		{"{'maxItems':2}", "'abc'", NULL},
		{"{'maxItems':2}", "{'a':1,'b':1,'c':1}", NULL},
		{"{'minItems':1}", "[1]", NULL},
		{"{'minItems':2}", "[1]", "has 1 item, at least 2 required"},
		{"{'minItems':2}", "''", NULL},
		{"{'uniqueItems':true}", "[]", NULL},
		{"{'uniqueItems':true}", "[1,2,3,'1',true,null,[],{},[1],'a']", NULL},
		{"{'uniqueItems':true}", "[1,2,1.0]",
			"the items 0 and 2 are equal (1), but all must differ"},
		{"{'uniqueItems':true}", "[0,false,'',null,[],{}]", NULL},
		{"{'uniqueItems':true}", "[1,true]", NULL},
		{"{'uniqueItems':true}", "[{'a':1,'b':2},{'b':2,'a':1}]",
			"the items 0 and 1 are equal (a mapping), but all must differ"},
		{"{'uniqueItems':true}", "[{'a':{'b':[1]}},{'a':{'b':[2]}}]", NULL},
		{"{'uniqueItems':true}", "[[1,2],[2,1],[1,2]]",
			"the items 0 and 2 are equal (a list), but all must differ"},
		{"{'uniqueItems':true}", "['b','a','c','a']",
			"the items 1 and 3 are equal ('a'), but all must differ"},
		{"{'uniqueItems':false}", "[1,1]", NULL},
		{"{'uniqueItems':true}", "{'a':1,'b':1}", NULL},
	};

	(void)state;
	check_rows(rows);
}

static void items__have_schemas_by_their_place(void **state)
{
	static const struct row rows[] = {
		{"{'items':{'type':'integer'}}", "[1,2]", NULL},
		{"{'items':{'type':'integer'}}", "[]", NULL},
		{"{'items':{'type':'integer'}}", "['a',2,'b']",
			"/0: must be an integer, but is 'a'\n/2: must be an integer, but is 'b'"},
		{"{'items':{'type':'integer'}}", "{'0':'a'}", NULL},
		{"{'items':false}", "[]", NULL},
		{"{'items':false}", "[1]", "/0: this item is not allowed here"},
		{"{'items':true}", "[1,'a']", NULL},
		{"{'prefixItems':[{'type':'integer'},{'type':'string'}]}", "[1,'a',null]", NULL},
		{"{'prefixItems':[{'type':'integer'},{'type':'string'}]}", "[1]", NULL},
		{"{'prefixItems':[{'type':'integer'},{'type':'string'}]}", "[1,2]",
			"/1: must be a string, but is 2: put it in quotes"},
		{"{'prefixItems':[true,false]}", "[1]", NULL},
		{"{'prefixItems':[true,false]}", "[1,2]", "/1: no value is allowed here"},
		{"{'prefixItems':[{'type':'integer'}],'items':{'type':'string'}}", "[1,'a','b']",
			NULL},
		{"{'prefixItems':[{'type':'integer'}],'items':{'type':'string'}}", "['a','b',3]",
			"/0: must be an integer, but is 'a'\n"
			"/2: must be a string, but is 3: put it in quotes"},
		{"{'prefixItems':[true],'items':false}", "[1,2]",
			"/1: this item is not allowed here"},
		{"{'items':{'items':{'maximum':3}}}", "[[1,2],[3,4]]",
			"/1/1: 4 is more than the maximum 3"},
	};

	(void)state;
	check_rows(rows);
}

static void contains__counts_what_fits(void **state)
{
	static const struct row rows[] = {
		{"{'contains':{'const':5}}", "[1,5]", NULL},
		{"{'contains':{'const':5}}", "[1,2]",
			"0 items fit the schema of contains, at least 1 must"},
		{"{'contains':{'const':5}}", "[]",
			"0 items fit the schema of contains, at least 1 must"},
		{"{'contains':{'const':5}}", "{'a':1}", NULL},
		{"{'contains':true}", "[]", "0 items fit the schema of contains, at least 1 must"},
		{"{'contains':false}", "['a']",
			"0 items fit the schema of contains, at least 1 must"},
		{"{'contains':{'const':5},'minContains':2}", "[5,1,5]", NULL},
		{"{'contains':{'const':5},'minContains':2}", "[5,1]",
			"1 item fits the schema of contains, at least 2 must"},
		{"{'contains':{'const':5},'minContains':0}", "[]", NULL},
		{"{'contains':{'const':5},'minContains':2.0}", "[5,5.0]", NULL},
		{"{'contains':{'const':5},'maxContains':1}", "[5,1]", NULL},
		{"{'contains':{'const':5},'maxContains':1}", "[5,5,5]",
			"3 items fit the schema of contains, at most 1 may"},
		{"{'contains':{'const':5},'maxContains':1}", "[]",
			"0 items fit the schema of contains, at least 1 must"},
		{"{'contains':{'const':5},'minContains':0,'maxContains':0}", "[5]",
			"1 item fits the schema of contains, at most 0 may"},
		{"{'minContains':2,'maxContains':1}", "[1,2,3]", NULL},
	};

	(void)state;
	check_rows(rows);
}

/* ---- keywords: mappings ---- */

static void keys__are_counted_and_demanded(void **state)
{
	static const struct row rows[] = {
		{"{'maxProperties':1}", "{'a':1}", NULL},
		{"{'maxProperties':1}", "{'a':1,'b':2}", "has 2 keys, at most 1 allowed"},
		{"{'maxProperties':1}", "[1,2]", NULL},
		{"{'maxProperties':0}", "{}", NULL},
		{"{'minProperties':1}", "{'a':1}", NULL},
		{"{'minProperties':1}", "{}", "has 0 keys, at least 1 required"},
		{"{'minProperties':1}", "''", NULL},
		{"{'required':['a']}", "{'a':null}", NULL},
		{"{'required':['a','b','c']}", "{'b':1}",
			"the key 'a' is missing\nthe key 'c' is missing"},
		{"{'required':['a']}", "['a']", NULL},
		{"{'required':[]}", "{}", NULL},
		{"{'required':['__proto__','toString']}", "{}",
			"the key '__proto__' is missing\nthe key 'toString' is missing"},
		{"{'required':['']}", "{'':1}", NULL},
		{"{'required':['a\\tb']}", "{}", "the key 'a\\tb' is missing"},
		{"{'dependentRequired':{'a':['b','c']}}", "{}", NULL},
		{"{'dependentRequired':{'a':['b','c']}}", "{'b':1}", NULL},
		{"{'dependentRequired':{'a':['b','c']}}", "{'a':1,'b':1,'c':1}", NULL},
		{"{'dependentRequired':{'a':['b','c']}}", "{'a':1,'b':1}",
			"the key 'c' is missing: 'a' must not be there alone"},
		{"{'dependentRequired':{'a':[]}}", "{'a':1}", NULL},
		{"{'dependentRequired':{'a':['b']}}", "['a']", NULL},
		{"{'dependentRequired':{'a':['b'],'b':['a']}}", "{'b':1}",
			"the key 'a' is missing: 'b' must not be there alone"},
		{"{'propertyNames':{'maxLength':3}}", "{'abc':1}", NULL},
		{"{'propertyNames':{'maxLength':3}}", "{'a':1,'abcd':1}",
			"/abcd: its key: has 4 characters, at most 3 allowed"},
		{"{'propertyNames':{'pattern':'^[A-Z]+$'}}", "{'A':1,'b':1}",
			"/b: its key: 'b' does not match the pattern '^[A-Z]+$'"},
		{"{'propertyNames':{'enum':['a']}}", "{'b':1}", "/b: its key: 'b' is none of: 'a'"},
		{"{'propertyNames':{'type':'string'}}", "{'1':1}", NULL},
		{"{'propertyNames':false}", "{}", NULL},
		{"{'propertyNames':false}", "{'a':1}", "/a: its key: no value is allowed here"},
		{"{'propertyNames':{'maxLength':3}}", "['abcd']", NULL},
	};

	(void)state;
	check_rows(rows);
}

static void properties__have_schemas_by_their_keys(void **state)
{
	static const struct row rows[] = {
		{"{'properties':{'a':{'type':'integer'},'b':{'type':'string'}}}",
			"{'a':1,'b':'x','c':null}", NULL},
		{"{'properties':{'a':{'type':'integer'},'b':{'type':'string'}}}", "{'a':'1'}",
			"/a: must be an integer, but is '1'"},
		{"{'properties':{'a':{'type':'integer'},'b':{'type':'string'}}}", "{}", NULL},
		{"{'properties':{'a':{'type':'integer'}}}", "['x']", NULL},
		{"{'properties':{'a':true,'b':false}}", "{'a':1}", NULL},
		{"{'properties':{'a':true,'b':false}}", "{'a':1,'b':1}",
			"/b: no value is allowed here"},
		{"{'properties':{'a/b':{'type':'null'},'m~n':{'type':'null'},' ':{'type':'null'}}}",
			"{'a/b':1,'m~n':2,' ':3}",
			"/a~1b: must be null, but is 1\n/m~0n: must be null, but is 2\n"
			"/ : must be null, but is 3"},
		{"{'properties':{'\xc3\xa9':{'type':'null'}}}", "{'\xc3\xa9':1}",
			"/\xc3\xa9: must be null, but is 1"},
		{"{'properties':{'a':{'properties':{'b':{'maximum':1}}}}}", "{'a':{'b':2}}",
			"/a/b: 2 is more than the maximum 1"},
		{"{'patternProperties':{'^f':{'type':'integer'}}}", "{'f':1,'foo':2,'b':'x'}",
			NULL},
		{"{'patternProperties':{'^f':{'type':'integer'}}}", "{'foo':'x'}",
			"/foo: must be an integer, but is 'x'"},
		{"{'patternProperties':{'a':{'minimum':2},'b':{'maximum':0}}}", "{'ab':1}",
			"/ab: 1 is less than the minimum 2\n/ab: 1 is more than the maximum 0"},
		{"{'patternProperties':{'^f':false}}", "{'g':1}", NULL},
		{"{'patternProperties':{'^f':false}}", "{'f':1}", "/f: no value is allowed here"},
		{"{'patternProperties':{}}", "{'a':1}", NULL},
		{"{'patternProperties':{'^f':false}}", "['f']", NULL},
		{"{'additionalProperties':false}", "{}", NULL},
		{"{'additionalProperties':false}", "{'a':1}", "/a: this key is not allowed here"},
		{"{'properties':{'a':true},'additionalProperties':false}", "{'a':1}", NULL},
		{"{'properties':{'a':true},'additionalProperties':false}", "{'a':1,'b':2}",
			"/b: this key is not allowed here"},
		{"{'patternProperties':{'^v':true},'additionalProperties':false}", "{'v1':1,'w':2}",
			"/w: this key is not allowed here"},
		{"{'properties':{'a':true},'patternProperties':{'^v':true},"
		 "'additionalProperties':{'type':'boolean'}}",
			"{'a':1,'v':2,'x':true}", NULL},
		{"{'properties':{'a':true},'additionalProperties':{'type':'boolean'}}", "{'x':1}",
			"/x: must be true or false, but is 1"},
		{"{'allOf':[{'properties':{'a':true}}],'additionalProperties':false}", "{'a':1}",
			"/a: this key is not allowed here"},
		{"{'additionalProperties':false}", "['a']", NULL},
		{"{'additionalProperties':false,'properties':{'a':{'type':'null'},'b':true}}",
			"{'a':1,'c':2,'b':3}",
			"/a: must be null, but is 1\n/c: this key is not allowed here"},
	};

	(void)state;
	check_rows(rows);
}

/* ---- keywords: schemas for the same value ---- */

static void schemas__are_combined(void **state)
{
	static const struct row rows[] = {
		{"true", "1", NULL},
		{"false", "1", "no value is allowed here"},
		{"{}", "[]", NULL},
		{"{'allOf':[{'minimum':1},{'maximum':3}]}", "2", NULL},
		{"{'allOf':[{'minimum':1},{'maximum':3}]}", "4", "4 is more than the maximum 3"},
		{"{'allOf':[{'minimum':5},{'maximum':3}]}", "4",
			"4 is less than the minimum 5\n4 is more than the maximum 3"},
		{"{'allOf':[true,false]}", "1", "no value is allowed here"},
		{"{'allOf':[{'required':['a']}],'required':['b']}", "{}",
			"the key 'b' is missing\nthe key 'a' is missing"},
		{"{'anyOf':[{'type':'integer'},{'minimum':2}]}", "1", NULL},
		{"{'anyOf':[{'type':'integer'},{'minimum':2}]}", "2.5", NULL},
		{"{'anyOf':[{'type':'integer'},{'minimum':2}]}", "1.5",
			"fits no schema of anyOf: must be an integer, but is 1.5; "
			"or: 1.5 is less than the minimum 2"},
		{"{'anyOf':[{'type':'integer'}]}", "1.5", "must be an integer, but is 1.5"},
		{"{'anyOf':[true,false]}", "1", NULL},
		{"{'anyOf':[false,false]}", "1",
			"fits no schema of anyOf: no value is allowed here; or: no value is "
			"allowed "
			"here"},
		{"{'anyOf':[{'type':'string'},{'properties':{'a':{'const':1}},'required':['b']}]}",
			"{'a':2,'b':1}", "fits no schema of anyOf: /a: must be 1, but is 2"},
		{"{'anyOf':[{'const':1},{'const':2},{'const':3},{'const':4},{'const':5}]}", "6",
			"fits no schema of anyOf: must be 1, but is 6; or: must be 2, but is 6; "
			"or: must be 3, but is 6"},
		{"{'properties':{'x':{'anyOf':[{'type':'null'},{'items':{'const':1}}]}}}",
			"{'x':[2]}", "/x: fits no schema of anyOf: /x/0: must be 1, but is 2"},
		{"{'oneOf':[{'type':'integer'},{'minimum':2}]}", "1", NULL},
		{"{'oneOf':[{'type':'integer'},{'minimum':2}]}", "2.5", NULL},
		{"{'oneOf':[{'type':'integer'},{'minimum':2}]}", "3",
			"fits the schemas 1 and 2 of oneOf, must fit one only"},
		{"{'oneOf':[{'type':'integer'},{'minimum':2}]}", "1.5",
			"fits no schema of oneOf: must be an integer, but is 1.5; "
			"or: 1.5 is less than the minimum 2"},
		{"{'oneOf':[false,true,false,true,true]}", "0",
			"fits the schemas 2 and 4 of oneOf, must fit one only"},
		{"{'oneOf':[{'required':['a']},{'required':['b']}]}", "{'a':1,'b':2}",
			"fits the schemas 1 and 2 of oneOf, must fit one only"},
		{"{'not':{'type':'integer'}}", "'a'", NULL},
		{"{'not':{'type':'integer'}}", "1", "must not fit the schema of not"},
		{"{'not':{'not':{'type':'integer'}}}", "1", NULL},
		{"{'not':{'not':{'type':'integer'}}}", "'a'", "must not fit the schema of not"},
		{"{'not':true}", "1", "must not fit the schema of not"},
		{"{'not':{}}", "1", "must not fit the schema of not"},
		{"{'not':false}", "1", NULL},
		{"{'not':{'anyOf':[{'const':1},{'const':2}]}}", "2",
			"must not fit the schema of not"},
		{"{'if':{'minimum':10},'then':{'multipleOf':2},'else':{'multipleOf':3}}", "12",
			NULL},
		{"{'if':{'minimum':10},'then':{'multipleOf':2},'else':{'multipleOf':3}}", "13",
			"13 is not a multiple of 2"},
		{"{'if':{'minimum':10},'then':{'multipleOf':2},'else':{'multipleOf':3}}", "9",
			NULL},
		{"{'if':{'minimum':10},'then':{'multipleOf':2},'else':{'multipleOf':3}}", "8",
			"8 is not a multiple of 3"},
		{"{'if':{'minimum':10}}", "1", NULL},
		{"{'if':{'minimum':10},'then':false}", "1", NULL},
		{"{'if':{'minimum':10},'else':false}", "1", "no value is allowed here"},
		{"{'then':false,'else':false}", "1", NULL},
		{"{'if':true,'then':{'const':1},'else':false}", "1", NULL},
		{"{'dependentSchemas':{'a':{'required':['b']}}}", "{'a':1,'b':2}", NULL},
		{"{'dependentSchemas':{'a':{'required':['b']}}}", "{'a':1}",
			"the key 'b' is missing"},
		{"{'dependentSchemas':{'a':{'required':['b']}}}", "{'c':1}", NULL},
		{"{'dependentSchemas':{'a':{'required':['b']}}}", "['a']", NULL},
		{"{'dependentSchemas':{'a':true,'b':false}}", "{'a':1}", NULL},
		{"{'dependentSchemas':{'a':true,'b':false}}", "{'b':1}",
			"no value is allowed here"},
	};

	(void)state;
	check_rows(rows);
}

static void unevaluated__sees_what_all_others_left(void **state)
{
	static const struct row rows[] = {
		{"{'unevaluatedProperties':false}", "{}", NULL},
		{"{'unevaluatedProperties':false}", "{'a':1}", "/a: this key is not allowed here"},
		{"{'unevaluatedProperties':false}", "['a']", NULL},
		{"{'unevaluatedProperties':{'type':'string'}}", "{'a':1}",
			"/a: must be a string, but is 1: put it in quotes"},
		{"{'unevaluatedProperties':true}", "{'a':1}", NULL},
		{"{'properties':{'a':true},'unevaluatedProperties':false}", "{'a':1,'b':1}",
			"/b: this key is not allowed here"},
		{"{'patternProperties':{'^a':true},'unevaluatedProperties':false}", "{'ab':1}",
			NULL},
		{"{'additionalProperties':true,'unevaluatedProperties':false}", "{'ab':1}", NULL},
		{"{'allOf':[{'properties':{'a':true}}],'unevaluatedProperties':false}",
			"{'a':1,'b':2}", "/b: this key is not allowed here"},
		{"{'anyOf':[{'properties':{'a':{'const':1}},'required':['a']},"
		 "{'properties':{'b':{'const':1}},'required':['b']}],"
		 "'unevaluatedProperties':false}",
			"{'a':1,'b':1}", NULL},
		{"{'anyOf':[{'properties':{'a':{'const':1}},'required':['a']},"
		 "{'properties':{'b':{'const':1}},'required':['b']}],"
		 "'unevaluatedProperties':false}",
			"{'a':1,'b':2}", "/b: this key is not allowed here"},
		{"{'oneOf':[{'properties':{'a':{'const':1}},'required':['a']},"
		 "{'properties':{'b':{'const':1}},'required':['b']}],"
		 "'unevaluatedProperties':false}",
			"{'b':1,'c':1}", "/c: this key is not allowed here"},
		{"{'not':{'not':{'properties':{'a':true}}},'unevaluatedProperties':false}",
			"{'a':1}", "/a: this key is not allowed here"},
		{"{'if':{'properties':{'a':{'const':1}}},'then':{'properties':{'b':true}},"
		 "'else':{'properties':{'c':true}},'unevaluatedProperties':false}",
			"{'a':1,'b':1}", NULL},
		{"{'if':{'properties':{'a':{'const':1}}},'then':{'properties':{'b':true}},"
		 "'else':{'properties':{'c':true}},'unevaluatedProperties':false}",
			"{'a':2,'c':1}", "/a: this key is not allowed here"},
		{"{'if':{'properties':{'a':true}},'unevaluatedProperties':false}", "{'a':1}", NULL},
		{"{'dependentSchemas':{'a':{'properties':{'a':true,'b':true}}},"
		 "'unevaluatedProperties':false}",
			"{'a':1,'b':1}", NULL},
		{"{'dependentSchemas':{'a':{'properties':{'a':true,'b':true}}},"
		 "'unevaluatedProperties':false}",
			"{'b':1}", "/b: this key is not allowed here"},
		{"{'$ref':'#/$defs/x','unevaluatedProperties':false,"
		 "'$defs':{'x':{'properties':{'a':true}}}}",
			"{'a':1}", NULL},
		{"{'$ref':'#/$defs/x','properties':{'b':true},"
		 "'$defs':{'x':{'properties':{'a':true},'unevaluatedProperties':false}}}",
			"{'a':1,'b':1}", "/b: this key is not allowed here"},
		{"{'allOf':[{'unevaluatedProperties':true}],'unevaluatedProperties':false}",
			"{'a':1}", NULL},
		{"{'allOf':[{'properties':{'a':true},'unevaluatedProperties':{'type':'string'}}],"
		 "'unevaluatedProperties':false}",
			"{'a':1,'b':'x'}", NULL},
		{"{'properties':{'a':{'properties':{'b':true}}},'unevaluatedProperties':false}",
			"{'a':{'b':1,'c':2}}", NULL},
		{"{'allOf':[{'properties':{'a':{'type':'null'}}}],'unevaluatedProperties':false}",
			"{'a':1,'b':2}", "/a: must be null, but is 1"},
		{"{'properties':{'a':true},'allOf':[{'unevaluatedProperties':false}],"
		 "'unevaluatedProperties':true}",
			"{'a':1}", "/a: this key is not allowed here"},
		{"{'unevaluatedItems':false}", "[]", NULL},
		{"{'unevaluatedItems':false}", "[1]", "/0: this item is not allowed here"},
		{"{'unevaluatedItems':false}", "{'a':1}", NULL},
		{"{'unevaluatedItems':{'type':'string'}}", "['a',2]",
			"/1: must be a string, but is 2: put it in quotes"},
		{"{'prefixItems':[true],'unevaluatedItems':false}", "[1,2]",
			"/1: this item is not allowed here"},
		{"{'items':true,'unevaluatedItems':false}", "[1,2]", NULL},
		{"{'contains':{'type':'string'},'unevaluatedItems':false}", "['a','b']", NULL},
		{"{'contains':{'type':'string'},'unevaluatedItems':false}", "['a',1]",
			"/1: this item is not allowed here"},
		{"{'allOf':[{'contains':{'multipleOf':2}},{'contains':{'multipleOf':3}}],"
		 "'unevaluatedItems':{'multipleOf':5}}",
			"[2,3,4,5,6]", NULL},
		{"{'allOf':[{'contains':{'multipleOf':2}},{'contains':{'multipleOf':3}}],"
		 "'unevaluatedItems':{'multipleOf':5}}",
			"[2,3,7]", "/2: 7 is not a multiple of 5"},
		{"{'anyOf':[{'prefixItems':[{'const':1}]},{'prefixItems':[true,{'const':2}]}],"
		 "'unevaluatedItems':false}",
			"[1,2]", NULL},
		{"{'anyOf':[{'prefixItems':[{'const':1}]},{'prefixItems':[true,{'const':2}]}],"
		 "'unevaluatedItems':false}",
			"[1,3]", "/1: this item is not allowed here"},
		{"{'oneOf':[{'prefixItems':[{'const':1}]},{'prefixItems':[{'const':2}]}],"
		 "'unevaluatedItems':false}",
			"[2]", NULL},
		{"{'if':{'prefixItems':[{'const':1}]},'then':{'prefixItems':[true,true]},"
		 "'unevaluatedItems':false}",
			"[1,2]", NULL},
		{"{'if':{'prefixItems':[{'const':1}]},'then':{'prefixItems':[true,true]},"
		 "'unevaluatedItems':false}",
			"[2]", "/0: this item is not allowed here"},
	};

	(void)state;
	check_rows(rows);
}

static void unevaluated__of_many_children__sees_each(void **state)
{
	static const char schema[] = "{'$defs':{'k':{'patternProperties':{'^k':true}}},"
				     "'anyOf':[{'$ref':'#/$defs/k'},{'properties':{'x':true}}],"
				     "'unevaluatedProperties':false}";
	static report_text report;

	(void)state;
	for (unsigned more = 0; more < 2; more++) {
		struct buffer value;

		buffer_init(&value, 10000);
		buffer_append_string(&value, "{'x':1");
		for (int i = 0; i < 200; i++)
			buffer_printf(&value, ",'k%d':1", i);
		buffer_append_string(&value, more ? ",'y':1}" : "}");
		assert_int_equal(
			check(DOCUMENT_JSON, schema, value.data, report), more ? -EINVAL : 0);
		assert_string_equal(report,
			more ? "line 1, column 1847: /y: this key is not allowed here" : "");
		buffer_fini(&value);
	}
}

/* One of them alone is left, at each place. */
static void unevaluated__of_many_items__finds_the_one_that_is_left(void **state)
{
	static const char schema[] = "{'contains':{'const':1},'unevaluatedItems':false}";
	static report_text report;

	(void)state;
	for (unsigned count = 63; count <= 130; count += count == 65 ? 63 : 1)
		for (unsigned at = 0; at < count; at++) {
			struct buffer value;
			char expected[80];

			buffer_init(&value, 10000);
			for (unsigned i = 0; i < count; i++)
				buffer_printf(&value, "%s%d", i ? "," : "[", i != at);
			buffer_append_string(&value, "]");
			assert_int_equal(check(DOCUMENT_JSON, schema, value.data, report), -EINVAL);
			without_places(report);
			snprintf(expected, sizeof(expected), "/%u: this item is not allowed here",
				at);
			assert_string_equal(report, expected);
			buffer_fini(&value);
		}
}

static void references__lead_to_every_place_of_a_schema(void **state)
{
	static const struct row rows[] = {
		{"{'properties':{'a':{'$ref':'#/$defs/x'}},'$defs':{'x':{'type':'null'}}}",
			"{'a':1}", "/a: must be null, but is 1"},
		{"{'$ref':'#/definitions/x','definitions':{'x':{'type':'null'}}}", "1",
			"must be null, but is 1"},
		{"{'$ref':'#/$defs/x','maximum':3,'$defs':{'x':{'minimum':5}}}", "4",
			"4 is more than the maximum 3\n4 is less than the minimum 5"},
		{"{'properties':{'a':{'$ref':'#'}},'additionalProperties':false}",
			"{'a':{'a':{'b':1}}}", "/a/a/b: this key is not allowed here"},
		{"{'properties':{'a':{'$ref':''}},'additionalProperties':false}", "{'a':{'b':1}}",
			"/a/b: this key is not allowed here"},
		{"{'prefixItems':[{'type':'null'},{'$ref':'#/prefixItems/0'}]}", "[null,2]",
			"/1: must be null, but is 2"},
		{"{'allOf':[{'properties':{'x':{'$ref':'#/allOf/1'}}},true]}", "{'x':1}", NULL},
		{"{'$defs':{'a/b':{'const':1},'m~n':{'const':2},'p%q':{'const':3},'q ':false},"
		 "'prefixItems':[{'$ref':'#/$defs/a~1b'},{'$ref':'#/$defs/m~0n'},"
		 "{'$ref':'#/$defs/p%25q'},{'$ref':'#/%24defs/q%20'}]}",
			"[9,9,9,9]",
			"/0: must be 1, but is 9\n/1: must be 2, but is 9\n"
			"/2: must be 3, but is 9\n/3: no value is allowed here"},
		{"{'$ref':'#/$defs/%6f%5F%4f%2d%6E','$defs':{'o_O-n':{'const':1}}}", "2",
			"must be 1, but is 2"},
		{"{'$ref':'#/$defs/~01','$defs':{'~1':{'const':1},'/':false}}", "1", NULL},
		{"{'$ref':'#/$defs/','$defs':{'':{'const':1}}}", "2", "must be 1, but is 2"},
		{"{'$ref':'#here','$defs':{'x':{'$anchor':'here','type':'null'}}}", "1",
			"must be null, but is 1"},
		{"{'items':{'$dynamicRef':'#here'},"
		 "'$defs':{'x':{'$dynamicAnchor':'here','type':'null'}}}",
			"[1]", "/0: must be null, but is 1"},
		{"{'$ref':'#here','$defs':{'x':{'$dynamicAnchor':'here','type':'null'}}}", "1",
			"must be null, but is 1"},
		{"{'$dynamicRef':'#/$defs/x','$defs':{'x':{'type':'null'}}}", "1",
			"must be null, but is 1"},
		{"{'$id':'https://example.com/s.json','$ref':'https://example.com/s.json#/$defs/x',"
		 "'$defs':{'x':{'type':'null'}}}",
			"1", "must be null, but is 1"},
		{"{'$id':'https://example.com/s#','items':{'$ref':'https://example.com/s'},"
		 "'maxItems':1}",
			"[[1,2]]", "/0: has 2 items, at most 1 allowed"},
		{"{'properties':{'$ref':{'type':'string'}}}", "{'$ref':5}",
			"/$ref: must be a string, but is 5: put it in quotes"},
		{"{'$defs':{'t':{'properties':{'v':{'type':'integer'},"
		 "'kids':{'items':{'$ref':'#/$defs/t'}}}}},'$ref':'#/$defs/t'}",
			"{'v':1,'kids':[{'v':2,'kids':[{'v':'x'}]},{'v':'y'}]}",
			"/kids/0/kids/0/v: must be an integer, but is 'x'\n"
			"/kids/1/v: must be an integer, but is 'y'"},
		{"{'const':{'$ref':'#/nowhere'}}", "{'$ref':'#/nowhere'}", NULL},
		{"{'$ref':'#/then','then':{'const':1}}", "2", "must be 1, but is 2"},
	};

	(void)state;
	check_rows(rows);
}

static void annotations__ask_for_nothing(void **state)
{
	static const struct row rows[] = {
		{"{'$schema':'https://json-schema.org/draft/2020-12/schema','$id':'urn:x',"
		 "'$comment':'c','title':'t','description':'d','default':5,'examples':[1],"
		 "'deprecated':true,'readOnly':true,'writeOnly':false,'format':'ipv4',"
		 "'contentEncoding':'base64','contentMediaType':'text/plain',"
		 "'contentSchema':{'type':'null'},'$vocabulary':{},'$anchor':'a'}",
			"'not an address'", NULL},
		{"{'$schema':'https://json-schema.org/draft/2020-12/schema#'}", "1", NULL},
		{"{'type':'integer','x-dependencies':{'a':['b']}}", "'x'",
			"must be an integer, but is 'x'"},
	};

	(void)state;
	check_rows(rows);
}

/* ---- schemas that are refused ---- */

static void schema__that_is_wrong__is_refused_with_a_sentence(void **state)
{
#define OUTSIDE                                                                                    \
	"lies in another document, and none of that $id or name was given: put it into schema_dir"
#define DRAFT_ERROR                                                                                \
	": only draft 2020-12 is understood, write https://json-schema.org/draft/2020-12/schema"
	static const struct {
		const char *schema, *why;
	} rows[] = {
		{"5", "must be a mapping or true or false, but is 5"},
		{"[]", "must be a mapping or true or false, but is a list"},
		{"null", "must be a mapping or true or false, but is null"},
		{"{'not':5}", "/not: must be a mapping or true or false, but is 5"},
		{"{'items':[true]}",
			"/items: must be a mapping or true or false, but is a list: name it "
			"prefixItems"},
		{"{'properties':{'a':'x'}}",
			"/properties/a: must be a mapping or true or false, but is 'x'"},
		{"{'properties':[]}", "/properties: must be a mapping, but is a list"},
		{"{'patternProperties':{'a':1}}",
			"/patternProperties/a: must be a mapping or true or false, but is 1"},
		{"{'$defs':{'a':null}}",
			"/$defs/a: must be a mapping or true or false, but is null"},
		{"{'definitions':5}", "/definitions: must be a mapping, but is 5"},
		{"{'dependentSchemas':{'a':[]}}",
			"/dependentSchemas/a: must be a mapping or true or false, but is a list"},
		{"{'allOf':{}}", "/allOf: must be a list, but is a mapping"},
		{"{'allOf':[]}", "/allOf: must not be empty"},
		{"{'anyOf':[]}", "/anyOf: must not be empty"},
		{"{'oneOf':[]}", "/oneOf: must not be empty"},
		{"{'prefixItems':[]}", "/prefixItems: must not be empty"},
		{"{'anyOf':[true,3]}", "/anyOf/1: must be a mapping or true or false, but is 3"},
		{"{'type':5}", "/type: must be a list or a string, but is 5"},
		{"{'type':[]}", "/type: must not be empty"},
		{"{'type':[5]}", "/type/0: must be a string, but is 5"},
		{"{'type':'interger'}",
			"/type: 'interger' is no type: write null, boolean, integer, number, "
			"string, array or object"},
		{"{'type':['string','str']}",
			"/type/1: 'str' is no type: write null, boolean, integer, number, "
			"string, array or object"},
		{"{'type':['string','null','string']}", "/type/2: 'string' is listed twice"},
		{"{'enum':5}", "/enum: must be a list, but is 5"},
		{"{'multipleOf':0}",
			"/multipleOf: must be above 0 with at most 18 digits that count, but is 0"},
		{"{'multipleOf':-2}",
			"/multipleOf: must be above 0 with at most 18 digits that count, but is "
			"-2"},
		{"{'multipleOf':-0.5}",
			"/multipleOf: must be above 0 with at most 18 digits that count, but is "
			"-0.5"},
		{"{'multipleOf':1234567890123456789}",
			"/multipleOf: must be above 0 with at most 18 digits that count, but is "
			"1234567890123456789"},
		{"{'multipleOf':'2'}", "/multipleOf: must be a number, but is '2'"},
		{"{'maximum':'5'}", "/maximum: must be a number, but is '5'"},
		{"{'exclusiveMaximum':true}", "/exclusiveMaximum: must be a number, but is true"},
		{"{'minimum':null}", "/minimum: must be a number, but is null"},
		{"{'exclusiveMinimum':[]}", "/exclusiveMinimum: must be a number, but is a list"},
		{"{'maxLength':-1}", "/maxLength: must be a whole number from 0 on, but is -1"},
		{"{'minLength':1.5}", "/minLength: must be a whole number from 0 on, but is 1.5"},
		{"{'maxItems':'1'}", "/maxItems: must be a number, but is '1'"},
		{"{'minItems':-1}", "/minItems: must be a whole number from 0 on, but is -1"},
		{"{'maxContains':-1}", "/maxContains: must be a whole number from 0 on, but is -1"},
		{"{'minContains':0.1}",
			"/minContains: must be a whole number from 0 on, but is 0.1"},
		{"{'maxProperties':-1}",
			"/maxProperties: must be a whole number from 0 on, but is -1"},
		{"{'minProperties':true}", "/minProperties: must be a number, but is true"},
		{"{'uniqueItems':1}", "/uniqueItems: must be true or false, but is 1"},
		{"{'pattern':5}", "/pattern: must be a string, but is 5"},
		{"{'pattern':'(a'}",
			"/pattern: '(a' is no regular expression: missing closing parenthesis"},
		{"{'pattern':'[b-a]'}",
			"/pattern: '[b-a]' is no regular expression: range out of order in "
			"character class"},
		{"{'pattern':'a\\\\'}",
			"/pattern: 'a\\\\' is no regular expression: \\ at end of pattern"},
		{"{'pattern':'(*UCP)a'}",
			"/pattern: '(*UCP)a' is no regular expression: using UCP is disabled by "
			"the application"},
		{"{'pattern':'\\\\C'}",
			"/pattern: '\\\\C' is no regular expression: using \\C is disabled by the "
			"application"},
		{"{'patternProperties':{'*':true}}",
			"/patternProperties/*: '*' is no regular expression: quantifier does not "
			"follow a repeatable item"},
		{"{'required':'a'}", "/required: must be a list, but is 'a'"},
		{"{'required':['a',5]}", "/required/1: must be a string, but is 5"},
		{"{'required':['a','b','a']}", "/required/2: 'a' is listed twice"},
		{"{'required':true}", "/required: must be a list, but is true"},
		{"{'dependentRequired':[]}",
			"/dependentRequired: must be a mapping, but is a list"},
		{"{'dependentRequired':{'a':'b'}}",
			"/dependentRequired/a: must be a list, but is 'b'"},
		{"{'dependentRequired':{'a':[1]}}",
			"/dependentRequired/a/0: must be a string, but is 1"},
		{"{'dependentRequired':{'a':['b','b']}}",
			"/dependentRequired/a/1: 'b' is listed twice"},
		{"{'$ref':5}", "/$ref: must be a string, but is 5"},
		{"{'$ref':'#/$defs/x'}",
			"/$ref: '#/$defs/x': there is no such place in this schema"},
		{"{'$ref':'#x'}", "/$ref: '#x': there is no such place in this schema"},
		{"{'$ref':'#/%zz'}", "/$ref: '#/%zz': there is no such place in this schema"},
		{"{'$ref':'#/%0'}", "/$ref: '#/%0': there is no such place in this schema"},
		{"{'$ref':'#/%00'}", "/$ref: '#/%00': there is no such place in this schema"},
		{"{'$ref':'#/allOf/01','allOf':[true,true]}",
			"/$ref: '#/allOf/01': there is no such place in this schema"},
		{"{'$ref':'#/allOf/2','allOf':[true,true]}",
			"/$ref: '#/allOf/2': there is no such place in this schema"},
		{"{'$ref':'#/allOf/-','allOf':[true,true]}",
			"/$ref: '#/allOf/-': there is no such place in this schema"},
		{"{'$ref':'#/title/x','title':'t'}",
			"/$ref: '#/title/x': there is no such place in this schema"},
		{"{'$ref':'#/properties','properties':{}}",
			"/$ref: '#/properties' does not name a schema: put it under "
			"$defs"},
		{"{'items':{'$ref':'#/components/x'},'components':{'x':{}}}",
			"/items/$ref: '#/components/x' does not name a schema: put it "
			"under $defs"},
		{"{'$ref':'#/const','const':{}}",
			"/$ref: '#/const' does not name a schema: put it under $defs"},
		{"{'$ref':'other.json'}", "/$ref: 'other.json' " OUTSIDE},
		{"{'$ref':'https://json-schema.org/draft/2020-12/schema'}",
			"/$ref: 'https://json-schema.org/draft/2020-12/sc'... " OUTSIDE},
		{"{'$id':'https://a/b','$ref':'https://a/bc'}", "/$ref: 'https://a/bc' " OUTSIDE},
		{"{'$dynamicRef':'x#y'}", "/$dynamicRef: 'x#y' " OUTSIDE},
		{"{'$ref':'#'}",
			"/$ref: leads back to where it came from without going into the document: "
			"the check would never end"},
		{"{'allOf':[{'$ref':'#'}]}",
			"/allOf/0/$ref: leads back to where it came from without going into the "
			"document: the check would never end"},
		{"{'$ref':'#/$defs/a','$defs':{'a':{'anyOf':[true,{'$ref':'#/$defs/b'}]},"
		 "'b':{'not':{'$ref':'#/$defs/a'}}}}",
			"/$defs/b/not/$ref: leads back to where it came from without going into "
			"the document: the check would never end"},
		{"{'$defs':{'a':{'dependentSchemas':{'k':{'$ref':'#/$defs/a'}}}}}",
			"/$defs/a/dependentSchemas/k/$ref: leads back to where it came from "
			"without going into the document: the check would never end"},
		{"{'if':true,'then':{'if':false,'else':{'$ref':'#'}}}",
			"/then/else/$ref: leads back to where it came from without going into the "
			"document: the check would never end"},
		{"{'oneOf':[{'if':{'$dynamicRef':'#/oneOf/0'}}]}",
			"/oneOf/0/if/$dynamicRef: leads back to where it came from without going "
			"into the document: the check would never end"},
		{"{'$anchor':'1a'}",
			"/$anchor: '1a' is no name of an anchor: letters, digits, - _ . and first "
			"a letter or _"},
		{"{'$anchor':''}",
			"/$anchor: '' is no name of an anchor: letters, digits, - _ . and first a "
			"letter or _"},
		{"{'$dynamicAnchor':'a/b'}",
			"/$dynamicAnchor: 'a/b' is no name of an anchor: letters, digits, - _ . "
			"and first a letter or _"},
		{"{'$anchor':'a','not':{'$anchor':'a'}}", "/not/$anchor: 'a' names two schemas"},
		{"{'$anchor':'a','not':{'$dynamicAnchor':'a'}}",
			"/not/$dynamicAnchor: 'a' names two schemas"},
		{"{'$defs':{'x':{'$anchor':'a'},'y':{'$anchor':'b'},'z':{'$anchor':'b'}}}",
			"/$defs/z/$anchor: 'b' names two schemas"},
		{"{'$id':'x','not':{'$id':'x'}}", "/not/$id: 'x' names two schemas"},
		{"{'$id':'http://h/a/b','not':{'$id':'/a/c'},'if':{'$id':'./c'}}",
			"/if/$id: './c' names two schemas"},
		{"{'$id':'#a'}", "/$id: '#a': an $id has no fragment: write $anchor for it"},
		{"{'not':{'$id':'x#a'}}",
			"/not/$id: 'x#a': an $id has no fragment: write $anchor for it"},
		{"{'$anchor':'a','not':{'$id':'x','$ref':'#a'}}",
			"/not/$ref: '#a': there is no such place in this schema"},
		{"{'$ref':'#a','not':{'$id':'x','$anchor':'a'}}",
			"/$ref: '#a': there is no such place in this schema"},
		{"{'$ref':'x#','not':{'$id':'x','$ref':'#'}}",
			"/not/$ref: leads back to where it came from without going into the "
			"document: the check would never end"},
		{"{'items':{'type':'null','$dynamicRef':'#d'},'$dynamicAnchor':'d',"
		 "'$defs':{'x':{'$id':'x','$dynamicAnchor':'d'}}}",
			"/items/$dynamicRef: '#d' may lead to 2 schemas, which is not supported: "
			"give each $dynamicAnchor a name of its own"},
		{"{'dependencies':{}}",
			"/dependencies: this keyword is of an older draft: write dependentRequired "
			"for names, dependentSchemas for schemas"},
		{"{'items':{'additionalItems':false}}",
			"/items/additionalItems: this keyword is of an older draft: write items, "
			"beside prefixItems"},
		{"{'$recursiveRef':'#'}",
			"/$recursiveRef: this keyword is of an older draft: write $dynamicRef"},
		{"{'$recursiveAnchor':true}",
			"/$recursiveAnchor: this keyword is of an older draft: write "
			"$dynamicAnchor"},
		{"{'divisibleBy':2}",
			"/divisibleBy: this keyword is of an older draft: write multipleOf"},
		{"{'disallow':'string'}",
			"/disallow: this keyword is of an older draft: write not"},
		{"{'extends':{}}", "/extends: this keyword is of an older draft: write allOf"},
		{"{'$id':5}", "/$id: must be a string, but is 5"},
		{"{'$schema':'http://json-schema.org/draft-07/schema#'}",
			"/$schema: 'http://json-schema.org/draft-07/schema#'" DRAFT_ERROR},
		{"{'$schema':'http://json-schema.org/draft-04/schema#'}",
			"/$schema: 'http://json-schema.org/draft-04/schema#'" DRAFT_ERROR},
		{"{'$schema':'https://json-schema.org/draft/2019-09/schema'}",
			"/$schema: 'https://json-schema.org/draft/2019-09/sc'..." DRAFT_ERROR},
		{"{'$schema':''}", "/$schema: ''" DRAFT_ERROR},
		{"{'title':5}", "/title: must be a string, but is 5"},
		{"{'examples':{}}", "/examples: must be a list, but is a mapping"},
		{"{'deprecated':'yes'}", "/deprecated: must be true or false, but is 'yes'"},
		{"{'format':null}", "/format: must be a string, but is null"},
		{"{'contentSchema':1}",
			"/contentSchema: must be a mapping or true or false, but is 1"},
		{"{'additionalProperties':'no'}",
			"/additionalProperties: must be a mapping or true or false, but is 'no'"},
		{"{'unevaluatedItems':[]}",
			"/unevaluatedItems: must be a mapping or true or false, but is a list"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		char *expected = quoted(rows[i].why);

		for (int type = DOCUMENT_YAML; type <= DOCUMENT_JSON; type++) {
			struct pair p = parse((enum document_type)type, rows[i].schema, "1");
			struct schema *s = NULL;
			char why[FILE_WHY] = "";
			int r = schema_new(p.schema, NULL, 0, &s, why);

			if (strncmp(why, "line 1, column ", 15) != 0)
				r = 0; /* without its place */
			without_places(why);
			if (r != -EINVAL || strcmp(why, expected) != 0)
				print_error("%s\n  expected %s\n  returned %d: %s\n",
					rows[i].schema, expected, r, why);
			assert_int_equal(r, -EINVAL);
			assert_null(s);
			assert_string_equal(why, expected);
			document_free(p.document);
		}
		free(expected);
	}
}

/* ---- several resources, several files ---- */

#define MAX_FILES 4

struct among {
	const char *schema, *good, *bad;
	const char *files[MAX_FILES][2]; /* name and text */
};

/* 0 and *ret_schema, or what schema_new() says. All files stay in *ret_documents. */
static int compile_among(const struct among *a, struct document *ret_documents[MAX_FILES + 1],
	struct schema **ret_schema, char why[FILE_WHY])
{
	struct schema_file files[MAX_FILES];
	struct pair p = parse(DOCUMENT_JSON, a->schema, "1");
	size_t count = 0;

	memset(ret_documents, 0, (MAX_FILES + 1) * sizeof(*ret_documents));
	ret_documents[MAX_FILES] = p.document;
	for (; count < MAX_FILES && a->files[count][0]; count++) {
		struct pair f = parse(DOCUMENT_JSON, a->files[count][1], "1");

		ret_documents[count] = f.document;
		files[count] = (struct schema_file){a->files[count][0], f.schema};
	}
	return schema_new(p.schema, files, count, ret_schema, why);
}

static void free_among(struct document *documents[MAX_FILES + 1])
{
	for (size_t i = 0; i <= MAX_FILES; i++)
		document_free(documents[i]);
}

/* RFC 3986, 5.4, without the fragments; and bases that are less. */
static void uri__is_resolved_as_in_the_standard(void **state)
{
#define BASE "http://a/b/c/d;p?q"
	static const struct {
		const char *base, *reference, *uri;
	} rows[] = {
		{BASE, "g:h", "g:h"},
		{BASE, "g", "http://a/b/c/g"},
		{BASE, "./g", "http://a/b/c/g"},
		{BASE, "g/", "http://a/b/c/g/"},
		{BASE, "/g", "http://a/g"},
		{BASE, "//g", "http://g"},
		{BASE, "?y", "http://a/b/c/d;p?y"},
		{BASE, "g?y", "http://a/b/c/g?y"},
		{BASE, ";x", "http://a/b/c/;x"},
		{BASE, "g;x?y", "http://a/b/c/g;x?y"},
		{BASE, "", BASE},
		{BASE, ".", "http://a/b/c/"},
		{BASE, "./", "http://a/b/c/"},
		{BASE, "..", "http://a/b/"},
		{BASE, "../", "http://a/b/"},
		{BASE, "../g", "http://a/b/g"},
		{BASE, "../..", "http://a/"},
		{BASE, "../../", "http://a/"},
		{BASE, "../../g", "http://a/g"},
		{BASE, "../../../g", "http://a/g"},
		{BASE, "../../../../g", "http://a/g"},
		{BASE, "/./g", "http://a/g"},
		{BASE, "/../g", "http://a/g"},
		{BASE, "g.", "http://a/b/c/g."},
		{BASE, ".g", "http://a/b/c/.g"},
		{BASE, "g..", "http://a/b/c/g.."},
		{BASE, "..g", "http://a/b/c/..g"},
		{BASE, "./../g", "http://a/b/g"},
		{BASE, "./g/.", "http://a/b/c/g/"},
		{BASE, "g/./h", "http://a/b/c/g/h"},
		{BASE, "g/../h", "http://a/b/c/h"},
		{BASE, "g;x=1/./y", "http://a/b/c/g;x=1/y"},
		{BASE, "g;x=1/../y", "http://a/b/c/y"},
		{BASE, "g?y/./x", "http://a/b/c/g?y/./x"},
		{BASE, "g?y/../x", "http://a/b/c/g?y/../x"},
		{"http://a", "g", "http://a/g"},
		{"http://a?q", "g", "http://a/g"},
		{"", "g", "g"},
		{"", "d/../g", "g"},
		{"", "../g", "g"},
		{"", "", ""},
		{"d/e", "g", "d/g"},
		{"d/e", "/g", "/g"},
		{"urn:a:b", "g", "urn:g"},
		{"urn:a:b", "", "urn:a:b"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		const char *reference = rows[i].reference;
		char *uri = schema_uri_resolve(rows[i].base, reference, strlen(reference));

		assert_non_null(uri);
		assert_string_equal(uri, rows[i].uri);
		free(uri);
	}
#undef BASE
	assert_true(schema_uri_is_file("http://h/d/a.json?x", "a.json"));
	assert_true(schema_uri_is_file("a.json", "a.json"));
	assert_true(schema_uri_is_file("http://h/d/a.json", "d/a.json"));
	assert_false(schema_uri_is_file("http://h/ba.json", "a.json"));
	assert_false(schema_uri_is_file("http://h/x?/a.json", "a.json"));
	assert_false(schema_uri_is_file("n", "a.json"));
}

static void references__lead_to_resources_and_files(void **state)
{
	static const struct among rows[] = {
		/* $id below the root */
		{"{'$ref':'x','$defs':{'a':{'$id':'x','type':'null'}}}", "null", "1", {{0}}},
		{"{'$ref':'x#','$defs':{'a':{'$id':'x#','type':'null'}}}", "null", "1", {{0}}},
		{"{'$id':'http://h/d/main','$ref':'x','$defs':{'a':{'$id':'x','type':'null'}}}",
			"null", "1", {{0}}},
		{"{'$id':'http://h/d/main','$ref':'http://h/d/x',"
		 "'$defs':{'a':{'$id':'x','type':'null'}}}",
			"null", "1", {{0}}},
		{"{'$id':'http://h/d/main','$ref':'/x','$defs':{'a':{'$id':'../x','type':'null'}}}",
			"null", "1", {{0}}},
		{"{'$id':'http://h/d/main','$ref':'//g/x','$defs':{'a':{'$id':'http://g/x',"
		 "'type':'null'}}}",
			"null", "1", {{0}}},
		{"{'$id':'http://h/d/main?q','$ref':'?r','$defs':{'a':{'$id':'main?r',"
		 "'type':'null'}}}",
			"null", "1", {{0}}},
		/* the path stays as it is where a reference has none */
		{"{'$id':'http://h/a/../b','$ref':'?r','$defs':{'a':{'$id':'http://h/a/../b?r',"
		 "'type':'null'}}}",
			"null", "1", {{0}}},
		{"{'$id':'urn:a:b','$ref':'urn:a:c','$defs':{'a':{'$id':'urn:a:c','type':'null'}}}",
			"null", "1", {{0}}},
		{"{'$id':'urn:a:b','$ref':'urn:a:b#/$defs/a','$defs':{'a':{'type':'null'}}}",
			"null", "1", {{0}}},
		/* without an $id it is at the empty URI itself */
		{"{'type':['array','null'],'items':{'$ref':'.'}}", "[[null]]", "[1]", {{0}}},
		/* pointers and anchors are of their resource, and bases go down */
		{"{'$ref':'x','$defs':{'n':{'type':'integer'},'a':{'$id':'x','$ref':'#/$defs/n',"
		 "'$defs':{'n':{'type':'null'}}}}}",
			"null", "1", {{0}}},
		{"{'$ref':'x','$defs':{'n':{'$anchor':'n','type':'integer'},'a':{'$id':'x',"
		 "'$ref':'#n','$defs':{'n':{'$anchor':'n','type':'null'}}}}}",
			"null", "1", {{0}}},
		{"{'$ref':'x#n','$defs':{'n':{'$anchor':'n','type':'integer'},'a':{'$id':'x',"
		 "'$defs':{'n':{'$anchor':'n','type':'null'}}}}}",
			"null", "1", {{0}}},
		{"{'$ref':'d/x','$defs':{'a':{'$id':'d/y','$defs':{'b':{'$id':'x',"
		 "'type':'null'}}}}}",
			"null", "1", {{0}}},
		{"{'$ref':'#/$defs/a/$defs/b','$defs':{'a':{'$id':'d/y','$defs':{'b':{"
		 "'type':'null'}}}}}",
			"null", "1", {{0}}},
		{"{'allOf':[{'$id':'x','$anchor':'n','type':'number'},{'$ref':'#n'}],"
		 "'$defs':{'n':{'$anchor':'n','type':'integer'}}}",
			"1", "1.5", {{0}}},
		/* a schema in a value is none */
		{"{'const':{'$id':'x'},'$defs':{'a':{'$id':'x'}}}", "{'$id':'x'}", "1", {{0}}},
		/* one target alone */
		{"{'$dynamicRef':'x#d','$defs':{'a':{'$id':'x','$dynamicAnchor':'d','type':'null'}}"
		 "}",
			"null", "1", {{0}}},
		{"{'items':{'$dynamicRef':'#/$defs/a'},'$defs':{'a':{'$dynamicAnchor':'d',"
		 "'type':'null'},'b':{'$id':'x','$dynamicAnchor':'d'}}}",
			"[null]", "[1]", {{0}}},
		{"{'items':{'$dynamicRef':'#d'},'$defs':{'a':{'$anchor':'d','type':'null'},"
		 "'b':{'$id':'x','$dynamicAnchor':'d'},'c':{'$id':'y','$dynamicAnchor':'d'}}}",
			"[null]", "[1]", {{0}}},
		/* files, by name */
		{"{'$ref':'defs.json'}", "null", "1", {{"defs.json", "{'type':'null'}"}}},
		{"{'$ref':'defs.json#/$defs/n'}", "null", "1",
			{{"defs.json", "{'$defs':{'n':{'type':'null'}}}"}}},
		{"{'$ref':'./defs.json#n'}", "null", "1",
			{{"defs.json", "{'$defs':{'n':{'$anchor':'n','type':'null'}}}"}}},
		{"{'$id':'https://h/s/main.json','$ref':'defs.json'}", "null", "1",
			{{"defs.json", "{'type':'null'}"}}},
		{"{'$ref':'a.json'}", "null", "1",
			{{"a.json", "{'$ref':'b.yaml#/$defs/n'}"},
				{"b.yaml", "{'$defs':{'n':{'type':'null'}}}"}}},
		{"{'$ref':'a.json'}", "null", "1",
			{{"b.json", "false"}, {"a.json", "{'type':'null'}"},
				{"unused.json", "{'type':'nothing'}"}}},
		/* by their $id, which goes before a name */
		{"{'$ref':'https://h/x'}", "null", "1",
			{{"x", "false"}, {"a.json", "{'$id':'https://h/x','type':'null'}"}}},
		{"{'$ref':'https://h/x#n'}", "null", "1",
			{{"a.json", "{'$id':'https://h/x#','$ref':'y','$defs':{'y':{'$id':'y',"
				    "'type':'integer'},'n':{'$anchor':'n','type':'null'}}}"}}},
		{"{'allOf':[{'$ref':'a.json'},{'$ref':'https://h/x'}]}", "null", "1",
			{{"a.json", "{'$id':'https://h/x','type':'null'}"}}},
		{"{'allOf':[{'$ref':'https://h/x'},{'$ref':'a.json'}]}", "null", "1",
			{{"a.json", "{'$id':'https://h/x','type':'null'}"}}},
		/* round and round, down the document */
		{"{'type':'array','items':{'$ref':'a.json'}}", "[[[]]]", "[[[1]]]",
			{{"a.json", "{'type':'array','items':{'$ref':'b.json'}}"},
				{"b.json", "{'type':'array','items':{'$ref':'a.json'}}"}}},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct document *documents[MAX_FILES + 1];
		struct schema *s = NULL;
		char why[FILE_WHY] = "";

		if (compile_among(&rows[i], documents, &s, why))
			fail_msg("%s: %s", rows[i].schema, why);
		for (int bad = 0; bad < 2; bad++) {
			struct pair v = parse(DOCUMENT_JSON, "1", bad ? rows[i].bad : rows[i].good);
			struct buffer out;

			buffer_init(&out, SCHEMA_MAX_REPORT);
			if (schema_check(s, v.value, NULL, &out) != (bad ? -EINVAL : 0))
				fail_msg("%s: %s", rows[i].schema, bad ? "bad" : out.data);
			buffer_fini(&out);
			document_free(v.document);
		}
		schema_free(s);
		free_among(documents);
	}
}

static void references__that_lead_to_a_bad_file__are_refused_with_its_name(void **state)
{
	static const struct {
		struct among among;
		const char *why;
	} rows[] = {
		{{"{'$ref':'a.json'}", NULL, NULL, {{"a.json", "{'items':{'type':'x'}}"}}},
			"a.json: /items/type: 'x' is no type: write null, boolean, integer, "
			"number, "
			"string, array or object"},
		{{"{'$ref':'a.json#/x'}", NULL, NULL, {{"a.json", "{}"}}},
			"/$ref: 'a.json#/x': there is no such place in this schema"},
		{{"{'$ref':'a.json'}", NULL, NULL, {{"a.json", "{'$ref':'b.json'}"}}},
			"a.json: /$ref: 'b.json' " OUTSIDE},
		{{"{'$ref':'a.json'}", NULL, NULL, {{"xa.json", "{}"}, {"json", "{}"}}},
			"/$ref: 'a.json' " OUTSIDE},
		{{"{'$ref':'a.json'}", NULL, NULL,
			 {{"a.json", "{'$ref':'b.json'}"}, {"b.json", "{'$ref':'a.json'}"}}},
			"b.json: /$ref: leads back to where it came from without going into the "
			"document: the check would never end"},
		{{"{'allOf':[{'$ref':'a.json'},{'$ref':'b.json'}]}", NULL, NULL,
			 {{"a.json", "{'$id':'http://h/x'}"}, {"b.json", "{'$id':'http://h/x'}"}}},
			"b.json: /$id: 'http://h/x' names two schemas"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct document *documents[MAX_FILES + 1];
		char why[FILE_WHY] = "", *expected = quoted(rows[i].why), *place;
		struct schema *s = NULL;

		assert_int_equal(compile_among(&rows[i].among, documents, &s, why), -EINVAL);
		place = strstr(why, ".json: line ");
		without_places(place ? place + strlen(".json: ") : why);
		assert_string_equal(why, expected);
		free(expected);
		free_among(documents);
	}
}

static void resources__are_bounded(void **state)
{
	struct buffer schema;

	(void)state;
	/* the root is one */
	for (int count = SCHEMA_MAX_RESOURCES - 1; count <= SCHEMA_MAX_RESOURCES; count++) {
		struct schema *s = NULL;
		char why[FILE_WHY] = "";
		struct pair p;

		buffer_init(&schema, 1u << 20);
		for (int i = 0; i < count; i++)
			buffer_printf(&schema, "%s{'$id':'a%d'}", i ? "," : "{'prefixItems':[", i);
		buffer_append_string(&schema, "]}");
		p = parse(DOCUMENT_JSON, schema.data, "1");
		assert_int_equal(schema_new(p.schema, NULL, 0, &s, why),
			count < SCHEMA_MAX_RESOURCES ? 0 : -EINVAL);
		if (count == SCHEMA_MAX_RESOURCES)
			assert_non_null(strstr(
				why, "/prefixItems/999: more than 1000 schemas with an $id"));
		schema_free(s);
		document_free(p.document);
		buffer_fini(&schema);
	}
}

static void schema__of_nan__is_refused(void **state)
{
	static const char *const schemas[] = {"{maximum: .nan}", "{minimum: .nan}",
		"{multipleOf: .nan}", "{multipleOf: .inf}", "{maxLength: .nan}",
		"{minItems: .inf}"};

	(void)state;
	for (size_t i = 0; i < COUNT(schemas); i++) {
		struct pair p = parse(DOCUMENT_YAML, schemas[i], "1");
		struct schema *s = NULL;
		char why[FILE_WHY];

		assert_int_equal(schema_new(p.schema, NULL, 0, &s, why), -EINVAL);
		assert_non_null(strstr(why, "must be"));
		document_free(p.document);
	}
}

static void unknown__keywords__are_told_once(void **state)
{
	static const struct {
		const char *schema, *unknown;
	} rows[] = {
		{"{'type':'null','title':'t'}", ""},
		{"{'tpye':'null'}", "'tpye'"},
		{"{'z':1,'properties':{'a':{'z':1,'b':2},'dependencies':true},'id':'x'}",
			"'z', 'id', 'b'"},
		{"{'properties':{'foo':true},'const':{'x':1},'enum':[{'x':1}],'default':{'x':1}}",
			""},
		{"{'a\\nb':1}", "'a\\nb'"},
		{"{'a':1,'b':1,'c':1,'d':1,'e':1,'f':1,'g':1,'h':1,'i':1,'j':1,'k':1}",
			"'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j'"},
		{"{'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa':1}",
			"'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'..."},
		{"true", ""},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct pair p = parse(DOCUMENT_JSON, rows[i].schema, "1");
		struct schema *s = compiled(p.schema);
		char *expected = quoted(rows[i].unknown);

		assert_string_equal(schema_unknown(s), expected);
		free(expected);
		schema_free(s);
		document_free(p.document);
	}
}

/* ---- errors for people ---- */

static void errors__have_the_place_of_the_value_or_the_key(void **state)
{
	static const char schema[] =
		"{'properties': {'db': {'properties': {'port': {'maximum': "
		"65535}, 'name': {'type': 'string'}}, 'required': ['host'], "
		"'additionalProperties': false}, 'tags': {'items': {'maxLength': "
		"3}}}, 'propertyNames': {'pattern': '^[a-z]+$'}}";
	static const char yaml[] = "# comment\n"
				   "tags: [abc, abcd]\n"
				   "db:\n"
				   "  port: 70000\n"
				   "  name: 5\n"
				   "  prot:   1\n"
				   "Big: 1\n";
	static const char expected[] =
		"line 2, column 13: /tags/1: has 4 characters, at most 3 allowed\n"
		"line 4, column 3: /db: the key \"host\" is missing\n"
		"line 4, column 9: /db/port: 70000 is more than the maximum 65535\n"
		"line 5, column 9: /db/name: must be a string, but is 5: put it in quotes\n"
		"line 6, column 3: /db/prot: this key is not allowed here\n"
		"line 7, column 1: /Big: its key: \"Big\" does not match the pattern "
		"\"^[a-z]+$\"\n";
	struct pair p = parse(DOCUMENT_JSON, schema, "1");
	struct schema *s = compiled(p.schema);
	struct document *d = NULL;
	struct document_error e;
	char shown[SCHEMA_MAX_REPORT];
	struct buffer out;

	(void)state;
	assert_int_equal(document_parse(DOCUMENT_YAML, yaml, strlen(yaml), 0, &d, &e), 0);
	buffer_init(&out, SCHEMA_MAX_REPORT);
	assert_int_equal(schema_check(s, document_root(d), NULL, &out), -EINVAL);
	assert_string_equal(
		sentence_show(shown, sizeof(shown), out.data, AUDIENCE_OPERATOR), expected);
	buffer_clear(&out); /* what is there already stays */
	buffer_append_string(&out, "before: ");
	assert_int_equal(schema_check(s, document_root(d), NULL, &out), -EINVAL);
	assert_int_equal(strncmp(out.data, "before: line 2", 14), 0);
	buffer_fini(&out);
	document_free(d);
	schema_free(s);
	document_free(p.document);
}

static void schema__of_yaml__has_its_errors_with_places(void **state)
{
	static const char yaml[] = "type: object\nproperties:\n  port:\n    type: int\n";
	struct document *d = NULL;
	struct document_error e;
	struct schema *s = NULL;
	char why[FILE_WHY];

	(void)state;
	assert_int_equal(document_parse(DOCUMENT_YAML, yaml, strlen(yaml), 0, &d, &e), 0);
	assert_int_equal(schema_new(document_root(d), NULL, 0, &s, why), -EINVAL);
	assert_string_equal(why, "line 4, column 11: /properties/port/type: \"int\" is no type: "
				 "write null, boolean, integer, number, string, array or object");
	document_free(d);
}

static void errors__above_ten__are_counted(void **state)
{
	static report_text report;
	struct buffer value;

	(void)state;
	for (int n = 9; n <= 12; n++) {
		unsigned lines = 1;

		buffer_init(&value, 1000);
		for (int i = 0; i < n; i++)
			buffer_printf(&value, "%s'x'", i ? "," : "[");
		buffer_append_string(&value, "]");
		assert_int_equal(
			check(DOCUMENT_JSON, "{'items':{'type':'null'}}", value.data, report),
			-EINVAL);
		for (const char *p = report; *p; p++)
			lines += *p == '\n';
		assert_int_equal(lines, n <= 10 ? n : 11);
		assert_true(!strstr(report, "and ") == (n <= 10));
		if (n > 10)
			assert_string_equal(
				strrchr(report, '\n'), n == 11 ? "\nand 1 more" : "\nand 2 more");
		buffer_fini(&value);
	}
}

static void values_and_paths__are_shortened_and_made_printable(void **state)
{
	static const struct row rows[] = {
		{"{'const':1}", "'1234567890123456789012345678901234567890'",
			"must be 1, but is '1234567890123456789012345678901234567890'"},
		{"{'const':1}", "'12345678901234567890123456789012345678901'",
			"must be 1, but is '1234567890123456789012345678901234567890'..."},
		{"{'const':1}",
			"'\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5"
			"\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5"
			"\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5"
			"\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5"
			"\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5"
			"\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5"
			"\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5xyz'",
			"must be 1, but is "
			"'\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5"
			"\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5"
			"\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5"
			"\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5"
			"\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5"
			"\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5"
			"\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5'..."},
		{"{'const':1}", "'a\\tb\\n\\u0001'", "must be 1, but is 'a\\tb\\n\\u0001'"},
		{"{'additionalProperties':false}", "{'a\\nb\\u007f':1}",
			"/a?b?: this key is not allowed here"},
	};
	static report_text report;
	struct buffer value;

	(void)state;
	check_rows(rows);
	buffer_init(&value, 1u << 20); /* choices of 3 bytes a character: cut at a whole one */
	buffer_append_string(&value, "{'enum':[");
	for (int i = 0; i < 8; i++) {
		buffer_append_string(&value, i ? ",'" : "'");
		for (int k = 0; k < 40; k++)
			buffer_append_string(&value, "\xe6\x97\xa5");
		buffer_append_string(&value, "'");
	}
	buffer_append_string(&value, "]}");
	assert_int_equal(check(DOCUMENT_JSON, value.data, "1", report), -EINVAL);
	assert_true(strlen(report) < 560);
	assert_string_equal(report + strlen(report) - 9, "\xe6\x97\xa5\xe6\x97\xa5...");
	buffer_clear(&value); /* a key of 6,000 bytes in characters of 3 */
	buffer_append_string(&value, "{'");
	for (int i = 0; i < 2000; i++)
		buffer_append_string(&value, "\xe6\x97\xa5");
	buffer_append_string(&value, "':{'k':1}}");
	assert_int_equal(
		check(DOCUMENT_JSON, "{'additionalProperties':{'additionalProperties':false}}",
			value.data, report),
		-EINVAL);
	without_places(report);
	assert_int_equal(strncmp(report, "...\xe6\x97\xa5\xe6\x97\xa5", 9), 0);
	assert_non_null(strstr(report, "\xe6\x97\xa5/k: this key is not allowed here"));
	assert_true(strlen(report) < 300);
	buffer_fini(&value);
}

/* A list of long texts that a schema of long texts refuses in many ways. */
static void report__at_its_longest__keeps_its_bound(void **state)
{
	static report_text report;
	struct buffer schema, value, small;
	struct pair p;
	struct schema *s;

	(void)state;
	buffer_init(&schema, 1u << 20);
	buffer_init(&value, 1u << 20);
	buffer_append_string(&schema, "{'items':{'anyOf':[");
	for (int i = 0; i < 20; i++) {
		buffer_printf(&schema, "%s{'anyOf':[{'enum':[", i ? "," : "");
		for (int k = 0; k < 20; k++)
			buffer_printf(&schema, "%s'%0100d'", k ? "," : "", k);
		buffer_append_string(
			&schema, "]},{'const':'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'}]}");
	}
	buffer_append_string(&schema, "]}}");
	for (int i = 0; i < 30; i++)
		buffer_printf(&value, "%s'\\u0001\\u0002\\u0001\\u0001%01000d'", i ? "," : "[", i);
	buffer_append_string(&value, "]");
	assert_int_equal(check(DOCUMENT_JSON, schema.data, value.data, report), -EINVAL);
	assert_string_equal(strrchr(report, '\n'), "\nand 20 more");
	for (const char *line = report, *end; line; line = end ? end + 1 : NULL) {
		end = strchr(line, '\n');
		assert_true((end ? (size_t)(end - line) : strlen(line)) < SCHEMA_MAX_LINE);
	}
	/* and with too little room it says so, and stays within it */
	p = parse(DOCUMENT_JSON, schema.data, value.data);
	s = compiled(p.schema);
	buffer_init(&small, 100);
	assert_int_equal(schema_check(s, p.value, NULL, &small), -EMSGSIZE);
	assert_int_equal(small.len, 0);
	buffer_fini(&small);
	schema_free(s);
	document_free(p.document);
	buffer_fini(&schema);
	buffer_fini(&value);
}

/* ---- bounds ---- */

static void too_much(const char *schema, const char *value, const char *where)
{
	static report_text report;

	assert_int_equal(check(DOCUMENT_JSON, schema, value, report), -E2BIG);
	without_places(report);
	assert_int_equal(strncmp(report, where, strlen(where)), 0);
	assert_string_equal(report + strlen(where),
		"given up here: this schema asks for too much work with this document");
}

static char *repeated(const char *begin, const char *piece, size_t times, const char *end)
{
	struct buffer b;

	buffer_init(&b, 64u << 20);
	buffer_append_string(&b, begin);
	for (size_t i = 0; i < times; i++)
		buffer_append_string(&b, piece);
	assert_int_equal(buffer_append_string(&b, end), 0);
	return b.data;
}

static void work__without_end__is_given_up(void **state)
{
	char *text = repeated("'", "a", 1000000, "'");
	struct buffer schema;

	(void)state;
	too_much("{'pattern':'^(a+)+$'}", "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab'", "");
	too_much("{'properties':{'x':{'not':{'pattern':'^(a|a)*[cd]$'}}}}",
		"{'x':'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab'}", "/x: ");
	too_much("{'propertyNames':{'pattern':'^(a+)+$'}}",
		"{'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab':1}", "");
	too_much("{'patternProperties':{'^(a+)+$':true}}",
		"{'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab':1}", "");
	too_much("{'pattern':'[a-z]*[1-9]'}", text, "");
	too_much("{'pattern':'a{60000}[bc]'}", text, "");
	too_much("{'pattern':'^(?:a|b)*$'}", text, ""); /* memory */
	free(text);
	/* d0 to d29, each asking for the next one twice */
	buffer_init(&schema, 1u << 20);
	buffer_append_string(&schema, "{'$ref':'#/$defs/d0','$defs':{");
	for (int i = 0; i < 30; i++)
		buffer_printf(&schema,
			"'d%d':{'allOf':[{'$ref':'#/$defs/d%d'},{'$ref':'#/$defs/d%d'}]},", i,
			i + 1, i + 1);
	buffer_append_string(&schema, "'d30':{'type':'null'}}}");
	too_much(schema.data, "null", "");
	too_much(schema.data, "5", "");
	buffer_fini(&schema);
}

static void work__of_large_documents__is_within_the_bound(void **state)
{
	static report_text report;
	struct buffer schema, value;

	(void)state;
	buffer_init(&schema, 64u << 20);
	buffer_init(&value, 64u << 20);
	/* 40,000 keys, all named, required, and their values looked up in as many */
	for (int i = 0; i < 20000; i++)
		buffer_printf(&value, "%c'key-%d':'v%d'", i ? ',' : '{', i, i);
	buffer_append_string(&value, "}");
	buffer_append_string(&schema, "{'additionalProperties':false,'required':[");
	for (int i = 0; i < 20000; i++)
		buffer_printf(&schema, "%s'key-%d'", i ? "," : "", i);
	buffer_append_string(&schema, "],'properties':{");
	for (int i = 0; i < 20000; i++)
		buffer_printf(&schema, "%s'key-%d':{'$ref':'#/$defs/v'}", i ? "," : "", i);
	buffer_append_string(&schema, "},'$defs':{'v':{'maxLength':8,'enum':[");
	for (int i = 0; i < 15000; i++)
		buffer_printf(&schema, "%s'v%d'", i ? "," : "", i);
	buffer_append_string(&schema, ",'w']}}}");
	assert_int_equal(check(DOCUMENT_JSON, schema.data, value.data, report), -EINVAL);
	assert_string_equal(strrchr(report, '\n'), "\nand 4990 more");
	buffer_fini(&schema);
	/* 90,000 items that differ, and then two that do not */
	buffer_clear(&value);
	for (int i = 0; i < 90000; i++)
		buffer_printf(&value, "%c%d", i ? ',' : '[', i * 7919 % 90001);
	buffer_append_string(&value, "]");
	assert_int_equal(check(DOCUMENT_JSON, "{'uniqueItems':true,'items':{'minimum':0}}",
				 value.data, report),
		0);
	value.len--;
	buffer_append_string(&value, ",7919]");
	assert_int_equal(check(DOCUMENT_JSON, "{'uniqueItems':true}", value.data, report), -EINVAL);
	without_places(report);
	assert_string_equal(report, "the items 1 and 90000 are equal (7919), but all must differ");
	buffer_fini(&value);
}

static void depth__of_tree_and_of_references__is_within_the_bounds(void **state)
{
	static report_text report;
	char *deep = repeated("", "[", 62, ""), *value = repeated(deep, "]", 62, "");
	struct buffer schema;

	(void)state;
	free(deep);
	for (int chain = SCHEMA_MAX_CHAIN - 1; chain <= SCHEMA_MAX_CHAIN + 1; chain++) {
		struct pair p;
		struct schema *s = NULL;
		char why[FILE_WHY];
		int r;

		/* a reference to a reference ..., then one level down and again */
		buffer_init(&schema, 1u << 20);
		buffer_append_string(&schema, "{'$defs':{");
		for (int i = 1; i < chain; i++)
			buffer_printf(&schema, "'d%d':{'$ref':'#/$defs/d%d'},", i, i + 1);
		buffer_printf(
			&schema, "'d%d':{'type':'array','items':{'$ref':'#/$defs/d2'}}}", chain);
		buffer_append_string(&schema, ",'items':{'$ref':'#/$defs/d2'}}");
		p = parse(DOCUMENT_JSON, schema.data, "1");
		r = schema_new(p.schema, NULL, 0, &s, why);
		assert_int_equal(r, chain <= SCHEMA_MAX_CHAIN ? 0 : -EINVAL);
		if (r)
			assert_non_null(strstr(why, "more than 64 schemas follow one another"));
		schema_free(s);
		document_free(p.document);
		if (chain == SCHEMA_MAX_CHAIN) {
			assert_int_equal(check(DOCUMENT_JSON, schema.data, value, report), 0);
			value[61] = '5';
			value[62] = ' ';
			assert_int_equal(check(DOCUMENT_JSON, schema.data, value, report), -EINVAL);
			assert_non_null(strstr(report, "/0/0: must be a list, but is 5"));
		}
		buffer_fini(&schema);
	}
	free(value);
}

static void tree__beyond_the_bounds_of_documents__is_refused(void **state)
{
	struct pair p = parse(DOCUMENT_JSON, "true", "1");
	struct schema *s = compiled(p.schema), *none = NULL;
	struct node chain[DOCUMENT_MAX_DEPTH + 1], *row;
	char why[FILE_WHY];
	struct buffer out;

	(void)state;
	row = calloc(DOCUMENT_MAX_NODES + 1, sizeof(*row)); /* a list, and nulls in it */
	assert_non_null(row);
	row[0].type = NODE_LIST;
	row[0].first = &row[1];
	for (size_t i = 1; i + 1 < DOCUMENT_MAX_NODES; i++)
		row[i].next = &row[i + 1];
	for (size_t i = 0; i < COUNT(chain); i++)
		chain[i] = (struct node){.type = NODE_LIST,
			.count = 1,
			.first = i + 1 < COUNT(chain) ? &chain[i + 1] : NULL};
	buffer_init(&out, SCHEMA_MAX_REPORT);
	assert_int_equal(schema_check(s, &chain[1], NULL, &out), 0);
	assert_int_equal(schema_check(s, &row[0], NULL, &out), 0);
	assert_int_equal(out.len, 0);
	assert_int_equal(schema_check(s, &chain[0], NULL, &out), -E2BIG);
	assert_string_equal(out.data, "larger or deeper than a document may be\n");
	buffer_clear(&out);
	row[DOCUMENT_MAX_NODES - 1].next = &row[DOCUMENT_MAX_NODES];
	assert_int_equal(schema_check(s, &row[0], NULL, &out), -E2BIG);
	assert_string_equal(out.data, "larger or deeper than a document may be\n");
	free(row);
	assert_int_equal(schema_new(&chain[0], NULL, 0, &none, why), -EINVAL);
	assert_string_equal(why, "the schema is larger than a document may be");
	buffer_fini(&out);
	schema_free(s);
	document_free(p.document);
}

static void anchors_and_patterns__have_their_bounds(void **state)
{
	struct buffer schema;
	struct schema *s = NULL;
	char why[FILE_WHY], *long_one = repeated("{'pattern':'", "a", 10001, "'}");
	struct pair p;

	(void)state;
	for (int count = SCHEMA_MAX_ANCHORS; count <= SCHEMA_MAX_ANCHORS + 1; count++) {
		buffer_init(&schema, 1u << 20);
		for (int i = 0; i < count; i++)
			buffer_printf(
				&schema, "%s{'$anchor':'a%d'}", i ? "," : "{'prefixItems':[", i);
		buffer_append_string(&schema, "]}");
		p = parse(DOCUMENT_JSON, schema.data, "1");
		assert_int_equal(schema_new(p.schema, NULL, 0, &s, why),
			count > SCHEMA_MAX_ANCHORS ? -EINVAL : 0);
		if (count == SCHEMA_MAX_ANCHORS)
			schema_free(s);
		document_free(p.document);
		buffer_fini(&schema);
	}
	without_places(why);
	assert_string_equal(why, "/prefixItems/1000/$anchor: more than 1000 anchors");
	p = parse(DOCUMENT_JSON, long_one, "1");
	assert_int_equal(schema_new(p.schema, NULL, 0, &s, why), -EINVAL);
	assert_non_null(strstr(why, "is longer than 10000 bytes"));
	document_free(p.document);
	free(long_one);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static void memory__that_runs_out__is_reported_at_every_allocation(void **state)
{
	struct pair p = parse(DOCUMENT_JSON,
		"{'$ref':'#/$defs/x','properties':{'a':{'anyOf':[{'pattern':'^\\\\s(a|b)+$'},"
		"{'type':'null'}]}},'patternProperties':{'^b':true},'enum':[1,{'a':'  '}],"
		"'uniqueItems':true,'unknown':1,'unevaluatedProperties':false,"
		"'$defs':{'x':{'uniqueItems':true,'not':{'unevaluatedItems':false}}}}",
		"{'a':'xyz','b':2}");
	struct buffer out;
	char why[FILE_WHY];
	struct schema *s = NULL;
	int r = -ENOMEM;
	unsigned n;

	(void)state;
	for (n = 0; r; n++) {
		allocations_left = n;
		r = schema_new(p.schema, NULL, 0, &s, why);
		allocations_left = UINT_MAX;
		assert_true(r == 0 || r == -ENOMEM);
		if (r)
			assert_string_equal(why, "there is no memory for the schema");
	}
	assert_true(n > 20);
	r = -ENOMEM;
	for (n = 0; r == -ENOMEM; n++) {
		buffer_init(&out, SCHEMA_MAX_REPORT);
		allocations_left = n;
		r = schema_check(s, p.value, NULL, &out);
		allocations_left = UINT_MAX;
		buffer_fini(&out);
	}
	assert_int_equal(r, -EINVAL);
	assert_true(n > 3);
	schema_free(s);
	document_free(p.document);
}
#endif

static void *check_many_times(void *arg)
{
	struct pair *p = arg;
	struct schema *s = (struct schema *)(uintptr_t)p->schema;

	for (int i = 0; i < 200; i++) {
		char shown[SCHEMA_MAX_LINE];
		struct buffer out;

		buffer_init(&out, SCHEMA_MAX_REPORT);
		if (schema_check(s, p->value, NULL, &out) != -EINVAL ||
			!strstr(sentence_show(shown, sizeof(shown), out.data, AUDIENCE_OPERATOR),
				": /1: \"x\" does not match the pattern \"^[ab]+$\"\n"))
			return arg;
		buffer_fini(&out);
	}
	return NULL;
}

static void schema__in_two_threads__is_shared(void **state)
{
	struct pair p = parse(DOCUMENT_JSON, "{'items':{'pattern':'^[ab]+$'}}", "['ab','x']");
	struct schema *s = compiled(p.schema);
	pthread_t threads[2];

	(void)state;
	p.schema = (const struct node *)(const void *)s;
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, check_many_times, &p), 0);
	for (size_t i = 0; i < 2; i++) {
		void *failed;

		pthread_join(threads[i], &failed);
		assert_null(failed);
	}
	schema_free(s);
	document_free(p.document);
}

static void schema__of_the_specification__compiles_and_checks_itself(void **state)
{
	/* the meta-schema in one file: what its vocabularies say of schemas, and of our own kind */
	static const char meta[] =
		"{'$schema':'https://json-schema.org/draft/2020-12/schema','$dynamicAnchor':'meta',"
		"'type':['object','boolean'],'properties':{"
		"'$ref':{'type':'string'},'$defs':{'$ref':'#/$defs/schemas'},"
		"'type':{'anyOf':[{'$ref':'#/$defs/types'},{'type':'array','minItems':1,"
		"'uniqueItems':true,'items':{'$ref':'#/$defs/types'}}]},"
		"'properties':{'$ref':'#/$defs/schemas'},'items':{'$dynamicRef':'#meta'},"
		"'anyOf':{'$ref':'#/$defs/list'},'minItems':{'$ref':'#/$defs/count'},"
		"'minimum':{'type':'number'},'enum':{'type':'array'},"
		"'uniqueItems':{'type':'boolean'},'additionalProperties':{'$dynamicRef':'#meta'}},"
		"'$defs':{'schemas':{'type':'object','additionalProperties':{'$dynamicRef':'#meta'}"
		"},"
		"'list':{'type':'array','minItems':1,'items':{'$dynamicRef':'#meta'}},"
		"'count':{'type':'integer','minimum':0},"
		"'types':{'enum':['array','boolean','integer','null','number','object','string']}}"
		"}";
	static report_text report;

	(void)state;
	assert_int_equal(check(DOCUMENT_YAML, meta, meta, report), 0);
	assert_int_equal(check(DOCUMENT_JSON, meta, meta, report), 0);
	assert_int_equal(
		check(DOCUMENT_JSON, meta,
			"{'properties':{'a':{'anyOf':[{'items':{'minItems':-1}}]}}}", report),
		-EINVAL);
	without_places(report);
	assert_string_equal(
		report, "/properties/a/anyOf/0/items/minItems: -1 is less than the minimum 0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(type__of_each_kind__is_told_apart),
		cmocka_unit_test(enum_and_const__compare_by_value),
		cmocka_unit_test(limits__of_numbers__are_exact),
		cmocka_unit_test(multipleOf__divides_what_is_written),
		cmocka_unit_test(numbers__of_yaml__are_read_as_yaml_reads_them),
		cmocka_unit_test(lengths__count_characters),
		cmocka_unit_test(pattern__means_what_ecma_262_says),
		cmocka_unit_test(items__are_counted_and_compared),
		cmocka_unit_test(items__have_schemas_by_their_place),
		cmocka_unit_test(contains__counts_what_fits),
		cmocka_unit_test(keys__are_counted_and_demanded),
		cmocka_unit_test(properties__have_schemas_by_their_keys),
		cmocka_unit_test(schemas__are_combined),
		cmocka_unit_test(unevaluated__sees_what_all_others_left),
		cmocka_unit_test(unevaluated__of_many_children__sees_each),
		cmocka_unit_test(unevaluated__of_many_items__finds_the_one_that_is_left),
		cmocka_unit_test(references__lead_to_every_place_of_a_schema),
		cmocka_unit_test(annotations__ask_for_nothing),
		cmocka_unit_test(schema__that_is_wrong__is_refused_with_a_sentence),
		cmocka_unit_test(schema__of_nan__is_refused),
		cmocka_unit_test(uri__is_resolved_as_in_the_standard),
		cmocka_unit_test(references__lead_to_resources_and_files),
		cmocka_unit_test(references__that_lead_to_a_bad_file__are_refused_with_its_name),
		cmocka_unit_test(resources__are_bounded),
		cmocka_unit_test(unknown__keywords__are_told_once),
		cmocka_unit_test(errors__have_the_place_of_the_value_or_the_key),
		cmocka_unit_test(schema__of_yaml__has_its_errors_with_places),
		cmocka_unit_test(errors__above_ten__are_counted),
		cmocka_unit_test(values_and_paths__are_shortened_and_made_printable),
		cmocka_unit_test(report__at_its_longest__keeps_its_bound),
		cmocka_unit_test(work__without_end__is_given_up),
		cmocka_unit_test(work__of_large_documents__is_within_the_bound),
		cmocka_unit_test(depth__of_tree_and_of_references__is_within_the_bounds),
		cmocka_unit_test(tree__beyond_the_bounds_of_documents__is_refused),
		cmocka_unit_test(anchors_and_patterns__have_their_bounds),
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
		cmocka_unit_test(memory__that_runs_out__is_reported_at_every_allocation),
#endif
		cmocka_unit_test(schema__in_two_threads__is_shared),
		cmocka_unit_test(schema__of_the_specification__compiles_and_checks_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

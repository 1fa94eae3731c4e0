/* YAML as it is written from each kind of document, and where it is refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "document/document.h"

struct text_pair {
	const char *text, *result;
};

static struct document *parse(enum document_type type, const char *text)
{
	struct document_error e = {0};
	struct document *d = NULL;

	if (document_parse(type, text, strlen(text), 0, &d, &e))
		fail_msg("%s: %u:%u: %s", text, e.line, e.column, e.message);
	return d;
}

/* What is written has this form, and is the same when it is read again. */
static void assert_written(enum document_type type, const struct text_pair *pair)
{
	struct document *d = parse(type, pair->text), *again;
	struct buffer b;

	buffer_init(&b, 1u << 16);
	assert_int_equal(document_write(document_root(d), DOCUMENT_YAML, &b), 0);
	assert_string_equal(b.data, pair->result);
	assert_int_equal(strlen(b.data), b.len);
	again = parse(DOCUMENT_YAML, b.data);
	assert_true(node_equal(document_root(d), document_root(again)));
	document_free(again);
	document_free(d);
	buffer_fini(&b);
}

/* It is refused with a sentence that begins so: what follows is a remedy. */
static void assert_refused(enum document_type type, const struct text_pair *pair)
{
	struct document_error e = {0};
	struct document *d = NULL;
	char said[400];

	assert_int_equal(document_parse(type, pair->text, strlen(pair->text), 0, &d, &e), -EINVAL);
	assert_null(d);
	snprintf(said, sizeof(said), "%u:%u: %s", e.line, e.column, e.message);
	if (strncmp(said, pair->result, strlen(pair->result)) != 0)
		fail_msg("%s: %s", pair->text, said);
	assert_int_not_equal(e.message[0], '\0');
}

#define EACH(assert_it, type)                                                                      \
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)                              \
	assert_it(type, &table[i])

static void document__of_json__is_written_plainly(void **state)
{
	static const struct text_pair table[] = {
		{"{\"a\": \"x y\"}", "a: x y\n"},
		{"{\"a\": \"one\\ntwo\"}", "a: |-\n  one\n  two\n"},
		{"{\"a\": \"one\\ntwo\\n\"}", "a: |\n  one\n  two\n"},
		{"{\"a\": \"one\\n\\n\"}", "a: \"one\\n\\n\"\n"},
		{"{\"a\": \"\\none\"}", "a: \"\\none\"\n"},
		{"{\"a\": \" one\\ntwo\"}", "a: \" one\\ntwo\"\n"},
		{"{\"a\": \"\\tone\\ntwo\"}", "a: \"\\tone\\ntwo\"\n"},
		{"{\"a\": \"one \\ntwo\"}", "a: \"one \\ntwo\"\n"},
		{"{\"a\": \"a b\\ntwo\"}", "a: |-\n  a b\n  two\n"},
		{"{\"a\": \"one\\ntwo \"}", "a: \"one\\ntwo \"\n"},
		{"{\"a\": \"one\\tx\\ntwo\"}", "a: \"one\\tx\\ntwo\"\n"},
		{"{\"a\": \"x\\ty\"}", "a: \"x\\ty\"\n"},
		{"{\"a\": \"\\n\"}", "a: \"\\n\"\n"},
		{"{\"a\": \"x\\n\"}", "a: |\n  x\n"},
		{"{\"a\": \"\\u007f\"}", "a: \"\\x7F\"\n"},
		{"{\"a\": \"\\u00e4\"}", "a: \"\303\244\"\n"},
		{"{\"a\": \"\\u00e4\\nb\"}", "a: \"\303\244\\nb\"\n"},
		{"{\"a\": \"~\"}", "a: '~'\n"},
		{"{\"a\": \"true\"}", "a: 'true'\n"},
		{"{\"a\": \"1\"}", "a: '1'\n"},
		{"{\"a\": \"1.5\"}", "a: '1.5'\n"},
		{"{\"a\": \"null\"}", "a: 'null'\n"},
		{"{\"a\": \"yes\"}", "a: 'yes'\n"},
		{"{\"a\": \"\"}", "a: ''\n"},
		{"{\"a\": \"0x1f\"}", "a: '0x1f'\n"},
		{"{\"a\": \"2001-01-01\"}", "a: '2001-01-01'\n"},
		{"{\"a\": \"-\"}", "a: '-'\n"},
		{"{\"a\": \"- b\"}", "a: '- b'\n"},
		{"{\"a\": \"b: c\"}", "a: 'b: c'\n"},
		{"{\"a\": \"#c\"}", "a: '#c'\n"},
		{"{\"a\": \"<<\"}", "a: '<<'\n"},
		{"{\"a\": \"=\"}", "a: '='\n"},
		{"{\"a\": \"1_000\"}", "a: '1_000'\n"},
		{"{\"a\": \"1:30\"}", "a: '1:30'\n"},
		{"{\"a\": null, \"b\": true, \"c\": false}", "a: null\nb: true\nc: false\n"},
		{"{\"a\": 1, \"b\": -5, \"c\": 0}", "a: 1\nb: -5\nc: 0\n"},
		{"{\"a\": 1.0, \"b\": -0.0, \"c\": 1e22}", "a: 1.0\nb: -0.0\nc: 1e22\n"},
		{"{\"a\": [], \"b\": {}}", "a: []\nb: {}\n"},
		{"{\"a\": [1, [2, {\"b\": 3}]]}", "a:\n- 1\n- - 2\n  - b: 3\n"},
		{"{\"a\\nb\": 1}", "? \"a\\nb\"\n: 1\n"},
		{"{\"\": 1}", "'': 1\n"},
		{"{\"1\": 1, \"true\": 2}", "'1': 1\n'true': 2\n"},
		{"{\"\\u00e4\": 1}", "\"\303\244\": 1\n"},
		{"{\"a b\": \"c d\"}", "a b: c d\n"},
	};

	(void)state;
	EACH(assert_written, DOCUMENT_JSON);
}

static void document__of_yaml__keeps_the_style_of_its_scalars(void **state)
{
	static const struct text_pair table[] = {
		{"a: x\n", "a: x\n"},
		{"a: 'x'\n", "a: 'x'\n"},
		{"a: \"x\"\n", "a: \"x\"\n"},
		{"a: |\n  x\n  y\n", "a: |\n  x\n  y\n"},
		{"a: |-\n  x\n  y\n", "a: |-\n  x\n  y\n"},
		{"a: >\n  x\n  y\n", "a: >\n  x y\n"},
		{"a: 0x1F\n", "a: 0x1F\n"},
		{"a: 0o17\n", "a: 0o17\n"},
		{"a: 1.50\n", "a: 1.50\n"},
		{"a: ~\n", "a: ~\n"},
		{"a:\n", "a:\n"},
		{"a: !!str 1\n", "a: '1'\n"},
		{"a: !!int 7\n", "a: !!int 7\n"},
		{"a: !!float 7\n", "a: !!float 7\n"},
		{"a: !!float 0o17\n", "a: !!float 0o17\n"},
		{"a: !!float 0x1f\n", "a: !!float 0x1f\n"},
		{"a: !!null ''\n", "a: !!null ''\n"},
		{"a: !!bool true\n", "a: !!bool true\n"},
		{"a: !!str x\n", "a: x\n"},
		{"! a: b\n", "a: b\n"},
		{"a: ! 1\n", "a: '1'\n"},
		{"'a': 1\n", "'a': 1\n"},
		{"\"a\": 1\n", "\"a\": 1\n"},
		{"? |\n  a\n: 1\n", "? \"a\\n\"\n: 1\n"},
		{"? >-\n  a b\n: 1\n", "\"a b\": 1\n"},
		{"~: 1\n", "~: 1\n"},
		{"1: x\ntrue: y\n", "1: x\ntrue: y\n"},
		{"a: [1, 2]\nb: {c: d}\n", "a:\n- 1\n- 2\nb:\n  c: d\n"},
		{"a: x\n  y\n", "a: x y\n"},
		{"a: .inf\nb: -.INF\nc: .NaN\n", "a: .inf\nb: -.INF\nc: .NaN\n"},
		{"a: 1e3\nb: +5\nc: -0\n", "a: 1e3\nb: +5\nc: -0\n"},
		{"a: TRUE\nb: False\nc: Null\n", "a: TRUE\nb: False\nc: Null\n"},
		{"a: yes\n", "a: yes\n"},
		{"a: \303\244\n", "a: \303\244\n"},
		{"%YAML 1.2\n---\na: 1\n", "a: 1\n"},
		{"%YAML 1.1 # old\n---\na: 1\n", "a: 1\n"},
		{"# c\n\n%YAML 1.2\n---\na: 1\n", "a: 1\n"},
		{"--- \na: 1\n...\n", "a: 1\n"},
		{"a: 1\n...\n# c\n", "a: 1\n"},
		{"a: &x 1\nb: *x\n", "a: 1\nb: 1\n"},
		{"<<: {a: 1}\n", "a: 1\n"},
		{"a: 1_000\n", "a: 1_000\n"},
		{"a: 0b1\n", "a: 0b1\n"},
		{"a: 010\n", "a: 010\n"},
		{"a: 1.\nb: .5\nc: 1.e5\n", "a: 1.\nb: .5\nc: 1.e5\n"},
	};

	(void)state;
	EACH(assert_written, DOCUMENT_YAML);
}

/* As of a snapshot: a value without a style, whose text may be none of YAML's. */
static void scalar__whose_text_is_not_its_value__is_written_by_its_value(void **state)
{
	static const struct {
		struct node node;
		const char *written;
	} table[] = {
		{{.type = NODE_INT, .integer = 16, .text = "0x10"}, "0x10\n"},
		{{.type = NODE_INT, .integer = -16, .text = "-0x10"}, "-16\n"},
		{{.type = NODE_INT, .integer = INT64_MIN}, "-9223372036854775808\n"},
		{{.type = NODE_INT, .integer = 9, .text = "99999999999999999999"}, "9\n"},
		{{.type = NODE_DOUBLE, .number = 7, .text = "7"}, "7.0\n"},
		{{.type = NODE_DOUBLE, .number = 0.1, .text = "a tenth"}, "0.10000000000000001\n"},
		{{.type = NODE_DOUBLE, .number = 1e300}, "1.0000000000000001e+300\n"},
		{{.type = NODE_BOOL, .boolean = true, .text = "on"}, "true\n"},
		{{.type = NODE_BOOL, .text = "true"}, "false\n"},
		{{.type = NODE_NULL, .text = "nil"}, "null\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct node n = table[i].node;
		struct buffer b;

		n.text_len = n.text ? strlen(n.text) : 0;
		buffer_init(&b, 1000);
		assert_int_equal(document_write(&n, DOCUMENT_YAML, &b), 0);
		assert_string_equal(b.data, table[i].written);
		buffer_fini(&b);
	}
}

static void number__that_json_cannot_hold__is_refused_at_its_place(void **state)
{
	static const struct text_pair table[] = {
		{"{\"a\": 1.5, \"b\": 1e3, \"c\": 1E400}", "1:27: a number outside the range of a "
							   "double: quote it to make it a string"},
		{"{\"a\": 9223372036854775807, \"b\": 9223372036854775808}",
			"1:33: an integer outside 64 bits: quote it to make it a string"},
	};

	(void)state;
	EACH(assert_refused, DOCUMENT_JSON);
}

static void yaml__that_cannot_be_read__is_refused_at_its_place(void **state)
{
	static const struct text_pair table[] = {
		{"a: !!bool 1\n", "1:4: the tag \016that it has\037tag:yaml.org,2002:bool\017 does "
				  "not fit here: only the core schema's are read"},
		{"a: !!int x\n", "1:4: the tag \016that it has\037tag:yaml.org,2002:int\017 does "
				 "not fit here: only the core schema's are read"},
		{"a: !x y\n", "1:4: the tag \016that it has\037!x\017 does not fit here: only the "
			      "core schema's are read"},
		{": 1\n", "1:1: "},
		{"%YAML  1.222\n---\na: 1\n", "1:1: "},
		{"%YAML\n---\na: 1\n", "1:1: unsupported directive: only %YAML 1.2 (or 1.1) is "
				       "allowed; remove the line"},
		{"%YAML1.2\n---\na: 1\n", "1:1: unsupported directive: only %YAML 1.2 (or 1.1) is "
					  "allowed; remove the line"},
		{"%YAML 1.\n---\na: 1\n", "1:1: unsupported directive: only %YAML 1.2 (or 1.1) is "
					  "allowed; remove the line"},
		{"%YAML 1.2222\n---\na: 1\n", "1:1: unsupported directive: only %YAML 1.2 (or 1.1) "
					      "is allowed; remove the line"},
		{"%YAML 2.0\n---\na: 1\n", "1:1: unsupported directive: only %YAML 1.2 (or 1.1) is "
					   "allowed; remove the line"},
		{"%YAML 1.2x\n---\na: 1\n", "1:1: unsupported directive: only %YAML 1.2 (or 1.1) "
					    "is allowed; remove the line"},
		{"%YAML 1.2 x\n---\na: 1\n", "1:1: unsupported directive: only %YAML 1.2 (or 1.1) "
					     "is allowed; remove the line"},
		{"%YAML 1\n---\na: 1\n", "1:1: unsupported directive: only %YAML 1.2 (or 1.1) is "
					 "allowed; remove the line"},
		{"%TAG ! x\n---\na: 1\n", "1:1: unsupported directive: only %YAML 1.2 (or 1.1) is "
					  "allowed; remove the line"},
		{"%YAM 1.2\n---\na: 1\n", "1:1: unsupported directive: only %YAML 1.2 (or 1.1) is "
					  "allowed; remove the line"},
		{"a: 1\n---\nb: 1\n", "2:1: a second document begins here: only one is read"},
		{"a: 1\n...\nb: 2\n", "3:1: "},
		{"a: 1\n--- # c\n", "2:1: a second document begins here: only one is read"},
		{"a: 1\n\tb: 2\n", "2:1: tabs cannot indent YAML: use spaces"},
		{"\ta: 1\n", "1:1: tabs cannot indent YAML: use spaces"},
		{"a: @x\n", "1:4: no text without quotes begins with @: put the value in quotes"},
		{"\303\244: 1\nb: @x\n", "2:4: no text without quotes begins with "},
		{"\303\244\342\202\254: `x\n", "1:5: no text without quotes begins with "},
		{"a: 1\na: 2\n", "2:1: duplicate key \"a\" (first at line 1): remove one"},
		{"a: *x\n", "1:4: the alias *\016\037x\017 has no anchor before it"},
		{"[1, 2]\n", "1:1: the document must be a mapping (key: value), not a list"},
		{"x\n", "1:1: the document must be a mapping (key: value), not a single value"},
		{"", "1:1: the document is empty"},
		{"# c\n", "1:1: the document is empty"},
		{"a: [1\n", "1:4: the bracket [ that opens here is never closed"},
		{"a: {b: 1\n", "1:4: the bracket { that opens here is never closed"},
		{"a: 'x\n", "1:4: the single quote that opens here is never closed"},
		{"a: b: c\n", "1:5: "},
		{"a:\n- 1\n b: 2\n", "3:2: this line fits no column above it: begin it in column "
				     "1, as line 2 does"},
		{"? [a]\n: 1\n", "1:3: a key must be a plain value, not a list, mapping or alias"},
		{"? {a: 1}\n: 1\n",
			"1:3: a key must be a plain value, not a list, mapping or alias"},
		{"a: \"\\x\"\n", "1:7: "},
		{"a: 99999999999999999999\n",
			"1:4: an integer outside 64 bits: quote it to make it a string"},
	};

	(void)state;
	EACH(assert_refused, DOCUMENT_YAML);
}

static void number_of_yaml__is_written_as_json_has_them(void **state)
{
	static const struct text_pair table[] = {
		{"1", "1"},
		{"-1", "-1"},
		{"-0", "-0"},
		{"+5", "5"},
		{"010", "10"},
		{"-07", "-7"},
		{"0x1F", "31"},
		{"0o17", "15"},
		{"-1.5", "-1.5"},
		{".5", "0.5"},
		{"-.5", "-0.5"},
		{"1.", "1.0"},
		{"1.0", "1.0"},
		{"1e3", "1e3"},
		{"1E3", "1E3"},
		{"1e+3", "1e+3"},
		{"1e-3", "1e-3"},
		{"1.e3", "1000.0"},
		{".5e1", "5.0"},
		{"00.5", "0.5"},
		{"01.5", "1.5"},
		{"-0.0", "-0.0"},
		{"123456789012345678", "123456789012345678"},
		{"!!float 7", "7.0"},
		{"!!float 0x10", "16.0"},
		{"!!float 0o17", "15.0"},
		{"1.50", "1.50"},
		{"0e0", "0e0"},
		{"9007199254740993.0", "9007199254740993.0"},
		{"5e-324", "5e-324"},
		{"true", "true"},
		{"FALSE", "false"},
		{"~", "null"},
		{"''", "\"\""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		char text[64], expected[64];
		struct document *d;
		struct buffer b;

		snprintf(text, sizeof(text), "a: %s\n", table[i].text);
		snprintf(expected, sizeof(expected), "{\n  \"a\": %s\n}\n", table[i].result);
		d = parse(DOCUMENT_YAML, text);
		buffer_init(&b, 1000);
		assert_int_equal(document_write(document_root(d), DOCUMENT_JSON, &b), 0);
		assert_string_equal(b.data, expected);
		document_free(d);
		buffer_fini(&b);
	}
}

static void json__with_a_nul__is_refused_wherever_it_is(void **state)
{
	static const char text[] = "{\"ab\": [1, true, \"c\"], \"d\": null}";
	char copy[sizeof(text) + 1];

	(void)state;
	for (size_t at = 0; at < sizeof(text); at++) {
		struct document_error e = {0};
		struct document *d = NULL;

		memcpy(copy, text, at);
		copy[at] = '\0';
		memcpy(copy + at + 1, text + at, sizeof(text) - at);
		assert_int_equal(
			document_parse(DOCUMENT_JSON, copy, sizeof(text), 0, &d, &e), -EINVAL);
		assert_null(d);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(document__of_json__is_written_plainly),
		cmocka_unit_test(document__of_yaml__keeps_the_style_of_its_scalars),
		cmocka_unit_test(scalar__whose_text_is_not_its_value__is_written_by_its_value),
		cmocka_unit_test(number__that_json_cannot_hold__is_refused_at_its_place),
		cmocka_unit_test(yaml__that_cannot_be_read__is_refused_at_its_place),
		cmocka_unit_test(number_of_yaml__is_written_as_json_has_them),
		cmocka_unit_test(json__with_a_nul__is_refused_wherever_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

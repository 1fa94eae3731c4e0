/* Documents: every refusal with its place, the core schema, merge keys, limits, and that what is
 * written reads back equal. */
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

#include "document/document.h"
#include "tests/unit/fixture/fault_memory.h"

static struct document *good(enum document_type type, const char *text, unsigned flags)
{
	struct document *d = NULL;
	struct document_error e;
	int r = document_parse(type, text, strlen(text), flags, &d, &e);

	if (r)
		print_error("%s\nline %u, column %u: %s\n", text, e.line, e.column, e.message);
	assert_int_equal(r, 0);
	return d;
}

static void refused(enum document_type type, const char *text, size_t len, unsigned line,
	unsigned column, const char *why)
{
	struct document *d = NULL;
	struct document_error e;

	assert_int_equal(document_parse(type, text, len, 0, &d, &e), -EINVAL);
	assert_null(d);
	if (e.line != line || e.column != column || !strstr(e.message, why))
		print_error("%.60s\nline %u, column %u: %s\n", text, e.line, e.column, e.message);
	assert_int_equal(e.line, line);
	assert_int_equal(e.column, column);
	assert_non_null(strstr(e.message, why));
}

static void yaml__what_is_not_good__is_refused_with_its_place(void **state)
{
	static const struct {
		const char *text;
		unsigned line, column;
		const char *why;
	} table[] = {
		{"", 1, 1, "empty"},
		{"# only a comment\n", 1, 1, "empty"},
		{"- a\n- b\n", 1, 1, "mapping"},
		{"hello\n", 1, 1, "mapping"},
		{"a: 1\nb: 2\na: 3\n", 3, 1, "duplicate key \"a\" (first at line 1)"},
		{"x:\n  a: 1\n  a: 2\n", 3, 3, "duplicate"},
		{"a: 1\n---\nb: 2\n", 2, 1, "second document"},
		{"a: 1\n...\n# c\n...\n%TAG ! x\n--- b\n", 5, 1, "second document"},
		{"{a: 1}\n%TAG ! x\n--- b\n", 2, 1, "second document"},
		{"%TAG ! tag:x,2000:\n---\na: 1\n", 1, 1, "only %YAML 1.2 (or 1.1) is allowed"},
		{"# c\n\n  # c\r\n%X\n---\na: 1\n", 4, 1, "remove the line"},
		{"%YAML 1.2\n%YAML 1.2\n---\na: 1\n", 2, 1, "a second %YAML"},
		{"%YAML 1.2\n%TAG ! x\n---\na: 1\n", 2, 1, "only %YAML"},
		{"%YAML 2.0\n---\na: 1\n", 1, 1, "only %YAML"},
		{"%YAML 1.\n---\na: 1\n", 1, 1, "only %YAML"},
		{"%YAML 1.1111\n---\na: 1\n", 1, 1, "only %YAML"},
		{"%YAML 1.2 x\n---\na: 1\n", 1, 1, "only %YAML"},
		{"%YAML 1.2#\n---\na: 1\n", 1, 1, "only %YAML"},
		{"%YAML", 1, 1, "only %YAML"},
		{"%", 1, 1, "only %YAML"},
		{"a: !!python/object x\n", 1, 4, "tag"},
		{"a: !mine x\n", 1, 4, "tag"},
		{"a: !!set {b}\n", 1, 4, "tag"},
		{"a: !!int x\n", 1, 4, "tag"},
		{"a: \"x\\0y\"\n", 1, 4, "NUL"},
		{"\"a\\0b\": 1\n", 1, 1, "NUL"},
		{"a: &x [*x]\n", 1, 8, "never ends"},
		{"a: *none\n", 1, 4, "no anchor"},
		{"? [a]\n: b\n", 1, 3, "key"},
		{"a: {<<: 5}\n", 1, 10, "merge key"},
		{"a: 99999999999999999999\n", 1, 4, "64 bits"},
		{"a: -9223372036854775809\n", 1, 4, "64 bits"},
		{"a: 0xffffffffffffffff\n", 1, 4, "64 bits"},
		{"a: [1\n", 1, 4, "the bracket [ that opens here is never closed"},
		{"a:\n\t- b\n", 2, 1, "tabs cannot indent YAML: use spaces"},
		{"\tb: 1\n", 1, 1, "tabs"},
		{"a: 1\n\tb: 2\n", 2, 1, "tabs"},
		{"a: |\n\tb\n", 2, 1, "tabs"},
		{"\xef\xbb\xbf\"\xc3\xa4\":\r\n\tb: 1\r\n", 2, 1, "tabs"},
		{"\xc3\xa4\xc3\xa4: @b\n\tc: 1\n", 1, 5, "in quotes"},
		{"a: ok\nb: \xff\n", 2, 4, "UTF-8"},
		{"a: \x01\n", 1, 4, "U+0001 is not allowed: write it as \"\\u0001\""},
		{"a: 1e400\n", 1, 4, "outside the range of a double"},
		{"a: !!float 1e400\n", 1, 4, "outside the range of a double"},
		{"a: {\"b\": \"\\ud83d\"}\n", 1, 13, "invalid Unicode"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		refused(DOCUMENT_YAML, table[i].text, strlen(table[i].text), table[i].line,
			table[i].column, table[i].why);
	refused(DOCUMENT_YAML, "a\0:\0 \0001\0", 8, 1, 2, "UTF-8"); /* UTF-16 */
	/* what lies behind the text is none of it */
	refused(DOCUMENT_YAML, "a: \xc3\xa4", 4, 1, 4, "UTF-8");
	refused(DOCUMENT_JSON, "\"\xf0\x9f\x98\x80\"", 4, 1, 2, "UTF-8");
}

static void json__what_is_not_good__is_refused_with_its_place(void **state)
{
	static const struct {
		const char *text;
		unsigned line, column;
		const char *why;
	} table[] = {
		{"", 1, 1, "empty"},
		{" \n", 1, 1, "empty"},
		{"[1]", 1, 1, "mapping"},
		{"5", 1, 1, "mapping"},
		{"{} x", 1, 4, "after the end"},
		{"{\"a\": ", 1, 6, "end of file"},
		{"{\"a\": \"\\ud83d\"}", 1, 14, "invalid Unicode"},
		{"{\"\xc3\xa4\":\r\n @}", 2, 2, "invalid token"},
		{"{\"\xc3\xa4\":\r @}", 2, 2, "invalid token"},
		{"{\"a\": 01}", 1, 7, "invalid token"},
		{"{\"a\": NaN}", 1, 9, "invalid token"},
		{"{\"a\": \"x\ny\"}", 1, 8, "newline"},
		{"{'a': 1}", 1, 2, "expected"},
		{"{\"a\": false1e309}", 1, 11, "real number overflow"},
		{"{\"a\\u0000\\\\\": 1}", 1, 2, "NUL"},
		{"{\"\\ud83d\\ude00\": 1, \"\\ud83d\\ude00\": 2}", 1, 21,
			"duplicate key \"\\ud83d\\ude00\": remove one"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		refused(DOCUMENT_JSON, table[i].text, strlen(table[i].text), table[i].line,
			table[i].column, table[i].why);
}

static void json__with_a_slip__is_refused_with_a_remedy(void **state)
{
	static const struct {
		const char *text;
		unsigned line, column;
		const char *why;
	} table[] = {
		{"{\"a\": 1,}", 1, 9, "near '}': remove the comma before it"},
		{"{\"a\": 1,\r\n\t}", 2, 2, "near '}': remove the comma before it"},
		{"{\"a\": [1, ]}", 1, 11, "near ']': remove the comma before it"},
		{"{\"a\": 1,, \"b\": 2}", 1, 9, "near ',': one comma too many"},
		{"{\"a\": 1 \"b\": 2}", 1, 11, "near '\"b\"': is the comma missing before it?"},
		{"{\"a\": [1 2]}", 1, 10, "near '2': is the comma missing before it?"},
		{"{'a': 1}", 1, 2, "texts and keys are in double quotes"},
		{"{\"a\": 'x'}", 1, 7, "texts and keys are in double quotes"},
		{"{a: 1}", 1, 2, "near 'a': keys are in double quotes"},
		{"{\"a\" 1}", 1, 6, "near '1': a key is followed by a colon"},
		{"{\"a\": True}", 1, 10, "near 'True': write true"},
		{"{\"a\": False}", 1, 11, "near 'False': write false"},
		{"{\"a\": None}", 1, 10, "near 'None': write null"},
		{"{\"a\": .5}", 1, 7, "a number needs a digit before the point"},
		{"{ // x\n}", 1, 3, "JSON has no comments"},
		{"# x\n{}", 1, 1, "JSON has no comments"},
		{"{\"a\": 1", 1, 7, "near end of file: it ends too early"},
		{"{\"a\": \"x}", 1, 9, "is the quote missing at its end?"},
		{"{\"a\": \"\t\"}", 1, 7, "in a text write \\n, \\t or \\u"},
		{"{\"a\": \"\\x\"}", 1, 9, "write a backslash as \\\\"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		refused(DOCUMENT_JSON, table[i].text, strlen(table[i].text), table[i].line,
			table[i].column, table[i].why);
}

/* Either reader, or the reader of JSON that stands before that of YAML. */
static void refused_by_all(
	const char *text, size_t len, unsigned line, unsigned column, const char *why)
{
	struct buffer marked;

	buffer_init(&marked, 32u << 20);
	buffer_append_string(&marked, "---\n");
	buffer_append(&marked, text, len);
	refused(DOCUMENT_JSON, text, len, line, column, why);
	refused(DOCUMENT_YAML, text, len, line, column, why);
	refused(DOCUMENT_YAML, marked.data, marked.len, line + 1, column, why);
	buffer_fini(&marked);
}

static void json_and_yaml__refuse_the_same_with_the_same_words_at_the_same_place(void **state)
{
#define TEXT(s) s, sizeof(s) - 1
	static const struct {
		const char *text;
		size_t len;
		unsigned line, column;
		const char *why;
	} table[] = {
		{TEXT("[1]"), 1, 1, "the document must be a mapping (key: value), not a list"},
		{TEXT("{\"a\": 1,\n \"b\": 2,\n \"a\": 3}"), 3, 2,
			"duplicate key \"a\" (first at line"},
		{TEXT("{\"x\": [{\"\xc3\xa4\": 1, \"\\u00e4\": 2}]}"), 1, 17, "duplicate key"},
		{TEXT("{\"a\": 9223372036854775808}"), 1, 7,
			"an integer outside 64 bits: quote it to make it a string"},
		{TEXT("{\"a\": -9223372036854775809}"), 1, 7, "an integer outside 64 bits"},
		{TEXT("{\"a\": 1e400}"), 1, 7,
			"a number outside the range of a double: quote it to make it a string"},
		{TEXT("{\"\xc3\xa4\": [\r-1E+400, 1]}"), 2, 1, "outside the range of a double"},
		{TEXT("{\"a\": \"x\\u0000\"}"), 1, 7, "a NUL character: no text can hold it"},
		{TEXT("{\"x\": 1, \"\\\\\\u0000\\\\\": 1}"), 1, 10, "a NUL character"},
		{TEXT("{\"a\": 1}\0"), 1, 9, "a NUL character: the text must be UTF-8"},
		{TEXT("{\"a\":\0 1}"), 1, 6, "a NUL character: the text must be UTF-8"},
		{TEXT("{\"a\": \"\0\"}"), 1, 8, "a NUL character: the text must be UTF-8"},
		{TEXT("{\"a\": \v1}"), 1, 7, "the character U+000B is not allowed"},
		{TEXT("{\"a\": \"\x1f\"}"), 1, 8,
			"U+001F is not allowed: write it as \"\\u001f\", in double quotes"},
		{TEXT("{\"\xc3\xa4\": \"\xff\"}"), 1, 8, "the text must be UTF-8"},
		{TEXT("{\"a\": \"\xed\xa0\xbd\xed\xb8\x80\"}"), 1, 8, "the text must be UTF-8"},
		{TEXT("{\"a\": \"\xc0\x80\"}"), 1, 8, "the text must be UTF-8"},
		{TEXT("{\"a\": \"\xe2\x82"), 1, 8, "the text must be UTF-8"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		refused_by_all(
			table[i].text, table[i].len, table[i].line, table[i].column, table[i].why);
	for (int type = DOCUMENT_YAML; type <= DOCUMENT_JSON; type++) {
		refused((enum document_type)type, TEXT(""), 1, 1, "the document is empty");
		refused((enum document_type)type, TEXT("\xef\xbb\xbf"), 1, 1, "empty");
		refused((enum document_type)type, TEXT("\xef\xbb\xbf\n"), 1, 1,
			"the document is empty");
		refused((enum document_type)type, TEXT("5"), 1, 1, "not a single value");
	}
}

/* Characters that end a line, or have no place in a text, for some readers of YAML only. */
static void yaml__characters_that_readers_differ_on__are_refused(void **state)
{
	static const struct {
		const char *character, *why;
	} table[] = {
		{"\xc2\x85",
			"U+0085 ends a line for some readers of YAML and not for others: write "
			"it as \"\\u0085\", in double quotes"},
		{"\xe2\x80\xa8", "U+2028 ends a line for some readers of YAML"},
		{"\xe2\x80\xa9", "U+2029 ends a line for some readers of YAML"},
		{"\xef\xbb\xbf", "a byte order mark inside the text, U+FEFF: write it as "
				 "\"\\ufeff\", in double quotes"},
		{"\x7f", "the character U+007F is not allowed: write it as \"\\u007f\""},
		{"\xc2\x80", "the character U+0080 is not allowed"},
		{"\xc2\x9b", "the character U+009B is not allowed"},
		{"\xef\xbf\xbe", "the character U+FFFE is not allowed"},
		{"\xef\xbf\xbf", "the character U+FFFF is not allowed"},
	};
	static const char *const places[] = {"%sa: 1\n", "a: 1 # x%sb: 2\n", "a: x%sb: 2\n",
		"a: 'x%sy'\n", "a: \"x%sy\"\n", "a: |\n  x%sb: 2\n", "a: >\n  x%sb: 2\n",
		"a%s: 1\n", "{\"a\": %s1}\n", "{\"a\": \"%s\", b: 2}\n", "a: 1\n%s", "a: x%s"};
	char text[64];

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		for (size_t k = 0; k < sizeof(places) / sizeof(places[0]); k++) {
			const char *at = strchr(places[k], '%'), *line = strchr(places[k], '\n');
			bool second = line && line < at;

			if (i == 3 && k == 0)
				continue; /* a byte order mark where it belongs */
			snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - places[k]), places[k],
				table[i].character, at + 2);
			refused(DOCUMENT_YAML, text, strlen(text), second ? 2 : 1,
				(unsigned)(at - (second ? line : places[k] - 1)), table[i].why);
		}
}

/* What json.dumps() makes, and what else is JSON but not YAML to libyaml. */
static void json__of_any_type__is_read_as_json(void **state)
{
	static const struct {
		const char *text, *value;
	} table[] = {
		{"{\"k\": \"\\ud83d\\ude00\"}", "\xf0\x9f\x98\x80"},
		{"\xef\xbb\xbf{\"k\": \"\\u00e9\"}", "\xc3\xa9"},
		{" \r\n\t{\"k\":\"a\\/b\"\t}\n", "a/b"},
		{"{\"k\":\t\"x\"}", "x"},
		{"{\"k\": \"\x7f\"}", "\x7f"},
		{"{\"k\": \"a \xe2\x80\xa8 b\"}", "a \xe2\x80\xa8 b"},
		{"{\"k\": \" \xc2\x85 \"}", " \xc2\x85 "},
		{"{\"k\": \"\xef\xbb\xbf\"}", "\xef\xbb\xbf"},
		{"{\"k\": \"\\udbff\\udfff\"}", "\xf4\x8f\xbf\xbf"},
		{"{\"<<\": 1, \"k\": \"<<\"}", "<<"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		for (int type = DOCUMENT_YAML; type <= DOCUMENT_JSON; type++) {
			struct document *d = good((enum document_type)type, table[i].text, 0);

			assert_string_equal(node_find(document_root(d), "k")->text, table[i].value);
			document_free(d);
		}
}

/* What only looks like JSON is YAML as ever. */
static void yaml__that_begins_like_json__is_read_as_yaml(void **state)
{
	static const char *const table[] = {"{k: v}\n", "{\"k\": v}\n", "{\"k\": 'v'} # x\n",
		"{\"k\": v, }\n",
		"{k: v, a: '[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
		"[[[[[[[[[[[[[[[[[[[[[[[[['}\n",
		"{\"k\": &x v, \"l\": *x}\n", "{? \"k\" : v}\n", "{\"k\": \"v\", \"k2\"}\n",
		"{\"k\": \"v\"}\n...\n"};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct document *d = good(DOCUMENT_YAML, table[i], 0);

		assert_string_equal(node_find(document_root(d), "k")->text, "v");
		document_free(d);
	}
}

/* Takes \n, \r, \t, \\ and \xHH for what they stand for, in place. Returns the length. */
static size_t unescape(char *text)
{
	size_t len = 0;

	for (const char *p = text; *p; p++) {
		unsigned byte = (unsigned char)*p;

		if (*p == '\\') {
			p++;
			byte = *p == 'n'   ? '\n'
			       : *p == 'r' ? '\r'
			       : *p == 't' ? '\t'
					   : (unsigned char)*p;
			if (*p == 'x') {
				assert_int_equal(sscanf(p + 1, "%2x", &byte), 1);
				p += 2;
			}
		}
		text[len++] = (char)byte;
	}
	text[len] = '\0';
	return len;
}

/* A row of the table for one type: what is written reads as the tree, too. */
static bool row_is_right(enum document_type type, const char *text, size_t len, const char *wanted)
{
	struct document *d = NULL, *tree = NULL, *again = NULL;
	struct document_error e;
	unsigned line, column;
	struct buffer out;
	bool right = false;

	buffer_init(&out, 1u << 16);
	if (document_parse(type, text, len, 0, &d, &e)) {
		right = sscanf(wanted, "no %u:%u", &line, &column) == 2 && line == e.line &&
			column == e.column;
		if (!right)
			print_error("%u:%u %s\n", e.line, e.column, e.message);
	} else if (document_parse(DOCUMENT_JSON, wanted, strlen(wanted), 0, &tree, &e) == 0 &&
		   document_write(document_root(d), DOCUMENT_YAML, &out) == 0 &&
		   document_parse(DOCUMENT_YAML, out.data, out.len, 0, &again, &e) == 0) {
		right = node_equal(document_root(d), document_root(tree)) &&
			node_equal(document_root(again), document_root(tree));
		if (!right)
			print_error("%s", out.data);
	}
	document_free(d);
	document_free(tree);
	document_free(again);
	buffer_fini(&out);
	return right;
}

static void table__of_documents__is_read_as_it_says(void **state)
{
	FILE *f = fopen("tests/golden/documents.tsv", "r");
	char line[1024], *end, *text, *wanted;
	size_t bad = 0, legal = 0, wrong = 0, len;

	(void)state;
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (line[0] == '#')
			continue;
		text = strchr(line, '\t');
		wanted = strrchr(line, '\t');
		assert_true(text && wanted > text);
		*text++ = *wanted++ = '\0';
		unescape(wanted);
		end = text + (len = unescape(text));
		if (strncmp(wanted, "no ", 3) == 0)
			bad++;
		else
			legal++;
		assert_true(end < wanted);
		for (int type = DOCUMENT_YAML; type <= DOCUMENT_JSON; type++) {
			if (strcmp(line, type == DOCUMENT_YAML ? "json" : "yaml") == 0)
				continue;
			if (row_is_right((enum document_type)type, text, len, wanted))
				continue;
			print_error("%s as %s: %s\n", text, type == DOCUMENT_YAML ? "YAML" : "JSON",
				wanted);
			wrong++;
		}
	}
	fclose(f);
	assert_int_equal(wrong, 0);
	print_message("# %zu bad documents, %zu odd but legal ones\n", bad, legal);
	assert_true(bad >= 200 && legal >= 100);
}

static void yaml__plain_scalars__follow_the_core_schema(void **state)
{
	static const struct {
		const char *text;
		enum node_type type;
	} table[] = {
		{"null", NODE_NULL},
		{"Null", NODE_NULL},
		{"NULL", NODE_NULL},
		{"~", NODE_NULL},
		{"", NODE_NULL},
		{"nULL", NODE_STRING},
		{"true", NODE_BOOL},
		{"False", NODE_BOOL},
		{"TRUE", NODE_BOOL},
		{"tRUE", NODE_STRING},
		{"yes", NODE_STRING},
		{"no", NODE_STRING},
		{"on", NODE_STRING},
		{"off", NODE_STRING},
		{"y", NODE_STRING},
		{"0", NODE_INT},
		{"-1", NODE_INT},
		{"+12", NODE_INT},
		{"017", NODE_INT},
		{"0o17", NODE_INT},
		{"0x1F", NODE_INT},
		{"0o18", NODE_STRING},
		{"0xG", NODE_STRING},
		{"0x", NODE_STRING},
		{"1_000", NODE_STRING},
		{"0b1", NODE_STRING},
		{"22:30", NODE_STRING},
		{"1.5", NODE_DOUBLE},
		{"1.", NODE_DOUBLE},
		{".5", NODE_DOUBLE},
		{"1e3", NODE_DOUBLE},
		{"1.5E-3", NODE_DOUBLE},
		{"+.inf", NODE_DOUBLE},
		{"-.INF", NODE_DOUBLE},
		{".NaN", NODE_DOUBLE},
		{".", NODE_STRING},
		{"1e", NODE_STRING},
		{"1.2.3", NODE_STRING},
		{"-", NODE_STRING},
		{"2001-12-14", NODE_STRING},
		{"'1'", NODE_STRING},
		{"\"true\"", NODE_STRING},
		{"! 5", NODE_STRING},
		{"!!str 5", NODE_STRING},
		{"!!float 5", NODE_DOUBLE},
		{"!!int '5'", NODE_INT},
		{"!!bool true", NODE_BOOL},
		{"!!null ''", NODE_NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		char text[64];
		struct document *d;

		if (strcmp(table[i].text, "-") == 0)
			snprintf(text, sizeof(text), "k: '-'\n");
		else
			snprintf(text, sizeof(text), "k: %s\n", table[i].text);
		d = good(DOCUMENT_YAML, text, 0);
		if (node_find(document_root(d), "k")->type != table[i].type)
			print_error("%s\n", text);
		assert_int_equal(node_find(document_root(d), "k")->type, table[i].type);
		document_free(d);
	}
}

static void yaml__integers__keep_all_64_bits(void **state)
{
	struct document *d = good(DOCUMENT_YAML,
		"a: 9007199254740993\nb: -9223372036854775808\nc: 0o17\nd: 0x7fffffffffffffff\n",
		0);
	const struct node *root = document_root(d);

	(void)state;
	assert_true(node_find(root, "a")->integer == INT64_C(9007199254740993));
	assert_true(node_find(root, "b")->integer == INT64_MIN);
	assert_true(node_find(root, "c")->integer == 15);
	assert_true(node_find(root, "d")->integer == INT64_MAX);
	document_free(d);
}

static void yaml__places__are_those_of_value_and_key(void **state)
{
	struct document *d = good(DOCUMENT_YAML, "a:\n  key: value\n", 0);
	const struct node *n = node_find(node_find(document_root(d), "a"), "key");

	(void)state;
	assert_int_equal(n->key_line, 2);
	assert_int_equal(n->key_column, 3);
	assert_int_equal(n->line, 2);
	assert_int_equal(n->column, 8);
	assert_string_equal(n->text, "value");
	document_free(d);
}

/* Both texts must give equal trees. */
static void same_tree(const char *one, const char *other)
{
	struct document *a = good(DOCUMENT_YAML, one, 0), *b = good(DOCUMENT_YAML, other, 0);

	if (!node_equal(document_root(a), document_root(b)))
		print_error("%s---\n%s", one, other);
	assert_true(node_equal(document_root(a), document_root(b)));
	document_free(a);
	document_free(b);
}

/* As for readers, and for texts that they read as numbers (tests/golden/values.tsv). */
static void number__too_small_for_a_double__is_0_and_keeps_its_text(void **state)
{
	static const struct {
		const char *text;
		double number;
	} rows[] = {{"1e-999", 0}, {"-1e-999", 0}, {"2.4e-324", 0}, {"5e-324", 5e-324},
		{"1e-320", 1e-320}};
	static const enum document_type types[] = {DOCUMENT_JSON, DOCUMENT_YAML};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		struct document_error error;
		struct document *d = NULL;
		const struct node *n;
		char text[64];
		int len = snprintf(
			text, sizeof(text), i % 2 ? "a: %s\n" : "{\"a\": %s}", rows[i / 2].text);

		assert_int_equal(document_parse(types[i % 2], text, (size_t)len, 0, &d, &error), 0);
		n = document_root(d)->first;
		assert_int_equal(n->type, NODE_DOUBLE);
		assert_true(n->number == rows[i / 2].number);
		assert_string_equal(n->text, rows[i / 2].text);
		document_free(d);
	}
}

static void numbers__of_one_value__are_equal_and_so_is_none_to_itself(void **state)
{
	struct document *d = good(DOCUMENT_YAML,
		"l: [0.0, -0.0, .nan, .NaN, 1.5, 1.50, 1, 1.0, true, 'true', 2.5, .inf, -.inf]\n",
		0);
	/* by place, a letter for each value */
	static const char values[] = "aabbccdefghij";
	size_t i = 0, k;

	(void)state;
	for (const struct node *a = document_root(d)->first->first; a; a = a->next, i++) {
		k = 0;
		for (const struct node *b = document_root(d)->first->first; b; b = b->next, k++)
			if (node_equal(a, b) != (values[i] == values[k]))
				fail_msg("%s, %s", a->text, b->text);
	}
	assert_int_equal(i, sizeof(values) - 1);
	document_free(d);
}

static void yaml__merge_keys__give_way_to_explicit_ones_and_to_earlier_ones(void **state)
{
	(void)state;
	same_tree(
		"b: &b {x: 1, y: 2}\nm:\n  <<: *b\n  y: 3\n", "b: {x: 1, y: 2}\nm: {y: 3, x: 1}\n");
	same_tree("b: &b {x: 1}\nc: &c {x: 2, z: 5}\nm: {<<: [*b, *c]}\n",
		"b: {x: 1}\nc: {x: 2, z: 5}\nm: {x: 1, z: 5}\n");
	same_tree("m: {<<: {q: {r: 1}}, s: 2}\n", "m: {s: 2, q: {r: 1}}\n");
	same_tree("m: {\"<<\": 1}\n", "m: {'<<': 1}\n");
	same_tree("a: &a {x: 1}\nb: &b {<<: *a, y: 2}\nc: {<<: *b}\n",
		"a: {x: 1}\nb: {y: 2, x: 1}\nc: {y: 2, x: 1}\n");
	refused(DOCUMENT_YAML, "m: {a: 1, <<: {b: 2}, a: 3}\n", 28, 1, 23, "duplicate");
}

static void yaml__aliases__are_copied_and_the_latest_anchor_counts(void **state)
{
	(void)state;
	same_tree("a: &x [1, {b: 2}]\nc: *x\n", "a: [1, {b: 2}]\nc: [1, {b: 2}]\n");
	same_tree("a: &x 1\nb: &x 2\nc: *x\n", "a: 1\nb: 2\nc: 2\n");
}

static char *nested(unsigned depth, const char *open, const char *close)
{
	struct buffer b;

	buffer_init(&b, 1u << 20);
	buffer_append_string(&b, "{\"a\":");
	for (unsigned i = 1; i < depth; i++)
		buffer_append_string(&b, open);
	buffer_append_string(&b, "1");
	for (unsigned i = 1; i < depth; i++)
		buffer_append_string(&b, close);
	buffer_append_string(&b, "}");
	return b.data;
}

static void depth__of_64__is_read_and_65_refused(void **state)
{
	(void)state;
	for (int type = DOCUMENT_YAML; type <= DOCUMENT_JSON; type++) {
		char *text = nested(64, "[", "]");

		document_free(good((enum document_type)type, text, 0));
		free(text);
		text = nested(65, "[", "]");
		refused((enum document_type)type, text, strlen(text), 1, 5 + 64, "64 levels");
		free(text);
	}
}

/* {"a": [1,1,...]}: items + 2 nodes. */
static char *many(size_t items)
{
	struct buffer b;

	buffer_init(&b, 16u << 20);
	buffer_append_string(&b, "{\"a\":[1");
	for (size_t i = 1; i < items; i++)
		buffer_append_string(&b, ",1");
	buffer_append_string(&b, "]}");
	return b.data;
}

static void nodes__of_100000__are_read_and_one_more_refused(void **state)
{
	struct document *d = NULL;
	struct document_error e;

	(void)state;
	for (int type = DOCUMENT_YAML; type <= DOCUMENT_JSON; type++) {
		char *text = many(DOCUMENT_MAX_NODES - 2);

		d = good((enum document_type)type, text, 0);
		assert_int_equal(document_root(d)->first->count, DOCUMENT_MAX_NODES - 2);
		document_free(d);
		free(text);
		text = many(DOCUMENT_MAX_NODES - 1);
		assert_int_equal(
			document_parse((enum document_type)type, text, strlen(text), 0, &d, &e),
			-EINVAL);
		assert_non_null(strstr(e.message, "100000"));
		free(text);
	}
}

static void yaml__a_billion_laughs__are_refused(void **state)
{
	struct buffer b;
	struct document *d = NULL;
	struct document_error e;

	(void)state;
	buffer_init(&b, 1u << 20);
	buffer_append_string(&b, "l0: &l0 [x,x,x,x,x,x,x,x,x,x]\n");
	for (int i = 1; i < 10; i++)
		buffer_printf(&b, "l%d: &l%d [*l%d,*l%d,*l%d,*l%d,*l%d,*l%d,*l%d,*l%d,*l%d,*l%d]\n",
			i, i, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
	assert_int_equal(document_parse(DOCUMENT_YAML, b.data, b.len, 0, &d, &e), -EINVAL);
	assert_non_null(strstr(e.message, "100000"));
	buffer_fini(&b);
}

static double seconds_for_keys(size_t n)
{
	struct buffer b;
	clock_t begin;

	buffer_init(&b, 16u << 20);
	for (size_t i = 0; i < n; i++)
		buffer_printf(&b, "key%zu: 1\n", i);
	begin = clock();
	document_free(good(DOCUMENT_YAML, b.data, 0));
	buffer_fini(&b);
	return (double)(clock() - begin);
}

/* A list of so many values of nine bytes each, with the comma. */
static char *many_of_nine_bytes(size_t items)
{
	struct buffer b;

	buffer_init(&b, 9 * items + 100);
	buffer_append_string(&b, "{\"a\":[");
	for (size_t i = 0; i < items; i++)
		buffer_append_string(&b, i + 1 < items ? "12345678," : "12345678]}");
	assert_int_equal(b.error, 0);
	return b.data; /* ends with a NUL */
}

/* What `pullet status` reads of an agent with 10,000 configs. */
static void json__of_our_own__has_a_value_to_each_eight_bytes(void **state)
{
	const size_t items = 3 * (size_t)DOCUMENT_MAX_NODES;
	char *text = many_of_nine_bytes(items), *dense = many(items);
	struct document_error e;
	struct document *d = NULL;

	(void)state;
	assert_int_equal(document_parse(DOCUMENT_JSON, text, strlen(text), 0, &d, &e), -EINVAL);
	d = good(DOCUMENT_JSON, text, DOCUMENT_OURS);
	assert_int_equal(document_root(d)->first->count, items);
	document_free(d);
	d = NULL;
	assert_int_equal(document_parse(DOCUMENT_JSON, dense, strlen(dense), DOCUMENT_OURS, &d, &e),
		-EINVAL);
	assert_null(d);
	free(text);
	free(dense);
}

static void json__of_our_own__has_a_cap_on_its_values(void **state)
{
	char *text = many_of_nine_bytes(DOCUMENT_OURS_VALUES + 1);
	struct document_error e;
	struct document *d = NULL;

	(void)state;
	assert_int_equal(
		document_parse(DOCUMENT_JSON, text, strlen(text), DOCUMENT_OURS, &d, &e), -EINVAL);
	assert_null(d);
	free(text);
}

/* A long text, used a thousand times: few nodes, but far more bytes than came. */
static void yaml__aliases_of_a_long_text__are_refused(void **state)
{
	struct document_error e;
	struct document *d = NULL;
	struct buffer b;

	(void)state;
	buffer_init(&b, 1u << 20);
	buffer_append_string(&b, "a: &a ");
	for (int i = 0; i < 10000; i++)
		buffer_append(&b, "x", 1);
	buffer_append_string(&b, "\nb: [*a");
	for (int i = 0; i < 1000; i++)
		buffer_append_string(&b, ", *a");
	buffer_append_string(&b, "]\n");
	assert_int_equal(document_parse(DOCUMENT_YAML, b.data, b.len, 0, &d, &e), -EINVAL);
	assert_string_equal(e.message, "its aliases make it far larger than it is written");
	buffer_fini(&b);
}

static void yaml__a_map_of_many_keys__is_not_quadratic(void **state)
{
	double few = seconds_for_keys(5000), all = seconds_for_keys(50000);

	(void)state;
	/* linear would be 10 times, quadratic 100 times */
	assert_true(all < 40 * (few + 1));
}

static void flags__keep_duplicates_and_allow_empty__do_so(void **state)
{
	struct document *d = good(DOCUMENT_YAML, "a: 1\na: 2\n", DOCUMENT_KEEP_DUPLICATES);

	(void)state;
	assert_int_equal(document_root(d)->count, 2);
	assert_true(document_root(d)->first->next->integer == 2);
	document_free(d);
	d = good(DOCUMENT_YAML, "# nothing\n", DOCUMENT_ALLOW_EMPTY);
	assert_int_equal(document_root(d)->type, NODE_MAP);
	assert_int_equal(document_root(d)->count, 0);
	document_free(d);
	d = good(DOCUMENT_YAML, "---\n", DOCUMENT_ALLOW_EMPTY);
	assert_int_equal(document_root(d)->count, 0);
	document_free(d);
}

static void prefixes__of_a_document__never_crash(void **state)
{
	static const char text[] = "a: &x {b: [1, \"t\\u00e9\", 'q'], c: |\n  lines\n  here\n}\nd: "
				   "*x\n<<: {e: !!str 5}\n";
	static const char json[] =
		"{\"a\": [1.5e3, true, null, \"\\ud83d\\ude00\"], \"b\": {\"c\": -1}}";
	struct document *d;
	struct document_error e;

	(void)state;
	for (size_t n = 0; n < sizeof(text); n++) {
		d = NULL;
		if (document_parse(DOCUMENT_YAML, text, n, 0, &d, &e))
			assert_true(e.message[0] && e.line);
		document_free(d);
	}
	for (size_t n = 0; n < sizeof(json) - 1; n++) {
		d = NULL;
		assert_int_equal(document_parse(DOCUMENT_JSON, json, n, 0, &d, &e), -EINVAL);
		assert_true(e.message[0] && e.line);
	}
}

/* ---- writing ---- */

static void yaml_write__strings_that_look_like_something_else__are_quoted(void **state)
{
	static const char *const strings[] = {"no", "yes", "on", "Off", "y", "null", "~", "",
		"true", "017", "1_000", "22:30", "1.5", ".5", "-", "- a", "a: b", "# x", " lead",
		"trail ", "two\nlines", "two\nlines\n", "\n", "a\n\n", " x\ny", "tab\there", "@x",
		"%x", "`x", "&a", "*a", "!x", "|", ">", "'", "\"", "{", "[", "a #b", "<<", "=",
		"\xc3\xa9", "\xf0\x9f\x98\x80", "\x7f", "\xc2\x85", "\xe2\x80\xa8",
		"\xef\xbb\xbf"
		"a",
		"0x1f", "2001-12-14", "?", "? a", ":", "key:", "...", "---"};

	(void)state;
	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++) {
		struct buffer json, yaml;
		struct document *a, *b;

		buffer_init(&json, 4096);
		buffer_init(&yaml, 4096);
		buffer_append_string(&json, "{\"k\":");
		/* by hand: no escape but these occurs above */
		buffer_append_string(&json, "\"");
		for (const char *p = strings[i]; *p; p++) {
			if (*p == '\n')
				buffer_append_string(&json, "\\n");
			else if (*p == '\t')
				buffer_append_string(&json, "\\t");
			else {
				if (*p == '"')
					buffer_append_string(&json, "\\");
				buffer_append(&json, p, 1);
			}
		}
		buffer_append_string(&json, "\"}");
		a = good(DOCUMENT_JSON, json.data, 0);
		assert_int_equal(document_write(document_root(a), DOCUMENT_YAML, &yaml), 0);
		b = good(DOCUMENT_YAML, yaml.data, 0);
		if (!node_equal(document_root(a), document_root(b)))
			print_error("'%s' became %s", strings[i], yaml.data);
		assert_true(node_equal(document_root(a), document_root(b)));
		document_free(a);
		document_free(b);
		buffer_fini(&json);
		buffer_fini(&yaml);
	}
}

static uint64_t seed;

static unsigned pick(unsigned below)
{
	seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (unsigned)(seed >> 33) % below;
}

static void random_value(struct buffer *json, unsigned depth);

static void random_string(struct buffer *json, unsigned unique)
{
	static const char *const pieces[] = {"a", "B", " ", "\\n", "\\t", ":", "#", "- ", "1", ".",
		"\\\"", "\\\\", "\xc3\xa9", "true", "~", "'", "\\u0001", "\xe2\x82\xac", "{", "]",
		",", "&", "*", "!", "%", "0", "x"};

	buffer_append_string(json, "\"");
	for (unsigned n = pick(6); n > 0; n--)
		buffer_append_string(json, pieces[pick(sizeof(pieces) / sizeof(pieces[0]))]);
	if (unique)
		buffer_printf(json, "%u", unique);
	buffer_append_string(json, "\"");
}

static void random_blanks(struct buffer *json)
{
	static const char *const blanks[] = {"", "", " ", "  ", "\n  ", "\r\n", "\r"};

	buffer_append_string(json, blanks[pick(sizeof(blanks) / sizeof(blanks[0]))]);
}

static void random_collection(struct buffer *json, unsigned depth, int map)
{
	unsigned n = pick(5);

	buffer_append_string(json, map ? "{" : "[");
	for (unsigned i = 0; i < n; i++) {
		if (i)
			buffer_append_string(json, ",");
		random_blanks(json);
		if (map) {
			random_string(json, i + 1);
			buffer_append_string(json, ":");
		}
		random_value(json, depth + 1);
	}
	buffer_append_string(json, map ? "}" : "]");
}

static void random_value(struct buffer *json, unsigned depth)
{
	static const char *const scalars[] = {"null", "true", "false", "0", "-5",
		"9223372036854775807", "-9223372036854775808", "1.5", "-0.0", "1e300", "0.1",
		"123456789.123456789", "5e-324", "1.0", "1.10", "12345678901234567890.0", "1E5",
		"-0", "0e0", "1e-400", "2.50E+03"};
	unsigned choice = pick(depth > 5 ? 2 : 4);

	if (choice == 0)
		buffer_append_string(json, scalars[pick(sizeof(scalars) / sizeof(scalars[0]))]);
	else if (choice == 1)
		random_string(json, 0);
	else
		random_collection(json, depth, choice == 2);
}

/* The same tree, texts and places; b's lines are `lines` further down. */
static bool same_node(const struct node *a, const struct node *b, unsigned lines)
{
	bool equal = a->type == b->type && a->line + lines == b->line && a->column == b->column &&
		     a->text_len == b->text_len && a->key_len == b->key_len;

	if (equal && a->text)
		equal = memcmp(a->text, b->text, a->text_len) == 0;
	if (equal && a->key)
		equal = memcmp(a->key, b->key, a->key_len) == 0 &&
			a->key_line + lines == b->key_line && a->key_column == b->key_column;
	for (a = a->first, b = b->first; equal && a && b; a = a->next, b = b->next)
		equal = same_node(a, b, lines);
	return equal && !a && !b;
}

static void json_and_yaml__read_the_same_of_random_trees(void **state)
{
	const char *given = getenv("PULLET_SEED");
	uint64_t first = given ? strtoull(given, NULL, 10) : 1;

	(void)state;
	for (uint64_t n = 0; n < 10000; n++) {
		struct document *json, *typed, *yaml;
		struct buffer text;

		seed = first + n;
		buffer_init(&text, 1u << 20);
		buffer_append_string(&text, "---\n");
		random_collection(&text, 0, 1);
		json = good(DOCUMENT_JSON, text.data + 4, 0);
		typed = good(DOCUMENT_YAML, text.data + 4, 0);
		yaml = good(DOCUMENT_YAML, text.data, 0);
		if (!same_node(document_root(json), document_root(typed), 0) ||
			!same_node(document_root(json), document_root(yaml), 1) ||
			!node_equal(document_root(json), document_root(yaml)))
			fail_msg("PULLET_SEED=%llu:\n%s", (unsigned long long)(first + n),
				text.data);
		document_free(json);
		document_free(typed);
		document_free(yaml);
		buffer_fini(&text);
	}
}

static void write__of_random_trees__reads_back_equal(void **state)
{
	const char *given = getenv("PULLET_SEED");
	uint64_t first = given ? strtoull(given, NULL, 10) : 1;

	(void)state;
	for (uint64_t n = 0; n < 10000; n++) {
		struct buffer json;
		struct document *d;

		seed = first + n;
		buffer_init(&json, 1u << 20);
		random_collection(&json, 0, 1);
		d = good(DOCUMENT_JSON, json.data, 0);
		for (int type = DOCUMENT_YAML; type <= DOCUMENT_JSON; type++) {
			struct buffer out;
			struct document *again;

			buffer_init(&out, 1u << 20);
			assert_int_equal(
				document_write(document_root(d), (enum document_type)type, &out),
				0);
			again = good((enum document_type)type, out.data, 0);
			if (!node_equal(document_root(d), document_root(again)))
				print_error("seed %llu:\n%s\nbecame\n%s\n",
					(unsigned long long)(first + n), json.data, out.data);
			assert_true(node_equal(document_root(d), document_root(again)));
			document_free(again);
			buffer_fini(&out);
		}
		document_free(d);
		buffer_fini(&json);
	}
}

static void write__over_the_buffers_maximum__is_refused(void **state)
{
	struct document *d = good(DOCUMENT_YAML, "a: long enough to be too long\n", 0);
	struct buffer b;

	(void)state;
	buffer_init(&b, 10);
	assert_int_equal(document_write(document_root(d), DOCUMENT_YAML, &b), -EMSGSIZE);
	buffer_fini(&b);
	assert_int_equal(document_write(document_root(d), DOCUMENT_JSON, &b), -EMSGSIZE);
	buffer_fini(&b);
	document_free(d);
}

static void json_write__of_infinity__is_refused(void **state)
{
	struct document *d = good(DOCUMENT_YAML, "a: {b: [.inf]}\n", 0);
	struct buffer b;

	(void)state;
	buffer_init(&b, 1000);
	assert_int_equal(document_write(document_root(d), DOCUMENT_JSON, &b), -EINVAL);
	buffer_fini(&b);
	document_free(d);
}

static void yaml__one_version_directive__is_read(void **state)
{
	static const char *const texts[] = {
		"%YAML 1.2\n---\na: 1\n",
		"%YAML\t1.1   # why\n---\na: 1\n",
		"# c\n\n%YAML 1.2\r\n# c\n--- # c\na: 1\n...\n# c\n...\n",
		"a: '\n%TAG x'\n",
		"a: |\n  %TAG x\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct document_error e;
		struct document *d = NULL;

		if (document_parse(DOCUMENT_YAML, texts[i], strlen(texts[i]), 0, &d, &e))
			fail_msg("%zu: %u:%u: %s", i, e.line, e.column, e.message);
		document_free(d);
	}
}

/* Each took hours: the time is square in what goes in. */
/* Processor time until an error behind so many escaped backslashes is told. */
static double seconds_for_backslashes(
	const char *begin, const char *end, const char *message, size_t count)
{
	struct document_error e;
	struct document *d = NULL;
	struct buffer text;
	clock_t before;
	double ticks;

	buffer_init(&text, 4 * count);
	buffer_append_string(&text, begin);
	for (size_t k = 0; k < count; k++)
		buffer_append(&text, "\\\\", 2);
	buffer_append_string(&text, end);
	before = clock();
	assert_int_equal(document_parse(DOCUMENT_JSON, text.data, text.len, 0, &d, &e), -EINVAL);
	ticks = (double)(clock() - before);
	if (!strstr(e.message, message))
		fail_msg("%s", e.message);
	buffer_fini(&text);
	return ticks / CLOCKS_PER_SEC;
}

static void json__errors_behind_many_backslashes__are_told_in_linear_time(void **state)
{
	static const struct {
		const char *begin, *end, *message;
	} cases[] = {
		{"{\"", "\\u0000\": 1}", "a NUL character"},
		{"{\"a\": 1, \"a\": \"", "\", \"a\": 2}", "duplicate key"},
		{"{\"", "\": 1} x", "after the end"},
	};
	double few = 0.001, many = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		few += seconds_for_backslashes(
			cases[i].begin, cases[i].end, cases[i].message, 1u << 13);
		many += seconds_for_backslashes(
			cases[i].begin, cases[i].end, cases[i].message, 1u << 15);
	}
	/* linear would be 4 times, quadratic 16 times */
	assert_true(many < 10 * few);
}

/* jansson finds the syntax wrong then, or loses a byte of a long text. */
static void parse__with_each_allocation_failing__finds_no_fault_in_the_document(void **state)
{
	static const struct {
		enum document_type type;
		const char *text;
	} table[] = {
		{DOCUMENT_JSON, "{\"a text of more than 16 bytes\": "
				"\"and one that is longer than 32 of them\", \"n\": [1, 2.5]}"},
		{DOCUMENT_YAML, "a: &x {k: 'v', n: 1}\nb: {<<: *x}\nc: |\n  lines\n  of it\n"},
	};
	struct document_error e;
	struct document *whole, *d;
	int r;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const char *text = table[i].text;

		whole = good(table[i].type, text, 0);
		fault_memory.seen = 0;
		for (unsigned n = 1; fault_memory.seen >= n - 1; n++) {
			d = NULL;
			fault_memory.seen = 0;
			fault_memory.nth = n;
			r = document_parse(table[i].type, text, strlen(text), 0, &d, &e);
			fault_memory.nth = 0;
			assert_true(r == 0 || r == -ENOMEM);
			assert_true(r || node_equal(document_root(d), document_root(whole)));
			document_free(d);
			assert_in_range(n, 1, 1000);
		}
		document_free(whole);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(yaml__one_version_directive__is_read),
		cmocka_unit_test(json__errors_behind_many_backslashes__are_told_in_linear_time),
		cmocka_unit_test(yaml__what_is_not_good__is_refused_with_its_place),
		cmocka_unit_test(json__what_is_not_good__is_refused_with_its_place),
		cmocka_unit_test(json__with_a_slip__is_refused_with_a_remedy),
		cmocka_unit_test(
			json_and_yaml__refuse_the_same_with_the_same_words_at_the_same_place),
		cmocka_unit_test(yaml__characters_that_readers_differ_on__are_refused),
		cmocka_unit_test(json__of_any_type__is_read_as_json),
		cmocka_unit_test(yaml__that_begins_like_json__is_read_as_yaml),
		cmocka_unit_test(table__of_documents__is_read_as_it_says),
		cmocka_unit_test(yaml__plain_scalars__follow_the_core_schema),
		cmocka_unit_test(yaml__integers__keep_all_64_bits),
		cmocka_unit_test(yaml__places__are_those_of_value_and_key),
		cmocka_unit_test(number__too_small_for_a_double__is_0_and_keeps_its_text),
		cmocka_unit_test(numbers__of_one_value__are_equal_and_so_is_none_to_itself),
		cmocka_unit_test(yaml__merge_keys__give_way_to_explicit_ones_and_to_earlier_ones),
		cmocka_unit_test(yaml__aliases__are_copied_and_the_latest_anchor_counts),
		cmocka_unit_test(depth__of_64__is_read_and_65_refused),
		cmocka_unit_test(nodes__of_100000__are_read_and_one_more_refused),
		cmocka_unit_test(json__of_our_own__has_a_value_to_each_eight_bytes),
		cmocka_unit_test(json__of_our_own__has_a_cap_on_its_values),
		cmocka_unit_test(yaml__a_billion_laughs__are_refused),
		cmocka_unit_test(yaml__aliases_of_a_long_text__are_refused),
		cmocka_unit_test(yaml__a_map_of_many_keys__is_not_quadratic),
		cmocka_unit_test(flags__keep_duplicates_and_allow_empty__do_so),
		cmocka_unit_test(prefixes__of_a_document__never_crash),
		cmocka_unit_test(yaml_write__strings_that_look_like_something_else__are_quoted),
		cmocka_unit_test(json_and_yaml__read_the_same_of_random_trees),
		cmocka_unit_test(write__of_random_trees__reads_back_equal),
		cmocka_unit_test(write__over_the_buffers_maximum__is_refused),
		cmocka_unit_test(json_write__of_infinity__is_refused),
		cmocka_unit_test(
			parse__with_each_allocation_failing__finds_no_fault_in_the_document),
	};

	return fault_memory_run(tests, 1);
}

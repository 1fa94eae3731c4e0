/*
 * Mustache: what the specification's modules ask for, one row for each rule, in the mode that it
 * describes; what is an error in the strict one; errors with their places; bounds.
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

#include "mustache/mustache.h"
#include "tests/unit/fixture/fault_memory.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define MAX_OUTPUT (1u << 20)

struct row {
	const char *rule, *data, *template, *expected; /* the text, or the sentence of an error */
	const char *partials;                          /* a mapping of them; NULL = none */
};

static struct document *parse(const char *yaml)
{
	struct document *d = NULL;
	struct document_error e;

	if (document_parse(DOCUMENT_YAML, yaml, strlen(yaml), 0, &d, &e))
		fail_msg("%s in: %s", e.message, yaml);
	return d;
}

static int find_partial(void *arg, const char *name, struct buffer *text, char ret_file[FILE_WHY],
	char why[FILE_WHY])
{
	const struct node *n = arg ? node_find(document_root(arg), name) : NULL;

	snprintf(ret_file, FILE_WHY, "%s.mustache", name);
	snprintf(why, FILE_WHY, "there is none");
	return n ? buffer_append(text, n->text, n->text_len) : -ENOENT;
}

/* What comes out, or the sentence. */
static int render(const struct row *row, bool strict, enum mustache_escape escape, size_t max,
	struct buffer *out)
{
	struct document *data = parse(row->data),
			*partials = row->partials ? parse(row->partials) : NULL;
	const struct mustache_options o = {"t", strict, escape, find_partial, partials};
	struct mustache *m = NULL;
	char why[FILE_WHY] = "";
	int r;

	buffer_init(out, max);
	r = mustache_new(&o, row->template, strlen(row->template), &m, why);
	if (r == 0)
		r = mustache_render(m, document_root(data), out, why);
	if (r) {
		buffer_clear(out);
		out->max = MAX_OUTPUT;
		buffer_append_string(out, why);
	}
	buffer_append(out, "", 1);
	mustache_free(m);
	document_free(data);
	document_free(partials);
	return r;
}

static void check_rows(
	const struct row *rows, size_t count, bool strict, enum mustache_escape escape, int result)
{
	for (size_t i = 0; i < count; i++) {
		struct buffer out;
		int r = render(&rows[i], strict, escape, MAX_OUTPUT, &out);

		if (r != result || strcmp(out.data, rows[i].expected) != 0)
			fail_msg(
				"%s: %d\n%s\nnot\n%s", rows[i].rule, r, out.data, rows[i].expected);
		buffer_fini(&out);
	}
}

static void render__of_comments__leaves_them_out(void **state)
{
	static const struct row rows[] = {
		{"within a line", "{a: 1}", "1{{! no }}2", "12", NULL},
		{"alone, its line goes", "{a: 1}", "1\n  {{! no }}  \n2\n", "1\n2\n", NULL},
		{"over lines", "{a: 1}", "1\n{{!\n{{a}\n}}\n2", "1\n2", NULL},
		{"alone with CR LF", "{a: 1}", "|\r\n{{! no }}\r\n|", "|\r\n|", NULL},
		{"alone at the ends", "{a: 1}", "  {{! no }}\n!\n  {{! no }}", "!\n", NULL},
		{"beside text the blanks stay", "{a: 1}", " 1 {{! no }}\n", " 1 \n", NULL},
	};

	(void)state;
	check_rows(rows, COUNT(rows), false, MUSTACHE_HTML, 0);
}

static void render__of_variables__is_their_text(void **state)
{
	static const struct row rows[] = {
		{"no tag", "{a: 1}", "Hello {}\n", "Hello {}\n", NULL},
		{"the name is trimmed", "{a: x}", "|{{ a }}|{{{ a }}}|{{& a }}|", "|x|x|x|", NULL},
		{"escaped", "{a: '& \" < >'}", "{{a}}", "&amp; &quot; &lt; &gt;", NULL},
		{"not escaped", "{a: '& \" < >'}", "{{{a}}} {{&a}}", "& \" < > & \" < >", NULL},
		{"numbers are as written", "{a: 1.210, b: 85, c: 1E5}", "{{a}} {{b}} {{c}}",
			"1.210 85 1E5", NULL},
		{"null and what is missing are empty", "{a: null}", "({{a}})({{b}})({{c.d}})",
			"()()()", NULL},
		{"dotted", "{a: {b: {c: x}}}", "{{a.b.c}}", "x", NULL},
		{"a broken chain is not mended outside", "{a: {b: {}}, c: {d: x}}", "({{a.b.c.d}})",
			"()", NULL},
		{"the first part is looked for outside, the rest is not", "{a: {b: {}}, b: {c: x}}",
			"{{#a}}({{b.c}}){{/a}}", "()", NULL},
		{"the innermost wins", "{a: 1, s: {a: 2}}", "{{#s}}{{a}}{{/s}}{{a}}", "21", NULL},
		{"a variable alone keeps its line", "{a: x}", "  {{a}}\n", "  x\n", NULL},
		{"the value is no template", "{a: '{{b}}', b: x}", "{{{a}}}", "{{b}}", NULL},
	};

	(void)state;
	check_rows(rows, COUNT(rows), false, MUSTACHE_HTML, 0);
}

static void render__of_sections__is_once_never_or_for_each_item(void **state)
{
	static const struct row rows[] = {
		{"true, false", "{t: true, f: false, n: null, l: []}",
			"{{#t}}t{{/t}}{{#f}}f{{/f}}{{#n}}n{{/n}}{{#l}}l{{/l}}{{#m}}m{{/m}}", "t",
			NULL},
		{"inverted", "{t: true, f: false, n: null, l: []}",
			"{{^t}}t{{/t}}{{^f}}f{{/f}}{{^n}}n{{/n}}{{^l}}l{{/l}}{{^m}}m{{/m}}", "fnlm",
			NULL},
		{"\"\", 0 and an empty mapping are true", "{e: '', z: 0, m: {}}",
			"{{#e}}e{{/e}}{{#z}}z{{/z}}{{#m}}m{{/m}}", "ezm", NULL},
		{"items", "{l: [{a: 1}, {a: 2}]}", "{{#l}}<{{a}}>{{/l}}", "<1><2>", NULL},
		{"scalars as items", "{l: [a, 2, 3.0]}", "{{#l}}{{.}},{{/l}}", "a,2,3.0,", NULL},
		{"lists as items", "{l: [[1, 2], [3]]}", "{{#l}}({{#.}}{{.}}{{/.}}){{/l}}",
			"(12)(3)", NULL},
		{"a text is what it is about", "{a: x}", "{{#a}}{{.}}{{/a}}", "x", NULL},
		{"dotted", "{a: {b: [1]}}", "{{#a.b}}{{.}}{{/a.b}}{{^a.c}}-{{/a.c}}", "1-", NULL},
		{"outer names within", "{x: o, l: [{y: i}]}", "{{#l}}{{x}}{{y}}{{/l}}", "oi", NULL},
		{"the same within each other", "{t: true}", "{{#t}}a{{#t}}b{{/t}}c{{/t}}", "abc",
			NULL},
		{"standing alone", "{t: true}", "|\n  {{#t}}\n|\n\t{{/t}}  \n|\n", "|\n|\n|\n",
			NULL},
		{"two in a line do not stand alone", "{t: true}", " {{#t}} {{/t}}\n", "  \n", NULL},
		{"alone with CR LF, and at the end", "{t: true}",
			"|\r\n{{#t}}\r\n{{/t}}\r\n|{{#t}}\n  {{/t}}", "|\r\n|\n", NULL},
	};

	(void)state;
	check_rows(rows, COUNT(rows), false, MUSTACHE_HTML, 0);
}

static void render__of_delimiters__takes_the_new_ones_in_this_file(void **state)
{
	static const struct row rows[] = {
		{"pair", "{a: x}", "{{=<% %>=}}(<%a%>{{a}})", "(x{{a}})", NULL},
		{"one character, blanks", "{a: x}", "{{= |  | =}}(|a|)", "(x)", NULL},
		{"the longest", "{a: x}",
			"{{=[[[[[[[[[[[[[[[[ ]]]]]]]]]]]]]]]]=}}[[[[[[[[[[[[[[[[a]]]]]]]]]]]]]]]]",
			"x", NULL},
		{"back again", "{a: x}", "{{=| |=}}|a||={{ }}=|{{a}}", "xx", NULL},
		{"in sections", "{t: true, a: x}", "{{=| |=}}|#t||a||/t|", "x", NULL},
		{"not in partials, nor out of them", "{a: x}", "{{=| |=}}|>p||a|", "xx",
			"{p: '{{=< >=}}<a>'}"},
		{"alone, its line goes", "{a: x}", "1\n  {{=| |=}}  \n2", "1\n2", NULL},
		{"braces", "{a: '<'}", "{{=<< >>=}}<<{a}>>", "<", NULL},
	};

	(void)state;
	check_rows(rows, COUNT(rows), false, MUSTACHE_HTML, 0);
}

static void render__of_partials__indents_those_that_stand_alone(void **state)
{
	static const struct row rows[] = {
		{"in its context", "{a: x}", "({{>p}})", "(x)", "{p: '{{a}}'}"},
		{"not there", "{a: x}", "({{>q}})", "()", NULL},
		{"twice, and another one", "{a: x}", "{{>p}}{{>q}}{{>q}}{{>p}}", "(x)[x][x](x)",
			"{p: '({{a}})', q: '[{{a}}]'}"},
		{"calls itself", "{v: 1, l: [{v: 2, l: []}]}", "{{>p}}", "<1<2>>",
			"{p: '<{{v}}{{#l}}{{>p}}{{/l}}>'}"},
		{"each of its lines", "{a: x}", " {{>p}}\n!", " 1\n x\n!", "{p: \"1\\n{{a}}\\n\"}"},
		{"not the lines of values", "{a: \"x\\ny\"}", " {{>p}}\n!", " (x\ny)\n!",
			"{p: \"({{{a}}})\\n\"}"},
		{"not an empty line", "{a: x}", " {{>p}}\n", " 1\n\n 2\n", "{p: \"1\\n\\n2\\n\"}"},
		{"not an empty line with a return", "{a: x}", " {{>p}}\n", " 1\r\n\r\n 2\r\n",
			"{p: \"1\\r\\n\\r\\n2\\r\\n\"}"},
		{"within each other", "{a: x}", " {{>p}}\n", " 1\n   2\n",
			"{p: \"1\\n  {{>q}}\\n\", q: \"2\\n\"}"},
		{"within a line: not at all", "{a: x}", " {{>p}}\n", " 1 2\n3\n\n",
			"{p: \"1 {{>q}}\\n\", q: \"2\\n3\\n\"}"},
		{"in one within a line: as that one says", "{a: x}", " {{>p}}\n", " 1 2\n  3\n\n",
			"{p: \"1 {{>q}}\\n\", q: \"2\\n  {{>r}}\\n\", r: \"3\\n\"}"},
		{"sections in it", "{l: [1, 2]}", "  {{>p}}\n", "  - 1\n  - 2\n",
			"{p: \"{{#l}}\\n- {{.}}\\n{{/l}}\\n\"}"},
		{"a closing tag begins the line", "{f: false}", " {{>p}}\n", " a\n",
			"{p: \"{{#f}}x\\n{{/f}}a\\n\"}"},
	};

	(void)state;
	check_rows(rows, COUNT(rows), false, MUSTACHE_HTML, 0);
}

static void render__when_strict__takes_what_a_configuration_has(void **state)
{
	static const struct row rows[] = {
		{"nothing is escaped", "{a: '<\"&>\t'}", "{{a}}", "<\"&>\t", NULL},
		{"null is there", "{a: null}", "({{a}})", "()", NULL},
		{"sections may be missing", "{a: 1}", "{{#b}}{{b.c}}{{/b}}{{^b}}no{{/b}}", "no",
			NULL},
		{"lines where that is meant", "{a: \"1\\n2\"}", "{{{a}}}{{&a}}", "1\n21\n2", NULL},
	};
	static const struct row bad[] = {
		{"missing", "{a: 1}", "x\n  {{b}}",
			"t:2:3: there is no 'b' here: correct the name, or, if it may be missing, "
			"put the line between {{#b}} and {{/b}}",
			NULL},
		{"a filter", "{port: 1}", "{{port|upper}}",
			"t:1:1: there is no 'port|upper' here: write a name alone, for there are "
			"no filters, calls or operators",
			NULL},
		{"missing in a partial", "{a: 1}", "{{>p}}",
			"p.mustache:2:1: there is no 'b.c' here: correct the name, or, if it may "
			"be "
			"missing, put the line between {{#b.c}} and {{/b.c}}",
			"{p: \"\\n{{b.c}}\"}"},
		{"no partial", "{a: 1}", "ä{{>p}}", "t:1:2: the partial 'p': there is none", NULL},
		{"a line break", "{a: \"1\\n2\"}", "{{a}}",
			"t:1:1: the value of 'a' has a line break or another control character in "
			"it: write {{{a}}} if it is meant to be there",
			NULL},
		{"a list", "{a: [secret]}", "{{a}}",
			"t:1:1: 'a' is a list, which has no text: use a section, {{#a}}", NULL},
		{"a mapping", "{a: {b: 1}}", "{{{a}}}",
			"t:1:1: 'a' is a mapping, which has no text: name a key of it; a template "
			"cannot go through its keys, a list or format: run can",
			NULL},
		{"the root", "{a: 1}", "{{.}}",
			"t:1:1: '.' is a mapping, which has no text: name a key of it; a template "
			"cannot go through its keys, a list or format: run can",
			NULL},
	};

	(void)state;
	check_rows(rows, COUNT(rows), true, MUSTACHE_LINE, 0);
	check_rows(bad, COUNT(bad), true, MUSTACHE_LINE, -EINVAL);
}

#define DELIMITERS                                                                                 \
	"t:1:1: delimiters are two words of at most 16 characters without '=', as in {{=<% %>=}}"

static void new__of_a_bad_template__says_where(void **state)
{
	static const struct row rows[] = {
		{"tag", "{a: 1}", "1\n {{a\n\n",
			"t:2:2: the tag that begins here is not closed: '}}' is missing", NULL},
		{"three braces", "{a: 1}", "{{{a}}",
			"t:1:1: the tag that begins here is not closed: '}}}' is missing", NULL},
		{"section", "{a: 1}", "{{#a}}\n{{#b}}{{/b}}",
			"t:1:1: the section 'a' that begins here is not closed", NULL},
		{"nothing open", "{a: 1}", "{{/a}}",
			"t:1:1: 'a' is closed here, and no section is open", NULL},
		{"crossed", "{a: 1}", "\n{{#a}}{{^b}}\n{{/a}}{{/b}}",
			"t:3:1: 'a' is closed here, but 'b', opened in line 2, is to be closed "
			"first",
			NULL},
		{"no name", "{a: 1}", "{{ }}", "t:1:1: the tag has no name", NULL},
		{"a name of two lines", "{a: 1}", "{{a\n{{b}}",
			"t:1:1: the name 'a' has a blank in it: is the tag closed where it should "
			"be?",
			NULL},
		{"dots", "{a: 1}", "{{a..b}}",
			"t:1:1: the name 'a..b' has a dot with nothing before or behind it", NULL},
		{"a dot before", "{a: 1}", "{{.a}}",
			"t:1:1: the name '.a' has a dot with nothing before or behind it", NULL},
		{"a dot behind", "{a: 1}", "{{a.}}",
			"t:1:1: the name 'a.' has a dot with nothing before or behind it", NULL},
		{"delimiters", "{a: 1}", "{{=a=}}", DELIMITERS, NULL},
		{"one and a blank", "{a: 1}", "{{=a =}}", DELIMITERS, NULL},
		{"three delimiters", "{a: 1}", "{{=a b c=}}", DELIMITERS, NULL},
		{"a long delimiter that opens", "{a: 1}", "{{=12345678901234567 b=}}", DELIMITERS,
			NULL},
		{"a long delimiter that closes", "{a: 1}", "{{=a 12345678901234567=}}", DELIMITERS,
			NULL},
		{"inheritance", "{a: 1}", "{{<a}}",
			"t:1:1: tags that begin with '<' (inheritance) are not supported", NULL},
		{"blocks", "{a: 1}", "{{$a}}",
			"t:1:1: tags that begin with '$' (inheritance) are not supported", NULL},
		{"dynamic names", "{a: 1}", "{{>*a}}",
			"t:1:1: tags that begin with '>*' (dynamic names) are not supported", NULL},
		{"in a partial", "{a: 1}", "{{>p}}", "p.mustache:1:2: the tag has no name",
			"{p: ' {{}}'}"},
	};

	(void)state;
	check_rows(rows, COUNT(rows), false, MUSTACHE_HTML, -EINVAL);
	check_rows(rows, COUNT(rows), true, MUSTACHE_LINE, -EINVAL);
}

static void repeat(struct buffer *b, const char *piece, size_t count)
{
	while (count--)
		buffer_append_string(b, piece);
}

static void render__beyond_a_bound__is_an_error(void **state)
{
	struct row endless = {"endless", "{a: 1}", "{{>p}}",
			   "p:1:3: more than 100 sections and partials within each other",
			   "{p: ' {{#a}}{{>p}}{{/a}}'}"},
		   output = {"output", "{a: 1}", "12345", "", NULL};
	struct buffer out, list, nested;

	(void)state;
	assert_int_equal(render(&endless, true, MUSTACHE_LINE, MAX_OUTPUT, &out), -EINVAL);
	assert_non_null(strstr(out.data, "more than 100 sections and partials within each other"));
	buffer_fini(&out);
	assert_int_equal(render(&output, true, MUSTACHE_LINE, 4, &out), -EMSGSIZE);
	assert_non_null(strstr(out.data, "more than the 4 bytes"));
	buffer_fini(&out);
	output = (struct row){"the last value", "{a: '<<'}", "{{a}}", "", NULL};
	assert_int_equal(render(&output, true, MUSTACHE_HTML, 7, &out), -EMSGSIZE);
	buffer_fini(&out);
	assert_int_equal(render(&output, true, MUSTACHE_HTML, 9, &out), 0);
	assert_string_equal(out.data, "&lt;&lt;");
	buffer_fini(&out);
	buffer_init(&list, 1u << 20);
	buffer_append_string(&list, "a: [1");
	repeat(&list, ",1", 9999);
	buffer_append_string(&list, "]");
	endless =
		(struct row){"steps", list.data, "{{#a}}{{#a}}{{^b}}{{/b}}{{/a}}{{/a}}", "", NULL};
	assert_int_equal(render(&endless, true, MUSTACHE_LINE, MAX_OUTPUT, &out), -EINVAL);
	assert_non_null(strstr(out.data, "it takes more than 50000000 steps"));
	buffer_fini(&out);
	buffer_fini(&list);
	buffer_init(&nested, 1u << 20);
	repeat(&nested, "{{#a}}", MUSTACHE_MAX_DEPTH + 1);
	endless = (struct row){"nested", "{a: 1}", nested.data, "", NULL};
	assert_int_equal(render(&endless, true, MUSTACHE_LINE, MAX_OUTPUT, &out), -EINVAL);
	assert_string_equal(out.data, "t:1:601: more than 100 sections within each other");
	buffer_fini(&out);
	buffer_clear(&nested);
	repeat(&nested, "x", MUSTACHE_MAX_BYTES + 1);
	endless.template = nested.data;
	assert_int_equal(render(&endless, true, MUSTACHE_LINE, MAX_OUTPUT, &out), -EMSGSIZE);
	assert_string_equal(out.data, "t: has more than 262144 bytes");
	buffer_fini(&out);
	buffer_fini(&nested);
}

static void new__of_too_many_partials__is_an_error(void **state)
{
	struct buffer text, partials, out;
	struct row row = {.data = "{a: 1}"};

	(void)state;
	buffer_init(&text, 1u << 20);
	buffer_init(&partials, 1u << 20);
	for (int i = 0; i < MUSTACHE_MAX_FILES; i++) {
		buffer_printf(&text, "{{>p%d}}", i);
		buffer_printf(&partials, "p%d: x\n", i);
	}
	row.template = text.data;
	row.partials = partials.data;
	assert_int_equal(render(&row, true, MUSTACHE_LINE, MAX_OUTPUT, &out), -EINVAL);
	assert_non_null(strstr(out.data, "more than 63 partials"));
	buffer_fini(&out);
	buffer_fini(&text);
	buffer_fini(&partials);
}

static void describe__of_another_text_or_mode__differs(void **state)
{
	static const struct {
		const char *text, *partials;
		bool strict;
		enum mustache_escape escape;
	} all[] = {{"{{>p}}", "{p: a}", true, MUSTACHE_LINE},
		{"{{>p}} ", "{p: a}", true, MUSTACHE_LINE},
		{"{{>p}}", "{p: b}", true, MUSTACHE_LINE},
		{"{{>p}}", "{p: a}", false, MUSTACHE_LINE},
		{"{{>p}}", "{p: a}", true, MUSTACHE_HTML}};
	struct buffer seen[COUNT(all)], little;

	(void)state;
	for (size_t i = 0; i < COUNT(all); i++) {
		struct document *partials = parse(all[i].partials);
		const struct mustache_options o = {
			"t", all[i].strict, all[i].escape, find_partial, partials};
		struct mustache *m = NULL;
		char why[FILE_WHY];

		assert_int_equal(mustache_new(&o, all[i].text, strlen(all[i].text), &m, why), 0);
		buffer_init(&seen[i], 1u << 20);
		assert_int_equal(mustache_describe(m, &seen[i]), 0);
		buffer_init(&little, 8); /* else two templates would look like one */
		assert_int_equal(mustache_describe(m, &little), -EMSGSIZE);
		buffer_fini(&little);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(seen[k].data, seen[i].data);
		mustache_free(m);
		document_free(partials);
	}
	for (size_t i = 0; i < COUNT(all); i++)
		buffer_fini(&seen[i]);
}

static int find_nothing(void *arg, const char *name, struct buffer *text, char ret_file[FILE_WHY],
	char why[FILE_WHY])
{
	(void)arg, (void)name, (void)text, (void)ret_file;
	memset(why, 'w', FILE_WHY - 1);
	why[FILE_WHY - 1] = '\0';
	return -EIO;
}

static void error__of_the_longest_names__is_cut_to_its_bound(void **state)
{
	char name[400], text[400];
	const struct mustache_options o = {name, true, MUSTACHE_LINE, find_nothing, NULL};
	struct {
		char why[FILE_WHY], behind[FILE_WHY];
	} said;
	struct mustache *m = NULL;

	(void)state;
	memset(name, 'f', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	memset(text, '\n', sizeof(text));
	memset(text + 196, 'n', 200);
	memcpy(text + 196, "{{>", 3);
	memcpy(text + 396, "}}", 3);
	memset(said.behind, '#', sizeof(said.behind));
	assert_int_equal(mustache_new(&o, text, strlen(text), &m, said.why), -EINVAL);
	assert_true(strnlen(said.why, sizeof(said.why)) < sizeof(said.why));
	assert_non_null(strstr(said.why, "f:197:1: the partial 'nnn"));
	for (size_t i = 0; i < sizeof(said.behind); i++)
		assert_int_equal(said.behind[i], '#');
}

static const char memory_text[] = "{{#a}}{{b}}{{^c}}x{{/c}}{{>p}}{{=<% %>=}}<%b%><%/a%>";
static struct document *memory_data, *memory_partials;

/* Compiles, describes and renders. */
static bool render_once(void)
{
	const struct mustache_options o = {"t", true, MUSTACHE_LINE, find_partial, memory_partials};
	struct mustache *m = NULL;
	char why[FILE_WHY] = "";
	struct buffer out;
	int r;

	buffer_init(&out, MAX_OUTPUT);
	r = mustache_new(&o, memory_text, strlen(memory_text), &m, why);
	if (r) {
		assert_null(m);
		assert_string_equal(why, "out of memory");
	}
	if (r == 0)
		r = mustache_render(m, document_root(memory_data), &out, why);
	if (r == 0)
		assert_string_equal(out.data, "1x2:11");
	assert_true(r == 0 || r == -ENOMEM);
	mustache_free(m);
	buffer_fini(&out);
	return r;
}

static void template__without_memory__is_none_and_leaves_nothing(void **state)
{
	(void)state;
	memory_data = parse("{a: {b: 1}, b: 2, c: false}");
	memory_partials = parse("{p: '2:{{b}}'}");
	assert_true(fault_memory_each(render_once, false) >= 8);
	assert_true(fault_memory_each(render_once, true) >= 8);
	document_free(memory_data);
	document_free(memory_partials);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(render__of_comments__leaves_them_out),
		cmocka_unit_test(render__of_variables__is_their_text),
		cmocka_unit_test(render__of_sections__is_once_never_or_for_each_item),
		cmocka_unit_test(render__of_delimiters__takes_the_new_ones_in_this_file),
		cmocka_unit_test(render__of_partials__indents_those_that_stand_alone),
		cmocka_unit_test(render__when_strict__takes_what_a_configuration_has),
		cmocka_unit_test(new__of_a_bad_template__says_where),
		cmocka_unit_test(render__beyond_a_bound__is_an_error),
		cmocka_unit_test(new__of_too_many_partials__is_an_error),
		cmocka_unit_test(describe__of_another_text_or_mode__differs),
		cmocka_unit_test(error__of_the_longest_names__is_cut_to_its_bound),
		cmocka_unit_test(template__without_memory__is_none_and_leaves_nothing),
	};

	return fault_memory_run(tests, 1);
}

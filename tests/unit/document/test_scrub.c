/* Masked values in what programs wrote. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "document/scrub.h"

static struct scrub *scrub_of(const char *yaml, char *const *mask)
{
	struct scrub *s = scrub_new();
	struct document_error e;
	struct document *d;

	assert_non_null(s);
	assert_int_equal(document_parse(DOCUMENT_YAML, yaml, strlen(yaml), 0, &d, &e), 0);
	scrub_add(s, document_root(d), mask);
	document_free(d);
	return s;
}

static const char *scrubbed(const struct scrub *s, const char *text)
{
	static struct buffer b;

	buffer_fini(&b);
	buffer_init(&b, 1u << 20);
	assert_int_equal(scrub_append(s, &b, text, strlen(text)), 0);
	assert_int_equal(b.len, b.data ? strlen(b.data) : 0);
	return b.data ? b.data : "";
}

static const char yaml[] =
	"db:\n  host: example\n  password: hunter2\n  pin: 123456\n  on: true\n  no: abc\n"
	"  list: [{token: tok-en-1}]\n"
	"key: |\n  first line of it\n  second line\n"
	"quoted: \"with \\\"quotes\\\"\"\n"
	"long: hunter2hunter2\n"
	"control: \"\\x01\\x02\\x03\\x04\"\n";
static char *const mask[] = {(char[]){"db.password"}, (char[]){"db.pin"}, (char[]){"db.on"},
	(char[]){"db.no"}, (char[]){"db.list"}, (char[]){"key"}, (char[]){"quoted"},
	(char[]){"long"}, (char[]){"control"}, NULL};

static void masked__values__are_taken_out(void **state)
{
	static const struct {
		const char *text, *result;
	} rows[] = {
		{"", ""},
		{"nothing of it, example", "nothing of it, example"},
		{"password hunter2 is bad", "password *** is bad"},
		{"hunter2", "***"},
		{"hunter2hunter2hunter2", "***"}, /* one touches the other */
		{"xhunter2y123456z", "x***y***z"},
		{"true abc", "true abc"}, /* too short, or a word of every day */
		{"token 'tok-en-1'", "token '***'"},
		{"> first line of it\n> second line\n", "> ***\n> ***\n"},
		{"{\"q\": \"with \\\"quotes\\\"\"}", "{\"q\": \"***\"}"},
		{"a \\u0001\\u0002\\u0003\\u0004 b", "a *** b"}, /* six bytes for each */
		{"huntex", "huntex"},
		{"unter2", "unter2"},
		{"first line of it", "***"},
		{"first line of i", "***"},
		{"second line", "***"},
		{"first line of it\nsecond line\n", "***"},
		{"first line of it\\nsecond line\\n", "***"},
		{"with \"quotes\"", "***"},
		{"cut: hunt", "cut: ***"}, /* as few as are searched for */
		{"cut: hun", "cut: hun"},
		{"tok-en-1", "***"},
		{"hunter123456", "hunter***"},
		{"12345", "***"},
		{"12345x", "12345x"},
		{"cut: hunte", "cut: ***"}, /* the end of it was cut off */
		{"cut: first line", "cut: ***"},
	};
	struct scrub *s = scrub_of(yaml, mask);

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(scrubbed(s, rows[i].text), rows[i].result);
	scrub_free(s);
}

static void nothing__is_hidden__without_a_mask_or_a_document(void **state)
{
	char *const none[] = {NULL};
	char *const other[] = {(char[]){"db.host.x"}, (char[]){"d"}, NULL};
	struct scrub *s = scrub_of(yaml, none);

	(void)state;
	assert_string_equal(scrubbed(s, "hunter2 123456"), "hunter2 123456");
	scrub_add(s, NULL, other);
	assert_string_equal(scrubbed(s, "hunter2 123456"), "hunter2 123456");
	scrub_free(s);
	s = scrub_of(yaml, other);
	assert_string_equal(scrubbed(s, "hunter2 example"), "hunter2 example");
	scrub_free(s);
	s = scrub_of(yaml, NULL);
	assert_string_equal(scrubbed(s, "hunter2 123456"), "hunter2 123456");
	scrub_free(s);
	scrub_free(NULL);
}

static void values__below_a_masked_key__are_hidden_and_others_not(void **state)
{
	char *const below[] = {(char[]){"db"}, NULL};
	char *const item[] = {(char[]){"l.1"}, (char[]){"m.*"}, NULL};
	struct scrub *s = scrub_of(yaml, below);

	(void)state;
	assert_string_equal(scrubbed(s, "example, hunter2 tok-en-1 abc"), "***, *** *** abc");
	assert_string_equal(scrubbed(s, "first line of it"), "first line of it");
	scrub_free(s);
	s = scrub_of("l: [aaaa, bbbb, cccc]\nm: {x: dddd, y: 1.2345}\nn: eeee\n", item);
	assert_string_equal(
		scrubbed(s, "aaaa bbbb cccc dddd 1.2345 eeee"), "aaaa *** cccc *** *** eeee");
	scrub_free(s);
}

static void text__that_does_not_fit__is_an_error(void **state)
{
	struct scrub *s = scrub_of(yaml, mask);
	struct buffer b;

	(void)state;
	buffer_init(&b, 5);
	assert_int_equal(scrub_append(s, &b, "a hunter2", 9), 0);
	assert_string_equal(b.data, "a ***");
	assert_int_equal(scrub_append(s, &b, "x", 1), -EMSGSIZE);
	buffer_fini(&b);
	scrub_hide_all(s);
	buffer_init(&b, 2);
	assert_int_equal(scrub_append(s, &b, "", 0), 0);
	assert_int_equal(scrub_append(s, &b, "x", 1), -EMSGSIZE);
	buffer_fini(&b);
	scrub_free(s);
}

static void all__is_hidden__where_a_value_cannot_be_known(void **state)
{
	struct scrub *s = scrub_new();

	(void)state;
	scrub_hide_all(s);
	assert_string_equal(scrubbed(s, "anything"), "***");
	assert_string_equal(scrubbed(s, ""), "");
	scrub_free(s);
}

/* So that a document made for it costs no time. */
static void work__is_bounded__and_then_nothing_is_shown(void **state)
{
	char *const all[] = {(char[]){"*"}, NULL};
	struct scrub *s;
	struct buffer b;
	char *text = malloc(60001);

	(void)state;
	buffer_init(&b, 4u << 20);
	for (int i = 0; i < 9000; i++)
		buffer_printf(&b, "k%d: aaaaaaaa%d\n", i, i);
	s = scrub_of(b.data, all);
	memset(text, 'a', 60000);
	text[60000] = '\0';
	assert_string_equal(scrubbed(s, text), "***");
	assert_string_equal(scrubbed(s, "b aaaaaaaa1 b"), "b *** b");
	free(text);
	scrub_free(s);
	buffer_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(masked__values__are_taken_out),
		cmocka_unit_test(nothing__is_hidden__without_a_mask_or_a_document),
		cmocka_unit_test(values__below_a_masked_key__are_hidden_and_others_not),
		cmocka_unit_test(text__that_does_not_fit__is_an_error),
		cmocka_unit_test(all__is_hidden__where_a_value_cannot_be_known),
		cmocka_unit_test(work__is_bounded__and_then_nothing_is_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Chunked bodies, in pieces of any size: what is taken, and what is refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "http/chunks.h"

struct outcome {
	int error;
	const char *why;
	char body[256];
	size_t behind; /* bytes behind the end */
	bool over;
};

static struct outcome read_in_pieces(const char *text, size_t len, size_t piece)
{
	struct outcome o = {.why = ""};
	struct chunks c = {0};
	size_t have = 0;

	for (size_t at = 0; o.error == 0 && at < len; at += piece) {
		size_t n = len - at < piece ? len - at : piece, got;
		char *exact = malloc(n);
		const char *data = exact, *part;
		int r;

		assert_non_null(exact);
		memcpy(exact, text + at, n);
		while ((r = chunks_take(&c, &data, &n, &part, &got, &o.why)) > 0) {
			assert_true(got > 0 && have + got < sizeof(o.body));
			memcpy(o.body + have, part, got);
			have += got;
		}
		o.error = r;
		o.behind += r ? 0 : n;
		free(exact);
	}
	o.over = chunks_are_over(&c);
	return o;
}

static void body__in_chunks_of_any_form__is_put_together(void **state)
{
	static const struct {
		const char *text, *body;
		size_t behind;
	} table[] = {
		{"5\r\nhello\r\n0\r\n\r\n", "hello", 0},
		{"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", "hello", 0},
		{"0\r\n\r\n", "", 0},
		{"0005\r\nhello\r\n000\r\n\r\n", "hello", 0},
		{"A\r\n0123456789\r\n0\r\n\r\n", "0123456789", 0},
		{"a\r\n0\r\n\r\n89abc\r\n0\r\n\r\n", "0\r\n\r\n89abc", 0},
		{"5;x\r\nhello\r\n0;y=\"z;5\"\r\n\r\n", "hello", 0},
		{"5 ; x\r\nhello\r\n0  \r\n\r\n", "hello", 0},
		{"5\r\nhello\r\n0\r\nETag: \"2\"\r\nX:\r\n\r\n", "hello", 0},
		{"5\r\nhello\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n", "hello", 17},
		{"0000000000000005\r\nhello\r\n0\r\n\r\n", "hello", 0},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		for (size_t piece = 1; piece < 40; piece++) {
			struct outcome o =
				read_in_pieces(table[i].text, strlen(table[i].text), piece);

			assert_int_equal(o.error, 0);
			assert_true(o.over);
			assert_string_equal(o.body, table[i].body);
			assert_int_equal(o.behind, table[i].behind);
		}
	(void)state;
}

static void body__cut_at_any_place__is_not_over(void **state)
{
	static const char text[] = "2;x\r\nhe\r\n3\r\nllo\r\n0\r\nX: y\r\n\r\n";

	(void)state;
	for (size_t cut = 0; cut < strlen(text); cut++) {
		struct outcome o = read_in_pieces(text, cut, 7);

		assert_int_equal(o.error, 0);
		assert_false(o.over);
	}
}

static void chunk__that_is_malformed__is_refused(void **state)
{
	static const struct {
		const char *text, *why;
	} table[] = {
		{"5x\r\nhello\r\n0\r\n\r\n", "the size"},
		{"0x5\r\nhello\r\n0\r\n\r\n", "the size"},
		{"+5\r\nhello\r\n0\r\n\r\n", "the size"},
		{"-5\r\nhello\r\n0\r\n\r\n", "the size"},
		{" 5\r\nhello\r\n0\r\n\r\n", "the size"},
		{"\r\nhello\r\n0\r\n\r\n", "the size"},
		{";x\r\nhello\r\n0\r\n\r\n", "the size"},
		{"5 5\r\nhello\r\n0\r\n\r\n", "the size"},
		{"5,5\r\nhello\r\n0\r\n\r\n", "the size"},
		{"5;\x01\r\nhello\r\n0\r\n\r\n", "the size"},
		{"5\nhello\r\n0\r\n\r\n", "the size"},
		{"5\rhello\r\n0\r\n\r\n", "the size"},
		{"5;x\ny\r\nhello\r\n0\r\n\r\n", "the size"},
		{"00000000000000005\r\nhello\r\n0\r\n\r\n", "the size"},
		{"8000000000000000\r\nhello\r\n0\r\n\r\n", "the size"},
		{"ffffffffffffffff\r\nhello\r\n0\r\n\r\n", "the size"},
		{"10000000000000005\r\nhello\r\n0\r\n\r\n", "the size"},
		{"4\r\nhello\r\n0\r\n\r\n", "not as long"},
		{"6\r\nhello\r\n0\r\n\r\n", "not as long"},
		{"5\r\nhello0\r\n\r\n", "not as long"},
		{"5\r\nhello\n0\r\n\r\n", "not as long"},
		{"5\r\nhello\r\n0\r\nX: y\n\r\n", "trailers"},
		{"5\r\nhello\r\n0\r\n\n", "trailers"},
		{"5\r\nhello\r\n0\r\n\rX", "trailers"},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		for (size_t piece = 1; piece < 30; piece++) {
			struct outcome o =
				read_in_pieces(table[i].text, strlen(table[i].text), piece);

			assert_int_equal(o.error, -EBADMSG);
			assert_non_null(strstr(o.why, table[i].why));
		}
	assert_int_equal(read_in_pieces("5\0\r\n", 4, 9).error, -EBADMSG);
	(void)state;
}

static void extras__have_a_limit(void **state)
{
	static const struct {
		const char *before, *many;
	} table[] = {{"5;", "x"}, {"5 ", " "}, {"0\r\n", "X: y\r\n"}, {"0\r\nX: ", "y"},
		{"", "1;xxxxxxxxx\r\nx\r\n"}};
	size_t len = 2 * CHUNKS_MAX_EXTRA;
	char *text = malloc(len);

	(void)state;
	assert_non_null(text);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct chunks c = {0};
		const char *data = text, *part, *why = "";
		size_t n = len, got;
		int r;

		for (size_t at = strlen(table[i].before), k = 0; at < len; at++, k++)
			text[at] = table[i].many[k % strlen(table[i].many)];
		memcpy(text, table[i].before, strlen(table[i].before));
		while ((r = chunks_take(&c, &data, &n, &part, &got, &why)) > 0)
			;
		assert_int_equal(r, -EBADMSG);
		assert_non_null(strstr(why, "too many extensions or trailers"));
	}
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(body__in_chunks_of_any_form__is_put_together),
		cmocka_unit_test(body__cut_at_any_place__is_not_over),
		cmocka_unit_test(chunk__that_is_malformed__is_refused),
		cmocka_unit_test(extras__have_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

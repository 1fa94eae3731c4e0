/*
 * Answers as they come, without a network: whole, in pieces, and what makes one invalid. However
 * the body is cut, the same is made of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "http/reception.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct answer {
	const char *head[6];
	const char *body;
	bool head_refused, body_refused, whole; /* by its bytes alone */
	const char *made;                       /* of the body */
	const char *fault;                      /* words of it; NULL = none */
};

static const struct answer answers[] = {
	{{"HTTP/1.1 200 OK", "Content-Length: 5", ""}, "hello", .whole = true, .made = "hello"},
	{{"HTTP/1.1 200 OK", "Content-Length: 6", ""}, "hello", .made = "hello"},
	{{"HTTP/1.1 200 OK", ""}, "hello", .made = "hello"},
	{{"HTTP/1.1 100 Continue", "", "HTTP/1.1 200 OK", "Content-Length: 2", ""}, "hi",
		.whole = true, .made = "hi"},
	{{"HTTP/1.1 200 OK", "Transfer-Encoding: chunked", ""}, "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
		.made = "hello"},
	{{"HTTP/1.1 200 OK", "Transfer-Encoding: chunked", ""}, "2\r\nhe\r\n3\r\nllo\r\n",
		.made = "hello", .fault = "do not come to an end"},
	{{"HTTP/1.1 200 OK", "Transfer-Encoding: chunked", ""}, "2\r\nhexx", .body_refused = true,
		.made = "he", .fault = "chunk"},
	{{"HTTP/1.1 200 OK", "Content-Length: 33", ""}, "123456789012345678901234567890123",
		.body_refused = true},
	{{"HTTP/1.1 200 OK", "Content-Range: bytes 0-1/5", ""}, .head_refused = true,
		.fault = "a part only"},
	{{"HTTP/1.1 206 Partial Content", "Content-Range: bytes 0-1/5", "Content-Length: 2", ""},
		"he", .whole = true, .made = "he"},
	{{"HTTP/1.1 200 OK", "ETag: \"1\"", "ETag: \"2\"", ""}, .head_refused = true,
		.fault = "two headers 'etag' that differ"},
	{{"HTTP/1.1 200 OK", "Content-Encoding: gzip", "Content-Encoding: gzip", ""},
		.head_refused = true, .fault = "two headers 'content-encoding'"},
	{{"HTTP/1.1 200 OK", "Content-Encoding: gzip", ""}, "not gzip", .body_refused = true,
		.fault = "gzip body is broken"},
	{{"HTTP/1.1 500 Sorry", "Content-Encoding: gzip", ""}, "not gzip", .made = ""},
	{{"HTTP/1.1 200 OK", "Content-Encoding: gzip", ""}, "", .fault = "gzip body is broken"},
	{{"HTTP/2 200", ""}, .head_refused = true, .fault = "by HTTP/2 without a length"},
	{{"HTTP/2 200", "Content-Length: 5", ""}, "hello", .whole = true, .made = "hello"},
	{{"HTTP/1.1 200 OK", "Content-Length: 5", "Content-Length: 6", ""}, .head_refused = true,
		.fault = "two Content-Lengths"},
};

static bool give_head(struct reception *in, const char *const *lines)
{
	char line[128];

	for (size_t i = 0; lines[i]; i++) {
		int n = snprintf(line, sizeof(line), "%s\r\n", lines[i]);

		if (!reception_take_header(in, line, (size_t)n))
			return false;
	}
	return true;
}

static bool give_body(struct reception *in, const char *body, size_t at_once)
{
	size_t len = body ? strlen(body) : 0;

	for (size_t at = 0; at < len; at += at_once) {
		size_t n = len - at < at_once ? len - at : at_once;

		if (!reception_take_body(in, body + at, n))
			return false;
	}
	return true;
}

static void assert_answer(const struct answer *a, size_t at_once)
{
	struct reception in = {.max_bytes = 32, .must_end = true};
	struct buffer *body = &in.response.body;

	reception_init(&in);
	assert_int_equal(give_head(&in, a->head), !a->head_refused);
	if (!a->head_refused) {
		assert_int_equal(give_body(&in, a->body, at_once), !a->body_refused);
	}
	if (!a->head_refused && !a->body_refused) {
		assert_int_equal(reception_is_whole(&in), a->whole);
		reception_end(&in);
	}
	assert_int_equal(in.fault != NULL, a->fault != NULL);
	if (a->fault && !strstr(in.fault, a->fault))
		fail_msg("'%s' is not about '%s'", in.fault, a->fault);
	if (a->made) {
		assert_int_equal(body->len, strlen(a->made));
		assert_memory_equal(body->len ? body->data : "", a->made, body->len);
	}
	assert_int_equal(in.too_large, a->body && strlen(a->body) > 32 && a->body_refused);
	reception_fini(&in);
}

static void answer__in_pieces__is_the_same_as_at_once(void **state)
{
	static const size_t sizes[] = {1, 2, 3, 7, 100};

	(void)state;
	for (size_t i = 0; i < COUNT(answers); i++)
		for (size_t k = 0; k < COUNT(sizes); k++) {
			print_message("answer %zu, %zu bytes at once\n", i, sizes[k]);
			assert_answer(&answers[i], sizes[k]);
		}
}

/* They may be the beginning of another answer. */
static void bytes__behind_the_last_chunk__are_said(void **state)
{
	static const char *const head[] = {
		"HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "", NULL};

	(void)state;
	for (int more = 0; more < 2; more++) {
		struct reception in = {.max_bytes = 32};

		reception_init(&in);
		assert_true(give_head(&in, head));
		assert_true(give_body(
			&in, more ? "1\r\nx\r\n0\r\n\r\nHTTP" : "1\r\nx\r\n0\r\n\r\n", 100));
		assert_int_equal(in.more, more);
		reception_fini(&in);
	}
}

static void trailer__means_nothing(void **state)
{
	static const char *const head[] = {"HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "",
		NULL},
				 *const trailer[] = {"ETag: \"1\"", "", NULL};
	struct reception in = {.max_bytes = 32};

	(void)state;
	reception_init(&in);
	assert_true(give_head(&in, head));
	assert_true(give_body(&in, "1\r\nx\r\n0\r\n", 100));
	assert_true(give_head(&in, trailer));
	assert_null(in.fault);
	assert_string_equal(in.response.etag, "");
	reception_fini(&in);
}

/* gzip of nothing, in so many blocks: its size as it is sent has a bound too. */
static void body__that_grew_by_gzip__is_taken_up_to_1024_bytes_over_the_bound(void **state)
{
	static const char *const head[] = {"HTTP/1.1 200 OK", "Content-Encoding: gzip", "", NULL};
	static const char begin[10] = "\x1f\x8b\x08", empty[5] = {0, 0, 0, '\xff', '\xff'},
			  last[13] = {1, 0, 0, '\xff', '\xff'};

	(void)state;
	for (unsigned blocks = 207; blocks < 209; blocks++) {
		struct reception in = {.max_bytes = 34}; /* 10 + 207 * 5 + 13 = 34 + 1024 */
		bool good;

		reception_init(&in);
		assert_true(give_head(&in, head));
		assert_true(reception_take_body(&in, begin, sizeof(begin)));
		for (unsigned i = 0; i < blocks; i++)
			assert_true(reception_take_body(&in, empty, sizeof(empty)));
		good = reception_take_body(&in, last, sizeof(last));
		assert_int_equal(good, blocks == 207);
		assert_int_equal(in.too_large, !good);
		assert_int_equal(in.response.body.len, 0);
		if (good)
			reception_end(&in);
		assert_null(in.fault);
		reception_fini(&in);
	}
}

static void answer__that_comes_again_over_http1__is_taken(void **state)
{
	static const char *const first[] = {"HTTP/2 200", "ETag: \"1\"", "", NULL},
				 *const again[] = {"HTTP/1.1 200 OK", "ETag: \"2\"",
					 "Content-Length: 2", "", NULL};
	struct reception in = {.max_bytes = 32, .must_end = true};

	(void)state;
	reception_init(&in);
	assert_false(give_head(&in, first));
	assert_true(in.endless);
	reception_restart(&in);
	assert_true(give_head(&in, again));
	assert_true(give_body(&in, "hi", 1));
	reception_end(&in);
	assert_null(in.fault);
	assert_false(in.endless);
	assert_string_equal(in.response.etag, "\"2\"");
	assert_int_equal(in.response.status, 200);
	reception_fini(&in);
}

struct lines {
	struct reception in;
	char text[64];
	unsigned left; /* before it wants no more */
};

static void keep_line(void *arg, const struct http_client_response *line)
{
	struct lines *l = arg;
	size_t len = strlen(l->text);

	assert_true(l->in.in_line);
	snprintf(l->text + len, sizeof(l->text) - len, "%.*s;", (int)line->body.len,
		line->body.len ? line->body.data : "");
	l->in.stopped = --l->left == 0;
}

static void lines__are_handed_out_whole__until_no_more_is_wanted(void **state)
{
	static const char *const head[] = {"HTTP/1.1 200 OK", "", NULL};

	(void)state;
	for (size_t at_once = 1; at_once < 20; at_once++) {
		struct lines l = {.in = {.max_bytes = 8, .line = keep_line}, .left = 3};

		l.in.arg = &l;
		reception_init(&l.in);
		assert_true(give_head(&l.in, head));
		assert_false(give_body(&l.in, "one\n\nthree\nfour\n", at_once));
		assert_string_equal(l.text, "one;;three;");
		assert_false(l.in.in_line);
		reception_fini(&l.in);
	}
}

static void line__that_is_too_long__ends_them(void **state)
{
	static const char *const head[] = {"HTTP/1.1 200 OK", "", NULL};
	struct lines l = {.in = {.max_bytes = 8, .line = keep_line}, .left = 9};

	(void)state;
	l.in.arg = &l;
	reception_init(&l.in);
	assert_true(give_head(&l.in, head));
	assert_false(give_body(&l.in, "12345678\n123456789\n", 4));
	assert_string_equal(l.text, "12345678;");
	assert_true(l.in.too_large);
	reception_fini(&l.in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answer__in_pieces__is_the_same_as_at_once),
		cmocka_unit_test(bytes__behind_the_last_chunk__are_said),
		cmocka_unit_test(trailer__means_nothing),
		cmocka_unit_test(body__that_grew_by_gzip__is_taken_up_to_1024_bytes_over_the_bound),
		cmocka_unit_test(answer__that_comes_again_over_http1__is_taken),
		cmocka_unit_test(lines__are_handed_out_whole__until_no_more_is_wanted),
		cmocka_unit_test(line__that_is_too_long__ends_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Bodies made by zlib's own encoder, in ten shapes: whole, cut at every place, changed at every
 * place, with something behind them; in one piece, byte by byte, and at the limit.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "http/gunzip.h"

#define LARGEST 200000u
#define ROOM (LARGEST + 4096u)

/* ---- bodies ---- */

static const struct shape {
	size_t len;
	int level, flush; /* flush: once in the middle */
	int windows;
	bool named; /* a header with every field */
	bool random;
} shapes[] = {
	{0, 6, Z_NO_FLUSH, 31, false, false},
	{1, 6, Z_NO_FLUSH, 31, false, false},
	{300, 9, Z_NO_FLUSH, 31, true, false},
	{4000, 6, Z_FULL_FLUSH, 31, false, false},
	{4000, 6, Z_SYNC_FLUSH, 31, false, false},
	{4000, 6, Z_PARTIAL_FLUSH, 25, true, false},
	{700, 0, Z_FULL_FLUSH, 31, false, true}, /* stored */
	{1500, 1, Z_BLOCK, 31, false, true},
	{90000, 9, Z_FULL_FLUSH, 31, false, false},
	{LARGEST, 6, Z_NO_FLUSH, 31, false, false},
};
#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

struct body {
	unsigned char *plain, *coded;
	size_t plain_len, len;
};

static void code(struct body *b, const struct shape *s)
{
	z_stream z = {0};
	gz_header header = {.name = (Bytef *)"web.yaml", .comment = (Bytef *)"x", .hcrc = 1};
	size_t half = s->flush == Z_NO_FLUSH ? 0 : b->plain_len / 2;

	assert_int_equal(deflateInit2(&z, s->level, Z_DEFLATED, s->windows, 8, 0), Z_OK);
	if (s->named)
		assert_int_equal(deflateSetHeader(&z, &header), Z_OK);
	z.next_out = b->coded;
	z.avail_out = ROOM;
	z.next_in = b->plain;
	z.avail_in = (uInt)half;
	if (half)
		assert_int_equal(deflate(&z, s->flush), Z_OK);
	z.avail_in += (uInt)(b->plain_len - half);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	b->len = ROOM - z.avail_out;
	deflateEnd(&z);
}

static void make(struct body *b, const struct shape *s)
{
	unsigned state = 7;

	b->plain = malloc(s->len + 1);
	b->coded = malloc(ROOM);
	assert_true(b->plain && b->coded);
	b->plain_len = s->len;
	for (size_t i = 0; i < s->len; i++) {
		state = state * 1103515245u + 12345u;
		b->plain[i] = s->random ? (unsigned char)(state >> 16)
					: (unsigned char)"key: value\n"[i % 11] + (i % 97 == 0);
	}
	code(b, s);
}

static void drop(struct body *b)
{
	free(b->plain);
	free(b->coded);
}

/* ---- decoding ---- */

/* In pieces of so many bytes; what came out stays in out. */
static int decode(const void *data, size_t len, size_t piece, struct buffer *out, const char **why)
{
	struct gunzip *g = gunzip_new();
	size_t at = 0;
	int r = 0;

	assert_non_null(g);
	*why = NULL;
	while (r == 0 && at < len) {
		size_t n = len - at < piece ? len - at : piece;
		unsigned char *exact = malloc(n); /* so that a sanitizer sees the byte beyond */

		assert_non_null(exact);
		memcpy(exact, (const char *)data + at, n);
		r = gunzip_put(g, exact, n, out, why);
		free(exact);
		at += n;
	}
	if (r == 0)
		r = gunzip_end(g, why);
	assert_int_equal(*why != NULL, r == -EBADMSG);
	gunzip_free(g);
	return r;
}

static void demand_refused(const void *data, size_t len, int error, const char *sentence)
{
	struct buffer out;
	const char *why;

	buffer_init(&out, LARGEST);
	assert_int_equal(decode(data, len, SIZE_MAX, &out, &why), error);
	if (sentence)
		assert_string_equal(why, sentence);
	buffer_fini(&out);
}

static void body__that_is_whole__is_what_was_coded_in_pieces_of_any_size(void **state)
{
	static const size_t pieces[] = {SIZE_MAX, 1, 2, 7, 4096};
	struct buffer out;
	const char *why;
	struct body b;

	(void)state;
	for (size_t s = 0; s < SHAPES; s++) {
		make(&b, &shapes[s]);
		for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
			buffer_init(&out, LARGEST);
			assert_int_equal(decode(b.coded, b.len, pieces[i], &out, &why), 0);
			assert_int_equal(out.len, b.plain_len);
			if (out.len) {
				assert_memory_equal(out.data, b.plain, out.len);
				assert_int_equal(out.data[out.len], '\0');
			}
			buffer_fini(&out);
		}
		drop(&b);
	}
}

static void body__cut_at_any_place__is_refused(void **state)
{
	struct body b;

	(void)state;
	for (size_t s = 0; s < SHAPES; s++) {
		make(&b, &shapes[s]);
		for (size_t cut = 0; cut < b.len; cut++)
			demand_refused(b.coded, cut, -EBADMSG, "it is cut short");
		drop(&b);
	}
}

/* What no check covers: time, flags and system in the header; there the text is the same. */
static void body__with_a_byte_changed__is_refused_or_the_same(void **state)
{
	struct buffer out;
	const char *why;
	struct body b;
	size_t refused;
	int r;

	(void)state;
	for (size_t s = 0; s < 8; s++) {
		make(&b, &shapes[s]);
		refused = 0;
		for (size_t at = 0; at < b.len; at++) {
			b.coded[at] ^= 0x10;
			buffer_init(&out, LARGEST);
			r = decode(b.coded, b.len, SIZE_MAX, &out, &why);
			assert_true(r == -EBADMSG || (r == 0 && out.len == b.plain_len));
			if (r == 0 && out.len)
				assert_memory_equal(out.data, b.plain, out.len);
			refused += r != 0;
			buffer_fini(&out);
			b.coded[at] ^= 0x10;
		}
		assert_true(refused + 24 >= b.len);
		assert_true(refused >= 12);
		drop(&b);
	}
}

static void bytes__behind_the_end__are_refused(void **state)
{
	static const char behind[] = "there are bytes behind its end";
	unsigned char *more;
	struct buffer out;
	const char *why;
	struct body b;

	(void)state;
	for (size_t s = 0; s < SHAPES; s++) {
		make(&b, &shapes[s]);
		more = malloc(2 * b.len + 1024);
		assert_non_null(more);
		memcpy(more, b.coded, b.len);
		memcpy(more + b.len, b.coded, b.len);
		demand_refused(more, b.len + 1, -EBADMSG, behind);
		demand_refused(more, b.len + b.len / 2, -EBADMSG, behind);
		demand_refused(more, 2 * b.len, -EBADMSG, behind); /* a second member */
		memset(more + b.len, 0, 1024);
		demand_refused(more, b.len + 1024, -EBADMSG, behind); /* padding */
		buffer_init(&out, LARGEST);
		assert_int_equal(decode(more, b.len + 1, 1, &out, &why), -EBADMSG);
		assert_string_equal(why, behind);
		buffer_fini(&out);
		free(more);
		drop(&b);
	}
}

static void checks__at_the_end__are_looked_at(void **state)
{
	struct body b;

	(void)state;
	make(&b, &shapes[3]);
	b.coded[b.len - 8] ^= 1;
	demand_refused(b.coded, b.len, -EBADMSG, "incorrect data check");
	b.coded[b.len - 8] ^= 1;
	b.coded[b.len - 1] ^= 1;
	demand_refused(b.coded, b.len, -EBADMSG, "incorrect length check");
	drop(&b);
}

static void what__is_not_gzip__is_refused(void **state)
{
	unsigned char zlib[8192];
	uLongf len = sizeof(zlib);
	struct body b;

	(void)state;
	make(&b, &shapes[3]);
	demand_refused(b.plain, b.plain_len, -EBADMSG, "incorrect header check");
	demand_refused(b.coded + 10, b.len - 18, -EBADMSG, NULL); /* raw deflate */
	assert_int_equal(compress(zlib, &len, b.plain, b.plain_len), Z_OK);
	demand_refused(zlib, len, -EBADMSG, "incorrect header check");
	demand_refused("", 0, -EBADMSG, "it is cut short");
	drop(&b);
}

static void limit__is_of_what_comes_out(void **state)
{
	static const size_t pieces[] = {SIZE_MAX, 1, 100};
	struct buffer out;
	const char *why;
	struct body b;

	(void)state;
	for (size_t s = 1; s < SHAPES; s++) {
		make(&b, &shapes[s]);
		for (size_t i = 0; i < 3; i++) {
			buffer_init(&out, b.plain_len);
			assert_int_equal(decode(b.coded, b.len, pieces[i], &out, &why), 0);
			assert_int_equal(out.len, b.plain_len);
			buffer_fini(&out);
			buffer_init(&out, b.plain_len - 1);
			assert_int_equal(decode(b.coded, b.len, pieces[i], &out, &why), -EMSGSIZE);
			assert_true(out.len <= out.max && out.cap <= b.plain_len);
			buffer_fini(&out);
		}
		drop(&b);
	}
}

/* 1,000 to 1 and more: the room never passes the limit. */
static void bomb__ends_at_the_limit(void **state)
{
	static unsigned char zeros[1u << 20];
	unsigned char *coded = malloc(1u << 16);
	z_stream z = {0};
	struct buffer out;
	const char *why;

	(void)state;
	assert_non_null(coded);
	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 31, 9, 0), Z_OK);
	z.next_out = coded;
	z.avail_out = 1u << 16;
	for (int i = 0; i < 16; i++) {
		z.next_in = zeros;
		z.avail_in = sizeof(zeros);
		assert_int_equal(
			deflate(&z, i < 15 ? Z_NO_FLUSH : Z_FINISH), i < 15 ? Z_OK : Z_STREAM_END);
	}
	buffer_init(&out, 100000);
	assert_int_equal(decode(coded, z.total_out, SIZE_MAX, &out, &why), -EMSGSIZE);
	assert_true(out.cap <= 100001);
	buffer_fini(&out);
	deflateEnd(&z);
	free(coded);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(body__that_is_whole__is_what_was_coded_in_pieces_of_any_size),
		cmocka_unit_test(body__cut_at_any_place__is_refused),
		cmocka_unit_test(body__with_a_byte_changed__is_refused_or_the_same),
		cmocka_unit_test(bytes__behind_the_end__are_refused),
		cmocka_unit_test(checks__at_the_end__are_looked_at),
		cmocka_unit_test(what__is_not_gzip__is_refused),
		cmocka_unit_test(limit__is_of_what_comes_out),
		cmocka_unit_test(bomb__ends_at_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

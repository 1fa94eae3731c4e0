/* Bodies in gzip that are decoded after their transfer, on any thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "http/unpack.h"

#define SIZE 100000

/* An answer whose body was left packed: SIZE times 'a'. */
static struct http_client_response packed(size_t max_bytes)
{
	struct http_client_response r = {.packed = true, .max_bytes = max_bytes, .status = 200};
	unsigned char coded[1024];
	static char text[SIZE];
	z_stream z = {0};

	memset(text, 'a', sizeof(text));
	assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 31, 8, 0), Z_OK);
	z.next_in = (Bytef *)text;
	z.avail_in = sizeof(text);
	z.next_out = coded;
	z.avail_out = sizeof(coded);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	deflateEnd(&z);
	buffer_init(&r.coded, sizeof(coded));
	assert_int_equal(buffer_append(&r.coded, coded, z.total_out), 0);
	return r;
}

static void release(struct http_client_response *r)
{
	buffer_fini(&r->body);
	buffer_fini(&r->coded);
}

static void body__that_is_packed__is_decoded_once(void **state)
{
	struct http_client_response r = packed(SIZE);

	(void)state;
	for (int i = 0; i < 2; i++) {
		unpack_body(&r);
		assert_int_equal(r.result, HTTP_CLIENT_OK);
		assert_int_equal(r.body.len, SIZE);
		assert_int_equal(r.body.data[SIZE - 1], 'a');
		assert_int_equal(r.coded.len, 0);
		assert_false(r.packed);
	}
	release(&r);
}

static void body__with_a_digest__is_kept_as_it_was_sent_too(void **state)
{
	struct http_client_response r = packed(SIZE);

	(void)state;
	r.repr_digest[0] = 'x';
	unpack_body(&r);
	assert_int_equal(r.body.len, SIZE);
	assert_true(r.coded.len > 0);
	release(&r);
}

static void body__that_is_too_large__is_refused(void **state)
{
	struct http_client_response r = packed(SIZE - 1);

	(void)state;
	unpack_body(&r);
	assert_int_equal(r.result, HTTP_CLIENT_TOO_LARGE);
	assert_string_equal(r.message, "the body is larger than the limit of 99999 bytes");
	release(&r);
}

static void body__that_is_cut_or_longer__is_refused(void **state)
{
	struct http_client_response r = packed(SIZE);

	(void)state;
	r.coded.len--;
	unpack_body(&r);
	assert_int_equal(r.result, HTTP_CLIENT_CODING);
	assert_string_equal(r.message,
		"the answer is malformed: its gzip body is broken: it is cut short: mend the "
		"server, or the proxy before it");
	release(&r);
	r = packed(SIZE);
	assert_int_equal(buffer_append(&r.coded, "x", 1), 0);
	unpack_body(&r);
	assert_int_equal(r.result, HTTP_CLIENT_CODING);
	release(&r);
}

/* Why the transfer failed is what counts. */
static void body__that_did_not_come_whole__is_left(void **state)
{
	struct http_client_response r = packed(SIZE);

	(void)state;
	r.result = HTTP_CLIENT_NETWORK;
	r.coded.len--;
	unpack_body(&r);
	assert_int_equal(r.result, HTTP_CLIENT_NETWORK);
	assert_int_equal(r.body.len, 0);
	release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(body__that_is_packed__is_decoded_once),
		cmocka_unit_test(body__with_a_digest__is_kept_as_it_was_sent_too),
		cmocka_unit_test(body__that_is_too_large__is_refused),
		cmocka_unit_test(body__that_is_cut_or_longer__is_refused),
		cmocka_unit_test(body__that_did_not_come_whole__is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

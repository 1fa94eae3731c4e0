/*
 * Fuzz target: a gzip body. The first byte is how many bytes each piece has.
 *
 * What is checked: in pieces and at once it comes to the same; the output keeps to its limit; what
 * is taken for whole is so for zlib itself, in one call, to its last byte.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "http/gunzip.h"

#define MOST (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(int condition)
{
	if (!condition)
		abort();
}

static int decode(const uint8_t *data, size_t size, size_t piece, struct buffer *out)
{
	struct gunzip *g = gunzip_new();
	const char *why = NULL;
	int r = 0;

	demand(g != NULL);
	for (size_t at = 0; r == 0 && at < size; at += piece)
		r = gunzip_put(g, data + at, size - at < piece ? size - at : piece, out, &why);
	if (r == 0)
		r = gunzip_end(g, &why);
	demand(r == 0 || r == -EBADMSG || r == -EMSGSIZE);
	demand((r == -EBADMSG) == (why != NULL));
	demand(out->len <= MOST && out->cap <= MOST + 1);
	gunzip_free(g);
	return r;
}

static void check_whole(const uint8_t *data, size_t size, const struct buffer *out)
{
	unsigned char *plain = malloc(out->len + 1);
	z_stream z = {0};

	demand(plain && inflateInit2(&z, 31) == Z_OK);
	z.next_in = (Bytef *)data;
	z.avail_in = (uInt)size;
	z.next_out = plain;
	z.avail_out = (uInt)out->len + 1;
	demand(inflate(&z, Z_FINISH) == Z_STREAM_END);
	demand(z.avail_in == 0 && z.total_out == out->len);
	demand(out->len == 0 || memcmp(plain, out->data, out->len) == 0);
	inflateEnd(&z);
	free(plain);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buffer whole, pieces;
	int r;

	if (size == 0)
		return 0;
	buffer_init(&whole, MOST);
	buffer_init(&pieces, MOST);
	r = decode(data + 1, size - 1, SIZE_MAX / 2, &whole);
	demand(decode(data + 1, size - 1, data[0] ? data[0] : 1, &pieces) == r);
	if (r == 0) {
		demand(whole.len == pieces.len);
		demand(whole.len == 0 || memcmp(whole.data, pieces.data, whole.len) == 0);
		check_whole(data + 1, size - 1, &whole);
	}
	buffer_fini(&whole);
	buffer_fini(&pieces);
	return 0;
}

/*
 * zlib's decoder. Surprising: the output goes straight into the caller's buffer, and one byte
 * beside it is offered once that is full: else a body of exactly the maximum would look like a
 * longer one.
 */
#include "http/gunzip.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>

#include <zlib.h>

#define GZIP_ONLY (15 + 16) /* the largest window; neither zlib's own format nor raw deflate */
#define STEP 16384u         /* bytes of output that room is made for at a time, at least */

struct gunzip {
	z_stream z;
	bool ended;
};

struct gunzip *gunzip_new(void)
{
	struct gunzip *g = calloc(1, sizeof(*g));

	if (g && inflateInit2(&g->z, GZIP_ONLY) != Z_OK) {
		free(g);
		return NULL;
	}
	return g;
}

void gunzip_free(struct gunzip *g)
{
	if (!g)
		return;
	inflateEnd(&g->z);
	free(g);
}

/* The room behind what out holds, at least a byte; 0 = it is full. */
static int reserve_output(struct buffer *out, size_t *ret_room)
{
	size_t room = out->cap > out->len + 1 ? out->cap - out->len - 1 : 0;
	size_t left = out->max - out->len;
	int r = 0;

	if (room == 0) {
		room = left < STEP ? left : STEP;
		r = buffer_reserve(out, room);
	}
	*ret_room = room > left ? left : room;
	return r;
}

/* One turn of zlib: out of what is left of the input into what room there is. */
static int inflate_once(struct gunzip *g, struct buffer *out, const char **ret_why)
{
	unsigned char beyond = 0;
	size_t room;
	int r = reserve_output(out, &room);

	if (r)
		return r;
	if (room > UINT_MAX)
		room = UINT_MAX;
	g->z.next_out = room ? (Bytef *)out->data + out->len : &beyond;
	g->z.avail_out = room ? (uInt)room : 1;
	r = inflate(&g->z, Z_NO_FLUSH);
	if (room) {
		out->len += room - g->z.avail_out;
		out->data[out->len] = '\0';
	} else if (g->z.avail_out == 0) {
		return -EMSGSIZE;
	}
	g->ended = r == Z_STREAM_END;
	if (r == Z_OK || r == Z_STREAM_END || r == Z_BUF_ERROR)
		return 0;
	*ret_why = g->z.msg ? g->z.msg : "it is not gzip";
	return r == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
}

int gunzip_put(
	struct gunzip *g, const void *data, size_t len, struct buffer *out, const char **ret_why)
{
	const unsigned char *from = data;
	int r = 0;

	while (r == 0 && (len > 0 || g->z.avail_in > 0)) {
		if (g->z.avail_in == 0) {
			g->z.next_in = (Bytef *)from;
			g->z.avail_in = len > UINT_MAX ? UINT_MAX : (uInt)len;
			from += g->z.avail_in;
			len -= g->z.avail_in;
		}
		if (g->ended) {
			*ret_why = "there are bytes behind its end";
			return -EBADMSG;
		}
		do
			r = inflate_once(g, out, ret_why);
		while (r == 0 && !g->ended && g->z.avail_out == 0);
	}
	return r;
}

int gunzip_end(const struct gunzip *g, const char **ret_why)
{
	if (g->ended)
		return 0;
	*ret_why = "it is cut short";
	return -EBADMSG;
}

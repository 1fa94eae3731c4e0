/*
 * Decodes a gzip body (RFC 1952) as it comes: one whole member, its CRC and length right, and
 * nothing behind it. All else is an error.
 *
 * Threads: one owner at a time. Ownership: `out` is borrowed for each call. Errors: -EBADMSG with a
 * constant sentence in *ret_why, -EMSGSIZE when more than the maximum of `out` comes out, -ENOMEM;
 * after the first one the decoder is of no use. Bounds: memory by zlib's window (about 45 kB) and
 * the maximum of `out`. zlib is used in gunzip.c only.
 */
#ifndef PULLET_GUNZIP_H
#define PULLET_GUNZIP_H

#include "lib/buffer.h"

struct gunzip;

/* NULL = no memory. */
struct gunzip *gunzip_new(void);
void gunzip_free(struct gunzip *g);
/* Decodes the next piece of the body and appends what comes out. 0 or -errno. */
int gunzip_put(
	struct gunzip *g, const void *data, size_t len, struct buffer *out, const char **ret_why);
/* Tells whether the body was whole, after its last piece. 0 or -EBADMSG. */
int gunzip_end(const struct gunzip *g, const char **ret_why);

#endif

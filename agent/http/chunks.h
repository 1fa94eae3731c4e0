/*
 * Decodes the chunked coding (RFC 9112 section 7.1) as it comes. libcurl finds its end too, but
 * takes `5x` and `0x5` for sizes.
 *
 * Rejected: a size that is not 1 to 16 hexadecimal digits below 2^63, anything behind it but an
 * extension, a line that does not end in CR LF, data that is longer or shorter than its size says,
 * more than CHUNKS_MAX_EXTRA bytes of extensions and trailers. Trailers are ignored.
 *
 * Threads: any; no memory, no I/O. Errors: -EBADMSG with a constant sentence.
 */
#ifndef PULLET_CHUNKS_H
#define PULLET_CHUNKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHUNKS_MAX_EXTRA 65536u

/* Zeroed at first; fields are private. */
struct chunks {
	int state;
	uint64_t left; /* of the chunk */
	unsigned digits;
	size_t extra;
};

/* Takes from the front of *data up to and with the next piece of the body. 1 and the piece, which
 * points into the data; 0: all was taken, or the rest is behind the body's end; -EBADMSG. */
int chunks_take(struct chunks *c, const char **data, size_t *len, const char **ret_piece,
	size_t *ret_len, const char **ret_why);
/* Tells whether the body's end has come. */
bool chunks_are_over(const struct chunks *c);

#endif

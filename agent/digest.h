/* SHA-256 as 64 hexadecimal digits; libcrypto is used in digest.c only. Any thread. */
#ifndef PULLET_DIGEST_H
#define PULLET_DIGEST_H

#include <stddef.h>

#define DIGEST_HEX 65 /* with the NUL */

/* Hashes up to two pieces, one after the other (b may be NULL with 0). 0 or -ENOMEM. */
int digest_sha256(
	const void *a, size_t a_len, const void *b, size_t b_len, char ret_hex[DIGEST_HEX]);

#endif

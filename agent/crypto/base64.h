/*
 * Base64 of RFC 4648, section 4: with padding, without line ends.
 *
 * Threads: any. Ownership: the caller's memory. Nothing is allocated but what the buffer grows by.
 */
#ifndef PULLET_BASE64_H
#define PULLET_BASE64_H

#include <stddef.h>

#include "lib/buffer.h"

/* Appends 4 letters for each 3 bytes begun, whole or not at all. 0, -ENOMEM, -EMSGSIZE. */
int base64_append(struct buffer *out, const void *data, size_t len);
/* Takes only the one text that base64_append() makes of the bytes. 0; -EMSGSIZE: they would be more
 * than max; -EINVAL: no padding or too much, another character (a line end too), bits that belong
 * to no byte. *ret_len is written only on success; ret may hold a part of the bytes after -EINVAL.
 */
int base64_decode(const char *text, size_t len, void *ret, size_t max, size_t *ret_len);

#endif

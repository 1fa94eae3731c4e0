/*
 * One JSON string with its escapes. (Objects and arrays: json_writer.h.)
 *
 * Threads: any.
 */
#ifndef PULLET_JSON_TEXT_H
#define PULLET_JSON_TEXT_H

#include <stddef.h>

#include "lib/buffer.h"

/* Appends len bytes as a JSON string with its quotes: characters that are never shown as they are
 * (escape.h) escaped, bytes that are not UTF-8 replaced by U+FFFD, so that the result is always
 * valid. 0, -ENOMEM, -EMSGSIZE. */
int json_text_append(struct buffer *b, const char *s, size_t len);

#endif

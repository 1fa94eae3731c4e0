/*
 * Writing small JSON by hand: one string with its escapes. (Documents go through document_write().)
 *
 * Threads: any.
 */
#ifndef PULLET_JSONTEXT_H
#define PULLET_JSONTEXT_H

#include <stddef.h>

#include "lib/buffer.h"

/* Appends len bytes as a JSON string with its quotes: what is not to be shown as it is (escape.h)
 * escaped, bytes that are not UTF-8 replaced by U+FFFD, so that the result is valid whatever comes
 * in. 0, -ENOMEM, -EMSGSIZE. */
int json_text_append(struct buffer *b, const char *s, size_t len);
/* Appends `"name":` and the string (or null when s is NULL), preceded by a comma unless the last
 * byte opens an object or list. 0 or the buffer's error. */
int json_text_member(struct buffer *b, const char *name, const char *s);
/* The same for a number. */
int json_text_number(struct buffer *b, const char *name, unsigned long long n);

#endif

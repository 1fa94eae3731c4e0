/*
 * JSON, member by member, into a buffer. (Documents go through document_write().)
 *
 * Commas are placed here: each value that begins, alone or as a member, is preceded by one unless
 * it is the first of its object, array or line. The buffer's last byte tells, so there is no state:
 * nothing is allocated, and nesting is bounded by the buffer's maximum alone. Each call appends to
 * what others have appended, so an object may be begun in one file and continued in another.
 *
 * A `name` of NULL is for elements of an array, and for the value that is the whole text.
 *
 * Threads: any. Errors: 0 or the buffer's, which sticks: only the last call need be checked.
 */
#ifndef PULLET_JSON_WRITER_H
#define PULLET_JSON_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/buffer.h"

int json_writer_begin_object(struct buffer *b, const char *name);
int json_writer_end_object(struct buffer *b);
int json_writer_begin_array(struct buffer *b, const char *name);
int json_writer_end_array(struct buffer *b);
/* Appends `"name":`. The caller appends the value, by json_writer_* without a name or otherwise. */
int json_writer_member(struct buffer *b, const char *name);
/* The same for a name of len bytes. */
int json_writer_key(struct buffer *b, const char *name, size_t len);
/* A string, as json_text_append() escapes it; null when s is NULL. */
int json_writer_text(struct buffer *b, const char *name, const char *s);
/* A string of len bytes. */
int json_writer_bytes(struct buffer *b, const char *name, const char *s, size_t len);
int json_writer_number(struct buffer *b, const char *name, unsigned long long n);
int json_writer_integer(struct buffer *b, const char *name, long long n);
/* A number as a string: for readers whose numbers do not hold 64 bits. */
int json_writer_digits(struct buffer *b, const char *name, uint64_t n);
int json_writer_boolean(struct buffer *b, const char *name, bool value);
int json_writer_null(struct buffer *b, const char *name);

#endif

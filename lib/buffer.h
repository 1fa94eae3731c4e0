/*
 * Growable bytes with a mandatory maximum.
 *
 * Threads: none of its own; one owner at a time. Ownership: the caller owns the struct, the struct
 * owns the bytes. Errors: -ENOMEM, -EMSGSIZE when the maximum would be passed; the buffer then
 * keeps what it had, and the error sticks: whatever is appended later fails too, until
 * buffer_clear(). The bytes are always followed by a NUL that `len` does not count.
 */
#ifndef PULLET_BUFFER_H
#define PULLET_BUFFER_H

#include <stdarg.h>
#include <stddef.h>

struct buffer {
	char *data; /* NULL until the first byte; NUL-terminated */
	size_t len; /* bytes used, without the NUL */
	size_t cap; /* bytes allocated */
	size_t max; /* len never passes it */
	int error;  /* the first error, until buffer_clear() or buffer_fini() */
};

/* Prepares an empty buffer that never holds more than max_bytes. Allocates nothing. */
void buffer_init(struct buffer *b, size_t max_bytes);
/* Frees the bytes; the buffer is empty and usable afterwards. */
void buffer_fini(struct buffer *b);
/* Forgets the bytes, keeps the memory. */
void buffer_clear(struct buffer *b);
/* Appends len bytes, which must not be the buffer's own. 0, -ENOMEM or -EMSGSIZE. */
int buffer_append(struct buffer *b, const void *data, size_t len);
int buffer_append_string(struct buffer *b, const char *s);
/* Appends formatted text, whole or not at all. 0, -ENOMEM or -EMSGSIZE. */
int buffer_printf(struct buffer *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Makes room for `more` bytes beyond len without changing len; data then points at len+more
 * writable bytes and room for a NUL. For read(2)-like fillers, which then add to len and write the
 * NUL themselves. 0, -ENOMEM or -EMSGSIZE. */
int buffer_reserve(struct buffer *b, size_t more);
/* Takes over the error of a buffer whose bytes belong to this one's, unless there is one already.
 */
void buffer_take_error(struct buffer *b, const struct buffer *from);

#endif

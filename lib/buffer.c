/*
 * Growable bytes: the memory doubles, up to the maximum and one byte for the NUL.
 *
 * What surprises: `cap` never passes `max` + 1, so whatever fits the memory fits the maximum as
 * well, and the sums are checked before they are made.
 */
#include "buffer.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BYTES 64

void buffer_init(struct buffer *b, size_t max_bytes)
{
	*b = (struct buffer){.max = max_bytes};
}

void buffer_fini(struct buffer *b)
{
	free(b->data);
	b->data = NULL;
	b->len = b->cap = 0;
}

void buffer_clear(struct buffer *b)
{
	b->len = 0;
	if (b->data)
		b->data[0] = '\0';
}

/* The next size of the memory that holds `need` bytes, which is at most max + 1. */
static size_t next_cap(const struct buffer *b, size_t need)
{
	size_t cap = b->cap ? b->cap : FIRST_BYTES;

	while (cap < need)
		cap = cap > SIZE_MAX / 2 ? need : cap * 2;
	return cap - 1 > b->max ? b->max + 1 : cap;
}

int buffer_reserve(struct buffer *b, size_t more)
{
	size_t need, cap;
	char *data;

	if (more > b->max - b->len)
		return -EMSGSIZE;
	if (more == 0)
		return 0;
	if (__builtin_add_overflow(b->len + more, 1, &need))
		return -ENOMEM;
	if (need <= b->cap)
		return 0;
	cap = next_cap(b, need);
	data = realloc(b->data, cap);
	if (!data)
		return -ENOMEM;
	data[b->len] = '\0';
	b->data = data;
	b->cap = cap;
	return 0;
}

int buffer_append(struct buffer *b, const void *data, size_t len)
{
	int r = buffer_reserve(b, len);

	if (r < 0 || len == 0)
		return r;
	memcpy(b->data + b->len, data, len);
	b->len += len;
	b->data[b->len] = '\0';
	return 0;
}

int buffer_append_string(struct buffer *b, const char *s)
{
	return buffer_append(b, s, strlen(s));
}

/* Formats into the room there is. The number of bytes the whole text needs, or -errno; in that
 * case, and when it did not fit, the buffer is as before. */
static int format_into(struct buffer *b, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));
static int format_into(struct buffer *b, const char *format, va_list args)
{
	size_t room = b->cap - b->len;
	char none, *end = b->data ? b->data + b->len : &none;
	int n = vsnprintf(end, room, format, args);

	if (n < 0 || (size_t)n >= room)
		*end = '\0';
	if (n < 0)
		return errno == ENOMEM ? -ENOMEM : -EMSGSIZE;
	return n;
}

int buffer_printf(struct buffer *b, const char *format, ...)
{
	va_list args, again;
	int n, r;

	va_start(args, format);
	va_copy(again, args);
	n = format_into(b, format, args);
	r = n;
	if (n > 0 && (size_t)n >= b->cap - b->len) {
		r = buffer_reserve(b, (size_t)n);
		if (r == 0)
			r = format_into(b, format, again);
	}
	va_end(again);
	va_end(args);
	if (r < 0)
		return r;
	b->len += (size_t)n;
	return 0;
}

/*
 * Growable bytes. Surprising: the first error sticks until buffer_clear(), so that a text built
 * from many pieces needs one check at its end and can never come out with a hole.
 */
#include "buffer.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST 256

void buffer_init(struct buffer *b, size_t max_bytes)
{
	*b = (struct buffer){.max = max_bytes};
}

void buffer_fini(struct buffer *b)
{
	free(b->data);
	buffer_init(b, b->max);
}

void buffer_clear(struct buffer *b)
{
	b->len = 0;
	b->error = 0;
	if (b->data)
		b->data[0] = '\0';
}

int buffer_reserve(struct buffer *b, size_t more)
{
	size_t need, cap;
	char *data;

	if (b->error)
		return b->error;
	if (more == 0)
		return 0;
	if (more > b->max - b->len)
		return b->error = -EMSGSIZE;
	need = b->len + more + 1;
	if (need == 0) /* max is SIZE_MAX */
		return b->error = -ENOMEM;
	if (need <= b->cap)
		return 0;
	cap = b->cap ? b->cap : FIRST;
	while (cap < need)
		cap = cap > SIZE_MAX / 2 ? need : 2 * cap;
	if (cap > b->max)
		cap = b->max + 1;
	data = realloc(b->data, cap);
	if (!data)
		return b->error = -ENOMEM;
	if (!b->data)
		data[0] = '\0';
	b->data = data;
	b->cap = cap;
	return 0;
}

void buffer_take_error(struct buffer *b, const struct buffer *from)
{
	b->error = b->error ? b->error : from->error;
}

int buffer_append(struct buffer *b, const void *data, size_t len)
{
	int r = buffer_reserve(b, len);

	if (r || len == 0)
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

int buffer_printf(struct buffer *b, const char *format, ...)
{
	va_list args;
	int n, r;

	va_start(args, format);
	n = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (n < 0)
		return b->error = -EMSGSIZE; /* longer than INT_MAX, or not text of this locale */
	r = buffer_reserve(b, (size_t)n);
	if (r || n == 0)
		return r;
	va_start(args, format);
	vsnprintf(b->data + b->len, (size_t)n + 1, format, args);
	va_end(args);
	b->len += (size_t)n;
	return 0;
}

/*
 * A state for each place in a chunk, one byte at a time but for its data. Surprising: a line must
 * end in CR LF here, where heads may do without the CR: no server is known that does not.
 */
#include "http/chunks.h"

#include <errno.h>

enum {
	SIZE,
	BLANKS,
	EXTENSION,
	SIZE_LF,
	DATA,
	DATA_CR,
	DATA_LF,
	TRAILERS, /* at the beginning of a line */
	TRAILER,
	TRAILER_LF,
	LAST_LF,
	OVER
};

static int hex_digit_of(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* The next state; -1: the byte has no place there. */
static int read_size(struct chunks *c, char byte)
{
	int digit = hex_digit_of(byte);

	if (digit >= 0 && c->digits < 16 && c->left <= (uint64_t)INT64_MAX >> 4) {
		c->left = c->left << 4 | (unsigned)digit;
		c->digits++;
		return SIZE;
	}
	if (digit >= 0 || c->digits == 0)
		return -1;
	return byte == '\r'                  ? SIZE_LF
	       : byte == ';'                 ? EXTENSION
	       : byte == ' ' || byte == '\t' ? BLANKS
					     : -1;
}

/* Some servers fill the line of a size up with blanks. */
static int read_blanks(char byte)
{
	return byte == ' ' || byte == '\t' ? BLANKS
	       : byte == ';'               ? EXTENSION
	       : byte == '\r'              ? SIZE_LF
					   : -1;
}

static int read_extension(char byte)
{
	return byte == '\r' ? SIZE_LF : (unsigned char)byte >= ' ' || byte == '\t' ? EXTENSION : -1;
}

static int end_size(struct chunks *c)
{
	c->digits = 0;
	return c->left > 0 ? DATA : TRAILERS;
}

static int next_state(struct chunks *c, char byte)
{
	switch (c->state) {
	case SIZE:
		return read_size(c, byte);
	case BLANKS:
		return read_blanks(byte);
	case EXTENSION:
		return read_extension(byte);
	case SIZE_LF:
		return byte == '\n' ? end_size(c) : -1;
	case DATA_CR:
		return byte == '\r' ? DATA_LF : -1;
	case DATA_LF:
		return byte == '\n' ? SIZE : -1;
	case TRAILERS:
		return byte == '\r' ? LAST_LF : byte == '\n' ? -1 : TRAILER;
	case TRAILER:
		return byte == '\r' ? TRAILER_LF : byte == '\n' ? -1 : TRAILER;
	case TRAILER_LF:
		return byte == '\n' ? TRAILERS : -1;
	default: /* LAST_LF */
		return byte == '\n' ? OVER : -1;
	}
}

static const char *fault_of_state(int state)
{
	return state <= SIZE_LF   ? "the size of a chunk is not a hexadecimal number"
	       : state <= DATA_LF ? "a chunk is not as long as its size says"
				  : "its trailers are malformed";
}

int chunks_take(struct chunks *c, const char **data, size_t *len, const char **ret_piece,
	size_t *ret_len, const char **ret_why)
{
	size_t n;
	int next;

	for (; *len > 0 && c->state != OVER; (*data)++, (*len)--) {
		if (c->state == DATA) {
			n = c->left < *len ? (size_t)c->left : *len;
			*ret_piece = *data;
			*ret_len = n;
			*data += n;
			*len -= n;
			c->left -= n;
			c->state = c->left ? DATA : DATA_CR;
			return 1;
		}
		c->extra += c->state == BLANKS || c->state == EXTENSION || c->state >= TRAILERS;
		next = next_state(c, **data);
		if (next < 0 || c->extra > CHUNKS_MAX_EXTRA) {
			*ret_why = next < 0 ? fault_of_state(c->state)
					    : "its chunks have too many extensions or trailers";
			return -EBADMSG;
		}
		c->state = next;
	}
	return 0;
}

bool chunks_are_over(const struct chunks *c)
{
	return c->state == OVER;
}

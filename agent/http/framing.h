/*
 * The head of an HTTP answer, line by line: where its body ends (RFC 9112 section 6.3), and that
 * nothing in it can be read in two ways: that is an error with a sentence.
 *
 * Rejected: a Content-Length that is no decimal number below 2^63, or several that differ (RFC 9110
 * section 8.6 lets equal ones pass: "5, 5" is 5); one beside a Transfer-Encoding; a
 * Transfer-Encoding that is not `chunked` once and alone (nothing else was asked for), or is in
 * HTTP/1.0; a line without a colon, with a blank before it, or that goes on in the next line; a
 * control character; a change of protocol (101). Trailers are not headers.
 *
 * Threads: any; no memory, no I/O. Bounds: a line is as long as the caller lets it be.
 */
#ifndef PULLET_FRAMING_H
#define PULLET_FRAMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAMING_WHY 128

enum framing_line {
	FRAMING_STATUS,  /* a status line: all that came before is void */
	FRAMING_HEADER,  /* *ret_field is filled */
	FRAMING_END,     /* the empty line behind the headers */
	FRAMING_TRAILER, /* behind the body: means nothing */
	FRAMING_BAD      /* why */
};

/* Points into the line; the value without the blanks around it. */
struct framing_field {
	const char *name, *value;
	size_t name_len, value_len;
};

/* Zeroed at first. */
struct framing {
	unsigned
		version; /* 10 * major + minor, of an answer by HTTP/2 20; 0 = no status line yet */
	long status;
	bool has_length, chunked;
	uint64_t length; /* has_length */
	bool open;       /* within a head */
	bool over;       /* the head of the final answer has ended */
};

/* Takes the next line, with its end (CR LF, or LF alone). */
enum framing_line framing_read(struct framing *f, const char *line, size_t len,
	struct framing_field *ret_field, char why[FRAMING_WHY]);
/* Tells whether the end of the body is known other than by the end of the connection. */
bool framing_has_end(const struct framing *f);
/* Tells whether the head speaks of a body that this status cannot have (204, 304): one may follow
 * all the same. */
bool framing_is_doubtful(const struct framing *f);
/* Tells whether the field has this name, in lower case. */
bool framing_is_named(const struct framing_field *field, const char *name);

#endif

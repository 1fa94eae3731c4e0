/*
 * An answer as it comes. Surprising: decoding is not left to libcurl: 7.88 takes a gzip stream that
 * is cut short for a whole one (gunzip.c), and chunks of any size (chunks.c); nor the size cap, for
 * CURLOPT_MAXFILESIZE does nothing in the middle of a transfer before curl 8.4.
 */
#include "http/reception.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "http/gunzip.h"

#define ROOM_FROM (64u << 10)    /* bytes of a body */
#define MAX_OVERHEAD 1024u       /* of a gzip body that does not shrink, beyond max_bytes */
#define DECODED_HERE (64u << 10) /* bytes of a gzip body that may be packed: the rest is not */

void reception_init(struct reception *in)
{
	in->response.max_bytes = in->max_bytes;
	buffer_init(&in->response.body, in->max_bytes);
	buffer_init(&in->response.coded, in->max_bytes + MAX_OVERHEAD);
}

void reception_fini(struct reception *in)
{
	gunzip_free(in->gunzip);
	buffer_fini(&in->response.body);
	buffer_fini(&in->response.coded);
}

void reception_restart(struct reception *in)
{
	in->endless = in->must_end = false;
	in->framing = (struct framing){0};
	in->fault = NULL;
}

/* ---- the body ---- */

/* Takes room for all of a large body once it has begun: growing would copy megabytes. */
static int make_room(struct reception *in, size_t len)
{
	struct buffer *body = &in->response.body;
	size_t all = in->framing.length;
	bool begins = body->len < ROOM_FROM && body->len + len >= ROOM_FROM;

	if (!begins || !in->framing.has_length || all < body->len || all > in->max_bytes)
		return 0;
	return buffer_reserve(body, all - body->len);
}

static bool keep_bytes(struct reception *in, const char *data, size_t len)
{
	if (len > in->max_bytes - in->response.body.len) {
		in->too_large = true;
		return false;
	}
	return make_room(in, len) == 0 && buffer_append(&in->response.body, data, len) == 0;
}

/* Hands out whole lines, and keeps the rest. */
static bool take_lines(struct reception *in, const char *data, size_t len)
{
	const char *end;

	while ((end = memchr(data, '\n', len))) {
		if (!keep_bytes(in, data, (size_t)(end - data)))
			return false;
		len -= (size_t)(end - data) + 1;
		data = end + 1;
		in->in_line = true;
		in->line(in->arg, &in->response);
		in->in_line = false;
		if (in->stopped)
			return false;
		in->response.body.len = 0;
	}
	return keep_bytes(in, data, len);
}

static void report_broken_gzip(struct reception *in, const char *why)
{
	snprintf(in->why, sizeof(in->why), "its gzip body is broken: %s", why);
	in->fault = in->why;
	in->broken = true;
}

/* A large body is left to another thread. */
static void leave_packed(struct reception *in)
{
	in->response.packed = true;
	buffer_fini(&in->response.body);
}

/* Decodes a piece of the body. That of an error may be garbled: its status counts. */
static bool decode_piece(struct reception *in, const char *data, size_t len)
{
	bool may_be_packed = in->may_be_packed && in->framing.status == 200;
	struct buffer *body = &in->response.body;
	const char *why = NULL;
	int r = 0;

	if (in->garbled)
		return true;
	in->coded_bytes += len;
	body->max = may_be_packed && DECODED_HERE < in->max_bytes ? DECODED_HERE : in->max_bytes;
	if (in->coded_bytes > in->max_bytes + MAX_OVERHEAD)
		r = -EMSGSIZE;
	else if (may_be_packed || http_client_has_digest(&in->response))
		r = buffer_append(&in->response.coded, data, len);
	if (r == 0 && !in->response.packed) {
		r = gunzip_put(in->gunzip, data, len, body, &why);
		if (r == -EMSGSIZE && body->max < in->max_bytes) {
			leave_packed(in);
			r = 0;
		}
	}
	in->too_large = r == -EMSGSIZE;
	if (r == -EBADMSG && in->framing.status == 200)
		report_broken_gzip(in, why);
	if (r == 0 || r == -EMSGSIZE || in->framing.status == 200)
		return r == 0;
	in->garbled = true;
	buffer_clear(&in->response.body);
	return true;
}

/* A piece of the body without its chunks. */
static bool take_piece(struct reception *in, const char *data, size_t len)
{
	if (in->gunzip)
		return decode_piece(in, data, len);
	if (in->line && in->framing.status == 200)
		return take_lines(in, data, len);
	return keep_bytes(in, data, len);
}

static bool take_chunks(struct reception *in, const char *data, size_t len)
{
	const char *piece;
	bool good = true;
	size_t n;
	int r;

	while (good && (r = chunks_take(&in->chunks, &data, &len, &piece, &n, &in->fault)) > 0)
		good = take_piece(in, piece, n);
	if (good && len > 0)
		in->more = true;
	return good && r == 0;
}

bool reception_is_whole(const struct reception *in)
{
	const char *why;

	if (in->framing.has_length)
		return in->wire_bytes == in->framing.length;
	return in->gunzip && !in->garbled && !in->response.packed &&
	       gunzip_end(in->gunzip, &why) == 0;
}

bool reception_take_body(struct reception *in, const char *data, size_t len)
{
	bool good;

	in->response.status = in->framing.status;
	good = in->framing.chunked && in->framing.version < 20 ? take_chunks(in, data, len)
							       : take_piece(in, data, len);
	in->wire_bytes += len;
	return good;
}

/* ---- the head ---- */

static void copy_value(char *to, size_t size, const char *value, size_t len)
{
	if (len < size) {
		memcpy(to, value, len);
		to[len] = '\0';
	} else {
		to[0] = '\0'; /* too long to be meant: as if it were absent */
	}
}

/* A coding that is too long is unknown, not absent. */
static void copy_encoding(char *to, size_t size, const char *value, size_t len)
{
	copy_value(to, size, value, len);
	if (len >= size)
		snprintf(to, size, "too long to be known");
}

/* Without parameters, lower case. */
static void copy_type(char *to, size_t size, const char *value, size_t len)
{
	size_t n = 0;

	while (n < len && value[n] != ';' && value[n] != ' ')
		n++;
	copy_value(to, size, value, n);
	for (char *p = to; *p; p++)
		*p = (char)tolower((unsigned char)*p);
}

/* The headers that are kept, and what a second line of one does. */
static const struct header {
	const char *name;
	/* it replaces the first, must equal it, is an error, is appended with a comma */
	enum { LAST, EQUAL, ONCE, JOIN } second;
	void (*copy)(char *to, size_t size, const char *value, size_t len);
	size_t at, size; /* in struct http_client_response */
} headers[] = {
#define ROW(name, second, copy, field)                                                             \
	{                                                                                          \
		name, second, copy, offsetof(struct http_client_response, field),                  \
			sizeof(((struct http_client_response *)0)->field)                          \
	}
	ROW("etag", EQUAL, copy_value, etag),
	ROW("last-modified", EQUAL, copy_value, last_modified),
	ROW("content-type", EQUAL, copy_type, content_type),
	ROW("content-encoding", ONCE, copy_encoding, content_encoding),
	ROW("content-digest", JOIN, NULL, content_digest),
	ROW("repr-digest", JOIN, NULL, repr_digest),
	ROW("digest", JOIN, NULL, digest),
	ROW("date", LAST, copy_value, server_date),
	ROW("x-consul-index", EQUAL, copy_value, consul_index),
	ROW("x-consul-results-filtered-by-acls", EQUAL, copy_value, filtered),
	ROW("content-md5", EQUAL, copy_value, content_md5),
	ROW("config-type", EQUAL, copy_value, config_type),
	ROW("retry-after", LAST, copy_value, retry_after),
	ROW("location", LAST, copy_value, location),
#undef ROW
};

#define HEADERS (sizeof(headers) / sizeof(headers[0]))

static void forget_headers(struct reception *in)
{
	in->named = 0;
	for (size_t i = 0; i < HEADERS; i++)
		*((char *)&in->response + headers[i].at) = '\0';
}

/* Appends a line; too long a list is an error. */
static bool join_field(
	struct reception *in, const struct header *h, const struct framing_field *field)
{
	char *to = (char *)&in->response + h->at;
	size_t len = strlen(to);

	if (len + (len ? 2 : 0) + field->value_len >= h->size) {
		snprintf(in->why, sizeof(in->why), "its headers '%s' are longer than %zu bytes",
			h->name, h->size - 1);
		in->fault = in->why;
		return false;
	}
	snprintf(to + len, h->size - len, "%s%.*s", len ? ", " : "", (int)field->value_len,
		field->value);
	return true;
}

static bool take_field(struct reception *in, const struct framing_field *field)
{
	char value[sizeof(in->response.etag)], *to;

	if (in->framing.status == 200 && framing_is_named(field, "content-range")) {
		in->fault = "a 200 says that it is a part only (Content-Range)";
		return false;
	}
	for (size_t i = 0; i < HEADERS; i++) {
		const struct header *h = &headers[i];

		if (!framing_is_named(field, h->name))
			continue;
		if (h->second == JOIN)
			return join_field(in, h, field);
		to = (char *)&in->response + h->at;
		h->copy(value, h->size, field->value, field->value_len);
		if (in->named & 1u << i &&
			(h->second == ONCE || (h->second == EQUAL && strcmp(to, value) != 0))) {
			snprintf(in->why, sizeof(in->why), "it has two headers '%s'%s", h->name,
				h->second == ONCE ? "" : " that differ");
			in->fault = in->why;
			return false;
		}
		in->named |= 1u << i;
		memcpy(to, value, strlen(value) + 1);
	}
	return true;
}

/* Finds the coding of the body, at the end of the head. */
static bool begin_body_coding(struct reception *in)
{
	const char *encoding = in->response.content_encoding;
	bool empty = in->framing.status == 204 || in->framing.status == 304;
	bool gzip = strcasecmp(encoding, "gzip") == 0 || strcasecmp(encoding, "x-gzip") == 0;

	in->response.framed = framing_has_end(&in->framing);
	in->endless = in->must_end && in->framing.status == 200 && in->framing.version >= 20 &&
		      !in->framing.has_length && !gzip;
	if (in->endless) {
		in->fault = "it came by HTTP/2 without a length: its end cannot be told from a cut";
		return false;
	}
	if (!in->framing.over || empty || !encoding[0] || strcasecmp(encoding, "identity") == 0)
		return true;
	if (gzip && !in->line) {
		in->gunzip = gunzip_new();
		return in->gunzip;
	}
	if (in->framing.status == 200 && in->line)
		in->fault = "its body is coded (Content-Encoding), which was not asked for";
	return !in->fault;
}

bool reception_take_header(struct reception *in, const char *data, size_t len)
{
	struct framing_field field;
	bool good = true;

	switch (framing_read(&in->framing, data, len, &field, in->why)) {
	case FRAMING_STATUS: /* a 1xx before it does not count */
		forget_headers(in);
		break;
	case FRAMING_HEADER:
		good = take_field(in, &field);
		break;
	case FRAMING_END:
		good = begin_body_coding(in);
		break;
	case FRAMING_TRAILER:
		break;
	case FRAMING_BAD:
		in->fault = in->why;
		good = false;
	}
	return good;
}

/* ---- the end ---- */

void reception_end(struct reception *in)
{
	const char *why;

	if (in->framing.chunked && !chunks_are_over(&in->chunks) && in->framing.status != 304 &&
		in->framing.status != 204)
		in->fault = "its chunks do not come to an end";
	in->response.body.max = in->max_bytes;
	if (in->response.packed)
		return; /* unpack_body() does */
	if (!http_client_has_digest(&in->response))
		buffer_fini(&in->response.coded);
	if (in->fault || !in->gunzip || in->garbled || gunzip_end(in->gunzip, &why) == 0)
		return;
	if (in->framing.status == 200)
		report_broken_gzip(in, why);
	else
		buffer_clear(&in->response.body);
}

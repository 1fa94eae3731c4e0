/*
 * What all kinds of servers share. Surprising: a URL has a NUL behind it at every step.
 */
#include "pull/kinds/kind.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "document/document.h"
#include "text/sentence.h"

const struct kind *kind_of(const struct settings_server *server)
{
	static const struct kind *const kinds[SETTINGS_KINDS] = {
		[SETTINGS_HTTP] = &kind_http,
		[SETTINGS_ETCD] = &kind_etcd,
		[SETTINGS_CONSUL] = &kind_consul,
		[SETTINGS_NACOS] = &kind_nacos,
		[SETTINGS_APOLLO] = &kind_apollo,
		[SETTINGS_SPRING] = &kind_spring,
		[SETTINGS_S3] = &kind_s3,
		[SETTINGS_FILE] = &kind_file,
	};

	return kinds[server->kind];
}

const char *kind_cause_name(enum kind_cause cause)
{
	static const char *const names[KIND_CAUSES] = {
		[KIND_CAUSE_NONE] = "",
		[KIND_CAUSE_NOT_FOUND] = "not found",
		[KIND_CAUSE_EMPTY] = "empty",
		[KIND_CAUSE_FORBIDDEN] = "forbidden",
		[KIND_CAUSE_UNREACHABLE] = "unreachable",
		[KIND_CAUSE_TIMEOUT] = "timeout",
		[KIND_CAUSE_OVERLOADED] = "overloaded",
		[KIND_CAUSE_OLDER] = "older",
		[KIND_CAUSE_ANSWER] = "bad answer",
		[KIND_CAUSE_HOST] = "this host",
	};

	return names[cause];
}

/* ---- requests ---- */

void kind_request_init(struct kind_request *r)
{
	*r = (struct kind_request){.method = "GET"};
	buffer_init(&r->url, KIND_MAX_URL);
	buffer_init(&r->body, KIND_MAX_BODY);
}

static void wipe_request_buffer(struct buffer *b)
{
	if (b->data)
		explicit_bzero(b->data, b->cap);
	buffer_fini(b);
}

void kind_request_fini(struct kind_request *r)
{
	for (size_t i = 0; i < r->header_count; i++) {
		explicit_bzero(r->headers[i], strlen(r->headers[i]));
		free(r->headers[i]);
	}
	wipe_request_buffer(&r->url);
	wipe_request_buffer(&r->body);
	*r = (struct kind_request){.method = "GET"};
}

/* vasprintf() would leave a copy of a secret in memory that it frees. */
int kind_header(struct kind_request *r, const char *format, ...)
{
	va_list args;
	char *line;
	int n;

	if (r->header_count == KIND_MAX_HEADERS)
		return -EMSGSIZE;
	va_start(args, format);
	n = vsnprintf(NULL, 0, format, args);
	va_end(args);
	line = n < 0 ? NULL : malloc((size_t)n + 1);
	if (!line)
		return -ENOMEM;
	va_start(args, format);
	vsnprintf(line, (size_t)n + 1, format, args);
	va_end(args);
	r->headers[r->header_count++] = line;
	return 0;
}

static bool is_unreserved(char c, const char *keep)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
	       (c && strchr("-._~", c)) || (c && strchr(keep, c));
}

int kind_escape(struct buffer *url, const char *text, size_t len, const char *keep)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < len; i++)
		r = is_unreserved(text[i], keep)
			    ? buffer_append(url, &text[i], 1)
			    : buffer_printf(url, "%%%02X", (unsigned)(unsigned char)text[i]);
	return r;
}

int kind_hex_digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* ---- answers ---- */

int kind_parse_json(
	const struct buffer *body, struct document **ret_document, struct document_error *e)
{
	int r = document_parse(
		DOCUMENT_JSON, body->data ? body->data : "", body->len, 0, ret_document, e);

	if (r == -ENOMEM)
		snprintf(e->message, sizeof(e->message), "out of memory");
	return r;
}

enum kind_verdict kind_fail(struct kind_answer *ret, enum kind_cause cause, const char *format, ...)
{
	va_list args;

	ret->cause = cause;
	va_start(args, format);
	vsnprintf(ret->why, FILE_WHY, format, args);
	va_end(args);
	return KIND_FAILED;
}

int kind_status_error(long status, const char *what, const char *denied, const char *else_check,
	char why[FILE_WHY])
{
	int e = status == 401 || status == 403   ? -EACCES
		: status == 429 || status >= 500 ? -EAGAIN
						 : -EPROTO;

	snprintf(why, FILE_WHY, "the server answered %ld to %s: %s", status, what,
		e == -EACCES   ? denied
		: e == -EAGAIN ? "it cannot now"
			       : else_check);
	return e;
}

/* ---- documents ---- */

/* Without its query, which does not count. */
static bool path_ends(const char *path, const char *ending)
{
	size_t len = strcspn(path, "?"), n = strlen(ending);

	return len >= n && strncasecmp(path + len - n, ending, n) == 0;
}

static bool type_ends(const char *type, const char *ending)
{
	size_t len = strlen(type), n = strlen(ending);

	return len >= n && strcmp(type + len - n, ending) == 0;
}

enum settings_type kind_document_type(const struct kind_place *place, const char *content_type)
{
	static const struct {
		const char *path, *type;
		enum settings_type is;
	} table[] = {
		{".json", NULL, SETTINGS_TYPE_JSON},
		{".yaml", NULL, SETTINGS_TYPE_YAML},
		{".yml", NULL, SETTINGS_TYPE_YAML},
		{NULL, "/json", SETTINGS_TYPE_JSON},
		{NULL, "+json", SETTINGS_TYPE_JSON},
	};

	if (place->type != SETTINGS_TYPE_AUTO)
		return place->type;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].path ? path_ends(place->path, table[i].path)
				  : type_ends(content_type, table[i].type))
			return table[i].is;
	return SETTINGS_TYPE_YAML;
}

static bool is_page(
	const struct kind_place *place, enum settings_type type, const char *content_type)
{
	if (strcmp(content_type, "text/html") != 0 &&
		strcmp(content_type, "application/xhtml+xml") != 0)
		return false;
	return type != SETTINGS_TYPE_BYTES ||
	       !(path_ends(place->path, ".html") || path_ends(place->path, ".htm"));
}

bool kind_is_etag(const char *text)
{
	size_t len;

	if (strncmp(text, "W/", 2) == 0)
		text += 2;
	len = strlen(text);
	if (len < 2 || text[0] != '"' || text[len - 1] != '"')
		return false;
	for (size_t i = 1; i < len - 1; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c <= ' ' || c == '"' || c == 0x7f)
			return false;
	}
	return true;
}

enum kind_verdict kind_document(const struct kind_place *place,
	const struct http_client_response *r, struct kind_answer *ret)
{
	enum settings_type type = kind_document_type(place, r->content_type);
	char quoted[sizeof(r->content_encoding) * 4 + SENTENCE_WORDS];
	const char *encoding = r->content_encoding;

	if (encoding[0] && strcasecmp(encoding, "identity") != 0 &&
		strcasecmp(encoding, "gzip") != 0 && strcasecmp(encoding, "x-gzip") != 0)
		return kind_fail(ret, KIND_CAUSE_ANSWER,
			"the body has an encoding that was not asked for%s",
			sentence_quote_output(quoted, sizeof(quoted), encoding, strlen(encoding)));
	if (!r->framed)
		return kind_fail(ret, KIND_CAUSE_ANSWER,
			"the body came without a length or chunking: its end cannot be told from a "
			"cut");
	if (r->body.len == 0)
		return kind_fail(ret, KIND_CAUSE_EMPTY, "the body is empty");
	if (is_page(place, type, r->content_type))
		return kind_fail(ret, KIND_CAUSE_ANSWER,
			"the server sent an HTML page (%s) instead of the document",
			r->content_type);
	if (buffer_append(&ret->body, r->body.data, r->body.len))
		return kind_fail(ret, KIND_CAUSE_ANSWER, "out of memory");
	ret->type = type;
	/* "*" means any version: it names none */
	snprintf(
		ret->version, sizeof(ret->version), "%s", strcmp(r->etag, "*") == 0 ? "" : r->etag);
	snprintf(ret->last_modified, sizeof(ret->last_modified), "%s", r->last_modified);
	ret->cause = KIND_CAUSE_NONE;
	return KIND_NEW;
}

void kind_answer_init(struct kind_answer *a, size_t max_bytes)
{
	*a = (struct kind_answer){.type = SETTINGS_TYPE_YAML};
	buffer_init(&a->body, max_bytes);
}

void kind_answer_fini(struct kind_answer *a)
{
	buffer_fini(&a->body);
}

/*
 * The HTTP source. Surprising: a version is only named in the request (If-None-Match) when it is
 * held, verified and came from this very URL, so that a 304 can never stand for something the agent
 * does not have.
 */
#include "source.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

void source_build(const struct source_item *item, const struct settings_server *server,
	const char *base, const struct part *held, const struct credentials *credentials,
	struct source_request *r)
{
	uint64_t connect_ms = server->connect_timeout_ms;
	size_t n = 0;

	memset(r, 0, sizeof(*r));
	snprintf(r->url, sizeof(r->url), "%s%s", base, item->path);
	if (held && !held->absent && strcmp(held->url, r->url) == 0) {
		if (held->etag[0])
			snprintf(r->if_none_match, sizeof(r->if_none_match), "If-None-Match: %s",
				held->etag);
		if (held->last_modified[0])
			snprintf(r->if_modified_since, sizeof(r->if_modified_since),
				"If-Modified-Since: %s", held->last_modified);
	}
	if (r->if_none_match[0])
		r->headers[n++] = r->if_none_match;
	if (r->if_modified_since[0])
		r->headers[n++] = r->if_modified_since;
	r->conditional = n > 0;
	for (size_t i = 0; i < credentials->count; i++)
		r->headers[n++] = credentials->lines[i];
	r->headers[n] = NULL;
	r->request = (struct transport_request){
		.url = r->url,
		.headers = r->headers,
		.user = credentials->user,
		.password = credentials->password,
		.tls = {server->ca, server->crl, server->cert, server->key,
			server->tls_min == SETTINGS_TLS_1_3},
		.max_bytes = server->max_bytes,
		.timeout_ms = item->timeout_ms,
		.connect_timeout_ms = item->timeout_ms < connect_ms ? item->timeout_ms : connect_ms,
	};
}

static const char *status_advice(long status)
{
	static const struct {
		long first, last;
		const char *advice;
	} table[] = {
		{100, 199, "the server stopped half-way"},
		{200, 299, "only 200 and 304 are taken"},
		{304, 304, "but nothing was asked for conditionally: the server is broken"},
		{300, 399,
			"a redirect is not followed: put the final address into the configuration"},
		{401, 401, "the server wants credentials"},
		{403, 403, "the server forbids it"},
		{404, 404, "there is no such document: check the path"},
		{410, 410, "the document was removed"},
		{429, 429, "the server is overloaded"},
		{503, 503, "the server is overloaded or down for maintenance"},
		{500, 599, "the server failed"},
		{0, 999, "not an answer that holds a document"},
	};

	for (size_t i = 0;; i++)
		if (status >= table[i].first && status <= table[i].last)
			return table[i].advice;
}

/* Does the path end in `ending`? The query does not count. */
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

static enum settings_type document_type(const struct source_item *item, const char *content_type)
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

	if (item->type != SETTINGS_TYPE_AUTO)
		return item->type;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].path ? path_ends(item->path, table[i].path)
				  : type_ends(content_type, table[i].type))
			return table[i].is;
	return SETTINGS_TYPE_YAML;
}

static bool is_html(
	const struct source_item *item, enum settings_type type, const char *content_type)
{
	if (strcmp(content_type, "text/html") != 0 &&
		strcmp(content_type, "application/xhtml+xml") != 0)
		return false;
	return type != SETTINGS_TYPE_BYTES ||
	       !(path_ends(item->path, ".html") || path_ends(item->path, ".htm"));
}

/* Judges the form of a 200. */
static enum source_verdict judge_document(const struct source_item *item,
	const struct transport_response *r, enum settings_type *ret_type, char why[FILE_WHY])
{
	enum settings_type type = document_type(item, r->content_type);
	const char *encoding = r->content_encoding;

	if (encoding[0] && strcasecmp(encoding, "identity") != 0 &&
		strcasecmp(encoding, "gzip") != 0 && strcasecmp(encoding, "x-gzip") != 0)
		snprintf(why, FILE_WHY, "the body has the encoding '%s', which was not asked for",
			encoding);
	else if (!r->framed)
		snprintf(why, FILE_WHY,
			"the body came without a length or chunking: its end cannot be told from a "
			"cut");
	else if (r->body.len == 0)
		snprintf(why, FILE_WHY, "the body is empty");
	else if (is_html(item, type, r->content_type))
		snprintf(why, FILE_WHY, "the server sent an HTML page (%s) instead of the document",
			r->content_type);
	else {
		*ret_type = type;
		return SOURCE_NEW;
	}
	return SOURCE_FAILED;
}

enum source_verdict source_judge(const struct source_item *item, const struct transport_response *r,
	bool conditional, enum settings_type *ret_type, char why[FILE_WHY])
{
	if (r->result == TRANSPORT_TIMEOUT) {
		snprintf(why, FILE_WHY, "%s", r->message);
		return SOURCE_TIMEOUT;
	}
	if (r->result != TRANSPORT_OK) {
		snprintf(why, FILE_WHY, "%s", r->message);
		return SOURCE_FAILED;
	}
	if (r->status == 304 && conditional)
		return SOURCE_SAME;
	if (item->optional && (r->status == 404 || r->status == 410))
		return SOURCE_ABSENT;
	if (r->status != 200) {
		snprintf(why, FILE_WHY, "the server answered %ld: %s", r->status,
			status_advice(r->status));
		return SOURCE_FAILED;
	}
	return judge_document(item, r, ret_type, why);
}

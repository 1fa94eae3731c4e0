/*
 * Amazon S3, and what speaks its language: one GET, signed where there is an access key. The path
 * is /BUCKET/KEY, or /KEY where the url names the bucket.
 *
 * Surprising: path and query are decoded and encoded again, so that the request is sent as it is
 * signed (S3 encodes once, and resolves no dots); the header Host is written here for the same
 * reason. Errors are XML of which two elements count, found as text. A 404 counts as absence only
 * in S3's own words, and never for a bucket: without its bucket a configuration is wrong, even
 * where the object is optional.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "pull/kinds/kind.h"
#include "crypto/aws_sigv4.h"
#include "pull/kinds/kv.h"

#define REGION "us-east-1"
#define MAX_PARAMETERS 16
#define MAX_HOST 1024
#define MAX_ERROR 65536 /* bytes of an answer that are searched */
#define MAX_PROLOG 512  /* of a listing */

/* ---- the URL ---- */

/* Appends the decoded text, encoded as a signature has it. A '%' without two digits is itself. */
static int append_encoded(struct buffer *out, const char *text, size_t len, const char *keep)
{
	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		int high = c == '%' && i + 2 < len ? kind_hex_digit(text[i + 1]) : -1;
		int low = high >= 0 ? kind_hex_digit(text[i + 2]) : -1;

		if (low >= 0) {
			c = (char)(high << 4 | low);
			i += 2;
		}
		kind_escape(out, &c, 1, keep);
	}
	return out->error;
}

struct parameter {
	const char *name, *value;
};

static int by_parameter_name(const void *a, const void *b)
{
	const struct parameter *x = a, *y = b;
	int r = strcmp(x->name, y->name);

	return r ? r : strcmp(x->value, y->value);
}

/* Appends "NAME\0VALUE\0" for each parameter. Returns how many. */
static size_t split_query(const char *query, struct buffer *texts)
{
	size_t n = 0, len, name_len;

	for (; *query; query += len + (query[len] == '&')) {
		len = strcspn(query, "&");
		name_len = strcspn(query, "&=");
		if (len == 0)
			continue;
		append_encoded(texts, query, name_len, "");
		buffer_append(texts, "", 1);
		if (name_len < len)
			append_encoded(texts, query + name_len + 1, len - name_len - 1, "");
		buffer_append(texts, "", 1);
		n++;
	}
	return n;
}

/* Appends the query as it is signed: sorted, each with a '='. */
static int append_query(struct buffer *out, const char *query, char why[FILE_WHY])
{
	struct parameter sorted[MAX_PARAMETERS];
	struct buffer texts;
	const char *text;
	size_t n;
	int r;

	buffer_init(&texts, KIND_MAX_URL);
	n = split_query(query, &texts);
	r = texts.error;
	if (r == 0 && n > MAX_PARAMETERS) {
		snprintf(why, FILE_WHY, "the path has more than %d parameters behind its '?'",
			MAX_PARAMETERS);
		r = -EINVAL;
	}
	text = texts.data;
	for (size_t i = 0; r == 0 && i < n; i++) {
		sorted[i].name = text;
		sorted[i].value = text += strlen(text) + 1;
		text += strlen(text) + 1;
	}
	if (r == 0)
		qsort(sorted, n, sizeof(sorted[0]), by_parameter_name);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = buffer_printf(
			out, "%s%s=%s", i > 0 ? "&" : "", sorted[i].name, sorted[i].value);
	buffer_fini(&texts);
	return r;
}

/* True when a segment is '.' or '..', which would be resolved on the way. */
static bool has_dots(const char *path)
{
	for (size_t len; *path; path += len) {
		path++;
		len = strcspn(path, "/");
		if ((len == 1 || len == 2) && strspn(path, ".") >= len)
			return true;
	}
	return false;
}

/* The parts of a URL, each as it is sent. */
struct target {
	size_t origin_len; /* of the base: scheme and authority */
	struct buffer path, query;
	char host[MAX_HOST]; /* the header */
};

/* Writes the header Host: the authority without a default port, or the zone of an address. */
static int find_host(struct target *t, const char *base, char why[FILE_WHY])
{
	const char *authority = strstr(base, "://");
	unsigned long usual_port = strncasecmp(base, "https:", 6) == 0 ? 443 : 80;
	char *port, *zone, *end;
	size_t len;

	authority = authority ? authority + 3 : base;
	len = strcspn(authority, "/");
	t->origin_len = (size_t)(authority - base) + len;
	if (len >= sizeof(t->host))
		return -EMSGSIZE;
	memcpy(t->host, authority, len);
	t->host[len] = '\0';
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)t->host[i] >= 0x80) {
			snprintf(why, FILE_WHY,
				"the host of an S3 server's url must be ASCII: write an "
				"international name as xn--...");
			return -EINVAL;
		}
	port = strrchr(t->host, ':');
	if (port && !strchr(port, ']') && strtoul(port + 1, NULL, 10) == usual_port)
		*port = '\0';
	zone = strchr(t->host, '%');
	end = zone ? strchr(zone, ']') : NULL;
	if (end)
		memmove(zone, end, strlen(end) + 1);
	return 0;
}

static int make_target(const struct kind_place *place, struct target *t, char why[FILE_WHY])
{
	const char *query = strchr(place->path, '?');
	size_t len = query ? (size_t)(query - place->path) : strlen(place->path);
	int r = find_host(t, place->base, why);

	if (r)
		return r;
	append_encoded(
		&t->path, place->base + t->origin_len, strlen(place->base + t->origin_len), "/");
	append_encoded(&t->path, place->path, len, "/");
	if (t->path.len == 0)
		buffer_append(&t->path, "/", 1);
	if (t->path.error)
		return t->path.error;
	if (has_dots(t->path.data)) {
		snprintf(why, FILE_WHY,
			"an object whose key has '.' or '..' between slashes cannot be asked for: "
			"rename it");
		return -EINVAL;
	}
	return query ? append_query(&t->query, query + 1, why) : 0;
}

/* ---- signing ---- */

static int not_ours(const char *name, const char *advice, char why[FILE_WHY])
{
	snprintf(why, FILE_WHY, "the header %s of auth.headers %s", name, advice);
	return -EINVAL;
}

/* Adds those of auth.headers that must be signed too. */
static int add_configured(const struct settings_server *server, struct aws_sigv4_header *headers,
	size_t *n, bool *ret_host, char why[FILE_WHY])
{
	static const char *const own[] = {
		"Authorization", "x-amz-date", "x-amz-content-sha256", "x-amz-security-token"};

	for (size_t i = 0; i < server->header_count; i++) {
		const struct settings_header *h = &server->headers[i];
		bool host = strcasecmp(h->name, "Host") == 0;

		for (size_t k = 0; k < sizeof(own) / sizeof(own[0]); k++)
			if (strcasecmp(h->name, own[k]) == 0)
				return not_ours(
					h->name, "is one that access_key makes: remove it", why);
		if (!host && strncasecmp(h->name, "x-amz-", 6) != 0)
			continue;
		if (!h->value)
			return not_ours(h->name,
				"is signed, and cannot come from a file: write its value", why);
		headers[(*n)++] = (struct aws_sigv4_header){h->name, h->value};
		*ret_host |= host;
	}
	return 0;
}

static int add_own(const struct kind_place *place, struct kind_request *r, const char *date)
{
	int e = kind_header(r, "x-amz-content-sha256: " AWS_SIGV4_NO_BODY);

	if (e == 0)
		e = kind_header(r, "x-amz-date: %s", date);
	if (e == 0 && place->session_token)
		e = kind_header(r, "x-amz-security-token: %s", place->session_token);
	return e;
}

static int sign_s3_request(const struct kind_place *place, const struct target *t,
	struct kind_request *r, char why[FILE_WHY])
{
	const struct settings_server *server = place->server;
	const struct aws_sigv4_key key = {
		server->access_key, place->secret, server->region ? server->region : REGION, "s3"};
	char date[AWS_SIGV4_DATE];
	struct aws_sigv4_header headers[SETTINGS_MAX_HEADERS + 4] = {
		{"x-amz-content-sha256", AWS_SIGV4_NO_BODY},
		{"x-amz-date", date},
		{"x-amz-security-token", place->session_token},
	};
	size_t n = place->session_token ? 3 : 2;
	struct buffer authorization;
	bool host = false;
	int e;

	_Static_assert(
		SETTINGS_MAX_HEADERS + 4 <= AWS_SIGV4_MAX_HEADERS, "headers that are signed");
	if (!key.id) {
		snprintf(why, FILE_WHY, "access_key has no id");
		return -EINVAL;
	}
	if (aws_sigv4_date(place->wall_ms, date)) {
		snprintf(why, FILE_WHY, "this host's clock is wrong: nothing can be signed");
		return -EINVAL;
	}
	e = add_configured(server, headers, &n, &host, why);
	if (e == 0 && !host) {
		headers[n++] = (struct aws_sigv4_header){"Host", t->host};
		e = kind_header(r, "Host: %s", t->host);
	}
	if (e == 0)
		e = add_own(place, r, date);
	buffer_init(&authorization, KIND_MAX_TOKEN);
	if (e == 0)
		e = aws_sigv4_authorization(&key,
			&(struct aws_sigv4_request){r->method, t->path.data,
				t->query.data ? t->query.data : "", date, AWS_SIGV4_NO_BODY,
				headers, n},
			&authorization);
	if (e == 0)
		e = kind_header(r, "Authorization: %s", authorization.data);
	buffer_fini(&authorization);
	return e;
}

static int fill_s3_request(const struct kind_place *place, const struct target *t,
	struct kind_request *r, char why[FILE_WHY])
{
	const struct part *held = place->same_address ? kind_held(place) : NULL;
	int e = buffer_printf(&r->url, "%.*s%s", (int)t->origin_len, place->base, t->path.data);

	if (e == 0 && t->query.len)
		e = buffer_printf(&r->url, "?%s", t->query.data);
	if (e == 0 && held && kind_is_etag(held->etag)) {
		e = kind_header(r, "If-None-Match: %s", held->etag);
		r->conditional = true;
	}
	return e || !place->secret ? e : sign_s3_request(place, t, r, why);
}

static int s3_build(const struct kind_place *place, struct kind_request *r, char why[FILE_WHY])
{
	struct target t = {0};
	int e;

	buffer_init(&t.path, KIND_MAX_URL);
	buffer_init(&t.query, KIND_MAX_URL);
	e = make_target(place, &t, why);
	if (e == 0)
		e = fill_s3_request(place, &t, r, why);
	buffer_fini(&t.path);
	buffer_fini(&t.query);
	return e;
}

/* ---- answers ---- */

/* Searches the first bytes of an answer; or NULL. */
static const char *find_in_body(const struct buffer *body, const char *text, size_t max)
{
	return body->data
		       ? memmem(body->data, body->len < max ? body->len : max, text, strlen(text))
		       : NULL;
}

/* The text of an element without attributes ("<NAME>"), made printable; "" = there is none. */
static const char *element_text(
	const struct buffer *body, const char *name, char ret_words[KV_WORDS])
{
	const char *text = find_in_body(body, name, MAX_ERROR), *end;

	ret_words[0] = '\0';
	if (!text)
		return ret_words;
	text += strlen(name);
	end = memchr(text, '<', body->len - (size_t)(text - body->data));
	if (end)
		kv_words(text, (size_t)(end - text), ret_words);
	return ret_words;
}

/* S3's codes, and what an operator should do. */
static const struct refusal {
	const char *code;
	enum kind_cause cause; /* NONE: it is absent */
	const char *advice;
} refusals[] = {
	{"NoSuchKey", KIND_CAUSE_NONE, "there is no such object: check the path"},
	{"NoSuchVersion", KIND_CAUSE_NONE, "there is no such version of the object"},
	{"NoSuchBucket", KIND_CAUSE_NOT_FOUND,
		"the bucket does not exist: check the first segment of the path, or the url"},
	{"AccessDenied", KIND_CAUSE_FORBIDDEN,
		"the object may not be read with these credentials, or is missing in a bucket that "
		"may not be listed"},
	{"AllAccessDisabled", KIND_CAUSE_FORBIDDEN, "the bucket's owner closed it"},
	{"AccountProblem", KIND_CAUSE_FORBIDDEN, "the account is closed"},
	{"SignatureDoesNotMatch", KIND_CAUSE_FORBIDDEN,
		"secret_file does not hold the secret of this access key, or a proxy changed the "
		"request"},
	{"InvalidAccessKeyId", KIND_CAUSE_FORBIDDEN,
		"the server does not know the id of the access key (a temporary one needs "
		"session_token_file)"},
	{"InvalidToken", KIND_CAUSE_FORBIDDEN, "session_token_file holds no valid token"},
	{"ExpiredToken", KIND_CAUSE_FORBIDDEN, "the session token has expired: renew its file"},
	{"RequestTimeTooSkewed", KIND_CAUSE_FORBIDDEN,
		"the clock of this host differs too much from the server's: set it right"},
	{"MissingSecurityHeader", KIND_CAUSE_FORBIDDEN, "the server wants an access key"},
	{"AuthorizationHeaderMalformed", KIND_CAUSE_FORBIDDEN,
		"region is not that of the bucket: set it"},
	{"IllegalLocationConstraintException", KIND_CAUSE_ANSWER,
		"the bucket is in another region: set region and url"},
	{"PermanentRedirect", KIND_CAUSE_ANSWER,
		"the bucket is in another region: set region and url"},
	{"TemporaryRedirect", KIND_CAUSE_ANSWER, "the bucket is being moved: try again later"},
	{"InvalidObjectState", KIND_CAUSE_ANSWER, "the object is archived: restore it"},
	{"SlowDown", KIND_CAUSE_OVERLOADED, "the server is overloaded"},
	{"ServiceUnavailable", KIND_CAUSE_OVERLOADED, "the server is overloaded"},
	{"TooManyRequests", KIND_CAUSE_OVERLOADED, "the server is overloaded"},
	{"RequestLimitExceeded", KIND_CAUSE_OVERLOADED, "the server is overloaded"},
	{"RequestTimeout", KIND_CAUSE_TIMEOUT, "the request did not come through in time"},
};

/* Collects the details beside the code: where the bucket is, and the message. */
static void quote_details(const struct http_client_response *response, char ret[FILE_WHY])
{
	bool elsewhere = response->status <= 400; /* some name the region in all errors */
	char message[KV_WORDS], region[KV_WORDS] = "", endpoint[KV_WORDS] = "";

	element_text(&response->body, "<Message>", message);
	if (elsewhere) {
		element_text(&response->body, "<Region>", region);
		element_text(&response->body, "<Endpoint>", endpoint);
	}
	snprintf(ret, FILE_WHY, "%s%.40s%s%.80s%s%s", region[0] ? "; region " : "", region,
		endpoint[0] ? "; endpoint " : "", endpoint, message[0] ? "; " : "", message);
}

static enum kind_verdict read_s3_error(
	const struct http_client_response *response, const char *code, struct kind_answer *ret)
{
	const struct refusal *end = refusals + sizeof(refusals) / sizeof(refusals[0]), *r;
	char quoted[FILE_WHY], words[FILE_WHY];

	quote_details(response, quoted);
	for (r = refusals; r < end && strcmp(r->code, code) != 0;)
		r++;
	if (r == end) {
		snprintf(words, sizeof(words), "%.64s%.250s", code, quoted);
		return kv_refused(response->status, words, ret);
	}
	ret->cause = r->cause ? r->cause : KIND_CAUSE_NOT_FOUND;
	snprintf(ret->why, FILE_WHY, "the server answered %ld %.64s: %s%s", response->status, code,
		r->advice, sentence_quote(words, 160 + SENTENCE_WORDS, quoted, strlen(quoted), ""));
	return r->cause || response->status != 404 ? KIND_FAILED : KIND_ABSENT;
}

static enum kind_verdict s3_read(const struct kind_place *place,
	const struct http_client_response *response, struct kind_answer *ret)
{
	char code[KV_WORDS];

	ret->cause = KIND_CAUSE_ANSWER;
	if (response->status == 200 && strcmp(response->content_type, "application/xml") == 0 &&
		find_in_body(&response->body, "<ListBucketResult", MAX_PROLOG))
		return kind_fail(ret, KIND_CAUSE_ANSWER,
			"the server listed a bucket instead of sending an object: the path must be "
			"/BUCKET/KEY, or /KEY where the url names the bucket");
	if (response->status == 200)
		return kind_document(place, response, ret);
	if (*element_text(&response->body, "<Code>", code))
		return read_s3_error(response, code, ret);
	if (response->status != 404)
		return KIND_USUAL;
	return kind_fail(ret, KIND_CAUSE_NOT_FOUND,
		"the server answered 404, but not as S3 does for a missing object: check the url");
}

const struct kind kind_s3 = {.name = "s3", .build = s3_build, .read = s3_read};

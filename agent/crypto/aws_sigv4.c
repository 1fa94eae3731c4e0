/*
 * AWS Signature Version 4. Surprising: nothing is encoded here, since services differ (S3 encodes a
 * path once, others twice): the caller does it.
 */
#include "crypto/aws_sigv4.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "crypto/digest.h"

#define DAY 8 /* letters of a date that are the day */
#define ALGORITHM "AWS4-HMAC-SHA256"
#define SCOPE_END "aws4_request"

int aws_sigv4_date(int64_t wall_ms, char ret_date[AWS_SIGV4_DATE])
{
	time_t seconds = (time_t)(wall_ms / 1000);
	struct tm tm;

	/* a year of more than four digits does not fit */
	if (wall_ms < 0 || !gmtime_r(&seconds, &tm) ||
		strftime(ret_date, AWS_SIGV4_DATE, "%Y%m%dT%H%M%SZ", &tm) != AWS_SIGV4_DATE - 1)
		return -ERANGE;
	return 0;
}

/* ---- what is signed ---- */

static int by_header_name(const void *a, const void *b)
{
	const struct aws_sigv4_header *x = a, *y = b;

	return strcasecmp(x->name, y->name);
}

static void append_name(struct buffer *out, const char *name)
{
	for (; *name; name++) {
		char c = (char)tolower((unsigned char)*name);

		buffer_append(out, &c, 1);
	}
}

/* Without blanks at the ends, and one for several. */
static void append_header_value(struct buffer *out, const char *value)
{
	bool begun = false;

	while (*value) {
		size_t blanks = strspn(value, " \t"), len = strcspn(value + blanks, " \t");

		if (begun && blanks && len)
			buffer_append(out, " ", 1);
		buffer_append(out, value + blanks, len);
		begun |= len > 0;
		value += blanks + len;
	}
}

static void append_names(struct buffer *out, const struct aws_sigv4_header *sorted, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		buffer_append(out, ";", i > 0);
		append_name(out, sorted[i].name);
	}
}

/* Reserves all bytes at once: growing would leave a session token in freed memory. */
static int reserve_request(struct buffer *b, const struct aws_sigv4_request *r)
{
	size_t size = strlen(r->method) + strlen(r->path) + strlen(r->query) +
		      strlen(r->body_sha256) + sizeof("\n\n\n\n");

	for (size_t i = 0; i < r->header_count; i++)
		size += 2 * strlen(r->headers[i].name) + strlen(r->headers[i].value) +
			sizeof(":\n;");
	buffer_init(b, size);
	return buffer_reserve(b, size);
}

static void wipe_buffer(struct buffer *b)
{
	if (b->data)
		explicit_bzero(b->data, b->cap);
	buffer_fini(b);
}

static int hash_request(const struct aws_sigv4_request *r, const struct aws_sigv4_header *sorted,
	char ret_hex[DIGEST_HEX])
{
	struct buffer b;
	int e = reserve_request(&b, r);

	if (e)
		return e;
	buffer_printf(&b, "%s\n%s\n%s\n", r->method, r->path, r->query);
	for (size_t i = 0; i < r->header_count; i++) {
		append_name(&b, sorted[i].name);
		buffer_append(&b, ":", 1);
		append_header_value(&b, sorted[i].value);
		buffer_append(&b, "\n", 1);
	}
	buffer_append(&b, "\n", 1);
	append_names(&b, sorted, r->header_count);
	buffer_printf(&b, "\n%s", r->body_sha256);
	assert(b.error != -EMSGSIZE);
	e = b.error ? b.error : digest_sha256(b.data, b.len, NULL, 0, ret_hex);
	wipe_buffer(&b);
	return e;
}

/* ---- the signature ---- */

/* Signs the texts in turn, each with the signature of the one before as key; the first with the
 * secret. */
static int sign_chain(const struct aws_sigv4_key *key, const char *const *texts,
	const size_t *lengths, size_t n, unsigned char ret[DIGEST_SHA256])
{
	unsigned char next[DIGEST_SHA256];
	struct buffer first;
	int r;

	buffer_init(&first, strlen("AWS4") + strlen(key->secret));
	r = buffer_reserve(&first, first.max);
	if (r == 0)
		r = buffer_printf(&first, "AWS4%s", key->secret);
	if (r == 0)
		r = digest_hmac_sha256(first.data, first.len, texts[0], lengths[0], ret);
	for (size_t i = 1; r == 0 && i < n; i++) {
		r = digest_hmac_sha256(ret, DIGEST_SHA256, texts[i], lengths[i], next);
		memcpy(ret, next, sizeof(next));
	}
	explicit_bzero(next, sizeof(next));
	wipe_buffer(&first);
	return r;
}

static int sign_hash(const struct aws_sigv4_key *key, const char *date, const char *hash,
	unsigned char ret[DIGEST_SHA256])
{
	struct buffer b;
	int r;

	buffer_init(&b, strlen(key->region) + strlen(key->service) + 256);
	r = buffer_printf(&b, ALGORITHM "\n%s\n%.*s/%s/%s/" SCOPE_END "\n%s", date, DAY, date,
		key->region, key->service, hash);
	if (r == 0) {
		const char *const texts[] = {date, key->region, key->service, SCOPE_END, b.data};
		const size_t lengths[] = {
			DAY, strlen(key->region), strlen(key->service), strlen(SCOPE_END), b.len};

		r = sign_chain(key, texts, lengths, sizeof(texts) / sizeof(texts[0]), ret);
	}
	buffer_fini(&b);
	return r;
}

int aws_sigv4_authorization(
	const struct aws_sigv4_key *key, const struct aws_sigv4_request *r, struct buffer *out)
{
	struct aws_sigv4_header sorted[AWS_SIGV4_MAX_HEADERS];
	unsigned char signature[DIGEST_SHA256];
	char hash[DIGEST_HEX];
	int e;

	assert(strlen(r->date) == AWS_SIGV4_DATE - 1);
	if (r->header_count > AWS_SIGV4_MAX_HEADERS)
		return -EMSGSIZE;
	memcpy(sorted, r->headers, r->header_count * sizeof(sorted[0]));
	qsort(sorted, r->header_count, sizeof(sorted[0]), by_header_name);
	e = hash_request(r, sorted, hash);
	if (e == 0)
		e = sign_hash(key, r->date, hash, signature);
	if (e)
		return e;
	buffer_printf(out,
		ALGORITHM " Credential=%s/%.*s/%s/%s/" SCOPE_END ", SignedHeaders=", key->id, DAY,
		r->date, key->region, key->service);
	append_names(out, sorted, r->header_count);
	buffer_append_string(out, ", Signature=");
	for (size_t i = 0; i < sizeof(signature); i++)
		buffer_printf(out, "%02x", signature[i]);
	return out->error;
}

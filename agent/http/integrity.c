/*
 * Digest headers, member by member. Surprising: a header is not parsed as a structured field: what
 * matters is that each member that begins with a known algorithm's name fits, in either way of
 * writing ("sha-256=:BASE64:", "SHA-256=BASE64"), and a stray comma can only add members.
 */
#include "http/integrity.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "crypto/base64.h"
#include "crypto/digest.h"

#define BLANKS " \t"

static const struct algorithm {
	const char *name, *shown;
	size_t len;
	int (*hash)(const void *data, size_t len, unsigned char *ret);
} algorithms[] = {
	{"sha-256", "SHA-256", DIGEST_SHA256, digest_sha256_raw},
	{"sha-512", "SHA-512", DIGEST_SHA512, digest_sha512_raw},
};

struct member {
	const char *name, *value;
	size_t name_len, value_len;
};

/* Takes the next member off a header's value; false when there is none. */
static bool next_member(const char **rest, struct member *ret)
{
	const char *p = *rest + strspn(*rest, BLANKS ","), *end, *equals;

	if (!*p)
		return false;
	end = p + strcspn(p, ",");
	*rest = end;
	equals = memchr(p, '=', (size_t)(end - p));
	ret->name = p;
	ret->name_len = (size_t)((equals ? equals : end) - p);
	p = equals ? equals + 1 : end;
	ret->value = p + (*p == ':');
	ret->value_len = strcspn(ret->value, *p == ':' ? ":," : "; \t,");
	return true;
}

static const struct algorithm *algorithm_of(const struct member *m)
{
	for (size_t i = 0; i < sizeof(algorithms) / sizeof(algorithms[0]); i++)
		if (strlen(algorithms[i].name) == m->name_len &&
			strncasecmp(algorithms[i].name, m->name, m->name_len) == 0)
			return &algorithms[i];
	return NULL;
}

/* The padding may be left out: RFC 8941, 4.2.7. */
static bool read_digest(const struct member *m, size_t len, unsigned char ret[DIGEST_SHA512])
{
	char text[(DIGEST_SHA512 + 2) / 3 * 4];
	size_t letters = (len * 8 + 5) / 6, whole = (len + 2) / 3 * 4, got;

	if (m->value_len < letters || m->value_len > whole)
		return false;
	memset(text, '=', whole);
	memcpy(text, m->value, m->value_len);
	return base64_decode(text, whole, ret, len, &got) == 0 && got == len;
}

static void print_prefix(const unsigned char *digest, char ret_text[17])
{
	for (size_t i = 0; i < 8; i++)
		snprintf(ret_text + 2 * i, 3, "%02x", digest[i]);
}

/* True (1), false (0) or -ENOMEM; ret_first is what the bytes that came are. */
static int fits_body(const struct algorithm *a, const struct http_client_response *r,
	const unsigned char *given, unsigned char ret_first[DIGEST_SHA512])
{
	const struct buffer *const bodies[] = {r->coded.len ? &r->coded : NULL, &r->body};
	unsigned char real[DIGEST_SHA512];
	bool first = true;

	for (size_t i = 0; i < 2; i++) {
		if (!bodies[i])
			continue;
		if (a->hash(bodies[i]->data ? bodies[i]->data : "", bodies[i]->len, real))
			return -ENOMEM;
		if (first)
			memcpy(ret_first, real, a->len);
		first = false;
		if (memcmp(real, given, a->len) == 0)
			return 1;
	}
	return 0;
}

static int check_member(const struct http_client_response *r, const char *header,
	const struct member *m, const struct algorithm *a, char why[INTEGRITY_WHY])
{
	unsigned char given[DIGEST_SHA512], real[DIGEST_SHA512];
	char given_text[17], real_text[17];
	int good;

	if (!read_digest(m, a->len, given)) {
		snprintf(why, INTEGRITY_WHY, "the %s in its %s is none of %zu bytes", a->shown,
			header, a->len);
		return -EINVAL;
	}
	good = fits_body(a, r, given, real);
	if (good < 0)
		snprintf(why, INTEGRITY_WHY, "out of memory for its %s", a->shown);
	if (good)
		return good < 0 ? good : 0;
	print_prefix(given, given_text);
	print_prefix(real, real_text);
	snprintf(why, INTEGRITY_WHY, "%s is %s..., its %s says %s...", a->shown, real_text, header,
		given_text);
	return -EINVAL;
}

int integrity_check(const struct http_client_response *r, char ret_why[INTEGRITY_WHY],
	char ret_note[INTEGRITY_WHY])
{
	const struct {
		const char *name, *value;
	} headers[] = {
		{"Content-Digest", r->content_digest},
		{"Repr-Digest", r->repr_digest},
		{"Digest", r->digest},
	};
	const char *strange = NULL;
	size_t known = 0;

	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
		const char *rest = headers[i].value;
		struct member m;

		while (next_member(&rest, &m)) {
			const struct algorithm *a = algorithm_of(&m);
			int e = a ? check_member(r, headers[i].name, &m, a, ret_why) : 0;

			if (e)
				return e;
			known += a != NULL;
			strange = strange ? strange : headers[i].name;
		}
	}
	ret_note[0] = '\0';
	if (strange && !known)
		snprintf(ret_note, INTEGRITY_WHY,
			"its %s has neither sha-256 nor sha-512: it is not checked", strange);
	return 0;
}

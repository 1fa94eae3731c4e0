/*
 * Fuzz target: S3. The first byte is 'u' and the rest a path that is asked for, or it chooses the
 * status of an answer and the rest is the body.
 *
 * What is checked: a URL has only what needs no encoding, no segment that a client takes out, and
 * is the same when it is asked for once more; it is signed. An answer is absence only with 404 and
 * in S3's own words; what is said of it is printable.
 */
#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pull/kinds/kind.h"
#include "text/sentence.h"

#define BASE "https://s3.example:9000"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char id[] = "AKIAIOSFODNN7EXAMPLE";
static const struct settings_server server = {.kind = SETTINGS_S3, .access_key = id};

static void demand(int condition)
{
	if (!condition)
		abort();
}

static int build(const char *path, struct kind_request *r, char why[FILE_WHY])
{
	const struct kind_place place = {.server = &server,
		.base = BASE,
		.path = path,
		.secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"};

	kind_request_init(r);
	return kind_s3.build(&place, r, why);
}

static void check_url(const char *path)
{
	for (const char *c = path; *c; c++) {
		demand(isalnum((unsigned char)*c) || strchr("-._~/?&=%", *c));
		if (*c == '%')
			demand(strspn(c + 1, "0123456789ABCDEF") >= 2);
	}
	for (const char *c = path; (c = strstr(c, "/.")); c++) {
		size_t len = strcspn(c + 1, "/?");

		demand(strchr(path, '?') && strchr(path, '?') < c
				? 1
				: strspn(c + 1, ".") < len || len > 2);
	}
}

static void check_request(const uint8_t *data, size_t size)
{
	char *path = malloc(size + 2), why[FILE_WHY] = "";
	struct kind_request r, again;
	int e;

	demand(path != NULL);
	path[0] = '/';
	memcpy(path + 1, data, size);
	path[size + 1] = '\0';
	e = build(path, &r, why);
	demand(e == 0 || (e == -EINVAL && why[0]) || e == -EMSGSIZE);
	if (e == 0) {
		const char *authorization = r.headers[r.header_count - 1];

		demand(strncmp(r.url.data, BASE "/", strlen(BASE "/")) == 0);
		check_url(r.url.data + strlen(BASE));
		demand(strncmp(authorization, "Authorization: AWS4-HMAC-SHA256 ", 32) == 0);
		demand(build(r.url.data + strlen(BASE), &again, why) == 0);
		demand(strcmp(r.url.data, again.url.data) == 0);
		demand(strcmp(authorization, again.headers[again.header_count - 1]) == 0);
		kind_request_fini(&again);
	}
	kind_request_fini(&r);
	free(path);
}

static void check_answer(long status, const uint8_t *data, size_t size)
{
	const struct kind_place place = {
		.server = &server, .base = BASE, .path = "/b/k", .max_bytes = 1u << 20};
	struct http_client_response r = {
		.status = status, .framed = true, .content_type = "application/xml"};
	struct kind_answer a;
	enum kind_verdict verdict;

	buffer_init(&r.body, size);
	demand(buffer_append(&r.body, data, size) == 0);
	kind_answer_init(&a, place.max_bytes);
	a.cause = KIND_CAUSES;
	verdict = kind_s3.read(&place, &r, &a);
	demand(verdict == KIND_NEW || verdict == KIND_FAILED || verdict == KIND_ABSENT ||
		verdict == KIND_USUAL);
	if (verdict == KIND_NEW)
		demand(status == 200 && a.body.len == size && !memcmp(a.body.data, data, size));
	else
		demand(a.body.len == 0);
	if (verdict == KIND_ABSENT)
		demand(status == 404 && memmem(data, size, "<Code>NoSuch", 12));
	if (verdict == KIND_USUAL)
		demand(status != 200 && status != 404);
	if (verdict == KIND_FAILED || verdict == KIND_ABSENT) {
		char shown[FILE_WHY];

		demand(a.cause > KIND_CAUSE_NONE && a.cause < KIND_CAUSES);
		demand(a.why[0] && memchr(a.why, '\0', FILE_WHY));
		sentence_show(shown, sizeof(shown), a.why, AUDIENCE_OPERATOR);
		for (const char *c = shown; *c; c++)
			demand(*c >= 0x20 && *c < 0x7f);
	}
	buffer_fini(&r.body);
	kind_answer_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const long statuses[] = {200, 301, 304, 307, 400, 403, 404, 429, 500, 503};

	if (size == 0)
		return 0;
	if (data[0] == 'u')
		check_request(data + 1, size - 1);
	else
		check_answer(statuses[data[0] % 10], data + 1, size - 1);
	return 0;
}

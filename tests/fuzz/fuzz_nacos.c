/*
 * Fuzz target: what Nacos answers. Byte 1 says to what (1, 3: a pull by that API; l: a login; w: a
 * watch), byte 2 the status, byte 3 what is held, sent and told besides; the body follows.
 *
 * What is checked beside memory: only a whole, new document has a version, and that is its MD5;
 * only what is held is the same; each refusal has a cause and a printable sentence, without the
 * token; a watch tells only of what it has, and only when the answer is good as a list.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/digest.h"
#include "pull/kinds/kind.h"

#define MAX_BYTES 4096
#define TOKEN "s3cr3t-t0k3n"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HELD = 1, WITH_TOKEN = 2, CUT = 4, RIGHT_MD5 = 8, SOME_MD5 = 16, TENANT = 32, JSON = 64 };

static void demand(int condition)
{
	if (!condition)
		abort();
}

static void check_why(const char *why, int expected)
{
	demand((why[0] != '\0') == expected);
	demand(strlen(why) < FILE_WHY && !strstr(why, TOKEN));
	for (; *why; why++)
		demand(*why >= 0x20 && *why < 0x7f);
}

static void pull(const struct kind_place *place, const struct http_client_response *response)
{
	char md5[DIGEST_MD5_HEX];
	struct kind_answer a;
	enum kind_verdict v;

	kind_answer_init(&a, place->max_bytes);
	v = kind_nacos.read(place, response, &a);
	demand(v != KIND_WHOLE);
	check_why(a.why, v == KIND_FAILED || v == KIND_ABSENT || v == KIND_UNAUTHORIZED);
	if (v == KIND_NEW || v == KIND_SAME) {
		demand(response->status == 200 && a.cause == KIND_CAUSE_NONE);
		demand(a.body.len > 0 && a.body.len <= place->max_bytes);
		demand(digest_md5(a.body.data, a.body.len, md5) == 0);
		demand(strcmp(a.version, md5) == 0 && a.type != SETTINGS_TYPE_AUTO);
		demand((v == KIND_SAME) ==
			(place->held && strcmp(place->held->etag, a.version) == 0));
	}
	if (v == KIND_FAILED)
		demand(a.cause != KIND_CAUSE_NONE && a.cause < KIND_CAUSES);
	if (v == KIND_UNAUTHORIZED)
		demand(place->token && a.cause == KIND_CAUSE_FORBIDDEN);
	kind_answer_fini(&a);
}

static void login(const struct http_client_response *response)
{
	uint64_t lifetime_ms = 0;
	char why[FILE_WHY] = "", *token = NULL;
	int r = kind_nacos.login_read(response, &token, &lifetime_ms, why);

	check_why(why, r != 0);
	demand(r == 0 || r == -EACCES || r == -EAGAIN || r == -EPROTO);
	demand((r == 0) == (token != NULL));
	demand(r != 0 || response->status == 200);
	if (token)
		demand(token[0] && strlen(token) <= KIND_MAX_TOKEN &&
			lifetime_ms <= UINT64_C(366) * 86400 * 1000);
	free(token);
}

struct told {
	unsigned count[3], all;
};

static void changed(void *arg, size_t item, const char *key, size_t key_len, const char *version)
{
	struct told *told = arg;

	demand(item < 3 && !key && !key_len && !version);
	told->count[item]++;
	told->all++;
}

static void watch(const struct kind_place *place, const struct http_client_response *response)
{
	struct kind_watched items[] = {{.path = "/G/web", .version = "", .position = 1},
		{.path = "/G/a+b %", .version = "", .position = 2},
		{.path = "/H/web", .version = "", .position = 3}};
	struct told told = {{0}, 0};
	struct kind_watch w = {place, items, 3, changed, &told, NULL};
	const struct buffer *b = &response->body;
	char why[FILE_WHY] = "";
	int r = kind_nacos.watch_read(&w, response, why);

	check_why(why, r != 0);
	demand(r == 0 || r == -EACCES || r == -EAGAIN || r == -EPROTO);
	demand(r != 0 || response->status == 200);
	for (size_t i = 0; i < 3; i++)
		demand(items[i].position == i + 1);
	if (told.all > 0) { /* then it has been named, and there are separators */
		demand(memmem(b->data, b->len, told.count[1] ? "a" : "web",
			       told.count[1] ? 1 : 3) ||
			memchr(b->data, '%', b->len));
		demand(told.all <= b->len);
	}
	if (r == 0 && told.all == 0)
		for (size_t i = 0; i < b->len; i++)
			demand(b->data[i] == '\n' || b->data[i] == '\r');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const long statuses[] = {200, 401, 403, 404, 409, 429, 500, 503, 304, 0};
	static char web_md5[] = "16be2da84889ac3b4f0690e4e9fa3172", dev[] = "dev";
	struct part held = {.etag = web_md5};
	struct settings_server server = {.kind = SETTINGS_NACOS, .api = 1};
	struct kind_place place = {.server = &server,
		.base = "http://nacos:8848",
		.path = "/G/web",
		.max_bytes = MAX_BYTES};
	struct http_client_response r = {.framed = true};
	unsigned flags;

	if (size < 3 || size > 65536)
		return 0;
	flags = data[2];
	server.api = data[0] == '3' ? 3 : 1;
	server.namespace = flags & TENANT ? dev : NULL;
	place.held = flags & HELD ? &held : NULL;
	place.token = flags & WITH_TOKEN ? TOKEN : NULL;
	r.status = statuses[(unsigned)(data[1] - 'a') % (sizeof(statuses) / sizeof(statuses[0]))];
	r.framed = !(flags & CUT);
	buffer_init(&r.body, size);
	buffer_append(&r.body, data + 3, size - 3);
	if (flags & RIGHT_MD5)
		demand(digest_md5(data + 3, size - 3, r.content_md5) == 0);
	if (flags & SOME_MD5)
		snprintf(r.content_md5, sizeof(r.content_md5), "%.40s",
			r.body.data ? r.body.data : "");
	if (flags & JSON)
		snprintf(r.config_type, sizeof(r.config_type), "json");
	if (data[0] == '1' || data[0] == '3')
		pull(&place, &r);
	else if (data[0] == 'l')
		login(&r);
	else if (data[0] == 'w')
		watch(&place, &r);
	buffer_fini(&r.body);
	return 0;
}

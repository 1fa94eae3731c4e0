/*
 * Fuzz target: what Apollo answers. Byte 1 says to what (k: a pull of keys; f: of a file; w: a
 * watch), byte 2 the status, byte 3 what is held and sent besides; the body follows.
 *
 * What is checked beside memory: a new version has a key, and a document that the agent reads where
 * it is written here; only what is held is the same; the whole is asked for only once; each refusal
 * has a cause and a printable sentence, without the secret; a watch tells only of what it has, and
 * just when its id is another one.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "document/document.h"
#include "pull/kinds/kind.h"

#define MAX_BYTES 4096
#define SECRET "s3cr3t-k3y"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HELD = 1, WITH_SECRET = 2, BYTES = 4, ABSENT = 8 };

static void demand(int condition)
{
	if (!condition)
		abort();
}

static void check_why(const char *why, int expected)
{
	demand((why[0] != '\0') == expected);
	demand(strlen(why) < FILE_WHY && !strstr(why, SECRET));
	for (; *why; why++)
		demand(*why >= 0x20 && *why < 0x7f);
}

static void check_keys(const struct kind_answer *a)
{
	struct document_error e;
	struct document *d;
	int r = document_parse(DOCUMENT_JSON, a->body.data, a->body.len, 0, &d, &e);

	demand(r == 0);
	demand(document_root(d)->count > 0);
	document_free(d);
}

static enum kind_verdict pull(
	const struct kind_place *place, const struct http_client_response *response)
{
	struct kind_answer a;
	enum kind_verdict v;
	int same;

	kind_answer_init(&a, place->max_bytes);
	v = kind_apollo.read(place, response, &a);
	check_why(a.why, v == KIND_FAILED || v == KIND_ABSENT);
	same = place->held && !place->held->absent && strcmp(place->held->etag, a.version) == 0;
	if (v == KIND_NEW || v == KIND_SAME)
		demand(response->status == 200 && a.cause == KIND_CAUSE_NONE && a.version[0] &&
			(v == KIND_SAME) == same);
	if (v == KIND_NEW) {
		demand(a.body.len > 0 && a.body.len <= place->max_bytes);
		demand(a.type != SETTINGS_TYPE_AUTO);
		if (!strchr(place->path, '.'))
			check_keys(&a);
	}
	if (v == KIND_FAILED)
		demand(a.cause != KIND_CAUSE_NONE && a.cause < KIND_CAUSES);
	demand(v != KIND_WHOLE || place->held);
	demand(v != KIND_UNAUTHORIZED);
	kind_answer_fini(&a);
	return v;
}

struct told {
	unsigned count[3];
};

static void changed(void *arg, size_t item, const char *key, size_t key_len, const char *version)
{
	struct told *told = arg;

	demand(item < 3 && !key && !key_len && !version);
	told->count[item]++;
}

static void watch(const struct kind_place *place, const struct http_client_response *response)
{
	struct kind_watched items[] = {{.path = "/a/c/application", .version = "", .position = 0},
		{.path = "/a/c/web.yaml", .version = "", .position = 6},
		{.path = "/a/c/x.properties", .version = "", .position = 2}},
			    before[3];
	struct told told = {{0}};
	struct kind_watch w = {place, items, 3, changed, &told, NULL};
	char why[FILE_WHY] = "";
	int r;

	memcpy(before, items, sizeof(before));
	r = kind_apollo.watch_read(&w, response, why);
	check_why(why, r != 0);
	demand(r == 0 || r == -EACCES || r == -EAGAIN || r == -EPROTO);
	demand(r != 0 || response->status == 200 || response->status == 304);
	for (size_t i = 0; i < 3; i++) {
		demand(told.count[i] > 0 || items[i].position == before[i].position);
		demand(told.count[i] != 1 || items[i].position != before[i].position);
		demand(items[i].position <= UINT64_C(1) << 63);
	}
	/* what is told twice is no news */
	memset(&told, 0, sizeof(told));
	if (r == 0 && kind_apollo.watch_read(&w, response, why) == 0)
		for (size_t i = 0; i < 3; i++)
			demand(told.count[i] != 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const long statuses[] = {200, 304, 400, 401, 403, 404, 429, 500, 503, 0};
	static char key[] = "20170430092936-dee2d58e74515ff3";
	struct part held = {.etag = key};
	struct settings_server server = {.kind = SETTINGS_APOLLO};
	struct kind_place place = {.server = &server,
		.base = "http://apollo:8080",
		.path = "/a/c/application",
		.max_bytes = MAX_BYTES};
	struct http_client_response r = {.framed = true};
	unsigned flags;

	if (size < 3 || size > 65536)
		return 0;
	flags = data[2];
	held.absent = flags & ABSENT;
	place.held = flags & HELD ? &held : NULL;
	place.secret = flags & WITH_SECRET ? SECRET : NULL;
	place.type = flags & BYTES ? SETTINGS_TYPE_BYTES : SETTINGS_TYPE_AUTO;
	r.status = statuses[(unsigned)(data[1] - 'a') % (sizeof(statuses) / sizeof(statuses[0]))];
	buffer_init(&r.body, size);
	buffer_append(&r.body, data + 3, size - 3);
	if (data[0] == 'f')
		place.path = "/a/c/web.yaml";
	if (data[0] == 'w') {
		watch(&place, &r);
	} else if (pull(&place, &r) == KIND_WHOLE) {
		place.held = NULL;
		demand(pull(&place, &r) != KIND_WHOLE);
	}
	buffer_fini(&r.body);
	return 0;
}

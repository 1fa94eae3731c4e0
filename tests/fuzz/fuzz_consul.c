/*
 * Fuzz target: an answer of Consul's KV store. The first line says what it is: 'k' the pull of a
 * key, 'p' of a prefix, 'w' the watch of a key, 'x' of a prefix; a digit for the status; the
 * index of the answer; and behind a comma the epoch that is held. The rest is the body.
 *
 * What is checked beside memory: a document has bytes, a type, a version and an epoch by which the
 * same answer is the same; whatever else has a sentence in printable ASCII; a watch that moves has
 * told of it, and stands at 1 at least or begins again.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pull/kinds/kind.h"
#include "text/sentence.h"

#define MAX_BYTES 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(int condition)
{
	if (!condition)
		abort();
}

static void demand_sentence(const char *why)
{
	char shown[FILE_WHY];

	demand(*why && strlen(why) < FILE_WHY);
	sentence_show(shown, sizeof(shown), why, AUDIENCE_OPERATOR);
	for (why = shown; *why; why++)
		demand(*why >= 0x20 && *why < 0x7f);
}

static void demand_document(const struct kind_answer *a)
{
	demand(a->body.len > 0 && a->body.len <= MAX_BYTES);
	demand(a->type > SETTINGS_TYPE_AUTO && a->type <= SETTINGS_TYPE_BYTES);
	demand(a->version[0] && strspn(a->version, "0123456789") == strlen(a->version));
	demand(a->epoch[0] && strspn(a->epoch, "0123456789 ") == strlen(a->epoch));
	demand(memchr(a->note, '\0', sizeof(a->note)) != NULL);
}

static enum kind_verdict pull(const struct kind_place *place,
	const struct http_client_response *response, struct kind_answer *ret)
{
	enum kind_verdict verdict;

	memset(ret, 0, sizeof(*ret));
	buffer_init(&ret->body, MAX_BYTES);
	ret->cause = KIND_CAUSES;
	verdict = kind_consul.read(place, response, ret);
	demand(verdict != KIND_UNAUTHORIZED);
	if (verdict == KIND_NEW || verdict == KIND_SAME)
		demand_document(ret);
	else if (verdict != KIND_USUAL)
		demand_sentence(ret->why);
	if (verdict == KIND_FAILED)
		demand(ret->cause > KIND_CAUSE_NONE && ret->cause < KIND_CAUSES);
	if (verdict == KIND_ABSENT)
		demand(response->status == 200 || response->consul_index[0]);
	return verdict;
}

static void try_pull(
	struct kind_place *place, const struct http_client_response *response, char *epoch)
{
	char version[256] = "7", held_epoch[128];
	struct part held = {.etag = version, .epoch = epoch};
	struct kind_answer a;
	enum kind_verdict verdict;

	place->held = &held;
	verdict = pull(place, response, &a);
	if (verdict == KIND_NEW) {
		memcpy(version, a.version, sizeof(version));
		memcpy(held_epoch, a.epoch, sizeof(held_epoch));
		held.epoch = held_epoch;
		buffer_fini(&a.body);
		demand(pull(place, response, &a) == KIND_SAME);
	}
	buffer_fini(&a.body);
	place->held = NULL;
	demand(pull(place, response, &a) != KIND_SAME);
	buffer_fini(&a.body);
}

static void changed(void *arg, size_t item, const char *key, size_t len, const char *version)
{
	size_t *calls = arg;

	demand(item == 0);
	demand(!key || (len > 0 && memchr(key, '\0', len) == NULL));
	demand(!version || (*version && strspn(version, "0123456789") == strlen(version)));
	++*calls;
}

static void try_watch(const struct kind_place *place, const struct http_client_response *response,
	const char *path, uint64_t before)
{
	struct kind_watched item = {.path = path, .version = "7", .position = before};
	size_t calls = 0;
	struct kind_watch w = {
		.place = place, .items = &item, .count = 1, .changed = changed, .arg = &calls};
	char why[FILE_WHY] = "";
	int r = kind_consul.watch_read(&w, response, why);

	demand(r == 0 || r == -EAGAIN || r == -EACCES || r == -EPROTO);
	if (r)
		demand_sentence(why);
	if (r || item.position == before)
		demand(item.position == before && calls == 0);
	else
		demand(calls > 0 && (item.position > before || item.position == 0));
	demand(r || before || item.position > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const long status[10] = {200, 200, 200, 302, 404, 500, 403, 405, 429, 410};
	static struct settings_server server = {.kind = SETTINGS_CONSUL};
	struct http_client_response response = {.framed = true};
	struct kind_place place = {
		.server = &server, .base = "http://consul", .max_bytes = MAX_BYTES};
	const uint8_t *body = size > 2 ? memchr(data, '\n', size) : NULL;
	const char *path;
	char line[128], *epoch;
	size_t len;

	if (!body || body < data + 2 || (size_t)(body - data) - 2 >= sizeof(line))
		return 0;
	memcpy(line, data + 2, (size_t)(body - data) - 2);
	line[body - data - 2] = '\0';
	epoch = strchr(line, ',');
	if (epoch)
		*epoch++ = '\0';
	snprintf(response.consul_index, sizeof(response.consul_index), "%.23s", line);
	len = size - (size_t)(++body - data);
	response.status = status[(data[1] & 0x0f) % 10];
	buffer_init(&response.body, len); /* its own memory: a sanitizer sees what lies behind */
	demand(buffer_append(&response.body, body, len) == 0);
	path = data[0] == 'p' || data[0] == 'x' ? "/p/" : "/k";
	place.path = path;
	if (data[0] == 'k' || data[0] == 'p') {
		try_pull(&place, &response, epoch);
	} else if (data[0] == 'w' || data[0] == 'x') {
		try_watch(&place, &response, path, 0);
		try_watch(&place, &response, path, 7);
	}
	buffer_fini(&response.body);
	return 0;
}

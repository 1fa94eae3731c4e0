/*
 * Fuzz target: an answer of etcd's JSON gateway. The first line says what it is: 'k' the pull of a
 * key, 'p' of a prefix, 'w' a line of a watch, 'l' a login; a digit for the status; and the epoch
 * that is held. The rest is the body.
 *
 * What is checked beside memory: a document has bytes, a type, a version and an epoch by which the
 * same answer is the same; whatever else has a sentence in printable ASCII; a watch tells only of
 * its own items and of keys below them, and its positions go back to 0 or not at all.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pull/kinds/kind.h"
#include "text/sentence.h"

#define MAX_BYTES 4096
#define ITEMS 2

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
	verdict = kind_etcd.read(place, response, ret);
	if (verdict == KIND_NEW || verdict == KIND_SAME)
		demand_document(ret);
	else if (verdict != KIND_USUAL)
		demand_sentence(ret->why);
	if (verdict == KIND_FAILED)
		demand(ret->cause > KIND_CAUSE_NONE && ret->cause < KIND_CAUSES);
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
		demand(pull(place, response, &a) == (place->forced ? KIND_NEW : KIND_SAME));
	}
	buffer_fini(&a.body);
	place->held = NULL;
	demand(pull(place, response, &a) != KIND_SAME);
	buffer_fini(&a.body);
}

struct told {
	const struct kind_watch *watch;
	size_t calls;
};

static void changed(void *arg, size_t item, const char *key, size_t len, const char *version)
{
	struct told *t = arg;
	const char *path;

	demand(item < ITEMS);
	path = t->watch->items[item].path;
	demand(!key || (len >= strlen(path) && !memcmp(key, path, strlen(path))));
	demand(!version || (*version && strspn(version, "0123456789") == strlen(version)));
	t->calls++;
}

/* Never of a prefix, and never more than one key. */
static void answered(void *arg, size_t item, const struct http_client_response *answer)
{
	const struct told *t = arg;
	struct kind_place place = *t->watch->place;
	struct kind_answer a;
	enum kind_verdict verdict;

	demand(item == 0);
	place.path = t->watch->items[item].path;
	place.held = NULL;
	verdict = pull(&place, answer, &a);
	demand(verdict == KIND_NEW || verdict == KIND_FAILED);
	buffer_fini(&a.body);
}

static void try_watch(const struct kind_place *place, const struct http_client_response *response)
{
	const uint64_t before[ITEMS] = {0, 7};
	struct kind_watched items[ITEMS] = {{.path = "/k", .version = "7", .position = before[0]},
		{.path = "/p/", .version = "", .position = before[1]}};
	struct kind_watch w = {.place = place, .items = items, .count = ITEMS, .changed = changed};
	struct told told = {.watch = &w};
	char why[FILE_WHY] = "";
	int r;

	w.arg = &told;
	w.answered = answered;
	r = kind_etcd.watch_read(&w, response, why);
	demand(r == 0 || r == -EAGAIN || r == -EACCES || r == -ESTALE || r == -EPROTO);
	if (r)
		demand_sentence(why);
	for (size_t i = 0; i < ITEMS; i++)
		demand(items[i].position >= before[i] || (items[i].position == 0 && r != 0));
	if (r == -ESTALE)
		demand(items[0].position == 0 && items[1].position == 0 && told.calls >= ITEMS);
	if (r == -EACCES || r == -EAGAIN)
		demand(items[0].position == before[0] && items[1].position == before[1]);
}

static void try_login(const struct http_client_response *response)
{
	uint64_t lifetime_ms = 0;
	char *token = NULL, why[FILE_WHY] = "";
	int r = kind_etcd.login_read(response, &token, &lifetime_ms, why);

	demand(r == 0 || r == -EACCES || r == -EAGAIN || r == -ENOTSUP || r == -EPROTO);
	demand((r == 0) == (token != NULL));
	if (token)
		demand(*token && strlen(token) <= KIND_MAX_TOKEN && !strpbrk(token, " \r\n"));
	else if (r != -ENOTSUP)
		demand_sentence(why);
	free(token);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const long status[10] = {200, 200, 200, 302, 400, 503, 401, 403, 404, 412};
	static struct settings_server server = {.kind = SETTINGS_ETCD};
	struct http_client_response response = {.framed = true};
	struct kind_place place = {
		.server = &server, .base = "http://etcd", .max_bytes = MAX_BYTES};
	const uint8_t *body = size > 2 ? memchr(data, '\n', size) : NULL;
	char epoch[128];
	size_t len;

	if (!body || body < data + 2 || (size_t)(body - data) - 2 >= sizeof(epoch))
		return 0;
	memcpy(epoch, data + 2, (size_t)(body - data) - 2);
	epoch[body - data - 2] = '\0';
	len = size - (size_t)(++body - data);
	response.status = status[(data[1] & 0x0f) % 10];
	buffer_init(&response.body, len); /* its own memory: a sanitizer sees what lies behind */
	demand(buffer_append(&response.body, body, len) == 0);
	place.path = data[0] == 'p' ? "/p/" : "/k";
	place.forced = data[1] & 0x80;
	if (data[0] == 'k' || data[0] == 'p')
		try_pull(&place, &response, epoch);
	else if (data[0] == 'w')
		try_watch(&place, &response);
	else if (data[0] == 'l')
		try_login(&response);
	buffer_fini(&response.body);
	return 0;
}

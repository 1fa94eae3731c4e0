/*
 * Consul's KV store. A path without the '/' at its front is a key; one that ends in '/' is a
 * prefix, read with ?recurse.
 *
 * Surprising: an index orders changes, but may also go back without a restored backup, when the
 * traces of deleted keys are removed. So an answer is never rejected as too old, only noted. Every
 * answer about keys has an index, a 404 too: one without it is not Consul's.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pull/kinds/kv.h"

#define WAIT_S 300     /* a blocking query is held for so long, less up to */
#define WAIT_LESS_S 60 /* so that hosts do not ask in step */
#define WAIT_MARGIN_MS 5000
#define LONG_NUMBER 19 /* digits: may be over 2^63 - 1 */

static const char *consul_key(const char *path)
{
	return path + (path[0] == '/');
}

/* ---- requests ---- */

static void begin_query(struct buffer *url)
{
	buffer_append(url, url->data && strchr(url->data, '?') ? "&" : "?", 1);
}

static int begin_get(const struct kind_place *place, const char *path, struct kind_request *r,
	char why[FILE_WHY])
{
	const char *key = consul_key(path), *datacenter = place->server->datacenter;

	if (!*key && !kv_is_prefix(path)) {
		snprintf(why, FILE_WHY, "there is no key: the url needs a path");
		return -EINVAL;
	}
	buffer_printf(&r->url, "%s/v1/kv/", place->base);
	kind_escape(&r->url, key, strlen(key), "/");
	if (kv_is_prefix(path)) {
		begin_query(&r->url);
		buffer_append_string(&r->url, "recurse");
	}
	if (datacenter) {
		begin_query(&r->url);
		buffer_append_string(&r->url, "dc=");
		kind_escape(&r->url, datacenter, strlen(datacenter), "");
	}
	return r->url.error;
}

static int consul_build(const struct kind_place *place, struct kind_request *r, char why[FILE_WHY])
{
	return begin_get(place, place->path, r, why);
}

/* ---- answers ---- */

/* Finds the next number of LONG_NUMBER digits or more outside of strings; len: there is none. */
static size_t long_number(const char *text, size_t len, size_t from, size_t *ret_digits)
{
	size_t digits = 0;
	bool string = false;

	for (size_t i = from; i <= len; i++) {
		if (!string && i < len && text[i] >= '0' && text[i] <= '9') {
			digits++;
			continue;
		}
		if (digits >= LONG_NUMBER) {
			*ret_digits = digits;
			return i - digits;
		}
		digits = 0;
		if (i < len && string && text[i] == '\\')
			i++;
		else if (i < len && text[i] == '"')
			string = !string;
	}
	return len;
}

/* Writes 0 for long numbers: the flags of a key are any 64 bits (those of semaphores have the
 * highest set), which the JSON reader rejects, and nothing here reads. */
static int plain_numbers(const struct buffer *body, struct buffer *out)
{
	size_t digits = 0, at = long_number(body->data, body->len, 0, &digits);

	if (at == body->len)
		return 0;
	if (buffer_append(out, body->data, body->len))
		return -ENOMEM;
	for (; at < out->len; at = long_number(out->data, out->len, at + digits, &digits)) {
		out->data[at] = '0';
		memset(out->data + at + 1, ' ', digits - 1);
	}
	return 0;
}

static int parse_key_list(
	const struct buffer *body, struct document **ret_document, struct document_error *ret_error)
{
	struct document *d = document_new();
	struct buffer plain;
	const char *text;
	int r = -ENOMEM;

	*ret_error = (struct document_error){.message = "out of memory"};
	buffer_init(&plain, body->len);
	if (d && plain_numbers(body, &plain) == 0) {
		text = plain.data ? plain.data : body->data ? body->data : "";
		r = json_parse(text, body->len, 0, d, ret_error);
	}
	buffer_fini(&plain);
	if (r == 0 && document_root(d)->type != NODE_LIST) {
		snprintf(ret_error->message, sizeof(ret_error->message), "it is not a list");
		r = -EINVAL;
	}
	if (r)
		document_free(d);
	else
		*ret_document = d;
	return r;
}

struct entry {
	const char *key, *value;
	size_t key_len, value_len;
	uint64_t index, created;
};

static bool read_consul_entry(const struct node *n, struct entry *ret)
{
	return n->type == NODE_MAP && kv_text(n, "Key", &ret->key, &ret->key_len) && ret->key_len &&
	       kv_text(n, "Value", &ret->value, &ret->value_len) &&
	       kv_number(n, "CreateIndex", &ret->created) &&
	       kv_number(n, "ModifyIndex", &ret->index) && ret->index;
}

static int add_entries(struct kv *kv, const struct node *list, struct kind_answer *ret)
{
	struct entry e;
	int r = 0;

	for (const struct node *n = list->first; r == 0 && n; n = n->next) {
		if (!read_consul_entry(n, &e)) {
			kind_fail(ret, KIND_CAUSE_ANSWER, "a key of the answer cannot be read");
			return -EPROTO;
		}
		r = kv_add(kv, e.key, e.key_len, e.value, e.value_len, e.index, ret);
	}
	return r;
}

enum { INDEX, COUNT, FINGERPRINT, EPOCH_NUMBERS };

/* Fills in epoch and note, and compares them with the held part. */
static enum kind_verdict set_consul_version(const struct kv *kv, const struct kind_place *place,
	uint64_t index, struct kind_answer *ret)
{
	uint64_t held[EPOCH_NUMBERS];
	bool known = place->held && kv_epoch(place->held->epoch, held, EPOCH_NUMBERS);

	snprintf(ret->epoch, sizeof(ret->epoch), "%" PRIu64 " %" PRIu64 " %" PRIu64, index,
		kv->count, kv->fingerprint);
	if (known && kv_same(kv, held[COUNT], held[FINGERPRINT]))
		return KIND_SAME;
	if (known && index && index < held[INDEX])
		snprintf(ret->note, sizeof(ret->note),
			"the index went back: the server was restored or replaced, or removed the "
			"traces of deleted keys; %" PRIu64 " -> %" PRIu64,
			held[INDEX], index);
	return KIND_NEW;
}

static enum kind_verdict read_keys(const struct kind_place *place,
	const struct http_client_response *response, struct kind_answer *ret)
{
	enum kind_verdict verdict = KIND_FAILED;
	struct document *d = NULL;
	struct document_error e;
	uint64_t index = 0;
	struct kv kv = {0};

	ret->cause = KIND_CAUSE_ANSWER;
	if (parse_key_list(&response->body, &d, &e)) {
		kv_unreadable("Consul", &e, ret->why);
	} else if (kv_init(&kv, place, consul_key(place->path), &ret->body)) {
		snprintf(ret->why, FILE_WHY, "out of memory");
	} else if (add_entries(&kv, document_root(d), ret) == 0) {
		verdict = kv_end(&kv, ret);
		kv_digits(response->consul_index, &index);
		if (verdict == KIND_NEW)
			verdict = set_consul_version(&kv, place, index, ret);
	}
	kv_fini(&kv);
	document_free(d);
	return verdict;
}

/* True, with a sentence, for the answer of something else. */
static bool is_no_store(const struct http_client_response *response, char why[FILE_WHY])
{
	long status = response->status;

	if (status != 405 && status != 410 && status != 501 &&
		(status != 404 || response->consul_index[0]))
		return false;
	snprintf(why, FILE_WHY,
		"the server answered %ld, and not as the KV store of Consul does: check the urls",
		status);
	return true;
}

static enum kind_verdict consul_read(const struct kind_place *place,
	const struct http_client_response *response, struct kind_answer *ret)
{
	char words[KV_WORDS];

	/* else the keys that may not be read would seem to be gone */
	if (strcmp(response->filtered, "true") == 0)
		return kind_fail(ret, KIND_CAUSE_FORBIDDEN,
			"the token may not read all keys: Consul left some of them out");
	if (response->status == 200)
		return read_keys(place, response, ret);
	ret->cause = KIND_CAUSE_ANSWER;
	if (is_no_store(response, ret->why)) /* never: there is no such key */
		return KIND_FAILED;
	if (response->status == 404)
		return kv_absent(place, ret);
	if (response->status < 400 || strcmp(response->content_type, "text/html") == 0)
		return KIND_USUAL;
	kv_words(response->body.data ? response->body.data : "", response->body.len, words);
	return kv_refused(response->status, words, ret);
}

/* ---- watches: blocking queries ---- */

static int consul_watch_build(struct kind_watch *w, struct kind_request *r, char why[FILE_WHY])
{
	uint64_t wait_s = WAIT_S - w->place->random % (WAIT_LESS_S + 1);
	int e;

	assert(w->count == 1);
	e = begin_get(w->place, w->items[0].path, r, why);
	if (e || w->items[0].position == 0)
		return e;
	begin_query(&r->url);
	/* the server adds up to a sixteenth of it */
	r->hold_ms = wait_s * 1000 + wait_s * 1000 / 16 + WAIT_MARGIN_MS;
	return buffer_printf(
		&r->url, "index=%" PRIu64 "&wait=%" PRIu64 "s", w->items[0].position, wait_s);
}

static void report_key(struct kind_watch *w, const char *key, size_t len, const char *version)
{
	w->changed(w->arg, 0, key, len, version);
}

/* Reports each key that changed after `since` (0 below a prefix: none, they are only counted), and
 * that some are gone, without names, when fewer of the old ones are left. Returns how many reports.
 */
static size_t report_keys(struct kind_watch *w, const struct node *list, uint64_t since)
{
	bool counts_only = since == 0 && kv_is_prefix(w->items[0].path);
	uint64_t all = 0, old = 0;
	char version[21];
	size_t reported = 0;
	struct entry e;

	for (const struct node *n = list->first; n; n = n->next) {
		if (!read_consul_entry(n, &e))
			continue;
		all++;
		old += e.created <= since;
		if (counts_only || e.index <= since)
			continue;
		snprintf(version, sizeof(version), "%" PRIu64, e.index);
		report_key(w, e.key, e.key_len, version);
		reported++;
	}
	if (since && old < w->items[0].count) {
		report_key(w, NULL, 0, NULL);
		reported++;
	}
	w->items[0].count = all;
	return reported;
}

/* The index moved on from `since` (0: unknown): reports the changed keys; an answer that cannot be
 * read may mean any change, and the pull finds out. */
static void read_moved(
	struct kind_watch *w, const struct http_client_response *response, uint64_t since)
{
	const char *path = w->items[0].path;
	struct document_error e;
	struct document *d;
	size_t reported = 0;

	if (w->answered && response->status == 200 && response->body.len <= KIND_MAX_NEWS)
		w->answered(w->arg, 0, response); /* it differs from a pull's in having waited */
	if (response->status == 404 && !kv_is_prefix(path)) {
		report_key(w, consul_key(path), strlen(consul_key(path)), NULL);
		return;
	}
	if (response->status == 404 || response->body.len > KIND_MAX_NEWS)
		w->items[0].count = 0;
	if (response->status == 200 && response->body.len <= KIND_MAX_NEWS &&
		parse_key_list(&response->body, &d, &e) == 0) {
		reported = report_keys(w, document_root(d), since);
		document_free(d);
	}
	if (reported == 0)
		report_key(w, NULL, 0, NULL);
}

static int consul_watch_read(
	struct kind_watch *w, const struct http_client_response *response, char why[FILE_WHY])
{
	uint64_t *position = &w->items[0].position, since = *position, index;
	char words[KV_WORDS], quoted[KV_QUOTED];

	if (is_no_store(response, why))
		return -EPROTO;
	if (response->status != 200 && response->status != 404) {
		kv_words(response->body.data ? response->body.data : "", response->body.len, words);
		snprintf(why, FILE_WHY, "the server refuses the watch (%ld)%s", response->status,
			kv_quote(words, quoted));
		return kv_errno(response->status, words);
	}
	if (!kv_digits(response->consul_index, &index)) {
		snprintf(why, FILE_WHY,
			"the answer has no X-Consul-Index: without it nothing can be waited for");
		return -EPROTO;
	}
	if (index < 1) /* 0 would not wait */
		index = 1;
	*position = index < since ? 0 : index;
	if (index < since)
		report_key(w, NULL, 0, NULL);
	else if (index > since)
		read_moved(w, response, since);
	return 0;
}

const struct kind kind_consul = {
	.name = "consul",
	.wraps = true,
	.build = consul_build,
	.read = consul_read,
	.watch_build = consul_watch_build,
	.watch_read = consul_watch_read,
};

/*
 * etcd, by the JSON gateway of its v3 API. A path is a key, exactly as it is configured; one that
 * ends in '/' is a prefix, read by one request at one revision.
 *
 * Surprising: numbers are strings and members that are 0 are left out, so a missing key is an
 * answer without members. The revision orders all that a cluster ever held, but one restored from a
 * backup goes on from an older revision, often under its old name, and then only a lower raft term
 * gives it away.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "text/json_writer.h"
#include "pull/kinds/etcd_request.h"
#include "pull/kinds/kv.h"

#define RANGE "/v3/kv/range"
#define WATCH "/v3/watch"
#define LOGIN "/v3/auth/authenticate"

/* ---- requests ---- */

/* Appends `"key":...`, and of a prefix `"range_end":...`: the first name behind all that begin so,
 * the prefix with the byte behind '/' at its end. */
static void append_key(struct buffer *out, const char *path)
{
	etcd_request_bytes(out, "key", path, strlen(path));
	if (kv_is_prefix(path))
		etcd_request_end_of(out, "range_end", path);
}

static int check_path(const char *path, char why[FILE_WHY])
{
	if (*path)
		return 0;
	snprintf(why, FILE_WHY, "there is no key: the url needs a path");
	return -EINVAL;
}

static int etcd_build(const struct kind_place *place, struct kind_request *r, char why[FILE_WHY])
{
	int e = check_path(place->path, why);

	if (e == 0)
		e = etcd_request_begin(place, RANGE, r);
	if (e)
		return e;
	json_writer_begin_object(&r->body, NULL);
	append_key(&r->body, place->path);
	json_writer_number(&r->body, "limit", KV_MAX_KEYS);
	return json_writer_end_object(&r->body);
}

/* ---- refusals ---- */

/* The status of a refusal: etcd answers 400 to a token that is missing or too old. */
static long refusal_status(long status, const char *words)
{
	static const char *const of_token[] = {
		"user name is empty", "invalid auth token", "auth store is old"};

	for (size_t i = 0; i < sizeof(of_token) / sizeof(of_token[0]); i++)
		if (strstr(words, of_token[i]))
			return 401;
	return status;
}

/* The gateway's words: {"error": TEXT, "message": TEXT, "code": N}, or that within "error" (of a
 * stream). False: it is something else. */
static bool refusal_words(const struct http_client_response *response, char words[KV_WORDS])
{
	const struct node *root, *error;
	struct document_error e;
	struct document *d;
	const char *text;
	size_t len;
	bool found;

	if (kind_parse_json(&response->body, &d, &e))
		return false;
	root = document_root(d);
	error = node_find(root, "error");
	if (error && error->type == NODE_MAP)
		root = error;
	found = (kv_text(root, "message", &text, &len) && len > 0) ||
		(kv_text(root, "error", &text, &len) && len > 0);
	if (found)
		kv_words(text, len, words);
	document_free(d);
	return found;
}

static bool is_no_gateway(long status, char why[FILE_WHY])
{
	if (status != 404 && status != 405 && status != 410 && status != 501)
		return false;
	snprintf(why, FILE_WHY,
		"the server answered %ld: there is no v3 JSON gateway of etcd (3.4 or newer) at "
		"this address: check the urls",
		status);
	return true;
}

static enum kind_verdict read_refusal(
	const struct http_client_response *response, struct kind_answer *ret)
{
	char words[KV_WORDS] = "";
	bool spoken = refusal_words(response, words);
	long status = refusal_status(response->status, words);

	ret->cause = KIND_CAUSE_ANSWER;
	if (is_no_gateway(status, ret->why)) /* never: there is no such key */
		return KIND_FAILED;
	if (!spoken && status != 401)
		return KIND_USUAL;
	kv_refused(response->status, words, ret);
	if (status != 401)
		return KIND_FAILED;
	ret->cause = KIND_CAUSE_FORBIDDEN;
	return KIND_UNAUTHORIZED;
}

/* ---- pulls ---- */

enum { CLUSTER, TERM, REVISION, COUNT, FINGERPRINT, EPOCH_NUMBERS };

struct range { /* an answer */
	uint64_t numbers[EPOCH_NUMBERS];
	const struct node *keys; /* list, or NULL */
	bool more;
};

/* Reads the header that every answer has. */
static bool read_etcd_header(const struct node *map, uint64_t numbers[EPOCH_NUMBERS])
{
	const struct node *header = node_member(map, "header", NODE_MAP);

	return header && kv_number(header, "cluster_id", &numbers[CLUSTER]) && numbers[CLUSTER] &&
	       kv_number(header, "raft_term", &numbers[TERM]) &&
	       kv_number(header, "revision", &numbers[REVISION]) && numbers[REVISION] < INT64_MAX;
}

static bool read_range(const struct node *root, struct range *ret)
{
	ret->keys = node_find(root, "kvs");
	if (ret->keys && ret->keys->type == NODE_NULL)
		ret->keys = NULL;
	ret->more = node_is_true(root, "more");
	return read_etcd_header(root, ret->numbers) && ret->numbers[REVISION] > 0 &&
	       kv_number(root, "count", &ret->numbers[COUNT]) &&
	       (!ret->keys || ret->keys->type == NODE_LIST);
}

/* True, with a sentence, when the answer is older than the held part. If it is accepted all the
 * same, the note says why. */
static bool is_older(const struct kind_place *place, const uint64_t now[EPOCH_NUMBERS],
	char note[256], char why[FILE_WHY])
{
	uint64_t held[EPOCH_NUMBERS];

	if (!place->held || !kv_epoch(place->held->epoch, held, EPOCH_NUMBERS))
		return false;
	if (now[CLUSTER] != held[CLUSTER] || now[TERM] < held[TERM]) {
		snprintf(note, 256,
			"the cluster's identity changed: it was restored or replaced; revision "
			"%" PRIu64 " -> %" PRIu64,
			held[REVISION], now[REVISION]);
		return false;
	}
	if (now[REVISION] >= held[REVISION])
		return false;
	if (place->forced) {
		snprintf(note, 256,
			"an older revision was taken, as asked for: %" PRIu64 " -> %" PRIu64,
			held[REVISION], now[REVISION]);
		return false;
	}
	snprintf(why, FILE_WHY,
		"the revision went back from %" PRIu64 " to %" PRIu64
		", of what says to be the same cluster: if it was restored from a backup, `pullet "
		"refresh CONFIG --force` takes what it has",
		held[REVISION], now[REVISION]);
	return true;
}

static int add_key(struct kv *kv, const struct node *pair, uint64_t revision, struct buffer *key,
	struct kind_answer *ret)
{
	const char *name, *value;
	size_t name_len, value_len;
	uint64_t changed;

	buffer_clear(key);
	if (pair->type != NODE_MAP || !kv_text(pair, "key", &name, &name_len) ||
		!kv_text(pair, "value", &value, &value_len) ||
		!kv_number(pair, "mod_revision", &changed) || changed == 0 || changed > revision ||
		kv_decode(key, name, name_len)) {
		snprintf(ret->why, FILE_WHY,
			"a key of the answer cannot be read, or its name has more than %d bytes",
			KV_MAX_NAME);
		return -EPROTO;
	}
	return kv_add(kv, key->data ? key->data : "", key->len, value, value_len, changed, ret);
}

static int add_range_keys(struct kv *kv, const struct range *range, struct kind_answer *ret)
{
	struct buffer key;
	int r = 0;

	buffer_init(&key, KV_MAX_NAME);
	for (const struct node *n = range->keys ? range->keys->first : NULL; r == 0 && n;
		n = n->next)
		r = add_key(kv, n, range->numbers[REVISION], &key, ret);
	buffer_fini(&key);
	if (r == 0 && kv->count != range->numbers[COUNT]) {
		snprintf(ret->why, FILE_WHY,
			"the answer has %" PRIu64 " keys, and says that it has %" PRIu64, kv->count,
			range->numbers[COUNT]);
		r = -EPROTO;
	}
	return r;
}

static enum kind_verdict make_document(
	const struct kind_place *place, struct range *range, struct kind_answer *ret)
{
	enum kind_verdict verdict = KIND_FAILED;
	uint64_t *now = range->numbers, held[EPOCH_NUMBERS];
	struct kv kv;

	if (kv_init(&kv, place, place->path, &ret->body)) {
		snprintf(ret->why, FILE_WHY, "out of memory");
		goto out;
	}
	if (add_range_keys(&kv, range, ret))
		goto out;
	now[FINGERPRINT] = kv.fingerprint;
	verdict = kv_end(&kv, ret);
	if (verdict != KIND_NEW)
		goto out;
	snprintf(ret->epoch, sizeof(ret->epoch),
		"%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64, now[CLUSTER], now[TERM],
		now[REVISION], now[COUNT], now[FINGERPRINT]);
	if (!ret->note[0] && place->held && kv_epoch(place->held->epoch, held, EPOCH_NUMBERS) &&
		kv_same(&kv, held[COUNT], held[FINGERPRINT]))
		verdict = KIND_SAME;
out:
	kv_fini(&kv);
	return verdict;
}

static enum kind_verdict etcd_read(const struct kind_place *place,
	const struct http_client_response *response, struct kind_answer *ret)
{
	enum kind_verdict verdict = KIND_FAILED;
	struct document_error e;
	struct document *d = NULL;
	struct range range;

	if (response->status != 200)
		return read_refusal(response, ret);
	ret->cause = KIND_CAUSE_ANSWER;
	if (kind_parse_json(&response->body, &d, &e)) {
		kv_unreadable("etcd", &e, ret->why);
	} else if (!read_range(document_root(d), &range)) {
		snprintf(ret->why, FILE_WHY,
			"the answer is not one of etcd's: check the urls of the server");
	} else if (is_older(place, range.numbers, ret->note, ret->why)) {
		ret->cause = KIND_CAUSE_OLDER;
	} else if (range.more) {
		snprintf(ret->why, FILE_WHY,
			"there are %" PRIu64
			" keys below the prefix, and %d are the most that are taken: split it",
			range.numbers[COUNT], KV_MAX_KEYS);
	} else {
		verdict = make_document(place, &range, ret);
	}
	document_free(d);
	return verdict;
}

/* ---- login ---- */

static int etcd_login_build(
	const struct kind_place *place, struct kind_request *r, char why[FILE_WHY])
{
	int e = etcd_request_begin(place, LOGIN, r);

	(void)why;
	/* in one piece: no copy of the password stays in freed memory */
	buffer_reserve(&r->body, 6 * (strlen(place->user) + strlen(place->password)) + 64);
	json_writer_begin_object(&r->body, NULL);
	json_writer_text(&r->body, "name", place->user);
	json_writer_text(&r->body, "password", place->password);
	json_writer_end_object(&r->body);
	return e ? e : r->body.error;
}

static int login_refused(const struct http_client_response *response, char why[FILE_WHY])
{
	char quoted[KV_QUOTED], words[KV_WORDS] = "";

	if (is_no_gateway(response->status, why))
		return -EPROTO;
	refusal_words(response, words);
	if (strstr(words, "authentication is not enabled"))
		return -ENOTSUP;
	snprintf(why, FILE_WHY, "the login was refused (%ld)%s", response->status,
		kv_quote(words, quoted));
	return strstr(words, "authentication failed") ? -EACCES : kv_errno(response->status, words);
}

/* A token goes into a header line as it is. */
static bool is_token(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] <= 0x20 || text[i] >= 0x7f)
			return false;
	return len > 0 && len <= KIND_MAX_TOKEN;
}

static int etcd_login_read(const struct http_client_response *response, char **ret_token,
	uint64_t *ret_lifetime_ms, char why[FILE_WHY])
{
	struct document_error e;
	struct document *d;
	const char *text;
	char *token = NULL;
	size_t len;
	int r = -EPROTO;

	if (response->status != 200)
		return login_refused(response, why);
	snprintf(why, FILE_WHY, "the login brought no token");
	if (kind_parse_json(&response->body, &d, &e))
		return r;
	if (kv_text(document_root(d), "token", &text, &len) && is_token(text, len)) {
		token = strdup(text);
		r = token ? 0 : -EAGAIN;
	}
	if (r == 0) {
		*ret_token = token;
		*ret_lifetime_ms = 0; /* it is renewed by use, for a time that is unknown */
		why[0] = '\0';
	}
	document_free(d);
	return r;
}

/* ---- watches ---- */

/* One request to create a watch for each item, all in one body. Large answers come in fragments:
 * else the changes of a long time would come in one line, of any length. The watcher puts one item
 * in a request: when the gateway sends the first answer it discards the unread rest of the request
 * (as every HTTP/1.1 server written in Go), and its watches are never made. */
static int etcd_watch_build(struct kind_watch *w, struct kind_request *r, char why[FILE_WHY])
{
	int e = etcd_request_begin(w->place, WATCH, r);

	for (size_t i = 0; e == 0 && i < w->count; i++) {
		const struct kind_watched *item = &w->items[i];

		e = check_path(item->path, why);
		if (e)
			break;
		json_writer_begin_object(&r->body, NULL);
		json_writer_begin_object(&r->body, "create_request");
		append_key(&r->body, item->path);
		if (item->position)
			json_writer_digits(&r->body, "start_revision", item->position);
		json_writer_digits(&r->body, "watch_id", i + 1);
		json_writer_boolean(&r->body, "progress_notify", true);
		json_writer_boolean(&r->body, "fragment", true);
		json_writer_end_object(&r->body);
		json_writer_end_object(&r->body);
		e = buffer_append(&r->body, "\n", 1);
	}
	return e;
}

/* The stream is unreliable: all watches start again from now, which calls changed() for all. */
static int lose_positions(struct kind_watch *w, char why[FILE_WHY], const char *sentence)
{
	for (size_t i = 0; i < w->count; i++)
		w->items[i].position = 0;
	snprintf(why, FILE_WHY, "%s", sentence);
	return -EPROTO;
}

static int restart_watch(struct kind_watch *w, char why[FILE_WHY], const char *sentence)
{
	lose_positions(w, why, sentence);
	for (size_t i = 0; i < w->count; i++)
		w->changed(w->arg, i, NULL, 0, NULL);
	return -ESTALE;
}

/* The server ended a watch, with these words. */
static int refuse_words(const char *text, size_t len, long status, char why[FILE_WHY])
{
	char quoted[KV_QUOTED], words[KV_WORDS];

	kv_words(text, len, words);
	if (strcasestr(words, "permission denied")) /* also of an invalid token */
		status = 403;
	if (strstr(words, "no leader"))
		status = 503;
	snprintf(why, FILE_WHY, "the server ended the watch%s", kv_quote(words, quoted));
	return kv_errno(refusal_status(status, words), words);
}

/* The stream broke off: {"error": {"grpc_code": N, "http_code": N, "message": TEXT}}; newer
 * gateways have only a "code", gRPC's. */
static int read_stream_error(struct kind_watch *w, const struct node *error, char why[FILE_WHY])
{
	static const struct {
		uint64_t code;
		long status;
	} table[] = {{1, 503}, {4, 504}, {7, 403}, {8, 429}, {14, 503}, {16, 401}};
	uint64_t status = 0, code = 0;
	const char *text;
	size_t len;

	if (error->type != NODE_MAP || !kv_number(error, "http_code", &status) ||
		!kv_number(error, "code", &code) || !kv_text(error, "message", &text, &len))
		return lose_positions(w, why, "an error came by the watch that cannot be read");
	for (size_t i = 0; status == 0 && i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].code == code)
			status = (uint64_t)table[i].status;
	return refuse_words(text, len, status >= 400 && status <= 599 ? (long)status : 500, why);
}

/* The server ended a watch, or could not make it. */
static int read_cancel(struct kind_watch *w, const struct node *result, char why[FILE_WHY])
{
	uint64_t compacted;
	const char *reason;
	size_t len;

	if (!kv_number(result, "compact_revision", &compacted) ||
		!kv_text(result, "cancel_reason", &reason, &len))
		return lose_positions(w, why, "the end of a watch came that cannot be read");
	if (compacted)
		return restart_watch(
			w, why, "the revisions from which the watch would go on were compacted");
	return refuse_words(reason, len, 400, why);
}

/* The last event of a single key has what a request would bring: the same answer, at the revision
 * of the change. */
static void pass_on_answer(struct kind_watch *w, size_t item, const uint64_t numbers[EPOCH_NUMBERS],
	const struct node *events)
{
	const struct node *event = events->type == NODE_LIST && events->first ? events->last : NULL,
			  *pair = event ? node_member(event, "kv", NODE_MAP) : NULL;
	struct http_client_response answer = {
		.result = HTTP_CLIENT_OK, .status = 200, .framed = true};
	struct buffer *b = &answer.body;
	const char *key, *value, *type;
	size_t key_len, value_len, type_len;
	uint64_t revision;

	if (!w->answered || kv_is_prefix(w->items[item].path) || !pair ||
		!kv_text(event, "type", &type, &type_len) || strcmp(type, "DELETE") == 0 ||
		!kv_text(pair, "key", &key, &key_len) ||
		!kv_text(pair, "value", &value, &value_len) ||
		!kv_number(pair, "mod_revision", &revision))
		return;
	buffer_init(b, 2 * KIND_MAX_NEWS);
	json_writer_begin_object(b, NULL);
	json_writer_begin_object(b, "header");
	json_writer_digits(b, "cluster_id", numbers[CLUSTER]);
	json_writer_digits(b, "raft_term", numbers[TERM]);
	json_writer_digits(b, "revision", revision);
	json_writer_end_object(b);
	json_writer_begin_array(b, "kvs");
	json_writer_begin_object(b, NULL);
	json_writer_bytes(b, "key", key, key_len);
	json_writer_bytes(b, "value", value, value_len);
	json_writer_digits(b, "mod_revision", revision);
	json_writer_end_object(b);
	json_writer_end_array(b);
	json_writer_digits(b, "count", 1);
	if (json_writer_end_object(b) == 0)
		w->answered(w->arg, item, &answer);
	buffer_fini(b);
}

/* Reports one event. Returns the revision of the change, 0: it cannot be read. */
static uint64_t read_event(
	struct kind_watch *w, size_t item, const struct node *event, struct buffer *key)
{
	const char *path = w->items[item].path, *name, *type;
	const struct node *pair = node_member(event, "kv", NODE_MAP);
	size_t path_len = strlen(path), name_len, type_len;
	uint64_t revision;
	char version[21];
	bool gone;

	buffer_clear(key);
	if (!pair || !kv_text(event, "type", &type, &type_len) ||
		!kv_text(pair, "key", &name, &name_len) ||
		!kv_number(pair, "mod_revision", &revision) || revision >= INT64_MAX ||
		kv_decode(key, name, name_len) || key->len < path_len ||
		(key->len > path_len && !kv_is_prefix(path)) ||
		memcmp(key->data, path, path_len) != 0)
		return 0;
	gone = strcmp(type, "DELETE") == 0;
	snprintf(version, sizeof(version), "%" PRIu64, revision);
	if (revision)
		w->changed(w->arg, item, key->data, key->len, gone ? NULL : version);
	return revision;
}

/* The position follows the events' own revisions: the header's is the store's, which is ahead of
 * events that are still to come when a watch catches up. */
static int read_events(struct kind_watch *w, size_t item, const struct node *result,
	const struct node *events, char why[FILE_WHY])
{
	uint64_t revision = 0, last = 0;
	struct buffer key;
	bool good = events->type == NODE_LIST;

	buffer_init(&key, KV_MAX_NAME);
	for (const struct node *n = events->first; good && n; n = n->next) {
		revision = read_event(w, item, n, &key);
		good = revision > 0;
		last = revision > last ? revision : last;
	}
	buffer_fini(&key);
	if (!good)
		return lose_positions(w, why, "an event came by the watch that cannot be read");
	if (last &&
		!node_is_true(result, "fragment")) /* else more of the same revision may follow */
		last++;
	if (last > w->items[item].position)
		w->items[item].position = last;
	return 0;
}

/* A watch of another cluster, or of one that was restored, would miss changes: until the revision
 * of its position, or for ever. */
static int read_created(struct kind_watch *w, size_t item, const uint64_t numbers[EPOCH_NUMBERS],
	char why[FILE_WHY])
{
	struct kind_watched *i = &w->items[item];
	bool known = i->origin[0] != 0, first = i->position == 0,
	     other = i->origin[0] != numbers[CLUSTER] || i->origin[1] > numbers[TERM];

	if (!first && ((known && other) || i->position > numbers[REVISION] + 1))
		return restart_watch(w, why,
			"the cluster is not the one of before: it was restored or replaced");
	i->origin[0] = numbers[CLUSTER];
	i->origin[1] = numbers[TERM];
	if (first) {
		i->position = numbers[REVISION] + 1;
		w->changed(w->arg, item, NULL, 0, NULL); /* before the watch was up */
	}
	return 0;
}

static int read_result(struct kind_watch *w, const struct node *result, char why[FILE_WHY])
{
	const struct node *events = node_find(result, "events");
	uint64_t numbers[EPOCH_NUMBERS], id;
	struct kind_watched *item;

	if (node_is_true(result, "canceled"))
		return read_cancel(w, result, why);
	if (!read_etcd_header(result, numbers) || numbers[REVISION] == 0 ||
		!kv_number(result, "watch_id", &id) || id < 1 || id > w->count)
		return lose_positions(w, why, "what came by the watch cannot be read");
	item = &w->items[id - 1];
	if (node_is_true(result, "created"))
		return read_created(w, id - 1, numbers, why);
	if (events && events->type != NODE_NULL) {
		pass_on_answer(w, id - 1, numbers, events);
		return read_events(w, id - 1, result, events, why);
	}
	if (item->position <= numbers[REVISION]) /* progress: all events up to here were sent */
		item->position = numbers[REVISION] + 1;
	return 0;
}

static int read_watch_line(struct kind_watch *w, const struct buffer *line, char why[FILE_WHY])
{
	const struct node *error, *result;
	struct document_error e;
	struct document *d;
	int r = kind_parse_json(line, &d, &e);

	if (r == -ENOMEM) {
		snprintf(why, FILE_WHY, "out of memory");
		return -EAGAIN;
	}
	if (r)
		return lose_positions(w, why, "what came by the watch is not JSON, or too much");
	error = node_find(document_root(d), "error");
	result = node_member(document_root(d), "result", NODE_MAP);
	if (error)
		r = read_stream_error(w, error, why);
	else if (result)
		r = read_result(w, result, why);
	else
		r = lose_positions(w, why, "what came by the watch is not an answer of etcd's");
	document_free(d);
	return r;
}

static int etcd_watch_read(
	struct kind_watch *w, const struct http_client_response *response, char why[FILE_WHY])
{
	char quoted[KV_QUOTED], words[KV_WORDS] = "";
	const struct buffer *line = &response->body;
	int r;

	if (response->status == 200 && line->len > KIND_MAX_NEWS)
		return restart_watch(w, why, "more came by the watch than is read");
	if (response->status == 200)
		return line->len ? read_watch_line(w, line, why) : 0;
	if (is_no_gateway(response->status, why))
		return -EPROTO;
	refusal_words(response, words);
	r = refuse_words(words, strlen(words), response->status, why);
	snprintf(why, FILE_WHY, "the server refuses the watch (%ld)%s", response->status,
		kv_quote(words, quoted));
	return r;
}

const struct kind kind_etcd = {
	.name = "etcd",
	.wraps = true,
	.stream = true,
	.build = etcd_build,
	.read = etcd_read,
	.login_build = etcd_login_build,
	.login_read = etcd_login_read,
	.watch_build = etcd_watch_build,
	.watch_read = etcd_watch_read,
};

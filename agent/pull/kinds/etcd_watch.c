/*
 * A watch is a stream of lines, each an answer of the gateway. Surprising: the header's revision is
 * the store's, and may be ahead of events that are still to come.
 */
#include "pull/kinds/etcd_watch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "text/json_writer.h"
#include "pull/kinds/etcd_answer.h"
#include "pull/kinds/etcd_request.h"
#include "pull/kinds/kv.h"

#define WATCH "/v3/watch"

/* One request to create a watch for each item, all in one body. Large answers come in fragments:
 * else the changes of a long time would come in one line, of any length. The watcher puts one item
 * in a request: when the gateway sends the first answer it discards the unread rest of the request
 * (as every HTTP/1.1 server written in Go), and its watches are never made. */
int etcd_watch_build(struct kind_watch *w, struct kind_request *r, char why[FILE_WHY])
{
	int e = etcd_request_begin(w->place, WATCH, r);

	for (size_t i = 0; e == 0 && i < w->count; i++) {
		const struct kind_watched *item = &w->items[i];

		e = etcd_request_check_path(item->path, why);
		if (e)
			break;
		json_writer_begin_object(&r->body, NULL);
		json_writer_begin_object(&r->body, "create_request");
		etcd_request_key(&r->body, item->path);
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
	return kv_errno(etcd_answer_status(status, words), words);
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
static void pass_on_answer(struct kind_watch *w, size_t item,
	const uint64_t numbers[ETCD_HEADER_NUMBERS], const struct node *events)
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
	json_writer_digits(b, "cluster_id", numbers[ETCD_CLUSTER]);
	json_writer_digits(b, "raft_term", numbers[ETCD_TERM]);
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
static int read_created(struct kind_watch *w, size_t item,
	const uint64_t numbers[ETCD_HEADER_NUMBERS], char why[FILE_WHY])
{
	struct kind_watched *i = &w->items[item];
	bool known = i->origin[0] != 0, first = i->position == 0,
	     other = i->origin[0] != numbers[ETCD_CLUSTER] || i->origin[1] > numbers[ETCD_TERM];

	if (!first && ((known && other) || i->position > numbers[ETCD_REVISION] + 1))
		return restart_watch(w, why,
			"the cluster is not the one of before: it was restored or replaced");
	i->origin[0] = numbers[ETCD_CLUSTER];
	i->origin[1] = numbers[ETCD_TERM];
	if (first) {
		i->position = numbers[ETCD_REVISION] + 1;
		w->changed(w->arg, item, NULL, 0, NULL); /* before the watch was up */
	}
	return 0;
}

static int read_result(struct kind_watch *w, const struct node *result, char why[FILE_WHY])
{
	const struct node *events = node_find(result, "events");
	uint64_t numbers[ETCD_HEADER_NUMBERS], id;
	struct kind_watched *item;

	if (node_is_true(result, "canceled"))
		return read_cancel(w, result, why);
	if (!etcd_answer_header(result, numbers) || numbers[ETCD_REVISION] == 0 ||
		!kv_number(result, "watch_id", &id) || id < 1 || id > w->count)
		return lose_positions(w, why, "what came by the watch cannot be read");
	item = &w->items[id - 1];
	if (node_is_true(result, "created"))
		return read_created(w, id - 1, numbers, why);
	if (events && events->type != NODE_NULL) {
		pass_on_answer(w, id - 1, numbers, events);
		return read_events(w, id - 1, result, events, why);
	}
	if (item->position <=
		numbers[ETCD_REVISION]) /* progress: all events up to here were sent */
		item->position = numbers[ETCD_REVISION] + 1;
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

int etcd_watch_read(
	struct kind_watch *w, const struct http_client_response *response, char why[FILE_WHY])
{
	char quoted[KV_QUOTED], words[KV_WORDS] = "";
	const struct buffer *line = &response->body;
	int r;

	if (response->status == 200 && line->len > KIND_MAX_NEWS)
		return restart_watch(w, why, "more came by the watch than is read");
	if (response->status == 200)
		return line->len ? read_watch_line(w, line, why) : 0;
	if (etcd_answer_is_no_gateway(response->status, why))
		return -EPROTO;
	etcd_answer_words(response, words);
	r = refuse_words(words, strlen(words), response->status, why);
	snprintf(why, FILE_WHY, "the server refuses the watch (%ld)%s", response->status,
		kv_quote(words, quoted));
	return r;
}

/*
 * etcd's gateway. Surprising: a stream (a watch, a lease's renewal) answers 200 whatever comes of
 * it; what went wrong is an "error" in a line of the body.
 */
#include "fleet/etcd_store.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pull/kinds/kv.h"
#include "pull/kinds/answer.h"
#include "text/json_writer.h"

/* ---- requests ---- */

const struct etcd_store_test etcd_store_absent = {"CREATE", "EQUAL", "create_revision"},
			     etcd_store_present = {"CREATE", "GREATER", "create_revision"},
			     etcd_store_unchanged = {"MOD", "EQUAL", "mod_revision"};

int etcd_store_compare(
	struct buffer *body, const char *key, const struct etcd_store_test *test, uint64_t revision)
{
	json_writer_begin_object(body, NULL);
	etcd_request_bytes(body, "key", key, strlen(key));
	json_writer_text(body, "target", test->target);
	json_writer_text(body, "result", test->result);
	json_writer_digits(body, test->field, revision);
	return json_writer_end_object(body);
}

int etcd_store_put(struct buffer *body, const char *key, const struct buffer *value, uint64_t lease)
{
	json_writer_begin_object(body, NULL);
	json_writer_begin_object(body, "request_put");
	etcd_request_bytes(body, "key", key, strlen(key));
	etcd_request_bytes(body, "value", value->data, value->len);
	if (lease)
		json_writer_digits(body, "lease", lease);
	json_writer_end_object(body);
	return json_writer_end_object(body);
}

/* ---- answers ---- */

uint64_t etcd_store_number(const struct node *map, const char *name)
{
	uint64_t n;

	return kv_number(map, name, &n) ? n : 0;
}

int etcd_store_decode(const struct node *map, const char *name, struct buffer *out)
{
	const char *text;
	size_t len;

	buffer_clear(out);
	return kv_text(map, name, &text, &len) ? kv_decode(out, text, len) : -EINVAL;
}

/* The -errno for an error text of etcd. */
static int meaning_of_words(const char *words)
{
	static const struct {
		const char *words;
		int error;
	} table[] = {
		{"requested lease not found", -ESTALE},
		{"required revision has been compacted", -ESTALE},
		{"invalid auth token", -EACCES},
		{"user name is empty", -EACCES},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (strstr(words, table[i].words))
			return table[i].error;
	return -EIO;
}

/* As for a pull; but a missing lease is no missing API. */
static int read_store_error(const struct kind_place *place,
	const struct http_client_response *response, enum kind_cause *ret_cause, char why[FILE_WHY])
{
	const char *body = response->body.data ? response->body.data : "";
	struct kind_answer none;
	enum kind_verdict verdict;
	int r = -EIO;

	kind_answer_init(&none, 0);
	verdict = answer_check(place, response, false, &none);
	kind_answer_fini(&none);
	*ret_cause = none.cause;
	memcpy(why, none.why, FILE_WHY);
	if (response->result == HTTP_CLIENT_TOO_LARGE)
		return -EMSGSIZE;
	if (response->result == HTTP_CLIENT_OK)
		r = verdict == KIND_UNAUTHORIZED ? -EACCES : meaning_of_words(body);
	if (r == -ESTALE)
		snprintf(why, FILE_WHY, "the lease or revision does not exist any more");
	return r;
}

/* {"error": {"message": TEXT, "http_code": N}} in a stream, or a text. */
static int stream_error(const struct node *error, enum kind_cause *ret_cause, char why[FILE_WHY])
{
	uint64_t status = etcd_store_number(error, "http_code");
	char words[KV_WORDS] = "";
	const char *text = "";
	size_t len = 0;

	if (error->type == NODE_MAP && kv_text(error, "message", &text, &len))
		kv_words(text, len, words);
	else if (error->type == NODE_STRING)
		kv_words(error->text, error->text_len, words);
	*ret_cause = status == 401 || status == 403 || strcasestr(words, "permission denied")
			     ? KIND_CAUSE_FORBIDDEN
		     : status == 503 ? KIND_CAUSE_UNREACHABLE
				     : KIND_CAUSE_ANSWER;
	snprintf(why, FILE_WHY, "the server says: %s", words[0] ? words : "an error");
	return meaning_of_words(words);
}

static int read_answer_root(
	struct etcd_store_answer *a, enum kind_cause *ret_cause, char why[FILE_WHY])
{
	const struct node *root = document_root(a->json), *error = node_find(root, "error"),
			  *result = node_member(root, "result", NODE_MAP), *header;

	if (error && error->type != NODE_NULL)
		return stream_error(error, ret_cause, why);
	a->root = result ? result : root;
	header = node_find(a->root, "header");
	a->cluster = etcd_store_number(header, "cluster_id");
	a->revision = etcd_store_number(header, "revision");
	if (a->cluster)
		return 0;
	snprintf(why, FILE_WHY, "the answer is not one of etcd's: check the urls of the server");
	return -EIO;
}

int etcd_store_read(const struct kind_place *place, const struct http_client_response *response,
	struct etcd_store_answer *ret, enum kind_cause *ret_cause, char why[FILE_WHY])
{
	struct etcd_store_answer a = {.json = NULL};
	struct document_error e;
	int r;

	*ret_cause = KIND_CAUSE_ANSWER;
	if (response->result != HTTP_CLIENT_OK || response->status != 200)
		return read_store_error(place, response, ret_cause, why);
	r = document_parse(DOCUMENT_JSON, response->body.data ? response->body.data : "",
		response->body.len, 0, &a.json, &e);
	if (r) {
		snprintf(why, FILE_WHY, "the answer is not one of etcd's: %s",
			r == -ENOMEM ? "out of memory" : "it is not JSON");
		return r == -ENOMEM ? r : -EIO;
	}
	r = read_answer_root(&a, ret_cause, why);
	if (r) {
		etcd_store_answer_fini(&a);
		return r;
	}
	*ret_cause = KIND_CAUSE_NONE;
	*ret = a;
	return 0;
}

void etcd_store_answer_fini(struct etcd_store_answer *a)
{
	document_free(a->json);
	*a = (struct etcd_store_answer){.json = NULL};
}

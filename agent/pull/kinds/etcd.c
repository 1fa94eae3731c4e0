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
#include "pull/kinds/etcd_answer.h"
#include "pull/kinds/etcd_request.h"
#include "pull/kinds/etcd_watch.h"
#include "pull/kinds/kv.h"

#define RANGE "/v3/kv/range"
#define LOGIN "/v3/auth/authenticate"

/* ---- requests ---- */

static int etcd_build(const struct kind_place *place, struct kind_request *r, char why[FILE_WHY])
{
	int e = etcd_request_check_path(place->path, why);

	if (e == 0)
		e = etcd_request_begin(place, RANGE, r);
	if (e)
		return e;
	json_writer_begin_object(&r->body, NULL);
	etcd_request_key(&r->body, place->path);
	json_writer_number(&r->body, "limit", KV_MAX_KEYS);
	return json_writer_end_object(&r->body);
}

/* ---- refusals ---- */

static enum kind_verdict read_refusal(
	const struct http_client_response *response, struct kind_answer *ret)
{
	char words[KV_WORDS] = "";
	bool spoken = etcd_answer_words(response, words);
	long status = etcd_answer_status(response->status, words);

	ret->cause = KIND_CAUSE_ANSWER;
	if (etcd_answer_is_no_gateway(status, ret->why)) /* never: there is no such key */
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

enum { COUNT = ETCD_HEADER_NUMBERS, FINGERPRINT, EPOCH_NUMBERS };

struct range { /* an answer */
	uint64_t numbers[EPOCH_NUMBERS];
	const struct node *keys; /* list, or NULL */
	bool more;
};

static bool read_range(const struct node *root, struct range *ret)
{
	ret->keys = node_find(root, "kvs");
	if (ret->keys && ret->keys->type == NODE_NULL)
		ret->keys = NULL;
	ret->more = node_is_true(root, "more");
	return etcd_answer_header(root, ret->numbers) && ret->numbers[ETCD_REVISION] > 0 &&
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
	if (now[ETCD_CLUSTER] != held[ETCD_CLUSTER] || now[ETCD_TERM] < held[ETCD_TERM]) {
		snprintf(note, 256,
			"the cluster's identity changed: it was restored or replaced; revision "
			"%" PRIu64 " -> %" PRIu64,
			held[ETCD_REVISION], now[ETCD_REVISION]);
		return false;
	}
	if (now[ETCD_REVISION] >= held[ETCD_REVISION])
		return false;
	if (place->forced) {
		snprintf(note, 256,
			"an older revision was taken, as asked for: %" PRIu64 " -> %" PRIu64,
			held[ETCD_REVISION], now[ETCD_REVISION]);
		return false;
	}
	snprintf(why, FILE_WHY,
		"the revision went back from %" PRIu64 " to %" PRIu64
		", of what says to be the same cluster: if it was restored from a backup, `pullet "
		"refresh CONFIG --force` takes what it has",
		held[ETCD_REVISION], now[ETCD_REVISION]);
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
		r = add_key(kv, n, range->numbers[ETCD_REVISION], &key, ret);
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
		"%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64, now[ETCD_CLUSTER],
		now[ETCD_TERM], now[ETCD_REVISION], now[COUNT], now[FINGERPRINT]);
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

	if (etcd_answer_is_no_gateway(response->status, why))
		return -EPROTO;
	etcd_answer_words(response, words);
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

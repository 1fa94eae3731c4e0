/*
 * Keys and values to a document. Surprising: the highest index and the number of keys do not
 * suffice to detect a change. In one history of a server they would: no key was written after the
 * highest index, and with as many keys none is missing. But a server that was restored from a
 * backup goes on from an older index, and may write another value at the very index that is held.
 * So a fingerprint of all keys and values is compared too. It need not withstand an enemy, who
 * could as well write any value there.
 */
#include "pull/kinds/kv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "crypto/base64.h"
#include "base/hash.h"

bool kv_is_prefix(const char *path)
{
	size_t len = strlen(path);

	return len > 0 && path[len - 1] == '/';
}

/* ---- members ---- */

bool kv_digits(const char *text, uint64_t *ret)
{
	uint64_t n = 0;

	if (!*text)
		return false;
	for (; *text; text++) {
		unsigned digit = (unsigned char)*text - (unsigned)'0';

		if (digit > 9 || n > (UINT64_MAX - digit) / 10)
			return false;
		n = 10 * n + digit;
	}
	*ret = n;
	return true;
}

bool kv_epoch(const char *text, uint64_t *ret_numbers, size_t n)
{
	char number[21];

	for (size_t i = 0; text && i < n; i++) {
		size_t len = strcspn(text, " ");

		if (len >= sizeof(number) || (text[len] == '\0') != (i + 1 == n))
			return false;
		memcpy(number, text, len);
		number[len] = '\0';
		if (!kv_digits(number, &ret_numbers[i]))
			return false;
		text += len + (i + 1 < n);
	}
	return text;
}

bool kv_number(const struct node *map, const char *name, uint64_t *ret)
{
	const struct node *n = node_find(map, name);
	bool fits = !n || n->type == NODE_NULL || (n->type == NODE_INT && n->integer >= 0);

	if (n && n->type == NODE_STRING) /* no NUL within: the JSON reader takes none */
		return kv_digits(n->text, ret);
	if (fits)
		*ret = n && n->type == NODE_INT ? (uint64_t)n->integer : 0;
	return fits;
}

bool kv_text(const struct node *map, const char *name, const char **ret, size_t *ret_len)
{
	const struct node *n = node_find(map, name);

	if (n && n->type != NODE_STRING && n->type != NODE_NULL)
		return false;
	*ret = n && n->type == NODE_STRING ? n->text : "";
	*ret_len = n && n->type == NODE_STRING ? n->text_len : 0;
	return true;
}

int kv_decode(struct buffer *out, const char *base64, size_t len)
{
	size_t size = len / 4 * 3, decoded;
	int r;

	if (len % 4)
		return -EINVAL;
	if (len == 0)
		return 0;
	size -= (base64[len - 1] == '=') + (base64[len - 1] == '=' && base64[len - 2] == '=');
	r = buffer_reserve(out, size);
	if (r == 0)
		r = base64_decode(base64, len, out->data + out->len, size, &decoded);
	if (r == 0)
		out->len += decoded;
	if (out->data)
		out->data[out->len] = '\0';
	return r;
}

/* ---- refusals ---- */

void kv_words(const char *text, size_t len, char ret_words[KV_WORDS])
{
	size_t n = 0;

	while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r'))
		len--;
	for (; n < len && n < KV_WORDS - 1; n++)
		ret_words[n] = text[n] >= 0x20 && text[n] < 0x7f ? text[n] : '?';
	ret_words[n] = '\0';
}

const char *kv_quote(const char *words, char ret_quoted[KV_QUOTED])
{
	return sentence_quote_output(ret_quoted, KV_QUOTED, words, strlen(words));
}

void kv_unreadable(const char *server, const struct document_error *e, char why[FILE_WHY])
{
	char words[KV_WORDS];
	const char *piece = strstr(e->message, " near '");
	size_t len = strcspn(e->message, "\":"); /* a key; what to do about it */

	if (piece && len > (size_t)(piece - e->message))
		len = (size_t)(piece - e->message);
	while (len > 0 && e->message[len - 1] == ' ')
		len--;
	kv_words(e->message, len, words);
	snprintf(why, FILE_WHY, "the answer of %s cannot be read: %s", server, words);
}

static enum kind_cause refusal_cause(long status, const char *words)
{
	static const struct {
		long first, last; /* status */
		const char *words;
		enum kind_cause cause;
	} table[] = {
		{401, 401, "", KIND_CAUSE_FORBIDDEN},
		{403, 403, "", KIND_CAUSE_FORBIDDEN},
		{408, 408, "", KIND_CAUSE_TIMEOUT},
		{429, 429, "", KIND_CAUSE_OVERLOADED},
		{500, 599, "no leader", KIND_CAUSE_UNREACHABLE},
		{500, 599, "no cluster leader", KIND_CAUSE_UNREACHABLE},
		{500, 599, "no path to datacenter", KIND_CAUSE_UNREACHABLE},
		{500, 599, "timed out", KIND_CAUSE_TIMEOUT},
		{503, 503, "", KIND_CAUSE_OVERLOADED},
		{504, 504, "", KIND_CAUSE_TIMEOUT},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (status >= table[i].first && status <= table[i].last &&
			strcasestr(words, table[i].words))
			return table[i].cause;
	return KIND_CAUSE_ANSWER;
}

enum kind_verdict kv_refused(long status, const char *words, struct kind_answer *ret)
{
	char quoted[KV_QUOTED];

	return kind_fail(ret, refusal_cause(status, words), "the server answered %ld%s", status,
		*words ? kv_quote(words, quoted) : ": without a word");
}

int kv_errno(long status, const char *words)
{
	enum kind_cause cause = refusal_cause(status, words);

	if (cause == KIND_CAUSE_FORBIDDEN)
		return -EACCES;
	return cause == KIND_CAUSE_ANSWER && status < 500 ? -EPROTO : -EAGAIN;
}

/* ---- the document ---- */

int kv_init(struct kv *k, const struct kind_place *place, const char *name, struct buffer *document)
{
	*k = (struct kv){.fingerprint = HASH_START,
		.place = place,
		.name = name,
		.name_len = strlen(name),
		.prefix = kv_is_prefix(place->path),
		.document = document};
	buffer_init(&k->value, place->max_bytes);
	if (!k->prefix)
		return 0;
	k->nest = unflatten_new(UNFLATTEN_PATHS, place->max_bytes);
	return k->nest ? 0 : -ENOMEM;
}

void kv_fini(struct kv *k)
{
	unflatten_free(k->nest);
	buffer_fini(&k->value);
}

static bool was_asked_for(const struct kv *k, const char *key, size_t len)
{
	return (k->prefix ? len >= k->name_len : len == k->name_len && k->count == 0) &&
	       memcmp(key, k->name, k->name_len) == 0;
}

static void count_in(struct kv *k, const char *key, size_t key_len, const char *value,
	size_t value_len, uint64_t index)
{
	const uint64_t numbers[] = {key_len, value_len, index};

	k->fingerprint = hash_bytes(k->fingerprint, numbers, sizeof(numbers));
	k->fingerprint = hash_bytes(k->fingerprint, key, key_len);
	k->fingerprint = hash_bytes(k->fingerprint, value, value_len);
	k->count++;
	if (index > k->highest)
		k->highest = index;
}

/* True for keys that are no part of the document. */
static bool is_beside(const char *name, size_t len, size_t value_len)
{
	return len == 0 || (value_len == 0 && name[len - 1] == '/') ||
	       (len == strlen(".minisig") && memcmp(name, ".minisig", len) == 0);
}

static int add_below(
	struct kv *k, const char *name, size_t name_len, const char *value, size_t value_len)
{
	int r;

	if (is_beside(name, name_len, value_len))
		return 0;
	buffer_clear(&k->value);
	r = kv_decode(&k->value, value, value_len);
	if (r)
		return r == -EINVAL ? -EBADMSG : r;
	return unflatten_add_text(
		k->nest, name, name_len, k->value.data ? k->value.data : "", k->value.len);
}

static const char *describe_key_error(int error)
{
	switch (error) {
	case -EBADMSG:
		return "has a value that is not base64: this is not the API that was expected";
	case -EEXIST:
		return "is there twice, when '/' at the ends and in a row does not count: remove "
		       "one";
	case -EINVAL:
		return "has no name below the prefix, or one that is too long: rename it";
	case -EILSEQ:
		return "is not text, or its value is not: a document holds UTF-8 without NUL";
	case -EMSGSIZE:
		return "is more than fits: raise max_size, or split what is there";
	default:
		return "cannot be read: out of memory";
	}
}

int kv_add(struct kv *k, const char *key, size_t key_len, const char *value, size_t value_len,
	uint64_t index, struct kind_answer *ret)
{
	char words[KV_WORDS];
	int r;

	kv_words(key, key_len, words);
	ret->cause = KIND_CAUSE_ANSWER;
	if (!was_asked_for(k, key, key_len)) {
		snprintf(ret->why, FILE_WHY, "the answer has the key '%s', which was not asked for",
			words);
		return -EPROTO;
	}
	count_in(k, key, key_len, value, value_len, index);
	if (k->prefix) {
		r = add_below(k, key + k->name_len, key_len - k->name_len, value, value_len);
	} else {
		r = kv_decode(k->document, value, value_len);
		r = r == -EINVAL ? -EBADMSG : r;
	}
	if (r)
		snprintf(ret->why, FILE_WHY, "the key '%s' %s", words, describe_key_error(r));
	return r;
}

enum kind_verdict kv_absent(const struct kind_place *place, struct kind_answer *ret)
{
	ret->cause = KIND_CAUSE_NOT_FOUND;
	snprintf(ret->why, FILE_WHY, "%s: check the path",
		kv_is_prefix(place->path) ? "there are no keys below this prefix"
					  : "there is no such key");
	return KIND_ABSENT;
}

enum kind_verdict kv_end(struct kv *k, struct kind_answer *ret)
{
	enum settings_type type = kind_document_type(k->place, "");
	int r;

	if (k->count == 0 || (k->prefix && unflatten_count(k->nest) == 0))
		return kv_absent(k->place, ret);
	r = k->prefix ? unflatten_write(k->nest, k->document) : 0;
	if (r) {
		return kind_fail(ret, KIND_CAUSE_ANSWER, "the document of all keys %s",
			describe_key_error(r));
	}
	if (k->document->len == 0)
		return kind_fail(ret, KIND_CAUSE_EMPTY, "the key is there, and its value is empty");
	ret->cause = KIND_CAUSE_NONE;
	ret->type = k->prefix && type != SETTINGS_TYPE_BYTES ? SETTINGS_TYPE_JSON : type;
	snprintf(ret->version, sizeof(ret->version), "%" PRIu64, k->highest);
	return KIND_NEW;
}

bool kv_same(const struct kv *k, uint64_t held_count, uint64_t held_fingerprint)
{
	const struct part *held = kind_held(k->place);
	uint64_t version;

	return held && held->etag && kv_digits(held->etag, &version) && version == k->highest &&
	       held_count == k->count && held_fingerprint == k->fingerprint;
}

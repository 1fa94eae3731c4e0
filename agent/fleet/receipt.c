/*
 * Receipts as JSON. Surprising: a receipt that is read is one block of memory; no text is longer
 * than its JSON with quotes, so the length of the input is room enough for all of them.
 */
#include "fleet/receipt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "document/document.h"
#include "text/json_writer.h"
#include "settings/form.h"

#define LEAST_DIGEST 12 /* as many digits as `pullet history` shows */

static const char *const states[RECEIPT_STATES] = {
	[RECEIPT_OK] = "ok",
	[RECEIPT_APPLYING] = "applying",
	[RECEIPT_PINNED] = "pinned",
	[RECEIPT_SUSPENDED] = "suspended",
	[RECEIPT_HELD] = "held",
	[RECEIPT_REJECTED] = "rejected",
	[RECEIPT_FAILING] = "failing",
	[RECEIPT_STALE] = "stale",
	[RECEIPT_WAITING] = "waiting",
	[RECEIPT_OTHER] = "other",
};

const char *receipt_state_name(enum receipt_state state)
{
	return states[state];
}

/* ---- texts ---- */

void receipt_version(const char *etag, char ret_version[RECEIPT_VERSION])
{
	size_t len;

	if (strncmp(etag, "W/\"", 3) == 0)
		etag += 2;
	len = strlen(etag);
	if (len >= 2 && etag[0] == '"' && etag[len - 1] == '"') {
		etag++;
		len -= 2;
	}
	if (len >= RECEIPT_VERSION)
		len = RECEIPT_VERSION - 1;
	for (size_t i = 0; i < len; i++) {
		bool plain = etag[i] > ' ' && etag[i] < 0x7f && etag[i] != '"' && etag[i] != '\\';

		ret_version[i] = plain ? etag[i] : '?';
	}
	ret_version[len] = '\0';
}

void receipt_why(const char *text, char ret_why[RECEIPT_WHY])
{
	size_t len = strcspn(text, "\r\n");

	if (len >= RECEIPT_WHY)
		len = RECEIPT_WHY - 1;
	while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80)
		len--;
	memcpy(ret_why, text, len);
	ret_why[len] = '\0';
}

static bool is_among(const char *words, const char *word)
{
	size_t len = strlen(word), n;

	for (; *words; words += n + (words[n] == ' ')) {
		n = strcspn(words, " ");
		if (n == len && memcmp(words, word, len) == 0)
			return true;
	}
	return false;
}

bool receipt_runs(const struct receipt_config *c, const char *version)
{
	size_t len = strlen(version), have = strlen(c->digest);
	size_t same = len < have ? len : have;

	if (c->generation == 0)
		return false;
	return strcmp(c->version, version) == 0 || is_among(c->others, version) ||
	       (same >= LEAST_DIGEST && strncasecmp(c->digest, version, same) == 0);
}

/* ---- writing ---- */

static void time_member(struct buffer *out, const char *name, int64_t ms)
{
	json_writer_number(out, name, ms > 0 ? (unsigned long long)ms : 0);
}

static void labels_member(const struct receipt *r, struct buffer *out)
{
	json_writer_begin_object(out, "labels");
	for (size_t i = 0; i < r->label_count; i++)
		json_writer_text(out, r->labels[i].name, r->labels[i].value);
	json_writer_end_object(out);
}

void receipt_begin(const struct receipt *r, struct buffer *out)
{
	json_writer_begin_object(out, NULL);
	json_writer_number(out, "v", 1);
	json_writer_text(out, "host", r->host);
	json_writer_text(out, "pullet", r->pullet);
	time_member(out, "since_ms", r->since_ms);
	if (r->pages > 1) {
		json_writer_number(out, "page", r->page);
		json_writer_number(out, "pages", r->pages);
	}
	labels_member(r, out);
	json_writer_begin_object(out, "configs");
}

void receipt_add(const struct receipt_config *c, struct buffer *out)
{
	json_writer_begin_object(out, c->name);
	json_writer_number(out, "generation", c->generation);
	json_writer_text(out, "version", c->version);
	if (c->others[0])
		json_writer_text(out, "others", c->others);
	json_writer_text(out, "digest", c->digest);
	json_writer_text(out, "state", states[c->state]);
	if (c->why[0])
		json_writer_text(out, "why", c->why);
	if (c->rejected[0])
		json_writer_text(out, "rejected", c->rejected);
	if (c->rejected_digest[0])
		json_writer_text(out, "rejected_digest", c->rejected_digest);
	time_member(out, "since_ms", c->since_ms);
	time_member(out, "pulled_ms", c->pulled_ms);
	json_writer_end_object(out);
}

int receipt_end(struct buffer *out)
{
	json_writer_end_object(out);
	return json_writer_end_object(out);
}

int receipt_write_known(const struct receipt *r, struct buffer *out)
{
	json_writer_begin_object(out, NULL);
	json_writer_number(out, "v", 1);
	time_member(out, "first_ms", r->since_ms);
	if (r->stopped_ms)
		time_member(out, "stopped_ms", r->stopped_ms);
	labels_member(r, out);
	json_writer_begin_array(out, "configs");
	for (size_t i = 0; i < r->config_count; i++)
		json_writer_text(out, NULL, r->configs[i].name);
	json_writer_end_array(out);
	return json_writer_end_object(out);
}

/* ---- reading ---- */

/* A receipt under construction, and the room behind it. */
struct reader {
	struct receipt *receipt;
	struct settings_label *labels;
	char *free;
};

static char *keep_text(struct reader *in, const char *text, size_t len)
{
	char *kept = in->free;

	memcpy(kept, text, len);
	kept[len] = '\0';
	in->free += len + 1;
	return kept;
}

static const char *keep_member(struct reader *in, const struct node *map, const char *name)
{
	const struct node *n = node_member(map, name, NODE_STRING);

	return n ? keep_text(in, n->text, n->text_len) : "";
}

/* A number above 0, else 0. */
static int64_t positive_member(const struct node *map, const char *name)
{
	int64_t n = node_integer(map, name, 0);

	return n > 0 ? n : 0;
}

static enum receipt_state read_receipt_state(const struct node *map)
{
	const char *name = node_text(map, "state", "");

	for (int i = 0; i < RECEIPT_OTHER; i++)
		if (strcmp(name, states[i]) == 0)
			return (enum receipt_state)i;
	return RECEIPT_OTHER;
}

static void read_config_receipt(struct reader *in, const struct node *n, struct receipt_config *c)
{
	*c = (struct receipt_config){
		.name = keep_text(in, n->key, n->key_len),
		.generation = (uint64_t)positive_member(n, "generation"),
		.version = keep_member(in, n, "version"),
		.others = keep_member(in, n, "others"),
		.digest = keep_member(in, n, "digest"),
		.state = read_receipt_state(n),
		.why = keep_member(in, n, "why"),
		.rejected = keep_member(in, n, "rejected"),
		.rejected_digest = keep_member(in, n, "rejected_digest"),
		.since_ms = positive_member(n, "since_ms"),
		.pulled_ms = positive_member(n, "pulled_ms"),
	};
}

static void read_receipt_name(struct reader *in, const struct node *n, struct receipt_config *c)
{
	*c = (struct receipt_config){.name = keep_text(in, n->text, n->text_len),
		.version = "",
		.others = "",
		.digest = "",
		.why = "",
		.rejected = "",
		.rejected_digest = "",
		.state = RECEIPT_OTHER};
}

/* Is it a list or map whose children are all of one type? */
static bool has_children_of(const struct node *n, enum node_type type, enum node_type child)
{
	if (!n || n->type != type)
		return false;
	for (n = n->first; n; n = n->next)
		if (n->type != child)
			return false;
	return true;
}

static void fill_receipt(struct reader *in, const struct node *root, bool known)
{
	const struct node *labels = node_find(root, "labels"),
			  *configs = node_find(root, "configs");
	struct receipt *r = in->receipt;

	for (const struct node *n = labels->first; n; n = n->next) {
		in->labels[r->label_count].name = keep_text(in, n->key, n->key_len);
		in->labels[r->label_count++].value = keep_text(in, n->text, n->text_len);
	}
	for (const struct node *n = configs->first; n; n = n->next) {
		struct receipt_config *c = &r->configs[r->config_count++];

		if (known)
			read_receipt_name(in, n, c);
		else
			read_config_receipt(in, n, c);
	}
	r->host = keep_member(in, root, "host");
	r->pullet = keep_member(in, root, "pullet");
	r->since_ms = positive_member(root, known ? "first_ms" : "since_ms");
	r->stopped_ms = known ? positive_member(root, "stopped_ms") : 0;
	r->page = (uint64_t)positive_member(root, "page");
	r->pages = (uint64_t)positive_member(root, "pages");
	r->page = r->page ? r->page : 1;
	r->pages = r->pages ? r->pages : 1;
}

static int read_receipt_root(const struct node *root, size_t len, bool known, struct receipt **ret)
{
	const struct node *v = node_member(root, "v", NODE_INT),
			  *labels = node_find(root, "labels"),
			  *configs = node_find(root, "configs");
	struct reader in;
	size_t size;

	if (!v)
		return -EINVAL;
	if (v->integer != 1)
		return -EPROTONOSUPPORT;
	if (!has_children_of(labels, NODE_MAP, NODE_STRING) ||
		!has_children_of(
			configs, known ? NODE_LIST : NODE_MAP, known ? NODE_STRING : NODE_MAP))
		return -EINVAL;
	size = sizeof(*in.receipt) + configs->count * sizeof(*in.receipt->configs) +
	       labels->count * sizeof(*in.labels);
	in.receipt = calloc(1, size + len);
	if (!in.receipt)
		return -ENOMEM;
	in.receipt->bytes = size + len;
	in.receipt->configs = (struct receipt_config *)(in.receipt + 1);
	in.labels = (struct settings_label *)(in.receipt->configs + configs->count);
	in.receipt->labels = in.labels;
	in.free = (char *)in.receipt + size;
	fill_receipt(&in, root, known);
	*ret = in.receipt;
	return 0;
}

static int read_receipt(const char *data, size_t len, bool known, struct receipt **ret)
{
	struct document_error e;
	struct document *d;
	int r = document_parse(DOCUMENT_JSON, data, len, 0, &d, &e);

	if (r)
		return r == -ENOMEM ? r : -EINVAL;
	r = read_receipt_root(document_root(d), len, known, ret);
	document_free(d);
	return r;
}

int receipt_read(const char *data, size_t len, struct receipt **ret)
{
	return read_receipt(data, len, false, ret);
}

int receipt_read_known(const char *data, size_t len, struct receipt **ret)
{
	return read_receipt(data, len, true, ret);
}

/* ---- validation ---- */

static enum receipt_fault worse_fault(enum receipt_fault a, enum receipt_fault b)
{
	return a == RECEIPT_SOUND ? b : a;
}

/* Printable ASCII from `least` on, in less than `room` bytes. */
static enum receipt_fault check_receipt_text(const char *text, char least, size_t room)
{
	if (strlen(text) >= room)
		return RECEIPT_LARGE;
	for (; *text; text++)
		if (*text < least || *text >= 0x7f)
			return RECEIPT_ODD;
	return RECEIPT_SOUND;
}

static enum receipt_fault check_config_receipt(const struct receipt_config *c)
{
	enum receipt_fault f = settings_check_name(c->name) ? RECEIPT_ODD : RECEIPT_SOUND;

	f = worse_fault(f, check_receipt_text(c->version, '!', RECEIPT_VERSION));
	f = worse_fault(f, check_receipt_text(c->rejected, '!', RECEIPT_VERSION));
	f = worse_fault(f, check_receipt_text(c->digest, '!', RECEIPT_DIGEST));
	f = worse_fault(f, check_receipt_text(c->rejected_digest, '!', RECEIPT_DIGEST));
	f = worse_fault(f, check_receipt_text(c->others, ' ', RECEIPT_OTHERS));
	return worse_fault(f, strlen(c->why) < RECEIPT_WHY ? RECEIPT_SOUND : RECEIPT_LARGE);
}

enum receipt_fault receipt_check(const struct receipt *r, bool known)
{
	enum receipt_fault f = check_receipt_text(r->pullet, ' ', RECEIPT_VERSION);

	if (r->config_count > (known ? SETTINGS_MAX_CONFIGS : RECEIPT_CONFIGS) ||
		r->label_count > SETTINGS_MAX_LABELS)
		return RECEIPT_LARGE;
	for (size_t i = 0; f == RECEIPT_SOUND && i < r->config_count; i++)
		f = check_config_receipt(&r->configs[i]);
	return f;
}

int64_t receipt_latest_ms(const struct receipt *r)
{
	int64_t latest_ms = r->since_ms;

	for (size_t i = 0; i < r->config_count; i++) {
		const struct receipt_config *c = &r->configs[i];

		latest_ms = c->since_ms > latest_ms ? c->since_ms : latest_ms;
		latest_ms = c->pulled_ms > latest_ms ? c->pulled_ms : latest_ms;
	}
	return latest_ms;
}

void receipt_free(struct receipt *r)
{
	free(r);
}

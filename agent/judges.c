/*
 * The judges, as a table. Surprising: a signature is only asked for when a version comes from a
 * server; what was accepted once, and lies in the state directory, may expire there and is still
 * the best there is.
 */
#include "judges.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base64.h"
#include "diff.h"
#include "keypath.h"
#include "log.h"
#include "schema.h"
#include "signature.h"

#define MAX_SCHEMA (8u << 20)

struct judges {
	const struct sys *sys;
	const struct settings_config *config;
	struct document *schema_document;
	struct schema *schema;
	char schema_sha256[DIGEST_HEX];
	char id[DIGEST_HEX];
};

const char *judge_name(enum judge judge)
{
	static const char *const names[JUDGE_COUNT] = {
		"syntax", "digest", "signature", "guard", "schema", "format", "check"};

	return names[judge];
}

/* ---- the rules ---- */

static void add_texts(struct buffer *b, const char *name, char *const *texts)
{
	buffer_printf(b, "%s\n", name);
	for (; texts && *texts; texts++)
		buffer_append(b, *texts, strlen(*texts) + 1);
}

static int make_id(struct judges *j)
{
	const struct settings_config *c = j->config;
	struct buffer b;
	int r;

	buffer_init(&b, 1u << 20);
	buffer_printf(&b, "%llu %llu ", (unsigned long long)c->check.timeout_ms,
		(unsigned long long)c->format_run.timeout_ms);
	buffer_printf(&b, "%u %u %d %d\n", c->guard.max_shrink, c->guard.max_changes,
		c->guard.allow_empty, (int)c->format);
	add_texts(&b, "require", c->guard.require);
	add_texts(&b, "keys", c->verify.public_keys);
	add_texts(&b, "format", c->format_run.argv);
	add_texts(&b, "check", c->check.argv);
	r = buffer_append_string(&b, j->schema_sha256);
	if (r == 0)
		r = digest_sha256(b.data, b.len, NULL, 0, j->id);
	buffer_fini(&b);
	return r;
}

static void drop_schema(struct judges *j)
{
	schema_free(j->schema);
	document_free(j->schema_document);
	j->schema = NULL;
	j->schema_document = NULL;
	j->schema_sha256[0] = '\0';
}

static int compile(struct judges *j, const struct buffer *text, char why[FILE_WHY])
{
	const char *path = j->config->schema;
	size_t len = strlen(path);
	bool json = len > 5 && strcmp(path + len - 5, ".json") == 0;
	struct document_error e = {0};
	char inner[FILE_WHY];
	int r;

	r = document_parse(json ? DOCUMENT_JSON : DOCUMENT_YAML, text->data ? text->data : "",
		text->len, 0, &j->schema_document, &e);
	if (r) {
		snprintf(why, FILE_WHY, "%.80s:%u:%u: the schema cannot be read: %.200s", path,
			e.line, e.column, r == -EINVAL ? e.message : strerror(-r));
		return r;
	}
	r = schema_new(document_root(j->schema_document), &j->schema, inner);
	if (r)
		snprintf(why, FILE_WHY, "%.150s: %.220s", path, inner);
	return r;
}

static int read_schema(struct judges *j, const char **ret_note, char why[FILE_WHY])
{
	char sha256[DIGEST_HEX], remedy[FILE_REMEDY];
	struct buffer text;
	int r;

	buffer_init(&text, MAX_SCHEMA);
	r = file_read_named(j->sys, j->config->schema, &text);
	if (r) {
		file_remedy(remedy, -r, true);
		snprintf(why, FILE_WHY, "cannot read the schema %.200s: %s", j->config->schema,
			remedy);
	}
	if (r == 0)
		r = digest_sha256(text.data ? text.data : "", text.len, NULL, 0, sha256);
	if (r == 0 && strcmp(sha256, j->schema_sha256) != 0) {
		drop_schema(j);
		r = compile(j, &text, why);
		if (r == 0) {
			memcpy(j->schema_sha256, sha256, sizeof(sha256));
			*ret_note = schema_unknown(j->schema);
			r = make_id(j);
		} else {
			drop_schema(j);
		}
	}
	buffer_fini(&text);
	return r;
}

struct judges *judges_new(const struct sys *sys, const struct settings_config *config)
{
	struct judges *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	j->sys = sys;
	j->config = config;
	if (make_id(j) == 0)
		return j;
	judges_free(j);
	return NULL;
}

void judges_free(struct judges *j)
{
	if (!j)
		return;
	drop_schema(j);
	free(j);
}

int judges_ready(struct judges *j, const char **ret_note, char why[FILE_WHY])
{
	*ret_note = "";
	return j->config->schema ? read_schema(j, ret_note, why) : 0;
}

const char *judges_id(const struct judges *j)
{
	return j->id;
}

/* ---- digest ---- */

/* RFC 9530 "sha-256=:BASE64:", RFC 3230 "SHA-256=BASE64". True when there is one, as hexadecimal
 * digits; other algorithms are none. The padding may be left out: RFC 8941, 4.2.7. */
static bool given_digest(const char *header, char ret_hex[DIGEST_HEX])
{
	unsigned char bytes[DIGEST_SHA256];
	char text[(DIGEST_SHA256 + 2) / 3 * 4]; /* the last one is padding */
	const char *p = header;
	size_t n;

	while (p && strncasecmp(p, "sha-256=", 8) != 0) {
		p = strchr(p, ',');
		while (p && (*p == ',' || *p == ' ' || *p == '\t'))
			p++;
	}
	if (!p)
		return false;
	for (p += 8; *p == ':'; p++)
		;
	n = strcspn(p, "=:;, \t");
	if (n != sizeof(text) - 1)
		return false;
	memcpy(text, p, n);
	text[n] = '=';
	if (base64_decode(text, sizeof(text), bytes, sizeof(bytes), &n))
		return false;
	for (size_t i = 0; i < n; i++)
		snprintf(ret_hex + 2 * i, 3, "%02x", bytes[i]);
	return true;
}

static int judge_digest(struct judges *j, const struct judges_case *c, struct judgement *ret)
{
	char given[DIGEST_HEX], real[DIGEST_HEX];

	(void)j;
	for (size_t i = 0; i < c->count; i++) {
		const struct compose_piece *p = &c->pieces[i];
		int r;

		if (!p->digest || !given_digest(p->digest, given))
			continue;
		r = digest_sha256(p->data, p->facts->len, NULL, 0, real);
		if (r)
			return r;
		if (strcmp(given, real) == 0)
			continue;
		snprintf(ret->why, sizeof(ret->why),
			"%s is not what its server says: SHA-256 is %.16s..., its header says "
			"%.16s...",
			p->facts->url, real, given);
		return -EINVAL;
	}
	return 0;
}

/* ---- signature ---- */

static int judge_one_signature(struct judges *j, const struct judges_case *c,
	const struct compose_piece *document, const struct compose_piece *signature,
	struct judgement *ret)
{
	const char *path = LOG_URL(j->config->layers[document->layer].path);
	struct signature_facts facts;
	char why[FILE_WHY];
	int r;

	if (signature->facts->absent) {
		snprintf(
			ret->why, sizeof(ret->why), "%s has no signature (%s.minisig)", path, path);
		return -EINVAL;
	}
	r = signature_verify(j->config->verify.public_keys, document->data, document->facts->len,
		signature->data, signature->facts->len, &facts, why);
	if (r) {
		snprintf(ret->why, sizeof(ret->why), "%s: %s", path, why);
		return r == -ENOMEM ? r : -EINVAL;
	}
	if (c->revs[document->layer] && (!facts.has_rev || facts.rev < c->revs[document->layer])) {
		snprintf(ret->why, sizeof(ret->why),
			"%s: signed as rev=%llu, but rev=%llu was accepted before: an old version "
			"is played back",
			path, (unsigned long long)facts.rev,
			(unsigned long long)c->revs[document->layer]);
		return -EINVAL;
	}
	if (facts.has_expiry && facts.expires_ms <= c->wall_ms) {
		snprintf(ret->why, sizeof(ret->why), "%s: its signature has expired", path);
		return -EINVAL;
	}
	if (facts.has_rev)
		ret->revs[document->layer] = facts.rev;
	if (facts.has_expiry && facts.expires_ms < ret->expires_ms)
		ret->expires_ms = facts.expires_ms;
	return 0;
}

static int judge_signature(struct judges *j, const struct judges_case *c, struct judgement *ret)
{
	int r = 0;

	if (!j->config->verify.public_keys)
		return 0;
	for (size_t i = 0; r == 0 && i + 1 < c->count; i += 2)
		if (!c->pieces[i].facts->absent)
			r = judge_one_signature(j, c, &c->pieces[i], &c->pieces[i + 1], ret);
	return r;
}

/* When nobody judges the signature again, its facts still count. */
static void read_facts(struct judges *j, const struct judges_case *c, struct judgement *ret)
{
	struct signature_facts facts;
	char why[FILE_WHY];

	for (size_t i = 0; j->config->verify.public_keys && i + 1 < c->count; i += 2)
		if (!c->pieces[i + 1].facts->absent && c->pieces[i + 1].signature &&
			signature_verify(j->config->verify.public_keys, c->pieces[i].data,
				c->pieces[i].facts->len, c->pieces[i + 1].data,
				c->pieces[i + 1].facts->len, &facts, why) == 0 &&
			facts.has_expiry && facts.expires_ms < ret->expires_ms)
			ret->expires_ms = facts.expires_ms;
}

/* ---- guard ---- */

static int refuse_missing(const struct settings_guard *g, const struct node *root, char *why)
{
	for (char **key = g->require; root && key && *key; key++) {
		const struct node *n = keypath_find(root, *key);

		if (n && n->type != NODE_NULL)
			continue;
		snprintf(why, JUDGES_WHY, "the required key %s is %s", *key,
			n ? "null" : "not there");
		return -EINVAL;
	}
	return 0;
}

static int refuse_changes(const struct settings_guard *g, const struct judges_case *c,
	const struct node *root, char *why)
{
	struct diff *d;
	size_t count;
	int r;

	if (!g->max_changes || !root || !c->before)
		return 0;
	r = diff_new(c->before, root, &d);
	if (r)
		return r;
	count = diff_count(d);
	diff_free(d);
	if (count <= g->max_changes)
		return 0;
	snprintf(why, JUDGES_WHY, "%zu keys would change, more than max_changes %u", count,
		g->max_changes);
	return -EINVAL;
}

static int judge_guard(struct judges *j, const struct judges_case *c, struct judgement *ret)
{
	const struct settings_guard *g = &j->config->guard;
	const struct node *root = c->composition->root;
	int r;

	if (c->forced)
		return 0;
	if (root && !root->first && c->before && c->before->first && !g->allow_empty) {
		snprintf(ret->why, sizeof(ret->why),
			"the document is empty, and the one that stands is not");
		return -EINVAL;
	}
	if (c->before_bytes &&
		(double)c->bytes < (double)c->before_bytes * (100.0 - g->max_shrink) / 100) {
		snprintf(ret->why, sizeof(ret->why),
			"it shrank from %zu to %zu bytes, more than max_shrink %u%%",
			c->before_bytes, c->bytes, g->max_shrink);
		return -EINVAL;
	}
	r = refuse_missing(g, root, ret->why);
	return r ? r : refuse_changes(g, c, root, ret->why);
}

/* ---- schema ---- */

static int judge_schema(struct judges *j, const struct judges_case *c, struct judgement *ret)
{
	struct buffer errors;
	int r;

	if (!j->schema || !c->composition->root)
		return 0;
	buffer_init(&errors, 64u << 10);
	r = schema_check(j->schema, c->composition->root, j->config->mask, &errors);
	if (r == -EINVAL || r == -E2BIG)
		snprintf(ret->why, sizeof(ret->why), "%s",
			errors.data ? errors.data : "it takes too long to be judged");
	for (size_t n = strlen(ret->why); n && ret->why[n - 1] == '\n'; n--)
		ret->why[n - 1] = '\0';
	buffer_fini(&errors);
	return r == -E2BIG ? -EINVAL : r;
}

/* ---- all of them ---- */

int judges_try(struct judges *j, const struct judges_case *c, struct judgement *ret)
{
	static const struct {
		enum judge judge;
		int (*look)(struct judges *j, const struct judges_case *c, struct judgement *ret);
		enum judges_level from;
	} table[] = {
		{JUDGE_DIGEST, judge_digest, JUDGES_NEW},
		{JUDGE_SIGNATURE, judge_signature, JUDGES_NEW},
		{JUDGE_GUARD, judge_guard, JUDGES_NEW},
		{JUDGE_SCHEMA, judge_schema, JUDGES_RECOMPOSED},
	};

	*ret = (struct judgement){.expires_ms = INT64_MAX};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		int r = c->level < table[i].from ? 0 : table[i].look(j, c, ret);

		if (r) {
			ret->judge = table[i].judge;
			if (!ret->why[0])
				snprintf(ret->why, sizeof(ret->why), "%s", strerror(-r));
			return r;
		}
	}
	if (c->level < JUDGES_NEW)
		read_facts(j, c, ret);
	return 0;
}

/*
 * The checks, as a table. Surprising: only a version from a server needs a valid signature; an
 * accepted one may expire in the state directory, and is still the best there is.
 */
#include "verify/verify.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "document/diff.h"
#include "document/key_path.h"
#include "base/log.h"
#include "schema/files.h"
#include "mustache/mustache.h"
#include "crypto/minisign.h"

struct verify {
	const struct settings_config *config;
	struct schema_files *schema; /* NULL: none is configured */
	char id[VERIFY_ID];
};

const char *verify_check_name(enum verify_check check)
{
	static const char *const names[CHECK_COUNT] = {
		"syntax", "digest", "signature", "guard", "schema", "format", "size", "check"};

	return names[check];
}

/* ---- the rules ---- */

static void add_texts(struct buffer *b, const char *name, char *const *texts)
{
	buffer_printf(b, "%s\n", name);
	for (; texts && *texts; texts++)
		buffer_append(b, *texts, strlen(*texts) + 1);
}

static void add_layers(struct buffer *b, const struct settings_config *c)
{
	buffer_printf(b, "%d %d\n", (int)c->type, c->dir != NULL);
	for (size_t i = 0; i < c->layer_count; i++)
		buffer_printf(b, "%d %d %s\n", (int)c->layers[i].type, c->layers[i].optional,
			c->layers[i].as ? c->layers[i].as : "");
}

static int make_id(struct verify *v)
{
	const struct settings_config *c = v->config;
	char digest[DIGEST_HEX];
	struct buffer b;
	int r;

	buffer_init(&b, 1u << 20);
	buffer_printf(&b, "%llu %llu ", (unsigned long long)c->check.timeout_ms,
		(unsigned long long)c->format_run.timeout_ms);
	buffer_printf(&b, "%u %u %d %d %d %llu\n", c->guard.max_shrink, c->guard.max_changes,
		c->guard.allow_empty, (int)c->format, c->snapshot, (unsigned long long)c->max_made);
	add_layers(&b, c);
	add_texts(&b, "mask", c->mask);
	add_texts(&b, "require", c->guard.require);
	add_texts(&b, "keys", c->verify.public_keys);
	buffer_printf(&b, "%d %d\n", (int)c->verify.bind, c->verify.rev_required);
	add_texts(&b, "format", c->format_run.argv);
	if (c->template)
		mustache_describe(c->template, &b);
	add_texts(&b, "check", c->check.argv);
	r = buffer_append_string(&b, v->schema ? schema_files_digest(v->schema) : "");
	if (r == 0)
		r = digest_sha256(b.data, b.len, NULL, 0, digest);
	if (r == 0)
		snprintf(v->id, sizeof(v->id), "%.*s", VERIFY_ID - 1, digest);
	buffer_fini(&b);
	return r;
}

struct verify *verify_new(const struct sys *sys, const struct settings_config *config)
{
	struct verify *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->config = config;
	if (config->schema)
		v->schema = schema_files_new(sys, config->schema, config->schema_dir);
	if ((v->schema || !config->schema) && make_id(v) == 0)
		return v;
	verify_free(v);
	return NULL;
}

void verify_free(struct verify *v)
{
	if (!v)
		return;
	schema_files_free(v->schema);
	free(v);
}

int verify_ready(struct verify *v, const char **ret_note, char why[FILE_WHY])
{
	int r = v->schema ? schema_files_read(v->schema, why) : 0;

	*ret_note = "";
	if (r <= 0)
		return r;
	*ret_note = schema_unknown(schema_files_schema(v->schema));
	r = make_id(v);
	if (r)
		snprintf(why, FILE_WHY, "out of memory");
	return r;
}

const char *verify_id(const struct verify *v)
{
	return v->id;
}

/* ---- digest ---- */

static int check_digest(struct verify *v, const struct verify_case *c, struct verify_result *ret)
{
	(void)v;
	for (size_t i = 0; i < c->count; i++) {
		const struct compose_piece *p = &c->pieces[i];

		if (!p->mismatch || !p->mismatch[0])
			continue;
		snprintf(ret->why, sizeof(ret->why), "%s is not what its server says: %s",
			LOG_URL(p->facts->url), p->mismatch);
		return -EINVAL;
	}
	return 0;
}

/* ---- signature ---- */

static void report_old_rev(const struct verify *v, uint64_t accepted, const char *path,
	const struct minisign_facts *facts, struct verify_result *ret)
{
	char said[32] = "without rev=";

	if (facts->has_rev)
		snprintf(said, sizeof(said), "as rev=%llu", (unsigned long long)facts->rev);
	snprintf(ret->why, sizeof(ret->why),
		"%s: signed %s, but rev=%llu was accepted before: an old version is played back; "
		"if it is not, sign it with a higher rev (pullet sign --rev N), or take it with "
		"`pullet refresh %s --forget-rev`",
		path, said, (unsigned long long)accepted, v->config->name);
}

static int check_one_signature(struct verify *v, const struct verify_case *c,
	const struct compose_piece *document, const struct compose_piece *signature,
	struct verify_result *ret)
{
	const char *path = LOG_URL(v->config->layers[document->layer].path);
	const struct minisign_demand demand = settings_signature_demand(v->config, document->layer);
	struct minisign_facts facts;
	char why[FILE_WHY];
	int r;

	if (signature->facts->absent) {
		snprintf(
			ret->why, sizeof(ret->why), "%s has no signature (%s.minisig)", path, path);
		return -EINVAL;
	}
	r = minisign_verify(v->config->verify.public_keys, document->data, document->facts->len,
		signature->data, signature->facts->len, &facts, why);
	if (r == 0)
		r = minisign_check(&facts, &demand, why);
	if (r) {
		snprintf(ret->why, sizeof(ret->why), "%s: %s", path, why);
		return r == -ENOMEM ? r : -EINVAL;
	}
	if (c->revs[document->layer] && (!facts.has_rev || facts.rev < c->revs[document->layer])) {
		report_old_rev(v, c->revs[document->layer], path, &facts, ret);
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

static int check_signature(struct verify *v, const struct verify_case *c, struct verify_result *ret)
{
	int r = 0;

	if (!v->config->verify.public_keys)
		return 0;
	for (size_t i = 0; r == 0 && i + 1 < c->count; i += 2)
		if (!c->pieces[i].facts->absent)
			r = check_one_signature(v, c, &c->pieces[i], &c->pieces[i + 1], ret);
	return r;
}

/* Keeps the first sentence. */
static void look_at_signature(struct verify *v, const struct compose_piece *document,
	const struct compose_piece *signature, struct verify_result *ret)
{
	const struct minisign_demand demand = settings_signature_demand(v->config, document->layer);
	struct minisign_facts facts;
	char why[FILE_WHY];
	int r = minisign_verify(v->config->verify.public_keys, document->data, document->facts->len,
		signature->data, signature->facts->len, &facts, why);

	if (r == 0 && facts.has_expiry && facts.expires_ms < ret->expires_ms)
		ret->expires_ms = facts.expires_ms;
	if (r == 0)
		r = minisign_check(&facts, &demand, why);
	if (r && r != -ENOMEM && !ret->unsigned_why[0])
		snprintf(ret->unsigned_why, sizeof(ret->unsigned_why), "%.200s: %.240s",
			LOG_URL(v->config->layers[document->layer].path), why);
}

/* Of what was accepted before: the expiry counts, and keys may have been revoked since. */
static void look_at_signatures(
	struct verify *v, const struct verify_case *c, struct verify_result *ret)
{
	for (size_t i = 0; v->config->verify.public_keys && i + 1 < c->count; i += 2)
		if (!c->pieces[i].facts->absent && !c->pieces[i + 1].facts->absent &&
			c->pieces[i + 1].signature)
			look_at_signature(v, &c->pieces[i], &c->pieces[i + 1], ret);
}

/* ---- guard ---- */

static int check_required_keys(const struct settings_guard *g, const struct node *root, char *why)
{
	for (char **key = g->require; root && key && *key; key++) {
		const struct node *n = key_path_find(root, *key);

		if (n && n->type != NODE_NULL)
			continue;
		snprintf(why, VERIFY_WHY, "the required key %s is %s", *key,
			n ? "null" : "not there");
		return -EINVAL;
	}
	return 0;
}

static int check_changes(const struct settings_guard *g, const struct verify_case *c,
	const struct node *root, char *why)
{
	size_t count;
	int r;

	if (!g->max_changes || !root || !c->before)
		return 0;
	r = diff_measure(c->before, root, &count);
	if (r)
		return r;
	if (count <= g->max_changes)
		return 0;
	snprintf(why, VERIFY_WHY, "%zu keys would change, more than max_changes %u", count,
		g->max_changes);
	return -EINVAL;
}

static int check_guard(struct verify *v, const struct verify_case *c, struct verify_result *ret)
{
	const struct settings_guard *g = &v->config->guard;
	const struct node *root = c->composition->root;
	int r;

	if (c->forced)
		return 0;
	if (root && !root->first && c->before && c->before->first && !g->allow_empty) {
		snprintf(ret->why, sizeof(ret->why),
			"the document is empty, and the current one is not");
		return -EINVAL;
	}
	if (c->before_bytes &&
		(double)c->bytes < (double)c->before_bytes * (100.0 - g->max_shrink) / 100) {
		snprintf(ret->why, sizeof(ret->why),
			"it shrank from %zu to %zu bytes, more than max_shrink %u%%",
			c->before_bytes, c->bytes, g->max_shrink);
		return -EINVAL;
	}
	r = check_required_keys(g, root, ret->why);
	return r ? r : check_changes(g, c, root, ret->why);
}

/* ---- schema ---- */

static int check_schema(struct verify *v, const struct verify_case *c, struct verify_result *ret)
{
	struct buffer errors;
	int r;

	if (!v->schema || !c->composition->root || !schema_files_schema(v->schema))
		return 0;
	buffer_init(&errors, 64u << 10);
	r = schema_check(
		schema_files_schema(v->schema), c->composition->root, v->config->mask, &errors);
	if (r == -EINVAL || r == -E2BIG)
		snprintf(ret->why, sizeof(ret->why), "%s",
			errors.data ? errors.data : "it takes too long to be validated");
	for (size_t n = strlen(ret->why); n && ret->why[n - 1] == '\n'; n--)
		ret->why[n - 1] = '\0';
	buffer_fini(&errors);
	return r == -E2BIG ? -EINVAL : r;
}

/* ---- all of them ---- */

int verify_try(struct verify *v, const struct verify_case *c, struct verify_result *ret)
{
	static const struct {
		enum verify_check check;
		int (*run)(
			struct verify *v, const struct verify_case *c, struct verify_result *ret);
		enum verify_level from;
	} table[] = {
		{CHECK_DIGEST, check_digest, VERIFY_NEW},
		{CHECK_SIGNATURE, check_signature, VERIFY_NEW},
		{CHECK_GUARD, check_guard, VERIFY_NEW},
		{CHECK_SCHEMA, check_schema, VERIFY_RECOMPOSED},
	};

	*ret = (struct verify_result){.expires_ms = INT64_MAX};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		int r = c->level < table[i].from ? 0 : table[i].run(v, c, ret);

		if (r) {
			ret->check = table[i].check;
			if (!ret->why[0])
				snprintf(ret->why, sizeof(ret->why), "%s", strerror(-r));
			return r;
		}
	}
	if (c->level < VERIFY_NEW)
		look_at_signatures(v, c, ret);
	return 0;
}

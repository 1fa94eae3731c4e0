/*
 * The checks, as a table. Surprising: a signature is only asked for when a version comes from a
 * server; what was accepted once, and lies in the state directory, may expire there and is still
 * the best there is.
 */
#include "verify/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "document/diff.h"
#include "document/key_path.h"
#include "base/log.h"
#include "schema/files.h"
#include "crypto/minisign.h"

struct verify {
	const struct sys *sys;
	const struct settings_config *config;
	struct schema_files *schema; /* NULL: none is asked for */
	char id[DIGEST_HEX];
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

static int make_id(struct verify *j)
{
	const struct settings_config *c = j->config;
	struct buffer b;
	int r;

	buffer_init(&b, 1u << 20);
	buffer_printf(&b, "%llu %llu ", (unsigned long long)c->check.timeout_ms,
		(unsigned long long)c->format_run.timeout_ms);
	buffer_printf(&b, "%u %u %d %d %d %llu\n", c->guard.max_shrink, c->guard.max_changes,
		c->guard.allow_empty, (int)c->format, c->snapshot, (unsigned long long)c->max_made);
	add_texts(&b, "require", c->guard.require);
	add_texts(&b, "keys", c->verify.public_keys);
	buffer_printf(&b, "%d %d\n", (int)c->verify.bind, c->verify.rev_required);
	add_texts(&b, "format", c->format_run.argv);
	add_texts(&b, "check", c->check.argv);
	r = buffer_append_string(&b, j->schema ? schema_files_digest(j->schema) : "");
	if (r == 0)
		r = digest_sha256(b.data, b.len, NULL, 0, j->id);
	buffer_fini(&b);
	return r;
}

struct verify *verify_new(const struct sys *sys, const struct settings_config *config)
{
	struct verify *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	j->sys = sys;
	j->config = config;
	if (config->schema)
		j->schema = schema_files_new(sys, config->schema, config->schema_dir);
	if ((j->schema || !config->schema) && make_id(j) == 0)
		return j;
	verify_free(j);
	return NULL;
}

void verify_free(struct verify *j)
{
	if (!j)
		return;
	schema_files_free(j->schema);
	free(j);
}

int verify_ready(struct verify *j, const char **ret_note, char why[FILE_WHY])
{
	int r = j->schema ? schema_files_read(j->schema, why) : 0;

	*ret_note = "";
	if (r <= 0)
		return r;
	*ret_note = schema_unknown(schema_files_schema(j->schema));
	r = make_id(j);
	if (r)
		snprintf(why, FILE_WHY, "out of memory");
	return r;
}

const char *verify_id(const struct verify *j)
{
	return j->id;
}

/* ---- digest ---- */

static int judge_digest(struct verify *j, const struct verify_case *c, struct verify_result *ret)
{
	(void)j;
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

static void refuse_old(const struct verify *j, uint64_t accepted, const char *path,
	const struct minisign_facts *facts, struct verify_result *ret)
{
	char said[32] = "without rev=";

	if (facts->has_rev)
		snprintf(said, sizeof(said), "as rev=%llu", (unsigned long long)facts->rev);
	snprintf(ret->why, sizeof(ret->why),
		"%s: signed %s, but rev=%llu was accepted before: an old version is played back; "
		"if it is not, sign it with a higher rev (pullet sign --rev N), or take it with "
		"`pullet refresh %s --forget-rev`",
		path, said, (unsigned long long)accepted, j->config->name);
}

static int judge_one_signature(struct verify *j, const struct verify_case *c,
	const struct compose_piece *document, const struct compose_piece *signature,
	struct verify_result *ret)
{
	const char *path = LOG_URL(j->config->layers[document->layer].path);
	const struct minisign_demand demand = settings_signature_demand(j->config, document->layer);
	struct minisign_facts facts;
	char why[FILE_WHY];
	int r;

	if (signature->facts->absent) {
		snprintf(
			ret->why, sizeof(ret->why), "%s has no signature (%s.minisig)", path, path);
		return -EINVAL;
	}
	r = minisign_verify(j->config->verify.public_keys, document->data, document->facts->len,
		signature->data, signature->facts->len, &facts, why);
	if (r == 0)
		r = minisign_check(&facts, &demand, why);
	if (r) {
		snprintf(ret->why, sizeof(ret->why), "%s: %s", path, why);
		return r == -ENOMEM ? r : -EINVAL;
	}
	if (c->revs[document->layer] && (!facts.has_rev || facts.rev < c->revs[document->layer])) {
		refuse_old(j, c->revs[document->layer], path, &facts, ret);
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

static int judge_signature(struct verify *j, const struct verify_case *c, struct verify_result *ret)
{
	int r = 0;

	if (!j->config->verify.public_keys)
		return 0;
	for (size_t i = 0; r == 0 && i + 1 < c->count; i += 2)
		if (!c->pieces[i].facts->absent)
			r = judge_one_signature(j, c, &c->pieces[i], &c->pieces[i + 1], ret);
	return r;
}

/* When nobody checks the signature again, its facts still count. */
static void read_facts(struct verify *j, const struct verify_case *c, struct verify_result *ret)
{
	struct minisign_facts facts;
	char why[FILE_WHY];

	for (size_t i = 0; j->config->verify.public_keys && i + 1 < c->count; i += 2)
		if (!c->pieces[i + 1].facts->absent && c->pieces[i + 1].signature &&
			minisign_verify(j->config->verify.public_keys, c->pieces[i].data,
				c->pieces[i].facts->len, c->pieces[i + 1].data,
				c->pieces[i + 1].facts->len, &facts, why) == 0 &&
			facts.has_expiry && facts.expires_ms < ret->expires_ms)
			ret->expires_ms = facts.expires_ms;
}

/* ---- guard ---- */

static int refuse_missing(const struct settings_guard *g, const struct node *root, char *why)
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

static int refuse_changes(const struct settings_guard *g, const struct verify_case *c,
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

static int judge_guard(struct verify *j, const struct verify_case *c, struct verify_result *ret)
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

static int judge_schema(struct verify *j, const struct verify_case *c, struct verify_result *ret)
{
	struct buffer errors;
	int r;

	if (!j->schema || !c->composition->root || !schema_files_schema(j->schema))
		return 0;
	buffer_init(&errors, 64u << 10);
	r = schema_check(
		schema_files_schema(j->schema), c->composition->root, j->config->mask, &errors);
	if (r == -EINVAL || r == -E2BIG)
		snprintf(ret->why, sizeof(ret->why), "%s",
			errors.data ? errors.data : "it takes too long to be validated");
	for (size_t n = strlen(ret->why); n && ret->why[n - 1] == '\n'; n--)
		ret->why[n - 1] = '\0';
	buffer_fini(&errors);
	return r == -E2BIG ? -EINVAL : r;
}

/* ---- all of them ---- */

int verify_try(struct verify *j, const struct verify_case *c, struct verify_result *ret)
{
	static const struct {
		enum verify_check check;
		int (*look)(
			struct verify *j, const struct verify_case *c, struct verify_result *ret);
		enum verify_level from;
	} table[] = {
		{CHECK_DIGEST, judge_digest, VERIFY_NEW},
		{CHECK_SIGNATURE, judge_signature, VERIFY_NEW},
		{CHECK_GUARD, judge_guard, VERIFY_NEW},
		{CHECK_SCHEMA, judge_schema, VERIFY_RECOMPOSED},
	};

	*ret = (struct verify_result){.expires_ms = INT64_MAX};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		int r = c->level < table[i].from ? 0 : table[i].look(j, c, ret);

		if (r) {
			ret->check = table[i].check;
			if (!ret->why[0])
				snprintf(ret->why, sizeof(ret->why), "%s", strerror(-r));
			return r;
		}
	}
	if (c->level < VERIFY_NEW)
		read_facts(j, c, ret);
	return 0;
}

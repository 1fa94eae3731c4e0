/*
 * Versions, differences and explanations. Surprising: everything is read from the state directory
 * again and composed as for a publication; nothing of a document is kept in memory for this.
 */
#include "config/inspect.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "config/core.h"
#include "document/diff.h"
#include "text/json_text.h"
#include "text/json_writer.h"
#include "document/key_path.h"
#include "text/sentence.h"
#include "crypto/minisign.h"

#define MAX_LEDGER (16u << 20)

static int check_room(const struct buffer *out, char why[FILE_WHY])
{
	if (out->error)
		snprintf(why, FILE_WHY, "%s",
			out->error == -EMSGSIZE ? "the answer is too long" : strerror(-out->error));
	return out->error;
}

/* The patterns of masked keys; without values all are masked. */
static char *const *mask_for(const struct config *c, bool values)
{
	static char all[] = "*";
	static char *const everything[] = {all, NULL};

	return values ? c->settings->mask : everything;
}

/* ---- copies ---- */

static int copy_ledger(const struct ledger *l, struct ledger **ret_ledger)
{
	struct buffer text;
	int r;

	*ret_ledger = NULL;
	if (!l)
		return 0;
	buffer_init(&text, MAX_LEDGER);
	r = ledger_write(l, &text);
	if (r == 0)
		r = ledger_read(text.data, text.len, ret_ledger);
	buffer_fini(&text);
	return r;
}

int inspect_begin(struct config *c, struct inspection *ret, char why[FILE_WHY])
{
	int r;

	*ret = (struct inspection){.config = c};
	r = copy_ledger(c->decisions.ledger, &ret->ledger);
	if (r == 0 && c->current.version.generation)
		r = version_copy(&c->current.version, &ret->published);
	if (r == 0)
		return 0;
	ledger_free(ret->ledger);
	snprintf(why, FILE_WHY, "out of memory");
	return -ENOMEM;
}

void inspect_end(struct inspection *i)
{
	ledger_free(i->ledger);
	version_fini(&i->published);
	i->ledger = NULL;
}

int inspect_unchanged(const struct inspection *i, char why[FILE_WHY])
{
	if (i->published.generation == i->config->current.version.generation)
		return 0;
	snprintf(why, FILE_WHY, "another version was published meanwhile: check it and try again");
	return -EAGAIN;
}

static int check_published(const struct inspection *i, char why[FILE_WHY])
{
	if (i->published.generation && i->ledger && i->config->current.store)
		return 0;
	snprintf(why, FILE_WHY, "nothing is published yet");
	return -ENODATA;
}

/* ---- versions ---- */

static void write_version_facts(struct buffer *out, const struct version *v)
{
	const char *etag = v->parts[0].etag;
	char url[LOG_URL_SIZE];

	json_writer_number(out, "generation", v->generation);
	json_writer_number(out, "pulled_ms", (unsigned long long)v->pulled_ms);
	json_writer_text(out, "sha256", v->sha256);
	json_writer_text(out, "origin", v->origin);
	json_writer_begin_array(out, "urls");
	for (size_t i = 0; i < v->part_count; i++) {
		const struct part *p = &v->parts[i];

		if (p->absent || strcmp(p->type, "minisig") == 0)
			continue;
		json_writer_text(out, NULL, log_url_text(url, p->url));
	}
	json_writer_end_array(out);
	json_writer_text(out, "version", etag[0] ? etag : NULL);
	json_writer_number(out, "bytes", version_bytes(v));
}

static void write_verdict(
	struct buffer *out, const struct ledger *l, const struct version *v, enum audience audience)
{
	for (size_t i = 0; i < l->verdict_count; i++) {
		if (strcmp(l->verdicts[i].sha256, v->sha256) != 0)
			continue;
		json_writer_begin_object(out, "rejected");
		json_writer_text(out, "by", l->verdicts[i].check);
		if (audience != AUDIENCE_PUBLIC)
			sentence_member(out, "why", l->verdicts[i].why, audience);
		json_writer_end_object(out);
		return;
	}
}

/* Returns how many bytes it has read. */
static size_t write_version(
	const struct inspection *i, uint64_t generation, enum audience audience, struct buffer *out)
{
	struct candidate *v = candidate_new();
	char why[FILE_WHY] = "out of memory";
	unsigned damaged;
	size_t bytes = 0;

	json_writer_begin_object(out, NULL);
	if (!v || candidate_load(v, i->config->current.store, generation, &damaged, why)) {
		json_writer_number(out, "generation", generation);
		sentence_member(out, "error", why, audience);
	} else {
		write_version_facts(out, &v->version);
		if (generation == i->published.generation)
			json_writer_boolean(out, "published", true);
		write_verdict(out, i->ledger, &v->version, audience);
		bytes = v->body.len;
	}
	json_writer_end_object(out);
	candidate_free(v);
	return bytes;
}

int inspect_history(
	const struct inspection *i, enum audience audience, struct buffer *out, char why[FILE_WHY])
{
	uint64_t generations[STORE_MAX_KEEP];
	const struct config *c = i->config;
	size_t count = i->ledger && c->current.store ? store_list(c->current.store, generations)
						     : 0,
	       read = 0, n;

	json_writer_begin_object(out, NULL);
	json_writer_text(out, "name", c->settings->name);
	json_writer_begin_array(out, "versions");
	for (n = 0; n < count && read < INSPECT_MAX_READ; n++) {
		read += write_version(i, generations[n], audience, out);
	}
	json_writer_end_array(out);
	if (n < count)
		json_writer_boolean(out, "truncated", true);
	json_writer_end_object(out);
	return check_room(out, why);
}

/* ---- differences ---- */

static int find_generation_before(
	struct config *c, uint64_t to, uint64_t *ret_generation, char why[FILE_WHY])
{
	uint64_t generations[STORE_MAX_KEEP];
	size_t count = store_list(c->current.store, generations);

	for (size_t i = 0; i < count; i++)
		if (generations[i] < to) {
			*ret_generation = generations[i];
			return 0;
		}
	snprintf(why, FILE_WHY,
		"generation %llu is the oldest in the state directory: there is nothing to compare "
		"it with",
		(unsigned long long)to);
	return -ENOENT;
}

static int write_differences(char *const *mask, const struct node *before, const struct node *after,
	struct buffer *out, char why[FILE_WHY])
{
	struct diff *d;
	size_t i;
	int r;

	if (!before || !after) {
		json_writer_text(out, "changes", NULL);
		return 0;
	}
	r = diff_new(before, after, &d);
	if (r) {
		snprintf(why, FILE_WHY, "%s",
			r == -EMSGSIZE ? "the answer is too long" : strerror(-r));
		return r;
	}
	json_writer_begin_array(out, "changes");
	for (i = 0; i < diff_count(d) && out->len < INSPECT_MAX_LISTED && !out->error; i++) {
		diff_write_json(diff_at(d, i), mask, out);
	}
	json_writer_end_array(out);
	if (i < diff_count(d))
		json_writer_number(out, "more", diff_count(d) - i);
	diff_free(d);
	return 0;
}

int inspect_diff(const struct inspection *i, uint64_t from, uint64_t to, bool values,
	struct buffer *out, char why[FILE_WHY])
{
	struct candidate *before = NULL, *after = NULL;
	struct config *c = i->config;
	int r = check_published(i, why);

	if (r == 0 && to == 0)
		to = i->published.generation;
	if (r == 0 && from == 0)
		r = find_generation_before(c, to, &from, why);
	if (r == 0)
		r = validation_load(c, from, NULL, &before, why);
	if (r == 0)
		r = validation_load(c, to, NULL, &after, why);
	if (r == 0) {
		json_writer_begin_object(out, NULL);
		json_writer_text(out, "name", c->settings->name);
		json_writer_begin_object(out, "from");
		write_version_facts(out, &before->version);
		json_writer_end_object(out);
		json_writer_begin_object(out, "to");
		write_version_facts(out, &after->version);
		json_writer_end_object(out);
		json_writer_boolean(out, "equal", version_same(&before->version, &after->version));
		json_writer_boolean(out, "values", values);
		r = write_differences(mask_for(c, values), before->composition.root,
			after->composition.root, out, why);
		json_writer_end_object(out);
	}
	candidate_free(before);
	candidate_free(after);
	return r ? r : check_room(out, why);
}

/* ---- explanations ---- */

struct shown {
	struct buffer *out, path;
	char *const *mask;
};

static void write_leaf(struct buffer *out, const struct node *n)
{
	json_writer_member(out, NULL);
	if (n->type == NODE_DOUBLE && !isfinite(n->number))
		json_text_append(out, n->text, n->text_len);
	else if (document_write(n, DOCUMENT_JSON, out) == 0)
		out->data[--out->len] = '\0'; /* its newline */
}

/* The value at s->path, without what is masked. As deep as a document may be. */
static void write_value(struct shown *s, const struct node *n)
{
	size_t len = s->path.len, number = 0;
	bool map = n->type == NODE_MAP;

	if (s->path.error || key_path_matches(s->mask, s->path.data)) {
		json_writer_text(s->out, NULL, "***");
		return;
	}
	if (n->type < NODE_LIST) {
		write_leaf(s->out, n);
		return;
	}
	if (map)
		json_writer_begin_object(s->out, NULL);
	else
		json_writer_begin_array(s->out, NULL);
	for (const struct node *child = n->first; child; child = child->next) {
		if (map)
			json_writer_key(s->out, child->key, child->key_len);
		key_path_append(&s->path, false, child, number++);
		write_value(s, child);
		s->path.len = len;
	}
	if (map)
		json_writer_end_object(s->out);
	else
		json_writer_end_array(s->out);
}

static void write_member(
	char *const *mask, const char *key, const struct node *n, struct buffer *out)
{
	struct shown s = {.out = out, .mask = mask};

	buffer_init(&s.path, DIFF_MAX_PATHS);
	buffer_append_string(&s.path, key);
	if (key_path_matches(s.mask, key))
		json_writer_boolean(out, "masked", true);
	json_writer_member(out, "value");
	write_value(&s, n);
	buffer_fini(&s.path);
}

static void write_effect(char *const *mask, const char *key, const struct merge_effect *v,
	bool has_lines, struct buffer *out)
{
	static const char *const words[] = {"absent", "unset", "sets", "deletes", "replaces"};

	json_writer_text(out, "effect", words[v->kind]);
	if (has_lines && v->node && v->node->line)
		json_writer_number(out, "line", v->node->line);
	if (v->kind == MERGE_SETS)
		write_member(mask, key, v->node, out);
	json_writer_boolean(out, "effective", v->counts);
}

static const char *url_of_layer(const struct candidate *v, size_t layer, char text[LOG_URL_SIZE])
{
	for (size_t i = 0; i < v->version.part_count; i++)
		if (v->pieces[i].layer == layer && !v->pieces[i].signature)
			return log_url_text(text, v->pieces[i].facts->url);
	return NULL;
}

static void write_layer(
	const struct inspection *seen, const struct candidate *v, size_t i, struct buffer *out)
{
	const struct ledger_override *o;

	if (i < v->composition.layer_count) {
		json_writer_text(out, "url", url_of_layer(v, i, (char[LOG_URL_SIZE]){0}));
		json_writer_text(out, "path", LOG_URL(seen->config->settings->layers[i].path));
		return;
	}
	o = &seen->ledger->overrides[i - v->composition.layer_count];
	json_writer_boolean(out, "override", true);
	json_writer_text(out, "key", o->key);
	json_writer_text(out, "by", o->by);
	json_writer_text(out, "reason", o->reason);
	if (o->until_ms == LEDGER_FOREVER)
		json_writer_text(out, "until_ms", NULL);
	else
		json_writer_number(out, "until_ms", (unsigned long long)o->until_ms);
}

static bool says_something(const struct merge_effect *effects, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (effects[i].kind > MERGE_SILENT)
			return true;
	return false;
}

static void write_explanation(const struct inspection *seen, const struct candidate *v,
	const char *key, bool values, const struct merge_effect *effects, size_t count,
	struct buffer *out)
{
	char *const *mask = mask_for(seen->config, values);
	const struct node *found = key_path_find(v->composition.root, key);

	json_writer_begin_object(out, NULL);
	json_writer_text(out, "name", seen->config->settings->name);
	json_writer_number(out, "generation", v->version.generation);
	json_writer_text(out, "key", key);
	json_writer_boolean(out, "found", found);
	json_writer_boolean(out, "values", values);
	if (found)
		write_member(mask, key, found, out);
	json_writer_begin_array(out, "layers");
	for (size_t i = 0; i < count; i++) {
		json_writer_begin_object(out, NULL);
		write_layer(seen, v, i, out);
		write_effect(mask, key, &effects[i], i < v->composition.layer_count, out);
		json_writer_end_object(out);
	}
	json_writer_end_array(out);
	json_writer_end_object(out);
}

int inspect_explain(const struct inspection *i, const char *key, bool values, struct buffer *out,
	char why[FILE_WHY])
{
	struct merge_layer layers[SETTINGS_MAX_LAYERS + LEDGER_MAX_OVERRIDES] = {{0}};
	struct merge_effect effects[SETTINGS_MAX_LAYERS + LEDGER_MAX_OVERRIDES];
	struct candidate *v;
	size_t count;
	int r = check_published(i, why);

	if (r == 0)
		r = operate_check_key(i->config, key, why);
	if (r == 0)
		r = validation_load(i->config, i->published.generation, i->ledger, &v, why);
	if (r)
		return r;
	count = compose_layers(&v->composition, layers);
	merge_explain(layers, count, key, effects);
	if (says_something(effects, count)) {
		write_explanation(i, v, key, values, effects, count, out);
		r = check_room(out, why);
	} else {
		snprintf(
			why, FILE_WHY, "there is no such key, and no layer says anything about it");
		r = -ENOENT;
	}
	candidate_free(v);
	return r;
}

/* ---- changes ---- */

static int fail_no_memory(char why[FILE_WHY])
{
	snprintf(why, FILE_WHY, "out of memory");
	return -ENOMEM;
}

/* The newest version that a rollback may publish. 0, -ENOENT or -ENOMEM. */
static int find_rollback_generation(
	const struct inspection *seen, uint64_t *ret_generation, char why[FILE_WHY])
{
	uint64_t generations[STORE_MAX_KEEP];
	struct store *store = seen->config->current.store;
	size_t count = store_list(store, generations);
	char ignored[FILE_WHY];

	for (size_t i = 0; i < count; i++) {
		struct candidate *v;
		unsigned damaged;
		bool good;

		if (generations[i] >= seen->published.generation)
			continue;
		v = candidate_new();
		if (!v)
			return fail_no_memory(why);
		good = candidate_load(v, store, generations[i], &damaged, ignored) == 0 &&
		       !version_same(&v->version, &seen->published);
		for (size_t k = 0; good && k < seen->ledger->verdict_count; k++) {
			const struct ledger_verdict *verdict = &seen->ledger->verdicts[k];

			good = !rejection_is_rollback(rejection_parse(verdict->check)) ||
			       strcmp(verdict->sha256, v->version.sha256) != 0;
		}
		candidate_free(v);
		if (good) {
			*ret_generation = generations[i];
			return 0;
		}
	}
	snprintf(why, FILE_WHY,
		"there is no older version that differs from the current one and was "
		"not rolled back itself: name a generation");
	return -ENOENT;
}

/* Each document is signed by the present keys. */
static int check_signatures(const struct config *c, const struct candidate *v, char why[FILE_WHY])
{
	char *const *keys = c->settings->verify.public_keys;
	struct minisign_demand demand;
	struct minisign_facts facts;
	char inner[FILE_WHY];

	for (size_t i = 0; keys && i < v->version.part_count; i++) {
		const struct compose_piece *p = &v->pieces[i], *s = p + 1;
		const char *path;
		int r = -EBADMSG;

		if (p->signature || p->facts->absent)
			continue;
		path = LOG_URL(c->settings->layers[p->layer].path);
		snprintf(inner, sizeof(inner), "it was stored without a signature");
		if (i + 1 < v->version.part_count && s->signature && !s->facts->absent)
			r = minisign_verify(keys, p->data, p->facts->len, s->data, s->facts->len,
				&facts, inner);
		if (r == 0) {
			demand = settings_signature_demand(c->settings, p->layer);
			r = minisign_check(&facts, &demand, inner);
		}
		if (r) {
			snprintf(why, FILE_WHY,
				"generation %llu is not signed as the configuration asks for: "
				"%.100s: %.160s",
				(unsigned long long)v->version.generation, path, inner);
			return r == -ENOMEM ? r : -EBADMSG;
		}
	}
	return 0;
}

static int check_rollback_target(
	const struct inspection *seen, uint64_t generation, char why[FILE_WHY])
{
	struct candidate *v;
	int r;

	if (generation == seen->published.generation) {
		snprintf(why, FILE_WHY, "generation %llu is the current version",
			(unsigned long long)generation);
		return -EALREADY;
	}
	r = validation_load(seen->config, generation, seen->ledger, &v, why);
	if (r)
		return r;
	if (version_same(&v->version, &seen->published)) {
		snprintf(why, FILE_WHY, "generation %llu has the same bytes as the current version",
			(unsigned long long)generation);
		r = -EALREADY;
	} else {
		r = check_signatures(seen->config, v, why);
	}
	candidate_free(v);
	return r;
}

int inspect_rollback(const struct inspection *i, uint64_t *generation, char why[FILE_WHY])
{
	int r = check_published(i, why);

	if (r == 0 && *generation == 0)
		r = find_rollback_generation(i, generation, why);
	return r ? r : check_rollback_target(i, *generation, why);
}

/* An override may lie in mappings only. */
static int check_key_way(const struct node *root, const char *key, char why[FILE_WHY])
{
	const struct node *n = root;
	const char *rest = key;

	while (n && rest) {
		if (n->type != NODE_MAP && n->type != NODE_NULL) {
			snprintf(why, FILE_WHY,
				"%.*s is a %s: an override of it as a whole is possible, not of "
				"something in it",
				(int)(rest - key - 1 > 200 ? 200 : rest - key - 1), key,
				n->type == NODE_LIST ? "list" : "single value");
			return -ENOTDIR;
		}
		n = key_path_step(n, &rest);
	}
	return 0;
}

int inspect_override(const struct inspection *i, const char *key, char why[FILE_WHY])
{
	struct candidate *current;
	int r = check_published(i, why);

	if (r == 0)
		r = operate_check_key(i->config, key, why);
	if (r == 0)
		r = validation_load(i->config, i->published.generation, i->ledger, &current, why);
	if (r)
		return r;
	r = check_key_way(current->composition.root, key, why);
	candidate_free(current);
	return r;
}

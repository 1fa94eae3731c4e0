/*
 * Versions, differences and explanations. Surprising: everything is read from the state directory
 * anew and composed as for a publication; nothing of a document is kept in memory for this.
 */
#include "inspect.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "config_private.h"
#include "diff.h"
#include "jsontext.h"
#include "keypath.h"

static int no_room(const struct buffer *out, char why[FILE_WHY])
{
	if (out->error)
		snprintf(why, FILE_WHY, "%s",
			out->error == -EMSGSIZE ? "the answer is too long" : strerror(-out->error));
	return out->error;
}

static void boolean(struct buffer *out, const char *name, bool value)
{
	buffer_printf(out, ",\"%s\":%s", name, value ? "true" : "false");
}

/* ---- versions ---- */

static void write_facts(struct buffer *out, const struct version *v)
{
	const char *etag = v->parts[0].etag;
	char url[LOG_URL_SIZE];
	bool first = true;

	jsontext_number(out, "generation", v->generation);
	jsontext_number(out, "pulled_ms", (unsigned long long)v->pulled_ms);
	jsontext_member(out, "sha256", v->sha256);
	jsontext_member(out, "origin", v->origin);
	buffer_append_string(out, ",\"urls\":[");
	for (size_t i = 0; i < v->part_count; i++) {
		const struct part *p = &v->parts[i];

		if (p->absent || strcmp(p->type, "minisig") == 0)
			continue;
		if (!first)
			buffer_append(out, ",", 1);
		log_url_text(url, p->url);
		jsontext_append(out, url, strlen(url));
		first = false;
	}
	buffer_append(out, "]", 1);
	jsontext_member(out, "version", etag[0] ? etag : NULL);
	jsontext_number(out, "bytes", version_bytes(v));
}

static void write_verdict(struct buffer *out, const struct ledger *l, const struct version *v)
{
	for (size_t i = 0; i < l->verdict_count; i++) {
		if (strcmp(l->verdicts[i].sha256, v->sha256) != 0)
			continue;
		buffer_append_string(out, ",\"verdict\":{");
		jsontext_member(out, "by", l->verdicts[i].judge);
		jsontext_member(out, "why", l->verdicts[i].why);
		buffer_append(out, "}", 1);
		return;
	}
}

/* Returns how many bytes it has read. */
static size_t write_version(struct config *c, uint64_t generation, struct buffer *out)
{
	struct candidate *v = candidate_new();
	char why[FILE_WHY] = "out of memory";
	unsigned damaged;
	size_t bytes = 0;

	buffer_append(out, "{", 1);
	if (!v || candidate_load(v, c->store, generation, &damaged, why)) {
		jsontext_number(out, "generation", generation);
		jsontext_member(out, "error", why);
	} else {
		write_facts(out, &v->version);
		if (generation == c->published.generation)
			boolean(out, "published", true);
		write_verdict(out, c->ledger, &v->version);
		bytes = v->body.len;
	}
	buffer_append(out, "}", 1);
	candidate_free(v);
	return bytes;
}

int inspect_history(struct config *c, struct buffer *out, char why[FILE_WHY])
{
	uint64_t generations[STORE_MAX_KEEP];
	size_t count = c->store && c->ledger ? store_list(c->store, generations) : 0, read = 0, i;

	buffer_append(out, "{", 1);
	jsontext_member(out, "name", c->settings->name);
	buffer_append_string(out, ",\"versions\":[");
	for (i = 0; i < count && read < INSPECT_MAX_READ; i++) {
		if (i)
			buffer_append(out, ",", 1);
		read += write_version(c, generations[i], out);
	}
	buffer_append(out, "]", 1);
	if (i < count)
		boolean(out, "truncated", true);
	buffer_append(out, "}", 1);
	return no_room(out, why);
}

/* ---- differences ---- */

static int generation_before(
	struct config *c, uint64_t to, uint64_t *ret_generation, char why[FILE_WHY])
{
	uint64_t generations[STORE_MAX_KEEP];
	size_t count = store_list(c->store, generations);

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

static int write_changes(struct config *c, const struct node *before, const struct node *after,
	struct buffer *out, char why[FILE_WHY])
{
	struct diff *d;
	int r;

	if (!before || !after) {
		jsontext_member(out, "changes", NULL);
		return 0;
	}
	r = diff_new(before, after, &d);
	if (r) {
		snprintf(why, FILE_WHY, "%s",
			r == -EMSGSIZE ? "the answer is too long" : strerror(-r));
		return r;
	}
	buffer_append_string(out, ",\"changes\":[");
	for (size_t i = 0; i < diff_count(d) && !out->error; i++) {
		if (i)
			buffer_append(out, ",", 1);
		diff_write_json(diff_at(d, i), c->settings->mask, out);
	}
	buffer_append(out, "]", 1);
	diff_free(d);
	return 0;
}

int inspect_diff(
	struct config *c, uint64_t from, uint64_t to, struct buffer *out, char why[FILE_WHY])
{
	struct candidate *before = NULL, *after = NULL;
	int r = operate_check_standing(c, why);

	if (r == 0 && to == 0)
		to = c->published.generation;
	if (r == 0 && from == 0)
		r = generation_before(c, to, &from, why);
	if (r == 0)
		r = version_load(c, from, NULL, &before, why);
	if (r == 0)
		r = version_load(c, to, NULL, &after, why);
	if (r == 0) {
		buffer_append(out, "{", 1);
		jsontext_member(out, "name", c->settings->name);
		buffer_append_string(out, ",\"from\":{");
		write_facts(out, &before->version);
		buffer_append_string(out, "},\"to\":{");
		write_facts(out, &after->version);
		buffer_append(out, "}", 1);
		boolean(out, "equal", version_same(&before->version, &after->version));
		r = write_changes(c, before->composition.root, after->composition.root, out, why);
		buffer_append(out, "}", 1);
	}
	candidate_free(before);
	candidate_free(after);
	return r ? r : no_room(out, why);
}

/* ---- explanations ---- */

struct shown {
	struct buffer *out, path;
	char *const *mask;
};

static void write_leaf(struct buffer *out, const struct node *n)
{
	if (n->type == NODE_DOUBLE && !isfinite(n->number))
		jsontext_append(out, n->text, n->text_len);
	else if (document_write(n, DOCUMENT_JSON, out) == 0)
		out->data[--out->len] = '\0'; /* its newline */
}

/* The value at s->path, without what is masked. As deep as a document may be. */
static void write_value(struct shown *s, const struct node *n)
{
	size_t len = s->path.len, number = 0;
	bool map = n->type == NODE_MAP;

	if (s->path.error || keypath_matches(s->mask, s->path.data)) {
		buffer_append_string(s->out, "\"***\"");
		return;
	}
	if (n->type < NODE_LIST) {
		write_leaf(s->out, n);
		return;
	}
	buffer_append(s->out, map ? "{" : "[", 1);
	for (const struct node *child = n->first; child; child = child->next) {
		if (child != n->first)
			buffer_append(s->out, ",", 1);
		if (map) {
			jsontext_append(s->out, child->key, child->key_len);
			buffer_append(s->out, ":", 1);
		}
		keypath_append(&s->path, false, child, number++);
		write_value(s, child);
		s->path.len = len;
	}
	buffer_append(s->out, map ? "}" : "]", 1);
}

static void write_member(
	struct config *c, const char *key, const struct node *n, struct buffer *out)
{
	struct shown s = {.out = out, .mask = c->settings->mask};

	buffer_init(&s.path, DIFF_MAX_PATHS);
	buffer_append_string(&s.path, key);
	if (keypath_matches(s.mask, key))
		boolean(out, "masked", true);
	buffer_append_string(out, ",\"value\":");
	write_value(&s, n);
	buffer_fini(&s.path);
}

static void write_voice(struct config *c, const char *key, const struct merge_voice *v,
	bool has_lines, struct buffer *out)
{
	static const char *const words[] = {"absent", "silent", "sets", "deletes", "replaces"};

	jsontext_member(out, "word", words[v->word]);
	if (has_lines && v->node && v->node->line)
		jsontext_number(out, "line", v->node->line);
	if (v->word == MERGE_SETS)
		write_member(c, key, v->node, out);
	boolean(out, "counts", v->counts);
}

static const char *url_of_layer(const struct candidate *v, size_t layer, char text[LOG_URL_SIZE])
{
	for (size_t i = 0; i < v->version.part_count; i++)
		if (v->pieces[i].layer == layer && !v->pieces[i].signature)
			return log_url_text(text, v->pieces[i].facts->url);
	return NULL;
}

static void write_layer(struct config *c, const struct candidate *v, size_t i, struct buffer *out)
{
	const struct ledger_override *o;

	if (i < v->composition.layer_count) {
		jsontext_member(out, "url", url_of_layer(v, i, (char[LOG_URL_SIZE]){0}));
		jsontext_member(out, "path", LOG_URL(c->settings->layers[i].path));
		return;
	}
	o = &c->ledger->overrides[i - v->composition.layer_count];
	buffer_append_string(out, "\"override\":true");
	jsontext_member(out, "key", o->key);
	jsontext_member(out, "by", o->by);
	jsontext_member(out, "reason", o->reason);
	if (o->until_ms == LEDGER_FOREVER)
		jsontext_member(out, "until_ms", NULL);
	else
		jsontext_number(out, "until_ms", (unsigned long long)o->until_ms);
}

static bool says_something(const struct merge_voice *voices, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (voices[i].word > MERGE_SILENT)
			return true;
	return false;
}

static void write_explanation(struct config *c, const struct candidate *v, const char *key,
	const struct merge_voice *voices, size_t count, struct buffer *out)
{
	const struct node *found = keypath_find(v->composition.root, key);

	buffer_append(out, "{", 1);
	jsontext_member(out, "name", c->settings->name);
	jsontext_number(out, "generation", v->version.generation);
	jsontext_member(out, "key", key);
	boolean(out, "found", found);
	if (found)
		write_member(c, key, found, out);
	buffer_append_string(out, ",\"layers\":[");
	for (size_t i = 0; i < count; i++) {
		buffer_append_string(out, i ? ",{" : "{");
		write_layer(c, v, i, out);
		write_voice(c, key, &voices[i], i < v->composition.layer_count, out);
		buffer_append(out, "}", 1);
	}
	buffer_append_string(out, "]}");
}

int inspect_explain(struct config *c, const char *key, struct buffer *out, char why[FILE_WHY])
{
	struct merge_layer layers[SETTINGS_MAX_LAYERS + LEDGER_MAX_OVERRIDES] = {{0}};
	struct merge_voice voices[SETTINGS_MAX_LAYERS + LEDGER_MAX_OVERRIDES];
	struct candidate *v;
	size_t count;
	int r = operate_check_standing(c, why);

	if (r == 0)
		r = operate_check_key(c, key, why);
	if (r == 0)
		r = version_load(c, c->published.generation, c->ledger, &v, why);
	if (r)
		return r;
	count = compose_layers(&v->composition, layers);
	merge_explain(layers, count, key, voices);
	if (says_something(voices, count)) {
		write_explanation(c, v, key, voices, count, out);
		r = no_room(out, why);
	} else {
		snprintf(
			why, FILE_WHY, "there is no such key, and no layer says anything about it");
		r = -ENOENT;
	}
	candidate_free(v);
	return r;
}

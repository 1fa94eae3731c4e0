/*
 * Where the value of one key comes from: each layer's and each override's effect on it.
 * Surprising: the version is composed with the overrides of now, which may have changed since it
 * was published.
 */
#include "config/inspect.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "config/core.h"
#include "document/diff.h"
#include "document/key_path.h"
#include "text/json_text.h"
#include "text/json_writer.h"

/* ---- values ---- */

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

void inspect_write_value(struct buffer *out, const char *name, char *const *mask, const char *key,
	const struct node *value)
{
	struct shown s = {.out = out, .mask = mask};

	buffer_init(&s.path, DIFF_MAX_PATHS);
	buffer_append_string(&s.path, key);
	json_writer_member(out, name);
	write_value(&s, value);
	buffer_fini(&s.path);
}

static void write_member(
	char *const *mask, const char *key, const struct node *n, struct buffer *out)
{
	if (key_path_matches(mask, key))
		json_writer_boolean(out, "masked", true);
	inspect_write_value(out, "value", mask, key, n);
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

/* ---- layers ---- */

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
	inspect_write_override(out, o);
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
	char *const *mask = inspect_mask(seen->config, values);
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
	int r = inspect_check_published(i, why);

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
		r = inspect_check_room(out, why);
	} else {
		snprintf(
			why, FILE_WHY, "there is no such key, and no layer says anything about it");
		r = -ENOENT;
	}
	candidate_free(v);
	return r;
}

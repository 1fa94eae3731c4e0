/*
 * Parts to a document. Surprising: an override is a layer like any other, made from its key and
 * value, so that merging and explaining need to know nothing of overrides.
 */
#include "version/compose.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "document/extent.h"
#include "text/json_writer.h"
#include "base/log.h"
#include "text/sentence.h"

static const char *type_text(const struct part *p)
{
	return p->type[0] == 'j' ? "JSON" : "YAML";
}

/* ---- layers ---- */

static enum document_type layer_type(const struct compose_piece *piece)
{
	return piece->facts->type[0] == 'j' ? DOCUMENT_JSON : DOCUMENT_YAML;
}

static int parse_layer(const struct settings_config *config, const struct compose_piece *piece,
	const struct kept_layers *kept, struct document **ret, char why[FILE_WHY])
{
	enum document_type type = layer_type(piece);
	struct document_error e = {0};
	char at[64] = "";
	int r;

	if (piece->facts->absent || piece->facts->type[0] == 'b')
		return 0;
	*ret = kept ? kept_layers_find(kept, type, piece->data, piece->facts->len) : NULL;
	if (*ret)
		return 0;
	r = document_parse(type, piece->data, piece->facts->len, 0, ret, &e);
	if (r == 0)
		return 0;
	if (e.line)
		snprintf(at, sizeof(at), ", line %u, column %u", e.line, e.column);
	snprintf(why, FILE_WHY, "%s%sinvalid %s%s: %s",
		config->layer_count > 1 ? LOG_URL(config->layers[piece->layer].path) : "",
		config->layer_count > 1 ? ": " : "", type_text(piece->facts), at,
		r == -ENOMEM ? "out of memory" : e.message);
	if (config->mask) /* of which key it is nobody knows */
		sentence_mask(why);
	return r;
}

/* ---- overrides ---- */

/* True when it is one value of JSON: that is what it means then, as for a document. */
static bool parse_json_value(const char *value, struct document **ret_document)
{
	struct document_error e;
	struct buffer json;
	int r;

	buffer_init(&json, 64u << 10);
	r = buffer_printf(&json, "{\"v\": %s}", value);
	if (r == 0)
		r = document_parse(DOCUMENT_JSON, json.data, json.len, 0, ret_document, &e);
	buffer_fini(&json);
	if (r == 0 && document_root(*ret_document)->count != 1) {
		document_free(*ret_document);
		*ret_document = NULL;
		r = -EINVAL;
	}
	return r == 0;
}

int compose_override_value(const char *value, char **ret_json, char why[FILE_WHY])
{
	struct document *d = NULL;
	struct document_error e = {0};
	char shown[sizeof(e.message)];
	struct buffer yaml, json;
	int r;

	buffer_init(&yaml, 64u << 10);
	buffer_init(&json, 64u << 10);
	r = buffer_printf(&yaml, "v: %s\n", value);
	if (r == 0 && !parse_json_value(value, &d))
		r = document_parse(DOCUMENT_YAML, yaml.data, yaml.len, 0, &d, &e);
	if (r == 0 && document_root(d)->count != 1) {
		snprintf(e.message, sizeof(e.message), "it is more than one value");
		r = -EINVAL;
	}
	if (r == 0) {
		snprintf(e.message, sizeof(e.message), "it holds a number that JSON does not have");
		r = document_write(document_root(d), DOCUMENT_JSON, &json);
	}
	if (r == 0) { /* {"v": VALUE} */
		char *begin = strchr(json.data, ':') + 1, *end = strrchr(json.data, '}');

		*ret_json = strndup(begin, (size_t)(end - begin));
		r = *ret_json ? 0 : -ENOMEM;
	}
	if (r) /* who wrote it knows it, and its key may be masked */
		snprintf(why, FILE_WHY, "the value cannot be read: %s",
			r == -EINVAL
				? sentence_show(shown, sizeof(shown), e.message, AUDIENCE_READER)
				: strerror(-r));
	document_free(d);
	buffer_fini(&yaml);
	buffer_fini(&json);
	return r;
}

/* "a.b\.c" and VALUE to {"a":{"b.c":VALUE}}. */
static int write_override(const struct ledger_override *o, struct buffer *out)
{
	size_t depth = 0;
	struct buffer segment;
	int r = 0;

	buffer_init(&segment, 64u << 10);
	json_writer_begin_object(out, NULL);
	for (const char *p = o->key;; p++) {
		if (*p == '\\' && p[1]) {
			buffer_append(&segment, ++p, 1);
			continue;
		}
		if (*p && *p != '.') {
			buffer_append(&segment, p, 1);
			continue;
		}
		if (segment.error) /* the key would be a shorter one, or empty */
			r = segment.error;
		json_writer_key(out, segment.data ? segment.data : "", segment.len);
		if (*p)
			json_writer_begin_object(out, NULL);
		buffer_clear(&segment);
		depth++;
		if (!*p)
			break;
	}
	buffer_fini(&segment);
	buffer_append_string(out, o->value);
	while (depth--)
		json_writer_end_object(out);
	return r ? r : out->error;
}

static int parse_override(
	const struct ledger_override *o, struct document **ret, char why[FILE_WHY])
{
	struct document_error e = {0};
	struct buffer json;
	int r;

	buffer_init(&json, 256u << 10);
	r = write_override(o, &json);
	if (r == 0)
		r = document_parse(DOCUMENT_JSON, json.data, json.len, 0, ret, &e);
	buffer_fini(&json);
	if (r)
		snprintf(why, FILE_WHY, "the override of %.60s cannot be used: %s", o->key,
			r == -EINVAL ? e.message : strerror(-r));
	return r;
}

/* ---- the whole ---- */

size_t compose_layers(const struct composition *c,
	struct merge_layer ret_layers[SETTINGS_MAX_LAYERS + LEDGER_MAX_OVERRIDES])
{
	size_t n = 0;

	for (size_t i = 0; i < c->layer_count; i++)
		ret_layers[n++].root = c->layers[i] ? document_root(c->layers[i]) : NULL;
	for (size_t i = 0; i < c->override_count; i++)
		ret_layers[n++].root = document_root(c->overrides[i]);
	return n;
}

/* What is merged is at most what the layers have together. */
static int check_bytes(
	const struct settings_config *config, const struct composition *c, char why[FILE_WHY])
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < c->layer_count; i++)
		bytes += c->layers[i] ? document_bytes(c->layers[i]) : 0;
	return extent_check("what the layers say together", bytes, config->max_made, why);
}

static int merge_composition(
	const struct settings_config *config, struct composition *c, char why[FILE_WHY])
{
	struct merge_layer layers[SETTINGS_MAX_LAYERS + LEDGER_MAX_OVERRIDES] = {{0}};
	struct document_error e = {0};
	size_t n = compose_layers(c, layers);
	int r;

	if (config->dir || config->type == SETTINGS_TYPE_BYTES)
		return 0;
	if (n == 1 && layers[0].root) {
		c->root = layers[0].root;
		return 0;
	}
	r = check_bytes(config, c, why);
	if (r)
		return r;
	r = merge_layers(layers, n, &c->merged, &e);
	if (r)
		snprintf(why, FILE_WHY, "the layers cannot be merged: %s",
			r == -EINVAL ? e.message : strerror(-r));
	else
		c->root = document_root(c->merged);
	return r;
}

int compose_document(const struct settings_config *config, const struct compose_piece *pieces,
	size_t count, const struct ledger *ledger, const struct kept_layers *kept,
	struct composition *ret_composition, char why[FILE_WHY])
{
	struct composition c = {.layer_count = config->layer_count};
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++)
		if (!pieces[i].signature)
			r = parse_layer(config, &pieces[i], kept, &c.layers[pieces[i].layer], why);
	for (size_t i = 0; r == 0 && ledger && i < ledger->override_count; i++) {
		r = parse_override(&ledger->overrides[i], &c.overrides[i], why);
		c.override_count += r == 0;
	}
	if (r == 0)
		r = merge_composition(config, &c, why);
	if (r)
		compose_fini(&c);
	else
		*ret_composition = c;
	return r;
}

void compose_keep_layers(const struct composition *c, const struct compose_piece *pieces,
	size_t count, struct kept_layers *kept)
{
	struct kept_layer layers[SETTINGS_MAX_LAYERS];
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		const struct compose_piece *p = &pieces[i];

		if (!p->signature && c->layers[p->layer])
			layers[n++] = (struct kept_layer){
				layer_type(p), p->data, p->facts->len, c->layers[p->layer]};
	}
	kept_layers_replace(kept, layers, n);
}

static void free_layers(struct composition *c)
{
	for (size_t i = 0; i < c->layer_count; i++)
		document_free(c->layers[i]);
	for (size_t i = 0; i < c->override_count; i++)
		document_free(c->overrides[i]);
	c->layer_count = c->override_count = 0;
}

void compose_drop_layers(struct composition *c)
{
	if (c->merged)
		free_layers(c);
}

void compose_fini(struct composition *c)
{
	free_layers(c);
	document_free(c->merged);
	*c = (struct composition){.layer_count = 0};
}

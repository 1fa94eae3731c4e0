/*
 * One publication, and the keys that it changed. Surprising: both versions are read for it once;
 * what it keeps are texts for people.
 */
#include "config/changes_entry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/core.h"
#include "text/json_writer.h"
#include "text/sentence.h"

/* ---- life ---- */

void changes_drop(struct changes_entry *e)
{
	if (!e)
		return;
	for (size_t i = 0; i < e->item_count; i++) {
		free(e->items[i].key);
		free(e->items[i].before);
		free(e->items[i].after);
	}
	free(e->origin);
	free(e->error);
	free(e);
}

static uint64_t previous_generation(struct store *s, uint64_t generation)
{
	uint64_t generations[STORE_MAX_KEEP];
	size_t count = store_list(s, generations);

	for (size_t i = 0; i < count; i++)
		if (generations[i] < generation)
			return generations[i];
	return 0;
}

struct changes_entry *changes_entry_new(
	struct config *config, uint64_t generation, uint64_t *ret_bytes)
{
	struct changes_entry *e = calloc(1, sizeof(*e));
	struct store_file file, other = {0};

	if (!e || !config->current.store ||
		store_describe_file(config->current.store, generation, &file)) {
		free(e);
		return NULL;
	}
	e->config = config;
	e->generation = generation;
	e->at_ms = file.at_ms;
	e->from = previous_generation(config->current.store, generation);
	if (e->from && store_describe_file(config->current.store, e->from, &other))
		other.bytes = 0;
	if (file.bytes > CHANGES_MAX_BYTES || other.bytes > CHANGES_MAX_BYTES) {
		e->error = strdup("it is too long to be compared here: see `pullet diff`");
		*ret_bytes = 0;
		return e;
	}
	*ret_bytes = file.bytes + other.bytes;
	return e;
}

/* ---- comparison ---- */

/* The value on one side, for free(); NULL: there is none, or no memory. */
static char *value_text(const struct diff_change *change, bool after, char *const *mask)
{
	struct buffer b;

	buffer_init(&b, 64u * DIFF_MAX_SHOWN);
	diff_write_value(change, after, mask, &b);
	return b.data;
}

/* False: it is not listed. */
static bool add_item(struct changes_entry *e, const struct diff_change *change, char *const *mask)
{
	struct changes_item *item = &e->items[e->item_count];

	if (e->item_count == CHANGES_MAX_KEYS || strlen(change->path) > CHANGES_MAX_KEY)
		return false;
	*item = (struct changes_item){.kind = change->kind, .key = strdup(change->path)};
	if (!item->key)
		return false;
	item->before = value_text(change, false, mask);
	item->after = value_text(change, true, mask);
	e->item_count++;
	return true;
}

static int compare_documents(struct changes_entry *e, const struct candidate *before,
	const struct candidate *after, char *const *mask)
{
	const struct node *was = before ? before->composition.root : NULL;
	struct diff *d;
	int r;

	if ((before && !was) || !after->composition.root || (!before && e->generation > 1))
		return 0; /* bytes, or the version before is not kept */
	r = diff_new(was, after->composition.root, &d);
	if (r)
		return r;
	e->has_changes = true;
	for (size_t i = 0; i < diff_count(d); i++)
		e->more += !add_item(e, diff_at(d, i), mask);
	diff_free(d);
	return 0;
}

/* A set of files, which are its keys. */
static int compare_files(struct changes_entry *e, const struct candidate *before,
	struct candidate *after, const struct settings_config *settings)
{
	int r = candidate_compare_files(after, before, settings);

	e->has_changes = r == 0 && !after->all_changed;
	for (size_t i = 0; r == 0 && i < after->key_count; i++) {
		const struct diff_change change = {.kind = DIFF_CHANGED, .path = after->keys[i]};

		e->more += !add_item(e, &change, NULL);
	}
	return r;
}

/* As readers saw it. */
static int load_effective(
	struct config *config, uint64_t generation, struct candidate **ret, char why[FILE_WHY])
{
	struct ledger *overrides;
	int r = validation_load_own(config, generation, ret, &overrides, why);

	if (r == 0)
		ledger_free(overrides);
	return r;
}

/* In a first publication all keys are new. 0, or -errno with a sentence. */
static int compare_publication(struct changes_entry *e, struct config *config, char why[FILE_WHY])
{
	struct candidate *before = NULL, *after = NULL;
	int r = load_effective(config, e->generation, &after, why);

	if (r)
		return r;
	e->origin = strdup(version_origin(&after->version));
	if (e->from)
		r = load_effective(config, e->from, &before, why);
	if (r == 0) {
		r = config->settings->dir
			    ? compare_files(e, before, after, config->settings)
			    : compare_documents(e, before, after, config->settings->mask);
		snprintf(why, FILE_WHY, "%s", strerror(-r));
	}
	candidate_free(before);
	candidate_free(after);
	return r;
}

struct config *changes_config(const struct changes_entry *e)
{
	return e->config;
}

void changes_compare(struct changes_entry *e)
{
	char why[FILE_WHY];

	if (compare_publication(e, e->config, why))
		e->error = strdup(why);
}

/* ---- JSON ---- */

static void write_item(const struct changes_item *item, bool values, struct buffer *out)
{
	static const char *const kinds[] = {
		[DIFF_ADDED] = "added", [DIFF_REMOVED] = "removed", [DIFF_CHANGED] = "changed"};

	json_writer_begin_object(out, NULL);
	json_writer_text(out, "key", item->key);
	json_writer_text(out, "op", kinds[item->kind]);
	if (item->before)
		json_writer_text(out, "old", values ? item->before : "***");
	if (item->after)
		json_writer_text(out, "new", values ? item->after : "***");
	json_writer_end_object(out);
}

void changes_entry_write(const struct changes_entry *e, bool values, struct buffer *out)
{
	json_writer_begin_object(out, NULL);
	json_writer_text(out, "config", e->config->settings->name);
	json_writer_number(out, "generation", e->generation);
	if (e->from)
		json_writer_number(out, "from", e->from);
	else
		json_writer_text(out, "from", NULL);
	json_writer_number(out, "at_ms", (unsigned long long)e->at_ms);
	json_writer_text(out, "origin", e->origin);
	if (e->has_changes) {
		json_writer_begin_array(out, "changes");
		for (size_t i = 0; i < e->item_count; i++) {
			write_item(&e->items[i], values, out);
		}
		json_writer_end_array(out);
	} else {
		json_writer_text(out, "changes", NULL);
	}
	json_writer_number(out, "more", e->more);
	if (e->error)
		sentence_member(
			out, "error", e->error, values ? AUDIENCE_OPERATOR : AUDIENCE_READER);
	json_writer_end_object(out);
}

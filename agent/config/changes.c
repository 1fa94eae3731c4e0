/*
 * The newest publications of all configs. Surprising: they are found by a merge of the configs'
 * lists, of which only the first items are read: a thousand configs with ten generations each cost
 * a thousand stat() calls once, and then one for each publication.
 */
#include "config/changes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/core.h"
#include "document/diff.h"
#include "text/json_writer.h"
#include "text/sentence.h"

struct item { /* one change; before and after: texts for people, or NULL */
	enum diff_kind kind;
	char *key, *before, *after;
};

struct changes_entry {
	struct config *config;
	uint64_t generation, from; /* from 0: there is none */
	int64_t at_ms;
	char *origin, *error; /* NULL = not known; none */
	bool has_changes;     /* else they are unknown */
	struct item items[CHANGES_MAX_KEYS];
	size_t item_count, more;
};

struct head { /* of a config's list that is not merged yet; generation 0 = none */
	const struct config *config;
	uint64_t generation;
	int64_t at_ms;
};

struct changes {
	struct head *heads; /* as they were before the merge */
	size_t head_count;
	struct changes_entry *entries[CHANGES_MAX];
	size_t entry_count;
	/* compared, but not merged yet; NULL = none */
	struct changes_entry *kept;
	bool complete;
};

/* ---- one publication ---- */

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
	struct item *item = &e->items[e->item_count];

	if (e->item_count == CHANGES_MAX_KEYS || strlen(change->path) > CHANGES_MAX_KEY)
		return false;
	*item = (struct item){.kind = change->kind, .key = strdup(change->path)};
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

/* In a first publication all keys are new. 0, or -errno with a sentence. */
static int compare_publication(struct changes_entry *e, struct config *config, char why[FILE_WHY])
{
	struct candidate *before = NULL, *after = NULL;
	int r = validation_load(config, e->generation, NULL, &after, why);

	if (r)
		return r;
	e->origin = strdup(after->version.origin);
	if (e->from)
		r = validation_load(config, e->from, NULL, &before, why);
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

static uint64_t previous_generation(struct store *s, uint64_t generation)
{
	uint64_t generations[STORE_MAX_KEEP];
	size_t count = store_list(s, generations);

	for (size_t i = 0; i < count; i++)
		if (generations[i] < generation)
			return generations[i];
	return 0;
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

/* NULL: it is not stored any more, or no memory. *ret_bytes: to read for the comparison; 0 = it is
 * not compared. */
static struct changes_entry *changes_entry_new(
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

/* ---- the newest ---- */

static void note_head(struct head *h, struct config *config)
{
	uint64_t generation = config->current.version.generation;
	struct store_file file;

	if (h->config == config && h->generation == generation)
		return;
	*h = (struct head){.config = config};
	if (generation == 0 || !config->current.store)
		return;
	h->generation = generation;
	h->at_ms = store_describe_file(config->current.store, generation, &file) ? 0 : file.at_ms;
}

/* True: something was published, or the configs have changed. */
static bool note_heads(
	struct changes *c, struct config *const *configs, size_t count, bool *ret_memory)
{
	bool moved = count != c->head_count;
	struct head *heads = c->heads;

	*ret_memory = true;
	if (moved) {
		heads = reallocarray(c->heads, count + 1, sizeof(*heads));
		*ret_memory = heads;
		if (!heads)
			return false;
		for (size_t i = c->head_count; i < count; i++)
			heads[i] = (struct head){NULL, 0, 0};
		c->heads = heads;
		c->head_count = count;
	}
	for (size_t i = 0; i < count; i++) {
		struct head was = heads[i];

		note_head(&heads[i], configs[i]);
		moved |= was.config != heads[i].config || was.generation != heads[i].generation;
	}
	return moved;
}

/* Its place among the old ones; CHANGES_MAX = it is not there. */
static size_t find_old(struct changes_entry *const old[CHANGES_MAX], const struct head *h)
{
	size_t i = 0;

	while (i < CHANGES_MAX &&
		!(old[i] && old[i]->config == h->config && old[i]->generation == h->generation))
		i++;
	return i;
}

/* Known entries may be of files that are removed by now. */
static int64_t written_at(struct changes_entry *const old[CHANGES_MAX], const struct head *h)
{
	size_t i = find_old(old, h);
	struct store_file file;

	if (i < CHANGES_MAX)
		return old[i]->at_ms;
	return store_describe_file(h->config->current.store, h->generation, &file) ? 0 : file.at_ms;
}

static struct head *newest_head(struct head *heads, size_t count)
{
	struct head *best = NULL;

	for (size_t i = 0; i < count; i++)
		if (heads[i].generation && (!best || heads[i].at_ms > best->at_ms))
			best = &heads[i];
	return best;
}

/* The entry of a head, if it was compared since the last merge. */
static struct changes_entry *take_kept(struct changes *c, const struct head *h)
{
	struct changes_entry *e = c->kept;

	if (!e || e->config != h->config || e->generation != h->generation)
		return NULL;
	c->kept = NULL;
	return e;
}

/* Merges up to the first missing entry; keeps known ones. */
static int merge_heads(struct changes *c, struct config *const *configs, uint64_t *read,
	struct changes_entry **ret_missing)
{
	size_t count = c->head_count;
	struct head *heads = malloc((count + 1) * sizeof(*heads)), *h;
	struct changes_entry *old[CHANGES_MAX] = {NULL};

	if (!heads)
		return -ENOMEM;
	memcpy(heads, c->heads, count * sizeof(*heads));
	memcpy(old, c->entries, c->entry_count * sizeof(struct changes_entry *));
	c->entry_count = 0;
	c->complete = true;
	while (c->entry_count < CHANGES_MAX && (h = newest_head(heads, count))) {
		size_t i = find_old(old, h);
		struct changes_entry *e = i < CHANGES_MAX ? old[i] : take_kept(c, h);
		uint64_t bytes = 0;

		if (i < CHANGES_MAX)
			old[i] = NULL;
		else if (!e && *read >= CHANGES_MAX_READ)
			c->complete = false;
		else if (!e)
			e = changes_entry_new(configs[h - heads], h->generation, &bytes);
		if (!c->complete)
			break;
		if (bytes) {
			*read += bytes;
			*ret_missing = e;
			c->complete = false;
			break;
		}
		h->generation = e ? e->from : 0;
		if (h->generation)
			h->at_ms = written_at(old, h);
		if (e)
			c->entries[c->entry_count++] = e;
	}
	/* an incomplete merge may need the rest of the old ones */
	for (size_t i = 0; i < CHANGES_MAX; i++)
		if (old[i] && !c->complete && c->entry_count < CHANGES_MAX)
			c->entries[c->entry_count++] = old[i];
		else
			changes_drop(old[i]);
	free(heads);
	return 0;
}

int changes_find_missing(struct changes *c, struct config *const *configs, size_t count,
	uint64_t *read, struct changes_entry **ret_missing)
{
	bool memory, moved = note_heads(c, configs, count, &memory);
	int r = memory ? 0 : -ENOMEM;

	*ret_missing = NULL;
	if (r == 0 && (moved || !c->complete))
		r = merge_heads(c, configs, read, ret_missing);
	return r ? r : *ret_missing != NULL;
}

void changes_keep(struct changes *c, struct changes_entry *e)
{
	changes_drop(c->kept);
	c->kept = e;
}

/* ---- JSON ---- */

static void write_item(const struct item *item, bool values, struct buffer *out)
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

static void write_publication(const struct changes_entry *e, bool values, struct buffer *out)
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

int changes_write(const struct changes *c, bool values, struct buffer *out)
{
	json_writer_begin_object(out, NULL);
	json_writer_begin_array(out, "publications");
	for (size_t i = 0; i < c->entry_count; i++) {
		write_publication(c->entries[i], values, out);
	}
	json_writer_end_array(out);
	json_writer_boolean(out, "complete", c->complete);
	json_writer_boolean(out, "values", values);
	return json_writer_end_object(out);
}

/* ---- life ---- */

struct changes *changes_new(void)
{
	return calloc(1, sizeof(struct changes));
}

void changes_free(struct changes *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->entry_count; i++)
		changes_drop(c->entries[i]);
	changes_drop(c->kept);
	free(c->heads);
	free(c);
}

void changes_forget(struct changes *c, const struct config *config)
{
	size_t kept = 0;

	for (size_t i = 0; i < c->head_count; i++)
		if (c->heads[i].config == config)
			c->heads[i] = (struct head){NULL, 0, 0};
	for (size_t i = 0; i < c->entry_count; i++) {
		if (c->entries[i]->config == config)
			changes_drop(c->entries[i]);
		else
			c->entries[kept++] = c->entries[i];
	}
	c->entry_count = kept;
	if (c->kept && c->kept->config == config)
		changes_keep(c, NULL);
	c->complete = false; /* merged again */
}

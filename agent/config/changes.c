/*
 * The newest publications of all configs. Surprising: they are found by a merge of the configs'
 * lists, of which only the first items are read: a thousand configs with ten generations each cost
 * a thousand stat() calls once, and then one for each publication.
 */
#include "config/changes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/core.h"
#include "text/json_writer.h"

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

int changes_write(const struct changes *c, bool values, struct buffer *out)
{
	json_writer_begin_object(out, NULL);
	json_writer_begin_array(out, "publications");
	for (size_t i = 0; i < c->entry_count; i++) {
		changes_entry_write(c->entries[i], values, out);
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

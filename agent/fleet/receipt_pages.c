/*
 * Pages by the hashes of what they say. Surprising: what a page says is read once more when it is
 * written, so that a change between the two is not written twice.
 */
#include "fleet/receipt_pages.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "settings/form.h"
#include "text/json_writer.h"

#define MAX_KEY (SETTINGS_MAX_URL + SETTINGS_MAX_NAME + 32)

struct receipt_page {
	bool dirty;        /* changed since it was written */
	bool queued;       /* to be written in this round */
	uint64_t revision; /* of the last write under this lease; 0 = none */
};

struct receipt_item {
	uint64_t hash;  /* of all that the receipt says of the config */
	uint64_t stand; /* of version and state alone */
	int64_t since_ms;
	bool applying;
};

/* ---- life ---- */

int receipt_pages_init(
	struct receipt_pages *p, const struct receipt_pages_setup *setup, int64_t wall_ms)
{
	const struct settings *s = setup->settings;
	size_t count = s->config_count ? (s->config_count - 1) / RECEIPT_CONFIGS + 1 : 1;

	*p = (struct receipt_pages){.setup = *setup, .started_ms = wall_ms, .count = count};
	p->items = calloc(s->config_count + 1, sizeof(*p->items));
	p->pages = calloc(count, sizeof(*p->pages));
	if (asprintf(&p->key, "%s%s", s->report.prefix, setup->host) < 0)
		p->key = NULL;
	return p->items && p->pages && p->key ? 0 : -ENOMEM;
}

void receipt_pages_fini(struct receipt_pages *p)
{
	free(p->items);
	free(p->pages);
	free(p->key);
	*p = (struct receipt_pages){.count = 0};
}

/* ---- content ---- */

static uint64_t hash_text(uint64_t hash, const char *text)
{
	return hash_bytes(hash, text, strlen(text) + 1);
}

static uint64_t hash_stand(const struct receipt_config *c)
{
	const uint64_t numbers[] = {c->generation, (uint64_t)c->state, (uint64_t)c->pulled_ms};
	uint64_t hash = hash_bytes(HASH_START, numbers, sizeof(numbers));

	return hash_text(hash_text(hash_text(hash, c->version), c->others), c->digest);
}

/* Fills in the receipt of one config, and marks its page if that changed. */
static void update_item(
	struct receipt_pages *p, size_t i, struct receipt_config *c, struct receipt_texts *texts)
{
	struct receipt_item *item = &p->items[i];
	uint64_t hash, stand;

	*c = (struct receipt_config){.version = "",
		.others = "",
		.digest = "",
		.why = "",
		.rejected = "",
		.rejected_digest = ""};
	p->setup.look(p->setup.arg, i, c, texts);
	stand = hash_stand(c);
	hash = hash_text(hash_text(stand, c->why), c->rejected);
	hash = hash_text(hash, c->rejected_digest);
	item->applying = c->state == RECEIPT_APPLYING;
	p->saw_applying |= item->applying;
	if (stand != item->stand)
		item->since_ms = p->setup.sys->wall_ms();
	if (hash != item->hash)
		p->pages[i / RECEIPT_CONFIGS].dirty = true;
	item->stand = stand;
	item->hash = hash;
	c->since_ms = item->since_ms;
}

void receipt_pages_update(struct receipt_pages *p, size_t config)
{
	struct receipt_config c;
	struct receipt_texts texts;

	update_item(p, config, &c, &texts);
}

void receipt_pages_update_all(struct receipt_pages *p, bool only_applying)
{
	for (size_t i = 0; i < p->setup.settings->config_count; i++)
		if (p->items[i].applying || !only_applying)
			receipt_pages_update(p, i);
}

bool receipt_pages_take_applying(struct receipt_pages *p)
{
	bool saw = p->saw_applying;

	p->saw_applying = false;
	return saw;
}

bool receipt_pages_dirty(const struct receipt_pages *p)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->pages[i].dirty)
			return true;
	return false;
}

void receipt_pages_forget(struct receipt_pages *p)
{
	for (size_t i = 0; i < p->count; i++)
		p->pages[i] = (struct receipt_page){.dirty = true};
}

/* ---- rounds ---- */

void receipt_pages_queue(struct receipt_pages *p)
{
	for (size_t i = 0; i < p->count; i++)
		p->pages[i].queued = p->pages[i].dirty;
}

bool receipt_pages_next(const struct receipt_pages *p, size_t *ret_page)
{
	for (size_t i = 0; i < p->count; i++) {
		if (!p->pages[i].queued)
			continue;
		*ret_page = i;
		return true;
	}
	return false;
}

/* ---- requests and answers ---- */

static int write_page(struct receipt_pages *p, size_t page, struct buffer *out)
{
	const struct settings *s = p->setup.settings;
	size_t end = (page + 1) * RECEIPT_CONFIGS;
	const struct receipt receipt = {.host = p->setup.host,
		.pullet = PULLET_VERSION,
		.since_ms = p->started_ms,
		.page = page + 1,
		.pages = p->count,
		.labels = s->labels,
		.label_count = s->label_count};
	struct receipt_texts texts;
	struct receipt_config c;

	buffer_init(out, RECEIPT_MAX);
	receipt_begin(&receipt, out);
	for (size_t i = page * RECEIPT_CONFIGS; i < end && i < s->config_count; i++) {
		update_item(p, i, &c, &texts);
		c.name = s->configs[i]->name;
		receipt_add(&c, out);
	}
	return receipt_end(out);
}

static void page_key(const struct receipt_pages *p, size_t page, char ret_key[MAX_KEY])
{
	if (page)
		snprintf(ret_key, MAX_KEY, "%s#%zu", p->key, page + 1);
	else
		snprintf(ret_key, MAX_KEY, "%s", p->key);
}

/* The page is unchanged since our last write. */
static void append_comparison(const struct receipt_pages *p, size_t page, struct buffer *body)
{
	char key[MAX_KEY];

	page_key(p, page, key);
	etcd_store_compare(body, key, &etcd_store_unchanged, p->pages[page].revision);
}

void receipt_pages_append_unchanged(const struct receipt_pages *p, struct buffer *body)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->pages[i].revision)
			append_comparison(p, i, body);
}

int receipt_pages_build_write(
	struct receipt_pages *p, size_t page, uint64_t lease, struct buffer *body)
{
	struct buffer value;
	char key[MAX_KEY];
	int e = write_page(p, page, &value);

	p->pages[page].dirty = false;
	page_key(p, page, key);
	json_writer_begin_object(body, NULL);
	if (e == 0 && p->pages[page].revision) {
		json_writer_begin_array(body, "compare");
		append_comparison(p, page, body);
		json_writer_end_array(body);
	}
	if (e == 0) {
		json_writer_begin_array(body, "success");
		etcd_store_put(body, key, &value, lease);
		json_writer_end_array(body);
		json_writer_end_object(body);
	}
	buffer_fini(&value);
	return e;
}

int receipt_pages_written(struct receipt_pages *p, size_t page, const struct etcd_store_answer *a)
{
	struct receipt_page *written = &p->pages[page];
	bool again = written->revision;

	if (!node_is_true(a->root, "succeeded")) {
		written->revision = 0;
		written->dirty = true; /* still queued */
		return -EEXIST;
	}
	written->revision = a->revision;
	written->queued = false;
	return again;
}

/*
 * Trees of layers by their texts. Surprising: the texts are kept beside them and compared, which
 * costs less than a digest of what comes and leaves nothing to chance; a text is a fraction of its
 * tree.
 */
#include "version/kept_layers.h"

#include <stdlib.h>
#include <string.h>

#include "settings/settings.h"

struct kept_layers {
	struct kept_shelf *shelf;
	struct kept_layers *next, *previous; /* on the shelf */
	bool lent;
	size_t bytes; /* as counted on the shelf */
	size_t count;
	struct kept_layer layers[SETTINGS_MAX_LAYERS];
};

static void free_layer(struct kept_layer *l)
{
	free((char *)l->text);
	document_free(l->document);
}

/* ---- the shelf ---- */

static void take_off(struct kept_layers *k)
{
	*(k->previous ? &k->previous->next : &k->shelf->first) = k->next;
	*(k->next ? &k->next->previous : &k->shelf->last) = k->previous;
	k->next = k->previous = NULL;
}

static void put_last(struct kept_layers *k)
{
	struct kept_shelf *s = k->shelf;

	k->previous = s->last;
	*(s->last ? &s->last->next : &s->first) = k;
	s->last = k;
}

static void drop_trees(struct kept_layers *k)
{
	for (size_t i = 0; i < k->count; i++)
		free_layer(&k->layers[i]);
	k->count = 0;
	k->shelf->bytes -= k->bytes;
	k->bytes = 0;
}

struct kept_layers *kept_layers_new(struct kept_shelf *shelf)
{
	struct kept_layers *k = calloc(1, sizeof(*k));

	if (k) {
		k->shelf = shelf;
		k->lent = true;
	}
	return k;
}

void kept_layers_free(struct kept_layers *k)
{
	if (!k)
		return;
	if (!k->lent)
		take_off(k);
	drop_trees(k);
	free(k);
}

void kept_layers_lend(struct kept_layers *k)
{
	take_off(k);
	k->lent = true;
}

void kept_layers_return(struct kept_layers *k)
{
	struct kept_shelf *s = k->shelf;
	size_t bytes = 0;

	for (size_t i = 0; i < k->count; i++)
		bytes += k->layers[i].len + document_memory(k->layers[i].document);
	s->bytes += bytes - k->bytes;
	k->bytes = bytes;
	k->lent = false;
	put_last(k);
	for (struct kept_layers *old = s->first; old && s->bytes > KEPT_LAYERS_MAX_BYTES;
		old = old->next)
		drop_trees(old);
}

/* ---- the trees ---- */

struct document *kept_layers_find(
	const struct kept_layers *k, enum document_type type, const char *text, size_t len)
{
	for (size_t i = 0; i < k->count; i++) {
		const struct kept_layer *l = &k->layers[i];

		if (l->type == type && l->len == len && memcmp(l->text, text, len) == 0)
			return document_share(l->document);
	}
	return NULL;
}

/* Takes out the layer of this tree, if it is kept. */
static bool take_layer(
	struct kept_layers *k, const struct document *document, struct kept_layer *ret)
{
	for (size_t i = 0; i < k->count; i++) {
		if (k->layers[i].document != document)
			continue;
		*ret = k->layers[i];
		k->layers[i] = k->layers[--k->count];
		return true;
	}
	return false;
}

static bool copy_layer(const struct kept_layer *from, struct kept_layer *ret)
{
	char *text = malloc(from->len);

	if (!text)
		return false;
	memcpy(text, from->text, from->len);
	*ret = *from;
	ret->text = text;
	document_share(from->document);
	return true;
}

void kept_layers_replace(struct kept_layers *k, const struct kept_layer *layers, size_t count)
{
	struct kept_layer now[SETTINGS_MAX_LAYERS] = {{0}};
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		n += take_layer(k, layers[i].document, &now[n]) || copy_layer(&layers[i], &now[n]);
	for (size_t i = 0; i < k->count; i++)
		free_layer(&k->layers[i]);
	memcpy(k->layers, now, n * sizeof(now[0]));
	k->count = n;
}

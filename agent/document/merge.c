/*
 * Layers to one document. Surprising: not one layer after the other, but all of them at once: the
 * children of all mappings that meet at a path are sorted by key, and what each layer made of a key
 * is followed over the entries of that key. So nothing is built that a later layer drops, and the
 * node limit is that of the result alone.
 */
#include "document/merge.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "document/key_path.h"

/* A value in a layer: of the mappings that meet at a path, or of their children. */
struct entry {
	const struct node *node;
	uint64_t begin; /* of its key, as a number: most keys differ there */
	unsigned index; /* among all children, layer by layer */
	unsigned char layer;
};

/* The result for a key: the last `count` entries up to `end`, one value or several mappings. */
struct outcome {
	size_t end, count;       /* 0 = nothing */
	unsigned char key_style; /* of the entry that brought the key into the result */
};

struct merge {
	struct document *document;
	struct document_error *error;
};

static bool deletes_key(const struct entry *e)
{
	return e->node->type == NODE_NULL && e->layer > 0;
}

/* A node of the result, without children. */
static int add_result(
	struct merge *m, struct node *parent, const struct entry *from, struct node **ret_node)
{
	const struct node *f = from->node;
	struct node *n = document_add_copy(
		m->document, parent, parent ? f->key : NULL, parent ? f->key_len : 0, f, m->error);

	if (!n && m->error->message[0])
		snprintf(m->error->message, sizeof(m->error->message),
			"together the layers have more than %d values: split the config",
			DOCUMENT_MAX_NODES);
	if (!n)
		return m->error->message[0] ? -EINVAL : -ENOMEM;
	node_copy_key(n, f);
	n->layer = from->layer;
	*ret_node = n;
	return 0;
}

/* Copies a value that meets no other. Lists are copied as they are. */
static int copy_merged(struct merge *m, struct node *parent, const struct entry *from, bool in_list)
{
	struct entry child = {.layer = from->layer};
	struct node *n;
	int r = add_result(m, parent, from, &n);

	in_list |= from->node->type == NODE_LIST;
	if (from->node->type != NODE_LIST && from->node->type != NODE_MAP)
		return r;
	for (child.node = from->node->first; child.node && r == 0; child.node = child.node->next)
		if (in_list || !deletes_key(&child))
			r = copy_merged(m, n, &child, in_list);
	return r;
}

static uint64_t begin_of_key(const struct node *n)
{
	uint64_t begin = 0;

	memcpy(&begin, n->key, n->key_len < sizeof(begin) ? n->key_len : sizeof(begin));
	return be64toh(begin);
}

static int by_key_then_layer(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int c = (x->begin > y->begin) - (x->begin < y->begin);

	if (c == 0)
		c = node_compare_keys(x->node, y->node);
	return c ? c : (x->index > y->index) - (x->index < y->index);
}

/* Follows one key from sorted[begin] through the layers. Returns the end of its entries. Stores the
 * outcome at the index of the entry that brought the key into the result. */
static size_t follow_key(
	const struct entry *sorted, size_t begin, size_t total, struct outcome *outcomes)
{
	struct outcome o = {0};
	size_t i = begin, place = 0;

	for (; i < total && node_compare_keys(sorted[begin].node, sorted[i].node) == 0; i++) {
		const struct node *n = sorted[i].node;

		if (deletes_key(&sorted[i])) {
			o.count = 0;
			continue;
		}
		if (o.count == 0) {
			place = sorted[i].index;
			o.key_style = n->key_style;
		}
		if (o.count > 0 && n->type == NODE_MAP && sorted[i - 1].node->type == NODE_MAP)
			o.count++;
		else
			o.count = 1;
		o.end = i + 1;
	}
	if (o.count)
		outcomes[place] = o;
	return i;
}

static int merge_children(
	struct merge *m, struct node *out, const struct entry *maps, size_t count);

static int add_outcomes(struct merge *m, struct node *out, const struct entry *sorted,
	const struct outcome *outcomes, size_t total)
{
	struct node *n;
	int r = 0;

	for (size_t i = 0; i < total && r == 0; i++) {
		const struct entry *first = sorted + outcomes[i].end - outcomes[i].count;

		if (outcomes[i].count == 0)
			continue;
		if (outcomes[i].count == 1)
			r = copy_merged(m, out, first, false);
		else
			r = add_result(m, out, first, &n);
		if (r == 0)
			out->last->key_style = outcomes[i].key_style;
		if (r == 0 && outcomes[i].count > 1)
			r = merge_children(m, n, first, outcomes[i].count);
	}
	return r;
}

/* Fills out, a mapping without children, from the mappings that meet there, in layer order. As deep
 * as a document may be. */
static int merge_children(struct merge *m, struct node *out, const struct entry *maps, size_t count)
{
	struct outcome *outcomes;
	struct entry *sorted;
	size_t total = 0;
	unsigned n = 0;
	int r = -ENOMEM;

	for (size_t i = 0; i < count; i++)
		total += maps[i].node->count;
	if (total == 0)
		return 0;
	sorted = calloc(total, sizeof(*sorted));
	outcomes = calloc(total, sizeof(*outcomes));
	if (sorted && outcomes) {
		for (size_t i = 0; i < count; i++)
			for (const struct node *c = maps[i].node->first; c; c = c->next, n++)
				sorted[n] = (struct entry){c, begin_of_key(c), n, maps[i].layer};
		qsort(sorted, total, sizeof(*sorted), by_key_then_layer);
		for (size_t i = 0; i < total;)
			i = follow_key(sorted, i, total, outcomes);
		r = add_outcomes(m, out, sorted, outcomes, total);
	}
	free(outcomes);
	free(sorted);
	return r;
}

int merge_layers(const struct merge_layer *layers, size_t count, struct document **ret_document,
	struct document_error *ret_error)
{
	static const struct node nothing = {.type = NODE_MAP};
	struct entry maps[MERGE_MAX_LAYERS] = {{.node = &nothing}};
	struct merge m = {document_new(), ret_error};
	size_t present = 0;
	struct node *root;
	int r = -ENOMEM;

	assert(count <= MERGE_MAX_LAYERS);
	*ret_error = (struct document_error){0};
	for (size_t i = 0; i < count; i++)
		if (layers[i].root)
			maps[present++] =
				(struct entry){.node = layers[i].root, .layer = (unsigned char)i};
	if (m.document)
		r = add_result(&m, NULL, &maps[0], &root);
	if (r == 0)
		r = merge_children(&m, root, maps, present);
	if (r) {
		document_free(m.document);
		return r;
	}
	*ret_document = m.document;
	return 0;
}

/* ---- explain ---- */

/* How far a layer goes along a path. */
struct reach {
	size_t maps;              /* mappings from the root on, one in the other */
	const struct node *value; /* what follows them; NULL = nothing, or the path ends */
	const struct node *found; /* the node at the path, or NULL */
};

static struct reach reach_of(const struct node *n, const char *path)
{
	struct reach r = {0};

	while (n) {
		if (!r.value && n->type == NODE_MAP)
			r.maps++;
		else if (!r.value)
			r.value = n;
		r.found = path ? NULL : n;
		n = path ? key_path_step(n, &path) : NULL;
	}
	return r;
}

/* The mapping so many steps below the root. */
static const struct node *map_at(const struct node *n, const char *path, size_t steps)
{
	while (steps-- > 0)
		n = key_path_step(n, &path);
	return n;
}

/* What a layer does at the path. in_way: behind so many mappings, a value of earlier layers ends
 * the path (SIZE_MAX: none does). */
static struct merge_effect layer_effect(const struct merge_layer *layer, bool patch,
	const char *path, struct reach r, size_t in_way)
{
	if (!layer->root)
		return (struct merge_effect){.kind = MERGE_ABSENT};
	if (r.value && r.value->type == NODE_NULL && patch)
		return (struct merge_effect){.kind = MERGE_DELETES, .node = r.value};
	if (r.found)
		return (struct merge_effect){.kind = MERGE_SETS, .node = r.found, .counts = true};
	if (r.value)
		return (struct merge_effect){.kind = MERGE_REPLACES, .node = r.value};
	if (in_way < r.maps) /* a mapping instead of a list or a single value */
		return (struct merge_effect){
			.kind = MERGE_REPLACES, .node = map_at(layer->root, path, in_way)};
	return (struct merge_effect){.kind = MERGE_SILENT};
}

bool merge_explain(const struct merge_layer *layers, size_t count, const char *path,
	struct merge_effect *ret_effects)
{
	size_t in_way = SIZE_MAX;
	bool there = false;

	for (size_t i = 0; i < count; i++) {
		struct reach r = reach_of(layers[i].root, path);
		struct merge_effect v = layer_effect(&layers[i], i > 0, path, r, in_way);
		bool joins = v.kind == MERGE_SETS && !r.value && in_way == SIZE_MAX;

		ret_effects[i] = v;
		if (v.kind == MERGE_ABSENT || v.kind == MERGE_SILENT)
			continue;
		for (size_t k = 0; k < i && !joins; k++)
			ret_effects[k].counts = false;
		there = v.counts;
		in_way = r.value && v.kind != MERGE_DELETES ? r.maps : SIZE_MAX;
	}
	return there;
}

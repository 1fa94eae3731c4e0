/*
 * Layers to one document, and what each of them does to a key.
 *
 * The rule is JSON Merge Patch (RFC 7386): the first layer is the document, each later one a patch.
 * Mappings merge deeply; everything else, lists too, is replaced whole; a null in a patch deletes
 * the key, and is itself never in the result, also not when it comes in a mapping that is new. A
 * null in the first layer is a value (so that a layer merged with nothing is that layer), and so is
 * one inside a list. An absent layer is an empty mapping; if it is the first one, all others are
 * still patches.
 *
 * Keys keep the order in which they came: a replaced one keeps its place, one that was deleted and
 * comes again is a new one. Merging all at once gives what merging one after the other gives.
 *
 * Threads: any. Ownership: the result is a document of its own; layers are borrowed for the call.
 * Errors: -EINVAL with a message (too many nodes), -ENOMEM. Bounds: MERGE_MAX_LAYERS; the result
 * has those of any document. Time: O(n log n) of all nodes.
 */
#ifndef PULLET_MERGE_H
#define PULLET_MERGE_H

#include <stdbool.h>
#include <stddef.h>

#include "document/document.h"

#define MERGE_MAX_LAYERS 256

struct merge_layer {
	const struct node *root; /* a mapping; NULL = absent (optional) */
	const char *name;        /* for people; not read here */
};

/* Merges them. Each node of the result has line, column and key's place of where it came from, and
 * the index of that layer; of a mapping, those of the first layer that it was merged from. */
int merge_layers(const struct merge_layer *layers, size_t count, struct document **ret_document,
	struct document_error *ret_error);

/* For `pullet explain`: what one layer does at one path. */
enum merge_effect_kind {
	MERGE_ABSENT,  /* the layer is not there */
	MERGE_SILENT,  /* nothing: it changes nothing there */
	MERGE_SETS,    /* gives it a value (a mapping joins the mappings of earlier layers) */
	MERGE_DELETES, /* a null at the path, or above it, drops what earlier layers gave */
	MERGE_REPLACES /* a value above the path, without that path in it, drops the same */
};

struct merge_effect {
	enum merge_effect_kind kind;
	const struct node *node; /* the value, the null, or the value above; else NULL */
	bool counts; /* SETS, and it is the value in the result, or a part of that mapping */
};

/* Fills one effect for each layer. True when the path is in the result: then at least one counts.
 */
bool merge_explain(const struct merge_layer *layers, size_t count, const char *path,
	struct merge_effect *ret_effects);

#endif

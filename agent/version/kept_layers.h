/*
 * The trees of a config's layers, as its last version was read: a layer that comes again with the
 * same bytes is not parsed again.
 *
 * A tree is found by all that it was made of, the type and each byte of the text: never by a name,
 * a place or an ETag. So it cannot be another config's or an older version's, whatever a server
 * says.
 *
 * Threads: a shelf is the loop's. What a config keeps is the loop's too, but between
 * kept_layers_lend() and kept_layers_return() it is of the one thread that it is lent to.
 * Ownership: owns copies of the texts, and a share of each tree (document_share()). Bounds:
 * SETTINGS_MAX_LAYERS trees of a config; KEPT_LAYERS_MAX_BYTES of all on a shelf, counted when one
 * is returned: those used longest ago are dropped first. Errors: none; what there is no memory for
 * is not kept.
 */
#ifndef PULLET_KEPT_LAYERS_H
#define PULLET_KEPT_LAYERS_H

#include <stddef.h>

#include "document/document.h"

#define KEPT_LAYERS_MAX_BYTES (16u << 20)

struct kept_layer {
	enum document_type type; /* as it was read */
	const char *text;
	size_t len;
	struct document *document;
};

struct kept_layers; /* of one config */

struct kept_shelf {                       /* of an agent; zeros = empty. Fields are private */
	struct kept_layers *first, *last; /* the one returned last is the last */
	size_t bytes;                     /* of these and of those that are lent */
};

/* An empty one, which is lent. NULL when there is no memory. */
struct kept_layers *kept_layers_new(struct kept_shelf *shelf);
/* Frees it with its trees, lent or not. */
void kept_layers_free(struct kept_layers *k);
void kept_layers_lend(struct kept_layers *k);
/* Puts it back, then drops trees until the shelf holds what it may. */
void kept_layers_return(struct kept_layers *k);

/* --- while it is lent --- */

/* A share of the tree of this text, or NULL. */
struct document *kept_layers_find(
	const struct kept_layers *k, enum document_type type, const char *text, size_t len);
/* Keeps these, at most SETTINGS_MAX_LAYERS, and nothing else: copies and shares what it has not. */
void kept_layers_replace(struct kept_layers *k, const struct kept_layer *layers, size_t count);

#endif

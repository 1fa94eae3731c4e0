/*
 * From the bytes of a version's parts to one document: each layer parsed under its limits, the
 * layers merged, the operator's overrides on top.
 *
 * Threads: any. Ownership: the composition owns its documents, which it may share with what is
 * kept, and borrows nothing but the ledger's texts during the call. Errors: -EINVAL, -ENOMEM,
 * -EMSGSIZE with a sentence in why. Bounds: SETTINGS_MAX_LAYERS layers, LEDGER_MAX_OVERRIDES
 * overrides, each a document's limits.
 */
#ifndef PULLET_COMPOSE_H
#define PULLET_COMPOSE_H

#include "document/document.h"
#include "version/ledger.h"
#include "document/merge.h"
#include "settings/settings.h"
#include "version/kept_layers.h"
#include "version/store.h"

struct compose_piece { /* the bytes of one part; borrowed */
	const struct part *facts;
	const char *data;
	size_t layer;
	bool signature;
	const char *mismatch; /* how it does not fit the digests that came with it; "" = it does */
};

struct composition {
	size_t layer_count, override_count;
	struct document *layers[SETTINGS_MAX_LAYERS]; /* NULL: absent, or bytes */
	struct document *overrides[LEDGER_MAX_OVERRIDES];
	struct document *merged; /* NULL: a single layer, and no override */
	const struct node *root; /* the result; NULL: bytes, or a set of files */
};

/* kept: layers that are not parsed again; NULL = none. */
int compose_document(const struct settings_config *config, const struct compose_piece *pieces,
	size_t count, const struct ledger *ledger, const struct kept_layers *kept,
	struct composition *ret_composition, char why[FILE_WHY]);
/* Keeps the layers of a composition that was made of these pieces, instead of those kept before. */
void compose_keep_layers(const struct composition *c, const struct compose_piece *pieces,
	size_t count, struct kept_layers *kept);
void compose_fini(struct composition *c);
/* Frees the layers of what is merged: nothing but the result is wanted any more. */
void compose_drop_layers(struct composition *c);
/* The layers as merge_layers() takes them, the overrides behind the layers. Returns how many. */
size_t compose_layers(const struct composition *c,
	struct merge_layer ret_layers[SETTINGS_MAX_LAYERS + LEDGER_MAX_OVERRIDES]);
/* What an override says, as JSON on the heap: value is YAML of one value. 0, -EINVAL with a
 * sentence, -ENOMEM. */
int compose_override_value(const char *value, char **ret_json, char why[FILE_WHY]);

#endif

/*
 * A version on its way from the server (or from the state directory) to its publication: bytes,
 * document, and the outputs to publish.
 *
 * Threads: the loop's; while a publication runs on the worker nothing else touches it. Ownership:
 * owns everything in it. Errors: -errno with a sentence in why. Bounds: CANDIDATE_MAX_BYTES, and
 * those of the documents.
 */
#ifndef PULLET_CANDIDATE_H
#define PULLET_CANDIDATE_H

#include "version/compose.h"
#include "pull/pull.h"
#include "publish/image.h"
#include "publish/publish.h"
#include "version/store.h"

#define CANDIDATE_MAX_BYTES (256u << 20)
#define CANDIDATE_MAX_TEXT (1u << 30)

struct candidate {
	_Atomic unsigned holders; /* of the body, beside the owner; private */
	struct version version;
	struct buffer body; /* the bytes of all parts, one after the other */
	struct compose_piece pieces[VERSION_MAX_PARTS]; /* into body */
	char *mismatches[VERSION_MAX_PARTS]; /* as their servers gave them; NULL = none */
	struct composition composition;
	struct buffer text; /* for the file, when it is not the body */
	bool has_text;
	bool text_as_saved; /* it is the product of its state file */
	void *image;        /* the snapshot, or NULL */
	size_t image_len;
	struct publication publication;
	bool all_changed; /* the changed keys are unknown */
	char **keys;      /* changed ones; NULL-ended, or NULL */
	char *key_texts;  /* theirs, one after the other: freed at once; private */
	size_t key_count;
	int64_t expires_ms; /* wall clock; INT64_MAX = never */
	char *unsigned_why; /* accepted before, and not signed by the keys of now; else NULL */
	uint64_t revs[SETTINGS_MAX_LAYERS];
};

/* An empty one; NULL when there is no memory. */
struct candidate *candidate_new(void);
void candidate_free(struct candidate *c);
/* Keeps it, and its body as it is, until one more candidate_free(); both on the loop. NULL: the
 * body is gone, for it is in the store. */
struct candidate *candidate_hold(struct candidate *c);
/* It is published: frees the body, of which the length stays, unless somebody holds it; text and
 * snapshot. On any thread. */
void candidate_drop_published(struct candidate *c);
/* From a pull. Parts that did not change are those of `held`, the version that the
 * requests were conditional on; body: its bytes, NULL = they are in the store. */
int candidate_take(struct candidate *c, const struct pull *g, struct store *store,
	const struct version *held, const struct buffer *body, int64_t wall_ms, char why[FILE_WHY]);
/* From a version of the store; 0 = the newest. */
int candidate_load(struct candidate *c, struct store *store, uint64_t generation,
	unsigned *ret_damaged, char why[FILE_WHY]);
/* Version, but for its decisions, and bytes of another one; NULL when there is no memory. */
struct candidate *candidate_copy(const struct candidate *from);
/* Appends the product (settings_makes_product()) to the body that is saved: a start shows it as it
 * was, runs no program, and needs no template to be as good as it was.
 * 0 or the buffer's error. */
int candidate_append_product(struct candidate *c);
/* Parses and merges. kept: layers that are not parsed again; NULL = none. */
int candidate_compose(struct candidate *c, const struct settings_config *config,
	const struct ledger *ledger, const struct kept_layers *kept, char why[FILE_WHY]);
/* Text and snapshot; `format: run` is not done here. version_text: for the snapshot, or NULL. */
int candidate_outputs(struct candidate *c, const struct settings_config *config,
	const char *version_text, bool snapshot, char why[FILE_WHY]);
/* Notes the keys that differ from before (NULL = unknown: all may). */
int candidate_compare(struct candidate *c, const struct node *before);
/* The same of a set of files, whose names are the keys; both are composed. */
int candidate_compare_files(
	struct candidate *c, const struct candidate *before, const struct settings_config *config);
/* Frees all but version, bytes and what came with them. */
void candidate_drop_outputs(struct candidate *c);
/* For the file. */
const struct buffer *candidate_text(const struct candidate *c);

#endif

/*
 * The last publications of all configs, and the keys that each changed, as JSON. Changes nothing.
 *
 * An entry is read from the state directory once, by the first request, and kept: the next requests
 * cost nothing until something is published.
 *
 * Threads: the loop's. Ownership: configs are borrowed; before one is freed, changes_forget().
 * Bounds: CHANGES_MAX entries; for one answer about CHANGES_MAX_READ bytes are read at most.
 * Errors: -ENOMEM, -EMSGSIZE.
 */
#ifndef PULLET_CHANGES_H
#define PULLET_CHANGES_H

#include "config/changes_entry.h"

#define CHANGES_MAX 20
#define CHANGES_MAX_READ (4u << 20)

struct changes;

/* NULL when there is no memory. */
struct changes *changes_new(void);
void changes_free(struct changes *c);
/* Drops all entries of this config. */
void changes_forget(struct changes *c, const struct config *config);

/* Finds publications since the last call. 1 and *ret_missing, the caller's: compare it, keep it,
 * and call again; 0: nothing is missing, or *read has come to CHANGES_MAX_READ; or -ENOMEM. *read:
 * 0 when an answer begins. */
int changes_find_missing(struct changes *c, struct config *const *configs, size_t count,
	uint64_t *read, struct changes_entry **ret_missing);
/* Takes it. */
void changes_keep(struct changes *c, struct changes_entry *e);

/* {"publications":[...],"complete":true,"values":true}, newest first. Each: "config", "generation",
 * "from" (the generation before; null: that is not kept, or there was none), "at_ms" (wall clock,
 * when it was written), "origin" ("pull", or who asked for what, and why; null: not known),
 * "changes" (null: there are no keys, or the version before is not kept any more), "more" (changes
 * that are not listed) and, where it could not be compared, "error".
 *
 * A change: {"key","op":"added"|"removed"|"changed","old","new"}; the last two are texts for
 * people, as diff_write_text() shows values, in which those of the config's mask are ***; all of
 * them if values is false. Files of a set have neither. complete false: the next request has the
 * rest. */
int changes_write(const struct changes *c, bool values, struct buffer *out);

#endif

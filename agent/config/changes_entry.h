/*
 * One publication of a config, and the keys that it changed.
 *
 * Threads: the loop's; changes_compare(), which reads and parses, any (config_task). Bounds:
 * CHANGES_MAX_KEYS changes, of keys of at most CHANGES_MAX_KEY bytes; versions whose file is longer
 * than CHANGES_MAX_BYTES are not compared. Fields are for changes.c.
 */
#ifndef PULLET_CHANGES_ENTRY_H
#define PULLET_CHANGES_ENTRY_H

#include "lib/buffer.h"
#include "config/config.h"
#include "document/diff.h"

#define CHANGES_MAX_KEYS 20
#define CHANGES_MAX_KEY 512
#define CHANGES_MAX_BYTES (1u << 20)

struct changes_item { /* one change; before and after: texts for people, or NULL */
	enum diff_kind kind;
	char *key, *before, *after;
};

struct changes_entry {
	struct config *config;
	uint64_t generation, from; /* from 0: there is none */
	int64_t at_ms;
	char *origin, *error; /* NULL = not known; none */
	bool has_changes;     /* else they are unknown */
	struct changes_item items[CHANGES_MAX_KEYS];
	size_t item_count, more;
};

/* NULL: it is not stored any more, or no memory. *ret_bytes: to read for the comparison; 0 = it is
 * not compared. */
struct changes_entry *changes_entry_new(
	struct config *config, uint64_t generation, uint64_t *ret_bytes);
void changes_drop(struct changes_entry *e);
/* Its config, which must live until the comparison ends. */
struct config *changes_config(const struct changes_entry *e);
/* Reads both versions, and compares them. */
void changes_compare(struct changes_entry *e);
/* Appends it as an element of an array; values false: each is ***. */
void changes_entry_write(const struct changes_entry *e, bool values, struct buffer *out);

#endif

/*
 * Keys below a prefix of receipts that no agent wrote, each with the reason.
 *
 * Threads: one. Ownership: keys are copied; texts passed to visit() are valid for the call. Errors:
 * -ENOMEM. Bounds: a key is cut to GHOSTS_KEY bytes; the caller bounds their number, by
 * ghosts_bytes().
 */
#ifndef PULLET_GHOSTS_H
#define PULLET_GHOSTS_H

#include <stddef.h>

#define GHOSTS_KEY 256

enum ghost {
	GHOST_NONE,    /* valid */
	GHOST_KEY,     /* the key is not an agent's */
	GHOST_VALUE,   /* the value is not a receipt */
	GHOST_NEWER,   /* it is of a newer agent */
	GHOST_LARGE,   /* larger than an agent writes */
	GHOST_ODD,     /* with invalid characters */
	GHOST_UNBOUND, /* under no lease: it would never expire */
	GHOST_HOST,    /* the value names another host or page */
	GHOST_FUTURE,  /* with a time in the future */
	GHOST_SHARED,  /* several hosts share its lease */
	GHOST_STRANGE, /* of an unknown host */
	GHOST_CONFIG,  /* of a config unknown for this host */
	GHOST_KINDS
};

struct ghosts;

/* "under no lease", ... */
const char *ghost_name(enum ghost kind);

/* NULL: out of memory. */
struct ghosts *ghosts_new(void);
void ghosts_free(struct ghosts *g);
/* Records a key; GHOST_NONE: removes it. 0, -ENOMEM. */
int ghosts_put(struct ghosts *g, const char *key, size_t len, enum ghost kind);
/* By key. */
void ghosts_visit(const struct ghosts *g,
	void (*visit)(void *arg, const char *key, enum ghost kind), void *arg);
size_t ghosts_bytes(const struct ghosts *g); /* of memory */

#endif

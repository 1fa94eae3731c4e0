/*
 * Keys below a prefix of receipts that hold nothing an agent wrote, each with what is wrong.
 *
 * Threads: one. Ownership: keys are copied; what ghosts_visit() lends is good for the call. Errors:
 * -ENOMEM. Bounds: a key is kept cut to GHOSTS_KEY bytes; how many there are is the caller's to
 * bound, by ghosts_bytes().
 */
#ifndef PULLET_GHOSTS_H
#define PULLET_GHOSTS_H

#include <stddef.h>

#define GHOSTS_KEY 256

enum ghost {
	GHOST_NONE,    /* it fits */
	GHOST_KEY,     /* the key is none of an agent's */
	GHOST_VALUE,   /* the value is no receipt */
	GHOST_NEWER,   /* it is of a newer agent */
	GHOST_LARGE,   /* larger than an agent writes */
	GHOST_ODD,     /* with characters that no agent writes */
	GHOST_UNBOUND, /* under no lease: it would never go away */
	GHOST_HOST,    /* the key is another host's, or another page's, than the value says */
	GHOST_FUTURE,  /* it names a time that is to come */
	GHOST_SHARED,  /* several hosts are under its lease; an agent has one of its own */
	GHOST_STRANGE, /* of a host that is not known */
	GHOST_CONFIG,  /* of a config that the host is not known for */
	GHOST_KINDS
};

struct ghosts;

/* "under no lease", ... */
const char *ghost_name(enum ghost kind);

/* NULL when there is no memory. */
struct ghosts *ghosts_new(void);
void ghosts_free(struct ghosts *g);
/* Notes what is wrong with a key; GHOST_NONE: nothing any more. 0, -ENOMEM. */
int ghosts_put(struct ghosts *g, const char *key, size_t len, enum ghost kind);
/* By key. */
void ghosts_visit(const struct ghosts *g,
	void (*visit)(void *arg, const char *key, enum ghost kind), void *arg);
size_t ghosts_bytes(const struct ghosts *g); /* of memory */

#endif

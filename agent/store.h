/*
 * The state directory: every accepted version of one config, one checksummed file per generation.
 *
 * STATE_DIR/NAME/GENERATION (20 digits): a line "pullet-state 1 <sha256 of all that follows>", a
 * line of JSON with the version's facts, the document's bytes as pulled. The newest that verifies
 * wins at start; a file that does not verify is named, kept aside as GENERATION.bad, and an older
 * one is used. Keeps the last STORE_KEEP. Generation numbers never go back: the next one is higher
 * than any file's name, even a damaged one's.
 *
 * Threads: one at a time (the loop's, or the worker's while it publishes). Errors: -errno with a
 * sentence in `why`.
 */
#ifndef PULLET_STORE_H
#define PULLET_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "../lib/buffer.h"
#include "digest.h"
#include "file.h"
#include "sys.h"

#define STORE_KEEP 10

struct version { /* the facts of one accepted version */
	uint64_t generation;
	int64_t pulled_ms;       /* wall clock */
	char sha256[DIGEST_HEX]; /* of the bytes as pulled */
	char etag[256];          /* as sent; "" = none */
	char last_modified[64];
	char type[8]; /* yaml | json | bytes: how it was judged */
	char *url;    /* where it came from; on the heap when store_load() filled it in */
};

struct store;

/* Opens (makes) STATE_DIR/name, mode 0700, and removes temporary files left there. 0 or -errno. */
int store_open(const struct sys *sys, const char *state_dir, const char *name,
	struct store **ret_store, char why[FILE_WHY]);
void store_close(struct store *s);
/* Reads the newest version that verifies into *ret_version (its url is the caller's) and body. 0,
 * -ENOENT when there is none, or -errno. *ret_damaged counts files set aside. */
int store_load(
	struct store *s, struct version *ret_version, struct buffer *body, unsigned *ret_damaged);
/* The generation number for the next version. */
uint64_t store_next_generation(const struct store *s);
/* Writes a version (its generation must be store_next_generation()). sync: on disk before it
 * returns. 0 or -errno. */
int store_save(struct store *s, const struct version *v, const void *body, size_t len, bool sync,
	char why[FILE_WHY]);
/* Removes the version that is one too many now; store_open() removes whatever else is beyond
 * STORE_KEEP. Apart from store_save() so that it can wait until the new version is visible. */
void store_prune(struct store *s);
/* True when the state lies in memory: nothing there can be brought to a disk. */
bool store_in_memory(const struct store *s);
/* Brings an already saved generation to the disk. 0 or -errno. */
int store_sync(struct store *s, uint64_t generation);

#endif

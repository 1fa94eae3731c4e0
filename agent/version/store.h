/*
 * The state directory: every accepted version of one config, one checksummed file per generation.
 *
 * STATE_DIR/NAME/GENERATION (20 digits): a line "pullet-state 1 <sha256 of all that follows>", a
 * line of JSON with the version's facts, the bytes of its parts as pulled, one after the other. The
 * newest that verifies wins at start; a damaged file is kept aside as GENERATION.bad, and an older
 * one is used. Keeps the last `keep`. Generation numbers never go back: the next one is higher than
 * any file's name, even a damaged one's.
 *
 * The state file is the commit: the bytes and their decisions (signed revs, overrides, the verdict
 * of a rollback) in one file, written before anything of it is visible. The ledger follows, and is
 * completed from the newest state file at the start.
 *
 * Threads: one at a time (the loop's, or the worker's while it publishes). Errors:
 * -errno with a sentence in `why`.
 */
#ifndef PULLET_STORE_H
#define PULLET_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/buffer.h"
#include "files/file.h"
#include "base/sys.h"
#include "version/version.h"

#define STORE_KEEP 10 /* unless said otherwise */
#define STORE_MAX_KEEP 1000
#define STORE_UNSYNCED 8 /* versions more than are kept, until the newest is on the disk */

struct store;

/* Opens (makes) STATE_DIR/name, mode 0700, and removes temporary files left there. Borrows both
 * texts until store_close(). 0 or -errno. */
int store_open(const struct sys *sys, const char *state_dir, const char *name, size_t keep,
	struct store **ret_store, char why[FILE_WHY]);
void store_close(struct store *s);
/* Reads the newest version that verifies into *ret_version (the caller's then) and body. 0,
 * -ENOENT when there is none, or -errno. *ret_damaged counts files set aside. */
int store_load(
	struct store *s, struct version *ret_version, struct buffer *body, unsigned *ret_damaged);
/* The same of the versions whose number is below this, beginning with the highest; adds to
 * *damaged. patient: an error that may pass (file_error_may_pass()) is returned, else that file is
 * skipped.
 */
int store_load_below(struct store *s, uint64_t below, bool patient, struct version *ret_version,
	struct buffer *body, unsigned *damaged);
/* Reads this very one. 0, -ENOENT, -EBADMSG (it does not verify), or -errno. */
int store_load_generation(
	struct store *s, uint64_t generation, struct version *ret_version, struct buffer *body);
/* The numbers of the versions that are there, highest first. Returns how many of them there are. */
size_t store_list(struct store *s, uint64_t ret_generations[STORE_MAX_KEEP]);
/* The file of a generation, without reading it. 0 or -errno. */
struct store_file {
	int64_t at_ms; /* when it was written; wall clock */
	size_t bytes;
};
int store_describe_file(struct store *s, uint64_t generation, struct store_file *ret_file);
/* Descriptor of the directory, for other files of the config's state; the caller closes it. Or
 * -errno. */
int store_dir(const struct store *s);
/* The generation number for the next version. */
uint64_t store_next_generation(const struct store *s);
/* The next one is above this one, too: readers have seen it. */
void store_go_on_from(struct store *s, uint64_t generation);
/* Writes a version (its generation must be store_next_generation()). sync: on disk before it
 * returns, with the names that lead to it. 0 or -errno. */
int store_save(struct store *s, const struct version *v, const void *body, size_t len, bool sync,
	char why[FILE_WHY]);
/* Removes the versions beyond the newest `keep`, but for those that are spared (0 = none), and
 * before any other one `repeated`, whose bytes the newest has too (0 = none): what an operator does
 * with one version, or a server that goes back and forth, costs no older one its place. synced:
 * the newest one is on the disk; else STORE_UNSYNCED more are kept, as a power cut may leave those
 * only. Apart from store_save() so that it can wait until the new version is visible. */
void store_prune(
	struct store *s, bool synced, const uint64_t *spared, size_t count, uint64_t repeated);
/* Removes one version, on the disk before it returns: its publication was refused. Its number is
 * not used again. */
void store_remove(struct store *s, uint64_t generation);
/* True when the state lies in memory: nothing there can be brought to a disk. */
bool store_in_memory(const struct store *s);
/* Brings an already saved generation to the disk, with the names that lead to it. 0 or -errno. */
int store_sync(struct store *s, uint64_t generation);

#endif

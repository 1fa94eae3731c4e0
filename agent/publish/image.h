/*
 * The snapshot of one config in the runtime directory: NAME.snap, replaced with each generation,
 * and NAME.gen, the control page that is never replaced. lib/FORMAT.md has both.
 *
 * Threads: one at a time (the loop, or the worker while it publishes), but image_confirm() from the
 * loop at any time. Ownership: image_build() returns memory for free(). Errors: -errno with a
 * sentence in why. Bounds: those of the document and of lib/snapshot.h.
 */
#ifndef PULLET_IMAGE_H
#define PULLET_IMAGE_H

#include "document/document.h"
#include "files/file.h"
#include "publish/sweep.h"

struct image;

/* Opens (makes) the control page and removes temporary files (sweep: that of the start, or NULL).
 * runtime_dir is borrowed until image_close(). */
int image_open(const struct sys *sys, const char *runtime_dir, const char *name,
	struct sweep *sweep, struct image **ret_image, char why[FILE_WHY]);
void image_close(struct image *i);
/* NAME.snap; valid until it is closed. */
const char *image_name(const struct image *i);
/* All values below root, flat, as an image whose generation image_publish() fills in. version may
 * be NULL. -EMSGSIZE, before anything is built: it would have more than max_bytes. */
int image_build(const struct node *root, int64_t created_ms, const char *version,
	uint64_t max_bytes, void **ret_data, size_t *ret_len, char why[FILE_WHY]);
/* Does all of image_publish() that may fail for want of room or permission; nothing is visible yet.
 * Call image_publish() with the same image, or image_abandon(), afterwards. */
int image_prepare(struct image *i, void *data, size_t len, uint64_t generation, char why[FILE_WHY]);
/* Removes what was prepared, if anything was. */
void image_abandon(struct image *i);
/* Replaces NAME.snap unless an equal file is in place, then raises the page and wakes readers. 0,
 * FILE_NOT_DURABLE or -errno. */
int image_publish(struct image *i, void *data, size_t len, uint64_t generation, char why[FILE_WHY]);
/* Brings the name of an image that was FILE_NOT_DURABLE to the disk. 0 or -errno. */
int image_sync(const struct image *i);
/* Makes the control page again if somebody removed it, while NAME.snap is as it should be; readers
 * go over to the new one. 0, or -errno with a sentence. */
int image_keep_page(struct image *i, char why[FILE_WHY]);
/* True when NAME.snap is what was last published. */
bool image_is_current(const struct image *i);
/* The newest that readers were shown, perhaps by an earlier process; 0 = none. */
uint64_t image_generation(const struct image *i);
/* True when no fsync is needed. */
bool image_in_memory(const struct image *i);
/* The server confirmed the newest generation at now_ms (CLOCK_BOOTTIME); it is stale after
 * stale_ms. */
void image_confirm(struct image *i, uint64_t now_ms, uint64_t stale_ms);
/* When image_confirm() was last called, perhaps by an earlier process; 0 = unknown. */
uint64_t image_confirmed_ms(const struct image *i);
uint64_t image_stale_ms(const struct image *i);

#endif

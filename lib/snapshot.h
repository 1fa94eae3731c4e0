/*
 * The snapshot image: built, checked, looked up. lib/FORMAT.md has the layout.
 *
 * Threads: an image is immutable; any number of readers. Ownership: snapshot_build() returns memory
 * to be freed by the caller; a struct snapshot borrows its image. Errors: -errno as in pullet.h.
 * Bounds: an image is smaller than 4 GiB, a key than 16 MiB.
 */
#ifndef PULLET_SNAPSHOT_H
#define PULLET_SNAPSHOT_H

#include "pullet.h"

#define SNAPSHOT_MAX_VERSION 255 /* bytes */

struct snapshot_entry { /* all borrowed */
	const char *key;
	size_t key_len;
	struct pullet_value value;
};

struct snapshot { /* fields are private */
	const unsigned char *image;
	size_t len;
	const unsigned char *slots, *order;
	uint32_t slot_mask, count;
};

/* Builds an image; sorts entries in place. version may be NULL. 0 and *ret_image with *ret_len
 * bytes; -EINVAL (two equal keys, a generation of 0), -EMSGSIZE (beyond the bounds), -ENOMEM. */
int snapshot_build(struct snapshot_entry *entries, size_t count, uint64_t generation,
	int64_t created_ms, const char *version, void **ret_image, size_t *ret_len);
/* Bytes of an image: of one record, and of all else without the version's text. */
uint64_t snapshot_record_size(uint64_t key_len, uint64_t text_len);
uint64_t snapshot_frame_size(uint64_t count);
/* Gives an image that snapshot_build() made another generation; its digest. */
uint64_t snapshot_stamp(void *image, size_t len, uint64_t generation);
/* Checks an image as FORMAT.md demands. 0 and *ret_snapshot, -EBADMSG or -EPROTO. */
int snapshot_open(const void *image, size_t len, struct snapshot *ret_snapshot);
/* The same, but the digest: for an image whose bytes are known to have it. */
int snapshot_open_verified(const void *image, size_t len, struct snapshot *ret_snapshot);
/* True when the bytes have the digest that the image says; reads all of them. */
bool snapshot_verify(const struct snapshot *s);
uint64_t snapshot_generation(const struct snapshot *s);
/* The digest, which tells images apart that have the same generation. */
uint64_t snapshot_digest(const struct snapshot *s);
const char *snapshot_version(const struct snapshot *s);
/* 0 and *ret_value, or -ENOENT. */
int snapshot_get(
	const struct snapshot *s, const char *key, size_t key_len, struct pullet_value *ret_value);
/* The first place in key order whose key is not before this one; count when there is none. */
size_t snapshot_lower_bound(const struct snapshot *s, const char *key, size_t key_len);
/* The key and value at a place in key order. False when place is count or beyond, or the record is
 * invalid. */
bool snapshot_at(const struct snapshot *s, size_t place, const char **ret_key, size_t *ret_key_len,
	struct pullet_value *ret_value);

#endif

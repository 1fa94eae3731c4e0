/*
 * The image, as lib/FORMAT.md lays it out.
 *
 * Surprising: a look-up checks each record against the end of the image, although the digest was
 * verified, by the reader or by the agent: a writer of the image can forge that. The check costs
 * nothing beside the memory access; a walk through all records at the start would cost more than
 * the digest.
 */
#include "snapshot.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define HEADER 64u
#define RECORD 16u /* before the key */
#define SLOT 8u
#define MAX_KEY ((UINT32_C(1) << 24) - 1)
#define MAX_IMAGE (UINT64_C(0x100000000) - 8)

static const char magic[8] = {'P', 'U', 'L', 'S', 'N', 'A', 'P', 1};

enum { /* offsets in the header */
	AT_DIGEST = 8,
	AT_FILE_SIZE = 16,
	AT_GENERATION = 24,
	AT_CREATED = 32,
	AT_KEY_COUNT = 40,
	AT_SLOT_COUNT = 44,
	AT_SLOTS = 48,
	AT_ORDER = 52,
	AT_RECORDS = 56,
	AT_VERSION = 60,
};

static inline uint64_t load_u64(const unsigned char *p)
{
	uint64_t n;

	memcpy(&n, p, sizeof(n));
	return le64toh(n);
}

static inline uint32_t load_u32(const unsigned char *p)
{
	uint32_t n;

	memcpy(&n, p, sizeof(n));
	return le32toh(n);
}

static void store_u64(unsigned char *p, uint64_t n)
{
	n = htole64(n);
	memcpy(p, &n, sizeof(n));
}

static void store_u32(unsigned char *p, uint32_t n)
{
	n = htole32(n);
	memcpy(p, &n, sizeof(n));
}

static uint64_t image_digest(const unsigned char *image, size_t len)
{
	return XXH64(image + AT_FILE_SIZE, len - AT_FILE_SIZE, 0);
}

static uint64_t align_8(uint64_t n)
{
	return (n + 7) & ~UINT64_C(7);
}

/* ---- building ---- */

static int compare_key_bytes(const char *a, size_t a_len, const char *b, size_t b_len)
{
	int r = memcmp(a, b, a_len < b_len ? a_len : b_len);

	return r ? r : (a_len > b_len) - (a_len < b_len);
}

static int compare_snapshot_entries(const void *a, const void *b)
{
	const struct snapshot_entry *x = a, *y = b;

	return compare_key_bytes(x->key, x->key_len, y->key, y->key_len);
}

uint64_t snapshot_record_size(uint64_t key_len, uint64_t text_len)
{
	return align_8(RECORD + key_len + 1 + text_len + 1);
}

/* Twice as many as there are entries at least, so that chains are short. */
static uint64_t slots_for(uint64_t count)
{
	uint64_t slots = 2;

	while (slots < 2 * count)
		slots *= 2;
	return slots;
}

/* Where the records begin. */
static uint64_t records_offset(uint64_t count)
{
	return align_8(HEADER + slots_for(count) * SLOT + count * 4);
}

uint64_t snapshot_frame_size(uint64_t count)
{
	return align_8(records_offset(count) + 1); /* the version's NUL */
}

static uint64_t record_size(const struct snapshot_entry *e)
{
	return snapshot_record_size(e->key_len, e->value.len);
}

static uint64_t raw_value(const struct pullet_value *v)
{
	uint64_t raw = 0;

	switch (v->type) {
	case PULLET_BOOL:
		return v->boolean;
	case PULLET_INT:
		return (uint64_t)v->integer;
	case PULLET_DOUBLE:
		memcpy(&raw, &v->number, sizeof(raw));
		return raw;
	case PULLET_LIST:
	case PULLET_MAP:
		return v->count;
	case PULLET_NULL:
	case PULLET_STRING:
		return 0;
	}
	return 0;
}

static void write_record(unsigned char *at, const struct snapshot_entry *e)
{
	store_u64(at, raw_value(&e->value));
	store_u32(at + 8, (uint32_t)e->value.len);
	store_u32(at + 12, (uint32_t)e->key_len | (uint32_t)e->value.type << 24);
	memcpy(at + RECORD, e->key, e->key_len);
	if (e->value.len)
		memcpy(at + RECORD + e->key_len + 1, e->value.text, e->value.len);
}

static void write_slot(
	unsigned char *slots, uint32_t mask, const struct snapshot_entry *e, uint32_t offset)
{
	uint64_t hash = XXH3_64bits(e->key, e->key_len);
	uint32_t slot = (uint32_t)hash & mask;

	while (load_u32(slots + SLOT * (size_t)slot + 4))
		slot = (slot + 1) & mask;
	store_u32(slots + SLOT * (size_t)slot, (uint32_t)(hash >> 32));
	store_u32(slots + SLOT * (size_t)slot + 4, offset);
}

/* And none is there twice. */
static bool are_entries_ascending(const struct snapshot_entry *entries, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (compare_snapshot_entries(&entries[i - 1], &entries[i]) >= 0)
			return false;
	return true;
}

/* 0, or -EINVAL for a duplicate key. */
static int sort_entries(struct snapshot_entry *entries, size_t count)
{
	if (are_entries_ascending(entries, count))
		return 0;
	qsort(entries, count, sizeof(*entries), compare_snapshot_entries);
	return are_entries_ascending(entries, count) ? 0 : -EINVAL;
}

/* Sums the bytes of all records. 0, or -EMSGSIZE beyond the bounds. */
static int measure_records(const struct snapshot_entry *entries, size_t count, uint64_t *ret_bytes)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < count; i++) {
		if (entries[i].key_len > MAX_KEY || entries[i].value.len > MAX_IMAGE)
			return -EMSGSIZE;
		bytes += record_size(&entries[i]);
		if (bytes > MAX_IMAGE)
			return -EMSGSIZE;
	}
	*ret_bytes = bytes;
	return 0;
}

int snapshot_build(struct snapshot_entry *entries, size_t count, uint64_t generation,
	int64_t created_ms, const char *version, void **ret_image, size_t *ret_len)
{
	size_t version_len = version ? strlen(version) : 0;
	uint64_t bytes, order, records, names, end, slot_count;
	unsigned char *image;
	int r;

	if (generation == 0)
		return -EINVAL;
	if (count > UINT32_C(1) << 28 || version_len > SNAPSHOT_MAX_VERSION)
		return -EMSGSIZE;
	r = sort_entries(entries, count);
	if (r == 0)
		r = measure_records(entries, count, &bytes);
	if (r)
		return r;
	slot_count = slots_for(count);
	order = HEADER + slot_count * SLOT;
	records = records_offset(count);
	names = records + bytes;
	end = align_8(names + version_len + 1);
	if (end > MAX_IMAGE)
		return -EMSGSIZE;
	image = calloc(1, end);
	if (!image)
		return -ENOMEM;
	memcpy(image, magic, sizeof(magic));
	store_u64(image + AT_FILE_SIZE, end);
	store_u64(image + AT_GENERATION, generation);
	store_u64(image + AT_CREATED, (uint64_t)created_ms);
	store_u32(image + AT_KEY_COUNT, (uint32_t)count);
	store_u32(image + AT_SLOT_COUNT, (uint32_t)slot_count);
	store_u32(image + AT_SLOTS, HEADER);
	store_u32(image + AT_ORDER, (uint32_t)order);
	store_u32(image + AT_RECORDS, (uint32_t)records);
	store_u32(image + AT_VERSION, (uint32_t)names);
	for (size_t i = 0; i < count; i++) {
		store_u32(image + order + 4 * i, (uint32_t)records);
		write_slot(
			image + HEADER, (uint32_t)slot_count - 1, &entries[i], (uint32_t)records);
		write_record(image + records, &entries[i]);
		records += record_size(&entries[i]);
	}
	if (version_len)
		memcpy(image + names, version, version_len);
	store_u64(image + AT_DIGEST, image_digest(image, end));
	*ret_image = image;
	*ret_len = end;
	return 0;
}

uint64_t snapshot_stamp(void *image, size_t len, uint64_t generation)
{
	unsigned char *at = image;
	uint64_t digest;

	store_u64(at + AT_GENERATION, generation);
	digest = image_digest(at, len);
	store_u64(at + AT_DIGEST, digest);
	return digest;
}

/* ---- reading ---- */

static bool fits_image(uint64_t offset, uint64_t bytes, size_t len, unsigned align)
{
	return offset % align == 0 && offset >= HEADER && offset <= len && bytes <= len - offset;
}

int snapshot_open_verified(const void *data, size_t len, struct snapshot *ret_snapshot)
{
	const unsigned char *image = data;
	uint32_t count, slots, version;

	if (len < HEADER || memcmp(image, magic, sizeof(magic)) != 0)
		return -EPROTO;
	if (load_u64(image + AT_FILE_SIZE) != len || len > MAX_IMAGE ||
		load_u64(image + AT_GENERATION) == 0)
		return -EBADMSG;
	count = load_u32(image + AT_KEY_COUNT);
	slots = load_u32(image + AT_SLOT_COUNT);
	version = load_u32(image + AT_VERSION);
	if (slots < 2 || (slots & (slots - 1)) || slots <= count ||
		!fits_image(load_u32(image + AT_SLOTS), (uint64_t)slots * SLOT, len, 64) ||
		!fits_image(load_u32(image + AT_ORDER), (uint64_t)count * 4, len, 8) ||
		!fits_image(load_u32(image + AT_RECORDS), (uint64_t)count * RECORD, len, 8) ||
		!fits_image(version, 1, len, 1) || !memchr(image + version, '\0', len - version))
		return -EBADMSG;
	*ret_snapshot = (struct snapshot){
		.image = image,
		.len = len,
		.slots = image + load_u32(image + AT_SLOTS),
		.order = image + load_u32(image + AT_ORDER),
		.slot_mask = slots - 1,
		.count = count,
	};
	return 0;
}

bool snapshot_verify(const struct snapshot *s)
{
	return snapshot_digest(s) == image_digest(s->image, s->len);
}

int snapshot_open(const void *data, size_t len, struct snapshot *ret_snapshot)
{
	struct snapshot s;
	int r = snapshot_open_verified(data, len, &s);

	if (r == 0 && !snapshot_verify(&s))
		r = -EBADMSG;
	if (r == 0)
		*ret_snapshot = s;
	return r;
}

uint64_t snapshot_generation(const struct snapshot *s)
{
	return load_u64(s->image + AT_GENERATION);
}

uint64_t snapshot_digest(const struct snapshot *s)
{
	return load_u64(s->image + AT_DIGEST);
}

const char *snapshot_version(const struct snapshot *s)
{
	return (const char *)s->image + load_u32(s->image + AT_VERSION);
}

/* The record at an offset of the image, checked against its end: NULL when it is invalid. */
static inline const unsigned char *record_at(
	const struct snapshot *s, uint32_t offset, size_t *ret_key_len, size_t *ret_text_len)
{
	const unsigned char *record = s->image + offset;
	size_t room = s->len - RECORD, key_len, text_len, end;
	uint64_t lengths;

	if (offset % 8 || offset > room)
		return NULL;
	lengths = load_u64(record + 8);
	text_len = lengths & UINT32_MAX;
	key_len = (lengths >> 32) & MAX_KEY;
	end = key_len + 1 + text_len;
	if (end >= room - offset || record[RECORD + key_len] | record[RECORD + end] ||
		lengths >> 56 > PULLET_MAP)
		return NULL;
	*ret_key_len = key_len;
	*ret_text_len = text_len;
	return record;
}

static inline void decode_value(
	const unsigned char *record, size_t key_len, size_t text_len, struct pullet_value *ret)
{
	uint64_t raw = load_u64(record);

	ret->type = (enum pullet_type)record[15];
	ret->len = text_len;
	ret->text = (const char *)record + RECORD + key_len + 1;
	ret->count = raw; /* whichever member it is: they lie on each other */
	if (ret->type == PULLET_BOOL)
		ret->boolean = raw != 0;
}

static inline uint64_t differ_8(const unsigned char *a, const unsigned char *b)
{
	return load_u64(a) ^ load_u64(b);
}

/* memcmp() == 0 of most keys without a call, and without a branch for each length. */
static inline bool same_bytes(const unsigned char *a, const unsigned char *b, size_t len)
{
	if (len < 8 || len > 32)
		return memcmp(a, b, len) == 0;
	if (len > 16 && (differ_8(a + 8, b + 8) | differ_8(a + len - 16, b + len - 16)))
		return false;
	return !(differ_8(a, b) | differ_8(a + len - 8, b + len - 8));
}

int snapshot_get(
	const struct snapshot *s, const char *key, size_t key_len, struct pullet_value *ret_value)
{
	uint64_t hash = XXH3_64bits(key, key_len);
	uint32_t mask = s->slot_mask, slot = (uint32_t)hash, last = slot + mask;
	const unsigned char *record;
	size_t len, text_len;
	uint64_t entry;

	do {
		entry = load_u64(s->slots + SLOT * (size_t)(slot & mask));
		if (entry >> 32 == 0)
			return -ENOENT;
		if ((uint32_t)entry != hash >> 32)
			continue;
		record = record_at(s, entry >> 32, &len, &text_len);
		if (!record || len != key_len ||
			!same_bytes(record + RECORD, (const unsigned char *)key, len))
			continue;
		decode_value(record, len, text_len, ret_value);
		return 0;
	} while (slot++ != last);
	return -ENOENT;
}

bool snapshot_at(const struct snapshot *s, size_t place, const char **ret_key, size_t *ret_key_len,
	struct pullet_value *ret_value)
{
	const unsigned char *record;
	size_t text_len;

	if (place >= s->count)
		return false;
	record = record_at(s, load_u32(s->order + 4 * place), ret_key_len, &text_len);
	if (!record)
		return false;
	*ret_key = (const char *)record + RECORD;
	decode_value(record, *ret_key_len, text_len, ret_value);
	return true;
}

size_t snapshot_lower_bound(const struct snapshot *s, const char *key, size_t key_len)
{
	size_t low = 0, high = s->count, middle, len;
	struct pullet_value v;
	const char *at;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (snapshot_at(s, middle, &at, &len, &v) &&
			compare_key_bytes(at, len, key, key_len) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

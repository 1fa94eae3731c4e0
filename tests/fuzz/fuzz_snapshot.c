/* Fuzz target: any bytes as an image. The first byte says whether file_size and digest are mended
 * (odd), so that the fields behind them are reached; then the length of a key to look for, that
 * key, and the image. What is found lies inside the image and ends with a NUL there. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "lib/snapshot.h"

#define MOST_PLACES 2000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(int condition)
{
	if (!condition)
		abort();
}

static void mend(uint8_t *image, size_t len)
{
	uint64_t file_size = len, digest;

	if (len < 64)
		return;
	memcpy(image + 16, &file_size, 8);
	digest = XXH64(image + 16, len - 16, 0);
	memcpy(image + 8, &digest, 8);
}

static void check(const struct snapshot *s, const char *key, size_t key_len,
	const struct pullet_value *v, const char *end)
{
	demand(v->type <= PULLET_MAP && v->text < end && v->len < (size_t)(end - v->text));
	demand(v->text[v->len] == '\0');
	demand(snapshot_lower_bound(s, key, key_len) <= s->count);
}

static void look_up(const struct snapshot *s, const char *key, size_t key_len, const char *end)
{
	struct pullet_value v;

	if (snapshot_get(s, key, key_len, &v) == 0)
		check(s, key, key_len, &v, end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t key_len = size > 1 && data[1] <= size - 2 ? data[1] : 0, len, at_len;
	const char *key = (const char *)data + 2, *at, *end;
	struct pullet_value v;
	struct snapshot s;
	uint8_t *image;

	if (size < 2)
		return 0;
	len = size - 2 - key_len;
	image = malloc(len ? len : 1); /* of its own, so that a byte beyond is seen */
	demand(image != NULL);
	memcpy(image, data + 2 + key_len, len);
	if (data[0] & 1)
		mend(image, len);
	end = (const char *)image + len;
	if (snapshot_open(image, len, &s) == 0) {
		demand(snapshot_generation(&s) > 0 &&
			snapshot_version(&s) + strlen(snapshot_version(&s)) < end);
		for (size_t n = 0; n <= key_len; n++)
			look_up(&s, key, n, end);
		for (size_t i = 0; i < s.count && i < MOST_PLACES; i++) {
			if (!snapshot_at(&s, i, &at, &at_len, &v))
				continue;
			demand(at < end && at_len < (size_t)(end - at) && at[at_len] == '\0');
			check(&s, at, at_len, &v, end);
			look_up(&s, at, at_len, end);
		}
		demand(!snapshot_at(&s, s.count, &at, &at_len, &v));
	}
	free(image);
	return 0;
}

/* Strips W/ and quotes, then hashes. */
#include "base/etag.h"

#include <string.h>

#include "base/hash.h"

uint64_t etag_hash(const char *etag)
{
	uint64_t h;
	size_t len;

	if (!etag)
		return 0;
	if (strncmp(etag, "W/", 2) == 0)
		etag += 2;
	len = strlen(etag);
	if (len >= 2 && etag[0] == '"' && etag[len - 1] == '"') {
		etag++;
		len -= 2;
	}
	if (len == 0)
		return 0;
	h = hash_bytes(HASH_START, etag, len);
	return h ? h : 1;
}

/* Versions as servers name them: in an ETag, or in a push message. */
#ifndef PULLET_ETAG_H
#define PULLET_ETAG_H

#include <stdint.h>

/* Hashes a version from a message or an ETag, without W/ and quotes. 0 only for NULL or "". */
uint64_t etag_hash(const char *etag);

#endif

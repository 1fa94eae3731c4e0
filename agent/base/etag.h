/*
 * Versions as servers name them: in an ETag, or in a message.
 */
#ifndef PULLET_ETAG_H
#define PULLET_ETAG_H

#include <stdint.h>

/* Hash of a version as it stands in a message or an ETag: W/ and quotes do not count. Never 0; 0
 * for NULL or "". Only for comparing with others of it. */
uint64_t etag_hash(const char *etag);

#endif

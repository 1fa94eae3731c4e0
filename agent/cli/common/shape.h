/*
 * What the agent's answers look like: how many bytes they may have, and which members they must
 * have, so that an answer of no meaning is an error, and no success.
 *
 * Threads: any. Ownership: shapes are static. Bounds: SHAPE_MAX_BYTES of the largest answer, the
 * status (10,000 configs: 7.3 MB); how many values are in it, is bounded by DOCUMENT_OURS.
 */
#ifndef PULLET_CLI_SHAPE_H
#define PULLET_CLI_SHAPE_H

#include <stdbool.h>
#include <stddef.h>

#include "document/document.h"

#define SHAPE_MAX_BYTES (32u << 20)

/* Bytes that an answer to this request may have; errors too. */
size_t shape_max_bytes(const char *method, const char *path);
/* Is that an answer to it? status: of HTTP, 200 or 202; root: NULL = it is no JSON. A path that has
 * no shape is true. */
bool shape_fits(const char *method, const char *path, long status, const struct node *root);

#endif

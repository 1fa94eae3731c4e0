/*
 * A rollout document in etcd: read, and replaced only while it is the one that was read.
 *
 * Threads: one, which waits. Errors: -errno with a sentence. Bounds: ROLLOUT_MAX_BYTES.
 */
#ifndef PULLET_CLI_PLACE_H
#define PULLET_CLI_PLACE_H

#include "cli/fleet/etcd.h"
#include "cli/rollout/plan.h"

/* 0, the plan for plan_fini(), and the revision of the document, 0 = there is none. -EINVAL: it is
 * no rollout document. */
int place_read(struct etcd *e, const char *key, struct plan *ret, uint64_t *ret_revision,
	char why[FILE_WHY]);
/* Replaces what is there if it has this revision still. 0; -EEXIST: it has not; other errors:
 * whether it was written is unknown. */
int place_write(struct etcd *e, const char *key, const struct plan *p, uint64_t revision,
	char why[FILE_WHY]);

#endif

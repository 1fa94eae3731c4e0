/*
 * A rollout document in etcd: read, and replaced only while it is the one that was read; and who
 * drives it.
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

/*
 * The note of the command that drives a rollout, in a key of its own beside the document,
 * KEY#driver:
 * {"v":1, "driver", "at_ms"}. The document itself is watched by agents, and would make them pull.
 */
struct place_note {
	char driver[PLAN_DRIVER]; /* "" = there is none */
	int64_t at_ms;            /* wall clock: it spoke last; 0 = it has ended */
};

/* Writes it over the one before. 0 or an error as of etcd_ask(). */
int place_write_note(
	struct etcd *e, const char *key, const struct place_note *note, char why[FILE_WHY]);
int place_read_note(struct etcd *e, const char *key, struct place_note *ret, char why[FILE_WHY]);

#endif

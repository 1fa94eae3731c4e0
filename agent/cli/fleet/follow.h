/*
 * A roster kept equal to etcd: read whole at one revision, then followed by a watch, so that etcd
 * sends each change once.
 *
 * A broken watch is resumed at its revision; after a compaction or a restored backup everything is
 * read again.
 *
 * Threads: one, which waits. Ownership: show() borrows the roster. Bounds: a request has at most
 * FOLLOW_KEYS receipts, fewer when they are large; the roster's; show() is called at most once a
 * second.
 */
#ifndef PULLET_CLI_FOLLOW_H
#define PULLET_CLI_FOLLOW_H

#include "fleet/roster.h"
#include "cli/fleet/etcd.h"

#define FOLLOW_KEYS 500
#define FOLLOW_EVERY_MS 1000u

struct follow_calls {
	/* Shows the roster, first and after changes. True: done. */
	bool (*show)(void *arg, const struct roster *roster, uint64_t revision);
	/* A note for the operator: a watch broke off. */
	void (*note)(void *arg, const char *text);
	void *arg;
};

/* Reads it once, without a watch. 0 and a roster for roster_free(), or -errno with a sentence. */
int follow_read(struct etcd *e, const struct follow_calls *calls, struct roster **ret_roster,
	uint64_t *ret_revision, char why[FILE_WHY]);
/* Reads and follows until show() is done: 0; -ETIMEDOUT: deadline_ms of the loop has passed (0 =
 * never), with a sentence if nothing was read; another -errno and its sentence: cannot be read. */
int follow_run(
	struct etcd *e, const struct follow_calls *calls, uint64_t deadline_ms, char why[FILE_WHY]);

#endif

/*
 * A roster that is kept the same as what lies in etcd: read whole at one revision, then followed by
 * a watch, so that etcd sends each change once and is never asked the same twice.
 *
 * A watch that breaks off goes on from where it stood; what was compacted, or restored from a
 * backup, is read whole again.
 *
 * Threads: one, which waits. Ownership: the roster is lent to show(). Bounds: a request has at most
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
	/* What is there now, and each time that changed. True: that was enough. */
	bool (*show)(void *arg, const struct roster *roster, uint64_t revision);
	/* Something to tell the operator: a watch that broke off. */
	void (*note)(void *arg, const char *text);
	void *arg;
};

/* Reads it once, without a watch. 0 and a roster for roster_free(), or -errno with a sentence. */
int follow_read(struct etcd *e, const struct follow_calls *calls, struct roster **ret_roster,
	uint64_t *ret_revision, char why[FILE_WHY]);
/* Reads and follows until show() has enough: 0; -ETIMEDOUT: deadline_ms of the loop has come (0 =
 * never), with a sentence if it was not even read once; another -errno and its sentence: it could
 * not be read. */
int follow_run(
	struct etcd *e, const struct follow_calls *calls, uint64_t deadline_ms, char why[FILE_WHY]);

#endif

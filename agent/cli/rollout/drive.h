/*
 * Drives the waves of a rollout: reads the document and the receipts, decides, writes the document;
 * at least DRIVE_EVERY_MS apart, and for a tenth of the time at most.
 *
 * Each turn reads both afresh, so that no decision relies on what was so before, and one that
 * cannot be written (somebody else changed the document) does not exist. A wave begins only when
 * every host of those before it has decided: it runs the version, or rejected it. Hosts that were
 * in trouble when the driving began, and those that operators hold, are not waited for; but a host
 * that runs the version there must be, or the rollout is paused after the plan's timeout. When the
 * command ends, for whatever reason, the document stays as it is.
 *
 * Threads: one, which waits. Errors: exit codes, printed.
 */
#ifndef PULLET_CLI_DRIVE_H
#define PULLET_CLI_DRIVE_H

#include "cli/fleet/etcd.h"
#include "cli/rollout/tally.h"

#define DRIVE_EVERY_MS 1000u
#define DRIVE_NOTE_MS 20000u    /* from one note that it drives to the next (place.h) */
#define DRIVE_SILENT_MS 120000u /* a driver without a note for so long is gone */

struct drive_rollout { /* borrowed */
	const char *command, *config, *key;
	struct etcd *document, *receipts;
	const char *driver; /* as it is in the document */
};

/* CLI_OK: it is finished. CLI_FAILED: it was aborted, paused or taken over, or a signal came.
 * CLI_TIMED_OUT: it is paused, since no host ran the version. */
int drive_run(const struct drive_rollout *rollout);
/* Reads the receipts of one config, as of now. 0, a roster for roster_free() and an array for
 * free(); -errno with a sentence. */
int drive_read_rows(struct etcd *receipts, const char *config, struct roster **ret_roster,
	struct roster_row **ret_rows, size_t *ret_count, char why[FILE_WHY]);
/* Prints what an operator does about the hosts that run an aborted version. */
void drive_say_way_back(const char *command, const struct plan *p, const struct tally *t);

#endif

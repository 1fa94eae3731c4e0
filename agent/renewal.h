/*
 * SIGHUP: the new configuration is read whole, compared with the one that runs, and applied without
 * touching what did not change; or it is refused whole, with all its errors.
 *
 * Before anything changes, everything is tried that could fail: files, keys, the address to listen
 * at, the push channel. Then the configs that are gone or changed are ended: first those of which
 * the disk is just taking a version, which are waited for while all others go on. Then the new ones
 * are made.
 * Short memory in the middle of that ends the agent, which starts from the last known good.
 *
 * Threads: the loop's. Ownership: the agent is borrowed. Bounds: one at a time; what is asked for
 * meanwhile is done once, afterwards.
 */
#ifndef PULLET_RENEWAL_H
#define PULLET_RENEWAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct agent;
struct renewal;

struct renewal_status {
	const char *file;
	int64_t loaded_ms;         /* wall clock: when what runs was read */
	uint64_t reloads, refused; /* since the start */
	const char *error;         /* the first of the last one that was read; NULL = it was good */
	size_t errors;             /* and how many there were */
	bool under_way;            /* it waits for a disk */
};

/* NULL when there is no memory. */
struct renewal *renewal_new(struct agent *a);
void renewal_free(struct renewal *r);
/* Reads the configuration and applies it: before the call returns, or as soon as it can be. */
void renewal_begin(struct renewal *r);
void renewal_status(const struct renewal *r, struct renewal_status *ret_status);

#endif

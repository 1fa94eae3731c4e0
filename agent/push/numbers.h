/*
 * The epoch of a publisher and the sequence numbers of its topics.
 *
 * Threads: one. Ownership: the caller's memory; names are copied. Errors: -ENOMEM, and nothing has
 * changed but perhaps the epoch. Bounds: PUSH_MAX_NUMBERED topics; beyond, numbers begin again with
 * a new epoch, which makes every agent pull.
 */
#ifndef PULLET_PUSH_NUMBERS_H
#define PULLET_PUSH_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

#include "base/sys.h"
#include "push/message.h"

#define PUSH_MAX_NUMBERED 65536

struct numbered_topic;

struct push_numbers { /* fields are private */
	const struct sys *sys;
	char epoch[24];
	struct numbered_topic *topics; /* sorted by name */
	size_t count;
};

/* Begins a random epoch. */
void push_numbers_init(struct push_numbers *n, const struct sys *sys);
void push_numbers_fini(struct push_numbers *n);
/* Sets the epoch of m. */
void push_numbers_set_epoch(const struct push_numbers *n, struct push_message *m);
/* Sets the epoch of m and the topic's next number, from 1. 0 or -ENOMEM. */
int push_numbers_set_next(struct push_numbers *n, const char *topic, struct push_message *m);

#endif

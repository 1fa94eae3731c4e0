/*
 * The "known" key of this host: that its agent is expected, since when, with which configs and
 * labels, and whether it was stopped. It outlives the lease of the receipt.
 *
 * The key is created, or read where it exists: an agent that starts again goes on with the first
 * moment that is written there. What differs otherwise is written again. Built and read without
 * I/O.
 *
 * Threads: the caller's. Ownership: the settings are borrowed. Errors: -ENOMEM, -EMSGSIZE. Bounds:
 * receipt.h.
 */
#ifndef PULLET_KNOWN_HOST_H
#define PULLET_KNOWN_HOST_H

#include "fleet/etcd_store.h"
#include "settings/settings.h"

enum known_host_state { /* of the key in etcd */
	KNOWN_HOST_UNASKED,
	KNOWN_HOST_DIFFERS, /* it has another value than ours */
	KNOWN_HOST_WRITTEN
};

struct known_host {
	const struct settings *settings;
	char *key;
	enum known_host_state state;
	int64_t first_ms;   /* wall clock: as it is written there, or this agent's start */
	int64_t stopped_ms; /* wall clock; 0 = it runs */
};

/* 0 or -ENOMEM. */
int known_host_init(
	struct known_host *h, const struct settings *settings, const char *host, int64_t wall_ms);
void known_host_fini(struct known_host *h);
/* Appends the request that creates the key, or reads the one that exists. 0, or the body's error.
 */
int known_host_build_ask(const struct known_host *h, struct buffer *body);
/* The same that writes it, whatever it is. */
int known_host_build_write(const struct known_host *h, struct buffer *body);
/* Takes the answer to either. */
void known_host_asked(struct known_host *h, const struct etcd_store_answer *a);
void known_host_was_written(struct known_host *h);

#endif

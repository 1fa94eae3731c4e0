/*
 * A rollout: a small document beside a config that says which hosts take a new version.
 *
 *     percent: 10            # of the hosts; 100 when neither it nor waves is there
 *     salt: web-2026-11      # another salt, another order of hosts; the config's name
 *     labels: {zone: eu-1}   # only hosts with all of these (agent: labels)
 *     version: "42"          # it is about this one (or these: a list); any other is for everybody;
 *                            # a version by its server's name for it, or its bytes by 12 digits or
 *                            # more of their digest, so that the same under another name is meant
 *     only: "42"             # no host takes any other new version than this one (or these)
 *     waves:                 # instead of percent; before the first one nobody
 *       - {at: 2026-11-21T03:00:00Z, percent: 1}
 *       - {at: 2026-11-21T04:00:00Z, percent: 100}
 *     plan: {...}            # what `pullet rollout` notes for itself; it is not looked into
 *
 * A host's place is the first 8 bytes of SHA-256(salt, newline, host) as a big-endian fraction of
 * 2^64, times 100: it is in when that is below the percentage. So a growing percentage only adds
 * hosts, a restart changes nothing, and anybody can compute it.
 *
 * Without I/O or clock. Threads: any. Bounds: ROLLOUT_MAX_WAVES waves.
 */
#ifndef PULLET_ROLLOUT_H
#define PULLET_ROLLOUT_H

#include <stdbool.h>

#include "document/document.h"
#include "files/file.h"
#include "settings/settings.h"

#define ROLLOUT_MAX_WAVES 64
#define ROLLOUT_MAX_BYTES (64u << 10) /* it is read on the loop */

struct rollout_host { /* borrowed */
	const char *name;
	const struct settings_label *labels;
	size_t label_count;
	int64_t wall_ms;
};

/* Whether this host takes that version of that config, or why not; digest: the SHA-256 of its bytes
 * in hexadecimal, "" = unknown. 0; -EINVAL: the document is not
 * a rollout, with a sentence that says where; -ENOMEM. */
int rollout_decide(const struct node *root, const struct rollout_host *host, const char *config,
	const char *version, const char *digest, bool *ret_takes, char why[FILE_WHY]);
/* The host's place, in [0, 100). 0 or -ENOMEM. */
int rollout_place(const char *salt, const char *host, double *ret_percent);

#endif

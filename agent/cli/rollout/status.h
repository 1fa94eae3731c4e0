/*
 * `pullet rollout status`: the plan and the hosts by wave, as text and as JSON.
 *
 * Threads: any. Errors: those of the buffer, which stick.
 */
#ifndef PULLET_CLI_ROLLOUT_STATUS_H
#define PULLET_CLI_ROLLOUT_STATUS_H

#include "cli/rollout/tally.h"

struct status_rollout { /* borrowed */
	const char *config, *key;
	const struct plan *plan;
	int64_t wall_ms;   /* now */
	int64_t driven_ms; /* when the driver spoke last; 0 = it has ended */
	bool driver_known; /* it has written its note, or may not have had the time */
	uint64_t revision; /* of the document; 0 = there is none */
	const struct tally *tally;
	const struct roster_row *rows; /* of the config */
	size_t count;
};

/* 0 or the error. */
int status_show(const struct status_rollout *s, struct buffer *out);
int status_json(const struct status_rollout *s, struct buffer *out);

#endif

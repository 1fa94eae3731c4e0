/*
 * The summary of a fleet's receipts, as tables and as JSON.
 *
 * Threads: any. Errors: those of the buffer, which stick. Bound: FLEET_LISTED hosts are listed,
 * or all on request; others are counted.
 */
#ifndef PULLET_CLI_FLEET_SHOW_H
#define PULLET_CLI_FLEET_SHOW_H

#include "fleet/roster_sum.h"

#define FLEET_LISTED 20

struct fleet_style {
	bool all;    /* hosts */
	bool colour; /* as for a terminal */
};

/* "300 invalid receipts: 300 under no lease", one line, or nothing when there are none; with
 * `names` a line for each below it. */
void fleet_ghosts(const struct roster *r, bool names, struct buffer *out);
/* A list of objects. */
void fleet_json_ghosts(const struct roster *r, struct buffer *out);
/* "98 of 100 hosts run v2 (98.0%)", in one line. */
void fleet_headline(const struct roster_sum *s, struct buffer *out);
/* The versions, a line each. */
void fleet_versions(const struct roster_sum *s, struct buffer *out);
/* The versions, then the hosts that are behind, reject or are silent. */
void fleet_table(const struct roster_sum *s, const struct fleet_style *style, struct buffer *out);
/* Only these hosts. */
void fleet_hosts(const struct roster_sum *s, const struct fleet_style *style, struct buffer *out);
/* One object, with all hosts. */
void fleet_json(const struct roster_sum *s, struct buffer *out);

#endif

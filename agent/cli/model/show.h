/*
 * What the agent's answer to GET /v1/status means to an operator: which configs need attention,
 * how badly, and the sentences that say so. Shared by `pullet status` and `pullet top`.
 *
 * Threads: one. Ownership: a struct show borrows the answer it was read from. Errors of buffers
 * stick. Nothing of the answer is appended to a buffer without words_text().
 */
#ifndef PULLET_CLI_SHOW_H
#define PULLET_CLI_SHOW_H

#include <stdbool.h>

#include "cli/common/client.h"
#include "cli/text/wrap.h"

#define SHOW_SOON_MS                                                                               \
	(INT64_C(7) * 24 * 3600 * 1000) /* a signature that expires so soon is noted               \
					 */

enum show_rank {    /* the worse, the higher */
	SHOW_QUIET, /* ok, without notes */
	SHOW_NOTED, /* ok, with notes: a pin, a rejected version, ... */
	SHOW_FAILING,
	SHOW_STALE,
	SHOW_WAITING, /* nothing is published */
	SHOW_RANKS
};

struct show_config {
	const struct node *node;
	const char *name, *state;
	enum show_rank rank;
	int64_t age_ms, next_ms; /* -1 = none; next_ms: after the backoff of its server */
	int64_t runs, timeouts, rejected;
	size_t index; /* in the answer */
};

struct show {
	const struct node *root;
	struct show_config *configs; /* as in the answer, until show_sort() */
	size_t count;
	size_t ranks[SHOW_RANKS];
	size_t unpulled;                          /* what is published is from before the start */
	int64_t runs, failed, timeouts, rejected; /* of all configs */
};

/* Reads an answer: of all configs, or of one. 0 or -ENOMEM. */
int show_read(const struct node *root, struct show *ret);
void show_fini(struct show *s);
/* A config's version is being probed, or waits for it. */
bool show_is_probed(const struct node *c);
/* The signature of its version has expired. */
bool show_has_expired(const struct node *c);
/* Sorts the configs; equal ones stay in the order of the answer. */
void show_sort(
	struct show *s, int (*compare)(const struct show_config *a, const struct show_config *b));
/* The worst first, and among equals the one that was confirmed longest ago. */
int show_by_rank(const struct show_config *a, const struct show_config *b);

/* Colours are used: this descriptor, or standard output, is a terminal that knows them, and
 * NO_COLOR does not say otherwise. */
bool show_colours_on(int fd);
bool show_colours(void);
/* The colour of a state of a config or a push endpoint, or "". */
const char *show_colour(const char *state);

/* "40 configs: 38 ok, 1 stale, 1 failing; 1 pinned; the worst is billing (stale)". No newline. */
void show_headline(const struct show *s, struct buffer *out);
/* "12s", "running", "held 40s", "queued". Returns text. */
const char *show_next_pull(const struct show_config *c, char text[24]);
/* The text, fit for a terminal; in b, which is cleared. */
const char *show_clean(const char *text, struct buffer *b);
/* Appends a version as the log has it, an ETag without its quotes; NULL is "-". */
void show_version(const char *version, struct buffer *out);
/* The last error as one text, with its cause before it; nothing without one. */
void show_error(const struct show_config *c, struct buffer *out);
/* Appends the notes on a config, a line each, after two blanks. all: also those that are no news.
 */
void show_notes(const struct show_config *c, bool all, struct buffer *out);
/* Appends every member of the answer about one config, a line each. */
void show_details(const struct show *s, struct buffer *out);
/* Appends the notes on the agent: a rejected new configuration, servers in backoff, push endpoints
 * that are not connected, receipts that fail or that another agent overwrites. */
void show_agent(const struct show *s, struct buffer *out);
/* The configuration that was read last is invalid: the one before runs. */
bool show_configuration_is_rejected(const struct show *s);
/* There are push endpoints, and all are connected. */
bool show_push_is_good(const struct show *s);
/* "1 of 2 connected", "not configured". */
void show_push(const struct show *s, struct buffer *out);

#endif

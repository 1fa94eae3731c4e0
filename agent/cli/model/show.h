/*
 * What the agent's answer to GET /v1/status means to an operator: which configs need him, how bad
 * it is, and the sentences that say so. Shared by `pullet status` and `pullet top`.
 *
 * Threads: one. Ownership: a struct show borrows the answer it was read from. Errors of buffers
 * stick. Nothing of the answer is appended to a buffer without words_text().
 */
#ifndef PULLET_CLI_SHOW_H
#define PULLET_CLI_SHOW_H

#include <stdbool.h>

#include "cli/common/client.h"
#include "cli/text/wrap.h"

#define SHOW_SOON_MS (INT64_C(7) * 24 * 3600 * 1000) /* a signature that ends so soon is news */

enum show_rank {    /* the worse, the higher */
	SHOW_QUIET, /* ok, and nothing to be said */
	SHOW_TOLD,  /* ok, and something to be known: a pin, a version that is refused, ... */
	SHOW_FAILING,
	SHOW_STALE,
	SHOW_WAITING, /* nothing is published */
	SHOW_RANKS
};

struct show_config {
	const struct node *node;
	const char *name, *state;
	enum show_rank rank;
	int64_t age_ms, next_ms; /* -1 = none; next_ms: not before its server may be asked again */
	int64_t runs, timeouts, refused;
	size_t index; /* in the answer */
};

struct show {
	const struct node *root;
	struct show_config *configs; /* as in the answer, until show_sort() */
	size_t count;
	size_t ranks[SHOW_RANKS];
	int64_t runs, failed, timeouts, refused; /* of all configs */
};

/* Reads an answer: of all configs, or of one. 0 or -ENOMEM. */
int show_read(const struct node *root, struct show *ret);
void show_fini(struct show *s);
/* Orders the configs by less(a, b) < 0; those that are equal as in the answer. */
void show_sort(
	struct show *s, int (*compare)(const struct show_config *a, const struct show_config *b));
/* The worst first, and of those that are as bad the one that was confirmed longest ago. */
int show_by_rank(const struct show_config *a, const struct show_config *b);

/* Colours are used: this descriptor, or standard output, is a terminal that knows them, and
 * NO_COLOR does not say otherwise. */
bool show_colours_on(int fd);
bool show_colours(void);
/* The colour of a state of a config or a push endpoint, or "". */
const char *show_colour(const char *state);

/* "40 configs: 38 ok, 1 stale, 1 failing; 1 pinned; the worst is billing (stale)". No newline. */
void show_headline(const struct show *s, struct buffer *out);
/* "12s", "running", "held 40s", "in line". Returns text. */
const char *show_next(const struct show_config *c, char text[24]);
/* The text, fit for a terminal; in b, which is cleared. */
const char *show_clean(const char *text, struct buffer *b);
/* Appends a version as the log has it, an ETag without its quotes; NULL is "-". */
void show_version(const char *version, struct buffer *out);
/* The last error as one text, with its cause before it; nothing without one. */
void show_error(const struct show_config *c, struct buffer *out);
/* What an operator should know of a config: a line for each, after two blanks. all: also what is
 * no news. */
void show_notes(const struct show_config *c, bool all, struct buffer *out);
/* Every member of the answer, of one config, a line each; moments and spans as people write them.
 */
void show_details(const struct show *s, struct buffer *out);
/* The same of the agent: a new configuration that was refused, servers that are left alone, push
 * endpoints that are not connected, receipts that fail. A line for each; nothing when all is well.
 */
void show_agent(const struct show *s, struct buffer *out);
/* The configuration that was read last was bad: what runs is the one before. */
bool show_configuration_is_refused(const struct show *s);
/* There are push endpoints, and all of them are connected. */
bool show_push_is_good(const struct show *s);
/* "1 of 2 connected", "not configured". */
void show_push(const struct show *s, struct buffer *out);

#endif

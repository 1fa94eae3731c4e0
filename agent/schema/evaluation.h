/*
 * One evaluation of a document by a schema: the work that is left, the pattern matcher, and whether
 * it reports errors (loud) or only decides (quiet). Private to agent/schema.
 *
 * Threads: the caller's alone. Errors: in `error`, and then no result counts. Bounds:
 * SCHEMA_MAX_WORK.
 */
#ifndef PULLET_SCHEMA_EVALUATION_H
#define PULLET_SCHEMA_EVALUATION_H

#include "schema/rule.h"

struct report {
	struct buffer *out;
	size_t count;              /* of all errors */
	size_t max;                /* of those that are written */
	const struct value *about; /* not NULL: no places; no path either for this value itself */
	unsigned depth;            /* of the first error in the document */
};

struct evaluation {
	struct report *report;   /* NULL: quiet */
	struct matcher *matcher; /* NULL until the first pattern */
	uint64_t work;           /* what is left */
	const struct value *at;  /* being checked */
	char *const *mask;       /* key patterns whose values are not shown; or NULL */
	int error;               /* not 0: the result does not count */
};

/* Pays for that many steps. False: they are not there, or an error came before. */
bool evaluation_spend(struct evaluation *e, uint64_t steps);
/* Pays for finding `count` keys among others. */
bool evaluation_spend_finds(struct evaluation *e, size_t count, size_t among);
/* How often a count can be halved, and twice more: what looking up and sorting cost. */
uint64_t evaluation_halvings(size_t count);
/* Does the check of a value go on? While errors are reported, it does after the first. */
bool evaluation_may_continue(const struct evaluation *e, bool valid);
/* Pays for the match. False on an error, too. */
bool evaluation_matches(
	struct evaluation *e, const struct pattern *p, const char *text, size_t len);

#endif

/*
 * The outage of a server: which configs fail for its sake, counted, so that the log says it once
 * for all of them. The status names each.
 *
 * The first line is written at once. Each has the number of configs that fail by then, and that of
 * the server's configs, where there are several; when others have joined, the next one comes as
 * soon as all of them fail, or after OUTAGE_COUNT_MS, and then one a minute. One says when none
 * fails any more.
 *
 * Threads: the loop's. Ownership: embedded in its server; a config that has joined must leave
 * before that goes. Zeroed at first.
 */
#ifndef PULLET_PULL_OUTAGE_H
#define PULLET_PULL_OUTAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"

#define OUTAGE_COUNT_MS 5000u

struct outage {
	const char *server; /* its name, for the log; borrowed */
	size_t configs; /* of the server, but for those that have a bootstrap or rollout there only;
			 * pulls keep it */
	size_t failing; /* configs that have joined */
	size_t most;    /* of them, at a time, since the first one joined */
	bool counted;   /* a line with their number was written */
	uint64_t since_ms;
	struct log_limit limit;
};

/* One more config fails. */
void outage_join(struct outage *o, uint64_t now_ms);
/* One of those that have joined failed again, or just now. True when its line may be written now;
 * *ret_suppressed as log_limit_pass(). */
bool outage_may_log(struct outage *o, uint64_t now_ms, unsigned *ret_suppressed);
/* How many configs the server has; NULL has none. */
size_t outage_configs(const struct outage *o);
/* A config that has joined does not fail for this any more. True when several did: the log says it
 * here, once, when the last one leaves; else the config says it. */
bool outage_leave(struct outage *o, uint64_t now_ms);
/* The same without a word: the config is suspended or freed, and nobody knows whether it would
 * fail. */
void outage_forget(struct outage *o);

#endif

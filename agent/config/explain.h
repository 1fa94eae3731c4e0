/*
 * What explain.c and explain_words.c share. For nobody else.
 */
#ifndef PULLET_EXPLAIN_H
#define PULLET_EXPLAIN_H

#include "config/core.h"
#include "text/sentence.h"

struct explanation {
	const struct config *config;
	struct situation situation;
	struct config_status status; /* only if `all` */
	enum audience audience;
	bool all; /* else only why the server's version is not current, and what failed */
	int64_t wall_ms;
	struct buffer *out;
};

/* The row was the one to begin, but failed, and waits for the next tick. */
bool explain_is_resting(const struct situation *s, enum decide_row row);
/* When the step under way began, wall clock. */
int64_t explain_step_start(const struct explanation *e);
/* Appends the sentences as elements of an array. */
void explain_append_sentences(const struct explanation *e);

#endif

/*
 * What the files explain*.c share. For nobody else.
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

/* --- explain_words.c --- */

/* Appends one. */
void explain_say(const struct explanation *e, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* A time as text, in whole units, at least 1s. */
const char *explain_write_span(int64_t ms, char text[24]);
#define EXPLAIN_SPAN(ms) explain_write_span(ms, (char[24]){0})
/* Why the last pull, or what followed it, failed; "" = it did not, or other sentences say so. */
const char *explain_pull_error(const struct explanation *e);

/* Files are restored once a second at most, and the second is not over. */
bool explain_repairs_soon(const struct explanation *e);

/* --- explain_change.c; only if `all` --- */

void explain_commands(const struct explanation *e);
/* The same after a rollback: what makes new versions current again. */
void explain_way_forward(const struct explanation *e);
void explain_next_pull(const struct explanation *e);

#endif

/*
 * The screen of `pullet top`: frames, and the effects of keys. No I/O.
 *
 * Threads: one. Ownership: a view borrows the answer that `show` was read from. Errors of buffers
 * stick.
 */
#ifndef PULLET_CLI_VIEW_H
#define PULLET_CLI_VIEW_H

#include "cli/model/show.h"

#define SCREEN_MAX_FILTER 64 /* bytes, with the NUL */

struct screen {
	struct show show; /* root NULL = no answer yet */
	bool gone;        /* the agent does not answer, */
	char why[CLIENT_WHY];
	int64_t heard_ago_ms; /* the age of the shown answer */
	int64_t rate;         /* pulls per 1000 s; -1 = unknown */
	size_t order, scroll;
	char filter[SCREEN_MAX_FILTER];
	bool typing; /* the filter */
	size_t page; /* private: rows of the last frame */
};

/* Sorts the configs in the chosen order. Call it when `show` changed. */
void screen_sort(struct screen *v);
/* Appends the lines of a frame, at most `rows` of them (WRAP_ENDLESS = all), scrolled. keys: with a
 * line about keys. */
void screen_frame(
	struct screen *v, size_t width, size_t rows, bool colour, bool keys, struct buffer *out);
/* Takes a key (cli/text/terminal.h). False: that was the last one. */
bool screen_press(struct screen *v, int key);

#endif

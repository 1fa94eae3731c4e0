/*
 * The screen of `pullet top`: what it shows, and what keys do to it. No I/O.
 *
 * Threads: one. Ownership: a view borrows the answer that `show` was read from. Errors of buffers
 * stick.
 */
#ifndef PULLET_CLI_VIEW_H
#define PULLET_CLI_VIEW_H

#include "cli/model/show.h"

#define SCREEN_MAX_FILTER 64 /* bytes, with the NUL */

struct screen {
	struct show show; /* root NULL = nothing was heard yet */
	bool gone;        /* the agent does not answer, */
	char why[CLIENT_WHY];
	int64_t heard_ago_ms; /* and this is how old what is shown is */
	int64_t rate;         /* pulls in 1000 s; -1 = not known */
	size_t order, scroll;
	char filter[SCREEN_MAX_FILTER];
	bool typing; /* the filter */
	size_t page; /* private: rows of the last frame */
};

/* Puts the configs in the order that is chosen: to be called when `show` is another one. */
void screen_sort(struct screen *v);
/* Appends the lines of a frame; at most `rows` of them (WRAP_ENDLESS = all that there is), which
 * are then as many as fit, from those that are not scrolled away. keys: a line says what keys do.
 */
void screen_frame(
	struct screen *v, size_t width, size_t rows, bool colour, bool keys, struct buffer *out);
/* Takes a key (cli/text/terminal.h). False: that was the last one. */
bool screen_press(struct screen *v, int key);

#endif

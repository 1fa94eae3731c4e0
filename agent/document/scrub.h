/*
 * Removes the values of masked keys from the output of a user's program.
 *
 * It searches for the text of each masked scalar of at least SCRUB_MIN bytes, but for true,
 * false and null; each line of one with several; and the text as JSON has it. Also the beginning of
 * one at the very end, where the output was cut. A text that the program changed in another way
 * (base64, another quoting, a line broken in the middle, a part of it) is not found.
 *
 * Threads: any. Ownership: texts are copied. Bounds: SCRUB_MAX_WORK bytes are compared for one
 * text; where that is not enough, or memory, nothing of the text is shown.
 */
#ifndef PULLET_SCRUB_H
#define PULLET_SCRUB_H

#include <stddef.h>

#include "lib/buffer.h"
#include "document/document.h"

#define SCRUB_MIN 4
#define SCRUB_MAX_WORK (8u << 20)

struct scrub;

/* NULL when there is no memory. */
struct scrub *scrub_new(void);
void scrub_free(struct scrub *s);
/* Adds the values of the tree whose keys fit a pattern of mask (key_path_matches()). Without
 * memory, scrub_append() shows nothing. */
void scrub_add(struct scrub *s, const struct node *root, char *const *mask);
/* For values that are unknown: from now on nothing is shown. */
void scrub_hide_all(struct scrub *s);
/* Appends the text with *** for each value. 0 or the buffer's error. */
int scrub_append(const struct scrub *s, struct buffer *out, const char *text, size_t len);

#endif

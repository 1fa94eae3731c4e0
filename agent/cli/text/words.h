/*
 * Words of others for people, and times.
 *
 * Threads: any. Ownership: none kept.
 */
#ifndef PULLET_CLI_WORDS_H
#define PULLET_CLI_WORDS_H

#include <stdint.h>

#include "lib/buffer.h"

/* Appends text for a terminal: what is not to be shown as it is, is escaped (text/escape.h). */
void words_text(struct buffer *out, const char *text);
/* The same, but lines stay, indented from the second one on. */
void words_lines(struct buffer *out, const char *text);
/* Appends wall-clock milliseconds as 2026-11-21T10:41:05Z. */
void words_time(struct buffer *out, int64_t ms);

#endif

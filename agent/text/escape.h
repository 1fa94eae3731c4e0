/*
 * Decides which characters are never shown as they are, wherever foreign text ends up: a terminal,
 * a line of the log, the status page, systemd's status text, JSON.
 *
 * Those are the control characters (also those above 0x7f, which some terminals obey), what turns
 * the direction of text around or hides in it (bidi controls, zero-width marks, tags), what ends a
 * line for some readers only (U+0085, U+2028, U+2029), and bytes that are not UTF-8.
 *
 * Threads: any. Ownership: none kept.
 */
#ifndef PULLET_ESCAPE_H
#define PULLET_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/buffer.h"

/* Length of the well-formed UTF-8 sequence at s, of which there are left (at least 1) bytes; 0 = it
 * is none. */
size_t escape_sequence(const char *s, size_t left);
/* True when all of the text is. */
bool escape_is_utf8(const char *text);
/* The code point of a sequence that escape_sequence() accepted. */
uint32_t escape_code_point(const char *s, size_t len);
/* True when this character may be shown as it is. */
bool escape_is_plain(uint32_t code_point);

/* Appends len bytes for people: what is not plain as \x1b, \u202e or \U000e0041, a byte that is not
 * UTF-8 as \xff. 0 or the buffer's error. */
int escape_append(struct buffer *out, const char *text, size_t len);
/* The same for a text with several lines, with newline between them. */
int escape_append_lines(struct buffer *out, const char *text, const char *newline);

#endif

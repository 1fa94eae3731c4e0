/*
 * Text on lines of a certain width: cut, padded, wrapped at words. Widths are columns of a
 * terminal: wide characters count as two, combining ones as none.
 *
 * Texts are UTF-8 without control characters (words_text()). Threads: any. Ownership: none kept.
 */
#ifndef PULLET_CLI_LINES_H
#define PULLET_CLI_LINES_H

#include <stdint.h>

#include "lib/buffer.h"

#define WRAP_ENDLESS SIZE_MAX /* a width: never cut, never wrapped */

size_t wrap_width(const char *text);
/* Appends the text, at most `columns` of it; one that is cut ends in "...". Returns the columns
 * that were used. */
size_t wrap_cut(struct buffer *out, const char *text, size_t columns);
/* Appends a cell of a table: the text in `columns`, padded, and two blanks. on: a colour's escape
 * sequence, or "". */
void wrap_cell(struct buffer *out, const char *text, size_t columns, const char *on);
/* Appends the text with a newline at its end. What is longer than `columns` goes on, after a blank,
 * on the next line behind `indent` blanks; a word that is longer than a line is left whole. */
void wrap_text(struct buffer *out, const char *text, size_t indent, size_t columns);

/* The newlines in a text. */
size_t wrap_count_lines(const struct buffer *text);
/* "350ms" "12s" "5m" "3h" "2d"; "-" for less than 0. */
const char *wrap_span(int64_t ms, char text[24]);
/* Colours; WRAP_PLAIN ends them. */
#define WRAP_GOOD "\033[32m"
#define WRAP_WARNING "\033[33m"
#define WRAP_BAD "\033[31m"
#define WRAP_HEAD "\033[7m"
#define WRAP_PLAIN "\033[0m"

#endif

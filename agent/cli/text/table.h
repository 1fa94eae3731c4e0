/*
 * A table of texts that fits a terminal: as wide as its texts, and where that is too wide, columns
 * that matter less are left out, and the first and the last one are cut.
 *
 * Threads: one. Ownership: heads and colours are borrowed, texts are copied. Errors: stick, and
 * what is missing then is shown as nothing: table_error().
 */
#ifndef PULLET_CLI_TABLE_H
#define PULLET_CLI_TABLE_H

#include "cli/text/wrap.h"

#define TABLE_COLUMNS 12

struct table { /* fields are private */
	const char *const *heads;
	size_t columns, count, limit, width[TABLE_COLUMNS];
	struct table_cell {
		size_t at;
		const char *on;
	} * cells;
	struct buffer text;
	int error;
};

/* An empty table of so many columns (at most TABLE_COLUMNS) with these heads. */
void table_init(struct table *t, const char *const heads[], size_t columns);
void table_fini(struct table *t);
/* Appends the next cell, row by row. on: its colour, or "". The text is clean (words_text()). */
void table_add(struct table *t, const char *text, const char *on);
/* The same for a text of others, which is escaped, and cut to so many columns. */
void table_add_words(struct table *t, const char *text, size_t columns, const char *on);
/* The same for a short text that is made here, without a colour. */
void table_printf(struct table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Lays the table out, once all cells are there, to be at most `width` wide, with min_last for the
 * last column, if that can be had. drop: columns that may be left out, the first one first, ended
 * by 0. */
void table_fit(struct table *t, size_t width, size_t min_last, const unsigned char *drop);
/* Appends the line of a row, counted from 0, or the heads; the head of column `marked` (SIZE_MAX =
 * none) stands out. */
void table_row(const struct table *t, size_t row, struct buffer *out);
void table_head(const struct table *t, size_t marked, struct buffer *out);
/* Takes over the error of a buffer in which a cell's text was made. */
void table_take_error(struct table *t, const struct buffer *text);
/* 0 or -ENOMEM. */
int table_error(const struct table *t);

#endif

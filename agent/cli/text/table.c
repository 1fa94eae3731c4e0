/* A table that fits a terminal. Surprising: a number is never cut, a column goes as a whole. */
#include "cli/text/table.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/text/words.h"

#define MAX_TEXT (256u << 20)
#define MIN_FIRST 8 /* columns that are left of the first one */
#define GAP 2

void table_init(struct table *t, const char *const heads[], size_t columns)
{
	*t = (struct table){.heads = heads, .columns = columns, .limit = WRAP_ENDLESS};
	buffer_init(&t->text, MAX_TEXT);
	for (size_t i = 0; i < columns; i++)
		t->width[i] = wrap_width(heads[i]);
}

void table_fini(struct table *t)
{
	buffer_fini(&t->text);
	free(t->cells);
	*t = (struct table){0};
}

void table_add(struct table *t, const char *text, const char *on)
{
	size_t column = t->count % t->columns, width = wrap_width(text);
	struct table_cell *cells = array_room(t->cells, t->count, sizeof(*cells));

	if (!cells) {
		t->error = -ENOMEM;
		return;
	}
	t->cells = cells;
	cells[t->count++] = (struct table_cell){.at = t->text.len, .on = on};
	buffer_append(&t->text, text, strlen(text) + 1);
	if (width > t->width[column])
		t->width[column] = width;
}

void table_add_words(struct table *t, const char *text, size_t columns, const char *on)
{
	struct buffer words, cut;

	buffer_init(&words, MAX_TEXT);
	buffer_init(&cut, MAX_TEXT);
	words_text(&words, text);
	wrap_cut(&cut, words.data ? words.data : "", columns);
	table_add(t, cut.data ? cut.data : "", on);
	table_take_error(t, &words);
	table_take_error(t, &cut);
	buffer_fini(&words);
	buffer_fini(&cut);
}

void table_printf(struct table *t, const char *format, ...)
{
	char text[128];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	table_add(t, text, "");
}

void table_take_error(struct table *t, const struct buffer *text)
{
	t->error = t->error ? t->error : text->error;
}

int table_error(const struct table *t)
{
	return t->error ? t->error : t->text.error;
}

/* Columns that all but the last one take. */
static size_t before_last(const struct table *t)
{
	size_t sum = 0;

	for (size_t i = 0; i + 1 < t->columns; i++)
		sum += t->width[i] ? t->width[i] + GAP : 0;
	return sum;
}

void table_fit(struct table *t, size_t width, size_t min_last, const unsigned char *drop)
{
	size_t *first = &t->width[0], *last = &t->width[t->columns - 1], over;

	t->limit = width;
	if (width == WRAP_ENDLESS)
		return;
	if (min_last > *last)
		min_last = *last;
	for (; *drop && before_last(t) + min_last > width; drop++)
		t->width[*drop] = 0;
	over = before_last(t) + min_last > width ? before_last(t) + min_last - width : 0;
	if (*first > MIN_FIRST)
		*first = *first - MIN_FIRST > over ? *first - over : MIN_FIRST;
	*last = before_last(t) < width ? width - before_last(t) : 0;
}

/* Of all lines: what does not fit even so is cut. */
static void add_cell(const struct table *t, size_t column, const char *text, const char *on,
	size_t *left, struct buffer *out)
{
	size_t width = t->width[column] < *left ? t->width[column] : *left;
	bool colour = on[0] && width;

	if (column + 1 < t->columns && width && width + GAP <= *left) {
		wrap_cell(out, text, width, on);
		*left -= width + GAP;
		return;
	}
	buffer_append_string(out, colour ? on : "");
	*left -= wrap_cut(out, text, width);
	buffer_append_string(out, colour ? WRAP_PLAIN : "");
}

static void end_line(struct buffer *out)
{
	while (out->len && out->data[out->len - 1] == ' ')
		out->data[--out->len] = '\0';
	buffer_append_string(out, "\n");
}

void table_head(const struct table *t, size_t marked, struct buffer *out)
{
	size_t left = t->limit;

	for (size_t i = 0; i < t->columns; i++)
		add_cell(t, i, t->heads[i], i == marked ? WRAP_HEAD : "", &left, out);
	end_line(out);
}

void table_row(const struct table *t, size_t row, struct buffer *out)
{
	size_t left = t->limit;

	if (table_error(t))
		return;
	for (size_t i = 0; i < t->columns && row * t->columns + i < t->count; i++) {
		const struct table_cell *c = &t->cells[row * t->columns + i];

		add_cell(t, i, t->text.data + c->at, c->on, &left, out);
	}
	end_line(out);
}

/* Text on lines of a certain width. Surprising: what is no UTF-8 counts a column a byte, so that
 * nothing is ever left out. */
#include "cli/text/wrap.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#define CUT "..."
#define MAX_BYTES 4 /* of a character */

/* One character: its bytes, and its columns. */
static size_t next_character(const char *p, size_t *ret_columns)
{
	mbstate_t state = {0};
	wchar_t c;
	size_t n = mbrtowc(&c, p, strnlen(p, MAX_BYTES), &state);
	int width;

	*ret_columns = 1;
	if (n == 0 || n > MAX_BYTES)
		return 1;
	width = wcwidth(c);
	if (width >= 0)
		*ret_columns = (size_t)width;
	return n;
}

/* How many bytes of the text fit, and their columns. */
static size_t fit_columns(const char *text, size_t columns, size_t *ret_used)
{
	size_t len = 0, used = 0, n, width;

	for (; text[len]; len += n, used += width) {
		n = next_character(text + len, &width);
		if (width > columns - used)
			break;
	}
	*ret_used = used;
	return len;
}

size_t wrap_width(const char *text)
{
	size_t used;

	fit_columns(text, WRAP_ENDLESS, &used);
	return used;
}

size_t wrap_cut(struct buffer *out, const char *text, size_t columns)
{
	size_t used, len = fit_columns(text, columns, &used), mark = 0;

	if (text[len]) {
		mark = columns < sizeof(CUT) - 1 ? columns : sizeof(CUT) - 1;
		len = fit_columns(text, columns - mark, &used);
	}
	buffer_append(out, text, len);
	buffer_append(out, CUT, mark);
	return used + mark;
}

void wrap_cell(struct buffer *out, const char *text, size_t columns, const char *on)
{
	size_t used;

	buffer_append_string(out, on);
	used = wrap_cut(out, text, columns);
	if (on[0])
		buffer_append_string(out, WRAP_PLAIN);
	buffer_printf(out, "%*s", (int)(columns - used + 2), "");
}

/* The bytes of the text that belong on this line: up to the last blank that fits. */
static size_t break_at(const char *text, size_t columns)
{
	size_t used, len = fit_columns(text, columns, &used), lead = strspn(text, " ");

	if (text[len] == '\0' || text[len] == ' ')
		return len;
	for (size_t i = len; i > lead; i--)
		if (text[i - 1] == ' ')
			return i - 1;
	return lead + strcspn(text + lead, " ");
}

static void wrap_line(struct buffer *out, const char *text, size_t indent, size_t columns)
{
	size_t len = break_at(text, columns);

	buffer_append(out, text, len);
	for (text += len; *(text += strspn(text, " ")); text += len) {
		len = break_at(text, columns > indent ? columns - indent : 1);
		buffer_printf(out, "\n%*s", (int)indent, "");
		buffer_append(out, text, len);
	}
	buffer_append(out, "\n", 1);
}

void wrap_text(struct buffer *out, const char *text, size_t indent, size_t columns)
{
	struct buffer line;

	buffer_init(&line, 1u << 20);
	while (*text) {
		size_t len = strcspn(text, "\n");

		buffer_clear(&line);
		buffer_append(&line, text, len);
		buffer_take_error(out, &line);
		wrap_line(out, line.data ? line.data : "", indent, columns);
		text += len + (text[len] == '\n');
	}
	buffer_fini(&line);
}

size_t wrap_count_lines(const struct buffer *text)
{
	size_t n = 0;

	for (size_t i = 0; i < text->len; i++)
		n += text->data[i] == '\n';
	return n;
}

const char *wrap_span(int64_t ms, char text[24])
{
	static const struct {
		int64_t below, unit;
		const char *name;
	} units[] = {
		{1000, 1, "ms"},
		{120 * 1000, 1000, "s"},
		{120 * 60 * 1000, 60 * 1000, "m"},
		{48 * 3600 * 1000, 3600 * 1000, "h"},
		{INT64_MAX, 24 * 3600 * 1000, "d"},
	};

	snprintf(text, 24, "-");
	for (size_t i = 0; ms >= 0 && i < sizeof(units) / sizeof(units[0]); i++) {
		if (ms >= units[i].below)
			continue;
		snprintf(text, 24, "%" PRId64 "%s", ms / units[i].unit, units[i].name);
		break;
	}
	return text;
}

/* The screen of `pullet top`. Surprising: in every order the configs that are equal stay as they
 * were, so that nothing jumps from frame to frame. */
#include "cli/status/screen.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/common/operate.h"
#include "cli/text/table.h"
#include "cli/text/terminal.h"
#include "cli/text/words.h"

#define MIN_ERROR 36 /* columns that the last error keeps before others are left out */

enum column { CONFIG, STATE, GENERATION, AGE, NEXT, RUNS, TIMEOUTS, REFUSED, LAST_ERROR };

/* ---- order ---- */

static int descending(int64_t a, int64_t b)
{
	return a == b ? 0 : a > b ? -1 : 1;
}

static int by_name(const struct show_config *a, const struct show_config *b)
{
	return strcmp(a->name, b->name);
}

static int by_age(const struct show_config *a, const struct show_config *b)
{
	return descending(a->age_ms, b->age_ms);
}

static int by_next(const struct show_config *a, const struct show_config *b)
{
	return descending(b->next_ms, a->next_ms);
}

static int by_runs(const struct show_config *a, const struct show_config *b)
{
	return descending(a->runs, b->runs);
}

static int by_timeouts(const struct show_config *a, const struct show_config *b)
{
	return descending(a->timeouts, b->timeouts);
}

static int by_refused(const struct show_config *a, const struct show_config *b)
{
	return descending(a->refused, b->refused);
}

static const struct order {
	const char *name;
	int (*compare)(const struct show_config *a, const struct show_config *b);
	enum column column; /* whose head is marked */
} orders[] = {
	{"state", show_by_rank, STATE},
	{"name", by_name, CONFIG},
	{"age", by_age, AGE},
	{"next", by_next, NEXT},
	{"runs", by_runs, RUNS},
	{"timeouts", by_timeouts, TIMEOUTS},
	{"refused", by_refused, REFUSED},
};

enum { ORDERS = sizeof(orders) / sizeof(orders[0]) };

void screen_sort(struct screen *v)
{
	show_sort(&v->show, orders[v->order].compare);
}

/* ---- the head ---- */

/* A line of the head, cut; `on` is its colour. */
static void add_line(struct buffer *out, struct buffer *text, size_t width, const char *on)
{
	buffer_append_string(out, on);
	wrap_cut(out, text->data ? text->data : "", width);
	buffer_append_string(out, on[0] ? WRAP_PLAIN "\n" : "\n");
	buffer_clear(text);
}

static void add_agent(const struct screen *v, struct buffer *line)
{
	const struct node *root = v->show.root;
	char text[24];

	if (v->gone) {
		if (root)
			buffer_printf(line, "not heard for %s, ", wrap_span(v->heard_ago_ms, text));
		buffer_append_string(line, "trying again: ");
		words_text(line, v->why);
	} else if (root) {
		buffer_append_string(line, "pulletd ");
		words_text(line, client_text(root, "version", "?"));
		buffer_append_string(line, " on ");
		words_text(line, client_text(root, "host", "?"));
		buffer_printf(line, ", pid %" PRId64 ", up %s", client_number(root, "pid", 0),
			wrap_span(client_number(root, "uptime_ms", -1), text));
	} else {
		buffer_append_string(line, "asking the agent");
	}
}

static void add_totals(const struct screen *v, struct buffer *line)
{
	const struct show *s = &v->show;

	buffer_printf(line, "pulls: %" PRId64, s->runs);
	if (v->rate >= 0)
		buffer_printf(
			line, " (%" PRId64 ".%" PRId64 "/s)", v->rate / 1000, v->rate % 1000 / 100);
	buffer_printf(line, ", timed out: %" PRId64 ", failed: %" PRId64 ", refused: %" PRId64,
		s->timeouts, s->failed, s->refused);
	buffer_append_string(line, "; push: ");
	show_push(s, line);
}

static void add_keys(const struct screen *v, struct buffer *line)
{
	if (v->typing || v->filter[0]) {
		buffer_append_string(line, "filter: ");
		words_text(line, v->filter);
		buffer_append_string(line, v->typing ? "_   Enter keeps it, Esc ends it" : "   ");
	}
	if (!v->typing)
		buffer_printf(line, "q quit   s order: %s   / filter   arrows, PgUp, PgDn scroll",
			orders[v->order].name);
}

static void add_troubles(
	const struct screen *v, size_t width, struct buffer *line, struct buffer *out)
{
	show_agent(&v->show, line);
	for (char *p = line->data, *end; p && *p; p = end + 1) {
		end = p + strcspn(p, "\n");
		*end = '\0';
		wrap_cut(out, p, width);
		buffer_append_string(out, "\n");
	}
	buffer_clear(line);
}

static void add_head(
	const struct screen *v, size_t width, bool colour, bool keys, struct buffer *out)
{
	struct buffer line;

	buffer_init(&line, 1u << 20);
	add_agent(v, &line);
	add_line(out, &line, width, v->gone && colour ? WRAP_BAD : "");
	if (v->show.root) {
		show_headline(&v->show, &line);
		add_line(out, &line, width, "");
		add_totals(v, &line);
		add_line(out, &line, width, "");
		add_troubles(v, width, &line, out);
	}
	if (keys) {
		add_keys(v, &line);
		add_line(out, &line, width, "");
	}
	buffer_fini(&line);
}

/* ---- the table ---- */

/* What is wrong with it, or else what is to be known, on one line. */
static const char *trouble(const struct show_config *c, struct buffer *text)
{
	char *p;

	buffer_clear(text);
	show_error(c, text);
	if (!text->len)
		show_notes(c, false, text);
	while (text->len && text->data[text->len - 1] == '\n')
		text->data[--text->len] = '\0';
	for (p = text->data; p && *p; p++)
		if (*p == '\n')
			*p = ' ';
	return text->data ? text->data + strspn(text->data, " ") : "";
}

static void add_number(struct table *t, int64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, n);
	table_add(t, text, "");
}

static void add_row(const struct show_config *c, bool colour, struct buffer *b, struct table *t)
{
	char text[24];

	table_add(t, show_clean(c->name, b), "");
	table_add(t, show_clean(c->state, b), colour ? show_colour(c->state) : "");
	add_number(t, client_number(c->node, "generation", 0));
	table_add(t, wrap_span(c->age_ms, text), "");
	table_add(t, show_next(c, text), "");
	add_number(t, c->runs);
	add_number(t, c->timeouts);
	add_number(t, c->refused);
	table_add(t, trouble(c, b), "");
}

static bool contains(const char *text, const char *part)
{
	return text && strcasestr(text, part);
}

static bool is_shown(const struct screen *v, const struct show_config *c)
{
	return !v->filter[0] || contains(c->name, v->filter) || contains(c->state, v->filter) ||
	       contains(client_text(c->node, "cause", NULL), v->filter) ||
	       contains(client_text(c->node, "last_error", NULL), v->filter);
}

static size_t count_lines(const struct buffer *b)
{
	size_t n = 0;

	for (size_t i = 0; i < b->len; i++)
		n += b->data[i] == '\n';
	return n;
}

static void add_table(
	struct screen *v, size_t width, size_t rows, bool colour, bool keys, struct buffer *out)
{
	static const char *const heads[] = {"CONFIG", "STATE", "GEN", "AGE", "NEXT", "RUNS",
		"TIMEOUTS", "REFUSED", "LAST ERROR"};
	static const unsigned char drop[] = {REFUSED, TIMEOUTS, RUNS, GENERATION, 0};
	size_t used = count_lines(out) + 1, shown = 0;
	struct buffer b;
	struct table t;

	table_init(&t, heads, sizeof(heads) / sizeof(heads[0]));
	buffer_init(&b, 1u << 20);
	for (size_t i = 0; i < v->show.count; i++) {
		if (!is_shown(v, &v->show.configs[i]))
			continue;
		add_row(&v->show.configs[i], colour, &b, &t);
		shown++;
	}
	table_fit(&t, width, MIN_ERROR, drop);
	v->page = rows == WRAP_ENDLESS ? shown : rows > used ? rows - used : 1;
	if (v->scroll + v->page > shown)
		v->scroll = shown > v->page ? shown - v->page : 0;
	table_head(&t, keys && colour ? orders[v->order].column : SIZE_MAX, out);
	for (size_t i = v->scroll; i < shown && i < v->scroll + v->page; i++)
		table_row(&t, i, out);
	buffer_fini(&b);
	table_fini(&t);
}

void screen_frame(
	struct screen *v, size_t width, size_t rows, bool colour, bool keys, struct buffer *out)
{
	add_head(v, width, colour, keys, out);
	if (v->show.root)
		add_table(v, width, rows, colour, keys, out);
}

/* ---- keys ---- */

static void type(struct screen *v, int key)
{
	size_t len = strlen(v->filter);

	if (key == '\r' || key == '\n') {
		v->typing = false;
	} else if (key == KEY_ESCAPE) {
		v->typing = false;
		v->filter[0] = '\0';
	} else if ((key == 0x7f || key == '\b') && len) {
		while (--len && ((unsigned char)v->filter[len] & 0xc0) == 0x80)
			;
		v->filter[len] = '\0';
	} else if (key >= ' ' && key < 256 && key != 0x7f && len + 1 < SCREEN_MAX_FILTER) {
		v->filter[len] = (char)key;
		v->filter[len + 1] = '\0';
	}
}

static void scroll(struct screen *v, bool down, size_t lines)
{
	if (down)
		v->scroll += lines < v->show.count ? lines
						   : v->show.count; /* the next frame bounds it */
	else
		v->scroll -= lines < v->scroll ? lines : v->scroll;
}

static const struct move {
	int key;
	bool down;
	size_t lines; /* 0 = a page */
} moves[] = {{KEY_UP, false, 1}, {KEY_DOWN, true, 1}, {'k', false, 1}, {'j', true, STATE},
	{KEY_PAGE_UP, false, 0}, {KEY_PAGE_DOWN, true, 0}, {' ', true, CONFIG},
	{KEY_HOME, false, SIZE_MAX}, {KEY_END, true, SIZE_MAX}};

bool screen_press(struct screen *v, int key)
{
	if (v->typing) {
		type(v, key);
		return true;
	}
	for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++)
		if (moves[i].key == key)
			scroll(v, moves[i].down, moves[i].lines ? moves[i].lines : v->page);
	if (key == 's') {
		v->order = (v->order + 1) % ORDERS;
		screen_sort(v);
	} else if (key == '/') {
		v->typing = true;
	} else if (key == KEY_ESCAPE) {
		v->filter[0] = '\0';
	}
	return key != 'q';
}

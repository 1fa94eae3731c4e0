/* The screen of `pullet top`. Surprising: configs that compare equal keep their order, so that
 * nothing jumps from frame to frame. */
#include "cli/status/screen.h"

#include <inttypes.h>
#include <string.h>

#include "cli/common/operate.h"
#include "cli/text/table.h"
#include "cli/text/terminal.h"
#include "cli/text/words.h"

#define MIN_ERROR 36 /* columns that the last error keeps before others are left out */

enum column { CONFIG, STATE, GENERATION, AGE, NEXT, RUNS, TIMEOUTS, REJECTED, LAST_ERROR };

/* ---- order ---- */

static int order_descending(int64_t a, int64_t b)
{
	return a == b ? 0 : a > b ? -1 : 1;
}

static int compare_config_names(const struct show_config *a, const struct show_config *b)
{
	return strcmp(a->name, b->name);
}

static int compare_ages(const struct show_config *a, const struct show_config *b)
{
	return order_descending(a->age_ms, b->age_ms);
}

static int compare_next(const struct show_config *a, const struct show_config *b)
{
	return order_descending(b->next_ms, a->next_ms);
}

static int compare_run_counts(const struct show_config *a, const struct show_config *b)
{
	return order_descending(a->runs, b->runs);
}

static int compare_timeouts(const struct show_config *a, const struct show_config *b)
{
	return order_descending(a->timeouts, b->timeouts);
}

static int compare_rejections(const struct show_config *a, const struct show_config *b)
{
	return order_descending(a->rejected, b->rejected);
}

static const struct order {
	const char *name;
	int (*compare)(const struct show_config *a, const struct show_config *b);
	enum column column; /* whose head is marked */
} orders[] = {
	{"state", show_by_rank, STATE},
	{"name", compare_config_names, CONFIG},
	{"age", compare_ages, AGE},
	{"next", compare_next, NEXT},
	{"runs", compare_run_counts, RUNS},
	{"timeouts", compare_timeouts, TIMEOUTS},
	{"rejected", compare_rejections, REJECTED},
};

enum { ORDERS = sizeof(orders) / sizeof(orders[0]) };

void screen_sort(struct screen *v)
{
	show_sort(&v->show, orders[v->order].compare);
}

/* ---- the head ---- */

/* A line of the head, cut; `on` is its colour. */
static void add_head_line(struct buffer *out, struct buffer *text, size_t width, const char *on)
{
	buffer_append_string(out, on);
	wrap_cut(out, text->data ? text->data : "", width);
	buffer_append_string(out, on[0] ? WRAP_PLAIN "\n" : "\n");
	buffer_clear(text);
}

static void add_agent_line(const struct screen *v, struct buffer *line)
{
	const struct node *root = v->show.root;
	char text[24];

	if (v->gone) {
		if (root)
			buffer_printf(line, "no answer for %s, ", wrap_span(v->heard_ago_ms, text));
		buffer_append_string(line, "trying again: ");
		words_text(line, v->why);
	} else if (root) {
		buffer_append_string(line, "pulletd ");
		words_text(line, node_text(root, "version", "?"));
		buffer_append_string(line, " on ");
		words_text(line, node_text(root, "host", "?"));
		buffer_printf(line, ", pid %" PRId64 ", up %s", node_integer(root, "pid", 0),
			wrap_span(node_integer(root, "uptime_ms", -1), text));
	} else {
		buffer_append_string(line, "asking the agent");
	}
}

static void add_totals_line(const struct screen *v, struct buffer *line)
{
	const struct show *s = &v->show;

	buffer_printf(line, "pulls: %" PRId64, s->runs);
	if (v->rate >= 0)
		buffer_printf(
			line, " (%" PRId64 ".%" PRId64 "/s)", v->rate / 1000, v->rate % 1000 / 100);
	buffer_printf(line, ", timed out: %" PRId64 ", failed: %" PRId64 ", rejected: %" PRId64,
		s->timeouts, s->failed, s->rejected);
	buffer_append_string(line, "; push: ");
	show_push(s, line);
}

static void add_keys_line(const struct screen *v, struct buffer *line)
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

static void add_agent_notes(
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

static void add_screen_head(
	const struct screen *v, size_t width, bool colour, bool keys, struct buffer *out)
{
	struct buffer line;

	buffer_init(&line, 1u << 20);
	add_agent_line(v, &line);
	add_head_line(out, &line, width, v->gone && colour ? WRAP_BAD : "");
	if (v->show.root) {
		show_headline(&v->show, &line);
		add_head_line(out, &line, width, "");
		add_totals_line(v, &line);
		add_head_line(out, &line, width, "");
		add_agent_notes(v, width, &line, out);
	}
	if (keys) {
		add_keys_line(v, &line);
		add_head_line(out, &line, width, "");
	}
	buffer_fini(&line);
}

/* ---- the table ---- */

/* The last error, or else the notes, on one line. */
static const char *config_trouble(const struct show_config *c, struct buffer *text)
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

static void add_screen_row(
	const struct show_config *c, bool colour, struct buffer *b, struct table *t)
{
	char text[24];

	table_add(t, show_clean(c->name, b), "");
	table_add(t, show_clean(c->state, b), colour ? show_colour(c->state) : "");
	table_printf(t, "%" PRId64, node_integer(c->node, "generation", 0));
	table_add(t, wrap_span(c->age_ms, text), "");
	table_add(t, show_next_pull(c, text), "");
	table_printf(t, "%" PRId64, c->runs);
	table_printf(t, "%" PRId64, c->timeouts);
	table_printf(t, "%" PRId64, c->rejected);
	table_add(t, config_trouble(c, b), "");
}

static bool contains_part(const char *text, const char *part)
{
	return text && strcasestr(text, part);
}

static bool is_shown(const struct screen *v, const struct show_config *c)
{
	return !v->filter[0] || contains_part(c->name, v->filter) ||
	       contains_part(c->state, v->filter) ||
	       contains_part(node_text(c->node, "cause", NULL), v->filter) ||
	       contains_part(node_text(c->node, "last_error", NULL), v->filter);
}

static void add_screen_table(
	struct screen *v, size_t width, size_t rows, bool colour, bool keys, struct buffer *out)
{
	static const char *const heads[] = {"CONFIG", "STATE", "GEN", "AGE", "NEXT", "RUNS",
		"TIMEOUTS", "REJECTED", "LAST ERROR"};
	static const unsigned char drop[] = {REJECTED, TIMEOUTS, RUNS, GENERATION, 0};
	size_t used = wrap_count_lines(out) + 1, shown = 0;
	struct buffer b;
	struct table t;

	table_init(&t, heads, sizeof(heads) / sizeof(heads[0]));
	buffer_init(&b, 1u << 20);
	for (size_t i = 0; i < v->show.count; i++) {
		if (!is_shown(v, &v->show.configs[i]))
			continue;
		add_screen_row(&v->show.configs[i], colour, &b, &t);
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
	add_screen_head(v, width, colour, keys, out);
	if (v->show.root)
		add_screen_table(v, width, rows, colour, keys, out);
}

/* ---- keys ---- */

static void edit_filter(struct screen *v, int key)
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

static void scroll_rows(struct screen *v, bool down, size_t lines)
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
} moves[] = {{KEY_UP, false, 1}, {KEY_DOWN, true, 1}, {'k', false, 1}, {'j', true, 1},
	{KEY_PAGE_UP, false, 0}, {KEY_PAGE_DOWN, true, 0}, {' ', true, 0},
	{KEY_HOME, false, SIZE_MAX}, {KEY_END, true, SIZE_MAX}};

bool screen_press(struct screen *v, int key)
{
	if (v->typing) {
		edit_filter(v, key);
		return true;
	}
	for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++)
		if (moves[i].key == key)
			scroll_rows(v, moves[i].down, moves[i].lines ? moves[i].lines : v->page);
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

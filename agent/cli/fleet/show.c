/* Tables and JSON of a fleet. Surprising: percentages are cut, not rounded: 100.0% is all hosts. */
#include "cli/fleet/show.h"

#include <stdio.h>
#include <string.h>

#include "text/json_writer.h"
#include "cli/common/operate.h"
#include "cli/text/words.h"

#define COLUMNS 5
#define CELL 72
#define SHOWN_DIGEST 12

struct row {
	char cell[COLUMNS][CELL];
	const char *colour; /* of the second cell; "" = none */
};

static const char *colour_of(enum receipt_state state)
{
	switch (state) {
	case RECEIPT_OK:
		return "\033[32m";
	case RECEIPT_APPLYING:
	case RECEIPT_PINNED:
	case RECEIPT_SUSPENDED:
	case RECEIPT_HELD:
	case RECEIPT_WAITING:
		return "\033[33m";
	case RECEIPT_REJECTED:
	case RECEIPT_FAILING:
	case RECEIPT_STALE:
	case RECEIPT_OTHER:
	case RECEIPT_STATES:
		break;
	}
	return "\033[31m";
}

/* ---- texts ---- */

static void append_percent(size_t part, size_t whole, struct buffer *out)
{
	size_t tenths = whole ? part * 1000 / whole : 0;

	buffer_printf(out, "%zu.%zu%%", tenths / 10, tenths % 10);
}

/* Copies a text into a cell, fit for a terminal. */
static void set_cell(char cell[CELL], const char *text)
{
	struct buffer b;
	size_t len;

	buffer_init(&b, 1u << 16);
	words_text(&b, text);
	len = b.len < CELL - 1 ? b.len : CELL - 1;
	while (len < b.len && len > 0 && ((unsigned char)b.data[len] & 0xc0) == 0x80)
		len--;
	if (len)
		memcpy(cell, b.data, len);
	cell[len] = '\0';
	buffer_fini(&b);
}

static void widen_columns(size_t width[COLUMNS], const struct row *r)
{
	for (size_t i = 0; i < COLUMNS; i++)
		if (strlen(r->cell[i]) > width[i])
			width[i] = strlen(r->cell[i]);
}

/* The last cell is not padded, and is followed by `tail`. */
static void append_fleet_row(const struct row *r, const size_t width[COLUMNS], size_t columns,
	const char *tail, bool colour, struct buffer *out)
{
	buffer_append_string(out, "  ");
	for (size_t i = 0; i < columns; i++) {
		bool on = colour && i == 1 && r->colour[0];
		bool last = i + 1 == columns && !tail[0];

		if (on)
			buffer_append_string(out, r->colour);
		buffer_append_string(out, r->cell[i]);
		if (on)
			buffer_append_string(out, "\033[0m");
		if (!last)
			buffer_printf(out, "%*s", (int)(width[i] - strlen(r->cell[i]) + 2), "");
	}
	words_text(out, tail);
	buffer_append_string(out, "\n");
}

/* "96 ok, 2 rejected" */
static void append_states(const struct roster_group *g, struct buffer *out)
{
	bool first = true;

	for (int i = 0; i < RECEIPT_STATES; i++) {
		if (!g->states[i])
			continue;
		buffer_printf(out, "%s%zu %s", first ? "" : ", ", g->states[i],
			receipt_state_name((enum receipt_state)i));
		first = false;
	}
}

/* ---- the versions ---- */

void fleet_headline(const struct roster_sum *s, struct buffer *out)
{
	words_text(out, s->config);
	if (!s->wanted) {
		buffer_printf(out, ": %zu host%s; the newest version is unknown", s->count,
			s->count == 1 ? "" : "s");
	} else {
		buffer_printf(out, ": %zu of %zu host%s run ", s->on_it, s->count,
			s->count == 1 ? "" : "s");
		words_text(out, s->wanted);
		buffer_append_string(out, " (");
		append_percent(s->on_it, s->count, out);
		buffer_append_string(out, ")");
	}
	if (s->silent)
		buffer_printf(out, ", %zu silent", s->silent);
	buffer_append_string(out, "\n");
}

static void fill_group(
	const struct roster_sum *s, const struct roster_group *g, struct row *r, struct buffer *b)
{
	*r = (struct row){.colour = ""};
	set_cell(r->cell[0], g->version[0] ? g->version : g->digest[0] ? "-" : "(nothing)");
	set_cell(r->cell[1], g->digest[0] ? g->digest : "-");
	r->cell[1][SHOWN_DIGEST] = '\0';
	snprintf(r->cell[2], CELL, "%zu", g->hosts);
	buffer_clear(b);
	append_percent(g->hosts, s->count, b);
	snprintf(r->cell[3], CELL, "%s%s", b->data ? b->data : "", g->wanted ? " *" : "");
	buffer_clear(b);
	append_states(g, b);
}

static void append_versions(const struct roster_sum *s, bool colour, struct buffer *out)
{
	static const struct row head = {
		.cell = {"VERSION", "DIGEST", "HOSTS", "PERCENT"}, .colour = ""};
	struct row r, silent = {.cell = {"(silent)", "-"}, .colour = ""};
	size_t width[COLUMNS] = {0};
	struct buffer text;

	buffer_init(&text, 4096);
	widen_columns(width, &head);
	for (size_t i = 0; i < s->group_count; i++) {
		fill_group(s, &s->groups[i], &r, &text);
		widen_columns(width, &r);
	}
	buffer_clear(&text);
	append_percent(s->silent, s->count, &text);
	snprintf(silent.cell[2], CELL, "%zu", s->silent);
	snprintf(silent.cell[3], CELL, "%s", text.data ? text.data : "");
	if (s->silent)
		widen_columns(width, &silent);
	append_fleet_row(&head, width, 4, "STATES", colour, out);
	for (size_t i = 0; i < s->group_count; i++) {
		fill_group(s, &s->groups[i], &r, &text);
		append_fleet_row(&r, width, 4, text.data ? text.data : "", colour, out);
	}
	if (s->silent)
		append_fleet_row(&silent, width, 4, "", colour, out);
	buffer_fini(&text);
}

/* ---- the hosts ---- */

static void fill_host(const struct roster_row *row, struct row *r, struct buffer *why)
{
	const struct receipt_config *c = row->runs;
	struct buffer since;

	*r = (struct row){.colour = row->silent ? "\033[31m" : colour_of(c->state)};
	set_cell(r->cell[0], row->host);
	set_cell(r->cell[1], row->silent ? "silent" : receipt_state_name(c->state));
	set_cell(r->cell[2], c->version[0] ? c->version : c->digest[0] ? c->digest : "-");
	buffer_init(&since, 64);
	if (!row->silent)
		words_time(&since, c->since_ms);
	snprintf(r->cell[3], CELL, "%s", since.data ? since.data : "-");
	buffer_fini(&since);
	buffer_clear(why);
	if (c->rejected[0])
		buffer_printf(why, "%s: ", c->rejected);
	buffer_append_string(why, c->why);
}

static bool is_listed(const struct roster_sum *s, const struct fleet_style *style, size_t i)
{
	return style->all || roster_behind(s, &s->rows[i]);
}

void fleet_hosts(const struct roster_sum *s, const struct fleet_style *style, struct buffer *out)
{
	static const struct row head = {
		.cell = {"HOST", "STATE", "VERSION", "SINCE"}, .colour = ""};
	size_t width[COLUMNS] = {0}, listed = 0, max = style->all ? SIZE_MAX : FLEET_LISTED;
	struct buffer why;
	struct row r;

	buffer_init(&why, 1u << 16);
	widen_columns(width, &head);
	for (size_t i = 0; i < s->count; i++) {
		if (!is_listed(s, style, i))
			continue;
		fill_host(&s->rows[i], &r, &why);
		if (listed++ < max)
			widen_columns(width, &r);
	}
	if (listed)
		append_fleet_row(&head, width, 4, "WHY", style->colour, out);
	for (size_t i = 0, n = 0; i < s->count && n < max; i++) {
		if (!is_listed(s, style, i))
			continue;
		fill_host(&s->rows[i], &r, &why);
		append_fleet_row(&r, width, 4, why.data ? why.data : "", style->colour, out);
		n++;
	}
	if (listed > max)
		buffer_printf(out, "  and %zu more: --all lists them\n", listed - max);
	buffer_fini(&why);
}

void fleet_table(const struct roster_sum *s, const struct fleet_style *style, struct buffer *out)
{
	fleet_headline(s, out);
	append_versions(s, style->colour, out);
	fleet_hosts(s, style, out);
}

/* ---- invalid receipts ---- */

struct ghost_list {
	size_t counts[GHOST_KINDS], all;
	struct buffer *out; /* NULL = count only */
};

static void count_ghost(void *arg, const char *key, enum ghost kind)
{
	struct ghost_list *list = arg;

	(void)key;
	list->counts[kind]++;
	list->all++;
}

static void name_ghost(void *arg, const char *key, enum ghost kind)
{
	struct ghost_list *list = arg;

	buffer_append_string(list->out, "  ");
	words_text(list->out, key);
	buffer_printf(list->out, "  %s\n", ghost_name(kind));
}

void fleet_ghosts(const struct roster *r, bool names, struct buffer *out)
{
	struct ghost_list list = {.out = out};
	bool first = true;

	roster_visit_ghosts(r, count_ghost, &list);
	if (list.all == 0)
		return;
	buffer_printf(out, "%zu invalid receipt%s:", list.all, list.all == 1 ? "" : "s");
	for (int i = 0; i < GHOST_KINDS; i++) {
		if (!list.counts[i])
			continue;
		buffer_printf(out, "%s %zu %s", first ? "" : ",", list.counts[i],
			ghost_name((enum ghost)i));
		first = false;
	}
	buffer_append_string(out, "\n");
	if (names)
		roster_visit_ghosts(r, name_ghost, &list);
}

/* ---- JSON ---- */

static void json_ghost(void *arg, const char *key, enum ghost kind)
{
	struct ghost_list *list = arg;

	json_writer_begin_object(list->out, NULL);
	json_writer_text(list->out, "key", key);
	json_writer_text(list->out, "why", ghost_name(kind));
	json_writer_end_object(list->out);
}

void fleet_json_ghosts(const struct roster *r, struct buffer *out)
{
	struct ghost_list list = {.out = out};

	json_writer_begin_array(out, NULL);
	roster_visit_ghosts(r, json_ghost, &list);
	json_writer_end_array(out);
}

/* Cut after three decimals. */
static void json_percent(size_t part, size_t whole, struct buffer *out)
{
	size_t n = part * 100000 / whole;

	json_writer_member(out, "percent");
	buffer_printf(out, "%zu.%03zu", n / 1000, n % 1000);
}

static void json_group(const struct roster_sum *s, const struct roster_group *g, struct buffer *out)
{
	json_writer_begin_object(out, NULL);
	json_writer_text(out, "version", g->version);
	json_writer_text(out, "digest", g->digest);
	json_writer_number(out, "hosts", g->hosts);
	json_percent(g->hosts, s->count, out);
	json_writer_boolean(out, "wanted", g->wanted);
	json_writer_begin_object(out, "states");
	for (int i = 0; i < RECEIPT_STATES; i++)
		if (g->states[i])
			json_writer_number(
				out, receipt_state_name((enum receipt_state)i), g->states[i]);
	json_writer_end_object(out);
	json_writer_end_object(out);
}

static void json_host(const struct roster_sum *s, const struct roster_row *row, struct buffer *out)
{
	const struct receipt_config *c = row->runs;

	json_writer_begin_object(out, NULL);
	json_writer_text(out, "host", row->host);
	json_writer_text(out, "state", row->silent ? "silent" : receipt_state_name(c->state));
	json_writer_boolean(out, "behind", roster_behind(s, row));
	json_writer_begin_object(out, "labels");
	for (size_t i = 0; i < row->receipt->label_count; i++)
		json_writer_text(out, row->receipt->labels[i].name, row->receipt->labels[i].value);
	json_writer_end_object(out);
	if (!row->silent) {
		json_writer_number(out, "generation", c->generation);
		json_writer_text(out, "version", c->version);
		json_writer_text(out, "others", c->others[0] ? c->others : NULL);
		json_writer_text(out, "digest", c->digest);
		json_writer_text(out, "why", c->why[0] ? c->why : NULL);
		json_writer_text(out, "rejected", c->rejected[0] ? c->rejected : NULL);
		json_writer_number(out, "since_ms", (unsigned long long)c->since_ms);
		json_writer_number(out, "pulled_ms", (unsigned long long)c->pulled_ms);
		json_writer_text(out, "pullet", row->receipt->pullet);
	}
	json_writer_end_object(out);
}

void fleet_json(const struct roster_sum *s, struct buffer *out)
{
	json_writer_begin_object(out, NULL);
	json_writer_text(out, "config", s->config);
	json_writer_text(out, "wanted", s->wanted);
	json_writer_number(out, "count", s->count);
	json_writer_number(out, "on_it", s->on_it);
	json_percent(s->on_it, s->count, out);
	json_writer_number(out, "silent", s->silent);
	json_writer_begin_array(out, "versions");
	for (size_t i = 0; i < s->group_count; i++) {
		json_group(s, &s->groups[i], out);
	}
	json_writer_end_array(out);
	json_writer_begin_array(out, "hosts");
	for (size_t i = 0; i < s->count; i++) {
		json_host(s, &s->rows[i], out);
	}
	json_writer_end_array(out);
	json_writer_end_object(out);
}

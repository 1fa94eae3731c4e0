/* Tables and JSON of a fleet. Surprising: percentages are cut, not rounded: 100.0% is all hosts. */
#include "cli/fleet/show.h"

#include <string.h>

#include "text/json_writer.h"
#include "cli/common/operate.h"
#include "cli/text/table.h"
#include "cli/text/words.h"

#define SHOWN 70 /* columns of a host or a version */
#define SHOWN_DIGEST 12

static const char *colour_of(enum receipt_state state)
{
	switch (state) {
	case RECEIPT_OK:
		return WRAP_GOOD;
	case RECEIPT_APPLYING:
	case RECEIPT_PINNED:
	case RECEIPT_SUSPENDED:
	case RECEIPT_HELD:
	case RECEIPT_WAITING:
		return WRAP_WARNING;
	case RECEIPT_REJECTED:
	case RECEIPT_FAILING:
	case RECEIPT_STALE:
	case RECEIPT_OTHER:
	case RECEIPT_STATES:
		break;
	}
	return WRAP_BAD;
}

/* ---- texts ---- */

static void append_percent(size_t part, size_t whole, struct buffer *out)
{
	size_t tenths = whole ? part * 1000 / whole : 0;

	buffer_printf(out, "%zu.%zu%%", tenths / 10, tenths % 10);
}

/* Appends the table, indented, and frees it. */
static void finish_table(struct table *t, struct buffer *out)
{
	buffer_append_string(out, "  ");
	table_head(t, SIZE_MAX, out);
	for (size_t i = 0; i * t->columns < t->count; i++) {
		buffer_append_string(out, "  ");
		table_row(t, i, out);
	}
	if (table_error(t))
		out->error = table_error(t);
	table_fini(t);
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

/* All hosts may run the newest version that is published, and none what its server has. */
static void append_refusals(const struct roster_sum *s, struct buffer *out)
{
	if (s->rejected)
		buffer_printf(out, ", %zu rejected", s->rejected);
	if (s->held)
		buffer_printf(out, "%s %zu hold%s back", s->rejected ? " and" : ",", s->held,
			s->held == 1 ? "s" : "");
	if (s->rejected || s->held)
		buffer_append_string(out, " what the server has");
}

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
	append_refusals(s, out);
	if (s->silent)
		buffer_printf(out, ", %zu silent", s->silent);
	if (s->stopped)
		buffer_printf(out, " (%zu of them stopped)", s->stopped);
	buffer_append_string(out, "\n");
}

static void add_share(size_t hosts, const char *mark, size_t all, struct table *t, struct buffer *b)
{
	table_printf(t, "%zu", hosts);
	buffer_clear(b);
	append_percent(hosts, all, b);
	table_printf(t, "%s%s", b->data ? b->data : "", mark);
}

void fleet_versions(const struct roster_sum *s, struct buffer *out)
{
	static const char *const heads[] = {"VERSION", "DIGEST", "HOSTS", "PERCENT", "STATES"};
	struct buffer text;
	struct table t;

	buffer_init(&text, 4096);
	table_init(&t, heads, sizeof(heads) / sizeof(heads[0]));
	for (size_t i = 0; i < s->group_count; i++) {
		const struct roster_group *g = &s->groups[i];

		table_add_words(&t,
			g->version[0]  ? g->version
			: g->digest[0] ? "-"
				       : "(nothing)",
			SHOWN, "");
		table_printf(&t, "%.*s", SHOWN_DIGEST, g->digest[0] ? g->digest : "-");
		add_share(g->hosts, g->wanted ? " *" : "", s->count, &t, &text);
		buffer_clear(&text);
		append_states(g, &text);
		table_add(&t, text.data ? text.data : "", "");
	}
	if (s->silent) {
		table_add(&t, "(silent)", "");
		table_add(&t, "-", "");
		add_share(s->silent, "", s->count, &t, &text);
		table_add(&t, "", "");
	}
	finish_table(&t, out);
	buffer_fini(&text);
}

/* ---- the hosts ---- */

/* A version that its probe rolled back was published, unlike one that a check rejected. */
static const char *shown_state(const struct roster_row *row)
{
	const struct receipt_config *c = row->runs;

	if (row->silent)
		return row->receipt->stopped_ms ? "stopped" : "silent";
	if (c->state == RECEIPT_REJECTED && strncmp(c->why, "probe: ", strlen("probe: ")) == 0)
		return "rolled back";
	return receipt_state_name(c->state);
}

static void add_host_row(const struct roster_row *row, bool colour, struct table *t)
{
	const struct receipt_config *c = row->runs;
	struct buffer text;

	buffer_init(&text, 1u << 16);
	table_add_words(t, row->host, SHOWN, "");
	table_add(t, shown_state(row), !colour ? "" : row->silent ? WRAP_BAD : colour_of(c->state));
	table_add_words(t, c->version[0] ? c->version : c->digest[0] ? c->digest : "-", SHOWN, "");
	if (!row->silent || row->receipt->stopped_ms)
		words_time(&text, row->silent ? row->receipt->stopped_ms : c->since_ms);
	table_add(t, text.data ? text.data : "-", "");
	buffer_clear(&text);
	if (row->silent && row->receipt->stopped_ms)
		buffer_append_string(&text, "its agent was told to stop");
	if (c->rejected[0])
		buffer_printf(&text, "%s: ", c->rejected);
	buffer_append_string(&text, c->why);
	table_add_words(t, text.data ? text.data : "", WRAP_ENDLESS, "");
	buffer_fini(&text);
}

static bool is_listed(const struct roster_sum *s, const struct fleet_style *style, size_t i)
{
	return style->all || roster_behind(s, &s->rows[i]);
}

void fleet_hosts(const struct roster_sum *s, const struct fleet_style *style, struct buffer *out)
{
	static const char *const heads[] = {"HOST", "STATE", "VERSION", "SINCE", "WHY"};
	size_t listed = 0, max = style->all ? SIZE_MAX : FLEET_LISTED;
	struct table t;

	table_init(&t, heads, sizeof(heads) / sizeof(heads[0]));
	for (size_t i = 0; i < s->count; i++)
		if (is_listed(s, style, i) && listed++ < max)
			add_host_row(&s->rows[i], style->colour, &t);
	if (listed)
		finish_table(&t, out);
	else
		table_fini(&t);
	if (listed > max)
		buffer_printf(out, "  and %zu more: --all lists them\n", listed - max);
}

void fleet_table(const struct roster_sum *s, const struct fleet_style *style, struct buffer *out)
{
	fleet_headline(s, out);
	fleet_versions(s, out);
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
	if (row->silent && row->receipt->stopped_ms)
		json_writer_number(out, "stopped_ms", (unsigned long long)row->receipt->stopped_ms);
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
	json_writer_number(out, "rejected", s->rejected);
	json_writer_number(out, "held", s->held);
	json_writer_number(out, "silent", s->silent);
	json_writer_number(out, "stopped", s->stopped);
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

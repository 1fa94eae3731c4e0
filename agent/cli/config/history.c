/* pullet history: the versions that are kept, when each was published, and why. Surprising: files
 * of older agents do not say that; of these it is shown when they were pulled. */
#include <inttypes.h>
#include <string.h>

#include "cli/common/cli.h"
#include "cli/common/operate.h"
#include "cli/model/show.h"
#include "cli/text/table.h"
#include "cli/text/words.h"

#define SHOWN_VERSION 40
#define SHOWN_DIGITS 12 /* of a digest */

static const struct option_row history_rows[] = {OPERATE_ROWS, {0}};

static const struct command_line history_line = {
	.usage = "Usage: pullet history CONFIG [--json] [--socket PATH]\n"
		 "Lists the versions in the state directory, newest first, when and why each was "
		 "published;\n"
		 "* marks the current one. After a rollback: what makes new versions current "
		 "again.\n",
	.rows = history_rows,
	.min = 1,
	.max = 1,
};

/* Why it was published: its origin, or what began the pull that brought it. */
static void add_why(const struct node *v, struct buffer *out)
{
	static const struct {
		const char *cause, *words, *alone; /* with somebody's name behind it, or alone */
	} table[] = {
		{"push", NULL, "push"},
		{"watch", NULL, "watch"},
		{"start", NULL, "pull at the start"},
		{"operator", "pull asked for by ", "pull"},
		{"pin", "unpinned by ", "the pin has expired"},
	};
	const char *origin = node_text(v, "origin", ""), *by = node_text(v, "by", NULL);

	for (size_t i = 0; strcmp(origin, "pull") == 0 && i < sizeof(table) / sizeof(table[0]);
		i++) {
		if (strcmp(table[i].cause, node_text(v, "cause", "")) != 0)
			continue;
		origin = by && table[i].words ? table[i].words : table[i].alone;
		buffer_append_string(out, origin);
		buffer_append_string(out, origin == table[i].words ? by : "");
		return;
	}
	buffer_append_string(out, origin);
}

/* When: an older agent did not note it. */
static void add_published(const struct node *v, struct buffer *out)
{
	int64_t ms = node_integer(v, "published_ms", 0);

	if (ms > 0)
		words_time(out, ms);
	else
		buffer_append_string(out, node_find(v, "bytes") ? "unknown" : "-");
}

static void add_version_row(const struct node *v, struct table *t)
{
	int64_t bytes = node_integer(v, "bytes", -1);
	struct buffer text;

	table_printf(t, "%" PRId64 "%s", node_integer(v, "generation", 0),
		node_is_true(v, "published") ? " *" : "");
	buffer_init(&text, 1u << 20);
	add_published(v, &text);
	table_add(t, text.data ? text.data : "-", "");
	table_take_error(t, &text);
	if (bytes >= 0)
		table_printf(t, "%" PRId64, bytes);
	else
		table_add(t, "-", "");
	buffer_clear(&text);
	show_version(node_text(v, "version", NULL), &text);
	table_printf(t, "%.*s", SHOWN_VERSION, text.data ? text.data : "-");
	table_take_error(t, &text);
	table_printf(t, "%.*s", SHOWN_DIGITS, node_text(v, "sha256", "-"));
	buffer_clear(&text);
	if (bytes < 0)
		buffer_append_string(&text, node_text(v, "error", ""));
	else
		add_why(v, &text);
	table_add_words(t, text.data ? text.data : "", WRAP_ENDLESS, "");
	table_take_error(t, &text);
	buffer_fini(&text);
}

/* Of a version whose publication nobody noted. */
static void add_pulled(const struct node *v, struct buffer *out)
{
	int64_t ms = node_integer(v, "pulled_ms", 0);

	if (node_integer(v, "published_ms", 0) > 0 || ms <= 0)
		return;
	buffer_append_string(out, "  pulled at ");
	words_time(out, ms);
	buffer_append_string(out, "; an older agent did not note when and why it published it\n");
}

static void add_rejection(const struct node *v, struct buffer *out)
{
	const struct node *rejected = node_find(v, "rejected");

	if (!rejected)
		return;
	buffer_append_string(out, "  ");
	operate_append_by(rejected, "", "", out);
	words_text(out, operate_why(rejected));
	buffer_append(out, "\n", 1);
}

static int show_history(const struct operate *o, const struct node *root, struct buffer *out)
{
	static const char *const heads[] = {
		"GENERATION", "PUBLISHED", "BYTES", "VERSION", "SHA256", "WHY"};
	const struct node *first = node_first(root, "versions");
	struct table t;
	size_t row = 0;

	if (!first) {
		words_text(out, o->config);
		buffer_append_string(out, ": nothing is published yet\n");
		return CLI_OK;
	}
	table_init(&t, heads, sizeof(heads) / sizeof(heads[0]));
	for (const struct node *v = first; v; v = v->next)
		add_version_row(v, &t);
	table_head(&t, SIZE_MAX, out);
	for (const struct node *v = first; v; v = v->next) {
		table_row(&t, row++, out);
		add_pulled(v, out);
		add_rejection(v, out);
	}
	if (table_error(&t))
		out->error = table_error(&t);
	table_fini(&t);
	if (node_is_true(root, "truncated"))
		buffer_append_string(out, "  there are older ones\n");
	operate_forward(out, root);
	return CLI_OK;
}

int cli_history(int argc, char **argv)
{
	struct operate o = {0};
	struct buffer path;
	int r = operate_options(&history_line, argc, argv, &o);

	if (r >= 0)
		return r;
	client_path(&path, o.config, "/history");
	return operate_ask(&o, "GET", &path, show_history);
}

/* pullet explain: why the current version is current; with a key, which layer its value comes from.
 * Surprising: layers without the key are shown too. */
#include <inttypes.h>
#include <string.h>

#include "document/diff.h"
#include "cli/common/cli.h"
#include "cli/common/operate.h"
#include "cli/text/words.h"

static const struct option_row explain_rows[] = {OPERATE_ROWS, {0}};

static const struct command_line explain_line = {
	.usage = "Usage: pullet explain CONFIG [KEY] [--json] [--socket PATH]\n"
		 "Says why the current version is current, what the server has, and what would "
		 "change it.\n"
		 "With KEY: shows its current value, and what each layer and each override says "
		 "about it;\n"
		 "* marks those in effect. Exit 2 if there is no such key.\n",
	.rows = explain_rows,
	.min = 1,
	.max = 2,
};

/* As `pullet diff` shows it; of a list or mapping only its size. */
static void add_shown_value(const struct node *entry, struct buffer *out)
{
	const struct node *n = node_find(entry, "value");
	struct diff_change change = {.kind = DIFF_ADDED, .path = "", .after = n};
	size_t begin = out->len;

	if (!n)
		return;
	if (node_is_true(entry, "masked")) {
		buffer_append_string(out, "***");
	} else if (n->type >= NODE_LIST && n->first) {
		buffer_printf(
			out, "a %s of %zu", n->type == NODE_LIST ? "list" : "mapping", n->count);
	} else if (diff_write_text(&change, NULL, out) == 0) { /* "+ : VALUE\n" */
		memmove(out->data + begin, out->data + begin + 4, out->len - begin - 5);
		out->len -= 5;
		out->data[out->len] = '\0';
	}
}

static void add_layer_line(const struct node *layer, struct buffer *out)
{
	bool override = node_is_true(layer, "override");
	int64_t line = node_integer(layer, "line", 0);

	buffer_printf(out, "%s %-9s ", node_is_true(layer, "effective") ? "*" : " ",
		node_text(layer, "effect", "?"));
	buffer_append_string(out, override ? "override of " : "");
	words_text(out, node_text(layer, override ? "key" : "path", "?"));
	if (line > 0)
		buffer_printf(out, ", line %" PRId64, line);
	if (node_find(layer, "value")) {
		buffer_append_string(out, ": ");
		add_shown_value(layer, out);
	}
	if (override)
		operate_decision(out, layer);
	buffer_append(out, "\n", 1);
}

static int show_explanation(const struct operate *o, const struct node *root, struct buffer *out)
{
	bool found = node_is_true(root, "found");

	words_text(out, o->arguments[1]);
	buffer_append_string(out, ": ");
	if (found)
		add_shown_value(root, out);
	else
		buffer_append_string(out, "not there");
	buffer_append(out, "\n", 1);
	for (const struct node *n = node_first(root, "layers"); n; n = n->next)
		add_layer_line(n, out);
	return found ? CLI_OK : CLI_NOT_FOUND;
}

static int show_sentences(const struct operate *o, const struct node *root, struct buffer *out)
{
	const struct node *sentences = node_find(root, "sentences");

	(void)o;
	if (!sentences || sentences->type != NODE_LIST)
		return CLI_OK;
	for (const struct node *n = sentences->first; n; n = n->next) {
		if (n->type != NODE_STRING)
			continue;
		words_lines(out, n->text);
		buffer_append(out, "\n", 1);
	}
	return CLI_OK;
}

int cli_explain(int argc, char **argv)
{
	struct operate o = {0};
	struct buffer path;
	int r = operate_options(&explain_line, argc, argv, &o);

	if (r >= 0)
		return r;
	client_path(&path, o.config, "/explain");
	if (o.count == 1)
		return operate_ask(&o, "GET", &path, show_sentences);
	client_query(&path, "key", o.arguments[1]);
	return operate_ask(&o, "GET", &path, show_explanation);
}

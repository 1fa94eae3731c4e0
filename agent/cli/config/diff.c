/* pullet diff: what changed from one version to another. Surprising: the agent compares, since only
 * it may read the state directory and knows which values are masked; its dry run prints the same
 * lines. */
#include "document/diff.h"

#include <inttypes.h>
#include <string.h>

#include "cli/common/cli.h"
#include "cli/common/operate.h"

static const struct option_row diff_rows[] = {OPERATE_ROWS, {0}};

static const struct command_line diff_line = {
	.usage = "Usage: pullet diff CONFIG [A [B]] [--json] [--socket PATH]\n"
		 "Prints what changed from generation A to B, a line for each key: + added, - "
		 "removed, ~ changed.\n"
		 "B defaults to the current generation, A to the one before B.\n",
	.rows = diff_rows,
	.min = 1,
	.max = 3,
};

static int add_change(const struct node *entry, struct buffer *out)
{
	const char *kind = node_text(entry, "change", "");
	struct diff_change change = {
		.kind = strcmp(kind, "added") == 0     ? DIFF_ADDED
			: strcmp(kind, "removed") == 0 ? DIFF_REMOVED
						       : DIFF_CHANGED,
		.path = node_text(entry, "path", ""),
		.before = node_find(entry, "before"),
		.after = node_find(entry, "after"),
	};
	/* a path is a pattern that fits itself */
	char *mask[] = {(char *)(uintptr_t)change.path, NULL};

	return diff_write_text(&change, node_is_true(entry, "masked") ? mask : NULL, out);
}

/* Bytes, or a set of files. */
static void add_facts(const struct node *root, struct buffer *out)
{
	static const char *const sides[] = {"from", "to"};

	if (node_is_true(root, "equal"))
		return;
	for (size_t i = 0; i < 2; i++) {
		const struct node *side = node_find(root, sides[i]);

		if (side)
			buffer_printf(out, "%s%" PRId64 " bytes, SHA-256 %.64s%s",
				i ? " -> " : "~ ", node_integer(side, "bytes", 0),
				node_text(side, "sha256", "?"), i ? "\n" : "");
	}
}

static int show_diff(const struct operate *o, const struct node *root, struct buffer *out)
{
	const struct node *changes = node_find(root, "changes");
	int64_t more = node_integer(root, "more", 0);

	(void)o;
	if (!changes || changes->type != NODE_LIST)
		add_facts(root, out);
	else
		for (const struct node *n = changes->first; n && !out->error; n = n->next)
			add_change(n, out);
	if (more)
		buffer_printf(out, "and %" PRId64 " more, too long to list\n", more);
	return CLI_OK;
}

int cli_diff(int argc, char **argv)
{
	static const char *const names[] = {NULL, "from", "to"};
	struct operate o = {0};
	struct buffer path;
	int r = operate_options(&diff_line, argc, argv, &o);

	if (r >= 0)
		return r;
	client_path(&path, o.config, "/diff");
	for (int i = 1; i < o.count; i++) {
		const char *text = o.arguments[i];

		if (text[0] == '\0' || strspn(text, "0123456789") != strlen(text)) {
			buffer_fini(&path);
			return cli_error(CLI_USAGE, o.command,
				"a generation is a number: 'pullet history %s' lists them",
				o.config);
		}
		client_query(&path, names[i], text);
	}
	return operate_ask(&o, "GET", &path, show_diff);
}

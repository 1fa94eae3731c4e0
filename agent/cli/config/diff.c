/* pullet diff: what changed from one version to another. Surprising: the agent compares, since only
 * it may read the state directory and knows which values are masked; its dry run prints the same
 * lines. */
#include "document/diff.h"

#include <inttypes.h>
#include <string.h>

#include "cli/common/cli.h"
#include "cli/common/operate.h"
#include "cli/model/show.h"
#include "cli/text/words.h"

static const struct option_row diff_rows[] = {
	{"held", NULL, "to the version that is held back", OPTION_FLAG,
		.at = offsetof(struct operate, held)},
	OPERATE_ROWS,
	{0},
};

static const struct command_line diff_line = {
	.usage = "Usage: pullet diff CONFIG [A [B]] [--json] [--socket PATH]\n"
		 "       pullet diff CONFIG --held [A] [--json] [--socket PATH]\n"
		 "Prints what changed from generation A to B, a line for each key: + added, - "
		 "removed, ~ changed.\n"
		 "B defaults to the current generation, A to the one before B. The values are "
		 "those in effect,\n"
		 "overrides included; behind # is what an override hides. --held: what would "
		 "change from the\n"
		 "current generation to the version that a check, a pin, a rollout or a rollback "
		 "holds back.\n",
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

/* ---- overrides ---- */

/* The server's value, which an override hides. */
static void add_server_value(
	const struct node *entry, const char *member, const char *verb, struct buffer *out)
{
	const struct node *n = node_find(entry, member);
	struct diff_change change = {.kind = DIFF_ADDED, .path = "", .after = n};

	if (!n)
		buffer_printf(out, "; the server %s no value", verb);
	else if (n->type >= NODE_LIST && n->first)
		buffer_printf(out, "; the server %s a %s of %zu", verb,
			n->type == NODE_LIST ? "list" : "mapping", n->count);
	else if (node_is_true(entry, "masked"))
		buffer_printf(out, "; the server %s ***", verb);
	else
		buffer_printf(out, "; the server %s ", verb);
	if (n && !(n->type >= NODE_LIST && n->first) && !node_is_true(entry, "masked"))
		diff_write_value(&change, true, NULL, out);
}

/* "the override of n by ann until TIME: reason", as far as that side of the answer has it. */
static void append_override(const struct node *side, const char *key, struct buffer *out)
{
	buffer_append_string(out, "the override of ");
	words_text(out, key);
	for (const struct node *o = node_first(side, "overrides"); o; o = o->next)
		if (strcmp(node_text(o, "key", ""), key) == 0)
			operate_decision(out, o);
}

/* Behind the line of a change: which of its values an override said, and what it hides. */
static void add_overridden(const struct node *root, const struct node *entry, struct buffer *out)
{
	const char *before = node_text(entry, "overridden_before", NULL),
		   *after = node_text(entry, "overridden_after", NULL);

	if (out->error || !(before || after))
		return;
	out->len--; /* the newline */
	buffer_append_string(out, "  # ");
	append_override(node_find(root, after ? "to" : "from"), after ? after : before, out);
	if (after) {
		add_server_value(entry, "server_after", "has", out);
	} else {
		buffer_append_string(out, " was in effect before");
		add_server_value(entry, "server_before", "had", out);
	}
	buffer_append_string(out, "\n");
}

static void add_hidden(const struct node *root, struct buffer *out)
{
	for (const struct node *n = node_first(root, "hidden"); n && !out->error; n = n->next) {
		buffer_append_string(out, "# ");
		add_change(n, out);
		if (out->error)
			return;
		out->len--;
		buffer_append_string(out, ": hidden by ");
		append_override(node_find(root, "to"), node_text(n, "override", "?"), out);
		buffer_append_string(out, "\n");
	}
}

static void add_held(const struct node *root, struct buffer *out)
{
	const struct node *held = node_find(root, "held");

	buffer_append_string(out, "# the server's version ");
	show_version(node_text(node_find(root, "to"), "version", NULL), out);
	if (node_text(held, "by", NULL))
		operate_append_by(held, " is ", " is held after it was ", out);
	else
		buffer_append_string(out, ": ");
	words_text(out, operate_why(held));
	buffer_append_string(out, "\n");
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

/* Which two are compared, where something is other. */
static void add_generations(const struct node *root, struct buffer *out)
{
	int64_t from = node_integer(node_find(root, "from"), "generation", 0),
		to = node_integer(node_find(root, "to"), "generation", 0);
	const struct node *changes = node_find(root, "changes");
	bool none = changes && changes->type == NODE_LIST
			    ? !changes->first && !node_first(root, "hidden")
			    : node_is_true(root, "equal");

	if (!none && from && to)
		buffer_printf(
			out, "# generation %" PRId64 " -> generation %" PRId64 "\n", from, to);
}

static int show_diff(const struct operate *o, const struct node *root, struct buffer *out)
{
	const struct node *changes = node_find(root, "changes");
	int64_t more = node_integer(root, "more", 0);

	(void)o;
	if (node_find(root, "held"))
		add_held(root, out);
	else
		add_generations(root, out);
	if (!changes || changes->type != NODE_LIST)
		add_facts(root, out);
	for (const struct node *n = node_first(root, "changes"); n && !out->error; n = n->next) {
		add_change(n, out);
		add_overridden(root, n, out);
	}
	add_hidden(root, out);
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
	if (o.held && o.count > 2)
		return cli_error(CLI_USAGE, o.command,
			"--held takes one generation: it is compared with the version that is "
			"held");
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
	client_query(&path, "held", o.held ? "1" : NULL);
	return operate_ask(&o, "GET", &path, show_diff);
}

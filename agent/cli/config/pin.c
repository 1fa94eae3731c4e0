/* pullet pin, unpin: keep the current version, ignore updates. Surprising: nothing. */
#include <inttypes.h>

#include "settings/value.h"
#include "cli/common/cli.h"
#include "cli/common/operate.h"
#include "cli/text/words.h"

static const struct option_row pin_rows[] = {OPERATE_ROW_FOR("the pin ends by itself"),
	OPERATE_ROW_REASON, OPERATE_ROWS, {0}},
			       unpin_rows[] = {OPERATE_ROWS, {0}};

static const struct command_line pin_line = {
	.usage = "Usage: pullet pin CONFIG [--for DURATION] [--reason TEXT] [--json] [--socket "
		 "PATH]\n"
		 "Keeps the current version, and ignores updates: for DURATION, or until 'pullet "
		 "unpin'.\n",
	.rows = pin_rows,
	.min = 1,
	.max = 1,
};

static const struct command_line unpin_line = {
	.usage = "Usage: pullet unpin CONFIG [--json] [--socket PATH]\n"
		 "Ends a pin, and pulls.\n",
	.rows = unpin_rows,
	.min = 1,
	.max = 1,
};

static int show_pinned(const struct operate *o, const struct node *root, struct buffer *out)
{
	char text[24];

	words_text(out, o->config);
	buffer_printf(out, ": pinned at generation %" PRId64 " %s%s\n",
		node_integer(root, "generation", 0), o->for_ms ? "for " : "until it is unpinned",
		o->for_ms ? settings_duration_text(o->for_ms, text) : "");
	operate_ended("pin", root, out);
	return CLI_OK;
}

static int show_unpinned(const struct operate *o, const struct node *root, struct buffer *out)
{
	words_text(out, o->config);
	buffer_append_string(out, ": unpinned\n");
	operate_ended("pin", root, out);
	return CLI_OK;
}

int cli_pin(int argc, char **argv)
{
	struct operate o = {0};
	struct buffer path;
	int r = operate_options(&pin_line, argc, argv, &o);

	if (r >= 0)
		return r;
	client_path(&path, o.config, "/pin");
	if (o.for_ms)
		client_query_number(&path, "for_ms", o.for_ms);
	client_query(&path, "reason", o.reason);
	return operate_ask(&o, "POST", &path, show_pinned);
}

int cli_unpin(int argc, char **argv)
{
	struct operate o = {0};
	struct buffer path;
	int r = operate_options(&unpin_line, argc, argv, &o);

	if (r >= 0)
		return r;
	client_path(&path, o.config, "/unpin");
	return operate_ask(&o, "POST", &path, show_unpinned);
}

/* pullet pin, unpin: what stands stays. Surprising: nothing. */
#include <inttypes.h>

#include "settings/value.h"
#include "cli/common/cli.h"
#include "cli/common/operate.h"
#include "cli/text/words.h"

static void usage_pin(FILE *out)
{
	fputs("Usage: pullet pin CONFIG [--for DURATION] [--reason TEXT] [--json] [--socket "
	      "PATH]\n"
	      "What stands stays, whatever the server has: for DURATION, or until 'pullet "
	      "unpin'.\n\n"
	      "      --for DURATION      the pin ends by itself\n" OPERATE_HELP_REASON OPERATE_HELP,
		out);
}

static void usage_unpin(FILE *out)
{
	fputs("Usage: pullet unpin CONFIG [--json] [--socket PATH]\n"
	      "Ends a pin, and pulls.\n\n" OPERATE_HELP,
		out);
}

static int show_pinned(const struct operate *o, const struct node *root, struct buffer *out)
{
	char text[24];

	words_text(out, o->arguments[0]);
	buffer_printf(out, ": pinned at generation %" PRId64 " %s%s\n",
		client_number(root, "generation", 0), o->for_ms ? "for " : "until it is unpinned",
		o->for_ms ? settings_duration_text(o->for_ms, text) : "");
	return CLI_OK;
}

static int show_unpinned(const struct operate *o, const struct node *root, struct buffer *out)
{
	(void)root;
	words_text(out, o->arguments[0]);
	buffer_append_string(out, ": unpinned\n");
	return CLI_OK;
}

int cli_pin(int argc, char **argv)
{
	struct operate o;
	struct buffer path;
	int r = operate_options(argc, argv, OPERATE_REASON | OPERATE_FOR, 1, 1, usage_pin, &o);

	if (r >= 0)
		return r;
	client_path(&path, o.arguments[0], "/pin");
	if (o.for_ms)
		client_query_number(&path, "for_ms", o.for_ms);
	client_query(&path, "reason", o.reason);
	return operate_ask(&o, "POST", &path, show_pinned);
}

int cli_unpin(int argc, char **argv)
{
	struct operate o;
	struct buffer path;
	int r = operate_options(argc, argv, 0, 1, 1, usage_unpin, &o);

	if (r >= 0)
		return r;
	client_path(&path, o.arguments[0], "/unpin");
	return operate_ask(&o, "POST", &path, show_unpinned);
}

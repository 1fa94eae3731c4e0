/* pullet refresh: pull now. Surprising: --wait waits for a run that started after the request, so
 * that its result is not older. */
#include <inttypes.h>
#include <string.h>

#include "cli/common/cli.h"
#include "cli/common/operate.h"
#include "cli/text/words.h"

struct refresh {
	struct operate o;
	bool wait, force, forget_rev;
	uint64_t timeout_ms;
};

static const struct option_row refresh_rows[] = {
	{"force", NULL, "retry rejected versions and skip the guard", OPTION_FLAG,
		.at = offsetof(struct refresh, force)},
	{"forget-rev", NULL, "accept a signature with a lower rev= than the last accepted one",
		OPTION_FLAG, .at = offsetof(struct refresh, forget_rev)},
	{"wait", NULL, "wait for the end of the pull and print its result; exit 1 if it failed",
		OPTION_FLAG, .at = offsetof(struct refresh, wait)},
	{"timeout", "DURATION", "with --wait: give up after that long (default 60s), exit 4",
		OPTION_DURATION, .at = offsetof(struct refresh, timeout_ms)},
	OPTION_ROW_SOCKET(struct operate),
	{0},
};

static const struct command_line refresh_line = {
	.usage = "Usage: pullet refresh [CONFIG] [--wait] [--timeout DURATION] [--socket PATH]\n"
		 "       pullet refresh CONFIG [--force] [--forget-rev] [--wait] [--timeout "
		 "DURATION] [--socket PATH]\n"
		 "Makes the agent pull one config, or all, now.\n",
	.rows = refresh_rows,
	.max = 1,
	.wants = "one config at most; without one all are pulled",
};

/* What publishes a version that is held. */
static void add_remedy(const struct operate *o, const struct node *root, struct buffer *out)
{
	static const struct {
		const char *by, *before, *after;
	} table[] = {
		{"pin", "the pin holds the server's version: `pullet unpin ", "` publishes it"},
		{"rollout", "the rollout holds the server's version: `pullet rollout status ",
			"` says when this host has its turn"},
		{"operator", "a rollback holds the server's version: `pullet refresh ",
			" --force` publishes it"},
	};
	const char *by = node_text(root, "held_by", "");

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (strcmp(by, table[i].by) != 0)
			continue;
		buffer_printf(out, "  %s", table[i].before);
		words_text(out, o->config);
		buffer_printf(out, "%s\n", table[i].after);
	}
}

static int show_result(const struct operate *o, const struct node *root, struct buffer *out)
{
	const struct refresh *f = (const struct refresh *)o;
	const char *outcome = node_text(root, "outcome", NULL),
		   *error = node_text(root, "error", NULL);

	if (!f->wait)
		return CLI_OK;
	if (!outcome) /* the answer to a request that does not wait */
		return client_unreadable(o->command);
	words_text(out, o->config);
	buffer_append_string(out, ": ");
	words_text(out, outcome);
	buffer_printf(out, ", generation %" PRId64, node_integer(root, "generation", 0));
	if (strcmp(node_text(root, "rejected_by", ""), "probe") == 0)
		buffer_append_string(
			out, " stays: the server still has the version that failed its probe");
	if (error) {
		buffer_append_string(out, ": ");
		words_lines(out, error);
		operate_address(node_text(root, "url", ""), out);
	}
	buffer_append_string(out, "\n");
	add_remedy(o, root, out);
	return strcmp(outcome, "failed") == 0 ? CLI_FAILED : CLI_OK;
}

/* config: its status, NULL when it was named. */
static int refresh_config(struct operate *o, const char *name, const struct node *config)
{
	const struct refresh *f = (const struct refresh *)o;
	struct buffer path;

	if (config && node_find(config, "suspension"))
		return cli_error(CLI_OK, o->command, "%s is suspended: not pulled", name);
	o->config = name;
	client_path(&path, name, "/refresh");
	client_query(&path, "force", f->force ? "1" : NULL);
	client_query(&path, "forget_rev", f->forget_rev ? "1" : NULL);
	if (f->wait) {
		client_query(&path, "wait", "1");
		client_query_number(&path, "timeout_ms", f->timeout_ms);
	}
	o->timeout_ms = f->wait ? f->timeout_ms : 0;
	return operate_ask(o, "POST", &path, show_result);
}

int cli_refresh(int argc, char **argv)
{
	struct refresh f = {.timeout_ms = 60000};
	int r = operate_options(&refresh_line, argc, argv, &f);

	if (r >= 0)
		return r;
	if ((f.force || f.forget_rev) && !f.o.config)
		return options_misused(&refresh_line, argv[0],
			f.force ? "--force is for one config: name it"
				: "--forget-rev is for one config: name it");
	return f.o.config ? refresh_config(&f.o, f.o.config, NULL)
			  : operate_ask_each(&f.o, refresh_config);
}

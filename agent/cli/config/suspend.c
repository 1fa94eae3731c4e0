/* pullet suspend, resume: whether a config pulls at all. Surprising: `resume --all` passes over
 * configs that are not suspended. */
#include <stdio.h>

#include "settings/value.h"
#include "cli/common/cli.h"
#include "cli/common/operate.h"
#include "cli/text/words.h"

#define ROW_ALL(help)                                                                              \
	{                                                                                          \
		"all", NULL, help, OPTION_FLAG, .at = offsetof(struct operate, all)                \
	}

static const struct option_row suspend_rows[] = {ROW_ALL("every config of the agent"),
	OPERATE_ROW_FOR("pulls resume by themselves"), OPERATE_ROW_REASON, OPERATE_ROWS, {0}},
			       resume_rows[] = {
				       ROW_ALL("every suspended config"), OPERATE_ROWS, {0}};

static const struct command_line suspend_line = {
	.usage = "Usage: pullet suspend CONFIG [--for DURATION] [--reason TEXT] [--json] [--socket "
		 "PATH]\n"
		 "       pullet suspend --all [--for DURATION] [--reason TEXT] [--json] [--socket "
		 "PATH]\n"
		 "Starts no pull, whatever requests one: for DURATION, or until 'pullet resume'.\n",
	.rows = suspend_rows,
	.max = 1,
};

static const struct command_line resume_line = {
	.usage = "Usage: pullet resume CONFIG [--json] [--socket PATH]\n"
		 "       pullet resume --all [--json] [--socket PATH]\n"
		 "Ends a suspension, and pulls.\n",
	.rows = resume_rows,
	.max = 1,
};

static int show_suspended(const struct operate *o, const struct node *root, struct buffer *out)
{
	char text[24];

	words_text(out, o->config);
	buffer_printf(out, ": suspended %s%s\n", o->for_ms ? "for " : "until it is resumed",
		o->for_ms ? settings_duration_text(o->for_ms, text) : "");
	operate_ended("suspension", root, out);
	return CLI_OK;
}

static int show_resumed(const struct operate *o, const struct node *root, struct buffer *out)
{
	words_text(out, o->config);
	buffer_append_string(out, ": resumed\n");
	operate_ended("suspension", root, out);
	return CLI_OK;
}

static int suspend_config(struct operate *o, const char *name, const struct node *config)
{
	struct buffer path;

	(void)config;
	o->config = name;
	client_path(&path, name, "/suspend");
	if (o->for_ms)
		client_query_number(&path, "for_ms", o->for_ms);
	client_query(&path, "reason", o->reason);
	return operate_ask(o, "POST", &path, show_suspended);
}

/* config: its status, NULL when it was named. */
static int resume_config(struct operate *o, const char *name, const struct node *config)
{
	struct buffer path;

	if (config && !node_find(config, "suspension"))
		return CLI_OK;
	o->config = name;
	client_path(&path, name, "/resume");
	return operate_ask(o, "POST", &path, show_resumed);
}

static int ask_named(const struct command_line *line, int argc, char **argv,
	int (*ask)(struct operate *o, const char *name, const struct node *config))
{
	struct operate o = {0};
	int r = operate_options(line, argc, argv, &o);

	if (r >= 0)
		return r;
	if (o.all == (o.config != NULL))
		return options_misused(line, argv[0], "name a config, or give --all");
	if (!o.all)
		return ask(&o, o.config, NULL);
	r = operate_ask_each(&o, ask);
	if (r == CLI_OK && !o.config && !o.json)
		printf("no config is suspended\n"); /* there is always one to suspend */
	return r;
}

int cli_suspend(int argc, char **argv)
{
	return ask_named(&suspend_line, argc, argv, suspend_config);
}

int cli_resume(int argc, char **argv)
{
	return ask_named(&resume_line, argc, argv, resume_config);
}

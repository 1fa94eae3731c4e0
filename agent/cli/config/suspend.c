/* pullet suspend, resume: whether a config pulls at all. Surprising: `resume --all` asks for those
 * that are suspended only, so that nothing is wrong when some are not. */
#include "settings/value.h"
#include "cli/common/cli.h"
#include "cli/common/operate.h"
#include "cli/text/words.h"

static void usage_suspend(FILE *out)
{
	fputs("Usage: pullet suspend CONFIG [--for DURATION] [--reason TEXT] [--json] [--socket "
	      "PATH]\n"
	      "       pullet suspend --all [--for DURATION] [--reason TEXT] [--json] [--socket "
	      "PATH]\n"
	      "Begins no pull, whatever asks for one: for DURATION, or until 'pullet resume'.\n\n"
	      "      --all               every config that the agent has now\n"
	      "      --for DURATION      it resumes by itself\n" OPERATE_HELP_REASON OPERATE_HELP,
		out);
}

static void usage_resume(FILE *out)
{
	fputs("Usage: pullet resume CONFIG [--json] [--socket PATH]\n"
	      "       pullet resume --all [--json] [--socket PATH]\n"
	      "Ends a suspension, and pulls.\n\n"
	      "      --all               every config that is suspended\n" OPERATE_HELP,
		out);
}

static int show_suspended(const struct operate *o, const struct node *root, struct buffer *out)
{
	char text[24];

	(void)root;
	words_text(out, o->arguments[0]);
	buffer_printf(out, ": suspended %s%s\n", o->for_ms ? "for " : "until it is resumed",
		o->for_ms ? settings_duration_text(o->for_ms, text) : "");
	return CLI_OK;
}

static int show_resumed(const struct operate *o, const struct node *root, struct buffer *out)
{
	(void)root;
	words_text(out, o->arguments[0]);
	buffer_append_string(out, ": resumed\n");
	return CLI_OK;
}

static int suspend_one(struct operate *o)
{
	struct buffer path;

	client_path(&path, o->arguments[0], "/suspend");
	if (o->for_ms)
		client_query_number(&path, "for_ms", o->for_ms);
	client_query(&path, "reason", o->reason);
	return operate_ask(o, "POST", &path, show_suspended);
}

static int resume_one(struct operate *o)
{
	struct buffer path;

	client_path(&path, o->arguments[0], "/resume");
	return operate_ask(o, "POST", &path, show_resumed);
}

/* All configs, or those that are suspended; the first failure is the exit code. */
static int ask_all(const struct operate *o, int (*ask)(struct operate *o), bool suspended)
{
	const struct node *configs = NULL;
	struct client_answer a;
	int r = client_ask(o->command, o->socket, "GET", "/v1/status", 10000, &a), worst;
	struct operate one = *o;
	char *name;

	if (r == CLI_OK)
		r = client_exit_code(o->command, &a);
	if (r == CLI_OK && a.json)
		configs = node_find(document_root(a.json), "configs");
	worst = r;
	one.arguments = &name;
	for (const struct node *c = configs ? configs->first : NULL; c; c = c->next) {
		if (suspended && !node_find(c, "suspension"))
			continue;
		name = (char *)(uintptr_t)client_text(c, "name", "");
		r = ask(&one);
		worst = worst ? worst : r;
	}
	client_fini(&a);
	return worst;
}

static int ask_named(int argc, char **argv, unsigned allowed, void (*usage)(FILE *out),
	int (*ask)(struct operate *o), bool suspended)
{
	struct operate o;
	int r = operate_options(argc, argv, allowed | OPERATE_ALL, 0, 1, usage, &o);

	if (r >= 0)
		return r;
	if (o.all == (o.count == 1))
		return cli_misused(argv[0], usage, "name a config, or give --all");
	return o.all ? ask_all(&o, ask, suspended) : ask(&o);
}

int cli_suspend(int argc, char **argv)
{
	return ask_named(
		argc, argv, OPERATE_REASON | OPERATE_FOR, usage_suspend, suspend_one, false);
}

int cli_resume(int argc, char **argv)
{
	return ask_named(argc, argv, 0, usage_resume, resume_one, true);
}

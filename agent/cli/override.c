/* pullet override: one value over what the server says, for a while. Surprising: the value is YAML,
 * so that 1 is a number and "1" a text; null removes the key. */
#include <string.h>

#include "cli.h"
#include "operate.h"

static void usage(FILE *out)
{
	fputs("Usage: pullet override CONFIG KEY=VALUE --for DURATION [--reason TEXT] [--timeout "
	      "DURATION] [--json] [--socket PATH]\n"
	      "       pullet override CONFIG KEY --remove [--timeout DURATION] [--json] [--socket "
	      "PATH]\n"
	      "Lays a value over what the server says, for a while; it goes back by itself. VALUE "
	      "is YAML:\n"
	      "a mapping is merged into the one that is there, null removes the key.\n\n"
	      "      --for DURATION      how long\n"
	      "      --remove            end an override now\n" OPERATE_HELP_REASON
			OPERATE_HELP_TIMEOUT OPERATE_HELP,
		out);
}

/* KEY=VALUE, or KEY with --remove. */
static int add_what(const struct operate *o, struct buffer *path)
{
	char *key = o->arguments[1], *equals = strchr(key, '=');

	if (o->remove) {
		if (o->for_ms || o->reason)
			return cli_error(CLI_USAGE, o->command,
				"--remove is now, and needs no --for and no --reason");
		client_query(path, "key", key);
		client_query(path, "remove", "1");
		return CLI_OK;
	}
	if (!equals || equals == key)
		return cli_error(CLI_USAGE, o->command, "KEY=VALUE is needed, not '%s'", key);
	if (!o->for_ms)
		return cli_misused(
			o->command, usage, "--for is needed: an override ends by itself");
	*equals = '\0';
	client_query(path, "key", key);
	client_query(path, "value", equals + 1);
	client_query_number(path, "for_ms", o->for_ms);
	client_query(path, "reason", o->reason);
	return CLI_OK;
}

int cli_override(int argc, char **argv)
{
	struct operate o;
	struct buffer path;
	int r = operate_options(argc, argv,
		OPERATE_REASON | OPERATE_FOR | OPERATE_TIMEOUT | OPERATE_REMOVE, 2, 2, usage, &o);

	if (r >= 0)
		return r;
	client_path(&path, o.arguments[0], "/override");
	r = add_what(&o, &path);
	if (r) {
		buffer_fini(&path);
		return r;
	}
	client_query_number(&path, "timeout_ms", o.timeout_ms);
	return operate_ask(&o, "POST", &path, operate_show_standing);
}

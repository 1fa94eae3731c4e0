/* pullet rollback: an older version stands again. Surprising: it becomes a new generation, since
 * numbers never go back. */
#include "cli/common/cli.h"
#include "cli/common/operate.h"

#include <string.h>

static void usage(FILE *out)
{
	fputs("Usage: pullet rollback CONFIG [N] [--reason TEXT] [--timeout DURATION] [--json] "
	      "[--socket PATH]\n"
	      "Publishes generation N again, as a new generation; without N the newest one before "
	      "what\n"
	      "stands that is other and was not rolled back itself. What stands now is not taken "
	      "from\n"
	      "the server again until it changes there.\n\n" OPERATE_HELP_REASON
			OPERATE_HELP_TIMEOUT OPERATE_HELP,
		out);
}

int cli_rollback(int argc, char **argv)
{
	struct operate o;
	struct buffer path;
	int r = operate_options(argc, argv, OPERATE_REASON | OPERATE_TIMEOUT, 1, 2, usage, &o);

	if (r >= 0)
		return r;
	if (o.count == 2 && (strspn(o.arguments[1], "0123456789") != strlen(o.arguments[1]) ||
				    strspn(o.arguments[1], "0") == strlen(o.arguments[1])))
		return cli_error(CLI_USAGE, o.command,
			"a generation is a number: 'pullet history %s' lists them", o.arguments[0]);
	client_path(&path, o.arguments[0], "/rollback");
	client_query(&path, "generation", o.count == 2 ? o.arguments[1] : NULL);
	client_query(&path, "reason", o.reason);
	client_query_number(&path, "timeout_ms", o.timeout_ms);
	return operate_ask(&o, "POST", &path, operate_show_standing);
}

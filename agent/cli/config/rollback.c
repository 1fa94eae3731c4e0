/* pullet rollback: republishes an older version. Surprising: as a new generation, since numbers
 * never go back. */
#include "cli/common/cli.h"
#include "cli/common/operate.h"

#include <string.h>

static const struct option_row rollback_rows[] = {
	OPERATE_ROW_REASON, OPERATE_ROW_TIMEOUT, OPERATE_ROWS, {0}};

static const struct command_line rollback_line = {
	.usage = "Usage: pullet rollback CONFIG [N] [--reason TEXT] [--timeout DURATION] [--json] "
		 "[--socket PATH]\n"
		 "Publishes generation N again, as a new generation; without N the newest one "
		 "before the current\n"
		 "version that differs from it and was not rolled back itself. The server's "
		 "current version is\n"
		 "not taken again until it changes there.\n",
	.rows = rollback_rows,
	.min = 1,
	.max = 2,
};

int cli_rollback(int argc, char **argv)
{
	struct operate o = {0};
	struct buffer path;
	int r = operate_options(&rollback_line, argc, argv, &o);

	if (r >= 0)
		return r;
	if (o.count == 2 && (strspn(o.arguments[1], "0123456789") != strlen(o.arguments[1]) ||
				    strspn(o.arguments[1], "0") == strlen(o.arguments[1])))
		return cli_error(CLI_USAGE, o.command,
			"a generation is a number: 'pullet history %s' lists them", o.config);
	client_path(&path, o.config, "/rollback");
	client_query(&path, "generation", o.count == 2 ? o.arguments[1] : NULL);
	client_query(&path, "reason", o.reason);
	client_query_number(&path, "timeout_ms", o.timeout_ms);
	return operate_ask(&o, "POST", &path, operate_show_current);
}

/* pullet wait: until a version is published. Surprising: a generation is reached by any newer one
 * too; a version only while it is current. --ready is in wait_ready. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common/cli.h"
#include "cli/common/operate.h"
#include "cli/config/wait_ready.h"
#include "cli/text/words.h"

struct wait {
	struct operate o;
	const char *generation, *version;
	bool ready;
};

static const struct option_row wait_rows[] = {
	{"generation", "N", "the agent's number, or a higher one", OPTION_TEXT,
		.at = offsetof(struct wait, generation)},
	{"version", "V", "the server's: an ETag or a revision", OPTION_TEXT,
		.at = offsetof(struct wait, version)},
	{"ready", NULL, "any version of each CONFIG, or of all that the agent has", OPTION_FLAG,
		.at = offsetof(struct wait, ready)},
	{"timeout", "DURATION", "give up after that long (default 60s), exit 4", OPTION_DURATION,
		.at = offsetof(struct wait, o.timeout_ms)},
	OPTION_ROW_SOCKET(struct operate),
	{0},
};

static const struct command_line wait_line = {
	.usage = "Usage: pullet wait CONFIG (--generation N | --version V) [--timeout DURATION] "
		 "[--socket PATH]\n"
		 "       pullet wait --ready [CONFIG...] [--timeout DURATION] [--socket PATH]\n"
		 "Waits until this host has published a version, and says so.\n",
	.rows = wait_rows,
	.max = -1,
};

static int show_reached(const struct operate *o, const struct node *root, struct buffer *out)
{
	words_text(out, o->config);
	buffer_printf(
		out, ": generation %" PRId64 " is current\n", node_integer(root, "generation", 0));
	return CLI_OK;
}

int cli_wait(int argc, char **argv)
{
	struct wait w = {.generation = NULL};
	struct buffer path;
	int r = operate_options(&wait_line, argc, argv, &w);

	if (r >= 0)
		return r;
	if (!!w.generation + !!w.version + w.ready != 1)
		return options_misused(&wait_line, argv[0],
			"say --generation N, --version V or --ready, one of them");
	if (w.ready)
		return wait_ready(&w.o);
	if (w.o.count != 1)
		return options_misused(&wait_line, argv[0],
			w.o.count ? "--generation and --version are about one config"
				  : "an argument is missing");
	if (w.generation && (strspn(w.generation, "0123456789") != strlen(w.generation) ||
				    strtoull(w.generation, NULL, 10) == 0))
		return cli_error(CLI_USAGE, argv[0], "--generation takes a number from 1 on");
	if (w.version && !w.version[0])
		return cli_error(CLI_USAGE, argv[0], "--version is empty");
	client_path(&path, w.o.config, "/wait");
	client_query(&path, "generation", w.generation);
	client_query(&path, "version", w.version);
	client_query_number(&path, "timeout_ms", w.o.timeout_ms);
	return operate_ask(&w.o, "GET", &path, show_reached);
}

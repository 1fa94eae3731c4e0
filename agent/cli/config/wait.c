/* pullet wait: until a version stands. Surprising: an older generation that is asked for stands
 * already when a newer one does; a version does only while it is the one. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common/cli.h"
#include "cli/common/client.h"

struct options {
	const char *command, *socket, *generation, *version;
	uint64_t timeout_ms;
};

static void usage(FILE *out)
{
	fputs("Usage: pullet wait CONFIG (--generation N | --version V) [--timeout DURATION] "
	      "[--socket PATH]\n"
	      "Waits until this host has published a version, and says so.\n\n"
	      "      --generation N      the agent's number, or a higher one\n"
	      "      --version V         the server's: an ETag or a revision\n"
	      "      --timeout DURATION  give up after that long (default 60s), exit 4\n"
	      "      --socket PATH       the agent's control socket (default "
	      "$PULLET_RUNTIME_DIR/control.sock)\n",
		out);
}

static int wait_for(const struct options *o, const char *name)
{
	struct client_answer a;
	struct buffer path;
	int r;

	client_path(&path, name, "/wait");
	client_query(&path, "generation", o->generation);
	client_query(&path, "version", o->version);
	client_query_number(&path, "timeout_ms", o->timeout_ms);
	if (path.error) {
		buffer_fini(&path);
		return cli_error(CLI_NOT_FOUND, o->command, "no config has so long a name");
	}
	r = client_ask(o->command, o->socket, "GET", path.data, o->timeout_ms + 10000, &a);
	buffer_fini(&path);
	if (r == CLI_OK)
		r = client_config_code(o->command, o->socket, name, &a);
	if (r == CLI_OK)
		printf("%s: generation %" PRId64 " stands\n", name,
			client_number(document_root(a.json), "generation", 0));
	client_fini(&a);
	return r;
}

int cli_wait(int argc, char **argv)
{
	enum { SOCKET = 256, GENERATION, VERSION, TIMEOUT };
	static const struct option longs[] = {
		{"generation", required_argument, NULL, GENERATION},
		{"version", required_argument, NULL, VERSION},
		{"timeout", required_argument, NULL, TIMEOUT},
		{"socket", required_argument, NULL, SOCKET},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	struct options o = {
		.command = argv[0], .socket = client_default_socket(), .timeout_ms = 60000};
	int opt;

	while ((opt = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		if (opt == GENERATION)
			o.generation = optarg;
		else if (opt == VERSION)
			o.version = optarg;
		else if (opt == SOCKET)
			o.socket = optarg;
		else if (opt == 'h')
			return usage(stdout), CLI_OK;
		else if (opt != TIMEOUT)
			return cli_bad_option(argv[0]);
		else if (cli_duration(argv[0], "--timeout", optarg, &o.timeout_ms))
			return CLI_USAGE;
	}
	if (argc - optind != 1)
		return cli_miscounted(argv[0], usage, argc, argv, 1);
	if (!o.generation == !o.version)
		return cli_misused(
			argv[0], usage, "say --generation N or --version V, one of them");
	if (o.generation && (strspn(o.generation, "0123456789") != strlen(o.generation) ||
				    strtoull(o.generation, NULL, 10) == 0))
		return cli_error(CLI_USAGE, argv[0], "--generation takes a number from 1 on");
	if (o.version && !o.version[0])
		return cli_error(CLI_USAGE, argv[0], "--version is empty");
	return wait_for(&o, argv[optind]);
}

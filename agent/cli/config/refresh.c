/* pullet refresh: pull now. Surprising: --wait waits for a run that began after the request, so
 * that what it reports is not older than the question. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/common/cli.h"
#include "cli/common/operate.h"
#include "cli/text/words.h"

struct options {
	const char *command, *socket;
	bool wait, force, forget_rev;
	uint64_t timeout_ms;
};

static void usage(FILE *out)
{
	fputs("Usage: pullet refresh [CONFIG] [--wait] [--timeout DURATION] [--socket PATH]\n"
	      "       pullet refresh CONFIG [--force] [--forget-rev] [--wait] [--timeout DURATION] "
	      "[--socket PATH]\n"
	      "Makes the agent pull one config, or all, now.\n\n"
	      "      --force             pull whole documents, check what was refused or taken "
	      "back\n"
	      "                          again, and do not ask the guard\n"
	      "      --forget-rev        take a signature with a lower rev= than was accepted "
	      "before\n"
	      "      --wait              wait for the end of the pull and say what came of it; "
	      "exit 1 if it failed\n"
	      "      --timeout DURATION  with --wait: give up after that long (default 60s), exit "
	      "4\n"
	      "      --socket PATH       the agent's control socket (default "
	      "$PULLET_RUNTIME_DIR/control.sock)\n",
		out);
}

static int report(const struct options *o, const char *name, const struct node *root)
{
	const char *outcome = client_text(root, "outcome", "?"),
		   *error = client_text(root, "error", NULL);
	struct buffer out;
	int r;

	if (!o->wait)
		return CLI_OK;
	buffer_init(&out, 1u << 20);
	buffer_printf(&out, "%s: %s, generation %" PRId64, name, outcome,
		client_number(root, "generation", 0));
	if (error) {
		buffer_append_string(&out, ": ");
		words_lines(&out, error);
	}
	buffer_append_string(&out, "\n");
	r = cli_output(o->command, &out);
	buffer_fini(&out);
	return strcmp(outcome, "failed") == 0 ? CLI_FAILED : r;
}

static int refresh(const struct options *o, const char *name)
{
	struct client_answer a;
	struct buffer path;
	int r;

	client_path(&path, name, "/refresh");
	client_query(&path, "force", o->force ? "1" : NULL);
	client_query(&path, "forget_rev", o->forget_rev ? "1" : NULL);
	if (o->wait) {
		client_query(&path, "wait", "1");
		client_query_number(&path, "timeout_ms", o->timeout_ms);
	}
	if (path.error) {
		buffer_fini(&path);
		return cli_error(CLI_NOT_FOUND, o->command, "no config has so long a name");
	}
	/* the agent itself ends the waiting; some time on top for its answer */
	r = client_ask(o->command, o->socket, "POST", path.data,
		(o->wait ? o->timeout_ms : 0) + 10000, &a);
	buffer_fini(&path);
	if (r == CLI_OK)
		r = client_config_code(o->command, o->socket, name, &a);
	if (r == CLI_OK && o->wait && a.status != 200)
		r = client_unreadable(o->command);
	if (r == CLI_OK)
		r = report(o, name, document_root(a.json));
	client_fini(&a);
	return r;
}

static int refresh_all(const struct options *o)
{
	struct client_answer a;
	const struct node *configs = NULL;
	int r = client_ask(o->command, o->socket, "GET", "/v1/status", 10000, &a), worst;

	if (r == CLI_OK)
		r = client_exit_code(o->command, &a);
	if (r == CLI_OK && a.json)
		configs = node_find(document_root(a.json), "configs");
	worst = r;
	for (const struct node *c = configs ? configs->first : NULL; c; c = c->next) {
		if (node_find(c, "suspension")) {
			fprintf(stderr, "%s: %s is suspended: not pulled\n", o->command,
				client_text(c, "name", "?"));
			continue;
		}
		r = refresh(o, client_text(c, "name", ""));
		worst = worst ? worst : r;
	}
	client_fini(&a);
	return worst;
}

int cli_refresh(int argc, char **argv)
{
	enum { SOCKET = 256, WAIT, TIMEOUT, FORCE, FORGET_REV };
	static const struct option longs[] = {
		{"wait", no_argument, NULL, WAIT},
		{"force", no_argument, NULL, FORCE},
		{"forget-rev", no_argument, NULL, FORGET_REV},
		{"timeout", required_argument, NULL, TIMEOUT},
		{"socket", required_argument, NULL, SOCKET},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	struct options o = {
		.command = argv[0], .socket = client_default_socket(), .timeout_ms = 60000};
	int opt;

	while ((opt = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		if (opt == WAIT)
			o.wait = true;
		else if (opt == FORCE)
			o.force = true;
		else if (opt == FORGET_REV)
			o.forget_rev = true;
		else if (opt == SOCKET)
			o.socket = optarg;
		else if (opt == 'h')
			return usage(stdout), CLI_OK;
		else if (opt != TIMEOUT)
			return cli_bad_option(argv[0]);
		else if (cli_duration(argv[0], "--timeout", optarg, &o.timeout_ms))
			return CLI_USAGE;
	}
	if (argc - optind > 1)
		return cli_misused(
			argv[0], usage, "one config at most; without one all are pulled");
	if ((o.force || o.forget_rev) && optind == argc)
		return cli_misused(argv[0], usage,
			o.force ? "--force is for one config: name it"
				: "--forget-rev is for one config: name it");
	return optind < argc ? refresh(&o, argv[optind]) : refresh_all(&o);
}

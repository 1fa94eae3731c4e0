/* pullet: a table of subcommands. Surprising: nothing; each command is a file. */
#include "cli/common/cli.h"
#include "cli/common/client.h"

#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/descriptors.h"
#include "base/log.h"
#include "push/subscriber.h"
#include "settings/settings.h"
#include "http/client.h"

static const struct command {
	const char *name, *arguments, *help;
	int (*run)(int argc, char **argv);
} commands[] = {
	{"dev", "[DIR]", "serve a directory, run an agent on it, print each change", cli_dev},
	{"get", "CONFIG KEY [--type T]", "one value of a config", cli_get},
	{"list", "CONFIG [PREFIX]", "all values of a config", cli_list},
	{"export", "CONFIG --format F", "a config as sh, env, json, yaml or properties",
		cli_export},
	{"build", "FILE -o NAME.snap", "make a snapshot of a document, for tests", cli_build},
	{"watch", "CONFIG [-- CMD...]", "print each new version, or run a command for it",
		cli_watch},
	{"run", "CONFIG -- CMD...", "run a command with a config as its environment", cli_run},
	{"status", "[CONFIG] [--json]", "current versions, their age, the last errors", cli_status},
	{"top", "[--interval D]", "the same, live", cli_top},
	{"doctor", "[CONFIG] [-c FILE]", "problems of this host, and what to do", cli_doctor},
	{"refresh", "[CONFIG] [--wait]", "pull now", cli_refresh},
	{"wait", "CONFIG --version V", "wait until this host has published a version", cli_wait},
	{"fleet", "[CONFIG]", "which hosts run which version; `fleet wait`, `fleet forget`",
		cli_fleet},
	{"rollout", "start CONFIG", "a version to a fleet in waves; pause, resume, abort, status",
		cli_rollout},
	{"history", "CONFIG", "the stored versions", cli_history},
	{"diff", "CONFIG [A [B]]", "what changed from one version to another", cli_diff},
	{"explain", "CONFIG [KEY]", "why a version, or a value, is the current one", cli_explain},
	{"rollback", "CONFIG [N]", "republish an older version", cli_rollback},
	{"pin", "CONFIG [--for D]", "keep the current version, ignore updates", cli_pin},
	{"unpin", "CONFIG", "follow the server again", cli_unpin},
	{"suspend", "CONFIG [--for D]", "start no pull", cli_suspend},
	{"resume", "CONFIG", "pull again", cli_resume},
	{"override", "CONFIG KEY=VALUE --for D", "one value in place of the server's, for a while",
		cli_override},
	{"publish", "TOPIC [--endpoint E]", "notify the agents of a change", cli_publish},
	{"serve", "DIR [--http ADDR]", "serve a directory as a configuration origin", cli_serve},
	{"relay", "SOURCE... [--push E]", "notify any number of agents of changes in sources",
		cli_relay},
	{"keygen", "FILE [--sign]", "make a pair of keys, for the push channel or signatures",
		cli_keygen},
	{"sign", "FILE... -s FILE", "sign documents for agents that verify them", cli_sign},
};

enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static void print_commands(FILE *out)
{
	fputs("Usage: pullet COMMAND [ARGUMENT...]\n\n", out);
	/* packaging/completions/ rely on the two blanks before the help */
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(out, "  %-8s %-24s  %s\n", commands[i].name, commands[i].arguments,
			commands[i].help);
	fputs("\n'pullet COMMAND --help' says more; --version prints the versions. See pullet(1).\n"
	      "Exit codes: 0 ok, 1 failed, 2 not found, 3 agent not reachable, 4 timed out, 64 "
	      "usage, 78 invalid configuration.\n",
		out);
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < COMMANDS; i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

/* The command that begins like `name`, if exactly one does. */
static const struct command *find_similar_command(const char *name)
{
	const struct command *found = NULL;
	size_t n = strlen(name) < 3 ? strlen(name) : 3;

	for (size_t i = 0; i < COMMANDS; i++) {
		if (n == 0 || strncmp(commands[i].name, name, n) != 0)
			continue;
		if (found)
			return NULL;
		found = &commands[i];
	}
	return found;
}

static int report_unknown_command(const char *name)
{
	const struct command *c = find_similar_command(name);

	fprintf(stderr, "pullet: there is no command '%s'%s%s%s; try 'pullet --help'\n", name,
		c ? ", did you mean '" : "", c ? c->name : "", c ? "'?" : "");
	return CLI_USAGE;
}

/* Success, if what was printed is where it belongs. */
static int all_printed(void)
{
	const struct buffer nothing_more = {0};

	return cli_output("pullet", &nothing_more);
}

/* Runs a command under its whole name, the prefix of getopt_long()'s messages too. */
static int run_command_named(const struct command *c, int argc, char **argv)
{
	char name[32];
	int r;

	snprintf(name, sizeof(name), "pullet %s", c->name);
	argv[0] = name;
	r = c->run(argc, argv);
	return r == CLI_OK ? all_printed() : r;
}

static bool asks_help(const char *word)
{
	return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	const struct command *c = find_command(name);
	char help[] = "--help";

	descriptors_keep_standard();
	log_find_reader();
	setlocale(LC_CTYPE, "C.UTF-8"); /* for the width of characters: all texts are UTF-8 */
	client_choose_runtime_dir();
	if (c)
		return run_command_named(c, argc - 1, argv + 1);
	if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
		printf("pullet %s\n%s\n%s\n", PULLET_VERSION, http_client_version(),
			subscriber_version());
		return all_printed();
	}
	if (strcmp(name, "help") == 0 && argc > 2 && !asks_help(argv[2])) {
		c = find_command(argv[2]);
		return c ? run_command_named(c, 2, (char *[]){argv[2], help, NULL})
			 : report_unknown_command(argv[2]);
	}
	if (asks_help(name)) {
		print_commands(stdout);
		return all_printed();
	}
	if (argc > 1)
		return report_unknown_command(name);
	print_commands(stderr);
	return CLI_USAGE;
}

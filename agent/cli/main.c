/* pullet: a table of subcommands. Surprising: nothing; each command is a file. */
#include "cli/common/cli.h"

#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "push/subscriber.h"
#include "settings/settings.h"
#include "http/client.h"

static const struct command {
	const char *name, *arguments, *help;
	int (*run)(int argc, char **argv);
} commands[] = {
	{"get", "CONFIG KEY [--type T]", "one value of a config", cli_get},
	{"list", "CONFIG [PREFIX]", "all values of a config", cli_list},
	{"export", "CONFIG --format F", "a config as sh, env, json, yaml or properties",
		cli_export},
	{"watch", "CONFIG [-- CMD...]", "tell of each new version, or run a command", cli_watch},
	{"status", "[CONFIG] [--json]", "what stands, how old it is, what went wrong last",
		cli_status},
	{"top", "[--interval D]", "the same, live", cli_top},
	{"doctor", "[CONFIG] [-c FILE]", "what is wrong on this host, and what to do", cli_doctor},
	{"refresh", "[CONFIG] [--wait]", "pull now", cli_refresh},
	{"wait", "CONFIG --version V", "until this host has published a version", cli_wait},
	{"fleet", "[CONFIG]", "which hosts run which version; `fleet wait`, `fleet forget`",
		cli_fleet},
	{"history", "CONFIG", "the versions that are kept", cli_history},
	{"diff", "CONFIG [A [B]]", "what changed from one version to another", cli_diff},
	{"explain", "CONFIG KEY", "which layer or override a value comes from", cli_explain},
	{"rollback", "CONFIG [N]", "an older version stands again", cli_rollback},
	{"pin", "CONFIG [--for D]", "what stands stays", cli_pin},
	{"unpin", "CONFIG", "take the server's version again", cli_unpin},
	{"suspend", "CONFIG [--for D]", "begin no pull", cli_suspend},
	{"resume", "CONFIG", "pull again", cli_resume},
	{"override", "CONFIG KEY=VALUE --for D", "one value over what the server says, for a while",
		cli_override},
	{"publish", "TOPIC [--endpoint E]", "tell the agents that something changed", cli_publish},
	{"serve", "DIR [--http ADDR]", "serve a directory as a configuration origin", cli_serve},
	{"relay", "SOURCE... [--push E]", "tell any number of agents what changes in sources",
		cli_relay},
	{"keygen", "FILE [--sign]", "make a pair of keys, for what is published or for signatures",
		cli_keygen},
	{"sign", "FILE... -s FILE", "sign documents for agents that verify them", cli_sign},
};

enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static void usage(FILE *out)
{
	fputs("Usage: pullet COMMAND [ARGUMENT...]\n\n", out);
	/* two blanks before what a command does: packaging/completions/ read this */
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(out, "  %-8s %-24s  %s\n", commands[i].name, commands[i].arguments,
			commands[i].help);
	fputs("\n'pullet COMMAND --help' says more; --version prints the versions. See pullet(1).\n"
	      "Exit codes: 0 ok, 1 failed, 2 not found, 3 agent not reachable, 4 timed out, 64 "
	      "usage, 78 invalid configuration.\n",
		out);
}

static const struct command *find(const char *name)
{
	for (size_t i = 0; i < COMMANDS; i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

/* The command that begins like `name`, if exactly one does. */
static const struct command *similar(const char *name)
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

static int unknown(const char *name)
{
	const struct command *c = similar(name);

	fprintf(stderr, "pullet: there is no command '%s'%s%s%s; try 'pullet --help'\n", name,
		c ? ", did you mean '" : "", c ? c->name : "", c ? "'?" : "");
	return CLI_USAGE;
}

/* Runs it under its whole name, which is also what getopt_long() puts before its complaints. */
static int run(const struct command *c, int argc, char **argv)
{
	char name[32];

	snprintf(name, sizeof(name), "pullet %s", c->name);
	argv[0] = name;
	return c->run(argc, argv);
}

static bool asks_help(const char *word)
{
	return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	const struct command *c = find(name);
	char help[] = "--help";

	setlocale(LC_CTYPE, "C.UTF-8"); /* for the width of characters: all texts are UTF-8 */
	if (c)
		return run(c, argc - 1, argv + 1);
	if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
		printf("pullet %s\n%s\n%s\n", PULLET_VERSION, http_client_version(),
			subscriber_version());
		return CLI_OK;
	}
	if (strcmp(name, "help") == 0 && argc > 2 && !asks_help(argv[2])) {
		c = find(argv[2]);
		return c ? run(c, 2, (char *[]){argv[2], help, NULL}) : unknown(argv[2]);
	}
	if (asks_help(name)) {
		usage(stdout);
		return CLI_OK;
	}
	if (argc > 1)
		return unknown(name);
	usage(stderr);
	return CLI_USAGE;
}

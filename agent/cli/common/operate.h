/*
 * What the commands about a config's versions share: options, the question to the agent.
 *
 * Threads: one. Ownership: options are borrowed from argv.
 */
#ifndef PULLET_CLI_OPERATE_H
#define PULLET_CLI_OPERATE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/common/client.h"

/* Options beside --json, --socket and --help, which all have. */
enum {
	OPERATE_REASON = 1,
	OPERATE_FOR = 2,
	OPERATE_TIMEOUT = 4,
	OPERATE_REMOVE = 8,
	OPERATE_ALL = 16
};

struct operate {
	const char *command, *socket;
	const char *reason;  /* NULL = none */
	uint64_t for_ms;     /* 0 = not given */
	uint64_t timeout_ms; /* 60 s */
	bool json, remove, all;
	char **arguments; /* config first */
	int count;
};

#define OPERATE_HELP_REASON "      --reason TEXT       for the log, the status and the history\n"
#define OPERATE_HELP_TIMEOUT                                                                       \
	"      --timeout DURATION  wait that long for the end of it (default 60s), else exit 4\n"
#define OPERATE_HELP                                                                               \
	"      --json              the control API's answer\n"                                     \
	"      --socket PATH       the agent's control socket (default "                           \
	"$PULLET_RUNTIME_DIR/control.sock)\n"

/* Reads the line: options of `allowed`, then min to max arguments. -1, or the exit code when there
 * is nothing left to do, with its sentence printed. */
int operate_options(int argc, char **argv, unsigned allowed, int min, int max,
	void (*usage)(FILE *out), struct operate *ret);
/* Asks, frees path, and prints the answer: as it is with --json, else what `show` makes of it; show
 * appends to out and returns the exit code. Returns the exit code. */
int operate_ask(const struct operate *o, const char *method, struct buffer *path,
	int (*show)(const struct operate *o, const struct node *root, struct buffer *out));
/* For an answer to a change: "web: generation 14 stands: ORIGIN". */
int operate_show_standing(const struct operate *o, const struct node *root, struct buffer *out);

/* Appends " by uid 0 until TIME: reason", as far as an entry of the status or of an explanation has
 * those members. */
void operate_decision(struct buffer *out, const struct node *entry);

#endif

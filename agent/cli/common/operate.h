/*
 * What the commands about a config share: options, the request to the agent.
 *
 * Threads: one. Ownership: options are borrowed from argv.
 */
#ifndef PULLET_CLI_OPERATE_H
#define PULLET_CLI_OPERATE_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/common/client.h"
#include "cli/common/options.h"

struct operate { /* first in a target of more options */
	const char *command, *socket;
	const char *config;  /* the first argument; NULL = none */
	const char *reason;  /* NULL = none */
	uint64_t for_ms;     /* 0 = not given */
	uint64_t timeout_ms; /* 60 s */
	bool json, remove, all, held;
	char **arguments;
	int count;
};

#define OPERATE_ROW_FOR(help)                                                                      \
	{                                                                                          \
		"for", "DURATION", help, OPTION_DURATION, .at = offsetof(struct operate, for_ms),  \
							  .min = 1, .takes = "more than nothing"   \
	}
#define OPERATE_ROW_REASON                                                                         \
	{                                                                                          \
		"reason", "TEXT", "for the log, the status and the history", OPTION_TEXT,          \
			.at = offsetof(struct operate, reason)                                     \
	}
#define OPERATE_ROW_TIMEOUT                                                                        \
	{                                                                                          \
		"timeout", "DURATION", "wait that long for the result (default 60s), else exit 4", \
			OPTION_DURATION, .at = offsetof(struct operate, timeout_ms)                \
	}
#define OPERATE_ROWS OPTION_ROW_JSON(struct operate), OPTION_ROW_SOCKET(struct operate)

/* Sets defaults, and reads the line into the target, which begins with a struct operate. As
 * options_read(). */
int operate_options(const struct command_line *line, int argc, char **argv, void *target);
/* Asks, frees path, and prints the answer: as it is with --json, else what `show` makes of it; show
 * appends to out and returns the exit code. Returns the exit code. */
int operate_ask(const struct operate *o, const char *method, struct buffer *path,
	int (*show)(const struct operate *o, const struct node *root, struct buffer *out));
/* Calls ask for each config that the agent has. The first failure is the exit code. */
int operate_ask_each(struct operate *o,
	int (*request_status)(struct operate *o, const char *name, const struct node *config));
/* For the answer to a change: "web: generation 14 is current: ORIGIN". */
int operate_show_current(const struct operate *o, const struct node *root, struct buffer *out);
/* Appends " (at http://HOST:PORT)" for a URL, without credentials, path or query; of another scheme
 * nothing. */
void operate_address(const char *url, struct buffer *out);
/* Appends a line about the pin or the suspension that a decision replaced or ended, if it did. */
void operate_ended(const char *what, const struct node *root, struct buffer *out);

/* The reason in a "rejected" or "held"; an operator's begins with "rolled back by", and who. */
const char *operate_why(const struct node *rejected);
/* Appends what goes before that reason: IS "held by the rollout: ", IS "rejected by the schema: ",
 * WAS "rolled back by the probe: "; WAS alone for an operator's. */
void operate_append_by(
	const struct node *rejected, const char *is, const char *was, struct buffer *out);
/* Appends what makes new versions current again, a line each, as far as an answer has it. */
void operate_forward(struct buffer *out, const struct node *entry);
/* Appends " by uid 0 until TIME: reason", as far as an entry of the status or of an explanation has
 * those members. */
void operate_decision(struct buffer *out, const struct node *entry);

#endif

/*
 * The agent as it runs: all there is of it, the order in which it starts, the same list backwards;
 * and the step from one configuration to the next (when it is taken, reconfigure.h decides).
 *
 * Threads: the loop's. Ownership: settings are the agent's once it has begun to start. Errors: told
 * in the log.
 */
#ifndef PULLET_AGENT_H
#define PULLET_AGENT_H

#include <limits.h>

#include "config/config.h"
#include "control/api.h"
#include "control/systemd.h"
#include "settings/diff.h"

struct agent {
	/* set by main.c */
	const char *path; /* of the configuration */
	bool once, dry_run;
	bool level_given; /* on the command line: wins over the configuration */
	enum log_level level;

	struct settings *settings; /* stays where it is, what it holds changes */
	int lock;                  /* of the state directory; -1 = not held */
	struct loop *loop;
	struct worker *worker, *check, *files;
	struct http_client *transport;
	struct trigger_queue queue;
	struct file_watch *drift;
	struct backoffs *backoffs;
	struct watch *watcher;
	struct config_env env;
	struct log_limit goes_on;
	struct push_budget budget;
	char host[HOST_NAME_MAX + 1];
	struct upstream **servers;
	struct config **configs;
	struct configuration_status configuration;
	struct control_counts counts;
	struct control_env control_env;
	struct control *control;
	struct service *service;
	struct subscriber *push, *next_push; /* the second is to take the place of the first */
	struct report *report;
	size_t once_left; /* configs that have not ended their one run */
	bool once_failed;
};

/* The directories, the loop and the threads. 0 or -errno, told; agent_stop() in either case. */
int agent_open(struct agent *a, const struct settings *settings);
/* All the rest, with these settings, which it takes. 0 or -errno, told. */
int agent_start(struct agent *a, struct settings *settings);
void agent_stop(struct agent *a);
/* Level and form of the log, as the settings and the command line say. */
void agent_set_log(const struct agent *a, const struct settings *settings);
/* Opens what the new settings name that may not be to be had: the address to listen at, the push
 * channel, threads. 0; or -errno and a sentence, and nothing has changed. */
int agent_prepare(struct agent *a, const struct settings *new, const struct settings_diff *diff,
	char why[FILE_WHY]);
/* After that, the new settings take the place of the present ones, of which diff tells: what it
 * calls the same goes on untouched, the configs that it does not keep were retired and are freed,
 * the others are made and started; one that was changed pulls at once. Takes new. 0; or -ENOMEM:
 * the agent is in pieces then, and must end. */
int agent_apply(struct agent *a, struct settings *new, const struct settings_diff *diff);

#endif

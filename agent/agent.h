/*
 * The running agent: creates all subsystems in order, destroys them in reverse, and switches from
 * one configuration to the next (reconfigure.h decides when).
 *
 * Threads: the loop's. Ownership: agent_start() takes the settings. Errors: logged.
 */
#ifndef PULLET_AGENT_H
#define PULLET_AGENT_H

#include <limits.h>

#include "config/config.h"
#include "control/api.h"
#include "control/systemd.h"
#include "settings/diff.h"
#include "watch_config.h"

#define AGENT_LEAVE_MS 500u /* for a last word to the fleet */

struct agent {
	/* set by main.c */
	const char *path;                /* of the configuration */
	char *absolute_path;             /* the same, for the status; NULL: as it is */
	struct watched_files files_read; /* its files, from just before it was read last */
	bool once, dry_run;
	bool level_given; /* on the command line: wins over the configuration */
	enum log_level level;

	struct settings *settings; /* its address never changes, its content does */
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
	struct config_latency latency;
	struct push_budget budget;
	struct kept_shelf shelf;
	char host[HOST_NAME_MAX + 1];
	struct upstream **servers;
	struct config **configs;
	struct configuration_status configuration;
	struct control_counts counts;
	struct config_totals gone; /* counted by configs that were freed */
	struct control_env control_env;
	struct control *control;
	struct systemd *service;
	struct subscriber *push, *next_push; /* next_push replaces push at a reload */
	struct report *report;
	size_t once_left; /* configs whose one run has not ended */
	bool once_failed;
};

/* Opens the directories, the loop and the threads. 0, or -errno, logged; agent_stop() in either
 * case. */
int agent_open(struct agent *a, const struct settings *settings);
/* Starts all the rest. Takes settings. 0, or -errno, logged. */
int agent_start(struct agent *a, struct settings *settings);
/* For an agent that was told to stop: tells the fleet, if it has a report and its server answers
 * within AGENT_LEAVE_MS; runs the loop meanwhile. */
void agent_leave(struct agent *a);
void agent_stop(struct agent *a);
/* Logs why the agent cannot start: memory, descriptors or threads. Returns the error. */
int agent_log_shortage(int error);
/* Sets level and format of the log from the settings and the command line. */
void agent_set_log(const struct agent *a, const struct settings *settings);
/* Opens what new settings need and may be unavailable: the address to listen at, the push channel,
 * threads. 0; or -errno and a sentence, and nothing has changed. */
int agent_prepare(struct agent *a, const struct settings *new, const struct settings_diff *diff,
	char why[FILE_WHY]);
/* Then replaces the current settings: leaves alone what diff calls the same, frees the configs that
 * it does not keep (retired before), creates and starts the others; a changed one pulls at once.
 * Takes new. 0; or -ENOMEM: the agent is incomplete then, and must end. */
int agent_apply(struct agent *a, struct settings *new, const struct settings_diff *diff);

#endif

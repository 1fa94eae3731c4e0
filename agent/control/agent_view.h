/*
 * The agent as all of this room sees it: what there is to tell of, and where it is counted.
 */
#ifndef PULLET_AGENT_VIEW_H
#define PULLET_AGENT_VIEW_H

#include "base/loop.h"
#include "config/config.h"
#include "files/file_watch.h"
#include "fleet/report.h"
#include "push/subscriber.h"
#include "settings/settings.h"

/* What is said of the configuration file, and of its reloads (reconfigure.h, which keeps it). */
struct configuration_status {
	const char *file;
	int64_t loaded_ms;         /* wall clock: when what runs was read */
	uint64_t reloads, refused; /* since the start */
	char *error;               /* the first of the last one that was read; NULL = it was good */
	size_t errors;             /* and how many there were */
	bool under_way;            /* it waits for a disk */
};

/* What became of clients since the start. */
struct control_counts {
	uint64_t refused; /* requests of who has not the right */
	uint64_t busy;    /* connections and requests above a share (share.h) */
};

/* The agent as it runs. Owned by agent.c, which changes it at a reload, in place and between two
 * calls of the loop: borrowed by pointer, and nothing that it names is kept from one call to the
 * next. */
struct control_env {
	struct loop *loop;
	struct file_watch *drift; /* NULL = there is none */
	const struct settings *settings;
	struct config *const *configs;   /* settings->config_count of them, in that order */
	struct upstream *const *servers; /* settings->server_count of them */
	struct subscriber *const *push;  /* *push is NULL without a push channel */
	struct report *const *report;    /* *report is NULL when no receipts are written */
	const struct configuration_status *configuration;
	struct control_counts *counts; /* which api.c counts in */
	const char *host;              /* what this host is called in receipts */
	int64_t started_ms;            /* wall clock */
};

#endif

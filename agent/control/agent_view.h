/*
 * The agent as all of this room sees it.
 */
#ifndef PULLET_AGENT_VIEW_H
#define PULLET_AGENT_VIEW_H

#include "base/loop.h"
#include "config/config.h"
#include "files/file_watch.h"
#include "fleet/report.h"
#include "push/subscriber.h"
#include "settings/settings.h"

/* The configuration file and its reloads. Kept by reconfigure.c. */
struct configuration_status {
	const char *file;
	int64_t loaded_ms;            /* wall clock: when the current one was read */
	uint64_t reloads, rejections; /* since the start */
	char *error;                  /* the first error of the last one read; NULL = none */
	size_t errors;                /* of the last one read */
	bool applying;                /* a new one waits for writes to finish */
};

/* Clients since the start. */
struct control_counts {
	uint64_t denied; /* requests denied: the user is not allowed */
	uint64_t busy;   /* connections and requests above a share (share.h) */
};

/* The agent as it runs. Owned by agent.c, which changes it at a reload, in place and between two
 * calls of the loop: borrowed, and nothing in it is kept from one call to the next. */
struct control_env {
	struct loop *loop;
	struct file_watch *drift; /* NULL = none */
	const struct settings *settings;
	struct config *const *configs;   /* settings->config_count of them, in that order */
	struct upstream *const *servers; /* settings->server_count of them */
	struct subscriber *const *push;  /* *push is NULL without a push channel */
	struct report *const *report;    /* *report is NULL when no receipts are written */
	const struct configuration_status *configuration;
	const struct config_latency *latency; /* NULL = not counted */
	const struct config_totals *gone;     /* of configs that were freed; NULL = not kept */
	struct control_counts *counts;        /* written by api.c and handler.c */
	const char *host;                     /* name of this host in receipts */
	int64_t started_ms;                   /* wall clock */
};

#endif

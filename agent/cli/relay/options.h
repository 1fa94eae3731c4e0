/*
 * The command line of `pullet relay`: what is relayed, where to, and how.
 *
 * Ownership: texts are the arguments'; relay_setup_fini() frees the rest. Errors: exit codes, with
 * the sentence printed. Bounds: RELAY_SETUP_MAX of each source,
 * OPTIONS_NAMES.
 */
#ifndef PULLET_CLI_RELAY_OPTIONS_H
#define PULLET_CLI_RELAY_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/common/options.h"
#include "push/publisher.h"
#include "push/subscriber.h"
#include "relay/relay.h"
#include "settings/settings.h"

#define RELAY_SETUP_MAX RELAY_MAX_UPSTREAMS

struct relay_origin {     /* a server */
	const char *name; /* --server; NULL: `own`, made from urls */
	struct settings_server own;
	char *urls[SETTINGS_MAX_URLS];
	size_t prefixes;
};

struct relay_prefix {
	struct relay_origin *origin;
	const char *text; /* ends in '/' */
};

struct relay_setup {
	const char *command; /* for messages */
	const char *push;    /* endpoint */
	const char *config;  /* where the servers of --server are; NULL = none is named */
	const char *listen;  /* HOST:PORT of metrics and probes; NULL = none */
	char *listen_names[OPTIONS_NAMES + 1]; /* ends with NULL */
	struct publisher_options publishing;
	struct relay_options relaying;
	struct relay_origin origins[RELAY_SETUP_MAX];
	struct relay_prefix prefixes[RELAY_SETUP_MAX];
	const char *dirs[RELAY_SETUP_MAX];
	struct subscriber_endpoint upstreams[RELAY_SETUP_MAX];
	bool upstream_insecure[RELAY_SETUP_MAX];
	size_t origin_count, prefix_count, dir_count, upstream_count;
};

/* Reads the arguments into a zeroed setup, which stays in place. -1, or the exit code when there is
 * nothing left to do. */
int relay_setup_read(struct relay_setup *s, int argc, char **argv);
void relay_setup_fini(struct relay_setup *s);

#endif

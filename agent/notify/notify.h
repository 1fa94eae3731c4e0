/*
 * After a publication: notifies the application (reload), then watches it (probe), and asks for a
 * rollback when it fails.
 *
 * Threads: the loop's. Ownership: settings are borrowed; the ledger is the config's, and is changed
 * here: notified, proven. Errors: through the calls. Bounds: one reload and one probe at a time.
 */
#ifndef PULLET_NOTIFY_H
#define PULLET_NOTIFY_H

#include "version/ledger.h"
#include "base/loop.h"
#include "notify/reload.h"
#include "settings/settings.h"
#include "http/client.h"

struct notify;

enum notify_event {
	NOTIFY_RELOADED,
	NOTIFY_RELOAD_FAILED,
	NOTIFY_PROBE_PASSED,
	NOTIFY_PROBE_FAILED
};

struct notify_calls {
	void (*remember)(void *arg); /* the ledger has changed: write it */
	/* The probe of this generation, the current one, has failed: roll it back. */
	void (*bad)(void *arg, uint64_t generation, const char *why);
	/* A reload or a probe has ended; why: a sentence, "" = it was good. NULL = not called. */
	void (*happened)(void *arg, enum notify_event what, const char *why);
	/* Appends what a program wrote without the values of masked keys. */
	void (*scrub)(void *arg, struct buffer *out, const char *text, size_t len);
};

struct notify_options {
	struct loop *loop;
	struct http_client *transport;
	const char *ca_file;
	const struct settings_config *config;
	struct ledger *ledger;
	uint64_t current; /* generation at the start; 0 = none */
	const struct notify_calls *calls;
	void *arg;
};

enum probe_state { PROBE_NONE, PROBE_WAITING, PROBE_RUNNING, PROBE_PASSED, PROBE_FAILED };

struct notify_status {
	bool has_reload, has_probe;
	struct reload_status reload;
	enum probe_state probe;
	uint64_t probe_generation; /* being probed, or probed last */
	const char *probe_why;     /* of the last probe that failed; "" = none did */
	uint64_t probes_failed;
};

/* This config has a reload or a probe. */
bool notify_wanted(const struct settings_config *config);
/* Goes on with a reload or a probe that a restart interrupted. NULL when there is no memory. */
struct notify *notify_new(const struct notify_options *options);
void notify_free(struct notify *a);
/* A generation was published. stays: it is proven, no probe. */
void notify_published(struct notify *a, uint64_t generation, char *const *keys, size_t count,
	bool all, bool stays);
void notify_status(struct notify *a, struct notify_status *ret_status);

#endif

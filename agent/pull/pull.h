/*
 * The pulls of one run: every layer of a config, and with `verify:` the signature behind each, from
 * their servers, whole or not at all.
 *
 * The run begins when the first one has a slot at its server; the others follow then. Each goes
 * from address to address on its own. The first that fails ends them all.
 *
 * Threads: the loop's. Ownership: settings and env are borrowed; bodies belong to the gather until
 * pull_release(). Bounds: SETTINGS_MAX_LAYERS layers, each at most its server's max_size.
 */
#ifndef PULLET_GATHER_H
#define PULLET_GATHER_H

#include "pull/exchange.h"
#include "pull/upstream.h"
#include "settings/settings.h"
#include "version/store.h"
#include "base/sys.h"
#include "http/client.h"

struct pull;

struct pull_env {
	struct exchange_env exchange;
	struct worker *check;            /* reads large answers; NULL = the loop */
	struct upstream *const *servers; /* by the index in the settings; for pull_new() alone */
};

enum pull_outcome {
	PULL_NEW,     /* at least one part is another than the held one */
	PULL_SAME,    /* all are as they are held */
	PULL_TIMEOUT, /* why is a sentence, also below */
	PULL_FAILED,
	PULL_REJECTED
};

struct pull_calls {
	/* A slot is free: begin the run, or return false, and the slot goes to another config. */
	bool (*begin)(void *arg);
	/* The run is over; once for each begin() that returned true. */
	void (*ended)(void *arg, enum pull_outcome outcome, const char *why);
	/* No slot came in time; no run was begun. */
	void (*lost)(void *arg, const char *why);
};

enum pull_state { PULL_PENDING, PULL_HELD, PULL_PULLED, PULL_ABSENT };

struct pull_part { /* in the order of the layers, a signature behind its document */
	enum pull_state state;
	size_t layer;
	bool signature;
	struct part facts;  /* when PULLED or ABSENT */
	struct buffer body; /* when PULLED */
	char *mismatch;     /* how it does not fit the digests that came with it; NULL = it does */
};

/* instead: NULL, or what is pulled in place of the config's first layer; the other ones are absent
 * then. */
struct pull *pull_new(const struct pull_env *env, const struct settings_config *config,
	const struct settings_layer *instead, const struct pull_calls *calls, void *arg);
void pull_free(struct pull *g);
/* Ends all transfers and takes what waits out of the line; ended() is not called, and nothing is
 * said about the servers: it is not wanted any more. */
void pull_drop(struct pull *g);
/* Lines the first part up; see upstream_submit(). */
void pull_submit(struct pull *g, uint64_t expires_ms);
/* From then on no rest that the server did not ask for keeps the first part waiting. */
void pull_wait_until(struct pull *g, uint64_t latest_ms);
void pull_withdraw(struct pull *g);
/* In the line, and not begun. */
bool pull_waiting(const struct pull *g);
/* What the next requests are conditional on: NULL or the version that stands. Borrowed during
 * begin(). forced: an older version than that is taken too. */
void pull_hold(struct pull *g, const struct version *held, bool forced);
/* The time limit has passed: ends all transfers, ended() is not called. True when another address
 * is ready for the first that kept it waiting. */
bool pull_give_up(struct pull *g);
/* No server is waited for: what has come is being read here. */
bool pull_reading(const struct pull *g);
/* Of a document whose server watches: the version that was shown last, "" = it was not there; NULL
 * = nothing was yet. */
const char *pull_seen(const struct pull *g, size_t i);
/* Why the last run failed; NONE when it did not, or was never begun. */
enum kind_cause pull_cause(const struct pull *g);
/* A 429 or 503 was among the answers. */
bool pull_overloaded(const struct pull *g);
/* Somebody wants a pull now: see upstream_lift(). */
void pull_lift(struct pull *g);

size_t pull_count(const struct pull *g);
const struct pull_part *pull_part(const struct pull *g, size_t i);
/* All parts came in the last run, and at least one named its version. */
bool pull_showed(const struct pull *g);
/* One of the parts showed this version in the last run; see etag_hash(). */
bool pull_shows(const struct pull *g, uint64_t version_hash);
/* None did: the next pulls go to other addresses, where there are some; see upstream_avoid(). */
void pull_avoid(struct pull *g);
/* Frees the bodies. */
void pull_release(struct pull *g);
/* Where the first part comes from, its address for people: without its query. */
struct upstream *pull_server(const struct pull *g);
void pull_url(const struct pull *g, char ret_url[1024]);
/* True when each part of this version came from an address of its layer's server. */
bool pull_covers(const struct pull *g, const struct version *v);

#endif

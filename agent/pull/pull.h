/*
 * The pull of one run: every layer of a config, and with `verify:` the signature behind each, from
 * their servers, whole or not at all.
 *
 * The run begins when the first part has a slot at its server; the others follow then. Each tries
 * the addresses of its server on its own. The first that fails ends them all.
 *
 * Threads: the loop's. Ownership: settings and env are borrowed; bodies belong to the pull until
 * pull_release(). Bounds: SETTINGS_MAX_LAYERS layers, each at most its server's max_size.
 */
#ifndef PULLET_PULL_H
#define PULLET_PULL_H

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
	PULL_NEW,     /* at least one part differs from the held one */
	PULL_SAME,    /* none differs */
	PULL_TIMEOUT, /* why is a sentence, also below */
	PULL_FAILED,
	PULL_REJECTED
};

struct pull_calls {
	/* A slot is free: begins the run, or returns false, and the slot goes to another config. */
	bool (*run_may_begin)(void *arg);
	/* The run is over; once for each run_may_begin() that returned true. */
	void (*run_ended)(void *arg, enum pull_outcome outcome, const char *why);
	/* No slot came in time; no run was begun. */
	void (*slot_lost)(void *arg, const char *why);
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

/* instead: NULL, or the layer that is pulled in place of the config's first; the others are absent
 * then. NULL when there is no memory. */
struct pull *pull_new(const struct pull_env *env, const struct settings_config *config,
	const struct settings_layer *instead, const struct pull_calls *calls, void *arg);
void pull_free(struct pull *pull);
/* Cancels all transfers and leaves the queues; run_ended() is not called, and nothing counts for
 * the servers' backoff. */
void pull_drop(struct pull *pull);
/* Queues the first part; see upstream_submit(). */
void pull_submit(struct pull *pull, uint64_t expires_ms);
/* From then on only a backoff that the server asked for keeps the first part waiting. */
void pull_wait_until(struct pull *pull, uint64_t latest_ms);
void pull_withdraw(struct pull *pull);
/* True when it is queued, and not begun. */
bool pull_waiting(const struct pull *pull);
/* Sets the version that the next requests are conditional on; NULL = none. forced: an older version
 * is accepted too. */
void pull_hold(struct pull *pull, const struct version *held, bool forced);
/* A copy of it; NULL = none. Borrowed until the next pull_hold(). */
const struct version *pull_held(const struct pull *pull);
/* The time limit has passed: cancels all transfers; run_ended() is not called. True when another
 * address is ready for a part that waited. */
bool pull_give_up(struct pull *pull);
/* ": PATH: " and what the first of its requests that runs waits for, and where to look; without the
 * path where there is one document; "" = that is not known. */
void pull_waits_for(const struct pull *pull, char ret_text[FILE_WHY]);
/* True when no server is waited for: the answers are being read here. */
bool pull_reading(const struct pull *pull);
/* A watch brought this answer to the request for the only document, which is copied: a run that
 * begins within PULL_OFFER_MS, and is not forced, takes it instead of asking, if it holds the
 * document. Not a large one, which is not to be read here, nor one of which only the sent form fits
 * its digests. */
#define PULL_OFFER_MS 1000u
void pull_offer(struct pull *pull, const struct http_client_response *answer);
/* The version of part i that its server showed last, "" = there was none; NULL = nothing yet, or
 * the server is not watched. */
const char *pull_seen(const struct pull *pull, size_t i);
/* Why the last run failed; NONE when it did not, or was never begun. */
enum kind_cause pull_cause(const struct pull *pull);
/* The outage that it is a part of, when the last run failed for a server's sake: no answer, none in
 * time, too many requests, an address that fails whatever it is asked. NULL = it did not. */
struct outage *pull_outage(const struct pull *pull);
/* A 429 or 503 was among the answers. */
bool pull_overloaded(const struct pull *pull);
/* Ends backoffs for a pull that is requested now: see upstream_lift(). */
void pull_lift(struct pull *pull);

size_t pull_count(const struct pull *pull);
/* Of the last run, until pull_release(); then NULL. */
const struct pull_part *pull_part(const struct pull *pull, size_t i);
/* All parts came in the last run, and at least one named its version. */
bool pull_showed(const struct pull *pull);
/* One of the parts showed this version in the last run; see etag_hash(). */
bool pull_shows(const struct pull *pull, uint64_t version_hash);
/* Sends the next pulls to other addresses, where there are some; see upstream_avoid(). */
void pull_avoid(struct pull *pull);
/* Frees the parts. */
void pull_release(struct pull *pull);
struct upstream *pull_server(const struct pull *pull); /* of the first part */
/* The address of the first part as it may be shown: without its query. */
void pull_url(const struct pull *pull, char ret_url[1024]);
/* The same of the part that the last run failed by, also while the next one is under way. */
void pull_failed_url(const struct pull *pull, char ret_url[1024]);
/* True when each part of this version came from an address of its layer's server. */
bool pull_covers(const struct pull *pull, const struct version *v);

#endif

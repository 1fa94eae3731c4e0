/*
 * The pulls of one run: every layer of a config, and with `verify:` the signature behind each, from
 * their servers, whole or not at all.
 *
 * The run begins when the first one has a slot at its server; the others follow then. Each goes
 * from address to address on its own. The first that fails ends them all.
 *
 * Threads: the loop's. Ownership: settings and env are borrowed; bodies belong to the gather until
 * gather_release(). Bounds: SETTINGS_MAX_LAYERS layers, each at most its server's max_size.
 */
#ifndef PULLET_GATHER_H
#define PULLET_GATHER_H

#include "pull/exchange.h"
#include "pull/upstream.h"
#include "settings/settings.h"
#include "version/store.h"
#include "base/sys.h"
#include "http/client.h"

struct gather;

struct gather_env {
	struct exchange_env exchange;
	struct worker *judge;          /* reads large answers; NULL = the loop */
	struct server *const *servers; /* by the index in the settings; for gather_new() alone */
};

enum gather_outcome {
	GATHER_NEW,     /* at least one part is another than the held one */
	GATHER_SAME,    /* all are as they are held */
	GATHER_TIMEOUT, /* why is a sentence, also below */
	GATHER_FAILED,
	GATHER_REJECTED
};

struct gather_calls {
	/* A slot is free: begin the run, or return false, and the slot goes to another config. */
	bool (*begin)(void *arg);
	/* The run is over; once for each begin() that returned true. */
	void (*ended)(void *arg, enum gather_outcome outcome, const char *why);
	/* No slot came in time; no run was begun. */
	void (*lost)(void *arg, const char *why);
};

enum gather_state { GATHER_PENDING, GATHER_HELD, GATHER_PULLED, GATHER_ABSENT };

struct gather_part { /* in the order of the layers, a signature behind its document */
	enum gather_state state;
	size_t layer;
	bool signature;
	struct part facts;  /* when PULLED or ABSENT */
	struct buffer body; /* when PULLED */
	char *mismatch;     /* how it does not fit the digests that came with it; NULL = it does */
};

/* instead: NULL, or what is pulled in place of the config's first layer; the other ones are absent
 * then. */
struct gather *gather_new(const struct gather_env *env, const struct settings_config *config,
	const struct settings_layer *instead, const struct gather_calls *calls, void *arg);
void gather_free(struct gather *g);
/* Ends all transfers and takes what waits out of the line; ended() is not called, and nothing is
 * said about the servers: it is not wanted any more. */
void gather_drop(struct gather *g);
/* Lines the first part up; see server_submit(). */
void gather_submit(struct gather *g, uint64_t expires_ms);
/* From then on no rest that the server did not ask for keeps the first part waiting. */
void gather_wait_until(struct gather *g, uint64_t latest_ms);
void gather_withdraw(struct gather *g);
/* In the line, and not begun. */
bool gather_waiting(const struct gather *g);
/* What the next requests are conditional on: NULL or the version that stands. Borrowed during
 * begin(). forced: an older version than that is taken too. */
void gather_hold(struct gather *g, const struct version *held, bool forced);
/* The time limit has passed: ends all transfers, ended() is not called. True when another address
 * is ready for the first that kept it waiting. */
bool gather_give_up(struct gather *g);
/* No server is waited for: what has come is being read here. */
bool gather_reading(const struct gather *g);
/* Of a document whose server watches: the version that was shown last, "" = it was not there; NULL
 * = nothing was yet. */
const char *gather_seen(const struct gather *g, size_t i);
/* Why the last run failed; NONE when it did not, or was never begun. */
enum kind_cause gather_cause(const struct gather *g);
/* A 429 or 503 was among the answers. */
bool gather_overloaded(const struct gather *g);
/* Somebody wants a pull now: see server_lift(). */
void gather_lift(struct gather *g);

size_t gather_count(const struct gather *g);
const struct gather_part *gather_part(const struct gather *g, size_t i);
/* All parts came in the last run, and at least one named its version. */
bool gather_showed(const struct gather *g);
/* One of the parts showed this version in the last run; see etag_hash(). */
bool gather_shows(const struct gather *g, uint64_t version_hash);
/* None did: the next pulls go to other addresses, where there are some; see server_avoid(). */
void gather_avoid(struct gather *g);
/* Frees the bodies. */
void gather_release(struct gather *g);
/* Where the first part comes from, its address for people: without its query. */
struct server *gather_server(const struct gather *g);
void gather_url(const struct gather *g, char ret_url[1024]);
/* True when each part of this version came from an address of its layer's server. */
bool gather_covers(const struct gather *g, const struct version *v);

#endif

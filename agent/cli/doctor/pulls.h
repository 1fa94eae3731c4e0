/*
 * Every document that the configs are made of, asked for once at every address, by the code that
 * the agent pulls with. What it comes to is for servers.c to say.
 *
 * Threads: one; it runs the loop until all have answered or the time is up. Ownership:
 * doctor_pulls_fini() frees; settings are borrowed. Errors: with each answer. Bounds: max_in_flight
 * of each server, the timeout of each config, doctor.timeout_ms for all of it.
 */
#ifndef PULLET_CLI_DOCTOR_PULLS_H
#define PULLET_CLI_DOCTOR_PULLS_H

#include "crypto/digest.h"
#include "pull/exchange.h"
#include "cli/doctor/doctor.h"

enum doctor_pull_state {
	DOCTOR_PULL_WAITING,
	DOCTOR_PULL_RUNNING,
	DOCTOR_PULL_ANSWERED,
	DOCTOR_PULL_SKIPPED
};

/* One document at one address. */
struct doctor_pull {
	struct pulls *pulls;
	struct doctor_pull_document *document;
	struct doctor_pull_address *address;
	struct exchange *exchange;
	enum doctor_pull_state state;
	enum kind_cause cause; /* NONE: it is there, or need not be */
	bool tls;              /* no connection, because of TLS */
	bool too_large;
	bool absent, nameless; /* nameless: it has neither ETag nor Last-Modified */
	uint64_t took_ms, lookup_ms;
	size_t len;
	char sha256[DIGEST_HEX]; /* "" = nothing came */
	struct buffer body;      /* of one that is signed, and of its signature; else empty */
	char why[FILE_WHY];
};

struct doctor_pull_document {
	const char *config; /* that it is of: the first, where several have it */
	struct doctor_pull_upstream *upstream;
	const char *path;
	enum settings_type type;
	uint64_t timeout_ms;
	bool optional, is_signature;
	char *const *public_keys; /* its signature is the next document; NULL = none is asked for */
	const struct settings_config *of; /* whose rules it is validated by, the layer, */
	size_t layer;                     /* where it is signed */
	char *made_path;                  /* the path, where it is not one of the settings */
	struct doctor_pull *pulls;        /* one for each address */
};

struct doctor_pull_address {
	const char *url;
	const struct doctor_pull
		*dead; /* the one that showed that it cannot be talked to; NULL = it can */
	size_t good, skipped;
	uint64_t slowest_ms;
	int64_t certificates_end_ms; /* 0 = not known */
	bool has_clock;
	int64_t clock_ms; /* its clock minus ours */
};

struct doctor_pull_upstream {
	const struct settings_server *server;
	struct exchange_session session;
	struct doctor_pull_address addresses[SETTINGS_MAX_URLS];
	unsigned in_flight;
	size_t next;       /* those before it are not waiting; counts pulls of all documents */
	bool used, closed; /* closed: it needs a file that we may not read */
};

struct pulls {
	struct doctor *d;
	struct http_client *transport;
	struct exchange_env env;
	struct loop_timer timer;
	struct doctor_pull_upstream *upstreams; /* as settings.servers */
	struct doctor_pull_document *documents;
	size_t count, left;
	bool late; /* the time is up */
};

/* Asks all. 0, -ENOMEM. */
int doctor_pulls_run(struct doctor *d, struct pulls *ret_pulls);
void doctor_pulls_fini(struct pulls *p);

#endif

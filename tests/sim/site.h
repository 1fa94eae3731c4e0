/*
 * What configuration servers have: documents, all versions of each that ever were, and servers that
 * show them, with what goes wrong there.
 *
 * Each line of a document names the document and the number of its version, "d3_7: 12", so that a
 * reader sees from any text which versions it is made of, and that it is whole.
 */
#ifndef SIM_SITE_H
#define SIM_SITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SITE_MAX_DOCUMENTS 64
#define SITE_MAX_SERVERS 6
#define SITE_MAX_VERSIONS 512
#define SITE_ROLLOUTS 12

enum site_quality {
	SITE_GOOD,
	SITE_BROKEN,  /* no YAML */
	SITE_SHRUNK,  /* the guard rejects it */
	SITE_HARMFUL, /* the check program rejects it */
	SITE_SICK,    /* the application fails with it: the probe */
	SITE_ABSENT   /* the document is deleted */
};

struct site_version {
	uint64_t number; /* from 1 */
	enum site_quality quality;
	uint64_t since_us;
	uint64_t index;    /* of the site when it was made */
	uint64_t revision; /* the same, of etcd */
	char *text;
	size_t len;
	char etag[24];
	char *signature; /* NULL = nobody asked for it yet */
	bool sent;       /* to some agent, whole */
};

struct site_document {
	unsigned id;
	char path[48];
	unsigned lines;
	bool large; /* for the checks' thread */
	bool may_be_absent;
	bool json;
	bool has_rev; /* in its signatures */
	struct site_version versions[SITE_MAX_VERSIONS];
	size_t count;
	size_t shown; /* versions that count, from the first: fewer after a restored backup */
};

enum server_mode {
	SERVER_GOOD,
	SERVER_REFUSES,    /* no connection */
	SERVER_HANGS,      /* takes requests, answers nothing */
	SERVER_OVERLOADED, /* 503, Retry-After now and then */
	SERVER_FAILS,      /* 500 */
	SERVER_DENIES,     /* 403 */
	SERVER_LOST,       /* 404 for everything */
	SERVER_CUTS,       /* ends in the middle */
	SERVER_GARBLES,    /* 200, and a page of a proxy */
	SERVER_MODES
};

struct site_server {
	char name[24]; /* host */
	unsigned node; /* of the network */
	enum server_mode mode;
	uint64_t mode_until_us;
	bool may_lag;
	uint64_t lag_us;            /* a replica: shows what was so long ago */
	uint64_t view_us;           /* of etcd: what a member shows is of then, never of before */
	uint64_t delay_us;          /* an answer takes at least so long */
	uint64_t requests, answers; /* counted */
	uint64_t busy_second, in_second, worst_second; /* requests in one second */
};

struct site {
	struct site_document *documents[SITE_MAX_DOCUMENTS];
	size_t document_count;
	struct site_server servers[SITE_MAX_SERVERS];
	size_t server_count;
	uint64_t index; /* counts changes */
	struct {
		uint64_t cluster, term, revision; /* revision: counts changes */
		uint64_t restored_us;             /* all connections before are cut */
		bool elects;                      /* the term may grow */
	} etcd;
	unsigned rollout; /* what /rollout/... says: one of SITE_ROLLOUTS texts; 0 = all */
	/* one in so many answers is... ; 0 = none */
	unsigned unasked_304, wrong_etag, cut, lost, wrong_signature;
	/* what one node sends reaches the other at this moment; NULL = always */
	bool (*reaches)(unsigned from, unsigned to);
	/* a document has changed */
	void (*changed)(void *arg, struct site_document *d, struct site_version *v);
	void *arg;
};

extern struct site site;

void site_begin(void);
/* Frees everything. */
void site_end(void);
struct site_document *site_add_document(const char *path, unsigned lines);
struct site_document *site_find_document(const char *path);
struct site_server *site_add_server(const char *name);
struct site_server *site_find_server(const char *name, size_t len);
/* Makes a new version the current one. */
struct site_version *site_change(struct site_document *d, enum site_quality quality);
/* A backup is restored: the document is as it was so many versions before. */
void site_go_back(struct site_document *d, size_t versions);
/* etcd has a new leader. */
void site_elect(void);
/* The documents of etcd are as they were, its revisions are lower: it was restored. */
void site_restore_etcd(void);
/* What was current at that moment; NULL = nothing, or it is absent. */
struct site_version *site_version_at(struct site_document *d, uint64_t us);
/* The current one; may be absent. */
struct site_version *site_current(struct site_document *d);
/* The rollout that is shown now; NULL = there is none. */
const char *site_rollout(void);
/* The public key of all signatures. */
const char *site_public_key(void);
/* The signature of a version, made when it is asked for first. */
const char *site_signature(const struct site_document *d, struct site_version *v);
/* All servers are good from now on. */
void site_heal(void);

#endif

/*
 * One accepted version of a config: its facts, and the parts that it was pulled in.
 *
 * Threads: one at a time. Ownership: a version owns its texts and parts: version_fini().
 */
#ifndef PULLET_VERSION_H
#define PULLET_VERSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crypto/digest.h"

#define VERSION_MAX_PARTS 32 /* documents and their signatures */

/* One document (or its signature, which follows it) as it came from a server. */
struct part {
	/* in one block of memory; the last two as sent, "" = none */
	char *url, *etag, *last_modified;
	char *epoch;  /* see kind.h; NULL = none */
	char type[8]; /* yaml | json | bytes: how it was validated; minisig */
	bool absent;  /* optional, and not there */
	size_t len;   /* bytes in the body, behind those of the parts before */
};

/* Why a version was published: what began the pull that brought it, or what was done instead. */
enum version_cause {
	CAUSE_UNKNOWN, /* its file is of an older agent */
	CAUSE_PULL,    /* the interval */
	CAUSE_PUSH,
	CAUSE_WATCH,
	CAUSE_START,    /* the first pull of an agent, or of a configuration of it */
	CAUSE_OPERATOR, /* who asked for a pull */
	CAUSE_ROLLBACK, /* an operator's */
	CAUSE_PROBE,    /* a rollback, too */
	CAUSE_OVERRIDE, /* made, removed or expired */
	CAUSE_PIN,      /* it ended, or brought the version back */
	CAUSE_SETTINGS, /* the configuration asks for another form */
	VERSION_CAUSES
};

#define VERSION_PULLED "pull" /* an origin */

/* As in state files and answers; NULL = unknown. */
const char *version_cause_name(enum version_cause cause);
/* A word that this version of the agent does not know (or NULL) is unknown. */
enum version_cause version_parse_cause(const char *name);

/* The first digits of a digest, and a NUL: enough to notice that settings are others. */
#define VERSION_SETTINGS 16

struct version { /* the facts of one accepted version */
	uint64_t generation;
	int64_t pulled_ms;       /* wall clock */
	int64_t published_ms;    /* the same, of its state file; 0 = unknown, an older agent's */
	char *by;                /* the operator; NULL = none */
	char sha256[DIGEST_HEX]; /* of the bytes of all parts */
	unsigned char cause;     /* enum version_cause; here there is a byte to spare */
	unsigned part_count;     /* 1 to VERSION_MAX_PARTS */
	char *origin;            /* the request and its user; NULL: a pull */
	struct part *parts;
	size_t product_len; /* bytes in the body behind the parts: what a program or template made
			     */
	char settings[VERSION_SETTINGS]; /* digest of those that it was composed with; "" = not
					  * known */
	/* of its publication, as a ledger (ledger.h); "" = none. NULL in a loaded version: unknown,
	 * its file is older than decisions */
	char *decisions;
};

/* Copies all but the decisions. 0 or -ENOMEM; then *ret_copy needs no version_fini(). */
int version_copy(const struct version *v, struct version *ret_copy);
void version_fini(struct version *v);
/* Sets why it is published; by may be NULL. 0 or -ENOMEM: by is unknown. */
int version_set_cause(struct version *v, enum version_cause cause, const char *by);
/* As in state files and answers: VERSION_PULLED where there is none. */
const char *version_origin(const struct version *v);
/* When it was published; of an older agent's version when it was pulled. */
int64_t version_shown_ms(const struct version *v);
/* The same bytes in the same parts. */
bool version_same(const struct version *a, const struct version *b);
/* The first 32 bits of the bytes' digest; 0 = no version. */
uint32_t version_digest_begin(const struct version *v);
/* Bytes of the documents, without signatures. */
size_t version_bytes(const struct version *v);
/* An ETag for people, without its quotes; of several layers the first one's. NULL = none. */
#define VERSION_TEXT_SIZE 256
#define VERSION_TEXT(v) version_text(v, (char[VERSION_TEXT_SIZE]){0})
const char *version_text(const struct version *v, char text[VERSION_TEXT_SIZE]);
/* Sets up a part: copies the texts. 0 or -ENOMEM. */
int part_init(struct part *p, const char *url, const char *etag, const char *last_modified,
	const char *type);
/* Replaces the epoch by a copy; NULL or "" = none. 0 or -ENOMEM. */
int part_set_epoch(struct part *p, const char *epoch);
/* 0 or -ENOMEM. */
int part_copy(const struct part *p, struct part *ret_copy);
void part_fini(struct part *p);

#endif

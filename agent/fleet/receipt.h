/*
 * A receipt: which versions one agent runs, as a value in etcd; written and read without I/O.
 *
 * Below a prefix each agent has a key with the name of its host, under a lease: {"v":1, "host",
 * "pullet", "since_ms", "labels": {}, "configs": {NAME: {"generation", "version", "others",
 * "digest", "state", "why", "rejected", "rejected_digest", "since_ms", "pulled_ms"}}}. Nothing is
 * left out: configs beyond the first RECEIPT_CONFIGS are in HOST#2, HOST#3 and so on, with "page"
 * and "pages", so that a change writes one page. PREFIX known/HOST, without a lease, says which
 * hosts are expected:
 * {"v":1, "first_ms", "stopped_ms", "labels": {}, "configs": [NAME]}; "stopped_ms" while the
 * agent is stopped, as it was told to. Unknown members are ignored.
 *
 * Threads: any. Ownership: texts of a receipt that is written are borrowed; one that was read
 * owns its own: receipt_free(). Errors: -EINVAL: not a receipt; -EPROTONOSUPPORT: of a newer form;
 * -ENOMEM, -EMSGSIZE. Bounds: the largest receipt of an agent fits into RECEIPT_MAX and, as base64,
 * into KIND_MAX_BODY.
 */
#ifndef PULLET_RECEIPT_H
#define PULLET_RECEIPT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/buffer.h"
#include "settings/settings.h"

#define RECEIPT_PREFIX "/pullet/agents/" /* unless configured */
#define RECEIPT_KNOWN "known/"
#define RECEIPT_CONFIGS 100 /* in a page */
#define RECEIPT_MAX 720000u /* bytes of a value */
#define RECEIPT_VERSION 256 /* bytes of a version, with a NUL */
#define RECEIPT_DIGEST 17   /* the first 64 bits of a SHA-256 in hexadecimal, with a NUL */
#define RECEIPT_WHY 201
#define RECEIPT_OTHERS 1000 /* of the versions of other layers, cut to 64 bytes each */

enum receipt_state {
	RECEIPT_OK,        /* the server's version is published */
	RECEIPT_APPLYING,  /* a version is being validated, or the application notified of it */
	RECEIPT_PINNED,    /* by an operator: updates are ignored */
	RECEIPT_SUSPENDED, /* by an operator: no pulls */
	RECEIPT_HELD,      /* the rollout has not come to this host */
	RECEIPT_REJECTED,  /* or rolled back */
	RECEIPT_FAILING,   /* the last pull or reload failed */
	RECEIPT_STALE,
	RECEIPT_WAITING, /* nothing is published yet */
	RECEIPT_OTHER,   /* unknown to this version */
	RECEIPT_STATES
};

struct receipt_config {
	const char *name;
	uint64_t generation; /* the current one; 0 = none */
	const char *version; /* see receipt_version(); of several layers the first one's */
	const char *others;  /* of the further layers, with a blank between them; "" = none */
	const char *digest;  /* of the bytes of all layers */
	enum receipt_state state;
	const char *why;             /* reason of the state; "" = none */
	const char *rejected;        /* the server's version, if it is not published; "" = none */
	const char *rejected_digest; /* of its bytes, as digest */
	int64_t since_ms;            /* wall clock: of version and state */
	int64_t pulled_ms;           /* wall clock: of the current version; 0 = none */
};

struct receipt {
	const char *host, *pullet; /* pullet: the agent's version */
	int64_t since_ms;          /* wall clock: the agent's start; of "known" the first one */
	int64_t stopped_ms;        /* wall clock; 0 = not said; of "known" only */
	uint64_t page, pages;      /* from 1 */
	const struct settings_label *labels;
	size_t label_count;
	struct receipt_config *configs; /* of "known" names only */
	size_t config_count;
	size_t bytes; /* of memory, of one that was read */
};

/* Why no agent can have written a receipt. */
enum receipt_fault {
	RECEIPT_SOUND,
	RECEIPT_LARGE, /* a text or a count exceeds its bound */
	RECEIPT_ODD    /* a name or version has invalid characters */
};

/* Room for the texts of one config. */
struct receipt_texts {
	char version[RECEIPT_VERSION], rejected[RECEIPT_VERSION];
	char digest[RECEIPT_DIGEST], rejected_digest[RECEIPT_DIGEST];
	char others[RECEIPT_OTHERS], why[RECEIPT_WHY];
};

/* "ok", "applying", ... */
const char *receipt_state_name(enum receipt_state state);
/* An ETag without its quotes and W/; what is not printable ASCII, or a blank, is a '?'. */
void receipt_version(const char *etag, char ret_version[RECEIPT_VERSION]);
/* The first line of a sentence, cut between characters. */
void receipt_why(const char *text, char ret_why[RECEIPT_WHY]);
/* Does it run this version: the same text in one of its layers, or a prefix of its digest of at
 * least 12 digits? */
bool receipt_runs(const struct receipt_config *c, const char *version);

/* Write a page: r without its configs, then each config, then the end. An error of the buffer
 * sticks. */
void receipt_begin(const struct receipt *r, struct buffer *out);
void receipt_add(const struct receipt_config *c, struct buffer *out);
int receipt_end(struct buffer *out);
int receipt_write_known(const struct receipt *r, struct buffer *out);

/* Read a page, or a "known" value. 0 and *ret. */
int receipt_read(const char *data, size_t len, struct receipt **ret);
int receipt_read_known(const char *data, size_t len, struct receipt **ret);
/* Checks a receipt against the bounds of an agent; a "why" may have any characters. */
enum receipt_fault receipt_check(const struct receipt *r, bool known);
/* The latest time in it. */
int64_t receipt_latest_ms(const struct receipt *r);
void receipt_free(struct receipt *r);

#endif

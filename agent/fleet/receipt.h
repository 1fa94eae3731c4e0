/*
 * A receipt: what one agent says that it runs, as it lies in etcd; written and read without I/O.
 *
 * Below a prefix each agent has a key with the name of its host, under a lease: {"v":1, "host",
 * "pullet", "since_ms", "labels": {}, "configs": {NAME: {"generation", "version", "others",
 * "digest", "state", "why", "rejected", "since_ms", "pulled_ms"}}}. Nothing is left out: configs
 * beyond the first RECEIPT_CONFIGS are in HOST#2, HOST#3 and so on, with "page" and "pages", so
 * that a change writes one page. PREFIX known/HOST, without a lease, tells who is to be there:
 * {"v":1, "first_ms", "labels": {}, "configs": [NAME]}. Members that are not known are passed over.
 *
 * Threads: any. Ownership: texts of what is written are borrowed; one that was read owns its own:
 * receipt_free(). Errors: -EINVAL: it is none; -EPROTONOSUPPORT: of a newer form; -ENOMEM,
 * -EMSGSIZE. Bounds: RECEIPT_MAX holds whatever an agent has to say, and so, as base64,
 * KIND_MAX_BODY does.
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
	RECEIPT_OK,        /* applied: it is what the server has */
	RECEIPT_APPLYING,  /* a version is being validated, or the application being told of it */
	RECEIPT_PINNED,    /* by an operator: what stands stays */
	RECEIPT_SUSPENDED, /* by an operator: the server is not asked */
	RECEIPT_HELD,      /* the rollout has not come to this host */
	RECEIPT_REJECTED,  /* or rolled back */
	RECEIPT_FAILING,   /* the server, or the application, cannot be reached */
	RECEIPT_STALE,
	RECEIPT_WAITING, /* nothing stands yet */
	RECEIPT_OTHER,   /* one that is not known here */
	RECEIPT_STATES
};

struct receipt_config {
	const char *name;
	uint64_t generation; /* that stands; 0 = nothing does */
	const char *version; /* see receipt_version(); of several layers the first one's */
	const char *others;  /* of the further layers, with a blank between them; "" = none */
	const char *digest;  /* of the bytes of all layers */
	enum receipt_state state;
	const char *why;      /* of the state; "" = no more is to be said */
	const char *rejected; /* the server's version, which does not stand; "" = none */
	int64_t since_ms;     /* wall clock: version and state are as they are */
	int64_t pulled_ms;    /* wall clock: what stands came; 0 = nothing stands */
};

struct receipt {
	const char *host, *pullet; /* pullet: the agent's version */
	int64_t since_ms;          /* wall clock: the agent began; of "known" when it first did */
	uint64_t page, pages;      /* from 1 */
	const struct settings_label *labels;
	size_t label_count;
	struct receipt_config *configs; /* of "known" names only */
	size_t config_count;
	size_t bytes; /* of memory, of one that was read */
};

/* What keeps a value from being one that an agent wrote. */
enum receipt_fault {
	RECEIPT_SOUND,
	RECEIPT_LARGE, /* a text, or how many of something, is beyond its bound */
	RECEIPT_ODD    /* a name or version has characters that none has */
};

/* Room for the texts of one config. */
struct receipt_texts {
	char version[RECEIPT_VERSION], rejected[RECEIPT_VERSION], digest[RECEIPT_DIGEST];
	char others[RECEIPT_OTHERS], why[RECEIPT_WHY];
};

/* "ok", "applying", ... */
const char *receipt_state_name(enum receipt_state state);
/* An ETag without its quotes and W/; what is not printable ASCII, or a blank, is a '?'. */
void receipt_version(const char *etag, char ret_version[RECEIPT_VERSION]);
/* The first line of a sentence, cut between characters. */
void receipt_why(const char *text, char ret_why[RECEIPT_WHY]);
/* Does it run this version: the same text in one of its layers, or a digest that begins alike, of
 * 12 letters at least? */
bool receipt_runs(const struct receipt_config *c, const char *version);

/* A page: what is in r but for its configs, then each of them, then the end. An error of the buffer
 * sticks. */
void receipt_begin(const struct receipt *r, struct buffer *out);
void receipt_add(const struct receipt_config *c, struct buffer *out);
int receipt_end(struct buffer *out);
int receipt_write_known(const struct receipt *r, struct buffer *out);

/* Reads a page, or what is "known". 0 and *ret. */
int receipt_read(const char *data, size_t len, struct receipt **ret);
int receipt_read_known(const char *data, size_t len, struct receipt **ret);
/* Holds what was read against what an agent writes; a "why" may have any characters. */
enum receipt_fault receipt_check(const struct receipt *r, bool known);
/* The latest moment that it names. */
int64_t receipt_latest_ms(const struct receipt *r);
void receipt_free(struct receipt *r);

#endif

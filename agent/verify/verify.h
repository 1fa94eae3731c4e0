/*
 * The checks of a version before it is published, in this order: size and syntax
 * (version/compose.h), the digest that the server gave, signatures, the guard, the schema; the
 * check program comes last (programs.h). The first that rejects ends it.
 *
 * Threads: the loop's. Ownership: settings are borrowed; a schema is read when its file has
 * changed. Errors: -EINVAL: rejected, with a sentence (for the schema several lines); -ENOMEM,
 * -EIO: not validated. Bounds: those of the documents; VERIFY_WHY bytes of sentence.
 */
#ifndef PULLET_VERIFY_H
#define PULLET_VERIFY_H

#include "version/compose.h"
#include "crypto/digest.h"
#include "base/sys.h"

#define VERIFY_WHY 2048
#define VERIFY_ID 33 /* half of a digest, and the NUL */

enum verify_check {
	CHECK_SYNTAX,
	CHECK_DIGEST,
	CHECK_SIGNATURE,
	CHECK_GUARD,
	CHECK_SCHEMA,
	CHECK_FORMAT,
	CHECK_SIZE, /* of text or snapshot */
	CHECK_PROGRAM,
	CHECK_COUNT
};

struct verify;

enum verify_level {
	VERIFY_TRUSTED,    /* accepted before, as it is: its signatures are only looked at */
	VERIFY_RECOMPOSED, /* accepted before, with other overrides: schema too */
	VERIFY_NEW         /* all of them */
};

struct verify_case { /* borrowed */
	const struct compose_piece *pieces;
	size_t count;
	const struct composition *composition;
	size_t bytes;              /* of all documents */
	const struct node *before; /* the current version; NULL = none, or bytes */
	size_t before_bytes;       /* 0 = nothing is published */
	const uint64_t *revs;      /* per layer, the highest accepted */
	enum verify_level level;
	bool forced; /* by the operator: skips the guard */
	int64_t wall_ms;
};

struct verify_result {
	enum verify_check check; /* that rejected it */
	char why[VERIFY_WHY];
	/* when accepted: */
	uint64_t revs[SETTINGS_MAX_LAYERS]; /* signed; 0 = none */
	int64_t expires_ms; /* the first of the layers to expire; INT64_MAX = none */
	/* below VERIFY_NEW: why its signatures are not good by the keys of now; "" = they are */
	char unsigned_why[FILE_WHY];
};

const char *verify_check_name(enum verify_check check);
struct verify *verify_new(const struct sys *sys, const struct settings_config *config);
void verify_free(struct verify *v);
/* Reads what the checks need, when it has changed since. 0, or -errno with a sentence. *ret_note:
 * something to log once ("" = nothing); valid until the next call. */
int verify_ready(struct verify *v, const char **ret_note, char why[FILE_WHY]);
/* A digest of all rules, the texts of schema and template included. */
const char *verify_id(const struct verify *v);
int verify_try(struct verify *v, const struct verify_case *c, struct verify_result *ret_result);

#endif

/*
 * Who looks at a version before anybody else does, in this order: size and syntax
 * (version/compose.h), the digest that the server gave, signatures, the guard, the schema; the
 * check program comes last (programs.h). The first that refuses ends it.
 *
 * Threads: the loop's. Ownership: settings are borrowed; a schema is read when its file has
 * changed. Errors: -EINVAL: refused, with a sentence (for the schema several lines); -ENOMEM, -EIO:
 * not judged. Bounds: those of the documents; JUDGES_WHY bytes of sentence.
 */
#ifndef PULLET_JUDGES_H
#define PULLET_JUDGES_H

#include "version/compose.h"
#include "crypto/digest.h"
#include "base/sys.h"

#define JUDGES_WHY 2048

enum judge {
	JUDGE_SYNTAX,
	JUDGE_DIGEST,
	JUDGE_SIGNATURE,
	JUDGE_GUARD,
	JUDGE_SCHEMA,
	JUDGE_FORMAT,
	JUDGE_SIZE, /* what it would become */
	JUDGE_CHECK,
	JUDGE_COUNT
};

struct judges;

enum judges_level {
	JUDGES_TRUSTED,    /* accepted before, as it is: only its expiry counts */
	JUDGES_RECOMPOSED, /* accepted before, with other overrides: the schema is asked */
	JUDGES_NEW         /* all of them */
};

struct judges_case { /* borrowed */
	const struct compose_piece *pieces;
	size_t count;
	const struct composition *composition;
	size_t bytes;              /* of all documents */
	const struct node *before; /* what stands; NULL = nothing, or bytes */
	size_t before_bytes;       /* 0 = nothing stands */
	const uint64_t *revs;      /* per layer, the highest accepted */
	enum judges_level level;
	bool forced; /* the operator wants it whatever the guard says */
	int64_t wall_ms;
};

struct judgement {
	enum judge judge; /* who refused */
	char why[JUDGES_WHY];
	/* when accepted: */
	uint64_t revs[SETTINGS_MAX_LAYERS]; /* signed; 0 = none */
	int64_t expires_ms; /* the first of the layers to expire; INT64_MAX = none */
};

const char *judge_name(enum judge judge);
struct judges *judges_new(const struct sys *sys, const struct settings_config *config);
void judges_free(struct judges *j);
/* Reads what the judges need, when it has changed since. 0, or -errno with a sentence. *ret_note:
 * something to log once ("" = nothing); valid until the next call. */
int judges_ready(struct judges *j, const char **ret_note, char why[FILE_WHY]);
/* A digest of all rules, the schema's text included: another one means other rules. */
const char *judges_id(const struct judges *j);
int judges_try(struct judges *j, const struct judges_case *c, struct judgement *ret_judgement);

#endif

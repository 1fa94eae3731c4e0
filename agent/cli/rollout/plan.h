/*
 * The rollout document as `pullet rollout` writes it: what agents read (verify/rollout.h), and the
 * member "plan", which they do not look into: {"v":1, "state", "version", "waves": [PERCENT],
 * "wave", "every_ms", "abort_at", "driver", "by", "since_ms", "why", "digest", "timeout_ms",
 * "aborted": [VERSION or DIGEST]}.
 * Without I/O.
 *
 * One document for both, so that one comparison protects both. Once its version is known the agents
 * take no other one while it runs or is paused. After an abort it names the
 * version and its bytes, and those that were aborted before it, so that any other reaches all hosts
 * at once, and the same bytes under another name none.
 *
 * Threads: any. Ownership: texts of a plan that was read belong to it: plan_fini(). Errors:
 * with a sentence: -EINVAL: no rollout document, agents hold back all that is new; -EPROTO: one
 * that agents go by, of which the plan cannot be read; -ENOMEM. Bounds: ROLLOUT_MAX_WAVES,
 * ROLLOUT_MAX_BYTES.
 */
#ifndef PULLET_CLI_PLAN_H
#define PULLET_CLI_PLAN_H

#include "fleet/roster.h"
#include "verify/rollout.h"

#define PLAN_WHOLE 100000u /* 100 %; three decimals */
#define PLAN_LABELS 16
#define PLAN_TIMEOUT_MS 3600000u /* by default, and of a plan of before */
#define PLAN_ABORTED_MAX 16      /* the oldest is forgotten first */
#define PLAN_DRIVER 17           /* 16 digits and a NUL */

enum plan_state {
	PLAN_NONE, /* a document that somebody wrote by hand, or none */
	PLAN_RUNNING,
	PLAN_PAUSED,
	PLAN_ABORTED,
	PLAN_FINISHED,
	PLAN_STATES
};

struct plan {
	enum plan_state state;
	char version[RECEIPT_VERSION];     /* "" = not known yet: all hosts hold what is new */
	char digest[RECEIPT_DIGEST];       /* of its bytes, by a receipt; "" = not known yet */
	uint32_t waves[ROLLOUT_MAX_WAVES]; /* percent of PLAN_WHOLE, rising */
	size_t wave_count;
	size_t wave; /* so many have begun */
	uint64_t every_ms;
	uint64_t timeout_ms;            /* paused when no host runs the version for so long */
	uint32_t abort_at;              /* of PLAN_WHOLE */
	char driver[PLAN_DRIVER];       /* which command drives it */
	char by[160], why[RECEIPT_WHY]; /* who changed the state last; why it was
					   aborted, or paused by its driver */
	int64_t since_ms;               /* wall clock: of the state */

	const char *salt; /* NULL = the config's name */
	struct roster_label labels[PLAN_LABELS];
	size_t label_count;
	/* versions, and digests of versions, that were aborted before this rollout, for none of
	 * which it opens the way */
	char aborted[PLAN_ABORTED_MAX][RECEIPT_VERSION];
	size_t aborted_count;
	struct document *document; /* NULL = none was read */
};

/* "running", "paused", ... */
const char *plan_state_name(enum plan_state state);
/* The share of hosts that take the version now, of PLAN_WHOLE; of a plan. */
uint32_t plan_percent(const struct plan *p);
/* "12.5" */
const char *plan_percent_text(uint32_t percent, char text[16]);
/* Reads "12.5" or "12.5%" and sets *end behind it. False: no percentage. */
bool plan_read_percent(const char *text, const char **end, uint32_t *ret);

/* Notes the versions that are aborted by a document of before. */
void plan_keep_aborted(struct plan *p, const struct plan *before);
/* Its own version is none of them any more: all hosts run it. */
void plan_forget_aborted(struct plan *p);
/* 0 and *ret. len 0 = no document. */
int plan_read(const char *data, size_t len, struct plan *ret, char why[FILE_WHY]);
/* Appends the document. 0 or the buffer's error. */
int plan_write(const struct plan *p, struct buffer *out);
void plan_fini(struct plan *p);

#endif

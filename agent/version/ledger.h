/*
 * A config's memory besides its versions: rejections and their reasons, the operator's decisions
 * (pin, suspension, overrides), the last reload and probe.
 *
 * One small file, STATE_DIR/NAME/ledger.json, replaced whole with each change. A damaged file is an
 * empty ledger, and is reported: nothing here is needed to publish.
 *
 * Threads: the loop's. Ownership: texts belong to the ledger. Errors: -errno with a sentence. Times
 * are wall clock, milliseconds since 1970, because they outlive the machine's uptime. Bounds:
 * LEDGER_MAX_*; the oldest verdict goes first.
 */
#ifndef PULLET_LEDGER_H
#define PULLET_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/buffer.h"
#include "files/file.h"
#include "base/sys.h"

#define LEDGER_NAME "ledger.json"
#define LEDGER_MAX_VERDICTS 16
#define LEDGER_MAX_OVERRIDES 32
#define LEDGER_MAX_LAYERS 16
#define LEDGER_FOREVER INT64_MAX

struct ledger_verdict {
	char *sha256; /* of the version's bytes */
	char *check;  /* rejection_name(); "probe" or "operator": it was rolled back */
	char *checks; /* digest of the rules; "" = any */
	char *why;
	int64_t at_ms;
};

struct ledger_override {
	char *key, *value; /* value: YAML of one scalar */
	char *by, *reason;
	int64_t until_ms;
};

struct ledger_pin {
	char *by, *reason; /* by NULL = not pinned */
	char *sha256;      /* of the pinned bytes; "" = not known (an older ledger), or suspended */
	int64_t until_ms;
};

struct ledger {              /* read freely; change through the calls */
	uint64_t generation; /* newest state file whose decisions are in here; 0 = none */
	struct ledger_verdict *verdicts;   /* oldest first */
	struct ledger_override *overrides; /* in the order of their making */
	unsigned verdict_count, override_count;
	struct ledger_pin pin;
	struct ledger_pin *suspension; /* of pulls; NULL = none */
	uint64_t notified;             /* generation of the last successful reload; 0 = none */
	uint64_t proven;               /* newest generation that passed its probe; 0 = none */
	uint64_t *revs;                /* for ledger_revs(); NULL = none */
	char *others; /* members of a newer version's ledger, as JSON; written again; NULL = none */
};

/* Appends it as one JSON object, without a newline. 0, -ENOMEM or -EMSGSIZE. */
int ledger_write(const struct ledger *l, struct buffer *out);
/* Reads such an object. 0, -EBADMSG or -ENOMEM. */
int ledger_read(const char *text, size_t len, struct ledger **ret_ledger);
/* Takes over the decisions in the state file of a generation with these bytes: its overrides, if
 * wanted, higher revs, and verdicts, all of which leave `decided`; drops other verdicts about the
 * bytes; moves a pin with them. Needs no memory: once the version is there, this is known. True:
 * the ledger has changed; false: it is newer than that state file, or nothing was decided. */
bool ledger_adopt_decisions(struct ledger *l, uint64_t generation, struct ledger *decided,
	const char *sha256, bool with_overrides);
/* Reads the ledger in the directory; none is an empty one. -EBADMSG: it is damaged, *ret is
 * empty. -EIO: it was not read, which may pass (file_error_may_pass()), *ret is empty. -ENOMEM,
 * -EMFILE, -ENFILE: the same, and nothing was returned. */
int ledger_load(const struct sys *sys, int dir, struct ledger **ret_ledger);
/* Writes it, on disk if sync. 0 or -errno with a sentence in why. */
int ledger_save(
	const struct ledger *l, const struct sys *sys, int dir, bool sync, char why[FILE_WHY]);
/* Brings to the disk what was saved without sync. 0 or -errno. */
int ledger_sync(const struct sys *sys, int dir);
void ledger_free(struct ledger *l);

/* Per layer the highest rev that was signed; 0 = none. */
const uint64_t *ledger_revs(const struct ledger *l);
/* Makes room for revs, which ledger_raise_revs() needs. 0 or -ENOMEM. */
int ledger_reserve_revs(struct ledger *l);
/* Forgets them all, so that any is accepted next, and the verdicts of that check. True when there
 * was something. */
bool ledger_forget_revs(struct ledger *l, const char *check);
/* Takes over higher ones. True when one was. */
bool ledger_raise_revs(struct ledger *l, const uint64_t revs[LEDGER_MAX_LAYERS]);

/* Remembers a verdict, in the place of one about the same bytes. 0 or -ENOMEM. */
int ledger_reject(struct ledger *l, const char *sha256, const char *check, const char *checks,
	int64_t now_ms, const char *why);
/* The verdict about these bytes by these rules, or NULL. */
const struct ledger_verdict *ledger_find_verdict(
	const struct ledger *l, const char *sha256, const char *checks);
/* Forgets all verdicts about these bytes. True when there was one. */
bool ledger_forgive(struct ledger *l, const char *sha256);
/* Those of one check. */
bool ledger_forgive_check(struct ledger *l, const char *check);
/* Those of one check that are of a later moment: the clock was ahead. */
bool ledger_forgive_later(struct ledger *l, const char *check, int64_t now_ms);
/* Pins these bytes. 0 or -ENOMEM; until_ms may be LEDGER_FOREVER. The texts may be those of the pin
 * that it replaces. */
int ledger_pin(
	struct ledger *l, int64_t until_ms, const char *by, const char *reason, const char *sha256);
bool ledger_unpin(struct ledger *l);
/* The same of pulls. */
int ledger_suspend(struct ledger *l, int64_t until_ms, const char *by, const char *reason);
bool ledger_resume(struct ledger *l);
/* 0, -ENOMEM, -ENOSPC. The same key again replaces it. */
int ledger_override(struct ledger *l, const char *key, const char *value, int64_t until_ms,
	const char *by, const char *reason);
bool ledger_drop_override(struct ledger *l, const char *key);
/* Replaces all overrides by those of another ledger. 0, or -ENOMEM and keeps its own. */
int ledger_copy_overrides(struct ledger *l, const struct ledger *from);
/* The same keys with the same values, in the same order; NULL = none. */
bool ledger_same_overrides(const struct ledger *a, const struct ledger *b);
/* Drops what has expired. True when something did; *ret_overrides: overrides among it. */
bool ledger_expire(struct ledger *l, int64_t now_ms, bool *ret_overrides);
/* The moment the next thing expires; LEDGER_FOREVER = nothing will. */
int64_t ledger_next_expiry(const struct ledger *l);

#endif

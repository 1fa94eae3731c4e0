/*
 * What one config remembers besides its versions: what was refused and why, what the operator
 * decided (pin, suspension, overrides), what the application was last told.
 *
 * One small file, STATE_DIR/NAME/ledger.json, replaced whole with each change. A file that cannot
 * be read is an empty ledger, and told as such: nothing here is needed to publish.
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

#define LEDGER_MAX_VERDICTS 16
#define LEDGER_MAX_OVERRIDES 32
#define LEDGER_MAX_LAYERS 16
#define LEDGER_FOREVER INT64_MAX

struct ledger_verdict {
	char *sha256; /* of the version's bytes */
	char *check;  /* who refused it; "probe" or "operator": it was rolled back */
	char *checks; /* digest of the rules it was validated by; "" = whatever they are */
	char *why;
	int64_t at_ms;
};

struct ledger_override {
	char *key, *value; /* value: YAML of one scalar */
	char *by, *reason;
	int64_t until_ms;
};

struct ledger_pin {
	char *by, *reason; /* by NULL = not pinned, or not suspended */
	int64_t until_ms;
};

struct ledger {              /* read freely; change through the calls */
	uint64_t generation; /* newest state file whose decisions are in here; 0 = none */
	struct ledger_verdict *verdicts; /* oldest first */
	size_t verdict_count;
	struct ledger_override *overrides; /* in the order of their making */
	size_t override_count;
	struct ledger_pin pin;
	struct ledger_pin suspension; /* of pulls */
	uint64_t told;                /* generation the application was last told of; 0 = none */
	uint64_t proven;              /* newest generation that went through its probe; 0 = none */
	uint64_t *revs;               /* for ledger_revs(); NULL = none */
};

/* Appends it as one JSON object, without a newline. 0, -ENOMEM or -EMSGSIZE. */
int ledger_write(const struct ledger *l, struct buffer *out);
/* Reads such an object. 0, -EBADMSG or -ENOMEM. */
int ledger_read(const char *text, size_t len, struct ledger **ret_ledger);
/* Takes over what the state file of a generation says was decided with the version of these bytes:
 * the overrides as they are there, revs that are higher, verdicts; other verdicts about the bytes
 * go. 1; or 0 and nothing is there to be written: the ledger is newer than that state file, or it
 * decided nothing; or -ENOMEM. */
int ledger_adopt(
	struct ledger *l, uint64_t generation, const struct ledger *decided, const char *sha256);
/* Reads the ledger in the directory; none is an empty one. -EBADMSG: it was not readable, *ret is
 * empty. -ENOMEM, -EMFILE, -ENFILE: it was not read, come again. */
int ledger_load(const struct sys *sys, int dir, struct ledger **ret_ledger);
/* Writes it, on disk if sync. 0 or -errno with a sentence in why. */
int ledger_save(
	const struct ledger *l, const struct sys *sys, int dir, bool sync, char why[FILE_WHY]);
/* Brings to the disk what was saved without sync. 0 or -errno. */
int ledger_sync(const struct sys *sys, int dir);
void ledger_free(struct ledger *l);

/* Per layer the highest rev that was signed; 0 = none. */
const uint64_t *ledger_revs(const struct ledger *l);
/* Makes room for revs, which ledger_raise() needs. 0 or -ENOMEM. */
int ledger_reserve_revs(struct ledger *l);
/* Forgets them all, so that any is taken next, and what was refused for its signature. True when
 * there was something. */
bool ledger_forget_revs(struct ledger *l, const char *check);
/* Takes over those that are higher. True when one was. */
bool ledger_raise(struct ledger *l, const uint64_t revs[LEDGER_MAX_LAYERS]);

/* Remembers a verdict, in the place of one about the same bytes. 0 or -ENOMEM. */
int ledger_refuse(struct ledger *l, const char *sha256, const char *check, const char *checks,
	int64_t now_ms, const char *why);
/* The verdict about these bytes by these rules, or NULL. */
const struct ledger_verdict *ledger_find(
	const struct ledger *l, const char *sha256, const char *checks);
/* Forgets all verdicts about these bytes; NULL = about all. True when there was one. */
bool ledger_forgive(struct ledger *l, const char *sha256);
/* 0 or -ENOMEM; until_ms may be LEDGER_FOREVER. */
int ledger_pin(struct ledger *l, int64_t until_ms, const char *by, const char *reason);
bool ledger_unpin(struct ledger *l);
/* The same of pulls. */
int ledger_suspend(struct ledger *l, int64_t until_ms, const char *by, const char *reason);
bool ledger_resume(struct ledger *l);
/* 0, -ENOMEM, -ENOSPC. The same key again replaces it. */
int ledger_override(struct ledger *l, const char *key, const char *value, int64_t until_ms,
	const char *by, const char *reason);
bool ledger_drop_override(struct ledger *l, const char *key);
/* Replaces all overrides by those of another ledger. 0 or -ENOMEM: some are lost. */
int ledger_copy_overrides(struct ledger *l, const struct ledger *from);
/* Drops what has expired. True when something did; *ret_overrides: overrides among it. */
bool ledger_expire(struct ledger *l, int64_t now_ms, bool *ret_overrides);
/* The moment the next thing expires; LEDGER_FOREVER = nothing will. */
int64_t ledger_next(const struct ledger *l);

#endif

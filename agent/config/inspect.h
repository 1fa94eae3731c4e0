/*
 * An operator's questions about a config's versions, as JSON: history, the difference between two,
 * and where a value comes from; and whether a change is possible. Changes nothing.
 *
 * Values whose key fits one of the config's mask patterns are "***", also inside a mapping that is
 * shown as a whole; with `values` false all values are, and the answer has "values":false. The
 * versions are those of the state directory; diff has them as readers saw them, explain has the
 * overrides as the last layers.
 *
 * Threads: inspect_begin() and inspect_end() the loop's; the others any (config_task), as they read
 * and parse: they see the config as it was when the inspection began. Errors: 0, or -errno with a
 * sentence: -EINVAL: the key is invalid; -ENOENT: there is no such generation, or no layer has
 * the key; -ENOMEM, -EMSGSIZE: no room for the answer; another -errno: not possible now. Bounds:
 * those of the documents and of `out`; INSPECT_MAX_READ; INSPECT_MAX_LISTED.
 */
#ifndef PULLET_INSPECT_H
#define PULLET_INSPECT_H

#include "lib/buffer.h"
#include "config/config.h"
#include "document/document.h"
#include "text/sentence.h"

#define INSPECT_MAX_READ (64u << 20)   /* bytes of versions that a history reads */
#define INSPECT_MAX_LISTED (16u << 20) /* bytes of a difference, about */

struct inspection { /* members are private */
	struct config *config;
	struct version published; /* generation 0: nothing is */
	struct ledger *ledger;    /* a copy; NULL: there is none */
	struct buffer forward;    /* a member of the history; empty: none */
	/* the version that is held back, after inspect_hold(): its bytes, or where they are stored
	 */
	struct candidate *held;
	uint64_t held_generation;
	const char *held_by; /* rejection_name(); NULL: by no decision */
	char *held_why;      /* NULL: out of memory */
};

/* Copies what may change. 0 or -ENOMEM with a sentence; then it needs no inspect_end(). */
int inspect_begin(struct config *c, struct inspection *ret, char why[FILE_WHY]);
void inspect_end(struct inspection *i);
/* 0, or -EAGAIN with a sentence: another version was published since. */
int inspect_unchanged(const struct inspection *i, char why[FILE_WHY]);

/* {"name":"web","versions":[...]}, newest first: generation, published_ms and cause (null: not
 * known, its file is of an older agent), by (the operator; null: none), pulled_ms, sha256, origin,
 * urls, the first document's version (null: none), bytes of the documents; "published":true in the
 * current one; "rejected":{"by","why"} if its bytes were rejected or rolled back. A damaged one has
 * an "error" instead. "truncated":true: there are older ones, beyond INSPECT_MAX_READ. "forward" as
 * explain_forward() has it, where the current version is a rollback's. */
int inspect_history(
	const struct inspection *i, enum audience audience, struct buffer *out, char why[FILE_WHY]);

/* --- inspect_held.c --- */

/* The question is about what is held back: copies it. 0, or -ENODATA or -ENOENT (nothing is, or it
 * is not known) or -ENOMEM with a sentence. */
int inspect_hold(struct inspection *i, char why[FILE_WHY]);

/* --- inspect_diff.c --- */

/* {"name","from":{facts},"to":{facts},"equal":true|false,"values","changes":[...]}: facts as above,
 * and "overrides":[{"key","by","reason","until_ms"}] where it has some; equal: the same bytes of
 * the servers; changes: each as diff_write_json() has it, none when only comments or the order
 * changed, null for bytes and for a set of files; "more": changes that are not listed, only where
 * there are some, beyond INSPECT_MAX_LISTED. to 0 = the current version, from 0 = the newest one
 * before `to`.
 *
 * The values are those that readers saw. Where an override said it, a change has
 * "overridden_before" or "overridden_after", its key, and "server_before" or "server_after", the
 * server's value (no member without one). "hidden" lists changes of the servers that an override
 * hides ("override": its key). An older agent's version, whose file does not name its overrides,
 * has none.
 *
 * After inspect_hold() `to` is what is held back, with the overrides of now; its generation is
 * null unless it is stored; from 0 = the current version; "held":{"by","why"}: by null: it is
 * published next. */
int inspect_diff(const struct inspection *i, uint64_t from, uint64_t to, bool values,
	struct buffer *out, char why[FILE_WHY]);

/* --- inspect_key.c --- */

/* {"name","generation","key","found":true|false,"values","value":...,"layers":[...]}: value is the
 * current one (no member without one). A layer has its "url" and "path"; an override
 * "override":true, "key", "by", "reason" and "until_ms" (null: for ever). Each has
 * its "effect" on the key (document/merge.h): absent, unset, sets, deletes, replaces; "line" if
 * that is known; its "value" when it sets one, and "effective". */
int inspect_explain(const struct inspection *i, const char *key, bool values, struct buffer *out,
	char why[FILE_WHY]);

/* --- inspect_change.c --- */

/* Whether config_roll_back() may take that generation; 0 is replaced by the newest that it may. */
int inspect_rollback(const struct inspection *i, uint64_t *generation, char why[FILE_WHY]);
#define INSPECT_NEAR 128

/* What an override of a key would do to the current version. */
struct inspect_effect {
	bool adds;               /* it has no such key, */
	char near[INSPECT_NEAR]; /* but this one, which is spelled nearly so; "" = none */
	enum node_type present;  /* what is there, */
	size_t count;            /* and how many values it holds; 0: it is no mapping or list */
};

/* Whether there may be an override of that key. */
int inspect_override(const struct inspection *i, const char *key, struct inspect_effect *ret_effect,
	char why[FILE_WHY]);
/* How many values are lost with a mapping or a list that the value, a text of YAML, replaces by
 * something else; 0: none, or the value is null, or no YAML. */
size_t inspect_replaced(const struct inspect_effect *effect, const char *value);

/* --- explain.c: the config itself; the loop's thread --- */

/* {"name","generation","facts":{...},"row","action","origin","gate","resting":[...],"under_way":
 * {"row","phase","since_ms"}|null,"sentences":[...]}: the facts that the agent decides by
 * (decide.h), the row that begins next ("nothing": none, then origin is null), the gate that is
 * closed to the server's new version (null: it has none), rows that failed and wait for the next
 * pull, the step under way, and what that means: why the current version is current, what the
 * server has, what would change it. 0 or the buffer's error. */
int explain_config(struct config *c, enum audience audience, struct buffer *out);
/* Appends "explanation":[...]: the sentences about a new version at the server that is not current,
 * a step under way, and steps that failed; empty when there is nothing of that. */
int explain_news(struct config *c, enum audience audience, struct buffer *out);
/* Appends "forward":[...]: after a rollback, sentences about what makes new versions current again;
 * without values. */
int explain_forward(struct config *c, struct buffer *out);

#endif
